// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/call.c: how Calls travel. The server of these tests gets each Call by
 * what was sent and registered, and nothing else: which octets it can read and write, and when
 * the task gets its memory back. unsent_test.c has Calls that cannot be sent.
 */
#include <kunit/test.h>
#include <linux/sunrpc/auth.h>
#include <linux/sunrpc/gss_api.h>
#include <linux/wait_bit.h>

#include "fake_client.h"

#define XID		0x1badcafe
#define MRS		48
#define VALUE		0xa5	/* what the server writes */
#define OLD		0x5a	/* what was there before */
#define REPLY_LEN	32
#define SHORT		{ .head = 40 }

/* The forms of a Call and its Reply */

struct form_row {
	const char *name;
	u32 threshold;
	struct fake_sizes call;
	struct fake_sizes reply;
	enum xprt_rdma_call_form call_form;
	enum xprt_rdma_reply_form reply_form;
	unsigned int registered;
	u32 gathered;
};

/* What is at both ends of each limit, and what may share a registration */
static const struct form_row form_rows[] = {
	{ "as long as fits", 1024, { .head = 996 }, { .head = 996 } },
	{ "a Call that is too long", 1024, { .head = 1000 }, SHORT,
	  XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_INLINE, 1 },
	{ "a Reply that may be too long", 1024, SHORT, { .head = 1000 },
	  XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_CHUNK, 1 },
	{ "few pages", 1024, { .head = 100, .base = 10, .pages = 797, .tail = 7 }, SHORT },
	{ "WRITE", 1024, { .head = 200, .pages = 4097, .tail = 11, .ddp = true }, SHORT,
	  XPRT_RDMA_CALL_READ_CHUNK, XPRT_RDMA_REPLY_INLINE, 1 },
	{ "WRITE of one registration", 1024, { .head = 200, .pages = 4 * PAGE_SIZE, .ddp = true },
	  SHORT, XPRT_RDMA_CALL_READ_CHUNK, XPRT_RDMA_REPLY_INLINE, 1 },
	{ "WRITE of two", 1024, { .head = 200, .pages = 4 * PAGE_SIZE + 4, .ddp = true }, SHORT,
	  XPRT_RDMA_CALL_READ_CHUNK, XPRT_RDMA_REPLY_INLINE, 2 },
	{ "WRITE from within a page", 1024, { .head = 200, .base = PAGE_SIZE + 1,
	  .pages = 4 * PAGE_SIZE, .ddp = true }, SHORT,
	  XPRT_RDMA_CALL_READ_CHUNK, XPRT_RDMA_REPLY_INLINE, 2 },
	{ "all in a chunk", 1024, { .head = 1000, .base = PAGE_SIZE, .pages = 2 * PAGE_SIZE,
	  .tail = 200 }, SHORT, XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_INLINE, 3 },
	{ "head and pages share", 1024, { .head = PAGE_SIZE, .pages = 2 * PAGE_SIZE,
	  .tail = 200 }, SHORT, XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_INLINE, 2 },
	{ "READ", 1024, SHORT, { .head = 200, .pages = 5 * PAGE_SIZE, .tail = 4, .ddp = true },
	  XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_WRITE_CHUNK, 2 },
	{ "READ into the middle of pages", 1024, SHORT,
	  { .head = 200, .base = 5000, .pages = 4001, .tail = 4, .ddp = true },
	  XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_WRITE_CHUNK, 1 },
	{ "a Reply in a chunk", 1024, SHORT, { .head = 200, .base = 4, .pages = 8192, .tail = 300 },
	  XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_CHUNK, 3 },
	{ "two chunks", 1024, { .head = 200, .pages = 4097, .tail = 3, .ddp = true },
	  { .head = 200, .pages = 5 * PAGE_SIZE, .ddp = true },
	  XPRT_RDMA_CALL_READ_CHUNK, XPRT_RDMA_REPLY_WRITE_CHUNK, 3 },
	{ "both in chunks", 1024, { .head = 5000 }, { .head = 5000 },
	  XPRT_RDMA_CALL_LONG, XPRT_RDMA_REPLY_CHUNK, 2 },
	{ "too little to gather", 16384, { .head = 100, .pages = 8191, .tail = 1 }, SHORT },
	{ "enough to gather", 16384, { .head = 100, .pages = 8192, .tail = 4 }, SHORT,
	  .gathered = 8196 },
	{ "all elements of a Send", 16384, { .head = 100, .base = 4097, .pages = 8192, .tail = 4 },
	  SHORT, .gathered = 8196 },
	{ "a tail that crosses pages", 16384,
	  { .head = 100, .base = 1, .pages = 8192, .tail = 104 }, SHORT, .gathered = 8296 },
	{ "one element more", 16384, { .head = 100, .base = 1, .pages = 12288, .tail = 4 },
	  SHORT, .gathered = PAGE_SHIFT > 12 ? 12292 : 0 },
	{ "all of them for pages", 16384, { .head = 100, .pages = 16256 }, SHORT,
	  .gathered = 16256 },
	{ "gathered, with a chunk for the Reply", 16384, { .head = 100, .pages = 8192 },
	  { .head = 200, .pages = 5 * PAGE_SIZE, .ddp = true },
	  XPRT_RDMA_CALL_INLINE, XPRT_RDMA_REPLY_WRITE_CHUNK, 2, 8192 },
};

