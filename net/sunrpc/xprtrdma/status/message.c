// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What the messages of the family say of each object. Each function adds attributes to a
 * message and returns 0, or -EMSGSIZE if they do not fit. None takes a lock, and none
 * calls into a driver: the RDMA core keeps the state of ports.
 */
#include <linux/inet.h>
#include <linux/netdevice.h>
#include <linux/sunrpc/addr.h>
#include <net/genetlink.h>
#include <rdma/ib_cache.h>
#include <uapi/linux/rpcrdma.h>

#include "../conn/conn.h"
#include "../conn/status.h"
#include "status_private.h"

/* The RDMA core numbers them as the specification does. */
#define SAME(uapi, ours)	static_assert((int)(uapi) == (int)(ours))
SAME(RPCRDMA_PORT_STATE_DOWN, IB_PORT_DOWN);
SAME(RPCRDMA_PORT_STATE_ACTIVE, IB_PORT_ACTIVE);
SAME(RPCRDMA_PORT_STATE_ACTIVE_DEFER, IB_PORT_ACTIVE_DEFER);

static int put_address(struct sk_buff *skb, const struct sockaddr_storage *addr,
		       int text, int port)
{
	char buffer[RPCRDMA_PEER_LEN];

	if (addr->ss_family == AF_UNSPEC)
		return 0;
	snprintf(buffer, sizeof(buffer), "%pISpc", addr);
	return nla_put_string(skb, text, buffer) ?:
	       nla_put_u32(skb, port, rpc_get_port((const struct sockaddr *)addr));
}

/* AF_UNSPEC in ss_family of @local if it is not known */
static int put_ends(struct sk_buff *skb, bool server, const struct sockaddr_storage *peer,
		    const struct sockaddr_storage *local)
{
	return nla_put_u32(skb, RPCRDMA_A_CONNECTION_ROLE,
			   server ? RPCRDMA_CONNECTION_ROLE_SERVER :
				    RPCRDMA_CONNECTION_ROLE_CLIENT) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_FAMILY, peer->ss_family) ?:
	       put_address(skb, peer, RPCRDMA_A_CONNECTION_PEER,
			   RPCRDMA_A_CONNECTION_PEER_PORT) ?:
	       put_address(skb, local, RPCRDMA_A_CONNECTION_LOCAL,
			   RPCRDMA_A_CONNECTION_LOCAL_PORT);
}

static int put_identity(struct sk_buff *skb, const struct rpcrdma_conn *conn, bool local)
{
	static const struct sockaddr_storage unknown = { .ss_family = AF_UNSPEC };

	return nla_put_u32(skb, RPCRDMA_A_CONNECTION_ID, conn->id) ?:
	       put_ends(skb, conn->server, &conn->peer_addr,
			local || conn->server ? &conn->local_addr : &unknown);
}

static int put_device_port(struct sk_buff *skb, const char *device, u32 port)
{
	return nla_put_string(skb, RPCRDMA_A_CONNECTION_DEVICE, device) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_PORT, port);
}

static int put_agreed(struct sk_buff *skb, u32 call, u32 reply, bool remote_inv)
{
	return nla_put_u32(skb, RPCRDMA_A_CONNECTION_CALL_THRESHOLD, call) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_REPLY_THRESHOLD, reply) ?:
	       (remote_inv ?
		nla_put_flag(skb, RPCRDMA_A_CONNECTION_REMOTE_INVALIDATION) : 0);
}

static int put_cause(struct sk_buff *skb, int err)
{
	return err ? nla_put_u32(skb, RPCRDMA_A_CONNECTION_CAUSE, -err) : 0;
}

/* Zero: it does not apply */
static int put_if(struct sk_buff *skb, int type, u32 value)
{
	return value ? nla_put_u32(skb, type, value) : 0;
}

/* @counts: by attribute, from 1 to @last */
static int put_counts(struct sk_buff *skb, const unsigned long *counts, unsigned int last)
{
	unsigned int i;
	int err = 0;

	for (i = 1; i <= last && !err; i++)
		err = nla_put_uint(skb, i, READ_ONCE(counts[i]));
	return err;
}

static int put_nested_counts(struct sk_buff *skb, int type, const unsigned long *counts,
			     unsigned int last)
{
	struct nlattr *nest = nla_nest_start(skb, type);
	int err;

	if (!nest)
		return -EMSGSIZE;
	err = put_counts(skb, counts, last);
	nla_nest_end(skb, nest);
	return err;
}

