// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Backward Calls (RFC 8167): they arrive from the server, wait for a thread of
 * NFS's callback service, and their Replies leave by way of sunrpc's send
 * queue. All of them are inline.
 */
#include <linux/slab.h>
#include <linux/sunrpc/bc_xprt.h>

#include "../trace.h"
#include "client_private.h"

/**
 * rpcrdma_backward_refuse - answer a backward Call that cannot be taken
 * @conn: where it arrived, which may not be established yet
 * @msg: its header, which this makes unusable
 * @error: what the server is told
 *
 * Without room to send it in, the connection ends, for the server is to know that
 * it gets no Reply (RFC 8166 section 4.5.4).
 *
 * Context: ->received.
 */
void rpcrdma_backward_refuse(struct rpcrdma_conn *conn,
			     struct rpcrdma_message *msg,
			     enum rpcrdma_errcode error)
{
	struct rpcrdma_send *send = rpcrdma_send_get(conn);
	int ret = -ENOBUFS;

	if (!send)
		goto close;
	rpcrdma_wire_make_error(msg, error, RPCRDMA_BACKWARD_CREDITS);
	ret = rpcrdma_wire_encode(msg, send->data, send->size);
	if (ret < 0)
		goto put;
	send->len = ret;
	send->work.done = rpcrdma_send_done;
	trace_rpcrdma_reply_form(conn, msg, send->len, true);
	ret = rpcrdma_send_post(send, NULL, false);
	if (!ret)
		return;
put:
	rpcrdma_send_put(send);
close:
	rpcrdma_conn_close(conn, ret);
}

#ifdef CONFIG_SUNRPC_BACKCHANNEL

/**
 * struct rpcrdma_backward - a backward Call and its Reply
 * @rqst: the rpc_rqst, which has to be first
 * @list: in client->backward_idle
 * @link: where the Call arrived; a reference, while in use
 * @call: a page with the Call, copied as its receive buffer has to be reposted
 * @reply: a page for the Reply, of a size that svc expects
 *
 * The client has as many as the server may have outstanding, from bc_setup to
 * bc_destroy. One that is in use then is freed when svc gives it back.
 */
struct rpcrdma_backward {
	struct rpc_rqst rqst;
	struct list_head list;
	struct rpcrdma_link *link;
	void *call;
	void *reply;
};

static void backward_destroy(struct rpcrdma_backward *backward)
{
	free_page((unsigned long)backward->call);
	free_page((unsigned long)backward->reply);
	kfree(backward);
}

static struct rpcrdma_backward *backward_create(struct rpc_xprt *xprt)
{
	struct rpcrdma_backward *backward = kzalloc(sizeof(*backward), GFP_KERNEL);

	if (!backward)
		return NULL;
	backward->call = (void *)__get_free_page(GFP_KERNEL);
	backward->reply = (void *)__get_free_page(GFP_KERNEL);
	backward->rqst.rq_xprt = xprt;
	if (backward->call && backward->reply)
		return backward;
	backward_destroy(backward);
	return NULL;
}

/* Returns false if there are enough of them already. */
static bool backward_add(struct rpcrdma_client *client,
			 struct rpcrdma_backward *backward)
{
	bool wanted;

	spin_lock(&client->backward_lock);
	/* The next Call may be here before whoever sent a Reply gives its own back. */
	wanted = client->backward_count < 2 * RPCRDMA_BACKWARD_CREDITS;
	if (wanted) {
		list_add(&backward->list, &client->backward_idle);
		client->backward_count++;
	}
	spin_unlock(&client->backward_lock);
	return wanted;
}

/**
 * rpcrdma_backward_setup - the rpc_xprt_ops's bc_setup
 * @xprt: the transport
 * @min_reqs: Calls that the caller expects at a time
 *
 * A connection that was made before anyone asked for this has no receive
 * buffers for it, so it makes place for another.
 *
 * Return: 0 or -ENOMEM.
 */
