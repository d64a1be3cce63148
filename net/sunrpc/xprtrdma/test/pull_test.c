// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of server/: where nfsd finds the arguments of a Call, which pieces are
 * pulled, and how much a requester may ask for. A copy of pull.c is compiled here, with
 * functions of this file in the place of those that make chains and post them.
 */
#include "server_test.h"

/* The names of the copy */
#define svcrdma_pull_refused		pull_test_refused
#define svcrdma_pull_continue		pull_test_continue
#define svcrdma_pull_finish		pull_test_finish
#define svcrdma_pull_inline		pull_test_inline

#include "../server/server_private.h"

struct pull_row {
	const char *name;
	enum svcrdma_args args;	/* SVCRDMA_ARGS_INLINE: nothing to pull */
	u32 payload;		/* zero: the message is in a chunk */
	struct chunk_row read[CHUNKS];
	u32 len;
	const char *pieces;
};

#define INLINE_ARGS	SVCRDMA_ARGS_INLINE
#define WRITE_ARGS	SVCRDMA_ARGS_WRITE
#define STREAM_ARGS	SVCRDMA_ARGS_STREAM

static const struct pull_row pull_rows[] = {
	{
		"no chunk", INLINE_ARGS, 100, {}, 0, ""
	}, {
		"a chunk of no octets", INLINE_ARGS, 100, { READ_AT(60, 0) }, 0, ""
	}, {
		"the data of a WRITE, and more", WRITE_ARGS, 100, { READ_AT(60, 4096) },
		4136, "h1+0@0:4096 i+60@4096:40 "
	}, {
		"at the end of the message", WRITE_ARGS, 100, { READ_AT(100, 4096) },
		4096, "h1+0@0:4096 "
	}, {
		"data without its padding", WRITE_ARGS, 100, { READ_AT(60, 4093) },
		4136, "h1+0@0:4093 0@4093:3 i+60@4096:40 "
	}, {
		"segments, some of them empty", WRITE_ARGS, 100,
		{ READ_AT(100, 0, 1000, 0, 26) }, 1028,
		"h2+0@0:1000 h4+0@1000:26 0@1026:2 "
	}, {
		"one chunk as a byte stream", STREAM_ARGS, 100, { READ_AT(60, 4093) },
		4196, "i+0@0:60 h1+0@60:4093 0@4153:3 i+60@4156:40 "
	}, {
		"two chunks", STREAM_ARGS, 100, { READ_AT(40, 10), READ_AT(80, 4) }, 116,
		"i+0@0:40 h1+0@40:10 0@50:2 i+40@52:28 h2+0@80:4 i+68@84:32 "
	}, {
		"two chunks, side by side", STREAM_ARGS, 100,
		{ READ_AT(40, 8), READ_AT(48, 8) }, 116,
		"i+0@0:40 h1+0@40:8 h2+0@48:8 i+40@56:60 "
	}, {
		"one of two chunks is empty", STREAM_ARGS, 100,
		{ READ_AT(40, 0), READ_AT(48, 8) }, 108,
		"i+0@0:40 i+40@40:8 h2+0@48:8 i+48@56:52 "
	}, {
		"a whole Call", STREAM_ARGS, 0, { READ_AT(0, 5000) }, 5000,
		"h1+0@0:5000 "
	}, {
		"a whole Call of odd length", STREAM_ARGS, 0, { READ_AT(0, 30, 15) }, 45,
		"h1+0@0:30 h2+0@30:15 "
	}, {
		"a whole Call around a chunk", STREAM_ARGS, 0,
		{ READ_AT(0, 60, 40, 8), READ_AT(80, 9) }, 120,
		"h1+0@0:60 h2+0@60:20 h4+0@80:9 0@89:3 h2+20@92:20 h3+0@112:8 "
	}, {
		"a whole Call around chunks", STREAM_ARGS, 0,
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

	rpcrdma_wire_init_call(&f->made, RPCRDMA_VERSION_ONE, XID, 1);
	f->handles = 0;
	if (!payload)
		f->made.proc = RPCRDMA_NOMSG;
	for (i = 0; i < CHUNKS && read[i].count; i++)
		add_chunk(test, rpcrdma_wire_add_read(&f->made,
						      read[i].position),
			  &read[i]);
	deliver(test, RPCRDMA_SERVER_END, payload);
}

static void test_pull(struct kunit *test)
{
	const struct pull_row *row = test->param_value;
	struct fixture *f = test->priv;

	deliver_reads(test, row->payload, row->read);
	KUNIT_ASSERT_EQ(test, svcrdma_pull_needed(&f->msg), row->len != 0);
	KUNIT_EXPECT_EQ(test, svcrdma_args_len(&f->msg, row->args), row->len);
	if (!row->len)
		return;
	KUNIT_EXPECT_EQ(test, 0, svcrdma_args_walk(&f->msg, row->args, 0,
						   note_piece, f));
	KUNIT_EXPECT_TRUE_MSG(test, !strcmp(f->pieces, row->pieces),
			      "have %s", f->pieces);
}

static int check_order(void *data, const struct svcrdma_piece *piece)
{
	u32 *at = data;

	if (piece->at != *at || !piece->octets)
		return -EINVAL;
	if (piece->kind == SVCRDMA_PIECE_CHUNK &&
	    piece->octets > piece->segment->length - piece->skip)
		return -ERANGE;
	*at += piece->octets;
	return 0;
}

/* Where each octet that is pulled comes from */
struct origin {
	enum svcrdma_piece_kind kind;
	u32 handle;
	u32 skip;
};

struct origins {
	struct origin octet[1024];
	u32 len;
};

static int note_origin(void *data, const struct svcrdma_piece *piece)
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

/* A walk that starts at any octet visits the same octets as a whole walk. */
static void test_pull_continues(struct kunit *test)
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
		len = svcrdma_args_len(&f->msg, STREAM_ARGS);
		whole->len = 0;
		svcrdma_args_walk(&f->msg, STREAM_ARGS, 0, note_origin, whole);
		KUNIT_ASSERT_EQ(test, whole->len, len);
		for (from = 0; from <= len; from++) {
			rest->len = from;
			svcrdma_args_walk(&f->msg, STREAM_ARGS, from,
					  note_origin, rest);
			KUNIT_ASSERT_EQ(test, rest->len, len);
			KUNIT_EXPECT_EQ(test, 0,
					memcmp(&whole->octet[from],
					       &rest->octet[from],
					       (len - from) *
					       sizeof(whole->octet[0])));
		}
	}
}

