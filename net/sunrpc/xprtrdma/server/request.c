// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Requests, and how a received message becomes an svc_rqst.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/sunrpc/xprt.h>

#include "server_private.h"
#include "../trace.h"

static struct kmem_cache *svcrdma_request_cache;

/**
 * svcrdma_request_init - create the cache of requests
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int svcrdma_request_init(void)
{
	svcrdma_request_cache = kmem_cache_create("svcrdma_request",
						  sizeof(struct svcrdma_request),
						  0, SLAB_HWCACHE_ALIGN, NULL);
	return svcrdma_request_cache ? 0 : -ENOMEM;
}

/**
 * svcrdma_request_exit - destroy the cache of requests
 *
 * Context: may sleep. No request is left.
 */
void svcrdma_request_exit(void)
{
	kmem_cache_destroy(svcrdma_request_cache);
	svcrdma_pages_exit();
}

/* If the connection is gone, no request stays. */
static void svcrdma_request_rest_later(struct svcrdma_service *service)
{
	if (!rpcrdma_conn_enter(service->conn))
		return;
	rpcrdma_rest_later(service->conn);
	rpcrdma_conn_leave(service->conn);
}

static struct svcrdma_request *svcrdma_request_alloc(struct svcrdma_service *service)
{
	struct svcrdma_request *request;

	request = kmem_cache_alloc(svcrdma_request_cache, GFP_KERNEL);
	if (!request)
		return NULL;
	request->pages = kcalloc(service->max_pages, sizeof(*request->pages), GFP_KERNEL);
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
	svcrdma_request_rest_later(service);
	return request;
}

/* Free a request that is in no list and holds no message and only spare pages. */
static void svcrdma_request_free(struct svcrdma_request *request)
{
	svcrdma_pages_put_spares(request);
	atomic_dec(&request->service->num_requests);
	kfree(request->pages);
	if (!request->service->conn->stuck)
		kmem_cache_free(svcrdma_request_cache, request);
}

/* Free the requests that follow each other by next_idle. */
static void svcrdma_request_free_all(struct svcrdma_request *request)
{
	struct svcrdma_request *next;

	for (; request; request = next) {
		next = request->next_idle;
		svcrdma_request_free(request);
	}
}

static struct svcrdma_request *svcrdma_request_take_idle_locked(struct svcrdma_service *service)
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
 * Context: may sleep.
 * Return: a request without a message, or NULL if memory is short.
 */
struct svcrdma_request *svcrdma_request_get(struct svcrdma_service *service)
{
	struct svcrdma_request *request;

	spin_lock_bh(&service->lock);
	request = svcrdma_request_take_idle_locked(service);
	spin_unlock_bh(&service->lock);
	return request ?: svcrdma_request_alloc(service);
}

/**
 * svcrdma_request_put_recv - give back the receive buffer of a request
 * @request: a request whose arguments are no longer used
 *
 * Then the next message can be received.
 *
 * Context: process, or a callback of the connection.
 */
void svcrdma_request_put_recv(struct svcrdma_request *request)
{
	struct rpcrdma_recv *recv = svcrdma_request_take_recv(request);

	if (recv)
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
	/* The device may still send what is in them. */
	if (unlikely(service->conn->stuck))
		request->num_pages = 0;
	if (request->num_pages)
		svcrdma_pages_put(request);
	if (request->num_spares && svcrdma_pages_too_many_spares(service))
		svcrdma_pages_put_spares(request);

	spin_lock_bh(&service->lock);
	svcrdma_tally_locked(request);
	if (service->num_idle < service->max_idle) {
		request->next_idle = service->idle;
		service->idle = request;
		service->num_idle++;
		request = NULL;
	}
	spin_unlock_bh(&service->lock);
	if (request)
		svcrdma_request_free(request);
}

/**
 * svcrdma_request_discard - free all that no thread will look at any more
 * @service: a detached service, to which nothing is added any more
 *
 * The svc_xprt may stay as long as nfsd knows the client. Its pages and messages
 * need not.
 *
 * Context: process.
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
	idle = service->idle;
	service->idle = NULL;
	service->num_idle = 0;
	service->max_idle = 0;
	spin_unlock_bh(&service->lock);
	svcrdma_read_admission_close(&service->read_admission, &waiting);

	list_for_each_entry_safe(recv, next_recv, &received, list)
		rpcrdma_recv_put(recv);
	list_for_each_entry_safe(request, next_request, &waiting, list)
		svcrdma_request_put(request);
	svcrdma_request_free_all(idle);
}

/* The request that was used last is the first, so those that rested are the last ones. */
static struct svcrdma_request *svcrdma_request_isolate_locked(struct svcrdma_service *service)
{
	struct svcrdma_request *isolated, **link = &service->idle;
	unsigned int kept;

