// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Endpoints: connect, close, reconnect; the credits of a connection.
 *
 *	->connect --> connect_work: rpcrdma_conn_connect(), wait for ep->ready
 *		established, and the version is settled: client->ep is set, XPRT_CONNECTED
 *		else: tasks that wait get the reason, and try again later
 *	->closed --> XPRT_CLOSE_WAIT --> ->close: wait for ep->closed, then
 *		xprt_disconnect_done() makes all tasks encode and send again
 *
 * connect_work and ->close hold XPRT_LOCKED, so at most one endpoint is not closed. To destroy
 * a transport sunrpc waits for XPRT_LOCKED, but does not tell connect_work. So connect_work looks
 * every second whether the last reference to the transport is gone.
 *
 * Detours. sunrpc moves no RPC to another transport, and NFS recovers a session only when none of
 * its RPCs is left. So a transport whose own address cannot be reached connects to the address of
 * a sibling, one of the same switch that is connected: sunrpc has the same RPCs for both. Each
 * attempt begins with the own address. While a detour lasts, probes tell when it is there again.
 */
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/sunrpc/addr.h>

#include "../conn/status.h"
#include "client_private.h"

/*
 * The workers of this queue wait for servers. Those of xprtiod must not: all transports of
 * the host share them, and TCP receives in them.
 */
struct workqueue_struct *xprt_rdma_connect_wq;

#define XPRT_RDMA_INITIAL_RECONNECT_DELAY	(HZ / 4)

/*
 * The longest time between attempts while they are refused: such attempts cost little, and a
 * server that refuses may soon be back. As long as sunrpc lets a task sleep after a refusal.
 */
#define XPRT_RDMA_REFUSED_RECONNECT_DELAY	(3 * HZ)

/* How long to wait before more Receives are made, after there was no memory for them */
#define XPRT_RDMA_GROW_PAUSE	(HZ / 10)

/* How often to look whether sunrpc waits to destroy the transport */
#define XPRT_RDMA_ABANDON_DELAY	HZ

/*
 * Where there is a detour, how long an attempt may take, in ms: a sibling is connected, so the
 * server has no reason to be slow. Shorter than the period of keepalive, which makes the probes.
 */
#define XPRT_RDMA_DETOUR_TIMEOUT	10000U

/* Called by xprt_rdma_ep_put() for the last reference; may sleep. */
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

/* Wake the task that waits for Receives: it tries again to make them. */
static void ep_grow_again(struct work_struct *work)
{
	struct xprt_rdma_endpoint *ep =
		container_of(to_delayed_work(work), struct xprt_rdma_endpoint, grow_again);

	xprt_write_space(&ep->client->xprt);
}

static struct xprt_rdma_endpoint *ep_alloc(struct xprt_rdma_client *client, u32 offered)
{
	struct xprt_rdma_endpoint *ep = kvzalloc(sizeof(*ep), GFP_KERNEL);

	if (!ep)
		return NULL;
	kref_init(&ep->ref);
	ep->client = client;
	init_completion(&ep->ready);
	init_completion(&ep->closed);
	xprt_rdma_credits_init(&ep->credits, RPCRDMA_FIRST_CREDITS);
	ep->version.offered = offered;
	spin_lock_init(&ep->awaiting_lock);
	INIT_LIST_HEAD(&ep->awaiting_reply);
	INIT_LIST_HEAD(&ep->orphaned_mrs);
	INIT_DELAYED_WORK(&ep->grow_again, ep_grow_again);
	return ep;
}

/* Make more Receives. Without memory the limit of Calls in flight stays, until a later try. */
static void ep_grow(struct xprt_rdma_endpoint *ep)
{
	struct xprt_rdma_credits *credits = &ep->credits;
	u32 posted = xprt_rdma_credits_to_post(credits);

	if (posted <= credits->receives || delayed_work_pending(&ep->grow_again))
		return;
	if (rpcrdma_recv_expect(ep->conn, posted, 0)) {
		queue_delayed_work(xprtiod_workqueue, &ep->grow_again, XPRT_RDMA_GROW_PAUSE);
		return;
	}
	WRITE_ONCE(credits->receives, posted);
	xprt_rdma_slots_limit(ep->client, credits);
}

