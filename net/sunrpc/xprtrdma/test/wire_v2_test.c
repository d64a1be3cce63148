// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What version 2 has more than version 1: the verdict on its messages, errors
 * with arguments, the handle that a Reply invalidates, and negotiation. Draft 4 to 6.
 */
#include "wire_test.h"

/* Index of a word in RDMA2_MSG, RDMA2_NOMSG or RDMA2_OPTIONAL */
enum {
	AT_DIRECTION = 4,
	AT_INV_HANDLE = 5,
	AT_OPTINFO_LEN = 6,
	AT_XID = 9,		/* of the RPC message, without chunks */
	AT_MSG_TYPE = 10,
};

static int wire_v2_init(struct kunit *test)
{
	int ret = wire_init(test);

	if (!ret)
		((struct wire *)test->priv)->version_max = RPCRDMA_VERSION_TWO;
	return ret;
}

static void put_v2(struct wire *w, u32 proc, u32 direction)
{
	put_fixed(w, proc);
	w->word[1] = cpu_to_be32(RPCRDMA_VERSION_TWO);
	put(w, direction);
}

/* An RDMA2_MSG without chunks */
static void put_v2_msg(struct wire *w, u32 direction)
{
	put_v2(w, RPCRDMA_MSG, direction);
	put_zeros(w, 4);
	put_rpc(w, direction, CALL_LEN);
}

static void put_optional(struct wire *w, u32 direction, u32 octets)
{
	put_v2(w, RPCRDMA_OPTIONAL, direction);
	put(w, 42);
	put(w, octets);
	put_zeros(w, (octets + 3) / 4);
}

static void put_error(struct wire *w, u32 error)
{
	put_fixed(w, RPCRDMA_ERROR);
	w->word[1] = cpu_to_be32(RPCRDMA_VERSION_TWO);
	put(w, error);
}

static void expect_dropped(struct wire *w, enum rpcrdma_end end,
			   bool backward, enum rpcrdma_reason reason)
{
	KUNIT_EXPECT_EQ(w->test, receive(w, end, backward), RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(w->test, w->msg->reason, reason);
}

static void expect_error(struct wire *w, enum rpcrdma_end end, bool backward,
			 enum rpcrdma_reason reason, enum rpcrdma_error error)
{
	const u32 answer[] = {
		XID, RPCRDMA_VERSION_TWO, CREDITS, RPCRDMA_ERROR, error
	};

	KUNIT_EXPECT_EQ(w->test, receive(w, end, backward), RPCRDMA_ANSWER);
	KUNIT_EXPECT_EQ(w->test, w->msg->reason, reason);
	KUNIT_EXPECT_EQ(w->test, w->msg->error, error);
	expect_answer(w, answer, ARRAY_SIZE(answer));
}

/* A bad Call whose header says so: whoever is its responder answers it. */
static void expect_call_refused(struct wire *w, enum rpcrdma_reason reason,
				enum rpcrdma_error error)
{
	expect_error(w, RPCRDMA_SERVER_END, false, reason, error);
	expect_error(w, RPCRDMA_SERVER_END, true, reason, error);
	expect_error(w, RPCRDMA_CLIENT_END, true, reason, error);
	KUNIT_EXPECT_EQ(w->test, w->msg->direction, RPCRDMA_CALL);
	expect_dropped(w, RPCRDMA_CLIENT_END, false, RPCRDMA_BAD_DIRECTION);
}

/* A bad Reply whose header says so */
static void expect_v2_reply_dropped(struct wire *w, enum rpcrdma_reason reason)
{
	expect_dropped(w, RPCRDMA_SERVER_END, false, RPCRDMA_BAD_DIRECTION);
	expect_dropped(w, RPCRDMA_SERVER_END, true, reason);
	expect_dropped(w, RPCRDMA_CLIENT_END, true, reason);
	expect_dropped(w, RPCRDMA_CLIENT_END, false, reason);
	KUNIT_EXPECT_EQ(w->test, w->msg->direction, RPCRDMA_REPLY);
}

/* A bad message whose direction is unknown */
static void expect_unknown_refused(struct wire *w, enum rpcrdma_reason reason,
				   enum rpcrdma_error error)
{
	expect_error(w, RPCRDMA_SERVER_END, false, reason, error);
	expect_error(w, RPCRDMA_SERVER_END, true, reason, error);
	expect_dropped(w, RPCRDMA_CLIENT_END, true, reason);
	expect_dropped(w, RPCRDMA_CLIENT_END, false, reason);
	KUNIT_EXPECT_EQ(w->test, w->msg->direction, RPCRDMA_DIRECTION_UNKNOWN);
}

/* Headers */

static void test_v2_unknown_version(struct kunit *test)
{
	static const u32 versions[] = { 0, 3, 0x02000000, U32_MAX };
	struct wire *w = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(versions); i++) {
		const u32 err_vers[] = {
			XID, versions[i], CREDITS, RPCRDMA_ERROR,
			RPCRDMA_ERR_VERS, 1, 2
		};

		put_v2_msg(w, RPCRDMA_CALL);
		w->word[1] = cpu_to_be32(versions[i]);
		KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_SERVER_END, false),
				RPCRDMA_ANSWER);
		expect_answer(w, err_vers, ARRAY_SIZE(err_vers));
		expect_dropped(w, RPCRDMA_CLIENT_END, false,
			       RPCRDMA_BAD_VERSION);
	}
}

