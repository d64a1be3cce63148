// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Slots: which tasks may have one, the buffers that stay with them, and which slots stay.
 */
#include <linux/highmem.h>
#include <linux/slab.h>

#include "client_private.h"

/* Buffers grow in steps of so many octets, so that they soon fit every RPC. */
#define XPRT_RDMA_BUFFER_STEP	512

static struct xprt_rdma_request *slot_new(gfp_t gfp)
{
	struct xprt_rdma_request *request = kzalloc(sizeof(*request), gfp);

	if (!request)
		return NULL;
	INIT_LIST_HEAD(&request->invalidation.mrs);
	rpcrdma_object_made(RPCRDMA_OBJECT_SLOT);
	return request;
}

static void slot_delete(struct xprt_rdma_client *client, struct xprt_rdma_request *request)
{
	atomic_long_sub(request->call_buffer.size + request->reply_buffer.size,
			&client->buffers_size);
	kfree(request->call_buffer.data);
	kfree(request->reply_buffer.data);
	kfree(request);
	rpcrdma_object_freed(RPCRDMA_OBJECT_SLOT);
}

static void slot_add_locked(struct xprt_rdma_client *client, struct xprt_rdma_request *request)
{
	lockdep_assert_held(&client->xprt.reserve_lock);
	list_add(&request->all, &client->slots);
	client->xprt.num_reqs++;
	client->xprt.stat.max_slots = max_t(unsigned long, client->xprt.stat.max_slots,
					    client->xprt.num_reqs);
}

static struct xprt_rdma_request *slot_take_idle_locked(struct xprt_rdma_client *client)
{
	struct xprt_rdma_request *request =
		list_first_entry_or_null(&client->idle, struct xprt_rdma_request, list);

	lockdep_assert_held(&client->xprt.reserve_lock);
	if (request) {
		list_del(&request->list);
		request->rested = false;
	}
	return request;
}

/* Make the first slot. One always exists, so that RPCs proceed when memory is short. */
int xprt_rdma_slots_create(struct xprt_rdma_client *client)
{
	struct rpc_xprt *xprt = &client->xprt;
	struct xprt_rdma_request *request;

	INIT_LIST_HEAD(&client->slots);
	INIT_LIST_HEAD(&client->idle);
	xprt->max_reqs = xprt_rdma_slot_table_entries;
	xprt->min_reqs = 1;
	client->limit = xprt->max_reqs;

	request = slot_new(GFP_KERNEL);
	if (!request)
		return -ENOMEM;
	spin_lock(&xprt->reserve_lock);
	slot_add_locked(client, request);
	list_add(&request->list, &client->idle);
	spin_unlock(&xprt->reserve_lock);
	return 0;
}

/* Free all slots. None is in use. */
void xprt_rdma_slots_destroy(struct xprt_rdma_client *client)
{
	struct xprt_rdma_request *request, *next;

	WARN_ON_ONCE(client->in_use);
	if (client->stuck)
		return;
	list_for_each_entry_safe(request, next, &client->slots, all)
		slot_delete(client, request);
}

/*
 * The rpcrdma_conn_ops's rest: free the slots that were idle since this was called last, but for
 * one if there is no other. The slot that was used last is the first. If a device may still reach
 * slots (client->stuck), all stay.
 */
bool xprt_rdma_slots_rest(struct rpcrdma_conn *conn)
{
	struct xprt_rdma_endpoint *ep = conn->role;
	struct xprt_rdma_client *client = ep->client;
	struct xprt_rdma_request *request, *next;
	struct rpc_xprt *xprt = &client->xprt;
	LIST_HEAD(rested);

	if (READ_ONCE(client->stuck))
		return false;
	spin_lock(&xprt->reserve_lock);
	list_for_each_entry_safe_reverse(request, next, &client->idle, list) {
		if (request->rested && xprt->num_reqs > 1) {
			list_move(&request->list, &rested);
			list_del(&request->all);
			xprt->num_reqs--;
		} else {
			request->rested = true;
		}
	}
	spin_unlock(&xprt->reserve_lock);
	list_for_each_entry_safe(request, next, &rested, list)
		slot_delete(client, request);
	return READ_ONCE(xprt->num_reqs) > 1;
}

