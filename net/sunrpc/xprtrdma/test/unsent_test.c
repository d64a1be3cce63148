// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/call.c: Calls that cannot be sent, now or ever. At each step that may
 * lack something or fail, nothing is left of the Call, and whoever waits is woken.
 */
#include <kunit/test.h>
#include <linux/delay.h>

#include "fake_client.h"

#define XID		0x1badcafe
#define MRS		48
#define SHORT		{ .head = 40 }

struct unsent_row {
	u32 threshold;
	struct fake_sizes call;
	struct fake_sizes reply;
};

/* Calls that cannot be sent now */

/* What the test takes away from the Call */
struct lack {
	struct rpcrdma_mr *mr[MRS];
	struct rpcrdma_send *send[FAKE_CREDITS];
};

static struct lack *lack_of(struct kunit *test)
{
	return test->priv;
}

static int unsent_init(struct kunit *test)
{
	test->priv = kunit_kzalloc(test, sizeof(struct lack), GFP_KERNEL);
	return test->priv ? 0 : -ENOMEM;
}

static void lack_credit(struct kunit *test, struct fake_client *t)
{
	atomic_inc(&t->ep->credits.in_flight);
}

static void give_credit(struct kunit *test, struct fake_client *t)
{
	xprt_rdma_ep_credit_back(t->ep);
}

static void lack_send(struct kunit *test, struct fake_client *t)
{
	struct rpcrdma_conn *conn = t->fake.conn;
	unsigned int i;

	conn->depths.sends = 4;
	for (i = 0; i < 4; i++)
		lack_of(test)->send[i] = rpcrdma_send_get(conn);
	KUNIT_ASSERT_NOT_NULL(test, lack_of(test)->send[3]);
}

static void give_send(struct kunit *test, struct fake_client *t)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		rpcrdma_send_put(lack_of(test)->send[i]);
	fake_run_callbacks(&t->fake);
}

static void lack_mrs(struct kunit *test, struct fake_client *t, unsigned int left)
{
	unsigned int i;

	for (i = 0; i < MRS - left; i++) {
		lack_of(test)->mr[i] = rpcrdma_mr_get(t->fake.conn);
		KUNIT_ASSERT_NOT_NULL(test, lack_of(test)->mr[i]);
	}
}

static void lack_all_mrs(struct kunit *test, struct fake_client *t)
{
	lack_mrs(test, t, 0);
}

static void lack_second_mr(struct kunit *test, struct fake_client *t)
{
	lack_mrs(test, t, 1);
}

static void lack_last_mr(struct kunit *test, struct fake_client *t)
{
	lack_mrs(test, t, 2);
}

/* The Call waits until some have been made. These are one too many afterwards. */
static void give_mrs(struct kunit *test, struct fake_client *t)
{
	unsigned int i;

	fake_make_mrs(test, &t->fake, 1);
	for (i = 0; i < MRS && lack_of(test)->mr[i]; i++)
		rpcrdma_mr_put(lack_of(test)->mr[i]);
}

static void lack_queue(struct kunit *test, struct fake_client *t)
{
	t->fake.conn->sq.free = 0;
}

static void give_queue(struct kunit *test, struct fake_client *t)
{
	struct rpcrdma_conn *conn = t->fake.conn;

	KUNIT_EXPECT_TRUE(test, conn->sq_wanted);
	conn->sq.free = FAKE_SQ_SIZE;
	conn->ops->writable(conn);
}

/* Memory was bounced for the device, so the pages do not meet. */
static void lack_mapping(struct kunit *test, struct fake_client *t)
{
	t->fake.map_result = 1;
}

static void lack_second_mapping(struct kunit *test, struct fake_client *t)
{
	t->fake.map_result = 1;
	t->fake.maps_left = 1;
}

static void give_mapping(struct kunit *test, struct fake_client *t)
{
	t->fake.map_result = 0;
	t->fake.conn->bounced = false;
}

struct lack_row {
	const char *name;
	void (*take)(struct kunit *test, struct fake_client *t);
	void (*give)(struct kunit *test, struct fake_client *t);
	int ret;
	unsigned int what;
};

static const struct lack_row plain_lack_rows[] = {
	{ "a credit", lack_credit, give_credit, -EAGAIN, RPCRDMA_A_WAITS_CREDIT },
	{ "a Send", lack_send, give_send, -EAGAIN, RPCRDMA_A_WAITS_SEND_BUFFER },
	{ "space in the send queue", lack_queue, give_queue, -EAGAIN, RPCRDMA_A_WAITS_SEND_QUEUE },
};

