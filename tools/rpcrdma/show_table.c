// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <linux/rpcrdma.h>
#include <net/if.h>
#include <stdio.h>
#include "connection.h"
#include "fmt.h"
#include "histogram.h"
#include "show.h"
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

static void count(struct table *table, const struct attrs *attrs, unsigned int number)
{
	table_cell(table, COLOUR_NONE, "%s", fmt_count(attr_number(attrs, number)).s);
}

/* A count that should be zero */
static void fault(struct table *table, uint64_t count)
{
	table_cell(table, count ? COLOUR_BAD : COLOUR_NONE, "%s", fmt_count(count).s);
}

static void size(struct table *table, uint64_t octets)
{
	table_cell(table, COLOUR_NONE, "%s", fmt_size(octets).s);
}

static void age(struct table *table, const struct attrs *attrs, unsigned int number)
{
	table_cell(table, COLOUR_NONE, "%s", age_of(attrs, number).s);
}

/* Connections */

const struct column connection_columns[] = {
	{ "ID", SCOLS_FL_RIGHT },
	{ "PEER", SCOLS_FL_TRUNC },
	{ "DEVICE" },
	{ "STATE" },
	{ "SINCE", SCOLS_FL_RIGHT },
	{ "CREDITS", SCOLS_FL_RIGHT },
	{ "ERRORS", SCOLS_FL_RIGHT },
	{ "SENT", SCOLS_FL_RIGHT, 100 },
	{ "RECEIVED", SCOLS_FL_RIGHT, 100 },
	{ "P99", SCOLS_FL_RIGHT, 120 },
	{ "INLINE", SCOLS_FL_RIGHT, 120 },
	{ "V", SCOLS_FL_RIGHT, 120 },
	{ "SWITCH", SCOLS_FL_RIGHT, 120 },
	{ }
};

static void credits(struct table *table, const struct attrs *c)
{
	bool short_of = attr_number(c, RPCRDMA_A_CONNECTION_CREDITS_WAITING);

	table_cell(table, short_of ? COLOUR_WARN : COLOUR_NONE, "%s/%s",
		   fmt_count(attr_number(c, RPCRDMA_A_CONNECTION_CREDITS_IN_USE)).s,
		   fmt_count(attr_number(c, RPCRDMA_A_CONNECTION_CREDITS_GRANTED)).s);
}

static void latency(struct table *table, const struct attrs *c)
{
	struct histogram histogram = histogram_get(c);

	table_cell(table, COLOUR_NONE, "%s", histogram_count(&histogram) ?
		   fmt_ns(histogram_percentile(&histogram, 99)).s : "-");
}

static void thresholds(struct table *table, const struct attrs *c)
{
	if (!attr_has(c, RPCRDMA_A_CONNECTION_CALL_THRESHOLD))
		table_cell(table, COLOUR_NONE, "-");
	else
		table_cell(table, COLOUR_NONE, "%s/%s",
			   fmt_size(attr_number(c, RPCRDMA_A_CONNECTION_CALL_THRESHOLD)).s,
			   fmt_size(attr_number(c, RPCRDMA_A_CONNECTION_REPLY_THRESHOLD)).s);
}

static void xprt_switch(struct table *table, int number)
{
	table_cell(table, COLOUR_NONE, "%s", number < 0 ? "-" : fmt_print("%d", number).s);
}

void connection_row(struct table *table, const struct attrs *c)
{
	table_cell(table, COLOUR_NONE, "%u", (unsigned int)attr_number(c, RPCRDMA_A_CONNECTION_ID));
	string(table, c, RPCRDMA_A_CONNECTION_PEER);
	table_cell(table, COLOUR_NONE, "%s", connection_device(c).s);
	word(table, c, RPCRDMA_A_CONNECTION_STATE, RPCRDMA_STATE_ESTABLISHED);
	age(table, c, RPCRDMA_A_CONNECTION_STATE_AGE);
	credits(table, c);
	fault(table, connection_sum(c, RPCRDMA_A_CONNECTION_ERRORS));
	size(table, connection_octets(c, RPCRDMA_A_CONNECTION_SENT));
	size(table, connection_octets(c, RPCRDMA_A_CONNECTION_RECEIVED));
	latency(table, c);
	thresholds(table, c);
	table_cell(table, COLOUR_NONE, "%u",
		   (unsigned int)attr_number(c, RPCRDMA_A_CONNECTION_VERSION));
	xprt_switch(table, xprt_switch_of(c));
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
