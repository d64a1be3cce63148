// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The callbacks of a role that may not run in softirqs, where completions are polled.
 *
 * They run in a workqueue that the role chooses. A client chooses one of those whose workers also
 * execute the RPC's task: the worker that has matched a Reply then goes on with the task that it
 * has woken. With another kind of workqueue, that of the RDMA core for one, each Reply would take
 * a switch more.
 */
#include <linux/llist.h>

#include "conn_private.h"

/* What is done comes first: it was posted before the peer could answer it. */
static void deliver(struct rpcrdma_conn *conn)
{
	struct llist_node *received = llist_reverse_order(llist_del_all(&conn->received));
	struct llist_node *done = llist_del_all(&conn->done);
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

static void deliver_work(struct work_struct *work)
{
	deliver(container_of(work, struct rpcrdma_conn, deliver_work));
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
	if (!conn->config.wq)
		conn->ops->received(conn, recv);
	else if (llist_add(&recv->deliver, &conn->received))
		queue_work(conn->config.wq, &conn->deliver_work);
}

/* A chain is done. Entered. */
void rpcrdma_deliver_done(struct rpcrdma_conn *conn, struct rpcrdma_chain *chain)
{
	if (!conn->config.wq || !chain->deliver_later)
		chain->done(chain, 0);
	else if (llist_add(&chain->deliver, &conn->done))
		queue_work(conn->config.wq, &conn->deliver_work);
}

/*
 * In the teardown, when no completion is handled any more. This does not wait for a worker, because
 * all of them may wait for teardowns.
 */
void rpcrdma_deliver_rest(struct rpcrdma_conn *conn)
{
	cancel_work_sync(&conn->deliver_work);
	deliver(conn);
}
