// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Module init and exit. A layer starts after those that it uses. But status/ starts first: it
 * has to see the first and the last connection.
 */
#include <linux/module.h>

#include "main.h"
#include "objects.h"

static int __init rpcrdma_init(void)
{
	int err;

	err = rpcrdma_status_init();
	if (err)
		return err;
	err = rpcrdma_conn_init();
	if (err)
		goto err_status;
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
err_status:
	rpcrdma_status_exit();
	return err;
}

static void __exit rpcrdma_exit(void)
{
	xprt_rdma_exit();
	svcrdma_exit();
	rpcrdma_conn_exit();
	rpcrdma_status_exit();
	rpcrdma_objects_exit();
}

module_init(rpcrdma_init);
module_exit(rpcrdma_exit);

/* sunrpc and the load lists of rdma-core request the module by these names. */
MODULE_ALIAS("rpcrdma6");
MODULE_ALIAS("svcrdma");
MODULE_ALIAS("xprtrdma");
/* DKMS replaces the module of the kernel only by one that has a version. */
MODULE_VERSION(RPCRDMA_VERSION);
MODULE_DESCRIPTION("RPC-over-RDMA transport for NFS client and server");
MODULE_LICENSE("Dual BSD/GPL");
