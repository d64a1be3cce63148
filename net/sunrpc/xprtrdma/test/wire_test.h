/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the suites of wire/ share: functions that write a message, correct or
 * not, and functions that decode it and check the result. The folder
 * tools/testing/rpcrdma/wire builds the same suites as a program.
 */
#ifndef RPCRDMA_TEST_WIRE_TEST_H
#define RPCRDMA_TEST_WIRE_TEST_H

#include <kunit/test.h>

#include "golden.h"
#include "invariants.h"

#define XID		0x1badcafe
#define CREDITS		32
#define CALL_LEN	40	/* octets of an RPC Call header with AUTH_NONE */
#define V1_ERR_CHUNK	2	/* rdma_err, RFC 8166 section 4.5 */

/* For two Read segments above the limit; each has six words. */
#define MAX_WORDS	(6 * (RPCRDMA_MAX_SEGMENTS + 2) + 64)

/* The words of a message, and its decoded form. KUnit frees it with the test. */
struct wire {
	struct kunit *test;
	struct rpcrdma_message *msg;
	struct rpcrdma_message *again;
	u32 version_max;	/* of the end that receives */
	u32 words;
	__be32 word[MAX_WORDS];
};

static inline int wire_init(struct kunit *test)
{
	struct wire *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	if (!w)
		return -ENOMEM;
	w->test = test;
	w->version_max = RPCRDMA_VERSION_ONE;
	w->msg = kunit_kzalloc(test, sizeof(*w->msg), GFP_KERNEL);
	w->again = kunit_kzalloc(test, sizeof(*w->again), GFP_KERNEL);
	if (!w->msg || !w->again)
		return -ENOMEM;
	/* Results must not depend on what an earlier message left here. */
	memset(w->msg, 0xa5, sizeof(*w->msg));
	memset(w->again, 0x5a, sizeof(*w->again));
	test->priv = w;
	return 0;
}

/* A copy without room after it, so that sanitizers see overruns */
static inline void *exact_copy(struct kunit *test, const void *octets, u32 len)
{
	void *copy = kunit_kmalloc(test, len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, octets, len);
	return copy;
}

/* Writing messages word by word */

static inline void put(struct wire *w, u32 word)
{
	KUNIT_ASSERT_EQ(w->test, w->words < MAX_WORDS, true);
	w->word[w->words++] = cpu_to_be32(word);
}

static inline void put_fixed(struct wire *w, u32 proc)
{
	w->words = 0;
	put(w, XID);
	put(w, RPCRDMA_VERSION_ONE);
	put(w, CREDITS);
	put(w, proc);
}

static inline void put_segment(struct wire *w, u32 handle, u32 length,
			       u64 offset)
{
	put(w, handle);
	put(w, length);
	put(w, offset >> 32);
	put(w, offset);
}

static inline void put_read(struct wire *w, u32 position, u32 handle,
			    u32 length)
{
	put(w, 1);
	put(w, position);
	put_segment(w, handle, length, 0x1000);
}

static inline void put_zeros(struct wire *w, u32 count)
{
	while (count--)
		put(w, 0);
}

/* A Write chunk or the Reply chunk */
static inline void put_chunk(struct wire *w, u32 segments)
{
	u32 i;

	put(w, 1);
	put(w, segments);
	for (i = 0; i < segments; i++)
		put_segment(w, i, 4096, 0);
}

static inline void put_rpc(struct wire *w, u32 msg_type, u32 octets)
{
	put(w, XID);
	put(w, msg_type);
	put_zeros(w, octets / 4 - 2);
}

/* The end of the Read list, no other chunks, and a Call of so many octets */
static inline void put_rest_of_call(struct wire *w, u32 octets)
{
	put_zeros(w, 3);
	put_rpc(w, RPCRDMA_CALL, octets);
}

static inline void put_golden(struct wire *w, enum golden_id id)
{
	const struct golden *golden = &rpcrdma_golden_messages[id];

	memcpy(w->word, golden->octets, golden->len);
	w->words = golden->len / 4;
}

static inline enum rpcrdma_verdict receive(struct wire *w,
					   enum rpcrdma_end end,
					   bool backward)
{
	u32 len = w->words * sizeof(__be32);
	void *buf = exact_copy(w->test, w->word, len);
	enum rpcrdma_verdict verdict;

	verdict = rpcrdma_wire_decode(w->msg, buf, len, end, backward,
				      w->version_max);
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

static inline void expect_usable_call(struct wire *w)
{
	KUNIT_EXPECT_EQ(w->test, receive(w, RPCRDMA_SERVER_END, false),
			RPCRDMA_USE);
	KUNIT_EXPECT_EQ(w->test, w->msg->reason, RPCRDMA_OK);
	KUNIT_EXPECT_EQ(w->test, w->msg->direction, RPCRDMA_CALL);
}

/* The RDMA_ERROR that answers w->msg has these words. */
static inline void expect_answer(struct wire *w, const u32 *word, u32 words)
{
	__be32 answer[8];
	u32 i;

	memcpy(w->again, w->msg, sizeof(*w->msg));
	rpcrdma_wire_make_error(w->again, CREDITS);
	KUNIT_ASSERT_EQ(w->test,
			rpcrdma_wire_encode(w->again, answer, sizeof(answer)),
			(int)(words * sizeof(__be32)));
	for (i = 0; i < words; i++)
		KUNIT_EXPECT_EQ(w->test, wire_word(answer, i), word[i]);
}

/* A broken Call: a responder answers it, a requester drops it. */
static inline void expect_err_chunk(struct wire *w, enum rpcrdma_reason reason)
{
	static const u32 err_chunk[] = {
		XID, RPCRDMA_VERSION_ONE, CREDITS, RPCRDMA_ERROR, V1_ERR_CHUNK
	};

	KUNIT_EXPECT_EQ(w->test, receive(w, RPCRDMA_CLIENT_END, false),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(w->test, receive(w, RPCRDMA_SERVER_END, false),
			RPCRDMA_ANSWER);
	KUNIT_EXPECT_EQ(w->test, w->msg->reason, reason);
	KUNIT_EXPECT_EQ(w->test, receive(w, RPCRDMA_SERVER_END, true),
			RPCRDMA_ANSWER);
	KUNIT_EXPECT_EQ(w->test, w->msg->reason, reason);
	expect_answer(w, err_chunk, ARRAY_SIZE(err_chunk));
}

/* A broken Reply: both ends drop it. */
static inline void expect_reply_dropped(struct wire *w,
					enum rpcrdma_reason reason)
{
	KUNIT_EXPECT_EQ(w->test, receive(w, RPCRDMA_SERVER_END, true),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(w->test, receive(w, RPCRDMA_CLIENT_END, true),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(w->test, receive(w, RPCRDMA_CLIENT_END, false),
			RPCRDMA_DROP);
	KUNIT_EXPECT_EQ(w->test, w->msg->reason, reason);
}

/* Building messages as a requester or a responder does */

static inline void add(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk,
		       u32 handle, u32 length, u64 offset)
{
	rpcrdma_wire_add_segment(msg, chunk, handle, length, offset);
}

static inline void build_call(struct rpcrdma_message *msg)
{
	rpcrdma_wire_init_call(msg, RPCRDMA_VERSION_ONE, cpu_to_be32(XID),
			       CREDITS);
}

#endif /* RPCRDMA_TEST_WIRE_TEST_H */
