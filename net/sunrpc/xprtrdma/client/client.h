/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The requester: an rpc_xprt for the netids "rdma" and "rdma6". All else that
 * this layer offers is called by sunrpc through its operations.
 */
#ifndef XPRT_RDMA_CLIENT_H
#define XPRT_RDMA_CLIENT_H

int xprt_rdma_init(void);
void xprt_rdma_exit(void);

#endif /* XPRT_RDMA_CLIENT_H */
