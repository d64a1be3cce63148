// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Backward Calls leaving for the client (RFC 8167): nfsd's callback client is
 * an rpc_xprt that lives on a connection which the client has made.
 *
 * Backward Calls and Replies use no chunks: an NFSv4 callback is small.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/xprt.h>

#include "server_private.h"
#include "../trace.h"

/**
 * struct svcrdma_callback - the backward direction of a connection
 * @xprt: the rpc_xprt. First, for the core frees it.
 * @in_flight: Calls sent and not answered
 * @granted: Calls that the client lets us have in flight; one until its first
 *	Reply says more
 * @last_call: when the last one was sent, in jiffies
 *
 * The rpc_xprt's transport_lock protects the rest. The svc_xprt has a reference
 * to it until it is freed itself. There is no reference the other way: whoever
 * sends holds one to the svc_xprt.
 *
 * A Call that is never answered keeps its credit for the life of the connection,
 * also when nfsd has long given it up: only a Reply tells that the client has a
 * Receive for another (RFC 8166 section 3.3.1, which goes for both directions).
 * With the last credit the callback channel is dead. Nobody else would notice:
 * nfsd reports a fault, for which the client makes a new session, but on the same
 * connection and with this very rpc_xprt. So the connection is closed then, see
 * svcrdma_callback_is_stuck(); on the next one nfsd has the client bind a new
 * channel.
 */
struct svcrdma_callback {
	struct rpc_xprt xprt;
	unsigned int in_flight;
	unsigned int granted;
	unsigned long last_call;
};

static struct svcrdma_callback *svcrdma_callback_of(struct rpc_xprt *xprt)
{
	return container_of(xprt, struct svcrdma_callback, xprt);
}

/* Or have the core wait for svcrdma_callback_answered(). */
static bool svcrdma_callback_get_credit(struct svcrdma_callback *callback)
{
	struct rpc_xprt *xprt = &callback->xprt;
	bool got;

	spin_lock(&xprt->transport_lock);
	got = callback->in_flight < callback->granted;
	if (got) {
		callback->in_flight++;
		callback->last_call = jiffies;
	} else {
		xprt_wait_for_buffer_space(xprt);
	}
	spin_unlock(&xprt->transport_lock);
	return got;
}

/*
 * All credits are with Calls to which the client owes a Reply for long. While
 * there are messages that no thread has found time for, it may be among them.
 */
static bool svcrdma_callback_is_stuck(struct svcrdma_callback *callback)
{
	struct rpc_xprt *xprt = &callback->xprt;
	bool stuck;

	/* Without the lock: this is looked at again with the next Call. */
	if (!list_empty(&svcrdma_service_of(xprt->bc_xprt)->received))
		return false;
	spin_lock(&xprt->transport_lock);
	stuck = callback->in_flight >= callback->granted &&
		time_after(jiffies,
			   callback->last_call + RPCRDMA_STALL_TIMEOUT);
	spin_unlock(&xprt->transport_lock);
	return stuck;
}

static void svcrdma_callback_put_credit(struct svcrdma_callback *callback)
{
	struct rpc_xprt *xprt = &callback->xprt;

	spin_lock(&xprt->transport_lock);
	if (callback->in_flight)
		callback->in_flight--;
	spin_unlock(&xprt->transport_lock);
	xprt_write_space(xprt);
}

/* Any Reply returns a credit and says how many there are. */
static void svcrdma_callback_answered(struct svcrdma_callback *callback,
				      u32 granted, u32 requested)
{
	struct rpc_xprt *xprt = &callback->xprt;

	spin_lock(&xprt->transport_lock);
	callback->granted = clamp_t(u32, granted, 1, requested);
	spin_unlock(&xprt->transport_lock);
	svcrdma_callback_put_credit(callback);
}

static int svcrdma_callback_copy_reply(struct rpc_rqst *rqst,
				       const struct svcrdma_request *from)
{
	const struct rpcrdma_message *msg = &from->msg;
	struct kvec *head = &rqst->rq_private_buf.head[0];
	u32 len = msg->payload_len & ~3;

	if (msg->proc != RPCRDMA_MSG)
		return -EIO;
	memcpy(&rqst->rq_private_buf, &rqst->rq_rcv_buf,
	       sizeof(rqst->rq_private_buf));
	if (len > head->iov_len)
		return -EMSGSIZE;
	memcpy(head->iov_base, from->recv->data + msg->header_len, len);
	return len;
}

/**
 * svcrdma_callback_reply - a backward Reply, or an RDMA_ERROR in its stead
 * @request: the message; remains the caller's, but for the receive buffer
 *
 * That goes back before the credit does: the client may send the next Reply then,
 * and there has to be a Receive for it.
 */
