// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * How a connection is established over rdma_cm, from either end.
 *
 * rdma_cm delivers the events of all connections of the system one after the other.
 * So the event handler only notes the event, starts the route lookup, changes the
 * state and queues work items. Everything that takes longer runs in these.
 */
#define DEBUG	/* connections that begin: at level debug, until dynamic debug turns it off */
#define pr_fmt(fmt) "rpcrdma: " fmt

#include <linux/sched/mm.h>
#include <rdma/ib_addr.h>

#include "conn_private.h"
#include "../status/status.h"
#include "../trace.h"

/*
 * How often the device repeats a message before it gives up: when it gets no answer,
 * and when the peer has posted no Receive. For the second, seven means for ever.
 * With six, a peer that is late for a moment keeps the connection, and one that never
 * posts Receives loses it.
 */
#define RETRY_COUNT	6
#define RNR_RETRY_COUNT	6
#define RNR_RETRY_FOREVER	7

/*
 * ARP and neighbour discovery ask three times, within three seconds. When they have
 * failed, nothing asks again before this time is over, even if the network is back.
 */
#define RESOLVE_TIMEOUT_MS	5000U

/* Under post_lock, so that nothing is queued after the teardown has cancelled @work. */
static void conn_queue(struct rpcrdma_conn *conn, enum rpcrdma_state state,
		       struct work_struct *work)
{
	spin_lock_bh(&conn->post_lock);
	if (conn->state == state)
		queue_work(rpcrdma_wq, work);
	spin_unlock_bh(&conn->post_lock);
}

static void conn_start_timer(struct rpcrdma_conn *conn)
{
	spin_lock_bh(&conn->post_lock);
	if (conn->state < RPCRDMA_STATE_ESTABLISHED)
		queue_delayed_work(rpcrdma_wq, &conn->timer,
				   msecs_to_jiffies(conn->config.timeout_ms));
	spin_unlock_bh(&conn->post_lock);
}

static void conn_log(const struct rpcrdma_conn *conn)
{
	const struct rpcrdma_agreement *agreement = &conn->agreement;

	trace_rpcrdma_conn_agreed(conn, conn->config.version_max > RPCRDMA_VERSION_ONE ? 0 : 1);
	pr_debug_ratelimited("%s: %s on %s port %u: inline %u/%u, credits %u, remote invalidation %s/%s, reads %u, version %s\n",
			     conn->peer, conn->server ? "accepted" : "connected",
			     conn->device->ib->name, conn->port, agreement->call_threshold,
			     agreement->reply_threshold, conn->credits,
			     agreement->client_inv ? "on" : "off",
			     agreement->server_inv ? "on" : "off", conn->read_depth,
			     conn->config.version_max > RPCRDMA_VERSION_ONE ? "1 or 2" : "1");
}

/* Make a client's Receives and Sends: before a Call the server sends nothing. */
static int conn_make_buffers(struct rpcrdma_conn *conn)
{
	const struct rpcrdma_conn_config *config = &conn->config;
	u32 size = clamp_t(u32, config->params.recv_size, RPCRDMA_INLINE_MIN, RPCRDMA_INLINE_MAX);

	return rpcrdma_recv_create(conn, rpcrdma_wire_threshold(config->version_max, size)) ?:
	       rpcrdma_recv_open(conn) ?:
	       rpcrdma_send_create(conn, rpcrdma_conn_call_threshold(conn, config->version_max));
}

