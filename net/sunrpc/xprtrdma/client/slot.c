// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Slots: which tasks may have one, and the buffers that stay with them.
 */
#include <linux/highmem.h>
#include <linux/slab.h>

#include "client_private.h"
#include "page_frag.h"
#include "../objects.h"

/* Sizes of buffers are multiples of this, in octets, so that they soon fit every RPC. */
#define XPRT_RDMA_BUFFER_STEP	512

static struct xprt_rdma_request *xprt_rdma_slot_new(gfp_t gfp)
{
	struct xprt_rdma_request *request = kzalloc(sizeof(*request), gfp);

	if (!request)
		return NULL;
	INIT_LIST_HEAD(&request->invalidation.mrs);
	rpcrdma_object_made(RPCRDMA_OBJECT_SLOT);
	return request;
}

static void xprt_rdma_slot_add_locked(struct xprt_rdma_client *client,
				      struct xprt_rdma_request *request)
{
	lockdep_assert_held(&client->xprt.reserve_lock);

	list_add(&request->all, &client->slots);
	client->xprt.num_reqs++;
	client->xprt.stat.max_slots = client->xprt.num_reqs;
}

static void xprt_rdma_slot_put_idle_locked(struct xprt_rdma_client *client,
					   struct xprt_rdma_request *request)
{
	lockdep_assert_held(&client->xprt.reserve_lock);

	request->next_idle = client->idle;
	client->idle = request;
}

static struct xprt_rdma_request *xprt_rdma_slot_take_idle_locked(struct xprt_rdma_client *client)
{
	struct xprt_rdma_request *request = client->idle;

	lockdep_assert_held(&client->xprt.reserve_lock);

	if (request)
		client->idle = request->next_idle;
	return request;
}

/**
 * xprt_rdma_slots_create - make the first slot
 * @client: the new client
 *
 * One slot always exists, so that RPCs proceed one by one when memory is short.
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int xprt_rdma_slots_create(struct xprt_rdma_client *client)
{
	struct rpc_xprt *xprt = &client->xprt;
	struct xprt_rdma_request *request;

	INIT_LIST_HEAD(&client->slots);
	xprt->max_reqs = xprt_rdma_slot_table_entries;
	xprt->min_reqs = 1;
	client->limit = xprt->max_reqs;

	request = xprt_rdma_slot_new(GFP_KERNEL);
	if (!request)
		return -ENOMEM;
	spin_lock(&xprt->reserve_lock);
	xprt_rdma_slot_add_locked(client, request);
	xprt_rdma_slot_put_idle_locked(client, request);
	spin_unlock(&xprt->reserve_lock);
	return 0;
}

/**
 * xprt_rdma_slots_destroy - free all slots
 * @client: the client, which has no slot in use and no users
 *
 * Context: any.
 */
void xprt_rdma_slots_destroy(struct xprt_rdma_client *client)
{
	struct xprt_rdma_request *request, *next;

	WARN_ON_ONCE(client->in_use);
	if (client->stuck)
		return;
	list_for_each_entry_safe(request, next, &client->slots, all) {
		kfree(request->call_buffer.data);
		kfree(request->reply_buffer.data);
		kfree(request);
		rpcrdma_object_freed(RPCRDMA_OBJECT_SLOT);
	}
}

/* Make the slot that is already counted as in use. Return: NULL if there is no memory. */
static noinline struct xprt_rdma_request *xprt_rdma_slot_make(struct xprt_rdma_client *client)
{
	struct xprt_rdma_request *request = xprt_rdma_slot_new(rpc_task_gfp_mask());
	struct rpc_xprt *xprt = &client->xprt;

	spin_lock(&xprt->reserve_lock);
	if (request)
		xprt_rdma_slot_add_locked(client, request);
	else
		/* Do not use the backlog: only freeing a slot that is in use wakes it. */
		request = xprt_rdma_slot_take_idle_locked(client);
	if (!request)
		client->in_use--;
	spin_unlock(&xprt->reserve_lock);
	return request;
}

