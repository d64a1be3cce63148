// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of the backward direction. Server: a Reply gives back its Receive before its
 * credit, which Replies grant credits and which complete a Call, the version and the length
 * of a Call, and how long the callback client keeps the service. Client: the version and the
 * length of a Reply.
 */
#include <kunit/test.h>
#include <linux/sunrpc/xprt.h>
#include <net/net_namespace.h>

#include "../client/client_private.h"
#include "../server/server_private.h"
#include "fake_conn.h"

#define XID	cpu_to_be32(0x1badcafe)
#define HANDLE	0x17
#define CREDITS	8
#define BUF_LEN	16384

/* A connection with one backward Reply, which matches no Call */
struct backward {
	struct fake_conn fake;
	struct svcrdma_service service;
	struct svcrdma_request request;
	struct rpc_xprt *xprt;
	u8 octets[64];		/* received */
	unsigned int receives;	/* posted */
	bool credit_first;
};

/* Return: true if a task that waits for a credit was woken. */
static bool credit_is_back(const struct backward *backward)
{
	return !test_bit(XPRT_WRITE_SPACE, &backward->xprt->state);
}

static void backward_reposting(struct fake_conn *fake)
{
	struct backward *backward = container_of(fake, struct backward, fake);

	backward->receives++;
	backward->credit_first = credit_is_back(backward);
}

static void backward_end(struct kunit *test, struct backward *backward)
{
	fake_conn_end(test, &backward->fake);
	xprt_free(backward->xprt);
	kfree(backward);
}

/* A Reply arrives, and a task waits for a credit. */
static void backward_received(struct backward *backward)
{
	backward->request.recv = fake_take_recv(&backward->fake, backward->octets,
						sizeof(backward->octets));
	set_bit(XPRT_WRITE_SPACE, &backward->xprt->state);
}

/* The test ends here if a message cannot be posted. The connection still uses the memory then. */
static struct backward *backward_begin(struct kunit *test)
{
	struct backward *backward = kzalloc(sizeof(*backward), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, backward);
	fake_conn_make(test, &backward->fake, RPCRDMA_INLINE_MIN, RPCRDMA_VERSION_ONE);
	backward->fake.conn->backward_credits = CREDITS;
	backward->fake.conn->recv_backward = CREDITS;
	backward->fake.reposting = backward_reposting;
	backward->xprt = xprt_alloc(&init_net, sizeof(struct svcrdma_callback),
				    1, 1);
	KUNIT_ASSERT_NOT_NULL(test, backward->xprt);

	backward->service.conn = backward->fake.conn;
	backward->service.xprt.xpt_bc_xprt = backward->xprt;
	atomic_set(&backward->service.calls_held, 1);
	memset(backward->octets, 0x17, sizeof(backward->octets));
	backward->request.service = &backward->service;
	backward_received(backward);
	return backward;
}

static void test_receive_before_credit(struct kunit *test)
{
	struct backward *backward = backward_begin(test);
	struct rpcrdma_message *msg = &backward->request.msg;

	msg->xid = XID;
	msg->version = RPCRDMA_VERSION_ONE;
	msg->credits = CREDITS;
	svcrdma_callback_reply(&backward->request);
	KUNIT_EXPECT_EQ(test, backward->receives, 1);
	KUNIT_EXPECT_FALSE(test, backward->credit_first);
	KUNIT_EXPECT_TRUE(test, credit_is_back(backward));
	backward_end(test, backward);
}

struct grant_row {
	const char *name;
	u32 version;
	enum rpcrdma_proc proc;
	u32 credits;
	unsigned int granted;	/* afterwards; 2 before */
};

