// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connect, close, reconnect; and the credits of a connection.
 *
 *	->connect --> connect_work: rpcrdma_conn_connect(), wait for ->ready
 *		established: client->ep is set, XPRT_CONNECTED
 *		else: waiting tasks get the reason, and try again later
 *	->closed --> XPRT_CLOSE_WAIT --> ->close: wait for ->closed, then
 *		xprt_disconnect_done() has all tasks encode and send anew
 *
 * Each step holds XPRT_LOCKED, so there is never more than one endpoint that is
 * not yet closed. To destroy a transport sunrpc waits for that, so whoever is
 * waiting here meanwhile takes a look now and then whether it does.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "../trace.h"
#include "client_private.h"

/*
 * Here workers wait for servers. All transports of the host share sunrpc's own,
 * xprtiod, in which TCP receives.
 */
struct workqueue_struct *xprt_rdma_connect_wq;

#define XPRT_RDMA_INITIAL_RECONNECT_DELAY	HZ

/*
 * At most, between attempts that are refused. sunrpc itself waits as long before it
 * asks for another. They cost little, and who refuses may be about to be back.
 */
#define XPRT_RDMA_REFUSED_RECONNECT_DELAY	(3 * HZ)

/* Do not ask for Receives again for so long if there was no memory for them. */
#define XPRT_RDMA_GROW_PAUSE	(HZ / 10)

/* How long a transport that nobody wants any more may go on connecting */
#define XPRT_RDMA_ABANDON_DELAY	HZ

static void xprt_rdma_ep_release(struct kref *ref)
{
	struct xprt_rdma_endpoint *ep = container_of(ref,
						     struct xprt_rdma_endpoint,
						     ref);
	struct rpcrdma_mr *mr, *next;

	list_for_each_entry_safe(mr, next, &ep->orphaned_mrs, list)
		rpcrdma_mr_put(mr);
	if (ep->conn)
		rpcrdma_conn_put(ep->conn);
	kvfree(ep);
}

void xprt_rdma_ep_get(struct xprt_rdma_endpoint *ep)
{
	kref_get(&ep->ref);
}

void xprt_rdma_ep_put(struct xprt_rdma_endpoint *ep)
{
	kref_put(&ep->ref, xprt_rdma_ep_release);
}

/* Whoever waits for memory for Receives asks for it once more. */
static void xprt_rdma_ep_grow_again(struct work_struct *work)
{
	struct xprt_rdma_endpoint *ep = container_of(to_delayed_work(work),
						     struct xprt_rdma_endpoint,
						     grow_again);

	xprt_write_space(&ep->client->xprt);
}

static struct xprt_rdma_endpoint *
xprt_rdma_ep_alloc(struct xprt_rdma_client *client)
{
	struct xprt_rdma_endpoint *ep = kvzalloc(sizeof(*ep), GFP_KERNEL);

	if (!ep)
		return NULL;
	kref_init(&ep->ref);
	ep->client = client;
	init_completion(&ep->ready);
	init_completion(&ep->closed);
	xprt_rdma_credits_init(&ep->credits, RPCRDMA_FIRST_CREDITS);
	spin_lock_init(&ep->awaiting_lock);
	INIT_LIST_HEAD(&ep->awaiting_reply);
	INIT_LIST_HEAD(&ep->orphaned_mrs);
	INIT_DELAYED_WORK(&ep->grow_again, xprt_rdma_ep_grow_again);
	return ep;
}

/* Without memory there are no more Calls in flight than there were, for now. */
static void xprt_rdma_ep_grow(struct xprt_rdma_endpoint *ep, u32 requested)
{
	struct xprt_rdma_credits *credits = &ep->credits;
	u32 posted = xprt_rdma_credits_to_post(credits, requested);

	if (posted <= credits->posted)
		return;
	if (delayed_work_pending(&ep->grow_again))
		return;
	if (rpcrdma_recv_expect(ep->conn, posted, 0)) {
		queue_delayed_work(xprtiod_workqueue, &ep->grow_again,
				   XPRT_RDMA_GROW_PAUSE);
		return;
	}
	xprt_rdma_credits_posted(credits, posted);
	xprt_rdma_slots_limit(ep->client, credits);
}

/**
 * xprt_rdma_ep_has_credit - whether one more Call may be sent
 * @ep: the connection
 *
 * Makes more Receives if the Call would have its credit if it were not for these,
 * or if others wait for a slot.
 *
 * Context: XPRT_LOCKED is held; may sleep.
 * Return: true if one may.
 */
