// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of conn/: how a connection is established, and how that fails. A copy of
 * establish.c is compiled here, with functions of this file in the place of rdma_cm's and of
 * those that make verbs resources. So any step may fail, and events come in any order.
 *
 * What happens is in a log:
 *	N a new identifier	a address	r route
 *	D device		Q queue pair	M registrations		R Receives
 *	S Sends			C the request	A the answer
 *	o the observer is told	E ->established	K keepalive		Z ->closed
 */
#define pr_fmt(fmt) "rpcrdma: " fmt

#include <kunit/test.h>
#include <linux/delay.h>
#include <net/net_namespace.h>

/* The names of the copy */
#define rpcrdma_conn_log_version	establish_test_log_version
#define rpcrdma_establish_init		establish_test_init
#define rpcrdma_establish_stop		establish_test_stop
#define rpcrdma_conn_connect		establish_test_connect
#define rpcrdma_conn_request		establish_test_request
#define rpcrdma_conn_accept		establish_test_accept

#include "../conn/conn_private.h"
#include "../status/status.h"

#define PORT		20049
#define READS		16	/* that the device serves or issues */
#define CLIENT_SIZE	8192
#define SERVER_SIZE	4096

/* What the copy is told, and what it has done. Tests run one at a time. */
static struct {
	struct ib_device ib;
	struct ib_port_data port;
	struct rpcrdma_device device;
	struct rpcrdma_conn *conn;	/* with a reference */
	bool no_memory;
	char fail;			/* this step fails with -ENODATA */
	char meanwhile;			/* while this step runs, @event comes */
	enum rdma_cm_event_type event;
	u8 private[RPCRDMA_PRIVATE_LEN];
	u8 private_len;			/* of the other end */
	u8 peer_reads;
	bool locked;			/* the handler's lock of the identifier */

	char log[64];
	char reserves[64];		/* steps that may use the memory reserves */
	unsigned int wrong;
	int status;			/* for ->closed */
	unsigned long resolve_timeout;
	unsigned long route_timeout;
	struct rdma_conn_param param;
	u8 sent[RPCRDMA_PRIVATE_LEN];
	u32 recv_size;
	u32 send_size;
	bool joined;			/* the record of its peer */
	unsigned int refused;
	enum rpcrdma_refusal why;
	int err;
	struct net *net;
} cm;

static int deliver(enum rdma_cm_event_type type, int status);

static void note(char *log, char what)
{
	size_t len = strlen(log);

	if (len < sizeof(cm.log) - 1)
		log[len] = what;
}

static int cm_step(char what)
{
	note(cm.log, what);
	if (current->flags & PF_MEMALLOC)
		note(cm.reserves, what);
	/* Reclaim may wait for a client's connection. */
	cm.wrong += cm.conn && !(current->flags & PF_MEMALLOC_NOIO);
	if (cm.meanwhile == what) {
		deliver(cm.event, 0);
		/* The teardown begins, if it may. */
		msleep(20);
	}
	return cm.fail == what ? -ENODATA : 0;
}

static struct rpcrdma_conn *cm_alloc(bool server)
{
	struct rpcrdma_conn *conn = cm.no_memory ? NULL : rpcrdma_conn_alloc(server);

	if (!conn)
		return NULL;
	rpcrdma_conn_get(conn);
	cm.conn = conn;
	/* Its works are those of the copy. */
	rpcrdma_establish_init(conn);
	return conn;
}

static struct rdma_cm_id *cm_create_id(struct net *net, rdma_cm_event_handler handler,
				       void *context, enum rdma_ucm_port_space ps,
				       enum ib_qp_type type)
{
	cm.wrong += net != &init_net || ps != RDMA_PS_TCP || type != IB_QPT_RC;
	return cm_step('N') ? ERR_PTR(-ENODATA) : rdma_create_id(net, handler, context, ps, type);
}

static int cm_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src,
			   const struct sockaddr *dst, unsigned long timeout_ms)
{
	id->route.addr.dst_addr = *(const struct sockaddr_storage *)dst;
	cm.resolve_timeout = timeout_ms;
	return cm_step('a');
}

static int cm_resolve_route(struct rdma_cm_id *id, unsigned long timeout_ms)
{
	cm.route_timeout = timeout_ms;
	return cm_step('r');
}

static int cm_attach(struct rpcrdma_conn *conn)
{
	int err = cm_step('D');

	if (err)
		return err;
	kref_get(&cm.device.ref);
	list_add_tail(&conn->device_list, &cm.device.conns);
	conn->device = &cm.device;
	return 0;
}

static int cm_qp_create(struct rpcrdma_conn *conn)
{
	lockdep_assert_held(&conn->setup);
	return cm_step('Q');
}

static int cm_recv_create(struct rpcrdma_conn *conn, u32 size)
{
	cm.recv_size = size;
	return cm_step('R');
}

