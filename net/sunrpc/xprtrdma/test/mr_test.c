// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of conn/: registrations, with a device that registers nothing, and with one
 * that makes them.
 */
#include <kunit/test.h>
#include <linux/dma-map-ops.h>
#include <linux/mm.h>

#include "../client/form.h"
#include "../conn/conn_private.h"
#include "fake_conn.h"

#define MRS		8
#define MR_PAGES	4
#define PAGES		9

/* A connection with registrations that the test makes; they are never posted */
struct pool {
	struct ib_device ib;
	struct rpcrdma_device device;
	struct rpcrdma_conn *conn;
	struct rpcrdma_mr mr[MRS];
	struct scatterlist sgl[MRS][MR_PAGES];
	struct ib_mr ib_mr[MRS];
	struct page *page[PAGES];
};

/* How the device treats memory. Tests run one at a time. */
static bool bounces;
static int map_error;

static int any_page(struct ib_mr *mr, u64 address)
{
	return 0;
}

/*
 * If the device bounces, each piece moves to a page of its own, and a piece that is not a
 * whole page also to another place in the page.
 */
static int pool_map_mr_sg(struct ib_mr *mr, struct scatterlist *sgl, int nents,
			  unsigned int *offset)
{
	struct scatterlist *sg;
	int i;

	if (map_error)
		return map_error;
	for_each_sg(sgl, sg, bounces ? nents : 0, i)
		if (sg->length < PAGE_SIZE)
			sg_dma_address(sg) = round_down(sg_dma_address(sg),
							PAGE_SIZE) + 2048;
	return ib_sg_to_pages(mr, sgl, nents, offset, any_page);
}

static void pool_add(struct pool *pool, unsigned int i)
{
	struct rpcrdma_conn *conn = pool->conn;
	struct rpcrdma_mr *mr = &pool->mr[i];

	sg_init_table(pool->sgl[i], MR_PAGES);
	pool->ib_mr[i].device = &pool->ib;
	pool->ib_mr[i].rkey = i << 8;
	mr->mr = &pool->ib_mr[i];
	mr->sgl = pool->sgl[i];
	mr->max_sg = MR_PAGES;
	mr->conn = conn;
	rpcrdma_pool_put(&conn->mrs, &mr->pooled, true);
}

static struct pool *pool_make(struct kunit *test)
{
	struct pool *pool = kunit_kzalloc(test, sizeof(*pool), GFP_KERNEL);
	struct rpcrdma_conn *conn;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, pool);
	for (i = 0; i < PAGES; i++) {
		void *page = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, page);
		KUNIT_ASSERT_EQ(test, offset_in_page(page), 0);
		pool->page[i] = virt_to_page(page);
	}
	conn = rpcrdma_conn_alloc(false);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	strscpy(conn->peer, "KUnit", sizeof(conn->peer));
	pool->ib.ops.map_mr_sg = pool_map_mr_sg;
	pool->device.ib = &pool->ib;
	conn->device = &pool->device;
	conn->state = RPCRDMA_STATE_ESTABLISHED;
	pool->conn = conn;
	for (i = 0; i < MRS; i++)
		pool_add(pool, i);
	bounces = false;
	map_error = 0;
	return pool;
}

/* Hide the device and the registrations from the teardown. */
static void pool_end(struct pool *pool)
{
	struct rpcrdma_conn *conn = pool->conn;

	INIT_LIST_HEAD(&conn->mrs.idle);
	conn->mrs.num_idle = 0;
	conn->device = NULL;
	rpcrdma_conn_close(conn, -ECANCELED);
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_conn_put(conn);
}

/*
 * Register octets of the pages, as a Call does. Return: how many registrations that took,
 * or the first error.
 */
static int offer(struct pool *pool, unsigned int offset, unsigned int len)
{
	struct rpcrdma_mr *mr, *next;
	unsigned int at = offset;
	LIST_HEAD(mrs);
	int ret = 0, count = 0;

	while (len && ret >= 0) {
		unsigned int taken;

		mr = rpcrdma_mr_get(pool->conn);
		if (!mr)
			return -ENOMEM;
		list_add_tail(&mr->list, &mrs);
		taken = rpcrdma_mr_add(mr, &pool->page[at >> PAGE_SHIFT],
				       offset_in_page(at), len);
		ret = rpcrdma_mr_map(mr, DMA_FROM_DEVICE);
		if (!ret && mr->segment.length != taken)
			ret = -EBADMSG;
		at += taken;
		len -= taken;
		count++;
	}
	list_for_each_entry_safe(mr, next, &mrs, list) {
		list_del(&mr->list);
		rpcrdma_mr_put(mr);
	}
	return ret ?: count;
}

