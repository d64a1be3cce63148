// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sends. Each has a buffer for the transport header, which stays mapped, and gathers
 * pages after it. A connection makes Sends on demand, and keeps those that it uses.
 */
#include <linux/slab.h>
#include <linux/sunrpc/xdr.h>

#include "conn_private.h"

/*
 * Made before one is used again. Half of the Sends may be posted without a signal. So
 * with two, every other Send would cost a completion, even with one RPC at a time.
 * That matters only if less than this time is between two, in jiffies: NFSv4.1 renews
 * its lease for as long as it is mounted.
 */
#define SENDS_ENOUGH	8U
#define SENDS_OFTEN	HZ

static struct rpcrdma_send *send_alloc(struct rpcrdma_conn *conn, gfp_t gfp)
{
	struct ib_device *ib = conn->device->ib;
	struct rpcrdma_send *send;

	send = kzalloc_node(struct_size(send, sge, 1 + conn->send_sges), gfp, ibdev_to_node(ib));
	if (!send)
		return NULL;
	send->size = conn->send_size;
	send->data = rpcrdma_device_map_buffer(conn->pd, send->sge, send->size, DMA_TO_DEVICE, gfp);
	if (!send->data) {
		kfree(send);
		return NULL;
	}
	send->num_sge = 1;
	send->wr.sg_list = send->sge;
	send->chain.conn = conn;
	rpcrdma_object_made(RPCRDMA_OBJECT_SEND);
	return send;
}

static void send_free(struct rpcrdma_conn *conn, struct rpcrdma_pooled *entry)
{
	struct rpcrdma_send *send = container_of(entry, struct rpcrdma_send, pooled);

	ib_dma_unmap_single(conn->device->ib, send->sge[0].addr, send->size, DMA_TO_DEVICE);
	rpcrdma_object_freed(RPCRDMA_OBJECT_SEND);
	kfree(send->data);
	kfree(send);
}

/*
 * One always exists, because a connection has to go on when memory is short. A Send that is the
 * only one is always signalled, and so comes back.
 */
void rpcrdma_send_init(struct rpcrdma_conn *conn)
{
	rpcrdma_pool_init(&conn->sends, 1, send_free);
	conn->send_taken = jiffies;
}

/* Make the first Send. @size: of each header buffer, the inline threshold of this direction */
int rpcrdma_send_create(struct rpcrdma_conn *conn, u32 size)
{
	struct rpcrdma_send *send;

	conn->send_size = size;
	send = send_alloc(conn, GFP_KERNEL);
	if (!send)
		return -ENOMEM;
	conn->sends.num = 1;
	rpcrdma_pool_put(&conn->sends, &send->pooled, false);
	return 0;
}

/*
 * Make one, unless there are @limit. The caller may be a task that swaps out, but Sends are not
 * made from the memory reserves. A Send is counted only when it exists, because half of those
 * that are counted may be posted without a signal.
 */
static struct rpcrdma_send *send_make(struct rpcrdma_conn *conn, unsigned int limit)
{
	struct rpcrdma_pool *pool = &conn->sends;
	struct rpcrdma_send *send;
	bool counted;

	if (READ_ONCE(pool->num) >= limit)
		return NULL;
	send = send_alloc(conn, GFP_NOWAIT | __GFP_NOWARN | __GFP_NOMEMALLOC);
	if (!send)
		return NULL;
	spin_lock_bh(&pool->lock);
	counted = pool->num < limit;
	if (counted)
		WRITE_ONCE(pool->num, pool->num + 1);
	spin_unlock_bh(&pool->lock);
	if (counted) {
		rpcrdma_rest_later(conn);
		return send;
	}
	/* Other threads have reached the limit meanwhile. */
	send_free(conn, &send->pooled);
	return NULL;
}

static struct rpcrdma_send *send_take(struct rpcrdma_conn *conn)
{
	struct rpcrdma_pooled *entry = rpcrdma_pool_take(&conn->sends);

	return entry ? container_of(entry, struct rpcrdma_send, pooled) : NULL;
}

/* The ->done of Sends whose role sets no other */
static void send_done(struct rpcrdma_chain *chain, int status)
{
	rpcrdma_send_put(container_of(chain, struct rpcrdma_send, chain));
}

