// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Read admission: the list of requests that wait.
 */
#include "read_admission.h"
#include "server_private.h"

/**
 * svcrdma_read_admission_init - initialise read admission
 * @admission: zeroed memory
 * @seq: the owner counts here what comes back
 *
 * Context: any.
 */
void svcrdma_read_admission_init(struct svcrdma_read_admission *admission,
				 const atomic_t *seq)
{
	mutex_init(&admission->start);
	admission->seq = seq;
	spin_lock_init(&admission->lock);
	INIT_LIST_HEAD(&admission->waiters);
}

/**
 * svcrdma_read_admission_close - let no request wait any more
 * @admission: read admission of the connection
 * @left: gets the requests that wait; the caller has to put them
 *
 * Context: process.
 */
void svcrdma_read_admission_close(struct svcrdma_read_admission *admission,
				  struct list_head *left)
{
	spin_lock_bh(&admission->lock);
	admission->closed = true;
	list_splice_tail_init(&admission->waiters, left);
	spin_unlock_bh(&admission->lock);
}

/**
 * svcrdma_read_take_waiter - take the first waiting request
 * @admission: read admission of the connection
 *
 * For svcrdma_read_wake().
 *
 * Context: process, or a callback of the connection.
 * Return: the request, or NULL if none waits.
 */
struct svcrdma_request *svcrdma_read_take_waiter(struct svcrdma_read_admission *admission)
{
	struct svcrdma_request *request;

	spin_lock_bh(&admission->lock);
	request = list_first_entry_or_null(&admission->waiters, struct svcrdma_request, list);
	if (request)
		list_del(&request->list);
	spin_unlock_bh(&admission->lock);
	return request;
}

/**
 * svcrdma_read_wait - let a request wait until it may start RDMA Reads
 * @admission: read admission of the connection
 * @request: the request; the caller must not use it afterwards
 * @seq: the owner's count before the caller found that the request has to wait
 *
 * Context: process.
 * Return: NULL, or a request that the caller has to resume. If read admission is
 * closed, it is @request. If something has come back in the meantime, it is the
 * first waiting request, which may be @request.
 */
struct svcrdma_request *svcrdma_read_wait(struct svcrdma_read_admission *admission,
					  struct svcrdma_request *request, int seq)
{
	bool closed;

	spin_lock_bh(&admission->lock);
	closed = admission->closed;
	if (!closed)
		list_add_tail(&request->list, &admission->waiters);
	spin_unlock_bh(&admission->lock);
	if (closed)
		return request;
	/*
	 * Pairs with the full barrier between counting in *seq and
	 * svcrdma_read_wake(): either svcrdma_read_wake() sees the request in
	 * the list, or this sees the new count.
	 */
	smp_mb();
	return atomic_read(admission->seq) == seq ? NULL : svcrdma_read_wake(admission);
}
