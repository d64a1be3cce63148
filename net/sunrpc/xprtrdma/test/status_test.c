// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of status/, and of what conn/ and the roles count for it. A copy of status.c is
 * compiled here. Its lists of devices, listeners and peers are the test's.
 */
#define pr_fmt(fmt) "rpcrdma: " fmt

#include <kunit/test.h>

/* The names of the copy */
#define rpcrdma_status_event		status_test_event
#define rpcrdma_status_refused		status_test_refused
#define rpcrdma_status_init		status_test_init
#define rpcrdma_status_exit		status_test_exit
#define rpcrdma_devices			status_test_devices
#define rpcrdma_devices_lock		status_test_devices_lock
#define rpcrdma_listeners		status_test_listeners
#define rpcrdma_listeners_lock		status_test_listeners_lock
#define rpcrdma_history_get		status_test_history_get

#include "../client/client_private.h"
#include "../conn/conn_private.h"
#include "../server/server_private.h"
#include "fake_conn.h"
#include "../status/status.c"

/* What a dump has for one message on a machine with pages of 4 KiB */
#define MESSAGE_MAX	3584

DEFINE_MUTEX(rpcrdma_devices_lock);	/* protects nothing here */
LIST_HEAD(rpcrdma_devices);
DEFINE_MUTEX(rpcrdma_listeners_lock);	/* protects nothing here */
LIST_HEAD(rpcrdma_listeners);

static struct rpcrdma_history peers[4];
static unsigned int peers_changes = 1;

unsigned int rpcrdma_history_get(const struct net *ns, unsigned int n,
				 struct rpcrdma_history *copy)
{
	if (ns != &init_net || n >= ARRAY_SIZE(peers))
		return 0;
	*copy = peers[n];
	return peers_changes;
}

static void set_peer(struct rpcrdma_conn *conn)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&conn->peer_addr;

	v4->sin_family = AF_INET;
	v4->sin_port = htons(20049);
	v4->sin_addr.s_addr = htonl(0x0a110001);
	conn->local_addr = conn->peer_addr;
}

/* A client's, which is in the network namespace of the test */
static struct rpcrdma_conn *new_conn(struct kunit *test)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_alloc(false);

	KUNIT_ASSERT_NOT_NULL(test, conn);
	set_peer(conn);
	rpcrdma_conn_set_net(conn, &init_net);
	return conn;
}

static void free_conn(struct rpcrdma_conn *conn)
{
	rpcrdma_conn_put(conn);
	rpcrdma_conn_put(conn);
}

static void bucket(struct kunit *test, s64 ns, unsigned int wanted)
{
	KUNIT_EXPECT_EQ(test, rpcrdma_latency_slot(ns_to_ktime(ns)), 1 + wanted);
}

static void test_latency_buckets(struct kunit *test)
{
	bucket(test, 0, 0);
	bucket(test, 999, 0);
	bucket(test, 1000, 1);
	bucket(test, 1999, 1);
	bucket(test, 2000, 2);
	bucket(test, 3999, 2);
	bucket(test, 4000, 3);
	bucket(test, 1023999, 10);
	bucket(test, 1024000, 11);
	bucket(test, (s64)NSEC_PER_USEC << 25, 26);
	bucket(test, (s64)NSEC_PER_USEC << 26, 27);
	bucket(test, S64_MAX, RPCRDMA_LATENCY_BUCKETS - 1);
}

static u64 uint_of(struct kunit *test, const struct nlattr *attr)
{
	KUNIT_ASSERT_NOT_NULL(test, attr);
	if (nla_len(attr) == sizeof(u32))
		return nla_get_u32(attr);
	KUNIT_ASSERT_EQ(test, nla_len(attr), (int)sizeof(u64));
	return nla_get_u64(attr);
}

static struct sk_buff *message(struct kunit *test, struct rpcrdma_conn *conn)
{
	struct sk_buff *skb = alloc_skb(2 * PAGE_SIZE, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, put_conn(skb, conn), 0);
	return skb;
}

