// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What no version of RPC-over-RDMA may change (RFC 8166 sections 4.2 and 7):
 * the four fixed header fields, the meaning of RDMA_ERROR with ERR_VERS, and
 * what becomes of a message that cannot be used.
 */
#include "codec.h"

/* Octets of RDMA_ERROR, with the three words of ERR_VERS and the one of others */
#define RPCRDMA_ERR_VERS_LEN	28
#define RPCRDMA_ERR_CHUNK_LEN	20

/* Leaves alone the arrays, which are kilobytes. */
static void message_reset(struct rpcrdma_message *msg)
{
	memset(msg, 0, offsetof(struct rpcrdma_message, reply_chunk));
	msg->direction = RPCRDMA_DIRECTION_UNKNOWN;
}

/**
 * rpcrdma_chunk_init - start a chunk that has no segments yet
 * @chunk: the chunk
 * @first: where in the message its segments will be
 */
void rpcrdma_chunk_init(struct rpcrdma_chunk *chunk, u16 first)
{
	*chunk = (struct rpcrdma_chunk){ .first = first };
}

/**
 * rpcrdma_chunk_append - give a chunk its next segment
 * @msg: the message that has @chunk, and room for the segment
 * @chunk: the chunk
 * @handle: steering tag
 * @length: octets
 * @offset: where the region starts
 *
 * A length that makes offset or chunk wrap is refused here, once, so that no
 * one above need fear to add them up.
 *
 * Return: RPCRDMA_OK, RPCRDMA_BAD_SEGMENT_RANGE or RPCRDMA_BAD_CHUNK_LENGTH.
 */
enum rpcrdma_reason rpcrdma_chunk_append(struct rpcrdma_message *msg,
					 struct rpcrdma_chunk *chunk,
					 u32 handle, u32 length, u64 offset)
{
	struct rpcrdma_segment *segment;

	if (offset > U64_MAX - length)
		return RPCRDMA_BAD_SEGMENT_RANGE;
	if (chunk->length > U32_MAX - length)
		return RPCRDMA_BAD_CHUNK_LENGTH;

	segment = &msg->segment[chunk->first + chunk->count++];
	segment->handle = handle;
	segment->length = length;
	segment->offset = offset;
	chunk->length += length;
	return RPCRDMA_OK;
}

/* Only the layout of ERR_VERS is the same in every version. */
static enum rpcrdma_reason message_decode_error(struct rpcrdma_message *msg,
						struct rpcrdma_reader *reader)
{
	const __be32 *p = rpcrdma_take(reader, 1);
	u32 error;

	msg->direction = RPCRDMA_REPLY;
	if (!p)
		return RPCRDMA_BAD_ERROR;

	error = be32_to_cpup(p);
	if (error == RPCRDMA_ERR_VERS) {
		p = rpcrdma_take(reader, 2);
		if (!p)
			return RPCRDMA_BAD_ERROR;
		msg->version_low = be32_to_cpup(p++);
		msg->version_high = be32_to_cpup(p);
		msg->header_len = RPCRDMA_ERR_VERS_LEN;
	} else if (error == RPCRDMA_ERR_CHUNK &&
		   msg->version == RPCRDMA_VERSION_ONE) {
		msg->header_len = RPCRDMA_ERR_CHUNK_LEN;
	} else {
		return RPCRDMA_BAD_ERROR;
	}
	msg->error = error;
	return RPCRDMA_OK;
}

/*
 * RFC 8166 section 4.5 would have every message below 28 octets dropped, but
 * section 4.1.2 makes an ERR_CHUNK 20 octets long: that one is let through, or
 * no requester would ever learn of it.
 */
