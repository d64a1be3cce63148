// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The life of a connection: its states, which conn.h explains, its references
 * and its end. establish.c has its beginning.
 */
#define pr_fmt(fmt) "rpcrdma: " fmt

#include <linux/hash.h>
#include <linux/slab.h>

#include "conn_private.h"
#include "../trace.h"

struct workqueue_struct *rpcrdma_wq;

/*
 * A teardown waits for the device, for users, and for RCU. After an outage there are
 * as many as there were connections: those that begin must not stand behind them.
 */
struct workqueue_struct *rpcrdma_teardown_wq;

static atomic_t conn_last_id;

/*
 * Of servers: how many may wait, begin and end at a time, in all and of one host.
 * Those that are established are the role's to limit.
 *
 * A request that waits is little memory, and after an outage they come all at
 * once: more are refused. One that begins has a queue pair, and so has one that
 * ends. A peer could otherwise begin or drop connections faster than they are made
 * and undone. While there are as many, requests wait.
 *
 * A host may have as much as is left for others, or a third of it: the first one half
 * or a quarter of all, and however many hosts take what they may, there is some for
 * the next one.
 */
static const struct {
	unsigned int all;
	unsigned int left;
} admission_max[] = {
	[RPCRDMA_ADMISSION_WAITING] = { .all = 2048, .left = 1 },
	[RPCRDMA_ADMISSION_BEGINNING] = { .all = 256, .left = 3 },
	[RPCRDMA_ADMISSION_ENDING] = { .all = 4096 },
};

/*
 * Hosts with the same hash share what one may have. Those of an IPv4 network of 256
 * addresses have all different ones; in an IPv6 network of 64 bits anybody may have
 * any number of addresses, so it counts as one.
 */
#define HOST_BITS	9

static DEFINE_SPINLOCK(admission_lock);	/* protects these, and admission */
static unsigned int admission_all[RPCRDMA_ADMISSION_COUNT];
static unsigned int admission_host[1 << HOST_BITS][RPCRDMA_ADMISSION_COUNT];

/* Where a connection may go from each state */
static const u8 conn_next[] = {
	[RPCRDMA_CONN_RESOLVING] = BIT(RPCRDMA_CONN_CONNECTING) | BIT(RPCRDMA_CONN_CLOSING),
	[RPCRDMA_CONN_CONNECTING] = BIT(RPCRDMA_CONN_ESTABLISHED) | BIT(RPCRDMA_CONN_CLOSING),
	[RPCRDMA_CONN_PENDING] = BIT(RPCRDMA_CONN_ACCEPTING) | BIT(RPCRDMA_CONN_CLOSING),
	[RPCRDMA_CONN_ACCEPTING] = BIT(RPCRDMA_CONN_ESTABLISHED) | BIT(RPCRDMA_CONN_CLOSING),
	[RPCRDMA_CONN_ESTABLISHED] = BIT(RPCRDMA_CONN_CLOSING),
	[RPCRDMA_CONN_CLOSING] = BIT(RPCRDMA_CONN_CLOSED),
	[RPCRDMA_CONN_CLOSED] = 0,
};

static unsigned int *conn_host_counts(const struct sockaddr_storage *peer)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)peer;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)peer;
	u32 key = peer->ss_family == AF_INET6 ?
		  (__force u32)(v6->sin6_addr.s6_addr32[0] ^
				v6->sin6_addr.s6_addr32[1]) :
		  (__force u32)v4->sin_addr.s_addr;

	return admission_host[hash_32(key, HOST_BITS)];
}

/* Nothing reads the counts of RPCRDMA_ADMISSION_NONE, which may wrap. */
static void conn_set_admission(struct rpcrdma_conn *conn, enum rpcrdma_admission admission)
{
	unsigned int *host = conn_host_counts(&conn->peer_addr);

	spin_lock_bh(&admission_lock);
	admission_all[conn->admission]--;
	host[conn->admission]--;
	conn->admission = admission;
	admission_all[admission]++;
	host[admission]++;
	spin_unlock_bh(&admission_lock);
}

