// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Backward Calls to the client (RFC 8167). nfsd's callback client is an rpc_xprt
 * that uses a connection which the client has made.
 *
 * Backward Calls and Replies use no chunks, because NFSv4 callbacks are small.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/clnt.h>

#include "server_private.h"
#include "../trace.h"

static struct svcrdma_callback *callback_of(struct rpc_xprt *xprt)
{
	return container_of(xprt, struct svcrdma_callback, xprt);
}

/* Return: false if the core has to wait for callback_put_credit(). */
static bool callback_get_credit(struct svcrdma_callback *callback)
{
	struct rpc_xprt *xprt = &callback->xprt;
	bool got;

	spin_lock(&xprt->transport_lock);
	got = xprt->cong < xprt->cwnd;
	if (got) {
		xprt->cong += RPC_CWNDSCALE;
		callback->last_call = jiffies;
	} else {
		xprt_wait_for_buffer_space(xprt);
	}
	spin_unlock(&xprt->transport_lock);
	return got;
}

static void callback_put_credit(struct rpc_xprt *xprt)
{
	spin_lock(&xprt->transport_lock);
	if (xprt->cong)
		xprt->cong -= RPC_CWNDSCALE;
	spin_unlock(&xprt->transport_lock);
	xprt_write_space(xprt);
}

/*
 * Note what a Reply grants. There are Receives for two Replies, so that one Call without one does
 * not stop all, and for more only if Calls wait; without memory for them the limit stays.
 */
static void callback_granted(struct rpc_xprt *xprt, struct rpcrdma_conn *conn, u32 granted)
{
	u32 needed;

	granted = clamp(granted, 1U, conn->backward_credits);
	needed = test_bit(XPRT_WRITE_SPACE, &xprt->state) ? granted : min(granted, 2U);
	if (needed > READ_ONCE(conn->recv_backward))
		rpcrdma_recv_expect(conn, 0, needed);
	spin_lock(&xprt->transport_lock);
	xprt->cwnd = RPC_CWNDSCALE * min(granted, READ_ONCE(conn->recv_backward));
	spin_unlock(&xprt->transport_lock);
}

/*
 * Copy a Reply. A message that cannot be used becomes a Reply that sunrpc takes as final:
 * without one it would repeat the Call, and an error as the task's status is lost if the task
 * does not sleep yet. There is room for any Reply that denies the Call.
 *
 * Return: length of the Reply in octets.
 */
static int callback_copy_reply_locked(struct rpc_rqst *rqst, const struct svcrdma_request *from)
{
	const __be32 denial[] = { rqst->rq_xid, rpc_reply, cpu_to_be32(RPC_MSG_DENIED),
				  cpu_to_be32(RPC_MISMATCH) };
	const struct kvec *head = &rqst->rq_rcv_buf.head[0];
	const struct rpcrdma_message *msg = &from->msg;

	lockdep_assert_held(&rqst->rq_xprt->queue_lock);
	if (msg->proc == RPCRDMA_MSG && msg->payload_len <= head->iov_len) {
		memcpy(head->iov_base, from->recv->data + msg->header_len, msg->payload_len);
		return msg->payload_len;
	}
	memcpy(head->iov_base, denial, sizeof(denial));
	return sizeof(denial);
}

/**
 * svcrdma_callback_reply - process a backward Reply, or an RDMA_ERROR instead
 * @request: a request with the message; the caller puts it afterwards
 *
 * The receive buffer is given back before the credit. Then there is a Receive for
 * the next Reply when the next Call is sent. A Reply of another version than its Call
 * is accepted: a credit that is not given back would close the connection in the end.
 *
 * Context: a thread of the RPC server. The connection has a callback client.
 */
