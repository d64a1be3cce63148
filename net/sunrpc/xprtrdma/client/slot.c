// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Slots: who may have one, the buffers that stay with them, and how a request
 * gets its memory back.
 */
#include <linux/highmem.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "client_private.h"
#include "piece.h"

/* Buffers grow in such steps, so that they soon fit whatever RPC comes. */
#define BUFFER_STEP	512

static struct rpcrdma_request *slot_create(gfp_t gfp)
{
	struct rpcrdma_request *request = kzalloc(sizeof(*request), gfp);

	if (!request)
		return NULL;
	INIT_LIST_HEAD(&request->invalidation.mrs);
	return request;
}

static void slot_add(struct rpcrdma_client *client,
		     struct rpcrdma_request *request)
{
	lockdep_assert_held(&client->xprt.reserve_lock);

	list_add(&request->all, &client->slots);
	client->xprt.num_reqs++;
	client->xprt.stat.max_slots = client->xprt.num_reqs;
}

static struct rpcrdma_request *slot_take_idle(struct rpcrdma_client *client)
{
	struct rpcrdma_request *request;

	request = list_first_entry_or_null(&client->idle,
					   struct rpcrdma_request, list);
	if (request)
		list_del(&request->list);
	return request;
}

/**
 * rpcrdma_slots_create - start with one slot
 * @client: the new client
 *
 * One that cannot fail to be there lets RPCs proceed, one after the other,
 * when memory is so short that there can be no more.
 *
 * Return: 0 or -ENOMEM.
 */
int rpcrdma_slots_create(struct rpcrdma_client *client)
{
	struct rpc_xprt *xprt = &client->xprt;
	struct rpcrdma_request *request;

	INIT_LIST_HEAD(&client->idle);
	INIT_LIST_HEAD(&client->slots);
	xprt->max_reqs = rpcrdma_slot_table_entries;
	xprt->min_reqs = 1;
	client->limit = xprt->max_reqs;

	request = slot_create(GFP_KERNEL);
	if (!request)
		return -ENOMEM;
	spin_lock(&xprt->reserve_lock);
	slot_add(client, request);
	list_add(&request->list, &client->idle);
	spin_unlock(&xprt->reserve_lock);
	return 0;
}

/**
 * rpcrdma_slots_destroy - free all slots, none of which is in use
 * @client: the client
 */
void rpcrdma_slots_destroy(struct rpcrdma_client *client)
{
	struct rpcrdma_request *request, *next;

	WARN_ON_ONCE(client->in_use);
	list_for_each_entry_safe(request, next, &client->slots, all) {
		kfree(request->call_buffer.data);
		kfree(request->reply_buffer.data);
		kfree(request);
	}
}

/**
 * rpcrdma_slot_alloc - the rpc_xprt_ops's alloc_slot
 * @xprt: the transport
 * @task: gets a slot, or waits on the backlog for one to come free
 */
void rpcrdma_slot_alloc(struct rpc_xprt *xprt, struct rpc_task *task)
{
	struct rpcrdma_client *client = rpcrdma_client_of(xprt);
	struct rpcrdma_request *request;

	spin_lock(&xprt->reserve_lock);
	if (client->in_use >= client->limit) {
		xprt_add_backlog(xprt, task);
		spin_unlock(&xprt->reserve_lock);
		task->tk_status = -EAGAIN;
		return;
	}
	client->in_use++;
	request = slot_take_idle(client);
	if (!request) {
		spin_unlock(&xprt->reserve_lock);
		request = slot_create(rpc_task_gfp_mask());
		spin_lock(&xprt->reserve_lock);
		if (request)
			slot_add(client, request);
		else
			/* Only slots in use wake the backlog as they end. */
			request = slot_take_idle(client);
	}
	if (!request)
		client->in_use--;
	spin_unlock(&xprt->reserve_lock);

	task->tk_rqstp = request ? &request->rqst : NULL;
	task->tk_status = request ? 0 : -ENOMEM;
}

/**
 * rpcrdma_slot_free - the rpc_xprt_ops's free_slot
 * @xprt: the transport
 * @rqst: its slot goes to whoever waits first
 */
