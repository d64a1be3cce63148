// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What a connection gives back when it rests.
 *
 * Sends and registrations are made on demand and kept. A server may have thousands of
 * clients that did some I/O and then do nothing for hours. So a delayed work frees what
 * has been idle since it ran before, and lets the role do the same. It queues itself again
 * until only what a connection keeps is left, and making more queues it. A server's last
 * Replies may be posted without a signal, and then it goes on looking for them.
 */
#include "conn_private.h"

/* What is idle for one to two of these goes */
#define REST_PERIOD	(30 * HZ)

static void rest_work(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(to_delayed_work(work), struct rpcrdma_conn,
						 rest_work);
	bool left;

	if (!rpcrdma_conn_enter(conn))
		return;
	left = rpcrdma_send_trim(conn);
	left |= rpcrdma_mr_trim(conn);
	if (conn->ops->rest)
		left |= conn->ops->rest(conn);
	if (left)
		rpcrdma_rest_later(conn);
	rpcrdma_conn_leave(conn);
}

/**
 * rpcrdma_rest_init - initialise the work that frees what is idle
 * @conn: the new connection
 *
 * Context: any.
 */
void rpcrdma_rest_init(struct rpcrdma_conn *conn)
{
	INIT_DELAYED_WORK(&conn->rest_work, rest_work);
}

/**
 * rpcrdma_rest_later - look later whether something is idle
 * @conn: the connection, for which something is made now
 *
 * Context: entered; any but hard interrupts.
 */
void rpcrdma_rest_later(struct rpcrdma_conn *conn)
{
	queue_delayed_work(rpcrdma_wq, &conn->rest_work, REST_PERIOD);
}

/**
 * rpcrdma_rest_stop - free nothing more
 * @conn: the connection, which no thread can enter
 *
 * Context: the teardown; sleeps.
 */
void rpcrdma_rest_stop(struct rpcrdma_conn *conn)
{
	cancel_delayed_work_sync(&conn->rest_work);
}
