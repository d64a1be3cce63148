// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/version.c: a NULL of version 2 is the first message where that version
 * is allowed; which version its answer settles, and what no answer means for the next connection.
 */
#include <kunit/test.h>

#include "fake_client.h"

#define XID		0x1badcafe
#define LARGE		16384
#define REPLY_LEN	24

/* What the server does with the NULL */
struct answer {
	u32 version;
	enum rpcrdma_proc proc;
	enum rpcrdma_error error;
	u32 low;
	u32 high;
};

static const struct answer agrees = { RPCRDMA_VERSION_TWO, RPCRDMA_MSG };
static const struct answer refuses = {
	RPCRDMA_VERSION_TWO, RPCRDMA_ERROR, RPCRDMA_ERR_VERS, 1, 1
};

/* Of the test that runs */
static struct answer answer;
static int close_status;
static struct kunit *current_test;

static struct fake_client *client_of(struct fake_conn *fake)
{
	return container_of(fake, struct fake_client, fake);
}

static void send_answer(struct fake_client *t)
{
	t->msg.version = answer.version;
	if (answer.proc == RPCRDMA_ERROR) {
		rpcrdma_wire_cant_reply(&t->msg, NULL, 0);
		t->msg.error = answer.error;
		if (answer.error == RPCRDMA_ERR_VERS) {
			t->msg.version_low = answer.low;
			t->msg.version_high = answer.high;
		}
		rpcrdma_wire_make_error(&t->msg, FAKE_CREDITS);
		fake_server_sends(t, 0, 0);
	} else {
		fake_server_replies(t, FAKE_NULL_REPLY_LEN, 0);
	}
}

static void expect_asked(struct fake_client *t)
{
	KUNIT_EXPECT_TRUE(current_test, fake_server_gets_null(t));
	KUNIT_EXPECT_EQ(current_test, t->msg.version, RPCRDMA_VERSION_TWO);
	KUNIT_EXPECT_EQ(current_test, t->fake.posts, 1);
	KUNIT_EXPECT_EQ(current_test, t->ep->version.settled, 0);
	KUNIT_EXPECT_FALSE(current_test, completion_done(&t->ep->ready));
}

/* The Receive of the answer is posted again. Only then the first Call may be sent. */
static void answer_reposted(struct fake_conn *fake)
{
	KUNIT_EXPECT_FALSE(current_test, completion_done(&client_of(fake)->ep->ready));
}

static void answers(struct fake_conn *fake)
{
	struct fake_client *t = client_of(fake);
	unsigned int receives = fake->num_recvs;

	expect_asked(t);
	fake->reposting = answer_reposted;
	send_answer(t);
	fake->reposting = NULL;
	KUNIT_EXPECT_EQ(current_test, fake->num_recvs, receives);
	KUNIT_EXPECT_TRUE(current_test, completion_done(&t->ep->ready));
}

/* The NULL offers no handle. */
static void invalidates(struct fake_conn *fake)
{
	struct fake_client *t = client_of(fake);

	expect_asked(t);
	fake_server_replies(t, FAKE_NULL_REPLY_LEN, 0xdeadbeef);
	/* A device would not let that pass, but it would let a handle of another connection. */
	fake->broken = 0;
}

/* There is no other attempt, but what it asks for is known. */
static void fail_next(struct fake_client *t)
{
	t->fake.connect_error = -ECONNREFUSED;
}

/* What has happened before ->established, which could not send anything, is told now. */
static void was_closed(struct fake_conn *fake)
{
	fail_next(client_of(fake));
	fake->conn->state = RPCRDMA_STATE_ESTABLISHED;
	rpcrdma_conn_close(fake->conn, -ECONNRESET);
}

static void closes(struct fake_conn *fake)
{
	struct fake_client *t = client_of(fake);

	expect_asked(t);
	fail_next(t);
	rpcrdma_conn_close(fake->conn, close_status);
}

static void never_answers(struct fake_conn *fake)
{
	struct fake_client *t = client_of(fake);
	long left = t->ep->version.deadline - jiffies;

	expect_asked(t);
	KUNIT_EXPECT_LE(current_test, left, 10 * HZ);
	KUNIT_EXPECT_GT(current_test, left, 9 * HZ);
	WRITE_ONCE(t->ep->version.deadline, jiffies);
	fail_next(t);
}

static struct fake_client *connect(struct kunit *test, u32 threshold,
				   void (*established)(struct fake_conn *fake))
{
	struct fake_client *t = fake_client_make(test, threshold, RPCRDMA_VERSION_TWO);

	current_test = test;
	t->fake.established = established;
	fake_client_connect(t);
	return t;
}

