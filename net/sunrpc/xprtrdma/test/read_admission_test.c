// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of server/: which requests may start RDMA Reads, which wait, and
 * which are woken; and that a thread is woken which waits for a Send.
 */
#include <kunit/test.h>

#include "../server/server_private.h"

#define MAX_WRS		8
#define REQUESTS	3

/* Read admission without a connection */
struct reads {
	struct svcrdma_read_admission admission;
	atomic_t seq;
	struct svcrdma_request request[REQUESTS];
};

static int reads_init(struct kunit *test)
{
	struct reads *reads = kunit_kzalloc(test, sizeof(*reads), GFP_KERNEL);

	if (!reads)
		return -ENOMEM;
	svcrdma_read_admission_init(&reads->admission, &reads->seq);
	reads->admission.max_wrs = MAX_WRS;
	test->priv = reads;
	return 0;
}

static void reads_start(struct reads *reads, unsigned int wrs)
{
	mutex_lock(&reads->admission.start);
	svcrdma_read_started(&reads->admission, wrs);
	mutex_unlock(&reads->admission.start);
}

/* Reads end as they do in the server: the count changes before the wake. */
static struct svcrdma_request *reads_end(struct reads *reads, unsigned int wrs)
{
	svcrdma_read_ended(&reads->admission, wrs);
	atomic_inc_return(&reads->seq);
	return svcrdma_read_wake(&reads->admission);
}

/* Request @i waits. Nothing has come back since it found that it has to. */
static struct svcrdma_request *reads_wait(struct reads *reads, unsigned int i)
{
	return svcrdma_read_wait(&reads->admission, &reads->request[i], atomic_read(&reads->seq));
}

static void test_read_starts_below_limit(struct kunit *test)
{
	struct reads *reads = test->priv;

	KUNIT_EXPECT_TRUE(test, svcrdma_read_may_start(&reads->admission));
	reads_start(reads, MAX_WRS - 1);
	KUNIT_EXPECT_TRUE(test, svcrdma_read_may_start(&reads->admission));
	/* A chain may go beyond the limit, but none starts after it. */
	reads_start(reads, MAX_WRS);
	KUNIT_EXPECT_FALSE(test, svcrdma_read_may_start(&reads->admission));
	svcrdma_read_ended(&reads->admission, MAX_WRS - 1);
	KUNIT_EXPECT_FALSE(test, svcrdma_read_may_start(&reads->admission));
	svcrdma_read_ended(&reads->admission, 1);
	KUNIT_EXPECT_TRUE(test, svcrdma_read_may_start(&reads->admission));
}

static void test_read_starts_not_before_established(struct kunit *test)
{
	struct reads *reads = test->priv;

	reads->admission.max_wrs = 0;
	KUNIT_EXPECT_FALSE(test, svcrdma_read_may_start(&reads->admission));
}

static void test_read_wakes_in_order(struct kunit *test)
{
	struct reads *reads = test->priv;
	unsigned int i;

	reads_start(reads, MAX_WRS);
	for (i = 0; i < REQUESTS; i++)
		KUNIT_EXPECT_NULL(test, reads_wait(reads, i));
	/* Each request wakes the next one when it has started. */
	KUNIT_EXPECT_PTR_EQ(test, reads_end(reads, MAX_WRS), &reads->request[0]);
	for (i = 1; i < REQUESTS; i++) {
		reads_start(reads, 1);
		KUNIT_EXPECT_PTR_EQ(test, svcrdma_read_wake(&reads->admission),
				    &reads->request[i]);
	}
	KUNIT_EXPECT_NULL(test, svcrdma_read_wake(&reads->admission));
}

static void test_read_wakes_only_below_limit(struct kunit *test)
{
	struct reads *reads = test->priv;

	reads_start(reads, MAX_WRS + 1);
	KUNIT_EXPECT_NULL(test, reads_wait(reads, 0));
	KUNIT_EXPECT_NULL(test, reads_end(reads, 1));
	KUNIT_EXPECT_PTR_EQ(test, reads_end(reads, 1), &reads->request[0]);
}

/* The last Reads end after a request has found that it must wait, before it waits. */
static void test_read_wait_misses_no_wake(struct kunit *test)
{
	struct reads *reads = test->priv;
	int seq = atomic_read(&reads->seq);

	reads_start(reads, MAX_WRS);
	KUNIT_EXPECT_NULL(test, reads_end(reads, MAX_WRS));
	KUNIT_EXPECT_PTR_EQ(test, svcrdma_read_wait(&reads->admission, &reads->request[0], seq),
			    &reads->request[0]);
	KUNIT_EXPECT_TRUE(test, list_empty(&reads->admission.waiters));
}

/*
 * The last Reads end before a request waits, and another request waits already: that one
 * is woken first.
 */