static const struct grant_row grant_rows[] = {
	{ "a Reply", RPCRDMA_VERSION_ONE, RPCRDMA_MSG, 5, 5 },
	{ "zero", RPCRDMA_VERSION_ONE, RPCRDMA_MSG, 0, 1 },
	{ "more than was asked for", RPCRDMA_VERSION_ONE, RPCRDMA_MSG,
	  CREDITS + 1, CREDITS },
	{ "an error", RPCRDMA_VERSION_ONE, RPCRDMA_ERROR, 5, 5 },
	{ "version 2: a Reply", RPCRDMA_VERSION_TWO, RPCRDMA_MSG, 5, 5 },
	{ "version 2: an error", RPCRDMA_VERSION_TWO, RPCRDMA_ERROR, 5, 2 },
};

KUNIT_ARRAY_PARAM_DESC(grant, grant_rows, name);

/* All give the credit of the Call back. */
static void test_granted(struct kunit *test)
{
	const struct grant_row *row = test->param_value;
	struct backward *backward = backward_begin(test);
	struct rpcrdma_message *msg = &backward->request.msg;

	backward->xprt->cwnd = 2 * RPC_CWNDSCALE;
	backward->xprt->cong = 2 * RPC_CWNDSCALE;
	msg->xid = XID;
	msg->version = row->version;
	msg->proc = row->proc;
	msg->error = RPCRDMA_ERR_BAD_XDR;
	msg->credits = row->credits;
	svcrdma_callback_reply(&backward->request);
	KUNIT_EXPECT_EQ(test, backward->xprt->cwnd, row->granted * RPC_CWNDSCALE);
	KUNIT_EXPECT_EQ(test, backward->xprt->cong, RPC_CWNDSCALE);
	KUNIT_EXPECT_TRUE(test, credit_is_back(backward));
	backward_end(test, backward);
}

/* There are Receives for two Replies after the first one, and for more when Calls wait. */
static void test_receives_grow(struct kunit *test)
{
	struct backward *backward = backward_begin(test);
	struct rpcrdma_message *msg = &backward->request.msg;
	struct rpcrdma_conn *conn = backward->fake.conn;
	u32 size = conn->recv_size;
	unsigned int i;

	conn->recv_backward = 1;
	msg->xid = XID;
	msg->version = RPCRDMA_VERSION_ONE;
	msg->credits = CREDITS;
	for (i = 0; i < 2; i++) {
		clear_bit(XPRT_WRITE_SPACE, &backward->xprt->state);
		svcrdma_callback_reply(&backward->request);
		KUNIT_EXPECT_EQ(test, backward->xprt->cwnd, 2 * RPC_CWNDSCALE);
		KUNIT_EXPECT_EQ(test, conn->recv_backward, 2);
		backward_received(backward);
	}

	/* There is no memory for them, and then there is. */
	conn->recv_size = 1U << 30;
	svcrdma_callback_reply(&backward->request);
	KUNIT_EXPECT_EQ(test, backward->xprt->cwnd, 2 * RPC_CWNDSCALE);
	backward_received(backward);
	conn->recv_size = size;
	svcrdma_callback_reply(&backward->request);
	KUNIT_EXPECT_EQ(test, backward->xprt->cwnd, CREDITS * RPC_CWNDSCALE);
	KUNIT_EXPECT_GE(test, backward->fake.num_recvs, FAKE_MESSAGES + CREDITS);
	backward_end(test, backward);
}

struct completes_row {
	const char *name;
	enum rpcrdma_proc proc;
	u32 len;		/* of the RPC message */
	bool denied;
};

#define REPLY_LEN	24	/* octets that the task has room for */

static const struct completes_row completes_rows[] = {
	{ "a Reply", RPCRDMA_MSG, REPLY_LEN },
	{ "too long", RPCRDMA_MSG, REPLY_LEN + 4, true },
	{ "RDMA_NOMSG", RPCRDMA_NOMSG, 0, true },
	{ "an error", RPCRDMA_ERROR, 0, true },
};

KUNIT_ARRAY_PARAM_DESC(completes, completes_rows, name);

