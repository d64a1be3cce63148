// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Registrations: memory that the peer may reach until it is invalidated. They are made
 * by fast registration work requests.
 *
 * A connection that rests has none, and a work item makes a few when they run short. A role
 * gives a registration back invalidated, so any idle one can be used. When a connection
 * ends, the peer can reach none, and the teardown deregisters all.
 *
 * Eight bits of a key change with each use. The registration that was idle longest is
 * used next, so that a key comes back as late as possible.
 */
#include <linux/slab.h>

#include "conn_private.h"
#include "../trace.h"

/* If fewer are idle, more are made. */
#define MRS_LOW		2
/* How many are made at a time */
#define MRS_STEP	8
/* How long to wait before trying again, if none could be made */
#define MRS_RETRY	(HZ / 10)

static void mr_release(struct rpcrdma_resource *resource)
{
	struct rpcrdma_mr *mr = container_of(resource, struct rpcrdma_mr, resource);

	rpcrdma_object_freed(RPCRDMA_OBJECT_MR);
	kfree(mr->sgl);
	kfree(mr);
}

/* Free an idle one. */
static void mr_free(struct rpcrdma_conn *conn, struct rpcrdma_pooled *entry)
{
	struct rpcrdma_mr *mr = container_of(entry, struct rpcrdma_mr, pooled);

	spin_lock_bh(&conn->mrs.lock);
	list_del(&mr->resource.all);
	spin_unlock_bh(&conn->mrs.lock);
	ib_dereg_mr(mr->mr);
	mr_release(&mr->resource);
}

static struct rpcrdma_mr *mr_alloc(struct rpcrdma_conn *conn)
{
	const struct rpcrdma_device *device = conn->device;
	int node = ibdev_to_node(device->ib);
	struct rpcrdma_mr *mr;

	mr = kzalloc_node(sizeof(*mr), GFP_KERNEL, node);
	if (!mr)
		return NULL;
	rpcrdma_object_made(RPCRDMA_OBJECT_MR);
	mr->sgl = kmalloc_array_node(device->max_mr_pages, sizeof(*mr->sgl), GFP_KERNEL, node);
	if (!mr->sgl)
		goto err_free;
	sg_init_table(mr->sgl, device->max_mr_pages);
	mr->mr = ib_alloc_mr(conn->pd, device->mr_type, device->max_mr_pages);
	if (IS_ERR(mr->mr))
		goto err_free;
	mr->max_sg = device->max_mr_pages;
	mr->conn = conn;
	return mr;

err_free:
	mr_release(&mr->resource);
	return NULL;
}

static void mr_unmap(struct rpcrdma_mr *mr)
{
	if (!mr->mapped)
		return;
	trace_rpcrdma_mr_unmap(mr->conn, mr);
	ib_dma_unmap_sg(mr->conn->device->ib, mr->sgl, mr->num_sg, mr->direction);
	mr->mapped = false;
}

/*
 * Make MRS_STEP more if few are idle or a role waits. A role may wait while many are idle: it
 * needs more than exist for one Call, and has given back what it took.
 * Return: how many were made.
 */
static unsigned int mr_make_more(struct rpcrdma_conn *conn)
{
	struct rpcrdma_pool *pool = &conn->mrs;
	struct rpcrdma_mr *mr;
	unsigned int added;

	if (!READ_ONCE(pool->wanted) && READ_ONCE(pool->num_idle) >= MRS_LOW)
		return 0;
	for (added = 0; added < MRS_STEP; added++) {
		mr = mr_alloc(conn);
		if (!mr)
			break;
		spin_lock_bh(&pool->lock);
		list_add(&mr->resource.all, &conn->all_mrs);
		WRITE_ONCE(pool->num, pool->num + 1);
		spin_unlock_bh(&pool->lock);
		rpcrdma_pool_put(pool, &mr->pooled, true);
	}
	if (conn->config.mrs_made)
		WRITE_ONCE(*conn->config.mrs_made, *conn->config.mrs_made + added);
	return added;
}

