/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * For kernels before 6.3, where sunrpc calls xpo_secure_port to set RQ_SECURE if a request
 * came from a privileged port. Since then xpo_recvfrom sets it.
 */
#ifndef RPCRDMA_OVERLAY_LINUX_SUNRPC_SVC_XPRT_H
#define RPCRDMA_OVERLAY_LINUX_SUNRPC_SVC_XPRT_H

#include_next <linux/sunrpc/svc_xprt.h>
#include <rpcrdma-probes.h>

#ifdef HAVE_XPO_SECURE_PORT

static inline void rpcrdma_compat_secure_port(struct svc_rqst *rqstp)
{
	set_bit(RQ_SECURE, &rqstp->rq_flags);
}

/*
 * Add xpo_secure_port to a struct svc_xprt_ops: where the transport initializes
 * xpo_kill_temp_xprt, it initializes both.
 */
#define xpo_kill_temp_xprt						\
	xpo_secure_port = rpcrdma_compat_secure_port,			\
	.xpo_kill_temp_xprt

#endif

#endif /* RPCRDMA_OVERLAY_LINUX_SUNRPC_SVC_XPRT_H */