void svcrdma_callback_reply(struct svcrdma_request *request)
{
	struct svcrdma_service *service = request->service;
	struct rpc_xprt *xprt = READ_ONCE(service->xprt.xpt_bc_xprt);
	struct rpcrdma_message *msg = &request->msg;
	struct rpc_rqst *rqst;

	trace_rpcrdma_reply_form(service->conn, msg, request->recv->len, false);
	spin_lock(&xprt->queue_lock);
	rqst = xprt_lookup_rqst(xprt, msg->xid);
	if (rqst)
		xprt_complete_rqst(rqst->rq_task, callback_copy_reply_locked(rqst, request));
	spin_unlock(&xprt->queue_lock);
	if (!rqst) {
		trace_rpcrdma_bad_message(service->conn, msg, request->recv->len);
		request->tally.error = RPCRDMA_A_ERRORS_UNMATCHED;
	}
	svcrdma_request_put_recv(request);
	if (rpcrdma_wire_grants(msg))
		callback_granted(xprt, service->conn, msg->credits);
	callback_put_credit(xprt);
}

/*
 * Whether a backward Call with this XID waits for its Reply. sunrpc counts an XID that it does
 * not find as an error, so it is asked only if backward Calls wait, which is rare.
 */
bool svcrdma_callback_waits(struct svcrdma_service *service, __be32 xid)
{
	struct rpc_xprt *xprt = READ_ONCE(service->xprt.xpt_bc_xprt);
	bool found;

	spin_lock(&xprt->queue_lock);
	found = !RB_EMPTY_ROOT(&xprt->recv_queue) && xprt_lookup_rqst(xprt, xid);
	spin_unlock(&xprt->queue_lock);
	return found;
}

/**
 * svcrdma_callback_fill_call - write a backward Call into a Send
 * @service: the service of the connection, which has had a forward Call
 * @rqst: the Call
 * @msg: memory for the transport header
 * @send: filled in
 *
 * The Call has the version of the last forward Call, which the client knows.
 *
 * Return: 0, or -EMSGSIZE if the Call is longer than the threshold.
 */
int svcrdma_callback_fill_call(const struct svcrdma_service *service, const struct rpc_rqst *rqst,
			       struct rpcrdma_message *msg, struct rpcrdma_send *send)
{
	const struct xdr_buf *buf = &rqst->rq_snd_buf;
	u32 version = READ_ONCE(service->version);

	rpcrdma_wire_init_call(msg, version, rqst->rq_xid, service->conn->backward_credits);
	return rpcrdma_send_header(send, msg) ?:
	       rpcrdma_send_copy(send, buf, 0, buf->len,
				 svcrdma_service_threshold(service, version));
}

static int callback_send_call(struct svcrdma_service *service, struct rpc_rqst *rqst)
{
	struct svcrdma_request *request = svcrdma_request_get(service);
	struct rpcrdma_conn *conn = service->conn;
	struct rpcrdma_send *send;
	int ret = -ENOTCONN;

	/* Only its header and its tally are used. */
	if (!request)
		return -ENOBUFS;
	if (!rpcrdma_conn_enter(conn))
		goto out;
	send = rpcrdma_send_get(conn);
	ret = send ? svcrdma_callback_fill_call(service, rqst, &request->msg, send) : -ENOBUFS;
	if (!ret) {
		rqst->rq_xtime = ktime_get();
		trace_rpcrdma_call_form(conn, &request->msg, send->len, true);
		ret = rpcrdma_send_post(send, NULL, 0, NULL);
	}
	if (!ret) {
		request->tally.sent = RPCRDMA_A_TRAFFIC_BACKWARD;
		request->tally.sent_inline = rqst->rq_snd_buf.len;
		request->tally.sent_copied = rqst->rq_snd_buf.len;
	} else if (send) {
		rpcrdma_send_put(send);
	}
	rpcrdma_conn_leave(conn);
out:
	svcrdma_request_put(request);
	return ret == -EAGAIN ? -ENOBUFS : ret;
}

/*
 * Called in rpciod, with XPRT_LOCKED. The Call may belong to another task than the one that
 * runs. So the only errors are those that make a task try again, or see that the connection is
 * gone.
 */
