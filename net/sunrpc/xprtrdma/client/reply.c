// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Match a Reply with its Call, take the memory back from the server, put the
 * Reply where its task expects it, and complete the RPC.
 *
 *	rpcrdma_reply_received()	the header: what did the server do?
 *	  rpcrdma_reply_proceed()	its Send is done: invalidate the rest
 *	    finish()			nobody else can touch the memory
 *
 * The request is pinned from the first to the last step.
 */
#include <linux/highmem.h>
#include <linux/sunrpc/msg_prot.h>

#include "../trace.h"
#include "client_private.h"
#include "piece.h"

/* Enough of a Reply that says that the server denied the Call: RPC_MISMATCH */
#define DENIAL_LEN	16

/* Complete the RPC */

/*
 * A task asleep can be told why it fails. One that is still on its way to bed
 * would lose that, so it finds a Reply that sunrpc takes for final.
 */
static void fail_locked(struct rpc_rqst *rqst, int error)
{
	const struct kvec *head = &rqst->rq_rcv_buf.head[0];
	struct rpc_task *task = rqst->rq_task;
	__be32 *p = head->iov_base;
	int len = sizeof(*p);

	if (head->iov_len >= DENIAL_LEN) {
		*p++ = rqst->rq_xid;
		*p++ = rpc_reply;
		*p++ = cpu_to_be32(RPC_MSG_DENIED);
		*p++ = cpu_to_be32(RPC_MISMATCH);
		len = DENIAL_LEN;
	}
	if (RPC_IS_QUEUED(task))
		task->tk_status = error;
	xprt_complete_rqst(task, len);
}

/**
 * rpcrdma_rpc_fail - end an RPC that cannot be sent
 * @rqst: pinned, and not on the wire
 * @error: negative errno
 */
void rpcrdma_rpc_fail(struct rpc_rqst *rqst, int error)
{
	struct rpc_xprt *xprt = rqst->rq_xprt;

	spin_lock(&xprt->queue_lock);
	fail_locked(rqst, error);
	spin_unlock(&xprt->queue_lock);
}

static void release_reply(struct rpcrdma_request *request)
{
	struct rpcrdma_link *link = request->link;

	rpcrdma_recv_put(request->recv);
	request->recv = NULL;
	rpcrdma_link_credit_back(link);
}

static void complete_rpc(struct rpcrdma_request *request, int copied)
{
	struct rpcrdma_link *link = request->link;
	struct rpc_rqst *rqst = &request->rqst;
	struct rpc_xprt *xprt = rqst->rq_xprt;

	spin_lock(&xprt->queue_lock);
	/* client_timer() sees both this and that there is a Reply, or neither. */
	request->link = NULL;
	if (copied < 0) {
		fail_locked(rqst, copied);
	} else {
		xprt_update_rtt(rqst->rq_task);
		xprt_complete_rqst(rqst->rq_task, copied);
	}
	xprt_unpin_rqst(rqst);
	spin_unlock(&xprt->queue_lock);
	rpcrdma_link_put(link);
}

/*
 * The connection breaks, and the server may yet reach the memory. The task is
 * to send its Call anew once it is closed.
 */
static void give_up(struct rpcrdma_request *request)
{
	struct rpc_rqst *rqst = &request->rqst;
	struct rpc_xprt *xprt = rqst->rq_xprt;

	release_reply(request);
	request->replied = false;
	spin_lock(&xprt->queue_lock);
	xprt_unpin_rqst(rqst);
	spin_unlock(&xprt->queue_lock);
}

/* Place the Reply */

static const void *scatter_kvec(const struct kvec *to, const void *from,
				u32 *len)
{
	u32 part = min_t(size_t, *len, to->iov_len);

	memcpy(to->iov_base, from, part);
	*len -= part;
	return from + part;
}

static int scatter_piece(void *context, struct page *page, unsigned int offset,
			 unsigned int len)
{
	const void **from = context;

	memcpy_to_page(page, offset, *from, len);
	*from += len;
	return 0;
}

/* All of it is inline, even if the server could have used a chunk. */
static int place_inline(struct rpcrdma_request *request, u32 len)
{
	const struct xdr_buf *buf = &request->rqst.rq_rcv_buf;
	const void *from = request->payload;
	u32 left = len, part;

	if (len > buf->buflen)
		return -EIO;
	from = scatter_kvec(&buf->head[0], from, &left);
	part = min(left, buf->page_len);
	rpcrdma_page_pieces(buf, part, scatter_piece, &from);
	left -= part;
	scatter_kvec(&buf->tail[0], from, &left);
	return left ? -EIO : len;
}

