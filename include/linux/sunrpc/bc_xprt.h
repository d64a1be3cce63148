/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How a transport hands a backward Call to the callback service: kernels differ
 * in how the threads of the service wait.
 */
#ifndef RPCRDMA_COMPAT_BC_XPRT_H
#define RPCRDMA_COMPAT_BC_XPRT_H

#include_next <linux/sunrpc/bc_xprt.h>

#ifdef CONFIG_SUNRPC_BACKCHANNEL

#include <linux/sunrpc/svc.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
static inline void rpcrdma_compat_queue_bc(struct svc_serv *serv,
					   struct rpc_rqst *req)
{
	spin_lock_bh(&serv->sv_cb_lock);
	list_add_tail(&req->rq_bc_list, &serv->sv_cb_list);
	wake_up(&serv->sv_cb_waitq);
	spin_unlock_bh(&serv->sv_cb_lock);
}
#else
static inline void rpcrdma_compat_queue_bc(struct svc_serv *serv,
					   struct rpc_rqst *req)
{
	lwq_enqueue(&req->rq_bc_list, &serv->sv_cb_list);
	svc_pool_wake_idle_thread(&serv->sv_pools[0]);
}
#endif

/*
 * If it returns true, the request has a reference to the transport that
 * ->bc_free_rqst gives back, and is counted in bc_slot_count until then. If
 * there is no service, or the transport is going away, it is still the
 * caller's.
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

#endif /* CONFIG_SUNRPC_BACKCHANNEL */
#endif /* RPCRDMA_COMPAT_BC_XPRT_H */
