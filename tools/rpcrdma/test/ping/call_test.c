// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The messages of rpcrdma ping. */

#include <kunit/test.h>
#include <string.h>

#include "ping.h"

#define XID		0x17a1f00d
#define WORDS_MAX	160

static const struct ping_call call = {
	.xid = XID,
	.version = RPCRDMA_VERSION_ONE,
	.credits = 128,
	.program = 100003,
	.program_version = 3,
	.threshold = 1024,
};

static void a_call_of_version_1(struct kunit *test)
{
	static const u32 wanted[] = {
		/* xid, version, credits, RDMA_MSG, no chunks */
		XID, 1, 128, 0, 0, 0, 0,
		/* xid, CALL, RPC version, program, version, NULL */
		XID, 0, 2, 100003, 3, 0,
		/* AUTH_NONE twice */
		0, 0, 0, 0,
	};
	u32 buf[PING_CALL_MAX / sizeof(u32)], i;

	KUNIT_EXPECT_EQ(test, ping_build(&call, buf), sizeof(wanted));
	for (i = 0; i < ARRAY_SIZE(wanted); i++)
		KUNIT_EXPECT_EQ(test, be32toh(buf[i]), wanted[i]);
}

static void a_call_of_version_2(struct kunit *test)
{
	struct ping_call other = call;
	u32 buf[PING_CALL_MAX / sizeof(u32)];

	other.version = RPCRDMA_VERSION_TWO;
	KUNIT_EXPECT_EQ(test, ping_build(&other, buf), RPCRDMA_V2_HEADER_MIN + PING_RPC_LEN);
	KUNIT_EXPECT_EQ(test, be32toh(buf[1]), 2);
	KUNIT_EXPECT_EQ(test, be32toh(buf[9]), XID);
}

/* Up to the threshold a Call has its arguments in the same Send. */
static void arguments_are_inline(struct kunit *test)
{
	u32 buf[PING_CALL_MAX / sizeof(u32)];
	struct ping_call large = call;

	large.size = 1024 - RPCRDMA_V1_HEADER_MIN - PING_RPC_LEN;
	KUNIT_EXPECT_TRUE(test, ping_is_inline(&large));
	KUNIT_EXPECT_EQ(test, ping_build(&large, buf), RPCRDMA_V1_HEADER_MIN + PING_RPC_LEN);
	large.size += sizeof(u32);
	KUNIT_EXPECT_FALSE(test, ping_is_inline(&large));
	large.threshold = 4096;
	KUNIT_EXPECT_TRUE(test, ping_is_inline(&large));
	large.version = RPCRDMA_VERSION_TWO;
	KUNIT_EXPECT_FALSE(test, ping_is_inline(&large));
}

/* The server reads the RPC message and the arguments, and finds a NULL there. */
static void a_long_call(struct kunit *test)
{
	static const char arguments[4096];
	u32 buf[PING_CALL_MAX / sizeof(u32)];
	const struct rpcrdma_segment *segment;
	struct ping_call large = call;
	struct rpcrdma_message msg;
	u32 version, len;

	large.size = sizeof(arguments);
	large.arguments = arguments;
	large.handle = 0xbeef;
	for (version = RPCRDMA_VERSION_ONE; version <= RPCRDMA_VERSION_MAX; version++) {
		large.version = version;
		len = ping_build(&large, buf);
		KUNIT_ASSERT_EQ(test, rpcrdma_wire_decode(&msg, buf, len, RPCRDMA_SERVER_END, false,
							  version), RPCRDMA_USE);
		KUNIT_EXPECT_EQ(test, msg.proc, RPCRDMA_NOMSG);
		KUNIT_EXPECT_TRUE(test, rpcrdma_position_zero(&msg));
		KUNIT_ASSERT_EQ(test, msg.num_segments, 2);
		KUNIT_EXPECT_EQ(test, msg.stream_len, PING_RPC_LEN + large.size);
		segment = msg.segment;
		KUNIT_EXPECT_EQ(test, segment[0].handle, large.handle);
		KUNIT_EXPECT_EQ(test, segment[0].length, PING_RPC_LEN);
		KUNIT_EXPECT_EQ(test, segment[0].offset, (uintptr_t)buf + len);
		KUNIT_EXPECT_EQ(test, be32toh(buf[len / sizeof(u32)]), XID);
		KUNIT_EXPECT_EQ(test, segment[1].handle, large.handle);
		KUNIT_EXPECT_EQ(test, segment[1].length, large.size);
		KUNIT_EXPECT_EQ(test, segment[1].offset, (uintptr_t)arguments);
	}
}