/* While no event ends the queue pair of a server */
static int cm_recv_open(struct rpcrdma_conn *conn)
{
	cm.wrong += conn->server ? !cm.locked : conn->state == RPCRDMA_STATE_RESOLVING;
	return cm_step('O');
}

static int cm_send_create(struct rpcrdma_conn *conn, u32 size)
{
	cm.send_size = size;
	return cm_step('S');
}

static int cm_go(struct rdma_cm_id *id, struct rdma_conn_param *param, char what,
		 enum rpcrdma_state state)
{
	cm.wrong += cm.conn->state != state || id != cm.conn->cm_id;
	cm.param = *param;
	memcpy(cm.sent, param->private_data ?: cm.sent, param->private_data_len);
	return cm_step(what);
}

static int cm_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	return cm_go(id, param, 'C', RPCRDMA_STATE_CONNECTING);
}

static int cm_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	cm.wrong += !cm.locked;
	return cm_go(id, param, 'A', RPCRDMA_STATE_ACCEPTING);
}

static void cm_lock_handler(struct rdma_cm_id *id)
{
	cm.wrong += cm.locked;
	cm.locked = true;
}

static void cm_unlock_handler(struct rdma_cm_id *id)
{
	cm.wrong += !cm.locked;
	cm.locked = false;
}

static const char *cm_reject_msg(struct rdma_cm_id *id, int reason)
{
	return "KUnit";
}

static void cm_keepalive_start(struct rpcrdma_conn *conn)
{
	note(cm.log, 'K');
}

static void cm_refused(struct net *net, enum rpcrdma_refusal why, int err,
		       const struct sockaddr_storage *local, const struct sockaddr_storage *peer)
{
	cm.refused++;
	cm.why = why;
	cm.err = err;
	cm.net = net;
}

static void cm_history_join(struct rpcrdma_conn *conn)
{
	cm.wrong += cm.joined || conn != cm.conn;
	cm.joined = true;
}

static void cm_event(const struct rpcrdma_conn *conn, u8 cmd)
{
	cm.wrong += cmd != RPCRDMA_CMD_CONNECTED || !cm.joined;
	note(cm.log, 'o');
}

static void role_established(struct rpcrdma_conn *conn)
{
	cm.wrong += conn->role != &cm || conn->device != &cm.device || !conn->established_at;
	note(cm.log, 'E');
}

static void role_closed(struct rpcrdma_conn *conn, int status)
{
	cm.wrong += conn->role != &cm;
	cm.status = status;
	note(cm.log, 'Z');
}

static const struct rpcrdma_conn_ops role_ops = {
	.established = role_established,
	.closed = role_closed,
};

/* Another end's identifier until it is a connection's */
static int no_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

static struct rdma_cm_id *create_id(struct kunit *test)
{
	struct rdma_cm_id *id = rdma_create_id(&init_net, no_event, NULL, RDMA_PS_TCP, IB_QPT_RC);

	KUNIT_ASSERT_FALSE(test, IS_ERR(id));
	return id;
}

#define rpcrdma_conn_alloc		cm_alloc
#define rpcrdma_device_attach		cm_attach
#define rpcrdma_history_join		cm_history_join
#define rpcrdma_keepalive_start		cm_keepalive_start
#define rpcrdma_qp_create		cm_qp_create
#define rpcrdma_recv_create		cm_recv_create
#define rpcrdma_recv_open		cm_recv_open
#define rpcrdma_send_create		cm_send_create
#define rpcrdma_status_event		cm_event
#define rpcrdma_status_refused		cm_refused
#undef rdma_create_id
#define rdma_create_id			cm_create_id
#define rdma_accept			cm_accept
#define rdma_connect			cm_connect
#define rdma_lock_handler		cm_lock_handler
#define rdma_reject_msg			cm_reject_msg
#define rdma_resolve_addr		cm_resolve_addr
#define rdma_resolve_route		cm_resolve_route
#define rdma_unlock_handler		cm_unlock_handler

#include "../conn/establish.c"

static int establish_init(struct kunit *test)
{
	static const struct rpcrdma_params server = {
		.send_size = SERVER_SIZE,
		.recv_size = SERVER_SIZE,
		.remote_inv = true,
	};

	memset(&cm, 0, sizeof(cm));
	cm.port.immutable.core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	cm.ib.port_data = &cm.port;
	cm.device.ib = &cm.ib;
	cm.device.max_read_responder = READS;
	cm.device.max_read_initiator = READS;
	kref_init(&cm.device.ref);
	spin_lock_init(&cm.device.lock);
	INIT_LIST_HEAD(&cm.device.conns);
	rpcrdma_wire_encode_private(&server, cm.private);
	cm.private_len = sizeof(cm.private);
	cm.peer_reads = READS;
	return 0;
}

