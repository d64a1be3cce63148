// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suites of server/: the form of a Reply, and which handle it invalidates.
 */
#include "server_test.h"

/* Of a peer that has announced no sizes */
#define THRESHOLD	1024
#define HEADER		28
#define V2_THRESHOLD	4096
#define V2_HEADER	36

struct result_row {
	u32 offset;
	u32 length;
	u32 word;	/* offset of the length; zero: right before the data */
};

struct reply_row {
	const char *name;
	u32 version;			/* zero: version 1 */
	u32 len;			/* of the RPC message */
	struct chunk_row write[CHUNKS];
	unsigned int num_writes;
	struct chunk_row reply;
	unsigned int num_results;
	struct result_row result[CHUNKS];
	int ret;
	u32 short_segment;		/* the first that is too short, if @ret */
	u32 length_needed;		/* octets that it would need, if @ret */
	enum rpcrdma_proc proc;
	u32 left;			/* octets that go to no Write chunk */
	const char *pieces;
};

static const struct reply_row reply_rows[] = {
	{
		"a small Reply", .len = 100, .left = 100, .pieces = ""
	}, {
		"a Reply that just fits", .len = THRESHOLD - HEADER,
		.left = THRESHOLD - HEADER, .pieces = ""
	}, {
		"a Reply that just does not fit", .len = THRESHOLD - HEADER + 4,
		.ret = -EMSGSIZE
	}, {
		"a Reply chunk that is not needed", .len = 100,
		.reply = CHUNK(4096), .left = 100, .pieces = ""
	}, {
		"a Reply chunk", .len = 1000, .reply = CHUNK(4096),
		.proc = RPCRDMA_NOMSG, .left = 1000, .pieces = "h1+0@0:1000 "
	}, {
		"a Reply chunk of segments", .len = 1001,
		.reply = CHUNK(300, 0, 700, 100),
		.proc = RPCRDMA_NOMSG, .left = 1001,
		.pieces = "h1+0@0:300 h3+0@300:700 h4+0@1000:1 "
	}, {
		"a Reply chunk that is filled", .len = 1000,
		.reply = CHUNK(1000), .proc = RPCRDMA_NOMSG, .left = 1000,
		.pieces = "h1+0@0:1000 "
	}, {
		"a Reply chunk too small", .len = 1001, .reply = CHUNK(1000),
		.ret = -EMSGSIZE, .short_segment = 1, .length_needed = 1001
	}, {
		"a Reply chunk of segments too small", .len = 1001,
		.reply = CHUNK(300, 300, 300),
		.ret = -EMSGSIZE, .short_segment = 3, .length_needed = 401
	}, {
		"a Reply chunk of no octets", .len = 1000, .reply = CHUNK(0),
		.ret = -EMSGSIZE, .short_segment = 1, .length_needed = 1000
	}, {
		"a READ", .len = 100 + 4096, .write = { CHUNK(3000, 2000) },
		.num_writes = 1, .num_results = 1, .result = { { 100, 4096 } },
		.left = 100, .pieces = "h1+0@100:3000 h2+0@3100:1096 "
	}, {
		"a READ of odd length, and what follows",
		.len = 100 + 12 + 8, .write = { CHUNK(4096) },
		.num_writes = 1, .num_results = 1, .result = { { 100, 10 } },
		.left = 108, .pieces = "h1+0@100:10 "
	}, {
		"a READ of nothing", .len = 104, .write = { CHUNK(4096) },
		.num_writes = 1, .num_results = 1, .result = { { 100, 0 } },
		.left = 104, .pieces = ""
	}, {
		"a Write chunk that nothing is for", .len = 100,
		.write = { CHUNK(4096) }, .num_writes = 1, .left = 100,
		.pieces = ""
	}, {
		"two READs", .len = 400, .write = { CHUNK(64), CHUNK(64, 64) },
		.num_writes = 2, .num_results = 2,
		.result = { { 100, 64 }, { 200, 100 } }, .left = 236,
		.pieces = "h1+0@100:64 h2+0@200:64 h3+0@264:36 "
	}, {
		"a READ of odd length without its padding", .len = 100 + 10,
		.write = { CHUNK(4096) }, .num_writes = 1, .num_results = 1,
		.result = { { 100, 10 } }, .left = 100,
		.pieces = "h1+0@100:10 "
	}, {
		"READs side by side", .len = 228, .write = { CHUNK(64), CHUNK(60) },
		.num_writes = 2, .num_results = 2,
		.result = { { 100, 64 }, { 168, 60 } }, .left = 104,
		.pieces = "h1+0@100:64 h2+0@168:60 "
	}, {
		/* The request's last Reply had another. */
		"one result for two Write chunks", .len = 400,
		.write = { CHUNK(64), CHUNK(64) }, .num_writes = 2,
		.num_results = 1, .result = { { 100, 64 }, { 200, 60 } },
		.left = 336, .pieces = "h1+0@100:64 "
	}, {
		"an empty Write chunk keeps its result inline", .len = 400,
		.write = { EMPTY, CHUNK(64) }, .num_writes = 2,
		.num_results = 2, .result = { { 100, 64 }, { 200, 60 } },
		.left = 340, .pieces = "h1+0@200:60 "
	}, {
		"a Write chunk too small", .len = 400, .write = { CHUNK(63) },
		.num_writes = 1, .num_results = 1, .result = { { 100, 64 } },
		.ret = -EMSGSIZE, .short_segment = 1, .length_needed = 64
	}, {
		"a second Write chunk too small", .len = 400,
		.write = { CHUNK(64), CHUNK(32, 32, 20) }, .num_writes = 2,
		.num_results = 2, .result = { { 100, 64 }, { 200, 100 } },
		.ret = -EMSGSIZE, .short_segment = 4, .length_needed = 36
	}, {
		"two Write chunks too small, and no Reply chunk",
		.len = 2000, .write = { CHUNK(32, 31), CHUNK(10) },
		.num_writes = 2, .num_results = 2,
		.result = { { 100, 64 }, { 200, 100 } },
		.ret = -EMSGSIZE, .short_segment = 2, .length_needed = 32
	}, {
		"a Write chunk too small after an empty one", .len = 400,
		.write = { EMPTY, CHUNK(59) }, .num_writes = 2,
		.num_results = 2, .result = { { 100, 64 }, { 200, 60 } },
		.ret = -EMSGSIZE, .short_segment = 1, .length_needed = 60
	}, {
		"a Write chunk, and the rest in the Reply chunk",
		.len = 2000 + 4096 + 500, .write = { CHUNK(4096) },
		.num_writes = 1, .reply = CHUNK(1900, 1900),
		.num_results = 1, .result = { { 2000, 4096 } },
		.proc = RPCRDMA_NOMSG, .left = 2500,
		.pieces = "h1+0@2000:4096 h2+0@0:1900 h3+0@1900:100 h3+100@6096:500 "
	}, {
		"two Write chunks, and the rest in the Reply chunk",
		.len = 3200, .write = { CHUNK(64), CHUNK(64) },
		.num_writes = 2, .reply = CHUNK(4096), .num_results = 2,
		.result = { { 2000, 64 }, { 3064, 64 } },
		.proc = RPCRDMA_NOMSG, .left = 3072,
		.pieces = "h1+0@2000:64 h2+0@3064:64 h3+0@0:2000 h3+2000@2064:1000 h3+3000@3128:72 "
	}, {
		"a Reply chunk too small for the rest",
		.len = 2000 + 4096, .write = { CHUNK(4096) },
		.num_writes = 1, .reply = CHUNK(1999),
		.num_results = 1, .result = { { 2000, 4096 } },
		.ret = -EMSGSIZE, .short_segment = 2, .length_needed = 2000
	}, {
		"a Reply chunk too small after two Write chunks",
		.len = 3200, .write = { CHUNK(64), CHUNK(32, 32) },
		.num_writes = 2, .reply = CHUNK(1000, 1000), .num_results = 2,
		.result = { { 2000, 64 }, { 3064, 64 } },
		.ret = -EMSGSIZE, .short_segment = 5, .length_needed = 2072
	}, {
		"no Reply chunk for what a Write chunk leaves",
		.len = 2000 + 4096, .write = { CHUNK(4096) },
		.num_writes = 1, .num_results = 1, .result = { { 2000, 4096 } },
		.ret = -EMSGSIZE
	}, {
		"chunks take room in the header", .len = 404,
		.write = { CHUNK(1, 1, 1, 1, 1, 1, 1, 1),
			   CHUNK(1, 1, 1, 1, 1, 1, 1, 1),
			   CHUNK(1, 1, 1, 1, 1, 1, 1, 1),
			   CHUNK(1, 1, 1, 1, 1, 1, 1, 1) },
		.num_writes = 4, .reply = CHUNK(1, 1, 4096),
		.proc = RPCRDMA_NOMSG, .left = 404,
		.pieces = "h33+0@0:1 h34+0@1:1 h35+0@2:402 "
	}, {
		"chunks leave just enough room", .len = 400,
		.write = { CHUNK(1, 1, 1, 1, 1, 1, 1, 1),
			   CHUNK(1, 1, 1, 1, 1, 1, 1, 1),
			   CHUNK(1, 1, 1, 1, 1, 1, 1, 1),
			   CHUNK(1, 1, 1, 1, 1, 1, 1, 1) },
		.num_writes = 4, .reply = CHUNK(1, 1, 4096),
		.left = 400, .pieces = ""
	}, {
		"a result noted at its length word", .len = 400,
		.write = { CHUNK(64) }, .num_writes = 1, .num_results = 1,
		.result = { { 100, 64, 100 } }, .left = 336,
		.pieces = "h1+0@104:64 "
	}, {
		"a result that was cut off", .len = 110,
		.write = { CHUNK(64) }, .num_writes = 1, .num_results = 1,
		.result = { { 100, 64 } }, .left = 110, .pieces = ""
	}, {
		"a result beyond the end", .len = 100,
		.write = { CHUNK(64) }, .num_writes = 1, .num_results = 1,
		.result = { { 200, 64 } }, .left = 100, .pieces = ""
	}, {
		"a result without its length", .len = 400,
		.write = { CHUNK(64) }, .num_writes = 1, .num_results = 1,
		.result = { { 100, 64, 300 } }, .left = 400, .pieces = ""
	}, {
		"a result within another", .len = 400,
		.write = { CHUNK(64), CHUNK(64) }, .num_writes = 2,
		.num_results = 2, .result = { { 100, 64 }, { 132, 16 } },
		.left = 336, .pieces = "h1+0@100:64 "
	}, {
		"a result that is not there leaves its Write chunk to the next",
		.len = 400, .write = { CHUNK(64), CHUNK(64) }, .num_writes = 2,
		.num_results = 2,
		.result = { { 100, 64, 300 }, { 200, 60 } }, .left = 340,
		.pieces = "h1+0@200:60 "
	}, {
		"a result at the very start", .len = 400,
		.write = { CHUNK(64) }, .num_writes = 1, .num_results = 1,
		.result = { { 0, 64, 300 } }, .left = 400, .pieces = ""
	}, {
		"version 2: a Reply that just fits", RPCRDMA_VERSION_TWO,
		.len = V2_THRESHOLD - V2_HEADER,
		.left = V2_THRESHOLD - V2_HEADER, .pieces = ""
	}, {
		"version 2: a Reply that just does not fit",
		RPCRDMA_VERSION_TWO, .len = V2_THRESHOLD - V2_HEADER + 4,
		.ret = -EMSGSIZE
	}, {
		"version 2: a Reply chunk", RPCRDMA_VERSION_TWO,
		.len = V2_THRESHOLD, .reply = CHUNK(8192),
		.proc = RPCRDMA_NOMSG, .left = V2_THRESHOLD,
		.pieces = "h1+0@0:4096 "
	}, {
		"version 2: a Reply chunk too small", RPCRDMA_VERSION_TWO,
		.len = V2_THRESHOLD, .reply = CHUNK(2048, 2047),
		.ret = -EMSGSIZE, .short_segment = 2, .length_needed = 2048
	}, {
		"version 2: a READ, and as much around it as fits",
		RPCRDMA_VERSION_TWO,
		.len = V2_THRESHOLD - V2_HEADER - 8 - 16 + 4096,
		.write = { CHUNK(4096) }, .num_writes = 1,
		.num_results = 1, .result = { { 100, 4096 } },
		.left = V2_THRESHOLD - V2_HEADER - 8 - 16,
		.pieces = "h1+0@100:4096 "
	}, {
		"version 2: a READ, and more around it than fits",
		RPCRDMA_VERSION_TWO,
		.len = V2_THRESHOLD - V2_HEADER - 8 - 16 + 4 + 4096,
		.write = { CHUNK(4096) }, .num_writes = 1,
		.num_results = 1, .result = { { 100, 4096 } },
		.ret = -EMSGSIZE
	},
};

