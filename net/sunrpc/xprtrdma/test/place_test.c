// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/: where a Reply is placed, also one with wrong padding.
 */
#include <kunit/test.h>
#include <linux/sunrpc/msg_prot.h>

#include "../client/client_private.h"

#define XID		0x1badcafe
/* Octets of head, pages and tail together, at most */
#define BUF_LEN		64
#define UNTOUCHED	0xee

struct place_row {
	const char *name;
	unsigned int head;	/* octets for the Reply */
	unsigned int pages;
	unsigned int tail;
	u32 payload_len;	/* zero: none is inline */
	u32 written;
	int ret;		/* whole words */
	unsigned int placed;	/* octets of the Reply; zeros follow, up to @ret */
};

static const struct place_row place_rows[] = {
	{ "inline, in the head", 16, 8, 4, 12, 0, 12, 12 },
	{ "inline, in head and pages", 16, 8, 4, 20, 0, 20, 20 },
	{ "inline, all that fits", 16, 8, 4, 28, 0, 28, 28 },
	{ "inline, a word more than fits", 16, 8, 4, 32, 0, 28, 28 },
	{ "inline, much more than fits", 16, 8, 4, BUF_LEN, 0, 28, 28 },
	{ "inline, pages of odd length", 16, 3, 4, 24, 0, 20, 20 },
	{ "inline, no pages", 16, 0, 0, 20, 0, 16, 16 },
	{ "long", 16, 8, 4, 0, 24, 24, 24 },
	{ "long, all that fits", 16, 8, 4, 0, 28, 28, 28 },
	{ "long, in the shortest head", 8, 16, 4, 0, 28, 28, 28 },
	{ "long, two octets lack", 16, 8, 4, 0, 18, 20, 18 },
	{ "long, one octet lacks", 16, 8, 4, 0, 23, 24, 23 },
	{ "long, three lack, in pages and tail", 16, 3, 8, 0, 17, 20, 17 },
	{ "long, padding lacks and does not fit", 16, 8, 2, 0, 25, 24, 25 },
	{ "long, of odd length, all that fits", 16, 8, 3, 0, 27, 24, 27 },
};

KUNIT_ARRAY_PARAM_DESC(place, place_rows, name);

/* A request whose Reply has come */
struct place_fixture {
	struct xprt_rdma_client client;
	struct xprt_rdma_endpoint ep;
	struct rpcrdma_conn conn;
	struct xprt_rdma_request request;
	struct page *page;
	__be32 payload[BUF_LEN / sizeof(__be32)];
	u8 head[BUF_LEN];
	u8 tail[BUF_LEN];
};

static int place_init(struct kunit *test)
{
	struct place_fixture *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	unsigned int i;

	if (!f)
		return -ENOMEM;
	test->priv = f;
	f->page = alloc_page(GFP_KERNEL);
	if (!f->page)
		return -ENOMEM;
	memset(page_address(f->page), UNTOUCHED, PAGE_SIZE);
	memset(f->head, UNTOUCHED, sizeof(f->head));
	memset(f->tail, UNTOUCHED, sizeof(f->tail));
	for (i = 0; i < BUF_LEN; i++)
		((u8 *)f->payload)[i] = i + 1;
	f->payload[0] = cpu_to_be32(XID);
	f->payload[1] = rpc_reply;
	f->ep.client = &f->client;
	f->ep.conn = &f->conn;
	f->request.ep = &f->ep;
	f->request.rqst.rq_xid = cpu_to_be32(XID);
	return 0;
}

static void place_exit(struct kunit *test)
{
	struct place_fixture *f = test->priv;

	if (f && f->page)
		__free_page(f->page);
}

static struct xdr_buf *place_expect(struct kunit *test, const struct place_row *row)
{
	struct place_fixture *f = test->priv;
	struct rpc_rqst *rqst = &f->request.rqst;
	struct xdr_buf *buf = &rqst->rq_rcv_buf;

