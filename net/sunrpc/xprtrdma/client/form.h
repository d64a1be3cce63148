/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How a Call and its Reply travel. This depends on sizes, flags and thresholds only, so
 * the functions take nothing else. Of the version only the size of its headers counts:
 * chunks are the same in all versions.
 */
#ifndef XPRT_RDMA_FORM_H
#define XPRT_RDMA_FORM_H

#include <linux/mm.h>

#include "../wire/message.h"

/* In the order of RPCRDMA_A_TRAFFIC_... */
enum xprt_rdma_call_form {
	XPRT_RDMA_CALL_INLINE,
	XPRT_RDMA_CALL_READ_CHUNK,	/* for the pages; the rest is inline */
	XPRT_RDMA_CALL_LONG,		/* Position Zero Read chunk */
};

enum xprt_rdma_reply_form {
	XPRT_RDMA_REPLY_INLINE,
	XPRT_RDMA_REPLY_WRITE_CHUNK,	/* for the pages; the rest is inline */
	XPRT_RDMA_REPLY_CHUNK,		/* for all of it */
};

/* The most that any server takes; NFS has a limit of its own, 1 MiB at most so far. */
#define XPRT_RDMA_MAX_PAYLOAD		(4 * 1024 * 1024)

/**
 * struct xprt_rdma_sizes - what the form of an RPC depends on
 * @call_len: octets of the Call: head, pages and tail
 * @call_pages: octets in the Call's pages, without padding
 * @call_ddp: the Call's pages are one DDP-eligible data item
 * @reply_max: octets of the longest possible Reply, data included
 * @reply_pages: octets that the Reply's pages have space for
 * @reply_ddp: the Reply's pages get one DDP-eligible data item, which is its last
 * @header_min: octets of a header without chunks, in the version of the Call
 * @call_threshold: octets that may be sent inline
 * @reply_threshold: octets that may be received inline
 * @read_segments: segments of a Read chunk for the Call's pages
 * @long_segments: segments of a Read chunk for all of the Call
 * @write_segments: segments of a Write chunk for the Reply's pages
 * @reply_segments: segments of a Reply chunk
 *
 * On the stack of the caller.
 */
struct xprt_rdma_sizes {
	u32 call_len;
	u32 call_pages;
	bool call_ddp;
	u32 reply_max;
	u32 reply_pages;
	bool reply_ddp;
	u32 header_min;
	u32 call_threshold;
	u32 reply_threshold;
	u32 read_segments;
	u32 long_segments;
	u32 write_segments;
	u32 reply_segments;
};

/**
 * struct xprt_rdma_form - how an RPC travels
 * @call: the form of the Call
 * @reply: what the Call offers for the Reply
 * @header_len: octets of the Call's transport header
 * @inline_len: octets of the Call's Payload stream that follow the header
 *
 * Part of a request; chosen each time the Call is sent.
 */
struct xprt_rdma_form {
	enum xprt_rdma_call_form call;
	enum xprt_rdma_reply_form reply;
	u32 header_len;
	u32 inline_len;
};

u32 xprt_rdma_form_segments(unsigned int offset, u32 len, unsigned int max_pages, bool bounced);
int xprt_rdma_form_choose(struct xprt_rdma_form *form, const struct xprt_rdma_sizes *sizes);
u32 xprt_rdma_form_max_payload(u32 version, u32 call_threshold, u32 reply_threshold,
			       unsigned int max_pages);
u32 xprt_rdma_form_backward(u32 version, u32 call_threshold, u32 reply_threshold, u32 space);

#endif /* XPRT_RDMA_FORM_H */
