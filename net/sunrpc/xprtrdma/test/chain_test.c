// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of conn/: the account of a send queue, the order in which chains are posted
 * and done, Sends, and Receives.
 */
#include <kunit/test.h>
#include <linux/ctype.h>
#include <linux/sunrpc/xdr.h>

#include "../conn/conn_private.h"
#include "fake_conn.h"

/* The account of a send queue */

static void test_sq_never_overflows(struct kunit *test)
{
	struct rpcrdma_sq sq;

	rpcrdma_sq_init(&sq, 10);
	KUNIT_EXPECT_TRUE(test, rpcrdma_sq_take(&sq, 7));
	KUNIT_EXPECT_FALSE(test, rpcrdma_sq_take(&sq, 4));
	KUNIT_EXPECT_EQ(test, sq.free, 3);
	KUNIT_EXPECT_TRUE(test, rpcrdma_sq_take(&sq, 3));
	KUNIT_EXPECT_FALSE(test, rpcrdma_sq_take(&sq, 1));
}

static void test_sq_signals_when_wanted(struct kunit *test)
{
	struct rpcrdma_sq sq;

	rpcrdma_sq_init(&sq, 100);
	KUNIT_EXPECT_FALSE(test, rpcrdma_sq_signal(&sq, 1, false, 8));
	KUNIT_EXPECT_TRUE(test, rpcrdma_sq_signal(&sq, 1, true, 8));
	KUNIT_EXPECT_FALSE(test, rpcrdma_sq_signal(&sq, 1, false, 8));
}

static void test_sq_signals_every_so_many(struct kunit *test)
{
	struct rpcrdma_sq sq;
	unsigned int i;

	rpcrdma_sq_init(&sq, 1000);
	for (i = 1; i <= 30; i++)
		KUNIT_EXPECT_EQ(test, rpcrdma_sq_signal(&sq, 1, false, 9),
				i % 10 == 0);
}

static void test_sq_signals_in_time(struct kunit *test)
{
	struct rpcrdma_sq sq;

	rpcrdma_sq_init(&sq, 99);
	KUNIT_EXPECT_FALSE(test, rpcrdma_sq_signal(&sq, 33, false, 1000));
	KUNIT_EXPECT_TRUE(test, rpcrdma_sq_signal(&sq, 1, false, 1000));
	/* What precedes a signalled chain does not count any more. */
	KUNIT_EXPECT_FALSE(test, rpcrdma_sq_signal(&sq, 33, false, 1000));
	KUNIT_EXPECT_TRUE(test, rpcrdma_sq_signal(&sq, 1, true, 1000));
	KUNIT_EXPECT_FALSE(test, rpcrdma_sq_signal(&sq, 33, false, 1000));
	/* A chain that is too long to be posted without a signal */
	rpcrdma_sq_init(&sq, 99);
	KUNIT_EXPECT_TRUE(test, rpcrdma_sq_signal(&sq, 34, false, 1000));
}

static void test_sq_can_be_filled(struct kunit *test)
{
	struct rpcrdma_sq sq;

	rpcrdma_sq_init(&sq, 1);
	KUNIT_EXPECT_TRUE(test, rpcrdma_sq_take(&sq, 1));
	KUNIT_EXPECT_FALSE(test, rpcrdma_sq_take(&sq, 1));
	/* A chain that does not fit reserves nothing. */
	sq.free += 1;
	KUNIT_EXPECT_FALSE(test, rpcrdma_sq_take(&sq, 2));
	KUNIT_EXPECT_TRUE(test, rpcrdma_sq_take(&sq, 1));
}

/*
 * Post chains of any length up to half the queue. None of them asks for a signal. If
 * signalled chains complete, each chain finds space.
 */
