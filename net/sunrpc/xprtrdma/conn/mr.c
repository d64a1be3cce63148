// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Registrations: memory that the peer may reach until it is invalidated. They are made
 * by fast registration work requests.
 *
 * A connection starts with none. A work item makes a few when they run short. When
 * memory is short, the shrinker isolates idle ones, and the work item frees them. The
 * same happens to those that nobody has used for a while, see rest.c. A role gives a
 * registration back invalidated, so any idle one can be used. When a connection ends, the
 * peer can reach none, and the teardown deregisters all.
 *
 * Eight bits of a key change with each use. The registration that was idle longest is
 * used next, so that a key comes back as late as possible.
 */
#include <linux/shrinker.h>
#include <linux/slab.h>

#include "conn_private.h"
#include "../objects.h"
#include "../trace.h"

/* If fewer are idle, more are made. The shrinker leaves this many to each connection. */
#define MRS_LOW		2
/* How many are made at a time */
#define MRS_STEP	8
/* How long to wait before trying again, if none could be made */
#define MRS_RETRY	(HZ / 10)

static DEFINE_SPINLOCK(mr_conns_lock);	/* protects mr_conns */
static LIST_HEAD(mr_conns);		/* connections that the shrinker visits */
static atomic_long_t mrs_idle;		/* idle registrations of all connections */
struct shrinker *rpcrdma_mr_shrinker;	/* not static for the unit tests */

