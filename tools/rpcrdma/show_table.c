// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <linux/rpcrdma.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include "connection.h"
#include "fmt.h"
#include "histogram.h"
#include "show.h"
#include "users.h"
#include "xprt_switch.h"

/* The users of connections, in a cell */
struct users {
	char s[128];
	int len;	/* of all of them, which may not fit */
};

/* Cells */

static void string(struct table *table, const struct attrs *attrs, unsigned int number)
{
	table_cell(table, COLOUR_NONE, "%s",
		   attr_has(attrs, number) ? attr_string(attrs, number) : "-");
}

static void word(struct table *table, const struct attrs *attrs, unsigned int number, uint64_t good)
{
	table_cell(table, attr_number(attrs, number) == good ? COLOUR_GOOD : COLOUR_WARN, "%s",
		   attr_has(attrs, number) ? attr_word(attrs, number) : "-");
}

static void count(struct table *table, const struct attrs *attrs, unsigned int number)
{
	table_value(table, attr_number(attrs, number));
	table_cell(table, COLOUR_NONE, "%s", fmt_count(attr_number(attrs, number)).s);
}

/* A count that should be zero */
static void fault(struct table *table, uint64_t count)
{
	table_value(table, count);
	table_cell(table, count ? COLOUR_BAD : COLOUR_NONE, "%s", fmt_count(count).s);
}

static void size(struct table *table, uint64_t octets)
{
	table_value(table, octets);
	table_cell(table, COLOUR_NONE, "%s", fmt_size(octets).s);
}

static void age(struct table *table, const struct attrs *attrs, unsigned int number)
{
	if (attr_has(attrs, number))
		table_value(table, attr_number(attrs, number));
	table_cell(table, COLOUR_NONE, "%s", age_of(attrs, number).s);
}

/* Connections. What differs among those of a row is "-", or it is summed up. */

const struct column client_columns[] = {
	{ "ID", SCOLS_FL_RIGHT },
	{ "PEER", SCOLS_FL_TRUNC },
	{ "DEVICE" },
	{ "STATE" },
	{ "SINCE", SCOLS_FL_RIGHT },
	{ "CREDITS", SCOLS_FL_RIGHT },
	{ "ERRORS", SCOLS_FL_RIGHT },
	{ "SENT", SCOLS_FL_RIGHT, 120 },
	{ "RECEIVED", SCOLS_FL_RIGHT, 120 },
	{ "P99", SCOLS_FL_RIGHT, 140 },
	{ "INLINE", SCOLS_FL_RIGHT, 140 },
	{ "V", SCOLS_FL_RIGHT, 140 },
	{ "SWITCH", SCOLS_FL_RIGHT, 140 },
	{ "MOUNTS", SCOLS_FL_TRUNC, 100 },
	{ }
};

const struct column server_columns[] = {
	{ "ID", SCOLS_FL_RIGHT },
	{ "PEER", SCOLS_FL_TRUNC },
	{ "DEVICE" },
	{ "STATE" },
	{ "SINCE", SCOLS_FL_RIGHT },
	{ "CREDITS", SCOLS_FL_RIGHT },
	{ "ERRORS", SCOLS_FL_RIGHT },
	{ "SENT", SCOLS_FL_RIGHT, 120 },
	{ "RECEIVED", SCOLS_FL_RIGHT, 120 },
	{ "P99", SCOLS_FL_RIGHT, 140 },
	{ "INLINE", SCOLS_FL_RIGHT, 140 },
	{ "V", SCOLS_FL_RIGHT, 140 },
	{ "SWITCH", SCOLS_FL_RIGHT, 140 },
	{ "CLIENT", SCOLS_FL_TRUNC, 100 },
	{ }
};

static uint64_t sum(const struct connections *cs, unsigned int number)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < cs->count; i++)
		sum += attr_number(cs->of[i], number);
	return sum;
}

/* A text that all have */
static struct text common(const struct connections *cs, struct text (*text)(const struct attrs *c))
{
	struct text first = text(cs->of[0]);
	unsigned int i;

	for (i = 1; i < cs->count; i++)
		if (strcmp(text(cs->of[i]).s, first.s))
			return fmt_print("-");
	return first;
}

