// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of status/, and of what conn/ and the roles count for it.
 */
#include <kunit/test.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>
#include <uapi/linux/rpcrdma.h>

#include "../client/client_private.h"
#include "../conn/conn_private.h"
#include "../server/server_private.h"
#include "../status/status_private.h"
#include "fake_conn.h"

/* What a dump has for one message on a machine with pages of 4 KiB */
#define MESSAGE_MAX	3584

static struct rpcrdma_conn *new_conn(struct kunit *test)
{
	struct rpcrdma_conn *conn = kunit_kzalloc(test, sizeof(*conn), GFP_KERNEL);
	struct sockaddr_in *v4;

	KUNIT_ASSERT_NOT_NULL(test, conn);
	v4 = (struct sockaddr_in *)&conn->peer_addr;
	v4->sin_family = AF_INET;
	v4->sin_port = htons(20049);
	v4->sin_addr.s_addr = htonl(0x0a110001);
	conn->local_addr = conn->peer_addr;
	conn->id = 17;
	return conn;
}

static void bucket(struct kunit *test, s64 ns, unsigned int wanted)
{
	KUNIT_EXPECT_EQ(test, rpcrdma_latency_slot(ns_to_ktime(ns)), 1 + wanted);
}

static void test_latency_buckets(struct kunit *test)
{
	bucket(test, 0, 0);
	bucket(test, 999, 0);
	bucket(test, 1000, 1);
	bucket(test, 1999, 1);
	bucket(test, 2000, 2);
	bucket(test, 3999, 2);
	bucket(test, 4000, 3);
	bucket(test, 1023999, 10);
	bucket(test, 1024000, 11);
	bucket(test, (s64)NSEC_PER_USEC << 25, 26);
	bucket(test, (s64)NSEC_PER_USEC << 26, 27);
	bucket(test, S64_MAX, RPCRDMA_LATENCY_BUCKETS - 1);
}

static u64 uint_of(struct kunit *test, const struct nlattr *attr)
{
	KUNIT_ASSERT_NOT_NULL(test, attr);
	if (nla_len(attr) == sizeof(u32))
		return nla_get_u32(attr);
	KUNIT_ASSERT_EQ(test, nla_len(attr), (int)sizeof(u64));
	return nla_get_u64(attr);
}

static struct sk_buff *message(struct kunit *test, const struct rpcrdma_conn *conn,
			       const struct rpcrdma_conn_status *status)
{
	struct sk_buff *skb = alloc_skb(2 * PAGE_SIZE, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, rpcrdma_message_conn(skb, conn, status), 0);
	return skb;
}

static void parse(struct kunit *test, const struct sk_buff *skb, struct nlattr **attrs)
{
	KUNIT_ASSERT_EQ(test, 0, nla_parse(attrs, RPCRDMA_A_CONNECTION_MAX,
					   (const struct nlattr *)skb->data, skb->len,
					   NULL, NULL));
}

/* Ages and octets above 32 bits do not wrap. */
static void test_large_numbers(struct kunit *test)
{
	struct rpcrdma_conn_status *status = kunit_kzalloc(test, sizeof(*status), GFP_KERNEL);
	struct nlattr *attrs[RPCRDMA_A_CONNECTION_MAX + 1];
	struct nlattr *sent[RPCRDMA_A_TRAFFIC_MAX + 1];
	struct rpcrdma_conn *conn = new_conn(test);
	struct sk_buff *skb;

	KUNIT_ASSERT_NOT_NULL(test, status);
	status->state_ms = 1ULL << 33;
	status->counters.sent.placed_octets = 1ULL << 40;
	status->counters.sent.messages[RPCRDMA_A_TRAFFIC_LONG_CALL] = 5;
	skb = message(test, conn, status);
	parse(test, skb, attrs);
	KUNIT_EXPECT_EQ(test, uint_of(test, attrs[RPCRDMA_A_CONNECTION_STATE_AGE]), 1ULL << 33);
	KUNIT_ASSERT_NOT_NULL(test, attrs[RPCRDMA_A_CONNECTION_SENT]);
	KUNIT_ASSERT_EQ(test, 0, nla_parse_nested_deprecated(sent, RPCRDMA_A_TRAFFIC_MAX,
							     attrs[RPCRDMA_A_CONNECTION_SENT],
							     NULL, NULL));
	KUNIT_EXPECT_EQ(test, uint_of(test, sent[RPCRDMA_A_TRAFFIC_PLACED_OCTETS]), 1ULL << 40);
	KUNIT_EXPECT_EQ(test, uint_of(test, sent[RPCRDMA_A_TRAFFIC_LONG_CALL]), 5);
	kfree_skb(skb);
}

