// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Keepalive of a connection.
 *
 * A queue pair learns that its peer is gone only when it sends something. A client may
 * have no credit or nothing to send. A server that crashed and came back knows nothing
 * of the connection, and NFSv4 waits as long as the connection lasts. So a client that
 * has heard nothing for a while posts an RDMA Write of no octets. It needs neither
 * credit nor handle. Either the peer acknowledges it, or the queue pair fails. On iWARP
 * TCP has to notice that a server is gone for good, which may take a quarter of an
 * hour.
 *
 * The message that ends a connection is not repeated if it is lost, and a client that was
 * cut off has sent none that arrived. NFSv4.1 has no limit for connections of a session
 * that rest, so without a keepalive each outage of the network would leave a server one end
 * for each client. So a server does the same, with longer periods.
 *
 * siw answers a connection request before it asks the socket to report what arrives. A
 * Call that arrives in between stays in the socket until more data arrives, and the
 * client has only one credit until the first Reply. So on iWARP the same RDMA Write is
 * posted early, until the client hears something. RFC 6581 lets an initiator show in
 * this way that it is ready.
 */
#include "conn_private.h"

/* iWARP only: the first early period, doubled each time, and the number of them */
#define KEEPALIVE_EARLY_DELAY	(HZ / 20)
#define KEEPALIVE_EARLY_MAX	7

/* A client's period after the early ones; without iWARP from the start */
#define KEEPALIVE_DELAY	(15 * HZ)

/* A server's, which has no early ones */
#define KEEPALIVE_SERVER_DELAY	(60 * HZ)

static void keepalive_done(struct rpcrdma_chain *chain, int status)
{
	/* Whoever posts it again comes after what was done with the chain until here. */
	smp_store_release(&chain->conn->keepalive.posted, false);
}

static void keepalive_again(struct rpcrdma_conn *conn)
{
	unsigned long delay = conn->server ? KEEPALIVE_SERVER_DELAY : KEEPALIVE_DELAY;
	struct rpcrdma_keepalive *keepalive = &conn->keepalive;

	if (keepalive->count < KEEPALIVE_EARLY_MAX)
		delay = KEEPALIVE_EARLY_DELAY << keepalive->count++;
	queue_delayed_work(rpcrdma_wq, &keepalive->timer, delay);
}

/* The work of conn->keepalive.timer */
void rpcrdma_keepalive_timer(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(to_delayed_work(work), struct rpcrdma_conn,
						 keepalive.timer);
	struct rpcrdma_keepalive *keepalive = &conn->keepalive;

	if (!rpcrdma_conn_established(conn))
		return;
	if (READ_ONCE(keepalive->heard)) {
		WRITE_ONCE(keepalive->heard, false);
		keepalive->count = KEEPALIVE_EARLY_MAX;
	} else if (!READ_ONCE(keepalive->posted)) {
		keepalive->wr = (struct ib_rdma_wr){ .wr.opcode = IB_WR_RDMA_WRITE };
		keepalive->chain.done = keepalive_done;
		keepalive->posted = true;
		if (rpcrdma_chain_post(conn, &keepalive->chain, &keepalive->wr.wr,
				       &keepalive->wr.wr, RPCRDMA_POST_SIGNALLED, NULL))
			keepalive->posted = false;
	}
	if (keepalive->count == KEEPALIVE_EARLY_MAX && conn->ops->keepalive)
		conn->ops->keepalive(conn);
	keepalive_again(conn);
}

/* The connection is established. */
void rpcrdma_keepalive_start(struct rpcrdma_conn *conn)
{
	if (conn->server || !rdma_protocol_iwarp(conn->device->ib, conn->port))
		conn->keepalive.count = KEEPALIVE_EARLY_MAX;
	keepalive_again(conn);
}
