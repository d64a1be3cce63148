// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of server/: which requests may start RDMA Reads, which wait, and
 * which are woken; and that a thread is woken which waits for a Send.
 */
#include <kunit/test.h>

#include "../server/server_private.h"

#define MAX_WRS		8
#define REQUESTS	3

/* A service whose connection is never used */
struct reads {
	struct svcrdma_service service;
	struct rpcrdma_conn conn;
	struct svcrdma_request request[REQUESTS];
};

static int reads_init(struct kunit *test)
{
	struct reads *reads = kunit_kzalloc(test, sizeof(*reads), GFP_KERNEL);
	struct svcrdma_service *service;
	unsigned int i;

	if (!reads)
		return -ENOMEM;
	service = &reads->service;
	service->conn = &reads->conn;
	reads->conn.max_chain = MAX_WRS;
	spin_lock_init(&service->lock);
	INIT_LIST_HEAD(&service->resume);
	INIT_LIST_HEAD(&service->read_waiters);
	service->ready = true;
	/* A thread has it, so nothing else is done to wake one. */
	set_bit(XPT_BUSY, &service->xprt.xpt_flags);
	for (i = 0; i < REQUESTS; i++)
		reads->request[i].service = service;
	test->priv = reads;
	return 0;
}

/* The request that a thread is to resume and has been woken for, or NULL */
static struct svcrdma_request *woken(struct reads *reads)
{
	struct svcrdma_request *request = list_first_entry_or_null(&reads->service.resume,
								   struct svcrdma_request, list);

	if (!request || !test_and_clear_bit(XPT_DATA, &reads->service.xprt.xpt_flags))
		return NULL;
	list_del(&request->list);
	return request;
}

static void reads_start(struct reads *reads, int wrs)
{
	atomic_add(wrs, &reads->service.read_wrs);
}

/* Reads end as they do in the server: the count changes before the wake. */
static struct svcrdma_request *reads_end(struct reads *reads, int wrs)
{
	atomic_sub(wrs, &reads->service.read_wrs);
	atomic_inc_return(&reads->service.resource_seq);
	svcrdma_read_wake(&reads->service);
	return woken(reads);
}

/* Request @i waits, since @seq. Return: the request that is woken. */
static struct svcrdma_request *reads_wait_since(struct reads *reads, unsigned int i, int seq)
{
	svcrdma_read_wait(&reads->request[i], seq);
	return woken(reads);
}

/* Request @i waits. Nothing has come back since it found that it has to. */
static struct svcrdma_request *reads_wait(struct reads *reads, unsigned int i)
{
	return reads_wait_since(reads, i, atomic_read(&reads->service.resource_seq));
}

static void test_read_starts_below_limit(struct kunit *test)
{
	struct reads *reads = test->priv;

	KUNIT_EXPECT_TRUE(test, svcrdma_read_may_start(&reads->service));
	reads_start(reads, MAX_WRS - 1);
	KUNIT_EXPECT_TRUE(test, svcrdma_read_may_start(&reads->service));
	/* A chain may go beyond the limit, but none starts after it. */
	reads_start(reads, MAX_WRS);
	KUNIT_EXPECT_FALSE(test, svcrdma_read_may_start(&reads->service));
	reads_start(reads, 1 - MAX_WRS);
	KUNIT_EXPECT_FALSE(test, svcrdma_read_may_start(&reads->service));
	reads_start(reads, -1);
	KUNIT_EXPECT_TRUE(test, svcrdma_read_may_start(&reads->service));
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
		svcrdma_read_wake(&reads->service);
		KUNIT_EXPECT_PTR_EQ(test, woken(reads), &reads->request[i]);
	}
	svcrdma_read_wake(&reads->service);
	KUNIT_EXPECT_NULL(test, woken(reads));
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
	int seq = atomic_read(&reads->service.resource_seq);

	reads_start(reads, MAX_WRS);
	KUNIT_EXPECT_NULL(test, reads_end(reads, MAX_WRS));
	KUNIT_EXPECT_PTR_EQ(test, reads_wait_since(reads, 0, seq), &reads->request[0]);
	KUNIT_EXPECT_TRUE(test, list_empty(&reads->service.read_waiters));
}

/*
 * The last Reads end before a request waits, and another request waits already: that one
 * is woken first.
 */
static void test_read_wait_keeps_order(struct kunit *test)
{
	struct reads *reads = test->priv;
	int seq = atomic_read(&reads->service.resource_seq);

	reads_start(reads, MAX_WRS);
	KUNIT_EXPECT_NULL(test, reads_wait(reads, 0));
	reads_start(reads, -MAX_WRS);
	atomic_inc(&reads->service.resource_seq);
	KUNIT_EXPECT_PTR_EQ(test, reads_wait_since(reads, 1, seq), &reads->request[0]);
	svcrdma_read_wake(&reads->service);
	KUNIT_EXPECT_PTR_EQ(test, woken(reads), &reads->request[1]);
}

/* Some Reads end, but too few: the Reads in flight wake the request. */
static void test_read_wait_for_the_rest(struct kunit *test)
{
	struct reads *reads = test->priv;
	int seq = atomic_read(&reads->service.resource_seq);

	reads_start(reads, 2 * MAX_WRS);
	KUNIT_EXPECT_NULL(test, reads_end(reads, 1));
	KUNIT_EXPECT_NULL(test, reads_wait_since(reads, 0, seq));
	KUNIT_EXPECT_PTR_EQ(test, reads_end(reads, 2 * MAX_WRS - 1), &reads->request[0]);
}

/* A request that comes after ->xpo_detach does not wait, and is put. */
static void test_read_wait_detached(struct kunit *test)
{
	struct reads *reads = test->priv;
	struct svcrdma_service *service = &reads->service;

	service->detached = true;
	service->max_idle = 1;
	reads_start(reads, MAX_WRS);
	KUNIT_EXPECT_NULL(test, reads_wait(reads, 0));
	KUNIT_EXPECT_TRUE(test, list_empty(&service->read_waiters));
	KUNIT_EXPECT_PTR_EQ(test, service->idle, &reads->request[0]);
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
	INIT_LIST_HEAD(&waiter->service.read_waiters);
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
	KUNIT_CASE(test_read_wakes_in_order),
	KUNIT_CASE(test_read_wakes_only_below_limit),
	KUNIT_CASE(test_read_wait_misses_no_wake),
	KUNIT_CASE(test_read_wait_keeps_order),
	KUNIT_CASE(test_read_wait_for_the_rest),
	KUNIT_CASE(test_read_wait_detached),
	KUNIT_CASE(test_thread_is_woken),
	{}
};

static struct kunit_suite read_admission_suite = {
	.name = "rpcrdma_read_admission",
	.init = reads_init,
	.test_cases = read_admission_cases,
};

kunit_test_suites(&read_admission_suite);
