// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The generic netlink family: dumps of devices, listeners, connections and peers, and events.
 *
 * Anybody may read: what it shows is no more than mountstats, sysctls and the RDMA tools
 * show to anybody, and only of the reader's network namespace.
 *
 * Nothing here takes a lock that messages take, so numbers that belong together may be from
 * slightly different moments. Nothing calls into a driver, which may need a lock that it holds
 * while its device is removed: the RDMA core keeps the state of ports.
 *
 * Each function put_...() adds attributes to a message, and returns 0 or -EMSGSIZE.
 */
#define pr_fmt(fmt) "rpcrdma: " fmt

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/sizes.h>
#include <linux/sunrpc/addr.h>
#include <net/genetlink.h>
#include <rdma/ib_cache.h>

#include "../conn/status.h"
#include "../main.h"
#include "status.h"

static struct genl_family status_family;

/* The moment is read first, so that no age is negative. */
static u64 age_ms(const ktime_t *since)
{
	ktime_t moment = READ_ONCE(*since);

	return ktime_ms_delta(ktime_get(), moment);
}

/* Zero does not apply, and is left out. */
static int put_if(struct sk_buff *skb, int type, u32 value)
{
	return value ? nla_put_u32(skb, type, value) : 0;
}

/* AF_UNSPEC: the address is not known, and is left out. */
static int put_address(struct sk_buff *skb, const struct sockaddr_storage *addr, int text, int port)
{
	char buffer[RPCRDMA_PEER_LEN];

	if (addr->ss_family == AF_UNSPEC)
		return 0;
	snprintf(buffer, sizeof(buffer), "%pISpc", addr);
	return nla_put_string(skb, text, buffer) ?:
	       nla_put_u32(skb, port, rpc_get_port((const struct sockaddr *)addr));
}

static int put_role(struct sk_buff *skb, bool server)
{
	static_assert(RPCRDMA_CONNECTION_ROLE_SERVER == 1 && !RPCRDMA_CONNECTION_ROLE_CLIENT);
	return nla_put_u32(skb, RPCRDMA_A_CONNECTION_ROLE, server);
}

static int put_ends(struct sk_buff *skb, bool server, const struct sockaddr_storage *peer,
		    const struct sockaddr_storage *local)
{
	return put_role(skb, server) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_FAMILY, peer->ss_family) ?:
	       put_address(skb, peer, RPCRDMA_A_CONNECTION_PEER, RPCRDMA_A_CONNECTION_PEER_PORT) ?:
	       put_address(skb, local, RPCRDMA_A_CONNECTION_LOCAL, RPCRDMA_A_CONNECTION_LOCAL_PORT);
}

/* A client's own address may be half set until it is established. */
static int put_identity(struct sk_buff *skb, const struct rpcrdma_conn *conn, bool established)
{
	static const struct sockaddr_storage unknown = { .ss_family = AF_UNSPEC };

	return nla_put_u32(skb, RPCRDMA_A_CONNECTION_ID, conn->id) ?:
	       put_ends(skb, conn->server, &conn->peer_addr,
			established || conn->server ? &conn->local_addr : &unknown);
}

static int put_agreed(struct sk_buff *skb, const struct rpcrdma_conn *conn, u32 version)
{
	return nla_put_string(skb, RPCRDMA_A_CONNECTION_DEVICE, conn->device->ib->name) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_PORT, conn->port) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_CALL_THRESHOLD,
			   rpcrdma_conn_call_threshold(conn, version)) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_REPLY_THRESHOLD,
			   rpcrdma_conn_reply_threshold(conn, version)) ?:
	       (conn->agreement.remote_inv ?
		nla_put_flag(skb, RPCRDMA_A_CONNECTION_REMOTE_INVALIDATION) : 0);
}

/* Octets that a connection keeps allocated, without those of its role */
static u64 conn_memory(const struct rpcrdma_conn *conn, u32 recvs, u32 mrs)
{
	u64 recv = sizeof(struct rpcrdma_recv) + conn->recv_size;
	u64 send = sizeof(struct rpcrdma_send) + READ_ONCE(conn->send_size) +
		   (1 + conn->send_sges) * sizeof(struct ib_sge);
	u64 mr = sizeof(struct rpcrdma_mr) +
		 conn->device->max_mr_pages * sizeof(struct scatterlist);

	return sizeof(*conn) + recvs * recv + READ_ONCE(conn->sends.num) * send + mrs * mr;
}

