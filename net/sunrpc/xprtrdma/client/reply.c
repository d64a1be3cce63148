// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Process a Reply that has been matched with its Call: take the memory back from the
 * server, place the Reply where its task expects it, complete the RPC.
 *
 *	xprt_rdma_reply_matched()	the server may have invalidated one handle
 *	  xprt_rdma_reply_proceed()	the Call's Send is done: invalidate the other handles
 *	    reply_finish()	nobody else can reach the memory: place and complete
 *
 * The request is pinned from the first to the last step. All of them run in ->received or
 * ->done.
 */
#include "client_private.h"

/*
 * A task that sleeps gets the error as its status. One that does not sleep yet would lose
 * the status, so it finds a Reply that sunrpc takes as final: a denial.
 */
static void reply_fail_locked(struct rpc_rqst *rqst, int error)
{
	const __be32 denial[] = { rqst->rq_xid, rpc_reply, cpu_to_be32(RPC_MSG_DENIED),
				  cpu_to_be32(RPC_MISMATCH) };
	const struct kvec *head = &rqst->rq_rcv_buf.head[0];
	struct rpc_task *task = rqst->rq_task;
	int len = sizeof(*denial);

	lockdep_assert_held(&rqst->rq_xprt->queue_lock);
	if (head->iov_len >= sizeof(denial)) {
		memcpy(head->iov_base, denial, sizeof(denial));
		len = sizeof(denial);
	}
	if (RPC_IS_QUEUED(task))
		task->tk_status = error;
	xprt_complete_rqst(task, len);
}

/* Fail an RPC that cannot be sent. Its request is pinned and not on the wire. */
void xprt_rdma_rpc_fail(struct rpc_rqst *rqst, int error)
{
	spin_lock(&rqst->rq_xprt->queue_lock);
	reply_fail_locked(rqst, error);
	spin_unlock(&rqst->rq_xprt->queue_lock);
}

static void reply_release(struct xprt_rdma_request *request)
{
	rpcrdma_recv_put(request->recv);
	request->recv = NULL;
	xprt_rdma_ep_credit_back(request->ep);
}

/*
 * The connection is breaking, and the server may reach the memory until it is closed. So the RPC
 * is not completed: the task sends its Call again on the next connection.
 */
static void reply_give_up(struct xprt_rdma_request *request)
{
	struct rpc_rqst *rqst = &request->rqst;

	reply_release(request);
	request->replied = false;
	spin_lock(&rqst->rq_xprt->queue_lock);
	xprt_unpin_rqst(rqst);
	spin_unlock(&rqst->rq_xprt->queue_lock);
}

/*
 * Octets of a Reply: whole words, as sunrpc wants them, and no more than the buffer has space
 * for. More is, for instance, too much padding after data.
 */
static u32 reply_len(const struct xdr_buf *buf, u32 len)
{
	return min_t(u32, xdr_align_size(len), round_down(buf->buflen, sizeof(__be32)));
}

static void reply_set_head(struct xdr_buf *buf, u32 len)
{
	buf->head[0].iov_len = len;
	buf->tail[0].iov_base = buf->head[0].iov_base + len;
	buf->tail[0].iov_len = 0;
}

/*
 * The data item is in the pages, and is the last item of the Reply. So all that is
 * inline belongs in the head, whose length sunrpc has only estimated.
 */
static int reply_place_around_data(struct xprt_rdma_request *request)
{
	struct rpc_rqst *rqst = &request->rqst;
	u32 len = min_t(size_t, request->payload_len, rqst->rq_rcvsize);

	if (rqst->rq_rcv_buf.head[0].iov_base != rqst->rq_rbuffer)
		return -EIO;
	memcpy(rqst->rq_rbuffer, request->payload, len);
	reply_set_head(&rqst->rq_rcv_buf, len);
	reply_set_head(&rqst->rq_private_buf, len);
	return len + xdr_align_size(request->written);
}

/*
 * The Reply chunk consists of head, pages and tail, so all octets are in place, except
 * padding that the server has left out.
 */
static int reply_place_long(struct xprt_rdma_request *request)
{
	const struct xdr_buf *buf = &request->rqst.rq_rcv_buf;
	u32 len = reply_len(buf, request->written);
	const __be32 *p = buf->head[0].iov_base;
	__be32 zeros = 0;

	if (buf->head[0].iov_len < 2 * sizeof(*p) ||
	    p[0] != request->rqst.rq_xid || p[1] != rpc_reply)
		return -EIO;
	if (len > request->written &&
	    write_bytes_to_xdr_buf(buf, request->written, &zeros, len - request->written))
		return -EIO;
	return len;
}

/**
 * xprt_rdma_reply_place - place a Reply where its task expects it
 * @request: the request that the Reply answers; nobody else can reach its memory
 *
 * Some servers pad wrongly. So what is beyond the buffer is dropped, and the XDR decoder finds
 * out whether anything is missing.
 *
 * Return: octets of the Reply, in the sum of head, pages and tail; or what the RPC fails
 * with.
 */