static void set_head(struct xdr_buf *buf, u32 len)
{
	buf->head[0].iov_len = len;
	buf->tail[0].iov_base = buf->head[0].iov_base + len;
	buf->tail[0].iov_len = 0;
}

/*
 * The data item is in the pages. It is the last of the Reply, so what is inline
 * belongs into the head, the end of which sunrpc could only estimate before.
 */
static int place_around_data(struct rpcrdma_request *request, u32 len)
{
	struct rpc_rqst *rqst = &request->rqst;

	if (len > rqst->rq_rcvsize ||
	    rqst->rq_rcv_buf.head[0].iov_base != rqst->rq_rbuffer)
		return -EIO;
	memcpy(rqst->rq_rbuffer, request->payload, len);
	set_head(&rqst->rq_rcv_buf, len);
	set_head(&rqst->rq_private_buf, len);
	return len + xdr_align_size(request->written);
}

/* The Reply chunk was made of head, pages and tail: all of it is in place. */
static int check_long_reply(const struct rpcrdma_request *request)
{
	const struct kvec *head = &request->rqst.rq_rcv_buf.head[0];
	const __be32 *p = head->iov_base;

	if (request->written & 3 || head->iov_len < 2 * sizeof(*p) ||
	    p[0] != request->rqst.rq_xid || p[1] != rpc_reply)
		return -EIO;
	return request->written;
}

static int place_reply(struct rpcrdma_request *request)
{
	struct rpcrdma_client_stats *stats = &request->link->client->stats;
	u32 len = request->payload_len & ~3U;

	if (request->error)
		return request->error;
	stats->placed += request->written;
	stats->fixup += len;
	if (!request->payload)
		return check_long_reply(request);
	return request->written ? place_around_data(request, len) :
				  place_inline(request, len);
}

static void finish(struct rpcrdma_request *request)
{
	int copied = place_reply(request);

	if (copied < 0)
		request->link->client->stats.bad_replies++;
	release_reply(request);
	complete_rpc(request, copied);
}

/* Take back the memory */

static void reply_invalidated(struct rpcrdma_work *work, int status)
{
	struct rpcrdma_request *request =
		container_of(work, struct rpcrdma_request, invalidation.work);

	if (status) {
		give_up(request);
		return;
	}
	rpcrdma_request_put_mrs(request);
	finish(request);
}

/**
 * rpcrdma_reply_proceed - go on with a Reply when the Send of its Call is done
 * @request: the request, replied to
 *
 * RFC 8166 section 4.4.1: the RPC is complete only when the server cannot reach
 * its memory any more.
 *
 * Context: ->received or ->done.
 */
void rpcrdma_reply_proceed(struct rpcrdma_request *request)
{
	if (list_empty(&request->invalidation.mrs))
		finish(request);
	else if (rpcrdma_request_invalidate(request, reply_invalidated))
		give_up(request);
}

/*
 * RFC 8797 section 4.1 has the server choose among the handles of this RPC.
 * Any other that it invalidates breaks some other RPC, or the protocol.
 */
static bool take_invalidated(struct rpcrdma_request *request, u32 handle)
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
 * Caller holds owed_lock.
 */
static void settle(struct rpcrdma_request *request,
		   const struct rpcrdma_stray *stray)
{
	request->settled = true;
	if (!test_bit(RPCRDMA_OWED, &request->state))
		return;
	if (stray->invalidated && !take_invalidated(request, stray->handle))
		rpcrdma_conn_close(request->link->conn, -EPROTO);
	clear_and_wake_up_bit(RPCRDMA_OWED, &request->state);
}

/*
 * The server is done with the Call of a task that is gone: other RPCs may have
 * its handles. Caller holds owed_lock. Return: whether there are any.
 */
