/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A table of text that fits a terminal. Each column is as wide as its widest
 * cell. If the terminal is narrower, columns with TABLE_DROP are left out, the
 * last one first, until the table fits with all of TABLE_SHRINK at 22
 * characters. Then those are made narrower, and lose the middle of their cells.
 * A pipe gets all of it.
 */
#ifndef RPCRDMA_TABLE_H
#define RPCRDMA_TABLE_H

#include "term.h"

enum {
	TABLE_RIGHT = 1 << 0,	/* numbers: aligned at the right */
	TABLE_SHRINK = 1 << 1,	/* may become narrower */
	TABLE_DROP = 1 << 2,	/* may be left out */
};

/**
 * struct column - a column of a table
 * @name: in the first line
 * @flags: TABLE_...
 *
 * Constant data of the caller, in an array that ends with a name of NULL.
 */
struct column {
	const char *name;
	unsigned int flags;
};

/* A table that is being filled. Its maker frees it by table_free(). */
struct table;

/**
 * table_new - an empty table
 * @columns: must live as long as the table
 */
struct table *table_new(const struct column *columns);

/**
 * table_cell - add a cell; after the last column the next row begins
 * @colour: of the text, on a terminal with colours
 * @text: is copied
 */
void table_cell(struct table *table, enum colour colour, const char *text);

/**
 * table_rows - how many rows there are; one that is not full counts
 */
unsigned int table_rows(const struct table *table);

/**
 * table_print - print names and rows to standard output
 * @width: columns of the terminal, 0: no limit
 */
void table_print(const struct table *table, unsigned int width);

void table_free(struct table *table);

#endif
