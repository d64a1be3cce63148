/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * All connections at one moment, or all peers, and what one did between two of them.
 * A connection that was not there before, or that is another one of the same
 * number, because the module was loaded again, began with all its counters at
 * zero. So its rates are those since its beginning. They are never negative.
 */
#ifndef RPCRDMA_SAMPLE_H
#define RPCRDMA_SAMPLE_H

#include "histogram.h"
#include "json.h"
#include "objects.h"

/* Whoever called sample_take() frees it by sample_free(). */
struct sample {
	uint64_t time;	/* of sock_now() */
	struct objects objects;
};

struct sample sample_take(struct nl *nl, uint8_t cmd);
void sample_free(struct sample *sample);

/**
 * struct rates - what a connection or a peer did in some time
 * @object: as it is at the end of the time; belongs to the sample
 * @seconds: the time, above 0
 * @rpcs: RPCs that were answered
 * @sent: octets
 * @received: octets
 * @waits: of RPCs
 * @errors: of all kinds
 * @latency: of the RPCs that were answered
 */
struct rates {
	const struct attrs *object;
	double seconds;
	uint64_t rpcs;
	uint64_t sent;
	uint64_t received;
	uint64_t waits;
	uint64_t errors;
	struct histogram latency;
};

/**
 * rates_between - what a connection or a peer did between two samples
 * @is: the later one
 * @i: number of the object in @is
 * @was: the earlier one, or NULL: since its beginning
 */
struct rates rates_between(const struct sample *is, unsigned int i, const struct sample *was);

/**
 * rates_json - the rates as an object, per second
 */
json_t *rates_json(const struct rates *rates);

#endif
