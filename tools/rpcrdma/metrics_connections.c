// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Metrics that are sums over connections. What a connection has counted ends with it, so these
 * sums fall, and none of them is a counter.
 */

#include <errno.h>
#include <linux/rpcrdma.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "connection.h"
#include "histogram.h"
#include "metrics.h"
#include "rules.h"

/* Servers that a client tells apart */
#define SERVERS		64

#define SECOND		1e9	/* ns */

struct row {
	const struct attrs *connection;
	const char *role;
	const char *device;
	struct text peer;	/* address without port; empty if clients are not told apart */
};

/* Rows that follow each other */
struct group {
	struct row *rows;
	unsigned int count;
	uint64_t rpcs;
};

struct groups {
	unsigned int count;
	struct group *of;
};

/* Metrics whose samples are the numbers in a nest of the connection */
struct counts {
	struct metric metric;
	const char *label;	/* has the name of the number; NULL if there is only one */
	unsigned int first;	/* attribute */
	unsigned int last;
	unsigned int nests[2];	/* two are the directions */
};

static int compare_peers(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	return strcmp(one->peer.s, other->peer.s);
}

static int compare_labels(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	return strcmp(one->role, other->role) ?: compare_peers(a, b) ?:
	       strcmp(one->device, other->device);
}

/* Those with the most RPCs first */
static int compare_rpcs(const void *a, const void *b)
{
	const struct group *one = a, *other = b;

	return (one->rpcs < other->rpcs) - (one->rpcs > other->rpcs) ?:
	       compare_peers(one->rows, other->rows);
}

static void *allocate(unsigned int count, size_t size)
{
	void *array = calloc(count + 1, size);

	if (!array)
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
	return array;
}

/* Whoever called it frees @of. */
static struct groups groups_of(struct row *rows, unsigned int count,
			       int (*compare)(const void *, const void *))
{
	struct groups groups = { .of = allocate(count, sizeof(*groups.of)) };
	struct group *group = NULL;
	struct row *row;

	for (row = rows; row < rows + count; row++) {
		if (row == rows || compare(row - 1, row)) {
			group = &groups.of[groups.count++];
			group->rows = row;
		}
		group->count++;
		group->rpcs += connection_replies(row->connection);
	}
	return groups;
}

/* Make all peers but the first @limit one. */
static void limit_peers(struct row *rows, unsigned int count, unsigned int limit)
{
	struct groups peers = groups_of(rows, count, compare_peers);
	unsigned int i, j;

	qsort(peers.of, peers.count, sizeof(*peers.of), compare_rpcs);
	for (i = limit; i < peers.count; i++)
		for (j = 0; j < peers.of[i].count; j++)
			peers.of[i].rows[j].peer = fmt_print("%s", limit ? "other" : "");
	free(peers.of);
}

/* The connections of a role with their labels, in the order of these */
static unsigned int rows_of(struct row *rows, const struct objects *connections,
			    unsigned int role, unsigned int limit)
{
	unsigned int count = 0, i;

	for (i = 0; i < connections->count; i++) {
		const struct attrs *c = &connections->of[i];

		if (!connection_is(c, role))
			continue;
		rows[count++] = (struct row){
			.connection = c,
			.role = attr_word(c, RPCRDMA_A_CONNECTION_ROLE),
			.device = attr_string(c, RPCRDMA_A_CONNECTION_DEVICE),
			.peer = connection_address(c),
		};
	}
	qsort(rows, count, sizeof(*rows), compare_peers);
	limit_peers(rows, count, limit);
	qsort(rows, count, sizeof(*rows), compare_labels);
	return count;
}

static uint64_t one(const struct attrs *connection)
{
	return 1;
}

static uint64_t established(const struct attrs *connection)
{
	return connection_established(connection);
}

