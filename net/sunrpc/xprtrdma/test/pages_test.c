// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of server/: which pages change hands between a thread of the RPC server and
 * its requests, and that each page has as many references as owners.
 */
#include <kunit/test.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/sunrpc/svc.h>

#include "../conn/conn_private.h"
#include "../server/server_private.h"

#define THREAD_PAGES	12	/* pages of a thread for a Reply, with that of the head */
#define MAX_PAGES	(THREAD_PAGES + 1)
#define GUARDS		4	/* entries after the last that a request may use */
#define TRACKED		64
#define REQUESTS	4

/* Whether rq_pages has the pages of the Reply, too */
#define ONE_ARRAY	(sizeof_field(struct svc_rqst, rq_pages) > sizeof(struct page **))

/* A thread with its pages. Made for each test, which has a reference to each page. */
struct pages {
	struct svcrdma_service service;
	struct svcrdma_request request;
	struct svc_rqst rqst;
	struct page *in_request[MAX_PAGES + GUARDS];
	struct page *entries[2 * THREAD_PAGES];
	struct page *own[THREAD_PAGES];	/* what was in rq_respages at first */
	struct page *call[THREAD_PAGES];	/* what was in rq_pages at first */
	struct page *put[THREAD_PAGES];	/* what nfsd put into rq_respages, or NULL */
	struct page *tracked[TRACKED];
	unsigned int num_tracked;
};

/* A page with one owner */
static struct page *new_page(struct kunit *test)
{
	struct pages *p = test->priv;
	struct page *page;

	KUNIT_ASSERT_LT(test, p->num_tracked, TRACKED);
	page = alloc_page(GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, page);
	get_page(page);
	p->tracked[p->num_tracked++] = page;
	return page;
}

static int owners(struct page *page)
{
	return page_ref_count(page) - 1;
}

static unsigned int tracked_owners(const struct pages *p)
{
	unsigned int i, num = 0;

	for (i = 0; i < p->num_tracked; i++)
		num += owners(p->tracked[i]);
	return num;
}

/* As the RPC server does it before a request, but into any entry. */
static void fill(struct kunit *test, struct page **entry)
{
	unsigned int i;

	for (i = 0; i < THREAD_PAGES; i++)
		if (!entry[i])
			entry[i] = new_page(test);
}

/* As the RPC server does it after a request. Return: how many pages it has released. */
static unsigned int release(struct svc_rqst *rqstp)
{
	struct page **entry = rqstp->rq_respages;
	unsigned int num = 0;

	for (; entry < rqstp->rq_next_page; entry++) {
		if (!*entry)
			continue;
		put_page(*entry);
		*entry = NULL;
		num++;
	}
	return num;
}

static void empty(struct page **entry)
{
	unsigned int i;

	for (i = 0; i < THREAD_PAGES; i++) {
		if (entry[i])
			put_page(entry[i]);
		entry[i] = NULL;
	}
}

static void pages_begin(struct kunit *test)
{
	struct pages *p = test->priv;
	struct svc_rqst *rqstp = &p->rqst;

	memset(p, 0, sizeof(*p));
	p->service.max_pages = MAX_PAGES;
	atomic_set(&p->service.xprt.xpt_nr_rqsts, 1);
	p->request.service = &p->service;
	p->request.pages = p->in_request;
	rpcrdma_compat_set_pages(rqstp, p->entries, THREAD_PAGES);
	fill(test, rqstp->rq_pages);
	fill(test, rqstp->rq_respages);
	rpcrdma_compat_use_call_pages(rqstp, 0);
	rqstp->rq_next_page = rqstp->rq_respages;
	memcpy(p->own, rqstp->rq_respages, sizeof(p->own));
	memcpy(p->call, rqstp->rq_pages, sizeof(p->call));
}

static void expect_bounds(struct kunit *test)
{
	struct pages *p = test->priv;

	KUNIT_EXPECT_LE(test, p->request.num_spares + p->request.num_pages, MAX_PAGES);
	KUNIT_EXPECT_NULL(test, memchr_inv(&p->in_request[MAX_PAGES], 0,
					   GUARDS * sizeof(struct page *)));
}

