// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The golden messages: they are decoded as a whole, truncated, and with one bit
 * flipped. The encoder must produce them from what a requester or a responder
 * builds.
 */
#include "wire_test.h"

static void build_inline_reply(struct rpcrdma_message *msg)
{
	build_call(msg);
	rpcrdma_wire_make_reply(msg, 64);
}

static void build_read_chunk(struct rpcrdma_message *msg)
{
	struct rpcrdma_chunk *chunk;

	build_call(msg);
	chunk = rpcrdma_wire_add_read(msg, 44);
	add(msg, chunk, 0x0a000001, 4096, 0xffff888011112000);
	add(msg, chunk, 0x0a000002, 4096, 0xffff888011115000);
	add(msg, chunk, 0x0a000003, 5, 0xffff88801111a000);
}

static void build_two_read_chunks(struct rpcrdma_message *msg)
{
	struct rpcrdma_chunk *chunk;

	build_call(msg);
	chunk = rpcrdma_wire_add_read(msg, 44);
	add(msg, chunk, 0x0a000003, 5, 0xffff88801111a000);
	chunk = rpcrdma_wire_add_read(msg, 56);
	add(msg, chunk, 0x0a000004, 9, 0xffff88801111b000);
	add(msg, chunk, 0x0a000005, 3, 0xffff88801111c000);
}

static void build_long_call(struct rpcrdma_message *msg)
{
	struct rpcrdma_chunk *chunk;

	build_call(msg);
	msg->proc = RPCRDMA_NOMSG;
	chunk = rpcrdma_wire_add_read(msg, 0);
	add(msg, chunk, 0x0a000001, 4096, 0xffff888011112000);
	add(msg, chunk, 0x0a000002, 904, 0xffff888011115000);
}

static void build_long_call_read_chunk(struct rpcrdma_message *msg)
{
	struct rpcrdma_chunk *chunk;

	build_call(msg);
	msg->proc = RPCRDMA_NOMSG;
	chunk = rpcrdma_wire_add_read(msg, 0);
	add(msg, chunk, 0x0a000001, 4096, 0xffff888011112000);
	chunk = rpcrdma_wire_add_read(msg, 2048);
	add(msg, chunk, 0x0a000002, 4096, 0xffff888011115000);
}

static void build_write_list(struct rpcrdma_message *msg)
{
	struct rpcrdma_chunk *chunk;

	build_call(msg);
	chunk = rpcrdma_wire_add_write(msg);
	add(msg, chunk, 0x0b000001, 4096, 0xffff888022222000);
	add(msg, chunk, 0x0b000002, 4096, 0xffff888022225000);
	rpcrdma_wire_add_write(msg);
}

static void build_one_read_segment(struct rpcrdma_message *msg)
{
	build_call(msg);
	add(msg, rpcrdma_wire_add_read(msg, 40), 0x0a000001, 4095, 0xffff888011112000);
}

static void build_one_write_segment(struct rpcrdma_message *msg)
{
	build_call(msg);
	add(msg, rpcrdma_wire_add_write(msg), 0x0b000001, 65536, 0xfffffffffffeffff);
}

static void build_reply_one_segment(struct rpcrdma_message *msg)
{
	build_one_write_segment(msg);
	rpcrdma_wire_return_chunk(&msg->write[0], 12345);
	rpcrdma_wire_make_reply(msg, CREDITS);
}

static void build_reply_chunk(struct rpcrdma_message *msg)
{
	struct rpcrdma_chunk *chunk;

	build_call(msg);
	chunk = rpcrdma_wire_add_reply(msg);
	add(msg, chunk, 0x0c000001, 4096, 0xffff888033333000);
	add(msg, chunk, 0x0c000002, 4096, 0xffff888033336000);
}

