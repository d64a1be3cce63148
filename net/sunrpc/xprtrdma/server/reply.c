// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The Reply: RDMA Writes for the Write chunks and the Reply chunk, and the Send
 * after them, as one chain where possible (RFC 8166 sections 3.4.6, 3.5.3 and
 * 4.3).
 *
 * A Reply that is too long for one chain goes in several. Each chain but the first
 * is the rw_chain of another request, a carrier. No thread waits for space in the
 * send queue, because then all threads could wait for one requester.
 */
#include <linux/sched/mm.h>
#include <linux/sunrpc/auth.h>

#include "server_private.h"
#include "../trace.h"

/*
 * Page data of up to this many octets is copied instead of gathered. Pages that
 * the device gathers can be released only after a completion, which costs an interrupt.
 */
#define SVCRDMA_COPY_MAX	8192

/**
 * struct svcrdma_reply - a Reply while it is built, on the stack
 * @request: the request
 * @carrier: the request whose rw_chain is filled: @request, later its carriers
 * @res: the RPC message
 * @form: where its parts go
 * @gathered: octets that the Send gathers from pages
 * @uses_head: the device reads the page with the head and the tail
 */
struct svcrdma_reply {
	struct svcrdma_request *request;
	struct svcrdma_request *carrier;
	const struct xdr_buf *res;
	struct svcrdma_reply_form form;
	u32 gathered;
	bool uses_head;
};

/**
 * svcrdma_result_payload - xpo_result_payload: note a DDP-eligible data item
 * @rqstp: the svc_rqst of the thread
 * @offset: offset of the data item in octets into rq_res
 * @length: its length in octets, without padding
 *
 * Under RPCSEC_GSS integrity or privacy nothing goes to Write chunks, because it would not
 * be protected (RFC 8166 section 8.2.2).
 *
 * Return: 0.
 */
int svcrdma_result_payload(struct svc_rqst *rqstp, unsigned int offset, unsigned int length)
{
	struct svcrdma_request *request = rqstp->rq_xprt_ctxt;
	struct svcrdma_results *results;

	if (!request || rqstp->rq_cred.cr_flavor == RPC_AUTH_GSS_KRB5I ||
	    rqstp->rq_cred.cr_flavor == RPC_AUTH_GSS_KRB5P)
		return 0;
	results = &request->results;
	if (results->count < request->msg.num_writes)
		results->result[results->count++] = (struct svcrdma_result){
			.offset = offset,
			.length = length,
		};
	return 0;
}

/*
 * The rw_chain of @carrier is done, or will not be posted. With the last carrier, the
 * request with the pages of the Reply is put, too.
 */
static void reply_carrier_done(struct svcrdma_request *carrier)
{
	struct svcrdma_request *request = carrier->carried;

	svcrdma_rw_chain_destroy(carrier);
	if (carrier != request)
		svcrdma_request_put(carrier);
	if (refcount_dec_and_test(&request->carriers))
		svcrdma_request_put(request);
}

static void reply_part_written(struct rpcrdma_chain *chain, int status)
{
	struct svcrdma_request *carrier =
		container_of(chain, struct svcrdma_request, rw_chain.chain);

	svcrdma_tally_denied(carrier->carried, status);
	reply_carrier_done(carrier);
}

/* Each segment may need one more element of the scatterlist, and so may each end of a part. */
static int reply_init_writes(const struct svcrdma_reply *reply, struct svcrdma_rw_chain *chain)
{
	const struct svcrdma_request *request = reply->request;
	unsigned int rws = request->msg.num_segments;
	unsigned int sg = 1 + DIV_ROUND_UP(reply->form.written, PAGE_SIZE) + rws;

	if (!reply->form.written)
		return svcrdma_rw_chain_init(chain, DMA_TO_DEVICE, 0, 0);
	if (request->msg.proc == RPCRDMA_NOMSG)
		sg += 2 * reply->form.num_parts;
	return svcrdma_rw_chain_init(chain, DMA_TO_DEVICE, rws, sg);
}

/*
 * The chain is full. It is posted now or when the send queue has space, and the rest
 * of the Reply goes into the rw_chain of a new carrier.
 */
static int reply_next_carrier(struct svcrdma_reply *reply)
{
	struct svcrdma_request *full = reply->carrier;
	struct svcrdma_request *next;
	int ret;

	next = svcrdma_request_get(full->service);
	if (!next)
		return -ENOMEM;
	ret = reply_init_writes(reply, &next->rw_chain);
	if (ret) {
		svcrdma_request_put(next);
		return ret;
	}
	next->carried = reply->request;
	refcount_inc(&reply->request->carriers);
	full->rw_chain.chain.done = reply_part_written;
	ret = svcrdma_rw_chain_post(full);
	/* If this failed, reply->carrier is still @full, and the caller ends it. */
	if (ret)
		reply_carrier_done(next);
	else
		reply->carrier = next;
	return ret;
}