KUNIT_ARRAY_PARAM_DESC(form, form_rows, name);

static const struct rpcrdma_chunk *reply_chunk_of(const struct fake_client *t)
{
	if (t->msg.has_reply_chunk)
		return &t->msg.reply_chunk;
	return t->msg.num_writes ? &t->msg.write[0] : NULL;
}

static unsigned int count_octets(const void *memory, size_t len, u8 value)
{
	const u8 *octets = memory;
	unsigned int count = 0;
	size_t i;

	for (i = 0; i < len; i++)
		count += octets[i] == value;
	return count;
}

/* Of all the memory that is near a Reply */
static unsigned int count_reply_octets(const struct fake_rpc *rpc, u8 value)
{
	unsigned int i, count = count_octets(rpc->reply, sizeof(*rpc->reply), value);

	for (i = 0; i < FAKE_PAGES && rpc->reply_page[i]; i++)
		count += count_octets(page_address(rpc->reply_page[i]), PAGE_SIZE, value);
	return count;
}

static void age_reply_memory(struct fake_rpc *rpc)
{
	unsigned int i;

	memset(rpc->reply, OLD, sizeof(*rpc->reply));
	for (i = 0; i < FAKE_PAGES && rpc->reply_page[i]; i++)
		memset(page_address(rpc->reply_page[i]), OLD, PAGE_SIZE);
}

/* The chunk is the place of the pages, or of all of the Reply, and no other memory. */
static void expect_reply_place(struct kunit *test, struct fake_client *t, const char *name)
{
	const struct xdr_buf *buf = &t->rpc.request.rqst.rq_rcv_buf;
	const struct rpcrdma_chunk *chunk = reply_chunk_of(t);
	u32 first = t->msg.has_reply_chunk ? 0 : buf->head[0].iov_len;
	u32 len = t->msg.has_reply_chunk ? buf->buflen : buf->page_len;

	KUNIT_EXPECT_EQ_MSG(test, chunk->length, len, "%s", name);
	age_reply_memory(&t->rpc);
	KUNIT_EXPECT_TRUE_MSG(test, fake_server_writes(t, chunk, VALUE), "%s", name);
	KUNIT_EXPECT_EQ_MSG(test, count_reply_octets(&t->rpc, VALUE), len, "%s", name);
	KUNIT_EXPECT_EQ(test, read_bytes_from_xdr_buf(buf, first, t->stream, len), 0);
	KUNIT_EXPECT_EQ_MSG(test, count_octets(t->stream, len, VALUE), len, "%s", name);
}