static void test_sq_never_gets_stuck(struct kunit *test)
{
	unsigned int size, wrs, step, posted, uncredited;
	struct rpcrdma_sq sq;

	for (size = 2; size < 80; size++) {
		for (step = 1; step < 12; step++) {
			rpcrdma_sq_init(&sq, size);
			uncredited = 0;
			posted = 0;
			for (wrs = 1; posted < 500; posted++) {
				wrs = 1 + (wrs + step) % (size / 2);
				KUNIT_ASSERT_TRUE(test,
						  rpcrdma_sq_take(&sq, wrs));
				uncredited += wrs;
				if (!rpcrdma_sq_signal(&sq, wrs, false, 1000))
					continue;
				sq.free += uncredited;
				uncredited = 0;
			}
		}
	}
}

/* Chains */

#define SQ_SIZE		9
#define CHAIN_MAX	8
#define BATCH		2	/* chains in a row that need not be signalled */
#define CHAINS		3

struct queue;

struct chain {
	struct rpcrdma_chain chain;
	struct ib_send_wr wr[CHAIN_MAX + 1];
	unsigned int count;	/* work requests that the test posts */
	struct queue *queue;
	int due;		/* calls of @done that are still to come */
	int status;		/* of the last call */
};

/* A connection with a queue pair that completes nothing by itself */
struct queue {
	struct ib_device device;
	struct ib_qp qp;
	struct rpcrdma_conn *conn;
	struct chain chain[CHAINS];
	atomic_long_t full;
	unsigned int writable;
	int post_error;		/* what the device says to a post */
	char log[64];
};

static void note(struct queue *queue, char what)
{
	size_t len = strlen(queue->log);

	if (len < sizeof(queue->log) - 1)
		queue->log[len] = what;
}

static char name_of(const struct chain *chain)
{
	return 'a' + (chain - chain->queue->chain);
}

/* In a long chain the second one is a registration: it has a completion handler of its own. */
static struct ib_cqe *cqe_of(struct chain *chain, unsigned int i)
{
	return i == 1 && chain->count > 2 ? &chain->queue->conn->error_cqe : &chain->chain.cqe;
}

/* Whether the device gets what the test has posted: all of it, in order, and nothing else */
static bool is_whole(struct chain *chain)
{
	unsigned int i, last = chain->count - 1;

	for (i = 0; i <= last; i++) {
		const struct ib_send_wr *wr = &chain->wr[i];

		if (wr->next != (i < last ? wr + 1 : NULL) || wr->wr_cqe != cqe_of(chain, i) ||
		    (i < last && wr->send_flags & IB_SEND_SIGNALED))
			return false;
	}
	return true;
}

static int queue_post(struct ib_qp *qp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad)
{
	struct queue *queue = container_of(qp, struct queue, qp);
	struct chain *chain = queue->chain;

	while (chain < queue->chain + CHAINS && wr != chain->wr)
		chain++;
	if (chain == queue->chain + CHAINS || !is_whole(chain))
		note(queue, '?');
	else if (chain->wr[chain->count - 1].send_flags & IB_SEND_SIGNALED)
		note(queue, toupper(name_of(chain)));
	else
		note(queue, name_of(chain));
	return queue->post_error;
}

static void queue_writable(struct rpcrdma_conn *conn)
{
	struct queue *queue = conn->role;

	queue->writable++;
}

static void queue_closed(struct rpcrdma_conn *conn, int status)
{
}

static const struct rpcrdma_conn_ops queue_ops = {
	.writable = queue_writable,
	.closed = queue_closed,
};

static void chain_done(struct rpcrdma_chain *posted, int status)
{
	struct chain *chain = container_of(posted, struct chain, chain);

	note(chain->queue, status ? '~' : '.');
	note(chain->queue, name_of(chain));
	chain->due--;
	chain->status = status;
}

static struct queue *queue_make(struct kunit *test)
{
	struct queue *queue = kunit_kzalloc(test, sizeof(*queue), GFP_KERNEL);
	struct rpcrdma_conn *conn;