static const struct lack_row lack_rows[] = {
	{ "a credit", lack_credit, give_credit, -EAGAIN, RPCRDMA_A_WAITS_CREDIT },
	{ "a Send", lack_send, give_send, -EAGAIN, RPCRDMA_A_WAITS_SEND_BUFFER },
	{ "space in the send queue", lack_queue, give_queue, -EAGAIN, RPCRDMA_A_WAITS_SEND_QUEUE },
	{ "registrations", lack_all_mrs, give_mrs, -EAGAIN, RPCRDMA_A_WAITS_REGISTRATION },
	{ "the second registration", lack_second_mr, give_mrs, -EAGAIN,
	  RPCRDMA_A_WAITS_REGISTRATION },
	{ "the last registration", lack_last_mr, give_mrs, -EAGAIN, RPCRDMA_A_WAITS_REGISTRATION },
	{ "a mapping", lack_mapping, give_mapping, -ENOBUFS, RPCRDMA_A_WAITS_MEMORY },
	{ "the second mapping", lack_second_mapping, give_mapping, -ENOBUFS,
	  RPCRDMA_A_WAITS_MEMORY },
};

KUNIT_ARRAY_PARAM_DESC(plain_lack, plain_lack_rows, name);
KUNIT_ARRAY_PARAM_DESC(lack, lack_rows, name);

/* As if the Call had never been tried */
static void expect_untouched(struct kunit *test, struct fake_client *t, unsigned int idle_mrs,
			     unsigned int busy_sends, unsigned int in_flight)
{
	const struct xprt_rdma_request *request = &t->rpc.request;

	KUNIT_EXPECT_EQ(test, t->fake.posts, 0);
	KUNIT_EXPECT_NULL(test, request->ep);
	KUNIT_EXPECT_FALSE(test, request->posted);
	KUNIT_EXPECT_EQ(test, request->state, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&request->invalidation.mrs));
	KUNIT_EXPECT_EQ(test, fake_idle_mrs(&t->fake), idle_mrs);
	KUNIT_EXPECT_EQ(test, fake_busy_sends(&t->fake), busy_sends);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->ep->credits.in_flight), in_flight);
	KUNIT_EXPECT_EQ(test, kref_read(&t->ep->ref), 3);
	KUNIT_EXPECT_EQ(test, request->rqst.rq_xmit_bytes_sent, 0);
	KUNIT_EXPECT_FALSE(test, fake_rpc_is_complete(&t->rpc));
}

/* A Call with two chunks, or one that is gathered, waits for what it lacks, and is woken. */
static void expect_lack(struct kunit *test, const struct unsent_row *form)
{
	const struct lack_row *row = test->param_value;
	struct fake_client *t = fake_client_begin_mrs(test, form->threshold, MRS);
	const unsigned long *state = &t->client->xprt.state;
	unsigned int mrs, sends, credits, i;

	fake_rpc_begin(test, t, &t->rpc, XID, &form->call, &form->reply);
	row->take(test, t);
	mrs = fake_idle_mrs(&t->fake);
	sends = fake_busy_sends(&t->fake);
	credits = atomic_read(&t->ep->credits.in_flight);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), row->ret);
		KUNIT_EXPECT_EQ(test, test_bit(XPRT_WRITE_SPACE, state), row->ret == -EAGAIN);
		expect_untouched(test, t, mrs, sends, credits);
		/* It was bounced once, which is known from then on. */
		t->fake.conn->bounced = false;
		t->fake.maps_left = row->take == lack_second_mapping;
	}
	KUNIT_EXPECT_EQ(test, t->fake.conn->counters.waits[row->what], 1);
	KUNIT_EXPECT_EQ(test, t->client->stats.no_send, row->take == lack_send ? 4 : 0);

	row->give(test, t);
	KUNIT_EXPECT_FALSE(test, test_bit(XPRT_WRITE_SPACE, state));
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	KUNIT_EXPECT_TRUE(test, fake_server_gets(t, &t->rpc));
	fake_client_end(test, t);
}

static void test_lack(struct kunit *test)
{
	static const struct unsent_row form = {
		.threshold = 1024,
		.call = { .head = 200, .pages = 2 * PAGE_SIZE, .ddp = true },
		.reply = { .head = 200, .pages = 8 * PAGE_SIZE, .ddp = true },
	};

	expect_lack(test, &form);
}