/* Make a slot, which client->in_use counts already. Return: NULL if there is no memory. */
static struct xprt_rdma_request *slot_make(struct xprt_rdma_client *client)
{
	struct xprt_rdma_request *request = slot_new(rpc_task_gfp_mask());
	struct rpc_xprt *xprt = &client->xprt;

	spin_lock(&xprt->reserve_lock);
	if (request)
		slot_add_locked(client, request);
	else
		/* Not the backlog: if no slot is in use, nothing would wake the task. */
		request = slot_take_idle_locked(client);
	if (!request)
		client->in_use--;
	spin_unlock(&xprt->reserve_lock);
	return request;
}

/*
 * The rpc_xprt_ops's alloc_slot. Sets the task's status: 0, -EAGAIN if it waits on the backlog
 * until a slot is free, or -ENOMEM. May sleep.
 */
void xprt_rdma_slot_alloc(struct rpc_xprt *xprt, struct rpc_task *task)
{
	struct xprt_rdma_client *client = xprt_rdma_client_of(xprt);
	struct xprt_rdma_request *request;

	spin_lock(&xprt->reserve_lock);
	if (client->in_use >= client->limit) {
		xprt_add_backlog(xprt, task);
		if (client->ep)
			client->ep->conn->counters.slot_waits++;
		spin_unlock(&xprt->reserve_lock);
		task->tk_status = -EAGAIN;
		return;
	}
	client->in_use++;
	request = slot_take_idle_locked(client);
	spin_unlock(&xprt->reserve_lock);
	if (!request)
		request = slot_make(client);

	task->tk_rqstp = request ? &request->rqst : NULL;
	task->tk_status = request ? 0 : -ENOMEM;
}

/* The rpc_xprt_ops's free_slot. The first task on the backlog gets the slot. */
void xprt_rdma_slot_free(struct rpc_xprt *xprt, struct rpc_rqst *rqst)
{
	struct xprt_rdma_client *client = xprt_rdma_client_of(xprt);
	struct xprt_rdma_request *request = xprt_rdma_request_of(rqst);

	spin_lock(&xprt->reserve_lock);
	/* For the next task, if it is from the backlog: it has waited for the slot. */
	request->waited = BIT(RPCRDMA_A_WAITS_CREDIT);
	if (client->in_use > client->limit || !xprt_wake_up_backlog(xprt, rqst)) {
		request->waited = 0;
		memset(rqst, 0, sizeof(*rqst));
		list_add(&request->list, &client->idle);
		client->in_use--;
	}
	spin_unlock(&xprt->reserve_lock);
}

/*
 * Adapt the number of slots to the credits, which have just changed; NULL: the connection has
 * ended, so nothing but max_reqs limits them until the next grant. A higher limit wakes tasks on
 * the backlog. A lower one takes effect when slots are freed. Does not sleep.
 */
void xprt_rdma_slots_limit(struct xprt_rdma_client *client, const struct xprt_rdma_credits *credits)
{
	struct rpc_xprt *xprt = &client->xprt;
	struct xprt_rdma_request *request;

	spin_lock(&xprt->reserve_lock);
	/* Compute it under the lock, so that the last caller's limit is the newest. */
	client->limit = credits ? min(xprt_rdma_credits_slots(credits), xprt->max_reqs) :
				  xprt->max_reqs;
	while (client->in_use < client->limit && test_bit(XPRT_CONGESTED, &xprt->state)) {
		request = slot_take_idle_locked(client);
		if (!request) {
			request = slot_new(GFP_NOWAIT | __GFP_NOWARN);
			if (!request)
				break;
			slot_add_locked(client, request);
		}
		request->waited = BIT(RPCRDMA_A_WAITS_CREDIT);
		if (!xprt_wake_up_backlog(xprt, &request->rqst)) {
			request->waited = 0;
			list_add(&request->list, &client->idle);
			break;
		}
		client->in_use++;
	}
	spin_unlock(&xprt->reserve_lock);
}

/*
 * Note a Reply in the request of a task that is ending: sunrpc does not find it by its XID any
 * more, but its request is on the wire. Mostly there is none: the task has gone.
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
 * The buffer is zeroed: if the server claims to have written more of a Reply than it has,
 * the task must not see what others had in this memory. Return: false if there is no memory.
 */
