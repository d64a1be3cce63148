// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The chunk lists, which are the same in all versions (RFC 8166 sections 4.1.2
 * and 4.3), and checks of the Payload stream that follows them or is in a chunk.
 */
#include "codec.h"

/*
 * Append a segment to a chunk; the segments of later Read chunks move up. A segment that wraps,
 * or that makes the length of the chunk wrap, is refused, so users of the message need no checks
 * for overflow.
 */
static enum rpcrdma_reason chunks_append(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk,
					 u32 handle, u32 length, u64 offset)
{
	struct rpcrdma_segment *segment = &msg->segment[chunk->first + chunk->count];
	struct rpcrdma_segment *end = &msg->segment[msg->num_segments];

	if (msg->num_segments == RPCRDMA_MAX_SEGMENTS)
		return RPCRDMA_BAD_SEGMENT_COUNT;
	if (offset > U64_MAX - length)
		return RPCRDMA_BAD_SEGMENT_RANGE;
	if (chunk->length > U32_MAX - length)
		return RPCRDMA_BAD_CHUNK_LENGTH;

	memmove(segment + 1, segment, (end - segment) * sizeof(*segment));
	segment->handle = handle;
	segment->length = length;
	segment->offset = offset;
	chunk->count++;
	chunk->length += length;
	msg->num_segments++;
	return RPCRDMA_OK;
}

/**
 * rpcrdma_wire_add_read - add a Read chunk to a Call
 * @msg: a Call
 * @position: of the data item, in octets of the unreduced Payload stream
 *
 * Return: the chunk, or NULL if there are RPCRDMA_MAX_CHUNKS already or
 * @position is not above that of the last Read chunk.
 */
struct rpcrdma_chunk *rpcrdma_wire_add_read(struct rpcrdma_message *msg, u32 position)
{
	struct rpcrdma_chunk *chunk = &msg->read[msg->num_reads];

	if (msg->num_reads == RPCRDMA_MAX_CHUNKS ||
	    (msg->num_reads && chunk[-1].position >= position))
		return NULL;
	msg->num_reads++;
	*chunk = (struct rpcrdma_chunk){ .position = position, .first = msg->num_segments };
	return chunk;
}

/**
 * rpcrdma_wire_add_write - add a Write chunk to a Call
 * @msg: a Call
 *
 * If the chunk gets no segments, the responder returns its data item inline
 * (RFC 8166 section 4.3.2).
 *
 * Return: the chunk, or NULL if there are RPCRDMA_MAX_CHUNKS already.
 */
struct rpcrdma_chunk *rpcrdma_wire_add_write(struct rpcrdma_message *msg)
{
	struct rpcrdma_chunk *chunk = &msg->write[msg->num_writes];

	if (msg->num_writes == RPCRDMA_MAX_CHUNKS)
		return NULL;
	msg->num_writes++;
	*chunk = (struct rpcrdma_chunk){ .first = msg->num_segments };
	return chunk;
}

/**
 * rpcrdma_wire_add_reply - add the Reply chunk to a Call
 * @msg: a Call without a Reply chunk
 *
 * Return: the chunk.
 */
struct rpcrdma_chunk *rpcrdma_wire_add_reply(struct rpcrdma_message *msg)
{
	msg->has_reply_chunk = true;
	msg->reply_chunk = (struct rpcrdma_chunk){ .first = msg->num_segments };
	return &msg->reply_chunk;
}

/**
 * rpcrdma_wire_add_segment - add a segment to the chunk that was added last
 * @msg: a Call
 * @chunk: the chunk
 * @handle: steering tag
 * @length: octets
 * @offset: start of the region
 *
 * Return: 0, or -EMSGSIZE if @msg has RPCRDMA_MAX_SEGMENTS already, or if the
 * segment or the length of the chunk would wrap.
 */
int rpcrdma_wire_add_segment(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk,
			     u32 handle, u32 length, u64 offset)
{
	return chunks_append(msg, chunk, handle, length, offset) ? -EMSGSIZE : 0;
}