void svcrdma_callback_reply(struct svcrdma_request *request)
{
	struct svcrdma_service *service = request->service;
	struct rpc_xprt *xprt = READ_ONCE(service->xprt.xpt_bc_xprt);
	struct rpcrdma_message *msg = &request->msg;
	struct rpc_rqst *rqst;
	int len;

	trace_rpcrdma_reply_form(service->conn, msg, request->recv->len, false);
	spin_lock(&xprt->queue_lock);
	rqst = xprt_lookup_rqst(xprt, msg->xid);
	if (rqst) {
		len = svcrdma_callback_copy_reply(rqst, request);
		if (len < 0) {
			rqst->rq_task->tk_status = -EIO;
			len = 0;
		}
		xprt_complete_rqst(rqst->rq_task, len);
	}
	spin_unlock(&xprt->queue_lock);
	if (!rqst)
		trace_rpcrdma_dropped_message(service->conn, msg->xid,
					      request->recv->len);
	svcrdma_request_put_recv(request);
	svcrdma_callback_answered(svcrdma_callback_of(xprt), msg->credits,
				  service->conn->backward_credits);
}

/**
 * svcrdma_callback_waits - whether a backward Call waits for its Reply
 * @service: the connection, which has the backward direction
 * @xid: of the Call
 *
 * sunrpc counts each XID that it does not find, so it is asked only if there are
 * Calls at all: mostly there are none.
 *
 * Context: process.
 * Return: true if one with this XID does.
 */
bool svcrdma_callback_waits(struct svcrdma_service *service, __be32 xid)
{
	struct rpc_xprt *xprt = READ_ONCE(service->xprt.xpt_bc_xprt);
	bool found = false;

	spin_lock(&xprt->queue_lock);
	if (!RB_EMPTY_ROOT(&xprt->recv_queue))
		found = xprt_lookup_rqst(xprt, xid);
	spin_unlock(&xprt->queue_lock);
	return found;
}

static int svcrdma_callback_fill_call(struct svcrdma_service *service,
				      struct rpc_rqst *rqst,
				      struct rpcrdma_message *msg,
				      struct rpcrdma_send *send)
{
	const struct xdr_buf *buf = &rqst->rq_snd_buf;
	int len;

	rpcrdma_wire_init_call(msg, rqst->rq_xid,
			       service->conn->backward_credits);
	len = rpcrdma_wire_encode(msg, send->data, send->size);
	if (len < 0)
		return len;
	if (buf->len > send->size - len)
		return -EMSGSIZE;
	send->len = len + buf->len;
	return read_bytes_from_xdr_buf(buf, 0, send->data + len, buf->len);
}

static int svcrdma_callback_post_call(struct svcrdma_service *service,
				      struct rpc_rqst *rqst,
				      struct rpcrdma_message *msg)
{
	struct rpcrdma_send *send;
	int ret;

	send = rpcrdma_send_get(service->conn);
	if (!send)
		return -EAGAIN;
	ret = svcrdma_callback_fill_call(service, rqst, msg, send);
	if (ret)
		goto out;
	send->work.done = rpcrdma_send_done;
	send->private = NULL;
	rqst->rq_xtime = ktime_get();
	trace_rpcrdma_call_form(service->conn, msg, send->len, true);
	ret = rpcrdma_send_post(send, &send->wr, false);
out:
	if (ret)
		rpcrdma_send_put(send);
	return ret;
}

static int svcrdma_callback_send_call(struct svcrdma_service *service,
				      struct rpc_rqst *rqst)
{
	struct svcrdma_request *request = svcrdma_request_get(service);
	int ret = -ENOTCONN;

	/* Only for the room it has for a header. */
	if (!request)
		return -ENOBUFS;
	if (rpcrdma_conn_enter(service->conn)) {
		ret = svcrdma_callback_post_call(service, rqst, &request->msg);
		rpcrdma_conn_leave(service->conn);
	}
	svcrdma_request_put(request);
	return ret == -EAGAIN ? -ENOBUFS : ret;
}

/*
 * rpciod calls this, with XPRT_LOCKED. Only errors that make the task try again
 * or find the connection gone are good here: it need not be this task's Call.
 */
static int svcrdma_callback_send_request(struct rpc_rqst *rqst)
{
	struct svcrdma_callback *callback = svcrdma_callback_of(rqst->rq_xprt);
	struct svc_xprt *svc_xprt = rqst->rq_xprt->bc_xprt;
	int ret;

	if (svc_xprt_is_dead(svc_xprt))
		goto out_lost;
	if (!svcrdma_callback_get_credit(callback))
		return -EAGAIN;
	ret = svcrdma_callback_send_call(svcrdma_service_of(svc_xprt), rqst);
	if (!ret) {
		rqst->rq_xmit_bytes_sent += rqst->rq_snd_buf.len;
		return 0;
	}
	svcrdma_callback_put_credit(callback);
	if (ret == -ENOBUFS)
		return ret;
	svcrdma_service_close(svcrdma_service_of(svc_xprt));
out_lost:
	/*
	 * Not only when nfsd gets round to ->close: until then the core would
	 * take it for connected and try again at once, over and over.
	 */
	xprt_disconnect_done(rqst->rq_xprt);
	return -ENOTCONN;
}