/* Its pages are mapped before it finds no space. */
static void test_lack_gathered(struct kunit *test)
{
	static const struct unsent_row form = {
		.threshold = 16384,
		.call = { .head = 100, .pages = 8192 },
		.reply = { .head = 200, .pages = 9 * PAGE_SIZE, .ddp = true },
	};

	expect_lack(test, &form);
}

/* A plain Call takes a way of its own. */
static void test_lack_plain(struct kunit *test)
{
	static const struct unsent_row form = {
		.threshold = 1024, .call = SHORT, .reply = SHORT,
	};

	expect_lack(test, &form);
}

/* What was missing has come back before the transport says that it waits. */
static void find_queue_at_second_time(struct fake_conn *fake)
{
	if (fake->maps_left == 1)
		fake->conn->sq.free = FAKE_SQ_SIZE;
}

static void test_back_before_waiting(struct kunit *test)
{
	const struct fake_sizes data = { .head = 200, .pages = 4096, .ddp = true };
	struct fake_client *t = fake_client_begin_mrs(test, RPCRDMA_INLINE_MIN, MRS);

	fake_rpc_begin(test, t, &t->rpc, XID, &data, NULL);
	lack_queue(test, t);
	t->fake.maps_left = 2;
	t->fake.mapping = find_queue_at_second_time;
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	KUNIT_EXPECT_EQ(test, t->fake.posts, 1);
	KUNIT_EXPECT_FALSE(test, test_bit(XPRT_WRITE_SPACE, &t->client->xprt.state));
	KUNIT_EXPECT_TRUE(test, fake_server_gets(t, &t->rpc));
	fake_client_end(test, t);
}

/* No event says that the device can make registrations again, so the client tries. */
static void test_registrations_come_later(struct kunit *test)
{
	const struct fake_sizes data = { .head = 200, .pages = 4096, .ddp = true };
	struct fake_client *t = fake_client_begin_mrs(test, RPCRDMA_INLINE_MIN, MRS);
	const unsigned long *state = &t->client->xprt.state;
	unsigned int i;

	fake_rpc_begin(test, t, &t->rpc, XID, &data, NULL);
	lack_all_mrs(test, t);
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), -EAGAIN);
	flush_delayed_work(&t->fake.conn->mr_work);
	t->fake.mrs_left = 1;
	for (i = 0; i < 250 && test_bit(XPRT_WRITE_SPACE, state); i++)
		msleep(20);
	KUNIT_EXPECT_FALSE(test, test_bit(XPRT_WRITE_SPACE, state));
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	give_mrs(test, t);
	fake_client_end(test, t);
}

/* Calls that can never be sent */

/* Its task fails, the next one does not, and nothing is left. */
static void expect_fails(struct kunit *test, struct fake_client *t)
{
	unsigned int sends = fake_busy_sends(&t->fake);

	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	KUNIT_EXPECT_TRUE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_EQ(test, t->fake.posts, 0);
	KUNIT_EXPECT_EQ(test, t->client->stats.failed, 1);
	KUNIT_EXPECT_EQ(test, t->fake.conn->counters.errors[RPCRDMA_A_ERRORS_NOT_SENT], 1);
	KUNIT_EXPECT_FALSE(test, test_bit(XPRT_WRITE_SPACE, &t->client->xprt.state));
	KUNIT_EXPECT_FALSE(test, test_bit(XPRT_CLOSE_WAIT, &t->client->xprt.state));
	KUNIT_EXPECT_EQ(test, fake_busy_sends(&t->fake), sends);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(t->fake.conn));
	fake_expect_off_wire(test, t, MRS);
}

/* Each has two pages, so that the device may map a part of it. */
static struct fake_client *begin_two_chunks(struct kunit *test)
{
	static const struct fake_sizes data = { .head = 200, .pages = 2 * PAGE_SIZE, .ddp = true };
	struct fake_client *t = fake_client_begin_mrs(test, RPCRDMA_INLINE_MIN, MRS);

	fake_rpc_begin(test, t, &t->rpc, XID, &data, &data);
	return t;
}

static void test_cannot_be_registered(struct kunit *test)
{
	struct fake_client *t = begin_two_chunks(test);

	t->fake.map_result = -EINVAL;
	t->fake.maps_left = 1;
	expect_fails(test, t);
	fake_client_end(test, t);
}

