// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Choose how a Call travels, build its chunks, and post all of it as one chain.
 */
#include <linux/sunrpc/auth.h>

#include "client_private.h"
#include "../trace.h"

/* How long a Call that cannot be mapped may hold up the Calls after it */
#define XPRT_RDMA_MAPPING_TIMEOUT	(5 * HZ)

/* A Call while it is built, on the stack of call_submit() */
struct xprt_rdma_builder {
	struct xprt_rdma_endpoint *ep;
	struct xprt_rdma_request *request;
	struct rpcrdma_send *send;
	struct ib_send_wr *first;	/* of the chain */
	struct ib_send_wr **next;	/* where the next one is linked in */
	struct rpcrdma_chunk *chunk;	/* being built */
	struct rpcrdma_mr *mr;		/* being filled */
	enum dma_data_direction direction; /* of @mr */
	u32 gathered;			/* octets that the device reads from the task's pages */
	unsigned long mapping_since;	/* the request's before this try, which may succeed */
};

static u32 call_segments(const struct xprt_rdma_endpoint *ep, unsigned long start, u32 len)
{
	return xprt_rdma_form_segments(offset_in_page(start), len, ep->max_mr_pages,
				       ep->conn->bounced);
}

/*
 * Segments that head and tail add to those of the pages, at most: on a device that allows gaps all
 * three may share some.
 */
static u32 call_kvec_segments(const struct xprt_rdma_endpoint *ep, const struct xdr_buf *buf)
{
	return call_segments(ep, (unsigned long)buf->head[0].iov_base, buf->head[0].iov_len) +
	       call_segments(ep, (unsigned long)buf->tail[0].iov_base, buf->tail[0].iov_len);
}

/*
 * No DDP where authentication computes over the data, as RPCSEC_GSS does for integrity and
 * privacy. For krb5 without them RPCSEC_GSS leaves the flag uninitialised, so the flavor decides.
 */
static int call_choose_form(const struct xprt_rdma_endpoint *ep, struct xprt_rdma_request *request)
{
	const struct xdr_buf *call = &request->rqst.rq_snd_buf;
	const struct xdr_buf *reply = &request->rqst.rq_rcv_buf;
	const struct rpc_auth *auth = request->rqst.rq_cred->cr_auth;
	u32 read = call_segments(ep, call->page_base, call->page_len);
	u32 write = call_segments(ep, reply->page_base, reply->page_len);
	bool ddp = auth->au_flavor == RPC_AUTH_GSS_KRB5 ||
		   !test_bit(RPCAUTH_AUTH_DATATOUCH, &auth->au_flags);
	const struct xprt_rdma_sizes sizes = {
		.call_len	 = call->len,
		.call_pages	 = call->page_len,
		.call_ddp	 = ddp && call->flags & XDRBUF_WRITE,
		.reply_max	 = reply->buflen,
		.reply_pages	 = reply->page_len,
		.reply_ddp	 = ddp && reply->flags & XDRBUF_READ,
		.header_min	 = ep->version.header_min,
		.call_threshold	 = ep->version.call_threshold,
		.reply_threshold = ep->version.reply_threshold,
		.read_segments	 = read,
		.long_segments	 = read + call_kvec_segments(ep, call),
		.write_segments	 = write,
		.reply_segments	 = write + call_kvec_segments(ep, reply),
	};

	return xprt_rdma_form_choose(&request->form, &sizes);
}

/* -ENOBUFS may be a temporary lack of space, so the Call is tried again for a while. */
static int call_mapping_failed(const struct xprt_rdma_builder *b, int error)
{
	struct xprt_rdma_request *request = b->request;

	if (error != -ENOBUFS)
		return -EIO;
	request->mapping_since = b->mapping_since ?: jiffies ?: 1;
	return time_before(jiffies, request->mapping_since + XPRT_RDMA_MAPPING_TIMEOUT) ?
	       -ENOBUFS : -EIO;
}

static int call_finish_mr(struct xprt_rdma_builder *b)
{
	struct rpcrdma_mr *mr = b->mr;
	int ret;

	b->mr = NULL;
	ret = rpcrdma_mr_map(mr, b->direction);
	if (ret)
		return call_mapping_failed(b, ret);
	*b->next = &mr->reg_wr.wr;
	b->next = &mr->reg_wr.wr.next;
	b->ep->client->stats.registered += mr->segment.length;
	return rpcrdma_wire_add_segment(&b->ep->call, b->chunk, mr->segment.handle,
					mr->segment.length, mr->segment.offset);
}

