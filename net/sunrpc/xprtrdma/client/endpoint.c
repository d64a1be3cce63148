// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Endpoints: connect, close, reconnect; the credits and the version of a connection.
 *
 *	->connect --> connect_work: rpcrdma_conn_connect(), wait for ep->ready
 *		established: client->ep is set, XPRT_CONNECTED
 *		else: tasks that wait get the reason, and try again later
 *	->closed --> XPRT_CLOSE_WAIT --> ->close: wait for ep->closed, then
 *		xprt_disconnect_done() makes all tasks encode and send again
 *
 * connect_work and ->close hold XPRT_LOCKED, so at most one endpoint is not closed. To
 * destroy a transport sunrpc waits for XPRT_LOCKED. So connect_work checks once a second
 * whether sunrpc does.
 */
#define pr_fmt(fmt) "rpcrdma: " fmt

#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "../conn/status.h"
#include "client_private.h"

/*
 * The workers of this queue wait for servers. Those of xprtiod must not: all transports of
 * the host share them, and TCP receives in them.
 */
struct workqueue_struct *xprt_rdma_connect_wq;

#define XPRT_RDMA_INITIAL_RECONNECT_DELAY	HZ

/*
 * The longest time between attempts while they are refused. sunrpc waits that long
 * before it asks for another attempt. Such attempts cost little, and a server that
 * refuses may soon be back.
 */
#define XPRT_RDMA_REFUSED_RECONNECT_DELAY	(3 * HZ)

/* How long to wait before more Receives are made, after there was no memory for them */
#define XPRT_RDMA_GROW_PAUSE	(HZ / 10)

/* How long a transport may go on connecting when sunrpc waits to destroy it */
#define XPRT_RDMA_ABANDON_DELAY	HZ

/**
 * xprt_rdma_ep_release - free an endpoint
 * @ref: its last reference
 *
 * For xprt_rdma_ep_put().
 *
 * Context: may sleep.
 */
void xprt_rdma_ep_release(struct kref *ref)
{
	struct xprt_rdma_endpoint *ep = container_of(ref, struct xprt_rdma_endpoint, ref);
	struct rpcrdma_mr *mr, *next;

	list_for_each_entry_safe(mr, next, &ep->orphaned_mrs, list)
		rpcrdma_mr_put(mr);
	if (ep->conn)
		rpcrdma_conn_put(ep->conn);
	kvfree(ep);
}

/* The task that waits for Receives tries again to make them. */
static void xprt_rdma_ep_grow_again(struct work_struct *work)
{
	struct xprt_rdma_endpoint *ep =
		container_of(to_delayed_work(work), struct xprt_rdma_endpoint, grow_again);

	xprt_write_space(&ep->client->xprt);
}

/* The server may have dropped the first Call, as one of version 1 may do. */
static void xprt_rdma_ep_offer_timeout(struct work_struct *work)
{
	struct xprt_rdma_endpoint *ep =
		container_of(to_delayed_work(work), struct xprt_rdma_endpoint, offer_timer);

	if (xprt_rdma_version_time_out(&ep->version))
		rpcrdma_conn_close(ep->conn, -ETIMEDOUT);
}

/* The highest version to be used on the next connection */
static u32 xprt_rdma_ep_offer(struct xprt_rdma_client *client)
{
	unsigned long until = client->version_one_until;

	if (until && time_before(jiffies, until))
		return RPCRDMA_VERSION_ONE;
	/* Otherwise it would be in the future again after jiffies have wrapped around. */
	client->version_one_until = 0;
	return READ_ONCE(xprt_rdma_version_max);
}

static struct xprt_rdma_endpoint *xprt_rdma_ep_alloc(struct xprt_rdma_client *client)
{
	struct xprt_rdma_endpoint *ep = kvzalloc(sizeof(*ep), GFP_KERNEL);

