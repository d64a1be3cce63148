// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Faults on demand. A fault counts the operations of a kind, and does something at the
 * n-th. The file "fault" of a device takes them; reading it explains its lines.
 */
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "mem.h"

/* A fault. The device's list owns it; it is freed when it has happened. */
struct mem_fault {
	struct list_head entry;
	enum mem_fault_op op;
	unsigned int left;	/* operations until it happens, this one included */
	struct mem_verdict verdict;
};

static const char * const op_names[MEM_NUM_OPS] = {
	[MEM_OP_SEND] = "send",
	[MEM_OP_SEND_INV] = "send-inv",
	[MEM_OP_WRITE] = "write",
	[MEM_OP_READ] = "read",
	[MEM_OP_REG] = "reg",
	[MEM_OP_LOCAL_INV] = "local-inv",
	[MEM_OP_RECV] = "recv",
	[MEM_OP_POST_SEND] = "post-send",
	[MEM_OP_POST_RECV] = "post-recv",
	[MEM_OP_DATAGRAM] = "datagram",
	[MEM_OP_STOP] = "stop",
};

/* Names of the statuses, and of the other actions, by their value */
static const char * const status_names[] = {
	[IB_WC_LOC_LEN_ERR] = "loc-len-err",
	[IB_WC_LOC_QP_OP_ERR] = "loc-qp-op-err",
	[IB_WC_LOC_EEC_OP_ERR] = "loc-eec-op-err",
	[IB_WC_LOC_PROT_ERR] = "loc-prot-err",
	[IB_WC_WR_FLUSH_ERR] = "wr-flush-err",
	[IB_WC_MW_BIND_ERR] = "mw-bind-err",
	[IB_WC_BAD_RESP_ERR] = "bad-resp-err",
	[IB_WC_LOC_ACCESS_ERR] = "loc-access-err",
	[IB_WC_REM_INV_REQ_ERR] = "rem-inv-req-err",
	[IB_WC_REM_ACCESS_ERR] = "rem-access-err",
	[IB_WC_REM_OP_ERR] = "rem-op-err",
	[IB_WC_RETRY_EXC_ERR] = "retry-exc-err",
	[IB_WC_RNR_RETRY_EXC_ERR] = "rnr-retry-exc-err",
	[IB_WC_LOC_RDD_VIOL_ERR] = "loc-rdd-viol-err",
	[IB_WC_REM_INV_RD_REQ_ERR] = "rem-inv-rd-req-err",
	[IB_WC_REM_ABORT_ERR] = "rem-abort-err",
	[IB_WC_INV_EECN_ERR] = "inv-eecn-err",
	[IB_WC_INV_EEC_STATE_ERR] = "inv-eec-state-err",
	[IB_WC_FATAL_ERR] = "fatal-err",
	[IB_WC_RESP_TIMEOUT_ERR] = "resp-timeout-err",
	[IB_WC_GENERAL_ERR] = "general-err",
};

static const char * const action_names[] = {
	[MEM_ACTION_LATE] = "late",
	[MEM_ACTION_HOLD] = "hold",
	[MEM_ACTION_UNTIL_END] = "until-end",
	[MEM_ACTION_LOSE] = "lose",
	[MEM_ACTION_DUPLICATE] = "duplicate",
	[MEM_ACTION_NOMEM] = "nomem",
	[MEM_ACTION_QP_FATAL] = "qp-fatal",
	[MEM_ACTION_GONE] = "gone",
};

/**
 * mem_fault - count an operation
 * @dev: the device
 * @op: the kind of operation
 *
 * Context: any.
 * Return: what the caller has to do about it.
 */
struct mem_verdict mem_fault(struct mem_dev *dev, enum mem_fault_op op)
{
	struct mem_verdict verdict = {};
	struct mem_fault *fault, *next;
	unsigned long flags;

	if (likely(!atomic_read(&dev->num_faults)))
		return verdict;
	spin_lock_irqsave(&dev->fault_lock, flags);
	list_for_each_entry_safe(fault, next, &dev->faults, entry) {
		if (fault->op != op || --fault->left)
			continue;
		verdict = fault->verdict;
		list_del(&fault->entry);
		kfree(fault);
		atomic_dec(&dev->num_faults);
		atomic_inc(&dev->fault_hits);
		break;
	}
	spin_unlock_irqrestore(&dev->fault_lock, flags);
	return verdict;
}

/* The place of a word in a list of names, which may have gaps, or -EINVAL */
static int find_name(const char * const *names, int num, const char *word)
{
	int i;

	for (i = 0; i < num; i++)
		if (names[i] && !strcmp(names[i], word))
			return i;
	return -EINVAL;
}

/* The action whose name is a word */
static int parse_action(const char *word, struct mem_verdict *verdict)
{
	int i = find_name(status_names, ARRAY_SIZE(status_names), word);

	if (i >= 0) {
		verdict->action = MEM_ACTION_STATUS;
		verdict->status = i;
		return 0;
	}
	i = find_name(action_names, ARRAY_SIZE(action_names), word);
	if (i < 0)
		return i;
	verdict->action = i;
	return 0;
}

