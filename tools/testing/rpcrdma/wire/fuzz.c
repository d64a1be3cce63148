// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * libFuzzer target: decode the input as a message at both ends, with version 2
 * allowed and not, and as private data. The verdict, and every length and count of
 * a usable message, must be those of model.c. Usable messages must pass
 * broken_message() of invariants.h, and answers broken_answer(). What is made of a
 * usable message must decode to the same again: the message built anew, its Reply,
 * its Call with a Reply chunk.
 */
#include <stdio.h>
#include <stdlib.h>

#include "invariants.h"
#include "model.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* Above the longest header, that of RPCRDMA_MAX_SEGMENTS in a Read list */
#define OCTETS_MAX	8192

/* Enough for an identifier with other data before and after it */
#define PRIVATE_MAX	64

/* An RPC message starts with its XID and msg_type. */
#define RPC_HEAD	8

static struct rpcrdma_message message, again, built;
static struct model model;

static void check(const char *broken)
{
	if (!broken)
		return;
	fprintf(stderr, "%s\n", broken);
	abort();
}

/* What is not set keeps a value that no message has. */
static void decode(const void *buf, u32 len, enum rpcrdma_end end, bool backward,
		   u32 version_max, enum rpcrdma_verdict expected)
{
	memset(&message, 0xa5, offsetof(struct rpcrdma_message, segment[1]));
	if (rpcrdma_wire_decode(&message, buf, len, end, backward, version_max) != expected)
		check("the verdict is not that of the model");
	if (expected == RPCRDMA_USE)
		check(model_differs(&model, &message));
}

/* Into memory without room after it, so that the sanitizer sees overruns */
static void encode(const struct rpcrdma_message *msg, u32 size, int expected)
{
	static __be32 octets[OCTETS_MAX / 4];

	if (rpcrdma_wire_encode(msg, octets + (OCTETS_MAX - size) / 4, size) != expected)
		check("encodes to another length");
}

static void send_message(const struct rpcrdma_message *msg)
{
	u32 len = rpcrdma_wire_header_len(msg);

	encode(msg, len, msg->credits ? (int)len : -EINVAL);
	encode(msg, len - 1, msg->credits ? -EMSGSIZE : -EINVAL);
}

/* What arrives at the other end is what was sent. */
static void send_and_receive(const struct rpcrdma_message *msg)
{
	static struct rpcrdma_message received;
	static __be32 octets[OCTETS_MAX / 4];
	int len;

	send_message(msg);
	len = rpcrdma_wire_encode(msg, octets, OCTETS_MAX);
	if (len < 0)
		return;
	if (msg->proc == RPCRDMA_MSG) {
		octets[len / 4] = msg->xid;
		octets[len / 4 + 1] = cpu_to_be32(msg->direction);
		len += RPC_HEAD;
	}
	if (rpcrdma_wire_decode(&received, octets, len, RPCRDMA_CLIENT_END, true,
				RPCRDMA_VERSION_TWO) != RPCRDMA_USE ||
	    !same_message(msg, &received))
		check("another message arrives than was sent");
}

static void return_chunk(struct rpcrdma_chunk *chunk, u32 octets)
{
	if (chunk->length < U32_MAX &&
	    rpcrdma_wire_return_chunk(chunk, chunk->length + 1) != -EMSGSIZE)
		check("more is returned than there is room for");
	if (rpcrdma_wire_return_chunk(chunk, octets))
		check("what there is room for is not returned");
}

/* The Reply of a responder that wrote a part of each Write chunk */
static void send_reply(const struct rpcrdma_message *call)
{
	struct rpcrdma_chunk *reply = &built.reply_chunk;
	unsigned int i;

	memcpy(&built, call, sizeof(built));
	rpcrdma_wire_make_reply(&built, call->credits);
	if (built.has_reply_chunk && reply->length >= RPC_HEAD) {
		built.proc = RPCRDMA_NOMSG;
		return_chunk(reply, reply->length);
	}
	for (i = 0; i < built.num_writes; i++)
		return_chunk(&built.write[i], be32_to_cpu(call->xid) & built.write[i].length);
	send_and_receive(&built);
}

/* A chunk without segments, which hardly any input has next to another chunk */
static void send_with_reply_chunk(const struct rpcrdma_message *call)
{
	if (call->has_reply_chunk)
		return;
	memcpy(&built, call, sizeof(built));
	rpcrdma_wire_add_reply(&built);
	send_message(&built);
}

static void add_segments(struct rpcrdma_chunk *chunk, const struct rpcrdma_message *call,
			 const struct rpcrdma_chunk *from)
{
	const struct rpcrdma_segment *segment = rpcrdma_chunk_segments(call, from);
	unsigned int i;

	if (!chunk)
		check("a chunk of a decoded message cannot be added");
	for (i = 0; i < from->count; i++, segment++)
		if (rpcrdma_wire_add_segment(&built, chunk, segment->handle, segment->length,
					     segment->offset))
			check("a segment of a decoded message cannot be added");
}

