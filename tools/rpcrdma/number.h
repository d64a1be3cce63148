/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Numbers that are arguments */
#ifndef RPCRDMA_NUMBER_H
#define RPCRDMA_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/**
 * number_parse - read a whole number, of digits alone
 * @number: gets it
 *
 * Return: false if @text is none, or not from @min to @max.
 */
bool number_parse(const char *text, uint32_t min, uint32_t max, uint32_t *number);

#endif