static struct fake_client *connect_answered(struct kunit *test, u32 threshold,
					    const struct answer *of_server)
{
	answer = *of_server;
	return connect(test, threshold, answers);
}

static void expect_limits(struct kunit *test, const struct fake_client *t, u32 settled,
			  u32 header_min, u32 threshold)
{
	const struct xprt_rdma_version *version = &t->ep->version;

	KUNIT_EXPECT_EQ(test, version->settled, settled);
	KUNIT_EXPECT_EQ(test, t->client->version, settled);
	KUNIT_EXPECT_EQ(test, version->header_min, header_min);
	KUNIT_EXPECT_EQ(test, version->call_threshold, threshold);
	KUNIT_EXPECT_EQ(test, version->reply_threshold, threshold);
	KUNIT_EXPECT_EQ(test, t->client->backward_payload,
			min_t(u32, threshold - header_min, XPRT_RDMA_BACKWARD_MAX));
	KUNIT_EXPECT_PTR_EQ(test, t->client->ep, t->ep);
	/* The NULL takes no credit, and its answer grants none. */
	KUNIT_EXPECT_EQ(test, atomic_read(&t->ep->credits.in_flight), 0);
	KUNIT_EXPECT_EQ(test, t->ep->credits.granted, 1);
	KUNIT_EXPECT_FALSE(test, t->ep->credits.granted_any);
}

/* Which version the next connection offers */
static u32 next_offer(struct kunit *test, struct fake_client *t, int status)
{
	rpcrdma_conn_close(t->fake.conn, status);
	fake_conn_close(test, &t->fake);
	xprt_rdma_request_retire(&t->rpc.request);
	clear_bit(XPRT_CLOSE_WAIT, &t->client->xprt.state);
	xprt_rdma_ep_close(&t->client->xprt);
	KUNIT_EXPECT_EQ(test, t->client->version, 0);
	fail_next(t);
	t->client->xprt.reestablish_timeout = 0;
	fake_client_connect(t);
	return t->config.version_max;
}

static void expect_call_in(struct kunit *test, struct fake_client *t, u32 version)
{
	fake_rpc_begin(test, t, &t->rpc, XID, NULL, NULL);
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	KUNIT_EXPECT_TRUE(test, fake_server_gets(t, &t->rpc));
	KUNIT_EXPECT_EQ(test, t->msg.version, version);
}

/* Version 1 alone: nothing to ask */
static void test_version_one(struct kunit *test)
{
	struct fake_client *t = fake_client_begin(test, LARGE, RPCRDMA_VERSION_ONE);

	KUNIT_EXPECT_EQ(test, t->fake.posts, 0);
	expect_limits(test, t, 1, RPCRDMA_V1_HEADER_MIN, LARGE);
	KUNIT_EXPECT_EQ(test, next_offer(test, t, -ECONNRESET), RPCRDMA_VERSION_ONE);
	KUNIT_EXPECT_EQ(test, t->client->version_one_until, 0);
	fake_client_end(test, t);
}

static void test_version_agreed(struct kunit *test)
{
	struct fake_client *t = connect_answered(test, RPCRDMA_INLINE_MIN, &agrees);

	expect_limits(test, t, 2, RPCRDMA_V2_HEADER_MIN, RPCRDMA_V2_INLINE_MIN);
	expect_call_in(test, t, RPCRDMA_VERSION_TWO);
	KUNIT_EXPECT_EQ(test, next_offer(test, t, -ECONNRESET), RPCRDMA_VERSION_TWO);
	fake_client_end(test, t);

	/* What was agreed on by RFC 8797 holds for version 2 if it is more. */
	t = connect_answered(test, LARGE, &agrees);
	expect_limits(test, t, 2, RPCRDMA_V2_HEADER_MIN, LARGE);
	fake_client_end(test, t);
}

struct refusal_row {
	const char *name;
	struct answer answer;
};

#define REFUSAL(version, error, low, high)	{ (version), RPCRDMA_ERROR, (error), (low), (high) }

