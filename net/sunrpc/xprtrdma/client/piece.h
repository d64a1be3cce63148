/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * An RPC message piece by piece, each of which lies in one page. Inline, so
 * that what is done with a piece is called directly.
 */
#ifndef RPCRDMA_CLIENT_PIECE_H
#define RPCRDMA_CLIENT_PIECE_H

#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sunrpc/xdr.h>

/* What is done with a piece; anything but zero ends the walk. */
typedef int (*rpcrdma_piece_fn)(void *context, struct page *page,
				unsigned int offset, unsigned int len);

/**
 * rpcrdma_kvec_pieces - walk a head or a tail
 * @vec: the kvec
 * @fn: called for each piece
 * @context: for @fn
 *
 * Return: zero or what @fn returned last.
 */
static __always_inline int rpcrdma_kvec_pieces(const struct kvec *vec,
					       rpcrdma_piece_fn fn,
					       void *context)
{
	const char *data = vec->iov_base;
	size_t len = vec->iov_len, part;
	int ret = 0;

	while (len && !ret) {
		part = min_t(size_t, len, PAGE_SIZE - offset_in_page(data));
		ret = fn(context, virt_to_page(data), offset_in_page(data),
			 part);
		data += part;
		len -= part;
	}
	return ret;
}

/**
 * rpcrdma_page_pieces - walk the pages between head and tail
 * @buf: the message
 * @len: octets of them, not more than there are
 * @fn: called for each piece
 * @context: for @fn
 *
 * Return: zero or what @fn returned last.
 */
static __always_inline int rpcrdma_page_pieces(const struct xdr_buf *buf,
					       unsigned int len,
					       rpcrdma_piece_fn fn,
					       void *context)
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

#endif /* RPCRDMA_CLIENT_PIECE_H */
