// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suites of client/: how an RPC travels, its pieces, and credits.
 */
#include <kunit/test.h>

#include "../client/credits.h"
#include "../client/form.h"
#include "../client/piece.h"

/* A COMPOUND around the data of READ or WRITE, and an RPC header */
#define AROUND		200
#define MIB		(1024 * 1024)
#define SENDS(octets)		.call_pages = (octets)
#define TAKES(octets)		.reply_pages = (octets)
#define SENDS_DDP(octets)	SENDS(octets), .call_ddp = true
#define TAKES_DDP(octets)	TAKES(octets), .reply_ddp = true

/* The size of a header with one segment in one chunk */
#define HEADER		28
#define HEADER_READ	(HEADER + 24)
#define HEADER_WRITE	(HEADER + 8 + 16)
#define HEADER_REPLY	(HEADER + 4 + 16)

/*
 * What a row leaves out: as many octets in a message as there are in its pages,
 * and AROUND; 1024 octets inline; one segment for each chunk, three for a whole
 * message with pages.
 */
struct form_row {
	const char *name;
	struct rpcrdma_sizes sizes;
	struct rpcrdma_form form;
};

static const struct form_row form_rows[] = {
	{
		"a small Call and a small Reply",
		{ .call_len = 120, .reply_max = 120 },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_INLINE, HEADER, 120 },
	}, {
		"a Call that just fits",
		{ .call_len = 1024 - HEADER },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_INLINE, HEADER,
		  1024 - HEADER },
	}, {
		"a Call that just does not fit",
		{ .call_len = 1028 - HEADER, .long_segments = 1 },
		{ RPCRDMA_CALL_LONG, RPCRDMA_REPLY_INLINE, HEADER_READ, 0 },
	}, {
		"a Reply that just fits",
		{ .call_len = 120, .reply_max = 1024 - HEADER },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_INLINE, HEADER, 120 },
	}, {
		"a Reply that just does not fit",
		{ .call_len = 120, .reply_max = 1028 - HEADER,
		  .reply_segments = 1 },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_CHUNK, HEADER_REPLY, 120 },
	}, {
		"a WRITE with little data",
		{ SENDS_DDP(512) },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_INLINE, HEADER,
		  AROUND + 512 },
	}, {
		"a WRITE",
		{ SENDS_DDP(4096) },
		{ RPCRDMA_CALL_READ_CHUNK, RPCRDMA_REPLY_INLINE, HEADER_READ,
		  AROUND },
	}, {
		"a WRITE that fits a larger threshold",
		{ SENDS_DDP(4096), .call_threshold = 8192 },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_INLINE, HEADER,
		  AROUND + 4096 },
	}, {
		"the reply threshold is of no concern to a Call",
		{ SENDS_DDP(4096), .reply_threshold = 8192 },
		{ RPCRDMA_CALL_READ_CHUNK, RPCRDMA_REPLY_INLINE, HEADER_READ,
		  AROUND },
	}, {
		"a WRITE with padding, which goes with the data",
		{ .call_len = AROUND + 4096, .call_pages = 4093,
		  .call_ddp = true },
		{ RPCRDMA_CALL_READ_CHUNK, RPCRDMA_REPLY_INLINE, HEADER_READ,
		  AROUND },
	}, {
		"a WRITE with data that is not DDP-eligible",
		{ SENDS(4096) },
		{ RPCRDMA_CALL_LONG, RPCRDMA_REPLY_INLINE, HEADER + 3 * 24, 0 },
	}, {
		"a WRITE with much around the data",
		{ .call_len = 2000 + 4096, .call_pages = 4096,
		  .call_ddp = true },
		{ RPCRDMA_CALL_LONG, RPCRDMA_REPLY_INLINE, HEADER + 3 * 24, 0 },
	}, {
		"a long Call whose pages are empty, DDP-eligible or not",
		{ .call_len = 2000, .call_ddp = true, .long_segments = 1 },
		{ RPCRDMA_CALL_LONG, RPCRDMA_REPLY_INLINE, HEADER_READ, 0 },
	}, {
		"a large WRITE, registered by a device with a small limit",
		{ SENDS_DDP(MIB), .read_segments = 16 },
		{ RPCRDMA_CALL_READ_CHUNK, RPCRDMA_REPLY_INLINE,
		  HEADER + 16 * 24, AROUND },
	}, {
		"a READ of little data",
		{ .call_len = 120, TAKES_DDP(512) },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_INLINE, HEADER, 120 },
	}, {
		"a READ",
		{ .call_len = 120, TAKES_DDP(4096) },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_WRITE_CHUNK, HEADER_WRITE,
		  120 },
	}, {
		"a READ that fits a larger threshold",
		{ .call_len = 120, TAKES_DDP(4096), .reply_threshold = 8192 },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_INLINE, HEADER, 120 },
	}, {
		"the call threshold is of no concern to a Reply",
		{ .call_len = 120, TAKES_DDP(4096), .call_threshold = 8192 },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_WRITE_CHUNK, HEADER_WRITE,
		  120 },
	}, {
		"a READ of data that is not DDP-eligible",
		{ .call_len = 120, TAKES(4096) },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_CHUNK, HEADER + 4 + 3 * 16,
		  120 },
	}, {
		"a Reply without pages to put data in, DDP-eligible or not",
		{ .call_len = 120, .reply_max = 2000, .reply_ddp = true,
		  .reply_segments = 1 },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_CHUNK, HEADER_REPLY, 120 },
	}, {
		"a READ with as much around the data as fits",
		{ .call_len = 120, .reply_max = 1024 - HEADER_WRITE + 4096,
		  .reply_pages = 4096, .reply_ddp = true },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_WRITE_CHUNK, HEADER_WRITE,
		  120 },
	}, {
		"a READ with more around the data than fits",
		{ .call_len = 120, .reply_max = 1028 - HEADER_WRITE + 4096,
		  .reply_pages = 4096, .reply_ddp = true },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_CHUNK, HEADER + 4 + 3 * 16,
		  120 },
	}, {
		"a Write chunk takes room that the Call would have needed",
		{ .call_len = 1024 - HEADER, TAKES_DDP(4096),
		  .long_segments = 1 },
		{ RPCRDMA_CALL_LONG, RPCRDMA_REPLY_WRITE_CHUNK,
		  HEADER_WRITE + 24, 0 },
	}, {
		"a Call that just fits beside a Write chunk",
		{ .call_len = 1024 - HEADER_WRITE, TAKES_DDP(4096) },
		{ RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_WRITE_CHUNK, HEADER_WRITE,
		  1024 - HEADER_WRITE },
	}, {
		"data both ways",
		{ SENDS_DDP(4096), TAKES_DDP(8192) },
		{ RPCRDMA_CALL_READ_CHUNK, RPCRDMA_REPLY_WRITE_CHUNK,
		  HEADER_WRITE + 24, AROUND },
	}, {
		"data both ways, not DDP-eligible",
		{ SENDS(4096), TAKES(8192) },
		{ RPCRDMA_CALL_LONG, RPCRDMA_REPLY_CHUNK,
		  HEADER + 3 * 24 + 4 + 3 * 16, 0 },
	},
};