static void mr_release(struct rpcrdma_resource *resource)
{
	struct rpcrdma_mr *mr = container_of(resource, struct rpcrdma_mr, resource);

	rpcrdma_object_freed(RPCRDMA_OBJECT_MR);
	kfree(mr->sgl);
	kfree(mr);
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
	mr->sgl = kmalloc_array_node(device->max_mr_pages, sizeof(*mr->sgl),
				     GFP_KERNEL, node);
	if (!mr->sgl)
		goto err_free;
	sg_init_table(mr->sgl, device->max_mr_pages);
	mr->mr = ib_alloc_mr(conn->pd, device->mr_type, device->max_mr_pages);
	if (IS_ERR(mr->mr))
		goto err_free;
	mr->mr_type = device->mr_type;
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

/* The undo of rpcrdma_resource_drop(): the owner reuses the memory at once. */
static void mr_undo_locked(struct rpcrdma_resource *resource)
{
	struct rpcrdma_mr *mr = container_of(resource, struct rpcrdma_mr, resource);

	lockdep_assert_held(&mr->conn->resource_lock);
	mr_unmap(mr);
}

/*
 * Make MRS_STEP more if few are idle or a role waits. A role may wait while many are
 * idle: a Call that needs more than there are gives back those that it has taken.
 * Return: how many were made.
 */
static unsigned int mr_pool_grow(struct rpcrdma_conn *conn)
{
	struct rpcrdma_mr *mr;
	unsigned int added;

	if (!READ_ONCE(conn->mr_wanted) &&
	    (READ_ONCE(conn->mrs_rest) || READ_ONCE(conn->num_mrs_free) >= MRS_LOW))
		return 0;
	for (added = 0; added < MRS_STEP; added++) {
		mr = mr_alloc(conn);
		if (!mr)
			break;
		spin_lock_bh(&conn->mr_lock);
		list_add(&mr->resource.all, &conn->mrs);
		list_add_tail(&mr->list, &conn->mrs_free);
		conn->num_mrs++;
		conn->num_mrs_free++;
		spin_unlock_bh(&conn->mr_lock);
	}
	atomic_long_add(added, &mrs_idle);
	if (conn->config.mrs_made)
		WRITE_ONCE(*conn->config.mrs_made, *conn->config.mrs_made + added);
	return added;
}

/* Free the registrations that were isolated. Return: how many. */
static unsigned int mr_pool_shrink(struct rpcrdma_conn *conn)
{
	struct rpcrdma_mr *mr, *next;
	unsigned int removed = 0;
	LIST_HEAD(isolated);

	spin_lock_bh(&conn->mr_lock);
	list_splice_init(&conn->mrs_isolated, &isolated);
	list_for_each_entry(mr, &isolated, list)
		list_del(&mr->resource.all);
	spin_unlock_bh(&conn->mr_lock);

	list_for_each_entry_safe(mr, next, &isolated, list) {
		ib_dereg_mr(mr->mr);
		mr_release(&mr->resource);
		removed++;
	}
	return removed;
}

static void mr_pool_work(struct work_struct *work)
{
	struct rpcrdma_conn *conn = container_of(to_delayed_work(work),
						 struct rpcrdma_conn, mr_work);
	unsigned int added, removed, flags;
	bool writable;

	/* What is idle then need not be invalidated. */
	if (conn->stuck)
		return;
	flags = rpcrdma_memalloc_save(conn);
	removed = mr_pool_shrink(conn);
	added = mr_pool_grow(conn);
	rpcrdma_memalloc_restore(flags);

	spin_lock_bh(&conn->mr_lock);
	if (conn->mr_wanted && !added)
		queue_delayed_work(rpcrdma_wq, &conn->mr_work, MRS_RETRY);
	writable = conn->mr_wanted && conn->num_mrs_free;
	if (writable)
		conn->mr_wanted = false;
	trace_rpcrdma_mr_pool(conn, added, removed, conn->num_mrs_free);
	spin_unlock_bh(&conn->mr_lock);
	if (writable)
		queue_work(rpcrdma_wq, &conn->writable_work);
}

/**
 * rpcrdma_mr_create - let the shrinker visit a connection
 * @conn: the connection, which has a queue pair
 *
 * Makes no registrations: the first rpcrdma_mr_get() queues the work item for that.
 *
 * Context: process context.
 */
void rpcrdma_mr_create(struct rpcrdma_conn *conn)
{
	spin_lock(&mr_conns_lock);
	list_add_tail(&conn->mr_conns, &mr_conns);
	spin_unlock(&mr_conns_lock);
}

/*
 * Make the scatterlist empty. Mapping may set flags in the first entry, for instance that
 * memory was bounced, even if it fails. They must not reach the next mapping.
 */
static void mr_empty(struct rpcrdma_mr *mr)
{
	memset(mr->sgl, 0, sizeof(*mr->sgl));
	if (mr->max_sg == 1)
		sg_mark_end(mr->sgl);
	mr->num_sg = 0;
}

/**
 * rpcrdma_mr_get - take a registration
 * @conn: the connection
 *
 * The caller owns it until rpcrdma_mr_put().
 *
 * Context: entered; any but hard interrupts.
 * Return: the registration, empty; or NULL if the connection is not established or no
 * registration is idle. If none is idle, ->writable follows when some have been made.
 */
struct rpcrdma_mr *rpcrdma_mr_get(struct rpcrdma_conn *conn)
{
	struct rpcrdma_mr *mr;
	bool low;

	if (!rpcrdma_conn_established(conn))
		return NULL;
	spin_lock_bh(&conn->mr_lock);
	mr = list_first_entry_or_null(&conn->mrs_free, struct rpcrdma_mr, list);
	if (mr) {
		list_del_init(&mr->list);
		conn->num_mrs_free--;
		mr->rested = false;
		mr->resource.held = true;
	} else {
		conn->mr_wanted = true;
	}
	low = conn->num_mrs_free < MRS_LOW;
	if (low)
		WRITE_ONCE(conn->mrs_rest, false);
	spin_unlock_bh(&conn->mr_lock);
	if (low) {
		queue_delayed_work(rpcrdma_wq, &conn->mr_work, 0);
		rpcrdma_rest_later(conn);
	}
	if (!mr)
		return NULL;

	atomic_long_dec(&mrs_idle);
	mr_empty(mr);
	return mr;
}

/*
 * Return: how many of @len octets the registration can take. Without SG_GAPS, ranges must
 * meet at page boundaries. A range that is not a whole page does not do so after it was
 * bounced. So if memory is bounced, a registration has either whole pages or one range.
 */
static unsigned int mr_may_add(const struct rpcrdma_mr *mr, unsigned int offset,
			       unsigned int len)
{
	bool bounced = mr->conn->bounced;
	const struct scatterlist *last;

	if (mr->mr_type == IB_MR_TYPE_SG_GAPS)
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
	return offset || len < PAGE_SIZE ?
	       min_t(unsigned int, len, PAGE_SIZE - offset) :
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
 * Context: any.
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

static void mr_fill_wr(struct rpcrdma_mr *mr)
{
	bool reading = mr->direction == DMA_TO_DEVICE;

	mr->reg_wr.wr.opcode = IB_WR_REG_MR;
	mr->reg_wr.wr.wr_cqe = &mr->conn->error_cqe;
	mr->reg_wr.wr.send_flags = 0;
	mr->reg_wr.mr = mr->mr;
	mr->reg_wr.key = mr->mr->rkey;
	mr->reg_wr.access = reading ? IB_ACCESS_REMOTE_READ :
			    IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE;
	mr->segment.handle = mr->mr->rkey;
	mr->segment.length = mr->mr->length;
	mr->segment.offset = mr->mr->iova;
}

/*
 * The registration could not cover all of the memory, although all limits of the device
 * were kept. So ranges were bounced, and do not meet at page boundaries any more. From
 * now on, ranges that are not whole pages are registered apart. If this was done already,
 * the memory cannot be registered.
 */
static int mr_not_whole(struct rpcrdma_mr *mr)
{
	struct rpcrdma_conn *conn = mr->conn;

	if (conn->bounced || mr->num_sg == 1 || mr->mr_type == IB_MR_TYPE_SG_GAPS)
		return -EIO;
	conn->bounced = true;
	return -ENOBUFS;
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
	struct ib_device *device = mr->conn->device->ib;
	struct sg_table table = { .sgl = mr->sgl, .orig_nents = mr->num_sg };
	int ret;

	mr->direction = direction;
	ret = ib_dma_map_sgtable_attrs(device, &table, direction, 0);
	if (ret)
		return ret == -EINVAL || ret == -EREMOTEIO ? -EIO : -ENOBUFS;
	mr->mapped = true;
	/* A new key for each use, because a peer may still use an earlier one. */
	ib_update_fast_reg_key(mr->mr, ib_inc_rkey(mr->mr->rkey));
	ret = ib_map_mr_sg(mr->mr, mr->sgl, table.nents, NULL, PAGE_SIZE);
	if (ret < 0)
		return -EIO;
	if (ret < table.nents)
		return mr_not_whole(mr);
	mr_fill_wr(mr);
	trace_rpcrdma_mr_map(mr->conn, mr);
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
 * Context: any but hard interrupts.
 * Return: 0: @invalidation->chain.done will be called once. -ENOTCONN: it will not be
 * called, and the peer may reach the memory until ->closed.
 */
int rpcrdma_mr_invalidate(struct rpcrdma_conn *conn,
			  struct rpcrdma_invalidation *invalidation)
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
	err = rpcrdma_chain_post(conn, &invalidation->chain, first, last,
				 RPCRDMA_POST_SIGNALLED | RPCRDMA_POST_LATER, NULL);
	if (err)
		rpcrdma_conn_close(conn, err);
	return err ? -ENOTCONN : 0;
}

/**
 * rpcrdma_mr_unmap - unmap the memory of a registration, and keep the registration
 * @mr: the registration, owned by the caller, and invalidated as for rpcrdma_mr_put()
 *
 * For a registration whose key the peer may still use: no other RPC gets it until the
 * caller calls rpcrdma_mr_put().
 *
 * Context: any but hard interrupts.
 * Return: true; or false if the connection is ending: then nobody can use the key, and
 * rpcrdma_mr_put() unmaps the memory.
 */
bool rpcrdma_mr_unmap(struct rpcrdma_mr *mr)
{
	struct rpcrdma_conn *conn = mr->conn;

	if (!rpcrdma_resource_enter(conn, &mr->resource))
		return false;
	mr_unmap(mr);
	rpcrdma_conn_leave(conn);
	return true;
}

/**
 * rpcrdma_mr_put - give back a registration
 * @mr: the registration, owned by the caller. Either end has invalidated it, or it was
 *	never posted, or its connection is closed.
 *
 * The memory is unmapped when this returns. If the connection has ended, the
 * registration is freed.
 *
 * Context: any but hard interrupts; also after ->closed and after the last
 * rpcrdma_conn_put().
 */
void rpcrdma_mr_put(struct rpcrdma_mr *mr)
{
	struct rpcrdma_conn *conn = mr->conn;

	if (!rpcrdma_resource_enter(conn, &mr->resource)) {
		if (rpcrdma_resource_drop(conn, &mr->resource, mr_undo_locked))
			mr_release(&mr->resource);
		return;
	}
	mr_unmap(mr);
	spin_lock_bh(&conn->mr_lock);
	mr->resource.held = false;
	list_add_tail(&mr->list, &conn->mrs_free);
	conn->num_mrs_free++;
	spin_unlock_bh(&conn->mr_lock);
	atomic_long_inc(&mrs_idle);
	rpcrdma_conn_leave(conn);
}

/**
 * rpcrdma_sg_keep - take references, for good, to pages that a stuck device may reach
 * @sgl: the pages
 * @num: elements
 *
 * Pages of kmalloc() may have no count of references. Their owners do not free them.
 *
 * Context: any.
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

/**
 * rpcrdma_mr_keep - keep the memory that is registered, and its mappings
 * @conn: the connection, which is stuck, and which no thread can enter
 *
 * Context: the teardown.
 */
void rpcrdma_mr_keep(struct rpcrdma_conn *conn)
{
	struct rpcrdma_mr *mr;

	spin_lock_bh(&conn->mr_lock);
	list_for_each_entry(mr, &conn->mrs, resource.all) {
		/* Its owner may be in rpcrdma_resource_drop(). */
		spin_lock(&conn->resource_lock);
		if (mr->mapped)
			rpcrdma_sg_keep(mr->sgl, mr->num_sg);
		mr->mapped = false;
		spin_unlock(&conn->resource_lock);
	}
	spin_unlock_bh(&conn->mr_lock);
}

/**
 * rpcrdma_mr_destroy - unmap and deregister all, and free those that no role owns
 * @conn: the connection, which is drained and which no thread can enter
 *
 * Context: the teardown; sleeps.
 */
void rpcrdma_mr_destroy(struct rpcrdma_conn *conn)
{
	struct rpcrdma_mr *mr;

	spin_lock(&mr_conns_lock);
	list_del_init(&conn->mr_conns);
	spin_unlock(&mr_conns_lock);
	cancel_delayed_work_sync(&conn->mr_work);

	atomic_long_sub(conn->num_mrs_free, &mrs_idle);
	list_for_each_entry(mr, &conn->mrs, resource.all) {
		/* Its owner may be in rpcrdma_resource_drop(). */
		spin_lock_bh(&conn->resource_lock);
		mr_unmap(mr);
		spin_unlock_bh(&conn->resource_lock);
		if (!conn->stuck)
			ib_dereg_mr(mr->mr);
	}
	rpcrdma_resource_abandon(conn, &conn->mrs, mr_release);
}

static unsigned long mr_shrinker_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	/* The count may be too low for a moment, even below zero. */
	return max(atomic_long_read(&mrs_idle), 0L) ?: SHRINK_EMPTY;
}

static unsigned long mr_pool_isolate_locked(struct rpcrdma_conn *conn, unsigned long count,
					    unsigned int keep)
{
	struct rpcrdma_mr *mr;
	unsigned long n;

	lockdep_assert_held(&conn->mr_lock);
	for (n = 0; n < count && conn->num_mrs_free > keep; n++) {
		mr = list_first_entry(&conn->mrs_free, struct rpcrdma_mr, list);
		list_move(&mr->list, &conn->mrs_isolated);
		conn->num_mrs--;
		conn->num_mrs_free--;
	}
	return n;
}

/*
 * Only isolate registrations here. Deregistering sleeps on locks under which drivers
 * allocate, so the connection's work item does it. Connections that were visited go to
 * the end of the list.
 */
static unsigned long mr_shrinker_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	struct rpcrdma_conn *conn, *next;
	unsigned long freed = 0, n;
	LIST_HEAD(visited);

	spin_lock(&mr_conns_lock);
	list_for_each_entry_safe(conn, next, &mr_conns, mr_conns) {
		if (freed >= sc->nr_to_scan)
			break;
		list_move_tail(&conn->mr_conns, &visited);
		spin_lock_bh(&conn->mr_lock);
		n = mr_pool_isolate_locked(conn, sc->nr_to_scan - freed, MRS_LOW);
		spin_unlock_bh(&conn->mr_lock);
		if (n)
			mod_delayed_work(rpcrdma_wq, &conn->mr_work, 0);
		freed += n;
	}
	list_splice_tail(&visited, &mr_conns);
	spin_unlock(&mr_conns_lock);
	atomic_long_sub(freed, &mrs_idle);
	return freed ?: SHRINK_STOP;
}

