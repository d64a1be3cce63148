// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The queue pair of a connection, and the depths of its queues.
 */
#include <linux/delay.h>

#include "conn_private.h"

/* When the device refuses a send queue, a smaller one is tried, but none below this. */
#define SQ_MIN		64U

/*
 * How often a queue pair is told to stop, the pause in between, and from which refusal on it is
 * asked whether it has stopped
 */
#define STOP_TRIES	20
#define STOP_PAUSE_MS	100
#define STOP_SURE	3

/* Send queue entries of an rdma_rw context, at most: registration, RDMA, invalidation */
#define RW_FACTOR	3

/* How long the device may take to say that it takes no more shared Receives for a queue pair */
#define LAST_WQE_TIMEOUT	(5 * HZ)

/* Code of 1.28 ms: the pause after which a message that found no shared Receive is repeated */
#define RNR_TIMER	14

/*
 * Choose the size of each queue and pool of a connection.
 *
 * The receive queue has to hold all messages for which there are credits, so a small
 * device lowers the credits. The send queue need not hold everything that may be posted,
 * because posting waits for space. It has an entry for each Send. A client's also has one per
 * two Calls, for registrations and invalidations: entries come back long before Replies do. To
 * a server's the RDMA core adds those of rdma_rw. Each queue has one entry for draining.
 */
void rpcrdma_depths_init(struct rpcrdma_depths *depths, const struct rpcrdma_conn_config *config,
			 unsigned int max_qp_wr, unsigned int max_cqe)
{
	unsigned int messages = config->credits + config->backward_credits;
	unsigned int limit = min(max_qp_wr, max_cqe / 2);
	unsigned int spare, total;

	depths->batch = rpcrdma_recv_batch(messages);
	spare = depths->batch + 1 + config->backward_credits;
	depths->credits = config->credits;
	if (depths->credits + spare > limit)
		depths->credits = limit > spare ? limit - spare : 1;

	depths->sends = depths->credits + config->backward_credits + depths->batch;
	depths->rq = depths->sends + 1;
	depths->rw_contexts = config->rw_contexts;
	depths->sq = depths->sends + 1;
	if (!depths->rw_contexts)
		depths->sq += depths->credits / 2;
	depths->sq = min(max(depths->sq, 2 * SQ_MIN), limit);
	total = min(depths->sq + RW_FACTOR * depths->rw_contexts, limit);
	depths->cqes = total + depths->rq;
}

static void qp_event(struct ib_event *event, void *context)
{
	struct rpcrdma_conn *conn = context;

	if (conn->stuck)
		return;
	switch (event->event) {
	case IB_EVENT_COMM_EST:
		/* A message arrived before rdma_cm's confirmation. */
		rdma_notify(conn->cm_id, event->event);
		break;
	case IB_EVENT_QP_LAST_WQE_REACHED:
		WRITE_ONCE(conn->device->last_wqe, RPCRDMA_LAST_WQE_TOLD);
		complete(&conn->last_wqe);
		break;
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
	case IB_EVENT_PATH_MIG_ERR:
		/* This may run in a hard interrupt, where a connection cannot be closed. */
		queue_work(rpcrdma_wq, &conn->broken_work);
		break;
	default:
		break;
	}
}

static int qp_try_create(struct rpcrdma_conn *conn)
{
	struct rpcrdma_depths *depths = &conn->depths;
	struct ib_qp_init_attr attr = {
		.event_handler = qp_event,
		.qp_context = conn,
		.send_cq = conn->cq,
		.recv_cq = conn->cq,
		.srq = conn->shared ? conn->shared->srq : NULL,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.cap = {
			.max_send_wr = depths->sq,
			.max_recv_wr = depths->rq,
			.max_send_sge = 1 + conn->send_sges,
			.max_recv_sge = 1,
			.max_rdma_ctxs = depths->rw_contexts,
		},
		.port_num = conn->port,
	};
	unsigned int sq;
	int err;

	err = rdma_create_qp(conn->cm_id, conn->pd, &attr);
	if (err)
		return err;
	conn->qp = conn->cm_id->qp;
	/* The device may make a larger queue than @cq has entries for. */
	sq = min(attr.cap.max_send_wr, depths->cqes - depths->rq) - 1;
	rpcrdma_sq_init(&conn->sq, sq);
	conn->max_chain = min(sq / 2, U16_MAX - 1U);
	return 0;
}

/*
 * How many entries a queue can have depends on their size, and no attribute of the
 * device tells it. So ask for less until the device agrees.
 */
static int qp_create(struct rpcrdma_conn *conn)
{
	struct rpcrdma_depths *depths = &conn->depths;
	int err;

	for (;;) {
		err = qp_try_create(conn);
		if (err != -ENOMEM && err != -EINVAL)
			return err;
		if (depths->sq <= SQ_MIN && conn->send_sges <= 1)
			return err;
		depths->sq = max(depths->sq / 2, min(depths->sq, SQ_MIN));
		depths->rw_contexts = DIV_ROUND_UP(depths->rw_contexts, 2);
		conn->send_sges = DIV_ROUND_UP(conn->send_sges, 2);
	}
}

