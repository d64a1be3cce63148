/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What goes on the wire: RPC-over-RDMA transport headers of all versions, in
 * one in-memory form, and the RDMA-CM private data.
 *
 * Nothing in this layer allocates memory, sleeps or takes locks. Every function
 * may be called in any context. The caller protects what it passes. Receive and
 * Send buffers are aligned to four octets.
 */
#ifndef RPCRDMA_WIRE_MESSAGE_H
#define RPCRDMA_WIRE_MESSAGE_H

#include "platform.h"

/*
 * Version 1 is RFC 8166. Version 2 is draft-cel-nfsv4-rpcrdma-version-two-02,
 * "draft" in comments. Later drafts have the same number, but other messages.
 */
#define RPCRDMA_VERSION_ONE	1
#define RPCRDMA_VERSION_TWO	2
#define RPCRDMA_VERSION_MAX	RPCRDMA_VERSION_TWO

/* A shorter message of any version is dropped (RFC 8166 section 4.5), except an RDMA_ERROR. */
#define RPCRDMA_MESSAGE_MIN	28

/* Octets of a header without chunks, see rpcrdma_wire_header_min() */
#define RPCRDMA_V1_HEADER_MIN	28
#define RPCRDMA_V2_HEADER_MIN	36

/* Inline threshold of version 2 without an agreement (draft 2.3) */
#define RPCRDMA_V2_INLINE_MIN	4096

/* By how many octets these make a header longer */
#define RPCRDMA_SEGMENT_LEN		16	/* of a Write or Reply chunk */
#define RPCRDMA_READ_SEGMENT_LEN	24	/* of a Read chunk */
#define RPCRDMA_WRITE_CHUNK_LEN		8	/* without its segments */
#define RPCRDMA_REPLY_CHUNK_LEN		4	/* without its segments */

/*
 * Segments in one message, of all chunks together: enough for 1 MiB that is
 * registered in pages of 4 KiB, or for 4 MiB, the largest payload, in pieces of 16 KiB.
 */
#define RPCRDMA_MAX_SEGMENTS	256

/* Chunks of either kind in one message: one for each READ or WRITE in an NFSv4 COMPOUND */
#define RPCRDMA_MAX_CHUNKS	16

/* rdma_proc, RFC 8166 section 4.2.4 and draft 5.2 */
enum rpcrdma_proc {
	RPCRDMA_MSG = 0,
	RPCRDMA_NOMSG = 1,
	RPCRDMA_MSGP = 2,		/* version 1 only */
	RPCRDMA_DONE = 3,		/* version 1 only */
	RPCRDMA_ERROR = 4,
	RPCRDMA_OPTIONAL = 5,		/* version 2 only */
};

/* rdma_err of version 2 (draft 5.2). Version 1 has ERR_CHUNK for all but the first. */
enum rpcrdma_error {
	RPCRDMA_ERR_VERS = 1,		/* the version is not supported */
	RPCRDMA_ERR_BAD_XDR = 2,	/* the Call cannot be understood */
	RPCRDMA_ERR_CANT_REPLY = 3,	/* a chunk has no space for the Reply */
	RPCRDMA_ERR_INVAL_PROC = 4,	/* rdma_proc is unknown */
	RPCRDMA_ERR_INVAL_OPTION = 5,	/* rdma_opttype is unknown */
};

/*
 * The first two are msg_type of an RPC message (RFC 5531). The receiver of a Call acts as
 * responder and that of a Reply as requester, at either end of the connection.
 */
enum rpcrdma_direction {
	RPCRDMA_CALL = 0,
	RPCRDMA_REPLY = 1,
	RPCRDMA_DIRECTION_UNKNOWN = 2,	/* the message does not show it */
};

/* What one end of a connection is in the forward direction (RFC 8167) */
enum rpcrdma_end {
	RPCRDMA_CLIENT_END,
	RPCRDMA_SERVER_END,
};

/* What the receiver of a message must do with it */
enum rpcrdma_verdict {
	RPCRDMA_USE,
	RPCRDMA_DROP,
	RPCRDMA_ANSWER,
};

