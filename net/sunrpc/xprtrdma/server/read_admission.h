/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Read admission: which requests of a connection may start RDMA Reads, and
 * which have to wait for others. RDMA Reads may use half of the send queue, so
 * that there is always space for Replies: a peer may offer more than fits, and
 * may be slow to send it.
 *
 * A request waits only while others have Reads in flight, or while a request
 * that was woken has not started its Reads yet. A Read that ends wakes the first
 * waiting request. This one wakes the next when it has posted its own Reads. So
 * no request is forgotten, and no thread waits.
 */
#ifndef SVCRDMA_READ_ADMISSION_H
#define SVCRDMA_READ_ADMISSION_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>

struct svcrdma_request;

/**
 * struct svcrdma_read_admission - read admission of one connection
 * @start: held from svcrdma_read_may_start() until the Reads that start are
 *	counted; otherwise several threads could start at the same time
 * @wrs: work requests of Reads that are posted or are about to be
 * @max_wrs: no Reads start while @wrs is this or more; the owner sets it before
 *	it takes up the first request
 * @seq: the owner counts here what comes back: work requests of Reads, and
 *	registrations
 * @lock: protects @closed and @waiters
 * @closed: no request may wait any more
 * @waiters: requests that wait, the first one first
 *
 * Part of struct svcrdma_service, which owns it.
 */
struct svcrdma_read_admission {
	struct mutex start;	/* protects the decision to start, see above */
	atomic_t wrs;
	unsigned int max_wrs;
	const atomic_t *seq;
	spinlock_t lock;	/* protects closed and waiters */
	bool closed;
	struct list_head waiters;
};

void svcrdma_read_admission_init(struct svcrdma_read_admission *admission, const atomic_t *seq);
void svcrdma_read_admission_close(struct svcrdma_read_admission *admission,
				  struct list_head *left);
struct svcrdma_request *svcrdma_read_wait(struct svcrdma_read_admission *admission,
					  struct svcrdma_request *request, int seq);
struct svcrdma_request *svcrdma_read_take_waiter(struct svcrdma_read_admission *admission);

/**
 * svcrdma_read_may_start - whether a request may start RDMA Reads now
 * @admission: read admission of the connection
 *
 * Context: holds @admission->start to act on the answer.
 * Return: true if it may start as many as fit into one chain.
 */
static inline bool svcrdma_read_may_start(const struct svcrdma_read_admission *admission)
{
	return atomic_read(&admission->wrs) < admission->max_wrs;
}

/* Work requests that are about to be posted */
static inline void svcrdma_read_started(struct svcrdma_read_admission *admission,
					unsigned int wrs)
{
	lockdep_assert_held(&admission->start);
	atomic_add(wrs, &admission->wrs);
}

/* Work requests that are done, or that are not posted after all */
static inline void svcrdma_read_ended(struct svcrdma_read_admission *admission, unsigned int wrs)
{
	atomic_sub(wrs, &admission->wrs);
}

/**
 * svcrdma_read_wake - wake the first waiting request, if it may start
 * @admission: read admission of the connection
 *
 * Only one, as there may not be enough for two. It calls this again when it has
 * started.
 *
 * Context: process. Who has given something back has counted it in
 * @admission->seq before, with a full barrier.
 * Return: a request that the caller has to resume, or NULL.
 */
static inline struct svcrdma_request *
svcrdma_read_wake(struct svcrdma_read_admission *admission)
{
	if (list_empty(&admission->waiters) || !svcrdma_read_may_start(admission))
		return NULL;
	return svcrdma_read_take_waiter(admission);
}

#endif /* SVCRDMA_READ_ADMISSION_H */
