// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/endpoint.c: connecting and how it fails, closing and breaking, who has
 * a reference when, who is woken, and what a connection may ask of memory meanwhile. Slots, and
 * which time-outs end a connection.
 */
#include <kunit/test.h>
#include <linux/sched/mm.h>

#include "fake_client.h"

#define XID	0x1badcafe

/* Connecting */

static struct fake_client *endpoint_make(struct kunit *test)
{
	return fake_client_make(test, RPCRDMA_INLINE_MIN, RPCRDMA_VERSION_ONE);
}

static struct fake_client *endpoint_begin(struct kunit *test)
{
	return fake_client_begin(test, RPCRDMA_INLINE_MIN, RPCRDMA_VERSION_ONE);
}

static bool is_set(const struct fake_client *t, int bit)
{
	return test_bit(bit, &t->client->xprt.state);
}

/* An attempt is over: whoever waited for it goes on, and another may begin. */
static void expect_woken(struct kunit *test, struct fake_client *t, int status)
{
	KUNIT_EXPECT_FALSE(test, RPC_IS_QUEUED(&t->connector));
	KUNIT_EXPECT_EQ(test, t->connector.tk_status, status);
	KUNIT_EXPECT_FALSE(test, is_set(t, XPRT_CONNECTING));
	/* It had passed XPRT_LOCKED to the attempt, and has got it back since. */
	KUNIT_EXPECT_PTR_EQ(test, t->client->xprt.snd_task, &t->connector);
	KUNIT_EXPECT_FALSE(test, is_set(t, XPRT_SND_IS_COOKIE));
}

static void test_connect(struct kunit *test)
{
	struct fake_client *t = endpoint_make(test);
	struct rpc_xprt *xprt = &t->client->xprt;
	struct sockaddr_in *local = (struct sockaddr_in *)&t->fake.conn->local_addr;
	char source[INET6_ADDRSTRLEN];

	KUNIT_EXPECT_EQ(test, xprt->ops->get_srcaddr(xprt, source, sizeof(source)), -ENOTCONN);
	local->sin_family = AF_INET;
	local->sin_port = htons(17);
	xprt->connect_cookie = 7;
	t->client->reply_lost = true;
	/* A task asked for this because of the connection before. */
	set_bit(XPRT_CLOSE_WAIT, &xprt->state);
	fake_client_connect(t);
	expect_woken(test, t, -EAGAIN);
	KUNIT_EXPECT_TRUE(test, is_set(t, XPRT_CONNECTED));
	KUNIT_EXPECT_FALSE(test, is_set(t, XPRT_CLOSE_WAIT));
	KUNIT_EXPECT_PTR_EQ(test, t->client->ep, t->ep);
	KUNIT_EXPECT_PTR_EQ(test, t->ep->conn, t->fake.conn);
	KUNIT_EXPECT_EQ(test, kref_read(&t->ep->ref), 3);
	KUNIT_EXPECT_EQ(test, xprt->connect_cookie, 8);
	KUNIT_EXPECT_EQ(test, xprt->stat.connect_count, 1);
	KUNIT_EXPECT_FALSE(test, t->client->reply_lost);
	KUNIT_EXPECT_EQ(test, t->client->version, RPCRDMA_VERSION_ONE);
	KUNIT_EXPECT_GT(test, xprt->ops->get_srcaddr(xprt, source, sizeof(source)), 0);
	KUNIT_EXPECT_EQ(test, t->ep->max_mr_pages, FAKE_MR_PAGES);
	KUNIT_EXPECT_EQ(test, fake_cleanups(t), 0);
	fake_client_end(test, t);
}

/* What the client asks of conn/ */
static void test_config(struct kunit *test)
{
	struct fake_client *t = endpoint_make(test);
	struct rpc_xprt *xprt = &t->client->xprt;
	const struct rpcrdma_conn_config *config = &t->config;

	xprt->connect_timeout = 3 * HZ;
	t->client->wants_backward = true;
	fake_client_connect(t);
	KUNIT_EXPECT_PTR_EQ(test, config->role, (void *)t->ep);
	KUNIT_EXPECT_EQ(test, config->credits, FAKE_CREDITS);
	KUNIT_EXPECT_EQ(test, config->backward_credits, XPRT_RDMA_BACKWARD_CREDITS);
	KUNIT_EXPECT_EQ(test, config->params.send_size, xprt_rdma_max_inline_write);
	KUNIT_EXPECT_EQ(test, config->params.recv_size, xprt_rdma_max_inline_read);
	KUNIT_EXPECT_TRUE(test, config->params.remote_inv);
	KUNIT_EXPECT_FALSE(test, config->omit_private_data);
	KUNIT_EXPECT_EQ(test, config->version_max, RPCRDMA_VERSION_ONE);
	/* A Call as long as a Send may begin and end within a page. */
	KUNIT_EXPECT_EQ(test, config->send_pages,
			DIV_ROUND_UP(xprt_rdma_max_inline_write, PAGE_SIZE) + 2);
	KUNIT_EXPECT_TRUE(test, config->in_wq);
	KUNIT_EXPECT_PTR_EQ(test, config->swapper, &xprt->swapper);
	KUNIT_EXPECT_PTR_EQ(test, config->mrs_made, &t->client->stats.mrs_made);
	KUNIT_EXPECT_EQ(test, config->timeout_ms, 3000);
	KUNIT_EXPECT_EQ(test, t->source->sa_family, AF_UNSPEC);
	fake_client_end(test, t);
}

