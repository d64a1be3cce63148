// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <errno.h>
#include <linux/rpcrdma.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "connection.h"
#include "fmt.h"
#include "histogram.h"
#include "show.h"
#include "users.h"
#include "xprt_switch.h"

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

static void number(struct table *table, uint64_t value)
{
	table_value(table, value);
	table_cell(table, COLOUR_NONE, "%s", fmt_count(value).s);
}

static void count(struct table *table, const struct attrs *attrs, unsigned int attr)
{
	number(table, attr_number(attrs, attr));
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

#define CONNECTION_COLUMNS(users) {			\
	{ "ID", SCOLS_FL_RIGHT },			\
	{ "PEER", SCOLS_FL_TRUNC },			\
	{ "DEVICE" },					\
	{ "STATE" },					\
	{ "SINCE", SCOLS_FL_RIGHT },			\
	{ "CREDITS", SCOLS_FL_RIGHT },			\
	{ "ERRORS", SCOLS_FL_RIGHT },			\
	{ "SENT", SCOLS_FL_RIGHT, 120 },		\
	{ "RECEIVED", SCOLS_FL_RIGHT, 120 },		\
	{ "P99", SCOLS_FL_RIGHT, 140 },			\
	{ "INLINE", SCOLS_FL_RIGHT, 140 },		\
	{ "V", SCOLS_FL_RIGHT, 140 },			\
	{ "SWITCH", SCOLS_FL_RIGHT, 140 },		\
	{ users, SCOLS_FL_TRUNC, 100 },			\
	{ }						\
}

const struct column client_columns[] = CONNECTION_COLUMNS("MOUNTS");
const struct column server_columns[] = CONNECTION_COLUMNS("CLIENT");

static uint64_t sum(const struct connections *cs, unsigned int number)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < cs->count; i++)
		sum += attr_number(cs->of[i], number);
	return sum;
}

/* A text that all have. @value: of the first one, see table_value() */
static void common(struct table *table, const struct connections *cs,
		   struct text (*text)(const struct attrs *c), double value)
{
	struct text first = text(cs->of[0]);
	unsigned int i;

	for (i = 1; i < cs->count && !strcmp(text(cs->of[i]).s, first.s); i++)
		;
	if (i == cs->count)
		table_value(table, value);
	table_cell(table, COLOUR_NONE, "%s", i == cs->count ? first.s : "-");
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

static void state(struct table *table, const struct connections *cs, unsigned int established)
{
	uint64_t first = attr_number(cs->of[0], RPCRDMA_A_CONNECTION_STATE);
	bool mixed = false;
	unsigned int i;

	for (i = 0; i < cs->count; i++)
		mixed |= attr_number(cs->of[i], RPCRDMA_A_CONNECTION_STATE) != first;
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

static void latency(struct table *table, const struct connections *cs)
{
	struct histogram histogram = { };
	unsigned int i;
	uint64_t p99;

	for (i = 0; i < cs->count; i++)
		histogram_add(&histogram, cs->of[i]);
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
	fprintf(data, "%s%s", ftell(data) ? "," : "", name);
}

static void users(struct table *table, const struct connections *cs)
{
	char *all = NULL;
	size_t size;
	FILE *to = open_memstream(&all, &size);

	if (to)
		users_of(cs, join, to);
	if (!to || fclose(to))
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
	table_cell(table, COLOUR_NONE, "%s", *all ? all : "-");
	free(all);
}

void connection_row(struct table *table, const struct connections *cs)
{
	const struct totals totals = totals_of(cs);
	const struct attrs *first = cs->of[0];

	id(table, cs);
	peer(table, cs);
	common(table, cs, connection_device, -1);
	state(table, cs, totals.established);
	since(table, cs);
	credits(table, cs);
	fault(table, totals.errors);
	size(table, totals.sent);
	size(table, totals.received);
	latency(table, cs);
	common(table, cs, thresholds, attr_number(first, RPCRDMA_A_CONNECTION_CALL_THRESHOLD));
	common(table, cs, version, attr_number(first, RPCRDMA_A_CONNECTION_VERSION));
	common(table, cs, xprt_switch, xprt_switch_of(first));
	users(table, cs);
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

/* Peers */

const struct column peer_columns[] = {
	{ "ROLE" },
	{ "PEER", SCOLS_FL_TRUNC },
	{ "SINCE", SCOLS_FL_RIGHT },
	{ "CONNECTS", SCOLS_FL_RIGHT },
	{ "RPCS", SCOLS_FL_RIGHT },
	{ "WAITS", SCOLS_FL_RIGHT, 100 },
	{ "ERRORS", SCOLS_FL_RIGHT },
	{ "SENT", SCOLS_FL_RIGHT },
	{ "RECEIVED", SCOLS_FL_RIGHT },
	{ "P99", SCOLS_FL_RIGHT, 100 },
	{ }
};

void peer_row(struct table *table, const struct attrs *p)
{
	const struct connections one = { 1, &p };
	const struct totals totals = totals_of(&one);

	table_cell(table, COLOUR_NONE, "%s", attr_word(p, RPCRDMA_A_CONNECTION_ROLE));
	table_cell(table, COLOUR_NONE, "%s", peer_name(p).s);
	age(table, p, RPCRDMA_A_CONNECTION_STATE_AGE);
	count(table, p, RPCRDMA_A_CONNECTION_CONNECTS);
	number(table, connection_replies(p));
	number(table, connection_sum(p, RPCRDMA_A_CONNECTION_WAITS));
	fault(table, totals.errors);
	size(table, totals.sent);
	size(table, totals.received);
	latency(table, &one);
}
