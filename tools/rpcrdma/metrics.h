/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Text for Prometheus: its metrics, and those of connections and peers */
#ifndef RPCRDMA_METRICS_H
#define RPCRDMA_METRICS_H

#include <stdint.h>
#include <stdio.h>
#include "objects.h"

/**
 * struct metric - what all samples of a name have in common
 * @name: with its unit, and _total if it is a counter
 * @type: counter, gauge or histogram
 * @unit: NULL if it is a plain number
 * @help: one line
 *
 * Constant data.
 */
struct metric {
	const char *name;
	const char *type;
	const char *unit;
	const char *help;
};

/* Clients of a server that can be told apart, as many as the kernel tells */
#define PEERS_MAX	128

/* Arrays of them end with one that has no name. */
struct label {
	const char *name;
	const char *value;	/* printable; the label is left out if it is empty */
};

/* A number of an object. Arrays of them end with one that has no name. */
struct number {
	struct metric metric;
	unsigned int number;	/* of the attribute */
	uint64_t (*of)(const struct attrs *object);	/* if it is no attribute */
};

/**
 * number_of - the number of an object
 */
static inline uint64_t number_of(const struct number *number, const struct attrs *object)
{
	return number->of ? number->of(object) : attr_number(object, number->number);
}

/**
 * metric_begin - print what comes before the samples of a metric
 */
void metric_begin(FILE *out, const struct metric *metric);

/**
 * metric_sample - print one sample
 * @name: of the metric, or with the suffix of a histogram's part
 */
void metric_sample(FILE *out, const char *name, const struct label *labels, uint64_t value);

/**
 * metrics_of_connections - print sums over connections, and what peers have counted
 *
 * Each is that of a role and, of a client, a peer; sums also of a device. There are never more than
 * devices and the limits of peers allow, however many connections there are.
 *
 * @peers: of the kernel, in its order, so that those told apart stay the same
 * @clients: how many clients of a server are told apart, those that came first
 */
void metrics_of_connections(FILE *out, const struct objects *connections,
			    const struct objects *peers, unsigned int clients);

#endif