	KUNIT_ASSERT_NOT_NULL(test, queue);
	conn = rpcrdma_conn_alloc(false);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	queue->conn = conn;
	queue->device.ops.post_send = queue_post;
	queue->qp.device = &queue->device;
	queue->qp.qp_context = conn;
	strscpy(conn->peer, "KUnit", sizeof(conn->peer));
	conn->ops = &queue_ops;
	conn->role = queue;
	conn->config.sq_full = &queue->full;
	conn->qp = &queue->qp;
	conn->depths.batch = BATCH;
	conn->max_chain = CHAIN_MAX;
	return queue;
}

/* Hide the queue pair and the Sends from the teardown. */
static void forget_verbs(struct rpcrdma_conn *conn)
{
	conn->qp = NULL;
	conn->sends.num = 0;
}

static void queue_end(struct queue *queue)
{
	forget_verbs(queue->conn);
	queue->conn->state = RPCRDMA_STATE_RESOLVING;
	rpcrdma_conn_close(queue->conn, -ECANCELED);
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_conn_put(queue->conn);
}

/*
 * Steps: "b2" posts chain b of two work requests, "B2" posts it and asks for a signal,
 * ">b2" and ">B2" post it as soon as there is space; "*b" completes chain b; "~" ends the
 * connection.
 *
 * Log: "b" is posted, "B" is posted and signalled; "-": there was no space; "!": it was
 * refused; ".b": done was called with zero, "~b": done was called with an error.
 */
struct chain_row {
	const char *name;
	const char *steps;
	const char *log;
	unsigned int free;	/* work requests that fit afterwards */
	unsigned int full;	/* posts that found no space */
	unsigned int writable;	/* calls of ->writable */
	unsigned int sends;	/* Sends of the connection; zero: many */
};

static const struct chain_row chain_rows[] = {
	{ "one completion for all before it", "a1b1C1*c", "abC.a.b.c", 9 },
	{ "no completion for those after it", "a1B1c1*b", "aBc.a.b", 8 },
	{ "an earlier signalled one waits for its own", "A2B1*b", "AB.b", 7 },
	{ "its own may come later", "A2b1C1*c*a", "AbC.b.c.a", 9 },
	{ "a batch in a row not signalled", "a1b1c1*c", "abC.a.b.c", 9 },
	{ "half of the Sends not signalled", "a1b1*b", "aB.a.b", 9, .sends = 2 },
	{ "a third of the queue not signalled", "a3b1*b", "aB.a.b", 9 },
	{ "a full queue", "A6B3C1", "AB-", 0, 1 },
	{ "space again", "A6B3C1*aC1*b", "AB-.aC.b", 8, 1, 1 },
	{ "not enough space yet", "A6B3C8*aC8*bC8", "AB-.a-.bC", 1, 2, 2 },
	{ "no post found the queue full", "A6B3*a", "AB.a", 6 },
	{ "a chain that waits goes before one that fits", "A8>B2C1*a", "A-B.a", 7, 2, 1 },
	{ "chains that wait go in their order", "A8>B3>C1*a", "ABC.a", 5, 2 },
	{ "chains that wait are signalled", "A8>b2>c1*a", "ABC.a", 6, 2 },
	{ "one that waits fills the queue", "A6B3>C6*a", "ABC.a", 0, 1 },
	{ "not enough space yet for one that waits", "A1B8>C8*a*b", "AB.aC.b", 1, 1 },
	{ "with space, none waits", ">B8", "B", 1 },
	{ "with space, none has to be signalled", ">b2", "b", 7 },
	{ "the longest chain", "a8*a", "A.a", 9 },
	{ "a chain too long", "a9>b9", "!!", 9 },
	{ "the connection ends", "a8>b2~c1>c1", "A~a~b!!", 1, 1 },
};

