// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of conn/: the states of a connection, the limits for a server's
 * connections, and the depths of the queues. A copy of qp.c is compiled here, to have the
 * event handler that rdma_cm is given.
 */
#include <kunit/test.h>
#include <linux/hash.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

/* The names of the copy of qp.c */
#define rpcrdma_depths_init	conn_test_depths_init
#define rpcrdma_qp_create	conn_test_qp_create
#define rpcrdma_qp_drain	conn_test_qp_drain
#define rpcrdma_qp_destroy	conn_test_qp_destroy

#include "../conn/conn_private.h"

#define ANY_LIMIT	32768

/* States */

struct role {
	unsigned int closed;
	int status;
};

static void role_closed(struct rpcrdma_conn *conn, int status)
{
	struct role *role = conn->role;

	role->closed++;
	role->status = status;
}

static const struct rpcrdma_conn_ops role_ops = { .closed = role_closed };

static struct rpcrdma_conn *conn_make(struct kunit *test, bool server,
				      struct role *role)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_alloc(server);

	KUNIT_ASSERT_NOT_NULL(test, conn);
	strscpy(conn->peer, "KUnit", sizeof(conn->peer));
	conn->ops = &role_ops;
	conn->role = role;
	return conn;
}

/* The way of a connection at either end. It goes step by step, and never back. */
static const enum rpcrdma_state ways[][5] = {
	{
		RPCRDMA_STATE_RESOLVING, RPCRDMA_STATE_CONNECTING, RPCRDMA_STATE_ESTABLISHED,
		RPCRDMA_STATE_CLOSING, RPCRDMA_STATE_CLOSED
	}, {
		RPCRDMA_STATE_PENDING, RPCRDMA_STATE_ACCEPTING, RPCRDMA_STATE_ESTABLISHED,
		RPCRDMA_STATE_CLOSING, RPCRDMA_STATE_CLOSED
	},
};

/* Only the end may come sooner. */
static bool may_follow(unsigned int from, unsigned int to)
{
	unsigned int way, step;

	if (to == RPCRDMA_STATE_CLOSING)
		return from < RPCRDMA_STATE_CLOSING;
	for (way = 0; way < ARRAY_SIZE(ways); way++)
		for (step = 1; step < ARRAY_SIZE(ways[0]); step++)
			if (ways[way][step - 1] == from && ways[way][step] == to)
				return true;
	return false;
}

static void test_states(struct kunit *test)
{
	struct role role = {};
	struct rpcrdma_conn *conn = conn_make(test, false, &role);
	unsigned int from, to;

	for (from = 0; from <= RPCRDMA_STATE_CLOSED; from++) {
		for (to = 0; to <= RPCRDMA_STATE_CLOSED; to++) {
			bool may = may_follow(from, to);

			conn->state = from;
			KUNIT_EXPECT_EQ_MSG(test, rpcrdma_conn_set_state(conn, to, NULL), may,
					    "from %u to %u", from, to);
			KUNIT_EXPECT_EQ(test, conn->state, may ? to : from);
		}
	}
	conn->state = RPCRDMA_STATE_RESOLVING;
	rpcrdma_conn_close(conn, -ECANCELED);
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_conn_put(conn);
}

/* However far it has come, it ends, and its role is told. Then nothing happens any more. */
static void test_closes_in_each_state(struct kunit *test)
{
	unsigned int way, step, to;

	for (way = 0; way < ARRAY_SIZE(ways); way++) {
		for (step = 0; ways[way][step] != RPCRDMA_STATE_CLOSING; step++) {
			struct role role = {};
			struct rpcrdma_conn *conn = conn_make(test, way, &role);

			conn->state = ways[way][step];
			rpcrdma_conn_close(conn, -ECANCELED);
			flush_workqueue(rpcrdma_teardown_wq);
			KUNIT_EXPECT_EQ(test, role.closed, 1);
			KUNIT_EXPECT_EQ(test, role.status, -ECANCELED);
			for (to = 0; to <= RPCRDMA_STATE_CLOSED; to++)
				KUNIT_EXPECT_FALSE(test, rpcrdma_conn_set_state(conn, to, NULL));
			KUNIT_EXPECT_EQ(test, kref_read(&conn->ref), 1);
			rpcrdma_conn_put(conn);
		}
	}
}

