// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The svc_xprt class "rdma": listeners, and the connections they accept.
 *
 * A connection's svc_xprt and its verbs resources end independently. nfsd may
 * hold on to the former for as long as it knows the client, while a device that
 * is removed takes the latter along at once: what comes then fails with
 * -ENOTCONN. The memory goes when both are done with it, see
 * struct rpcrdma_service.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/xprt.h>

#include "server_private.h"

/* For a client to confirm what it was answered. */
#define ESTABLISH_TIMEOUT_MS	10000

/* What a Send of as many octets as are ever inline may have to gather */
#define SEND_PAGES(octets)	(DIV_ROUND_UP(octets, PAGE_SIZE) + 2)

/**
 * struct rpcrdma_service_listener - an address the RPC server listens at
 * @xprt: the svc_xprt
 * @listener: from xpo_create to xpo_detach
 *
 * Belongs to the RPC server, which frees it by xpo_free.
 */
struct rpcrdma_service_listener {
	struct svc_xprt xprt;
	struct rpcrdma_listener *listener;
};

static struct svc_xprt_class server_class;
static struct workqueue_struct *server_wq;

/* Connections whose memory is still there; module exit waits for them. */
static atomic_t num_services;

static struct rpcrdma_service_listener *to_listener(struct svc_xprt *xprt)
{
	return container_of(xprt, struct rpcrdma_service_listener, xprt);
}

/**
 * rpcrdma_service_wait - wait until something comes back
 * @service: the connection
 * @returns: service->returns before the caller found that it has to wait
 *
 * A peer that takes nothing off our hands may not keep threads waiting for ever.
 *
 * Return: false if the connection is closing.
 */
bool rpcrdma_service_wait(struct rpcrdma_service *service, int returns)
{
	struct rpcrdma_conn *conn = service->conn;
	unsigned long limit = jiffies + RPCRDMA_STALL_TIMEOUT;

	while (rpcrdma_conn_established(conn) &&
	       atomic_read(&service->returns) == returns) {
		if (time_after(jiffies, limit))
			rpcrdma_conn_close(conn, -ETIMEDOUT);
		wait_event_idle_timeout(service->room,
					atomic_read(&service->returns) != returns ||
					!rpcrdma_conn_established(conn), HZ);
	}
	return rpcrdma_conn_established(conn);
}

/**
 * rpcrdma_service_returned - a Send context, registrations or room came back
 * @service: the connection
 */
void rpcrdma_service_returned(struct rpcrdma_service *service)
{
	/* A full barrier: who sees the count finds what came back. */
	atomic_inc_return(&service->returns);
	/* And who did not see it is found here. */
	if (waitqueue_active(&service->room))
		wake_up_all(&service->room);
	rpcrdma_request_feed(service);
}

/* Threads that are here at the same time want the same, so one does it. */
static void service_grow(struct rpcrdma_service *service, unsigned int credits)
{
	int ret;

	ret = rpcrdma_recv_expect(service->conn, credits, 0);
	spin_lock(&service->lock);
	rpcrdma_grant_raise(&service->grant, ret ? 0 : credits);
	spin_unlock(&service->lock);
}

/**
 * rpcrdma_service_grant - the credits for a Reply
 * @service: the connection
 * @requested: what the Call asked for; zero if it is not known
 *
 * Context: may sleep, to make room for more messages.
 * Return: credits, for each of which there is a Receive.
 */
u32 rpcrdma_service_grant(struct rpcrdma_service *service, u32 requested)
{
	const struct rpcrdma_grant *grant = &service->grant;
	unsigned int wanted = READ_ONCE(grant->wanted);
	unsigned int max = service->conn->config.credits;

	wanted = min3(wanted, requested, max);
	if (wanted > READ_ONCE(grant->granted))
		service_grow(service, wanted);
	return min(READ_ONCE(grant->granted), max);
}

/**
 * rpcrdma_service_wake - there is something to do for a thread
 * @service: the connection, which the RPC server has not let go of
 *
 * Until the connection is established nobody could answer, so nobody is told.
 *
 * Context: holds service->lock, which is what keeps the RPC server from going
 * away meanwhile.
 */
void rpcrdma_service_wake(struct rpcrdma_service *service)
{
	if (!service->ready)
		return;
	set_bit(XPT_DATA, &service->xprt.xpt_flags);
	svc_xprt_enqueue(&service->xprt);
}

/**
 * rpcrdma_service_close - have the RPC server end a connection
 * @service: the connection
 */
void rpcrdma_service_close(struct rpcrdma_service *service)
{
	spin_lock(&service->lock);
	if (!service->detached)
		svc_xprt_deferred_close(&service->xprt);
	spin_unlock(&service->lock);
}

