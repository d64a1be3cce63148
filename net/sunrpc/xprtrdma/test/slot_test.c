// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/: Replies that come when their tasks have been killed.
 */
#include <kunit/test.h>

#include "../client/client_private.h"

#define REQUESTS	4

/* A client, two connections that it has or had, and requests on the wire */
struct wire {
	struct rpcrdma_client *client;
	struct rpcrdma_link *link;
	struct rpcrdma_link *earlier;
	struct rpcrdma_request *request[REQUESTS];
};

static struct rpcrdma_link *new_link(struct kunit *test)
{
	struct rpcrdma_link *link = kunit_kzalloc(test, sizeof(*link), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, link);
	spin_lock_init(&link->owed_lock);
	return link;
}

static void start(struct kunit *test, struct wire *wire)
{
	struct rpcrdma_request *request;
	ktime_t sent = ktime_get();
	unsigned int i;

	wire->client = kunit_kzalloc(test, sizeof(*wire->client), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, wire->client);
	spin_lock_init(&wire->client->xprt.reserve_lock);
	INIT_LIST_HEAD(&wire->client->slots);
	wire->link = new_link(test);
	wire->earlier = new_link(test);

	for (i = 0; i < REQUESTS; i++) {
		request = kunit_kzalloc(test, sizeof(*request), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, request);
		request->link = wire->link;
		request->rqst.rq_xid = cpu_to_be32(i);
		request->rqst.rq_xtime = sent;
		list_add(&request->all, &wire->client->slots);
		wire->request[i] = request;
	}
}

/* A Reply arrives, @later nanoseconds after the Calls were sent. */
static void note(struct wire *wire, struct rpcrdma_link *link, u32 xid, s64 later)
{
	const struct rpcrdma_stray stray = {
		.xid = cpu_to_be32(xid),
		.arrived = ktime_add_ns(wire->request[0]->rqst.rq_xtime, later),
	};

	spin_lock(&link->owed_lock);
	rpcrdma_slots_note_stray(wire->client, link, &stray);
	spin_unlock(&link->owed_lock);
}

/* What the task of a request finds when it has got so far as to wait */
static bool is_owed(struct wire *wire, unsigned int i)
{
	struct rpcrdma_request *request = wire->request[i];

	set_bit(RPCRDMA_OWED, &request->state);
	spin_lock(&wire->link->owed_lock);
	rpcrdma_reply_find_stray(request);
	spin_unlock(&wire->link->owed_lock);
	return test_bit(RPCRDMA_OWED, &request->state);
}

/* As many as there are tasks on their way, in any order */
static void test_strays_are_all_kept(struct kunit *test)
{
	struct wire wire;
	unsigned int i;

	start(test, &wire);
	note(&wire, wire.link, 2, 1);
	note(&wire, wire.link, 0, 1);
	note(&wire, wire.link, 1, 1);
	note(&wire, wire.link, 1000, 1);
	for (i = 0; i < REQUESTS; i++)
		KUNIT_EXPECT_EQ(test, is_owed(&wire, i), i == 3);
}

static void test_stray_of_other_connection(struct kunit *test)
{
	struct wire wire;

	start(test, &wire);
	note(&wire, wire.earlier, 1, 1);
	KUNIT_EXPECT_TRUE(test, is_owed(&wire, 1));
}

/* The same XID, of a Call that was sent before this one */
static void test_stray_before_call(struct kunit *test)
{
	struct wire wire;

	start(test, &wire);
	note(&wire, wire.link, 0, -1);
	KUNIT_EXPECT_TRUE(test, is_owed(&wire, 0));
}

/* The slot has another RPC by now. */
static void test_stray_of_earlier_rpc(struct kunit *test)
{
	struct wire wire;

	start(test, &wire);
	note(&wire, wire.link, 1, 1);
	wire.request[1]->rqst.rq_xid = cpu_to_be32(1001);
	KUNIT_EXPECT_TRUE(test, is_owed(&wire, 1));
}

static struct kunit_case slot_cases[] = {
	KUNIT_CASE(test_strays_are_all_kept),
	KUNIT_CASE(test_stray_of_other_connection),
	KUNIT_CASE(test_stray_before_call),
	KUNIT_CASE(test_stray_of_earlier_rpc),
	{}
};

static struct kunit_suite slot_suite = {
	.name = "rpcrdma_slot",
	.test_cases = slot_cases,
};

kunit_test_suites(&slot_suite);