static void sample(FILE *out, const char *name, const struct group *group, const char *direction,
		   struct label more, uint64_t value)
{
	const struct label labels[] = {
		{ "role", group->rows->role },
		{ "device", group->rows->device },
		{ "peer", group->rows->peer.s },
		{ "direction", direction },
		more,
		{ }
	};

	metric_sample(out, name, labels, value);
}

static void print_number(FILE *out, const struct group *group, const struct number *number)
{
	const struct row *row;
	bool applies = false;
	uint64_t sum = 0;

	for (row = group->rows; row < group->rows + group->count; row++) {
		applies |= number->of || attr_has(row->connection, number->number);
		sum += number_of(number, row->connection);
	}
	if (applies)
		sample(out, number->metric.name, group, "", (struct label){ }, sum);
}

/* What does not apply to any connection of a group has no sample. */
static void print_numbers(FILE *out, const struct groups *groups)
{
	static const struct number numbers[] = {
		{ { "rpcrdma_connections", "gauge", NULL, "Connections." }, .of = one },
		{ { "rpcrdma_connections_established", "gauge", NULL,
		    "Connections on which Calls and Replies can travel." }, .of = established },
		{ { "rpcrdma_connections_rpcs", "gauge", NULL,
		    "RPCs that were answered on these connections." }, .of = connection_replies },
		{ { "rpcrdma_credits_granted", "gauge", NULL,
		    "Calls without a Reply that servers allow." },
		  RPCRDMA_A_CONNECTION_CREDITS_GRANTED },
		{ { "rpcrdma_credits_in_use", "gauge", NULL, "Calls without a Reply." },
		  RPCRDMA_A_CONNECTION_CREDITS_IN_USE },
		{ { "rpcrdma_credits_waiting", "gauge", NULL,
		    "RPCs of a client that wait for a slot." },
		  RPCRDMA_A_CONNECTION_CREDITS_WAITING },
		{ { "rpcrdma_registrations_in_use", "gauge", NULL,
		    "Registrations of a client that servers can access." },
		  RPCRDMA_A_CONNECTION_REGISTRATIONS_IN_USE },
		{ { "rpcrdma_memory_bytes", "gauge", "bytes",
		    "Memory that the module keeps allocated for connections." },
		  RPCRDMA_A_CONNECTION_MEMORY },
		{ }
	}, *number;
	unsigned int i;

	for (number = numbers; number->metric.name; number++) {
		metric_begin(out, &number->metric);
		for (i = 0; i < groups->count; i++)
			print_number(out, &groups->of[i], number);
	}
}

static void print_count(FILE *out, const struct group *group, const struct counts *counts,
			unsigned int nest, unsigned int number)
{
	const struct attr_rule *rule = &connection_rules.rules[nest];
	const char *name = rule->nested->rules[number].name;
	const char *end = strstr(name, "-octets") ?: strchr(name, '\0');
	struct text value = fmt_print("%.*s", (int)(end - name), name);
	const struct row *row;
	struct attrs attrs;
	bool applies = false;
	uint64_t sum = 0;

	for (row = group->rows; row < group->rows + group->count; row++) {
		attrs = attrs_nested(row->connection, nest);
		applies |= attr_has(&attrs, number);
		sum += attr_number(&attrs, number);
	}
	if (applies)
		sample(out, counts->metric.name, group, counts->nests[1] ? rule->name : "",
		       (struct label){ counts->label, value.s }, sum);
}

