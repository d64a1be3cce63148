// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Read admission: when a request may start RDMA Reads. None start while Reads use half of the
 * send queue (conn->max_chain). So there is space for Replies, however much a peer offers and
 * however slow it is.
 *
 * A request waits only while others have Reads in flight, or while a woken request has not
 * started its Reads yet. When Reads end, the first waiting request is woken. When it has
 * posted its own Reads, it wakes the next. So no request is forgotten, and no thread waits.
 */
#include "server_private.h"

/**
 * svcrdma_read_wait - let a request wait until it may start RDMA Reads
 * @request: the request; the caller must not use it afterwards
 * @seq: service->resource_seq before the caller found that the request has to wait
 */
void svcrdma_read_wait(struct svcrdma_request *request, int seq)
{
	struct svcrdma_service *service = request->service;
	bool detached;

	spin_lock_bh(&service->lock);
	detached = service->detached;
	if (!detached)
		list_add_tail(&request->list, &service->read_waiters);
	spin_unlock_bh(&service->lock);
	if (detached) {
		svcrdma_request_put(request);
		return;
	}
	/*
	 * Pairs with the full barrier in svcrdma_service_returned(): either that sees the
	 * request in the list, or this sees the new count.
	 */
	smp_mb();
	if (atomic_read(&service->resource_seq) != seq)
		svcrdma_read_wake(service);
}

/**
 * svcrdma_read_wake - wake the first waiting request, if it may start
 * @service: the service
 *
 * Only one, because there may not be enough for two. A caller that has given something back
 * counts that in service->resource_seq first.
 *
 * Context: process, or a callback of the connection.
 */
void svcrdma_read_wake(struct svcrdma_service *service)
{
	struct svcrdma_request *request;

	if (list_empty(&service->read_waiters) || !svcrdma_read_may_start(service))
		return;
	spin_lock_bh(&service->lock);
	request = list_first_entry_or_null(&service->read_waiters, struct svcrdma_request, list);
	if (request) {
		list_move_tail(&request->list, &service->resume);
		svcrdma_service_wake_locked(service);
	}
	spin_unlock_bh(&service->lock);
}
