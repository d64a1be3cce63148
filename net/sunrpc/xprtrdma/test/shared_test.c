// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of conn/: shared receive queues. A copy of shared.c is compiled here, because the
 * RDMA core does not know the device of this file.
 */
#include <kunit/test.h>

/* The names of the copy */
#define rpcrdma_shared_attach	shared_test_attach
#define rpcrdma_shared_detach	shared_test_detach
#define rpcrdma_shared_put	shared_test_put
#define rpcrdma_shared_lose	shared_test_lose
#define rpcrdma_shared_stop	shared_test_stop
#define rpcrdma_recv_few	shared_test_few

#include "../conn/conn_private.h"

#define BOUND		64U
#define FIRST		16U	/* Receives of a new queue */
#define CQES		10U	/* of a connection, besides Receives */
#define VECTORS		2
#define CONNS		3

/* What the device has, and what it is to refuse */
struct lab {
	struct ib_device ib;
	struct ib_port_data port;
	struct rpcrdma_device device;
	struct ib_pd pd;
	struct ib_cq cq;
	struct ib_srq srq[VECTORS];
	unsigned int num_srqs;
	struct ib_srq_init_attr attr;	/* of the last one */
	unsigned int cq_size;		/* of the last one */
	unsigned int live;		/* verbs objects that are not destroyed */
	int srq_error;
	int modify_error;
	u32 limit;			/* zero: the event was raised */
	struct ib_cqe *posted[BOUND];	/* in the order in which they are taken, over all queues */
	unsigned int num_posted;
	bool refuses;			/* to post */
	bool no_memory;			/* for another Receive */

	struct rpcrdma_conn *conn[CONNS];
	struct ib_qp qp[CONNS];
	struct rpcrdma_recv *taken[BOUND];
	unsigned int num_taken;
	unsigned int closed;
	int status;
};

/* Tests run one at a time. */
static struct lab *lab;

static struct ib_pd *pd_made(struct ib_device *ib, unsigned int flags)
{
	lab->live++;
	return &lab->pd;
}

static struct ib_cq *cq_made(struct ib_device *ib, void *private, int cqes, int vector,
			     enum ib_poll_context context)
{
	lab->live++;
	lab->cq_size = cqes;
	return &lab->cq;
}

static struct ib_srq *srq_made(struct ib_pd *pd, struct ib_srq_init_attr *attr)
{
	if (lab->srq_error || lab->num_srqs == VECTORS)
		return ERR_PTR(lab->srq_error ?: -ENOMEM);
	lab->attr = *attr;
	lab->live++;
	lab->srq[lab->num_srqs].device = &lab->ib;
	return &lab->srq[lab->num_srqs++];
}

static int srq_gone(struct ib_srq *srq)
{
	lab->live--;
	lab->num_posted = 0;
	return 0;
}

static void cq_gone(struct ib_cq *cq)
{
	lab->live--;
}

static void pd_gone(struct ib_pd *pd)
{
	lab->live--;
}

static void close_noted(struct rpcrdma_conn *conn, int status)
{
	lab->closed++;
	lab->status = status;
}

static struct rpcrdma_recv *recv_made(struct ib_pd *pd, u32 size, gfp_t gfp)
{
	return lab->no_memory ? NULL : rpcrdma_recv_alloc(pd, size, gfp);
}

#undef ib_alloc_pd
#define ib_alloc_pd		pd_made
#define ib_alloc_cq		cq_made
#define ib_create_srq		srq_made
#define ib_destroy_srq		srq_gone
#define ib_free_cq		cq_gone
#define ib_dealloc_pd		pd_gone
#define rpcrdma_conn_close	close_noted
#define rpcrdma_recv_alloc	recv_made

#include "../conn/shared.c"

#undef rpcrdma_conn_close
#undef rpcrdma_recv_alloc

static int lab_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr,
			  enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	if (mask & IB_SRQ_LIMIT)
		lab->limit = attr->srq_limit;
	return lab->modify_error;
}

static int lab_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
			     const struct ib_recv_wr **bad)
{
	for (; wr; wr = wr->next) {
		if (lab->refuses || lab->num_posted == BOUND) {
			*bad = wr;
			return -ENOMEM;
		}
		lab->posted[lab->num_posted++] = wr->wr_cqe;
	}
	return 0;
}

static void lab_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv)
{
	lab->taken[lab->num_taken++] = recv;
}

static void lab_closed(struct rpcrdma_conn *conn, int status)
{
}