/* When the request and the thread have released theirs, no page has an owner. */
static void pages_end(struct kunit *test)
{
	struct pages *p = test->priv;
	unsigned int i;

	expect_bounds(test);
	svcrdma_pages_put(&p->request);
	svcrdma_pages_put_spares(&p->request);
	KUNIT_EXPECT_EQ(test, p->request.num_pages, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&p->service.num_spares), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&p->service.num_held), 0);
	release(&p->rqst);
	empty(p->rqst.rq_pages);
	if (!ONE_ARRAY)
		empty(p->rqst.rq_page_end - THREAD_PAGES);
	for (i = 0; i < p->num_tracked; i++) {
		KUNIT_EXPECT_EQ(test, owners(p->tracked[i]), 0);
		put_page(p->tracked[i]);
	}
	p->num_tracked = 0;
}

static int pages_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, sizeof(struct pages), GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

/* How many of the pages that the request has besides the spare ones are this one */
static unsigned int in_request(const struct pages *p, const struct page *page)
{
	const struct svcrdma_request *request = &p->request;
	unsigned int i, num = 0;

	for (i = 0; i < request->num_pages; i++)
		num += request->pages[request->num_spares + i] == page;
	return num;
}

/*
 * nfsd and a READ. Each character is one entry after that of the head: 'c' nfsd puts a page
 * of the page cache there; 'o' the data is in the thread's own page; 'r' as 'c', but then
 * there is an error, and rq_next_page goes back before it.
 */
struct read_row {
	const char *name;
	unsigned int held;
	const char *used;
	bool head;
	unsigned int spares;
};

static const struct read_row read_rows[] = {
	{ "all replaced", 4, "cccc" },
	{ "none replaced", 4, "oooo" },
	{ "the first replaced", 4, "coco" },
	{ "the last replaced", 4, "occc" },
	{ "the last not replaced", 4, "ccco" },
	{ "fewer than held", 4, "cc" },
	{ "fewer than held, own", 4, "oo" },
	{ "fewer than held, some", 5, "coc" },
	{ "no data", 4, "" },
	{ "more than held", 3, "cccc" },
	{ "more than held, own", 3, "ooooo" },
	{ "more than held, some", 2, "cococ" },
	{ "nothing held", 0, "cc" },
	{ "nothing held, own", 0, "oo" },
	{ "all, and the head", 4, "cccc", true },
	{ "own, and the head", 4, "oooo", true },
	{ "fewer, and the head", 4, "co", true },
	{ "more, and the head", 2, "ccoc", true },
	{ "only the head", 4, "", true },
	{ "the whole thread", THREAD_PAGES - 1, "ccccccccccc", true },
	{ "the whole thread, own", THREAD_PAGES - 1, "ooooooooooo", true },
	{ "an error after the first", 4, "crrr" },
	{ "an error at the first", 4, "rrrr" },
	{ "an error, and the head", 4, "crr", true },
	{ "spare pages", 4, "cocc", false, 3 },
	{ "spare pages and the whole thread", THREAD_PAGES - 1, "ccccccccccc", true, 8 },
	{ "spare pages and more than held", 4, "oooooooo", false, 8 },
};

KUNIT_ARRAY_PARAM_DESC(read, read_rows, name);

static bool is_cache(const struct read_row *row, unsigned int i)
{
	return row->used[i - 1] == 'c' || row->used[i - 1] == 'r';
}

/* As svc_rqst_replace_page() does it. */
static void replace_page(struct kunit *test, struct page **entry, unsigned int i)
{
	struct pages *p = test->priv;

	put_page(*entry);
	p->put[i] = new_page(test);
	*entry = p->put[i];
}

/* A Call that holds pages, up to the Reply. Return: how many entries the Reply has. */
static unsigned int make_read(struct kunit *test, const struct read_row *row)
{
	struct pages *p = test->priv;
	struct svc_rqst *rqstp = &p->rqst;
	unsigned int i, end = 1;

	if (row->spares) {
		svcrdma_pages_take_spares(&p->request, rqstp, row->spares);
		fill(test, rqstp->rq_pages);
		memcpy(p->own, rqstp->rq_respages, sizeof(p->own));
	}
	p->request.msg.num_writes = 1;
	p->request.msg.write[0].length = row->held * PAGE_SIZE + 100;
	svcrdma_pages_hold(&p->request, rqstp);
	KUNIT_ASSERT_EQ(test, p->request.num_pages, row->held);
	expect_bounds(test);
	for (i = 0; i < THREAD_PAGES; i++)
		KUNIT_ASSERT_EQ(test, owners(p->own[i]), i && i <= row->held ? 2 : 1);

	for (i = 1; i <= strlen(row->used); i++) {
		if (is_cache(row, i))
			replace_page(test, &rqstp->rq_respages[i], i);
		if (row->used[i - 1] != 'r')
			end = i + 1;
	}
	rqstp->rq_next_page = rqstp->rq_respages + end;
	KUNIT_EXPECT_EQ(test, atomic_read(&p->service.num_held), row->held);
	svcrdma_pages_unhold(&p->request);
	return end;
}

