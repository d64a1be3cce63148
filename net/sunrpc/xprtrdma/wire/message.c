// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The four fixed fields of a header, RDMA_ERROR, and what to do with a message that cannot be
 * used (RFC 8166 sections 4.2, 4.5 and 7, draft 5.2).
 */
#include "codec.h"

/* rdma_err of version 1 for all mistakes but an unknown version; BAD_XDR has the same value */
#define V1_ERR_CHUNK	RPCRDMA_ERR_BAD_XDR

/* Octets of a whole RDMA_ERROR */
#define ERROR_LEN		20
#define ERR_VERS_LEN		28
#define ERR_CANT_REPLY_LEN	32

/* Only up to @error: clearing the arrays, kilobytes, for each message is slow. */
static void message_reset(struct rpcrdma_message *msg)
{
	memset(msg, 0, offsetof(struct rpcrdma_message, error));
	msg->direction = RPCRDMA_DIRECTION_UNKNOWN;
}

/*
 * All versions share the layout of ERR_VERS, but not the other errors.
 * @version: of the message, or zero if it is not supported
 */
static enum rpcrdma_reason message_decode_error(struct rpcrdma_message *msg,
						struct rpcrdma_reader *reader, u32 version)
{
	u32 last = version == RPCRDMA_VERSION_ONE ? V1_ERR_CHUNK : RPCRDMA_ERR_INVAL_OPTION;
	const __be32 *p = rpcrdma_take(reader, 1);

	msg->direction = RPCRDMA_REPLY;
	if (!p)
		return RPCRDMA_BAD_ERROR;
	msg->error = be32_to_cpup(p);
	if (msg->error == RPCRDMA_ERR_VERS) {
		p = rpcrdma_take(reader, 2);
		if (!p)
			return RPCRDMA_BAD_ERROR;
		msg->version_low = be32_to_cpu(p[0]);
		msg->version_high = be32_to_cpu(p[1]);
	} else if (!version || msg->error < RPCRDMA_ERR_BAD_XDR || msg->error > last) {
		return RPCRDMA_BAD_ERROR;
	} else if (msg->error == RPCRDMA_ERR_CANT_REPLY) {
		if (rpcrdma_take_present(reader) || !rpcrdma_take(reader, 2))
			return RPCRDMA_BAD_ERROR;
	}
	msg->header_len = reader->len - reader->left;
	return RPCRDMA_OK;
}

static enum rpcrdma_reason message_decode_v1(struct rpcrdma_message *msg,
					     struct rpcrdma_reader *reader)
{
	if (msg->proc == RPCRDMA_MSG || msg->proc == RPCRDMA_NOMSG)
		return rpcrdma_chunks_decode(msg, reader);
	if (msg->proc == RPCRDMA_MSGP)
		return RPCRDMA_BAD_MSGP;
	return msg->proc == RPCRDMA_DONE ? RPCRDMA_BAD_DONE : RPCRDMA_BAD_PROC;
}

/*
 * RFC 8166 section 4.5 says to drop every message below 28 octets, but most errors have 20.
 * So a short RDMA_ERROR is decoded: otherwise no requester could receive one.
 */
static enum rpcrdma_reason message_decode(struct rpcrdma_message *msg,
					  struct rpcrdma_reader *reader, u32 version_max)
{
	const __be32 *p = rpcrdma_take(reader, 4);
	u32 version;

	message_reset(msg);
	if (!p || (reader->len < RPCRDMA_MESSAGE_MIN && be32_to_cpu(p[3]) != RPCRDMA_ERROR))
		return RPCRDMA_BAD_SHORT;
	msg->xid = p[0];
	msg->version = be32_to_cpu(p[1]);
	msg->credits = be32_to_cpu(p[2]);
	msg->proc = be32_to_cpu(p[3]);

	version = msg->version <= version_max ? msg->version : 0;
	if (msg->proc == RPCRDMA_ERROR)
		return message_decode_error(msg, reader, version);
	if (version == RPCRDMA_VERSION_ONE)
		return message_decode_v1(msg, reader);
	return version ? rpcrdma_v2_decode(msg, reader) : RPCRDMA_BAD_VERSION;
}