/* Why a message cannot be used */
enum rpcrdma_reason {
	RPCRDMA_OK,
	RPCRDMA_BAD_SHORT,		/* below RPCRDMA_MESSAGE_MIN */
	RPCRDMA_BAD_VERSION,
	RPCRDMA_BAD_PROC,		/* unknown rdma_proc */
	RPCRDMA_BAD_MSGP,		/* retired, RFC 8166 section 4.6.1 */
	RPCRDMA_BAD_DONE,		/* retired, RFC 8166 section 4.6.2 */
	RPCRDMA_BAD_ERROR,		/* rdma_err unknown or cut off */
	RPCRDMA_BAD_TRUNCATED,		/* the message ends within a list */
	RPCRDMA_BAD_DISCRIMINATOR,	/* of optional data: neither 0 nor 1 */
	RPCRDMA_BAD_SEGMENT_COUNT,	/* above RPCRDMA_MAX_SEGMENTS */
	RPCRDMA_BAD_CHUNK_COUNT,	/* above RPCRDMA_MAX_CHUNKS */
	RPCRDMA_BAD_SEGMENT_RANGE,	/* offset + length above 64 bits */
	RPCRDMA_BAD_CHUNK_LENGTH,	/* of chunk or stream: above 32 bits */
	RPCRDMA_BAD_POSITION_ALIGN,	/* not a multiple of four */
	RPCRDMA_BAD_POSITION_HEAD,	/* would displace XID or msg_type */
	RPCRDMA_BAD_POSITION_OVERLAP,	/* within an earlier Read chunk */
	RPCRDMA_BAD_POSITION_BEYOND,	/* past the end of the Payload stream */
	RPCRDMA_BAD_READ_IN_REPLY,	/* a Reply with a Read list */
	RPCRDMA_BAD_NO_PAYLOAD,		/* RDMA_NOMSG without a chunk for it */
	RPCRDMA_BAD_PAYLOAD_SHORT,	/* ends before XID and msg_type */
	RPCRDMA_BAD_MSG_TYPE,		/* msg_type or rdma_direction: neither Call nor Reply */
	RPCRDMA_BAD_MSG_DIRECTION,	/* msg_type is not rdma_direction */
	RPCRDMA_BAD_OPTION,		/* unknown rdma_opttype */
	RPCRDMA_BAD_XID,		/* rdma_xid is not the RPC message's */
	RPCRDMA_BAD_DIRECTION,		/* not expected at this end */
	RPCRDMA_REASON_COUNT
};

/* A contiguous region of the requester's memory. @offset + @length does not exceed 64 bits. */
struct rpcrdma_segment {
	u32 handle;	/* steering tag */
	u32 length;	/* octets; may be zero */
	u64 offset;
};

/**
 * struct rpcrdma_chunk - memory for a data item or for a whole Payload stream
 * @position: Read chunks: octet of the unreduced Payload stream where the data
 *	item belongs
 * @length: octets of all its segments together
 * @written: Write chunks and the Reply chunk: octets that the responder wrote;
 *	zero if it did not use the chunk. Equal to @length in a received Reply.
 * @first: index of its first segment in the message
 * @count: number of its segments, which follow each other in the message; may be zero
 */
struct rpcrdma_chunk {
	u32 position;
	u32 length;
	u32 written;
	u16 first;
	u16 count;
};

/**
 * struct rpcrdma_message - a decoded transport header
 * @xid: rdma_xid, as on the wire
 * @version: rdma_vers
 * @credits: rdma_credit: requested by a Call, granted by a Reply. Zero breaks
 *	the protocol, but is passed on; the roles handle it.
 * @proc: rdma_proc
 * @direction: Call, Reply or unknown
 * @reason: why the verdict is not RPCRDMA_USE, or RPCRDMA_OK
 * @header_len: octets of transport header; the inline Payload stream follows
 * @payload_len: octets of inline Payload stream, RDMA_MSG only
 * @stream_len: octets of the unreduced Payload stream: @payload_len or the
 *	length of the chunk that holds the RPC message, plus the length of each
 *	other Read chunk, rounded up. Write chunks do not count.
 * @inv_handle: version 2 only: the handle that the Reply may invalidate, or zero. A Reply
 *	repeats it. A received Call may name a handle that is not its own.
 * @num_segments: valid entries of @segment
 * @num_reads: valid entries of @read
 * @num_writes: valid entries of @write
 * @has_reply_chunk: there is a Reply chunk, which may have no segments
 * @error: what an RDMA_ERROR says, or has to say to answer this message
 * @version_low: lowest version its sender supports, RPCRDMA_ERR_VERS only
 * @version_high: highest version its sender supports, RPCRDMA_ERR_VERS only
 * @short_segment: the first segment that is too short: counted from one, in the
 *	order of the header, Write list and Reply chunk together; zero if no
 *	segment can be named. Only set to be sent, like @length_needed.
 * @length_needed: octets that this segment would need
 * @reply_chunk: valid if @has_reply_chunk
 * @read: Read chunks, sorted by position. No two have the same position, so a
 *	Position Zero Read chunk is the first.
 * @write: Write chunks in the requester's order
 * @segment: segments of all chunks: those of Read chunks, Write chunks, Reply chunk
 *
 * Part of the object that receives or sends, which reuses it for each message.
 * What comes after @has_reply_chunk, and each entry of the arrays, is written only if it
 * becomes valid: a message without chunks touches one or two cache lines. Unless the
 * verdict was RPCRDMA_USE, rely on what rpcrdma_wire_decode() says alone.
 */
