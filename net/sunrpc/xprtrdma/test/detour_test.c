// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of detours in client/endpoint.c: when a transport connects to the address of a
 * sibling, and how it comes back to its own.
 */
#include <kunit/test.h>
#include <linux/inet.h>
#include <linux/sunrpc/addr.h>

#include "fake_client.h"

#define OWN		"192.0.2.1"
#define SIBLING		"198.51.100.1"
#define PORT		20049

struct detour {
	struct fake_client *t;
	struct rpc_xprt *sibling;
	struct xprt_rdma_client *sibling_client;
};

static void set_address(struct rpc_xprt *xprt, const char *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&xprt->addr;

	in->sin_family = AF_INET;
	in->sin_port = htons(PORT);
	in->sin_addr.s_addr = in_aton(address);
}

/* A client whose switch has another transport, which is connected to another address */
static struct detour detour_make(struct kunit *test)
{
	struct detour d = {
		.t = fake_client_make(test, RPCRDMA_INLINE_MIN, RPCRDMA_VERSION_ONE),
		.sibling_client = kunit_kzalloc(test, sizeof(*d.sibling_client), GFP_KERNEL),
	};

	KUNIT_ASSERT_NOT_NULL(test, d.sibling_client);
	d.sibling = &d.sibling_client->xprt;
	d.sibling->ops = &xprt_rdma_client_ops;
	set_bit(XPRT_CONNECTED, &d.sibling->state);
	set_address(&d.t->client->xprt, OWN);
	set_address(d.sibling, SIBLING);
	list_add_tail(&d.sibling->xprt_switch, &d.t->xps.xps_xprt_list);
	d.t->client->xprt.connect_timeout = 30 * HZ;
	return d;
}

static bool goes_to(const struct fake_conn *fake, const struct rpc_xprt *xprt)
{
	return rpc_cmp_addr_port(fake->to, (struct sockaddr *)&xprt->addr);
}

/* The first attempt finds that the own address cannot be reached, the next one succeeds. */
static void (*note_attempt)(struct fake_conn *fake, const struct sockaddr *source,
			    const struct rpcrdma_conn_config *config);

static void own_is_gone(struct fake_conn *fake, const struct sockaddr *source,
			const struct rpcrdma_conn_config *config)
{
	struct fake_client *t = container_of(fake, struct fake_client, fake);

	note_attempt(fake, source, config);
	fake->connect_error = goes_to(fake, &t->client->xprt) ? -ENODEV : 0;
}

static void connect_by_detour(struct kunit *test, struct detour *d)
{
	struct fake_client *t = d->t;

	note_attempt = t->fake.connecting;
	t->fake.connecting = own_is_gone;
	fake_client_connect(t);
	KUNIT_ASSERT_TRUE(test, xprt_connected(&t->client->xprt));
	KUNIT_EXPECT_EQ(test, t->connects, 2);
	KUNIT_EXPECT_TRUE(test, goes_to(&t->fake, d->sibling));
}

static void test_detour(struct kunit *test)
{
	struct detour d = detour_make(test);
	struct fake_client *t = d.t;

	t->client->source.ss_family = AF_INET;
	connect_by_detour(test, &d);
	/* Routing chooses the device. */
	KUNIT_EXPECT_NULL(test, t->source);
	KUNIT_EXPECT_EQ(test, t->config.timeout_ms, 10000);
	KUNIT_EXPECT_EQ(test, t->connector.tk_status, -EAGAIN);
	KUNIT_EXPECT_EQ(test, t->client->xprt.stat.connect_count, 1);
	fake_client_end(test, t);
}

/* Each attempt begins with the own address, and one that succeeds is no detour. */
static void test_own_first(struct kunit *test)
{
	struct detour d = detour_make(test);
	struct rpc_xprt *xprt = &d.t->client->xprt;

	fake_client_connect(d.t);
	KUNIT_EXPECT_EQ(test, d.t->connects, 1);
	KUNIT_EXPECT_TRUE(test, goes_to(&d.t->fake, xprt));
	/* Others may connect to this address now. */
	KUNIT_EXPECT_EQ(test, d.t->client->detour.ss_family, AF_UNSPEC);
	/* Nothing is tried while it is connected. */
	d.t->fake.to = NULL;
	d.t->fake.conn->ops->keepalive(d.t->fake.conn);
	KUNIT_EXPECT_NULL(test, d.t->fake.to);
	fake_client_end(test, d.t);
}

/* When there is none */

enum none { DISCONNECTED, ON_DETOUR, SAME_ADDRESS, OTHER_CLASS, NO_MEMBER, REFUSED };

struct none_row {
	const char *name;
	enum none none;
};

static const struct none_row none_rows[] = {
	{ "the sibling is not connected", DISCONNECTED },
	{ "its own address cannot be reached either", ON_DETOUR },
	{ "it has the same address", SAME_ADDRESS },
	{ "it is of another class", OTHER_CLASS },
	{ "nobody has verified the own address", NO_MEMBER },
	{ "the server refuses", REFUSED },
};