/* Below 28 octets no XID is trusted; below 36 the header is not whole. */
static void test_v2_short(struct kunit *test)
{
	struct wire *w = test->priv;

	KUNIT_EXPECT_EQ(test, rpcrdma_wire_header_min(RPCRDMA_VERSION_ONE), 28);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_header_min(RPCRDMA_VERSION_TWO), 36);

	put_v2_msg(w, RPCRDMA_CALL);
	for (w->words = 0; w->words < 7; w->words++)
		expect_dropped(w, RPCRDMA_SERVER_END, false, RPCRDMA_BAD_SHORT);
	for (; w->words < 9; w->words++)
		expect_call_refused(w, RPCRDMA_BAD_TRUNCATED,
				    RPCRDMA_ERR_BAD_XDR);
	for (; w->words < 11; w->words++)
		expect_call_refused(w, RPCRDMA_BAD_PAYLOAD_SHORT,
				    RPCRDMA_ERR_BAD_XDR);
	expect_usable_call(w);
}

static void test_v2_unknown_proc(struct kunit *test)
{
	static const u32 procs[] = { 2, 3, 6, 0x100, U32_MAX };
	struct wire *w = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(procs); i++) {
		put_v2_msg(w, RPCRDMA_CALL);
		w->word[3] = cpu_to_be32(procs[i]);
		expect_unknown_refused(w, RPCRDMA_BAD_PROC,
				       RPCRDMA_ERR_INVAL_PROC);
	}
}

static void test_v2_unknown_direction(struct kunit *test)
{
	static const u32 directions[] = { 2, 0x100, U32_MAX };
	struct wire *w = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(directions); i++) {
		put_v2_msg(w, RPCRDMA_CALL);
		w->word[AT_DIRECTION] = cpu_to_be32(directions[i]);
		expect_unknown_refused(w, RPCRDMA_BAD_MSG_TYPE,
				       RPCRDMA_ERR_BAD_XDR);
		put_optional(w, directions[i], 0);
		expect_unknown_refused(w, RPCRDMA_BAD_MSG_TYPE,
				       RPCRDMA_ERR_BAD_XDR);
	}
}

static void test_v2_direction_against_msg_type(struct kunit *test)
{
	struct wire *w = test->priv;

	put_v2_msg(w, RPCRDMA_CALL);
	w->word[AT_MSG_TYPE] = cpu_to_be32(RPCRDMA_REPLY);
	expect_call_refused(w, RPCRDMA_BAD_MSG_DIRECTION, RPCRDMA_ERR_BAD_XDR);
	w->word[AT_MSG_TYPE] = cpu_to_be32(2);
	expect_call_refused(w, RPCRDMA_BAD_MSG_TYPE, RPCRDMA_ERR_BAD_XDR);

	put_v2_msg(w, RPCRDMA_REPLY);
	w->word[AT_MSG_TYPE] = cpu_to_be32(RPCRDMA_CALL);
	expect_v2_reply_dropped(w, RPCRDMA_BAD_MSG_DIRECTION);
	w->word[AT_MSG_TYPE] = cpu_to_be32(2);
	expect_v2_reply_dropped(w, RPCRDMA_BAD_MSG_TYPE);
}

/* A header with a direction needs no whole list to be answered or dropped. */
static void test_v2_broken_at_either_end(struct kunit *test)
{
	struct wire *w = test->priv;

	put_v2_msg(w, RPCRDMA_CALL);
	w->word[6] = cpu_to_be32(2);
	expect_call_refused(w, RPCRDMA_BAD_DISCRIMINATOR, RPCRDMA_ERR_BAD_XDR);
	put_v2_msg(w, RPCRDMA_REPLY);
	w->word[6] = cpu_to_be32(2);
	expect_v2_reply_dropped(w, RPCRDMA_BAD_DISCRIMINATOR);

	put_v2_msg(w, RPCRDMA_CALL);
	w->word[AT_XID] = cpu_to_be32(XID + 1);
	expect_call_refused(w, RPCRDMA_BAD_XID, RPCRDMA_ERR_BAD_XDR);
	put_v2_msg(w, RPCRDMA_REPLY);
	w->word[AT_XID] = cpu_to_be32(XID + 1);
	expect_v2_reply_dropped(w, RPCRDMA_BAD_XID);
}

