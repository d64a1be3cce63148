// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Shared receive queues: Receives that connections of a server have in common.
 *
 * A message takes the next Receive of the queue, whichever of its connections it is for. That
 * connection has the Receive until the role gives it back. So Receives follow what arrives, and
 * connections that rest cost none.
 *
 * A queue begins with few Receives. When the device reports that few are posted, it gets twice as
 * many, up to its bound. If half were never needed for a while, those that come back are freed.
 * More credits may be granted than Receives exist. A message that finds none waits in the device
 * of its sender, which tries again as often as it takes. When few are posted at the bound, Replies
 * grant a quarter of the credits until half are posted again. iWARP cannot wait and breaks the
 * connection, so on it connections have their own Receives.
 *
 * No connection gets more than an eighth of them as credits, or two, but some together may hold
 * all. A peer that has more messages in flight than it was ever allowed is disconnected. Until that
 * has happened it can take all Receives, so the completion queue has an entry for each. That is
 * why connections with a shared receive queue share its completion queue, too. They have its
 * protection domain because rxe looks for the memory of Receives in the queue pair's. A server
 * registers memory for peers only on iWARP, so none has a handle that another could use.
 */
#include <linux/slab.h>

#include "conn_private.h"

/* Connections for whose Sends a completion queue has entries */
#define SHARED_CONNS	64U

/* Receives of a new queue, and how many are reposted at a time */
#define SHARED_FIRST	16U
#define SHARED_BATCH	8U

/* How long to wait if there is no memory for more, or the driver cannot report */
#define SHARED_RETRY	(HZ / 10)

/* How long half of the Receives are not needed before some are freed */
#define SHARED_REST	(30 * HZ)

/* Post all idle Receives. If the driver refuses some, it gets them again with the next ones. */
static void shared_post_locked(struct rpcrdma_shared *shared)
{
	const struct ib_recv_wr *refused = NULL;

	lockdep_assert_held(&shared->lock);
	if (!shared->idle)
		return;
	rpcrdma_recv_sync(shared->device->ib, shared->idle);
	shared->posted += shared->num_idle;
	shared->num_idle = 0;
	ib_post_srq_recv(shared->srq, shared->idle, &refused);
	shared->idle = (struct ib_recv_wr *)refused;
	for (; refused; refused = refused->next) {
		shared->posted--;
		shared->num_idle++;
	}
}

static void shared_add_idle_locked(struct rpcrdma_shared *shared, struct rpcrdma_recv *recv)
{
	lockdep_assert_held(&shared->lock);
	list_add(&recv->resource.all, &shared->recvs);
	recv->wr.next = shared->idle;
	shared->idle = &recv->wr;
	shared->num_idle++;
}

static void shared_wc(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rpcrdma_recv *recv = container_of(wc->wr_cqe, struct rpcrdma_recv, cqe);
	struct rpcrdma_shared *shared = recv->shared;
	struct rpcrdma_conn *conn = wc->qp->qp_context;
	unsigned int allowed, posted;
	bool exceeded;

	allowed = READ_ONCE(conn->recv_credits) + READ_ONCE(conn->recv_backward);
	recv->conn = conn;
	spin_lock_bh(&shared->lock);
	posted = --shared->posted;
	shared->least = min(shared->least, posted);
	list_move(&recv->resource.all, &conn->recvs);
	exceeded = ++conn->num_recvs > allowed;
	spin_unlock_bh(&shared->lock);
	if (unlikely(!posted))
		atomic_long_inc(&shared->device->shared_empty);
	if (unlikely(exceeded) && READ_ONCE(conn->state) < RPCRDMA_STATE_CLOSING) {
		atomic_long_inc(&shared->device->exceeded);
		rpcrdma_conn_close(conn, -EDQUOT);
	}
	rpcrdma_recv_done(conn, recv, wc);
}

/*
 * Need fewer Receives if half of them were posted for a while. Those that were surplus before are
 * gone. Return: whether the device has to report another number.
 */
