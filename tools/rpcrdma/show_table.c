// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <linux/rpcrdma.h>
#include <net/if.h>
#include <stdio.h>
#include "connection.h"
#include "fmt.h"
#include "histogram.h"
#include "show.h"
#include "table.h"

static void plain(struct table *table, struct text text)
{
	table_cell(table, COLOUR_NONE, text.s);
}

static void string(struct table *table, const struct attrs *attrs,
		   unsigned int number)
{
	table_cell(table, COLOUR_NONE,
		   attr_has(attrs, number) ? attr_string(attrs, number) : "-");
}

static void word(struct table *table, const struct attrs *attrs,
		 unsigned int number, uint64_t good)
{
	bool is_good = attr_number(attrs, number) == good;

	table_cell(table, is_good ? COLOUR_GOOD : COLOUR_WARN,
		   attr_has(attrs, number) ? attr_word(attrs, number) : "-");
}

/* A count that should be zero */
static void fault(struct table *table, uint64_t count)
{
	table_cell(table, count ? COLOUR_BAD : COLOUR_NONE, fmt_count(count).s);
}

/* Print a table, or a line if it is empty. */
static void finish(struct table *table, const char *nothing)
{
	if (table_rows(table))
		table_print(table, term_width());
	else
		puts(nothing);
	table_free(table);
}

static void thresholds(struct table *table, const struct attrs *c)
{
	uint64_t call = attr_number(c, RPCRDMA_A_CONNECTION_CALL_THRESHOLD);
	uint64_t reply = attr_number(c, RPCRDMA_A_CONNECTION_REPLY_THRESHOLD);

	if (!attr_has(c, RPCRDMA_A_CONNECTION_CALL_THRESHOLD))
		plain(table, fmt_print("-"));
	else
		plain(table, fmt_print("%s/%s", fmt_size(call).s,
				       fmt_size(reply).s));
}

static void credits(struct table *table, const struct attrs *c)
{
	uint64_t used = attr_number(c, RPCRDMA_A_CONNECTION_CREDITS_IN_USE);
	uint64_t granted = attr_number(c, RPCRDMA_A_CONNECTION_CREDITS_GRANTED);
	bool short_of = attr_number(c, RPCRDMA_A_CONNECTION_CREDITS_WAITING);

	table_cell(table, short_of ? COLOUR_WARN : COLOUR_NONE,
		   fmt_print("%s/%s", fmt_count(used).s,
			     fmt_count(granted).s).s);
}

static void latency(struct table *table, const struct attrs *c)
{
	struct histogram histogram = histogram_get(c);

	if (!histogram_count(&histogram)) {
		table_cell(table, COLOUR_NONE, "-");
		return;
	}
	plain(table, fmt_ns(histogram_percentile(&histogram, 99)));
}

static void connection_row(struct table *table, const struct attrs *c)
{
	plain(table, fmt_print("%u", (unsigned int)
			       attr_number(c, RPCRDMA_A_CONNECTION_ID)));
	string(table, c, RPCRDMA_A_CONNECTION_PEER);
	plain(table, connection_device(c));
	word(table, c, RPCRDMA_A_CONNECTION_STATE,
	     RPCRDMA_STATE_ESTABLISHED);
	plain(table, age_of(c, RPCRDMA_A_CONNECTION_STATE_AGE));
	credits(table, c);
	fault(table, connection_sum(c, RPCRDMA_A_CONNECTION_ERRORS));
	plain(table, fmt_size(connection_octets(c, RPCRDMA_A_CONNECTION_SENT)));
	plain(table,
	      fmt_size(connection_octets(c, RPCRDMA_A_CONNECTION_RECEIVED)));
	latency(table, c);
	thresholds(table, c);
	plain(table, fmt_print("%u", (unsigned int)
			       attr_number(c, RPCRDMA_A_CONNECTION_VERSION)));
}