static void build_everything(struct rpcrdma_message *msg)
{
	struct rpcrdma_chunk *chunk;

	build_call(msg);
	chunk = rpcrdma_wire_add_read(msg, 44);
	add(msg, chunk, 0x0a000001, 4096, 0xffff888011112000);
	chunk = rpcrdma_wire_add_write(msg);
	add(msg, chunk, 0x0b000001, 4096, 0xffff888022222000);
	chunk = rpcrdma_wire_add_write(msg);
	add(msg, chunk, 0x0b000002, 4096, 0xffff888022225000);
	add(msg, chunk, 0x0b000003, 512, 0x10);
	chunk = rpcrdma_wire_add_reply(msg);
	add(msg, chunk, 0x0c000001, 4096, 0xffff888033333000);
}

static void build_reply_write_list(struct rpcrdma_message *msg)
{
	struct rpcrdma_chunk *chunk;

	build_write_list(msg);
	msg->num_writes--;
	chunk = rpcrdma_wire_add_write(msg);
	add(msg, chunk, 0x0b000003, 512, 0x10);
	rpcrdma_wire_add_write(msg);

	rpcrdma_wire_return_chunk(&msg->write[0], 4096 + 100);
	rpcrdma_wire_make_reply(msg, CREDITS);
}

static void build_long_reply(struct rpcrdma_message *msg)
{
	struct rpcrdma_chunk *chunk;

	build_call(msg);
	chunk = rpcrdma_wire_add_write(msg);
	add(msg, chunk, 0x0b000001, 4096, 0xffff888022222000);
	chunk = rpcrdma_wire_add_reply(msg);
	add(msg, chunk, 0x0c000001, 4096, 0xffff888033333000);
	add(msg, chunk, 0x0c000002, 4096, 0xffff888033336000);

	rpcrdma_wire_return_chunk(chunk, 5000);
	rpcrdma_wire_make_reply(msg, CREDITS);
	msg->proc = RPCRDMA_NOMSG;
}

static void build_err_vers(struct rpcrdma_message *msg)
{
	build_call(msg);
	msg->version = 2;
	msg->error = RPCRDMA_ERR_VERS;
	msg->version_low = 1;
	msg->version_high = 1;
	rpcrdma_wire_make_error(msg, CREDITS);
}

static void build_err_chunk(struct rpcrdma_message *msg)
{
	build_everything(msg);
	msg->error = RPCRDMA_ERR_BAD_XDR;
	rpcrdma_wire_make_error(msg, CREDITS);
}

static void build_backward_call(struct rpcrdma_message *msg)
{
	rpcrdma_wire_init_call(msg, RPCRDMA_VERSION_ONE, cpu_to_be32(0x77), 2);
}

static void build_backward_reply(struct rpcrdma_message *msg)
{
	build_backward_call(msg);
	rpcrdma_wire_make_reply(msg, 1);
}

/* Version 2: the same messages, with a direction and a handle */

static void as_v2(struct rpcrdma_message *msg, u32 inv_handle)
{
	msg->version = RPCRDMA_VERSION_TWO;
	msg->inv_handle = inv_handle;
}

static void build_v2_inline_call(struct rpcrdma_message *msg)
{
	build_call(msg);
	as_v2(msg, 0);
}

static void build_v2_inline_reply(struct rpcrdma_message *msg)
{
	build_inline_reply(msg);
	as_v2(msg, 0);
}

static void build_v2_everything(struct rpcrdma_message *msg)
{
	build_everything(msg);
	as_v2(msg, 0x0b000002);
}

static void build_v2_reply_write_list(struct rpcrdma_message *msg)
{
	build_reply_write_list(msg);
	as_v2(msg, 0x0b000001);
}

static void build_v2_long_call(struct rpcrdma_message *msg)
{
	build_long_call_read_chunk(msg);
	as_v2(msg, 0x0a000001);
}

static void build_v2_long_reply(struct rpcrdma_message *msg)
{
	build_long_reply(msg);
	as_v2(msg, 0x0c000001);
}

static void build_v2_err_vers(struct rpcrdma_message *msg)
{
	build_call(msg);
	msg->version = 3;
	msg->error = RPCRDMA_ERR_VERS;
	msg->version_low = 1;
	msg->version_high = 2;
	rpcrdma_wire_make_error(msg, CREDITS);
}

