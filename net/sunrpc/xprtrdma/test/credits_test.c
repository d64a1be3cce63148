// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/: how many Calls may be outstanding.
 */
#include <kunit/test.h>

#include "../client/credits.h"

#define REQUESTED	32

/* With Receives for @posted Replies */
static struct xprt_rdma_credits start_with(u32 posted)
{
	struct xprt_rdma_credits credits;

	xprt_rdma_credits_init(&credits, posted);
	return credits;
}

static struct xprt_rdma_credits start(void)
{
	return start_with(2 * REQUESTED);
}

/* Send all Calls that may be sent, and return how many. */
static unsigned int send_all(struct xprt_rdma_credits *credits)
{
	unsigned int sent = 0;

	while (xprt_rdma_credits_left(credits)) {
		atomic_inc(&credits->in_flight);
		sent++;
	}
	return sent;
}

static void receive_reply(struct xprt_rdma_credits *credits, u32 granted)
{
	xprt_rdma_credits_grant(credits, granted, REQUESTED);
	xprt_rdma_credits_give(credits);
}

static void test_credits_before_first_reply(struct kunit *test)
{
	struct xprt_rdma_credits credits = start();

	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
	receive_reply(&credits, 8);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 8);
}

static void test_credits_no_more_than_requested(struct kunit *test)
{
	struct xprt_rdma_credits credits = start();

	receive_reply(&credits, U32_MAX);
	KUNIT_EXPECT_EQ(test, send_all(&credits), REQUESTED);
}

static void test_credits_zero(struct kunit *test)
{
	struct xprt_rdma_credits credits = start();

	receive_reply(&credits, 0);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
}

static void test_credits_fall_and_rise(struct kunit *test)
{
	struct xprt_rdma_credits credits = start();

	receive_reply(&credits, 4);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 4);
	receive_reply(&credits, 2);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 0);
	receive_reply(&credits, 2);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 0);
	receive_reply(&credits, 2);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
	receive_reply(&credits, 5);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 4);
}

/* Only a Reply gives a credit back. The end of the task that waits for it does not. */
static void test_credits_killed_task(struct kunit *test)
{
	struct xprt_rdma_credits credits = start();

	receive_reply(&credits, 3);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 3);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_credits_left(&credits));
	receive_reply(&credits, 3);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
}

/* Only while orphaned Calls hold all credits */
static void test_credits_wedged(struct kunit *test)
{
	struct xprt_rdma_credits credits = start();

	receive_reply(&credits, 3);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_credits_wedged(&credits));
	send_all(&credits);
	atomic_inc(&credits.orphaned);
	atomic_inc(&credits.orphaned);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_credits_wedged(&credits));
	atomic_inc(&credits.orphaned);
	KUNIT_EXPECT_TRUE(test, xprt_rdma_credits_wedged(&credits));

	atomic_dec(&credits.orphaned);
	receive_reply(&credits, 3);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_credits_wedged(&credits));
	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
	/* A grant falls to what orphaned Calls hold, and another Call is in flight. */
	credits.granted = 2;
	KUNIT_EXPECT_FALSE(test, xprt_rdma_credits_wedged(&credits));
}

/* More Receives are posted as soon as a task wants to send. */
static void test_credits_short_of_receives(struct kunit *test)
{
	struct xprt_rdma_credits credits = start_with(2);

	receive_reply(&credits, 8);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 2);
	atomic_inc(&credits.orphaned);
	atomic_inc(&credits.orphaned);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_credits_wedged(&credits));
}

/* The Reply may arrive just before the Call is orphaned. */
static void test_credits_concluded_early(struct kunit *test)
{
	struct xprt_rdma_credits credits = start();

	send_all(&credits);
	atomic_dec(&credits.orphaned);
	atomic_inc(&credits.orphaned);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_credits_wedged(&credits));
}

static void test_credits_unasked_replies(struct kunit *test)
{
	struct xprt_rdma_credits credits = start();
	unsigned int i;

	for (i = 0; i < 100; i++)
		receive_reply(&credits, 2);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 2);
}

/*
 * Messages in 32-bit words, and whether another Call may be sent when they are dropped.
 * Messages of version 2 arrive where it is offered, the others where it is not.
 */
struct discard_row {
	const char *name;
	bool backward;
	bool frees;
	u32 len;
	u32 word[10];
};

