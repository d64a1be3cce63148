/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Since 7.0 the kernel counts pages that are neighbours.
 */
#ifndef RPCRDMA_OVERLAY_LINUX_MM_INLINE_H
#define RPCRDMA_OVERLAY_LINUX_MM_INLINE_H

#include <linux/mm.h>
#include_next <linux/mm_inline.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)

static inline size_t num_pages_contiguous(struct page **pages, size_t nr_pages)
{
	size_t n;

	for (n = 1; n < nr_pages && pages[n] == nth_page(pages[0], n); n++)
		;
	return n;
}

#endif

#endif /* RPCRDMA_OVERLAY_LINUX_MM_INLINE_H */