void rpcrdma_slot_free(struct rpc_xprt *xprt, struct rpc_rqst *rqst)
{
	struct rpcrdma_client *client = rpcrdma_client_of(xprt);
	struct rpcrdma_request *request = rpcrdma_request_of(rqst);

	spin_lock(&xprt->reserve_lock);
	if (client->in_use > client->limit ||
	    !xprt_wake_up_backlog(xprt, rqst)) {
		memset(rqst, 0, sizeof(*rqst));
		list_add(&request->list, &client->idle);
		client->in_use--;
	}
	spin_unlock(&xprt->reserve_lock);
}

/**
 * rpcrdma_slots_limit - follow the credits
 * @client: the client
 * @credits: the credits of its connection, which have just changed
 *
 * A lower limit takes effect as slots come free.
 */
void rpcrdma_slots_limit(struct rpcrdma_client *client,
			 const struct rpcrdma_credits *credits)
{
	struct rpc_xprt *xprt = &client->xprt;
	struct rpcrdma_request *request;

	spin_lock(&xprt->reserve_lock);
	/* Who comes last sees what the others have changed. */
	client->limit = min(rpcrdma_credits_slots(credits), xprt->max_reqs);
	while (client->in_use < client->limit &&
	       test_bit(XPRT_CONGESTED, &xprt->state)) {
		request = slot_take_idle(client);
		if (!request) {
			request = slot_create(GFP_NOWAIT | __GFP_NOWARN);
			if (!request)
				break;
			slot_add(client, request);
		}
		if (!xprt_wake_up_backlog(xprt, &request->rqst)) {
			list_add(&request->list, &client->idle);
			break;
		}
		client->in_use++;
	}
	spin_unlock(&xprt->reserve_lock);
}

/**
 * rpcrdma_slots_note_stray - keep a Reply for a task that is going
 * @client: the client
 * @link: where it arrived
 * @stray: the Reply
 *
 * The task cannot be found by its XID any more, but its request is still on the
 * wire. Mostly there is none: it has gone.
 *
 * Context: @link's owed_lock is held.
 */
void rpcrdma_slots_note_stray(struct rpcrdma_client *client,
			      const struct rpcrdma_link *link,
			      const struct rpcrdma_stray *stray)
{
	struct rpc_xprt *xprt = &client->xprt;
	struct rpcrdma_request *request;

	spin_lock(&xprt->reserve_lock);
	list_for_each_entry(request, &client->slots, all) {
		if (READ_ONCE(request->link) != link ||
		    READ_ONCE(request->rqst.rq_xid) != stray->xid)
			continue;
		request->stray = *stray;
		break;
	}
	spin_unlock(&xprt->reserve_lock);
}

/* Zeroed, for only the server knows how much of a Reply it has written. */
static void *buffer_get(struct rpcrdma_buffer *buffer, size_t size, gfp_t gfp)
{
	if (buffer->size < size) {
		size = round_up(size, BUFFER_STEP);
		kfree(buffer->data);
		buffer->data = kzalloc(size, gfp);
		buffer->size = buffer->data ? size : 0;
	}
	return buffer->data;
}

/**
 * rpcrdma_buffers_alloc - the rpc_xprt_ops's buf_alloc
 * @task: gets rq_buffer and rq_rbuffer
 *
 * Return: 0 or -ENOMEM.
 */
int rpcrdma_buffers_alloc(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;
	struct rpcrdma_request *request = rpcrdma_request_of(rqst);
	gfp_t gfp = rpc_task_gfp_mask();

	if (!buffer_get(&request->call_buffer, rqst->rq_callsize, gfp) ||
	    !buffer_get(&request->reply_buffer, rqst->rq_rcvsize, gfp))
		return -ENOMEM;
	rqst->rq_buffer = request->call_buffer.data;
	rqst->rq_rbuffer = request->reply_buffer.data;
	return 0;
}

/**
 * rpcrdma_buffers_free - the rpc_xprt_ops's buf_free
 * @task: ends. Once this returns it may give back the memory that it sends
 *	from and receives to.
 */
void rpcrdma_buffers_free(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;

	rpcrdma_request_retire(rpcrdma_request_of(rqst));
	rqst->rq_buffer = NULL;
	rqst->rq_rbuffer = NULL;
}

/* The caller of such an RPC leaves it to the transport to find the pages. */
static int fill_sparse_pages(struct xdr_buf *buf)
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

static int clear_if_fresh(void *context, struct page *page, unsigned int offset,
			  unsigned int len)
{
	if (!PageUptodate(page))
		memzero_page(page, offset, len);
	return 0;
}

