// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "table.h"

#define GAP	2	/* blanks between columns */
#define NARROW	22	/* an IPv4 address with its port fits */

struct cell {
	enum colour colour;
	char *text;
};

struct table {
	const struct column *columns;
	unsigned int width;	/* in columns */
	unsigned int count;	/* of cells */
	struct cell *cells;	/* row by row */
};

/*
 * Below, a width is an array: how many characters each column of the table gets,
 * 0 if it is left out.
 */
struct table *table_new(const struct column *columns)
{
	struct table *table = calloc(1, sizeof(*table));

	if (!table)
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
	table->columns = columns;
	while (columns[table->width].name)
		table->width++;
	return table;
}

void table_cell(struct table *table, enum colour colour, const char *text)
{
	size_t size = (table->count + 1) * sizeof(*table->cells);
	struct cell *cell;

	table->cells = realloc(table->cells, size);
	if (!table->cells)
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
	cell = &table->cells[table->count++];
	cell->colour = colour;
	cell->text = strdup(text);
	if (!cell->text)
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
}

unsigned int table_rows(const struct table *table)
{
	return (table->count + table->width - 1) / table->width;
}

static unsigned int total(const struct table *table, const unsigned int *width)
{
	unsigned int i, sum = 0;

	for (i = 0; i < table->width; i++)
		if (width[i])
			sum += width[i] + (sum ? GAP : 0);
	return sum;
}

static void natural(const struct table *table, unsigned int *width)
{
	unsigned int i, len;

	for (i = 0; i < table->width; i++)
		width[i] = strlen(table->columns[i].name);
	for (i = 0; i < table->count; i++) {
		len = strlen(table->cells[i].text);
		if (len > width[i % table->width])
			width[i % table->width] = len;
	}
}

static bool shrinks(const struct table *table, unsigned int i)
{
	return table->columns[i].flags & TABLE_SHRINK;
}

/* Leave columns out, the last one first, until the narrowed table fits. */
static void drop(const struct table *table, unsigned int *width,
		 unsigned int limit)
{
	unsigned int narrow[table->width], i;

	for (i = 0; i < table->width; i++)
		narrow[i] = shrinks(table, i) && width[i] > NARROW ? NARROW :
								     width[i];
	while (i-- && total(table, narrow) > limit)
		if (table->columns[i].flags & TABLE_DROP)
			narrow[i] = 0;
	for (i = 0; i < table->width; i++)
		if (!narrow[i])
			width[i] = 0;
}

/* Take from the widest column that may shrink, until the table fits. */
static void shrink(const struct table *table, unsigned int *width,
		   unsigned int limit)
{
	unsigned int i, widest, over = total(table, width);

	for (; over > limit; over--) {
		widest = table->width;
		for (i = 0; i < table->width; i++)
			if (shrinks(table, i) &&
			    width[i] > strlen(table->columns[i].name) &&
			    (widest == table->width || width[i] > width[widest]))
				widest = i;
		if (widest == table->width)
			return;
		width[widest]--;
	}
}

static void fit(const struct table *table, unsigned int *width,
		unsigned int limit)
{
	natural(table, width);
	if (!limit)
		return;
	drop(table, width, limit);
	shrink(table, width, limit);
}

/* What begins and ends addresses tells them apart best, so the middle is cut. */
static void print_text(const char *text, unsigned int len, unsigned int width)
{
	unsigned int tail = len > width ? width / 2 : 0;

	if (tail)
		printf("%.*s~%s", width - 1 - tail, text, text + len - tail);
	else
		printf("%.*s", width, text);
}

static void print_cell(const struct column *column, unsigned int width,
		       enum colour colour, const char *text, bool last)
{
	unsigned int len = strlen(text), blanks = len < width ? width - len : 0;

	if (column->flags & TABLE_RIGHT)
		printf("%*s", blanks, "");
	fputs(term_colour(colour), stdout);
	print_text(text, len, width);
	fputs(term_plain(colour), stdout);
	if (!(column->flags & TABLE_RIGHT) && !last)
		printf("%*s", blanks, "");
	fputs(last ? "\n" : "  ", stdout);
}

/* Print a row of cells, or the names if there is none. */
static void print_row(const struct table *table, const unsigned int *width,
		      const struct cell *cells, unsigned int count)
{
	unsigned int i, last = 0;

	for (i = 0; i < table->width; i++)
		if (width[i])
			last = i;
	for (i = 0; i <= last; i++) {
		const struct column *column = &table->columns[i];

		if (!width[i])
			continue;
		if (!cells)
			print_cell(column, width[i], COLOUR_HEAD, column->name,
				   i == last);
		else
			print_cell(column, width[i],
				   i < count ? cells[i].colour : COLOUR_NONE,
				   i < count ? cells[i].text : "", i == last);
	}
}

void table_print(const struct table *table, unsigned int limit)
{
	unsigned int width[table->width], i;

	fit(table, width, limit);
	print_row(table, width, NULL, 0);
	for (i = 0; i < table->count; i += table->width)
		print_row(table, width, &table->cells[i], table->count - i);
}

void table_free(struct table *table)
{
	unsigned int i;

	for (i = 0; i < table->count; i++)
		free(table->cells[i].text);
	free(table->cells);
	free(table);
}
