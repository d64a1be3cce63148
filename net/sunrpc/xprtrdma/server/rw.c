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
 * @rws: how many rw contexts it will probably have
 * @sg: how many contiguous pieces of local memory it will probably have, at
 *	least one
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int svcrdma_rw_chain_init(struct svcrdma_rw_chain *chain, enum dma_data_direction direction,
			  unsigned int rws, unsigned int sg)
{
	chain->direction = direction;
	svcrdma_rw_chain_reset(chain);
	if (rws > SVCRDMA_FEW_RWS) {
		rws = min_t(unsigned int, rws, SVCRDMA_MAX_RWS);
		chain->rw = kvmalloc_array(rws, sizeof(*chain->rw), GFP_KERNEL);
		if (!chain->rw)
			return -ENOMEM;
		chain->max_rws = rws;
	}
	if (sg > SVCRDMA_FEW_SG) {
		chain->sgl = kvmalloc_array(sg, sizeof(*chain->sgl), GFP_KERNEL);
		if (!chain->sgl) {
			if (chain->rw != chain->few_rws)
				kvfree(chain->rw);
			return -ENOMEM;
		}
		chain->max_sg = sg;
	}
	return 0;
}

/* If the device did not stop, it may still read or write the pages. */
static void svcrdma_rw_undo(struct rpcrdma_conn *conn, struct svcrdma_rw *rw,
			    enum dma_data_direction direction)
{
	if (conn->stuck)
		rpcrdma_sg_keep(rw->sgl, rw->num_sg);
	else
		rdma_rw_ctx_destroy(&rw->ctx, conn->qp, conn->port,
				    rw->sgl, rw->num_sg, direction);
}

/* Unmap the memory of a chain, and tell those who wait for its resources. */
static void svcrdma_rw_chain_unmap(struct svcrdma_request *request)
{
	struct svcrdma_service *service = request->service;
	struct rpcrdma_conn *conn = service->conn;
	struct svcrdma_rw_chain *chain = &request->rw_chain;

	if (!chain->num_rws)
		return;
	if (chain->direction == DMA_FROM_DEVICE)
		svcrdma_read_ended(&service->read_admission, chain->wrs);
	while (chain->num_rws)
		svcrdma_rw_undo(conn, &chain->rw[--chain->num_rws], chain->direction);
	svcrdma_service_returned(service);
}

/**
 * svcrdma_rw_chain_destroy - unmap and free a chain
 * @request: the request with the chain, which is done or was never posted
 *
 * Context: between rpcrdma_conn_enter() and rpcrdma_conn_leave(), or a callback
 * of the connection.
 */
void svcrdma_rw_chain_destroy(struct svcrdma_request *request)
{
	struct svcrdma_rw_chain *chain = &request->rw_chain;

	svcrdma_rw_chain_unmap(request);
	if (chain->rw != chain->few_rws)
		kvfree(chain->rw);
	if (chain->sgl != chain->few_sg)
		kvfree(chain->sgl);
}

/**
 * svcrdma_rw_chain_wrs - make the work requests of a chain
 * @request: the request with the chain
 * @next: the work request that follows them; may be NULL if there are any
 *
 * The core gives registrations new keys here. So the caller posts these work
 * requests next, or closes the connection.
 *
 * Context: between rpcrdma_conn_enter() and rpcrdma_conn_leave().
 * Return: the first work request; @next if the chain is empty.
 */
struct ib_send_wr *svcrdma_rw_chain_wrs(struct svcrdma_request *request,
					struct ib_send_wr *next)
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
 * Context: between rpcrdma_conn_enter() and rpcrdma_conn_leave().
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
 * The work requests of a context have to fit into a chain even if each takes only one
 * element. Reads may need registrations, and on iWARP they do. Then a context has at most
 * what one registration covers, so that a request which waits for a registration holds
 * none.
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
		service->max_read_sg = min(service->max_read_sg,
					   wrs * max(qp->max_read_sge, 1U));
}

/*
 * The state while the elements of an rw context are filled. For Writes, pages that
 * are neighbours share an element, because each element costs time. The length of
 * an element is limited because it has to be mapped. For Reads each page has its
 * own element: the core may need registrations, and takes the number of elements
 * for the number of pages. On the stack of svcrdma_rw_fill_sgl().
 */
struct svcrdma_fill {
	struct scatterlist *sg;		/* the first free element */
	const struct scatterlist *end;
	unsigned int max_pages;		/* that share an element */
};

/* Return: how many of @len octets in @page, from @offset in the first one on, are described. */
static u32 svcrdma_rw_fill_pages(struct svcrdma_fill *fill, struct page **page,
				 unsigned int offset, u32 len)
{
	struct scatterlist *sg = fill->sg;
	u32 left = len, part;
	unsigned int n;

	while (left && sg < fill->end) {
		n = min_t(unsigned int, fill->max_pages,
			  DIV_ROUND_UP(offset + left, PAGE_SIZE));
		n = num_pages_contiguous(page, n);
		part = min_t(u32, left, (n << PAGE_SHIFT) - offset);
		sg_set_page(sg++, *page, part, offset);
		left -= part;
		page += n;
		offset = 0;
	}
	fill->sg = sg;
	return len - left;
}

