// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Resources that a role may still own when its connection ends: received messages and
 * registrations.
 *
 * The removal of a device cannot wait for a role. So the teardown takes the hardware's part of
 * every resource away: mappings and keys. It frees those that no role owns. One that a role owns
 * becomes an orphan: plain memory with a reference to the connection. To give it back frees both.
 */
#include "conn_private.h"

/* The owner gives a resource back, and rpcrdma_conn_enter() has failed. */
void rpcrdma_resource_drop(struct rpcrdma_conn *conn, struct rpcrdma_resource *resource,
			   void (*release)(struct rpcrdma_resource *resource))
{
	bool orphan;

	spin_lock_bh(&conn->resource_lock);
	orphan = resource->orphan;
	resource->held = false;
	spin_unlock_bh(&conn->resource_lock);
	if (!orphan)	/* the teardown frees it */
		return;
	release(resource);
	rpcrdma_conn_put(conn);
}

/*
 * The teardown frees or orphans all resources of one kind. No thread can enter, and the
 * hardware's part of each is gone.
 */
void rpcrdma_resource_abandon(struct rpcrdma_conn *conn, struct list_head *all,
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
		rpcrdma_conn_get(conn);
		resource->orphan = true;
	}
	spin_unlock_bh(&conn->resource_lock);

	list_for_each_entry_safe(resource, next, &idle, all)
		release(resource);
}