	lockdep_assert_held(&service->lock);
	for (kept = 0; *link && !(*link)->rested; kept++) {
		(*link)->rested = true;
		link = &(*link)->next_idle;
	}
	isolated = *link;
	*link = NULL;
	service->num_idle = kept;
	return isolated;
}

/*
 * Keep one of the requests that rested, without spare pages, if no other is idle.
 *
 * Return: those to free.
 */
static struct svcrdma_request *svcrdma_request_keep_one(struct svcrdma_service *service,
							struct svcrdma_request *isolated)
{
	struct svcrdma_request *next = isolated->next_idle;
	bool keep;

	svcrdma_pages_put_spares(isolated);
	spin_lock_bh(&service->lock);
	keep = !service->idle && service->max_idle;
	if (keep) {
		isolated->next_idle = NULL;
		service->idle = isolated;
		service->num_idle = 1;
	}
	spin_unlock_bh(&service->lock);
	return keep ? next : isolated;
}

/**
 * svcrdma_request_rest - free the requests that were idle since this was called last
 * @conn: the connection
 *
 * One stays, so that the connection goes on when memory is short. The spare pages of
 * connections that rest would count against those of busy ones, so none stays.
 *
 * The connection's ->rest.
 *
 * Context: process.
 * Return: true if there is more than a connection keeps.
 */
bool svcrdma_request_rest(struct rpcrdma_conn *conn)
{
	struct svcrdma_service *service = conn->role;
	struct svcrdma_request *isolated;

	spin_lock_bh(&service->lock);
	isolated = svcrdma_request_isolate_locked(service);
	spin_unlock_bh(&service->lock);
	if (isolated)
		svcrdma_request_free_all(svcrdma_request_keep_one(service, isolated));
	return atomic_read(&service->num_requests) > 1 || atomic_read(&service->num_spares);
}

/* Return: false if the service is detached, and @entry remains the caller's. */
static bool svcrdma_service_add_locked(struct svcrdma_service *service,
				       struct list_head *entry, struct list_head *list)
{
	lockdep_assert_held(&service->lock);
	if (service->detached)
		return false;
	list_add_tail(entry, list);
	svcrdma_service_wake_locked(service);
	return true;
}

static bool svcrdma_service_add(struct svcrdma_service *service,
				struct list_head *entry, struct list_head *list)
{
	bool taken;

	spin_lock_bh(&service->lock);
	taken = svcrdma_service_add_locked(service, entry, list);
	spin_unlock_bh(&service->lock);
	return taken;
}

/*
 * There is no memory for a request. Dropping the message would cost the requester
 * a credit. So the message goes to the end of the list. The thread waits before
 * that, as it does in the RPC server when it finds no pages.
 */
static void svcrdma_request_retry_later(struct svcrdma_service *service,
					struct rpcrdma_recv *recv)
{
	memalloc_retry_wait(GFP_KERNEL);
	if (!svcrdma_service_add(service, &recv->list, &service->received))
		rpcrdma_recv_put(recv);
}

/**
 * svcrdma_received - queue a message that arrived
 * @conn: the connection
 * @recv: the message, which is the layer's from now on
 *
 * The connection's ->received.
 *
 * Context: a callback of the connection.
 */
void svcrdma_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv)
{
	struct svcrdma_service *service = conn->role;
	bool taken;

	svcrdma_count(SVCRDMA_STAT_RECV);
	spin_lock_bh(&service->lock);
	taken = svcrdma_service_add_locked(service, &recv->list, &service->received);
	if (taken)
		svcrdma_grant_call(&service->grant, atomic_inc_return(&service->calls_held),
				   jiffies);
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

	if (!svcrdma_service_add(service, &request->list, &service->resume))
		svcrdma_request_put(request);
}

/**
 * struct svcrdma_next - what a thread does next
 * @resume: a request to resume; if NULL:
 * @recv: a message, or NULL if there is nothing to do
 * @idle: a request for @recv, or NULL if one has to be allocated
 *
 * On the stack of svcrdma_recvfrom().
 */
