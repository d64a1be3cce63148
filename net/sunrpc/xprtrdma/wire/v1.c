// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RPC-over-RDMA version 1, RFC 8166.
 */
#include "codec.h"

/**
 * rpcrdma_v1_decode - decode what follows the fixed header fields
 * @msg: has the fixed header fields; the others are filled in
 * @buf: the received message
 * @len: octets received
 * @reader: the cursor, after the fixed header fields
 *
 * Implements RFC 8166 sections 4.2.4 and 4.6.
 *
 * Context: any.
 * Return: RPCRDMA_OK or the first mistake that was found.
 */
enum rpcrdma_reason rpcrdma_v1_decode(struct rpcrdma_message *msg,
				      const void *buf, u32 len,
				      struct rpcrdma_reader *reader)
{
	switch (msg->proc) {
	case RPCRDMA_MSG:
	case RPCRDMA_NOMSG:
		return rpcrdma_chunks_decode(msg, buf, len, reader);
	case RPCRDMA_MSGP:
		return RPCRDMA_BAD_MSGP;
	case RPCRDMA_DONE:
		return RPCRDMA_BAD_DONE;
	default:
		return RPCRDMA_BAD_PROC;
	}
}