static const struct rpcrdma_conn_ops lab_ops = { .received = lab_received, .closed = lab_closed };

static struct rpcrdma_conn *lab_conn(struct kunit *test, unsigned int i)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_alloc(true);

	KUNIT_ASSERT_NOT_NULL(test, conn);
	strscpy(conn->peer, "KUnit", sizeof(conn->peer));
	conn->device = &lab->device;
	conn->ops = &lab_ops;
	conn->state = RPCRDMA_STATE_ESTABLISHED;
	conn->config.version_max = RPCRDMA_VERSION_ONE;
	conn->config.params.recv_size = RPCRDMA_INLINE_MIN;
	conn->config.shared_receives = BOUND;
	conn->depths.cqes = CQES;
	conn->recv_size = RPCRDMA_INLINE_MIN;
	conn->recv_credits = RPCRDMA_FIRST_CREDITS;
	lab->qp[i].qp_context = conn;
	lab->conn[i] = conn;
	return conn;
}

static int lab_begin(struct kunit *test)
{
	lab = kunit_kzalloc(test, sizeof(*lab), GFP_KERNEL);
	if (!lab)
		return -ENOMEM;
	lab->ib.port_data = &lab->port;
	lab->ib.ops.modify_srq = lab_modify_srq;
	lab->ib.ops.post_srq_recv = lab_post_srq_recv;
	lab->ib.num_comp_vectors = 1;
	lab->ib.attrs.max_srq = VECTORS;
	lab->ib.attrs.max_srq_wr = BOUND;
	lab->ib.attrs.max_cqe = 4096;
	lab->pd.device = &lab->ib;
	lab->device.ib = &lab->ib;
	spin_lock_init(&lab->device.lock);
	INIT_LIST_HEAD(&lab->device.conns);
	mutex_init(&lab->device.shared_lock);
	INIT_LIST_HEAD(&lab->device.shared);
	lab_conn(test, 0);
	lab_conn(test, 1);
	return 0;
}

static void give_back(unsigned int count)
{
	while (count-- && lab->num_taken)
		rpcrdma_recv_put(lab->taken[--lab->num_taken]);
}

/* Give back all, and hide the device from the teardown. */
static void lab_end(struct kunit *test)
{
	struct rpcrdma_conn *conn;
	unsigned int i;

	give_back(BOUND);
	for (i = 0; i < CONNS && lab->conn[i]; i++) {
		conn = lab->conn[i];
		if (conn->shared)
			shared_test_detach(conn);
		conn->device = NULL;
		rpcrdma_conn_close(conn, -ECANCELED);
		flush_workqueue(rpcrdma_teardown_wq);
		rpcrdma_conn_put(conn);
	}
	KUNIT_EXPECT_EQ(test, lab->live, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&lab->device.shared));
	KUNIT_EXPECT_EQ(test, atomic_read(&lab->device.shared_recvs), 0);
}

/* The peer of a connection sends so many messages. */
static void arrive(struct kunit *test, unsigned int i, unsigned int count,
		   enum ib_wc_status status)
{
	struct ib_event event = { .event = IB_EVENT_SRQ_LIMIT_REACHED };
	struct ib_wc wc = {
		.status = status, .opcode = IB_WC_RECV, .qp = &lab->qp[i], .byte_len = 4,
	};

	while (count--) {
		KUNIT_ASSERT_GT(test, lab->num_posted, 0U);
		wc.wr_cqe = lab->posted[0];
		lab->num_posted--;
		memmove(lab->posted, lab->posted + 1, lab->num_posted * sizeof(lab->posted[0]));
		if (lab->num_posted < lab->limit) {
			lab->limit = 0;
			lab->attr.event_handler(&event, lab->attr.srq_context);
		}
		wc.wr_cqe->done(NULL, &wc);
		flush_workqueue(rpcrdma_wq);
	}
}

static void give_back_all(void)
{
	give_back(BOUND);
	flush_workqueue(rpcrdma_wq);
}

