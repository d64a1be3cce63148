// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Pages that change hands between threads of the RPC server and requests.
 *
 * Before each request the RPC server gives a thread new pages for those that it has
 * lost. To allocate and to free a page, and to zero it as many kernels do, costs more than
 * what the transport does for the page. So a thread should lose few.
 *
 * Held pages. nfsd answers most READs with pages of the page cache, which replace the thread's
 * own; those are freed. So a request holds the pages that nfsd will probably replace, and gives
 * them back when the Reply is sent. If nfsd defers the Call, they are held until it goes on, and
 * the thread may lose them to other Calls meanwhile. So there is a limit.
 *
 * Spare pages. RDMA Reads fill pages of the request. The thread that resumes it gets them
 * in exchange for its own, which the request keeps for its next RDMA Reads.
 *
 * In request->pages the spare pages come first, then the others.
 *
 * To take a page is to leave its entry in the thread empty, to swap pages is to exchange them
 * with the thread's, to hold them is to have a reference beside the thread's, and to put them is
 * to release a reference.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sizes.h>

#include "server_private.h"

/*
 * The part of the memory, as a shift, that the spare pages of all connections together should
 * not exceed; the same for held pages.
 */
#define SVCRDMA_PAGES_SHIFT	8

/* A page that nfsd fills with fewer octets than this is not worth a reference, however large. */
#define SVCRDMA_HELD_MIN	SZ_4K

/*
 * A request that is done keeps its spare pages unless its connection has more of them than this
 * many of the longest Calls need.
 */
#define SVCRDMA_SPARE_CALLS	4

static atomic_long_t svcrdma_num_spares;
static atomic_long_t svcrdma_num_held;

static bool pages_above(const atomic_t *num, unsigned int calls,
			const struct svcrdma_service *service, const atomic_long_t *all)
{
	return atomic_read(num) > calls * service->max_pages ||
	       atomic_long_read(all) > totalram_pages() >> SVCRDMA_PAGES_SHIFT;
}

static struct page **pages_others(const struct svcrdma_request *request)
{
	return &request->pages[request->num_spares];
}

static void pages_swap(struct page **some, struct page **others, unsigned int num)
{
	unsigned int i;

	for (i = 0; i < num; i++)
		swap(some[i], others[i]);
}

static void pages_count_spares(struct svcrdma_request *request, unsigned int num)
{
	int more = num - request->num_spares;

	request->num_spares = num;
	atomic_add(more, &request->service->num_spares);
	atomic_long_add(more, &svcrdma_num_spares);
}

/* Put all pages of a request but the spare ones. */
void svcrdma_pages_put(struct svcrdma_request *request)
{
	release_pages(pages_others(request), request->num_pages);
	request->num_pages = 0;
}

/* Put the spare pages of a request without RDMA Reads in flight. */
void svcrdma_pages_put_spares(struct svcrdma_request *request)
{
	struct page **others = pages_others(request);

	release_pages(request->pages, request->num_spares);
	memmove(request->pages, others, request->num_pages * sizeof(*others));
	pages_count_spares(request, 0);
}

/* Whether a request that is done should put its spare pages */
bool svcrdma_pages_too_many_spares(const struct svcrdma_service *service)
{
	return pages_above(&service->num_spares, SVCRDMA_SPARE_CALLS, service, &svcrdma_num_spares);
}

/**
 * svcrdma_pages_take_spares - have enough spare pages for RDMA Reads
 * @request: a Call with Read chunks, and without other pages
 * @rqstp: the svc_rqst of the thread, which needs no pages until it gets new ones
 * @num_pages: how many the Call needs
 *
 * Return: true if the thread has lost pages.
 */
bool svcrdma_pages_take_spares(struct svcrdma_request *request, struct svc_rqst *rqstp,
			       unsigned int num_pages)
{
	unsigned int more = num_pages - request->num_spares;
	size_t size = more * sizeof(*request->pages);

	if (request->num_spares >= num_pages)
		return false;
	memcpy(pages_others(request), rqstp->rq_pages, size);
	memset(rqstp->rq_pages, 0, size);
	rpcrdma_compat_took_call_pages(rqstp, more);
	pages_count_spares(request, num_pages);
	return true;
}

/* Give the thread the @num_pages pages that RDMA Reads have filled, for its own. */
void svcrdma_pages_swap_spares(struct svcrdma_request *request, struct svc_rqst *rqstp,
			       unsigned int num_pages)
{
	pages_swap(request->pages, rqstp->rq_pages, num_pages);
	rpcrdma_compat_use_call_pages(rqstp, num_pages);
}