/* As sunrpc does it before it sends the Call; the task does not sleep yet. */
static void await_reply(struct rpc_task *task, struct rpc_rqst *rqst)
{
	struct rpc_xprt *xprt = rqst->rq_xprt;

	task->tk_rqstp = rqst;
	rqst->rq_task = task;
	rqst->rq_xid = XID;
	rqst->rq_private_buf = rqst->rq_rcv_buf;
	rb_link_node(&rqst->rq_recv, NULL, &xprt->recv_queue.rb_node);
	rb_insert_color(&rqst->rq_recv, &xprt->recv_queue);
	set_bit(RPC_TASK_NEED_RECV, &task->tk_runstate);
}

/* Without a Reply that it can decode, the task would send its Call again. */
static void test_completes(struct kunit *test)
{
	const __be32 denial[] = { XID, rpc_reply, cpu_to_be32(RPC_MSG_DENIED),
				  cpu_to_be32(RPC_MISMATCH) };
	const struct completes_row *row = test->param_value;
	struct backward *backward = backward_begin(test);
	struct rpcrdma_message *msg = &backward->request.msg;
	__be32 reply[REPLY_LEN / sizeof(__be32)] = {};
	struct rpc_rqst rqst = {
		.rq_xprt = backward->xprt,
		.rq_rcv_buf.head[0] = { reply, sizeof(reply) },
	};
	struct rpc_task task = {};

	await_reply(&task, &rqst);
	msg->xid = XID;
	msg->version = RPCRDMA_VERSION_ONE;
	msg->proc = row->proc;
	msg->credits = CREDITS;
	msg->payload_len = row->len;
	svcrdma_callback_reply(&backward->request);

	KUNIT_EXPECT_TRUE(test, RB_EMPTY_ROOT(&backward->xprt->recv_queue));
	KUNIT_EXPECT_EQ(test, task.tk_status, 0);
	KUNIT_EXPECT_EQ(test, rqst.rq_reply_bytes_recvd,
			row->denied ? sizeof(denial) : row->len);
	KUNIT_EXPECT_EQ(test, memcmp(reply, row->denied ? (void *)denial : backward->octets,
				     sizeof(denial)), 0);
	backward_end(test, backward);
}

/*
 * While no Call waits, sunrpc is not asked: it would count an error. Each look takes the lock
 * again; with one CPU only a kernel with lockdep says that the one before has kept it.
 */
static void test_waits(struct kunit *test)
{
	struct backward *backward = backward_begin(test);
	struct svcrdma_service *service = &backward->service;
	struct rpc_rqst rqst = { .rq_xprt = backward->xprt };
	struct rpc_task task = {};

	KUNIT_EXPECT_FALSE(test, svcrdma_callback_waits(service, XID));
	KUNIT_EXPECT_EQ(test, backward->xprt->stat.bad_xids, 0);
	await_reply(&task, &rqst);
	KUNIT_EXPECT_TRUE(test, svcrdma_callback_waits(service, XID));
	KUNIT_EXPECT_FALSE(test, svcrdma_callback_waits(service, XID ^ 1));
	KUNIT_EXPECT_EQ(test, backward->xprt->stat.bad_xids, 1);
	rpcrdma_recv_put(backward->request.recv);
	backward_end(test, backward);
}

struct call_row {
	const char *name;
	u32 version;		/* of the last forward Call */
	u32 answered;		/* the highest version of a forward Reply */
	u32 agreed;		/* threshold */
	u32 len;		/* of the RPC message */
	int ret;
};

