// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What a role may own when its connection goes: messages and registrations.
 *
 * A device that is being removed cannot wait for a role, so the teardown takes
 * the hardware's part of each of these (mappings, keys) away, owned or not,
 * and leaves plain memory. The owner frees that when it gives it back.
 */
#include <linux/rcupdate.h>

#include "conn_private.h"

/**
 * rpcrdma_resource_enter - as rpcrdma_conn_enter(), by the owner of something
 * @conn: its connection, which may be gone already
 * @resource: what the caller owns
 *
 * The memory of a connection is freed by RCU and after it has made orphans of
 * all that belongs to it, so what is not an orphan still has a connection.
 *
 * Context: any.
 * Return: whether the caller has to leave.
 */
bool rpcrdma_resource_enter(struct rpcrdma_conn *conn, struct rpcrdma_resource *resource)
{
	bool entered;

	rcu_read_lock();
	/*
	 * Pairs with rpcrdma_resource_abandon(). Then as rpcrdma_conn_enter(), in
	 * line because this runs for each message that is given back.
	 */
	entered = !smp_load_acquire(&resource->orphan) &&
		  percpu_ref_tryget_live(&conn->users);
	rcu_read_unlock();
	return entered;
}

/**
 * rpcrdma_resource_drop - give up what belongs to a connection in its teardown
 * @conn: its connection, which may be gone already
 * @resource: what the caller owns and rpcrdma_resource_enter() failed for
 * @undo: what cannot wait for the teardown; called under resource_lock if that
 *	has not done it, while the device is still there. May be NULL.
 *
 * Context: any.
 * Return: whether the caller has to free it; otherwise the teardown does.
 */
bool rpcrdma_resource_drop(struct rpcrdma_conn *conn,
			   struct rpcrdma_resource *resource,
			   void (*undo)(struct rpcrdma_resource *resource))
{
	bool orphan;

	rcu_read_lock();
	/* Pairs with rpcrdma_resource_abandon(). */
	orphan = smp_load_acquire(&resource->orphan);
	if (!orphan) {
		spin_lock_bh(&conn->resource_lock);
		orphan = resource->orphan;
		if (!orphan && undo)
			undo(resource);
		resource->held = false;
		spin_unlock_bh(&conn->resource_lock);
	}
	rcu_read_unlock();
	return orphan;
}

/**
 * rpcrdma_resource_abandon - the teardown's last word on things of one kind
 * @conn: the connection; nobody can enter it any more
 * @all: the list of them, by all
 * @release: frees the memory of one
 *
 * Context: process.
 */
void
rpcrdma_resource_abandon(struct rpcrdma_conn *conn, struct list_head *all,
			 void (*release)(struct rpcrdma_resource *resource))
{
	struct rpcrdma_resource *resource, *next;
	LIST_HEAD(idle);

	spin_lock_bh(&conn->resource_lock);
	list_for_each_entry_safe(resource, next, all, all) {
		if (!resource->held) {
			list_move(&resource->all, &idle);
			continue;
		}
		list_del(&resource->all);
		/* From here on it is the owner's alone. */
		smp_store_release(&resource->orphan, true);
	}
	spin_unlock_bh(&conn->resource_lock);

	list_for_each_entry_safe(resource, next, &idle, all)
		release(resource);
}