	rqst->rq_rbuffer = f->head;
	rqst->rq_rcvsize = row->head + row->tail;
	buf->head[0].iov_base = f->head;
	buf->head[0].iov_len = row->head;
	buf->pages = &f->page;
	buf->page_base = PAGE_SIZE - row->pages;
	buf->page_len = row->pages;
	buf->tail[0].iov_base = f->tail;
	buf->tail[0].iov_len = row->tail;
	buf->buflen = row->head + row->pages + row->tail;
	f->request.written = row->written;
	f->request.payload_len = row->payload_len;
	f->request.payload = row->payload_len ? f->payload : NULL;
	return buf;
}

static void test_place(struct kunit *test)
{
	const struct place_row *row = test->param_value;
	struct place_fixture *f = test->priv;
	struct xdr_buf *buf = place_expect(test, row);
	u8 octets[BUF_LEN], wanted[BUF_LEN];

	/* What the server has written to the Reply chunk */
	if (!row->payload_len)
		KUNIT_ASSERT_EQ(test, 0, write_bytes_to_xdr_buf(buf, 0, f->payload, row->written));
	KUNIT_ASSERT_EQ(test, row->ret, xprt_rdma_reply_place(&f->request));
	memset(wanted, UNTOUCHED, sizeof(wanted));
	memset(wanted, 0, row->ret);
	memcpy(wanted, f->payload, row->placed);
	KUNIT_ASSERT_EQ(test, 0, read_bytes_from_xdr_buf(buf, 0, octets, buf->buflen));
	KUNIT_EXPECT_EQ(test, 0, memcmp(octets, wanted, buf->buflen));
	KUNIT_EXPECT_EQ(test, UNTOUCHED, f->head[row->head]);
	KUNIT_EXPECT_EQ(test, UNTOUCHED, f->tail[row->tail]);
	KUNIT_EXPECT_EQ(test, UNTOUCHED, *((u8 *)page_address(f->page) + buf->page_base - 1));
}

/* All that is inline goes to the head, which takes the memory of the tail as well. */
static void test_place_around_data(struct kunit *test)
{
	static const struct place_row rows[] = {
		{ "data", 16, 8, 4, 12, 8, 20, 12 },
		{ "data without padding", 16, 8, 4, 20, 6, 28, 20 },
		{ "a word more than fits", 16, 8, 4, 24, 8, 28, 20 },
	};
	struct place_fixture *f = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct xdr_buf *buf = place_expect(test, &rows[i]);

		memset(f->head, UNTOUCHED, sizeof(f->head));
		KUNIT_EXPECT_EQ_MSG(test, rows[i].ret, xprt_rdma_reply_place(&f->request),
				    "%s", rows[i].name);
		KUNIT_EXPECT_EQ(test, rows[i].placed, buf->head[0].iov_len);
		KUNIT_EXPECT_EQ(test, 0, memcmp(f->head, f->payload, rows[i].placed));
		KUNIT_EXPECT_EQ(test, UNTOUCHED, f->head[rows[i].placed]);
	}
}

/* A server may have written anything. */
static void test_long_is_no_reply(struct kunit *test)
{
	static const struct place_row row = { "", 16, 8, 4, 0, 24, 24, 24 };
	struct place_fixture *f = test->priv;
	struct xdr_buf *buf = place_expect(test, &row);

	memcpy(f->head, f->payload, row.head);
	f->request.rqst.rq_xid = cpu_to_be32(XID + 1);
	KUNIT_EXPECT_EQ(test, -EIO, xprt_rdma_reply_place(&f->request));
	f->request.rqst.rq_xid = cpu_to_be32(XID);
	KUNIT_EXPECT_EQ(test, 24, xprt_rdma_reply_place(&f->request));
	f->head[7] = RPC_CALL;
	KUNIT_EXPECT_EQ(test, -EIO, xprt_rdma_reply_place(&f->request));
	f->head[7] = RPC_REPLY;
	buf->head[0].iov_len = 4;
	KUNIT_EXPECT_EQ(test, -EIO, xprt_rdma_reply_place(&f->request));
}

static struct kunit_case place_cases[] = {
	KUNIT_CASE_PARAM(test_place, place_gen_params),
	KUNIT_CASE(test_place_around_data),
	KUNIT_CASE(test_long_is_no_reply),
	{}
};

static struct kunit_suite place_suite = {
	.name = "rpcrdma_place",
	.init = place_init,
	.exit = place_exit,
	.test_cases = place_cases,
};

kunit_test_suites(&place_suite);
