/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What differs between the kernels that rdma_mem is built for: Debian's 6.1, 6.12 and 7.3.
 * No other file of it knows the kernel's version.
 */
#ifndef RDMA_MEM_COMPAT_H
#define RDMA_MEM_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/swiotlb.h>
#include <linux/version.h>
#include <rdma/ib_verbs.h>

/* The last parameter of create_cq. The device does not look at it. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define mem_udata	uverbs_attr_bundle
#else
#define mem_udata	ib_udata
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* Whether a device may have DMA operations of its own */
#if defined(CONFIG_ARCH_HAS_DMA_OPS) || defined(CONFIG_DMA_OPS)
#define MEM_DMA_OPS
#endif

/* Before 6.19 they map pages. The end of a mapping has the same parameters. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
#define MEM_DMA_PAGES
#define mem_unmap_op	unmap_page
#else
#define mem_unmap_op	unmap_phys
#endif

/*
 * Whether an address is of a bounce buffer. Where there may be several pools, modules cannot
 * ask; any address counts as one then.
 */
static inline bool mem_is_bounced(struct device *dev, phys_addr_t addr)
{
#if defined(CONFIG_SWIOTLB_DYNAMIC)
	return true;
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	return swiotlb_find_pool(dev, addr);
#else
	return is_swiotlb_buffer(dev, addr);
#endif
}

/* The parameters of reg_user_mr between its PD and its udata. It always fails. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define MEM_REG_USER_MR_ARGS	u64 start, u64 length, u64 virt_addr, int access, \
				struct ib_dmah *dmah
#else
#define MEM_REG_USER_MR_ARGS	u64 start, u64 length, u64 virt_addr, int access
#endif

/* Later kernels resize completion queues of user space alone. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
static inline void
mem_set_resize_cq(struct ib_device *ib, int (*resize)(struct ib_cq *cq, int cqe,
						      struct ib_udata *udata))
{
	ib->ops.resize_cq = resize;
}
#else
static inline void
mem_set_resize_cq(struct ib_device *ib, int (*resize)(struct ib_cq *cq, int cqe,
						      struct ib_udata *udata))
{
}

static inline int ib_resize_cq(struct ib_cq *cq, int cqe)
{
	return -EOPNOTSUPP;
}
#endif

#endif /* RDMA_MEM_COMPAT_H */