/* A registration that has no space for anything does not make a loop. */
static void test_registration_takes_nothing(struct kunit *test)
{
	struct fake_client *t = begin_two_chunks(test);
	struct rpcrdma_mr *mr = list_first_entry(&t->fake.conn->mrs.idle, struct rpcrdma_mr,
						 pooled.list);

	mr->max_sg = 0;
	expect_fails(test, t);
	mr->max_sg = FAKE_MR_PAGES;
	fake_client_end(test, t);
}

/* Mapping may fail for a while, but the Calls behind it do not wait for ever. */
static void test_mapping_fails_for_long(struct kunit *test)
{
	struct fake_client *t = begin_two_chunks(test);
	struct xprt_rdma_request *request = &t->rpc.request;

	t->fake.map_result = 1;
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), -ENOBUFS);
	KUNIT_EXPECT_NE(test, request->mapping_since, 0);
	KUNIT_EXPECT_TRUE(test, time_before_eq(request->mapping_since, jiffies));

	/* The first failure counts, not the last. */
	t->fake.conn->bounced = false;
	request->mapping_since = jiffies - 4 * HZ;
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), -ENOBUFS);
	t->fake.conn->bounced = false;
	request->mapping_since = jiffies - 5 * HZ;
	expect_fails(test, t);
	fake_client_end(test, t);
}

/* One that was mapped meanwhile, and lacked something else, has a while again. */
static void test_mapping_fails_again(struct kunit *test)
{
	struct fake_client *t = begin_two_chunks(test);
	struct xprt_rdma_request *request = &t->rpc.request;

	request->mapping_since = jiffies - 6 * HZ;
	lack_mrs(test, t, 1);
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), -EAGAIN);
	give_mrs(test, t);
	t->fake.map_result = 1;
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), -ENOBUFS);
	KUNIT_EXPECT_TRUE(test, time_after(request->mapping_since, jiffies - HZ));
	fake_client_end(test, t);
}

/*
 * What a header has space for: 41 segments of a Read chunk, one for each page here. That is
 * known before anything is taken.
 */
static void expect_segments(struct kunit *test, const struct fake_sizes *call, bool fits)
{
	struct fake_client *t = fake_client_begin_mrs(test, RPCRDMA_INLINE_MIN, MRS);

	fake_rpc_begin(test, t, &t->rpc, XID, call, NULL);
	t->ep->max_mr_pages = 1;
	lack_mrs(test, t, 0);
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), fits ? -EAGAIN : 0);
	KUNIT_EXPECT_EQ(test, t->client->stats.failed, !fits);
	give_mrs(test, t);
	fake_client_end(test, t);
}

static void test_segments(struct kunit *test)
{
	const u32 two = PAGE_SIZE + 904;	/* octets in two pages */
	const struct fake_sizes most = { .head = two, .pages = 38 * PAGE_SIZE, .tail = 100 };
	const struct fake_sizes head = { .head = 2 * PAGE_SIZE, .pages = 39 * PAGE_SIZE,
					 .tail = 100 };
	const struct fake_sizes tail = { .head = two, .pages = 38 * PAGE_SIZE, .tail = 104 };
	const struct fake_sizes base = { .head = two, .base = 4, .pages = 38 * PAGE_SIZE,
					 .tail = 100 };

	expect_segments(test, &most, true);
	expect_segments(test, &head, false);
	expect_segments(test, &tail, false);
	expect_segments(test, &base, false);
}

/* The length of the buffer counts, whatever the form says. */
static void expect_buffer(struct kunit *test, const struct fake_sizes *call, u32 size, bool fits)
{
	struct fake_client *t = fake_client_begin_mrs(test, RPCRDMA_INLINE_MIN, MRS);

	fake_rpc_begin(test, t, &t->rpc, XID, call, NULL);
	/* Of the Sends that are made from now on. Those that there are come later. */
	t->fake.conn->send_size = size;
	if (fits) {
		KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
		KUNIT_EXPECT_TRUE(test, fake_server_gets(t, &t->rpc));
	} else {
		expect_fails(test, t);
	}
	fake_client_end(test, t);
}

static void test_buffer(struct kunit *test)
{
	/* As many octets as fit if the error of the header, -EMSGSIZE, is taken for its length */
	const struct fake_sizes small = { .head = 100 };
	const struct fake_sizes data = { .head = 100, .pages = 4096, .ddp = true };
	const struct fake_sizes large = { .head = 2000 };

	expect_buffer(test, &small, 28 + 100, true);
	expect_buffer(test, &small, 28 + 96, false);
	expect_buffer(test, &small, 24, false);
	expect_buffer(test, &data, 28 + 24 + 100, true);
	expect_buffer(test, &data, 28 + 24 + 96, false);
	expect_buffer(test, &data, 28 + 20, false);
	expect_buffer(test, &large, 28 + 24, true);
	expect_buffer(test, &large, 28 + 20, false);
}

