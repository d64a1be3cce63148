// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/: an RPC message page by page.
 */
#include <kunit/test.h>

#include "../client/piece.h"

#define MAX_PIECES	4

/* What a walk comes by; it is to end after @wanted pieces. */
struct pieces {
	unsigned int wanted;
	unsigned int count;
	struct page *page[MAX_PIECES];
	unsigned int offset[MAX_PIECES];
	unsigned int len[MAX_PIECES];
};

static int note_piece(void *context, struct page *page, unsigned int offset,
		      unsigned int len)
{
	struct pieces *pieces = context;

	pieces->page[pieces->count] = page;
	pieces->offset[pieces->count] = offset;
	pieces->len[pieces->count] = len;
	return ++pieces->count == pieces->wanted ? -EAGAIN : 0;
}

static void expect_piece(struct kunit *test, const struct pieces *pieces,
			 unsigned int i, struct page *page,
			 unsigned int offset, unsigned int len)
{
	KUNIT_EXPECT_TRUE(test, pieces->page[i] == page);
	KUNIT_EXPECT_EQ(test, pieces->offset[i], offset);
	KUNIT_EXPECT_EQ(test, pieces->len[i], len);
}

static void test_pieces_of_pages(struct kunit *test)
{
	char *memory = kunit_kmalloc(test, MAX_PIECES * PAGE_SIZE, GFP_KERNEL);
	struct page *pages[MAX_PIECES];
	struct xdr_buf buf = { .pages = pages };
	struct pieces pieces = { .wanted = MAX_PIECES };
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	for (i = 0; i < MAX_PIECES; i++)
		pages[i] = virt_to_page(memory + i * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, 0,
			rpcrdma_page_pieces(&buf, 0, note_piece, &pieces));
	KUNIT_EXPECT_EQ(test, pieces.count, 0);

	/* From the second page, almost from its end, into the fourth */
	buf.page_base = 2 * PAGE_SIZE - 8;
	KUNIT_EXPECT_EQ(test, 0, rpcrdma_page_pieces(&buf, PAGE_SIZE + 11,
						     note_piece, &pieces));
	KUNIT_EXPECT_EQ(test, pieces.count, 3);
	expect_piece(test, &pieces, 0, pages[1], PAGE_SIZE - 8, 8);
	expect_piece(test, &pieces, 1, pages[2], 0, PAGE_SIZE);
	expect_piece(test, &pieces, 2, pages[3], 0, 3);

	/* To the end of a page and no further */
	pieces.count = 0;
	KUNIT_EXPECT_EQ(test, 0, rpcrdma_page_pieces(&buf, PAGE_SIZE + 8,
						     note_piece, &pieces));
	KUNIT_EXPECT_EQ(test, pieces.count, 2);
}

static void test_pieces_of_kvec(struct kunit *test)
{
	char *memory = kunit_kmalloc(test, 3 * PAGE_SIZE, GFP_KERNEL);
	struct pieces pieces = { .wanted = MAX_PIECES };
	struct kvec vec;

	KUNIT_ASSERT_NOT_NULL(test, memory);
	/* The last eight octets of a page, the next page, and an octet more */
	memory += PAGE_SIZE - 8 - offset_in_page(memory);
	vec = (struct kvec){ .iov_base = memory, .iov_len = PAGE_SIZE + 9 };
	KUNIT_EXPECT_EQ(test, 0,
			rpcrdma_kvec_pieces(&vec, note_piece, &pieces));
	KUNIT_EXPECT_EQ(test, pieces.count, 3);
	expect_piece(test, &pieces, 0, virt_to_page(memory), PAGE_SIZE - 8, 8);
	expect_piece(test, &pieces, 1, virt_to_page(memory + 8), 0, PAGE_SIZE);
	expect_piece(test, &pieces, 2, virt_to_page(memory + 8 + PAGE_SIZE), 0,
		     1);
}

static void test_pieces_end_early(struct kunit *test)
{
	char *memory = kunit_kmalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	struct kvec vec = { .iov_base = memory, .iov_len = 2 * PAGE_SIZE };
	struct page *pages[2];
	struct xdr_buf buf = { .pages = pages };
	struct pieces pieces = { .wanted = 1 };

	KUNIT_ASSERT_NOT_NULL(test, memory);
	pages[0] = virt_to_page(memory);
	pages[1] = pages[0];
	KUNIT_EXPECT_EQ(test, -EAGAIN,
			rpcrdma_kvec_pieces(&vec, note_piece, &pieces));
	KUNIT_EXPECT_EQ(test, pieces.count, 1);
	pieces.count = 0;
	KUNIT_EXPECT_EQ(test, -EAGAIN,
			rpcrdma_page_pieces(&buf, 2 * PAGE_SIZE, note_piece,
					    &pieces));
	KUNIT_EXPECT_EQ(test, pieces.count, 1);
}

static struct kunit_case piece_cases[] = {
	KUNIT_CASE(test_pieces_of_pages),
	KUNIT_CASE(test_pieces_of_kvec),
	KUNIT_CASE(test_pieces_end_early),
	{}
};

static struct kunit_suite piece_suite = {
	.name = "rpcrdma_piece",
	.test_cases = piece_cases,
};

kunit_test_suites(&piece_suite);
