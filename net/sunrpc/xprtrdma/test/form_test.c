// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/: how an RPC travels, given sizes, flags and thresholds.
 */
#include <kunit/test.h>

#include "../client/form.h"

/* Octets of the COMPOUND around the data of READ or WRITE, and of the RPC header */
#define AROUND		200
#define MIB		(1024 * 1024)
#define SENDS(octets)		.call_pages = (octets)
#define TAKES(octets)		.reply_pages = (octets)
#define SENDS_DDP(octets)	SENDS(octets), .call_ddp = true
#define TAKES_DDP(octets)	TAKES(octets), .reply_ddp = true

/* The size of a header with one segment in one chunk */
#define HEADER		28
#define HEADER_V2	36
#define HEADER_READ	(HEADER + 24)
#define HEADER_WRITE	(HEADER + 8 + 16)
#define HEADER_REPLY	(HEADER + 4 + 16)

/*
 * Defaults for what a row leaves out: a message is as long as its pages and AROUND; the
 * version is 1; thresholds are 1024 octets; a chunk for pages has one segment, a chunk for a whole
 * message three.
 */
struct form_row {
	const char *name;
	struct xprt_rdma_sizes sizes;
	struct xprt_rdma_form form;
};

static const struct form_row form_rows[] = {
	{
		"a small Call and a small Reply",
		{ .call_len = 120, .reply_max = 120 },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_INLINE, HEADER, 120 },
	}, {
		"a Call that just fits",
		{ .call_len = 1024 - HEADER },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_INLINE, HEADER,
		  1024 - HEADER },
	}, {
		"a Call that just does not fit",
		{ .call_len = 1028 - HEADER, .long_segments = 1 },
		{ XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_INLINE, HEADER_READ, 0 },
	}, {
		"a Reply that just fits",
		{ .call_len = 120, .reply_max = 1024 - HEADER },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_INLINE, HEADER, 120 },
	}, {
		"a Reply that just does not fit",
		{ .call_len = 120, .reply_max = 1028 - HEADER,
		  .reply_segments = 1 },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_CHUNK, HEADER_REPLY, 120 },
	}, {
		"a WRITE with little data",
		{ SENDS_DDP(512) },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_INLINE, HEADER,
		  AROUND + 512 },
	}, {
		"a WRITE",
		{ SENDS_DDP(4096) },
		{ XPRT_RDMA_CALL_READ_CHUNK, XPRT_RDMA_REPLY_INLINE, HEADER_READ,
		  AROUND },
	}, {
		"a WRITE that fits a larger threshold",
		{ SENDS_DDP(4096), .call_threshold = 8192 },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_INLINE, HEADER,
		  AROUND + 4096 },
	}, {
		"the reply threshold does not matter for a Call",
		{ SENDS_DDP(4096), .reply_threshold = 8192 },
		{ XPRT_RDMA_CALL_READ_CHUNK, XPRT_RDMA_REPLY_INLINE, HEADER_READ,
		  AROUND },
	}, {
		"a WRITE with padding, which goes with the data",
		{ .call_len = AROUND + 4096, .call_pages = 4093,
		  .call_ddp = true },
		{ XPRT_RDMA_CALL_READ_CHUNK, XPRT_RDMA_REPLY_INLINE, HEADER_READ,
		  AROUND },
	}, {
		"a WRITE with data that is not DDP-eligible",
		{ SENDS(4096) },
		{ XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_INLINE, HEADER + 3 * 24, 0 },
	}, {
		"a WRITE with as much around the data as fits",
		{ .call_len = 1024 - HEADER_READ + 4096, .call_pages = 4096,
		  .call_ddp = true },
		{ XPRT_RDMA_CALL_READ_CHUNK, XPRT_RDMA_REPLY_INLINE, HEADER_READ,
		  1024 - HEADER_READ },
	}, {
		"a WRITE with more around the data than fits",
		{ .call_len = 1028 - HEADER_READ + 4096, .call_pages = 4096,
		  .call_ddp = true },
		{ XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_INLINE, HEADER + 3 * 24, 0 },
	}, {
		"a WRITE with much around the data",
		{ .call_len = 2000 + 4096, .call_pages = 4096,
		  .call_ddp = true },
		{ XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_INLINE, HEADER + 3 * 24, 0 },
	}, {
		"a long Call whose pages are empty, DDP-eligible or not",
		{ .call_len = 2000, .call_ddp = true, .long_segments = 1 },
		{ XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_INLINE, HEADER_READ, 0 },
	}, {
		"a large WRITE, registered by a device with a small limit",
		{ SENDS_DDP(MIB), .read_segments = 16 },
		{ XPRT_RDMA_CALL_READ_CHUNK, XPRT_RDMA_REPLY_INLINE,
		  HEADER + 16 * 24, AROUND },
	}, {
		"a READ of little data",
		{ .call_len = 120, TAKES_DDP(512) },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_INLINE, HEADER, 120 },
	}, {
		"a READ",
		{ .call_len = 120, TAKES_DDP(4096) },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_WRITE_CHUNK, HEADER_WRITE,
		  120 },
	}, {
		"a large READ, registered by a device with a small limit",
		{ .call_len = 120, TAKES_DDP(MIB), .write_segments = 16 },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_WRITE_CHUNK,
		  HEADER + 8 + 16 * 16, 120 },
	}, {
		"a READ that fits a larger threshold",
		{ .call_len = 120, TAKES_DDP(4096), .reply_threshold = 8192 },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_INLINE, HEADER, 120 },
	}, {
		"the call threshold does not matter for a Reply",
		{ .call_len = 120, TAKES_DDP(4096), .call_threshold = 8192 },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_WRITE_CHUNK, HEADER_WRITE,
		  120 },
	}, {
		"a READ of data that is not DDP-eligible",
		{ .call_len = 120, TAKES(4096) },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_CHUNK, HEADER + 4 + 3 * 16,
		  120 },
	}, {
		"a Reply without pages to put data in, DDP-eligible or not",
		{ .call_len = 120, .reply_max = 2000, .reply_ddp = true,
		  .reply_segments = 1 },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_CHUNK, HEADER_REPLY, 120 },
	}, {
		"a READ with as much around the data as fits",
		{ .call_len = 120, .reply_max = 1024 - HEADER_WRITE + 4096,
		  .reply_pages = 4096, .reply_ddp = true },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_WRITE_CHUNK, HEADER_WRITE,
		  120 },
	}, {
		"a READ with more around the data than fits",
		{ .call_len = 120, .reply_max = 1028 - HEADER_WRITE + 4096,
		  .reply_pages = 4096, .reply_ddp = true },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_CHUNK, HEADER + 4 + 3 * 16,
		  120 },
	}, {
		"a Write chunk takes space that the Call would need",
		{ .call_len = 1024 - HEADER, TAKES_DDP(4096),
		  .long_segments = 1 },
		{ XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_WRITE_CHUNK,
		  HEADER_WRITE + 24, 0 },
	}, {
		"a Call that just fits beside a Write chunk",
		{ .call_len = 1024 - HEADER_WRITE, TAKES_DDP(4096) },
		{ XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_WRITE_CHUNK, HEADER_WRITE,
		  1024 - HEADER_WRITE },
	}, {
		"data both ways",
		{ SENDS_DDP(4096), TAKES_DDP(8192) },
		{ XPRT_RDMA_CALL_READ_CHUNK, XPRT_RDMA_REPLY_WRITE_CHUNK,
		  HEADER_WRITE + 24, AROUND },
	}, {
		"data both ways, not DDP-eligible",
		{ SENDS(4096), TAKES(8192) },
		{ XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_CHUNK,
		  HEADER + 3 * 24 + 4 + 3 * 16, 0 },
	}, {
		"a header that just fits",
		{ SENDS(MIB), TAKES(4096), .long_segments = 40,
		  .reply_segments = 2 },
		{ XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_CHUNK, 1024, 0 },
	},
};