static const struct call_row call_rows[] = {
	{ "as long as fits", 1, 1, 1024, 996 },
	{ "too long", 1, 1, 1024, 1000, -EMSGSIZE },
	{ "a larger threshold", 1, 1, 4096, 4068 },
	{ "too long for it", 1, 1, 4096, 4072, -EMSGSIZE },
	{ "version 2: as long as fits", 2, 2, 1024, 4060 },
	{ "version 2: too long", 2, 2, 1024, 4064, -EMSGSIZE },
	{ "version 2: a larger threshold", 2, 2, 8192, 8156 },
	{ "version 2: too long for it", 2, 2, 8192, 8160, -EMSGSIZE },
	{ "version 2, no Reply: as long as fits", 2, 1, 1024, 988 },
	{ "version 2, no Reply: too long", 2, 1, 1024, 992, -EMSGSIZE },
	{ "version 2, no Reply: a larger threshold", 2, 1, 2048, 2012 },
	{ "version 2, no Reply: too long for it", 2, 1, 2048, 2016, -EMSGSIZE },
	{ "version 1 after version 2: too long", 1, 2, 1024, 1000, -EMSGSIZE },
};

KUNIT_ARRAY_PARAM_DESC(call, call_rows, name);

/* A Call that has not been sent; allocated for the test */
struct call {
	struct rpcrdma_conn conn;
	struct svcrdma_service service;
	struct rpc_rqst rqst;
	struct rpcrdma_message msg;
	__be32 rpc[BUF_LEN / sizeof(__be32)];
	__be32 sent[BUF_LEN / sizeof(__be32)];
};

/* The buffer has room for more than the threshold. */
static void test_call(struct kunit *test)
{
	const struct call_row *row = test->param_value;
	struct call *call = kunit_kzalloc(test, sizeof(*call), GFP_KERNEL);
	struct rpcrdma_send *send = kunit_kzalloc(test, sizeof(*send),
						  GFP_KERNEL);
	struct rpcrdma_message *msg;
	struct xdr_buf *buf;

	KUNIT_ASSERT_NOT_NULL(test, call);
	KUNIT_ASSERT_NOT_NULL(test, send);
	msg = &call->msg;
	call->conn.agreement.reply_threshold = row->agreed;
	call->conn.backward_credits = CREDITS;
	call->service.conn = &call->conn;
	call->service.version = row->version;
	call->service.reply_version = row->answered;
	call->rpc[0] = XID;
	call->rpc[1] = cpu_to_be32(RPCRDMA_CALL);
	call->rqst.rq_xid = XID;
	buf = &call->rqst.rq_snd_buf;
	buf->head[0].iov_base = call->rpc;
	buf->head[0].iov_len = row->len;
	buf->len = row->len;
	send->data = call->sent;
	send->size = BUF_LEN;
	KUNIT_ASSERT_EQ(test, svcrdma_callback_fill_call(&call->service,
							 &call->rqst, msg, send),
			row->ret);
	if (row->ret)
		return;

	KUNIT_EXPECT_LE(test, send->len,
			rpcrdma_wire_threshold(row->version, row->agreed));
	KUNIT_ASSERT_EQ(test, rpcrdma_wire_decode(msg, call->sent, send->len,
						  RPCRDMA_CLIENT_END, true,
						  row->version), RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, msg->version, row->version);
	KUNIT_EXPECT_EQ(test, msg->direction, RPCRDMA_CALL);
	KUNIT_EXPECT_EQ(test, msg->credits, CREDITS);
	KUNIT_EXPECT_EQ(test, msg->inv_handle, 0);
	KUNIT_EXPECT_EQ(test, msg->payload_len, row->len);
}

struct reply_row {
	const char *name;
	u32 version;		/* of the Call */
	u32 settled;		/* version of the connection */
	u32 agreed;		/* threshold */
	u32 len;		/* of the RPC message */
	enum rpcrdma_proc proc;
	enum rpcrdma_error error;
};

