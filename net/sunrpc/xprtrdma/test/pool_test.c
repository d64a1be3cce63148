// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of conn/: what a connection frees when it rests, with a device that counts.
 */
#include <kunit/test.h>
#include <linux/slab.h>

#include "../conn/conn_private.h"

#define MADE	8

/* A connection with Sends and registrations that the test makes; they are never posted */
struct rest {
	struct ib_device ib;
	struct ib_pd pd;
	struct rpcrdma_device device;
	struct rpcrdma_conn *conn;
	struct ib_mr ib_mr[MADE];
};

/* Tests run one at a time. */
static unsigned int deregistered;
static unsigned int asked;	/* for a registration, none of which is made */

static struct ib_mr *rest_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	asked++;
	return ERR_PTR(-ENOMEM);
}

static int rest_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	deregistered++;
	return 0;
}

static void rest_add_mr(struct kunit *test, struct rest *rest, unsigned int i)
{
	struct rpcrdma_conn *conn = rest->conn;
	struct rpcrdma_mr *mr;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	rpcrdma_object_made(RPCRDMA_OBJECT_MR);
	mr->sgl = kzalloc(sizeof(*mr->sgl), GFP_KERNEL);
	rest->ib_mr[i].device = &rest->ib;
	rest->ib_mr[i].pd = &rest->pd;
	mr->mr = &rest->ib_mr[i];
	mr->max_sg = 1;
	mr->conn = conn;
	list_add(&mr->resource.all, &conn->all_mrs);
	conn->mrs.num++;
	rpcrdma_pool_put(&conn->mrs, &mr->pooled, true);
}

static void rest_add_send(struct kunit *test, struct rest *rest)
{
	struct rpcrdma_conn *conn = rest->conn;
	struct rpcrdma_send *send;

	send = kzalloc(struct_size(send, sge, 1), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, send);
	rpcrdma_object_made(RPCRDMA_OBJECT_SEND);
	send->num_sge = 1;
	send->chain.conn = conn;
	conn->sends.num++;
	rpcrdma_pool_put(&conn->sends, &send->pooled, false);
}

static void rest_writable(struct rpcrdma_conn *conn)
{
}

static void rest_closed(struct rpcrdma_conn *conn, int status)
{
}

static const struct rpcrdma_conn_ops rest_ops = {
	.writable = rest_writable,
	.closed = rest_closed,
};

static struct rest *rest_make(struct kunit *test)
{
	struct rest *rest = kunit_kzalloc(test, sizeof(*rest), GFP_KERNEL);
	struct rpcrdma_conn *conn;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, rest);
	conn = rpcrdma_conn_alloc(false);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	strscpy(conn->peer, "KUnit", sizeof(conn->peer));
	rest->ib.ops.alloc_mr = rest_alloc_mr;
	rest->ib.ops.dereg_mr = rest_dereg_mr;
	rest->pd.device = &rest->ib;
	atomic_set(&rest->pd.usecnt, MADE);
	rest->device.ib = &rest->ib;
	rest->device.max_mr_pages = 1;
	rest->conn = conn;
	conn->device = &rest->device;
	conn->pd = &rest->pd;
	conn->ops = &rest_ops;
	conn->state = RPCRDMA_STATE_ESTABLISHED;
	for (i = 0; i < MADE; i++) {
		rest_add_mr(test, rest, i);
		rest_add_send(test, rest);
	}
	conn->depths.sends = MADE;
	deregistered = 0;
	asked = 0;
	return rest;
}

/* Hide the device from the teardown. */
static void rest_end(struct rest *rest)
{
	struct rpcrdma_conn *conn = rest->conn;

	rpcrdma_mr_destroy(conn);
	rpcrdma_send_destroy(conn);
	conn->device = NULL;
	conn->pd = NULL;
	rpcrdma_conn_close(conn, -ECANCELED);
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_conn_put(conn);
}

static void use_mrs(struct kunit *test, struct rpcrdma_conn *conn, unsigned int count)
{
	struct rpcrdma_mr *mr;

	while (count--) {
		mr = rpcrdma_mr_get(conn);
		KUNIT_ASSERT_NOT_NULL(test, mr);
		rpcrdma_mr_put(mr);
	}
}

/* A connection that sends now and then uses its Sends again. One that does so often makes more. */
static void test_few_sends(struct kunit *test)
{
	struct rest *rest = rest_make(test);
	struct rpcrdma_conn *conn = rest->conn;
	struct rpcrdma_send *send;
	unsigned int i;

	conn->send_size = 64;
	rpcrdma_pool_rest(conn, &conn->sends);
	rpcrdma_pool_rest(conn, &conn->sends);
	KUNIT_EXPECT_EQ(test, conn->sends.num, 1);
	for (i = 0; i < 2; i++) {
		conn->send_taken = jiffies - 2 * HZ;
		send = rpcrdma_send_get(conn);
		KUNIT_ASSERT_NOT_NULL(test, send);
		rpcrdma_send_put(send);
		KUNIT_EXPECT_EQ(test, conn->sends.num, 1);
	}
	send = rpcrdma_send_get(conn);
	KUNIT_ASSERT_NOT_NULL(test, send);
	rpcrdma_send_put(send);
	KUNIT_EXPECT_EQ(test, conn->sends.num, 2);
	rest_end(rest);
}

