// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/: Replies that arrive before their Call is posted, while it is being
 * posted, and after posting it has failed. None of them waits for the task that posts.
 */
#include <kunit/test.h>
#include <linux/lockdep.h>
#include <net/net_namespace.h>

#include "../client/client_private.h"
#include "../conn/conn_private.h"

#define XID		cpu_to_be32(0x1badcafe)
#define CREDITS		4
#define CALL_LEN	40
#define SQ_SIZE		8

/* A Reply without chunks: RFC 8166's header, and an RPC that was accepted and has no results */
static const __be32 reply_words[] = {
	XID, cpu_to_be32(1), cpu_to_be32(CREDITS), 0, 0, 0, 0,
	XID, cpu_to_be32(1), 0, 0, 0, 0,
};

#define REPLY_LEN	(sizeof(reply_words) - 28)

/* A connection, and an RPC whose Call has been encoded */
struct wire {
	struct ib_device ib;
	struct ib_qp qp;
	struct rpcrdma_device device;
	struct rpcrdma_conn *conn;
	struct xprt_rdma_client *client;
	struct xprt_rdma_endpoint ep;
	struct xprt_rdma_request request;
	struct rpc_procinfo proc;
	struct rpc_clnt clnt;
	struct rpc_task task;
	struct rpcrdma_recv recv;
	__be32 reply[ARRAY_SIZE(reply_words)];
	u8 call_buffer[CALL_LEN];
	u8 reply_buffer[REPLY_LEN];
	u8 sent[RPCRDMA_INLINE_MIN];
	bool answer_at_once;	/* the Reply arrives while the device gets the Call */
	unsigned int calls;	/* that the device got */
	unsigned int receives;	/* that came back */
};

static void receive_reply(struct wire *wire)
{
	memcpy(wire->reply, reply_words, sizeof(reply_words));
	wire->recv.conn = wire->conn;
	wire->recv.data = wire->reply;
	wire->recv.len = sizeof(reply_words);
	xprt_rdma_received(wire->conn, &wire->recv);
}

/*
 * The task that posts holds post_lock here. On another CPU the Reply would be processed without
 * it, so lockdep must not take it for an order of locks.
 */
static int wire_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	struct wire *wire = container_of(qp, struct wire, qp);

	wire->calls++;
	if (!wire->answer_at_once)
		return 0;
	lockdep_off();
	receive_reply(wire);
	lockdep_on();
	return 0;
}

static int wire_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad)
{
	container_of(qp, struct wire, qp)->receives++;
	return 0;
}

static void wire_closed(struct rpcrdma_conn *conn, int status)
{
}

static const struct rpcrdma_conn_ops wire_ops = { .closed = wire_closed };

static void wire_connect(struct kunit *test, struct wire *wire)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_alloc(false);

	KUNIT_ASSERT_NOT_NULL(test, conn);
	strscpy(conn->peer, "KUnit", sizeof(conn->peer));
	wire->ib.ops.post_send = wire_post_send;
	wire->ib.ops.post_recv = wire_post_recv;
	wire->qp.device = &wire->ib;
	wire->device.ib = &wire->ib;
	conn->device = &wire->device;
	conn->qp = &wire->qp;
	conn->ops = &wire_ops;
	conn->role = &wire->ep;
	conn->state = RPCRDMA_CONN_ESTABLISHED;
	conn->credits = CREDITS;
	conn->max_chain = SQ_SIZE;
	rpcrdma_sq_init(&conn->sq, SQ_SIZE);
	conn->recv_batch = 1;
	conn->recv_open = true;
	conn->agreement.call_threshold = RPCRDMA_INLINE_MIN;
	conn->agreement.reply_threshold = RPCRDMA_INLINE_MIN;
	wire->conn = conn;
}

/* So many that the Call is not signalled: nothing completes it. */
static void wire_add_send(struct kunit *test, struct wire *wire)
{
	struct rpcrdma_conn *conn = wire->conn;
	struct rpcrdma_send *send;

	send = kunit_kzalloc(test, struct_size(send, sge, 1), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, send);
	send->data = wire->sent;
	send->size = sizeof(wire->sent);
	send->num_sge = 1;
	send->wr.sg_list = send->sge;
	send->work.conn = conn;
	conn->depths.batch = CREDITS;
	conn->depths.sends = 2 * CREDITS;
	conn->num_sends = 2 * CREDITS;
	conn->sends_free = send;
	conn->num_sends_free = 1;
}

