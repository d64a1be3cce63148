// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of conn/: when an end looks whether the other is still there, with a device that
 * completes nothing by itself.
 */
#include <kunit/test.h>

#include "../conn/conn_private.h"

#define SQ_SIZE		4
#define EARLY		7	/* periods on iWARP before the usual ones */
#define EARLY_DELAY	(HZ / 20)	/* the first; each is twice as long as the one before */
#define PERIOD		(15 * HZ)
#define SERVER_PERIOD	(60 * HZ)

/* A connection, of a client but for test_server */
struct peer {
	struct ib_device ib;
	struct ib_port_data port;
	struct rpcrdma_device device;
	struct ib_qp qp;
	struct rpcrdma_conn *conn;
	struct ib_cqe *cqe;	/* of the last RDMA Write */
	unsigned int writes;
	unsigned int others;	/* work requests that are no RDMA Write of no octets */
	unsigned int calls;	/* of ->keepalive */
	unsigned int closed;
	int status;
};

static int peer_post(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct peer *peer = container_of(qp, struct peer, qp);

	if (wr->next || wr->opcode != IB_WR_RDMA_WRITE || wr->num_sge ||
	    !(wr->send_flags & IB_SEND_SIGNALED))
		peer->others++;
	peer->writes++;
	peer->cqe = wr->wr_cqe;
	return 0;
}

static void peer_keepalive(struct rpcrdma_conn *conn)
{
	struct peer *peer = conn->role;

	peer->calls++;
}

static void peer_closed(struct rpcrdma_conn *conn, int status)
{
	struct peer *peer = conn->role;

	peer->closed++;
	peer->status = status;
}

static const struct rpcrdma_conn_ops peer_ops = {
	.keepalive = peer_keepalive,
	.closed = peer_closed,
};

static struct peer *peer_make(struct kunit *test, bool server, bool iwarp)
{
	struct peer *peer = kunit_kzalloc(test, sizeof(*peer), GFP_KERNEL);
	struct rpcrdma_conn *conn;

	KUNIT_ASSERT_NOT_NULL(test, peer);
	conn = rpcrdma_conn_alloc(server);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	peer->conn = conn;
	peer->port.immutable.core_cap_flags = iwarp ? RDMA_CORE_PORT_IWARP :
						      RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	peer->ib.port_data = &peer->port;
	peer->ib.ops.post_send = peer_post;
	peer->device.ib = &peer->ib;
	peer->qp.device = &peer->ib;
	peer->qp.qp_context = conn;
	strscpy(conn->peer, "KUnit", sizeof(conn->peer));
	conn->ops = &peer_ops;
	conn->role = peer;
	conn->device = &peer->device;
	conn->qp = &peer->qp;
	conn->max_chain = 1;
	/* One that nobody asks to be signalled is not. */
	conn->depths.batch = SQ_SIZE;
	conn->sends.num = 2 * SQ_SIZE;
	conn->state = RPCRDMA_STATE_ESTABLISHED;
	rpcrdma_sq_init(&conn->sq, SQ_SIZE);
	return peer;
}

/* Hide the verbs resources from the teardown. */
static void forget_verbs(struct rpcrdma_conn *conn)
{
	conn->qp = NULL;
	conn->device = NULL;
	conn->sends.num = 0;
}

static void peer_close(struct peer *peer)
{
	forget_verbs(peer->conn);
	rpcrdma_conn_close(peer->conn, -ECANCELED);
	flush_workqueue(rpcrdma_teardown_wq);
}

static void peer_end(struct kunit *test, struct peer *peer)
{
	peer_close(peer);
	rpcrdma_chain_flush(peer->conn);
	KUNIT_EXPECT_EQ(test, peer->closed, 1);
	KUNIT_EXPECT_EQ(test, peer->others, 0);
	rpcrdma_conn_put(peer->conn);
}

static void complete_write(struct peer *peer, enum ib_wc_status status)
{
	struct ib_wc wc = { .wr_cqe = peer->cqe, .status = status, .qp = &peer->qp };

	peer->cqe->done(NULL, &wc);
}

