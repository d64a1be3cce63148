// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Metrics that are sums over connections, and the counters of peers. What a connection has counted
 * ends with it, what its peer has goes on: so only these are counters.
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
#define ROLES		(RPCRDMA_CONNECTION_ROLE_SERVER + 1)

/* A connection or a peer */
struct row {
	const struct attrs *object;
	const char *role;
	const char *device;	/* empty for a peer */
	struct text peer;	/* address without port; empty if clients are not told apart */
};

/* Rows that follow each other, with the same labels */
struct group {
	struct row *rows;
	unsigned int count;
};

struct groups {
	unsigned int count;
	struct group *of;
};

/* Peers of a role that are told apart */
struct names {
	unsigned int count;
	unsigned int limit;
	struct text of[PEERS_MAX];
};

/* Metrics whose samples are the numbers in a nest */
struct counts {
	struct metric metric;
	const char *label;	/* has the name of the number; NULL if there is only one */
	unsigned int first;	/* attribute */
	unsigned int last;
	unsigned int nests[2];	/* two are the directions */
};

static int compare_labels(const void *a, const void *b)
{
	const struct row *one = a, *other = b;

	return strcmp(one->role, other->role) ?: strcmp(one->peer.s, other->peer.s) ?:
	       strcmp(one->device, other->device);
}

static void *allocate(unsigned int count, size_t size)
{
	void *array = calloc(count + 1, size);

	if (!array)
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
	return array;
}

/* Whoever called it frees @of. */
static struct groups groups_of(struct row *rows, unsigned int count)
{
	struct groups groups = { .of = allocate(count, sizeof(*groups.of)) };
	struct group *group = NULL;
	struct row *row;

	qsort(rows, count, sizeof(*rows), compare_labels);
	for (row = rows; row < rows + count; row++) {
		if (row == rows || compare_labels(row - 1, row)) {
			group = &groups.of[groups.count++];
			group->rows = row;
		}
		group->count++;
	}
	return groups;
}

static bool is_named(const struct names *names, const char *address)
{
	unsigned int i;

	for (i = 0; i < names->count; i++)
		if (!strcmp(names->of[i].s, address))
			return true;
	return false;
}

/* Name the peers of a role that come first. */
static void name_peers(struct names *names, const struct objects *objects, unsigned int role)
{
	struct text address;
	unsigned int i;

	for (i = 0; i < objects->count && names->count < names->limit; i++) {
		address = connection_address(&objects->of[i]);
		if (connection_is(&objects->of[i], role) && *address.s &&
		    !is_named(names, address.s))
			names->of[names->count++] = address;
	}
}

/* The objects of a role with their labels */
static unsigned int rows_of(struct row *rows, const struct objects *objects, unsigned int role,
			    const struct names *names)
{
	unsigned int count = 0, i;

	for (i = 0; i < objects->count; i++) {
		const struct attrs *object = &objects->of[i];
		struct text address = connection_address(object);

		if (!connection_is(object, role) || peer_is_unused(object))
			continue;
		rows[count++] = (struct row){
			.object = object,
			.role = attr_word(object, RPCRDMA_A_CONNECTION_ROLE),
			.device = attr_string(object, RPCRDMA_A_CONNECTION_DEVICE),
			.peer = is_named(names, address.s) ? address :
				fmt_print("%s", names->limit ? "other" : ""),
		};
	}
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
		applies |= number->of || attr_has(row->object, number->number);
		sum += number_of(number, row->object);
	}
	if (applies)
		sample(out, number->metric.name, group, "", (struct label){ }, sum);
}

/* What does not apply to any object of a group has no sample. */
static void print_numbers(FILE *out, const struct groups *groups, const struct number *number)
{
	unsigned int i;

	for (; number->metric.name; number++) {
		metric_begin(out, &number->metric);
		for (i = 0; i < groups->count; i++)
			print_number(out, &groups->of[i], number);
	}
}

