// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The short way of usual messages: RDMA_MSG of version 1 in the forward direction, without
 * chunks or with one chunk of one segment, as NFS READs and WRITEs have. Such a message is
 * decoded and encoded in one step. The result is the same as that of rpcrdma_decode_any()
 * and rpcrdma_encode_any(), which take all other messages, and every mistake.
 */
#include "codec.h"

/* Words of a header without chunks, and of one with one chunk of one segment */
#define PLAIN_WORDS	(RPCRDMA_V1_HEADER_MIN / sizeof(__be32))
#define ONE_CHUNK_WORDS	13

#define ONE_CHUNK_LEN	(ONE_CHUNK_WORDS * sizeof(__be32))

/* Indices of the words of a header, which depend on the list that has its chunk */
enum {
	READ_LIST = 4,
	READ_POSITION,
	READ_SEGMENT,
	READ_END = READ_SEGMENT + RPCRDMA_SEGMENT_WORDS, /* the other lists follow, empty */

	WRITE_LIST = READ_LIST + 1,
	WRITE_COUNT,
	WRITE_SEGMENT,
	WRITE_END = WRITE_SEGMENT + RPCRDMA_SEGMENT_WORDS,

	REPLY_CHUNK = 12,		/* if there is one chunk */
};

/*
 * Fill in all but the chunks, each member once. Return: false if the inline RPC message is
 * not there, or not the one that the header announces.
 */
static __always_inline bool usual_take(struct rpcrdma_message *msg, const __be32 *p, u32 len,
				       u32 header_words, enum rpcrdma_role role)
{
	enum rpcrdma_direction direction = role == RPCRDMA_RESPONDER ? RPCRDMA_CALL :
								       RPCRDMA_REPLY;
	const __be32 *payload = p + header_words;
	u32 header_len = header_words * sizeof(*p);

	if (len < header_len + RPCRDMA_RPC_HEAD_LEN ||
	    payload[0] != p[0] || payload[1] != cpu_to_be32(direction))
		return false;
	msg->xid = p[0];
	msg->version = RPCRDMA_VERSION_ONE;
	msg->credits = be32_to_cpu(p[2]);
	msg->proc = RPCRDMA_MSG;
	msg->direction = direction;
	msg->reason = RPCRDMA_OK;
	msg->header_len = header_len;
	msg->payload_len = len - header_len;
	msg->stream_len = len - header_len;
	msg->inv_handle = 0;
	msg->num_segments = 0;
	msg->num_reads = 0;
	msg->num_writes = 0;
	msg->has_reply_chunk = false;
	return true;
}

/* Return: false if the segment wraps. */
static bool usual_take_segment(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk,
			       u32 position, const __be32 *p)
{
	struct rpcrdma_segment *segment = &msg->segment[0];

	rpcrdma_get_segment(p, segment);
	chunk->position = position;
	chunk->length = segment->length;
	chunk->written = 0;
	chunk->first = 0;
	chunk->count = 1;
	msg->num_segments = 1;
	return segment->offset <= U64_MAX - segment->length;
}

static bool usual_take_write(struct rpcrdma_message *msg, const __be32 *p)
{
	struct rpcrdma_chunk *chunk = &msg->write[0];

	if (p[WRITE_LIST] != cpu_to_be32(1) || p[WRITE_COUNT] != cpu_to_be32(1) ||
	    p[WRITE_END] || p[REPLY_CHUNK] ||
	    !usual_take_segment(msg, chunk, 0, p + WRITE_SEGMENT))
		return false;
	if (msg->direction == RPCRDMA_REPLY)
		chunk->written = chunk->length;
	msg->num_writes = 1;
	return true;
}

static bool usual_take_read(struct rpcrdma_message *msg, const __be32 *p)
{
	struct rpcrdma_chunk *chunk = &msg->read[0];
	u64 stream_len;

	if (p[READ_LIST] != cpu_to_be32(1) || p[READ_END] | p[READ_END + 1] | p[REPLY_CHUNK] ||
	    msg->direction != RPCRDMA_CALL ||
	    !usual_take_segment(msg, chunk, be32_to_cpu(p[READ_POSITION]), p + READ_SEGMENT))
		return false;
	stream_len = msg->payload_len + (((u64)chunk->length + 3) & ~3ULL);
	if (chunk->position % sizeof(__be32) || chunk->position < RPCRDMA_RPC_HEAD_LEN ||
	    chunk->position > msg->payload_len || stream_len > U32_MAX)
		return false;
	msg->stream_len = stream_len;
	msg->num_reads = 1;
	return true;
}

/* It ends in a tail call, so that no registers are saved for it. */
static noinline enum rpcrdma_verdict
usual_decode_chunk(struct rpcrdma_message *msg, const __be32 *p, u32 len,
		   enum rpcrdma_role role, bool backward, u32 version_max)
{
	if (usual_take(msg, p, len, ONE_CHUNK_WORDS, role) &&
	    (p[READ_LIST] ? usual_take_read(msg, p) : usual_take_write(msg, p)))
		return RPCRDMA_USE;
	return rpcrdma_decode_any(msg, p, len, role, backward, version_max);
}

