// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * libFuzzer target: a lying server. The input is what it sends; its first octet
 * decides which Call it answers, and whether the XIDs are made right, without
 * which few messages would get past the first check.
 */
#include <stdio.h>
#include <stdlib.h>

#include "ping.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define XID	0x17a1f00d

static void check(bool right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void check_answer(const struct ping_answer *answer,
			 const struct ping_call *call)
{
	const char *why = answer->why;
	bool plain = answer->verdict == PING_SUCCESS ||
		     answer->verdict == PING_OTHER_XID;

	check(plain == !*why, "no reason, or one too many");
	for (; *why; why++)
		check(*why >= ' ' && *why <= '~', "a control character");
	check(why - answer->why < (long)sizeof(answer->why) - 1,
	      "the reason is cut off");
	if (answer->verdict == PING_OTHER_TRANSPORT)
		check(answer->other < call->version, "it would never end");
	if (answer->verdict == PING_OTHER_PROGRAM)
		check(answer->other != call->program_version,
		      "the version that was refused");
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct ping_call call = {
		.xid = XID,
		.credits = 128,
		.program = 100003,
		.program_version = 3,
	};
	const __be32 xid = cpu_to_be32(XID);
	struct ping_answer answer;
	size_t at;
	u8 *buf;

	if (!size)
		return 0;
	call.version = data[0] & 1 ? RPCRDMA_VERSION_TWO : RPCRDMA_VERSION_ONE;
	at = data[0] & 1 ? RPCRDMA_V2_HEADER_MIN : RPCRDMA_V1_HEADER_MIN;
	buf = malloc(size - 1);
	if (!buf)
		abort();
	memcpy(buf, data + 1, size - 1);
	if (data[0] & 2 && size - 1 >= at + sizeof(xid)) {
		memcpy(buf, &xid, sizeof(xid));
		memcpy(buf + at, &xid, sizeof(xid));
	}
	ping_judge(&answer, &call, buf, size - 1);
	check_answer(&answer, &call);
	free(buf);
	return 0;
}