KUNIT_ARRAY_PARAM_DESC(reply, reply_rows, name);

static u32 reply_version(const struct reply_row *row)
{
	return row->version ?: RPCRDMA_VERSION_ONE;
}

static void deliver_call(struct kunit *test, u32 version,
			 const struct chunk_row *read,
			 const struct chunk_row *write, unsigned int num_writes,
			 const struct chunk_row *reply)
{
	struct fixture *f = test->priv;
	unsigned int i;

	rpcrdma_wire_init_call(&f->made, version, XID, 1);
	f->handles = 0;
	if (read && read->count)
		add_chunk(test, rpcrdma_wire_add_read(&f->made, read->position),
			  read);
	for (i = 0; i < num_writes; i++)
		add_chunk(test, rpcrdma_wire_add_write(&f->made), &write[i]);
	if (reply->count)
		add_chunk(test, rpcrdma_wire_add_reply(&f->made), reply);
	deliver(test, RPCRDMA_SERVER_END, 40);
}

/* The RPC message of the Reply takes the buffer of the Call. */
static void make_results(struct kunit *test, const struct reply_row *row)
{
	struct fixture *f = test->priv;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, row->len <= BUF_LEN, true);
	memset(f->buf, 0xff, BUF_LEN);
	f->res.head[0].iov_base = f->buf;
	f->res.head[0].iov_len = row->len;
	f->res.len = row->len;
	f->results.count = row->num_results;
	for (i = 0; i < row->num_results || row->result[i].offset; i++) {
		const struct result_row *result = &row->result[i];
		u32 word = result->word ?: result->offset - 4;

		f->results.result[i].chunk = f->msg.write;	/* of the last Reply */
		f->buf[word / 4] = cpu_to_be32(result->length);
		f->results.result[i].offset = result->offset;
		f->results.result[i].length = result->length;
	}
}