/* The registration that was idle longest is at the head. */
static unsigned long mr_pool_isolate_rested_locked(struct rpcrdma_conn *conn,
						   unsigned int keep)
{
	struct rpcrdma_mr *mr;
	unsigned long rested = 0;

	lockdep_assert_held(&conn->mr_lock);
	list_for_each_entry(mr, &conn->mrs_free, list) {
		rested += mr->rested;
		mr->rested = true;
	}
	return mr_pool_isolate_locked(conn, rested, keep);
}

/**
 * rpcrdma_mr_trim - free the registrations that were idle since this ran last
 * @conn: the connection
 *
 * Frees all of them, and the next RPC waits until some are made. If the connection carries
 * swap, it keeps MRS_LOW, because then there may be no memory for more.
 *
 * Context: entered; any but hard interrupts.
 * Return: true if more idle ones are left than each connection keeps.
 */
bool rpcrdma_mr_trim(struct rpcrdma_conn *conn)
{
	const atomic_t *swapper = conn->config.swapper;
	unsigned int keep = swapper && atomic_read(swapper) ? MRS_LOW : 0;
	unsigned long isolated;
	bool left;

	spin_lock_bh(&conn->mr_lock);
	isolated = mr_pool_isolate_rested_locked(conn, keep);
	left = conn->num_mrs_free > keep;
	WRITE_ONCE(conn->mrs_rest, !left);
	spin_unlock_bh(&conn->mr_lock);

	atomic_long_sub(isolated, &mrs_idle);
	if (isolated)
		mod_delayed_work(rpcrdma_wq, &conn->mr_work, 0);
	return left;
}