static void test_two_share(struct kunit *test)
{
	struct rpcrdma_conn *conn = lab->conn[0], *other = lab->conn[1];

	KUNIT_ASSERT_TRUE(test, shared_test_attach(conn, CQES));
	KUNIT_ASSERT_TRUE(test, shared_test_attach(other, CQES));
	KUNIT_EXPECT_PTR_EQ(test, conn->shared, other->shared);
	KUNIT_EXPECT_PTR_EQ(test, conn->pd, &lab->pd);
	KUNIT_EXPECT_PTR_EQ(test, conn->cq, &lab->cq);
	KUNIT_EXPECT_EQ(test, lab->attr.attr.max_wr, BOUND);
	KUNIT_EXPECT_EQ(test, lab->num_posted, FIRST);
	KUNIT_EXPECT_EQ(test, lab->limit, FIRST / 4);
	/* The completion queue has an entry for each Receive, and for the Sends of many. */
	KUNIT_EXPECT_EQ(test, lab->cq_size, BOUND + 64 * CQES);

	arrive(test, 0, 1, IB_WC_SUCCESS);
	arrive(test, 1, 1, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, lab->num_taken, 2);
	KUNIT_EXPECT_PTR_EQ(test, lab->taken[0]->conn, conn);
	KUNIT_EXPECT_PTR_EQ(test, lab->taken[1]->conn, other);
	KUNIT_EXPECT_EQ(test, conn->num_recvs, 1);
	give_back_all();
	KUNIT_EXPECT_EQ(test, conn->num_recvs, 0);
	KUNIT_EXPECT_EQ(test, lab->num_posted + conn->shared->num_idle, FIRST);

	shared_test_detach(conn);
	KUNIT_EXPECT_EQ(test, lab->live, 3);
	shared_test_detach(other);
	KUNIT_EXPECT_EQ(test, lab->live, 0);
}

/* Another completion vector, size or bound is another queue, and so is one that is full. */
static void test_others_do_not(struct kunit *test)
{
	struct rpcrdma_conn *conn = lab->conn[0], *other = lab->conn[1];

	lab->ib.num_comp_vectors = VECTORS;
	KUNIT_ASSERT_TRUE(test, shared_test_attach(conn, CQES));
	KUNIT_ASSERT_TRUE(test, shared_test_attach(other, CQES));
	KUNIT_EXPECT_PTR_NE(test, conn->shared, other->shared);
	KUNIT_EXPECT_EQ(test, conn->shared->vector + other->shared->vector, 1);
	shared_test_detach(other);

	lab->ib.num_comp_vectors = 1;
	lab->num_srqs = 1;
	other->config.shared_receives = BOUND - 1;
	KUNIT_ASSERT_TRUE(test, shared_test_attach(other, CQES));
	KUNIT_EXPECT_PTR_NE(test, conn->shared, other->shared);
	shared_test_detach(other);

	lab->num_srqs = 1;
	other->config.shared_receives = BOUND;
	conn->shared->cqes = CQES - 1;
	KUNIT_ASSERT_TRUE(test, shared_test_attach(other, CQES));
	KUNIT_EXPECT_PTR_NE(test, conn->shared, other->shared);
}

/* Then a connection has its own Receives. */
static void test_none(struct kunit *test)
{
	struct rpcrdma_conn *conn = lab->conn[0];

	conn->config.shared_receives = 0;
	KUNIT_EXPECT_FALSE(test, shared_test_attach(conn, CQES));
	conn->config.shared_receives = BOUND;

	lab->ib.attrs.max_srq = 0;
	KUNIT_EXPECT_FALSE(test, shared_test_attach(conn, CQES));
	lab->ib.attrs.max_srq = VECTORS;

	lab->port.immutable.core_cap_flags = RDMA_CORE_CAP_PROT_IWARP;
	KUNIT_EXPECT_FALSE(test, shared_test_attach(conn, CQES));
	lab->port.immutable.core_cap_flags = 0;

	lab->device.last_wqe = RPCRDMA_LAST_WQE_NOT_TOLD;
	KUNIT_EXPECT_FALSE(test, shared_test_attach(conn, CQES));
	lab->device.last_wqe = RPCRDMA_LAST_WQE_TOLD;
	KUNIT_EXPECT_TRUE(test, shared_test_attach(conn, CQES));
	shared_test_detach(conn);
	lab->num_srqs = 0;

	lab->ib.attrs.max_cqe = BOUND + CQES - 1;
	KUNIT_EXPECT_FALSE(test, shared_test_attach(conn, CQES));
	lab->ib.attrs.max_cqe++;

	lab->srq_error = -EINVAL;
	KUNIT_EXPECT_FALSE(test, shared_test_attach(conn, CQES));
	lab->srq_error = 0;

	lab->modify_error = -EOPNOTSUPP;
	KUNIT_EXPECT_FALSE(test, shared_test_attach(conn, CQES));
	lab->modify_error = 0;
	KUNIT_EXPECT_EQ(test, lab->live, 0);

	lab->num_srqs = 0;
	KUNIT_EXPECT_TRUE(test, shared_test_attach(conn, CQES));
}