/* For any chunks: no gap, no overlap, nothing beyond a segment */
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
		KUNIT_ASSERT_TRUE(test, svcrdma_pull_needed(&f->msg));
		at = 0;
		KUNIT_ASSERT_EQ(test, 0,
				svcrdma_args_walk(&f->msg, STREAM_ARGS, 0,
						  check_order, &at));
		KUNIT_ASSERT_EQ(test, at,
				svcrdma_args_len(&f->msg, STREAM_ARGS));
	}
}

static int stop_at_once(void *data, const struct svcrdma_piece *piece)
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
	KUNIT_EXPECT_EQ(test, -ENOTCONN,
			svcrdma_args_walk(&f->msg, STREAM_ARGS, 0,
					  stop_at_once, &calls));
	KUNIT_EXPECT_EQ(test, calls, 1);
}

/* A Call up to its arguments. Only a part of credential and verifier is filled in. */
struct args_row {
	const char *name;
	struct {
		u32 program, version, procedure;
	} call;
	struct {
		u32 flavor, cred_len, gss_proc, gss_service, verf_len;
		u32 gss_handle_len;
	} auth;
	u32 payload;		/* zero: the message is in a chunk */
	struct chunk_row read[CHUNKS];
	enum svcrdma_args args;
};

#define NFS3(procedure)		{ 100003, 3, procedure }
#define COMPOUND		{ 100003, 4, 1 }
#define SYS			{ 1, 20 }
#define GSS(proc, service)	{ 6, 20, proc, service, 28 }
#define LONG_CALL		(PAGE_SIZE + 4)

