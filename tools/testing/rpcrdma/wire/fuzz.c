// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * libFuzzer target: decode the input as a message at both ends, with version 2
 * allowed and not, and as private data. Usable messages must pass
 * broken_message() of invariants.h, and answers broken_answer().
 */
#include <stdio.h>
#include <stdlib.h>

#include "invariants.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* Not cleared, because results must not depend on what earlier messages left. */
static struct rpcrdma_message message, again;

static void check(const char *broken)
{
	if (!broken)
		return;
	fprintf(stderr, "%s\n", broken);
	abort();
}

static void receive_message(const void *buf, u32 len, void *copy,
			    enum rpcrdma_role role, bool backward,
			    u32 version_max)
{
	enum rpcrdma_verdict verdict;
	bool usable, faultless;

	verdict = rpcrdma_wire_decode(&message, buf, len, role, backward,
				      version_max);
	usable = verdict == RPCRDMA_USE;
	faultless = message.reason == RPCRDMA_OK;
	if (usable != faultless)
		check("verdict and reason contradict each other");
	if ((u32)message.reason >= RPCRDMA_REASON_COUNT)
		check("the reason is unknown");
	if (usable)
		check(broken_message(&message, buf, len, copy, &again));
	if (verdict != RPCRDMA_ANSWER)
		return;
	if (message.proc == RPCRDMA_ERROR)
		check("an error is answered");
	if (message.direction == RPCRDMA_REPLY)
		check("a Reply is answered");
	check(broken_answer(&message, &again));
}

static void receive_at_both_ends(const void *buf, u32 len, void *copy,
				 u32 version_max)
{
	receive_message(buf, len, copy, RPCRDMA_REQUESTER, false, version_max);
	receive_message(buf, len, copy, RPCRDMA_REQUESTER, true, version_max);
	receive_message(buf, len, copy, RPCRDMA_RESPONDER, false, version_max);
	receive_message(buf, len, copy, RPCRDMA_RESPONDER, true, version_max);
}

static void receive_private(const void *buf, size_t len)
{
	struct rpcrdma_params params, same;
	u8 octets[RPCRDMA_PRIVATE_LEN];

	rpcrdma_wire_decode_private(&params, buf, len);
	rpcrdma_wire_encode_private(&params, octets);
	if (!rpcrdma_wire_decode_private(&same, octets, sizeof(octets)) ||
	    same.send_size != params.send_size ||
	    same.recv_size != params.recv_size ||
	    same.remote_inv != params.remote_inv)
		check("private data decodes to something else after encoding");
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	/* Aligned as a receive buffer is, which the input need not be. */
	void *buf = malloc(size);
	void *copy = malloc(size);

	if (!buf || !copy)
		abort();
	memcpy(buf, data, size);
	receive_at_both_ends(buf, size, copy, RPCRDMA_VERSION_ONE);
	receive_at_both_ends(buf, size, copy, RPCRDMA_VERSION_TWO);
	receive_private(buf, size);
	free(buf);
	free(copy);
	return 0;
}
