// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/: walks over an RPC message by page fragments.
 */
#include <kunit/test.h>

#include "../client/page_frag.h"

#define MAX_FRAGS	4

/* The fragments that a walk has passed. It ends after @wanted of them. */
struct frags {
	unsigned int wanted;
	unsigned int count;
	struct page *page[MAX_FRAGS];
	unsigned int offset[MAX_FRAGS];
	unsigned int len[MAX_FRAGS];
};

static int note_frag(void *context, struct page *page, unsigned int offset,
		     unsigned int len)
{
	struct frags *frags = context;

	frags->page[frags->count] = page;
	frags->offset[frags->count] = offset;
	frags->len[frags->count] = len;
	return ++frags->count == frags->wanted ? -EAGAIN : 0;
}

static void expect_frag(struct kunit *test, const struct frags *frags,
			unsigned int i, struct page *page,
			unsigned int offset, unsigned int len)
{
	KUNIT_EXPECT_TRUE(test, frags->page[i] == page);
	KUNIT_EXPECT_EQ(test, frags->offset[i], offset);
	KUNIT_EXPECT_EQ(test, frags->len[i], len);
}

static void test_frags_of_pages(struct kunit *test)
{
	char *memory = kunit_kmalloc(test, MAX_FRAGS * PAGE_SIZE, GFP_KERNEL);
	struct page *pages[MAX_FRAGS];
	struct xdr_buf buf = { .pages = pages };
	struct frags frags = { .wanted = MAX_FRAGS };
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	for (i = 0; i < MAX_FRAGS; i++)
		pages[i] = virt_to_page(memory + i * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, 0, xprt_rdma_page_frags_in_pages(&buf, 0,
							       note_frag,
							       &frags));
	KUNIT_EXPECT_EQ(test, frags.count, 0);

	/* From the last eight octets of the second page into the fourth */
	buf.page_base = 2 * PAGE_SIZE - 8;
	KUNIT_EXPECT_EQ(test, 0, xprt_rdma_page_frags_in_pages(&buf,
							       PAGE_SIZE + 11,
							       note_frag,
							       &frags));
	KUNIT_EXPECT_EQ(test, frags.count, 3);
	expect_frag(test, &frags, 0, pages[1], PAGE_SIZE - 8, 8);
	expect_frag(test, &frags, 1, pages[2], 0, PAGE_SIZE);
	expect_frag(test, &frags, 2, pages[3], 0, 3);

	/* Up to the end of a page */
	frags.count = 0;
	KUNIT_EXPECT_EQ(test, 0, xprt_rdma_page_frags_in_pages(&buf,
							       PAGE_SIZE + 8,
							       note_frag,
							       &frags));
	KUNIT_EXPECT_EQ(test, frags.count, 2);
}

static void test_frags_of_kvec(struct kunit *test)
{
	char *memory = kunit_kmalloc(test, 3 * PAGE_SIZE, GFP_KERNEL);
	struct frags frags = { .wanted = MAX_FRAGS };
	struct kvec vec;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	/* The last eight octets of a page, the next page, and one octet */
	memory += PAGE_SIZE - 8 - offset_in_page(memory);
	vec = (struct kvec){ .iov_base = memory, .iov_len = PAGE_SIZE + 9 };
	KUNIT_EXPECT_EQ(test, 0, xprt_rdma_page_frags_in_kvec(&vec, note_frag,
							      &frags));
	KUNIT_EXPECT_EQ(test, frags.count, 3);
	expect_frag(test, &frags, 0, virt_to_page(memory), PAGE_SIZE - 8, 8);
	expect_frag(test, &frags, 1, virt_to_page(memory + 8), 0, PAGE_SIZE);
	expect_frag(test, &frags, 2, virt_to_page(memory + 8 + PAGE_SIZE), 0,
		    1);
}

static void test_frags_end_early(struct kunit *test)
{
	char *memory = kunit_kmalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	struct kvec vec = { .iov_base = memory, .iov_len = 2 * PAGE_SIZE };
	struct page *pages[2];
	struct xdr_buf buf = { .pages = pages };
	struct frags frags = { .wanted = 1 };

	KUNIT_ASSERT_NOT_NULL(test, memory);
	pages[0] = virt_to_page(memory);
	pages[1] = pages[0];
	KUNIT_EXPECT_EQ(test, -EAGAIN, xprt_rdma_page_frags_in_kvec(&vec,
								    note_frag,
								    &frags));
	KUNIT_EXPECT_EQ(test, frags.count, 1);
	frags.count = 0;
	KUNIT_EXPECT_EQ(test, -EAGAIN,
			xprt_rdma_page_frags_in_pages(&buf, 2 * PAGE_SIZE,
						      note_frag, &frags));
	KUNIT_EXPECT_EQ(test, frags.count, 1);
}

static struct kunit_case page_frag_cases[] = {
	KUNIT_CASE(test_frags_of_pages),
	KUNIT_CASE(test_frags_of_kvec),
	KUNIT_CASE(test_frags_end_early),
	{}
};

static struct kunit_suite page_frag_suite = {
	.name = "rpcrdma_page_frag",
	.test_cases = page_frag_cases,
};

kunit_test_suites(&page_frag_suite);
