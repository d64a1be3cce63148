// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Decoding chunk lists: how chunks are counted, sorted and added up, and what
 * is refused.
 */
#include "wire_test.h"

/* Lists and counts, RFC 8166 section 4.3 */

static void test_discriminators(struct kunit *test)
{
	static const u32 values[] = { 2, 0x100, 0x80000001, U32_MAX };
	static const u8 zero_or_one[] = { 4, 10, 11, 17, 27, 28 };
	struct wire *w = test->priv;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(zero_or_one); i++) {
		for (j = 0; j < ARRAY_SIZE(values); j++) {
			put_golden(w, GOLDEN_EVERYTHING);
			w->word[zero_or_one[i]] = cpu_to_be32(values[j]);
			expect_err_chunk(w, RPCRDMA_BAD_DISCRIMINATOR);
		}
	}
}

static void put_many_reads(struct wire *w, u32 count, u32 chunks)
{
	u32 i;

	put_fixed(w, RPCRDMA_MSG);
	for (i = 0; i < count; i++)
		put_read(w, CALL_LEN + 4 * (i % chunks), i, 0);
}

static void test_read_list_limits(struct kunit *test)
{
	struct wire *w = test->priv;

	put_many_reads(w, RPCRDMA_MAX_SEGMENTS, RPCRDMA_MAX_CHUNKS);
	put_rest_of_call(w, CALL_LEN + 4 * RPCRDMA_MAX_CHUNKS);
	expect_usable_call(w);
	KUNIT_EXPECT_EQ(test, w->msg->num_reads, RPCRDMA_MAX_CHUNKS);
	KUNIT_EXPECT_EQ(test, w->msg->num_segments, RPCRDMA_MAX_SEGMENTS);

	put_many_reads(w, RPCRDMA_MAX_SEGMENTS + 1, 1);
	put_rest_of_call(w, CALL_LEN);
	expect_err_chunk(w, RPCRDMA_BAD_SEGMENT_COUNT);

	put_many_reads(w, RPCRDMA_MAX_CHUNKS + 1, RPCRDMA_MAX_CHUNKS + 1);
	put_rest_of_call(w, CALL_LEN + 4 * RPCRDMA_MAX_CHUNKS + 4);
	expect_err_chunk(w, RPCRDMA_BAD_CHUNK_COUNT);
}

static void put_many_writes(struct wire *w, u32 chunks, u32 segments)
{
	put_fixed(w, RPCRDMA_MSG);
	put(w, 0);
	while (chunks--)
		put_chunk(w, segments);
	put_zeros(w, 2);
	put_rpc(w, RPCRDMA_CALL, CALL_LEN);
}

static void test_write_list_limits(struct kunit *test)
{
	struct wire *w = test->priv;

	put_many_writes(w, RPCRDMA_MAX_CHUNKS,
			RPCRDMA_MAX_SEGMENTS / RPCRDMA_MAX_CHUNKS);
	expect_usable_call(w);
	KUNIT_EXPECT_EQ(test, w->msg->num_writes, RPCRDMA_MAX_CHUNKS);

	put_many_writes(w, RPCRDMA_MAX_CHUNKS + 1, 0);
	expect_err_chunk(w, RPCRDMA_BAD_CHUNK_COUNT);
	put_many_writes(w, 1, RPCRDMA_MAX_SEGMENTS + 1);
	expect_err_chunk(w, RPCRDMA_BAD_SEGMENT_COUNT);
	put_many_writes(w, 2, RPCRDMA_MAX_SEGMENTS / 2 + 1);
	expect_err_chunk(w, RPCRDMA_BAD_SEGMENT_COUNT);
}

/* Counts that wrap when they are multiplied by a segment's size or added up */
static void test_huge_segment_counts(struct kunit *test)
{
	static const u32 counts[] = {
		0x10000000, 0x10000001, 0x40000001, 0x7fffffff, 0x80000001,
		U32_MAX - 1, U32_MAX,
	};
	struct wire *w = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		put_many_writes(w, 1, 1);
		w->word[6] = cpu_to_be32(counts[i]);
		expect_err_chunk(w, RPCRDMA_BAD_SEGMENT_COUNT);

		put_many_writes(w, 2, 1);
		w->word[12] = cpu_to_be32(counts[i]);
		expect_err_chunk(w, RPCRDMA_BAD_SEGMENT_COUNT);

		put_fixed(w, RPCRDMA_NOMSG);
		put_zeros(w, 2);
		put_chunk(w, 1);
		w->word[7] = cpu_to_be32(counts[i]);
		expect_err_chunk(w, RPCRDMA_BAD_SEGMENT_COUNT);
	}
}

