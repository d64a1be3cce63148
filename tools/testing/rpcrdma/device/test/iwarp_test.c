// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of the device as one of iWARP: how connections begin and end, as iw_cm sees
 * it, and each rule that RoCE does not have, broken once.
 */
#include <linux/delay.h>
#include <linux/in.h>
#include <rdma/iw_cm.h>

#include "lab.h"

#define ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)
#define PORT	20049

enum { CLIENT, SERVER, LISTENER, NUM_IDS };

/* An identifier as iw_cm's, which notes what it is told */
struct iw_id {
	struct iw_cm_id id;
	int refs;
	unsigned int events;		/* bits of enum iw_cm_event_type */
	struct iw_cm_event last;
	char data[8];			/* of that event */
	int fail;			/* what the next event returns */
};

struct iw_lab {
	struct lab *lab;
	struct iw_id ids[NUM_IDS];
};

static int iw_event(struct iw_cm_id *id, struct iw_cm_event *event)
{
	struct iw_id *own = container_of(id, struct iw_id, id);
	int ret = own->fail;

	own->fail = 0;
	if (ret)
		return ret;
	/* none is told twice */
	if (own->events & BIT(event->event))
		own->events |= BIT(31);
	own->events |= BIT(event->event);
	own->last = *event;
	memset(own->data, 0, sizeof(own->data));
	memcpy(own->data, event->private_data,
	       min_t(size_t, event->private_data_len, sizeof(own->data) - 1));
	return 0;
}

static void iw_add_ref(struct iw_cm_id *id)
{
	container_of(id, struct iw_id, id)->refs++;
}

static void iw_rem_ref(struct iw_cm_id *id)
{
	container_of(id, struct iw_id, id)->refs--;
}

static void set_addr(struct sockaddr_storage *addr, u16 port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x0a110001);
	in->sin_port = htons(port);
}

static struct ib_device *iw_device(struct iw_lab *iw)
{
	return &iw->lab->dev->ib;
}

/* Two queue pairs without a connection, and identifiers */
static struct iw_lab *iw_make(struct kunit *test)
{
	struct iw_lab *iw = kunit_kzalloc(test, sizeof(*iw), GFP_KERNEL);
	struct ib_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
	};
	int mask = IB_QP_STATE | IB_QP_PORT | IB_QP_ACCESS_FLAGS;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, iw);
	iw->lab = lab_make(test, LAB_IWARP);
	for (i = 0; i < NUM_IDS; i++) {
		struct iw_cm_id *id = &iw->ids[i].id;

		id->device = iw_device(iw);
		id->event_handler = iw_event;
		id->add_ref = iw_add_ref;
		id->rem_ref = iw_rem_ref;
	}
	set_addr(&iw->ids[CLIENT].id.local_addr, 1000);
	set_addr(&iw->ids[CLIENT].id.remote_addr, PORT);
	set_addr(&iw->ids[LISTENER].id.local_addr, PORT);
	for (i = 0; i < 2; i++) {
		attr.qp_state = IB_QPS_INIT;
		KUNIT_ASSERT_EQ(test, ib_modify_qp(iw->lab->side[i].qp, &attr, mask), 0);
		attr.qp_state = IB_QPS_RTR;
		KUNIT_ASSERT_EQ(test, ib_modify_qp(iw->lab->side[i].qp, &attr, mask), 0);
	}
	return iw;
}

/* The end: nothing refers to an identifier any more. */
static void iw_end(struct iw_lab *iw)
{
	struct kunit *test = iw->lab->test;
	int i;

	lab_end(iw->lab);
	for (i = 0; i < NUM_IDS; i++) {
		KUNIT_EXPECT_EQ(test, iw->ids[i].refs, 0);
		KUNIT_EXPECT_FALSE(test, iw->ids[i].events & BIT(31));
	}
}

static void listen(struct iw_lab *iw)
{
	KUNIT_ASSERT_EQ(iw->lab->test,
			iw_device(iw)->ops.iw_create_listen(&iw->ids[LISTENER].id, 1), 0);
}