static void test_config_of_settings(struct kunit *test)
{
	struct fake_client *t = endpoint_make(test);
	unsigned int inline_write = xprt_rdma_max_inline_write;

	xprt_rdma_max_inline_write = XPRT_RDMA_GATHER_MIN;
	xprt_rdma_private_data = 0;
	xprt_rdma_remote_invalidation = 0;
	t->client->source.ss_family = AF_INET6;
	fake_client_connect(t);
	xprt_rdma_max_inline_write = inline_write;
	xprt_rdma_private_data = 1;
	xprt_rdma_remote_invalidation = 1;
	/* No Call that is gathered fits into such a Send. */
	KUNIT_EXPECT_EQ(test, t->config.send_pages, 0);
	KUNIT_EXPECT_EQ(test, t->config.backward_credits, 0);
	KUNIT_EXPECT_TRUE(test, t->config.omit_private_data);
	KUNIT_EXPECT_FALSE(test, t->config.params.remote_inv);
	KUNIT_EXPECT_PTR_EQ(test, t->source, (struct sockaddr *)&t->client->source);
	fake_client_end(test, t);
}

/* Data that are no multiple of a page may begin and end within one, too, and a tail follows. */
static void test_config_of_odd_size(struct kunit *test)
{
	struct fake_client *t = endpoint_make(test);
	unsigned int inline_write = xprt_rdma_max_inline_write;

	xprt_rdma_max_inline_write = XPRT_RDMA_GATHER_MIN + 4;
	fake_client_connect(t);
	xprt_rdma_max_inline_write = inline_write;
	KUNIT_EXPECT_EQ(test, t->config.send_pages,
			(XPRT_RDMA_GATHER_MIN + PAGE_SIZE) / PAGE_SIZE + 2);
	fake_client_end(test, t);
}

/* sunrpc and NFS read the sizes without asking the connection. */
static void test_published(struct kunit *test)
{
	struct fake_client *t = endpoint_begin(test);
	struct rpc_xprt *xprt = &t->client->xprt;

	KUNIT_EXPECT_EQ(test, xprt->max_payload,
			xprt_rdma_form_max_payload(1, RPCRDMA_INLINE_MIN, RPCRDMA_INLINE_MIN,
						   FAKE_MR_PAGES));
	KUNIT_EXPECT_EQ(test, t->client->backward_payload,
			RPCRDMA_INLINE_MIN - RPCRDMA_V1_HEADER_MIN);
	fake_client_end(test, t);

	/* The two directions differ. */
	t = endpoint_make(test);
	t->fake.conn->agreement.call_threshold = 8192;
	fake_client_connect(t);
	KUNIT_EXPECT_EQ(test, t->client->xprt.max_payload,
			xprt_rdma_form_max_payload(1, 8192, RPCRDMA_INLINE_MIN, FAKE_MR_PAGES));
	KUNIT_EXPECT_EQ(test, t->client->backward_payload,
			RPCRDMA_INLINE_MIN - RPCRDMA_V1_HEADER_MIN);
	fake_client_end(test, t);
}

/* Reclaim may need the connection, and swap may need more than that. */
static void expect_flags(struct kunit *test, int swapper, unsigned int flags)
{
	const unsigned int all = PF_MEMALLOC | PF_MEMALLOC_NOFS;
	struct fake_client *t = endpoint_make(test);
	struct work_struct *work = &t->client->connect_work.work;
	unsigned int before = current->flags;

	atomic_set(&t->client->xprt.swapper, swapper);
	fake_sleep(&t->client->xprt.pending, &t->connector);
	/* Late enough for the work to run here, and nowhere else */
	t->client->connect_at = jiffies;
	t->client->xprt.reestablish_timeout = HZ;
	xprt_rdma_ep_connect(&t->client->xprt, &t->connector);
	cancel_delayed_work_sync(&t->client->connect_work);
	t->client->connect_at = jiffies;
	work->func(work);
	fake_lock(t);
	KUNIT_EXPECT_EQ(test, t->connects, 1);
	KUNIT_EXPECT_EQ(test, t->flags & all, flags);
	KUNIT_EXPECT_EQ(test, current->flags & all, before & all);
	fake_client_end(test, t);
}

static void test_memory_flags(struct kunit *test)
{
	expect_flags(test, 0, PF_MEMALLOC_NOFS);
	expect_flags(test, 1, PF_MEMALLOC_NOFS | PF_MEMALLOC);
}

/* Attempts that fail */

struct status_row {
	const char *name;
	int status;
	int woken;
};

static const struct status_row status_rows[] = {
	{ "refused", -ECONNREFUSED, -ECONNREFUSED },
	{ "reset", -ECONNRESET, -ECONNRESET },
	{ "aborted", -ECONNABORTED, -ECONNABORTED },
	{ "unreachable", -EHOSTUNREACH, -EHOSTUNREACH },
	{ "protocol", -EPROTO, -EPROTO },
	{ "address in use", -EADDRINUSE, -EADDRINUSE },
	{ "not connected", -ENOTCONN, -ENOTCONN },
	{ "time-out", -ETIMEDOUT, -ETIMEDOUT },
	{ "no buffers", -ENOBUFS, -ENOBUFS },
	{ "no memory", -ENOMEM, -ENOBUFS },
	{ "try again", -EAGAIN, -ENOBUFS },
	{ "no files", -ENFILE, -ENOBUFS },
	{ "no device", -ENODEV, -EHOSTUNREACH },
	{ "no address", -EADDRNOTAVAIL, -EHOSTUNREACH },
	{ "no network", -ENETUNREACH, -ENETUNREACH },
	{ "network down", -ENETDOWN, -ENETDOWN },
	{ "anything else", -EINVAL, -ECONNABORTED },
};

KUNIT_ARRAY_PARAM_DESC(status, status_rows, name);

/* The teardown gives back the endpoint after it has said that the connection is closed. */
static void expect_last_ref(struct kunit *test, struct fake_client *t)
{
	flush_work(&t->fake.conn->teardown_work);
	KUNIT_EXPECT_EQ(test, kref_read(&t->ep->ref), 1);
}