/* ->closed is called once, with the first cause. The admission follows the state. */
static void test_closes_once(struct kunit *test)
{
	struct role role = {};
	struct rpcrdma_conn *conn = conn_make(test, true, &role);

	rpcrdma_admission_set(conn, RPCRDMA_ADMISSION_WAITING);
	KUNIT_EXPECT_EQ(test, conn->admission, RPCRDMA_ADMISSION_WAITING);
	KUNIT_EXPECT_TRUE(test, rpcrdma_admission_begin(conn));
	KUNIT_EXPECT_EQ(test, conn->admission, RPCRDMA_ADMISSION_BEGINNING);
	rpcrdma_conn_set_state(conn, RPCRDMA_STATE_ACCEPTING, NULL);
	rpcrdma_conn_set_state(conn, RPCRDMA_STATE_ESTABLISHED, NULL);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(conn));
	KUNIT_EXPECT_EQ(test, conn->admission, RPCRDMA_ADMISSION_ESTABLISHED);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_enter(conn));
	rpcrdma_conn_leave(conn);

	rpcrdma_conn_close(conn, -ECONNRESET);
	rpcrdma_conn_close(conn, -EIO);
	flush_workqueue(rpcrdma_teardown_wq);
	KUNIT_EXPECT_EQ(test, role.closed, 1);
	KUNIT_EXPECT_EQ(test, role.status, -ECONNRESET);
	KUNIT_EXPECT_FALSE(test, rpcrdma_conn_enter(conn));
	KUNIT_EXPECT_EQ(test, conn->admission, RPCRDMA_ADMISSION_NONE);
	KUNIT_EXPECT_FALSE(test, rpcrdma_admission_begin(conn));
	rpcrdma_conn_close(conn, -EIO);
	flush_workqueue(rpcrdma_teardown_wq);
	KUNIT_EXPECT_EQ(test, role.closed, 1);
	rpcrdma_conn_put(conn);
}

/* A request that was given up keeps its place until the listener drops it. */
static void test_given_up_waits(struct kunit *test)
{
	struct role role = {};
	struct rpcrdma_conn *conn = conn_make(test, true, &role);

	rpcrdma_admission_set(conn, RPCRDMA_ADMISSION_WAITING);
	rpcrdma_conn_close(conn, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, conn->admission, RPCRDMA_ADMISSION_WAITING);
	flush_workqueue(rpcrdma_teardown_wq);
	KUNIT_EXPECT_EQ(test, conn->admission, RPCRDMA_ADMISSION_WAITING);
	KUNIT_EXPECT_FALSE(test, rpcrdma_admission_begin(conn));
	KUNIT_EXPECT_EQ(test, conn->admission, RPCRDMA_ADMISSION_NONE);
	rpcrdma_conn_put(conn);
}

/* A device that does not stop, or not at once */

struct stuck {
	struct ib_device ib;
	struct ib_port_data port;
	struct ib_cq cq;
	struct rpcrdma_chain chain;
	struct ib_send_wr wr;
	unsigned int refusals;	/* times that the queue pair will not stop */
	enum ib_qp_state state;	/* that it tells */
	bool stopped;
	bool noio;		/* each of them was told so without I/O for memory */
	bool destroyed;		/* the queue pair */
	unsigned int done;
	bool done_early;
	bool done_entered;
};

static struct stuck *stuck_of(const struct ib_qp *qp)
{
	return container_of(qp->device, struct stuck, ib);
}

static int stuck_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			   struct ib_udata *udata)
{
	struct stuck *stuck = stuck_of(qp);

	stuck->noio &= !!(current->flags & PF_MEMALLOC_NOIO);
	if (stuck->refusals) {
		stuck->refusals--;
		return -ENOMEM;
	}
	stuck->stopped = true;
	return 0;
}

static int stuck_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			  struct ib_qp_init_attr *init_attr)
{
	attr->qp_state = stuck_of(qp)->state;
	return 0;
}

static int stuck_post(struct ib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad)
{
	return 0;
}

static int stuck_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	stuck_of(qp)->destroyed = true;
	return 0;
}

static void stuck_drain(struct ib_qp *qp)
{
}

static void stuck_done(struct rpcrdma_chain *chain, int status)
{
	struct stuck *stuck = container_of(chain, struct stuck, chain);

	stuck->done++;
	stuck->done_early = !stuck->stopped && !chain->conn->stuck;
	stuck->done_entered = rpcrdma_conn_enter(chain->conn);
	if (stuck->done_entered)
		rpcrdma_conn_leave(chain->conn);
}

static int no_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

/* The RDMA core frees it in ib_destroy_qp(). */
static struct ib_qp *stuck_qp(struct kunit *test, struct stuck *stuck, struct rpcrdma_conn *conn)
{
	struct ib_qp *qp = kzalloc(sizeof(*qp), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, qp);
	stuck->ib.port_data = &stuck->port;
	stuck->ib.ops.modify_qp = stuck_modify_qp;
	stuck->ib.ops.query_qp = stuck_query_qp;
	stuck->ib.ops.destroy_qp = stuck_destroy_qp;
	stuck->ib.ops.post_send = stuck_post;
	stuck->ib.ops.drain_sq = stuck_drain;
	stuck->ib.ops.drain_rq = stuck_drain;
	spin_lock_init(&stuck->ib.cq_pools_lock);
	stuck->cq.device = &stuck->ib;
	qp->device = &stuck->ib;
	qp->real_qp = qp;
	qp->qp_context = conn;
	spin_lock_init(&qp->mr_lock);
	INIT_LIST_HEAD(&qp->rdma_mrs);
	INIT_LIST_HEAD(&qp->sig_mrs);
	rpcrdma_compat_init_qp(qp);
	return qp;
}

