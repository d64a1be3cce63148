// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Choose how a Call travels, build its chunks, and post all of it as one chain. Most Calls
 * are copied into a Send as a whole, have no chunks, and take a short way.
 */
#include <linux/sunrpc/auth.h>

#include "client_private.h"
#include "page_frag.h"
#include "../trace.h"

/* How long a Call that cannot be mapped may hold up the Calls after it */
#define XPRT_RDMA_MAPPING_TIMEOUT	(5 * HZ)

/**
 * struct xprt_rdma_builder - a Call with chunks or pages to gather, while it is built
 * @ep: the connection
 * @request: the request to be sent
 * @send: its Send
 * @version: the version of the Call
 * @first: the first work request of the chain
 * @next: where the next work request of the chain is linked in
 * @chunk: the chunk being built
 * @mr: the registration being filled
 * @direction: the DMA direction of @mr
 * @len: octets of the Send
 * @gathered: those of them that are not copied
 *
 * On the stack of xprt_rdma_call_submit_parts().
 */
struct xprt_rdma_builder {
	struct xprt_rdma_endpoint *ep;
	struct xprt_rdma_request *request;
	struct rpcrdma_send *send;
	u32 version;
	struct ib_send_wr *first;
	struct ib_send_wr **next;
	struct rpcrdma_chunk *chunk;
	struct rpcrdma_mr *mr;
	enum dma_data_direction direction;
	u32 len;
	u32 gathered;
};

/*
 * With integrity or privacy, RPCSEC_GSS computes over the data as well. For krb5 without
 * them it leaves the flag uninitialised, so the flavor decides.
 */
static bool xprt_rdma_call_ddp_allowed(const struct rpc_rqst *rqst)
{
	const struct rpc_auth *auth = rqst->rq_cred->cr_auth;

	return auth->au_flavor == RPC_AUTH_GSS_KRB5 ||
	       !test_bit(RPCAUTH_AUTH_DATATOUCH, &auth->au_flags);
}

/*
 * Segments for the pages of a message, or for the whole of it. That is an upper limit: on a
 * device that allows gaps, neighbours may fit into one segment.
 */
static u32 xprt_rdma_call_segments(const struct xprt_rdma_endpoint *ep,
				   const struct xdr_buf *buf, bool whole)
{
	const struct { unsigned int offset, len; } part[] = {
		{ offset_in_page(buf->page_base), buf->page_len },
		{ offset_in_page(buf->head[0].iov_base), buf->head[0].iov_len },
		{ offset_in_page(buf->tail[0].iov_base), buf->tail[0].iov_len },
	};
	unsigned int i, parts = whole ? ARRAY_SIZE(part) : 1;
	u32 segments = 0;

	for (i = 0; i < parts; i++)
		segments += xprt_rdma_form_segments(part[i].offset, part[i].len,
						    ep->max_mr_pages, ep->conn->bounced);
	return segments;
}

static noinline int xprt_rdma_call_choose_chunks(const struct xprt_rdma_endpoint *ep,
						 struct xprt_rdma_request *request)
{
	const struct xdr_buf *call = &request->rqst.rq_snd_buf;
	const struct xdr_buf *reply = &request->rqst.rq_rcv_buf;
	bool ddp = xprt_rdma_call_ddp_allowed(&request->rqst);
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
		.read_segments	 = xprt_rdma_call_segments(ep, call, false),
		.long_segments	 = xprt_rdma_call_segments(ep, call, true),
		.write_segments	 = xprt_rdma_call_segments(ep, reply, false),
		.reply_segments	 = xprt_rdma_call_segments(ep, reply, true),
	};

	return xprt_rdma_form_choose(&request->form, &sizes);
}

/* For most RPCs no segments need to be counted. */
static int xprt_rdma_call_choose_form(const struct xprt_rdma_endpoint *ep,
				      struct xprt_rdma_request *request)
{
	const struct xprt_rdma_sizes sizes = {
		.call_len	 = request->rqst.rq_snd_buf.len,
		.reply_max	 = request->rqst.rq_rcv_buf.buflen,
		.header_min	 = ep->version.header_min,
		.call_threshold	 = ep->version.call_threshold,
		.reply_threshold = ep->version.reply_threshold,
	};

