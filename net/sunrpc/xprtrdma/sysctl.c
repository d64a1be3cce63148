// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What the sysctl tables of client/ and server/ share: settings that take values which
 * this transport cannot follow.
 */
#define pr_fmt(fmt) "rpcrdma: " fmt

#include <linux/minmax.h>
#include <linux/printk.h>

#include "sysctl.h"

/**
 * rpcrdma_sysctl_lenient - the proc_handler of RPCRDMA_LENIENT()
 * @table: the entry
 * @write: whether it is written
 * @buffer: what is written, or where to put what is read
 * @lenp: octets in @buffer
 * @ppos: position in the file
 *
 * The first value that has not the effect it asks for gets a line in the log, which says
 * what is used instead. Reading the file gives what was written.
 *
 * Context: may sleep.
 * Return: 0, or -EINVAL if the value is not in the range that is taken.
 */
int rpcrdma_sysctl_lenient(rpcrdma_compat_const struct ctl_table *table, int write, void *buffer,
			   size_t *lenp, loff_t *ppos)
{
	struct rpcrdma_lenience *lenience = table->extra1;
	struct ctl_table range = *table;
	unsigned int value, used;
	int ret;

	range.extra1 = &lenience->low;
	range.extra2 = &lenience->high;
	ret = proc_douintvec_minmax(&range, write, buffer, lenp, ppos);
	if (ret || !write)
		return ret;
	value = READ_ONCE(*(unsigned int *)table->data);
	used = clamp(value, lenience->used_low, lenience->used_high);
	if (used != value && !xchg(&lenience->told, 1))
		pr_notice("%s: %u is accepted, and has the effect of %u\n",
			  table->procname, value, used);
	return 0;
}
