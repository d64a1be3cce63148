// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of the device: faults on demand, and asynchronous events.
 */
#include <linux/delay.h>
#include <linux/rtnetlink.h>

#include "lab.h"

static int fault(struct lab *lab, const char *line)
{
	char text[64];

	strscpy(text, line, sizeof(text));
	return mem_fault_parse(lab->dev, text);
}

/* Each status, at a Send: the n-th fails, and the queue pair with it. */
static void test_status(struct kunit *test)
{
	static const struct {
		const char *line;
		enum ib_wc_status status;
	} faults[] = {
		{ "send 2 loc-len-err", IB_WC_LOC_LEN_ERR },
		{ "send 2 retry-exc-err", IB_WC_RETRY_EXC_ERR },
		{ "send 2 fatal-err", IB_WC_FATAL_ERR },
		{ "send 2 general-err", IB_WC_GENERAL_ERR },
	};
	struct lab *lab;
	int i;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		lab = lab_make(test, 0);
		KUNIT_EXPECT_EQ(test, fault(lab, faults[i].line), 0);
		KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
		KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 1, 100), 0);
		lab_post(lab, 0, IB_WR_SEND, 0, 100, IB_SEND_SIGNALED);
		lab_post(lab, 0, IB_WR_SEND, 0, 100, IB_SEND_SIGNALED);
		KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), faults[i].status);
		KUNIT_EXPECT_EQ(test, to_mem_qp(lab->side[0].qp)->state, IB_QPS_ERR);
		KUNIT_EXPECT_EQ(test, atomic_read(&lab->dev->fault_hits), 1);
		lab_end(lab);
	}
}

static void test_recv_status(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	KUNIT_EXPECT_EQ(test, fault(lab, "recv 1 loc-prot-err"), 0);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_REM_OP_ERR);
	lab_end(lab);
}

static void test_nonsense(struct kunit *test)
{
	static const char * const lines[] = {
		"send", "send 1", "send 0 hold", "send x hold", "send 1 success",
		"send 1 late", "send 1 hold 1", "post-send 1 hold", "send 1 nomem",
		"send 1 lose", "datagram 1 qp-fatal", "stop 1 hold", "stop 1 qp-fatal",
		"sent 1 hold",
	};
	struct lab *lab = lab_make(test, 0);
	int i;

	for (i = 0; i < ARRAY_SIZE(lines); i++)
		KUNIT_EXPECT_EQ_MSG(test, fault(lab, lines[i]), -EINVAL, "%s", lines[i]);
	KUNIT_EXPECT_EQ(test, atomic_read(&lab->dev->num_faults), 0);
	lab_end(lab);
}

static void test_hold(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, fault(lab, "send 1 hold"), 0);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 1, 100, IB_SEND_SIGNALED), 0);
	/* it has arrived */
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_SUCCESS);
	msleep(150);
	KUNIT_EXPECT_EQ(test, ib_poll_cq(lab->side[0].cq, 1, &wc), 0);
	KUNIT_EXPECT_EQ(test, fault(lab, "release"), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, &wc), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 201);
	lab_end(lab);
}

/* A completion that comes when its queue pair is in the error state, before those behind it */
static void test_until_end(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct lab *lab = lab_make(test, 0);
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, fault(lab, "recv 1 until-end"), 0);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 1, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
	msleep(150);
	KUNIT_EXPECT_EQ(test, ib_poll_cq(lab->side[1].cq, 1, &wc), 0);
	KUNIT_ASSERT_EQ(test, ib_modify_qp(lab->side[1].qp, &attr, IB_QP_STATE), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, &wc), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 100);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, &wc), IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 101);
	lab_end(lab);
}

/* A late completion comes when enough others follow, in order. */
static void test_late(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, fault(lab, "send 1 late 1"), 0);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 1, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ib_poll_cq(lab->side[0].cq, 1, &wc), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 1, 100, IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, &wc), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 200);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, &wc), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 201);
	lab_end(lab);
}

/* ... and after a while if none does */
static void test_late_alone(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	KUNIT_EXPECT_EQ(test, fault(lab, "recv 1 late 5"), 0);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 1, NULL), IB_WC_SUCCESS);
	lab_end(lab);
}

static void test_nomem(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	KUNIT_EXPECT_EQ(test, fault(lab, "post-send 1 nomem"), 0);
	KUNIT_EXPECT_EQ(test, fault(lab, "post-recv 2 nomem"), 0);
	KUNIT_EXPECT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	KUNIT_EXPECT_EQ(test, lab_recv(lab, 1, 1, 100), -ENOMEM);
	KUNIT_EXPECT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), -ENOMEM);
	KUNIT_EXPECT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, lab_violations(lab, MEM_RULE_STATE), 0);
	lab_end(lab);
}

static void test_qp_fatal(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);

	KUNIT_EXPECT_EQ(test, fault(lab, "send 1 qp-fatal"), 0);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 0, 1, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, lab->side[0].events, BIT(IB_EVENT_QP_FATAL));
	lab_end(lab);
}

static void test_last_wqe(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct lab *lab = lab_make(test, LAB_SRQ);

	KUNIT_ASSERT_EQ(test, ib_modify_qp(lab->side[1].qp, &attr, IB_QP_STATE), 0);
	msleep(20);
	KUNIT_EXPECT_EQ(test, lab->side[1].events, BIT(IB_EVENT_QP_LAST_WQE_REACHED));
	lab_end(lab);
}

static void set_up(struct net_device *ndev, bool up)
{
	rtnl_lock();
	if (up)
		dev_open(ndev, NULL);
	else
		dev_close(ndev);
	rtnl_unlock();
}

/* The port follows the network interface; while it is down nothing arrives. */
static void test_port(struct kunit *test)
{
	struct lab *lab = lab_make(test, 0);
	struct ib_port_attr attr;

	KUNIT_ASSERT_EQ(test, ib_query_port(&lab->dev->ib, 1, &attr), 0);
	KUNIT_EXPECT_EQ(test, attr.state, IB_PORT_ACTIVE);
	set_up(lab->ndev, false);
	KUNIT_ASSERT_EQ(test, ib_query_port(&lab->dev->ib, 1, &attr), 0);
	KUNIT_EXPECT_EQ(test, attr.state, IB_PORT_DOWN);
	KUNIT_ASSERT_EQ(test, lab_recv(lab, 1, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_post(lab, 0, IB_WR_SEND, 0, 100, 0), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(lab, 0, NULL), IB_WC_RETRY_EXC_ERR);
	set_up(lab->ndev, true);
	KUNIT_ASSERT_EQ(test, ib_query_port(&lab->dev->ib, 1, &attr), 0);
	KUNIT_EXPECT_EQ(test, attr.state, IB_PORT_ACTIVE);
	lab_end(lab);
}

static struct kunit_case fault_cases[] = {
	KUNIT_CASE(test_status),
	KUNIT_CASE(test_recv_status),
	KUNIT_CASE(test_nonsense),
	KUNIT_CASE(test_hold),
	KUNIT_CASE(test_until_end),
	KUNIT_CASE(test_late),
	KUNIT_CASE(test_late_alone),
	KUNIT_CASE(test_nomem),
	KUNIT_CASE(test_qp_fatal),
	KUNIT_CASE(test_last_wqe),
	KUNIT_CASE(test_port),
	{}
};

static struct kunit_suite fault_suite = {
	.name = "rdma_mem_faults",
	.test_cases = fault_cases,
};

kunit_test_suites(&fault_suite);