static enum rpcrdma_reason message_decode(struct rpcrdma_message *msg,
					  const void *buf, u32 len)
{
	struct rpcrdma_reader reader = { .next = buf };
	const __be32 *p;

	message_reset(msg);
	reader.end = reader.next + len / sizeof(__be32);
	p = rpcrdma_take(&reader, 4);
	if (!p)
		return RPCRDMA_BAD_SHORT;
	if (len < RPCRDMA_HEADER_MIN && be32_to_cpup(p + 3) != RPCRDMA_ERROR)
		return RPCRDMA_BAD_SHORT;

	msg->xid = *p++;
	msg->version = be32_to_cpup(p++);
	msg->credits = be32_to_cpup(p++);
	msg->proc = be32_to_cpup(p);

	if (msg->proc == RPCRDMA_ERROR)
		return message_decode_error(msg, &reader);
	if (msg->version != RPCRDMA_VERSION_ONE)
		return RPCRDMA_BAD_VERSION;
	return rpcrdma_v1_decode(msg, buf, len, &reader);
}

/*
 * What this end expects tells more of the direction than the header does. No
 * backward Call offers a Reply chunk, so a Long Reply that arrives at a server is
 * a Call whose Position Zero Read chunk is missing. And Calls are sent in version
 * 1 alone, and so are their Replies: where Calls may arrive, any other version is
 * a Call's.
 */
static void message_correct_direction(struct rpcrdma_message *msg,
				      enum rpcrdma_role role, bool backward)
{
	bool calls = role == RPCRDMA_RESPONDER || backward;

	if (msg->reason == RPCRDMA_BAD_VERSION && calls)
		msg->direction = RPCRDMA_CALL;
	if (role != RPCRDMA_RESPONDER || msg->proc != RPCRDMA_NOMSG ||
	    msg->direction != RPCRDMA_REPLY)
		return;
	msg->direction = RPCRDMA_CALL;
	msg->reason = RPCRDMA_BAD_NO_PAYLOAD;
}

/*
 * A header too broken to tell its direction is taken for what this end gets in
 * the forward direction. Only a Call is ever answered: an RDMA_ERROR sent for
 * a broken Reply could hit some Call of the other direction with the same XID.
 */
static enum rpcrdma_verdict message_judge(struct rpcrdma_message *msg,
					  enum rpcrdma_role role, bool backward)
{
	enum rpcrdma_direction forward, direction;

	if (msg->reason == RPCRDMA_BAD_SHORT || msg->reason == RPCRDMA_BAD_DONE)
		return RPCRDMA_DROP;

	message_correct_direction(msg, role, backward);
	forward = role == RPCRDMA_RESPONDER ? RPCRDMA_CALL : RPCRDMA_REPLY;
	direction = msg->direction == RPCRDMA_DIRECTION_UNKNOWN ?
		    forward : msg->direction;
	if (direction != forward && !backward) {
		msg->reason = RPCRDMA_BAD_DIRECTION;
		return RPCRDMA_DROP;
	}

	if (msg->reason == RPCRDMA_OK)
		return RPCRDMA_USE;
	if (direction == RPCRDMA_REPLY)
		return RPCRDMA_DROP;
	return msg->reason == RPCRDMA_BAD_VERSION ? RPCRDMA_ANSWER_ERR_VERS :
						    RPCRDMA_ANSWER_ERR_CHUNK;
}

/**
 * rpcrdma_wire_decode - take a received message apart and check all of it
 * @msg: filled in; its previous content does not matter
 * @buf: the message, aligned to four octets
 * @len: octets received
 * @role: what this end of the connection is in the forward direction
 * @backward: whether messages of the backward direction are expected here too
 *
 * Implements RFC 8166 sections 4.2, 4.3 and 4.5, and RFC 8167 in that the
 * direction of the message, not @role, selects how its mistakes are handled.
 * Unless RPCRDMA_USE is returned, only @msg->reason and @msg->direction have
 * meaning, and what rpcrdma_wire_make_error() needs.
 *
 * Context: any.
 * Return:
 * * RPCRDMA_USE - hand it to the requester or the responder here, by
 *   @msg->direction. An RDMA_ERROR is a Reply, and completes the RPC with
 *   @msg->xid, if there is one.
 * * RPCRDMA_DROP - do nothing but repost the receive buffer
 * * RPCRDMA_ANSWER_ERR_VERS, RPCRDMA_ANSWER_ERR_CHUNK - send what
 *   rpcrdma_wire_make_error() makes of @msg
 */
enum rpcrdma_verdict
rpcrdma_wire_decode(struct rpcrdma_message *msg, const void *buf, u32 len,
		    enum rpcrdma_role role, bool backward)
{
	enum rpcrdma_reason reason = message_decode(msg, buf, len);

