// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The engine of a queue pair: it executes the work requests of the send queue in order,
 * and flushes both queues in the error state.
 *
 * It is a tasklet of the highest priority. A doorbell in process context runs it as an
 * interrupt of this CPU would, when softirqs are enabled, which costs no context switch;
 * a doorbell in a softirq or with softirqs disabled runs it after that. Copying there
 * leaves interrupts enabled. A tasklet never runs twice at once, so the engine needs no
 * lock for the work request that it executes.
 */
#include "mem.h"

#define ENGINE_BUDGET	64	/* work requests until other softirqs may run */

/* Engines that are to run on a CPU, where they take turns */
static DEFINE_PER_CPU(atomic_t, engines_waiting);

/* How long a lost acknowledgment is waited for at most. 2^18 * 4 us is usual, 1.07 s. */
#define ENGINE_MAX_TIMEOUT	(100 * NSEC_PER_MSEC)

/* The caller does not move to another CPU. */
static void engine_schedule(struct mem_qp *qp)
{
	atomic_t *waiting = this_cpu_ptr(&engines_waiting);

	if (!cmpxchg(&qp->waits_on, NULL, waiting))
		atomic_inc(waiting);
	tasklet_hi_schedule(&qp->engine);
}

/**
 * mem_engine_forget - an engine does not wait any more
 * @qp: the queue pair, whose engine begins to run, or will not run
 *
 * Context: any.
 */
void mem_engine_forget(struct mem_qp *qp)
{
	atomic_t *waiting = xchg(&qp->waits_on, NULL);

	if (waiting)
		atomic_dec(waiting);
}

/**
 * mem_engine_ring - let the engine look at its queue pair
 * @qp: the queue pair
 *
 * Context: any.
 */
void mem_engine_ring(struct mem_qp *qp)
{
	if (in_hardirq() || irqs_disabled()) {
		engine_schedule(qp);
		return;
	}
	/* Without this, process context would wake ksoftirqd. */
	local_bh_disable();
	engine_schedule(qp);
	local_bh_enable();
}

enum hrtimer_restart mem_engine_timer(struct hrtimer *timer)
{
	engine_schedule(container_of(timer, struct mem_qp, timer));
	return HRTIMER_NORESTART;
}

static void engine_wait(struct mem_qp *qp, u64 until)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	if (!qp->dying)
		hrtimer_start(&qp->timer, ns_to_ktime(until), HRTIMER_MODE_ABS);
	spin_unlock_irqrestore(&qp->lock, flags);
}

static enum ib_wc_opcode wc_opcode(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		return IB_WC_RDMA_READ;
	case IB_WR_REG_MR:
		return IB_WC_REG_MR;
	case IB_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	default:
		return IB_WC_SEND;
	}
}

static enum mem_fault_op fault_op(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_SEND_WITH_INV:
		return MEM_OP_SEND_INV;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return MEM_OP_WRITE;
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		return MEM_OP_READ;
	case IB_WR_REG_MR:
		return MEM_OP_REG;
	case IB_WR_LOCAL_INV:
		return MEM_OP_LOCAL_INV;
	default:
		return MEM_OP_SEND;
	}
}

static bool engine_signals(const struct mem_qp *qp, const struct mem_swqe *wqe)
{
	return qp->all_signaled || wqe->flags & IB_SEND_SIGNALED;
}

/* The work request at sq_next is over. */
static void engine_done(struct mem_qp *qp, struct mem_swqe *wqe, enum ib_wc_status status)
{
	struct mem_cqe cqe = {
		.wc.wr_id = wqe->wr_id,
		.wc.status = status,
		.wc.opcode = wc_opcode(wqe->opcode),
		.wc.byte_len = wqe->length,
		.wc.qp = &qp->ib,
		.sq_freed = qp->sq_next + 1,
	};
	bool signaled = status || engine_signals(qp, wqe);

	if (wqe->mr) {
		atomic_dec(&wqe->mr->wrs);
		mem_mr_put(wqe->mr);
		wqe->mr = NULL;
	}
	if (status == IB_WC_WR_FLUSH_ERR)
		mem_count(qp->dev, MEM_STAT_FLUSHED);
	else if (status)
		mem_count(qp->dev, MEM_STAT_LOCAL_ERRORS);
	/* what follows may be overwritten as soon as the completion is polled */
	WRITE_ONCE(qp->sq_next, qp->sq_next + 1);
	if (signaled)
		mem_complete(qp, false, &cqe, false);
}