/*
 * Each connection has its own protection domain, so its handles are worthless on any other
 * connection (RFC 8166 section 8.1.1).
 */
static int qp_create_own(struct rpcrdma_conn *conn)
{
	struct ib_device *ib = conn->device->ib;
	struct ib_pd *pd;
	struct ib_cq *cq;

	pd = ib_alloc_pd(ib, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	conn->pd = pd;
	cq = ib_cq_pool_get(ib, conn->depths.cqes, -1, RPCRDMA_POLL);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	conn->cq = cq;
	return 0;
}

/*
 * Make the queue pair and what it needs, and set the credits. If this fails,
 * rpcrdma_qp_destroy() destroys what was made.
 */
int rpcrdma_qp_create(struct rpcrdma_conn *conn)
{
	const struct ib_device_attr *attrs = &conn->device->ib->attrs;
	struct rpcrdma_depths *depths = &conn->depths;
	int err = 0;

	lockdep_assert_held(&conn->setup);
	conn->port = conn->cm_id->port_num;
	conn->send_sges = min(conn->config.send_pages, attrs->max_send_sge - 1U);
	rpcrdma_depths_init(depths, &conn->config, attrs->max_qp_wr, attrs->max_cqe);
	conn->credits = depths->credits;
	conn->backward_credits = conn->config.backward_credits;

	if (rpcrdma_shared_attach(conn, depths->cqes - depths->rq)) {
		depths->cqes -= depths->rq;
		depths->rq = 0;
		/* So that none can hold all of them */
		conn->credits = min(conn->credits, max(conn->shared->bound / 8, 2U));
		rdma_set_min_rnr_timer(conn->cm_id, RNR_TIMER);
	} else {
		err = qp_create_own(conn);
	}
	return err ?: qp_create(conn);
}

static bool qp_is_stopped(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS };
	struct ib_qp_init_attr init_attr;

	return !ib_query_qp(qp, &attr, IB_QP_STATE, &init_attr) && attr.qp_state == IB_QPS_ERR;
}

/*
 * The queue pair has stopped. Shared Receives are not flushed: the device says when it will take
 * no more. Those that it took complete before a Send that is posted then, because both use one
 * completion queue. ib_drain_qp() would poll that for other connections, too, or, in 6.1, not
 * wait. Not every device says so of a queue pair that was not connected. One that has ever said
 * so may have missed it once, as mlx5 does without memory.
 */
static void qp_drain_shared(struct rpcrdma_conn *conn)
{
	if (!wait_for_completion_timeout(&conn->last_wqe, LAST_WQE_TIMEOUT) && conn->established_at)
		cmpxchg(&conn->device->last_wqe, RPCRDMA_LAST_WQE_UNKNOWN,
			RPCRDMA_LAST_WQE_NOT_TOLD);
	ib_drain_sq(conn->qp);
}

/*
 * Disconnect, and wait until the device has finished all work requests.
 *
 * ib_drain_qp() does not report errors, so this changes the state first. A driver may refuse
 * because it has no memory, or because the queue pair is in that state already. A query tells,
 * but some drivers answer with the state that was asked for last, so it is believed only after
 * some refusals. qedr completes nothing that was posted before RTR: so a client posts nothing
 * before, and if nothing was posted (!@posted) there is no drain.
 *
 * Return: 0; or a negative errno if the driver has refused for two seconds: the queue pair may
 * still process what was posted.
 */
int rpcrdma_qp_drain(struct rpcrdma_conn *conn, bool posted)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	unsigned int tries;
	int err;

	for (tries = 1;; tries++) {
		rdma_disconnect(conn->cm_id);
		err = ib_modify_qp(conn->qp, &attr, IB_QP_STATE);
		if (err && tries >= STOP_SURE && qp_is_stopped(conn->qp))
			err = 0;
		if (!err || tries == STOP_TRIES)
			break;
		msleep(STOP_PAUSE_MS);
	}
	if (!posted)
		return 0;
	if (err)
		return err;
	if (conn->shared)
		qp_drain_shared(conn);
	else
		ib_drain_qp(conn->qp);
	return 0;
}

void rpcrdma_qp_destroy(struct rpcrdma_conn *conn)
{
	if (conn->qp)
		rdma_destroy_qp(conn->cm_id);
	conn->qp = NULL;
	if (conn->shared)
		rpcrdma_shared_detach(conn);
	if (conn->cq)
		ib_cq_pool_put(conn->cq, conn->depths.cqes);
	conn->cq = NULL;
	if (conn->pd)
		ib_dealloc_pd(conn->pd);
	conn->pd = NULL;
}