/* Close the connection that is left, and forget it. Only this has a reference then. */
static void expect_gone(struct kunit *test)
{
	rpcrdma_conn_close(cm.conn, -ESHUTDOWN);
	flush_workqueue(rpcrdma_teardown_wq);
	KUNIT_EXPECT_EQ(test, cm.conn->state, RPCRDMA_STATE_CLOSED);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&cm.conn->timer));
	KUNIT_EXPECT_EQ(test, cm.conn->admission, RPCRDMA_ADMISSION_NONE);
	KUNIT_EXPECT_NULL(test, cm.conn->cm_id);
	KUNIT_EXPECT_EQ(test, kref_read(&cm.device.ref), 1);
	KUNIT_EXPECT_TRUE(test, list_empty(&cm.device.conns));
	KUNIT_EXPECT_EQ(test, kref_read(&cm.conn->ref), 1);
	KUNIT_EXPECT_EQ(test, current->flags & (PF_MEMALLOC | PF_MEMALLOC_NOIO), 0);
	KUNIT_EXPECT_FALSE(test, cm.locked);
	KUNIT_EXPECT_EQ(test, cm.wrong, 0);
	rpcrdma_conn_put(cm.conn);
	cm.conn = NULL;
}

/* The role drops its reference, and so do the others. */
static void end(struct kunit *test)
{
	rpcrdma_conn_put(cm.conn);
	expect_gone(test);
}

/* The suite goes on where another test has failed. */
static void begin(void)
{
	memset(cm.log, 0, sizeof(cm.log));
	memset(cm.reserves, 0, sizeof(cm.reserves));
	cm.status = 0;
	cm.joined = false;
}

/* An event of the connection */
static int deliver(enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event event = { .event = type, .status = status };

	event.param.conn.private_data = cm.private_len ? cm.private : NULL;
	event.param.conn.private_data_len = cm.private_len;
	event.param.conn.initiator_depth = cm.peer_reads;
	return cm.conn->cm_id->event_handler(cm.conn->cm_id, &event);
}

/* Have one, and what it leads to, unless the identifier may be destroyed already. */
static void happens(struct kunit *test, enum rdma_cm_event_type type)
{
	if (READ_ONCE(cm.conn->state) >= RPCRDMA_STATE_CLOSING)
		return;
	/* Not an error: rdma_cm would destroy the identifier as well. */
	KUNIT_EXPECT_EQ(test, deliver(type, 0), 0);
	flush_workqueue(rpcrdma_wq);
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

static struct rpcrdma_conn_config config_of(void)
{
	return (struct rpcrdma_conn_config){
		.version_max = RPCRDMA_VERSION_ONE,
		.ops = &role_ops,
		.role = &cm,
		.params.send_size = CLIENT_SIZE,
		.params.recv_size = CLIENT_SIZE,
		.read_depth = READS,
		.timeout_ms = 60000,
	};
}

/* As a client. Return: what it gets. */
static struct rpcrdma_conn *connect_with(const struct rpcrdma_conn_config *config)
{
	struct sockaddr_storage address = address_of(PORT);

	begin();
	return rpcrdma_conn_connect(&init_net, NULL, (struct sockaddr *)&address, config);
}

static void begin_connect(struct kunit *test)
{
	const struct rpcrdma_conn_config config = config_of();

	KUNIT_ASSERT_PTR_EQ(test, connect_with(&config), cm.conn);
	KUNIT_ASSERT_NOT_NULL(test, cm.conn);
}

/* Connect, up to the answer of the server. */
static void connect(struct kunit *test)
{
	begin_connect(test);
	happens(test, RDMA_CM_EVENT_ADDR_RESOLVED);
	happens(test, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void expect_log(struct kunit *test, const char *log)
{
	flush_workqueue(rpcrdma_wq);
	flush_workqueue(rpcrdma_teardown_wq);
	KUNIT_EXPECT_STREQ(test, cm.log, log);
}

/* A client */

static void test_connects(struct kunit *test)
{
	u8 private[RPCRDMA_PRIVATE_LEN];
	ktime_t before = ktime_get();
	struct rpcrdma_conn *conn;

	begin_connect(test);
	conn = cm.conn;
	expect_log(test, "Na");
	KUNIT_EXPECT_EQ(test, conn->state, RPCRDMA_STATE_RESOLVING);
	KUNIT_EXPECT_PTR_EQ(test, conn->net, &init_net);
	KUNIT_EXPECT_STREQ(test, conn->peer, "127.0.0.1:20049");
	happens(test, RDMA_CM_EVENT_ADDR_RESOLVED);
	expect_log(test, "Nar");
	happens(test, RDMA_CM_EVENT_ROUTE_RESOLVED);
	expect_log(test, "NarDQC");
	KUNIT_EXPECT_EQ(test, conn->state, RPCRDMA_STATE_CONNECTING);
	KUNIT_EXPECT_EQ(test, cm.param.retry_count, 6);
	KUNIT_EXPECT_EQ(test, cm.param.rnr_retry_count, 6);
	/* A requester serves RDMA Reads and issues none. */
	KUNIT_EXPECT_EQ(test, cm.param.responder_resources, READS);
	KUNIT_EXPECT_EQ(test, cm.param.initiator_depth, 0);
	rpcrdma_wire_encode_private(&conn->config.params, private);
	KUNIT_EXPECT_EQ(test, cm.param.private_data_len, sizeof(private));
	KUNIT_EXPECT_EQ(test, memcmp(cm.sent, private, sizeof(private)), 0);

	conn->cm_id->route.addr.src_addr = address_of(1000);
	happens(test, RDMA_CM_EVENT_ESTABLISHED);
	expect_log(test, "NarDQCROSoEK");
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(conn));
	/* Servers that have not agreed may send more. */
	KUNIT_EXPECT_EQ(test, cm.recv_size, CLIENT_SIZE);
	KUNIT_EXPECT_EQ(test, cm.send_size, SERVER_SIZE);
	KUNIT_EXPECT_EQ(test, conn->agreement.call_threshold, SERVER_SIZE);
	KUNIT_EXPECT_EQ(test, conn->agreement.reply_threshold, SERVER_SIZE);
	KUNIT_EXPECT_EQ(test, ntohs(((struct sockaddr_in *)&conn->local_addr)->sin_port), 1000);
	KUNIT_EXPECT_GE(test, conn->established_at, before);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&conn->timer));

	happens(test, RDMA_CM_EVENT_DISCONNECTED);
	expect_log(test, "NarDQCROSoEKZ");
	KUNIT_EXPECT_EQ(test, cm.status, -ECONNRESET);
	end(test);
}

