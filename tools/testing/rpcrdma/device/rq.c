// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Receive queues, a queue pair's own and shared ones (SRQs).
 *
 * A posted Receive belongs to the device until it completes. Its checksum is compared
 * before a message is copied into it.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "mem.h"

/**
 * mem_rq_init - make a receive queue
 * @rq: the queue
 * @dev: the device
 * @capacity: Receives that it takes; may be 0
 * @max_sge: SGEs of each
 *
 * Context: process context.
 * Return: 0 or -ENOMEM.
 */
int mem_rq_init(struct mem_rq *rq, struct mem_dev *dev, unsigned int capacity,
		unsigned int max_sge)
{
	unsigned int i;

	spin_lock_init(&rq->lock);
	rq->dev = dev;
	rq->capacity = capacity;
	rq->max_sge = max_sge;
	rq->size = roundup_pow_of_two(max(capacity, 1U));
	rq->wqe = mem_alloc(dev, rq->size, sizeof(*rq->wqe));
	rq->sge = mem_alloc(dev, rq->size * max(max_sge, 1U), sizeof(*rq->sge));
	if (!rq->wqe || !rq->sge) {
		mem_rq_free(rq);
		return -ENOMEM;
	}
	for (i = 0; i < rq->size; i++)
		rq->wqe[i].sge = rq->sge + i * max_sge;
	return 0;
}

/**
 * mem_rq_free - undo mem_rq_init()
 * @rq: the queue; zeroed memory is allowed
 *
 * Context: process context.
 */
void mem_rq_free(struct mem_rq *rq)
{
	if (!rq->dev)
		return;
	mem_free(rq->dev, rq->wqe, rq->size, sizeof(*rq->wqe));
	mem_free(rq->dev, rq->sge, rq->size * max(rq->max_sge, 1U), sizeof(*rq->sge));
	rq->wqe = NULL;
	rq->sge = NULL;
}

static int rq_post_one(struct mem_dev *dev, struct mem_rq *rq, const struct ib_recv_wr *wr,
		       const struct mem_sum *sum)
{
	struct mem_rwqe *wqe;

	lockdep_assert_held(&rq->lock);

	if (wr->num_sge > rq->max_sge || wr->num_sge < 0) {
		mem_violation(dev, MEM_RULE_SGE_COUNT, "Receive with %d SGEs, %u allowed",
			      wr->num_sge, rq->max_sge);
		return -EINVAL;
	}
	if (rq->tail - rq->polled >= rq->capacity) {
		mem_violation(dev, MEM_RULE_RQ_FULL, "%u Receives posted and not polled",
			      rq->capacity);
		return -ENOMEM;
	}
	wqe = &rq->wqe[rq->tail & (rq->size - 1)];
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	memcpy(wqe->sge, wr->sg_list, wr->num_sge * sizeof(*wqe->sge));
	wqe->summed = sum->summed;
	wqe->sum = sum->sum;
	rq->tail++;
	return 0;
}

/**
 * mem_rq_post - post Receives
 * @dev: the device
 * @pd: the protection domain of the queue
 * @rq: the queue
 * @wr: the work requests
 * @bad: returned: the first that was not posted
 * @counts: faults count them
 *
 * Context: any.
 * Return: 0, -EINVAL, or -ENOMEM.
 */
int mem_rq_post(struct mem_dev *dev, struct ib_pd *pd, struct mem_rq *rq,
		const struct ib_recv_wr *wr, const struct ib_recv_wr **bad, bool counts)
{
	struct mem_sum sums[MEM_POST_BATCH];
	const struct ib_recv_wr *last;
	unsigned long flags;
	int ret = 0, i, n;

	while (wr && !ret) {
		for (n = 0, last = wr; last && n < MEM_POST_BATCH; last = last->next, n++)
			mem_sum_make(dev, pd, last->sg_list, last->num_sge, false,
				     &sums[n]);
		spin_lock_irqsave(&rq->lock, flags);
		for (i = 0; i < n && !ret; i++) {
			if (counts && mem_fault(dev, MEM_OP_POST_RECV).action == MEM_ACTION_NOMEM)
				ret = -ENOMEM;
			else
				ret = rq_post_one(dev, rq, wr, &sums[i]);
			if (!ret)
				wr = wr->next;
		}
		spin_unlock_irqrestore(&rq->lock, flags);
	}
	if (ret)
		*bad = wr;
	return ret;
}

/**
 * mem_rq_polled - a completion was polled, or will not be: its slot is free
 * @rq: the queue of the Receive
 *
 * Context: any.
 */
void mem_rq_polled(struct mem_rq *rq)
{
	unsigned long flags;

	spin_lock_irqsave(&rq->lock, flags);
	rq->polled++;
	spin_unlock_irqrestore(&rq->lock, flags);
}

