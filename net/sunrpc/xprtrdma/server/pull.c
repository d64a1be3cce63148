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
 * RDMA Reads that do not fit into one chain go in several, see server_private.h.
 */
#include <linux/sched/mm.h>

#include "server_private.h"
#include "../trace.h"

/*
 * How long the RDMA Reads of a Call may take in all chains together, in jiffies. The
 * send queue watchdog limits each chain, but a slow requester may stay below that
 * limit with each of many chains. The time in which a request waits for a thread or
 * in read admission does not count.
 */
#define SVCRDMA_PULL_TIMEOUT	(180 * HZ)

static unsigned int pull_pages(const struct svcrdma_request *request)
{
	return DIV_ROUND_UP(request->args_len, PAGE_SIZE);
}

/* Whether a Call that needs pages is beyond the server's limits, and has to get an RDMA_ERROR */
bool svcrdma_pull_refused(const struct svcrdma_request *request, const struct svc_rqst *rqstp)
{
	const struct svcrdma_service *service = request->service;

	if (svcrdma_pull_needed(&request->msg) && !service->conn->read_depth)
		return true;
	return request->msg.stream_len > rqstp->rq_server->sv_max_mesg ||
	       pull_pages(request) > min(rpcrdma_compat_call_pages(rqstp), service->max_pages);
}

/* Return: 1 if the chain is full, 0, or a negative errno. */
static int pull_read_piece(void *data, const struct svcrdma_piece *piece)
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

/* A Call whose RDMA Reads are done, and the pages for its arguments; on the stack */
struct svcrdma_pull_dest {
	const struct svcrdma_request *request;
	struct xdr_buf pages;
};

static int pull_complete_piece(void *data, const struct svcrdma_piece *piece)
{
	const struct svcrdma_pull_dest *dest = data;
	const struct svcrdma_request *request = dest->request;
	u8 zeros[XDR_UNIT] = {};
	void *from = zeros;

	if (piece->kind == SVCRDMA_PIECE_CHUNK)
		return 0;
	if (piece->kind == SVCRDMA_PIECE_INLINE)
		from = request->recv->data + request->msg.header_len + piece->skip;
	return write_bytes_to_xdr_buf(&dest->pages, piece->at, from, piece->octets);
}

static void pull_done(struct rpcrdma_chain *chain, int status)
{
	struct svcrdma_request *request =
		container_of(chain, struct svcrdma_request, rw_chain.chain);
	struct rpcrdma_conn *conn = request->service->conn;

	request->pull_time += jiffies - request->pull_since;
	if (request->pull_time > SVCRDMA_PULL_TIMEOUT && !svcrdma_pull_all_read(request))
		rpcrdma_conn_close(conn, -ETIMEDOUT);
	svcrdma_tally_denied(request, status);
	svcrdma_rw_chain_destroy(request);
	if (status)
		svcrdma_request_put(request);
	else
		svcrdma_request_resume(request);
}

/* Fill a chain with RDMA Reads, from request->read_offset on. */
static int pull_map_reads(struct svcrdma_request *request)
{
	const struct rpcrdma_message *msg = &request->msg;
	unsigned int pieces = msg->num_segments;
	int ret;

	/* Other chunks divide the Position Zero Read chunk into more pieces. */
	if (request->args == SVCRDMA_ARGS_STREAM)
		pieces += msg->num_reads;
	ret = svcrdma_rw_chain_init(&request->rw_chain, DMA_FROM_DEVICE, pieces,
				    pull_pages(request) + pieces);
	if (ret)
		return ret;
	ret = svcrdma_args_walk(msg, request->args, request->read_offset, pull_read_piece, request);
	if (ret < 0) {
		svcrdma_rw_chain_destroy(request);
		return ret;
	}
	if (!ret)
		request->read_offset = request->args_len;
	return 0;
}

/*
 * Return: 0, and the caller must not use the request any more; -EAGAIN if it has to
 * wait in read admission; another negative errno if the connection has to be
 * closed.
 */
