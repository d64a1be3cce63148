// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Building messages: the chunks that a responder returns, messages that must
 * not be sent, and limits.
 */
#include "wire_test.h"

/* Chunks that a responder returns, RFC 8166 sections 3.4.6 and 4.3.2 */

/* A chunk of 4096 + 512 octets: the Reply has these lengths of its segments. */
static void expect_returned(struct wire *w, u32 written, u32 first, u32 second)
{
	struct rpcrdma_chunk *chunk;
	__be32 header[17];

	build_call(w->msg);
	chunk = rpcrdma_wire_add_write(w->msg);
	add(w->msg, chunk, 1, 4096, 0);
	add(w->msg, chunk, 2, 512, 0);
	KUNIT_EXPECT_EQ(w->test, rpcrdma_wire_return_chunk(chunk, written), 0);
	rpcrdma_wire_make_reply(w->msg, 1);
	KUNIT_EXPECT_EQ(w->test,
			rpcrdma_wire_encode(w->msg, header, sizeof(header)),
			(int)sizeof(header));
	KUNIT_EXPECT_EQ(w->test, wire_word(header, 6), 2);
	KUNIT_EXPECT_EQ(w->test, wire_word(header, 8), first);
	KUNIT_EXPECT_EQ(w->test, wire_word(header, 12), second);
}

static void test_returned_lengths(struct kunit *test)
{
	struct wire *w = test->priv;

	expect_returned(w, 0, 0, 0);
	expect_returned(w, 1, 1, 0);
	expect_returned(w, 4095, 4095, 0);
	expect_returned(w, 4096, 4096, 0);
	expect_returned(w, 4097, 4096, 1);
	expect_returned(w, 4608, 4096, 512);
}

static void test_returned_too_much(struct kunit *test)
{
	struct wire *w = test->priv;
	struct rpcrdma_chunk *chunk;

	build_call(w->msg);
	chunk = rpcrdma_wire_add_reply(w->msg);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_return_chunk(chunk, 0), 0);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_return_chunk(chunk, 1), -EMSGSIZE);
	add(w->msg, chunk, 1, 4096, 0);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_return_chunk(chunk, 4096), 0);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_return_chunk(chunk, 4097),
			-EMSGSIZE);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_return_chunk(chunk, U32_MAX),
			-EMSGSIZE);
	KUNIT_EXPECT_EQ(test, chunk->written, 4096);
}

/* A Reply has the Write chunk of its Call, even one without segments, and no Read chunk. */
static void test_returned_without_segments(struct kunit *test)
{
	struct wire *w = test->priv;
	struct rpcrdma_chunk *chunk;
	__be32 header[9];

	build_call(w->msg);
	chunk = rpcrdma_wire_add_read(w->msg, 8);
	add(w->msg, chunk, 1, 4096, 0);
	rpcrdma_wire_add_write(w->msg);
	rpcrdma_wire_make_reply(w->msg, 1);
	KUNIT_ASSERT_EQ(test, rpcrdma_wire_encode(w->msg, header, sizeof(header)),
			(int)sizeof(header));
	KUNIT_EXPECT_EQ(test, wire_word(header, 4), 0);
	KUNIT_EXPECT_EQ(test, wire_word(header, 5), 1);
	KUNIT_EXPECT_EQ(test, wire_word(header, 6), 0);
	KUNIT_EXPECT_EQ(test, wire_word(header, 7), 0);
	KUNIT_EXPECT_EQ(test, wire_word(header, 8), 0);
}

/* The Reply to a received Call has all of its chunks, returned unused. */
static void test_reply_to_received_call(struct kunit *test)
{
	struct wire *w = test->priv;
	unsigned int i;
	int len;

	put_golden(w, GOLDEN_EVERYTHING);
	expect_usable_call(w);
	rpcrdma_wire_make_reply(w->msg, 5);
	len = rpcrdma_wire_encode(w->msg, w->word, sizeof(w->word));
	KUNIT_ASSERT_EQ(test, len > 0, true);
	w->words = len / 4;
	put_rpc(w, RPCRDMA_REPLY, 24);
	KUNIT_ASSERT_EQ(test, receive(w, RPCRDMA_CLIENT_END, false),
			RPCRDMA_USE);

	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_REPLY);
	KUNIT_EXPECT_EQ(test, w->msg->credits, 5);
	KUNIT_EXPECT_EQ(test, w->msg->num_reads, 0);
	KUNIT_EXPECT_EQ(test, w->msg->num_writes, 2);
	KUNIT_EXPECT_EQ(test, w->msg->write[0].count, 1);
	KUNIT_EXPECT_EQ(test, w->msg->write[1].count, 2);
	KUNIT_EXPECT_EQ(test, w->msg->reply_chunk.count, 1);
	KUNIT_EXPECT_EQ(test, w->msg->segment[0].handle, 0x0b000001);
	KUNIT_EXPECT_EQ(test, w->msg->segment[2].offset, 0x10);
	KUNIT_EXPECT_EQ(test, w->msg->segment[3].handle, 0x0c000001);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, w->msg->segment[i].length, 0);
}

