// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The transport class for the netids "rdma" and "rdma6": how its transports are made and
 * destroyed, and their smaller operations.
 */
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sysctl.h>

#include "client_private.h"
#include "../main.h"

#define XPRT_RDMA_CONNECT_TIMEOUT	(30 * HZ)
#define XPRT_RDMA_MAX_RECONNECT_DELAY	(30 * HZ)
#define XPRT_RDMA_IDLE_TIMEOUT		(5 * 60 * HZ)
#define XPRT_RDMA_BIND_TIMEOUT		(60 * HZ)

/* The least time that a server has for its first Reply, whatever the mount's time-out */
#define XPRT_RDMA_FIRST_REPLY_TIMEOUT	(2UL * HZ)

static const struct rpc_timeout xprt_rdma_client_timeout = {
	.to_initval	= 60 * HZ,
	.to_maxval	= 60 * HZ,
	.to_retries	= 2,
};

/* Addresses */

static void client_set_port(struct rpc_xprt *xprt, unsigned short port)
{
	rpc_set_port((struct sockaddr *)&xprt->addr, port);
	rpcrdma_address_describe_port(xprt, &xprt_rdma_client_of(xprt)->strings);
}

static void client_local(struct rpc_xprt *xprt, struct sockaddr_storage *local)
{
	spin_lock(&xprt->transport_lock);
	*local = xprt_rdma_client_of(xprt)->local;
	spin_unlock(&xprt->transport_lock);
}

static int client_get_srcaddr(struct rpc_xprt *xprt, char *buf, size_t buflen)
{
	struct sockaddr_storage local;

	client_local(xprt, &local);
	if (local.ss_family == AF_UNSPEC)
		return -ENOTCONN;
	return rpc_ntop((struct sockaddr *)&local, buf, buflen);
}

static unsigned short client_get_srcport(struct rpc_xprt *xprt)
{
	struct sockaddr_storage local;

	client_local(xprt, &local);
	return rpc_get_port((struct sockaddr *)&local);
}

/*
 * Whether a Call whose time-out is over needs another connection.
 *
 * The server may still answer it, so the Call must not be sent again on the same connection:
 * both would offer the same memory. Tasks with RPC_TASK_NO_RETRANS_TIMEOUT, as NFSv4 has, are
 * not sent again by sunrpc while the connection lasts. For these it stays, except if
 *
 * - the Reply may have been discarded;
 * - the Reply has been processed: RPCSEC_GSS waits for another one if it cannot verify
 *   the first;
 * - the Call is overdue: the server may have dropped it.
 */
static bool client_needs_another_locked(struct xprt_rdma_client *client, struct rpc_task *task)
{
	struct xprt_rdma_request *request = xprt_rdma_request_of(task->tk_rqstp);
	const struct xprt_rdma_endpoint *ep = READ_ONCE(request->ep);
	unsigned long minor;

	lockdep_assert_held(&client->xprt.queue_lock);

	/* There may already be another connection. */
	if (request->rqst.rq_connect_cookie != READ_ONCE(client->xprt.connect_cookie))
		return false;
	if (!(task->tk_flags & RPC_TASK_NO_RETRANS_TIMEOUT) || !ep || READ_ONCE(client->reply_lost))
		return true;
	minor = max(task->tk_client->cl_timeout->to_initval, XPRT_RDMA_FIRST_REPLY_TIMEOUT);
	return xprt_rdma_credits_overdue(&ep->credits, jiffies - request->sent, minor,
					 time_after_eq(jiffies, request->rqst.rq_majortimeo));
}

/*
 * sunrpc calls this when a time-out of a task is over. The Reply may have arrived since
 * sunrpc looked for it.
 *
 * The connection to close is the one that the Call was sent on, even if there is another
 * by now. With NFSv4 it is closed only when the task waits again: sunrpc would fail a
 * soft RPC that finds it closed before that.
 */
static void client_timer(struct rpc_xprt *xprt, struct rpc_task *task)
{
	struct xprt_rdma_request *request = xprt_rdma_request_of(task->tk_rqstp);
	bool another = false;

	spin_lock(&xprt->queue_lock);
	if (request->rqst.rq_reply_bytes_recvd)
		task->tk_status = 0;
	else
		another = client_needs_another_locked(xprt_rdma_client_of(xprt), task);
	if (another && request->ep) {
		if (task->tk_flags & RPC_TASK_NO_RETRANS_TIMEOUT)
			request->close_on_wait = true;
		else
			rpcrdma_conn_close(request->ep->conn, -ETIMEDOUT);
		another = false;
	}
	spin_unlock(&xprt->queue_lock);
	if (another)
		xprt_force_disconnect(xprt);
}

/*
 * sunrpc does not restart the major time-out of a Call that it sends again. Once that is over,
 * the timer would close this connection before the server can answer, and each later one as
 * well. So it is restarted, except with NFSv4, where a time-out alone closes no connection. It is
 * restarted here, not when the Call is sent: another task may send it, but only the task itself
 * may change its time-outs.
 */