/* Each step may fail. ->closed tells it once, or rpcrdma_conn_connect() itself. */
static void test_connect_fails(struct kunit *test)
{
	static const struct {
		char step;
		const char *log;
	} rows[] = {
		{ 'r', "NarZ" },
		{ 'D', "NarDZ" },
		{ 'Q', "NarDQZ" },
		{ 'C', "NarDQCZ" },
		{ 'R', "NarDQCRZ" },
		{ 'O', "NarDQCROZ" },
		{ 'S', "NarDQCROSZ" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		cm.fail = rows[i].step;
		connect(test);
		happens(test, RDMA_CM_EVENT_ESTABLISHED);
		expect_log(test, rows[i].log);
		KUNIT_EXPECT_EQ(test, cm.status, -ENODATA);
		end(test);
	}
}

/* No callback is called, and what the role has may be gone before the connection. */
static void test_connect_fails_at_once(struct kunit *test)
{
	static const char * const logs[] = { "N", "Na" };
	struct rpcrdma_conn_config config = config_of();
	atomic_t swapper = ATOMIC_INIT(0);
	unsigned long mrs_made = 0;
	unsigned int i;

	config.swapper = &swapper;
	config.mrs_made = &mrs_made;
	for (i = 0; i < ARRAY_SIZE(logs); i++) {
		cm.fail = logs[i][i];
		KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(connect_with(&config)), -ENODATA);
		KUNIT_EXPECT_NULL(test, cm.conn->config.swapper);
		KUNIT_EXPECT_NULL(test, cm.conn->config.mrs_made);
		expect_log(test, logs[i]);
		KUNIT_EXPECT_EQ(test, cm.conn->status, -ENODATA);
		expect_gone(test);
	}
	cm.no_memory = true;
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(connect_with(&config)), -ENOMEM);
	KUNIT_EXPECT_EQ(test, current->flags & PF_MEMALLOC_NOIO, 0);
}

/*
 * The connection breaks while a step runs. No step goes on that the teardown could not
 * undo, and ->established is not called.
 */
static void test_breaks_while_connecting(struct kunit *test)
{
	static const struct {
		char step;
		const char *log;
	} rows[] = {
		{ 'a', "NaZ" },
		{ 'D', "NarDQZ" },
		{ 'Q', "NarDQZ" },
		{ 'C', "NarDQCZ" },
		{ 'R', "NarDQCROSZ" },
		{ 'S', "NarDQCROSZ" },
	};
	unsigned int i;

	cm.event = RDMA_CM_EVENT_DEVICE_REMOVAL;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		cm.meanwhile = rows[i].step;
		begin_connect(test);
		happens(test, RDMA_CM_EVENT_ADDR_RESOLVED);
		happens(test, RDMA_CM_EVENT_ROUTE_RESOLVED);
		happens(test, RDMA_CM_EVENT_ESTABLISHED);
		expect_log(test, rows[i].log);
		KUNIT_EXPECT_EQ(test, cm.status, -ENODEV);
		end(test);
	}
}

