// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suites of wire/. The same file is built as a user-space program by
 * tools/testing/rpcrdma/wire.
 */
#include <kunit/test.h>

#include "golden.h"
#include "invariants.h"

#define XID		0x1badcafe
#define CREDITS		32
#define CALL_LEN	40	/* octets of an RPC Call header with AUTH_NONE */

/* A Read segment is six words with its discriminator; room for too many. */
#define MAX_WORDS	(6 * (RPCRDMA_MAX_SEGMENTS + 2) + 64)

/* Set up anew for each test; its memory is the test's. */
struct wire {
	struct kunit *test;
	struct rpcrdma_message *msg;
	struct rpcrdma_message *again;
	u32 words;
	__be32 word[MAX_WORDS];
};

static int wire_init(struct kunit *test)
{
	struct wire *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	if (!w)
		return -ENOMEM;
	w->test = test;
	w->msg = kunit_kzalloc(test, sizeof(*w->msg), GFP_KERNEL);
	w->again = kunit_kzalloc(test, sizeof(*w->again), GFP_KERNEL);
	if (!w->msg || !w->again)
		return -ENOMEM;
	/* No result may depend on what an earlier message left behind. */
	memset(w->msg, 0xa5, sizeof(*w->msg));
	memset(w->again, 0x5a, sizeof(*w->again));
	test->priv = w;
	return 0;
}

/* A copy that ends where its allocation ends, so that overruns are seen. */
static void *exact_copy(struct kunit *test, const void *octets, u32 len)
{
	void *copy = kunit_kmalloc(test, len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, octets, len);
	return copy;
}

/* Writing messages word by word, right or wrong */

static void put(struct wire *w, u32 word)
{
	KUNIT_ASSERT_EQ(w->test, w->words < MAX_WORDS, true);
	w->word[w->words++] = cpu_to_be32(word);
}

static void put_fixed(struct wire *w, u32 proc)
{
	w->words = 0;
	put(w, XID);
	put(w, RPCRDMA_VERSION_ONE);
	put(w, CREDITS);
	put(w, proc);
}

static void put_segment(struct wire *w, u32 handle, u32 length, u64 offset)
{
	put(w, handle);
	put(w, length);
	put(w, offset >> 32);
	put(w, offset);
}

static void put_read(struct wire *w, u32 position, u32 handle, u32 length)
{
	put(w, 1);
	put(w, position);
	put_segment(w, handle, length, 0x1000);
}

static void put_zeros(struct wire *w, u32 count)
{
	while (count--)
		put(w, 0);
}

static void put_rpc(struct wire *w, u32 msg_type, u32 octets)
{
	put(w, XID);
	put(w, msg_type);
	put_zeros(w, octets / 4 - 2);
}

/* After the Read list: no other chunks, and @octets of Call */
static void put_rest_of_call(struct wire *w, u32 octets)
{
	put_zeros(w, 3);
	put_rpc(w, RPCRDMA_CALL, octets);
}

static enum rpcrdma_verdict receive(struct wire *w, enum rpcrdma_role role,
				    bool backward)
{
	u32 len = w->words * sizeof(__be32);
	void *buf = exact_copy(w->test, w->word, len);
	enum rpcrdma_verdict verdict;

	verdict = rpcrdma_wire_decode(w->msg, buf, len, role, backward);
	if (verdict == RPCRDMA_USE) {
		void *copy = exact_copy(w->test, w->word, len);
		const char *broken;

		broken = broken_message(w->msg, buf, len, copy, w->again);
		KUNIT_EXPECT_TRUE_MSG(w->test, !broken, "%s", broken);
		kunit_kfree(w->test, copy);
	}
	kunit_kfree(w->test, buf);
	return verdict;
}

