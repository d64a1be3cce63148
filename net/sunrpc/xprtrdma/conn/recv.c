// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Receives: a buffer for each message that the peer may send.
 *
 * A connection has one Receive for each of these messages, and one fewer than a batch more.
 * Receives that come back are reposted a batch at a time, with one doorbell. So fewer than a
 * batch are idle, and one is posted for each message that the peer may still send.
 *
 * A server's connections may share Receives instead, see shared.c: then a connection has only
 * those that completed on it and are not given back.
 *
 * Receives are most of the memory of a connection, so it starts with few. A server makes more
 * before it grants more, a client before it has more Calls in flight. When the peer may send fewer
 * messages, a Receive that comes back is freed: those that are posted cannot be taken back.
 */
#include <linux/slab.h>

#include "conn_private.h"
#include "../trace.h"

/*
 * How many Receives are reposted at a time. The send queue posts as many chains in a row without
 * a signal.
 */
unsigned int rpcrdma_recv_batch(unsigned int messages)
{
	return clamp(messages / 4, 1U, 16U);
}

static void recv_release(struct rpcrdma_resource *resource)
{
	struct rpcrdma_recv *recv = container_of(resource, struct rpcrdma_recv, resource);

	rpcrdma_object_freed(RPCRDMA_OBJECT_RECV);
	kfree(recv->data);
	kfree(recv);
}

/*
 * A message was synced when it arrived, and its owner may have changed it in place since. If the
 * memory is bounced, another sync would put back what came over the wire. ib_verbs.h has no
 * function that unmaps without one.
 */
static void recv_unmap(const struct rpcrdma_recv *recv, struct ib_device *ib)
{
	if (!ib_uses_virt_dma(ib))
		dma_unmap_single_attrs(ib->dma_device, recv->sge.addr, recv->sge.length,
				       DMA_FROM_DEVICE, DMA_ATTR_SKIP_CPU_SYNC);
}

static void recv_completed(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv,
			   const struct ib_wc *wc)
{
	recv->resource.held = true;
	conn->recvs_taken++;
	if (unlikely(!conn->keepalive.heard))
		WRITE_ONCE(conn->keepalive.heard, true);
	/*
	 * The peer chooses the operation that completes a Receive. An RDMA Write with immediate
	 * data does, too, and its length may exceed the buffer.
	 */
	if (unlikely(wc->opcode != IB_WC_RECV || wc->byte_len > conn->recv_size)) {
		rpcrdma_conn_close(conn, -EPROTO);
		rpcrdma_recv_put(recv);
		return;
	}

	recv->len = wc->byte_len;
	recv->invalidated = wc->wc_flags & IB_WC_WITH_INVALIDATE;
	recv->inv_handle = recv->invalidated ? wc->ex.invalidate_rkey : 0;
	trace_rpcrdma_receive(conn, recv);
	/*
	 * A client sends only after it has received the server's answer, so on a server a message
	 * establishes the connection. A client receives nothing before it has sent a Call.
	 */
	if (unlikely(!rpcrdma_conn_established(conn)) && conn->server)
		rpcrdma_conn_set_state(conn, RPCRDMA_STATE_ESTABLISHED, &conn->established_work);
	if (unlikely(!rpcrdma_conn_established(conn))) {
		rpcrdma_recv_put(recv);
		return;
	}
	ib_dma_sync_single_for_cpu(conn->device->ib, recv->sge.addr, recv->len, DMA_FROM_DEVICE);
	recv->len = rpcrdma_wire_complete_word(recv->data, recv->len);
	rpcrdma_deliver_received(conn, recv);
}

void rpcrdma_recv_free(struct rpcrdma_recv *recv, struct ib_device *ib)
{
	recv_unmap(recv, ib);
	recv_release(&recv->resource);
}

/* A Receive has completed on @conn. */
void rpcrdma_recv_done(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv, const struct ib_wc *wc)
{
	if (unlikely(!rpcrdma_conn_enter(conn)))
		return;
	if (likely(wc->status == IB_WC_SUCCESS)) {
		recv_completed(conn, recv, wc);
	} else {
		rpcrdma_conn_wc_error(conn, wc);
		/* No role owns it, so otherwise the teardown frees it. */
		if (recv->shared)
			rpcrdma_shared_put(recv);
	}
	rpcrdma_conn_leave(conn);
}

static void recv_wc(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rpcrdma_recv *recv = container_of(wc->wr_cqe, struct rpcrdma_recv, cqe);

	rpcrdma_recv_done(recv->conn, recv, wc);
}

