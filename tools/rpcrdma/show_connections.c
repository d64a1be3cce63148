// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The tables of connections: a row for each, or for each peer */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "show.h"

#define MANY	32	/* connections that are more than this get a row for each peer */

static int compare(const void *a, const void *b)
{
	const struct attrs *const *one = a, *const *other = b;

	return strverscmp(connection_address(*one).s, connection_address(*other).s);
}

/* How many of the first ones have the same address */
static unsigned int of_peer(const struct connections *sorted)
{
	unsigned int n = 1;

	while (n < sorted->count && !compare(&sorted->of[0], &sorted->of[n]))
		n++;
	return n;
}

static struct connections after(const struct connections *these, unsigned int n)
{
	return (struct connections){ these->count - n, these->of + n };
}

static unsigned int count_peers(struct connections sorted)
{
	unsigned int peers = 0;

	for (; sorted.count; sorted = after(&sorted, of_peer(&sorted)))
		peers++;
	return peers;
}

static void print_rows(struct table *table, struct connections these, bool by_peer)
{
	struct connections row;

	for (; these.count; these = after(&these, row.count)) {
		row = these;
		row.count = by_peer ? of_peer(&these) : 1;
		connection_row(table, &row);
	}
}

static void print_total(const struct connections *all, unsigned int peers)
{
	const struct totals totals = totals_of(all);

	printf("total: %u, %u peer%s, %u established, %s errors, %s sent, %s received\n",
	       all->count, peers, peers == 1 ? "" : "s", totals.established,
	       fmt_count(totals.errors).s, fmt_size(totals.sent).s, fmt_size(totals.received).s);
}

void connections_print(const struct connections *all, const struct column *columns,
		       const struct table_style *style, bool each, const char *nothing)
{
	struct table *table = table_new(columns, style);
	struct connections sorted = { all->count };
	unsigned int peers;
	bool by_peer;

	sorted.of = calloc(all->count + 1, sizeof(*sorted.of));
	if (!sorted.of)
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
	memcpy(sorted.of, all->of, all->count * sizeof(*sorted.of));
	qsort(sorted.of, sorted.count, sizeof(*sorted.of), compare);
	peers = count_peers(sorted);
	by_peer = !each && !style->raw && all->count > MANY && peers < all->count;
	print_rows(table, by_peer ? sorted : *all, by_peer);
	table_end(table, nothing);
	if (all->count > 1 && !style->no_headings && !style->raw)
		print_total(all, peers);
	free(sorted.of);
}