/*
 * Correct the direction by what can arrive at this end.
 *
 * This end sends no Calls in versions that it does not support, and a Reply has the
 * version of its Call. So a message of such a version is a Call, if Calls arrive here.
 *
 * A server offers no Reply chunk in its backward Calls, so it never gets a Long Reply.
 * What looks like one in version 1, where the header does not say the direction, is a
 * Call that lacks its Position Zero Read chunk.
 */
static void message_correct_direction(struct rpcrdma_message *msg,
				      enum rpcrdma_end end, bool backward)
{
	bool calls = end == RPCRDMA_SERVER_END || backward;

	if (msg->reason == RPCRDMA_BAD_VERSION && calls)
		msg->direction = RPCRDMA_CALL;
	if (end != RPCRDMA_SERVER_END || msg->proc != RPCRDMA_NOMSG ||
	    msg->direction != RPCRDMA_REPLY)
		return;
	if (msg->reason == RPCRDMA_OK)
		msg->reason = RPCRDMA_BAD_NO_PAYLOAD;
	if (msg->version == RPCRDMA_VERSION_ONE)
		msg->direction = RPCRDMA_CALL;
}

/* What answers a Call with this mistake */
static enum rpcrdma_error message_error(enum rpcrdma_reason reason)
{
	switch (reason) {
	case RPCRDMA_BAD_VERSION:
		return RPCRDMA_ERR_VERS;
	case RPCRDMA_BAD_PROC:
	case RPCRDMA_BAD_MSGP:
		return RPCRDMA_ERR_INVAL_PROC;
	case RPCRDMA_BAD_OPTION:
		return RPCRDMA_ERR_INVAL_OPTION;
	default:
		return RPCRDMA_ERR_BAD_XDR;
	}
}

/*
 * A message of unknown direction is treated as one of the forward direction.
 * Only a Call is answered: a peer would take an RDMA_ERROR that answers its Reply
 * for the Reply to a Call of its own with the same XID. That goes for version 2,
 * too: an RDMA2_ERROR is always a Reply (draft 5.2.2).
 */
static enum rpcrdma_verdict message_judge(struct rpcrdma_message *msg,
					  enum rpcrdma_end end, bool backward)
{
	enum rpcrdma_direction forward, direction;

	if (msg->reason == RPCRDMA_BAD_SHORT || msg->reason == RPCRDMA_BAD_DONE)
		return RPCRDMA_DROP;

	message_correct_direction(msg, end, backward);
	forward = end == RPCRDMA_SERVER_END ? RPCRDMA_CALL : RPCRDMA_REPLY;
	direction = msg->direction == RPCRDMA_DIRECTION_UNKNOWN ? forward : msg->direction;
	if (direction != forward && !backward) {
		msg->reason = RPCRDMA_BAD_DIRECTION;
		return RPCRDMA_DROP;
	}

	if (msg->reason == RPCRDMA_OK)
		return RPCRDMA_USE;
	if (direction == RPCRDMA_REPLY)
		return RPCRDMA_DROP;
	msg->error = message_error(msg->reason);
	return RPCRDMA_ANSWER;
}

/**
 * rpcrdma_wire_decode - decode and check a received message
 * @msg: filled in; its previous content does not matter
 * @buf: the message, aligned to four octets
 * @len: octets received
 * @end: what this end of the connection is in the forward direction
 * @backward: whether this end expects messages of the backward direction
 * @version_max: the highest version that this end supports. It supports all
 *	lower ones, too.
 *
 * The direction of the message, not @end, decides how a mistake is handled (RFC 8167).
 * If the verdict is not RPCRDMA_USE, only @msg->reason, @msg->direction and the
 * fields that rpcrdma_wire_make_error() uses are valid.
 *
 * Return:
 * * RPCRDMA_USE - a Call is for the responder at this end, a Reply for the
 *   requester. An RDMA_ERROR is a Reply: it completes the RPC with @msg->xid.
 * * RPCRDMA_DROP - only repost the receive buffer
 * * RPCRDMA_ANSWER - convert @msg with rpcrdma_wire_make_error() and send it;
 *   @msg->error is set
 */
