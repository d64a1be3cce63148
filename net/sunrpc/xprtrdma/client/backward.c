// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The backward direction (RFC 8167): Calls arrive from the server and wait for a thread
 * of NFS's callback service. Their Replies leave through sunrpc's send queue. Calls and
 * Replies are inline.
 */
#include <linux/slab.h>
#include <linux/sunrpc/bc_xprt.h>

#include "client_private.h"
#include "../trace.h"

/*
 * Answer a backward Call with the error in its header, which this overwrites. If that cannot be
 * sent, the connection is closed: the server has to learn that it gets no Reply (RFC 8166 section
 * 4.5.4). In ->received.
 */
void xprt_rdma_backward_refuse(struct rpcrdma_conn *conn, struct rpcrdma_message *msg)
{
	struct rpcrdma_send *send = rpcrdma_send_get(conn);
	int ret = -ENOBUFS;

	if (!send)
		goto close;
	rpcrdma_wire_make_error(msg, XPRT_RDMA_BACKWARD_CREDITS);
	ret = rpcrdma_send_header(send, msg);
	if (ret)
		goto put;
	trace_rpcrdma_reply_form(conn, msg, send->len, true);
	ret = rpcrdma_send_post(send, NULL, 0, NULL);
	if (!ret) {
		conn->counters.sent.messages[RPCRDMA_A_TRAFFIC_ERROR]++;
		return;
	}
put:
	rpcrdma_send_put(send);
close:
	rpcrdma_conn_close(conn, ret);
}

#ifdef CONFIG_SUNRPC_BACKCHANNEL

static void backward_release(struct xprt_rdma_backward *backward)
{
	kfree(backward->call);
	free_page((unsigned long)backward->reply);
	rpcrdma_object_freed(RPCRDMA_OBJECT_BACKWARD);
	kfree(backward);
}

static struct xprt_rdma_backward *backward_create(struct rpc_xprt *xprt)
{
	struct xprt_rdma_backward *backward = kzalloc(sizeof(*backward), GFP_KERNEL);

	if (!backward)
		return NULL;
	rpcrdma_object_made(RPCRDMA_OBJECT_BACKWARD);
	backward->call = kmalloc(XPRT_RDMA_BACKWARD_MAX, GFP_KERNEL);
	backward->reply = (void *)__get_free_page(GFP_KERNEL);
	backward->rqst.rq_xprt = xprt;
	if (backward->call && backward->reply)
		return backward;
	backward_release(backward);
	return NULL;
}

/*
 * The rpc_xprt_ops's bc_setup. A connection that was made before the first call of this has no
 * Receives for backward Calls, so it is replaced. May sleep. Return: 0 or -ENOMEM.
 */
int xprt_rdma_backward_setup(struct rpc_xprt *xprt, unsigned int min_reqs)
{
	struct xprt_rdma_client *client = xprt_rdma_client_of(xprt);
	struct xprt_rdma_backward *backward;
	bool wanted;

	spin_lock(&client->backward_lock);
	client->backward_users += min_reqs;
	spin_unlock(&client->backward_lock);
	do {
		backward = backward_create(xprt);
		if (!backward) {
			xprt_rdma_backward_destroy(xprt, min_reqs);
			return -ENOMEM;
		}
		spin_lock(&client->backward_lock);
		/* Twice the credits: the next Call may arrive before the last one is given back. */
		wanted = client->backward_count < 2 * XPRT_RDMA_BACKWARD_CREDITS;
		if (wanted) {
			list_add(&backward->list, &client->backward_idle);
			client->backward_count++;
		}
		spin_unlock(&client->backward_lock);
	} while (wanted);
	backward_release(backward);

	if (!client->wants_backward) {
		client->wants_backward = true;
		if (xprt_connected(xprt))
			xprt_force_disconnect(xprt);
	}
	return 0;
}

/*
 * The rpc_xprt_ops's bc_destroy. With the last user, Calls that the callback service has not
 * started are taken back: the service may end without processing them.
 */
void xprt_rdma_backward_destroy(struct rpc_xprt *xprt, unsigned int max_reqs)
{
	struct xprt_rdma_client *client = xprt_rdma_client_of(xprt);
	struct xprt_rdma_backward *backward, *next;
	bool with_service = false;
	LIST_HEAD(unused);

	spin_lock(&client->backward_lock);
	client->backward_users -= min(max_reqs, client->backward_users);
	if (!client->backward_users) {
		list_for_each_entry(backward, &client->backward_idle, list)
			client->backward_count--;
		list_splice_init(&client->backward_idle, &unused);
		with_service = client->backward_count;
	}
	spin_unlock(&client->backward_lock);

	list_for_each_entry_safe(backward, next, &unused, list)
		backward_release(backward);
	if (with_service)
		rpcrdma_compat_take_back_bc(xprt);
}

