/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * For all kernels: which pages of a thread are for the Call and which for the Reply.
 *
 * Between two requests the RPC server gives a thread new pages for those that are
 * missing. After each request it releases the pages from rq_respages up to
 * rq_next_page. There are two layouts:
 *
 * One array, for instance in 6.1 and 6.12. rq_pages has the pages of the Call, and after
 * them those of the Reply. The transport sets rq_respages to the first page of the Reply.
 * Pages that are released must exist. Each entry of the array that is NULL is filled again.
 *
 * Two arrays of rq_maxpages entries, for instance in 7.3. rq_pages is for the Call,
 * rq_respages for the Reply, and the transport must not change either pointer. Entries that
 * are NULL are not released. Only the first rq_pages_nfree entries of rq_pages, and those
 * from rq_respages up to rq_next_page, are filled again. Any other entry that is NULL stays
 * NULL, and the next request that uses it fails.
 *
 * On both, a page in an array belongs to the thread, and a page that the transport has
 * taken belongs to the transport. The functions below tell the RPC server what the
 * transport has done.
 */
#ifndef RPCRDMA_OVERLAY_LINUX_SUNRPC_SVC_H
#define RPCRDMA_OVERLAY_LINUX_SUNRPC_SVC_H

#include_next <linux/sunrpc/svc.h>
#include <linux/minmax.h>
#include <rpcrdma-probes.h>

#ifdef HAVE_ONE_PAGE_ARRAY

static inline unsigned int rpcrdma_compat_call_pages(const struct svc_rqst *rqstp)
{
	/* At least two are left for the Reply. */
	return rqstp->rq_page_end - rqstp->rq_pages - 2;
}

static inline void rpcrdma_compat_use_call_pages(struct svc_rqst *rqstp,
						 unsigned int num_pages)
{
	rqstp->rq_respages = &rqstp->rq_pages[num_pages];
	rqstp->rq_next_page = rqstp->rq_respages;
}

static inline void rpcrdma_compat_took_call_pages(struct svc_rqst *rqstp,
						  unsigned int num_pages)
{
}

static inline void rpcrdma_compat_keep_reply_pages(struct svc_rqst *rqstp,
						   unsigned int num_pages)
{
	rqstp->rq_respages = min(rqstp->rq_respages + num_pages, rqstp->rq_next_page);
}

static inline void rpcrdma_compat_took_reply_pages(struct svc_rqst *rqstp,
						   struct page **end)
{
	rqstp->rq_next_page = rqstp->rq_respages;
}

static inline void rpcrdma_compat_set_pages(struct svc_rqst *rqstp, struct page **entries,
					    unsigned int num_pages)
{
#ifdef HAVE_RQ_MAXPAGES	/* since 6.16, which allocate the array */
	rqstp->rq_maxpages = num_pages;
	rqstp->rq_pages = entries;
#endif
	rqstp->rq_respages = rqstp->rq_pages;
	rqstp->rq_page_end = &rqstp->rq_pages[num_pages];
}

#else

/**
 * rpcrdma_compat_call_pages - how many pages a Call may use
 * @rqstp: the svc_rqst of a thread
 *
 * Return: entries of rq_pages.
 */
static inline unsigned int rpcrdma_compat_call_pages(const struct svc_rqst *rqstp)
{
	return rqstp->rq_maxpages;
}

/**
 * rpcrdma_compat_use_call_pages - say how many pages of rq_pages the Call uses
 * @rqstp: the svc_rqst of a thread that has sent nothing yet
 * @num_pages: pages from the first on; they stay with the thread
 *
 * A transport calls this for each request before nfsd gets it.
 *
 * Context: a thread of the RPC server, in ->xpo_recvfrom.
 */
static inline void rpcrdma_compat_use_call_pages(struct svc_rqst *rqstp,
						 unsigned int num_pages)
{
}

/**
 * rpcrdma_compat_took_call_pages - say that the transport has taken pages of rq_pages
 * @rqstp: the svc_rqst of a thread, which gets no Call now
 * @num_pages: pages from the first on; their entries are NULL
 *
 * A transport takes pages at most once in each ->xpo_recvfrom.
 *
 * Context: a thread of the RPC server, in ->xpo_recvfrom.
 */
static inline void rpcrdma_compat_took_call_pages(struct svc_rqst *rqstp,
						  unsigned int num_pages)
{
	rqstp->rq_pages_nfree = num_pages;
}

/**
 * rpcrdma_compat_keep_reply_pages - leave the first pages of the Reply to the thread
 * @rqstp: the svc_rqst of a thread; the transport has taken no page of the Reply
 * @num_pages: how many, at least one; the entries of all are the thread's own pages
 *
 * Saves the release and the allocation of these pages. If the Reply has more pages, the
 * RPC server may release all of them nevertheless.
 *
 * Context: a thread of the RPC server, in ->xpo_sendto, which does not use the pages any
 * more.
 */
static inline void rpcrdma_compat_keep_reply_pages(struct svc_rqst *rqstp,
						   unsigned int num_pages)
{
	if (rqstp->rq_next_page <= rqstp->rq_respages + num_pages)
		rqstp->rq_next_page = rqstp->rq_respages;
}

/**
 * rpcrdma_compat_took_reply_pages - say that the transport has taken pages of the Reply
 * @rqstp: the svc_rqst of a thread
 * @end: the place after the last entry that is NULL now; rq_respages if none is. The
 *	thread may lose pages in entries before it.
 *
 * Context: a thread of the RPC server, in ->xpo_sendto, which does not use the pages that
 * it has left to the thread.
 */
static inline void rpcrdma_compat_took_reply_pages(struct svc_rqst *rqstp,
						   struct page **end)
{
	rqstp->rq_next_page = end;
}

/**
 * rpcrdma_compat_set_pages - say where the pages of an svc_rqst are that a test makes
 * @rqstp: the svc_rqst, all zero
 * @entries: twice @num_pages entries, for two arrays
 * @num_pages: entries of one array
 *
 * Context: a test.
 */
static inline void rpcrdma_compat_set_pages(struct svc_rqst *rqstp, struct page **entries,
					    unsigned int num_pages)
{
	rqstp->rq_maxpages = num_pages;
	rqstp->rq_pages = entries;
	rqstp->rq_respages = entries + num_pages;
	rqstp->rq_page_end = rqstp->rq_respages + num_pages;
}

#endif

#endif /* RPCRDMA_OVERLAY_LINUX_SUNRPC_SVC_H */