	if (xprt_rdma_form_inline(&request->form, &sizes))
		return 0;
	return xprt_rdma_call_choose_chunks(ep, request);
}

/* -ENOBUFS may be a temporary lack of space, so the Call is tried again for a while. */
static int xprt_rdma_call_mapping_failed(struct xprt_rdma_request *request, int error)
{
	if (error != -ENOBUFS)
		return -EIO;
	if (!request->mapping_since)
		request->mapping_since = jiffies ?: 1;
	return time_before(jiffies, request->mapping_since + XPRT_RDMA_MAPPING_TIMEOUT) ?
	       -ENOBUFS : -EIO;
}

static int xprt_rdma_call_finish_mr(struct xprt_rdma_builder *b)
{
	struct rpcrdma_mr *mr = b->mr;
	int ret;

	b->mr = NULL;
	ret = rpcrdma_mr_map(mr, b->direction);
	if (ret)
		return xprt_rdma_call_mapping_failed(b->request, ret);
	*b->next = &mr->reg_wr.wr;
	b->next = &mr->reg_wr.wr.next;
	b->ep->client->stats.registered += mr->segment.length;
	return rpcrdma_wire_add_segment(&b->ep->call, b->chunk,
					mr->segment.handle, mr->segment.length,
					mr->segment.offset);
}

/* Add @len octets of @pages to the chunk, from @offset within the first page on. */
static int xprt_rdma_call_offer_pages(struct xprt_rdma_builder *b,
				      struct page **pages, unsigned int offset,
				      unsigned int len)
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
		ret = xprt_rdma_call_finish_mr(b);
		if (ret)
			return ret;
		offset += taken;
		pages += offset >> PAGE_SHIFT;
		offset = offset_in_page(offset);
		len -= taken;
	}
	return 0;
}

static int xprt_rdma_call_offer_frag(void *context, struct page *page,
				     unsigned int offset, unsigned int len)
{
	return xprt_rdma_call_offer_pages(context, &page, offset, len);
}

/*
 * Draft 5.2.3: the Reply may invalidate one handle of the Call. A chunk for the Reply is
 * built last, so one of its handles is named if there is any. A header of version 1 has no
 * such field.
 */
static void xprt_rdma_call_name_handle(struct xprt_rdma_builder *b)
{
	struct rpcrdma_message *msg = &b->ep->call;

	if (b->ep->version.names_handle && b->chunk->count)
		msg->inv_handle = rpcrdma_chunk_segments(msg, b->chunk)->handle;
}

static int xprt_rdma_call_offer_data(struct xprt_rdma_builder *b, const struct xdr_buf *buf)
{
	return xprt_rdma_call_offer_pages(b, buf->pages + (buf->page_base >> PAGE_SHIFT),
					  offset_in_page(buf->page_base), buf->page_len);
}

static noinline int xprt_rdma_call_offer_all(struct xprt_rdma_builder *b,
					     const struct xdr_buf *buf)
{
	int ret;

	ret = xprt_rdma_page_frags_in_kvec(&buf->head[0], xprt_rdma_call_offer_frag, b);
	if (!ret)
		ret = xprt_rdma_call_offer_data(b, buf);
	if (!ret)
		ret = xprt_rdma_page_frags_in_kvec(&buf->tail[0], xprt_rdma_call_offer_frag, b);
	return ret;
}

/* Make a chunk of all of @buf, or only of its pages. */
static int xprt_rdma_call_fill_chunk(struct xprt_rdma_builder *b, struct rpcrdma_chunk *chunk,
				     const struct xdr_buf *buf, bool whole,
				     enum dma_data_direction direction)
{
	int ret;

	b->chunk = chunk;
	b->direction = direction;
	ret = whole ? xprt_rdma_call_offer_all(b, buf) : xprt_rdma_call_offer_data(b, buf);
	if (!ret && b->mr)
		ret = xprt_rdma_call_finish_mr(b);
	if (!ret)
		xprt_rdma_call_name_handle(b);
	return ret;
}

