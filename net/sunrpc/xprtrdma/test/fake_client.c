// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A client over a fake connection, see fake_client.h.
 */
#include <linux/sunrpc/auth.h>
#include <linux/sunrpc/msg_prot.h>
#include <net/net_namespace.h>

#include "fake_client.h"

static unsigned int num_cleanups;

/* The test keeps the endpoint, to see who else has it in the end. */
static void fake_connecting(struct fake_conn *fake, const struct sockaddr *source,
			    const struct rpcrdma_conn_config *config)
{
	struct fake_client *t = container_of(fake, struct fake_client, fake);

	if (t->ep)
		xprt_rdma_ep_put(t->ep);
	t->ep = config->role;
	xprt_rdma_ep_get(t->ep);
	t->config = *config;
	t->source = source;
	t->flags = current->flags;
	t->connects++;
}

/* A server that has version 2 if the client offers it */
static void fake_agrees(struct fake_conn *fake)
{
	struct fake_client *t = container_of(fake, struct fake_client, fake);

	if (t->config.version_max == RPCRDMA_VERSION_ONE)
		return;
	fake->broken += !fake_server_gets_null(t);
	fake_server_replies(t, FAKE_NULL_REPLY_LEN, 0);
	fake->posts = 0;
}

/* sunrpc's would close the transport. */
static void fake_cleanup(struct work_struct *work)
{
	num_cleanups++;
}

static void fake_xprt_make(struct kunit *test, struct fake_client *t)
{
	struct rpc_xprt *xprt = xprt_alloc(&init_net, sizeof(*t->client), 0, 0);

	KUNIT_ASSERT_NOT_NULL(test, xprt);
	xprt->ops = &xprt_rdma_client_ops;
	xprt->max_reqs = FAKE_CREDITS;
	xprt->connect_timeout = HZ;
	xprt->max_reconnect_timeout = 30 * HZ;
	INIT_WORK(&xprt->task_cleanup, fake_cleanup);
	num_cleanups = 0;
	t->client = xprt_rdma_client_of(xprt);
	t->client->limit = FAKE_CREDITS;
	INIT_LIST_HEAD(&t->client->slots);
	INIT_LIST_HEAD(&t->client->idle);
	INIT_LIST_HEAD(&t->client->backward_idle);
	spin_lock_init(&t->client->backward_lock);
	INIT_DELAYED_WORK(&t->client->connect_work, xprt_rdma_ep_connect_worker);
	t->client->connect_at = jiffies;
}

/**
 * fake_client_make - make a client that is not connected
 * @test: the test
 * @threshold: what both ends will agree on
 * @version: the highest version that the client will offer
 *
 * Its next connection is the fake one. The task @connector has XPRT_LOCKED.
 *
 * Return: the client.
 */
struct fake_client *fake_client_make(struct kunit *test, u32 threshold, u32 version)
{
	struct fake_client *t = kzalloc(sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	fake_conn_make(test, &t->fake, threshold, version);
	fake_xprt_make(test, t);
	t->fake.connecting = fake_connecting;
	t->fake.established = fake_agrees;
	t->clnt.cl_prog = FAKE_PROGRAM;
	t->clnt.cl_vers = FAKE_PROGRAM_VERSION;
	INIT_LIST_HEAD(&t->xps.xps_xprt_list);
	list_add(&t->client->xprt.xprt_switch, &t->xps.xps_xprt_list);
	RCU_INIT_POINTER(t->clnt.cl_xpi.xpi_xpswitch, &t->xps);
	t->connector.tk_client = &t->clnt;
	t->connector.tk_rqstp = &t->connector_rqst;
	t->connector_rqst.rq_xprt = &t->client->xprt;
	xprt_rdma_version_max = version;
	fake_conn_serve(&t->fake);
	fake_lock(t);
	return t;
}

/* The task that sends takes XPRT_LOCKED. It keeps it, so that no other one closes. */
void fake_lock(struct fake_client *t)
{
	xprt_reserve_xprt(&t->client->xprt, &t->connector);
}

/* As a task that waits in a queue of sunrpc */
void fake_sleep(struct rpc_wait_queue *queue, struct rpc_task *task)
{
	set_bit(RPC_TASK_ACTIVE, &task->tk_runstate);
	task->tk_status = 0;
	rpc_sleep_on(queue, task, NULL);
	rpc_clear_running(task);
}

/* How often sunrpc would have closed the transport by itself */
unsigned int fake_cleanups(struct fake_client *t)
{
	flush_work(&t->client->xprt.task_cleanup);
	return num_cleanups;
}

/* As xprt_connect() does it. Afterwards @t->connector has XPRT_LOCKED again. */
void fake_client_connect(struct fake_client *t)
{
	struct rpc_xprt *xprt = &t->client->xprt;

	fake_sleep(&xprt->pending, &t->connector);
	xprt_test_and_set_connecting(xprt);
	xprt->stat.connect_start = jiffies;
	xprt_rdma_ep_connect(xprt, &t->connector);
	flush_delayed_work(&t->client->connect_work);
	fake_lock(t);
}

/* A client that is connected */
struct fake_client *fake_client_begin(struct kunit *test, u32 threshold, u32 version)
{
	struct fake_client *t = fake_client_make(test, threshold, version);

