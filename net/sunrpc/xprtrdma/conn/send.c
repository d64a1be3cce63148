// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sends: a buffer for the transport header each, mapped once, and pages that
 * follow it. A connection makes them as it needs them and keeps them.
 */
#include <linux/slab.h>

#include "conn_private.h"
#include "../trace.h"

/* Made with the connection, so that it gets on when memory is short */
#define SENDS_MIN	2
/*
 * Made before any is used again. Half of the Sends may lie unsignalled: with
 * two, every other one would cost a completion even if there is one at a time.
 */
#define SENDS_ENOUGH	8

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
	send->work.conn = conn;
	return send;
}

/**
 * rpcrdma_send_init - before the first Send
 * @conn: the connection
 */
void rpcrdma_send_init(struct rpcrdma_conn *conn)
{
	spin_lock_init(&conn->send_lock);
	INIT_LIST_HEAD(&conn->sends_free);
}

/**
 * rpcrdma_send_create - make the first Sends of a connection
 * @conn: the connection, which has a queue pair and no Sends
 * @size: octets that it may send inline
 *
 * Context: process.
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
		list_add(&send->list, &conn->sends_free);
		conn->num_sends_free++;
		conn->num_sends++;
		spin_unlock_bh(&conn->send_lock);
	}
	return 0;
}

static void send_destroy(struct rpcrdma_conn *conn, struct rpcrdma_send *send)
{
	ib_dma_unmap_single(send_device(conn), send->sge[0].addr, send->size, DMA_TO_DEVICE);
	kfree(send->data);
	kfree(send);
}

/*
 * Count one more, if there may be. What does not exist yet must not count: of
 * those that are counted half may lie unsignalled.
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
 * The caller may be a task that swaps out and has the reserves: there are
 * better uses for them than more Sends.
 */
static struct rpcrdma_send *send_make(struct rpcrdma_conn *conn, unsigned int limit)
{
	struct rpcrdma_send *send;

	limit = min(limit, conn->depths.sends);
	if (READ_ONCE(conn->num_sends) >= limit)
		return NULL;
	send = send_alloc(conn, GFP_NOWAIT | __GFP_NOWARN | __GFP_NOMEMALLOC);
	if (!send || send_count(conn, limit))
		return send;
	/* Other threads were faster. */
	send_destroy(conn, send);
	return NULL;
}

/* The last free Send may have come back while none could be made. */
static struct rpcrdma_send *send_take(struct rpcrdma_conn *conn, bool wanted)
{
	struct rpcrdma_send *send;

	spin_lock_bh(&conn->send_lock);
	send = list_first_entry_or_null(&conn->sends_free, struct rpcrdma_send, list);
	if (send) {
		list_del(&send->list);
		WRITE_ONCE(conn->num_sends_free, conn->num_sends_free - 1);
	} else if (wanted) {
		conn->send_wanted = true;
	}
	spin_unlock_bh(&conn->send_lock);
	return send;
}

/**
 * rpcrdma_send_get - begin a Send
 * @conn: the connection
 *
 * The caller owns the Send until rpcrdma_send_put(). It fills in @data, @len,
 * @work.done and @private.
 *
 * Context: entered; any but hard interrupts.
 * Return: the Send; or NULL if the connection is not established, or if all
 * are in use, and then ->writable follows when one comes back.
 */
struct rpcrdma_send *rpcrdma_send_get(struct rpcrdma_conn *conn)
{
	struct rpcrdma_send *send;

	if (!rpcrdma_conn_established(conn))
		return NULL;
	send = send_make(conn, SENDS_ENOUGH);
	if (!send)
		send = send_take(conn, false);
	if (!send)
		send = send_make(conn, conn->depths.sends);
	if (!send)
		send = send_take(conn, true);
	if (!send)
		return NULL;

	send->wr.next = NULL;
	send->wr.opcode = IB_WR_SEND;
	send->wr.send_flags = 0;
	send->len = 0;
	send->private = NULL;
	return send;
}

/**
 * rpcrdma_send_add_page - let a Send gather a part of a page
 * @send: the Send
 * @page: the page, which has to stay until the Send's work is done
 * @offset: octets into @page; @offset + @len may go beyond the page only if
 *	it is part of a larger folio
 * @len: octets; none is fine, too
 *
 * Context: as rpcrdma_send_get().
 * Return: 0; -ENOSPC: the Send has all elements that the device allows;
 * -ENOBUFS: the page could not be mapped, which may be for lack of room.
 */