enum rpcrdma_verdict rpcrdma_wire_decode(struct rpcrdma_message *msg, const void *buf, u32 len,
					 enum rpcrdma_end end, bool backward, u32 version_max)
{
	struct rpcrdma_reader reader = { .next = buf, .left = len, .len = len };
	enum rpcrdma_verdict verdict;

	msg->reason = message_decode(msg, &reader, version_max);
	verdict = message_judge(msg, end, backward);
	if (verdict == RPCRDMA_ANSWER && msg->error == RPCRDMA_ERR_VERS) {
		msg->version_low = RPCRDMA_VERSION_ONE;
		msg->version_high = version_max;
	}
	return verdict;
}

/**
 * rpcrdma_wire_grants - whether a Reply grants credits
 * @msg: a decoded Reply
 *
 * An RDMA_ERROR grants credits in version 1 only (draft 6).
 *
 * Return: true if @msg->credits is a grant.
 */
bool rpcrdma_wire_grants(const struct rpcrdma_message *msg)
{
	return msg->proc != RPCRDMA_ERROR || msg->version == RPCRDMA_VERSION_ONE;
}

/**
 * rpcrdma_wire_init_call - initialize a Call
 * @msg: the message; its previous content does not matter
 * @version: RPC-over-RDMA version
 * @xid: XID of the RPC message
 * @credits: credits to request, at least one
 *
 * The Call is an RDMA_MSG without chunks. The caller may then add chunks: Read chunks by
 * ascending position, then Write chunks, then the Reply chunk, and all segments of a chunk
 * before the next one. For a Long Call it sets @msg->proc to RPCRDMA_NOMSG.
 */
void rpcrdma_wire_init_call(struct rpcrdma_message *msg, u32 version, __be32 xid, u32 credits)
{
	message_reset(msg);
	msg->xid = xid;
	msg->version = version;
	msg->credits = credits;
	msg->direction = RPCRDMA_CALL;
}

/**
 * rpcrdma_wire_choose_handle - choose the handle that the Reply invalidates
 * @msg: a decoded Call
 * @agreed: both ends have agreed on remote invalidation by RFC 8797. Version 2
 *	does not need it: there each Call says which handle may be invalidated.
 * @handle: set to the handle
 *
 * In version 1 any handle of the Call will do (RFC 8797 section 4.1), except that of an empty
 * segment, which may be invalid. A handle that a Call of version 2 names must be in one of its
 * segments, otherwise another Call may still use it (draft 5.2.3).
 *
 * Return: true if the Reply may invalidate @handle, and false if it must not
 * invalidate any.
 */
bool rpcrdma_wire_choose_handle(const struct rpcrdma_message *msg, bool agreed, u32 *handle)
{
	bool named = msg->version != RPCRDMA_VERSION_ONE;
	unsigned int i;

	if (named ? !msg->inv_handle : !agreed)
		return false;
	for (i = msg->num_segments; i > 0; i--) {
		const struct rpcrdma_segment *segment = &msg->segment[i - 1];

		if (named ? segment->handle == msg->inv_handle : segment->length) {
			*handle = segment->handle;
			return true;
		}
	}
	return false;
}

/**
 * rpcrdma_wire_cant_reply - set the error of a Call whose chunks are too short
 * @msg: a decoded Call, perhaps converted by rpcrdma_wire_make_reply()
 * @chunk: its first Write chunk that is too short, or its Reply chunk; NULL if
 *	it lacks the chunk
 * @octets: octets that @chunk should have space for, more than it has
 *
 * Implements draft 5.2.4. A responder learns this only when the Call is executed, and says so.
 * The segments are filled in order, so the last one of the chunk is named as too short.
 */
