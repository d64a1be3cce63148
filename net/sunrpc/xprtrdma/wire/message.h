/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What goes on the wire: RPC-over-RDMA transport headers in one in-memory
 * form, whatever their version, and the RDMA-CM private data.
 *
 * Nothing in this layer allocates, sleeps or locks; every function may be
 * called in any context. Receive and Send buffers are aligned to four octets.
 */
#ifndef RPCRDMA_WIRE_MESSAGE_H
#define RPCRDMA_WIRE_MESSAGE_H

#include "platform.h"

#define RPCRDMA_VERSION_ONE	1

/* A header with three absent chunk lists; nothing shorter has a trusted XID. */
#define RPCRDMA_HEADER_MIN	28

/*
 * Segments in one message, all chunks together: 1 MiB registered page by page
 * with 4 KiB pages, and more than a header within a 4096-octet inline
 * threshold can hold (16 octets each), so no such header fails for its count.
 */
#define RPCRDMA_MAX_SEGMENTS	256

/*
 * A chunk carries one DDP-eligible data item. An NFS request has one; even an
 * NFSv4 COMPOUND would need this many READs or WRITEs to run out.
 */
#define RPCRDMA_MAX_CHUNKS	16

/* rdma_proc, RFC 8166 section 4.2.4 */
enum rpcrdma_proc {
	RPCRDMA_MSG = 0,
	RPCRDMA_NOMSG = 1,
	RPCRDMA_MSGP = 2,
	RPCRDMA_DONE = 3,
	RPCRDMA_ERROR = 4,
};

/* rdma_err, RFC 8166 section 4.5 */
enum rpcrdma_errcode {
	RPCRDMA_ERR_VERS = 1,
	RPCRDMA_ERR_CHUNK = 2,
};

/*
 * The first two values are those of msg_type in an RPC message (RFC 5531).
 * It is the direction of a message, not the end of the connection it arrives
 * at, that says whether its receiver acts as responder or as requester. The third
 * is for headers that are too broken to tell.
 */
enum rpcrdma_direction {
	RPCRDMA_CALL = 0,
	RPCRDMA_REPLY = 1,
	RPCRDMA_DIRECTION_UNKNOWN = 2,
};

/* What this end of the connection is in the forward direction (RFC 8167). */
enum rpcrdma_role {
	RPCRDMA_REQUESTER,
	RPCRDMA_RESPONDER,
};

/* What the receiver of a message does with it. */
enum rpcrdma_verdict {
	RPCRDMA_USE,
	RPCRDMA_DROP,
	RPCRDMA_ANSWER_ERR_VERS,
	RPCRDMA_ANSWER_ERR_CHUNK,
};

/* Every mistake that a peer can make */
enum rpcrdma_reason {
	RPCRDMA_OK,
	RPCRDMA_BAD_SHORT,		/* less than a smallest header */
	RPCRDMA_BAD_VERSION,
	RPCRDMA_BAD_PROC,		/* rdma_proc is none of the five */
	RPCRDMA_BAD_MSGP,		/* retired, section 4.6.1 */
	RPCRDMA_BAD_DONE,		/* retired, section 4.6.2 */
	RPCRDMA_BAD_ERROR,		/* an RDMA_ERROR that has no meaning */
	RPCRDMA_BAD_TRUNCATED,		/* a list goes on, the message does not */
	RPCRDMA_BAD_DISCRIMINATOR,	/* "is present" neither 0 nor 1 */
	RPCRDMA_BAD_SEGMENT_COUNT,	/* above RPCRDMA_MAX_SEGMENTS */
	RPCRDMA_BAD_CHUNK_COUNT,	/* above RPCRDMA_MAX_CHUNKS */
	RPCRDMA_BAD_SEGMENT_RANGE,	/* offset + length above 64 bits */
	RPCRDMA_BAD_CHUNK_LENGTH,	/* chunk or Payload above 32 bits */
	RPCRDMA_BAD_POSITION_ALIGN,	/* not a multiple of four */
	RPCRDMA_BAD_POSITION_HEAD,	/* displaces the inline XID or msg_type */
	RPCRDMA_BAD_POSITION_OVERLAP,	/* within an earlier Read chunk */
	RPCRDMA_BAD_POSITION_BEYOND,	/* past the end of the Payload stream */
	RPCRDMA_BAD_READ_IN_REPLY,	/* a Reply with a Read list */
	RPCRDMA_BAD_NO_PAYLOAD,		/* nothing holds the RPC message */
	RPCRDMA_BAD_PAYLOAD_SHORT,	/* no room for an XID and a msg_type */
	RPCRDMA_BAD_MSG_TYPE,		/* neither Call nor Reply */
	RPCRDMA_BAD_XID,		/* rdma_xid differs from the payload's */
	RPCRDMA_BAD_DIRECTION,		/* not expected at this end */
	RPCRDMA_REASON_COUNT
};