void table_of_connections(const struct objects *connections, unsigned int role)
{
	static const struct column columns[] = {
		{ "ID", TABLE_RIGHT },
		{ "PEER", TABLE_SHRINK },
		{ "DEVICE", TABLE_SHRINK },
		{ "STATE" },
		{ "SINCE", TABLE_RIGHT },
		{ "CREDITS", TABLE_RIGHT },
		{ "ERRORS", TABLE_RIGHT },
		{ "SENT", TABLE_RIGHT | TABLE_DROP },
		{ "RECEIVED", TABLE_RIGHT | TABLE_DROP },
		{ "P99", TABLE_RIGHT | TABLE_DROP },
		{ "INLINE", TABLE_RIGHT | TABLE_DROP },
		{ "V", TABLE_RIGHT | TABLE_DROP },
		{ }
	};
	struct table *table = table_new(columns);
	unsigned int i;

	for (i = 0; i < connections->count; i++)
		if (connection_is(&connections->of[i], role))
			connection_row(table, &connections->of[i]);
	finish(table, role == RPCRDMA_CONNECTION_ROLE_CLIENT ?
	       "none: nothing is mounted over RDMA here" :
	       "none: no client is connected over RDMA");
}

static void listener_row(struct table *table, const struct attrs *l)
{
	string(table, l, RPCRDMA_A_LISTENER_LOCAL);
	word(table, l, RPCRDMA_A_LISTENER_STATE,
	     RPCRDMA_LISTENER_STATE_LISTENING);
	plain(table, age_of(l, RPCRDMA_A_LISTENER_STATE_AGE));
	plain(table, fmt_count(attr_number(l, RPCRDMA_A_LISTENER_ACCEPTED)));
	fault(table, attr_number(l, RPCRDMA_A_LISTENER_REFUSED));
	plain(table, fmt_count(attr_number(l, RPCRDMA_A_LISTENER_WAITING)));
}

void table_of_listeners(const struct objects *listeners)
{
	static const struct column columns[] = {
		{ "LOCAL", TABLE_SHRINK },
		{ "STATE" },
		{ "SINCE", TABLE_RIGHT },
		{ "ACCEPTED", TABLE_RIGHT },
		{ "REFUSED", TABLE_RIGHT },
		{ "WAITING", TABLE_RIGHT },
		{ }
	};
	struct table *table = table_new(columns);
	unsigned int i;

	for (i = 0; i < listeners->count; i++)
		listener_row(table, &listeners->of[i]);
	finish(table, "none: the server does not listen for RDMA");
}

static void netdev(struct table *table, const struct attrs *port)
{
	char name[IF_NAMESIZE];

	if (attr_has(port, RPCRDMA_A_PORT_IFINDEX) &&
	    if_indextoname(attr_number(port, RPCRDMA_A_PORT_IFINDEX), name))
		table_cell(table, COLOUR_NONE, name);
	else
		table_cell(table, COLOUR_NONE, "-");
}

static void device_row(struct table *table, const struct attrs *device,
		       const struct attrs *port)
{
	plain(table, fmt_print("%.40s/%u",
			       attr_string(device, RPCRDMA_A_DEVICE_NAME),
			       (unsigned int)
			       attr_number(port, RPCRDMA_A_PORT_NUMBER)));
	word(table, port, RPCRDMA_A_PORT_STATE, RPCRDMA_PORT_STATE_ACTIVE);
	word(table, device, RPCRDMA_A_DEVICE_USABILITY,
	     RPCRDMA_USABILITY_USABLE);
	table_cell(table, COLOUR_NONE,
		   attr_has(port, RPCRDMA_A_PORT_PROTOCOL) ?
		   attr_word(port, RPCRDMA_A_PORT_PROTOCOL) : "-");
	netdev(table, port);
	plain(table, fmt_count(attr_number(device,
					   RPCRDMA_A_DEVICE_MR_PAGES)));
}

static void device_rows(struct table *table, const struct attrs *device)
{
	const struct nlattr *last = NULL;
	struct attrs port;

	while (attrs_each(device, RPCRDMA_A_DEVICE_PORT, &last, &port))
		device_row(table, device, &port);
}

void table_of_devices(const struct objects *devices)
{
	static const struct column columns[] = {
		{ "DEVICE", TABLE_SHRINK },
		{ "STATE" },
		{ "USABLE" },
		{ "PROTOCOL" },
		{ "NETDEV", TABLE_SHRINK },
		{ "PAGES", TABLE_RIGHT },
		{ }
	};
	struct table *table = table_new(columns);
	unsigned int i;

	for (i = 0; i < devices->count; i++)
		device_rows(table, &devices->of[i]);
	finish(table, "none: see rdma link; rdma link add makes a software device");
}
