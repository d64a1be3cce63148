// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Match a Reply with its Call, take the memory back from the server, put the
 * Reply where its task expects it, and complete the RPC.
 *
 *	xprt_rdma_reply_received()	the header: what did the server do?
 *	  xprt_rdma_reply_proceed()	its Send is done: invalidate the rest
 *	    xprt_rdma_reply_finish()	nobody else can touch the memory
 *
 * The request is pinned from the first to the last step.
 */
#include <linux/highmem.h>
#include <linux/sunrpc/msg_prot.h>

#include "../trace.h"
#include "client_private.h"
#include "page_frag.h"

/* Enough of a Reply that says that the server denied the Call: RPC_MISMATCH */
#define XPRT_RDMA_DENIAL_LEN	16

/* Complete the RPC */

/*
 * A task asleep can be told why it fails. One that is still on its way to bed
 * would lose that, so it finds a Reply that sunrpc takes for final.
 */
static void xprt_rdma_rpc_fail_locked(struct rpc_rqst *rqst, int error)
{
	const struct kvec *head = &rqst->rq_rcv_buf.head[0];
	struct rpc_task *task = rqst->rq_task;
	__be32 *p = head->iov_base;
	int len = sizeof(*p);

	if (head->iov_len >= XPRT_RDMA_DENIAL_LEN) {
		*p++ = rqst->rq_xid;
		*p++ = rpc_reply;
		*p++ = cpu_to_be32(RPC_MSG_DENIED);
		*p++ = cpu_to_be32(RPC_MISMATCH);
		len = XPRT_RDMA_DENIAL_LEN;
	}
	if (RPC_IS_QUEUED(task))
		task->tk_status = error;
	xprt_complete_rqst(task, len);
}

/**
 * xprt_rdma_rpc_fail - end an RPC that cannot be sent
 * @rqst: pinned, and not on the wire
 * @error: negative errno
 */
void xprt_rdma_rpc_fail(struct rpc_rqst *rqst, int error)
{
	struct rpc_xprt *xprt = rqst->rq_xprt;

	spin_lock(&xprt->queue_lock);
	xprt_rdma_rpc_fail_locked(rqst, error);
	spin_unlock(&xprt->queue_lock);
}

static void xprt_rdma_reply_release(struct xprt_rdma_request *request)
{
	struct xprt_rdma_endpoint *ep = request->ep;

	rpcrdma_recv_put(request->recv);
	request->recv = NULL;
	xprt_rdma_ep_credit_back(ep);
}

static void xprt_rdma_reply_complete(struct xprt_rdma_request *request,
				     int copied)
{
	struct xprt_rdma_endpoint *ep = request->ep;
	struct rpc_rqst *rqst = &request->rqst;
	struct rpc_xprt *xprt = rqst->rq_xprt;

	spin_lock(&xprt->queue_lock);
	/* xprt_rdma_client_timer() sees this and the Reply, or neither. */
	request->ep = NULL;
	if (copied < 0) {
		xprt_rdma_rpc_fail_locked(rqst, copied);
	} else {
		xprt_update_rtt(rqst->rq_task);
		xprt_complete_rqst(rqst->rq_task, copied);
	}
	xprt_unpin_rqst(rqst);
	spin_unlock(&xprt->queue_lock);
	xprt_rdma_ep_put(ep);
}

/*
 * The connection breaks, and the server may yet reach the memory. The task is
 * to send its Call anew once it is closed.
 */
static void xprt_rdma_reply_give_up(struct xprt_rdma_request *request)
{
	struct rpc_rqst *rqst = &request->rqst;
	struct rpc_xprt *xprt = rqst->rq_xprt;

	xprt_rdma_reply_release(request);
	request->replied = false;
	spin_lock(&xprt->queue_lock);
	xprt_unpin_rqst(rqst);
	spin_unlock(&xprt->queue_lock);
}

/* Place the Reply */

static const void *xprt_rdma_reply_scatter_kvec(const struct kvec *to,
						const void *from, u32 *len)
{
	u32 part = min_t(size_t, *len, to->iov_len);

	memcpy(to->iov_base, from, part);
	*len -= part;
	return from + part;
}

static int xprt_rdma_reply_scatter_frag(void *context, struct page *page,
					unsigned int offset, unsigned int len)
{
	const void **from = context;

	memcpy_to_page(page, offset, *from, len);
	*from += len;
	return 0;
}

