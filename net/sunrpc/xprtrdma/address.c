// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The address strings of an rpc_xprt, for both roles. sunrpc shows them in traces, sysfs and
 * debugfs.
 */
#include "address.h"

#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/xprt.h>

/*
 * Write the strings for the port. Others read them at any time. They may see digits of the old
 * port and of the new one, but always a string that ends.
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
 * RPC_DISPLAY_ADDR is allocated, because sunrpc's sysfs frees it when it sets another address.
 * The caller frees the last one.
 *
 * Return: 0 or -ENOMEM.
 */
int rpcrdma_address_describe(struct rpc_xprt *xprt, struct rpcrdma_address_strings *strings)
{
	const struct sockaddr *addr = (const struct sockaddr *)&xprt->addr;
	bool v6 = addr->sa_family == AF_INET6;
	const char **display = xprt->address_strings;
	char address[RPCBIND_MAXUADDRLEN];

	snprintf(strings->hex_address, sizeof(strings->hex_address), "%*phN", v6 ? 16 : 4,
		 v6 ? (const void *)&((const struct sockaddr_in6 *)addr)->sin6_addr :
		      (const void *)&((const struct sockaddr_in *)addr)->sin_addr);
	rpcrdma_address_describe_port(xprt, strings);
	rpc_ntop(addr, address, sizeof(address));
	display[RPC_DISPLAY_ADDR] = kstrdup(address, GFP_KERNEL);
	display[RPC_DISPLAY_PORT] = strings->port;
	display[RPC_DISPLAY_HEX_ADDR] = strings->hex_address;
	display[RPC_DISPLAY_HEX_PORT] = strings->hex_port;
	display[RPC_DISPLAY_PROTO] = "rdma";
	display[RPC_DISPLAY_NETID] = v6 ? "rdma6" : "rdma";
	return display[RPC_DISPLAY_ADDR] ? 0 : -ENOMEM;
}
