/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Since 6.19 DMA operations map physical addresses, and not pages.
 */
#ifndef RPCRDMA_OVERLAY_LINUX_DMA_MAP_OPS_H
#define RPCRDMA_OVERLAY_LINUX_DMA_MAP_OPS_H

#include_next <linux/dma-map-ops.h>
#include <linux/version.h>

/* The end of a mapping has the same parameters. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
#define unmap_phys	unmap_page
#endif

#endif /* RPCRDMA_OVERLAY_LINUX_DMA_MAP_OPS_H */
