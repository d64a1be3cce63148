// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Choose how a Call travels, build its chunks, and post all of it at once.
 */
#include <linux/highmem.h>
#include <linux/sunrpc/auth.h>

#include "../trace.h"
#include "client_private.h"
#include "piece.h"

/* How long a Call may hold up those behind it because it cannot be mapped */
#define MAPPING_PATIENCE	(5 * HZ)

/**
 * struct builder - a Call in the making
 * @link: the connection
 * @request: what is to be sent
 * @send: its Send
 * @first: the first work request of the chain, if there are registrations
 * @next: where to note the one that comes next
 * @chunk: the chunk being built
 * @mr: the registration being filled
 * @direction: of @mr
 * @len: octets of the Send
 *
 * Lives on the stack of send_call().
 */
struct builder {
	struct rpcrdma_link *link;
	struct rpcrdma_request *request;
	struct rpcrdma_send *send;
	struct ib_send_wr *first;
	struct ib_send_wr **next;
	struct rpcrdma_chunk *chunk;
	struct rpcrdma_mr *mr;
	enum dma_data_direction direction;
	u32 len;
};

/* Sizes */

/*
 * With integrity or privacy the data is part of what is computed over. For krb5
 * without either, RPCSEC_GSS leaves the flag as it finds it in fresh memory.
 */
static bool ddp_allowed(const struct rpc_rqst *rqst)
{
	const struct rpc_auth *auth = rqst->rq_cred->cr_auth;

	return auth->au_flavor == RPC_AUTH_GSS_KRB5 ||
	       !test_bit(RPCAUTH_AUTH_DATATOUCH, &auth->au_flags);
}

static u32 span_segments(const struct rpcrdma_link *link, unsigned int offset,
			 u32 len)
{
	return rpcrdma_form_segments(offset_in_page(offset), len,
				     link->max_mr_pages, link->conn->bounced);
}

static u32 page_segments(const struct rpcrdma_link *link,
			 const struct xdr_buf *buf)
{
	return span_segments(link, buf->page_base, buf->page_len);
}

/* At most: with luck, or with a device that allows gaps, there are fewer. */
static u32 whole_segments(const struct rpcrdma_link *link,
			  const struct xdr_buf *buf)
{
	return span_segments(link, offset_in_page(buf->head[0].iov_base),
			     buf->head[0].iov_len) +
	       page_segments(link, buf) +
	       span_segments(link, offset_in_page(buf->tail[0].iov_base),
			     buf->tail[0].iov_len);
}

static int choose_form(const struct rpcrdma_link *link,
		       struct rpcrdma_request *request)
{
	const struct xdr_buf *call = &request->rqst.rq_snd_buf;
	const struct xdr_buf *reply = &request->rqst.rq_rcv_buf;
	bool ddp = ddp_allowed(&request->rqst);
	struct rpcrdma_sizes sizes = {
		.call_len	 = call->len,
		.call_pages	 = call->page_len,
		.call_ddp	 = ddp && call->flags & XDRBUF_WRITE,
		.reply_max	 = reply->buflen,
		.reply_pages	 = reply->page_len,
		.reply_ddp	 = ddp && reply->flags & XDRBUF_READ,
		.call_threshold	 = link->conn->agreement.call_threshold,
		.reply_threshold = link->conn->agreement.reply_threshold,
	};

	/* Most RPCs, for which nobody has to count segments */
	if (rpcrdma_form_inline(&request->form, &sizes))
		return 0;
	sizes.read_segments = page_segments(link, call);
	sizes.long_segments = whole_segments(link, call);
	sizes.write_segments = page_segments(link, reply);
	sizes.reply_segments = whole_segments(link, reply);
	return rpcrdma_form_choose(&request->form, &sizes);
}

/* Chunks */

/* What -ENOBUFS says of memory that cannot be mapped need not be true for ever. */
static int mapping_failed(struct rpcrdma_request *request, int error)
{
	if (error != -ENOBUFS)
		return -EIO;
	if (!request->mapping_since)
		request->mapping_since = jiffies ?: 1;
	return time_before(jiffies, request->mapping_since + MAPPING_PATIENCE) ?
	       -ENOBUFS : -EIO;
}

static int finish_mr(struct builder *b)
{
	struct rpcrdma_mr *mr = b->mr;
	int ret;

	b->mr = NULL;
	ret = rpcrdma_mr_map(mr, b->direction);
	if (ret)
		return mapping_failed(b->request, ret);
	*b->next = &mr->reg_wr.wr;
	b->next = &mr->reg_wr.wr.next;
	b->link->client->stats.registrations++;
	b->link->client->stats.registered += mr->segment.length;
	return rpcrdma_wire_add_segment(&b->link->call, b->chunk,
					mr->segment.handle, mr->segment.length,
					mr->segment.offset);
}

