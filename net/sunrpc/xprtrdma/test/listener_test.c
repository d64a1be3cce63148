// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of conn/: a listener, and the connection requests that wait there. A copy of
 * listener.c is compiled here, with functions of this file in the place of rdma_cm's and of
 * the limits in conn.c. So any of them may fail, and events come in any order.
 */
#define pr_fmt(fmt) "rpcrdma: " fmt

#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

/* The names of the copy */
#define rpcrdma_listener_create		listener_test_create
#define rpcrdma_listener_address	listener_test_address
#define rpcrdma_listener_next		listener_test_next
#define rpcrdma_listener_destroy	listener_test_destroy
#define rpcrdma_listener_accepted	listener_test_accepted
#define rpcrdma_listener_refused	listener_test_refused
#define rpcrdma_listeners		listener_test_listeners
#define rpcrdma_listeners_lock		listener_test_listeners_lock

#include "../conn/conn_private.h"
#include "../status/status.h"

#define REQUESTS	4
#define CHOSEN_PORT	4711
#define ROLE		((void *)0x1001)

enum step {
	CREATE,
	AFONLY,
	BIND,
	LISTEN,
	STEPS
};

/* What the copy has done, and what it is told */
struct cm {
	struct rdma_cm_id id;		/* of the listener */
	bool exists;
	unsigned int created;
	unsigned int order;		/* a digit for each step */
	int backlog;
	struct net *net;
	enum step fail;			/* STEPS: none */
	bool request_before_failure;
	bool removal_while_destroyed;
	bool no_memory;
	bool none_may_wait;
	unsigned int none_may_begin;	/* of this host */
	unsigned int no_memory_for;	/* one more of this host */
	bool others_take_memory;	/* those that begin */
	unsigned int host;		/* of the next request */
	unsigned int looks;		/* whether a request may begin */
	struct rpcrdma_conn *conn[REQUESTS];	/* with a reference */
	unsigned int requests;
	unsigned int incoming;
	void *role;			/* that @incoming got last */
	unsigned int refused;
	enum rpcrdma_refusal why;	/* of the last one, as what follows */
	int err;
	struct net *refused_net;
	u16 peer_port;
	u16 local_port;
	unsigned int wrong;
};

static struct cm cm;	/* Tests run one at a time. */

static int deliver(enum rdma_cm_event_type type);

static int cm_step(enum step step)
{
	cm.order = cm.order * 10 + step + 1;
	return cm.fail == step ? -ENODEV : 0;
}

static struct rdma_cm_id *cm_create_id(struct net *net, rdma_cm_event_handler handler,
				       void *context, enum rdma_ucm_port_space ps,
				       enum ib_qp_type type)
{
	if (cm_step(CREATE))
		return ERR_PTR(-ENODEV);
	cm.wrong += cm.exists || ps != RDMA_PS_TCP || type != IB_QPT_RC;
	cm.id = (struct rdma_cm_id){ .event_handler = handler, .context = context };
	cm.net = net;
	cm.exists = true;
	cm.created++;
	return &cm.id;
}

static int cm_set_afonly(struct rdma_cm_id *id, int afonly)
{
	cm.wrong += !cm.exists || afonly != 1;
	return cm_step(AFONLY);
}

static int cm_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&id->route.addr.src_addr;

	cm.wrong += !cm.exists;
	memcpy(v4, addr, rdma_addr_size(addr));
	/* The port is at the same place in an IPv6 address. */
	if (!v4->sin_port)
		v4->sin_port = htons(CHOSEN_PORT);
	return cm_step(BIND);
}

static int cm_listen(struct rdma_cm_id *id, int backlog)
{
	cm.wrong += !cm.exists;
	cm.backlog = backlog;
	if (cm.request_before_failure)
		deliver(RDMA_CM_EVENT_CONNECT_REQUEST);
	return cm_step(LISTEN);
}

static void cm_destroy_id(struct rdma_cm_id *id)
{
	cm.wrong += !cm.exists || id != &cm.id;
	if (cm.removal_while_destroyed) {
		deliver(RDMA_CM_EVENT_DEVICE_REMOVAL);
		/* The work has begun, and waits for the caller's lock. */
		msleep(20);
	}
	cm.exists = false;
}