static void build_v2_error(struct rpcrdma_message *msg, enum rpcrdma_error error)
{
	build_v2_inline_call(msg);
	msg->error = error;
	rpcrdma_wire_make_error(msg, CREDITS);
}

static void build_v2_err_bad_xdr(struct rpcrdma_message *msg)
{
	build_v2_error(msg, RPCRDMA_ERR_BAD_XDR);
}

static void build_v2_err_cant_reply(struct rpcrdma_message *msg)
{
	build_v2_everything(msg);
	msg->inv_handle = 0;
	rpcrdma_wire_cant_reply(msg, &msg->write[1], 5000);
	rpcrdma_wire_make_error(msg, CREDITS);
}

static void build_v2_err_inval_proc(struct rpcrdma_message *msg)
{
	build_v2_error(msg, RPCRDMA_ERR_INVAL_PROC);
}

static void build_v2_err_inval_option(struct rpcrdma_message *msg)
{
	build_v2_error(msg, RPCRDMA_ERR_INVAL_OPTION);
}

static void build_v2_backward_call(struct rpcrdma_message *msg)
{
	build_backward_call(msg);
	as_v2(msg, 0);
}

static void build_v2_backward_reply(struct rpcrdma_message *msg)
{
	build_backward_reply(msg);
	as_v2(msg, 0);
}

static void (*const golden_builders[GOLDEN_COUNT])(struct rpcrdma_message *) = {
	[GOLDEN_INLINE_CALL] = build_call,
	[GOLDEN_INLINE_REPLY] = build_inline_reply,
	[GOLDEN_READ_CHUNK] = build_read_chunk,
	[GOLDEN_TWO_READ_CHUNKS] = build_two_read_chunks,
	[GOLDEN_LONG_CALL] = build_long_call,
	[GOLDEN_LONG_CALL_READ_CHUNK] = build_long_call_read_chunk,
	[GOLDEN_WRITE_LIST] = build_write_list,
	[GOLDEN_ONE_READ_SEGMENT] = build_one_read_segment,
	[GOLDEN_ONE_WRITE_SEGMENT] = build_one_write_segment,
	[GOLDEN_REPLY_ONE_SEGMENT] = build_reply_one_segment,
	[GOLDEN_REPLY_CHUNK] = build_reply_chunk,
	[GOLDEN_EVERYTHING] = build_everything,
	[GOLDEN_REPLY_WRITE_LIST] = build_reply_write_list,
	[GOLDEN_LONG_REPLY] = build_long_reply,
	[GOLDEN_ERR_VERS] = build_err_vers,
	[GOLDEN_ERR_CHUNK] = build_err_chunk,
	[GOLDEN_BACKWARD_CALL] = build_backward_call,
	[GOLDEN_BACKWARD_REPLY] = build_backward_reply,
	[GOLDEN_V2_INLINE_CALL] = build_v2_inline_call,
	[GOLDEN_V2_INLINE_REPLY] = build_v2_inline_reply,
	[GOLDEN_V2_EVERYTHING] = build_v2_everything,
	[GOLDEN_V2_REPLY_WRITE_LIST] = build_v2_reply_write_list,
	[GOLDEN_V2_LONG_CALL] = build_v2_long_call,
	[GOLDEN_V2_LONG_REPLY] = build_v2_long_reply,
	[GOLDEN_V2_ERR_VERS] = build_v2_err_vers,
	[GOLDEN_V2_ERR_BAD_XDR] = build_v2_err_bad_xdr,
	[GOLDEN_V2_ERR_CANT_REPLY] = build_v2_err_cant_reply,
	[GOLDEN_V2_ERR_INVAL_PROC] = build_v2_err_inval_proc,
	[GOLDEN_V2_ERR_INVAL_OPTION] = build_v2_err_inval_option,
	[GOLDEN_V2_BACKWARD_CALL] = build_v2_backward_call,
	[GOLDEN_V2_BACKWARD_REPLY] = build_v2_backward_reply,
};

