// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of conn/: where and in which order a role with a workqueue gets what has arrived and
 * what is done, and that it gets all of it when no worker is free.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "../conn/conn_private.h"
#include "fake_conn.h"

#define MESSAGES	3U

struct deliver {
	struct fake_conn *fake;
	struct workqueue_struct *wq;
	struct work_struct busy;	/* occupies the only worker until @free */
	struct completion free;
	struct rpcrdma_send *send;
	unsigned int early;		/* received in the softirq */
	unsigned int received;
	unsigned int done;
	unsigned int wrong;
};

/* Tests run one at a time. Not KUnit's memory: works refer to it. */
static struct deliver deliver, *d;

/* Message number n has the octets n. A chain that was done before any arrived comes first. */
static void deliver_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv)
{
	d->wrong += in_softirq() || *(u32 *)recv->data != d->received || d->done != 1;
	d->received++;
	rpcrdma_recv_put(recv);
}

static void deliver_done(struct rpcrdma_chain *chain, int status)
{
	d->wrong += in_softirq() || status;
	d->done++;
	rpcrdma_send_put(container_of(chain, struct rpcrdma_send, chain));
}

static void deliver_nothing(struct rpcrdma_conn *conn)
{
}

static void deliver_closed(struct rpcrdma_conn *conn, int status)
{
}

static const struct rpcrdma_conn_ops deliver_ops = {
	.received = deliver_received,
	.writable = deliver_nothing,
	.closed = deliver_closed,
};

static void deliver_busy(struct work_struct *work)
{
	wait_for_completion(&d->free);
}

/* The only worker is busy when a Send is done and then messages arrive, all in a softirq. */
static void deliver_begin(struct kunit *test, unsigned int flags)
{
	u32 octets[8] = {}, i;

	d = &deliver;
	*d = (struct deliver){ .fake = fake_conn_new(test, RPCRDMA_INLINE_MIN) };
	d->fake->conn->ops = &deliver_ops;
	d->fake->conn->config.in_wq = true;
	d->send = rpcrdma_send_get(d->fake->conn);
	KUNIT_ASSERT_NOT_NULL(test, d->send);
	d->send->chain.done = deliver_done;
	KUNIT_ASSERT_EQ(test, rpcrdma_send_post(d->send, NULL, RPCRDMA_POST_SIGNALLED | flags,
						NULL), 0);
	d->wq = alloc_ordered_workqueue("rpcrdma-test", 0);
	KUNIT_ASSERT_NOT_NULL(test, d->wq);
	swap(d->wq, rpcrdma_deliver_wq);
	init_completion(&d->free);
	INIT_WORK(&d->busy, deliver_busy);
	queue_work(rpcrdma_deliver_wq, &d->busy);
	local_bh_disable();
	fake_complete(d->fake);
	for (i = 0; i < MESSAGES; i++) {
		octets[0] = i;
		fake_deliver(d->fake, octets, sizeof(octets), 0);
	}
	d->early = d->received;
	local_bh_enable();
}

static void deliver_end(struct kunit *test)
{
	complete(&d->free);
	swap(d->wq, rpcrdma_deliver_wq);
	destroy_workqueue(d->wq);
	KUNIT_EXPECT_EQ(test, d->early, 0);
	KUNIT_EXPECT_EQ(test, d->received, MESSAGES);
	KUNIT_EXPECT_EQ(test, d->done, 1);
	KUNIT_EXPECT_EQ(test, d->wrong, 0);
}

static void test_in_order(struct kunit *test)
{
	deliver_begin(test, RPCRDMA_POST_DONE_IN_WQ);
	KUNIT_EXPECT_EQ(test, d->done, 0);
	complete(&d->free);
	flush_workqueue(rpcrdma_deliver_wq);
	KUNIT_EXPECT_EQ(test, d->received, MESSAGES);
	fake_conn_delete(test, d->fake);
	deliver_end(test);
}

/* A ->done that may run anywhere does not wait for a worker. */
static void test_done_at_once(struct kunit *test)
{
	deliver_begin(test, 0);
	KUNIT_EXPECT_EQ(test, d->done, 1);
	KUNIT_EXPECT_EQ(test, d->wrong, 1);	/* It ran in the softirq. */
	d->wrong = 0;
	fake_conn_delete(test, d->fake);
	deliver_end(test);
}

/* Without memory there is one worker, which may be busy. */
static void test_no_worker(struct kunit *test)
{
	deliver_begin(test, RPCRDMA_POST_DONE_IN_WQ);
	fake_conn_close(test, d->fake);
	KUNIT_EXPECT_EQ(test, d->received, MESSAGES);
	KUNIT_EXPECT_EQ(test, d->done, 1);
	fake_conn_delete(test, d->fake);
	deliver_end(test);
}

static struct kunit_case deliver_cases[] = {
	KUNIT_CASE(test_in_order),
	KUNIT_CASE(test_done_at_once),
	KUNIT_CASE(test_no_worker),
	{}
};

static struct kunit_suite deliver_suite = {
	.name = "rpcrdma_deliver",
	.test_cases = deliver_cases,
};

kunit_test_suites(&deliver_suite);