static struct sockaddr_storage address_of(u16 port)
{
	struct sockaddr_storage address = {};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&address;

	v4->sin_family = AF_INET;
	v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	v4->sin_port = htons(port);
	return address;
}

static u16 port_of(const struct sockaddr_storage *address)
{
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

static struct rpcrdma_conn *cm_request(struct net *net, struct rdma_cm_id *id,
				       const struct rdma_cm_event *event)
{
	struct rpcrdma_conn *conn;

	cm.wrong += net != cm.net;
	if (cm.no_memory)
		return NULL;
	conn = rpcrdma_conn_alloc(true);
	if (!conn || cm.requests == REQUESTS)
		return NULL;
	strscpy(conn->peer, "KUnit", sizeof(conn->peer));
	conn->local_addr = id->route.addr.src_addr;
	conn->peer_addr = id->route.addr.dst_addr;
	rpcrdma_admission_set(conn, RPCRDMA_ADMISSION_WAITING);
	rpcrdma_conn_get(conn);
	cm.conn[cm.requests++] = conn;
	return conn;
}

/* Ports tell the hosts of this test, too: no two of them share their limits by chance. */
static unsigned int cm_host(const struct sockaddr_storage *peer)
{
	return port_of(peer) / 1000;
}

static bool cm_may(const struct sockaddr_storage *peer, enum rpcrdma_admission admission)
{
	if (admission == RPCRDMA_ADMISSION_WAITING)
		return !cm.none_may_wait;
	cm.looks++;
	return cm_host(peer) != cm.none_may_begin;
}

static bool cm_has_memory(const struct sockaddr_storage *peer, bool now)
{
	return cm_host(peer) != cm.no_memory_for && !(now && cm.others_take_memory);
}

static void cm_refused(struct net *net, enum rpcrdma_refusal why, int err,
		       const struct sockaddr_storage *local, const struct sockaddr_storage *peer)
{
	cm.refused++;
	cm.why = why;
	cm.err = err;
	cm.refused_net = net;
	cm.peer_port = port_of(peer);
	cm.local_port = port_of(local);
}

#define rpcrdma_conn_request	cm_request
#define rpcrdma_admission_host	cm_host
#define rpcrdma_admission_may	cm_may
#define rpcrdma_admission_has_memory	cm_has_memory
#define rpcrdma_status_refused	cm_refused
#undef rdma_create_id
#define rdma_create_id		cm_create_id
#define rdma_set_afonly		cm_set_afonly
#define rdma_bind_addr		cm_bind_addr
#define rdma_listen		cm_listen
#define rdma_destroy_id		cm_destroy_id

#include "../conn/listener.c"

static int listener_init(struct kunit *test)
{
	cm = (struct cm){ .fail = STEPS, .host = 1 };
	return 0;
}

/* The listener is gone. Each connection has the test's reference alone, and no place. */
static void listener_exit(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, cm.wrong, 0);
	KUNIT_EXPECT_FALSE(test, cm.exists);
	flush_workqueue(rpcrdma_teardown_wq);
	while (cm.requests) {
		struct rpcrdma_conn *conn = cm.conn[--cm.requests];

		KUNIT_EXPECT_EQ(test, conn->state, RPCRDMA_STATE_CLOSED);
		KUNIT_EXPECT_EQ(test, conn->admission, RPCRDMA_ADMISSION_NONE);
		KUNIT_EXPECT_EQ(test, kref_read(&conn->ref), 1);
		rpcrdma_conn_put(conn);
	}
}

/* An event of the listener, or a request from the next port of a host */
static int deliver(enum rdma_cm_event_type type)
{
	struct rdma_cm_event event = { .event = type };
	struct rdma_cm_id id = cm.id;

	if (type != RDMA_CM_EVENT_CONNECT_REQUEST)
		return cm.id.event_handler(&cm.id, &event);
	id.route.addr.dst_addr = address_of(cm.host * 1000 + 1 + cm.requests);
	return cm.id.event_handler(&id, &event);
}

static int request(void)
{
	return deliver(RDMA_CM_EVENT_CONNECT_REQUEST);
}

static void request_of(unsigned int host)
{
	cm.host = host;
	request();
}

static void incoming(void *role)
{
	cm.incoming++;
	cm.role = role;
}

