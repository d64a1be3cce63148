/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * For kernels before 7.0, which do not count pages that are neighbours.
 */
#ifndef RPCRDMA_OVERLAY_LINUX_MM_INLINE_H
#define RPCRDMA_OVERLAY_LINUX_MM_INLINE_H

#include <linux/mm.h>
#include_next <linux/mm_inline.h>
#include <rpcrdma-probes.h>

#ifndef HAVE_NUM_PAGES_CONTIGUOUS

/* Without a virtual map of all struct pages, those of neighbours may be anywhere. */
static inline bool rpcrdma_compat_page_follows(const struct page *page,
					       const struct page *first, size_t n)
{
	if (IS_ENABLED(CONFIG_SPARSEMEM) && !IS_ENABLED(CONFIG_SPARSEMEM_VMEMMAP))
		return page_to_pfn(page) == page_to_pfn(first) + n;
	return page == first + n;
}

static inline size_t num_pages_contiguous(struct page **pages, size_t nr_pages)
{
	size_t n;

	for (n = 1; n < nr_pages; n++)
		if (!rpcrdma_compat_page_follows(pages[n], pages[0], n))
			break;
	return n;
}

#endif

#endif /* RPCRDMA_OVERLAY_LINUX_MM_INLINE_H */