	msg->reason = reason;
	return message_judge(msg, role, backward);
}

/**
 * rpcrdma_wire_init_call - start a Call
 * @msg: the message; its previous content does not matter
 * @xid: XID of the RPC message
 * @credits: credits to request, at least one
 *
 * The Call is an RDMA_MSG without chunks. Chunks are added in any order, Read
 * chunks by ascending position, each with all of its segments before the next
 * chunk. For a Long Call the caller sets @msg->proc to RPCRDMA_NOMSG.
 *
 * Context: any.
 */
void rpcrdma_wire_init_call(struct rpcrdma_message *msg, __be32 xid,
			    u32 credits)
{
	message_reset(msg);
	msg->xid = xid;
	msg->version = RPCRDMA_VERSION_ONE;
	msg->credits = credits;
	msg->proc = RPCRDMA_MSG;
	msg->direction = RPCRDMA_CALL;
}

/**
 * rpcrdma_wire_add_read - add a Read chunk to a Call
 * @msg: a Call
 * @position: octets into the unreduced Payload stream
 *
 * Context: any.
 * Return: the chunk, or NULL if there are RPCRDMA_MAX_CHUNKS already or
 * @position is not above that of the Read chunk before.
 */
struct rpcrdma_chunk *rpcrdma_wire_add_read(struct rpcrdma_message *msg,
					    u32 position)
{
	struct rpcrdma_chunk *chunk = &msg->read[msg->num_reads];

	if (msg->num_reads == RPCRDMA_MAX_CHUNKS)
		return NULL;
	if (msg->num_reads && chunk[-1].position >= position)
		return NULL;
	msg->num_reads++;
	rpcrdma_chunk_init(chunk, msg->num_segments);
	chunk->position = position;
	return chunk;
}

/**
 * rpcrdma_wire_add_write - add a Write chunk to a Call
 * @msg: a Call
 *
 * Without segments it is an empty Write chunk, which has the responder return
 * its data item inline (RFC 8166 section 4.3.2).
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
	rpcrdma_chunk_init(chunk, msg->num_segments);
	return chunk;
}

/**
 * rpcrdma_wire_add_reply - add the Reply chunk to a Call
 * @msg: a Call without one
 *
 * Context: any.
 * Return: the chunk.
 */
struct rpcrdma_chunk *rpcrdma_wire_add_reply(struct rpcrdma_message *msg)
{
	msg->has_reply_chunk = true;
	rpcrdma_chunk_init(&msg->reply_chunk, msg->num_segments);
	return &msg->reply_chunk;
}

/**
 * rpcrdma_wire_add_segment - add a segment to the chunk that was added last
 * @msg: a Call
 * @chunk: that chunk
 * @handle: steering tag
 * @length: octets
 * @offset: where the region starts
 *
 * Context: any.
 * Return: 0, or -EMSGSIZE if @msg has RPCRDMA_MAX_SEGMENTS already or a length
 * would wrap.
 */
int rpcrdma_wire_add_segment(struct rpcrdma_message *msg,
			     struct rpcrdma_chunk *chunk,
			     u32 handle, u32 length, u64 offset)
{
	if (msg->num_segments == RPCRDMA_MAX_SEGMENTS)
		return -EMSGSIZE;
	if (rpcrdma_chunk_append(msg, chunk, handle, length, offset))
		return -EMSGSIZE;
	msg->num_segments++;
	return 0;
}

/**
 * rpcrdma_wire_return_chunk - note how much of a chunk the responder wrote
 * @chunk: a Write chunk or the Reply chunk of a decoded Call
 * @octets: written contiguously from its first segment on, without roundup
 *	padding; zero takes the chunk back
 *
 * The Reply's segment lengths follow from it (RFC 8166 section 3.4.6). The
 * segments here keep the lengths that the requester offered.
 *
 * Context: any.
 * Return: 0, or -EMSGSIZE if the chunk cannot hold as much.
 */
int rpcrdma_wire_return_chunk(struct rpcrdma_chunk *chunk, u32 octets)
{
	if (octets > chunk->length)
		return -EMSGSIZE;
	chunk->written = octets;
	return 0;
}