int rpcrdma_backward_setup(struct rpc_xprt *xprt, unsigned int min_reqs)
{
	struct rpcrdma_client *client = rpcrdma_client_of(xprt);
	struct rpcrdma_backward *backward;

	spin_lock(&client->backward_lock);
	client->backward_users += min_reqs;
	spin_unlock(&client->backward_lock);
	do {
		backward = backward_create(xprt);
		if (!backward) {
			rpcrdma_backward_destroy(xprt, min_reqs);
			return -ENOMEM;
		}
	} while (backward_add(client, backward));
	backward_destroy(backward);

	if (!client->wants_backward) {
		client->wants_backward = true;
		if (xprt_connected(xprt))
			xprt_force_disconnect(xprt);
	}
	return 0;
}

/**
 * rpcrdma_backward_destroy - the rpc_xprt_ops's bc_destroy
 * @xprt: the transport
 * @max_reqs: Calls that the caller expected, or more
 *
 * Calls that the service has not begun with are dropped with the last user. It
 * outlives that, as long as it has any, but might end without a look at them.
 */
void rpcrdma_backward_destroy(struct rpc_xprt *xprt, unsigned int max_reqs)
{
	struct rpcrdma_client *client = rpcrdma_client_of(xprt);
	struct rpcrdma_backward *backward, *next;
	bool with_service = false;
	LIST_HEAD(surplus);

	spin_lock(&client->backward_lock);
	client->backward_users -= min(max_reqs, client->backward_users);
	if (!client->backward_users) {
		list_for_each_entry(backward, &client->backward_idle, list)
			client->backward_count--;
		list_splice_init(&client->backward_idle, &surplus);
		with_service = client->backward_count;
	}
	spin_unlock(&client->backward_lock);

	list_for_each_entry_safe(backward, next, &surplus, list)
		backward_destroy(backward);
	if (with_service)
		rpcrdma_compat_take_back_bc(xprt);
}

/**
 * rpcrdma_backward_maxpayload - the rpc_xprt_ops's bc_maxpayload
 * @xprt: the transport
 *
 * NFS asks when it makes a session, by a connection that there is already. The next
 * one may agree on less, for the same session. Callbacks are mostly shorter than
 * what all connections take.
 *
 * Return: octets of the longest backward Call or Reply.
 */
size_t rpcrdma_backward_maxpayload(struct rpc_xprt *xprt)
{
	return READ_ONCE(rpcrdma_client_of(xprt)->backward_payload);
}

/**
 * rpcrdma_backward_slots - the rpc_xprt_ops's bc_num_slots
 * @xprt: the transport
 *
 * Return: backward Calls that the server may have slots for.
 */
unsigned int rpcrdma_backward_slots(struct rpc_xprt *xprt)
{
	return RPCRDMA_BACKWARD_SLOTS;
}

static void backward_put(struct rpcrdma_client *client,
			 struct rpcrdma_backward *backward)
{
	bool keep;

	rpcrdma_link_put(backward->link);
	backward->link = NULL;
	clear_bit_unlock(RPC_BC_PA_IN_USE, &backward->rqst.rq_bc_pa_state);

	spin_lock(&client->backward_lock);
	keep = client->backward_users;
	if (keep)
		list_add(&backward->list, &client->backward_idle);
	else
		client->backward_count--;
	spin_unlock(&client->backward_lock);
	if (!keep)
		backward_destroy(backward);
}

/**
 * rpcrdma_backward_free - the rpc_xprt_ops's bc_free_rqst
 * @rqst: a backward Call that is done with
 */
void rpcrdma_backward_free(struct rpc_rqst *rqst)
{
	struct rpcrdma_backward *backward =
		container_of(rqst, struct rpcrdma_backward, rqst);
	struct rpc_xprt *xprt = rqst->rq_xprt;

	backward_put(rpcrdma_client_of(xprt), backward);
	/* This may be the last reference, and the end of all of it. */
	xprt_put(xprt);
}

static struct rpcrdma_backward *backward_take(struct rpcrdma_client *client)
{
	struct rpcrdma_backward *backward;

	spin_lock(&client->backward_lock);
	backward = list_first_entry_or_null(&client->backward_idle,
					    struct rpcrdma_backward, list);
	if (backward)
		list_del(&backward->list);
	spin_unlock(&client->backward_lock);
	return backward;
}

static void backward_init(struct rpcrdma_backward *backward,
			  struct rpcrdma_link *link, const void *payload)
{
	const struct rpcrdma_message *msg = &link->reply;
	struct rpc_rqst *rqst = &backward->rqst;
	struct rpc_xprt *xprt = rqst->rq_xprt;