/**
 * struct rpcrdma_segment - one contiguous region of the requester's memory
 * @handle: steering tag
 * @length: octets; may be zero
 * @offset: where the region starts; @offset + @length fits in 64 bits
 */
struct rpcrdma_segment {
	u32 handle;
	u32 length;
	u64 offset;
};

/**
 * struct rpcrdma_chunk - a data item, or a whole Payload stream
 * @position: octet of the unreduced Payload stream where the item belongs,
 *	in Read chunks only
 * @length: octets in all its segments together
 * @written: octets a responder returns, in Write chunks and the Reply chunk
 *	only; zero returns the chunk unused. In a received Reply equal to @length.
 * @first: index of its first segment in the message
 * @count: its segments, which are neighbours there; zero in an empty chunk
 */
struct rpcrdma_chunk {
	u32 position;
	u32 length;
	u32 written;
	u16 first;
	u16 count;
};

/**
 * struct rpcrdma_message - a transport header, taken apart
 * @xid: rdma_xid, as on the wire
 * @version: rdma_vers
 * @credits: rdma_credit: requested by a Call, granted by a Reply. A peer that
 *	breaks the rules may send zero, which the roles know how to take.
 * @proc: rdma_proc
 * @direction: whether a requester or a responder receives this message
 * @reason: why the verdict of rpcrdma_wire_decode() was not to use the message
 * @header_len: octets of transport header; the inline Payload stream follows
 * @payload_len: octets of inline Payload stream, RDMA_MSG only
 * @stream_len: octets of the Payload stream with the data items of all Read
 *	chunks, rounded up, put back; data items in Write chunks do not count
 * @error: why an RDMA_ERROR was sent
 * @version_low: lowest version its sender supports, RPCRDMA_ERR_VERS only
 * @version_high: highest version its sender supports, RPCRDMA_ERR_VERS only
 * @num_segments: segments in use
 * @num_reads: Read chunks in use
 * @num_writes: Write chunks in use
 * @has_reply_chunk: whether there is a Reply chunk, which may have no segments
 * @reply_chunk: valid when @has_reply_chunk
 * @read: Read chunks in strictly ascending position. A Position Zero Read
 *	chunk is the first.
 * @write: Write chunks in the requester's order
 * @segment: segments of all chunks. Those of one chunk are in list order.
 *
 * Whoever receives or sends owns one and reuses it for each message. It holds
 * no references and needs no destruction. The arrays come last and are not
 * touched beyond what is in use, so a message without chunks stays within a
 * cache line or two. What a peer sent satisfies all of the above only if the
 * verdict was RPCRDMA_USE.
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
	enum rpcrdma_errcode error;
	u32 version_low;
	u32 version_high;
	u16 num_segments;
	u8 num_reads;
	u8 num_writes;
	bool has_reply_chunk;
	struct rpcrdma_chunk reply_chunk;
	struct rpcrdma_chunk read[RPCRDMA_MAX_CHUNKS];
	struct rpcrdma_chunk write[RPCRDMA_MAX_CHUNKS];
	struct rpcrdma_segment segment[RPCRDMA_MAX_SEGMENTS];
};

/**
 * rpcrdma_position_zero - find the chunk that holds a Long Call
 * @msg: a decoded message
 *
 * Return: the Position Zero Read chunk (RFC 8166 section 3.5.3), or NULL.
 */
