// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suites of server/: what becomes of chunks, how a Reply travels, and
 * how many credits there are.
 */
#include <kunit/test.h>

#include "../server/form.h"
#include "../server/grant.h"

#define XID		cpu_to_be32(0x1badcafe)
#define BUF_LEN		16384
#define SEGMENTS	8
#define CHUNKS		4

/* What a chunk looks like in the tables; a handle is the segment's number. */
struct chunk_row {
	u32 position;
	unsigned int count;
	u32 length[SEGMENTS];
};

#define COUNT(...)	ARRAY_SIZE(((u32[]){ __VA_ARGS__ }))
#define READ_AT(at, ...) \
	{ .position = at, .count = COUNT(__VA_ARGS__), .length = { __VA_ARGS__ } }
#define CHUNK(...)	READ_AT(0, __VA_ARGS__)
#define EMPTY		{ }

/* Set up anew for each test */
struct fixture {
	struct rpcrdma_message made;
	struct rpcrdma_message msg;	/* as it arrives */
	struct rpcrdma_results results;
	struct rpcrdma_reply_form form;
	struct xdr_buf res;
	unsigned int handles;
	u32 at;
	char pieces[512];
	__be32 buf[BUF_LEN / sizeof(__be32)];
};

static int server_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, sizeof(struct fixture), GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

static void add_chunk(struct kunit *test, struct rpcrdma_chunk *chunk,
		      const struct chunk_row *row)
{
	struct fixture *f = test->priv;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, chunk);
	for (i = 0; i < row->count; i++)
		KUNIT_ASSERT_EQ(test, 0,
				rpcrdma_wire_add_segment(&f->made, chunk,
							 ++f->handles,
							 row->length[i], 4096));
}

/* Send what was made to the other end, with @payload octets of RPC message. */
static void deliver(struct kunit *test, enum rpcrdma_role to, u32 payload)
{
	struct fixture *f = test->priv;
	int len = rpcrdma_wire_encode(&f->made, f->buf, BUF_LEN);

	KUNIT_ASSERT_EQ(test, len > 0, true);
	if (payload) {
		f->buf[len / 4] = XID;
		f->buf[len / 4 + 1] =
			cpu_to_be32(to == RPCRDMA_RESPONDER ? RPCRDMA_CALL :
				    RPCRDMA_REPLY);
	}
	KUNIT_ASSERT_EQ(test, rpcrdma_wire_decode(&f->msg, f->buf, len + payload,
						  to, false), RPCRDMA_USE);
}

/* All pieces one behind the other: h2+8@100:50 is handle 2 from octet 8 on. */
static int note_piece(void *data, const struct rpcrdma_piece *piece)
{
	struct fixture *f = data;
	size_t len = strlen(f->pieces);
	char *to = f->pieces + len;

	len = sizeof(f->pieces) - len;
	switch (piece->kind) {
	case RPCRDMA_PIECE_CHUNK:
		snprintf(to, len, "h%u+%u@%u:%u ", piece->segment->handle,
			 piece->skip, piece->at, piece->octets);
		break;
	case RPCRDMA_PIECE_INLINE:
		snprintf(to, len, "i+%u@%u:%u ", piece->skip, piece->at,
			 piece->octets);
		break;
	case RPCRDMA_PIECE_PADDING:
		snprintf(to, len, "0@%u:%u ", piece->at, piece->octets);
		break;
	}
	return 0;
}

/* Pulling */

struct pull_row {
	const char *name;
	u32 payload;		/* none: the message is in a chunk */
	struct chunk_row read[CHUNKS];
	u32 len;		/* none: nothing to be pulled */
	const char *pieces;
};