/* The timer, which is stopped, goes off. */
static void go_off(struct peer *peer)
{
	struct work_struct *work = &peer->conn->keepalive.timer.work;

	work->func(work);
}

/* The period is over, now. */
static void tick(struct peer *peer)
{
	cancel_delayed_work_sync(&peer->conn->keepalive.timer);
	go_off(peer);
}

static void start(struct peer *peer)
{
	rpcrdma_keepalive_start(peer->conn);
}

/*
 * @begin begins a period of @delay jiffies. The early ones are short: the timer is stopped before
 * it can go off, however slow the machine is.
 */
static void expect_period(struct kunit *test, struct peer *peer, void (*begin)(struct peer *peer),
			  unsigned long delay)
{
	struct delayed_work *timer = &peer->conn->keepalive.timer;
	unsigned long before, expires;
	bool pending;

	local_bh_disable();
	before = jiffies;
	begin(peer);
	expires = timer->timer.expires;
	pending = cancel_delayed_work(timer);
	local_bh_enable();
	KUNIT_EXPECT_TRUE(test, pending);
	KUNIT_EXPECT_GE(test, expires - before, delay);
	KUNIT_EXPECT_LE(test, expires, jiffies + delay);
}

/* Nothing is heard for 15 s: an RDMA Write of no octets, and again as long as it is quiet. */
static void test_quiet(struct kunit *test)
{
	struct peer *peer = peer_make(test, false, false);
	unsigned int i;

	expect_period(test, peer, start, PERIOD);
	KUNIT_EXPECT_EQ(test, peer->writes, 0);
	for (i = 1; i <= 3; i++) {
		expect_period(test, peer, go_off, PERIOD);
		KUNIT_EXPECT_EQ(test, peer->writes, i);
		KUNIT_EXPECT_EQ(test, peer->calls, i);
		complete_write(peer, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(peer->conn));
	peer_end(test, peer);
}

/* What was heard counts for one period. */
static void test_heard(struct kunit *test)
{
	struct peer *peer = peer_make(test, false, false);

	expect_period(test, peer, start, PERIOD);
	WRITE_ONCE(peer->conn->keepalive.heard, true);
	expect_period(test, peer, go_off, PERIOD);
	KUNIT_EXPECT_EQ(test, peer->writes, 0);
	KUNIT_EXPECT_EQ(test, peer->calls, 1);
	tick(peer);
	KUNIT_EXPECT_EQ(test, peer->writes, 1);
	KUNIT_EXPECT_EQ(test, peer->calls, 2);
	peer_end(test, peer);
}

/* The queue pair repeats the RDMA Write itself. No other is posted until it is done. */
static void test_one_write(struct kunit *test)
{
	struct peer *peer = peer_make(test, false, false);

	rpcrdma_keepalive_start(peer->conn);
	tick(peer);
	tick(peer);
	tick(peer);
	KUNIT_EXPECT_EQ(test, peer->writes, 1);
	KUNIT_EXPECT_EQ(test, peer->calls, 3);
	complete_write(peer, IB_WC_SUCCESS);
	tick(peer);
	KUNIT_EXPECT_EQ(test, peer->writes, 2);
	peer_end(test, peer);
}

/* There is no space in the send queue: the next period tries again. */
static void test_full_queue(struct kunit *test)
{
	struct peer *peer = peer_make(test, false, false);

	rpcrdma_keepalive_start(peer->conn);
	KUNIT_EXPECT_TRUE(test, rpcrdma_sq_take(&peer->conn->sq, SQ_SIZE));
	tick(peer);
	KUNIT_EXPECT_EQ(test, peer->writes, 0);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&peer->conn->keepalive.timer));
	peer->conn->sq.free = SQ_SIZE;
	tick(peer);
	KUNIT_EXPECT_EQ(test, peer->writes, 1);
	peer_end(test, peer);
}

/* The peer does not acknowledge: the connection ends, and nothing is posted any more. */
static void test_dead_peer(struct kunit *test)
{
	struct peer *peer = peer_make(test, false, false);
	struct rpcrdma_conn *conn = peer->conn;

	rpcrdma_keepalive_start(conn);
	tick(peer);
	forget_verbs(conn);
	complete_write(peer, IB_WC_RETRY_EXC_ERR);
	flush_workqueue(rpcrdma_teardown_wq);
	KUNIT_EXPECT_EQ(test, peer->closed, 1);
	KUNIT_EXPECT_EQ(test, peer->status, -EIO);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&conn->keepalive.timer));
	peer_end(test, peer);
}

