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
	SVCRDMA_ARGS_WRITE,	/* data and what follows it in pages */
	SVCRDMA_ARGS_STREAM,	/* all in pages, as if from a byte stream */
};

enum svcrdma_piece_kind {
	SVCRDMA_PIECE_CHUNK,	/* moved by RDMA */
	SVCRDMA_PIECE_INLINE,	/* part of the message that was received */
	SVCRDMA_PIECE_PADDING,	/* zeros after a data item */
};

/**
 * struct svcrdma_piece - consecutive octets of a Call or Reply
 * @kind: where they come from or go to
 * @at: offset in octets into the local memory: the pages for the arguments of a
 *	Call, or the RPC message of a Reply
 * @octets: length in octets, at least one
 * @segment: memory of the requester; SVCRDMA_PIECE_CHUNK only
 * @skip: offset in octets into @segment, or into the inline part of the message
 *
 * On the stack of a walk, for one call of a svcrdma_visit_fn. @segment belongs to the
 * message.
 */
struct svcrdma_piece {
	enum svcrdma_piece_kind kind;
	u32 at;
	u32 octets;
	const struct rpcrdma_segment *segment;
	u32 skip;
};

/* Called for each piece. Any return value but zero ends the walk. */
typedef int (*svcrdma_visit_fn)(void *data, const struct svcrdma_piece *piece);

/**
 * struct svcrdma_pull_limits - what a requester may ask for
 * @reads: RDMA Reads that may be outstanding; zero if there can be none
 * @len: longest RPC message in octets
 * @pages: most pages for arguments that do not stay where they were received
 *
 * On the stack of the caller.
 */
struct svcrdma_pull_limits {
	unsigned int reads;
	u32 len;
	unsigned int pages;
};

/**
 * svcrdma_pull_needed - whether a part of a Call is in Read chunks
 * @msg: transport header of the Call
 *
 * Chunks of no octets do not count.
 *
 * Context: any.
 * Return: true if there are octets to pull.
 */
static inline bool svcrdma_pull_needed(const struct rpcrdma_message *msg)
{
	return msg->proc == RPCRDMA_NOMSG || msg->stream_len > msg->payload_len;
}

/**
 * svcrdma_args_len - how much of a Call goes to pages
 * @msg: transport header of the Call
 * @args: where nfsd finds the arguments
 *
 * Context: any.
 * Return: length in octets.
 */
static inline u32 svcrdma_args_len(const struct rpcrdma_message *msg, enum svcrdma_args args)
{
	switch (args) {
	case SVCRDMA_ARGS_WRITE:
		return msg->stream_len - msg->read[0].position;
	case SVCRDMA_ARGS_STREAM:
		return msg->stream_len;
	default:
		return 0;
	}
}

bool svcrdma_call_gss(const __be32 *call, u32 octets);
enum svcrdma_args svcrdma_choose_other_args(const struct rpcrdma_message *msg,
					    const __be32 *payload);

/**
 * svcrdma_choose_args - choose where nfsd finds the arguments of a Call
 * @msg: transport header of the Call
 * @payload: the inline part of the Call, if it has one
 *
 * Most Calls are all inline and not longer than a page. They stay where they were
 * received.
 *
 * Context: any.
 * Return: the place.
 */
static inline enum svcrdma_args svcrdma_choose_args(const struct rpcrdma_message *msg,
						    const __be32 *payload)
{
	if (!svcrdma_pull_needed(msg) && msg->payload_len <= PAGE_SIZE)
		return SVCRDMA_ARGS_INLINE;
	return svcrdma_choose_other_args(msg, payload);
}

bool svcrdma_call_truncated(const __be32 *call, u32 octets);
bool svcrdma_args_allowed(const struct rpcrdma_message *msg, enum svcrdma_args args,
			  const struct svcrdma_pull_limits *limits);
int svcrdma_args_walk(const struct rpcrdma_message *msg, enum svcrdma_args args, u32 from,
		      svcrdma_visit_fn visit, void *data);

/**
 * struct svcrdma_result - a data item of a Reply that may go to a Write chunk
 * @offset: offset in octets into rq_res
 * @length: length in octets, without padding
 * @chunk: the Write chunk that takes it, or NULL
 *
 * Part of a struct svcrdma_results. @chunk belongs to the message.
 */
struct svcrdma_result {
	u32 offset;
	u32 length;
	struct rpcrdma_chunk *chunk;
};

/**
 * struct svcrdma_results - the data items of one Reply
 * @count: elements of @result in use
 * @result: the data items, by ascending offset
 *
 * Part of a request; nfsd adds to it while it encodes the Reply.
 */
struct svcrdma_results {
	unsigned int count;
	struct svcrdma_result result[RPCRDMA_MAX_CHUNKS];
};

/* Before, between and after the data items that go to Write chunks */
#define SVCRDMA_MAX_PARTS	(RPCRDMA_MAX_CHUNKS + 1)

/**
 * struct svcrdma_part - consecutive octets of rq_res
 * @at: offset in octets
 * @len: length in octets
 *
 * Part of a struct svcrdma_reply_form.
 */
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
			 struct svcrdma_results *results, const struct xdr_buf *res,
			 u32 threshold);
int svcrdma_reply_walk(const struct svcrdma_reply_form *form,
		       const struct rpcrdma_message *msg,
		       const struct svcrdma_results *results,
		       svcrdma_visit_fn visit, void *data);

#endif /* SVCRDMA_FORM_H */