static void pages_count_held(const struct svcrdma_request *request, int num)
{
	atomic_add(num, &request->service->num_held);
	atomic_long_add(num, &svcrdma_num_held);
}

/**
 * svcrdma_pages_hold - hold the thread's pages that nfsd may replace
 * @request: a Call without Read chunks that offers a Write chunk
 * @rqstp: the svc_rqst of the thread, which is to execute the Call
 *
 * It holds none while its connection holds more pages than all Calls that threads execute for it
 * could: the others are of deferred Calls, which may last.
 */
void svcrdma_pages_hold(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	struct svcrdma_service *service = request->service;
	struct page **page = rqstp->rq_respages + 1, **held;
	unsigned int most = service->max_pages - 1;
	unsigned int i, n;

	if (pages_above(&service->num_held, atomic_read(&service->xprt.xpt_nr_rqsts),
			service, &svcrdma_num_held))
		return;
	/*
	 * nfsd places the data after the page of the head. The data of a READ goes to the first
	 * chunk.
	 */
	n = (request->msg.write[0].length + PAGE_SIZE - SVCRDMA_HELD_MIN) >> PAGE_SHIFT;
	n = min3(n, most, (unsigned int)(rqstp->rq_page_end - page));
	if (request->num_spares + n > most)
		svcrdma_pages_put_spares(request);
	pages_count_held(request, n);
	request->num_pages = n;
	held = pages_others(request);
	for (i = 0; i < n; i++) {
		held[i] = page[i];
		get_page(held[i]);
	}
}

/* nfsd does not have the Call any more. Its pages stay, but no longer count as held. */
void svcrdma_pages_unhold(struct svcrdma_request *request)
{
	if (request->num_pages)
		pages_count_held(request, -request->num_pages);
}

/**
 * svcrdma_pages_swap_held - give the thread back the pages that nfsd has replaced
 * @request: a Call that may hold pages; it gets what was in their places
 * @rqstp: the svc_rqst of the thread that executed the Call
 *
 * For a Reply that is copied. The thread keeps the page of the head and those that were held;
 * the RPC server frees the others. All that were held are swapped: after an error, nfsd may have
 * replaced pages from rq_next_page on, and nobody else would take them out.
 */
void svcrdma_pages_swap_held(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	pages_swap(rqstp->rq_respages + 1, pages_others(request), request->num_pages);
	rpcrdma_compat_keep_reply_pages(rqstp, 1 + request->num_pages);
}

/**
 * svcrdma_pages_take_reply - take the pages that the device reads
 * @request: the request, which has them until svcrdma_pages_put()
 * @rqstp: the svc_rqst of the thread that executed the Call
 * @end: the place after the last page of the Reply
 * @head: the device reads the page of the head and the tail; if not, the thread keeps it
 *
 * The thread gets back the pages that the request holds, and new ones for the others.
 */
void svcrdma_pages_take_reply(struct svcrdma_request *request, struct svc_rqst *rqstp,
			      struct page **end, bool head)
{
	struct page **reply = rqstp->rq_respages, **empty = reply;
	struct page **page = reply + 1, **beyond = page + request->num_pages;
	struct page **to;

	/* The held pages, the head, and what the Reply has beyond the held ones */
	if (request->num_spares + request->num_pages + 1 + max_t(long, end - beyond, 0) >
	    request->service->max_pages)
		svcrdma_pages_put_spares(request);
	to = pages_others(request);
	for (; page < beyond; page++, to++) {
		if (*page != *to) {
			/* What nfsd has put there, perhaps before an error */
			swap(*page, *to);
		} else if (page < end) {
			put_page(*page);
			*page = NULL;
			empty = page + 1;
		}
	}
	for (; page < end; page++) {
		if (*page)
			*to++ = *page;
		*page = NULL;
		empty = end;
	}
	if (head && reply < end) {
		*to++ = *reply;
		*reply = NULL;
		empty = max(empty, reply + 1);
	}
	request->num_pages = to - pages_others(request);
	rpcrdma_compat_took_reply_pages(rqstp, empty);
}

/* No request is left, so no spare or held page may be. */
void svcrdma_pages_exit(void)
{
	WARN_ON(atomic_long_read(&svcrdma_num_spares));
	WARN_ON(atomic_long_read(&svcrdma_num_held));
}