KUNIT_ARRAY_PARAM_DESC(form, form_rows, name);

static struct xprt_rdma_sizes fill_in(const struct xprt_rdma_sizes *from)
{
	struct xprt_rdma_sizes sizes = *from;

	if (sizes.call_pages && !sizes.call_len)
		sizes.call_len = AROUND + sizes.call_pages;
	if (sizes.reply_pages && !sizes.reply_max)
		sizes.reply_max = AROUND + sizes.reply_pages;
	sizes.header_min = sizes.header_min ?: HEADER;
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
	struct xprt_rdma_sizes sizes = fill_in(&row->sizes);
	struct xprt_rdma_form form;

	KUNIT_ASSERT_EQ(test, xprt_rdma_form_choose(&form, &sizes), 0);
	KUNIT_EXPECT_EQ(test, form.call, row->form.call);
	KUNIT_EXPECT_EQ(test, form.reply, row->form.reply);
	KUNIT_EXPECT_EQ(test, form.header_len, row->form.header_len);
	KUNIT_EXPECT_EQ(test, form.inline_len, row->form.inline_len);
}

/* The codec's header has the length that was computed. */
static void add_segments(struct kunit *test, struct rpcrdma_message *msg,
			 struct rpcrdma_chunk *chunk, u32 count)
{
	while (count--)
		KUNIT_ASSERT_EQ(test, 0,
				rpcrdma_wire_add_segment(msg, chunk, 1, 1, 0));
}