bool xprt_rdma_ep_has_credit(struct xprt_rdma_endpoint *ep)
{
	u32 requested = ep->conn->credits;

	if (test_bit(XPRT_CONGESTED, &ep->client->xprt.state) ||
	    !xprt_rdma_credits_left(&ep->credits, requested))
		xprt_rdma_ep_grow(ep, requested);
	return xprt_rdma_credits_left(&ep->credits, requested);
}

/**
 * xprt_rdma_ep_granted - take notice of the grant in a Reply
 * @ep: where it arrived
 * @credits: rdma_credit, but no more than was requested
 *
 * A server that answers deserves a prompt reconnect.
 *
 * Context: ->received.
 */
void xprt_rdma_ep_granted(struct xprt_rdma_endpoint *ep, u32 credits)
{
	if (!ep->credits.answered)
		ep->client->xprt.reestablish_timeout = 0;
	if (xprt_rdma_credits_grant(&ep->credits, credits))
		xprt_rdma_slots_limit(ep->client, &ep->credits);
}

/**
 * xprt_rdma_ep_credit_back - a Reply has arrived and its buffer is back
 * @ep: where it arrived
 */
void xprt_rdma_ep_credit_back(struct xprt_rdma_endpoint *ep)
{
	xprt_rdma_credits_give(&ep->credits);
	/* Pairs with the one in xprt_rdma_call_submit_or_wait(). */
	smp_mb__after_atomic();
	xprt_write_space(&ep->client->xprt);
}

/*
 * Some RPC may not get its Reply, and sunrpc sends no second Call by the same
 * connection where the protocol forbids it: see xprt_rdma_client_timer().
 */
static void xprt_rdma_ep_dropped(struct xprt_rdma_endpoint *ep, bool backward)
{
	WRITE_ONCE(ep->client->reply_lost, true);
	if (xprt_rdma_credits_freed_by(&ep->reply, backward))
		xprt_rdma_ep_credit_back(ep);
}

static void xprt_rdma_ep_established(struct rpcrdma_conn *conn)
{
	struct xprt_rdma_endpoint *ep = conn->role;
	struct rpc_xprt *xprt = &ep->client->xprt;

	ep->conn = conn;
	ep->max_mr_pages = conn->device->max_mr_pages;
	WRITE_ONCE(ep->client->backward_payload,
		   xprt_rdma_form_backward(&conn->agreement, PAGE_SIZE));
	spin_lock(&xprt->transport_lock);
	ep->client->local = conn->local_addr;
	/*
	 * A task that learns late of an earlier failure asks to disconnect. What
	 * it has asked is over, and its cookie is not this connection's.
	 */
	WRITE_ONCE(xprt->connect_cookie, xprt->connect_cookie + 1);
	clear_bit(XPRT_CLOSE_WAIT, &xprt->state);
	spin_unlock(&xprt->transport_lock);
	ep->established = true;
	complete_all(&ep->ready);
}

static void xprt_rdma_ep_received(struct rpcrdma_conn *conn,
				  struct rpcrdma_recv *recv)
{
	struct xprt_rdma_endpoint *ep = conn->role;
	struct rpcrdma_message *msg = &ep->reply;
	bool backward = conn->backward_credits;
	enum rpcrdma_verdict verdict;

	verdict = rpcrdma_wire_decode(msg, recv->data, recv->len,
				      RPCRDMA_REQUESTER, backward);
	if (verdict == RPCRDMA_USE) {
		if (msg->direction == RPCRDMA_REPLY)
			xprt_rdma_reply_received(ep, recv);
		else
			xprt_rdma_backward_received(ep, recv);
		return;
	}

	trace_rpcrdma_bad_message(conn, msg->xid, recv->len, msg->reason);
	ep->client->stats.bad_replies++;
	rpcrdma_recv_put(recv);
	if (verdict == RPCRDMA_DROP) {
		xprt_rdma_ep_dropped(ep, backward);
	} else if (verdict == RPCRDMA_ANSWER_ERR_VERS) {
		xprt_rdma_backward_refuse(conn, msg, RPCRDMA_ERR_VERS);
		/* Of another version nobody knows whether it was a Reply. */
		WRITE_ONCE(ep->client->reply_lost, true);
	} else if (verdict == RPCRDMA_ANSWER_ERR_CHUNK) {
		xprt_rdma_backward_refuse(conn, msg, RPCRDMA_ERR_CHUNK);
	}
}

static void xprt_rdma_ep_writable(struct rpcrdma_conn *conn)
{
	struct xprt_rdma_endpoint *ep = conn->role;

	/* Pairs with the one in xprt_rdma_call_submit_or_wait(). */
	smp_mb();
	xprt_write_space(&ep->client->xprt);
}