static int xprt_rdma_call_build_call_chunk(struct xprt_rdma_builder *b)
{
	const struct xdr_buf *call = &b->request->rqst.rq_snd_buf;
	struct rpcrdma_message *msg = &b->ep->call;
	bool whole = b->request->form.call == XPRT_RDMA_CALL_LONG;
	u32 position = whole ? 0 : call->head[0].iov_len;
	struct rpcrdma_chunk *chunk;

	if (b->request->form.call == XPRT_RDMA_CALL_INLINE)
		return 0;
	if (whole)
		msg->proc = RPCRDMA_NOMSG;
	chunk = rpcrdma_wire_add_read(msg, position);
	return xprt_rdma_call_fill_chunk(b, chunk, call, whole, DMA_TO_DEVICE);
}

static int xprt_rdma_call_build_reply_chunk(struct xprt_rdma_builder *b)
{
	struct xprt_rdma_request *request = b->request;
	const struct xdr_buf *reply = &request->rqst.rq_rcv_buf;
	bool whole = request->form.reply == XPRT_RDMA_REPLY_CHUNK;
	struct rpcrdma_message *msg = &b->ep->call;
	struct rpcrdma_chunk *chunk;
	struct list_head *last;
	int ret;

	request->reply_mr = NULL;
	request->reply_segments = 0;
	if (request->form.reply == XPRT_RDMA_REPLY_INLINE)
		return 0;

	last = request->invalidation.mrs.prev;
	chunk = whole ? rpcrdma_wire_add_reply(msg) : rpcrdma_wire_add_write(msg);
	ret = xprt_rdma_call_fill_chunk(b, chunk, reply, whole, DMA_FROM_DEVICE);
	if (ret)
		return ret;
	request->reply_mr = list_entry(last->next, struct rpcrdma_mr, list);
	request->reply_segments = chunk->count;
	return 0;
}

/* The data item is in a chunk of its own, with its padding. Return: octets copied. */
static u32 xprt_rdma_call_copy_around_pages(void *to, const struct xdr_buf *from)
{
	const struct kvec *head = &from->head[0], *tail = &from->tail[0];
	size_t pad = min_t(size_t, xdr_pad_size(from->page_len), tail->iov_len);

	memcpy(to, head->iov_base, head->iov_len);
	memcpy(to + head->iov_len, tail->iov_base + pad, tail->iov_len - pad);
	return head->iov_len + tail->iov_len - pad;
}

static unsigned int xprt_rdma_call_count_frags(unsigned int offset, size_t len)
{
	return len ? DIV_ROUND_UP(offset + len, PAGE_SIZE) : 0;
}

static bool xprt_rdma_call_worth_gathering(const struct xprt_rdma_builder *b)
{
	const struct xdr_buf *call = &b->request->rqst.rq_snd_buf;
	const struct kvec *tail = &call->tail[0];

	if (b->request->form.call != XPRT_RDMA_CALL_INLINE ||
	    call->page_len < XPRT_RDMA_GATHER_MIN)
		return false;
	return xprt_rdma_call_count_frags(offset_in_page(call->page_base), call->page_len) +
	       xprt_rdma_call_count_frags(offset_in_page(tail->iov_base), tail->iov_len) <=
	       b->ep->conn->send_sges;
}

static int xprt_rdma_call_gather_frag(void *context, struct page *page,
				      unsigned int offset, unsigned int len)
{
	return rpcrdma_send_add_page(context, page, offset, len);
}

/* The tail follows the pages, so it is gathered as well. */
static int xprt_rdma_call_gather_pages(struct xprt_rdma_builder *b, const struct xdr_buf *buf)
{
	int ret = xprt_rdma_page_frags_in_pages(buf, buf->page_len,
						xprt_rdma_call_gather_frag, b->send);

	if (!ret)
		ret = xprt_rdma_page_frags_in_kvec(&buf->tail[0],
						   xprt_rdma_call_gather_frag, b->send);
	return ret ? xprt_rdma_call_mapping_failed(b->request, ret) : 0;
}

/* Copy all of the Call into the Send, after the header. */
static int xprt_rdma_call_copy(struct xprt_rdma_endpoint *ep, struct xprt_rdma_request *request,
			       struct rpcrdma_send *send, u32 header_len)
{
	u32 len = request->form.inline_len;