/*
 * Refuses by itself a Call that would not fit into the client's buffer. One that
 * would only wait for a credit is never tried: what nfsd sends anew for a Call
 * that timed out is seen here, and nowhere else.
 */
static int svcrdma_callback_prepare_request(struct rpc_rqst *rqst,
					    struct xdr_buf *buf)
{
	struct svc_xprt *svc_xprt = rqst->rq_xprt->bc_xprt;
	struct rpcrdma_conn *conn = svcrdma_service_of(svc_xprt)->conn;

	if (svcrdma_callback_is_stuck(svcrdma_callback_of(rqst->rq_xprt)))
		rpcrdma_conn_close(conn, -ETIMEDOUT);
	if (rqst->rq_snd_buf.len >
	    conn->agreement.reply_threshold - RPCRDMA_HEADER_MIN)
		return -EMSGSIZE;
	return 0;
}

static void svcrdma_callback_close(struct rpc_xprt *xprt)
{
	xprt_disconnect_done(xprt);
}

static void svcrdma_callback_free(struct rpc_xprt *xprt)
{
	kfree(xprt->address_strings[RPC_DISPLAY_ADDR]);
	kfree(xprt->address_strings[RPC_DISPLAY_PORT]);
	kfree(xprt->address_strings[RPC_DISPLAY_HEX_ADDR]);
	kfree(xprt->address_strings[RPC_DISPLAY_HEX_PORT]);
	xprt_free(xprt);
}

/* The svc_xprt may be gone. */
static void svcrdma_callback_destroy(struct rpc_xprt *xprt)
{
	svcrdma_callback_free(xprt);
	module_put(THIS_MODULE);
}

static void svcrdma_callback_print_stats(struct rpc_xprt *xprt,
					 struct seq_file *seq)
{
	seq_printf(seq, "\txprt:\trdma-bc %lu %lu %lu %llu %llu\n",
		   xprt->stat.sends, xprt->stat.recvs, xprt->stat.bad_xids,
		   xprt->stat.req_u, xprt->stat.bklog_u);
}

static int svcrdma_callback_enable_swap(struct rpc_xprt *xprt)
{
	return -EINVAL;
}

static void svcrdma_callback_disable_swap(struct rpc_xprt *xprt)
{
}

static void svcrdma_callback_inject_disconnect(struct rpc_xprt *xprt)
{
	svcrdma_service_close(svcrdma_service_of(xprt->bc_xprt));
}

static const struct rpc_xprt_ops svcrdma_callback_ops = {
	.reserve_xprt		= xprt_reserve_xprt,
	.release_xprt		= xprt_release_xprt,
	.alloc_slot		= xprt_alloc_slot,
	.free_slot		= xprt_free_slot,
	.buf_alloc		= rpc_malloc,
	.buf_free		= rpc_free,
	.prepare_request	= svcrdma_callback_prepare_request,
	.send_request		= svcrdma_callback_send_request,
	.wait_for_reply_request	= xprt_wait_for_reply_request_def,
	.close			= svcrdma_callback_close,
	.destroy		= svcrdma_callback_destroy,
	.print_stats		= svcrdma_callback_print_stats,
	.enable_swap		= svcrdma_callback_enable_swap,
	.disable_swap		= svcrdma_callback_disable_swap,
	.inject_disconnect	= svcrdma_callback_inject_disconnect,
};

static const struct rpc_timeout svcrdma_callback_timeout = {
	.to_initval = 60 * HZ,
	.to_maxval = 60 * HZ,
};

static struct rpc_xprt *svcrdma_callback_setup(struct xprt_create *args);

static struct xprt_class svcrdma_callback_class = {
	.list	= LIST_HEAD_INIT(svcrdma_callback_class.list),
	.name	= "rdma backchannel",
	.owner	= THIS_MODULE,
	.ident	= XPRT_TRANSPORT_BC_RDMA,
	.setup	= svcrdma_callback_setup,
	.netid	= { "" },
};

static char *svcrdma_callback_hex_address(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET6)
		return kasprintf(GFP_KERNEL, "%pi6",
				 &((struct sockaddr_in6 *)addr)->sin6_addr);
	return kasprintf(GFP_KERNEL, "%08x",
			 ntohl(((struct sockaddr_in *)addr)->sin_addr.s_addr));
}