/* Twice in a row, because the Replies may arrive soon. */
static void xprt_rdma_ep_keepalive(struct rpcrdma_conn *conn)
{
	struct xprt_rdma_endpoint *ep = conn->role;
	bool before = ep->wedged;

	ep->wedged = xprt_rdma_credits_wedged(&ep->credits, conn->credits);
	if (before && ep->wedged)
		rpcrdma_conn_close(conn, -ETIMEDOUT);
}

static void xprt_rdma_ep_closed(struct rpcrdma_conn *conn, int status)
{
	struct xprt_rdma_endpoint *ep = conn->role;

	/* None can be queued any more: only who has entered the connection does. */
	cancel_delayed_work_sync(&ep->grow_again);
	ep->status = status;
	if (ep->established && !READ_ONCE(ep->closing))
		xprt_force_disconnect(&ep->client->xprt);
	complete_all(&ep->ready);
	/* The client may be gone after this. */
	complete_all(&ep->closed);
	xprt_rdma_ep_put(ep);
}

static const struct rpcrdma_conn_ops xprt_rdma_ep_ops = {
	.established	= xprt_rdma_ep_established,
	.received	= xprt_rdma_ep_received,
	.writable	= xprt_rdma_ep_writable,
	.keepalive	= xprt_rdma_ep_keepalive,
	.closed		= xprt_rdma_ep_closed,
};

static struct rpcrdma_conn *xprt_rdma_ep_start(struct xprt_rdma_client *client,
					       struct xprt_rdma_endpoint *ep)
{
	struct rpc_xprt *xprt = &client->xprt;
	const struct sockaddr *source = NULL;
	struct rpcrdma_conn_config config = {
		.ops			= &xprt_rdma_ep_ops,
		.role			= ep,
		.params.send_size	= xprt_rdma_max_inline_write,
		.params.recv_size	= xprt_rdma_max_inline_read,
		.params.remote_inv	= xprt_rdma_remote_invalidation,
		.omit_private_data	= !xprt_rdma_private_data,
		.credits		= xprt->max_reqs,
		.swapper		= &xprt->swapper,
		.timeout_ms		= jiffies_to_msecs(xprt->connect_timeout),
	};

	if (client->source.ss_family != AF_UNSPEC)
		source = (struct sockaddr *)&client->source;
	if (client->wants_backward)
		config.backward_credits = XPRT_RDMA_BACKWARD_CREDITS;
	if (config.params.send_size > XPRT_RDMA_GATHER_MIN)
		config.send_pages = config.params.send_size / PAGE_SIZE + 2;
	return rpcrdma_conn_connect(xprt->xprt_net, source,
				    (struct sockaddr *)&xprt->addr, &config);
}

/* sunrpc, without the last reference, waits for XPRT_LOCKED to destroy it. */
static bool xprt_rdma_ep_abandoned(struct xprt_rdma_client *client)
{
	return !kref_read(&client->xprt.kref);
}

/* Each connection is a new one, and so may differ in all that it agrees on. */
static int xprt_rdma_ep_try(struct xprt_rdma_client *client)
{
	struct xprt_rdma_endpoint *ep;
	struct rpcrdma_conn *conn;
	int status;

	if (xprt_rdma_ep_abandoned(client))
		return -ECONNABORTED;
	ep = xprt_rdma_ep_alloc(client);
	if (!ep)
		return -ENOBUFS;
	xprt_rdma_ep_get(ep);
	conn = xprt_rdma_ep_start(client, ep);
	if (IS_ERR(conn)) {
		xprt_rdma_ep_put(ep);
		xprt_rdma_ep_put(ep);
		return PTR_ERR(conn);
	}
	while (!wait_for_completion_timeout(&ep->ready,
					    XPRT_RDMA_ABANDON_DELAY))
		if (xprt_rdma_ep_abandoned(client))
			rpcrdma_conn_close(conn, -ESHUTDOWN);
	if (ep->established) {
		client->ep = ep;
		return 0;
	}
	wait_for_completion(&ep->closed);
	status = ep->status;
	rpcrdma_conn_put(conn);
	xprt_rdma_ep_put(ep);
	return status < 0 ? status : -ECONNABORTED;
}

/* sunrpc fails an RPC, hard or soft, for any status that it does not know. */
static int xprt_rdma_ep_connect_status(int status)
{
	switch (status) {
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -ECONNABORTED:
	case -ENETDOWN:
	case -ENETUNREACH:
	case -EHOSTUNREACH:
	case -EPROTO:
	case -EADDRINUSE:
	case -ENOTCONN:
	case -ETIMEDOUT:
	case -ENOBUFS:
		return status;
	case -ENOMEM:
	case -EAGAIN:
		return -ENOBUFS;
	case -ENODEV:
	case -EADDRNOTAVAIL:
		return -EHOSTUNREACH;
	default:
		return -ECONNABORTED;
	}
}

