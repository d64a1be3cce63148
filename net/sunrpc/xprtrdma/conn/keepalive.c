// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A client's connection on which nothing is heard.
 *
 * A queue pair learns that its peer is gone only if it sends something. Once
 * all Calls that there are credits for have been sent, or nobody has anything
 * to send, that is never: a server that crashed and came back knows nothing of
 * the connection, and NFSv4 waits for as long as there is one. So what has been
 * silent for a while is probed by an RDMA Write of no octets. It needs neither
 * credit nor handle, and either it is acknowledged or the queue pair fails. On
 * iWARP the latter is TCP's to find out, which may take it a quarter of an hour
 * if the server is gone for good.
 *
 * The first message is a matter of its own. siw answers a connection request
 * first, and only then has the socket tell it of what arrives. A Call that
 * comes in between stays in the socket until more follows; but a client has one
 * credit until it has seen a Reply. So on iWARP the same RDMA Write goes out
 * early, until something is heard. It is one of the ways in which an initiator
 * may say that it is ready (RFC 6581).
 */
#include "conn_private.h"

/* From the first to the last of those that are early: time doubles */
#define KEEPALIVE_EARLY_DELAY	(HZ / 20)
#define KEEPALIVE_EARLY_MAX	7

/* Afterwards, and elsewhere than on iWARP */
#define KEEPALIVE_DELAY	(15 * HZ)

static void keepalive_done(struct rpcrdma_work *work, int status)
{
	WRITE_ONCE(work->conn->keepalive.posted, false);
}

static void keepalive_post(struct rpcrdma_conn *conn)
{
	struct rpcrdma_keepalive *keepalive = &conn->keepalive;

	keepalive->wr = (struct ib_rdma_wr){ .wr.opcode = IB_WR_RDMA_WRITE };
	keepalive->work.done = keepalive_done;
	keepalive->posted = true;
	if (rpcrdma_work_post(conn, &keepalive->work, &keepalive->wr.wr,
			      &keepalive->wr.wr, true))
		keepalive->posted = false;
}

static void keepalive_again(struct rpcrdma_keepalive *keepalive)
{
	unsigned long delay = KEEPALIVE_DELAY;

	if (keepalive->count < KEEPALIVE_EARLY_MAX)
		delay = KEEPALIVE_EARLY_DELAY << keepalive->count++;
	queue_delayed_work(rpcrdma_wq, &keepalive->timer, delay);
}

static void keepalive_timer(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(to_delayed_work(work),
						 struct rpcrdma_conn,
						 keepalive.timer);
	struct rpcrdma_keepalive *keepalive = &conn->keepalive;

	if (!rpcrdma_conn_established(conn))
		return;
	if (READ_ONCE(keepalive->heard)) {
		WRITE_ONCE(keepalive->heard, false);
		keepalive->count = KEEPALIVE_EARLY_MAX;
	} else if (!READ_ONCE(keepalive->posted)) {
		keepalive_post(conn);
	}
	if (keepalive->count == KEEPALIVE_EARLY_MAX)
		conn->ops->keepalive(conn);
	keepalive_again(keepalive);
}

/**
 * rpcrdma_keepalive_init - before a connection is established
 * @conn: the connection
 */
void rpcrdma_keepalive_init(struct rpcrdma_conn *conn)
{
	INIT_DELAYED_WORK(&conn->keepalive.timer, keepalive_timer);
}

/**
 * rpcrdma_keepalive_start - do not wait in silence for ever
 * @conn: the connection, established
 */
void rpcrdma_keepalive_start(struct rpcrdma_conn *conn)
{
	if (conn->server)
		return;
	if (!rdma_protocol_iwarp(conn->device->ib, conn->port))
		conn->keepalive.count = KEEPALIVE_EARLY_MAX;
	keepalive_again(&conn->keepalive);
}

/**
 * rpcrdma_keepalive_stop - wait until no keepalive is sent any more
 * @conn: the connection, closing
 *
 * Context: process, the teardown's.
 */
void rpcrdma_keepalive_stop(struct rpcrdma_conn *conn)
{
	cancel_delayed_work_sync(&conn->keepalive.timer);
}