static void parse(struct kunit *test, const struct sk_buff *skb, struct nlattr **attrs)
{
	KUNIT_ASSERT_EQ(test, 0, nla_parse(attrs, RPCRDMA_A_CONNECTION_MAX,
					   (const struct nlattr *)skb->data, skb->len,
					   NULL, NULL));
}

static u64 traffic_of(struct kunit *test, const struct nlattr *nest, int number)
{
	struct nlattr *attrs[RPCRDMA_A_TRAFFIC_MAX + 1];

	KUNIT_ASSERT_NOT_NULL(test, nest);
	KUNIT_ASSERT_EQ(test, 0, nla_parse_nested_deprecated(attrs, RPCRDMA_A_TRAFFIC_MAX, nest,
							     NULL, NULL));
	return uint_of(test, attrs[number]);
}

/* Ages and octets above 32 bits do not wrap. */
static void test_large_numbers(struct kunit *test)
{
	struct nlattr *attrs[RPCRDMA_A_CONNECTION_MAX + 1];
	struct rpcrdma_conn *conn = new_conn(test);
	const struct nlattr *sent;
	struct sk_buff *skb;

	conn->state_since = ktime_sub(ktime_get(), ms_to_ktime(1ULL << 33));
	conn->counters.sent.placed_octets = 1ULL << 40;
	conn->counters.sent.messages[RPCRDMA_A_TRAFFIC_LONG_CALL] = 5;
	skb = message(test, conn);
	parse(test, skb, attrs);
	KUNIT_EXPECT_GE(test, uint_of(test, attrs[RPCRDMA_A_CONNECTION_STATE_AGE]), 1ULL << 33);
	sent = attrs[RPCRDMA_A_CONNECTION_SENT];
	KUNIT_EXPECT_EQ(test, traffic_of(test, sent, RPCRDMA_A_TRAFFIC_PLACED_OCTETS),
			1ULL << 40);
	KUNIT_EXPECT_EQ(test, traffic_of(test, sent, RPCRDMA_A_TRAFFIC_LONG_CALL), 5);
	kfree_skb(skb);
	free_conn(conn);
}

static void describe(struct rpcrdma_conn *conn, struct rpcrdma_role_status *status)
{
	memset(status, 0xff, sizeof(*status));
}

static const struct rpcrdma_conn_ops describing_ops = { .describe = describe };

/* However long the numbers are, each connection fits into a message of a dump. */
static void test_longest_message_fits(struct kunit *test)
{
	struct fake_conn *fake = fake_conn_new(test, RPCRDMA_INLINE_MIN);
	const struct rpcrdma_conn_ops *no_role = fake->conn->ops;
	char name[IB_DEVICE_NAME_MAX];
	struct rpcrdma_conn *conn = fake->conn;
	struct sk_buff *skb;

	strscpy(name, conn->device->ib->name, sizeof(name));
	memset(conn->device->ib->name, 'd', sizeof(name) - 1);
	conn->ops = &describing_ops;
	conn->agreement.remote_inv = true;
	conn->device->max_read_responder = 1;
	conn->status = -1;
	conn->state_since = S64_MIN / 2;
	memset(&conn->counters, 0xff, sizeof(conn->counters));
	conn->peer_addr.ss_family = AF_INET6;
	memset(&((struct sockaddr_in6 *)&conn->peer_addr)->sin6_addr, 0xff, 16);
	conn->local_addr = conn->peer_addr;
	skb = message(test, conn);
	KUNIT_EXPECT_LT(test, skb->len, MESSAGE_MAX);
	kfree_skb(skb);
	strscpy(conn->device->ib->name, name, sizeof(name));
	conn->ops = no_role;
	fake_conn_delete(test, fake);
}

