// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <linux/rpcrdma.h>
#include <string.h>
#include "connection.h"
#include "rules.h"
#include "sample.h"
#include "sock.h"

#define SECOND	1e9	/* ns */
/* Of a connection that began just now */
#define SECONDS_MIN	0.001

struct sample sample_take(struct nl *nl)
{
	struct sample sample;

	sample.connections = objects_get(nl, RPCRDMA_CMD_CONNECTION_GET, &connection_rules);
	sample.time = sock_now();
	return sample;
}

void sample_free(struct sample *sample)
{
	objects_free(&sample->connections);
}

/* All that a connection has counted since its beginning */
static struct rates total(const struct attrs *c)
{
	return (struct rates){
		.connection = c,
		.rpcs = connection_replies(c),
		.sent = connection_octets(c, RPCRDMA_A_CONNECTION_SENT),
		.received = connection_octets(c, RPCRDMA_A_CONNECTION_RECEIVED),
		.waits = connection_sum(c, RPCRDMA_A_CONNECTION_WAITS),
		.errors = connection_sum(c, RPCRDMA_A_CONNECTION_ERRORS),
		.latency = histogram_get(c),
	};
}

static const struct attrs *find(const struct sample *sample, const struct attrs *c)
{
	uint64_t id = attr_number(c, RPCRDMA_A_CONNECTION_ID);
	const struct attrs *other;
	unsigned int i;

	for (i = 0; i < sample->connections.count; i++) {
		other = &sample->connections.of[i];
		if (attr_number(other, RPCRDMA_A_CONNECTION_ID) == id)
			return other;
	}
	return NULL;
}

/* Whether all counters may have grown from those to these. */
static bool grew(const struct rates *is, const struct rates *was)
{
	unsigned int i;

	if (is->latency.buckets != was->latency.buckets)
		return false;
	for (i = 0; i < is->latency.buckets; i++)
		if (is->latency.of[i] < was->latency.of[i])
			return false;
	return is->sent >= was->sent && is->received >= was->received &&
	       is->waits >= was->waits && is->errors >= was->errors && is->rpcs >= was->rpcs;
}

static bool same_peer(const struct attrs *is, const struct attrs *was)
{
	return !strcmp(attr_string(is, RPCRDMA_A_CONNECTION_PEER),
		       attr_string(was, RPCRDMA_A_CONNECTION_PEER)) &&
	       attr_number(is, RPCRDMA_A_CONNECTION_ROLE) ==
	       attr_number(was, RPCRDMA_A_CONNECTION_ROLE);
}

/*
 * How long a connection has counted. The age is that of its state, so it is known
 * only while it is established, in which it counts most.
 */
static double age(const struct attrs *c)
{
	double seconds = attr_number(c, RPCRDMA_A_CONNECTION_STATE_AGE) / 1e3;

	return seconds > SECONDS_MIN ? seconds : SECONDS_MIN;
}

struct rates rates_between(const struct sample *is, unsigned int i, const struct sample *was)
{
	struct rates rates = total(&is->connections.of[i]), before;
	const struct attrs *earlier = was ? find(was, rates.connection) : NULL;
	double interval = was ? (is->time - was->time) / SECOND : 0;

	rates.seconds = age(rates.connection);
	if (was && rates.seconds > interval && interval > 0)
		rates.seconds = interval;
	if (!earlier || !same_peer(rates.connection, earlier))
		return rates;
	before = total(earlier);
	if (!grew(&rates, &before))
		return rates;
	if (interval > 0)
		rates.seconds = interval;
	rates.rpcs -= before.rpcs;
	rates.sent -= before.sent;
	rates.received -= before.received;
	rates.waits -= before.waits;
	rates.errors -= before.errors;
	rates.latency = histogram_since(&rates.latency, &before.latency);
	return rates;
}

json_t *rates_json(const struct rates *rates)
{
	const struct attrs *c = rates->connection;
	double seconds = rates->seconds;
	json_t *object = json_pack("{s:I, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f}",
				   "id", (json_int_t)attr_number(c, RPCRDMA_A_CONNECTION_ID),
				   "role", attr_word(c, RPCRDMA_A_CONNECTION_ROLE),
				   "peer", attr_string(c, RPCRDMA_A_CONNECTION_PEER),
				   "seconds", seconds, "rpcs", rates->rpcs / seconds,
				   "sent-octets", rates->sent / seconds,
				   "received-octets", rates->received / seconds,
				   "waits", rates->waits / seconds,
				   "errors", rates->errors / seconds);

	if (histogram_count(&rates->latency)) {
		json_add(object, "p50-ns", json_integer(histogram_percentile(&rates->latency, 50)));
		json_add(object, "p99-ns", json_integer(histogram_percentile(&rates->latency, 99)));
	}
	return object;
}