static void print_connections(FILE *out, const struct groups *groups)
{
	static const struct number numbers[] = {
		{ { "rpcrdma_connections", "gauge", NULL, "Connections." }, .of = one },
		{ { "rpcrdma_connections_established", "gauge", NULL,
		    "Connections on which Calls and Replies can travel." }, .of = established },
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
	};

	print_numbers(out, groups, numbers);
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
		attrs = attrs_nested(row->object, nest);
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
		{ { "rpcrdma_messages_total", "counter", NULL, "Messages by form." }, "form",
		  RPCRDMA_A_TRAFFIC_INLINE, RPCRDMA_A_TRAFFIC_BACKWARD,
		  { RPCRDMA_A_CONNECTION_SENT, RPCRDMA_A_CONNECTION_RECEIVED } },
		{ { "rpcrdma_traffic_bytes_total", "counter", "bytes",
		    "RPC messages that travelled inline, and what RDMA Reads and Writes placed." },
		  "path", RPCRDMA_A_TRAFFIC_INLINE_OCTETS, RPCRDMA_A_TRAFFIC_PLACED_OCTETS,
		  { RPCRDMA_A_CONNECTION_SENT, RPCRDMA_A_CONNECTION_RECEIVED } },
		{ { "rpcrdma_copied_bytes_total", "counter", "bytes",
		    "What the transport copied by CPU; inline traffic has it too." }, NULL,
		  RPCRDMA_A_TRAFFIC_COPIED_OCTETS, RPCRDMA_A_TRAFFIC_COPIED_OCTETS,
		  { RPCRDMA_A_CONNECTION_SENT, RPCRDMA_A_CONNECTION_RECEIVED } },
		{ { "rpcrdma_waits_total", "counter", NULL,
		    "RPCs that had to wait, by what they waited for." },
		  "cause", RPCRDMA_A_WAITS_CREDIT, RPCRDMA_A_WAITS_MAX,
		  { RPCRDMA_A_CONNECTION_WAITS } },
		{ { "rpcrdma_errors_total", "counter", NULL, "What went wrong." }, "kind",
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
		histogram_add(&sum, group->rows[i].object);
	return sum;
}

/* The kernel has no sum of times. */
static void print_latency(FILE *out, const struct groups *groups)
{
	static const struct metric metric = {
		"rpcrdma_latency_seconds", "histogram", "seconds",
		"Time from Call to Reply; a server takes that of one in 8."
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
			sample(out, "rpcrdma_latency_seconds_bucket",
			       &groups->of[i], "", (struct label){ "le", le.s }, count);
		}
		if (histogram.buckets)
			sample(out, "rpcrdma_latency_seconds_count",
			       &groups->of[i], "", (struct label){ }, count);
	}
}

static void print_peers(FILE *out, const struct groups *groups)
{
	static const struct number numbers[] = {
		{ { "rpcrdma_connects_total", "counter", NULL,
		    "Connections that were established." }, RPCRDMA_A_CONNECTION_CONNECTS },
		{ { "rpcrdma_rpcs_total", "counter", NULL, "RPCs that were answered." },
		  .of = connection_replies },
		{ }
	};

	print_numbers(out, groups, numbers);
	print_counts(out, groups);
	print_latency(out, groups);
}

static void print_all(FILE *out, const struct objects *objects, const struct names *names,
		      void (*print)(FILE *out, const struct groups *groups))
{
	struct row *rows = allocate(objects->count, sizeof(*rows));
	unsigned int count = 0, role;
	struct groups groups;

	for (role = 0; role < ROLES; role++)
		count += rows_of(rows + count, objects, role, &names[role]);
	groups = groups_of(rows, count);
	print(out, &groups);
	free(groups.of);
	free(rows);
}

/* Names come from @peers first, whose order stays, so that no counter gets another label. */
void metrics_of_connections(FILE *out, const struct objects *connections,
			    const struct objects *peers, unsigned int clients)
{
	struct names names[ROLES] = {
		[RPCRDMA_CONNECTION_ROLE_CLIENT].limit = SERVERS,
		[RPCRDMA_CONNECTION_ROLE_SERVER].limit = clients,
	};
	unsigned int role;

	for (role = 0; role < ROLES; role++) {
		name_peers(&names[role], peers, role);
		name_peers(&names[role], connections, role);
	}
	print_all(out, connections, names, print_connections);
	print_all(out, peers, names, print_peers);
}