/* All of it is inline, even if the server could have used a chunk. */
static int xprt_rdma_reply_place_inline(struct xprt_rdma_request *request,
					u32 len)
{
	const struct xdr_buf *buf = &request->rqst.rq_rcv_buf;
	const void *from = request->payload;
	u32 left = len, part;

	if (len > buf->buflen)
		return -EIO;
	from = xprt_rdma_reply_scatter_kvec(&buf->head[0], from, &left);
	part = min(left, buf->page_len);
	xprt_rdma_page_frags_in_pages(buf, part, xprt_rdma_reply_scatter_frag,
				      &from);
	left -= part;
	xprt_rdma_reply_scatter_kvec(&buf->tail[0], from, &left);
	return left ? -EIO : len;
}

static void xprt_rdma_reply_set_head(struct xdr_buf *buf, u32 len)
{
	buf->head[0].iov_len = len;
	buf->tail[0].iov_base = buf->head[0].iov_base + len;
	buf->tail[0].iov_len = 0;
}

/*
 * The data item is in the pages. It is the last of the Reply, so what is inline
 * belongs into the head, the end of which sunrpc could only estimate before.
 */
static int xprt_rdma_reply_place_around_data(struct xprt_rdma_request *request,
					     u32 len)
{
	struct rpc_rqst *rqst = &request->rqst;

	if (len > rqst->rq_rcvsize ||
	    rqst->rq_rcv_buf.head[0].iov_base != rqst->rq_rbuffer)
		return -EIO;
	memcpy(rqst->rq_rbuffer, request->payload, len);
	xprt_rdma_reply_set_head(&rqst->rq_rcv_buf, len);
	xprt_rdma_reply_set_head(&rqst->rq_private_buf, len);
	return len + xdr_align_size(request->written);
}

/* The Reply chunk was made of head, pages and tail: all of it is in place. */
static int xprt_rdma_reply_check_long(const struct xprt_rdma_request *request)
{
	const struct kvec *head = &request->rqst.rq_rcv_buf.head[0];
	const __be32 *p = head->iov_base;

	if (request->written & 3 || head->iov_len < 2 * sizeof(*p) ||
	    p[0] != request->rqst.rq_xid || p[1] != rpc_reply)
		return -EIO;
	return request->written;
}

static int xprt_rdma_reply_place(struct xprt_rdma_request *request)
{
	struct xprt_rdma_client_stats *stats = &request->ep->client->stats;
	u32 len = request->payload_len & ~3U;

	if (request->error)
		return request->error;
	stats->placed += request->written;
	stats->fixup += len;
	if (!request->payload)
		return xprt_rdma_reply_check_long(request);
	if (request->written)
		return xprt_rdma_reply_place_around_data(request, len);
	return xprt_rdma_reply_place_inline(request, len);
}

static void xprt_rdma_reply_finish(struct xprt_rdma_request *request)
{
	int copied = xprt_rdma_reply_place(request);

	if (copied < 0)
		request->ep->client->stats.bad_replies++;
	xprt_rdma_reply_release(request);
	xprt_rdma_reply_complete(request, copied);
}

/* Take back the memory */

static void xprt_rdma_reply_invalidated(struct rpcrdma_work *work, int status)
{
	struct xprt_rdma_request *request =
		container_of(work, struct xprt_rdma_request, invalidation.work);

	if (status) {
		xprt_rdma_reply_give_up(request);
		return;
	}
	xprt_rdma_request_put_mrs(request);
	xprt_rdma_reply_finish(request);
}

/**
 * xprt_rdma_reply_proceed - go on with a Reply when the Send of its Call is done
 * @request: the request, replied to
 *
 * RFC 8166 section 4.4.1: the RPC is complete only when the server cannot reach
 * its memory any more.
 *
 * Context: ->received or ->done.
 */
void xprt_rdma_reply_proceed(struct xprt_rdma_request *request)
{
	if (list_empty(&request->invalidation.mrs))
		xprt_rdma_reply_finish(request);
	else if (xprt_rdma_request_invalidate(request,
					      xprt_rdma_reply_invalidated))
		xprt_rdma_reply_give_up(request);
}

/*
 * RFC 8797 section 4.1 has the server choose among the handles of this RPC.
 * Any other that it invalidates breaks some other RPC, or the protocol.
 */