static void client_wait_for_reply(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;
	struct xprt_rdma_request *request = xprt_rdma_request_of(rqst);

	lockdep_assert_held(&rqst->rq_xprt->queue_lock);

	if (!(task->tk_flags & RPC_TASK_NO_RETRANS_TIMEOUT) &&
	    time_after_eq(jiffies, rqst->rq_majortimeo))
		rqst->rq_majortimeo = jiffies + rqst->rq_timeout;
	xprt_wait_for_reply_request_def(task);
	if (request->close_on_wait && request->ep)
		rpcrdma_conn_close(request->ep->conn, -ETIMEDOUT);
	request->close_on_wait = false;
}

static void client_set_connect_timeout(struct rpc_xprt *xprt, unsigned long connect_timeout,
				       unsigned long reconnect_timeout)
{
	spin_lock(&xprt->transport_lock);
	reconnect_timeout = max_t(unsigned long, reconnect_timeout, HZ);
	if (reconnect_timeout < xprt->max_reconnect_timeout)
		xprt->max_reconnect_timeout = reconnect_timeout;
	connect_timeout = max_t(unsigned long, connect_timeout, HZ);
	if (connect_timeout < xprt->connect_timeout)
		xprt->connect_timeout = connect_timeout;
	spin_unlock(&xprt->transport_lock);
}

static int client_enable_swap(struct rpc_xprt *xprt)
{
	atomic_inc(&xprt->swapper);
	return 0;
}

static void client_disable_swap(struct rpc_xprt *xprt)
{
	/* sunrpc asks it of a transport as well that was added after swapon. */
	atomic_dec_if_positive(&xprt->swapper);
}

/*
 * mountstats takes 27 integers by their place in the line. Those that mean nothing here
 * are zero: the local port, allocations while sending, and orphaned registrations. The
 * 28th is the version of the connection: zero while there is none.
 */
static void client_print_stats(struct rpc_xprt *xprt, struct seq_file *seq)
{
	const struct xprt_rdma_client *client = xprt_rdma_client_of(xprt);
	const struct xprt_rdma_client_stats *stats = &client->stats;
	long idle = 0;

	if (xprt_connected(xprt))
		idle = (long)(jiffies - xprt->last_used) / HZ;

	seq_printf(seq, "\txprt:\trdma %u %lu %lu %lu %ld %lu %lu %lu %llu %llu ",
		   0, xprt->stat.bind_count, xprt->stat.connect_count, xprt->stat.connect_time / HZ,
		   idle, xprt->stat.sends, xprt->stat.recvs, xprt->stat.bad_xids, xprt->stat.req_u,
		   xprt->stat.bklog_u);
	seq_printf(seq, "%lu %lu %lu %llu %llu %llu %llu %lu %lu %lu %lu ",
		   stats->read_segments, stats->write_segments, stats->reply_segments,
		   stats->registered, stats->placed, stats->pullup, stats->fixup, 0UL,
		   stats->failed, stats->bad_replies, stats->long_calls);
	seq_printf(seq, "%lu %lu %lu %lu %lu %lu %u\n",
		   stats->recovered, 0UL, READ_ONCE(stats->mrs_made), stats->invalidations,
		   stats->no_send, stats->waits_for_send, READ_ONCE(client->version));
}

static void client_free(struct xprt_rdma_client *client)
{
	xprt_rdma_slots_destroy(client);
	kfree(client->xprt.address_strings[RPC_DISPLAY_ADDR]);
	xprt_free(&client->xprt);
	module_put(THIS_MODULE);
}

static void client_destroy(struct rpc_xprt *xprt)
{
	struct xprt_rdma_client *client = xprt_rdma_client_of(xprt);

	cancel_delayed_work_sync(&client->connect_work);
	xprt_rdma_ep_close(xprt);
	client_free(client);
}

/* Not static for the unit tests */
const struct rpc_xprt_ops xprt_rdma_client_ops = {
	.reserve_xprt		= xprt_reserve_xprt,
	.release_xprt		= xprt_release_xprt,
	.alloc_slot		= xprt_rdma_slot_alloc,
	.free_slot		= xprt_rdma_slot_free,
	.rpcbind		= rpcb_getport_async,
	.set_port		= client_set_port,
	.connect		= xprt_rdma_ep_connect,
	.get_srcaddr		= client_get_srcaddr,
	.get_srcport		= client_get_srcport,
	.buf_alloc		= xprt_rdma_buffers_alloc,
	.buf_free		= xprt_rdma_buffers_free,
	.prepare_request	= xprt_rdma_request_prepare,
	.send_request		= xprt_rdma_call_send,
	.wait_for_reply_request	= client_wait_for_reply,
	.timer			= client_timer,
	.close			= xprt_rdma_ep_close,
	.destroy		= client_destroy,
	.set_connect_timeout	= client_set_connect_timeout,
	.print_stats		= client_print_stats,
	.enable_swap		= client_enable_swap,
	.disable_swap		= client_disable_swap,
	.inject_disconnect	= xprt_force_disconnect,
#ifdef CONFIG_SUNRPC_BACKCHANNEL
	.bc_setup		= xprt_rdma_backward_setup,
	.bc_maxpayload		= xprt_rdma_backward_maxpayload,
	.bc_num_slots		= xprt_rdma_backward_slots,
	.bc_free_rqst		= xprt_rdma_backward_free,
	.bc_destroy		= xprt_rdma_backward_destroy,
#endif
};

