// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of server/: what happens to a connection that does not go on, because its client
 * answers no backward Call or because there is no memory for a Reply.
 */
#include <kunit/test.h>
#include <linux/sunrpc/xprt.h>
#include <net/net_namespace.h>

#include "../conn/conn_private.h"
#include "../server/server_private.h"

#define STALL	(30 * HZ)	/* as the administrator guide says */
#define CREDITS	2

/* An established connection without a device, and its service */
struct stall {
	struct rpcrdma_conn *conn;
	struct svcrdma_service service;
	struct rpcrdma_recv recv;
	struct rpc_xprt *xprt;	/* the callback client */
	struct rpc_rqst rqst;	/* a backward Call */
};

static struct stall *stall_begin(struct kunit *test)
{
	struct stall *stall = kunit_kzalloc(test, sizeof(*stall), GFP_KERNEL);
	struct svcrdma_service *service;

	KUNIT_ASSERT_NOT_NULL(test, stall);
	stall->conn = rpcrdma_conn_alloc(false);
	KUNIT_ASSERT_NOT_NULL(test, stall->conn);
	strscpy(stall->conn->peer, "KUnit", sizeof(stall->conn->peer));
	stall->conn->state = RPCRDMA_STATE_ESTABLISHED;
	service = &stall->service;
	service->conn = stall->conn;
	service->version = RPCRDMA_VERSION_ONE;
	INIT_LIST_HEAD(&service->received);
	init_waitqueue_head(&service->send_wait);
	INIT_LIST_HEAD(&service->read_waiters);
	spin_lock_init(&service->xprt.xpt_lock);
	refcount_set(&service->users, 1);
	return stall;
}

/* Return: why the connection was closed, or zero if it was not. */
static int stall_end(struct stall *stall)
{
	struct rpcrdma_conn *conn = stall->conn;
	int status = rpcrdma_conn_established(conn) ? 0 : conn->status;

	rpcrdma_conn_close(conn, -ECANCELED);
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_conn_put(conn);
	return status;
}

static struct svcrdma_callback *callback_begin(struct kunit *test, struct stall *stall)
{
	struct sockaddr_in client = { .sin_family = AF_INET };
	struct xprt_create args = {
		.ident		= XPRT_TRANSPORT_BC_RDMA,
		.net		= &init_net,
		.dstaddr	= (struct sockaddr *)&client,
		.addrlen	= sizeof(client),
		.bc_xprt	= &stall->service.xprt,
	};
	struct svcrdma_callback *callback;

	stall->conn->num_recvs = rpcrdma_recv_batch(0);	/* enough */
	stall->xprt = svcrdma_callback_setup(&args);
	KUNIT_ASSERT_FALSE(test, IS_ERR(stall->xprt));
	stall->rqst.rq_xprt = stall->xprt;
	callback = container_of(stall->xprt, struct svcrdma_callback, xprt);
	stall->xprt->cwnd = CREDITS * RPC_CWNDSCALE;
	return callback;
}

static void callback_end(struct stall *stall)
{
	xprt_put(stall->service.xprt.xpt_bc_xprt);
	stall->xprt->ops->destroy(stall->xprt);
}

struct stuck_row {
	const char *name;
	u32 in_flight;
	unsigned int seconds;	/* since the last Call */
	bool waits;		/* a message waits for a thread */
	int closed;
};

static const struct stuck_row stuck_rows[] = {
	{ "no answer for 31 s", CREDITS, 31, false, -ETIMEDOUT },
	{ "no answer for 20 s", CREDITS, 20 },
	{ "a credit is left", CREDITS - 1, 31 },
	{ "a message waits for a thread", CREDITS, 31, true },
};

KUNIT_ARRAY_PARAM_DESC(stuck, stuck_rows, name);

/* nfsd makes a backward Call, or repeats one. */
static void test_stuck(struct kunit *test)
{
	const struct stuck_row *row = test->param_value;
	struct stall *stall = stall_begin(test);
	struct svcrdma_callback *callback = callback_begin(test, stall);

	stall->xprt->cong = row->in_flight * RPC_CWNDSCALE;
	callback->last_call = jiffies - row->seconds * HZ;
	if (row->waits)
		list_add(&stall->recv.list, &stall->service.received);
	stall->xprt->ops->prepare_request(&stall->rqst, &stall->rqst.rq_snd_buf);
	callback_end(stall);
	KUNIT_EXPECT_EQ(test, stall_end(stall), row->closed);
}

/* All credits are in use: the Call is not sent, and waits. */
static void test_no_credit(struct kunit *test)
{
	struct stall *stall = stall_begin(test);
	struct svcrdma_callback *callback = callback_begin(test, stall);

	stall->xprt->cong = CREDITS * RPC_CWNDSCALE;
	callback->last_call = jiffies;
	KUNIT_EXPECT_EQ(test, stall->xprt->ops->send_request(&stall->rqst), -EAGAIN);
	KUNIT_EXPECT_TRUE(test, test_bit(XPRT_WRITE_SPACE, &stall->xprt->state));
	KUNIT_EXPECT_EQ(test, stall->xprt->cong, CREDITS * RPC_CWNDSCALE);
	callback_end(stall);
	KUNIT_EXPECT_EQ(test, stall_end(stall), 0);
}

/* A thread has no Send for its Reply, and nothing comes back. */
static void test_no_send(struct kunit *test)
{
	struct stall *stall = stall_begin(test);
	unsigned long since = jiffies - STALL + HZ / 10;

	KUNIT_EXPECT_FALSE(test, svcrdma_service_wait(&stall->service, 0, since));
	KUNIT_EXPECT_GE(test, jiffies - since, STALL);
	KUNIT_EXPECT_LE(test, jiffies - since, STALL + 5 * HZ);
	KUNIT_EXPECT_EQ(test, stall_end(stall), -ETIMEDOUT);
}

/* Something came back after the thread had looked. */
static void test_send_came_back(struct kunit *test)
{
	struct stall *stall = stall_begin(test);

	atomic_inc(&stall->service.resource_seq);
	KUNIT_EXPECT_TRUE(test, svcrdma_service_wait(&stall->service, 0, jiffies - 2 * STALL));
	KUNIT_EXPECT_EQ(test, stall_end(stall), 0);
}

static struct kunit_case stall_cases[] = {
	KUNIT_CASE_PARAM(test_stuck, stuck_gen_params),
	KUNIT_CASE(test_no_credit),
	KUNIT_CASE(test_no_send),
	KUNIT_CASE(test_send_came_back),
	{}
};

static struct kunit_suite stall_suite = {
	.name = "rpcrdma_stall",
	.test_cases = stall_cases,
};

kunit_test_suites(&stall_suite);
