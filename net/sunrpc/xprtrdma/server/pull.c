// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Read chunks into pages (RFC 8166 sections 3.4.5 and 3.5.3).
 *
 * Nearly every Call has at most one Read chunk, for the data of a WRITE. It
 * goes to the start of a page, as nfsd wants it, and what came inline before
 * it stays where it was received. What came behind goes to the pages, too: the
 * length that nfsd finds for the data may be any, and it looks for them nowhere
 * else. All others that have Read chunks are put together in one row of pages,
 * as if they had come over a byte stream. Inline parts are copied once the RDMA
 * Reads are done, as the device may share cache lines with them until then.
 *
 * No thread waits for the requester here. What does not fit into one chain of
 * work requests goes in steps, each posted by a thread that finds the request
 * among those to be taken up again.
 */
#include <linux/highmem.h>
#include <linux/pagemap.h>

#include "server_private.h"
#include "../trace.h"

/*
 * In all steps together. Each has the limit of all that is posted besides, so
 * this is for a requester that keeps just below that, step by step. How long a
 * request waits for a thread, or for others, is not the requester's fault.
 */
#define SVCRDMA_PULL_TIMEOUT	(180 * HZ)

static u32 svcrdma_pull_len(const struct svcrdma_request *request)
{
	return svcrdma_args_len(&request->msg, request->args);
}

static unsigned int svcrdma_pull_pages(const struct svcrdma_request *request)
{
	return DIV_ROUND_UP(svcrdma_pull_len(request), PAGE_SIZE);
}

/**
 * svcrdma_pull_refused - what a requester may not ask for
 * @request: a Call that needs pages, however well it is formed
 * @rqstp: the thread's, of which it would take pages
 *
 * Return: true if the Call asks for too much.
 */
bool svcrdma_pull_refused(const struct svcrdma_request *request, const struct svc_rqst *rqstp)
{
	const struct svcrdma_service *service = request->service;
	unsigned int pages = rqstp->rq_page_end - rqstp->rq_pages;
	struct svcrdma_pull_limits limits = {
		.reads = service->conn->read_depth,
		.len = rqstp->rq_server->sv_max_mesg,
		/* Two at least are left for the Reply. */
		.pages = min(pages - 2, service->max_pages),
	};

	return !svcrdma_args_allowed(&request->msg, request->args, &limits);
}

/* The thread gets new ones before its next request. */
static void svcrdma_pull_take_pages(struct svcrdma_request *request, struct svc_rqst *rqstp,
				    unsigned int num_pages)
{
	size_t size = num_pages * sizeof(*request->pages);

	memcpy(request->pages, rqstp->rq_pages, size);
	memset(rqstp->rq_pages, 0, size);
	request->num_pages = num_pages;
}

/* This thread's pages go instead of those that were read into. */
static void svcrdma_pull_give_pages(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	unsigned int num_pages = request->num_pages;

	release_pages(rqstp->rq_pages, num_pages);
	memcpy(rqstp->rq_pages, request->pages, num_pages * sizeof(*request->pages));
	rqstp->rq_respages = &rqstp->rq_pages[num_pages];
	rqstp->rq_next_page = rqstp->rq_respages;
	request->num_pages = 0;
}

/* Return: 1 when the chain is full. */
static int svcrdma_pull_read_piece(void *data, const struct svcrdma_piece *piece)
{
	struct svcrdma_request *request = data;
	struct xdr_buf local = {
		.pages = request->pages,
		.page_len = svcrdma_pull_len(request),
	};
	int ret;

	if (piece->kind != SVCRDMA_PIECE_CHUNK)
		return 0;
	ret = svcrdma_rw_chain_add(request, &local, piece->at, piece->octets,
				   piece->segment, piece->skip);
	if (ret < 0)
		return ret;
	request->read_offset = piece->at + ret;
	return ret < piece->octets;
}

static void svcrdma_pull_copy_to_pages(struct page **pages, u32 at,
				       const void *data, u32 octets)
{
	while (octets) {
		u32 len = min_t(u32, octets, PAGE_SIZE - offset_in_page(at));

		memcpy_to_page(pages[at >> PAGE_SHIFT], offset_in_page(at), data, len);
		data += len;
		at += len;
		octets -= len;
	}
}

/* A Call whose Reads are done, and where they went */
struct svcrdma_pull_dest {
	struct svcrdma_request *request;
	struct page **pages;
};