static const struct reply_row reply_rows[] = {
	{ "as long as fits", 1, 1, 1024, 996 },
	{ "too long", 1, 1, 1024, 1000, RPCRDMA_ERROR, RPCRDMA_ERR_BAD_XDR },
	{ "version 2: as long as fits", 2, 2, 1024, 4060 },
	{ "version 2: too long", 2, 2, 1024, 4064, RPCRDMA_ERROR, RPCRDMA_ERR_CANT_REPLY },
	{ "version 2: a larger threshold", 2, 2, 8192, 8156 },
	{ "version 2: too long for it", 2, 2, 8192, 8160, RPCRDMA_ERROR, RPCRDMA_ERR_CANT_REPLY },
	{ "version 1 after version 2: too long", 1, 2, 1024, 1000,
	  RPCRDMA_ERROR, RPCRDMA_ERR_BAD_XDR },
	{ "version 2 after version 1: too long", 2, 1, 1024, 992,
	  RPCRDMA_ERROR, RPCRDMA_ERR_CANT_REPLY },
};

KUNIT_ARRAY_PARAM_DESC(reply, reply_rows, name);

/* A Reply of the client that has not been sent; allocated for the test */
struct reply {
	struct rpcrdma_conn conn;
	struct xprt_rdma_endpoint ep;
	struct xprt_rdma_backward backward;
	struct rpcrdma_send send;
	__be32 rpc[BUF_LEN / sizeof(__be32)];
	__be32 sent[BUF_LEN / sizeof(__be32)];
};

static struct reply *reply_begin(struct kunit *test, const struct reply_row *row)
{
	struct reply *reply = kunit_kzalloc(test, sizeof(*reply), GFP_KERNEL);
	struct xdr_buf *buf;

	KUNIT_ASSERT_NOT_NULL(test, reply);
	reply->conn.agreement.call_threshold = row->agreed;
	reply->ep.conn = &reply->conn;
	reply->ep.version.settled = row->settled;
	reply->backward.ep = &reply->ep;
	reply->backward.version = row->version;
	reply->backward.inv_handle = row->version == RPCRDMA_VERSION_TWO ? HANDLE : 0;
	reply->rpc[0] = XID;
	reply->rpc[1] = cpu_to_be32(RPCRDMA_REPLY);
	reply->backward.rqst.rq_xid = XID;
	buf = &reply->backward.rqst.rq_snd_buf;
	buf->head[0].iov_base = reply->rpc;
	buf->head[0].iov_len = row->len;
	buf->len = row->len;
	reply->send.data = reply->sent;
	reply->send.size = BUF_LEN;
	return reply;
}

/* If it does not fit, the server is told so. The Call had no chunks. */
static void test_reply(struct kunit *test)
{
	const struct reply_row *row = test->param_value;
	struct reply *reply = reply_begin(test, row);
	struct rpcrdma_message *msg = &reply->ep.reply;

	KUNIT_ASSERT_EQ(test, 0, xprt_rdma_backward_fill_reply(&reply->ep, &reply->backward.rqst,
							       &reply->send));
	KUNIT_ASSERT_EQ(test, rpcrdma_wire_decode(msg, reply->sent, reply->send.len,
						  RPCRDMA_SERVER_END, true, RPCRDMA_VERSION_MAX),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, msg->version, row->version);
	KUNIT_EXPECT_EQ(test, msg->direction, RPCRDMA_REPLY);
	KUNIT_EXPECT_EQ(test, msg->credits, XPRT_RDMA_BACKWARD_CREDITS);
	KUNIT_ASSERT_EQ(test, msg->proc, row->proc);
	if (!row->error) {
		KUNIT_EXPECT_EQ(test, msg->inv_handle, reply->backward.inv_handle);
		KUNIT_EXPECT_EQ(test, msg->payload_len, row->len);
		return;
	}
	KUNIT_EXPECT_EQ(test, msg->error, row->error);
	KUNIT_EXPECT_EQ(test, reply->send.len, msg->header_len);
	if (row->error == RPCRDMA_ERR_CANT_REPLY) {
		KUNIT_EXPECT_EQ(test, msg->short_segment, 0);
		KUNIT_EXPECT_EQ(test, msg->length_needed, 0);
	}
}