/* The message ends within a list. */
static void test_endless_lists(struct kunit *test)
{
	struct wire *w = test->priv;

	put_many_reads(w, 100, 1);
	expect_err_chunk(w, RPCRDMA_BAD_TRUNCATED);
	put(w, 1);
	expect_err_chunk(w, RPCRDMA_BAD_TRUNCATED);

	put_fixed(w, RPCRDMA_MSG);
	put(w, 0);
	put(w, 1);
	put(w, 2);
	put_segment(w, 1, 4096, 0);
	expect_err_chunk(w, RPCRDMA_BAD_TRUNCATED);
}

static void test_present_but_empty(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_MSG);
	put(w, 0);
	put_chunk(w, 0);
	put(w, 0);
	put_chunk(w, 0);
	put_rpc(w, RPCRDMA_CALL, CALL_LEN);
	expect_usable_call(w);
	KUNIT_EXPECT_EQ(test, w->msg->num_writes, 1);
	KUNIT_EXPECT_EQ(test, w->msg->write[0].count, 0);
	KUNIT_EXPECT_TRUE(test, w->msg->has_reply_chunk);
	KUNIT_EXPECT_EQ(test, w->msg->reply_chunk.count, 0);

	put_fixed(w, RPCRDMA_MSG);
	put_rest_of_call(w, CALL_LEN);
	expect_usable_call(w);
	KUNIT_EXPECT_EQ(test, w->msg->num_writes, 0);
	KUNIT_EXPECT_FALSE(test, w->msg->has_reply_chunk);
}

/* Writing to the arrays would evict kilobytes of cache for each message. */
static void test_no_chunks_touch_no_arrays(struct kunit *test)
{
	struct wire *w = test->priv;
	const u8 *p = (const u8 *)w->msg->read;
	const u8 *end = (const u8 *)(w->msg + 1);

	put_fixed(w, RPCRDMA_MSG);
	put_rest_of_call(w, CALL_LEN);
	expect_usable_call(w);
	while (p < end && *p == 0xa5)
		p++;
	KUNIT_EXPECT_TRUE(test, p == end);
}

/* Lengths and positions, RFC 8166 sections 3.4.3 to 3.4.6 */

static void test_lengths_that_wrap(struct kunit *test)
{
	struct wire *w = test->priv;

	put_many_writes(w, 1, 2);
	w->word[8] = cpu_to_be32(0x80000000);
	w->word[12] = cpu_to_be32(0x7fffffff);
	expect_usable_call(w);
	KUNIT_EXPECT_EQ(test, w->msg->write[0].length, U32_MAX);
	w->word[12] = cpu_to_be32(0x80000000);
	expect_err_chunk(w, RPCRDMA_BAD_CHUNK_LENGTH);

	put_fixed(w, RPCRDMA_MSG);
	put_read(w, CALL_LEN, 1, U32_MAX - 1);
	put_read(w, CALL_LEN, 2, 2);
	put_rest_of_call(w, CALL_LEN);
	expect_err_chunk(w, RPCRDMA_BAD_CHUNK_LENGTH);
}

static void test_segments_that_wrap(struct kunit *test)
{
	struct wire *w = test->priv;

	put_many_writes(w, 1, 1);
	w->word[8] = cpu_to_be32(16);
	w->word[9] = cpu_to_be32(U32_MAX);
	w->word[10] = cpu_to_be32(U32_MAX - 16);
	expect_usable_call(w);
	w->word[10] = cpu_to_be32(U32_MAX - 15);
	expect_err_chunk(w, RPCRDMA_BAD_SEGMENT_RANGE);
	w->word[8] = cpu_to_be32(0);
	w->word[10] = cpu_to_be32(U32_MAX);
	expect_usable_call(w);
}