/* Choose the form of the Reply to a Call of @version. */
static int choose(struct kunit *test, const struct reply_row *row, u32 version,
		  u32 threshold)
{
	struct fixture *f = test->priv;
	unsigned int i;

	deliver_call(test, version, NULL, row->write, row->num_writes,
		     &row->reply);
	make_results(test, row);
	for (i = 0; i < SVCRDMA_MAX_PARTS; i++)		/* what is on the stack */
		f->form.part[i] = (struct svcrdma_part){ .len = 1 };
	rpcrdma_wire_make_reply(&f->msg, 1);
	return svcrdma_reply_choose(&f->form, &f->msg, &f->results, &f->res,
				    threshold);
}

static int choose_by_version(struct kunit *test, const struct reply_row *row)
{
	u32 version = reply_version(row);

	return choose(test, row, version,
		      rpcrdma_wire_threshold(version, THRESHOLD));
}

static int add_octets(void *data, const struct svcrdma_piece *piece)
{
	u32 *octets = data;

	*octets += piece->octets;
	return 0;
}

/*
 * All chunks go back to the requester in order, each as long as what was written to
 * it, and the inline part fits.
 */
static void expect_chunks_returned(struct kunit *test, const struct reply_row *row)
{
	struct fixture *f = test->priv;
	u32 header, octets = 0, returned = 0;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, choose_by_version(test, row), 0);
	svcrdma_reply_walk(&f->form, &f->msg, &f->results, add_octets, &octets);
	KUNIT_EXPECT_EQ(test, octets, f->form.written);
	header = rpcrdma_wire_header_len(&f->msg);
	if (f->msg.proc == RPCRDMA_MSG)
		header += f->form.len;
	KUNIT_EXPECT_TRUE(test, header <= rpcrdma_wire_threshold(f->msg.version,
								 THRESHOLD));

	f->made = f->msg;
	deliver(test, RPCRDMA_CLIENT_END, row->proc == RPCRDMA_MSG ? 40 : 0);
	KUNIT_ASSERT_EQ(test, f->msg.num_writes, row->num_writes);
	KUNIT_EXPECT_EQ(test, f->msg.version, reply_version(row));
	KUNIT_EXPECT_EQ(test, f->msg.has_reply_chunk, row->reply.count != 0);
	for (i = 0; i < row->num_writes; i++) {
		KUNIT_EXPECT_EQ(test, f->msg.write[i].count,
				row->write[i].count);
		returned += f->msg.write[i].length;
	}
	if (f->msg.has_reply_chunk) {
		KUNIT_EXPECT_EQ(test, f->msg.reply_chunk.count,
				row->reply.count);
		returned += f->msg.reply_chunk.length;
	}
	KUNIT_EXPECT_EQ(test, returned, octets);
}

