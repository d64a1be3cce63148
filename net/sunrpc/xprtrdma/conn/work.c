// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The send queue: works, which are chains of work requests posted with one doorbell.
 *
 * Posted works are in a FIFO. A signalled completion proves that everything posted
 * before it is done. It removes its own work and the unsignalled works before it. Most
 * works are not signalled and cost neither an interrupt nor a completion.
 */
#include "conn_private.h"
#include "../trace.h"

/*
 * How long a signalled work may go without a completion. Most queue pairs report an error
 * earlier, within seconds on RoCE, within minutes on a large fabric. A few never do:
 * rxe of 6.1 hangs if a registration fails while it repeats a Send. Nothing else would
 * end the connection, and NFSv4 waits as long as the connection lasts. NFS over TCP has
 * the same limit for octets that are not acknowledged.
 */
#define SQ_TIMEOUT	(180 * HZ)

/**
 * rpcrdma_sq_init - start the account of an empty send queue
 * @sq: the account
 * @size: work requests that fit
 *
 * Context: any.
 */
void rpcrdma_sq_init(struct rpcrdma_sq *sq, unsigned int size)
{
	*sq = (struct rpcrdma_sq){ .size = size, .free = size };
}

/**
 * rpcrdma_sq_take - reserve space in a send queue
 * @sq: the account
 * @wrs: number of work requests
 *
 * Context: post_lock of the connection is held.
 * Return: true if there was space, which is now reserved.
 */
bool rpcrdma_sq_take(struct rpcrdma_sq *sq, unsigned int wrs)
{
	if (wrs > sq->free)
		return false;
	sq->free -= wrs;
	return true;
}

/**
 * rpcrdma_sq_signal - decide whether a work has to be signalled
 * @sq: the account, in which space for the work is reserved
 * @wrs: number of its work requests
 * @wanted: it has to be signalled in any case
 * @max_works: works in a row that need not be signalled
 *
 * Context: post_lock of the connection is held.
 * Return: true if the last work request has to be signalled.
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
 * Unsignalled Sends come back with a later completion. A connection makes Sends on
 * demand, so only half of those that exist may be unsignalled.
 */
static unsigned int work_max_unsignalled(const struct rpcrdma_conn *conn)
{
	return min(conn->depths.batch, READ_ONCE(conn->num_sends) / 2);
}

/* The caller has checked that the connection is established. */
static __always_inline int work_post_locked(struct rpcrdma_conn *conn,
					    struct rpcrdma_work *work, bool signalled,
					    bool *posted)
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
	rpcrdma_works_add(&conn->fifo, work);
	trace_rpcrdma_post(conn, work->wrs, signalled, work->last->opcode);
	if (posted)
		WRITE_ONCE(*posted, true);

	/*
	 * If this fails, the device may have taken a part of the chain. Only the drain
	 * tells, so the work stays in the FIFO until the teardown.
	 */
	err = ib_post_send(conn->qp, work->first, &bad);
	if (unlikely(err))
		rpcrdma_conn_close_locked(conn, err);
	return 0;
}

static noinline void work_post_waiting_locked(struct rpcrdma_conn *conn)
{
	struct rpcrdma_works *waiting = &conn->waiting;
	struct rpcrdma_work *work;

	lockdep_assert_held(&conn->post_lock);
	while (conn->state == RPCRDMA_CONN_ESTABLISHED && waiting->first) {
		work = waiting->first;
		if (work->wrs > conn->sq.free)
			break;
		WRITE_ONCE(waiting->first, work->next);
		if (!work->next)
			waiting->end = &waiting->first;
		work_post_locked(conn, work, true, NULL);
	}
}

/*
 * A signalled completion proves that @work and the unsignalled works before it are done.
 * An earlier signalled work waits for its own completion, because siw reports a Send as
 * complete before an earlier RDMA Read. Return: the works that are done, in order.
 */
static struct rpcrdma_work *work_take_done_locked(struct rpcrdma_conn *conn,
						  struct rpcrdma_work *work)
{
	struct rpcrdma_work **link = &conn->fifo.first, *earlier;
	struct rpcrdma_work *done, **end = &done;

	lockdep_assert_held(&conn->post_lock);
	do {
		earlier = *link;
		if (WARN_ON_ONCE(!earlier))
			break;
		if (earlier->signalled && earlier != work) {
			link = &earlier->next;
			continue;
		}
		*link = earlier->next;
		*end = earlier;
		end = &earlier->next;
		conn->sq.free += earlier->wrs;
	} while (earlier != work);
	if (!*link)
		conn->fifo.end = link;
	*end = NULL;
	return done;
}

