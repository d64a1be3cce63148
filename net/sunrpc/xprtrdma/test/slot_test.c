// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/: Replies that arrive when their tasks have been killed.
 */
#include <kunit/test.h>

#include "../client/client_private.h"

#define REQUESTS	4

/* A client, its connection, an earlier one, and requests on the wire */
struct slot_fixture {
	struct xprt_rdma_client *client;
	struct xprt_rdma_endpoint *ep;
	struct xprt_rdma_endpoint *earlier;
	struct xprt_rdma_request *request[REQUESTS];
};

static struct xprt_rdma_endpoint *new_ep(struct kunit *test)
{
	struct xprt_rdma_endpoint *ep = kunit_kzalloc(test, sizeof(*ep),
						      GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ep);
	spin_lock_init(&ep->awaiting_lock);
	return ep;
}

static void slots_start(struct kunit *test, struct slot_fixture *wire)
{
	struct xprt_rdma_request *request;
	ktime_t sent = ktime_get();
	unsigned int i;

	wire->client = kunit_kzalloc(test, sizeof(*wire->client), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, wire->client);
	spin_lock_init(&wire->client->xprt.reserve_lock);
	INIT_LIST_HEAD(&wire->client->slots);
	wire->ep = new_ep(test);
	wire->earlier = new_ep(test);

	for (i = 0; i < REQUESTS; i++) {
		request = kunit_kzalloc(test, sizeof(*request), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, request);
		request->ep = wire->ep;
		request->rqst.rq_xid = cpu_to_be32(i);
		request->rqst.rq_xtime = sent;
		list_add(&request->all, &wire->client->slots);
		wire->request[i] = request;
	}
}

/* A Reply arrives @later nanoseconds after the Calls were sent. */
static void note_reply(struct slot_fixture *wire, struct xprt_rdma_endpoint *ep,
		       u32 xid, s64 later)
{
	const struct xprt_rdma_unmatched_reply unmatched = {
		.xid = cpu_to_be32(xid),
		.arrived = ktime_add_ns(wire->request[0]->rqst.rq_xtime, later),
	};

	spin_lock(&ep->awaiting_lock);
	xprt_rdma_slots_note_unmatched_locked(wire->client, ep, &unmatched);
	spin_unlock(&ep->awaiting_lock);
}

/* Whether the task of a request waits for the Reply when it is retired */
static bool is_awaited(struct slot_fixture *wire, unsigned int i)
{
	struct xprt_rdma_request *request = wire->request[i];

	set_bit(XPRT_RDMA_AWAITING_REPLY, &request->state);
	spin_lock(&wire->ep->awaiting_lock);
	xprt_rdma_retire_find_unmatched_locked(request);
	spin_unlock(&wire->ep->awaiting_lock);
	return test_bit(XPRT_RDMA_AWAITING_REPLY, &request->state);
}

/* Several Replies in any order, before their tasks look for them */
static void test_unmatched_are_all_kept(struct kunit *test)
{
	struct slot_fixture wire;
	unsigned int i;

	slots_start(test, &wire);
	note_reply(&wire, wire.ep, 2, 1);
	note_reply(&wire, wire.ep, 0, 1);
	note_reply(&wire, wire.ep, 1, 1);
	note_reply(&wire, wire.ep, 1000, 1);
	for (i = 0; i < REQUESTS; i++)
		KUNIT_EXPECT_EQ(test, is_awaited(&wire, i), i == 3);
}

static void test_unmatched_of_other_connection(struct kunit *test)
{
	struct slot_fixture wire;

	slots_start(test, &wire);
	note_reply(&wire, wire.earlier, 1, 1);
	KUNIT_EXPECT_TRUE(test, is_awaited(&wire, 1));
}

/* A Reply with the same XID that arrived before this Call was sent */
static void test_unmatched_before_call(struct kunit *test)
{
	struct slot_fixture wire;

	slots_start(test, &wire);
	note_reply(&wire, wire.ep, 0, -1);
	KUNIT_EXPECT_TRUE(test, is_awaited(&wire, 0));
}

/* Another RPC has the slot by now. */
static void test_unmatched_of_earlier_rpc(struct kunit *test)
{
	struct slot_fixture wire;

	slots_start(test, &wire);
	note_reply(&wire, wire.ep, 1, 1);
	wire.request[1]->rqst.rq_xid = cpu_to_be32(1001);
	KUNIT_EXPECT_TRUE(test, is_awaited(&wire, 1));
}

static struct kunit_case slot_cases[] = {
	KUNIT_CASE(test_unmatched_are_all_kept),
	KUNIT_CASE(test_unmatched_of_other_connection),
	KUNIT_CASE(test_unmatched_before_call),
	KUNIT_CASE(test_unmatched_of_earlier_rpc),
	{}
};

static struct kunit_suite slot_suite = {
	.name = "rpcrdma_slot",
	.test_cases = slot_cases,
};

kunit_test_suites(&slot_suite);
