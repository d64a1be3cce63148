/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What is true of every message with the verdict RPCRDMA_USE, whatever the peer
 * sent. The KUnit suites and the fuzzer check it.
 *
 * A function broken_...() returns what is not true, or NULL.
 */
#ifndef RPCRDMA_TEST_INVARIANTS_H
#define RPCRDMA_TEST_INVARIANTS_H

#include "../wire/message.h"

/*
 * The length of a segment on the wire, which in a Reply is what was written.
 * @left: octets of the chunk from this segment on; becomes those after it
 */
static inline u32 wire_length(u32 *left, const struct rpcrdma_segment *segment)
{
	u32 length = *left < segment->length ? *left : segment->length;

	*left -= length;
	return length;
}

static inline bool same_chunk(const struct rpcrdma_message *a,
			      const struct rpcrdma_chunk *chunk_a,
			      const struct rpcrdma_message *b,
			      const struct rpcrdma_chunk *chunk_b)
{
	const struct rpcrdma_segment *p = rpcrdma_chunk_segments(a, chunk_a);
	const struct rpcrdma_segment *q = rpcrdma_chunk_segments(b, chunk_b);
	bool reply = a->direction == RPCRDMA_REPLY;
	u32 left_a = reply ? chunk_a->written : chunk_a->length;
	u32 left_b = reply ? chunk_b->written : chunk_b->length;
	unsigned int i;

	if (chunk_a->count != chunk_b->count || left_a != left_b ||
	    chunk_a->position != chunk_b->position)
		return false;
	for (i = 0; i < chunk_a->count; i++, p++, q++)
		if (p->handle != q->handle || p->offset != q->offset ||
		    wire_length(&left_a, p) != wire_length(&left_b, q))
			return false;
	return true;
}

static inline bool same_chunks(const struct rpcrdma_message *a,
			       const struct rpcrdma_message *b)
{
	unsigned int i;

	if (a->num_reads != b->num_reads || a->num_writes != b->num_writes ||
	    a->has_reply_chunk != b->has_reply_chunk)
		return false;
	for (i = 0; i < a->num_reads; i++)
		if (!same_chunk(a, &a->read[i], b, &b->read[i]))
			return false;
	for (i = 0; i < a->num_writes; i++)
		if (!same_chunk(a, &a->write[i], b, &b->write[i]))
			return false;
	return !a->has_reply_chunk ||
	       same_chunk(a, &a->reply_chunk, b, &b->reply_chunk);
}

/* A requester does not keep which segment was too short, and by how much. */
static inline bool keeps_arguments(const struct rpcrdma_message *msg)
{
	return msg->proc != RPCRDMA_ERROR || msg->error != RPCRDMA_ERR_CANT_REPLY;
}

static inline bool same_error(const struct rpcrdma_message *a,
			      const struct rpcrdma_message *b)
{
	if (a->error != b->error)
		return false;
	return a->error != RPCRDMA_ERR_VERS ||
	       (a->version_low == b->version_low && a->version_high == b->version_high);
}

/* Whether two messages are the same on the wire */
static inline bool same_message(const struct rpcrdma_message *a,
				const struct rpcrdma_message *b)
{
	if (a->xid != b->xid || a->version != b->version ||
	    a->credits != b->credits || a->proc != b->proc ||
	    a->direction != b->direction || a->inv_handle != b->inv_handle)
		return false;
	return a->proc == RPCRDMA_ERROR ? same_error(a, b) : same_chunks(a, b);
}

static inline const char *broken_chunk(const struct rpcrdma_message *msg,
				       const struct rpcrdma_chunk *chunk)
{
	const struct rpcrdma_segment *p = rpcrdma_chunk_segments(msg, chunk);
	u64 sum = 0;
	unsigned int i;

	if (chunk->first + chunk->count > msg->num_segments)
		return "segments outside of those in use";
	for (i = 0; i < chunk->count; i++, p++) {
		if (p->offset + p->length < p->offset)
			return "a segment wraps";
		sum += p->length;
	}
	if (sum != chunk->length)
		return "chunk length is not the sum of its segments";
	return NULL;
}

/* Inserts every Read chunk at its position and checks that it fits. */
static inline const char *broken_reads(const struct rpcrdma_message *msg)
{
	const struct rpcrdma_chunk *zero = rpcrdma_position_zero(msg);
	u64 left = zero ? zero->length : msg->payload_len;
	u64 at = 0;
	unsigned int i;

	if (msg->num_reads && msg->direction == RPCRDMA_REPLY)
		return "a Read list in a Reply";
	if (zero && msg->proc == RPCRDMA_MSG)
		return "Position Zero in an RDMA_MSG";
	for (i = zero ? 1 : 0; i < msg->num_reads; i++) {
		const struct rpcrdma_chunk *chunk = &msg->read[i];

		if (chunk->position % 4)
			return "position not a multiple of four";
		if (chunk->position < at)
			return "Read chunks not sorted, or overlapping";
		if (chunk->position - at > left)
			return "position beyond the Payload stream";
		left -= chunk->position - at;
		at = chunk->position + ((u64)chunk->length + 3) / 4 * 4;
	}
	if (msg->direction == RPCRDMA_CALL && at + left != msg->stream_len)
		return "wrong length of the unreduced Payload stream";
	return NULL;
}

