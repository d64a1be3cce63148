// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Pages that change hands between threads of the RPC server and requests.
 *
 * Before each request the RPC server gives a thread new pages for those that it has
 * lost. To allocate and to free a page, and to zero it as many kernels do, costs more than
 * what the transport does for the page. So a thread loses few.
 *
 * Held pages. nfsd answers most READs with pages of the page cache. It puts them in the
 * places of the thread's own, which are freed. So a request takes a reference to the
 * pages that nfsd will probably replace, and puts them back into their places when the
 * Reply is sent. If nfsd defers the Call, they are held until it goes on, and the thread may
 * lose them to other Calls meanwhile. So there is a limit.
 *
 * Spare pages. RDMA Reads fill pages of the request. The thread that resumes it gets them
 * and gives its own pages for them, which the request keeps for its next RDMA Reads.
 *
 * In request->pages the spare pages come first, then the others.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>

#include "server_private.h"

/*
 * All connections together should not keep more spare pages than this fraction of the memory,
 * nor hold more pages.
 */
#define SVCRDMA_PAGES_SHIFT	8

/*
 * A request that is done keeps its spare pages while its connection has at most what so many
 * of the longest Calls need.
 */
#define SVCRDMA_SPARE_CALLS	4

static atomic_long_t svcrdma_num_spares;
static atomic_long_t svcrdma_num_held;

static bool svcrdma_pages_above(const atomic_t *num, unsigned int calls,
				const struct svcrdma_service *service,
				const atomic_long_t *all)
{
	return atomic_read(num) > calls * service->max_pages ||
	       atomic_long_read(all) > totalram_pages() >> SVCRDMA_PAGES_SHIFT;
}

static struct page **svcrdma_pages_others(const struct svcrdma_request *request)
{
	return &request->pages[request->num_spares];
}

static inline void svcrdma_pages_swap_all(struct page **some, struct page **others,
					  unsigned int num)
{
	unsigned int i;

	for (i = 0; i < num; i++)
		swap(some[i], others[i]);
}

static void svcrdma_pages_count_spares(struct svcrdma_request *request, unsigned int num)
{
	int more = num - request->num_spares;

	request->num_spares = num;
	atomic_add(more, &request->service->num_spares);
	atomic_long_add(more, &svcrdma_num_spares);
}

/**
 * svcrdma_pages_put - release all pages of a request but the spare ones
 * @request: the request, which needs them no more
 *
 * Context: any but hard interrupts.
 */
void svcrdma_pages_put(struct svcrdma_request *request)
{
	release_pages(svcrdma_pages_others(request), request->num_pages);
	request->num_pages = 0;
}

/**
 * svcrdma_pages_put_spares - release the spare pages of a request
 * @request: the request, into whose pages nothing is read
 *
 * Context: any but hard interrupts.
 */
void svcrdma_pages_put_spares(struct svcrdma_request *request)
{
	struct page **others = svcrdma_pages_others(request);

	release_pages(request->pages, request->num_spares);
	memmove(request->pages, others, request->num_pages * sizeof(*others));
	svcrdma_pages_count_spares(request, 0);
}

/**
 * svcrdma_pages_too_many_spares - whether there are more spare pages than should be kept
 * @service: the connection that has some
 *
 * Context: any.
 * Return: true if a request that is done should release its own.
 */
bool svcrdma_pages_too_many_spares(const struct svcrdma_service *service)
{
	return svcrdma_pages_above(&service->num_spares, SVCRDMA_SPARE_CALLS, service,
				   &svcrdma_num_spares);
}

/* The RPC server gives the thread new pages before its next request. */
static void svcrdma_pages_take_more(struct svcrdma_request *request, struct svc_rqst *rqstp,
				    unsigned int num_pages)
{
	unsigned int more = num_pages - request->num_spares;
	size_t size = more * sizeof(*request->pages);

	memcpy(svcrdma_pages_others(request), rqstp->rq_pages, size);
	memset(rqstp->rq_pages, 0, size);
	rpcrdma_compat_took_call_pages(rqstp, more);
	svcrdma_pages_count_spares(request, num_pages);
}

