// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RDMA Reads and Writes, by the core's rdma_rw. Those of a request are one chain
 * where possible.
 *
 * A chain ends at the limits of the send queue, of the registrations that iWARP
 * needs for Reads, and of this file. Usual requests stay below them. The rest goes
 * into another chain: for Reads when the first one is done (pull.c), for Writes at
 * once, to be posted when the send queue has space (reply.c). So no thread waits
 * for a chain.
 */
#include <linux/mm_inline.h>
#include <linux/slab.h>

#include "server_private.h"

/* Elements for parts of pages: at both ends of head, pages and tail */
#define SVCRDMA_SG_EDGES	6

/* Pages in the largest registration that rdma_rw makes */
#define SVCRDMA_RW_MR_PAGES	256U

/**
 * svcrdma_rw_chain_init - make a chain ready for use
 * @chain: a chain that is not in use
 * @direction: DMA_FROM_DEVICE for Reads, DMA_TO_DEVICE for Writes
 * @rws: how many rw contexts it will probably have; zero if it stays empty
 * @sg: how many contiguous pieces of local memory it will probably have
 *
 * Return: 0 or -ENOMEM.
 */
int svcrdma_rw_chain_init(struct svcrdma_rw_chain *chain, enum dma_data_direction direction,
			  unsigned int rws, unsigned int sg)
{
	chain->direction = direction;
	chain->num_rws = 0;
	chain->num_sg = 0;
	chain->wrs = 0;
	chain->rw = chain->few_rws;
	chain->max_rws = SVCRDMA_FEW_RWS;
	chain->sgl = chain->few_sg;
	chain->max_sg = SVCRDMA_FEW_SG;
	if (rws <= SVCRDMA_FEW_RWS && sg <= SVCRDMA_FEW_SG)
		return 0;

	chain->max_rws = clamp_t(unsigned int, rws, SVCRDMA_FEW_RWS, SVCRDMA_MAX_RWS);
	chain->max_sg = max_t(unsigned int, sg, SVCRDMA_FEW_SG);
	chain->rw = kvmalloc(chain->max_rws * sizeof(*chain->rw) +
			     chain->max_sg * sizeof(*chain->sgl), GFP_KERNEL);
	if (!chain->rw)
		return -ENOMEM;
	chain->sgl = (struct scatterlist *)(chain->rw + chain->max_rws);
	return 0;
}

/**
 * svcrdma_rw_chain_destroy - unmap and free a chain
 * @request: the request with the chain, which is done or was never posted
 *
 * Wakes those who wait for what the chain had.
 */
void svcrdma_rw_chain_destroy(struct svcrdma_request *request)
{
	struct svcrdma_service *service = request->service;
	struct svcrdma_rw_chain *chain = &request->rw_chain;
	struct rpcrdma_conn *conn = service->conn;
	bool returned = chain->num_rws;

	if (chain->direction == DMA_FROM_DEVICE)
		atomic_sub(chain->wrs, &service->read_wrs);
	while (chain->num_rws) {
		struct svcrdma_rw *rw = &chain->rw[--chain->num_rws];

		/* If the device did not stop, it may still read or write the pages. */
		if (conn->stuck)
			rpcrdma_sg_keep(rw->sgl, rw->num_sg);
		else
			rdma_rw_ctx_destroy(&rw->ctx, conn->qp, conn->port, rw->sgl, rw->num_sg,
					    chain->direction);
	}
	if (returned)
		svcrdma_service_returned(service);
	if (chain->rw != chain->few_rws)
		kvfree(chain->rw);
}

/**
 * svcrdma_rw_chain_wrs - make the work requests of a chain
 * @request: the request with the chain
 * @next: the work request that follows them; may be NULL if there are any
 *
 * The core gives registrations new keys here. So the caller posts these work
 * requests next, or closes the connection.
 *
 * Return: the first work request; @next if the chain is empty.
 */
struct ib_send_wr *svcrdma_rw_chain_wrs(struct svcrdma_request *request, struct ib_send_wr *next)
{
	struct rpcrdma_conn *conn = request->service->conn;
	struct svcrdma_rw_chain *chain = &request->rw_chain;
	unsigned int i = chain->num_rws;

	while (i--)
		next = rdma_rw_ctx_wrs(&chain->rw[i].ctx, conn->qp, conn->port, NULL, next);
	return next;
}

/**
 * svcrdma_rw_chain_post - post a chain without a Send
 * @request: the request with the chain, which is not empty and whose chain.done is
 *	set
 *
 * If the send queue has no space, the chain is posted later; this does not wait.
 *
 * Return: 0, and the caller must not use the request any more. A negative errno if
 * nothing is posted; then the connection has to be closed.
 */
int svcrdma_rw_chain_post(struct svcrdma_request *request)
{
	struct ib_send_wr *first = svcrdma_rw_chain_wrs(request, NULL);
	struct ib_send_wr *last = first;

	while (last->next)
		last = last->next;
	return rpcrdma_chain_post(request->service->conn, &request->rw_chain.chain, first, last,
				  RPCRDMA_POST_SIGNALLED | RPCRDMA_POST_LATER, NULL);
}

/**
 * svcrdma_rw_limits - compute how many elements one rw context may have
 * @service: the service, whose connection is established
 *
 * A work request takes as many elements as the queue pair allows. A context has at most a quarter
 * of the work requests of the longest chain: svcrdma_rw_chain_add() adds contexts until half of
 * them are used, so one more and the Send still fit.
 * Reads may need registrations, and on iWARP they do. A context of Reads has at most what one
 * registration covers, so that a request that waits for a registration holds none.
 *
 * Context: ->established.
 */
