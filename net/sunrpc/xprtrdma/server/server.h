/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The server: an svc_xprt class "rdma", and a callback client that uses the same
 * connections in the backward direction (RFC 8167).
 */
#ifndef SVCRDMA_SERVER_H
#define SVCRDMA_SERVER_H

int svcrdma_init(void);
void svcrdma_exit(void);

#endif /* SVCRDMA_SERVER_H */