/* What is not known before a connection is established is absent. */
static void test_not_established(struct kunit *test)
{
	struct nlattr *attrs[RPCRDMA_A_CONNECTION_MAX + 1];
	struct rpcrdma_conn *conn = new_conn(test);
	struct sk_buff *skb;

	skb = message(test, conn);
	parse(test, skb, attrs);
	KUNIT_EXPECT_STREQ(test, nla_data(attrs[RPCRDMA_A_CONNECTION_PEER]), "10.17.0.1:20049");
	KUNIT_EXPECT_EQ(test, nla_get_u32(attrs[RPCRDMA_A_CONNECTION_PEER_PORT]), 20049);
	KUNIT_EXPECT_NULL(test, attrs[RPCRDMA_A_CONNECTION_LOCAL]);
	KUNIT_EXPECT_NULL(test, attrs[RPCRDMA_A_CONNECTION_DEVICE]);
	KUNIT_EXPECT_NULL(test, attrs[RPCRDMA_A_CONNECTION_CAUSE]);
	KUNIT_EXPECT_NULL(test, attrs[RPCRDMA_A_CONNECTION_CREDITS_GRANTED]);
	kfree_skb(skb);
	free_conn(conn);
}

static bool finds(unsigned long from, const struct rpcrdma_conn *wanted)
{
	struct rpcrdma_conn *found = rpcrdma_conn_find(&init_net, from);

	if (found)
		rpcrdma_conn_put(found);
	return found == wanted;
}

/* A walk goes on after a connection that has gone, and repeats none. */
static void test_walk(struct kunit *test)
{
	struct rpcrdma_conn *conns[4];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(conns); i++)
		conns[i] = new_conn(test);
	KUNIT_EXPECT_TRUE(test, finds(conns[0]->id, conns[0]));
	KUNIT_EXPECT_TRUE(test, finds(conns[0]->id + 1, conns[1]));
	i = conns[1]->id;
	free_conn(conns[1]);
	KUNIT_EXPECT_TRUE(test, finds(conns[0]->id + 1, conns[2]));
	KUNIT_EXPECT_TRUE(test, finds(i + 1, conns[2]));
	/* One that is closed is memory that a role still has. */
	conns[2]->state = RPCRDMA_STATE_CLOSED;
	KUNIT_EXPECT_TRUE(test, finds(conns[0]->id + 1, conns[3]));
	KUNIT_EXPECT_TRUE(test, finds(conns[3]->id + 1, NULL));
	free_conn(conns[0]);
	free_conn(conns[2]);
	free_conn(conns[3]);
}

/* Before it has a namespace a connection belongs to none. */
static void test_namespace(struct kunit *test)
{
	struct net *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct rpcrdma_conn *conn = rpcrdma_conn_alloc(false);

	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	KUNIT_EXPECT_FALSE(test, finds(conn->id, conn));
	rpcrdma_conn_set_net(conn, &init_net);
	KUNIT_EXPECT_TRUE(test, finds(conn->id, conn));
	KUNIT_EXPECT_NULL(test, rpcrdma_conn_find(other, conn->id));
	free_conn(conn);
}

