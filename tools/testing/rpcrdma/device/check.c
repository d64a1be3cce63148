// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Rules that a user of the device has broken: they are counted by name, and the first ones
 * of each device are printed, one line each.
 */
#include "mem.h"

const char * const mem_rule_names[MEM_NUM_RULES] = {
	[MEM_RULE_STATE] = "state",
	[MEM_RULE_OPCODE] = "opcode",
	[MEM_RULE_SGE_COUNT] = "sge-count",
	[MEM_RULE_INLINE] = "inline",
	[MEM_RULE_SQ_FULL] = "sq-full",
	[MEM_RULE_RQ_FULL] = "rq-full",
	[MEM_RULE_CQ_OVERFLOW] = "cq-overflow",
	[MEM_RULE_CQ_POLL] = "cq-poll",
	[MEM_RULE_LKEY] = "lkey",
	[MEM_RULE_ADDRESS] = "address",
	[MEM_RULE_ACCESS] = "access",
	[MEM_RULE_REG_VALID] = "reg-valid",
	[MEM_RULE_REG_KEY] = "reg-key",
	[MEM_RULE_REG_PAGES] = "reg-pages",
	[MEM_RULE_INVALIDATE] = "invalidate",
	[MEM_RULE_MR_IN_USE] = "mr-in-use",
	[MEM_RULE_MAPPING] = "mapping",
	[MEM_RULE_UNMAPPED] = "unmapped",
	[MEM_RULE_DIRECTION] = "direction",
	[MEM_RULE_SYNC] = "sync",
	[MEM_RULE_SEND_TOUCHED] = "send-touched",
	[MEM_RULE_SEND_REUSED] = "send-reused",
	[MEM_RULE_RECV_TOUCHED] = "recv-touched",
	[MEM_RULE_PSN] = "psn",
	[MEM_RULE_READS] = "reads",
	[MEM_RULE_READ_SINK] = "read-sink",
	[MEM_RULE_LIMIT] = "limit",
	[MEM_RULE_DRAIN] = "drain",
	[MEM_RULE_LEFT] = "left",
};

/* Of all devices, also those that are gone */
atomic_t mem_violations;

/**
 * mem_violation - report that a rule is broken
 * @dev: the device
 * @rule: the rule
 * @fmt: details, without a newline
 *
 * Context: any.
 */
void mem_violation(struct mem_dev *dev, enum mem_rule rule, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	atomic_inc(&dev->violations[rule]);
	atomic_inc(&mem_violations);
	if (atomic_dec_if_positive(&dev->lines) < 0)
		return;
	va_start(args, fmt);
	vaf.va = &args;
	pr_err("rdma_mem: violation: %s: %s: %pV\n", mem_rule_names[rule],
	       dev_name(&dev->ib.dev), &vaf);
	va_end(args);
}

static void check_left(struct mem_dev *dev, const char *what, const atomic_t *count)
{
	int left = atomic_read(count);

	if (left)
		mem_violation(dev, MEM_RULE_LEFT, "%d %s", left, what);
}

/**
 * mem_check_left - report objects of a device that is closed
 * @dev: the device, whose users are gone
 *
 * Context: any.
 */
void mem_check_left(struct mem_dev *dev)
{
	check_left(dev, "PDs", &dev->num_pds);
	check_left(dev, "CQs", &dev->num_cqs);
	check_left(dev, "QPs", &dev->num_qps);
	check_left(dev, "MRs", &dev->num_mrs);
	check_left(dev, "SRQs", &dev->num_srqs);
	check_left(dev, "AHs", &dev->num_ahs);
	check_left(dev, "listeners", &dev->num_listeners);
	check_left(dev, "mappings", &dev->num_maps);
	if (atomic_long_read(&dev->memory))
		mem_violation(dev, MEM_RULE_LEFT, "%ld octets of its users' objects",
			      atomic_long_read(&dev->memory));
}

/**
 * mem_check_mapped - is memory still mapped, of which a completion says that it is done?
 * @dev: the device
 * @addr: its address
 * @len: octets
 *
 * Context: any.
 * Return: whether nothing says that it is not.
 */
bool mem_check_mapped(struct mem_dev *dev, u64 addr, u64 len)
{
	if (mem_dma_ok(dev, addr, len))
		return true;
	mem_violation(dev, MEM_RULE_UNMAPPED,
		      "address %#llx, %llu octets, before the completion was polled", addr, len);
	return false;
}

/**
 * mem_check_send - has the buffer of a Send changed since it was posted?
 * @qp: the queue pair
 * @wqe: the work request
 * @rule: the rule that is broken if it has
 *
 * Context: any.
 * Return: whether it is as it was.
 */
bool mem_check_send(struct mem_qp *qp, const struct mem_swqe *wqe, enum mem_rule rule)
{
	unsigned int i;
	u32 sum;

	if (!wqe->summed)
		return true;
	for (i = 0; i < wqe->num_sge; i++)
		if (!mem_check_mapped(qp->dev, wqe->sge[i].addr, wqe->sge[i].length))
			return false;
	if (!mem_list_sum(qp->dev, qp->ib.pd, wqe->sge, wqe->num_sge, &sum) || sum == wqe->sum)
		return true;
	mem_violation(qp->dev, rule, "QP %u: a Send of %u octets, address %#llx", qp->number,
		      wqe->length, wqe->num_sge ? wqe->sge->addr : 0);
	return false;
}

/**
 * mem_stat_sum - a counter of a device
 * @dev: the device
 * @stat: the counter
 *
 * Context: any.
 * Return: its value over all CPUs.
 */
u64 mem_stat_sum(struct mem_dev *dev, enum mem_stat stat)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(dev->stats, cpu)->value[stat]);
	return sum;
}
