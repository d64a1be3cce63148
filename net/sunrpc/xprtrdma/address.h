/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The address strings of an rpc_xprt, for both roles.
 */
#ifndef RPCRDMA_ADDRESS_H
#define RPCRDMA_ADDRESS_H

#include <linux/in6.h>

struct rpc_xprt;

/**
 * struct rpcrdma_address_strings - strings that an rpc_xprt points to
 * @hex_address: its address in hexadecimal digits
 * @port: its port in decimal digits
 * @hex_port: its port in hexadecimal digits
 *
 * Part of the structure that contains the rpc_xprt, and freed with it.
 */
struct rpcrdma_address_strings {
	char hex_address[2 * sizeof(struct in6_addr) + 1];
	char port[sizeof("65535")];
	char hex_port[sizeof("ffff")];
};

int rpcrdma_address_describe(struct rpc_xprt *xprt, struct rpcrdma_address_strings *strings);
void rpcrdma_address_describe_port(const struct rpc_xprt *xprt,
				   struct rpcrdma_address_strings *strings);

#endif /* RPCRDMA_ADDRESS_H */
