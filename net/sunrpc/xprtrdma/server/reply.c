// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The Reply: RDMA Writes for the Write chunks and the Reply chunk, and the Send
 * after them, as one chain where possible (RFC 8166 sections 3.4.6, 3.5.3 and
 * 4.3).
 *
 * A Reply that is too long for one chain goes in several. Each chain but the first
 * is the rw_chain of another request, a carrier. No thread waits for space in the
 * send queue or for the requester, because then all threads could wait.
 *
 * Most Replies are copied into a Send as a whole. They take a short way.
 */
#include <linux/sunrpc/auth.h>

#include "server_private.h"
#include "../trace.h"

/*
 * Page data of up to this many octets is copied instead of gathered. Pages that
 * the device gathers can be released only after a completion, which costs an interrupt.
 */
#define SVCRDMA_COPY_MAX	8192

/**
 * struct svcrdma_reply - a Reply with parts that the device reads, while it is built
 * @request: the request
 * @carrier: the request whose rw_chain is filled: @request, later its carriers
 * @res: the RPC message
 * @form: where its parts go
 * @uses_head: the device reads the page with the head and the tail
 * @gathered: octets that the Send gathers from pages
 *
 * Lives on the stack of svcrdma_reply_send_parts().
 */
struct svcrdma_reply {
	struct svcrdma_request *request;
	struct svcrdma_request *carrier;
	const struct xdr_buf *res;
	struct svcrdma_reply_form form;
	bool uses_head;
	u32 gathered;
};

/**
 * svcrdma_result_payload - xpo_result_payload: note a DDP-eligible data item
 * @rqstp: the svc_rqst of the thread
 * @offset: offset of the data item in octets into rq_res
 * @length: its length in octets, without padding
 *
 * Nothing is reduced under RPCSEC_GSS integrity or privacy, because it would not
 * be protected (RFC 8166 section 8.2.2).
 *
 * Context: a thread of the RPC server.
 * Return: 0.
 */
int svcrdma_result_payload(struct svc_rqst *rqstp, unsigned int offset, unsigned int length)
{
	struct svcrdma_request *request = rqstp->rq_xprt_ctxt;
	struct svcrdma_results *results;
	struct svcrdma_result *result;

	switch (rqstp->rq_cred.cr_flavor) {
	case RPC_AUTH_GSS_KRB5I:
	case RPC_AUTH_GSS_KRB5P:
		return 0;
	}
	if (!request)
		return 0;
	/* A data item without a Write chunk is not reduced. */
	results = &request->results;
	if (results->count == request->msg.num_writes)
		return 0;
	result = &results->result[results->count++];
	result->offset = offset;
	result->length = length;
	return 0;
}

/*
 * The rw_chain of @carrier is done, or will not be posted. With the last carrier, the
 * request with the pages of the Reply is put, too.
 */
static void svcrdma_reply_carrier_done(struct svcrdma_request *carrier)
{
	struct svcrdma_request *request = carrier->carried;

	svcrdma_rw_chain_destroy(carrier);
	if (carrier != request)
		svcrdma_request_put(carrier);
	if (refcount_dec_and_test(&request->carriers))
		svcrdma_request_put(request);
}

static void svcrdma_reply_part_written(struct rpcrdma_chain *chain, int status)
{
	struct svcrdma_request *carrier =
		container_of(chain, struct svcrdma_request, rw_chain.chain);

	svcrdma_denied_note(carrier->carried, status);
	svcrdma_reply_carrier_done(carrier);
}

/* Each segment and each end of a part may need one more element of the scatterlist. */
static int svcrdma_reply_init_writes(const struct svcrdma_reply *reply,
				     struct svcrdma_rw_chain *chain)
{
	const struct svcrdma_request *request = reply->request;
	unsigned int rws = request->msg.num_segments;
	unsigned int sg = 1 + DIV_ROUND_UP(reply->form.written, PAGE_SIZE) + rws;

