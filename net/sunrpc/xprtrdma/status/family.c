// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The generic netlink family, and its events.
 *
 * Anybody may read: what it shows is no more than mountstats, sysctls and the RDMA tools
 * show to anybody, and only of the reader's network namespace.
 *
 * The family is registered before there is any connection, and unregistered after the
 * last one is gone, so that the events of all connections can be sent. A dump holds a
 * reference to the module until it is complete.
 */
#define pr_fmt(fmt) "rpcrdma: " fmt

#include <linux/module.h>
#include <net/genetlink.h>
#include <uapi/linux/rpcrdma.h>

#include "../conn/conn.h"
#include "../conn/status.h"
#include "status.h"
#include "status_private.h"

enum {
	RPCRDMA_GROUP_EVENTS,
};

static const struct genl_multicast_group family_groups[] = {
	[RPCRDMA_GROUP_EVENTS] = { .name = RPCRDMA_MCGRP_EVENTS },
};

static const struct genl_ops family_full_ops[] = {
	{
		.cmd = RPCRDMA_CMD_DEVICE_GET,
		.start = rpcrdma_dump_devices_start,
		.dumpit = rpcrdma_dump_devices,
	},
};

static const struct genl_small_ops family_ops[] = {
	{ .cmd = RPCRDMA_CMD_LISTENER_GET, .dumpit = rpcrdma_dump_listeners },
	{ .cmd = RPCRDMA_CMD_CONNECTION_GET, .dumpit = rpcrdma_dump_conns },
};

struct genl_family rpcrdma_family __ro_after_init = {
	.name = RPCRDMA_FAMILY_NAME,
	.version = RPCRDMA_FAMILY_VERSION,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = family_full_ops,
	.n_ops = ARRAY_SIZE(family_full_ops),
	.small_ops = family_ops,
	.n_small_ops = ARRAY_SIZE(family_ops),
	.mcgrps = family_groups,
	.n_mcgrps = ARRAY_SIZE(family_groups),
};

/*
 * Events come from work items that reclaim may wait for, so allocating one does not
 * sleep. If there is no memory, those who listen are told that they have missed something.
 */
static struct sk_buff *event_begin(struct net *net, u8 cmd, void **header)
{
	struct sk_buff *skb;

	if (!genl_has_listeners(&rpcrdma_family, net, RPCRDMA_GROUP_EVENTS))
		return NULL;
	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_NOWAIT | __GFP_NOWARN);
	if (!skb) {
		genl_set_err(&rpcrdma_family, net, 0, RPCRDMA_GROUP_EVENTS, -ENOBUFS);
		return NULL;
	}
	*header = genlmsg_put(skb, 0, 0, &rpcrdma_family, 0, cmd);
	return skb;
}

static void event_end(struct net *net, struct sk_buff *skb, void *header, int err)
{
	if (WARN_ON_ONCE(err || !header)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, header);
	genlmsg_multicast_netns(&rpcrdma_family, net, skb, 0, RPCRDMA_GROUP_EVENTS,
				GFP_NOWAIT | __GFP_NOWARN);
}

static void event_connected(const struct rpcrdma_conn *conn)
{
	void *header;
	struct sk_buff *skb = event_begin(conn->net, RPCRDMA_CMD_CONNECTED, &header);

	if (skb)
		event_end(conn->net, skb, header, rpcrdma_message_connected(skb, conn));
}

static void event_closed(const struct rpcrdma_conn *conn)
{
	void *header;
	struct sk_buff *skb = event_begin(conn->net, RPCRDMA_CMD_CLOSED, &header);

	if (skb)
		event_end(conn->net, skb, header, rpcrdma_message_closed(skb, conn));
}

static void event_refused(const struct rpcrdma_refused *refused)
{
	void *header;
	struct sk_buff *skb = event_begin(refused->net, RPCRDMA_CMD_REFUSED, &header);

	if (skb)
		event_end(refused->net, skb, header, rpcrdma_message_refused(skb, refused));
}

static const struct rpcrdma_observer family_observer = {
	.connected = event_connected,
	.closed = event_closed,
	.refused = event_refused,
};

/**
 * rpcrdma_status_init - register the family
 *
 * Context: module init, before rpcrdma_conn_init().
 * Return: 0 or a negative errno.
 */
int rpcrdma_status_init(void)
{
	int err = genl_register_family(&rpcrdma_family);

	if (err) {
		pr_err("not loaded: the netlink family \"%s\" cannot be registered: %pe\n",
		       RPCRDMA_FAMILY_NAME, ERR_PTR(err));
		return err;
	}
	rpcrdma_conn_observe(&family_observer);
	return 0;
}

/**
 * rpcrdma_status_exit - unregister the family
 *
 * Context: module exit, after rpcrdma_conn_exit(); sleeps.
 */
void rpcrdma_status_exit(void)
{
	genl_unregister_family(&rpcrdma_family);
}