static struct xprt_class xprt_rdma_client_class;
static struct ctl_table_header *xprt_rdma_sysctls;

static int client_set_addresses(struct xprt_rdma_client *client, const struct xprt_create *args)
{
	struct rpc_xprt *xprt = &client->xprt;

	memcpy(&xprt->addr, args->dstaddr, args->addrlen);
	xprt->addrlen = args->addrlen;
	if (args->srcaddr)
		memcpy(&client->source, args->srcaddr, args->addrlen);
	if (rpc_get_port(args->dstaddr))
		xprt_set_bound(xprt);
	return rpcrdma_address_describe(xprt, &client->strings);
}

static void client_init(struct xprt_rdma_client *client, const struct xprt_create *args)
{
	struct rpc_xprt *xprt = &client->xprt;

	xprt->ops = &xprt_rdma_client_ops;
	xprt->xprt_class = &xprt_rdma_client_class;
	/* How rpcbind is asked, and what the callback service is told */
	xprt->prot = IPPROTO_TCP;
	xprt->timeout = &xprt_rdma_client_timeout;
	xprt->max_payload = XPRT_RDMA_MAX_PAYLOAD;
	xprt->bind_timeout = XPRT_RDMA_BIND_TIMEOUT;
	xprt->connect_timeout = XPRT_RDMA_CONNECT_TIMEOUT;
	xprt->max_reconnect_timeout = XPRT_RDMA_MAX_RECONNECT_DELAY;
	xprt->idle_timeout = XPRT_RDMA_IDLE_TIMEOUT;

	/* Only NFSv4.1 and later set this flag. */
	client->wants_backward = args->flags & XPRT_CREATE_INFINITE_SLOTS;
	client->backward_payload = RPCRDMA_INLINE_MIN -
				   rpcrdma_wire_header_min(RPCRDMA_VERSION_ONE);
	spin_lock_init(&client->backward_lock);
	INIT_LIST_HEAD(&client->backward_idle);
	INIT_DELAYED_WORK(&client->connect_work, xprt_rdma_ep_connect_worker);
	client->connect_at = jiffies;
}

static struct rpc_xprt *client_setup(struct xprt_create *args)
{
	struct xprt_rdma_client *client;
	struct rpc_xprt *xprt;
	int ret;

	if (args->addrlen > sizeof(xprt->addr))
		return ERR_PTR(-EBADF);
	if (args->dstaddr->sa_family != AF_INET && args->dstaddr->sa_family != AF_INET6)
		return ERR_PTR(-EAFNOSUPPORT);

	xprt = xprt_alloc(args->net, sizeof(*client), 0, 0);
	if (!xprt)
		return ERR_PTR(-ENOMEM);
	/* sunrpc's own reference to the module lasts only until this function returns. */
	__module_get(THIS_MODULE);

	client = xprt_rdma_client_of(xprt);
	client_init(client, args);
	ret = xprt_rdma_slots_create(client);
	if (!ret)
		ret = client_set_addresses(client, args);
	if (ret) {
		client_free(client);
		return ERR_PTR(ret);
	}
	return xprt;
}

static struct xprt_class xprt_rdma_client_class = {
	.list	= LIST_HEAD_INIT(xprt_rdma_client_class.list),
	.name	= "rdma",
	.owner	= THIS_MODULE,
	.ident	= XPRT_TRANSPORT_RDMA,
	.setup	= client_setup,
	.netid	= { "rdma", "rdma6", "" },
};

int xprt_rdma_init(void)
{
	int ret;

	/* Memory reclaim writes out dirty pages, and that may need a new connection. */
	xprt_rdma_connect_wq = alloc_workqueue("rpcrdma_connect", WQ_UNBOUND | WQ_MEM_RECLAIM,
					       WQ_UNBOUND_MAX_ACTIVE);
	if (!xprt_rdma_connect_wq)
		return -ENOMEM;
	ret = xprt_register_transport(&xprt_rdma_client_class);
	if (ret) {
		destroy_workqueue(xprt_rdma_connect_wq);
		return ret;
	}
	xprt_rdma_sysctls = xprt_rdma_sysctl_register();
	return 0;
}

/* No transport is left: each holds a reference to the module. */
void xprt_rdma_exit(void)
{
	unregister_sysctl_table(xprt_rdma_sysctls);
	xprt_unregister_transport(&xprt_rdma_client_class);
	destroy_workqueue(xprt_rdma_connect_wq);
}
