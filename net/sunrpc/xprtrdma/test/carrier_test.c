// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of server/: a Reply that goes in several chains. A copy of reply.c is compiled
 * here, with functions of this file in the place of those that make chains and post them. So
 * any of these may fail, and chains are done in any order.
 */
#include <kunit/test.h>
#include <linux/slab.h>

/* The names of the copy */
#define svcrdma_result_payload		carrier_test_result_payload
#define svcrdma_sendto			carrier_test_sendto
#define svcrdma_reply_error		carrier_test_error

#include "../server/server_private.h"

#define CHAINS		3
#define CHAIN_LEN	1000U	/* octets that fit into a chain */
#define WRITTEN		(2 * CHAIN_LEN + 300)
#define NO_CHAIN	UINT_MAX

/* The Reply, which is the first request, and its carriers */
struct carriers {
	struct svcrdma_service service;
	struct rpcrdma_conn conn;
	struct svc_rqst rqst;
	struct svcrdma_reply_form form;
	struct svcrdma_request request[CHAINS];
	struct rpcrdma_send *send;
	unsigned int requests;		/* that were taken, with the first */
	unsigned int init_fails;	/* the chain that cannot be made, */
	unsigned int add_fails;		/* filled, */
	unsigned int post_fails;	/* or posted; CHAINS: the Send cannot */
	bool get_fails;
	bool done_at_once;		/* a chain is done when it is posted */
	u32 written;			/* octets in chains */

	unsigned int posted;		/* chains without a Send */
	bool sent;
	bool noio;		/* then */
	unsigned int made[CHAINS];
	unsigned int destroyed[CHAINS];
	unsigned int put[CHAINS];
	unsigned int sends_put;
	unsigned int recvs_put;
	unsigned int pages_put;
	bool head;			/* the device reads the head */
	unsigned int wrong;
	unsigned int noted;		/* statuses that were noted for the Reply */
};

static struct carriers *c;	/* Tests run one at a time. */

static unsigned int number_of(const struct svcrdma_request *request)
{
	return request - c->request;
}

static struct svcrdma_request *request_get(struct svcrdma_service *service)
{
	if (c->get_fails || c->requests == CHAINS)
		return NULL;
	c->put[c->requests] = 0;
	return &c->request[c->requests++];
}

/* Whoever takes it next has its chain and its pages. */
static void request_put(struct svcrdma_request *request)
{
	unsigned int i = number_of(request);

	c->put[i]++;
	c->wrong += c->made[i] != c->destroyed[i];
}

static int chain_init(struct svcrdma_rw_chain *chain, enum dma_data_direction direction,
		      unsigned int rws, unsigned int sg)
{
	unsigned int i = number_of(container_of(chain, struct svcrdma_request, rw_chain));

	c->wrong += direction != DMA_TO_DEVICE;
	if (i == c->init_fails)
		return -ENOMEM;
	chain->wrs = 0;
	c->made[i]++;
	return 0;
}

static int chain_add(struct svcrdma_request *request, const struct xdr_buf *local, u32 at,
		     u32 octets, const struct rpcrdma_segment *segment, u32 skip)
{
	u32 part = min(octets, CHAIN_LEN - request->rw_chain.wrs);

	if (number_of(request) == c->add_fails)
		return -EIO;
	c->wrong += at != c->written || segment->offset + skip != at;
	c->wrong += part > segment->length - skip;
	request->rw_chain.wrs += part;
	c->written += part;
	return part;
}

static struct ib_send_wr *chain_wrs(struct svcrdma_request *request, struct ib_send_wr *next)
{
	return next;
}

static void chain_destroy(struct svcrdma_request *request)
{
	unsigned int i = number_of(request);

	c->destroyed[i]++;
	c->wrong += c->put[i] || c->destroyed[i] > c->made[i];
}

static int chain_post(struct svcrdma_request *request)
{
	struct rpcrdma_chain *chain = &request->rw_chain.chain;

	if (number_of(request) == c->post_fails)
		return -EIO;
	c->wrong += number_of(request) != c->posted++;
	if (c->done_at_once)
		chain->done(chain, 0);
	return 0;
}

