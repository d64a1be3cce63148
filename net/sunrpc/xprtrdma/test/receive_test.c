// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/receive.c: which RPC a Reply completes and which it does not, whatever
 * the server sends and whenever it arrives; what the server may say of the memory that it was
 * offered; and what every message gives back: its Receive, and then its credit.
 */
#include <kunit/test.h>
#include <linux/lockdep.h>

#include "fake_client.h"

#define XID		0x1badcafe
#define OTHER_XID	0x1badcaff
#define MRS		8
#define REPLY_LEN	24

static struct fake_client *receive_begin(struct kunit *test)
{
	return fake_client_begin_mrs(test, RPCRDMA_INLINE_MIN, MRS);
}

/* The server guesses the header of a Call that it does not have. */
static void guess_call(struct fake_client *t, u32 xid)
{
	rpcrdma_wire_init_call(&t->msg, RPCRDMA_VERSION_ONE, cpu_to_be32(xid), FAKE_CREDITS);
}

static void begin_and_send(struct kunit *test, struct fake_client *t,
			   const struct fake_sizes *call, const struct fake_sizes *reply)
{
	fake_rpc_begin(test, t, &t->rpc, XID, call, reply);
	KUNIT_ASSERT_EQ(test, fake_rpc_send(&t->rpc), 0);
	KUNIT_ASSERT_TRUE(test, fake_server_gets(t, &t->rpc));
}

static unsigned int unmatched(const struct fake_client *t)
{
	return t->fake.conn->counters.errors[RPCRDMA_A_ERRORS_UNMATCHED];
}

/* Whatever has become of a Reply, its Receive and its request are given back. */
static void expect_nothing_held(struct kunit *test, const struct fake_client *t,
				unsigned int receives)
{
	KUNIT_EXPECT_EQ(test, t->fake.num_recvs, receives);
	KUNIT_EXPECT_NULL(test, t->rpc.request.recv);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->rpc.request.rqst.rq_pin), 0);
}

static void expect_complete(struct kunit *test, const struct fake_client *t)
{
	KUNIT_EXPECT_EQ(test, t->rpc.request.rqst.rq_reply_bytes_recvd, REPLY_LEN);
	KUNIT_EXPECT_NULL(test, t->rpc.request.ep);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->ep->credits.in_flight), 0);
	/* Of the client, of the connection, and of the test */
	KUNIT_EXPECT_EQ(test, kref_read(&t->ep->ref), 3);
	KUNIT_EXPECT_EQ(test, unmatched(t), 0);
	KUNIT_EXPECT_EQ(test, t->client->stats.bad_replies, 0);
	KUNIT_EXPECT_FALSE(test, t->client->reply_lost);
}

static void test_after_posting(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	unsigned int receives = t->fake.num_recvs;

	begin_and_send(test, t, NULL, NULL);
	KUNIT_EXPECT_PTR_EQ(test, t->rpc.request.ep, t->ep);
	fake_server_replies(t, REPLY_LEN, 0);
	expect_nothing_held(test, t, receives);
	expect_complete(test, t);
	fake_client_end(test, t);
}

/*
 * The task that posts holds post_lock here. On another CPU the Reply would be processed without
 * it, so lockdep must not take it for an order of locks.
 */
static void answer_at_once(struct fake_conn *fake)
{
	struct fake_client *t = container_of(fake, struct fake_client, fake);

	lockdep_off();
	fake_server_replies(t, REPLY_LEN, 0);
	lockdep_on();
}

/* The task that posts may be preempted there for as long as it takes. */
static void test_while_posting(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	unsigned int receives = t->fake.num_recvs;

	fake_rpc_begin(test, t, &t->rpc, XID, NULL, NULL);
	guess_call(t, XID);
	t->fake.posted = answer_at_once;
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	t->fake.posted = NULL;
	expect_nothing_held(test, t, receives);
	expect_complete(test, t);
	fake_client_end(test, t);
}

/* The server guesses the XID. It gets no registration that is not made yet. */
static void test_before_posting(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	struct xprt_rdma_request *request = &t->rpc.request;
	unsigned int receives = t->fake.num_recvs;

	/* As it is when the task that posts does not have post_lock yet */
	fake_rpc_begin(test, t, &t->rpc, XID, NULL, NULL);
	request->ep = t->ep;
	guess_call(t, XID);
	fake_server_replies(t, REPLY_LEN, 0);
	expect_nothing_held(test, t, receives);
	KUNIT_EXPECT_FALSE(test, request->replied);
	KUNIT_EXPECT_FALSE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_PTR_EQ(test, request->ep, t->ep);
	KUNIT_EXPECT_EQ(test, unmatched(t), 1);

	t->fake.conn->counters.errors[RPCRDMA_A_ERRORS_UNMATCHED] = 0;
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	fake_server_replies(t, REPLY_LEN, 0);
	expect_nothing_held(test, t, receives);
	expect_complete(test, t);
	fake_client_end(test, t);
}

