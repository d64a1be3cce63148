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
#define PULL_LIMIT	(180 * HZ)

static u32 pull_len(const struct rpcrdma_request *request)
{
	return rpcrdma_args_len(&request->msg, request->args);
}

static unsigned int pull_pages(const struct rpcrdma_request *request)
{
	return DIV_ROUND_UP(pull_len(request), PAGE_SIZE);
}

/**
 * rpcrdma_pull_refused - what a requester may not ask for
 * @request: a Call that needs pages, however well it is formed
 * @rqstp: the thread's, of which it would take pages
 *
 * Return: true if the Call asks for too much.
 */
bool rpcrdma_pull_refused(const struct rpcrdma_request *request,
			  const struct svc_rqst *rqstp)
{
	const struct rpcrdma_service *service = request->service;
	unsigned int pages = rqstp->rq_page_end - rqstp->rq_pages;
	struct rpcrdma_pull_limits limits = {
		.reads = service->conn->read_depth,
		.len = rqstp->rq_server->sv_max_mesg,
		/* Two at least are left for the Reply. */
		.pages = min(pages - 2, service->max_pages),
	};

	return !rpcrdma_args_allowed(&request->msg, request->args, &limits);
}

/* The thread gets new ones before its next request. */
static void take_pages(struct rpcrdma_request *request, struct svc_rqst *rqstp,
		       unsigned int num_pages)
{
	size_t size = num_pages * sizeof(*request->pages);

	memcpy(request->pages, rqstp->rq_pages, size);
	memset(rqstp->rq_pages, 0, size);
	request->num_pages = num_pages;
}

/* This thread's pages go instead of those that were read into. */
static void give_pages(struct rpcrdma_request *request, struct svc_rqst *rqstp)
{
	unsigned int num_pages = request->num_pages;

	release_pages(rqstp->rq_pages, num_pages);
	memcpy(rqstp->rq_pages, request->pages,
	       num_pages * sizeof(*request->pages));
	rqstp->rq_respages = &rqstp->rq_pages[num_pages];
	rqstp->rq_next_page = rqstp->rq_respages;
	request->num_pages = 0;
}

/* Return: 1 when the burst is full. */
static int read_piece(void *data, const struct rpcrdma_piece *piece)
{
	struct rpcrdma_request *request = data;
	struct xdr_buf local = {
		.pages = request->pages,
		.page_len = pull_len(request),
	};
	int ret;

	if (piece->kind != RPCRDMA_PIECE_CHUNK)
		return 0;
	ret = rpcrdma_burst_add(request, &local, piece->at, piece->octets,
				piece->segment, piece->skip);
	if (ret < 0)
		return ret;
	request->pulled = piece->at + ret;
	return ret < piece->octets;
}

static void copy_to_pages(struct page **pages, u32 at, const void *data,
			  u32 octets)
{
	while (octets) {
		u32 len = min_t(u32, octets, PAGE_SIZE - offset_in_page(at));

		memcpy_to_page(pages[at >> PAGE_SHIFT], offset_in_page(at),
			       data, len);
		data += len;
		at += len;
		octets -= len;
	}
}

/* A Call whose Reads are done, and where they went */
struct pulled {
	struct rpcrdma_request *request;
	struct page **pages;
};

static int complete_piece(void *data, const struct rpcrdma_piece *piece)
{
	const struct pulled *pulled = data;
	const struct rpcrdma_request *request = pulled->request;

	switch (piece->kind) {
	case RPCRDMA_PIECE_CHUNK:
		break;
	case RPCRDMA_PIECE_INLINE:
		copy_to_pages(pulled->pages, piece->at, request->recv->data +
			      request->msg.header_len + piece->skip,
			      piece->octets);
		break;
	case RPCRDMA_PIECE_PADDING:
		/* Never more than three, and never across a page boundary. */
		memzero_page(pulled->pages[piece->at >> PAGE_SHIFT],
			     offset_in_page(piece->at), piece->octets);
		break;
	}
	return 0;
}

static void pull_done(struct rpcrdma_work *work, int status)
{
	struct rpcrdma_request *request =
		container_of(work, struct rpcrdma_request, burst.work);
	struct rpcrdma_conn *conn = request->service->conn;

	trace_rpcrdma_pulled(conn, request->msg.xid, status);
	request->pull_time += jiffies - request->pull_since;
	if (request->pull_time > PULL_LIMIT && !rpcrdma_pull_all_read(request))
		rpcrdma_conn_close(conn, -ETIMEDOUT);
	rpcrdma_denied_note(request, status);
	rpcrdma_burst_destroy(request);
	if (status)
		rpcrdma_request_put(request);
	else
		rpcrdma_request_pulled(request);
}

/* As much of what is left as one burst can take */
static int map_reads(struct rpcrdma_request *request)
{
	const struct rpcrdma_message *msg = &request->msg;
	unsigned int pieces = msg->num_segments;
	int ret;

	/* Where other chunks interrupt the one at Position Zero */
	if (request->args == RPCRDMA_ARGS_STREAM)
		pieces += msg->num_reads;
	ret = rpcrdma_burst_init(&request->burst, DMA_FROM_DEVICE, pieces,
				 request->num_pages + pieces);
	if (ret)
		return ret;
	ret = rpcrdma_args_walk(msg, request->args, request->pulled, read_piece,
				request);
	if (ret < 0) {
		rpcrdma_burst_destroy(request);
		return ret;
	}
	if (!ret)
		request->pulled = pull_len(request);
	return 0;
}

