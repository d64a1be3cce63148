// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What version 2 has before the chunk lists, and its options:
 * draft-cel-nfsv4-rpcrdma-version-two-02.
 */
#include "codec.h"

/* No option is supported, so what rdma_opttype is and what follows does not matter. */
static enum rpcrdma_reason v2_decode_option(struct rpcrdma_reader *reader)
{
	const __be32 *p = rpcrdma_take(reader, 2);

	if (!p || !rpcrdma_take(reader, ((u64)be32_to_cpu(p[1]) + 3) / sizeof(*p)))
		return RPCRDMA_BAD_TRUNCATED;
	return RPCRDMA_BAD_OPTION;
}

/* Decode what follows the fixed fields (draft 5.2): rdma_direction or rdma_optdir first. */
enum rpcrdma_reason rpcrdma_v2_decode(struct rpcrdma_message *msg, struct rpcrdma_reader *reader)
{
	bool option = msg->proc == RPCRDMA_OPTIONAL;
	const __be32 *p;
	u32 direction;

	if (!option && msg->proc != RPCRDMA_MSG && msg->proc != RPCRDMA_NOMSG)
		return RPCRDMA_BAD_PROC;
	p = rpcrdma_take(reader, 1);
	if (!p)
		return RPCRDMA_BAD_TRUNCATED;
	direction = be32_to_cpup(p);
	if (direction != RPCRDMA_CALL && direction != RPCRDMA_REPLY)
		return RPCRDMA_BAD_MSG_TYPE;
	msg->direction = direction;
	if (option)
		return v2_decode_option(reader);
	p = rpcrdma_take(reader, 1);
	if (!p)
		return RPCRDMA_BAD_TRUNCATED;
	msg->inv_handle = be32_to_cpup(p);
	return rpcrdma_chunks_decode(msg, reader);
}
