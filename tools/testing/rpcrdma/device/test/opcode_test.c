// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of the device: what each kind of work request does, and that none of it
 * counts as a violation.
 */
#include <linux/delay.h>

#include "lab.h"

#define ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

static void expect_no_violation(struct lab *lab)
{
	KUNIT_EXPECT_EQ(lab->test, lab_violations(lab, MEM_RULE_STATE), 0);
}

/* Send from side 0 and look at what side 1 gets. */
static void send(struct lab *lab, enum ib_wr_opcode opcode, u32 len, int flags,
		 struct ib_wc *wc)
{
	struct kunit *test = lab->test;

	lab_fill(lab, 0, 0, 0, 0x5a, len);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, LAB_LEN), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, opcode, 0, len, flags | IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, wc), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc->wr_id, 200);
	KUNIT_EXPECT_EQ(test, wc->opcode, IB_WC_SEND);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, wc), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc->wr_id, 100);
	KUNIT_EXPECT_EQ(test, wc->opcode, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, wc->byte_len, len);
	KUNIT_EXPECT_PTR_EQ(test, wc->qp, lab->side[1].qp);
	KUNIT_EXPECT_EQ(test, memcmp(lab_data(lab, 0, 0), lab_data(lab, 1, 0), len), 0);
}

static void test_send(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_wc wc;

	send(lab, IB_WR_SEND, LAB_LEN, 0, &wc);
	KUNIT_EXPECT_EQ(test, wc.wc_flags, 0);
	send(lab, IB_WR_SEND, 0, 0, &wc);
	expect_no_violation(lab);
	KUNIT_EXPECT_EQ(test, mem_stat_sum(lab->dev, MEM_STAT_OCTETS), LAB_LEN);
	lab_end(lab);
}

static void test_send_inline(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_wc wc;

	send(lab, IB_WR_SEND, LAB_INLINE, IB_SEND_INLINE, &wc);
	expect_no_violation(lab);
	KUNIT_EXPECT_EQ(test, mem_stat_sum(lab->dev, MEM_STAT_INLINE_OCTETS), LAB_INLINE);
	lab_end(lab);
}

static void test_send_imm(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_wc wc;

	send(lab, IB_WR_SEND_WITH_IMM, 100, 0, &wc);
	KUNIT_EXPECT_EQ(test, wc.wc_flags, IB_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(wc.ex.imm_data), 0x12345678);
	expect_no_violation(lab);
	lab_end(lab);
}

/* Register side 1's second buffer. */
static u32 reg(struct lab *lab, int access)
{
	KUNIT_ASSERT_EQ(lab->test, lab_reg(lab, 1, access), 0);
	KUNIT_ASSERT_EQ(lab->test, lab_wait(lab, 1, NULL), IB_WC_SUCCESS);
	return lab->side[1].mr->rkey;
}

static void test_send_inv(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_wc wc;
	u32 rkey;

	rkey = reg(lab, ACCESS);
	send(lab, IB_WR_SEND_WITH_INV, 100, 0, &wc);
	KUNIT_EXPECT_EQ(test, wc.wc_flags, IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, wc.ex.invalidate_rkey, rkey);
	/* it is not valid any more, so it can be registered again */
	KUNIT_EXPECT_NE(test, reg(lab, ACCESS), rkey);
	expect_no_violation(lab);
	lab_end(lab);
}

static void test_write(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	const u8 *target;
	u32 rkey;

	rkey = reg(lab, ACCESS);
	lab_fill(lab, 0, 0, 0, 0x5a, LAB_LEN);
	/* from the middle of a page to the middle of the next */
	KUNIT_ASSERT_EQ(test, lab_rdma(lab, 0, IB_WR_RDMA_WRITE, PAGE_SIZE,
				       lab->side[1].mr->iova + 100, rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
	target = lab_data(lab, 1, 1);
	KUNIT_EXPECT_EQ(test, target[99], 0);
	KUNIT_EXPECT_EQ(test, target[100], 0x5a);
	KUNIT_EXPECT_EQ(test, target[100 + PAGE_SIZE - 1], 0x5a);
	KUNIT_EXPECT_EQ(test, target[100 + PAGE_SIZE], 0);
	expect_no_violation(lab);
	lab_end(lab);
}

static void test_write_imm(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_wc wc;
	u32 rkey;

	rkey = reg(lab, ACCESS);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 0), 0);
	KUNIT_ASSERT_EQ(test, lab_rdma(lab, 0, IB_WR_RDMA_WRITE_WITH_IMM, 100,
				       lab->side[1].mr->iova, rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, &wc), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_RECV_RDMA_WITH_IMM);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(wc.ex.imm_data), 0x12345678);
	expect_no_violation(lab);
	lab_end(lab);
}