static bool shared_rest_locked(struct rpcrdma_shared *shared)
{
	unsigned int first = min(SHARED_FIRST, shared->bound);
	bool less = shared->num == shared->most && shared->least > shared->most / 2 &&
		    shared->most > first;

	lockdep_assert_held(&shared->lock);
	if (less)
		shared->most = max(shared->most / 2, first);
	shared->least = shared->posted;
	shared->since = jiffies;
	return less;
}

/* A role gives back a message, or nobody wants it. Entered. */
void rpcrdma_shared_put(struct rpcrdma_recv *recv)
{
	struct rpcrdma_shared *shared = recv->shared;
	struct rpcrdma_conn *conn = recv->conn;
	bool surplus, rearm;

	spin_lock_bh(&shared->lock);
	recv->resource.held = false;
	conn->recvs_returned++;
	conn->num_recvs--;
	list_del(&recv->resource.all);
	surplus = shared->num > shared->most;
	if (unlikely(surplus))
		shared->num--;
	else
		shared_add_idle_locked(shared, recv);
	if (shared->num_idle >= SHARED_BATCH || shared->posted < SHARED_BATCH)
		shared_post_locked(shared);
	rearm = shared->pressed && shared->posted >= shared->most / 2;
	if (unlikely(time_after(jiffies, shared->since + SHARED_REST)))
		rearm |= shared_rest_locked(shared);
	spin_unlock_bh(&shared->lock);
	if (unlikely(surplus)) {
		atomic_dec(&shared->device->shared_recvs);
		rpcrdma_recv_free(recv, shared->device->ib);
	}
	if (unlikely(rearm))
		mod_delayed_work(rpcrdma_wq, &shared->limit_work, 0);
}

/* In the teardown: what the connection still has is its own, and is freed with it. */
void rpcrdma_shared_lose(struct rpcrdma_conn *conn)
{
	struct rpcrdma_shared *shared = conn->shared;

	spin_lock_bh(&shared->lock);
	shared->num -= conn->num_recvs;
	spin_unlock_bh(&shared->lock);
	atomic_sub(conn->num_recvs, &shared->device->shared_recvs);
	/* Make others, or @pressed might last. */
	if (conn->num_recvs)
		mod_delayed_work(rpcrdma_wq, &shared->limit_work, 0);
}

/* Make the Receives that are missing, and post all that are idle. Return: false without memory. */
static bool shared_fill(struct rpcrdma_shared *shared)
{
	struct rpcrdma_recv *recv;
	bool enough = true;

	spin_lock_bh(&shared->lock);
	while (shared->num < shared->most) {
		spin_unlock_bh(&shared->lock);
		recv = rpcrdma_recv_alloc(shared->pd, shared->size,
					  GFP_NOIO | __GFP_NORETRY | __GFP_NOWARN);
		spin_lock_bh(&shared->lock);
		if (!recv) {
			shared->most = max(shared->num, 1U);
			enough = false;
			break;
		}
		recv->shared = shared;
		recv->cqe.done = shared_wc;
		shared_add_idle_locked(shared, recv);
		shared->num++;
		atomic_inc(&shared->device->shared_recvs);
	}
	shared_post_locked(shared);
	spin_unlock_bh(&shared->lock);
	return enough;
}

/*
 * Let the device report when few are posted. If they are few now, it would do so at once; then
 * connections are granted less until there are more.
 */
static int shared_arm(struct rpcrdma_shared *shared)
{
	struct ib_srq_attr attr = {};
	bool pressed;
	int err;

	spin_lock_bh(&shared->lock);
	attr.srq_limit = DIV_ROUND_UP(shared->most, 4);
	pressed = shared->posted < attr.srq_limit;
	WRITE_ONCE(shared->pressed, pressed);
	spin_unlock_bh(&shared->lock);
	if (pressed)
		return 0;
	err = ib_modify_srq(shared->srq, &attr, IB_SRQ_LIMIT);
	if (err)
		WRITE_ONCE(shared->pressed, true);	/* the next that comes back retries */
	return err;
}

/*
 * This may run in a hard interrupt. If the queue is broken, the device breaks each queue pair with
 * the next message for it.
 */
