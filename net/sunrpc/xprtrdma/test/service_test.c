// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of server/: who is told that a connection goes on or ends. A copy of xprt.c is
 * compiled here, with functions of this file in the place of the RPC server's.
 */
#include <linux/sunrpc/svc_xprt.h>
#include <net/net_namespace.h>

#include "fake_conn.h"

/* The names of the copy */
#define svcrdma_service_wake_locked	service_test_wake_locked
#define svcrdma_service_close		service_test_close
#define svcrdma_service_put		service_test_put
#define svcrdma_service_wait		service_test_wait
#define svcrdma_service_returned	service_test_returned
#define svcrdma_service_grant		service_test_grant
#define svcrdma_init			service_test_init
#define svcrdma_exit			service_test_exit

#include "../server/server_private.h"

/* What the RPC server is told. Tests run one at a time. */
static unsigned int enqueued;
static unsigned int closed;

static void service_enqueue(struct svc_xprt *xprt)
{
	enqueued++;
}

static void service_deferred_close(struct svc_xprt *xprt)
{
	closed++;
}

#define svc_xprt_enqueue	service_enqueue
#define svc_xprt_deferred_close	service_deferred_close

#include "../server/xprt.c"

struct service_test {
	struct fake_conn fake;
	struct svc_serv serv;
	struct svc_xprt listener;
	struct svcrdma_service *service;
	struct svcrdma_request request;
};