static struct rpcrdma_listener *create_at(struct net *net, u16 port)
{
	struct sockaddr_storage address = address_of(port);

	return rpcrdma_listener_create(net, (struct sockaddr *)&address, incoming, ROLE);
}

static struct rpcrdma_listener *create(struct kunit *test)
{
	struct rpcrdma_listener *listener = create_at(&init_net, 0);

	KUNIT_ASSERT_FALSE(test, IS_ERR(listener));
	return listener;
}

static s64 state_ms(const struct rpcrdma_listener *listener)
{
	return ktime_ms_delta(ktime_get(), listener->state_since);
}

/* It was set after @before, and is not longer than @delay. */
static void expect_timer(struct kunit *test, const struct delayed_work *work, unsigned long before,
			 unsigned long delay)
{
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(work));
	KUNIT_EXPECT_GE(test, work->timer.expires - before, delay);
	KUNIT_EXPECT_LE(test, work->timer.expires, jiffies + delay);
}

/* Its time has come. */
static void run(struct delayed_work *work)
{
	mod_delayed_work(rpcrdma_wq, work, 0);
	flush_work(&work->work);
}

static void test_listens(struct kunit *test)
{
	struct sockaddr_storage address = address_of(20049);
	struct rpcrdma_listener *listener = create(test);

	KUNIT_EXPECT_EQ(test, cm.order, 134);
	KUNIT_EXPECT_GE(test, cm.backlog, 512);
	KUNIT_EXPECT_PTR_EQ(test, cm.net, &init_net);
	KUNIT_EXPECT_EQ(test, port_of((void *)rpcrdma_listener_address(listener)), CHOSEN_PORT);
	KUNIT_EXPECT_NOT_NULL(test, listener->cm_id);
	rpcrdma_listener_destroy(listener);

	/* A listener of IPv6 leaves the port to one of IPv4. */
	cm.order = 0;
	address.ss_family = AF_INET6;
	listener = rpcrdma_listener_create(&init_net, (struct sockaddr *)&address, incoming, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(listener));
	KUNIT_EXPECT_EQ(test, cm.order, 1234);
	KUNIT_EXPECT_EQ(test, port_of((void *)rpcrdma_listener_address(listener)), 20049);
	rpcrdma_listener_destroy(listener);

	address.ss_family = AF_UNIX;
	listener = rpcrdma_listener_create(&init_net, (struct sockaddr *)&address, incoming, NULL);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(listener), -EAFNOSUPPORT);
	KUNIT_EXPECT_EQ(test, cm.created, 2);
}

/* Each step may fail. Then there is no listener. */
static void test_cannot_listen(struct kunit *test)
{
	struct sockaddr_storage address = { .ss_family = AF_INET6 };
	struct rpcrdma_listener *listener;

	for (cm.fail = CREATE; cm.fail < STEPS; cm.fail++) {
		listener = rpcrdma_listener_create(&init_net, (struct sockaddr *)&address, incoming,
						   NULL);
		KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(listener), -ENODEV);
		KUNIT_EXPECT_FALSE(test, cm.exists);
	}
	KUNIT_EXPECT_TRUE(test, list_empty(&rpcrdma_listeners));
}

/* A request comes, and then one of the devices cannot listen. */
static void test_request_before_failure(struct kunit *test)
{
	cm.request_before_failure = true;
	cm.fail = LISTEN;
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(create_at(&init_net, 0)), -ENODEV);
	KUNIT_ASSERT_EQ(test, cm.requests, 1);
	KUNIT_EXPECT_EQ(test, cm.conn[0]->status, -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, cm.refused, 1);
	KUNIT_EXPECT_EQ(test, cm.why, RPCRDMA_REFUSAL_SERVICE);
}

static void expect_next(struct kunit *test, struct rpcrdma_listener *listener,
			struct rpcrdma_conn *conn)
{
	KUNIT_EXPECT_PTR_EQ(test, rpcrdma_listener_next(listener), conn);
	if (conn)
		KUNIT_EXPECT_EQ(test, conn->admission, RPCRDMA_ADMISSION_BEGINNING);
}

/* As a role that refuses it */
static void refuse(struct rpcrdma_conn *conn)
{
	rpcrdma_conn_close(conn, -ECONNREFUSED);
	rpcrdma_conn_put(conn);
}