/* What administrators see in mountstats and by rpcrdma stat */
static void expect_counted(struct kunit *test, struct fake_client *t, const struct form_row *row)
{
	const struct xprt_rdma_client_stats *stats = &t->client->stats;
	const struct rpcrdma_traffic *sent = &t->fake.conn->counters.sent;
	bool chunk = row->call_form != XPRT_RDMA_CALL_INLINE;
	u32 read = chunk ? t->msg.read[0].length : 0;
	u32 offered = reply_chunk_of(t) ? reply_chunk_of(t)->length : 0;
	unsigned int form = RPCRDMA_A_TRAFFIC_INLINE;

	if (chunk)
		form = row->call_form == XPRT_RDMA_CALL_LONG ? RPCRDMA_A_TRAFFIC_LONG_CALL :
							       RPCRDMA_A_TRAFFIC_READ_CHUNK;
	KUNIT_EXPECT_EQ(test, stats->read_segments, chunk ? t->msg.read[0].count : 0);
	KUNIT_EXPECT_EQ(test, stats->write_segments,
			t->msg.num_writes ? t->msg.write[0].count : 0);
	KUNIT_EXPECT_EQ(test, stats->reply_segments,
			t->msg.has_reply_chunk ? t->msg.reply_chunk.count : 0);
	KUNIT_EXPECT_EQ(test, stats->long_calls, form == RPCRDMA_A_TRAFFIC_LONG_CALL);
	KUNIT_EXPECT_EQ(test, stats->registered, read + offered);
	KUNIT_EXPECT_EQ(test, stats->pullup, t->msg.payload_len - row->gathered);
	KUNIT_EXPECT_EQ(test, sent->messages[form], 1);
	KUNIT_EXPECT_EQ(test, sent->inline_octets, t->msg.payload_len);
	KUNIT_EXPECT_EQ(test, sent->copied_octets, t->msg.payload_len - row->gathered);
	KUNIT_EXPECT_EQ(test, sent->placed_octets, read);
	KUNIT_EXPECT_EQ(test, t->rpc.request.rqst.rq_xmit_bytes_sent,
			t->rpc.request.rqst.rq_snd_buf.len);
}

/* The server answers with what it has written. Its RPC ends when it has no access any more. */
static void reply_and_expect_end(struct kunit *test, struct fake_client *t)
{
	struct rpc_rqst *rqst = &t->rpc.request.rqst;
	const __be32 begin[] = { rqst->rq_xid, rpc_reply };
	u32 payload = t->msg.has_reply_chunk ? 0 : REPLY_LEN;
	unsigned int registered = t->fake.registered;

	if (t->msg.has_reply_chunk) {
		memcpy(rqst->rq_rcv_buf.head[0].iov_base, begin, sizeof(begin));
		t->msg.reply_chunk.written = t->msg.reply_chunk.length;
	} else if (t->msg.num_writes) {
		t->msg.write[0].written = t->msg.write[0].length;
	}
	fake_complete(&t->fake);
	fake_server_replies(t, payload, 0);
	KUNIT_EXPECT_EQ(test, t->fake.invalidated, registered);
	KUNIT_EXPECT_EQ(test, fake_rpc_is_complete(&t->rpc), !registered);
	fake_complete(&t->fake);
	KUNIT_EXPECT_TRUE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_EQ(test, t->client->stats.bad_replies, 0);
	fake_expect_off_wire(test, t, MRS);
}

static void test_form(struct kunit *test)
{
	const struct form_row *row = test->param_value;
	struct fake_client *t = fake_client_begin_mrs(test, row->threshold, MRS);
	struct fake_rpc *rpc = &t->rpc;

	fake_rpc_begin(test, t, rpc, XID, &row->call, &row->reply);
	KUNIT_EXPECT_EQ(test, fake_rpc_send(rpc), 0);
	KUNIT_EXPECT_EQ(test, rpc->request.form.call, row->call_form);
	KUNIT_EXPECT_EQ(test, rpc->request.form.reply, row->reply_form);
	KUNIT_EXPECT_EQ(test, t->fake.posts, 1);
	KUNIT_EXPECT_EQ(test, t->fake.registered, row->registered);
	KUNIT_EXPECT_EQ(test, t->fake.sent_sges > 1, row->gathered > 0);
	KUNIT_EXPECT_LE(test, t->fake.sent_len, row->threshold);
	KUNIT_EXPECT_TRUE(test, fake_server_gets(t, rpc));
	KUNIT_EXPECT_EQ(test, t->msg.credits, FAKE_CREDITS);
	KUNIT_EXPECT_EQ(test, t->msg.inv_handle, 0);
	KUNIT_EXPECT_EQ(test, !!reply_chunk_of(t), row->reply_form != XPRT_RDMA_REPLY_INLINE);
	expect_counted(test, t, row);
	if (reply_chunk_of(t))
		expect_reply_place(test, t, row->name);
	reply_and_expect_end(test, t);
	fake_client_end(test, t);
}

/* Who may see the data apart from the rest of the message */

struct auth_row {
	const char *name;
	rpc_authflavor_t flavor;
	bool touches;		/* the data; RPCSEC_GSS does not always say */
	bool chunk;
};

static const struct auth_row auth_rows[] = {
	{ "sys", RPC_AUTH_UNIX, false, true },
	{ "krb5, which says nothing", RPC_AUTH_GSS_KRB5, true, true },
	{ "krb5i", RPC_AUTH_GSS_KRB5I, true, false },
	{ "krb5p", RPC_AUTH_GSS_KRB5P, true, false },
};

