// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What others may see of connections. Nothing here takes a lock that messages take:
 * numbers that belong together may be from slightly different moments.
 */
#include <linux/sched.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>

#include "conn_private.h"

/* By id, from rpcrdma_conn_alloc() until the memory is freed. No entry is a reference. */
static DEFINE_XARRAY_FLAGS(conns, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_BH);
static u32 conn_next_id;

static void observe_conn_not(const struct rpcrdma_conn *conn)
{
}

static void observe_refused_not(const struct rpcrdma_refused *refused)
{
}

static const struct rpcrdma_observer observe_not = {
	.connected = observe_conn_not,
	.closed = observe_conn_not,
	.refused = observe_refused_not,
};

const struct rpcrdma_observer *rpcrdma_observer = &observe_not;

/**
 * rpcrdma_conn_observe - be told what happens to connections
 * @observer: who is told
 *
 * Context: before rpcrdma_conn_init(). The observer stays until rpcrdma_conn_exit() has
 * returned.
 */
void rpcrdma_conn_observe(const struct rpcrdma_observer *observer)
{
	rpcrdma_observer = observer;
}

/**
 * rpcrdma_conn_refused - tell that a connection request was refused
 * @refused: what is known of it
 *
 * Context: process context.
 */
void rpcrdma_conn_refused(const struct rpcrdma_refused *refused)
{
	rpcrdma_observer->refused(refused);
}

/**
 * rpcrdma_conn_publish - give a connection its number, by which others find it
 * @conn: the new connection
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int rpcrdma_conn_publish(struct rpcrdma_conn *conn)
{
	int err = xa_alloc_cyclic_bh(&conns, &conn->id, conn, xa_limit_32b, &conn_next_id,
				     GFP_KERNEL);

	return err < 0 ? err : 0;
}

/**
 * rpcrdma_conn_unpublish - undo rpcrdma_conn_publish()
 * @conn: a connection without references, whose memory is freed by RCU
 *
 * Context: any but hard interrupts.
 */
void rpcrdma_conn_unpublish(struct rpcrdma_conn *conn)
{
	xa_erase_bh(&conns, conn->id);
}

/**
 * rpcrdma_conn_find - find the next connection
 * @id: where to begin; set to the number of the connection
 *
 * A walk that goes on after the number of the last connection sees each one that exists
 * all the time exactly once, whatever comes and goes meanwhile.
 *
 * Context: any but hard interrupts.
 * Return: the connection with the lowest number that is not below @id, with a reference
 * for the caller; or NULL.
 */
struct rpcrdma_conn *rpcrdma_conn_find(unsigned long *id)
{
	struct rpcrdma_conn *conn;

	rcu_read_lock();
	conn = xa_find(&conns, id, ULONG_MAX, XA_PRESENT);
	while (conn && !kref_get_unless_zero(&conn->ref))
		conn = xa_find_after(&conns, id, ULONG_MAX, XA_PRESENT);
	rcu_read_unlock();
	return conn;
}

/**
 * rpcrdma_conn_in_net - does a connection belong to a network namespace?
 * @conn: the connection
 * @net: the namespace
 *
 * Context: any.
 * Return: true if it does. Then its role, peer_addr and peer are valid.
 */
bool rpcrdma_conn_in_net(const struct rpcrdma_conn *conn, const struct net *net)
{
	/* Pairs with rpcrdma_conn_set_net(). The namespace may be gone, so compare cookies. */
	return smp_load_acquire(&conn->net) && conn->net_cookie == net->net_cookie;
}

/**
 * rpcrdma_conn_age_ms - since when a connection is, or was, established
 * @conn: a connection that was established
 *
 * Context: any.
 * Return: milliseconds.
 */
u64 rpcrdma_conn_age_ms(const struct rpcrdma_conn *conn)
{
	return ktime_ms_delta(ktime_get(), conn->established_at);
}