/* What a connection has, and how much of it is idle */
static void test_pools(struct kunit *test)
{
	struct fake_conn *fake = fake_conn_new(test, RPCRDMA_INLINE_MIN);
	struct nlattr *attrs[RPCRDMA_A_CONNECTION_MAX + 1];
	struct rpcrdma_conn *conn = fake->conn;
	struct rpcrdma_mr *mr;
	struct sk_buff *skb;

	fake_make_mrs(test, fake, 8);
	mr = rpcrdma_mr_get(conn);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	set_peer(conn);
	conn->recvs_taken = 3;
	conn->recvs_returned = 1;
	skb = message(test, conn);
	parse(test, skb, attrs);
	KUNIT_EXPECT_EQ(test, uint_of(test, attrs[RPCRDMA_A_CONNECTION_REGISTRATIONS_IN_USE]), 1);
	KUNIT_EXPECT_EQ(test, uint_of(test, attrs[RPCRDMA_A_CONNECTION_REGISTRATIONS_IDLE]), 7);
	KUNIT_EXPECT_EQ(test, uint_of(test, attrs[RPCRDMA_A_CONNECTION_RECEIVES]),
			fake->num_recvs);
	KUNIT_EXPECT_EQ(test, uint_of(test, attrs[RPCRDMA_A_CONNECTION_RECEIVES_POSTED]),
			fake->num_recvs - 2);
	KUNIT_EXPECT_EQ(test, uint_of(test, attrs[RPCRDMA_A_CONNECTION_SEND_QUEUE_SIZE]),
			FAKE_SQ_SIZE);
	KUNIT_EXPECT_EQ(test, uint_of(test, attrs[RPCRDMA_A_CONNECTION_SEND_QUEUE_USED]), 0);
	kfree_skb(skb);

	/* Numbers of different moments: more are idle, or taken, than there are. */
	conn->recvs_taken = 3 + conn->num_recvs;
	conn->mrs.num -= 4;
	skb = message(test, conn);
	parse(test, skb, attrs);
	KUNIT_EXPECT_EQ(test, uint_of(test, attrs[RPCRDMA_A_CONNECTION_REGISTRATIONS_IN_USE]), 0);
	KUNIT_EXPECT_EQ(test, uint_of(test, attrs[RPCRDMA_A_CONNECTION_REGISTRATIONS_IDLE]), 4);
	KUNIT_EXPECT_EQ(test, uint_of(test, attrs[RPCRDMA_A_CONNECTION_RECEIVES_POSTED]), 0);
	kfree_skb(skb);
	conn->mrs.num += 4;
	conn->recvs_taken = conn->recvs_returned;
	rpcrdma_mr_put(mr);
	fake_conn_delete(test, fake);
}

/* Who has asked for a dump */
struct reader {
	struct sock sk;
	struct sk_buff *request;
	struct nlmsghdr header;
	struct netlink_callback cb;
};

static struct reader *new_reader(struct kunit *test)
{
	struct reader *reader = kunit_kzalloc(test, sizeof(*reader), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, reader);
	reader->request = kunit_kzalloc(test, sizeof(*reader->request), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, reader->request);
	write_pnet(&reader->sk.sk_net, &init_net);
	reader->request->sk = &reader->sk;
	reader->cb.skb = reader->request;
	reader->cb.nlh = &reader->header;
	return reader;
}

/* Objects in the next message, which has space for two of the same length */
static unsigned int next_two(struct kunit *test, struct reader *reader,
			     int (*dump)(struct sk_buff *skb, struct netlink_callback *cb),
			     unsigned int *len)
{
	struct sk_buff *skb = alloc_skb(PAGE_SIZE, GFP_KERNEL);
	const struct nlmsghdr *header;
	unsigned int objects = 0;
	int left, ret;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	if (*len)
		skb_reserve(skb, skb_tailroom(skb) - 2 * *len);
	ret = dump(skb, &reader->cb);
	KUNIT_EXPECT_EQ(test, ret, skb->len);
	left = skb->len;
	for (header = (void *)skb->data; nlmsg_ok(header, left);
	     header = nlmsg_next(header, &left)) {
		objects++;
		*len = header->nlmsg_len;
	}
	kfree_skb(skb);
	return objects;
}

/* A dump goes on after the last device that it has told, and ends with an empty message. */
static void test_dump_devices(struct kunit *test)
{
	struct rpcrdma_device *devices = kunit_kcalloc(test, 4, sizeof(*devices), GFP_KERNEL);
	struct ib_device *ib = kunit_kzalloc(test, sizeof(*ib), GFP_KERNEL);
	struct reader *reader = new_reader(test);
	unsigned int i, len = 0;

	KUNIT_ASSERT_NOT_NULL(test, devices);
	KUNIT_ASSERT_NOT_NULL(test, ib);
	strscpy(ib->name, "KUnit", sizeof(ib->name));
	for (i = 0; i < 4; i++) {
		devices[i].ib = ib;
		devices[i].id = 10 + i;
		list_add_tail(&devices[i].all, &rpcrdma_devices);
	}
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_devices, &len), 4);
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_devices, &len), 0);
	reader->cb.args[0] = 0;
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_devices, &len), 2);
	list_del(&devices[1].all);
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_devices, &len), 2);
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_devices, &len), 0);
	INIT_LIST_HEAD(&rpcrdma_devices);
}