/*
 * Few are left: there are twice as many, up to the bound, and then credits are few until half are
 * back.
 */
static void test_limit(struct kunit *test)
{
	struct rpcrdma_conn *conn = lab->conn[0];

	KUNIT_ASSERT_TRUE(test, shared_test_attach(conn, CQES));
	conn->recv_credits = BOUND;
	arrive(test, 0, FIRST - FIRST / 4, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, conn->shared->num, FIRST);
	arrive(test, 0, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, conn->shared->num, 2 * FIRST);
	KUNIT_EXPECT_EQ(test, lab->limit, FIRST / 2);
	KUNIT_EXPECT_FALSE(test, shared_test_few(conn));

	arrive(test, 0, BOUND - lab->num_taken - 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, conn->shared->num, BOUND);
	KUNIT_EXPECT_TRUE(test, shared_test_few(conn));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&lab->device.shared_empty), 0);
	arrive(test, 0, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&lab->device.shared_empty), 1);
	KUNIT_EXPECT_EQ(test, lab->num_posted, 0);

	/* When none is posted, none waits for others to be reposted. */
	give_back(1);
	KUNIT_EXPECT_EQ(test, lab->num_posted, 1);
	give_back(BOUND / 2 - 2);
	flush_workqueue(rpcrdma_wq);
	KUNIT_EXPECT_TRUE(test, shared_test_few(conn));
	give_back_all();
	KUNIT_EXPECT_FALSE(test, shared_test_few(conn));
	KUNIT_EXPECT_EQ(test, lab->limit, BOUND / 4);
	KUNIT_EXPECT_EQ(test, lab->closed, 0);
}

/* The new ones are taken at once, here by the driver: there are more before credits are few. */
static void test_limit_again(struct kunit *test)
{
	struct rpcrdma_conn *conn = lab->conn[0];

	KUNIT_ASSERT_TRUE(test, shared_test_attach(conn, CQES));
	conn->recv_credits = BOUND;
	lab->refuses = true;
	arrive(test, 0, FIRST - FIRST / 4 + 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, conn->shared->num, BOUND);
	KUNIT_EXPECT_TRUE(test, shared_test_few(conn));
	lab->refuses = false;
	give_back_all();
	KUNIT_EXPECT_FALSE(test, shared_test_few(conn));
}

/* All are lost with a connection, and there is no memory for others: there are when there is. */
static void test_no_memory(struct kunit *test)
{
	struct rpcrdma_conn *conn = lab->conn[0], *other = lab->conn[1];

	KUNIT_ASSERT_TRUE(test, shared_test_attach(conn, CQES));
	KUNIT_ASSERT_TRUE(test, shared_test_attach(other, CQES));
	conn->recv_credits = BOUND;
	lab->no_memory = true;
	arrive(test, 0, FIRST, IB_WC_SUCCESS);
	rpcrdma_recv_destroy(conn);
	flush_workqueue(rpcrdma_wq);
	KUNIT_EXPECT_EQ(test, lab->num_posted, 0);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&other->shared->limit_work));
	lab->no_memory = false;
	flush_delayed_work(&other->shared->limit_work);
	KUNIT_EXPECT_GT(test, lab->num_posted, 0U);
	KUNIT_EXPECT_FALSE(test, shared_test_few(other));
	shared_test_detach(conn);

	conn->device = NULL;
	rpcrdma_conn_close(conn, -ECANCELED);
	flush_workqueue(rpcrdma_teardown_wq);
	give_back(BOUND);
}

/* Half of them were not needed for a while, so as many go. */
static void test_rest(struct kunit *test)
{
	struct rpcrdma_conn *conn = lab->conn[0];
	struct rpcrdma_shared *shared;
	unsigned int i;

	KUNIT_ASSERT_TRUE(test, shared_test_attach(conn, CQES));
	shared = conn->shared;
	conn->recv_credits = BOUND;
	arrive(test, 0, FIRST, IB_WC_SUCCESS);
	give_back_all();
	KUNIT_ASSERT_EQ(test, shared->most, 2 * FIRST);
	/* What was needed before counts in the first period. */
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, shared->most, 2 * FIRST);
		shared->since = jiffies - SHARED_REST - 1;
		arrive(test, 0, 1, IB_WC_SUCCESS);
		give_back_all();
	}
	KUNIT_EXPECT_EQ(test, shared->most, FIRST);
	KUNIT_EXPECT_EQ(test, lab->limit, FIRST / 4);
	for (i = 0; i < FIRST; i++) {
		arrive(test, 0, 1, IB_WC_SUCCESS);
		give_back_all();
	}
	KUNIT_EXPECT_EQ(test, shared->num, FIRST);
	shared->since = jiffies - SHARED_REST - 1;
	arrive(test, 0, 1, IB_WC_SUCCESS);
	give_back_all();
	KUNIT_EXPECT_EQ(test, shared->most, FIRST);
}