/* Close a connection with a chain posted to such a device. Return: the connection. */
static struct rpcrdma_conn *close_stuck(struct kunit *test, struct stuck *stuck,
					struct role *role)
{
	struct rpcrdma_conn *conn = conn_make(test, false, role);
	struct rdma_cm_id *id;

	id = rdma_create_id(&init_net, no_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(id));
	id->qp = stuck_qp(test, stuck, conn);
	conn->cm_id = id;
	conn->qp = id->qp;
	conn->cq = &stuck->cq;
	conn->recv_open = true;
	conn->state = RPCRDMA_STATE_ESTABLISHED;
	stuck->noio = true;
	stuck->chain.done = stuck_done;
	rpcrdma_sq_init(&conn->sq, 2);
	conn->max_chain = 1;
	KUNIT_EXPECT_EQ(test, rpcrdma_chain_post(conn, &stuck->chain, &stuck->wr, &stuck->wr,
						 RPCRDMA_POST_SIGNALLED, NULL), 0);
	rpcrdma_conn_close(conn, -ECONNRESET);
	flush_workqueue(rpcrdma_teardown_wq);
	KUNIT_EXPECT_TRUE(test, stuck->noio);
	KUNIT_EXPECT_EQ(test, stuck->done, 1);
	KUNIT_EXPECT_FALSE(test, stuck->done_early);
	KUNIT_EXPECT_EQ(test, stuck->done_entered, !conn->stuck);
	KUNIT_EXPECT_EQ(test, role->closed, 1);
	KUNIT_EXPECT_FALSE(test, rpcrdma_conn_enter(conn));
	return conn;
}

/* The driver has no memory at first. The queue pair is stopped before it is destroyed. */
static void test_device_stops_late(struct kunit *test)
{
	struct stuck *stuck = kunit_kzalloc(test, sizeof(*stuck), GFP_KERNEL);
	struct role role = {};

	KUNIT_ASSERT_NOT_NULL(test, stuck);
	stuck->refusals = 3;
	rpcrdma_conn_put(close_stuck(test, stuck, &role));
	KUNIT_EXPECT_TRUE(test, stuck->stopped);
	KUNIT_EXPECT_TRUE(test, stuck->destroyed);
}

/* Some drivers refuse to stop what has stopped. What they tell then is believed, not at once. */
static void test_device_has_stopped(struct kunit *test)
{
	struct stuck *stuck = kunit_kzalloc(test, sizeof(*stuck), GFP_KERNEL);
	struct role role = {};

	KUNIT_ASSERT_NOT_NULL(test, stuck);
	stuck->refusals = UINT_MAX;
	stuck->state = IB_QPS_ERR;
	stuck->stopped = true;
	rpcrdma_conn_put(close_stuck(test, stuck, &role));
	KUNIT_EXPECT_TRUE(test, stuck->destroyed);
	KUNIT_EXPECT_EQ(test, UINT_MAX - stuck->refusals, 3);
}

/*
 * RPCs get their chains and the end of the connection. All that the device may still reach
 * stays, and what it completes later does no harm.
 */
static void test_device_does_not_stop(struct kunit *test)
{
	struct stuck *stuck = kunit_kzalloc(test, sizeof(*stuck), GFP_KERNEL);
	struct role role = {};
	struct rpcrdma_conn *conn;
	struct ib_wc wc = {};

	KUNIT_ASSERT_NOT_NULL(test, stuck);
	stuck->refusals = UINT_MAX;
	conn = close_stuck(test, stuck, &role);
	wc.qp = conn->qp;
	wc.wr_cqe = &stuck->chain.cqe;
	wc.wr_cqe->done(NULL, &wc);
	KUNIT_EXPECT_EQ(test, stuck->done, 1);
	KUNIT_EXPECT_FALSE(test, stuck->destroyed);
	KUNIT_EXPECT_TRUE(test, conn->stuck);
	KUNIT_EXPECT_EQ(test, kref_read(&conn->ref), 2);

	/* Undo what is for good. */
	module_put(THIS_MODULE);
	rpcrdma_conn_put(conn);
	rpcrdma_conn_put(conn);
	kfree(wc.qp);
}