	if (header_len + len > min(send->size, ep->version.call_threshold))
		return -EMSGSIZE;
	send->len = header_len + len;
	ep->client->stats.pullup += len;
	return read_bytes_from_xdr_buf(&request->rqst.rq_snd_buf, 0, send->data + header_len,
				       len);
}

static int xprt_rdma_call_build_payload(struct xprt_rdma_builder *b,
					u32 header_len, bool gather)
{
	const struct xdr_buf *call = &b->request->rqst.rq_snd_buf;
	const struct xprt_rdma_form *form = &b->request->form;
	struct rpcrdma_send *send = b->send;
	void *start = send->data + header_len;
	u32 copied = 0;
	int ret = 0;

	b->len = header_len + form->inline_len;
	if (form->call == XPRT_RDMA_CALL_INLINE && !gather)
		return xprt_rdma_call_copy(b->ep, b->request, send, header_len);
	if (b->len > min(send->size, b->ep->version.call_threshold))
		return -EMSGSIZE;

	if (gather) {
		copied = call->head[0].iov_len;
		memcpy(start, call->head[0].iov_base, copied);
		b->gathered = form->inline_len - copied;
		ret = xprt_rdma_call_gather_pages(b, call);
	} else if (form->call == XPRT_RDMA_CALL_READ_CHUNK) {
		copied = xprt_rdma_call_copy_around_pages(start, call);
	}
	send->len = header_len + copied;
	b->ep->client->stats.pullup += copied;
	return ret;
}

static int xprt_rdma_call_build(struct xprt_rdma_builder *b, bool gather)
{
	struct rpcrdma_message *msg = &b->ep->call;
	int ret;

	rpcrdma_wire_init_call(msg, b->version, b->request->rqst.rq_xid,
			       b->ep->conn->credits);
	ret = xprt_rdma_call_build_call_chunk(b);
	if (!ret)
		ret = xprt_rdma_call_build_reply_chunk(b);
	if (ret)
		return ret;
	ret = rpcrdma_wire_encode(msg, b->send->data, b->send->size);
	if (ret < 0)
		return ret;
	*b->next = &b->send->wr;
	return xprt_rdma_call_build_payload(b, ret, gather);
}

/*
 * The device no longer reads the task's pages. A Reply that arrived earlier waits for
 * this.
 */
static void xprt_rdma_call_gathered(struct rpcrdma_chain *chain, int status)
{
	struct rpcrdma_send *send = container_of(chain, struct rpcrdma_send, chain);
	struct xprt_rdma_request *request = send->private;
	bool replied = request->replied;

	rpcrdma_send_put(send);
	clear_and_wake_up_bit(XPRT_RDMA_GATHERING, &request->state);
	if (replied)
		xprt_rdma_reply_proceed(request);
}

/*
 * The Reply may arrive before this returns, and is processed then. A malicious server may even
 * send it before the Call: until the device gets the Call, request->posted is false, and no
 * Reply matches. Nothing may be invalidated before it is registered.
 */
static __always_inline int xprt_rdma_call_post(struct xprt_rdma_endpoint *ep,
					       struct xprt_rdma_request *request,
					       struct rpcrdma_send *send,
					       struct ib_send_wr *first, bool gather)
{
	int ret;

	send->private = request;
	request->posted = false;
	request->replied = false;
	request->sent = jiffies;
	request->on_wait = XPRT_RDMA_WAIT;
	request->rqst.rq_xtime = ktime_get();
	if (gather) {
		send->chain.done = xprt_rdma_call_gathered;
		set_bit(XPRT_RDMA_GATHERING, &request->state);
	}
	xprt_rdma_ep_get(ep);
	xprt_rdma_credits_take(&ep->credits);
	/*
	 * A reader of request->ep sees that @posted is false, and what was built. Pairs with
	 * the acquire in xprt_rdma_receive_match().
	 */
	smp_store_release(&request->ep, ep);

	ret = rpcrdma_send_post(send, first, gather ? RPCRDMA_POST_SIGNALLED : 0, &request->posted);
	if (ret) {
		request->ep = NULL;
		xprt_rdma_credits_give(&ep->credits);
		xprt_rdma_ep_put(ep);
		clear_bit(XPRT_RDMA_GATHERING, &request->state);
	}
	return ret;
}