/* The thread has its own page in an entry, which the request may hold until it is put. */
static void expect_own(struct kunit *test, unsigned int i)
{
	struct pages *p = test->priv;

	KUNIT_EXPECT_PTR_EQ(test, p->rqst.rq_respages[i], p->own[i]);
	KUNIT_EXPECT_EQ(test, owners(p->own[i]), 1 + in_request(p, p->own[i]));
	if (p->put[i]) {
		KUNIT_EXPECT_EQ(test, in_request(p, p->put[i]), 1);
		KUNIT_EXPECT_EQ(test, owners(p->put[i]), 1);
	}
}

/* The request has the page that was in an entry. */
static void expect_taken(struct kunit *test, unsigned int i)
{
	struct pages *p = test->priv;
	struct page *page = p->put[i] ?: p->own[i];

	KUNIT_EXPECT_NULL(test, p->rqst.rq_respages[i]);
	KUNIT_EXPECT_EQ(test, in_request(p, page), 1);
	KUNIT_EXPECT_EQ(test, owners(page), 1);
}

static void expect_kept(struct kunit *test, const struct read_row *row, unsigned int end)
{
	struct pages *p = test->priv;
	unsigned int i, empty = 0;

	for (i = 0; i < THREAD_PAGES; i++) {
		bool cache = i && i <= strlen(row->used) && is_cache(row, i);
		bool restored = i ? i >= end || (cache && i <= row->held) : !row->head;

		if (restored) {
			expect_own(test, i);
		} else {
			expect_taken(test, i);
			empty = i + 1;
		}
	}
	/* The RPC server fills these entries again. With one array it looks at all. */
	KUNIT_EXPECT_EQ(test, p->rqst.rq_next_page - p->rqst.rq_respages,
			ONE_ARRAY ? 0 : empty);
}

/* The device reads the pages of the Reply. */
static void test_keep(struct kunit *test)
{
	const struct read_row *row = test->param_value;
	struct pages *p = test->priv;
	unsigned int i, end;

	pages_begin(test);
	end = make_read(test, row);
	svcrdma_pages_take_reply(&p->request, &p->rqst, p->rqst.rq_respages + end, row->head);
	expect_bounds(test);
	expect_kept(test, row, end);
	svcrdma_pages_put(&p->request);
	for (i = 0; i < THREAD_PAGES; i++)
		if (p->put[i])
			KUNIT_EXPECT_EQ(test, owners(p->put[i]), 0);
	pages_end(test);
}

/* The Reply is copied. The thread loses at most what is beyond the pages held. */
static void test_restore(struct kunit *test)
{
	const struct read_row *row = test->param_value;
	struct pages *p = test->priv;
	unsigned int i, end, beyond, lost;
	struct page **reply;

	pages_begin(test);
	reply = p->rqst.rq_respages;
	end = make_read(test, row);
	svcrdma_pages_swap_held(&p->request, &p->rqst);
	expect_bounds(test);
	for (i = 0; i <= row->held; i++) {
		KUNIT_EXPECT_PTR_EQ(test, reply[i], p->own[i]);
		if (p->put[i])
			KUNIT_EXPECT_EQ(test, in_request(p, p->put[i]), 1);
	}
	svcrdma_pages_put(&p->request);
	for (i = 0; i <= row->held; i++) {
		KUNIT_EXPECT_EQ(test, owners(p->own[i]), 1);
		if (p->put[i])
			KUNIT_EXPECT_EQ(test, owners(p->put[i]), 0);
	}

	beyond = end > row->held + 1 ? end - row->held - 1 : 0;
	lost = release(&p->rqst);
	KUNIT_EXPECT_EQ(test, lost, !beyond || ONE_ARRAY ? beyond : end);
	pages_end(test);
}

