/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What a connection counts for those who watch it. The roles count, because only they
 * know what a message is. Counting takes no lock and no atomic operation: each element
 * is written only where its role excludes other writers anyway. client_private.h and
 * server_private.h say where that is. Readers may see a count of one message without
 * the octets of the same message.
 */
#ifndef RPCRDMA_CONN_COUNTERS_H
#define RPCRDMA_CONN_COUNTERS_H

#include <linux/bitops.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>
#include <uapi/linux/rpcrdma.h>

/* The last bucket begins at 2^26 microseconds, which is more than a minute. */
#define RPCRDMA_LATENCY_BUCKETS	28

/**
 * struct rpcrdma_traffic - the messages of one direction
 * @inline_octets: octets of RPC messages that travelled inline
 * @placed_octets: octets that RDMA Reads and Writes moved
 * @copied_octets: octets of RPC messages that the CPU copied. Roles count this only where
 *	messages are usually not copied: what a server receives.
 * @gathered_octets: inline octets that the CPU did not copy; counted everywhere else
 * @messages: how many, by the attribute that tells it; the first element is for what is no message
 *
 * Part of struct rpcrdma_counters.
 */
struct rpcrdma_traffic {
	u64 inline_octets;
	u64 placed_octets;
	u64 copied_octets;
	u64 gathered_octets;
	unsigned long messages[RPCRDMA_A_TRAFFIC_BACKWARD + 1];
};

/**
 * struct rpcrdma_counters - what has happened on a connection
 * @sent: what this end has sent
 * @errors: by the attribute that tells it
 * @received: what it has received and could decode
 * @latency: how many RPCs took how long, see rpcrdma_latency_slot(). The first element
 *	is for messages that are no RPC; nobody reads it.
 * @waits: RPCs that had to wait, by the attribute that tells what for. An RPC counts once for
 *	each, however often it tries.
 *
 * Part of a connection. On a client the task that sends writes @sent, and a kworker
 * @received. In this order, and if the whole begins a cache line, an inline message
 * changes one line of @sent or of @received, and these two share none.
 */
struct rpcrdma_counters {
	struct rpcrdma_traffic sent;
	unsigned long errors[RPCRDMA_A_ERRORS_MAX + 1];
	struct rpcrdma_traffic received;
	unsigned long latency[1 + RPCRDMA_LATENCY_BUCKETS];
	unsigned long waits[RPCRDMA_A_WAITS_MAX + 1];
};

/**
 * rpcrdma_latency_slot - where an RPC is counted
 * @time: how long it took, not negative
 *
 * Slot one is for less than a microsecond, slot N for up to 2^(N - 1) microseconds, and
 * the last slot for all that is longer.
 *
 * Context: any.
 * Return: an index into the latency of struct rpcrdma_counters, at least one.
 */
static inline unsigned int rpcrdma_latency_slot(ktime_t time)
{
	u64 us = div_u64(time, NSEC_PER_USEC);

	return 1 + min_t(unsigned int, fls64(us), RPCRDMA_LATENCY_BUCKETS - 1);
}

#endif /* RPCRDMA_CONN_COUNTERS_H */