/* However long the numbers are, each connection fits into a message of a dump. */
static void test_longest_message_fits(struct kunit *test)
{
	struct rpcrdma_conn_status *status = kunit_kzalloc(test, sizeof(*status), GFP_KERNEL);
	struct rpcrdma_conn *conn = new_conn(test);
	struct sk_buff *skb;

	KUNIT_ASSERT_NOT_NULL(test, status);
	memset(status, 0xff, sizeof(*status));
	status->live = true;
	memset(status->device, 'd', sizeof(status->device) - 1);
	status->device[sizeof(status->device) - 1] = 0;
	conn->peer_addr.ss_family = AF_INET6;
	memset(&((struct sockaddr_in6 *)&conn->peer_addr)->sin6_addr, 0xff, 16);
	conn->local_addr = conn->peer_addr;
	skb = message(test, conn, status);
	KUNIT_EXPECT_LT(test, skb->len, MESSAGE_MAX);
	kfree_skb(skb);
}

/* What is not known before a connection is established is absent. */
static void test_not_established(struct kunit *test)
{
	struct rpcrdma_conn_status *status = kunit_kzalloc(test, sizeof(*status), GFP_KERNEL);
	struct nlattr *attrs[RPCRDMA_A_CONNECTION_MAX + 1];
	struct rpcrdma_conn *conn = new_conn(test);
	struct sk_buff *skb;

	KUNIT_ASSERT_NOT_NULL(test, status);
	skb = message(test, conn, status);
	parse(test, skb, attrs);
	KUNIT_EXPECT_STREQ(test, nla_data(attrs[RPCRDMA_A_CONNECTION_PEER]), "10.17.0.1:20049");
	KUNIT_EXPECT_EQ(test, nla_get_u32(attrs[RPCRDMA_A_CONNECTION_PEER_PORT]), 20049);
	KUNIT_EXPECT_NULL(test, attrs[RPCRDMA_A_CONNECTION_LOCAL]);
	KUNIT_EXPECT_NULL(test, attrs[RPCRDMA_A_CONNECTION_DEVICE]);
	KUNIT_EXPECT_NULL(test, attrs[RPCRDMA_A_CONNECTION_CAUSE]);
	KUNIT_EXPECT_NULL(test, attrs[RPCRDMA_A_CONNECTION_CREDITS_GRANTED]);
	kfree_skb(skb);
}

static bool finds(unsigned long from, const struct rpcrdma_conn *wanted)
{
	struct rpcrdma_conn *found = rpcrdma_conn_find(&from);

	if (found)
		rpcrdma_conn_put(found);
	return found == wanted;
}

static void free_conn(struct rpcrdma_conn *conn)
{
	rpcrdma_conn_put(conn);
	rpcrdma_conn_put(conn);
}

