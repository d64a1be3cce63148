/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef RPCRDMA_ADDRESS_H
#define RPCRDMA_ADDRESS_H

#include <linux/in6.h>

struct rpc_xprt;

/* Strings that an rpc_xprt points to: a part of the structure that contains it. */
struct rpcrdma_address_strings {
	char hex_address[2 * sizeof(struct in6_addr) + 1];
	char port[sizeof("65535")];
	char hex_port[sizeof("ffff")];
};

int rpcrdma_address_describe(struct rpc_xprt *xprt, struct rpcrdma_address_strings *strings);
void rpcrdma_address_describe_port(const struct rpc_xprt *xprt,
				   struct rpcrdma_address_strings *strings);

#endif /* RPCRDMA_ADDRESS_H */