/* What is above a limit cannot be added, and changes nothing. */
static void add_too_much(const struct rpcrdma_message *call)
{
	const struct rpcrdma_chunk *last = call->read + call->num_reads - 1;
	struct rpcrdma_chunk *chunk;

	if (call->num_reads && rpcrdma_wire_add_read(&built, last->position))
		check("a Read chunk is added twice");
	if (call->num_reads == RPCRDMA_MAX_CHUNKS && rpcrdma_wire_add_read(&built, U32_MAX))
		check("too many Read chunks are added");
	if (call->num_writes == RPCRDMA_MAX_CHUNKS && rpcrdma_wire_add_write(&built))
		check("too many Write chunks are added");
	chunk = rpcrdma_wire_add_reply(&built);
	if (call->num_segments == RPCRDMA_MAX_SEGMENTS) {
		if (!rpcrdma_wire_add_segment(&built, chunk, 1, 1, 1))
			check("too many segments are added");
		return;
	}
	if (!rpcrdma_wire_add_segment(&built, chunk, 1, 2, U64_MAX - 1))
		check("a segment that wraps is added");
	if (rpcrdma_wire_add_segment(&built, chunk, 1, U32_MAX, U64_MAX - U32_MAX))
		check("a segment that ends where 64 bits do is not added");
	if (!rpcrdma_wire_add_segment(&built, chunk, 1, 1, 1))
		check("a chunk that wraps is added");
}

/* Build a Call anew from its chunks. */
static void build_call(const struct rpcrdma_message *call)
{
	unsigned int i;

	rpcrdma_wire_init_call(&built, call->version, call->xid, call->credits);
	built.proc = call->proc;
	built.inv_handle = call->inv_handle;
	for (i = 0; i < call->num_reads; i++)
		add_segments(rpcrdma_wire_add_read(&built, call->read[i].position), call,
			     &call->read[i]);
	for (i = 0; i < call->num_writes; i++)
		add_segments(rpcrdma_wire_add_write(&built), call, &call->write[i]);
	if (call->has_reply_chunk)
		add_segments(rpcrdma_wire_add_reply(&built), call, &call->reply_chunk);
	if (!same_message(&built, call) || built.num_segments != call->num_segments)
		check("another message is built from the same chunks");
	add_too_much(call);
}

/*
 * The segment with the handle that the Reply may invalidate: in version 2 the Call names it, in
 * version 1 it is the last that is not empty.
 */
static const struct rpcrdma_segment *find_handle(const struct rpcrdma_message *call)
{
	const struct rpcrdma_segment *segment, *found = NULL;

	for (segment = call->segment; segment < call->segment + call->num_segments; segment++) {
		if (call->version == RPCRDMA_VERSION_ONE ? segment->length :
		    call->inv_handle && segment->handle == call->inv_handle)
			found = segment;
	}
	return found;
}

static void choose_handle(const struct rpcrdma_message *call)
{
	const struct rpcrdma_segment *segment = find_handle(call);
	u32 handle;

	if (rpcrdma_wire_choose_handle(call, true, &handle) != !!segment ||
	    (segment && handle != segment->handle))
		check("another handle is chosen for invalidation");
	if (call->version == RPCRDMA_VERSION_ONE &&
	    rpcrdma_wire_choose_handle(call, false, &handle))
		check("a handle is chosen without an agreement");
}

/* The answer to a Call where this chunk has one octet too few; none can be named if it is NULL */
static void send_cant_reply(const struct rpcrdma_message *call, const struct rpcrdma_chunk *chunk,
			    u32 short_segment)
{
	u64 needed = 0;

	if (chunk && chunk->length == U32_MAX)
		return;
	if (short_segment)
		needed = rpcrdma_chunk_segments(call, chunk)[chunk->count - 1].length + 1ULL;
	memcpy(&built, call, sizeof(built));
	rpcrdma_wire_cant_reply(&built, chunk, chunk ? chunk->length + 1 : 1);
	if (built.short_segment != short_segment || built.length_needed != needed)
		check("another segment is too short");
	check(broken_answer(&built, &again));
}

static void send_cant_replies(const struct rpcrdma_message *call)
{
	const struct rpcrdma_chunk *chunk;
	u32 segments = 0;
	int i;

	send_cant_reply(call, NULL, 0);
	for (i = 0; i < call->num_writes + call->has_reply_chunk; i++) {
		chunk = i < call->num_writes ? &call->write[i] : &call->reply_chunk;
		segments += chunk->count;
		send_cant_reply(call, chunk, chunk->count ? segments : 0);
	}
}

