// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The send queue: chains of work requests, each posted with one doorbell.
 *
 * Posted chains are in a FIFO. Most are not signalled and cost neither an interrupt nor a
 * completion. The completion of a signalled one proves that the unsignalled ones before it
 * are done, too.
 */
#include "conn_private.h"

/*
 * How long a signalled chain may go without a completion. Most queue pairs report an error
 * earlier, within seconds on RoCE, within minutes on a large fabric. A few never do:
 * rxe of 6.1 hangs if a registration fails while it repeats a Send. Nothing else would
 * end the connection, and NFSv4 waits as long as the connection lasts. NFS over TCP has
 * the same limit for octets that are not acknowledged.
 */
#define SQ_TIMEOUT	(180 * HZ)

void rpcrdma_sq_init(struct rpcrdma_sq *sq, unsigned int size)
{
	*sq = (struct rpcrdma_sq){ .size = size, .free = size };
}

/* Reserve space. Return: false if there is too little. */
bool rpcrdma_sq_take(struct rpcrdma_sq *sq, unsigned int wrs)
{
	if (wrs > sq->free)
		return false;
	sq->free -= wrs;
	return true;
}

/*
 * Count a chain whose space is taken. Return: whether it must be signalled: if @wanted, or if
 * without a signal more than @max_chains chains, or a third of the queue, would have none in a row.
 */
bool rpcrdma_sq_signal(struct rpcrdma_sq *sq, unsigned int wrs, bool wanted,
		       unsigned int max_chains)
{
	sq->unsignalled_wrs += wrs;
	sq->unsignalled_chains++;
	if (!wanted && sq->unsignalled_wrs <= sq->size / 3 && sq->unsignalled_chains <= max_chains)
		return false;
	sq->unsignalled_wrs = 0;
	sq->unsignalled_chains = 0;
	return true;
}

static int chain_post_locked(struct rpcrdma_conn *conn, struct rpcrdma_chain *chain,
			     bool signalled, bool *posted)
{
	/* A Send without a signal comes back only with a later completion: leave half of them. */
	unsigned int max_unsignalled = min(conn->depths.batch, READ_ONCE(conn->sends.num) / 2);
	const struct ib_send_wr *bad;
	int err;

	lockdep_assert_held(&conn->post_lock);
	if (!rpcrdma_sq_take(&conn->sq, chain->wrs))
		return -EAGAIN;
	signalled = rpcrdma_sq_signal(&conn->sq, chain->wrs, signalled, max_unsignalled);
	chain->signalled = signalled;
	if (signalled) {
		chain->last->send_flags |= IB_SEND_SIGNALED;
		chain->since = jiffies;
		if (!delayed_work_pending(&conn->sq_watchdog))
			queue_delayed_work(rpcrdma_wq, &conn->sq_watchdog, SQ_TIMEOUT);
	} else {
		chain->last->send_flags &= ~IB_SEND_SIGNALED;
	}
	rpcrdma_chains_add(&conn->fifo, chain);
	if (posted)
		smp_store_release(posted, true);	/* receive_match() sees what was built */

	/*
	 * If this fails, the device may have taken a part of the chain. Only the drain
	 * tells, so the chain stays in the FIFO until the teardown.
	 */
	err = ib_post_send(conn->qp, chain->first, &bad);
	if (unlikely(err))
		rpcrdma_conn_close_locked(conn, err);
	return 0;
}

static void chain_post_waiting_locked(struct rpcrdma_conn *conn)
{
	struct rpcrdma_chains *waiting = &conn->waiting;
	struct rpcrdma_chain *chain;

	lockdep_assert_held(&conn->post_lock);
	while ((chain = waiting->first) && chain->wrs <= conn->sq.free &&
	       conn->state == RPCRDMA_STATE_ESTABLISHED) {
		WRITE_ONCE(waiting->first, chain->next);
		if (!chain->next)
			waiting->end = &waiting->first;
		chain_post_locked(conn, chain, true, NULL);
	}
}

/*
 * @chain is done, and so are the unsignalled ones before it. An earlier signalled one waits for
 * its own completion, because siw reports a Send as complete before an earlier RDMA Read.
 * Return: the chains that are done, in order.
 */
static struct rpcrdma_chain *chain_take_done_locked(struct rpcrdma_conn *conn,
						    struct rpcrdma_chain *chain)
{
	struct rpcrdma_chain **link = &conn->fifo.first, *earlier;
	struct rpcrdma_chain *done, **end = &done;