/* What comes before the RPC message, in each version */
static const u32 header[] = { XID, 1, 32, 0, 0, 0, 0 };
static const u32 header_2[] = { XID, 2, 32, 0, 1, 0, 0, 0, 0 };

enum { HEADER = ARRAY_SIZE(header), HEADER_2 = ARRAY_SIZE(header_2) };

/* A server's message: words in the CPU's order, and what has to come of it */
static const struct answer {
	const char *what;
	u32 header;	/* words of one of those above before @words, or 0 */
	u32 len;	/* of @words */
	u32 words[WORDS_MAX];
	enum ping_verdict verdict;
	u32 other;
	const char *why;
} answers[] = {
	{ "SUCCESS", HEADER, 6, { XID, 1, 0, 0, 0, 0 }, PING_SUCCESS, 0, "" },
	{ "a verifier of 5 octets", HEADER, 8, { XID, 1, 0, 6, 5, 1, 2, 0 },
	  PING_SUCCESS, 0, "" },
	{ "a verifier of 400 octets", HEADER, 106, { XID, 1, 0, 6, 400 },
	  PING_SUCCESS, 0, "" },
	{ "a verifier of 404 octets", HEADER, 107, { XID, 1, 0, 6, 404 },
	  PING_BROKEN, 0, "cut off" },
	{ "a verifier of 2^32-1 octets", HEADER, 6,
	  { XID, 1, 0, 6, 0xffffffff, 0 }, PING_BROKEN, 0, "cut off" },
	{ "a verifier of 5 octets in one word", HEADER, 6,
	  { XID, 1, 0, 6, 5, 1 }, PING_BROKEN, 0, "cut off" },
	{ "no accept_stat", HEADER, 5, { XID, 1, 0, 0, 0 },
	  PING_BROKEN, 0, "cut off" },
	{ "results", HEADER, 7, { XID, 1, 0, 0, 0, 0, 0 },
	  PING_BROKEN, 0, "no results" },
	{ "two words", HEADER, 2, { XID, 1 }, PING_BROKEN, 0, "cut off" },
	{ "PROG_UNAVAIL", HEADER, 6, { XID, 1, 0, 0, 0, 1 },
	  PING_REFUSED, 0, "does not have program 100003" },
	{ "PROC_UNAVAIL", HEADER, 6, { XID, 1, 0, 0, 0, 3 },
	  PING_REFUSED, 0, "procedure" },
	{ "GARBAGE_ARGS", HEADER, 6, { XID, 1, 0, 0, 0, 4 },
	  PING_REFUSED, 0, "GARBAGE_ARGS" },
	{ "SYSTEM_ERR", HEADER, 6, { XID, 1, 0, 0, 0, 5 },
	  PING_REFUSED, 0, "SYSTEM_ERR" },
	{ "accept_stat 6", HEADER, 6, { XID, 1, 0, 0, 0, 6 },
	  PING_BROKEN, 0, "accept_stat 6" },
	{ "versions 4 to 4", HEADER, 8, { XID, 1, 0, 0, 0, 2, 4, 4 },
	  PING_OTHER_PROGRAM, 4, "versions 4 to 4 of program 100003, not 3" },
	{ "versions 0 to 2", HEADER, 8, { XID, 1, 0, 0, 0, 2, 0, 2 },
	  PING_OTHER_PROGRAM, 2, "versions 0 to 2" },
	{ "versions 2 to 4", HEADER, 8, { XID, 1, 0, 0, 0, 2, 2, 4 },
	  PING_OTHER_PROGRAM, 0, "versions 2 to 4" },
	{ "versions 5 to 4", HEADER, 8, { XID, 1, 0, 0, 0, 2, 5, 4 },
	  PING_OTHER_PROGRAM, 0, "versions 5 to 4" },
	{ "one version", HEADER, 7, { XID, 1, 0, 0, 0, 2, 4 },
	  PING_BROKEN, 0, "cut off" },
	{ "RPC_MISMATCH", HEADER, 6, { XID, 1, 1, 0, 3, 4 },
	  PING_REFUSED, 0, "versions 3 to 4 of RPC" },
	{ "RPC_MISMATCH, cut off", HEADER, 5, { XID, 1, 1, 0, 3 },
	  PING_BROKEN, 0, "cut off" },
	{ "AUTH_ERROR", HEADER, 5, { XID, 1, 1, 1, 5 },
	  PING_REFUSED, 0, "auth_stat 5" },
	{ "reject_stat 2", HEADER, 5, { XID, 1, 1, 2, 5 },
	  PING_BROKEN, 0, "reject_stat 2" },
	{ "reply_stat 2", HEADER, 5, { XID, 1, 2, 0, 0 },
	  PING_BROKEN, 0, "reply_stat 2" },
	{ "another XID", 0, 13, { 7, 1, 32, 0, 0, 0, 0, 7, 1, 0, 0, 0, 0 },
	  PING_OTHER_XID, 0, "" },
	{ "two XIDs", HEADER, 6, { 7, 1, 0, 0, 0, 0 },
	  PING_BROKEN, 0, "XID" },
	{ "a Call", HEADER, 10, { XID, 0, 2, 100003, 3, 0, 0, 0, 0, 0 },
	  PING_BROKEN, 0, "Call" },
	{ "version 2 of the transport", HEADER_2, 6, { XID, 1, 0, 0, 0, 0 },
	  PING_BROKEN, 0, "version" },
	{ "nothing", 0, 0, { 0 }, PING_BROKEN, 0, "short" },
	{ "six words", 0, 6, { XID, 1, 32, 0, 0, 0 }, PING_BROKEN, 0, "short" },
	{ "a Write chunk", 0, 19,
	  { XID, 1, 32, 0, 0, 1, 1, 9, 9, 0, 9, 0, 0, XID, 1, 0, 0, 0, 0 },
	  PING_BROKEN, 0, "did not offer" },
	{ "a Long Reply", 0, 12, { XID, 1, 32, 1, 0, 0, 1, 1, 9, 99, 0, 9 },
	  PING_BROKEN, 0, "did not offer" },
	{ "endless segments", 0, 13,
	  { XID, 1, 32, 0, 0, 1, 0xffffffff, XID, 1, 0, 0, 0, 0 },
	  PING_BROKEN, 0, "segments" },
	{ "ERR_CHUNK", 0, 5, { XID, 1, 32, 4, 2 },
	  PING_REFUSED, 0, "ERR_CHUNK" },
	{ "ERR_VERS 2 to 3", 0, 7, { XID, 1, 32, 4, 1, 2, 3 },
	  PING_OTHER_TRANSPORT, 0, "versions 2 to 3 of RPC-over-RDMA, not 1" },
	{ "RDMA_ERROR 3", 0, 7, { XID, 1, 32, 4, 3, 0, 0 },
	  PING_BROKEN, 0, "RDMA_ERROR" },
	{ "RDMA_ERROR of another XID", 0, 5, { 7, 1, 32, 4, 2 },
	  PING_OTHER_XID, 0, "" },
};