/* Both ends agree. */
static void conn_established_work(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(work, struct rpcrdma_conn, established_work);
	unsigned int flags;
	int err;

	if (!conn->server) {
		rpcrdma_wire_agree(&conn->config.params, &conn->peer_params, &conn->agreement);
		flags = rpcrdma_memalloc_save(conn);
		mutex_lock(&conn->setup);
		err = conn_make_buffers(conn);
		mutex_unlock(&conn->setup);
		rpcrdma_memalloc_restore(flags);
		if (err)
			rpcrdma_conn_close(conn, err);
		else
			rpcrdma_conn_set_state(conn, RPCRDMA_STATE_ESTABLISHED, NULL);
	}
	if (!rpcrdma_conn_established(conn))
		return;
	cancel_delayed_work(&conn->timer);
	conn_log(conn);
	conn->established_at = ktime_get();
	rpcrdma_history_join(conn);
	rpcrdma_status_event(conn, RPCRDMA_CMD_CONNECTED);
	conn->ops->established(conn);
	rpcrdma_keepalive_start(conn);
}

static void conn_timeout_work(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(to_delayed_work(work), struct rpcrdma_conn, timer);

	spin_lock_bh(&conn->post_lock);
	if (conn->state != RPCRDMA_STATE_ESTABLISHED)
		rpcrdma_conn_close_locked(conn, -ETIMEDOUT);
	spin_unlock_bh(&conn->post_lock);
}

static int conn_make_qp(struct rpcrdma_conn *conn)
{
	return rpcrdma_device_attach(conn) ?: rpcrdma_qp_create(conn);
}

/* The peer assumes the defaults for an end that sends no private data. */
static void conn_set_config(struct rpcrdma_conn *conn, const struct rpcrdma_conn_config *config)
{
	conn->config = *config;
	if (config->omit_private_data)
		rpcrdma_wire_decode_private(&conn->config.params, NULL, 0);
}

static void conn_set_private(const struct rpcrdma_conn *conn, struct rdma_conn_param *param,
			     u8 private[RPCRDMA_PRIVATE_LEN])
{
	if (conn->config.omit_private_data)
		return;
	rpcrdma_wire_encode_private(&conn->config.params, private);
	param->private_data = private;
	param->private_data_len = RPCRDMA_PRIVATE_LEN;
}

static int conn_send_request(struct rpcrdma_conn *conn)
{
	struct rdma_conn_param param = {
		.retry_count = RETRY_COUNT,
		.rnr_retry_count = RNR_RETRY_COUNT,
	};
	u8 private[RPCRDMA_PRIVATE_LEN];
	int err;

	if (READ_ONCE(conn->state) != RPCRDMA_STATE_RESOLVING)
		return -ECONNABORTED;
	err = conn_make_qp(conn);
	if (err)
		return err;
	conn_set_private(conn, &param, private);
	/* A client serves RDMA Reads and never issues one. */
	param.responder_resources = conn->device->max_read_responder;
	if (!rpcrdma_conn_set_state(conn, RPCRDMA_STATE_CONNECTING, NULL))
		return -ECONNABORTED;
	return rdma_connect(conn->cm_id, &param);
}

static void conn_connect_work(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(work, struct rpcrdma_conn, connect_work);
	unsigned int flags = rpcrdma_memalloc_save(conn);
	int err;

	mutex_lock(&conn->setup);
	err = conn_send_request(conn);
	mutex_unlock(&conn->setup);
	rpcrdma_memalloc_restore(flags);
	if (err)
		rpcrdma_conn_close(conn, err);
}

static void conn_name_peer(struct rpcrdma_conn *conn)
{
	snprintf(conn->peer, sizeof(conn->peer), "%pISpc", &conn->peer_addr);
}

static void conn_set_addresses(struct rpcrdma_conn *conn)
{
	const struct rdma_addr *addr = &conn->cm_id->route.addr;

	conn->local_addr = addr->src_addr;
	conn->peer_addr = addr->dst_addr;
	conn_name_peer(conn);
}

static void conn_read_private(struct rpcrdma_conn *conn, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;

	rpcrdma_wire_decode_private(&conn->peer_params, param->private_data,
				    param->private_data ? param->private_data_len : 0);
	conn->peer_reads = param->initiator_depth;
}