/* A Call that finds no space in the send queue is not on the wire. */
static void test_after_posting_failed(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	struct xprt_rdma_request *request = &t->rpc.request;
	unsigned int receives = t->fake.num_recvs;

	t->fake.conn->sq.free = 0;
	fake_rpc_begin(test, t, &t->rpc, XID, NULL, NULL);
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), -EAGAIN);
	KUNIT_EXPECT_NULL(test, request->ep);
	KUNIT_EXPECT_FALSE(test, request->posted);
	KUNIT_EXPECT_EQ(test, kref_read(&t->ep->ref), 3);
	guess_call(t, XID);
	fake_server_replies(t, REPLY_LEN, 0);
	expect_nothing_held(test, t, receives);
	KUNIT_EXPECT_EQ(test, unmatched(t), 1);
	KUNIT_EXPECT_FALSE(test, fake_rpc_is_complete(&t->rpc));
	fake_client_end(test, t);
}

/* The Call was sent on an earlier connection, from which the task has not been taken yet. */
static void test_on_another_connection(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	struct xprt_rdma_request *request = &t->rpc.request;
	unsigned int receives = t->fake.num_recvs;
	struct xprt_rdma_endpoint *earlier = kunit_kzalloc(test, sizeof(*earlier), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, earlier);
	begin_and_send(test, t, NULL, NULL);
	request->ep = earlier;
	fake_server_replies(t, REPLY_LEN, 0);
	request->ep = t->ep;
	expect_nothing_held(test, t, receives);
	KUNIT_EXPECT_EQ(test, unmatched(t), 1);
	KUNIT_EXPECT_FALSE(test, fake_rpc_is_complete(&t->rpc));
	fake_client_end(test, t);
}

/* The first one waits until the device has read the Call. The second one answers nothing. */
static void test_second_reply(struct kunit *test)
{
	const struct fake_sizes call = { .head = 100, .pages = 8192 };
	struct fake_client *t = fake_client_begin(test, 16384, RPCRDMA_VERSION_ONE);
	unsigned int receives = t->fake.num_recvs;

	begin_and_send(test, t, &call, NULL);
	fake_server_replies(t, REPLY_LEN, 0);
	fake_server_replies(t, REPLY_LEN + 4, 0);
	KUNIT_EXPECT_EQ(test, t->fake.num_recvs, receives - 1);
	KUNIT_EXPECT_EQ(test, unmatched(t), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->rpc.request.rqst.rq_pin), 1);
	t->fake.conn->counters.errors[RPCRDMA_A_ERRORS_UNMATCHED] = 0;
	fake_complete(&t->fake);
	expect_nothing_held(test, t, receives);
	expect_complete(test, t);
	fake_client_end(test, t);
}

/* The Reply to one of two Calls completes that one. */
static void test_other_reply(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);

	t->ep->credits.granted = 4;
	begin_and_send(test, t, NULL, NULL);
	fake_rpc_begin(test, t, &t->other, OTHER_XID, NULL, NULL);
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->other), 0);
	fake_server_replies(t, REPLY_LEN, 0);
	KUNIT_EXPECT_TRUE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_FALSE(test, fake_rpc_is_complete(&t->other));
	KUNIT_EXPECT_PTR_EQ(test, t->other.request.ep, t->ep);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->ep->credits.in_flight), 1);
	fake_client_end(test, t);
}

/* A Reply that nobody waits for */

static bool credit_came_first;

/* The server may send as soon as it has the credit, and then there must be a Receive. */
static void note_credit(struct fake_conn *fake)
{
	struct fake_client *t = container_of(fake, struct fake_client, fake);

	if (!test_bit(XPRT_WRITE_SPACE, &t->client->xprt.state))
		credit_came_first = true;
}

static void wait_for_credit(struct fake_client *t)
{
	credit_came_first = false;
	set_bit(XPRT_WRITE_SPACE, &t->client->xprt.state);
	t->fake.reposting = note_credit;
}

/* A task that waits for the credit is woken, after the Receive is there again. */
static void expect_credit(struct kunit *test, struct fake_client *t)
{
	KUNIT_EXPECT_EQ(test, atomic_read(&t->ep->credits.in_flight), 0);
	KUNIT_EXPECT_FALSE(test, test_bit(XPRT_WRITE_SPACE, &t->client->xprt.state));
	KUNIT_EXPECT_FALSE(test, credit_came_first);
}

static void test_credit_of_reply(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);

	begin_and_send(test, t, NULL, NULL);
	wait_for_credit(t);
	fake_server_replies(t, REPLY_LEN, 0);
	expect_credit(test, t);
	fake_client_end(test, t);
}

/* The task was killed. Its Call has a credit until the server has answered. */
static void test_task_is_gone(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	unsigned int receives = t->fake.num_recvs;

	begin_and_send(test, t, NULL, NULL);
	rb_erase(&t->rpc.request.rqst.rq_recv, &t->client->xprt.recv_queue);
	xprt_rdma_request_retire(&t->rpc.request);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->ep->credits.in_flight), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->ep->credits.orphaned), 1);
	wait_for_credit(t);
	fake_server_replies(t, REPLY_LEN, 0);
	expect_credit(test, t);
	expect_nothing_held(test, t, receives);
	KUNIT_EXPECT_EQ(test, unmatched(t), 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->ep->credits.orphaned), 0);
	fake_client_end(test, t);
}

