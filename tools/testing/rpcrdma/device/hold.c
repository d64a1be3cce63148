// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Completions that come late. What is behind a late completion in the same work queue
 * waits too, as the order within a queue is guaranteed. That of different queues is not.
 */
#include <linux/slab.h>

#include "mem.h"

/* How late a completion may be if not enough others follow */
#define LATE_LIMIT	(100 * NSEC_PER_MSEC)

/* Let the completions of a queue go. The caller holds the lock, which keeps their order. */
static void hold_release(struct mem_qp *qp, bool recv)
{
	struct mem_held *held, *next;

	lockdep_assert_held(&qp->held_lock);
	list_for_each_entry_safe(held, next, &qp->held[recv], entry) {
		list_del(&held->entry);
		mem_cq_add(recv ? qp->recv_cq : qp->send_cq, &held->cqe, held->solicited);
		kfree(held);
	}
	WRITE_ONCE(qp->holding[recv], false);
}

static enum hrtimer_restart hold_timer(struct hrtimer *timer)
{
	struct mem_qp *qp = container_of(timer, struct mem_qp, held_timer);
	unsigned long flags;
	int recv;

	spin_lock_irqsave(&qp->held_lock, flags);
	for (recv = 0; recv < 2; recv++)
		if (qp->holding[recv] && qp->held_left[recv] >= 0)
			hold_release(qp, recv);
	spin_unlock_irqrestore(&qp->held_lock, flags);
	return HRTIMER_NORESTART;
}

/**
 * mem_hold_init - prepare a queue pair to hold completions
 * @qp: the queue pair
 */
void mem_hold_init(struct mem_qp *qp)
{
	spin_lock_init(&qp->held_lock);
	INIT_LIST_HEAD(&qp->held[false]);
	INIT_LIST_HEAD(&qp->held[true]);
	hrtimer_setup(&qp->held_timer, hold_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
}

/**
 * mem_hold_drop - forget the completions that are held
 * @qp: the queue pair, whose engine does not run
 *
 * Context: process context.
 */
void mem_hold_drop(struct mem_qp *qp)
{
	struct mem_held *held, *next;
	int recv;

	hrtimer_cancel(&qp->held_timer);
	spin_lock_irq(&qp->held_lock);
	for (recv = 0; recv < 2; recv++) {
		list_for_each_entry_safe(held, next, &qp->held[recv], entry) {
			list_del(&held->entry);
			if (recv)
				mem_rq_polled(held->cqe.rq);
			kfree(held);
		}
		WRITE_ONCE(qp->holding[recv], false);
	}
	spin_unlock_irq(&qp->held_lock);
}

/**
 * mem_hold - hold the next completion of a work queue
 * @qp: the queue pair
 * @recv: its receive queue; else its send queue
 * @count: how many more completions it waits for, or MEM_HOLD_...
 *
 * Context: softirq.
 */
void mem_hold(struct mem_qp *qp, bool recv, int count)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->held_lock, flags);
	WRITE_ONCE(qp->holding[recv], true);
	qp->held_left[recv] = count;
	spin_unlock_irqrestore(&qp->held_lock, flags);
	if (count >= 0)
		hrtimer_start(&qp->held_timer, ns_to_ktime(LATE_LIMIT), HRTIMER_MODE_REL);
}

/**
 * mem_hold_ends - let completions go soon that are held until the end of a queue pair
 * @qp: the queue pair, in the error state
 *
 * What tears it down has begun by then: it waits for them, or has gone.
 *
 * Context: softirq.
 */
void mem_hold_ends(struct mem_qp *qp)
{
	int recv;

	for (recv = 0; recv < 2; recv++)
		if (READ_ONCE(qp->holding[recv]) && qp->held_left[recv] == MEM_HOLD_END)
			mem_hold(qp, recv, INT_MAX);
}

static void hold_one(struct mem_qp *qp, bool recv, const struct mem_cqe *cqe,
		     bool solicited)
{
	struct mem_held *held = kmalloc(sizeof(*held), GFP_ATOMIC);

	lockdep_assert_held(&qp->held_lock);
	if (!held) {
		hold_release(qp, recv);
		mem_cq_add(recv ? qp->recv_cq : qp->send_cq, cqe, solicited);
		return;
	}
	held->cqe = *cqe;
	held->solicited = solicited;
	list_add_tail(&held->entry, &qp->held[recv]);
	/* the first one is that which waits */
	if (qp->held_left[recv] >= 0 && qp->held_left[recv]-- == 0)
		hold_release(qp, recv);
}

/**
 * mem_complete - complete a work request
 * @qp: the queue pair
 * @recv: it is a Receive
 * @cqe: the completion
 * @solicited: it asks for an interrupt of a queue that is armed for solicited events
 *
 * Context: softirq.
 */
void mem_complete(struct mem_qp *qp, bool recv, const struct mem_cqe *cqe, bool solicited)
{
	struct mem_cq *cq = recv ? qp->recv_cq : qp->send_cq;
	unsigned long flags;

	if (likely(!READ_ONCE(qp->holding[recv]))) {
		mem_cq_add(cq, cqe, solicited);
		return;
	}
	spin_lock_irqsave(&qp->held_lock, flags);
	if (qp->holding[recv])
		hold_one(qp, recv, cqe, solicited);
	else
		mem_cq_add(cq, cqe, solicited);
	spin_unlock_irqrestore(&qp->held_lock, flags);
}

/**
 * mem_fault_release - let all completions of a device go that are held
 * @dev: the device
 *
 * Context: process context.
 */
void mem_fault_release(struct mem_dev *dev)
{
	struct mem_qp *qp;

	spin_lock_irq(&dev->qps_lock);
	list_for_each_entry(qp, &dev->qps, entry) {
		spin_lock(&qp->held_lock);
		hold_release(qp, false);
		hold_release(qp, true);
		spin_unlock(&qp->held_lock);
	}
	spin_unlock_irq(&dev->qps_lock);
}
