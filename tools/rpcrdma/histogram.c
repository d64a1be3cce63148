// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <linux/rpcrdma.h>
#include "fmt.h"
#include "histogram.h"

#define MICROSECOND	1000.0	/* ns */

struct histogram histogram_get(const struct attrs *connection)
{
	struct histogram histogram = { };

	histogram.buckets = attr_series(connection, RPCRDMA_A_CONNECTION_LATENCY,
					histogram.of, BUCKETS_MAX);
	return histogram;
}

void histogram_add(struct histogram *sum, const struct attrs *connection)
{
	struct histogram more = histogram_get(connection);
	unsigned int i;

	for (i = 0; i < more.buckets; i++)
		sum->of[i] += more.of[i];
	if (sum->buckets < more.buckets)
		sum->buckets = more.buckets;
}

struct histogram histogram_since(const struct histogram *is, const struct histogram *was)
{
	struct histogram new = { .buckets = is->buckets };
	unsigned int i;

	for (i = 0; i < is->buckets; i++)
		new.of[i] = is->of[i] - was->of[i];
	return new;
}

uint64_t histogram_count(const struct histogram *histogram)
{
	uint64_t count = 0;
	unsigned int i;

	for (i = 0; i < histogram->buckets; i++)
		count += histogram->of[i];
	return count;
}

/* In a double, because a bucket that nobody has would not fit 64 bits of ns. */
static double from(unsigned int bucket)
{
	return bucket ? MICROSECOND * (1ull << (bucket - 1)) : 0;
}

uint64_t histogram_from(unsigned int bucket)
{
	return fmt_whole(from(bucket));
}

uint64_t histogram_percentile(const struct histogram *histogram, double percent)
{
	double left = histogram_count(histogram) * (percent / 100), part, ns;
	unsigned int i, last = histogram->buckets;

	for (i = 0; i < histogram->buckets; i++) {
		if (!histogram->of[i])
			continue;
		last = i;
		if (histogram->of[i] >= left)
			break;
		left -= histogram->of[i];
	}
	if (last == histogram->buckets)
		return 0;
	if (last == histogram->buckets - 1)
		return histogram_from(last);
	part = left / histogram->of[last];
	ns = from(last) + (part < 1 ? part : 1) * (from(last + 1) - from(last));
	return fmt_whole(ns);
}