static void expect_header_len(struct kunit *test, struct rpcrdma_message *msg,
			      const struct xprt_rdma_sizes *sizes,
			      const struct xprt_rdma_form *form)
{
	if (form->call == XPRT_RDMA_CALL_READ_CHUNK)
		add_segments(test, msg, rpcrdma_wire_add_read(msg, 64),
			     sizes->read_segments);
	else if (form->call == XPRT_RDMA_CALL_LONG)
		add_segments(test, msg, rpcrdma_wire_add_read(msg, 0),
			     sizes->long_segments);
	if (form->reply == XPRT_RDMA_REPLY_WRITE_CHUNK)
		add_segments(test, msg, rpcrdma_wire_add_write(msg),
			     sizes->write_segments);
	else if (form->reply == XPRT_RDMA_REPLY_CHUNK)
		add_segments(test, msg, rpcrdma_wire_add_reply(msg),
			     sizes->reply_segments);
	KUNIT_EXPECT_EQ(test, form->header_len, rpcrdma_wire_header_len(msg));
	KUNIT_EXPECT_LE(test, form->header_len + form->inline_len,
			sizes->call_threshold);
}

static void test_form_header_len(struct kunit *test)
{
	const struct form_row *row = test->param_value;
	struct xprt_rdma_sizes sizes = fill_in(&row->sizes);
	struct rpcrdma_message *msg;
	struct xprt_rdma_form form;
	u32 version;
	bool fits;

	msg = kunit_kzalloc(test, sizeof(*msg), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, msg);
	for (version = RPCRDMA_VERSION_ONE; version <= RPCRDMA_VERSION_MAX; version++) {
		sizes.header_min = rpcrdma_wire_header_min(version);
		/* One row's header fits in version 1 alone. */
		fits = row->form.header_len + sizes.header_min - HEADER <= sizes.call_threshold;
		KUNIT_ASSERT_EQ(test, !xprt_rdma_form_choose(&form, &sizes), fits);
		if (!fits)
			continue;
		rpcrdma_wire_init_call(msg, version, 0, 1);
		expect_header_len(test, msg, &sizes, &form);
	}
}

static void expect_forms(struct kunit *test, struct xprt_rdma_sizes sizes,
			 enum xprt_rdma_call_form call,
			 enum xprt_rdma_reply_form reply)
{
	struct xprt_rdma_form form;

	sizes = fill_in(&sizes);
	KUNIT_ASSERT_EQ(test, xprt_rdma_form_choose(&form, &sizes), 0);
	KUNIT_EXPECT_EQ(test, form.call, call);
	KUNIT_EXPECT_EQ(test, form.reply, reply);
	KUNIT_EXPECT_LE(test, form.header_len + form.inline_len,
			sizes.call_threshold);
}

/* The longest WRITE and READ that are inline, and the shortest that are not */
static void expect_edges(struct kunit *test, u32 header_min, u32 call_threshold,
			 u32 reply_threshold, bool ddp)
{
	struct xprt_rdma_sizes out = {
		.call_pages = call_threshold - header_min - AROUND,
		.call_ddp = ddp,
		.reply_max = 120,
		.header_min = header_min,
		.call_threshold = call_threshold,
		.reply_threshold = reply_threshold,
	};
	struct xprt_rdma_sizes in = {
		.call_len = 120,
		.reply_pages = reply_threshold - header_min - AROUND,
		.reply_ddp = ddp,
		.header_min = header_min,
		.call_threshold = call_threshold,
		.reply_threshold = reply_threshold,
	};

	expect_forms(test, out, XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_INLINE);
	out.call_pages += 4;
	expect_forms(test, out,
		     ddp ? XPRT_RDMA_CALL_READ_CHUNK : XPRT_RDMA_CALL_LONG,
		     XPRT_RDMA_REPLY_INLINE);
	expect_forms(test, in, XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_INLINE);
	in.reply_pages++;
	expect_forms(test, in, XPRT_RDMA_CALL_INLINE,
		     ddp ? XPRT_RDMA_REPLY_WRITE_CHUNK : XPRT_RDMA_REPLY_CHUNK);
}