static bool buffer_grow(struct xprt_rdma_client *client,
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

/* The rpc_xprt_ops's buf_alloc: rq_buffer and rq_rbuffer. Return: 0 or -ENOMEM. */
int xprt_rdma_buffers_alloc(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;
	struct xprt_rdma_client *client = xprt_rdma_client_of(rqst->rq_xprt);
	struct xprt_rdma_request *request = xprt_rdma_request_of(rqst);

	if (!buffer_grow(client, &request->call_buffer, rqst->rq_callsize) ||
	    !buffer_grow(client, &request->reply_buffer, rqst->rq_rcvsize))
		return -ENOMEM;
	rqst->rq_buffer = request->call_buffer.data;
	rqst->rq_rbuffer = request->reply_buffer.data;
	return 0;
}

/*
 * The rpc_xprt_ops's buf_free. When this returns, nobody else can reach the memory that the task
 * sends from and receives to. May sleep until the connection is closed.
 */
void xprt_rdma_buffers_free(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;

	xprt_rdma_request_retire(xprt_rdma_request_of(rqst));
	rqst->rq_buffer = NULL;
	rqst->rq_rbuffer = NULL;
}

/* With XDRBUF_SPARSE_PAGES the transport has to allocate the pages. */
static int slot_fill_sparse_pages(struct xdr_buf *buf)
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
 * Whether a page has no contents yet, so that it may be cleared. A READ must change others only
 * where it returns data: pages that are uptodate, pages that a device or a driver lends to user
 * space, which need not be uptodate, and the files of DAX.
 */
static bool slot_page_is_fresh(struct page *page)
{
	struct folio *folio = page_folio(page);

	return !folio_test_uptodate(folio) && !folio_mapped(folio) && !folio_is_zone_device(folio);
}

/*
 * The server may claim to have written more into these pages than it has. Then a reader
 * would see what the kernel kept there before. So fresh pages are cleared: those of the page
 * cache, and those that NFS or sunrpc allocate for a Reply. Other RPCs may be filling the
 * rest of a page, so only the part of this RPC is cleared.
 */
static void slot_clear_fresh_pages(const struct xdr_buf *buf)
{
	struct page **page = buf->pages + (buf->page_base >> PAGE_SHIFT);
	unsigned int offset = offset_in_page(buf->page_base), left, part;

	if (want_init_on_alloc(0))
		return;
	for (left = buf->page_len; left; left -= part, page++, offset = 0) {
		part = min_t(unsigned int, left, PAGE_SIZE - offset);
		if (slot_page_is_fresh(*page))
			memzero_page(*page, offset, part);
	}
}

/*
 * Before RPCSEC_GSS encrypts a Call again, it frees the pages that it encrypted into
 * the last time. xprt_rdma_request_prepare() would be too late, so the request is
 * retired here.
 */
static void slot_release_snd_buf(struct rpc_rqst *rqst)
{
	struct xprt_rdma_request *request = xprt_rdma_request_of(rqst);

	xprt_rdma_request_retire(request);
	rqst->rq_release_snd_buf = request->release_snd_buf;
	rqst->rq_release_snd_buf(rqst);
}

/*
 * The rpc_xprt_ops's prepare_request. @rqst is an encoded Call. sunrpc calls this first with its
 * rq_rcv_buf as @buf, then with its rq_snd_buf. The last transmission of the Call has to end
 * before the next one begins. That the server may have read the memory while the Call was encoded
 * into it again does no harm: it is the same Call. May sleep until the connection is closed. After
 * -ENOMEM sunrpc tries again.
 */
int xprt_rdma_request_prepare(struct rpc_rqst *rqst, struct xdr_buf *buf)
{
	struct xprt_rdma_request *request = xprt_rdma_request_of(rqst);

	if (bc_prealloc(rqst))
		return 0;
	xprt_rdma_request_retire(request);
	request->mapping_since = 0;
	if (rqst->rq_release_snd_buf && rqst->rq_release_snd_buf != slot_release_snd_buf) {
		request->release_snd_buf = rqst->rq_release_snd_buf;
		rqst->rq_release_snd_buf = slot_release_snd_buf;
	}
	if (buf != &rqst->rq_rcv_buf || !buf->page_len)
		return 0;
	if (buf->flags & XDRBUF_SPARSE_PAGES && slot_fill_sparse_pages(buf))
		return -ENOMEM;
	slot_clear_fresh_pages(buf);
	return 0;
}