/* Make @len octets of @pages, @offset octets into the first, part of the chunk. */
static int offer_pages(struct builder *b, struct page **pages,
		       unsigned int offset, unsigned int len)
{
	unsigned int taken;
	bool empty;
	int ret;

	while (len) {
		empty = !b->mr;
		if (empty) {
			b->mr = rpcrdma_mr_get(b->link->conn);
			if (!b->mr)
				return -EAGAIN;
			list_add_tail(&b->mr->list,
				      &b->request->invalidation.mrs);
		}
		taken = rpcrdma_mr_add(b->mr, pages, offset, len);
		if (taken == len)
			break;
		if (empty && !taken)
			return -EIO;
		ret = finish_mr(b);
		if (ret)
			return ret;
		offset += taken;
		pages += offset >> PAGE_SHIFT;
		offset = offset_in_page(offset);
		len -= taken;
	}
	return 0;
}

static int offer_piece(void *context, struct page *page, unsigned int offset,
		       unsigned int len)
{
	return offer_pages(context, &page, offset, len);
}

/* A chunk of everything in @buf, or of its pages alone */
static int fill_chunk(struct builder *b, struct rpcrdma_chunk *chunk,
		      const struct xdr_buf *buf, bool whole,
		      enum dma_data_direction direction)
{
	int ret = 0;

	b->chunk = chunk;
	b->direction = direction;
	if (whole)
		ret = rpcrdma_kvec_pieces(&buf->head[0], offer_piece, b);
	if (!ret)
		ret = offer_pages(b, buf->pages + (buf->page_base >> PAGE_SHIFT),
				  offset_in_page(buf->page_base), buf->page_len);
	if (!ret && whole)
		ret = rpcrdma_kvec_pieces(&buf->tail[0], offer_piece, b);
	if (!ret && b->mr)
		ret = finish_mr(b);
	return ret;
}

static int build_call_chunk(struct builder *b)
{
	const struct xdr_buf *call = &b->request->rqst.rq_snd_buf;
	struct rpcrdma_message *msg = &b->link->call;
	bool whole = b->request->form.call == RPCRDMA_CALL_LONG;
	u32 position = whole ? 0 : call->head[0].iov_len;
	struct rpcrdma_chunk *chunk;

	if (b->request->form.call == RPCRDMA_CALL_INLINE)
		return 0;
	if (whole)
		msg->proc = RPCRDMA_NOMSG;
	chunk = rpcrdma_wire_add_read(msg, position);
	return fill_chunk(b, chunk, call, whole, DMA_TO_DEVICE);
}

static int build_reply_chunk(struct builder *b)
{
	struct rpcrdma_request *request = b->request;
	const struct xdr_buf *reply = &request->rqst.rq_rcv_buf;
	bool whole = request->form.reply == RPCRDMA_REPLY_CHUNK;
	struct rpcrdma_message *msg = &b->link->call;
	struct rpcrdma_chunk *chunk;
	struct list_head *last;
	int ret;

	request->reply_mr = NULL;
	request->reply_segments = 0;
	if (request->form.reply == RPCRDMA_REPLY_INLINE)
		return 0;

	last = request->invalidation.mrs.prev;
	chunk = whole ? rpcrdma_wire_add_reply(msg) :
			rpcrdma_wire_add_write(msg);
	ret = fill_chunk(b, chunk, reply, whole, DMA_FROM_DEVICE);
	if (ret)
		return ret;
	request->reply_mr = list_entry(last->next, struct rpcrdma_mr, list);
	request->reply_segments = chunk->count;
	return 0;
}

/* Payload */

static int copy_piece(void *context, struct page *page, unsigned int offset,
		      unsigned int len)
{
	void **to = context;

	memcpy_from_page(*to, page, offset, len);
	*to += len;
	return 0;
}

static void *copy_kvec(void *to, const struct kvec *from)
{
	memcpy(to, from->iov_base, from->iov_len);
	return to + from->iov_len;
}

/**
 * rpcrdma_copy_octets - copy an RPC message
 * @to: has room for it
 * @from: the message
 *
 * Return: the first octet behind the copy.
 */
void *rpcrdma_copy_octets(void *to, const struct xdr_buf *from)
{
	to = copy_kvec(to, &from->head[0]);
	rpcrdma_page_pieces(from, from->page_len, copy_piece, &to);
	return copy_kvec(to, &from->tail[0]);
}