/**
 * svcrdma_pages_take - have enough spare pages for RDMA Reads
 * @request: a Call with Read chunks, and without other pages
 * @rqstp: the svc_rqst of the thread, whose pages the request takes if it has too few; the
 *	thread gets no Call now
 * @num_pages: how many the Call needs
 *
 * Context: a thread of the RPC server, in ->xpo_recvfrom.
 * Return: true if it has taken some.
 */
bool svcrdma_pages_take(struct svcrdma_request *request, struct svc_rqst *rqstp,
			unsigned int num_pages)
{
	if (request->num_spares >= num_pages)
		return false;
	svcrdma_pages_take_more(request, rqstp, num_pages);
	return true;
}

/**
 * svcrdma_pages_swap - give the thread the pages that were read into, for others
 * @request: a Call that is read to its end
 * @rqstp: the svc_rqst of the thread
 * @num_pages: how many the Call has
 *
 * Context: a thread of the RPC server, in ->xpo_recvfrom.
 */
void svcrdma_pages_swap(struct svcrdma_request *request, struct svc_rqst *rqstp,
			unsigned int num_pages)
{
	svcrdma_pages_swap_all(request->pages, rqstp->rq_pages, num_pages);
	rpcrdma_compat_use_call_pages(rqstp, num_pages);
}

static void svcrdma_pages_count_held(const struct svcrdma_request *request, int num)
{
	atomic_add(num, &request->service->num_held);
	atomic_long_add(num, &svcrdma_num_held);
}

/* What is more than the connection's threads can hold is held for deferred Calls. */
static bool svcrdma_pages_too_many_held(const struct svcrdma_service *service)
{
	return svcrdma_pages_above(&service->num_held, atomic_read(&service->xprt.xpt_nr_rqsts),
				   service, &svcrdma_num_held);
}

/**
 * svcrdma_pages_hold - hold the thread's pages that nfsd may replace
 * @request: a Call without Read chunks that offers a Write chunk
 * @rqstp: the svc_rqst of the thread, which is to execute the Call
 *
 * The thread keeps its own references. The Call holds none if too many are held already.
 *
 * Context: a thread of the RPC server, in ->xpo_recvfrom.
 */
void svcrdma_pages_hold(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	/*
	 * nfsd places the data after the page of the head. Those of a READ go to the first
	 * chunk. A page that they fill in part is not worth a reference.
	 */
	struct svcrdma_service *service = request->service;
	struct page **page = rqstp->rq_respages + 1, **held;
	unsigned int most = service->max_pages - 1;
	unsigned int i, n;

	if (unlikely(svcrdma_pages_too_many_held(service)))
		return;
	n = min3(request->msg.write[0].length >> PAGE_SHIFT, most,
		 (unsigned int)(rqstp->rq_page_end - page));
	if (unlikely(request->num_spares + n > most))
		svcrdma_pages_put_spares(request);
	svcrdma_pages_count_held(request, n);
	request->num_pages = n;
	held = svcrdma_pages_others(request);
	for (i = 0; i < n; i++) {
		struct page *own = page[i];

		held[i] = own;
		get_page(own);
	}
}

/**
 * svcrdma_pages_returned - note that nfsd does not have a Call any more
 * @request: the Call, which may hold pages
 * @keep: its Reply is sent now, by the thread whose pages it holds
 *
 * Context: any but hard interrupts.
 */
void svcrdma_pages_returned(struct svcrdma_request *request, bool keep)
{
	if (!request->num_pages)
		return;
	svcrdma_pages_count_held(request, -request->num_pages);
	if (!keep)
		svcrdma_pages_put(request);
}

/**
 * svcrdma_pages_restore - give the thread back the pages that nfsd has replaced
 * @request: a Call that holds pages; it gets what was in their places
 * @rqstp: the svc_rqst of the thread that executed the Call
 *
 * After an error, nfsd may have replaced pages from rq_next_page on. Nobody else would take
 * them out of the thread's pages.
 *
 * Context: a thread of the RPC server, in ->xpo_sendto, when the Reply is copied.
 */
