// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/: Replies that arrive when their tasks have been killed, which pages
 * are cleared or made before a Call is sent, the buffers of a slot, and which slots stay.
 */
#include <kunit/test.h>
#include <linux/mm.h>
#include <net/net_namespace.h>

#include "../client/client_private.h"

#define REQUESTS	4

/* A client, its connection, an earlier one, and requests on the wire */
struct slot_fixture {
	struct xprt_rdma_client *client;
	struct xprt_rdma_endpoint *ep;
	struct xprt_rdma_endpoint *earlier;
	struct xprt_rdma_request *request[REQUESTS];
};

static struct xprt_rdma_endpoint *new_ep(struct kunit *test)
{
	struct xprt_rdma_endpoint *ep = kunit_kzalloc(test, sizeof(*ep),
						      GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, ep);
	spin_lock_init(&ep->awaiting_lock);
	return ep;
}

static void slots_start(struct kunit *test, struct slot_fixture *wire)
{
	struct xprt_rdma_request *request;
	ktime_t sent = ktime_get();
	unsigned int i;

	wire->client = kunit_kzalloc(test, sizeof(*wire->client), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, wire->client);
	spin_lock_init(&wire->client->xprt.reserve_lock);
	INIT_LIST_HEAD(&wire->client->slots);
	wire->ep = new_ep(test);
	wire->earlier = new_ep(test);

	for (i = 0; i < REQUESTS; i++) {
		request = kunit_kzalloc(test, sizeof(*request), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, request);
		request->ep = wire->ep;
		request->rqst.rq_xid = cpu_to_be32(i);
		request->rqst.rq_xtime = sent;
		list_add(&request->all, &wire->client->slots);
		wire->request[i] = request;
	}
}

/* A Reply arrives @later nanoseconds after the Calls were sent. */
static void note_reply(struct slot_fixture *wire, struct xprt_rdma_endpoint *ep,
		       u32 xid, s64 later)
{
	const struct xprt_rdma_unmatched_reply unmatched = {
		.xid = cpu_to_be32(xid),
		.arrived = ktime_add_ns(wire->request[0]->rqst.rq_xtime, later),
	};

	spin_lock(&ep->awaiting_lock);
	xprt_rdma_slots_note_unmatched_locked(wire->client, ep, &unmatched);
	spin_unlock(&ep->awaiting_lock);
}

/* Whether the task of a request waits for the Reply when it is retired */
static bool is_awaited(struct slot_fixture *wire, unsigned int i)
{
	struct xprt_rdma_request *request = wire->request[i];

	set_bit(XPRT_RDMA_AWAITING_REPLY, &request->state);
	spin_lock(&wire->ep->awaiting_lock);
	xprt_rdma_retire_find_unmatched_locked(request);
	spin_unlock(&wire->ep->awaiting_lock);
	return test_bit(XPRT_RDMA_AWAITING_REPLY, &request->state);
}

/* Several Replies in any order, before their tasks look for them */
static void test_unmatched_are_all_kept(struct kunit *test)
{
	struct slot_fixture wire;
	unsigned int i;

	slots_start(test, &wire);
	note_reply(&wire, wire.ep, 2, 1);
	note_reply(&wire, wire.ep, 0, 1);
	note_reply(&wire, wire.ep, 1, 1);
	note_reply(&wire, wire.ep, 1000, 1);
	for (i = 0; i < REQUESTS; i++)
		KUNIT_EXPECT_EQ(test, is_awaited(&wire, i), i == 3);
}

static void test_unmatched_of_other_connection(struct kunit *test)
{
	struct slot_fixture wire;

	slots_start(test, &wire);
	note_reply(&wire, wire.earlier, 1, 1);
	KUNIT_EXPECT_TRUE(test, is_awaited(&wire, 1));
}

/* A Reply with the same XID that arrived before this Call was sent */
static void test_unmatched_before_call(struct kunit *test)
{
	struct slot_fixture wire;

	slots_start(test, &wire);
	note_reply(&wire, wire.ep, 0, -1);
	KUNIT_EXPECT_TRUE(test, is_awaited(&wire, 0));
}