struct svcrdma_next {
	struct svcrdma_request *resume;
	struct rpcrdma_recv *recv;
	struct svcrdma_request *idle;
};

/*
 * Requests to resume go first, because they hold pages and are older. XPT_DATA is
 * set and cleared under the same lock, so no message is overlooked.
 */
static struct svcrdma_next svcrdma_request_take_next(struct svcrdma_service *service)
{
	struct svcrdma_next next = {};

	spin_lock_bh(&service->lock);
	next.resume = list_first_entry_or_null(&service->resume, struct svcrdma_request, list);
	if (next.resume)
		list_del(&next.resume->list);
	else
		next.recv = list_first_entry_or_null(&service->received,
						     struct rpcrdma_recv, list);
	if (next.recv) {
		list_del(&next.recv->list);
		next.idle = svcrdma_request_take_idle_locked(service);
	}
	if (list_empty(&service->resume) && list_empty(&service->received))
		clear_bit(XPT_DATA, &service->xprt.xpt_flags);
	spin_unlock_bh(&service->lock);
	return next;
}

/* The arguments stay where they were received. */
static void svcrdma_request_inline_arguments(struct svcrdma_request *request,
					     struct svc_rqst *rqstp)
{
	struct xdr_buf *arg = &rqstp->rq_arg;

	arg->head[0].iov_base = request->recv->data + request->msg.header_len;
	arg->head[0].iov_len = request->msg.payload_len;
	arg->pages = rqstp->rq_pages;
	arg->page_base = 0;
	arg->page_len = 0;
	arg->tail[0].iov_base = NULL;
	arg->tail[0].iov_len = 0;
	arg->len = request->msg.payload_len;
	arg->buflen = arg->len;
}

/* Answer a Call that nfsd cannot get. The caller must not use the request afterwards. */
static void svcrdma_request_refuse(struct svcrdma_request *request)
{
	request->msg.error = RPCRDMA_ERR_BAD_XDR;
	svcrdma_reply_error(request);
}

/*
 * Give nfsd what it needs besides the arguments. From now on nfsd owns the request.
 *
 * Return: length of the arguments in octets, or zero if nfsd must not get them.
 */
