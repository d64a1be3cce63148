// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The chunk lists, which are the same in all versions (RFC 8166 sections 4.1.2
 * and 4.3), and the Payload stream that follows them or is in one of them.
 */
#include "codec.h"

/* Words of a segment with a position, without the discriminator */
#define READ_SEGMENT_WORDS	(1 + RPCRDMA_SEGMENT_WORDS)

static void chunk_init(struct rpcrdma_chunk *chunk, u16 first)
{
	*chunk = (struct rpcrdma_chunk){ .first = first };
}

/*
 * Append a segment to a chunk of @msg, which has room for one more. Refuses a
 * segment that wraps, or that makes the length of the chunk wrap. So users of
 * the message need no checks for overflow.
 */
static enum rpcrdma_reason chunk_append(struct rpcrdma_message *msg,
					struct rpcrdma_chunk *chunk,
					u32 handle, u32 length, u64 offset)
{
	if (offset > U64_MAX - length)
		return RPCRDMA_BAD_SEGMENT_RANGE;
	if (chunk->length > U32_MAX - length)
		return RPCRDMA_BAD_CHUNK_LENGTH;

	msg->segment[chunk->first + chunk->count++] = (struct rpcrdma_segment){
		.handle = handle, .length = length, .offset = offset,
	};
	chunk->length += length;
	return RPCRDMA_OK;
}

/**
 * rpcrdma_wire_add_read - add a Read chunk to a Call
 * @msg: a Call
 * @position: of the data item, in octets of the unreduced Payload stream
 *
 * Context: any.
 * Return: the chunk, or NULL if there are RPCRDMA_MAX_CHUNKS already or
 * @position is not above that of the last Read chunk.
 */
struct rpcrdma_chunk *rpcrdma_wire_add_read(struct rpcrdma_message *msg,
					    u32 position)
{
	struct rpcrdma_chunk *chunk = &msg->read[msg->num_reads];

	if (msg->num_reads == RPCRDMA_MAX_CHUNKS ||
	    (msg->num_reads && chunk[-1].position >= position))
		return NULL;
	msg->num_reads++;
	chunk_init(chunk, msg->num_segments);
	chunk->position = position;
	return chunk;
}

/**
 * rpcrdma_wire_add_write - add a Write chunk to a Call
 * @msg: a Call
 *
 * If the chunk gets no segments, the responder returns its data item inline
 * (RFC 8166 section 4.3.2).
 *
 * Context: any.
 * Return: the chunk, or NULL if there are RPCRDMA_MAX_CHUNKS already.
 */
struct rpcrdma_chunk *rpcrdma_wire_add_write(struct rpcrdma_message *msg)
{
	struct rpcrdma_chunk *chunk = &msg->write[msg->num_writes];

	if (msg->num_writes == RPCRDMA_MAX_CHUNKS)
		return NULL;
	msg->num_writes++;
	chunk_init(chunk, msg->num_segments);
	return chunk;
}

/**
 * rpcrdma_wire_add_reply - add the Reply chunk to a Call
 * @msg: a Call without a Reply chunk
 *
 * Context: any.
 * Return: the chunk.
 */
struct rpcrdma_chunk *rpcrdma_wire_add_reply(struct rpcrdma_message *msg)
{
	msg->has_reply_chunk = true;
	chunk_init(&msg->reply_chunk, msg->num_segments);
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
 * Context: any.
 * Return: 0, or -EMSGSIZE if @msg has RPCRDMA_MAX_SEGMENTS already, or if the
 * segment or the length of the chunk would wrap.
 */
int rpcrdma_wire_add_segment(struct rpcrdma_message *msg,
			     struct rpcrdma_chunk *chunk,
			     u32 handle, u32 length, u64 offset)
{
	if (msg->num_segments == RPCRDMA_MAX_SEGMENTS ||
	    chunk_append(msg, chunk, handle, length, offset))
		return -EMSGSIZE;
	msg->num_segments++;
	return 0;
}

static u64 chunks_round_up(u32 octets)
{
	return ((u64)octets + 3) & ~3ULL;
}

static inline enum rpcrdma_reason chunks_take_segment(struct rpcrdma_message *msg,
						      struct rpcrdma_chunk *chunk,
						      const __be32 *p)
{
	struct rpcrdma_segment segment;

	rpcrdma_get_segment(p, &segment);
	return chunk_append(msg, chunk, segment.handle, segment.length, segment.offset);
}

/*
 * The index of the Read chunk with this position, or the index at which it has
 * to be inserted. Most peers send ascending positions, so the search begins at
 * the end.
 */
static unsigned int chunks_read_index(const struct rpcrdma_message *msg,
				      u32 position)
{
	unsigned int i = msg->num_reads;

	while (i && msg->read[i - 1].position >= position)
		i--;
	return i;
}

/* Counts a Read chunk's segments in ->first, until chunks_place_reads(). */
static enum rpcrdma_reason chunks_count_read(struct rpcrdma_message *msg,
					     u32 position)
{
	unsigned int i = chunks_read_index(msg, position);
	struct rpcrdma_chunk *chunk = &msg->read[i];

	if (position % sizeof(__be32))
		return RPCRDMA_BAD_POSITION_ALIGN;
	if (msg->num_segments == RPCRDMA_MAX_SEGMENTS)
		return RPCRDMA_BAD_SEGMENT_COUNT;
	if (i == msg->num_reads || chunk->position != position) {
		if (msg->num_reads == RPCRDMA_MAX_CHUNKS)
			return RPCRDMA_BAD_CHUNK_COUNT;
		memmove(chunk + 1, chunk,
			(msg->num_reads - i) * sizeof(*chunk));
		chunk_init(chunk, 0);
		chunk->position = position;
		msg->num_reads++;
	}
	chunk->first++;
	msg->num_segments++;
	return RPCRDMA_OK;
}

/* Assign each Read chunk its part of the segment array. */
static void chunks_place_reads(struct rpcrdma_message *msg)
{
	unsigned int i, first = 0;

	for (i = 0; i < msg->num_reads; i++) {
		unsigned int count = msg->read[i].first;

		msg->read[i].first = first;
		first += count;
	}
}

/*
 * Segments of several Read chunks may alternate in the list, so it is read
 * twice: first to count the segments of each chunk and to sort the chunks, then
 * to store the segments of each chunk next to each other.
 */
static enum rpcrdma_reason chunks_decode_reads(struct rpcrdma_message *msg,
					       struct rpcrdma_reader *reader)
{
	const __be32 *start = reader->next;
	enum rpcrdma_reason reason;
	unsigned int i;
	bool present;

