// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of server/: a backward Reply gives back its Receive before its credit.
 */
#include <kunit/test.h>
#include <linux/sunrpc/xprt.h>
#include <net/net_namespace.h>

#include "../conn/conn_private.h"
#include "../server/server_private.h"

/* A connection with one backward Reply, which matches no Call */
struct backward {
	struct ib_device ib;
	struct ib_qp qp;
	struct rpcrdma_device device;
	struct rpcrdma_conn *conn;
	struct svcrdma_service service;
	struct rpcrdma_recv recv;
	struct svcrdma_request request;
	struct rpc_xprt *xprt;
	unsigned int receives;	/* posted */
	bool credit_first;
};

/* Return: true if a task that waits for a credit was woken. */
static bool credit_is_back(const struct backward *backward)
{
	return !test_bit(XPRT_WRITE_SPACE, &backward->xprt->state);
}

static int backward_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			      const struct ib_recv_wr **bad)
{
	struct backward *backward = container_of(qp, struct backward, qp);

	backward->receives++;
	backward->credit_first = credit_is_back(backward);
	return 0;
}

static void backward_connect(struct kunit *test, struct backward *backward)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_alloc(false);

	KUNIT_ASSERT_NOT_NULL(test, conn);
	strscpy(conn->peer, "KUnit", sizeof(conn->peer));
	backward->ib.ops.post_recv = backward_post_recv;
	backward->qp.device = &backward->ib;
	backward->device.ib = &backward->ib;
	conn->device = &backward->device;
	conn->qp = &backward->qp;
	conn->backward_credits = 8;
	conn->recv_batch = 1;
	conn->recv_open = true;
	backward->conn = conn;
}

/* The teardown must find neither a device nor a Receive. */
static void backward_end(struct backward *backward)
{
	struct rpcrdma_conn *conn = backward->conn;

	INIT_LIST_HEAD(&conn->recvs_free);
	conn->device = NULL;
	conn->qp = NULL;
	rpcrdma_conn_close(conn, -ECANCELED);
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_conn_put(conn);
	xprt_free(backward->xprt);
}

static void test_receive_before_credit(struct kunit *test)
{
	struct backward *backward = kunit_kzalloc(test, sizeof(*backward),
						  GFP_KERNEL);
	struct svcrdma_request *request;

	if (!IS_ENABLED(CONFIG_INFINIBAND_VIRT_DMA))
		kunit_skip(test, "a device without a bus cannot map memory");
	KUNIT_ASSERT_NOT_NULL(test, backward);
	/* Large enough for struct svcrdma_callback, which begins with an rpc_xprt */
	backward->xprt = xprt_alloc(&init_net, 2 * sizeof(struct rpc_xprt), 1, 1);
	KUNIT_ASSERT_NOT_NULL(test, backward->xprt);
	backward_connect(test, backward);

	backward->service.conn = backward->conn;
	backward->service.xprt.xpt_bc_xprt = backward->xprt;
	atomic_set(&backward->service.calls_held, 1);
	backward->recv.conn = backward->conn;
	request = &backward->request;
	request->service = &backward->service;
	request->recv = &backward->recv;
	request->msg.xid = cpu_to_be32(17);
	request->msg.credits = 8;

	set_bit(XPRT_WRITE_SPACE, &backward->xprt->state);
	svcrdma_callback_reply(request);
	KUNIT_EXPECT_EQ(test, backward->receives, 1);
	KUNIT_EXPECT_FALSE(test, backward->credit_first);
	KUNIT_EXPECT_TRUE(test, credit_is_back(backward));
	backward_end(backward);
}

static struct kunit_case callback_cases[] = {
	KUNIT_CASE(test_receive_before_credit),
	{}
};

static struct kunit_suite callback_suite = {
	.name = "rpcrdma_callback",
	.test_cases = callback_cases,
};

kunit_test_suites(&callback_suite);
