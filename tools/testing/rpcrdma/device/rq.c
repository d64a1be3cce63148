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
 * @capacity: Receives that it takes; may be 0
 * @max_sge: SGEs of each
 *
 * Context: process context.
 * Return: 0 or -ENOMEM.
 */
int mem_rq_init(struct mem_rq *rq, unsigned int capacity, unsigned int max_sge)
{
	unsigned int i;

	spin_lock_init(&rq->lock);
	rq->capacity = capacity;
	rq->max_sge = max_sge;
	rq->size = roundup_pow_of_two(max(capacity, 1U));
	rq->wqe = kvcalloc(rq->size, sizeof(*rq->wqe), GFP_KERNEL);
	rq->sge = kvcalloc(rq->size * max(max_sge, 1U), sizeof(*rq->sge), GFP_KERNEL);
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
	kvfree(rq->wqe);
	kvfree(rq->sge);
	rq->wqe = NULL;
	rq->sge = NULL;
}

static int rq_post_one(struct mem_dev *dev, struct ib_pd *pd, struct mem_rq *rq,
		       const struct ib_recv_wr *wr)
{
	struct mem_rwqe *wqe;

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
	wqe->summed = dev->checksums &&
		      mem_list_sum(dev, pd, wqe->sge, wqe->num_sge, &wqe->sum);
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
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&rq->lock, flags);
	for (; wr; wr = wr->next) {
		if (counts && mem_fault(dev, MEM_OP_POST_RECV).action == MEM_ACTION_NOMEM)
			ret = -ENOMEM;
		else
			ret = rq_post_one(dev, pd, rq, wr);
		if (ret) {
			*bad = wr;
			break;
		}
	}
	spin_unlock_irqrestore(&rq->lock, flags);
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
	if (!init->attr.max_wr || init->attr.max_wr > dev->limits.max_qp_wr ||
	    init->attr.max_sge > dev->limits.max_recv_sge) {
		mem_violation(dev, MEM_RULE_LIMIT, "SRQ of %u with %u SGEs", init->attr.max_wr,
			      init->attr.max_sge);
		return -EINVAL;
	}
	if (atomic_read(&dev->num_srqs) >= dev->limits.max_srq)
		return -ENOMEM;
	ret = mem_rq_init(&srq->rq, init->attr.max_wr, init->attr.max_sge);
	if (ret)
		return ret;
	srq->rq.limit = init->attr.srq_limit;
	atomic_inc(&dev->num_srqs);
	return 0;
}

int mem_modify_srq(struct ib_srq *ib, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata)
{
	struct mem_srq *srq = to_mem_srq(ib);
	unsigned long flags;

	if (mask & IB_SRQ_MAX_WR)
		return -EOPNOTSUPP;
	if (attr->srq_limit > srq->rq.capacity)
		return -EINVAL;
	spin_lock_irqsave(&srq->rq.lock, flags);
	srq->rq.limit = attr->srq_limit;
	spin_unlock_irqrestore(&srq->rq.lock, flags);
	return 0;
}

int mem_query_srq(struct ib_srq *ib, struct ib_srq_attr *attr)
{
	struct mem_srq *srq = to_mem_srq(ib);

	attr->max_wr = srq->rq.capacity;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = srq->rq.limit;
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
