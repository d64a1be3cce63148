// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Retire a request: its task ends or starts again without a Reply, so the server
 * and the device must no longer reach its memory (RFC 8166 section 4.4.1).
 *
 * The Reply may still arrive when sunrpc finds no task by its XID any more. Such an unmatched
 * Reply matters: it tells which handle the server has invalidated, and that the server is done
 * with all handles of the Call.
 */
#include <linux/sched.h>

#include "client_private.h"

static unsigned int request_count_mrs(const struct xprt_rdma_request *request)
{
	const struct rpcrdma_mr *mr;
	unsigned int count = 0;

	list_for_each_entry(mr, &request->invalidation.mrs, list)
		count++;
	return count;
}

/*
 * Invalidate all registrations of a request that is on the wire. @done is called once when none
 * of them can be reached any more, with a negative errno if the connection broke first. Return:
 * 0. -ENOTCONN: @done will not be called; the server can reach the memory until the connection
 * is closed.
 */
int xprt_rdma_request_invalidate(struct xprt_rdma_request *request,
				 void (*done)(struct rpcrdma_chain *chain, int status))
{
	struct xprt_rdma_endpoint *ep = request->ep;
	struct xprt_rdma_client_stats *stats = &ep->client->stats;
	unsigned int mrs = request_count_mrs(request);
	int ret;

	request->invalidation.chain.done = done;
	stats->invalidations += mrs;
	ret = rpcrdma_mr_invalidate(ep->conn, &request->invalidation);
	if (ret)
		stats->invalidations -= mrs;
	return ret;
}

/* Give back all registrations of a request whose memory nobody else can reach. */
void xprt_rdma_request_put_mrs(struct xprt_rdma_request *request)
{
	struct rpcrdma_mr *mr, *next;

	list_for_each_entry_safe(mr, next, &request->invalidation.mrs, list) {
		list_del(&mr->list);
		rpcrdma_mr_put(mr);
	}
}

/*
 * The Reply of a request in ep->awaiting_reply. If its task no longer waits for the Reply, the
 * task invalidates all handles itself.
 */
static void retire_answered_locked(struct xprt_rdma_request *request,
				   const struct xprt_rdma_unmatched_reply *unmatched)
{
	struct rpcrdma_mr *mr;

	lockdep_assert_held(&request->ep->awaiting_lock);

	request->late_reply = true;
	if (!test_bit(XPRT_RDMA_AWAITING_REPLY, &request->state))
		return;
	if (unmatched->invalidated) {
		mr = xprt_rdma_reply_take_invalidated(request, unmatched->handle);
		if (mr)
			rpcrdma_mr_put(mr);
		else
			rpcrdma_conn_close(request->ep->conn, -EPROTO);
	}
	clear_and_wake_up_bit(XPRT_RDMA_AWAITING_REPLY, &request->state);
}

/*
 * The server has answered the Call of a task that is gone: other RPCs may now use the
 * registrations of that Call. Return: true if it had any.
 */
static bool retire_free_orphaned_locked(struct xprt_rdma_endpoint *ep, __be32 xid)
{
	struct rpcrdma_mr *mr, *next;
	bool found = false;

	lockdep_assert_held(&ep->awaiting_lock);

	list_for_each_entry_safe(mr, next, &ep->orphaned_mrs, list) {
		if (mr->tag != (__force u32)xid)
			continue;
		list_del(&mr->list);
		rpcrdma_mr_put(mr);
		found = true;
	}
	return found;
}

/*
 * A Reply has arrived whose task sunrpc does not find. If its request is in ep->awaiting_reply,
 * tell it; if the request is gone, free its registrations; if it has yet to be retired, note the
 * Reply for then. In ->received.
 */
void xprt_rdma_retire_unmatched(struct xprt_rdma_endpoint *ep, const struct rpcrdma_recv *recv,
				__be32 xid)
{
	const struct xprt_rdma_unmatched_reply unmatched = {
		.xid = xid,
		.invalidated = recv->invalidated,
		.handle = recv->inv_handle,
		.arrived = ktime_get(),
	};
	struct xprt_rdma_request *request;

	spin_lock(&ep->awaiting_lock);
	list_for_each_entry(request, &ep->awaiting_reply, list) {
		if (request->rqst.rq_xid != xid)
			continue;
		retire_answered_locked(request, &unmatched);
		goto out;
	}
	if (!retire_free_orphaned_locked(ep, xid))
		xprt_rdma_slots_note_unmatched_locked(ep->client, ep, &unmatched);
out:
	spin_unlock(&ep->awaiting_lock);
}

/*
 * Do not wait if the Reply has already arrived. One that arrived before the Call was sent does
 * not answer it. Not static for the unit tests.
 */
void xprt_rdma_retire_find_unmatched_locked(struct xprt_rdma_request *request)
{
	const struct xprt_rdma_unmatched_reply *unmatched = &request->unmatched;

	if (unmatched->xid == request->rqst.rq_xid &&
	    ktime_after(unmatched->arrived, request->rqst.rq_xtime))
		retire_answered_locked(request, unmatched);
}

static void retire_invalidated(struct rpcrdma_chain *chain, int status)
{
	struct xprt_rdma_request *request =
		container_of(chain, struct xprt_rdma_request, invalidation.chain);

	request->invalidation_status = status;
	clear_and_wake_up_bit(XPRT_RDMA_INVALIDATING, &request->state);
}

