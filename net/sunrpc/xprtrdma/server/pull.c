// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Read chunks into pages (RFC 8166 sections 3.4.5 and 3.5.3).
 *
 * Most Calls with Read chunks have one, for the data of a WRITE. The data goes to
 * the start of a page, as nfsd wants it. The inline part before it stays where it
 * was received. The inline part after it goes to the pages, too: nfsd takes the
 * length of the data from the Call, and looks for the data only in the pages. All
 * other Calls with Read chunks are put together in one row of pages, as if they
 * had come over a byte stream. Inline parts are copied when the RDMA Reads are
 * done, because until then the device may share cache lines with them.
 *
 * No thread waits for the requester. RDMA Reads that do not fit into one chain go
 * in several. Each chain is posted by the thread that resumes the request.
 */
#include <linux/highmem.h>

#include "server_private.h"
#include "../trace.h"

/*
 * How long the RDMA Reads of a Call may take in all chains together, in jiffies. The
 * send queue watchdog limits each chain, but a slow requester may stay below that
 * limit with each of many chains. The time in which a request waits for a thread or
 * in read admission does not count.
 */
#define SVCRDMA_PULL_TIMEOUT	(180 * HZ)

static unsigned int svcrdma_pull_pages(const struct svcrdma_request *request)
{
	return DIV_ROUND_UP(request->args_len, PAGE_SIZE);
}

/**
 * svcrdma_pull_refused - whether a Call is beyond the server's limits
 * @request: a Call that needs pages
 * @rqstp: the svc_rqst of the thread, whose pages it would take
 *
 * Context: any.
 * Return: true if the Call has to be answered with RDMA_ERROR.
 */
bool svcrdma_pull_refused(const struct svcrdma_request *request, const struct svc_rqst *rqstp)
{
	const struct svcrdma_service *service = request->service;
	struct svcrdma_pull_limits limits = {
		.reads = service->conn->read_depth,
		.len = rqstp->rq_server->sv_max_mesg,
		.pages = min(rpcrdma_compat_call_pages(rqstp), service->max_pages),
	};

	return !svcrdma_args_allowed(&request->msg, request->args, &limits);
}

/* Return: 1 if the chain is full, 0, or a negative errno. */
static int svcrdma_pull_read_piece(void *data, const struct svcrdma_piece *piece)
{
	struct svcrdma_request *request = data;
	struct xdr_buf local = {
		.pages = request->pages,
		.page_len = request->args_len,
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

/* A Call whose RDMA Reads are done, and the pages for its arguments; on the stack */
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
		/* At most three octets, and never across a page boundary */
		memzero_page(dest->pages[piece->at >> PAGE_SHIFT],
			     offset_in_page(piece->at), piece->octets);
		break;
	}
	return 0;
}