static void test_v2_read_list_in_reply(struct kunit *test)
{
	struct wire *w = test->priv;

	put_v2(w, RPCRDMA_MSG, RPCRDMA_REPLY);
	put(w, 0);
	put_read(w, 24, 1, 64);
	put_zeros(w, 3);
	put_rpc(w, RPCRDMA_REPLY, 24);
	expect_v2_reply_dropped(w, RPCRDMA_BAD_READ_IN_REPLY);
}

/* Which chunk holds the RPC message follows from the direction. */
static void test_v2_nomsg(struct kunit *test)
{
	struct wire *w = test->priv;

	put_v2(w, RPCRDMA_NOMSG, RPCRDMA_CALL);
	put_zeros(w, 3);
	put_chunk(w, 1);
	expect_call_refused(w, RPCRDMA_BAD_NO_PAYLOAD, RPCRDMA_ERR_BAD_XDR);

	w->word[AT_DIRECTION] = cpu_to_be32(RPCRDMA_REPLY);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, false),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_REPLY);
	KUNIT_EXPECT_EQ(test, w->msg->stream_len, 4096);
	/* A server offers no Reply chunks. */
	expect_dropped(w, RPCRDMA_SERVER_END, true, RPCRDMA_BAD_NO_PAYLOAD);
	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_REPLY);

	put_v2(w, RPCRDMA_NOMSG, RPCRDMA_CALL);
	put(w, 0);
	put_read(w, 0, 1, 64);
	put_zeros(w, 3);
	expect_usable_call(w);
	KUNIT_EXPECT_EQ(test, w->msg->stream_len, 64);
	/* Not a rule of the draft: what follows the header is ignored. */
	put_rpc(w, RPCRDMA_REPLY, CALL_LEN);
	expect_usable_call(w);
	KUNIT_EXPECT_EQ(test, w->msg->payload_len, 0);

	w->word[AT_DIRECTION] = cpu_to_be32(RPCRDMA_REPLY);
	expect_v2_reply_dropped(w, RPCRDMA_BAD_NO_PAYLOAD);
}

/* RDMA2_OPTIONAL */

static void test_v2_optional(struct kunit *test)
{
	struct wire *w = test->priv;
	u32 octets, payload;

	for (octets = 0; octets < 9; octets++) {
		for (payload = 0; payload < 2; payload++) {
			put_optional(w, RPCRDMA_CALL, octets);
			if (payload)
				put_rpc(w, RPCRDMA_CALL, CALL_LEN);
			expect_call_refused(w, RPCRDMA_BAD_OPTION,
					    RPCRDMA_ERR_INVAL_OPTION);

			put_optional(w, RPCRDMA_REPLY, octets);
			if (payload)
				put_rpc(w, RPCRDMA_REPLY, 24);
			expect_v2_reply_dropped(w, RPCRDMA_BAD_OPTION);
		}
	}
}

static void test_v2_optinfo_too_long(struct kunit *test)
{
	static const u32 lengths[] = {
		9, 12, 0x7fffffff, 0x80000000, U32_MAX - 3, U32_MAX - 2, U32_MAX
	};
	struct wire *w = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		put_optional(w, RPCRDMA_CALL, 8);
		w->word[AT_OPTINFO_LEN] = cpu_to_be32(lengths[i]);
		expect_call_refused(w, RPCRDMA_BAD_TRUNCATED,
				    RPCRDMA_ERR_BAD_XDR);
		w->word[AT_DIRECTION] = cpu_to_be32(RPCRDMA_REPLY);
		expect_v2_reply_dropped(w, RPCRDMA_BAD_TRUNCATED);
	}
}

static void test_v2_optional_is_not_sent(struct kunit *test)
{
	struct wire *w = test->priv;

	build_call(w->msg);
	w->msg->version = RPCRDMA_VERSION_TWO;
	w->msg->proc = RPCRDMA_OPTIONAL;
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_encode(w->msg, w->word, 64),
			-EINVAL);
}

/* RDMA2_ERROR */