static unsigned int segments(const struct pool *pool, unsigned int offset,
			     unsigned int len)
{
	return xprt_rdma_form_segments(offset, len, MR_PAGES,
				       pool->conn->bounced);
}

struct mr_row {
	unsigned int offset;
	unsigned int len;
};

static const struct mr_row mr_rows[] = {
	{ 0, 1 },
	{ 100, 50 },
	{ 0, PAGE_SIZE },
	{ 100, PAGE_SIZE - 100 },
	{ 100, PAGE_SIZE },
	{ 0, 3 * PAGE_SIZE },
	{ 0, 3 * PAGE_SIZE + 1 },
	{ 1, 3 * PAGE_SIZE - 1 },
	{ 1, 3 * PAGE_SIZE },
	{ 0, MR_PAGES * PAGE_SIZE },
	{ 1, MR_PAGES * PAGE_SIZE },
	{ 4000, (MR_PAGES + 1) * PAGE_SIZE },
};

/* Memory takes as many registrations as xprt_rdma_form_segments() reserves. */
static void test_mr_segments(struct kunit *test)
{
	struct pool *pool;
	unsigned int i;

	pool = pool_make(test);
	for (i = 0; i < ARRAY_SIZE(mr_rows); i++)
		KUNIT_EXPECT_EQ(test, offer(pool, mr_rows[i].offset, mr_rows[i].len),
				segments(pool, mr_rows[i].offset, mr_rows[i].len));
	KUNIT_EXPECT_FALSE(test, pool->conn->bounced);
	pool_end(pool);
}

/* Bouncing makes gaps. The first attempt fails, and the next one succeeds. */
static void test_mr_bounced(struct kunit *test)
{
	struct pool *pool;
	unsigned int i;

	pool = pool_make(test);
	bounces = true;
	KUNIT_EXPECT_EQ(test, offer(pool, 0, 2 * PAGE_SIZE), 1);
	KUNIT_EXPECT_EQ(test, offer(pool, 100, 3 * PAGE_SIZE), -ENOBUFS);
	KUNIT_EXPECT_EQ(test, offer(pool, 100, 3 * PAGE_SIZE), 3);
	for (i = 0; i < ARRAY_SIZE(mr_rows); i++)
		KUNIT_EXPECT_EQ(test, offer(pool, mr_rows[i].offset, mr_rows[i].len),
				segments(pool, mr_rows[i].offset, mr_rows[i].len));
	pool_end(pool);
}

/* What can never be mapped fails at once, with -EIO. */
static void test_mr_cannot_be_mapped(struct kunit *test)
{
	struct pool *pool;

	pool = pool_make(test);
	map_error = -EINVAL;
	KUNIT_EXPECT_EQ(test, offer(pool, 0, 2 * PAGE_SIZE), -EIO);
	map_error = -EREMOTEIO;
	KUNIT_EXPECT_EQ(test, offer(pool, 0, 2 * PAGE_SIZE), -EIO);
	/* The device takes one page of two, although both are whole. */
	map_error = 1;
	KUNIT_EXPECT_EQ(test, offer(pool, 0, 2 * PAGE_SIZE), -ENOBUFS);
	KUNIT_EXPECT_EQ(test, offer(pool, 0, 2 * PAGE_SIZE), -EIO);
	pool_end(pool);
}

static int dma_error;

static int fail_map_sg(struct device *parent, struct scatterlist *sgl, int nents,
		       enum dma_data_direction direction, unsigned long attrs)
{
	return dma_error;
}

static const struct dma_map_ops failing_ops = { .map_sg = fail_map_sg };

/*
 * -EINVAL and -EREMOTEIO are said of memory that can never be mapped: the RPC fails. -ENOMEM, and
 * -EIO, which has no known cause, may pass: it is tried again.
 */