	if (request->msg.proc == RPCRDMA_NOMSG)
		sg += 2 * reply->form.num_parts;
	return svcrdma_rw_chain_init(chain, DMA_TO_DEVICE, rws, sg);
}

/*
 * The chain is full. It is posted now or when the send queue has space, and the rest
 * of the Reply goes into the rw_chain of a new carrier.
 */
static int svcrdma_reply_next_carrier(struct svcrdma_reply *reply)
{
	struct svcrdma_request *full = reply->carrier;
	struct svcrdma_request *next;
	int ret;

	next = svcrdma_request_get(full->service);
	if (!next)
		return -ENOMEM;
	ret = svcrdma_reply_init_writes(reply, &next->rw_chain);
	if (ret) {
		svcrdma_request_put(next);
		return ret;
	}
	next->carried = reply->request;
	refcount_inc(&reply->request->carriers);
	full->rw_chain.chain.done = svcrdma_reply_part_written;
	ret = svcrdma_rw_chain_post(full);
	/* If this failed, reply->carrier is still @full, and the caller ends it. */
	if (ret)
		svcrdma_reply_carrier_done(next);
	else
		reply->carrier = next;
	return ret;
}

/* Add RDMA Writes for a piece of the Reply. */
static int svcrdma_reply_write_piece(void *data, const struct svcrdma_piece *piece)
{
	struct svcrdma_reply *reply = data;
	const struct xdr_buf *res = reply->res;
	u32 written = 0;
	int ret;

	if (piece->at < res->head[0].iov_len ||
	    piece->at + piece->octets > res->head[0].iov_len + res->page_len)
		reply->uses_head = true;
	for (;;) {
		ret = svcrdma_rw_chain_add(reply->carrier, res, piece->at + written,
					   piece->octets - written, piece->segment,
					   piece->skip + written);
		if (ret < 0)
			return ret;
		written += ret;
		if (written == piece->octets)
			return 0;
		ret = svcrdma_reply_next_carrier(reply);
		if (ret)
			return ret;
	}
}

/**
 * svcrdma_service_send_get - take a Send, and wait if there is none
 * @service: the service that needs it
 * @request: the request whose answer it is for
 *
 * svcrdma_xprt_has_wspace() lets threads take Calls only while there is a Send for
 * each of them. So this waits only if there was no memory to make a Send.
 *
 * Context: between rpcrdma_conn_enter() and rpcrdma_conn_leave(); may sleep.
 * Return: a Send, or NULL if the connection is closing.
 */
struct rpcrdma_send *svcrdma_service_send_get(struct svcrdma_service *service,
					      struct svcrdma_request *request)
{
	struct rpcrdma_send *send;
	int seq;

	do {
		seq = atomic_read_acquire(&service->resource_seq);
		send = rpcrdma_send_get(service->conn);
		if (send)
			return send;
		request->tally.waited_send = true;
	} while (svcrdma_service_wait(service, seq, jiffies));
	return NULL;
}

static int svcrdma_reply_copy_octets(struct rpcrdma_send *send, const struct xdr_buf *res,
				     u32 at, u32 octets)
{
	int ret;

	if (octets > send->size - send->len)
		return -EMSGSIZE;
	ret = read_bytes_from_xdr_buf(res, at, send->data + send->len, octets);
	send->len += octets;
	return ret;
}

static int svcrdma_reply_copy_parts(struct svcrdma_reply *reply, struct rpcrdma_send *send)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < reply->form.num_parts && !ret; i++)
		ret = svcrdma_reply_copy_octets(send, reply->res, reply->form.part[i].at,
						reply->form.part[i].len);
	return ret;
}

/*
 * No part of the Reply is written, so all of it goes inline.
 *
 * Return: true if gathering saves time, and one Send can gather pages and tail.
 */