/* Closing the connection completes all that is posted, and so ends the wait. */
static void retire_wait(struct xprt_rdma_request *request, int bit)
{
	if (!wait_on_bit_timeout(&request->state, bit, TASK_UNINTERRUPTIBLE,
				 XPRT_RDMA_RETIRE_TIMEOUT))
		return;
	rpcrdma_conn_close(request->ep->conn, -ETIMEDOUT);
	wait_on_bit(&request->state, bit, TASK_UNINTERRUPTIBLE);
}

/*
 * The server may be about to invalidate a handle with the Reply. If that handle is
 * invalid by then, or another RPC uses it, the connection is lost. So a task that
 * was killed waits a moment for the Reply. One that timed out has waited enough. For
 * both the Reply may have arrived just before: see request->unmatched.
 */
static void retire_await_reply(struct xprt_rdma_request *request)
{
	const struct rpc_task *task = request->rqst.rq_task;
	struct xprt_rdma_endpoint *ep = request->ep;

	request->late_reply = false;
	set_bit(XPRT_RDMA_AWAITING_REPLY, &request->state);
	spin_lock(&ep->awaiting_lock);
	list_add(&request->list, &ep->awaiting_reply);
	xprt_rdma_retire_find_unmatched_locked(request);
	spin_unlock(&ep->awaiting_lock);
	if (RPC_SIGNALLED(task) && ep->version.may_invalidate && rpcrdma_conn_established(ep->conn))
		wait_on_bit_timeout(&request->state, XPRT_RDMA_AWAITING_REPLY,
				    TASK_UNINTERRUPTIBLE, XPRT_RDMA_AWAIT_REPLY_TIMEOUT);
	spin_lock(&ep->awaiting_lock);
	clear_bit(XPRT_RDMA_AWAITING_REPLY, &request->state);
	spin_unlock(&ep->awaiting_lock);
}

/* The last resort: close the connection. Nothing can be reached through a closed one. */
static void retire_endpoint(struct xprt_rdma_request *request, int status)
{
	struct xprt_rdma_endpoint *ep = request->ep;

	rpcrdma_conn_close(ep->conn, status);
	wait_for_completion(&ep->closed);
	ep->client->stats.recovered += request_count_mrs(request);
}

static void retire_mrs(struct xprt_rdma_request *request)
{
	int status;

	set_bit(XPRT_RDMA_INVALIDATING, &request->state);
	status = xprt_rdma_request_invalidate(request, retire_invalidated);
	if (status) {
		clear_bit(XPRT_RDMA_INVALIDATING, &request->state);
	} else {
		retire_wait(request, XPRT_RDMA_INVALIDATING);
		status = request->invalidation_status;
	}
	if (status)
		retire_endpoint(request, status);
}

/*
 * The server may use the handles of a Call until it has answered it, however late
 * that is. So no other RPC gets them before the Reply arrives or the connection is
 * closed.
 */
static void retire_put_mrs(struct xprt_rdma_request *request)
{
	struct xprt_rdma_endpoint *ep = request->ep;
	struct rpcrdma_mr *mr, *next;

	spin_lock(&ep->awaiting_lock);
	list_del(&request->list);
	list_for_each_entry_safe(mr, next, &request->invalidation.mrs, list) {
		if (request->late_reply || !rpcrdma_mr_unmap(mr))
			break;
		mr->tag = (__force u32)request->rqst.rq_xid;
		list_move(&mr->list, &ep->orphaned_mrs);
	}
	spin_unlock(&ep->awaiting_lock);
	xprt_rdma_request_put_mrs(request);
}

/*
 * A task without a process ends in rpciod, whose workers serve all RPCs of the host.
 * It must not wait for a peer there, so it closes the connection: a teardown waits
 * for no peer. That costs little: the task has timed out, or somebody has used force
 * (umount -f).
 */
static void retire_async(struct xprt_rdma_request *request)
{
	if (list_empty(&request->invalidation.mrs) &&
	    !test_bit(XPRT_RDMA_GATHERING, &request->state))
		return;
	retire_endpoint(request, -ESHUTDOWN);
	xprt_rdma_request_put_mrs(request);
}

/**
 * xprt_rdma_request_retire - take a request off the wire, if it is on it
 * @request: not pinned, so no Reply is being processed
 *
 * Every task comes here before it gives back its memory or uses it again (RFC 8166
 * section 4.4.1). There is nothing to do if its Reply has been processed, but there
 * is if it was killed or timed out, or its connection was closed.
 *
 * Context: may sleep until the connection is closed.
 */
void xprt_rdma_request_retire(struct xprt_rdma_request *request)
{
	struct xprt_rdma_endpoint *ep;

	if (!READ_ONCE(request->ep))
		return;
	/*
	 * sunrpc may have found without a lock that the Reply has been processed, which has cleared
	 * @ep. Pairs with the barrier in xprt_complete_rqst().
	 */
	smp_rmb();
	ep = READ_ONCE(request->ep);
	if (!ep)
		return;
	if (RPC_IS_ASYNC(request->rqst.rq_task)) {
		retire_async(request);
	} else {
		if (!list_empty(&request->invalidation.mrs)) {
			retire_await_reply(request);
			/* The Reply may have invalidated the only one. */
			if (!list_empty(&request->invalidation.mrs))
				retire_mrs(request);
			retire_put_mrs(request);
		}
		retire_wait(request, XPRT_RDMA_GATHERING);
	}
	if (!request->replied)
		atomic_inc(&ep->credits.orphaned);
	request->ep = NULL;
	xprt_rdma_ep_put(ep);
}