KUNIT_ARRAY_PARAM_DESC(auth, auth_rows, name);

/* What is signed or encrypted as a whole travels as a whole. */
static void test_auth(struct kunit *test)
{
	const struct fake_sizes data = { .head = 200, .pages = 4096, .ddp = true };
	const struct auth_row *row = test->param_value;
	struct fake_client *t = fake_client_begin_mrs(test, RPCRDMA_INLINE_MIN, MRS);

	fake_rpc_begin(test, t, &t->rpc, XID, &data, &data);
	t->rpc.auth.au_flavor = row->flavor;
	if (row->touches)
		set_bit(RPCAUTH_AUTH_DATATOUCH, &t->rpc.auth.au_flags);
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	KUNIT_EXPECT_TRUE(test, fake_server_gets(t, &t->rpc));
	KUNIT_EXPECT_EQ(test, t->msg.proc, row->chunk ? RPCRDMA_MSG : RPCRDMA_NOMSG);
	KUNIT_EXPECT_EQ(test, t->msg.num_writes, row->chunk);
	KUNIT_EXPECT_EQ(test, t->msg.has_reply_chunk, !row->chunk);
	fake_client_end(test, t);
}

/* Bounced pages need three segments where others need one, and that is one too many here. */
static void test_segments_of_bounced(struct kunit *test)
{
	const struct fake_sizes data = { .head = 928, .base = 100, .pages = 3 * PAGE_SIZE,
					 .ddp = true };
	struct fake_client *t = fake_client_begin_mrs(test, RPCRDMA_INLINE_MIN, MRS);

	fake_rpc_begin(test, t, &t->rpc, XID, &data, NULL);
	t->fake.conn->bounced = true;
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	KUNIT_EXPECT_EQ(test, t->fake.registered, 4);
	KUNIT_EXPECT_TRUE(test, fake_server_gets(t, &t->rpc));
	KUNIT_EXPECT_EQ(test, t->msg.proc, RPCRDMA_NOMSG);
	reply_and_expect_end(test, t);
	fake_client_end(test, t);
}

/* On the wire */

/* What a request was before does not count, and what is counted begins now. */
static void test_request_begins_anew(struct kunit *test)
{
	struct fake_client *t = fake_client_begin_mrs(test, RPCRDMA_INLINE_MIN, MRS);
	struct xprt_rdma_request *request = &t->rpc.request;
	ktime_t before = ktime_get();

	fake_rpc_begin(test, t, &t->rpc, XID, NULL, NULL);
	request->replied = true;
	request->close_on_wait = true;
	request->sent = jiffies - HZ;
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	KUNIT_EXPECT_TRUE(test, request->posted);
	KUNIT_EXPECT_FALSE(test, request->replied);
	KUNIT_EXPECT_FALSE(test, request->close_on_wait);
	KUNIT_EXPECT_TRUE(test, time_after(request->sent, jiffies - HZ / 2));
	KUNIT_EXPECT_FALSE(test, ktime_before(request->rqst.rq_xtime, before));
	KUNIT_EXPECT_PTR_EQ(test, request->ep, t->ep);
	KUNIT_EXPECT_EQ(test, kref_read(&t->ep->ref), 4);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->ep->credits.in_flight), 1);
	KUNIT_EXPECT_TRUE(test, fake_server_gets(t, &t->rpc));
	reply_and_expect_end(test, t);
	fake_client_end(test, t);
}

/* A Call with a chunk that needs none for its Reply forgets the chunk of the RPC before. */
static void test_reply_chunk_is_forgotten(struct kunit *test)
{
	const struct fake_sizes data = { .head = 200, .pages = 4096, .ddp = true };
	struct fake_client *t = fake_client_begin_mrs(test, RPCRDMA_INLINE_MIN, MRS);
	struct xprt_rdma_request *request = &t->rpc.request;

	fake_rpc_begin(test, t, &t->rpc, XID, &data, NULL);
	request->reply_mr = (void *)request;
	request->reply_segments = 17;
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	KUNIT_EXPECT_NULL(test, request->reply_mr);
	KUNIT_EXPECT_EQ(test, request->reply_segments, 0);
	fake_client_end(test, t);
}