static const struct refusal_row refusal_rows[] = {
	{ "1 alone", REFUSAL(2, RPCRDMA_ERR_VERS, 1, 1) },
	{ "1 alone, from a server that does not copy the version",
	  REFUSAL(1, RPCRDMA_ERR_VERS, 1, 1) },
	{ "1 to 9, although it refuses 2", REFUSAL(2, RPCRDMA_ERR_VERS, 1, 9) },
	{ "2 alone, although it refuses 2", REFUSAL(2, RPCRDMA_ERR_VERS, 2, 2) },
	{ "3 to 5", REFUSAL(2, RPCRDMA_ERR_VERS, 3, 5) },
	{ "an empty range", REFUSAL(2, RPCRDMA_ERR_VERS, 5, 3) },
	{ "BAD_XDR", REFUSAL(2, RPCRDMA_ERR_BAD_XDR, 0, 0) },
	{ "version 1's ERR_CHUNK", REFUSAL(1, RPCRDMA_ERR_BAD_XDR, 0, 0) },
	{ "INVAL_PROC", REFUSAL(2, RPCRDMA_ERR_INVAL_PROC, 0, 0) },
	{ "INVAL_OPTION", REFUSAL(2, RPCRDMA_ERR_INVAL_OPTION, 0, 0) },
	{ "CANT_REPLY", REFUSAL(2, RPCRDMA_ERR_CANT_REPLY, 0, 0) },
};

KUNIT_ARRAY_PARAM_DESC(refusal, refusal_rows, name);

/* Once per connection, so there is no loop. */
static void test_version_refused(struct kunit *test)
{
	const struct refusal_row *row = test->param_value;
	struct fake_client *t = connect_answered(test, LARGE, &row->answer);

	KUNIT_EXPECT_EQ(test, t->connects, 1);
	expect_limits(test, t, 1, RPCRDMA_V1_HEADER_MIN, LARGE);
	KUNIT_EXPECT_EQ(test, t->fake.conn->counters.received.messages[RPCRDMA_A_TRAFFIC_ERROR], 1);
	KUNIT_EXPECT_EQ(test, t->client->stats.bad_replies, 0);
	KUNIT_EXPECT_EQ(test, t->client->version_one_until, 0);
	/* Another one finds no Call. */
	answer = refuses;
	send_answer(t);
	KUNIT_EXPECT_EQ(test, t->fake.conn->counters.errors[RPCRDMA_A_ERRORS_UNMATCHED], 1);
	expect_call_in(test, t, RPCRDMA_VERSION_ONE);
	fake_server_replies(t, REPLY_LEN, 0);
	KUNIT_EXPECT_TRUE(test, fake_rpc_is_complete(&t->rpc));
	/* A refusal alone is not remembered. */
	KUNIT_EXPECT_EQ(test, next_offer(test, t, -ECONNRESET), RPCRDMA_VERSION_TWO);
	fake_client_end(test, t);
}

/* A connection that does not outlive the refusal */
static void test_version_refused_then_closed(struct kunit *test)
{
	struct fake_client *t = connect_answered(test, LARGE, &refuses);

	KUNIT_EXPECT_EQ(test, next_offer(test, t, -ECONNRESET), RPCRDMA_VERSION_ONE);
	fake_client_end(test, t);

	t = connect_answered(test, LARGE, &refuses);
	KUNIT_EXPECT_EQ(test, next_offer(test, t, -ESHUTDOWN), RPCRDMA_VERSION_TWO);
	fake_client_end(test, t);
}

/* What is no answer is dropped: another version, and another XID. */
static void ignores_others(struct fake_conn *fake)
{
	struct fake_client *t = client_of(fake);
	__be32 xid;

	expect_asked(t);
	xid = t->msg.xid;
	answer.version = RPCRDMA_VERSION_ONE;
	send_answer(t);
	KUNIT_EXPECT_EQ(current_test, t->client->stats.bad_replies, 1);
	t->msg.xid = ~xid;
	answer = refuses;
	send_answer(t);
	KUNIT_EXPECT_EQ(current_test, t->client->stats.bad_replies, 2);
	t->msg.xid = 0;
	answer = agrees;
	send_answer(t);
	KUNIT_EXPECT_EQ(current_test, t->client->stats.bad_replies, 3);
	KUNIT_EXPECT_FALSE(current_test, completion_done(&t->ep->ready));
	t->msg.xid = xid;
	send_answer(t);
}

static void test_version_ignored(struct kunit *test)
{
	struct fake_client *t;

	answer = agrees;
	t = connect(test, LARGE, ignores_others);
	expect_limits(test, t, 2, RPCRDMA_V2_HEADER_MIN, LARGE);
	/* A second answer, and one for which nobody has asked */
	send_answer(t);
	t->msg.xid = cpu_to_be32(XID);
	send_answer(t);
	expect_call_in(test, t, RPCRDMA_VERSION_TWO);
	fake_client_end(test, t);
}