/* Either the RPC server gets again what it has dropped, or nobody does here. */
static void service_drop_work(struct work_struct *work)
{
	struct rpcrdma_service *service =
		container_of(to_delayed_work(work), struct rpcrdma_service,
			     drop_work);
	struct rpcrdma_drops *drops = &service->drops;

	spin_lock(&service->lock);
	if (service->detached)
		goto out;
	if (rpcrdma_drops_look(drops, READ_ONCE(service->replied), jiffies)) {
		svc_xprt_deferred_close(&service->xprt);
		goto out;
	}
	WRITE_ONCE(service->replied, false);
	if (!list_empty(&service->dropped)) {
		list_splice_tail_init(&service->dropped, &service->received);
		rpcrdma_service_wake(service);
	}
	if (drops->lost)
		queue_delayed_work(server_wq, &service->drop_work,
				   drops->delay);
out:
	spin_unlock(&service->lock);
}

static void service_free(struct work_struct *work)
{
	struct rpcrdma_service *service =
		container_of(work, struct rpcrdma_service, free_work);

	rpcrdma_conn_put(service->conn);
	mutex_destroy(&service->reads);
	kfree(service);
	if (atomic_dec_and_test(&num_services))
		wake_up_var(&num_services);
}

/* The RPC server may drop its last reference where it must not sleep. */
static void service_put(struct rpcrdma_service *service)
{
	if (refcount_dec_and_test(&service->users))
		queue_work(server_wq, &service->free_work);
}

static struct rpcrdma_service *service_alloc(struct svc_xprt *listener,
					     struct rpcrdma_conn *conn)
{
	struct svc_serv *serv = listener->xpt_server;
	struct rpcrdma_service *service;

	service = kzalloc(sizeof(*service), GFP_KERNEL);
	if (!service)
		return NULL;
	service->conn = conn;
	refcount_set(&service->users, 2);
	INIT_WORK(&service->free_work, service_free);
	INIT_DELAYED_WORK(&service->drop_work, service_drop_work);
	spin_lock_init(&service->lock);
	INIT_LIST_HEAD(&service->received);
	INIT_LIST_HEAD(&service->pulled);
	INIT_LIST_HEAD(&service->starved);
	INIT_LIST_HEAD(&service->dropped);
	rpcrdma_drops_init(&service->drops);
	INIT_LIST_HEAD(&service->idle);
	init_waitqueue_head(&service->room);
	mutex_init(&service->reads);
	rpcrdma_grant_init(&service->grant, RPCRDMA_FIRST_CREDITS);
	/* All that a thread has for a request and its Reply */
	service->max_pages = DIV_ROUND_UP(serv->sv_max_mesg, PAGE_SIZE) + 3;
	atomic_inc(&num_services);
	svc_xprt_init(listener->xpt_net, &server_class, &service->xprt, serv);
	return service;
}

/* The connection's callbacks; rpcrdma_received() is with the requests. */

/* Messages that came before could not have been answered. */
static void service_established(struct rpcrdma_conn *conn)
{
	struct rpcrdma_service *service = conn->role;

	spin_lock(&service->lock);
	service->ready = true;
	if (!list_empty(&service->received) && !service->detached)
		rpcrdma_service_wake(service);
	spin_unlock(&service->lock);
}

/* Room for Replies, which is what server_has_wspace() asks for, may be back. */
static void service_writable(struct rpcrdma_conn *conn)
{
	struct rpcrdma_service *service = conn->role;

	rpcrdma_service_returned(service);
	spin_lock(&service->lock);
	if (!service->detached)
		svc_xprt_enqueue(&service->xprt);
	spin_unlock(&service->lock);
}

static void service_closed(struct rpcrdma_conn *conn, int status)
{
	struct rpcrdma_service *service = conn->role;

	rpcrdma_service_close(service);
	rpcrdma_service_returned(service);
	service_put(service);
}

static const struct rpcrdma_conn_ops service_ops = {
	.established	= service_established,
	.received	= rpcrdma_received,
	.writable	= service_writable,
	.closed		= service_closed,
};

/*
 * An RDMA requester connects from whatever port is free, so that says nothing
 * about who it is. nfsd's duplicate request cache takes a Call that is repeated
 * by another connection for a new one unless the ports are the same.
 */
static void set_remote(struct svc_xprt *xprt, const struct rpcrdma_conn *conn)
{
	struct sockaddr_storage storage = conn->peer_addr;
	struct sockaddr *remote = (struct sockaddr *)&storage;

	rpc_set_port(remote, 0);
	svc_xprt_set_remote(xprt, remote, svc_addr_len(remote));
}

