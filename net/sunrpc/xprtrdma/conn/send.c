// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sends. Each has a buffer for the transport header, which stays mapped, and gathers
 * pages after it. A connection makes Sends on demand, and keeps those that it uses.
 */
#include <linux/slab.h>
#include <linux/sunrpc/xdr.h>

#include "conn_private.h"
#include "../objects.h"
#include "../trace.h"

/* Made with the connection, so that it makes progress when memory is short */
#define SENDS_MIN	2
/*
 * Made before one is used again. Half of the Sends may be posted without a signal. So
 * with two, every other Send would cost a completion, even with one RPC at a time.
 */
#define SENDS_ENOUGH	8U
/* Idle ones that a connection keeps when it rests: each Send is signalled then */
#define SENDS_REST	1

static struct ib_device *send_device(const struct rpcrdma_conn *conn)
{
	return conn->device->ib;
}

static struct rpcrdma_send *send_alloc(struct rpcrdma_conn *conn, gfp_t gfp)
{
	struct rpcrdma_send *send;

	send = kzalloc_node(struct_size(send, sge, 1 + conn->send_sges), gfp,
			    ibdev_to_node(send_device(conn)));
	if (!send)
		return NULL;
	send->size = conn->send_size;
	send->data = rpcrdma_device_map_buffer(conn, send->sge, send->size, DMA_TO_DEVICE, gfp);
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

/**
 * rpcrdma_send_init - initialise the Sends of a connection
 * @conn: the new connection
 *
 * Context: any.
 */
void rpcrdma_send_init(struct rpcrdma_conn *conn)
{
	spin_lock_init(&conn->send_lock);
	conn->sends_free = NULL;
}

static void send_add_free_locked(struct rpcrdma_conn *conn, struct rpcrdma_send *send)
{
	lockdep_assert_held(&conn->send_lock);
	send->next = conn->sends_free;
	conn->sends_free = send;
	WRITE_ONCE(conn->num_sends_free, conn->num_sends_free + 1);
}

/**
 * rpcrdma_send_create - make the first Sends of a connection
 * @conn: the connection, which has a queue pair and no Sends
 * @size: octets of each header buffer: the inline threshold of this direction
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int rpcrdma_send_create(struct rpcrdma_conn *conn, u32 size)
{
	struct rpcrdma_send *send;
	unsigned int i;

	conn->send_size = size;
	for (i = 0; i < SENDS_MIN; i++) {
		send = send_alloc(conn, GFP_KERNEL);
		if (!send)
			return -ENOMEM;
		spin_lock_bh(&conn->send_lock);
		send_add_free_locked(conn, send);
		conn->num_sends++;
		spin_unlock_bh(&conn->send_lock);
	}
	return 0;
}

static void send_destroy(struct rpcrdma_conn *conn, struct rpcrdma_send *send)
{
	ib_dma_unmap_single(send_device(conn), send->sge[0].addr, send->size, DMA_TO_DEVICE);
	rpcrdma_object_freed(RPCRDMA_OBJECT_SEND);
	kfree(send->data);
	kfree(send);
}

/*
 * Count a Send, if the limit allows one more. It is counted only after it was made,
 * because half of those that are counted may be posted without a signal.
 */
static bool send_count(struct rpcrdma_conn *conn, unsigned int limit)
{
	bool counted;

	spin_lock_bh(&conn->send_lock);
	counted = conn->num_sends < limit;
	if (counted)
		WRITE_ONCE(conn->num_sends, conn->num_sends + 1);
	spin_unlock_bh(&conn->send_lock);
	return counted;
}

/*
 * The caller may be a task that swaps out and may use the memory reserves. Sends are
 * not made from these.
 */
static struct rpcrdma_send *send_make(struct rpcrdma_conn *conn, unsigned int limit)
{
	struct rpcrdma_send *send;

	send = send_alloc(conn, GFP_NOWAIT | __GFP_NOWARN | __GFP_NOMEMALLOC);
	if (!send)
		return NULL;
	if (send_count(conn, limit)) {
		rpcrdma_rest_later(conn);
		return send;
	}
	/* Other threads have reached the limit meanwhile. */
	send_destroy(conn, send);
	return NULL;
}

/* What send_make() is called with: as many as are enough for now, or all */
static bool send_may_make(const struct rpcrdma_conn *conn, unsigned int limit)
{
	return READ_ONCE(conn->num_sends) < limit;
}

/* With @wanted, note under the lock that none was idle, so that ->writable follows. */
static struct rpcrdma_send *send_take(struct rpcrdma_conn *conn, bool wanted)
{
	struct rpcrdma_send *send;

