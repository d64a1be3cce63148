// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of the device: each rule is broken once, and reported once.
 */
#include <linux/dma-direct.h>

#include "lab.h"

#define ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

static void expect_one(struct lab *lab, enum mem_rule rule)
{
	KUNIT_EXPECT_EQ(lab->test, lab_violations(lab, rule), 1);
	lab_end(lab);
}

static void reset(struct lab *lab)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };

	KUNIT_ASSERT_EQ(lab->test, ib_modify_qp(lab->side[0].qp, &attr, IB_QP_STATE), 0);
}

static void test_state(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	reset(lab);
	KUNIT_EXPECT_LT(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	expect_one(lab, MEM_RULE_STATE);

	lab = lab_make(test, 0);
	reset(lab);
	KUNIT_EXPECT_LT(test, lab_recv(lab, 0, 0, 100), 0);
	expect_one(lab, MEM_RULE_STATE);

	lab = lab_make(test, LAB_SRQ);
	{
		struct ib_recv_wr wr = {};

		KUNIT_EXPECT_LT(test, ib_post_recv(lab->side[1].qp, &wr, NULL), 0);
	}
	expect_one(lab, MEM_RULE_STATE);
}

static void test_opcode(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	KUNIT_EXPECT_LT(test, lab_post(lab, 0, IB_WR_LSO, 0, 100, 0), 0);
	expect_one(lab, MEM_RULE_OPCODE);
}

/* Register a side's buffer, and expect a status. */
static void reg(struct lab *lab, int side, int access, enum ib_wc_status status)
{
	KUNIT_ASSERT_EQ(lab->test, lab_reg(lab, side, access), 0);
	KUNIT_EXPECT_EQ(lab->test, lab_wait(lab, side, NULL), status);
}

static void test_sge_count(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_sge sge[LAB_SGE + 1] = {};
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND, .sg_list = sge, .num_sge = LAB_SGE + 1,
	};
	struct ib_recv_wr recv = { .sg_list = sge, .num_sge = LAB_SGE + 1 };

	KUNIT_EXPECT_LT(test, ib_post_send(lab->side[0].qp, &wr, NULL), 0);
	expect_one(lab, MEM_RULE_SGE_COUNT);

	lab = lab_make(test, 0);
	KUNIT_EXPECT_LT(test, ib_post_recv(lab->side[0].qp, &recv, NULL), 0);
	expect_one(lab, MEM_RULE_SGE_COUNT);
}

static void test_inline(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	KUNIT_EXPECT_LT(test, lab_post(lab, 0, IB_WR_SEND, 0, LAB_INLINE + 1, IB_SEND_INLINE),
			0);
	expect_one(lab, MEM_RULE_INLINE);
}

/* Slots are free when a later completion is polled, although all have been executed. */
static void test_sq_full(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	int i;

	for (i = 0; i < LAB_WRS; i++) {
		KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
		KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100,
					       i == LAB_WRS - 1 ? IB_SEND_SIGNALED : 0), 0);
		KUNIT_ASSERT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_LT(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	expect_one(lab, MEM_RULE_SQ_FULL);
}

static void test_rq_full(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	int i;

	for (i = 0; i < LAB_WRS; i++)
		KUNIT_ASSERT_EQ(test, lab_recv(lab, 0, 0, 100), 0);
	KUNIT_EXPECT_LT(test, lab_recv(lab, 0, 0, 100), 0);
	expect_one(lab, MEM_RULE_RQ_FULL);
}

/* Of a long chain, all are posted that have room, in order. */
static void test_rq_chain(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_recv_wr wr[LAB_WRS + 2] = {};
	const struct ib_recv_wr *bad = NULL;
	struct ib_wc wc;
	int i;

	for (i = 0; i < ARRAY_SIZE(wr); i++) {
		wr[i].wr_id = i;
		wr[i].next = i + 1 < ARRAY_SIZE(wr) ? &wr[i + 1] : NULL;
	}
	KUNIT_EXPECT_EQ(test, ib_post_recv(lab->side[1].qp, wr, &bad), -ENOMEM);
	KUNIT_EXPECT_PTR_EQ(test, bad, (const struct ib_recv_wr *)&wr[LAB_WRS]);
	for (i = 0; i < LAB_WRS; i++) {
		KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 0, IB_SEND_SIGNALED), 0);
		KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, &wc), IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, wc.wr_id, i);
	}
	expect_one(lab, MEM_RULE_RQ_FULL);
}

