// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connect, close, reconnect; and the credits of a connection.
 *
 *	->connect --> connect_work: rpcrdma_conn_connect(), wait for ->ready
 *		established: client->link is set, XPRT_CONNECTED
 *		else: waiting tasks get the reason, and try again later
 *	->closed --> XPRT_CLOSE_WAIT --> ->close: wait for ->closed, then
 *		xprt_disconnect_done() has all tasks encode and send anew
 *
 * Each step holds XPRT_LOCKED, so there is never more than one link that is
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
struct workqueue_struct *rpcrdma_connect_wq;

#define INITIAL_RECONNECT_DELAY		HZ

/*
 * At most, between attempts that are refused. sunrpc itself waits as long before it
 * asks for another. They cost little, and who refuses may be about to be back.
 */
#define REFUSED_RECONNECT_DELAY		(3 * HZ)

/* Do not ask for Receives again for so long if there was no memory for them. */
#define GROW_PAUSE			(HZ / 10)

/* How long a transport that nobody wants any more may go on connecting */
#define ABANDON_DELAY			HZ

static void link_release(struct kref *ref)
{
	struct rpcrdma_link *link = container_of(ref, struct rpcrdma_link, ref);
	struct rpcrdma_mr *mr, *next;

	list_for_each_entry_safe(mr, next, &link->forsaken, list)
		rpcrdma_mr_put(mr);
	if (link->conn)
		rpcrdma_conn_put(link->conn);
	kvfree(link);
}

void rpcrdma_link_get(struct rpcrdma_link *link)
{
	kref_get(&link->ref);
}

void rpcrdma_link_put(struct rpcrdma_link *link)
{
	kref_put(&link->ref, link_release);
}

/* Whoever waits for memory for Receives asks for it once more. */
static void link_grow_again(struct work_struct *work)
{
	struct rpcrdma_link *link = container_of(to_delayed_work(work),
						 struct rpcrdma_link,
						 grow_again);

	xprt_write_space(&link->client->xprt);
}

static struct rpcrdma_link *link_alloc(struct rpcrdma_client *client)
{
	struct rpcrdma_link *link = kvzalloc(sizeof(*link), GFP_KERNEL);

	if (!link)
		return NULL;
	kref_init(&link->ref);
	link->client = client;
	init_completion(&link->ready);
	init_completion(&link->closed);
	rpcrdma_credits_init(&link->credits, RPCRDMA_FIRST_CREDITS);
	spin_lock_init(&link->owed_lock);
	INIT_LIST_HEAD(&link->owed);
	INIT_LIST_HEAD(&link->forsaken);
	INIT_DELAYED_WORK(&link->grow_again, link_grow_again);
	return link;
}

/* Without memory there are no more Calls in flight than there were, for now. */
static void link_grow(struct rpcrdma_link *link, u32 requested)
{
	struct rpcrdma_credits *credits = &link->credits;
	u32 posted = rpcrdma_credits_to_post(credits, requested);

	if (posted <= credits->posted)
		return;
	if (delayed_work_pending(&link->grow_again))
		return;
	if (rpcrdma_recv_expect(link->conn, posted, 0)) {
		queue_delayed_work(xprtiod_workqueue, &link->grow_again, GROW_PAUSE);
		return;
	}
	rpcrdma_credits_posted(credits, posted);
	rpcrdma_slots_limit(link->client, credits);
}

/**
 * rpcrdma_link_has_credit - whether one more Call may be sent
 * @link: the connection
 *
 * Makes more Receives if the Call would have its credit if it were not for these,
 * or if others wait for a slot.
 *
 * Context: XPRT_LOCKED is held; may sleep.
 * Return: true if one may.
 */
bool rpcrdma_link_has_credit(struct rpcrdma_link *link)
{
	u32 requested = link->conn->config.credits;

	if (test_bit(XPRT_CONGESTED, &link->client->xprt.state) ||
	    !rpcrdma_credits_left(&link->credits, requested))
		link_grow(link, requested);
	return rpcrdma_credits_left(&link->credits, requested);
}

/**
 * rpcrdma_link_granted - take notice of the grant in a Reply
 * @link: where it arrived
 * @credits: rdma_credit, but no more than was requested
 *
 * A server that answers deserves a prompt reconnect.
 *
 * Context: ->received.
 */
void rpcrdma_link_granted(struct rpcrdma_link *link, u32 credits)
{
	if (!link->credits.answered)
		link->client->xprt.reestablish_timeout = 0;
	if (rpcrdma_credits_grant(&link->credits, credits))
		rpcrdma_slots_limit(link->client, &link->credits);
}

/**
 * rpcrdma_link_credit_back - a Reply has arrived and its buffer is back
 * @link: where it arrived
 */
void rpcrdma_link_credit_back(struct rpcrdma_link *link)
{
	rpcrdma_credits_give(&link->credits);
	/* Pairs with the one in send_or_park(). */
	smp_mb__after_atomic();
	xprt_write_space(&link->client->xprt);
}