void svcrdma_pages_restore(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	svcrdma_pages_swap_all(rqstp->rq_respages + 1, svcrdma_pages_others(request),
			       request->num_pages);
	rpcrdma_compat_keep_reply_pages(rqstp, 1 + request->num_pages);
}

/* How many of the pages that a request holds are places of its Reply, which ends at @end */
static unsigned int svcrdma_pages_num_held(const struct svcrdma_request *request,
					   const struct svc_rqst *rqstp, struct page **end)
{
	struct page **data = rqstp->rq_respages + 1;

	return end > data ? min_t(unsigned int, request->num_pages, end - data) : 0;
}

/*
 * A page of the thread's own that the device reads goes to the request, as one that nfsd
 * has put in its place does. Only then the thread gets a new one.
 *
 * Return: the place after the last entry that is NULL now, or NULL if none is.
 */
static struct page **svcrdma_pages_exchange(struct page **held, struct page **page,
					    unsigned int num)
{
	struct page **empty = NULL;
	unsigned int i;

	for (i = 0; i < num; i++) {
		if (page[i] != held[i]) {
			swap(page[i], held[i]);
			continue;
		}
		put_page(page[i]);
		page[i] = NULL;
		empty = &page[i] + 1;
	}
	return empty;
}

/* svcrdma_pages_keep(), when the first @done pages of the data have been exchanged */
static noinline void svcrdma_pages_keep_others(struct svcrdma_request *request,
					       struct svc_rqst *rqstp, struct page **end,
					       bool head, unsigned int done)
{
	unsigned int n = svcrdma_pages_num_held(request, rqstp, end);
	struct page **page = rqstp->rq_respages;
	struct page **kept, **empty;

	/* One for the head, which may be all that there is */
	if (request->num_spares + request->num_pages + (end - page) - n + 1 >
	    request->service->max_pages)
		svcrdma_pages_put_spares(request);
	kept = svcrdma_pages_others(request);
	empty = svcrdma_pages_exchange(kept + done, page + 1 + done, n - done);
	/* What nfsd has replaced before an error */
	svcrdma_pages_swap_all(page + 1 + n, kept + n, request->num_pages - n);
	kept += request->num_pages;
	if (head && page < end) {
		*kept++ = *page;
		*page = NULL;
		empty = empty ?: page + 1;
	}
	for (page += 1 + n; page < end; page++) {
		struct page *taken = *page;

		*page = NULL;
		empty = end;
		if (taken)
			*kept++ = taken;
	}
	request->num_pages = kept - svcrdma_pages_others(request);
	rpcrdma_compat_took_reply_pages(rqstp, empty ?: rqstp->rq_respages);
}

/**
 * svcrdma_pages_keep - take the pages that the device reads
 * @request: the request, which has them until svcrdma_pages_put()
 * @rqstp: the svc_rqst of the thread that executed the Call
 * @end: the place after the last page of the Reply
 * @head: the device reads the page of the head and the tail; if not, the thread keeps it
 *
 * The thread gets back the pages that the request holds, and new ones for the others.
 * Mostly these are all.
 *
 * Context: a thread of the RPC server, in ->xpo_sendto.
 */
void svcrdma_pages_keep(struct svcrdma_request *request, struct svc_rqst *rqstp,
			struct page **end, bool head)
{
	struct page **held = svcrdma_pages_others(request);
	struct page **page = rqstp->rq_respages + 1;
	unsigned int i = 0, n = request->num_pages;

	if (!head && end == page + n) {
		for (; i < n && page[i] != held[i]; i++)
			swap(page[i], held[i]);
		if (i == n) {
			rpcrdma_compat_took_reply_pages(rqstp, rqstp->rq_respages);
			return;
		}
	}
	svcrdma_pages_keep_others(request, rqstp, end, head, i);
}

/**
 * svcrdma_pages_exit - see that no spare or held page is left
 *
 * Context: any. No request is left.
 */
void svcrdma_pages_exit(void)
{
	WARN_ON(atomic_long_read(&svcrdma_num_spares));
	WARN_ON(atomic_long_read(&svcrdma_num_held));
}