static void test_form_thresholds(struct kunit *test)
{
	static const u32 thresholds[] = { 1024, 4096, 16384, 65536,
					  RPCRDMA_INLINE_MAX };
	unsigned int call, reply, i;

	for (call = 0; call < ARRAY_SIZE(thresholds); call++) {
		for (reply = 0; reply < ARRAY_SIZE(thresholds); reply++) {
			for (i = 0; i < 4; i++)
				expect_edges(test, i & 1 ? HEADER_V2 : HEADER,
					     thresholds[call],
					     thresholds[reply], i & 2);
		}
	}
}

/* Between two ends that send no private data */
static void test_form_version_2(struct kunit *test)
{
	struct xprt_rdma_sizes sizes = {
		.call_len = 4096 - HEADER_V2, .reply_max = 4096 - HEADER_V2,
		.header_min = HEADER_V2,
		.call_threshold = 4096, .reply_threshold = 4096,
	};
	struct xprt_rdma_sizes first = {
		.call_len = 1024 - HEADER_V2, .header_min = HEADER_V2,
		.long_segments = 1,
	};

	expect_forms(test, sizes, XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_INLINE);
	sizes.call_len++;
	expect_forms(test, sizes, XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_INLINE);
	sizes.reply_max++;
	expect_forms(test, sizes, XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_CHUNK);

	/* The first message of a connection */
	expect_forms(test, first, XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_INLINE);
	first.call_len++;
	expect_forms(test, first, XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_INLINE);
}

static void expect_no_form(struct kunit *test, struct xprt_rdma_sizes sizes)
{
	struct xprt_rdma_form form;

	sizes = fill_in(&sizes);
	KUNIT_EXPECT_EQ(test, xprt_rdma_form_choose(&form, &sizes), -EMSGSIZE);
}

static void test_form_too_long(struct kunit *test)
{
	/* The header alone does not fit. */
	expect_no_form(test, (struct xprt_rdma_sizes){
		SENDS_DDP(MIB), .read_segments = 64, .long_segments = 64,
	});
	expect_no_form(test, (struct xprt_rdma_sizes){
		.call_len = 120, TAKES(MIB), .reply_segments = 64,
	});
	expect_no_form(test, (struct xprt_rdma_sizes){
		SENDS(MIB), TAKES(4096), .long_segments = 40,
		.reply_segments = 3,
	});
	/* No sum may wrap around. */
	expect_no_form(test, (struct xprt_rdma_sizes){
		.call_len = U32_MAX, .call_pages = U32_MAX - 3,
		.call_ddp = true, .read_segments = U32_MAX,
		.long_segments = U32_MAX,
	});
	expect_no_form(test, (struct xprt_rdma_sizes){
		.reply_max = U32_MAX, .reply_segments = U32_MAX,
	});
}

/* All chunks together have as many segments as a message can have, or one more. */
static void test_form_segments(struct kunit *test)
{
	struct xprt_rdma_sizes data = {
		SENDS_DDP(MIB), .read_segments = RPCRDMA_MAX_SEGMENTS / 2,
		TAKES_DDP(MIB), .write_segments = RPCRDMA_MAX_SEGMENTS / 2,
		.call_threshold = RPCRDMA_INLINE_MAX,
		.reply_threshold = RPCRDMA_INLINE_MAX,
	};
	struct xprt_rdma_sizes whole = {
		SENDS(MIB), .long_segments = RPCRDMA_MAX_SEGMENTS / 2,
		TAKES(MIB), .reply_segments = RPCRDMA_MAX_SEGMENTS / 2,
		.call_threshold = RPCRDMA_INLINE_MAX,
		.reply_threshold = RPCRDMA_INLINE_MAX,
	};

	expect_forms(test, data, XPRT_RDMA_CALL_READ_CHUNK,
		     XPRT_RDMA_REPLY_WRITE_CHUNK);
	data.read_segments++;
	expect_no_form(test, data);
	expect_forms(test, whole, XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_CHUNK);
	whole.reply_segments++;
	expect_no_form(test, whole);
}