/* The role is told of each, gets them in order, and owns the reference. */
static void test_requests(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);
	unsigned int i;

	expect_next(test, listener, NULL);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, request(), 0);
		KUNIT_EXPECT_EQ(test, cm.incoming, i + 1);
		KUNIT_EXPECT_PTR_EQ(test, cm.role, ROLE);
		KUNIT_EXPECT_EQ(test, listener->num_pending, i + 1);
	}
	for (i = 0; i < 3; i++) {
		expect_next(test, listener, cm.conn[i]);
		KUNIT_EXPECT_EQ(test, listener->num_pending, 2 - i);
		KUNIT_EXPECT_EQ(test, kref_read(&cm.conn[i]->ref), 3);
		refuse(cm.conn[i]);
	}
	expect_next(test, listener, NULL);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&listener->look));
	KUNIT_EXPECT_EQ(test, cm.refused, 0);
	rpcrdma_listener_destroy(listener);
}

/* Its peer has given up a request that waits. Nobody gets it. */
static void test_given_up(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);

	request();
	request();
	request();
	rpcrdma_conn_close(cm.conn[0], -ECONNRESET);
	rpcrdma_conn_close(cm.conn[2], -ECONNRESET);
	flush_workqueue(rpcrdma_teardown_wq);
	expect_next(test, listener, cm.conn[1]);
	expect_next(test, listener, NULL);
	KUNIT_EXPECT_EQ(test, kref_read(&cm.conn[0]->ref), 1);
	KUNIT_EXPECT_EQ(test, kref_read(&cm.conn[2]->ref), 1);
	KUNIT_EXPECT_EQ(test, listener->num_pending, 0);
	refuse(cm.conn[1]);
	rpcrdma_listener_destroy(listener);
}

static void expect_refused(struct kunit *test, const struct rpcrdma_listener *listener,
			   enum rpcrdma_refusal why, int err)
{
	KUNIT_EXPECT_EQ(test, cm.refused, 1);
	KUNIT_EXPECT_EQ(test, cm.why, why);
	KUNIT_EXPECT_EQ(test, cm.err, err);
	KUNIT_EXPECT_PTR_EQ(test, cm.refused_net, &init_net);
	KUNIT_EXPECT_EQ(test, cm.local_port, CHOSEN_PORT);
	KUNIT_EXPECT_EQ(test, listener->refused, 1);
}

/* Too many wait, over all listeners. */
static void test_too_many_wait(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);

	request();
	request();
	request();
	cm.none_may_wait = true;
	KUNIT_EXPECT_EQ(test, request(), -ECONNREFUSED);
	expect_refused(test, listener, RPCRDMA_REFUSAL_BACKLOG, -ECONNREFUSED);
	KUNIT_EXPECT_EQ(test, cm.peer_port, 1004);
	KUNIT_EXPECT_EQ(test, cm.requests, 3);
	KUNIT_EXPECT_EQ(test, cm.incoming, 3);
	KUNIT_EXPECT_EQ(test, listener->num_pending, 3);
	rpcrdma_listener_destroy(listener);
}

static void test_request_without_memory(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);

	cm.no_memory = true;
	KUNIT_EXPECT_EQ(test, request(), -ENOMEM);
	expect_refused(test, listener, RPCRDMA_REFUSAL_MEMORY, -ENOMEM);
	KUNIT_EXPECT_EQ(test, cm.peer_port, 1001);
	KUNIT_EXPECT_EQ(test, cm.incoming, 0);
	KUNIT_EXPECT_EQ(test, listener->num_pending, 0);
	rpcrdma_listener_destroy(listener);
}

/*
 * Too many connections begin. The request waits, and the listener looks again, as long as
 * that lasts. Then the role is told.
 */
static void test_looks_again(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);
	unsigned long before;

	request();
	cm.incoming = 0;
	cm.none_may_begin = 1;
	before = jiffies;
	expect_next(test, listener, NULL);
	expect_timer(test, &listener->look, before, HZ / 50);
	before = jiffies;
	run(&listener->look);
	expect_timer(test, &listener->look, before, HZ / 50);
	KUNIT_EXPECT_EQ(test, cm.incoming, 0);
	cm.none_may_begin = 0;
	run(&listener->look);
	KUNIT_EXPECT_EQ(test, cm.incoming, 1);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&listener->look));
	expect_next(test, listener, cm.conn[0]);
	refuse(cm.conn[0]);
	rpcrdma_listener_destroy(listener);
}