static const struct pull_row pull_rows[] = {
	{
		"no chunk", 100, {}, 0, ""
	}, {
		"a chunk of no octets", 100, { READ_AT(60, 0) }, 0, ""
	}, {
		"the data of a WRITE", 100, { READ_AT(60, 4096) }, 4096,
		"h1+0@0:4096 "
	}, {
		"at the end of the message", 100, { READ_AT(100, 4096) }, 4096,
		"h1+0@0:4096 "
	}, {
		"data without its padding", 100, { READ_AT(60, 4093) }, 4096,
		"h1+0@0:4093 0@4093:3 "
	}, {
		"segments, some of them empty", 100, { READ_AT(60, 0, 1000, 0, 26) },
		1028, "h2+0@0:1000 h4+0@1000:26 0@1026:2 "
	}, {
		"two chunks", 100, { READ_AT(40, 10), READ_AT(80, 4) }, 116,
		"i+0@0:40 h1+0@40:10 0@50:2 i+40@52:28 h2+0@80:4 i+68@84:32 "
	}, {
		"two chunks, side by side", 100, { READ_AT(40, 8), READ_AT(48, 8) },
		116, "i+0@0:40 h1+0@40:8 h2+0@48:8 i+40@56:60 "
	}, {
		"one of two chunks is empty", 100, { READ_AT(40, 0), READ_AT(48, 8) },
		108, "i+0@0:40 i+40@40:8 h2+0@48:8 i+48@56:52 "
	}, {
		"a whole Call", 0, { READ_AT(0, 5000) }, 5000, "h1+0@0:5000 "
	}, {
		"a whole Call of odd length", 0, { READ_AT(0, 30, 15) }, 45,
		"h1+0@0:30 h2+0@30:15 "
	}, {
		"a whole Call around a chunk", 0, { READ_AT(0, 60, 40), READ_AT(80, 9) },
		112, "h1+0@0:60 h2+0@60:20 h3+0@80:9 0@89:3 h2+20@92:20 "
	}, {
		"a whole Call around chunks", 0,
		{ READ_AT(0, 100), READ_AT(40, 8, 8), READ_AT(60, 4), READ_AT(64, 4) }, 124,
		"h1+0@0:40 h2+0@40:8 h3+0@48:8 h1+40@56:4 h4+0@60:4 h5+0@64:4 h1+44@68:56 "
	},
};