static void queue_reset(struct queue *queue, const struct chain_row *row)
{
	struct rpcrdma_conn *conn = queue->conn;

	memset(queue->chain, 0, sizeof(queue->chain));
	memset(queue->log, 0, sizeof(queue->log));
	atomic_long_set(&queue->full, 0);
	queue->writable = 0;
	conn->sq_wanted = false;
	conn->state = RPCRDMA_STATE_ESTABLISHED;
	conn->sends.num = row->sends ?: 100;
	rpcrdma_sq_init(&conn->sq, SQ_SIZE);
}

static void post(struct queue *queue, bool later, const char *step)
{
	struct chain *chain = &queue->chain[tolower(step[0]) - 'a'];
	struct ib_send_wr *last = &chain->wr[step[1] - '1'];
	struct ib_send_wr *wr;
	int err;

	chain->queue = queue;
	chain->count = last - chain->wr + 1;
	for (wr = chain->wr; wr <= last; wr++)
		*wr = (struct ib_send_wr){ .next = wr + 1 };
	if (chain->count > 2)
		chain->wr[1].wr_cqe = cqe_of(chain, 1);
	/* As an earlier use may have left it */
	last->send_flags = IB_SEND_SIGNALED;
	chain->chain.done = chain_done;
	err = rpcrdma_chain_post(queue->conn, &chain->chain, chain->wr, last,
				 (isupper(step[0]) ? RPCRDMA_POST_SIGNALLED : 0) |
				 (later ? RPCRDMA_POST_LATER : 0), NULL);
	if (err)
		note(queue, err == -EAGAIN ? '-' : '!');
	else
		chain->due++;
}

static void complete_chain(struct chain *chain)
{
	struct ib_wc wc = {
		.wr_cqe = &chain->chain.cqe,
		.status = IB_WC_SUCCESS,
		.qp = &chain->queue->qp,
	};

	wc.wr_cqe->done(NULL, &wc);
	flush_workqueue(rpcrdma_wq);
}

static void take_steps(struct queue *queue, const char *step)
{
	while (*step) {
		switch (*step) {
		case '*':
			complete_chain(&queue->chain[step[1] - 'a']);
			step += 2;
			break;
		case '~':
			queue->conn->state = RPCRDMA_STATE_CLOSING;
			rpcrdma_chain_flush(queue->conn);
			step++;
			break;
		case '>':
			post(queue, true, step + 1);
			step += 3;
			break;
		default:
			post(queue, false, step);
			step += 2;
		}
	}
}

static void test_chains(struct kunit *test)
{
	struct queue *queue = queue_make(test);
	const struct chain_row *row;
	unsigned int i;

	for (row = chain_rows; row < chain_rows + ARRAY_SIZE(chain_rows); row++) {
		queue_reset(queue, row);
		take_steps(queue, row->steps);
		KUNIT_EXPECT_STREQ_MSG(test, queue->log, row->log, "%s",
				       row->name);
		KUNIT_EXPECT_EQ_MSG(test, queue->conn->sq.free, row->free, "%s",
				    row->name);
		KUNIT_EXPECT_EQ_MSG(test, atomic_long_read(&queue->full),
				    row->full, "%s", row->name);
		KUNIT_EXPECT_EQ_MSG(test, queue->writable, row->writable, "%s",
				    row->name);
		rpcrdma_chain_flush(queue->conn);
		for (i = 0; i < CHAINS; i++)
			KUNIT_EXPECT_EQ_MSG(test, queue->chain[i].due, 0, "%s",
					    row->name);
	}
	queue_end(queue);
}

