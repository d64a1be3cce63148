// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The RDMA-CM private data of RPC-over-RDMA version 1, RFC 8797.
 */
#include "message.h"

#define PRIVATE_REMOTE_INV	0x01	/* R, the lowest bit of the flags */
#define SIZE_UNIT		1024

/* The format identifier and the version */
static const u8 private_id[] = { 0xf6, 0xab, 0x0e, 0x18, 1 };

/* Where the other fields are, in octets */
enum {
	PRIVATE_AT_FLAGS = sizeof(private_id),
	PRIVATE_AT_SEND_SIZE,
	PRIVATE_AT_RECV_SIZE,
};

/* Rounds down: this end must not announce more than it can receive or send. */
static u8 private_size_to_code(u32 size)
{
	if (size < RPCRDMA_INLINE_MIN)
		size = RPCRDMA_INLINE_MIN;
	if (size > RPCRDMA_INLINE_MAX)
		size = RPCRDMA_INLINE_MAX;
	return size / SIZE_UNIT - 1;
}

static u32 private_code_to_size(u8 code)
{
	return (code + 1) * SIZE_UNIT;
}

/**
 * rpcrdma_wire_encode_private - encode the private data of this end (RFC 8797 section 4)
 * @params: what this end announces. Sizes are rounded down to a multiple of
 *	1024 octets and limited to RPCRDMA_INLINE_MIN, which every end supports,
 *	and RPCRDMA_INLINE_MAX.
 * @octets: memory for the private data
 */
void rpcrdma_wire_encode_private(const struct rpcrdma_params *params,
				 u8 octets[RPCRDMA_PRIVATE_LEN])
{
	memcpy(octets, private_id, sizeof(private_id));
	octets[PRIVATE_AT_FLAGS] = params->remote_inv ? PRIVATE_REMOTE_INV : 0;
	octets[PRIVATE_AT_SEND_SIZE] = private_size_to_code(params->send_size);
	octets[PRIVATE_AT_RECV_SIZE] = private_size_to_code(params->recv_size);
}

/**
 * rpcrdma_wire_decode_private - decode the private data of the other end
 * @params: filled in, with the defaults of RFC 8166 if none is found
 * @data: private data as received, which may include data of other layers; may
 *	be NULL if @len is zero
 * @len: octets of @data
 *
 * The first format identifier that a known version and all other fields follow is
 * used. Others are taken for data of another layer.
 *
 * Return: true if it was found.
 */
bool rpcrdma_wire_decode_private(struct rpcrdma_params *params, const void *data, size_t len)
{
	const u8 *p = data;

	for (; len >= RPCRDMA_PRIVATE_LEN; p++, len--) {
		if (memcmp(p, private_id, sizeof(private_id)))
			continue;
		params->send_size = private_code_to_size(p[PRIVATE_AT_SEND_SIZE]);
		params->recv_size = private_code_to_size(p[PRIVATE_AT_RECV_SIZE]);
		params->remote_inv = p[PRIVATE_AT_FLAGS] & PRIVATE_REMOTE_INV;
		return true;
	}
	params->send_size = RPCRDMA_INLINE_MIN;
	params->recv_size = RPCRDMA_INLINE_MIN;
	params->remote_inv = false;
	return false;
}

/* The smaller of two sizes, rounded as the other end does it */
static u32 private_agreed_size(u32 send_size, u32 recv_size)
{
	return private_code_to_size(private_size_to_code(send_size < recv_size ? send_size :
										 recv_size));
}

/**
 * rpcrdma_wire_agree - compute the agreement of a connection (RFC 8797 sections 4.1, 4.2)
 * @client: what the end that connects announces
 * @server: what the end that accepts announces
 * @agreement: filled in, the same at both ends
 */
void rpcrdma_wire_agree(const struct rpcrdma_params *client, const struct rpcrdma_params *server,
			struct rpcrdma_agreement *agreement)
{
	agreement->call_threshold = private_agreed_size(client->send_size, server->recv_size);
	agreement->reply_threshold = private_agreed_size(server->send_size, client->recv_size);
	agreement->client_inv = client->remote_inv;
	agreement->server_inv = server->remote_inv;
	agreement->remote_inv = client->remote_inv && server->remote_inv;
}