/* Connections that take nothing */

static void expect_not_sent(struct kunit *test, struct fake_client *t)
{
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, t->fake.posts, 0);
	KUNIT_EXPECT_FALSE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_EQ(test, t->client->stats.failed, 0);
	KUNIT_EXPECT_EQ(test, t->rpc.request.rqst.rq_xmit_bytes_sent, 0);
	KUNIT_EXPECT_NULL(test, t->rpc.request.ep);
	KUNIT_EXPECT_FALSE(test, test_bit(XPRT_WRITE_SPACE, &t->client->xprt.state));
}

static void test_not_connected(struct kunit *test)
{
	struct fake_client *t = fake_client_make(test, RPCRDMA_INLINE_MIN, RPCRDMA_VERSION_ONE);

	fake_rpc_begin(test, t, &t->rpc, XID, NULL, NULL);
	expect_not_sent(test, t);
	KUNIT_EXPECT_FALSE(test, test_bit(XPRT_CLOSE_WAIT, &t->client->xprt.state));
	fake_client_end(test, t);
}

/* sunrpc has to close the transport before it can connect again. */
static void test_connection_is_closing(struct kunit *test)
{
	struct fake_client *t = fake_client_begin_mrs(test, RPCRDMA_INLINE_MIN, MRS);

	fake_rpc_begin(test, t, &t->rpc, XID, NULL, NULL);
	t->fake.conn->state = RPCRDMA_STATE_CLOSING;
	expect_not_sent(test, t);
	KUNIT_EXPECT_TRUE(test, test_bit(XPRT_CLOSE_WAIT, &t->client->xprt.state));
	t->fake.conn->state = RPCRDMA_STATE_ESTABLISHED;
	fake_client_end(test, t);
}

/* The connection is still there, but a Call that was sent on it must not be sent again. */
static void test_transport_is_closing(struct kunit *test)
{
	struct fake_client *t = fake_client_begin_mrs(test, RPCRDMA_INLINE_MIN, MRS);

	fake_rpc_begin(test, t, &t->rpc, XID, NULL, NULL);
	set_bit(XPRT_CLOSE_WAIT, &t->client->xprt.state);
	expect_not_sent(test, t);
	fake_client_end(test, t);
}

/*
 * The device may have taken a part of the chain, so the Call stays on the wire until the
 * connection is closed.
 */
static void test_device_refuses(struct kunit *test)
{
	struct fake_client *t = begin_two_chunks(test);

	t->fake.post_error = -EIO;
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	KUNIT_EXPECT_FALSE(test, rpcrdma_conn_established(t->fake.conn));
	KUNIT_EXPECT_PTR_EQ(test, t->rpc.request.ep, t->ep);
	KUNIT_EXPECT_FALSE(test, list_empty(&t->rpc.request.invalidation.mrs));
	fake_client_end(test, t);
}

static struct kunit_case unsent_cases[] = {
	KUNIT_CASE_PARAM(test_lack, lack_gen_params),
	KUNIT_CASE_PARAM(test_lack_gathered, lack_gen_params),
	KUNIT_CASE_PARAM(test_lack_plain, plain_lack_gen_params),
	KUNIT_CASE(test_back_before_waiting),
	KUNIT_CASE(test_registrations_come_later),
	KUNIT_CASE(test_cannot_be_registered),
	KUNIT_CASE(test_registration_takes_nothing),
	KUNIT_CASE(test_mapping_fails_for_long),
	KUNIT_CASE(test_mapping_fails_again),
	KUNIT_CASE(test_segments),
	KUNIT_CASE(test_buffer),
	KUNIT_CASE(test_not_connected),
	KUNIT_CASE(test_connection_is_closing),
	KUNIT_CASE(test_transport_is_closing),
	KUNIT_CASE(test_device_refuses),
	{}
};

static struct kunit_suite unsent_suite = {
	.name = "rpcrdma_unsent",
	.init = unsent_init,
	.exit = fake_client_exit,
	.test_cases = unsent_cases,
};

kunit_test_suites(&unsent_suite);