/* While there is no memory for one more of a host, its requests wait, and others are taken. */
static void test_waits_for_memory(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);

	request_of(1);
	request_of(2);
	cm.no_memory_for = 1;
	expect_next(test, listener, cm.conn[1]);
	expect_next(test, listener, NULL);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&listener->look));
	cm.no_memory_for = 0;
	/* However long it has waited. */
	cm.conn[0]->state_since = ktime_sub_ms(ktime_get(), 100000);
	expect_next(test, listener, cm.conn[0]);
	KUNIT_EXPECT_EQ(test, cm.refused, 0);
	refuse(cm.conn[0]);
	refuse(cm.conn[1]);
	rpcrdma_listener_destroy(listener);
}

/* One that has waited for five seconds is refused. Those after it still wait. */
static void test_refused_without_memory(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);

	request();
	request();
	cm.no_memory_for = 1;
	/* One look is not enough, nor is less than five seconds between two. */
	cm.conn[0]->state_since = ktime_sub_ms(ktime_get(), 100000);
	expect_next(test, listener, NULL);
	listener->lacking[1] = ktime_sub_ms(ktime_get(), 4000);
	expect_next(test, listener, NULL);
	KUNIT_EXPECT_EQ(test, cm.refused, 0);
	cm.conn[0]->state_since = ktime_sub_ms(ktime_get(), 5000);
	listener->lacking[1] = cm.conn[0]->state_since;
	cm.incoming = 0;
	run(&listener->look);
	KUNIT_EXPECT_EQ(test, cm.incoming, 1);
	expect_next(test, listener, NULL);
	expect_refused(test, listener, RPCRDMA_REFUSAL_MEMORY, -ENOMEM);
	KUNIT_EXPECT_EQ(test, cm.peer_port, 1001);
	KUNIT_EXPECT_EQ(test, cm.conn[0]->status, -ENOMEM);
	KUNIT_EXPECT_EQ(test, listener->num_pending, 1);
	rpcrdma_listener_destroy(listener);
}

/* One that waits because many begin is not refused. Nor if too many do, and memory is short. */
static void test_waits_for_others(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);

	request();
	cm.others_take_memory = true;
	cm.conn[0]->state_since = ktime_sub_ms(ktime_get(), 100000);
	expect_next(test, listener, NULL);
	/* There was memory until now. */
	cm.no_memory_for = 1;
	expect_next(test, listener, NULL);
	listener->lacking[1] = cm.conn[0]->state_since;
	cm.none_may_begin = 1;
	expect_next(test, listener, NULL);
	KUNIT_EXPECT_EQ(test, cm.refused, 0);
	rpcrdma_listener_destroy(listener);
}

/* The hosts take turns, however many requests one of them has. */
static void test_hosts_take_turns(struct kunit *test)
{
	static const unsigned int order[REQUESTS] = { 0, 3, 1, 2 };
	struct rpcrdma_listener *listener = create(test);
	unsigned int i;

	request_of(3);
	request_of(3);
	request_of(3);
	request_of(7);
	for (i = 0; i < REQUESTS; i++) {
		/* To look is not to take. */
		run(&listener->look);
		expect_next(test, listener, cm.conn[order[i]]);
		refuse(cm.conn[order[i]]);
	}
	expect_next(test, listener, NULL);
	rpcrdma_listener_destroy(listener);
}

/* Turns go on with the first host after the last one. */
static void test_turns_wrap(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);

	listener->turn = -1U;
	request_of(5);
	expect_next(test, listener, cm.conn[0]);
	refuse(cm.conn[0]);
	request_of(4);
	request_of(6);
	expect_next(test, listener, cm.conn[2]);
	expect_next(test, listener, cm.conn[1]);
	refuse(cm.conn[1]);
	refuse(cm.conn[2]);
	rpcrdma_listener_destroy(listener);
}

/*
 * A host with too many does not hold up the others, and needs one look, not one for each request.
 * A request given up needs no place.
 */