/* Messages that must not be sent, and limits */

static void test_unsendable(struct kunit *test)
{
	struct wire *w = test->priv;

	build_call(w->msg);
	w->msg->proc = RPCRDMA_MSGP;
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_encode(w->msg, w->word, 64),
			-EINVAL);
	w->msg->proc = RPCRDMA_DONE;
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_encode(w->msg, w->word, 64),
			-EINVAL);

	build_call(w->msg);
	rpcrdma_wire_make_reply(w->msg, 0);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_encode(w->msg, w->word, 64),
			-EINVAL);
	w->msg->error = RPCRDMA_ERR_BAD_XDR;
	rpcrdma_wire_make_error(w->msg, 0);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_encode(w->msg, w->word, 64),
			-EINVAL);
}

static void test_builder_limits(struct kunit *test)
{
	struct wire *w = test->priv;
	struct rpcrdma_chunk *chunk;
	u32 i;

	build_call(w->msg);
	for (i = 0; i < RPCRDMA_MAX_CHUNKS; i++) {
		chunk = rpcrdma_wire_add_read(w->msg, CALL_LEN + 4 * i);
		KUNIT_ASSERT_NOT_NULL(test, chunk);
		KUNIT_EXPECT_EQ(test,
				rpcrdma_wire_add_segment(w->msg, chunk, i, 1,
							 0),
				0);
		KUNIT_ASSERT_NOT_NULL(test, rpcrdma_wire_add_write(w->msg));
	}
	KUNIT_EXPECT_NULL(test, rpcrdma_wire_add_read(w->msg, 4096));
	KUNIT_EXPECT_NULL(test, rpcrdma_wire_add_write(w->msg));

	chunk = rpcrdma_wire_add_reply(w->msg);
	for (; i < RPCRDMA_MAX_SEGMENTS; i++)
		KUNIT_EXPECT_EQ(test,
				rpcrdma_wire_add_segment(w->msg, chunk, i, 1,
							 0),
				0);
	KUNIT_EXPECT_EQ(test,
			rpcrdma_wire_add_segment(w->msg, chunk, i, 1, 0),
			-EMSGSIZE);
	KUNIT_EXPECT_EQ(test, chunk->count,
			RPCRDMA_MAX_SEGMENTS - RPCRDMA_MAX_CHUNKS);
}

static void test_builder_order_and_lengths(struct kunit *test)
{
	struct wire *w = test->priv;
	struct rpcrdma_chunk *chunk;

	build_call(w->msg);
	chunk = rpcrdma_wire_add_read(w->msg, CALL_LEN);
	KUNIT_ASSERT_NOT_NULL(test, chunk);
	KUNIT_EXPECT_NULL(test, rpcrdma_wire_add_read(w->msg, CALL_LEN));
	KUNIT_EXPECT_NULL(test, rpcrdma_wire_add_read(w->msg, CALL_LEN - 4));

	KUNIT_EXPECT_EQ(test,
			rpcrdma_wire_add_segment(w->msg, chunk, 1, U32_MAX, 0),
			0);
	KUNIT_EXPECT_EQ(test,
			rpcrdma_wire_add_segment(w->msg, chunk, 2, 1, 0),
			-EMSGSIZE);
	KUNIT_EXPECT_EQ(test,
			rpcrdma_wire_add_segment(w->msg, chunk, 2, 0, U64_MAX),
			0);
	KUNIT_EXPECT_EQ(test, chunk->count, 2);
	KUNIT_EXPECT_EQ(test, w->msg->num_segments, 2);
}

static struct kunit_case wire_build_cases[] = {
	KUNIT_CASE(test_returned_lengths),
	KUNIT_CASE(test_returned_too_much),
	KUNIT_CASE(test_returned_without_segments),
	KUNIT_CASE(test_reply_to_received_call),
	KUNIT_CASE(test_unsendable),
	KUNIT_CASE(test_builder_limits),
	KUNIT_CASE(test_builder_order_and_lengths),
	{}
};

static struct kunit_suite wire_build_suite = {
	.name = "rpcrdma_wire_build",
	.init = wire_init,
	.test_cases = wire_build_cases,
};

kunit_test_suites(&wire_build_suite);