/*
 * The rpc_xprt_ops's bc_maxpayload. NFS asks once, when it makes a session. A later connection of
 * the session may agree on less, but callbacks are mostly shorter than what any connection takes.
 */
size_t xprt_rdma_backward_maxpayload(struct rpc_xprt *xprt)
{
	return READ_ONCE(xprt_rdma_client_of(xprt)->backward_payload);
}

/* The rpc_xprt_ops's bc_num_slots */
unsigned int xprt_rdma_backward_slots(struct rpc_xprt *xprt)
{
	return XPRT_RDMA_BACKWARD_SLOTS;
}

static void backward_put(struct xprt_rdma_client *client, struct xprt_rdma_backward *backward)
{
	bool keep;

	xprt_rdma_ep_put(backward->ep);
	backward->ep = NULL;
	clear_bit_unlock(RPC_BC_PA_IN_USE, &backward->rqst.rq_bc_pa_state);

	spin_lock(&client->backward_lock);
	keep = client->backward_users;
	if (keep)
		list_add(&backward->list, &client->backward_idle);
	else
		client->backward_count--;
	spin_unlock(&client->backward_lock);
	if (!keep)
		backward_release(backward);
}

/* The rpc_xprt_ops's bc_free_rqst: the callback service is done with the Call. */
void xprt_rdma_backward_free(struct rpc_rqst *rqst)
{
	struct rpc_xprt *xprt = rqst->rq_xprt;

	backward_put(xprt_rdma_client_of(xprt),
		     container_of(rqst, struct xprt_rdma_backward, rqst));
	/* This may be the last reference: the client may be freed after this. */
	xprt_put(xprt);
}

static struct xprt_rdma_backward *backward_take(struct xprt_rdma_client *client)
{
	struct xprt_rdma_backward *backward;

	spin_lock(&client->backward_lock);
	backward = list_first_entry_or_null(&client->backward_idle,
					    struct xprt_rdma_backward, list);
	if (backward)
		list_del(&backward->list);
	spin_unlock(&client->backward_lock);
	return backward;
}

static void backward_init(struct xprt_rdma_backward *backward,
			  struct xprt_rdma_endpoint *ep, const void *payload)
{
	const struct rpcrdma_message *msg = &ep->reply;
	struct rpc_rqst *rqst = &backward->rqst;
	struct rpc_xprt *xprt = rqst->rq_xprt;

	memcpy(backward->call, payload, msg->payload_len);
	xprt_rdma_ep_get(ep);
	backward->ep = ep;
	backward->version = msg->version;
	backward->inv_handle = msg->inv_handle;

	memset(rqst, 0, sizeof(*rqst));
	rqst->rq_xprt = xprt;
	rqst->rq_xid = msg->xid;
	rqst->rq_connect_cookie = xprt->connect_cookie;
	xdr_buf_init(&rqst->rq_snd_buf, backward->reply, PAGE_SIZE);
	xdr_buf_init(&rqst->rq_rcv_buf, backward->call, msg->payload_len);
	rqst->rq_rcv_buf.len = msg->payload_len;
	rqst->rq_private_buf = rqst->rq_rcv_buf;
	set_bit(RPC_BC_PA_IN_USE, &rqst->rq_bc_pa_state);
}

/*
 * Pass a backward Call, whose header is ep->reply, to the callback service. It is dropped if the
 * server exceeds its credits, or if there is no service. A Call with chunks, whose support RFC
 * 8167 does not require, is answered with an error. So is one with an empty chunk, which its
 * Reply would have to return (RFC 8166 section 3.4.6). Only an RDMA_MSG without chunks has the
 * least header_len. In ->received.
 */