/*
 * Some RPC may not get its Reply, and sunrpc sends no second Call by the same
 * connection where the protocol forbids it: see client_timer().
 */
static void link_dropped(struct rpcrdma_link *link, bool backward)
{
	WRITE_ONCE(link->client->reply_lost, true);
	if (rpcrdma_credits_freed_by(&link->reply, backward))
		rpcrdma_link_credit_back(link);
}

static void link_established(struct rpcrdma_conn *conn)
{
	struct rpcrdma_link *link = conn->role;
	struct rpc_xprt *xprt = &link->client->xprt;

	link->conn = conn;
	link->max_mr_pages = conn->device->max_mr_pages;
	WRITE_ONCE(link->client->backward_payload,
		   rpcrdma_form_backward(&conn->agreement, PAGE_SIZE));
	spin_lock(&xprt->transport_lock);
	link->client->local = conn->local_addr;
	/*
	 * A task that learns late of an earlier failure asks to disconnect. What
	 * it has asked is over, and its cookie is not this connection's.
	 */
	WRITE_ONCE(xprt->connect_cookie, xprt->connect_cookie + 1);
	clear_bit(XPRT_CLOSE_WAIT, &xprt->state);
	spin_unlock(&xprt->transport_lock);
	link->established = true;
	complete_all(&link->ready);
}

static void link_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv)
{
	struct rpcrdma_link *link = conn->role;
	struct rpcrdma_message *msg = &link->reply;
	bool backward = conn->config.backward_credits;
	enum rpcrdma_verdict verdict;

	verdict = rpcrdma_wire_decode(msg, recv->data, recv->len,
				      RPCRDMA_REQUESTER, backward);
	if (verdict == RPCRDMA_USE) {
		if (msg->direction == RPCRDMA_REPLY)
			rpcrdma_reply_received(link, recv);
		else
			rpcrdma_backward_received(link, recv);
		return;
	}

	trace_rpcrdma_bad_message(conn, msg->xid, recv->len, msg->reason);
	link->client->stats.bad_replies++;
	rpcrdma_recv_put(recv);
	if (verdict == RPCRDMA_DROP) {
		link_dropped(link, backward);
	} else if (verdict == RPCRDMA_ANSWER_ERR_VERS) {
		rpcrdma_backward_refuse(conn, msg, RPCRDMA_ERR_VERS);
		/* Of another version nobody knows whether it was a Reply. */
		WRITE_ONCE(link->client->reply_lost, true);
	} else if (verdict == RPCRDMA_ANSWER_ERR_CHUNK) {
		rpcrdma_backward_refuse(conn, msg, RPCRDMA_ERR_CHUNK);
	}
}

static void link_writable(struct rpcrdma_conn *conn)
{
	struct rpcrdma_link *link = conn->role;

	/* Pairs with the one in send_or_park(). */
	smp_mb();
	xprt_write_space(&link->client->xprt);
}

/* Twice in a row: the Replies may be on their way. */
static bool link_wedged(struct rpcrdma_conn *conn)
{
	struct rpcrdma_link *link = conn->role;
	bool before = link->wedged;

	link->wedged = rpcrdma_credits_wedged(&link->credits,
					      conn->config.credits);
	return before && link->wedged;
}

static void link_closed(struct rpcrdma_conn *conn, int status)
{
	struct rpcrdma_link *link = conn->role;

	/* None can be queued any more: only who has entered the connection does. */
	cancel_delayed_work_sync(&link->grow_again);
	link->status = status;
	if (link->established && !READ_ONCE(link->closing))
		xprt_force_disconnect(&link->client->xprt);
	complete_all(&link->ready);
	/* The client may be gone after this. */
	complete_all(&link->closed);
	rpcrdma_link_put(link);
}

static const struct rpcrdma_conn_ops link_ops = {
	.established	= link_established,
	.received	= link_received,
	.writable	= link_writable,
	.wedged		= link_wedged,
	.closed		= link_closed,
};

static struct rpcrdma_conn *link_start(struct rpcrdma_client *client,
				       struct rpcrdma_link *link)
{
	struct rpc_xprt *xprt = &client->xprt;
	const struct sockaddr *source = NULL;
	struct rpcrdma_conn_config config = {
		.ops			= &link_ops,
		.role			= link,
		.params.send_size	= rpcrdma_max_inline_write,
		.params.recv_size	= rpcrdma_max_inline_read,
		.params.remote_inv	= rpcrdma_remote_invalidation,
		.omit_private_data	= !rpcrdma_private_data,
		.credits		= xprt->max_reqs,
		.swapper		= &xprt->swapper,
		.timeout_ms		= jiffies_to_msecs(xprt->connect_timeout),
	};

	if (client->source.ss_family != AF_UNSPEC)
		source = (struct sockaddr *)&client->source;
	if (client->wants_backward)
		config.backward_credits = RPCRDMA_BACKWARD_CREDITS;
	if (config.params.send_size > RPCRDMA_GATHER_MIN)
		config.send_pages = config.params.send_size / PAGE_SIZE + 2;
	return rpcrdma_conn_connect(xprt->xprt_net, source,
				    (struct sockaddr *)&xprt->addr, &config);
}