/* The data item has its own chunk, which takes its padding along. */
static void *copy_around_pages(void *to, const struct xdr_buf *from)
{
	size_t pad = min_t(size_t, xdr_pad_size(from->page_len),
			   from->tail[0].iov_len);
	struct kvec tail = {
		.iov_base = from->tail[0].iov_base + pad,
		.iov_len = from->tail[0].iov_len - pad,
	};

	to = copy_kvec(to, &from->head[0]);
	return copy_kvec(to, &tail);
}

static unsigned int pieces(unsigned int offset, size_t len)
{
	return len ? DIV_ROUND_UP(offset + len, PAGE_SIZE) : 0;
}

static bool worth_gathering(const struct builder *b)
{
	const struct xdr_buf *call = &b->request->rqst.rq_snd_buf;

	if (b->request->form.call != RPCRDMA_CALL_INLINE ||
	    call->page_len < RPCRDMA_GATHER_MIN)
		return false;
	return pieces(offset_in_page(call->page_base), call->page_len) +
	       pieces(offset_in_page(call->tail[0].iov_base),
		      call->tail[0].iov_len) <= b->link->conn->send_sges;
}

static int gather_piece(void *context, struct page *page, unsigned int offset,
			unsigned int len)
{
	return rpcrdma_send_add_page(context, page, offset, len);
}

/* What comes behind the pages has to be gathered, too. */
static int gather_pages(struct builder *b, const struct xdr_buf *buf)
{
	int ret = rpcrdma_page_pieces(buf, buf->page_len, gather_piece, b->send);

	if (!ret)
		ret = rpcrdma_kvec_pieces(&buf->tail[0], gather_piece, b->send);
	return ret ? mapping_failed(b->request, ret) : 0;
}

static int build_payload(struct builder *b, u32 header_len, bool gather)
{
	const struct xdr_buf *call = &b->request->rqst.rq_snd_buf;
	const struct rpcrdma_form *form = &b->request->form;
	struct rpcrdma_send *send = b->send;
	void *start = send->data + header_len, *end = start;
	int ret = 0;

	if (header_len + form->inline_len >
	    min(send->size, b->link->conn->agreement.call_threshold))
		return -EMSGSIZE;

	if (gather) {
		end = copy_kvec(start, &call->head[0]);
		ret = gather_pages(b, call);
	} else if (form->call == RPCRDMA_CALL_INLINE) {
		end = rpcrdma_copy_octets(start, call);
	} else if (form->call == RPCRDMA_CALL_READ_CHUNK) {
		end = copy_around_pages(start, call);
	}
	send->len = end - (void *)send->data;
	b->len = header_len + form->inline_len;
	b->link->client->stats.pullup += end - start;
	return ret;
}

static int build_call(struct builder *b, bool gather)
{
	struct rpcrdma_message *msg = &b->link->call;
	int ret;

	rpcrdma_wire_init_call(msg, b->request->rqst.rq_xid,
			       b->link->conn->config.credits);
	ret = build_call_chunk(b);
	if (!ret)
		ret = build_reply_chunk(b);
	if (ret)
		return ret;
	ret = rpcrdma_wire_encode(msg, b->send->data, b->send->size);
	if (ret < 0)
		return ret;
	*b->next = &b->send->wr;
	return build_payload(b, ret, gather);
}

/* Posting */

/*
 * The pages belong to the task again. If the Reply was faster, it has been
 * waiting for this.
 */
static void call_gathered(struct rpcrdma_work *work, int status)
{
	struct rpcrdma_send *send =
		container_of(work, struct rpcrdma_send, work);
	struct rpcrdma_request *request = send->private;
	bool replied = request->replied;

	rpcrdma_send_put(send);
	clear_and_wake_up_bit(RPCRDMA_GATHERING, &request->state);
	if (replied)
		rpcrdma_reply_proceed(request);
}

/*
 * The Reply may come before this returns, and from a malicious server even
 * before the Call has left: RPCRDMA_POSTING makes it wait for the outcome, as
 * nothing may be invalidated before it is registered.
 */
static int post_call(struct builder *b, bool gather)
{
	struct rpcrdma_request *request = b->request;
	struct rpcrdma_link *link = b->link;
	struct rpcrdma_send *send = b->send;
	int ret;

	send->work.done = gather ? call_gathered : rpcrdma_send_done;
	send->private = request;
	request->posted = false;
	request->replied = false;
	request->sent = jiffies;
	request->overdue = false;
	request->rqst.rq_xtime = ktime_get();
	if (gather)
		set_bit(RPCRDMA_GATHERING, &request->state);
	set_bit(RPCRDMA_POSTING, &request->state);
	rpcrdma_link_get(link);
	rpcrdma_credits_take(&link->credits);
	/* Whoever sees the link sees RPCRDMA_POSTING and what was built. */
	smp_store_release(&request->link, link);

	ret = rpcrdma_send_post(send, b->first, gather);
	if (ret) {
		request->link = NULL;
		rpcrdma_credits_give(&link->credits);
		rpcrdma_link_put(link);
		clear_bit(RPCRDMA_GATHERING, &request->state);
	} else {
		/* Pairs with the one in match(). */
		smp_store_release(&request->posted, true);
	}
	clear_and_wake_up_bit(RPCRDMA_POSTING, &request->state);
	return ret;
}

