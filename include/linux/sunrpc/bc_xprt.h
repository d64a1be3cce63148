/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * For all kernels: pass a backward Call to the callback service. The queue in which the
 * threads of the service find it is a list before 6.7, and an lwq since.
 */
#ifndef RPCRDMA_OVERLAY_LINUX_SUNRPC_BC_XPRT_H
#define RPCRDMA_OVERLAY_LINUX_SUNRPC_BC_XPRT_H

#include_next <linux/sunrpc/bc_xprt.h>

#ifdef CONFIG_SUNRPC_BACKCHANNEL

#include <linux/sunrpc/svc.h>
#include <rpcrdma-probes.h>

#ifdef HAVE_BC_LIST
static inline void rpcrdma_compat_queue_bc(struct svc_serv *serv,
					   struct rpc_rqst *req)
{
	spin_lock_bh(&serv->sv_cb_lock);
	list_add_tail(&req->rq_bc_list, &serv->sv_cb_list);
	wake_up(&serv->sv_cb_waitq);
	spin_unlock_bh(&serv->sv_cb_lock);
}

static inline void rpcrdma_compat_unqueue_bc(struct svc_serv *serv,
					     struct rpc_xprt *xprt)
{
	struct rpc_rqst *req, *next;
	LIST_HEAD(unqueued);

	spin_lock_bh(&serv->sv_cb_lock);
	list_for_each_entry_safe(req, next, &serv->sv_cb_list, rq_bc_list) {
		if (req->rq_xprt == xprt)
			list_move_tail(&req->rq_bc_list, &unqueued);
	}
	spin_unlock_bh(&serv->sv_cb_lock);
	list_for_each_entry_safe(req, next, &unqueued, rq_bc_list) {
		atomic_dec(&xprt->bc_slot_count);
		xprt->ops->bc_free_rqst(req);
	}
}
#else
static inline void rpcrdma_compat_queue_bc(struct svc_serv *serv,
					   struct rpc_rqst *req)
{
	lwq_enqueue(&req->rq_bc_list, &serv->sv_cb_list);
	svc_pool_wake_idle_thread(&serv->sv_pools[0]);
}

static inline void rpcrdma_compat_unqueue_bc(struct svc_serv *serv,
					     struct rpc_xprt *xprt)
{
	struct llist_node *all = lwq_dequeue_all(&serv->sv_cb_list);
	struct llist_node **link, *next;
	struct rpc_rqst *req;

	lwq_for_each_safe(req, link, next, &all, rq_bc_list) {
		if (req->rq_xprt == xprt) {
			atomic_dec(&xprt->bc_slot_count);
			xprt->ops->bc_free_rqst(req);
		} else {
			rpcrdma_compat_queue_bc(serv, req);
		}
		req = NULL;
	}
}
#endif

/**
 * rpcrdma_compat_enqueue_bc - pass a backward Call to the callback service
 * @req: the Call
 *
 * Context: takes bc_pa_lock of the transport.
 * Return: true if the service owns @req now. Then @req holds a reference to the
 * transport, which ->bc_free_rqst drops, and is counted in bc_slot_count until
 * then. False if there is no service or the transport is being destroyed: the
 * caller still owns @req.
 */
static inline bool rpcrdma_compat_enqueue_bc(struct rpc_rqst *req)
{
	struct rpc_xprt *xprt = req->rq_xprt;
	bool taken;

	spin_lock(&xprt->bc_pa_lock);
	taken = xprt->bc_serv && xprt_get(xprt);
	if (taken) {
		atomic_inc(&xprt->bc_slot_count);
		rpcrdma_compat_queue_bc(xprt->bc_serv, req);
	}
	spin_unlock(&xprt->bc_pa_lock);
	return taken;
}

/**
 * rpcrdma_compat_take_back_bc - free the backward Calls in the service's queue
 * @xprt: the transport that they arrived at
 *
 * Threads that are told to stop leave Calls in the queue, which hold references
 * to @xprt.
 *
 * Context: the caller holds a reference to @xprt, and prevents that the service
 * ends meanwhile. Calls ->bc_free_rqst without a lock.
 */
static inline void rpcrdma_compat_take_back_bc(struct rpc_xprt *xprt)
{
	/* Since 7.x NFS clears it, and frees the Calls in the queue, when it stops. */
	struct svc_serv *serv = READ_ONCE(xprt->bc_serv);

	if (serv)
		rpcrdma_compat_unqueue_bc(serv, xprt);
}

#endif /* CONFIG_SUNRPC_BACKCHANNEL */
#endif /* RPCRDMA_OVERLAY_LINUX_SUNRPC_BC_XPRT_H */