static void xprt_rdma_call_count_traffic(const struct xprt_rdma_builder *b)
{
	struct rpcrdma_traffic *traffic = &b->ep->conn->counters.sent;
	const struct xprt_rdma_form *form = &b->request->form;

	traffic->inline_octets += form->inline_len;
	traffic->copied_octets += form->inline_len - b->gathered;
	if (form->call == XPRT_RDMA_CALL_INLINE) {
		traffic->messages[RPCRDMA_A_TRAFFIC_INLINE]++;
		return;
	}
	traffic->placed_octets += b->ep->call.read[0].length;
	traffic->messages[form->call == XPRT_RDMA_CALL_LONG ?
			  RPCRDMA_A_TRAFFIC_LONG_CALL : RPCRDMA_A_TRAFFIC_READ_CHUNK]++;
}

static void xprt_rdma_call_count(struct xprt_rdma_endpoint *ep,
				 const struct rpcrdma_message *msg)
{
	struct xprt_rdma_client_stats *stats = &ep->client->stats;

	if (msg->num_reads)
		stats->read_segments += msg->read[0].count;
	if (msg->num_writes)
		stats->write_segments += msg->write[0].count;
	if (msg->has_reply_chunk)
		stats->reply_segments += msg->reply_chunk.count;
	if (msg->proc == RPCRDMA_NOMSG)
		stats->long_calls++;
}

static int xprt_rdma_call_submit_built(struct xprt_rdma_builder *b)
{
	bool gather = xprt_rdma_call_worth_gathering(b);
	struct xprt_rdma_endpoint *ep = b->ep;
	int ret;

	ret = xprt_rdma_call_build(b, gather);
	if (ret)
		return ret;
	trace_rpcrdma_call_form(ep->conn, &ep->call, b->len, true);
	ret = xprt_rdma_call_post(ep, b->request, b->send, b->first, gather);
	if (ret == -EAGAIN)
		xprt_rdma_count_wait(ep, &b->request->rqst, RPCRDMA_A_WAITS_SEND_QUEUE);
	return ret;
}

/* Any Call but a plain one */
static noinline_for_stack int xprt_rdma_call_submit_parts(struct xprt_rdma_endpoint *ep,
							  struct xprt_rdma_request *request,
							  struct rpcrdma_send *send,
							  u32 version)
{
	struct xprt_rdma_builder b = {
		.ep = ep, .request = request, .send = send, .version = version,
	};
	int ret;

	b.next = &b.first;
	ret = xprt_rdma_call_submit_built(&b);
	if (ret) {
		xprt_rdma_request_put_mrs(request);
		return ret;
	}
	xprt_rdma_call_count(ep, &ep->call);
	xprt_rdma_call_count_traffic(&b);
	return 0;
}

/*
 * A plain Call is copied as a whole, and neither it nor its Reply needs a chunk. So there is
 * nothing to map, and nothing to undo but the Send.
 */
static bool xprt_rdma_call_is_plain(const struct xprt_rdma_request *request)
{
	return request->form.call == XPRT_RDMA_CALL_INLINE &&
	       request->form.reply == XPRT_RDMA_REPLY_INLINE &&
	       request->rqst.rq_snd_buf.page_len < XPRT_RDMA_GATHER_MIN;
}

static int xprt_rdma_call_submit_plain(struct xprt_rdma_endpoint *ep,
				       struct xprt_rdma_request *request,
				       struct rpcrdma_send *send, u32 version)
{
	struct rpcrdma_traffic *traffic = &ep->conn->counters.sent;
	struct rpcrdma_message *msg = &ep->call;
	int ret;

	rpcrdma_wire_init_call(msg, version, request->rqst.rq_xid, ep->conn->credits);
	ret = rpcrdma_wire_encode(msg, send->data, send->size);
	if (ret < 0)
		return ret;
	ret = xprt_rdma_call_copy(ep, request, send, ret);
	if (ret)
		return ret;
	trace_rpcrdma_call_form(ep->conn, msg, send->len, true);
	ret = xprt_rdma_call_post(ep, request, send, NULL, false);
	if (ret) {
		if (ret == -EAGAIN)
			xprt_rdma_count_wait(ep, &request->rqst, RPCRDMA_A_WAITS_SEND_QUEUE);
		return ret;
	}
	traffic->inline_octets += request->form.inline_len;
	traffic->copied_octets += request->form.inline_len;
	traffic->messages[RPCRDMA_A_TRAFFIC_INLINE]++;
	return 0;
}