/*
 * The server grants fewer Calls than there are Receives for: it may have seen that this client
 * rests. As many as Calls are in flight do, but at least one. More are made when needed.
 */
static void ep_shrink(struct xprt_rdma_endpoint *ep)
{
	struct xprt_rdma_credits *credits = &ep->credits;
	u32 receives = clamp_t(u32, atomic_read(&credits->in_flight), 1, credits->receives);

	rpcrdma_recv_less(ep->conn, credits->receives - receives);
	WRITE_ONCE(credits->receives, receives);
	xprt_rdma_slots_limit(ep->client, credits);
}

/*
 * Whether one more Call may be sent. Makes more Receives if the Call lacks one, or if tasks wait
 * for a slot. Entered, XPRT_LOCKED is held; may sleep.
 */
bool xprt_rdma_ep_has_credit(struct xprt_rdma_endpoint *ep)
{
	/* For swap, Receives are not made again when memory is short. */
	if (unlikely(READ_ONCE(ep->credits.granted) < ep->credits.receives) &&
	    !atomic_read(&ep->client->xprt.swapper))
		ep_shrink(ep);
	if (!test_bit(XPRT_CONGESTED, &ep->client->xprt.state) &&
	    xprt_rdma_credits_left(&ep->credits))
		return true;
	ep_grow(ep);
	return xprt_rdma_credits_left(&ep->credits);
}

/*
 * Note what a Reply grants. The first one resets the reconnect delay: this server answers. The
 * transport does not use sunrpc's congestion window, so that can show the grant in sysfs.
 */
void xprt_rdma_ep_granted(struct xprt_rdma_endpoint *ep, u32 granted)
{
	struct rpc_xprt *xprt = &ep->client->xprt;

	if (!ep->credits.granted_any)
		xprt->reestablish_timeout = 0;
	if (!xprt_rdma_credits_grant(&ep->credits, granted, ep->conn->credits))
		return;
	xprt->cwnd = (unsigned long)ep->credits.granted * RPC_CWNDSCALE;
	xprt_rdma_slots_limit(ep->client, &ep->credits);
}

/* A Reply has arrived, and its Receive is given back: a task that waits may send. */
void xprt_rdma_ep_credit_back(struct xprt_rdma_endpoint *ep)
{
	xprt_rdma_credits_give(&ep->credits);
	/* Pairs with the barrier in call_submit_or_wait(). */
	smp_mb__after_atomic();
	xprt_write_space(&ep->client->xprt);
}

static void ep_established(struct rpcrdma_conn *conn)
{
	struct xprt_rdma_endpoint *ep = conn->role;
	struct rpc_xprt *xprt = &ep->client->xprt;

	ep->conn = conn;
	ep->max_mr_pages = conn->device->max_mr_pages;
	xprt->cwnd = RPC_CWNDSCALE;
	spin_lock(&xprt->transport_lock);
	ep->client->local = conn->local_addr;
	/*
	 * A task may have asked, or may yet ask, to disconnect an earlier connection. It must
	 * not close this one: hence the new cookie.
	 */
	WRITE_ONCE(xprt->connect_cookie, xprt->connect_cookie + 1);
	clear_bit(XPRT_CLOSE_WAIT, &xprt->state);
	spin_unlock(&xprt->transport_lock);
	xprt_rdma_version_begin(ep);
}

static void ep_writable(struct rpcrdma_conn *conn)
{
	struct xprt_rdma_endpoint *ep = conn->role;

	/* Pairs with the barrier in call_submit_or_wait(). */
	smp_mb();
	xprt_write_space(&ep->client->xprt);
}