/* After rpcrdma_chain_waits() was true, ->writable is called when no chain waits. */
static void test_chain_waits(struct kunit *test)
{
	struct queue *queue = queue_make(test);
	struct rpcrdma_conn *conn = queue->conn;

	queue_reset(queue, &chain_rows[0]);
	take_steps(queue, "A8");
	KUNIT_EXPECT_FALSE(test, rpcrdma_chain_waits(conn));
	take_steps(queue, ">b2");
	KUNIT_EXPECT_TRUE(test, rpcrdma_chain_waits(conn));
	KUNIT_EXPECT_EQ(test, queue->writable, 0);
	take_steps(queue, "*a");
	KUNIT_EXPECT_EQ(test, queue->writable, 1);
	KUNIT_EXPECT_FALSE(test, rpcrdma_chain_waits(conn));
	rpcrdma_chain_flush(conn);
	queue_end(queue);
}

/* Sends left: idle ones, and those that may still be made */
static void test_sends_left(struct kunit *test)
{
	struct queue *queue = queue_make(test);
	struct rpcrdma_conn *conn = queue->conn;

	conn->depths.sends = 10;
	conn->sends.num = 4;
	conn->sends.num_idle = 1;
	KUNIT_EXPECT_TRUE(test, rpcrdma_send_left(conn, 6));
	KUNIT_EXPECT_FALSE(test, conn->sends.wanted);
	KUNIT_EXPECT_FALSE(test, rpcrdma_send_left(conn, 7));
	KUNIT_EXPECT_TRUE(test, conn->sends.wanted);
	conn->sends.num_idle = 0;
	queue_end(queue);
}

static void run_watchdog(struct rpcrdma_conn *conn)
{
	conn->sq_watchdog.work.func(&conn->sq_watchdog.work);
}

/* Only a signalled chain has to complete within three minutes. */
static void test_sq_watchdog(struct kunit *test)
{
	struct queue *queue = queue_make(test);
	struct rpcrdma_conn *conn = queue->conn;

	queue_reset(queue, &chain_rows[0]);
	take_steps(queue, "a1B1");
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&conn->sq_watchdog));
	queue->chain[0].chain.since = jiffies - 200 * HZ;
	queue->chain[1].chain.since = jiffies - 170 * HZ;
	cancel_delayed_work(&conn->sq_watchdog);
	run_watchdog(conn);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(conn));
	/* It looks again when the chain will be overdue. */
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&conn->sq_watchdog));
	KUNIT_EXPECT_LE(test, conn->sq_watchdog.timer.expires, jiffies + 10 * HZ);
	KUNIT_EXPECT_GT(test, conn->sq_watchdog.timer.expires, jiffies + 5 * HZ);

	forget_verbs(conn);
	queue->chain[1].chain.since = jiffies - 180 * HZ;
	run_watchdog(conn);
	KUNIT_EXPECT_FALSE(test, rpcrdma_conn_established(conn));
	KUNIT_EXPECT_EQ(test, conn->status, -ETIMEDOUT);
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_chain_flush(conn);
	rpcrdma_conn_put(conn);
}

/* An access that the peer denies ends the connection; only its own chain gets -EREMOTEIO. */
static void test_denied(struct kunit *test)
{
	struct queue *queue = queue_make(test);
	struct ib_wc wc = { .status = IB_WC_REM_ACCESS_ERR, .qp = &queue->qp };
	struct rpcrdma_conn *conn = queue->conn;

	queue_reset(queue, &chain_rows[0]);
	take_steps(queue, "A3b1C1");
	forget_verbs(conn);
	wc.wr_cqe = queue->chain[0].wr[0].wr_cqe;
	wc.wr_cqe->done(NULL, &wc);
	wc.status = IB_WC_WR_FLUSH_ERR;
	wc.wr_cqe = queue->chain[2].wr[0].wr_cqe;
	wc.wr_cqe->done(NULL, &wc);
	KUNIT_EXPECT_FALSE(test, rpcrdma_conn_established(conn));
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_chain_flush(conn);
	KUNIT_EXPECT_EQ(test, queue->chain[0].status, -EREMOTEIO);
	KUNIT_EXPECT_EQ(test, queue->chain[1].status, -ENOTCONN);
	KUNIT_EXPECT_EQ(test, queue->chain[2].status, -ENOTCONN);
	rpcrdma_conn_put(conn);
}