static const struct discard_row discard_rows[] = {
	{
		"too short to be anything", false, true,
		24, { 0xcafe, 1, 64, RPCRDMA_MSG },
	}, {
		"too short to be anything, or a backward Call", true, false,
		24, { 0xcafe, 1, 64, RPCRDMA_MSG },
	}, {
		"an unknown version", false, true,
		36, { 0xcafe, 7, 64, RPCRDMA_MSG, 0, 0, 0, 0xcafe, 1 },
	}, {
		"a backward Call of another version, which is answered", true, false,
		36, { 0xcafe, 7, 64, RPCRDMA_MSG, 0, 0, 0, 0xcafe, 1 },
	}, {
		"RDMA_MSGP", false, true,
		36, { 0xcafe, 1, 64, RPCRDMA_MSGP, 0, 0, 0, 0xcafe, 1 },
	}, {
		"RDMA_MSGP, or a backward one", true, false,
		36, { 0xcafe, 1, 64, RPCRDMA_MSGP, 0, 0, 0, 0xcafe, 1 },
	}, {
		"a Write list that does not end", false, true,
		36, { 0xcafe, 1, 64, RPCRDMA_MSG, 0, 1, 9, 0xcafe, 1 },
	}, {
		"a Write list that does not end, or a backward one", true, false,
		36, { 0xcafe, 1, 64, RPCRDMA_MSG, 0, 1, 9, 0xcafe, 1 },
	}, {
		"a Reply of another XID than its header", true, true,
		36, { 0xcafe, 1, 64, RPCRDMA_MSG, 0, 0, 0, 0xbeef, 1 },
	}, {
		"RDMA_NOMSG with nothing", false, true,
		28, { 0xcafe, 1, 64, RPCRDMA_NOMSG },
	}, {
		"RDMA_NOMSG with nothing, or a backward one", true, false,
		28, { 0xcafe, 1, 64, RPCRDMA_NOMSG },
	}, {
		"an RDMA_ERROR that cannot be decoded", true, true,
		28, { 0xcafe, 1, 64, RPCRDMA_ERROR, 99 },
	}, {
		"RDMA_DONE, which answers nothing", true, false,
		28, { 0xcafe, 1, 64, RPCRDMA_DONE },
	}, {
		"a backward Call that nobody expects", false, false,
		36, { 0xcafe, 1, 64, RPCRDMA_MSG, 0, 0, 0, 0xcafe, 0 },
	}, {
		"a bad backward Call, which is answered", true, false,
		36, { 0xcafe, 1, 64, RPCRDMA_MSG, 0, 0, 0, 0xbeef, 0 },
	}, {
		"a Reply of version 2, which tells its direction", true, true,
		40, { 0xcafe, 2, 64, RPCRDMA_MSG, 1, 0, 0, 1, 9, 0xcafe },
	}, {
		"an error of version 2 that cannot be decoded", true, true,
		28, { 0xcafe, 2, 64, RPCRDMA_ERROR, 99 },
	}, {
		"an unknown option of version 2, which answers nothing", false, false,
		28, { 0xcafe, 2, 64, RPCRDMA_OPTIONAL, 1, 17, 0 },
	}, {
		"an unknown option, where backward Calls are expected", true, false,
		28, { 0xcafe, 2, 64, RPCRDMA_OPTIONAL, 1, 17, 0 },
	},
};

KUNIT_ARRAY_PARAM_DESC(discard, discard_rows, name);

static void test_credits_discarded(struct kunit *test)
{
	const struct discard_row *row = test->param_value;
	struct xprt_rdma_credits credits = start();
	struct rpcrdma_message *msg;
	enum rpcrdma_verdict verdict;
	__be32 word[10];
	unsigned int i;

	msg = kunit_kzalloc(test, sizeof(*msg), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, msg);
	for (i = 0; i < ARRAY_SIZE(word); i++)
		word[i] = cpu_to_be32(row->word[i]);
	receive_reply(&credits, 4);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 4);

	verdict = rpcrdma_wire_decode(msg, word, row->len, RPCRDMA_CLIENT_END,
				      row->backward,
				      row->word[1] == RPCRDMA_VERSION_TWO ?
				      RPCRDMA_VERSION_TWO : RPCRDMA_VERSION_ONE);
	KUNIT_EXPECT_NE(test, verdict, RPCRDMA_USE);
	if (verdict == RPCRDMA_DROP &&
	    xprt_rdma_credits_freed_by(msg, row->backward))
		xprt_rdma_credits_give(&credits);
	KUNIT_EXPECT_EQ(test, send_all(&credits), row->frees ? 1 : 0);
}

/* Bad Replies do not use up credits. */
static void test_credits_recover(struct kunit *test)
{
	struct xprt_rdma_credits credits = start();
	unsigned int i;

	receive_reply(&credits, 4);
	for (i = 0; i < 100; i++) {
		send_all(&credits);
		xprt_rdma_credits_give(&credits);
	}
	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
	for (i = 0; i < 4; i++)
		receive_reply(&credits, 4);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 4);
}

static void test_credits_grant_changes(struct kunit *test)
{
	struct xprt_rdma_credits credits = start();

	KUNIT_EXPECT_TRUE(test, xprt_rdma_credits_grant(&credits, 1, REQUESTED));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_credits_grant(&credits, 1, REQUESTED));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_credits_grant(&credits, 0, REQUESTED));
	KUNIT_EXPECT_TRUE(test, xprt_rdma_credits_grant(&credits, 2, REQUESTED));
	KUNIT_EXPECT_TRUE(test, xprt_rdma_credits_grant(&credits, 1, REQUESTED));
}

