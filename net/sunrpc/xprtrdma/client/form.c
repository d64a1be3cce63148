// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Choose how a Call and its Reply travel (RFC 8166 sections 3.5 and 4.3).
 */
#include <linux/minmax.h>

#include "form.h"

/*
 * How many segments @len octets from @offset of a page on need, if one segment covers @max_pages.
 * @bounced: a part of a page needs a segment of its own, see conn->bounced.
 */
u32 xprt_rdma_form_segments(unsigned int offset, u32 len, unsigned int max_pages, bool bounced)
{
	u32 segments = 0;

	if (bounced && len && offset) {
		len -= min_t(u32, len, PAGE_SIZE - offset);
		offset = 0;
		segments++;
	}
	if (!len)
		return segments;
	if (bounced && offset_in_page(len)) {
		len -= offset_in_page(len);
		segments++;
	}
	return segments + DIV_ROUND_UP(DIV_ROUND_UP(offset + len, PAGE_SIZE), max_pages);
}

/**
 * xprt_rdma_form_choose - choose how an RPC travels
 * @form: set, unless this fails
 * @sizes: what it depends on
 *
 * Implements RFC 8166 sections 3.5.1 to 3.5.3: inline if the message fits, because copying costs
 * less than a registration; otherwise a chunk for the DDP-eligible data item if the rest fits;
 * otherwise a chunk for the whole message.
 *
 * Return: 0, or -EMSGSIZE if the transport header alone is too long or needs more segments than
 * a message can have.
 */
int xprt_rdma_form_choose(struct xprt_rdma_form *form, const struct xprt_rdma_sizes *sizes)
{
	u64 write = RPCRDMA_WRITE_CHUNK_LEN + (u64)sizes->write_segments * RPCRDMA_SEGMENT_LEN;
	u64 read = (u64)sizes->read_segments * RPCRDMA_READ_SEGMENT_LEN;
	u64 rest = sizes->call_len - rpcrdma_wire_round_up(sizes->call_pages);
	u64 header = sizes->header_min, segments = 0;

	if (header + sizes->reply_max <= sizes->reply_threshold) {
		form->reply = XPRT_RDMA_REPLY_INLINE;
	} else if (sizes->reply_ddp && header + write + sizes->reply_max - sizes->reply_pages <=
				       sizes->reply_threshold) {
		/* The Reply returns the Write chunk, so the chunk takes space in it as well. */
		form->reply = XPRT_RDMA_REPLY_WRITE_CHUNK;
		header += write;
		segments += sizes->write_segments;
	} else {
		form->reply = XPRT_RDMA_REPLY_CHUNK;
		header += RPCRDMA_REPLY_CHUNK_LEN +
			  (u64)sizes->reply_segments * RPCRDMA_SEGMENT_LEN;
		segments += sizes->reply_segments;
	}

	if (header + sizes->call_len <= sizes->call_threshold) {
		form->call = XPRT_RDMA_CALL_INLINE;
		form->inline_len = sizes->call_len;
	} else if (sizes->call_ddp && header + read + rest <= sizes->call_threshold) {
		form->call = XPRT_RDMA_CALL_READ_CHUNK;
		form->inline_len = rest;
		header += read;
		segments += sizes->read_segments;
	} else {
		form->call = XPRT_RDMA_CALL_LONG;
		form->inline_len = 0;
		header += (u64)sizes->long_segments * RPCRDMA_READ_SEGMENT_LEN;
		segments += sizes->long_segments;
	}
	form->header_len = header;
	return header > sizes->call_threshold || segments > RPCRDMA_MAX_SEGMENTS ? -EMSGSIZE : 0;
}

/**
 * xprt_rdma_form_max_payload - how much data one RPC can carry
 * @version: the version of the connection
 * @call_threshold: octets that may be sent inline
 * @reply_threshold: octets that may be received inline
 * @max_pages: pages that one segment can cover
 *
 * On a device that registers few pages at once, the segments of much data do not fit into a
 * header. Such a message cannot be sent in any form.
 *
 * Return: octets, in whole pages; XPRT_RDMA_MAX_PAYLOAD at most.
 */
u32 xprt_rdma_form_max_payload(u32 version, u32 call_threshold, u32 reply_threshold,
			       unsigned int max_pages)
{
	/* Segments beyond those of whole pages: head, tail, and parts of pages at both ends */
	const u32 others = 4;
	u32 header = rpcrdma_wire_header_min(version);
	/* The worst cases: a Long Call, and a Reply that returns a Reply chunk */
	u32 call = (call_threshold - header) / RPCRDMA_READ_SEGMENT_LEN;
	u32 reply = (reply_threshold - header - RPCRDMA_REPLY_CHUNK_LEN) / RPCRDMA_SEGMENT_LEN;
	u32 segments = min3(call, reply, (u32)RPCRDMA_MAX_SEGMENTS) - others;

	return min_t(u64, (u64)segments * max_pages * PAGE_SIZE, XPRT_RDMA_MAX_PAYLOAD);
}

/**
 * xprt_rdma_form_backward - how long backward Calls and their Replies may be
 * @version: of the message
 * @call_threshold: octets that the client may send inline in this version
 * @reply_threshold: octets that the server may send inline in this version
 * @space: octets of a buffer
 *
 * Both are inline, and NFS tells the server one limit for both.
 *
 * Return: octets of the RPC message.
 */
u32 xprt_rdma_form_backward(u32 version, u32 call_threshold, u32 reply_threshold, u32 space)
{
	u32 threshold = min(call_threshold, reply_threshold);

	return min(threshold - rpcrdma_wire_header_min(version), space);
}
