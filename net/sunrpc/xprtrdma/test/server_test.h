/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the suites of server/ share: a Call with chunks as it arrives, and the
 * pieces that a walk visits.
 */
#ifndef RPCRDMA_TEST_SERVER_TEST_H
#define RPCRDMA_TEST_SERVER_TEST_H

#include <kunit/test.h>

#include "../server/form.h"

#define XID		cpu_to_be32(0x1badcafe)
#define BUF_LEN		16384
#define SEGMENTS	8
#define CHUNKS		4

/* A chunk in the tables. The handle of a segment is its number. */
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

/* Allocated for each test */
struct fixture {
	struct rpcrdma_message made;
	struct rpcrdma_message msg;	/* as it arrives */
	struct svcrdma_results results;
	struct svcrdma_reply_form form;
	struct xdr_buf res;
	unsigned int handles;
	char pieces[512];
	__be32 buf[BUF_LEN / sizeof(__be32)];
};

static inline int server_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, sizeof(struct fixture), GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

static inline void add_chunk(struct kunit *test, struct rpcrdma_chunk *chunk,
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

/* Encode f->made with @payload octets of RPC message, and decode it at the other end. */
static inline void deliver(struct kunit *test, enum rpcrdma_end to,
			   u32 payload)
{
	struct fixture *f = test->priv;
	int len = rpcrdma_wire_encode(&f->made, f->buf, BUF_LEN);

	KUNIT_ASSERT_EQ(test, len > 0, true);
	if (payload) {
		f->buf[len / 4] = XID;
		f->buf[len / 4 + 1] =
			cpu_to_be32(to == RPCRDMA_SERVER_END ? RPCRDMA_CALL :
				    RPCRDMA_REPLY);
	}
	KUNIT_ASSERT_EQ(test, rpcrdma_wire_decode(&f->msg, f->buf, len + payload,
						  to, false, RPCRDMA_VERSION_MAX),
			RPCRDMA_USE);
}

/*
 * Append a piece to f->pieces. "h2+8@100:50" is 50 octets for handle 2 from octet 8
 * on, at offset 100; "i" stands for inline, "0" for padding.
 */
static inline int note_piece(void *data, const struct svcrdma_piece *piece)
{
	struct fixture *f = data;
	size_t len = strlen(f->pieces);
	char *to = f->pieces + len;

	len = sizeof(f->pieces) - len;
	switch (piece->kind) {
	case SVCRDMA_PIECE_CHUNK:
		snprintf(to, len, "h%u+%u@%u:%u ", piece->segment->handle,
			 piece->skip, piece->at, piece->octets);
		break;
	case SVCRDMA_PIECE_INLINE:
		snprintf(to, len, "i+%u@%u:%u ", piece->skip, piece->at,
			 piece->octets);
		break;
	case SVCRDMA_PIECE_PADDING:
		snprintf(to, len, "0@%u:%u ", piece->at, piece->octets);
		break;
	}
	return 0;
}

#endif /* RPCRDMA_TEST_SERVER_TEST_H */