/* Nothing is left of the attempt but the reference of the test. */
static void expect_failed(struct kunit *test, struct fake_client *t, int status)
{
	expect_woken(test, t, status);
	KUNIT_EXPECT_FALSE(test, is_set(t, XPRT_CONNECTED));
	KUNIT_EXPECT_NULL(test, t->client->ep);
	expect_last_ref(test, t);
	KUNIT_EXPECT_EQ(test, t->client->xprt.stat.connect_count, 0);
}

static void test_status(struct kunit *test)
{
	const struct status_row *row = test->param_value;
	struct fake_client *t = endpoint_make(test);

	t->fake.connect_error = row->status;
	fake_client_connect(t);
	expect_failed(test, t, row->woken);
	KUNIT_EXPECT_EQ(test, t->connects, 1);
	fake_client_end(test, t);
}

/* The attempt fails later: not at once, but by what the network or the server says. */

static void close_refused(struct fake_conn *fake)
{
	rpcrdma_conn_close(fake->conn, -ECONNREFUSED);
}

static void close_without_status(struct fake_conn *fake)
{
	rpcrdma_conn_close(fake->conn, 0);
}

static void expect_breaks(struct kunit *test, void (*stalls)(struct fake_conn *fake), int woken)
{
	struct fake_client *t = endpoint_make(test);

	t->fake.stalls = stalls;
	fake_client_connect(t);
	expect_failed(test, t, woken);
	/* sunrpc has nothing to close. */
	KUNIT_EXPECT_FALSE(test, is_set(t, XPRT_CLOSE_WAIT));
	fake_client_end(test, t);
}

static void test_breaks_while_connecting(struct kunit *test)
{
	expect_breaks(test, close_refused, -ECONNREFUSED);
	/* Whoever waits gets an error in any case. */
	expect_breaks(test, close_without_status, -ECONNABORTED);
}

static void do_nothing(struct fake_conn *fake)
{
}

/* sunrpc waits to destroy the transport, and nobody connects. */
static void test_abandoned(struct kunit *test)
{
	struct fake_client *t = endpoint_make(test);
	struct rpc_xprt *xprt = &t->client->xprt;
	unsigned int i;

	refcount_set(&xprt->kref.refcount, 0);
	fake_client_connect(t);
	KUNIT_EXPECT_EQ(test, t->connects, 0);
	expect_woken(test, t, -ECONNABORTED);

	/* The same a moment later, while the server does not answer: the attempt ends. */
	t->fake.stalls = do_nothing;
	refcount_set(&xprt->kref.refcount, 1);
	fake_sleep(&xprt->pending, &t->connector);
	xprt->reestablish_timeout = 0;
	xprt_rdma_ep_connect(xprt, &t->connector);
	for (i = 0; i < 10 * HZ && !READ_ONCE(t->connects); i++)
		schedule_timeout_uninterruptible(1);
	refcount_set(&xprt->kref.refcount, 0);
	flush_delayed_work(&t->client->connect_work);
	fake_lock(t);
	expect_failed(test, t, -ECONNABORTED);
	refcount_set(&xprt->kref.refcount, 1);
	fake_client_end(test, t);
}

/* When the next attempt begins */

struct pause_row {
	const char *name;
	long since;		/* the last one began, in jiffies before now */
	unsigned long pause;	/* after it */
	long left;		/* of that */
	unsigned long next;	/* pause after this one */
};

static const struct pause_row pause_rows[] = {
	{ "the first", 0, 0, 0, HZ / 4 },
	{ "soon after another", HZ, 12 * HZ, 11 * HZ, 24 * HZ },
	{ "later", 3 * HZ, 15 * HZ, 12 * HZ, 30 * HZ },
	{ "long ago", 100 * HZ, 4 * HZ, 0, 8 * HZ },
	{ "the longest pause", 0, 20 * HZ, 20 * HZ, 30 * HZ },
	{ "the last one is still to come", -20 * HZ, 12 * HZ, 12 * HZ, 24 * HZ },
};

KUNIT_ARRAY_PARAM_DESC(pause, pause_rows, name);

static void test_pause(struct kunit *test)
{
	const struct pause_row *row = test->param_value;
	struct fake_client *t = endpoint_make(test);
	struct rpc_xprt *xprt = &t->client->xprt;
	struct delayed_work *work = &t->client->connect_work;
	long left, slack = 10 * HZ;

	t->client->connect_at = jiffies - row->since;
	xprt->reestablish_timeout = row->pause;
	xprt_rdma_ep_connect(xprt, &t->connector);
	left = t->client->connect_at - jiffies;
	KUNIT_EXPECT_LE(test, left, row->left);
	KUNIT_EXPECT_GE(test, left, row->left - slack);
	KUNIT_EXPECT_EQ(test, xprt->reestablish_timeout, row->next);
	/* It looks once a second whether the transport is to be destroyed. */
	if (row->left > HZ)
		KUNIT_EXPECT_TRUE(test, time_before_eq(work->timer.expires, jiffies + HZ));
	flush_delayed_work(work);
	KUNIT_EXPECT_EQ(test, t->connects, row->left <= 0);
	KUNIT_EXPECT_EQ(test, delayed_work_pending(work), row->left > 0);
	fake_client_end(test, t);
}

/* A transport that is to be destroyed does not wait for its next attempt. */
static void test_no_pause_when_abandoned(struct kunit *test)
{
	struct fake_client *t = endpoint_make(test);
	struct rpc_xprt *xprt = &t->client->xprt;

	xprt->reestablish_timeout = 20 * HZ;
	refcount_set(&xprt->kref.refcount, 0);
	fake_client_connect(t);
	refcount_set(&xprt->kref.refcount, 1);
	expect_woken(test, t, -ECONNABORTED);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&t->client->connect_work));
	fake_client_end(test, t);
}