static void test_v2_errors(struct kunit *test)
{
	struct wire *w = test->priv;
	u32 error;

	for (error = 0; error < 8; error++) {
		bool known = error >= 1 && error <= 5;

		put_error(w, error);
		put_zeros(w, 3);
		KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, false),
				known ? RPCRDMA_USE : RPCRDMA_DROP);
		KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_SERVER_END, true),
				known ? RPCRDMA_USE : RPCRDMA_DROP);
		if (known)
			KUNIT_EXPECT_EQ(test, w->msg->error, error);
		expect_dropped(w, RPCRDMA_SERVER_END, false,
			       RPCRDMA_BAD_DIRECTION);
	}
}

static void test_v2_cant_reply_decoded(struct kunit *test)
{
	struct wire *w = test->priv;

	put_error(w, RPCRDMA_ERR_CANT_REPLY);
	put(w, 1);
	put(w, 7);
	put(w, U32_MAX);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, false),
			RPCRDMA_USE);

	w->word[5] = cpu_to_be32(2);
	expect_dropped(w, RPCRDMA_CLIENT_END, false, RPCRDMA_BAD_ERROR);
	w->word[5] = 0;
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, false),
			RPCRDMA_USE);
	w->words--;
	expect_dropped(w, RPCRDMA_CLIENT_END, false, RPCRDMA_BAD_ERROR);
}

/* Segment 1 has 8192 octets, 2 and 3 are one chunk of 4608, 4 has 4096. */
static void build_replies(struct rpcrdma_message *msg)
{
	struct rpcrdma_chunk *chunk;

	rpcrdma_wire_init_call(msg, RPCRDMA_VERSION_TWO, cpu_to_be32(XID),
			       CREDITS);
	chunk = rpcrdma_wire_add_read(msg, 40);
	add(msg, chunk, 1, 64, 0);
	add(msg, chunk, 2, 64, 0);
	chunk = rpcrdma_wire_add_write(msg);
	add(msg, chunk, 3, 8192, 0);
	chunk = rpcrdma_wire_add_write(msg);
	add(msg, chunk, 4, 4096, 0);
	add(msg, chunk, 5, 512, 0);
	rpcrdma_wire_add_write(msg);
	chunk = rpcrdma_wire_add_reply(msg);
	add(msg, chunk, 6, 4096, 0);
}

static void expect_short(struct wire *w, const struct rpcrdma_chunk *chunk,
			 u32 octets, u32 segment, u32 length)
{
	const u32 answer[] = {
		XID, RPCRDMA_VERSION_TWO, CREDITS, RPCRDMA_ERROR,
		RPCRDMA_ERR_CANT_REPLY, 1, segment, length
	};

	rpcrdma_wire_cant_reply(w->msg, chunk, octets);
	expect_answer(w, answer, ARRAY_SIZE(answer));
}

static void test_v2_cant_reply(struct kunit *test)
{
	struct wire *w = test->priv;
	struct rpcrdma_message *msg = w->msg;

	build_replies(msg);
	expect_short(w, &msg->write[0], 8193, 1, 8193);
	expect_short(w, &msg->write[1], 4609, 3, 513);
	expect_short(w, &msg->write[2], 1, 0, 0);
	expect_short(w, &msg->reply_chunk, U32_MAX, 4, U32_MAX);
	expect_short(w, NULL, 4096, 0, 0);

	rpcrdma_wire_make_reply(msg, 1);
	expect_short(w, &msg->write[1], 5000, 3, 904);

	build_call(msg);
	msg->version = RPCRDMA_VERSION_TWO;
	add(msg, rpcrdma_wire_add_reply(msg), 1, 4096, 0);
	expect_short(w, &msg->reply_chunk, 5000, 1, 5000);
}

/* Version 1 has no such error. */
static void test_v1_cant_reply(struct kunit *test)
{
	static const u32 answer[] = {
		XID, RPCRDMA_VERSION_ONE, CREDITS, RPCRDMA_ERROR, V1_ERR_CHUNK
	};
	struct wire *w = test->priv;

	build_replies(w->msg);
	w->msg->version = RPCRDMA_VERSION_ONE;
	rpcrdma_wire_cant_reply(w->msg, &w->msg->write[0], 8193);
	expect_answer(w, answer, ARRAY_SIZE(answer));
}

/* Remote invalidation */

static void expect_handle(struct wire *w, bool agreed, u32 expected)
{
	u32 handle = 0;

	KUNIT_EXPECT_EQ(w->test,
			rpcrdma_wire_choose_handle(w->msg, agreed, &handle),
			expected != 0);
	KUNIT_EXPECT_EQ(w->test, handle, expected);
}

