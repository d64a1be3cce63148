// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Receive a message: decode its header, match a Reply with its Call, and check the
 * chunks in the header against those that the Call offered. reply.c goes on with a
 * Reply that has been matched, backward.c with a backward Call.
 */
#include "client_private.h"
#include "../trace.h"

/* Return: the request, pinned; NULL if no task waits for this Reply. */
static struct xprt_rdma_request *receive_match(struct xprt_rdma_endpoint *ep, __be32 xid)
{
	struct rpc_xprt *xprt = &ep->client->xprt;
	struct xprt_rdma_request *request = NULL;
	struct rpc_rqst *rqst;

	spin_lock(&xprt->queue_lock);
	rqst = xprt_lookup_rqst(xprt, xid);
	if (rqst) {
		request = xprt_rdma_request_of(rqst);
		/* Pair with the releases in call_post() and chain_post_locked(). */
		if (smp_load_acquire(&request->ep) == ep && smp_load_acquire(&request->posted) &&
		    !request->replied) {
			request->replied = true;
			xprt_pin_rqst(rqst);
		} else {
			request = NULL;
		}
	}
	spin_unlock(&xprt->queue_lock);
	return request;
}

/*
 * The server returns the segments that were offered, filled from the first one on
 * and without holes (RFC 8166 section 3.4.6). What segments a chunk without octets
 * has does not matter: it was not used.
 */
static bool receive_was_offered(const struct xprt_rdma_request *request,
				enum xprt_rdma_reply_form form, const struct rpcrdma_message *msg,
				const struct rpcrdma_chunk *chunk)
{
	const struct rpcrdma_segment *segment;
	struct rpcrdma_mr *mr = request->reply_mr;
	bool full = true;
	unsigned int i;

	if (!chunk->length)
		return true;
	if (request->form.reply != form || chunk->count > request->reply_segments)
		return false;
	segment = rpcrdma_chunk_segments(msg, chunk);
	for (i = 0; i < chunk->count; i++, segment++) {
		if (segment->handle != mr->segment.handle ||
		    segment->offset != mr->segment.offset ||
		    segment->length > (full ? mr->segment.length : 0))
			return false;
		full = segment->length == mr->segment.length;
		mr = list_next_entry(mr, list);
	}
	return true;
}

/* Note in the request where its Reply is. Return: 0, or what the RPC fails with. */
static int receive_parse(struct xprt_rdma_request *request, const struct rpcrdma_message *msg,
			 const struct rpcrdma_recv *recv)
{
	struct rpcrdma_counters *counters = &recv->conn->counters;

	request->payload = NULL;
	request->payload_len = 0;
	request->written = 0;
	if (msg->proc == RPCRDMA_ERROR) {
		counters->received.messages[RPCRDMA_A_TRAFFIC_ERROR]++;
		return -EIO;
	}
	if (msg->num_writes > 1 ||
	    (msg->num_writes &&
	     !receive_was_offered(request, XPRT_RDMA_REPLY_WRITE_CHUNK, msg, &msg->write[0])) ||
	    (msg->has_reply_chunk &&
	     !receive_was_offered(request, XPRT_RDMA_REPLY_CHUNK, msg, &msg->reply_chunk))) {
		counters->errors[RPCRDMA_A_ERRORS_BAD_HEADER]++;
		return -EIO;
	}

	if (msg->proc == RPCRDMA_NOMSG) {
		request->written = msg->reply_chunk.written;
		return 0;
	}
	request->payload = recv->data + msg->header_len;
	request->payload_len = msg->payload_len;
	if (msg->num_writes)
		request->written = msg->write[0].written;
	return 0;
}

