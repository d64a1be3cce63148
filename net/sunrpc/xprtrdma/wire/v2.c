// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RPC-over-RDMA version 2, draft-cel-nfsv4-rpcrdma-version-two-02.
 */
#include "codec.h"

/* Octets of a whole RDMA2_ERROR */
#define V2_ERROR_LEN		20
#define V2_ERR_CANT_REPLY_LEN	32

/* Words of rdma_opttype and of the length of rdma_optinfo */
#define V2_OPTION_WORDS		2

/* Read rdma_direction or rdma_optdir. */
static enum rpcrdma_reason v2_take_direction(struct rpcrdma_message *msg,
					     struct rpcrdma_reader *reader)
{
	const __be32 *p = rpcrdma_take(reader, 1);
	u32 direction;

	if (!p)
		return RPCRDMA_BAD_TRUNCATED;
	direction = be32_to_cpup(p);
	if (direction != RPCRDMA_CALL && direction != RPCRDMA_REPLY)
		return RPCRDMA_BAD_MSG_TYPE;
	msg->direction = direction;
	return RPCRDMA_OK;
}

static enum rpcrdma_reason v2_decode_chunk_lists(struct rpcrdma_message *msg,
						 const void *buf, u32 len,
						 struct rpcrdma_reader *reader)
{
	enum rpcrdma_reason reason = v2_take_direction(msg, reader);
	const __be32 *p;

	if (reason)
		return reason;
	p = rpcrdma_take(reader, 1);
	if (!p)
		return RPCRDMA_BAD_TRUNCATED;
	msg->inv_handle = be32_to_cpup(p);
	return rpcrdma_chunks_decode(msg, buf, len, reader);
}

/* No option is supported, so what may follow rdma_optinfo does not matter. */
static enum rpcrdma_reason v2_decode_optional(struct rpcrdma_message *msg,
					      struct rpcrdma_reader *reader)
{
	enum rpcrdma_reason reason = v2_take_direction(msg, reader);
	const __be32 *p;

	if (reason)
		return reason;
	p = rpcrdma_take(reader, V2_OPTION_WORDS);
	if (!p || !rpcrdma_take(reader, ((u64)be32_to_cpup(p + 1) + 3) / sizeof(__be32)))
		return RPCRDMA_BAD_TRUNCATED;
	return RPCRDMA_BAD_OPTION;
}

/**
 * rpcrdma_v2_decode - decode what follows the fixed header fields
 * @msg: has the fixed header fields; the others are filled in
 * @buf: the received message
 * @len: octets received
 * @reader: the cursor, after the fixed header fields
 *
 * Implements draft 5.2.
 *
 * Context: any.
 * Return: RPCRDMA_OK or the first mistake that was found.
 */
enum rpcrdma_reason rpcrdma_v2_decode(struct rpcrdma_message *msg,
				      const void *buf, u32 len,
				      struct rpcrdma_reader *reader)
{
	switch (msg->proc) {
	case RPCRDMA_MSG:
	case RPCRDMA_NOMSG:
		return v2_decode_chunk_lists(msg, buf, len, reader);
	case RPCRDMA_OPTIONAL:
		return v2_decode_optional(msg, reader);
	default:
		return RPCRDMA_BAD_PROC;
	}
}

/**
 * rpcrdma_v2_encode - encode what follows the fixed header fields
 * @msg: an RDMA2_MSG or RDMA2_NOMSG
 * @p: memory after the fixed header fields, which is large enough
 *
 * Implements draft 5.2.
 *
 * Context: any.
 * Return: the word after the last one that was written.
 */
__be32 *rpcrdma_v2_encode(const struct rpcrdma_message *msg, __be32 *p)
{
	*p++ = cpu_to_be32(msg->direction);
	*p++ = cpu_to_be32(msg->inv_handle);
	return rpcrdma_chunks_encode(msg, p);
}

/**
 * rpcrdma_v2_decode_error - decode an RDMA2_ERROR other than RDMA2_ERR_VERS
 * @msg: has the fixed header fields; the others are filled in
 * @error: rdma_err
 * @reader: the cursor, after rdma_err
 *
 * Implements draft 5.2.
 *
 * Context: any.
 * Return: RPCRDMA_OK or RPCRDMA_BAD_ERROR.
 */
enum rpcrdma_reason rpcrdma_v2_decode_error(struct rpcrdma_message *msg,
					    u32 error,
					    struct rpcrdma_reader *reader)
{
	switch (error) {
	case RPCRDMA_ERR_BAD_XDR:
	case RPCRDMA_ERR_INVAL_PROC:
	case RPCRDMA_ERR_INVAL_OPTION:
		break;
	case RPCRDMA_ERR_CANT_REPLY:
		if (rpcrdma_take_present(reader, &msg->processed) || !rpcrdma_take(reader, 2))
			return RPCRDMA_BAD_ERROR;
		break;
	default:
		return RPCRDMA_BAD_ERROR;
	}
	msg->error = error;
	msg->header_len = rpcrdma_v2_error_len(msg);
	return RPCRDMA_OK;
}

/**
 * rpcrdma_v2_error_len - the size of an RDMA2_ERROR other than RDMA2_ERR_VERS
 * @msg: the RDMA2_ERROR
 *
 * Context: any.
 * Return: octets.
 */
u32 rpcrdma_v2_error_len(const struct rpcrdma_message *msg)
{
	return msg->error == RPCRDMA_ERR_CANT_REPLY ? V2_ERR_CANT_REPLY_LEN :
						      V2_ERROR_LEN;
}

/**
 * rpcrdma_v2_encode_error - encode an RDMA2_ERROR other than RDMA2_ERR_VERS
 * @msg: the RDMA2_ERROR
 * @p: memory after the fixed header fields, which is large enough
 *
 * Implements draft 5.2.
 *
 * Context: any.
 * Return: the word after the last one that was written.
 */
__be32 *rpcrdma_v2_encode_error(const struct rpcrdma_message *msg, __be32 *p)
{
	*p++ = cpu_to_be32(msg->error);
	if (msg->error == RPCRDMA_ERR_CANT_REPLY) {
		*p++ = cpu_to_be32(msg->processed);
		*p++ = cpu_to_be32(msg->short_segment);
		*p++ = cpu_to_be32(msg->length_needed);
	}
	return p;
}