/**
 * xprt_rdma_slot_alloc - the rpc_xprt_ops's alloc_slot
 * @xprt: the transport
 * @task: gets a slot, or waits on the backlog until one is free
 *
 * Sets the task's status: 0, -EAGAIN if it waits, or -ENOMEM.
 *
 * Context: may sleep; takes reserve_lock.
 */
void xprt_rdma_slot_alloc(struct rpc_xprt *xprt, struct rpc_task *task)
{
	struct xprt_rdma_client *client = xprt_rdma_client_of(xprt);
	struct xprt_rdma_request *request;

	spin_lock(&xprt->reserve_lock);
	if (client->in_use >= client->limit) {
		xprt_add_backlog(xprt, task);
		client->slot_waits++;
		spin_unlock(&xprt->reserve_lock);
		task->tk_status = -EAGAIN;
		return;
	}
	client->in_use++;
	request = xprt_rdma_slot_take_idle_locked(client);
	spin_unlock(&xprt->reserve_lock);
	if (!request)
		request = xprt_rdma_slot_make(client);

	task->tk_rqstp = request ? &request->rqst : NULL;
	task->tk_status = request ? 0 : -ENOMEM;
}

/**
 * xprt_rdma_slot_free - the rpc_xprt_ops's free_slot
 * @xprt: the transport
 * @rqst: the slot, which the first task on the backlog gets
 *
 * Context: does not sleep; takes reserve_lock.
 */
void xprt_rdma_slot_free(struct rpc_xprt *xprt, struct rpc_rqst *rqst)
{
	struct xprt_rdma_client *client = xprt_rdma_client_of(xprt);
	struct xprt_rdma_request *request = xprt_rdma_request_of(rqst);

	spin_lock(&xprt->reserve_lock);
	/* Of the task that gets the slot; it was counted as one that waits. */
	request->waited = BIT(RPCRDMA_A_WAITS_CREDIT);
	if (client->in_use > client->limit || !xprt_wake_up_backlog(xprt, rqst)) {
		request->waited = 0;
		memset(rqst, 0, sizeof(*rqst));
		xprt_rdma_slot_put_idle_locked(client, request);
		client->in_use--;
	}
	spin_unlock(&xprt->reserve_lock);
}

/**
 * xprt_rdma_slots_limit - adapt the number of slots to the credits
 * @client: the client
 * @credits: the credits of its connection, which have just changed
 *
 * A higher limit wakes tasks on the backlog. A lower one takes effect when slots are
 * freed.
 *
 * Context: does not sleep.
 */
void xprt_rdma_slots_limit(struct xprt_rdma_client *client,
			   const struct xprt_rdma_credits *credits)
{
	struct rpc_xprt *xprt = &client->xprt;
	struct xprt_rdma_request *request;

	spin_lock(&xprt->reserve_lock);
	/* Under the lock: the last caller sees what all others have changed. */
	client->limit = min(xprt_rdma_credits_slots(credits), xprt->max_reqs);
	while (client->in_use < client->limit && test_bit(XPRT_CONGESTED, &xprt->state)) {
		request = xprt_rdma_slot_take_idle_locked(client);
		if (!request) {
			request = xprt_rdma_slot_new(GFP_NOWAIT | __GFP_NOWARN);
			if (!request)
				break;
			xprt_rdma_slot_add_locked(client, request);
		}
		request->waited = BIT(RPCRDMA_A_WAITS_CREDIT);
		if (!xprt_wake_up_backlog(xprt, &request->rqst)) {
			request->waited = 0;
			xprt_rdma_slot_put_idle_locked(client, request);
			break;
		}
		client->in_use++;
	}
	spin_unlock(&xprt->reserve_lock);
}

