// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Posting: the checks that a driver and its device make before a work request is in the
 * queue, and what they keep of it.
 */
#include "mem.h"

static enum mem_stat post_stat(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
		return MEM_STAT_SENDS;
	case IB_WR_SEND_WITH_INV:
		return MEM_STAT_SENDS_INV;
	case IB_WR_RDMA_WRITE:
		return MEM_STAT_WRITES;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return MEM_STAT_WRITES_IMM;
	case IB_WR_RDMA_READ:
		return MEM_STAT_READS;
	case IB_WR_RDMA_READ_WITH_INV:
		return MEM_STAT_READS_INV;
	case IB_WR_REG_MR:
		return MEM_STAT_REGISTRATIONS;
	case IB_WR_LOCAL_INV:
		return MEM_STAT_INVALIDATIONS;
	default:
		return MEM_NUM_STATS;
	}
}

/* RFC 5040 has no immediate data. */
static bool post_is_immediate(enum ib_wr_opcode opcode)
{
	return opcode == IB_WR_SEND_WITH_IMM || opcode == IB_WR_RDMA_WRITE_WITH_IMM;
}

static bool post_opcode_ok(struct mem_qp *qp, const struct ib_send_wr *wr)
{
	enum mem_stat stat = post_stat(wr->opcode);

	if (stat == MEM_NUM_STATS ||
	    (mem_is_read(wr->opcode) && wr->send_flags & IB_SEND_INLINE) ||
	    (qp->dev->limits.iwarp && post_is_immediate(wr->opcode)) ||
	    (qp->ib.qp_type == IB_QPT_GSI && wr->opcode != IB_WR_SEND)) {
		mem_violation(qp->dev, MEM_RULE_OPCODE, "QP %u: opcode %d", qp->number,
			      wr->opcode);
		return false;
	}
	return true;
}

/* iWARP's Read has one sink, not more and not fewer: its request names one (RFC 5040). */
static bool post_sge_count_ok(struct mem_qp *qp, const struct ib_send_wr *wr)
{
	int least = 0, most = qp->cap.max_send_sge;

	if (mem_is_read(wr->opcode)) {
		least = qp->dev->limits.iwarp;
		most = min_t(long, most, qp->dev->limits.max_sge_rd);
	}
	if (wr->num_sge >= least && wr->num_sge <= most)
		return true;
	mem_violation(qp->dev, MEM_RULE_SGE_COUNT,
		      "QP %u: opcode %d with %d SGEs, %d to %d allowed", qp->number,
		      wr->opcode, wr->num_sge, least, most);
	return false;
}

/* Copy the SGEs, or the data if it is inline. */
static int post_data(struct mem_qp *qp, struct mem_swqe *wqe, const struct ib_send_wr *wr)
{
	int i;

	if (!post_sge_count_ok(qp, wr))
		return -EINVAL;
	wqe->num_sge = wr->num_sge;
	wqe->length = 0;
	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (wr->send_flags & IB_SEND_INLINE) {
			if ((u64)wqe->length + sge->length > qp->cap.max_inline_data) {
				mem_violation(qp->dev, MEM_RULE_INLINE,
					      "QP %u: more than %u octets inline", qp->number,
					      qp->cap.max_inline_data);
				return -EINVAL;
			}
			/* inline data is given by virtual address */
			memcpy(wqe->data + wqe->length, (void *)(uintptr_t)sge->addr,
			       sge->length);
		} else {
			wqe->sge[i] = *sge;
		}
		wqe->length += sge->length;
	}
	return 0;
}

static void post_operands(struct mem_swqe *wqe, const struct ib_send_wr *wr, bool gsi)
{
	wqe->mr = NULL;
	switch (wr->opcode) {
	case IB_WR_REG_MR:
		wqe->mr = to_mem_mr(reg_wr(wr)->mr);
		wqe->rkey = reg_wr(wr)->key;
		wqe->access = reg_wr(wr)->access;
		kref_get(&wqe->mr->ref);
		atomic_inc(&wqe->mr->wrs);
		break;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		wqe->rkey = rdma_wr(wr)->rkey;
		wqe->remote_addr = rdma_wr(wr)->remote_addr;
		break;
	default:
		if (gsi)
			wqe->route = container_of(ud_wr(wr)->ah, struct mem_ah, ib)->route;
		break;
	}
}

static bool post_is_send(enum ib_wr_opcode opcode)
{
	return opcode == IB_WR_SEND || opcode == IB_WR_SEND_WITH_IMM ||
	       opcode == IB_WR_SEND_WITH_INV;
}

/*
 * When a message has passed the wire. Longer ones pass in the order in which they are posted.
 * One of a single packet passes between packets of those: a real wire gives the queue pairs
 * turns, and has two directions. What is for the device alone, like a registration, has no
 * octets and does not use the wire.
 */
static u64 post_passed(struct mem_dev *dev, u32 length, u64 ready, u64 bandwidth)
{
	u64 time = div64_u64((u64)length * NSEC_PER_SEC, bandwidth);
	u64 passed;
	unsigned long flags;

	if (!length)
		return ready;
	spin_lock_irqsave(&dev->wire_lock, flags);
	dev->wire_free = max(ready, dev->wire_free) + time;
	if (length <= MEM_WIRE_PACKET) {
		dev->packets_free = max(ready, dev->packets_free) + time;
		passed = dev->packets_free;
	} else {
		passed = dev->wire_free;
	}
	spin_unlock_irqrestore(&dev->wire_lock, flags);
	return passed;
}