/* Nor does it, but nothing was posted: it has nothing that would have to be kept. */
static void test_device_has_nothing(struct kunit *test)
{
	struct stuck *stuck = kunit_kzalloc(test, sizeof(*stuck), GFP_KERNEL);
	struct role role = {};
	struct rpcrdma_conn *conn = conn_make(test, false, &role);

	KUNIT_ASSERT_NOT_NULL(test, stuck);
	stuck->refusals = UINT_MAX;
	conn->cm_id = rdma_create_id(&init_net, no_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(conn->cm_id));
	conn->cm_id->qp = stuck_qp(test, stuck, conn);
	conn->qp = conn->cm_id->qp;
	conn->cq = &stuck->cq;
	rpcrdma_conn_close(conn, -ECONNREFUSED);
	flush_workqueue(rpcrdma_teardown_wq);
	KUNIT_EXPECT_TRUE(test, stuck->destroyed);
	KUNIT_EXPECT_FALSE(test, conn->stuck);
	KUNIT_EXPECT_EQ(test, role.closed, 1);
	rpcrdma_conn_put(conn);
}

/* What a device says when a queue pair is made or is to stop, and while it is used */

#define QP_TRIES	100	/* then even an endless search ends */

static struct ib_qp_init_attr qp_attr;	/* of the one that was made or refused last */
static unsigned int qp_tries;
static u32 qp_most;	/* the largest send queue; zero: any */
static u32 qp_more;	/* The send queue is larger by this. */

static int qp_made(struct rdma_cm_id *id, struct ib_pd *pd, struct ib_qp_init_attr *attr)
{
	qp_attr = *attr;
	if (++qp_tries == QP_TRIES)
		return -ENODEV;
	if (qp_most && attr->cap.max_send_wr > qp_most)
		return -ENOMEM;
	attr->cap.max_send_wr += qp_more;
	return 0;
}

static struct ib_pd *no_pd(struct ib_device *device, unsigned int flags)
{
	return ERR_PTR(-ENOMEM);
}

#define rdma_create_qp	qp_made
#undef ib_alloc_pd
#define ib_alloc_pd	no_pd

#include "../conn/qp.c"

static void test_queue_pair_fails(struct kunit *test)
{
	static const enum ib_event_type events[] = {
		IB_EVENT_QP_FATAL, IB_EVENT_QP_REQ_ERR, IB_EVENT_QP_ACCESS_ERR,
		IB_EVENT_PATH_MIG_ERR,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		struct role role = {};
		struct rpcrdma_conn *conn = conn_make(test, false, &role);
		struct ib_event event = { .event = events[i] };
		struct rdma_cm_id id = {};

		conn->cm_id = &id;
		KUNIT_EXPECT_EQ(test, qp_create(conn), 0);
		conn->cm_id = NULL;
		conn->state = RPCRDMA_STATE_ESTABLISHED;
		qp_attr.event_handler(&event, qp_attr.qp_context);
		flush_workqueue(rpcrdma_wq);
		rpcrdma_conn_close(conn, -ECANCELED);
		flush_workqueue(rpcrdma_teardown_wq);
		KUNIT_EXPECT_EQ(test, role.status, -EIO);
		rpcrdma_conn_put(conn);
	}
}

struct qp_row {
	const char *name;
	u32 most;
	u32 more;
	struct rpcrdma_depths depths;
	int err;
	u32 asked;	/* entries of the send queue, in the end */
	u32 sges;	/* beside the header's */
	u32 size;	/* work requests that may be posted */
	u32 chain;
	u32 rw;		/* contexts that the device is asked for, of 3 */
};

#define DEPTHS(entries, completions) \
	{ .sq = (entries), .rq = 10, .rw_contexts = 3, .cqes = (completions) }

static const struct qp_row qp_rows[] = {
	{ "as asked for", 0, 0, DEPTHS(200, 210), 0, 200, 5, 199, 99, 3 },
	{ "more than asked for", 0, 56, DEPTHS(200, 210), 0, 200, 5, 199, 99, 3 },
	{ "no more, though there are completions", 0, 0, DEPTHS(200, 410), 0, 200, 5, 199, 99, 3 },
	{ "a smaller queue", 100, 0, DEPTHS(200, 210), 0, 100, 3, 99, 49, 2 },
	{ "none", 1, 0, DEPTHS(200, 210), -ENOMEM, 64, 1, 0, 0, 1 },
	{ "none so small", 1, 0, DEPTHS(40, 50), -ENOMEM, 40, 1, 0, 0, 1 },
};

KUNIT_ARRAY_PARAM_DESC(qp, qp_rows, name);