struct rpcrdma_message {
	__be32 xid;
	u32 version;
	u32 credits;
	enum rpcrdma_proc proc;
	enum rpcrdma_direction direction;
	enum rpcrdma_reason reason;
	u32 header_len;
	u32 payload_len;
	u32 stream_len;
	u32 inv_handle;
	u16 num_segments;
	u8 num_reads;
	u8 num_writes;
	bool has_reply_chunk;
	enum rpcrdma_error error;
	union {
		struct {
			u32 version_low;
			u32 version_high;
		};
		struct {
			u32 short_segment;
			u32 length_needed;
		};
	};
	struct rpcrdma_chunk reply_chunk;
	struct rpcrdma_chunk read[RPCRDMA_MAX_CHUNKS];
	struct rpcrdma_chunk write[RPCRDMA_MAX_CHUNKS];
	struct rpcrdma_segment segment[RPCRDMA_MAX_SEGMENTS];
};

/* Return: the Read chunk that holds the RPC message of a Long Call, or NULL. */
static inline const struct rpcrdma_chunk *rpcrdma_position_zero(const struct rpcrdma_message *msg)
{
	return msg->num_reads && !msg->read[0].position ? &msg->read[0] : NULL;
}

/* Return: an array of @chunk->count segments. */
static inline const struct rpcrdma_segment *
rpcrdma_chunk_segments(const struct rpcrdma_message *msg, const struct rpcrdma_chunk *chunk)
{
	return msg->segment + chunk->first;
}

/* Octets with their padding (RFC 4506) */
static inline u64 rpcrdma_wire_round_up(u32 octets)
{
	return ((u64)octets + 3) & ~3ULL;
}

/* Octets of the header of an RDMA_MSG or RDMA_NOMSG without chunks */
static inline u32 rpcrdma_wire_header_min(u32 version)
{
	return version == RPCRDMA_VERSION_TWO ? RPCRDMA_V2_HEADER_MIN : RPCRDMA_V1_HEADER_MIN;
}

/**
 * rpcrdma_wire_threshold - an inline threshold (draft 2.3)
 * @version: of the message, or the highest version that a buffer is for
 * @agreed: octets that both ends have agreed on by RFC 8797. They hold in version 2 as well,
 *	because Receives are posted before the version is known.
 *
 * Return: octets of the transport header and the inline Payload stream.
 */
static inline u32 rpcrdma_wire_threshold(u32 version, u32 agreed)
{
	if (version == RPCRDMA_VERSION_TWO && agreed < RPCRDMA_V2_INLINE_MIN)
		return RPCRDMA_V2_INLINE_MIN;
	return agreed;
}

/**
 * rpcrdma_wire_return_chunk - set how much of a chunk the responder wrote
 * @chunk: a Write chunk or the Reply chunk of a decoded Call
 * @octets: contiguous from the start of its first segment, without roundup
 *	padding; zero if it is returned unused
 *
 * The segments in the message keep the lengths that the requester offered;
 * rpcrdma_wire_encode() computes those of the Reply (RFC 8166 section 3.4.6).
 *
 * Return: 0, or -EMSGSIZE if the chunk is shorter.
 */
static inline int rpcrdma_wire_return_chunk(struct rpcrdma_chunk *chunk, u32 octets)
{
	if (octets > chunk->length)
		return -EMSGSIZE;
	chunk->written = octets;
	return 0;
}