static void listen_no_more(struct iw_lab *iw)
{
	KUNIT_EXPECT_EQ(iw->lab->test,
			iw_device(iw)->ops.iw_destroy_listen(&iw->ids[LISTENER].id), 0);
}

static int connect(struct iw_lab *iw)
{
	struct iw_cm_conn_param param = {
		.private_data = "hello", .private_data_len = 5, .ord = 2, .ird = 3,
		.qpn = iw->lab->side[CLIENT].qp->qp_num,
	};

	return iw_device(iw)->ops.iw_connect(&iw->ids[CLIENT].id, &param);
}

static int accept(struct iw_lab *iw)
{
	struct iw_cm_conn_param param = {
		.private_data = "welcome", .private_data_len = 7, .ord = 3, .ird = 2,
		.qpn = iw->lab->side[SERVER].qp->qp_num,
	};

	/* what iw_cm does for a new connection */
	iw->ids[SERVER].id.provider_data = iw->ids[LISTENER].last.provider_data;
	return iw_device(iw)->ops.iw_accept(&iw->ids[SERVER].id, &param);
}

/* Both sides connected */
static struct iw_lab *iw_connected(struct kunit *test)
{
	struct iw_lab *iw = iw_make(test);

	listen(iw);
	KUNIT_ASSERT_EQ(test, connect(iw), 0);
	KUNIT_ASSERT_EQ(test, accept(iw), 0);
	listen_no_more(iw);
	return iw;
}

static int move(struct iw_lab *iw, int side, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return ib_modify_qp(iw->lab->side[side].qp, &attr, IB_QP_STATE);
}

static enum ib_qp_state state(struct iw_lab *iw, int side)
{
	return READ_ONCE(to_mem_qp(iw->lab->side[side].qp)->state);
}

/* One event, and nothing else, was told with a status. */
static void expect_told(struct iw_lab *iw, int id, enum iw_cm_event_type type, int status)
{
	KUNIT_EXPECT_EQ(iw->lab->test, iw->ids[id].events, BIT(type));
	KUNIT_EXPECT_EQ(iw->lab->test, iw->ids[id].last.status, status);
}

static void end_without_violation(struct iw_lab *iw)
{
	KUNIT_EXPECT_EQ(iw->lab->test, lab_violations(iw->lab, MEM_RULE_STATE), 0);
	iw_end(iw);
}

static void end_with_one(struct iw_lab *iw, enum mem_rule rule)
{
	KUNIT_EXPECT_EQ(iw->lab->test, lab_violations(iw->lab, rule), 1);
	iw_end(iw);
}

