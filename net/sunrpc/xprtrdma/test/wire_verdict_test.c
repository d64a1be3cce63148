// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The verdict on a received message: use, drop, or answer with an error. RFC
 * 8166 sections 4.5 and 4.6, RFC 8167.
 */
#include "wire_test.h"

/* Without a trusted XID a message is not even answered with ERR_VERS. */
static void test_short_is_dropped(struct kunit *test)
{
	struct wire *w = test->priv;
	u32 words;

	for (words = 0; words < RPCRDMA_MESSAGE_MIN / 4; words++) {
		put_fixed(w, RPCRDMA_MSG);
		put_zeros(w, 3);
		w->word[1] = cpu_to_be32(9);
		w->words = words;
		KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_SERVER_END, false),
				RPCRDMA_DROP);
		KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_SHORT);
	}
}

/*
 * Padding that lacks at the end of a message becomes zeros, and nothing after it is touched. A
 * message that is dropped because it is short stays short.
 */
static void test_last_word_is_completed(struct kunit *test)
{
	u8 octets[RPCRDMA_MESSAGE_MIN + 9], wanted[sizeof(octets)];
	u32 len, completed;

	for (len = 0; len <= RPCRDMA_MESSAGE_MIN + 8; len++) {
		completed = len < RPCRDMA_MESSAGE_MIN ? len : (len + 3) / 4 * 4;
		memset(octets, 0xa5, sizeof(octets));
		memset(wanted, 0xa5, sizeof(wanted));
		memset(wanted + len, 0, completed - len);
		KUNIT_EXPECT_EQ(test, rpcrdma_wire_complete_word(octets, len), completed);
		KUNIT_EXPECT_EQ(test, memcmp(octets, wanted, sizeof(octets)), 0);
	}
}

/* All Calls are sent in version 1, so other versions cannot be Replies. */
static void test_unknown_version(struct kunit *test)
{
	static const u32 versions[] = { 0, 2, 3, 0x01000000, U32_MAX };
	struct wire *w = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(versions); i++) {
		const u32 err_vers[] = {
			XID, versions[i], CREDITS, RPCRDMA_ERROR,
			RPCRDMA_ERR_VERS, 1, 1
		};

		put_fixed(w, 17);
		put_zeros(w, 3);
		w->word[1] = cpu_to_be32(versions[i]);
		KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, false),
				RPCRDMA_DROP);
		KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_VERSION);
		KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, true),
				RPCRDMA_ANSWER);
		KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_SERVER_END, true),
				RPCRDMA_ANSWER);
		KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_SERVER_END, false),
				RPCRDMA_ANSWER);
		KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_VERSION);
		expect_answer(w, err_vers, ARRAY_SIZE(err_vers));
	}
}

static void test_unknown_proc(struct kunit *test)
{
	static const u32 procs[] = { 5, 6, 0x100, 0x80000000, U32_MAX };
	struct wire *w = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(procs); i++) {
		put_fixed(w, procs[i]);
		put_rest_of_call(w, CALL_LEN);
		expect_err_chunk(w, RPCRDMA_BAD_PROC);
	}
}

static void test_msgp(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_MSGP);
	put_zeros(w, 2);
	put_rest_of_call(w, CALL_LEN);
	expect_err_chunk(w, RPCRDMA_BAD_MSGP);
}

/* Dropped although its XID can be trusted */
static void test_done(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_DONE);
	put_rest_of_call(w, CALL_LEN);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_SERVER_END, true),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_DONE);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, true),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_DONE);
}

/* An RDMA_ERROR is a Reply in any version, so peers do not exchange errors. */
static void test_error_is_never_answered(struct kunit *test)
{
	struct wire *w = test->priv;
	u32 version, error, words;

	for (version = 0; version < 4; version++) {
		for (error = 0; error < 8; error++) {
			for (words = 4; words < 9; words++) {
				enum rpcrdma_verdict verdict;

				put_fixed(w, RPCRDMA_ERROR);
				put(w, error);
				put_zeros(w, 4);
				w->word[1] = cpu_to_be32(version);
				w->words = words;
				verdict = receive(w, RPCRDMA_SERVER_END, false);
				KUNIT_EXPECT_EQ(test, verdict, RPCRDMA_DROP);
				verdict = receive(w, RPCRDMA_SERVER_END, true);
				KUNIT_EXPECT_TRUE(test,
						  verdict == RPCRDMA_USE ||
						  verdict == RPCRDMA_DROP);
			}
		}
	}
}

/* An ERR_VERS of any version tells a requester which versions are supported. */
static void test_err_vers_is_the_same_in_all_versions(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_ERROR);
	put(w, RPCRDMA_ERR_VERS);
	put(w, 3);
	put(w, 5);
	w->word[1] = cpu_to_be32(7);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, false),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_REPLY);
	KUNIT_EXPECT_EQ(test, w->msg->version_low, 3);
	KUNIT_EXPECT_EQ(test, w->msg->version_high, 5);

	w->word[4] = cpu_to_be32(V1_ERR_CHUNK);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, false),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_ERROR);
}