/* Add @len octets of @pages to the chunk, from octet @offset of the first page on. */
static int call_offer_pages(struct xprt_rdma_builder *b, struct page **pages,
			    unsigned int offset, unsigned int len)
{
	unsigned int taken;
	bool empty;
	int ret;

	while (len) {
		empty = !b->mr;
		if (empty) {
			b->mr = rpcrdma_mr_get(b->ep->conn);
			if (!b->mr) {
				xprt_rdma_count_wait(b->ep, &b->request->rqst,
						     RPCRDMA_A_WAITS_REGISTRATION);
				return -EAGAIN;
			}
			list_add_tail(&b->mr->list, &b->request->invalidation.mrs);
		}
		taken = rpcrdma_mr_add(b->mr, pages, offset, len);
		if (taken == len)
			break;
		if (empty && !taken)
			return -EIO;
		ret = call_finish_mr(b);
		if (ret)
			return ret;
		offset += taken;
		pages += offset >> PAGE_SHIFT;
		offset = offset_in_page(offset);
		len -= taken;
	}
	return 0;
}

static int call_offer_kvec(struct xprt_rdma_builder *b, const struct kvec *vec)
{
	size_t at, part;
	int ret = 0;

	for (at = 0; at < vec->iov_len && !ret; at += part) {
		struct page *page = virt_to_page(vec->iov_base + at);
		unsigned int offset = offset_in_page(vec->iov_base + at);

		part = min_t(size_t, vec->iov_len - at, PAGE_SIZE - offset);
		ret = call_offer_pages(b, &page, offset, part);
	}
	return ret;
}

/*
 * Make a chunk of all of @buf, or only of its pages. The Reply may invalidate one handle of the
 * Call (draft 5.2.3): the first of the last chunk, which is the Reply's if it has any.
 */
static int call_fill_chunk(struct xprt_rdma_builder *b, struct rpcrdma_chunk *chunk,
			   const struct xdr_buf *buf, bool whole, enum dma_data_direction direction)
{
	struct rpcrdma_message *msg = &b->ep->call;
	int ret = 0;

	b->chunk = chunk;
	b->direction = direction;
	if (whole)
		ret = call_offer_kvec(b, &buf->head[0]);
	if (!ret)
		ret = call_offer_pages(b, buf->pages + (buf->page_base >> PAGE_SHIFT),
				       offset_in_page(buf->page_base), buf->page_len);
	if (!ret && whole)
		ret = call_offer_kvec(b, &buf->tail[0]);
	if (!ret && b->mr)
		ret = call_finish_mr(b);
	if (!ret && b->ep->version.names_handle && chunk->count)
		msg->inv_handle = rpcrdma_chunk_segments(msg, chunk)->handle;
	return ret;
}

static int call_build_chunks(struct xprt_rdma_builder *b)
{
	struct xprt_rdma_request *request = b->request;
	const struct xdr_buf *call = &request->rqst.rq_snd_buf;
	struct rpcrdma_message *msg = &b->ep->call;
	struct rpcrdma_chunk *chunk;
	struct list_head *last;
	bool whole;
	int ret;

	if (request->form.call != XPRT_RDMA_CALL_INLINE) {
		whole = request->form.call == XPRT_RDMA_CALL_LONG;
		if (whole)
			msg->proc = RPCRDMA_NOMSG;
		chunk = rpcrdma_wire_add_read(msg, whole ? 0 : call->head[0].iov_len);
		ret = call_fill_chunk(b, chunk, call, whole, DMA_TO_DEVICE);
		if (ret)
			return ret;
	}
	request->reply_mr = NULL;
	request->reply_segments = 0;
	if (request->form.reply != XPRT_RDMA_REPLY_INLINE) {
		last = request->invalidation.mrs.prev;
		whole = request->form.reply == XPRT_RDMA_REPLY_CHUNK;
		chunk = whole ? rpcrdma_wire_add_reply(msg) : rpcrdma_wire_add_write(msg);
		ret = call_fill_chunk(b, chunk, &request->rqst.rq_rcv_buf, whole, DMA_FROM_DEVICE);
		if (ret)
			return ret;
		request->reply_mr = list_entry(last->next, struct rpcrdma_mr, list);
		request->reply_segments = chunk->count;
	}
	return 0;
}

/* The padding of a data item in a Read chunk is not sent at all: the server restores it. */
static int call_build_payload(struct xprt_rdma_builder *b)
{
	const struct xdr_buf *call = &b->request->rqst.rq_snd_buf;
	u32 head = call->head[0].iov_len, limit = b->ep->version.call_threshold, after;
	bool is_inline = b->request->form.call == XPRT_RDMA_CALL_INLINE;
	int ret;

	if (b->request->form.call == XPRT_RDMA_CALL_LONG)
		return 0;
	if (is_inline && call->page_len >= XPRT_RDMA_GATHER_MIN)
		b->gathered = rpcrdma_send_can_gather(b->ep->conn, call);
	if (is_inline && !b->gathered)
		return rpcrdma_send_copy(b->send, call, 0, call->len, limit);
	ret = rpcrdma_send_copy(b->send, call, 0, head, limit);
	if (ret)
		return ret;
	if (b->gathered) {
		ret = rpcrdma_send_gather(b->send, call);
		return ret ? call_mapping_failed(b, ret) : 0;
	}
	after = head + call->page_len +
		min_t(u32, xdr_pad_size(call->page_len), call->tail[0].iov_len);
	return rpcrdma_send_copy(b->send, call, after, call->len - after, limit);
}