static bool conn_over_limit_locked(const unsigned int *host, enum rpcrdma_admission admission)
{
	unsigned int all = admission_max[admission].all;

	lockdep_assert_held(&admission_lock);
	return admission_all[admission] >= all ||
	       host[admission] * admission_max[admission].left >=
			all - admission_all[admission];
}

/**
 * rpcrdma_conn_may_wait - whether another request may wait for its role
 * @peer: who asks for a connection, whatever the port
 *
 * Context: any but hard interrupts.
 * Return: false if too many do, of all listeners together, or of this host.
 */
bool rpcrdma_conn_may_wait(const struct sockaddr_storage *peer)
{
	const unsigned int *host = conn_host_counts(peer);
	bool may;

	spin_lock_bh(&admission_lock);
	may = !conn_over_limit_locked(host, RPCRDMA_ADMISSION_WAITING);
	spin_unlock_bh(&admission_lock);
	return may;
}

/**
 * rpcrdma_conn_may_begin - whether another request may be taken
 * @peer: who asks for a connection, whatever the port
 *
 * Context: any but hard interrupts.
 * Return: false if it has to wait until others are established or gone.
 */
bool rpcrdma_conn_may_begin(const struct sockaddr_storage *peer)
{
	const unsigned int *host = conn_host_counts(peer);
	bool may;

	spin_lock_bh(&admission_lock);
	may = !conn_over_limit_locked(host, RPCRDMA_ADMISSION_BEGINNING) &&
	      !conn_over_limit_locked(host, RPCRDMA_ADMISSION_ENDING);
	spin_unlock_bh(&admission_lock);
	return may;
}

/**
 * rpcrdma_conn_wait - a connection of a server is a request that waits
 * @conn: the connection; its peer is known and does not change
 *
 * Context: any but hard interrupts.
 */
void rpcrdma_conn_wait(struct rpcrdma_conn *conn)
{
	conn_set_admission(conn, RPCRDMA_ADMISSION_WAITING);
}

/**
 * rpcrdma_conn_begin - a role takes a request
 * @conn: the connection, which waits
 *
 * Context: any but hard interrupts.
 * Return: false if it is closed already.
 */
bool rpcrdma_conn_begin(struct rpcrdma_conn *conn)
{
	bool pending;

	spin_lock_bh(&conn->post_lock);
	pending = conn->state == RPCRDMA_CONN_PENDING;
	if (pending)
		conn_set_admission(conn, RPCRDMA_ADMISSION_BEGINNING);
	spin_unlock_bh(&conn->post_lock);
	return pending;
}

/* Return: whether this call made the transition. */
static bool conn_set_state_locked(struct rpcrdma_conn *conn,
				  enum rpcrdma_conn_state state, int status)
{
	lockdep_assert_held(&conn->post_lock);
	if (!(conn_next[conn->state] & BIT(state)))
		return false;
	if (conn->server && state == RPCRDMA_CONN_ESTABLISHED)
		conn_set_admission(conn, RPCRDMA_ADMISSION_NONE);
	else if (conn->server && state == RPCRDMA_CONN_CLOSING)
		conn_set_admission(conn, RPCRDMA_ADMISSION_ENDING);
	conn->status = status;
	/* For rpcrdma_conn_established(), which takes no lock */
	smp_store_release(&conn->state, state);
	trace_rpcrdma_conn_state(conn, state, status);
	return true;
}

/**
 * rpcrdma_conn_set_state - enter a state
 * @conn: the connection
 * @state: the state
 * @work: queued if that succeeds; may be NULL
 *
 * Context: any but hard interrupts.
 * Return: whether @state was reached just now.
 */
bool rpcrdma_conn_set_state(struct rpcrdma_conn *conn,
			    enum rpcrdma_conn_state state,
			    struct work_struct *work)
{
	bool changed;

	spin_lock_bh(&conn->post_lock);
	changed = conn_set_state_locked(conn, state, 0);
	if (changed && work)
		queue_work(rpcrdma_wq, work);
	spin_unlock_bh(&conn->post_lock);
	return changed;
}

/**
 * rpcrdma_conn_close_locked - rpcrdma_conn_close() for holders of post_lock
 * @conn: the connection
 * @status: why
 */