	if (!ep)
		return NULL;
	kref_init(&ep->ref);
	ep->client = client;
	init_completion(&ep->ready);
	init_completion(&ep->closed);
	xprt_rdma_credits_init(&ep->credits, RPCRDMA_FIRST_CREDITS);
	xprt_rdma_version_init(&ep->version, xprt_rdma_ep_offer(client),
			       READ_ONCE(xprt_rdma_remote_invalidation));
	INIT_DELAYED_WORK(&ep->offer_timer, xprt_rdma_ep_offer_timeout);
	spin_lock_init(&ep->awaiting_lock);
	INIT_LIST_HEAD(&ep->awaiting_reply);
	INIT_LIST_HEAD(&ep->orphaned_mrs);
	INIT_DELAYED_WORK(&ep->grow_again, xprt_rdma_ep_grow_again);
	ep->slot_waits = READ_ONCE(client->slot_waits);
	return ep;
}

/* Make more Receives. Without memory, the number of Calls in flight stays as it is. */
static noinline void xprt_rdma_ep_grow(struct xprt_rdma_endpoint *ep, u32 requested)
{
	struct xprt_rdma_credits *credits = &ep->credits;
	u32 posted = xprt_rdma_credits_to_post(credits, requested);

	if (posted <= credits->posted)
		return;
	if (delayed_work_pending(&ep->grow_again))
		return;
	if (rpcrdma_recv_expect(ep->conn, posted, 0)) {
		queue_delayed_work(xprtiod_workqueue, &ep->grow_again, XPRT_RDMA_GROW_PAUSE);
		return;
	}
	xprt_rdma_credits_posted(credits, posted);
	xprt_rdma_slots_limit(ep->client, credits);
}

/**
 * xprt_rdma_ep_has_credit - whether one more Call may be sent
 * @ep: the connection
 *
 * Makes more Receives if these are what keeps the Call from being sent, or if tasks wait
 * for a slot.
 *
 * Context: entered, XPRT_LOCKED is held; may sleep.
 * Return: true if one more may be sent.
 */
bool xprt_rdma_ep_has_credit(struct xprt_rdma_endpoint *ep)
{
	u32 requested = ep->conn->credits;

	if (!test_bit(XPRT_CONGESTED, &ep->client->xprt.state) &&
	    xprt_rdma_credits_left(&ep->credits, requested))
		return true;
	xprt_rdma_ep_grow(ep, requested);
	return xprt_rdma_credits_left(&ep->credits, requested);
}

/*
 * For mountstats, for the sizes that NFS chooses, and for sunrpc's limit of backward
 * messages. While the version is open, that is version 1's: version 2 allows as much, but
 * for one segment, for which xprt_rdma_form_max_payload() has room.
 */
static void xprt_rdma_ep_publish_version(struct xprt_rdma_endpoint *ep)
{
	u32 settled = xprt_rdma_version_settled(&ep->version);
	u32 version = settled ?: RPCRDMA_VERSION_ONE;
	u32 call = rpcrdma_conn_call_threshold(ep->conn, version);
	u32 reply = rpcrdma_conn_reply_threshold(ep->conn, version);
	struct xprt_rdma_client *client = ep->client;

	/* NFS reads it without a lock, when it mounts. */
	WRITE_ONCE(client->xprt.max_payload,
		   xprt_rdma_form_max_payload(version, call, reply, ep->max_mr_pages));
	WRITE_ONCE(client->backward_payload,
		   xprt_rdma_form_backward(version, call, reply, PAGE_SIZE));
	WRITE_ONCE(client->version, settled);
}

/**
 * xprt_rdma_ep_offer_made - the first Call of the highest version is about to be sent
 * @ep: the connection
 *
 * Bounds the time until it is answered (draft 6.2).
 *
 * Context: entered.
 */
void xprt_rdma_ep_offer_made(struct xprt_rdma_endpoint *ep)
{
	queue_delayed_work(xprt_rdma_connect_wq, &ep->offer_timer, XPRT_RDMA_OFFER_TIMEOUT);
}

/**
 * xprt_rdma_ep_offer_over - the offer was answered or withdrawn
 * @ep: the connection
 *
 * The version may have been settled by this.
 *
 * Context: ->received, or XPRT_LOCKED is held.
 */