/* It notes what the Reply has invalidated, if the task is about to look for it. */
static void test_reply_for_task_that_ends(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	struct xprt_rdma_request *request = &t->rpc.request;

	begin_and_send(test, t, NULL, NULL);
	rb_erase(&request->rqst.rq_recv, &t->client->xprt.recv_queue);
	fake_server_replies(t, REPLY_LEN, 0);
	KUNIT_EXPECT_EQ(test, request->unmatched.xid, cpu_to_be32(XID));
	KUNIT_EXPECT_FALSE(test, ktime_before(request->unmatched.arrived, request->rqst.rq_xtime));
	fake_client_end(test, t);
}

/* What a Reply says of the memory that its Call offered: two segments */

#define SEGMENT		(FAKE_MR_PAGES * PAGE_SIZE)

static const struct fake_sizes in_write_chunk = { .head = 200, .pages = 2 * SEGMENT, .ddp = true };
static const struct fake_sizes in_reply_chunk = {
	.head = PAGE_SIZE, .pages = 2 * SEGMENT - PAGE_SIZE,
};

static const struct fake_sizes is_inline = { .head = 200 };

struct chunk_row {
	const char *name;
	const struct fake_sizes *reply;
	u32 written;
	void (*lie)(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk);
	bool good;
	bool nomsg;
};

static void lie_first_handle(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk)
{
	msg->segment[0].handle++;
}

static void lie_second_handle(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk)
{
	msg->segment[1].handle++;
}

static void lie_first_offset(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk)
{
	msg->segment[0].offset += 4;
}

static void lie_second_offset(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk)
{
	msg->segment[1].offset -= 4;
}

static void lie_first_longer(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk)
{
	msg->segment[0].length += 4;
}

static void lie_second_longer(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk)
{
	msg->segment[1].length += 4;
}

static void lie_hole(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk)
{
	msg->segment[0].length -= 4;
}

static void lie_other_order(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk)
{
	swap(msg->segment[0], msg->segment[1]);
}

static void lie_third(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk)
{
	msg->segment[2] = msg->segment[1];
	msg->segment[2].offset += SEGMENT;
	chunk->count = 3;
	msg->num_segments = 3;
}

/* A server may leave out what it has not filled. */
static void lie_one_segment(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk)
{
	chunk->count = 1;
	msg->num_segments = 1;
}

static void lie_write_chunk(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk)
{
	msg->write[0] = *chunk;
	msg->num_writes = 1;
	msg->has_reply_chunk = false;
}

static void lie_reply_chunk(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk)
{
	msg->reply_chunk = *chunk;
	msg->num_writes = 0;
	msg->has_reply_chunk = true;
}

static void lie_two_write_chunks(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk)
{
	msg->write[1] = *chunk;
	msg->write[1].count = 0;
	msg->write[1].written = 0;
	msg->num_writes = 2;
}

static void lie_new_chunk(struct rpcrdma_message *msg, struct rpcrdma_chunk *chunk)
{
	*chunk = (struct rpcrdma_chunk){ .count = 1, .written = 4 };
	msg->segment[0] = (struct rpcrdma_segment){ .handle = 0x100, .length = 4 };
	msg->num_segments = 1;
	msg->num_writes = 1;
}

static const struct chunk_row chunk_rows[] = {
	{ "all of it", &in_write_chunk, 2 * SEGMENT, NULL, true },
	{ "all but one word", &in_write_chunk, 2 * SEGMENT - 4, NULL, true },
	{ "one segment and a word", &in_write_chunk, SEGMENT + 4, NULL, true },
	{ "one segment", &in_write_chunk, SEGMENT, NULL, true },
	{ "one segment alone", &in_write_chunk, SEGMENT, lie_one_segment, true },
	{ "a word", &in_write_chunk, 4, NULL, true },
	{ "nothing", &in_write_chunk, 0, NULL, true },
	{ "nothing, into other segments", &in_write_chunk, 0, lie_first_handle, true },
	{ "nothing, into too many segments", &in_write_chunk, 0, lie_third, true },
	{ "another first handle", &in_write_chunk, 2 * SEGMENT, lie_first_handle },
	{ "another second handle", &in_write_chunk, 2 * SEGMENT, lie_second_handle },
	{ "another first offset", &in_write_chunk, SEGMENT, lie_first_offset },
	{ "another second offset", &in_write_chunk, 2 * SEGMENT, lie_second_offset },
	{ "first segment too long", &in_write_chunk, SEGMENT + 4, lie_first_longer },
	{ "second segment too long", &in_write_chunk, 2 * SEGMENT + 4, lie_second_longer },
	{ "a hole", &in_write_chunk, SEGMENT, lie_hole },
	{ "another order", &in_write_chunk, 2 * SEGMENT, lie_other_order },
	{ "a third segment", &in_write_chunk, 2 * SEGMENT + 4, lie_third },
	{ "a third segment without octets", &in_write_chunk, 2 * SEGMENT, lie_third },
	{ "two Write chunks", &in_write_chunk, SEGMENT, lie_two_write_chunks },
	{ "a Reply chunk instead", &in_write_chunk, SEGMENT, lie_reply_chunk },
	{ "a chunk that was not offered", &is_inline, 4, lie_new_chunk },
	{ "Reply chunk: all of it", &in_reply_chunk, 2 * SEGMENT, NULL, true, true },
	{ "Reply chunk: a part", &in_reply_chunk, 100, NULL, true, true },
	{ "Reply chunk: not used", &in_reply_chunk, 0, NULL, true },
	{ "Reply chunk: another handle", &in_reply_chunk, 100, lie_first_handle, false, true },
	{ "Reply chunk: too long", &in_reply_chunk, 2 * SEGMENT + 4, lie_second_longer, false,
	  true },
	{ "a Write chunk instead", &in_reply_chunk, SEGMENT, lie_write_chunk },
};