static const struct args_row args_rows[] = {
	{ "inline", NFS3(7), SYS, 4096, {}, INLINE_ARGS },
	{ "much inline", NFS3(7), SYS, LONG_CALL, {}, INLINE_ARGS },
	{ "RPCSEC_GSS, inline", NFS3(7), GSS(0, 2), PAGE_SIZE, {}, INLINE_ARGS },
	{ "krb5, much inline", NFS3(7), GSS(0, 1), LONG_CALL, {}, INLINE_ARGS },
	{ "krb5i, much inline", NFS3(7), GSS(0, 2), LONG_CALL, {}, STREAM_ARGS },
	{ "krb5p, much inline", NFS3(7), GSS(0, 3), LONG_CALL, {}, STREAM_ARGS },
	{ "a long token", NFS3(0), GSS(1, 1), LONG_CALL, {}, STREAM_ARGS },
	{ "a credential too long", NFS3(7), { 1, 404 }, LONG_CALL, {}, STREAM_ARGS },
	{ "a credential beyond any end", NFS3(7), { 1, U32_MAX }, LONG_CALL, {}, STREAM_ARGS },
	{ "a verifier too long", NFS3(7), { 1, 20, 0, 0, 404 }, LONG_CALL, {}, STREAM_ARGS },
	{ "WRITE", NFS3(7), SYS, 100, { READ_AT(100, 4096) }, WRITE_ARGS },
	{ "COMPOUND", COMPOUND, SYS, 140, { READ_AT(100, 4096) }, WRITE_ARGS },
	{ "krb5", NFS3(7), GSS(0, 1), 140, { READ_AT(140, 4096) }, WRITE_ARGS },
	{ "krb5i", NFS3(7), GSS(0, 2), 140, { READ_AT(140, 4096) }, STREAM_ARGS },
	{ "krb5p", NFS3(7), GSS(0, 3), 140, { READ_AT(140, 4096) }, STREAM_ARGS },
	{ "SYMLINK", NFS3(10), SYS, 100, { READ_AT(100, 4096) }, STREAM_ARGS },
	{ "another program", { 100227, 3, 7 }, SYS, 100, { READ_AT(100, 4096) }, STREAM_ARGS },
	{ "all arguments", NFS3(7), SYS, 100, { READ_AT(60, 4096) }, WRITE_ARGS },
	{ "no credential", NFS3(7), { 0 }, 100, { READ_AT(40, 4096) }, WRITE_ARGS },
	{ "the longest header", NFS3(7), { 1, 400, 0, 0, 400 }, 900, { READ_AT(840, 4096) },
	  WRITE_ARGS },
	{ "nothing after the flavor", NFS3(7), SYS, 28, { READ_AT(28, 4096) }, STREAM_ARGS },
	{ "part of a credential", NFS3(7), SYS, 40, { READ_AT(40, 4096) }, STREAM_ARGS },
	{ "the end of the verifier", NFS3(7), SYS, 100, { READ_AT(56, 4) }, STREAM_ARGS },
	{ "a credential", NFS3(7), SYS, 100, { READ_AT(32, 20) }, STREAM_ARGS },
	{ "the procedure", NFS3(7), SYS, 100, { READ_AT(20, 4) }, STREAM_ARGS },
	{ "part of RPCSEC_GSS's credential", NFS3(7), GSS(0, 1), 140,
	  { READ_AT(40, 4) }, STREAM_ARGS },
	{ "two chunks", COMPOUND, SYS, 140, { READ_AT(100, 8), READ_AT(120, 8) },
	  STREAM_ARGS },
	{ "a Long Call", NFS3(7), SYS, 0, { READ_AT(0, 200) }, STREAM_ARGS },
};

KUNIT_ARRAY_PARAM_DESC(args, args_rows, name);

static __be32 *make_call(const struct args_row *row)
{
	static __be32 call[2 * PAGE_SIZE / sizeof(__be32)];
	u32 verf = 8 + min(XDR_QUADLEN(row->auth.cred_len), 101U);

	memset(call, 0, sizeof(call));
	call[3] = cpu_to_be32(row->call.program);
	call[4] = cpu_to_be32(row->call.version);
	call[5] = cpu_to_be32(row->call.procedure);
	call[6] = cpu_to_be32(row->auth.flavor);
	call[7] = cpu_to_be32(row->auth.cred_len);
	call[9] = cpu_to_be32(row->auth.gss_proc);
	call[11] = cpu_to_be32(row->auth.gss_service);
	call[12] = cpu_to_be32(row->auth.gss_handle_len);
	call[verf + 1] = cpu_to_be32(row->auth.verf_len);
	return call;
}