static void test_read(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	u32 rkey;

	rkey = reg(lab, ACCESS);
	lab_fill(lab, 1, 1, 0, 0xa5, LAB_LEN);
	KUNIT_ASSERT_EQ(test, lab_rdma(lab, 0, IB_WR_RDMA_READ, LAB_LEN,
				       lab->side[1].mr->iova, rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, memcmp(lab_data(lab, 0, 0), lab_data(lab, 1, 1), LAB_LEN), 0);
	expect_no_violation(lab);
	lab_end(lab);
}

/* A Read and a Write in parts: a part ends within a page, and within the last one. */
static void test_parts(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	u32 rkey;

	lab->dev->burst = 3000;
	rkey = reg(lab, ACCESS);
	lab_fill(lab, 0, 0, 0, 1, LAB_LEN);
	lab_fill(lab, 0, 0, 3000, 2, LAB_LEN - 3000);
	lab_fill(lab, 0, 0, 6000, 3, LAB_LEN - 6000);
	KUNIT_ASSERT_EQ(test, lab_rdma(lab, 0, IB_WR_RDMA_WRITE, LAB_LEN,
				       lab->side[1].mr->iova, rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, memcmp(lab_data(lab, 0, 0), lab_data(lab, 1, 1), LAB_LEN), 0);
	lab_fill(lab, 0, 0, 0, 0, LAB_LEN);
	KUNIT_ASSERT_EQ(test, lab_rdma(lab, 0, IB_WR_RDMA_READ, LAB_LEN,
				       lab->side[1].mr->iova, rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, memcmp(lab_data(lab, 0, 0), lab_data(lab, 1, 1), LAB_LEN), 0);
	KUNIT_EXPECT_EQ(test, mem_stat_sum(lab->dev, MEM_STAT_OCTETS), 2 * LAB_LEN);
	expect_no_violation(lab);
	lab_end(lab);
}

/*
 * Side 0 has a long Write. A Send to it by side 1, whose doorbell is rung later on the same
 * CPU, does not wait for its end, unless side 0 may copy so much at once.
 */
static void turns(struct kunit *test, u32 burst, enum ib_wc_opcode first)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_wc wc;
	u32 rkey;

	lab->dev->burst = burst;
	rkey = reg(lab, ACCESS);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 0, 1, 100), 0);
	local_bh_disable();
	lab_rdma(lab, 0, IB_WR_RDMA_WRITE, LAB_LEN, lab->side[1].mr->iova, rkey);
	lab_post(lab, 1, IB_WR_SEND, 0, 0, IB_SEND_SIGNALED);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, &wc), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, first);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, &wc), IB_WC_SUCCESS);
	KUNIT_EXPECT_NE(test, wc.opcode, first);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, &wc), IB_WC_SUCCESS);
	expect_no_violation(lab);
	lab_end(lab);
}

static void test_turns(struct kunit *test)
{
	turns(test, LAB_LEN / 4, IB_WC_RECV);
	turns(test, LAB_LEN, IB_WC_RDMA_WRITE);
}

/* The device says what memory it has for a registration, and that it is given back. */
static void test_memory(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	long before = atomic_long_read(&lab->dev->memory);
	struct ib_mr *mr = ib_alloc_mr(lab->pd, IB_MR_TYPE_MEM_REG, 64);

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_EXPECT_GE(test, atomic_long_read(&lab->dev->memory) - before,
			(long)(64 * sizeof(u64) + sizeof(struct mem_mr)));
	ib_dereg_mr(mr);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&lab->dev->memory), before);
	lab_end(lab);
}