KUNIT_ARRAY_PARAM_DESC(golden, rpcrdma_golden_messages, name);

static bool build_golden(struct rpcrdma_message *msg,
			 const struct golden *golden)
{
	if (!golden_builders[golden - rpcrdma_golden_messages])
		return false;
	golden_builders[golden - rpcrdma_golden_messages](msg);
	return true;
}

static void decode_golden(struct wire *w, const struct golden *golden,
			  u32 version_max)
{
	struct kunit *test = w->test;
	void *buf = exact_copy(test, golden->octets, golden->len);
	enum rpcrdma_verdict verdict;
	const char *broken;

	verdict = rpcrdma_wire_decode(w->msg, buf, golden->len, golden->end,
				      golden->backward, version_max);
	KUNIT_EXPECT_EQ(test, verdict, golden->verdict);
	KUNIT_EXPECT_EQ(test, w->msg->reason, golden->reason);
	if (verdict != RPCRDMA_USE)
		return;

	broken = broken_message(w->msg, buf, golden->len,
				exact_copy(test, buf, golden->len), w->again);
	KUNIT_EXPECT_TRUE_MSG(test, !broken, "%s", broken);
	build_golden(w->again, golden);
	KUNIT_EXPECT_TRUE(test, same_message(w->msg, w->again));
}