static void tally_denied(struct svcrdma_request *request, int status)
{
	c->wrong += request != c->request || c->put[0];
	c->noted++;
}

static struct rpcrdma_send *send_get(struct rpcrdma_conn *conn)
{
	return c->send;
}

static void send_put(struct rpcrdma_send *send)
{
	c->sends_put++;
}

static void put_recv(struct svcrdma_request *request)
{
	c->recvs_put++;
}

static int send_post(struct rpcrdma_send *send, struct ib_send_wr *first, unsigned int flags,
		     bool *posted)
{
	if (c->post_fails == CHAINS)
		return -EIO;
	c->wrong += flags != (c->form.written ? RPCRDMA_POST_SIGNALLED | RPCRDMA_POST_LATER :
						RPCRDMA_POST_LATER) || posted ||
		    first != &send->wr;
	c->sent = true;
	c->noio = current->flags & PF_MEMALLOC_NOIO;
	return 0;
}

static void pages_put(struct svcrdma_request *request)
{
	c->pages_put++;
}

static void pages_swap_held(struct svcrdma_request *request, struct svc_rqst *rqstp)
{
	c->wrong += c->form.written || c->pages_put != !!rqstp->rq_deferred;
}

static void pages_take_reply(struct svcrdma_request *request, struct svc_rqst *rqstp,
			     struct page **end, bool head)
{
	c->wrong += request != c->request || c->put[0];
	c->head = head;
}

#define rpcrdma_send_get		send_get
#define rpcrdma_send_put		send_put
#define rpcrdma_send_post		send_post
#define svcrdma_tally_denied		tally_denied
#define svcrdma_pages_put		pages_put
#define svcrdma_pages_swap_held		pages_swap_held
#define svcrdma_pages_take_reply	pages_take_reply
#define svcrdma_request_get		request_get
#define svcrdma_request_put		request_put
#define svcrdma_request_put_recv	put_recv
#define svcrdma_rw_chain_init		chain_init
#define svcrdma_rw_chain_add		chain_add
#define svcrdma_rw_chain_wrs		chain_wrs
#define svcrdma_rw_chain_post		chain_post
#define svcrdma_rw_chain_destroy	chain_destroy

#include "../server/reply.c"

/* A Call whose Reply has a Write chunk, with a second segment after @first octets */
static void carriers_begin_segments(struct kunit *test, u32 first)
{
	struct svcrdma_request *request = &c->request[0];
	struct rpcrdma_message *msg = &request->msg;
	struct rpcrdma_send *send = c->send;
	struct rpcrdma_chunk *chunk;

	memset(c, 0, sizeof(*c));
	c->send = send;
	c->service.conn = &c->conn;
	c->init_fails = NO_CHAIN;
	c->add_fails = NO_CHAIN;
	c->post_fails = NO_CHAIN;
	c->requests = 1;
	request->service = &c->service;
	rpcrdma_wire_init_call(msg, RPCRDMA_VERSION_ONE, cpu_to_be32(1), 1);
	chunk = rpcrdma_wire_add_write(msg);
	KUNIT_ASSERT_NOT_NULL(test, chunk);
	KUNIT_ASSERT_EQ(test, rpcrdma_wire_add_segment(msg, chunk, 1, first, 0), 0);
	if (first < WRITTEN)
		KUNIT_ASSERT_EQ(test, rpcrdma_wire_add_segment(msg, chunk, 2, WRITTEN - first,
							       first), 0);
	rpcrdma_wire_make_reply(msg, 1);
	request->results.count = 1;
	request->results.result[0].length = WRITTEN;
	request->results.result[0].chunk = chunk;
	c->form.written = WRITTEN;
	c->form.part[0] = (struct svcrdma_part){ WRITTEN, 1 };	/* what is on the stack */
	c->rqst.rq_res.page_len = WRITTEN;
}

static void carriers_begin(struct kunit *test)
{
	carriers_begin_segments(test, WRITTEN);
}