static void form_row_name(const struct form_row *row, char *name)
{
	strscpy(name, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(form, form_rows, form_row_name);

static struct rpcrdma_sizes fill_in(const struct rpcrdma_sizes *from)
{
	struct rpcrdma_sizes sizes = *from;

	if (sizes.call_pages && !sizes.call_len)
		sizes.call_len = AROUND + sizes.call_pages;
	if (sizes.reply_pages && !sizes.reply_max)
		sizes.reply_max = AROUND + sizes.reply_pages;
	sizes.call_threshold = sizes.call_threshold ?: 1024;
	sizes.reply_threshold = sizes.reply_threshold ?: 1024;
	sizes.read_segments = sizes.read_segments ?: 1;
	sizes.write_segments = sizes.write_segments ?: 1;
	sizes.long_segments = sizes.long_segments ?: 3;
	sizes.reply_segments = sizes.reply_segments ?: 3;
	return sizes;
}

static void test_form(struct kunit *test)
{
	const struct form_row *row = test->param_value;
	struct rpcrdma_sizes sizes = fill_in(&row->sizes);
	struct rpcrdma_form form;

	KUNIT_ASSERT_EQ(test, rpcrdma_form_choose(&form, &sizes), 0);
	KUNIT_EXPECT_EQ(test, form.call, row->form.call);
	KUNIT_EXPECT_EQ(test, form.reply, row->form.reply);
	KUNIT_EXPECT_EQ(test, form.header_len, row->form.header_len);
	KUNIT_EXPECT_EQ(test, form.inline_len, row->form.inline_len);
}

/* The length of the header is what the codec makes of the same chunks. */
static void add_segments(struct kunit *test, struct rpcrdma_message *msg,
			 struct rpcrdma_chunk *chunk, u32 count)
{
	while (count--)
		KUNIT_ASSERT_EQ(test, 0,
				rpcrdma_wire_add_segment(msg, chunk, 1, 1, 0));
}

static void test_form_header_len(struct kunit *test)
{
	const struct form_row *row = test->param_value;
	struct rpcrdma_sizes sizes = fill_in(&row->sizes);
	struct rpcrdma_message *msg;
	struct rpcrdma_form form;

	msg = kunit_kzalloc(test, sizeof(*msg), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, msg);
	KUNIT_ASSERT_EQ(test, rpcrdma_form_choose(&form, &sizes), 0);

	rpcrdma_wire_init_call(msg, 0, 1);
	if (form.call == RPCRDMA_CALL_READ_CHUNK)
		add_segments(test, msg, rpcrdma_wire_add_read(msg, 64),
			     sizes.read_segments);
	else if (form.call == RPCRDMA_CALL_LONG)
		add_segments(test, msg, rpcrdma_wire_add_read(msg, 0),
			     sizes.long_segments);
	if (form.reply == RPCRDMA_REPLY_WRITE_CHUNK)
		add_segments(test, msg, rpcrdma_wire_add_write(msg),
			     sizes.write_segments);
	else if (form.reply == RPCRDMA_REPLY_CHUNK)
		add_segments(test, msg, rpcrdma_wire_add_reply(msg),
			     sizes.reply_segments);
	KUNIT_EXPECT_EQ(test, form.header_len, rpcrdma_wire_header_len(msg));
	KUNIT_EXPECT_LE(test, form.header_len + form.inline_len,
			sizes.call_threshold);
}

static void expect_forms(struct kunit *test, struct rpcrdma_sizes sizes,
			 enum rpcrdma_call_form call,
			 enum rpcrdma_reply_form reply)
{
	struct rpcrdma_form form;

	sizes = fill_in(&sizes);
	KUNIT_ASSERT_EQ(test, rpcrdma_form_choose(&form, &sizes), 0);
	KUNIT_EXPECT_EQ(test, form.call, call);
	KUNIT_EXPECT_EQ(test, form.reply, reply);
	KUNIT_EXPECT_LE(test, form.header_len + form.inline_len,
			sizes.call_threshold);
}

/* WRITE and READ at the edge: the last that is inline, the first that is not */
static void expect_edges(struct kunit *test, u32 call_threshold,
			 u32 reply_threshold, bool ddp)
{
	struct rpcrdma_sizes out = {
		.call_pages = call_threshold - HEADER - AROUND,
		.call_ddp = ddp,
		.reply_max = 120,
		.call_threshold = call_threshold,
		.reply_threshold = reply_threshold,
	};
	struct rpcrdma_sizes in = {
		.call_len = 120,
		.reply_pages = reply_threshold - HEADER - AROUND,
		.reply_ddp = ddp,
		.call_threshold = call_threshold,
		.reply_threshold = reply_threshold,
	};

	expect_forms(test, out, RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_INLINE);
	out.call_pages += 4;
	expect_forms(test, out,
		     ddp ? RPCRDMA_CALL_READ_CHUNK : RPCRDMA_CALL_LONG,
		     RPCRDMA_REPLY_INLINE);
	expect_forms(test, in, RPCRDMA_CALL_INLINE, RPCRDMA_REPLY_INLINE);
	in.reply_pages++;
	expect_forms(test, in, RPCRDMA_CALL_INLINE,
		     ddp ? RPCRDMA_REPLY_WRITE_CHUNK : RPCRDMA_REPLY_CHUNK);
}

static void test_form_thresholds(struct kunit *test)
{
	static const u32 thresholds[] = { 1024, 4096, 16384, 65536,
					  RPCRDMA_INLINE_MAX };
	unsigned int call, reply;

	for (call = 0; call < ARRAY_SIZE(thresholds); call++) {
		for (reply = 0; reply < ARRAY_SIZE(thresholds); reply++) {
			expect_edges(test, thresholds[call],
				     thresholds[reply], true);
			expect_edges(test, thresholds[call],
				     thresholds[reply], false);
		}
	}
}

static void expect_no_form(struct kunit *test, struct rpcrdma_sizes sizes)
{
	struct rpcrdma_form form;

	sizes = fill_in(&sizes);
	KUNIT_EXPECT_EQ(test, rpcrdma_form_choose(&form, &sizes), -EMSGSIZE);
}

static void test_form_too_long(struct kunit *test)
{
	/* The header alone does not fit. */
	expect_no_form(test, (struct rpcrdma_sizes){
		SENDS_DDP(MIB), .read_segments = 64, .long_segments = 64,
	});
	expect_no_form(test, (struct rpcrdma_sizes){
		.call_len = 120, TAKES(MIB), .reply_segments = 64,
	});
	/* A message cannot have as many segments. */
	expect_no_form(test, (struct rpcrdma_sizes){
		SENDS(MIB), .long_segments = RPCRDMA_MAX_SEGMENTS + 1,
		.call_threshold = RPCRDMA_INLINE_MAX,
	});
	/* Nothing of this may wrap around. */
	expect_no_form(test, (struct rpcrdma_sizes){
		.call_len = U32_MAX, .call_pages = U32_MAX - 3,
		.call_ddp = true, .read_segments = U32_MAX,
		.long_segments = U32_MAX,
	});
	expect_no_form(test, (struct rpcrdma_sizes){
		.reply_max = U32_MAX, .reply_segments = U32_MAX,
	});
}

static struct kunit_case form_cases[] = {
	KUNIT_CASE_PARAM(test_form, form_gen_params),
	KUNIT_CASE_PARAM(test_form_header_len, form_gen_params),
	KUNIT_CASE(test_form_thresholds),
	KUNIT_CASE(test_form_too_long),
	{}
};

static struct kunit_suite form_suite = {
	.name = "rpcrdma_form",
	.test_cases = form_cases,
};

/* Pieces */

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

/* Credits */

#define REQUESTED	32

/* With Receives for @posted Replies */
static struct rpcrdma_credits start_with(u32 posted)
{
	struct rpcrdma_credits credits;

	rpcrdma_credits_init(&credits, posted);
	return credits;
}

static struct rpcrdma_credits start(void)
{
	return start_with(2 * REQUESTED);
}

/* Send all Calls that may be sent, and return how many. */
static unsigned int send_all(struct rpcrdma_credits *credits)
{
	unsigned int sent = 0;

	while (rpcrdma_credits_left(credits, REQUESTED)) {
		rpcrdma_credits_take(credits);
		sent++;
	}
	return sent;
}

static void receive(struct rpcrdma_credits *credits, u32 granted)
{
	rpcrdma_credits_grant(credits, granted);
	rpcrdma_credits_give(credits);
}

static void test_credits_before_first_reply(struct kunit *test)
{
	struct rpcrdma_credits credits = start();

	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
	receive(&credits, 8);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 8);
}

static void test_credits_no_more_than_requested(struct kunit *test)
{
	struct rpcrdma_credits credits = start();

	receive(&credits, U32_MAX);
	KUNIT_EXPECT_EQ(test, send_all(&credits), REQUESTED);
}

static void test_credits_zero(struct kunit *test)
{
	struct rpcrdma_credits credits = start();

	receive(&credits, 0);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
}

static void test_credits_fall_and_rise(struct kunit *test)
{
	struct rpcrdma_credits credits = start();

	receive(&credits, 4);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 4);
	receive(&credits, 2);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 0);
	receive(&credits, 2);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 0);
	receive(&credits, 2);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
	receive(&credits, 5);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 4);
}