/* It breaks before the first resource is made. None is. */
static void test_breaks_before_resources(struct kunit *test)
{
	begin_connect(test);
	/* The work begins, and waits for this. */
	mutex_lock(&cm.conn->setup);
	deliver(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	msleep(20);
	deliver(RDMA_CM_EVENT_ADDR_CHANGE, 0);
	mutex_unlock(&cm.conn->setup);
	expect_log(test, "NaZ");
	end(test);
}

/* Events that come twice, too early or too late change nothing. */
static void test_unexpected_events(struct kunit *test)
{
	begin_connect(test);
	happens(test, RDMA_CM_EVENT_ESTABLISHED);
	happens(test, RDMA_CM_EVENT_CONNECT_RESPONSE);
	happens(test, RDMA_CM_EVENT_MULTICAST_JOIN);
	expect_log(test, "Na");
	deliver(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	deliver(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	happens(test, RDMA_CM_EVENT_ROUTE_RESOLVED);
	happens(test, RDMA_CM_EVENT_ROUTE_RESOLVED);
	expect_log(test, "NaDQC");
	deliver(RDMA_CM_EVENT_ESTABLISHED, 0);
	happens(test, RDMA_CM_EVENT_ESTABLISHED);
	happens(test, RDMA_CM_EVENT_ESTABLISHED);
	expect_log(test, "NaDQCROSoEK");
	/* The teardown waits for this, so the identifier stays. */
	mutex_lock(&cm.conn->setup);
	deliver(RDMA_CM_EVENT_DISCONNECTED, 0);
	deliver(RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	deliver(RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	deliver(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	deliver(RDMA_CM_EVENT_ESTABLISHED, 0);
	mutex_unlock(&cm.conn->setup);
	expect_log(test, "NaDQCROSoEKZ");
	KUNIT_EXPECT_EQ(test, cm.status, -ECONNRESET);
	end(test);
}

struct event_row {
	const char *name;
	enum rdma_cm_event_type event;
	int status;
	int closed;
};

static const struct event_row event_rows[] = {
	{ "no address", RDMA_CM_EVENT_ADDR_ERROR, -EHOSTDOWN, -EHOSTDOWN },
	{ "no address, and no errno", RDMA_CM_EVENT_ADDR_ERROR, 0, -ECONNABORTED },
	{ "no route", RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, -ETIMEDOUT },
	{ "a number that is no errno", RDMA_CM_EVENT_ROUTE_ERROR, 7, -ECONNABORTED },
	{ "no connection", RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, -EINVAL },
	{ "no answer", RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, -EHOSTUNREACH },
	{ "rejected", RDMA_CM_EVENT_REJECTED, 8, -ECONNREFUSED },
	{ "disconnected", RDMA_CM_EVENT_DISCONNECTED, 0, -ECONNRESET },
	{ "the last event", RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, -ECONNRESET },
	{ "another device has the address", RDMA_CM_EVENT_ADDR_CHANGE, 0, -ECONNRESET },
	{ "no device", RDMA_CM_EVENT_DEVICE_REMOVAL, 0, -ENODEV },
};

KUNIT_ARRAY_PARAM_DESC(event, event_rows, name);

/* Each ends the connection, in each state, with the status that the role acts on. */
static void test_event_ends(struct kunit *test)
{
	const struct event_row *row = test->param_value;
	bool rejected = row->event == RDMA_CM_EVENT_REJECTED;
	static const char * const logs[] = { "NaZ", "NarDQCZ", "NarDQCROSoEKZ" };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(logs); i++) {
		cm.refused = 0;
		begin_connect(test);
		if (i > 0) {
			happens(test, RDMA_CM_EVENT_ADDR_RESOLVED);
			happens(test, RDMA_CM_EVENT_ROUTE_RESOLVED);
		}
		if (i > 1)
			happens(test, RDMA_CM_EVENT_ESTABLISHED);
		KUNIT_EXPECT_EQ(test, deliver(row->event, row->status), 0);
		expect_log(test, logs[i]);
		KUNIT_EXPECT_EQ(test, cm.status, row->closed);
		/* The administrator is told who has refused a connection. */
		KUNIT_EXPECT_EQ(test, cm.refused, rejected);
		if (rejected) {
			KUNIT_EXPECT_EQ(test, cm.why, RPCRDMA_REFUSAL_PEER);
			KUNIT_EXPECT_EQ(test, cm.err, -ECONNREFUSED);
			KUNIT_EXPECT_PTR_EQ(test, cm.net, &init_net);
		}
		end(test);
	}
}

/* Its time has come. */
static void run_timer(struct rpcrdma_conn *conn)
{
	mod_delayed_work(rpcrdma_wq, &conn->timer, 0);
	flush_work(&conn->timer.work);
}

static void test_times_out(struct kunit *test)
{
	struct rpcrdma_conn_config config = config_of();
	unsigned long before = jiffies, expires;

	connect(test);
	expires = cm.conn->timer.timer.expires;
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&cm.conn->timer));
	KUNIT_EXPECT_GE(test, expires - before, 60 * HZ);
	KUNIT_EXPECT_LE(test, expires, jiffies + 60 * HZ);
	/* Resolving an address again helps more than to wait longer for the first time. */
	KUNIT_EXPECT_EQ(test, cm.resolve_timeout, 5000);
	KUNIT_EXPECT_EQ(test, cm.route_timeout, 60000);
	run_timer(cm.conn);
	expect_log(test, "NarDQCZ");
	KUNIT_EXPECT_EQ(test, cm.status, -ETIMEDOUT);
	end(test);

	config.timeout_ms = 3000;
	connect_with(&config);
	KUNIT_EXPECT_EQ(test, cm.resolve_timeout, 3000);
	end(test);

	/* It was established at the last moment. */
	connect(test);
	happens(test, RDMA_CM_EVENT_ESTABLISHED);
	run_timer(cm.conn);
	expect_log(test, "NarDQCROSoEK");
	end(test);
}

/* A connection that carries swap may use the reserves, others may not. */
static void test_reserves(struct kunit *test)
{
	struct rpcrdma_conn_config config = config_of();
	atomic_t swapper = ATOMIC_INIT(0);

	config.swapper = &swapper;
	connect_with(&config);
	happens(test, RDMA_CM_EVENT_ROUTE_RESOLVED);
	happens(test, RDMA_CM_EVENT_ESTABLISHED);
	expect_log(test, "NaDQCROSoEK");
	KUNIT_EXPECT_STREQ(test, cm.reserves, "");
	end(test);

	atomic_set(&swapper, 1);
	connect_with(&config);
	happens(test, RDMA_CM_EVENT_ROUTE_RESOLVED);
	happens(test, RDMA_CM_EVENT_ESTABLISHED);
	expect_log(test, "NaDQCROSoEK");
	KUNIT_EXPECT_STREQ(test, cm.reserves, "DQCROS");
	end(test);
}

struct size_row {
	const char *name;
	u32 version;
	u32 wanted;
	u32 recv_size;
};

static const struct size_row size_rows[] = {
	{ "usual", RPCRDMA_VERSION_ONE, 8192, 8192 },
	{ "less than any end may have", RPCRDMA_VERSION_ONE, 100, 1024 },
	{ "more than any end may have", RPCRDMA_VERSION_ONE, 1 << 20, 262144 },
	{ "version 2 needs more", RPCRDMA_VERSION_TWO, 1024, 4096 },
};

KUNIT_ARRAY_PARAM_DESC(size, size_rows, name);

static void test_recv_size(struct kunit *test)
{
	const struct size_row *row = test->param_value;
	struct rpcrdma_conn_config config = config_of();

	config.version_max = row->version;
	config.params.recv_size = row->wanted;
	connect_with(&config);
	happens(test, RDMA_CM_EVENT_ROUTE_RESOLVED);
	happens(test, RDMA_CM_EVENT_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, cm.recv_size, row->recv_size);
	end(test);
}

/* Without private data of either end the defaults hold. */
static void test_no_private_data(struct kunit *test)
{
	struct rpcrdma_conn_config config = config_of();

	config.omit_private_data = true;
	connect_with(&config);
	happens(test, RDMA_CM_EVENT_ROUTE_RESOLVED);
	happens(test, RDMA_CM_EVENT_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, cm.recv_size, RPCRDMA_INLINE_MIN);
	KUNIT_EXPECT_NULL(test, cm.param.private_data);
	KUNIT_EXPECT_EQ(test, cm.param.private_data_len, 0);
	end(test);

	cm.private_len = 0;
	connect(test);
	happens(test, RDMA_CM_EVENT_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, cm.send_size, RPCRDMA_INLINE_MIN);
	KUNIT_EXPECT_EQ(test, cm.conn->agreement.reply_threshold, RPCRDMA_INLINE_MIN);
	KUNIT_EXPECT_FALSE(test, cm.conn->agreement.server_inv);
	end(test);
}

/* A server */

static void request(struct kunit *test)
{
	struct rdma_cm_event event = { .event = RDMA_CM_EVENT_CONNECT_REQUEST };
	struct rdma_cm_id *id = create_id(test);

	begin();
	id->route.addr.src_addr = address_of(PORT);
	id->route.addr.dst_addr = address_of(1000);
	event.param.conn.private_data = cm.private;
	event.param.conn.private_data_len = cm.private_len;
	event.param.conn.initiator_depth = cm.peer_reads;
	KUNIT_ASSERT_PTR_EQ(test, rpcrdma_conn_request(&init_net, id, &event), cm.conn);
	KUNIT_ASSERT_NOT_NULL(test, cm.conn);
	KUNIT_EXPECT_PTR_EQ(test, cm.conn->cm_id, id);
}

static int accept_with(const struct rpcrdma_conn_config *config)
{
	rpcrdma_admission_begin(cm.conn);
	return rpcrdma_conn_accept(cm.conn, config);
}

static int accept(void)
{
	const struct rpcrdma_conn_config config = config_of();

	return accept_with(&config);
}

static void test_accepts(struct kunit *test)
{
	struct rpcrdma_conn *conn;

	request(test);
	conn = cm.conn;
	KUNIT_EXPECT_EQ(test, conn->state, RPCRDMA_STATE_PENDING);
	KUNIT_EXPECT_EQ(test, conn->admission, RPCRDMA_ADMISSION_WAITING);
	KUNIT_EXPECT_PTR_EQ(test, conn->net, &init_net);
	KUNIT_EXPECT_STREQ(test, conn->peer, "127.0.0.1:1000");
	KUNIT_EXPECT_EQ(test, ntohs(((struct sockaddr_in *)&conn->local_addr)->sin_port), PORT);
	KUNIT_EXPECT_EQ(test, accept(), 0);
	expect_log(test, "DQRSOA");
	KUNIT_EXPECT_EQ(test, conn->state, RPCRDMA_STATE_ACCEPTING);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&conn->timer));
	KUNIT_EXPECT_EQ(test, cm.recv_size, SERVER_SIZE);
	KUNIT_EXPECT_EQ(test, cm.send_size, SERVER_SIZE);
	KUNIT_EXPECT_EQ(test, cm.param.initiator_depth, READS);
	KUNIT_EXPECT_EQ(test, cm.param.responder_resources, 0);
	KUNIT_EXPECT_EQ(test, cm.param.rnr_retry_count, 6);
	KUNIT_EXPECT_EQ(test, cm.param.private_data_len, RPCRDMA_PRIVATE_LEN);
	happens(test, RDMA_CM_EVENT_ESTABLISHED);
	happens(test, RDMA_CM_EVENT_ESTABLISHED);
	expect_log(test, "DQRSOAoEK");
	KUNIT_EXPECT_EQ(test, conn->admission, RPCRDMA_ADMISSION_ESTABLISHED);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&conn->timer));
	happens(test, RDMA_CM_EVENT_DISCONNECTED);
	expect_log(test, "DQRSOAoEKZ");
	end(test);
}