void rpcrdma_conn_close_locked(struct rpcrdma_conn *conn, int status)
{
	if (!conn_set_state_locked(conn, RPCRDMA_CONN_CLOSING, status))
		return;
	queue_work(rpcrdma_teardown_wq, &conn->teardown_work);
}

/**
 * rpcrdma_conn_close - end a connection
 * @conn: the connection
 * @status: why, a negative errno, for ->closed
 *
 * Does nothing if that has begun already. Does not wait: ->closed tells.
 *
 * Context: any but hard interrupts.
 */
void rpcrdma_conn_close(struct rpcrdma_conn *conn, int status)
{
	spin_lock_bh(&conn->post_lock);
	rpcrdma_conn_close_locked(conn, status);
	spin_unlock_bh(&conn->post_lock);
}

/**
 * rpcrdma_conn_established - whether posting has a chance
 * @conn: the connection
 *
 * Context: any.
 * Return: whether it is established at the moment.
 */
bool rpcrdma_conn_established(const struct rpcrdma_conn *conn)
{
	/* What was set up before is to be seen by whoever sees the state. */
	return smp_load_acquire(&conn->state) == RPCRDMA_CONN_ESTABLISHED;
}

/**
 * rpcrdma_conn_may_receive - whether a message that arrived counts
 * @conn: the connection
 *
 * Whoever sends has got the server's answer. So its first message establishes
 * the connection, if it overtakes the CM's confirmation. To a client nobody
 * sends before it has sent a Call itself.
 *
 * Context: the completion queue's.
 * Return: true if it does.
 */
bool rpcrdma_conn_may_receive(struct rpcrdma_conn *conn)
{
	if (rpcrdma_conn_established(conn))
		return true;
	return conn->server &&
	       (rpcrdma_conn_set_state(conn, RPCRDMA_CONN_ESTABLISHED,
				       &conn->established_work) ||
		rpcrdma_conn_established(conn));
}

/**
 * rpcrdma_conn_wc_error - a work request failed, so the connection has
 * @conn: the connection
 * @wc: the completion
 *
 * Context: the completion queue's.
 */
void rpcrdma_conn_wc_error(struct rpcrdma_conn *conn, const struct ib_wc *wc)
{
	trace_rpcrdma_wc_error(conn, wc);
	if (wc->status == IB_WC_WR_FLUSH_ERR) {
		/* Before it is established the CM knows why, and tells. */
		if (rpcrdma_conn_established(conn))
			rpcrdma_conn_close(conn, -ECONNRESET);
		return;
	}
	if (READ_ONCE(conn->state) < RPCRDMA_CONN_CLOSING)
		pr_warn_ratelimited("%s: %s (vendor error 0x%x)\n", conn->peer,
				    ib_wc_status_msg(wc->status),
				    wc->vendor_err);
	rpcrdma_conn_close(conn, -EIO);
}

static void conn_free(struct kref *ref)
{
	struct rpcrdma_conn *conn = container_of(ref, struct rpcrdma_conn, ref);

	percpu_ref_exit(&conn->users);
	mutex_destroy(&conn->setup);
	kfree_rcu(conn, rcu);
}

/**
 * rpcrdma_conn_get - take another reference
 * @conn: the connection
 *
 * Context: any.
 */
void rpcrdma_conn_get(struct rpcrdma_conn *conn)
{
	kref_get(&conn->ref);
}

/**
 * rpcrdma_conn_put - drop a reference
 * @conn: the connection
 *
 * Does not end the connection: it ends when it is closed.
 *
 * Context: any but hard interrupts.
 */
void rpcrdma_conn_put(struct rpcrdma_conn *conn)
{
	kref_put(&conn->ref, conn_free);
}

static void conn_broken_work(struct work_struct *work)
{
	rpcrdma_conn_close(container_of(work, struct rpcrdma_conn, broken_work), -EIO);
}

static void conn_log_closed(const struct rpcrdma_conn *conn)
{
	if (conn->was_established)
		pr_info_ratelimited("%s: closed: %pe\n", conn->peer, ERR_PTR(conn->status));
	else
		pr_info_ratelimited("%s: not connected: %pe\n", conn->peer,
				    ERR_PTR(conn->status));
}

