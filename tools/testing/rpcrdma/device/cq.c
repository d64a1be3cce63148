// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Completion queues and their interrupts.
 *
 * The engine adds completions. If the queue is armed, an irq_work calls the completion
 * handler, in a hard interrupt as a device would. An architecture without an interrupt for
 * irq_work (User-Mode Linux) would call it at the next tick: there the engine calls the
 * handler itself, with interrupts disabled.
 *
 * A slot of a send or receive queue is free again when the completion that says so is
 * polled, and not before.
 */
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "mem.h"

static void cq_call_handler(struct mem_cq *cq)
{
	mem_count(to_mem_dev(cq->ib.device), MEM_STAT_INTERRUPTS);
	cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

static void cq_irq(struct irq_work *irq)
{
	cq_call_handler(container_of(irq, struct mem_cq, irq));
}

static void cq_interrupt(struct mem_cq *cq)
{
	unsigned long flags;

	if (arch_irq_work_has_interrupt()) {
		irq_work_queue(&cq->irq);
		return;
	}
	local_irq_save(flags);
	cq_call_handler(cq);
	local_irq_restore(flags);
}

/* Moderation: the time is over. */
static enum hrtimer_restart cq_moderate(struct hrtimer *timer)
{
	struct mem_cq *cq = container_of(timer, struct mem_cq, moderate);
	unsigned long flags;
	bool interrupt;

	spin_lock_irqsave(&cq->lock, flags);
	interrupt = cq->armed && cq->unseen;
	if (interrupt) {
		cq->armed = 0;
		cq->unseen = 0;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	if (interrupt)
		cq_interrupt(cq);
	return HRTIMER_NORESTART;
}

int mem_create_cq(struct ib_cq *ib, const struct ib_cq_init_attr *attr,
		  struct mem_udata *udata)
{
	struct mem_dev *dev = to_mem_dev(ib->device);
	struct mem_cq *cq = to_mem_cq(ib);

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > dev->limits.max_cqe) {
		mem_violation(dev, MEM_RULE_LIMIT, "CQ of %u entries", attr->cqe);
		return -EINVAL;
	}
	cq->capacity = attr->cqe;
	cq->size = roundup_pow_of_two(attr->cqe);
	cq->cqe = mem_alloc(dev, cq->size, sizeof(*cq->cqe));
	if (!cq->cqe)
		return -ENOMEM;
	mem_account(dev, sizeof(*cq));
	spin_lock_init(&cq->lock);
	init_irq_work(&cq->irq, cq_irq);
	hrtimer_setup(&cq->moderate, cq_moderate, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	ib->cqe = attr->cqe;
	atomic_inc(&dev->num_cqs);
	return 0;
}

int mem_destroy_cq(struct ib_cq *ib, struct ib_udata *udata)
{
	struct mem_dev *dev = to_mem_dev(ib->device);
	struct mem_cq *cq = to_mem_cq(ib);

	hrtimer_cancel(&cq->moderate);
	if (arch_irq_work_has_interrupt())
		irq_work_sync(&cq->irq);
	mem_free(dev, cq->cqe, cq->size, sizeof(*cq->cqe));
	mem_account(dev, -(long)sizeof(*cq));
	atomic_dec(&dev->num_cqs);
	return 0;
}

/* Give a completion queue another size, unless it has more completions than that. */
int mem_resize_cq(struct ib_cq *ib, int cqe, struct ib_udata *udata)
{
	struct mem_dev *dev = to_mem_dev(ib->device);
	struct mem_cq *cq = to_mem_cq(ib);
	unsigned int size = roundup_pow_of_two(max(cqe, 1));
	struct mem_cqe *new;
	int ret = 0;
	u32 i;

	if (cqe <= 0 || cqe > dev->limits.max_cqe) {
		mem_violation(dev, MEM_RULE_LIMIT, "CQ resized to %d entries", cqe);
		return -EINVAL;
	}
	new = mem_alloc(dev, size, sizeof(*new));
	if (!new)
		return -ENOMEM;
	spin_lock_irq(&cq->lock);
	if (cq->tail - cq->head > cqe) {
		ret = -EINVAL;
	} else {
		for (i = cq->head; i != cq->tail; i++)
			new[i & (size - 1)] = cq->cqe[i & (cq->size - 1)];
		swap(cq->cqe, new);
		swap(cq->size, size);
		cq->capacity = cqe;
		ib->cqe = cqe;
	}
	spin_unlock_irq(&cq->lock);
	mem_free(dev, new, size, sizeof(*new));
	return ret;
}

int mem_modify_cq(struct ib_cq *ib, u16 count, u16 usec)
{
	struct mem_cq *cq = to_mem_cq(ib);
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	cq->moderate_count = count;
	cq->moderate_usec = usec;
	spin_unlock_irqrestore(&cq->lock, flags);
	return 0;
}

/* Decide whether a completion interrupts now. The caller holds the lock. */
static bool cq_shall_interrupt(struct mem_cq *cq, bool solicited)
{
	lockdep_assert_held(&cq->lock);
	if (!cq->armed || (cq->armed == IB_CQ_SOLICITED && !solicited))
		return false;
	cq->unseen++;
	if (cq->moderate_usec && cq->unseen < cq->moderate_count) {
		if (cq->unseen == 1)
			hrtimer_start(&cq->moderate, ns_to_ktime(cq->moderate_usec * NSEC_PER_USEC),
				      HRTIMER_MODE_REL);
		return false;
	}
	cq->armed = 0;
	cq->unseen = 0;
	return true;
}

/**
 * mem_cq_add - add a completion
 * @cq: the completion queue
 * @cqe: what to add, copied
 * @solicited: it is a solicited event, or an error
 *
 * Context: any.
 */
void mem_cq_add(struct mem_cq *cq, const struct mem_cqe *cqe, bool solicited)
{
	struct mem_dev *dev = to_mem_dev(cq->ib.device);
	struct ib_event event = {
		.device = cq->ib.device,
		.element.cq = &cq->ib,
		.event = IB_EVENT_CQ_ERR,
	};
	bool interrupt = false, overflow = false;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->tail - cq->head >= cq->capacity) {
		overflow = !cq->overflown;
		cq->overflown = true;
	} else {
		cq->cqe[cq->tail++ & (cq->size - 1)] = *cqe;
		interrupt = cq_shall_interrupt(cq, solicited || cqe->wc.status);
	}
	spin_unlock_irqrestore(&cq->lock, flags);

	mem_count(dev, MEM_STAT_COMPLETIONS);
	if (interrupt)
		cq_interrupt(cq);
	if (!overflow)
		return;
	mem_violation(dev, MEM_RULE_CQ_OVERFLOW, "CQ of %u entries, QP %u", cq->capacity,
		      cqe->wc.qp->qp_num);
	mem_count(dev, MEM_STAT_ASYNC_EVENTS);
	if (cq->ib.event_handler)
		cq->ib.event_handler(&event, cq->ib.cq_context);
}

/* A completion is polled: its work requests and all before them are over. */
static void cq_free_slots(const struct mem_cqe *cqe)
{
	struct mem_qp *qp = to_mem_qp(cqe->wc.qp);

	if (cqe->rq) {
		mem_rq_polled(cqe->rq);
		return;
	}
	if ((s32)(cqe->sq_freed - qp->sq_freed) <= 0)
		return;
	/* mem_post_send() uses the slots after it has read this. */
	smp_store_release(&qp->sq_freed, cqe->sq_freed);
}

/*
 * Compare the Sends that a completion frees with what was posted. That may take long, so
 * the lock is given up meanwhile. Their slots are not free before; mem_cq_forget() waits.
 * Of a Receive, the memory must be there until now.
 */
static void cq_check_buffers(struct mem_cq *cq, const struct mem_cqe *cqe, unsigned long *flags)
{
	struct mem_qp *qp = to_mem_qp(cqe->wc.qp);
	u32 i;

	if (cqe->sge.length)
		mem_check_mapped(to_mem_dev(cq->ib.device), cqe->sge.addr, cqe->sge.length);
	if (cqe->rq || !to_mem_dev(cq->ib.device)->checksums)
		return;
	cq->checking = qp;
	spin_unlock_irqrestore(&cq->lock, *flags);
	for (i = qp->sq_freed; (s32)(cqe->sq_freed - i) > 0; i++)
		mem_check_send(qp, &qp->sq[i & (qp->sq_size - 1)], MEM_RULE_SEND_REUSED);
	spin_lock_irqsave(&cq->lock, *flags);
	cq->checking = NULL;
}

int mem_poll_cq(struct ib_cq *ib, int num, struct ib_wc *wc)
{
	struct mem_cq *cq = to_mem_cq(ib);
	unsigned long flags;
	int i;

	if (test_and_set_bit_lock(0, &cq->polling)) {
		mem_violation(to_mem_dev(ib->device), MEM_RULE_CQ_POLL,
			      "two contexts poll a CQ of %u entries", cq->capacity);
		return -EBUSY;
	}
	spin_lock_irqsave(&cq->lock, flags);
	for (i = 0; i < num && cq->head != cq->tail; i++) {
		struct mem_cqe cqe = cq->cqe[cq->head++ & (cq->size - 1)];

		wc[i] = cqe.wc;
		cq_check_buffers(cq, &cqe, &flags);
		cq_free_slots(&cqe);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	clear_bit_unlock(0, &cq->polling);
	return i;
}

int mem_req_notify_cq(struct ib_cq *ib, enum ib_cq_notify_flags notify)
{
	struct mem_cq *cq = to_mem_cq(ib);
	unsigned long flags;
	int missed;

	spin_lock_irqsave(&cq->lock, flags);
	/* once armed for any completion, a request for solicited ones does not undo it */
	if (cq->armed != IB_CQ_NEXT_COMP)
		cq->armed = notify & IB_CQ_SOLICITED_MASK;
	missed = notify & IB_CQ_REPORT_MISSED_EVENTS && cq->head != cq->tail;
	spin_unlock_irqrestore(&cq->lock, flags);
	return missed;
}

/**
 * mem_cq_forget - remove the completions of a queue pair that is destroyed
 * @cq: the completion queue
 * @qp: the queue pair
 *
 * Context: process context.
 */
void mem_cq_forget(struct mem_cq *cq, struct mem_qp *qp)
{
	unsigned long flags;
	u32 from, to;

	spin_lock_irqsave(&cq->lock, flags);
	while (cq->checking == qp) {
		spin_unlock_irqrestore(&cq->lock, flags);
		usleep_range(10, 100);
		spin_lock_irqsave(&cq->lock, flags);
	}
	for (from = to = cq->head; from != cq->tail; from++) {
		struct mem_cqe *cqe = &cq->cqe[from & (cq->size - 1)];

		if (cqe->wc.qp == &qp->ib)
			cq_free_slots(cqe);
		else
			cq->cqe[to++ & (cq->size - 1)] = *cqe;
	}
	cq->tail = to;
	spin_unlock_irqrestore(&cq->lock, flags);
}