static void ep_probe_established(struct rpcrdma_conn *conn)
{
	struct xprt_rdma_endpoint *ep = conn->role;

	rpcrdma_conn_close(ep->conn, -ESHUTDOWN);
	rpcrdma_conn_close(conn, -ESHUTDOWN);
}

static void ep_probe_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv)
{
	rpcrdma_recv_put(recv);
}

static void ep_probe_end(struct xprt_rdma_endpoint *ep)
{
	WRITE_ONCE(ep->probing, false);
	xprt_rdma_ep_put(ep);
	module_put(THIS_MODULE);
}

static void ep_probe_closed(struct rpcrdma_conn *conn, int status)
{
	ep_probe_end(conn->role);
}

/* It is closed before ->keepalive, and posts nothing. */
static const struct rpcrdma_conn_ops ep_probe_ops = {
	.established	= ep_probe_established,
	.received	= ep_probe_received,
	.closed		= ep_probe_closed,
};

/*
 * Try the transport's own address, while a detour goes on. If it can be reached, the detour ends,
 * and the transport connects again. It cannot use the connection of the probe itself: a connection
 * is made with XPRT_LOCKED held, and an attempt that fails must keep no RPC waiting. The probe may
 * outlive @ep->client, so it has a reference to the module.
 */
static void ep_probe(struct xprt_rdma_endpoint *ep)
{
	const struct xprt_rdma_client *client = ep->client;
	const struct rpcrdma_conn_config config = {
		.version_max		= RPCRDMA_VERSION_ONE,
		.ops			= &ep_probe_ops,
		.role			= ep,
		.omit_private_data	= true,
		.credits		= 1,
		.timeout_ms		= XPRT_RDMA_DETOUR_TIMEOUT,
	};
	struct rpcrdma_conn *conn;

	xprt_rdma_ep_get(ep);
	__module_get(THIS_MODULE);
	WRITE_ONCE(ep->probing, true);
	conn = rpcrdma_conn_connect(client->xprt.xprt_net, (struct sockaddr *)&client->source,
				    (struct sockaddr *)&client->xprt.addr, &config);
	if (IS_ERR(conn))
		ep_probe_end(ep);
	else
		rpcrdma_conn_put(conn);
}

/* Closes only if twice in a row: the first time the Replies may still be on their way. */
static void ep_keepalive(struct rpcrdma_conn *conn)
{
	struct xprt_rdma_endpoint *ep = conn->role;
	bool before = ep->wedged;

	ep->wedged = xprt_rdma_credits_wedged(&ep->credits);
	if (before && ep->wedged)
		rpcrdma_conn_close(conn, -ETIMEDOUT);
	/* Some iWARP drivers wait minutes for TCP, and the end of the last probe for them. */
	if (ep->detour && !READ_ONCE(ep->probing))
		ep_probe(ep);
}

static void ep_closed(struct rpcrdma_conn *conn, int status)
{
	struct xprt_rdma_endpoint *ep = conn->role;

	/* Only a thread that has entered queues this, and none can enter any more. */
	cancel_delayed_work_sync(&ep->grow_again);
	xprt_rdma_version_closed(ep, status);
	if (conn->stuck)
		WRITE_ONCE(ep->client->stuck, true);
	ep->status = status;
	if (ep->version.settled && !READ_ONCE(ep->closing))
		xprt_force_disconnect(&ep->client->xprt);
	complete_all(&ep->ready);
	/* The client may be freed after this. */
	complete_all(&ep->closed);
	xprt_rdma_ep_put(ep);
}

