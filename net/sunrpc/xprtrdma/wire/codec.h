/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Private to wire/: what message.c, which knows what all versions share, and
 * the file of each version have to say to each other.
 */
#ifndef RPCRDMA_WIRE_CODEC_H
#define RPCRDMA_WIRE_CODEC_H

#include "message.h"

/**
 * struct rpcrdma_reader - a cursor over the whole words of a received message
 * @next: the word to be read next
 * @end: the first word that must not be read
 *
 * Lives on the stack of one rpcrdma_wire_decode().
 */
struct rpcrdma_reader {
	const __be32 *next;
	const __be32 *end;
};

/**
 * rpcrdma_take - step over words of a message
 * @reader: where to read
 * @words: how many
 *
 * Return: the first of the words, or NULL if fewer are left.
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
 * @reader: where to read
 * @present: set to whether the optional data follows
 *
 * Return: RPCRDMA_OK or what is wrong (RFC 4506 section 4.19).
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

void rpcrdma_chunk_init(struct rpcrdma_chunk *chunk, u16 first);
enum rpcrdma_reason rpcrdma_chunk_append(struct rpcrdma_message *msg,
					 struct rpcrdma_chunk *chunk,
					 u32 handle, u32 length, u64 offset);

enum rpcrdma_reason rpcrdma_v1_decode(struct rpcrdma_message *msg,
				      const void *buf, u32 len,
				      struct rpcrdma_reader *reader);
u32 rpcrdma_v1_chunks_len(const struct rpcrdma_message *msg);
__be32 *rpcrdma_v1_encode(const struct rpcrdma_message *msg, __be32 *p);

#endif /* RPCRDMA_WIRE_CODEC_H */