static void id(struct table *table, const struct connections *cs)
{
	bool several = cs->count > 1;
	unsigned int number = several ? cs->count : attr_number(cs->of[0], RPCRDMA_A_CONNECTION_ID);

	table_value(table, number);
	table_cell(table, COLOUR_NONE, several ? "(%u)" : "%u", number);
}

static void peer(struct table *table, const struct connections *cs)
{
	if (cs->count > 1)
		table_cell(table, COLOUR_NONE, "%s", connection_address(cs->of[0]).s);
	else
		string(table, cs->of[0], RPCRDMA_A_CONNECTION_PEER);
}

static void state(struct table *table, const struct connections *cs)
{
	uint64_t first = attr_number(cs->of[0], RPCRDMA_A_CONNECTION_STATE), state;
	unsigned int i, established = 0;
	bool mixed = false;

	for (i = 0; i < cs->count; i++) {
		state = attr_number(cs->of[i], RPCRDMA_A_CONNECTION_STATE);
		established += state == RPCRDMA_STATE_ESTABLISHED;
		mixed |= state != first;
	}
	if (mixed)
		table_cell(table, COLOUR_WARN, "%u established", established);
	else
		word(table, cs->of[0], RPCRDMA_A_CONNECTION_STATE, RPCRDMA_STATE_ESTABLISHED);
}

/* Of the one that changed last */
static void since(struct table *table, const struct connections *cs)
{
	const struct attrs *last = cs->of[0];
	unsigned int i;

	for (i = 1; i < cs->count; i++)
		if (attr_number(cs->of[i], RPCRDMA_A_CONNECTION_STATE_AGE) <
		    attr_number(last, RPCRDMA_A_CONNECTION_STATE_AGE))
			last = cs->of[i];
	age(table, last, RPCRDMA_A_CONNECTION_STATE_AGE);
}

static void credits(struct table *table, const struct connections *cs)
{
	uint64_t in_use = sum(cs, RPCRDMA_A_CONNECTION_CREDITS_IN_USE);
	bool short_of = sum(cs, RPCRDMA_A_CONNECTION_CREDITS_WAITING);

	table_value(table, in_use);
	table_cell(table, short_of ? COLOUR_WARN : COLOUR_NONE, "%s/%s", fmt_count(in_use).s,
		   fmt_count(sum(cs, RPCRDMA_A_CONNECTION_CREDITS_GRANTED)).s);
}

static void errors_and_octets(struct table *table, const struct connections *cs)
{
	uint64_t errors = 0, sent = 0, received = 0;
	unsigned int i;

	for (i = 0; i < cs->count; i++) {
		errors += connection_sum(cs->of[i], RPCRDMA_A_CONNECTION_ERRORS);
		sent += connection_octets(cs->of[i], RPCRDMA_A_CONNECTION_SENT);
		received += connection_octets(cs->of[i], RPCRDMA_A_CONNECTION_RECEIVED);
	}
	fault(table, errors);
	size(table, sent);
	size(table, received);
}

static void latency(struct table *table, const struct connections *cs)
{
	struct histogram histogram = histogram_get(cs->of[0]), other;
	unsigned int i, n;
	uint64_t p99;

	for (i = 1; i < cs->count; i++) {
		other = histogram_get(cs->of[i]);
		for (n = 0; n < other.buckets; n++)
			histogram.of[n] += other.of[n];
		if (histogram.buckets < other.buckets)
			histogram.buckets = other.buckets;
	}
	p99 = histogram_percentile(&histogram, 99);
	if (histogram_count(&histogram))
		table_value(table, p99);
	table_cell(table, COLOUR_NONE, "%s", histogram_count(&histogram) ? fmt_ns(p99).s : "-");
}

static struct text thresholds(const struct attrs *c)
{
	if (!attr_has(c, RPCRDMA_A_CONNECTION_CALL_THRESHOLD))
		return fmt_print("-");
	return fmt_print("%s/%s", fmt_size(attr_number(c, RPCRDMA_A_CONNECTION_CALL_THRESHOLD)).s,
			 fmt_size(attr_number(c, RPCRDMA_A_CONNECTION_REPLY_THRESHOLD)).s);
}

