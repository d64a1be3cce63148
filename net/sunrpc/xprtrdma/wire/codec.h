/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Private to wire/: what its files share.
 */
#ifndef RPCRDMA_WIRE_CODEC_H
#define RPCRDMA_WIRE_CODEC_H

#include "message.h"

/* An RPC message starts with its XID and msg_type (RFC 5531 section 9). */
#define RPCRDMA_RPC_HEAD_LEN	8

/* Words of a segment, without what precedes it in a Read list */
#define RPCRDMA_SEGMENT_WORDS	(RPCRDMA_SEGMENT_LEN / sizeof(__be32))

/* A cursor over a received message, on the stack of the decoder */
struct rpcrdma_reader {
	const __be32 *next;	/* the word to be read next */
	u32 left;		/* octets from there on; one to three are no word */
	u32 len;		/* octets of the message */
	bool present;		/* what the last discriminator announced is there */
};

/* Return: the first of the words. NULL: fewer are left, and the cursor has not moved. */
static inline const __be32 *rpcrdma_take(struct rpcrdma_reader *reader, size_t words)
{
	const __be32 *p = reader->next;

	if (reader->left / sizeof(*p) < words)
		return NULL;
	reader->next += words;
	reader->left -= words * sizeof(*p);
	return p;
}

/* Read the discriminator of optional data (RFC 4506 section 4.19). */
static inline enum rpcrdma_reason rpcrdma_take_present(struct rpcrdma_reader *reader)
{
	const __be32 *p = rpcrdma_take(reader, 1);

	if (!p)
		return RPCRDMA_BAD_TRUNCATED;
	if (be32_to_cpup(p) > 1)
		return RPCRDMA_BAD_DISCRIMINATOR;
	reader->present = *p;
	return RPCRDMA_OK;
}

enum rpcrdma_reason rpcrdma_chunks_decode(struct rpcrdma_message *msg,
					  struct rpcrdma_reader *reader);
u32 rpcrdma_chunks_header_len(const struct rpcrdma_message *msg);
void rpcrdma_chunks_encode(const struct rpcrdma_message *msg, __be32 *p);
enum rpcrdma_reason rpcrdma_v2_decode(struct rpcrdma_message *msg, struct rpcrdma_reader *reader);

#endif /* RPCRDMA_WIRE_CODEC_H */
