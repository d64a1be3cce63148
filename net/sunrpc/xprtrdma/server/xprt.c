// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The svc_xprt class "rdma": listeners, and the services for the connections that
 * they accept.
 *
 * The svc_xprt and the connection end independently. nfsd may keep the svc_xprt as
 * long as it knows the client. A device that is removed ends the connection at
 * once; then all operations fail with -ENOTCONN. struct svcrdma_service is freed
 * after both have ended.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sysctl.h>

#include "../conn/status.h"
#include "server_private.h"
#include "../main.h"

/* How long a connection may take to be established after it was accepted */
#define SVCRDMA_ESTABLISH_TIMEOUT_MS	10000

/*
 * An address at which the RPC server listens. ->xpo_create allocates it for the RPC server, which
 * frees it by ->xpo_free.
 */
struct svcrdma_listener {
	struct svc_xprt xprt;
	struct rpcrdma_listener *listener;	/* until ->xpo_detach */
};

/*
 * The first and the longest delay, in jiffies, until the RPC server gets dropped Calls again.
 * Each is twice the one before.
 */
#define SVCRDMA_DROPS_FIRST	HZ
#define SVCRDMA_DROPS_MAX	(8 * HZ)

/*
 * How long a connection stays, in jiffies, after it has lost a Call, or while it has dropped
 * Calls and sends no Reply. Not shorter than the time-out of most requesters, because a new
 * connection does not help while nfsd still executes the Call.
 */
#define SVCRDMA_DROPS_LIMIT	(60 * HZ)

static struct svc_xprt_class svcrdma_xprt_class;
static struct ctl_table_header *svcrdma_sysctls;

/* Services that are not freed yet. Module exit waits for them. */
static atomic_t svcrdma_num_services;

static struct svcrdma_listener *listener_of(struct svc_xprt *xprt)
{
	return container_of(xprt, struct svcrdma_listener, xprt);
}

/**
 * svcrdma_service_wait - wait until something comes back
 * @service: the service
 * @seq: service->resource_seq before the caller found that it has to wait
 * @since: when it found that, in jiffies; earlier in a unit test
 *
 * If nothing comes back within RPCRDMA_STALL_TIMEOUT of that, the connection is closed,
 * so that a peer cannot make threads wait for ever.
 *
 * Return: false if the connection is closing.
 */
bool svcrdma_service_wait(struct svcrdma_service *service, int seq, unsigned long since)
{
	struct rpcrdma_conn *conn = service->conn;
	unsigned long limit = since + RPCRDMA_STALL_TIMEOUT;

	while (rpcrdma_conn_established(conn) && atomic_read(&service->resource_seq) == seq) {
		if (time_after(jiffies, limit))
			rpcrdma_conn_close(conn, -ETIMEDOUT);
		wait_event_idle_timeout(service->send_wait,
					atomic_read(&service->resource_seq) != seq ||
					!rpcrdma_conn_established(conn), HZ);
	}
	return rpcrdma_conn_established(conn);
}

/**
 * svcrdma_service_returned - a Send, registrations or space in the send queue came back
 * @service: the service
 *
 * Wakes the threads that wait for a Send, and the first request in read admission.
 *
 * Context: process, or a callback of the connection.
 */
void svcrdma_service_returned(struct svcrdma_service *service)
{
	/* A full barrier: a waiter that sees the new count finds what came back. */
	atomic_inc_return(&service->resource_seq);
	/* One that still saw the old count is in the queue or the list, and is woken. */
	if (waitqueue_active(&service->send_wait))
		wake_up_all(&service->send_wait);
	svcrdma_read_wake(service);
}

/*
 * The requester rests: grant few credits. With one it could not show that it needs more. Not while
 * others have Calls of it, as their Replies may still grant more; nor at the first of many Calls.
 */
static void service_grant_few(struct svcrdma_service *service)
{
	spin_lock_bh(&service->lock);
	if (!atomic_read(&service->calls_held) &&
	    atomic_read(&service->num_requests) == service->num_idle + 1)
		svcrdma_grant_init(&service->grant, min(service->grant.granted, 2U));
	spin_unlock_bh(&service->lock);
}

/**
 * svcrdma_service_grant - the credits that a Reply grants
 * @service: the service
 * @requested: credits that the Call asked for; zero for an error, which may grant nothing
 *
 * Makes more Receives first if the requester needs more credits. Of threads that do so at the
 * same time, the first makes all of the Receives. If the grant has fallen, one less is needed.
 * The caller has the Call's request, and has given its Receive back. If connections share Receives
 * and few of them are posted, each is told less than it was granted, until there are more.
 *
 * Return: credits. Unless they are shared, there is a Receive for each of them.
 */
