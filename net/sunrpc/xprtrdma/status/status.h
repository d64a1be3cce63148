/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The generic netlink family "rpcrdma". Documentation/netlink/specs/rpcrdma.yaml
 * specifies it, and include/uapi/linux/rpcrdma.h is made from that.
 */
#ifndef RPCRDMA_STATUS_STATUS_H
#define RPCRDMA_STATUS_STATUS_H

int rpcrdma_status_init(void);
void rpcrdma_status_exit(void);

#endif /* RPCRDMA_STATUS_STATUS_H */