static void test_mr_dma_fails(struct kunit *test)
{
	static const int rows[][2] = {
		{ -EINVAL, -EIO },
		{ -EREMOTEIO, -EIO },
		{ -ENOMEM, -ENOBUFS },
		{ -EIO, -ENOBUFS },
	};
	struct device *parent = kunit_kzalloc(test, sizeof(*parent), GFP_KERNEL);
	struct pool *pool;
	unsigned int i;

	if (!IS_ENABLED(CONFIG_ARCH_HAS_DMA_OPS))
		kunit_skip(test, "devices have no DMA operations of their own here");
	KUNIT_ASSERT_NOT_NULL(test, parent);
	pool = pool_make(test);
	parent->dma_mask = &parent->coherent_dma_mask;
	set_dma_ops(parent, &failing_ops);
	pool->ib.dma_device = parent;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		dma_error = rows[i][0];
		KUNIT_EXPECT_EQ(test, offer(pool, 0, PAGE_SIZE), rows[i][1]);
	}
	pool_end(pool);
}

/* Two ranges for one registration */
struct add_row {
	const char *name;
	struct mr_row first;
	struct mr_row second;
	unsigned int taken;	/* of the second */
	bool bounced;
	bool gaps;
};

static const struct add_row add_rows[] = {
	{ "they meet", { 0, PAGE_SIZE }, { 0, 100 }, 100 },
	{ "the first ends too soon", { 0, 100 }, { 0, 100 }, 0 },
	{ "the second begins too late", { 0, PAGE_SIZE }, { 1, 100 }, 0 },
	{ "no room", { 0, MR_PAGES * PAGE_SIZE }, { 0, 100 }, 0 },
	{ "bounced pages", { 0, PAGE_SIZE }, { 0, PAGE_SIZE }, PAGE_SIZE, true },
	{ "a part after bounced pages", { 0, PAGE_SIZE }, { 0, 100 }, 0, true },
	{ "bounced pages after a part", { 100, PAGE_SIZE - 100 }, { 0, PAGE_SIZE }, 0, true },
	{ "gaps", { 0, 100 }, { 200, 100 }, 100, false, true },
	{ "no room for more gaps", { 0, MR_PAGES * PAGE_SIZE }, { 1, 100 }, 0, false, true },
};

KUNIT_ARRAY_PARAM_DESC(add, add_rows, name);

static void test_mr_add(struct kunit *test)
{
	const struct add_row *row = test->param_value;
	struct pool *pool = pool_make(test);
	struct rpcrdma_mr *mr = rpcrdma_mr_get(pool->conn);

	KUNIT_ASSERT_NOT_NULL(test, mr);
	pool->conn->bounced = row->bounced;
	pool->device.mr_type = row->gaps ? IB_MR_TYPE_SG_GAPS : IB_MR_TYPE_MEM_REG;
	KUNIT_EXPECT_EQ(test, rpcrdma_mr_add(mr, pool->page, row->first.offset, row->first.len),
			row->first.len);
	KUNIT_EXPECT_EQ(test, rpcrdma_mr_add(mr, pool->page, row->second.offset, row->second.len),
			row->taken);
	rpcrdma_mr_put(mr);
	pool_end(pool);
}

/* With one RPC at a time, a key comes back only when all keys have been used. */
static void test_mr_oldest_key_first(struct kunit *test)
{
	struct rpcrdma_mr *mr;
	struct pool *pool;
	unsigned int uses;
	u32 first = 0;

	pool = pool_make(test);
	for (uses = 0; uses <= MRS * 256; uses++) {
		u32 handle;

		mr = rpcrdma_mr_get(pool->conn);
		KUNIT_ASSERT_NOT_NULL(test, mr);
		rpcrdma_mr_add(mr, pool->page, 0, PAGE_SIZE);
		KUNIT_ASSERT_EQ(test, rpcrdma_mr_map(mr, DMA_FROM_DEVICE), 0);
		handle = mr->segment.handle;
		rpcrdma_mr_put(mr);
		if (!uses)
			first = handle;
		else if (handle == first)
			break;
	}
	KUNIT_EXPECT_EQ(test, uses, MRS * 256);
	pool_end(pool);
}