static void test_read_wait_keeps_order(struct kunit *test)
{
	struct reads *reads = test->priv;
	int seq = atomic_read(&reads->seq);

	reads_start(reads, MAX_WRS);
	KUNIT_EXPECT_NULL(test, reads_wait(reads, 0));
	svcrdma_read_ended(&reads->admission, MAX_WRS);
	atomic_inc(&reads->seq);
	KUNIT_EXPECT_PTR_EQ(test, svcrdma_read_wait(&reads->admission, &reads->request[1], seq),
			    &reads->request[0]);
	KUNIT_EXPECT_PTR_EQ(test, svcrdma_read_wake(&reads->admission), &reads->request[1]);
}

/* Some Reads end, but too few: the Reads in flight wake the request. */
static void test_read_wait_for_the_rest(struct kunit *test)
{
	struct reads *reads = test->priv;
	int seq = atomic_read(&reads->seq);

	reads_start(reads, 2 * MAX_WRS);
	KUNIT_EXPECT_NULL(test, reads_end(reads, 1));
	KUNIT_EXPECT_NULL(test,
			  svcrdma_read_wait(&reads->admission, &reads->request[0], seq));
	KUNIT_EXPECT_PTR_EQ(test, reads_end(reads, 2 * MAX_WRS - 1), &reads->request[0]);
}

static void test_read_close_returns_waiters(struct kunit *test)
{
	struct reads *reads = test->priv;
	LIST_HEAD(left);

	reads_start(reads, MAX_WRS);
	KUNIT_EXPECT_NULL(test, reads_wait(reads, 0));
	KUNIT_EXPECT_NULL(test, reads_wait(reads, 1));
	svcrdma_read_admission_close(&reads->admission, &left);
	KUNIT_EXPECT_PTR_EQ(test, left.next, &reads->request[0].list);
	KUNIT_EXPECT_PTR_EQ(test, left.prev, &reads->request[1].list);
	KUNIT_EXPECT_NULL(test, reads_end(reads, MAX_WRS));
	/* A request that comes too late remains with its caller. */
	KUNIT_EXPECT_PTR_EQ(test, reads_wait(reads, 2), &reads->request[2]);
	KUNIT_EXPECT_TRUE(test, list_empty(&reads->admission.waiters));
}

/* A thread that waits for a Send, and what comes back a moment later */
struct waiter {
	struct svcrdma_service service;
	struct rpcrdma_conn conn;
	struct delayed_work returns;
};

static void waiter_returns(struct work_struct *work)
{
	svcrdma_service_returned(&container_of(to_delayed_work(work), struct waiter,
					       returns)->service);
}

/* Return: true if the thread went on before it looked whether the connection ends, after 1 s. */
static bool thread_is_woken(struct kunit *test)
{
	struct waiter *waiter = kunit_kzalloc(test, sizeof(*waiter), GFP_KERNEL);
	unsigned long since;
	bool woken;

	KUNIT_ASSERT_NOT_NULL(test, waiter);
	waiter->conn.state = RPCRDMA_STATE_ESTABLISHED;
	waiter->service.conn = &waiter->conn;
	init_waitqueue_head(&waiter->service.send_wait);
	svcrdma_read_admission_init(&waiter->service.read_admission,
				    &waiter->service.resource_seq);
	INIT_DELAYED_WORK(&waiter->returns, waiter_returns);
	since = jiffies;
	schedule_delayed_work(&waiter->returns, HZ / 20);
	KUNIT_EXPECT_TRUE(test, svcrdma_service_wait(&waiter->service, 0, jiffies));
	woken = time_before(jiffies, since + 3 * HZ / 4);
	flush_delayed_work(&waiter->returns);
	return woken;
}

/* A machine that is busy may be slow once. If the wake-up is lost, it always is. */
static void test_thread_is_woken(struct kunit *test)
{
	bool woken = false;
	unsigned int i;

	for (i = 0; i < 5 && !woken; i++)
		woken = thread_is_woken(test);
	KUNIT_EXPECT_TRUE(test, woken);
}

static struct kunit_case read_admission_cases[] = {
	KUNIT_CASE(test_read_starts_below_limit),
	KUNIT_CASE(test_read_starts_not_before_established),
	KUNIT_CASE(test_read_wakes_in_order),
	KUNIT_CASE(test_read_wakes_only_below_limit),
	KUNIT_CASE(test_read_wait_misses_no_wake),
	KUNIT_CASE(test_read_wait_keeps_order),
	KUNIT_CASE(test_read_wait_for_the_rest),
	KUNIT_CASE(test_read_close_returns_waiters),
	KUNIT_CASE(test_thread_is_woken),
	{}
};

static struct kunit_suite read_admission_suite = {
	.name = "rpcrdma_read_admission",
	.init = reads_init,
	.test_cases = read_admission_cases,
};

kunit_test_suites(&read_admission_suite);
