/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A table, by libsmartcols. A terminal that is not as wide as a column wants does not get that
 * column, unless the user names it; then the widest cells are cut off. A pipe gets all of it.
 */
#ifndef RPCRDMA_TABLE_H
#define RPCRDMA_TABLE_H

#include <stdbool.h>
#include <getopt.h>
#include <libsmartcols.h>
#include "term.h"

/**
 * struct column - a column of a table
 * @name: in the first line
 * @flags: SCOLS_FL_...
 * @width: of the terminals that get it, at least
 *
 * Constant data of the caller, in an array that ends with a name of NULL.
 */
struct column {
	const char *name;
	int flags;
	unsigned int width;
};

#define COLUMNS_MAX	16

/**
 * struct table_style - what the user wants
 * @columns: names, in the order of the table, or NULL; is changed
 * @sort: name of a column, or NULL: as they come
 * @top: rows at most, or 0
 * @no_headings: no line of names, and none instead of rows
 * @raw: cells with one blank between them, for programs
 */
struct table_style {
	char *columns;
	const char *sort;
	unsigned int top;
	bool no_headings;
	bool raw;
};

/* For getopt_long() of the commands that print tables, with values for table_option() */
enum { OPTION_COLUMNS = 256, OPTION_SORT, OPTION_TOP, OPTION_NO_HEADINGS, OPTION_RAW };

#define TABLE_OPTIONS \
	{ "columns", required_argument, NULL, OPTION_COLUMNS }, \
	{ "sort", required_argument, NULL, OPTION_SORT }, \
	{ "top", required_argument, NULL, OPTION_TOP }, \
	{ "noheadings", no_argument, NULL, OPTION_NO_HEADINGS }, \
	{ "raw", no_argument, NULL, OPTION_RAW }
#define TABLE_SYNOPSIS	"[--columns NAME,...] [--sort NAME] [--top N] [--noheadings] [--raw]"

/**
 * table_option - take an option; false: it is none of these
 * @command: for what to say if it is wrong, as in the next two
 */
bool table_option(struct table_style *style, const char *command, int option);

/**
 * table_check - end the program if a column is named that these are not
 */
void table_check(const struct table_style *style, const char *command,
		 const struct column *columns);

/**
 * table_refuse - end the program if one of these options is given
 * @instead: the option because of which there is no table
 */
void table_refuse(const struct table_style *style, const char *command, const char *instead);

/* A table that is being filled. Its maker frees it by table_end(). */
struct table;

/**
 * table_new - an empty table
 * @columns: must live as long as the table
 * @style: of the user, after table_check()
 */
struct table *table_new(const struct column *columns, const struct table_style *style);

/**
 * table_value - what to sort the next cell by, instead of its text
 */
void table_value(struct table *table, double value);

/**
 * table_cell - print a cell; after the last column the next row begins
 * @colour: of the text, on a terminal with colours
 */
void table_cell(struct table *table, enum colour colour, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * table_end - sort and print the table to standard output, and free it
 * @nothing: what to print for people if it has no rows
 */
void table_end(struct table *table, const char *nothing);

#endif