	spin_lock_bh(&conn->send_lock);
	send = conn->sends_free;
	if (send) {
		conn->sends_free = send->next;
		send->rested = false;
		WRITE_ONCE(conn->num_sends_free, conn->num_sends_free - 1);
	} else if (wanted) {
		conn->send_wanted = true;
	}
	spin_unlock_bh(&conn->send_lock);
	return send;
}

static noinline struct rpcrdma_send *send_get_last(struct rpcrdma_conn *conn)
{
	struct rpcrdma_send *send = NULL;

	if (send_may_make(conn, conn->depths.sends))
		send = send_make(conn, conn->depths.sends);
	return send ?: send_take(conn, true);
}

/* Of most Sends */
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
 * Context: entered; any but hard interrupts.
 * Return: the Send; or NULL if the connection is not established or all Sends are in
 * use. If all are in use, ->writable follows when one comes back.
 */
struct rpcrdma_send *rpcrdma_send_get(struct rpcrdma_conn *conn)
{
	unsigned int enough = min(SENDS_ENOUGH, conn->depths.sends);
	struct rpcrdma_send *send = NULL;

	if (!rpcrdma_conn_established(conn))
		return NULL;
	if (unlikely(send_may_make(conn, enough)))
		send = send_make(conn, enough);
	if (!send)
		send = send_take(conn, false);
	if (unlikely(!send))
		send = send_get_last(conn);
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
 * @limit: octets that the Send may have then
 *
 * Return: 0, or -EMSGSIZE if these were more, or more than it has room for.
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
 * rpcrdma_send_add_page - let a Send gather a part of a page
 * @send: the Send, owned by the caller
 * @page: the page, which has to stay until @send->chain is done
 * @offset: octets into @page. @offset + @len may go beyond the page if it is part of a
 *	larger folio.
 * @len: octets; may be zero
 *
 * Context: entered; any but hard interrupts.
 * Return: 0; -ENOSPC if the Send has as many elements as the device allows; -ENOBUFS if
 * the page cannot be mapped now.
 */
int rpcrdma_send_add_page(struct rpcrdma_send *send, struct page *page,
			  unsigned int offset, unsigned int len)
{
	struct rpcrdma_conn *conn = send->chain.conn;
	struct ib_sge *sge;

	if (!len)
		return 0;
	if (send->num_sge > conn->send_sges)
		return -ENOSPC;
	sge = &send->sge[send->num_sge];
	sge->addr = ib_dma_map_page(send_device(conn), page, offset, len, DMA_TO_DEVICE);
	if (ib_dma_mapping_error(send_device(conn), sge->addr))
		return -ENOBUFS;
	sge->length = len;
	sge->lkey = conn->pd->local_dma_lkey;
	send->num_sge++;
	return 0;
}

static unsigned int send_num_left(const struct rpcrdma_conn *conn)
{
	return conn->depths.sends - READ_ONCE(conn->num_sends) +
	       READ_ONCE(conn->num_sends_free);
}

/**
 * rpcrdma_send_left - are there more Sends than a reserve?
 * @conn: the connection
 * @count: the reserve: Sends that the caller leaves to others
 *
 * Counts the idle Sends and those that are not made yet. If memory is short, fewer can
 * be made.
 *
 * Context: any but hard interrupts.
 * Return: true if there are more than @count; if not, ->writable follows when a Send
 * has come back.
 */
bool rpcrdma_send_left(struct rpcrdma_conn *conn, unsigned int count)
{
	bool left;

	if (send_num_left(conn) > count)
		return true;
	spin_lock_bh(&conn->send_lock);
	left = send_num_left(conn) > count;
	if (!left)
		conn->send_wanted = true;
	spin_unlock_bh(&conn->send_lock);
	return left;
}

static noinline void send_unmap_pages(struct rpcrdma_send *send)
{
	struct ib_device *device = send_device(send->chain.conn);

	while (send->num_sge > 1) {
		struct ib_sge *sge = &send->sge[--send->num_sge];

		ib_dma_unmap_page(device, sge->addr, sge->length, DMA_TO_DEVICE);
	}
}

/**
 * rpcrdma_send_put - give back a Send that is done or was never posted
 * @send: the Send, owned by the caller
 *
 * A Send that was posted goes back in its @chain.done. One that was not goes back before
 * its owner leaves.
 *
 * Context: entered; any but hard interrupts.
 */
void rpcrdma_send_put(struct rpcrdma_send *send)
{
	struct rpcrdma_conn *conn = send->chain.conn;
	bool wanted;

	if (send->num_sge > 1 && !conn->stuck)
		send_unmap_pages(send);
	spin_lock_bh(&conn->send_lock);
	send_add_free_locked(conn, send);
	wanted = conn->send_wanted;
	conn->send_wanted = false;
	spin_unlock_bh(&conn->send_lock);
	if (wanted)
		queue_work(rpcrdma_wq, &conn->writable_work);
}

/*
 * siw passes an unsignalled Send of a page or more to TCP by reference, and counts it as
 * done while TCP may still need the buffer. The completion of a later Send would then
 * give the buffer back too early. So a Send with so much in its own buffer is signalled.
 * Gathered pages need no check: a role that wants them back asks for a signal itself.
 */
static bool send_wants_signal(const struct rpcrdma_send *send)
{
	const struct rpcrdma_conn *conn = send->chain.conn;

	return send->len >= PAGE_SIZE && rdma_protocol_iwarp(conn->device->ib, conn->port);
}

/**
 * rpcrdma_send_post - post a Send and the work requests before it
 * @send: the Send, owned by the caller
 * @first: the first work request before the Send; the last one points to &@send->wr;
 *	NULL if there are none
 * @flags: as for rpcrdma_chain_post()
 * @posted: as for rpcrdma_chain_post()
 *
 * Context: entered; not in hard interrupts.
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
	if (send_wants_signal(send))
		flags |= RPCRDMA_POST_SIGNALLED;
	return rpcrdma_chain_post(conn, &send->chain, first ?: &send->wr, &send->wr, flags, posted);
}

/* The Send that was used last is the first, so those that rested are the last ones. */
static struct rpcrdma_send *send_isolate_locked(struct rpcrdma_conn *conn)
{
	struct rpcrdma_send *isolated, **link = &conn->sends_free;
	unsigned int kept;