static u64 status_memory(const struct rpcrdma_conn *conn, const struct rpcrdma_conn_status *status)
{
	const struct rpcrdma_device *device = conn->device;
	u64 recv = sizeof(struct rpcrdma_recv) + conn->recv_size;
	u64 send = sizeof(struct rpcrdma_send) + READ_ONCE(conn->send_size) +
		   (1 + conn->send_sges) * sizeof(struct ib_sge);
	u64 mr = sizeof(struct rpcrdma_mr) + device->max_mr_pages * sizeof(struct scatterlist);

	return sizeof(*conn) + status->recvs * recv + READ_ONCE(conn->num_sends) * send +
	       status->mrs * mr;
}

static void status_agreed(const struct rpcrdma_conn *conn, struct rpcrdma_conn_status *status)
{
	u32 version = status->role.version ?: RPCRDMA_VERSION_ONE;

	strscpy(status->device, conn->device->ib->name, sizeof(status->device));
	status->port = conn->port;
	status->call_threshold = rpcrdma_conn_call_threshold(conn, version);
	status->reply_threshold = rpcrdma_conn_reply_threshold(conn, version);
	status->remote_inv = conn->agreement.remote_inv;
	if (conn->server)
		status->reads_issued = conn->read_depth;
	else
		status->reads_served = conn->device->max_read_responder;
}

/* Differences of numbers that change meanwhile must not become negative. */
static u32 status_less(u32 all, u32 part)
{
	return all > part ? all - part : 0;
}

static void status_pools(const struct rpcrdma_conn *conn, struct rpcrdma_conn_status *status)
{
	u32 held = READ_ONCE(conn->recvs_taken) - READ_ONCE(conn->recvs_returned);

	status->mrs = READ_ONCE(conn->num_mrs);
	status->mrs_idle = min(READ_ONCE(conn->num_mrs_free), status->mrs);
	status->recvs = READ_ONCE(conn->num_recvs);
	status->recvs_posted = status_less(status->recvs, READ_ONCE(conn->num_recvs_free));
	if ((s32)held > 0)
		status->recvs_posted = status_less(status->recvs_posted, held);
	status->sq_size = conn->sq.size;
	status->sq_used = status_less(conn->sq.size, READ_ONCE(conn->sq.free));
	status->memory = status_memory(conn, status);
}

static void status_copied(struct rpcrdma_traffic *traffic)
{
	traffic->copied_octets = traffic->inline_octets -
				 min(traffic->inline_octets, traffic->gathered_octets);
}

/**
 * rpcrdma_conn_status - describe a connection at this moment
 * @conn: the connection
 * @status: filled in
 *
 * Context: may sleep; the caller holds a reference.
 */
void rpcrdma_conn_status(struct rpcrdma_conn *conn, struct rpcrdma_conn_status *status)
{
	ktime_t since;

	memset(status, 0, sizeof(*status));
	status->state = READ_ONCE(conn->state);
	since = READ_ONCE(conn->state_since);
	status->state_ms = ktime_ms_delta(ktime_get(), since);
	status->err = READ_ONCE(conn->status);
	/* Whoever counts takes no lock for it; each element is valid by itself. */
	data_race(status->counters = conn->counters);
	status_copied(&status->counters.sent);
	if (!conn->server)
		status_copied(&status->counters.received);
	if (conn->server)
		status->counters.waits[RPCRDMA_A_WAITS_SEND_QUEUE] += READ_ONCE(conn->sq_waits);

	if (!rpcrdma_conn_enter(conn))
		return;
	/* Whoever sees this state sees the role and all that was set up before. */
	status->live = rpcrdma_conn_established(conn);
	if (status->live) {
		if (conn->ops->describe)
			conn->ops->describe(conn, &status->role);
		status->counters.waits[RPCRDMA_A_WAITS_CREDIT] += status->role.credit_waits;
		status_agreed(conn, status);
		status_pools(conn, status);
	}
	rpcrdma_conn_leave(conn);
}