/*
 * How much it has written there is the server's word, too. What was in a page
 * before it came to hold a file must not be seen if that is not true; memory of
 * the reader's own may be. Not all of it: other RPCs may be filling the rest.
 */
static void clear_fresh_pages(const struct xdr_buf *buf)
{
	if (!want_init_on_alloc(0))
		rpcrdma_page_pieces(buf, buf->page_len, clear_if_fresh, NULL);
}

/*
 * To encrypt anew, RPCSEC_GSS first frees the pages with what it encrypted
 * before: too early for rpcrdma_request_prepare() to take them off the wire.
 */
static void release_snd_buf(struct rpc_rqst *rqst)
{
	struct rpcrdma_request *request = rpcrdma_request_of(rqst);

	rpcrdma_request_retire(request);
	rqst->rq_release_snd_buf = request->release_snd_buf;
	rqst->rq_release_snd_buf(rqst);
}

static void guard_snd_buf(struct rpc_rqst *rqst)
{
	if (!rqst->rq_release_snd_buf ||
	    rqst->rq_release_snd_buf == release_snd_buf)
		return;
	rpcrdma_request_of(rqst)->release_snd_buf = rqst->rq_release_snd_buf;
	rqst->rq_release_snd_buf = release_snd_buf;
}

/**
 * rpcrdma_request_prepare - the rpc_xprt_ops's prepare_request
 * @rqst: encoded
 * @buf: its rq_rcv_buf, or its rq_snd_buf later
 *
 * If it was encoded anew, it was so into the same memory. The last transmission
 * has to be over before there is another; what the server may still read of it
 * is the Call that is being repeated.
 *
 * Return: 0 or -ENOMEM, after which sunrpc tries again.
 */
int rpcrdma_request_prepare(struct rpc_rqst *rqst, struct xdr_buf *buf)
{
	if (bc_prealloc(rqst))
		return 0;
	rpcrdma_request_retire(rpcrdma_request_of(rqst));
	rpcrdma_request_of(rqst)->mapping_since = 0;
	guard_snd_buf(rqst);
	if (buf != &rqst->rq_rcv_buf)
		return 0;
	if (buf->flags & XDRBUF_SPARSE_PAGES && fill_sparse_pages(buf))
		return -ENOMEM;
	clear_fresh_pages(buf);
	return 0;
}

/**
 * rpcrdma_request_invalidate - take all registrations of a request from the peer
 * @request: on the wire, with registrations
 * @done: called as by rpcrdma_mr_invalidate()
 *
 * Return: as rpcrdma_mr_invalidate().
 */
int rpcrdma_request_invalidate(struct rpcrdma_request *request,
			       void (*done)(struct rpcrdma_work *work,
					    int status))
{
	struct rpcrdma_link *link = request->link;
	struct rpcrdma_mr *mr;

	list_for_each_entry(mr, &request->invalidation.mrs, list)
		link->client->stats.invalidations++;
	request->invalidation.work.done = done;
	return rpcrdma_mr_invalidate(link->conn, &request->invalidation);
}

/**
 * rpcrdma_request_put_mrs - return registrations that nobody can reach
 * @request: the request that has them
 */
void rpcrdma_request_put_mrs(struct rpcrdma_request *request)
{
	struct rpcrdma_mr *mr, *next;

	list_for_each_entry_safe(mr, next, &request->invalidation.mrs, list) {
		list_del(&mr->list);
		rpcrdma_mr_put(mr);
	}
}

static void retire_invalidated(struct rpcrdma_work *work, int status)
{
	struct rpcrdma_request *request =
		container_of(work, struct rpcrdma_request, invalidation.work);

	request->invalidation_status = status;
	clear_and_wake_up_bit(RPCRDMA_INVALIDATING, &request->state);
}

/* The end of the connection, if it comes to that, ends all that is posted. */
static void retire_wait(struct rpcrdma_request *request, int bit)
{
	if (!wait_on_bit_timeout(&request->state, bit, TASK_UNINTERRUPTIBLE,
				 RPCRDMA_RETIRE_TIMEOUT))
		return;
	rpcrdma_conn_close(request->link->conn, -ETIMEDOUT);
	wait_on_bit(&request->state, bit, TASK_UNINTERRUPTIBLE);
}

/*
 * The server may be about to send the Reply with invalidation of a handle. If
 * that is invalid by then, or even used anew, it costs the connection. So the
 * server gets a moment to send it; the memory is the task's all that time. One
 * that timed out has waited enough; but either may have missed it just now.
 * Servers invalidate where we told them that they may, whatever they told us.
 */