static void shared_event(struct ib_event *event, void *context)
{
	struct rpcrdma_shared *shared = context;

	if (event->event != IB_EVENT_SRQ_LIMIT_REACHED) {
		WRITE_ONCE(shared->broken, true);
		return;
	}
	atomic_long_inc(&shared->device->shared_limits);
	WRITE_ONCE(shared->limited, true);
	mod_delayed_work(rpcrdma_wq, &shared->limit_work, 0);
}

/*
 * The device has reported something, or it has to report something else from now on. New Receives
 * may all be taken at once: then there have to be more. Without memory, or if the driver fails, the
 * work tries again, as no other event may come.
 */
static void shared_limit_work(struct work_struct *work)
{
	struct rpcrdma_shared *shared = container_of(to_delayed_work(work),
						     struct rpcrdma_shared, limit_work);
	bool enough, grow = xchg(&shared->limited, false);
	int err;

	mutex_lock(&shared->setup);
	while (shared->srq) {
		spin_lock_bh(&shared->lock);
		if (grow)
			shared->most = min(2 * shared->most, shared->bound);
		spin_unlock_bh(&shared->lock);
		enough = shared_fill(shared);
		err = shared_arm(shared);
		grow = !err && READ_ONCE(shared->pressed) && shared->most < shared->bound;
		if (err || (!enough && READ_ONCE(shared->pressed))) {
			if (grow)
				WRITE_ONCE(shared->limited, true);
			mod_delayed_work(rpcrdma_wq, &shared->limit_work, SHARED_RETRY);
			break;
		}
		if (!grow)
			break;
	}
	mutex_unlock(&shared->setup);
}

static void shared_stop(struct rpcrdma_shared *shared)
{
	mutex_lock(&shared->setup);
	shared->srq = NULL;
	mutex_unlock(&shared->setup);
}

/* The device goes, and nobody uses it. What queues are left is kept for good; their work ends. */
void rpcrdma_shared_stop(struct rpcrdma_device *device)
{
	struct rpcrdma_shared *shared;

	list_for_each_entry(shared, &device->shared, all) {
		shared_stop(shared);
		cancel_delayed_work_sync(&shared->limit_work);
	}
}

/* No connection has it. What was not made is NULL or an error. */
static void shared_free(struct rpcrdma_shared *shared)
{
	struct rpcrdma_recv *recv, *next;
	struct ib_srq *srq = shared->srq;

	/* The work does nothing any more. */
	shared_stop(shared);
	if (!IS_ERR_OR_NULL(srq))
		ib_destroy_srq(srq);
	cancel_delayed_work_sync(&shared->limit_work);
	if (!IS_ERR_OR_NULL(shared->cq))
		ib_free_cq(shared->cq);
	list_for_each_entry_safe(recv, next, &shared->recvs, resource.all)
		rpcrdma_recv_free(recv, shared->device->ib);
	atomic_sub(shared->num, &shared->device->shared_recvs);
	if (!IS_ERR(shared->pd))
		ib_dealloc_pd(shared->pd);
	mutex_destroy(&shared->setup);
	kfree(shared);
}