static void test_args(struct kunit *test)
{
	const struct args_row *row = test->param_value;
	struct fixture *f = test->priv;
	/* No more than what is inline, so that KASAN sees who looks beyond it */
	__be32 *call = kunit_kzalloc(test, row->payload, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, call);
	memcpy(call, make_call(row), row->payload);
	deliver_reads(test, row->payload, row->read);
	KUNIT_EXPECT_EQ(test, row->args, svcrdma_choose_args(&f->msg, call));
}

/* The shortest Call of each kind that RPCSEC_GSS may get */
struct cut_row {
	const char *name;
	struct args_row call;
	u32 octets;
};

static const struct cut_row cut_rows[] = {
	{ "no credential", { .call = NFS3(0) }, 40 },
	{ "AUTH_SYS", { .call = NFS3(0), .auth = SYS }, 60 },
	{ "a token", { .call = NFS3(0), .auth = { 6, 20, 1, 1, 0 } }, 64 },
	{ "more of a token", { .call = NFS3(0), .auth = { 6, 20, 2, 1, 0 } }, 64 },
	{ "krb5", { .call = NFS3(0), .auth = GSS(0, 1) }, 88 },
	{ "krb5i", { .call = NFS3(0), .auth = GSS(0, 2) }, 92 },
	{ "krb5p", { .call = NFS3(0), .auth = GSS(0, 3) }, 92 },
	{ "the end of a context", { .call = NFS3(0), .auth = GSS(3, 2) }, 88 },
};

KUNIT_ARRAY_PARAM_DESC(cut, cut_rows, name);

static void test_cut(struct kunit *test)
{
	const struct cut_row *row = test->param_value;
	const __be32 *call = make_call(&row->call);
	bool gss = row->call.auth.flavor == 6;

	KUNIT_EXPECT_FALSE(test, svcrdma_call_truncated(call, row->octets));
	KUNIT_EXPECT_FALSE(test, svcrdma_call_truncated(call, row->octets + 1));
	KUNIT_EXPECT_EQ(test, gss,
			svcrdma_call_truncated(call, row->octets - 1));
	KUNIT_EXPECT_EQ(test, gss, svcrdma_call_truncated(call, 32));
	KUNIT_EXPECT_FALSE(test, svcrdma_call_truncated(call, 31));
	KUNIT_EXPECT_EQ(test, gss, svcrdma_call_gss(call, 32));
	KUNIT_EXPECT_FALSE(test, svcrdma_call_gss(call, 31));
}

static void test_cut_credential(struct kunit *test)
{
	static const struct args_row none = { .auth = { 6, 12 } };
	static const struct args_row large = { .auth = { 6, 404, 0, 1 } };
	static const struct args_row verf = { .auth = { 6, 20, 0, 1, 404 } };
	static const struct args_row handle = {
		.auth = { 6, 24, 0, 1, 0, .gss_handle_len = U32_MAX - 2 }
	};
	static const struct args_row token = { .auth = { 6, 20, 1, 1, 0 } };
	__be32 *call;

	KUNIT_EXPECT_TRUE(test, svcrdma_call_truncated(make_call(&none), 4096));
	KUNIT_EXPECT_TRUE(test, svcrdma_call_truncated(make_call(&large),
						       4096));
	KUNIT_EXPECT_TRUE(test, svcrdma_call_truncated(make_call(&verf), 4096));
	KUNIT_EXPECT_TRUE(test, svcrdma_call_truncated(make_call(&handle),
						       4096));
	call = make_call(&token);
	call[15] = cpu_to_be32(U32_MAX - 3);
	KUNIT_EXPECT_FALSE(test, svcrdma_call_truncated(call, 4096));
	call[15] = cpu_to_be32(U32_MAX - 2);
	KUNIT_EXPECT_TRUE(test, svcrdma_call_truncated(call, 4096));
}

/* The data of a WRITE in chains */
#define CHAIN_LEN	1000U	/* octets that fit into a chain */
#define DATA_LEN	(2 * CHAIN_LEN + 298)

struct reads {
	struct svcrdma_service service;
	struct rpcrdma_conn conn;
	struct svcrdma_request request;
	struct svc_rqst rqst;
	int init_ret;
	int add_ret;
	int post_ret;
	u32 read;		/* octets in chains */
	unsigned int made;	/* chains */
	unsigned int posted;
	unsigned int destroyed;
	unsigned int put;
	unsigned int resumed;
	unsigned int closed;
	unsigned int wrong;
	bool pages;		/* the request has some */
};

