/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The server's role: an svc_xprt class "rdma", and the callback client that
 * uses the same connections in the backward direction (RFC 8167).
 */
#ifndef RPCRDMA_SERVER_SERVER_H
#define RPCRDMA_SERVER_SERVER_H

int rpcrdma_server_init(void);
void rpcrdma_server_exit(void);

#endif /* RPCRDMA_SERVER_SERVER_H */