/* A server's registrations are those of rdma_rw, which does not tell how many it has. */
static int put_client(struct sk_buff *skb, const struct rpcrdma_conn *conn,
		      const struct rpcrdma_role_status *role, u32 mrs)
{
	u32 idle = min(READ_ONCE(conn->mrs.num_idle), mrs);

	return nla_put_u32(skb, RPCRDMA_A_CONNECTION_XPRT_ID, role->xprt_id) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_CREDITS_WAITING, role->waiting) ?:
	       put_if(skb, RPCRDMA_A_CONNECTION_RESPONDER_RESOURCES,
		      conn->device->max_read_responder) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_REGISTRATIONS_IN_USE, mrs - idle) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_REGISTRATIONS_IDLE, idle);
}

/* Numbers change while they are read, so no difference may become negative. */
static int put_live(struct sk_buff *skb, const struct rpcrdma_conn *conn,
		    const struct rpcrdma_role_status *role)
{
	s32 held = READ_ONCE(conn->recvs_taken) - READ_ONCE(conn->recvs_returned);
	u32 idle = READ_ONCE(conn->num_recvs_free) + max(held, 0);
	u32 recvs = READ_ONCE(conn->num_recvs);
	u32 mrs = READ_ONCE(conn->mrs.num);

	return put_agreed(skb, conn, role->version ?: RPCRDMA_VERSION_ONE) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_VERSION, role->version) ?:
	       put_if(skb, RPCRDMA_A_CONNECTION_CREDITS_REQUESTED, role->requested) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_CREDITS_GRANTED, role->granted) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_CREDITS_IN_USE, role->in_use) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_RECEIVES, recvs) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_RECEIVES_POSTED, recvs - min(recvs, idle)) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_SEND_QUEUE_SIZE, conn->sq.size) ?:
	       nla_put_u32(skb, RPCRDMA_A_CONNECTION_SEND_QUEUE_USED,
			   conn->sq.size - READ_ONCE(conn->sq.free)) ?:
	       nla_put_uint(skb, RPCRDMA_A_CONNECTION_MEMORY,
			    conn_memory(conn, recvs, mrs) + role->memory) ?:
	       (conn->shared ? nla_put_flag(skb, RPCRDMA_A_CONNECTION_SHARED_RECEIVES) : 0) ?:
	       (conn->server ? put_if(skb, RPCRDMA_A_CONNECTION_INITIATOR_DEPTH, conn->read_depth) :
			       put_client(skb, conn, role, mrs));
}