static void conn_on_established(struct rpcrdma_conn *conn, const struct rdma_cm_event *event)
{
	if (conn->server) {
		rpcrdma_conn_set_state(conn, RPCRDMA_STATE_ESTABLISHED, &conn->established_work);
		return;
	}
	conn_set_addresses(conn);
	conn_read_private(conn, event);
	conn_queue(conn, RPCRDMA_STATE_CONNECTING, &conn->established_work);
}

static void conn_on_rejected(struct rpcrdma_conn *conn, const struct rdma_cm_event *event)
{
	WRITE_ONCE(conn->rejected, rdma_reject_msg(conn->cm_id, event->status));
	/* To a server it is a client that has changed its mind. */
	if (!conn->server)
		rpcrdma_status_refused(conn->net, RPCRDMA_REFUSAL_PEER, -ECONNREFUSED,
				       &conn->cm_id->route.addr.src_addr, &conn->peer_addr);
}

/*
 * Resolving the route allocates, in rdma_cm's ordered workqueue of the whole host, which reclaim
 * may wait for. The event may come after ->closed, when config.swapper is not valid any more, so
 * this cannot use rpcrdma_memalloc_save().
 */
static void conn_on_address(struct rpcrdma_conn *conn)
{
	unsigned int noio = memalloc_noio_save();
	int err = rdma_resolve_route(conn->cm_id, conn->config.timeout_ms);

	memalloc_noio_restore(noio);
	if (err)
		rpcrdma_conn_close(conn, err);
}

static int conn_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rpcrdma_conn *conn = id->context;
	int status = 0;

	trace_rpcrdma_conn_event(conn, event);
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		conn_on_address(conn);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		conn_queue(conn, RPCRDMA_STATE_RESOLVING, &conn->connect_work);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		conn_on_established(conn, event);
		break;
	case RDMA_CM_EVENT_REJECTED:
		conn_on_rejected(conn, event);
		status = -ECONNREFUSED;
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		status = -EHOSTUNREACH;
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		status = -ENODEV;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		status = -ECONNRESET;
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		/* Some have an errno. */
		status = event->status < 0 ? event->status : -ECONNABORTED;
		break;
	default:
		break;
	}
	if (status)
		rpcrdma_conn_close(conn, status);
	/* Zero: the teardown destroys the identifier, also when the device is removed. */
	return 0;
}

/**
 * rpcrdma_conn_log_version - log which version a connection uses from now on
 * @conn: an established connection
 * @version: the version
 *
 * Each change is traced, and only the first is logged: a requester may change the version
 * with each Call. A connection that can use version 1 alone has it in the line about its
 * establishment.
 */
void rpcrdma_conn_log_version(struct rpcrdma_conn *conn, u32 version)
{
	if (conn->config.version_max == RPCRDMA_VERSION_ONE)
		return;
	trace_rpcrdma_conn_agreed(conn, version);
	if (READ_ONCE(conn->version_logged))
		return;
	WRITE_ONCE(conn->version_logged, true);
	pr_debug_ratelimited("%s: version %u: inline %u/%u\n", conn->peer, version,
			     rpcrdma_conn_call_threshold(conn, version),
			     rpcrdma_conn_reply_threshold(conn, version));
}

void rpcrdma_establish_init(struct rpcrdma_conn *conn)
{
	mutex_init(&conn->setup);
	INIT_DELAYED_WORK(&conn->timer, conn_timeout_work);
	INIT_WORK(&conn->connect_work, conn_connect_work);
	INIT_WORK(&conn->established_work, conn_established_work);
	INIT_DELAYED_WORK(&conn->keepalive.timer, rpcrdma_keepalive_timer);
	INIT_DELAYED_WORK(&conn->rest_work, rpcrdma_pool_rest_work);
}

/*
 * The teardown stops the timer, the work items and the keepalive. None is queued afterwards,
 * because the state is CLOSING.
 */