static void expect_usable_call(struct wire *w)
{
	KUNIT_EXPECT_EQ(w->test, receive(w, RPCRDMA_RESPONDER, false),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(w->test, w->msg->reason, RPCRDMA_OK);
	KUNIT_EXPECT_EQ(w->test, w->msg->direction, RPCRDMA_CALL);
}

/* A broken Call: answered by a responder, of no concern to a requester */
static void expect_err_chunk(struct wire *w, enum rpcrdma_reason reason)
{
	KUNIT_EXPECT_EQ(w->test, receive(w, RPCRDMA_REQUESTER, false),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(w->test, receive(w, RPCRDMA_RESPONDER, false),
			RPCRDMA_ANSWER_ERR_CHUNK);
	KUNIT_EXPECT_EQ(w->test, w->msg->reason, reason);
	KUNIT_EXPECT_EQ(w->test, receive(w, RPCRDMA_RESPONDER, true),
			RPCRDMA_ANSWER_ERR_CHUNK);
	KUNIT_EXPECT_EQ(w->test, w->msg->reason, reason);
}

/* A broken Reply: dropped wherever it arrives */
static void expect_reply_dropped(struct wire *w, enum rpcrdma_reason reason)
{
	KUNIT_EXPECT_EQ(w->test, receive(w, RPCRDMA_RESPONDER, true),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(w->test, receive(w, RPCRDMA_REQUESTER, true),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(w->test, receive(w, RPCRDMA_REQUESTER, false),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(w->test, w->msg->reason, reason);
}

/* Golden messages, built the way a requester or a responder builds them */

static void add(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk,
		u32 handle, u32 length, u64 offset)
{
	rpcrdma_wire_add_segment(msg, chunk, handle, length, offset);
}

static void build_call(struct rpcrdma_message *msg)
{
	rpcrdma_wire_init_call(msg, cpu_to_be32(XID), CREDITS);
}

static void build_inline_reply(struct rpcrdma_message *msg)
{
	build_call(msg);
	rpcrdma_wire_make_reply(msg, RPCRDMA_MSG, 64);
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
	rpcrdma_wire_make_reply(msg, RPCRDMA_MSG, CREDITS);
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
	rpcrdma_wire_make_reply(msg, RPCRDMA_NOMSG, CREDITS);
}

static void build_err_vers(struct rpcrdma_message *msg)
{
	build_call(msg);
	msg->version = 2;
	rpcrdma_wire_make_error(msg, RPCRDMA_ERR_VERS, CREDITS);
}

static void build_err_chunk(struct rpcrdma_message *msg)
{
	build_everything(msg);
	rpcrdma_wire_make_error(msg, RPCRDMA_ERR_CHUNK, CREDITS);
}

static void build_backward_call(struct rpcrdma_message *msg)
{
	rpcrdma_wire_init_call(msg, cpu_to_be32(0x77), 2);
}

static void build_backward_reply(struct rpcrdma_message *msg)
{
	build_backward_call(msg);
	rpcrdma_wire_make_reply(msg, RPCRDMA_MSG, 1);
}

static void (*const golden_builders[GOLDEN_COUNT])(struct rpcrdma_message *) = {
	[GOLDEN_INLINE_CALL] = build_call,
	[GOLDEN_INLINE_REPLY] = build_inline_reply,
	[GOLDEN_READ_CHUNK] = build_read_chunk,
	[GOLDEN_TWO_READ_CHUNKS] = build_two_read_chunks,
	[GOLDEN_LONG_CALL] = build_long_call,
	[GOLDEN_LONG_CALL_READ_CHUNK] = build_long_call_read_chunk,
	[GOLDEN_WRITE_LIST] = build_write_list,
	[GOLDEN_REPLY_CHUNK] = build_reply_chunk,
	[GOLDEN_EVERYTHING] = build_everything,
	[GOLDEN_REPLY_WRITE_LIST] = build_reply_write_list,
	[GOLDEN_LONG_REPLY] = build_long_reply,
	[GOLDEN_ERR_VERS] = build_err_vers,
	[GOLDEN_ERR_CHUNK] = build_err_chunk,
	[GOLDEN_BACKWARD_CALL] = build_backward_call,
	[GOLDEN_BACKWARD_REPLY] = build_backward_reply,
};

static void golden_desc(const struct golden *golden, char *desc)
{
	strscpy(desc, golden->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(golden, golden_messages, golden_desc);

static bool build_golden(struct rpcrdma_message *msg,
			 const struct golden *golden)
{
	if (!golden_builders[golden - golden_messages])
		return false;
	golden_builders[golden - golden_messages](msg);
	return true;
}

static void test_golden_decode(struct kunit *test)
{
	const struct golden *golden = test->param_value;
	struct wire *w = test->priv;
	void *buf = exact_copy(test, golden->octets, golden->len);
	enum rpcrdma_verdict verdict;
	const char *broken;

	verdict = rpcrdma_wire_decode(w->msg, buf, golden->len, golden->role,
				      golden->backward);
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

/* In exactly the room that is needed; with any less, nothing is written. */
static void test_golden_encode(struct kunit *test)
{
	const struct golden *golden = test->param_value;
	struct wire *w = test->priv;
	u32 size, len;
	u8 *buf;

	if (!build_golden(w->msg, golden))
		kunit_skip(test, "never sent");
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

/* What is cut off within the header, or within the head of RPC, is no use. */
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

		verdict = rpcrdma_wire_decode(w->msg, buf, len, golden->role,
					      golden->backward);
		KUNIT_EXPECT_NE_MSG(test, verdict, RPCRDMA_USE,
				    "with %u octets", len);
		KUNIT_EXPECT_NE(test, w->msg->reason, RPCRDMA_OK);
		if (len < RPCRDMA_HEADER_MIN)
			KUNIT_EXPECT_EQ(test, verdict, RPCRDMA_DROP);
		if (golden->role == RPCRDMA_REQUESTER)
			KUNIT_EXPECT_EQ(test, verdict, RPCRDMA_DROP);
		kunit_kfree(test, buf);
	}
}

/* One bit wrong anywhere: either a message that holds together, or none */
static void flip_all_bits(struct wire *w, const struct golden *golden,
			  enum rpcrdma_role role, bool backward)
{
	u8 *buf = exact_copy(w->test, golden->octets, golden->len);
	void *copy = exact_copy(w->test, golden->octets, golden->len);
	enum rpcrdma_verdict verdict;
	const char *broken;
	u32 bit;

	for (bit = 0; bit < golden->len * 8; bit++) {
		buf[bit / 8] ^= 1 << bit % 8;
		verdict = rpcrdma_wire_decode(w->msg, buf, golden->len, role,
					      backward);
		KUNIT_EXPECT_EQ(w->test, verdict == RPCRDMA_USE,
				w->msg->reason == RPCRDMA_OK);
		if (verdict == RPCRDMA_USE) {
			broken = broken_message(w->msg, buf, golden->len, copy,
						w->again);
			KUNIT_EXPECT_TRUE_MSG(w->test, !broken, "bit %u: %s",
					      bit, broken);
		}
		buf[bit / 8] ^= 1 << bit % 8;
	}
}

static void test_golden_bit_flipped(struct kunit *test)
{
	const struct golden *golden = test->param_value;

	flip_all_bits(test->priv, golden, RPCRDMA_REQUESTER, false);
	flip_all_bits(test->priv, golden, RPCRDMA_REQUESTER, true);
	flip_all_bits(test->priv, golden, RPCRDMA_RESPONDER, false);
	flip_all_bits(test->priv, golden, RPCRDMA_RESPONDER, true);
}

/* What becomes of a message, RFC 8166 sections 4.5 and 4.6, RFC 8167 */

/* Not even what would be an ERR_VERS is answered without a trusted XID. */
static void test_short_is_dropped(struct kunit *test)
{
	struct wire *w = test->priv;
	u32 words;

	for (words = 0; words < RPCRDMA_HEADER_MIN / 4; words++) {
		put_fixed(w, RPCRDMA_MSG);
		put_zeros(w, 3);
		w->word[1] = cpu_to_be32(9);
		w->words = words;
		KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_RESPONDER, false),
				RPCRDMA_DROP);
		KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_SHORT);
	}
}

static void test_unknown_version(struct kunit *test)
{
	static const u32 versions[] = { 0, 2, 3, 0x01000000, U32_MAX };
	struct wire *w = test->priv;
	__be32 answer[7];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(versions); i++) {
		put_fixed(w, 17);
		put_zeros(w, 3);
		w->word[1] = cpu_to_be32(versions[i]);
		KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_REQUESTER, true),
				RPCRDMA_DROP);
		KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_RESPONDER, false),
				RPCRDMA_ANSWER_ERR_VERS);
		KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_VERSION);

		rpcrdma_wire_make_error(w->msg, RPCRDMA_ERR_VERS, 3);
		KUNIT_EXPECT_EQ(test, rpcrdma_wire_encode(w->msg, answer, 28),
				28);
		KUNIT_EXPECT_EQ(test, wire_word(answer, 0), XID);
		KUNIT_EXPECT_EQ(test, wire_word(answer, 1), versions[i]);
		KUNIT_EXPECT_EQ(test, wire_word(answer, 2), 3);
		KUNIT_EXPECT_EQ(test, wire_word(answer, 3), RPCRDMA_ERROR);
		KUNIT_EXPECT_EQ(test, wire_word(answer, 4), RPCRDMA_ERR_VERS);
		KUNIT_EXPECT_EQ(test, wire_word(answer, 5), 1);
		KUNIT_EXPECT_EQ(test, wire_word(answer, 6), 1);
	}
}