/* What a device makes, or does not, and what of it may be used */
static void test_queue_pair_size(struct kunit *test)
{
	const struct qp_row *row = test->param_value;
	struct role role = {};
	struct rpcrdma_conn *conn = conn_make(test, false, &role);
	struct rdma_cm_id id = {};

	qp_tries = 0;
	qp_most = row->most;
	qp_more = row->more;
	conn->depths = row->depths;
	conn->send_sges = 5;
	conn->cm_id = &id;
	KUNIT_EXPECT_EQ(test, qp_create(conn), row->err);
	conn->cm_id = NULL;
	KUNIT_EXPECT_EQ(test, qp_attr.cap.max_send_wr, row->asked);
	KUNIT_EXPECT_EQ(test, qp_attr.cap.max_send_sge, 1 + row->sges);
	KUNIT_EXPECT_EQ(test, qp_attr.cap.max_rdma_ctxs, row->rw);
	KUNIT_EXPECT_EQ(test, conn->sq.size, row->size);
	KUNIT_EXPECT_EQ(test, conn->max_chain, row->chain);
	qp_most = 0;
	qp_more = 0;
	rpcrdma_conn_close(conn, -ECANCELED);
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_conn_put(conn);
}

/* A Send gathers no more pages than the role and the device allow. */
static void test_pages_of_a_send(struct kunit *test)
{
	struct ib_device *ib = kunit_kzalloc(test, sizeof(*ib), GFP_KERNEL);
	struct rpcrdma_device device = { .ib = ib };
	struct role role = {};
	struct rpcrdma_conn *conn = conn_make(test, false, &role);
	struct rdma_cm_id id = {};
	unsigned int pages;

	KUNIT_ASSERT_NOT_NULL(test, ib);
	ib->attrs.max_send_sge = 6;
	conn->device = &device;
	conn->cm_id = &id;
	for (pages = 4; pages < 7; pages++) {
		conn->config.send_pages = pages;
		mutex_lock(&conn->setup);
		KUNIT_EXPECT_EQ(test, rpcrdma_qp_create(conn), -ENOMEM);
		mutex_unlock(&conn->setup);
		KUNIT_EXPECT_EQ(test, conn->send_sges, min(pages, 5U));
	}
	conn->cm_id = NULL;
	conn->device = NULL;
	rpcrdma_conn_close(conn, -ECANCELED);
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_conn_put(conn);
}

/* Limits for a server's connections that are not established */

#define HOSTS		4
#define HOST_SHARE	64
#define MANY		1000
#define UNKEYED_BITS	9

/* Hosts with an even number have IPv6 addresses. */
static struct sockaddr_storage host_address(u8 host, u16 port)
{
	struct sockaddr_storage address = {};
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
	struct sockaddr_in *v4 = (struct sockaddr_in *)&address;

	if (host % 2) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		v4->sin_addr.s_addr = htonl(0x0a000000 + host);
	} else {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		v6->sin6_addr.s6_addr[0] = 0xfd;
		v6->sin6_addr.s6_addr[7] = host;	/* a different prefix */
	}
	return address;
}

static bool host_may_begin(u8 host)
{
	struct sockaddr_storage address = host_address(host, 1);

	return rpcrdma_admission_may(&address, RPCRDMA_ADMISSION_BEGINNING);
}

static bool host_may_wait(u8 host)
{
	struct sockaddr_storage address = host_address(host, 1);

	return rpcrdma_admission_may(&address, RPCRDMA_ADMISSION_WAITING);
}

static struct rpcrdma_conn *wait_conn_of(struct kunit *test,
					 const struct sockaddr_storage *address)
{
	struct rpcrdma_conn *conn = kunit_kzalloc(test, sizeof(*conn),
						  GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, conn);
	conn->server = true;
	conn->state = RPCRDMA_STATE_PENDING;
	conn->peer_addr = *address;
	spin_lock_init(&conn->post_lock);
	rpcrdma_admission_set(conn, RPCRDMA_ADMISSION_WAITING);
	return conn;
}

static struct rpcrdma_conn *wait_conn(struct kunit *test, u8 host, u16 port)
{
	struct sockaddr_storage address = host_address(host, port);

	return wait_conn_of(test, &address);
}

/* It counts no more then, as most of them have no teardown. */
static void establish_conn(struct rpcrdma_conn *conn)
{
	rpcrdma_admission_begin(conn);
	rpcrdma_conn_set_state(conn, RPCRDMA_STATE_ACCEPTING, NULL);
	rpcrdma_conn_set_state(conn, RPCRDMA_STATE_ESTABLISHED, NULL);
	rpcrdma_admission_set(conn, RPCRDMA_ADMISSION_NONE);
}

/* Each host may begin fewer than the host before, and there is a place for the next. */
static void test_each_host_has_a_share(struct kunit *test)
{
	struct rpcrdma_conn **conns = kunit_kcalloc(test, HOSTS * HOST_SHARE,
						    sizeof(*conns), GFP_KERNEL);
	unsigned int host, share, last = HOST_SHARE + 1, n = 0;

	KUNIT_ASSERT_NOT_NULL(test, conns);
	for (host = 0; host < HOSTS; host++) {
		for (share = 0; share < HOST_SHARE && host_may_begin(host); share++) {
			conns[n] = wait_conn(test, host, 1000 + share);
			rpcrdma_admission_begin(conns[n++]);
		}
		KUNIT_EXPECT_FALSE(test, host_may_begin(host));
		KUNIT_EXPECT_TRUE(test, host_may_wait(host));
		KUNIT_EXPECT_LT(test, share, last);
		KUNIT_EXPECT_GT(test, share, 0);
		last = share;
	}
	KUNIT_EXPECT_TRUE(test, host_may_begin(HOSTS));
	while (n)
		establish_conn(conns[--n]);
	KUNIT_EXPECT_TRUE(test, host_may_begin(0));
}