/* When the work request is over, if it takes time: after those before it */
static u64 post_due(struct mem_qp *qp, u32 length)
{
	u64 bandwidth = READ_ONCE(qp->dev->bandwidth);
	u64 latency = READ_ONCE(qp->dev->latency);
	u64 due;

	if (!bandwidth && !latency)
		return 0;
	due = ktime_get_ns() + latency;
	if (bandwidth)
		due = post_passed(qp->dev, length, due, bandwidth);
	qp->sq_due = max(qp->sq_due, due);
	return qp->sq_due;
}

/* Faults are for the user of the device, and neither for ib_mad nor for ib_drain_qp(). */
static bool post_counts(const struct mem_qp *qp)
{
	return qp->ib.qp_type != IB_QPT_GSI && READ_ONCE(qp->state) != IB_QPS_ERR;
}

static int post_one(struct mem_qp *qp, const struct ib_send_wr *wr, const struct mem_sum *sum)
{
	struct mem_dev *dev = qp->dev;
	struct mem_swqe *wqe;
	int ret;

	if (qp->state != IB_QPS_RTS && qp->state != IB_QPS_SQD && qp->state != IB_QPS_ERR) {
		mem_violation(dev, MEM_RULE_STATE, "QP %u: posted a send in state %d",
			      qp->number, qp->state);
		return -EINVAL;
	}
	if (!post_opcode_ok(qp, wr))
		return -EINVAL;
	/* pairs with cq_free_slots() */
	if (qp->sq_posted - smp_load_acquire(&qp->sq_freed) >= qp->cap.max_send_wr) {
		mem_violation(dev, MEM_RULE_SQ_FULL,
			      "QP %u: %u sends whose completion was not polled", qp->number,
			      qp->cap.max_send_wr);
		return -ENOMEM;
	}
	if (post_counts(qp) && mem_fault(dev, MEM_OP_POST_SEND).action == MEM_ACTION_NOMEM)
		return -ENOMEM;
	wqe = &qp->sq[qp->sq_posted & (qp->sq_size - 1)];
	ret = post_data(qp, wqe, wr);
	if (ret)
		return ret;
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags;
	wqe->ex.imm_data = wr->ex.imm_data;
	wqe->counted = false;
	wqe->verdict.action = MEM_ACTION_NONE;
	post_operands(wqe, wr, qp->ib.qp_type == IB_QPT_GSI);
	wqe->summed = sum->summed;
	wqe->sum = sum->sum;
	wqe->done = 0;
	wqe->due = post_due(qp, wqe->length);
	mem_count(dev, post_stat(wr->opcode));
	/* The engine looks at the work request when it sees this, and at its lock. */
	qp->sq_posted++;
	return 0;
}

/* The checksum of a Send, made while interrupts are enabled */
static void post_sum(struct mem_qp *qp, const struct ib_send_wr *wr, struct mem_sum *sum)
{
	sum->summed = false;
	if (post_is_send(wr->opcode) && !(wr->send_flags & IB_SEND_INLINE))
		mem_sum_make(qp->dev, qp->ib.pd, wr->sg_list, wr->num_sge, true, sum);
}

int mem_post_send(struct ib_qp *ib, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad)
{
	struct mem_sum sums[MEM_POST_BATCH];
	struct mem_qp *qp = to_mem_qp(ib);
	const struct ib_send_wr *last;
	unsigned long flags;
	int ret = 0, i, n;

	while (wr && !ret) {
		for (n = 0, last = wr; last && n < MEM_POST_BATCH; last = last->next, n++)
			post_sum(qp, last, &sums[n]);
		spin_lock_irqsave(&qp->lock, flags);
		for (i = 0; i < n && !ret; i++) {
			ret = post_one(qp, wr, &sums[i]);
			if (!ret)
				wr = wr->next;
		}
		spin_unlock_irqrestore(&qp->lock, flags);
	}
	if (ret)
		*bad = wr;
	mem_count(qp->dev, MEM_STAT_DOORBELLS);
	mem_engine_ring(qp);
	return ret;
}

int mem_post_recv(struct ib_qp *ib, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad)
{
	struct mem_qp *qp = to_mem_qp(ib);
	enum ib_qp_state state = READ_ONCE(qp->state);
	int ret;

	if (state == IB_QPS_RESET || ib->srq) {
		mem_violation(qp->dev, MEM_RULE_STATE, "QP %u: posted a Receive in state %d%s",
			      qp->number, state, ib->srq ? ", with an SRQ" : "");
		*bad = wr;
		return -EINVAL;
	}
	ret = mem_rq_post(qp->dev, ib->pd, &qp->own_rq, wr, bad, post_counts(qp));
	mem_count(qp->dev, MEM_STAT_DOORBELLS);
	/* The engine flushes it, in whatever order the state changed. */
	smp_mb();
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		mem_engine_ring(qp);
	return ret;
}