static void test_cq_overflow(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	to_mem_cq(lab->side[0].cq)->capacity = 1;
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 1, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, IB_SEND_SIGNALED), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_SUCCESS);
	expect_one(lab, MEM_RULE_CQ_OVERFLOW);
}

static void test_cq_poll(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct mem_cq *cq = to_mem_cq(lab->side[0].cq);
	struct ib_wc wc;

	set_bit(0, &cq->polling);
	KUNIT_EXPECT_LT(test, ib_poll_cq(&cq->ib, 1, &wc), 0);
	clear_bit(0, &cq->polling);
	expect_one(lab, MEM_RULE_CQ_POLL);
}

/* Post a Send whose SGE is wrong. */
static void bad_sge(struct lab *lab, const struct ib_sge *sge, enum mem_rule rule)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_SEND, .sg_list = (struct ib_sge *)sge, .num_sge = 1,
	};

	KUNIT_ASSERT_EQ(lab->test, lab_recv(lab, 1, 0, 100), 0);
	KUNIT_EXPECT_EQ(lab->test, ib_post_send(lab->side[0].qp, &wr, NULL), 0);
	KUNIT_EXPECT_EQ(lab->test, lab_wait(lab, 0, NULL), IB_WC_LOC_PROT_ERR);
	expect_one(lab, rule);
}

static void test_lkey(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_sge sge = lab_sge(lab, 0, 0, 100);

	sge.lkey = 0;
	bad_sge(lab, &sge, MEM_RULE_LKEY);

	/* never registered */
	lab = lab_make(test, 0);
	sge = lab_sge(lab, 0, 0, 100);
	sge.lkey = lab->side[0].mr->lkey;
	bad_sge(lab, &sge, MEM_RULE_LKEY);
}

static void test_address(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_sge sge = lab_sge(lab, 0, 0, 100);

	sge.addr = 1ULL << 52;
	bad_sge(lab, &sge, MEM_RULE_ADDRESS);
}

static int post_reg(struct lab *lab, u32 key)
{
	struct ib_reg_wr wr = {
		.wr = { .opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED },
		.mr = lab->side[0].mr, .access = ACCESS, .key = key,
	};

	return ib_post_send(lab->side[0].qp, &wr.wr, NULL);
}

/* Free memory, which has no mapping, and no bounce buffer where each mapping has one */
static void test_address_free(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_sge sge = lab_sge(lab, 0, 0, 100);
	/* so many that they do not go to a list of pages that are about to be used again */
	unsigned int order = PAGE_ALLOC_COSTLY_ORDER + 2;
	struct page *pages = alloc_pages(GFP_KERNEL, order);

	KUNIT_ASSERT_NOT_NULL(test, pages);
	/* the last of them is the last that is taken again */
	sge.addr = (uintptr_t)page_address(pages) + (PAGE_SIZE << order) - PAGE_SIZE;
	if (lab->dev->parent)
		sge.addr = phys_to_dma(&lab->dev->parent->dev, virt_to_phys((void *)sge.addr));
	__free_pages(pages, order);
	bad_sge(lab, &sge, MEM_RULE_ADDRESS);
}