/**
 * rpcrdma_mr_pool_init - initialise the registrations of a connection
 * @conn: the new connection
 *
 * Context: any.
 */
void rpcrdma_mr_pool_init(struct rpcrdma_conn *conn)
{
	spin_lock_init(&conn->mr_lock);
	INIT_LIST_HEAD(&conn->mrs);
	INIT_LIST_HEAD(&conn->mrs_free);
	INIT_LIST_HEAD(&conn->mrs_isolated);
	INIT_LIST_HEAD(&conn->mr_conns);
	INIT_DELAYED_WORK(&conn->mr_work, mr_pool_work);
}

/**
 * rpcrdma_mr_init - register the shrinker
 *
 * Context: module init.
 * Return: 0 or -ENOMEM.
 */
int rpcrdma_mr_init(void)
{
	rpcrdma_mr_shrinker = shrinker_alloc(0, "rpcrdma-mr");
	if (!rpcrdma_mr_shrinker)
		return -ENOMEM;
	rpcrdma_mr_shrinker->count_objects = mr_shrinker_count;
	rpcrdma_mr_shrinker->scan_objects = mr_shrinker_scan;
	shrinker_register(rpcrdma_mr_shrinker);
	return 0;
}

/**
 * rpcrdma_mr_exit - unregister the shrinker
 *
 * Context: module exit; may sleep.
 */
void rpcrdma_mr_exit(void)
{
	shrinker_free(rpcrdma_mr_shrinker);
}