static int carriers_init(struct kunit *test)
{
	c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	if (!c)
		return -ENOMEM;
	c->send = kunit_kzalloc(test, struct_size(c->send, sge, 1), GFP_KERNEL);
	if (!c->send)
		return -ENOMEM;
	c->send->size = 1024;
	c->send->data = kunit_kzalloc(test, c->send->size, GFP_KERNEL);
	return c->send->data ? 0 : -ENOMEM;
}

static int post(void)
{
	struct svcrdma_reply reply = {
		.request = &c->request[0],
		.res = &c->rqst.rq_res,
		.form = c->form,
	};

	return reply_post(&reply, &c->rqst);
}

/* The device has finished with a chain; the last one has the Send. */
static void done(unsigned int i, int status)
{
	struct rpcrdma_chain *chain = i < c->posted ? &c->request[i].rw_chain.chain :
						      &c->send->chain;

	chain->done(chain, status);
}

/* All that was made is undone, and each request is put once. */
static void expect_undone(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < CHAINS; i++) {
		KUNIT_EXPECT_EQ(test, c->destroyed[i], c->made[i]);
		KUNIT_EXPECT_EQ(test, c->put[i], i < c->requests);
	}
	KUNIT_EXPECT_EQ(test, c->sends_put, 1);
	KUNIT_EXPECT_EQ(test, c->wrong, 0);
}

/* Whichever chain is done last ends the Reply, and with it the use of its pages. */
static void test_any_order(struct kunit *test)
{
	static const unsigned int orders[][CHAINS] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		carriers_begin(test);
		KUNIT_ASSERT_EQ(test, post(), 0);
		KUNIT_ASSERT_EQ(test, c->posted, CHAINS - 1);
		KUNIT_ASSERT_TRUE(test, c->sent);
		KUNIT_EXPECT_EQ(test, c->written, WRITTEN);
		for (n = 0; n < CHAINS; n++) {
			KUNIT_EXPECT_EQ(test, c->put[0], 0);
			done(orders[i][n], i % 2 ? -EREMOTEIO : 0);
		}
		KUNIT_EXPECT_EQ(test, c->noted, CHAINS);
		KUNIT_EXPECT_EQ(test, c->request[0].tally.sent, RPCRDMA_A_TRAFFIC_WRITE_CHUNK);
		/* The thread keeps its head, as all of the data is in the pages. */
		KUNIT_EXPECT_FALSE(test, c->head);
		expect_undone(test);
	}
}

/* A chain may be full where a segment ends. */
static void test_segments(struct kunit *test)
{
	static const u32 first[] = { 1, CHAIN_LEN - 1, CHAIN_LEN, 2 * CHAIN_LEN };
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(first); i++) {
		carriers_begin_segments(test, first[i]);
		KUNIT_ASSERT_EQ(test, post(), 0);
		KUNIT_EXPECT_EQ(test, c->written, WRITTEN);
		KUNIT_ASSERT_EQ(test, c->posted, CHAINS - 1);
		for (n = 0; n < CHAINS; n++)
			done(n, 0);
		expect_undone(test);
	}
}

/* Each chain is done before the next one is filled. */
static void test_done_at_once(struct kunit *test)
{
	carriers_begin(test);
	c->done_at_once = true;
	KUNIT_ASSERT_EQ(test, post(), 0);
	KUNIT_EXPECT_EQ(test, c->put[0], 0);
	done(c->posted, 0);
	expect_undone(test);
}

/* A step fails. What is posted by then is done later, and only then the Reply ends. */
static void fails(struct kunit *test, int err, unsigned int posted)
{
	unsigned int i;

	KUNIT_EXPECT_EQ(test, post(), err);
	KUNIT_ASSERT_EQ(test, c->posted, posted);
	KUNIT_EXPECT_FALSE(test, c->sent);
	for (i = 0; i < posted; i++) {
		KUNIT_EXPECT_EQ(test, c->put[0], 0);
		done(i, -ENOTCONN);
	}
	expect_undone(test);
}

static void test_no_carrier(struct kunit *test)
{
	unsigned int i;

	carriers_begin(test);
	c->get_fails = true;
	fails(test, -ENOMEM, 0);
	for (i = 0; i < CHAINS; i++) {
		carriers_begin(test);
		c->init_fails = i;
		fails(test, -ENOMEM, i ? i - 1 : 0);
	}
}