static bool xprt_rdma_reply_take_invalidated(struct xprt_rdma_request *request,
					     u32 handle)
{
	struct rpcrdma_mr *mr;

	list_for_each_entry(mr, &request->invalidation.mrs, list) {
		if (mr->segment.handle != handle)
			continue;
		list_del(&mr->list);
		rpcrdma_mr_put(mr);
		return true;
	}
	return false;
}

/*
 * Once the request invalidates its registrations itself, they are left alone.
 * Caller holds awaiting_lock.
 */
static void
xprt_rdma_reply_answered(struct xprt_rdma_request *request,
			 const struct xprt_rdma_unmatched_reply *unmatched)
{
	request->answered = true;
	if (!test_bit(XPRT_RDMA_AWAITING_REPLY, &request->state))
		return;
	if (unmatched->invalidated &&
	    !xprt_rdma_reply_take_invalidated(request, unmatched->handle))
		rpcrdma_conn_close(request->ep->conn, -EPROTO);
	clear_and_wake_up_bit(XPRT_RDMA_AWAITING_REPLY, &request->state);
}

/*
 * The server is done with the Call of a task that is gone: other RPCs may have
 * its handles. Caller holds awaiting_lock. Return: whether there are any.
 */
static bool xprt_rdma_reply_free_orphaned_mrs(struct xprt_rdma_endpoint *ep,
					      __be32 xid)
{
	struct rpcrdma_mr *mr, *next;
	bool found = false;

	list_for_each_entry_safe(mr, next, &ep->orphaned_mrs, list) {
		if (mr->tag != (__force u32)xid)
			continue;
		list_del(&mr->list);
		rpcrdma_mr_put(mr);
		found = true;
	}
	return found;
}

/*
 * A task that was killed is still to be told what its Reply has invalidated:
 * see xprt_rdma_request_retire(). If it is on its way there, its request keeps
 * that until it asks.
 */
static void xprt_rdma_reply_unmatched(struct xprt_rdma_endpoint *ep,
				      const struct rpcrdma_recv *recv,
				      __be32 xid)
{
	const struct xprt_rdma_unmatched_reply unmatched = {
		.xid = xid,
		.invalidated = recv->invalidated,
		.handle = recv->inv_handle,
		.arrived = ktime_get(),
	};
	struct xprt_rdma_request *request;

	spin_lock(&ep->awaiting_lock);
	list_for_each_entry(request, &ep->awaiting_reply, list) {
		if (request->rqst.rq_xid != xid)
			continue;
		xprt_rdma_reply_answered(request, &unmatched);
		goto out;
	}
	if (!xprt_rdma_reply_free_orphaned_mrs(ep, xid))
		xprt_rdma_slots_note_unmatched(ep->client, ep, &unmatched);
out:
	spin_unlock(&ep->awaiting_lock);
}

/**
 * xprt_rdma_reply_find_unmatched - wait no longer if the Reply has come already
 * @request: on the wire, but no longer found by its XID
 *
 * What came before the Call was sent has nothing to do with its handles.
 *
 * Context: the endpoint's awaiting_lock is held.
 */
void xprt_rdma_reply_find_unmatched(struct xprt_rdma_request *request)
{
	const struct xprt_rdma_unmatched_reply *unmatched = &request->unmatched;

	lockdep_assert_held(&request->ep->awaiting_lock);

	if (unmatched->xid == request->rqst.rq_xid &&
	    ktime_after(unmatched->arrived, request->rqst.rq_xtime))
		xprt_rdma_reply_answered(request, unmatched);
}

/* Match the Reply */

static struct xprt_rdma_request *
xprt_rdma_reply_match(struct xprt_rdma_endpoint *ep, __be32 xid)
{
	struct rpc_xprt *xprt = &ep->client->xprt;
	struct xprt_rdma_request *request = NULL;
	struct rpc_rqst *rqst;

	spin_lock(&xprt->queue_lock);
	rqst = xprt_lookup_rqst(xprt, xid);
	if (rqst) {
		request = xprt_rdma_request_of(rqst);
		/* Pairs with the release in xprt_rdma_call_post(). */
		if (smp_load_acquire(&request->ep) == ep && !request->replied)
			xprt_pin_rqst(rqst);
		else
			request = NULL;
	}
	spin_unlock(&xprt->queue_lock);
	if (!request)
		return NULL;

	wait_on_bit(&request->state, XPRT_RDMA_POSTING, TASK_UNINTERRUPTIBLE);
	/* Not the next attempt to post it, which may have begun meanwhile */
	if (request->ep == ep && smp_load_acquire(&request->posted)) {
		request->replied = true;
		return request;
	}
	spin_lock(&xprt->queue_lock);
	xprt_unpin_rqst(rqst);
	spin_unlock(&xprt->queue_lock);
	return NULL;
}