static void test_local_inv(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	u32 rkey;

	rkey = reg(lab, ACCESS);
	KUNIT_ASSERT_EQ(test, lab_inv(lab, 1, rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_SUCCESS);
	/* the peer is told, and it is no violation of the owner */
	KUNIT_ASSERT_EQ(test, lab_rdma(lab, 0, IB_WR_RDMA_WRITE, 100,
				       lab->side[1].mr->iova, rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_TRUE(test, lab->side[1].events & BIT(IB_EVENT_QP_ACCESS_ERR));
	expect_no_violation(lab);
	lab_end(lab);
}

/* What the peer may not do ends in a remote access error. */
static void remote_error(struct kunit *test, int access, enum ib_wr_opcode opcode, u64 offset,
			 u32 len)
{
	struct lab *lab = lab_make(test, 0);
	u32 rkey;

	rkey = reg(lab, access);
	KUNIT_ASSERT_EQ(test, lab_rdma(lab, 0, opcode, len,
				       lab->side[1].mr->iova + offset, rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, mem_stat_sum(lab->dev, MEM_STAT_REMOTE_ERRORS), 1);
	expect_no_violation(lab);
	lab_end(lab);
}

static void test_remote_errors(struct kunit *test)
{
	remote_error(test, IB_ACCESS_REMOTE_READ, IB_WR_RDMA_WRITE, 0, 100);
	remote_error(test, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE, IB_WR_RDMA_READ,
		     0, 100);
	remote_error(test, ACCESS, IB_WR_RDMA_WRITE, LAB_LEN - 99, 100);
	remote_error(test, ACCESS, IB_WR_RDMA_WRITE, -1, 100);
}

/* A Send is longer than the Receive: both ends are told. */
static void test_length(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 99), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_REM_INV_REQ_ERR);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_LOC_LEN_ERR);
	expect_no_violation(lab);
	lab_end(lab);
}

/* The peer has no Receive: the first Send fails after its retries, and flushes the others. */
static void test_rnr(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 1, 100, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, &wc), IB_WC_RNR_RETRY_EXC_ERR);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 200);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, &wc), IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 201);
	KUNIT_EXPECT_EQ(test, mem_stat_sum(lab->dev, MEM_STAT_RNR_NAKS), 3);
	expect_no_violation(lab);
	lab_end(lab);
}

/* The peer does not answer. */
static void test_retries(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct lab *lab = lab_make(test, 0);

	KUNIT_ASSERT_EQ(test, ib_modify_qp(lab->side[1].qp, &attr, IB_QP_STATE), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_EQ(test, mem_stat_sum(lab->dev, MEM_STAT_RETRIES), 3);
	expect_no_violation(lab);
	lab_end(lab);
}

/* In the error state everything is flushed, in order. */
static void test_flush(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct lab *lab = lab_make(test, 0);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, lab_recv(lab, 0, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 0, 1, 100), 0);
	KUNIT_ASSERT_EQ(test, ib_modify_qp(lab->side[0].qp, &attr, IB_QP_STATE), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, &wc), IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 100);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, &wc), IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 101);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, &wc), IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 200);
	ib_drain_qp(lab->side[0].qp);
	expect_no_violation(lab);
	lab_end(lab);
}

/* With completions in it, a queue gets larger, and smaller again, but not too small. */
static void test_cq_resize(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_cq *cq = lab->side[0].cq;
	struct ib_wc wc;
	int i;

	/* where the queue begins is not where its memory does */
	for (i = 0; i < 3; i++)
		send(lab, IB_WR_SEND, 100, 0, &wc);
	for (i = 0; i < LAB_WRS; i++) {
		KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, i & 1, 100), 0);
		KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, i & 1, 100,
					       IB_SEND_SIGNALED), 0);
		KUNIT_ASSERT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_SUCCESS);
	}
	if (ib_resize_cq(cq, LAB_WRS) == -EOPNOTSUPP) {
		lab_end(lab);
		kunit_skip(test, "the kernel does not resize its completion queues");
	}
	KUNIT_EXPECT_EQ(test, cq->cqe, LAB_WRS);
	KUNIT_EXPECT_EQ(test, ib_resize_cq(cq, LAB_WRS - 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, cq->cqe, LAB_WRS);
	KUNIT_EXPECT_EQ(test, ib_resize_cq(cq, 4 * LAB_CQES), 0);
	for (i = 0; i < LAB_WRS; i++) {
		KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, &wc), IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, wc.wr_id, 200 + (i & 1));
	}
	send(lab, IB_WR_SEND, 100, 0, &wc);
	expect_no_violation(lab);
	lab_end(lab);
}

