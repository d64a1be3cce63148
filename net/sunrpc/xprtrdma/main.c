// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Module init and exit: what starts, in which order, and ends in reverse.
 */

#include <linux/module.h>

#include "client/client.h"
#include "conn/conn.h"
#include "server/server.h"

static int __init rpcrdma_init(void)
{
	int err;

	err = rpcrdma_conn_init();
	if (err)
		return err;
	err = svcrdma_init();
	if (err)
		goto err_conn;
	err = xprt_rdma_init();
	if (err)
		goto err_server;
	return 0;

err_server:
	svcrdma_exit();
err_conn:
	rpcrdma_conn_exit();
	return err;
}

static void __exit rpcrdma_exit(void)
{
	xprt_rdma_exit();
	svcrdma_exit();
	rpcrdma_conn_exit();
}

module_init(rpcrdma_init);
module_exit(rpcrdma_exit);

/* sunrpc and rdma-core's load lists ask for the transport by these names. */
MODULE_ALIAS("rpcrdma6");
MODULE_ALIAS("svcrdma");
MODULE_ALIAS("xprtrdma");
/* DKMS installs beside a module of the kernel's own only what has a version. */
MODULE_VERSION("0.1");
MODULE_DESCRIPTION("RPC-over-RDMA transport for NFS client and server");
MODULE_LICENSE("Dual BSD/GPL");