u32 svcrdma_service_grant(struct svcrdma_service *service, u32 requested)
{
	struct svcrdma_grant *grant = &service->grant;
	struct rpcrdma_conn *conn = service->conn;
	bool few = rpcrdma_recv_few(conn);
	u32 wanted, granted;

	if (requested) {
		WRITE_ONCE(service->requested, requested);
		if (time_after(jiffies, READ_ONCE(grant->since) + SVCRDMA_GRANT_REST))
			service_grant_few(service);
	}
	wanted = min3(READ_ONCE(grant->wanted), requested, conn->credits);
	if (wanted > READ_ONCE(grant->granted) && !few) {
		int ret = rpcrdma_recv_expect(conn, wanted, 0);

		spin_lock_bh(&service->lock);
		/* Another thread may have found fewer to be enough. */
		svcrdma_grant_raise(grant, ret ? 0 : min(wanted, READ_ONCE(conn->recv_credits)));
		spin_unlock_bh(&service->lock);
	} else if (requested && READ_ONCE(conn->recv_credits) > READ_ONCE(grant->wanted)) {
		spin_lock_bh(&service->lock);
		if (READ_ONCE(conn->recv_credits) > grant->wanted)
			rpcrdma_recv_less(conn, 1);
		spin_unlock_bh(&service->lock);
	}
	granted = READ_ONCE(grant->granted);
	return few ? DIV_ROUND_UP(granted, SVCRDMA_GRANT_FEW) : granted;
}

/**
 * svcrdma_service_wake_locked - let a thread call svcrdma_recvfrom()
 * @service: a service that is not detached
 *
 * Does nothing until the connection is established, because no Reply could be sent.
 *
 * Context: holds service->lock, so that the service is not detached meanwhile and
 * the RPC server exists.
 */
void svcrdma_service_wake_locked(struct svcrdma_service *service)
{
	lockdep_assert_held(&service->lock);
	if (!service->ready)
		return;
	set_bit(XPT_DATA, &service->xprt.xpt_flags);
	svc_xprt_enqueue(&service->xprt);
}

/* Make the RPC server close a connection, unless it does so already. */
void svcrdma_service_close(struct svcrdma_service *service)
{
	spin_lock_bh(&service->lock);
	if (!service->detached)
		svc_xprt_deferred_close(&service->xprt);
	spin_unlock_bh(&service->lock);
}

/*
 * Give the RPC server its dropped Calls again. If one is lost, the requester has to repeat it,
 * with NFSv4 only on another connection. So this one is closed SVCRDMA_DROPS_LIMIT later. It is
 * also closed if it sends no Reply for that long: on the next one another Call may come first.
 */
static void service_drop_work(struct work_struct *work)
{
	struct svcrdma_service *service =
		container_of(to_delayed_work(work), struct svcrdma_service, drop_work);

	spin_lock_bh(&service->lock);
	if (service->detached || (list_empty(&service->dropped) && !service->lost)) {
		service->drop_delay = 0;
		goto out;
	}
	if (READ_ONCE(service->replied) && !service->lost)
		service->drop_since = jiffies;
	WRITE_ONCE(service->replied, false);
	if (time_after_eq(jiffies, service->drop_since + SVCRDMA_DROPS_LIMIT)) {
		svc_xprt_deferred_close(&service->xprt);
		goto out;
	}
	list_splice_tail_init(&service->dropped, &service->received);
	if (!list_empty(&service->received))
		svcrdma_service_wake_locked(service);
	service->drop_delay = min_t(unsigned long, 2 * service->drop_delay, SVCRDMA_DROPS_MAX);
	queue_delayed_work(xprtiod_workqueue, &service->drop_work, service->drop_delay);
out:
	spin_unlock_bh(&service->lock);
}

/* Put a reference to the memory of a service. */
void svcrdma_service_put(struct svcrdma_service *service)
{
	if (!refcount_dec_and_test(&service->users))
		return;
	rpcrdma_conn_put(service->conn);
	mutex_destroy(&service->read_start);
	kfree(service);
	if (atomic_dec_and_test(&svcrdma_num_services))
		wake_up_var(&svcrdma_num_services);
}

static struct svcrdma_service *service_alloc(struct svc_xprt *listener, struct rpcrdma_conn *conn)
{
	struct svc_serv *serv = listener->xpt_server;
	struct svcrdma_service *service;

