// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The send queue: chains of work requests, posted with one doorbell each.
 *
 * A signalled completion proves that earlier work requests of a queue pair are
 * done, so chains wait in a FIFO, and such a completion takes its own chain off
 * it, and those before that are not signalled. That is most of them: they cost
 * no interrupt and no completion of their own.
 */
#include "conn_private.h"
#include "../trace.h"

/*
 * How long a signalled work may go without its completion. Queue pairs give up
 * by themselves: within seconds on RoCE, minutes on a large fabric. A few never
 * do: rxe of 6.1 is stuck if it fails a registration while it repeats a Send.
 * Nothing else tells, as NFSv4 waits for as long as there is a connection. NFS
 * over TCP has the same limit on octets that are not acknowledged.
 */
#define SQ_TIMEOUT	(180 * HZ)

/**
 * rpcrdma_sq_init - account for an empty send queue
 * @sq: the account
 * @size: work requests that fit
 */
void rpcrdma_sq_init(struct rpcrdma_sq *sq, unsigned int size)
{
	*sq = (struct rpcrdma_sq){ .size = size, .free = size };
}

/**
 * rpcrdma_sq_take - make room in a send queue
 * @sq: the account
 * @wrs: work requests
 *
 * Return: whether there is room.
 */
bool rpcrdma_sq_take(struct rpcrdma_sq *sq, unsigned int wrs)
{
	if (wrs > sq->free)
		return false;
	sq->free -= wrs;
	return true;
}

/**
 * rpcrdma_sq_signal - decide whether a chain has to be signalled
 * @sq: the account, from which the chain has been taken
 * @wrs: its work requests
 * @wanted: whether it has to be in any case
 * @max_works: chains in a row that need not be
 *
 * Return: whether its last work request has to be signalled.
 */
bool rpcrdma_sq_signal(struct rpcrdma_sq *sq, unsigned int wrs, bool wanted,
		       unsigned int max_works)
{
	sq->unsignalled_wrs += wrs;
	sq->unsignalled_works++;
	if (!wanted && sq->unsignalled_wrs <= sq->size / 3 &&
	    sq->unsignalled_works <= max_works)
		return false;
	sq->unsignalled_wrs = 0;
	sq->unsignalled_works = 0;
	return true;
}

/*
 * Sends come back with a later signalled completion. There are few of them as
 * long as nobody needs more, and not all of them may lie unsignalled.
 */
static unsigned int work_max_unsignalled(const struct rpcrdma_conn *conn)
{
	return min(conn->depths.batch, READ_ONCE(conn->num_sends) / 2);
}

/* The connection is established. */
static int work_post_locked(struct rpcrdma_conn *conn,
			    struct rpcrdma_work *work, bool signalled)
{
	const struct ib_send_wr *bad;
	int err;

	lockdep_assert_held(&conn->post_lock);
	if (!rpcrdma_sq_take(&conn->sq, work->wrs)) {
		trace_rpcrdma_post_full(conn, work->wrs);
		return -EAGAIN;
	}
	signalled = rpcrdma_sq_signal(&conn->sq, work->wrs, signalled,
				      work_max_unsignalled(conn));
	work->signalled = signalled;
	if (signalled) {
		work->last->send_flags |= IB_SEND_SIGNALED;
		work->since = jiffies;
		if (!delayed_work_pending(&conn->sq_watchdog))
			queue_delayed_work(rpcrdma_wq, &conn->sq_watchdog, SQ_TIMEOUT);
	} else {
		work->last->send_flags &= ~IB_SEND_SIGNALED;
	}
	list_add_tail(&work->list, &conn->fifo);
	trace_rpcrdma_post(conn, work->wrs, signalled, work->last->opcode);

	/*
	 * If this fails the device may have taken a part of the chain. Only
	 * draining tells, so the work stays in the FIFO until the teardown.
	 */
	err = ib_post_send(conn->qp, work->first, &bad);
	if (unlikely(err))
		rpcrdma_conn_close_locked(conn, err);
	return 0;
}

static void work_post_waiting_locked(struct rpcrdma_conn *conn)
{
	struct rpcrdma_work *work;

	lockdep_assert_held(&conn->post_lock);
	while (conn->state == RPCRDMA_CONN_ESTABLISHED && !list_empty(&conn->waiting)) {
		work = list_first_entry(&conn->waiting, struct rpcrdma_work, list);
		if (work->wrs > conn->sq.free)
			break;
		list_del(&work->list);
		work_post_locked(conn, work, true);
	}
}

/*
 * What a signalled completion proves done, in order: @work and those before it
 * that have no completion of their own. One that has is left to it, for siw
 * completes a Send before the RDMA Read in front of it.
 */
