// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * libFuzzer target: decode the input as a message at both ends, and as private
 * data. Usable messages must pass broken_message() of invariants.h.
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
			    enum rpcrdma_role role, bool backward)
{
	enum rpcrdma_verdict verdict;
	bool usable, faultless;

	verdict = rpcrdma_wire_decode(&message, buf, len, role, backward,
				      RPCRDMA_VERSION_ONE);
	usable = verdict == RPCRDMA_USE;
	faultless = message.reason == RPCRDMA_OK;
	if (usable != faultless)
		check("verdict and reason contradict each other");
	if ((u32)message.reason >= RPCRDMA_REASON_COUNT)
		check("the reason is unknown");
	if (usable)
		check(broken_message(&message, buf, len, copy, &again));
	else if (verdict != RPCRDMA_DROP && message.proc == RPCRDMA_ERROR)
		check("an error is answered");
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
	receive_message(buf, size, copy, RPCRDMA_REQUESTER, false);
	receive_message(buf, size, copy, RPCRDMA_REQUESTER, true);
	receive_message(buf, size, copy, RPCRDMA_RESPONDER, false);
	receive_message(buf, size, copy, RPCRDMA_RESPONDER, true);
	receive_private(buf, size);
	free(buf);
	free(copy);
	return 0;
}
