// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The address strings of an rpc_xprt, for both roles. sunrpc shows them in
 * traces, sysfs and debugfs.
 */
#include "address.h"

#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/xprt.h>

/**
 * rpcrdma_address_describe_port - write the strings for a port
 * @xprt: the rpc_xprt, whose address has the port
 * @strings: its strings
 *
 * Others read these strings at any time. They may see digits of the old port
 * and of the new one, but always a string that ends.
 *
 * Context: any.
 */
void rpcrdma_address_describe_port(const struct rpc_xprt *xprt,
				   struct rpcrdma_address_strings *strings)
{
	unsigned short port = rpc_get_port((const struct sockaddr *)&xprt->addr);

	snprintf(strings->port, sizeof(strings->port), "%u", port);
	snprintf(strings->hex_port, sizeof(strings->hex_port), "%4hx", port);
}

/**
 * rpcrdma_address_describe - give an rpc_xprt its address strings
 * @xprt: the rpc_xprt, whose address is set
 * @strings: its strings
 *
 * RPC_DISPLAY_ADDR is allocated, because sunrpc's sysfs frees it when it sets
 * another address. The caller frees the last one.
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int rpcrdma_address_describe(struct rpc_xprt *xprt, struct rpcrdma_address_strings *strings)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&xprt->addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&xprt->addr;
	bool v6 = xprt->addr.ss_family == AF_INET6;
	const char **display = xprt->address_strings;
	char address[RPCBIND_MAXUADDRLEN];

	if (v6)
		snprintf(strings->hex_address, sizeof(strings->hex_address), "%pi6",
			 &in6->sin6_addr);
	else
		snprintf(strings->hex_address, sizeof(strings->hex_address), "%08x",
			 ntohl(in->sin_addr.s_addr));
	rpcrdma_address_describe_port(xprt, strings);
	rpc_ntop((const struct sockaddr *)&xprt->addr, address, sizeof(address));
	display[RPC_DISPLAY_ADDR] = kstrdup(address, GFP_KERNEL);
	display[RPC_DISPLAY_PORT] = strings->port;
	display[RPC_DISPLAY_HEX_ADDR] = strings->hex_address;
	display[RPC_DISPLAY_HEX_PORT] = strings->hex_port;
	display[RPC_DISPLAY_PROTO] = "rdma";
	display[RPC_DISPLAY_NETID] = v6 ? "rdma6" : "rdma";
	return display[RPC_DISPLAY_ADDR] ? 0 : -ENOMEM;
}