static void print_counts(FILE *out, const struct groups *groups)
{
	static const struct counts all[] = {
		{ { "rpcrdma_connections_messages", "gauge", NULL,
		    "Messages on these connections by form." }, "form",
		  RPCRDMA_A_TRAFFIC_INLINE, RPCRDMA_A_TRAFFIC_BACKWARD,
		  { RPCRDMA_A_CONNECTION_SENT, RPCRDMA_A_CONNECTION_RECEIVED } },
		{ { "rpcrdma_connections_traffic_bytes", "gauge", "bytes",
		    "RPC messages that travelled inline, and what RDMA Reads and Writes placed." },
		  "path", RPCRDMA_A_TRAFFIC_INLINE_OCTETS, RPCRDMA_A_TRAFFIC_PLACED_OCTETS,
		  { RPCRDMA_A_CONNECTION_SENT, RPCRDMA_A_CONNECTION_RECEIVED } },
		{ { "rpcrdma_connections_copied_bytes", "gauge", "bytes",
		    "What the transport copied by CPU; inline traffic has it too." }, NULL,
		  RPCRDMA_A_TRAFFIC_COPIED_OCTETS, RPCRDMA_A_TRAFFIC_COPIED_OCTETS,
		  { RPCRDMA_A_CONNECTION_SENT, RPCRDMA_A_CONNECTION_RECEIVED } },
		{ { "rpcrdma_connections_waits", "gauge", NULL,
		    "RPCs on these connections that had to wait, by what they waited for." },
		  "cause", RPCRDMA_A_WAITS_CREDIT, RPCRDMA_A_WAITS_MAX,
		  { RPCRDMA_A_CONNECTION_WAITS } },
		{ { "rpcrdma_connections_errors", "gauge", NULL,
		    "What went wrong on these connections." }, "kind",
		  RPCRDMA_A_ERRORS_BAD_HEADER, RPCRDMA_A_ERRORS_MAX,
		  { RPCRDMA_A_CONNECTION_ERRORS } },
		{ }
	}, *counts;
	unsigned int i, nest, number;

	for (counts = all; counts->metric.name; counts++) {
		metric_begin(out, &counts->metric);
		for (i = 0; i < groups->count; i++)
			for (nest = 0; nest < 2 && counts->nests[nest]; nest++)
				for (number = counts->first; number <= counts->last; number++)
					print_count(out, &groups->of[i], counts,
						    counts->nests[nest], number);
	}
}

static struct histogram latencies(const struct group *group)
{
	struct histogram sum = { };
	unsigned int i;

	for (i = 0; i < group->count; i++)
		histogram_add(&sum, group->rows[i].connection);
	return sum;
}

/* The text format has no name for a histogram that falls, nor has the kernel a sum of times. */
static void print_latency(FILE *out, const struct groups *groups)
{
	static const struct metric metric = {
		"rpcrdma_connections_latency_seconds", "histogram", "seconds",
		"Time from Call to Reply on these connections; a server takes that of one in 8."
	};
	struct histogram histogram;
	uint64_t count;
	unsigned int i, j;

	metric_begin(out, &metric);
	for (i = 0; i < groups->count; i++) {
		histogram = latencies(&groups->of[i]);
		for (j = 0, count = 0; j < histogram.buckets; j++) {
			struct text le = j + 1 == histogram.buckets ? fmt_print("+Inf") :
					 fmt_print("%.10g", histogram_from(j + 1) / SECOND);

			count += histogram.of[j];
			sample(out, "rpcrdma_connections_latency_seconds_bucket",
			       &groups->of[i], "", (struct label){ "le", le.s }, count);
		}
		if (histogram.buckets)
			sample(out, "rpcrdma_connections_latency_seconds_count",
			       &groups->of[i], "", (struct label){ }, count);
	}
}

void metrics_of_connections(FILE *out, const struct objects *connections, unsigned int peers)
{
	struct row *rows = allocate(connections->count, sizeof(*rows));
	struct groups groups;
	unsigned int count;

	count = rows_of(rows, connections, RPCRDMA_CONNECTION_ROLE_CLIENT, SERVERS);
	count += rows_of(rows + count, connections, RPCRDMA_CONNECTION_ROLE_SERVER, peers);
	groups = groups_of(rows, count, compare_labels);
	print_numbers(out, &groups);
	print_counts(out, &groups);
	print_latency(out, &groups);
	free(groups.of);
	free(rows);
}
