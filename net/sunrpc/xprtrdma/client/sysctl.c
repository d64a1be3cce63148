// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Tunables in /proc/sys/sunrpc, under names that NFS/RDMA administrators know.
 * The number of slots takes effect with the next mount, the others with the next connection.
 * Without memory for the table the transport works with the defaults.
 */
#include "client_private.h"
#include "../sysctl.h"

unsigned int xprt_rdma_slot_table_entries = 128;
unsigned int xprt_rdma_max_inline_read = 16384;
unsigned int xprt_rdma_max_inline_write = 16384;
unsigned int xprt_rdma_private_data = 1;
unsigned int xprt_rdma_remote_invalidation = 1;
unsigned int xprt_rdma_version_max = RPCRDMA_VERSION_ONE;

/* Nothing reads these. Scripts set them, and the kernel's own module accepts the same. */
static unsigned int xprt_rdma_inline_write_padding;
static unsigned int xprt_rdma_memreg_strategy = 5;
static unsigned int xprt_rdma_pad_optimize;

static struct ctl_table xprt_rdma_table[] = {
	RPCRDMA_SETTING("rdma_slot_table_entries", xprt_rdma_slot_table_entries, 2, 16384),
	RPCRDMA_SETTING("rdma_max_inline_read", xprt_rdma_max_inline_read,
			RPCRDMA_INLINE_MIN, 65536),
	RPCRDMA_SETTING("rdma_max_inline_write", xprt_rdma_max_inline_write,
			RPCRDMA_INLINE_MIN, 65536),
	RPCRDMA_SETTING("rdma_private_data", xprt_rdma_private_data, 0, 1),
	RPCRDMA_SETTING("rdma_remote_invalidation", xprt_rdma_remote_invalidation, 0, 1),
	RPCRDMA_SETTING("rdma_version", xprt_rdma_version_max,
			RPCRDMA_VERSION_ONE, RPCRDMA_VERSION_MAX),
	RPCRDMA_SETTING("rdma_inline_write_padding", xprt_rdma_inline_write_padding, 0, 4096),
	RPCRDMA_SETTING("rdma_memreg_strategy", xprt_rdma_memreg_strategy, 0, 6),
	RPCRDMA_SETTING("rdma_pad_optimize", xprt_rdma_pad_optimize, 0, INT_MAX),
};

/* Return: for unregister_sysctl_table(); NULL without memory. */
struct ctl_table_header *xprt_rdma_sysctl_register(void)
{
	return register_sysctl("sunrpc", xprt_rdma_table);
}
