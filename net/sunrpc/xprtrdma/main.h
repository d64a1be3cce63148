/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How each layer starts and ends, for main.c.
 */
#ifndef RPCRDMA_MAIN_H
#define RPCRDMA_MAIN_H

/* The generic netlink family "rpcrdma": Documentation/netlink/specs/rpcrdma.yaml */
int rpcrdma_status_init(void);
void rpcrdma_status_exit(void);

/* Connections. rpcrdma_conn_exit() waits for the teardown of all. */
int rpcrdma_conn_init(void);
void rpcrdma_conn_exit(void);

/* The server: an svc_xprt class "rdma", and its callback client (RFC 8167) */
int svcrdma_init(void);
void svcrdma_exit(void);

/* The client: an rpc_xprt for the netids "rdma" and "rdma6" */
int xprt_rdma_init(void);
void xprt_rdma_exit(void);

#endif /* RPCRDMA_MAIN_H */