KUNIT_ARRAY_PARAM_DESC(none, none_rows, name);

static void test_none(struct kunit *test)
{
	static const struct rpc_xprt_ops other_ops;
	const struct none_row *row = test->param_value;
	struct detour d = detour_make(test);
	struct fake_client *t = d.t;

	if (row->none == DISCONNECTED)
		clear_bit(XPRT_CONNECTED, &d.sibling->state);
	else if (row->none == ON_DETOUR)
		d.sibling_client->detour.ss_family = AF_INET;
	else if (row->none == SAME_ADDRESS)
		set_address(d.sibling, OWN);
	else if (row->none == OTHER_CLASS)
		d.sibling->ops = &other_ops;
	else if (row->none == NO_MEMBER)
		list_del_init(&t->client->xprt.xprt_switch);
	t->fake.connect_error = row->none == REFUSED ? -ECONNREFUSED : -EHOSTUNREACH;
	fake_client_connect(t);
	KUNIT_EXPECT_EQ(test, t->connects, 1);
	KUNIT_EXPECT_EQ(test, t->connector.tk_status, t->fake.connect_error);
	fake_client_end(test, t);
}

/* An earlier attempt's sibling does not count. */
static void test_sibling_goes(struct kunit *test)
{
	struct detour d = detour_make(test);
	struct fake_client *t = d.t;

	t->fake.connect_error = -EHOSTUNREACH;
	fake_client_connect(t);
	KUNIT_EXPECT_EQ(test, t->connects, 2);
	KUNIT_EXPECT_EQ(test, t->connector.tk_status, -EHOSTUNREACH);
	clear_bit(XPRT_CONNECTED, &d.sibling->state);
	t->client->connect_at = jiffies - 100 * HZ;
	fake_client_connect(t);
	KUNIT_EXPECT_EQ(test, t->connects, 3);
	KUNIT_EXPECT_EQ(test, t->config.timeout_ms, 30000);
	fake_client_end(test, t);
}

/* The way back */

/* A probe does not disturb the detour until the own address can be reached; then that ends. */
static void test_probe(struct kunit *test)
{
	struct fake_conn *probe = fake_conn_new(test, RPCRDMA_INLINE_MIN);
	struct detour d = detour_make(test);
	struct fake_client *t = d.t;
	struct rpcrdma_conn *conn = t->fake.conn;

	connect_by_detour(test, &d);
	fake_conn_serve(probe);
	probe->connect_error = -ENODEV;
	conn->ops->keepalive(conn);
	KUNIT_EXPECT_TRUE(test, goes_to(probe, &t->client->xprt));
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(conn));
	KUNIT_EXPECT_EQ(test, kref_read(&t->ep->ref), 3);

	probe->connect_error = 0;
	conn->ops->keepalive(conn);
	KUNIT_EXPECT_FALSE(test, rpcrdma_conn_established(conn));
	KUNIT_EXPECT_FALSE(test, rpcrdma_conn_established(probe->conn));
	fake_conn_close(test, probe);
	fake_conn_close(test, &t->fake);
	KUNIT_EXPECT_TRUE(test, test_bit(XPRT_CLOSE_WAIT, &t->client->xprt.state));
	fake_client_end(test, t);
	fake_conn_delete(test, probe);
}

/* The detour breaks meanwhile: its endpoint stays until the probe is over. */
static void test_probe_is_late(struct kunit *test)
{
	struct fake_conn *probe = fake_conn_new(test, RPCRDMA_INLINE_MIN);
	struct detour d = detour_make(test);
	struct fake_client *t = d.t;
	const __be32 octets[8] = {};

	connect_by_detour(test, &d);
	fake_conn_serve(probe);
	probe->stalls = fake_run_callbacks;
	t->fake.conn->ops->keepalive(t->fake.conn);
	KUNIT_EXPECT_EQ(test, kref_read(&t->ep->ref), 4);
	KUNIT_EXPECT_TRUE(test, rpcrdma_conn_established(t->fake.conn));
	fake_conn_close(test, &t->fake);
	/* What a server sends at once is dropped. */
	probe->conn->ops->received(probe->conn, fake_take_recv(probe, octets, sizeof(octets)));
	probe->conn->ops->established(probe->conn);
	fake_conn_close(test, probe);
	fake_client_end(test, t);
	fake_conn_delete(test, probe);
}

static struct kunit_case detour_cases[] = {
	KUNIT_CASE(test_detour),
	KUNIT_CASE(test_own_first),
	KUNIT_CASE_PARAM(test_none, none_gen_params),
	KUNIT_CASE(test_sibling_goes),
	KUNIT_CASE(test_probe),
	KUNIT_CASE(test_probe_is_late),
	{}
};

static struct kunit_suite detour_suite = {
	.name = "rpcrdma_detour",
	.exit = fake_client_exit,
	.test_cases = detour_cases,
};

kunit_test_suites(&detour_suite);