/* Registrations that nobody took since the last time go. */
static void test_rest_mrs(struct kunit *test)
{
	struct rest *rest = rest_make(test);
	struct rpcrdma_conn *conn = rest->conn;

	use_mrs(test, conn, MADE);
	KUNIT_EXPECT_TRUE(test, rpcrdma_pool_rest(conn, &conn->mrs));
	KUNIT_EXPECT_EQ(test, deregistered, 0);

	use_mrs(test, conn, 3);
	KUNIT_EXPECT_TRUE(test, rpcrdma_pool_rest(conn, &conn->mrs));
	KUNIT_EXPECT_EQ(test, deregistered, MADE - 3);
	KUNIT_EXPECT_EQ(test, conn->mrs.num_idle, 3);

	KUNIT_EXPECT_FALSE(test, rpcrdma_pool_rest(conn, &conn->mrs));
	KUNIT_EXPECT_EQ(test, deregistered, MADE);
	KUNIT_EXPECT_EQ(test, conn->mrs.num, 0);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&conn->mr_work));
	rest_end(rest);
}

/* Take so many Sends at the same time, and give them back. */
static void use_sends(struct kunit *test, struct rpcrdma_conn *conn, unsigned int count)
{
	struct rpcrdma_send *send[MADE];
	unsigned int i;

	for (i = 0; i < count; i++) {
		send[i] = rpcrdma_send_get(conn);
		KUNIT_ASSERT_NOT_NULL(test, send[i]);
	}
	while (i--)
		rpcrdma_send_put(send[i]);
}

/*
 * Sends that were not needed since the last time go, but for one. While there are as many as there
 * may be, none is made.
 */
static void test_rest_sends(struct kunit *test)
{
	struct rest *rest = rest_make(test);
	struct rpcrdma_conn *conn = rest->conn;
	unsigned int made;

	KUNIT_EXPECT_TRUE(test, rpcrdma_pool_rest(conn, &conn->sends));
	KUNIT_EXPECT_EQ(test, conn->sends.num, MADE);

	made = rpcrdma_objects_ever(RPCRDMA_OBJECT_SEND);
	use_sends(test, conn, 3);
	KUNIT_EXPECT_EQ(test, rpcrdma_objects_ever(RPCRDMA_OBJECT_SEND), made);
	KUNIT_EXPECT_TRUE(test, rpcrdma_pool_rest(conn, &conn->sends));
	KUNIT_EXPECT_EQ(test, conn->sends.num, 3);
	KUNIT_EXPECT_EQ(test, conn->sends.num_idle, 3);

	KUNIT_EXPECT_FALSE(test, rpcrdma_pool_rest(conn, &conn->sends));
	KUNIT_EXPECT_EQ(test, conn->sends.num, 1);
	rest_end(rest);
}

/* A Send in use stays, and an idle one with it. */
static void test_rest_sends_in_use(struct kunit *test)
{
	struct rest *rest = rest_make(test);
	struct rpcrdma_conn *conn = rest->conn;
	struct rpcrdma_send *send = rpcrdma_send_get(conn);

	KUNIT_ASSERT_NOT_NULL(test, send);
	KUNIT_EXPECT_TRUE(test, rpcrdma_pool_rest(conn, &conn->sends));
	KUNIT_EXPECT_TRUE(test, rpcrdma_pool_rest(conn, &conn->sends));
	KUNIT_EXPECT_EQ(test, conn->sends.num, 2);
	KUNIT_EXPECT_EQ(test, conn->sends.num_idle, 1);
	rpcrdma_send_put(send);
	rest_end(rest);
}

/* Registrations stay while swap depends on them, and go afterwards. */
static void test_rest_of_swap(struct kunit *test)
{
	struct rest *rest = rest_make(test);
	struct rpcrdma_conn *conn = rest->conn;
	atomic_t swapper = ATOMIC_INIT(1);
	unsigned int i;

	conn->config.swapper = &swapper;
	rpcrdma_rest_later(conn);
	for (i = 0; i < 3; i++)
		flush_delayed_work(&conn->rest_work);
	KUNIT_EXPECT_EQ(test, deregistered, 0);
	KUNIT_EXPECT_EQ(test, conn->sends.num, 1);
	atomic_set(&swapper, 0);
	for (i = 0; i < 2; i++)
		flush_delayed_work(&conn->rest_work);
	KUNIT_EXPECT_EQ(test, deregistered, MADE);
	conn->config.swapper = NULL;
	rest_end(rest);
}

/* rest_work queues itself until only what a connection keeps is left. So does who makes more. */
static void test_rest_again(struct kunit *test)
{
	struct rest *rest = rest_make(test);
	struct rpcrdma_conn *conn = rest->conn;
	unsigned int i;

	rpcrdma_rest_later(conn);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, delayed_work_pending(&conn->rest_work));
		flush_delayed_work(&conn->rest_work);
	}
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&conn->rest_work));
	KUNIT_EXPECT_EQ(test, deregistered, MADE);
	KUNIT_EXPECT_EQ(test, conn->sends.num, 1);
	KUNIT_EXPECT_NULL(test, rpcrdma_mr_get(conn));
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&conn->rest_work));
	flush_delayed_work(&conn->mr_work);
	KUNIT_EXPECT_EQ(test, asked, 1);
	rest_end(rest);
}

static struct kunit_case pool_cases[] = {
	KUNIT_CASE(test_few_sends),
	KUNIT_CASE(test_rest_mrs),
	KUNIT_CASE(test_rest_sends),
	KUNIT_CASE(test_rest_sends_in_use),
	KUNIT_CASE(test_rest_of_swap),
	KUNIT_CASE(test_rest_again),
	{}
};

static struct kunit_suite pool_suite = {
	.name = "rpcrdma_pool",
	.test_cases = pool_cases,
};

kunit_test_suites(&pool_suite);