/* One element for head or tail, from @at on. Return: how many of @octets it describes. */
static u32 svcrdma_rw_fill_kvec(struct svcrdma_fill *fill, const struct kvec *vec, u32 at,
				u32 octets)
{
	const void *data = vec->iov_base + at;
	unsigned int offset = offset_in_page(data);
	u32 len = min3(octets, (u32)vec->iov_len - at, (u32)PAGE_SIZE - offset);

	sg_set_page(fill->sg++, virt_to_page(data), len, offset);
	return len;
}

/* Describe @local from @at on, up to the first gap. Return: how many of @octets. */
static u32 svcrdma_rw_fill_some(struct svcrdma_fill *fill, const struct xdr_buf *local, u32 at,
				u32 octets)
{
	const struct kvec *vec = &local->head[0];

	if (at >= vec->iov_len) {
		at -= vec->iov_len;
		if (at < local->page_len) {
			octets = min(octets, local->page_len - at);
			at += local->page_base;
			return svcrdma_rw_fill_pages(fill, &local->pages[at >> PAGE_SHIFT],
						     offset_in_page(at), octets);
		}
		at -= local->page_len;
		vec = &local->tail[0];
	}
	return svcrdma_rw_fill_kvec(fill, vec, at, octets);
}

/* Describe up to @octets from @at of @local. Return: how many octets. */
static u32 svcrdma_rw_fill_sgl(const struct svcrdma_request *request,
			       struct svcrdma_rw *rw, unsigned int max_sg,
			       const struct xdr_buf *local, u32 at, u32 octets)
{
	const struct svcrdma_rw_chain *chain = &request->rw_chain;
	unsigned int max_len = request->service->conn->device->max_sg_len;
	struct svcrdma_fill fill = {
		.sg	   = &chain->sgl[chain->num_sg],
		.end	   = &chain->sgl[chain->num_sg + max_sg],
		.max_pages = chain->direction == DMA_TO_DEVICE ? max_len >> PAGE_SHIFT : 1,
	};
	u32 filled = 0;

	rw->sgl = fill.sg;
	sg_init_table(rw->sgl, max_sg);
	while (filled < octets && fill.sg < fill.end)
		filled += svcrdma_rw_fill_some(&fill, local, at + filled, octets - filled);
	rw->num_sg = fill.sg - rw->sgl;
	sg_mark_end(fill.sg - 1);
	return filled;
}

static bool svcrdma_rw_chain_full(const struct rpcrdma_conn *conn,
				  const struct svcrdma_rw_chain *chain)
{
	return chain->num_rws == chain->max_rws || chain->num_sg == chain->max_sg ||
	       chain->wrs > conn->max_chain / 2;
}

/* Add one rw context. Return: how many of @octets it takes, or a negative errno. */
static int svcrdma_rw_chain_add_one(struct svcrdma_request *request,
				    const struct xdr_buf *local, u32 at, u32 octets,
				    const struct rpcrdma_segment *segment, u32 skip)
{
	struct svcrdma_service *service = request->service;
	struct svcrdma_rw_chain *chain = &request->rw_chain;
	struct rpcrdma_conn *conn = service->conn;
	struct svcrdma_rw *rw;
	unsigned int max_sg = chain->direction == DMA_TO_DEVICE ? service->max_write_sg :
								  service->max_read_sg;
	int wrs;

	max_sg = min3(max_sg, chain->max_sg - chain->num_sg,
		      (octets >> PAGE_SHIFT) + SVCRDMA_SG_EDGES);
	rw = &chain->rw[chain->num_rws];
	octets = svcrdma_rw_fill_sgl(request, rw, max_sg, local, at, octets);
	wrs = rdma_rw_ctx_init(&rw->ctx, conn->qp, conn->port, rw->sgl, rw->num_sg, 0,
			       segment->offset + skip, segment->handle, chain->direction);
	if (wrs < 0)
		return wrs;
	if (chain->direction == DMA_FROM_DEVICE)
		svcrdma_read_started(&service->read_admission, wrs);
	chain->wrs += wrs;
	chain->num_sg += rw->num_sg;
	chain->num_rws++;
	return octets;
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
 * Context: between rpcrdma_conn_enter() and rpcrdma_conn_leave(); may sleep. For
 * Reads, the caller holds read_admission.start.
 * Return: how many of @octets the chain moves, fewer if it is full. -EAGAIN if
 * the chain is empty and no registration is left, until other requests give
 * theirs back. Another negative errno if the connection has to be closed.
 */
int svcrdma_rw_chain_add(struct svcrdma_request *request, const struct xdr_buf *local, u32 at,
			 u32 octets, const struct rpcrdma_segment *segment, u32 skip)
{
	const struct svcrdma_rw_chain *chain = &request->rw_chain;
	struct rpcrdma_conn *conn = request->service->conn;
	u32 moved = 0;

	while (moved < octets && !svcrdma_rw_chain_full(conn, chain)) {
		int ret = svcrdma_rw_chain_add_one(request, local, at + moved, octets - moved,
						   segment, skip + moved);

		if (ret == -EAGAIN && chain->num_rws)
			break;
		if (ret < 0)
			return ret;
		moved += ret;
	}
	return moved;
}