/* A registration in the middle of a chain says only if it fails, and that ends the connection. */
static void test_registration_fails(struct kunit *test)
{
	struct queue *queue = queue_make(test);
	struct ib_wc wc = { .status = IB_WC_SUCCESS, .qp = &queue->qp };
	struct rpcrdma_conn *conn = queue->conn;

	queue_reset(queue, &chain_rows[0]);
	take_steps(queue, "A3");
	forget_verbs(conn);
	wc.wr_cqe = queue->chain[0].wr[1].wr_cqe;
	wc.wr_cqe->done(NULL, &wc);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(conn));
	wc.status = IB_WC_MW_BIND_ERR;
	wc.wr_cqe->done(NULL, &wc);
	KUNIT_EXPECT_FALSE(test, rpcrdma_conn_established(conn));
	KUNIT_EXPECT_EQ(test, conn->status, -EIO);
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_chain_flush(conn);
	KUNIT_EXPECT_EQ(test, queue->chain[0].status, -ENOTCONN);
	rpcrdma_conn_put(conn);
}

/* The device refuses a post, and may have taken a part: the connection ends, then the chain. */
static void test_post_refused(struct kunit *test)
{
	struct queue *queue = queue_make(test);
	struct rpcrdma_conn *conn = queue->conn;

	queue_reset(queue, &chain_rows[0]);
	queue->post_error = -EINVAL;
	mutex_lock(&conn->setup);	/* The teardown waits for this. */
	take_steps(queue, "a2b1");
	KUNIT_EXPECT_STREQ(test, queue->log, "a!");
	KUNIT_EXPECT_EQ(test, conn->state, RPCRDMA_STATE_CLOSING);
	KUNIT_EXPECT_EQ(test, conn->status, -EINVAL);
	forget_verbs(conn);
	mutex_unlock(&conn->setup);
	flush_workqueue(rpcrdma_teardown_wq);
	rpcrdma_chain_flush(conn);
	KUNIT_EXPECT_STREQ(test, queue->log, "a!~a");
	rpcrdma_conn_put(conn);
}

/* Sends and Receives */

/* A Send gathers as many pages as the device allows, and a tail counts as one. */
static void test_send_gathers(struct kunit *test)
{
	struct page *pages[2 + FAKE_SEND_SGES];
	struct fake_conn *fake = fake_conn_new(test, 2 * PAGE_SIZE);
	struct xdr_buf buf = { .pages = pages, .tail[0].iov_base = fake };
	struct rpcrdma_send *send;
	u32 base, tail, octets;

	memset_p((void **)pages, virt_to_page(fake), ARRAY_SIZE(pages));
	for (tail = 0; tail <= 1; tail++) {
		for (base = 0; base <= 1; base++) {
			send = rpcrdma_send_get(fake->conn);
			KUNIT_ASSERT_NOT_NULL(test, send);
			buf.page_base = PAGE_SIZE + base;
			buf.page_len = (FAKE_SEND_SGES - tail) * PAGE_SIZE;
			buf.tail[0].iov_len = tail;
			octets = base ? 0 : buf.page_len + tail;
			KUNIT_EXPECT_EQ(test, rpcrdma_send_can_gather(fake->conn, &buf), octets);
			KUNIT_EXPECT_EQ(test, rpcrdma_send_gather(send, &buf), base ? -ENOSPC : 0);
			KUNIT_EXPECT_EQ(test, send->num_sge, 1 + FAKE_SEND_SGES);
			rpcrdma_send_put(send);
		}
	}
	fake_conn_delete(test, fake);
}

/*
 * One Send is made at first, and up to eight if one is used at a time. If all are in use,
 * ->writable tells of the next one that is given back.
 */