/* Each step may fail. The caller is told, or, once the answer was sent, the role. */
static void test_accept_fails(struct kunit *test)
{
	static const struct {
		char step;
		int ret;
		const char *log;
	} rows[] = {
		{ 'D', -ENODATA, "D" },
		{ 'Q', -ENODATA, "DQ" },
		{ 'R', -ENODATA, "DQR" },
		{ 'S', -ENODATA, "DQRS" },
		{ 'O', 0, "DQRSOZ" },
		{ 'A', 0, "DQRSOAZ" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		cm.fail = rows[i].step;
		request(test);
		KUNIT_EXPECT_EQ(test, accept(), rows[i].ret);
		expect_log(test, rows[i].log);
		KUNIT_EXPECT_EQ(test, cm.conn->status, -ENODATA);
		end(test);
	}
}

/* The client gives up while a step runs. The teardown waits until that is over. */
static void test_given_up(struct kunit *test)
{
	static const struct {
		char step;
		int ret;
		const char *log;
	} rows[] = {
		{ 'D', -ECONNABORTED, "DQRS" },
		{ 'R', -ECONNABORTED, "DQRS" },
		{ 'S', -ECONNABORTED, "DQRS" },
		{ 'A', 0, "DQRSOAZ" },
	};
	unsigned int i;

	cm.event = RDMA_CM_EVENT_REJECTED;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		cm.meanwhile = rows[i].step;
		request(test);
		KUNIT_EXPECT_EQ(test, accept(), rows[i].ret);
		expect_log(test, rows[i].log);
		KUNIT_EXPECT_EQ(test, cm.conn->status, -ECONNREFUSED);
		/* It has not refused: it is a client. */
		KUNIT_EXPECT_EQ(test, cm.refused, 0);
		end(test);
	}
	/* Or before anybody has taken the request. */
	cm.meanwhile = 0;
	request(test);
	happens(test, RDMA_CM_EVENT_DISCONNECTED);
	KUNIT_EXPECT_EQ(test, accept(), -ECONNABORTED);
	expect_log(test, "");
	end(test);
}

