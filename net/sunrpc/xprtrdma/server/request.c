// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Requests, and how a received message becomes an svc_rqst.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "server_private.h"
#include "../trace.h"

static struct kmem_cache *svcrdma_request_cache;

int svcrdma_request_init(void)
{
	svcrdma_request_cache = kmem_cache_create("svcrdma_request", sizeof(struct svcrdma_request),
						  0, SLAB_HWCACHE_ALIGN, NULL);
	return svcrdma_request_cache ? 0 : -ENOMEM;
}

void svcrdma_request_exit(void)
{
	kmem_cache_destroy(svcrdma_request_cache);
	svcrdma_pages_exit();
}

static struct svcrdma_request *request_alloc(struct svcrdma_service *service)
{
	struct svcrdma_request *request;

	/* In rpciod RPCs that write dirty pages may wait for this one. */
	request = kmem_cache_alloc(svcrdma_request_cache, rpc_task_gfp_mask());
	if (!request)
		return NULL;
	request->pages = kcalloc(service->max_pages, sizeof(*request->pages), rpc_task_gfp_mask());
	if (!request->pages) {
		kmem_cache_free(svcrdma_request_cache, request);
		return NULL;
	}
	request->service = service;
	request->recv = NULL;
	request->num_spares = 0;
	request->num_pages = 0;
	request->rested = false;
	request->tally = (struct svcrdma_tally){};
	atomic_inc(&service->num_requests);
	/* See later whether it is idle. If the connection is gone, no request stays. */
	if (rpcrdma_conn_enter(service->conn)) {
		rpcrdma_rest_later(service->conn);
		rpcrdma_conn_leave(service->conn);
	}
	return request;
}

/*
 * Free the requests that follow each other by next_idle. They are in no list, and hold no message
 * and only spare pages. If the connection is stuck, the device may still complete their chains,
 * so their memory stays.
 */
static void request_free(struct svcrdma_request *request)
{
	struct svcrdma_request *next;

	for (; request; request = next) {
		next = request->next_idle;
		svcrdma_pages_put_spares(request);
		atomic_dec(&request->service->num_requests);
		kfree(request->pages);
		if (!request->service->conn->stuck)
			kmem_cache_free(svcrdma_request_cache, request);
	}
}

static struct svcrdma_request *request_take_idle_locked(struct svcrdma_service *service)
{
	struct svcrdma_request *request;

	lockdep_assert_held(&service->lock);
	request = service->idle;
	if (request) {
		service->idle = request->next_idle;
		service->num_idle--;
		request->rested = false;
	}
	return request;
}

/**
 * svcrdma_request_get - take a request
 * @service: the service that needs it
 *
 * Up to service->max_idle requests are kept when they are not in use, so that a
 * busy connection does not allocate.
 *
 * Return: a request without a message, or NULL if memory is short.
 */
struct svcrdma_request *svcrdma_request_get(struct svcrdma_service *service)
{
	struct svcrdma_request *request;

	spin_lock_bh(&service->lock);
	request = request_take_idle_locked(service);
	spin_unlock_bh(&service->lock);
	return request ?: request_alloc(service);
}

/* The arguments of the request are no longer used, so the next message can be received. */
void svcrdma_request_put_recv(struct svcrdma_request *request)
{
	struct rpcrdma_recv *recv = request->recv;

	if (!recv)
		return;
	request->recv = NULL;
	atomic_dec(&request->service->calls_held);
	rpcrdma_recv_put(recv);
}

/**
 * svcrdma_request_put - give back a request and all that it holds
 * @request: a request whose rw_chain is destroyed or was never used
 *
 * Context: process, or a callback of the connection.
 */
