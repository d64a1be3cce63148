/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The generic netlink family "rpcrdma". Documentation/netlink/specs/rpcrdma.yaml
 * specifies it, and include/uapi/linux/rpcrdma.h is made from that.
 */
#ifndef RPCRDMA_STATUS_STATUS_H
#define RPCRDMA_STATUS_STATUS_H

#include <linux/socket.h>
#include <linux/types.h>
#include <uapi/linux/rpcrdma.h>

struct net;
struct rpcrdma_conn;

void rpcrdma_status_event(const struct rpcrdma_conn *conn, u8 cmd);
void rpcrdma_status_refused(struct net *net, enum rpcrdma_refusal why, int err,
			    const struct sockaddr_storage *local,
			    const struct sockaddr_storage *peer);

#endif /* RPCRDMA_STATUS_STATUS_H */