static int put_traffic(struct sk_buff *skb, int type, const struct rpcrdma_traffic *traffic)
{
	struct nlattr *nest = nla_nest_start(skb, type);
	int err;

	if (!nest)
		return -EMSGSIZE;
	err = put_counts(skb, traffic->messages, RPCRDMA_A_TRAFFIC_BACKWARD) ?:
	      nla_put_uint(skb, RPCRDMA_A_TRAFFIC_INLINE_OCTETS, traffic->inline_octets) ?:
	      nla_put_uint(skb, RPCRDMA_A_TRAFFIC_PLACED_OCTETS, traffic->placed_octets) ?:
	      nla_put_uint(skb, RPCRDMA_A_TRAFFIC_COPIED_OCTETS, traffic->copied_octets);
	nla_nest_end(skb, nest);
	return err;
}

static int put_latency(struct sk_buff *skb, const unsigned long *slots)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < RPCRDMA_LATENCY_BUCKETS && !err; i++)
		err = nla_put_uint(skb, RPCRDMA_A_CONNECTION_LATENCY, slots[i + 1]);
	return err;
}

static int put_counters(struct sk_buff *skb, const struct rpcrdma_counters *counters)
{
	return put_traffic(skb, RPCRDMA_A_CONNECTION_SENT, &counters->sent) ?:
	       put_traffic(skb, RPCRDMA_A_CONNECTION_RECEIVED, &counters->received) ?:
	       put_nested_counts(skb, RPCRDMA_A_CONNECTION_WAITS, counters->waits,
				 RPCRDMA_A_WAITS_MAX) ?:
	       put_nested_counts(skb, RPCRDMA_A_CONNECTION_ERRORS, counters->errors,
				 RPCRDMA_A_ERRORS_MAX) ?:
	       put_latency(skb, counters->latency);
}

static int put_credits(struct sk_buff *skb, const struct rpcrdma_conn *conn,
		       const struct rpcrdma_role_status *role)
{
	int err;

	err = put_if(skb, RPCRDMA_A_CONNECTION_CREDITS_REQUESTED, role->requested) ?:
	      nla_put_u32(skb, RPCRDMA_A_CONNECTION_CREDITS_GRANTED, role->granted) ?:
	      nla_put_u32(skb, RPCRDMA_A_CONNECTION_CREDITS_IN_USE, role->in_use);
	if (err || conn->server)
		return err;
	return nla_put_u32(skb, RPCRDMA_A_CONNECTION_CREDITS_WAITING, role->waiting) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_XPRT_ID, role->xprt_id);
}

/* A server's registrations are those of rdma_rw, which does not tell how many it has. */
static int put_mrs(struct sk_buff *skb, const struct rpcrdma_conn *conn,
		   const struct rpcrdma_conn_status *status)
{
	if (conn->server)
		return 0;
	return nla_put_u32(skb, RPCRDMA_A_CONNECTION_REGISTRATIONS_IN_USE,
			   status->mrs - status->mrs_idle) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_REGISTRATIONS_IDLE, status->mrs_idle);
}

static int put_live(struct sk_buff *skb, const struct rpcrdma_conn *conn,
		    const struct rpcrdma_conn_status *status)
{
	return put_device_port(skb, status->device, status->port) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_VERSION, status->role.version) ?:
	       put_agreed(skb, status->call_threshold, status->reply_threshold,
			  status->remote_inv) ?:
	       put_if(skb, RPCRDMA_A_CONNECTION_INITIATOR_DEPTH, status->reads_issued) ?:
	       put_if(skb, RPCRDMA_A_CONNECTION_RESPONDER_RESOURCES, status->reads_served) ?:
	       put_credits(skb, conn, &status->role) ?:
	       put_mrs(skb, conn, status) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_RECEIVES, status->recvs) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_RECEIVES_POSTED, status->recvs_posted) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_SEND_QUEUE_SIZE, status->sq_size) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_SEND_QUEUE_USED, status->sq_used) ?:
	       nla_put_uint(skb, RPCRDMA_A_CONNECTION_MEMORY,
			    status->memory + status->role.memory);
}

/**
 * rpcrdma_message_conn - all that is known of a connection
 * @skb: the message
 * @conn: the connection
 * @status: what rpcrdma_conn_status() says of it
 *
 * Context: any.
 * Return: 0 or -EMSGSIZE.
 */
int rpcrdma_message_conn(struct sk_buff *skb, const struct rpcrdma_conn *conn,
			 const struct rpcrdma_conn_status *status)
{
	return put_identity(skb, conn, status->live) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_STATE, status->state) ?:
	       nla_put_uint(skb, RPCRDMA_A_CONNECTION_STATE_AGE, status->state_ms) ?:
	       put_cause(skb, status->err) ?:
	       (status->live ? put_live(skb, conn, status) : 0) ?:
	       put_counters(skb, &status->counters);
}

