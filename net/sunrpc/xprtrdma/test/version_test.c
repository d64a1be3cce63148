// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/: how a connection settles on a version.
 */
#include <kunit/test.h>

#include "../client/version.h"

#define XID		cpu_to_be32(0xcafe)
#define OTHER_XID	cpu_to_be32(0xbeef)

static const struct rpcrdma_agreement defaults = {
	.call_threshold = 1024, .reply_threshold = 1024, .client_inv = true,
};

static const struct rpcrdma_agreement large = {
	.call_threshold = 16384, .reply_threshold = 8192,
};

static struct xprt_rdma_version start_with(u32 offered,
					   const struct rpcrdma_agreement *agreement)
{
	struct xprt_rdma_version version;

	xprt_rdma_version_init(&version, offered, true);
	xprt_rdma_version_begin(&version, agreement);
	return version;
}

/* The first Call is outstanding. */
static struct xprt_rdma_version start_asked(struct kunit *test)
{
	struct xprt_rdma_version version = start_with(RPCRDMA_VERSION_TWO, &defaults);

	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_ask(&version, XID));
	return version;
}

/* A message has kilobytes, and only these few members count. */
static enum xprt_rdma_version_verdict
judge_message(struct kunit *test, struct xprt_rdma_version *version, u32 of_message,
	      enum rpcrdma_proc proc, enum rpcrdma_error error, u32 low, u32 high)
{
	struct rpcrdma_message *msg = kunit_kzalloc(test, sizeof(*msg), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, msg);
	msg->xid = XID;
	msg->version = of_message;
	msg->proc = proc;
	msg->direction = RPCRDMA_REPLY;
	msg->error = error;
	if (error == RPCRDMA_ERR_VERS) {
		msg->version_low = low;
		msg->version_high = high;
	}
	return xprt_rdma_version_judge(version, msg);
}

static enum xprt_rdma_version_verdict
reply(struct kunit *test, struct xprt_rdma_version *version, u32 of_message)
{
	return judge_message(test, version, of_message, RPCRDMA_MSG, 0, 0, 0);
}

static enum xprt_rdma_version_verdict
judge_error(struct kunit *test, struct xprt_rdma_version *version, u32 of_message,
	    enum rpcrdma_error error)
{
	return judge_message(test, version, of_message, RPCRDMA_ERROR, error, 0, 0);
}

static enum xprt_rdma_version_verdict
judge_refusal(struct kunit *test, struct xprt_rdma_version *version, u32 of_message,
	      u32 low, u32 high)
{
	return judge_message(test, version, of_message, RPCRDMA_ERROR, RPCRDMA_ERR_VERS,
		     low, high);
}

static void expect_limits(struct kunit *test, const struct xprt_rdma_version *version,
			  u32 header_min, u32 call_threshold, u32 reply_threshold)
{
	KUNIT_EXPECT_EQ(test, version->header_min, header_min);
	KUNIT_EXPECT_EQ(test, version->call_threshold, call_threshold);
	KUNIT_EXPECT_EQ(test, version->reply_threshold, reply_threshold);
}

static void expect_open(struct kunit *test, struct xprt_rdma_version *version)
{
	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(version), 0);
	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_ask(version, XID));
}

/* Version 1 alone: nothing to ask, and no time-out */
static void test_version_one(struct kunit *test)
{
	struct xprt_rdma_version version = start_with(RPCRDMA_VERSION_ONE, &large);

	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version), 1);
	expect_limits(test, &version, 28, 16384, 8192);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_ask(&version, XID));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_decline(&version));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_time_out(&version));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_is_lost(&version, -ECONNRESET));
}

/* The first Call goes alone, and is short. */
static void test_version_ask(struct kunit *test)
{
	struct xprt_rdma_version version = start_with(RPCRDMA_VERSION_TWO, &large);

	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version), 0);
	expect_limits(test, &version, 36, 1024, 8192);
	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_ask(&version, XID));
	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version), 0);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_ask(&version, OTHER_XID));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_decline(&version));
}

