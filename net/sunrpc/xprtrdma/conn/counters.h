/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What a connection counts for those who watch it. The roles count, because only they know what a
 * message is; conn/ counts what waits for the send queue. Counting takes no lock and no atomic
 * operation: each element is written only where its role excludes other writers anyway;
 * client_private.h and server_private.h say where. Arrays are indexed by netlink attribute;
 * element 0 takes what has none.
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

struct rpcrdma_traffic {
	u64 inline_octets;	/* of RPC messages that travelled inline */
	u64 placed_octets;	/* that RDMA Reads and Writes moved */
	u64 copied_octets;	/* of RPC messages, that the CPU copied */
	unsigned long messages[RPCRDMA_A_TRAFFIC_BACKWARD + 1];
};

/*
 * Part of a connection. On a client the task that sends writes @sent, and a kworker
 * @received. In this order, and if the whole begins a cache line, an inline message
 * changes one line of @sent or of @received, and these two share none.
 */
struct rpcrdma_counters {
	struct rpcrdma_traffic sent;
	unsigned long errors[RPCRDMA_A_ERRORS_MAX + 1];
	struct rpcrdma_traffic received;
	unsigned long latency[1 + RPCRDMA_LATENCY_BUCKETS];	/* rpcrdma_latency_slot() */
	unsigned long waits[RPCRDMA_A_WAITS_MAX + 1];	/* an RPC counts once for each cause */
};

/*
 * Slot one is for less than a microsecond, slot N for up to 2^(N - 1) microseconds, and
 * the last slot for all that is longer.
 */
static inline unsigned int rpcrdma_latency_slot(ktime_t time)
{
	u64 us = div_u64(time, NSEC_PER_USEC);

	return 1 + min_t(unsigned int, fls64(us), RPCRDMA_LATENCY_BUCKETS - 1);
}

#endif /* RPCRDMA_CONN_COUNTERS_H */