/* How many may wait depends on the memory, within bounds. */
static void test_waiting_by_memory(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, rpcrdma_admission_waiting(0), 2048);
	KUNIT_EXPECT_EQ(test, rpcrdma_admission_waiting(SZ_1G / PAGE_SIZE * 6), 3072);
	KUNIT_EXPECT_EQ(test, rpcrdma_admission_waiting(SZ_1G / PAGE_SIZE * 64), 16384);
}

static unsigned long memory_mib(unsigned long ram_gib, unsigned int beginning,
				unsigned int established)
{
	return rpcrdma_admission_memory(ram_gib * (SZ_1G / PAGE_SIZE), beginning, established) /
	       (SZ_1M / PAGE_SIZE);
}

/* How much must be available: a reserve, what those take that begin, what a host leaves. */
static void test_memory_of_one_more(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, memory_mib(0, 0, 0), 32 + 1);
	KUNIT_EXPECT_EQ(test, memory_mib(1, 0, 0), 32 + 1);
	KUNIT_EXPECT_EQ(test, memory_mib(16, 0, 0), 512 + 1);
	KUNIT_EXPECT_EQ(test, memory_mib(64, 0, 0), 1024 + 1);
	KUNIT_EXPECT_EQ(test, memory_mib(1, 255, 0), 32 + 256);
	KUNIT_EXPECT_EQ(test, memory_mib(1, 0, 1600), 32 + 1 + 100);
}

/* One connection counts as so many. */
static void count_conn(struct rpcrdma_conn *conn, enum rpcrdma_admission from,
		       enum rpcrdma_admission to, unsigned int times)
{
	while (times--) {
		conn->admission = from;
		rpcrdma_admission_set(conn, to);
	}
}

static bool host_has_memory(u8 host, bool now)
{
	struct sockaddr_storage address = host_address(host, 1);

	return rpcrdma_admission_has_memory(&address, now);
}

/* A host that has very many gets no more, and others do. Those that begin count for all. */
static void test_memory_for_others(struct kunit *test)
{
	unsigned int mib = totalram_pages() / (SZ_1M / PAGE_SIZE) + 1;
	struct rpcrdma_conn *conn = wait_conn(test, 1, 1000);

	KUNIT_EXPECT_TRUE(test, host_has_memory(1, true));
	count_conn(conn, RPCRDMA_ADMISSION_NONE, RPCRDMA_ADMISSION_ESTABLISHED, 16 * mib);
	KUNIT_EXPECT_FALSE(test, host_has_memory(1, true));
	KUNIT_EXPECT_FALSE(test, host_has_memory(1, false));
	KUNIT_EXPECT_TRUE(test, host_has_memory(2, true));
	count_conn(conn, RPCRDMA_ADMISSION_ESTABLISHED, RPCRDMA_ADMISSION_NONE, 16 * mib);
	KUNIT_EXPECT_TRUE(test, host_has_memory(1, true));

	count_conn(conn, RPCRDMA_ADMISSION_NONE, RPCRDMA_ADMISSION_BEGINNING, mib);
	KUNIT_EXPECT_FALSE(test, host_has_memory(2, true));
	KUNIT_EXPECT_TRUE(test, host_has_memory(2, false));
	count_conn(conn, RPCRDMA_ADMISSION_BEGINNING, RPCRDMA_ADMISSION_NONE, mib);
	KUNIT_EXPECT_TRUE(test, host_has_memory(2, true));
	conn->admission = RPCRDMA_ADMISSION_WAITING;
	rpcrdma_admission_set(conn, RPCRDMA_ADMISSION_NONE);
}

/* Two hosts with as many requests as they can have leave a place for a third. */
static void test_two_hosts_leave_a_place(struct kunit *test)
{
	unsigned int share = rpcrdma_admission_waiting(totalram_pages()) / 2, host, i, n = 0;
	struct rpcrdma_conn **conns = kunit_kcalloc(test, 2 * share, sizeof(*conns), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, conns);
	for (host = 0; host < 2; host++) {
		for (i = 0; i < share && host_may_wait(host); i++)
			conns[n++] = wait_conn(test, host, 1000 + i);
		if (!host)
			KUNIT_EXPECT_EQ(test, n, share);
	}
	KUNIT_EXPECT_FALSE(test, host_may_wait(0));
	KUNIT_EXPECT_FALSE(test, host_may_wait(1));
	KUNIT_EXPECT_TRUE(test, host_may_wait(2));
	while (n)
		establish_conn(conns[--n]);
}

