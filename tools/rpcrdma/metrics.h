/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Text for Prometheus: its metrics, and those that are sums over connections */
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
 * metrics_of_connections - print the sums over connections
 *
 * A sum is that of a role, a device and, of a client, a peer. There are never more sums than
 * devices and the limits of peers allow, however many connections there are.
 *
 * @peers: how many clients of a server are told apart, those with the most RPCs
 */
void metrics_of_connections(FILE *out, const struct objects *connections, unsigned int peers);

#endif