static struct reads *r;		/* Tests run one at a time. */

static int chain_init(struct svcrdma_rw_chain *chain, enum dma_data_direction direction,
		      unsigned int rws, unsigned int sg)
{
	r->wrong += direction != DMA_FROM_DEVICE || !(current->flags & PF_MEMALLOC_NOIO);
	if (r->init_ret)
		return r->init_ret;
	chain->num_sg = 0;
	r->made++;
	return 0;
}

/* As many octets as fit, counted in num_sg */
static int chain_add(struct svcrdma_request *request, const struct xdr_buf *local, u32 at,
		     u32 octets, const struct rpcrdma_segment *segment, u32 skip)
{
	u32 part = min(octets, CHAIN_LEN - request->rw_chain.num_sg);

	if (r->add_ret)
		return r->add_ret;
	r->wrong += at != r->read || segment->offset + skip != at;
	r->wrong += part > segment->length - skip;
	request->rw_chain.num_sg += part;
	r->read += part;
	return part;
}

static int chain_post(struct svcrdma_request *request)
{
	r->posted += !r->post_ret;
	return r->post_ret;
}

static void chain_destroy(struct svcrdma_request *request)
{
	r->destroyed++;
	r->wrong += r->put || r->destroyed > r->made;
}

static bool conn_enter(struct rpcrdma_conn *conn)
{
	return true;
}

static void conn_leave(struct rpcrdma_conn *conn)
{
}

static bool pages_take_spares(struct svcrdma_request *request, struct svc_rqst *rqstp,
			      unsigned int num_pages)
{
	r->pages = true;
	return false;
}

static void pages_put_spares(struct svcrdma_request *request)
{
	r->pages = false;
}

static void request_put(struct svcrdma_request *request)
{
	r->put++;
}

static void request_resume(struct svcrdma_request *request)
{
	r->resumed++;
}

static void service_close(struct svcrdma_service *service)
{
	r->closed++;
}

#define rpcrdma_conn_enter		conn_enter
#define rpcrdma_conn_leave		conn_leave
#define svcrdma_pages_put_spares	pages_put_spares
#define svcrdma_pages_take_spares	pages_take_spares
#define svcrdma_request_put		request_put
#define svcrdma_request_resume		request_resume
#define svcrdma_rw_chain_init		chain_init
#define svcrdma_rw_chain_add		chain_add
#define svcrdma_rw_chain_post		chain_post
#define svcrdma_rw_chain_destroy	chain_destroy
#define svcrdma_service_close		service_close

#include "../server/pull.c"

/* What a server takes: RDMA Reads, octets of the longest Call, and pages */
struct limits {
	unsigned int reads;
	u32 len;
	unsigned int pages;
};

static bool allowed(struct kunit *test, enum svcrdma_args args, const struct chunk_row *read,
		    u32 payload, struct limits limits)
{
	struct reads *reads = kunit_kzalloc(test, sizeof(*reads), GFP_KERNEL);
	struct svc_serv *serv = kunit_kzalloc(test, sizeof(*serv), GFP_KERNEL);
	struct fixture *f = test->priv;

	KUNIT_ASSERT_NOT_NULL(test, reads);
	KUNIT_ASSERT_NOT_NULL(test, serv);
	deliver_reads(test, payload, read);
	reads->request.service = &reads->service;
	reads->service.conn = &reads->conn;
	reads->service.max_pages = limits.pages;
	reads->conn.read_depth = limits.reads;
	rpcrdma_compat_set_pages(&reads->rqst, NULL, limits.pages + 2);
	reads->rqst.rq_server = serv;
	serv->sv_max_mesg = limits.len;
	reads->request.msg = f->msg;
	reads->request.args = args;
	reads->request.args_len = svcrdma_args_len(&f->msg, args);
	return !svcrdma_pull_refused(&reads->request, &reads->rqst);
}