	lockdep_assert_held(&conn->post_lock);
	do {
		earlier = *link;
		if (WARN_ON_ONCE(!earlier))
			break;
		if (earlier->signalled && earlier != chain) {
			link = &earlier->next;
			continue;
		}
		*link = earlier->next;
		*end = earlier;
		end = &earlier->next;
		conn->sq.free += earlier->wrs;
	} while (earlier != chain);
	if (!*link)
		conn->fifo.end = link;
	*end = NULL;
	return done;
}

static void chain_completed(struct rpcrdma_conn *conn, struct rpcrdma_chain *chain)
{
	struct rpcrdma_chain *done;
	bool wanted;

	spin_lock_bh(&conn->post_lock);
	done = chain_take_done_locked(conn, chain);
	chain_post_waiting_locked(conn);
	wanted = conn->sq_wanted;
	conn->sq_wanted = false;
	spin_unlock_bh(&conn->post_lock);

	if (wanted)
		queue_work(rpcrdma_wq, &conn->writable_work);
	while ((chain = done)) {
		done = chain->next;
		rpcrdma_deliver_done(conn, chain);
	}
}

/*
 * If a connection is stuck, its chains are done already, and their owners may use them on
 * another connection. So the connection is that of the queue pair, not chain->conn.
 */
static void chain_wc(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rpcrdma_chain *chain = container_of(wc->wr_cqe, struct rpcrdma_chain, cqe);
	struct rpcrdma_conn *conn = wc->qp->qp_context;

	if (unlikely(!rpcrdma_conn_enter(conn)))
		return;
	if (likely(wc->status == IB_WC_SUCCESS)) {
		chain_completed(conn, chain);
	} else {
		/* The teardown completes it, after the drain. */
		if (wc->status == IB_WC_REM_ACCESS_ERR)
			chain->denied = true;
		rpcrdma_conn_wc_error(conn, wc);
	}
	rpcrdma_conn_leave(conn);
}

/* Completion of a registration or an invalidation that is not the last of its chain */
static void chain_error_wc(struct ib_cq *cq, struct ib_wc *wc)
{
	if (wc->status != IB_WC_SUCCESS)
		rpcrdma_conn_wc_error(container_of(wc->wr_cqe, struct rpcrdma_conn, error_cqe), wc);
}

static void chain_writable_work(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(work, struct rpcrdma_conn, writable_work);

	if (rpcrdma_conn_established(conn))
		conn->ops->writable(conn);
}

/*
 * Queues itself again for the time when the oldest signalled chain will be overdue. If
 * there is none, the next post of a signalled chain queues it.
 */
static void chain_watchdog(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(to_delayed_work(work), struct rpcrdma_conn,
						 sq_watchdog);
	struct rpcrdma_chain *chain;
	unsigned long age;

	spin_lock_bh(&conn->post_lock);
	for (chain = conn->fifo.first; chain; chain = chain->next) {
		if (!chain->signalled)
			continue;
		age = jiffies - chain->since;
		if (age >= SQ_TIMEOUT)
			rpcrdma_conn_close_locked(conn, -ETIMEDOUT);
		else if (conn->state == RPCRDMA_STATE_ESTABLISHED)
			queue_delayed_work(rpcrdma_wq, &conn->sq_watchdog, SQ_TIMEOUT - age);
		break;
	}
	spin_unlock_bh(&conn->post_lock);
}

void rpcrdma_chain_init(struct rpcrdma_conn *conn)
{
	spin_lock_init(&conn->post_lock);
	rpcrdma_chains_init(&conn->fifo);
	rpcrdma_chains_init(&conn->waiting);
	INIT_WORK(&conn->writable_work, chain_writable_work);
	INIT_DELAYED_WORK(&conn->sq_watchdog, chain_watchdog);
	conn->error_cqe.done = chain_error_wc;
}

/*
 * Any work request of the chain may fail, and the device flushes those after it. So each
 * of them needs a completion handler.
 */
static void chain_prepare(struct rpcrdma_chain *chain, struct ib_send_wr *first,
			  struct ib_send_wr *last)
{
	struct ib_send_wr *wr;
	unsigned int wrs = 1;