static void retire_await_reply(struct rpcrdma_request *request)
{
	const struct rpc_task *task = request->rqst.rq_task;
	struct rpcrdma_link *link = request->link;

	request->settled = false;
	set_bit(RPCRDMA_OWED, &request->state);
	spin_lock(&link->owed_lock);
	list_add(&request->list, &link->owed);
	rpcrdma_reply_find_stray(request);
	spin_unlock(&link->owed_lock);
	if (RPC_SIGNALLED(task) && link->conn->agreement.client_inv &&
	    rpcrdma_conn_established(link->conn))
		wait_on_bit_timeout(&request->state, RPCRDMA_OWED,
				    TASK_UNINTERRUPTIBLE, RPCRDMA_OWED_TIMEOUT);
	spin_lock(&link->owed_lock);
	clear_bit(RPCRDMA_OWED, &request->state);
	spin_unlock(&link->owed_lock);
}

/* When it is closed nobody can reach any memory by it. */
static void retire_link(struct rpcrdma_link *link, int status)
{
	rpcrdma_conn_close(link->conn, status);
	wait_for_completion(&link->closed);
	link->client->stats.recovered++;
}

static void retire_mrs(struct rpcrdma_request *request)
{
	int status;

	set_bit(RPCRDMA_INVALIDATING, &request->state);
	status = rpcrdma_request_invalidate(request, retire_invalidated);
	if (status) {
		clear_bit(RPCRDMA_INVALIDATING, &request->state);
	} else {
		retire_wait(request, RPCRDMA_INVALIDATING);
		status = request->invalidation_status;
	}
	if (status)
		retire_link(request->link, status);
}

/*
 * However late, the server may yet use the handles of a Call that it has not
 * answered. Until it has, or cannot do so any more, no other RPC gets them.
 */
static void retire_put_mrs(struct rpcrdma_request *request)
{
	struct rpcrdma_link *link = request->link;
	struct rpcrdma_mr *mr, *next;

	spin_lock(&link->owed_lock);
	list_del(&request->list);
	list_for_each_entry_safe(mr, next, &request->invalidation.mrs, list) {
		if (request->settled || !rpcrdma_mr_unmap(mr))
			break;
		mr->tag = (__force u32)request->rqst.rq_xid;
		list_move(&mr->list, &link->forsaken);
	}
	spin_unlock(&link->owed_lock);
	rpcrdma_request_put_mrs(request);
}

/* The task's own process waits, for the server as well. */
static void retire_sync(struct rpcrdma_request *request)
{
	if (!list_empty(&request->invalidation.mrs)) {
		retire_await_reply(request);
		/* The Reply may have taken care of them. */
		if (!list_empty(&request->invalidation.mrs))
			retire_mrs(request);
		retire_put_mrs(request);
	}
	retire_wait(request, RPCRDMA_GATHERING);
}

/*
 * A task without a process ends in rpciod, whose workers all RPCs of the host
 * share, those of other servers and transports, too. None may wait for a peer
 * there. The teardown does not, so the connection is closed. That costs little:
 * the task has timed out, or somebody has used force (umount -f).
 */
static void retire_async(struct rpcrdma_request *request)
{
	if (list_empty(&request->invalidation.mrs) &&
	    !test_bit(RPCRDMA_GATHERING, &request->state))
		return;
	retire_link(request->link, -ESHUTDOWN);
	rpcrdma_request_put_mrs(request);
}

/* Not where it is called: what it needs of the stack few RPCs do. */
static noinline_for_stack void retire(struct rpcrdma_request *request)
{
	struct rpcrdma_link *link = request->link;

	if (RPC_IS_ASYNC(request->rqst.rq_task))
		retire_async(request);
	else
		retire_sync(request);
	if (!request->replied)
		rpcrdma_credits_forsake(&link->credits);
	request->link = NULL;
	rpcrdma_link_put(link);
}

/**
 * rpcrdma_request_retire - take a request off the wire
 * @request: one that no Reply is being matched with
 *
 * A task that was killed or timed out, or whose connection is gone, comes here
 * before it gives back its memory or uses it anew (RFC 8166 section 4.4.1).
 * Returns at once if the Reply has arrived.
 *
 * Context: may sleep until the connection is closed.
 */
void rpcrdma_request_retire(struct rpcrdma_request *request)
{
	if (request->link)
		retire(request);
}