void rpcrdma_establish_stop(struct rpcrdma_conn *conn)
{
	/* A thread that makes resources holds this. The next one sees the state, or is a work. */
	mutex_lock(&conn->setup);
	mutex_unlock(&conn->setup);
	cancel_delayed_work_sync(&conn->timer);
	cancel_work_sync(&conn->connect_work);
	cancel_work_sync(&conn->established_work);
	cancel_delayed_work_sync(&conn->keepalive.timer);
}

/*
 * The role's callbacks are set last. So if this fails, none is called, even if the
 * device is removed and the teardown has begun: that waits for @setup first.
 */
static int conn_resolve(struct rpcrdma_conn *conn, struct net *net,
			const struct sockaddr *src, const struct sockaddr *dst)
{
	struct rdma_cm_id *id;
	int err;

	lockdep_assert_held(&conn->setup);
	id = rdma_create_id(net, conn_event, conn, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	conn->cm_id = id;
	trace_rpcrdma_conn_state(conn, conn->state, 0);
	err = rdma_resolve_addr(id, (struct sockaddr *)src, dst,
				min(conn->config.timeout_ms, RESOLVE_TIMEOUT_MS));
	if (err)
		return err;
	conn->role = conn->config.role;
	conn->ops = conn->config.ops;
	conn_start_timer(conn);
	return 0;
}

/**
 * rpcrdma_conn_connect - connect to a server
 * @net: network namespace of the addresses; the connection takes a reference
 * @src: address to connect from; NULL or AF_UNSPEC: any; port zero: any port
 * @dst: address to connect to
 * @config: what the caller wants. It is copied; what it points to is not.
 *
 * Does not wait for the server. The outcome is ->established or ->closed. Either may
 * be called before this function returns.
 *
 * Context: may sleep; its allocations cause no I/O.
 * Return: the connection with a reference for the caller; or an ERR_PTR, and then no
 * callback is called.
 */
struct rpcrdma_conn *
rpcrdma_conn_connect(struct net *net, const struct sockaddr *src, const struct sockaddr *dst,
		     const struct rpcrdma_conn_config *config)
{
	unsigned int noio = memalloc_noio_save();
	struct rpcrdma_conn *conn;
	int err = -ENOMEM;

	conn = rpcrdma_conn_alloc(false);
	if (!conn)
		goto out;
	conn_set_config(conn, config);
	memcpy(&conn->peer_addr, dst, rdma_addr_size(dst));
	conn_name_peer(conn);
	rpcrdma_conn_set_net(conn, net);

	/* The role may drop its reference in ->closed, before this returns. */
	rpcrdma_conn_get(conn);
	mutex_lock(&conn->setup);
	err = conn_resolve(conn, net, src, dst);
	if (err) {
		/* There is no ->closed now, so the role may free these before the teardown ends. */
		conn->config.swapper = NULL;
		conn->config.mrs_made = NULL;
	}
	mutex_unlock(&conn->setup);
	if (err) {
		rpcrdma_conn_close(conn, err);
		rpcrdma_conn_put(conn);
	}
	rpcrdma_conn_put(conn);
out:
	memalloc_noio_restore(noio);
	return err ? ERR_PTR(err) : conn;
}

/*
 * Make a connection for a connection request, in PENDING and with a reference for the caller.
 * On success @id belongs to it. rdma_cm holds @id's handler lock. Return: NULL if memory is short.
 */
struct rpcrdma_conn *rpcrdma_conn_request(struct net *net, struct rdma_cm_id *id,
					  const struct rdma_cm_event *event)
{
	/* Reclaim may wait for a connection, whose events come after this one. */
	unsigned int noio = memalloc_noio_save();
	struct rpcrdma_conn *conn = rpcrdma_conn_alloc(true);

	memalloc_noio_restore(noio);
	if (!conn)
		return NULL;
	conn->cm_id = id;
	id->context = conn;
	id->event_handler = conn_event;
	conn_set_addresses(conn);
	rpcrdma_conn_set_net(conn, net);
	conn_read_private(conn, event);
	rpcrdma_admission_set(conn, RPCRDMA_ADMISSION_WAITING);
	trace_rpcrdma_conn_state(conn, conn->state, 0);
	return conn;
}

/* How many RDMA Reads this end may have outstanding */
static unsigned int conn_read_depth(const struct rpcrdma_conn *conn)
{
	unsigned int depth = min(conn->device->max_read_initiator, conn->config.read_depth);

	/* MPA revision 1 does not say what the peer can serve. */
	if (conn->peer_reads || !rdma_protocol_iwarp(conn->device->ib, conn->port))
		depth = min_t(unsigned int, depth, conn->peer_reads);
	return depth;
}

static int conn_send_answer(struct rpcrdma_conn *conn)
{
	struct rdma_conn_param param = {
		.initiator_depth = conn->read_depth,
		.retry_count = RETRY_COUNT,
		/* The client's, which may have to wait for a shared Receive */
		.rnr_retry_count = conn->shared ? RNR_RETRY_FOREVER : RNR_RETRY_COUNT,
	};
	u8 private[RPCRDMA_PRIVATE_LEN];
	int err;

	conn_set_private(conn, &param, private);
	rdma_lock_handler(conn->cm_id);
	/* No event that was delivered has ended the queue pair, see rpcrdma_qp_drain(). */
	err = READ_ONCE(conn->state) == RPCRDMA_STATE_ACCEPTING ? rpcrdma_recv_open(conn) :
								  -ECONNABORTED;
	if (!err)
		err = rdma_accept(conn->cm_id, &param);
	rdma_unlock_handler(conn->cm_id);
	return err;
}

static int conn_accept(struct rpcrdma_conn *conn, const struct rpcrdma_conn_config *config)
{
	u32 version = config->version_max;
	int err;

	if (READ_ONCE(conn->state) != RPCRDMA_STATE_PENDING)
		return -ECONNABORTED;
	conn_set_config(conn, config);
	rpcrdma_wire_agree(&conn->peer_params, &conn->config.params, &conn->agreement);
	err = conn_make_qp(conn) ?:
	      rpcrdma_recv_create(conn, rpcrdma_conn_call_threshold(conn, version)) ?:
	      rpcrdma_send_create(conn, rpcrdma_conn_reply_threshold(conn, version));
	if (err)
		return err;
	conn->read_depth = conn_read_depth(conn);
	if (!rpcrdma_conn_set_state(conn, RPCRDMA_STATE_ACCEPTING, NULL))
		return -ECONNABORTED;
	/*
	 * The peer may send as soon as the answer is on the wire, even if sending it
	 * returns an error. So the callbacks must be the role's before.
	 */
	conn->role = config->role;
	conn->ops = config->ops;
	conn_start_timer(conn);
	err = conn_send_answer(conn);
	if (err)
		rpcrdma_conn_close(conn, err);
	return 0;
}

/**
 * rpcrdma_conn_accept - accept a connection request
 * @conn: the connection, from rpcrdma_listener_next()
 * @config: what the caller wants. It is copied; what it points to is not.
 *
 * Context: may sleep.
 * Return: 0: the outcome is ->established or ->closed, and callbacks may run before
 * this returns. A negative errno: the connection is closed, no callback is called, and
 * the caller drops its reference.
 */
int rpcrdma_conn_accept(struct rpcrdma_conn *conn, const struct rpcrdma_conn_config *config)
{
	unsigned int noio = memalloc_noio_save();
	int err;

	/* The role may drop its reference in ->closed, before this returns. */
	rpcrdma_conn_get(conn);
	mutex_lock(&conn->setup);
	err = conn_accept(conn, config);
	mutex_unlock(&conn->setup);
	if (err)
		rpcrdma_conn_close(conn, err);
	rpcrdma_conn_put(conn);
	memalloc_noio_restore(noio);
	return err;
}