KUNIT_ARRAY_PARAM_DESC(chunk, chunk_rows, name);

/* The head of a Reply that the server has written, with its XID */
static void write_reply(struct fake_client *t)
{
	const __be32 begin[] = { cpu_to_be32(XID), cpu_to_be32(RPCRDMA_REPLY) };

	memcpy(t->rpc.reply->head, begin, sizeof(begin));
}

/* Good or bad: the RPC ends when the server has no access to its memory, and nothing is left. */
static void test_chunk(struct kunit *test)
{
	const struct chunk_row *row = test->param_value;
	struct fake_client *t = receive_begin(test);
	unsigned int receives = t->fake.num_recvs;
	struct rpcrdma_chunk *chunk;

	begin_and_send(test, t, NULL, row->reply);
	chunk = t->msg.has_reply_chunk ? &t->msg.reply_chunk : &t->msg.write[0];
	chunk->written = row->written;
	if (row->lie)
		row->lie(&t->msg, chunk);
	write_reply(t);
	fake_server_replies(t, row->nomsg ? 0 : REPLY_LEN, 0);
	KUNIT_EXPECT_EQ(test, fake_rpc_is_complete(&t->rpc), row->reply == &is_inline);
	fake_complete(&t->fake);
	KUNIT_EXPECT_TRUE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_EQ(test, t->client->stats.bad_replies, !row->good);
	KUNIT_EXPECT_EQ(test, t->fake.conn->counters.errors[RPCRDMA_A_ERRORS_BAD_HEADER],
			!row->good);
	KUNIT_EXPECT_EQ(test, t->client->stats.placed, row->good ? row->written : 0);
	KUNIT_EXPECT_EQ(test, fake_idle_mrs(&t->fake), MRS);
	expect_nothing_held(test, t, receives);
	fake_client_end(test, t);
}

/* How long the Reply is that the task decodes: what is inline, and what is not */
static void expect_length(struct kunit *test, const struct fake_sizes *reply, u32 written,
			  u32 payload, u32 length)
{
	struct fake_client *t = receive_begin(test);

	/* Of an RPC that had the slot before */
	t->rpc.request.written = 17;
	t->rpc.request.payload_len = 17;
	begin_and_send(test, t, NULL, reply);
	t->msg.write[0].written = written;
	t->msg.reply_chunk.written = written;
	write_reply(t);
	fake_server_replies(t, payload, 0);
	fake_complete(&t->fake);
	KUNIT_EXPECT_EQ(test, t->rpc.request.rqst.rq_reply_bytes_recvd, length);
	KUNIT_EXPECT_EQ(test, t->client->stats.placed, written);
	KUNIT_EXPECT_EQ(test, t->client->stats.fixup, payload);
	fake_client_end(test, t);
}

static void test_length(struct kunit *test)
{
	expect_length(test, &is_inline, 0, REPLY_LEN, REPLY_LEN);
	expect_length(test, &in_write_chunk, 4096, REPLY_LEN, 4096 + REPLY_LEN);
	expect_length(test, &in_write_chunk, 0, REPLY_LEN, REPLY_LEN);
	expect_length(test, &in_reply_chunk, 4096, 0, 4096);
	expect_length(test, &in_reply_chunk, 0, REPLY_LEN, REPLY_LEN);
}

/* The server says that it could not process the Call. */
static void test_error(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	unsigned int receives = t->fake.num_recvs;

	begin_and_send(test, t, NULL, &in_reply_chunk);
	t->msg.error = RPCRDMA_ERR_BAD_XDR;
	rpcrdma_wire_make_error(&t->msg, 5);
	fake_server_sends(t, 0, 0);
	fake_complete(&t->fake);
	KUNIT_EXPECT_TRUE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_EQ(test, t->client->stats.bad_replies, 1);
	KUNIT_EXPECT_EQ(test, t->client->stats.fixup, 0);
	KUNIT_EXPECT_EQ(test, t->fake.conn->counters.received.messages[RPCRDMA_A_TRAFFIC_ERROR], 1);
	KUNIT_EXPECT_EQ(test, t->fake.conn->counters.errors[RPCRDMA_A_ERRORS_BAD_HEADER], 0);
	KUNIT_EXPECT_EQ(test, t->ep->credits.granted, 5);
	KUNIT_EXPECT_EQ(test, fake_idle_mrs(&t->fake), MRS);
	expect_nothing_held(test, t, receives);
	fake_client_end(test, t);
}