static void test_srq(struct kunit *test)
{
	struct ib_srq_attr attr = { .srq_limit = 2 };
	struct lab *lab = lab_make(test, LAB_SRQ);
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, ib_modify_srq(lab->srq, &attr, IB_SRQ_LIMIT), 0);
	send(lab, IB_WR_SEND, 100, 0, &wc);
	KUNIT_EXPECT_EQ(test, ib_query_srq(lab->srq, &attr), 0);
	/* the limit was reached, and is not armed any more */
	KUNIT_EXPECT_EQ(test, attr.srq_limit, 0);
	expect_no_violation(lab);
	lab_end(lab);
}

/* An SRQ keeps its Receives when it is resized, and is not made too small for them. */
static void test_srq_resize(struct kunit *test)
{
	struct ib_srq_attr attr = { .max_wr = 2 * LAB_WRS };
	struct lab *lab = lab_make(test, LAB_SRQ);
	struct ib_wc wc;
	int i;

	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 1, LAB_LEN), 0);
	KUNIT_ASSERT_EQ(test, ib_modify_srq(lab->srq, &attr, IB_SRQ_MAX_WR), 0);
	for (i = 1; i < 2 * LAB_WRS; i++)
		KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, LAB_LEN), 0);
	attr.max_wr = LAB_WRS;
	KUNIT_EXPECT_EQ(test, ib_modify_srq(lab->srq, &attr, IB_SRQ_MAX_WR), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_query_srq(lab->srq, &attr), 0);
	KUNIT_EXPECT_EQ(test, attr.max_wr, 2 * LAB_WRS);
	for (i = 0; i < 2 * LAB_WRS; i++) {
		KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, IB_SEND_SIGNALED), 0);
		KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, &wc), IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, wc.wr_id, i ? 100 : 101);
	}
	expect_no_violation(lab);
	lab_end(lab);
}

static unsigned int interrupts;

static void count_interrupt(struct ib_cq *cq, void *context)
{
	interrupts++;
}

/* An armed queue interrupts once, for a solicited event if it is armed for these. */
static void test_interrupt(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_cq *cq = lab->side[1].cq;
	struct ib_wc wc;

	interrupts = 0;
	cq->comp_handler = count_interrupt;
	send(lab, IB_WR_SEND, 100, 0, &wc);
	KUNIT_EXPECT_EQ(test, interrupts, 0);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(cq, IB_CQ_SOLICITED), 0);
	send(lab, IB_WR_SEND, 100, 0, &wc);
	KUNIT_EXPECT_EQ(test, interrupts, 0);
	send(lab, IB_WR_SEND, 100, IB_SEND_SOLICITED, &wc);
	msleep(20);
	KUNIT_EXPECT_EQ(test, interrupts, 1);
	send(lab, IB_WR_SEND, 100, IB_SEND_SOLICITED, &wc);
	msleep(20);
	KUNIT_EXPECT_EQ(test, interrupts, 1);
	lab_end(lab);
}

/* With moderation, fewer completions interrupt only after a time. */
static void test_moderation(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_cq *cq = lab->side[1].cq;
	struct ib_wc wc;

	interrupts = 0;
	cq->comp_handler = count_interrupt;
	KUNIT_EXPECT_EQ(test, rdma_set_cq_moderation(cq, 2, 60000), 0);
	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP), 0);
	send(lab, IB_WR_SEND, 100, 0, &wc);
	KUNIT_EXPECT_EQ(test, interrupts, 0);
	msleep(120);
	KUNIT_EXPECT_EQ(test, interrupts, 1);
	lab_end(lab);
}

/* An operation takes as long as the device's settings say. */
static void test_latency(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_wc wc;
	u64 start;

	start = ktime_get_ns();
	lab->dev->latency = 20 * NSEC_PER_MSEC;
	send(lab, IB_WR_SEND, 100, 0, &wc);
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, 20 * NSEC_PER_MSEC);
	lab->dev->latency = 0;
	lab->dev->bandwidth = 100 * LAB_LEN;
	start = ktime_get_ns();
	send(lab, IB_WR_SEND, LAB_LEN, 0, &wc);
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, 10 * NSEC_PER_MSEC);
	expect_no_violation(lab);
	lab_end(lab);
}

/*
 * A message of one packet does not wait for a long Write of another queue pair, which takes
 * 500 ms here. Together such messages take the time that all their octets need.
 */
