// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <linux/rpcrdma.h>
#include <string.h>
#include "connection.h"

bool connection_is(const struct attrs *connection, unsigned int role)
{
	return attr_has(connection, RPCRDMA_A_CONNECTION_ROLE) &&
	       attr_number(connection, RPCRDMA_A_CONNECTION_ROLE) == role;
}

uint64_t connection_octets(const struct attrs *connection, unsigned int direction)
{
	struct attrs traffic = attrs_nested(connection, direction);

	return attr_number(&traffic, RPCRDMA_A_TRAFFIC_INLINE_OCTETS) +
	       attr_number(&traffic, RPCRDMA_A_TRAFFIC_PLACED_OCTETS);
}

uint64_t connection_replies(const struct attrs *connection)
{
	bool client = connection_is(connection, RPCRDMA_CONNECTION_ROLE_CLIENT);
	struct attrs traffic = attrs_nested(connection, client ? RPCRDMA_A_CONNECTION_RECEIVED :
					    RPCRDMA_A_CONNECTION_SENT);

	return attr_number(&traffic, RPCRDMA_A_TRAFFIC_INLINE) +
	       attr_number(&traffic, RPCRDMA_A_TRAFFIC_WRITE_CHUNK) +
	       attr_number(&traffic, RPCRDMA_A_TRAFFIC_REPLY_CHUNK);
}

uint64_t connection_sum(const struct attrs *connection, unsigned int nest)
{
	struct attrs attrs = attrs_nested(connection, nest);
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < attrs.rules->count; i++)
		sum += attr_number(&attrs, i);
	return sum;
}

bool connection_established(const struct attrs *connection)
{
	return attr_has(connection, RPCRDMA_A_CONNECTION_STATE) &&
	       attr_number(connection, RPCRDMA_A_CONNECTION_STATE) == RPCRDMA_STATE_ESTABLISHED;
}

struct totals totals_of(const struct connections *connections)
{
	struct totals totals = { };
	unsigned int i;

	for (i = 0; i < connections->count; i++) {
		const struct attrs *c = connections->of[i];

		totals.established += connection_established(c);
		totals.errors += connection_sum(c, RPCRDMA_A_CONNECTION_ERRORS);
		totals.sent += connection_octets(c, RPCRDMA_A_CONNECTION_SENT);
		totals.received += connection_octets(c, RPCRDMA_A_CONNECTION_RECEIVED);
	}
	return totals;
}

struct text address_of(const char *text)
{
	const char *colon = strchr(text, ':');

	if (*text == '[')
		return fmt_print("%.*s", (int)strcspn(text + 1, "]"), text + 1);
	if (colon && !strchr(colon + 1, ':'))
		return fmt_print("%.*s", (int)(colon - text), text);
	return fmt_print("%s", text);
}

struct text connection_address(const struct attrs *connection)
{
	return address_of(attr_string(connection, RPCRDMA_A_CONNECTION_PEER));
}

struct text peer_name(const struct attrs *peer)
{
	bool others = !attr_has(peer, RPCRDMA_A_CONNECTION_PEER);

	return others ? fmt_print("(others)") : connection_address(peer);
}

bool peer_is_unused(const struct attrs *peer)
{
	return attr_has(peer, RPCRDMA_A_CONNECTION_CONNECTS) &&
	       !attr_number(peer, RPCRDMA_A_CONNECTION_CONNECTS);
}

struct text connection_device(const struct attrs *connection)
{
	if (!attr_has(connection, RPCRDMA_A_CONNECTION_DEVICE))
		return fmt_print("-");
	return fmt_print("%.40s/%llu", attr_string(connection, RPCRDMA_A_CONNECTION_DEVICE),
			 (unsigned long long)attr_number(connection, RPCRDMA_A_CONNECTION_PORT));
}

struct text age_of(const struct attrs *attrs, unsigned int number)
{
	if (!attr_has(attrs, number))
		return fmt_print("-");
	return fmt_age(attr_number(attrs, number) / 1000);
}
