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

struct sample sample_take(struct nl *nl, uint8_t cmd)
{
	struct sample sample;

	sample.objects = objects_get(nl, cmd, &connection_rules);
	sample.time = sock_now();
	return sample;
}

void sample_free(struct sample *sample)
{
	objects_free(&sample->objects);
}

/* All that was counted since the beginning */
static struct rates total(const struct attrs *c)
{
	return (struct rates){
		.object = c,
		.rpcs = connection_replies(c),
		.sent = connection_octets(c, RPCRDMA_A_CONNECTION_SENT),
		.received = connection_octets(c, RPCRDMA_A_CONNECTION_RECEIVED),
		.waits = connection_sum(c, RPCRDMA_A_CONNECTION_WAITS),
		.errors = connection_sum(c, RPCRDMA_A_CONNECTION_ERRORS),
		.latency = histogram_get(c),
	};
}

/* A peer has no number. */
static bool same(const struct attrs *is, const struct attrs *was)
{
	return attr_number(is, RPCRDMA_A_CONNECTION_ID) ==
	       attr_number(was, RPCRDMA_A_CONNECTION_ID) &&
	       attr_number(is, RPCRDMA_A_CONNECTION_ROLE) ==
	       attr_number(was, RPCRDMA_A_CONNECTION_ROLE) &&
	       !strcmp(attr_string(is, RPCRDMA_A_CONNECTION_PEER),
		       attr_string(was, RPCRDMA_A_CONNECTION_PEER));
}

static const struct attrs *find(const struct sample *sample, const struct attrs *c)
{
	unsigned int i;

	for (i = 0; i < sample->objects.count; i++)
		if (same(&sample->objects.of[i], c))
			return &sample->objects.of[i];
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

/*
 * How long it has counted. The age of a connection is that of its state, so it is known
 * only while it is established, in which it counts most.
 */
static double age(const struct attrs *c)
{
	double seconds = attr_number(c, RPCRDMA_A_CONNECTION_STATE_AGE) / 1e3;

	return seconds > SECONDS_MIN ? seconds : SECONDS_MIN;
}

struct rates rates_between(const struct sample *is, unsigned int i, const struct sample *was)
{
	struct rates rates = total(&is->objects.of[i]), before;
	const struct attrs *earlier = was ? find(was, rates.object) : NULL;
	double interval = was ? (is->time - was->time) / SECOND : 0;

	rates.seconds = age(rates.object);
	if (was && rates.seconds > interval && interval > 0)
		rates.seconds = interval;
	if (!earlier)
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
	const struct attrs *c = rates->object;
	bool peer = !attr_has(c, RPCRDMA_A_CONNECTION_ID);
	double seconds = rates->seconds;
	json_t *object = json_pack("{s:I, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f}",
				   peer ? "connects" : "id", (json_int_t)
				   attr_number(c, peer ? RPCRDMA_A_CONNECTION_CONNECTS :
							 RPCRDMA_A_CONNECTION_ID),
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