static void receive_answer(struct xprt_rdma_endpoint *ep, struct rpcrdma_recv *recv)
{
	struct rpcrdma_message *msg = &ep->reply;
	struct xprt_rdma_request *request;

	request = receive_match(ep, msg->xid);
	if (request) {
		request->error = receive_parse(request, msg, recv);
		xprt_rdma_reply_matched(request, recv);
		return;
	}
	trace_rpcrdma_bad_message(recv->conn, msg, recv->len);
	recv->conn->counters.errors[RPCRDMA_A_ERRORS_UNMATCHED]++;
	xprt_rdma_retire_unmatched(ep, recv, msg->xid);
	atomic_dec(&ep->credits.orphaned);
	rpcrdma_recv_put(recv);
	xprt_rdma_ep_credit_back(ep);
}

/*
 * Give back a message that breaks a rule, and do what the decoder's verdict says. If it may have
 * been a Reply, an RPC now waits in vain: see client_timer().
 */
static void receive_unusable(struct xprt_rdma_endpoint *ep, struct rpcrdma_recv *recv,
			     enum rpcrdma_verdict verdict)
{
	struct rpcrdma_message *msg = &ep->reply;
	struct rpcrdma_conn *conn = recv->conn;

	trace_rpcrdma_bad_message(conn, msg, recv->len);
	ep->client->stats.bad_replies++;
	conn->counters.errors[RPCRDMA_A_ERRORS_BAD_HEADER]++;
	rpcrdma_recv_put(recv);
	if (verdict == RPCRDMA_ANSWER) {
		xprt_rdma_backward_refuse(conn, msg);
		/* In an unknown version a Reply looks like a Call. */
		if (msg->error == RPCRDMA_ERR_VERS)
			WRITE_ONCE(ep->client->reply_lost, true);
		return;
	}
	WRITE_ONCE(ep->client->reply_lost, true);
	if (xprt_rdma_credits_freed_by(msg, conn->backward_credits))
		xprt_rdma_ep_credit_back(ep);
}

/*
 * A Reply or an RDMA_ERROR. Before the version is settled, only the answer to the NULL is taken.
 * Its grant is ignored, and it cannot invalidate anything: the NULL offered no handle. Later each
 * Reply has the settled version. An error may have any: not all servers copy the field.
 */
static void receive_reply(struct xprt_rdma_endpoint *ep, struct rpcrdma_recv *recv)
{
	struct rpcrdma_traffic *received = &recv->conn->counters.received;
	struct rpcrdma_message *msg = &ep->reply;
	bool error = msg->proc == RPCRDMA_ERROR;
	/* Pairs with version_settle(). */
	u32 settled = smp_load_acquire(&ep->version.settled);

	if (settled ? !error && msg->version != settled : !xprt_rdma_version_answered(ep, msg)) {
		msg->reason = RPCRDMA_BAD_VERSION;
		receive_unusable(ep, recv, RPCRDMA_DROP);
		return;
	}
	trace_rpcrdma_reply_form(recv->conn, msg, recv->len, false);
	if (settled) {
		if (rpcrdma_wire_grants(msg))
			xprt_rdma_ep_granted(ep, msg->credits);
		receive_answer(ep, recv);
		return;
	}
	if (error)
		received->messages[RPCRDMA_A_TRAFFIC_ERROR]++;
	else
		rpcrdma_add_traffic(received, RPCRDMA_A_TRAFFIC_INLINE, msg->payload_len);
	if (recv->invalidated)
		rpcrdma_conn_close(recv->conn, -EPROTO);
	/* The Reply to the first Call needs it: there may be no other Receive. */
	rpcrdma_recv_put(recv);
	complete_all(&ep->ready);
}

/* The rpcrdma_conn_ops's received */
void xprt_rdma_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv)
{
	struct xprt_rdma_endpoint *ep = conn->role;
	struct rpcrdma_message *msg = &ep->reply;
	enum rpcrdma_verdict verdict;

	verdict = rpcrdma_wire_decode(msg, recv->data, recv->len, RPCRDMA_CLIENT_END,
				      conn->backward_credits, ep->version.offered);
	if (verdict != RPCRDMA_USE)
		receive_unusable(ep, recv, verdict);
	else if (msg->direction != RPCRDMA_REPLY)
		xprt_rdma_backward_received(ep, recv);
	else
		receive_reply(ep, recv);
}