static void xprt_rdma_ep_connected(struct xprt_rdma_client *client)
{
	struct rpc_xprt *xprt = &client->xprt;

	WRITE_ONCE(client->reply_lost, false);
	xprt->stat.connect_count++;
	xprt->stat.connect_time += (long)jiffies - xprt->stat.connect_start;
	xprt_set_connected(xprt);
	xprt_clear_connecting(xprt);
	xprt_unlock_connect(xprt, client);
	xprt_wake_pending_tasks(xprt, -EAGAIN);
}

static void xprt_rdma_ep_connect_now(struct xprt_rdma_client *client)
{
	struct rpc_xprt *xprt = &client->xprt;
	unsigned int nofs = memalloc_nofs_save(), noreclaim = 0;
	bool swap = atomic_read(&xprt->swapper);
	int status;

	if (swap)
		noreclaim = memalloc_noreclaim_save();

	status = xprt_rdma_ep_try(client);
	if (!status) {
		xprt_rdma_ep_connected(client);
	} else {
		if (status == -ECONNREFUSED)
			xprt->reestablish_timeout =
				min_t(unsigned long, xprt->reestablish_timeout,
				      XPRT_RDMA_REFUSED_RECONNECT_DELAY);
		xprt_wake_pending_tasks(xprt,
					xprt_rdma_ep_connect_status(status));
		xprt_clear_connecting(xprt);
		xprt_unlock_connect(xprt, client);
	}

	if (swap)
		memalloc_noreclaim_restore(noreclaim);
	memalloc_nofs_restore(nofs);
}

static void xprt_rdma_ep_connect_later(struct xprt_rdma_client *client)
{
	long delay = client->connect_at - jiffies;

	queue_delayed_work(xprt_rdma_connect_wq, &client->connect_work,
			   clamp(delay, 0L, (long)XPRT_RDMA_ABANDON_DELAY));
}

static void xprt_rdma_ep_connect_worker(struct work_struct *work)
{
	struct xprt_rdma_client *client =
		container_of(to_delayed_work(work), struct xprt_rdma_client,
			     connect_work);

	if (time_before(jiffies,
			client->connect_at) && !xprt_rdma_ep_abandoned(client))
		xprt_rdma_ep_connect_later(client);
	else
		xprt_rdma_ep_connect_now(client);
}

/**
 * xprt_rdma_ep_init - before the first connection
 * @client: the new client
 */
void xprt_rdma_ep_init(struct xprt_rdma_client *client)
{
	INIT_DELAYED_WORK(&client->connect_work, xprt_rdma_ep_connect_worker);
	client->connect_at = jiffies;
}

/* What is left of the pause since the last attempt began */
static unsigned long xprt_rdma_ep_pause(const struct xprt_rdma_client *client)
{
	long pause = client->xprt.reestablish_timeout;
	long left = client->connect_at + pause - jiffies;

	return clamp(left, 0L, pause);
}

/**
 * xprt_rdma_ep_connect - the rpc_xprt_ops's connect
 * @xprt: not connected
 * @task: holds XPRT_LOCKED, which passes to the worker
 *
 * The first attempt is made at once. Each one that does not lead to a Reply
 * doubles the time until the next, up to a few seconds if it is refused.
 */
void xprt_rdma_ep_connect(struct rpc_xprt *xprt, struct rpc_task *task)
{
	struct xprt_rdma_client *client = xprt_rdma_client_of(xprt);

	client->connect_at = jiffies + xprt_rdma_ep_pause(client);
	WARN_ON_ONCE(!xprt_lock_connect(xprt, task, client));
	xprt_reconnect_backoff(xprt, XPRT_RDMA_INITIAL_RECONNECT_DELAY);
	xprt_rdma_ep_connect_later(client);
}

/**
 * xprt_rdma_ep_close - the rpc_xprt_ops's close
 * @xprt: XPRT_LOCKED is held
 *
 * Tasks start anew only when the old connection can reach none of their memory.
 *
 * Context: sleeps until the connection is closed.
 */
void xprt_rdma_ep_close(struct rpc_xprt *xprt)
{
	struct xprt_rdma_client *client = xprt_rdma_client_of(xprt);
	struct xprt_rdma_endpoint *ep = client->ep;

	if (ep) {
		client->ep = NULL;
		WRITE_ONCE(ep->closing, true);
		rpcrdma_conn_close(ep->conn, -ESHUTDOWN);
		wait_for_completion(&ep->closed);
		xprt_rdma_ep_put(ep);
	}
	xprt_disconnect_done(xprt);
}
