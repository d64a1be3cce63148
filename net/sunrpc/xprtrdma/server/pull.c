// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Read chunks into pages (RFC 8166 sections 3.4.5 and 3.5.3).
 *
 * Nearly every Call has at most one Read chunk, for the data of a WRITE. It
 * goes to the start of a page, as nfsd wants it, and what came inline before
 * and after it stays where it was received. All else is put together in one
 * row of pages, as if it had come over a byte stream: the inline parts are
 * copied once the RDMA Reads are done, as the device may share cache lines
 * with them until then.
 */
#include <linux/highmem.h>

#include "server_private.h"
#include "../trace.h"

/* The message is a single Read chunk in the midst of inline data. */
static bool single_chunk(const struct rpcrdma_message *msg)
{
	return msg->proc == RPCRDMA_MSG && msg->num_reads == 1;
}

/**
 * rpcrdma_pull_needed - whether any of a Call travels in Read chunks
 * @request: a Call
 *
 * Chunks of no octets contribute nothing to the message.
 *
 * Return: true if any does.
 */
bool rpcrdma_pull_needed(const struct rpcrdma_request *request)
{
	const struct rpcrdma_message *msg = &request->msg;

	return msg->proc == RPCRDMA_NOMSG || msg->stream_len > msg->payload_len;
}

static u32 pull_len(const struct rpcrdma_message *msg)
{
	return single_chunk(msg) ? xdr_align_size(msg->read[0].length) :
				   msg->stream_len;
}

/* What the requester may not ask for, however well it is formed */
static int check_limits(struct rpcrdma_request *request, struct svc_rqst *rqstp,
			unsigned int num_pages)
{
	struct rpcrdma_service *service = request->service;

	if (!service->conn->read_depth)
		return -EMSGSIZE;
	if (request->msg.stream_len > rqstp->rq_server->sv_max_mesg)
		return -EMSGSIZE;
	/* Two at least are left for the Reply. */
	if (num_pages + 2 > rqstp->rq_page_end - rqstp->rq_pages)
		return -EMSGSIZE;
	return num_pages > service->max_pages ? -EMSGSIZE : 0;
}

/* The thread gets new ones before its next request. */
static void take_pages(struct rpcrdma_request *request, struct svc_rqst *rqstp,
		       unsigned int num_pages)
{
	unsigned int i;

	for (i = 0; i < num_pages; i++) {
		request->pages[i] = rqstp->rq_pages[i];
		rqstp->rq_pages[i] = NULL;
	}
	request->num_pages = num_pages;
}

/* This thread's pages go instead of those that were read into. */
static void give_pages(struct rpcrdma_request *request, struct svc_rqst *rqstp)
{
	unsigned int i;

	for (i = 0; i < request->num_pages; i++)
		swap(request->pages[i], rqstp->rq_pages[i]);
	rqstp->rq_respages = &rqstp->rq_pages[request->num_pages];
	rqstp->rq_next_page = rqstp->rq_respages;
	rpcrdma_request_put_pages(request);
}

/*
 * A walk over the unreduced Payload stream, from its start to its end, in
 * pieces that come out of a chunk or out of the reduced stream; the latter is
 * in the inline part of the message or in the Position Zero Read chunk.
 */
struct stream_ops {
	int (*chunk)(struct rpcrdma_request *request,
		     const struct xdr_buf *stream, u32 at,
		     const struct rpcrdma_chunk *chunk, u32 skip, u32 octets);
	int (*inline_part)(struct rpcrdma_request *request,
			   const struct xdr_buf *stream, u32 at, u32 skip,
			   u32 octets);
};

static int walk_reduced(struct rpcrdma_request *request,
			const struct xdr_buf *stream, u32 at, u32 skip,
			u32 octets, const struct stream_ops *ops)
{
	const struct rpcrdma_chunk *zero = rpcrdma_position_zero(&request->msg);

	if (!octets)
		return 0;
	if (zero)
		return ops->chunk(request, stream, at, zero, skip, octets);
	return ops->inline_part(request, stream, at, skip, octets);
}