/*
 * A host with many addresses must not be able to choose those that share the limit of another
 * host. A hash without a key, such as hash_32(), could be computed.
 */
static void test_hash_is_not_known(struct kunit *test)
{
	struct rpcrdma_conn **conns = kunit_kcalloc(test, HOST_SHARE, sizeof(*conns),
						    GFP_KERNEL);
	struct sockaddr_storage victim = host_address(1, 1), address = victim;
	struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
	u32 hash = hash_32((__force u32)v4->sin_addr.s_addr, UNKEYED_BITS);
	unsigned int n = 0;

	KUNIT_ASSERT_NOT_NULL(test, conns);
	while (n < HOST_SHARE) {
		be32_add_cpu(&v4->sin_addr.s_addr, 1);
		if (hash_32((__force u32)v4->sin_addr.s_addr, UNKEYED_BITS) != hash)
			continue;
		conns[n] = wait_conn_of(test, &address);
		rpcrdma_admission_begin(conns[n++]);
	}
	KUNIT_EXPECT_TRUE(test, rpcrdma_admission_may(&victim, RPCRDMA_ADMISSION_BEGINNING));
	while (n)
		establish_conn(conns[--n]);
}

/* After an outage all requests of one host come at once. */
static void test_many_may_wait(struct kunit *test)
{
	struct rpcrdma_conn **conns = kunit_kcalloc(test, MANY, sizeof(*conns),
						    GFP_KERNEL);
	unsigned int n = 0;

	KUNIT_ASSERT_NOT_NULL(test, conns);
	while (n < MANY) {
		KUNIT_EXPECT_TRUE(test, host_may_wait(1));
		conns[n] = wait_conn(test, 1, 1000 + n);
		n++;
	}
	KUNIT_EXPECT_TRUE(test, host_may_begin(1));
	while (n)
		establish_conn(conns[--n]);
}

/* Connections that cannot end, because a thread has entered each, use up no other limit. */
static void test_ending_uses_no_other_limit(struct kunit *test)
{
	const unsigned int count = HOST_SHARE + 1;
	struct rpcrdma_conn **conns = kunit_kcalloc(test, count, sizeof(*conns),
						    GFP_KERNEL);
	struct role *roles = kunit_kcalloc(test, count, sizeof(*roles),
					   GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, conns);
	KUNIT_ASSERT_NOT_NULL(test, roles);
	for (i = 0; i < count; i++) {
		conns[i] = conn_make(test, true, &roles[i]);
		conns[i]->peer_addr = host_address(1, 1000 + i);
		rpcrdma_admission_set(conns[i], RPCRDMA_ADMISSION_WAITING);
		establish_conn(conns[i]);
		KUNIT_EXPECT_TRUE(test, rpcrdma_conn_enter(conns[i]));
		rpcrdma_conn_close(conns[i], -ECONNRESET);
		KUNIT_EXPECT_EQ(test, conns[i]->admission,
				RPCRDMA_ADMISSION_ENDING);
	}
	KUNIT_EXPECT_TRUE(test, host_may_wait(1));
	KUNIT_EXPECT_TRUE(test, host_may_begin(1));
	for (i = 0; i < count; i++)
		rpcrdma_conn_leave(conns[i]);
	flush_workqueue(rpcrdma_teardown_wq);
	for (i = 0; i < count; i++) {
		KUNIT_EXPECT_EQ(test, roles[i].closed, 1);
		KUNIT_EXPECT_EQ(test, conns[i]->admission,
				RPCRDMA_ADMISSION_NONE);
		rpcrdma_conn_put(conns[i]);
	}
}

/* Depths */

static void check_depths(struct kunit *test,
			 const struct rpcrdma_conn_config *config,
			 unsigned int max_qp_wr, unsigned int max_cqe)
{
	struct rpcrdma_depths d;
	unsigned int sq;

	rpcrdma_depths_init(&d, config, max_qp_wr, max_cqe);
	sq = min(d.sq + 3 * d.rw_contexts, max_qp_wr);

	/* Within the limits of the device */
	KUNIT_EXPECT_LE(test, d.rq, max_qp_wr);
	KUNIT_EXPECT_LE(test, d.sq, max_qp_wr);
	KUNIT_EXPECT_LE(test, d.cqes, max_cqe);
	/* Every work request may complete with an error, and so may the two that drain. */
	KUNIT_EXPECT_GE(test, d.cqes, d.rq + min(sq, max_cqe / 2));
	KUNIT_EXPECT_GE(test, d.rq, d.sends + 1);
	/* With fewer than a batch idle, each credit has a Receive. */
	KUNIT_EXPECT_GE(test, d.sends - (d.batch - 1),
			d.credits + config->backward_credits);
	KUNIT_EXPECT_GE(test, d.batch, 1);
	KUNIT_EXPECT_GE(test, d.credits, 1);
	KUNIT_EXPECT_LE(test, d.credits, config->credits);
	/* With a batch posted without a signal, each message has a Send. */
	KUNIT_EXPECT_GE(test, d.sends - d.batch,
			d.credits + config->backward_credits);
}