/* The memory of slots counts, too, although it stays with the transport. */
static void ep_describe(struct rpcrdma_conn *conn, struct rpcrdma_role_status *status)
{
	struct xprt_rdma_endpoint *ep = conn->role;
	struct xprt_rdma_client *client = ep->client;

	status->xprt_id = client->xprt.id;
	status->version = READ_ONCE(ep->version.settled);
	status->requested = conn->credits;
	status->granted = READ_ONCE(ep->credits.granted);
	status->in_use = atomic_read(&ep->credits.in_flight);
	status->waiting = READ_ONCE(client->xprt.backlog.qlen);
	status->memory = sizeof(*client) + sizeof(*ep) + atomic_long_read(&client->buffers_size) +
			 (u64)READ_ONCE(client->xprt.num_reqs) * sizeof(struct xprt_rdma_request) +
			 (u64)READ_ONCE(client->backward_count) *
			 (sizeof(struct xprt_rdma_backward) + XPRT_RDMA_BACKWARD_MAX + PAGE_SIZE);
}

static const struct rpcrdma_conn_ops xprt_rdma_ep_ops = {
	.established	= ep_established,
	.received	= xprt_rdma_received,
	.writable	= ep_writable,
	.keepalive	= ep_keepalive,
	.closed		= ep_closed,
	.describe	= ep_describe,
	.rest		= xprt_rdma_slots_rest,
};

static struct rpcrdma_conn *ep_start(struct xprt_rdma_client *client, struct xprt_rdma_endpoint *ep)
{
	struct rpc_xprt *xprt = &client->xprt;
	struct rpcrdma_conn_config config = {
		.ops			= &xprt_rdma_ep_ops,
		.role			= ep,
		.params.send_size	= xprt_rdma_max_inline_write,
		.params.recv_size	= xprt_rdma_max_inline_read,
		.params.remote_inv	= xprt_rdma_remote_invalidation,
		.omit_private_data	= !xprt_rdma_private_data,
		.version_max		= ep->version.offered,
		.credits		= xprt->max_reqs,
		.in_wq			= true,
		.swapper		= &xprt->swapper,
		.mrs_made		= &client->stats.mrs_made,
		.timeout_ms		= jiffies_to_msecs(xprt->connect_timeout),
	};

	if (client->detour.ss_family != AF_UNSPEC)
		config.timeout_ms = min(config.timeout_ms, XPRT_RDMA_DETOUR_TIMEOUT);
	if (client->wants_backward)
		config.backward_credits = XPRT_RDMA_BACKWARD_CREDITS;
	if (config.params.send_size > XPRT_RDMA_GATHER_MIN)
		config.send_pages = DIV_ROUND_UP(config.params.send_size, PAGE_SIZE) + 2;
	/* Routing finds the device of a detour. */
	return rpcrdma_conn_connect(xprt->xprt_net,
				    ep->detour ? NULL : (struct sockaddr *)&client->source,
				    (struct sockaddr *)(ep->detour ? &client->detour : &xprt->addr),
				    &config);
}

/* The last reference is gone: sunrpc waits for XPRT_LOCKED to destroy the transport. */
static bool ep_abandoned(struct xprt_rdma_client *client)
{
	return !kref_read(&client->xprt.kref);
}

/* Readers hold one of XPRT_LOCKED and reserve_lock. */
static void ep_set(struct xprt_rdma_client *client, struct xprt_rdma_endpoint *ep)
{
	spin_lock(&client->xprt.reserve_lock);
	client->ep = ep;
	spin_unlock(&client->xprt.reserve_lock);
}

static int ep_try(struct xprt_rdma_client *client, u32 offered, bool detour)
{
	struct xprt_rdma_endpoint *ep;
	struct rpcrdma_conn *conn;
	int status;

	if (ep_abandoned(client))
		return -ECONNABORTED;
	ep = ep_alloc(client, offered);
	if (!ep)
		return -ENOBUFS;
	ep->detour = detour;
	xprt_rdma_ep_get(ep);
	conn = ep_start(client, ep);
	if (IS_ERR(conn)) {
		xprt_rdma_ep_put(ep);
		xprt_rdma_ep_put(ep);
		return PTR_ERR(conn);
	}
	while (!wait_for_completion_timeout(&ep->ready, XPRT_RDMA_ABANDON_DELAY)) {
		if (ep_abandoned(client))
			rpcrdma_conn_close(conn, -ESHUTDOWN);
		if (xprt_rdma_version_is_overdue(ep))
			rpcrdma_conn_close(conn, -ETIMEDOUT);
	}
	if (ep->version.settled) {
		ep_set(client, ep);
		return 0;
	}
	wait_for_completion(&ep->closed);
	status = ep->status;
	/* ->established sets it, but may not have run. The last reference puts it. */
	ep->conn = conn;
	xprt_rdma_ep_put(ep);
	return status < 0 ? status : -ECONNABORTED;
}