/* Flush some Receives. Return: whether there may be more. */
static bool engine_flush_receives(struct mem_qp *qp)
{
	unsigned int budget = ENGINE_BUDGET;
	struct ib_sge sge[MEM_MAX_SGE];
	struct mem_rwqe rwqe;
	bool limit;

	if (qp->rq != &qp->own_rq) {
		if (!qp->last_wqe) {
			qp->last_wqe = true;
			mem_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
		}
		return false;
	}
	for (; budget; budget--) {
		struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR };

		if (!mem_rq_take(qp->rq, &rwqe, sge, &limit))
			return false;
		mem_count(qp->dev, MEM_STAT_FLUSHED);
		mem_wire_receive_done(qp, &rwqe, &wc, false);
	}
	return true;
}

static void engine_peer_put(struct mem_qp *peer)
{
	atomic_dec_return_release(&peer->inbound);
	mem_qp_put(peer);
}

/* The peer, if it can be reached, for engine_peer_put() */
static struct mem_qp *engine_peer(struct mem_qp *qp)
{
	struct mem_qp *peer = mem_qp_find(qp->attr.dest_qp_num);
	enum ib_qp_state state;

	if (!peer)
		return NULL;
	atomic_inc(&peer->inbound);
	smp_mb__after_atomic();	/* pairs with mem_qp_wait_inbound() */
	/* pairs with mem_modify_qp() */
	state = smp_load_acquire(&peer->state);
	if (state != IB_QPS_RTR && state != IB_QPS_RTS && state != IB_QPS_SQD)
		goto unreachable;
	if (peer->attr.dest_qp_num != qp->number || !READ_ONCE(qp->dev->port_up) ||
	    !READ_ONCE(peer->dev->port_up))
		goto unreachable;
	if (!qp->path_checked) {
		if (!mem_has_gid(peer->dev, &qp->dgid))
			goto unreachable;
		if (qp->attr.sq_psn != peer->attr.rq_psn) {
			mem_violation(qp->dev, MEM_RULE_PSN,
				      "QP %u sends from PSN %#x, QP %u expects %#x",
				      qp->number, qp->attr.sq_psn, peer->number,
				      peer->attr.rq_psn);
			goto unreachable;
		}
		qp->path_checked = true;
	}
	return peer;

unreachable:
	engine_peer_put(peer);
	return NULL;
}

static u64 engine_timeout(struct mem_qp *qp)
{
	u64 timeout = 4096ULL << (qp->attr.timeout & 31);

	return min_t(u64, timeout, ENGINE_MAX_TIMEOUT);
}

/* RoCE tries as often as was agreed; TCP until it is told that the connection is over. */
static void engine_no_peer(struct mem_qp *qp, struct mem_outcome *out)
{
	if (qp->dev->limits.iwarp && !READ_ONCE(qp->iw)) {
		out->status = IB_WC_WR_FLUSH_ERR;
		return;
	}
	out->retry = true;
	out->delay = engine_timeout(qp);
}

static void engine_execute(struct mem_qp *qp, struct mem_swqe *wqe, struct mem_outcome *out)
{
	struct mem_qp *peer;

	*out = (struct mem_outcome){};
	if (wqe->opcode == IB_WR_REG_MR) {
		out->status = mem_mr_register(qp, wqe);
		return;
	}
	if (wqe->opcode == IB_WR_LOCAL_INV) {
		out->status = mem_mr_invalidate(qp->dev, qp->ib.pd, wqe->ex.invalidate_rkey,
						false);
		if (out->status)
			mem_violation(qp->dev, MEM_RULE_INVALIDATE,
				      "QP %u: local invalidation of %#x", qp->number,
				      wqe->ex.invalidate_rkey);
		return;
	}
	if (qp->ib.qp_type == IB_QPT_GSI) {
		out->status = mem_gsi_send(qp, wqe);
		return;
	}
	peer = engine_peer(qp);
	if (!peer) {
		engine_no_peer(qp, out);
		return;
	}
	mem_wire_execute(qp, peer, wqe, out);
	engine_peer_put(peer);
}

/* Count retries. Return: whether to try again. */
static bool engine_retry(struct mem_qp *qp, struct mem_outcome *out)
{
	if (out->rnr) {
		mem_count(qp->dev, MEM_STAT_RNR_NAKS);
		if (qp->attr.rnr_retry == 7 || qp->rnr_retries++ < qp->attr.rnr_retry)
			return true;
		out->status = IB_WC_RNR_RETRY_EXC_ERR;
		return false;
	}
	mem_count(qp->dev, MEM_STAT_RETRIES);
	if (qp->retries++ < qp->attr.retry_cnt || qp->dev->limits.iwarp)
		return true;
	out->status = IB_WC_RETRY_EXC_ERR;
	return false;
}

/**
 * mem_engine_fault - do what a fault says about a completion, before it
 * @qp: the queue pair
 * @recv: it is a Receive's
 * @verdict: the fault
 *
 * Context: softirq, with no lock held.
 */