/* Add RDMA Writes for a piece of the Reply. */
static int reply_write_piece(void *data, const struct svcrdma_piece *piece)
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
		ret = reply_next_carrier(reply);
		if (ret)
			return ret;
	}
}

/*
 * Take a Send, and wait if there is none. This waits only if there is no memory to make one,
 * because svcrdma_has_wspace() leaves a Send for each thread.
 *
 * Return: a Send, or NULL if the connection is closing.
 */
static struct rpcrdma_send *reply_get_send(struct svcrdma_request *request)
{
	struct svcrdma_service *service = request->service;
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

/*
 * Return: the place after the last page of a Reply. rq_next_page does not count a
 * page that only the end of the Reply reaches into, for instance the checksum of
 * RPCSEC_GSS. NFSv2's READLINK has res->pages outside rq_pages; there rq_next_page is right.
 */
static struct page **reply_pages_end(const struct svcrdma_reply *reply,
				     const struct svc_rqst *rqstp)
{
	const struct xdr_buf *res = reply->res;

	if (!res->page_len || res->pages < rqstp->rq_respages || res->pages >= rqstp->rq_page_end)
		return rqstp->rq_next_page;
	return max(rqstp->rq_next_page, res->pages +
		   DIV_ROUND_UP(res->page_base + res->page_len, PAGE_SIZE));
}

static void reply_done(struct rpcrdma_chain *chain, int status)
{
	struct rpcrdma_send *send = container_of(chain, struct rpcrdma_send, chain);
	struct svcrdma_request *carrier = send->private;

	rpcrdma_send_put(send);
	svcrdma_tally_denied(carrier->carried, status);
	reply_carrier_done(carrier);
}

/* Write what goes to chunks, and fill the Send with the header and what goes inline. */
static int reply_fill(struct svcrdma_reply *reply, struct rpcrdma_send *send)
{
	const struct rpcrdma_message *msg = &reply->request->msg;
	const struct svcrdma_reply_form *form = &reply->form;
	const struct xdr_buf *res = reply->res;
	unsigned int i;
	int ret;

	ret = svcrdma_reply_walk(form, msg, &reply->request->results, reply_write_piece, reply);
	if (!ret)
		ret = rpcrdma_send_header(send, msg);
	if (ret || msg->proc == RPCRDMA_NOMSG)
		return ret;
	if (reply->gathered) {
		reply->uses_head = res->tail[0].iov_len;
		return rpcrdma_send_copy(send, res, 0, res->head[0].iov_len, send->size) ?:
		       rpcrdma_send_gather(send, res);
	}
	for (i = 0; i < form->num_parts && !ret; i++)
		ret = rpcrdma_send_copy(send, res, form->part[i].at, form->part[i].len, send->size);
	return ret;
}

/* Note how the Reply is sent. Once it is posted, the request may be gone. */
static void reply_tally(const struct svcrdma_reply *reply)
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

/* Post the last chain with the Send at its end. */
static int reply_post_send(struct svcrdma_reply *reply, struct rpcrdma_send *send, bool kept)
{
	struct svcrdma_request *request = reply->request;
	struct rpcrdma_conn *conn = request->service->conn;
	unsigned int flags = RPCRDMA_POST_LATER;
	u32 len = send->len + reply->gathered;
	int ret;

	if (request->invalidate) {
		send->wr.opcode = IB_WR_SEND_WITH_INV;
		send->wr.ex.invalidate_rkey = request->handle;
	}
	trace_rpcrdma_reply_form(conn, &request->msg, len, true);
	trace_rpcrdma_reply(conn, request->msg.xid, len, reply->form.written, request->num_pages,
			    request->invalidate ? request->handle : 0);
	reply_tally(reply);
	if (kept) {
		send->private = reply->carrier;
		send->chain.done = reply_done;
		flags |= RPCRDMA_POST_SIGNALLED;
	}
	ret = rpcrdma_send_post(send, svcrdma_rw_chain_wrs(reply->carrier, &send->wr), flags, NULL);
	if (ret)
		request->tally.sent = 0;
	return ret;
}

/*
 * The caller must not use the request afterwards, even if this fails: the device may still read
 * its pages. If all is copied, the device reads none, and nobody waits for the completion.
 */
static int reply_post(struct svcrdma_reply *reply, struct svc_rqst *rqstp)
{
	struct svcrdma_request *request = reply->request;
	struct svcrdma_service *service = request->service;
	struct rpcrdma_send *send;
	int ret = -ENOTCONN;
	bool kept;

	if (!reply->form.written && reply->res->page_len > SVCRDMA_COPY_MAX)
		reply->gathered = rpcrdma_send_can_gather(service->conn, reply->res);
	kept = reply->form.written || reply->gathered;
	send = reply_get_send(request);
	if (!send)
		goto out_put;
	/*
	 * Before the post: as soon as it has this Reply, the requester may send a Call whose Reply
	 * may use the threshold of this version. That of this Reply is chosen already.
	 */
	if (request->msg.version > READ_ONCE(service->reply_version))
		WRITE_ONCE(service->reply_version, request->msg.version);
	ret = reply_init_writes(reply, &request->rw_chain);
	if (ret)
		goto out_send;
	reply->carrier = request;
	request->carried = request;
	refcount_set(&request->carriers, 1);

	ret = reply_fill(reply, send);
	if (kept)
		svcrdma_pages_take_reply(request, rqstp, reply_pages_end(reply, rqstp),
					 reply->uses_head || ret);
	else
		svcrdma_pages_swap_held(request, rqstp);
	if (!ret)
		ret = reply_post_send(reply, send, kept);
	if (ret)
		rpcrdma_send_put(send);
	if (ret || !kept)
		reply_carrier_done(reply->carrier);
	return ret;

out_send:
	rpcrdma_send_put(send);
out_put:
	svcrdma_request_put(request);
	return ret;
}

/*
 * Return: the length of the Reply, or a negative errno. The caller must not use the request
 * afterwards.
 */
static int reply_send(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	struct svcrdma_service *service = request->service;
	struct rpcrdma_message *msg = &request->msg;
	u32 threshold = svcrdma_service_threshold(service, msg->version);
	int len = rqstp->rq_res.len;
	struct svcrdma_reply reply;
	int ret;

	/* Not zeroed: svcrdma_reply_choose() and _post() set the rest, which is long. */
	reply.request = request;
	reply.res = &rqstp->rq_res;
	reply.uses_head = false;
	reply.gathered = 0;
	rpcrdma_wire_make_reply(msg, msg->credits);
	if (svcrdma_reply_choose(&reply.form, msg, &request->results, reply.res, threshold)) {
		/* That a chunk is too short shows only now that the Call is executed. */
		rpcrdma_wire_cant_reply(msg, reply.form.short_chunk, reply.form.needed);
		request->tally.error = RPCRDMA_A_ERRORS_REPLY_SPACE;
		svcrdma_reply_error(request);
		return len;
	}
	/* Not earlier: the error may grant nothing. */
	msg->credits = svcrdma_service_grant(service, msg->credits);
	if (reply.form.written)
		svcrdma_count(SVCRDMA_STAT_WRITE);
	ret = reply_post(&reply, rqstp);
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
 * Return: length of the RPC message in octets, or a negative errno if the
 * connection is closed or will be.
 */
int svcrdma_sendto(struct svc_rqst *rqstp)
{
	struct svcrdma_request *request = rqstp->rq_xprt_ctxt;
	struct svcrdma_service *service;
	unsigned int noio;
	int ret;

	if (svc_xprt_is_dead(rqstp->rq_xprt))
		return -ENOTCONN;
	rqstp->rq_xprt_ctxt = NULL;
	svcrdma_pages_unhold(request);
	/* This thread need not be the one whose pages the request holds. */
	if (rqstp->rq_deferred)
		svcrdma_pages_put(request);
	service = request->service;
	if (!READ_ONCE(service->replied))
		WRITE_ONCE(service->replied, true);
	if (!rpcrdma_conn_enter(service->conn)) {
		svcrdma_request_put(request);
		return -ENOTCONN;
	}
	/* As in svcrdma_pull_continue() */
	noio = memalloc_noio_save();
	svcrdma_request_put_recv(request);
	if (svcrdma_xid_timed(request->msg.xid))
		request->tally.latency = rpcrdma_latency_slot(ktime_sub(ktime_get(),
									rqstp->rq_stime));
	ret = reply_send(request, rqstp);
	memalloc_noio_restore(noio);
	rpcrdma_conn_leave(service->conn);
	return ret;
}

/**
 * svcrdma_reply_error - answer a Call with RDMA_ERROR (RFC 8166 section 4.5)
 * @request: the request, whose msg has the error; the caller must not use it
 *	afterwards
 */
void svcrdma_reply_error(struct svcrdma_request *request)
{
	struct svcrdma_service *service = request->service;
	struct rpcrdma_message *msg = &request->msg;
	struct rpcrdma_send *send;
	int ret = -ENOTCONN;

	svcrdma_count(SVCRDMA_STAT_ERRORS);
	svcrdma_request_put_recv(request);
	if (!rpcrdma_conn_enter(service->conn))
		goto out;
	send = reply_get_send(request);
	if (send) {
		rpcrdma_wire_make_error(msg, svcrdma_service_grant(service, 0));
		ret = rpcrdma_send_header(send, msg);
		if (!ret) {
			trace_rpcrdma_reply_form(service->conn, msg, send->len, true);
			ret = rpcrdma_send_post(send, NULL, RPCRDMA_POST_LATER, NULL);
		}
		if (ret)
			rpcrdma_send_put(send);
		else
			request->tally.sent = RPCRDMA_A_TRAFFIC_ERROR;
	}
	rpcrdma_conn_leave(service->conn);
out:
	svcrdma_request_put(request);
	if (ret)
		svcrdma_service_close(service);
}
