// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What a client tells of a connection.
 */
#include <linux/sunrpc/bc_xprt.h>

#include "../conn/status.h"
#include "client_private.h"

/**
 * xprt_rdma_count_wait - count an RPC that has to wait
 * @ep: the connection
 * @rqst: the RPC; nothing is counted if it is the Reply to a backward Call
 * @what: what it waits for
 *
 * Whatever sunrpc does while it waits, an RPC counts once for each cause.
 *
 * Context: XPRT_LOCKED is held.
 */
void xprt_rdma_count_wait(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst,
			  unsigned int what)
{
	struct xprt_rdma_request *request;

	if (bc_prealloc(rqst))
		return;
	request = xprt_rdma_request_of(rqst);
	if (request->waited & BIT(what))
		return;
	request->waited |= BIT(what);
	ep->conn->counters.waits[what]++;
}

/**
 * xprt_rdma_count_credit_wait - count a Call for which there is no credit
 * @ep: the connection
 * @rqst: the Call
 *
 * If the server grants enough, it is Receives that are missing.
 *
 * Context: XPRT_LOCKED is held.
 */
void xprt_rdma_count_credit_wait(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst)
{
	const struct xprt_rdma_credits *credits = &ep->credits;
	u32 granted = min(READ_ONCE(credits->granted), ep->conn->credits);
	bool enough = (u32)atomic_read(&credits->in_flight) < granted;

	xprt_rdma_count_wait(ep, rqst, enough ? RPCRDMA_A_WAITS_RECEIVE_BUFFER :
						RPCRDMA_A_WAITS_CREDIT);
}

/* Slots stay with the transport, and so does what they have allocated. */
static u64 xprt_rdma_slots_memory(const struct xprt_rdma_client *client)
{
	return atomic_long_read(&client->buffers_size) +
	       (u64)READ_ONCE(client->xprt.num_reqs) * sizeof(struct xprt_rdma_request);
}

/**
 * xprt_rdma_describe - the rpcrdma_conn_ops's describe
 * @conn: the connection
 * @status: filled in
 *
 * Context: as rpcrdma_conn_ops's describe.
 */
void xprt_rdma_describe(struct rpcrdma_conn *conn, struct rpcrdma_role_status *status)
{
	struct xprt_rdma_endpoint *ep = conn->role;
	struct xprt_rdma_client *client = ep->client;

	status->xprt_id = client->xprt.id;
	status->version = xprt_rdma_version_settled(&ep->version);
	status->requested = conn->credits;
	status->granted = READ_ONCE(ep->credits.granted);
	status->in_use = atomic_read(&ep->credits.in_flight);
	status->waiting = READ_ONCE(client->xprt.backlog.qlen);
	status->credit_waits = READ_ONCE(client->slot_waits) - ep->slot_waits;
	status->memory = sizeof(*client) + sizeof(*ep) + xprt_rdma_slots_memory(client);
}