static void pull_row_name(const struct pull_row *row, char *name)
{
	strscpy(name, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(pull, pull_rows, pull_row_name);

static void deliver_reads(struct kunit *test, u32 payload,
			  const struct chunk_row *read)
{
	struct fixture *f = test->priv;
	unsigned int i;

	rpcrdma_wire_init_call(&f->made, XID, 1);
	f->handles = 0;
	if (!payload)
		f->made.proc = RPCRDMA_NOMSG;
	for (i = 0; i < CHUNKS && read[i].count; i++)
		add_chunk(test, rpcrdma_wire_add_read(&f->made,
						      read[i].position),
			  &read[i]);
	deliver(test, RPCRDMA_RESPONDER, payload);
}

static void test_pull(struct kunit *test)
{
	const struct pull_row *row = test->param_value;
	struct fixture *f = test->priv;

	deliver_reads(test, row->payload, row->read);
	KUNIT_ASSERT_EQ(test, rpcrdma_pull_needed(&f->msg), row->len != 0);
	if (!row->len)
		return;
	KUNIT_EXPECT_EQ(test, rpcrdma_pull_len(&f->msg), row->len);
	KUNIT_EXPECT_EQ(test, rpcrdma_pull_walk(&f->msg, note_piece, f), 0);
	KUNIT_EXPECT_TRUE_MSG(test, !strcmp(f->pieces, row->pieces),
			      "have %s", f->pieces);
}

static int check_order(void *data, const struct rpcrdma_piece *piece)
{
	struct fixture *f = data;

	if (piece->at != f->at || !piece->octets)
		return -EINVAL;
	if (piece->kind == RPCRDMA_PIECE_CHUNK &&
	    piece->octets > piece->segment->length - piece->skip)
		return -ERANGE;
	f->at += piece->octets;
	return 0;
}

/* Whatever the chunks: no gap, no overlap, nothing beyond a segment */
static void test_pull_is_complete(struct kunit *test)
{
	struct fixture *f = test->priv;
	unsigned int round, i, n, k = 1;

	for (round = 0; round < 2000; round++) {
		u32 payload = round % 2 ? 200 : 0;
		struct chunk_row read[CHUNKS] = {};
		u32 position = 0;

		if (!payload)
			read[0] = (struct chunk_row)READ_AT(0, 80, 40, 80);
		for (i = !payload; i < CHUNKS; i++) {
			position += 8 + 4 * (k % 7);
			read[i].position = position;
			read[i].count = 1 + k % 3;
			for (n = 0; n < read[i].count; n++) {
				k = k * 1103515245 + 12345;
				read[i].length[n] = (k >> 16) % 12;
				position += read[i].length[n];
			}
			position = xdr_align_size(position);
		}
		deliver_reads(test, payload, read);
		if (!rpcrdma_pull_needed(&f->msg))
			continue;
		f->at = 0;
		KUNIT_ASSERT_EQ(test, rpcrdma_pull_walk(&f->msg, check_order,
							f), 0);
		KUNIT_ASSERT_EQ(test, f->at, rpcrdma_pull_len(&f->msg));
	}
}

static int stop_at_once(void *data, const struct rpcrdma_piece *piece)
{
	unsigned int *calls = data;

	++*calls;
	return -ENOTCONN;
}

static void test_pull_stops(struct kunit *test)
{
	static const struct chunk_row read[CHUNKS] = {
		READ_AT(40, 8, 8), READ_AT(80, 8),
	};
	struct fixture *f = test->priv;
	unsigned int calls = 0;

	deliver_reads(test, 100, read);
	KUNIT_EXPECT_EQ(test, rpcrdma_pull_walk(&f->msg, stop_at_once, &calls),
			-ENOTCONN);
	KUNIT_EXPECT_EQ(test, calls, 1);
}

static bool allowed(struct kunit *test, const struct chunk_row *read,
		    u32 payload, struct rpcrdma_pull_limits limits)
{
	struct fixture *f = test->priv;

	deliver_reads(test, payload, read);
	return rpcrdma_pull_allowed(&f->msg, &limits);
}

static void test_pull_limits(struct kunit *test)
{
	static const struct chunk_row one[CHUNKS] = { READ_AT(60, 4 * PAGE_SIZE) };
	static const struct chunk_row odd[CHUNKS] = {
		READ_AT(60, 4 * PAGE_SIZE - 1)
	};
	static const struct chunk_row all[CHUNKS] = { READ_AT(0, 4 * PAGE_SIZE) };
	static const struct chunk_row huge[CHUNKS] = {
		READ_AT(60, 0x7fffffff, 0x7fffff00)
	};
	const u32 len = 4 * PAGE_SIZE;

#define LIMITS(...)	((struct rpcrdma_pull_limits){ __VA_ARGS__ })
	KUNIT_EXPECT_TRUE(test, allowed(test, one, 100,
					LIMITS(1, len + 100, 4)));
	KUNIT_EXPECT_FALSE(test, allowed(test, one, 100,
					 LIMITS(1, len + 99, 4)));
	KUNIT_EXPECT_FALSE(test, allowed(test, one, 100,
					 LIMITS(1, len + 100, 3)));
	KUNIT_EXPECT_FALSE(test, allowed(test, one, 100,
					 LIMITS(0, len + 100, 4)));
	/* Padding counts, whether or not it travels. */
	KUNIT_EXPECT_FALSE(test, allowed(test, odd, 100,
					 LIMITS(1, len + 99, 4)));
	/* What surrounds a single chunk needs no pages, a whole Call does. */
	KUNIT_EXPECT_TRUE(test, allowed(test, all, 0, LIMITS(1, len, 4)));
	KUNIT_EXPECT_FALSE(test, allowed(test, all, 0, LIMITS(1, len, 3)));
	KUNIT_EXPECT_FALSE(test, allowed(test, huge, 100,
					 LIMITS(32, 1 << 20, 256)));
#undef LIMITS
}

static struct kunit_case pull_cases[] = {
	KUNIT_CASE_PARAM(test_pull, pull_gen_params),
	KUNIT_CASE(test_pull_is_complete),
	KUNIT_CASE(test_pull_stops),
	KUNIT_CASE(test_pull_limits),
	{}
};

static struct kunit_suite pull_suite = {
	.name = "rpcrdma_pull",
	.init = server_init,
	.test_cases = pull_cases,
};

/* Replying */

#define THRESHOLD	1024
#define HEADER		28

struct result_row {
	u32 offset;
	u32 length;
	u32 word;	/* where the length is, if not right before the data */
};

struct reply_row {
	const char *name;
	u32 len;			/* of the RPC message */
	struct chunk_row write[CHUNKS];
	unsigned int num_writes;
	struct chunk_row reply;
	unsigned int num_results;
	struct result_row result[CHUNKS];
	int ret;
	enum rpcrdma_proc proc;
	u32 left;			/* octets that no Write chunk takes */
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
		.ret = -EMSGSIZE
	}, {
		"a Reply chunk of no octets", .len = 1000, .reply = CHUNK(0),
		.ret = -EMSGSIZE
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
		"one result for two Write chunks", .len = 400,
		.write = { CHUNK(64), CHUNK(64) }, .num_writes = 2,
		.num_results = 1, .result = { { 100, 64 } }, .left = 336,
		.pieces = "h1+0@100:64 "
	}, {
		"an empty Write chunk keeps its result inline", .len = 400,
		.write = { EMPTY, CHUNK(64) }, .num_writes = 2,
		.num_results = 2, .result = { { 100, 64 }, { 200, 60 } },
		.left = 340, .pieces = "h1+0@200:60 "
	}, {
		"a Write chunk too small", .len = 400, .write = { CHUNK(63) },
		.num_writes = 1, .num_results = 1, .result = { { 100, 64 } },
		.ret = -EMSGSIZE
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
		"a result at the very start", .len = 400,
		.write = { CHUNK(64) }, .num_writes = 1, .num_results = 1,
		.result = { { 0, 64, 300 } }, .left = 400, .pieces = ""
	},
};

static void reply_row_name(const struct reply_row *row, char *name)
{
	strscpy(name, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(reply, reply_rows, reply_row_name);

static void deliver_call(struct kunit *test, const struct chunk_row *write,
			 unsigned int num_writes, const struct chunk_row *reply)
{
	struct fixture *f = test->priv;
	unsigned int i;

	rpcrdma_wire_init_call(&f->made, XID, 1);
	f->handles = 0;
	for (i = 0; i < num_writes; i++)
		add_chunk(test, rpcrdma_wire_add_write(&f->made), &write[i]);
	if (reply->count)
		add_chunk(test, rpcrdma_wire_add_reply(&f->made), reply);
	deliver(test, RPCRDMA_RESPONDER, 40);
}

/* The RPC message is where the Call has been. */
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
	for (i = 0; i < row->num_results; i++) {
		const struct result_row *result = &row->result[i];
		u32 word = result->word ?: result->offset - 4;

		f->buf[word / 4] = cpu_to_be32(result->length);
		f->results.result[i].offset = result->offset;
		f->results.result[i].length = result->length;
	}
}

static void test_reply(struct kunit *test)
{
	const struct reply_row *row = test->param_value;
	struct fixture *f = test->priv;

	deliver_call(test, row->write, row->num_writes, &row->reply);
	make_results(test, row);
	rpcrdma_wire_make_reply(&f->msg, RPCRDMA_MSG, 1);
	KUNIT_ASSERT_EQ(test, rpcrdma_reply_choose(&f->form, &f->msg,
						   &f->results, &f->res,
						   THRESHOLD), row->ret);
	if (row->ret)
		return;
	KUNIT_EXPECT_EQ(test, f->msg.proc, row->proc);
	KUNIT_EXPECT_EQ(test, f->form.len, row->left);
	KUNIT_EXPECT_EQ(test, rpcrdma_reply_walk(&f->form, &f->msg, &f->results,
						 note_piece, f), 0);
	KUNIT_EXPECT_TRUE_MSG(test, !strcmp(f->pieces, row->pieces),
			      "have %s", f->pieces);
}

static int add_octets(void *data, const struct rpcrdma_piece *piece)
{
	u32 *octets = data;

	*octets += piece->octets;
	return 0;
}

/*
 * All chunks go back to the requester, in order, each as long as what was
 * written to it; what goes inline fits.
 */
static void test_reply_returns_chunks(struct kunit *test)
{
	const struct reply_row *row = test->param_value;
	struct fixture *f = test->priv;
	u32 header, octets = 0, returned = 0;
	unsigned int i;

	if (row->ret)
		return;
	deliver_call(test, row->write, row->num_writes, &row->reply);
	make_results(test, row);
	rpcrdma_wire_make_reply(&f->msg, RPCRDMA_MSG, 1);
	KUNIT_ASSERT_EQ(test, rpcrdma_reply_choose(&f->form, &f->msg,
						   &f->results, &f->res,
						   THRESHOLD), 0);
	rpcrdma_reply_walk(&f->form, &f->msg, &f->results, add_octets, &octets);
	KUNIT_EXPECT_EQ(test, octets, f->form.written);
	header = rpcrdma_wire_header_len(&f->msg);
	if (f->msg.proc == RPCRDMA_MSG)
		header += f->form.len;
	KUNIT_EXPECT_TRUE(test, header <= THRESHOLD);

	f->made = f->msg;
	deliver(test, RPCRDMA_REQUESTER, row->proc == RPCRDMA_MSG ? 40 : 0);
	KUNIT_ASSERT_EQ(test, f->msg.num_writes, row->num_writes);
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

/* A header that leaves less than no room */
static void test_reply_header_too_long(struct kunit *test)
{
	static const struct chunk_row segments =
		CHUNK(4096, 4096, 4096, 4096, 4096, 4096, 4096, 4096);
	struct fixture *f = test->priv;
	unsigned int i;

	rpcrdma_wire_init_call(&f->made, XID, 1);
	for (i = 0; i < 8; i++)
		add_chunk(test, rpcrdma_wire_add_write(&f->made), &segments);
	add_chunk(test, rpcrdma_wire_add_reply(&f->made), &segments);
	deliver(test, RPCRDMA_RESPONDER, 40);
	f->res.head[0].iov_base = f->buf;
	f->res.head[0].iov_len = 100;
	f->res.len = 100;
	rpcrdma_wire_make_reply(&f->msg, RPCRDMA_MSG, 1);
	KUNIT_EXPECT_EQ(test, rpcrdma_reply_choose(&f->form, &f->msg,
						   &f->results, &f->res,
						   THRESHOLD), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, rpcrdma_reply_choose(&f->form, &f->msg,
						   &f->results, &f->res, 4096),
			0);
}

static struct kunit_case reply_cases[] = {
	KUNIT_CASE_PARAM(test_reply, reply_gen_params),
	KUNIT_CASE_PARAM(test_reply_returns_chunks, reply_gen_params),
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
	u32 handle;		/* none: zero */
};

static const struct handle_row handle_rows[] = {
	{ "no chunks" },
	{ "a Read chunk", READ_AT(40, 8, 8), .handle = 1 },
	{ "a Write chunk", .num_writes = 1, .write = { CHUNK(8, 8) },
	  .handle = 1 },
	{ "a Reply chunk", .reply = CHUNK(8), .handle = 1 },
	{ "the Write chunk, of all", READ_AT(40, 8), 1, { CHUNK(8) }, CHUNK(8),
	  .handle = 2 },
	{ "the Reply chunk rather than the Read chunk", READ_AT(40, 8),
	  .reply = CHUNK(8), .handle = 2 },
	{ "an empty Write chunk has none", READ_AT(40, 8), 1, { EMPTY },
	  .handle = 1 },
	{ "a segment of no octets is passed over", .num_writes = 1,
	  .write = { CHUNK(0, 0, 8) }, .handle = 3 },
	{ "chunks of no octets have none", READ_AT(40, 0), 1, { CHUNK(0, 0) },
	  CHUNK(0) },
};

static void handle_row_name(const struct handle_row *row, char *name)
{
	strscpy(name, row->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(handle, handle_rows, handle_row_name);

static void test_handle(struct kunit *test)
{
	const struct handle_row *row = test->param_value;
	struct fixture *f = test->priv;
	unsigned int i;
	u32 handle = 0;

	rpcrdma_wire_init_call(&f->made, XID, 1);
	if (row->read.count)
		add_chunk(test, rpcrdma_wire_add_read(&f->made,
						      row->read.position),
			  &row->read);
	for (i = 0; i < row->num_writes; i++)
		add_chunk(test, rpcrdma_wire_add_write(&f->made),
			  &row->write[i]);
	if (row->reply.count)
		add_chunk(test, rpcrdma_wire_add_reply(&f->made), &row->reply);
	deliver(test, RPCRDMA_RESPONDER, 40);
	KUNIT_EXPECT_EQ(test, rpcrdma_choose_handle(&f->msg, &handle),
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

/* Credits that are granted */

#define FIRST	4

/* So many Calls, @here of them at a time; return what is wanted then. */
static unsigned int calls(struct rpcrdma_grant *grant, unsigned int count,
			  unsigned int here, unsigned long now)
{
	while (count--)
		rpcrdma_grant_call(grant, here, now);
	return grant->wanted;
}

static struct rpcrdma_grant granted(unsigned int credits)
{
	struct rpcrdma_grant grant;

	rpcrdma_grant_init(&grant, credits);
	grant.since = 0;
	return grant;
}

static void test_grant_rises_when_used(struct kunit *test)
{
	struct rpcrdma_grant grant = granted(FIRST);

	KUNIT_EXPECT_EQ(test, calls(&grant, FIRST, 2, 1), FIRST);
	KUNIT_EXPECT_EQ(test, calls(&grant, 1, 2, 1), 2 * FIRST);
	/* Not granted before there are Receives */
	KUNIT_EXPECT_EQ(test, grant.granted, FIRST);
	rpcrdma_grant_raise(&grant, 2 * FIRST);
	KUNIT_EXPECT_EQ(test, grant.granted, 2 * FIRST);
	KUNIT_EXPECT_EQ(test, calls(&grant, 2 * FIRST, 2, 1), 2 * FIRST);
	KUNIT_EXPECT_EQ(test, calls(&grant, 1, 2, 1), 4 * FIRST);
}

/* However long the RPC server takes for each */
static void test_grant_rises_when_used_up(struct kunit *test)
{
	struct rpcrdma_grant grant = granted(FIRST);

	KUNIT_EXPECT_EQ(test, calls(&grant, 1, FIRST - 1, 1), FIRST);
	KUNIT_EXPECT_EQ(test, calls(&grant, 1, FIRST,
				    100 * RPCRDMA_GRANT_WINDOW), 2 * FIRST);
}

static void test_grant_stays_for_one_by_one(struct kunit *test)
{
	struct rpcrdma_grant grant = granted(FIRST);

	KUNIT_EXPECT_EQ(test, calls(&grant, 1000, 1, 1), FIRST);
}

static void test_grant_stays_for_the_slow(struct kunit *test)
{
	struct rpcrdma_grant grant = granted(FIRST);
	unsigned int i;

	for (i = 1; i < 1000; i++)
		KUNIT_EXPECT_EQ(test, calls(&grant, 1, FIRST - 1,
					    i * RPCRDMA_GRANT_WINDOW), FIRST);
	/* What was long ago does not count. */
	KUNIT_EXPECT_EQ(test, calls(&grant, FIRST, 2,
				    i * RPCRDMA_GRANT_WINDOW), FIRST);
}

static void test_grant_without_memory(struct kunit *test)
{
	struct rpcrdma_grant grant = granted(FIRST);

	calls(&grant, FIRST + 1, 2, 1);
	rpcrdma_grant_raise(&grant, 0);
	KUNIT_EXPECT_EQ(test, grant.granted, FIRST);
	KUNIT_EXPECT_EQ(test, grant.wanted, FIRST);
	/* It is asked for again, but not at once. */
	KUNIT_EXPECT_EQ(test, calls(&grant, FIRST, 2, 1), FIRST);
	KUNIT_EXPECT_EQ(test, calls(&grant, 1, 2, 1), 2 * FIRST);
}

static void test_grant_never_falls(struct kunit *test)
{
	struct rpcrdma_grant grant = granted(FIRST);

	rpcrdma_grant_raise(&grant, 64);
	rpcrdma_grant_raise(&grant, 8);
	KUNIT_EXPECT_EQ(test, grant.granted, 64);
}

static struct kunit_case grant_cases[] = {
	KUNIT_CASE(test_grant_rises_when_used),
	KUNIT_CASE(test_grant_rises_when_used_up),
	KUNIT_CASE(test_grant_stays_for_one_by_one),
	KUNIT_CASE(test_grant_stays_for_the_slow),
	KUNIT_CASE(test_grant_without_memory),
	KUNIT_CASE(test_grant_never_falls),
	{}
};

static struct kunit_suite grant_suite = {
	.name = "rpcrdma_grant",
	.test_cases = grant_cases,
};

kunit_test_suites(&pull_suite, &reply_suite, &handle_suite, &grant_suite);
