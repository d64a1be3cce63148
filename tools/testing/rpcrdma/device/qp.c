// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Queue pairs: life, states, and asynchronous events.
 *
 * Numbers are given out in turn, so that a late message does not find a new queue pair.
 * The engine of a peer finds a queue pair by its number and takes a reference;
 * destroying it waits for the last one.
 */
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "mem.h"

static u32 next_number;	/* mem_qps' xa_lock protects it */

static void qp_free_queues(struct mem_qp *qp)
{
	const struct ib_qp_cap *cap = &qp->cap;

	mem_rq_free(&qp->own_rq);
	mem_free(qp->dev, qp->sq, qp->sq_size, sizeof(*qp->sq));
	mem_free(qp->dev, qp->sq_sge, qp->sq_size * max(cap->max_send_sge, 1U),
		 sizeof(*qp->sq_sge));
	mem_free(qp->dev, qp->sq_inline, qp->sq_size, cap->max_inline_data);
}

static int qp_alloc_queues(struct mem_qp *qp)
{
	const struct ib_qp_cap *cap = &qp->cap;
	unsigned int sge = max(cap->max_send_sge, 1U);
	unsigned int i;

	qp->sq_size = roundup_pow_of_two(max(cap->max_send_wr, 1U));
	qp->sq = mem_alloc(qp->dev, qp->sq_size, sizeof(*qp->sq));
	qp->sq_sge = mem_alloc(qp->dev, qp->sq_size * sge, sizeof(*qp->sq_sge));
	if (cap->max_inline_data)
		qp->sq_inline = mem_alloc(qp->dev, qp->sq_size, cap->max_inline_data);
	if (!qp->sq || !qp->sq_sge || (cap->max_inline_data && !qp->sq_inline))
		goto err;
	for (i = 0; i < qp->sq_size; i++) {
		qp->sq[i].sge = qp->sq_sge + i * sge;
		qp->sq[i].data = qp->sq_inline + i * cap->max_inline_data;
	}
	if (mem_rq_init(&qp->own_rq, qp->dev, cap->max_recv_wr, cap->max_recv_sge))
		goto err;
	return 0;

err:
	qp_free_queues(qp);
	return -ENOMEM;
}

static bool qp_fits(struct mem_dev *dev, const struct ib_qp_cap *cap)
{
	const struct mem_limits *limits = &dev->limits;

	if (cap->max_send_wr <= limits->max_qp_wr && cap->max_recv_wr <= limits->max_qp_wr &&
	    cap->max_send_sge <= limits->max_send_sge &&
	    cap->max_recv_sge <= limits->max_recv_sge &&
	    cap->max_inline_data <= limits->max_inline)
		return true;
	mem_violation(dev, MEM_RULE_LIMIT, "QP of %u/%u WRs, %u/%u SGEs, %u octets inline",
		      cap->max_send_wr, cap->max_recv_wr, cap->max_send_sge,
		      cap->max_recv_sge, cap->max_inline_data);
	return false;
}

static int qp_add_number(struct mem_qp *qp)
{
	int ret;

	if (qp->ib.qp_type == IB_QPT_GSI) {
		qp->number = 1;
		mem_gsi_add(qp);
		return 0;
	}
	ret = xa_alloc_cyclic_irq(&mem_qps, &qp->number, qp, XA_LIMIT(16, 0xfffffe),
				  &next_number, GFP_KERNEL);
	return ret < 0 ? ret : 0;
}