/* Another thread sends the Reply to a deferred Call. Both threads keep their pages. */
static void test_deferred(struct kunit *test)
{
	struct pages *p = test->priv;
	unsigned int i;

	pages_begin(test);
	p->request.msg.write[0].length = 4 * PAGE_SIZE;
	svcrdma_pages_hold(&p->request, &p->rqst);
	KUNIT_EXPECT_EQ(test, atomic_read(&p->service.num_held), 4);
	svcrdma_pages_unhold(&p->request);
	svcrdma_pages_put(&p->request);
	KUNIT_EXPECT_EQ(test, p->request.num_pages, 0);
	for (i = 0; i < THREAD_PAGES; i++) {
		KUNIT_EXPECT_PTR_EQ(test, p->rqst.rq_respages[i], p->own[i]);
		KUNIT_EXPECT_EQ(test, owners(p->own[i]), 1);
	}
	pages_end(test);
}

/* A Write chunk that is longer than any Reply */
static void test_hold_most(struct kunit *test)
{
	struct pages *p = test->priv;

	pages_begin(test);
	p->request.msg.num_writes = 1;
	p->request.msg.write[0].length = U32_MAX;
	svcrdma_pages_hold(&p->request, &p->rqst);
	KUNIT_EXPECT_EQ(test, p->request.num_pages, THREAD_PAGES - 1);
	expect_bounds(test);
	svcrdma_pages_unhold(&p->request);
	svcrdma_pages_put(&p->request);

	p->service.max_pages = 4;
	svcrdma_pages_hold(&p->request, &p->rqst);
	KUNIT_EXPECT_EQ(test, p->request.num_pages, 3);
	svcrdma_pages_unhold(&p->request);
	svcrdma_pages_put(&p->request);
	pages_end(test);
}

/* The last page of a READ is held if 4 KiB of it or more are filled, whatever its size. */
static void test_hold_part(struct kunit *test)
{
	struct pages *p = test->priv;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		pages_begin(test);
		p->request.msg.write[0].length = 2 * PAGE_SIZE + SZ_4K - 1 + i;
		svcrdma_pages_hold(&p->request, &p->rqst);
		KUNIT_EXPECT_EQ(test, p->request.num_pages, 2 + i);
		svcrdma_pages_unhold(&p->request);
		pages_end(test);
	}
}

/* Others hold some pages already. Return: whether a Call holds one, too. */
static bool holds_beyond(struct pages *p, unsigned int others)
{
	bool holds;

	p->request.msg.write[0].length = PAGE_SIZE;
	atomic_set(&p->service.num_held, others);
	svcrdma_pages_hold(&p->request, &p->rqst);
	holds = p->request.num_pages;
	svcrdma_pages_unhold(&p->request);
	svcrdma_pages_put(&p->request);
	atomic_sub(others, &p->service.num_held);
	return holds;
}

/* What is more than a connection's threads can hold is held for deferred Calls. */
static void test_hold_limit(struct kunit *test)
{
	struct pages *p = test->priv;

	pages_begin(test);
	KUNIT_EXPECT_TRUE(test, holds_beyond(p, MAX_PAGES));
	KUNIT_EXPECT_FALSE(test, holds_beyond(p, MAX_PAGES + 1));
	atomic_set(&p->service.xprt.xpt_nr_rqsts, 2);
	KUNIT_EXPECT_TRUE(test, holds_beyond(p, MAX_PAGES + 1));
	KUNIT_EXPECT_FALSE(test, holds_beyond(p, 2 * MAX_PAGES + 1));
	pages_end(test);
}

/* A request of another connection with room for so many pages */
static struct svcrdma_request *another_request(struct kunit *test, unsigned long num_pages)
{
	struct svcrdma_service *service = kunit_kzalloc(test, sizeof(*service), GFP_KERNEL);
	struct svcrdma_request *request = kunit_kzalloc(test, sizeof(*request), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, service);
	KUNIT_ASSERT_NOT_NULL(test, request);
	service->max_pages = num_pages;
	atomic_set(&service->xprt.xpt_nr_rqsts, 1);
	request->service = service;
	request->pages = kunit_kcalloc(test, num_pages, sizeof(*request->pages), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, request->pages);
	return request;
}