static void test_not_held_up(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);

	request_of(1);
	request_of(1);
	request_of(2);
	request_of(3);
	cm.none_may_begin = 1;
	rpcrdma_conn_close(cm.conn[2], -ECONNRESET);
	flush_workqueue(rpcrdma_teardown_wq);
	expect_next(test, listener, cm.conn[3]);
	KUNIT_EXPECT_EQ(test, cm.looks, 2);
	KUNIT_EXPECT_EQ(test, kref_read(&cm.conn[2]->ref), 1);
	refuse(cm.conn[3]);
	KUNIT_EXPECT_EQ(test, listener->num_pending, 2);
	rpcrdma_conn_close(cm.conn[0], -ECONNRESET);
	rpcrdma_conn_close(cm.conn[1], -ECONNRESET);
	expect_next(test, listener, NULL);
	KUNIT_EXPECT_EQ(test, listener->num_pending, 0);
	rpcrdma_listener_destroy(listener);
}

/* Its device goes. It listens at the same address when there is a device again. */
static void test_device_goes(struct kunit *test)
{
	static const enum rdma_cm_event_type gone[] = {
		RDMA_CM_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_ADDR_CHANGE,
	};
	struct rpcrdma_listener *listener = create(test);
	unsigned long before;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(gone); i++) {
		cm.fail = BIND;
		before = jiffies;
		/* Not an error: rdma_cm would destroy the identifier as well. */
		KUNIT_EXPECT_EQ(test, deliver(gone[i]), 0);
		flush_workqueue(rpcrdma_wq);
		KUNIT_EXPECT_FALSE(test, cm.exists);
		KUNIT_EXPECT_NULL(test, listener->cm_id);
		expect_timer(test, &listener->relisten, before, 5 * HZ);
		before = jiffies;
		run(&listener->relisten);
		expect_timer(test, &listener->relisten, before, 5 * HZ);
		cm.fail = STEPS;
		run(&listener->relisten);
		KUNIT_EXPECT_NOT_NULL(test, listener->cm_id);
		KUNIT_EXPECT_FALSE(test, delayed_work_pending(&listener->relisten));
		KUNIT_EXPECT_EQ(test, port_of(&listener->addr), CHOSEN_PORT);
	}
	KUNIT_EXPECT_EQ(test, cm.created, 7);
	KUNIT_EXPECT_EQ(test, request(), 0);
	rpcrdma_listener_destroy(listener);
}

/* The time that the status tells begins when that changes. */
static void test_state_since(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);
	ktime_t long_ago = ktime_sub_ms(ktime_get(), 100000);

	KUNIT_EXPECT_LT(test, state_ms(listener), 50000);
	listener->state_since = long_ago;
	KUNIT_EXPECT_GE(test, state_ms(listener), 100000);
	cm.fail = BIND;
	run(&listener->relisten);
	KUNIT_EXPECT_LT(test, state_ms(listener), 50000);
	listener->state_since = long_ago;
	/* It did not listen before. */
	run(&listener->relisten);
	KUNIT_EXPECT_GE(test, state_ms(listener), 100000);
	cm.fail = STEPS;
	run(&listener->relisten);
	KUNIT_EXPECT_LT(test, state_ms(listener), 50000);
	rpcrdma_listener_destroy(listener);
}

static void test_other_events(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);

	KUNIT_EXPECT_EQ(test, deliver(RDMA_CM_EVENT_ESTABLISHED), 0);
	KUNIT_EXPECT_EQ(test, deliver(RDMA_CM_EVENT_TIMEWAIT_EXIT), 0);
	flush_workqueue(rpcrdma_wq);
	KUNIT_EXPECT_EQ(test, cm.created, 1);
	KUNIT_EXPECT_EQ(test, cm.incoming, 0);
	rpcrdma_listener_destroy(listener);
}

/* The device goes while the listener is destroyed: it does not listen again. */
static void test_destroyed_without_device(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);

	cm.removal_while_destroyed = true;
	rpcrdma_listener_destroy(listener);
	KUNIT_EXPECT_EQ(test, cm.created, 1);

	/* Or it has gone before. */
	cm.removal_while_destroyed = false;
	listener = create(test);
	cm.fail = LISTEN;
	run(&listener->relisten);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&listener->relisten));
	cm.fail = STEPS;
	rpcrdma_listener_destroy(listener);
	KUNIT_EXPECT_EQ(test, cm.created, 3);
}