/* rpcrdma_mr_unmap() gives back the memory, but the registration stays out of the pool. */
static void test_mr_key_kept(struct kunit *test)
{
	struct rpcrdma_mr *kept, *mr;
	struct pool *pool;
	unsigned int i;

	pool = pool_make(test);
	kept = rpcrdma_mr_get(pool->conn);
	KUNIT_ASSERT_NOT_NULL(test, kept);
	rpcrdma_mr_add(kept, pool->page, 0, PAGE_SIZE);
	KUNIT_ASSERT_EQ(test, rpcrdma_mr_map(kept, DMA_FROM_DEVICE), 0);
	KUNIT_EXPECT_TRUE(test, rpcrdma_mr_unmap(kept));
	KUNIT_EXPECT_FALSE(test, kept->mapped);
	for (i = 0; i < MRS; i++) {
		mr = rpcrdma_mr_get(pool->conn);
		KUNIT_ASSERT_NOT_NULL(test, mr);
		KUNIT_EXPECT_PTR_NE(test, mr, kept);
		rpcrdma_mr_put(mr);
	}
	rpcrdma_mr_put(kept);
	pool_end(pool);
}

/* What a mapping leaves in the first entry, here an address, does not reach the next one. */
static void test_mr_first_entry_is_clear(struct kunit *test)
{
	struct pool *pool = pool_make(test);
	struct rpcrdma_mr *mr;
	unsigned int i;

	for (i = 0; i < 2 * MRS; i++) {
		mr = rpcrdma_mr_get(pool->conn);
		KUNIT_ASSERT_NOT_NULL(test, mr);
		KUNIT_EXPECT_EQ(test, sg_dma_address(mr->sgl), 0);
		rpcrdma_mr_add(mr, pool->page, 0, PAGE_SIZE);
		sg_dma_address(mr->sgl) = 17;
		rpcrdma_mr_put(mr);
	}
	pool_end(pool);
}

static void mr_writable(struct rpcrdma_conn *conn)
{
	unsigned int *writable = conn->role;

	++*writable;
}

static void mr_closed(struct rpcrdma_conn *conn, int status)
{
}

static const struct rpcrdma_conn_ops mr_ops = { .writable = mr_writable, .closed = mr_closed };

/* The device makes no registration at first, later it does. Then ->writable tells of it. */
static void test_mr_made_later(struct kunit *test)
{
	struct fake_conn *fake = fake_conn_new(test, RPCRDMA_INLINE_MIN);
	unsigned int writable = 0;
	struct rpcrdma_conn *conn = fake->conn;

	conn->ops = &mr_ops;
	conn->role = &writable;
	KUNIT_EXPECT_NULL(test, rpcrdma_mr_get(conn));
	flush_delayed_work(&conn->mr_work);
	fake_run_callbacks(fake);
	KUNIT_EXPECT_EQ(test, writable, 0);
	fake->mrs_left = FAKE_MRS;
	flush_delayed_work(&conn->mr_work);
	fake_run_callbacks(fake);
	KUNIT_EXPECT_EQ(test, writable, 1);
	KUNIT_EXPECT_EQ(test, fake_idle_mrs(fake), 8);
	fake_conn_delete(test, fake);
}

/* A page in the middle of a folio: a reference keeps all of the folio. */
static void test_sg_keep(struct kunit *test)
{
	struct page *page = alloc_pages(GFP_KERNEL | __GFP_COMP, 1);
	struct scatterlist sg;
	int before;

	KUNIT_ASSERT_NOT_NULL(test, page);
	before = page_count(page);
	sg_init_table(&sg, 1);
	sg_set_page(&sg, page + 1, 100, 0);
	rpcrdma_sg_keep(&sg, 1);
	KUNIT_EXPECT_EQ(test, page_count(page), before + 1);
	put_page(page);
	__free_pages(page, 1);
}

static struct kunit_case mr_cases[] = {
	KUNIT_CASE(test_mr_segments),
	KUNIT_CASE(test_mr_bounced),
	KUNIT_CASE(test_mr_cannot_be_mapped),
	KUNIT_CASE(test_mr_dma_fails),
	KUNIT_CASE_PARAM(test_mr_add, add_gen_params),
	KUNIT_CASE(test_mr_oldest_key_first),
	KUNIT_CASE(test_mr_key_kept),
	KUNIT_CASE(test_mr_first_entry_is_clear),
	KUNIT_CASE(test_mr_made_later),
	KUNIT_CASE(test_sg_keep),
	{}
};

static struct kunit_suite mr_suite = {
	.name = "rpcrdma_mr",
	.test_cases = mr_cases,
};

kunit_test_suites(&mr_suite);