static inline const struct rpcrdma_chunk *
rpcrdma_position_zero(const struct rpcrdma_message *msg)
{
	return msg->num_reads && !msg->read[0].position ? &msg->read[0] : NULL;
}

/**
 * rpcrdma_chunk_segments - the segments of one chunk
 * @msg: the message that has @chunk
 * @chunk: any of its chunks
 *
 * Return: an array of @chunk->count segments.
 */
static inline const struct rpcrdma_segment *
rpcrdma_chunk_segments(const struct rpcrdma_message *msg,
		       const struct rpcrdma_chunk *chunk)
{
	return msg->segment + chunk->first;
}

enum rpcrdma_verdict
rpcrdma_wire_decode(struct rpcrdma_message *msg, const void *buf, u32 len,
		    enum rpcrdma_role role, bool backward);

void rpcrdma_wire_init_call(struct rpcrdma_message *msg, __be32 xid,
			    u32 credits);
struct rpcrdma_chunk *rpcrdma_wire_add_read(struct rpcrdma_message *msg,
					    u32 position);
struct rpcrdma_chunk *rpcrdma_wire_add_write(struct rpcrdma_message *msg);
struct rpcrdma_chunk *rpcrdma_wire_add_reply(struct rpcrdma_message *msg);
int rpcrdma_wire_add_segment(struct rpcrdma_message *msg,
			     struct rpcrdma_chunk *chunk,
			     u32 handle, u32 length, u64 offset);

int rpcrdma_wire_return_chunk(struct rpcrdma_chunk *chunk, u32 octets);
void rpcrdma_wire_make_reply(struct rpcrdma_message *msg,
			     enum rpcrdma_proc proc, u32 credits);
void rpcrdma_wire_make_error(struct rpcrdma_message *msg,
			     enum rpcrdma_errcode error, u32 credits);

u32 rpcrdma_wire_header_len(const struct rpcrdma_message *msg);
int rpcrdma_wire_encode(const struct rpcrdma_message *msg, void *buf,
			u32 size);

/* RFC 8797 */

#define RPCRDMA_PRIVATE_LEN	8	/* octets of private data */
#define RPCRDMA_INLINE_MIN	1024	/* also the default */
#define RPCRDMA_INLINE_MAX	262144

/**
 * struct rpcrdma_params - what one end of a connection tells the other
 * @send_size: octets it can transmit in one RDMA Send
 * @recv_size: octets it can receive in one RDMA Receive
 * @remote_inv: its requester copes with RDMA Send with Invalidate, and its
 *	responder can post it
 */
struct rpcrdma_params {
	u32 send_size;
	u32 recv_size;
	bool remote_inv;
};

/**
 * struct rpcrdma_agreement - what both ends told makes of a connection
 * @call_threshold: octets, the most a client may send inline
 * @reply_threshold: octets, the most a server may send inline
 * @client_inv: what the client told in @remote_inv. A server may go by that
 *	alone, and tell nothing itself: the kernel's own does.
 * @server_inv: what the server told
 * @remote_inv: both: a responder may post RDMA Send with Invalidate
 *
 * Fixed for the life of a connection; the next one may differ.
 */
struct rpcrdma_agreement {
	u32 call_threshold;
	u32 reply_threshold;
	bool client_inv;
	bool server_inv;
	bool remote_inv;
};

void rpcrdma_wire_encode_private(const struct rpcrdma_params *params,
				 u8 octets[RPCRDMA_PRIVATE_LEN]);
bool rpcrdma_wire_decode_private(struct rpcrdma_params *params,
				 const void *data, size_t len);
void rpcrdma_wire_agree(const struct rpcrdma_params *client,
			const struct rpcrdma_params *server,
			struct rpcrdma_agreement *agreement);

#endif /* RPCRDMA_WIRE_MESSAGE_H */