void svcrdma_request_put(struct svcrdma_request *request)
{
	struct svcrdma_service *service = request->service;

	svcrdma_request_put_recv(request);
	/* The device may still read the pages, so they are never released. */
	if (unlikely(service->conn->stuck))
		request->num_pages = 0;
	if (request->num_pages)
		svcrdma_pages_put(request);
	if (request->num_spares && svcrdma_pages_too_many_spares(service))
		svcrdma_pages_put_spares(request);

	spin_lock_bh(&service->lock);
	svcrdma_tally_locked(request);
	request->next_idle = NULL;
	if (service->num_idle < service->max_idle) {
		request->next_idle = service->idle;
		service->idle = request;
		service->num_idle++;
		request = NULL;
	}
	spin_unlock_bh(&service->lock);
	request_free(request);
}

/**
 * svcrdma_request_discard - free all that no thread will look at any more
 * @service: a detached service, to which nothing is added any more
 *
 * The svc_xprt may stay as long as nfsd knows the client, but needs no pages or messages.
 */
void svcrdma_request_discard(struct svcrdma_service *service)
{
	struct svcrdma_request *request, *next_request, *idle;
	struct rpcrdma_recv *recv, *next_recv;
	LIST_HEAD(received);
	LIST_HEAD(waiting);

	spin_lock_bh(&service->lock);
	list_splice_init(&service->received, &received);
	list_splice_init(&service->dropped, &received);
	list_splice_init(&service->resume, &waiting);
	list_splice_init(&service->read_waiters, &waiting);
	idle = service->idle;
	service->idle = NULL;
	service->num_idle = 0;
	service->max_idle = 0;
	spin_unlock_bh(&service->lock);

	list_for_each_entry_safe(recv, next_recv, &received, list)
		rpcrdma_recv_put(recv);
	list_for_each_entry_safe(request, next_request, &waiting, list)
		svcrdma_request_put(request);
	request_free(idle);
}

/**
 * svcrdma_request_rest - free the requests that were idle since this was called last
 * @conn: the connection
 *
 * One stays, so that the connection goes on when memory is short, but without its spare pages:
 * they would count against those of busy connections. The request that was used last is the
 * first, so those that rested are the last ones.
 *
 * Return: true if there is more than a connection keeps.
 */
bool svcrdma_request_rest(struct rpcrdma_conn *conn)
{
	struct svcrdma_service *service = conn->role;
	struct svcrdma_request *request, **link;
	unsigned int kept = 0;

	spin_lock_bh(&service->lock);
	for (link = &service->idle; (request = *link); link = &request->next_idle) {
		if (request->rested && kept)
			break;
		if (request->rested)
			svcrdma_pages_put_spares(request);
		request->rested = true;
		kept++;
	}
	*link = NULL;
	service->num_idle = kept;
	spin_unlock_bh(&service->lock);
	request_free(request);
	return atomic_read(&service->num_requests) > 1 || atomic_read(&service->num_spares);
}

/* Return: false if the service is detached, and @entry remains the caller's. */
static bool service_add(struct svcrdma_service *service,
			struct list_head *entry, struct list_head *list)
{
	bool taken;

	spin_lock_bh(&service->lock);
	taken = !service->detached;
	if (taken) {
		list_add_tail(entry, list);
		svcrdma_service_wake_locked(service);
	}
	spin_unlock_bh(&service->lock);
	return taken;
}

/**
 * svcrdma_received - the connection's ->received: queue a message that arrived
 * @conn: the connection
 * @recv: the message, which the server owns from now on
 */
void svcrdma_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv)
{
	struct svcrdma_service *service = conn->role;
	bool taken;

	svcrdma_count(SVCRDMA_STAT_RECV);
	spin_lock_bh(&service->lock);
	taken = !service->detached;
	if (taken) {
		list_add_tail(&recv->list, &service->received);
		svcrdma_service_wake_locked(service);
		svcrdma_grant_call(&service->grant, atomic_inc_return(&service->calls_held),
				   jiffies);
	}
	spin_unlock_bh(&service->lock);
	if (!taken)
		rpcrdma_recv_put(recv);
}