/* The same with listeners, of which the reader's namespace does not have all */
static void test_dump_listeners(struct kunit *test)
{
	struct rpcrdma_listener *listeners;
	struct reader *reader = new_reader(test);
	struct net *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	unsigned int i, len = 0;

	listeners = kunit_kcalloc(test, 4, sizeof(*listeners), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, listeners);
	KUNIT_ASSERT_NOT_NULL(test, other);
	for (i = 0; i < 4; i++) {
		listeners[i].net = i == 1 ? other : &init_net;
		listeners[i].id = 10 + i;
		listeners[i].addr.ss_family = AF_INET;
		list_add_tail(&listeners[i].all, &rpcrdma_listeners);
	}
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_listeners, &len), 3);
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_listeners, &len), 0);
	reader->cb.args[0] = 0;
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_listeners, &len), 2);
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_listeners, &len), 1);
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_listeners, &len), 0);
	INIT_LIST_HEAD(&rpcrdma_listeners);
}

/* And with connections, of which none is kept; an object that fits nowhere is an error. */
static void test_dump_conns(struct kunit *test)
{
	struct reader *reader = new_reader(test);
	struct rpcrdma_conn *conns[3];
	unsigned int i, len = 0;
	struct sk_buff *skb;

	for (i = 0; i < ARRAY_SIZE(conns); i++) {
		conns[i] = new_conn(test);
		conns[i]->counters.sent.placed_octets = 1ULL << 40;
	}
	reader->cb.args[0] = conns[0]->id - 1;
	next_two(test, reader, dump_conns, &len);
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_conns, &len), 0);
	reader->cb.args[0] = conns[0]->id - 1;
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_conns, &len), 2);
	KUNIT_EXPECT_EQ(test, reader->cb.args[0], conns[1]->id);
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_conns, &len), 1);

	reader->cb.args[0] = conns[0]->id - 1;
	skb = alloc_skb(128, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reserve(skb, skb_tailroom(skb) - 64);
	KUNIT_EXPECT_EQ(test, dump_conns(skb, &reader->cb), -EMSGSIZE);
	kfree_skb(skb);
	for (i = 0; i < ARRAY_SIZE(conns); i++) {
		KUNIT_EXPECT_EQ(test, kref_read(&conns[i]->ref), 2);
		free_conn(conns[i]);
	}
}