static enum rpcrdma_reason chunks_decode_segment(struct rpcrdma_message *msg,
						 struct rpcrdma_chunk *chunk, const __be32 *p)
{
	return chunks_append(msg, chunk, be32_to_cpu(p[0]), be32_to_cpu(p[1]),
			     (u64)be32_to_cpu(p[2]) << 32 | be32_to_cpu(p[3]));
}

/* In the list positions need not ascend, and other segments may be between those of a chunk. */
static enum rpcrdma_reason chunks_decode_read(struct rpcrdma_message *msg, const __be32 *p)
{
	struct rpcrdma_chunk *end = &msg->read[msg->num_reads], *chunk = end;
	u32 position = be32_to_cpup(p);
	enum rpcrdma_reason reason;

	if (position % sizeof(*p))
		return RPCRDMA_BAD_POSITION_ALIGN;
	while (chunk > msg->read && chunk[-1].position >= position)
		chunk--;
	if (chunk == end || chunk->position != position) {
		if (msg->num_reads == RPCRDMA_MAX_CHUNKS)
			return RPCRDMA_BAD_CHUNK_COUNT;
		memmove(chunk + 1, chunk, (end - chunk) * sizeof(*chunk));
		*chunk = (struct rpcrdma_chunk){ .position = position };
		if (chunk > msg->read)
			chunk->first = chunk[-1].first + chunk[-1].count;
		msg->num_reads++;
		end++;
	}
	reason = chunks_decode_segment(msg, chunk, p + 1);
	while (++chunk < end)
		chunk->first++;
	return reason;
}

static enum rpcrdma_reason chunks_decode_reads(struct rpcrdma_message *msg,
					       struct rpcrdma_reader *reader)
{
	enum rpcrdma_reason reason;

	while (!(reason = rpcrdma_take_present(reader)) && reader->present) {
		const __be32 *p = rpcrdma_take(reader, 1 + RPCRDMA_SEGMENT_WORDS);

		reason = p ? chunks_decode_read(msg, p) : RPCRDMA_BAD_TRUNCATED;
		if (reason)
			break;
	}
	return reason;
}

static enum rpcrdma_reason chunks_decode_chunk(struct rpcrdma_message *msg,
					       struct rpcrdma_chunk *chunk,
					       struct rpcrdma_reader *reader)
{
	enum rpcrdma_reason reason = RPCRDMA_OK;
	const __be32 *p = rpcrdma_take(reader, 1);
	u32 count;

	if (!p)
		return RPCRDMA_BAD_TRUNCATED;
	count = be32_to_cpup(p);
	if (count > (u32)RPCRDMA_MAX_SEGMENTS - msg->num_segments)
		return RPCRDMA_BAD_SEGMENT_COUNT;
	p = rpcrdma_take(reader, count * RPCRDMA_SEGMENT_WORDS);
	if (!p)
		return RPCRDMA_BAD_TRUNCATED;
	for (; count && !reason; count--, p += RPCRDMA_SEGMENT_WORDS)
		reason = chunks_decode_segment(msg, chunk, p);
	return reason;
}

static enum rpcrdma_reason chunks_decode_writes(struct rpcrdma_message *msg,
						struct rpcrdma_reader *reader)
{
	enum rpcrdma_reason reason;

	while (!(reason = rpcrdma_take_present(reader)) && reader->present) {
		struct rpcrdma_chunk *chunk = rpcrdma_wire_add_write(msg);

		reason = chunk ? chunks_decode_chunk(msg, chunk, reader) : RPCRDMA_BAD_CHUNK_COUNT;
		if (reason)
			break;
	}
	return reason;
}

static enum rpcrdma_reason chunks_decode_lists(struct rpcrdma_message *msg,
					       struct rpcrdma_reader *reader)
{
	enum rpcrdma_reason reason = chunks_decode_reads(msg, reader);

	if (!reason)
		reason = chunks_decode_writes(msg, reader);
	if (!reason)
		reason = rpcrdma_take_present(reader);
	if (!reason && reader->present)
		reason = chunks_decode_chunk(msg, rpcrdma_wire_add_reply(msg), reader);
	return reason;
}

