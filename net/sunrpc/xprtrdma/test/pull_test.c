// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of server/: which pieces of a Call are pulled, where to, and how
 * much a requester may ask for.
 */
#include "server_test.h"

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
		"a whole Call around a chunk", 0, { READ_AT(0, 60, 40, 8), READ_AT(80, 9) },
		120, "h1+0@0:60 h2+0@60:20 h4+0@80:9 0@89:3 h2+20@92:20 h3+0@112:8 "
	}, {
		"a whole Call around chunks", 0,
		{ READ_AT(0, 100), READ_AT(40, 8, 8), READ_AT(60, 4), READ_AT(64, 4) }, 124,
		"h1+0@0:40 h2+0@40:8 h3+0@48:8 h1+40@56:4 h4+0@60:4 h5+0@64:4 h1+44@68:56 "
	},
};

KUNIT_ARRAY_PARAM_DESC(pull, pull_rows, name);

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
	KUNIT_EXPECT_EQ(test, rpcrdma_pull_walk(&f->msg, 0, note_piece, f), 0);
	KUNIT_EXPECT_TRUE_MSG(test, !strcmp(f->pieces, row->pieces),
			      "have %s", f->pieces);
}

static int check_order(void *data, const struct rpcrdma_piece *piece)
{
	u32 *at = data;

	if (piece->at != *at || !piece->octets)
		return -EINVAL;
	if (piece->kind == RPCRDMA_PIECE_CHUNK &&
	    piece->octets > piece->segment->length - piece->skip)
		return -ERANGE;
	*at += piece->octets;
	return 0;
}

/* Where octet by octet of what is pulled comes from */
struct origin {
	enum rpcrdma_piece_kind kind;
	u32 handle;
	u32 skip;
};

struct origins {
	struct origin octet[1024];
	u32 len;
};

static int note_origin(void *data, const struct rpcrdma_piece *piece)
{
	struct origins *origins = data;
	u32 i;

	for (i = 0; i < piece->octets; i++)
		origins->octet[origins->len++] = (struct origin){
			.kind = piece->kind,
			.handle = piece->segment ? piece->segment->handle : 0,
			.skip = piece->skip + i,
		};
	return 0;
}

/* Wherever a walk ended, another goes on there as if it had not. */
static void test_pull_goes_on(struct kunit *test)
{
	static const struct chunk_row read[CHUNKS] = {
		READ_AT(0, 60, 0, 40, 8), READ_AT(80, 9), READ_AT(120, 4, 3),
	};
	struct fixture *f = test->priv;
	struct origins *whole, *rest;
	u32 payload, from, len;

	whole = kunit_kzalloc(test, sizeof(*whole), GFP_KERNEL);
	rest = kunit_kzalloc(test, sizeof(*rest), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, whole);
	KUNIT_ASSERT_NOT_NULL(test, rest);
	for (payload = 0; payload <= 200; payload += 200) {
		deliver_reads(test, payload, payload ? read + 1 : read);
		len = rpcrdma_pull_len(&f->msg);
		whole->len = 0;
		rpcrdma_pull_walk(&f->msg, 0, note_origin, whole);
		KUNIT_ASSERT_EQ(test, whole->len, len);
		for (from = 0; from <= len; from++) {
			rest->len = from;
			rpcrdma_pull_walk(&f->msg, from, note_origin, rest);
			KUNIT_ASSERT_EQ(test, rest->len, len);
			KUNIT_EXPECT_EQ(test, 0,
					memcmp(&whole->octet[from],
					       &rest->octet[from],
					       (len - from) *
					       sizeof(whole->octet[0])));
		}
	}
}

/* Whatever the chunks: no gap, no overlap, nothing beyond a segment */
static void test_pull_is_complete(struct kunit *test)
{
	struct fixture *f = test->priv;
	unsigned int round, i, n, k = 1;

	for (round = 0; round < 2000; round++) {
		u32 payload = round % 2 ? 200 : 0;
		struct chunk_row read[CHUNKS] = {};
		u32 position = 0, at;

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
		at = 0;
		KUNIT_ASSERT_EQ(test, rpcrdma_pull_walk(&f->msg, 0,
							check_order, &at), 0);
		KUNIT_ASSERT_EQ(test, at, rpcrdma_pull_len(&f->msg));
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
	KUNIT_EXPECT_EQ(test, rpcrdma_pull_walk(&f->msg, 0, stop_at_once,
						&calls), -ENOTCONN);
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
	KUNIT_CASE(test_pull_goes_on),
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

kunit_test_suites(&pull_suite);