	fake_client_connect(t);
	KUNIT_ASSERT_PTR_EQ(test, t->client->ep, t->ep);
	return t;
}

/* A client of version 1 that is connected and has registrations */
struct fake_client *fake_client_begin_mrs(struct kunit *test, u32 threshold, unsigned int mrs)
{
	struct fake_client *t = fake_client_begin(test, threshold, RPCRDMA_VERSION_ONE);

	fake_make_mrs(test, &t->fake, mrs);
	return t;
}

/* Whatever is on the wire is off it: the connection is closed. */
static void fake_rpc_end(struct kunit *test, struct fake_rpc *rpc)
{
	if (!rpc->request.ep)
		return;
	KUNIT_EXPECT_FALSE(test, test_and_clear_bit(XPRT_RDMA_GATHERING, &rpc->request.state));
	xprt_rdma_request_retire(&rpc->request);
	KUNIT_EXPECT_NULL(test, rpc->request.ep);
	KUNIT_EXPECT_TRUE(test, list_empty(&rpc->request.invalidation.mrs));
}

/* The .exit of a suite: what a test that has ended early leaves behind is a leak, no more. */
void fake_client_exit(struct kunit *test)
{
	fake_conn_serve(NULL);
	xprt_rdma_version_max = RPCRDMA_VERSION_ONE;
}

/**
 * fake_client_end - close the connection, and check that nobody holds anything
 * @test: the test
 * @t: the client, which is freed
 */
void fake_client_end(struct kunit *test, struct fake_client *t)
{
	struct xprt_rdma_client *client = t->client;

	fake_client_exit(test);
	cancel_delayed_work_sync(&client->connect_work);
	fake_conn_close(test, &t->fake);
	fake_rpc_end(test, &t->rpc);
	fake_rpc_end(test, &t->other);
	if (client->ep) {
		KUNIT_EXPECT_TRUE(test, completion_done(&client->ep->closed));
		complete_all(&client->ep->closed);
		xprt_rdma_ep_close(&client->xprt);
	}
	if (t->ep) {
		KUNIT_EXPECT_EQ(test, kref_read(&t->ep->ref), 1);
		xprt_rdma_ep_put(t->ep);
	}
	fake_conn_end(test, &t->fake);
	flush_work(&client->xprt.task_cleanup);
	xprt_free(&client->xprt);
	kfree(t);
}

/* RPCs */

static u8 fake_value(unsigned int i)
{
	return i * 7 + (i >> 8);
}

static void fake_add_page(struct kunit *test, struct page **page)
{
	void *octets;

	if (*page)
		return;
	octets = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, octets);
	KUNIT_ASSERT_EQ(test, offset_in_page(octets), 0);
	*page = virt_to_page(octets);
}

static void fake_add_message(struct kunit *test, struct fake_message **message,
			     struct page **pages, const struct fake_sizes *sizes)
{
	unsigned int i;

	if (!*message)
		*message = kunit_kzalloc(test, sizeof(**message), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, *message);
	KUNIT_ASSERT_LE(test, sizes->base + sizes->pages, FAKE_PAGES * PAGE_SIZE);
	for (i = 0; i < DIV_ROUND_UP(sizes->base + sizes->pages, PAGE_SIZE); i++)
		fake_add_page(test, &pages[i]);
}

static void fake_fill_buf(struct xdr_buf *buf, struct fake_message *message,
			  struct page **pages, const struct fake_sizes *sizes)
{
	xdr_buf_init(buf, message->head, FAKE_KVEC_MAX);
	buf->head[0].iov_len = sizes->head;
	buf->pages = pages;
	buf->page_base = sizes->base;
	buf->page_len = sizes->pages;
	buf->tail[0].iov_base = message->tail + PAGE_SIZE - FAKE_TAIL_SPLIT;
	buf->tail[0].iov_len = sizes->tail;
	buf->buflen = sizes->head + sizes->pages + sizes->tail;
}

