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
#define SG_EDGES	6

/* rdma_rw makes registrations no larger than this. */
#define RW_MR_PAGES	256U

/**
 * rpcrdma_burst_init - make a burst ready for use
 * @burst: one not in use
 * @direction: DMA_FROM_DEVICE for Reads, DMA_TO_DEVICE for Writes
 * @transfers: of how many it will probably consist
 * @sg: of how many contiguous pieces of local memory, at least one
 *
 * Return: 0 or -ENOMEM.
 */
int rpcrdma_burst_init(struct rpcrdma_burst *burst,
		       enum dma_data_direction direction,
		       unsigned int transfers, unsigned int sg)
{
	burst->direction = direction;
	burst->num_transfers = 0;
	burst->num_sg = 0;
	burst->wrs = 0;
	burst->transfer = burst->few_transfers;
	burst->max_transfers = RPCRDMA_FEW_TRANSFERS;
	burst->sgl = burst->few_sg;
	burst->max_sg = RPCRDMA_FEW_SG;

	if (transfers > RPCRDMA_FEW_TRANSFERS) {
		transfers = min_t(unsigned int, transfers, RPCRDMA_MAX_TRANSFERS);
		burst->transfer = kvmalloc_array(transfers,
						 sizeof(*burst->transfer),
						 GFP_KERNEL);
		if (!burst->transfer)
			return -ENOMEM;
		burst->max_transfers = transfers;
	}
	if (sg > RPCRDMA_FEW_SG) {
		burst->sgl = kvmalloc_array(sg, sizeof(*burst->sgl),
					    GFP_KERNEL);
		if (!burst->sgl) {
			if (burst->transfer != burst->few_transfers)
				kvfree(burst->transfer);
			return -ENOMEM;
		}
		burst->max_sg = sg;
	}
	return 0;
}

/*
 * If the queue pair had to go first, what the core had made for this is lost
 * with it; the memory is given back all the same.
 */
static void transfer_undo(struct rpcrdma_conn *conn,
			  struct rpcrdma_transfer *transfer,
			  enum dma_data_direction direction)
{
	if (conn->qp)
		rdma_rw_ctx_destroy(&transfer->rw, conn->qp, conn->port,
				    transfer->sgl, transfer->num_sg, direction);
	else
		ib_dma_unmap_sg(conn->device->ib, transfer->sgl,
				transfer->num_sg, direction);
}

/* Unmap what was moved. */
static void burst_unmap(struct rpcrdma_request *request)
{
	struct rpcrdma_service *service = request->service;
	struct rpcrdma_conn *conn = service->conn;
	struct rpcrdma_burst *burst = &request->burst;

	if (!burst->num_transfers)
		return;
	if (burst->direction == DMA_FROM_DEVICE)
		atomic_sub(burst->wrs, &service->reading);
	while (burst->num_transfers)
		transfer_undo(conn, &burst->transfer[--burst->num_transfers],
			      burst->direction);
	rpcrdma_service_returned(service);
}

/**
 * rpcrdma_burst_destroy - the end of a burst
 * @request: whose burst; none of it is posted any more, or it never was
 *
 * Context: where the queue pair may be used.
 */
void rpcrdma_burst_destroy(struct rpcrdma_request *request)
{
	struct rpcrdma_burst *burst = &request->burst;

	burst_unmap(request);
	if (burst->transfer != burst->few_transfers)
		kvfree(burst->transfer);
	if (burst->sgl != burst->few_sg)
		kvfree(burst->sgl);
}

/**
 * rpcrdma_burst_chain - the work requests of a burst
 * @request: whose burst
 * @next: to follow them; may be NULL if there are any
 *
 * To be posted at once, or the connection has to be closed: it counts on the
 * keys of registrations that are used now.
 *
 * Return: the first, @next if there are none.
 */
struct ib_send_wr *rpcrdma_burst_chain(struct rpcrdma_request *request,
				       struct ib_send_wr *next)
{
	struct rpcrdma_conn *conn = request->service->conn;
	struct rpcrdma_burst *burst = &request->burst;
	unsigned int i = burst->num_transfers;

	while (i--)
		next = rdma_rw_ctx_wrs(&burst->transfer[i].rw, conn->qp,
				       conn->port, NULL, next);
	return next;
}

/**
 * rpcrdma_burst_post - post a burst by itself, as soon as there is room
 * @request: whose burst, of one transfer at least; burst->work.done is set
 *
 * Does not wait for that. When this succeeds, the request may be somebody
 * else's already.
 *
 * Return: 0 or a negative errno, after which nothing is posted and the
 * connection has to be closed.
 */
int rpcrdma_burst_post(struct rpcrdma_request *request)
{
	struct ib_send_wr *first = rpcrdma_burst_chain(request, NULL);
	struct ib_send_wr *last = first;

	while (last->next)
		last = last->next;
	return rpcrdma_work_post_later(request->service->conn,
				       &request->burst.work, first, last,
				       true);
}

/* Memory in one row: octets of @pages, from @offset in the first on */
struct row {
	struct page **pages;
	struct page *page;	/* what @pages is, if there is only one */
	unsigned int offset;
	u32 len;
};

/* What follows without a gap from octet @at of @buf on */
static void row_at(struct row *row, const struct xdr_buf *buf, u32 at)
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
 * Elements that one transfer may have: what makes work requests that surely fit
 * in a chain, however few elements each takes. Reads may take registrations, and
 * on iWARP they do: then no more than a single one covers, so that who waits for
 * one has none.
 */