/* What all connections together may keep, and hold, in pages: 1/256 of the memory */
static unsigned long most_of_all(void)
{
	return totalram_pages() / 256;
}

/* Hold so many pages, all of them the thread's. They stay counted. */
static void hold_many(struct kunit *test, struct svcrdma_request *request, unsigned long num)
{
	struct pages *p = test->priv;

	while (num) {
		request->msg.write[0].length = min(num, THREAD_PAGES - 1UL) * PAGE_SIZE;
		svcrdma_pages_hold(request, &p->rqst);
		KUNIT_ASSERT_NE(test, request->num_pages, 0);
		num -= request->num_pages;
		svcrdma_pages_put(request);
	}
}

/* No Call holds pages while all connections together hold too many. */
static void test_hold_limit_of_all(struct kunit *test)
{
	unsigned long most = most_of_all();
	struct svcrdma_request *other = another_request(test, most + THREAD_PAGES);
	struct pages *p = test->priv;

	pages_begin(test);
	hold_many(test, other, most);
	KUNIT_EXPECT_TRUE(test, holds_beyond(p, 0));
	hold_many(test, other, 1);
	KUNIT_EXPECT_FALSE(test, holds_beyond(p, 0));
	other->num_pages = most + 1;
	svcrdma_pages_unhold(other);
	other->num_pages = 0;
	pages_end(test);
}

/* Return: how many of the entries of rq_pages are NULL. */
static unsigned int missing(const struct svc_rqst *rqstp)
{
	unsigned int i, num = 0;

	for (i = 0; i < THREAD_PAGES; i++)
		num += !rqstp->rq_pages[i];
	return num;
}

static void test_spares(struct kunit *test)
{
	struct pages *p = test->priv;
	struct svcrdma_request *request = &p->request;
	struct svc_rqst *rqstp = &p->rqst;
	unsigned int i;

	/* The first Call has the thread's pages. */
	pages_begin(test);
	svcrdma_pages_take_spares(request, rqstp, 5);
	KUNIT_EXPECT_EQ(test, request->num_spares, 5);
	KUNIT_EXPECT_EQ(test, atomic_read(&p->service.num_spares), 5);
	KUNIT_EXPECT_EQ(test, missing(rqstp), 5);
	KUNIT_EXPECT_EQ(test, release(rqstp), 0);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_PTR_EQ(test, request->pages[i], p->call[i]);

	/* The thread gets what was read, and the request the thread's new pages. */
	fill(test, rqstp->rq_pages);
	svcrdma_pages_swap_spares(request, rqstp, 5);
	for (i = 0; i < THREAD_PAGES; i++)
		KUNIT_EXPECT_PTR_EQ(test, rqstp->rq_pages[i], p->call[i]);
	KUNIT_EXPECT_EQ(test, request->num_spares, 5);
	KUNIT_EXPECT_EQ(test, missing(rqstp), 0);

	/* nfsd puts the head of the Reply after them. */
	KUNIT_EXPECT_EQ(test, rqstp->rq_respages - rqstp->rq_pages, ONE_ARRAY ? 5 : THREAD_PAGES);
	KUNIT_EXPECT_EQ(test, release(rqstp), 0);
	rpcrdma_compat_use_call_pages(rqstp, 0);

	/* The next Calls need none of the thread's, or only what they have too few of. */
	KUNIT_EXPECT_FALSE(test, svcrdma_pages_take_spares(request, rqstp, 5));
	KUNIT_EXPECT_FALSE(test, svcrdma_pages_take_spares(request, rqstp, 3));
	KUNIT_EXPECT_EQ(test, missing(rqstp), 0);
	KUNIT_EXPECT_EQ(test, request->num_spares, 5);
	KUNIT_EXPECT_TRUE(test, svcrdma_pages_take_spares(request, rqstp, 7));
	KUNIT_EXPECT_EQ(test, missing(rqstp), 2);
	KUNIT_EXPECT_EQ(test, request->num_spares, 7);
	for (i = 0; i < p->num_tracked; i++)
		KUNIT_EXPECT_EQ(test, owners(p->tracked[i]), 1);

	svcrdma_pages_put_spares(request);
	KUNIT_EXPECT_EQ(test, request->num_spares, 0);
	KUNIT_EXPECT_EQ(test, tracked_owners(p), p->num_tracked - 7);
	pages_end(test);
}

