// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Resources that a role may still own when its connection ends: received messages and
 * registrations.
 *
 * The removal of a device cannot wait for a role. So the teardown takes the hardware's
 * part of every resource away (mappings and keys). A resource that no role owns is
 * freed. One that a role owns becomes an orphan: plain memory, which its owner frees
 * by giving it back.
 */
#include <linux/rcupdate.h>

#include "conn_private.h"

/**
 * rpcrdma_resource_enter - rpcrdma_conn_enter() for the owner of a resource
 * @conn: the connection of @resource; it may be freed already
 * @resource: the resource, owned by the caller
 *
 * The caller needs no reference to @conn. The teardown makes orphans of all owned
 * resources before it drops its reference, and the connection is freed by RCU. So if a
 * resource is not an orphan, its connection exists within this RCU section.
 *
 * Context: any.
 * Return: true if the caller has entered, and has to call rpcrdma_conn_leave().
 */
bool rpcrdma_resource_enter(struct rpcrdma_conn *conn, struct rpcrdma_resource *resource)
{
	bool entered;

	rcu_read_lock();
	/*
	 * Pairs with rpcrdma_resource_abandon(). The second half is rpcrdma_conn_enter(),
	 * inline because this runs for each message.
	 */
	entered = !smp_load_acquire(&resource->orphan) &&
		  percpu_ref_tryget_live(&conn->users);
	rcu_read_unlock();
	return entered;
}

/**
 * rpcrdma_resource_drop - give back a resource during or after the teardown
 * @conn: the connection of @resource; it may be freed already
 * @resource: the resource, owned by the caller; rpcrdma_resource_enter() has failed
 * @undo: called with resource_lock held if @resource is not an orphan yet, for what
 *	cannot wait for the teardown; the device is still there. May be NULL.
 *
 * Context: any but hard interrupts.
 * Return: true if the caller has to free @resource; false if the teardown does.
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
 * rpcrdma_resource_abandon - free or orphan all resources of one kind
 * @conn: the connection, which no thread can enter
 * @all: the list of resources, by all; the hardware's part of each is gone
 * @release: frees the memory of a resource
 *
 * Context: the teardown.
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
		/* From now on only the owner uses it. */
		smp_store_release(&resource->orphan, true);
	}
	spin_unlock_bh(&conn->resource_lock);

	list_for_each_entry_safe(resource, next, &idle, all)
		release(resource);
}