static void expect_error(struct kunit *test, const u32 *words, size_t count)
{
	struct fixture *f = test->priv;
	unsigned int i;

	rpcrdma_wire_cant_reply(&f->msg, f->form.short_chunk, f->form.needed);
	rpcrdma_wire_make_error(&f->msg, 1);
	KUNIT_ASSERT_EQ(test, rpcrdma_wire_encode(&f->msg, f->buf, BUF_LEN),
			(int)(count * sizeof(*words)));
	for (i = 0; i < count; i++)
		KUNIT_EXPECT_EQ(test, be32_to_cpu(f->buf[i]), words[i]);
}

/*
 * Version 2 says which segment is too short. Version 1 does not, with the same
 * chunks. With the threshold of version 1, all rows fail in both versions.
 */
static void expect_cant_reply(struct kunit *test, const struct reply_row *row)
{
	const u32 v1[] = {
		be32_to_cpu(XID), RPCRDMA_VERSION_ONE, 1, RPCRDMA_ERROR, 2
	};
	const u32 v2[] = {
		be32_to_cpu(XID), RPCRDMA_VERSION_TWO, 1, RPCRDMA_ERROR,
		RPCRDMA_ERR_CANT_REPLY, true, row->short_segment,
		row->length_needed
	};

	KUNIT_ASSERT_EQ(test, choose(test, row, RPCRDMA_VERSION_ONE, THRESHOLD),
			row->ret);
	expect_error(test, v1, ARRAY_SIZE(v1));
	KUNIT_ASSERT_EQ(test, choose(test, row, RPCRDMA_VERSION_TWO, THRESHOLD),
			row->ret);
	expect_error(test, v2, ARRAY_SIZE(v2));
}

