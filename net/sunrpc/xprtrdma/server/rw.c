// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RDMA Reads and Writes, by the core's rdma_rw, posted in one chain where
 * possible.
 *
 * A chain is cut where the send queue, the registrations that iWARP needs for
 * Reads, or a bound of our own would not allow for more. A well-behaved peer
 * hardly ever makes this happen. No thread waits for one: Reads go on in another
 * chain when this one is done, see pull.c; Writes at once in another one, which the
 * send queue takes when there is room, see reply.c.
 */
#include <linux/slab.h>

#include "server_private.h"

/* Elements that are less than a page: at the ends of head, pages and tail */
#define SVCRDMA_SG_EDGES	6

/* rdma_rw makes registrations no larger than this. */
#define SVCRDMA_RW_MR_PAGES	256U

/**
 * svcrdma_rw_chain_init - make a chain ready for use
 * @chain: one not in use
 * @direction: DMA_FROM_DEVICE for Reads, DMA_TO_DEVICE for Writes
 * @rws: of how many it will probably consist
 * @sg: of how many contiguous pieces of local memory, at least one
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

/*
 * If the queue pair had to go first, what the core had made for this is lost
 * with it; the memory is given back all the same.
 */
static void svcrdma_rw_undo(struct rpcrdma_conn *conn, struct svcrdma_rw *rw,
			    enum dma_data_direction direction)
{
	if (conn->qp)
		rdma_rw_ctx_destroy(&rw->ctx, conn->qp, conn->port,
				    rw->sgl, rw->num_sg, direction);
	else
		ib_dma_unmap_sg(conn->device->ib, rw->sgl, rw->num_sg, direction);
}

/* Unmap what was moved. */
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
 * svcrdma_rw_chain_destroy - the end of a chain
 * @request: whose rw_chain; none of it is posted any more, or it never was
 *
 * Context: where the queue pair may be used.
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
 * svcrdma_rw_chain_wrs - the work requests of a chain
 * @request: whose rw_chain
 * @next: to follow them; may be NULL if there are any
 *
 * To be posted at once, or the connection has to be closed: it counts on the
 * keys of registrations that are used now.
 *
 * Return: the first, @next if there are none.
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
 * svcrdma_rw_chain_post - post a chain by itself, as soon as there is room
 * @request: whose rw_chain, of one rw at least; its work.done is set
 *
 * Does not wait for that. When this succeeds, the request may be somebody
 * else's already.
 *
 * Return: 0 or a negative errno, after which nothing is posted and the
 * connection has to be closed.
 */
int svcrdma_rw_chain_post(struct svcrdma_request *request)
{
	struct ib_send_wr *first = svcrdma_rw_chain_wrs(request, NULL);
	struct ib_send_wr *last = first;

	while (last->next)
		last = last->next;
	return rpcrdma_work_post_later(request->service->conn, &request->rw_chain.work, first,
				       last, true);
}

/* Memory in one row: octets of @pages, from @offset in the first on */
struct svcrdma_row {
	struct page **pages;
	struct page *page;	/* what @pages is, if there is only one */
	unsigned int offset;
	u32 len;
};

/* What follows without a gap from octet @at of @buf on */
static void svcrdma_row_at(struct svcrdma_row *row, const struct xdr_buf *buf, u32 at)
{
	const struct kvec *vec = &buf->head[0];

	if (at >= vec->iov_len) {
		at -= vec->iov_len;
		if (at < buf->page_len) {
			row->len = buf->page_len - at;
			at += buf->page_base;
			row->pages = &buf->pages[at >> PAGE_SHIFT];
			row->offset = offset_in_page(at);
			return;
		}
		at -= buf->page_len;
		vec = &buf->tail[0];
	}
	row->page = virt_to_page(vec->iov_base + at);
	row->pages = &row->page;
	row->offset = offset_in_page(vec->iov_base + at);
	row->len = min_t(u32, vec->iov_len - at, PAGE_SIZE - row->offset);
}

/*
 * Elements that one rw context may have: what makes work requests that surely fit
 * in a chain, however few elements each takes. Reads may take registrations, and
 * on iWARP they do: then no more than a single one covers, so that who waits for
 * one has none.
 */
static unsigned int svcrdma_rw_max_sg(const struct rpcrdma_conn *conn,
				      const struct svcrdma_rw_chain *chain)
{
	unsigned int wrs = max(conn->max_chain / 4, 1U);
	const struct ib_qp *qp = conn->qp;
	unsigned int pages;

	if (chain->direction == DMA_TO_DEVICE)
		return wrs * max(qp->max_write_sge, 1U);
	pages = min(conn->device->max_mr_pages, SVCRDMA_RW_MR_PAGES);
	if (rdma_protocol_iwarp(qp->device, conn->port))
		return pages;
	return min(pages, wrs * max(qp->max_read_sge, 1U));
}