/* A server that refuses may soon be back; one that answers was never away. */
static void test_pause_after(struct kunit *test)
{
	struct fake_client *t = endpoint_make(test);
	struct rpc_xprt *xprt = &t->client->xprt;

	t->fake.connect_error = -ETIMEDOUT;
	t->client->connect_at = jiffies - 100 * HZ;
	xprt->reestablish_timeout = 8 * HZ;
	fake_client_connect(t);
	KUNIT_EXPECT_EQ(test, xprt->reestablish_timeout, 16 * HZ);
	t->fake.connect_error = -ECONNREFUSED;
	t->client->connect_at = jiffies - 100 * HZ;
	fake_client_connect(t);
	KUNIT_EXPECT_EQ(test, xprt->reestablish_timeout, 3 * HZ);
	t->fake.connect_error = 0;
	t->client->connect_at = jiffies - 100 * HZ;
	fake_client_connect(t);
	KUNIT_EXPECT_EQ(test, xprt->reestablish_timeout, 6 * HZ);

	xprt_rdma_ep_granted(t->ep, 1);
	KUNIT_EXPECT_EQ(test, xprt->reestablish_timeout, 0);
	/* Only the first Reply of a connection says that. */
	xprt->reestablish_timeout = HZ;
	xprt_rdma_ep_granted(t->ep, 2);
	KUNIT_EXPECT_EQ(test, xprt->reestablish_timeout, HZ);
	KUNIT_EXPECT_EQ(test, t->client->limit, 2);
	fake_client_end(test, t);
}

/* A refusal, long after the attempt before */
static void refuse(struct fake_client *t)
{
	t->client->connect_at = jiffies - 100 * HZ;
	fake_client_connect(t);
}

/*
 * A server that was there before may have restarted, so the task tries again soon, but not for
 * ever. A task that is to fail if it is refused does so at once.
 */
static void test_refused_soon(struct kunit *test)
{
	struct fake_client *t = endpoint_make(test);
	struct rpc_xprt *xprt = &t->client->xprt;
	unsigned int tries;

	xprt->stat.connect_count = 1;
	t->fake.connect_error = -ECONNREFUSED;
	for (tries = 0; tries < 4; tries++) {
		refuse(t);
		expect_woken(test, t, -EAGAIN);
		KUNIT_EXPECT_EQ(test, xprt->reestablish_timeout, (HZ / 4) << tries);
	}
	for (; tries < 6; tries++) {
		refuse(t);
		expect_woken(test, t, -ECONNREFUSED);
		KUNIT_EXPECT_EQ(test, xprt->reestablish_timeout, 3 * HZ);
	}
	/* The server answers, and is gone again. */
	xprt->reestablish_timeout = 0;
	refuse(t);
	expect_woken(test, t, -EAGAIN);
	t->connector.tk_flags = RPC_TASK_SOFTCONN;
	refuse(t);
	expect_woken(test, t, -ECONNREFUSED);
	/* With a short lease the pauses never get as long as sunrpc's. */
	t->connector.tk_flags = 0;
	xprt->max_reconnect_timeout = HZ;
	for (tries = 0; tries < 6; tries++) {
		refuse(t);
		expect_woken(test, t, -EAGAIN);
		KUNIT_EXPECT_LE(test, xprt->reestablish_timeout, HZ);
	}
	fake_client_end(test, t);
}

static bool nobody_waits;

static void note_release(struct rpc_xprt *xprt, struct rpc_task *task)
{
	nobody_waits = !xprt->pending.qlen;
	xprt_release_xprt(xprt, task);
}

/* Who sends as soon as XPRT_LOCKED is free waits for a Reply, and must not be told to try again. */
static void test_woken_before_unlock(struct kunit *test)
{
	struct fake_client *t = endpoint_make(test);
	struct rpc_xprt *xprt = &t->client->xprt;
	const struct rpc_xprt_ops *real = xprt->ops;
	struct rpc_xprt_ops ops = *real;

	ops.release_xprt = note_release;
	xprt->ops = &ops;
	nobody_waits = false;
	fake_client_connect(t);
	xprt->ops = real;
	KUNIT_EXPECT_TRUE(test, nobody_waits);
	fake_client_end(test, t);
}

/* Closing */

static void test_close(struct kunit *test)
{
	struct fake_client *t = endpoint_begin(test);
	struct rpc_xprt *xprt = &t->client->xprt;

	fake_sleep(&xprt->pending, &t->rpc.task);
	set_bit(XPRT_WRITE_SPACE, &xprt->state);
	xprt_rdma_ep_close(xprt);
	KUNIT_EXPECT_EQ(test, t->fake.conn->state, RPCRDMA_STATE_CLOSED);
	KUNIT_EXPECT_EQ(test, t->ep->status, -ESHUTDOWN);
	KUNIT_EXPECT_TRUE(test, completion_done(&t->ep->closed));
	KUNIT_EXPECT_NULL(test, t->client->ep);
	expect_last_ref(test, t);
	KUNIT_EXPECT_FALSE(test, is_set(t, XPRT_CONNECTED));
	KUNIT_EXPECT_FALSE(test, is_set(t, XPRT_WRITE_SPACE));
	/* sunrpc need not close what it closes. */
	KUNIT_EXPECT_FALSE(test, is_set(t, XPRT_CLOSE_WAIT));
	KUNIT_EXPECT_FALSE(test, RPC_IS_QUEUED(&t->rpc.task));
	KUNIT_EXPECT_EQ(test, t->rpc.task.tk_status, -ENOTCONN);
	KUNIT_EXPECT_EQ(test, t->client->version, 0);
	fake_client_end(test, t);
}

static void test_close_of_nothing(struct kunit *test)
{
	struct fake_client *t = endpoint_make(test);
	struct rpc_xprt *xprt = &t->client->xprt;

	fake_sleep(&xprt->pending, &t->rpc.task);
	xprt_rdma_ep_close(xprt);
	KUNIT_EXPECT_FALSE(test, RPC_IS_QUEUED(&t->rpc.task));
	KUNIT_EXPECT_EQ(test, t->rpc.task.tk_status, -ENOTCONN);
	fake_client_end(test, t);
}