/* @counts: by attribute; element zero has what does not count */
static int put_counts(struct sk_buff *skb, const u64 *counts, unsigned int last)
{
	unsigned int i;
	int err = 0;

	for (i = 1; i <= last && !err; i++)
		err = nla_put_uint(skb, i, counts[i]);
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

static int put_nest(struct sk_buff *skb, int type, const u64 *counts, unsigned int last)
{
	struct nlattr *nest = nla_nest_start(skb, type);
	int err = nest ? put_counts(skb, counts, last) : -EMSGSIZE;

	if (nest)
		nla_nest_end(skb, nest);
	return err;
}

/* @counters: the caller's own; this changes them. */
static int put_counters(struct sk_buff *skb, struct rpcrdma_counters *counters)
{
	unsigned int i;
	int err;

	counters->waits[RPCRDMA_A_WAITS_CREDIT] += counters->slot_waits;
	err = put_traffic(skb, RPCRDMA_A_CONNECTION_SENT, &counters->sent) ?:
	      put_traffic(skb, RPCRDMA_A_CONNECTION_RECEIVED, &counters->received) ?:
	      put_nest(skb, RPCRDMA_A_CONNECTION_WAITS, counters->waits, RPCRDMA_A_WAITS_MAX) ?:
	      put_nest(skb, RPCRDMA_A_CONNECTION_ERRORS, counters->errors, RPCRDMA_A_ERRORS_MAX);
	for (i = 1; i <= RPCRDMA_LATENCY_BUCKETS && !err; i++)
		err = nla_put_uint(skb, RPCRDMA_A_CONNECTION_LATENCY, counters->latency[i]);
	return err;
}

/* If the connection is established, its role and its device are set up. */
static int put_conn(struct sk_buff *skb, struct rpcrdma_conn *conn)
{
	struct rpcrdma_role_status role = {};
	bool entered = rpcrdma_conn_enter(conn);
	bool live = entered && rpcrdma_conn_established(conn);
	struct rpcrdma_counters counters;
	int err;

	/* Whoever counts takes no lock for it; each element is valid by itself. */
	data_race(counters = conn->counters);
	if (live && conn->ops->describe)
		conn->ops->describe(conn, &role);
	err = put_identity(skb, conn, live) ?:
	      nla_put_u32(skb, RPCRDMA_A_CONNECTION_STATE, READ_ONCE(conn->state)) ?:
	      nla_put_uint(skb, RPCRDMA_A_CONNECTION_STATE_AGE, age_ms(&conn->state_since)) ?:
	      put_if(skb, RPCRDMA_A_CONNECTION_CAUSE, -READ_ONCE(conn->status)) ?:
	      (live ? put_live(skb, conn, &role) : 0) ?:
	      put_counters(skb, &counters);
	if (entered)
		rpcrdma_conn_leave(conn);
	return err;
}

static int put_peer(struct sk_buff *skb, struct rpcrdma_history *history)
{
	return put_role(skb, history->server) ?:
	       (*history->peer ?
		nla_put_string(skb, RPCRDMA_A_CONNECTION_PEER, history->peer) : 0) ?:
	       nla_put_uint(skb, RPCRDMA_A_CONNECTION_STATE_AGE, age_ms(&history->since)) ?:
	       nla_put_uint(skb, RPCRDMA_A_CONNECTION_CONNECTS, history->counters.connects) ?:
	       put_counters(skb, &history->counters);
}

static int put_listener(struct sk_buff *skb, const struct rpcrdma_listener *listener)
{
	return put_address(skb, &listener->addr, RPCRDMA_A_LISTENER_LOCAL,
			   RPCRDMA_A_LISTENER_LOCAL_PORT) ?:
	       nla_put_u32(skb, RPCRDMA_A_LISTENER_FAMILY, listener->addr.ss_family) ?:
	       nla_put_u32(skb, RPCRDMA_A_LISTENER_STATE,
			   READ_ONCE(listener->cm_id) ? RPCRDMA_LISTENER_STATE_LISTENING :
							RPCRDMA_LISTENER_STATE_WAITING) ?:
	       nla_put_uint(skb, RPCRDMA_A_LISTENER_STATE_AGE, age_ms(&listener->state_since)) ?:
	       nla_put_uint(skb, RPCRDMA_A_LISTENER_ACCEPTED, READ_ONCE(listener->accepted)) ?:
	       nla_put_uint(skb, RPCRDMA_A_LISTENER_REFUSED, READ_ONCE(listener->refused)) ?:
	       nla_put_u32(skb, RPCRDMA_A_LISTENER_WAITING, READ_ONCE(listener->num_pending));
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

/* The network interface of the port's first GID; zero: none */
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

	/* Both number the states as the InfiniBand specification does. */
	static_assert((int)RPCRDMA_PORT_STATE_ACTIVE_DEFER == (int)IB_PORT_ACTIVE_DEFER);
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
	       nla_put_u32(skb, RPCRDMA_A_DEVICE_MAX_READS_ISSUED, attrs->max_qp_init_rd_atom);
}

static int put_shared(struct sk_buff *skb, const struct rpcrdma_device *device)
{
	return nla_put_u32(skb, RPCRDMA_A_DEVICE_SHARED_RECEIVES,
			   atomic_read(&device->shared_recvs)) ?:
	       nla_put_uint(skb, RPCRDMA_A_DEVICE_SHARED_LIMITS,
			    atomic_long_read(&device->shared_limits)) ?:
	       nla_put_uint(skb, RPCRDMA_A_DEVICE_SHARED_EMPTY,
			    atomic_long_read(&device->shared_empty)) ?:
	       nla_put_uint(skb, RPCRDMA_A_DEVICE_CREDITS_EXCEEDED,
			    atomic_long_read(&device->exceeded));
}

static int put_rdma_device(struct sk_buff *skb, const struct rpcrdma_device *device,
			   const struct net *net)
{
	struct ib_device *ib = device->ib;
	const u8 *guid = (const u8 *)&ib->node_guid;
	char text[sizeof("0011:2233:4455:6677")];
	u32 port;
	int err;

	snprintf(text, sizeof(text), "%02x%02x:%02x%02x:%02x%02x:%02x%02x", guid[0], guid[1],
		 guid[2], guid[3], guid[4], guid[5], guid[6], guid[7]);
	err = nla_put_string(skb, RPCRDMA_A_DEVICE_NAME, ib->name) ?:
	      nla_put_u32(skb, RPCRDMA_A_DEVICE_INDEX, ib->index) ?:
	      nla_put_string(skb, RPCRDMA_A_DEVICE_NODE_GUID, text) ?:
	      nla_put_u32(skb, RPCRDMA_A_DEVICE_USABILITY, device_usability(device)) ?:
	      nla_put_u32(skb, RPCRDMA_A_DEVICE_PORT_COUNT,
			  rdma_end_port(ib) - rdma_start_port(ib) + 1) ?:
	      put_limits(skb, device) ?:
	      put_shared(skb, device);
	for (port = rdma_start_port(ib); port <= rdma_end_port(ib) && !err; port++)
		err = put_port(skb, ib, port, net);
	return err;
}

static void *dump_begin(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd)
{
	return genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &status_family,
			   NLM_F_MULTI, cmd);
}