static void test_pull_limits(struct kunit *test)
{
	static const struct chunk_row one[CHUNKS] = { READ_AT(100, 4 * PAGE_SIZE) };
	static const struct chunk_row amid[CHUNKS] = { READ_AT(60, 4 * PAGE_SIZE) };
	static const struct chunk_row odd[CHUNKS] = {
		READ_AT(100, 4 * PAGE_SIZE - 1)
	};
	static const struct chunk_row all[CHUNKS] = { READ_AT(0, 4 * PAGE_SIZE) };
	static const struct chunk_row huge[CHUNKS] = {
		READ_AT(60, 0x7fffffff, 0x7fffff00)
	};
	static const struct chunk_row none[CHUNKS];
	const u32 len = 4 * PAGE_SIZE;

#define LIMITS(...)	((struct limits){ __VA_ARGS__ })
	KUNIT_EXPECT_TRUE(test, allowed(test, WRITE_ARGS, one, 100,
					LIMITS(1, len + 100, 4)));
	KUNIT_EXPECT_FALSE(test, allowed(test, WRITE_ARGS, one, 100,
					 LIMITS(1, len + 99, 4)));
	KUNIT_EXPECT_FALSE(test, allowed(test, WRITE_ARGS, one, 100,
					 LIMITS(1, len + 100, 3)));
	KUNIT_EXPECT_FALSE(test, allowed(test, WRITE_ARGS, one, 100,
					 LIMITS(0, len + 100, 4)));
	/* Padding counts, even if the chunk lacks it. */
	KUNIT_EXPECT_FALSE(test, allowed(test, WRITE_ARGS, odd, 100,
					 LIMITS(1, len + 99, 4)));
	/* The part before the data of a WRITE needs no pages, the part after it does. */
	KUNIT_EXPECT_FALSE(test, allowed(test, WRITE_ARGS, amid, 100,
					 LIMITS(1, len + 100, 4)));
	KUNIT_EXPECT_TRUE(test, allowed(test, WRITE_ARGS, amid, 100,
					LIMITS(1, len + 100, 5)));
	KUNIT_EXPECT_TRUE(test, allowed(test, STREAM_ARGS, all, 0, LIMITS(1, len, 4)));
	KUNIT_EXPECT_FALSE(test, allowed(test, STREAM_ARGS, all, 0, LIMITS(1, len, 3)));
	KUNIT_EXPECT_FALSE(test, allowed(test, WRITE_ARGS, huge, 100,
					 LIMITS(32, 1 << 20, 256)));
	/* A Call without Read chunks needs no RDMA Reads. */
	KUNIT_EXPECT_TRUE(test, allowed(test, STREAM_ARGS, none, 8192,
					LIMITS(0, 8192, 2)));
#undef LIMITS
}

/* A WRITE whose data has a second segment after @first octets */
static void reads_begin(struct kunit *test, u32 first)
{
	struct svcrdma_request *request;
	struct rpcrdma_chunk *chunk;
	struct rpcrdma_message *msg;

	r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r);
	r->service.conn = &r->conn;
	r->conn.max_chain = 1;
	spin_lock_init(&r->service.lock);
	INIT_LIST_HEAD(&r->service.read_waiters);
	mutex_init(&r->service.read_start);
	request = &r->request;
	request->service = &r->service;
	msg = &request->msg;
	rpcrdma_wire_init_call(msg, RPCRDMA_VERSION_ONE, XID, 1);
	chunk = rpcrdma_wire_add_read(msg, 100);
	KUNIT_ASSERT_NOT_NULL(test, chunk);
	KUNIT_ASSERT_EQ(test, rpcrdma_wire_add_segment(msg, chunk, 1, first, 0), 0);
	if (first < DATA_LEN)
		KUNIT_ASSERT_EQ(test, rpcrdma_wire_add_segment(msg, chunk, 2, DATA_LEN - first,
							       first), 0);
	msg->payload_len = 100;
	msg->stream_len = 100 + xdr_align_size(DATA_LEN);
	request->args = WRITE_ARGS;
	request->args_len = svcrdma_args_len(msg, WRITE_ARGS);
}

static void reads_done(int status)
{
	struct rpcrdma_chain *chain = &r->request.rw_chain.chain;

	chain->done(chain, status);
}