static int xprt_rdma_call_submit_in(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst,
				    u32 version)
{
	struct xprt_rdma_request *request = xprt_rdma_request_of(rqst);
	struct rpcrdma_send *send;
	int ret;

	ret = xprt_rdma_call_choose_form(ep, request);
	if (ret)
		return ret;
	send = rpcrdma_send_get(ep->conn);
	if (!send) {
		ep->client->stats.no_send++;
		xprt_rdma_count_wait(ep, rqst, RPCRDMA_A_WAITS_SEND_BUFFER);
		return -EAGAIN;
	}
	if (xprt_rdma_call_is_plain(request))
		ret = xprt_rdma_call_submit_plain(ep, request, send, version);
	else
		ret = xprt_rdma_call_submit_parts(ep, request, send, version);
	if (ret)
		rpcrdma_send_put(send);
	return ret;
}

/*
 * The first Call asks for the highest version, and no other is sent before its answer. The
 * sender of another one waits for a credit. The credit comes back after the version has been
 * settled.
 */
static int xprt_rdma_call_submit_first(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst)
{
	int ret;

	if (!xprt_rdma_version_ask(&ep->version, rqst->rq_xid))
		return -EAGAIN;
	/* Before the Call: its answer ends this. */
	xprt_rdma_ep_offer_made(ep);
	ret = xprt_rdma_call_submit_in(ep, rqst, ep->version.offered);
	if (ret) {
		xprt_rdma_version_unask(&ep->version);
		xprt_rdma_ep_offer_over(ep);
	}
	return ret;
}

static int xprt_rdma_call_submit(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst)
{
	u32 version;

	if (!xprt_rdma_ep_has_credit(ep)) {
		xprt_rdma_count_credit_wait(ep, rqst);
		return -EAGAIN;
	}
	version = xprt_rdma_version_settled(&ep->version);
	return version ? xprt_rdma_call_submit_in(ep, rqst, version) :
			 xprt_rdma_call_submit_first(ep, rqst);
}

static inline int xprt_rdma_call_submit_either(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst)
{
	return bc_prealloc(rqst) ? xprt_rdma_backward_reply(ep, rqst) :
				   xprt_rdma_call_submit(ep, rqst);
}

/*
 * Without a credit, a Send, a registration or space in the send queue the transport
 * sets XPRT_WRITE_SPACE and waits. What was missing may have come back before the bit
 * was set. Then nothing would end the wait, so this tries a second time.
 */
static noinline int xprt_rdma_call_submit_again(struct xprt_rdma_endpoint *ep,
						struct rpc_rqst *rqst)
{
	struct rpc_xprt *xprt = rqst->rq_xprt;
	int ret;

	xprt_wait_for_buffer_space(xprt);
	/* Pairs with the barriers before xprt_write_space() in endpoint.c. */
	smp_mb__after_atomic();
	ret = xprt_rdma_call_submit_either(ep, rqst);
	if (ret != -EAGAIN)
		clear_bit(XPRT_WRITE_SPACE, &xprt->state);
	return ret;
}

static int xprt_rdma_call_submit_or_wait(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst)
{
	int ret = xprt_rdma_call_submit_either(ep, rqst);

	return ret == -EAGAIN ? xprt_rdma_call_submit_again(ep, rqst) : ret;
}

/*
 * The first message has to be short. A Call whose header does not fit into it does not
 * fail: the connection uses version 1.
 */
static bool xprt_rdma_call_decline_version(struct xprt_rdma_endpoint *ep,
					   struct rpc_rqst *rqst)
{
	if (bc_prealloc(rqst) || !xprt_rdma_version_decline(&ep->version))
		return false;
	xprt_rdma_ep_offer_over(ep);
	return true;
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
		ret = xprt_rdma_call_submit_or_wait(ep, rqst);
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
	case -EMSGSIZE:
		if (xprt_rdma_call_decline_version(ep, rqst))
			return -EAGAIN;
		fallthrough;
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