/**
 * svcrdma_request_resume - let a thread go on with a request
 * @request: a request whose RDMA Reads are done, or that may start the next
 *	ones; the caller must not use it afterwards
 *
 * Context: process, or a callback of the connection.
 */
void svcrdma_request_resume(struct svcrdma_request *request)
{
	struct svcrdma_service *service = request->service;

	if (!service_add(service, &request->list, &service->resume))
		svcrdma_request_put(request);
}

/* Answer a Call that nfsd cannot get. The caller must not use the request afterwards. */
static void request_refuse(struct svcrdma_request *request)
{
	request->msg.error = RPCRDMA_ERR_BAD_XDR;
	svcrdma_reply_error(request);
}

/*
 * Give nfsd what it needs besides the arguments. From now on nfsd owns the request.
 *
 * Return: octets in rq_arg; zero if nfsd must not get them, and the Call is refused.
 */
static int request_hand_over(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	const struct kvec *head = &rqstp->rq_arg.head[0];
	struct svc_xprt *xprt = rqstp->rq_xprt;

	request->again = !svcrdma_call_gss(head->iov_base, head->iov_len);
	if (!request->again && svcrdma_call_truncated(head->iov_base, head->iov_len)) {
		request_refuse(request);
		return 0;
	}
	rqstp->rq_xprt_ctxt = request;
	/* Only the duplicate request cache reads this, to tell clients apart. */
	rqstp->rq_prot = XPRT_TRANSPORT_RDMA;
	svc_xprt_copy_addrs(rqstp, xprt);
	/* RDMA requesters have no privileged ports. The fabric is trusted. */
	set_bit(RQ_SECURE, &rqstp->rq_flags);
	if (test_bit(XPT_LOCAL, &xprt->xpt_flags))
		set_bit(RQ_LOCAL, &rqstp->rq_flags);
	else
		clear_bit(RQ_LOCAL, &rqstp->rq_flags);
	return rqstp->rq_arg.len;
}

static int request_take_up_call(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	struct svcrdma_service *service = request->service;
	struct rpcrdma_message *msg = &request->msg;
	int len;

	trace_rpcrdma_call_form(service->conn, msg, request->recv->len, false);
	/* Several threads at once may log the same change twice, which does no harm. */
	if (READ_ONCE(service->version) != msg->version) {
		WRITE_ONCE(service->version, msg->version);
		rpcrdma_conn_log_version(service->conn, msg->version);
	}
	/*
	 * Version 2 needs no agreement on remote invalidation, but the administrator can
	 * forbid it in both versions.
	 */
	request->invalidate = service->may_invalidate && msg->num_segments &&
		rpcrdma_wire_choose_handle(msg, service->conn->agreement.remote_inv,
					   &request->handle);
	request->args = svcrdma_choose_args(msg, request->recv->data + msg->header_len);
	request->args_len = svcrdma_args_len(msg, request->args);
	svcrdma_tally_call(request);
	if (request->args_len && svcrdma_pull_refused(request, rqstp)) {
		request_refuse(request);
		return 0;
	}
	if (svcrdma_pull_needed(msg)) {
		svcrdma_count(SVCRDMA_STAT_READ);
		request->read_offset = 0;
		request->pull_time = 0;
		svcrdma_pull_continue(request, rqstp);
		return 0;
	}
	svcrdma_pull_inline(request, rqstp);
	len = request_hand_over(request, rqstp);
	if (len && msg->num_writes)
		svcrdma_pages_hold(request, rqstp);
	return len;
}

/*
 * If a header is too broken to tell its direction, and a backward Call with its XID
 * waits for a Reply, the message is taken for that Reply and is not answered.
 */
static enum rpcrdma_verdict request_decode(struct svcrdma_request *request)
{
	bool backward = READ_ONCE(request->service->xprt.xpt_bc_xprt);
	u32 version_max = request->service->conn->config.version_max;
	struct rpcrdma_message *msg = &request->msg;
	enum rpcrdma_verdict verdict;

