/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What a receiver must make of a message: the rules of RFC 8166, of the draft of version 2 and
 * of message.h once more, in the simplest form. It shares no code with the decoder, counts with
 * 64 bits, and is slow. The fuzzer compares the decoder with it.
 */
#ifndef RPCRDMA_WIRE_MODEL_H
#define RPCRDMA_WIRE_MODEL_H

#include "../wire/message.h"

/* A chunk as it is in the message. The words of its segments begin at @word. */
struct model_chunk {
	u32 position;
	u64 length;
	u32 count;
	u32 word;
};

struct model {
	const u8 *buf;
	u32 len;
	u32 word;		/* to be read next */
	bool cut_off;		/* it was not there */

	bool used;		/* by an end that received it */
	bool ignored;		/* whoever receives it drops it */
	enum rpcrdma_error error;	/* of the answer to a Call, or none */
	enum rpcrdma_direction direction;
	u32 version;
	u32 proc;
	u32 inv_handle;
	u32 header_len;
	u32 payload_len;
	u64 stream_len;

	u32 segments;
	u32 read_segments;	/* these are at the start of the Read list */
	u32 read_list;		/* its first word */
	u32 reads;
	u32 writes;
	bool has_reply;
	struct model_chunk read[RPCRDMA_MAX_CHUNKS];
	struct model_chunk write[RPCRDMA_MAX_CHUNKS];
	struct model_chunk reply;
};

void model_read(struct model *model, const void *buf, u32 len, u32 version_max);
enum rpcrdma_verdict model_verdict(const struct model *model, enum rpcrdma_end end,
				   bool backward, enum rpcrdma_error *error);
const char *model_differs(const struct model *model, const struct rpcrdma_message *msg);

#endif /* RPCRDMA_WIRE_MODEL_H */