/* The other pages stay when the spare ones go, and the other way round. */
static void test_put_some(struct kunit *test)
{
	static const struct read_row row = { "", 3, "ccc", false, 4 };
	struct pages *p = test->priv;
	unsigned int i;

	pages_begin(test);
	svcrdma_pages_take_reply(&p->request, &p->rqst,
				 p->rqst.rq_respages + make_read(test, &row), false);
	svcrdma_pages_put_spares(&p->request);
	KUNIT_EXPECT_EQ(test, p->request.num_pages, 3);
	for (i = 1; i <= 3; i++)
		expect_own(test, i);
	svcrdma_pages_put(&p->request);

	fill(test, p->rqst.rq_pages);
	svcrdma_pages_take_spares(&p->request, &p->rqst, 4);
	svcrdma_pages_put(&p->request);
	KUNIT_EXPECT_EQ(test, p->request.num_spares, 4);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, owners(p->in_request[i]), 1);
	pages_end(test);
}

/* A connection keeps about as many spare pages as one Call needs. */
static void test_too_many_spares(struct kunit *test)
{
	struct pages *p = test->priv;

	pages_begin(test);
	p->service.max_pages = 1;
	svcrdma_pages_take_spares(&p->request, &p->rqst, 4);
	KUNIT_EXPECT_FALSE(test, svcrdma_pages_too_many_spares(&p->service));
	fill(test, p->rqst.rq_pages);
	svcrdma_pages_take_spares(&p->request, &p->rqst, 5);
	KUNIT_EXPECT_TRUE(test, svcrdma_pages_too_many_spares(&p->service));
	p->service.max_pages = MAX_PAGES;
	pages_end(test);
}

/* Have so many spare pages. Most are the same page. */
static void take_many(struct pages *p, struct svcrdma_request *request, unsigned long num)
{
	unsigned int i;

	while (request->num_spares < num) {
		for (i = 0; i < THREAD_PAGES; i++) {
			if (p->rqst.rq_pages[i])
				continue;
			get_page(p->tracked[0]);
			p->rqst.rq_pages[i] = p->tracked[0];
		}
		svcrdma_pages_take_spares(request, &p->rqst,
					  min(num, request->num_spares + 1UL * THREAD_PAGES));
	}
}

/* No request keeps spare pages while all connections together have too many. */
static void test_too_many_spares_of_all(struct kunit *test)
{
	unsigned long most = most_of_all();
	struct svcrdma_request *other = another_request(test, most + 1);
	struct pages *p = test->priv;

	pages_begin(test);
	svcrdma_pages_take_spares(&p->request, &p->rqst, 1);
	take_many(p, other, most - 1);
	KUNIT_EXPECT_FALSE(test, svcrdma_pages_too_many_spares(&p->service));
	take_many(p, other, most);
	KUNIT_EXPECT_TRUE(test, svcrdma_pages_too_many_spares(&p->service));
	svcrdma_pages_put_spares(other);
	pages_end(test);
}

/* A request with spare pages answers with as many pages as a thread has. */
static void test_bounds(struct kunit *test)
{
	static const char used[] = "ooooooooooo";
	struct read_row row = { "" };
	struct pages *p = test->priv;
	unsigned int i, end;

	for (i = 0; i < THREAD_PAGES * THREAD_PAGES * 4; i++) {
		row.held = i % THREAD_PAGES;
		row.used = &used[i / THREAD_PAGES % THREAD_PAGES];
		row.spares = i & 1 ? THREAD_PAGES - 2 : 2;
		row.head = i & 2;
		pages_begin(test);
		end = make_read(test, &row);
		svcrdma_pages_take_reply(&p->request, &p->rqst, p->rqst.rq_respages + end,
					 row.head);
		pages_end(test);
	}
}

/* A service with requests of its own, which are in use */
static struct svcrdma_service *rest_begin(struct kunit *test, struct svcrdma_request **request)
{
	struct pages *p = test->priv;
	struct svcrdma_service *service = &p->service;
	struct rpcrdma_conn *conn;
	unsigned int i;

	pages_begin(test);
	conn = rpcrdma_conn_alloc(false);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	strscpy(conn->peer, "KUnit", sizeof(conn->peer));
	conn->role = service;
	service->conn = conn;
	spin_lock_init(&service->lock);
	service->max_idle = REQUESTS;
	for (i = 0; i < REQUESTS; i++) {
		request[i] = svcrdma_request_get(service);
		KUNIT_ASSERT_NOT_NULL(test, request[i]);
		svcrdma_pages_take_spares(request[i], &p->rqst, 2);
		fill(test, p->rqst.rq_pages);
	}
	return service;
}