static void work_completed(struct rpcrdma_conn *conn, struct rpcrdma_work *work,
			   const struct ib_wc *wc)
{
	struct rpcrdma_work *done;
	bool wanted;

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		/* The teardown completes the work, after the drain. */
		if (wc->status == IB_WC_REM_ACCESS_ERR)
			work->denied = true;
		rpcrdma_conn_wc_error(conn, wc);
		return;
	}
	spin_lock_bh(&conn->post_lock);
	done = work_take_done_locked(conn, work);
	if (unlikely(conn->waiting.first))
		work_post_waiting_locked(conn);
	wanted = conn->sq_wanted;
	conn->sq_wanted = false;
	spin_unlock_bh(&conn->post_lock);

	if (wanted)
		queue_work(rpcrdma_wq, &conn->writable_work);
	while ((work = done)) {
		done = work->next;
		work->done(work, 0);
	}
}

/*
 * If a connection is stuck, its works are done already, and their owners may use them for
 * another connection. So the queue pair tells whose completion this is.
 */
static void work_wc(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rpcrdma_conn *conn = wc->qp->qp_context;

	if (unlikely(!rpcrdma_conn_enter_wc(conn)))
		return;
	work_completed(conn, container_of(wc->wr_cqe, struct rpcrdma_work, cqe), wc);
	rpcrdma_conn_leave(conn);
}

/* Completion of a registration or an invalidation that is not the last of its chain */
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
 * Queues itself again for the time when the oldest signalled work will be overdue. If
 * there is none, the next post of a signalled work queues it.
 */