KUNIT_ARRAY_PARAM_DESC(answers, answers, what);

/* Memory of exactly that size, so that ASan sees what is read past its end */
static void judge(struct kunit *test, struct ping_answer *answer,
		  const struct ping_call *of, const u32 *words, u32 len)
{
	__be32 *buf = kunit_kmalloc(test, len * sizeof(*buf), GFP_KERNEL);
	u32 i;

	for (i = 0; i < len; i++)
		buf[i] = cpu_to_be32(words[i]);
	ping_judge(answer, of, buf, len * sizeof(*buf));
}

/* The first @len words of what the table has */
static void judge_part(struct kunit *test, struct ping_answer *answer,
		       const struct answer *of, u32 len)
{
	u32 words[HEADER_2 + WORDS_MAX];

	memcpy(words, of->header == HEADER_2 ? header_2 : header,
	       of->header * sizeof(*words));
	memcpy(words + of->header, of->words, of->len * sizeof(*words));
	judge(test, answer, &call, words, len);
}

static void is_judged(struct kunit *test)
{
	const struct answer *wanted = test->param_value;
	struct ping_answer answer;

	judge_part(test, &answer, wanted, wanted->header + wanted->len);
	KUNIT_EXPECT_EQ(test, answer.verdict, wanted->verdict);
	KUNIT_EXPECT_EQ(test, answer.other, wanted->other);
	KUNIT_EXPECT_TRUE_MSG(test, strstr(answer.why, wanted->why),
			      "it says '%s'", answer.why);
}