static struct text version(const struct attrs *c)
{
	return fmt_print("%u", (unsigned int)attr_number(c, RPCRDMA_A_CONNECTION_VERSION));
}

static struct text xprt_switch(const struct attrs *c)
{
	int number = xprt_switch_of(c);

	return number < 0 ? fmt_print("-") : fmt_print("%d", number);
}

static void join(const char *name, void *data)
{
	struct users *users = data;
	int room = sizeof(users->s) - users->len;

	if (room > 0)
		users->len += snprintf(users->s + users->len, room, "%s%s", users->len ? "," : "",
				       name);
}

void connection_row(struct table *table, const struct connections *cs)
{
	struct users users = { };

	id(table, cs);
	peer(table, cs);
	table_cell(table, COLOUR_NONE, "%s", common(cs, connection_device).s);
	state(table, cs);
	since(table, cs);
	credits(table, cs);
	errors_and_octets(table, cs);
	latency(table, cs);
	table_cell(table, COLOUR_NONE, "%s", common(cs, thresholds).s);
	table_cell(table, COLOUR_NONE, "%s", common(cs, version).s);
	table_cell(table, COLOUR_NONE, "%s", common(cs, xprt_switch).s);
	users_of(cs, join, &users);
	table_cell(table, COLOUR_NONE, "%s", *users.s ? users.s : "-");
}

/* Listeners */

const struct column listener_columns[] = {
	{ "LOCAL", SCOLS_FL_TRUNC },
	{ "STATE" },
	{ "SINCE", SCOLS_FL_RIGHT },
	{ "ACCEPTED", SCOLS_FL_RIGHT },
	{ "REFUSED", SCOLS_FL_RIGHT },
	{ "WAITING", SCOLS_FL_RIGHT },
	{ }
};

void listener_row(struct table *table, const struct attrs *l)
{
	string(table, l, RPCRDMA_A_LISTENER_LOCAL);
	word(table, l, RPCRDMA_A_LISTENER_STATE, RPCRDMA_LISTENER_STATE_LISTENING);
	age(table, l, RPCRDMA_A_LISTENER_STATE_AGE);
	count(table, l, RPCRDMA_A_LISTENER_ACCEPTED);
	fault(table, attr_number(l, RPCRDMA_A_LISTENER_REFUSED));
	count(table, l, RPCRDMA_A_LISTENER_WAITING);
}

/* Devices */

const struct column device_columns[] = {
	{ "DEVICE" },
	{ "STATE" },
	{ "USABLE" },
	{ "PROTOCOL" },
	{ "NETDEV" },
	{ "PAGES", SCOLS_FL_RIGHT },
	{ }
};

static void device_row(struct table *table, const struct attrs *device, const struct attrs *port)
{
	unsigned int netdev = attr_number(port, RPCRDMA_A_PORT_IFINDEX);
	char name[IF_NAMESIZE];

	table_cell(table, COLOUR_NONE, "%.40s/%u", attr_string(device, RPCRDMA_A_DEVICE_NAME),
		   (unsigned int)attr_number(port, RPCRDMA_A_PORT_NUMBER));
	word(table, port, RPCRDMA_A_PORT_STATE, RPCRDMA_PORT_STATE_ACTIVE);
	word(table, device, RPCRDMA_A_DEVICE_USABILITY, RPCRDMA_USABILITY_USABLE);
	table_cell(table, COLOUR_NONE, "%s", attr_has(port, RPCRDMA_A_PORT_PROTOCOL) ?
		   attr_word(port, RPCRDMA_A_PORT_PROTOCOL) : "-");
	table_cell(table, COLOUR_NONE, "%s", if_indextoname(netdev, name) ?: "-");
	count(table, device, RPCRDMA_A_DEVICE_MR_PAGES);
}

void device_rows(struct table *table, const struct attrs *device)
{
	const struct nlattr *last = NULL;
	struct attrs port;

	while (attrs_each(device, RPCRDMA_A_DEVICE_PORT, &last, &port))
		device_row(table, device, &port);
}