/* All octets are read once, whether a chain is full within a segment or where one ends. */
static void test_reads(struct kunit *test)
{
	static const u32 first[] = {
		1, CHAIN_LEN - 1, CHAIN_LEN, CHAIN_LEN + 1, 2 * CHAIN_LEN, DATA_LEN
	};
	unsigned int i, chains;

	for (i = 0; i < ARRAY_SIZE(first); i++) {
		reads_begin(test, first[i]);
		svcrdma_pull_continue(&r->request, &r->rqst);
		for (chains = 1; chains < 3; chains++) {
			KUNIT_ASSERT_EQ(test, r->posted, chains);
			reads_done(0);
			KUNIT_EXPECT_FALSE(test, svcrdma_pull_all_read(&r->request));
			svcrdma_pull_continue(&r->request, &r->rqst);
		}
		KUNIT_ASSERT_EQ(test, r->posted, 3);
		reads_done(0);
		KUNIT_EXPECT_TRUE(test, svcrdma_pull_all_read(&r->request));
		KUNIT_EXPECT_EQ(test, r->read, DATA_LEN);
		KUNIT_EXPECT_EQ(test, r->resumed, 3);
		KUNIT_EXPECT_EQ(test, r->made, 3);
		KUNIT_EXPECT_EQ(test, r->destroyed, 3);
		KUNIT_EXPECT_EQ(test, r->put, 0);
		KUNIT_EXPECT_EQ(test, r->closed, 0);
		KUNIT_EXPECT_EQ(test, r->wrong, 0);
	}
}

/* A step fails: the chain is undone, the request is put, and the connection is closed. */
static void expect_reads_fail(struct kunit *test)
{
	svcrdma_pull_continue(&r->request, &r->rqst);
	if (r->posted)
		reads_done(-EIO);
	else
		KUNIT_EXPECT_EQ(test, r->closed, 1);
	KUNIT_EXPECT_EQ(test, r->resumed, 0);
	KUNIT_EXPECT_EQ(test, r->destroyed, r->made);
	KUNIT_EXPECT_EQ(test, r->put, 1);
	KUNIT_EXPECT_EQ(test, r->wrong, 0);
}

static void test_reads_fail(struct kunit *test)
{
	reads_begin(test, DATA_LEN);
	r->init_ret = -ENOMEM;
	expect_reads_fail(test);
	reads_begin(test, DATA_LEN);
	r->add_ret = -EIO;
	expect_reads_fail(test);
	reads_begin(test, DATA_LEN);
	r->post_ret = -EIO;
	expect_reads_fail(test);
	reads_begin(test, DATA_LEN);
	expect_reads_fail(test);
}

/* No registration is left: the request waits for one, with pages only if it has read into some. */
static void expect_reads_wait(struct kunit *test, unsigned int posted)
{
	r->add_ret = -EAGAIN;
	svcrdma_pull_continue(&r->request, &r->rqst);
	KUNIT_EXPECT_PTR_EQ(test, r->service.read_waiters.next, &r->request.list);
	KUNIT_EXPECT_EQ(test, r->pages, posted);
	KUNIT_EXPECT_EQ(test, r->destroyed, r->made);
	KUNIT_EXPECT_EQ(test, r->posted, posted);
	KUNIT_EXPECT_EQ(test, r->put, 0);
	KUNIT_EXPECT_EQ(test, r->closed, 0);
}

static void test_reads_wait(struct kunit *test)
{
	reads_begin(test, DATA_LEN);
	expect_reads_wait(test, 0);
	reads_begin(test, DATA_LEN);
	svcrdma_pull_continue(&r->request, &r->rqst);
	reads_done(0);
	expect_reads_wait(test, 1);
}

static struct kunit_case pull_cases[] = {
	KUNIT_CASE_PARAM(test_pull, pull_gen_params),
	KUNIT_CASE(test_pull_continues),
	KUNIT_CASE(test_pull_is_complete),
	KUNIT_CASE(test_pull_stops),
	KUNIT_CASE(test_pull_limits),
	KUNIT_CASE_PARAM(test_args, args_gen_params),
	KUNIT_CASE_PARAM(test_cut, cut_gen_params),
	KUNIT_CASE(test_cut_credential),
	KUNIT_CASE(test_reads),
	KUNIT_CASE(test_reads_fail),
	KUNIT_CASE(test_reads_wait),
	{}
};

static struct kunit_suite pull_suite = {
	.name = "rpcrdma_pull",
	.init = server_init,
	.test_cases = pull_cases,
};

kunit_test_suites(&pull_suite);
