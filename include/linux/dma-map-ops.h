/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * For kernels before 6.19, whose DMA operations map pages, and not physical addresses.
 */
#ifndef RPCRDMA_OVERLAY_LINUX_DMA_MAP_OPS_H
#define RPCRDMA_OVERLAY_LINUX_DMA_MAP_OPS_H

#include_next <linux/dma-map-ops.h>
#include <rpcrdma-probes.h>

/* The end of a mapping has the same parameters. */
#ifndef HAVE_UNMAP_PHYS
#define unmap_phys	unmap_page
#endif

#endif /* RPCRDMA_OVERLAY_LINUX_DMA_MAP_OPS_H */