/* A server that does not answer in time has version 1 alone, for an hour. */
static void test_version_no_answer(struct kunit *test)
{
	struct fake_client *t = connect(test, LARGE, never_answers);
	struct xprt_rdma_client *client = t->client;
	long left = client->version_one_until - jiffies;

	KUNIT_EXPECT_EQ(test, t->fake.conn->status, -ETIMEDOUT);
	KUNIT_EXPECT_LE(test, left, 3600 * HZ);
	KUNIT_EXPECT_GT(test, left, 3590 * HZ);
	/* At once, so that a mount succeeds */
	KUNIT_EXPECT_EQ(test, t->connects, 2);
	KUNIT_EXPECT_EQ(test, t->config.version_max, RPCRDMA_VERSION_ONE);
	KUNIT_EXPECT_EQ(test, t->connector.tk_status, -ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, next_offer(test, t, 0), RPCRDMA_VERSION_ONE);
	client->version_one_until = jiffies ?: 1;
	KUNIT_EXPECT_EQ(test, next_offer(test, t, 0), RPCRDMA_VERSION_TWO);
	KUNIT_EXPECT_EQ(test, client->version_one_until, 0);
	fake_client_end(test, t);
}

/* No answer, and the connection is gone before the time is over */
static void test_version_closed_when_asked(struct kunit *test)
{
	static const struct {
		int status;
		unsigned int connects;
	} rows[] = {
		{ -ECONNRESET, 2 }, { -ETIMEDOUT, 2 }, { -ESHUTDOWN, 1 }, { -ENODEV, 1 },
	};
	struct fake_client *t;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		close_status = rows[i].status;
		t = connect(test, LARGE, closes);
		KUNIT_EXPECT_EQ(test, t->connects, rows[i].connects);
		KUNIT_EXPECT_EQ(test, !!t->client->version_one_until, rows[i].connects == 2);
		KUNIT_EXPECT_NULL(test, t->client->ep);
		KUNIT_EXPECT_FALSE(test, test_bit(XPRT_CLOSE_WAIT, &t->client->xprt.state));
		fake_client_end(test, t);
	}
}

/* The connection is closed before the NULL is sent, which says nothing about the server. */
static void test_version_not_asked(struct kunit *test)
{
	struct fake_client *t = fake_client_make(test, LARGE, RPCRDMA_VERSION_TWO);

	current_test = test;
	t->fake.established = was_closed;
	t->fake.conn->state = RPCRDMA_STATE_CLOSING;
	fake_client_connect(t);
	KUNIT_EXPECT_EQ(test, t->fake.posts, 0);
	KUNIT_EXPECT_EQ(test, t->connects, 1);
	KUNIT_EXPECT_EQ(test, t->client->version_one_until, 0);
	KUNIT_EXPECT_NULL(test, t->client->ep);
	fake_client_end(test, t);
}

static void test_version_invalidated(struct kunit *test)
{
	struct fake_client *t = connect(test, LARGE, invalidates);

	KUNIT_EXPECT_EQ(test, t->fake.conn->status, -EPROTO);
	fake_client_end(test, t);
}

/* In version 1 what the private data say, in version 2 what the Calls say */
static void test_version_may_invalidate(struct kunit *test)
{
	const struct answer *of_server[] = { &refuses, &agrees };
	struct fake_client *t;
	unsigned int i;

	for (i = 0; i < 8; i++) {
		xprt_rdma_remote_invalidation = i & 1;
		answer = *of_server[i >> 2];
		t = fake_client_make(test, LARGE, RPCRDMA_VERSION_TWO);
		current_test = test;
		t->fake.established = answers;
		t->fake.conn->agreement.client_inv = i >> 1 & 1;
		fake_client_connect(t);
		KUNIT_EXPECT_EQ(test, t->ep->version.names_handle, i >> 2 && i & 1);
		KUNIT_EXPECT_EQ(test, t->ep->version.may_invalidate,
				i >> 2 ? i & 1 : i >> 1 & 1);
		fake_client_end(test, t);
	}
	xprt_rdma_remote_invalidation = 1;
}

static struct kunit_case version_cases[] = {
	KUNIT_CASE(test_version_one),
	KUNIT_CASE(test_version_agreed),
	KUNIT_CASE_PARAM(test_version_refused, refusal_gen_params),
	KUNIT_CASE(test_version_refused_then_closed),
	KUNIT_CASE(test_version_ignored),
	KUNIT_CASE(test_version_no_answer),
	KUNIT_CASE(test_version_closed_when_asked),
	KUNIT_CASE(test_version_not_asked),
	KUNIT_CASE(test_version_invalidated),
	KUNIT_CASE(test_version_may_invalidate),
	{}
};

static struct kunit_suite version_suite = {
	.name = "rpcrdma_version",
	.exit = fake_client_exit,
	.test_cases = version_cases,
};

kunit_test_suites(&version_suite);
