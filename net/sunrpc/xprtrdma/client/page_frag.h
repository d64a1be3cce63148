/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Walks over an RPC message by page fragments, each of which lies within one page. They
 * are inline so that the compiler calls the function for a fragment directly.
 */
#ifndef XPRT_RDMA_PAGE_FRAG_H
#define XPRT_RDMA_PAGE_FRAG_H

#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sunrpc/xdr.h>

/* Called for each fragment. Return: 0 to go on; anything else ends the walk. */
typedef int (*xprt_rdma_page_frag_fn)(void *context, struct page *page,
				      unsigned int offset, unsigned int len);

/**
 * xprt_rdma_page_frags_in_kvec - walk over a head or a tail
 * @vec: the kvec
 * @fn: called for each fragment
 * @context: passed to @fn
 *
 * Return: what @fn returned last; 0 if @vec is empty.
 */
static __always_inline int
xprt_rdma_page_frags_in_kvec(const struct kvec *vec, xprt_rdma_page_frag_fn fn, void *context)
{
	const char *data = vec->iov_base;
	size_t len = vec->iov_len, part;
	int ret = 0;

	while (len && !ret) {
		part = min_t(size_t, len, PAGE_SIZE - offset_in_page(data));
		ret = fn(context, virt_to_page(data), offset_in_page(data), part);
		data += part;
		len -= part;
	}
	return ret;
}

/**
 * xprt_rdma_page_frags_in_pages - walk over the pages between head and tail
 * @buf: the message
 * @len: octets to walk over, at most those in the pages
 * @fn: called for each fragment
 * @context: passed to @fn
 *
 * Return: what @fn returned last; 0 if @len is zero.
 */
static __always_inline int
xprt_rdma_page_frags_in_pages(const struct xdr_buf *buf, unsigned int len,
			      xprt_rdma_page_frag_fn fn, void *context)
{
	struct page **page = buf->pages + (buf->page_base >> PAGE_SHIFT);
	unsigned int offset = offset_in_page(buf->page_base), part;
	int ret = 0;

	while (len && !ret) {
		part = min_t(unsigned int, len, PAGE_SIZE - offset);
		ret = fn(context, *page++, offset, part);
		offset = 0;
		len -= part;
	}
	return ret;
}

#endif /* XPRT_RDMA_PAGE_FRAG_H */