void svcrdma_rw_limits(struct svcrdma_service *service)
{
	const struct rpcrdma_conn *conn = service->conn;
	unsigned int wrs = max(conn->max_chain / 4, 1U);
	const struct ib_qp *qp = conn->qp;

	service->max_write_sg = wrs * max(qp->max_write_sge, 1U);
	service->max_read_sg = min(conn->device->max_mr_pages, SVCRDMA_RW_MR_PAGES);
	if (!rdma_protocol_iwarp(qp->device, conn->port))
		service->max_read_sg = min(service->max_read_sg, wrs * max(qp->max_read_sge, 1U));
}

/* Describe up to @len octets of the pages, from @offset in the first one on. Return: how many. */
static u32 rw_fill_pages(struct svcrdma_rw *rw, unsigned int max_sg, unsigned int max_pages,
			 struct page **page, unsigned int offset, u32 len)
{
	u32 left = len, part;
	unsigned int n;

	while (left && rw->num_sg < max_sg) {
		n = min_t(unsigned int, max_pages, DIV_ROUND_UP(offset + left, PAGE_SIZE));
		n = num_pages_contiguous(page, n);
		part = min_t(u32, left, (n << PAGE_SHIFT) - offset);
		sg_set_page(&rw->sgl[rw->num_sg++], *page, part, offset);
		left -= part;
		page += n;
		offset = 0;
	}
	return len - left;
}

/* Describe @local from @at on, up to the first gap. Return: how many of @octets. */
static u32 rw_fill_some(struct svcrdma_rw *rw, unsigned int max_sg, unsigned int max_pages,
			const struct xdr_buf *local, u32 at, u32 octets)
{
	const struct kvec *vec = &local->head[0];
	const void *data;

	if (at >= vec->iov_len) {
		at -= vec->iov_len;
		if (at < local->page_len) {
			octets = min(octets, local->page_len - at);
			at += local->page_base;
			return rw_fill_pages(rw, max_sg, max_pages, &local->pages[at >> PAGE_SHIFT],
					     offset_in_page(at), octets);
		}
		at -= local->page_len;
		vec = &local->tail[0];
	}
	data = vec->iov_base + at;
	octets = min3(octets, (u32)vec->iov_len - at, (u32)PAGE_SIZE - offset_in_page(data));
	sg_set_page(&rw->sgl[rw->num_sg++], virt_to_page(data), octets, offset_in_page(data));
	return octets;
}

/*
 * Describe up to @octets from @at of @local. For Writes, contiguous pages share an element,
 * because each element costs time, up to the length that can be mapped. For Reads each page has
 * its own element: the core may need registrations, and takes the number of elements for the
 * number of pages. Return: how many octets.
 */
static u32 rw_fill_sgl(const struct svcrdma_request *request, struct svcrdma_rw *rw,
		       unsigned int max_sg, const struct xdr_buf *local, u32 at, u32 octets)
{
	const struct svcrdma_rw_chain *chain = &request->rw_chain;
	unsigned int max_pages = 1;
	u32 filled = 0;

	if (chain->direction == DMA_TO_DEVICE)
		max_pages = request->service->conn->device->max_sg_len >> PAGE_SHIFT;
	rw->sgl = &chain->sgl[chain->num_sg];
	rw->num_sg = 0;
	sg_init_table(rw->sgl, max_sg);
	while (filled < octets && rw->num_sg < max_sg)
		filled += rw_fill_some(rw, max_sg, max_pages, local, at + filled, octets - filled);
	sg_mark_end(&rw->sgl[rw->num_sg - 1]);
	return filled;
}

/**
 * svcrdma_rw_chain_add - add RDMA Reads or Writes for one segment to a chain
 * @request: the request with the chain
 * @local: local memory
 * @at: offset in octets into @local
 * @octets: length in octets, not beyond the end of @local or @segment; may be zero
 * @segment: memory of the requester
 * @skip: offset in octets into @segment
 *
 * Context: may sleep. For Reads, the caller holds service->read_start.
 * Return: how many of @octets the chain takes, fewer if it is full. -EAGAIN if the chain is
 * empty and has to wait until other requests give registrations back. Another negative errno
 * if the connection has to be closed.
 */
int svcrdma_rw_chain_add(struct svcrdma_request *request, const struct xdr_buf *local, u32 at,
			 u32 octets, const struct rpcrdma_segment *segment, u32 skip)
{
	struct svcrdma_service *service = request->service;
	struct svcrdma_rw_chain *chain = &request->rw_chain;
	struct rpcrdma_conn *conn = service->conn;
	bool reads = chain->direction == DMA_FROM_DEVICE;
	u32 moved = 0;

	while (moved < octets && chain->num_rws < chain->max_rws &&
	       chain->num_sg < chain->max_sg && chain->wrs <= conn->max_chain / 2) {
		struct svcrdma_rw *rw = &chain->rw[chain->num_rws];
		unsigned int max_sg = min3(reads ? service->max_read_sg : service->max_write_sg,
					   chain->max_sg - chain->num_sg,
					   ((octets - moved) >> PAGE_SHIFT) + SVCRDMA_SG_EDGES);
		u32 filled = rw_fill_sgl(request, rw, max_sg, local, at + moved, octets - moved);
		int wrs = rdma_rw_ctx_init(&rw->ctx, conn->qp, conn->port, rw->sgl, rw->num_sg, 0,
					   segment->offset + skip + moved, segment->handle,
					   chain->direction);

		if (wrs == -EAGAIN && chain->num_rws)
			break;
		if (wrs < 0)
			return wrs;
		if (reads) {
			lockdep_assert_held(&service->read_start);
			atomic_add(wrs, &service->read_wrs);
		}
		chain->wrs += wrs;
		chain->num_sg += rw->num_sg;
		chain->num_rws++;
		moved += filled;
	}
	return moved;
}