/* What a peer's connections have counted, that of a client's slots among it */
static void test_peer(struct kunit *test)
{
	struct rpcrdma_history peer = { .server = true };
	struct nlattr *attrs[RPCRDMA_A_CONNECTION_MAX + 1];
	struct nlattr *waits[RPCRDMA_A_WAITS_MAX + 1];
	struct sk_buff *skb = alloc_skb(2 * PAGE_SIZE, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	peer.counters.waits[RPCRDMA_A_WAITS_CREDIT] = 3;
	peer.counters.slot_waits = 4;
	peer.counters.connects = 1ULL << 40;
	KUNIT_EXPECT_EQ(test, put_peer(skb, &peer), 0);
	parse(test, skb, attrs);
	KUNIT_EXPECT_EQ(test, uint_of(test, attrs[RPCRDMA_A_CONNECTION_ROLE]),
			RPCRDMA_CONNECTION_ROLE_SERVER);
	KUNIT_EXPECT_NULL(test, attrs[RPCRDMA_A_CONNECTION_PEER]);
	KUNIT_EXPECT_EQ(test, uint_of(test, attrs[RPCRDMA_A_CONNECTION_CONNECTS]), 1ULL << 40);
	KUNIT_ASSERT_NOT_NULL(test, attrs[RPCRDMA_A_CONNECTION_WAITS]);
	KUNIT_ASSERT_EQ(test, 0, nla_parse_nested_deprecated(waits, RPCRDMA_A_WAITS_MAX,
							     attrs[RPCRDMA_A_CONNECTION_WAITS],
							     NULL, NULL));
	KUNIT_EXPECT_EQ(test, uint_of(test, waits[RPCRDMA_A_WAITS_CREDIT]), 7);
	kfree_skb(skb);
}

/* And with peers */
static void test_dump_peers(struct kunit *test)
{
	struct reader *reader = new_reader(test);
	unsigned int i, len = 0;

	for (i = 0; i < ARRAY_SIZE(peers); i++)
		strscpy(peers[i].peer, "10.17.0.1", sizeof(peers[i].peer));
	next_two(test, reader, dump_peers, &len);
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_peers, &len), 0);
	reader->cb.args[0] = 1;
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_peers, &len), 2);
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_peers, &len), 1);
	KUNIT_EXPECT_EQ(test, next_two(test, reader, dump_peers, &len), 0);
}

/* The reader is told if a record was given to another peer meanwhile. */
static void test_dump_torn(struct kunit *test)
{
	struct sk_buff *skb = alloc_skb(PAGE_SIZE, GFP_KERNEL);
	struct reader *reader = new_reader(test);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_ASSERT_GT(test, dump_peers(skb, &reader->cb), 0);
	KUNIT_EXPECT_FALSE(test, nlmsg_hdr(skb)->nlmsg_flags & NLM_F_DUMP_INTR);
	peers_changes++;
	reader->cb.args[0] = 2;
	skb_trim(skb, 0);
	KUNIT_ASSERT_GT(test, dump_peers(skb, &reader->cb), 0);
	KUNIT_EXPECT_TRUE(test, nlmsg_hdr(skb)->nlmsg_flags & NLM_F_DUMP_INTR);
	kfree_skb(skb);
}

/* However often an RPC tries, it counts once for each cause. */
static void test_waits_count_once(struct kunit *test)
{
	struct xprt_rdma_endpoint *ep = kunit_kzalloc(test, sizeof(*ep), GFP_KERNEL);
	struct xprt_rdma_request *request = kunit_kzalloc(test, sizeof(*request), GFP_KERNEL);
	const u64 *waits;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, ep);
	KUNIT_ASSERT_NOT_NULL(test, request);
	ep->conn = kunit_kzalloc(test, sizeof(*ep->conn), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ep->conn);
	waits = ep->conn->counters.waits;
	ep->conn->credits = 8;
	ep->credits.granted = 2;
	for (i = 0; i < 3; i++)
		xprt_rdma_count_wait(ep, &request->rqst, RPCRDMA_A_WAITS_SEND_QUEUE);
	KUNIT_EXPECT_EQ(test, waits[RPCRDMA_A_WAITS_SEND_QUEUE], 1);

	/* One of two credits is in use, so it is a Receive that is missing. */
	atomic_set(&ep->credits.in_flight, 1);
	xprt_rdma_count_credit_wait(ep, &request->rqst);
	KUNIT_EXPECT_EQ(test, waits[RPCRDMA_A_WAITS_RECEIVE_BUFFER], 1);
	KUNIT_EXPECT_EQ(test, waits[RPCRDMA_A_WAITS_CREDIT], 0);
	atomic_set(&ep->credits.in_flight, 2);
	for (i = 0; i < 3; i++)
		xprt_rdma_count_credit_wait(ep, &request->rqst);
	KUNIT_EXPECT_EQ(test, waits[RPCRDMA_A_WAITS_CREDIT], 1);
}