/*
 * sunrpc fails even a hard RPC with a status that it does not know. A missing device may come
 * back in seconds, so an RPC waits for it as for a server that does not answer. With a missing
 * network sunrpc decides which tasks fail, as over TCP.
 */
static int ep_connect_status(int status)
{
	switch (status) {
	case -ENETDOWN:
	case -ENETUNREACH:
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
		return -EHOSTUNREACH;
	default:
		return -ECONNABORTED;
	}
}

static void ep_connected(struct xprt_rdma_client *client)
{
	struct rpc_xprt *xprt = &client->xprt;

	WRITE_ONCE(client->reply_lost, false);
	xprt->stat.connect_count++;
	xprt->stat.connect_time += (long)jiffies - xprt->stat.connect_start;
	xprt_set_connected(xprt);
	xprt_clear_connecting(xprt);
	/* First: a task that sends as soon as XPRT_LOCKED is free waits there for its Reply. */
	xprt_wake_pending_tasks(xprt, -EAGAIN);
	xprt_unlock_connect(xprt, client);
}

/*
 * The status of a refusal. sunrpc lets a task sleep for three seconds after one, but a server that
 * was there before may only have restarted. So as long as the pauses between attempts are shorter,
 * the task is told to try again, and ->connect makes the pauses. Not if it is to fail instead.
 */
static int ep_refused(struct xprt_rdma_client *client)
{
	struct rpc_xprt *xprt = &client->xprt;

	if (xprt->reestablish_timeout < XPRT_RDMA_REFUSED_RECONNECT_DELAY &&
	    xprt->stat.connect_count && !client->softconn)
		return -EAGAIN;
	xprt->reestablish_timeout = min_t(unsigned long, xprt->reestablish_timeout,
					  XPRT_RDMA_REFUSED_RECONNECT_DELAY);
	return -ECONNREFUSED;
}

static void ep_connect_now(struct xprt_rdma_client *client)
{
	struct rpc_xprt *xprt = &client->xprt;
	unsigned int nofs = memalloc_nofs_save(), noreclaim = 0;
	u32 offered = xprt_rdma_version_to_offer(client);
	bool swap = atomic_read(&xprt->swapper);
	int status;

	if (swap)
		noreclaim = memalloc_noreclaim_save();

	status = ep_try(client, offered, false);
	/* At once: a mount that fails frees its client, and the next one would not know. */
	if (status && offered != RPCRDMA_VERSION_ONE && client->version_one_until)
		status = ep_try(client, RPCRDMA_VERSION_ONE, false);
	/* A server that refuses is there. */
	if (status && status != -ECONNREFUSED && client->detour.ss_family != AF_UNSPEC)
		status = ep_try(client, xprt_rdma_version_to_offer(client), true);
	else
		client->detour.ss_family = AF_UNSPEC;
	if (!status) {
		ep_connected(client);
	} else {
		status = status == -ECONNREFUSED ? ep_refused(client) : ep_connect_status(status);
		xprt_wake_pending_tasks(xprt, status);
		xprt_clear_connecting(xprt);
		xprt_unlock_connect(xprt, client);
	}

	if (swap)
		memalloc_noreclaim_restore(noreclaim);
	memalloc_nofs_restore(nofs);
}