/* The connection of a client that is accepted */
static struct service_test *begin(struct kunit *test)
{
	struct service_test *t = kzalloc(sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	fake_conn_make(test, &t->fake, RPCRDMA_INLINE_MIN, RPCRDMA_VERSION_ONE);
	t->listener.xpt_net = &init_net;
	t->listener.xpt_server = &t->serv;
	rpcrdma_conn_get(t->fake.conn);
	t->service = service_alloc(&t->listener, t->fake.conn);
	KUNIT_ASSERT_NOT_NULL(test, t->service);
	__module_get(THIS_MODULE);
	t->fake.conn->role = t->service;
	t->fake.conn->ops = &svcrdma_service_ops;
	enqueued = 0;
	closed = 0;
	return t;
}

/* A thread takes a message. Return: false if there is none. */
static bool message_taken(struct service_test *t)
{
	struct rpcrdma_recv *recv = list_first_entry_or_null(&t->service->received,
							     struct rpcrdma_recv, list);

	if (!recv)
		return false;
	list_del(&recv->list);
	rpcrdma_recv_put(recv);
	return true;
}

/* The connection ends, and then the RPC server's part. */
static void end(struct kunit *test, struct service_test *t)
{
	cancel_delayed_work_sync(&t->service->drop_work);
	list_splice_init(&t->service->dropped, &t->service->received);
	while (message_taken(t))
		;
	fake_conn_close(test, &t->fake);
	KUNIT_EXPECT_EQ(test, closed, !t->service->detached);
	svc_xprt_put(&t->service->xprt);
	KUNIT_EXPECT_EQ(test, atomic_read(&svcrdma_num_services), 0);
	fake_conn_end(test, &t->fake);
	kfree(t);
}

static bool may_take_call(struct service_test *t)
{
	struct svc_xprt *xprt = &t->service->xprt;

	return xprt->xpt_ops->xpo_has_wspace(xprt);
}

/* A Call that arrived before the connection was established has waited. */
static void test_established(struct kunit *test)
{
	struct service_test *t = begin(test);
	struct rpcrdma_recv recv;

	t->fake.conn->ops->established(t->fake.conn);
	KUNIT_EXPECT_EQ(test, enqueued, 0);
	list_add(&recv.list, &t->service->received);
	t->fake.conn->ops->established(t->fake.conn);
	KUNIT_EXPECT_EQ(test, enqueued, 1);
	KUNIT_EXPECT_TRUE(test, test_bit(XPT_DATA, &t->service->xprt.xpt_flags));
	list_del(&recv.list);
	end(test, t);
}

/* The RPC server takes no Call while all Sends but those of its threads are in use. */
static void test_send_comes_back(struct kunit *test)
{
	struct service_test *t = begin(test);
	struct rpcrdma_send *send;

	atomic_set(&t->service->xprt.xpt_nr_rqsts, FAKE_CREDITS - 1);
	KUNIT_EXPECT_TRUE(test, may_take_call(t));
	send = rpcrdma_send_get(t->fake.conn);
	KUNIT_ASSERT_NOT_NULL(test, send);
	KUNIT_EXPECT_FALSE(test, may_take_call(t));
	fake_run_callbacks(&t->fake);
	KUNIT_EXPECT_EQ(test, enqueued, 0);
	rpcrdma_send_put(send);
	fake_run_callbacks(&t->fake);
	KUNIT_EXPECT_EQ(test, enqueued, 1);
	KUNIT_EXPECT_TRUE(test, may_take_call(t));
	end(test, t);
}

static void reply(struct kunit *test, struct service_test *t)
{
	struct rpcrdma_send *send = rpcrdma_send_get(t->fake.conn);

	KUNIT_ASSERT_NOT_NULL(test, send);
	KUNIT_EXPECT_EQ(test, 0, rpcrdma_send_post(send, NULL, RPCRDMA_POST_SIGNALLED |
						   RPCRDMA_POST_LATER, NULL));
}

/* The RPC server takes no Call while a Reply waits for space in the send queue. */
static void test_space_comes_back(struct kunit *test)
{
	struct service_test *t = begin(test);

	reply(test, t);
	KUNIT_EXPECT_TRUE(test, may_take_call(t));
	t->fake.conn->sq.free = 0;
	reply(test, t);
	KUNIT_EXPECT_FALSE(test, may_take_call(t));
	fake_complete(&t->fake);
	fake_run_callbacks(&t->fake);
	KUNIT_EXPECT_EQ(test, enqueued, 1);
	KUNIT_EXPECT_TRUE(test, may_take_call(t));
	end(test, t);
}

/* A request that waits to issue its RDMA Reads goes on when there is space again. */
static void test_read_goes_on(struct kunit *test)
{
	struct service_test *t = begin(test);

	t->request.service = t->service;
	svcrdma_read_wait(&t->request, 0);
	KUNIT_EXPECT_PTR_EQ(test, t->service->read_waiters.next, &t->request.list);
	t->fake.conn->ops->writable(t->fake.conn);
	KUNIT_EXPECT_TRUE(test, list_empty(&t->service->read_waiters));
	KUNIT_EXPECT_PTR_EQ(test, t->service->resume.next, &t->request.list);
	list_del_init(&t->service->resume);
	end(test, t);
}

/* nfsd drops the Call. The message stays, if nfsd may get it again. */
static void drop(struct kunit *test, struct service_test *t, bool again)
{
	struct svcrdma_request *request = svcrdma_request_get(t->service);

	KUNIT_ASSERT_NOT_NULL(test, request);
	request->recv = fake_take_recv(&t->fake, "call", 4);
	request->again = again;
	t->service->xprt.xpt_ops->xpo_release_ctxt(&t->service->xprt, request);
}

/* What is due. Return: after how many seconds the next look is due; zero: none is. */
static unsigned int look(struct service_test *t)
{
	unsigned long now = jiffies;

	cancel_delayed_work_sync(&t->service->drop_work);
	service_drop_work(&t->service->drop_work.work);
	return delayed_work_pending(&t->service->drop_work) ?
	       DIV_ROUND_CLOSEST(t->service->drop_work.timer.expires - now, HZ) : 0;
}

/* nfsd gets a Call that it drops again and again after more and more time. */
static void test_dropped(struct kunit *test)
{
	static const unsigned int seconds[] = { 2, 4, 8, 8 };
	struct service_test *t = begin(test);
	unsigned int i;

	t->fake.conn->ops->established(t->fake.conn);
	for (i = 0; i < ARRAY_SIZE(seconds); i++) {
		drop(test, t, true);
		drop(test, t, true);	/* All of them wait for the same look. */
		KUNIT_EXPECT_TRUE(test, delayed_work_pending(&t->service->drop_work));
		KUNIT_EXPECT_EQ(test, look(t), seconds[i]);
		KUNIT_EXPECT_EQ(test, enqueued, i + 1);
		KUNIT_EXPECT_TRUE(test, message_taken(t));
		KUNIT_EXPECT_TRUE(test, message_taken(t));
	}
	KUNIT_EXPECT_EQ(test, look(t), 0);
	/* A Call that is dropped later starts from the beginning. */
	drop(test, t, true);
	KUNIT_EXPECT_EQ(test, t->service->drop_delay, HZ);
	end(test, t);
}

/* Without Replies the connection ends: the next one may begin with another Call. */
static void test_no_replies(struct kunit *test)
{
	struct service_test *t = begin(test);

	drop(test, t, true);
	t->service->drop_since -= SVCRDMA_DROPS_LIMIT;
	t->service->replied = true;
	KUNIT_EXPECT_NE(test, look(t), 0);
	KUNIT_EXPECT_EQ(test, closed, 0);
	KUNIT_EXPECT_FALSE(test, t->service->replied);
	KUNIT_EXPECT_TRUE(test, message_taken(t));
	drop(test, t, true);
	t->service->drop_since -= SVCRDMA_DROPS_LIMIT - HZ;
	KUNIT_EXPECT_NE(test, look(t), 0);
	KUNIT_EXPECT_TRUE(test, message_taken(t));
	drop(test, t, true);
	t->service->drop_since -= HZ;
	KUNIT_EXPECT_EQ(test, look(t), 0);
	KUNIT_EXPECT_EQ(test, closed, 1);
	closed = 0;
	end(test, t);
}

/* Replies to other Calls do not keep the connection: the lost Call has to be repeated. */
static void test_lost(struct kunit *test)
{
	struct service_test *t = begin(test);

	drop(test, t, false);
	KUNIT_EXPECT_TRUE(test, t->service->lost);
	KUNIT_EXPECT_NE(test, look(t), 0);
	t->service->drop_since -= SVCRDMA_DROPS_LIMIT;
	t->service->replied = true;
	drop(test, t, false);
	KUNIT_EXPECT_EQ(test, look(t), 0);
	KUNIT_EXPECT_EQ(test, closed, 1);
	closed = 0;
	end(test, t);
}

/* A Reply grants what the client can use, and no more than there are Receives for. */
static void test_grant(struct kunit *test)
{
	struct service_test *t = begin(test);
	struct svcrdma_grant *grant = &t->service->grant;

	KUNIT_EXPECT_EQ(test, svcrdma_service_grant(t->service, FAKE_CREDITS),
			RPCRDMA_FIRST_CREDITS);
	svcrdma_received(t->fake.conn, fake_take_recv(&t->fake, "call", 4));
	KUNIT_EXPECT_EQ(test, svcrdma_service_grant(t->service, FAKE_CREDITS), 2);
	KUNIT_EXPECT_TRUE(test, message_taken(t));
	grant->wanted = 8;
	KUNIT_EXPECT_EQ(test, svcrdma_service_grant(t->service, 6), 6);
	grant->wanted = 12;
	KUNIT_EXPECT_EQ(test, svcrdma_service_grant(t->service, FAKE_CREDITS), 12);
	KUNIT_EXPECT_GE(test, t->fake.num_recvs, 12);
	grant->wanted = 2 * FAKE_CREDITS;
	KUNIT_EXPECT_EQ(test, svcrdma_service_grant(t->service, U32_MAX), FAKE_CREDITS);
	end(test, t);
}

/* A Call arrives so many jiffies after an earlier one. Return: what its Reply grants. */
static unsigned int late_call(struct kunit *test, struct service_test *t, unsigned long later)
{
	struct svcrdma_request *request = svcrdma_request_get(t->service);
	u32 granted;

	KUNIT_ASSERT_NOT_NULL(test, request);
	t->service->grant.since = jiffies - later;
	svcrdma_received(t->fake.conn, fake_take_recv(&t->fake, "call", 4));
	KUNIT_EXPECT_TRUE(test, message_taken(t));
	atomic_dec(&t->service->calls_held);
	granted = svcrdma_service_grant(t->service, FAKE_CREDITS);
	svcrdma_request_put(request);
	return granted;
}

/*
 * A client that rests is granted less, unless a thread may be making a Reply that grants more: it
 * has a request, or a Call and no request yet. With each Reply the client can send one message
 * less, as long as it does not need more again. An error does not count.
 */
static void test_grant_falls(struct kunit *test)
{
	struct service_test *t = begin(test);
	struct rpcrdma_conn *conn = t->fake.conn;
	struct svcrdma_request *request = svcrdma_request_get(t->service);
	unsigned int receives;

	KUNIT_ASSERT_NOT_NULL(test, request);
	t->service->grant.wanted = 8;
	KUNIT_EXPECT_EQ(test, svcrdma_service_grant(t->service, FAKE_CREDITS), 8);
	KUNIT_EXPECT_EQ(test, late_call(test, t, SVCRDMA_GRANT_REST + 1), 8);
	svcrdma_request_put(request);
	atomic_inc(&t->service->calls_held);
	KUNIT_EXPECT_EQ(test, late_call(test, t, SVCRDMA_GRANT_REST + 1), 8);
	atomic_dec(&t->service->calls_held);
	KUNIT_EXPECT_EQ(test, late_call(test, t, SVCRDMA_GRANT_REST / 2), 8);
	KUNIT_EXPECT_EQ(test, conn->recv_credits, 8);
	KUNIT_EXPECT_EQ(test, late_call(test, t, SVCRDMA_GRANT_REST + 1), 2);
	for (receives = 7; receives > 4; receives--) {
		KUNIT_EXPECT_EQ(test, conn->recv_credits, receives);
		KUNIT_EXPECT_EQ(test, svcrdma_service_grant(t->service, 0), 2);
		KUNIT_EXPECT_EQ(test, conn->recv_credits, receives);
		KUNIT_EXPECT_EQ(test, svcrdma_service_grant(t->service, FAKE_CREDITS), 2);
	}
	t->service->grant.wanted = 4;
	KUNIT_EXPECT_EQ(test, svcrdma_service_grant(t->service, 3), 3);
	KUNIT_EXPECT_EQ(test, svcrdma_service_grant(t->service, FAKE_CREDITS), 3);
	KUNIT_EXPECT_EQ(test, conn->recv_credits, 3);
	end(test, t);
}

/* The connection is closed, so no Receives can be posted: the grant stays as it is. */
static void test_grant_fails(struct kunit *test)
{
	struct service_test *t = begin(test);

	fake_conn_close(test, &t->fake);
	t->service->grant.wanted = 8;
	KUNIT_EXPECT_EQ(test, svcrdma_service_grant(t->service, FAKE_CREDITS),
			RPCRDMA_FIRST_CREDITS);
	end(test, t);
}

/* After ->xpo_detach the RPC server may not exist any more. */
static void test_detached(struct kunit *test)
{
	struct service_test *t = begin(test);
	struct svcrdma_request *request = svcrdma_request_get(t->service);

	unsigned int num_recvs = t->fake.num_recvs;

	KUNIT_ASSERT_NOT_NULL(test, request);
	t->service->detached = true;
	/* No thread takes a message. */
	svcrdma_received(t->fake.conn, fake_take_recv(&t->fake, "call", 4));
	KUNIT_EXPECT_EQ(test, t->fake.num_recvs, num_recvs);
	t->fake.conn->ops->writable(t->fake.conn);
	/* No thread goes on with a request. */
	svcrdma_request_resume(request);
	KUNIT_EXPECT_EQ(test, enqueued, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->service->num_requests), t->service->num_idle);
	end(test, t);
}