int rpcrdma_send_add_page(struct rpcrdma_send *send, struct page *page,
			  unsigned int offset, unsigned int len)
{
	struct rpcrdma_conn *conn = send->work.conn;
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

/*
 * siw has TCP take an unsignalled Send of a page or more by reference, and
 * counts it as done while the peer may not have read it: another that is
 * signalled would have its buffer used again too early. What is gathered needs
 * no look: who wants the pages back has the Send signalled in any case.
 */
static bool send_wants_signal(const struct rpcrdma_send *send)
{
	const struct rpcrdma_conn *conn = send->work.conn;

	return send->len >= PAGE_SIZE && rdma_protocol_iwarp(send_device(conn), conn->port);
}

static int send_post(struct rpcrdma_send *send, struct ib_send_wr *first,
		     bool signalled, bool later)
{
	struct rpcrdma_conn *conn = send->work.conn;

	send->sge[0].length = send->len;
	send->wr.num_sge = send->num_sge;
	ib_dma_sync_single_for_device(send_device(conn), send->sge[0].addr,
				      send->len, DMA_TO_DEVICE);
	if (!first)
		first = &send->wr;
	signalled = signalled || send_wants_signal(send);
	return later ? rpcrdma_work_post_later(conn, &send->work, first,
					       &send->wr, signalled) :
		       rpcrdma_work_post(conn, &send->work, first, &send->wr,
					 signalled);
}

/**
 * rpcrdma_send_post - post a Send and what has to go before it
 * @send: the Send
 * @first: the first of the work requests before the Send, which end by
 *	referring to &@send->wr; NULL if there are none
 * @signalled: ask the device to report when it is done
 *
 * Context: as rpcrdma_send_get().
 * Return: as rpcrdma_work_post(). When it is not 0, the caller still owns
 * @send and may try again.
 */
int rpcrdma_send_post(struct rpcrdma_send *send, struct ib_send_wr *first, bool signalled)
{
	return send_post(send, first, signalled, false);
}

/**
 * rpcrdma_send_post_later - post a Send as soon as there is room
 * @send: as for rpcrdma_send_post(), like all the rest
 * @first: ""
 * @signalled: ""
 *
 * Context: as rpcrdma_send_get().
 * Return: as rpcrdma_work_post_later(). When it is not 0, the caller still owns
 * @send.
 */
int rpcrdma_send_post_later(struct rpcrdma_send *send, struct ib_send_wr *first,
			    bool signalled)
{
	return send_post(send, first, signalled, true);
}

static unsigned int send_num_left(const struct rpcrdma_conn *conn)
{
	return conn->depths.sends - READ_ONCE(conn->num_sends) +
	       READ_ONCE(conn->num_sends_free);
}

/**
 * rpcrdma_send_left - whether there are more Sends to be had than some
 * @conn: the connection
 * @count: of these, by others. If memory is short they may find fewer.
 *
 * Context: any but hard interrupts.
 * Return: false if not; then ->writable follows when one has come back.
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

static void send_unmap_pages(struct rpcrdma_send *send)
{
	struct ib_device *device = send_device(send->work.conn);

	while (send->num_sge > 1) {
		struct ib_sge *sge = &send->sge[--send->num_sge];

		ib_dma_unmap_page(device, sge->addr, sge->length, DMA_TO_DEVICE);
	}
}

/**
 * rpcrdma_send_put - give back a Send that is done or was never posted
 * @send: the Send
 *
 * Context: as rpcrdma_send_get(): one that was never posted goes back before
 * its owner leaves, the others in @work.done.
 */
void rpcrdma_send_put(struct rpcrdma_send *send)
{
	struct rpcrdma_conn *conn = send->work.conn;
	bool wanted;

	send_unmap_pages(send);
	spin_lock_bh(&conn->send_lock);
	list_add(&send->list, &conn->sends_free);
	WRITE_ONCE(conn->num_sends_free, conn->num_sends_free + 1);
	wanted = conn->send_wanted;
	conn->send_wanted = false;
	spin_unlock_bh(&conn->send_lock);
	if (wanted)
		queue_work(rpcrdma_wq, &conn->writable_work);
}

/**
 * rpcrdma_send_done - the @done of a Send that needs nothing but its buffer
 * @work: the Send's
 * @status: how it ended, which does not matter
 *
 * Context: ->done.
 */
void rpcrdma_send_done(struct rpcrdma_work *work, int status)
{
	rpcrdma_send_put(container_of(work, struct rpcrdma_send, work));
}

/**
 * rpcrdma_send_destroy - unmap and free all Sends
 * @conn: the connection; nobody can enter it any more, so all have come back
 *
 * Context: process, the teardown's.
 */
void rpcrdma_send_destroy(struct rpcrdma_conn *conn)
{
	struct rpcrdma_send *send, *next;

	list_for_each_entry_safe(send, next, &conn->sends_free, list) {
		send_destroy(conn, send);
		conn->num_sends--;
		conn->num_sends_free--;
	}
	WARN_ON_ONCE(conn->num_sends);
}
