// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The RDMA-CM private data of RPC-over-RDMA version 1, RFC 8797.
 */
#include "message.h"

#define PRIVATE_VERSION		1
#define PRIVATE_REMOTE_INV	0x01	/* R, the low bit of the flags */
#define SIZE_UNIT		1024

/* Where each field is; the format identifier comes first. */
enum {
	PRIVATE_AT_VERSION = 4,
	PRIVATE_AT_FLAGS = 5,
	PRIVATE_AT_SEND_SIZE = 6,
	PRIVATE_AT_RECV_SIZE = 7,
};

static const u8 private_id[] = { 0xf6, 0xab, 0x0e, 0x18 };

/* Rounds down: a peer must not be promised more than there is. */
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
 * rpcrdma_wire_encode_private - write what this end offers
 * @params: the offer. Sizes are rounded down to a multiple of 1024
 *	octets, between RPCRDMA_INLINE_MIN, which every end must support, and
 *	RPCRDMA_INLINE_MAX.
 * @octets: where to
 *
 * Context: any.
 */
void rpcrdma_wire_encode_private(const struct rpcrdma_params *params,
				 u8 octets[RPCRDMA_PRIVATE_LEN])
{
	memcpy(octets, private_id, sizeof(private_id));
	octets[PRIVATE_AT_VERSION] = PRIVATE_VERSION;
	octets[PRIVATE_AT_FLAGS] = params->remote_inv ? PRIVATE_REMOTE_INV : 0;
	octets[PRIVATE_AT_SEND_SIZE] = private_size_to_code(params->send_size);
	octets[PRIVATE_AT_RECV_SIZE] = private_size_to_code(params->recv_size);
}

static bool private_matches(const u8 *p)
{
	return !memcmp(p, private_id, sizeof(private_id)) &&
	       p[PRIVATE_AT_VERSION] == PRIVATE_VERSION;
}

/**
 * rpcrdma_wire_decode_private - find and read what the other end offers
 * @params: filled in, with the defaults of RFC 8166 if nothing is found
 * @data: private data as received, with whatever other layers put there; may
 *	be NULL if @len is zero
 * @len: octets
 *
 * The first format identifier that has a known version and all of its fields
 * behind it counts. One that has not is another layer's data by chance.
 *
 * Context: any.
 * Return: whether it was found.
 */
bool rpcrdma_wire_decode_private(struct rpcrdma_params *params,
				 const void *data, size_t len)
{
	const u8 *p = data;

	for (; len >= RPCRDMA_PRIVATE_LEN; p++, len--) {
		if (!private_matches(p))
			continue;
		params->send_size =
			private_code_to_size(p[PRIVATE_AT_SEND_SIZE]);
		params->recv_size =
			private_code_to_size(p[PRIVATE_AT_RECV_SIZE]);
		params->remote_inv = p[PRIVATE_AT_FLAGS] & PRIVATE_REMOTE_INV;
		return true;
	}
	params->send_size = RPCRDMA_INLINE_MIN;
	params->recv_size = RPCRDMA_INLINE_MIN;
	params->remote_inv = false;
	return false;
}

/* The smaller of two sizes, as the other end computes it from the codes. */
static u32 private_agreed_size(u32 send_size, u32 recv_size)
{
	u8 send = private_size_to_code(send_size);
	u8 recv = private_size_to_code(recv_size);

	return private_code_to_size(send < recv ? send : recv);
}

/**
 * rpcrdma_wire_agree - what the offers of both ends make of a connection
 * @client: what the end that connects offers
 * @server: what the end that accepts offers
 * @agreement: filled in
 *
 * Both ends come to the same result.
 *
 * Context: any.
 */
void rpcrdma_wire_agree(const struct rpcrdma_params *client,
			const struct rpcrdma_params *server,
			struct rpcrdma_agreement *agreement)
{
	agreement->call_threshold = private_agreed_size(client->send_size,
							server->recv_size);
	agreement->reply_threshold = private_agreed_size(server->send_size,
							 client->recv_size);
	agreement->client_inv = client->remote_inv;
	agreement->server_inv = server->remote_inv;
	agreement->remote_inv = client->remote_inv && server->remote_inv;
}
