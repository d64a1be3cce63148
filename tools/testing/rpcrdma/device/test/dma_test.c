// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of the device: mappings. What the CPU sees of memory that the device writes to,
 * and rules about syncs and directions. Only with bounce buffers of the device's own.
 */
#include <linux/dma-direct.h>
#include <linux/slab.h>

#include "lab.h"

#define POISON	0xdb
#define OLD	0x11
#define NEW	0x22

/* Memory of the test, mapped in one direction. The lab's own buffers are mapped in both. */
struct own {
	struct lab *lab;
	enum dma_data_direction direction;
	u8 *data;
	struct ib_sge sge;
};

static void own_unmap(struct own *own)
{
	ib_dma_unmap_single(&own->lab->dev->ib, own->sge.addr, PAGE_SIZE, own->direction);
}

static void own_make(struct own *own, struct kunit *test, enum dma_data_direction direction)
{
	struct lab *lab = lab_make(test, 0);

	if (!lab->dev->bounce) {
		lab_end(lab);
		kunit_skip(test, "devices have no DMA operations of their own here");
	}
	own->lab = lab;
	own->direction = direction;
	own->data = kunit_kmalloc(test, PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, own->data);
	memset(own->data, OLD, PAGE_SIZE);
	own->sge.addr = ib_dma_map_single(&lab->dev->ib, own->data, PAGE_SIZE, direction);
	KUNIT_ASSERT_EQ(test, ib_dma_mapping_error(&lab->dev->ib, own->sge.addr), 0);
	own->sge.length = 100;
	own->sge.lkey = lab->pd->local_dma_lkey;
}

static void own_end(struct own *own, enum mem_rule rule)
{
	KUNIT_EXPECT_EQ(own->lab->test, lab_violations(own->lab, rule), 1);
	lab_end(own->lab);
}

/* Whether octets of the memory have a value, as the CPU sees them */
static bool own_has(const struct own *own, u32 from, u32 to, u8 value)
{
	return !memchr_inv(own->data + from, value, to - from);
}

static void own_recv(struct own *own)
{
	struct ib_recv_wr wr = { .sg_list = &own->sge, .num_sge = 1 };

	KUNIT_ASSERT_EQ(own->lab->test, ib_post_recv(own->lab->side[1].qp, &wr, NULL), 0);
}

static void own_send(struct own *own)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND, .sg_list = &own->sge, .num_sge = 1,
		.send_flags = IB_SEND_SIGNALED,
	};

	KUNIT_ASSERT_EQ(own->lab->test, ib_post_send(own->lab->side[0].qp, &wr, NULL), 0);
}

/* Register the memory. */
static void own_reg(struct own *own, int access)
{
	struct lab_side *side = &own->lab->side[1];
	struct ib_reg_wr wr = {
		.wr = { .opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED },
		.mr = side->mr, .key = side->mr->rkey, .access = access,
	};

	sg_init_table(side->sg, 1);
	sg_dma_address(side->sg) = own->sge.addr;
	sg_dma_len(side->sg) = PAGE_SIZE;
	KUNIT_ASSERT_EQ(own->lab->test, ib_map_mr_sg(side->mr, side->sg, 1, NULL, PAGE_SIZE), 1);
	KUNIT_ASSERT_EQ(own->lab->test, ib_post_send(side->qp, &wr.wr, NULL), 0);
	KUNIT_ASSERT_EQ(own->lab->test, lab_wait(own->lab, 1, NULL), IB_WC_SUCCESS);
}

static void own_sync(struct own *own, bool cpu, enum dma_data_direction direction)
{
	struct ib_device *ib = &own->lab->dev->ib;

	if (cpu)
		ib_dma_sync_single_for_cpu(ib, own->sge.addr, 100, direction);
	else
		ib_dma_sync_single_for_device(ib, own->sge.addr, 100, direction);
}