static void test_version_unask(struct kunit *test)
{
	struct xprt_rdma_version version = start_asked(test);

	xprt_rdma_version_unask(&version);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_time_out(&version));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_is_lost(&version, -ECONNRESET));
	expect_open(test, &version);
}

static void test_version_agreed(struct kunit *test)
{
	struct xprt_rdma_version version = start_asked(test);

	KUNIT_EXPECT_EQ(test, reply(test, &version, 2), XPRT_RDMA_VERSION_AGREED);
	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version), 2);
	expect_limits(test, &version, 36, 4096, 4096);
	KUNIT_EXPECT_EQ(test, reply(test, &version, 2), XPRT_RDMA_VERSION_TAKE);
	KUNIT_EXPECT_EQ(test, judge_error(test, &version, 2, RPCRDMA_ERR_BAD_XDR),
			XPRT_RDMA_VERSION_TAKE);
	/* The Call had been sent before the sender learned that it was not. */
	xprt_rdma_version_unask(&version);
	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version), 2);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_is_lost(&version, -ECONNRESET));
}

/* What was agreed on by RFC 8797 holds for version 2 if it is more. */
static void test_version_agreed_large(struct kunit *test)
{
	struct xprt_rdma_version version = start_with(RPCRDMA_VERSION_TWO, &large);

	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_ask(&version, XID));
	KUNIT_EXPECT_EQ(test, reply(test, &version, 2), XPRT_RDMA_VERSION_AGREED);
	expect_limits(test, &version, 36, 16384, 8192);
}

/* No Reply has another version than its Call. */
static void test_version_changes(struct kunit *test)
{
	struct xprt_rdma_version version = start_asked(test);

	KUNIT_EXPECT_EQ(test, reply(test, &version, 1), XPRT_RDMA_VERSION_DROP);
	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version), 0);
	KUNIT_EXPECT_EQ(test, reply(test, &version, 2), XPRT_RDMA_VERSION_AGREED);
	KUNIT_EXPECT_EQ(test, reply(test, &version, 1), XPRT_RDMA_VERSION_DROP);
	KUNIT_EXPECT_EQ(test, judge_refusal(test, &version, 1, 1, 1), XPRT_RDMA_VERSION_DROP);
	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version), 2);
}

/* Replies that nobody has asked for settle nothing. */
static void test_version_unasked_reply(struct kunit *test)
{
	struct xprt_rdma_version version;

	xprt_rdma_version_init(&version, RPCRDMA_VERSION_TWO, true);
	KUNIT_EXPECT_EQ(test, reply(test, &version, 2), XPRT_RDMA_VERSION_DROP);
	xprt_rdma_version_begin(&version, &defaults);
	KUNIT_EXPECT_EQ(test, judge_refusal(test, &version, 2, 1, 1), XPRT_RDMA_VERSION_DROP);
	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_ask(&version, OTHER_XID));
	KUNIT_EXPECT_EQ(test, reply(test, &version, 2), XPRT_RDMA_VERSION_DROP);
	KUNIT_EXPECT_EQ(test, judge_refusal(test, &version, 2, 1, 1), XPRT_RDMA_VERSION_DROP);
	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version), 0);
}

struct range_row {
	const char *name;
	u32 version;
	u32 low;
	u32 high;
	bool refused;
};

static const struct range_row range_rows[] = {
	{ "1 alone", 2, 1, 1, true },
	{ "1 alone, from a server that does not copy the version", 1, 1, 1, true },
	{ "a version that nobody has", 7, 1, 1, true },
	{ "0 to 1", 2, 0, 1, true },
	{ "1 to 9, although it refuses 2", 2, 1, 9, true },
	{ "1 to 2, although it refuses 2", 2, 1, 2, true },
	{ "2 alone, although it refuses 2", 2, 2, 2, false },
	{ "3 to 5", 2, 3, 5, false },
	{ "0 alone", 2, 0, 0, false },
	{ "all from 2 on", 2, 2, U32_MAX, false },
	{ "an empty range", 2, 5, 3, false },
	{ "an empty range around 1", 2, 2, 1, false },
};