static bool svcrdma_reply_can_gather(const struct svcrdma_reply *reply)
{
	struct rpcrdma_conn *conn = reply->request->service->conn;
	const struct xdr_buf *res = reply->res;
	unsigned int pages;

	if (res->page_len <= SVCRDMA_COPY_MAX)
		return false;
	pages = DIV_ROUND_UP(res->page_base + res->page_len, PAGE_SIZE);
	return pages + !!res->tail[0].iov_len <= conn->send_sges;
}

static int svcrdma_reply_gather_pages(struct svcrdma_reply *reply, struct rpcrdma_send *send)
{
	const struct xdr_buf *res = reply->res;
	const struct kvec *tail = &res->tail[0];
	struct page **page = res->pages + (res->page_base >> PAGE_SHIFT);
	unsigned int offset = offset_in_page(res->page_base);
	u32 left = res->page_len;
	int ret;

	ret = svcrdma_reply_copy_octets(send, res, 0, res->head[0].iov_len);
	while (left && !ret) {
		u32 len = min_t(u32, left, PAGE_SIZE - offset);

		ret = rpcrdma_send_add_page(send, *page++, offset, len);
		left -= len;
		offset = 0;
	}
	if (!ret && tail->iov_len) {
		reply->uses_head = true;
		ret = rpcrdma_send_add_page(send, virt_to_page(tail->iov_base),
					    offset_in_page(tail->iov_base), tail->iov_len);
	}
	reply->gathered = res->page_len + tail->iov_len;
	return ret;
}

static int svcrdma_reply_encode(const struct svcrdma_request *request,
				struct rpcrdma_send *send)
{
	int len = rpcrdma_wire_encode(&request->msg, send->data, send->size);

	if (len < 0)
		return len;
	send->len = len;
	return 0;
}

/*
 * Fill a Send with the transport header and what goes inline. If no part of the Reply is
 * written, it has pages that are worth gathering.
 */
static int svcrdma_reply_fill_send(struct svcrdma_reply *reply, struct rpcrdma_send *send)
{
	int ret = svcrdma_reply_encode(reply->request, send);

	if (ret || reply->request->msg.proc == RPCRDMA_NOMSG)
		return ret;
	return reply->form.written ? svcrdma_reply_copy_parts(reply, send) :
				     svcrdma_reply_gather_pages(reply, send);
}

/*
 * For this Reply the threshold was chosen before. The requester may send the next Call as
 * soon as this one is posted, and the Reply to that may be longer.
 */
static void svcrdma_reply_note_version(const struct svcrdma_request *request)
{
	struct svcrdma_service *service = request->service;

	if (request->msg.version > READ_ONCE(service->answered))
		WRITE_ONCE(service->answered, request->msg.version);
}

static void svcrdma_reply_choose_invalidation(const struct svcrdma_request *request,
					      struct rpcrdma_send *send)
{
	if (!request->invalidate)
		return;
	send->wr.opcode = IB_WR_SEND_WITH_INV;
	send->wr.ex.invalidate_rkey = request->handle;
}

/*
 * Return: the place after the last page of a Reply. rq_next_page does not count a
 * page that only the end of the Reply reaches into, for instance the checksum of
 * RPCSEC_GSS. The pages of NFSv2's READLINK are in an array of its own, and
 * rq_next_page counts them.
 */
static struct page **svcrdma_reply_pages_end(const struct svcrdma_reply *reply,
					     const struct svc_rqst *rqstp)
{
	const struct xdr_buf *res = reply->res;

	if (!res->page_len || res->pages < rqstp->rq_respages ||
	    res->pages >= rqstp->rq_page_end)
		return rqstp->rq_next_page;
	return max(rqstp->rq_next_page, res->pages +
		   DIV_ROUND_UP(res->page_base + res->page_len, PAGE_SIZE));
}

static void svcrdma_reply_done(struct rpcrdma_chain *chain, int status)
{
	struct rpcrdma_send *send = container_of(chain, struct rpcrdma_send, chain);
	struct svcrdma_request *carrier = send->private;

	rpcrdma_send_put(send);
	svcrdma_denied_note(carrier->carried, status);
	svcrdma_reply_carrier_done(carrier);
}