/* What traces, sysfs and debugfs show */
static int svcrdma_callback_format_address(struct rpc_xprt *xprt,
					   const struct sockaddr *addr)
{
	const char **strings = xprt->address_strings;
	bool v6 = addr->sa_family == AF_INET6;
	char buf[INET6_ADDRSTRLEN + 16];

	rpc_ntop(addr, buf, sizeof(buf));
	strings[RPC_DISPLAY_PROTO] = "rdma";
	strings[RPC_DISPLAY_NETID] = v6 ? "rdma6" : "rdma";
	strings[RPC_DISPLAY_ADDR] = kstrdup(buf, GFP_KERNEL);
	strings[RPC_DISPLAY_PORT] = kasprintf(GFP_KERNEL, "%u",
					      rpc_get_port(addr));
	strings[RPC_DISPLAY_HEX_ADDR] = svcrdma_callback_hex_address(addr);
	strings[RPC_DISPLAY_HEX_PORT] = kasprintf(GFP_KERNEL, "%4hx",
						  rpc_get_port(addr));
	if (strings[RPC_DISPLAY_ADDR] && strings[RPC_DISPLAY_PORT] &&
	    strings[RPC_DISPLAY_HEX_ADDR] && strings[RPC_DISPLAY_HEX_PORT])
		return 0;
	return -ENOMEM;
}

static struct svcrdma_callback *svcrdma_callback_alloc(struct xprt_create *args)
{
	struct rpcrdma_conn *conn = svcrdma_service_of(args->bc_xprt)->conn;
	unsigned int credits = conn->backward_credits;
	struct svcrdma_callback *callback;
	struct rpc_xprt *xprt;

	xprt = xprt_alloc(args->net, sizeof(*callback), credits, credits);
	if (!xprt)
		return NULL;
	memcpy(&xprt->addr, args->dstaddr, args->addrlen);
	xprt->addrlen = args->addrlen;
	xprt->xprt_class = &svcrdma_callback_class;
	xprt->ops = &svcrdma_callback_ops;
	xprt->prot = XPRT_TRANSPORT_BC_RDMA;
	xprt->timeout = &svcrdma_callback_timeout;
	xprt->max_payload = conn->agreement.reply_threshold;
	xprt->bc_xprt = args->bc_xprt;
	xprt_set_bound(xprt);
	/* It exists as long as the connection does, and never makes one. */
	xprt_set_connected(xprt);

	callback = svcrdma_callback_of(xprt);
	callback->granted = 1;
	return callback;
}

/* A connection has one. It stays with it, should nfsd want it again. */
static bool svcrdma_callback_attach(struct svc_xprt *svc_xprt,
				    struct rpc_xprt *xprt)
{
	bool first;

	spin_lock(&svc_xprt->xpt_lock);
	first = !svc_xprt->xpt_bc_xprt;
	if (first) {
		/* Its content before its address: readers depend on that. */
		smp_store_release(&svc_xprt->xpt_bc_xprt, xprt_get(xprt));
	}
	spin_unlock(&svc_xprt->xpt_lock);
	return first;
}

static struct rpc_xprt *svcrdma_callback_setup(struct xprt_create *args)
{
	struct svcrdma_callback *callback;
	struct rpcrdma_conn *conn;
	int ret = -ENOMEM;

	if (args->addrlen > sizeof(callback->xprt.addr))
		return ERR_PTR(-EBADF);
	if (args->dstaddr->sa_family != AF_INET &&
	    args->dstaddr->sa_family != AF_INET6)
		return ERR_PTR(-EAFNOSUPPORT);

	callback = svcrdma_callback_alloc(args);
	if (!callback)
		return ERR_PTR(-ENOMEM);
	if (svcrdma_callback_format_address(&callback->xprt, args->dstaddr))
		goto out;
	/* Nobody can answer a Call before there is one. */
	conn = svcrdma_service_of(args->bc_xprt)->conn;
	ret = rpcrdma_recv_expect(conn, 0, conn->backward_credits);
	if (ret)
		goto out;
	/* In use through this very svc_xprt, so it cannot be on its way out. */
	__module_get(THIS_MODULE);
	if (svcrdma_callback_attach(args->bc_xprt, &callback->xprt))
		return &callback->xprt;
	module_put(THIS_MODULE);
	ret = -EBUSY;
out:
	svcrdma_callback_free(&callback->xprt);
	return ERR_PTR(ret);
}

/**
 * svcrdma_callback_init - have nfsd find the backward direction
 *
 * Return: 0 or a negative errno.
 */
int svcrdma_callback_init(void)
{
	return xprt_register_transport(&svcrdma_callback_class);
}

/**
 * svcrdma_callback_exit - undo svcrdma_callback_init()
 */
void svcrdma_callback_exit(void)
{
	xprt_unregister_transport(&svcrdma_callback_class);
}
