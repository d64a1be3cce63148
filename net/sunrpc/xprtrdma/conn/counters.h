/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What is counted for those who watch a connection: by its role, because only that knows what
 * a message is; what waits for a server's send queue, by chain.c. Counting takes no lock of its
 * own and no atomic operation: whoever counts excludes other writers anyway, see
 * client_private.h and server_private.h. Arrays are indexed by netlink attribute; element 0
 * takes what has none.
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
	u64 messages[RPCRDMA_A_TRAFFIC_BACKWARD + 1];
};

/*
 * Part of a connection, at the start of a cache line. On a client the task that sends writes
 * @sent, and a kworker @received. This order keeps the two in different cache lines, and what
 * an inline message changes in one. All members are u64, so they can be summed up as an array.
 */
struct rpcrdma_counters {
	struct rpcrdma_traffic sent;
	u64 errors[RPCRDMA_A_ERRORS_MAX + 1];
	struct rpcrdma_traffic received;
	u64 latency[1 + RPCRDMA_LATENCY_BUCKETS];	/* rpcrdma_latency_slot() */
	u64 waits[RPCRDMA_A_WAITS_MAX + 1];	/* an RPC counts once for each cause */
	u64 slot_waits;		/* of a client's tasks; told as waits for a credit */
	u64 connects;		/* of a peer; 1 if the connection was established */
};

/* Count a message of @form with @octets of an RPC message, all inline and copied. */
static inline void rpcrdma_add_traffic(struct rpcrdma_traffic *to, unsigned int form, u32 octets)
{
	to->messages[form]++;
	to->inline_octets += octets;
	to->copied_octets += octets;
}

/*
 * The element of @latency that counts @time: number N is for less than 2^(N - 1) microseconds,
 * the last one for all that is longer.
 */
static inline unsigned int rpcrdma_latency_slot(ktime_t time)
{
	u64 us = div_u64(time, NSEC_PER_USEC);

	return 1 + min_t(unsigned int, fls64(us), RPCRDMA_LATENCY_BUCKETS - 1);
}

#endif /* RPCRDMA_CONN_COUNTERS_H */