static int walk_stream(struct rpcrdma_request *request,
		       const struct xdr_buf *stream,
		       const struct stream_ops *ops)
{
	const struct rpcrdma_message *msg = &request->msg;
	unsigned int i = rpcrdma_position_zero(msg) ? 1 : 0;
	u32 at = 0, restored = 0;
	int ret = 0;

	for (; !ret && i < msg->num_reads; i++) {
		const struct rpcrdma_chunk *chunk = &msg->read[i];

		ret = walk_reduced(request, stream, at, at - restored,
				   chunk->position - at, ops);
		if (!ret)
			ret = ops->chunk(request, stream, chunk->position,
					 chunk, 0, chunk->length);
		restored += xdr_align_size(chunk->length);
		at = chunk->position + xdr_align_size(chunk->length);
	}
	if (!ret)
		ret = walk_reduced(request, stream, at, at - restored,
				   msg->stream_len - at, ops);
	return ret;
}

static int read_chunk(struct rpcrdma_request *request,
		      const struct xdr_buf *stream, u32 at,
		      const struct rpcrdma_chunk *chunk, u32 skip, u32 octets)
{
	const struct rpcrdma_segment *segment;
	int ret = 0;

	segment = rpcrdma_chunk_segments(&request->msg, chunk);
	for (; octets && !ret; segment++) {
		u32 len;

		if (skip >= segment->length) {
			skip -= segment->length;
			continue;
		}
		len = min(segment->length - skip, octets);
		ret = rpcrdma_burst_add(request, stream, at, len, segment,
					skip);
		at += len;
		octets -= len;
		skip = 0;
	}
	return ret;
}

static int skip_inline(struct rpcrdma_request *request,
		       const struct xdr_buf *stream, u32 at, u32 skip,
		       u32 octets)
{
	return 0;
}

static const struct stream_ops read_ops = {
	.chunk = read_chunk,
	.inline_part = skip_inline,
};

static void stream_write(const struct xdr_buf *stream, u32 at, const void *data,
			 u32 octets)
{
	while (octets) {
		u32 len = min_t(u32, octets, PAGE_SIZE - offset_in_page(at));

		memcpy_to_page(stream->pages[at >> PAGE_SHIFT],
			       offset_in_page(at), data, len);
		data += len;
		at += len;
		octets -= len;
	}
}

/* Never more than three octets, and never across a page boundary. */
static int zero_padding(struct rpcrdma_request *request,
			const struct xdr_buf *stream, u32 at,
			const struct rpcrdma_chunk *chunk, u32 skip, u32 octets)
{
	u32 end = at + octets;

	if (chunk->position && xdr_pad_size(octets))
		memzero_page(stream->pages[end >> PAGE_SHIFT],
			     offset_in_page(end), xdr_pad_size(octets));
	return 0;
}

static int copy_inline(struct rpcrdma_request *request,
		       const struct xdr_buf *stream, u32 at, u32 skip,
		       u32 octets)
{
	stream_write(stream, at,
		     request->recv->data + request->msg.header_len + skip,
		     octets);
	return 0;
}

static const struct stream_ops complete_ops = {
	.chunk = zero_padding,
	.inline_part = copy_inline,
};

static void pull_done(struct rpcrdma_work *work, int status)
{
	struct rpcrdma_request *request =
		container_of(work, struct rpcrdma_request, burst.work);

	trace_rpcrdma_pulled(request->service->conn, request->msg.xid, status);
	rpcrdma_burst_destroy(request);
	if (status)
		rpcrdma_request_put(request);
	else
		rpcrdma_request_pulled(request);
}

/* When this succeeds, the request may be somebody else's already. */
static int post_reads(struct rpcrdma_request *request)
{
	const struct rpcrdma_message *msg = &request->msg;
	struct xdr_buf stream = {
		.pages = request->pages,
		.page_len = pull_len(msg),
	};
	unsigned int pieces = msg->num_segments;
	int ret;

	/* Where other chunks interrupt the one at Position Zero */
	if (!single_chunk(msg))
		pieces += msg->num_reads;
	ret = rpcrdma_burst_init(&request->burst, DMA_FROM_DEVICE, pieces,
				 request->num_pages + pieces);
	if (ret)
		return ret;
	if (single_chunk(msg))
		ret = read_chunk(request, &stream, 0, &msg->read[0], 0,
				 msg->read[0].length);
	else
		ret = walk_stream(request, &stream, &read_ops);
	if (!ret) {
		trace_rpcrdma_pull(request->service->conn, msg->xid,
				   stream.page_len,
				   request->burst.num_transfers);
		request->burst.work.done = pull_done;
		ret = rpcrdma_burst_post(request);
	}
	if (ret)
		rpcrdma_burst_destroy(request);
	return ret;
}

