/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef RPCRDMA_OVERLAY_LINUX_SUNRPC_SVC_XPRT_H
#define RPCRDMA_OVERLAY_LINUX_SUNRPC_SVC_XPRT_H

#include_next <linux/sunrpc/svc_xprt.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)

/*
 * Before 6.3 the core asked the transport whether a request came from a
 * privileged port, instead of finding RQ_SECURE set by xpo_recvfrom.
 */
static inline void svc_overlay_secure_port(struct svc_rqst *rqstp)
{
	set_bit(RQ_SECURE, &rqstp->rq_flags);
}

/* An operation that every transport has brings along the one it lacks. */
#define xpo_kill_temp_xprt						\
	xpo_secure_port = svc_overlay_secure_port,			\
	.xpo_kill_temp_xprt

#endif

#endif /* RPCRDMA_OVERLAY_LINUX_SUNRPC_SVC_XPRT_H */