static void credits_are_told(struct kunit *test)
{
	static const u32 words[] = { XID, 1, 17, 0, 0, 0, 0,
				     XID, 1, 0, 0, 0, 0 };
	struct ping_answer answer;

	judge(test, &answer, &call, words, ARRAY_SIZE(words));
	KUNIT_EXPECT_EQ(test, answer.xid, XID);
	KUNIT_EXPECT_TRUE(test, answer.grants);
	KUNIT_EXPECT_EQ(test, answer.credits, 17);
}

static void version_2_is_answered(struct kunit *test)
{
	static const u32 words[] = { XID, 2, 32, 0, 1, 0, 0, 0, 0,
				     XID, 1, 0, 0, 0, 0 };
	static const u32 refusal[] = { XID, 2, 32, 4, 1, 1, 1 };
	struct ping_call other = call;
	struct ping_answer answer;

	other.version = RPCRDMA_VERSION_TWO;
	judge(test, &answer, &other, words, ARRAY_SIZE(words));
	KUNIT_EXPECT_EQ(test, answer.verdict, PING_SUCCESS);
	judge(test, &answer, &other, refusal, ARRAY_SIZE(refusal));
	KUNIT_EXPECT_EQ(test, answer.verdict, PING_OTHER_TRANSPORT);
	KUNIT_EXPECT_EQ(test, answer.other, RPCRDMA_VERSION_ONE);
	KUNIT_EXPECT_FALSE(test, answer.grants);
}

/* A server need not take arguments that NULL does not have: they have arrived. */
static void refused_arguments_have_arrived(struct kunit *test)
{
	static const u32 words[] = { XID, 1, 32, 0, 0, 0, 0, XID, 1, 0, 0, 0, 4 };
	struct ping_call large = call;
	struct ping_answer answer;

	judge(test, &answer, &call, words, ARRAY_SIZE(words));
	KUNIT_EXPECT_EQ(test, answer.verdict, PING_REFUSED);
	large.size = 4;
	judge(test, &answer, &large, words, ARRAY_SIZE(words));
	KUNIT_EXPECT_EQ(test, answer.verdict, PING_SUCCESS);
}

/* Each answer above, cut off anywhere: nothing is read that is not there. */
static void parts_of_answers(struct kunit *test)
{
	struct ping_answer answer;
	unsigned int i;
	u32 len;

	for (i = 0; i < ARRAY_SIZE(answers); i++)
		for (len = 0; len < answers[i].header + answers[i].len; len++) {
			judge_part(test, &answer, &answers[i], len);
			if (answers[i].verdict == PING_SUCCESS)
				KUNIT_EXPECT_NE(test, answer.verdict,
						PING_SUCCESS);
		}
}

static struct kunit_case cases[] = {
	KUNIT_CASE(a_call_of_version_1),
	KUNIT_CASE(a_call_of_version_2),
	KUNIT_CASE(arguments_are_inline),
	KUNIT_CASE(a_long_call),
	KUNIT_CASE_PARAM(is_judged, answers_gen_params),
	KUNIT_CASE(credits_are_told),
	KUNIT_CASE(version_2_is_answered),
	KUNIT_CASE(refused_arguments_have_arrived),
	KUNIT_CASE(parts_of_answers),
	{}
};

static struct kunit_suite suite = {
	.name = "ping_call",
	.test_cases = cases,
};

kunit_test_suites(&suite);
