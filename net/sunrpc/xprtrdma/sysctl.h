/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the sysctl tables of client/ and server/ share.
 */
#ifndef RPCRDMA_SYSCTL_H
#define RPCRDMA_SYSCTL_H

#include <linux/sysctl.h>

/*
 * An entry for an unsigned int that accepts the constants @low and @high and
 * what is between them.
 */
#define RPCRDMA_SETTING(name, variable, low, high)			\
	{								\
		.procname	= name,					\
		.data		= &(variable),				\
		.maxlen		= sizeof(unsigned int),			\
		.mode		= 0644,					\
		.proc_handler	= proc_douintvec_minmax,		\
		.extra1		= &(unsigned int){ low },		\
		.extra2		= &(unsigned int){ high },		\
	}

/**
 * rpcrdma_sysctl_status - the status of registering a table
 * @header: what register_sysctl() returned
 *
 * Return: 0 or -ENOMEM. A kernel without CONFIG_SYSCTL registers nothing,
 * which is no error.
 */
static inline int rpcrdma_sysctl_status(const struct ctl_table_header *header)
{
	return header || !IS_ENABLED(CONFIG_SYSCTL) ? 0 : -ENOMEM;
}

#endif /* RPCRDMA_SYSCTL_H */