/* A walk goes on after a connection that has gone, and repeats none. */
static void test_walk(struct kunit *test)
{
	struct rpcrdma_conn *conns[3];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(conns); i++) {
		conns[i] = rpcrdma_conn_alloc(false);
		KUNIT_ASSERT_NOT_NULL(test, conns[i]);
	}
	KUNIT_EXPECT_TRUE(test, finds(conns[0]->id, conns[0]));
	KUNIT_EXPECT_TRUE(test, finds(conns[0]->id + 1, conns[1]));
	i = conns[1]->id;
	free_conn(conns[1]);
	KUNIT_EXPECT_TRUE(test, finds(conns[0]->id + 1, conns[2]));
	KUNIT_EXPECT_TRUE(test, finds(i + 1, conns[2]));
	KUNIT_EXPECT_TRUE(test, finds(conns[2]->id + 1, NULL));
	free_conn(conns[0]);
	free_conn(conns[2]);
}

/* Before it has a namespace a connection belongs to none. */
static void test_namespace(struct kunit *test)
{
	struct rpcrdma_conn *conn = new_conn(test);

	KUNIT_EXPECT_FALSE(test, rpcrdma_conn_in_net(conn, &init_net));
	rpcrdma_conn_set_net(conn, &init_net);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_in_net(conn, &init_net));
	put_net(conn->net);
}

/* What a connection has, and how much of it is idle */
static void test_pools(struct kunit *test)
{
	struct rpcrdma_conn_status *status = kunit_kzalloc(test, sizeof(*status), GFP_KERNEL);
	struct fake_conn *fake = fake_conn_new(test, RPCRDMA_INLINE_MIN);
	struct rpcrdma_conn *conn = fake->conn;
	struct rpcrdma_mr *mr;

	KUNIT_ASSERT_NOT_NULL(test, status);
	fake_make_mrs(test, fake, 8);
	mr = rpcrdma_mr_get(conn);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	conn->recvs_taken = 3;
	conn->recvs_returned = 1;
	conn->counters.sent.inline_octets = 100;
	conn->counters.sent.gathered_octets = 70;
	rpcrdma_conn_status(conn, status);
	KUNIT_EXPECT_TRUE(test, status->live);
	KUNIT_EXPECT_EQ(test, status->mrs, 8);
	KUNIT_EXPECT_EQ(test, status->mrs_idle, 7);
	KUNIT_EXPECT_EQ(test, status->recvs, fake->num_recvs);
	KUNIT_EXPECT_EQ(test, status->recvs_posted, fake->num_recvs - 2);
	KUNIT_EXPECT_EQ(test, status->sq_size, FAKE_SQ_SIZE);
	KUNIT_EXPECT_EQ(test, status->sq_used, 0);
	KUNIT_EXPECT_EQ(test, status->counters.sent.copied_octets, 30);
	rpcrdma_mr_put(mr);
	fake_conn_delete(test, fake);
}

/* However often an RPC tries, it counts once for each cause. */
static void test_waits_count_once(struct kunit *test)
{
	struct xprt_rdma_endpoint *ep = kunit_kzalloc(test, sizeof(*ep), GFP_KERNEL);
	struct xprt_rdma_request *request = kunit_kzalloc(test, sizeof(*request), GFP_KERNEL);
	const unsigned long *waits;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, ep);
	KUNIT_ASSERT_NOT_NULL(test, request);
	ep->conn = new_conn(test);
	waits = ep->conn->counters.waits;
	ep->conn->credits = 8;
	ep->credits.granted = 2;
	for (i = 0; i < 3; i++)
		xprt_rdma_count_wait(ep, &request->rqst, RPCRDMA_A_WAITS_SEND_QUEUE);
	KUNIT_EXPECT_EQ(test, waits[RPCRDMA_A_WAITS_SEND_QUEUE], 1);

	/* One of two credits is in use, so it is a Receive that is missing. */
	atomic_set(&ep->credits.in_flight, 1);
	xprt_rdma_count_credit_wait(ep, &request->rqst);
	KUNIT_EXPECT_EQ(test, waits[RPCRDMA_A_WAITS_RECEIVE_BUFFER], 1);
	KUNIT_EXPECT_EQ(test, waits[RPCRDMA_A_WAITS_CREDIT], 0);
	atomic_set(&ep->credits.in_flight, 2);
	for (i = 0; i < 3; i++)
		xprt_rdma_count_credit_wait(ep, &request->rqst);
	KUNIT_EXPECT_EQ(test, waits[RPCRDMA_A_WAITS_CREDIT], 1);
}

