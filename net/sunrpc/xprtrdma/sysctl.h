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
 * struct rpcrdma_lenience - what RPCRDMA_LENIENT() takes and what it makes of it
 * @low: the lowest value that is accepted
 * @high: the highest one
 * @used_low: what lower values have the effect of
 * @used_high: what higher values have the effect of
 * @told: not zero after the log has told that a value has another's effect
 *
 * Static, one for each such entry.
 */
struct rpcrdma_lenience {
	unsigned int low;
	unsigned int high;
	unsigned int used_low;
	unsigned int used_high;
	unsigned int told;
};

/*
 * An entry for an unsigned int that also accepts values which old sysctl.d files set and
 * which have no effect of their own. @low and so on are those of struct rpcrdma_lenience.
 * Who reads the variable limits it to @used_low and @used_high.
 */
#define RPCRDMA_LENIENT(name, variable, ...)				\
	{								\
		.procname	= name,					\
		.data		= &(variable),				\
		.maxlen		= sizeof(unsigned int),			\
		.mode		= 0644,					\
		.proc_handler	= rpcrdma_sysctl_lenient,		\
		.extra1		= &(struct rpcrdma_lenience){ __VA_ARGS__ },	\
	}

int rpcrdma_sysctl_lenient(rpcrdma_compat_const struct ctl_table *table, int write, void *buffer,
			   size_t *lenp, loff_t *ppos);

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