/* Only a Reply gives back a credit; the end of a task that waits does not. */
static void test_credits_killed_task(struct kunit *test)
{
	struct rpcrdma_credits credits = start();

	receive(&credits, 3);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 3);
	KUNIT_EXPECT_FALSE(test, rpcrdma_credits_left(&credits, REQUESTED));
	receive(&credits, 3);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
}

static void test_credits_unasked_replies(struct kunit *test)
{
	struct rpcrdma_credits credits = start();
	unsigned int i;

	for (i = 0; i < 100; i++)
		receive(&credits, 2);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 2);
}

/* Messages in words, and whether their discard lets one more Call be sent */
struct discard_row {
	const char *name;
	bool backward;
	bool frees;
	u32 len;
	u32 word[10];
};

static const struct discard_row discard_rows[] = {
	{
		"too short to be anything", true, true,
		24, { 0xcafe, 1, 64, RPCRDMA_MSG },
	}, {
		"a version that nobody knows", true, true,
		36, { 0xcafe, 7, 64, RPCRDMA_MSG, 0, 0, 0, 0xcafe, 1 },
	}, {
		"RDMA_MSGP", false, true,
		36, { 0xcafe, 1, 64, RPCRDMA_MSGP, 0, 0, 0, 0xcafe, 1 },
	}, {
		"a Reply with a Write list that does not end", true, true,
		36, { 0xcafe, 1, 64, RPCRDMA_MSG, 0, 1, 9, 0xcafe, 1 },
	}, {
		"a Reply of another XID than its header", true, true,
		36, { 0xcafe, 1, 64, RPCRDMA_MSG, 0, 0, 0, 0xbeef, 1 },
	}, {
		"RDMA_NOMSG with nothing", true, true,
		28, { 0xcafe, 1, 64, RPCRDMA_NOMSG },
	}, {
		"an RDMA_ERROR that cannot be decoded", true, true,
		28, { 0xcafe, 1, 64, RPCRDMA_ERROR, 99 },
	}, {
		"RDMA_DONE, which answers nothing", true, false,
		28, { 0xcafe, 1, 64, RPCRDMA_DONE },
	}, {
		"a backward Call that nobody expects", false, false,
		36, { 0xcafe, 1, 64, RPCRDMA_MSG, 0, 0, 0, 0xcafe, 0 },
	}, {
		"a bad backward Call, which is answered", true, false,
		36, { 0xcafe, 1, 64, RPCRDMA_MSG, 0, 0, 0, 0xbeef, 0 },
	},
};