KUNIT_ARRAY_PARAM_DESC(range, range_rows, name);

static void test_version_refused(struct kunit *test)
{
	const struct range_row *row = test->param_value;
	struct xprt_rdma_version version = start_asked(test);
	enum xprt_rdma_version_verdict verdict;

	verdict = judge_refusal(test, &version, row->version, row->low, row->high);
	if (!row->refused) {
		KUNIT_EXPECT_EQ(test, verdict, XPRT_RDMA_VERSION_FAILED);
		KUNIT_EXPECT_FALSE(test, xprt_rdma_version_is_lost(&version, -ECONNRESET));
		expect_open(test, &version);
		return;
	}
	KUNIT_EXPECT_EQ(test, verdict, XPRT_RDMA_VERSION_REFUSED);
	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version), 1);
	expect_limits(test, &version, 28, 1024, 1024);
	/* Once per connection, so there is no loop. */
	KUNIT_EXPECT_EQ(test, judge_refusal(test, &version, 2, 1, 1), XPRT_RDMA_VERSION_DROP);
	KUNIT_EXPECT_EQ(test, judge_refusal(test, &version, 1, 1, 1), XPRT_RDMA_VERSION_TAKE);
	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version), 1);
}

/* A connection that does not outlive the refusal */
static void test_version_refused_then_closed(struct kunit *test)
{
	struct xprt_rdma_version version = start_asked(test);

	KUNIT_EXPECT_EQ(test, judge_refusal(test, &version, 2, 1, 1), XPRT_RDMA_VERSION_REFUSED);
	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_is_lost(&version, -ECONNRESET));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_is_lost(&version, -ESHUTDOWN));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_is_lost(&version, -ENODEV));
	KUNIT_EXPECT_EQ(test, reply(test, &version, 2), XPRT_RDMA_VERSION_DROP);
	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_is_lost(&version, -ECONNRESET));
	KUNIT_EXPECT_EQ(test, reply(test, &version, 1), XPRT_RDMA_VERSION_TAKE);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_is_lost(&version, -ECONNRESET));
}

/* Other errors that answer the first Call */
static void test_version_errors(struct kunit *test)
{
	static const struct {
		u32 version;
		enum rpcrdma_error error;
		enum xprt_rdma_version_verdict verdict;
	} rows[] = {
		{ 2, RPCRDMA_ERR_BAD_XDR, XPRT_RDMA_VERSION_REFUSED },
		{ 1, RPCRDMA_ERR_BAD_XDR, XPRT_RDMA_VERSION_REFUSED },
		{ 2, RPCRDMA_ERR_INVAL_PROC, XPRT_RDMA_VERSION_REFUSED },
		{ 2, RPCRDMA_ERR_INVAL_OPTION, XPRT_RDMA_VERSION_REFUSED },
		{ 2, RPCRDMA_ERR_CANT_REPLY, XPRT_RDMA_VERSION_FAILED },
	};
	struct xprt_rdma_version version;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		version = start_asked(test);
		KUNIT_EXPECT_EQ(test, rows[i].verdict,
				judge_error(test, &version, rows[i].version, rows[i].error));
		KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version),
				rows[i].verdict == XPRT_RDMA_VERSION_REFUSED ? 1 : 0);
	}
	expect_open(test, &version);
	KUNIT_EXPECT_EQ(test, reply(test, &version, 2), XPRT_RDMA_VERSION_AGREED);
}

static void test_version_timer_first(struct kunit *test)
{
	struct xprt_rdma_version version = start_asked(test);

	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_time_out(&version));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_time_out(&version));
	/* The RPC of this Reply ends well all the same. */
	KUNIT_EXPECT_EQ(test, reply(test, &version, 2), XPRT_RDMA_VERSION_TAKE);
	/* But this one's is sent again on the next connection. */
	KUNIT_EXPECT_EQ(test, judge_refusal(test, &version, 2, 1, 1), XPRT_RDMA_VERSION_DROP);
	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version), 0);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_ask(&version, XID));
	xprt_rdma_version_unask(&version);
	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_is_lost(&version, -ETIMEDOUT));
	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_is_lost(&version, -ESHUTDOWN));
}