/* An RPC with data of this length, at worst begun and ended within a page */
static int choose_unaligned(u32 len, u32 call, u32 reply, unsigned int max_pages, bool ddp)
{
	u32 segments = xprt_rdma_form_segments(PAGE_SIZE - 1, len, max_pages, true);
	struct xprt_rdma_sizes write = {
		.header_min = HEADER, .call_threshold = call, .reply_threshold = reply,
		.call_len = len + 1000, .call_pages = len, .call_ddp = ddp,
		.read_segments = segments, .long_segments = segments + 2,
		.reply_max = 128,
	};
	struct xprt_rdma_sizes read = {
		.header_min = HEADER, .call_threshold = call, .reply_threshold = reply,
		.call_len = 800, .long_segments = 1,
		.reply_max = len + 200, .reply_pages = len, .reply_ddp = ddp,
		.write_segments = segments, .reply_segments = segments + 2,
	};
	struct xprt_rdma_form form;

	return xprt_rdma_form_choose(&form, &write) ?: xprt_rdma_form_choose(&form, &read);
}

/* What is promised to NFS can be sent, and not much more than that. */
static void test_form_max_payload(struct kunit *test)
{
	static const struct {
		u32 call, reply;
		unsigned int max_pages;
		u32 octets;
	} rows[] = {
		{ 1024, 1024, 1, 37 * PAGE_SIZE },
		{ 1024, 16384, 1, 37 * PAGE_SIZE },
		{ 16384, 1024, 1, 58 * PAGE_SIZE },
		{ 4096, 4096, 1, 165 * PAGE_SIZE },
		{ 16384, 16384, 1, 252 * PAGE_SIZE },
		{ 1024, 1024, 16, 592 * PAGE_SIZE },
		{ 1024, 1024, 256, 4 * MIB },
		{ 16384, 16384, 256, 4 * MIB },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		u32 call = rows[i].call, reply = rows[i].reply;
		unsigned int max_pages = rows[i].max_pages;
		u32 len = xprt_rdma_form_max_payload(1, call, reply, max_pages);
		u32 more = len + 6 * max_pages * PAGE_SIZE;

		KUNIT_EXPECT_EQ(test, len, min(rows[i].octets, 4U * MIB));
		KUNIT_EXPECT_EQ(test, 0, choose_unaligned(len, call, reply, max_pages, true));
		KUNIT_EXPECT_EQ(test, 0, choose_unaligned(len, call, reply, max_pages, false));
		if (len < 4 * MIB && call <= reply)
			KUNIT_EXPECT_EQ(test, -EMSGSIZE, choose_unaligned(more, call, reply,
									  max_pages, false));
	}
}

/* What fits by the smaller threshold, and into the buffer */
static void test_form_backward(struct kunit *test)
{
	static const struct {
		u32 version, call, reply, octets;
	} rows[] = {
		{ 1, 1024, 1024, 996 },
		{ 1, 16384, 1024, 996 },
		{ 1, 16384, 4096, 4068 },
		{ 1, 2048, 4096, 2020 },
		{ 1, 16384, RPCRDMA_INLINE_MAX, 4096 },
		{ 2, 4096, 4096, 4060 },
		{ 2, 4096, 16384, 4060 },
		{ 2, 16384, 16384, 4096 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ(test, rows[i].octets,
				xprt_rdma_form_backward(rows[i].version, rows[i].call,
							rows[i].reply, 4096));
}

static struct kunit_case form_cases[] = {
	KUNIT_CASE_PARAM(test_form, form_gen_params),
	KUNIT_CASE_PARAM(test_form_header_len, form_gen_params),
	KUNIT_CASE(test_form_thresholds),
	KUNIT_CASE(test_form_version_2),
	KUNIT_CASE(test_form_too_long),
	KUNIT_CASE(test_form_segments),
	KUNIT_CASE(test_form_max_payload),
	KUNIT_CASE(test_form_backward),
	{}
};

static struct kunit_suite form_suite = {
	.name = "rpcrdma_form",
	.test_cases = form_cases,
};

kunit_test_suites(&form_suite);