/* The device may write to the buffers of these Receives. */
void rpcrdma_recv_sync(struct ib_device *ib, const struct ib_recv_wr *wr)
{
	for (; wr; wr = wr->next)
		ib_dma_sync_single_for_device(ib, wr->sg_list->addr, wr->sg_list->length,
					      DMA_FROM_DEVICE);
}

/* Post all idle Receives. */
static int recv_post_free_locked(struct rpcrdma_conn *conn)
{
	struct ib_recv_wr *first = conn->recvs_free;
	const struct ib_recv_wr *bad;
	int err;

	lockdep_assert_held(&conn->recv_lock);
	rpcrdma_recv_sync(conn->device->ib, first);
	conn->recvs_free = NULL;
	err = ib_post_recv(conn->qp, first, &bad);
	conn->num_recvs_free = 0;
	return err;
}

static void recv_add_free_locked(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv)
{
	lockdep_assert_held(&conn->recv_lock);
	recv->wr.next = conn->recvs_free;
	conn->recvs_free = &recv->wr;
	conn->num_recvs_free++;
}

/**
 * rpcrdma_recv_put - give back a received message
 * @recv: the message, owned by the caller
 *
 * The Receive is reposted with its batch, or freed if there are more than are needed. If the
 * connection has ended, the memory is freed. A role calls this before it gives the peer the credit
 * for another message.
 */
void rpcrdma_recv_put(struct rpcrdma_recv *recv)
{
	struct rpcrdma_conn *conn = recv->conn;
	bool surplus;
	int err = 0;

	if (!rpcrdma_conn_enter(conn)) {
		rpcrdma_resource_drop(conn, &recv->resource, recv_release);
		return;
	}
	if (recv->shared) {
		rpcrdma_shared_put(recv);
		rpcrdma_conn_leave(conn);
		return;
	}
	spin_lock_bh(&conn->recv_lock);
	recv->resource.held = false;
	conn->recvs_returned++;
	surplus = conn->num_recvs > conn->recv_most;
	if (unlikely(surplus)) {
		list_del(&recv->resource.all);
		conn->num_recvs--;
	} else {
		recv_add_free_locked(conn, recv);
	}
	/* A batch may have become smaller. */
	if (conn->num_recvs_free >= conn->recv_batch && conn->recv_open)
		err = recv_post_free_locked(conn);
	spin_unlock_bh(&conn->recv_lock);
	if (unlikely(surplus))
		rpcrdma_recv_free(recv, conn->device->ib);
	if (unlikely(err))
		rpcrdma_conn_close(conn, err);
	rpcrdma_conn_leave(conn);
}

/* Make a Receive of @size octets, for memory of @pd. */
struct rpcrdma_recv *rpcrdma_recv_alloc(struct ib_pd *pd, u32 size, gfp_t gfp)
{
	struct rpcrdma_recv *recv;

	recv = kzalloc_node(sizeof(*recv), gfp, ibdev_to_node(pd->device));
	if (!recv)
		return NULL;
	recv->data = rpcrdma_device_map_buffer(pd, &recv->sge, size, DMA_FROM_DEVICE, gfp);
	if (!recv->data) {
		kfree(recv);
		return NULL;
	}
	recv->wr.wr_cqe = &recv->cqe;
	recv->wr.sg_list = &recv->sge;
	recv->wr.num_sge = 1;
	rpcrdma_object_made(RPCRDMA_OBJECT_RECV);
	return recv;
}

void rpcrdma_recv_init(struct rpcrdma_conn *conn)
{
	spin_lock_init(&conn->recv_lock);
	INIT_LIST_HEAD(&conn->recvs);
}

/* There are Receives for so many messages of the peer, and more of them are surplus. */
static void recv_set_locked(struct rpcrdma_conn *conn, unsigned int credits, unsigned int backward)
{
	lockdep_assert_held(&conn->recv_lock);
	WRITE_ONCE(conn->recv_credits, credits);
	WRITE_ONCE(conn->recv_backward, backward);
	conn->recv_batch = rpcrdma_recv_batch(credits + backward);
	conn->recv_most = credits + backward + conn->recv_batch - 1;
}

/*
 * Make the Receives that are missing, and post them. If memory runs out, those that
 * were made stay. The teardown waits for @setup, or for the caller to leave, before it
 * frees them.
 */