static void test_chain_fails(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < CHAINS; i++) {
		carriers_begin(test);
		c->add_fails = i;
		fails(test, -EIO, i);
	}
	for (i = 0; i <= CHAINS; i++) {
		if (i == CHAINS - 1)	/* It is posted with the Send. */
			continue;
		carriers_begin(test);
		c->post_fails = i;
		fails(test, -EIO, min_t(unsigned int, i, CHAINS - 1));
	}
}

/* All chains are made, and the earlier ones posted, but the header does not fit into the Send. */
static void test_header_fails(struct kunit *test)
{
	carriers_begin(test);
	c->send->size = 16;
	fails(test, -EMSGSIZE, CHAINS - 1);
}

/* A Reply that is copied may fill the Send. */
static void test_copy(struct kunit *test)
{
	struct rpcrdma_send *send = c->send;
	struct xdr_buf res = { .len = send->size };

	res.head[0].iov_len = send->size;
	res.head[0].iov_base = kunit_kzalloc(test, send->size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, res.head[0].iov_base);
	send->len = 100;
	KUNIT_EXPECT_EQ(test, rpcrdma_send_copy(send, &res, 0, send->size - 100, send->size), 0);
	KUNIT_EXPECT_EQ(test, send->len, send->size);
	send->len = 100;
	KUNIT_EXPECT_EQ(test, rpcrdma_send_copy(send, &res, 0, send->size - 99, U32_MAX),
			-EMSGSIZE);
	KUNIT_EXPECT_EQ(test, rpcrdma_send_copy(send, &res, 0, 100, 199), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, rpcrdma_send_copy(send, &res, 0, 0, 99), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, send->len, 100);
	KUNIT_EXPECT_EQ(test, rpcrdma_send_copy(send, &res, 0, 100, 200), 0);
	KUNIT_EXPECT_EQ(test, send->len, 200);
}

/* A Reply that is copied, and of which nothing is written */
static void copy_begin(struct kunit *test)
{
	carriers_begin(test);
	c->request[0].results.count = 0;
	c->form.written = 0;
	c->rqst.rq_res.page_len = 0;
}

/* Nobody waits until a Reply that is copied has been sent. */
static void test_copied(struct kunit *test)
{
	copy_begin(test);
	KUNIT_EXPECT_EQ(test, post(), 0);
	KUNIT_EXPECT_TRUE(test, c->sent);
	KUNIT_EXPECT_NULL(test, c->send->chain.done);	/* It is rpcrdma_send_get()'s. */
	KUNIT_EXPECT_EQ(test, c->put[0], 1);
	KUNIT_EXPECT_EQ(test, c->sends_put, 0);
	KUNIT_EXPECT_EQ(test, c->request[0].tally.sent, RPCRDMA_A_TRAFFIC_INLINE);
	KUNIT_EXPECT_EQ(test, c->wrong, 0);
}

/* If it cannot be posted, its Send is given back. */
static void test_post_fails(struct kunit *test)
{
	copy_begin(test);
	c->post_fails = CHAINS;
	KUNIT_EXPECT_EQ(test, post(), -EIO);
	KUNIT_EXPECT_EQ(test, c->sends_put, 1);
	KUNIT_EXPECT_EQ(test, c->put[0], 1);
	KUNIT_EXPECT_EQ(test, c->request[0].tally.sent, 0);
	KUNIT_EXPECT_EQ(test, c->wrong, 0);
}

/* No Send is left, and the connection is closing. */
static void test_no_send(struct kunit *test)
{
	carriers_begin(test);
	c->send = NULL;
	KUNIT_EXPECT_EQ(test, post(), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, c->put[0], 1);
}

static void users_release(struct percpu_ref *users)
{
}