static void mr_pool_work(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(to_delayed_work(work), struct rpcrdma_conn,
						 mr_work);
	struct rpcrdma_pool *pool = &conn->mrs;
	unsigned int added, flags;

	flags = rpcrdma_memalloc_save(conn);
	added = mr_make_more(conn);
	rpcrdma_memalloc_restore(flags);

	spin_lock_bh(&pool->lock);
	if (pool->wanted && !added)
		queue_delayed_work(rpcrdma_wq, &conn->mr_work, MRS_RETRY);
	if (pool->wanted && pool->num_idle) {
		pool->wanted = false;
		queue_work(rpcrdma_wq, &conn->writable_work);
	}
	spin_unlock_bh(&pool->lock);
}

/**
 * rpcrdma_mr_get - take a registration
 * @conn: the connection
 *
 * Context: entered.
 * Return: the registration, empty; or NULL if the connection is not established or no
 * registration is idle. If none is idle, ->writable follows when there are some again.
 */
struct rpcrdma_mr *rpcrdma_mr_get(struct rpcrdma_conn *conn)
{
	struct rpcrdma_pooled *entry;
	struct rpcrdma_mr *mr;

	if (!rpcrdma_conn_established(conn))
		return NULL;
	entry = rpcrdma_pool_take(&conn->mrs);
	/* Always if there was none: only mr_work calls ->writable, even if some came back. */
	if (!entry || READ_ONCE(conn->mrs.num_idle) < MRS_LOW) {
		queue_delayed_work(rpcrdma_wq, &conn->mr_work, 0);
		rpcrdma_rest_later(conn);
	}
	if (!entry)
		return NULL;

	mr = container_of(entry, struct rpcrdma_mr, pooled);
	mr->resource.held = true;
	/*
	 * Mapping may set flags in the first element, for instance that memory was bounced,
	 * even if it fails. They must not reach the next mapping.
	 */
	memset(mr->sgl, 0, sizeof(*mr->sgl));
	if (mr->max_sg == 1)
		sg_mark_end(mr->sgl);
	mr->num_sg = 0;
	return mr;
}

/*
 * Return: how many of @len octets the registration can take. Without SG_GAPS, ranges must
 * meet at page boundaries. A range that is not a whole page does not do so after it was
 * bounced. So if memory is bounced, a registration has either whole pages or one range.
 */
static unsigned int mr_may_add(const struct rpcrdma_mr *mr, unsigned int offset, unsigned int len)
{
	bool bounced = mr->conn->bounced;
	const struct scatterlist *last;

	if (mr->conn->device->mr_type == IB_MR_TYPE_SG_GAPS)
		return len;
	if (mr->num_sg) {
		last = &mr->sgl[mr->num_sg - 1];
		if (offset || last->offset + last->length != PAGE_SIZE)
			return 0;
		if (bounced && (last->offset || len < PAGE_SIZE))
			return 0;
	}
	if (!bounced)
		return len;
	return offset || len < PAGE_SIZE ? min_t(unsigned int, len, PAGE_SIZE - offset) :
	       round_down(len, PAGE_SIZE);
}

/**
 * rpcrdma_mr_add - append memory to a registration that is not yet mapped
 * @mr: the registration, owned by the caller
 * @pages: the pages of the memory
 * @offset: octets into the first page, less than a page
 * @len: octets, in as many of @pages as they take
 *
 * Without SG_GAPS only the first range may begin within a page, and only the last may
 * end within one. If memory is bounced, a range that does either must be the only one.
 *
 * Return: how many octets were appended. If less than @len, the registration takes no
 * more.
 */
unsigned int rpcrdma_mr_add(struct rpcrdma_mr *mr, struct page **pages,
			    unsigned int offset, unsigned int len)
{
	unsigned int left, part;

	len = mr_may_add(mr, offset, len);
	for (left = len; left && mr->num_sg < mr->max_sg; left -= part) {
		part = min_t(unsigned int, left, PAGE_SIZE - offset);
		sg_set_page(&mr->sgl[mr->num_sg++], *pages++, part, offset);
		offset = 0;
	}
	return len - left;
}

