// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * libFuzzer target: decode the input as a message at both ends, with version 2
 * allowed and not, and as private data. Usable messages must pass
 * broken_message() of invariants.h, and answers broken_answer(). Whatever the
 * input is, the short way of usual messages must have the results of the way of
 * all messages.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../wire/codec.h"
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

/*
 * Decode both ways into memory that had the same before, so that a member that
 * only one of them sets differs. The chunks and segments of a message that
 * cannot be used are not looked at: the short way may have begun to set them.
 */
static enum rpcrdma_verdict decode_both_ways(const void *buf, u32 len,
					     enum rpcrdma_role role,
					     bool backward, u32 version_max)
{
	size_t valid = offsetof(struct rpcrdma_message, reply_chunk);
	enum rpcrdma_verdict verdict, any;

	memcpy(&again, &message, sizeof(again));
	verdict = rpcrdma_wire_decode(&message, buf, len, role, backward,
				      version_max);
	any = rpcrdma_decode_any(&again, buf, len, role, backward, version_max);
	if (verdict != any)
		check("the short way has another verdict");
	if (verdict == RPCRDMA_USE)
		valid = sizeof(message);
	if (memcmp(&message, &again, valid))
		check("the short way decodes to another message");
	return verdict;
}

/* Into memory without room after it, so that the sanitizer sees overruns */
static void encode_both_ways(const struct rpcrdma_message *msg, u32 size)
{
	void *usual = malloc(size);
	void *any = malloc(size);
	int len;

	if (!usual || !any)
		abort();
	len = rpcrdma_wire_encode(msg, usual, size);
	if (len != rpcrdma_encode_any(msg, any, size))
		check("the short way encodes to another length");
	if (len > 0 && memcmp(usual, any, len))
		check("the short way encodes to other octets");
	free(usual);
	free(any);
}

static void send_message(const struct rpcrdma_message *msg)
{
	u32 len = rpcrdma_wire_header_len(msg);

	encode_both_ways(msg, len);
	encode_both_ways(msg, len - 1);
}

/* The Reply of a responder that wrote a part of each Write chunk */
static void send_reply(const struct rpcrdma_message *call)
{
	unsigned int i;

	memcpy(&again, call, sizeof(again));
	rpcrdma_wire_make_reply(&again, RPCRDMA_MSG, call->credits);
	for (i = 0; i < again.num_writes; i++)
		rpcrdma_wire_return_chunk(&again.write[i], be32_to_cpu(call->xid) &
					  again.write[i].length);
	send_message(&again);
}

/* A chunk without segments, which hardly any input has next to another chunk */
static void send_with_reply_chunk(const struct rpcrdma_message *call)
{
	if (call->has_reply_chunk)
		return;
	memcpy(&again, call, sizeof(again));
	rpcrdma_wire_add_reply(&again);
	send_message(&again);
}

static void receive_message(const void *buf, u32 len, void *copy,
			    enum rpcrdma_role role, bool backward,
			    u32 version_max)
{
	enum rpcrdma_verdict verdict;
	bool usable, faultless;

	verdict = decode_both_ways(buf, len, role, backward, version_max);
	usable = verdict == RPCRDMA_USE;
	faultless = message.reason == RPCRDMA_OK;
	if (usable != faultless)
		check("verdict and reason contradict each other");
	if ((u32)message.reason >= RPCRDMA_REASON_COUNT)
		check("the reason is unknown");
	if (usable) {
		check(broken_message(&message, buf, len, copy, &again));
		send_message(&message);
	}
	if (usable && message.direction == RPCRDMA_CALL) {
		send_with_reply_chunk(&message);
		send_reply(&message);
	}
	if (verdict != RPCRDMA_ANSWER)
		return;
	if (message.proc == RPCRDMA_ERROR)
		check("an error is answered");
	if (message.direction == RPCRDMA_REPLY)
		check("a Reply is answered");
	check(broken_answer(&message, &again));
	send_message(&message);
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