static void test_reply(struct kunit *test)
{
	const struct reply_row *row = test->param_value;
	struct fixture *f = test->priv;

	KUNIT_ASSERT_EQ(test, choose_by_version(test, row), row->ret);
	if (row->ret) {
		expect_cant_reply(test, row);
		return;
	}
	KUNIT_EXPECT_EQ(test, f->msg.proc, row->proc);
	KUNIT_EXPECT_EQ(test, f->form.len, row->left);
	KUNIT_EXPECT_EQ(test, svcrdma_reply_walk(&f->form, &f->msg, &f->results,
						 note_piece, f), 0);
	KUNIT_EXPECT_TRUE_MSG(test, !strcmp(f->pieces, row->pieces),
			      "have %s", f->pieces);
	expect_chunks_returned(test, row);
}

/* The header alone is longer than the threshold: no chunk is too short. */
static void test_reply_header_too_long(struct kunit *test)
{
	static const struct chunk_row segments =
		CHUNK(4096, 4096, 4096, 4096, 4096, 4096, 4096, 4096);
	struct fixture *f = test->priv;
	unsigned int i;

	rpcrdma_wire_init_call(&f->made, RPCRDMA_VERSION_ONE, XID, 1);
	for (i = 0; i < 8; i++)
		add_chunk(test, rpcrdma_wire_add_write(&f->made), &segments);
	add_chunk(test, rpcrdma_wire_add_reply(&f->made), &segments);
	deliver(test, RPCRDMA_SERVER_END, 40);
	f->res.head[0].iov_base = f->buf;
	f->res.head[0].iov_len = 100;
	f->res.len = 100;
	rpcrdma_wire_make_reply(&f->msg, 1);
	f->form.short_chunk = &f->msg.reply_chunk;
	KUNIT_EXPECT_EQ(test, svcrdma_reply_choose(&f->form, &f->msg,
						   &f->results, &f->res,
						   THRESHOLD), -EMSGSIZE);
	KUNIT_EXPECT_NULL(test, f->form.short_chunk);
	KUNIT_EXPECT_EQ(test, svcrdma_reply_choose(&f->form, &f->msg,
						   &f->results, &f->res,
						   V2_THRESHOLD), 0);
}