static void test_unknown_proc(struct kunit *test)
{
	static const u32 procs[] = { 5, 6, 0x100, 0x80000000, U32_MAX };
	struct wire *w = test->priv;
	__be32 answer[5];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(procs); i++) {
		put_fixed(w, procs[i]);
		put_rest_of_call(w, CALL_LEN);
		expect_err_chunk(w, RPCRDMA_BAD_PROC);
	}
	rpcrdma_wire_make_error(w->msg, RPCRDMA_ERR_CHUNK, 1);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_encode(w->msg, answer, 20), 20);
	KUNIT_EXPECT_EQ(test, wire_word(answer, 0), XID);
	KUNIT_EXPECT_EQ(test, wire_word(answer, 1), 1);
	KUNIT_EXPECT_EQ(test, wire_word(answer, 3), RPCRDMA_ERROR);
	KUNIT_EXPECT_EQ(test, wire_word(answer, 4), RPCRDMA_ERR_CHUNK);
}

static void test_msgp(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_MSGP);
	put_zeros(w, 2);
	put_rest_of_call(w, CALL_LEN);
	expect_err_chunk(w, RPCRDMA_BAD_MSGP);
}

/* Long enough to be trusted, and dropped nevertheless */
static void test_done(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_DONE);
	put_rest_of_call(w, CALL_LEN);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_RESPONDER, true),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_DONE);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_REQUESTER, true),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_DONE);
}

