// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "table.h"

#define CELL_MAX	128

struct table {
	const struct column *columns;
	const struct table_style *style;
	unsigned int width;		/* of @columns */
	unsigned int next;		/* cell of the row: one for each of @columns */
	unsigned int shown[COLUMNS_MAX];	/* those of @columns that @scols has */
	struct libscols_table *scols;
	struct libscols_line *line;
};

bool table_option(struct table_style *style, int option)
{
	if (option == OPTION_COLUMNS)
		style->columns = optarg;
	else if (option == OPTION_NO_HEADINGS)
		style->no_headings = true;
	else if (option == OPTION_RAW)
		style->raw = true;
	else
		return false;
	return true;
}

/* What libsmartcols returns if there is no memory is NULL or negative. */
static void require(bool done)
{
	if (!done)
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
}

static void show_column(struct table *table, unsigned int i)
{
	const struct column *column = &table->columns[i];
	size_t n = scols_table_get_ncols(table->scols);
	struct libscols_column *shown;

	if (n == COLUMNS_MAX)
		return;
	shown = scols_table_new_column(table->scols, column->name, 0, column->flags);
	require(shown);
	scols_cell_set_color(scols_column_get_header(shown), term_colour(COLOUR_HEAD));
	table->shown[n] = i;
}

static void show_named(struct table *table, char *names)
{
	unsigned int i;
	char *name;

	while ((name = strsep(&names, ","))) {
		for (i = 0; i < table->width && strcasecmp(name, table->columns[i].name); i++)
			;
		if (i == table->width)
			die(STATUS_USAGE, "a table has no column %s; its first line has all", name);
		show_column(table, i);
	}
}

struct table *table_new(const struct column *columns, const struct table_style *style)
{
	struct table *table = calloc(1, sizeof(*table));
	unsigned int i, width = term_width();

	require(table && (table->scols = scols_new_table()));
	table->columns = columns;
	table->style = style;
	while (columns[table->width].name)
		table->width++;
	scols_table_set_termforce(table->scols, width ? SCOLS_TERMFORCE_ALWAYS :
				  SCOLS_TERMFORCE_NEVER);
	scols_table_set_termwidth(table->scols, width);
	scols_table_enable_colors(table->scols, *term_colour(COLOUR_HEAD));
	scols_table_enable_noheadings(table->scols, style->no_headings);
	scols_table_enable_raw(table->scols, style->raw);
	scols_table_set_column_separator(table->scols, style->raw ? " " : "  ");
	if (style->columns)
		show_named(table, strdupa(style->columns));
	for (i = 0; !style->columns && i < table->width; i++)
		if (!width || width >= columns[i].width)
			show_column(table, i);
	return table;
}

void table_cell(struct table *table, enum colour colour, const char *format, ...)
{
	unsigned int i, number = table->next++ % table->width;
	struct libscols_cell *cell;
	char text[CELL_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!number)
		require((table->line = scols_table_new_line(table->scols, NULL)));
	for (i = 0; i < scols_table_get_ncols(table->scols); i++) {
		if (table->shown[i] != number)
			continue;
		cell = scols_line_get_cell(table->line, i);
		require(!scols_cell_set_data(cell, text));
		if (*term_colour(colour))
			scols_cell_set_color(cell, term_colour(colour));
	}
}

void table_end(struct table *table, const char *nothing)
{
	if (!scols_table_is_empty(table->scols))
		scols_print_table(table->scols);
	else if (!table->style->no_headings && !table->style->raw)
		puts(nothing);
	scols_unref_table(table->scols);
	free(table);
}