/* The server, the network or the device ends it. sunrpc has to close, and then tasks go on. */
static void test_break(struct kunit *test)
{
	struct fake_client *t = endpoint_begin(test);

	rpcrdma_conn_close(t->fake.conn, -ECONNRESET);
	fake_conn_close(test, &t->fake);
	KUNIT_EXPECT_TRUE(test, is_set(t, XPRT_CLOSE_WAIT));
	KUNIT_EXPECT_TRUE(test, is_set(t, XPRT_CONNECTED));
	KUNIT_EXPECT_EQ(test, t->ep->status, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, t->client->version, 0);
	/* Of the client, until it closes, and of the test */
	KUNIT_EXPECT_PTR_EQ(test, t->client->ep, t->ep);
	KUNIT_EXPECT_EQ(test, kref_read(&t->ep->ref), 2);
	KUNIT_EXPECT_FALSE(test, t->client->stuck);
	xprt_rdma_ep_close(&t->client->xprt);
	KUNIT_EXPECT_EQ(test, kref_read(&t->ep->ref), 1);
	fake_client_end(test, t);
}

static void no_closed(struct rpcrdma_conn *conn, int status)
{
}

/* The device may go on using the memory of all slots, whatever connection comes next. */
static void test_stuck(struct kunit *test)
{
	static const struct rpcrdma_conn_ops no_role = { .closed = no_closed };
	struct fake_client *t = endpoint_begin(test);
	struct rpcrdma_conn *conn = t->fake.conn;

	conn->stuck = true;
	conn->ops->closed(conn, -EIO);
	conn->stuck = false;
	conn->ops = &no_role;
	KUNIT_EXPECT_TRUE(test, t->client->stuck);
	fake_client_end(test, t);
}

/* A registration that waits for its Reply goes with the connection. */
static void test_orphaned_mrs(struct kunit *test)
{
	struct fake_client *t = endpoint_begin(test);
	struct rpcrdma_mr *mr;
	unsigned int i;

	fake_make_mrs(test, &t->fake, 8);
	for (i = 0; i < 3; i++) {
		mr = rpcrdma_mr_get(t->fake.conn);
		KUNIT_ASSERT_NOT_NULL(test, mr);
		list_add(&mr->list, &t->ep->orphaned_mrs);
	}
	/* If they are not freed, the module warns when it is unloaded. */
	fake_client_end(test, t);
}

/* Credits and Receives */

static void test_write_space(struct kunit *test)
{
	struct fake_client *t = endpoint_begin(test);
	unsigned long *state = &t->client->xprt.state;

	set_bit(XPRT_WRITE_SPACE, state);
	t->ep->conn->ops->writable(t->ep->conn);
	KUNIT_EXPECT_FALSE(test, test_bit(XPRT_WRITE_SPACE, state));

	atomic_set(&t->ep->credits.in_flight, 2);
	set_bit(XPRT_WRITE_SPACE, state);
	xprt_rdma_ep_credit_back(t->ep);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->ep->credits.in_flight), 1);
	KUNIT_EXPECT_FALSE(test, test_bit(XPRT_WRITE_SPACE, state));
	fake_client_end(test, t);
}

static struct fake_client *begin_with_credits(struct kunit *test, u32 granted, int in_flight)
{
	struct fake_client *t = endpoint_begin(test);

	t->ep->credits.granted = granted;
	atomic_set(&t->ep->credits.in_flight, in_flight);
	return t;
}

/* More Receives are made when these are what is missing, and not before. */
static void test_grow(struct kunit *test)
{
	static const u32 steps[] = { 2, 4, 8, 12 };
	struct fake_client *t = begin_with_credits(test, 12, 0);
	unsigned int i, receives = t->fake.num_recvs;

	KUNIT_EXPECT_TRUE(test, xprt_rdma_ep_has_credit(t->ep));
	KUNIT_EXPECT_EQ(test, t->ep->credits.receives, 1);
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		KUNIT_EXPECT_EQ(test, t->fake.num_recvs, receives);
		atomic_set(&t->ep->credits.in_flight, t->ep->credits.receives);
		KUNIT_EXPECT_TRUE(test, xprt_rdma_ep_has_credit(t->ep));
		KUNIT_EXPECT_EQ(test, t->ep->credits.receives, steps[i]);
		KUNIT_EXPECT_GE(test, t->fake.num_recvs, steps[i]);
		KUNIT_EXPECT_EQ(test, t->client->limit, min(steps[i] + 1, 12U));
		receives = t->fake.num_recvs;
	}

	/* Now it is the grant. */
	atomic_set(&t->ep->credits.in_flight, 12);
	KUNIT_EXPECT_FALSE(test, xprt_rdma_ep_has_credit(t->ep));
	KUNIT_EXPECT_EQ(test, t->fake.num_recvs, receives);
	fake_client_end(test, t);
}