static int callback_send_request(struct rpc_rqst *rqst)
{
	struct svcrdma_callback *callback = callback_of(rqst->rq_xprt);
	struct svc_xprt *svc_xprt = rqst->rq_xprt->bc_xprt;
	int ret;

	if (svc_xprt_is_dead(svc_xprt))
		goto out_lost;
	if (!callback_get_credit(callback)) {
		/* ->close may have woken those that wait for credits before this task does. */
		if (svc_xprt_is_dead(svc_xprt))
			goto out_lost;
		return -EAGAIN;
	}
	ret = callback_send_call(svcrdma_service_of(svc_xprt), rqst);
	if (!ret) {
		rqst->rq_xmit_bytes_sent += rqst->rq_snd_buf.len;
		return 0;
	}
	callback_put_credit(rqst->rq_xprt);
	if (ret == -ENOBUFS)
		return ret;
	svcrdma_service_close(svcrdma_service_of(svc_xprt));
out_lost:
	/*
	 * nfsd calls ->close later. Until then the core would take the transport
	 * for connected and try again at once, without end.
	 */
	xprt_disconnect_done(rqst->rq_xprt);
	return -ENOTCONN;
}

/*
 * Refuse a Call that does not fit into the client's buffer.
 *
 * Close a connection that has had no credit left for RPCRDMA_STALL_TIMEOUT, because Calls have no
 * Reply. ->send_request cannot do this: when nfsd repeats a Call that timed out, and no credit is
 * left, only this function is called.
 */
static int callback_prepare_request(struct rpc_rqst *rqst, struct xdr_buf *buf)
{
	struct rpc_xprt *xprt = rqst->rq_xprt;
	struct svcrdma_service *service = svcrdma_service_of(xprt->bc_xprt);
	u32 version = READ_ONCE(service->version);
	bool stalled;

	spin_lock(&xprt->transport_lock);
	/* A message that waits for a thread may be a Reply. */
	stalled = xprt->cong >= xprt->cwnd && list_empty(&service->received) &&
		  time_after(jiffies, callback_of(xprt)->last_call + RPCRDMA_STALL_TIMEOUT);
	spin_unlock(&xprt->transport_lock);
	if (stalled)
		rpcrdma_conn_close(service->conn, -ETIMEDOUT);
	if (rqst->rq_snd_buf.len > svcrdma_service_threshold(service, version) -
				   rpcrdma_wire_header_min(version))
		return -EMSGSIZE;
	return 0;
}

/* As rpc_malloc(), which not all kernels export. sunrpc tries again later if this fails. */
static int callback_buf_alloc(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;

	rqst->rq_buffer = kmalloc(rqst->rq_callsize + rqst->rq_rcvsize, rpc_task_gfp_mask());
	if (!rqst->rq_buffer)
		return -ENOMEM;
	rqst->rq_rbuffer = rqst->rq_buffer + rqst->rq_callsize;
	return 0;
}

static void callback_buf_free(struct rpc_task *task)
{
	kfree(task->tk_rqstp->rq_buffer);
}

static void callback_free(struct rpc_xprt *xprt)
{
	kfree(xprt->address_strings[RPC_DISPLAY_ADDR]);
	xprt_free(xprt);
}

static void callback_destroy(struct rpc_xprt *xprt)
{
	svcrdma_service_put(svcrdma_service_of(xprt->bc_xprt));
	callback_free(xprt);
	module_put(THIS_MODULE);
}

static unsigned short callback_get_srcport(struct rpc_xprt *xprt)
{
	return rpc_get_port((struct sockaddr *)&xprt->bc_xprt->xpt_local);
}

static void callback_inject_disconnect(struct rpc_xprt *xprt)
{
	svcrdma_service_close(svcrdma_service_of(xprt->bc_xprt));
}

