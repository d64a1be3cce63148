// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Limits of devices. A preset imitates a device, or is artificial; a parameter for each
 * limit overrides it. They count for devices that are added afterwards.
 *
 * Numbers of a preset come from the mainline driver (Linux 6.12) in drivers/infiniband
 * that is named beside them. Where the driver asks the firmware, the number is what cards
 * of the usual kind have, marked "fw". Limits that a driver has and this device does not
 * are left out.
 */
#include <linux/module.h>
#include <linux/string.h>

#include "mem.h"

/* ib_mad's completion queue on any device, with the lab's recv_queue_size of ib_core */
#define MIN_CQE		(128 + 4096)

#define MANY		65536

struct mem_preset {
	const char *name;
	struct mem_limits limits;
};

/* What a preset does not say */
#define USUAL							\
	.max_send_sge = 16, .max_recv_sge = 16, .max_sge_rd = 16,	\
	.max_fast_reg_page_list_len = 256, .sg_gaps = 0,		\
	.max_qp_wr = 16384, .max_cqe = 1 << 20,				\
	.max_qp_rd_atom = 16, .max_qp_init_rd_atom = 16,		\
	.max_mr = 1 << 20, .max_qp = MANY,				\
	.max_srq = MANY, .max_srq_wr = 16384,				\
	.max_mr_size = LONG_MAX, .max_inline = 256

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const struct mem_preset presets[] = {
	{ "usual", { USUAL } },
	{ "mlx5", { USUAL,
		.max_send_sge = 30, .max_recv_sge = 32,	/* fw: ConnectX-4 and later */
		.max_sge_rd = 30,			/* MLX5_MAX_SGE_RD */
		.max_fast_reg_page_list_len = 65536,	/* log_max_klm_list_size, fw */
		.sg_gaps = 1,				/* IBK_SG_GAPS_REG, main.c */
		.max_qp_wr = 32768, .max_cqe = (1 << 22) - 1,	/* fw */
		.max_qp_rd_atom = 16, .max_qp_init_rd_atom = 16 } },	/* log_max_ra, fw */
	{ "mlx4", { USUAL,
		.max_send_sge = 32, .max_recv_sge = 32,	/* fw: ConnectX-3 */
		.max_sge_rd = 30,			/* MLX4_MAX_SGE_RD */
		.max_fast_reg_page_list_len = 511,	/* MLX4_MAX_FAST_REG_PAGES */
		.max_qp_wr = 16351, .max_cqe = (1 << 22) - 1 } },	/* fw */
	{ "irdma", { USUAL,	/* hw/irdma for E810, as RoCE */
		.max_send_sge = 13, .max_recv_sge = 13,	/* IRDMA_MAX_WQ_FRAGMENT_COUNT */
		.max_sge_rd = 13,			/* IRDMA_MAX_SGE_RD */
		.max_fast_reg_page_list_len = 262144,	/* IRDMA_MAX_PAGES_PER_FMR */
		.max_qp_wr = (32768 - 258) / 8,		/* IRDMA_MAX_QP_WRS() */
		.max_qp_rd_atom = 127,			/* ICRDMA_MAX_IRD_SIZE */
		.max_qp_init_rd_atom = 255,		/* ICRDMA_MAX_ORD_SIZE */
		.max_mr_size = 0x200000000000L,		/* IRDMA_MAX_MR_SIZE */
		.max_inline = 101 } },			/* IRDMA_MAX_INLINE_DATA_SIZE */
	{ "bnxt_re", { USUAL,
		.max_send_sge = 6, .max_recv_sge = 6, .max_sge_rd = 6,	/* qplib_sp.c */
		.max_fast_reg_page_list_len = 512,	/* MAX_PBL_LVL_1_PGS */
		.max_qp_wr = 4351,			/* BNXT_VAR_MAX_WQE - 1 */
		.max_qp_rd_atom = 126,			/* BNXT_QPLIB_MAX_OUT_RD_ATOM */
		.max_qp_init_rd_atom = 126,
		.max_qp = 65536, .max_mr = 65536,	/* BNXT_RE_MAX_QPC_COUNT, _MRW_ */
		.max_mr_size = 1L << 39,		/* BNXT_RE_MAX_MR_SIZE_HIGH */
		.max_inline = 6 * 16 } },		/* SGEs of 16 octets, qplib_sp.c */
	{ "qedr", { USUAL,
		.max_send_sge = 4, .max_recv_sge = 4, .max_sge_rd = 4,	/* RDMA_MAX_SGE_PER_* */
		.max_fast_reg_page_list_len = 8192,	/* max_mr / 8, verbs.c */
		.max_mr = 65536,			/* fw */
		.max_qp_wr = 32768,			/* QEDR_MAX_SQE, rounded */
		.max_qp_rd_atom = 32,			/* verbs.c: of 4096 / 80 elements */
		.max_qp_init_rd_atom = 32,
		.keeps_init = 1 } },			/* qed_roce_sp_modify_responder() */
	{ "hns", { USUAL,
		.max_send_sge = 32, .max_recv_sge = 32, .max_sge_rd = 32,	/* fw: HIP08 */
		.max_fast_reg_page_list_len = 512,	/* HNS_ROCE_FRMR_MAX_PA */
		.max_qp_wr = 32768,			/* fw */
		.max_qp_rd_atom = 128, .max_qp_init_rd_atom = 128 } },	/* fw */
	{ "cxgb4", { USUAL,	/* hw/cxgb4 for T6 */
		.iwarp = 1,				/* c4iw_port_immutable(), provider.c */
		.max_send_sge = 17,			/* T4_MAX_SEND_SGE: (320 - 40) / 16 */
		.max_recv_sge = 4,			/* T4_MAX_RECV_SGE */
		.max_sge_rd = 1,			/* provider.c */
		.max_fast_reg_page_list_len = 128,	/* T4_MAX_FR_DSGL_DEPTH */
		.max_qp_wr = 8190,			/* t4_max_rq_size, device.c */
		.max_cqe = 65518,			/* t4_max_cq_depth, device.c */
		.max_qp_rd_atom = 32,			/* c4iw_max_read_depth, cm.c */
		.max_qp_init_rd_atom = 32,
		.max_inline = 280 } },			/* T4_MAX_SEND_INLINE: 320 - 40 */
	{ "siw", { USUAL,	/* sw/siw */
		.iwarp = 1,
		.max_send_sge = 6, .max_recv_sge = 6,	/* SIW_MAX_SGE */
		.max_sge_rd = 1,			/* SIW_MAX_SGE_RD */
		.max_fast_reg_page_list_len = 256,	/* SIW_MAX_SGE_PBL */
		.max_qp_wr = 32768,			/* SIW_MAX_QP_WR */
		.max_qp_rd_atom = 128,			/* SIW_MAX_ORD_QP */
		.max_qp_init_rd_atom = 128,		/* SIW_MAX_IRD_QP */
		.max_inline = 80 } },			/* SIW_MAX_INLINE: 5 SGEs of 16 */
	{ "rxe", { USUAL,	/* sw/rxe/rxe_param.h */
		.max_send_sge = 32, .max_recv_sge = 32,	/* RXE_MAX_SGE */
		.max_sge_rd = 32,			/* RXE_MAX_SGE_RD */
		.max_fast_reg_page_list_len = 512,	/* RXE_MAX_FMR_PAGE_LIST_LEN */
		.max_qp_wr = 1 << 20,			/* RXE_MAX_QP_WR */
		.max_cqe = (1 << 15) - 1,		/* RXE_MAX_LOG_CQE */
		.max_qp_rd_atom = 128,			/* RXE_MAX_QP_RD_ATOM */
		.max_qp_init_rd_atom = 128,		/* RXE_MAX_QP_INIT_RD_ATOM */
		.max_mr = (1 << 19) - 1, .max_inline = 512 } },

	{ "one-sge", { USUAL, .max_send_sge = 1, .max_recv_sge = 1, .max_sge_rd = 1 } },
	{ "one-page", { USUAL, .max_fast_reg_page_list_len = 1 } },
	{ "small-mrs", { USUAL, .max_fast_reg_page_list_len = 16,
		.max_mr_size = 64 * 1024 } },
	{ "few-mrs", { USUAL, .max_mr = 64 } },
	{ "few-qps", { USUAL, .max_qp = 4, .max_qp_wr = 256, .max_srq = 0 } },
	{ "no-srqs", { USUAL, .max_srq = 0 } },
	{ "few-srq-wrs", { USUAL, .max_srq_wr = 32 } },
	{ "few-reads", { USUAL, .max_qp_rd_atom = 1, .max_qp_init_rd_atom = 1 } },
	{ "no-reads", { USUAL, .max_qp_rd_atom = 0, .max_qp_init_rd_atom = 0 } },
	{ "registered-reads", { USUAL, .max_sgl_rd = 3 } },	/* mlx5 has a number, fw */
	{ "no-inline", { USUAL, .max_inline = 0 } },
	{ "gaps", { USUAL, .sg_gaps = 1, .max_fast_reg_page_list_len = 30 } },
	{ "shallow", { USUAL, .max_qp_wr = 128, .max_srq_wr = 128, .max_cqe = MIN_CQE } },
	{ "deep", { USUAL, .max_send_sge = 32, .max_recv_sge = 32, .max_sge_rd = 32,
		.max_fast_reg_page_list_len = 4096, .sg_gaps = 1, .max_qp_wr = MANY,
		.max_qp_rd_atom = 128, .max_qp_init_rd_atom = 128, .max_inline = 512 } },
};