/* With a lower grant Receives for the Calls in flight do, and for one. Then more are made again. */
static void test_shrink(struct kunit *test)
{
	struct fake_client *t = begin_with_credits(test, 12, 9);
	struct rpcrdma_conn *conn = t->fake.conn;

	KUNIT_ASSERT_EQ(test, rpcrdma_recv_expect(conn, 12, 0), 0);
	t->ep->credits.receives = 12;
	KUNIT_EXPECT_TRUE(test, xprt_rdma_ep_has_credit(t->ep));
	t->ep->credits.granted = 2;
	KUNIT_EXPECT_FALSE(test, xprt_rdma_ep_has_credit(t->ep));
	KUNIT_EXPECT_EQ(test, t->ep->credits.receives, 9);
	KUNIT_EXPECT_EQ(test, conn->recv_credits, 9);
	atomic_set(&t->ep->credits.in_flight, 0);
	KUNIT_EXPECT_TRUE(test, xprt_rdma_ep_has_credit(t->ep));
	KUNIT_EXPECT_EQ(test, t->ep->credits.receives, 1);
	KUNIT_EXPECT_EQ(test, conn->recv_credits, 1);
	KUNIT_EXPECT_EQ(test, t->client->limit, 2);
	atomic_set(&t->ep->credits.in_flight, 1);
	KUNIT_EXPECT_TRUE(test, xprt_rdma_ep_has_credit(t->ep));
	KUNIT_EXPECT_EQ(test, t->ep->credits.receives, 2);
	KUNIT_EXPECT_EQ(test, conn->recv_credits, 2);
	fake_client_end(test, t);
}

/* A task that finds all slots in use gets the first one that is free again. */
static void test_slot_wait(struct kunit *test)
{
	struct fake_client *t = endpoint_begin(test);
	struct rpc_xprt *xprt = &t->client->xprt;
	struct rpc_rqst *rqst;

	KUNIT_ASSERT_EQ(test, xprt_rdma_slots_create(t->client), 0);
	t->client->limit = 1;
	xprt_rdma_slot_alloc(xprt, &t->rpc.task);
	rqst = t->rpc.task.tk_rqstp;
	KUNIT_ASSERT_NOT_NULL(test, rqst);
	set_bit(RPC_TASK_ACTIVE, &t->other.task.tk_runstate);
	xprt_rdma_slot_alloc(xprt, &t->other.task);
	KUNIT_EXPECT_EQ(test, t->other.task.tk_status, -EAGAIN);
	KUNIT_EXPECT_EQ(test, t->ep->conn->counters.slot_waits, 1);
	rpc_clear_running(&t->other.task);
	xprt_rdma_slot_free(xprt, rqst);
	KUNIT_EXPECT_PTR_EQ(test, t->other.task.tk_rqstp, rqst);
	KUNIT_EXPECT_EQ(test, t->client->in_use, 1);
	xprt_rdma_slot_free(xprt, rqst);
	KUNIT_EXPECT_EQ(test, t->client->in_use, 0);
	xprt_rdma_slot_alloc(xprt, &t->rpc.task);
	KUNIT_EXPECT_PTR_EQ(test, t->rpc.task.tk_rqstp, rqst);
	xprt_rdma_slot_free(xprt, rqst);
	/* One RPC at a time needs one slot, the first that there was. */
	KUNIT_EXPECT_EQ(test, xprt->num_reqs, 1);
	xprt_rdma_slots_destroy(t->client);
	t->rpc.task.tk_rqstp = NULL;
	t->other.task.tk_rqstp = NULL;
	fake_client_end(test, t);
}

#define TASKS	3

static void alloc_slots(struct rpc_xprt *xprt, struct rpc_task *tasks, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		set_bit(RPC_TASK_ACTIVE, &tasks[i].tk_runstate);
		xprt_rdma_slot_alloc(xprt, &tasks[i]);
		rpc_clear_running(&tasks[i]);
	}
}

/* A client with one slot, which the first of TASKS @tasks has: the others wait for one. */
static struct fake_client *begin_with_tasks(struct kunit *test, struct rpc_task **tasks)
{
	struct fake_client *t = endpoint_begin(test);

	*tasks = kunit_kcalloc(test, TASKS, sizeof(**tasks), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, *tasks);
	KUNIT_ASSERT_EQ(test, xprt_rdma_slots_create(t->client), 0);
	t->client->limit = 1;
	alloc_slots(&t->client->xprt, *tasks, TASKS);
	return t;
}

/* A higher limit wakes as many tasks as it allows. A slot that none of them takes is idle. */
static void test_slots_limit(struct kunit *test)
{
	const struct xprt_rdma_credits credits = { .granted = 2, .receives = 4 };
	struct rpc_task *tasks;
	struct fake_client *t = begin_with_tasks(test, &tasks);
	struct rpc_xprt *xprt = &t->client->xprt;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, t->ep->conn->counters.slot_waits, 2);
	xprt_rdma_slots_limit(t->client, &credits);
	KUNIT_EXPECT_EQ(test, t->client->in_use, 2);
	KUNIT_EXPECT_FALSE(test, RPC_IS_QUEUED(&tasks[1]));
	KUNIT_EXPECT_TRUE(test, RPC_IS_QUEUED(&tasks[2]));
	xprt_rdma_slot_free(xprt, tasks[0].tk_rqstp);
	KUNIT_EXPECT_FALSE(test, RPC_IS_QUEUED(&tasks[2]));
	for (i = 1; i < TASKS; i++)
		xprt_rdma_slot_free(xprt, tasks[i].tk_rqstp);

	/* Those that waited have just gone. */
	set_bit(XPRT_CONGESTED, &xprt->state);
	xprt_rdma_slots_limit(t->client, &credits);
	KUNIT_EXPECT_EQ(test, t->client->in_use, 0);
	alloc_slots(xprt, tasks, 2);
	KUNIT_EXPECT_EQ(test, xprt->num_reqs, 2);
	for (i = 0; i < 2; i++)
		xprt_rdma_slot_free(xprt, tasks[i].tk_rqstp);
	xprt_rdma_slots_destroy(t->client);
	fake_client_end(test, t);
}

/* Without a connection no task waits for a slot: those that wait cannot be killed in 7.3. */
static void test_slots_after_close(struct kunit *test)
{
	struct rpc_task *tasks;
	struct fake_client *t = begin_with_tasks(test, &tasks);
	struct rpc_xprt *xprt = &t->client->xprt;
	unsigned int i;

	KUNIT_EXPECT_TRUE(test, RPC_IS_QUEUED(&tasks[1]));
	xprt_rdma_ep_close(xprt);
	for (i = 0; i < TASKS; i++) {
		KUNIT_EXPECT_FALSE(test, RPC_IS_QUEUED(&tasks[i]));
		xprt_rdma_slot_free(xprt, tasks[i].tk_rqstp);
	}
	xprt_rdma_slots_destroy(t->client);
	fake_client_end(test, t);
}