static void ep_connect_later(struct xprt_rdma_client *client)
{
	long delay = client->connect_at - jiffies;

	queue_delayed_work(xprt_rdma_connect_wq, &client->connect_work,
			   clamp(delay, 0L, (long)XPRT_RDMA_ABANDON_DELAY));
}

/* The work of client->connect_work */
void xprt_rdma_ep_connect_worker(struct work_struct *work)
{
	struct xprt_rdma_client *client =
		container_of(to_delayed_work(work), struct xprt_rdma_client, connect_work);

	if (time_before(jiffies, client->connect_at) && !ep_abandoned(client))
		ep_connect_later(client);
	else
		ep_connect_now(client);
}

/*
 * Look for a sibling that is connected to its own address, for a detour. A transport that is not in
 * the switch yet has none: NFS asks at its address whether the server is the same. nconnect's have
 * the same address. RCU keeps the memory of all, and a sibling that is lost meanwhile costs an
 * attempt.
 */
static void ep_find_detour(struct xprt_rdma_client *client, const struct rpc_clnt *clnt)
{
	const struct sockaddr *own = (struct sockaddr *)&client->xprt.addr;
	const struct rpc_xprt_switch *xps;
	struct rpc_xprt *xprt, *sibling = NULL;
	bool member = false;

	rcu_read_lock();
	xps = rcu_dereference(clnt->cl_xpi.xpi_xpswitch);
	list_for_each_entry_rcu(xprt, &xps->xps_xprt_list, xprt_switch) {
		member |= xprt == &client->xprt;
		if (xprt->ops == client->xprt.ops && test_bit(XPRT_CONNECTED, &xprt->state) &&
		    /* It may begin to connect again now. */
		    data_race(xprt_rdma_client_of(xprt)->detour.ss_family) == AF_UNSPEC &&
		    !rpc_cmp_addr_port(own, (struct sockaddr *)&xprt->addr))
			sibling = xprt;
	}
	client->detour.ss_family = AF_UNSPEC;
	if (member && sibling)
		client->detour = sibling->addr;
	rcu_read_unlock();
}

/*
 * The rpc_xprt_ops's connect. XPRT_LOCKED passes from @task to connect_work. The first attempt
 * is made at once. Each attempt that leads to no Reply doubles the time until the next one, but
 * to three seconds at most if it is refused. Does not sleep.
 */
void xprt_rdma_ep_connect(struct rpc_xprt *xprt, struct rpc_task *task)
{
	struct xprt_rdma_client *client = xprt_rdma_client_of(xprt);
	long pause = xprt->reestablish_timeout;
	long left = client->connect_at + pause - jiffies;

	client->connect_at = jiffies + clamp(left, 0L, pause);
	client->program = task->tk_client->cl_prog;
	client->program_version = task->tk_client->cl_vers;
	client->softconn = RPC_IS_SOFTCONN(task);
	ep_find_detour(client, task->tk_client);
	WARN_ON_ONCE(!xprt_lock_connect(xprt, task, client));
	xprt_reconnect_backoff(xprt, XPRT_RDMA_INITIAL_RECONNECT_DELAY);
	ep_connect_later(client);
}

/*
 * The rpc_xprt_ops's close, with XPRT_LOCKED. Sleeps until the connection is closed: tasks send
 * again only when none of their memory can be reached through it.
 */
void xprt_rdma_ep_close(struct rpc_xprt *xprt)
{
	struct xprt_rdma_client *client = xprt_rdma_client_of(xprt);
	struct xprt_rdma_endpoint *ep = client->ep;

	if (ep) {
		ep_set(client, NULL);
		WRITE_ONCE(ep->closing, true);
		rpcrdma_conn_close(ep->conn, -ESHUTDOWN);
		wait_for_completion(&ep->closed);
		xprt_rdma_ep_put(ep);
	}
	/* sunrpc gives a task without a slot no time-out, and 7.3 does not kill it. */
	xprt_rdma_slots_limit(client, NULL);
	xprt_disconnect_done(xprt);
}
