// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Files of each device in debugfs, in the folder rdma_mem/NAME:
 *
 *	stats		counters, one "name value" a line; writing anything clears them.
 *			memory is not one: octets that the device has for its users' objects
 *	violations	rules that were broken, in the same form; the same
 *	fault		faults on demand; it explains itself
 *	fault-hits	how many have happened
 *	objects		how many objects there are
 *	latency		ns that an operation takes at least
 *	bandwidth	octets per second that the device sends, 0: no limit; a message of
 *			one packet does not wait for longer ones
 *
 * rdma_mem/violations is the number of all violations, also of devices that are gone.
 */
#include <linux/debugfs.h>
#include <linux/netdevice.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "mem.h"

static struct dentry *mem_debugfs;

static const char * const stat_names[MEM_NUM_STATS] = {
	[MEM_STAT_DOORBELLS] = "doorbells",
	[MEM_STAT_INTERRUPTS] = "interrupts",
	[MEM_STAT_COMPLETIONS] = "completions",
	[MEM_STAT_SENDS] = "sends",
	[MEM_STAT_SENDS_INV] = "sends_inv",
	[MEM_STAT_WRITES] = "writes",
	[MEM_STAT_WRITES_IMM] = "writes_imm",
	[MEM_STAT_READS] = "reads",
	[MEM_STAT_READS_INV] = "reads_inv",
	[MEM_STAT_REGISTRATIONS] = "registrations",
	[MEM_STAT_INVALIDATIONS] = "invalidations",
	[MEM_STAT_REMOTE_INVALIDATIONS] = "remote_invalidations",
	[MEM_STAT_RECEIVES] = "receives",
	[MEM_STAT_OCTETS] = "octets",
	[MEM_STAT_INLINE_OCTETS] = "inline_octets",
	[MEM_STAT_DATAGRAMS] = "datagrams",
	[MEM_STAT_DATAGRAMS_LOST] = "datagrams_lost",
	[MEM_STAT_RNR_NAKS] = "rnr_naks",
	[MEM_STAT_RETRIES] = "retries",
	[MEM_STAT_FLUSHED] = "flushed",
	[MEM_STAT_LOCAL_ERRORS] = "local_errors",
	[MEM_STAT_REMOTE_ERRORS] = "remote_errors",
	[MEM_STAT_ASYNC_EVENTS] = "async_events",
};

static int stats_show(struct seq_file *m, void *v)
{
	struct mem_dev *dev = m->private;
	int i;

	for (i = 0; i < MEM_NUM_STATS; i++)
		seq_printf(m, "%s %llu\n", stat_names[i], mem_stat_sum(dev, i));
	seq_printf(m, "memory %ld\n", atomic_long_read(&dev->memory));
	return 0;
}

static ssize_t stats_write(struct file *file, const char __user *data, size_t len,
			   loff_t *at)
{
	struct mem_dev *dev = file_inode(file)->i_private;
	int cpu, i;

	for_each_possible_cpu(cpu)
		for (i = 0; i < MEM_NUM_STATS; i++)
			WRITE_ONCE(per_cpu_ptr(dev->stats, cpu)->value[i], 0);
	return len;
}

static int violations_show(struct seq_file *m, void *v)
{
	struct mem_dev *dev = m->private;
	int i;

	for (i = 0; i < MEM_NUM_RULES; i++)
		if (atomic_read(&dev->violations[i]))
			seq_printf(m, "%s %d\n", mem_rule_names[i],
				   atomic_read(&dev->violations[i]));
	return 0;
}

static ssize_t violations_write(struct file *file, const char __user *data, size_t len,
				loff_t *at)
{
	struct mem_dev *dev = file_inode(file)->i_private;
	int i;

	for (i = 0; i < MEM_NUM_RULES; i++)
		atomic_set(&dev->violations[i], 0);
	return len;
}

static int fault_show(struct seq_file *m, void *v)
{
	mem_fault_show(m->private, m);
	return 0;
}

static ssize_t fault_write(struct file *file, const char __user *data, size_t len,
			   loff_t *at)
{
	struct mem_dev *dev = file_inode(file)->i_private;
	char *text, *rest, *line;
	int ret = 0;

	if (len > PAGE_SIZE)
		return -E2BIG;
	text = memdup_user_nul(data, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	rest = text;
	while (!ret && (line = strsep(&rest, "\n")))
		if (*line)
			ret = mem_fault_parse(dev, line);
	kfree(text);
	return ret ? ret : len;
}

static int objects_show(struct seq_file *m, void *v)
{
	struct mem_dev *dev = m->private;

	seq_printf(m, "pds %d\ncqs %d\nqps %d\nmrs %d\nsrqs %d\nahs %d\n",
		   atomic_read(&dev->num_pds), atomic_read(&dev->num_cqs),
		   atomic_read(&dev->num_qps), atomic_read(&dev->num_mrs),
		   atomic_read(&dev->num_srqs), atomic_read(&dev->num_ahs));
	return 0;
}

DEFINE_SHOW_ATTRIBUTE(objects);

#define MEM_FILE_OPS(name)						\
static int name##_open(struct inode *inode, struct file *file)		\
{									\
	return single_open(file, name##_show, inode->i_private);	\
}									\
									\
static const struct file_operations name##_fops = {			\
	.owner = THIS_MODULE,						\
	.open = name##_open,						\
	.read = seq_read,						\
	.write = name##_write,						\
	.llseek = seq_lseek,						\
	.release = single_release,					\
}

MEM_FILE_OPS(stats);
MEM_FILE_OPS(violations);
MEM_FILE_OPS(fault);

/**
 * mem_debugfs_add - add the files of a device
 * @dev: the device
 * @name: its name
 *
 * Context: process context.
 */
void mem_debugfs_add(struct mem_dev *dev, const char *name)
{
	struct dentry *dir = debugfs_create_dir(name, mem_debugfs);

	dev->debugfs = dir;
	debugfs_create_file("stats", 0600, dir, dev, &stats_fops);
	debugfs_create_file("violations", 0600, dir, dev, &violations_fops);
	debugfs_create_file("fault", 0600, dir, dev, &fault_fops);
	debugfs_create_file("objects", 0400, dir, dev, &objects_fops);
	debugfs_create_atomic_t("fault-hits", 0600, dir, &dev->fault_hits);
	debugfs_create_u64("latency", 0600, dir, &dev->latency);
	debugfs_create_u64("bandwidth", 0600, dir, &dev->bandwidth);
}

/**
 * mem_debugfs_remove - remove the files of a device
 * @dev: the device
 *
 * Context: process context.
 */
void mem_debugfs_remove(struct mem_dev *dev)
{
	debugfs_remove(dev->debugfs);
}

/* The folder of all devices */
void mem_debugfs_init(void)
{
	mem_debugfs = debugfs_create_dir("rdma_mem", NULL);
	debugfs_create_atomic_t("violations", 0600, mem_debugfs, &mem_violations);
}

void mem_debugfs_exit(void)
{
	debugfs_remove(mem_debugfs);
}