/* Tasks that wait for a slot make no Receives, so the one that sends does. */
static void test_grow_for_slots(struct kunit *test)
{
	struct fake_client *t = begin_with_credits(test, 12, 0);

	set_bit(XPRT_CONGESTED, &t->client->xprt.state);
	/* No slot is free. */
	t->client->in_use = FAKE_CREDITS;
	KUNIT_EXPECT_TRUE(test, xprt_rdma_ep_has_credit(t->ep));
	KUNIT_EXPECT_EQ(test, t->ep->credits.receives, 2);
	KUNIT_EXPECT_EQ(test, t->client->limit, 3);
	clear_bit(XPRT_CONGESTED, &t->client->xprt.state);
	t->client->in_use = 0;
	fake_client_end(test, t);
}

/* A Call lacks a Receive, and there is no memory for one. */
static struct fake_client *begin_without_memory(struct kunit *test)
{
	struct fake_client *t = begin_with_credits(test, 12, FAKE_MESSAGES);

	t->ep->credits.receives = FAKE_MESSAGES;
	t->fake.conn->recv_size = 1U << 30;
	KUNIT_EXPECT_FALSE(test, xprt_rdma_ep_has_credit(t->ep));
	return t;
}

/* Without memory the Calls in flight stay as many. A task that waits tries again soon. */
static void test_grow_without_memory(struct kunit *test)
{
	struct fake_client *t = begin_without_memory(test);

	KUNIT_EXPECT_EQ(test, t->ep->credits.receives, FAKE_MESSAGES);
	KUNIT_EXPECT_TRUE(test, time_before_eq(t->ep->grow_again.timer.expires, jiffies + HZ / 5));
	/* Until then nobody asks for memory. Here that takes longer: nothing depends on it. */
	KUNIT_EXPECT_TRUE(test, mod_delayed_work(xprtiod_workqueue, &t->ep->grow_again, 60 * HZ));
	t->fake.conn->recv_size = t->fake.conn->send_size;
	KUNIT_EXPECT_FALSE(test, xprt_rdma_ep_has_credit(t->ep));
	set_bit(XPRT_WRITE_SPACE, &t->client->xprt.state);
	flush_delayed_work(&t->ep->grow_again);
	KUNIT_EXPECT_FALSE(test, is_set(t, XPRT_WRITE_SPACE));
	KUNIT_EXPECT_TRUE(test, xprt_rdma_ep_has_credit(t->ep));
	KUNIT_EXPECT_EQ(test, t->ep->credits.receives, 12);
	fake_client_end(test, t);
}

/* sysfs shows the grant as a congestion window. */
static void test_show_credits(struct kunit *test)
{
	struct fake_client *t = endpoint_begin(test);
	struct rpc_xprt *xprt = &t->client->xprt;

	KUNIT_EXPECT_EQ(test, xprt->cwnd, RPC_CWNDSCALE);
	xprt_rdma_ep_granted(t->ep, 12);
	KUNIT_EXPECT_EQ(test, xprt->cwnd, 12 * RPC_CWNDSCALE);
	fake_client_end(test, t);
}

/* Calls of tasks that were killed hold all credits, at two times in a row. */
static void test_wedged(struct kunit *test)
{
	struct fake_client *t = begin_with_credits(test, 2, 2);
	struct rpcrdma_conn *conn = t->fake.conn;

	atomic_set(&t->ep->credits.orphaned, 2);
	conn->ops->keepalive(conn);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(conn));
	atomic_set(&t->ep->credits.orphaned, 1);
	conn->ops->keepalive(conn);
	conn->ops->keepalive(conn);
	atomic_set(&t->ep->credits.orphaned, 2);
	conn->ops->keepalive(conn);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(conn));
	conn->ops->keepalive(conn);
	KUNIT_EXPECT_FALSE(test, rpcrdma_conn_established(conn));
	fake_conn_close(test, &t->fake);
	KUNIT_EXPECT_EQ(test, t->ep->status, -ETIMEDOUT);
	fake_client_end(test, t);
}

/* Time-outs */

/* What ends the connection: ->timer, ->wait_for_reply_request, or sunrpc, which ->timer asks to */
enum closes { NOTHING, AT_ONCE, ON_WAIT, TRANSPORT };

struct timer_row {
	const char *name;
	bool nfs4;
	bool old;		/* there has been another connection since the Call was sent */
	bool lost;		/* a Reply may have been discarded */
	bool processed;		/* the Reply was processed, and the task is to send again */
	bool answered;		/* the server has answered something */
	bool major;		/* the major time-out has expired */
	unsigned int waited;	/* seconds since the Call was sent */
	enum closes closes;
};

static const struct timer_row timer_rows[] = {
	{ "NFSv3", .closes = AT_ONCE },
	{ "NFSv3, another connection", .old = true },
	{ "NFSv3, processed", .processed = true, .closes = TRANSPORT },
	{ "NFSv4, a slow server", true, .answered = true, .waited = 100 },
	{ "NFSv4, a lost Reply", true, .lost = true, .answered = true, .closes = ON_WAIT },
	{ "NFSv4, a lost Reply, another connection", true, .lost = true, .old = true },
	{ "NFSv4, processed", true, .processed = true, .closes = TRANSPORT },
	{ "NFSv4, a silent server", true, .waited = 60, .closes = ON_WAIT },
	{ "NFSv4, silent for a short time", true, .waited = 50 },
	{ "NFSv4, overdue", true, .answered = true, .major = true, .waited = 60,
	  .closes = ON_WAIT },
};