/*
 * The msg_type of the RPC message has to be the direction in version 2's header
 * (draft 5.2.2). In version 1 it alone tells the direction.
 */
static enum rpcrdma_reason chunks_decode_inline_payload(struct rpcrdma_message *msg,
							struct rpcrdma_reader *reader)
{
	const __be32 *p;
	u32 msg_type;

	msg->payload_len = reader->left;
	p = rpcrdma_take(reader, RPCRDMA_RPC_HEAD_LEN / sizeof(*p));
	if (!p)
		return RPCRDMA_BAD_PAYLOAD_SHORT;
	msg_type = be32_to_cpu(p[1]);
	if (msg_type != RPCRDMA_CALL && msg_type != RPCRDMA_REPLY)
		return RPCRDMA_BAD_MSG_TYPE;
	if (msg->direction == RPCRDMA_DIRECTION_UNKNOWN)
		msg->direction = msg_type;
	if (msg->direction != msg_type)
		return RPCRDMA_BAD_MSG_DIRECTION;
	if (p[0] != msg->xid)
		return RPCRDMA_BAD_XID;
	msg->stream_len = msg->payload_len;
	return RPCRDMA_OK;
}

/*
 * Without an inline Payload stream, the Position Zero Read chunk has to hold the RPC
 * message of a Call, and the Reply chunk that of a Reply. In version 1 a message with
 * a Read list is a Call.
 */
static enum rpcrdma_reason chunks_find_long_payload(struct rpcrdma_message *msg)
{
	const struct rpcrdma_chunk *payload;

	if (msg->direction == RPCRDMA_DIRECTION_UNKNOWN && msg->num_reads)
		msg->direction = RPCRDMA_CALL;
	if (msg->direction == RPCRDMA_CALL)
		payload = rpcrdma_position_zero(msg);
	else
		payload = msg->has_reply_chunk ? &msg->reply_chunk : NULL;
	if (!payload)
		return RPCRDMA_BAD_NO_PAYLOAD;
	if (payload->length < RPCRDMA_RPC_HEAD_LEN)
		return RPCRDMA_BAD_PAYLOAD_SHORT;
	if (msg->direction == RPCRDMA_DIRECTION_UNKNOWN)
		msg->direction = RPCRDMA_REPLY;
	msg->stream_len = payload->length;
	return RPCRDMA_OK;
}

/*
 * Positions are octets of the unreduced Payload stream (RFC 8166 section
 * 3.4.5). A data item takes its length there, rounded up, even if its chunk
 * does not include the padding. A position minus the octets that earlier chunks
 * restore is an octet of the reduced Payload stream, and must lie within it.
 */
static enum rpcrdma_reason chunks_check_positions(struct rpcrdma_message *msg)
{
	unsigned int i = rpcrdma_position_zero(msg) ? 1 : 0;
	u64 reduced = msg->stream_len, restored = 0, end = 0;

	if (i && msg->proc == RPCRDMA_MSG)
		return RPCRDMA_BAD_POSITION_HEAD;
	for (; i < msg->num_reads; i++) {
		const struct rpcrdma_chunk *chunk = &msg->read[i];
		u64 length = rpcrdma_wire_round_up(chunk->length);

		if (chunk->position < RPCRDMA_RPC_HEAD_LEN)
			return RPCRDMA_BAD_POSITION_HEAD;
		if (chunk->position < end)
			return RPCRDMA_BAD_POSITION_OVERLAP;
		if (chunk->position - restored > reduced)
			return RPCRDMA_BAD_POSITION_BEYOND;
		end = chunk->position + length;
		restored += length;
	}
	if (reduced + restored > U32_MAX)
		return RPCRDMA_BAD_CHUNK_LENGTH;
	msg->stream_len = reduced + restored;
	return RPCRDMA_OK;
}

/* The segment lengths of a Reply say what the responder wrote. */
static enum rpcrdma_reason chunks_check_reply(struct rpcrdma_message *msg)
{
	unsigned int i;

