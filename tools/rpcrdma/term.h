/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What standard output is. Only a terminal has a width and colours. NO_COLOR in
 * the environment, or TERM=dumb, takes the colours away.
 */
#ifndef RPCRDMA_TERM_H
#define RPCRDMA_TERM_H

/* Colours have a meaning, not a hue. */
enum colour {
	COLOUR_NONE,
	COLOUR_HEAD,	/* names of columns */
	COLOUR_GOOD,
	COLOUR_WARN,
	COLOUR_BAD,
};

/**
 * term_width - columns of the terminal, now
 *
 * Return: 0 if standard output is no terminal: then there is no limit.
 */
unsigned int term_width(void);

/**
 * term_colour - what to print before text of that colour
 *
 * Return: an escape sequence, or "" if there are no colours. It lives forever.
 */
const char *term_colour(enum colour colour);

/**
 * term_plain - what to print after coloured text
 * @colour: its colour
 */
const char *term_plain(enum colour colour);

#endif
