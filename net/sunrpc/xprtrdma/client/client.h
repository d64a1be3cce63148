/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The requester: an rpc_xprt for the netids "rdma" and "rdma6". All else that
 * this room offers is called by sunrpc through its operations.
 */
#ifndef RPCRDMA_CLIENT_CLIENT_H
#define RPCRDMA_CLIENT_CLIENT_H

int rpcrdma_client_init(void);
void rpcrdma_client_exit(void);

#endif /* RPCRDMA_CLIENT_CLIENT_H */