static void test_wire_packets(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_wc wc;
	u64 start;
	u32 rkey;

	rkey = reg(lab, ACCESS);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 0, 1, 100), 0);
	lab->dev->bandwidth = 2 * LAB_LEN;
	KUNIT_ASSERT_EQ(test, lab_rdma(lab, 0, IB_WR_RDMA_WRITE, LAB_LEN,
				       lab->side[1].mr->iova, rkey), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 1, IB_WR_SEND, 0, 100, IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, &wc), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_RECV);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, &wc), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_RDMA_WRITE);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, &wc), IB_WC_SUCCESS);

	KUNIT_ASSERT_EQ(test, lab_recv(lab, 0, 1, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 1, 100), 0);
	lab->dev->bandwidth = 2000;
	start = ktime_get_ns();
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 1, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, &wc), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, &wc), IB_WC_SUCCESS);
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, 100 * NSEC_PER_MSEC);
	expect_no_violation(lab);
	lab_end(lab);
}

/*
 * All of a long Write but its last packet is copied at once. Its completion, and a Send after
 * it, come when it has passed the wire.
 */
static void test_wire_write(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	u64 start;
	u32 rkey;

	rkey = reg(lab, ACCESS);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	lab_fill(lab, 0, 0, 0, 1, LAB_LEN);
	lab_fill(lab, 1, 1, 0, 0, LAB_LEN);
	lab->dev->bandwidth = 2 * LAB_LEN;
	start = ktime_get_ns();
	KUNIT_ASSERT_EQ(test, lab_rdma(lab, 0, IB_WR_RDMA_WRITE, LAB_LEN,
				       lab->side[1].mr->iova, rkey), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_data(lab, 1, 1)[0], 1);
	KUNIT_EXPECT_EQ(test, lab_data(lab, 1, 1)[LAB_LEN - 1], 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, 500 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, memcmp(lab_data(lab, 0, 0), lab_data(lab, 1, 1), LAB_LEN), 0);
	expect_no_violation(lab);
	lab_end(lab);
}

/* A Write without a completion is over at once, but a Send after it waits all the same. */
static void test_wire_unsignaled(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_sge sge = lab_sge(lab, 0, 0, LAB_LEN);
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 },
	};
	u64 start;

	wr.rkey = reg(lab, ACCESS);
	wr.remote_addr = lab->side[1].mr->iova;
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	lab_fill(lab, 0, 0, 0, 1, LAB_LEN);
	lab->dev->bandwidth = 2 * LAB_LEN;
	start = ktime_get_ns();
	KUNIT_ASSERT_EQ(test, ib_post_send(lab->side[0].qp, &wr.wr, NULL), 0);
	KUNIT_EXPECT_EQ(test, memcmp(lab_data(lab, 0, 0), lab_data(lab, 1, 1), LAB_LEN), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, 500 * NSEC_PER_MSEC);
	expect_no_violation(lab);
	lab_end(lab);
}

static struct kunit_case opcode_cases[] = {
	KUNIT_CASE(test_send),
	KUNIT_CASE(test_send_inline),
	KUNIT_CASE(test_send_imm),
	KUNIT_CASE(test_send_inv),
	KUNIT_CASE(test_write),
	KUNIT_CASE(test_write_imm),
	KUNIT_CASE(test_read),
	KUNIT_CASE(test_parts),
	KUNIT_CASE(test_turns),
	KUNIT_CASE(test_memory),
	KUNIT_CASE(test_local_inv),
	KUNIT_CASE(test_remote_errors),
	KUNIT_CASE(test_length),
	KUNIT_CASE(test_rnr),
	KUNIT_CASE(test_retries),
	KUNIT_CASE(test_flush),
	KUNIT_CASE(test_cq_resize),
	KUNIT_CASE(test_srq),
	KUNIT_CASE(test_srq_resize),
	KUNIT_CASE(test_interrupt),
	KUNIT_CASE(test_moderation),
	KUNIT_CASE(test_latency),
	KUNIT_CASE(test_wire_packets),
	KUNIT_CASE(test_wire_write),
	KUNIT_CASE(test_wire_unsignaled),
	{}
};

static struct kunit_suite opcode_suite = {
	.name = "rdma_mem_opcodes",
	.test_cases = opcode_cases,
};

kunit_test_suites(&opcode_suite);