/* Another RPC has the slot by now. */
static void test_unmatched_of_earlier_rpc(struct kunit *test)
{
	struct slot_fixture wire;

	slots_start(test, &wire);
	note_reply(&wire, wire.ep, 1, 1);
	wire.request[1]->rqst.rq_xid = cpu_to_be32(1001);
	KUNIT_EXPECT_TRUE(test, is_awaited(&wire, 1));
}

/* A Reply that arrives while a killed task waits for it */
struct late_reply {
	struct slot_fixture wire;
	struct rpcrdma_recv recv;
	struct delayed_work arrives;
};

static void late_reply_arrives(struct work_struct *work)
{
	struct late_reply *late = container_of(to_delayed_work(work), struct late_reply, arrives);

	xprt_rdma_retire_unmatched(late->wire.ep, &late->recv, 0);
}

/* Return: true if the task went on before the second was over that it waits. */
static bool killed_task_is_woken(struct kunit *test)
{
	struct late_reply *late = kunit_kzalloc(test, sizeof(*late), GFP_KERNEL);
	struct xprt_rdma_request *request;
	unsigned long since;
	bool woken;

	KUNIT_ASSERT_NOT_NULL(test, late);
	slots_start(test, &late->wire);
	request = late->wire.request[0];
	set_bit(XPRT_RDMA_AWAITING_REPLY, &request->state);
	INIT_LIST_HEAD(&late->wire.ep->awaiting_reply);
	list_add(&request->list, &late->wire.ep->awaiting_reply);
	INIT_DELAYED_WORK(&late->arrives, late_reply_arrives);
	since = jiffies;
	schedule_delayed_work(&late->arrives, HZ / 20);
	wait_on_bit_timeout(&request->state, XPRT_RDMA_AWAITING_REPLY, TASK_UNINTERRUPTIBLE, HZ);
	woken = time_before(jiffies, since + 3 * HZ / 4);
	flush_delayed_work(&late->arrives);
	KUNIT_EXPECT_TRUE(test, request->late_reply);
	return woken;
}

/* A machine that is busy may be slow once. If the wake-up is lost, it always is. */
static void test_killed_task_is_woken(struct kunit *test)
{
	bool woken = false;
	unsigned int i;

	for (i = 0; i < 5 && !woken; i++)
		woken = killed_task_is_woken(test);
	KUNIT_EXPECT_TRUE(test, woken);
}

/* Pages for a Reply */

#define OLD	0xaa		/* what they hold before */
#define FIRST	100		/* where the Reply begins in the first page */

enum page_kind { FRESH, UPTODATE, MAPPED, PAGE_KINDS };

/* @held: hold data that somebody may see, or no more */
static void set_kind(struct page *page, enum page_kind kind, bool held)
{
	if (kind == UPTODATE && held)
		SetPageUptodate(page);
	if (kind == UPTODATE && !held)
		ClearPageUptodate(page);
	/* As if one page table had it, as those of memory that a driver lends to user space */
	if (kind == MAPPED)
		atomic_set(&page->_mapcount, held ? 0 : -1);
}

static unsigned int count_octets(struct page *page, u8 value)
{
	const u8 *octets = page_address(page);
	unsigned int i, count = 0;

	for (i = 0; i < PAGE_SIZE; i++)
		count += octets[i] == value;
	return count;
}

/*
 * The Reply goes to a page of each kind. Only the fresh one is cleared, and of that only the
 * part that is the Reply's.
 */
