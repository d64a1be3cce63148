/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Read admission: which requests of a connection may start RDMA Reads, and
 * which have to wait for others. No Reads start while Reads use half of the send
 * queue. So there is space for Replies, however much a peer offers and however
 * slow it is.
 *
 * A request waits only while others have Reads in flight, or while a woken request
 * has not started its Reads yet. When Reads end, the first waiting request is woken.
 * When it has posted its own Reads, it wakes the next. So no request is forgotten,
 * and no thread waits.
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
 *	counted; otherwise all threads that ask at the same time could start
 * @wrs: work requests of Reads that are posted or are about to be
 * @max_wrs: no Reads start while @wrs is this or more; the owner sets it before
 *	the first request
 * @seq: a count that the owner raises when space in the send queue or
 *	registrations come back
 * @lock: protects @closed and @waiters
 * @closed: no request may wait any more
 * @waiters: requests that wait, the first one first
 *
 * Part of struct svcrdma_service, which owns it.
 */
struct svcrdma_read_admission {
	struct mutex start;	/* protects the decision to start */
	atomic_t wrs;
	unsigned int max_wrs;
	const atomic_t *seq;
	spinlock_t lock;	/* protects closed and waiters */
	bool closed;
	struct list_head waiters;
};

void svcrdma_read_admission_init(struct svcrdma_read_admission *admission,
				 const atomic_t *seq);
void svcrdma_read_admission_close(struct svcrdma_read_admission *admission,
				  struct list_head *left);
struct svcrdma_request *svcrdma_read_wait(struct svcrdma_read_admission *admission,
					  struct svcrdma_request *request, int seq);
struct svcrdma_request *svcrdma_read_take_waiter(struct svcrdma_read_admission *admission);

/**
 * svcrdma_read_may_start - whether a request may start RDMA Reads now
 * @admission: read admission of the connection
 *
 * Context: any. A caller that starts Reads holds @admission->start until they are
 * counted. Without it the answer is a hint, enough to wake a request: that one asks
 * again.
 * Return: true if it may start as many as fit into one chain.
 */
static inline bool svcrdma_read_may_start(const struct svcrdma_read_admission *admission)
{
	return atomic_read(&admission->wrs) < admission->max_wrs;
}

/* Count work requests that are about to be posted. */
static inline void svcrdma_read_started(struct svcrdma_read_admission *admission, int wrs)
{
	lockdep_assert_held(&admission->start);
	atomic_add(wrs, &admission->wrs);
}

/* Count work requests that are done, or that are not posted after all. */
static inline void svcrdma_read_ended(struct svcrdma_read_admission *admission, int wrs)
{
	atomic_sub(wrs, &admission->wrs);
}

/**
 * svcrdma_read_wake - wake the first waiting request, if it may start
 * @admission: read admission of the connection
 *
 * Only one, because there may not be enough for two. The caller that has given
 * something back has counted this in @admission->seq before, with a full barrier.
 * The thread that has posted Reads for a request calls this for the next one.
 *
 * Context: process, or a callback of the connection.
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