KUNIT_ARRAY_PARAM_DESC(timer, timer_rows, name);

static void wait_for_reply(struct fake_client *t)
{
	struct rpc_xprt *xprt = &t->client->xprt;
	struct rpc_task *task = &t->rpc.task;

	set_bit(RPC_TASK_ACTIVE, &task->tk_runstate);
	task->tk_callback = NULL;
	spin_lock(&xprt->queue_lock);
	xprt->ops->wait_for_reply_request(task);
	spin_unlock(&xprt->queue_lock);
	rpc_clear_running(task);
	rpc_wake_up_queued_task(&xprt->pending, task);
}

/* Whether a time-out costs the connection, and when */
static void test_timer(struct kunit *test)
{
	static const struct rpc_timeout timeout = { .to_initval = 60 * HZ };
	const struct timer_row *row = test->param_value;
	struct fake_client *t = endpoint_begin(test);
	struct rpc_rqst *rqst = &t->rpc.request.rqst;
	struct rpc_xprt *xprt = &t->client->xprt;

	fake_rpc_begin(test, t, &t->rpc, XID, NULL, NULL);
	KUNIT_ASSERT_EQ(test, fake_rpc_send(&t->rpc), 0);
	KUNIT_ASSERT_TRUE(test, fake_server_gets(t, &t->rpc));
	if (row->processed)
		fake_server_replies(t, 24, 0);
	rqst->rq_reply_bytes_recvd = 0;
	rqst->rq_connect_cookie = xprt->connect_cookie - row->old;
	rqst->rq_majortimeo = jiffies + (row->major ? 0 : 3600 * HZ);
	t->rpc.request.sent = jiffies - row->waited * HZ;
	t->rpc.task.tk_client->cl_timeout = &timeout;
	t->rpc.task.tk_flags = row->nfs4 ? RPC_TASK_NO_RETRANS_TIMEOUT : 0;
	t->ep->credits.granted_any = row->answered;
	t->client->reply_lost = row->lost;
	xprt->ops->timer(xprt, &t->rpc.task);
	KUNIT_EXPECT_EQ(test, rpcrdma_conn_established(t->fake.conn), row->closes != AT_ONCE);
	if (row->closes != AT_ONCE)
		KUNIT_EXPECT_EQ(test, is_set(t, XPRT_CLOSE_WAIT), row->closes == TRANSPORT);
	wait_for_reply(t);
	KUNIT_EXPECT_EQ(test, rpcrdma_conn_established(t->fake.conn),
			row->closes == NOTHING || row->closes == TRANSPORT);
	fake_client_end(test, t);
}

/* The Reply has come in the meantime. */
static void test_timer_is_late(struct kunit *test)
{
	struct fake_client *t = endpoint_begin(test);

	fake_rpc_begin(test, t, &t->rpc, XID, NULL, NULL);
	KUNIT_ASSERT_EQ(test, fake_rpc_send(&t->rpc), 0);
	t->rpc.request.rqst.rq_connect_cookie = t->client->xprt.connect_cookie;
	t->rpc.request.rqst.rq_reply_bytes_recvd = 24;
	t->rpc.task.tk_status = -ETIMEDOUT;
	t->client->xprt.ops->timer(&t->client->xprt, &t->rpc.task);
	KUNIT_EXPECT_EQ(test, t->rpc.task.tk_status, 0);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(t->fake.conn));
	fake_client_end(test, t);
}

/* The timer of a connection does not run when it is closed: the endpoint may be gone. */
static void test_timer_ends(struct kunit *test)
{
	struct fake_client *t = begin_without_memory(test);

	KUNIT_EXPECT_TRUE(test, mod_delayed_work(xprtiod_workqueue, &t->ep->grow_again, 60 * HZ));
	fake_conn_close(test, &t->fake);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&t->ep->grow_again));
	fake_client_end(test, t);
}

static struct kunit_case endpoint_cases[] = {
	KUNIT_CASE(test_connect),
	KUNIT_CASE(test_config),
	KUNIT_CASE(test_config_of_settings),
	KUNIT_CASE(test_config_of_odd_size),
	KUNIT_CASE(test_published),
	KUNIT_CASE(test_memory_flags),
	KUNIT_CASE_PARAM(test_status, status_gen_params),
	KUNIT_CASE(test_breaks_while_connecting),
	KUNIT_CASE(test_abandoned),
	KUNIT_CASE_PARAM(test_pause, pause_gen_params),
	KUNIT_CASE(test_no_pause_when_abandoned),
	KUNIT_CASE(test_pause_after),
	KUNIT_CASE(test_refused_soon),
	KUNIT_CASE(test_woken_before_unlock),
	KUNIT_CASE(test_close),
	KUNIT_CASE(test_close_of_nothing),
	KUNIT_CASE(test_break),
	KUNIT_CASE(test_stuck),
	KUNIT_CASE(test_orphaned_mrs),
	KUNIT_CASE(test_write_space),
	KUNIT_CASE(test_grow),
	KUNIT_CASE(test_shrink),
	KUNIT_CASE(test_slot_wait),
	KUNIT_CASE(test_slots_limit),
	KUNIT_CASE(test_slots_after_close),
	KUNIT_CASE(test_grow_for_slots),
	KUNIT_CASE(test_grow_without_memory),
	KUNIT_CASE(test_show_credits),
	KUNIT_CASE(test_wedged),
	KUNIT_CASE_PARAM(test_timer, timer_gen_params),
	KUNIT_CASE(test_timer_is_late),
	KUNIT_CASE(test_timer_ends),
	{}
};

static struct kunit_suite endpoint_suite = {
	.name = "rpcrdma_endpoint",
	.exit = fake_client_exit,
	.test_cases = endpoint_cases,
};

kunit_test_suites(&endpoint_suite);