/* Each end, with and without backward messages, receives each direction. */
static void test_direction(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_MSG);
	put_rest_of_call(w, CALL_LEN);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_SERVER_END, false),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, true),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_CALL);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, false),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_DIRECTION);

	w->word[8] = cpu_to_be32(RPCRDMA_REPLY);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, false),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_SERVER_END, true),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_REPLY);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_SERVER_END, false),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_DIRECTION);
}

/* Whether a broken message is answered depends on its direction, if known. */
static void test_direction_of_broken_messages(struct kunit *test)
{
	struct wire *w = test->priv;

	/* A backward Call with Position Zero, at a client */
	put_fixed(w, RPCRDMA_MSG);
	put_read(w, 0, 1, 64);
	put_rest_of_call(w, CALL_LEN);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, true),
			RPCRDMA_ANSWER);

	/* The list does not end, so the direction is unknown. */
	w->words = 10;
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, true),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_DIRECTION_UNKNOWN);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_SERVER_END, true),
			RPCRDMA_ANSWER);
	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_DIRECTION_UNKNOWN);
}

static void test_read_list_in_reply(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_MSG);
	put_read(w, 24, 1, 64);
	put_zeros(w, 3);
	put_rpc(w, RPCRDMA_REPLY, 24);
	expect_reply_dropped(w, RPCRDMA_BAD_READ_IN_REPLY);
}

static void test_xid_mismatch(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_MSG);
	put_rest_of_call(w, CALL_LEN);
	w->word[7] = cpu_to_be32(XID + 1);
	expect_err_chunk(w, RPCRDMA_BAD_XID);
	w->word[8] = cpu_to_be32(RPCRDMA_REPLY);
	expect_reply_dropped(w, RPCRDMA_BAD_XID);
}

static void test_unknown_msg_type(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_MSG);
	put_rest_of_call(w, CALL_LEN);
	w->word[8] = cpu_to_be32(2);
	expect_err_chunk(w, RPCRDMA_BAD_MSG_TYPE);
	w->word[8] = cpu_to_be32(U32_MAX);
	expect_err_chunk(w, RPCRDMA_BAD_MSG_TYPE);
}

/* RDMA_NOMSG needs a chunk that holds the RPC message. */
static void test_nomsg_without_payload(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_NOMSG);
	put_zeros(w, 3);
	expect_err_chunk(w, RPCRDMA_BAD_NO_PAYLOAD);

	put_fixed(w, RPCRDMA_NOMSG);
	put(w, 0);
	put_chunk(w, 1);
	put_zeros(w, 2);
	expect_err_chunk(w, RPCRDMA_BAD_NO_PAYLOAD);

	put_fixed(w, RPCRDMA_NOMSG);
	put_read(w, 8, 1, 4096);
	put_zeros(w, 2);
	put_chunk(w, 1);
	expect_err_chunk(w, RPCRDMA_BAD_NO_PAYLOAD);
}

static void test_nomsg_payload_too_short(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_NOMSG);
	put_read(w, 0, 1, 7);
	put_zeros(w, 3);
	expect_err_chunk(w, RPCRDMA_BAD_PAYLOAD_SHORT);
	w->word[7] = cpu_to_be32(8);
	expect_usable_call(w);

	put_fixed(w, RPCRDMA_NOMSG);
	put_zeros(w, 2);
	put_chunk(w, 0);
	expect_err_chunk(w, RPCRDMA_BAD_PAYLOAD_SHORT);
}

/*
 * A server offers no Reply chunks. So for a server a Long Reply is a Call that
 * lacks its Position Zero Read chunk.
 */
static void test_nomsg_with_only_a_reply_chunk(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_NOMSG);
	put_zeros(w, 2);
	put_chunk(w, 1);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_CLIENT_END, false),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_REPLY);
	KUNIT_EXPECT_EQ(test, w->msg->stream_len, 4096);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_SERVER_END, true),
			RPCRDMA_ANSWER);
	KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_NO_PAYLOAD);
	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_CALL);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_SERVER_END, false),
			RPCRDMA_ANSWER);
	KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_NO_PAYLOAD);
}

static struct kunit_case wire_verdict_cases[] = {
	KUNIT_CASE(test_short_is_dropped),
	KUNIT_CASE(test_last_word_is_completed),
	KUNIT_CASE(test_unknown_version),
	KUNIT_CASE(test_unknown_proc),
	KUNIT_CASE(test_msgp),
	KUNIT_CASE(test_done),
	KUNIT_CASE(test_error_is_never_answered),
	KUNIT_CASE(test_err_vers_is_the_same_in_all_versions),
	KUNIT_CASE(test_direction),
	KUNIT_CASE(test_direction_of_broken_messages),
	KUNIT_CASE(test_read_list_in_reply),
	KUNIT_CASE(test_xid_mismatch),
	KUNIT_CASE(test_unknown_msg_type),
	KUNIT_CASE(test_nomsg_without_payload),
	KUNIT_CASE(test_nomsg_payload_too_short),
	KUNIT_CASE(test_nomsg_with_only_a_reply_chunk),
	{}
};

static struct kunit_suite wire_verdict_suite = {
	.name = "rpcrdma_wire_verdict",
	.init = wire_init,
	.test_cases = wire_verdict_cases,
};

kunit_test_suites(&wire_verdict_suite);