	if (msg->num_reads)
		return RPCRDMA_BAD_READ_IN_REPLY;
	for (i = 0; i < msg->num_writes; i++)
		msg->write[i].written = msg->write[i].length;
	if (msg->has_reply_chunk)
		msg->reply_chunk.written = msg->reply_chunk.length;
	return RPCRDMA_OK;
}

/*
 * Decode the chunk lists of an RDMA_MSG or RDMA_NOMSG, and check the Payload stream (RFC 8166
 * sections 4.3 and 4.5.2). The direction of @msg is what the header says, or unknown.
 */
enum rpcrdma_reason rpcrdma_chunks_decode(struct rpcrdma_message *msg,
					  struct rpcrdma_reader *reader)
{
	enum rpcrdma_reason reason = chunks_decode_lists(msg, reader);

	if (reason)
		return reason;
	msg->header_len = reader->len - reader->left;
	reason = msg->proc == RPCRDMA_MSG ? chunks_decode_inline_payload(msg, reader) :
					    chunks_find_long_payload(msg);
	if (reason)
		return reason;
	return msg->direction == RPCRDMA_CALL ? chunks_check_positions(msg) :
						chunks_check_reply(msg);
}

u32 rpcrdma_chunks_header_len(const struct rpcrdma_message *msg)
{
	u32 len = rpcrdma_wire_header_min(msg->version);
	unsigned int i;

	for (i = 0; i < msg->num_reads; i++)
		len += msg->read[i].count * RPCRDMA_READ_SEGMENT_LEN;
	for (i = 0; i < msg->num_writes; i++)
		len += RPCRDMA_WRITE_CHUNK_LEN + msg->write[i].count * RPCRDMA_SEGMENT_LEN;
	if (msg->has_reply_chunk)
		len += RPCRDMA_REPLY_CHUNK_LEN + msg->reply_chunk.count * RPCRDMA_SEGMENT_LEN;
	return len;
}

static __be32 *chunks_encode_segment(__be32 *p, const struct rpcrdma_segment *segment, u32 length)
{
	p[0] = cpu_to_be32(segment->handle);
	p[1] = cpu_to_be32(length);
	p[2] = cpu_to_be32(segment->offset >> 32);
	p[3] = cpu_to_be32(segment->offset);
	return p + RPCRDMA_SEGMENT_WORDS;
}

/*
 * A Reply has all segments of the Call. Their lengths are what the responder
 * wrote to each (RFC 8166 section 3.4.6).
 */
static __be32 *chunks_encode_chunk(const struct rpcrdma_message *msg,
				   const struct rpcrdma_chunk *chunk, __be32 *p)
{
	u32 left = msg->direction == RPCRDMA_REPLY ? chunk->written : chunk->length;
	const struct rpcrdma_segment *segment = rpcrdma_chunk_segments(msg, chunk);
	unsigned int i;

	*p++ = cpu_to_be32(1);
	*p++ = cpu_to_be32(chunk->count);
	for (i = 0; i < chunk->count; i++, segment++) {
		u32 length = left < segment->length ? left : segment->length;

		p = chunks_encode_segment(p, segment, length);
		left -= length;
	}
	return p;
}

/* Encode the chunk lists (RFC 8166 section 4.3) to memory that is large enough. */
void rpcrdma_chunks_encode(const struct rpcrdma_message *msg, __be32 *p)
{
	const struct rpcrdma_chunk *chunk = msg->read;
	unsigned int i;

	for (; chunk < &msg->read[msg->num_reads]; chunk++) {
		const struct rpcrdma_segment *segment = rpcrdma_chunk_segments(msg, chunk);

		for (i = 0; i < chunk->count; i++, segment++) {
			*p++ = cpu_to_be32(1);
			*p++ = cpu_to_be32(chunk->position);
			p = chunks_encode_segment(p, segment, segment->length);
		}
	}
	*p++ = 0;
	for (i = 0; i < msg->num_writes; i++)
		p = chunks_encode_chunk(msg, &msg->write[i], p);
	*p++ = 0;
	if (msg->has_reply_chunk)
		chunks_encode_chunk(msg, &msg->reply_chunk, p);
	else
		*p = 0;
}