/* Octets that tell their places, and zeros for the padding of the pages */
static void fake_fill_call(struct fake_client *t, struct xdr_buf *buf, __be32 xid)
{
	const __be32 begin[] = { xid, rpc_call };
	unsigned int i;

	for (i = 0; i < buf->buflen; i++)
		t->expected[i] = fake_value(i);
	memcpy(t->expected, begin, sizeof(begin));
	i = buf->head[0].iov_len + buf->page_len;
	memset(t->expected + i, 0, xdr_pad_size(buf->page_len));
	buf->len = buf->buflen;
	write_bytes_to_xdr_buf(buf, 0, t->expected, buf->len);
}

/* sunrpc finds the RPC by its XID, in a tree that is sorted by it. */
static void fake_enqueue(struct rpc_xprt *xprt, struct rpc_rqst *rqst)
{
	struct rb_node **link = &xprt->recv_queue.rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = (__force u32)rqst->rq_xid <
		       (__force u32)rb_entry(parent, struct rpc_rqst, rq_recv)->rq_xid ?
		       &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&rqst->rq_recv, parent, link);
	rb_insert_color(&rqst->rq_recv, &xprt->recv_queue);
}

/**
 * fake_rpc_begin - let an RPC be encoded, and wait for its Reply
 * @test: the test
 * @t: the client
 * @rpc: the RPC, complete or new
 * @xid: its XID
 * @call: the sizes of its Call; NULL: a short one
 * @reply: and of its longest Reply; NULL: a short one
 */
void fake_rpc_begin(struct kunit *test, struct fake_client *t, struct fake_rpc *rpc, u32 xid,
		    const struct fake_sizes *call, const struct fake_sizes *reply)
{
	static const struct fake_sizes small = { .head = 40 };
	struct rpc_rqst *rqst = &rpc->request.rqst;
	struct rpc_task *task = &rpc->task;

	call = call ?: &small;
	reply = reply ?: &small;
	if (!rpc->call) {
		INIT_LIST_HEAD(&rpc->request.invalidation.mrs);
		list_add(&rpc->request.all, &t->client->slots);
	}
	fake_add_message(test, &rpc->call, rpc->call_page, call);
	fake_add_message(test, &rpc->reply, rpc->reply_page, reply);
	rpc->cred.cr_auth = &rpc->auth;
	memset(rqst, 0, sizeof(*rqst));
	memset(task, 0, sizeof(*task));
	rqst->rq_task = task;
	rqst->rq_xprt = &t->client->xprt;
	rqst->rq_cred = &rpc->cred;
	rqst->rq_xid = cpu_to_be32(xid);
	fake_fill_buf(&rqst->rq_snd_buf, rpc->call, rpc->call_page, call);
	fake_fill_call(t, &rqst->rq_snd_buf, rqst->rq_xid);
	rqst->rq_snd_buf.flags = call->ddp ? XDRBUF_WRITE : 0;
	fake_fill_buf(&rqst->rq_rcv_buf, rpc->reply, rpc->reply_page, reply);
	rqst->rq_rcv_buf.flags = reply->ddp ? XDRBUF_READ : 0;
	rqst->rq_private_buf = rqst->rq_rcv_buf;
	rqst->rq_rbuffer = rpc->reply->head;
	rqst->rq_rcvsize = FAKE_KVEC_MAX;
	task->tk_rqstp = rqst;
	task->tk_client = &t->clnt;
	task->tk_msg.rpc_proc = &t->proc;
	set_bit(RPC_TASK_NEED_RECV, &task->tk_runstate);
	fake_enqueue(&t->client->xprt, rqst);
}

int fake_rpc_send(struct fake_rpc *rpc)
{
	return xprt_rdma_call_send(&rpc->request.rqst);
}

/* Whether the task has a Reply, good or bad */
bool fake_rpc_is_complete(const struct fake_rpc *rpc)
{
	return rpc->request.rqst.rq_reply_bytes_recvd;
}

/**
 * fake_expect_off_wire - expect that nothing of the RPC is on the wire, or anybody's
 * @test: the test
 * @t: the client, with no other RPC on the wire
 * @mrs: registrations that its connection has
 */
void fake_expect_off_wire(struct kunit *test, struct fake_client *t, unsigned int mrs)
{
	const struct xprt_rdma_request *request = &t->rpc.request;

	KUNIT_EXPECT_NULL(test, request->ep);
	KUNIT_EXPECT_TRUE(test, list_empty(&request->invalidation.mrs));
	KUNIT_EXPECT_FALSE(test, test_bit(XPRT_RDMA_GATHERING, &request->state));
	KUNIT_EXPECT_EQ(test, fake_idle_mrs(&t->fake), mrs);
	KUNIT_EXPECT_EQ(test, atomic_read(&t->ep->credits.in_flight), 0);
	/* Of the client, of the connection, and of the test */
	KUNIT_EXPECT_EQ(test, kref_read(&t->ep->ref), 3);
}