static void test_connect(struct kunit *test)
{
	struct iw_lab *iw = iw_make(test);
	const struct iw_cm_event *last;

	listen(iw);
	KUNIT_ASSERT_EQ(test, connect(iw), 0);
	expect_told(iw, LISTENER, IW_CM_EVENT_CONNECT_REQUEST, 0);
	last = &iw->ids[LISTENER].last;
	KUNIT_EXPECT_STREQ(test, iw->ids[LISTENER].data, "hello");
	KUNIT_EXPECT_EQ(test, last->ird, 3);
	KUNIT_EXPECT_EQ(test, last->ord, 2);
	KUNIT_EXPECT_EQ(test, ((struct sockaddr_in *)&last->local_addr)->sin_port,
			htons(PORT));
	KUNIT_EXPECT_EQ(test, ((struct sockaddr_in *)&last->remote_addr)->sin_port,
			htons(1000));
	KUNIT_EXPECT_EQ(test, iw->ids[CLIENT].events, 0);

	KUNIT_ASSERT_EQ(test, accept(iw), 0);
	expect_told(iw, CLIENT, IW_CM_EVENT_CONNECT_REPLY, 0);
	KUNIT_EXPECT_STREQ(test, iw->ids[CLIENT].data, "welcome");
	expect_told(iw, SERVER, IW_CM_EVENT_ESTABLISHED, 0);
	KUNIT_EXPECT_EQ(test, state(iw, CLIENT), IB_QPS_RTS);
	KUNIT_EXPECT_EQ(test, state(iw, SERVER), IB_QPS_RTS);
	/* a request has one answer */
	KUNIT_EXPECT_EQ(test, accept(iw), -ECONNRESET);
	listen_no_more(iw);

	KUNIT_ASSERT_EQ(test, lab_recv(iw->lab, SERVER, 0, 100), 0);
	KUNIT_ASSERT_EQ(test, lab_post(iw->lab, CLIENT, IB_WR_SEND, 0, 100,
				       IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(iw->lab, CLIENT, NULL), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, lab_wait(iw->lab, SERVER, NULL), IB_WC_SUCCESS);
	end_without_violation(iw);
}

static void test_nobody_listens(struct kunit *test)
{
	struct iw_lab *iw = iw_make(test);

	KUNIT_EXPECT_EQ(test, connect(iw), 0);
	expect_told(iw, CLIENT, IW_CM_EVENT_CONNECT_REPLY, -ECONNRESET);

	/* another port */
	iw->ids[CLIENT].events = 0;
	set_addr(&iw->ids[LISTENER].id.local_addr, PORT + 1);
	listen(iw);
	KUNIT_EXPECT_EQ(test, connect(iw), 0);
	expect_told(iw, CLIENT, IW_CM_EVENT_CONNECT_REPLY, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, iw->ids[LISTENER].events, 0);
	listen_no_more(iw);

	/* the network is down */
	iw->ids[CLIENT].events = 0;
	WRITE_ONCE(iw->lab->dev->port_up, false);
	KUNIT_EXPECT_EQ(test, connect(iw), 0);
	expect_told(iw, CLIENT, IW_CM_EVENT_CONNECT_REPLY, -ETIMEDOUT);
	end_without_violation(iw);
}

static void test_reject(struct kunit *test)
{
	struct iw_lab *iw = iw_make(test);
	struct iw_cm_id *server = &iw->ids[SERVER].id;

	listen(iw);
	KUNIT_ASSERT_EQ(test, connect(iw), 0);
	server->provider_data = iw->ids[LISTENER].last.provider_data;
	KUNIT_EXPECT_EQ(test, iw_device(iw)->ops.iw_reject(server, "no", 2), 0);
	expect_told(iw, CLIENT, IW_CM_EVENT_CONNECT_REPLY, -ECONNREFUSED);
	KUNIT_EXPECT_STREQ(test, iw->ids[CLIENT].data, "no");
	KUNIT_EXPECT_EQ(test, iw_device(iw)->ops.iw_reject(server, "no", 2), -ECONNRESET);
	listen_no_more(iw);
	end_without_violation(iw);
}

/* A request that nobody can answer any more is over, and its number means nothing. */
static void test_request_ends(struct kunit *test)
{
	struct iw_lab *iw = iw_make(test);

	listen(iw);
	KUNIT_ASSERT_EQ(test, connect(iw), 0);
	listen_no_more(iw);
	expect_told(iw, CLIENT, IW_CM_EVENT_CONNECT_REPLY, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, accept(iw), -ECONNRESET);

	/* the user has no room for one more request */
	iw->ids[CLIENT].events = 0;
	iw->ids[LISTENER].events = 0;
	listen(iw);
	iw->ids[LISTENER].fail = -ENOMEM;
	KUNIT_ASSERT_EQ(test, connect(iw), 0);
	expect_told(iw, CLIENT, IW_CM_EVENT_CONNECT_REPLY, -ECONNRESET);

	/* the client goes */
	iw->ids[CLIENT].events = 0;
	KUNIT_ASSERT_EQ(test, connect(iw), 0);
	KUNIT_EXPECT_EQ(test, move(iw, CLIENT, IB_QPS_ERR), 0);
	expect_told(iw, CLIENT, IW_CM_EVENT_CONNECT_REPLY, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, accept(iw), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, iw->ids[SERVER].events, 0);
	listen_no_more(iw);
	end_without_violation(iw);
}

/* Nobody answers, as if iw_cm had dropped the request. */
static void test_no_answer(struct kunit *test)
{
	unsigned long timeout = mem_iw_connect_timeout;
	struct iw_lab *iw = iw_make(test);
	int tries;

	listen(iw);
	mem_iw_connect_timeout = 1;
	KUNIT_EXPECT_EQ(test, connect(iw), 0);
	mem_iw_connect_timeout = timeout;
	for (tries = 0; tries < 1000 && !READ_ONCE(iw->ids[CLIENT].events); tries++)
		usleep_range(1000, 2000);
	flush_workqueue(mem_wq);
	expect_told(iw, CLIENT, IW_CM_EVENT_CONNECT_REPLY, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, accept(iw), -ECONNRESET);
	listen_no_more(iw);
	end_without_violation(iw);
}

/* The reply cannot be told: neither end has a connection. */
static void test_reply_fails(struct kunit *test)
{
	struct iw_lab *iw = iw_make(test);

	listen(iw);
	KUNIT_ASSERT_EQ(test, connect(iw), 0);
	iw->ids[CLIENT].fail = -ENOMEM;
	KUNIT_EXPECT_EQ(test, accept(iw), -ECONNRESET);
	expect_told(iw, CLIENT, IW_CM_EVENT_CONNECT_REPLY, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, iw->ids[SERVER].events, 0);
	KUNIT_EXPECT_EQ(test, state(iw, CLIENT), IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, state(iw, SERVER), IB_QPS_ERR);
	listen_no_more(iw);
	end_without_violation(iw);
}

static void expect_closed(struct iw_lab *iw, int by)
{
	struct kunit *test = iw->lab->test;
	int peer = !by;

	KUNIT_EXPECT_TRUE(test, iw->ids[by].events & BIT(IW_CM_EVENT_CLOSE));
	KUNIT_EXPECT_TRUE(test, iw->ids[peer].events & BIT(IW_CM_EVENT_DISCONNECT));
	KUNIT_EXPECT_TRUE(test, iw->ids[peer].events & BIT(IW_CM_EVENT_CLOSE));
	KUNIT_EXPECT_EQ(test, state(iw, peer), IB_QPS_ERR);
	KUNIT_EXPECT_EQ(test, iw->ids[by].refs, 0);
	KUNIT_EXPECT_EQ(test, iw->ids[peer].refs, 0);
}

/* Whoever ends a connection, both ends are told, and the Receives of both are flushed. */
static void test_close(struct kunit *test)
{
	static const enum ib_qp_state states[] = { IB_QPS_SQD, IB_QPS_ERR };
	int by, i;

	for (by = 0; by < 2; by++) {
		for (i = 0; i < ARRAY_SIZE(states); i++) {
			struct iw_lab *iw = iw_connected(test);

			KUNIT_ASSERT_EQ(test, lab_recv(iw->lab, by, 0, 100), 0);
			KUNIT_ASSERT_EQ(test, lab_recv(iw->lab, !by, 0, 100), 0);
			KUNIT_EXPECT_EQ(test, move(iw, by, states[i]), 0);
			expect_closed(iw, by);
			KUNIT_EXPECT_EQ(test, lab_wait(iw->lab, by, NULL),
					IB_WC_WR_FLUSH_ERR);
			KUNIT_EXPECT_EQ(test, lab_wait(iw->lab, !by, NULL),
					IB_WC_WR_FLUSH_ERR);
			/* both ends may close */
			KUNIT_EXPECT_EQ(test, move(iw, !by, states[i]), 0);
			end_without_violation(iw);
		}
	}
}

/* A Send without a Receive ends the connection, and the sender does not learn why. */
static void test_no_receive(struct kunit *test)
{
	struct iw_lab *iw = iw_connected(test);

	KUNIT_ASSERT_EQ(test, lab_post(iw->lab, CLIENT, IB_WR_SEND, 0, 100,
				       IB_SEND_SIGNALED), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(iw->lab, CLIENT, NULL), IB_WC_SUCCESS);
	expect_closed(iw, SERVER);
	KUNIT_EXPECT_EQ(test, state(iw, SERVER), IB_QPS_ERR);
	end_without_violation(iw);
}

/* A key that the peer does not have: a Write does not say so, a Read does. */
static void test_bad_key(struct kunit *test)
{
	struct iw_lab *iw = iw_connected(test);

	KUNIT_ASSERT_EQ(test, lab_rdma(iw->lab, CLIENT, IB_WR_RDMA_WRITE, 100, 0, 1), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(iw->lab, CLIENT, NULL), IB_WC_SUCCESS);
	expect_closed(iw, SERVER);
	end_without_violation(iw);

	iw = iw_connected(test);
	KUNIT_ASSERT_EQ(test, lab_rdma(iw->lab, CLIENT, IB_WR_RDMA_READ, 100, 0, 1), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(iw->lab, CLIENT, NULL), IB_WC_REM_ACCESS_ERR);
	expect_closed(iw, SERVER);
	end_without_violation(iw);
}

static void reg(struct iw_lab *iw, int side, int access)
{
	KUNIT_ASSERT_EQ(iw->lab->test, lab_reg(iw->lab, side, access), 0);
	KUNIT_ASSERT_EQ(iw->lab->test, lab_wait(iw->lab, side, NULL), IB_WC_SUCCESS);
}

/* Read from the server's registration into the client's, by what keys there are. */
static enum ib_wc_status read_into(struct iw_lab *iw, u32 lkey, u32 inv)
{
	const struct ib_mr *from = iw->lab->side[SERVER].mr, *to = iw->lab->side[CLIENT].mr;
	struct ib_sge sge = { .addr = to->iova, .length = LAB_LEN, .lkey = lkey };
	struct ib_rdma_wr wr = {
		.wr = {
			.opcode = inv ? IB_WR_RDMA_READ_WITH_INV : IB_WR_RDMA_READ,
			.sg_list = &sge, .num_sge = 1, .send_flags = IB_SEND_SIGNALED,
			.ex.invalidate_rkey = inv,
		},
		.remote_addr = from->iova,
		.rkey = from->rkey,
	};

	lab_fill(iw->lab, SERVER, 1, 0, 0x5a, LAB_LEN);
	KUNIT_ASSERT_EQ(iw->lab->test, ib_post_send(iw->lab->side[CLIENT].qp, &wr.wr, NULL), 0);
	return lab_wait(iw->lab, CLIENT, NULL);
}

static void test_read(struct kunit *test)
{
	struct iw_lab *iw = iw_connected(test);
	struct ib_mr *to = iw->lab->side[CLIENT].mr;

	reg(iw, SERVER, ACCESS);
	reg(iw, CLIENT, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, read_into(iw, to->lkey, 0), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, memcmp(lab_data(iw->lab, CLIENT, 1),
				     lab_data(iw->lab, SERVER, 1), LAB_LEN), 0);
	/* which invalidates the sink, and no other key */
	KUNIT_EXPECT_EQ(test, read_into(iw, to->lkey, iw->lab->side[SERVER].mr->rkey),
			IB_WC_SUCCESS);
	reg(iw, CLIENT, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, read_into(iw, to->lkey, 0), IB_WC_SUCCESS);
	end_without_violation(iw);
}

static void test_read_sink(struct kunit *test)
{
	struct iw_lab *iw = iw_connected(test);

	/* no remote write access */
	reg(iw, SERVER, ACCESS);
	reg(iw, CLIENT, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ);
	KUNIT_EXPECT_EQ(test, read_into(iw, iw->lab->side[CLIENT].mr->lkey, 0),
			IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, lab_data(iw->lab, CLIENT, 1)[0], 0);
	end_with_one(iw, MEM_RULE_READ_SINK);

	/* memory that is not registered */
	iw = iw_connected(test);
	reg(iw, SERVER, ACCESS);
	KUNIT_ASSERT_EQ(test, lab_rdma(iw->lab, CLIENT, IB_WR_RDMA_READ, 100,
				       iw->lab->side[SERVER].mr->iova,
				       iw->lab->side[SERVER].mr->rkey), 0);
	KUNIT_EXPECT_EQ(test, lab_wait(iw->lab, CLIENT, NULL), IB_WC_LOC_PROT_ERR);
	end_with_one(iw, MEM_RULE_READ_SINK);
}

static void test_read_sge_count(struct kunit *test)
{
	int count;

	for (count = 0; count <= 2; count += 2) {
		struct iw_lab *iw = iw_connected(test);
		struct ib_sge sge[2] = {
			lab_sge(iw->lab, CLIENT, 0, 100), lab_sge(iw->lab, CLIENT, 0, 100),
		};
		struct ib_rdma_wr wr = {
			.wr = { .opcode = IB_WR_RDMA_READ, .sg_list = sge, .num_sge = count },
		};

		KUNIT_EXPECT_EQ(test, iw_device(iw)->attrs.max_sge_rd, 1);
		KUNIT_EXPECT_LT(test, ib_post_send(iw->lab->side[CLIENT].qp, &wr.wr, NULL), 0);
		end_with_one(iw, MEM_RULE_SGE_COUNT);
	}
}

static void test_no_immediate(struct kunit *test)
{
	struct iw_lab *iw = iw_connected(test);

	KUNIT_EXPECT_LT(test, lab_post(iw->lab, CLIENT, IB_WR_SEND_WITH_IMM, 0, 100, 0), 0);
	end_with_one(iw, MEM_RULE_OPCODE);

	iw = iw_connected(test);
	KUNIT_EXPECT_LT(test, lab_rdma(iw->lab, CLIENT, IB_WR_RDMA_WRITE_WITH_IMM, 100, 0, 0),
			0);
	end_with_one(iw, MEM_RULE_OPCODE);
}

/* Only a connection leads to RTS, and there is no path and no PSN. */
static void test_state(struct kunit *test)
{
	struct iw_lab *iw = iw_make(test);

	KUNIT_EXPECT_LT(test, move(iw, CLIENT, IB_QPS_RTS), 0);
	end_with_one(iw, MEM_RULE_STATE);

	iw = iw_make(test);
	{
		struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR, .rq_psn = 1 };

		KUNIT_EXPECT_LT(test, ib_modify_qp(iw->lab->side[CLIENT].qp, &attr,
						   IB_QP_STATE | IB_QP_RQ_PSN), 0);
	}
	end_with_one(iw, MEM_RULE_STATE);
}