void xprt_rdma_ep_offer_over(struct xprt_rdma_endpoint *ep)
{
	u32 settled = xprt_rdma_version_settled(&ep->version);

	cancel_delayed_work(&ep->offer_timer);
	if (!settled)
		return;
	xprt_rdma_ep_publish_version(ep);
	rpcrdma_conn_log_version(ep->conn, settled);
}

/**
 * xprt_rdma_ep_show_credits - let sunrpc's congestion window say what the credits are
 * @client: the client
 *
 * cwnd is what the server grants, cong the Calls that hold a credit, both in sunrpc's unit,
 * RPC_CWNDSCALE for each. This transport itself does not use them. Without a connection one
 * Call may be sent, as the first one on a connection.
 *
 * Context: any but interrupts.
 */
void xprt_rdma_ep_show_credits(struct xprt_rdma_client *client)
{
	const struct xprt_rdma_endpoint *ep;
	struct rpc_xprt *xprt = &client->xprt;
	u32 granted = 1, in_flight = 0;

	spin_lock(&xprt->transport_lock);
	ep = client->ep;
	if (ep) {
		granted = READ_ONCE(ep->credits.granted);
		in_flight = atomic_read(&ep->credits.in_flight);
	}
	xprt->cwnd = (unsigned long)granted * RPC_CWNDSCALE;
	xprt->cong = (unsigned long)in_flight * RPC_CWNDSCALE;
	spin_unlock(&xprt->transport_lock);
}

/**
 * xprt_rdma_ep_granted - note the grant of a Reply
 * @ep: where the Reply arrived
 * @credits: rdma_credit, but no more than was requested
 *
 * Resets the reconnect delay at the first Reply: this server answers.
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
 * xprt_rdma_ep_credit_back - give a credit back, and wake a task that waits for one
 * @ep: where a Reply has arrived; its receive buffer has been given back
 *
 * Context: ->received or ->done.
 */
void xprt_rdma_ep_credit_back(struct xprt_rdma_endpoint *ep)
{
	xprt_rdma_credits_give(&ep->credits);
	/* Pairs with the barrier in xprt_rdma_call_submit_or_wait(). */
	smp_mb__after_atomic();
	xprt_write_space(&ep->client->xprt);
}

static void xprt_rdma_ep_established(struct rpcrdma_conn *conn)
{
	struct xprt_rdma_endpoint *ep = conn->role;
	struct rpc_xprt *xprt = &ep->client->xprt;

	ep->conn = conn;
	ep->max_mr_pages = conn->device->max_mr_pages;
	xprt_rdma_version_begin(&ep->version, &conn->agreement);
	xprt_rdma_ep_publish_version(ep);
	spin_lock(&xprt->transport_lock);
	ep->client->local = conn->local_addr;
	/*
	 * A task may have asked to disconnect because an earlier connection failed. That
	 * connection is gone. With a new cookie such a task does not close this one.
	 */
	WRITE_ONCE(xprt->connect_cookie, xprt->connect_cookie + 1);
	clear_bit(XPRT_CLOSE_WAIT, &xprt->state);
	spin_unlock(&xprt->transport_lock);
	ep->established = true;
	complete_all(&ep->ready);
}