/* A request adds to the counters once. */
static void test_tally(struct kunit *test)
{
	struct svcrdma_service *service = kunit_kzalloc(test, sizeof(*service), GFP_KERNEL);
	struct svcrdma_request *request = kunit_kzalloc(test, sizeof(*request), GFP_KERNEL);
	const struct rpcrdma_counters *counters;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, service);
	KUNIT_ASSERT_NOT_NULL(test, request);
	service->conn = kunit_kzalloc(test, sizeof(*service->conn), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, service->conn);
	spin_lock_init(&service->lock);
	request->service = service;
	counters = &service->conn->counters;

	/* A WRITE: 100 octets before the data, 20 after it, 4096 in a Read chunk */
	request->msg.payload_len = 120;
	request->msg.num_reads = 1;
	request->msg.read[0] = (struct rpcrdma_chunk){ .position = 100, .length = 4096 };
	request->msg.read[1].length = 1;	/* of an earlier Call */
	request->args = SVCRDMA_ARGS_WRITE;
	svcrdma_tally_call(request);
	svcrdma_tally_pulled(request);
	request->tally.waited_read = true;
	request->tally.error = RPCRDMA_A_ERRORS_REPLY_SPACE;
	spin_lock(&service->lock);
	for (i = 0; i < 2; i++)
		svcrdma_tally_locked(request);
	spin_unlock(&service->lock);

	KUNIT_EXPECT_EQ(test, counters->received.messages[RPCRDMA_A_TRAFFIC_READ_CHUNK], 1);
	KUNIT_EXPECT_EQ(test, counters->received.messages[RPCRDMA_A_TRAFFIC_INLINE], 0);
	KUNIT_EXPECT_EQ(test, counters->received.inline_octets, 120);
	KUNIT_EXPECT_EQ(test, counters->received.placed_octets, 4096);
	KUNIT_EXPECT_EQ(test, counters->received.copied_octets, 20);
	KUNIT_EXPECT_EQ(test, counters->waits[RPCRDMA_A_WAITS_READ], 1);
	KUNIT_EXPECT_EQ(test, counters->errors[RPCRDMA_A_ERRORS_REPLY_SPACE], 1);
	KUNIT_EXPECT_EQ(test, counters->errors[RPCRDMA_A_ERRORS_DENIED], 0);

	/* A Long Call whose Read chunk is refused */
	request->msg.payload_len = 0;
	request->msg.read[0].position = 0;
	request->args = SVCRDMA_ARGS_STREAM;
	svcrdma_tally_call(request);
	spin_lock(&service->lock);
	svcrdma_tally_locked(request);
	spin_unlock(&service->lock);
	KUNIT_EXPECT_EQ(test, counters->received.messages[RPCRDMA_A_TRAFFIC_LONG_CALL], 1);
	KUNIT_EXPECT_EQ(test, counters->received.placed_octets, 4096);

	/* A Read chunk without octets is not in use. */
	request->args = SVCRDMA_ARGS_INLINE;
	svcrdma_tally_call(request);
	KUNIT_EXPECT_EQ(test, request->tally.received, RPCRDMA_A_TRAFFIC_INLINE);
}

static struct kunit_case status_cases[] = {
	KUNIT_CASE(test_latency_buckets),
	KUNIT_CASE(test_large_numbers),
	KUNIT_CASE(test_longest_message_fits),
	KUNIT_CASE(test_not_established),
	KUNIT_CASE(test_walk),
	KUNIT_CASE(test_namespace),
	KUNIT_CASE(test_pools),
	KUNIT_CASE(test_dump_devices),
	KUNIT_CASE(test_dump_listeners),
	KUNIT_CASE(test_dump_conns),
	KUNIT_CASE(test_peer),
	KUNIT_CASE(test_dump_peers),
	KUNIT_CASE(test_dump_torn),
	KUNIT_CASE(test_waits_count_once),
	KUNIT_CASE(test_tally),
	{}
};

static struct kunit_suite status_suite = {
	.name = "rpcrdma_status",
	.test_cases = status_cases,
};

kunit_test_suite(status_suite);