static int call_build(struct xprt_rdma_builder *b)
{
	struct rpcrdma_message *msg = &b->ep->call;
	int ret;

	rpcrdma_wire_init_call(msg, b->ep->version.settled, b->request->rqst.rq_xid,
			       b->ep->conn->credits);
	ret = call_build_chunks(b);
	if (!ret)
		ret = rpcrdma_send_header(b->send, msg);
	if (ret)
		return ret;
	*b->next = &b->send->wr;
	ret = call_build_payload(b);
	if (ret)
		return ret;
	trace_rpcrdma_call_form(b->ep->conn, msg, b->send->len + b->gathered, true);
	return 0;
}

/* A stuck device may read what was gathered at any time, so it is kept for good. */
static void call_keep_gathered(struct xprt_rdma_request *request)
{
	const struct xdr_buf *call = &request->rqst.rq_snd_buf;
	struct page **page = call->pages + (call->page_base >> PAGE_SHIFT);
	u32 num = DIV_ROUND_UP(offset_in_page(call->page_base) + call->page_len, PAGE_SIZE);

	/* The tail is in a slot's buffer, or RPCSEC_GSS has moved it to a page of its own. */
	WRITE_ONCE(request->ep->client->stuck, true);
	if (call->tail[0].iov_len)
		folio_try_get(virt_to_folio(call->tail[0].iov_base));
	while (num--)
		folio_try_get(page_folio(*page++));
}

/* The device no longer reads the task's pages. A Reply that came earlier has waited for this. */
static void call_gathered(struct rpcrdma_chain *chain, int status)
{
	struct rpcrdma_send *send = container_of(chain, struct rpcrdma_send, chain);
	struct xprt_rdma_request *request = send->private;
	bool replied = request->replied;

	if (unlikely(chain->conn->stuck))
		call_keep_gathered(request);
	rpcrdma_send_put(send);
	clear_and_wake_up_bit(XPRT_RDMA_GATHERING, &request->state);
	if (replied)
		xprt_rdma_reply_proceed(request);
}

/*
 * The Reply may arrive and be processed before this returns. A malicious server may even send it
 * before the Call, but nothing may be invalidated before it is registered. So no Reply matches
 * while request->posted is false, which it is until the device gets the Call. (A Reply that arrives
 * before and is looked at after that does. The keys of handles that it names are not valid yet.)
 */
static int call_post(struct xprt_rdma_builder *b)
{
	struct xprt_rdma_request *request = b->request;
	struct xprt_rdma_endpoint *ep = b->ep;
	unsigned int flags = 0;
	int ret;

	b->send->private = request;
	request->posted = false;
	request->replied = false;
	request->sent = jiffies;
	request->close_on_wait = false;
	request->rqst.rq_xtime = ktime_get();
	if (b->gathered) {
		b->send->chain.done = call_gathered;
		flags = RPCRDMA_POST_SIGNALLED | RPCRDMA_POST_DONE_IN_WQ;
		set_bit(XPRT_RDMA_GATHERING, &request->state);
	}
	xprt_rdma_ep_get(ep);
	atomic_inc(&ep->credits.in_flight);
	/* A reader of request->ep sees that @posted is false. Pairs with receive_match(). */
	smp_store_release(&request->ep, ep);

	ret = rpcrdma_send_post(b->send, b->first, flags, &request->posted);
	if (ret) {
		request->ep = NULL;
		xprt_rdma_credits_give(&ep->credits);
		xprt_rdma_ep_put(ep);
		clear_bit(XPRT_RDMA_GATHERING, &request->state);
	}
	if (ret == -EAGAIN)
		xprt_rdma_count_wait(ep, &request->rqst, RPCRDMA_A_WAITS_SEND_QUEUE);
	return ret;
}