/* More RDMA Reads than the device can have */
static void test_limit(struct kunit *test)
{
	struct iw_lab *iw = iw_make(test);
	struct iw_cm_conn_param param = {
		.ord = iw->lab->dev->limits.max_qp_init_rd_atom + 1,
		.qpn = iw->lab->side[CLIENT].qp->qp_num,
	};

	KUNIT_EXPECT_EQ(test, iw_device(iw)->ops.iw_connect(&iw->ids[CLIENT].id, &param),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, iw->ids[CLIENT].events, 0);
	end_with_one(iw, MEM_RULE_LIMIT);
}

static void test_listener_left(struct kunit *test)
{
	struct iw_lab *iw = iw_make(test);
	int before;

	mem_check_left(iw->lab->dev);
	before = lab_violations(iw->lab, MEM_RULE_LEFT);
	listen(iw);
	mem_check_left(iw->lab->dev);
	/* what the lab has itself, once more, and the listener */
	KUNIT_EXPECT_EQ(test, lab_violations(iw->lab, MEM_RULE_LEFT), 2 * before + 1);
	listen_no_more(iw);
	iw_end(iw);
}

static struct kunit_case iwarp_cases[] = {
	KUNIT_CASE(test_connect),
	KUNIT_CASE(test_nobody_listens),
	KUNIT_CASE(test_reject),
	KUNIT_CASE(test_request_ends),
	KUNIT_CASE(test_no_answer),
	KUNIT_CASE(test_reply_fails),
	KUNIT_CASE(test_close),
	KUNIT_CASE(test_no_receive),
	KUNIT_CASE(test_bad_key),
	KUNIT_CASE(test_read),
	KUNIT_CASE(test_read_sink),
	KUNIT_CASE(test_read_sge_count),
	KUNIT_CASE(test_no_immediate),
	KUNIT_CASE(test_state),
	KUNIT_CASE(test_limit),
	KUNIT_CASE(test_listener_left),
	{}
};

static struct kunit_suite iwarp_suite = {
	.name = "rdma_mem_iwarp",
	.test_cases = iwarp_cases,
};

kunit_test_suites(&iwarp_suite);