/* The data of most READs goes to one segment, so there is nothing to walk over. */
static int svcrdma_reply_write_pieces(struct svcrdma_reply *reply)
{
	const struct svcrdma_request *request = reply->request;
	const struct svcrdma_result *result = &request->results.result[0];
	const struct rpcrdma_message *msg = &request->msg;

	if (request->results.count == 1 && result->chunk && result->chunk->count == 1 &&
	    msg->proc != RPCRDMA_NOMSG) {
		const struct svcrdma_piece piece = {
			.kind	 = SVCRDMA_PIECE_CHUNK,
			.at	 = result->offset,
			.octets	 = result->length,
			.segment = rpcrdma_chunk_segments(msg, result->chunk),
		};

		return svcrdma_reply_write_piece(reply, &piece);
	}
	return svcrdma_reply_walk(&reply->form, msg, &request->results,
				  svcrdma_reply_write_piece, reply);
}

static int svcrdma_reply_prepare_chain(struct svcrdma_reply *reply, struct rpcrdma_send *send)
{
	int ret = reply->form.written ? svcrdma_reply_write_pieces(reply) : 0;

	return ret ?: svcrdma_reply_fill_send(reply, send);
}

/* Before it is posted: then the request may be gone. */
static void svcrdma_reply_tally(const struct svcrdma_reply *reply)
{
	struct svcrdma_tally *tally = &reply->request->tally;

	tally->sent_placed = reply->form.written;
	if (reply->request->msg.proc == RPCRDMA_NOMSG) {
		tally->sent = RPCRDMA_A_TRAFFIC_REPLY_CHUNK;
		return;
	}
	tally->sent = reply->form.written ? RPCRDMA_A_TRAFFIC_WRITE_CHUNK :
					    RPCRDMA_A_TRAFFIC_INLINE;
	tally->sent_inline = reply->form.len;
	tally->sent_copied = reply->form.len - reply->gathered;
}

static void svcrdma_reply_trace(const struct svcrdma_request *request, u32 len, u32 written)
{
	struct rpcrdma_conn *conn = request->service->conn;

	trace_rpcrdma_reply_form(conn, &request->msg, len, true);
	trace_rpcrdma_reply(conn, request->msg.xid, len, written, request->num_pages,
			    request->invalidate ? request->handle : 0);
}

/* Post the last chain with the Send at its end. */
static int svcrdma_reply_post_chain(struct svcrdma_reply *reply, struct rpcrdma_send *send)
{
	struct svcrdma_request *request = reply->request;
	struct ib_send_wr *first = &send->wr;
	int ret;

	svcrdma_reply_trace(request, send->len + reply->gathered, reply->form.written);
	svcrdma_reply_tally(reply);
	send->private = reply->carrier;
	send->chain.done = svcrdma_reply_done;
	if (reply->form.written)
		first = svcrdma_rw_chain_wrs(reply->carrier, first);
	ret = rpcrdma_send_post(send, first, RPCRDMA_POST_SIGNALLED | RPCRDMA_POST_LATER, NULL);
	if (ret)
		request->tally.sent = 0;
	return ret;
}

/*
 * Context: between rpcrdma_conn_enter() and rpcrdma_conn_leave(). The request is
 * not the caller's afterwards, even if this fails: the device may still read its
 * pages.
 */
