// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The messages of rpcrdma ping: NULL Calls, and what answers them. */

#include <stdarg.h>
#include <stdio.h>
#include "ping.h"

/* RPC, RFC 5531 section 9 */
#define RPC_VERSION	2
#define NULL_PROCEDURE	0
#define AUTH_NONE	0
#define AUTH_MAX	400	/* octets of a credential or verifier */

enum { MSG_ACCEPTED = 0, MSG_DENIED = 1 };

enum {
	RPC_SUCCESS = 0, RPC_PROG_UNAVAIL = 1, RPC_PROG_MISMATCH = 2,
	RPC_PROC_UNAVAIL = 3, RPC_GARBAGE_ARGS = 4, RPC_SYSTEM_ERR = 5,
};

enum { DENIED_RPC_MISMATCH = 0, DENIED_AUTH_ERROR = 1 };

/* What the server did wrong, in the order of enum rpcrdma_reason */
static const char * const reasons[] = {
	[RPCRDMA_OK] = "",
	[RPCRDMA_BAD_SHORT] = "it is too short",
	[RPCRDMA_BAD_VERSION] = "it has an unknown version of RPC-over-RDMA",
	[RPCRDMA_BAD_PROC] = "its rdma_proc is unknown",
	[RPCRDMA_BAD_MSGP] = "it is an RDMA_MSGP",
	[RPCRDMA_BAD_DONE] = "it is an RDMA_DONE",
	[RPCRDMA_BAD_ERROR] = "it is an RDMA_ERROR that is unknown or cut off",
	[RPCRDMA_BAD_TRUNCATED] = "it ends within its header",
	[RPCRDMA_BAD_DISCRIMINATOR] = "its header is no XDR",
	[RPCRDMA_BAD_SEGMENT_COUNT] = "it has too many segments",
	[RPCRDMA_BAD_CHUNK_COUNT] = "it has too many chunks",
	[RPCRDMA_BAD_SEGMENT_RANGE] = "a segment ends past 64 bits",
	[RPCRDMA_BAD_CHUNK_LENGTH] = "a chunk is longer than 32 bits can say",
	[RPCRDMA_BAD_POSITION_ALIGN] = "a Read chunk is at an odd position",
	[RPCRDMA_BAD_POSITION_HEAD] = "a Read chunk displaces the XID",
	[RPCRDMA_BAD_POSITION_OVERLAP] = "Read chunks overlap",
	[RPCRDMA_BAD_POSITION_BEYOND] = "a Read chunk is past the end",
	[RPCRDMA_BAD_READ_IN_REPLY] = "it has a Read list",
	[RPCRDMA_BAD_NO_PAYLOAD] = "it has no RPC message",
	[RPCRDMA_BAD_PAYLOAD_SHORT] = "its RPC message is too short",
	[RPCRDMA_BAD_MSG_TYPE] = "it is neither Call nor Reply",
	[RPCRDMA_BAD_MSG_DIRECTION] = "its direction contradicts itself",
	[RPCRDMA_BAD_OPTION] = "it has an unknown option",
	[RPCRDMA_BAD_XID] = "its XID is not that of its RPC message",
	[RPCRDMA_BAD_DIRECTION] = "it is a Call",
};

/* In version 2 the first message has so much at most: the server may not know that version. */
bool ping_is_inline(const struct ping_call *call)
{
	return rpcrdma_wire_header_min(call->version) + PING_RPC_LEN + call->size <=
	       (call->version == RPCRDMA_VERSION_TWO ? RPCRDMA_INLINE_MIN : call->threshold);
}

/* The RPC message is behind the header, as in an inline Call, but is not sent. */
static void offer_message(struct rpcrdma_message *header, const struct ping_call *call,
			  const void *buf)
{
	struct rpcrdma_chunk *chunk = rpcrdma_wire_add_read(header, 0);

	header->proc = RPCRDMA_NOMSG;
	rpcrdma_wire_add_segment(header, chunk, call->handle, PING_RPC_LEN,
				 (uintptr_t)buf + rpcrdma_wire_header_min(call->version) +
				 2 * RPCRDMA_READ_SEGMENT_LEN);
	rpcrdma_wire_add_segment(header, chunk, call->handle, call->size,
				 (uintptr_t)call->arguments);
}

