/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Numbers as people read them, in as few characters as tell them apart. Each
 * function returns a text by value, to be used as fmt_size(n).s in the same
 * expression.
 */
#ifndef RPCRDMA_FMT_H
#define RPCRDMA_FMT_H

#include <stdint.h>

struct text {
	char s[64];
};

/**
 * fmt_plain - make a text one that can be printed
 * @text: gets a question mark for each control character, which a terminal would obey, and for
 *	what is not ASCII, as JSON has to be UTF-8
 */
void fmt_plain(char *text);

/**
 * fmt_whole - a number that may be too large for 64 bits, if the kernel lies
 * @value: not negative
 *
 * Return: the number without its fraction, 2^64 - 1 at most.
 */
uint64_t fmt_whole(double value);

/**
 * fmt_print - printf() to a text; what does not fit is cut off
 */
struct text fmt_print(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/**
 * fmt_size - octets in binary units: 0, 512, 4K, 1.5M, 23G
 */
struct text fmt_size(uint64_t octets);

/**
 * fmt_count - a count in decimal units: 950, 9500, 12.3k, 4.5M
 */
struct text fmt_count(uint64_t count);

/**
 * fmt_rate - something per second: 0, 0.25, 12.5, 950, 12.3k
 * @per_second: not negative
 */
struct text fmt_rate(double per_second);

/**
 * fmt_age - how long ago, two units at most: 0s, 59s, 3m20s, 5h01m, 12d03h
 */
struct text fmt_age(uint64_t seconds);

/**
 * fmt_ns - a short time: 850ns, 12us, 3.4ms, 1.2s
 */
struct text fmt_ns(uint64_t ns);

#endif