/* The server */

static bool fake_server_reads(struct fake_client *t, const struct rpcrdma_chunk *chunk, u32 *at)
{
	const struct rpcrdma_segment *segment = rpcrdma_chunk_segments(&t->msg, chunk);
	unsigned int i;

	for (i = 0; i < chunk->count; i++, segment++) {
		if (*at + segment->length > sizeof(t->stream) ||
		    !fake_read(&t->fake, segment, t->stream + *at))
			return false;
		*at += segment->length;
	}
	return true;
}

/* Put the message together. Return: its octets; zero if that cannot be done. */
static u32 fake_server_assembles(struct fake_client *t)
{
	const u8 *payload = t->fake.sent + t->msg.header_len;
	const struct rpcrdma_chunk *chunk = &t->msg.read[0];
	u32 at = t->msg.payload_len, data = 0, pad;

	if (t->msg.num_reads)
		at = chunk->position;
	memcpy(t->stream, payload, at);
	if (t->msg.num_reads) {
		data = at;
		if (!fake_server_reads(t, chunk, &at))
			return 0;
		pad = t->msg.proc == RPCRDMA_MSG ? xdr_pad_size(chunk->length) : 0;
		memset(t->stream + at, 0, pad);
		at += pad;
		memcpy(t->stream + at, payload + data, t->msg.payload_len - data);
		at += t->msg.payload_len - data;
	}
	return at;
}

/**
 * fake_server_gets - the server takes the Call that was sent last
 * @t: the client; @t->msg becomes the header
 * @rpc: the RPC
 *
 * Return: true if it is the Call of @rpc, all of it.
 */
bool fake_server_gets(struct fake_client *t, const struct fake_rpc *rpc)
{
	const struct xdr_buf *buf = &rpc->request.rqst.rq_snd_buf;

	if (rpcrdma_wire_decode(&t->msg, t->fake.sent, t->fake.sent_len, RPCRDMA_SERVER_END,
				false, RPCRDMA_VERSION_MAX) != RPCRDMA_USE ||
	    t->msg.num_reads > 1 ||
	    read_bytes_from_xdr_buf(buf, 0, t->expected, buf->len))
		return false;
	return fake_server_assembles(t) == buf->len &&
	       !memcmp(t->stream, t->expected, buf->len);
}

/* The server takes the NULL that asks for the version. Return: true if it is one. */
bool fake_server_gets_null(struct fake_client *t)
{
	__be32 null[FAKE_NULL_LEN / sizeof(__be32)] = {
		[1] = rpc_call, cpu_to_be32(RPC_VERSION), cpu_to_be32(FAKE_PROGRAM),
		cpu_to_be32(FAKE_PROGRAM_VERSION),
	};

	if (rpcrdma_wire_decode(&t->msg, t->fake.sent, t->fake.sent_len, RPCRDMA_SERVER_END,
				false, RPCRDMA_VERSION_MAX) != RPCRDMA_USE)
		return false;
	null[0] = t->msg.xid;
	return t->msg.xid && t->msg.payload_len == sizeof(null) &&
	       !memcmp(t->fake.sent + t->msg.header_len, null, sizeof(null));
}

/* The server fills a chunk of the Call. Return: false if it must not write there. */
bool fake_server_writes(struct fake_client *t, const struct rpcrdma_chunk *chunk, u8 value)
{
	const struct rpcrdma_segment *segment = rpcrdma_chunk_segments(&t->msg, chunk);
	unsigned int i;

	for (i = 0; i < chunk->count; i++, segment++)
		if (!fake_write(&t->fake, segment, value))
			return false;
	return true;
}

/* The server sends @t->msg, and an RPC message of so many octets after it. */
void fake_server_sends(struct fake_client *t, u32 payload_len, u32 invalidated)
{
	int len = rpcrdma_wire_encode(&t->msg, t->octets, sizeof(t->octets));
	const __be32 begin[] = { t->msg.xid, cpu_to_be32(t->msg.direction) };

	if (len < 0) {
		t->fake.broken++;
		return;
	}
	memset((u8 *)t->octets + len, 0, payload_len);
	memcpy((u8 *)t->octets + len, begin, min_t(u32, sizeof(begin), payload_len));
	fake_deliver(&t->fake, t->octets, len + payload_len, invalidated);
}

/* It answers the Call that it has got last. Chunks have what @t->msg says. */
void fake_server_replies(struct fake_client *t, u32 payload_len, u32 invalidated)
{
	rpcrdma_wire_make_reply(&t->msg, FAKE_CREDITS);
	t->msg.proc = payload_len ? RPCRDMA_MSG : RPCRDMA_NOMSG;
	fake_server_sends(t, payload_len, invalidated);
}