/* What is made of a message does not depend on the end that received it. */
static void use_message(const void *buf, u32 len)
{
	static u8 copy[OCTETS_MAX];

	check(broken_message(&message, buf, len, copy, &again));
	send_message(&message);
	if (message.proc == RPCRDMA_ERROR || message.direction != RPCRDMA_CALL)
		return;
	send_with_reply_chunk(&message);
	send_reply(&message);
	build_call(&message);
	choose_handle(&message);
	send_cant_replies(&message);
}

static void receive_message(const void *buf, u32 len, enum rpcrdma_end end, bool backward,
			    u32 version_max)
{
	enum rpcrdma_verdict verdict;
	enum rpcrdma_error error;
	bool usable;

	verdict = model_verdict(&model, end, backward, &error);
	usable = verdict == RPCRDMA_USE;
	decode(buf, len, end, backward, version_max, verdict);
	if (usable == !!message.reason)
		check("verdict and reason contradict each other");
	if ((u32)message.reason >= RPCRDMA_REASON_COUNT)
		check("the reason is unknown");
	if (usable && !model.used)
		use_message(buf, len);
	model.used |= usable;
	if (verdict != RPCRDMA_ANSWER)
		return;
	if (message.error != error)
		check("the error is not that of the model");
	check(broken_answer(&message, &again));
	send_message(&message);
}

static void receive_at_both_ends(const void *buf, u32 len, u32 version_max)
{
	model_read(&model, buf, len, version_max);
	receive_message(buf, len, RPCRDMA_CLIENT_END, false, version_max);
	receive_message(buf, len, RPCRDMA_CLIENT_END, true, version_max);
	receive_message(buf, len, RPCRDMA_SERVER_END, false, version_max);
	receive_message(buf, len, RPCRDMA_SERVER_END, true, version_max);
}

/* The first octet after an identifier, or NULL */
static const u8 *find_private(const u8 *p, size_t len)
{
	static const u8 id[] = { 0xf6, 0xab, 0x0e, 0x18, 1 };

	for (; len >= RPCRDMA_PRIVATE_LEN; p++, len--)
		if (*p == *id && !memcmp(p, id, sizeof(id)))
			return p + sizeof(id);
	return NULL;
}

static void receive_private(const void *buf, size_t len)
{
	const u8 *p = find_private(buf, len);
	struct rpcrdma_params params;

	if (rpcrdma_wire_decode_private(&params, buf, len) != !!p ||
	    params.send_size != (p ? (p[1] + 1) * 1024U : 1024) ||
	    params.recv_size != (p ? (p[2] + 1) * 1024U : 1024) ||
	    params.remote_inv != (p && *p & 1))
		check("private data is not what it says");
}

/* What private data says of a size */
static u32 announced(u32 size)
{
	size -= size % 1024;
	return size < 1024 ? 1024 : size > 256 * 1024 ? 256 * 1024 : size;
}

static u32 smaller(u32 a, u32 b)
{
	return a < b ? a : b;
}

/* Two ends that announce sizes of the input, the first with private data */
static void agree_on_sizes(const void *buf, u32 len)
{
	struct rpcrdma_params client, server, received;
	struct rpcrdma_agreement agreement;
	u8 octets[RPCRDMA_PRIVATE_LEN];

	if (len < 4 * sizeof(u32))
		return;
	client = (struct rpcrdma_params){ wire_word(buf, 0) >> len % 32, wire_word(buf, 1),
					  len & 1 };
	server = (struct rpcrdma_params){ wire_word(buf, 2), wire_word(buf, 3) >> len % 32,
					  len & 2 };
	rpcrdma_wire_encode_private(&client, octets);
	if (!rpcrdma_wire_decode_private(&received, octets, sizeof(octets)) ||
	    received.send_size != announced(client.send_size) ||
	    received.recv_size != announced(client.recv_size) ||
	    received.remote_inv != client.remote_inv)
		check("other private data arrives than was sent");
	rpcrdma_wire_agree(&client, &server, &agreement);
	if (agreement.call_threshold != smaller(received.send_size, announced(server.recv_size)) ||
	    agreement.reply_threshold != smaller(announced(server.send_size), received.recv_size) ||
	    agreement.remote_inv != (client.remote_inv && server.remote_inv))
		check("two ends agree on something else than they announced");
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	/* Aligned as a receive buffer is, which the input need not be, without room after it */
	void *buf = malloc(size);

	if (!buf || size > OCTETS_MAX)
		abort();
	memcpy(buf, data, size);
	receive_at_both_ends(buf, size, RPCRDMA_VERSION_ONE);
	receive_at_both_ends(buf, size, RPCRDMA_VERSION_TWO);
	receive_private(buf, size < PRIVATE_MAX ? size : PRIVATE_MAX);
	agree_on_sizes(buf, size);
	free(buf);
	return 0;
}