static void qp_init(struct mem_qp *qp, struct ib_qp_init_attr *init)
{
	qp->dev = to_mem_dev(qp->ib.device);
	qp->cap = init->cap;
	qp->state = IB_QPS_RESET;
	qp->all_signaled = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->send_cq = to_mem_cq(init->send_cq);
	qp->recv_cq = to_mem_cq(init->recv_cq);
	qp->rq = init->srq ? &to_mem_srq(init->srq)->rq : &qp->own_rq;
	spin_lock_init(&qp->lock);
	tasklet_setup(&qp->engine, mem_engine_run);
	hrtimer_setup(&qp->timer, mem_engine_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	mem_hold_init(qp);
	refcount_set(&qp->ref, 1);
	init_completion(&qp->gone);
}

int mem_create_qp(struct ib_qp *ib, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct mem_dev *dev = to_mem_dev(ib->device);
	struct mem_qp *qp = to_mem_qp(ib);
	bool gsi = init->qp_type == IB_QPT_GSI;
	int ret;

	if (udata || init->create_flags || (!gsi && init->qp_type != IB_QPT_RC))
		return -EOPNOTSUPP;
	if (init->srq)
		init->cap.max_recv_wr = 0;
	/* ib_mad takes what it needs and does not look at the limits. */
	if (!gsi && !qp_fits(dev, &init->cap))
		return -EINVAL;
	if (!gsi && !mem_count_in(&dev->num_qps, dev->limits.max_qp))
		return -ENOMEM;

	qp->ib.qp_type = init->qp_type;
	qp_init(qp, init);
	ret = qp_alloc_queues(qp);
	if (ret)
		goto err_count;
	ret = qp_add_number(qp);
	if (ret)
		goto err_queues;
	ib->qp_num = qp->number;
	mem_account(dev, sizeof(*qp));
	spin_lock_irq(&dev->qps_lock);
	list_add_tail(&qp->entry, &dev->qps);
	spin_unlock_irq(&dev->qps_lock);
	return 0;

err_queues:
	qp_free_queues(qp);
err_count:
	if (!gsi)
		atomic_dec(&dev->num_qps);
	return ret;
}

/**
 * mem_qp_find - find a queue pair by its number
 * @number: its number
 *
 * Context: any.
 * Return: the queue pair, with a reference for mem_qp_put(), or NULL.
 */
struct mem_qp *mem_qp_find(u32 number)
{
	struct mem_qp *qp;
	unsigned long flags;

	xa_lock_irqsave(&mem_qps, flags);
	qp = xa_load(&mem_qps, number);
	if (qp)
		refcount_inc(&qp->ref);
	xa_unlock_irqrestore(&mem_qps, flags);
	return qp;
}

/**
 * mem_qp_put - give back a reference
 * @qp: the queue pair
 *
 * Context: any.
 */
void mem_qp_put(struct mem_qp *qp)
{
	if (refcount_dec_and_test(&qp->ref))
		complete(&qp->gone);
}

/**
 * mem_qp_wait_inbound - wait until no peer's engine uses the memory of a queue pair
 * @qp: the queue pair, whose state keeps others from beginning
 *
 * What is waited for is a copy in a softirq of another CPU, which waits for nothing.
 *
 * Context: any but hard interrupts.
 */
void mem_qp_wait_inbound(struct mem_qp *qp)
{
	/* The state first: engine_peer() counts itself, then looks at the state. */
	smp_mb();
	while (atomic_read_acquire(&qp->inbound))
		cpu_relax();
}

/* Drop all work requests without completions. The engine does not run. */
static void qp_drop_work(struct mem_qp *qp)
{
	while (qp->sq_next != qp->sq_posted) {
		struct mem_swqe *wqe = &qp->sq[qp->sq_next++ & (qp->sq_size - 1)];

		if (wqe->mr) {
			atomic_dec(&wqe->mr->wrs);
			mem_mr_put(wqe->mr);
			wqe->mr = NULL;
		}
	}
	mem_cq_forget(qp->send_cq, qp);
	mem_cq_forget(qp->recv_cq, qp);
	qp->sq_freed = qp->sq_posted;
	spin_lock_irq(&qp->own_rq.lock);
	qp->own_rq.head = qp->own_rq.tail;
	qp->own_rq.polled = qp->own_rq.tail;
	spin_unlock_irq(&qp->own_rq.lock);
}

/* Stop the engine and its timer; each may start the other. */
static void qp_stop(struct mem_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	qp->dying = true;
	WRITE_ONCE(qp->state, IB_QPS_RESET);
	spin_unlock_irqrestore(&qp->lock, flags);
	mem_qp_wait_inbound(qp);
	hrtimer_cancel(&qp->timer);
	tasklet_kill(&qp->engine);
	hrtimer_cancel(&qp->timer);
	tasklet_kill(&qp->engine);
	mem_engine_forget(qp);
}

/* The memory of what is posted is the device's until its completion, or a later one, is polled. */
static void qp_check_drained(struct mem_qp *qp)
{
	u32 sends = qp->sq_posted - qp->sq_freed;
	u32 receives = qp->own_rq.tail - qp->own_rq.polled;

	if (sends || receives)
		mem_violation(qp->dev, MEM_RULE_DRAIN,
			      "QP %u destroyed, but completions of %u sends, %u Receives not polled",
			      qp->number, sends, receives);
}

int mem_destroy_qp(struct ib_qp *ib, struct ib_udata *udata)
{
	struct mem_qp *qp = to_mem_qp(ib);
	struct mem_dev *dev = qp->dev;

	might_alloc(GFP_KERNEL);
	spin_lock_irq(&dev->qps_lock);
	list_del(&qp->entry);
	spin_unlock_irq(&dev->qps_lock);
	if (ib->qp_type == IB_QPT_GSI) {
		mem_gsi_remove(qp);	/* ib_mad does not wait for its Receives */
	} else {
		xa_erase_irq(&mem_qps, qp->number);
		qp_check_drained(qp);
	}
	mem_iw_close(qp);
	mem_qp_put(qp);
	wait_for_completion(&qp->gone);
	qp_stop(qp);
	mem_hold_drop(qp);
	qp_drop_work(qp);
	qp_free_queues(qp);
	mem_account(dev, -(long)sizeof(*qp));
	if (ib->qp_type != IB_QPT_GSI)
		atomic_dec(&dev->num_qps);
	return 0;
}

static bool qp_reads_ok(struct mem_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	const struct mem_limits *limits = &qp->dev->limits;

	if ((!(mask & IB_QP_MAX_QP_RD_ATOMIC) ||
	     attr->max_rd_atomic <= limits->max_qp_init_rd_atom) &&
	    (!(mask & IB_QP_MAX_DEST_RD_ATOMIC) ||
	     attr->max_dest_rd_atomic <= limits->max_qp_rd_atom))
		return true;
	mem_violation(qp->dev, MEM_RULE_LIMIT, "QP %u: %u RDMA Reads sent, %u taken",
		      qp->number, attr->max_rd_atomic, attr->max_dest_rd_atomic);
	return false;
}

/*
 * Copy the attributes that are set. What may change while the peer's engine reads it needs
 * WRITE_ONCE(); the others change before the state does.
 */
static void qp_set_attr(struct mem_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr *own = &qp->attr;

	if (mask & IB_QP_AV) {
		qp->dgid = rdma_ah_read_grh(&attr->ah_attr)->dgid;
		qp->path_checked = false;
	}
	if (mask & IB_QP_DEST_QPN)
		own->dest_qp_num = attr->dest_qp_num;
	if (mask & IB_QP_ACCESS_FLAGS)
		WRITE_ONCE(own->qp_access_flags, attr->qp_access_flags);
	if (mask & IB_QP_RQ_PSN)
		own->rq_psn = attr->rq_psn;
	if (mask & IB_QP_SQ_PSN)
		own->sq_psn = attr->sq_psn;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_MIN_RNR_TIMER)
		WRITE_ONCE(own->min_rnr_timer, attr->min_rnr_timer);
	if (mask & IB_QP_TIMEOUT)
		own->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		own->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		own->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_PATH_MTU)
		own->path_mtu = attr->path_mtu;
	if (mask & IB_QP_PORT)
		own->port_num = attr->port_num;
	if (mask & IB_QP_QKEY)
		own->qkey = attr->qkey;
}