static void test_depths(struct kunit *test)
{
	static const unsigned int limits[] = { 64, 256, 1024, ANY_LIMIT };
	struct rpcrdma_conn_config config = {};
	unsigned int i;

	for (config.credits = 1; config.credits <= 1024; config.credits *= 4)
		for (i = 0; i < ARRAY_SIZE(limits); i++) {
			config.backward_credits = 16;
			config.rw_contexts = 0;
			check_depths(test, &config, limits[i], ANY_LIMIT);
			config.rw_contexts = 2 * config.credits;
			check_depths(test, &config, limits[i], ANY_LIMIT);
			check_depths(test, &config, ANY_LIMIT, 2 * limits[i]);
		}
}

static void test_depths_keep_credits(struct kunit *test)
{
	struct rpcrdma_conn_config config = {
		.credits = 128,
		.backward_credits = 32,
	};
	struct rpcrdma_depths d;

	rpcrdma_depths_init(&d, &config, ANY_LIMIT, ANY_LIMIT);
	KUNIT_EXPECT_EQ(test, d.credits, 128);
	rpcrdma_depths_init(&d, &config, 100, ANY_LIMIT);
	KUNIT_EXPECT_LT(test, d.credits, 128);
	/* As many as there are for backward messages, a batch and draining: no reason for none */
	rpcrdma_depths_init(&d, &config, 32 + 16 + 1, ANY_LIMIT);
	KUNIT_EXPECT_EQ(test, d.credits, 1);
}

/*
 * A connection that makes Receives step by step: at each step the batch is at least one
 * and does not fall, and the Receives fit into the queue. Few messages are no batch.
 */
static void test_receives_grow(struct kunit *test)
{
	struct rpcrdma_conn_config config = { .backward_credits = 8 };
	struct rpcrdma_depths d;
	unsigned int messages, batch, last = 0;

	for (config.credits = 1; config.credits <= 256; config.credits *= 2) {
		rpcrdma_depths_init(&d, &config, 128, ANY_LIMIT);
		last = 0;
		for (messages = 1; messages <= d.credits + 8; messages++) {
			batch = rpcrdma_recv_batch(messages);
			KUNIT_EXPECT_GE(test, batch, 1);
			KUNIT_EXPECT_GE(test, batch, last);
			KUNIT_EXPECT_LE(test, messages + batch, d.sends);
			if (messages < 8)
				KUNIT_EXPECT_EQ(test, batch, 1);
			last = batch;
		}
	}
}

static struct kunit_case conn_cases[] = {
	KUNIT_CASE(test_states),
	KUNIT_CASE(test_closes_in_each_state),
	KUNIT_CASE(test_closes_once),
	KUNIT_CASE(test_given_up_waits),
	KUNIT_CASE(test_device_stops_late),
	KUNIT_CASE(test_device_has_stopped),
	KUNIT_CASE(test_device_does_not_stop),
	KUNIT_CASE(test_device_has_nothing),
	KUNIT_CASE(test_queue_pair_fails),
	KUNIT_CASE_PARAM(test_queue_pair_size, qp_gen_params),
	KUNIT_CASE(test_pages_of_a_send),
	KUNIT_CASE(test_each_host_has_a_share),
	KUNIT_CASE(test_waiting_by_memory),
	KUNIT_CASE(test_memory_of_one_more),
	KUNIT_CASE(test_memory_for_others),
	KUNIT_CASE(test_two_hosts_leave_a_place),
	KUNIT_CASE(test_hash_is_not_known),
	KUNIT_CASE(test_many_may_wait),
	KUNIT_CASE(test_ending_uses_no_other_limit),
	KUNIT_CASE(test_depths),
	KUNIT_CASE(test_depths_keep_credits),
	KUNIT_CASE(test_receives_grow),
	{}
};

/* With this key the hosts of the tests share no limit. No server has connections yet. */
static int conn_suite_init(struct kunit_suite *suite)
{
	rpcrdma_host_key = (siphash_key_t){ .key = { 1, 2 } };
	return 0;
}

static void conn_suite_exit(struct kunit_suite *suite)
{
	get_random_bytes(&rpcrdma_host_key, sizeof(rpcrdma_host_key));
}

static struct kunit_suite conn_suite = {
	.name = "rpcrdma_conn",
	.suite_init = conn_suite_init,
	.suite_exit = conn_suite_exit,
	.test_cases = conn_cases,
};

kunit_test_suites(&conn_suite);
