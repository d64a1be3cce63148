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

#define DEFAULT_SLOTS		128
#define DEFAULT_INLINE		16384

unsigned int rpcrdma_slot_table_entries = DEFAULT_SLOTS;
unsigned int rpcrdma_max_inline_read = DEFAULT_INLINE;
unsigned int rpcrdma_max_inline_write = DEFAULT_INLINE;
unsigned int rpcrdma_private_data = 1;
unsigned int rpcrdma_remote_invalidation = 1;

/* Fast registration work requests are the fifth of seven ways there were. */
#define FRWR			5

static unsigned int inline_write_padding;
static unsigned int memreg_strategy = FRWR;
static unsigned int pad_optimize;

static const unsigned int min_slots = 2;
static const unsigned int max_slots = 16384;
static const unsigned int min_inline = RPCRDMA_INLINE_MIN;
static const unsigned int max_inline = 65536;
static const unsigned int none;
static const unsigned int one = 1;
static const unsigned int frwr = FRWR;

#define TUNABLE(name, variable, low, high)			\
	{							\
		.procname	= (name),			\
		.data		= &(variable),			\
		.maxlen		= sizeof(unsigned int),		\
		.mode		= 0644,				\
		.proc_handler	= proc_douintvec_minmax,	\
		.extra1		= (void *)&(low),		\
		.extra2		= (void *)&(high),		\
	}

static struct ctl_table tunables[] = {
	TUNABLE("rdma_slot_table_entries", rpcrdma_slot_table_entries,
		min_slots, max_slots),
	TUNABLE("rdma_max_inline_read", rpcrdma_max_inline_read,
		min_inline, max_inline),
	TUNABLE("rdma_max_inline_write", rpcrdma_max_inline_write,
		min_inline, max_inline),
	TUNABLE("rdma_private_data", rpcrdma_private_data, none, one),
	TUNABLE("rdma_remote_invalidation", rpcrdma_remote_invalidation,
		none, one),
	TUNABLE("rdma_inline_write_padding", inline_write_padding, none, none),
	TUNABLE("rdma_memreg_strategy", memreg_strategy, frwr, frwr),
	TUNABLE("rdma_pad_optimize", pad_optimize, none, none),
};

static struct ctl_table_header *header;

/**
 * rpcrdma_client_sysctl_init - make the tunables visible
 *
 * Return: 0 or -ENOMEM.
 */
int rpcrdma_client_sysctl_init(void)
{
	if (!IS_ENABLED(CONFIG_SYSCTL))
		return 0;
	header = register_sysctl("sunrpc", tunables);
	return header ? 0 : -ENOMEM;
}

/**
 * rpcrdma_client_sysctl_exit - undo rpcrdma_client_sysctl_init()
 */
void rpcrdma_client_sysctl_exit(void)
{
	unregister_sysctl_table(header);
}