static void wire_add_endpoint(struct wire *wire)
{
	struct xprt_rdma_endpoint *ep = &wire->ep;

	kref_init(&ep->ref);
	ep->client = wire->client;
	ep->conn = wire->conn;
	xprt_rdma_credits_init(&ep->credits, CREDITS);
	xprt_rdma_version_init(&ep->version, RPCRDMA_VERSION_ONE, false);
	xprt_rdma_version_begin(&ep->version, &wire->conn->agreement);
	spin_lock_init(&ep->awaiting_lock);
	INIT_LIST_HEAD(&ep->awaiting_reply);
	INIT_LIST_HEAD(&ep->orphaned_mrs);
	wire->client->ep = ep;
}

/* sunrpc has encoded the Call, and finds it by its XID. */
static void wire_add_rpc(struct wire *wire)
{
	struct xprt_rdma_client *client = wire->client;
	struct rpc_rqst *rqst = &wire->request.rqst;
	struct rpc_task *task = &wire->task;

	INIT_LIST_HEAD(&client->slots);
	list_add(&wire->request.all, &client->slots);
	INIT_LIST_HEAD(&wire->request.invalidation.mrs);
	task->tk_rqstp = rqst;
	task->tk_client = &wire->clnt;
	task->tk_msg.rpc_proc = &wire->proc;
	set_bit(RPC_TASK_NEED_RECV, &task->tk_runstate);
	rqst->rq_task = task;
	rqst->rq_xprt = &client->xprt;
	rqst->rq_xid = XID;
	xdr_buf_init(&rqst->rq_snd_buf, wire->call_buffer, CALL_LEN);
	rqst->rq_snd_buf.head[0].iov_len = CALL_LEN;
	rqst->rq_snd_buf.len = CALL_LEN;
	xdr_buf_init(&rqst->rq_rcv_buf, wire->reply_buffer, REPLY_LEN);
	rqst->rq_rcv_buf.head[0].iov_len = REPLY_LEN;
	rb_link_node(&rqst->rq_recv, NULL, &client->xprt.recv_queue.rb_node);
	rb_insert_color(&rqst->rq_recv, &client->xprt.recv_queue);
}

static struct wire *wire_begin(struct kunit *test)
{
	struct wire *wire = kunit_kzalloc(test, sizeof(*wire), GFP_KERNEL);
	struct rpc_xprt *xprt;

	if (!IS_ENABLED(CONFIG_INFINIBAND_VIRT_DMA))
		kunit_skip(test, "a device without a bus cannot map memory");
	KUNIT_ASSERT_NOT_NULL(test, wire);
	xprt = xprt_alloc(&init_net, sizeof(*wire->client), 0, 0);
	KUNIT_ASSERT_NOT_NULL(test, xprt);
	wire->client = container_of(xprt, struct xprt_rdma_client, xprt);
	wire_connect(test, wire);
	wire_add_send(test, wire);
	wire_add_endpoint(wire);
	wire_add_rpc(wire);
	return wire;
}

/* Hide what is the test's from the teardown. */
static void wire_end(struct wire *wire)
{
	struct rpcrdma_conn *conn = wire->conn;

	conn->sends_free = NULL;
	conn->num_sends = 0;
	conn->recvs_free = NULL;
	conn->device = NULL;
	conn->qp = NULL;
	rpcrdma_conn_close(conn, -ECANCELED);
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_conn_put(conn);
	xprt_free(&wire->client->xprt);
}

/* Whatever has become of a Reply, its Receive and its request are given back. */
static void expect_nothing_held(struct kunit *test, const struct wire *wire,
				unsigned int receives)
{
	KUNIT_EXPECT_EQ(test, wire->receives, receives);
	KUNIT_EXPECT_NULL(test, wire->request.recv);
	KUNIT_EXPECT_EQ(test, atomic_read(&wire->request.rqst.rq_pin), 0);
}