/**
 * rpcrdma_message_connected - the event of a connection that is established
 * @skb: the message
 * @conn: the connection
 *
 * Context: as the observer's connected.
 * Return: 0 or -EMSGSIZE.
 */
int rpcrdma_message_connected(struct sk_buff *skb, const struct rpcrdma_conn *conn)
{
	return put_identity(skb, conn, true) ?:
	       put_device_port(skb, conn->device->ib->name, conn->port) ?:
	       put_agreed(skb, conn->agreement.call_threshold,
			  conn->agreement.reply_threshold, conn->agreement.remote_inv);
}

/**
 * rpcrdma_message_closed - the event of a connection that has ended
 * @skb: the message
 * @conn: the connection
 *
 * Context: as the observer's closed.
 * Return: 0 or -EMSGSIZE.
 */
int rpcrdma_message_closed(struct sk_buff *skb, const struct rpcrdma_conn *conn)
{
	return put_identity(skb, conn, true) ?:
	       put_device_port(skb, conn->device->ib->name, conn->port) ?:
	       nla_put_uint(skb, RPCRDMA_A_CONNECTION_STATE_AGE, rpcrdma_conn_age_ms(conn)) ?:
	       put_cause(skb, conn->status);
}

/**
 * rpcrdma_message_refused - the event of a request that was refused
 * @skb: the message
 * @refused: what is known of it
 *
 * Context: any.
 * Return: 0 or -EMSGSIZE.
 */
int rpcrdma_message_refused(struct sk_buff *skb, const struct rpcrdma_refused *refused)
{
	return put_ends(skb, refused->server, refused->peer, refused->local) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_REFUSAL, refused->why) ?:
	       put_cause(skb, refused->err);
}

/**
 * rpcrdma_message_listener - all that is known of a listener
 * @skb: the message
 * @status: what rpcrdma_listener_walk() says of it
 *
 * Context: any.
 * Return: 0 or -EMSGSIZE.
 */
int rpcrdma_message_listener(struct sk_buff *skb, const struct rpcrdma_listener_status *status)
{
	return put_address(skb, status->addr, RPCRDMA_A_LISTENER_LOCAL,
			   RPCRDMA_A_LISTENER_LOCAL_PORT) ?:
	       nla_put_u32(skb, RPCRDMA_A_LISTENER_FAMILY, status->addr->ss_family) ?:
	       nla_put_u32(skb, RPCRDMA_A_LISTENER_STATE,
			   status->listening ? RPCRDMA_LISTENER_STATE_LISTENING :
					       RPCRDMA_LISTENER_STATE_WAITING) ?:
	       nla_put_uint(skb, RPCRDMA_A_LISTENER_STATE_AGE, status->state_ms) ?:
	       nla_put_uint(skb, RPCRDMA_A_LISTENER_ACCEPTED, status->accepted) ?:
	       nla_put_uint(skb, RPCRDMA_A_LISTENER_REFUSED, status->refused) ?:
	       nla_put_u32(skb, RPCRDMA_A_LISTENER_WAITING, status->waiting);
}

static u32 port_protocol(const struct ib_device *ib, u32 port)
{
	if (rdma_protocol_iwarp(ib, port))
		return RPCRDMA_PORT_PROTOCOL_IWARP;
	if (rdma_protocol_roce(ib, port))
		return RPCRDMA_PORT_PROTOCOL_ROCE;
	if (rdma_protocol_ib(ib, port))
		return RPCRDMA_PORT_PROTOCOL_INFINIBAND;
	return RPCRDMA_PORT_PROTOCOL_OTHER;
}

/* The network interface of the port's first GID. Return: its ifindex; zero if none. */
static u32 port_ifindex(struct ib_device *ib, u32 port, const struct net *net)
{
	const struct ib_gid_attr *gid = rdma_get_gid_attr(ib, port, 0);
	struct net_device *ndev;
	u32 ifindex = 0;

	if (IS_ERR(gid))
		return 0;
	rcu_read_lock();
	ndev = rcu_dereference(gid->ndev);
	if (ndev && net_eq(dev_net(ndev), net))
		ifindex = ndev->ifindex;
	rcu_read_unlock();
	rdma_put_gid_attr(gid);
	return ifindex;
}