static void count_call(struct rpcrdma_link *link,
		       const struct rpcrdma_message *msg)
{
	struct rpcrdma_client_stats *stats = &link->client->stats;

	if (msg->num_reads)
		stats->read_segments += msg->read[0].count;
	if (msg->num_writes)
		stats->write_segments += msg->write[0].count;
	if (msg->has_reply_chunk)
		stats->reply_segments += msg->reply_chunk.count;
	if (msg->proc == RPCRDMA_NOMSG)
		stats->long_calls++;
}

static int send_call(struct rpcrdma_link *link, struct rpc_rqst *rqst)
{
	struct rpcrdma_request *request = rpcrdma_request_of(rqst);
	struct builder b = { .link = link, .request = request };
	bool gather;
	int ret;

	if (!rpcrdma_link_has_credit(link))
		return -EAGAIN;
	ret = choose_form(link, request);
	if (ret)
		return ret;
	b.send = rpcrdma_send_get(link->conn);
	if (!b.send) {
		link->client->stats.no_send++;
		return -EAGAIN;
	}

	b.next = &b.first;
	gather = worth_gathering(&b);
	ret = build_call(&b, gather);
	if (!ret) {
		trace_rpcrdma_call_form(link->conn, &link->call, b.len, true);
		ret = post_call(&b, gather);
	}
	if (ret) {
		rpcrdma_request_put_mrs(request);
		rpcrdma_send_put(b.send);
		return ret;
	}
	count_call(link, &link->call);
	return 0;
}

static int send_either(struct rpcrdma_link *link, struct rpc_rqst *rqst)
{
	return bc_prealloc(rqst) ? rpcrdma_backward_reply(link, rqst) :
				   send_call(link, rqst);
}

/*
 * Without a credit, a send buffer, a registration or room in the send queue
 * the transport is parked. What was missing may have come back in between, and
 * its wake-up have found nobody asleep: hence the second try.
 */
static int send_or_park(struct rpcrdma_link *link, struct rpc_rqst *rqst)
{
	struct rpc_xprt *xprt = rqst->rq_xprt;
	int ret = send_either(link, rqst);

	if (ret != -EAGAIN)
		return ret;
	xprt_wait_for_buffer_space(xprt);
	/* Pairs with those before xprt_write_space(). */
	smp_mb__after_atomic();
	ret = send_either(link, rqst);
	if (ret != -EAGAIN)
		clear_bit(XPRT_WRITE_SPACE, &xprt->state);
	return ret;
}

/**
 * rpcrdma_call_send - the rpc_xprt_ops's send_request
 * @rqst: a Call, or the Reply to a backward Call
 *
 * What is wrong with this RPC alone must not be returned: sunrpc would have
 * whoever holds XPRT_LOCKED suffer for it.
 *
 * Context: XPRT_LOCKED is held and @rqst is pinned.
 * Return: 0: sent, or never to be sent. -EAGAIN: XPRT_WRITE_SPACE is set until
 * it may be tried again. -ENOBUFS: try again later. -ENOTCONN.
 */
int rpcrdma_call_send(struct rpc_rqst *rqst)
{
	struct rpc_xprt *xprt = rqst->rq_xprt;
	struct rpcrdma_link *link = rpcrdma_client_of(xprt)->link;
	int ret = -ENOTCONN;

	/* No second copy of a Call by a connection that is to be closed */
	if (!link || test_bit(XPRT_CLOSE_WAIT, &xprt->state))
		return ret;
	if (rpcrdma_conn_established(link->conn) &&
	    rpcrdma_conn_enter(link->conn)) {
		ret = send_or_park(link, rqst);
		rpcrdma_conn_leave(link->conn);
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
		return -ENOBUFS;
	default:
		link->client->stats.failed++;
		/* RFC 8166 section 4.5.4: the server is to know that it gets no Reply. */
		if (bc_prealloc(rqst))
			rpcrdma_conn_close(link->conn, ret);
		else
			rpcrdma_rpc_fail(rqst, ret);
		return 0;
	}
}