#define SVCRDMA_NO_PAGE	ULONG_MAX

/*
 * The elements of an rw context as they are filled. Pages are often neighbours: the
 * fewer elements, the less to do for each. But they have to be mapped, which has
 * a limit; and not for Reads, where the core may need registrations, and takes
 * the number of elements for that of pages.
 */
struct svcrdma_fill {
	struct scatterlist *sg;		/* the first that is free */
	const struct scatterlist *end;
	unsigned long neighbour;	/* what the last can be made longer by */
	unsigned long never;		/* SVCRDMA_NO_PAGE: none may be; or zero */
	unsigned int max_len;		/* of one element */
};

/* Return: how many octets the elements had room for. */
static u32 svcrdma_rw_fill_row(struct svcrdma_fill *fill,
			       const struct svcrdma_row *row, u32 len)
{
	struct page **page = row->pages;
	unsigned int offset = row->offset;
	u32 part, left;

	for (left = len; left; left -= part, offset = 0, page++) {
		unsigned long pfn = page_to_pfn(*page);

		part = min_t(u32, left, PAGE_SIZE - offset);
		if (pfn == fill->neighbour && !offset &&
		    part <= fill->max_len - fill->sg[-1].length) {
			fill->sg[-1].length += part;
		} else {
			if (fill->sg == fill->end)
				break;
			sg_set_page(fill->sg++, *page, part, offset);
		}
		fill->neighbour = (pfn + 1) | fill->never;
	}
	/* Only the last may have ended within its page. */
	if (offset_in_page(row->offset + len - left))
		fill->neighbour = SVCRDMA_NO_PAGE;
	return len - left;
}

/* Describe up to @octets at @at of @local; return how many. */
static u32 svcrdma_rw_fill_sgl(const struct svcrdma_request *request,
			       struct svcrdma_rw *rw, unsigned int max_sg,
			       const struct xdr_buf *local, u32 at, u32 octets)
{
	const struct svcrdma_rw_chain *chain = &request->rw_chain;
	struct svcrdma_fill fill = {
		.sg	   = &chain->sgl[chain->num_sg],
		.end	   = &chain->sgl[chain->num_sg + max_sg],
		.neighbour = SVCRDMA_NO_PAGE,
		.never	   = chain->direction == DMA_TO_DEVICE ? 0 : SVCRDMA_NO_PAGE,
		.max_len   = request->service->conn->device->max_sg_len,
	};
	u32 filled = 0, got, len;
	struct svcrdma_row row;

	rw->sgl = fill.sg;
	sg_init_table(rw->sgl, max_sg);
	do {
		svcrdma_row_at(&row, local, at + filled);
		len = min(row.len, octets - filled);
		got = svcrdma_rw_fill_row(&fill, &row, len);
		filled += got;
	} while (got == len && filled < octets);
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

/* Add as much as one rw context can take; return how much that is. */
static int svcrdma_rw_chain_add_one(struct svcrdma_request *request,
				    const struct xdr_buf *local, u32 at, u32 octets,
				    const struct rpcrdma_segment *segment, u32 skip)
{
	struct svcrdma_service *service = request->service;
	struct svcrdma_rw_chain *chain = &request->rw_chain;
	struct rpcrdma_conn *conn = service->conn;
	struct svcrdma_rw *rw;
	unsigned int max_sg;
	int wrs;

	max_sg = min3(svcrdma_rw_max_sg(conn, chain), chain->max_sg - chain->num_sg,
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
 * svcrdma_rw_chain_add - move octets between here and one segment of a chunk
 * @request: whose rw_chain
 * @local: memory here
 * @at: octets into @local
 * @octets: how many, not beyond the end of either; may be zero
 * @segment: memory there
 * @skip: octets into @segment
 *
 * Context: between rpcrdma_conn_enter() and rpcrdma_conn_leave().
 * Return: how many of @octets will be moved, fewer if the chain is full, or a
 * negative errno: -EAGAIN: the chain is empty, and there are no registrations
 * for it until others are through with theirs; else the connection has to be
 * closed.
 */
int svcrdma_rw_chain_add(struct svcrdma_request *request, const struct xdr_buf *local, u32 at,
			 u32 octets, const struct rpcrdma_segment *segment, u32 skip)
{
	const struct svcrdma_rw_chain *chain = &request->rw_chain;
	struct rpcrdma_conn *conn = request->service->conn;
	u32 moved = 0;

	if (!conn->qp)
		return -ENOTCONN;
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