static void xprt_rdma_ep_writable(struct rpcrdma_conn *conn)
{
	struct xprt_rdma_endpoint *ep = conn->role;

	/* Pairs with the barrier in xprt_rdma_call_submit_or_wait(). */
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

/* No lock: the next attempt to connect reads version_one_until after ep->closed is complete. */
static void xprt_rdma_ep_note_version_lost(struct xprt_rdma_endpoint *ep,
					   struct rpcrdma_conn *conn, int status)
{
	ep->client->version_one_until = jiffies + XPRT_RDMA_VERSION_ONE_PERIOD ?: 1;
	pr_notice_ratelimited("%s: no answer in version %u: version 1 for an hour\n",
			      conn->peer, ep->version.offered);
}

static void xprt_rdma_ep_closed(struct rpcrdma_conn *conn, int status)
{
	struct xprt_rdma_endpoint *ep = conn->role;

	/* Only a thread that has entered queues these, and none can enter any more. */
	cancel_delayed_work_sync(&ep->grow_again);
	cancel_delayed_work_sync(&ep->offer_timer);
	if (xprt_rdma_version_is_lost(&ep->version, status))
		xprt_rdma_ep_note_version_lost(ep, conn, status);
	WRITE_ONCE(ep->client->version, 0);
	if (conn->stuck)
		WRITE_ONCE(ep->client->stuck, true);
	ep->status = status;
	if (ep->established && !READ_ONCE(ep->closing))
		xprt_force_disconnect(&ep->client->xprt);
	complete_all(&ep->ready);
	/* The client may be freed after this. */
	complete_all(&ep->closed);
	xprt_rdma_ep_put(ep);
}

/* Slots stay with the transport, and so does what they have allocated. */
static void xprt_rdma_ep_describe(struct rpcrdma_conn *conn, struct rpcrdma_role_status *status)
{
	struct xprt_rdma_endpoint *ep = conn->role;
	struct xprt_rdma_client *client = ep->client;

	status->xprt_id = client->xprt.id;
	status->version = xprt_rdma_version_settled(&ep->version);
	status->requested = conn->credits;
	status->granted = READ_ONCE(ep->credits.granted);
	status->in_use = atomic_read(&ep->credits.in_flight);
	status->waiting = READ_ONCE(client->xprt.backlog.qlen);
	status->credit_waits = READ_ONCE(client->slot_waits) - ep->slot_waits;
	status->memory = sizeof(*client) + sizeof(*ep) + atomic_long_read(&client->buffers_size) +
			 (u64)READ_ONCE(client->xprt.num_reqs) * sizeof(struct xprt_rdma_request);
}

static const struct rpcrdma_conn_ops xprt_rdma_ep_ops = {
	.established	= xprt_rdma_ep_established,
	.received	= xprt_rdma_received,
	.writable	= xprt_rdma_ep_writable,
	.keepalive	= xprt_rdma_ep_keepalive,
	.closed		= xprt_rdma_ep_closed,
	.describe	= xprt_rdma_ep_describe,
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
		.version_max		= ep->version.offered,
		.credits		= xprt->max_reqs,
		.poll_ctx		= IB_POLL_WORKQUEUE,
		.swapper		= &xprt->swapper,
		.mrs_made		= &client->stats.mrs_made,
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

/* The last reference is gone: sunrpc waits for XPRT_LOCKED to destroy the transport. */
static bool xprt_rdma_ep_abandoned(struct xprt_rdma_client *client)
{
	return !kref_read(&client->xprt.kref);
}

/* XPRT_LOCKED is held. The other lock is for xprt_rdma_ep_show_credits(). */
static void xprt_rdma_ep_use(struct xprt_rdma_client *client, struct xprt_rdma_endpoint *ep)
{
	spin_lock(&client->xprt.transport_lock);
	client->ep = ep;
	spin_unlock(&client->xprt.transport_lock);
}

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
	while (!wait_for_completion_timeout(&ep->ready, XPRT_RDMA_ABANDON_DELAY))
		if (xprt_rdma_ep_abandoned(client))
			rpcrdma_conn_close(conn, -ESHUTDOWN);
	if (ep->established) {
		xprt_rdma_ep_use(client, ep);
		return 0;
	}
	wait_for_completion(&ep->closed);
	status = ep->status;
	rpcrdma_conn_put(conn);
	xprt_rdma_ep_put(ep);
	return status < 0 ? status : -ECONNABORTED;
}

/*
 * With a status that sunrpc does not know it fails the RPC, even a hard one. @fatal: the
 * task that connects shall fail if the network is gone; @gone: it is. No other task gets
 * the status: those wait for XPRT_LOCKED.
 */
static int xprt_rdma_ep_connect_status(int status, bool fatal, bool gone)
{
	switch (status) {
	case -ENETDOWN:
	case -ENETUNREACH:
		return fatal && !gone ? -EHOSTUNREACH : status;
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -ECONNABORTED:
	case -EHOSTUNREACH:
	case -EPROTO:
	case -EADDRINUSE:
	case -ENOTCONN:
	case -ETIMEDOUT:
	case -ENOBUFS:
		return status;
	case -ENOMEM:
	case -EAGAIN:
	case -ENFILE:	/* a software device got no socket for the queue pair */
		return -ENOBUFS;
	case -ENODEV:
	case -EADDRNOTAVAIL:
		return fatal && gone ? -ENETUNREACH : -EHOSTUNREACH;
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
	bool swap = atomic_read(&xprt->swapper), gone;
	int status;

	if (swap)
		noreclaim = memalloc_noreclaim_save();

	status = xprt_rdma_ep_try(client);
	gone = xprt_rdma_outage_note(&client->outage, status, ktime_get_seconds());
	if (!status) {
		xprt_rdma_ep_connected(client);
	} else {
		if (status == -ECONNREFUSED)
			xprt->reestablish_timeout =
				min_t(unsigned long, xprt->reestablish_timeout,
				      XPRT_RDMA_REFUSED_RECONNECT_DELAY);
		status = xprt_rdma_ep_connect_status(status, client->netunreach_fatal, gone);
		xprt_wake_pending_tasks(xprt, status);
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
		container_of(to_delayed_work(work), struct xprt_rdma_client, connect_work);

	if (time_before(jiffies, client->connect_at) && !xprt_rdma_ep_abandoned(client))
		xprt_rdma_ep_connect_later(client);
	else
		xprt_rdma_ep_connect_now(client);
}

/**
 * xprt_rdma_ep_init - set up a client to connect
 * @client: the new client
 *
 * Context: any.
 */
void xprt_rdma_ep_init(struct xprt_rdma_client *client)
{
	INIT_DELAYED_WORK(&client->connect_work, xprt_rdma_ep_connect_worker);
	client->connect_at = jiffies;
}

/* What is left of the pause after the last attempt began, in jiffies */
static unsigned long xprt_rdma_ep_pause(const struct xprt_rdma_client *client)
{
	long pause = client->xprt.reestablish_timeout;
	long left = client->connect_at + pause - jiffies;

	return clamp(left, 0L, pause);
}

/**
 * xprt_rdma_ep_connect - the rpc_xprt_ops's connect
 * @xprt: the transport, not connected
 * @task: the task that has XPRT_LOCKED, which passes to connect_work
 *
 * The first attempt is made at once. Each attempt that does not lead to a Reply doubles
 * the time until the next one; while they are refused, up to three seconds.
 *
 * Context: XPRT_LOCKED is held; does not sleep.
 */
void xprt_rdma_ep_connect(struct rpc_xprt *xprt, struct rpc_task *task)
{
	struct xprt_rdma_client *client = xprt_rdma_client_of(xprt);

	client->connect_at = jiffies + xprt_rdma_ep_pause(client);
	client->netunreach_fatal = task->tk_flags & RPC_TASK_NETUNREACH_FATAL;
	WARN_ON_ONCE(!xprt_lock_connect(xprt, task, client));
	xprt_reconnect_backoff(xprt, XPRT_RDMA_INITIAL_RECONNECT_DELAY);
	xprt_rdma_ep_connect_later(client);
}

/**
 * xprt_rdma_ep_close - the rpc_xprt_ops's close
 * @xprt: the transport
 *
 * Tasks send again only when none of their memory can be reached through the old
 * connection.
 *
 * Context: XPRT_LOCKED is held; sleeps until the connection is closed.
 */
void xprt_rdma_ep_close(struct rpc_xprt *xprt)
{
	struct xprt_rdma_client *client = xprt_rdma_client_of(xprt);
	struct xprt_rdma_endpoint *ep = client->ep;

	if (ep) {
		xprt_rdma_ep_use(client, NULL);
		WRITE_ONCE(ep->closing, true);
		rpcrdma_conn_close(ep->conn, -ESHUTDOWN);
		wait_for_completion(&ep->closed);
		xprt_rdma_ep_put(ep);
	}
	xprt_disconnect_done(xprt);
}