/* A request adds to the counters once. */
static void test_tally(struct kunit *test)
{
	struct svcrdma_service *service = kunit_kzalloc(test, sizeof(*service), GFP_KERNEL);
	struct svcrdma_request *request = kunit_kzalloc(test, sizeof(*request), GFP_KERNEL);
	const struct rpcrdma_counters *counters;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, service);
	KUNIT_ASSERT_NOT_NULL(test, request);
	service->conn = new_conn(test);
	spin_lock_init(&service->lock);
	request->service = service;
	counters = &service->conn->counters;

	/* A WRITE: 100 octets before the data, 20 after it, 4096 in a Read chunk */
	request->msg.payload_len = 120;
	request->msg.num_reads = 1;
	request->msg.read[0] = (struct rpcrdma_chunk){ .position = 100, .length = 4096 };
	request->msg.read[1].length = 1;	/* of an earlier Call */
	request->args = SVCRDMA_ARGS_WRITE;
	svcrdma_tally_call(request);
	svcrdma_tally_pulled(request);
	request->tally.notes |= SVCRDMA_NOTE_WAITED_READ | SVCRDMA_NOTE_REPLY_SPACE;
	spin_lock(&service->lock);
	for (i = 0; i < 2; i++)
		svcrdma_tally_locked(request);
	spin_unlock(&service->lock);

	KUNIT_EXPECT_EQ(test, counters->received.messages[RPCRDMA_A_TRAFFIC_READ_CHUNK], 1);
	KUNIT_EXPECT_EQ(test, counters->received.messages[RPCRDMA_A_TRAFFIC_INLINE], 0);
	KUNIT_EXPECT_EQ(test, counters->received.inline_octets, 120);
	KUNIT_EXPECT_EQ(test, counters->received.placed_octets, 4096);
	KUNIT_EXPECT_EQ(test, counters->received.copied_octets, 20);
	KUNIT_EXPECT_EQ(test, counters->sent.gathered_octets, 0);
	KUNIT_EXPECT_EQ(test, counters->waits[RPCRDMA_A_WAITS_READ], 1);
	KUNIT_EXPECT_EQ(test, counters->errors[RPCRDMA_A_ERRORS_REPLY_SPACE], 1);
	KUNIT_EXPECT_EQ(test, counters->errors[RPCRDMA_A_ERRORS_DENIED], 0);

	/* A Long Call whose Read chunk is refused */
	request->msg.payload_len = 0;
	request->msg.read[0].position = 0;
	request->args = SVCRDMA_ARGS_STREAM;
	svcrdma_tally_call(request);
	spin_lock(&service->lock);
	svcrdma_tally_locked(request);
	spin_unlock(&service->lock);
	KUNIT_EXPECT_EQ(test, counters->received.messages[RPCRDMA_A_TRAFFIC_LONG_CALL], 1);
	KUNIT_EXPECT_EQ(test, counters->received.placed_octets, 4096);
}

static struct kunit_case status_cases[] = {
	KUNIT_CASE(test_latency_buckets),
	KUNIT_CASE(test_large_numbers),
	KUNIT_CASE(test_longest_message_fits),
	KUNIT_CASE(test_not_established),
	KUNIT_CASE(test_walk),
	KUNIT_CASE(test_namespace),
	KUNIT_CASE(test_pools),
	KUNIT_CASE(test_waits_count_once),
	KUNIT_CASE(test_tally),
	{}
};

static struct kunit_suite status_suite = {
	.name = "rpcrdma_status",
	.test_cases = status_cases,
};

kunit_test_suite(status_suite);