void mem_engine_fault(struct mem_qp *qp, bool recv, const struct mem_verdict *verdict)
{
	switch (verdict->action) {
	case MEM_ACTION_LATE:
		mem_hold(qp, recv, verdict->count);
		break;
	case MEM_ACTION_HOLD:
		mem_hold(qp, recv, MEM_HOLD_REQUEST);
		break;
	case MEM_ACTION_UNTIL_END:
		mem_hold(qp, recv, MEM_HOLD_END);
		break;
	case MEM_ACTION_QP_FATAL:
		mem_qp_error(qp, IB_EVENT_QP_FATAL);
		break;
	case MEM_ACTION_GONE:
		if (ib_device_try_get(&qp->dev->ib) &&
		    !queue_work(mem_wq, &qp->dev->gone_work))
			ib_device_put(&qp->dev->ib);
		break;
	default:
		break;
	}
}

/*
 * Does the next part wait until the work request has passed the wire, or until it may be tried
 * again? Nobody may look at what a Read or Write copies before a completion or a later
 * message says that it is there. So all of it but the last packet is copied at once: then
 * neither the copy nor the timer takes longer if a user's work requests are long ones, or many.
 */
static bool engine_waits(const struct mem_qp *qp, const struct mem_swqe *wqe)
{
	if (qp->retries)
		return true;
	switch (wqe->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		if (!engine_signals(qp, wqe))
			return false;
		fallthrough;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return wqe->length - wqe->done <= MEM_WIRE_PACKET;
	default:
		return true;
	}
}

/*
 * Execute the next work request, or a part of it, and add what it has copied. Return: whether
 * the engine can go on.
 */
static bool engine_step(struct mem_qp *qp, struct mem_swqe *wqe, u64 *octets)
{
	struct mem_outcome out = {};

	if (wqe->due && engine_waits(qp, wqe) && ktime_get_ns() < wqe->due) {
		engine_wait(qp, wqe->due);
		return false;
	}
	if (qp->ib.qp_type != IB_QPT_GSI && !wqe->counted) {
		wqe->verdict = mem_fault(qp->dev, fault_op(wqe->opcode));
		wqe->counted = true;
	}
	if (wqe->verdict.action == MEM_ACTION_STATUS)
		out.status = wqe->verdict.status;
	else
		engine_execute(qp, wqe, &out);
	*octets += out.octets;
	if (out.more)
		return true;
	if ((out.retry || out.rnr) && engine_retry(qp, &out)) {
		/* A doorbell does not make it earlier. */
		wqe->due = ktime_get_ns() + out.delay;
		engine_wait(qp, wqe->due);
		return false;
	}
	qp->retries = 0;
	qp->rnr_retries = 0;
	mem_engine_fault(qp, false, &wqe->verdict);
	engine_done(qp, wqe, out.status);
	if (out.status)
		mem_qp_error(qp, 0);
	return true;
}

/*
 * Is it another engine's turn? As long as none waits for this CPU, nobody gains by going
 * through the tasklet's queue.
 */
static bool engine_yields(struct mem_qp *qp, u64 *octets)
{
	if (*octets < READ_ONCE(qp->dev->burst))
		return false;
	*octets = 0;
	return atomic_read(this_cpu_ptr(&engines_waiting)) > 0;
}

/* One turn. Return: whether the engine wants another one. */
static bool engine_turn(struct mem_qp *qp)
{
	unsigned int budget = ENGINE_BUDGET;
	enum ib_qp_state state;
	struct mem_swqe *wqe;
	unsigned long flags;
	u64 octets = 0;
	bool work;

	do {
		spin_lock_irqsave(&qp->lock, flags);
		state = qp->state;
		work = qp->sq_next != qp->sq_posted;
		wqe = &qp->sq[qp->sq_next & (qp->sq_size - 1)];
		spin_unlock_irqrestore(&qp->lock, flags);

		if (state == IB_QPS_ERR && !qp->connected && qp->dev->limits.keeps_init)
			return false;
		if (state == IB_QPS_ERR) {
			mem_qp_wait_inbound(qp);
			mem_hold_ends(qp);
		}
		if (state == IB_QPS_ERR && !work)
			return engine_flush_receives(qp);
		if (!work || (state != IB_QPS_RTS && state != IB_QPS_ERR))
			return false;
		if (state == IB_QPS_ERR)
			engine_done(qp, wqe, IB_WC_WR_FLUSH_ERR);
		else if (!engine_step(qp, wqe, &octets))
			return false;
	} while (--budget && !engine_yields(qp, &octets));
	return true;
}

/**
 * mem_engine_run - the tasklet
 * @tasklet: of a queue pair
 *
 * Context: softirq.
 */
void mem_engine_run(struct tasklet_struct *tasklet)
{
	struct mem_qp *qp = from_tasklet(qp, tasklet, engine);

	mem_engine_forget(qp);
	if (engine_turn(qp))
		engine_schedule(qp);
}