#pragma GCC diagnostic pop

static const struct mem_preset *preset = &presets[0];
static DEFINE_MUTEX(preset_lock);	/* protects preset */

static int preset_set(const char *value, const struct kernel_param *kp)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(presets); i++) {
		if (!sysfs_streq(value, presets[i].name))
			continue;
		mutex_lock(&preset_lock);
		preset = &presets[i];
		mutex_unlock(&preset_lock);
		return 0;
	}
	return -EINVAL;
}

static int preset_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%s\n", READ_ONCE(preset)->name);
}

static const struct kernel_param_ops preset_ops = { .set = preset_set, .get = preset_get };

module_param_cb(preset, &preset_ops, NULL, 0644);
MODULE_PARM_DESC(preset, "limits of devices added from now on (default: usual)");

/* The names of all presets, for scenarios that try each */
static int presets_get(char *buffer, const struct kernel_param *kp)
{
	int i, len = 0;

	for (i = 0; i < ARRAY_SIZE(presets); i++)
		len += sysfs_emit_at(buffer, len, "%s\n", presets[i].name);
	return len;
}

static const struct kernel_param_ops presets_ops = { .get = presets_get };

module_param_cb(presets, &presets_ops, NULL, 0444);
MODULE_PARM_DESC(presets, "names of all presets");

