// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The short way of usual messages has the same result as the way of all messages: for each
 * of them, for what is left when it is cut off, and with each of its bits flipped; at
 * either end, with and without backward Calls, and with each highest version.
 */
#include "../wire/codec.h"
#include "wire_test.h"

struct usual {
	const char *name;
	void (*build)(struct rpcrdma_message *msg);
};

/* Who receives a message */
struct receiver {
	enum rpcrdma_role role;
	bool backward;
	u32 version_max;
};

static const struct receiver receivers[] = {
	{ RPCRDMA_REQUESTER, false, RPCRDMA_VERSION_ONE },
	{ RPCRDMA_REQUESTER, true, RPCRDMA_VERSION_ONE },
	{ RPCRDMA_REQUESTER, true, RPCRDMA_VERSION_TWO },
	{ RPCRDMA_RESPONDER, false, RPCRDMA_VERSION_ONE },
	{ RPCRDMA_RESPONDER, true, RPCRDMA_VERSION_ONE },
	{ RPCRDMA_RESPONDER, true, RPCRDMA_VERSION_TWO },
};

static void build_write_call(struct rpcrdma_message *msg)
{
	build_call(msg);
	add(msg, rpcrdma_wire_add_read(msg, CALL_LEN), 0x0a000001, 4095, 0xffff888011112000);
}

/* The segment wraps if any of some bits is flipped. */
static void build_read_call(struct rpcrdma_message *msg)
{
	build_call(msg);
	add(msg, rpcrdma_wire_add_write(msg), 0x0b000001, 65536, 0xfffffffffffeffff);
}

static void build_read_reply(struct rpcrdma_message *msg)
{
	build_read_call(msg);
	rpcrdma_wire_make_reply(msg, RPCRDMA_MSG, 64);
	rpcrdma_wire_return_chunk(&msg->write[0], 12345);
}

/* It has as many segments as the usual one, but that of the Call's Read chunk. */
static void build_unusual_reply(struct rpcrdma_message *msg)
{
	build_write_call(msg);
	rpcrdma_wire_add_write(msg);
	rpcrdma_wire_make_reply(msg, RPCRDMA_MSG, 64);
}

static void build_plain_reply(struct rpcrdma_message *msg)
{
	build_call(msg);
	rpcrdma_wire_make_reply(msg, RPCRDMA_MSG, 64);
}

static const struct usual usual_messages[] = {
	{ "plain Call", build_call },
	{ "plain Reply", build_plain_reply },
	{ "Call with a Read chunk", build_write_call },
	{ "Call with a Write chunk", build_read_call },
	{ "Reply with a Write chunk", build_read_reply },
	{ "Reply with an empty Write chunk", build_unusual_reply },
};

/* Put the message, with an RPC message after its header, into @w. */
static void put_usual(struct wire *w, const struct usual *usual)
{
	int len;

	usual->build(w->msg);
	len = rpcrdma_wire_encode(w->msg, w->word, sizeof(w->word));
	KUNIT_ASSERT_EQ(w->test, len > 0, true);
	w->words = len / sizeof(__be32);
	put_rpc(w, w->msg->direction, CALL_LEN);
}

/* What the memory had before does not matter, so it is not what the messages have. */
static void expect_same_decoded(struct wire *w, const char *name,
				const struct receiver *to, const void *buf, u32 len)
{
	enum rpcrdma_verdict verdict, any;
	bool same;

	memset(w->msg, 0xa5, sizeof(*w->msg));
	memset(w->again, 0xa5, sizeof(*w->again));
	verdict = rpcrdma_wire_decode(w->msg, buf, len, to->role, to->backward,
				      to->version_max);
	any = rpcrdma_decode_any(w->again, buf, len, to->role, to->backward, to->version_max);
	same = verdict == any && w->msg->reason == w->again->reason;
	if (same && verdict == RPCRDMA_USE)
		same = !memcmp(w->msg, w->again, sizeof(*w->msg));
	KUNIT_EXPECT_TRUE_MSG(w->test, same, "%s, role %d, backward %d, version %u: %d and %d",
			      name, to->role, to->backward, to->version_max, verdict, any);
}

static void expect_same_everywhere(struct wire *w, const char *name, u32 len)
{
	const void *buf = exact_copy(w->test, w->word, len);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(receivers); i++)
		expect_same_decoded(w, name, &receivers[i], buf, len);
	kunit_kfree(w->test, buf);
}

static void test_usual_decode(struct kunit *test)
{
	struct wire *w = test->priv;
	unsigned int i;
	u32 len, bit;

	for (i = 0; i < ARRAY_SIZE(usual_messages); i++) {
		const char *name = usual_messages[i].name;

		put_usual(w, &usual_messages[i]);
		for (len = 0; len <= w->words * sizeof(__be32); len++)
			expect_same_everywhere(w, name, len);
		for (bit = 0; bit < w->words * 32; bit++) {
			u8 *octet = (u8 *)w->word + bit / 8;

			*octet ^= 1 << bit % 8;
			expect_same_everywhere(w, name, w->words * sizeof(__be32));
			*octet ^= 1 << bit % 8;
		}
	}
}

static void test_usual_encode(struct kunit *test)
{
	struct wire *w = test->priv;
	__be32 word[16] = {}, any[16] = {};
	unsigned int i;
	u32 size;

	for (i = 0; i < ARRAY_SIZE(usual_messages); i++) {
		usual_messages[i].build(w->msg);
		for (size = 0; size <= sizeof(word); size++) {
			int len = rpcrdma_wire_encode(w->msg, word, size);

			bool same = len == rpcrdma_encode_any(w->msg, any, size) &&
				    !memcmp(word, any, sizeof(word));

			KUNIT_EXPECT_TRUE_MSG(test, same, "%s, %u octets",
					      usual_messages[i].name, size);
		}
	}
}

static struct kunit_case wire_usual_cases[] = {
	KUNIT_CASE(test_usual_decode),
	KUNIT_CASE(test_usual_encode),
	{}
};

static struct kunit_suite wire_usual_suite = {
	.name = "rpcrdma_wire_usual",
	.init = wire_init,
	.test_cases = wire_usual_cases,
};

kunit_test_suites(&wire_usual_suite);