static struct fake_client *begin_gathered(struct kunit *test)
{
	static const struct fake_sizes data = { .head = 100, .pages = 8192 };
	struct fake_client *t = fake_client_begin_mrs(test, 16384, MRS);

	fake_rpc_begin(test, t, &t->rpc, XID, &data, NULL);
	KUNIT_ASSERT_EQ(test, fake_rpc_send(&t->rpc), 0);
	KUNIT_ASSERT_TRUE(test, fake_server_gets(t, &t->rpc));
	KUNIT_EXPECT_TRUE(test, test_bit(XPRT_RDMA_GATHERING, &t->rpc.request.state));
	return t;
}

/* As long as the device may read the task's pages, the task does not get them back. */
static void test_reply_before_gathered(struct kunit *test)
{
	struct fake_client *t = begin_gathered(test);

	fake_server_replies(t, REPLY_LEN, 0);
	KUNIT_EXPECT_FALSE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_EQ(test, t->client->stats.waits_for_send, 1);
	fake_complete(&t->fake);
	KUNIT_EXPECT_TRUE(test, fake_rpc_is_complete(&t->rpc));
	fake_expect_off_wire(test, t, MRS);
	KUNIT_EXPECT_EQ(test, fake_busy_sends(&t->fake), 0);
	fake_client_end(test, t);
}

static void test_reply_after_gathered(struct kunit *test)
{
	struct fake_client *t = begin_gathered(test);

	fake_complete(&t->fake);
	KUNIT_EXPECT_FALSE(test, test_bit(XPRT_RDMA_GATHERING, &t->rpc.request.state));
	KUNIT_EXPECT_FALSE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_EQ(test, fake_busy_sends(&t->fake), 0);
	fake_server_replies(t, REPLY_LEN, 0);
	KUNIT_EXPECT_TRUE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_EQ(test, t->client->stats.waits_for_send, 0);
	fake_expect_off_wire(test, t, MRS);
	fake_client_end(test, t);
}

/* The device does not stop: the pages are not freed, whoever puts them. */
static void test_gathered_stuck(struct kunit *test)
{
	struct page *pages[] = {
		alloc_page(GFP_KERNEL), alloc_page(GFP_KERNEL), alloc_page(GFP_KERNEL)
	};
	struct fake_client *t = begin_gathered(test);
	struct xdr_buf *call = &t->rpc.request.rqst.rq_snd_buf;
	unsigned int i;

	/* The Call ends in the second one. The last one is that of the tail, as with encryption. */
	call->pages = pages;
	call->page_base = PAGE_SIZE - call->page_len / 2;
	call->tail[0].iov_base = page_address(pages[2]);
	call->tail[0].iov_len = 4;
	t->fake.conn->stuck = true;
	fake_complete(&t->fake);
	KUNIT_EXPECT_TRUE(test, t->client->stuck);
	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		KUNIT_ASSERT_NOT_NULL(test, pages[i]);
		KUNIT_EXPECT_EQ(test, page_ref_count(pages[i]), 2);
		put_page(pages[i]);
		put_page(pages[i]);
	}
	t->fake.conn->stuck = false;
	t->client->stuck = false;
	fake_client_end(test, t);
}

/* A task that was killed waits for its pages. */
struct waiter {
	struct wait_bit_queue_entry entry;
	bool woken;
};

static int waiter_wakes(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	struct waiter *waiter = container_of(entry, struct waiter, entry.wq_entry);
	struct wait_bit_key *bit = key;

	if (bit->flags != waiter->entry.key.flags || bit->bit_nr != waiter->entry.key.bit_nr)
		return 0;
	waiter->woken = true;
	return 1;
}

static void test_gathered_wakes(struct kunit *test)
{
	struct fake_client *t = begin_gathered(test);
	unsigned long *state = &t->rpc.request.state;
	struct waiter waiter = {
		.entry.key = __WAIT_BIT_KEY_INITIALIZER(state, XPRT_RDMA_GATHERING),
		.entry.wq_entry.func = waiter_wakes,
	};
	struct wait_queue_head *queue = bit_waitqueue(state, XPRT_RDMA_GATHERING);

	INIT_LIST_HEAD(&waiter.entry.wq_entry.entry);
	add_wait_queue(queue, &waiter.entry.wq_entry);
	fake_complete(&t->fake);
	KUNIT_EXPECT_TRUE(test, waiter.woken);
	remove_wait_queue(queue, &waiter.entry.wq_entry);
	fake_client_end(test, t);
}

/* Version 2 */