	lockdep_assert_held(&conn->send_lock);
	for (kept = 0; *link && (!(*link)->rested || kept < SENDS_REST); kept++) {
		(*link)->rested = true;
		link = &(*link)->next;
	}
	isolated = *link;
	*link = NULL;
	WRITE_ONCE(conn->num_sends, conn->num_sends - (conn->num_sends_free - kept));
	WRITE_ONCE(conn->num_sends_free, kept);
	return isolated;
}

/**
 * rpcrdma_send_trim - free the Sends that were idle since this ran last
 * @conn: the connection
 *
 * Context: entered; any but hard interrupts.
 * Return: true if there are more than a connection keeps, idle or posted. Those that were
 * posted without a signal come back with the next one that is.
 */
bool rpcrdma_send_trim(struct rpcrdma_conn *conn)
{
	struct rpcrdma_send *send, *next;

	spin_lock_bh(&conn->send_lock);
	send = send_isolate_locked(conn);
	spin_unlock_bh(&conn->send_lock);

	for (; send; send = next) {
		next = send->next;
		send_destroy(conn, send);
	}
	return READ_ONCE(conn->num_sends) > SENDS_REST;
}

/**
 * rpcrdma_send_destroy - unmap and free all Sends
 * @conn: the connection, which is drained and which no thread can enter
 *
 * All Sends are idle: those that were posted came back in their @done, the others before
 * their owners left.
 *
 * Context: the teardown; may sleep.
 */
void rpcrdma_send_destroy(struct rpcrdma_conn *conn)
{
	struct rpcrdma_send *send;

	if (conn->stuck)
		return;
	while ((send = conn->sends_free)) {
		conn->sends_free = send->next;
		send_destroy(conn, send);
		conn->num_sends--;
		conn->num_sends_free--;
	}
	WARN_ON_ONCE(conn->num_sends);
}