static int pull_post_reads(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	struct svcrdma_service *service = request->service;
	u32 from = request->read_offset;
	int ret = -EAGAIN;

	mutex_lock(&service->read_start);
	if (svcrdma_read_may_start(service)) {
		if (svcrdma_pages_take_spares(request, rqstp, pull_pages(request)))
			rpcrdma_rest_later(service->conn);
		ret = pull_map_reads(request);
		/* Many requests may wait, so without pages as long as nothing is read. */
		if (ret == -EAGAIN && !from)
			svcrdma_pages_put_spares(request);
	}
	mutex_unlock(&service->read_start);
	if (ret)
		return ret;
	request->pull_since = jiffies;
	trace_rpcrdma_pull(service->conn, request->msg.xid, request->read_offset - from,
			   request->rw_chain.num_rws);
	request->rw_chain.chain.done = pull_done;
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
 */
void svcrdma_pull_continue(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	struct svcrdma_service *service = request->service;
	int seq = atomic_read_acquire(&service->resource_seq);
	struct rpcrdma_conn *conn = service->conn;
	unsigned int noio;
	int ret = -ENOTCONN;

	if (rpcrdma_conn_enter(conn)) {
		/*
		 * Reclaim may wait for an RPC of a mount of this host. What that waits for may wait
		 * for this thread: others for read_start, and the device until it has left.
		 */
		noio = memalloc_noio_save();
		ret = pull_post_reads(request, rqstp);
		memalloc_noio_restore(noio);
		rpcrdma_conn_leave(conn);
	}
	if (!ret) {
		svcrdma_read_wake(service);
	} else if (ret == -EAGAIN) {
		svcrdma_count(SVCRDMA_STAT_SQ_STARVE);
		request->tally.waited_read = true;
		svcrdma_read_wait(request, seq);
	} else {
		svcrdma_request_put(request);
		svcrdma_service_close(service);
	}
}

/* Fill in rq_arg. The thread has the pages, and RDMA Reads have filled theirs. */
static void pull_make_arguments(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	const struct rpcrdma_message *msg = &request->msg;
	struct svcrdma_pull_dest dest = {
		.request = request,
		.pages.pages = rqstp->rq_pages,
		.pages.page_len = request->args_len,
		.pages.len = request->args_len,
	};
	struct xdr_buf *arg = &rqstp->rq_arg;
	struct kvec *head = &arg->head[0];

	arg->pages = rqstp->rq_pages;
	if (request->args_len)
		svcrdma_args_walk(msg, request->args, 0, pull_complete_piece, &dest);
	if (request->args == SVCRDMA_ARGS_STREAM) {
		/* The head is the first page, as with a byte stream. */
		head->iov_base = page_address(*arg->pages++);
		head->iov_len = min_t(u32, msg->stream_len, PAGE_SIZE);
	} else {
		/* The head is the inline part, or what of it is before the data. */
		head->iov_base = request->recv->data + msg->header_len;
		head->iov_len = msg->stream_len - request->args_len;
	}
	arg->page_base = 0;
	arg->page_len = msg->stream_len - head->iov_len;
	arg->tail[0].iov_base = NULL;
	arg->tail[0].iov_len = 0;
	arg->len = msg->stream_len;
	arg->buflen = arg->len;
}

/**
 * svcrdma_pull_finish - give the thread the arguments of a Call with Read chunks
 * @request: a Call that is read to its end
 * @rqstp: the svc_rqst of the thread, which gets the pages
 *
 * Return: false if the RPC message does not match the transport header, which for an RDMA_NOMSG
 * shows only now. Then the Call is answered with RDMA_ERROR (RFC 8166 section 4.5.2).
 */
bool svcrdma_pull_finish(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	const struct rpcrdma_message *msg = &request->msg;
	const __be32 *p;

	svcrdma_pages_swap_spares(request, rqstp, pull_pages(request));
	pull_make_arguments(request, rqstp);
	p = rqstp->rq_arg.head[0].iov_base;
	return msg->proc != RPCRDMA_NOMSG ||
	       (p[0] == msg->xid && p[1] == cpu_to_be32(RPCRDMA_CALL));
}

/* Give the thread the arguments of a Call that is all inline. Some are copied to its pages. */
void svcrdma_pull_inline(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	rpcrdma_compat_use_call_pages(rqstp, pull_pages(request));
	pull_make_arguments(request, rqstp);
}