	service = kzalloc(sizeof(*service), GFP_NOIO);
	if (!service)
		return NULL;
	service->conn = conn;
	service->reply_version = RPCRDMA_VERSION_ONE;
	refcount_set(&service->users, 2);
	INIT_DELAYED_WORK(&service->drop_work, service_drop_work);
	spin_lock_init(&service->lock);
	INIT_LIST_HEAD(&service->received);
	INIT_LIST_HEAD(&service->resume);
	INIT_LIST_HEAD(&service->read_waiters);
	INIT_LIST_HEAD(&service->dropped);
	init_waitqueue_head(&service->send_wait);
	mutex_init(&service->read_start);
	svcrdma_grant_init(&service->grant, RPCRDMA_FIRST_CREDITS);
	/* As many pages as a thread has for a Reply, and one more for what is spliced */
	service->max_pages = DIV_ROUND_UP(serv->sv_max_mesg, PAGE_SIZE) + 4;
	atomic_inc(&svcrdma_num_services);
	svc_xprt_init(listener->xpt_net, &svcrdma_xprt_class, &service->xprt, serv);
	return service;
}

/* The connection's callbacks; svcrdma_received() and svcrdma_request_rest() are in request.c. */

/* Messages that arrived before this have waited, as no Reply could be sent. */
static void service_established(struct rpcrdma_conn *conn)
{
	struct svcrdma_service *service = conn->role;

	/* No thread looks at a message before service->ready. */
	svcrdma_rw_limits(service);
	spin_lock_bh(&service->lock);
	service->ready = true;
	if (!list_empty(&service->received) && !service->detached)
		svcrdma_service_wake_locked(service);
	spin_unlock_bh(&service->lock);
}

/* svcrdma_has_wspace() may allow another Call now. */
static void service_writable(struct rpcrdma_conn *conn)
{
	struct svcrdma_service *service = conn->role;

	svcrdma_service_returned(service);
	spin_lock_bh(&service->lock);
	if (!service->detached)
		svc_xprt_enqueue(&service->xprt);
	spin_unlock_bh(&service->lock);
}

static void service_closed(struct rpcrdma_conn *conn, int status)
{
	struct svcrdma_service *service = conn->role;

	svcrdma_service_close(service);
	svcrdma_service_returned(service);
	svcrdma_service_put(service);
}

static void service_describe(struct rpcrdma_conn *conn, struct rpcrdma_role_status *status)
{
	struct svcrdma_service *service = conn->role;
	size_t request = sizeof(struct svcrdma_request) +
			 service->max_pages * sizeof(struct page *);

	status->version = READ_ONCE(service->version);
	status->requested = READ_ONCE(service->requested);
	status->granted = READ_ONCE(service->grant.granted);
	status->in_use = atomic_read(&service->calls_held);
	status->memory = sizeof(*service) + (u64)atomic_read(&service->num_requests) * request +
			 (u64)(atomic_read(&service->num_spares) +
			       atomic_read(&service->num_held)) * PAGE_SIZE;
}

static const struct rpcrdma_conn_ops svcrdma_service_ops = {
	.established	= service_established,
	.received	= svcrdma_received,
	.writable	= service_writable,
	.closed		= service_closed,
	.describe	= service_describe,
	.rest		= svcrdma_request_rest,
};

/*
 * An RDMA requester connects from any free port, so the port does not identify it.
 * nfsd's duplicate request cache compares ports. With the real ones it would take a
 * Call that is repeated on another connection for a new one.
 */
static void service_set_addresses(struct svc_xprt *xprt, const struct rpcrdma_conn *conn)
{
	const struct sockaddr *local = (const struct sockaddr *)&conn->local_addr;
	struct sockaddr_storage storage = conn->peer_addr;
	struct sockaddr *remote = (struct sockaddr *)&storage;

	rpc_set_port(remote, 0);
	svc_xprt_set_local(xprt, local, svc_addr_len(local));
	svc_xprt_set_remote(xprt, remote, svc_addr_len(remote));
	if (rpc_cmp_addr(local, remote))
		set_bit(XPT_LOCAL, &xprt->xpt_flags);
}