static void svcrdma_pull_done(struct rpcrdma_chain *chain, int status)
{
	struct svcrdma_request *request =
		container_of(chain, struct svcrdma_request, rw_chain.chain);
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

/* Most WRITEs have one segment, so there is nothing to walk over. */
static int svcrdma_pull_read_pieces(struct svcrdma_request *request)
{
	const struct rpcrdma_message *msg = &request->msg;
	const struct rpcrdma_chunk *chunk = &msg->read[0];
	const struct svcrdma_piece piece = {
		.kind	 = SVCRDMA_PIECE_CHUNK,
		.octets	 = chunk->length,
		.segment = rpcrdma_chunk_segments(msg, chunk),
	};

	if (request->args == SVCRDMA_ARGS_WRITE && chunk->count == 1 && !request->read_offset)
		return svcrdma_pull_read_piece(request, &piece);
	return svcrdma_args_walk(msg, request->args, request->read_offset,
				 svcrdma_pull_read_piece, request);
}

/* Fill a chain with RDMA Reads, from request->read_offset on. */
static int svcrdma_pull_map_reads(struct svcrdma_request *request)
{
	const struct rpcrdma_message *msg = &request->msg;
	unsigned int pieces = msg->num_segments;
	int ret;

	/* Other chunks divide the Position Zero Read chunk into more pieces. */
	if (request->args == SVCRDMA_ARGS_STREAM)
		pieces += msg->num_reads;
	ret = svcrdma_rw_chain_init(&request->rw_chain, DMA_FROM_DEVICE, pieces,
				    svcrdma_pull_pages(request) + pieces);
	if (ret)
		return ret;
	ret = svcrdma_pull_read_pieces(request);
	if (ret < 0) {
		svcrdma_rw_chain_destroy(request);
		return ret;
	}
	if (!ret)
		request->read_offset = request->args_len;
	return 0;
}

/* Return: 0, -EAGAIN if the request has to wait, or another negative errno. */
static int svcrdma_pull_start_reads(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	struct svcrdma_read_admission *admission = &request->service->read_admission;
	int ret = -EAGAIN;

	mutex_lock(&admission->start);
	if (svcrdma_read_may_start(admission)) {
		/* A request that waits takes no pages, because many may wait. */
		if (svcrdma_pages_take(request, rqstp, svcrdma_pull_pages(request)))
			rpcrdma_rest_later(request->service->conn);
		ret = svcrdma_pull_map_reads(request);
	}
	mutex_unlock(&admission->start);
	return ret;
}

/*
 * Return: 0, and the caller must not use the request any more; -EAGAIN if it has to
 * wait in read admission; another negative errno if the connection has to be
 * closed.
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
	request->rw_chain.chain.done = svcrdma_pull_done;
	ret = svcrdma_rw_chain_post(request);
	if (ret)
		svcrdma_rw_chain_destroy(request);
	return ret;
}

/**
 * svcrdma_pull_continue - post RDMA Reads for the rest of a Call
 * @request: a Call that is not read to its end; the caller must not use it
 *	afterwards
 * @rqstp: the svc_rqst of the thread, whose pages it takes if it has too few
 *
 * If memory is short, the connection is closed, and the requester sends the Call
 * again on the next one. This is too rare to need a better answer.
 *
 * Context: a thread of the RPC server; may sleep.
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
		request->tally.waited_read = true;
		next = svcrdma_read_wait(&service->read_admission, request, seq);
	} else {
		svcrdma_request_put(request);
		svcrdma_service_close(service);
	}
	if (next)
		svcrdma_request_resume(next);
}

/**
 * svcrdma_pull_start - post the first RDMA Reads of a Call
 * @request: a Call that needs them and is within the limits; the caller must not
 *	use it afterwards
 * @rqstp: the svc_rqst of the thread, whose pages it takes
 *
 * Context: a thread of the RPC server; may sleep.
 */
void svcrdma_pull_start(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	svcrdma_count(SVCRDMA_STAT_READ);
	request->read_offset = 0;
	request->pull_time = 0;
	svcrdma_pull_continue(request, rqstp);
}

/* The head is the inline part before the data. */
static void svcrdma_pull_write_head(const struct svcrdma_request *request, struct xdr_buf *arg)
{
	const struct rpcrdma_message *msg = &request->msg;

	arg->head[0].iov_base = request->recv->data + msg->header_len;
	arg->head[0].iov_len = msg->read[0].position;
}

/* The head is the first page, as with a byte stream. */
static void svcrdma_pull_stream_head(const struct svcrdma_request *request,
				     struct xdr_buf *arg)
{
	arg->head[0].iov_base = page_address(arg->pages[0]);
	arg->head[0].iov_len = min_t(u32, request->msg.stream_len, PAGE_SIZE);
	arg->pages++;
}

/* The RDMA Reads are done, and the thread has the pages. */
static void svcrdma_pull_make_arguments(struct svcrdma_request *request,
					struct svc_rqst *rqstp)
{
	const struct rpcrdma_message *msg = &request->msg;
	struct svcrdma_pull_dest dest = { request, rqstp->rq_pages };
	struct xdr_buf *arg = &rqstp->rq_arg;

	/* Most data items are all that goes to pages, and need no padding. */
	if (request->args != SVCRDMA_ARGS_WRITE || request->args_len != msg->read[0].length)
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

/* The RPC message of an RDMA_NOMSG can be compared to its header only now. */
static bool svcrdma_pull_long_call_matches(const struct rpcrdma_message *msg,
					   const struct xdr_buf *arg)
{
	const __be32 *p = arg->head[0].iov_base;

	return p[0] == msg->xid && p[1] == cpu_to_be32(RPCRDMA_CALL);
}

/**
 * svcrdma_pull_finish - give the thread the arguments of a Call that was pulled
 * @request: a Call that is read to its end
 * @rqstp: the svc_rqst of the thread, which gets the pages
 *
 * Context: a thread of the RPC server.
 * Return: false if the RPC message does not match the transport header. Then the
 * Call is answered with RDMA_ERROR (RFC 8166 section 4.5.2).
 */
bool svcrdma_pull_finish(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	const struct rpcrdma_message *msg = &request->msg;

	svcrdma_pages_swap(request, rqstp, svcrdma_pull_pages(request));
	svcrdma_pull_make_arguments(request, rqstp);
	return msg->proc != RPCRDMA_NOMSG ||
	       svcrdma_pull_long_call_matches(msg, &rqstp->rq_arg);
}

/**
 * svcrdma_pull_inline - give the thread the arguments of a Call that is all inline
 * @request: a Call whose arguments are copied to pages
 * @rqstp: the svc_rqst of the thread, whose pages it uses
 *
 * Context: a thread of the RPC server.
 */
void svcrdma_pull_inline(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	rpcrdma_compat_use_call_pages(rqstp, svcrdma_pull_pages(request));
	svcrdma_pull_make_arguments(request, rqstp);
}