static void discard_row_name(const struct discard_row *row, char *name)
{
	strscpy(name, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(discard, discard_rows, discard_row_name);

static void test_credits_discarded(struct kunit *test)
{
	const struct discard_row *row = test->param_value;
	struct rpcrdma_credits credits = start();
	struct rpcrdma_message *msg;
	enum rpcrdma_verdict verdict;
	__be32 word[10];
	unsigned int i;

	msg = kunit_kzalloc(test, sizeof(*msg), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, msg);
	for (i = 0; i < ARRAY_SIZE(word); i++)
		word[i] = cpu_to_be32(row->word[i]);
	receive(&credits, 4);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 4);

	verdict = rpcrdma_wire_decode(msg, word, row->len, RPCRDMA_REQUESTER,
				      row->backward);
	KUNIT_EXPECT_NE(test, verdict, RPCRDMA_USE);
	if (rpcrdma_credits_freed_by(verdict, msg->reason))
		rpcrdma_credits_give(&credits);
	KUNIT_EXPECT_EQ(test, send_all(&credits), row->frees ? 1 : 0);
}

/* However many Replies are bad, the window is what it was when one is good. */
static void test_credits_recover(struct kunit *test)
{
	struct rpcrdma_credits credits = start();
	unsigned int i;

	receive(&credits, 4);
	for (i = 0; i < 100; i++) {
		send_all(&credits);
		rpcrdma_credits_give(&credits);
	}
	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
	for (i = 0; i < 4; i++)
		receive(&credits, 4);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 4);
}