/* The handles that the server has invalidated are not invalidated again. */
static void test_invalidated(struct kunit *test)
{
	const struct fake_sizes one = { .head = 200, .pages = 4096, .ddp = true };
	struct fake_client *t = receive_begin(test);

	begin_and_send(test, t, NULL, &one);
	fake_server_replies(t, REPLY_LEN, t->msg.segment[0].handle);
	KUNIT_EXPECT_TRUE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_EQ(test, t->fake.invalidated, 0);
	KUNIT_EXPECT_EQ(test, fake_idle_mrs(&t->fake), MRS);

	begin_and_send(test, t, NULL, &in_write_chunk);
	fake_server_replies(t, REPLY_LEN, t->msg.segment[1].handle);
	KUNIT_EXPECT_FALSE(test, fake_rpc_is_complete(&t->rpc));
	fake_complete(&t->fake);
	KUNIT_EXPECT_TRUE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_EQ(test, t->fake.invalidated, 1);
	KUNIT_EXPECT_EQ(test, fake_idle_mrs(&t->fake), MRS);
	fake_client_end(test, t);
}

/* The device executes what was posted a moment later, so that the task has to wait. */
static struct fake_conn *invalidating;

static void invalidate(struct work_struct *work)
{
	fake_complete(invalidating);
}

static DECLARE_DELAYED_WORK(invalidation, invalidate);

static void invalidate_later(struct fake_conn *fake)
{
	invalidating = fake;
	schedule_delayed_work(&invalidation, HZ / 20);
}

/* A task that was killed waits until the server cannot reach its memory, and no longer. */
static void test_task_with_handles_is_gone(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	unsigned long since;

	begin_and_send(test, t, NULL, &in_write_chunk);
	rb_erase(&t->rpc.request.rqst.rq_recv, &t->client->xprt.recv_queue);
	t->fake.posted = invalidate_later;
	since = jiffies;
	xprt_rdma_request_retire(&t->rpc.request);
	/* Without a wake-up it takes XPRT_RDMA_RETIRE_TIMEOUT. */
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, since + XPRT_RDMA_RETIRE_TIMEOUT - HZ));
	t->fake.posted = NULL;
	flush_delayed_work(&invalidation);
	KUNIT_EXPECT_EQ(test, t->fake.invalidated, 2);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(t->fake.conn));

	/* No other RPC gets its handles before its Reply. */
	KUNIT_EXPECT_EQ(test, fake_idle_mrs(&t->fake), MRS - 2);
	t->msg.xid = cpu_to_be32(OTHER_XID);
	fake_server_replies(t, REPLY_LEN, 0);
	KUNIT_EXPECT_EQ(test, fake_idle_mrs(&t->fake), MRS - 2);
	t->msg.xid = cpu_to_be32(XID);
	fake_server_replies(t, REPLY_LEN, 0);
	KUNIT_EXPECT_EQ(test, fake_idle_mrs(&t->fake), MRS);
	fake_client_end(test, t);
}

/* The Reply to a killed task's Call arrives just before, and invalidates one of two handles. */
static void test_answered_task_is_gone(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	struct xprt_rdma_request *request = &t->rpc.request;

	begin_and_send(test, t, NULL, &in_write_chunk);
	rb_erase(&request->rqst.rq_recv, &t->client->xprt.recv_queue);
	/* A Reply counts only if it is later than the Call, and the clock may have stood still. */
	request->rqst.rq_xtime = ktime_sub_ns(request->rqst.rq_xtime, 1);
	fake_server_replies(t, REPLY_LEN, t->msg.segment[1].handle);
	t->fake.posted = invalidate_later;
	xprt_rdma_request_retire(request);
	t->fake.posted = NULL;
	flush_delayed_work(&invalidation);
	KUNIT_EXPECT_EQ(test, t->fake.invalidated, 1);
	KUNIT_EXPECT_EQ(test, fake_idle_mrs(&t->fake), MRS);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(t->fake.conn));
	fake_client_end(test, t);
}

/* A task without a process waits for no server: its connection ends, if that can reach memory. */
static void test_async_task_is_gone(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	struct xprt_rdma_request *request = &t->rpc.request;

	t->ep->credits.granted = 2;
	begin_and_send(test, t, NULL, NULL);
	t->rpc.task.tk_flags = RPC_TASK_ASYNC;
	rb_erase(&request->rqst.rq_recv, &t->client->xprt.recv_queue);
	xprt_rdma_request_retire(request);
	KUNIT_EXPECT_NULL(test, request->ep);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(t->fake.conn));

	begin_and_send(test, t, NULL, &in_write_chunk);
	t->rpc.task.tk_flags = RPC_TASK_ASYNC;
	xprt_rdma_request_retire(request);
	KUNIT_EXPECT_NULL(test, request->ep);
	KUNIT_EXPECT_TRUE(test, list_empty(&request->invalidation.mrs));
	KUNIT_EXPECT_TRUE(test, completion_done(&t->ep->closed));
	KUNIT_EXPECT_EQ(test, t->ep->status, -ESHUTDOWN);
	fake_client_end(test, t);
}

