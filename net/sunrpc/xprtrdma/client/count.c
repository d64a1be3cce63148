// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Count RPCs that have to wait: once for each cause, however often sunrpc tries to send them.
 */
#include <linux/sunrpc/bc_xprt.h>

#include "client_private.h"

/* Nothing is counted for the Reply to a backward Call. Context: XPRT_LOCKED is held. */
void xprt_rdma_count_wait(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst, unsigned int what)
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

/* There is no credit for a Call. If the server has granted enough, Receives are missing. */
void xprt_rdma_count_credit_wait(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst)
{
	const struct xprt_rdma_credits *credits = &ep->credits;
	bool enough = (u32)atomic_read(&credits->in_flight) < READ_ONCE(credits->granted);

	xprt_rdma_count_wait(ep, rqst, enough ? RPCRDMA_A_WAITS_RECEIVE_BUFFER :
						RPCRDMA_A_WAITS_CREDIT);
}