/* Where version 2 is not allowed, it is as unknown as any other. */
static void decode_not_allowed(struct wire *w, const struct golden *golden)
{
	bool error = wire_word(golden->octets, 3) == RPCRDMA_ERROR;
	bool calls = golden->end == RPCRDMA_SERVER_END || golden->backward;
	struct kunit *test = w->test;
	void *buf = exact_copy(test, golden->octets, golden->len);
	enum rpcrdma_verdict verdict;

	verdict = rpcrdma_wire_decode(w->msg, buf, golden->len, golden->end,
				      golden->backward, RPCRDMA_VERSION_ONE);
	KUNIT_EXPECT_EQ(test, verdict, calls ? RPCRDMA_ANSWER : RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(test, w->msg->reason,
			error ? RPCRDMA_BAD_ERROR : RPCRDMA_BAD_VERSION);
	if (!calls)
		return;
	KUNIT_EXPECT_EQ(test, w->msg->error, RPCRDMA_ERR_VERS);
	KUNIT_EXPECT_EQ(test, w->msg->version_low, 1);
	KUNIT_EXPECT_EQ(test, w->msg->version_high, 1);
}

/* Version 1 does not depend on whether version 2 is allowed. */
static void test_golden_decode(struct kunit *test)
{
	const struct golden *golden = test->param_value;
	u32 version_max;

	for (version_max = golden->version_max;
	     version_max <= RPCRDMA_VERSION_TWO; version_max++)
		decode_golden(test->priv, golden, version_max);
	if (golden->version_max > RPCRDMA_VERSION_ONE)
		decode_not_allowed(test->priv, golden);
}

/*
 * Encoding needs exactly as much memory as the header has. With less it writes nothing. What
 * is never sent is nothing that a receiver can use.
 */
static void test_golden_encode(struct kunit *test)
{
	const struct golden *golden = test->param_value;
	struct wire *w = test->priv;
	u32 size, len;
	u8 *buf;

	if (!build_golden(w->msg, golden)) {
		KUNIT_EXPECT_NE(test, golden->verdict, RPCRDMA_USE);
		return;
	}
	len = rpcrdma_wire_header_len(w->msg);
	KUNIT_ASSERT_EQ(test, len <= golden->len, true);

	buf = kunit_kzalloc(test, len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (size = 0; size < len; size++) {
		KUNIT_EXPECT_EQ(test, rpcrdma_wire_encode(w->msg, buf, size),
				-EMSGSIZE);
		KUNIT_EXPECT_EQ(test, buf[0], 0);
	}
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_encode(w->msg, buf, len), len);
	KUNIT_EXPECT_EQ(test, memcmp(buf, golden->octets, len), 0);
}

/* Unusable: messages that end within the header, or within XID and msg_type */
static void test_golden_truncated(struct kunit *test)
{
	const struct golden *golden = test->param_value;
	struct wire *w = test->priv;
	u32 len, needed = golden->len;

	if (build_golden(w->again, golden)) {
		needed = rpcrdma_wire_header_len(w->again);
		if (w->again->proc == RPCRDMA_MSG)
			needed += 8;
	}
	for (len = 0; len < needed; len++) {
		void *buf = exact_copy(test, golden->octets, len);
		enum rpcrdma_verdict verdict;

		verdict = rpcrdma_wire_decode(w->msg, buf, len, golden->end,
					      golden->backward,
					      RPCRDMA_VERSION_TWO);
		KUNIT_EXPECT_NE_MSG(test, verdict, RPCRDMA_USE,
				    "with %u octets", len);
		KUNIT_EXPECT_NE(test, w->msg->reason, RPCRDMA_OK);
		if (len < RPCRDMA_MESSAGE_MIN)
			KUNIT_EXPECT_EQ(test, verdict, RPCRDMA_DROP);
		if (golden->end == RPCRDMA_CLIENT_END &&
		    w->msg->direction != RPCRDMA_CALL)
			KUNIT_EXPECT_EQ(test, verdict, RPCRDMA_DROP);
		kunit_kfree(test, buf);
	}
}

/* With any one bit flipped, a message is unusable or keeps all invariants. */
static void flip_all_bits(struct wire *w, const struct golden *golden,
			  enum rpcrdma_end end, bool backward, u32 version_max)
{
	u8 *buf = exact_copy(w->test, golden->octets, golden->len);
	void *copy = exact_copy(w->test, golden->octets, golden->len);
	enum rpcrdma_verdict verdict;
	const char *broken;
	u32 bit;

	for (bit = 0; bit < golden->len * 8; bit++) {
		buf[bit / 8] ^= 1 << bit % 8;
		verdict = rpcrdma_wire_decode(w->msg, buf, golden->len, end,
					      backward, version_max);
		KUNIT_EXPECT_EQ(w->test, verdict == RPCRDMA_USE,
				w->msg->reason == RPCRDMA_OK);
		if (verdict == RPCRDMA_USE) {
			broken = broken_message(w->msg, buf, golden->len, copy,
						w->again);
			KUNIT_EXPECT_TRUE_MSG(w->test, !broken, "bit %u: %s",
					      bit, broken);
		} else if (verdict == RPCRDMA_ANSWER) {
			broken = broken_answer(w->msg, w->again);
			KUNIT_EXPECT_TRUE_MSG(w->test, !broken, "bit %u: %s",
					      bit, broken);
		}
		buf[bit / 8] ^= 1 << bit % 8;
	}
}

static void test_golden_bit_flipped(struct kunit *test)
{
	const struct golden *golden = test->param_value;
	struct wire *w = test->priv;
	u32 max;

	for (max = RPCRDMA_VERSION_ONE; max <= RPCRDMA_VERSION_TWO; max++) {
		flip_all_bits(w, golden, RPCRDMA_CLIENT_END, false, max);
		flip_all_bits(w, golden, RPCRDMA_CLIENT_END, true, max);
		flip_all_bits(w, golden, RPCRDMA_SERVER_END, false, max);
		flip_all_bits(w, golden, RPCRDMA_SERVER_END, true, max);
	}
}

static struct kunit_case wire_golden_cases[] = {
	KUNIT_CASE_PARAM(test_golden_decode, golden_gen_params),
	KUNIT_CASE_PARAM(test_golden_encode, golden_gen_params),
	KUNIT_CASE_PARAM(test_golden_truncated, golden_gen_params),
	KUNIT_CASE_PARAM(test_golden_bit_flipped, golden_gen_params),
	{}
};

static struct kunit_suite wire_golden_suite = {
	.name = "rpcrdma_wire_golden",
	.init = wire_init,
	.test_cases = wire_golden_cases,
};

kunit_test_suites(&wire_golden_suite);