/* Each limit has a parameter that overrides the preset's, unless it is -1. */
#define MEM_LIMIT_PARAM(limit)				\
	static long param_##limit = -1;			\
	module_param_named(limit, param_##limit, long, 0644)

MEM_LIMIT_PARAM(max_send_sge);
MODULE_PARM_DESC(max_send_sge, "SGEs of a Send or Write");
MEM_LIMIT_PARAM(max_recv_sge);
MODULE_PARM_DESC(max_recv_sge, "SGEs of a Receive");
MEM_LIMIT_PARAM(max_sge_rd);
MODULE_PARM_DESC(max_sge_rd, "SGEs of an RDMA Read");
MEM_LIMIT_PARAM(max_fast_reg_page_list_len);
MODULE_PARM_DESC(max_fast_reg_page_list_len, "pages of a registration");
MEM_LIMIT_PARAM(sg_gaps);
MODULE_PARM_DESC(sg_gaps, "registrations with gaps, 0 or 1");
MEM_LIMIT_PARAM(max_qp_wr);
MODULE_PARM_DESC(max_qp_wr, "work requests of a queue");
MEM_LIMIT_PARAM(max_cqe);
MODULE_PARM_DESC(max_cqe, "entries of a completion queue, at least 4224");
MEM_LIMIT_PARAM(max_qp_rd_atom);
MODULE_PARM_DESC(max_qp_rd_atom, "RDMA Reads that a queue pair takes at once");
MEM_LIMIT_PARAM(max_qp_init_rd_atom);
MODULE_PARM_DESC(max_qp_init_rd_atom, "RDMA Reads that a queue pair sends at once");
MEM_LIMIT_PARAM(max_mr);
MODULE_PARM_DESC(max_mr, "registrations");
MEM_LIMIT_PARAM(max_qp);
MODULE_PARM_DESC(max_qp, "queue pairs");
MEM_LIMIT_PARAM(max_srq);
MODULE_PARM_DESC(max_srq, "shared receive queues");
MEM_LIMIT_PARAM(max_srq_wr);
MODULE_PARM_DESC(max_srq_wr, "Receives of a shared receive queue");
MEM_LIMIT_PARAM(max_mr_size);
MODULE_PARM_DESC(max_mr_size, "octets of a registration");
MEM_LIMIT_PARAM(max_inline);
MODULE_PARM_DESC(max_inline, "octets of inline data");

MEM_LIMIT_PARAM(max_sgl_rd);
MODULE_PARM_DESC(max_sgl_rd, "elements of a Read for which ib_core registers no memory; 0: any");
MEM_LIMIT_PARAM(keeps_init);
MODULE_PARM_DESC(keeps_init, "what was posted before RTR may never complete, 0 or 1");

/* Like MEM_LIMIT_PARAM(), but not static, because the unit tests set it. */
long mem_param_iwarp = -1;
module_param_named(iwarp, mem_param_iwarp, long, 0644);
MODULE_PARM_DESC(iwarp, "devices are iWARP's, with its rules, 0 or 1");

static void override(long *limit, long param)
{
	if (param >= 0)
		*limit = param;
}

static void override_all(struct mem_limits *limits)
{
	override(&limits->max_send_sge, param_max_send_sge);
	override(&limits->max_recv_sge, param_max_recv_sge);
	override(&limits->max_sge_rd, param_max_sge_rd);
	override(&limits->max_fast_reg_page_list_len, param_max_fast_reg_page_list_len);
	override(&limits->sg_gaps, param_sg_gaps);
	override(&limits->max_qp_wr, param_max_qp_wr);
	override(&limits->max_cqe, param_max_cqe);
	override(&limits->max_qp_rd_atom, param_max_qp_rd_atom);
	override(&limits->max_qp_init_rd_atom, param_max_qp_init_rd_atom);
	override(&limits->max_mr, param_max_mr);
	override(&limits->max_qp, param_max_qp);
	override(&limits->max_srq, param_max_srq);
	override(&limits->max_srq_wr, param_max_srq_wr);
	override(&limits->max_mr_size, param_max_mr_size);
	override(&limits->max_inline, param_max_inline);
	override(&limits->max_sgl_rd, param_max_sgl_rd);
	override(&limits->keeps_init, param_keeps_init);
	override(&limits->iwarp, mem_param_iwarp);
}

/**
 * mem_limits_get - the limits of a device that is added now
 * @limits: filled
 *
 * Context: process context.
 * Return: 0, or -EINVAL if a parameter is more than the device can do, or less than the
 * connection manager needs.
 */
int mem_limits_get(struct mem_limits *limits)
{
	mutex_lock(&preset_lock);
	*limits = preset->limits;
	mutex_unlock(&preset_lock);
	override_all(limits);
	limits->iwarp = !!limits->iwarp;
	/* A Read Request of iWARP names one sink. */
	if (limits->iwarp)
		limits->max_sge_rd = min(limits->max_sge_rd, 1L);
	if (limits->max_send_sge > MEM_MAX_SGE || limits->max_recv_sge > MEM_MAX_SGE ||
	    limits->max_sge_rd > MEM_MAX_SGE || limits->max_inline > MEM_MAX_INLINE ||
	    limits->max_qp_rd_atom > 255 || limits->max_qp_init_rd_atom > 255 ||
	    limits->max_cqe < MIN_CQE || limits->max_cqe > INT_MAX / 2 ||
	    limits->max_qp_wr > INT_MAX / 2 || limits->max_srq_wr > INT_MAX / 2 ||
	    limits->max_fast_reg_page_list_len > INT_MAX)
		return -EINVAL;
	return 0;
}

/**
 * mem_limits_apply - report the limits of a device
 * @dev: the device
 * @attr: what ib_core asks, filled
 */
void mem_limits_apply(struct mem_dev *dev, struct ib_device_attr *attr)
{
	const struct mem_limits *limits = &dev->limits;

	attr->max_send_sge = limits->max_send_sge;
	attr->max_recv_sge = limits->max_recv_sge;
	attr->max_sge_rd = limits->max_sge_rd;
	attr->max_fast_reg_page_list_len = limits->max_fast_reg_page_list_len;
	if (limits->sg_gaps)
		attr->kernel_cap_flags |= IBK_SG_GAPS_REG;
	attr->max_qp_wr = limits->max_qp_wr;
	attr->max_cqe = limits->max_cqe;
	attr->max_qp_rd_atom = limits->max_qp_rd_atom;
	attr->max_qp_init_rd_atom = limits->max_qp_init_rd_atom;
	attr->max_mr = limits->max_mr;
	attr->max_qp = limits->max_qp;
	attr->max_srq = limits->max_srq;
	attr->max_srq_wr = limits->max_srq ? limits->max_srq_wr : 0;
	attr->max_srq_sge = limits->max_srq ? limits->max_recv_sge : 0;
	attr->max_mr_size = limits->max_mr_size;
	attr->max_sgl_rd = limits->max_sgl_rd;
	if (limits->max_srq)
		attr->device_cap_flags |= IB_DEVICE_SRQ_RESIZE;
}