/* An error is a Reply, whatever its version; two peers must not exchange more */
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
				verdict = receive(w, RPCRDMA_RESPONDER, false);
				KUNIT_EXPECT_EQ(test, verdict, RPCRDMA_DROP);
				verdict = receive(w, RPCRDMA_RESPONDER, true);
				KUNIT_EXPECT_TRUE(test,
						  verdict == RPCRDMA_USE ||
						  verdict == RPCRDMA_DROP);
			}
		}
	}
}

/* A requester that tried version 2 learns from ERR_VERS what there is. */
static void test_err_vers_is_the_same_in_all_versions(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_ERROR);
	put(w, RPCRDMA_ERR_VERS);
	put(w, 3);
	put(w, 5);
	w->word[1] = cpu_to_be32(7);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_REQUESTER, false),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_REPLY);
	KUNIT_EXPECT_EQ(test, w->msg->version_low, 3);
	KUNIT_EXPECT_EQ(test, w->msg->version_high, 5);

	w->word[4] = cpu_to_be32(RPCRDMA_ERR_CHUNK);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_REQUESTER, false),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_ERROR);
}

/* Each end, with and without backward messages, gets each direction. */
static void test_direction(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_MSG);
	put_rest_of_call(w, CALL_LEN);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_RESPONDER, false),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_REQUESTER, true),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_CALL);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_REQUESTER, false),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_DIRECTION);

	w->word[8] = cpu_to_be32(RPCRDMA_REPLY);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_REQUESTER, false),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_RESPONDER, true),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_REPLY);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_RESPONDER, false),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_DIRECTION);
}

/* The direction of a broken message, if it can be told, says who answers. */
static void test_direction_of_broken_messages(struct kunit *test)
{
	struct wire *w = test->priv;

	/* A backward Call with Position Zero, at a client */
	put_fixed(w, RPCRDMA_MSG);
	put_read(w, 0, 1, 64);
	put_rest_of_call(w, CALL_LEN);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_REQUESTER, true),
			RPCRDMA_ANSWER_ERR_CHUNK);

	/* The direction of what has no end cannot be told. */
	w->words = 10;
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_REQUESTER, true),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_RESPONDER, true),
			RPCRDMA_ANSWER_ERR_CHUNK);
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

/* RDMA_NOMSG needs a chunk to hold the RPC message; most cannot. */
static void test_nomsg_without_payload(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_NOMSG);
	put_zeros(w, 3);
	expect_err_chunk(w, RPCRDMA_BAD_NO_PAYLOAD);

	put_fixed(w, RPCRDMA_NOMSG);
	put(w, 0);
	put(w, 1);
	put(w, 1);
	put_segment(w, 1, 4096, 0);
	put_zeros(w, 2);
	expect_err_chunk(w, RPCRDMA_BAD_NO_PAYLOAD);

	put_fixed(w, RPCRDMA_NOMSG);
	put_read(w, 8, 1, 4096);
	put_zeros(w, 2);
	put(w, 1);
	put(w, 1);
	put_segment(w, 1, 4096, 0);
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
	put(w, 1);
	put(w, 0);
	expect_err_chunk(w, RPCRDMA_BAD_PAYLOAD_SHORT);
}