/* A handle of another RPC: the server may have done anything, so its Reply does not count. */
static void test_other_handle_invalidated(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	struct xprt_rdma_request *request = &t->rpc.request;
	u32 handle;

	t->ep->credits.granted = 2;
	fake_rpc_begin(test, t, &t->other, OTHER_XID, NULL, &in_write_chunk);
	KUNIT_ASSERT_EQ(test, fake_rpc_send(&t->other), 0);
	KUNIT_ASSERT_TRUE(test, fake_server_gets(t, &t->other));
	handle = t->msg.segment[0].handle;
	begin_and_send(test, t, NULL, &in_write_chunk);
	fake_server_replies(t, REPLY_LEN, handle);
	KUNIT_EXPECT_FALSE(test, rpcrdma_conn_established(t->fake.conn));
	KUNIT_EXPECT_FALSE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_PTR_EQ(test, request->ep, t->ep);
	KUNIT_EXPECT_FALSE(test, request->replied);
	KUNIT_EXPECT_NULL(test, request->recv);
	KUNIT_EXPECT_EQ(test, atomic_read(&request->rqst.rq_pin), 0);
	fake_client_end(test, t);
}

/* Whether RPCSEC_GSS has freed the pages of a Call that was still on the wire */
static bool freed_on_wire;

static void free_encrypted(struct rpc_rqst *rqst)
{
	freed_on_wire = xprt_rdma_request_of(rqst)->ep;
}

static void test_encrypted_again(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	struct rpc_rqst *rqst = &t->rpc.request.rqst;
	unsigned int i;

	fake_rpc_begin(test, t, &t->rpc, XID, NULL, NULL);
	rqst->rq_release_snd_buf = free_encrypted;
	freed_on_wire = true;
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, xprt_rdma_request_prepare(rqst, &rqst->rq_snd_buf), 0);
	KUNIT_EXPECT_EQ(test, fake_rpc_send(&t->rpc), 0);
	rqst->rq_release_snd_buf(rqst);
	KUNIT_EXPECT_FALSE(test, freed_on_wire);
	KUNIT_EXPECT_TRUE(test, rqst->rq_release_snd_buf == free_encrypted);
	fake_client_end(test, t);
}

/* Grants */

struct grant_row {
	const char *name;
	u32 credits;
	u32 granted;
	unsigned int slots;	/* one more than there are Receives for, at most */
};

static const struct grant_row grant_rows[] = {
	{ "none", 0, 1, 1 },
	{ "one", 1, 1, 1 },
	{ "some", 2, 2, 2 },
	{ "more than there are Receives for", 7, 7, 2 },
	{ "as many as were requested", FAKE_CREDITS, FAKE_CREDITS, 2 },
	{ "more than were requested", FAKE_CREDITS + 1, FAKE_CREDITS, 2 },
};

KUNIT_ARRAY_PARAM_DESC(grant, grant_rows, name);

static void test_grant(struct kunit *test)
{
	const struct grant_row *row = test->param_value;
	struct fake_client *t = receive_begin(test);
	int len;

	begin_and_send(test, t, NULL, NULL);
	rpcrdma_wire_make_reply(&t->msg, 1);
	len = rpcrdma_wire_encode(&t->msg, t->octets, sizeof(t->octets));
	KUNIT_ASSERT_EQ(test, len, RPCRDMA_V1_HEADER_MIN);
	t->octets[2] = cpu_to_be32(row->credits);
	t->octets[7] = cpu_to_be32(XID);
	t->octets[8] = cpu_to_be32(RPCRDMA_REPLY);
	fake_deliver(&t->fake, t->octets, len + REPLY_LEN, 0);
	KUNIT_EXPECT_TRUE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_EQ(test, t->ep->credits.granted, row->granted);
	KUNIT_EXPECT_TRUE(test, t->ep->credits.granted_any);
	KUNIT_EXPECT_EQ(test, t->client->limit, row->slots);
	fake_client_end(test, t);
}

/* Messages that break a rule */

/* Words of a message, whose XID is that of the Call */
struct bad_row {
	const char *name;
	u32 words[12];
	unsigned int num;
	bool backward;		/* backward Calls are expected */
	bool credit;		/* it gives one back */
	bool lost;		/* it may have been a Reply */
	unsigned int answers;
};

static const struct bad_row bad_rows[] = {
	{ "too short", { XID, 1, 4 }, 3, false, true, true },
	{ "too short, or a backward Call", { XID, 1, 4 }, 3, true, false, true },
	{ "a Reply with a Read list", { XID, 1, 4, 0, 1, 0, 7, 4, 0, 0, 0, 0 }, 12, false, true,
	  true },
	{ "no Reply to anything", { XID, 1, 4, 3, 0, 0, 0 }, 7, false, false, true },
	{ "a Call that is not expected", { XID, 1, 4, 0, 0, 0, 0, XID, 0, 0, 0 }, 11, false,
	  false, true },
	{ "a backward Call of another version", { XID, 9, 4, 0, 0, 0, 0, XID, 0, 0, 0 }, 11,
	  true, false, true, 1 },
	{ "a backward Call with another XID", { XID, 1, 4, 0, 0, 0, 0, XID + 1, 0, 0, 0 }, 11,
	  true, false, false, 1 },
};

KUNIT_ARRAY_PARAM_DESC(bad, bad_rows, name);

