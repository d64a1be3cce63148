/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Latencies as the kernel counts them: bucket 0 has those below one microsecond,
 * bucket N those from 2^(N-1) up to 2^N microseconds, and the last bucket also
 * all that took longer.
 */
#ifndef RPCRDMA_HISTOGRAM_H
#define RPCRDMA_HISTOGRAM_H

#include <stdbool.h>
#include "attrs.h"

#define BUCKETS_MAX	64

struct histogram {
	unsigned int buckets;
	uint64_t of[BUCKETS_MAX];
};

/**
 * histogram_get - the histogram of a connection, which may be empty
 */
struct histogram histogram_get(const struct attrs *connection);

/**
 * histogram_add - add that of a connection
 */
void histogram_add(struct histogram *sum, const struct attrs *connection);

/**
 * histogram_since - what came to a histogram since an earlier one
 * @was: taken before @is; no bucket of it has more
 */
struct histogram histogram_since(const struct histogram *is, const struct histogram *was);

/**
 * histogram_count - how many latencies are in it
 */
uint64_t histogram_count(const struct histogram *histogram);

/**
 * histogram_from - the shortest latency of a bucket, in ns
 */
uint64_t histogram_from(unsigned int bucket);

/**
 * histogram_percentile - the latency that some percent do not exceed
 * @percent: above 0, up to 100
 *
 * The bucket is exact. In it, latencies are taken as spread evenly, so the
 * result is wrong by a factor of two at most, except in the last bucket, of
 * which it is the lower end.
 *
 * Return: ns, 0 if the histogram is empty.
 */
uint64_t histogram_percentile(const struct histogram *histogram, double percent);

#endif