static void qp_reset(struct mem_qp *qp)
{
	qp_stop(qp);
	mem_hold_drop(qp);
	qp_drop_work(qp);
	qp->established = false;
	qp->last_wqe = false;
	qp->connected = false;
	qp->retries = 0;
	qp->rnr_retries = 0;
	spin_lock_irq(&qp->lock);
	qp->dying = false;
	qp->sq_due = 0;
	spin_unlock_irq(&qp->lock);
}

/* May the user change this? What a fault or the peer has ended is not the user's fault. */
static int qp_modify_check(struct mem_qp *qp, enum ib_qp_state to, int mask)
{
	enum ib_qp_state from = qp->state;
	bool ok;

	if (from == IB_QPS_ERR && to != IB_QPS_ERR && to != IB_QPS_RESET)
		return -EINVAL;
	if (qp->dev->limits.iwarp)
		ok = mem_iw_modify_ok(from, to, mask);
	else
		ok = ib_modify_qp_is_ok(from, to, qp->ib.qp_type, mask);
	if (ok)
		return 0;
	mem_violation(qp->dev, MEM_RULE_STATE, "QP %u from state %d to %d, mask %#x",
		      qp->number, from, to, mask);
	return -EINVAL;
}

int mem_modify_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct mem_qp *qp = to_mem_qp(ib);
	enum ib_qp_state to;
	unsigned long flags;
	int ret;

	/* Drivers may allocate in any verb that may sleep. */
	might_alloc(GFP_KERNEL);
	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR &&
	    mem_fault(qp->dev, MEM_OP_STOP).action == MEM_ACTION_NOMEM)
		return -ENOMEM;
	spin_lock_irqsave(&qp->lock, flags);
	to = mask & IB_QP_STATE ? attr->qp_state : qp->state;
	/* Closing, as iw_cm calls it, ends in the error state as soon as TCP is closed. */
	if (qp->dev->limits.iwarp && to == IB_QPS_SQD)
		to = IB_QPS_ERR;
	ret = qp_modify_check(qp, to, mask);
	if (!ret && !qp_reads_ok(qp, attr, mask))
		ret = -EINVAL;
	if (!ret) {
		qp_set_attr(qp, attr, mask);
		qp->connected |= to == IB_QPS_RTR || to == IB_QPS_RTS;
		/* The peer's engine reads the attributes when it has seen the state. */
		if (to != IB_QPS_RESET)
			smp_store_release(&qp->state, to);	/* see engine_peer() */
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	if (ret)
		return ret;
	if (to == IB_QPS_ERR || to == IB_QPS_RESET)
		mem_iw_close(qp);
	if (to == IB_QPS_RESET)
		qp_reset(qp);
	else if (to == IB_QPS_RTS || to == IB_QPS_ERR)
		mem_engine_ring(qp);
	return 0;
}