static inline const char *broken_form(const struct rpcrdma_message *msg)
{
	unsigned int i, segments = 0;
	const char *broken;

	if (msg->num_reads > RPCRDMA_MAX_CHUNKS ||
	    msg->num_writes > RPCRDMA_MAX_CHUNKS ||
	    msg->num_segments > RPCRDMA_MAX_SEGMENTS)
		return "more chunks or segments than the limits";
	for (i = 0; i < msg->num_reads; i++) {
		if (!msg->read[i].count)
			return "a Read chunk without segments";
		segments += msg->read[i].count;
		broken = broken_chunk(msg, &msg->read[i]);
		if (broken)
			return broken;
	}
	for (i = 0; i < msg->num_writes; i++) {
		segments += msg->write[i].count;
		broken = broken_chunk(msg, &msg->write[i]);
		if (broken)
			return broken;
	}
	if (msg->has_reply_chunk) {
		segments += msg->reply_chunk.count;
		broken = broken_chunk(msg, &msg->reply_chunk);
		if (broken)
			return broken;
	}
	if (segments != msg->num_segments)
		return "segments that belong to no chunk";
	return broken_reads(msg);
}

static inline u32 wire_word(const void *buf, u32 index)
{
	const u8 *p = (const u8 *)buf + index * 4;

	return (u32)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

/*
 * The decoder sorts the Read list. Only a list that was sorted before is
 * encoded to the same octets.
 */
static inline bool reads_are_sorted(const void *buf)
{
	u32 index = wire_word(buf, 1) == RPCRDMA_VERSION_TWO ? 6 : 4;
	u32 previous = 0;

	for (; wire_word(buf, index); index += 6) {
		if (wire_word(buf, index + 1) < previous)
			return false;
		previous = wire_word(buf, index + 1);
	}
	return true;
}

static inline const char *broken_payload(const struct rpcrdma_message *msg,
					 const void *buf, u32 len)
{
	u32 head = msg->header_len / 4;

	if (msg->header_len % 4 || msg->header_len > len)
		return "header length outside of the message";
	if (msg->version == RPCRDMA_VERSION_TWO && msg->proc != RPCRDMA_ERROR &&
	    wire_word(buf, 4) != msg->direction)
		return "not the direction of the header";
	if (msg->proc != RPCRDMA_MSG)
		return msg->payload_len ? "an inline payload" : NULL;
	if (msg->payload_len < 8 || msg->header_len + msg->payload_len != len)
		return "wrong length of the inline payload";
	if (wire_word(buf, head) != wire_word(buf, 0))
		return "XIDs differ";
	if (wire_word(buf, head + 1) != msg->direction)
		return "wrong direction";
	return NULL;
}

/**
 * broken_message - check a usable message for what message.h guarantees
 * @msg: as decoded, with the verdict RPCRDMA_USE
 * @buf: the message as received
 * @len: octets received
 * @copy: scratch memory of @len octets, for encoding @msg
 * @again: scratch message, for decoding @copy
 *
 * Return: what is not as it should be, or NULL.
 */
static inline const char *broken_message(const struct rpcrdma_message *msg,
					 const void *buf, u32 len, void *copy,
					 struct rpcrdma_message *again)
{
	const char *broken;
	int ret;

	if (msg->direction != RPCRDMA_CALL && msg->direction != RPCRDMA_REPLY)
		return "no direction";
	broken = broken_payload(msg, buf, len);
	if (!broken && msg->proc != RPCRDMA_ERROR)
		broken = broken_form(msg);
	if (broken)
		return broken;

	if (rpcrdma_wire_header_len(msg) != msg->header_len)
		return "header length differs from that of encoding it";
	memcpy(copy, buf, len);
	ret = rpcrdma_wire_encode(msg, copy, msg->header_len);
	if (!msg->credits)
		return ret == -EINVAL ? NULL : "credits of zero can be sent";
	if (ret < 0 || (u32)ret != msg->header_len)
		return "does not encode";
	if (keeps_arguments(msg) && (msg->proc == RPCRDMA_ERROR || reads_are_sorted(buf)) &&
	    memcmp(buf, copy, len))
		return "encodes to other octets";
	if (rpcrdma_wire_decode(again, copy, len, RPCRDMA_CLIENT_END, true,
				RPCRDMA_VERSION_TWO) != RPCRDMA_USE)
		return "what it encodes to cannot be used";
	return same_message(msg, again) ? NULL : "decodes to another message";
}

/**
 * broken_answer - check that a requester understands the answer to its Call
 * @msg: with the verdict RPCRDMA_ANSWER; this converts it to the answer
 * @again: scratch message, for decoding the answer
 *
 * Return: what is not as it should be, or NULL.
 */
static inline const char *broken_answer(struct rpcrdma_message *msg,
					struct rpcrdma_message *again)
{
	enum rpcrdma_error error = msg->error;
	__be32 octets[8];
	int len;

	if (msg->version == RPCRDMA_VERSION_ONE && error != RPCRDMA_ERR_VERS)
		error = RPCRDMA_ERR_BAD_XDR;
	rpcrdma_wire_make_error(msg, 1);
	len = rpcrdma_wire_encode(msg, octets, sizeof(octets));
	if (len < 0 || (u32)len != rpcrdma_wire_header_len(msg))
		return "the answer does not encode";
	if (rpcrdma_wire_decode(again, octets, len, RPCRDMA_CLIENT_END, false,
				RPCRDMA_VERSION_TWO) != RPCRDMA_USE)
		return "the answer cannot be used";
	if (again->xid != msg->xid || again->version != msg->version ||
	    again->proc != RPCRDMA_ERROR || again->error != error)
		return "the answer decodes to another message";
	return NULL;
}

#endif /* RPCRDMA_TEST_INVARIANTS_H */