/* A Long Reply where no Reply can come is a Call without its payload. */
static void test_nomsg_with_only_a_reply_chunk(struct kunit *test)
{
	struct wire *w = test->priv;

	put_fixed(w, RPCRDMA_NOMSG);
	put_zeros(w, 2);
	put(w, 1);
	put(w, 1);
	put_segment(w, 1, 4096, 0);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_REQUESTER, false),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_REPLY);
	KUNIT_EXPECT_EQ(test, w->msg->stream_len, 4096);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_RESPONDER, true),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, w->msg->direction, RPCRDMA_REPLY);
	KUNIT_EXPECT_EQ(test, receive(w, RPCRDMA_RESPONDER, false),
			RPCRDMA_ANSWER_ERR_CHUNK);
	KUNIT_EXPECT_EQ(test, w->msg->reason, RPCRDMA_BAD_NO_PAYLOAD);
}

/* Lists and counts, RFC 8166 section 4.3 */

static void test_discriminators(struct kunit *test)
{
	static const u32 values[] = { 2, 0x100, 0x80000001, U32_MAX };
	static const u8 zero_or_one[] = { 4, 10, 11, 17, 27, 28 };
	const struct golden *golden = &golden_messages[GOLDEN_EVERYTHING];
	struct wire *w = test->priv;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(zero_or_one); i++) {
		for (j = 0; j < ARRAY_SIZE(values); j++) {
			memcpy(w->word, golden->octets, golden->len);
			w->words = golden->len / 4;
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
	u32 i, j;

	put_fixed(w, RPCRDMA_MSG);
	put(w, 0);
	for (i = 0; i < chunks; i++) {
		put(w, 1);
		put(w, segments);
		for (j = 0; j < segments; j++)
			put_segment(w, j, 1, 0);
	}
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

/* Counts that wrap when multiplied by a segment's size, or added up */
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
		put(w, 1);
		put(w, counts[i]);
		put_segment(w, 1, 4096, 0);
		expect_err_chunk(w, RPCRDMA_BAD_SEGMENT_COUNT);
	}
}

/* Lists that claim to go on where the message ends */
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
	put(w, 1);
	put_zeros(w, 2);
	put(w, 1);
	put(w, 0);
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

/* Kilobytes that each message would drag through the cache */
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

/* The unreduced Payload stream must be possible, too. */
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

/* Chunks in any order, their segments scattered: sorted, in list order */
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

/* What was checked inline must still be there once chunks are put back. */
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

/* The end of the inline part is the last place for a data item. */
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

/* A second position counts the first chunk's octets, padding included. */
static void test_position_behind_a_chunk(struct kunit *test)
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

/* What a responder returns, RFC 8166 sections 3.4.6 and 4.3.2 */

