// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RPC-over-RDMA version 1, RFC 8166.
 */
#include "codec.h"

/* rdma_err, RFC 8166 section 4.5; ERR_VERS is the same in all versions */
#define V1_ERR_CHUNK		2

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

/**
 * rpcrdma_v1_decode_error - decode an RDMA_ERROR other than ERR_VERS
 * @msg: has the fixed header fields; the others are filled in
 * @error: rdma_err
 *
 * Implements RFC 8166 section 4.5.
 *
 * Context: any.
 * Return: RPCRDMA_OK or RPCRDMA_BAD_ERROR.
 */
enum rpcrdma_reason rpcrdma_v1_decode_error(struct rpcrdma_message *msg,
					    u32 error)
{
	if (error != V1_ERR_CHUNK)
		return RPCRDMA_BAD_ERROR;
	msg->error = RPCRDMA_ERR_BAD_XDR;
	msg->header_len = RPCRDMA_V1_ERROR_LEN;
	return RPCRDMA_OK;
}

/**
 * rpcrdma_v1_encode_error - encode an RDMA_ERROR other than ERR_VERS
 * @p: memory after the fixed header fields
 *
 * Implements RFC 8166 section 4.5.2: ERR_CHUNK stands for all other errors.
 *
 * Context: any.
 * Return: the word after the last one that was written.
 */
__be32 *rpcrdma_v1_encode_error(__be32 *p)
{
	*p++ = cpu_to_be32(V1_ERR_CHUNK);
	return p;
}