/**
 * rpcrdma_mr_map - map the memory of a registration and prepare its work request
 * @mr: the registration, owned by the caller, with memory in it
 * @direction: DMA_TO_DEVICE if the peer will read, DMA_FROM_DEVICE if it will write
 *
 * Afterwards the caller may post @mr->reg_wr, and after it a Send that offers
 * @mr->segment. If @mr->reg_wr is never posted, the registration needs no invalidation.
 *
 * Context: entered; may sleep. The caller makes sure that no other rpcrdma_mr_map() or
 * rpcrdma_mr_add() of this connection runs at the same time.
 * Return: 0. -ENOBUFS: not now; the caller may give back its registrations, and later
 * add the same memory to others. -EIO: the memory can never be registered.
 */
int rpcrdma_mr_map(struct rpcrdma_mr *mr, enum dma_data_direction direction)
{
	struct sg_table table = { .sgl = mr->sgl, .orig_nents = mr->num_sg };
	struct rpcrdma_conn *conn = mr->conn;
	int ret;

	mr->direction = direction;
	ret = ib_dma_map_sgtable_attrs(conn->device->ib, &table, direction, 0);
	if (ret)
		return ret == -EINVAL || ret == -EREMOTEIO ? -EIO : -ENOBUFS;
	mr->mapped = true;
	/* A new key for each use, because a peer may still use an earlier one. */
	ib_update_fast_reg_key(mr->mr, ib_inc_rkey(mr->mr->rkey));
	ret = ib_map_mr_sg(mr->mr, mr->sgl, table.nents, NULL, PAGE_SIZE);
	if (ret < 0)
		return -EIO;
	if (ret < table.nents) {
		/*
		 * All limits of the device were kept, so ranges were bounced, and do not meet
		 * at page boundaries any more. From now on those that are not whole pages are
		 * registered apart. If they were already, the memory cannot be registered.
		 */
		if (conn->bounced || mr->num_sg == 1 || conn->device->mr_type == IB_MR_TYPE_SG_GAPS)
			return -EIO;
		conn->bounced = true;
		return -ENOBUFS;
	}

	mr->reg_wr = (struct ib_reg_wr){
		.wr.opcode = IB_WR_REG_MR,
		.wr.wr_cqe = &conn->error_cqe,
		.mr = mr->mr,
		.key = mr->mr->rkey,
		.access = direction == DMA_TO_DEVICE ? IB_ACCESS_REMOTE_READ :
			  IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE,
	};
	mr->segment.handle = mr->mr->rkey;
	mr->segment.length = mr->mr->length;
	mr->segment.offset = mr->mr->iova;
	trace_rpcrdma_mr_map(conn, mr);
	return 0;
}

/**
 * rpcrdma_mr_invalidate - take registrations away from the peer
 * @conn: the connection of the registrations
 * @invalidation: the registrations, at least one, and @chain.done; the list is the
 *	connection's until then
 *
 * Without space in the send queue, the invalidations wait for it and are posted before
 * anything else. If they cannot be posted at all, the connection is closed.
 *
 * Return: 0: @invalidation->chain.done will be called once. -ENOTCONN: it will not be
 * called, and the peer may reach the memory until ->closed.
 */
int rpcrdma_mr_invalidate(struct rpcrdma_conn *conn, struct rpcrdma_invalidation *invalidation)
{
	struct ib_send_wr *first = NULL, *last = NULL, *wr;
	struct rpcrdma_mr *mr;
	int err;

	list_for_each_entry(mr, &invalidation->mrs, list) {
		trace_rpcrdma_mr_invalidate(conn, mr);
		wr = &mr->inv_wr;
		*wr = (struct ib_send_wr){
			.opcode = IB_WR_LOCAL_INV,
			.ex.invalidate_rkey = mr->segment.handle,
			.wr_cqe = &conn->error_cqe,
		};
		if (last)
			last->next = wr;
		else
			first = wr;
		last = wr;
	}
	if (WARN_ON_ONCE(!last))
		return -ENOTCONN;
	err = rpcrdma_chain_post(conn, &invalidation->chain, first, last, RPCRDMA_POST_SIGNALLED |
				 RPCRDMA_POST_LATER | RPCRDMA_POST_DONE_IN_WQ, NULL);
	if (err)
		rpcrdma_conn_close(conn, err);
	return err ? -ENOTCONN : 0;
}