static bool free_forsaken(struct rpcrdma_link *link, __be32 xid)
{
	struct rpcrdma_mr *mr, *next;
	bool found = false;

	list_for_each_entry_safe(mr, next, &link->forsaken, list) {
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
 * see rpcrdma_request_retire(). If it is on its way there, its request keeps
 * that until it asks.
 */
static void settle_owed(struct rpcrdma_link *link,
			const struct rpcrdma_recv *recv, __be32 xid)
{
	const struct rpcrdma_stray stray = {
		.xid = xid,
		.invalidated = recv->invalidated,
		.handle = recv->inv_handle,
		.arrived = ktime_get(),
	};
	struct rpcrdma_request *request;

	spin_lock(&link->owed_lock);
	list_for_each_entry(request, &link->owed, list) {
		if (request->rqst.rq_xid != xid)
			continue;
		settle(request, &stray);
		goto out;
	}
	if (!free_forsaken(link, xid))
		rpcrdma_slots_note_stray(link->client, link, &stray);
out:
	spin_unlock(&link->owed_lock);
}

/**
 * rpcrdma_reply_find_stray - end RPCRDMA_OWED if the Reply has come already
 * @request: on the wire, but no longer found by its XID
 *
 * What came before the Call was sent has nothing to do with its handles.
 *
 * Context: the link's owed_lock is held.
 */
void rpcrdma_reply_find_stray(struct rpcrdma_request *request)
{
	const struct rpcrdma_stray *stray = &request->stray;

	lockdep_assert_held(&request->link->owed_lock);

	if (stray->xid == request->rqst.rq_xid &&
	    ktime_after(stray->arrived, request->rqst.rq_xtime))
		settle(request, stray);
}

/* Match the Reply */

static struct rpcrdma_request *match(struct rpcrdma_link *link, __be32 xid)
{
	struct rpc_xprt *xprt = &link->client->xprt;
	struct rpcrdma_request *request = NULL;
	struct rpc_rqst *rqst;

	spin_lock(&xprt->queue_lock);
	rqst = xprt_lookup_rqst(xprt, xid);
	if (rqst) {
		request = rpcrdma_request_of(rqst);
		/* Pairs with the release in post_call(). */
		if (smp_load_acquire(&request->link) == link &&
		    !request->replied)
			xprt_pin_rqst(rqst);
		else
			request = NULL;
	}
	spin_unlock(&xprt->queue_lock);
	if (!request)
		return NULL;

	wait_on_bit(&request->state, RPCRDMA_POSTING, TASK_UNINTERRUPTIBLE);
	/* Not the next attempt to post it, which may have begun meanwhile */
	if (request->link == link && smp_load_acquire(&request->posted)) {
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
static bool chunk_was_offered(const struct rpcrdma_request *request,
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

static bool chunks_were_offered(const struct rpcrdma_request *request,
				const struct rpcrdma_message *msg)
{
	if (msg->num_writes) {
		if (msg->num_writes > 1 ||
		    request->form.reply != RPCRDMA_REPLY_WRITE_CHUNK ||
		    !chunk_was_offered(request, msg, &msg->write[0]))
			return false;
	}
	if (msg->has_reply_chunk) {
		if (request->form.reply != RPCRDMA_REPLY_CHUNK ||
		    !chunk_was_offered(request, msg, &msg->reply_chunk))
			return false;
	}
	return true;
}

/* Note what the header says. Return: 0 or what the RPC is to fail with. */
static int digest(struct rpcrdma_request *request,
		  const struct rpcrdma_message *msg,
		  const struct rpcrdma_recv *recv)
{
	request->payload = NULL;
	request->payload_len = 0;
	request->written = 0;
	if (msg->proc == RPCRDMA_ERROR || !chunks_were_offered(request, msg))
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
 * rpcrdma_reply_received - take a Reply, or an RDMA_ERROR
 * @link: where it arrived; @link->reply is its header
 * @recv: the message
 *
 * Context: ->received.
 */
void rpcrdma_reply_received(struct rpcrdma_link *link,
			    struct rpcrdma_recv *recv)
{
	struct rpcrdma_message *msg = &link->reply;
	struct rpcrdma_request *request;

	trace_rpcrdma_reply_form(recv->conn, msg, recv->len, false);
	rpcrdma_link_granted(link, min(msg->credits,
				       recv->conn->config.credits));
	request = match(link, msg->xid);
	if (!request) {
		trace_rpcrdma_dropped_message(recv->conn, msg->xid, recv->len);
		settle_owed(link, recv, msg->xid);
		rpcrdma_credits_settle(&link->credits);
		rpcrdma_recv_put(recv);
		rpcrdma_link_credit_back(link);
		return;
	}

	request->recv = recv;
	request->error = digest(request, msg, recv);
	if (recv->invalidated &&
	    !take_invalidated(request, recv->inv_handle)) {
		rpcrdma_conn_close(link->conn, -EPROTO);
		give_up(request);
		return;
	}
	if (test_bit(RPCRDMA_GATHERING, &request->state)) {
		link->client->stats.waits_for_send++;
		return;
	}
	rpcrdma_reply_proceed(request);
}