	while (!(reason = rpcrdma_take_present(reader, &present)) && present) {
		const __be32 *p = rpcrdma_take(reader, READ_SEGMENT_WORDS);

		if (!p)
			return RPCRDMA_BAD_TRUNCATED;
		reason = chunks_count_read(msg, be32_to_cpup(p));
		if (reason)
			return reason;
	}
	if (reason)
		return reason;

	chunks_place_reads(msg);
	for (i = 0; i < msg->num_segments && !reason; i++) {
		const __be32 *p = start + i * (1 + READ_SEGMENT_WORDS) + 1;
		unsigned int chunk = chunks_read_index(msg, be32_to_cpup(p));

		reason = chunks_take_segment(msg, &msg->read[chunk], p + 1);
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

	chunk_init(chunk, msg->num_segments);
	msg->num_segments += count;
	for (; count && !reason; count--, p += RPCRDMA_SEGMENT_WORDS)
		reason = chunks_take_segment(msg, chunk, p);
	return reason;
}

static enum rpcrdma_reason chunks_decode_writes(struct rpcrdma_message *msg,
						struct rpcrdma_reader *reader)
{
	enum rpcrdma_reason reason;
	bool present;

	while (!(reason = rpcrdma_take_present(reader, &present)) && present) {
		if (msg->num_writes == RPCRDMA_MAX_CHUNKS)
			return RPCRDMA_BAD_CHUNK_COUNT;
		reason = chunks_decode_chunk(msg,
					     &msg->write[msg->num_writes],
					     reader);
		if (reason)
			return reason;
		msg->num_writes++;
	}
	return reason;
}

static enum rpcrdma_reason chunks_decode_reply(struct rpcrdma_message *msg,
					       struct rpcrdma_reader *reader)
{
	enum rpcrdma_reason reason;

	reason = rpcrdma_take_present(reader, &msg->has_reply_chunk);
	if (!reason && msg->has_reply_chunk)
		reason = chunks_decode_chunk(msg, &msg->reply_chunk, reader);
	return reason;
}

/*
 * The RPC message after the header has the direction that version 2's header
 * says (draft 5.2.2). Version 1's header does not say it.
 */
static enum rpcrdma_reason
chunks_decode_inline_payload(struct rpcrdma_message *msg,
			     struct rpcrdma_reader *reader)
{
	const __be32 *p = rpcrdma_take(reader, RPCRDMA_RPC_HEAD_WORDS);
	u32 msg_type;

	if (!p)
		return RPCRDMA_BAD_PAYLOAD_SHORT;
	msg_type = be32_to_cpup(p + 1);
	if (msg_type != RPCRDMA_CALL && msg_type != RPCRDMA_REPLY)
		return RPCRDMA_BAD_MSG_TYPE;
	if (msg->direction == RPCRDMA_DIRECTION_UNKNOWN)
		msg->direction = msg_type;
	if (msg->direction != msg_type)
		return RPCRDMA_BAD_MSG_DIRECTION;
	if (*p != msg->xid)
		return RPCRDMA_BAD_XID;
	msg->stream_len = msg->payload_len;
	return RPCRDMA_OK;
}

/*
 * A Position Zero Read chunk has to hold the RPC message of a Call, and a Reply
 * chunk that of a Reply. Where the header does not say the direction, a message
 * with a Read list is a Call.
 */
static enum rpcrdma_reason
chunks_find_long_payload(struct rpcrdma_message *msg)
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
		u64 length = chunks_round_up(chunk->length);

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

static enum rpcrdma_reason chunks_decode_lists(struct rpcrdma_message *msg,
					       struct rpcrdma_reader *reader)
{
	enum rpcrdma_reason reason = chunks_decode_reads(msg, reader);

