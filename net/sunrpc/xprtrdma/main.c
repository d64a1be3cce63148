// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Module init and exit: what starts, in which order, and ends in reverse.
 */

#include <linux/module.h>

static int __init rpcrdma_init(void)
{
	/*
	 * The unit tests run in a loaded module. Without them there is nothing
	 * to load yet, and refusing is what keeps an administrator from
	 * believing that NFS/RDMA is available.
	 */
	if (IS_ENABLED(CONFIG_SUNRPC_XPRT_RDMA_KUNIT_TEST))
		return 0;
	pr_err("rpcrdma: this build has no transport yet; use the kernel's own module\n");
	return -EOPNOTSUPP;
}

static void __exit rpcrdma_exit(void)
{
}

module_init(rpcrdma_init);
module_exit(rpcrdma_exit);

/* nfs-utils and sunrpc ask for the transport by these names. */
MODULE_ALIAS("rpcrdma6");
MODULE_ALIAS("svcrdma");
MODULE_ALIAS("xprtrdma");
MODULE_DESCRIPTION("RPC-over-RDMA transport for NFS client and server");
MODULE_LICENSE("Dual BSD/GPL");