/* A page list has an address that is none of memory. */
static void test_address_registered(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct lab_side *side = &lab->side[0];

	sg_init_table(side->sg, 1);
	sg_dma_address(side->sg) = 1ULL << 52;
	sg_dma_len(side->sg) = LAB_LEN;
	KUNIT_ASSERT_EQ(test, ib_map_mr_sg(side->mr, side->sg, 1, NULL, PAGE_SIZE), 1);
	KUNIT_ASSERT_EQ(test, post_reg(lab, side->mr->rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_LOC_QP_OP_ERR);
	expect_one(lab, MEM_RULE_ADDRESS);
}

static void test_access(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_sge sge;
	struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

	reg(lab, 0, IB_ACCESS_REMOTE_WRITE, IB_WC_LOC_QP_OP_ERR);
	expect_one(lab, MEM_RULE_ACCESS);

	/* a Receive in memory that may only be read */
	lab = lab_make(test, 0);
	reg(lab, 1, IB_ACCESS_REMOTE_READ, IB_WC_SUCCESS);
	sge.addr = lab->side[1].mr->iova;
	sge.length = 100;
	sge.lkey = lab->side[1].mr->lkey;
	KUNIT_ASSERT_EQ(test, ib_post_recv(lab->side[1].qp, &wr, NULL), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_REM_OP_ERR);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_LOC_PROT_ERR);
	expect_one(lab, MEM_RULE_ACCESS);
}

static void test_reg_valid(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	reg(lab, 0, ACCESS, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, post_reg(lab, lab->side[0].mr->rkey + 1), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_LOC_QP_OP_ERR);
	expect_one(lab, MEM_RULE_REG_VALID);
}

static void test_reg_key(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	KUNIT_ASSERT_EQ(test, post_reg(lab, lab->side[1].mr->rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_LOC_QP_OP_ERR);
	expect_one(lab, MEM_RULE_REG_KEY);
}

static void test_reg_pages(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	/* nothing was mapped */
	KUNIT_ASSERT_EQ(test, post_reg(lab, lab->side[0].mr->rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_LOC_QP_OP_ERR);
	expect_one(lab, MEM_RULE_REG_PAGES);
}

static void test_invalidate(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	KUNIT_ASSERT_EQ(test, lab_inv(lab, 0, lab->side[0].mr->rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_LOC_QP_OP_ERR);
	expect_one(lab, MEM_RULE_INVALIDATE);
}

static void test_mr_in_use(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct lab_side *side = &lab->side[0];

	reg(lab, 0, ACCESS, IB_WC_SUCCESS);
	ib_map_mr_sg(side->mr, side->sg, 1, NULL, PAGE_SIZE);
	expect_one(lab, MEM_RULE_MR_IN_USE);
}

/* The engine is slow enough to change the buffer before it looks. */
static void test_send_touched(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	lab->dev->latency = 20 * NSEC_PER_MSEC;
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	lab_fill(lab, 0, 0, 99, 1, 1);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_SUCCESS);
	expect_one(lab, MEM_RULE_SEND_TOUCHED);
}

static void test_send_reused(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 1, 100), 0);
	/* not signaled: its completion is that of the next one */
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_SUCCESS);
	lab_fill(lab, 0, 0, 99, 1, 1);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 1, 100, IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
	expect_one(lab, MEM_RULE_SEND_REUSED);
}

static void test_recv_touched(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	lab_fill(lab, 1, 0, 99, 1, 1);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_SUCCESS);
	expect_one(lab, MEM_RULE_RECV_TOUCHED);
}

static void test_psn(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	to_mem_qp(lab->side[0].qp)->attr.sq_psn++;
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_RETRY_EXC_ERR);
	/* once for each time that it was sent */
	KUNIT_EXPECT_EQ(test, lab_violations(lab, MEM_RULE_PSN), 3);
	lab_end(lab);
}