int mem_query_qp(struct ib_qp *ib, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init)
{
	struct mem_qp *qp = to_mem_qp(ib);
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	*attr = qp->attr;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->cap = qp->cap;
	spin_unlock_irqrestore(&qp->lock, flags);
	init->cap = qp->cap;
	init->send_cq = ib->send_cq;
	init->recv_cq = ib->recv_cq;
	init->srq = ib->srq;
	init->qp_type = ib->qp_type;
	init->sq_sig_type = qp->all_signaled ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	return 0;
}

/**
 * mem_qp_event - raise an asynchronous event
 * @qp: the queue pair
 * @type: the event
 *
 * Context: softirq, with no lock held. The user's handler is called.
 */
void mem_qp_event(struct mem_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = qp->ib.device,
		.element.qp = &qp->ib,
		.event = type,
	};

	mem_count(qp->dev, MEM_STAT_ASYNC_EVENTS);
	if (qp->ib.event_handler)
		qp->ib.event_handler(&event, qp->ib.qp_context);
}

/**
 * mem_qp_error - move a queue pair to the error state by itself
 * @qp: the queue pair
 * @type: the event that says why, or 0 if a completion does
 *
 * Context: softirq, with no lock held.
 */
void mem_qp_error(struct mem_qp *qp, enum ib_event_type type)
{
	unsigned long flags;
	bool moved;

	spin_lock_irqsave(&qp->lock, flags);
	moved = qp->state == IB_QPS_RTR || qp->state == IB_QPS_RTS ||
		qp->state == IB_QPS_SQD;
	if (moved)
		WRITE_ONCE(qp->state, IB_QPS_ERR);
	spin_unlock_irqrestore(&qp->lock, flags);
	if (!moved)
		return;
	if (type)
		mem_qp_event(qp, type);
	mem_iw_close(qp);
	mem_engine_ring(qp);
}