/*
 * End the description of object @id, or leave it out if @err. The dump goes on after the last
 * @id, so objects that come or go meanwhile make it neither skip nor repeat others. If cb->seq is
 * not that of the object before, the reader is told to begin again.
 */
static int dump_end(struct sk_buff *skb, struct netlink_callback *cb, void *header, u32 id, int err)
{
	if (err) {
		genlmsg_cancel(skb, header);
		return err;
	}
	genl_dump_check_consistent(cb, header);
	genlmsg_end(skb, header);
	cb->args[0] = id;
	return 0;
}

/* What does not fit goes into the next message; what does not fit into an empty one is an error. */
static int dump_result(const struct sk_buff *skb, int err)
{
	return err && (err != -EMSGSIZE || !skb->len) ? err : skb->len;
}

/* A switch of virtual functions may have hundreds of ports, of some 36 octets each. */
static int dump_devices_start(struct netlink_callback *cb)
{
	cb->min_dump_alloc = SZ_32K;
	return 0;
}

static int dump_devices(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct net *net = sock_net(cb->skb->sk);
	struct rpcrdma_device *device;
	void *header;
	int err = 0;

	mutex_lock(&rpcrdma_devices_lock);
	list_for_each_entry(device, &rpcrdma_devices, all) {
		if (device->id <= cb->args[0] || !rdma_dev_access_netns(device->ib, net))
			continue;
		header = dump_begin(skb, cb, RPCRDMA_CMD_DEVICE_GET);
		err = dump_end(skb, cb, header, device->id,
			       header ? put_rdma_device(skb, device, net) : -EMSGSIZE);
		if (err)
			break;
	}
	mutex_unlock(&rpcrdma_devices_lock);
	return dump_result(skb, err);
}

static int dump_listeners(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rpcrdma_listener *listener;
	void *header;
	int err = 0;

	mutex_lock(&rpcrdma_listeners_lock);
	list_for_each_entry(listener, &rpcrdma_listeners, all) {
		if (listener->id <= cb->args[0] || !net_eq(listener->net, sock_net(cb->skb->sk)))
			continue;
		header = dump_begin(skb, cb, RPCRDMA_CMD_LISTENER_GET);
		err = dump_end(skb, cb, header, listener->id,
			       header ? put_listener(skb, listener) : -EMSGSIZE);
		if (err)
			break;
	}
	mutex_unlock(&rpcrdma_listeners_lock);
	return dump_result(skb, err);
}

static int dump_conns(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct rpcrdma_conn *conn;
	void *header;
	int err = 0;

	while (!err) {
		conn = rpcrdma_conn_find(sock_net(cb->skb->sk), cb->args[0] + 1);
		if (!conn)
			break;
		header = dump_begin(skb, cb, RPCRDMA_CMD_CONNECTION_GET);
		err = dump_end(skb, cb, header, conn->id, header ? put_conn(skb, conn) : -EMSGSIZE);
		rpcrdma_conn_put(conn);
		cond_resched();
	}
	return dump_result(skb, err);
}

static int dump_peers(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct net *net = sock_net(cb->skb->sk);
	struct rpcrdma_history peer;
	unsigned int changes;
	void *header;
	int err = 0;

	while (!err) {
		changes = rpcrdma_history_get(net, cb->args[0], &peer);
		if (!changes)
			break;
		cb->seq = changes;
		header = dump_begin(skb, cb, RPCRDMA_CMD_PEER_GET);
		err = dump_end(skb, cb, header, cb->args[0] + 1,
			       header ? put_peer(skb, &peer) : -EMSGSIZE);
	}
	return dump_result(skb, err);
}

static const struct genl_ops status_ops[] = {
	{
		.cmd = RPCRDMA_CMD_DEVICE_GET,
		.start = dump_devices_start,
		.dumpit = dump_devices,
	},
	{ .cmd = RPCRDMA_CMD_LISTENER_GET, .dumpit = dump_listeners },
	{ .cmd = RPCRDMA_CMD_CONNECTION_GET, .dumpit = dump_conns },
	{ .cmd = RPCRDMA_CMD_PEER_GET, .dumpit = dump_peers },
};

