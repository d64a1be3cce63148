/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef RPCRDMA_SYSCTL_H
#define RPCRDMA_SYSCTL_H

#include <linux/sysctl.h>

/* An entry for an unsigned int that accepts two constants and what is between them */
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

#endif /* RPCRDMA_SYSCTL_H */
