// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Dumps. Each goes on after the object that did not fit into the last message, by its
 * number. So objects that come or go meanwhile make a dump neither skip nor repeat others.
 */
#include <linux/sizes.h>
#include <linux/slab.h>
#include <net/genetlink.h>
#include <uapi/linux/rpcrdma.h>

#include "../conn/conn.h"
#include "../conn/status.h"
#include "status_private.h"

/**
 * struct rpcrdma_dump - a part of a dump
 * @skb: the message
 * @cb: the dump
 * @last: number of the last object that @skb has
 *
 * On the stack of the dump.
 */
struct rpcrdma_dump {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	u64 last;
};

/* How far a dump has got, in cb->ctx */
struct rpcrdma_dump_position {
	u64 last;
};

static struct rpcrdma_dump_position *dump_position(struct netlink_callback *cb)
{
	BUILD_BUG_ON(sizeof(struct rpcrdma_dump_position) > sizeof(cb->ctx));
	return (struct rpcrdma_dump_position *)cb->ctx;
}

static const struct net *dump_net(const struct netlink_callback *cb)
{
	return sock_net(cb->skb->sk);
}

static void *dump_begin(struct rpcrdma_dump *dump, u8 cmd)
{
	return genlmsg_put(dump->skb, NETLINK_CB(dump->cb->skb).portid,
			   dump->cb->nlh->nlmsg_seq, &rpcrdma_family, NLM_F_MULTI, cmd);
}

static int dump_end(struct rpcrdma_dump *dump, void *header, u64 id, int err)
{
	if (err) {
		genlmsg_cancel(dump->skb, header);
		return err;
	}
	genlmsg_end(dump->skb, header);
	dump->last = id;
	return 0;
}

/* What does not fit goes into the next part; what fits into no part is an error. */
static int dump_result(struct rpcrdma_dump *dump, int err)
{
	dump_position(dump->cb)->last = dump->last;
	return err && (err != -EMSGSIZE || !dump->skb->len) ? err : dump->skb->len;
}

static int dump_device(const struct rpcrdma_device *device, void *data)
{
	struct rpcrdma_dump *dump = data;
	const struct net *net = dump_net(dump->cb);
	void *header;

	if (!rdma_dev_access_netns(device->ib, net))
		return 0;
	header = dump_begin(dump, RPCRDMA_CMD_DEVICE_GET);
	if (!header)
		return -EMSGSIZE;
	return dump_end(dump, header, device->id,
			rpcrdma_message_device(dump->skb, device, net));
}

/**
 * rpcrdma_dump_devices_start - ask for messages in which a device with many ports fits
 * @cb: the dump
 *
 * A switch of virtual functions may have hundreds of ports, of some 36 octets each.
 *
 * Context: any.
 * Return: 0.
 */
int rpcrdma_dump_devices_start(struct netlink_callback *cb)
{
	cb->min_dump_alloc = SZ_32K;
	return 0;
}

/**
 * rpcrdma_dump_devices - the dump of device-get
 * @skb: the message to be filled
 * @cb: the dump
 *
 * Context: may sleep.
 * Return: octets in @skb; zero at the end; or a negative errno.
 */
int rpcrdma_dump_devices(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rpcrdma_dump dump = { skb, cb, dump_position(cb)->last };

	return dump_result(&dump, rpcrdma_device_walk(dump.last, dump_device, &dump));
}

static int dump_listener(const struct rpcrdma_listener_status *status, void *data)
{
	struct rpcrdma_dump *dump = data;
	void *header = dump_begin(dump, RPCRDMA_CMD_LISTENER_GET);

	if (!header)
		return -EMSGSIZE;
	return dump_end(dump, header, status->id, rpcrdma_message_listener(dump->skb, status));
}

/**
 * rpcrdma_dump_listeners - the dump of listener-get
 * @skb: the message to be filled
 * @cb: the dump
 *
 * Context: may sleep.
 * Return: octets in @skb; zero at the end; or a negative errno.
 */
int rpcrdma_dump_listeners(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rpcrdma_dump dump = { skb, cb, dump_position(cb)->last };

	return dump_result(&dump, rpcrdma_listener_walk(dump_net(cb), dump.last,
							dump_listener, &dump));
}

/* A connection that is closed is memory that a role still has; nobody wants to see it. */
static int dump_conn(struct rpcrdma_dump *dump, struct rpcrdma_conn *conn,
		     struct rpcrdma_conn_status *status)
{
	void *header;

	if (!rpcrdma_conn_in_net(conn, dump_net(dump->cb)))
		return 0;
	rpcrdma_conn_status(conn, status);
	if (status->state == RPCRDMA_STATE_CLOSED)
		return 0;
	header = dump_begin(dump, RPCRDMA_CMD_CONNECTION_GET);
	if (!header)
		return -EMSGSIZE;
	return dump_end(dump, header, conn->id, rpcrdma_message_conn(dump->skb, conn, status));
}

/**
 * rpcrdma_dump_conns - the dump of connection-get
 * @skb: the message to be filled
 * @cb: the dump
 *
 * Context: may sleep.
 * Return: octets in @skb; zero at the end; or a negative errno.
 */
int rpcrdma_dump_conns(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rpcrdma_dump dump = { skb, cb, dump_position(cb)->last };
	struct rpcrdma_conn_status *status;
	struct rpcrdma_conn *conn;
	unsigned long id;
	int err = 0;

	status = kmalloc(sizeof(*status), GFP_KERNEL);
	if (!status)
		return -ENOMEM;
	/* 64 bits, so that the walk ends after the highest number. */
	while (!err && dump.last < U32_MAX) {
		id = dump.last + 1;
		conn = rpcrdma_conn_find(&id);
		if (!conn)
			break;
		err = dump_conn(&dump, conn, status);
		rpcrdma_conn_put(conn);
		if (!err)
			dump.last = id;
		cond_resched();
	}
	kfree(status);
	return dump_result(&dump, err);
}