static void expect_cleared(struct kunit *test, enum page_kind first)
{
	struct xprt_rdma_request *request =
		kunit_kzalloc(test, sizeof(*request), GFP_KERNEL);
	struct page *pages[PAGE_KINDS];
	struct xdr_buf *buf;
	unsigned int i, kept;

	KUNIT_ASSERT_NOT_NULL(test, request);
	for (i = 0; i < PAGE_KINDS; i++) {
		pages[i] = alloc_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, pages[i]);
		memset(page_address(pages[i]), OLD, PAGE_SIZE);
		set_kind(pages[i], (first + i) % PAGE_KINDS, true);
	}
	buf = &request->rqst.rq_rcv_buf;
	buf->pages = pages;
	buf->page_base = FIRST;
	buf->page_len = PAGE_KINDS * PAGE_SIZE - 2 * FIRST;
	KUNIT_EXPECT_EQ(test, xprt_rdma_request_prepare(&request->rqst, buf), 0);
	for (i = 0; i < PAGE_KINDS; i++) {
		set_kind(pages[i], (first + i) % PAGE_KINDS, false);
		kept = i == 1 ? 0 : FIRST;
		if ((first + i) % PAGE_KINDS != FRESH || want_init_on_alloc(0))
			kept = PAGE_SIZE;
		KUNIT_EXPECT_EQ(test, count_octets(pages[i], OLD), kept);
		KUNIT_EXPECT_EQ(test, count_octets(pages[i], 0), PAGE_SIZE - kept);
		__free_page(pages[i]);
	}
}

static void test_only_fresh_pages_are_cleared(struct kunit *test)
{
	enum page_kind first;

	for (first = 0; first < PAGE_KINDS; first++)
		expect_cleared(test, first);
}

/* sunrpc leaves some pages to the transport: those that are not there, and no others. */
static void test_sparse_pages(struct kunit *test)
{
	struct xprt_rdma_request *request =
		kunit_kzalloc(test, sizeof(*request), GFP_KERNEL);
	struct page *page = alloc_page(GFP_KERNEL), *pages[4] = { NULL, page };
	struct xdr_buf *buf;

	KUNIT_ASSERT_NOT_NULL(test, request);
	KUNIT_ASSERT_NOT_NULL(test, page);
	buf = &request->rqst.rq_rcv_buf;
	buf->pages = pages;
	buf->page_base = FIRST;
	buf->page_len = 3 * PAGE_SIZE - FIRST;
	buf->flags = XDRBUF_SPARSE_PAGES;
	KUNIT_EXPECT_EQ(test, xprt_rdma_request_prepare(&request->rqst, buf), 0);
	KUNIT_ASSERT_NOT_NULL(test, pages[0]);
	KUNIT_EXPECT_PTR_EQ(test, pages[1], page);
	KUNIT_ASSERT_NOT_NULL(test, pages[2]);
	KUNIT_EXPECT_NULL(test, pages[3]);
	release_pages(pages, 3);
}

/* A buffer that is large enough stays. Another one holds nothing of what was there before. */
static void test_buffers(struct kunit *test)
{
	struct slot_fixture wire;
	struct rpc_rqst *rqst;
	struct rpc_task task = {};

	slots_start(test, &wire);
	rqst = &wire.request[0]->rqst;
	rqst->rq_xprt = &wire.client->xprt;
	task.tk_rqstp = rqst;
	rqst->rq_callsize = 100;
	rqst->rq_rcvsize = 600;
	KUNIT_ASSERT_EQ(test, xprt_rdma_buffers_alloc(&task), 0);
	memset(rqst->rq_buffer, OLD, 512);
	memset(rqst->rq_rbuffer, OLD, 1024);
	rqst->rq_callsize = 512;
	rqst->rq_rcvsize = 1028;
	KUNIT_ASSERT_EQ(test, xprt_rdma_buffers_alloc(&task), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(rqst->rq_buffer, OLD, 512));
	KUNIT_EXPECT_NULL(test, memchr_inv(rqst->rq_rbuffer, 0, 1536));
	KUNIT_EXPECT_EQ(test, atomic_long_read(&wire.client->buffers_size), 512 + 1536);
	kfree(rqst->rq_buffer);
	kfree(rqst->rq_rbuffer);
}

#define SLOT_BUFFERS	1024	/* octets of the buffers of a slot here */