static struct fake_client *begin_version_2(struct kunit *test, bool remote_inv)
{
	struct fake_client *t;

	xprt_rdma_remote_invalidation = remote_inv;
	t = fake_client_begin(test, RPCRDMA_INLINE_MIN, RPCRDMA_VERSION_TWO);
	xprt_rdma_remote_invalidation = 1;
	fake_make_mrs(test, &t->fake, MRS);
	return t;
}

/* The Reply may invalidate the handle that the Call names: one of its own, if at all. */
static void test_handle_is_named(struct kunit *test)
{
	const struct fake_sizes data = { .head = 200, .pages = 4096, .ddp = true };
	struct fake_client *t = begin_version_2(test, true);

	fake_rpc_begin(test, t, &t->rpc, XID, &data, &data);
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	KUNIT_EXPECT_TRUE(test, fake_server_gets(t, &t->rpc));
	KUNIT_EXPECT_NE(test, t->msg.inv_handle, 0);
	KUNIT_EXPECT_EQ(test, t->msg.inv_handle,
			rpcrdma_chunk_segments(&t->msg, &t->msg.write[0])->handle);
	fake_client_end(test, t);

	t = begin_version_2(test, false);
	fake_rpc_begin(test, t, &t->rpc, XID, &data, &data);
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	KUNIT_EXPECT_TRUE(test, fake_server_gets(t, &t->rpc));
	KUNIT_EXPECT_EQ(test, t->msg.inv_handle, 0);
	fake_client_end(test, t);
}

/* The Reply to a backward Call */

static void test_backward_reply(struct kunit *test)
{
	struct fake_client *t = fake_client_begin_mrs(test, RPCRDMA_INLINE_MIN, MRS);
	struct xprt_rdma_backward *backward =
		kunit_kzalloc(test, sizeof(*backward), GFP_KERNEL);
	struct rpc_rqst *rqst;
	__be32 reply[8] = { cpu_to_be32(XID), cpu_to_be32(RPCRDMA_REPLY) };

	KUNIT_ASSERT_NOT_NULL(test, backward);
	rqst = &backward->rqst;
	set_bit(RPC_BC_PA_IN_USE, &rqst->rq_bc_pa_state);
	rqst->rq_xprt = &t->client->xprt;
	rqst->rq_xid = reply[0];
	xdr_buf_init(&rqst->rq_snd_buf, reply, sizeof(reply));
	rqst->rq_snd_buf.head[0].iov_len = sizeof(reply);
	rqst->rq_snd_buf.len = sizeof(reply);
	backward->ep = t->ep;
	backward->version = RPCRDMA_VERSION_ONE;
	KUNIT_EXPECT_EQ(test, xprt_rdma_call_send(rqst), 0);
	KUNIT_EXPECT_EQ(test, t->fake.sent_len, RPCRDMA_V1_HEADER_MIN + sizeof(reply));
	KUNIT_EXPECT_EQ(test, t->fake.conn->counters.sent.messages[RPCRDMA_A_TRAFFIC_BACKWARD], 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->ep->credits.in_flight), 0);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(t->fake.conn));

	/* It lacks what it says it has. The server learns by the end that it gets no Reply. */
	rqst->rq_snd_buf.len += 4;
	KUNIT_EXPECT_EQ(test, xprt_rdma_call_send(rqst), 0);
	KUNIT_EXPECT_EQ(test, t->fake.posts, 1);
	KUNIT_EXPECT_FALSE(test, rpcrdma_conn_established(t->fake.conn));
	fake_client_end(test, t);
}

static struct kunit_case call_cases[] = {
	KUNIT_CASE_PARAM(test_form, form_gen_params),
	KUNIT_CASE_PARAM(test_auth, auth_gen_params),
	KUNIT_CASE(test_segments_of_bounced),
	KUNIT_CASE(test_request_begins_anew),
	KUNIT_CASE(test_reply_chunk_is_forgotten),
	KUNIT_CASE(test_reply_before_gathered),
	KUNIT_CASE(test_reply_after_gathered),
	KUNIT_CASE(test_gathered_stuck),
	KUNIT_CASE(test_gathered_wakes),
	KUNIT_CASE(test_handle_is_named),
	KUNIT_CASE(test_backward_reply),
	{}
};

static struct kunit_suite call_suite = {
	.name = "rpcrdma_call",
	.exit = fake_client_exit,
	.test_cases = call_cases,
};

kunit_test_suites(&call_suite);
