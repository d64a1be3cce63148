/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * For kernels since 7.3, where a queue pair has an xarray, which the RDMA core initialises and
 * destroys.
 */
#ifndef RPCRDMA_OVERLAY_RDMA_IB_VERBS_H
#define RPCRDMA_OVERLAY_RDMA_IB_VERBS_H

#include_next <rdma/ib_verbs.h>
#include <rpcrdma-probes.h>

/**
 * rpcrdma_compat_init_qp - initialise what ib_destroy_qp() destroys
 * @qp: a queue pair that ib_create_qp() has not made, for a unit test
 */
static inline void rpcrdma_compat_init_qp(struct ib_qp *qp)
{
#ifdef HAVE_COMP_CNTRS
	xa_init(&qp->comp_cntrs);
#endif
}

#endif /* RPCRDMA_OVERLAY_RDMA_IB_VERBS_H */