static void test_bad(struct kunit *test)
{
	const struct bad_row *row = test->param_value;
	struct fake_client *t = receive_begin(test);
	unsigned int i, receives = t->fake.num_recvs;

	t->fake.conn->backward_credits = row->backward ? XPRT_RDMA_BACKWARD_CREDITS : 0;
	begin_and_send(test, t, NULL, NULL);
	for (i = 0; i < row->num; i++)
		t->octets[i] = cpu_to_be32(row->words[i]);
	wait_for_credit(t);
	fake_deliver(&t->fake, t->octets, row->num * sizeof(__be32), 0);
	if (row->credit)
		expect_credit(test, t);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->ep->credits.in_flight), !row->credit);
	KUNIT_EXPECT_EQ(test, t->client->reply_lost, row->lost);
	KUNIT_EXPECT_EQ(test, t->client->stats.bad_replies, 1);
	KUNIT_EXPECT_EQ(test, t->fake.conn->counters.errors[RPCRDMA_A_ERRORS_BAD_HEADER], 1);
	KUNIT_EXPECT_EQ(test, t->fake.posts, 1 + row->answers);
	KUNIT_EXPECT_EQ(test, t->ep->credits.granted, 1);
	KUNIT_EXPECT_FALSE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_EQ(test, unmatched(t), 0);
	expect_nothing_held(test, t, receives);
	fake_client_end(test, t);
}

/* It completes no Call, even if it has the XID of one. */
static void test_backward_call(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	unsigned int receives = t->fake.num_recvs;

	t->fake.conn->backward_credits = XPRT_RDMA_BACKWARD_CREDITS;
	begin_and_send(test, t, NULL, NULL);
	wait_for_credit(t);
	guess_call(t, XID);
	fake_server_sends(t, REPLY_LEN, 0);
	KUNIT_EXPECT_EQ(test, t->fake.conn->counters.received.messages[RPCRDMA_A_TRAFFIC_BACKWARD],
			1);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->ep->credits.in_flight), 1);
	KUNIT_EXPECT_FALSE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_EQ(test, t->client->stats.bad_replies, 0);
	KUNIT_EXPECT_FALSE(test, t->client->reply_lost);
	KUNIT_EXPECT_EQ(test, t->ep->credits.granted, 1);
	expect_nothing_held(test, t, receives);
	fake_client_end(test, t);
}

/* One that is too long is refused. If that cannot be sent, the connection ends. */
static void test_backward_call_length(struct kunit *test)
{
	struct fake_client *t = fake_client_begin(test, 16384, RPCRDMA_VERSION_ONE);
	unsigned int receives = t->fake.num_recvs;

	t->fake.conn->backward_credits = XPRT_RDMA_BACKWARD_CREDITS;
	guess_call(t, XID);
	fake_server_sends(t, XPRT_RDMA_BACKWARD_MAX, 0);
	KUNIT_EXPECT_EQ(test, t->fake.posts, 0);
	fake_server_sends(t, XPRT_RDMA_BACKWARD_MAX + 4, 0);
	KUNIT_EXPECT_EQ(test, t->fake.posts, 1);
	KUNIT_EXPECT_EQ(test, t->fake.num_recvs, receives);
	t->fake.conn->sq.free = 0;
	fake_server_sends(t, XPRT_RDMA_BACKWARD_MAX + 4, 0);
	KUNIT_EXPECT_EQ(test, t->fake.posts, 1);
	KUNIT_EXPECT_FALSE(test, rpcrdma_conn_established(t->fake.conn));
	/* The teardown may be over already. */
	fake_conn_close(test, &t->fake);
	KUNIT_EXPECT_EQ(test, fake_busy_sends(&t->fake), 0);
	fake_client_end(test, t);
}

/* The callback service has just ended, so nobody takes the backward Call. */
static void test_backward_call_is_left(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	struct rpc_xprt *xprt = &t->client->xprt;
	unsigned int receives = t->fake.num_recvs;

	t->fake.conn->backward_credits = XPRT_RDMA_BACKWARD_CREDITS;
	t->client->wants_backward = true;
	KUNIT_ASSERT_EQ(test, xprt_rdma_backward_setup(xprt, 1), 0);
	KUNIT_EXPECT_EQ(test, t->client->backward_count, 2 * XPRT_RDMA_BACKWARD_CREDITS);
	guess_call(t, XID);
	fake_server_sends(t, REPLY_LEN, 0);
	KUNIT_EXPECT_EQ(test, t->fake.conn->counters.received.messages[RPCRDMA_A_TRAFFIC_BACKWARD],
			1);
	/* Of the client, of the connection, and of the test */
	KUNIT_EXPECT_EQ(test, kref_read(&t->ep->ref), 3);
	expect_nothing_held(test, t, receives);
	xprt_rdma_backward_destroy(xprt, 1);
	KUNIT_EXPECT_EQ(test, t->client->backward_count, 0);
	fake_client_end(test, t);
}