static void test_version_reply_first(struct kunit *test)
{
	struct xprt_rdma_version version = start_asked(test);

	KUNIT_EXPECT_EQ(test, reply(test, &version, 2), XPRT_RDMA_VERSION_AGREED);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_time_out(&version));
	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version), 2);

	version = start_asked(test);
	KUNIT_EXPECT_EQ(test, judge_refusal(test, &version, 2, 1, 1), XPRT_RDMA_VERSION_REFUSED);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_time_out(&version));
	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version), 1);

	version = start_asked(test);
	KUNIT_EXPECT_EQ(test, judge_refusal(test, &version, 2, 3, 5), XPRT_RDMA_VERSION_FAILED);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_time_out(&version));
	expect_open(test, &version);
}

/* No answer, and the connection is gone before the time is over */
static void test_version_closed_when_asked(struct kunit *test)
{
	struct xprt_rdma_version version = start_with(RPCRDMA_VERSION_TWO, &defaults);

	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_is_lost(&version, -ECONNRESET));
	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_ask(&version, XID));
	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_is_lost(&version, -ECONNRESET));
	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_is_lost(&version, -ETIMEDOUT));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_is_lost(&version, -ESHUTDOWN));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_is_lost(&version, -ENODEV));
}

/* The first Call would be too long. */
static void test_version_decline(struct kunit *test)
{
	struct xprt_rdma_version version = start_with(RPCRDMA_VERSION_TWO, &large);

	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_decline(&version));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_decline(&version));
	KUNIT_EXPECT_EQ(test, xprt_rdma_version_settled(&version), 1);
	expect_limits(test, &version, 28, 16384, 8192);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_ask(&version, XID));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_version_is_lost(&version, -ECONNRESET));
}

/* In version 1 what the private data say, in version 2 what the Calls say */
static void test_version_may_invalidate(struct kunit *test)
{
	const struct rpcrdma_agreement *agreements[] = { &large, &defaults };
	struct xprt_rdma_version version;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		xprt_rdma_version_init(&version, RPCRDMA_VERSION_TWO, i & 1);
		xprt_rdma_version_begin(&version, agreements[i / 2]);
		KUNIT_EXPECT_EQ(test, version.names_handle, !!(i & 1));
		KUNIT_EXPECT_EQ(test, xprt_rdma_version_may_invalidate(&version), !!(i & 1));
		xprt_rdma_version_decline(&version);
		KUNIT_EXPECT_EQ(test, xprt_rdma_version_may_invalidate(&version), i / 2);
	}
	version = start_with(RPCRDMA_VERSION_ONE, &defaults);
	KUNIT_EXPECT_FALSE(test, version.names_handle);
	KUNIT_EXPECT_TRUE(test, xprt_rdma_version_may_invalidate(&version));
}

static struct kunit_case version_cases[] = {
	KUNIT_CASE(test_version_one),
	KUNIT_CASE(test_version_ask),
	KUNIT_CASE(test_version_unask),
	KUNIT_CASE(test_version_agreed),
	KUNIT_CASE(test_version_agreed_large),
	KUNIT_CASE(test_version_changes),
	KUNIT_CASE(test_version_unasked_reply),
	KUNIT_CASE_PARAM(test_version_refused, range_gen_params),
	KUNIT_CASE(test_version_refused_then_closed),
	KUNIT_CASE(test_version_errors),
	KUNIT_CASE(test_version_timer_first),
	KUNIT_CASE(test_version_reply_first),
	KUNIT_CASE(test_version_closed_when_asked),
	KUNIT_CASE(test_version_decline),
	KUNIT_CASE(test_version_may_invalidate),
	{}
};

static struct kunit_suite version_suite = {
	.name = "rpcrdma_version",
	.test_cases = version_cases,
};

kunit_test_suites(&version_suite);
