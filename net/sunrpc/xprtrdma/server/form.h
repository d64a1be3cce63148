/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What is done with the chunks of a Call, and how its Reply travels. These
 * decisions depend only on messages, sizes and limits, so they need no connection.
 */
#ifndef SVCRDMA_FORM_H
#define SVCRDMA_FORM_H

#include <linux/sunrpc/xdr.h>

#include "../wire/message.h"

/*
 * Where nfsd finds the arguments of a Call. Only forms that the RPC server and
 * nfsd know: those of byte streams, and those that NFS requesters send.
 */
enum svcrdma_args {
	SVCRDMA_ARGS_INLINE,	/* where they were received */
	SVCRDMA_ARGS_WRITE,	/* data and what follows it in pages, what precedes it inline */
	SVCRDMA_ARGS_STREAM,	/* all in pages, as if from a byte stream */
};

enum svcrdma_piece_kind {
	SVCRDMA_PIECE_CHUNK,	/* moved by RDMA */
	SVCRDMA_PIECE_INLINE,	/* part of the message that was received */
	SVCRDMA_PIECE_PADDING,	/* zeros after a data item */
};

/* Consecutive octets of a Call or Reply, on the stack of a walk */
struct svcrdma_piece {
	enum svcrdma_piece_kind kind;
	u32 at;			/* offset into the pages for arguments, or into the Reply */
	u32 octets;		/* at least one */
	const struct rpcrdma_segment *segment;	/* SVCRDMA_PIECE_CHUNK only */
	u32 skip;		/* offset into the segment, or into the inline part */
};

/* Called for each piece. Any return value but zero ends the walk. */
typedef int (*svcrdma_visit_fn)(void *data, const struct svcrdma_piece *piece);

/* Whether a part of a Call is in Read chunks. Chunks of no octets do not count. */
static inline bool svcrdma_pull_needed(const struct rpcrdma_message *msg)
{
	return msg->proc == RPCRDMA_NOMSG || msg->stream_len > msg->payload_len;
}

/* How many octets of a Call go to pages */
static inline u32 svcrdma_args_len(const struct rpcrdma_message *msg, enum svcrdma_args args)
{
	if (args == SVCRDMA_ARGS_INLINE)
		return 0;
	return msg->stream_len - (args == SVCRDMA_ARGS_WRITE ? msg->read[0].position : 0);
}

bool svcrdma_call_gss(const __be32 *call, u32 octets);
bool svcrdma_call_truncated(const __be32 *call, u32 octets);
enum svcrdma_args svcrdma_choose_args(const struct rpcrdma_message *msg, const __be32 *payload);
int svcrdma_args_walk(const struct rpcrdma_message *msg, enum svcrdma_args args, u32 from,
		      svcrdma_visit_fn visit, void *data);

/* A data item of a Reply that may go to a Write chunk */
struct svcrdma_result {
	u32 offset;			/* in octets into rq_res */
	u32 length;			/* without padding */
	struct rpcrdma_chunk *chunk;	/* the Write chunk that takes it, or NULL */
};

/* The data items of one Reply, by ascending offset. nfsd adds them while it encodes the Reply. */
struct svcrdma_results {
	unsigned int count;
	struct svcrdma_result result[RPCRDMA_MAX_CHUNKS];
};

/* Before, between and after the data items that go to Write chunks */
#define SVCRDMA_MAX_PARTS	(RPCRDMA_MAX_CHUNKS + 1)

/* Consecutive octets of rq_res */
struct svcrdma_part {
	u32 at;
	u32 len;
};

/**
 * struct svcrdma_reply_form - how a Reply travels
 * @num_parts: elements of @part in use
 * @part: what does not go to Write chunks
 * @len: octets in all parts
 * @written: octets that go to Write chunks and the Reply chunk
 * @short_chunk: if there is no form, the first chunk that is too short; NULL if that
 *	is not the cause, or the Call has no such chunk
 * @needed: octets that @short_chunk should have space for
 *
 * Part of a struct svcrdma_reply. @short_chunk belongs to the message.
 */
struct svcrdma_reply_form {
	unsigned int num_parts;
	struct svcrdma_part part[SVCRDMA_MAX_PARTS];
	u32 len;
	u32 written;
	const struct rpcrdma_chunk *short_chunk;
	u32 needed;
};

int svcrdma_reply_choose(struct svcrdma_reply_form *form, struct rpcrdma_message *msg,
			 struct svcrdma_results *results, const struct xdr_buf *res, u32 threshold);
int svcrdma_reply_walk(const struct svcrdma_reply_form *form, const struct rpcrdma_message *msg,
		       const struct svcrdma_results *results, svcrdma_visit_fn visit, void *data);

#endif /* SVCRDMA_FORM_H */
