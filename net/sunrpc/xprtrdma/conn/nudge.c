// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A client's first message, and software that may leave it lying.
 *
 * siw answers a connection request first, and only then has the socket tell it
 * of what arrives. A Call that comes in between stays in the socket until more
 * follows; but a client has one credit until it has seen a Reply. So as long as
 * nothing has been heard, an iWARP client has an RDMA Write of no octets follow
 * now and then. It needs neither credit nor handle, and iWARP knows it: it is
 * one of the ways in which an initiator may say that it is ready (RFC 6581).
 */
#include "conn.h"

/* From the first to the last of them: time doubles */
#define NUDGE_DELAY	(HZ / 20)
#define NUDGE_MAX	7

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

static void nudge_timer(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(to_delayed_work(work),
						 struct rpcrdma_conn,
						 nudge.timer);
	struct rpcrdma_nudge *nudge = &conn->nudge;

	if (READ_ONCE(nudge->heard) || !rpcrdma_conn_established(conn))
		return;
	if (!READ_ONCE(nudge->posted))
		nudge_post(conn);
	if (++nudge->count < NUDGE_MAX)
		queue_delayed_work(rpcrdma_wq, &nudge->timer,
				   NUDGE_DELAY << nudge->count);
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
 * rpcrdma_nudge_start - make sure that a first message is noticed
 * @conn: the connection, established
 */
void rpcrdma_nudge_start(struct rpcrdma_conn *conn)
{
	if (!conn->server && rdma_protocol_iwarp(conn->device->ib, conn->port))
		queue_delayed_work(rpcrdma_wq, &conn->nudge.timer, NUDGE_DELAY);
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