/* The period ends when the connection does: nothing is posted, and no other period begins. */
static void test_closing(struct kunit *test)
{
	struct peer *peer = peer_make(test, false, false);
	struct rpcrdma_conn *conn = peer->conn;

	rpcrdma_keepalive_start(conn);
	conn->state = RPCRDMA_STATE_CLOSING;
	tick(peer);
	KUNIT_EXPECT_EQ(test, peer->writes, 0);
	KUNIT_EXPECT_EQ(test, peer->calls, 0);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&conn->keepalive.timer));
	conn->state = RPCRDMA_STATE_ESTABLISHED;
	peer_end(test, peer);
}

/* The teardown stops the timer. */
static void test_teardown(struct kunit *test)
{
	struct peer *peer = peer_make(test, false, false);

	rpcrdma_keepalive_start(peer->conn);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&peer->conn->keepalive.timer));
	peer_close(peer);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&peer->conn->keepalive.timer));
	peer_end(test, peer);
}

/* A server has longer periods, no early ones on iWARP, and its role needs no callback. */
static void test_server(struct kunit *test)
{
	static const struct rpcrdma_conn_ops ops = { .closed = peer_closed };
	struct peer *peer;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		peer = peer_make(test, true, i);
		peer->conn->ops = &ops;
		expect_period(test, peer, start, SERVER_PERIOD);
		WRITE_ONCE(peer->conn->keepalive.heard, true);
		expect_period(test, peer, go_off, SERVER_PERIOD);
		KUNIT_EXPECT_EQ(test, peer->writes, 0);
		expect_period(test, peer, go_off, SERVER_PERIOD);
		KUNIT_EXPECT_EQ(test, peer->writes, 1);
		peer_end(test, peer);
	}
}

/*
 * On iWARP there are early periods. The role, which frees what is idle, is not called in
 * these.
 */
static void test_early(struct kunit *test)
{
	struct peer *peer = peer_make(test, false, true);
	unsigned int i;

	expect_period(test, peer, start, EARLY_DELAY);
	for (i = 1; i < EARLY + 2; i++) {
		expect_period(test, peer, go_off, i < EARLY ? EARLY_DELAY << i : PERIOD);
		KUNIT_EXPECT_EQ(test, peer->writes, i);
		KUNIT_EXPECT_EQ(test, peer->calls, i < EARLY ? 0 : i - EARLY + 1);
		complete_write(peer, IB_WC_SUCCESS);
	}
	peer_end(test, peer);
}

/* The early periods end with the first message. */
static void test_early_heard(struct kunit *test)
{
	struct peer *peer = peer_make(test, false, true);

	expect_period(test, peer, start, EARLY_DELAY);
	expect_period(test, peer, go_off, 2 * EARLY_DELAY);
	KUNIT_EXPECT_EQ(test, peer->writes, 1);
	WRITE_ONCE(peer->conn->keepalive.heard, true);
	expect_period(test, peer, go_off, PERIOD);
	KUNIT_EXPECT_EQ(test, peer->writes, 1);
	KUNIT_EXPECT_EQ(test, peer->calls, 1);
	peer_end(test, peer);
}

static struct kunit_case keepalive_cases[] = {
	KUNIT_CASE(test_quiet),
	KUNIT_CASE(test_heard),
	KUNIT_CASE(test_one_write),
	KUNIT_CASE(test_full_queue),
	KUNIT_CASE(test_dead_peer),
	KUNIT_CASE(test_closing),
	KUNIT_CASE(test_teardown),
	KUNIT_CASE(test_server),
	KUNIT_CASE(test_early),
	KUNIT_CASE(test_early_heard),
	{}
};

static struct kunit_suite keepalive_suite = {
	.name = "rpcrdma_keepalive",
	.test_cases = keepalive_cases,
};

kunit_test_suites(&keepalive_suite);
