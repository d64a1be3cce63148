// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of conn/: what a role still owns when its connection ends, and who frees it.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/dma-map-ops.h>

#include "../conn/conn_private.h"
#include "fake_conn.h"

#define THINGS	5
#define WIRE	0x11	/* what the device wrote */
#define PLAIN	0x22	/* what a role has made of it */

/* What a connection and its role share. It has no hardware's part. */
struct thing {
	struct rpcrdma_resource resource;
	unsigned int released;
	bool release_locked;
};

struct things {
	struct rpcrdma_conn *conn;
	struct list_head all;
	struct thing thing[THINGS];
};

static struct things *things_make(struct kunit *test)
{
	struct things *things = kunit_kzalloc(test, sizeof(*things), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, things);
	things->conn = rpcrdma_conn_alloc(false);
	KUNIT_ASSERT_NOT_NULL(test, things->conn);
	strscpy(things->conn->peer, "KUnit", sizeof(things->conn->peer));
	INIT_LIST_HEAD(&things->all);
	for (i = 0; i < THINGS; i++)
		list_add_tail(&things->thing[i].resource.all, &things->all);
	return things;
}

static void things_end(struct kunit *test, struct things *things)
{
	/* No lock was left behind. */
	KUNIT_EXPECT_EQ(test, softirq_count(), 0);
	rpcrdma_conn_close(things->conn, -ECANCELED);
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_conn_put(things->conn);
}

static struct thing *thing_of(struct rpcrdma_resource *resource)
{
	return container_of(resource, struct thing, resource);
}

static void release(struct rpcrdma_resource *resource)
{
	struct thing *thing = thing_of(resource);

	thing->released++;
	thing->release_locked |= softirq_count();
}

static void own(struct thing *thing)
{
	thing->resource.held = true;
}

/* It is given back before the teardown has got to it: the teardown frees it. */
static void test_drop_before(struct kunit *test)
{
	struct things *things = things_make(test);
	struct thing *thing = &things->thing[0];

	own(thing);
	rpcrdma_resource_drop(things->conn, &thing->resource, release);
	KUNIT_EXPECT_EQ(test, thing->released, 0);
	KUNIT_EXPECT_EQ(test, softirq_count(), 0);
	rpcrdma_resource_abandon(things->conn, &things->all, release);
	KUNIT_EXPECT_EQ(test, thing->released, 1);
	things_end(test, things);
}

/*
 * Those that a role owns become orphans, the others are freed, each once. The connection stays
 * until the last orphan is given back.
 */
static void test_abandon(struct kunit *test)
{
	struct things *things = things_make(test);
	unsigned int i, refs = kref_read(&things->conn->ref);

	own(&things->thing[1]);
	own(&things->thing[3]);
	rpcrdma_resource_abandon(things->conn, &things->all, release);
	KUNIT_EXPECT_TRUE(test, list_empty(&things->all));
	KUNIT_EXPECT_EQ(test, kref_read(&things->conn->ref), refs + 2);
	for (i = 0; i < THINGS; i++) {
		struct thing *thing = &things->thing[i];
		bool owned = i % 2;

		KUNIT_EXPECT_EQ(test, thing->released, !owned);
		KUNIT_EXPECT_EQ(test, thing->resource.orphan, owned);
		/* Whoever owned it frees it. */
		if (owned)
			rpcrdma_resource_drop(things->conn, &thing->resource, release);
		KUNIT_EXPECT_EQ(test, thing->released, 1);
		KUNIT_EXPECT_FALSE(test, thing->release_locked);
	}
	KUNIT_EXPECT_EQ(test, kref_read(&things->conn->ref), refs);
	things_end(test, things);
}

/* A connection whose device has a parent that bounces */
struct bouncing {
	struct fake_conn fake;
	struct device parent;
	unsigned int unmapped;	/* Receives */
};

/* As if the bounce buffer were copied. Only Receives are mapped for the device to write to. */
static void bouncing_unmap(struct device *parent, dma_addr_t addr, size_t size,
			   enum dma_data_direction direction, unsigned long attrs)
{
	struct bouncing *bouncing = container_of(parent, struct bouncing, parent);

	if (direction != DMA_FROM_DEVICE)
		return;
	bouncing->unmapped++;
	if (!(attrs & DMA_ATTR_SKIP_CPU_SYNC))
		memset((void *)(uintptr_t)addr, WIRE, size);
}

static const struct dma_map_ops bouncing_ops = { .unmap_phys = bouncing_unmap };

/*
 * A Receive that a role owns is unmapped with the others, and stays what the role has made of
 * it: krb5p decrypts in place.
 */
static void test_received_stays(struct kunit *test)
{
	struct bouncing *bouncing;	/* not KUnit's memory, in case the test ends early */
	struct fake_conn *fake;
	struct rpcrdma_recv *recv;
	unsigned int num_recvs;

	if (!IS_ENABLED(CONFIG_ARCH_HAS_DMA_OPS))
		kunit_skip(test, "devices have no DMA operations of their own here");
	bouncing = kzalloc(sizeof(*bouncing), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, bouncing);
	fake = &bouncing->fake;
	fake_conn_make(test, fake, RPCRDMA_INLINE_MIN, RPCRDMA_VERSION_ONE);
	num_recvs = fake->num_recvs;
	recv = fake_take_recv(fake, "wire", 4);
	memset(recv->data, PLAIN, recv->sge.length);

	/* Addresses stay pointers, as in fake_conn.c, but now bouncing_unmap() sees each unmap. */
	bouncing->parent.dma_mask = &bouncing->parent.coherent_dma_mask;
	set_dma_ops(&bouncing->parent, &bouncing_ops);
	fake->ib.dma_device = &bouncing->parent;
	fake_conn_close(test, fake);
	KUNIT_EXPECT_EQ(test, bouncing->unmapped, num_recvs);
	KUNIT_EXPECT_NULL(test, memchr_inv(recv->data, PLAIN, recv->sge.length));
	rpcrdma_recv_put(recv);
	fake_conn_end(test, fake);
	kfree(bouncing);
}

static struct kunit_case resource_cases[] = {
	KUNIT_CASE(test_drop_before),
	KUNIT_CASE(test_abandon),
	KUNIT_CASE(test_received_stays),
	{}
};

static struct kunit_suite resource_suite = {
	.name = "rpcrdma_resource",
	.test_cases = resource_cases,
};

kunit_test_suites(&resource_suite);
