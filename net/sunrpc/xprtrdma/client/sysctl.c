// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Tunables in /proc/sys/sunrpc, by the names that NFS/RDMA administrators
 * know. The number of slots takes effect with the next mount, an inline size
 * and what the server is told with the next connection. The rest is there
 * because scripts set it: each accepts nothing but what this transport does
 * anyway.
 */
#include <linux/sysctl.h>

#include "client_private.h"

#define XPRT_RDMA_DEFAULT_SLOTS		128
#define XPRT_RDMA_DEFAULT_INLINE	16384

unsigned int xprt_rdma_slot_table_entries = XPRT_RDMA_DEFAULT_SLOTS;
unsigned int xprt_rdma_max_inline_read = XPRT_RDMA_DEFAULT_INLINE;
unsigned int xprt_rdma_max_inline_write = XPRT_RDMA_DEFAULT_INLINE;
unsigned int xprt_rdma_private_data = 1;
unsigned int xprt_rdma_remote_invalidation = 1;

/* Fast registration work requests are the fifth of seven ways there were. */
#define XPRT_RDMA_FRWR	5

static unsigned int xprt_rdma_inline_write_padding;
static unsigned int xprt_rdma_memreg_strategy = XPRT_RDMA_FRWR;
static unsigned int xprt_rdma_pad_optimize;

static const unsigned int xprt_rdma_slots_min = 2;
static const unsigned int xprt_rdma_slots_max = 16384;
static const unsigned int xprt_rdma_inline_min = RPCRDMA_INLINE_MIN;
static const unsigned int xprt_rdma_inline_max = 65536;
static const unsigned int xprt_rdma_none;
static const unsigned int xprt_rdma_one = 1;
static const unsigned int xprt_rdma_frwr = XPRT_RDMA_FRWR;

#define XPRT_RDMA_TUNABLE(name, variable, low, high)		\
	{							\
		.procname	= (name),			\
		.data		= &(variable),			\
		.maxlen		= sizeof(unsigned int),		\
		.mode		= 0644,				\
		.proc_handler	= proc_douintvec_minmax,	\
		.extra1		= (void *)&(low),		\
		.extra2		= (void *)&(high),		\
	}

static struct ctl_table xprt_rdma_tunables[] = {
	XPRT_RDMA_TUNABLE("rdma_slot_table_entries",
			  xprt_rdma_slot_table_entries,
			  xprt_rdma_slots_min, xprt_rdma_slots_max),
	XPRT_RDMA_TUNABLE("rdma_max_inline_read", xprt_rdma_max_inline_read,
			  xprt_rdma_inline_min, xprt_rdma_inline_max),
	XPRT_RDMA_TUNABLE("rdma_max_inline_write", xprt_rdma_max_inline_write,
			  xprt_rdma_inline_min, xprt_rdma_inline_max),
	XPRT_RDMA_TUNABLE("rdma_private_data", xprt_rdma_private_data,
			  xprt_rdma_none, xprt_rdma_one),
	XPRT_RDMA_TUNABLE("rdma_remote_invalidation",
			  xprt_rdma_remote_invalidation,
			  xprt_rdma_none, xprt_rdma_one),
	XPRT_RDMA_TUNABLE("rdma_inline_write_padding",
			  xprt_rdma_inline_write_padding,
			  xprt_rdma_none, xprt_rdma_none),
	XPRT_RDMA_TUNABLE("rdma_memreg_strategy", xprt_rdma_memreg_strategy,
			  xprt_rdma_frwr, xprt_rdma_frwr),
	XPRT_RDMA_TUNABLE("rdma_pad_optimize", xprt_rdma_pad_optimize,
			  xprt_rdma_none, xprt_rdma_none),
};

static struct ctl_table_header *xprt_rdma_sysctl_header;

/**
 * xprt_rdma_sysctl_init - make the tunables visible
 *
 * Return: 0 or -ENOMEM.
 */
int xprt_rdma_sysctl_init(void)
{
	if (!IS_ENABLED(CONFIG_SYSCTL))
		return 0;
	xprt_rdma_sysctl_header = register_sysctl("sunrpc", xprt_rdma_tunables);
	return xprt_rdma_sysctl_header ? 0 : -ENOMEM;
}

/**
 * xprt_rdma_sysctl_exit - undo xprt_rdma_sysctl_init()
 */
void xprt_rdma_sysctl_exit(void)
{
	unregister_sysctl_table(xprt_rdma_sysctl_header);
}