/* The length of the unreduced Payload stream must not wrap. */
static void test_payload_that_wraps(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_MSG);
	put_read(w, CALL_LEN, 1, U32_MAX - CALL_LEN - 3);
	put_rest_of_call(w, CALL_LEN);
	expect_usable_call(w);
	KUNIT_EXPECT_EQ(test, w->msg->stream_len, U32_MAX - 3);
	w->word[7] = cpu_to_be32(U32_MAX - CALL_LEN);
	expect_err_chunk(w, RPCRDMA_BAD_CHUNK_LENGTH);
	w->word[7] = cpu_to_be32(U32_MAX);
	expect_err_chunk(w, RPCRDMA_BAD_CHUNK_LENGTH);
}

/* The decoder groups segments by chunk and sorts chunks by position. */
static void test_reads_are_grouped(struct kunit *test)
{
	const struct rpcrdma_segment *segment;
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_MSG);
	put_read(w, 140, 1, 8);
	put_read(w, 40, 2, 64);
	put_read(w, 140, 3, 8);
	put_read(w, 160, 4, 1);
	put_read(w, 40, 5, 32);
	put_read(w, 140, 6, 4);
	put_rest_of_call(w, CALL_LEN + 4);
	expect_usable_call(w);
	KUNIT_EXPECT_EQ(test, w->msg->num_reads, 3);
	KUNIT_EXPECT_EQ(test, w->msg->stream_len, CALL_LEN + 4 + 96 + 20 + 4);

	KUNIT_EXPECT_EQ(test, w->msg->read[0].position, 40);
	KUNIT_EXPECT_EQ(test, w->msg->read[0].length, 96);
	KUNIT_EXPECT_EQ(test, w->msg->read[0].count, 2);
	segment = rpcrdma_chunk_segments(w->msg, &w->msg->read[0]);
	KUNIT_EXPECT_EQ(test, segment[0].handle, 2);
	KUNIT_EXPECT_EQ(test, segment[1].handle, 5);

	KUNIT_EXPECT_EQ(test, w->msg->read[1].position, 140);
	KUNIT_EXPECT_EQ(test, w->msg->read[1].length, 20);
	KUNIT_EXPECT_EQ(test, w->msg->read[1].count, 3);
	segment = rpcrdma_chunk_segments(w->msg, &w->msg->read[1]);
	KUNIT_EXPECT_EQ(test, segment[0].handle, 1);
	KUNIT_EXPECT_EQ(test, segment[1].handle, 3);
	KUNIT_EXPECT_EQ(test, segment[2].handle, 6);

	KUNIT_EXPECT_EQ(test, w->msg->read[2].position, 160);
	KUNIT_EXPECT_EQ(test, w->msg->read[2].count, 1);
	segment = rpcrdma_chunk_segments(w->msg, &w->msg->read[2]);
	KUNIT_EXPECT_EQ(test, segment[0].handle, 4);
}

static void test_position_zero_is_found(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_NOMSG);
	put_read(w, 64, 1, 8);
	put_read(w, 0, 2, 100);
	put_zeros(w, 3);
	expect_usable_call(w);
	KUNIT_EXPECT_EQ(test, w->msg->stream_len, 108);
	KUNIT_ASSERT_NOT_NULL(test, rpcrdma_position_zero(w->msg));
	KUNIT_EXPECT_EQ(test, rpcrdma_position_zero(w->msg)->length, 100);

	put_fixed(w, RPCRDMA_MSG);
	put_read(w, CALL_LEN, 1, 8);
	put_rest_of_call(w, CALL_LEN);
	expect_usable_call(w);
	KUNIT_EXPECT_NULL(test, rpcrdma_position_zero(w->msg));
}

static void test_position_alignment(struct kunit *test)
{
	struct wire *w = test->priv;
	u32 position;

	for (position = CALL_LEN + 1; position < CALL_LEN + 4; position++) {
		put_fixed(w, RPCRDMA_MSG);
		put_read(w, position, 1, 8);
		put_rest_of_call(w, CALL_LEN + 4);
		expect_err_chunk(w, RPCRDMA_BAD_POSITION_ALIGN);
	}
}

/* No Read chunk may displace the XID and msg_type that were checked inline. */
static void test_position_head(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_MSG);
	put_read(w, 0, 1, 64);
	put_rest_of_call(w, CALL_LEN);
	expect_err_chunk(w, RPCRDMA_BAD_POSITION_HEAD);
	w->word[5] = cpu_to_be32(4);
	expect_err_chunk(w, RPCRDMA_BAD_POSITION_HEAD);
	w->word[5] = cpu_to_be32(8);
	expect_usable_call(w);
}

