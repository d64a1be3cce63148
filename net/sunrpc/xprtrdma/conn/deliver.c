// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The callbacks of a client that may not run in softirqs, where completions are polled.
 *
 * They run in a workqueue that has the attributes of rpciod's, and so its workers: on one CPU the
 * worker that has matched a Reply goes on with the task that it has woken. In the workqueues of the
 * RDMA core each Reply would take a switch more. It is a queue of its own, with a rescuer, because
 * reclaim may wait for a Reply, and works of other queues may wait for memory.
 */
#include "conn_private.h"

struct workqueue_struct *rpcrdma_deliver_wq;

/* What is done comes first: it was posted before the peer could answer it. */
static void deliver_work(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(work, struct rpcrdma_conn, deliver_work);
	struct llist_node *received = llist_reverse_order(llist_del_all(&conn->received));
	struct llist_node *done = llist_reverse_order(llist_del_all(&conn->done));
	bool entered = rpcrdma_conn_enter(conn);
	struct rpcrdma_chain *chain, *next_chain;
	struct rpcrdma_recv *recv, *next_recv;

	llist_for_each_entry_safe(chain, next_chain, done, deliver)
		chain->done(chain, 0);
	llist_for_each_entry_safe(recv, next_recv, received, deliver) {
		if (entered)
			conn->ops->received(conn, recv);
		else
			rpcrdma_recv_put(recv);
	}
	if (entered)
		rpcrdma_conn_leave(conn);
}

void rpcrdma_deliver_init(struct rpcrdma_conn *conn)
{
	init_llist_head(&conn->received);
	init_llist_head(&conn->done);
	INIT_WORK(&conn->deliver_work, deliver_work);
}

/* A message has arrived, and a role owns it. Entered. */
void rpcrdma_deliver_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv)
{
	if (!conn->config.in_wq)
		conn->ops->received(conn, recv);
	else if (llist_add(&recv->deliver, &conn->received))
		queue_work(rpcrdma_deliver_wq, &conn->deliver_work);
}

/* A chain is done. Entered. */
void rpcrdma_deliver_done(struct rpcrdma_conn *conn, struct rpcrdma_chain *chain)
{
	if (!conn->config.in_wq || !chain->deliver_later)
		chain->done(chain, 0);
	else if (llist_add(&chain->deliver, &conn->done))
		queue_work(rpcrdma_deliver_wq, &conn->deliver_work);
}

/* In the teardown, when no completion is handled any more. This does not wait for a worker. */
void rpcrdma_deliver_rest(struct rpcrdma_conn *conn)
{
	cancel_work_sync(&conn->deliver_work);
	deliver_work(&conn->deliver_work);
}