static int service_accept(struct svcrdma_service *service)
{
	unsigned int size = READ_ONCE(svcrdma_max_req_size);
	u32 version_max = READ_ONCE(svcrdma_version_max);
	u32 longest = rpcrdma_wire_threshold(version_max, size);
	struct rpcrdma_conn_config config = {
		.ops			= &svcrdma_service_ops,
		.role			= service,
		.params.send_size	= size,
		.params.recv_size	= size,
		.params.remote_inv	= READ_ONCE(svcrdma_remote_invalidation),
		.omit_private_data	= !READ_ONCE(svcrdma_private_data),
		.version_max		= version_max,
		.credits		= READ_ONCE(svcrdma_max_requests),
		.backward_credits	= READ_ONCE(svcrdma_max_bc_requests),
		.send_pages		= DIV_ROUND_UP(longest, PAGE_SIZE) + 2,
		.read_depth		= READ_ONCE(svcrdma_max_reads),
		.sq_full		= &svcrdma_counters[SVCRDMA_STAT_SQ_STARVE],
		.timeout_ms		= SVCRDMA_ESTABLISH_TIMEOUT_MS,
		.shared_receives	= READ_ONCE(svcrdma_shared_receives),
	};

	config.rw_contexts = config.credits;
	service->max_idle = config.credits + config.backward_credits;
	service->may_invalidate = config.params.remote_inv;
	set_bit(XPT_CONG_CTRL, &service->xprt.xpt_flags);
	set_bit(XPT_CACHE_AUTH, &service->xprt.xpt_flags);
	service_set_addresses(&service->xprt, service->conn);
	return rpcrdma_conn_accept(service->conn, &config);
}

/*
 * A connection that cannot be accepted goes to the RPC server, too, as one to be
 * closed. So there is only one way to end. Its ->closed is not called.
 */
static struct svc_xprt *svcrdma_accept(struct svc_xprt *xprt)
{
	struct rpcrdma_listener *listener = listener_of(xprt)->listener;
	struct svcrdma_service *service;
	struct rpcrdma_conn *conn;
	int ret;

	clear_bit(XPT_CONN, &xprt->xpt_flags);
	conn = rpcrdma_listener_next(listener);
	if (!conn)
		return NULL;
	/* There may be more. The core will ask again. */
	set_bit(XPT_CONN, &xprt->xpt_flags);

	service = service_alloc(xprt, conn);
	if (!service) {
		rpcrdma_listener_refused(listener, RPCRDMA_REFUSAL_MEMORY, -ENOMEM,
					 &conn->local_addr, &conn->peer_addr);
		rpcrdma_conn_close(conn, -ENOMEM);
		rpcrdma_conn_put(conn);
		return NULL;
	}
	ret = service_accept(service);
	if (ret) {
		/* -ECONNABORTED: the client has given up before. */
		if (ret != -ECONNABORTED)
			rpcrdma_listener_refused(listener, RPCRDMA_REFUSAL_SETUP, ret,
						 &conn->local_addr, &conn->peer_addr);
		svcrdma_service_close(service);
		svcrdma_service_put(service);
	} else {
		rpcrdma_listener_accepted(listener);
	}
	return &service->xprt;
}

static void svcrdma_incoming(void *role)
{
	struct svc_xprt *xprt = role;

	set_bit(XPT_CONN, &xprt->xpt_flags);
	svc_xprt_enqueue(xprt);
}

static struct svc_xprt *svcrdma_xprt_create(struct svc_serv *serv, struct net *net,
					    struct sockaddr *addr, int len, int flags)
{
	struct svcrdma_listener *service;
	struct rpcrdma_listener *listener;
	struct svc_xprt *xprt;

	service = kzalloc(sizeof(*service), GFP_KERNEL);
	if (!service)
		return ERR_PTR(-ENOMEM);
	xprt = &service->xprt;
	svc_xprt_init(net, &svcrdma_xprt_class, xprt, serv);
	set_bit(XPT_LISTENER, &xprt->xpt_flags);
	strscpy(xprt->xpt_remotebuf, "listener", sizeof(xprt->xpt_remotebuf));

	/* From now on connections wait until the core calls ->xpo_accept. */
	listener = rpcrdma_listener_create(net, addr, svcrdma_incoming, xprt);
	if (IS_ERR(listener)) {
		put_net_track(xprt->xpt_net, &xprt->ns_tracker);
		kfree(service);
		return ERR_CAST(listener);
	}
	service->listener = listener;
	addr = (struct sockaddr *)rpcrdma_listener_address(listener);
	svc_xprt_set_local(xprt, addr, svc_addr_len(addr));
	return xprt;
}

/*
 * The core calls this once, before it puts its reference. Threads may still work on
 * requests, and nfsd4 may keep the svc_xprt for a long time.
 */
static void svcrdma_detach(struct svc_xprt *xprt)
{
	struct svcrdma_service *service = svcrdma_service_of(xprt);

	if (test_bit(XPT_LISTENER, &xprt->xpt_flags)) {
		rpcrdma_listener_destroy(listener_of(xprt)->listener);
		return;
	}
	spin_lock_bh(&service->lock);
	service->detached = true;
	spin_unlock_bh(&service->lock);
	cancel_delayed_work_sync(&service->drop_work);
	rpcrdma_conn_close(service->conn, -ESHUTDOWN);
	svcrdma_request_discard(service);
}