static void set_addresses(struct svc_xprt *xprt,
			  const struct rpcrdma_conn *conn)
{
	const struct sockaddr *remote =
		(const struct sockaddr *)&conn->peer_addr;
	const struct sockaddr *local =
		(const struct sockaddr *)&conn->local_addr;

	svc_xprt_set_local(xprt, local, svc_addr_len(local));
	set_remote(xprt, conn);
	if (rpc_cmp_addr(local, remote))
		set_bit(XPT_LOCAL, &xprt->xpt_flags);
}

static int service_accept(struct rpcrdma_service *service)
{
	unsigned int size = READ_ONCE(rpcrdma_max_req_size);
	struct rpcrdma_conn_config config = {
		.ops			= &service_ops,
		.role			= service,
		.params.send_size	= size,
		.params.recv_size	= size,
		.params.remote_inv	=
			READ_ONCE(rpcrdma_server_remote_invalidation),
		.omit_private_data	= !READ_ONCE(rpcrdma_server_private_data),
		.credits		= READ_ONCE(rpcrdma_max_requests),
		.backward_credits	= READ_ONCE(rpcrdma_max_bc_requests),
		.send_pages		= SEND_PAGES(size),
		.read_depth		= READ_ONCE(rpcrdma_max_reads),
		.sq_full = &rpcrdma_server_count[RPCRDMA_STAT_SQ_STARVE],
		.timeout_ms		= ESTABLISH_TIMEOUT_MS,
	};

	config.rw_contexts = config.credits;
	service->max_idle = config.credits + config.backward_credits;
	set_bit(XPT_CONG_CTRL, &service->xprt.xpt_flags);
	set_bit(XPT_CACHE_AUTH, &service->xprt.xpt_flags);
	set_addresses(&service->xprt, service->conn);
	return rpcrdma_conn_accept(service->conn, &config);
}

/*
 * One that could not be accepted goes to the RPC server all the same, as a
 * connection to be closed: so there is a single way to end.
 */
static struct svc_xprt *server_accept(struct svc_xprt *xprt)
{
	struct rpcrdma_listener *listener = to_listener(xprt)->listener;
	struct rpcrdma_service *service;
	struct rpcrdma_conn *conn;

	clear_bit(XPT_CONN, &xprt->xpt_flags);
	conn = rpcrdma_listener_next(listener);
	if (!conn)
		return NULL;
	/* There may be more; the core will ask again. */
	set_bit(XPT_CONN, &xprt->xpt_flags);

	service = service_alloc(xprt, conn);
	if (!service) {
		rpcrdma_conn_close(conn, -ENOMEM);
		rpcrdma_conn_put(conn);
		return NULL;
	}
	if (service_accept(service)) {
		rpcrdma_service_close(service);
		service_put(service);
	}
	return &service->xprt;
}

static void server_incoming(struct rpcrdma_listener *listener)
{
	struct svc_xprt *xprt = rpcrdma_listener_role(listener);

	set_bit(XPT_CONN, &xprt->xpt_flags);
	svc_xprt_enqueue(xprt);
}

static struct svc_xprt *server_create(struct svc_serv *serv, struct net *net,
				      struct sockaddr *addr, int len, int flags)
{
	struct rpcrdma_service_listener *service;
	struct rpcrdma_listener *listener;
	struct svc_xprt *xprt;

	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		return ERR_PTR(-EAFNOSUPPORT);
	service = kzalloc(sizeof(*service), GFP_KERNEL);
	if (!service)
		return ERR_PTR(-ENOMEM);
	xprt = &service->xprt;
	svc_xprt_init(net, &server_class, xprt, serv);
	set_bit(XPT_LISTENER, &xprt->xpt_flags);
	strscpy(xprt->xpt_remotebuf, "listener", sizeof(xprt->xpt_remotebuf));

