// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The round trips of rpcrdma ping. */

#include <stdlib.h>
#include "ping.h"

bool ping_stats_init(struct ping_stats *stats, unsigned int room)
{
	stats->ns = calloc(room, sizeof(*stats->ns));
	stats->count = 0;
	stats->room = stats->ns ? room : 0;
	return stats->ns;
}

void ping_stats_free(struct ping_stats *stats)
{
	free(stats->ns);
	stats->ns = NULL;
	stats->count = 0;
	stats->room = 0;
}

void ping_stats_add(struct ping_stats *stats, uint64_t ns)
{
	if (stats->count < stats->room)
		stats->ns[stats->count++] = ns;
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

void ping_stats_sort(struct ping_stats *stats)
{
	if (stats->count)
		qsort(stats->ns, stats->count, sizeof(*stats->ns), compare);
}

uint64_t ping_stats_rank(const struct ping_stats *stats, unsigned int percent)
{
	/* Rounded up, and counted from one */
	uint64_t rank = ((uint64_t)stats->count * percent + 99) / 100;

	return stats->ns[rank ? rank - 1 : 0];
}