static int svcrdma_reply_post(struct svcrdma_reply *reply, struct svc_rqst *rqstp)
{
	struct svcrdma_request *request = reply->request;
	struct rpcrdma_send *send;
	int ret;

	send = svcrdma_service_send_get(request->service, request);
	if (!send) {
		svcrdma_request_put(request);
		return -ENOTCONN;
	}
	svcrdma_reply_note_version(request);
	svcrdma_rw_chain_reset(&request->rw_chain);
	ret = reply->form.written ? svcrdma_reply_init_writes(reply, &request->rw_chain) : 0;
	if (ret) {
		rpcrdma_send_put(send);
		svcrdma_request_put(request);
		return ret;
	}
	reply->carrier = request;
	request->carried = request;
	refcount_set(&request->carriers, 1);

	ret = svcrdma_reply_prepare_chain(reply, send);
	svcrdma_reply_choose_invalidation(request, send);
	svcrdma_pages_keep(request, rqstp, svcrdma_reply_pages_end(reply, rqstp),
			   reply->uses_head || ret);
	if (!ret)
		ret = svcrdma_reply_post_chain(reply, send);
	if (ret) {
		rpcrdma_send_put(send);
		svcrdma_reply_carrier_done(reply->carrier);
	}
	return ret;
}

/*
 * Send a Reply that is copied as a whole. The core frees its pages but the first, because
 * they may belong to the page cache. The page of the head always belongs to the thread.
 *
 * Context and request as for svcrdma_reply_post().
 */
static int svcrdma_reply_send_copy(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	const struct xdr_buf *res = &rqstp->rq_res;
	struct rpcrdma_send *send;
	int ret = -ENOTCONN;

	send = svcrdma_service_send_get(request->service, request);
	if (!send)
		goto out;
	svcrdma_reply_note_version(request);
	ret = svcrdma_reply_encode(request, send) ?:
	      svcrdma_reply_copy_octets(send, res, 0, res->len);
	if (request->num_pages)
		svcrdma_pages_restore(request, rqstp);
	else
		rpcrdma_compat_keep_reply_pages(rqstp, 1);
	if (!ret) {
		svcrdma_reply_choose_invalidation(request, send);
		svcrdma_reply_trace(request, send->len, 0);
		ret = rpcrdma_send_post(send, NULL, RPCRDMA_POST_LATER, NULL);
	}
	if (!ret) {
		request->tally.sent = RPCRDMA_A_TRAFFIC_INLINE;
		request->tally.sent_inline = res->len;
		request->tally.sent_copied = res->len;
	} else {
		rpcrdma_send_put(send);
	}
out:
	svcrdma_request_put(request);
	return ret;
}

/* Nothing shows that a chunk is too short before the Call is executed. */
static void svcrdma_reply_refuse(struct svcrdma_reply *reply)
{
	struct svcrdma_request *request = reply->request;

	rpcrdma_wire_cant_reply(&request->msg, reply->form.short_chunk, reply->form.needed,
				true);
	request->tally.error = RPCRDMA_A_ERRORS_REPLY_SPACE;
	svcrdma_reply_error(request);
}

static noinline_for_stack int svcrdma_reply_send_parts(struct svcrdma_request *request,
						       struct svc_rqst *rqstp, u32 threshold)
{
	struct svcrdma_reply reply;

	/* svcrdma_reply_choose() fills in the rest, most of which is an array. */
	reply.request = request;
	reply.res = &rqstp->rq_res;
	reply.uses_head = false;
	reply.gathered = 0;
	if (svcrdma_reply_choose(&reply.form, &request->msg, &request->results, reply.res,
				 threshold)) {
		svcrdma_reply_refuse(&reply);
		return 0;
	}
	if (!reply.form.written && !svcrdma_reply_can_gather(&reply))
		return svcrdma_reply_send_copy(request, rqstp);
	if (reply.form.written)
		svcrdma_count(SVCRDMA_STAT_WRITE);
	return svcrdma_reply_post(&reply, rqstp);
}

/* Most Replies: what is copied in any case if it fits, and fits with a header of any length */
static bool svcrdma_reply_is_copied(const struct svcrdma_request *request,
				    const struct xdr_buf *res, u32 threshold)
{
	return !request->results.count && res->page_len <= SVCRDMA_COPY_MAX &&
	       (u64)rpcrdma_wire_header_most(&request->msg) + res->len <= threshold;
}

/*
 * Context: between rpcrdma_conn_enter() and rpcrdma_conn_leave(). The caller must not use
 * the request afterwards.
 */