static void expect_complete(struct kunit *test, const struct wire *wire)
{
	KUNIT_EXPECT_EQ(test, wire->request.rqst.rq_reply_bytes_recvd, REPLY_LEN);
	KUNIT_EXPECT_NULL(test, wire->request.ep);
	KUNIT_EXPECT_EQ(test, atomic_read(&wire->ep.credits.in_flight), 0);
	KUNIT_EXPECT_EQ(test, kref_read(&wire->ep.ref), 1);
	KUNIT_EXPECT_EQ(test, wire->conn->counters.faults[RPCRDMA_FAULT_UNMATCHED], 0);
}

static void test_after_posting(struct kunit *test)
{
	struct wire *wire = wire_begin(test);

	KUNIT_EXPECT_EQ(test, xprt_rdma_call_send(&wire->request.rqst), 0);
	KUNIT_EXPECT_EQ(test, wire->calls, 1);
	KUNIT_EXPECT_PTR_EQ(test, wire->request.ep, &wire->ep);
	receive_reply(wire);
	expect_nothing_held(test, wire, 1);
	expect_complete(test, wire);
	wire_end(wire);
}

/* The task that posts may be preempted there for as long as it takes. */
static void test_while_posting(struct kunit *test)
{
	struct wire *wire = wire_begin(test);

	wire->answer_at_once = true;
	KUNIT_EXPECT_EQ(test, xprt_rdma_call_send(&wire->request.rqst), 0);
	KUNIT_EXPECT_EQ(test, wire->calls, 1);
	expect_nothing_held(test, wire, 1);
	expect_complete(test, wire);
	wire_end(wire);
}

/* The server guesses the XID. It gets no registration that is not made yet. */
static void test_before_posting(struct kunit *test)
{
	struct wire *wire = wire_begin(test);
	struct xprt_rdma_request *request = &wire->request;

	/* As it is when the task that posts does not have post_lock yet */
	request->ep = &wire->ep;
	receive_reply(wire);
	expect_nothing_held(test, wire, 1);
	KUNIT_EXPECT_FALSE(test, request->replied);
	KUNIT_EXPECT_EQ(test, request->rqst.rq_reply_bytes_recvd, 0);
	KUNIT_EXPECT_PTR_EQ(test, request->ep, &wire->ep);
	KUNIT_EXPECT_EQ(test, wire->conn->counters.faults[RPCRDMA_FAULT_UNMATCHED], 1);

	wire->conn->counters.faults[RPCRDMA_FAULT_UNMATCHED] = 0;
	KUNIT_EXPECT_EQ(test, xprt_rdma_call_send(&request->rqst), 0);
	receive_reply(wire);
	expect_nothing_held(test, wire, 2);
	expect_complete(test, wire);
	wire_end(wire);
}

/* A Call that finds no space in the send queue is not on the wire. */
static void test_after_posting_failed(struct kunit *test)
{
	struct wire *wire = wire_begin(test);
	struct xprt_rdma_request *request = &wire->request;

	wire->conn->sq.free = 0;
	KUNIT_EXPECT_EQ(test, xprt_rdma_call_send(&request->rqst), -EAGAIN);
	KUNIT_EXPECT_EQ(test, wire->calls, 0);
	KUNIT_EXPECT_NULL(test, request->ep);
	KUNIT_EXPECT_FALSE(test, request->posted);
	KUNIT_EXPECT_EQ(test, kref_read(&wire->ep.ref), 1);
	receive_reply(wire);
	expect_nothing_held(test, wire, 1);
	KUNIT_EXPECT_EQ(test, wire->conn->counters.faults[RPCRDMA_FAULT_UNMATCHED], 1);
	KUNIT_EXPECT_EQ(test, request->rqst.rq_reply_bytes_recvd, 0);
	wire_end(wire);
}

static struct kunit_case receive_cases[] = {
	KUNIT_CASE(test_after_posting),
	KUNIT_CASE(test_while_posting),
	KUNIT_CASE(test_before_posting),
	KUNIT_CASE(test_after_posting_failed),
	{}
};

static struct kunit_suite receive_suite = {
	.name = "rpcrdma_receive",
	.test_cases = receive_cases,
};

kunit_test_suites(&receive_suite);