/**
 * rpcrdma_pull_start - post the RDMA Reads of a Call
 * @request: a Call that needs them
 * @rqstp: the thread's, of which it takes pages
 *
 * Return: 0 if the Reads are on their way and the request is not the caller's
 * any more; -EMSGSIZE if the Call asks for too much; or another negative errno
 * if the connection has to be closed.
 */
int rpcrdma_pull_start(struct rpcrdma_request *request, struct svc_rqst *rqstp)
{
	unsigned int num_pages = DIV_ROUND_UP(pull_len(&request->msg),
					      PAGE_SIZE);
	struct rpcrdma_conn *conn = request->service->conn;
	int ret;

	ret = check_limits(request, rqstp, num_pages);
	if (ret)
		return ret;
	if (!rpcrdma_conn_enter(conn))
		return -ENOTCONN;
	take_pages(request, rqstp, num_pages);
	rpcrdma_count(RPCRDMA_STAT_READ);
	ret = post_reads(request);
	rpcrdma_conn_leave(conn);
	return ret;
}

/* Data at the start of a page, the rest of the message where it arrived */
static void single_chunk_arguments(struct rpcrdma_request *request,
				   struct xdr_buf *arg)
{
	const struct rpcrdma_message *msg = &request->msg;
	const struct rpcrdma_chunk *chunk = &msg->read[0];
	void *payload = request->recv->data + msg->header_len;

	zero_padding(request, arg, 0, chunk, 0, chunk->length);
	arg->head[0].iov_base = payload;
	arg->head[0].iov_len = chunk->position;
	arg->page_len = xdr_align_size(chunk->length);
	arg->tail[0].iov_base = payload + chunk->position;
	arg->tail[0].iov_len = msg->payload_len - chunk->position;
}

/* As from a byte stream: the first page is the head. */
static void stream_arguments(struct rpcrdma_request *request,
			     struct xdr_buf *arg)
{
	u32 len = request->msg.stream_len;

	walk_stream(request, arg, &complete_ops);
	arg->head[0].iov_base = page_address(arg->pages[0]);
	arg->head[0].iov_len = min_t(u32, len, PAGE_SIZE);
	arg->pages++;
	arg->page_len = len - arg->head[0].iov_len;
	arg->tail[0].iov_base = NULL;
	arg->tail[0].iov_len = 0;
}

/* RDMA_NOMSG: not until now can the message be compared to its header. */
static bool long_call_matches(const struct rpcrdma_message *msg,
			      const struct xdr_buf *arg)
{
	const __be32 *p = arg->head[0].iov_base;

	return p[0] == msg->xid && p[1] == cpu_to_be32(RPCRDMA_CALL);
}

/**
 * rpcrdma_pull_finish - make the arguments of what was pulled
 * @request: a Call whose Reads are done
 * @rqstp: the thread's, which gets the pages
 *
 * Return: 0, or -EBADMSG if the RPC message does not belong to the header.
 */
int rpcrdma_pull_finish(struct rpcrdma_request *request, struct svc_rqst *rqstp)
{
	const struct rpcrdma_message *msg = &request->msg;
	struct xdr_buf *arg = &rqstp->rq_arg;

	give_pages(request, rqstp);
	arg->pages = rqstp->rq_pages;
	arg->page_base = 0;
	if (single_chunk(msg))
		single_chunk_arguments(request, arg);
	else
		stream_arguments(request, arg);
	arg->len = msg->stream_len;
	arg->buflen = arg->len;

	if (msg->proc == RPCRDMA_NOMSG && !long_call_matches(msg, arg))
		return -EBADMSG;
	return 0;
}