/* Requests that wait are refused. One that was given up is not refused as well. */
static void test_destroyed_with_requests(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);

	request();
	request();
	request();
	rpcrdma_conn_close(cm.conn[1], -ECONNRESET);
	rpcrdma_listener_destroy(listener);
	KUNIT_EXPECT_EQ(test, cm.refused, 2);
	KUNIT_EXPECT_EQ(test, cm.why, RPCRDMA_REFUSAL_SERVICE);
	KUNIT_EXPECT_EQ(test, cm.err, -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, cm.peer_port, 1003);
	KUNIT_EXPECT_EQ(test, cm.conn[0]->status, -ESHUTDOWN);
	KUNIT_EXPECT_EQ(test, cm.conn[1]->status, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, cm.conn[2]->status, -ESHUTDOWN);
}

/* Neither timer is left, nor runs. */
static void test_destroyed_while_it_looks(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);

	request();
	cm.none_may_begin = 1;
	expect_next(test, listener, NULL);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&listener->look));
	cm.none_may_begin = 0;
	cm.incoming = 0;
	rpcrdma_listener_destroy(listener);
	schedule_timeout_uninterruptible(HZ / 50 + 2);
	KUNIT_EXPECT_EQ(test, cm.incoming, 0);
}

static void test_counts(struct kunit *test)
{
	struct rpcrdma_listener *listener = create(test);

	rpcrdma_listener_accepted(listener);
	rpcrdma_listener_accepted(listener);
	rpcrdma_listener_refused(listener, RPCRDMA_REFUSAL_SETUP, -ENODEV, &listener->addr,
				 &listener->addr);
	KUNIT_EXPECT_EQ(test, listener->accepted, 2);
	expect_refused(test, listener, RPCRDMA_REFUSAL_SETUP, -ENODEV);
	rpcrdma_listener_destroy(listener);
}

/* The list is in the order of the numbers, and has each listener until it is destroyed. */
static void test_list(struct kunit *test)
{
	struct rpcrdma_listener *first, *second;

	first = create(test);
	cm.exists = false;	/* There may be several now. */
	second = create(test);
	KUNIT_EXPECT_GT(test, first->id, 0);
	KUNIT_EXPECT_GT(test, second->id, first->id);
	KUNIT_EXPECT_PTR_EQ(test, rpcrdma_listeners.next, &first->all);
	KUNIT_EXPECT_PTR_EQ(test, rpcrdma_listeners.prev, &second->all);
	rpcrdma_listener_destroy(first);
	KUNIT_EXPECT_TRUE(test, list_is_singular(&rpcrdma_listeners));
	cm.exists = true;
	rpcrdma_listener_destroy(second);
	KUNIT_EXPECT_TRUE(test, list_empty(&rpcrdma_listeners));
}

static struct kunit_case listener_cases[] = {
	KUNIT_CASE(test_listens),
	KUNIT_CASE(test_cannot_listen),
	KUNIT_CASE(test_request_before_failure),
	KUNIT_CASE(test_requests),
	KUNIT_CASE(test_given_up),
	KUNIT_CASE(test_too_many_wait),
	KUNIT_CASE(test_request_without_memory),
	KUNIT_CASE(test_looks_again),
	KUNIT_CASE(test_waits_for_memory),
	KUNIT_CASE(test_refused_without_memory),
	KUNIT_CASE(test_waits_for_others),
	KUNIT_CASE(test_hosts_take_turns),
	KUNIT_CASE(test_turns_wrap),
	KUNIT_CASE(test_not_held_up),
	KUNIT_CASE(test_device_goes),
	KUNIT_CASE(test_state_since),
	KUNIT_CASE(test_other_events),
	KUNIT_CASE(test_destroyed_without_device),
	KUNIT_CASE(test_destroyed_with_requests),
	KUNIT_CASE(test_destroyed_while_it_looks),
	KUNIT_CASE(test_counts),
	KUNIT_CASE(test_list),
	{}
};

static struct kunit_suite listener_suite = {
	.name = "rpcrdma_listener",
	.init = listener_init,
	.exit = listener_exit,
	.test_cases = listener_cases,
};

kunit_test_suites(&listener_suite);
