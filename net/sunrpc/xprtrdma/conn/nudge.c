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
#include "conn.h"

/* From the first to the last of those that are early: time doubles */
#define NUDGE_DELAY	(HZ / 20)
#define NUDGE_MAX	7

/* Afterwards, and elsewhere than on iWARP */
#define PROBE_DELAY	(15 * HZ)

static void nudge_done(struct rpcrdma_work *work, int status)
{
	WRITE_ONCE(work->conn->nudge.posted, false);
}

static void nudge_post(struct rpcrdma_conn *conn)
{
	struct rpcrdma_nudge *nudge = &conn->nudge;

	nudge->wr = (struct ib_rdma_wr){ .wr.opcode = IB_WR_RDMA_WRITE };
	nudge->work.done = nudge_done;
	nudge->posted = true;
	if (rpcrdma_work_post(conn, &nudge->work, &nudge->wr.wr, &nudge->wr.wr,
			      true))
		nudge->posted = false;
}

static void nudge_again(struct rpcrdma_nudge *nudge)
{
	unsigned long delay = PROBE_DELAY;

	if (nudge->count < NUDGE_MAX)
		delay = NUDGE_DELAY << nudge->count++;
	queue_delayed_work(rpcrdma_wq, &nudge->timer, delay);
}

static void nudge_timer(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(to_delayed_work(work),
						 struct rpcrdma_conn,
						 nudge.timer);
	struct rpcrdma_nudge *nudge = &conn->nudge;

	if (!rpcrdma_conn_established(conn))
		return;
	if (READ_ONCE(nudge->heard)) {
		WRITE_ONCE(nudge->heard, false);
		nudge->count = NUDGE_MAX;
	} else if (!READ_ONCE(nudge->posted)) {
		nudge_post(conn);
	}
	if (nudge->count == NUDGE_MAX && conn->ops->wedged(conn)) {
		rpcrdma_conn_close(conn, -ETIMEDOUT);
		return;
	}
	nudge_again(nudge);
}

/**
 * rpcrdma_nudge_init - before a connection is established
 * @conn: the connection
 */
void rpcrdma_nudge_init(struct rpcrdma_conn *conn)
{
	INIT_DELAYED_WORK(&conn->nudge.timer, nudge_timer);
}

/**
 * rpcrdma_nudge_start - do not wait in silence for ever
 * @conn: the connection, established
 */
void rpcrdma_nudge_start(struct rpcrdma_conn *conn)
{
	if (conn->server)
		return;
	if (!rdma_protocol_iwarp(conn->device->ib, conn->port))
		conn->nudge.count = NUDGE_MAX;
	nudge_again(&conn->nudge);
}

/**
 * rpcrdma_nudge_stop - wait until nobody nudges any more
 * @conn: the connection, closing
 *
 * Context: process, the teardown's.
 */
void rpcrdma_nudge_stop(struct rpcrdma_conn *conn)
{
	cancel_delayed_work_sync(&conn->nudge.timer);
}