/**
 * rpcrdma_wire_make_reply - turn a Call into its Reply
 * @msg: a decoded Call
 * @proc: RPCRDMA_MSG, or RPCRDMA_NOMSG if the Reply chunk has the RPC message
 * @credits: credits to grant, at least one
 *
 * Every Write chunk and the Reply chunk go back to the requester, as unused
 * unless rpcrdma_wire_return_chunk() says otherwise, before or after. A Reply
 * has no Read list (RFC 8166 section 4.3.1).
 *
 * Context: any.
 */
void rpcrdma_wire_make_reply(struct rpcrdma_message *msg,
			     enum rpcrdma_proc proc, u32 credits)
{
	msg->proc = proc;
	msg->direction = RPCRDMA_REPLY;
	msg->credits = credits;
	msg->num_reads = 0;
}

/**
 * rpcrdma_wire_make_error - turn a Call into the RDMA_ERROR that answers it
 * @msg: a message with a verdict to be answered, or a Call found unusable later
 * @error: RPCRDMA_ERR_VERS or RPCRDMA_ERR_CHUNK
 * @credits: credits to grant, at least one
 *
 * XID and version stay what they were (RFC 8166 section 4.5).
 *
 * Context: any.
 */
void rpcrdma_wire_make_error(struct rpcrdma_message *msg,
			     enum rpcrdma_errcode error, u32 credits)
{
	msg->proc = RPCRDMA_ERROR;
	msg->direction = RPCRDMA_REPLY;
	msg->credits = credits;
	msg->error = error;
	msg->version_low = RPCRDMA_VERSION_ONE;
	msg->version_high = RPCRDMA_VERSION_ONE;
}

/**
 * rpcrdma_wire_header_len - the size of a transport header, without encoding it
 * @msg: a message, possibly one that is to get more chunks
 *
 * Context: any.
 * Return: octets that rpcrdma_wire_encode() would write.
 */
u32 rpcrdma_wire_header_len(const struct rpcrdma_message *msg)
{
	if (msg->proc != RPCRDMA_ERROR)
		return RPCRDMA_HEADER_MIN + rpcrdma_v1_chunks_len(msg);
	return msg->error == RPCRDMA_ERR_VERS ? RPCRDMA_ERR_VERS_LEN :
						RPCRDMA_ERR_CHUNK_LEN;
}

static __be32 *message_encode_error(const struct rpcrdma_message *msg,
				    __be32 *p)
{
	*p++ = cpu_to_be32(msg->error);
	if (msg->error == RPCRDMA_ERR_VERS) {
		*p++ = cpu_to_be32(msg->version_low);
		*p++ = cpu_to_be32(msg->version_high);
	}
	return p;
}

/**
 * rpcrdma_wire_encode - write a transport header
 * @msg: the message
 * @buf: where to, aligned to four octets
 * @size: octets of room in @buf
 *
 * Implements RFC 8166 section 4.1.2.
 *
 * Context: any.
 * Return: octets written; -EMSGSIZE if @size is too small; -EINVAL if @msg must
 * not be sent: a retired rdma_proc, or credits of zero, which would deadlock
 * the requester (section 3.3.1).
 */
int rpcrdma_wire_encode(const struct rpcrdma_message *msg, void *buf, u32 size)
{
	__be32 *p = buf;

	if (msg->proc != RPCRDMA_MSG && msg->proc != RPCRDMA_NOMSG &&
	    msg->proc != RPCRDMA_ERROR)
		return -EINVAL;
	if (!msg->credits)
		return -EINVAL;
	if (rpcrdma_wire_header_len(msg) > size)
		return -EMSGSIZE;

	*p++ = msg->xid;
	*p++ = cpu_to_be32(msg->version);
	*p++ = cpu_to_be32(msg->credits);
	*p++ = cpu_to_be32(msg->proc);
	if (msg->proc == RPCRDMA_ERROR)
		p = message_encode_error(msg, p);
	else
		p = rpcrdma_v1_encode(msg, p);
	return (p - (__be32 *)buf) * sizeof(*p);
}