	memcpy(backward->call, payload, msg->payload_len);
	rpcrdma_link_get(link);
	backward->link = link;

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
 * Once bc_destroy has returned, the service may go away. No reference to the
 * transport may be dropped here: its end would wait for ->received to return.
 */
static bool backward_enqueue(struct rpcrdma_client *client,
			     struct rpcrdma_backward *backward)
{
	bool taken;

	spin_lock(&client->backward_lock);
	taken = client->backward_users &&
		rpcrdma_compat_enqueue_bc(&backward->rqst);
	spin_unlock(&client->backward_lock);
	return taken;
}

/**
 * rpcrdma_backward_received - take a backward Call
 * @link: where it arrived; @link->reply is its header
 * @recv: the message
 *
 * More Calls than there are credits are dropped, and those that nobody is
 * there to take. Chunks are refused: RFC 8167 allows a requester not to support
 * them in this direction.
 *
 * Context: ->received.
 */
void rpcrdma_backward_received(struct rpcrdma_link *link,
			       struct rpcrdma_recv *recv)
{
	struct rpcrdma_message *msg = &link->reply;
	struct rpcrdma_conn *conn = recv->conn;
	struct rpcrdma_backward *backward;

	trace_rpcrdma_call_form(conn, msg, recv->len, false);
	if (msg->proc != RPCRDMA_MSG || msg->num_segments ||
	    msg->payload_len > PAGE_SIZE) {
		rpcrdma_recv_put(recv);
		rpcrdma_backward_refuse(conn, msg, RPCRDMA_ERR_CHUNK);
		return;
	}
	backward = backward_take(link->client);
	if (!backward) {
		trace_rpcrdma_dropped_message(conn, msg->xid, recv->len);
		rpcrdma_recv_put(recv);
		return;
	}
	backward_init(backward, link, recv->data + msg->header_len);
	rpcrdma_recv_put(recv);
	if (!backward_enqueue(link->client, backward))
		backward_put(link->client, backward);
}

/**
 * rpcrdma_backward_reply - send the Reply to a backward Call
 * @link: the connection as it is now
 * @rqst: the backward Call
 *
 * A Reply whose Call came by another connection is dropped.
 *
 * Context: XPRT_LOCKED is held.
 * Return: 0, -EAGAIN or -ENOTCONN; else it cannot be sent, as it is too long for the
 * server.
 */
int rpcrdma_backward_reply(struct rpcrdma_link *link, struct rpc_rqst *rqst)
{
	struct rpcrdma_backward *backward =
		container_of(rqst, struct rpcrdma_backward, rqst);
	struct rpcrdma_message *msg = &link->call;
	struct rpcrdma_send *send;
	int ret;

	if (backward->link != link)
		return 0;
	send = rpcrdma_send_get(link->conn);
	if (!send)
		return -EAGAIN;

	rpcrdma_wire_init_call(msg, rqst->rq_xid, 1);
	rpcrdma_wire_make_reply(msg, RPCRDMA_MSG, RPCRDMA_BACKWARD_CREDITS);
	ret = rpcrdma_wire_encode(msg, send->data, send->size);
	if (ret < 0)
		goto put;
	if (ret + rqst->rq_snd_buf.len >
	    min(send->size, link->conn->agreement.call_threshold)) {
		ret = -EMSGSIZE;
		goto put;
	}
	rpcrdma_copy_octets(send->data + ret, &rqst->rq_snd_buf);
	send->len = ret + rqst->rq_snd_buf.len;
	send->work.done = rpcrdma_send_done;
	rqst->rq_xtime = ktime_get();
	trace_rpcrdma_reply_form(link->conn, msg, send->len, true);
	ret = rpcrdma_send_post(send, NULL, false);
	if (!ret)
		return 0;
put:
	rpcrdma_send_put(send);
	return ret;
}

#else /* CONFIG_SUNRPC_BACKCHANNEL */

void rpcrdma_backward_received(struct rpcrdma_link *link,
			       struct rpcrdma_recv *recv)
{
	rpcrdma_recv_put(recv);
}

int rpcrdma_backward_reply(struct rpcrdma_link *link, struct rpc_rqst *rqst)
{
	return 0;
}

#endif /* CONFIG_SUNRPC_BACKCHANNEL */