static int svcrdma_request_hand_over(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	const struct kvec *head = &rqstp->rq_arg.head[0];
	struct svc_xprt *xprt = rqstp->rq_xprt;

	request->again = !svcrdma_call_gss(head->iov_base, head->iov_len);
	if (!request->again && svcrdma_call_truncated(head->iov_base, head->iov_len)) {
		svcrdma_request_refuse(request);
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

/* Threads that take up Calls of different versions may log the same change twice. */
static void svcrdma_request_note_version(const struct svcrdma_request *request)
{
	struct svcrdma_service *service = request->service;
	u32 version = request->msg.version;

	if (READ_ONCE(service->version) == version)
		return;
	WRITE_ONCE(service->version, version);
	rpcrdma_conn_log_version(service->conn, version);
}

/*
 * Version 2 needs no agreement on remote invalidation, but the administrator can
 * forbid it in both versions.
 */
static void svcrdma_request_choose_handle(struct svcrdma_request *request)
{
	const struct svcrdma_service *service = request->service;

	request->invalidate = service->may_invalidate && request->msg.num_segments &&
		rpcrdma_wire_choose_handle(&request->msg,
					   service->conn->agreement.remote_inv,
					   &request->handle);
}

static int svcrdma_request_take_up_call(struct svcrdma_request *request,
					struct svc_rqst *rqstp)
{
	int len;

	trace_rpcrdma_call_form(request->service->conn, &request->msg, request->recv->len,
				false);
	svcrdma_request_note_version(request);
	if (svcrdma_denied_before(request)) {
		svcrdma_request_refuse(request);
		return 0;
	}
	svcrdma_request_choose_handle(request);
	request->args = svcrdma_choose_args(&request->msg,
					    request->recv->data + request->msg.header_len);
	svcrdma_tally_call(request);
	if (request->args == SVCRDMA_ARGS_INLINE) {
		svcrdma_request_inline_arguments(request, rqstp);
		len = svcrdma_request_hand_over(request, rqstp);
		if (len && request->msg.num_writes)
			svcrdma_pages_hold(request, rqstp);
		return len;
	}
	request->args_len = svcrdma_args_len(&request->msg, request->args);
	if (svcrdma_pull_refused(request, rqstp)) {
		svcrdma_request_refuse(request);
		return 0;
	}
	if (!svcrdma_pull_needed(&request->msg)) {
		svcrdma_pull_inline(request, rqstp);
		return svcrdma_request_hand_over(request, rqstp);
	}
	svcrdma_pull_start(request, rqstp);
	return 0;
}

/*
 * If a header is too broken to tell its direction, and a backward Call with its XID
 * waits for a Reply, the message is taken for that Reply and is not answered.
 */
static enum rpcrdma_verdict svcrdma_request_decode(struct svcrdma_request *request)
{
	bool backward = READ_ONCE(request->service->xprt.xpt_bc_xprt);
	u32 version_max = request->service->conn->config.version_max;
	struct rpcrdma_message *msg = &request->msg;
	enum rpcrdma_verdict verdict;

	verdict = rpcrdma_wire_decode(msg, request->recv->data, request->recv->len,
				      RPCRDMA_RESPONDER, backward, version_max);
	if (backward && msg->direction == RPCRDMA_DIRECTION_UNKNOWN &&
	    svcrdma_callback_waits(request->service, msg->xid))
		return RPCRDMA_DROP;
	return verdict;
}

static int svcrdma_request_take_up_message(struct svcrdma_service *service,
					   const struct svcrdma_next *next,
					   struct svc_rqst *rqstp)
{
	struct svcrdma_request *request = next->idle ?: svcrdma_request_alloc(service);
	struct rpcrdma_recv *recv = next->recv;
	enum rpcrdma_verdict verdict;

	if (!request) {
		svcrdma_request_retry_later(service, recv);
		return 0;
	}
	request->recv = recv;
	request->invalidate = false;
	request->results.count = 0;

	verdict = svcrdma_request_decode(request);
	if (verdict == RPCRDMA_USE) {
		if (request->msg.direction == RPCRDMA_CALL)
			return svcrdma_request_take_up_call(request, rqstp);
		request->tally.received = RPCRDMA_A_TRAFFIC_BACKWARD;
		request->tally.received_inline = request->msg.payload_len;
		request->tally.received_copied = request->msg.payload_len;
		svcrdma_callback_reply(request);
		svcrdma_request_put(request);
		return 0;
	}

	request->tally.error = RPCRDMA_A_ERRORS_BAD_HEADER;
	trace_rpcrdma_bad_message(service->conn, request->msg.xid, recv->len,
				  request->msg.reason);
	if (verdict == RPCRDMA_ANSWER) {
		svcrdma_reply_error(request);
	} else {
		svcrdma_count(SVCRDMA_STAT_DROPPED);
		svcrdma_request_put(request);
	}
	return 0;
}

static int svcrdma_request_take_up_resumed(struct svcrdma_request *request,
					   struct svc_rqst *rqstp)
{
	if (!svcrdma_pull_all_read(request)) {
		svcrdma_pull_continue(request, rqstp);
		return 0;
	}
	svcrdma_tally_pulled(request);
	if (svcrdma_pull_finish(request, rqstp))
		return svcrdma_request_hand_over(request, rqstp);
	svcrdma_request_refuse(request);
	return 0;
}

/**
 * svcrdma_recvfrom - xpo_recvfrom: give a thread the next Call
 * @rqstp: the svc_rqst of the thread
 *
 * A Call with Read chunks takes two threads or more: one posts the RDMA Reads,
 * and when they are done, the next free thread resumes the request.
 *
 * Context: a thread of the RPC server; may sleep.
 * Return: octets in rq_arg, or zero if there is nothing for nfsd to do.
 */
int svcrdma_recvfrom(struct svc_rqst *rqstp)
{
	struct svcrdma_service *service = svcrdma_service_of(rqstp->rq_xprt);
	struct svcrdma_next next;

	rqstp->rq_xprt_ctxt = NULL;
	rpcrdma_compat_use_call_pages(rqstp, 0);

	next = svcrdma_request_take_next(service);
	svc_xprt_received(&service->xprt);
	if (next.resume)
		return svcrdma_request_take_up_resumed(next.resume, rqstp);
	if (next.recv)
		return svcrdma_request_take_up_message(service, &next, rqstp);
	return 0;
}