static void svcrdma_xprt_free(struct svc_xprt *xprt)
{
	if (test_bit(XPT_LISTENER, &xprt->xpt_flags))
		kfree(listener_of(xprt));
	else
		svcrdma_service_put(svcrdma_service_of(xprt));
}

/*
 * @ctxt is a Call that the RPC server drops, otherwise NULL. The requester waits for the Reply,
 * and does without the credit, as long as the connection exists. So the message is kept, which
 * is enough to start again; the pages that were pulled belong to the thread. RPCSEC_GSS takes no
 * Call twice, so a Call of it is lost.
 */
static void svcrdma_release_ctxt(struct svc_xprt *xprt, void *ctxt)
{
	struct svcrdma_service *service = svcrdma_service_of(xprt);
	struct svcrdma_request *request = ctxt;

	if (!request)
		return;
	svcrdma_pages_unhold(request);
	spin_lock_bh(&service->lock);
	if (service->detached)
		goto out;
	service->conn->counters.errors[RPCRDMA_A_ERRORS_DROPPED]++;
	/* The work schedules itself anew as long as Calls are dropped. */
	if (!service->drop_delay) {
		service->drop_delay = SVCRDMA_DROPS_FIRST;
		service->drop_since = jiffies;
		queue_delayed_work(xprtiod_workqueue, &service->drop_work, SVCRDMA_DROPS_FIRST);
	}
	if (request->again) {
		/* It counts when it is received again. */
		request->tally = (struct svcrdma_tally){};
		list_add_tail(&request->recv->list, &service->dropped);
		request->recv = NULL;
	} else if (!service->lost) {
		service->lost = true;
		service->drop_since = jiffies;
	}
out:
	spin_unlock_bh(&service->lock);
	svcrdma_request_put(request);
}

/*
 * Threads take another Call only if no Reply waits for space in the send queue, and if more Sends
 * are free, or can still be made, than threads work for the connection. So no thread waits for
 * either while there is memory, however slow the requester is, and no more Replies wait than
 * threads were at work when the first had to.
 */
static int svcrdma_has_wspace(struct svc_xprt *xprt)
{
	struct rpcrdma_conn *conn = svcrdma_service_of(xprt)->conn;

	return !rpcrdma_chain_waits(conn) &&
	       rpcrdma_send_left(conn, atomic_read(&xprt->xpt_nr_rqsts));
}

static void svcrdma_kill_temp_xprt(struct svc_xprt *xprt)
{
}

static const struct svc_xprt_ops svcrdma_xprt_ops = {
	.xpo_create		= svcrdma_xprt_create,
	.xpo_accept		= svcrdma_accept,
	.xpo_has_wspace		= svcrdma_has_wspace,
	.xpo_recvfrom		= svcrdma_recvfrom,
	.xpo_sendto		= svcrdma_sendto,
	.xpo_result_payload	= svcrdma_result_payload,
	.xpo_release_ctxt	= svcrdma_release_ctxt,
	.xpo_detach		= svcrdma_detach,
	.xpo_free		= svcrdma_xprt_free,
	.xpo_kill_temp_xprt	= svcrdma_kill_temp_xprt,
};

static struct svc_xprt_class svcrdma_xprt_class = {
	.xcl_name		= "rdma",
	.xcl_owner		= THIS_MODULE,
	.xcl_ops		= &svcrdma_xprt_ops,
	.xcl_max_payload	= RPCSVC_MAXPAYLOAD,
	.xcl_ident		= XPRT_TRANSPORT_RDMA,
};

int svcrdma_init(void)
{
	int ret;

	ret = svcrdma_request_init();
	if (ret)
		return ret;
	ret = xprt_register_transport(&svcrdma_callback_class);
	if (ret)
		goto err_request;
	ret = svc_reg_xprt_class(&svcrdma_xprt_class);
	if (ret)
		goto err_callback;
	svcrdma_sysctls = svcrdma_sysctl_register();
	return 0;

err_callback:
	xprt_unregister_transport(&svcrdma_callback_class);
err_request:
	svcrdma_request_exit();
	return ret;
}

/*
 * Each svc_xprt has a reference to the module, so none is left. Connections may still be closing.
 */
void svcrdma_exit(void)
{
	unregister_sysctl_table(svcrdma_sysctls);
	svc_unreg_xprt_class(&svcrdma_xprt_class);
	xprt_unregister_transport(&svcrdma_callback_class);
	wait_var_event(&svcrdma_num_services, !atomic_read(&svcrdma_num_services));
	svcrdma_request_exit();
}