static void rest_end(struct kunit *test, struct svcrdma_service *service)
{
	service->max_idle = 0;
	while (service->num_idle)
		svcrdma_request_put(svcrdma_request_get(service));
	KUNIT_EXPECT_EQ(test, atomic_read(&service->num_requests), 0);
	rpcrdma_conn_close(service->conn, -ECANCELED);
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_conn_put(service->conn);
	pages_end(test);
}

static void put_requests(struct svcrdma_request **request, unsigned int num)
{
	while (num--)
		svcrdma_request_put(request[num]);
}

/* Requests that nobody took since the last time go, with their pages, but for one. */
static void test_rest(struct kunit *test)
{
	struct svcrdma_request *request[REQUESTS];
	struct svcrdma_service *service = rest_begin(test, request);
	struct pages *p = test->priv;
	unsigned int thread = p->num_tracked - 2 * REQUESTS;
	unsigned int i;

	/* Those in use do not go. */
	svcrdma_request_rest(service->conn);
	KUNIT_EXPECT_TRUE(test, svcrdma_request_rest(service->conn));
	KUNIT_EXPECT_EQ(test, atomic_read(&service->num_requests), REQUESTS);

	put_requests(request, REQUESTS);
	KUNIT_EXPECT_TRUE(test, svcrdma_request_rest(service->conn));
	KUNIT_EXPECT_EQ(test, service->num_idle, REQUESTS);
	KUNIT_EXPECT_EQ(test, tracked_owners(p), thread + 2 * REQUESTS);

	for (i = 0; i < 3; i++)
		request[i] = svcrdma_request_get(service);
	put_requests(request, 3);
	KUNIT_EXPECT_TRUE(test, svcrdma_request_rest(service->conn));
	KUNIT_EXPECT_EQ(test, service->num_idle, 3);
	KUNIT_EXPECT_EQ(test, atomic_read(&service->num_requests), 3);
	KUNIT_EXPECT_EQ(test, tracked_owners(p), thread + 2 * 3);

	KUNIT_EXPECT_FALSE(test, svcrdma_request_rest(service->conn));
	KUNIT_EXPECT_EQ(test, service->num_idle, 1);
	KUNIT_EXPECT_PTR_EQ(test, service->idle, request[0]);
	KUNIT_EXPECT_EQ(test, tracked_owners(p), thread);
	KUNIT_EXPECT_FALSE(test, svcrdma_request_rest(service->conn));
	KUNIT_EXPECT_EQ(test, service->num_idle, 1);
	rest_end(test, service);
}

/* A request that is done keeps no spare pages if its connection has too many. */
static void test_spares_go(struct kunit *test)
{
	struct svcrdma_request *request[REQUESTS];
	struct svcrdma_service *service = rest_begin(test, request);

	service->max_pages = 1;		/* so four spare pages may stay */
	put_requests(request, REQUESTS);
	KUNIT_EXPECT_EQ(test, atomic_read(&service->num_spares), 4);
	service->max_pages = MAX_PAGES;
	rest_end(test, service);
}

static struct kunit_case pages_cases[] = {
	KUNIT_CASE_PARAM(test_keep, read_gen_params),
	KUNIT_CASE_PARAM(test_restore, read_gen_params),
	KUNIT_CASE(test_deferred),
	KUNIT_CASE(test_hold_most),
	KUNIT_CASE(test_hold_part),
	KUNIT_CASE(test_hold_limit),
	KUNIT_CASE(test_hold_limit_of_all),
	KUNIT_CASE(test_spares),
	KUNIT_CASE(test_put_some),
	KUNIT_CASE(test_too_many_spares),
	KUNIT_CASE(test_too_many_spares_of_all),
	KUNIT_CASE(test_bounds),
	KUNIT_CASE(test_rest),
	KUNIT_CASE(test_spares_go),
	{}
};

static struct kunit_suite pages_suite = {
	.name = "rpcrdma_pages",
	.init = pages_init,
	.test_cases = pages_cases,
};

kunit_test_suites(&pages_suite);
