// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "number.h"
#include "table.h"

#define TOP_MAX		1000000u

struct table {
	const struct column *columns;
	const struct table_style *style;
	unsigned int width;		/* of @columns */
	unsigned int next;		/* cell of the row: one for each of @columns */
	unsigned int sort;		/* column by which it is sorted, or @width */
	double value;			/* of the next cell, or negative */
	unsigned int shown[COLUMNS_MAX];	/* those of @columns that @scols has */
	struct libscols_table *scols;
	struct libscols_line *line;
};

/* By what a row is sorted: the user data of its first cell, which table_end() frees */
struct key {
	double value;			/* negative: by the text */
	char text[];
};

static unsigned int top_of(const char *command, const char *word)
{
	uint32_t top;

	if (number_parse(word, 1, TOP_MAX, &top))
		return top;
	die(STATUS_USAGE, "%s: --top: a number from 1 to %u (got %s)", command, TOP_MAX, word);
}

bool table_option(struct table_style *style, const char *command, int option)
{
	if (option == OPTION_COLUMNS)
		style->columns = optarg;
	else if (option == OPTION_SORT)
		style->sort = optarg;
	else if (option == OPTION_TOP)
		style->top = top_of(command, optarg);
	else if (option == OPTION_NO_HEADINGS)
		style->no_headings = true;
	else if (option == OPTION_RAW)
		style->raw = true;
	else
		return false;
	return true;
}

static void check_name(const char *command, const char *option, const struct column *columns,
		       const char *name)
{
	char all[256] = "";
	size_t len = 0;

	for (; columns->name; columns++) {
		if (!strcasecmp(columns->name, name))
			return;
		len += snprintf(all + len, sizeof(all) - len, "%s%s", len ? ", " : "",
				columns->name);
	}
	die(STATUS_USAGE, "%s: %s: %s (got %s)", command, option, all, name);
}

void table_check(const struct table_style *style, const char *command,
		 const struct column *columns)
{
	char *names = style->columns ? strdupa(style->columns) : NULL, *name;

	while ((name = strsep(&names, ",")))
		check_name(command, "--columns", columns, name);
	if (style->sort)
		check_name(command, "--sort", columns, style->sort);
}

void table_refuse(const struct table_style *style, const char *command, const char *instead)
{
	if (style->columns || style->sort || style->top || style->raw)
		die(STATUS_USAGE, "%s: --columns, --sort, --top and --raw are for tables (got %s)",
		    command, instead);
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

static unsigned int column_of(const struct table *table, const char *name)
{
	unsigned int i;

	for (i = 0; i < table->width && strcasecmp(name, table->columns[i].name); i++)
		;
	return i;
}

static void show_named(struct table *table, char *names)
{
	char *name;

	while ((name = strsep(&names, ",")))
		show_column(table, column_of(table, name));
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
	table->sort = style->sort ? column_of(table, style->sort) : table->width;
	table->value = -1;
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

void table_value(struct table *table, double value)
{
	table->value = value;
}

static void sort_by(struct table *table, const char *text)
{
	struct key *key = malloc(sizeof(*key) + strlen(text) + 1);

	require(key);
	key->value = table->value;
	memcpy(key->text, text, strlen(text) + 1);
	require(!scols_cell_set_userdata(scols_line_get_cell(table->line, 0), key));
}

void table_cell(struct table *table, enum colour colour, const char *format, ...)
{
	unsigned int i, number = table->next++ % table->width;
	struct libscols_cell *cell;
	va_list args;
	char *text;

	va_start(args, format);
	require(vasprintf(&text, format, args) >= 0);
	va_end(args);
	if (!number)
		require((table->line = scols_table_new_line(table->scols, NULL)));
	if (number == table->sort)
		sort_by(table, text);
	table->value = -1;
	for (i = 0; i < scols_table_get_ncols(table->scols); i++) {
		if (table->shown[i] != number)
			continue;
		cell = scols_line_get_cell(table->line, i);
		require(!scols_cell_set_data(cell, text));
		if (*term_colour(colour))
			scols_cell_set_color(cell, term_colour(colour));
	}
	free(text);
}

/* Numbers from the largest one, then what has none, then texts in their order */
static int compare(struct libscols_cell *a, struct libscols_cell *b, void *data)
{
	const struct key *one = scols_cell_get_userdata(a), *other = scols_cell_get_userdata(b);

	if (one->value < 0 && other->value < 0)
		return strverscmp(one->text, other->text);
	return (one->value < other->value) - (one->value > other->value);
}

/* Sort, and leave only the top. */
static void arrange(struct table *table)
{
	struct libscols_iter *each = scols_new_iter(SCOLS_ITER_FORWARD);
	struct libscols_column *first = scols_table_get_column(table->scols, 0);
	struct libscols_line *line;
	unsigned int n = 0;

	require(each);
	if (table->style->sort) {
		scols_column_set_cmpfunc(first, compare, NULL);
		scols_sort_table(table->scols, first);
	}
	while (!scols_table_next_line(table->scols, each, &line)) {
		free(scols_cell_get_userdata(scols_line_get_cell(line, 0)));
		if (table->style->top && n++ >= table->style->top)
			scols_table_remove_line(table->scols, line);
	}
	scols_free_iter(each);
}

void table_end(struct table *table, const char *nothing)
{
	arrange(table);
	if (!scols_table_is_empty(table->scols))
		scols_print_table(table->scols);
	else if (!table->style->no_headings && !table->style->raw)
		puts(nothing);
	scols_unref_table(table->scols);
	free(table);
}