/* The client confirms before rdma_accept() has returned. */
static void test_confirmed_at_once(struct kunit *test)
{
	cm.meanwhile = 'A';
	cm.event = RDMA_CM_EVENT_ESTABLISHED;
	request(test);
	KUNIT_EXPECT_EQ(test, accept(), 0);
	expect_log(test, "DQRSOAoEK");
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&cm.conn->timer));
	end(test);
}

/* The client does not confirm. */
static void test_not_confirmed(struct kunit *test)
{
	request(test);
	KUNIT_EXPECT_EQ(test, accept(), 0);
	run_timer(cm.conn);
	expect_log(test, "DQRSOAZ");
	KUNIT_EXPECT_EQ(test, cm.status, -ETIMEDOUT);
	end(test);
}

/* rdma_cm keeps the identifier, and destroys it. */
static void test_request_without_memory(struct kunit *test)
{
	struct rdma_cm_event event = { .event = RDMA_CM_EVENT_CONNECT_REQUEST };
	struct rdma_cm_id *id = create_id(test);

	cm.no_memory = true;
	KUNIT_EXPECT_NULL(test, rpcrdma_conn_request(&init_net, id, &event));
	KUNIT_EXPECT_TRUE(test, id->event_handler == no_event);
	rdma_destroy_id(id);
}