static void work_take_done_locked(struct rpcrdma_conn *conn, struct rpcrdma_work *work,
				  struct list_head *done)
{
	struct rpcrdma_work *earlier, *next;

	lockdep_assert_held(&conn->post_lock);
	list_for_each_entry_safe(earlier, next, &conn->fifo, list) {
		if (earlier->signalled && earlier != work)
			continue;
		conn->sq.free += earlier->wrs;
		list_move_tail(&earlier->list, done);
		if (earlier == work)
			return;
	}
	WARN_ON_ONCE(1);
}

static void work_wc(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rpcrdma_work *work = container_of(wc->wr_cqe, struct rpcrdma_work, cqe);
	struct rpcrdma_conn *conn = work->conn;
	struct rpcrdma_work *next;
	LIST_HEAD(done);
	bool wanted;

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		/* The teardown completes the work, after draining. */
		if (wc->status == IB_WC_REM_ACCESS_ERR)
			work->denied = true;
		rpcrdma_conn_wc_error(conn, wc);
		return;
	}
	/* Likewise, as it destroys the queue pair. */
	if (unlikely(READ_ONCE(conn->undrained)))
		return;

	spin_lock_bh(&conn->post_lock);
	work_take_done_locked(conn, work, &done);
	work_post_waiting_locked(conn);
	wanted = conn->sq_wanted;
	conn->sq_wanted = false;
	spin_unlock_bh(&conn->post_lock);

	if (wanted)
		queue_work(rpcrdma_wq, &conn->writable_work);
	list_for_each_entry_safe(work, next, &done, list)
		work->done(work, 0);
}

/* Of registrations and invalidations that are not the last of their chain */
static void work_error_wc(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rpcrdma_conn *conn = container_of(wc->wr_cqe, struct rpcrdma_conn, error_cqe);

	if (wc->status != IB_WC_SUCCESS)
		rpcrdma_conn_wc_error(conn, wc);
}

static void work_writable(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(work, struct rpcrdma_conn, writable_work);

	if (rpcrdma_conn_established(conn))
		conn->ops->writable(conn);
}

/*
 * Runs again when the oldest would be overdue. If there is none, the next to be
 * posted starts it.
 */
static void work_sq_watchdog(struct work_struct *watchdog)
{
	struct rpcrdma_conn *conn = container_of(to_delayed_work(watchdog),
						 struct rpcrdma_conn,
						 sq_watchdog);
	struct rpcrdma_work *work;
	unsigned long age;

	spin_lock_bh(&conn->post_lock);
	list_for_each_entry(work, &conn->fifo, list) {
		if (!work->signalled)
			continue;
		age = jiffies - work->since;
		if (age >= SQ_TIMEOUT)
			rpcrdma_conn_close_locked(conn, -ETIMEDOUT);
		else if (conn->state == RPCRDMA_CONN_ESTABLISHED)
			queue_delayed_work(rpcrdma_wq, &conn->sq_watchdog, SQ_TIMEOUT - age);
		break;
	}
	spin_unlock_bh(&conn->post_lock);
}

/**
 * rpcrdma_work_init - before the first work
 * @conn: the connection
 */
void rpcrdma_work_init(struct rpcrdma_conn *conn)
{
	spin_lock_init(&conn->post_lock);
	INIT_LIST_HEAD(&conn->fifo);
	INIT_LIST_HEAD(&conn->waiting);
	INIT_WORK(&conn->writable_work, work_writable);
	INIT_DELAYED_WORK(&conn->sq_watchdog, work_sq_watchdog);
	conn->error_cqe.done = work_error_wc;
}

/*
 * An error is reported by the work request that failed; those behind it are
 * flushed. So each of them needs somewhere to report to.
 */
static int work_prepare(struct rpcrdma_conn *conn, struct rpcrdma_work *work,
			struct ib_send_wr *first, struct ib_send_wr *last)
{
	struct ib_send_wr *wr;
	unsigned int wrs = 1;

	/* Before that @max_chain is not known. */
	if (!rpcrdma_conn_established(conn))
		return -ENOTCONN;
	for (wr = first; wr != last; wr = wr->next) {
		if (!wr->wr_cqe)
			wr->wr_cqe = &work->cqe;
		wrs++;
	}
	if (wrs > conn->max_chain)
		return -EMSGSIZE;
	last->next = NULL;
	last->wr_cqe = &work->cqe;
	work->cqe.done = work_wc;
	work->conn = conn;
	work->first = first;
	work->last = last;
	work->wrs = wrs;
	work->denied = false;
	return 0;
}

static void work_count_full(const struct rpcrdma_conn *conn)
{
	if (conn->config.sq_full)
		atomic_long_inc(conn->config.sq_full);
}