static void test_sends_run_out(struct kunit *test)
{
	struct queue *queue = kunit_kzalloc(test, sizeof(*queue), GFP_KERNEL);
	struct fake_conn *fake = fake_conn_new(test, 2 * PAGE_SIZE);
	struct rpcrdma_send *send[FAKE_CREDITS + 8];	/* a batch more than credits */
	struct rpcrdma_conn *conn = fake->conn;
	unsigned int i, sends = conn->depths.sends;

	KUNIT_ASSERT_NOT_NULL(test, queue);
	KUNIT_ASSERT_LE(test, sends, ARRAY_SIZE(send));
	conn->ops = &queue_ops;
	conn->role = queue;
	KUNIT_EXPECT_EQ(test, conn->sends.num, 1);
	for (i = 0; i < sends; i++) {
		send[0] = rpcrdma_send_get(conn);
		KUNIT_ASSERT_NOT_NULL(test, send[0]);
		rpcrdma_send_put(send[0]);
	}
	KUNIT_EXPECT_EQ(test, conn->sends.num, 8);
	for (i = 0; i < sends; i++) {
		send[i] = rpcrdma_send_get(conn);
		KUNIT_ASSERT_NOT_NULL(test, send[i]);
	}
	KUNIT_EXPECT_NULL(test, rpcrdma_send_get(conn));
	while (i--) {
		KUNIT_EXPECT_EQ(test, queue->writable, i + 1 < sends);
		rpcrdma_send_put(send[i]);
		fake_run_callbacks(fake);
	}
	KUNIT_EXPECT_EQ(test, queue->writable, 1);
	fake_conn_delete(test, fake);
}

/* On iWARP a Send of a page or more is signalled, because TCP may need its buffer for longer. */
static void test_send_of_a_page(struct kunit *test)
{
	struct fake_conn *fake = fake_conn_new(test, 2 * PAGE_SIZE);
	u32 len;

	fake->port.immutable.core_cap_flags = RDMA_CORE_PORT_IWARP;
	for (len = PAGE_SIZE - 1; len <= PAGE_SIZE; len++) {
		struct rpcrdma_send *send = rpcrdma_send_get(fake->conn);

		KUNIT_ASSERT_NOT_NULL(test, send);
		send->len = len;
		KUNIT_EXPECT_EQ(test, rpcrdma_send_post(send, NULL, 0, NULL), 0);
		KUNIT_EXPECT_EQ(test, fake->num_signalled, len == PAGE_SIZE);
	}
	fake_complete(fake);
	fake_conn_delete(test, fake);
}

/* A message may fill its Receive. What is no message ends the connection. */
static void test_receives(struct kunit *test)
{
	struct fake_conn *fake = fake_conn_new(test, 2 * PAGE_SIZE);
	struct ib_wc wc = { .status = IB_WC_SUCCESS, .opcode = IB_WC_RECV_RDMA_WITH_IMM };
	void *octets = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	struct rpcrdma_conn *conn = fake->conn;

	KUNIT_ASSERT_NOT_NULL(test, octets);
	KUNIT_EXPECT_EQ(test, fake->num_recvs, FAKE_MESSAGES);
	fake_deliver(fake, octets, 2 * PAGE_SIZE, 0);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(conn));
	KUNIT_EXPECT_EQ(test, fake->num_recvs, FAKE_MESSAGES);
	wc.wr_cqe = fake->recv[0].cqe;
	wc.wr_cqe->done(NULL, &wc);
	KUNIT_EXPECT_EQ(test, conn->status, -EPROTO);
	fake_conn_delete(test, fake);
}

/* From so many messages that the peer may have in flight to so few */
#define MANY	64
#define FEW	2

/*
 * With each message the peer may have one less in flight. At each moment a Receive is posted for
 * each message that it may send, and in the end no other one is left.
 */
