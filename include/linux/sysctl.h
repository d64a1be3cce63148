/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * For kernels before 6.6, where a table ends with an empty entry. Later ones have a macro,
 * which knows the length. The kernel uses a table until it is unregistered, so the copy
 * with that entry is static.
 */
#ifndef RPCRDMA_OVERLAY_LINUX_SYSCTL_H
#define RPCRDMA_OVERLAY_LINUX_SYSCTL_H

#include_next <linux/sysctl.h>

#ifndef register_sysctl

#define register_sysctl(path, table)					\
({									\
	static struct ctl_table overlay_table[ARRAY_SIZE(table) + 1];	\
									\
	memcpy(overlay_table, table, sizeof(table));			\
	register_sysctl(path, overlay_table);				\
})

#endif

#endif /* RPCRDMA_OVERLAY_LINUX_SYSCTL_H */