static void call_count(const struct xprt_rdma_builder *b)
{
	struct xprt_rdma_client_stats *stats = &b->ep->client->stats;
	struct rpcrdma_traffic *sent = &b->ep->conn->counters.sent;
	const struct xprt_rdma_form *form = &b->request->form;
	const struct rpcrdma_message *msg = &b->ep->call;

	static_assert(RPCRDMA_A_TRAFFIC_INLINE + XPRT_RDMA_CALL_LONG ==
		      RPCRDMA_A_TRAFFIC_LONG_CALL);
	sent->messages[RPCRDMA_A_TRAFFIC_INLINE + form->call]++;
	sent->inline_octets += form->inline_len;
	sent->copied_octets += form->inline_len - b->gathered;
	stats->pullup += form->inline_len - b->gathered;
	if (msg->num_reads) {
		sent->placed_octets += msg->read[0].length;
		stats->read_segments += msg->read[0].count;
	}
	if (msg->num_writes)
		stats->write_segments += msg->write[0].count;
	if (msg->has_reply_chunk)
		stats->reply_segments += msg->reply_chunk.count;
	if (msg->proc == RPCRDMA_NOMSG)
		stats->long_calls++;
}

static int call_submit(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst)
{
	struct xprt_rdma_request *request = xprt_rdma_request_of(rqst);
	struct xprt_rdma_builder b = {
		.ep = ep,
		.request = request,
		.mapping_since = request->mapping_since,
	};
	int ret;

	request->mapping_since = 0;
	if (!xprt_rdma_ep_has_credit(ep)) {
		xprt_rdma_count_credit_wait(ep, rqst);
		return -EAGAIN;
	}
	ret = call_choose_form(ep, request);
	if (ret)
		return ret;
	b.send = rpcrdma_send_get(ep->conn);
	if (!b.send) {
		ep->client->stats.no_send++;
		xprt_rdma_count_wait(ep, rqst, RPCRDMA_A_WAITS_SEND_BUFFER);
		return -EAGAIN;
	}
	b.next = &b.first;
	ret = call_build(&b);
	if (!ret)
		ret = call_post(&b);
	if (ret) {
		xprt_rdma_request_put_mrs(request);
		rpcrdma_send_put(b.send);
		return ret;
	}
	call_count(&b);
	return 0;
}

/*
 * Without a credit, a Send, a registration or space in the send queue the transport
 * sets XPRT_WRITE_SPACE and waits. If what was missing came back before the bit was
 * set, nothing would end the wait. So this tries a second time.
 */
static int call_submit_or_wait(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst)
{
	int (*submit)(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst) =
		bc_prealloc(rqst) ? xprt_rdma_backward_reply : call_submit;
	int ret = submit(ep, rqst);

	if (ret != -EAGAIN)
		return ret;
	xprt_wait_for_buffer_space(rqst->rq_xprt);
	/* Pairs with the barriers before xprt_write_space() in endpoint.c. */
	smp_mb__after_atomic();
	ret = submit(ep, rqst);
	if (ret != -EAGAIN)
		clear_bit(XPRT_WRITE_SPACE, &rqst->rq_xprt->state);
	return ret;
}

/**
 * xprt_rdma_call_send - the rpc_xprt_ops's send_request
 * @rqst: a Call, or the Reply to a backward Call
 *
 * An error of this RPC alone is not returned: the task that holds XPRT_LOCKED would get
 * it, and that may be another one. Such an RPC fails here.
 *
 * Context: XPRT_LOCKED is held and @rqst is pinned; may sleep.
 * Return: 0: sent, or never to be sent. -EAGAIN: try again; while
 * XPRT_WRITE_SPACE is set, wait. -ENOBUFS: try again later. -ENOTCONN: not connected.
 */
int xprt_rdma_call_send(struct rpc_rqst *rqst)
{
	struct rpc_xprt *xprt = rqst->rq_xprt;
	struct xprt_rdma_endpoint *ep = xprt_rdma_client_of(xprt)->ep;
	int ret = -ENOTCONN;

	/* A Call must not be sent again on a connection that is to be closed. */
	if (!ep || test_bit(XPRT_CLOSE_WAIT, &xprt->state))
		return ret;
	if (rpcrdma_conn_established(ep->conn) && rpcrdma_conn_enter(ep->conn)) {
		ret = call_submit_or_wait(ep, rqst);
		rpcrdma_conn_leave(ep->conn);
	}
	switch (ret) {
	case 0:
		rqst->rq_xmit_bytes_sent += rqst->rq_snd_buf.len;
		return 0;
	case -EAGAIN:
		return ret;
	case -ENOTCONN:
		xprt_force_disconnect(xprt);
		return ret;
	case -ENOBUFS:
	case -ENOMEM:
		xprt_rdma_count_wait(ep, rqst, RPCRDMA_A_WAITS_MEMORY);
		return -ENOBUFS;
	default:
		ep->client->stats.failed++;
		ep->conn->counters.errors[RPCRDMA_A_ERRORS_NOT_SENT]++;
		/* The server has to learn that it gets no Reply (RFC 8166 section 4.5.4). */
		if (bc_prealloc(rqst))
			rpcrdma_conn_close(ep->conn, ret);
		else
			xprt_rdma_rpc_fail(rqst, ret);
		return 0;
	}
}