/* One after the other, or all that may read now would find that they may. */
static int begin_reads(struct rpcrdma_request *request, struct svc_rqst *rqstp)
{
	struct rpcrdma_service *service = request->service;
	int ret = -EAGAIN;

	mutex_lock(&service->reads);
	if (rpcrdma_service_may_read(service)) {
		/* Not before, for those that starve are many. */
		if (!request->num_pages)
			take_pages(request, rqstp, pull_pages(request));
		ret = map_reads(request);
	}
	mutex_unlock(&service->reads);
	return ret;
}

/*
 * When this succeeds, the request may be somebody else's already. Return: 0,
 * -EAGAIN if others have to be done with their Reads first, or another negative
 * errno if the connection has to be closed.
 */
static int post_reads(struct rpcrdma_request *request, struct svc_rqst *rqstp)
{
	u32 from = request->pulled;
	int ret;

	ret = begin_reads(request, rqstp);
	if (ret)
		return ret;
	request->pull_since = jiffies;
	trace_rpcrdma_pull(request->service->conn, request->msg.xid,
			   request->pulled - from,
			   request->burst.num_transfers);
	request->burst.work.done = pull_done;
	ret = rpcrdma_burst_post(request);
	if (ret)
		rpcrdma_burst_destroy(request);
	return ret;
}

/**
 * rpcrdma_pull_go_on - post RDMA Reads for what is left of a Call
 * @request: a Call, of which something is left. It is not the caller's any more.
 * @rqstp: the thread's, of which it takes pages if it has none
 *
 * It is too rare to try again if that fails for lack of memory: the requester
 * repeats the Call by another connection.
 */
void rpcrdma_pull_go_on(struct rpcrdma_request *request, struct svc_rqst *rqstp)
{
	struct rpcrdma_service *service = request->service;
	int returns = atomic_read_acquire(&service->returns);
	struct rpcrdma_conn *conn = service->conn;
	int ret = -ENOTCONN;

	if (rpcrdma_conn_enter(conn)) {
		ret = post_reads(request, rqstp);
		rpcrdma_conn_leave(conn);
	}
	if (!ret) {
		rpcrdma_request_feed(service);
	} else if (ret == -EAGAIN) {
		rpcrdma_request_starve(request, returns);
	} else {
		rpcrdma_request_put(request);
		rpcrdma_service_close(service);
	}
}

/**
 * rpcrdma_pull_start - begin with the RDMA Reads of a Call
 * @request: a Call that needs them, and is not to be refused. It is not the
 *	caller's any more.
 * @rqstp: the thread's, of which it takes pages
 */
void rpcrdma_pull_start(struct rpcrdma_request *request, struct svc_rqst *rqstp)
{
	rpcrdma_count(RPCRDMA_STAT_READ);
	request->pulled = 0;
	request->pull_time = 0;
	rpcrdma_pull_go_on(request, rqstp);
}

/**
 * rpcrdma_pull_all_read - whether nothing is left to be read
 * @request: a Call whose last step is done
 *
 * Return: true if all is there.
 */
bool rpcrdma_pull_all_read(const struct rpcrdma_request *request)
{
	return request->pulled == pull_len(request);
}

/* Data at the start of a page, and what is before them where it arrived */
static void write_head(const struct rpcrdma_request *request,
		       struct xdr_buf *arg)
{
	const struct rpcrdma_message *msg = &request->msg;

	arg->head[0].iov_base = request->recv->data + msg->header_len;
	arg->head[0].iov_len = msg->read[0].position;
}

/* As from a byte stream: the first page is the head. */
static void stream_head(const struct rpcrdma_request *request,
			struct xdr_buf *arg)
{
	arg->head[0].iov_base = page_address(arg->pages[0]);
	arg->head[0].iov_len = min_t(u32, request->msg.stream_len, PAGE_SIZE);
	arg->pages++;
}

/* The Reads are done, and the thread has the pages. */
static void make_arguments(struct rpcrdma_request *request,
			   struct svc_rqst *rqstp)
{
	const struct rpcrdma_message *msg = &request->msg;
	struct pulled pulled = { request, rqstp->rq_pages };
	struct xdr_buf *arg = &rqstp->rq_arg;

	rpcrdma_args_walk(msg, request->args, 0, complete_piece, &pulled);
	arg->pages = rqstp->rq_pages;
	arg->page_base = 0;
	if (request->args == RPCRDMA_ARGS_WRITE)
		write_head(request, arg);
	else
		stream_head(request, arg);
	arg->page_len = msg->stream_len - arg->head[0].iov_len;
	arg->tail[0].iov_base = NULL;
	arg->tail[0].iov_len = 0;
	arg->len = msg->stream_len;
	arg->buflen = arg->len;
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
 * Return: false if the RPC message does not belong to the header.
 */
bool rpcrdma_pull_finish(struct rpcrdma_request *request, struct svc_rqst *rqstp)
{
	const struct rpcrdma_message *msg = &request->msg;

	give_pages(request, rqstp);
	make_arguments(request, rqstp);
	return msg->proc != RPCRDMA_NOMSG ||
	       long_call_matches(msg, &rqstp->rq_arg);
}

/**
 * rpcrdma_pull_nothing - make the arguments of what is all inline
 * @request: a Call whose arguments do not stay where they were received
 * @rqstp: the thread's, of which it takes pages
 */
void rpcrdma_pull_nothing(struct rpcrdma_request *request,
			  struct svc_rqst *rqstp)
{
	rqstp->rq_respages = &rqstp->rq_pages[pull_pages(request)];
	rqstp->rq_next_page = rqstp->rq_respages;
	make_arguments(request, rqstp);
}
