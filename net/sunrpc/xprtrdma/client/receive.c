// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Receive a message: decode its header, match a Reply with its Call, and check the
 * chunks in the header against those that the Call offered. reply.c goes on with a
 * Reply that has been matched, callback.c with a backward Call.
 */
#include "client_private.h"
#include "../trace.h"

/* The request that is returned is pinned until its RPC is complete. */
static struct xprt_rdma_request *
xprt_rdma_receive_match(struct xprt_rdma_endpoint *ep, __be32 xid)
{
	struct rpc_xprt *xprt = &ep->client->xprt;
	struct xprt_rdma_request *request = NULL;
	struct rpc_rqst *rqst;

	spin_lock(&xprt->queue_lock);
	rqst = xprt_lookup_rqst(xprt, xid);
	if (rqst) {
		request = xprt_rdma_request_of(rqst);
		/* Pairs with the release in xprt_rdma_call_post(). */
		if (smp_load_acquire(&request->ep) == ep && READ_ONCE(request->posted) &&
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
 * and without holes (RFC 8166 section 3.4.6). A chunk without octets was not used, so it
 * does not matter which segments it has.
 */
static bool xprt_rdma_receive_was_offered(const struct xprt_rdma_request *request,
					  enum xprt_rdma_reply_form form,
					  const struct rpcrdma_message *msg,
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

static bool xprt_rdma_receive_chunks_valid(const struct xprt_rdma_request *request,
					   const struct rpcrdma_message *msg)
{
	if (msg->num_writes > 1)
		return false;
	if (msg->num_writes &&
	    !xprt_rdma_receive_was_offered(request, XPRT_RDMA_REPLY_WRITE_CHUNK, msg,
					   &msg->write[0]))
		return false;
	return !msg->has_reply_chunk ||
	       xprt_rdma_receive_was_offered(request, XPRT_RDMA_REPLY_CHUNK, msg,
					     &msg->reply_chunk);
}

static int xprt_rdma_receive_bad_chunks(struct rpcrdma_conn *conn)
{
	conn->counters.errors[RPCRDMA_A_ERRORS_BAD_HEADER]++;
	return -EIO;
}

/* Note in the request where its Reply is. Return: 0, or what the RPC fails with. */
static noinline int xprt_rdma_receive_parse_chunks(struct xprt_rdma_request *request,
						   const struct rpcrdma_message *msg,
						   const struct rpcrdma_recv *recv)
{
	request->payload = NULL;
	request->payload_len = 0;
	request->written = 0;
	if (msg->proc == RPCRDMA_ERROR) {
		recv->conn->counters.received.messages[RPCRDMA_A_TRAFFIC_ERROR]++;
		return -EIO;
	}
	if (!xprt_rdma_receive_chunks_valid(request, msg))
		return xprt_rdma_receive_bad_chunks(recv->conn);

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

/* Most Replies are all inline and return no chunk. */
static int xprt_rdma_receive_parse(struct xprt_rdma_request *request,
				   const struct rpcrdma_message *msg,
				   const struct rpcrdma_recv *recv)
{
	if (msg->proc != RPCRDMA_MSG || msg->num_writes || msg->has_reply_chunk)
		return xprt_rdma_receive_parse_chunks(request, msg, recv);
	request->payload = recv->data + msg->header_len;
	request->payload_len = msg->payload_len;
	request->written = 0;
	return 0;
}

/* @refused: the server has refused the version, so the Call has to be sent again. */
static void xprt_rdma_receive_answer(struct xprt_rdma_endpoint *ep, struct rpcrdma_recv *recv,
				     bool refused)
{
	struct rpcrdma_message *msg = &ep->reply;
	struct xprt_rdma_request *request;

	request = xprt_rdma_receive_match(ep, msg->xid);
	if (request) {
		request->error = refused ? -EAGAIN : xprt_rdma_receive_parse(request, msg, recv);
		xprt_rdma_reply_matched(request, recv);
		return;
	}
	trace_rpcrdma_bad_message(recv->conn, msg, recv->len);
	recv->conn->counters.errors[RPCRDMA_A_ERRORS_UNMATCHED]++;
	xprt_rdma_retire_unmatched(ep, recv, msg->xid);
	xprt_rdma_credits_conclude(&ep->credits);
	rpcrdma_recv_put(recv);
	xprt_rdma_ep_credit_back(ep);
}

static void xprt_rdma_receive_grant(struct xprt_rdma_endpoint *ep,
				    const struct rpcrdma_recv *recv)
{
	xprt_rdma_ep_granted(ep, min(ep->reply.credits, recv->conn->credits));
}

/* A Reply or an RDMA_ERROR, on a connection that offers version 1 alone */
static void xprt_rdma_receive_reply(struct xprt_rdma_endpoint *ep, struct rpcrdma_recv *recv)
{
	trace_rpcrdma_reply_form(recv->conn, &ep->reply, recv->len, false);
	xprt_rdma_receive_grant(ep, recv);
	xprt_rdma_receive_answer(ep, recv, false);
}

/*
 * The message may have been a Reply, for which an RPC now waits in vain: see
 * xprt_rdma_client_timer().
 */
static void xprt_rdma_receive_dropped(struct xprt_rdma_endpoint *ep, bool backward)
{
	WRITE_ONCE(ep->client->reply_lost, true);
	if (xprt_rdma_credits_freed_by(&ep->reply, backward))
		xprt_rdma_ep_credit_back(ep);
}

/* Give back a message that breaks a rule; its header remains in ep->reply. */
static void xprt_rdma_receive_bad(struct xprt_rdma_endpoint *ep, struct rpcrdma_recv *recv)
{
	trace_rpcrdma_bad_message(recv->conn, &ep->reply, recv->len);
	ep->client->stats.bad_replies++;
	recv->conn->counters.errors[RPCRDMA_A_ERRORS_BAD_HEADER]++;
	rpcrdma_recv_put(recv);
}

/*
 * A Reply or an RDMA_ERROR, on a connection that offers more than version 1. The version is
 * settled before credits are granted or given back, so whoever takes a credit sees it.
 * What a refusal or another error grants before that does not count (draft 6).
 */
static noinline void xprt_rdma_receive_versioned(struct xprt_rdma_endpoint *ep,
						 struct rpcrdma_recv *recv)
{
	struct rpcrdma_message *msg = &ep->reply;
	enum xprt_rdma_version_verdict verdict = xprt_rdma_version_judge(&ep->version, msg);
	bool refused = verdict == XPRT_RDMA_VERSION_REFUSED;

	if (verdict == XPRT_RDMA_VERSION_DROP) {
		msg->reason = RPCRDMA_BAD_VERSION;
		xprt_rdma_receive_bad(ep, recv);
		xprt_rdma_receive_dropped(ep, recv->conn->backward_credits);
		return;
	}
	trace_rpcrdma_reply_form(recv->conn, msg, recv->len, false);
	if (refused)
		recv->conn->counters.received.messages[RPCRDMA_A_TRAFFIC_ERROR]++;
	if (verdict != XPRT_RDMA_VERSION_TAKE)
		xprt_rdma_ep_offer_over(ep);
	if (!refused && verdict != XPRT_RDMA_VERSION_FAILED && rpcrdma_wire_grants(msg))
		xprt_rdma_receive_grant(ep, recv);
	xprt_rdma_receive_answer(ep, recv, refused);
}

/* What the decoder's verdict says about a message that cannot be used */
static noinline void xprt_rdma_receive_unusable(struct xprt_rdma_endpoint *ep,
						struct rpcrdma_recv *recv,
						enum rpcrdma_verdict verdict)
{
	struct rpcrdma_conn *conn = recv->conn;

	xprt_rdma_receive_bad(ep, recv);
	if (verdict == RPCRDMA_DROP) {
		xprt_rdma_receive_dropped(ep, conn->backward_credits);
		return;
	}
	xprt_rdma_backward_refuse(conn, &ep->reply);
	/* In another version nothing tells whether it was a Reply. */
	if (ep->reply.error == RPCRDMA_ERR_VERS)
		WRITE_ONCE(ep->client->reply_lost, true);
}

/**
 * xprt_rdma_received - the rpcrdma_conn_ops's received
 * @conn: the connection, perhaps not established yet
 * @recv: the message
 *
 * Does what the decoder's verdict says: see rpcrdma_wire_decode().
 *
 * Context: ->received.
 */
void xprt_rdma_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv)
{
	struct xprt_rdma_endpoint *ep = conn->role;
	struct rpcrdma_message *msg = &ep->reply;
	enum rpcrdma_verdict verdict;

	verdict = rpcrdma_wire_decode(msg, recv->data, recv->len, RPCRDMA_REQUESTER,
				      conn->backward_credits, ep->version.offered);
	if (verdict != RPCRDMA_USE)
		xprt_rdma_receive_unusable(ep, recv, verdict);
	else if (msg->direction != RPCRDMA_REPLY)
		xprt_rdma_backward_received(ep, recv);
	else if (xprt_rdma_version_is_negotiated(&ep->version))
		xprt_rdma_receive_versioned(ep, recv);
	else
		xprt_rdma_receive_reply(ep, recv);
}
