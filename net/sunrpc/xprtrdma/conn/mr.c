// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Registrations: memory that the peer may reach for a while, by fast
 * registration work requests.
 *
 * A connection starts without any. A work item makes them a few at a time when
 * they run out, and the shrinker takes those that are idle when memory is
 * short. A registration comes back invalidated, so that any idle one can be
 * used again; on a connection that breaks they all die with the queue pair.
 *
 * A key has eight bits that change with each use. For it to come back as late as
 * possible, the registration that has been idle longest is used next.
 */
#include <linux/shrinker.h>
#include <linux/slab.h>

#include "conn_private.h"
#include "../trace.h"

/* Fewer idle ones than this: make more. The shrinker leaves as many. */
#define MRS_LOW		2
/* How many at a time */
#define MRS_STEP	8
/* When the device or the system has none to give, ask again after */
#define MRS_RETRY	(HZ / 10)

/* What the shrinker sees: connections, and their idle registrations */
static DEFINE_SPINLOCK(mr_conns_lock);
static LIST_HEAD(mr_conns);
static atomic_long_t mrs_idle;
static struct shrinker *mr_shrinker;

static void mr_release(struct rpcrdma_resource *resource)
{
	struct rpcrdma_mr *mr = container_of(resource, struct rpcrdma_mr, resource);

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

static void mr_undo(struct rpcrdma_resource *resource)
{
	struct rpcrdma_mr *mr = container_of(resource, struct rpcrdma_mr, resource);

	lockdep_assert_held(&mr->conn->resource_lock);
	mr_unmap(mr);
}

/*
 * Grow by a step if that is due: also if some are idle again, when one was
 * wanted, for whoever wants more than there are gives back what it has got.
 * Return: how many were added.
 */
static unsigned int mr_pool_grow(struct rpcrdma_conn *conn)
{
	struct rpcrdma_mr *mr;
	unsigned int added;

	if (!READ_ONCE(conn->mr_wanted) && READ_ONCE(conn->num_mrs_free) >= MRS_LOW)
		return 0;
	for (added = 0; added < MRS_STEP; added++) {
		mr = mr_alloc(conn);
		if (!mr)
			break;
		spin_lock_bh(&conn->mr_lock);
		list_add(&mr->resource.all, &conn->mrs);
		list_add(&mr->list, &conn->mrs_free);
		conn->num_mrs_free++;
		spin_unlock_bh(&conn->mr_lock);
	}
	atomic_long_add(added, &mrs_idle);
	return added;
}

/* Free what the shrinker has chosen. Return: how many. */
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
	unsigned int flags = rpcrdma_memalloc_save(conn);
	unsigned int added, removed;
	bool writable;

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
 * rpcrdma_mr_create - prepare for registrations
 * @conn: the connection, which has a queue pair
 */
void rpcrdma_mr_create(struct rpcrdma_conn *conn)
{
	spin_lock(&mr_conns_lock);
	list_add_tail(&conn->mr_conns, &mr_conns);
	spin_unlock(&mr_conns_lock);
}

/*
 * Mapping may leave a note in the first entry, such as that memory was bounced,
 * also when it fails. It is not about the next mapping.
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
 * Return: the registration, empty; or NULL if the connection is not
 * established, or if there is none, and then ->writable follows when some have
 * been made.
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
		mr->resource.held = true;
	} else {
		conn->mr_wanted = true;
	}
	low = conn->num_mrs_free < MRS_LOW;
	spin_unlock_bh(&conn->mr_lock);
	if (low)
		queue_delayed_work(rpcrdma_wq, &conn->mr_work, 0);
	if (!mr)
		return NULL;

	atomic_long_dec(&mrs_idle);
	mr_empty(mr);
	return mr;
}

/*
 * Of @len octets, how many may follow what is there. What is bounced keeps
 * neither its place within a page nor its neighbours there, so then it is either
 * whole pages or one piece.
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
 * @mr: the registration
 * @pages: where the memory is
 * @offset: octets into the first of @pages, less than a page
 * @len: octets, over as many pages as that takes
 *
 * Unless the device can do better, only the first piece may begin and only the
 * last may end within a page; if memory is bounced, neither may if there are
 * others.
 *
 * Context: any.
 * Return: how many octets it took; if not all, no more fit into this
 * registration.
 */
unsigned int rpcrdma_mr_add(struct rpcrdma_mr *mr, struct page **pages,
			    unsigned int offset, unsigned int len)
{
	struct scatterlist *sg = &mr->sgl[mr->num_sg];
	const struct scatterlist *end = &mr->sgl[mr->max_sg];
	unsigned int left;

	len = mr_may_add(mr, offset, len);
	for (left = len; left && sg < end; sg++) {
		unsigned int part = min_t(unsigned int, left, PAGE_SIZE - offset);

		sg_set_page(sg, *pages++, part, offset);
		offset = 0;
		left -= part;
	}
	mr->num_sg = sg - mr->sgl;
	return len - left;
}

static void mr_fill_wr(struct rpcrdma_mr *mr)
{
	bool reading = mr->direction == DMA_TO_DEVICE;

	mr->reg_wr = (struct ib_reg_wr){
		.wr = {
			.opcode = IB_WR_REG_MR,
			.wr_cqe = &mr->conn->error_cqe,
		},
		.mr = mr->mr,
		.key = mr->mr->rkey,
		.access = reading ? IB_ACCESS_REMOTE_READ :
			  IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE,
	};
	mr->segment = (struct rpcrdma_segment){
		.handle = mr->mr->rkey,
		.length = mr->mr->length,
		.offset = mr->mr->iova,
	};
}

/*
 * The device could take a part of the memory only, though all its limits were
 * kept to: so the pages were bounced, and are not neighbours there as they are
 * here. The next attempt keeps apart what is not a whole page. If this one did
 * so already, there is no other way.
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
 * rpcrdma_mr_map - prepare a registration for the peer
 * @mr: the registration, with memory in it
 * @direction: DMA_TO_DEVICE if the peer will read, DMA_FROM_DEVICE if it will
 *	write
 *
 * Afterwards @mr->segment may be offered in a message, behind @mr->reg_wr. If
 * that is never posted, the registration needs no invalidation.
 *
 * Context: entered; may sleep; not at the same time as another of this
 * connection, or rpcrdma_mr_add().
 * Return: 0. -ENOBUFS: not now; the same memory may be mapped later, if it is
 * added to registrations anew. -EIO: it never can be.
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
	/* A key that a peer may still remember is not to be used again soon. */
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
 * @conn: their connection
 * @invalidation: the registrations, at least one, and what to do afterwards;
 *	the list is the connection's until then
 *
 * Does not fail for lack of room: then it waits for some and goes before all
 * that is posted later. If it cannot be done, the connection is closed.
 *
 * Context: any but hard interrupts.
 * Return: 0: @invalidation->work.done will be called once. -ENOTCONN: it will
 * not; the peer can reach the memory until ->closed.
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
	err = rpcrdma_work_post_later(conn, &invalidation->work, first, last, true);
	if (err)
		rpcrdma_conn_close(conn, err);
	return err ? -ENOTCONN : 0;
}