/*
 * What comes back must be what was offered, filled without holes from its
 * first segment on (RFC 8166 section 3.4.6).
 */
static bool
xprt_rdma_reply_chunk_was_offered(const struct xprt_rdma_request *request,
				  const struct rpcrdma_message *msg,
				  const struct rpcrdma_chunk *chunk)
{
	const struct rpcrdma_segment *segment;
	struct rpcrdma_mr *mr = request->reply_mr;
	bool full = true;
	unsigned int i;

	if (chunk->count > request->reply_segments)
		return false;
	segment = rpcrdma_chunk_segments(msg, chunk);
	for (i = 0; i < chunk->count; i++, segment++) {
		if (segment->handle != mr->segment.handle ||
		    segment->offset != mr->segment.offset ||
		    segment->length > (full ? mr->segment.length : 0))
			return false;
		full = segment->length == mr->segment.length;
		mr = list_next_entry(mr, list);
	}
	return true;
}

static bool
xprt_rdma_reply_chunks_were_offered(const struct xprt_rdma_request *request,
				    const struct rpcrdma_message *msg)
{
	if (msg->num_writes) {
		if (msg->num_writes > 1 ||
		    request->form.reply != XPRT_RDMA_REPLY_WRITE_CHUNK ||
		    !xprt_rdma_reply_chunk_was_offered(request, msg,
						       &msg->write[0]))
			return false;
	}
	if (msg->has_reply_chunk) {
		if (request->form.reply != XPRT_RDMA_REPLY_CHUNK ||
		    !xprt_rdma_reply_chunk_was_offered(request, msg,
						       &msg->reply_chunk))
			return false;
	}
	return true;
}

/* Note what the header says. Return: 0 or what the RPC is to fail with. */
static int xprt_rdma_reply_parse(struct xprt_rdma_request *request,
				 const struct rpcrdma_message *msg,
				 const struct rpcrdma_recv *recv)
{
	request->payload = NULL;
	request->payload_len = 0;
	request->written = 0;
	if (msg->proc == RPCRDMA_ERROR ||
	    !xprt_rdma_reply_chunks_were_offered(request, msg))
		return -EIO;

	if (msg->proc == RPCRDMA_NOMSG) {
		request->written = msg->reply_chunk.written;
		return 0;
	}
	if (msg->has_reply_chunk && msg->reply_chunk.written)
		return -EIO;
	request->payload = recv->data + msg->header_len;
	request->payload_len = msg->payload_len;
	if (msg->num_writes)
		request->written = msg->write[0].written;
	return 0;
}

/**
 * xprt_rdma_reply_received - take a Reply, or an RDMA_ERROR
 * @ep: where it arrived; @ep->reply is its header
 * @recv: the message
 *
 * Context: ->received.
 */
void xprt_rdma_reply_received(struct xprt_rdma_endpoint *ep,
			      struct rpcrdma_recv *recv)
{
	struct rpcrdma_message *msg = &ep->reply;
	struct xprt_rdma_request *request;

	trace_rpcrdma_reply_form(recv->conn, msg, recv->len, false);
	xprt_rdma_ep_granted(ep, min(msg->credits, recv->conn->credits));
	request = xprt_rdma_reply_match(ep, msg->xid);
	if (!request) {
		trace_rpcrdma_dropped_message(recv->conn, msg->xid, recv->len);
		xprt_rdma_reply_unmatched(ep, recv, msg->xid);
		xprt_rdma_credits_conclude(&ep->credits);
		rpcrdma_recv_put(recv);
		xprt_rdma_ep_credit_back(ep);
		return;
	}

	request->recv = recv;
	request->error = xprt_rdma_reply_parse(request, msg, recv);
	if (recv->invalidated &&
	    !xprt_rdma_reply_take_invalidated(request, recv->inv_handle)) {
		rpcrdma_conn_close(ep->conn, -EPROTO);
		xprt_rdma_reply_give_up(request);
		return;
	}
	if (test_bit(XPRT_RDMA_GATHERING, &request->state)) {
		ep->client->stats.waits_for_send++;
		return;
	}
	xprt_rdma_reply_proceed(request);
}