/**
 * rpcrdma_conn_enter - keep the verbs resources of a connection for a while
 * @conn: the connection
 *
 * Between this and rpcrdma_conn_leave() the device, the protection domain and
 * the queue pair stay, if they have been there; closing and draining are not
 * held up, but what follows is, ->closed included. It is meant for building
 * what is then posted, and undoing that if posting fails. Calls may be nested,
 * but the inner one may fail. ->received and ->done need not enter.
 *
 * Context: any; the caller holds a reference to @conn. It may sleep before it
 * leaves, but only on what ends when the connection closes, and not on a ->done,
 * which may have to wait for it.
 * Return: false when it is too late; then rpcrdma_conn_leave() is not due.
 */
bool rpcrdma_conn_enter(struct rpcrdma_conn *conn)
{
	return percpu_ref_tryget_live(&conn->users);
}

/**
 * rpcrdma_conn_leave - end what rpcrdma_conn_enter() began
 * @conn: the connection
 *
 * Context: any.
 */
void rpcrdma_conn_leave(struct rpcrdma_conn *conn)
{
	percpu_ref_put(&conn->users);
}

static void conn_unused(struct percpu_ref *ref)
{
	complete(&container_of(ref, struct rpcrdma_conn, users)->unused);
}

static void conn_lock_out(struct rpcrdma_conn *conn)
{
	percpu_ref_kill(&conn->users);
	wait_for_completion(&conn->unused);
}

/*
 * The device may go on with what is posted, so that nothing of it may be given
 * back before the queue pair is destroyed. That takes that nobody uses it: no
 * ->done runs, and nobody is inside. Afterwards they may undo what they began.
 */
static void conn_destroy_undrained(struct rpcrdma_conn *conn)
{
	WRITE_ONCE(conn->undrained, true);
	flush_work(&conn->cq->work);
	conn_lock_out(conn);
	conn->qp = NULL;
	rdma_destroy_qp(conn->cm_id);
	/* Nor does any of its completions go on; a poll that runs may begin one more. */
	flush_work(&conn->cq->work);
	flush_work(&conn->cq->work);
	reinit_completion(&conn->unused);
	percpu_ref_reinit(&conn->users);
}

/* Nobody posts, and when this returns nothing is posted any more. */
static void conn_drain(struct rpcrdma_conn *conn)
{
	int err;

	if (!conn->qp)
		return;
	rpcrdma_recv_stop(conn);
	rdma_disconnect(conn->cm_id);
	err = rpcrdma_qp_drain(conn);
	if (err) {
		pr_warn_ratelimited("%s: the device does not stop: %pe\n",
				    conn->peer, ERR_PTR(err));
		conn_destroy_undrained(conn);
	}
	rpcrdma_work_flush(conn);
}

/* Take all memory away from the device, and turn it into plain memory. */
static void conn_release_memory(struct rpcrdma_conn *conn)
{
	conn_lock_out(conn);
	rpcrdma_mr_destroy(conn);
	rpcrdma_send_destroy(conn);
	rpcrdma_recv_destroy(conn);
	/* Who gave something back, or made more, may have queued this. */
	cancel_work_sync(&conn->writable_work);
}

static void conn_destroy(struct rpcrdma_conn *conn)
{
	rpcrdma_qp_destroy(conn);
	/* The queue pair was the last that could have queued this. */
	cancel_work_sync(&conn->broken_work);
	if (conn->cm_id)
		rdma_destroy_id(conn->cm_id);
	conn->cm_id = NULL;
	rpcrdma_device_detach(conn);
}

/*
 * Runs once. Nobody may wait for it who is waited for here: users, callbacks
 * and the CM's event handler.
 */