/* Offers a chunk of 4096 + 512 octets; returns it with two lengths. */
static void expect_returned(struct wire *w, u32 written, u32 first, u32 second)
{
	struct rpcrdma_chunk *chunk;
	__be32 header[17];

	build_call(w->msg);
	chunk = rpcrdma_wire_add_write(w->msg);
	add(w->msg, chunk, 1, 4096, 0);
	add(w->msg, chunk, 2, 512, 0);
	KUNIT_EXPECT_EQ(w->test, rpcrdma_wire_return_chunk(chunk, written), 0);
	rpcrdma_wire_make_reply(w->msg, RPCRDMA_MSG, 1);
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

/* A received Call becomes its Reply: all chunks of the requester, unused. */
static void test_reply_to_received_call(struct kunit *test)
{
	const struct golden *golden = &golden_messages[GOLDEN_EVERYTHING];
	struct wire *w = test->priv;
	unsigned int i;
	int len;

	memcpy(w->word, golden->octets, golden->len);
	w->words = golden->len / 4;
	expect_usable_call(w);
	rpcrdma_wire_make_reply(w->msg, RPCRDMA_MSG, 5);
	len = rpcrdma_wire_encode(w->msg, w->word, sizeof(w->word));
	KUNIT_ASSERT_EQ(test, len > 0, true);
	w->words = len / 4;
	put_rpc(w, RPCRDMA_REPLY, 24);
	KUNIT_ASSERT_EQ(test, receive(w, RPCRDMA_REQUESTER, false),
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

/* What a requester is told was written into its chunks */
static void test_received_lengths(struct kunit *test)
{
	const struct golden *golden = &golden_messages[GOLDEN_REPLY_WRITE_LIST];
	struct wire *w = test->priv;

	memcpy(w->word, golden->octets, golden->len);
	w->words = golden->len / 4;
	KUNIT_ASSERT_EQ(test, receive(w, RPCRDMA_REQUESTER, false),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(test, w->msg->write[0].written, 4196);
	KUNIT_EXPECT_EQ(test, w->msg->write[1].written, 0);
	KUNIT_EXPECT_EQ(test, w->msg->write[1].count, 1);
	KUNIT_EXPECT_EQ(test, w->msg->write[2].written, 0);
	KUNIT_EXPECT_EQ(test, w->msg->write[2].count, 0);
	KUNIT_EXPECT_EQ(test, w->msg->payload_len, 24);
}

/* What must not be sent, and what there is no room for */

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
	rpcrdma_wire_make_reply(w->msg, RPCRDMA_MSG, 0);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_encode(w->msg, w->word, 64),
			-EINVAL);
	rpcrdma_wire_make_error(w->msg, RPCRDMA_ERR_CHUNK, 0);
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

static struct kunit_case wire_v1_cases[] = {
	KUNIT_CASE_PARAM(test_golden_decode, golden_gen_params),
	KUNIT_CASE_PARAM(test_golden_encode, golden_gen_params),
	KUNIT_CASE_PARAM(test_golden_truncated, golden_gen_params),
	KUNIT_CASE_PARAM(test_golden_bit_flipped, golden_gen_params),
	KUNIT_CASE(test_short_is_dropped),
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
	KUNIT_CASE(test_position_behind_a_chunk),
	KUNIT_CASE(test_position_in_long_call),
	KUNIT_CASE(test_returned_lengths),
	KUNIT_CASE(test_returned_too_much),
	KUNIT_CASE(test_reply_to_received_call),
	KUNIT_CASE(test_received_lengths),
	KUNIT_CASE(test_unsendable),
	KUNIT_CASE(test_builder_limits),
	KUNIT_CASE(test_builder_order_and_lengths),
	{}
};

static struct kunit_suite wire_v1_suite = {
	.name = "rpcrdma_wire_v1",
	.init = wire_init,
	.test_cases = wire_v1_cases,
};

/* RFC 8797 */

static void expect_defaults(struct kunit *test,
			    const struct rpcrdma_params *params)
{
	KUNIT_EXPECT_EQ(test, params->send_size, 1024);
	KUNIT_EXPECT_EQ(test, params->recv_size, 1024);
	KUNIT_EXPECT_FALSE(test, params->remote_inv);
}

static void expect_golden(struct kunit *test,
			  const struct rpcrdma_params *params)
{
	KUNIT_EXPECT_EQ(test, params->send_size, 4096);
	KUNIT_EXPECT_EQ(test, params->recv_size, 262144);
	KUNIT_EXPECT_TRUE(test, params->remote_inv);
}

/* Decodes @len octets that end where their allocation does. */
static bool receive_private(struct kunit *test, struct rpcrdma_params *params,
			    const void *octets, u32 len)
{
	void *data = exact_copy(test, octets, len);
	bool found;

	memset(params, 0xa5, sizeof(*params));
	params->remote_inv = true;
	found = rpcrdma_wire_decode_private(params, data, len);
	kunit_kfree(test, data);
	return found;
}

static void test_private_golden(struct kunit *test)
{
	struct rpcrdma_params params;
	u8 octets[RPCRDMA_PRIVATE_LEN];

	KUNIT_EXPECT_TRUE(test, receive_private(test, &params, golden_private,
						sizeof(golden_private)));
	expect_golden(test, &params);
	rpcrdma_wire_encode_private(&params, octets);
	KUNIT_EXPECT_EQ(test, memcmp(octets, golden_private, sizeof(octets)),
			0);
}

static void test_private_none(struct kunit *test)
{
	struct rpcrdma_params params;
	u8 octets[196] = {};

	KUNIT_EXPECT_FALSE(test, receive_private(test, &params, octets,
						 sizeof(octets)));
	expect_defaults(test, &params);
	KUNIT_EXPECT_FALSE(test, rpcrdma_wire_decode_private(&params, NULL, 0));
	expect_defaults(test, &params);
}

/* Other layers put their own data before and behind. */
static void test_private_at_any_offset(struct kunit *test)
{
	struct rpcrdma_params params;
	u32 offset, behind;
	u8 octets[96];

	for (offset = 0; offset <= 64; offset++) {
		for (behind = 0; behind < 8; behind++) {
			u32 len = offset + RPCRDMA_PRIVATE_LEN + behind;

			memset(octets, 0xf6, sizeof(octets));
			memcpy(octets + offset, golden_private,
			       RPCRDMA_PRIVATE_LEN);
			KUNIT_EXPECT_TRUE(test, receive_private(test, &params,
								octets, len));
			expect_golden(test, &params);
		}
	}
}

static void test_private_cut_off(struct kunit *test)
{
	struct rpcrdma_params params;
	u32 offset, len;
	u8 octets[32] = {};

	for (offset = 0; offset < 8; offset++) {
		memset(octets, 0, sizeof(octets));
		memcpy(octets + offset, golden_private, RPCRDMA_PRIVATE_LEN);
		for (len = 0; len < offset + RPCRDMA_PRIVATE_LEN; len++) {
			KUNIT_EXPECT_FALSE(test, receive_private(test, &params,
								 octets, len));
			expect_defaults(test, &params);
		}
	}
}

static void test_private_other_version(struct kunit *test)
{
	struct rpcrdma_params params;
	u8 octets[RPCRDMA_PRIVATE_LEN];
	u32 version;

	memcpy(octets, golden_private, sizeof(octets));
	for (version = 0; version < 256; version++) {
		bool found;

		octets[4] = version;
		found = receive_private(test, &params, octets, sizeof(octets));
		KUNIT_EXPECT_EQ(test, found, version == 1);
		if (version != 1)
			expect_defaults(test, &params);
	}
}

static void test_private_other_identifier(struct kunit *test)
{
	struct rpcrdma_params params;
	u8 octets[RPCRDMA_PRIVATE_LEN];
	u32 bit;

	for (bit = 0; bit < 32; bit++) {
		memcpy(octets, golden_private, sizeof(octets));
		octets[bit / 8] ^= 1 << bit % 8;
		KUNIT_EXPECT_FALSE(test, receive_private(test, &params, octets,
							 sizeof(octets)));
		expect_defaults(test, &params);
	}
}

/* The first that is well formed counts; chance matches are passed over. */
static void test_private_repeated(struct kunit *test)
{
	struct rpcrdma_params params;
	u8 octets[3 * RPCRDMA_PRIVATE_LEN];

	memcpy(octets, golden_private, 8);
	memcpy(octets + 8, golden_private, 8);
	memcpy(octets + 16, golden_private, 8);
	octets[4] = 2;
	octets[16 + 6] = 0;
	KUNIT_EXPECT_TRUE(test, receive_private(test, &params, octets,
						sizeof(octets)));
	expect_golden(test, &params);

	/* An identifier in front of another one hides nothing. */
	memcpy(octets, golden_private, 4);
	memcpy(octets + 4, golden_private, 8);
	KUNIT_EXPECT_TRUE(test, receive_private(test, &params, octets, 12));
	expect_golden(test, &params);
}

static void test_private_reserved_flags(struct kunit *test)
{
	struct rpcrdma_params params = {};
	u8 octets[RPCRDMA_PRIVATE_LEN];
	u32 flags;

	memcpy(octets, golden_private, sizeof(octets));
	for (flags = 0; flags < 256; flags++) {
		octets[5] = flags;
		KUNIT_EXPECT_TRUE(test, receive_private(test, &params, octets,
							sizeof(octets)));
		KUNIT_EXPECT_EQ(test, params.remote_inv, flags % 2 == 1);
	}
	params.remote_inv = false;
	rpcrdma_wire_encode_private(&params, octets);
	KUNIT_EXPECT_EQ(test, octets[5], 0);
	params.remote_inv = true;
	rpcrdma_wire_encode_private(&params, octets);
	KUNIT_EXPECT_EQ(test, octets[5], 1);
}

/* Code n means n + 1 KiB; send and receive size are not confused. */
static void test_private_sizes(struct kunit *test)
{
	struct rpcrdma_params params;
	u8 octets[RPCRDMA_PRIVATE_LEN], again[RPCRDMA_PRIVATE_LEN];
	u32 code;

	memcpy(octets, golden_private, sizeof(octets));
	for (code = 0; code < 256; code++) {
		octets[6] = code;
		octets[7] = 255 - code;
		KUNIT_EXPECT_TRUE(test, receive_private(test, &params, octets,
							sizeof(octets)));
		KUNIT_EXPECT_EQ(test, params.send_size, (code + 1) * 1024);
		KUNIT_EXPECT_EQ(test, params.recv_size, (256 - code) * 1024);
		rpcrdma_wire_encode_private(&params, again);
		KUNIT_EXPECT_EQ(test, memcmp(again, octets, sizeof(octets)), 0);
	}
}

static void test_private_sizes_clamped(struct kunit *test)
{
	static const struct {
		u32 size;
		u8 code;
	} sizes[] = {
		{ 0, 0 }, { 1, 0 }, { 1023, 0 }, { 1024, 0 }, { 2047, 0 },
		{ 2048, 1 }, { 4095, 2 }, { 4096, 3 }, { 262143, 254 },
		{ 262144, 255 }, { 262145, 255 }, { U32_MAX, 255 },
	};
	struct rpcrdma_params params = {};
	u8 octets[RPCRDMA_PRIVATE_LEN];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		params.send_size = sizes[i].size;
		params.recv_size = sizes[i].size;
		rpcrdma_wire_encode_private(&params, octets);
		KUNIT_EXPECT_EQ(test, octets[6], sizes[i].code);
		KUNIT_EXPECT_EQ(test, octets[7], sizes[i].code);
	}
}

static void test_agree_thresholds(struct kunit *test)
{
	struct rpcrdma_params client = { .send_size = 4096, .recv_size = 8192 };
	struct rpcrdma_params server = { .send_size = 2048, .recv_size = 16384 };
	struct rpcrdma_agreement agreement;

	rpcrdma_wire_agree(&client, &server, &agreement);
	KUNIT_EXPECT_EQ(test, agreement.call_threshold, 4096);
	KUNIT_EXPECT_EQ(test, agreement.reply_threshold, 2048);
	rpcrdma_wire_agree(&server, &client, &agreement);
	KUNIT_EXPECT_EQ(test, agreement.call_threshold, 2048);
	KUNIT_EXPECT_EQ(test, agreement.reply_threshold, 4096);

	/* A peer that sent nothing */
	rpcrdma_wire_decode_private(&server, NULL, 0);
	rpcrdma_wire_agree(&client, &server, &agreement);
	KUNIT_EXPECT_EQ(test, agreement.call_threshold, 1024);
	KUNIT_EXPECT_EQ(test, agreement.reply_threshold, 1024);

	/* Own sizes count as the peer sees them. */
	client.send_size = 5000;
	client.recv_size = 0;
	server.send_size = U32_MAX;
	server.recv_size = U32_MAX;
	rpcrdma_wire_agree(&client, &server, &agreement);
	KUNIT_EXPECT_EQ(test, agreement.call_threshold, 4096);
	KUNIT_EXPECT_EQ(test, agreement.reply_threshold, 1024);
}

static void test_agree_remote_invalidation(struct kunit *test)
{
	struct rpcrdma_params client = {}, server = {};
	struct rpcrdma_agreement agreement;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		client.remote_inv = i & 1;
		server.remote_inv = i & 2;
		rpcrdma_wire_agree(&client, &server, &agreement);
		KUNIT_EXPECT_EQ(test, agreement.remote_inv, i == 3);
	}
}

static struct kunit_case private_data_cases[] = {
	KUNIT_CASE(test_private_golden),
	KUNIT_CASE(test_private_none),
	KUNIT_CASE(test_private_at_any_offset),
	KUNIT_CASE(test_private_cut_off),
	KUNIT_CASE(test_private_other_version),
	KUNIT_CASE(test_private_other_identifier),
	KUNIT_CASE(test_private_repeated),
	KUNIT_CASE(test_private_reserved_flags),
	KUNIT_CASE(test_private_sizes),
	KUNIT_CASE(test_private_sizes_clamped),
	KUNIT_CASE(test_agree_thresholds),
	KUNIT_CASE(test_agree_remote_invalidation),
	{}
};

static struct kunit_suite private_data_suite = {
	.name = "rpcrdma_private_data",
	.test_cases = private_data_cases,
};

kunit_test_suites(&wire_v1_suite, &private_data_suite);