/* The last possible position is the end of the inline part. */
static void test_position_beyond(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_MSG);
	put_read(w, CALL_LEN, 1, 8);
	put_rest_of_call(w, CALL_LEN);
	expect_usable_call(w);
	w->word[5] = cpu_to_be32(CALL_LEN + 4);
	expect_err_chunk(w, RPCRDMA_BAD_POSITION_BEYOND);
	w->word[5] = cpu_to_be32(U32_MAX - 3);
	expect_err_chunk(w, RPCRDMA_BAD_POSITION_BEYOND);
}

/* A position counts the octets of earlier chunks, with their padding. */
static void test_position_after_a_chunk(struct kunit *test)
{
	struct wire *w = test->priv;
	u32 length;

	for (length = 5; length <= 8; length++) {
		put_fixed(w, RPCRDMA_MSG);
		put_read(w, CALL_LEN, 1, length);
		put_read(w, CALL_LEN + 8 + 4, 2, 64);
		put_rest_of_call(w, CALL_LEN + 4);
		expect_usable_call(w);
		KUNIT_EXPECT_EQ(test, w->msg->read[0].length, length);

		w->word[11] = cpu_to_be32(CALL_LEN + 8);
		expect_usable_call(w);
		w->word[11] = cpu_to_be32(CALL_LEN + 4);
		expect_err_chunk(w, RPCRDMA_BAD_POSITION_OVERLAP);
		w->word[11] = cpu_to_be32(CALL_LEN + 8 + 8);
		expect_err_chunk(w, RPCRDMA_BAD_POSITION_BEYOND);
	}
}

static void test_position_in_long_call(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_NOMSG);
	put_read(w, 0, 1, 100);
	put_read(w, 100, 2, 64);
	put_zeros(w, 3);
	expect_usable_call(w);
	KUNIT_EXPECT_EQ(test, w->msg->stream_len, 164);
	w->word[11] = cpu_to_be32(104);
	expect_err_chunk(w, RPCRDMA_BAD_POSITION_BEYOND);
	w->word[11] = cpu_to_be32(4);
	expect_err_chunk(w, RPCRDMA_BAD_POSITION_HEAD);
}

/* A Reply tells the requester what was written to its chunks. */
static void test_received_lengths(struct kunit *test)
{
	struct wire *w = test->priv;

	put_golden(w, GOLDEN_REPLY_WRITE_LIST);
	KUNIT_ASSERT_EQ(test, receive(w, RPCRDMA_CLIENT_END, false),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, w->msg->write[0].written, 4196);
	KUNIT_EXPECT_EQ(test, w->msg->write[1].written, 0);
	KUNIT_EXPECT_EQ(test, w->msg->write[1].count, 1);
	KUNIT_EXPECT_EQ(test, w->msg->write[2].written, 0);
	KUNIT_EXPECT_EQ(test, w->msg->write[2].count, 0);
	KUNIT_EXPECT_EQ(test, w->msg->payload_len, 24);
}

static struct kunit_case wire_chunks_cases[] = {
	KUNIT_CASE(test_discriminators),
	KUNIT_CASE(test_read_list_limits),
	KUNIT_CASE(test_write_list_limits),
	KUNIT_CASE(test_huge_segment_counts),
	KUNIT_CASE(test_endless_lists),
	KUNIT_CASE(test_present_but_empty),
	KUNIT_CASE(test_no_chunks_touch_no_arrays),
	KUNIT_CASE(test_lengths_that_wrap),
	KUNIT_CASE(test_segments_that_wrap),
	KUNIT_CASE(test_payload_that_wraps),
	KUNIT_CASE(test_reads_are_grouped),
	KUNIT_CASE(test_position_zero_is_found),
	KUNIT_CASE(test_position_alignment),
	KUNIT_CASE(test_position_head),
	KUNIT_CASE(test_position_beyond),
	KUNIT_CASE(test_position_after_a_chunk),
	KUNIT_CASE(test_position_in_long_call),
	KUNIT_CASE(test_received_lengths),
	{}
};

static struct kunit_suite wire_chunks_suite = {
	.name = "rpcrdma_wire_chunks",
	.init = wire_init,
	.test_cases = wire_chunks_cases,
};

kunit_test_suites(&wire_chunks_suite);