static void conn_teardown_work(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(work, struct rpcrdma_conn, teardown_work);

	rpcrdma_establish_stop(conn);
	conn_drain(conn);
	conn_release_memory(conn);
	conn_log_closed(conn);
	spin_lock_bh(&conn->post_lock);
	conn_set_state_locked(conn, RPCRDMA_CONN_CLOSED, conn->status);
	spin_unlock_bh(&conn->post_lock);
	conn->ops->closed(conn, conn->status);
	conn_destroy(conn);
	if (conn->server)
		conn_set_admission(conn, RPCRDMA_ADMISSION_NONE);
	rpcrdma_conn_put(conn);
}

/* The role of a connection before it is told of it, if ever */
static void conn_no_event(struct rpcrdma_conn *conn)
{
}

static void conn_no_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv)
{
	rpcrdma_recv_put(recv);
}

static void conn_no_closed(struct rpcrdma_conn *conn, int status)
{
}

static const struct rpcrdma_conn_ops conn_no_role = {
	.established = conn_no_event,
	.received = conn_no_received,
	.writable = conn_no_event,
	.closed = conn_no_closed,
};

/**
 * rpcrdma_conn_alloc - make a connection, with nothing in it
 * @server: whether it is a server's
 *
 * Its callbacks do nothing until conn->ops is set.
 *
 * Context: may sleep.
 * Return: the connection with a reference for the caller, besides that of its
 * life, which ends in the teardown; or NULL.
 */
struct rpcrdma_conn *rpcrdma_conn_alloc(bool server)
{
	struct rpcrdma_conn *conn;

	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		return NULL;
	if (percpu_ref_init(&conn->users, conn_unused, PERCPU_REF_ALLOW_REINIT,
			    GFP_KERNEL)) {
		kfree(conn);
		return NULL;
	}
	init_completion(&conn->unused);
	conn->id = atomic_inc_return(&conn_last_id);
	conn->ops = &conn_no_role;
	conn->server = server;
	conn->state = server ? RPCRDMA_CONN_PENDING : RPCRDMA_CONN_RESOLVING;
	kref_init(&conn->ref);
	kref_get(&conn->ref);
	spin_lock_init(&conn->resource_lock);
	INIT_WORK(&conn->broken_work, conn_broken_work);
	INIT_WORK(&conn->teardown_work, conn_teardown_work);
	rpcrdma_establish_init(conn);
	rpcrdma_work_init(conn);
	rpcrdma_send_init(conn);
	rpcrdma_recv_init(conn);
	rpcrdma_mr_pool_init(conn);
	return conn;
}

/**
 * rpcrdma_conn_init - start the layer: before any role starts
 *
 * Return: 0 or a negative errno.
 */
int rpcrdma_conn_init(void)
{
	int err;

	/*
	 * To free memory may need a connection that is closed and made here.
	 * What the works flush therefore is for reclaim, too: these workqueues
	 * and the iWARP CM's. Completions are waited for, not flushed. The one
	 * thing of another that a work cancels, in rdma_destroy_id(), is an
	 * address query; of that the kernel does not warn, as it is running.
	 */
	rpcrdma_wq = alloc_workqueue("rpcrdma", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!rpcrdma_wq)
		return -ENOMEM;
	err = -ENOMEM;
	rpcrdma_teardown_wq = alloc_workqueue("rpcrdma-teardown",
					      WQ_UNBOUND | WQ_MEM_RECLAIM,
					      WQ_UNBOUND_MAX_ACTIVE);
	if (!rpcrdma_teardown_wq)
		goto err_wq;
	err = rpcrdma_mr_init();
	if (err)
		goto err_teardown_wq;
	err = rpcrdma_device_init();
	if (err)
		goto err_mr;
	return 0;

err_mr:
	rpcrdma_mr_exit();
err_teardown_wq:
	destroy_workqueue(rpcrdma_teardown_wq);
err_wq:
	destroy_workqueue(rpcrdma_wq);
	return err;
}

/**
 * rpcrdma_conn_exit - stop the layer: after all roles have stopped
 *
 * Waits for the teardown of all connections.
 */
void rpcrdma_conn_exit(void)
{
	rpcrdma_device_exit();
	rpcrdma_mr_exit();
	destroy_workqueue(rpcrdma_teardown_wq);
	destroy_workqueue(rpcrdma_wq);
	/* The last to leave a connection may be an RCU callback. */
	rcu_barrier();
}