/* Make more Receives if these are what limits the Calls. Return: whether they were. */
static bool grow(struct xprt_rdma_credits *credits)
{
	u32 posted = xprt_rdma_credits_to_post(credits);

	if (posted <= credits->receives)
		return false;
	credits->receives = posted;
	return true;
}

/* Whatever the server grants, there is a Receive for each Reply to come. */
static void test_credits_have_receives(struct kunit *test)
{
	struct xprt_rdma_credits credits = start_with(4);

	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
	receive_reply(&credits, REQUESTED);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 4);
	KUNIT_EXPECT_EQ(test, min(credits.granted, credits.receives), 4);
	/* A fifth slot: its Call makes more Receives, even if none of the four is answered. */
	KUNIT_EXPECT_EQ(test, xprt_rdma_credits_slots(&credits), 5);
	KUNIT_EXPECT_TRUE(test, grow(&credits));
	KUNIT_EXPECT_EQ(test, send_all(&credits), 4);
	KUNIT_EXPECT_EQ(test, min(credits.granted, credits.receives), 8);
	/* Without memory for more Receives the limit stays. */
	receive_reply(&credits, REQUESTED);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
}

/* Receives are made for granted credits only, up to all that were requested. */
static void test_receives_follow_credits(struct kunit *test)
{
	struct xprt_rdma_credits credits = start_with(4);
	unsigned int steps = 0;

	KUNIT_EXPECT_FALSE(test, grow(&credits));
	receive_reply(&credits, 3);
	KUNIT_EXPECT_FALSE(test, grow(&credits));
	receive_reply(&credits, 5);
	KUNIT_EXPECT_TRUE(test, grow(&credits));
	KUNIT_EXPECT_FALSE(test, grow(&credits));
	KUNIT_EXPECT_EQ(test, min(credits.granted, credits.receives), 5);
	KUNIT_EXPECT_EQ(test, xprt_rdma_credits_slots(&credits), 5);
	receive_reply(&credits, U32_MAX);
	while (grow(&credits))
		steps++;
	KUNIT_EXPECT_EQ(test, steps, 3);
	KUNIT_EXPECT_EQ(test, min(credits.granted, credits.receives), REQUESTED);
	KUNIT_EXPECT_EQ(test, send_all(&credits), REQUESTED);
	/* A lower grant makes none. */
	receive_reply(&credits, 1);
	KUNIT_EXPECT_FALSE(test, grow(&credits));
	receive_reply(&credits, REQUESTED);
	KUNIT_EXPECT_EQ(test, min(credits.granted, credits.receives), REQUESTED);
}

/* How long a Call may wait that the server may have dropped */
static void test_credits_overdue(struct kunit *test)
{
	struct xprt_rdma_credits credits = start();

	/* The Call has the only credit: the first time-out is enough, if it waited that long. */
	send_all(&credits);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_credits_overdue(&credits, 59, 60,
							   false));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_credits_overdue(&credits, 59, 60,
							   true));
	KUNIT_EXPECT_TRUE(test, xprt_rdma_credits_overdue(&credits, 60, 60,
							  false));

	/* A server that answers may be slow, until the major time-out. */
	receive_reply(&credits, 3);
	send_all(&credits);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_credits_overdue(&credits, 60, 60,
							   false));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_credits_overdue(&credits, 179, 60,
							   false));
	KUNIT_EXPECT_TRUE(test, xprt_rdma_credits_overdue(&credits, 180, 60,
							  true));
	/* The major time-out began before the Call was sent on this connection. */
	KUNIT_EXPECT_FALSE(test, xprt_rdma_credits_overdue(&credits, 1, 60,
							   true));
}

static struct kunit_case credits_cases[] = {
	KUNIT_CASE(test_credits_before_first_reply),
	KUNIT_CASE(test_credits_no_more_than_requested),
	KUNIT_CASE(test_credits_zero),
	KUNIT_CASE(test_credits_fall_and_rise),
	KUNIT_CASE(test_credits_killed_task),
	KUNIT_CASE(test_credits_wedged),
	KUNIT_CASE(test_credits_overdue),
	KUNIT_CASE(test_credits_short_of_receives),
	KUNIT_CASE(test_credits_concluded_early),
	KUNIT_CASE(test_credits_unasked_replies),
	KUNIT_CASE_PARAM(test_credits_discarded, discard_gen_params),
	KUNIT_CASE(test_credits_recover),
	KUNIT_CASE(test_credits_grant_changes),
	KUNIT_CASE(test_credits_have_receives),
	KUNIT_CASE(test_receives_follow_credits),
	{}
};

static struct kunit_suite credits_suite = {
	.name = "rpcrdma_credits",
	.test_cases = credits_cases,
};

kunit_test_suites(&credits_suite);
