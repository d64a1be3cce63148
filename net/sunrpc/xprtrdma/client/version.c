// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which version of RPC-over-RDMA a connection uses (draft 6). The rest of client/ has what depends
 * on the version from here and from wire/.
 *
 * Where version 2 is allowed, the first message on a connection is a NULL in version 2, sent
 * before sunrpc may send anything. A Reply settles version 2. Any error settles version 1, whatever
 * versions it names: the server has no version 2, or has it from a later draft, which uses the same
 * number for other messages. Without an answer the connection is closed. Where only version 1 is
 * allowed, nothing is asked.
 */
#define pr_fmt(fmt) "rpcrdma: " fmt

#include <linux/random.h>
#include <linux/sunrpc/msg_prot.h>

#include "client_private.h"
#include "../trace.h"

/*
 * How long the NULL may wait for its answer: longer than any server needs for a NULL, but shorter
 * than the first time-out of most mounts
 */
#define XPRT_RDMA_VERSION_TIMEOUT	(10 * HZ)

/* How long a server is taken for one of version 1 after it has not answered */
#define XPRT_RDMA_VERSION_ONE_PERIOD	(3600 * HZ)

/* The highest version to be used on the next connection */
u32 xprt_rdma_version_to_offer(struct xprt_rdma_client *client)
{
	unsigned long until = client->version_one_until;

	if (until && time_before(jiffies, until))
		return RPCRDMA_VERSION_ONE;
	/* Otherwise it would be in the future again after jiffies have wrapped around. */
	client->version_one_until = 0;
	return READ_ONCE(xprt_rdma_version_max);
}

/* NFS reads max_payload when it mounts, and backward_payload for a session: without a lock. */
static void version_settle(struct xprt_rdma_endpoint *ep, u32 settled)
{
	struct xprt_rdma_version *version = &ep->version;
	struct xprt_rdma_client *client = ep->client;
	u32 call = rpcrdma_conn_call_threshold(ep->conn, settled);
	u32 reply = rpcrdma_conn_reply_threshold(ep->conn, settled);

	version->header_min = rpcrdma_wire_header_min(settled);
	version->call_threshold = call;
	version->reply_threshold = reply;
	version->names_handle = settled != RPCRDMA_VERSION_ONE &&
				READ_ONCE(xprt_rdma_remote_invalidation);
	version->may_invalidate = settled == RPCRDMA_VERSION_ONE ?
				  ep->conn->agreement.client_inv : version->names_handle;
	WRITE_ONCE(client->xprt.max_payload,
		   xprt_rdma_form_max_payload(settled, call, reply, ep->max_mr_pages));
	WRITE_ONCE(client->backward_payload,
		   xprt_rdma_form_backward(settled, call, reply, XPRT_RDMA_BACKWARD_MAX));
	WRITE_ONCE(client->version, settled);
	/* Pairs with receive_reply(): ep->conn is set. */
	smp_store_release(&version->settled, settled);
	rpcrdma_conn_log_version(ep->conn, settled);
}

static int version_ask(struct xprt_rdma_endpoint *ep)
{
	const __be32 call[] = {
		ep->version.xid, rpc_call, cpu_to_be32(RPC_VERSION),
		cpu_to_be32(ep->client->program), cpu_to_be32(ep->client->program_version),
		/* The procedure; flavor and length of the credentials and of the verifier */
		0, 0, 0, 0, 0,
	};
	struct rpcrdma_send *send = rpcrdma_send_get(ep->conn);
	struct rpcrdma_message *msg = &ep->call;
	int ret;

	if (!send)
		return -ENOTCONN;
	rpcrdma_wire_init_call(msg, ep->version.offered, ep->version.xid, ep->conn->credits);
	ret = rpcrdma_wire_encode(msg, send->data, send->size - sizeof(call));
	if (ret < 0)
		goto put;
	memcpy(send->data + ret, call, sizeof(call));
	send->len = ret + sizeof(call);
	rpcrdma_add_traffic(&ep->conn->counters.sent, RPCRDMA_A_TRAFFIC_INLINE, sizeof(call));
	trace_rpcrdma_call_form(ep->conn, msg, send->len, true);
	ret = rpcrdma_send_post(send, NULL, 0, NULL);
	if (!ret)
		return 0;
put:
	rpcrdma_send_put(send);
	return ret;
}

/**
 * xprt_rdma_version_begin - settle the version of a connection, or ask for it
 * @ep: the connection
 *
 * Context: ->established.
 */
void xprt_rdma_version_begin(struct xprt_rdma_endpoint *ep)
{
	int ret;

	if (ep->version.offered == RPCRDMA_VERSION_ONE) {
		version_settle(ep, RPCRDMA_VERSION_ONE);
		complete_all(&ep->ready);
		return;
	}
	/*
	 * Never zero, which means that nothing was asked. The answer may come right now: pairs
	 * with the acquire in xprt_rdma_version_answered(), which then sees ep->conn as well.
	 */
	smp_store_release(&ep->version.xid, cpu_to_be32(get_random_u32() | 1));
	ret = version_ask(ep);
	if (ret)
		rpcrdma_conn_close(ep->conn, ret);
	else
		WRITE_ONCE(ep->version.deadline, jiffies + XPRT_RDMA_VERSION_TIMEOUT ?: 1);
}

/**
 * xprt_rdma_version_answered - settle the version by the answer to the NULL
 * @ep: a connection whose version is not settled
 * @msg: a Reply or an RDMA_ERROR
 *
 * An error may have any version: not all servers copy the field.
 *
 * Context: ->received.
 * Return: false if @msg is not the answer.
 */
bool xprt_rdma_version_answered(struct xprt_rdma_endpoint *ep, const struct rpcrdma_message *msg)
{
	/* Pairs with the release in xprt_rdma_version_begin(). */
	if (!msg->xid || msg->xid != smp_load_acquire(&ep->version.xid))
		return false;
	if (msg->proc == RPCRDMA_ERROR)
		version_settle(ep, RPCRDMA_VERSION_ONE);
	else if (msg->version == ep->version.offered)
		version_settle(ep, msg->version);
	else
		return false;
	return true;
}

/* Whether the answer to the NULL is overdue */
bool xprt_rdma_version_is_overdue(const struct xprt_rdma_endpoint *ep)
{
	unsigned long deadline = READ_ONCE(ep->version.deadline);

	return deadline && time_after_eq(jiffies, deadline);
}

/**
 * xprt_rdma_version_closed - note if the end of a connection shows a server of version 1
 * @ep: the connection
 * @status: why it was closed
 *
 * It does if the NULL was not answered, or if it was answered with an error and no Call was
 * answered after that (draft 6.2). It does not if this host closed the connection or lost its
 * device. No lock is needed: connect_work reads version_one_until after ep->closed is complete.
 *
 * Context: ->closed.
 */
void xprt_rdma_version_closed(struct xprt_rdma_endpoint *ep, int status)
{
	WRITE_ONCE(ep->client->version, 0);
	if (!ep->version.deadline || ep->version.settled == ep->version.offered ||
	    ep->credits.granted_any || status == -ESHUTDOWN || status == -ENODEV)
		return;
	ep->client->version_one_until = jiffies + XPRT_RDMA_VERSION_ONE_PERIOD ?: 1;
	pr_notice_ratelimited("%s: no answer in version %u: version 1 for an hour\n",
			      ep->conn->peer, ep->version.offered);
}
