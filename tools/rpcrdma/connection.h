/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What several commands say about a connection */
#ifndef RPCRDMA_CONNECTION_H
#define RPCRDMA_CONNECTION_H

#include <stdbool.h>
#include "attrs.h"
#include "fmt.h"
#include "term.h"

/**
 * connection_is - whether a connection has that role
 * @role: RPCRDMA_CONNECTION_ROLE_...
 */
bool connection_is(const struct attrs *connection, unsigned int role);

/**
 * connection_replies - Replies that came to a client, or that a server sent
 *
 * Not the count of latencies: a server does not take the time of each Call.
 */
uint64_t connection_replies(const struct attrs *connection);

/**
 * connection_octets - octets of messages, inline and placed
 * @direction: RPCRDMA_A_CONNECTION_SENT or _RECEIVED
 */
uint64_t connection_octets(const struct attrs *connection, unsigned int direction);

/**
 * connection_sum - the sum of all numbers in a nest, as of waits or errors
 * @nest: RPCRDMA_A_CONNECTION_WAITS or _ERRORS
 */
uint64_t connection_sum(const struct attrs *connection, unsigned int nest);

/**
 * connection_established - whether Calls and Replies can travel on it
 */
bool connection_established(const struct attrs *connection);

/**
 * address_of - an address as the kernel prints it, without port and brackets
 */
struct text address_of(const char *text);

/**
 * connection_address - address_of() the peer
 */
struct text connection_address(const struct attrs *connection);

/**
 * peer_name - the address of a peer that the kernel tells, or what stands for all others
 */
struct text peer_name(const struct attrs *peer);

/**
 * peer_is_unused - whether it stands for all others and there is none
 */
bool peer_is_unused(const struct attrs *peer);

/**
 * struct connections - several connections of one role, or one
 * @count: at least one, if a function does not say otherwise
 * @of: belong to a dump
 */
struct connections {
	unsigned int count;
	const struct attrs **of;
};

/* Sums over connections; octets are those of connection_octets() */
struct totals {
	unsigned int established;
	uint64_t errors, sent, received;
};

/**
 * totals_of - the sums over connections, of which there may be none
 */
struct totals totals_of(const struct connections *connections);

/**
 * connection_device - device and port, as rdma(8) writes them: rxe0/1
 */
struct text connection_device(const struct attrs *connection);

/**
 * age_of - an age in ms as text
 * @number: of the attribute; "-" if it is absent
 */
struct text age_of(const struct attrs *attrs, unsigned int number);

#endif