/**
 * rpcrdma_send_get - take a Send
 * @conn: the connection
 *
 * The caller owns the Send until rpcrdma_send_put(). It fills in @data, @len,
 * @private, and @chain.done if it needs another one.
 *
 * Return: the Send; or NULL if the connection is not established or all Sends are in
 * use. If all are in use, ->writable follows when one comes back.
 */
struct rpcrdma_send *rpcrdma_send_get(struct rpcrdma_conn *conn)
{
	bool often = time_before(jiffies, READ_ONCE(conn->send_taken) + SENDS_OFTEN);
	unsigned int limit = conn->depths.sends;
	struct rpcrdma_send *send;

	if (!rpcrdma_conn_established(conn))
		return NULL;
	WRITE_ONCE(conn->send_taken, jiffies);
	send = send_make(conn, often ? min(SENDS_ENOUGH, limit) : 0) ?: send_take(conn) ?:
	       send_make(conn, limit);
	if (unlikely(!send))
		return NULL;

	send->chain.done = send_done;
	send->wr.next = NULL;
	send->wr.opcode = IB_WR_SEND;
	send->wr.send_flags = 0;
	send->len = 0;
	send->private = NULL;
	return send;
}

/**
 * rpcrdma_send_header - write the transport header of a message into a Send
 * @send: the Send, owned by the caller
 * @msg: the message
 *
 * Return: 0, or -EMSGSIZE if the header is longer than the Send.
 */
int rpcrdma_send_header(struct rpcrdma_send *send, const struct rpcrdma_message *msg)
{
	int len = rpcrdma_wire_encode(msg, send->data, send->size);

	if (len < 0)
		return len;
	send->len = len;
	return 0;
}

/**
 * rpcrdma_send_copy - copy a part of an RPC message into a Send, after what it has
 * @send: the Send, owned by the caller
 * @buf: the RPC message
 * @at: where the part begins, in octets
 * @octets: its length
 * @limit: octets that the Send may have afterwards
 *
 * Return: 0, or -EMSGSIZE if it would have more than @limit or than it has room for.
 */
int rpcrdma_send_copy(struct rpcrdma_send *send, const struct xdr_buf *buf, u32 at, u32 octets,
		      u32 limit)
{
	void *to = send->data + send->len;

	limit = min(limit, send->size);
	if (send->len > limit || octets > limit - send->len)
		return -EMSGSIZE;
	send->len += octets;
	return read_bytes_from_xdr_buf(buf, at, to, octets);
}

/**
 * rpcrdma_send_can_gather - how much of an RPC message a Send can gather
 * @conn: the connection
 * @buf: the RPC message
 *
 * Return: octets of its pages and its tail; or zero if the device cannot gather so many pages.
 */
u32 rpcrdma_send_can_gather(const struct rpcrdma_conn *conn, const struct xdr_buf *buf)
{
	u32 pages = DIV_ROUND_UP(offset_in_page(buf->page_base) + buf->page_len, PAGE_SIZE);

	if (pages + !!buf->tail[0].iov_len > conn->send_sges)
		return 0;
	return buf->page_len + buf->tail[0].iov_len;
}

/* @offset + @len may go beyond the page if it is part of a larger folio. */
static int send_add_page(struct rpcrdma_send *send, struct page *page, u32 offset, u32 len)
{
	struct rpcrdma_conn *conn = send->chain.conn;
	struct ib_device *ib = conn->device->ib;
	struct ib_sge *sge;

	if (send->num_sge > conn->send_sges)
		return -ENOSPC;
	sge = &send->sge[send->num_sge];
	sge->addr = ib_dma_map_page(ib, page, offset, len, DMA_TO_DEVICE);
	if (ib_dma_mapping_error(ib, sge->addr))
		return -ENOBUFS;
	sge->length = len;
	sge->lkey = conn->pd->local_dma_lkey;
	send->num_sge++;
	return 0;
}

/**
 * rpcrdma_send_gather - let a Send gather the pages and the tail of an RPC message
 * @send: the Send, owned by the caller, which has copied the head
 * @buf: the RPC message, whose memory has to stay until @send->chain is done
 *
 * What is copied precedes what is gathered. So the tail, after the pages, is gathered as well.
 *
 * Return: 0; -ENOSPC if rpcrdma_send_can_gather() returns zero; -ENOBUFS if a page cannot be
 * mapped now.
 */