static void test_credits_news(struct kunit *test)
{
	struct rpcrdma_credits credits = start();

	KUNIT_EXPECT_TRUE(test, rpcrdma_credits_grant(&credits, 1));
	KUNIT_EXPECT_FALSE(test, rpcrdma_credits_grant(&credits, 1));
	KUNIT_EXPECT_FALSE(test, rpcrdma_credits_grant(&credits, 0));
	KUNIT_EXPECT_TRUE(test, rpcrdma_credits_grant(&credits, 2));
	KUNIT_EXPECT_TRUE(test, rpcrdma_credits_grant(&credits, 1));
}

/* Make more Receives if that is what is short. Return: whether it was. */
static bool grow(struct rpcrdma_credits *credits)
{
	u32 posted = rpcrdma_credits_to_post(credits, REQUESTED);

	if (posted <= credits->posted)
		return false;
	rpcrdma_credits_posted(credits, posted);
	return true;
}

/* Whatever the server grants, there is a Receive for each Reply it owes. */
static void test_credits_have_receives(struct kunit *test)
{
	struct rpcrdma_credits credits = start_with(4);

	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
	receive(&credits, REQUESTED);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 4);
	KUNIT_EXPECT_EQ(test, rpcrdma_credits_limit(&credits), 4);
	KUNIT_EXPECT_TRUE(test, grow(&credits));
	KUNIT_EXPECT_EQ(test, send_all(&credits), 4);
	KUNIT_EXPECT_EQ(test, rpcrdma_credits_limit(&credits), 8);
	/* Without memory for more it goes on as before. */
	receive(&credits, REQUESTED);
	KUNIT_EXPECT_EQ(test, send_all(&credits), 1);
}