/**
 * xprt_rdma_slots_note_unmatched_locked - note a Reply for a task that is ending
 * @client: the client
 * @ep: where the Reply arrived
 * @unmatched: the Reply
 *
 * sunrpc does not find the task by its XID any more, but its request may still be on
 * the wire. Mostly there is no such request: the task has gone.
 *
 * Context: @ep's awaiting_lock is held.
 */
void xprt_rdma_slots_note_unmatched_locked(struct xprt_rdma_client *client,
					   const struct xprt_rdma_endpoint *ep,
					   const struct xprt_rdma_unmatched_reply *unmatched)
{
	struct rpc_xprt *xprt = &client->xprt;
	struct xprt_rdma_request *request;

	lockdep_assert_held(&ep->awaiting_lock);

	spin_lock(&xprt->reserve_lock);
	list_for_each_entry(request, &client->slots, all) {
		if (READ_ONCE(request->ep) != ep ||
		    READ_ONCE(request->rqst.rq_xid) != unmatched->xid)
			continue;
		request->unmatched = *unmatched;
		break;
	}
	spin_unlock(&xprt->reserve_lock);
}

/*
 * Zeroed, because only the server knows how much of a Reply it has written. If it claims
 * too much, the task sees no old memory. Return: false if there is no memory.
 */
static bool xprt_rdma_buffer_grow(struct xprt_rdma_client *client,
				  struct xprt_rdma_buffer *buffer, size_t size)
{
	size_t before = buffer->size;

	if (before >= size)
		return true;
	size = round_up(size, XPRT_RDMA_BUFFER_STEP);
	if (!READ_ONCE(client->stuck))
		kfree(buffer->data);
	buffer->data = kzalloc(size, rpc_task_gfp_mask());
	buffer->size = buffer->data ? size : 0;
	atomic_long_add(buffer->size - before, &client->buffers_size);
	return buffer->data;
}

static noinline bool xprt_rdma_buffers_grow(struct xprt_rdma_request *request)
{
	const struct rpc_rqst *rqst = &request->rqst;
	struct xprt_rdma_client *client = xprt_rdma_client_of(rqst->rq_xprt);

	return xprt_rdma_buffer_grow(client, &request->call_buffer, rqst->rq_callsize) &&
	       xprt_rdma_buffer_grow(client, &request->reply_buffer, rqst->rq_rcvsize);
}

/**
 * xprt_rdma_buffers_alloc - the rpc_xprt_ops's buf_alloc
 * @task: the task, whose slot gets rq_buffer and rq_rbuffer
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int xprt_rdma_buffers_alloc(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;
	struct xprt_rdma_request *request = xprt_rdma_request_of(rqst);

	if ((request->call_buffer.size < rqst->rq_callsize ||
	     request->reply_buffer.size < rqst->rq_rcvsize) &&
	    !xprt_rdma_buffers_grow(request))
		return -ENOMEM;
	rqst->rq_buffer = request->call_buffer.data;
	rqst->rq_rbuffer = request->reply_buffer.data;
	return 0;
}

/**
 * xprt_rdma_buffers_free - the rpc_xprt_ops's buf_free
 * @task: the task, which ends
 *
 * When this returns, nobody else can reach the memory that the task sends from and
 * receives to, so the task may give it back.
 *
 * Context: may sleep until the connection is closed.
 */
void xprt_rdma_buffers_free(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;

	xprt_rdma_request_retire(xprt_rdma_request_of(rqst));
	rqst->rq_buffer = NULL;
	rqst->rq_rbuffer = NULL;
}

/* For some RPCs the transport has to allocate the pages. */
static int xprt_rdma_slot_fill_sparse_pages(struct xdr_buf *buf)
{
	unsigned int i, count;

	count = PAGE_ALIGN(buf->page_base + buf->page_len) >> PAGE_SHIFT;
	for (i = 0; i < count; i++) {
		if (buf->pages[i])
			continue;
		buf->pages[i] = alloc_page(rpc_task_gfp_mask());
		if (!buf->pages[i])
			return -ENOMEM;
	}
	return 0;
}