int rpcrdma_send_gather(struct rpcrdma_send *send, const struct xdr_buf *buf)
{
	struct page **page = buf->pages + (buf->page_base >> PAGE_SHIFT);
	u32 offset = offset_in_page(buf->page_base), left, part;
	const struct kvec *tail = &buf->tail[0];
	int ret = 0;

	for (left = buf->page_len; left && !ret; left -= part, offset = 0) {
		part = min_t(u32, left, PAGE_SIZE - offset);
		ret = send_add_page(send, *page++, offset, part);
	}
	if (!ret && tail->iov_len)
		ret = send_add_page(send, virt_to_page(tail->iov_base),
				    offset_in_page(tail->iov_base), tail->iov_len);
	return ret;
}

/**
 * rpcrdma_send_left - are more than @count Sends left?
 * @conn: the connection
 * @count: Sends that the caller leaves to others
 *
 * Counts the idle Sends and those that are not made yet, which may fail if memory is short.
 *
 * Return: true if there are more than @count; if not, ->writable follows when a Send
 * has come back.
 */
bool rpcrdma_send_left(struct rpcrdma_conn *conn, unsigned int count)
{
	struct rpcrdma_pool *pool = &conn->sends;
	bool left;

	spin_lock_bh(&pool->lock);
	left = conn->depths.sends - pool->num + pool->num_idle > count;
	if (!left)
		pool->wanted = true;
	spin_unlock_bh(&pool->lock);
	return left;
}

/**
 * rpcrdma_send_put - give back a Send that is done or was never posted
 * @send: the Send, owned by the caller
 *
 * A Send that was posted goes back in its @chain.done. One that was not goes back before
 * its owner leaves.
 */
void rpcrdma_send_put(struct rpcrdma_send *send)
{
	struct rpcrdma_conn *conn = send->chain.conn;
	struct rpcrdma_pool *pool = &conn->sends;

	while (send->num_sge > 1 && !conn->stuck) {
		struct ib_sge *sge = &send->sge[--send->num_sge];

		ib_dma_unmap_page(conn->device->ib, sge->addr, sge->length, DMA_TO_DEVICE);
	}
	rpcrdma_pool_put(pool, &send->pooled, false);
	if (unlikely(READ_ONCE(pool->wanted))) {
		WRITE_ONCE(pool->wanted, false);
		queue_work(rpcrdma_wq, &conn->writable_work);
	}
}

/**
 * rpcrdma_send_post - post a Send and the work requests before it
 * @send: the Send, owned by the caller
 * @first: the first work request before the Send; the last one points to &@send->wr;
 *	NULL if there are none
 * @flags: as for rpcrdma_chain_post()
 * @posted: as for rpcrdma_chain_post()
 *
 * Return: as rpcrdma_chain_post(). On an error the caller still owns @send and may try
 * again.
 */
int rpcrdma_send_post(struct rpcrdma_send *send, struct ib_send_wr *first, unsigned int flags,
		      bool *posted)
{
	struct rpcrdma_conn *conn = send->chain.conn;

	send->sge[0].length = send->len;
	send->wr.num_sge = send->num_sge;
	ib_dma_sync_single_for_device(conn->device->ib, send->sge[0].addr, send->len,
				      DMA_TO_DEVICE);
	/*
	 * siw passes an unsignalled Send of a page or more to TCP by reference, and counts it
	 * as done while TCP may still need the buffer. The completion of a later Send would
	 * then give the buffer back too early. Gathered pages need no check: a role that wants
	 * them back asks for a signal itself.
	 */
	if (send->len >= PAGE_SIZE && rdma_protocol_iwarp(conn->device->ib, conn->port))
		flags |= RPCRDMA_POST_SIGNALLED;
	return rpcrdma_chain_post(conn, &send->chain, first ?: &send->wr, &send->wr, flags, posted);
}

/* In the teardown. All Sends are idle: posted ones are done, others came back before leaving. */
void rpcrdma_send_destroy(struct rpcrdma_conn *conn)
{
	struct rpcrdma_send *send;

	while ((send = send_take(conn))) {
		send_free(conn, &send->pooled);
		conn->sends.num--;
	}
	WARN_ON_ONCE(conn->sends.num);
}