void xprt_rdma_backward_received(struct xprt_rdma_endpoint *ep, struct rpcrdma_recv *recv)
{
	struct xprt_rdma_client *client = ep->client;
	struct rpcrdma_message *msg = &ep->reply;
	struct rpcrdma_conn *conn = recv->conn;
	struct xprt_rdma_backward *backward;
	bool queued;

	trace_rpcrdma_call_form(conn, msg, recv->len, false);
	rpcrdma_add_traffic(&conn->counters.received, RPCRDMA_A_TRAFFIC_BACKWARD, msg->payload_len);
	if (msg->header_len != rpcrdma_wire_header_min(msg->version) ||
	    msg->payload_len > XPRT_RDMA_BACKWARD_MAX) {
		rpcrdma_recv_put(recv);
		msg->error = RPCRDMA_ERR_BAD_XDR;
		xprt_rdma_backward_refuse(conn, msg);
		return;
	}
	backward = backward_take(client);
	if (!backward) {
		trace_rpcrdma_bad_message(conn, msg, recv->len);
		rpcrdma_recv_put(recv);
		return;
	}
	backward_init(backward, ep, recv->data + msg->header_len);
	rpcrdma_recv_put(recv);
	/*
	 * After bc_destroy there may be no service any more: look for users under the lock that
	 * bc_destroy takes. xprt_put() must not be called here: destroying a transport waits until
	 * ->received has returned.
	 */
	spin_lock(&client->backward_lock);
	queued = client->backward_users && rpcrdma_compat_enqueue_bc(&backward->rqst);
	spin_unlock(&client->backward_lock);
	if (!queued)
		backward_put(client, backward);
}

/*
 * Write the Reply to a backward Call into a Send; ep->call becomes the header. The Reply has the
 * version of its Call (draft 6.3), but on a connection of version 1 the threshold of version 1
 * (draft 6.1). An error takes the place of a Reply that is too long (draft 5.2.4, RFC 8166 section
 * 4.5.3). No handle is invalidated: a Call with chunks does not get here.
 */
int xprt_rdma_backward_fill_reply(struct xprt_rdma_endpoint *ep, const struct rpc_rqst *rqst,
				  struct rpcrdma_send *send)
{
	const struct xprt_rdma_backward *backward =
		container_of(rqst, struct xprt_rdma_backward, rqst);
	u32 threshold = rpcrdma_conn_call_threshold(ep->conn, min(backward->version,
								  ep->version.settled));
	const struct xdr_buf *buf = &rqst->rq_snd_buf;
	struct rpcrdma_message *msg = &ep->call;
	int ret;

	rpcrdma_wire_init_call(msg, backward->version, rqst->rq_xid, 1);
	msg->inv_handle = backward->inv_handle;
	rpcrdma_wire_make_reply(msg, XPRT_RDMA_BACKWARD_CREDITS);
	ret = rpcrdma_send_header(send, msg);
	if (!ret)
		ret = rpcrdma_send_copy(send, buf, 0, buf->len, threshold);
	if (ret != -EMSGSIZE)
		return ret;
	rpcrdma_wire_cant_reply(msg, NULL, 0);
	rpcrdma_wire_make_error(msg, XPRT_RDMA_BACKWARD_CREDITS);
	return rpcrdma_send_header(send, msg);
}

/*
 * Send the Reply to a backward Call, or drop it if the Call arrived on another connection.
 * Entered, XPRT_LOCKED is held. Return: 0: sent or dropped. -EAGAIN: the transport has to wait.
 * -ENOTCONN: not connected. Another error: it can never be sent.
 */
int xprt_rdma_backward_reply(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst)
{
	struct xprt_rdma_backward *backward = container_of(rqst, struct xprt_rdma_backward, rqst);
	struct rpcrdma_counters *counters = &ep->conn->counters;
	struct rpcrdma_send *send;
	int ret;

	if (backward->ep != ep)
		return 0;
	send = rpcrdma_send_get(ep->conn);
	if (!send)
		return -EAGAIN;
	ret = xprt_rdma_backward_fill_reply(ep, rqst, send);
	if (ret)
		goto put;
	rqst->rq_xtime = ktime_get();
	trace_rpcrdma_reply_form(ep->conn, &ep->call, send->len, true);
	ret = rpcrdma_send_post(send, NULL, 0, NULL);
	if (ret)
		goto put;
	if (ep->call.proc == RPCRDMA_ERROR) {
		counters->sent.messages[RPCRDMA_A_TRAFFIC_ERROR]++;
		counters->errors[RPCRDMA_A_ERRORS_NOT_SENT]++;
	} else {
		rpcrdma_add_traffic(&counters->sent, RPCRDMA_A_TRAFFIC_BACKWARD,
				    rqst->rq_snd_buf.len);
	}
	return 0;
put:
	rpcrdma_send_put(send);
	return ret;
}

#else /* CONFIG_SUNRPC_BACKCHANNEL */

void xprt_rdma_backward_received(struct xprt_rdma_endpoint *ep, struct rpcrdma_recv *recv)
{
	rpcrdma_recv_put(recv);
}

int xprt_rdma_backward_reply(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst)
{
	return 0;
}

#endif /* CONFIG_SUNRPC_BACKCHANNEL */