/**
 * rpcrdma_wire_make_reply - convert a Call into its Reply
 * @msg: a decoded Call
 * @credits: credits to grant, at least one
 *
 * The Reply has all Write chunks and the Reply chunk of the Call, unused unless
 * rpcrdma_wire_return_chunk() says more, and no Read list (RFC 8166 section 4.3.1). If the Reply
 * chunk is to have the RPC message, the caller changes @msg->proc to RPCRDMA_NOMSG.
 */
static inline void rpcrdma_wire_make_reply(struct rpcrdma_message *msg, u32 credits)
{
	msg->proc = RPCRDMA_MSG;
	msg->direction = RPCRDMA_REPLY;
	msg->credits = credits;
	msg->num_reads = 0;
}

/**
 * rpcrdma_wire_complete_word - complete the last word of a received message with zeros
 * @buf: the message, in a buffer of whole words
 * @len: octets received
 *
 * Some servers, nfs-ganesha for one, send too few octets of padding after data, or too many. A
 * message that has to be dropped as too short stays short.
 *
 * Return: octets of the message.
 */
static inline u32 rpcrdma_wire_complete_word(void *buf, u32 len)
{
	u32 lacking = -len % sizeof(__be32);

	if (!lacking || len < RPCRDMA_MESSAGE_MIN)
		return len;
	memset(buf + len, 0, lacking);
	return len + lacking;
}

enum rpcrdma_verdict rpcrdma_wire_decode(struct rpcrdma_message *msg, const void *buf, u32 len,
					 enum rpcrdma_end end, bool backward, u32 version_max);
bool rpcrdma_wire_grants(const struct rpcrdma_message *msg);

void rpcrdma_wire_init_call(struct rpcrdma_message *msg, u32 version, __be32 xid, u32 credits);
struct rpcrdma_chunk *rpcrdma_wire_add_read(struct rpcrdma_message *msg, u32 position);
struct rpcrdma_chunk *rpcrdma_wire_add_write(struct rpcrdma_message *msg);
struct rpcrdma_chunk *rpcrdma_wire_add_reply(struct rpcrdma_message *msg);
int rpcrdma_wire_add_segment(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk,
			     u32 handle, u32 length, u64 offset);

bool rpcrdma_wire_choose_handle(const struct rpcrdma_message *msg, bool agreed, u32 *handle);
void rpcrdma_wire_cant_reply(struct rpcrdma_message *msg, const struct rpcrdma_chunk *chunk,
			     u32 octets);
void rpcrdma_wire_make_error(struct rpcrdma_message *msg, u32 credits);

u32 rpcrdma_wire_header_len(const struct rpcrdma_message *msg);
int rpcrdma_wire_encode(const struct rpcrdma_message *msg, void *buf, u32 size);

/* RFC 8797 */

#define RPCRDMA_PRIVATE_LEN	8	/* octets of private data */
#define RPCRDMA_INLINE_MIN	1024	/* also the default */
#define RPCRDMA_INLINE_MAX	262144

/* What one end of a connection announces; the connection has one for each end */
struct rpcrdma_params {
	u32 send_size;		/* octets it can transmit in one RDMA Send */
	u32 recv_size;		/* octets it can receive in one RDMA Receive */
	bool remote_inv;	/* it accepts RDMA Send with Invalidate, and can post it */
};

/* What both ends of a connection agree on; part of the connection, constant once established */
struct rpcrdma_agreement {
	u32 call_threshold;	/* octets that the client may send inline at most */
	u32 reply_threshold;	/* octets that the server may send inline at most */
	bool client_inv;	/* the client's; some servers, as the kernel's own, need no more */
	bool server_inv;	/* the server's */
	bool remote_inv;	/* both: a responder may post RDMA Send with Invalidate */
};

void rpcrdma_wire_encode_private(const struct rpcrdma_params *params,
				 u8 octets[RPCRDMA_PRIVATE_LEN]);
bool rpcrdma_wire_decode_private(struct rpcrdma_params *params, const void *data, size_t len);
void rpcrdma_wire_agree(const struct rpcrdma_params *client, const struct rpcrdma_params *server,
			struct rpcrdma_agreement *agreement);

#endif /* RPCRDMA_WIRE_MESSAGE_H */