static void work_sq_watchdog(struct work_struct *watchdog)
{
	struct rpcrdma_conn *conn = container_of(to_delayed_work(watchdog),
						 struct rpcrdma_conn,
						 sq_watchdog);
	struct rpcrdma_work *work;
	unsigned long age;

	spin_lock_bh(&conn->post_lock);
	for (work = conn->fifo.first; work; work = work->next) {
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
 * rpcrdma_work_init - initialise the send queue of a connection
 * @conn: the new connection
 *
 * Context: any.
 */
void rpcrdma_work_init(struct rpcrdma_conn *conn)
{
	spin_lock_init(&conn->post_lock);
	rpcrdma_works_init(&conn->fifo);
	rpcrdma_works_init(&conn->waiting);
	INIT_WORK(&conn->writable_work, work_writable);
	INIT_DELAYED_WORK(&conn->sq_watchdog, work_sq_watchdog);
	conn->error_cqe.done = work_error_wc;
}

/*
 * Any work request of the chain may fail, and the device flushes those after it. So each
 * of them needs a completion handler.
 */
static void work_prepare(struct rpcrdma_conn *conn, struct rpcrdma_work *work,
			 struct ib_send_wr *first, struct ib_send_wr *last)
{
	struct ib_send_wr *wr;
	unsigned int wrs = 1;

	for (wr = first; wr != last; wr = wr->next) {
		if (!wr->wr_cqe)
			wr->wr_cqe = &work->cqe;
		wrs++;
	}
	last->next = NULL;
	last->wr_cqe = &work->cqe;
	work->cqe.done = work_wc;
	work->conn = conn;
	work->first = first;
	work->last = last;
	work->wrs = min_t(unsigned int, wrs, U16_MAX);
	work->denied = false;
}

/* Return: -EAGAIN, or 0 if the work is posted later. */
static noinline int work_wait_locked(struct rpcrdma_conn *conn, struct rpcrdma_work *work,
				     bool later)
{
	lockdep_assert_held(&conn->post_lock);
	if (conn->config.sq_full)
		atomic_long_inc(conn->config.sq_full);
	if (later) {
		conn->sq_waits++;
		rpcrdma_works_add(&conn->waiting, work);
		return 0;
	}
	conn->sq_wanted = true;
	return -EAGAIN;
}

/* Works that wait for space go first. */
static __always_inline int work_try_post_locked(struct rpcrdma_conn *conn,
						struct rpcrdma_work *work, bool signalled,
						bool *posted)
{
	lockdep_assert_held(&conn->post_lock);
	if (unlikely(conn->state != RPCRDMA_CONN_ESTABLISHED))
		return -ENOTCONN;
	if (unlikely(work->wrs > conn->max_chain))
		return -EMSGSIZE;
	if (unlikely(conn->waiting.first)) {
		trace_rpcrdma_post_full(conn, work->wrs);
		return -EAGAIN;
	}
	return work_post_locked(conn, work, signalled, posted);
}

/* Inline in both functions below, so that posting a Send saves registers once. */
static __always_inline int work_submit(struct rpcrdma_conn *conn, struct rpcrdma_work *work,
				       struct ib_send_wr *first, struct ib_send_wr *last,
				       bool signalled, bool later, bool *posted)
{
	int err;

	work_prepare(conn, work, first, last);
	spin_lock_bh(&conn->post_lock);
	err = work_try_post_locked(conn, work, signalled, posted);
	if (unlikely(err == -EAGAIN))
		err = work_wait_locked(conn, work, later);
	spin_unlock_bh(&conn->post_lock);
	return err;
}

/**
 * rpcrdma_work_submit - post a chain of work requests with one doorbell
 * @conn: the connection
 * @work: the work that stands for the chain; the caller has set @work->done
 * @first: the first work request
 * @last: the last work request, reached from @first by next
 * @signalled: ask the device to report when the chain is done; if the chain has to wait
 *	for space, the device reports it in any case
 * @later: without space, post the chain as soon as there is some. For callers that can
 *	neither fail nor wait. Chains that wait are posted before anything else, because
 *	what frees memory must not wait for what needs more.
 *
 * Sets wr_cqe where it is NULL, and sets wr_cqe and IB_SEND_SIGNALED of @last. Without
 * @later the work requests are not needed after the call, with it until @work->done.
 * What they refer to is needed until @work->done.
 *
 * Context: any but hard interrupts; takes post_lock.
 * Return: 0: @work->done will be called once. On an error nothing is posted and
 * @work->done is not called. -EAGAIN: no space; ->writable follows; never with @later.
 * -ENOTCONN: not established. -EMSGSIZE: more than @conn->max_chain work requests.
 */
int rpcrdma_work_submit(struct rpcrdma_conn *conn, struct rpcrdma_work *work,
			struct ib_send_wr *first, struct ib_send_wr *last,
			bool signalled, bool later)
{
	return work_submit(conn, work, first, last, signalled, later, NULL);
}

/*
 * siw passes an unsignalled Send of a page or more to TCP by reference, and counts it as
 * done while TCP may still need the buffer. The completion of a later Send would then
 * give the buffer back too early. So a Send with so much in its own buffer is signalled.
 * Gathered pages need no check: a role that wants them back asks for a signal itself.
 */
static bool send_wants_signal(const struct rpcrdma_send *send)
{
	const struct rpcrdma_conn *conn = send->work.conn;

	return send->len >= PAGE_SIZE && rdma_protocol_iwarp(conn->device->ib, conn->port);
}

/**
 * rpcrdma_send_submit - post a Send and the work requests before it
 * @send: the Send, owned by the caller
 * @first: the first work request before the Send; the last one points to &@send->wr;
 *	NULL if there are none
 * @signalled: ask the device to report when the Send is done; if the Send has to wait
 *	for space, the device reports it in any case
 * @later: without space, post it as soon as there is some: see rpcrdma_work_submit()
 * @posted: set to true when it is certain that this will return 0, before the device gets
 *	the Send. So whatever the peer does when it has the Send comes after that. NULL: not
 *	wanted; nor can it be with @later.
 *
 * Context: entered; any but hard interrupts.
 * Return: 0: @send->work.done will be called once. -EAGAIN: no space; ->writable
 * follows; never with @later. -ENOTCONN: not established. -EMSGSIZE: more than
 * conn->max_chain work requests. On an error the caller still owns @send and may try
 * again.
 */
int rpcrdma_send_submit(struct rpcrdma_send *send, struct ib_send_wr *first,
			bool signalled, bool later, bool *posted)
{
	struct rpcrdma_conn *conn = send->work.conn;

	send->sge[0].length = send->len;
	send->wr.num_sge = send->num_sge;
	ib_dma_sync_single_for_device(conn->device->ib, send->sge[0].addr,
				      send->len, DMA_TO_DEVICE);
	return work_submit(conn, &send->work, first ?: &send->wr, &send->wr,
			   signalled || send_wants_signal(send), later, posted);
}

/**
 * rpcrdma_work_still_waits - rpcrdma_work_waits(), if some did a moment ago
 * @conn: the connection
 *
 * Context: any but hard interrupts.
 * Return: true if chains wait; then ->writable follows when the list may be empty.
 */
bool rpcrdma_work_still_waits(struct rpcrdma_conn *conn)
{
	bool waits;

	spin_lock_bh(&conn->post_lock);
	waits = conn->waiting.first;
	if (waits)
		conn->sq_wanted = true;
	spin_unlock_bh(&conn->post_lock);
	return waits;
}

/**
 * rpcrdma_work_flush - complete all works that are still posted or wait for space
 * @conn: the connection, in CLOSING; its queue pair is drained, or kept for good
 *
 * Context: the teardown; sleeps.
 */
void rpcrdma_work_flush(struct rpcrdma_conn *conn)
{
	struct rpcrdma_work *work, *flushed;

	/* In CLOSING nothing is posted, so nothing queues this again. */
	cancel_delayed_work_sync(&conn->sq_watchdog);
	spin_lock_bh(&conn->post_lock);
	*conn->fifo.end = conn->waiting.first;
	flushed = conn->fifo.first;
	rpcrdma_works_init(&conn->fifo);
	rpcrdma_works_init(&conn->waiting);
	spin_unlock_bh(&conn->post_lock);

	while ((work = flushed)) {
		flushed = work->next;
		work->done(work, work->denied ? -EREMOTEIO : -ENOTCONN);
	}
}