/* Works that wait already go first. */
static int work_try_post_locked(struct rpcrdma_conn *conn, struct rpcrdma_work *work,
				bool signalled)
{
	lockdep_assert_held(&conn->post_lock);
	if (conn->state != RPCRDMA_CONN_ESTABLISHED)
		return -ENOTCONN;
	if (!list_empty(&conn->waiting)) {
		trace_rpcrdma_post_full(conn, work->wrs);
		return -EAGAIN;
	}
	return work_post_locked(conn, work, signalled);
}

/**
 * rpcrdma_work_post - post a chain of work requests, with one doorbell
 * @conn: the connection
 * @work: stands for the chain; @work->done is set
 * @first: the first work request
 * @last: the last one, which is reached from @first by next
 * @signalled: ask the device to report when the chain is done
 *
 * Work requests without wr_cqe get one; that and the signalling of @last
 * belong to the connection. The work requests are not needed after the call,
 * what they refer to is until @work->done.
 *
 * Context: any but hard interrupts.
 * Return: 0: @work->done will be called once, whatever happens.
 * Otherwise nothing has been posted and it will not be called:
 * -EAGAIN: no room; ->writable follows. -ENOTCONN: not or no longer
 * established. -EMSGSIZE: more than @conn->max_chain work requests.
 */
int rpcrdma_work_post(struct rpcrdma_conn *conn, struct rpcrdma_work *work,
		      struct ib_send_wr *first, struct ib_send_wr *last,
		      bool signalled)
{
	int err;

	err = work_prepare(conn, work, first, last);
	if (err)
		return err;
	spin_lock_bh(&conn->post_lock);
	err = work_try_post_locked(conn, work, signalled);
	if (err == -EAGAIN)
		conn->sq_wanted = true;
	spin_unlock_bh(&conn->post_lock);
	if (err == -EAGAIN)
		work_count_full(conn);
	return err;
}

/**
 * rpcrdma_work_post_later - post a chain as soon as there is room
 * @conn: the connection
 * @work: stands for the chain
 * @first: the first work request
 * @last: the last one
 * @signalled: ask the device to report when the chain is done; if it has to wait for
 *	room it does so in any case
 *
 * For whoever can neither fail nor wait. What waits goes before all that is posted
 * otherwise: what gives memory back must not stand behind what asks for more. The
 * work requests are needed until @work->done.
 *
 * Context: any but hard interrupts.
 * Return: 0: @work->done will be called once. -ENOTCONN, -EMSGSIZE: it won't.
 */
int rpcrdma_work_post_later(struct rpcrdma_conn *conn,
			    struct rpcrdma_work *work,
			    struct ib_send_wr *first, struct ib_send_wr *last,
			    bool signalled)
{
	int err;

	err = work_prepare(conn, work, first, last);
	if (err)
		return err;

	spin_lock_bh(&conn->post_lock);
	err = work_try_post_locked(conn, work, signalled);
	if (err == -EAGAIN)
		list_add_tail(&work->list, &conn->waiting);
	spin_unlock_bh(&conn->post_lock);
	if (err != -EAGAIN)
		return err;
	work_count_full(conn);
	return 0;
}

/**
 * rpcrdma_work_waits - whether chains wait for room
 * @conn: the connection
 *
 * For whoever would add to what rpcrdma_work_post_later() has made wait.
 *
 * Context: any but hard interrupts.
 * Return: true if any do; then ->writable follows when there may be none.
 */
bool rpcrdma_work_waits(struct rpcrdma_conn *conn)
{
	bool waits;

	if (list_empty(&conn->waiting))
		return false;
	spin_lock_bh(&conn->post_lock);
	waits = !list_empty(&conn->waiting);
	if (waits)
		conn->sq_wanted = true;
	spin_unlock_bh(&conn->post_lock);
	return waits;
}

/**
 * rpcrdma_work_flush - complete what the device will never complete
 * @conn: the connection, closing; its queue pair is drained
 *
 * Context: process, the teardown's.
 */
void rpcrdma_work_flush(struct rpcrdma_conn *conn)
{
	struct rpcrdma_work *work, *next;
	LIST_HEAD(flushed);

	/* Nobody posts any more. */
	cancel_delayed_work_sync(&conn->sq_watchdog);
	spin_lock_bh(&conn->post_lock);
	list_splice_tail_init(&conn->fifo, &flushed);
	list_splice_tail_init(&conn->waiting, &flushed);
	spin_unlock_bh(&conn->post_lock);

	list_for_each_entry_safe(work, next, &flushed, list)
		work->done(work, work->denied ? -EREMOTEIO : -ENOTCONN);
}