uint32_t ping_build(const struct ping_call *call, void *buf)
{
	struct rpcrdma_message header;
	__be32 *p;
	int len;

	rpcrdma_wire_init_call(&header, call->version, cpu_to_be32(call->xid), call->credits);
	if (!ping_is_inline(call))
		offer_message(&header, call, buf);
	len = rpcrdma_wire_encode(&header, buf, PING_CALL_MAX);
	p = buf + len;
	*p++ = cpu_to_be32(call->xid);
	*p++ = cpu_to_be32(RPCRDMA_CALL);
	*p++ = cpu_to_be32(RPC_VERSION);
	*p++ = cpu_to_be32(call->program);
	*p++ = cpu_to_be32(call->program_version);
	*p++ = cpu_to_be32(NULL_PROCEDURE);
	*p++ = cpu_to_be32(AUTH_NONE);	/* credential */
	*p++ = 0;
	*p++ = cpu_to_be32(AUTH_NONE);	/* verifier */
	*p++ = 0;
	return header.proc == RPCRDMA_NOMSG ? len : (void *)p - buf;
}

__attribute__((format(printf, 3, 4)))
static void judged(struct ping_answer *answer, enum ping_verdict verdict, const char *format, ...)
{
	va_list args;

	answer->verdict = verdict;
	va_start(args, format);
	vsnprintf(answer->why, sizeof(answer->why), format, args);
	va_end(args);
}

/**
 * struct words - a cursor over the words of an RPC message
 * @next: the word to be read next
 * @left: words that are left
 *
 * Lives on the stack of judge_rpc().
 */
struct words {
	const __be32 *next;
	uint32_t left;
};

static bool take(struct words *words, uint32_t *value)
{
	if (!words->left)
		return false;
	*value = be32_to_cpup(words->next++);
	words->left--;
	return true;
}

/* The verifier: its flavour, its length and its octets, which do not matter */
static bool skip_verifier(struct words *words)
{
	uint32_t flavour, octets;

	if (!take(words, &flavour) || !take(words, &octets) ||
	    octets > AUTH_MAX || (octets + 3) / 4 > words->left)
		return false;
	words->next += (octets + 3) / 4;
	words->left -= (octets + 3) / 4;
	return true;
}

static void cut_off(struct ping_answer *answer)
{
	judged(answer, PING_BROKEN, "its RPC message is cut off");
}

/* The nearest version that the server has; 0 if it contradicts itself */
static uint32_t other_version(uint32_t refused, uint32_t low, uint32_t high)
{
	if (low > high || (low <= refused && refused <= high))
		return 0;
	return refused < low ? low : high;
}

static void judge_accepted(struct ping_answer *answer,
			   const struct ping_call *call, struct words *words)
{
	uint32_t status, low, high;

	if (!skip_verifier(words) || !take(words, &status))
		return cut_off(answer);
	switch (status) {
	case RPC_SUCCESS:
		if (words->left)
			judged(answer, PING_BROKEN, "a NULL has no results, but it has some");
		else
			judged(answer, PING_SUCCESS, "%s", "");
		return;
	case RPC_PROG_UNAVAIL:
		return judged(answer, PING_REFUSED, "the server does not have program %u",
			      call->program);
	case RPC_PROG_MISMATCH:
		if (!take(words, &low) || !take(words, &high))
			return cut_off(answer);
		answer->other = other_version(call->program_version, low, high);
		return judged(answer, PING_OTHER_PROGRAM,
			      "the server has versions %u to %u of program %u, not %u",
			      low, high, call->program, call->program_version);
	case RPC_PROC_UNAVAIL:
		return judged(answer, PING_REFUSED, "the server does not have the procedure NULL");
	case RPC_GARBAGE_ARGS:
		/* NULL has no arguments; but they have arrived. */
		if (call->size)
			return judged(answer, PING_SUCCESS, "%s", "");
		return judged(answer, PING_REFUSED,
			      "the server could not decode the Call (GARBAGE_ARGS)");
	case RPC_SYSTEM_ERR:
		return judged(answer, PING_REFUSED,
			      "the server has an error of its own (SYSTEM_ERR)");
	default:
		return judged(answer, PING_BROKEN, "its accept_stat %u is unknown", status);
	}
}