static const struct rpc_xprt_ops svcrdma_callback_ops = {
	.reserve_xprt		= xprt_reserve_xprt,
	.release_xprt		= xprt_release_xprt,
	.alloc_slot		= xprt_alloc_slot,
	.free_slot		= xprt_free_slot,
	.buf_alloc		= callback_buf_alloc,
	.buf_free		= callback_buf_free,
	.prepare_request	= callback_prepare_request,
	.send_request		= callback_send_request,
	.wait_for_reply_request	= xprt_wait_for_reply_request_def,
	.get_srcport		= callback_get_srcport,
	.close			= xprt_disconnect_done,
	.destroy		= callback_destroy,
	.inject_disconnect	= callback_inject_disconnect,
};

static const struct rpc_timeout svcrdma_callback_timeout = {
	.to_initval = 60 * HZ,
	.to_maxval = 60 * HZ,
};

struct xprt_class svcrdma_callback_class = {
	.list	= LIST_HEAD_INIT(svcrdma_callback_class.list),
	.name	= "rdma backchannel",
	.owner	= THIS_MODULE,
	.ident	= XPRT_TRANSPORT_BC_RDMA,
	.setup	= svcrdma_callback_setup,
	.netid	= { "" },
};

static struct svcrdma_callback *callback_alloc(struct xprt_create *args)
{
	struct svcrdma_service *service = svcrdma_service_of(args->bc_xprt);
	unsigned int credits = service->conn->backward_credits;
	struct rpc_xprt *xprt;

	xprt = xprt_alloc(args->net, sizeof(struct svcrdma_callback), credits, credits);
	if (!xprt)
		return NULL;
	memcpy(&xprt->addr, args->dstaddr, args->addrlen);
	xprt->addrlen = args->addrlen;
	xprt->xprt_class = &svcrdma_callback_class;
	xprt->ops = &svcrdma_callback_ops;
	xprt->prot = XPRT_TRANSPORT_BC_RDMA;
	xprt->timeout = &svcrdma_callback_timeout;
	xprt->max_payload = rpcrdma_conn_reply_threshold(service->conn,
							 READ_ONCE(service->version));
	xprt->bc_xprt = args->bc_xprt;
	xprt->cwnd = RPC_CWNDSCALE;
	xprt_set_bound(xprt);
	/* The connection exists already; this transport never makes one. */
	xprt_set_connected(xprt);
	return callback_of(xprt);
}

/**
 * svcrdma_callback_setup - ->setup: make the callback client of a connection
 * @args: the svc_xprt and the client's address
 *
 * Return: the transport, or an ERR_PTR: -EBUSY if the connection has one already, which stays
 * if nfsd needs it again.
 */
struct rpc_xprt *svcrdma_callback_setup(struct xprt_create *args)
{
	struct svcrdma_service *service = svcrdma_service_of(args->bc_xprt);
	struct svcrdma_callback *callback;
	int ret;

	callback = callback_alloc(args);
	if (!callback)
		return ERR_PTR(-ENOMEM);
	ret = rpcrdma_address_describe(&callback->xprt, &callback->strings);
	/* The Receive for the first Reply has to exist before the first Call, which goes alone. */
	if (!ret)
		ret = rpcrdma_recv_expect(service->conn, 0, 1);
	if (ret)
		goto out;

	spin_lock(&args->bc_xprt->xpt_lock);
	if (args->bc_xprt->xpt_bc_xprt) {
		ret = -EBUSY;
	} else {
		refcount_inc(&service->users);
		/* The svc_xprt holds a reference to the module, so this cannot fail. */
		__module_get(THIS_MODULE);
		/* Pairs with rpc_create(), which reads it: the callback client is initialised. */
		smp_store_release(&args->bc_xprt->xpt_bc_xprt, xprt_get(&callback->xprt));
	}
	spin_unlock(&args->bc_xprt->xpt_lock);
	if (!ret)
		return &callback->xprt;
out:
	callback_free(&callback->xprt);
	return ERR_PTR(ret);
}