static void test_reads(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	to_mem_qp(lab->side[1].qp)->attr.max_dest_rd_atomic = 0;
	KUNIT_ASSERT_EQ(test, lab_rdma(lab, 0, IB_WR_RDMA_READ, 100, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_REM_INV_REQ_ERR);
	expect_one(lab, MEM_RULE_READS);

	lab = lab_make(test, 0);
	to_mem_qp(lab->side[0].qp)->attr.max_rd_atomic = 0;
	KUNIT_ASSERT_EQ(test, lab_rdma(lab, 0, IB_WR_RDMA_READ, 100, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_LOC_QP_OP_ERR);
	expect_one(lab, MEM_RULE_READS);
}

static void test_limit(struct kunit *test)
{
	struct ib_srq_init_attr srq = { .attr.max_sge = 1, .srq_type = IB_SRQT_BASIC };
	struct lab *lab = lab_make(test, 0);
	struct ib_mr *mr;

	mr = ib_alloc_mr(lab->pd, IB_MR_TYPE_MEM_REG,
			 lab->dev->limits.max_fast_reg_page_list_len + 1);
	KUNIT_EXPECT_TRUE(test, IS_ERR(mr));
	expect_one(lab, MEM_RULE_LIMIT);

	lab = lab_make(test, 0);
	srq.attr.max_wr = lab->dev->limits.max_srq_wr + 1;
	KUNIT_EXPECT_TRUE(test, IS_ERR(ib_create_srq(lab->pd, &srq)));
	expect_one(lab, MEM_RULE_LIMIT);

	lab = lab_make(test, 0);
	if (ib_resize_cq(lab->side[0].cq, lab->dev->limits.max_cqe + 1) == -EOPNOTSUPP)
		lab_end(lab);
	else
		expect_one(lab, MEM_RULE_LIMIT);
}

/* What is posted is drained before a queue pair is destroyed. */
static void test_drain(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC, .send_cq = lab->side[1].cq, .recv_cq = lab->side[1].cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, ib_modify_qp(lab->side[1].qp, &attr, IB_QP_STATE), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_WR_FLUSH_ERR);
	ib_destroy_qp(lab->side[1].qp);
	KUNIT_EXPECT_EQ(test, lab_violations(lab, MEM_RULE_DRAIN), 0);
	lab->side[1].qp = ib_create_qp(lab->pd, &init);
	KUNIT_ASSERT_FALSE(test, IS_ERR(lab->side[1].qp));

	KUNIT_ASSERT_EQ(test, lab_recv(lab, 0, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, ib_modify_qp(lab->side[0].qp, &attr, IB_QP_STATE), 0);
	ib_destroy_qp(lab->side[0].qp);
	KUNIT_EXPECT_EQ(test, lab_violations(lab, MEM_RULE_DRAIN), 1);
	lab->side[0].qp = ib_create_qp(lab->pd, &init);
	KUNIT_ASSERT_FALSE(test, IS_ERR(lab->side[0].qp));
	lab_end(lab);
}

static void test_left(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	atomic_inc(&lab->dev->num_mrs);
	mem_check_left(lab->dev);
	atomic_dec(&lab->dev->num_mrs);
	/* the two sides' registrations are one line; so are the PDs, CQs, and QPs */
	KUNIT_EXPECT_GE(test, lab_violations(lab, MEM_RULE_LEFT), 4);
	lab_end(lab);
}

static struct kunit_case rule_cases[] = {
	KUNIT_CASE(test_state),
	KUNIT_CASE(test_opcode),
	KUNIT_CASE(test_sge_count),
	KUNIT_CASE(test_inline),
	KUNIT_CASE(test_sq_full),
	KUNIT_CASE(test_rq_full),
	KUNIT_CASE(test_rq_chain),
	KUNIT_CASE(test_cq_overflow),
	KUNIT_CASE(test_cq_poll),
	KUNIT_CASE(test_lkey),
	KUNIT_CASE(test_address),
	KUNIT_CASE(test_address_free),
	KUNIT_CASE(test_address_registered),
	KUNIT_CASE(test_access),
	KUNIT_CASE(test_reg_valid),
	KUNIT_CASE(test_reg_key),
	KUNIT_CASE(test_reg_pages),
	KUNIT_CASE(test_invalidate),
	KUNIT_CASE(test_mr_in_use),
	KUNIT_CASE(test_send_touched),
	KUNIT_CASE(test_send_reused),
	KUNIT_CASE(test_recv_touched),
	KUNIT_CASE(test_psn),
	KUNIT_CASE(test_reads),
	KUNIT_CASE(test_limit),
	KUNIT_CASE(test_drain),
	KUNIT_CASE(test_left),
	{}
};

static struct kunit_suite rule_suite = {
	.name = "rdma_mem_rules",
	.test_cases = rule_cases,
};

kunit_test_suites(&rule_suite);