static void judge_denied(struct ping_answer *answer, struct words *words)
{
	uint32_t status, low, high;

	if (!take(words, &status) || !take(words, &low))
		return cut_off(answer);
	switch (status) {
	case DENIED_RPC_MISMATCH:
		if (!take(words, &high))
			return cut_off(answer);
		return judged(answer, PING_REFUSED,
			      "the server has versions %u to %u of RPC, not 2", low, high);
	case DENIED_AUTH_ERROR:
		return judged(answer, PING_REFUSED,
			      "the server denied a Call without credentials (auth_stat %u)", low);
	default:
		return judged(answer, PING_BROKEN, "its reject_stat %u is unknown", status);
	}
}

/* The decoder has compared both XIDs, and seen that it is a Reply. */
static void judge_rpc(struct ping_answer *answer, const struct ping_call *call,
		      const void *payload, uint32_t len)
{
	struct words words = { payload, len / sizeof(__be32) };
	uint32_t xid, type, status;

	if (!take(&words, &xid) || !take(&words, &type) || !take(&words, &status))
		return cut_off(answer);
	if (status == MSG_ACCEPTED)
		judge_accepted(answer, call, &words);
	else if (status == MSG_DENIED)
		judge_denied(answer, &words);
	else
		judged(answer, PING_BROKEN, "its reply_stat %u is unknown", status);
}

/* The highest version that both ends have and that is lower; zero: none */
static uint32_t lower_version(const struct rpcrdma_message *header, uint32_t refused)
{
	uint32_t version = refused - 1;

	if (version > header->version_high)
		version = header->version_high;
	return version < header->version_low ? 0 : version;
}

static void judge_error(struct ping_answer *answer, const struct ping_call *call,
			const struct rpcrdma_message *header)
{
	if (header->error != RPCRDMA_ERR_VERS)
		return judged(answer, PING_REFUSED,
			      "the server could not use the Call (RDMA_ERROR %s)",
			      header->version == RPCRDMA_VERSION_ONE ?
			      "ERR_CHUNK" : "of version 2");
	answer->other = lower_version(header, call->version);
	judged(answer, PING_OTHER_TRANSPORT,
	       "the server has versions %u to %u of RPC-over-RDMA, not %u",
	       header->version_low, header->version_high, call->version);
}

void ping_judge(struct ping_answer *answer, const struct ping_call *call,
		const void *buf, uint32_t len)
{
	struct rpcrdma_message header;

	*answer = (struct ping_answer){};
	if (rpcrdma_wire_decode(&header, buf, len, RPCRDMA_CLIENT_END, false,
				call->version) != RPCRDMA_USE)
		return judged(answer, PING_BROKEN, "%s", reasons[header.reason]);
	answer->xid = be32_to_cpu(header.xid);
	answer->grants = rpcrdma_wire_grants(&header);
	answer->credits = header.credits;
	if (answer->xid != call->xid)
		return judged(answer, PING_OTHER_XID, "%s", "");
	if (header.proc == RPCRDMA_ERROR)
		return judge_error(answer, call, &header);
	if (header.version != call->version)
		return judged(answer, PING_BROKEN, "it has another version of RPC-over-RDMA");
	if (header.proc != RPCRDMA_MSG || header.num_writes || header.has_reply_chunk)
		return judged(answer, PING_BROKEN, "it has chunks that the Call did not offer");
	judge_rpc(answer, call, buf + header.header_len, header.payload_len);
}
