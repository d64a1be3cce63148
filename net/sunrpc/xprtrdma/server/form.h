/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What becomes of a Call's chunks and how its Reply travels: decisions that
 * depend on messages, sizes and limits alone, so they take nothing else.
 */
#ifndef RPCRDMA_SERVER_FORM_H
#define RPCRDMA_SERVER_FORM_H

#include <linux/sunrpc/xdr.h>

#include "../wire/message.h"

/*
 * Where a Call's arguments are when nfsd gets them. The RPC server and nfsd know
 * of byte streams and what NFS requesters send, and are not to be surprised.
 */
enum rpcrdma_args {
	RPCRDMA_ARGS_INLINE,	/* where they were received */
	RPCRDMA_ARGS_WRITE,	/* data and what follows it in pages */
	RPCRDMA_ARGS_STREAM,	/* all in pages, as if from a byte stream */
};

enum rpcrdma_piece_kind {
	RPCRDMA_PIECE_CHUNK,	/* moved by RDMA */
	RPCRDMA_PIECE_INLINE,	/* part of the message that was received */
	RPCRDMA_PIECE_PADDING,	/* zeros behind a data item */
};

/**
 * struct rpcrdma_piece - consecutive octets on their way
 * @kind: where the other side of them is
 * @at: octets into local memory: the pages of a Call's arguments, or the Reply
 * @octets: how many, at least one
 * @segment: the requester's memory, RPCRDMA_PIECE_CHUNK only
 * @skip: octets into @segment, or into the inline part of the message
 */
struct rpcrdma_piece {
	enum rpcrdma_piece_kind kind;
	u32 at;
	u32 octets;
	const struct rpcrdma_segment *segment;
	u32 skip;
};

/* Called for each piece; anything but zero ends the walk. */
typedef int (*rpcrdma_visit_t)(void *data, const struct rpcrdma_piece *piece);

/**
 * struct rpcrdma_pull_limits - what a requester may ask for
 * @reads: RDMA Reads that may be outstanding; zero: there can be none
 * @len: octets of RPC message
 * @pages: pages for what is not left where it was received
 */
struct rpcrdma_pull_limits {
	unsigned int reads;
	u32 len;
	unsigned int pages;
};

bool rpcrdma_pull_needed(const struct rpcrdma_message *msg);
bool rpcrdma_call_gss(const __be32 *call, u32 octets);
enum rpcrdma_args rpcrdma_choose_args(const struct rpcrdma_message *msg,
				      const __be32 *payload);
bool rpcrdma_call_cut(const __be32 *call, u32 octets);
u32 rpcrdma_args_len(const struct rpcrdma_message *msg, enum rpcrdma_args args);
bool rpcrdma_args_allowed(const struct rpcrdma_message *msg,
			  enum rpcrdma_args args,
			  const struct rpcrdma_pull_limits *limits);
int rpcrdma_args_walk(const struct rpcrdma_message *msg,
		      enum rpcrdma_args args, u32 from,
		      rpcrdma_visit_t visit, void *data);

bool rpcrdma_choose_handle(const struct rpcrdma_message *msg, u32 *handle);

/**
 * struct rpcrdma_result - a data item of the Reply that may leave by itself
 * @offset: octets into rq_res
 * @length: octets, without padding
 * @chunk: the Write chunk that takes it; NULL: none
 */
struct rpcrdma_result {
	u32 offset;
	u32 length;
	struct rpcrdma_chunk *chunk;
};

/**
 * struct rpcrdma_results - the data items of one Reply
 * @count: how many
 * @result: in ascending order
 */
struct rpcrdma_results {
	unsigned int count;
	struct rpcrdma_result result[RPCRDMA_MAX_CHUNKS];
};

/* What is between the data items that leave by themselves, and around them */
#define RPCRDMA_MAX_PARTS	(RPCRDMA_MAX_CHUNKS + 1)

/**
 * struct rpcrdma_part - consecutive octets of rq_res
 * @at: where they start
 * @len: how many
 */
struct rpcrdma_part {
	u32 at;
	u32 len;
};

/**
 * struct rpcrdma_reply_form - how a Reply travels
 * @num_parts: in use
 * @part: what does not go to Write chunks
 * @len: octets in all parts
 * @written: octets in Write chunks and the Reply chunk
 */
struct rpcrdma_reply_form {
	unsigned int num_parts;
	struct rpcrdma_part part[RPCRDMA_MAX_PARTS];
	u32 len;
	u32 written;
};

int rpcrdma_reply_choose(struct rpcrdma_reply_form *form,
			 struct rpcrdma_message *msg,
			 struct rpcrdma_results *results,
			 const struct xdr_buf *res, u32 threshold);
int rpcrdma_reply_walk(const struct rpcrdma_reply_form *form,
		       const struct rpcrdma_message *msg,
		       const struct rpcrdma_results *results,
		       rpcrdma_visit_t visit, void *data);

#endif /* RPCRDMA_SERVER_FORM_H */