	verdict = rpcrdma_wire_decode(msg, request->recv->data, request->recv->len,
				      RPCRDMA_SERVER_END, backward, version_max);
	if (backward && msg->direction == RPCRDMA_DIRECTION_UNKNOWN &&
	    svcrdma_callback_waits(request->service, msg->xid))
		return RPCRDMA_DROP;
	return verdict;
}

/* @request is NULL if one has to be allocated. */
static int request_take_up_message(struct svcrdma_service *service, struct svcrdma_request *request,
				   struct rpcrdma_recv *recv, struct svc_rqst *rqstp)
{
	enum rpcrdma_verdict verdict;

	if (!request)
		request = request_alloc(service);
	if (!request) {
		/*
		 * Dropping the message would cost the requester a credit. So it goes to the
		 * end of the list, after a wait like the RPC server's when it finds no pages.
		 */
		memalloc_retry_wait(GFP_KERNEL);
		if (!service_add(service, &recv->list, &service->received))
			rpcrdma_recv_put(recv);
		return 0;
	}
	request->recv = recv;
	request->invalidate = false;
	request->results.count = 0;

	verdict = request_decode(request);
	if (verdict == RPCRDMA_USE) {
		if (request->msg.direction == RPCRDMA_CALL)
			return request_take_up_call(request, rqstp);
		request->tally.received = RPCRDMA_A_TRAFFIC_BACKWARD;
		request->tally.received_inline = request->msg.payload_len;
		request->tally.received_copied = request->msg.payload_len;
		svcrdma_callback_reply(request);
		svcrdma_request_put(request);
		return 0;
	}

	request->tally.error = RPCRDMA_A_ERRORS_BAD_HEADER;
	trace_rpcrdma_bad_message(service->conn, &request->msg, recv->len);
	if (verdict == RPCRDMA_ANSWER) {
		svcrdma_reply_error(request);
	} else {
		svcrdma_count(SVCRDMA_STAT_DROPPED);
		svcrdma_request_put(request);
	}
	return 0;
}

static int request_take_up_resumed(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	if (!svcrdma_pull_all_read(request)) {
		svcrdma_pull_continue(request, rqstp);
		return 0;
	}
	svcrdma_tally_pulled(request);
	if (svcrdma_pull_finish(request, rqstp))
		return request_hand_over(request, rqstp);
	request_refuse(request);
	return 0;
}

/**
 * svcrdma_recvfrom - xpo_recvfrom: give a thread the next Call
 * @rqstp: the svc_rqst of the thread
 *
 * A Call with Read chunks takes two threads or more: one posts the RDMA Reads,
 * and when they are done, the next free thread resumes the request. Requests to resume go
 * first, because they hold pages and are older.
 *
 * Return: octets in rq_arg, or zero if there is nothing for nfsd to do.
 */
int svcrdma_recvfrom(struct svc_rqst *rqstp)
{
	struct svcrdma_service *service = svcrdma_service_of(rqstp->rq_xprt);
	struct svcrdma_request *request, *idle = NULL;
	struct rpcrdma_recv *recv = NULL;

	rqstp->rq_xprt_ctxt = NULL;
	rpcrdma_compat_use_call_pages(rqstp, 0);

	spin_lock_bh(&service->lock);
	request = list_first_entry_or_null(&service->resume, struct svcrdma_request, list);
	if (request)
		list_del(&request->list);
	else
		recv = list_first_entry_or_null(&service->received, struct rpcrdma_recv, list);
	if (recv) {
		list_del(&recv->list);
		idle = request_take_idle_locked(service);
	}
	if (list_empty(&service->resume) && list_empty(&service->received))
		clear_bit(XPT_DATA, &service->xprt.xpt_flags);
	spin_unlock_bh(&service->lock);
	svc_xprt_received(&service->xprt);

	if (request)
		return request_take_up_resumed(request, rqstp);
	if (recv)
		return request_take_up_message(service, idle, recv, rqstp);
	return 0;
}