/**
 * rpcrdma_mr_unmap - unmap the memory of a registration that the caller still owns
 * @mr: the registration, owned by the caller, and invalidated as for rpcrdma_mr_put()
 *
 * For a registration whose key the peer may still use: no other RPC gets it until the
 * caller calls rpcrdma_mr_put().
 *
 * Return: true; or false if the connection is ending: then nobody can use the key, and
 * rpcrdma_mr_put() unmaps the memory.
 */
bool rpcrdma_mr_unmap(struct rpcrdma_mr *mr)
{
	if (!rpcrdma_conn_enter(mr->conn))
		return false;
	mr_unmap(mr);
	rpcrdma_conn_leave(mr->conn);
	return true;
}

/**
 * rpcrdma_mr_put - give back a registration
 * @mr: the registration, owned by the caller. Either end has invalidated it, or it was
 *	never posted, or its connection is closed.
 *
 * The memory is unmapped when this returns. If the connection has ended, the
 * registration is freed.
 */
void rpcrdma_mr_put(struct rpcrdma_mr *mr)
{
	struct rpcrdma_conn *conn = mr->conn;

	if (!rpcrdma_conn_enter(conn)) {
		/* The owner reuses the memory at once, maybe before the teardown comes to it. */
		spin_lock_bh(&conn->resource_lock);
		mr_unmap(mr);
		spin_unlock_bh(&conn->resource_lock);
		rpcrdma_resource_drop(conn, &mr->resource, mr_release);
		return;
	}
	mr_unmap(mr);
	mr->resource.held = false;
	rpcrdma_pool_put(&conn->mrs, &mr->pooled, true);
	rpcrdma_conn_leave(conn);
}

/**
 * rpcrdma_sg_keep - take references, for good, to pages that a stuck device may reach
 * @sgl: the pages
 * @num: elements
 *
 * Pages of kmalloc() may have no reference count; their owners must not free them.
 */
void rpcrdma_sg_keep(struct scatterlist *sgl, unsigned int num)
{
	struct scatterlist *sg;
	unsigned long pfn, end;
	unsigned int i;

	for_each_sg(sgl, sg, num, i) {
		pfn = page_to_pfn(sg_page(sg));
		end = pfn + DIV_ROUND_UP(sg->offset + sg->length, PAGE_SIZE);
		while (pfn < end)
			folio_try_get(page_folio(pfn_to_page(pfn++)));
	}
}

/*
 * In the teardown: unmap and deregister all, and free those that no role owns. If the connection is
 * stuck, keep what the device may reach by them instead.
 */
void rpcrdma_mr_destroy(struct rpcrdma_conn *conn)
{
	struct rpcrdma_mr *mr;

	cancel_delayed_work_sync(&conn->mr_work);
	list_for_each_entry(mr, &conn->all_mrs, resource.all) {
		/* Its owner may be in rpcrdma_mr_put(). */
		spin_lock_bh(&conn->resource_lock);
		if (!conn->stuck)
			mr_unmap(mr);
		else if (mr->mapped)
			rpcrdma_sg_keep(mr->sgl, mr->num_sg);
		mr->mapped = false;
		spin_unlock_bh(&conn->resource_lock);
		if (!conn->stuck)
			ib_dereg_mr(mr->mr);
	}
	if (!conn->stuck)
		rpcrdma_resource_abandon(conn, &conn->all_mrs, mr_release);
}

void rpcrdma_mr_init(struct rpcrdma_conn *conn)
{
	rpcrdma_pool_init(&conn->mrs, 0, mr_free);
	INIT_LIST_HEAD(&conn->all_mrs);
	INIT_DELAYED_WORK(&conn->mr_work, mr_pool_work);
}