static unsigned int transfer_max_sg(const struct rpcrdma_conn *conn,
				    const struct rpcrdma_burst *burst)
{
	unsigned int wrs = max(conn->max_chain / 4, 1U);
	const struct ib_qp *qp = conn->qp;
	unsigned int pages;

	if (burst->direction == DMA_TO_DEVICE)
		return wrs * max(qp->max_write_sge, 1U);
	pages = min(conn->device->max_mr_pages, RW_MR_PAGES);
	if (rdma_protocol_iwarp(qp->device, conn->port))
		return pages;
	return min(pages, wrs * max(qp->max_read_sge, 1U));
}

#define NO_PAGE		ULONG_MAX

/*
 * The elements of a transfer as they are filled. Pages are often neighbours: the
 * fewer elements, the less to do for each. But they have to be mapped, which has
 * a limit; and not for Reads, where the core may need registrations, and takes
 * the number of elements for that of pages.
 */
struct fill {
	struct scatterlist *sg;		/* the first that is free */
	const struct scatterlist *end;
	unsigned long neighbour;	/* what the last can be made longer by */
	unsigned long never;		/* NO_PAGE if none may be, else zero */
	unsigned int max_len;		/* of one element */
};

/* Return: how many octets the elements had room for. */
static u32 fill_row(struct fill *fill, const struct row *row, u32 len)
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
		fill->neighbour = NO_PAGE;
	return len - left;
}

/* Describe up to @octets at @at of @local; return how many. */
static u32 fill_sgl(const struct rpcrdma_request *request,
		    struct rpcrdma_transfer *transfer, unsigned int max_sg,
		    const struct xdr_buf *local, u32 at, u32 octets)
{
	const struct rpcrdma_burst *burst = &request->burst;
	struct fill fill = {
		.sg	   = &burst->sgl[burst->num_sg],
		.end	   = &burst->sgl[burst->num_sg + max_sg],
		.neighbour = NO_PAGE,
		.never	   = burst->direction == DMA_TO_DEVICE ? 0 : NO_PAGE,
		.max_len   = request->service->conn->device->max_sg_len,
	};
	u32 filled = 0, got, len;
	struct row row;

	transfer->sgl = fill.sg;
	sg_init_table(transfer->sgl, max_sg);
	do {
		row_at(&row, local, at + filled);
		len = min(row.len, octets - filled);
		got = fill_row(&fill, &row, len);
		filled += got;
	} while (got == len && filled < octets);
	transfer->num_sg = fill.sg - transfer->sgl;
	sg_mark_end(fill.sg - 1);
	return filled;
}

static bool burst_full(const struct rpcrdma_conn *conn,
		       const struct rpcrdma_burst *burst)
{
	return burst->num_transfers == burst->max_transfers ||
	       burst->num_sg == burst->max_sg ||
	       burst->wrs > conn->max_chain / 2;
}

/* Add as much as one transfer can take; return how much that is. */
static int burst_add_one(struct rpcrdma_request *request,
			 const struct xdr_buf *local, u32 at, u32 octets,
			 const struct rpcrdma_segment *segment, u32 skip)
{
	struct rpcrdma_service *service = request->service;
	struct rpcrdma_burst *burst = &request->burst;
	struct rpcrdma_conn *conn = service->conn;
	struct rpcrdma_transfer *transfer;
	unsigned int max_sg;
	int wrs;

	max_sg = min3(transfer_max_sg(conn, burst),
		      burst->max_sg - burst->num_sg,
		      (octets >> PAGE_SHIFT) + SG_EDGES);
	transfer = &burst->transfer[burst->num_transfers];
	octets = fill_sgl(request, transfer, max_sg, local, at, octets);
	wrs = rdma_rw_ctx_init(&transfer->rw, conn->qp, conn->port,
			       transfer->sgl, transfer->num_sg, 0,
			       segment->offset + skip, segment->handle,
			       burst->direction);
	if (wrs < 0)
		return wrs;
	if (burst->direction == DMA_FROM_DEVICE)
		atomic_add(wrs, &service->reading);
	burst->wrs += wrs;
	burst->num_sg += transfer->num_sg;
	burst->num_transfers++;
	return octets;
}

/**
 * rpcrdma_burst_add - move octets between here and one segment of a chunk
 * @request: whose burst
 * @local: memory here
 * @at: octets into @local
 * @octets: how many, not beyond the end of either; may be zero
 * @segment: memory there
 * @skip: octets into @segment
 *
 * Context: between rpcrdma_conn_enter() and rpcrdma_conn_leave().
 * Return: how many of @octets will be moved, fewer if the burst is full, or a
 * negative errno: -EAGAIN: the burst is empty, and there are no registrations
 * for it until others are through with theirs; else the connection has to be
 * closed.
 */
int rpcrdma_burst_add(struct rpcrdma_request *request,
		      const struct xdr_buf *local, u32 at, u32 octets,
		      const struct rpcrdma_segment *segment, u32 skip)
{
	const struct rpcrdma_burst *burst = &request->burst;
	struct rpcrdma_conn *conn = request->service->conn;
	u32 moved = 0;

	if (!conn->qp)
		return -ENOTCONN;
	while (moved < octets && !burst_full(conn, burst)) {
		int ret = burst_add_one(request, local, at + moved,
					octets - moved, segment, skip + moved);

		if (ret == -EAGAIN && burst->num_transfers)
			break;
		if (ret < 0)
			return ret;
		moved += ret;
	}
	return moved;
}