/* The connection is closed before there is an answer. */
static void test_closed(struct kunit *test)
{
	struct percpu_ref *users = &c->conn.users;

	carriers_begin(test);
	KUNIT_ASSERT_EQ(test, percpu_ref_init(users, users_release, PERCPU_REF_INIT_DEAD,
					      GFP_KERNEL), 0);
	spin_lock_init(&c->service.lock);
	c->service.detached = true;
	c->rqst.rq_xprt = &c->service.xprt;
	c->rqst.rq_xprt_ctxt = &c->request[0];
	KUNIT_EXPECT_EQ(test, svcrdma_sendto(&c->rqst), -ENOTCONN);
	KUNIT_EXPECT_EQ(test, c->put[0], 1);
	svcrdma_reply_error(&c->request[0]);
	KUNIT_EXPECT_EQ(test, c->put[0], 2);
	KUNIT_EXPECT_EQ(test, c->recvs_put, 1);
	percpu_ref_exit(users);
}

/* A Reply of some octets, which is copied, and a connection that can send it */
static void sendto_begin(struct kunit *test)
{
	static __be32 octets[6];

	copy_begin(test);
	KUNIT_ASSERT_EQ(test, percpu_ref_init(&c->conn.users, users_release,
					      PERCPU_REF_INIT_ATOMIC, GFP_KERNEL), 0);
	spin_lock_init(&c->service.lock);
	spin_lock_init(&c->conn.recv_lock);
	c->service.detached = true;
	svcrdma_grant_init(&c->service.grant, 1);
	c->conn.credits = 1;
	c->conn.agreement.reply_threshold = c->send->size;
	c->rqst.rq_res.head[0] = (struct kvec){ octets, sizeof(octets) };
	c->rqst.rq_res.len = sizeof(octets);
	c->rqst.rq_xprt = &c->service.xprt;
	c->rqst.rq_xprt_ctxt = &c->request[0];
}

static void expect_sendto(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, svcrdma_sendto(&c->rqst), c->rqst.rq_res.len);
	KUNIT_EXPECT_TRUE(test, c->sent);
	KUNIT_EXPECT_TRUE(test, c->noio);
	KUNIT_EXPECT_FALSE(test, current->flags & PF_MEMALLOC_NOIO);
	KUNIT_EXPECT_EQ(test, c->put[0], 1);
	percpu_ref_exit(&c->conn.users);
}

/*
 * A thread that goes on with a deferred Call does not get the pages that the request holds: they
 * are another thread's.
 */
static void test_deferred(struct kunit *test)
{
	struct svc_deferred_req deferred = {};
	unsigned int i;

	for (i = 0; i < 2; i++) {
		sendto_begin(test);
		c->rqst.rq_deferred = i ? &deferred : NULL;
		expect_sendto(test);
		KUNIT_EXPECT_EQ(test, c->pages_put, i);
		KUNIT_EXPECT_EQ(test, c->wrong, 0);
	}
}

/* With a Reply that grants less a Receive less is needed, but not with an error instead. */
static void test_grant_fell(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		sendto_begin(test);
		c->conn.recv_credits = 3;
		if (i)
			c->conn.agreement.reply_threshold = 0;
		expect_sendto(test);
		KUNIT_EXPECT_EQ(test, c->request[0].tally.sent,
				i ? RPCRDMA_A_TRAFFIC_ERROR : RPCRDMA_A_TRAFFIC_INLINE);
		KUNIT_EXPECT_EQ(test, c->conn.recv_credits, i ? 3 : 2);
	}
}

static struct kunit_case carrier_cases[] = {
	KUNIT_CASE(test_any_order),
	KUNIT_CASE(test_segments),
	KUNIT_CASE(test_done_at_once),
	KUNIT_CASE(test_no_carrier),
	KUNIT_CASE(test_chain_fails),
	KUNIT_CASE(test_header_fails),
	KUNIT_CASE(test_copy),
	KUNIT_CASE(test_copied),
	KUNIT_CASE(test_post_fails),
	KUNIT_CASE(test_no_send),
	KUNIT_CASE(test_closed),
	KUNIT_CASE(test_deferred),
	KUNIT_CASE(test_grant_fell),
	{}
};

static struct kunit_suite carrier_suite = {
	.name = "rpcrdma_carrier",
	.init = carriers_init,
	.test_cases = carrier_cases,
};

kunit_test_suites(&carrier_suite);