static int svcrdma_pull_complete_piece(void *data, const struct svcrdma_piece *piece)
{
	const struct svcrdma_pull_dest *dest = data;
	const struct svcrdma_request *request = dest->request;

	switch (piece->kind) {
	case SVCRDMA_PIECE_CHUNK:
		break;
	case SVCRDMA_PIECE_INLINE:
		svcrdma_pull_copy_to_pages(dest->pages, piece->at,
					   request->recv->data +
					   request->msg.header_len +
					   piece->skip, piece->octets);
		break;
	case SVCRDMA_PIECE_PADDING:
		/* Never more than three, and never across a page boundary. */
		memzero_page(dest->pages[piece->at >> PAGE_SHIFT],
			     offset_in_page(piece->at), piece->octets);
		break;
	}
	return 0;
}

static void svcrdma_pull_done(struct rpcrdma_work *work, int status)
{
	struct svcrdma_request *request =
		container_of(work, struct svcrdma_request, rw_chain.work);
	struct rpcrdma_conn *conn = request->service->conn;

	trace_rpcrdma_pulled(conn, request->msg.xid, status);
	request->pull_time += jiffies - request->pull_since;
	if (request->pull_time > SVCRDMA_PULL_TIMEOUT && !svcrdma_pull_all_read(request))
		rpcrdma_conn_close(conn, -ETIMEDOUT);
	svcrdma_denied_note(request, status);
	svcrdma_rw_chain_destroy(request);
	if (status)
		svcrdma_request_put(request);
	else
		svcrdma_request_resume(request);
}

/* As much of what is left as one chain can take */
static int svcrdma_pull_map_reads(struct svcrdma_request *request)
{
	const struct rpcrdma_message *msg = &request->msg;
	unsigned int pieces = msg->num_segments;
	int ret;

	/* Where other chunks interrupt the one at Position Zero */
	if (request->args == SVCRDMA_ARGS_STREAM)
		pieces += msg->num_reads;
	ret = svcrdma_rw_chain_init(&request->rw_chain, DMA_FROM_DEVICE, pieces,
				    request->num_pages + pieces);
	if (ret)
		return ret;
	ret = svcrdma_args_walk(msg, request->args, request->read_offset,
				svcrdma_pull_read_piece, request);
	if (ret < 0) {
		svcrdma_rw_chain_destroy(request);
		return ret;
	}
	if (!ret)
		request->read_offset = svcrdma_pull_len(request);
	return 0;
}

/* Return: 0, -EAGAIN if the request has to wait, or another negative errno. */
static int svcrdma_pull_start_reads(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	struct svcrdma_read_admission *admission = &request->service->read_admission;
	int ret = -EAGAIN;

	mutex_lock(&admission->start);
	if (svcrdma_read_may_start(admission)) {
		/* Not before, for those that wait to read are many. */
		if (!request->num_pages)
			svcrdma_pull_take_pages(request, rqstp, svcrdma_pull_pages(request));
		ret = svcrdma_pull_map_reads(request);
	}
	mutex_unlock(&admission->start);
	return ret;
}

/*
 * When this succeeds, the request may be somebody else's already. Return: 0,
 * -EAGAIN if others have to be done with their Reads first, or another negative
 * errno if the connection has to be closed.
 */
static int svcrdma_pull_post_reads(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	u32 from = request->read_offset;
	int ret;

	ret = svcrdma_pull_start_reads(request, rqstp);
	if (ret)
		return ret;
	request->pull_since = jiffies;
	trace_rpcrdma_pull(request->service->conn, request->msg.xid,
			   request->read_offset - from, request->rw_chain.num_rws);
	request->rw_chain.work.done = svcrdma_pull_done;
	ret = svcrdma_rw_chain_post(request);
	if (ret)
		svcrdma_rw_chain_destroy(request);
	return ret;
}

/**
 * svcrdma_pull_continue - post RDMA Reads for what is left of a Call
 * @request: a Call, of which something is left. It is not the caller's any more.
 * @rqstp: the thread's, of which it takes pages if it has none
 *
 * It is too rare to try again if that fails for lack of memory: the requester
 * repeats the Call by another connection.
 */
