/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Golden messages: octets that the decoder must understand and the encoder must
 * produce. Those of version 2 have V2 in their names.
 */
#ifndef RPCRDMA_TEST_GOLDEN_H
#define RPCRDMA_TEST_GOLDEN_H

#include "../wire/message.h"

enum golden_id {
	GOLDEN_INLINE_CALL,
	GOLDEN_INLINE_REPLY,
	GOLDEN_READ_CHUNK,
	GOLDEN_TWO_READ_CHUNKS,
	GOLDEN_LONG_CALL,
	GOLDEN_LONG_CALL_READ_CHUNK,
	GOLDEN_WRITE_LIST,
	GOLDEN_ONE_READ_SEGMENT,
	GOLDEN_ONE_WRITE_SEGMENT,
	GOLDEN_REPLY_ONE_SEGMENT,
	GOLDEN_REPLY_CHUNK,
	GOLDEN_EVERYTHING,
	GOLDEN_REPLY_WRITE_LIST,
	GOLDEN_LONG_REPLY,
	GOLDEN_ERR_VERS,
	GOLDEN_ERR_CHUNK,
	GOLDEN_MSGP,
	GOLDEN_DONE,
	GOLDEN_BACKWARD_CALL,
	GOLDEN_BACKWARD_REPLY,
	GOLDEN_V2_INLINE_CALL,
	GOLDEN_V2_INLINE_REPLY,
	GOLDEN_V2_EVERYTHING,
	GOLDEN_V2_REPLY_WRITE_LIST,
	GOLDEN_V2_LONG_CALL,
	GOLDEN_V2_LONG_REPLY,
	GOLDEN_V2_ERR_VERS,
	GOLDEN_V2_ERR_BAD_XDR,
	GOLDEN_V2_ERR_CANT_REPLY,
	GOLDEN_V2_ERR_INVAL_PROC,
	GOLDEN_V2_ERR_INVAL_OPTION,
	GOLDEN_V2_OPTIONAL_CALL,
	GOLDEN_V2_OPTIONAL_REPLY,
	GOLDEN_V2_BACKWARD_CALL,
	GOLDEN_V2_BACKWARD_REPLY,
	GOLDEN_COUNT
};

/**
 * struct golden - a message, and the verdict of the end that receives it
 * @name: for test results and file names
 * @octets: the whole message
 * @len: number of octets
 * @end: what the receiving end is in the forward direction
 * @backward: whether that end expects messages of the backward direction
 * @verdict: expected verdict
 * @reason: expected reason
 * @version_max: the lowest version_max with which that end expects these two
 *
 * Constant, and exists as long as the module.
 */
struct golden {
	const char *name;
	const u8 *octets;
	u32 len;
	enum rpcrdma_end end;
	bool backward;
	enum rpcrdma_verdict verdict;
	enum rpcrdma_reason reason;
	u32 version_max;
};

extern const struct golden rpcrdma_golden_messages[GOLDEN_COUNT];

/* RDMA-CM private data, RFC 8797 section 4 */
extern const u8 rpcrdma_golden_private[RPCRDMA_PRIVATE_LEN];

#endif /* RPCRDMA_TEST_GOLDEN_H */