/* A peer that has more messages in flight than it may. Another one is not affected. */
static void test_too_many(struct kunit *test)
{
	struct rpcrdma_conn *conn = lab->conn[0], *other = lab->conn[1];

	KUNIT_ASSERT_TRUE(test, shared_test_attach(conn, CQES));
	KUNIT_ASSERT_TRUE(test, shared_test_attach(other, CQES));
	conn->recv_credits = 2;
	conn->recv_backward = 1;
	arrive(test, 0, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, lab->closed, 0);
	give_back_all();
	arrive(test, 0, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, lab->closed, 0);
	arrive(test, 0, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, lab->closed, 1);
	KUNIT_EXPECT_EQ(test, lab->status, -EDQUOT);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&lab->device.exceeded), 1);
	arrive(test, 1, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, lab->closed, 1);
}

/* A Receive that completes with an error, or that the driver does not take, is not lost. */
static void test_errors(struct kunit *test)
{
	struct rpcrdma_conn *conn = lab->conn[0];

	KUNIT_ASSERT_TRUE(test, shared_test_attach(conn, CQES));
	conn->recv_credits = BOUND;
	conn->state = RPCRDMA_STATE_CLOSING;	/* no log */
	arrive(test, 0, 1, IB_WC_LOC_LEN_ERR);
	conn->state = RPCRDMA_STATE_ESTABLISHED;
	KUNIT_EXPECT_EQ(test, lab->num_taken, 0);
	KUNIT_EXPECT_EQ(test, lab->num_posted + conn->shared->num_idle, FIRST);

	arrive(test, 0, FIRST / 2 + 2, IB_WC_SUCCESS);
	lab->refuses = true;
	give_back(2);
	KUNIT_EXPECT_EQ(test, conn->shared->posted, lab->num_posted);
	lab->refuses = false;
	give_back_all();
	KUNIT_EXPECT_EQ(test, conn->shared->posted, lab->num_posted);
	KUNIT_EXPECT_EQ(test, lab->num_posted + conn->shared->num_idle, FIRST);
}

/* A connection ends, and its role still has messages: the queue gets others for them. */
static void test_lost(struct kunit *test)
{
	struct rpcrdma_conn *conn = lab->conn[0], *other = lab->conn[1];

	KUNIT_ASSERT_TRUE(test, shared_test_attach(conn, CQES));
	KUNIT_ASSERT_TRUE(test, shared_test_attach(other, CQES));
	conn->recv_credits = BOUND;
	arrive(test, 0, 3, IB_WC_SUCCESS);
	rpcrdma_recv_destroy(conn);
	flush_workqueue(rpcrdma_wq);
	KUNIT_EXPECT_EQ(test, other->shared->num, FIRST);
	KUNIT_EXPECT_EQ(test, lab->num_posted, FIRST);
	shared_test_detach(conn);

	/* As after the teardown, nobody can enter. */
	conn->device = NULL;
	rpcrdma_conn_close(conn, -ECANCELED);
	flush_workqueue(rpcrdma_teardown_wq);
	give_back(BOUND);
	KUNIT_EXPECT_EQ(test, kref_read(&conn->ref), 1);
	KUNIT_EXPECT_EQ(test, lab->num_posted, FIRST);
}

static struct kunit_case shared_cases[] = {
	KUNIT_CASE(test_two_share),
	KUNIT_CASE(test_others_do_not),
	KUNIT_CASE(test_none),
	KUNIT_CASE(test_limit),
	KUNIT_CASE(test_limit_again),
	KUNIT_CASE(test_no_memory),
	KUNIT_CASE(test_rest),
	KUNIT_CASE(test_too_many),
	KUNIT_CASE(test_errors),
	KUNIT_CASE(test_lost),
	{}
};

static struct kunit_suite shared_suite = {
	.name = "rpcrdma_shared",
	.init = lab_begin,
	.exit = lab_end,
	.test_cases = shared_cases,
};

kunit_test_suites(&shared_suite);