	/* Who connects from now on waits until the core lets go of the xprt. */
	listener = rpcrdma_listener_create(net, addr, server_incoming, xprt);
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
 * The core calls this once, before its reference goes. Threads may still be at
 * work on earlier requests, and nfsd4 may keep the svc_xprt for long.
 */
static void service_detach(struct rpcrdma_service *service)
{
	spin_lock(&service->lock);
	service->detached = true;
	spin_unlock(&service->lock);
	cancel_delayed_work_sync(&service->drop_work);
	rpcrdma_conn_close(service->conn, -ESHUTDOWN);
	rpcrdma_request_discard(service);
}

static void server_detach(struct svc_xprt *xprt)
{
	if (test_bit(XPT_LISTENER, &xprt->xpt_flags))
		rpcrdma_listener_destroy(to_listener(xprt)->listener);
	else
		service_detach(to_service(xprt));
}

static void server_free(struct svc_xprt *xprt)
{
	if (test_bit(XPT_LISTENER, &xprt->xpt_flags))
		kfree(to_listener(xprt));
	else
		service_put(to_service(xprt));
}

/*
 * Caller holds the lock. What the requester is owed: it waits for the Reply, and
 * keeps the credit, as long as there is this connection. The message is all that it
 * takes to begin anew; what was pulled is the thread's.
 */
static void service_drop(struct rpcrdma_service *service,
			 struct rpcrdma_request *request)
{
	bool alone = list_empty(&service->dropped);
	unsigned long delay;

	delay = rpcrdma_drops_add(&service->drops, alone, request->again,
				  jiffies);
	if (request->again) {
		list_add_tail(&request->recv->list, &service->dropped);
		request->recv = NULL;
	}
	queue_delayed_work(server_wq, &service->drop_work, delay);
}

/* Of a Call that is dropped; the core gives it NULL in other cases. */
static void server_release_ctxt(struct svc_xprt *xprt, void *ctxt)
{
	struct rpcrdma_service *service = to_service(xprt);

	if (!ctxt)
		return;
	spin_lock(&service->lock);
	if (!service->detached)
		service_drop(service, ctxt);
	spin_unlock(&service->lock);
	rpcrdma_request_put(ctxt);
}

/*
 * No more Calls are taken up while Replies wait for room in the send queue, nor
 * more than there are Sends for. No thread waits for either then, whatever the
 * requester takes off our hands; and what waits is no more than as many Replies as
 * there are threads.
 */
static int server_has_wspace(struct svc_xprt *xprt)
{
	struct rpcrdma_conn *conn = to_service(xprt)->conn;

	return !rpcrdma_work_waits(conn) &&
	       rpcrdma_send_left(conn, atomic_read(&xprt->xpt_nr_rqsts));
}

static void server_kill_temp_xprt(struct svc_xprt *xprt)
{
}

static const struct svc_xprt_ops server_ops = {
	.xpo_create		= server_create,
	.xpo_accept		= server_accept,
	.xpo_has_wspace		= server_has_wspace,
	.xpo_recvfrom		= rpcrdma_recvfrom,
	.xpo_sendto		= rpcrdma_sendto,
	.xpo_result_payload	= rpcrdma_result_payload,
	.xpo_release_ctxt	= server_release_ctxt,
	.xpo_detach		= server_detach,
	.xpo_free		= server_free,
	.xpo_kill_temp_xprt	= server_kill_temp_xprt,
};

static struct svc_xprt_class server_class = {
	.xcl_name		= "rdma",
	.xcl_owner		= THIS_MODULE,
	.xcl_ops		= &server_ops,
	.xcl_max_payload	= RPCSVC_MAXPAYLOAD,
	.xcl_ident		= XPRT_TRANSPORT_RDMA,
};

static int register_classes(void)
{
	int ret = rpcrdma_callback_init();

	if (ret)
		return ret;
	ret = svc_reg_xprt_class(&server_class);
	if (ret)
		rpcrdma_callback_exit();
	return ret;
}

/**
 * rpcrdma_server_init - make the server's role available
 *
 * After rpcrdma_conn_init().
 *
 * Return: 0 or a negative errno.
 */
int rpcrdma_server_init(void)
{
	int ret = -ENOMEM;

	server_wq = alloc_workqueue("svcrdma", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!server_wq)
		return ret;
	ret = rpcrdma_request_init();
	if (ret)
		goto out_wq;
	ret = rpcrdma_server_sysctl_init();
	if (ret)
		goto out_request;
	ret = register_classes();
	if (!ret)
		return 0;

	rpcrdma_server_sysctl_exit();
out_request:
	rpcrdma_request_exit();
out_wq:
	destroy_workqueue(server_wq);
	return ret;
}

/**
 * rpcrdma_server_exit - undo rpcrdma_server_init()
 *
 * Before rpcrdma_conn_exit(). The module's references have it that nothing is
 * open any more, but connections may not have ended yet.
 */
void rpcrdma_server_exit(void)
{
	svc_unreg_xprt_class(&server_class);
	rpcrdma_callback_exit();
	wait_var_event(&num_services, !atomic_read(&num_services));
	rpcrdma_server_sysctl_exit();
	destroy_workqueue(server_wq);
	rpcrdma_request_exit();
}
