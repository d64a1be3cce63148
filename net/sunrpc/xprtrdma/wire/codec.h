/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Private to wire/: shared by message.c and chunks.c, which have what all versions of the
 * protocol have in common, and by v1.c and v2.c, of which message.c picks one by the version
 * field.
 */
#ifndef RPCRDMA_WIRE_CODEC_H
#define RPCRDMA_WIRE_CODEC_H

#include "message.h"

/* Octets of a whole RDMA_ERROR of version 1, other than ERR_VERS */
#define RPCRDMA_V1_ERROR_LEN	20

/* An RPC message starts with its XID and msg_type (RFC 5531 section 9). */
#define RPCRDMA_RPC_HEAD_WORDS	2
#define RPCRDMA_RPC_HEAD_LEN	8

/* Words of a segment, without what precedes it in a Read list */
#define RPCRDMA_SEGMENT_WORDS	4

/**
 * struct rpcrdma_reader - a cursor over the words of a received message
 * @next: the word to be read next
 * @end: the first word that must not be read. One to three octets after the
 *	last whole word are not counted.
 *
 * On the stack of the decoder.
 */
struct rpcrdma_reader {
	const __be32 *next;
	const __be32 *end;
};

/**
 * rpcrdma_take - read words of a message
 * @reader: the cursor, which moves past the words
 * @words: number of words
 *
 * Context: any.
 * Return: the first of the words, or NULL if fewer are left. Then the cursor
 * has not moved.
 */
static inline const __be32 *rpcrdma_take(struct rpcrdma_reader *reader,
					 size_t words)
{
	const __be32 *p = reader->next;

	if ((size_t)(reader->end - p) < words)
		return NULL;
	reader->next += words;
	return p;
}

/**
 * rpcrdma_take_present - read the discriminator of optional data
 * @reader: the cursor, which moves past the discriminator
 * @present: set to whether the optional data follows
 *
 * Implements RFC 4506 section 4.19.
 *
 * Context: any.
 * Return: RPCRDMA_OK, RPCRDMA_BAD_TRUNCATED or RPCRDMA_BAD_DISCRIMINATOR.
 */
static inline enum rpcrdma_reason
rpcrdma_take_present(struct rpcrdma_reader *reader, bool *present)
{
	const __be32 *p = rpcrdma_take(reader, 1);

	if (!p)
		return RPCRDMA_BAD_TRUNCATED;
	if (be32_to_cpup(p) > 1)
		return RPCRDMA_BAD_DISCRIMINATOR;
	*present = *p;
	return RPCRDMA_OK;
}

/**
 * rpcrdma_get_segment - decode a segment
 * @p: its words
 * @segment: filled in; it may wrap
 *
 * Implements RFC 8166 section 4.3.
 *
 * Context: any.
 */
static inline void rpcrdma_get_segment(const __be32 *p, struct rpcrdma_segment *segment)
{
	segment->handle = be32_to_cpu(p[0]);
	segment->length = be32_to_cpu(p[1]);
	segment->offset = (u64)be32_to_cpu(p[2]) << 32 | be32_to_cpu(p[3]);
}

/**
 * rpcrdma_put_segment - encode a segment
 * @p: memory for its words
 * @segment: the segment
 * @length: octets, instead of those of @segment
 *
 * Implements RFC 8166 section 4.3.
 *
 * Context: any.
 * Return: the word after the last one that was written.
 */
static inline __be32 *rpcrdma_put_segment(__be32 *p, const struct rpcrdma_segment *segment,
					  u32 length)
{
	p[0] = cpu_to_be32(segment->handle);
	p[1] = cpu_to_be32(length);
	p[2] = cpu_to_be32(segment->offset >> 32);
	p[3] = cpu_to_be32(segment->offset);
	return p + RPCRDMA_SEGMENT_WORDS;
}

enum rpcrdma_reason rpcrdma_chunks_decode(struct rpcrdma_message *msg,
					  const void *buf, u32 len,
					  struct rpcrdma_reader *reader);
u32 rpcrdma_chunks_len(const struct rpcrdma_message *msg, u32 header_min);
__be32 *rpcrdma_chunks_encode(const struct rpcrdma_message *msg, __be32 *p);

enum rpcrdma_reason rpcrdma_v1_decode(struct rpcrdma_message *msg,
				      const void *buf, u32 len,
				      struct rpcrdma_reader *reader);
enum rpcrdma_reason rpcrdma_v1_decode_error(struct rpcrdma_message *msg,
					    u32 error);
__be32 *rpcrdma_v1_encode_error(__be32 *p);

enum rpcrdma_reason rpcrdma_v2_decode(struct rpcrdma_message *msg,
				      const void *buf, u32 len,
				      struct rpcrdma_reader *reader);
__be32 *rpcrdma_v2_encode(const struct rpcrdma_message *msg, __be32 *p);
enum rpcrdma_reason rpcrdma_v2_decode_error(struct rpcrdma_message *msg,
					    u32 error,
					    struct rpcrdma_reader *reader);
u32 rpcrdma_v2_error_len(const struct rpcrdma_message *msg);
__be32 *rpcrdma_v2_encode_error(const struct rpcrdma_message *msg, __be32 *p);

#endif /* RPCRDMA_WIRE_CODEC_H */