	if (!reason)
		reason = chunks_decode_writes(msg, reader);
	if (!reason)
		reason = chunks_decode_reply(msg, reader);
	return reason;
}

/**
 * rpcrdma_chunks_decode - decode the chunk lists, and check the Payload stream
 * @msg: an RDMA_MSG or RDMA_NOMSG that has the fields before the lists; the
 *	others are filled in. Its direction is what the header says, or unknown
 *	if the header does not say it.
 * @buf: the received message
 * @len: octets received
 * @reader: the cursor, before the lists
 *
 * Implements RFC 8166 sections 4.3 and 4.5.2.
 *
 * Context: any.
 * Return: RPCRDMA_OK or the first mistake that was found.
 */
enum rpcrdma_reason rpcrdma_chunks_decode(struct rpcrdma_message *msg,
					  const void *buf, u32 len,
					  struct rpcrdma_reader *reader)
{
	enum rpcrdma_reason reason = chunks_decode_lists(msg, reader);

	if (reason)
		return reason;
	msg->header_len = (reader->next - (const __be32 *)buf) * sizeof(__be32);
	if (msg->proc == RPCRDMA_MSG) {
		msg->payload_len = len - msg->header_len;
		reason = chunks_decode_inline_payload(msg, reader);
	} else {
		reason = chunks_find_long_payload(msg);
	}
	if (reason)
		return reason;
	return msg->direction == RPCRDMA_CALL ? chunks_check_positions(msg) :
						chunks_check_reply(msg);
}

/**
 * rpcrdma_chunks_len - the size of a transport header with its chunks
 * @msg: the message
 * @header_min: octets of the header without chunks
 *
 * Context: any.
 * Return: octets.
 */
u32 rpcrdma_chunks_len(const struct rpcrdma_message *msg, u32 header_min)
{
	unsigned int i, words = 0;

	for (i = 0; i < msg->num_reads; i++)
		words += msg->read[i].count * (1 + READ_SEGMENT_WORDS);
	for (i = 0; i < msg->num_writes; i++)
		words += 2 + msg->write[i].count * RPCRDMA_SEGMENT_WORDS;
	if (msg->has_reply_chunk)
		words += 1 + msg->reply_chunk.count * RPCRDMA_SEGMENT_WORDS;
	return header_min + words * sizeof(__be32);
}

static __be32 *chunks_encode_read_chunk(const struct rpcrdma_message *msg,
					const struct rpcrdma_chunk *chunk,
					__be32 *p)
{
	const struct rpcrdma_segment *seg = rpcrdma_chunk_segments(msg, chunk);
	unsigned int i;

	for (i = 0; i < chunk->count; i++, seg++) {
		*p++ = cpu_to_be32(1);
		*p++ = cpu_to_be32(chunk->position);
		p = rpcrdma_put_segment(p, seg, seg->length);
	}
	return p;
}

/*
 * A Reply has all segments of the Call. Their lengths are what the responder
 * wrote to each (RFC 8166 section 3.4.6).
 */
static __be32 *chunks_encode_write_chunk(const struct rpcrdma_message *msg,
					 const struct rpcrdma_chunk *chunk,
					 __be32 *p)
{
	u32 left = msg->direction == RPCRDMA_REPLY ? chunk->written :
						     chunk->length;
	const struct rpcrdma_segment *seg = rpcrdma_chunk_segments(msg, chunk);
	unsigned int i;

	*p++ = cpu_to_be32(1);
	*p++ = cpu_to_be32(chunk->count);
	for (i = 0; i < chunk->count; i++, seg++) {
		u32 length = left < seg->length ? left : seg->length;

		p = rpcrdma_put_segment(p, seg, length);
		left -= length;
	}
	return p;
}

/**
 * rpcrdma_chunks_encode - encode the chunk lists
 * @msg: the message
 * @p: memory for the lists, which is large enough
 *
 * Implements RFC 8166 section 4.3.
 *
 * Context: any.
 * Return: the word after the last one that was written.
 */
__be32 *rpcrdma_chunks_encode(const struct rpcrdma_message *msg, __be32 *p)
{
	unsigned int i;

	for (i = 0; i < msg->num_reads; i++)
		p = chunks_encode_read_chunk(msg, &msg->read[i], p);
	*p++ = 0;
	for (i = 0; i < msg->num_writes; i++)
		p = chunks_encode_write_chunk(msg, &msg->write[i], p);
	*p++ = 0;
	if (msg->has_reply_chunk)
		p = chunks_encode_write_chunk(msg, &msg->reply_chunk, p);
	else
		*p++ = 0;
	return p;
}