static int svcrdma_reply_send(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	struct svcrdma_service *service = request->service;
	struct rpcrdma_message *msg = &request->msg;
	u32 threshold = svcrdma_service_threshold(service, msg->version);
	int len = rqstp->rq_res.len;
	int ret;

	rpcrdma_wire_make_reply(msg, RPCRDMA_MSG,
				svcrdma_service_grant(service, msg->credits));
	if (svcrdma_reply_is_copied(request, &rqstp->rq_res, threshold))
		ret = svcrdma_reply_send_copy(request, rqstp);
	else
		ret = svcrdma_reply_send_parts(request, rqstp, threshold);
	/* The core does not try again. The requester does so on a new connection. */
	if (ret)
		svcrdma_service_close(service);
	return ret ?: len;
}

/**
 * svcrdma_sendto - xpo_sendto: answer a Call
 * @rqstp: the svc_rqst of the thread
 *
 * The arguments are not used any more. So the receive buffer is given back first:
 * the requester may use the credit as soon as it has the Reply.
 *
 * Context: a thread of the RPC server; may sleep.
 * Return: length of the RPC message in octets, or a negative errno if the
 * connection is closed or will be.
 */
int svcrdma_sendto(struct svc_rqst *rqstp)
{
	struct svcrdma_request *request = rqstp->rq_xprt_ctxt;
	struct svcrdma_service *service;
	int ret;

	if (svc_xprt_is_dead(rqstp->rq_xprt))
		return -ENOTCONN;
	rqstp->rq_xprt_ctxt = NULL;
	/* This may be another thread than the one whose pages it holds. */
	svcrdma_pages_returned(request, likely(!rqstp->rq_deferred));
	service = request->service;
	if (!READ_ONCE(service->replied))
		WRITE_ONCE(service->replied, true);
	if (!rpcrdma_conn_enter(service->conn)) {
		svcrdma_request_put(request);
		return -ENOTCONN;
	}
	svcrdma_request_put_recv(request);
	if (svcrdma_xid_timed(request->msg.xid))
		request->tally.latency = rpcrdma_latency_slot(ktime_sub(ktime_get(),
									rqstp->rq_stime));
	ret = svcrdma_reply_send(request, rqstp);
	rpcrdma_conn_leave(service->conn);
	return ret;
}

static int svcrdma_reply_post_error(struct svcrdma_request *request)
{
	struct rpcrdma_conn *conn = request->service->conn;
	struct rpcrdma_message *msg = &request->msg;
	struct rpcrdma_send *send;
	int ret;

	send = svcrdma_service_send_get(request->service, request);
	if (!send)
		return -ENOTCONN;
	rpcrdma_wire_make_error(msg, svcrdma_service_grant(request->service, 0));
	ret = svcrdma_reply_encode(request, send);
	if (!ret) {
			trace_rpcrdma_reply_form(conn, msg, send->len, true);
		ret = rpcrdma_send_post(send, NULL, RPCRDMA_POST_LATER, NULL);
	}
	if (ret)
		rpcrdma_send_put(send);
	else
		request->tally.sent = RPCRDMA_A_TRAFFIC_ERROR;
	return ret;
}

/**
 * svcrdma_reply_error - answer a Call with RDMA_ERROR
 * @request: the request, whose header has the error; the caller must not use it
 *	afterwards
 *
 * RFC 8166 section 4.5.
 *
 * Context: a thread of the RPC server; may sleep.
 */
void svcrdma_reply_error(struct svcrdma_request *request)
{
	struct svcrdma_service *service = request->service;
	int ret = -ENOTCONN;

	svcrdma_count(SVCRDMA_STAT_ERRORS);
	svcrdma_request_put_recv(request);
	if (rpcrdma_conn_enter(service->conn)) {
		ret = svcrdma_reply_post_error(request);
		rpcrdma_conn_leave(service->conn);
	}
	svcrdma_request_put(request);
	if (ret)
		svcrdma_service_close(service);
}