struct depth_row {
	const char *name;
	bool iwarp;
	unsigned int device;
	u8 peer;
	unsigned int role;
	unsigned int depth;
};

static const struct depth_row depth_rows[] = {
	{ "the device", false, 8, 16, 32, 8 },
	{ "the peer", false, 16, 4, 32, 4 },
	{ "the role", false, 16, 8, 2, 2 },
	{ "the role wants more", false, 16, 8, 20, 8 },
	{ "the peer serves none", false, 16, 0, 32, 0 },
	{ "iWARP does not say", true, 16, 0, 32, 16 },
	{ "iWARP says", true, 16, 4, 32, 4 },
};

KUNIT_ARRAY_PARAM_DESC(depth, depth_rows, name);

/* RDMA Reads that a server may have in flight, and tells the client */
static void test_read_depth(struct kunit *test)
{
	const struct depth_row *row = test->param_value;
	struct rpcrdma_conn_config config = config_of();

	if (row->iwarp)
		cm.port.immutable.core_cap_flags = RDMA_CORE_PORT_IWARP;
	cm.device.max_read_initiator = row->device;
	cm.peer_reads = row->peer;
	config.read_depth = row->role;
	request(test);
	KUNIT_EXPECT_EQ(test, accept_with(&config), 0);
	KUNIT_EXPECT_EQ(test, cm.conn->read_depth, row->depth);
	KUNIT_EXPECT_EQ(test, cm.param.initiator_depth, row->depth);
	end(test);
}

/* Version 2 needs buffers that are larger, at both ends of each direction. */
static void test_accept_sizes(struct kunit *test)
{
	static const struct rpcrdma_params client = { .send_size = 2048, .recv_size = 1024 };
	struct rpcrdma_conn_config config = config_of();

	rpcrdma_wire_encode_private(&client, cm.private);
	request(test);
	KUNIT_EXPECT_EQ(test, accept_with(&config), 0);
	KUNIT_EXPECT_EQ(test, cm.recv_size, 2048);
	KUNIT_EXPECT_EQ(test, cm.send_size, 1024);
	end(test);

	config.version_max = RPCRDMA_VERSION_TWO;
	request(test);
	KUNIT_EXPECT_EQ(test, accept_with(&config), 0);
	KUNIT_EXPECT_EQ(test, cm.recv_size, 4096);
	KUNIT_EXPECT_EQ(test, cm.send_size, 4096);
	end(test);
}

/* The version is worth a line if it could be another one. */
static void test_log_version(struct kunit *test)
{
	request(test);
	KUNIT_EXPECT_EQ(test, accept(), 0);
	rpcrdma_conn_log_version(cm.conn, RPCRDMA_VERSION_ONE);
	KUNIT_EXPECT_FALSE(test, cm.conn->version_logged);
	cm.conn->config.version_max = RPCRDMA_VERSION_TWO;
	rpcrdma_conn_log_version(cm.conn, RPCRDMA_VERSION_ONE);
	KUNIT_EXPECT_TRUE(test, cm.conn->version_logged);
	end(test);
}

static struct kunit_case establish_cases[] = {
	KUNIT_CASE(test_connects),
	KUNIT_CASE(test_connect_fails),
	KUNIT_CASE(test_connect_fails_at_once),
	KUNIT_CASE(test_breaks_while_connecting),
	KUNIT_CASE(test_breaks_before_resources),
	KUNIT_CASE(test_unexpected_events),
	KUNIT_CASE_PARAM(test_event_ends, event_gen_params),
	KUNIT_CASE(test_times_out),
	KUNIT_CASE(test_reserves),
	KUNIT_CASE_PARAM(test_recv_size, size_gen_params),
	KUNIT_CASE(test_no_private_data),
	KUNIT_CASE(test_accepts),
	KUNIT_CASE(test_accept_fails),
	KUNIT_CASE(test_given_up),
	KUNIT_CASE(test_confirmed_at_once),
	KUNIT_CASE(test_not_confirmed),
	KUNIT_CASE(test_request_without_memory),
	KUNIT_CASE_PARAM(test_read_depth, depth_gen_params),
	KUNIT_CASE(test_accept_sizes),
	KUNIT_CASE(test_log_version),
	{}
};

static struct kunit_suite establish_suite = {
	.name = "rpcrdma_establish",
	.init = establish_init,
	.test_cases = establish_cases,
};

kunit_test_suites(&establish_suite);