static struct rpc_xprt *make_client(struct kunit *test, struct backward *backward)
{
	struct svcrdma_service *service = &backward->service;
	struct sockaddr_in6 client = { .sin6_family = AF_INET6 };
	unsigned int modules;
	struct xprt_create args = {
		.ident		= XPRT_TRANSPORT_BC_RDMA,
		.net		= &init_net,
		.dstaddr	= (struct sockaddr *)&client,
		.addrlen	= sizeof(client),
		.bc_xprt	= &service->xprt,
	};
	struct rpc_xprt *xprt;

	service->xprt.xpt_bc_xprt = NULL;
	backward->fake.conn->backward_credits = 0;
	refcount_set(&service->users, 1);
	spin_lock_init(&service->xprt.xpt_lock);
	xprt = svcrdma_callback_setup(&args);
	KUNIT_ASSERT_FALSE(test, IS_ERR(xprt));
	/* A second one takes nothing. */
	modules = module_refcount(THIS_MODULE);
	KUNIT_EXPECT_EQ(test, PTR_ERR(svcrdma_callback_setup(&args)), -EBUSY);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), modules);
	KUNIT_EXPECT_EQ(test, refcount_read(&service->users), 2);
	return xprt;
}

/* A Call that is sent after ->xpo_free finds the service. */
static void test_service_is_kept(struct kunit *test)
{
	struct backward *backward = backward_begin(test);
	struct svcrdma_service *service = &backward->service;
	struct rpc_xprt *xprt = make_client(test, backward);

	/* As the core does it, first for the svc_xprt, and then when all tasks have ended */
	xprt_put(service->xprt.xpt_bc_xprt);
	KUNIT_EXPECT_EQ(test, refcount_read(&service->users), 2);
	xprt->ops->destroy(xprt);
	KUNIT_EXPECT_EQ(test, refcount_read(&service->users), 1);
	rpcrdma_recv_put(backward->request.recv);
	backward_end(test, backward);
}

/*
 * ->prepare_request accepts the longest Call that fits inline. If a longer one is sent all the
 * same, its Send, request and credit are given back.
 */
static void test_call_too_long(struct kunit *test)
{
	struct backward *backward = backward_begin(test);
	struct svcrdma_service *service = &backward->service;
	struct rpc_xprt *xprt = make_client(test, backward);
	struct rpc_rqst rqst = { .rq_xprt = xprt };
	struct xdr_buf *buf = &rqst.rq_snd_buf;

	service->version = RPCRDMA_VERSION_ONE;
	service->detached = true;	/* there is no RPC server that could close it */
	spin_lock_init(&service->lock);
	INIT_LIST_HEAD(&service->received);
	buf->len = RPCRDMA_INLINE_MIN - 28;
	KUNIT_EXPECT_EQ(test, xprt->ops->prepare_request(&rqst, buf), 0);
	buf->len += 4;
	KUNIT_EXPECT_EQ(test, xprt->ops->prepare_request(&rqst, buf), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, xprt->ops->send_request(&rqst), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, xprt->cong, 0);
	KUNIT_EXPECT_EQ(test, fake_busy_sends(&backward->fake), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&service->num_requests), 0);

	xprt_put(service->xprt.xpt_bc_xprt);
	xprt->ops->destroy(xprt);
	rpcrdma_recv_put(backward->request.recv);
	backward_end(test, backward);
}

static struct kunit_case callback_cases[] = {
	KUNIT_CASE(test_receive_before_credit),
	KUNIT_CASE(test_receives_grow),
	KUNIT_CASE(test_service_is_kept),
	KUNIT_CASE(test_call_too_long),
	KUNIT_CASE_PARAM(test_granted, grant_gen_params),
	KUNIT_CASE_PARAM(test_completes, completes_gen_params),
	KUNIT_CASE(test_waits),
	KUNIT_CASE_PARAM(test_call, call_gen_params),
	KUNIT_CASE_PARAM(test_reply, reply_gen_params),
	{}
};

static struct kunit_suite callback_suite = {
	.name = "rpcrdma_callback",
	.test_cases = callback_cases,
};

kunit_test_suites(&callback_suite);