/* sunrpc, without the last reference, waits for XPRT_LOCKED to destroy it. */
static bool link_abandoned(struct rpcrdma_client *client)
{
	return !kref_read(&client->xprt.kref);
}

/* Each connection is a new one, and so may differ in all that it agrees on. */
static int link_try(struct rpcrdma_client *client)
{
	struct rpcrdma_link *link;
	struct rpcrdma_conn *conn;
	int status;

	if (link_abandoned(client))
		return -ECONNABORTED;
	link = link_alloc(client);
	if (!link)
		return -ENOBUFS;
	rpcrdma_link_get(link);
	conn = link_start(client, link);
	if (IS_ERR(conn)) {
		rpcrdma_link_put(link);
		rpcrdma_link_put(link);
		return PTR_ERR(conn);
	}
	while (!wait_for_completion_timeout(&link->ready, ABANDON_DELAY))
		if (link_abandoned(client))
			rpcrdma_conn_close(conn, -ESHUTDOWN);
	if (link->established) {
		client->link = link;
		return 0;
	}
	wait_for_completion(&link->closed);
	status = link->status;
	rpcrdma_conn_put(conn);
	rpcrdma_link_put(link);
	return status < 0 ? status : -ECONNABORTED;
}

/* sunrpc fails an RPC, hard or soft, for any status that it does not know. */
static int connect_status(int status)
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

static void link_connected(struct rpcrdma_client *client)
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

static void link_connect_now(struct rpcrdma_client *client)
{
	struct rpc_xprt *xprt = &client->xprt;
	unsigned int nofs = memalloc_nofs_save(), noreclaim = 0;
	bool swap = atomic_read(&xprt->swapper);
	int status;

	if (swap)
		noreclaim = memalloc_noreclaim_save();

	status = link_try(client);
	if (!status) {
		link_connected(client);
	} else {
		if (status == -ECONNREFUSED)
			xprt->reestablish_timeout =
				min_t(unsigned long, xprt->reestablish_timeout,
				      REFUSED_RECONNECT_DELAY);
		xprt_wake_pending_tasks(xprt, connect_status(status));
		xprt_clear_connecting(xprt);
		xprt_unlock_connect(xprt, client);
	}

	if (swap)
		memalloc_noreclaim_restore(noreclaim);
	memalloc_nofs_restore(nofs);
}

static void link_connect_later(struct rpcrdma_client *client)
{
	long delay = client->connect_at - jiffies;

	queue_delayed_work(rpcrdma_connect_wq, &client->connect_work,
			   clamp(delay, 0L, (long)ABANDON_DELAY));
}

static void link_connect_worker(struct work_struct *work)
{
	struct rpcrdma_client *client =
		container_of(to_delayed_work(work), struct rpcrdma_client,
			     connect_work);

	if (time_before(jiffies, client->connect_at) && !link_abandoned(client))
		link_connect_later(client);
	else
		link_connect_now(client);
}

/**
 * rpcrdma_link_init - before the first connection
 * @client: the new client
 */
void rpcrdma_link_init(struct rpcrdma_client *client)
{
	INIT_DELAYED_WORK(&client->connect_work, link_connect_worker);
	client->connect_at = jiffies;
}

/* What is left of the pause since the last attempt began */
static unsigned long link_pause(const struct rpcrdma_client *client)
{
	long pause = client->xprt.reestablish_timeout;
	long left = client->connect_at + pause - jiffies;

	return clamp(left, 0L, pause);
}

/**
 * rpcrdma_link_connect - the rpc_xprt_ops's connect
 * @xprt: not connected
 * @task: holds XPRT_LOCKED, which passes to the worker
 *
 * The first attempt is made at once. Each one that does not lead to a Reply
 * doubles the time until the next, up to a few seconds if it is refused.
 */
void rpcrdma_link_connect(struct rpc_xprt *xprt, struct rpc_task *task)
{
	struct rpcrdma_client *client = rpcrdma_client_of(xprt);

	client->connect_at = jiffies + link_pause(client);
	WARN_ON_ONCE(!xprt_lock_connect(xprt, task, client));
	xprt_reconnect_backoff(xprt, INITIAL_RECONNECT_DELAY);
	link_connect_later(client);
}

/**
 * rpcrdma_link_close - the rpc_xprt_ops's close
 * @xprt: XPRT_LOCKED is held
 *
 * Tasks start anew only when the old connection can reach none of their memory.
 *
 * Context: sleeps until the connection is closed.
 */
void rpcrdma_link_close(struct rpc_xprt *xprt)
{
	struct rpcrdma_client *client = rpcrdma_client_of(xprt);
	struct rpcrdma_link *link = client->link;

	if (link) {
		client->link = NULL;
		WRITE_ONCE(link->closing, true);
		rpcrdma_conn_close(link->conn, -ESHUTDOWN);
		wait_for_completion(&link->closed);
		rpcrdma_link_put(link);
	}
	xprt_disconnect_done(xprt);
}