/* The RPC server ends with the connection: what waits for its threads goes. */
static void test_discard(struct kunit *test)
{
	struct service_test *t = begin(test);
	struct svcrdma_service *service = t->service;
	struct svcrdma_request *idle = svcrdma_request_get(service);
	struct rpcrdma_recv *recv[2];
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, idle);
	for (i = 0; i < 2; i++) {
		struct svcrdma_request *request = svcrdma_request_get(service);

		KUNIT_ASSERT_NOT_NULL(test, request);
		if (i)
			svcrdma_read_wait(request, 0);
		else
			list_add(&request->list, &service->resume);
		recv[i] = fake_take_recv(&t->fake, "call", 4);
		list_add(&recv[i]->list, i ? &service->dropped : &service->received);
	}
	service->max_idle = 1;
	svcrdma_request_put(idle);
	KUNIT_EXPECT_EQ(test, service->num_idle, 1);
	/* The teardown frees what nobody holds. */
	KUNIT_ASSERT_TRUE(test, rpcrdma_conn_enter(t->fake.conn));
	service->xprt.xpt_ops->xpo_detach(&service->xprt);
	KUNIT_EXPECT_EQ(test, atomic_read(&service->num_requests), 0);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_FALSE(test, recv[i]->resource.held);
	rpcrdma_conn_leave(t->fake.conn);
	end(test, t);
}