/**
 * mem_rq_take - take the next Receive
 * @rq: the queue
 * @wqe: returned: the Receive, with @sge
 * @sge: MEM_MAX_SGE SGEs, filled
 * @limit: returned: the SRQ's limit is reached
 *
 * Context: any.
 * Return: whether there was one.
 */
bool mem_rq_take(struct mem_rq *rq, struct mem_rwqe *wqe, struct ib_sge *sge, bool *limit)
{
	const struct mem_rwqe *next;
	unsigned long flags;
	bool found;

	*limit = false;
	spin_lock_irqsave(&rq->lock, flags);
	found = rq->head != rq->tail;
	if (found) {
		next = &rq->wqe[rq->head++ & (rq->size - 1)];
		*wqe = *next;
		memcpy(sge, next->sge, next->num_sge * sizeof(*sge));
		wqe->sge = sge;
		if (rq->limit && rq->tail - rq->head < rq->limit) {
			rq->limit = 0;
			*limit = true;
		}
	}
	spin_unlock_irqrestore(&rq->lock, flags);
	return found;
}

int mem_create_srq(struct ib_srq *ib, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct mem_dev *dev = to_mem_dev(ib->device);
	struct mem_srq *srq = to_mem_srq(ib);
	int ret;

	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!init->attr.max_wr || init->attr.max_wr > dev->limits.max_srq_wr ||
	    init->attr.max_sge > dev->limits.max_recv_sge) {
		mem_violation(dev, MEM_RULE_LIMIT, "SRQ of %u with %u SGEs", init->attr.max_wr,
			      init->attr.max_sge);
		return -EINVAL;
	}
	if (!mem_count_in(&dev->num_srqs, dev->limits.max_srq))
		return -ENOMEM;
	ret = mem_rq_init(&srq->rq, dev, init->attr.max_wr, init->attr.max_sge);
	if (ret)
		atomic_dec(&dev->num_srqs);
	else
		srq->rq.limit = init->attr.srq_limit;
	return ret;
}

/* Move a posted Receive to the same place of a queue of another size. */
static void rq_move(struct mem_rq *to, const struct mem_rq *from, u32 index)
{
	const struct mem_rwqe *old = &from->wqe[index & (from->size - 1)];
	struct mem_rwqe *new = &to->wqe[index & (to->size - 1)];
	struct ib_sge *sge = new->sge;

	*new = *old;
	new->sge = sge;
	memcpy(sge, old->sge, old->num_sge * sizeof(*sge));
}

/* Give a queue another size, unless more Receives are posted than that. */
static int rq_resize(struct mem_rq *rq, unsigned int capacity)
{
	struct mem_rq new = {};
	u32 i;
	int ret;

	ret = mem_rq_init(&new, rq->dev, capacity, rq->max_sge);
	if (ret)
		return ret;
	spin_lock_irq(&rq->lock);
	if (rq->tail - rq->polled > capacity) {
		ret = -EINVAL;
	} else {
		for (i = rq->head; i != rq->tail; i++)
			rq_move(&new, rq, i);
		swap(rq->wqe, new.wqe);
		swap(rq->sge, new.sge);
		swap(rq->size, new.size);
		rq->capacity = capacity;
	}
	spin_unlock_irq(&rq->lock);
	mem_rq_free(&new);
	return ret;
}

int mem_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata)
{
	struct mem_dev *dev = to_mem_dev(ib->device);
	struct mem_srq *srq = to_mem_srq(ib);
	unsigned int capacity = mask & IB_SRQ_MAX_WR ? attr->max_wr : srq->rq.capacity;
	int ret = 0;

	if (!capacity || capacity > dev->limits.max_srq_wr) {
		mem_violation(dev, MEM_RULE_LIMIT, "SRQ resized to %u", capacity);
		return -EINVAL;
	}
	if (mask & IB_SRQ_LIMIT && attr->srq_limit > capacity)
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR)
		ret = rq_resize(&srq->rq, capacity);
	if (ret || !(mask & IB_SRQ_LIMIT))
		return ret;
	spin_lock_irq(&srq->rq.lock);
	srq->rq.limit = attr->srq_limit;
	spin_unlock_irq(&srq->rq.lock);
	return 0;
}

int mem_query_srq(struct ib_srq *ib, struct ib_srq_attr *attr)
{
	struct mem_srq *srq = to_mem_srq(ib);

	spin_lock_irq(&srq->rq.lock);
	attr->max_wr = srq->rq.capacity;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = srq->rq.limit;
	spin_unlock_irq(&srq->rq.lock);
	return 0;
}

int mem_destroy_srq(struct ib_srq *ib, struct ib_udata *udata)
{
	mem_rq_free(&to_mem_srq(ib)->rq);
	atomic_dec(&to_mem_dev(ib->device)->num_srqs);
	return 0;
}

int mem_post_srq_recv(struct ib_srq *ib, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad)
{
	return mem_rq_post(to_mem_dev(ib->device), ib->pd, &to_mem_srq(ib)->rq, wr, bad,
			   true);
}