/* The Call alone says which handle, whatever private data say. */
static void test_v2_handle(struct kunit *test)
{
	struct wire *w = test->priv;
	u32 handle;

	build_replies(w->msg);
	expect_handle(w, false, 0);
	expect_handle(w, true, 0);
	for (handle = 1; handle <= 6; handle++) {
		w->msg->inv_handle = handle;
		expect_handle(w, false, handle);
		expect_handle(w, true, handle);
	}
	w->msg->inv_handle = 7;
	expect_handle(w, false, 0);
	expect_handle(w, true, 0);

	w->msg->version = RPCRDMA_VERSION_ONE;
	expect_handle(w, false, 0);
	expect_handle(w, true, 6);
}

/* A segment with handle zero is not one that may be invalidated. */
static void test_v2_handle_zero(struct kunit *test)
{
	struct wire *w = test->priv;

	build_call(w->msg);
	w->msg->version = RPCRDMA_VERSION_TWO;
	add(w->msg, rpcrdma_wire_add_write(w->msg), 0, 4096, 0);
	expect_handle(w, true, 0);
}

/* A Reply repeats the handle, even one that is none of the Call's. */
static void test_v2_handle_is_repeated(struct kunit *test)
{
	struct wire *w = test->priv;
	int len;

	put_v2_msg(w, RPCRDMA_CALL);
	w->word[AT_INV_HANDLE] = cpu_to_be32(0xdeadbeef);
	expect_usable_call(w);
	KUNIT_EXPECT_EQ(test, w->msg->inv_handle, 0xdeadbeef);
	expect_handle(w, true, 0);

	rpcrdma_wire_make_reply(w->msg, 1);
	len = rpcrdma_wire_encode(w->msg, w->word, sizeof(w->word));
	KUNIT_ASSERT_EQ(test, len, 36);
	KUNIT_EXPECT_EQ(test, wire_word(w->word, 1), RPCRDMA_VERSION_TWO);
	KUNIT_EXPECT_EQ(test, wire_word(w->word, AT_DIRECTION), RPCRDMA_REPLY);
	KUNIT_EXPECT_EQ(test, wire_word(w->word, AT_INV_HANDLE), 0xdeadbeef);
}

/* Negotiation, draft sections 2.3 and 6 */

static void test_thresholds(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_threshold(1, 1024), 1024);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_threshold(1, 65536), 65536);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_threshold(2, 1024), 4096);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_threshold(2, 4096), 4096);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_threshold(2, 65536), 65536);
}

/* An error of version 1 grants credits like any other Reply. */
static void test_grants(struct kunit *test)
{
	struct wire *w = test->priv;
	u32 version;

	for (version = 1; version <= RPCRDMA_VERSION_MAX; version++) {
		rpcrdma_wire_init_call(w->msg, version, cpu_to_be32(1), 32);
		rpcrdma_wire_make_reply(w->msg, 32);
		w->msg->proc = RPCRDMA_NOMSG;
		KUNIT_EXPECT_TRUE(test, rpcrdma_wire_grants(w->msg));
		w->msg->error = RPCRDMA_ERR_BAD_XDR;
		rpcrdma_wire_make_error(w->msg, 32);
		KUNIT_EXPECT_EQ(test, rpcrdma_wire_grants(w->msg), version == 1);
	}
}

static struct kunit_case wire_v2_cases[] = {
	KUNIT_CASE(test_v2_unknown_version),
	KUNIT_CASE(test_v2_short),
	KUNIT_CASE(test_v2_unknown_proc),
	KUNIT_CASE(test_v2_unknown_direction),
	KUNIT_CASE(test_v2_direction_against_msg_type),
	KUNIT_CASE(test_v2_broken_at_either_end),
	KUNIT_CASE(test_v2_read_list_in_reply),
	KUNIT_CASE(test_v2_nomsg),
	KUNIT_CASE(test_v2_optional),
	KUNIT_CASE(test_v2_optinfo_too_long),
	KUNIT_CASE(test_v2_optional_is_not_sent),
	KUNIT_CASE(test_v2_errors),
	KUNIT_CASE(test_v2_cant_reply_decoded),
	KUNIT_CASE(test_v2_cant_reply),
	KUNIT_CASE(test_v1_cant_reply),
	KUNIT_CASE(test_v2_handle),
	KUNIT_CASE(test_v2_handle_zero),
	KUNIT_CASE(test_v2_handle_is_repeated),
	KUNIT_CASE(test_thresholds),
	KUNIT_CASE(test_grants),
	{}
};

static struct kunit_suite wire_v2_suite = {
	.name = "rpcrdma_wire_v2",
	.init = wire_v2_init,
	.test_cases = wire_v2_cases,
};

kunit_test_suites(&wire_v2_suite);