static int recv_make(struct rpcrdma_conn *conn, unsigned int credits, unsigned int backward,
		     gfp_t gfp)
{
	unsigned int messages = credits + backward;
	unsigned int needed = messages + rpcrdma_recv_batch(messages) - 1;
	struct rpcrdma_recv *recv;
	int err = 0;

	lockdep_assert_held(&conn->setup);
	if (conn->shared)
		needed = 0;
	spin_lock_bh(&conn->recv_lock);
	while (conn->num_recvs < needed) {
		conn->recv_most = needed;	/* those that come back meanwhile stay */
		spin_unlock_bh(&conn->recv_lock);
		recv = rpcrdma_recv_alloc(conn->pd, conn->recv_size, gfp);
		if (!recv)
			return -ENOMEM;
		recv->conn = conn;
		recv->cqe.done = recv_wc;
		spin_lock_bh(&conn->recv_lock);
		list_add(&recv->resource.all, &conn->recvs);
		recv_add_free_locked(conn, recv);
		conn->num_recvs++;
	}
	recv_set_locked(conn, credits, backward);
	if (conn->recv_open && conn->num_recvs_free)
		err = recv_post_free_locked(conn);
	spin_unlock_bh(&conn->recv_lock);
	if (err)
		rpcrdma_conn_close(conn, err);
	return err;
}

/* Make the first Receives, of @size octets each. */
int rpcrdma_recv_create(struct rpcrdma_conn *conn, u32 size)
{
	/* The setting need not be a multiple of four, but the last word is completed. */
	conn->recv_size = round_up(size, sizeof(__be32));
	/*
	 * A server may send backward Calls at any time. Before the first it makes its own
	 * Receives, for their Replies, by rpcrdma_recv_expect().
	 */
	return recv_make(conn, RPCRDMA_FIRST_CREDITS, conn->server ? 0 : conn->backward_credits,
			 GFP_KERNEL);
}

/* Post the Receives. Before this nothing is posted. */
int rpcrdma_recv_open(struct rpcrdma_conn *conn)
{
	int err;

	spin_lock_bh(&conn->recv_lock);
	conn->recv_open = true;
	err = conn->shared ? 0 : recv_post_free_locked(conn);
	spin_unlock_bh(&conn->recv_lock);
	return err;
}

/**
 * rpcrdma_recv_expect - make Receives, so that the peer may have more messages in flight
 * @conn: the connection
 * @credits: forward messages, at most @conn->credits
 * @backward: backward messages, at most @conn->backward_credits
 *
 * A role calls this before it lets the peer send that many (RFC 8166 section 3.3.1, RFC 8167).
 *
 * Context: may sleep; not in a callback.
 * Return: 0; -ENOTCONN; or another negative errno. On an error the role must not let the
 * peer send more than before.
 */
int rpcrdma_recv_expect(struct rpcrdma_conn *conn, unsigned int credits, unsigned int backward)
{
	/*
	 * A client makes Receives while it keeps other tasks from sending, and these may have
	 * to write dirty pages. So it neither waits for memory nor takes the reserves. Those that
	 * wait for what a server's thread holds here may be what its reclaim waits for.
	 */
	gfp_t gfp = conn->server ? GFP_NOIO | __GFP_NORETRY : GFP_NOWAIT | __GFP_NOMEMALLOC;
	int err = -ENOTCONN;

	mutex_lock(&conn->setup);
	credits = max(credits, READ_ONCE(conn->recv_credits));
	backward = max(backward, READ_ONCE(conn->recv_backward));
	if (rpcrdma_conn_enter(conn)) {
		err = recv_make(conn, credits, backward, gfp | __GFP_NOWARN);
		rpcrdma_conn_leave(conn);
	}
	mutex_unlock(&conn->setup);
	return err;
}

/**
 * rpcrdma_recv_less - need Receives for fewer messages, because the peer cannot send as many
 * @conn: the connection
 * @less: so many forward messages less; fewer than @conn->recv_credits
 */
void rpcrdma_recv_less(struct rpcrdma_conn *conn, unsigned int less)
{
	spin_lock_bh(&conn->recv_lock);
	recv_set_locked(conn, conn->recv_credits - less, conn->recv_backward);
	spin_unlock_bh(&conn->recv_lock);
}

/* In the teardown: unmap all, and free those that no role owns. */
void rpcrdma_recv_destroy(struct rpcrdma_conn *conn)
{
	struct rpcrdma_recv *recv;

	if (conn->shared)
		rpcrdma_shared_lose(conn);
	list_for_each_entry(recv, &conn->recvs, resource.all)
		recv_unmap(recv, conn->device->ib);
	rpcrdma_resource_abandon(conn, &conn->recvs, recv_release);
}