/* Receives are made for credits alone, and then for all of them. */
static void test_receives_follow_credits(struct kunit *test)
{
	struct rpcrdma_credits credits = start_with(4);
	unsigned int steps = 0;

	KUNIT_EXPECT_FALSE(test, grow(&credits));
	receive(&credits, 3);
	KUNIT_EXPECT_FALSE(test, grow(&credits));
	receive(&credits, 5);
	KUNIT_EXPECT_TRUE(test, grow(&credits));
	KUNIT_EXPECT_FALSE(test, grow(&credits));
	KUNIT_EXPECT_EQ(test, rpcrdma_credits_limit(&credits), 5);
	receive(&credits, U32_MAX);
	while (grow(&credits))
		steps++;
	KUNIT_EXPECT_EQ(test, steps, 3);
	KUNIT_EXPECT_EQ(test, rpcrdma_credits_limit(&credits), REQUESTED);
	KUNIT_EXPECT_EQ(test, send_all(&credits), REQUESTED);
	/* None is taken back: a Reply may be on its way to it. */
	receive(&credits, 1);
	KUNIT_EXPECT_FALSE(test, grow(&credits));
	receive(&credits, REQUESTED);
	KUNIT_EXPECT_EQ(test, rpcrdma_credits_limit(&credits), REQUESTED);
}

static struct kunit_case credits_cases[] = {
	KUNIT_CASE(test_credits_before_first_reply),
	KUNIT_CASE(test_credits_no_more_than_requested),
	KUNIT_CASE(test_credits_zero),
	KUNIT_CASE(test_credits_fall_and_rise),
	KUNIT_CASE(test_credits_killed_task),
	KUNIT_CASE(test_credits_unasked_replies),
	KUNIT_CASE_PARAM(test_credits_discarded, discard_gen_params),
	KUNIT_CASE(test_credits_recover),
	KUNIT_CASE(test_credits_news),
	KUNIT_CASE(test_credits_have_receives),
	KUNIT_CASE(test_receives_follow_credits),
	{}
};

static struct kunit_suite credits_suite = {
	.name = "rpcrdma_credits",
	.test_cases = credits_cases,
};

kunit_test_suites(&form_suite, &piece_suite, &credits_suite);