int xprt_rdma_reply_place(struct xprt_rdma_request *request)
{
	struct rpcrdma_counters *counters = &request->ep->conn->counters;
	const struct xdr_buf *buf = &request->rqst.rq_rcv_buf;
	unsigned int form = RPCRDMA_A_TRAFFIC_INLINE;
	int ret;

	if (request->error)
		return request->error;
	if (!request->payload) {
		form = RPCRDMA_A_TRAFFIC_REPLY_CHUNK;
		ret = reply_place_long(request);
	} else if (request->written) {
		form = RPCRDMA_A_TRAFFIC_WRITE_CHUNK;
		ret = reply_place_around_data(request);
	} else {
		/* Even if a chunk was offered, the server may not have used it. */
		ret = reply_len(buf, request->payload_len);
		if (write_bytes_to_xdr_buf(buf, 0, request->payload, ret))
			ret = -EIO;
	}
	request->ep->client->stats.placed += request->written;
	request->ep->client->stats.fixup += request->payload_len;
	rpcrdma_add_traffic(&counters->received, form, request->payload_len);
	counters->received.placed_octets += request->written;
	counters->latency[rpcrdma_latency_slot(request->rqst.rq_rtt)]++;
	return ret;
}

static void reply_finish(struct xprt_rdma_request *request)
{
	int copied = xprt_rdma_reply_place(request);
	struct xprt_rdma_endpoint *ep = request->ep;
	struct rpc_rqst *rqst = &request->rqst;
	struct rpc_xprt *xprt = rqst->rq_xprt;

	if (copied < 0) {
		ep->client->stats.bad_replies++;
		/* receive.c has counted what it found. */
		if (!request->error)
			ep->conn->counters.errors[RPCRDMA_A_ERRORS_BAD_HEADER]++;
	}
	reply_release(request);
	spin_lock(&xprt->queue_lock);
	/* Under the lock: client_timer() sees both this and the Reply, or neither. */
	request->ep = NULL;
	if (copied < 0) {
		reply_fail_locked(rqst, copied);
	} else {
		xprt_update_rtt(rqst->rq_task);
		xprt_complete_rqst(rqst->rq_task, copied);
	}
	xprt_unpin_rqst(rqst);
	spin_unlock(&xprt->queue_lock);
	xprt_rdma_ep_put(ep);
}

static void reply_invalidated(struct rpcrdma_chain *chain, int status)
{
	struct xprt_rdma_request *request =
		container_of(chain, struct xprt_rdma_request, invalidation.chain);

	if (status) {
		reply_give_up(request);
		return;
	}
	xprt_rdma_request_put_mrs(request);
	reply_finish(request);
}

/*
 * The Send of the Call is done. The RPC is complete only when the server cannot reach its
 * memory any more (RFC 8166 section 4.4.1).
 */
void xprt_rdma_reply_proceed(struct xprt_rdma_request *request)
{
	if (list_empty(&request->invalidation.mrs))
		reply_finish(request);
	else if (xprt_rdma_request_invalidate(request, reply_invalidated))
		reply_give_up(request);
}

/*
 * Take the registration that a Reply has invalidated from its request. The server may choose only
 * among the handles of this RPC (RFC 8797 section 4.1). Return: NULL if @handle is none of them.
 * In ->received, or with awaiting_lock while the request is in ep->awaiting_reply.
 */
struct rpcrdma_mr *xprt_rdma_reply_take_invalidated(struct xprt_rdma_request *request, u32 handle)
{
	struct rpcrdma_mr *mr;

	list_for_each_entry(mr, &request->invalidation.mrs, list) {
		if (mr->segment.handle != handle)
			continue;
		list_del(&mr->list);
		return mr;
	}
	return NULL;
}

/**
 * xprt_rdma_reply_matched - process a Reply that has been matched with its Call
 * @request: the request, pinned; receive.c has noted in it what the header says
 * @recv: the message, which the request owns from now on
 *
 * If the device still gathers the Call's pages, xprt_rdma_reply_proceed() is called
 * when that is done.
 */
void xprt_rdma_reply_matched(struct xprt_rdma_request *request, struct rpcrdma_recv *recv)
{
	struct rpcrdma_mr *mr;

	request->recv = recv;
	if (recv->invalidated) {
		mr = xprt_rdma_reply_take_invalidated(request, recv->inv_handle);
		if (!mr) {
			rpcrdma_conn_close(request->ep->conn, -EPROTO);
			reply_give_up(request);
			return;
		}
		rpcrdma_mr_put(mr);
	}
	if (test_bit(XPRT_RDMA_GATHERING, &request->state))
		request->ep->client->stats.waits_for_send++;
	else
		xprt_rdma_reply_proceed(request);
}