void rpcrdma_wire_cant_reply(struct rpcrdma_message *msg, const struct rpcrdma_chunk *chunk,
			     u32 octets)
{
	const struct rpcrdma_chunk *first = msg->num_writes ? &msg->write[0] : &msg->reply_chunk;
	unsigned int end;

	msg->error = RPCRDMA_ERR_CANT_REPLY;
	msg->short_segment = 0;
	msg->length_needed = 0;
	if (!chunk || !chunk->count)
		return;
	end = chunk->first + chunk->count;
	msg->short_segment = end - first->first;
	msg->length_needed = msg->segment[end - 1].length + (octets - chunk->length);
}

/**
 * rpcrdma_wire_make_error - convert a Call into the RDMA_ERROR that answers it
 * @msg: a message with the verdict RPCRDMA_ANSWER, or a Call that was found to
 *	be unusable later, and whose error the caller has set since
 * @credits: credits to grant, at least one
 *
 * The RDMA_ERROR has the XID and the version of the Call (RFC 8166 section
 * 4.5), and says @msg->error.
 */
void rpcrdma_wire_make_error(struct rpcrdma_message *msg, u32 credits)
{
	msg->proc = RPCRDMA_ERROR;
	msg->direction = RPCRDMA_REPLY;
	msg->credits = credits;
}

/**
 * rpcrdma_wire_header_len - the size of a transport header
 * @msg: a message; more chunks may be added later
 *
 * Return: octets that rpcrdma_wire_encode() would write.
 */
u32 rpcrdma_wire_header_len(const struct rpcrdma_message *msg)
{
	if (msg->proc != RPCRDMA_ERROR)
		return rpcrdma_chunks_header_len(msg);
	if (msg->error == RPCRDMA_ERR_VERS)
		return ERR_VERS_LEN;
	return msg->error == RPCRDMA_ERR_CANT_REPLY && msg->version != RPCRDMA_VERSION_ONE ?
	       ERR_CANT_REPLY_LEN : ERROR_LEN;
}

static void message_encode_error(const struct rpcrdma_message *msg, __be32 *p)
{
	if (msg->error == RPCRDMA_ERR_VERS) {
		*p++ = cpu_to_be32(RPCRDMA_ERR_VERS);
		*p++ = cpu_to_be32(msg->version_low);
		*p = cpu_to_be32(msg->version_high);
	} else if (msg->version == RPCRDMA_VERSION_ONE) {
		*p = cpu_to_be32(V1_ERR_CHUNK);
	} else {
		*p++ = cpu_to_be32(msg->error);
		if (msg->error != RPCRDMA_ERR_CANT_REPLY)
			return;
		*p++ = cpu_to_be32(true);	/* the Call was executed */
		*p++ = cpu_to_be32(msg->short_segment);
		*p = cpu_to_be32(msg->length_needed);
	}
}

/**
 * rpcrdma_wire_encode - encode a transport header
 * @msg: the message
 * @buf: memory for the header, aligned to four octets
 * @size: octets of @buf
 *
 * Return: octets written. -EMSGSIZE: @size is too small. -EINVAL: @msg must not
 * be sent, because its rdma_proc is retired or RDMA2_OPTIONAL, or because with
 * credits of zero the requester could never send again (RFC 8166 section 3.3.1).
 */
int rpcrdma_wire_encode(const struct rpcrdma_message *msg, void *buf, u32 size)
{
	bool error = msg->proc == RPCRDMA_ERROR;
	u32 len = rpcrdma_wire_header_len(msg);
	__be32 *p = buf;

	if (!msg->credits || (!error && msg->proc != RPCRDMA_MSG && msg->proc != RPCRDMA_NOMSG))
		return -EINVAL;
	if (len > size)
		return -EMSGSIZE;

	*p++ = msg->xid;
	*p++ = cpu_to_be32(msg->version);
	*p++ = cpu_to_be32(msg->credits);
	*p++ = cpu_to_be32(msg->proc);
	if (error) {
		message_encode_error(msg, p);
		return len;
	}
	if (msg->version != RPCRDMA_VERSION_ONE) {
		*p++ = cpu_to_be32(msg->direction);
		*p++ = cpu_to_be32(msg->inv_handle);
	}
	rpcrdma_chunks_encode(msg, p);
	return len;
}