static void test_receives_fall(struct kunit *test)
{
	struct fake_conn *fake = fake_conn_new(test, RPCRDMA_INLINE_MIN);
	struct rpcrdma_conn *conn = fake->conn;
	unsigned int i, made, credits = MANY;
	u32 octets[8] = {};

	KUNIT_ASSERT_EQ(test, rpcrdma_recv_expect(conn, MANY, 0), 0);
	made = conn->num_recvs;
	/* All but one of a batch are idle. The batch becomes smaller. */
	for (i = 1; i < rpcrdma_recv_batch(MANY); i++)
		fake_deliver(fake, octets, sizeof(octets), 0);
	KUNIT_EXPECT_EQ(test, fake->num_recvs, MANY);
	for (i = 0; i < made; i++) {
		if (credits > FEW) {
			rpcrdma_recv_less(conn, 1);
			credits--;
		}
		fake_deliver(fake, octets, sizeof(octets), 0);
		KUNIT_EXPECT_EQ(test, conn->recv_credits, credits);
		KUNIT_EXPECT_GE(test, fake->num_recvs, credits);
		KUNIT_EXPECT_GE(test, conn->num_recvs, made - 1 - i);
	}
	KUNIT_EXPECT_EQ(test, fake->num_recvs, FEW);
	KUNIT_EXPECT_EQ(test, conn->num_recvs, FEW);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&conn->recvs), FEW);

	/* What is made later stays. */
	KUNIT_ASSERT_EQ(test, rpcrdma_recv_expect(conn, 4, 1), 0);
	fake_deliver(fake, octets, sizeof(octets), 0);
	KUNIT_EXPECT_EQ(test, fake->num_recvs, 5);
	fake_conn_delete(test, fake);
}

/* Many are in flight when the credits fall: a Receive that is held counts for its message. */
static void test_receives_fall_in_flight(struct kunit *test)
{
	struct fake_conn *fake = fake_conn_new(test, RPCRDMA_INLINE_MIN);
	struct rpcrdma_conn *conn = fake->conn;
	struct rpcrdma_recv *recv[MANY];
	unsigned int i, credits = MANY;

	KUNIT_ASSERT_EQ(test, rpcrdma_recv_expect(conn, MANY, 0), 0);
	for (i = 0; i < MANY; i++)
		recv[i] = fake_take_recv(fake, "call", 4);
	while (i--) {
		rpcrdma_recv_put(recv[i]);
		/* The Reply has left, and grants FEW. */
		if (credits > FEW) {
			rpcrdma_recv_less(conn, 1);
			credits--;
		}
		KUNIT_EXPECT_GE(test, fake->num_recvs + i, credits);
	}
	KUNIT_EXPECT_GE(test, fake->num_recvs, FEW);
	fake_conn_delete(test, fake);
}

static struct kunit_case chain_cases[] = {
	KUNIT_CASE(test_sq_never_overflows),
	KUNIT_CASE(test_sq_signals_when_wanted),
	KUNIT_CASE(test_sq_signals_every_so_many),
	KUNIT_CASE(test_sq_signals_in_time),
	KUNIT_CASE(test_sq_can_be_filled),
	KUNIT_CASE(test_sq_never_gets_stuck),
	KUNIT_CASE(test_chains),
	KUNIT_CASE(test_chain_waits),
	KUNIT_CASE(test_sends_left),
	KUNIT_CASE(test_sq_watchdog),
	KUNIT_CASE(test_denied),
	KUNIT_CASE(test_registration_fails),
	KUNIT_CASE(test_post_refused),
	KUNIT_CASE(test_send_gathers),
	KUNIT_CASE(test_sends_run_out),
	KUNIT_CASE(test_send_of_a_page),
	KUNIT_CASE(test_receives),
	KUNIT_CASE(test_receives_fall),
	KUNIT_CASE(test_receives_fall_in_flight),
	{}
};

static struct kunit_suite chain_suite = {
	.name = "rpcrdma_chain",
	.test_cases = chain_cases,
};

kunit_test_suites(&chain_suite);
