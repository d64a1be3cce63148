// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Pools of what a connection makes on demand and keeps: Sends and registrations.
 *
 * A server may have thousands of clients that did some I/O and then do nothing for hours. So
 * a delayed work frees what has been idle since it ran before, and lets the role do the same.
 * Making more queues it, and it queues itself until only what a connection keeps is left. That
 * may take long: a server's Sends without a signal are idle only when a later one is done.
 */
#include "conn_private.h"

/* What was idle for a whole period is freed at its end. */
#define REST_PERIOD	(30 * HZ)

/* Take an idle entry. NULL: there is none, and @wanted is set. */
struct rpcrdma_pooled *rpcrdma_pool_take(struct rpcrdma_pool *pool)
{
	struct rpcrdma_pooled *entry;

	spin_lock_bh(&pool->lock);
	entry = list_first_entry_or_null(&pool->idle, struct rpcrdma_pooled, list);
	if (entry) {
		list_del(&entry->list);
		WRITE_ONCE(pool->num_idle, pool->num_idle - 1);
		entry->rested = false;
	} else {
		WRITE_ONCE(pool->wanted, true);
	}
	spin_unlock_bh(&pool->lock);
	return entry;
}

/* With @last, all others are taken before it. */
void rpcrdma_pool_put(struct rpcrdma_pool *pool, struct rpcrdma_pooled *entry, bool last)
{
	spin_lock_bh(&pool->lock);
	if (last)
		list_add_tail(&entry->list, &pool->idle);
	else
		list_add(&entry->list, &pool->idle);
	WRITE_ONCE(pool->num_idle, pool->num_idle + 1);
	spin_unlock_bh(&pool->lock);
}

/*
 * Free what was idle since this ran last, but keep @kept. Return: true if more than these are
 * left, idle or in use.
 */
bool rpcrdma_pool_rest(struct rpcrdma_conn *conn, struct rpcrdma_pool *pool)
{
	struct rpcrdma_pooled *entry, *next;
	LIST_HEAD(rested);

	spin_lock_bh(&pool->lock);
	list_for_each_entry_safe(entry, next, &pool->idle, list) {
		if (entry->rested && pool->num_idle > pool->kept) {
			list_move(&entry->list, &rested);
			WRITE_ONCE(pool->num_idle, pool->num_idle - 1);
			WRITE_ONCE(pool->num, pool->num - 1);
		}
		entry->rested = true;
	}
	spin_unlock_bh(&pool->lock);

	list_for_each_entry_safe(entry, next, &rested, list)
		pool->free(conn, entry);
	return READ_ONCE(pool->num) > pool->kept;
}

/* The work of conn->rest_work */
void rpcrdma_pool_rest_work(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(to_delayed_work(work), struct rpcrdma_conn,
						 rest_work);
	unsigned int flags;
	bool left;

	if (!rpcrdma_conn_enter(conn))
		return;
	flags = rpcrdma_memalloc_save(conn);
	left = rpcrdma_pool_rest(conn, &conn->sends);
	/* Without memory swap could not make registrations again. */
	left |= rpcrdma_conn_swaps(conn) || rpcrdma_pool_rest(conn, &conn->mrs);
	if (conn->ops->rest)
		left |= conn->ops->rest(conn);
	rpcrdma_memalloc_restore(flags);
	if (left)
		rpcrdma_rest_later(conn);
	rpcrdma_conn_leave(conn);
}

/**
 * rpcrdma_rest_later - look later whether something is idle
 * @conn: the connection, for which something is made now
 *
 * Context: entered.
 */
void rpcrdma_rest_later(struct rpcrdma_conn *conn)
{
	queue_delayed_work(rpcrdma_wq, &conn->rest_work, REST_PERIOD);
}

void rpcrdma_pool_init(struct rpcrdma_pool *pool, unsigned int kept,
		       void (*free)(struct rpcrdma_conn *conn, struct rpcrdma_pooled *entry))
{
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->idle);
	pool->kept = kept;
	pool->free = free;
}