static unsigned int exit_woken;

static int exit_wakes(struct wait_queue_entry *entry, unsigned int mode, int flags, void *key)
{
	const struct wait_bit_key *bit = key;

	exit_woken += (void *)bit->flags == &svcrdma_num_services;
	return 0;
}

/* The module is being unloaded, and waits for the last service. */
static void test_exit_is_woken(struct kunit *test)
{
	struct wait_queue_head *queue = __var_waitqueue(&svcrdma_num_services);
	struct wait_queue_entry entry;

	init_waitqueue_func_entry(&entry, exit_wakes);
	add_wait_queue(queue, &entry);
	exit_woken = 0;
	end(test, begin(test));
	remove_wait_queue(queue, &entry);
	KUNIT_EXPECT_EQ(test, exit_woken, 1);
}

static struct kunit_case service_cases[] = {
	KUNIT_CASE(test_established),
	KUNIT_CASE(test_send_comes_back),
	KUNIT_CASE(test_space_comes_back),
	KUNIT_CASE(test_read_goes_on),
	KUNIT_CASE(test_dropped),
	KUNIT_CASE(test_no_replies),
	KUNIT_CASE(test_lost),
	KUNIT_CASE(test_grant),
	KUNIT_CASE(test_grant_falls),
	KUNIT_CASE(test_grant_fails),
	KUNIT_CASE(test_detached),
	KUNIT_CASE(test_discard),
	KUNIT_CASE(test_exit_is_woken),
	{}
};

static struct kunit_suite service_suite = {
	.name = "rpcrdma_service",
	.test_cases = service_cases,
};

kunit_test_suites(&service_suite);