void svcrdma_pull_continue(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	struct svcrdma_service *service = request->service;
	int seq = atomic_read_acquire(&service->resource_seq);
	struct rpcrdma_conn *conn = service->conn;
	struct svcrdma_request *next = NULL;
	int ret = -ENOTCONN;

	if (rpcrdma_conn_enter(conn)) {
		ret = svcrdma_pull_post_reads(request, rqstp);
		rpcrdma_conn_leave(conn);
	}
	if (!ret) {
		next = svcrdma_read_wake(&service->read_admission);
	} else if (ret == -EAGAIN) {
		svcrdma_count(SVCRDMA_STAT_SQ_STARVE);
		next = svcrdma_read_wait(&service->read_admission, request, seq);
	} else {
		svcrdma_request_put(request);
		svcrdma_service_close(service);
	}
	if (next)
		svcrdma_request_resume(next);
}

/**
 * svcrdma_pull_start - begin with the RDMA Reads of a Call
 * @request: a Call that needs them, and is not to be refused. It is not the
 *	caller's any more.
 * @rqstp: the thread's, of which it takes pages
 */
void svcrdma_pull_start(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	svcrdma_count(SVCRDMA_STAT_READ);
	request->read_offset = 0;
	request->pull_time = 0;
	svcrdma_pull_continue(request, rqstp);
}

/**
 * svcrdma_pull_all_read - whether nothing is left to be read
 * @request: a Call whose last step is done
 *
 * Return: true if all is there.
 */
bool svcrdma_pull_all_read(const struct svcrdma_request *request)
{
	return request->read_offset == svcrdma_pull_len(request);
}

/* Data at the start of a page, and what is before them where it arrived */
static void svcrdma_pull_write_head(const struct svcrdma_request *request, struct xdr_buf *arg)
{
	const struct rpcrdma_message *msg = &request->msg;

	arg->head[0].iov_base = request->recv->data + msg->header_len;
	arg->head[0].iov_len = msg->read[0].position;
}

/* As from a byte stream: the first page is the head. */
static void svcrdma_pull_stream_head(const struct svcrdma_request *request,
				     struct xdr_buf *arg)
{
	arg->head[0].iov_base = page_address(arg->pages[0]);
	arg->head[0].iov_len = min_t(u32, request->msg.stream_len, PAGE_SIZE);
	arg->pages++;
}

/* The Reads are done, and the thread has the pages. */
static void svcrdma_pull_make_arguments(struct svcrdma_request *request,
					struct svc_rqst *rqstp)
{
	const struct rpcrdma_message *msg = &request->msg;
	struct svcrdma_pull_dest dest = { request, rqstp->rq_pages };
	struct xdr_buf *arg = &rqstp->rq_arg;

	svcrdma_args_walk(msg, request->args, 0, svcrdma_pull_complete_piece, &dest);
	arg->pages = rqstp->rq_pages;
	arg->page_base = 0;
	if (request->args == SVCRDMA_ARGS_WRITE)
		svcrdma_pull_write_head(request, arg);
	else
		svcrdma_pull_stream_head(request, arg);
	arg->page_len = msg->stream_len - arg->head[0].iov_len;
	arg->tail[0].iov_base = NULL;
	arg->tail[0].iov_len = 0;
	arg->len = msg->stream_len;
	arg->buflen = arg->len;
}

/* RDMA_NOMSG: not until now can the message be compared to its header. */
static bool svcrdma_pull_long_call_matches(const struct rpcrdma_message *msg,
					   const struct xdr_buf *arg)
{
	const __be32 *p = arg->head[0].iov_base;

	return p[0] == msg->xid && p[1] == cpu_to_be32(RPCRDMA_CALL);
}

/**
 * svcrdma_pull_finish - make the arguments of what was pulled
 * @request: a Call whose Reads are done
 * @rqstp: the thread's, which gets the pages
 *
 * Return: false if the RPC message does not belong to the header.
 */
bool svcrdma_pull_finish(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	const struct rpcrdma_message *msg = &request->msg;

	svcrdma_pull_give_pages(request, rqstp);
	svcrdma_pull_make_arguments(request, rqstp);
	return msg->proc != RPCRDMA_NOMSG ||
	       svcrdma_pull_long_call_matches(msg, &rqstp->rq_arg);
}

/**
 * svcrdma_pull_inline - make the arguments of what is all inline
 * @request: a Call whose arguments do not stay where they were received
 * @rqstp: the thread's, of which it takes pages
 */
void svcrdma_pull_inline(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	rqstp->rq_respages = &rqstp->rq_pages[svcrdma_pull_pages(request)];
	rqstp->rq_next_page = rqstp->rq_respages;
	svcrdma_pull_make_arguments(request, rqstp);
}