/**
 * rpcrdma_wire_decode - decode and check a received message
 * @msg: filled in; its previous content does not matter
 * @buf: the message, aligned to four octets
 * @len: octets received
 * @role: what this end of the connection is in the forward direction
 * @backward: whether this end expects messages of the backward direction
 * @version_max: the highest version that this end supports. It supports all
 *	lower ones, too.
 *
 * Implements RFC 8166 sections 4.2, 4.3 and 4.5, and draft 5.2.4. By RFC 8167
 * the direction of the message, and not @role, decides how a mistake is handled.
 * If the verdict is not RPCRDMA_USE, only @msg->reason, @msg->direction and the
 * fields that rpcrdma_wire_make_error() uses are valid.
 *
 * Context: any.
 * Return:
 * * RPCRDMA_USE - a Call is for the responder at this end, a Reply for the
 *   requester. An RDMA_ERROR is a Reply: it completes the RPC with @msg->xid.
 * * RPCRDMA_DROP - only repost the receive buffer
 * * RPCRDMA_ANSWER - convert @msg with rpcrdma_wire_make_error() and send it;
 *   @msg->error is set
 */
enum rpcrdma_verdict
rpcrdma_wire_decode(struct rpcrdma_message *msg, const void *buf, u32 len,
		    enum rpcrdma_role role, bool backward, u32 version_max)
{
	const __be32 *p = buf;

	if (len < RPCRDMA_V1_HEADER_MIN + RPCRDMA_RPC_HEAD_LEN ||
	    p[1] != cpu_to_be32(RPCRDMA_VERSION_ONE) || p[3] != cpu_to_be32(RPCRDMA_MSG))
		return rpcrdma_decode_any(msg, p, len, role, backward, version_max);
	if (p[4] | p[5] | p[6])
		return usual_decode_chunk(msg, p, len, role, backward, version_max);
	if (!usual_take(msg, p, len, PLAIN_WORDS, role))
		return rpcrdma_decode_any(msg, p, len, role, backward, version_max);
	return RPCRDMA_USE;
}

/* The length in a Reply is what the responder wrote. */
static void usual_put_write(const struct rpcrdma_message *msg, __be32 *p)
{
	const struct rpcrdma_chunk *chunk = &msg->write[0];

	p[READ_LIST] = 0;
	p[WRITE_LIST] = cpu_to_be32(1);
	p[WRITE_COUNT] = cpu_to_be32(1);
	rpcrdma_put_segment(p + WRITE_SEGMENT, &msg->segment[0],
			    msg->direction == RPCRDMA_REPLY ? chunk->written : chunk->length);
	p[WRITE_END] = 0;
	p[REPLY_CHUNK] = 0;
}

static void usual_put_read(const struct rpcrdma_message *msg, __be32 *p)
{
	const struct rpcrdma_chunk *chunk = &msg->read[0];

	p[READ_LIST] = cpu_to_be32(1);
	p[READ_POSITION] = cpu_to_be32(chunk->position);
	rpcrdma_put_segment(p + READ_SEGMENT, &msg->segment[0], chunk->length);
	p[READ_END] = 0;
	p[READ_END + 1] = 0;
	p[REPLY_CHUNK] = 0;
}

/*
 * One Write chunk or one Read chunk with one segment, and nothing else. The segment of a
 * Reply may be of the Call's Read chunk, which the Reply does not have.
 */
static bool usual_has_one_chunk(const struct rpcrdma_message *msg)
{
	return msg->num_segments == 1 && !msg->has_reply_chunk &&
	       msg->num_reads + msg->num_writes == 1 &&
	       (msg->num_writes ? &msg->write[0] : &msg->read[0])->count == 1;
}

/**
 * rpcrdma_wire_encode - encode a transport header
 * @msg: the message
 * @buf: memory for the header, aligned to four octets
 * @size: octets of @buf
 *
 * Implements RFC 8166 section 4.1.2 and draft 5.2.
 *
 * Context: any.
 * Return: octets written. -EMSGSIZE: @size is too small. -EINVAL: @msg must not
 * be sent, because its rdma_proc is retired or RDMA2_OPTIONAL, or because with
 * credits of zero the requester could never send again (RFC 8166 section 3.3.1).
 */
int rpcrdma_wire_encode(const struct rpcrdma_message *msg, void *buf, u32 size)
{
	bool plain = !(msg->num_reads | msg->num_writes | msg->has_reply_chunk);
	__be32 *p = buf;

	if (msg->version != RPCRDMA_VERSION_ONE || msg->proc != RPCRDMA_MSG || !msg->credits ||
	    size < (plain ? RPCRDMA_V1_HEADER_MIN : ONE_CHUNK_LEN) ||
	    (!plain && !usual_has_one_chunk(msg)))
		return rpcrdma_encode_any(msg, buf, size);
	p[0] = msg->xid;
	p[1] = cpu_to_be32(RPCRDMA_VERSION_ONE);
	p[2] = cpu_to_be32(msg->credits);
	p[3] = cpu_to_be32(RPCRDMA_MSG);
	if (plain) {
		p[4] = 0;
		p[5] = 0;
		p[6] = 0;
		return RPCRDMA_V1_HEADER_MIN;
	}
	if (msg->num_writes)
		usual_put_write(msg, p);
	else
		usual_put_read(msg, p);
	return ONE_CHUNK_LEN;
}