/* Some actions make sense for some operations only. */
static bool fault_makes_sense(const struct mem_fault *fault)
{
	bool post = fault->op == MEM_OP_POST_SEND || fault->op == MEM_OP_POST_RECV;
	bool datagram = fault->op == MEM_OP_DATAGRAM;
	bool stop = fault->op == MEM_OP_STOP;

	switch (fault->verdict.action) {
	case MEM_ACTION_NOMEM:
		return post || stop;
	case MEM_ACTION_LOSE:
	case MEM_ACTION_DUPLICATE:
		return datagram;
	case MEM_ACTION_QP_FATAL:
		return !post && !datagram && !stop;
	default:
		return !post && !stop;
	}
}

static int fault_parse(struct mem_fault *fault, char *line)
{
	char *op = strsep(&line, " "), *nth = strsep(&line, " ");
	char *action = strsep(&line, " ");
	int ret;

	if (!op || !nth || !action)
		return -EINVAL;
	ret = find_name(op_names, MEM_NUM_OPS, op);
	if (ret < 0)
		return ret;
	fault->op = ret;
	if (kstrtouint(nth, 10, &fault->left) || !fault->left)
		return -EINVAL;
	ret = parse_action(action, &fault->verdict);
	if (ret)
		return ret;
	if (fault->verdict.action == MEM_ACTION_LATE) {
		if (!line || kstrtouint(line, 10, &fault->verdict.count) ||
		    fault->verdict.count > INT_MAX)
			return -EINVAL;
	} else if (line) {
		return -EINVAL;
	}
	return fault_makes_sense(fault) ? 0 : -EINVAL;
}

/**
 * mem_fault_parse - add the fault of a line
 * @dev: the device
 * @line: the line, which is changed
 *
 * Context: process context.
 * Return: 0, -EINVAL, or -ENOMEM.
 */
int mem_fault_parse(struct mem_dev *dev, char *line)
{
	struct mem_fault *fault;
	int ret;

	line = strim(line);
	if (!strcmp(line, "release")) {
		mem_fault_release(dev);
		return 0;
	}
	if (!strcmp(line, "clear")) {
		mem_fault_free(dev);
		mem_fault_release(dev);
		return 0;
	}
	fault = kzalloc(sizeof(*fault), GFP_KERNEL);
	if (!fault)
		return -ENOMEM;
	ret = fault_parse(fault, line);
	if (ret) {
		kfree(fault);
		return ret;
	}
	spin_lock_irq(&dev->fault_lock);
	list_add_tail(&fault->entry, &dev->faults);
	atomic_inc(&dev->num_faults);
	spin_unlock_irq(&dev->fault_lock);
	return 0;
}

/**
 * mem_fault_show - print the faults of a device, and how to write them
 * @dev: the device
 * @m: the file
 *
 * Context: process context.
 */
void mem_fault_show(struct mem_dev *dev, struct seq_file *m)
{
	struct mem_fault *fault;
	int i;

	seq_puts(m, "# OP NTH ACTION: at the NTH operation of a kind from now, once\n# OP:");
	for (i = 0; i < MEM_NUM_OPS; i++)
		seq_printf(m, " %s", op_names[i]);
	seq_puts(m, "\n# ACTION: a status, of send to recv and datagram:");
	for (i = 0; i < ARRAY_SIZE(status_names); i++)
		if (status_names[i])
			seq_printf(m, " %s", status_names[i]);
	seq_puts(m, "\n"
		 "#   late N: the completion waits for N more of its queue, or 100 ms\n"
		 "#   hold: the completion and those behind it wait for: release\n"
		 "#   until-end: they wait until 100 ms after the queue pair has ended\n"
		 "#   lose, duplicate: datagram only\n"
		 "#   nomem: post-send, post-recv, and stop, which is to go to error, only\n"
		 "#   qp-fatal: the queue pair goes to error by itself\n"
		 "#   gone: the device is removed\n"
		 "# clear: forget all faults, and release\n");
	spin_lock_irq(&dev->fault_lock);
	list_for_each_entry(fault, &dev->faults, entry) {
		const struct mem_verdict *verdict = &fault->verdict;

		seq_printf(m, "%s %u %s", op_names[fault->op], fault->left,
			   verdict->action == MEM_ACTION_STATUS ?
			   status_names[verdict->status] : action_names[verdict->action]);
		if (verdict->action == MEM_ACTION_LATE)
			seq_printf(m, " %u", verdict->count);
		seq_putc(m, '\n');
	}
	spin_unlock_irq(&dev->fault_lock);
}

/**
 * mem_fault_free - forget all faults that have not happened
 * @dev: the device
 *
 * Context: process context.
 */
void mem_fault_free(struct mem_dev *dev)
{
	struct mem_fault *fault, *next;

	spin_lock_irq(&dev->fault_lock);
	list_for_each_entry_safe(fault, next, &dev->faults, entry) {
		list_del(&fault->entry);
		kfree(fault);
	}
	atomic_set(&dev->num_faults, 0);
	spin_unlock_irq(&dev->fault_lock);
}