static const struct genl_multicast_group status_groups[] = {
	{ .name = RPCRDMA_MCGRP_EVENTS },
};

static struct genl_family status_family __ro_after_init = {
	.name = RPCRDMA_FAMILY_NAME,
	.version = RPCRDMA_FAMILY_VERSION,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = status_ops,
	.n_ops = ARRAY_SIZE(status_ops),
	.mcgrps = status_groups,
	.n_mcgrps = ARRAY_SIZE(status_groups),
};

/* NULL: nobody listens, or memory is short; then listeners are told that they missed something. */
static struct sk_buff *event_begin(struct net *net, u8 cmd)
{
	struct sk_buff *skb;

	if (!genl_has_listeners(&status_family, net, 0))
		return NULL;
	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_NOWAIT | __GFP_NOWARN);
	if (skb)
		genlmsg_put(skb, 0, 0, &status_family, 0, cmd);
	else
		genl_set_err(&status_family, net, 0, 0, -ENOBUFS);
	return skb;
}

static void event_send(struct net *net, struct sk_buff *skb, int err)
{
	if (WARN_ON_ONCE(err)) {
		nlmsg_free(skb);
		return;
	}
	nlmsg_end(skb, nlmsg_hdr(skb));
	genlmsg_multicast_netns(&status_family, net, skb, 0, 0, GFP_NOWAIT | __GFP_NOWARN);
}

static int put_end(struct sk_buff *skb, const struct rpcrdma_conn *conn)
{
	return nla_put_uint(skb, RPCRDMA_A_CONNECTION_STATE_AGE, age_ms(&conn->established_at)) ?:
	       put_if(skb, RPCRDMA_A_CONNECTION_CAUSE, -conn->status);
}

/**
 * rpcrdma_status_event - tell that a connection is established, or has ended
 * @conn: the connection, with its device
 * @cmd: %RPCRDMA_CMD_CONNECTED or %RPCRDMA_CMD_CLOSED
 *
 * Context: process context. Does not sleep for memory, because reclaim may wait for the caller.
 */
void rpcrdma_status_event(const struct rpcrdma_conn *conn, u8 cmd)
{
	struct sk_buff *skb = event_begin(conn->net, cmd);

	if (skb)
		event_send(conn->net, skb,
			   put_identity(skb, conn, true) ?:
			   put_agreed(skb, conn, RPCRDMA_VERSION_ONE) ?:
			   (cmd == RPCRDMA_CMD_CLOSED ? put_end(skb, conn) : 0));
}

/**
 * rpcrdma_status_refused - tell that a connection request was refused
 * @net: network namespace of the addresses
 * @why: the reason; %RPCRDMA_REFUSAL_PEER: this end is the client
 * @err: the cause, a negative errno
 * @local: this end, or AF_UNSPEC in ss_family if that is not known
 * @peer: the other end
 *
 * Context: as rpcrdma_status_event().
 */
void rpcrdma_status_refused(struct net *net, enum rpcrdma_refusal why, int err,
			    const struct sockaddr_storage *local,
			    const struct sockaddr_storage *peer)
{
	struct sk_buff *skb = event_begin(net, RPCRDMA_CMD_REFUSED);

	if (skb)
		event_send(net, skb, put_ends(skb, why != RPCRDMA_REFUSAL_PEER, peer, local) ?:
				     nla_put_u32(skb, RPCRDMA_A_CONNECTION_REFUSAL, why) ?:
				     put_if(skb, RPCRDMA_A_CONNECTION_CAUSE, -err));
}

/*
 * Connections exist only while the family is registered, so events need no check. Anybody may ask
 * for peers as soon as it is, so their records are there before.
 */
int rpcrdma_status_init(void)
{
	int err = register_pernet_subsys(&rpcrdma_history_ops);

	if (err)
		return err;
	err = genl_register_family(&status_family);
	if (!err)
		return 0;
	pr_err("not loaded: the netlink family \"%s\" cannot be registered: %pe\n",
	       RPCRDMA_FAMILY_NAME, ERR_PTR(err));
	unregister_pernet_subsys(&rpcrdma_history_ops);
	return err;
}

void rpcrdma_status_exit(void)
{
	genl_unregister_family(&status_family);
	unregister_pernet_subsys(&rpcrdma_history_ops);
}
