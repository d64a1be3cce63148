/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the files of this room, and its tests, share.
 */
#ifndef RPCRDMA_STATUS_PRIVATE_H
#define RPCRDMA_STATUS_PRIVATE_H

#include <linux/types.h>

struct net;
struct netlink_callback;
struct rpcrdma_conn;
struct rpcrdma_conn_status;
struct rpcrdma_listener_status;
struct rpcrdma_device;
struct rpcrdma_refused;
struct sk_buff;

/* message.c */
int rpcrdma_message_conn(struct sk_buff *skb, const struct rpcrdma_conn *conn,
			 const struct rpcrdma_conn_status *status);
int rpcrdma_message_connected(struct sk_buff *skb, const struct rpcrdma_conn *conn);
int rpcrdma_message_closed(struct sk_buff *skb, const struct rpcrdma_conn *conn);
int rpcrdma_message_refused(struct sk_buff *skb, const struct rpcrdma_refused *refused);
int rpcrdma_message_listener(struct sk_buff *skb, const struct rpcrdma_listener_status *status);
int rpcrdma_message_device(struct sk_buff *skb, const struct rpcrdma_device *device,
			   const struct net *net);

/* dump.c */
int rpcrdma_dump_devices_start(struct netlink_callback *cb);
int rpcrdma_dump_devices(struct sk_buff *skb, struct netlink_callback *cb);
int rpcrdma_dump_listeners(struct sk_buff *skb, struct netlink_callback *cb);
int rpcrdma_dump_conns(struct sk_buff *skb, struct netlink_callback *cb);

/* family.c */
extern struct genl_family rpcrdma_family;

#endif /* RPCRDMA_STATUS_PRIVATE_H */