static int put_port(struct sk_buff *skb, struct ib_device *ib, u32 port, const struct net *net)
{
	struct nlattr *nest = nla_nest_start(skb, RPCRDMA_A_DEVICE_PORT);
	enum ib_port_state state = IB_PORT_NOP;
	int err;

	if (!nest)
		return -EMSGSIZE;
	ib_get_cached_port_state(ib, port, &state);
	err = nla_put_u32(skb, RPCRDMA_A_PORT_NUMBER, port) ?:
	      nla_put_u32(skb, RPCRDMA_A_PORT_STATE, state) ?:
	      nla_put_u32(skb, RPCRDMA_A_PORT_PROTOCOL, port_protocol(ib, port)) ?:
	      put_if(skb, RPCRDMA_A_PORT_IFINDEX, port_ifindex(ib, port, net));
	nla_nest_end(skb, nest);
	return err;
}

/* A switch has one port with the number zero, others count from one. */
static int put_ports(struct sk_buff *skb, struct ib_device *ib, const struct net *net)
{
	u32 port;
	int err = 0;

	rdma_for_each_port(ib, port) {
		err = put_port(skb, ib, port, net);
		if (err)
			break;
	}
	return err;
}

static u32 device_usability(const struct rpcrdma_device *device)
{
	if (device->usable)
		return RPCRDMA_USABILITY_USABLE;
	return device->ib->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS ?
	       RPCRDMA_USABILITY_NO_PAGE_LIST : RPCRDMA_USABILITY_NO_REGISTRATION;
}

static int put_limits(struct sk_buff *skb, const struct rpcrdma_device *device)
{
	const struct ib_device_attr *attrs = &device->ib->attrs;
	bool gaps = device->mr_type == IB_MR_TYPE_SG_GAPS;

	return nla_put_u32(skb, RPCRDMA_A_DEVICE_MAX_QUEUE_WRS, attrs->max_qp_wr) ?:
	       nla_put_u32(skb, RPCRDMA_A_DEVICE_MAX_CQES, attrs->max_cqe) ?:
	       nla_put_u32(skb, RPCRDMA_A_DEVICE_MAX_SEND_SGES, attrs->max_send_sge) ?:
	       nla_put_u32(skb, RPCRDMA_A_DEVICE_MAX_RECV_SGES, attrs->max_recv_sge) ?:
	       nla_put_u32(skb, RPCRDMA_A_DEVICE_MAX_PAGE_LIST,
			   attrs->max_fast_reg_page_list_len) ?:
	       nla_put_uint(skb, RPCRDMA_A_DEVICE_MAX_MR_SIZE, attrs->max_mr_size) ?:
	       nla_put_uint(skb, RPCRDMA_A_DEVICE_MAX_MRS, attrs->max_mr) ?:
	       nla_put_uint(skb, RPCRDMA_A_DEVICE_MAX_QPS, attrs->max_qp) ?:
	       nla_put_u32(skb, RPCRDMA_A_DEVICE_MR_PAGES, device->max_mr_pages) ?:
	       (gaps ? nla_put_flag(skb, RPCRDMA_A_DEVICE_SG_GAPS) : 0) ?:
	       nla_put_u32(skb, RPCRDMA_A_DEVICE_MAX_READS_SERVED, attrs->max_qp_rd_atom) ?:
	       nla_put_u32(skb, RPCRDMA_A_DEVICE_MAX_READS_ISSUED,
			   attrs->max_qp_init_rd_atom);
}

/**
 * rpcrdma_message_device - all that is known of a device
 * @skb: the message
 * @device: the device
 * @net: network namespace of the reader
 *
 * Context: as rpcrdma_visit_device_fn.
 * Return: 0 or -EMSGSIZE.
 */
int rpcrdma_message_device(struct sk_buff *skb, const struct rpcrdma_device *device,
			   const struct net *net)
{
	struct ib_device *ib = device->ib;
	const u8 *guid = (const u8 *)&ib->node_guid;
	char text[sizeof("0011:2233:4455:6677")];

	snprintf(text, sizeof(text), "%02x%02x:%02x%02x:%02x%02x:%02x%02x", guid[0], guid[1],
		 guid[2], guid[3], guid[4], guid[5], guid[6], guid[7]);
	return nla_put_string(skb, RPCRDMA_A_DEVICE_NAME, ib->name) ?:
	       nla_put_u32(skb, RPCRDMA_A_DEVICE_INDEX, ib->index) ?:
	       nla_put_string(skb, RPCRDMA_A_DEVICE_NODE_GUID, text) ?:
	       nla_put_u32(skb, RPCRDMA_A_DEVICE_USABILITY, device_usability(device)) ?:
	       nla_put_u32(skb, RPCRDMA_A_DEVICE_PORT_COUNT,
			   rdma_end_port(ib) - rdma_start_port(ib) + 1) ?:
	       put_ports(skb, ib, net) ?:
	       put_limits(skb, device);
}
