// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Pages that change hands between threads of the RPC server and requests.
 *
 * nfsd answers most READs with pages of the page cache. It puts them in the places of
 * the thread's own pages, which the RPC server then frees, and before the next request
 * it allocates others. Many kernels zero them. All that costs more than what the
 * transport does for a READ. So a request holds a reference to the pages that nfsd will
 * probably replace, and puts them back into their places when the Reply is sent.
 */
#include <linux/mm.h>

#include "server_private.h"

/**
 * svcrdma_pages_hold - hold the thread's pages that nfsd may replace
 * @request: a Call without pages, which offers a Write chunk
 * @rqstp: the svc_rqst of the thread, which is to execute the Call
 *
 * The thread keeps its references. svcrdma_pages_keep() or svcrdma_pages_restore()
 * follows, unless another thread sends the Reply, see svcrdma_pages_forget().
 *
 * Context: a thread of the RPC server, in ->xpo_recvfrom.
 */
void svcrdma_pages_hold(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	/* nfsd places the data after the page of the head. */
	struct page **page = rqstp->rq_respages + 1;
	struct page **held = request->pages;
	unsigned int i, n;

	n = min3(request->msg.write[0].length >> PAGE_SHIFT,
		 request->service->max_pages - 1,
		 (unsigned int)(rqstp->rq_page_end - page));
	for (i = 0; i < n && page[i]; i++) {
		get_page(page[i]);
		held[i] = page[i];
	}
	request->num_pages = i;
}

/**
 * svcrdma_pages_forget - hold no pages any more
 * @request: a Call that was deferred
 *
 * Another thread may send its Reply, and the thread that took it up has used its pages
 * for other requests meanwhile.
 *
 * Context: a thread of the RPC server.
 */
void svcrdma_pages_forget(struct svcrdma_request *request)
{
	release_pages(request->pages, request->num_pages);
	request->num_pages = 0;
}

/* How many of the pages that a request holds are places of its Reply, which ends at @end */
static unsigned int svcrdma_pages_held(const struct svcrdma_request *request,
				       const struct svc_rqst *rqstp, struct page **end)
{
	struct page **data = rqstp->rq_respages + 1;

	return end > data ? min_t(unsigned int, request->num_pages, end - data) : 0;
}

/**
 * svcrdma_pages_restore - give the thread back the pages that nfsd has replaced
 * @request: a Call that holds pages; it gets what was in their places
 * @rqstp: the svc_rqst of the thread that executed the Call
 *
 * Context: a thread of the RPC server, in ->xpo_sendto, when the Reply is copied.
 */
void svcrdma_pages_restore(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	unsigned int i, n = svcrdma_pages_held(request, rqstp, rqstp->rq_next_page);
	struct page **page = rqstp->rq_respages + 1;

	for (i = 0; i < n; i++)
		swap(page[i], request->pages[i]);
	rpcrdma_compat_keep_reply_pages(rqstp, 1 + n);
}

/*
 * A page of the thread's own that the device reads goes to the request, as one that nfsd
 * has put in its place. Only then the thread gets a new one.
 *
 * Return: the place after the last entry that is NULL now, or NULL if none is.
 */
static struct page **svcrdma_pages_exchange(struct page **held, struct page **page,
					    unsigned int n)
{
	struct page **empty = NULL;

	for (; n; n--, page++, held++) {
		struct page *used = *page, *own = *held;

		if (likely(used != own && used)) {
			*page = own;
			*held = used;
			continue;
		}
		if (used)
			put_page(used);
		*page = NULL;
		empty = page + 1;
	}
	return empty;
}

/**
 * svcrdma_pages_keep - take the pages that the device reads
 * @request: the request, which has them until it is put
 * @rqstp: the svc_rqst of the thread that executed the Call
 * @end: the place after the last page of the Reply
 * @head: the device reads the page of the head and the tail; if not, the thread keeps it
 *
 * The thread gets back the pages that the request holds, and new ones for the others.
 *
 * Context: a thread of the RPC server, in ->xpo_sendto.
 */
void svcrdma_pages_keep(struct svcrdma_request *request, struct svc_rqst *rqstp,
			struct page **end, bool head)
{
	struct page **kept = &request->pages[request->num_pages];
	unsigned int n = svcrdma_pages_held(request, rqstp, end);
	struct page **page = rqstp->rq_respages + 1;
	struct page **empty;

	empty = svcrdma_pages_exchange(request->pages, page, n);
	for (page += n; page < end; page++) {
		struct page *taken = *page;

		*page = NULL;
		empty = end;
		if (taken)
			*kept++ = taken;
	}
	page = rqstp->rq_respages;
	if (head && end > page) {
		*kept++ = *page;
		*page = NULL;
		empty = empty ?: page + 1;
	}
	request->num_pages = kept - request->pages;
	rpcrdma_compat_took_reply_pages(rqstp, empty ?: rqstp->rq_respages);
}