/*
 * Whether a page holds nothing that anybody may see. Others hold data, which a READ must not
 * change beyond what it returns: pages that are uptodate, pages that a device or a driver
 * lends to user space, which need not be uptodate, and the files of DAX.
 */
static bool xprt_rdma_slot_page_is_fresh(struct page *page)
{
	struct folio *folio = page_folio(page);

	return !folio_test_uptodate(folio) && !folio_mapped(folio) &&
	       !folio_is_zone_device(folio);
}

static int xprt_rdma_slot_clear_if_fresh(void *context, struct page *page,
					 unsigned int offset, unsigned int len)
{
	if (xprt_rdma_slot_page_is_fresh(page))
		memzero_page(page, offset, len);
	return 0;
}

/*
 * The server may claim to have written more into these pages than it has. Then a reader
 * would see what the kernel kept there before. So fresh pages are cleared: those of the page
 * cache, and those that NFS or the core allocate for a Reply. Only the part that belongs to
 * this RPC is cleared: other RPCs may be filling the rest.
 */
static void xprt_rdma_slot_clear_fresh_pages(const struct xdr_buf *buf)
{
	if (!want_init_on_alloc(0))
		xprt_rdma_page_frags_in_pages(buf, buf->page_len,
					      xprt_rdma_slot_clear_if_fresh, NULL);
}

/*
 * Before RPCSEC_GSS encrypts a Call again, it frees the pages that it encrypted into
 * the first time. That comes before xprt_rdma_request_prepare(), so the request is
 * retired here.
 */
static void xprt_rdma_slot_release_snd_buf(struct rpc_rqst *rqst)
{
	struct xprt_rdma_request *request = xprt_rdma_request_of(rqst);

	xprt_rdma_request_retire(request);
	rqst->rq_release_snd_buf = request->release_snd_buf;
	rqst->rq_release_snd_buf(rqst);
}

static void xprt_rdma_slot_guard_snd_buf(struct rpc_rqst *rqst)
{
	if (!rqst->rq_release_snd_buf ||
	    rqst->rq_release_snd_buf == xprt_rdma_slot_release_snd_buf)
		return;
	xprt_rdma_request_of(rqst)->release_snd_buf = rqst->rq_release_snd_buf;
	rqst->rq_release_snd_buf = xprt_rdma_slot_release_snd_buf;
}

static noinline int xprt_rdma_slot_prepare_pages(struct xdr_buf *buf)
{
	if (!buf->page_len)
		return 0;
	if (buf->flags & XDRBUF_SPARSE_PAGES && xprt_rdma_slot_fill_sparse_pages(buf))
		return -ENOMEM;
	xprt_rdma_slot_clear_fresh_pages(buf);
	return 0;
}

/**
 * xprt_rdma_request_prepare - the rpc_xprt_ops's prepare_request
 * @rqst: an encoded Call
 * @buf: its rq_rcv_buf, or later its rq_snd_buf
 *
 * A Call that is sent again has been encoded into the same memory. The last
 * transmission has to end before the next one begins. Until then the server may read
 * that memory, which holds the same Call.
 *
 * Context: may sleep until the connection is closed.
 * Return: 0 or -ENOMEM, after which sunrpc tries again.
 */
int xprt_rdma_request_prepare(struct rpc_rqst *rqst, struct xdr_buf *buf)
{
	struct xprt_rdma_request *request = xprt_rdma_request_of(rqst);

	if (bc_prealloc(rqst))
		return 0;
	xprt_rdma_request_retire(request);
	request->mapping_since = 0;
	xprt_rdma_slot_guard_snd_buf(rqst);
	return buf == &rqst->rq_rcv_buf ? xprt_rdma_slot_prepare_pages(buf) : 0;
}
