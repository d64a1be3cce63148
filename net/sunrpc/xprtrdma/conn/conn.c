// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The life of a connection: its states, which conn.h explains, its references, who
 * has entered it, and its teardown. establish.c has its beginning.
 */
#define DEBUG	/* connections that end as usual, as in establish.c */
#define pr_fmt(fmt) "rpcrdma: " fmt

#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>

#include "conn_private.h"
#include "../main.h"
#include "../status/status.h"
#include "../trace.h"

struct workqueue_struct *rpcrdma_wq;

/*
 * A teardown waits for the device, for threads that have entered, and for RCU. After an outage
 * there are as many as there were connections, and new connections must not wait for them.
 */
struct workqueue_struct *rpcrdma_teardown_wq;

/* By id, from rpcrdma_conn_alloc() until the memory is freed by RCU. No entry is a reference. */
static DEFINE_XARRAY_FLAGS(conns, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_BH);
static u32 conn_next_id;

/* The states to which each state may go */
static const u8 conn_next[] = {
	[RPCRDMA_STATE_RESOLVING] = BIT(RPCRDMA_STATE_CONNECTING) | BIT(RPCRDMA_STATE_CLOSING),
	[RPCRDMA_STATE_CONNECTING] = BIT(RPCRDMA_STATE_ESTABLISHED) | BIT(RPCRDMA_STATE_CLOSING),
	[RPCRDMA_STATE_PENDING] = BIT(RPCRDMA_STATE_ACCEPTING) | BIT(RPCRDMA_STATE_CLOSING),
	[RPCRDMA_STATE_ACCEPTING] = BIT(RPCRDMA_STATE_ESTABLISHED) | BIT(RPCRDMA_STATE_CLOSING),
	[RPCRDMA_STATE_ESTABLISHED] = BIT(RPCRDMA_STATE_CLOSING),
	[RPCRDMA_STATE_CLOSING] = BIT(RPCRDMA_STATE_CLOSED),
	[RPCRDMA_STATE_CLOSED] = 0,
};

/* Return: whether this call made the transition. */
static bool conn_set_state_locked(struct rpcrdma_conn *conn, enum rpcrdma_state state, int status)
{
	lockdep_assert_held(&conn->post_lock);
	if (!(conn_next[conn->state] & BIT(state)))
		return false;
	if (conn->server && state == RPCRDMA_STATE_ESTABLISHED)
		rpcrdma_admission_set(conn, RPCRDMA_ADMISSION_ESTABLISHED);
	else if (conn->server && state == RPCRDMA_STATE_CLOSING &&
		 conn->admission != RPCRDMA_ADMISSION_WAITING)
		rpcrdma_admission_set(conn, RPCRDMA_ADMISSION_ENDING);
	conn->status = status;
	conn->state_since = ktime_get();
	/* Pairs with rpcrdma_conn_established(), which takes no lock. */
	smp_store_release(&conn->state, state);
	trace_rpcrdma_conn_state(conn, state, status);
	return true;
}

/*
 * Make a transition, if the current state allows it; to CLOSING by rpcrdma_conn_close().
 * @work, if any, is queued under post_lock, so before a teardown that cancels it.
 * Return: whether this call made the transition.
 */
