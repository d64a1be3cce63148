/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The requester: an rpc_xprt for the netids "rdma" and "rdma6". sunrpc calls the rest
 * of this layer through the operations of its transports.
 */
#ifndef XPRT_RDMA_CLIENT_H
#define XPRT_RDMA_CLIENT_H

int xprt_rdma_init(void);
void xprt_rdma_exit(void);

#endif /* XPRT_RDMA_CLIENT_H */