static void take_slot(struct kunit *test, struct rpc_xprt *xprt, struct rpc_task *task)
{
	xprt_rdma_slot_alloc(xprt, task);
	KUNIT_ASSERT_NOT_NULL(test, task->tk_rqstp);
	task->tk_rqstp->rq_xprt = xprt;
	task->tk_rqstp->rq_callsize = SLOT_BUFFERS / 2;
	task->tk_rqstp->rq_rcvsize = SLOT_BUFFERS / 2;
	KUNIT_ASSERT_EQ(test, xprt_rdma_buffers_alloc(task), 0);
}

/* So many RPCs are in progress at the same time. */
static void use_slots(struct kunit *test, struct rpc_xprt *xprt, struct rpc_task *tasks,
		      unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		take_slot(test, xprt, &tasks[i]);
	while (i--)
		xprt_rdma_slot_free(xprt, tasks[i].tk_rqstp);
}

static void expect_slots(struct kunit *test, struct xprt_rdma_client *client, unsigned int count)
{
	KUNIT_EXPECT_EQ(test, client->xprt.num_reqs, count);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&client->slots), count);
	KUNIT_EXPECT_EQ(test, list_count_nodes(&client->idle) + client->in_use, count);
	KUNIT_EXPECT_EQ(test, atomic_long_read(&client->buffers_size), count * SLOT_BUFFERS);
}

/* Slots that no RPC had since the last time go with their buffers, but for one. */
static void test_rest(struct kunit *test)
{
	struct rpc_xprt *xprt = xprt_alloc(&init_net, sizeof(struct xprt_rdma_client), 0, 0);
	struct rpc_task *tasks = kunit_kcalloc(test, REQUESTS, sizeof(*tasks), GFP_KERNEL);
	struct rpcrdma_conn *conn = kunit_kzalloc(test, sizeof(*conn), GFP_KERNEL);
	struct xprt_rdma_endpoint *ep = new_ep(test);
	struct xprt_rdma_client *client;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, xprt);
	KUNIT_ASSERT_NOT_NULL(test, tasks);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	client = xprt_rdma_client_of(xprt);
	KUNIT_ASSERT_EQ(test, xprt_rdma_slots_create(client), 0);
	ep->client = client;
	conn->role = ep;

	use_slots(test, xprt, tasks, REQUESTS);
	KUNIT_EXPECT_TRUE(test, xprt_rdma_slots_rest(conn));
	expect_slots(test, client, REQUESTS);
	use_slots(test, xprt, tasks, 2);
	KUNIT_EXPECT_TRUE(test, xprt_rdma_slots_rest(conn));
	expect_slots(test, client, 2);
	KUNIT_EXPECT_EQ(test, xprt->stat.max_slots, REQUESTS);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_FALSE(test, xprt_rdma_slots_rest(conn));
		expect_slots(test, client, 1);
	}

	/* The one that stays may be one in use. */
	use_slots(test, xprt, tasks, 2);
	take_slot(test, xprt, tasks);
	KUNIT_EXPECT_TRUE(test, xprt_rdma_slots_rest(conn));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_slots_rest(conn));
	expect_slots(test, client, 1);
	xprt_rdma_slot_free(xprt, tasks->tk_rqstp);

	/* A device may go on using the memory of any. */
	use_slots(test, xprt, tasks, REQUESTS);
	client->stuck = true;
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_FALSE(test, xprt_rdma_slots_rest(conn));
	expect_slots(test, client, REQUESTS);
	client->stuck = false;
	xprt_rdma_slots_destroy(client);
	xprt_free(xprt);
}

static struct kunit_case slot_cases[] = {
	KUNIT_CASE(test_unmatched_are_all_kept),
	KUNIT_CASE(test_unmatched_of_other_connection),
	KUNIT_CASE(test_unmatched_before_call),
	KUNIT_CASE(test_unmatched_of_earlier_rpc),
	KUNIT_CASE(test_killed_task_is_woken),
	KUNIT_CASE(test_only_fresh_pages_are_cleared),
	KUNIT_CASE(test_sparse_pages),
	KUNIT_CASE(test_buffers),
	KUNIT_CASE(test_rest),
	{}
};

static struct kunit_suite slot_suite = {
	.name = "rpcrdma_slot",
	.test_cases = slot_cases,
};

kunit_test_suites(&slot_suite);