	for (wr = first; wr != last; wr = wr->next) {
		if (!wr->wr_cqe)
			wr->wr_cqe = &chain->cqe;
		wrs++;
	}
	last->next = NULL;
	last->wr_cqe = &chain->cqe;
	chain->cqe.done = chain_wc;
	chain->first = first;
	chain->last = last;
	chain->wrs = min_t(unsigned int, wrs, U16_MAX);
	chain->denied = false;
}

/**
 * rpcrdma_chain_post - post a chain of work requests with one doorbell
 * @conn: the connection
 * @chain: stands for the chain; the caller has set @chain->done
 * @first: the first work request
 * @last: the last work request, reached from @first by next
 * @flags: %RPCRDMA_POST_SIGNALLED, %RPCRDMA_POST_LATER, %RPCRDMA_POST_DONE_IN_WQ
 * @posted: set to true before the device gets the chain, so before the peer can answer it.
 *	Then this returns 0. May be NULL, and must be with %RPCRDMA_POST_LATER.
 *
 * Sets wr_cqe where it is NULL, and wr_cqe and IB_SEND_SIGNALED of @last. The work requests
 * must live until this returns, with %RPCRDMA_POST_LATER until @chain->done; what they refer
 * to, until @chain->done.
 *
 * Context: the caller holds a reference.
 * Return: 0: @chain->done will be called once. On an error nothing is posted and
 * @chain->done is not called. -EAGAIN: no space; ->writable follows; never with
 * %RPCRDMA_POST_LATER. -ENOTCONN: not established. -EMSGSIZE: more than @conn->max_chain
 * work requests.
 */
int rpcrdma_chain_post(struct rpcrdma_conn *conn, struct rpcrdma_chain *chain,
		       struct ib_send_wr *first, struct ib_send_wr *last, unsigned int flags,
		       bool *posted)
{
	int err;

	chain_prepare(chain, first, last);
	chain->conn = conn;
	chain->deliver_later = flags & RPCRDMA_POST_DONE_IN_WQ;
	spin_lock_bh(&conn->post_lock);
	if (unlikely(conn->state != RPCRDMA_STATE_ESTABLISHED))
		err = -ENOTCONN;
	else if (unlikely(chain->wrs > conn->max_chain))
		err = -EMSGSIZE;
	else if (unlikely(conn->waiting.first))	/* these go first */
		err = -EAGAIN;
	else
		err = chain_post_locked(conn, chain, flags & RPCRDMA_POST_SIGNALLED, posted);
	if (unlikely(err == -EAGAIN)) {
		if (conn->config.sq_full)
			atomic_long_inc(conn->config.sq_full);
		if (flags & RPCRDMA_POST_LATER) {
			if (conn->server)	/* what a client posts later is no RPC */
				conn->counters.waits[RPCRDMA_A_WAITS_SEND_QUEUE]++;
			rpcrdma_chains_add(&conn->waiting, chain);
			err = 0;
		} else {
			conn->sq_wanted = true;
		}
	}
	spin_unlock_bh(&conn->post_lock);
	return err;
}

/**
 * rpcrdma_chain_waits - do chains wait for space?
 * @conn: the connection
 *
 * A role asks this before it starts something that ends in a post with %RPCRDMA_POST_LATER.
 *
 * Return: true if chains wait; then ->writable follows when space has come back, and the role
 * asks again.
 */
bool rpcrdma_chain_waits(struct rpcrdma_conn *conn)
{
	bool waits;

	if (likely(!READ_ONCE(conn->waiting.first)))
		return false;
	spin_lock_bh(&conn->post_lock);
	waits = conn->waiting.first;
	if (waits)
		conn->sq_wanted = true;
	spin_unlock_bh(&conn->post_lock);
	return waits;
}

/* The teardown completes what is posted or waits: the queue pair is drained, or @conn is stuck. */
void rpcrdma_chain_flush(struct rpcrdma_conn *conn)
{
	struct rpcrdma_chain *chain, *flushed;

	/* In CLOSING nothing is posted, so nothing queues this again. */
	cancel_delayed_work_sync(&conn->sq_watchdog);
	spin_lock_bh(&conn->post_lock);
	*conn->fifo.end = conn->waiting.first;
	flushed = conn->fifo.first;
	rpcrdma_chains_init(&conn->fifo);
	rpcrdma_chains_init(&conn->waiting);
	spin_unlock_bh(&conn->post_lock);

	while ((chain = flushed)) {
		flushed = chain->next;
		chain->done(chain, chain->denied ? -EREMOTEIO : -ENOTCONN);
	}
}