static int shared_make_verbs(struct rpcrdma_shared *shared, unsigned int cqes)
{
	struct ib_srq_init_attr attr = {
		.event_handler = shared_event,
		.srq_context = shared,
		.attr = { .max_wr = shared->bound, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	struct ib_device *ib = shared->device->ib;

	shared->pd = ib_alloc_pd(ib, 0);
	if (IS_ERR(shared->pd))
		return PTR_ERR(shared->pd);
	shared->cq = ib_alloc_cq(ib, shared, cqes, shared->vector, RPCRDMA_POLL);
	if (IS_ERR(shared->cq))
		return PTR_ERR(shared->cq);
	shared->srq = ib_create_srq(shared->pd, &attr);
	if (IS_ERR(shared->srq))
		return PTR_ERR(shared->srq);
	shared_fill(shared);
	return shared->num ? shared_arm(shared) : -ENOMEM;
}

/* @template: what the queue has to be. Return: NULL if it cannot be made. */
static struct rpcrdma_shared *shared_make(const struct rpcrdma_shared *template, unsigned int cqes)
{
	unsigned int total = min_t(unsigned int, template->device->ib->attrs.max_cqe,
				   template->bound + SHARED_CONNS * cqes);
	struct rpcrdma_shared *shared;

	if (total < template->bound + cqes)
		return NULL;
	shared = kmemdup(template, sizeof(*template), GFP_KERNEL);
	if (!shared)
		return NULL;
	mutex_init(&shared->setup);
	INIT_DELAYED_WORK(&shared->limit_work, shared_limit_work);
	shared->since = jiffies;
	spin_lock_init(&shared->lock);
	INIT_LIST_HEAD(&shared->recvs);
	shared->most = min(SHARED_FIRST, shared->bound);
	shared->cqes = total - shared->bound;
	if (shared_make_verbs(shared, total)) {
		shared_free(shared);
		return NULL;
	}
	list_add(&shared->all, &shared->device->shared);
	return shared;
}

static bool shared_fits(const struct rpcrdma_shared *shared, const struct rpcrdma_shared *like,
			unsigned int cqes)
{
	return shared->vector == like->vector && shared->size == like->size &&
	       shared->bound == like->bound && shared->cqes >= cqes && !READ_ONCE(shared->broken);
}

/*
 * Give a connection a place in a shared receive queue, on one completion vector after the other.
 * @cqes: completions that it needs besides those of Receives. Return: false if it has to have its
 * own Receives.
 */
bool rpcrdma_shared_attach(struct rpcrdma_conn *conn, unsigned int cqes)
{
	struct rpcrdma_device *device = conn->device;
	const struct rpcrdma_conn_config *config = &conn->config;
	const struct ib_device_attr *attrs = &device->ib->attrs;
	struct rpcrdma_shared like = {
		.device = device,
		.size = round_up(rpcrdma_wire_threshold(config->version_max,
							config->params.recv_size), sizeof(__be32)),
		.bound = min_t(unsigned int, config->shared_receives, attrs->max_srq_wr),
	};
	struct rpcrdma_shared *shared;

	if (!like.bound || !attrs->max_srq || rdma_protocol_iwarp(device->ib, conn->port) ||
	    READ_ONCE(device->last_wqe) == RPCRDMA_LAST_WQE_NOT_TOLD)
		return false;
	mutex_lock(&device->shared_lock);
	like.vector = device->shared_turn++ % max(device->ib->num_comp_vectors, 1);
	list_for_each_entry(shared, &device->shared, all)
		if (shared_fits(shared, &like, cqes))
			break;
	if (list_entry_is_head(shared, &device->shared, all))
		shared = shared_make(&like, cqes);
	if (shared) {
		shared->conns++;
		shared->cqes -= cqes;
		conn->pd = shared->pd;
		conn->cq = shared->cq;
		WRITE_ONCE(conn->shared, shared);
	}
	mutex_unlock(&device->shared_lock);
	return shared;
}

/* The queue pair is destroyed. The last connection frees the queue. */
void rpcrdma_shared_detach(struct rpcrdma_conn *conn)
{
	struct rpcrdma_device *device = conn->device;
	struct rpcrdma_shared *shared = conn->shared;
	bool last;

	mutex_lock(&device->shared_lock);
	conn->pd = NULL;
	conn->cq = NULL;
	WRITE_ONCE(conn->shared, NULL);
	shared->cqes += conn->depths.cqes;
	last = !--shared->conns;
	if (last)
		list_del(&shared->all);
	mutex_unlock(&device->shared_lock);
	if (last)
		shared_free(shared);
}

/**
 * rpcrdma_recv_few - whether a server should grant fewer credits than it has promised
 * @conn: the connection
 *
 * Context: entered.
 * Return: true if few Receives are posted for the connections that share them.
 */
bool rpcrdma_recv_few(const struct rpcrdma_conn *conn)
{
	return conn->shared && READ_ONCE(conn->shared->pressed);
}