static struct kunit_case reply_cases[] = {
	KUNIT_CASE_PARAM(test_reply, reply_gen_params),
	KUNIT_CASE(test_reply_header_too_long),
	{}
};

static struct kunit_suite reply_suite = {
	.name = "rpcrdma_reply",
	.init = server_init,
	.test_cases = reply_cases,
};

/* Which handle the Reply invalidates */

struct handle_row {
	const char *name;
	struct chunk_row read;
	unsigned int num_writes;
	struct chunk_row write[CHUNKS];
	struct chunk_row reply;
	u32 handle;		/* zero: none */
};

static const struct handle_row handle_rows[] = {
	{ "no chunks" },
	{ "a Read chunk", READ_AT(40, 8, 8), .handle = 2 },
	{ "a Write chunk", .num_writes = 1, .write = { CHUNK(8, 8) },
	  .handle = 2 },
	{ "a Reply chunk", .reply = CHUNK(8), .handle = 1 },
	{ "the last chunk, of all", READ_AT(40, 8), 1, { CHUNK(8) }, CHUNK(8),
	  .handle = 3 },
	{ "the Write chunk rather than the Read chunk", READ_AT(40, 8), 1, { CHUNK(8) },
	  .handle = 2 },
	{ "an empty Write chunk has none", READ_AT(40, 8), 1, { EMPTY },
	  .handle = 1 },
	{ "a segment of no octets is passed over", .num_writes = 1,
	  .write = { CHUNK(0, 8, 0) }, .handle = 2 },
	{ "chunks of no octets have none", READ_AT(40, 0), 1, { CHUNK(0, 0) },
	  CHUNK(0) },
};

KUNIT_ARRAY_PARAM_DESC(handle, handle_rows, name);

static void test_handle(struct kunit *test)
{
	const struct handle_row *row = test->param_value;
	struct fixture *f = test->priv;
	u32 handle = 0;

	deliver_call(test, RPCRDMA_VERSION_ONE, &row->read, row->write,
		     row->num_writes, &row->reply);
	KUNIT_EXPECT_EQ(test, rpcrdma_wire_choose_handle(&f->msg, true, &handle),
			row->handle != 0);
	KUNIT_EXPECT_EQ(test, handle, row->handle);
}

static struct kunit_case handle_cases[] = {
	KUNIT_CASE_PARAM(test_handle, handle_gen_params),
	{}
};

static struct kunit_suite handle_suite = {
	.name = "rpcrdma_handle",
	.init = server_init,
	.test_cases = handle_cases,
};

kunit_test_suites(&reply_suite, &handle_suite);