/* What is received is seen after a sync, and the rest, as it was, at the end of the mapping. */
static void test_poison(struct kunit *test)
{
	struct own own;

	own_make(&own, test, DMA_FROM_DEVICE);
	lab_fill(own.lab, 0, 0, 0, NEW, 100);
	KUNIT_EXPECT_TRUE(test, own_has(&own, 0, PAGE_SIZE, POISON));
	own_recv(&own);
	KUNIT_ASSERT_EQ(test, lab_post(own.lab, 0, IB_WR_SEND, 0, 100, IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(own.lab, 1, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, own_has(&own, 0, PAGE_SIZE, POISON));
	own_sync(&own, true, DMA_FROM_DEVICE);
	KUNIT_EXPECT_TRUE(test, own_has(&own, 0, 100, NEW));
	KUNIT_EXPECT_TRUE(test, own_has(&own, 100, PAGE_SIZE, POISON));
	own_sync(&own, false, DMA_FROM_DEVICE);
	KUNIT_EXPECT_TRUE(test, own_has(&own, 0, PAGE_SIZE, POISON));
	KUNIT_EXPECT_EQ(test, lab_wait(own.lab, 0, NULL), IB_WC_SUCCESS);
	own_unmap(&own);
	KUNIT_EXPECT_TRUE(test, own_has(&own, 0, 100, NEW));
	KUNIT_EXPECT_TRUE(test, own_has(&own, 100, PAGE_SIZE, OLD));
	KUNIT_EXPECT_EQ(test, lab_violations(own.lab, MEM_RULE_SYNC), 0);
	lab_end(own.lab);
}

/* The peer writes 100 octets to the memory, which is registered. */
static void own_written(struct own *own)
{
	struct lab *lab = own->lab;
	struct ib_mr *mr = lab->side[1].mr;

	lab_fill(lab, 0, 0, 0, NEW, 100);
	KUNIT_ASSERT_EQ(lab->test,
			lab_rdma(lab, 0, IB_WR_RDMA_WRITE, 100, mr->iova, mr->rkey), 0);
	KUNIT_EXPECT_EQ(lab->test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
}

/* What the peer writes or reads is seen in the same way. */
static void test_poison_remote(struct kunit *test)
{
	struct own own;

	own_make(&own, test, DMA_FROM_DEVICE);
	own_reg(&own, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	own_written(&own);
	KUNIT_EXPECT_TRUE(test, own_has(&own, 0, PAGE_SIZE, POISON));
	KUNIT_ASSERT_EQ(test, lab_inv(own.lab, 1, own.lab->side[1].mr->rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(own.lab, 1, NULL), IB_WC_SUCCESS);
	own_unmap(&own);
	KUNIT_EXPECT_TRUE(test, own_has(&own, 0, 100, NEW));
	KUNIT_EXPECT_EQ(test, lab_violations(own.lab, MEM_RULE_SYNC), 0);
	lab_end(own.lab);
}

/* A mapping can end without a sync, for what the CPU has and may have changed. */
static void test_no_sync_at_end(struct kunit *test)
{
	struct own own;

	own_make(&own, test, DMA_FROM_DEVICE);
	own_sync(&own, true, DMA_FROM_DEVICE);
	KUNIT_EXPECT_TRUE(test, own_has(&own, 0, 100, OLD));
	own.data[0] = NEW;
	dma_unmap_single_attrs(own.lab->dev->ib.dma_device, own.sge.addr, PAGE_SIZE,
			       own.direction, DMA_ATTR_SKIP_CPU_SYNC);
	KUNIT_EXPECT_TRUE(test, own_has(&own, 0, 1, NEW));
	KUNIT_EXPECT_TRUE(test, own_has(&own, 1, 100, OLD));
	KUNIT_EXPECT_TRUE(test, own_has(&own, 100, PAGE_SIZE, POISON));
	lab_end(own.lab);
}

/* What was not synced is not sent. */
static void test_sync_send(struct kunit *test)
{
	struct own own;

	own_make(&own, test, DMA_TO_DEVICE);
	own.data[0] = NEW;
	KUNIT_ASSERT_EQ(test, lab_recv(own.lab, 1, 0, 100), 0);
	own_send(&own);
	KUNIT_EXPECT_EQ(test, lab_wait(own.lab, 1, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, lab_data(own.lab, 1, 0)[0], OLD);
	KUNIT_EXPECT_EQ(test, lab_wait(own.lab, 0, NULL), IB_WC_SUCCESS);
	own_sync(&own, false, DMA_TO_DEVICE);
	KUNIT_ASSERT_EQ(test, lab_recv(own.lab, 1, 0, 100), 0);
	own_send(&own);
	KUNIT_EXPECT_EQ(test, lab_wait(own.lab, 1, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, lab_data(own.lab, 1, 0)[0], NEW);
	KUNIT_EXPECT_EQ(test, lab_wait(own.lab, 0, NULL), IB_WC_SUCCESS);
	own_unmap(&own);
	own_end(&own, MEM_RULE_SYNC);
}

/* A Receive that is posted again needs a sync. */
static void test_sync_recv(struct kunit *test)
{
	struct own own;

	own_make(&own, test, DMA_FROM_DEVICE);
	own_sync(&own, true, DMA_FROM_DEVICE);
	own_recv(&own);
	own_sync(&own, false, DMA_FROM_DEVICE);
	own_recv(&own);
	own_unmap(&own);
	own_end(&own, MEM_RULE_SYNC);
}

static void test_direction(struct kunit *test)
{
	struct own own;

	/* a Receive in memory that is to be sent */
	own_make(&own, test, DMA_TO_DEVICE);
	own_recv(&own);
	KUNIT_ASSERT_EQ(test, lab_post(own.lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(own.lab, 1, NULL), IB_WC_SUCCESS);
	own_unmap(&own);
	own_end(&own, MEM_RULE_DIRECTION);

	/* a Send of memory that is to be received in */
	own_make(&own, test, DMA_FROM_DEVICE);
	KUNIT_ASSERT_EQ(test, lab_recv(own.lab, 1, 0, 100), 0);
	/* else it is one that was not synced, besides */
	own_sync(&own, true, DMA_FROM_DEVICE);
	own_send(&own);
	KUNIT_EXPECT_EQ(test, lab_wait(own.lab, 0, NULL), IB_WC_SUCCESS);
	own_unmap(&own);
	own_end(&own, MEM_RULE_DIRECTION);
}

/* What the peer is to read may not be written to, and the other way round. */
static void test_direction_registered(struct kunit *test)
{
	static const struct {
		enum dma_data_direction direction;
		int access;
		int violations;
	} cases[] = {
		{ DMA_TO_DEVICE, IB_ACCESS_REMOTE_READ, 0 },
		{ DMA_TO_DEVICE, IB_ACCESS_REMOTE_READ | IB_ACCESS_LOCAL_WRITE, 1 },
		{ DMA_TO_DEVICE, IB_ACCESS_REMOTE_READ | IB_ACCESS_LOCAL_WRITE |
				 IB_ACCESS_REMOTE_WRITE, 1 },
		{ DMA_FROM_DEVICE, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE, 0 },
		{ DMA_FROM_DEVICE, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_READ, 1 },
		{ DMA_FROM_DEVICE, IB_ACCESS_REMOTE_READ, 1 },
		{ DMA_BIDIRECTIONAL, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				     IB_ACCESS_REMOTE_READ, 0 },
	};
	struct own own;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		own_make(&own, test, cases[i].direction);
		own_reg(&own, cases[i].access);
		KUNIT_EXPECT_EQ_MSG(test, lab_violations(own.lab, MEM_RULE_DIRECTION),
				    cases[i].violations, "case %d", i);
		own_unmap(&own);
		lab_end(own.lab);
	}
}

static void test_mapping(struct kunit *test)
{
	struct own own;

	own_make(&own, test, DMA_FROM_DEVICE);
	own_sync(&own, true, DMA_TO_DEVICE);
	own_unmap(&own);
	own_end(&own, MEM_RULE_MAPPING);

	own_make(&own, test, DMA_FROM_DEVICE);
	ib_dma_unmap_single(&own.lab->dev->ib, own.sge.addr, PAGE_SIZE - 1, own.direction);
	own_end(&own, MEM_RULE_MAPPING);

	/* twice */
	own_make(&own, test, DMA_FROM_DEVICE);
	own_unmap(&own);
	own_unmap(&own);
	own_end(&own, MEM_RULE_MAPPING);
}

/* Memory of which a completion is still on the way is not the user's yet. */
static void test_unmapped(struct kunit *test)
{
	struct own own;

	own_make(&own, test, DMA_TO_DEVICE);
	KUNIT_ASSERT_EQ(test, lab_recv(own.lab, 1, 0, 100), 0);
	own_send(&own);
	KUNIT_EXPECT_EQ(test, lab_wait(own.lab, 1, NULL), IB_WC_SUCCESS);
	own_unmap(&own);
	KUNIT_EXPECT_EQ(test, lab_wait(own.lab, 0, NULL), IB_WC_SUCCESS);
	own_end(&own, MEM_RULE_UNMAPPED);

	own_make(&own, test, DMA_FROM_DEVICE);
	own_recv(&own);
	KUNIT_ASSERT_EQ(test, lab_post(own.lab, 0, IB_WR_SEND, 0, 100, IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(own.lab, 0, NULL), IB_WC_SUCCESS);
	own_unmap(&own);
	KUNIT_EXPECT_EQ(test, lab_wait(own.lab, 1, NULL), IB_WC_SUCCESS);
	own_end(&own, MEM_RULE_UNMAPPED);

	/* a registration that is still valid */
	own_make(&own, test, DMA_TO_DEVICE);
	own_reg(&own, IB_ACCESS_REMOTE_READ);
	own_unmap(&own);
	KUNIT_ASSERT_EQ(test, lab_inv(own.lab, 1, own.lab->side[1].mr->rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(own.lab, 1, NULL), IB_WC_SUCCESS);
	own_end(&own, MEM_RULE_UNMAPPED);
}

/* What comes too late is reported, and does not reach memory that is somebody else's by then. */
static void test_too_late(struct kunit *test)
{
	struct page *page;
	struct own own;

	own_make(&own, test, DMA_FROM_DEVICE);
	own_reg(&own, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	page = pfn_to_page(PHYS_PFN(dma_to_phys(own.lab->dev->ib.dma_device, own.sge.addr)));
	/* This reference stands for the next owner of the page. */
	get_page(page);
	local_bh_disable();
	own_unmap(&own);
	/* Softirqs are disabled, as in an engine that is copying: it is not freed yet. */
	KUNIT_EXPECT_EQ(test, page_count(page), 2);
	local_bh_enable();
	own_written(&own);
	KUNIT_EXPECT_NULL(test, memchr_inv(page_address(page), OLD, PAGE_SIZE));
	put_page(page);
	own_end(&own, MEM_RULE_UNMAPPED);
}

static struct kunit_case dma_cases[] = {
	KUNIT_CASE(test_poison),
	KUNIT_CASE(test_poison_remote),
	KUNIT_CASE(test_no_sync_at_end),
	KUNIT_CASE(test_sync_send),
	KUNIT_CASE(test_sync_recv),
	KUNIT_CASE(test_direction),
	KUNIT_CASE(test_direction_registered),
	KUNIT_CASE(test_mapping),
	KUNIT_CASE(test_unmapped),
	KUNIT_CASE(test_too_late),
	{}
};

static struct kunit_suite dma_suite = {
	.name = "rdma_mem_dma",
	.test_cases = dma_cases,
};

kunit_test_suites(&dma_suite);