bool rpcrdma_conn_set_state(struct rpcrdma_conn *conn, enum rpcrdma_state state,
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

void rpcrdma_conn_close_locked(struct rpcrdma_conn *conn, int status)
{
	lockdep_assert_held(&conn->post_lock);
	if (conn_set_state_locked(conn, RPCRDMA_STATE_CLOSING, status))
		queue_work(rpcrdma_teardown_wq, &conn->teardown_work);
}

/**
 * rpcrdma_conn_close - end a connection
 * @conn: the connection
 * @status: why, a negative errno, for ->closed
 *
 * Does nothing if the connection is closing or closed. Does not wait; ->closed is
 * called when the connection has ended.
 */
void rpcrdma_conn_close(struct rpcrdma_conn *conn, int status)
{
	spin_lock_bh(&conn->post_lock);
	rpcrdma_conn_close_locked(conn, status);
	spin_unlock_bh(&conn->post_lock);
}

/* A work request failed. */
void rpcrdma_conn_wc_error(struct rpcrdma_conn *conn, const struct ib_wc *wc)
{
	trace_rpcrdma_wc_error(conn, wc);
	if (wc->status == IB_WC_WR_FLUSH_ERR) {
		/* Until it is established, rdma_cm reports the reason. */
		if (rpcrdma_conn_established(conn))
			rpcrdma_conn_close(conn, -ECONNRESET);
		return;
	}
	if (READ_ONCE(conn->state) < RPCRDMA_STATE_CLOSING &&
	    rpcrdma_history_may_log(conn, false))
		pr_warn_ratelimited("%s: work request failed: %s (vendor error 0x%x)\n",
				    conn->peer, ib_wc_status_msg(wc->status), wc->vendor_err);
	rpcrdma_conn_close(conn, -EIO);
}

static void conn_free(struct kref *ref)
{
	struct rpcrdma_conn *conn = container_of(ref, struct rpcrdma_conn, ref);

	xa_erase_bh(&conns, conn->id);
	rpcrdma_history_leave(conn);
	if (conn->net)
		put_net(conn->net);
	percpu_ref_exit(&conn->users);
	mutex_destroy(&conn->setup);
	rpcrdma_object_freed(RPCRDMA_OBJECT_CONN);
	kfree_rcu(conn, rcu);
}

void rpcrdma_conn_get(struct rpcrdma_conn *conn)
{
	kref_get(&conn->ref);
}

/* The last one frees the memory, but does not close: that takes rpcrdma_conn_close(). */
void rpcrdma_conn_put(struct rpcrdma_conn *conn)
{
	kref_put(&conn->ref, conn_free);
}

static void conn_broken_work(struct work_struct *work)
{
	rpcrdma_conn_close(container_of(work, struct rpcrdma_conn, broken_work), -EIO);
}

static void conn_unused(struct percpu_ref *ref)
{
	complete(&container_of(ref, struct rpcrdma_conn, users)->unused);
}

/* Let no thread enter any more, and wait for those that have entered. */
static void conn_lock_out(struct rpcrdma_conn *conn)
{
	percpu_ref_kill(&conn->users);
	wait_for_completion(&conn->unused);
	/* Nobody can queue this any more. */
	cancel_delayed_work_sync(&conn->rest_work);
}

/*
 * The driver does not stop the queue pair, so the device may reach memory of this connection at
 * any time, and complete what was posted. All of that is kept for good: the queue pair, the
 * memory, the module by a reference of the caller, and, by the roles, each object whose chain the
 * device may still complete. The RPCs go on. When this returns, the completion handlers of this
 * connection do nothing any more.
 */
static void conn_keep(struct rpcrdma_conn *conn, int err)
{
	pr_err_ratelimited("%s: %s does not stop the queue pair: %pe: its memory is lost, and rpcrdma stays loaded\n",
			   conn->peer, conn->qp->device->name, ERR_PTR(err));
	rpcrdma_conn_get(conn);
	WRITE_ONCE(conn->stuck, true);
	if (conn->shared)
		WRITE_ONCE(conn->shared->broken, true);
	conn_lock_out(conn);
	rpcrdma_mr_destroy(conn);
}

/* In CLOSING no chain can be posted. When this returns, all that were posted are done. */
static void conn_drain(struct rpcrdma_conn *conn)
{
	bool posted;
	int err;

	if (!conn->qp)
		return;
	spin_lock_bh(&conn->recv_lock);
	posted = conn->recv_open;
	conn->recv_open = false;
	spin_unlock_bh(&conn->recv_lock);
	err = rpcrdma_qp_drain(conn, posted);
	/* A module that is being unloaded cannot stay. It waits for this connection. */
	while (err && !try_module_get(THIS_MODULE)) {
		pr_err_once("%s: %s does not stop the queue pair: %pe: rpcrdma is unloaded when it does\n",
			    conn->peer, conn->qp->device->name, ERR_PTR(err));
		err = rpcrdma_qp_drain(conn, posted);
	}
	if (err)
		conn_keep(conn, err);
	rpcrdma_deliver_rest(conn);
	rpcrdma_chain_flush(conn);
}

/*
 * One line for each end. It is as usual if this end wanted it, or a client of the server. The two
 * notices have a limit each, as anybody may begin connections, and must hide no end of others.
 */
static void conn_log_end(struct rpcrdma_conn *conn)
{
	const char *what = conn->established_at ? "closed" : "not connected";
	const char *why = READ_ONCE(conn->rejected);

	if (conn->status == -ESHUTDOWN || (conn->server && conn->status == -ECONNRESET))
		pr_debug_ratelimited("%s: %s: %pe\n", conn->peer, what, ERR_PTR(conn->status));
	else if (!conn->established_at)
		pr_notice_ratelimited("%s: not connected: %pe%s%s\n", conn->peer,
				      ERR_PTR(conn->status), why ? ": " : "", why ?: "");
	else if (rpcrdma_history_may_log(conn, true))
		pr_notice_ratelimited("%s: closed: %pe\n", conn->peer, ERR_PTR(conn->status));
}

/*
 * Runs once. It waits for threads that have entered, for callbacks and for rdma_cm's
 * event handler. So these must not wait for it. Reclaim may wait for it: to write to a
 * mount it needs the next connection, which waits for ->closed.
 */
static void conn_teardown_work(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(work, struct rpcrdma_conn, teardown_work);
	unsigned int flags;

	rpcrdma_establish_stop(conn);
	flags = rpcrdma_memalloc_save(conn);
	conn_drain(conn);
	if (!conn->stuck) {
		conn_lock_out(conn);
		/* These leave plain memory of what a role still owns. */
		rpcrdma_mr_destroy(conn);
		rpcrdma_send_destroy(conn);
		rpcrdma_recv_destroy(conn);
	}
	/* Giving back a Send and making registrations may have queued this. */
	cancel_work_sync(&conn->writable_work);
	conn_log_end(conn);
	spin_lock_bh(&conn->post_lock);
	conn_set_state_locked(conn, RPCRDMA_STATE_CLOSED, conn->status);
	spin_unlock_bh(&conn->post_lock);
	if (conn->established_at)
		rpcrdma_status_event(conn, RPCRDMA_CMD_CLOSED);
	if (conn->ops)
		conn->ops->closed(conn, conn->status);
	if (!conn->stuck)
		rpcrdma_qp_destroy(conn);
	/* Only events of the queue pair queue this. */
	cancel_work_sync(&conn->broken_work);
	if (conn->cm_id)
		rdma_destroy_id(conn->cm_id);
	conn->cm_id = NULL;
	rpcrdma_device_detach(conn);
	if (READ_ONCE(conn->admission) == RPCRDMA_ADMISSION_ENDING)
		rpcrdma_admission_set(conn, RPCRDMA_ADMISSION_NONE);
	rpcrdma_conn_put(conn);
	rpcrdma_memalloc_restore(flags);
}

/*
 * Allocate a connection without verbs resources, and without a role until conn->ops is set. It
 * has two references: one for the caller, one that the teardown drops.
 */
struct rpcrdma_conn *rpcrdma_conn_alloc(bool server)
{
	struct rpcrdma_conn *conn;

	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		return NULL;
	if (percpu_ref_init(&conn->users, conn_unused, 0, GFP_KERNEL))
		goto err_free;
	init_completion(&conn->unused);
	init_completion(&conn->last_wqe);
	conn->server = server;
	conn->state_since = ktime_get();
	conn->state = server ? RPCRDMA_STATE_PENDING : RPCRDMA_STATE_RESOLVING;
	kref_init(&conn->ref);
	kref_get(&conn->ref);
	spin_lock_init(&conn->resource_lock);
	INIT_WORK(&conn->broken_work, conn_broken_work);
	INIT_WORK(&conn->teardown_work, conn_teardown_work);
	rpcrdma_establish_init(conn);
	rpcrdma_chain_init(conn);
	rpcrdma_deliver_init(conn);
	rpcrdma_send_init(conn);
	rpcrdma_recv_init(conn);
	rpcrdma_mr_init(conn);
	if (xa_alloc_cyclic_bh(&conns, &conn->id, conn, xa_limit_31b, &conn_next_id,
			       GFP_KERNEL) < 0)
		goto err_users;
	rpcrdma_object_made(RPCRDMA_OBJECT_CONN);
	return conn;

err_users:
	percpu_ref_exit(&conn->users);
err_free:
	kfree(conn);
	return NULL;
}

/* The connection needs @net until it is freed, and roles may be gone before. */
void rpcrdma_conn_set_net(struct rpcrdma_conn *conn, struct net *net)
{
	/* Pairs with rpcrdma_conn_find(): the addresses are set. */
	smp_store_release(&conn->net, get_net(net));
}

/**
 * rpcrdma_conn_find - find the next connection that is not closed
 * @net: its network namespace
 * @id: the lowest number that it may have
 *
 * A walk asks for the number after the last one. So it sees each connection that exists all
 * the time exactly once, whatever comes and goes meanwhile.
 *
 * Return: the connection, with a reference for the caller and with valid addresses; or NULL.
 */
struct rpcrdma_conn *rpcrdma_conn_find(const struct net *net, unsigned long id)
{
	struct rpcrdma_conn *conn;

	rcu_read_lock();
	xa_for_each_start(&conns, id, conn, id)
		/* Pairs with rpcrdma_conn_set_net(). */
		if (smp_load_acquire(&conn->net) == net &&
		    READ_ONCE(conn->state) != RPCRDMA_STATE_CLOSED &&
		    kref_get_unless_zero(&conn->ref))
			break;
	rcu_read_unlock();
	return conn;
}

int rpcrdma_conn_init(void)
{
	int err = -ENOMEM;

	get_random_bytes(&rpcrdma_host_key, sizeof(rpcrdma_host_key));
	/*
	 * Reclaim may need a connection, and works of these queues close and make connections, and
	 * deliver Replies. So the queues have rescuers, and their works may flush only works of
	 * queues that have rescuers, too: these, and the iWARP CM's. Draining waits for completions
	 * and flushes nothing. rdma_destroy_id() cancels an address query, whose queue has no
	 * rescuer. That needs none, and the kernel does not warn of it, because a work that is
	 * cancelled is either dequeued or already running.
	 */
	rpcrdma_wq = alloc_workqueue("rpcrdma", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!rpcrdma_wq)
		return -ENOMEM;
	rpcrdma_teardown_wq = alloc_workqueue("rpcrdma-teardown", WQ_UNBOUND | WQ_MEM_RECLAIM,
					      WQ_UNBOUND_MAX_ACTIVE);
	if (!rpcrdma_teardown_wq)
		goto err_wq;
	rpcrdma_deliver_wq = alloc_workqueue("rpcrdma-deliver", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!rpcrdma_deliver_wq)
		goto err_teardown_wq;
	err = ib_register_client(&rpcrdma_device_client);
	if (!err)
		return 0;
	destroy_workqueue(rpcrdma_deliver_wq);
err_teardown_wq:
	destroy_workqueue(rpcrdma_teardown_wq);
err_wq:
	destroy_workqueue(rpcrdma_wq);
	return err;
}

/* Waits for the teardown of all connections. */
void rpcrdma_conn_exit(void)
{
	ib_unregister_client(&rpcrdma_device_client);
	destroy_workqueue(rpcrdma_teardown_wq);
	destroy_workqueue(rpcrdma_deliver_wq);
	destroy_workqueue(rpcrdma_wq);
	/* percpu_ref may still be in conn_unused(), in an RCU callback. */
	rcu_barrier();
}