/* The first of two users goes, and the last one while the service still has a Call. */
static void test_backward_users(struct kunit *test)
{
	struct fake_client *t = receive_begin(test);
	struct rpc_xprt *xprt = &t->client->xprt;
	struct xprt_rdma_backward *backward;

	t->client->wants_backward = true;
	KUNIT_ASSERT_EQ(test, xprt_rdma_backward_setup(xprt, 2), 0);
	backward = list_first_entry(&t->client->backward_idle, struct xprt_rdma_backward, list);
	list_del(&backward->list);
	backward->ep = t->ep;
	xprt_rdma_ep_get(t->ep);
	xprt_get(xprt);
	xprt_rdma_backward_destroy(xprt, 1);
	KUNIT_EXPECT_FALSE(test, list_empty(&t->client->backward_idle));
	xprt_rdma_backward_destroy(xprt, 2);
	KUNIT_EXPECT_EQ(test, t->client->backward_count, 1);
	/* If it is not freed, the module warns when it is unloaded. */
	xprt_rdma_backward_free(&backward->rqst);
	KUNIT_EXPECT_EQ(test, t->client->backward_count, 0);
	KUNIT_EXPECT_EQ(test, kref_read(&t->ep->ref), 3);
	KUNIT_EXPECT_EQ(test, kref_read(&xprt->kref), 1);
	fake_client_end(test, t);
}

/* Version 2 */

static struct fake_client *begin_version_2(struct kunit *test)
{
	struct fake_client *t = fake_client_begin(test, RPCRDMA_INLINE_MIN, RPCRDMA_VERSION_TWO);

	begin_and_send(test, t, NULL, NULL);
	KUNIT_ASSERT_EQ(test, t->msg.version, RPCRDMA_VERSION_TWO);
	return t;
}

static void test_version_2(struct kunit *test)
{
	struct fake_client *t = begin_version_2(test);
	unsigned int receives = t->fake.num_recvs;

	fake_server_replies(t, REPLY_LEN, 0);
	expect_nothing_held(test, t, receives);
	expect_complete(test, t);
	KUNIT_EXPECT_EQ(test, t->ep->credits.granted, FAKE_CREDITS);
	KUNIT_EXPECT_EQ(test, t->client->version, RPCRDMA_VERSION_TWO);

	/* An error of version 2 grants nothing. */
	begin_and_send(test, t, NULL, NULL);
	t->msg.error = RPCRDMA_ERR_BAD_XDR;
	rpcrdma_wire_make_error(&t->msg, 5);
	fake_server_sends(t, 0, 0);
	KUNIT_EXPECT_TRUE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_EQ(test, t->client->stats.bad_replies, 1);
	KUNIT_EXPECT_EQ(test, t->ep->credits.granted, FAKE_CREDITS);
	fake_client_end(test, t);
}

/* A Reply in a version that no Call had */
static void test_other_version(struct kunit *test)
{
	struct fake_client *t = begin_version_2(test);
	unsigned int receives = t->fake.num_recvs;

	t->msg.version = RPCRDMA_VERSION_ONE;
	wait_for_credit(t);
	fake_server_replies(t, REPLY_LEN, 0);
	expect_credit(test, t);
	expect_nothing_held(test, t, receives);
	KUNIT_EXPECT_FALSE(test, fake_rpc_is_complete(&t->rpc));
	KUNIT_EXPECT_PTR_EQ(test, t->rpc.request.ep, t->ep);
	KUNIT_EXPECT_TRUE(test, t->client->reply_lost);
	KUNIT_EXPECT_EQ(test, t->client->stats.bad_replies, 1);
	KUNIT_EXPECT_EQ(test, t->fake.conn->counters.errors[RPCRDMA_A_ERRORS_BAD_HEADER], 1);
	KUNIT_EXPECT_EQ(test, t->ep->credits.granted, 1);
	fake_client_end(test, t);
}

static struct kunit_case receive_cases[] = {
	KUNIT_CASE(test_after_posting),
	KUNIT_CASE(test_while_posting),
	KUNIT_CASE(test_before_posting),
	KUNIT_CASE(test_after_posting_failed),
	KUNIT_CASE(test_on_another_connection),
	KUNIT_CASE(test_second_reply),
	KUNIT_CASE(test_other_reply),
	KUNIT_CASE(test_credit_of_reply),
	KUNIT_CASE(test_task_is_gone),
	KUNIT_CASE(test_reply_for_task_that_ends),
	KUNIT_CASE_PARAM(test_chunk, chunk_gen_params),
	KUNIT_CASE(test_length),
	KUNIT_CASE(test_error),
	KUNIT_CASE(test_invalidated),
	KUNIT_CASE(test_task_with_handles_is_gone),
	KUNIT_CASE(test_answered_task_is_gone),
	KUNIT_CASE(test_async_task_is_gone),
	KUNIT_CASE(test_other_handle_invalidated),
	KUNIT_CASE(test_encrypted_again),
	KUNIT_CASE_PARAM(test_grant, grant_gen_params),
	KUNIT_CASE_PARAM(test_bad, bad_gen_params),
	KUNIT_CASE(test_backward_call),
	KUNIT_CASE(test_backward_call_length),
	KUNIT_CASE(test_backward_call_is_left),
	KUNIT_CASE(test_backward_users),
	KUNIT_CASE(test_version_2),
	KUNIT_CASE(test_other_version),
	{}
};

static struct kunit_suite receive_suite = {
	.name = "rpcrdma_receive",
	.exit = fake_client_exit,
	.test_cases = receive_cases,
};

kunit_test_suites(&receive_suite);