/**
 * rpcrdma_mr_unmap - give back the memory of a registration, and keep its key
 * @mr: the registration: as for rpcrdma_mr_put(), which follows later
 *
 * For a key that the peer may still use: nobody else gets it meanwhile.
 *
 * Context: any but hard interrupts.
 * Return: false if the connection is gone, so that nobody can use it any more;
 * then the memory is given back by rpcrdma_mr_put() only.
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
 * @mr: the registration: invalidated, by either end, or never posted, or of a
 *	connection that has been closed
 *
 * Its memory is unmapped when this returns.
 *
 * Context: any but hard interrupts.
 */
void rpcrdma_mr_put(struct rpcrdma_mr *mr)
{
	struct rpcrdma_conn *conn = mr->conn;

	if (!rpcrdma_resource_enter(conn, &mr->resource)) {
		if (rpcrdma_resource_drop(conn, &mr->resource, mr_undo))
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
 * rpcrdma_mr_destroy - unmap and deregister all, free those that nobody owns
 * @conn: the connection; its queue pair is drained and nobody can enter it
 *
 * Context: process, the teardown's.
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
		/* Its owner may be giving it back just now. */
		spin_lock_bh(&conn->resource_lock);
		mr_unmap(mr);
		spin_unlock_bh(&conn->resource_lock);
		ib_dereg_mr(mr->mr);
	}
	rpcrdma_resource_abandon(conn, &conn->mrs, mr_release);
}

static unsigned long mr_shrinker_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	/* The count may lag behind, even below zero, for a moment. */
	return max(atomic_long_read(&mrs_idle), 0L) ?: SHRINK_EMPTY;
}

static unsigned long mr_pool_isolate_locked(struct rpcrdma_conn *conn, unsigned long count)
{
	struct rpcrdma_mr *mr;
	unsigned long n;

	lockdep_assert_held(&conn->mr_lock);
	for (n = 0; n < count && conn->num_mrs_free > MRS_LOW; n++) {
		mr = list_first_entry(&conn->mrs_free, struct rpcrdma_mr, list);
		list_move(&mr->list, &conn->mrs_isolated);
		conn->num_mrs_free--;
	}
	return n;
}

/*
 * Deregistration sleeps on locks under which drivers allocate, so it is left
 * to the connection's work item. Connections take turns.
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
		n = mr_pool_isolate_locked(conn, sc->nr_to_scan - freed);
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

/**
 * rpcrdma_mr_pool_init - before the first registration of a connection
 * @conn: the connection
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
 * Return: 0 or -ENOMEM.
 */
int rpcrdma_mr_init(void)
{
	mr_shrinker = shrinker_alloc(0, "rpcrdma-mr");
	if (!mr_shrinker)
		return -ENOMEM;
	mr_shrinker->count_objects = mr_shrinker_count;
	mr_shrinker->scan_objects = mr_shrinker_scan;
	shrinker_register(mr_shrinker);
	return 0;
}

/**
 * rpcrdma_mr_exit - unregister the shrinker
 */
void rpcrdma_mr_exit(void)
{
	shrinker_free(mr_shrinker);
}
