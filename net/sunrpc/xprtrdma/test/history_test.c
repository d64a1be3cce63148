// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of conn/history.c: what is counted by peer, and which records there are. A copy is
 * compiled here, with records of its own in the initial network namespace.
 */
#include <kunit/test.h>
#include <net/net_namespace.h>

/* The names of the copy */
#define rpcrdma_history_ops		history_test_ops
#define rpcrdma_history_join		history_test_join
#define rpcrdma_history_leave		history_test_leave
#define rpcrdma_history_get		history_test_get
#define rpcrdma_history_may_log		history_test_may_log

#include "../conn/history.c"

#define SENT	1000000000000ULL	/* octets of each connection */
#define PEERS	256			/* that have a record of their own */

/* Too large for the stack. Tests run one at a time. */
static struct rpcrdma_history record;
static ktime_t begun;

/* A connection as far as history.c knows it */
static struct rpcrdma_conn *new_conn(struct kunit *test, bool server, u32 address)
{
	struct rpcrdma_conn *conn = kunit_kzalloc(test, sizeof(*conn), GFP_KERNEL);
	struct sockaddr_in *v4;

	KUNIT_ASSERT_NOT_NULL(test, conn);
	v4 = (struct sockaddr_in *)&conn->peer_addr;
	v4->sin_family = AF_INET;
	v4->sin_addr.s_addr = htonl(address);
	conn->net = &init_net;
	conn->server = server;
	rpcrdma_history_join(conn);
	conn->counters.sent.placed_octets = SENT;
	conn->counters.slot_waits = 1;
	return conn;
}

static void end(struct rpcrdma_conn *conn)
{
	rpcrdma_history_leave(conn);
	/* Nobody looks at it any more. */
	memset(conn, 0xff, sizeof(*conn));
}

/*
 * That of a peer, or with an empty string that of all others; if there is none, one that is zero.
 * Valid until this or records() is called again.
 */
static const struct rpcrdma_history *record_of(bool server, const char *peer)
{
	unsigned int n;

	for (n = 0; rpcrdma_history_get(&init_net, n, &record); n++)
		if (record.server == server && !strcmp(record.peer, peer))
			return &record;
	memset(&record, 0, sizeof(record));
	return &record;
}

/* Records of a role, and the sum of what they have */
static unsigned int records(bool server, u64 *octets, u64 *connects)
{
	unsigned int count = 0, n;

	*octets = 0;
	*connects = 0;
	for (n = 0; rpcrdma_history_get(&init_net, n, &record); n++) {
		if (record.server != server)
			continue;
		count++;
		*octets += record.counters.sent.placed_octets;
		*connects += record.counters.connects;
	}
	return count;
}

/* The place of a peer's record */
static unsigned int place_of(const char *peer)
{
	unsigned int n = 0;

	while (rpcrdma_history_get(&init_net, n, &record) && strcmp(record.peer, peer))
		n++;
	return n;
}

static int history_test_begin(struct kunit *test)
{
	begun = ktime_get();
	return register_pernet_subsys(&rpcrdma_history_ops);
}

static void history_test_end(struct kunit *test)
{
	unregister_pernet_subsys(&rpcrdma_history_ops);
}

/* What a connection has counted is told while it lives, and the same when it is gone. */
static void test_goes_on(struct kunit *test)
{
	struct rpcrdma_conn *conn = new_conn(test, false, 0x0a110001), *next;
	const struct rpcrdma_history *told = record_of(false, "10.17.0.1");

	KUNIT_EXPECT_EQ(test, told->counters.sent.placed_octets, SENT);
	KUNIT_EXPECT_EQ(test, told->counters.slot_waits, 1);
	KUNIT_EXPECT_EQ(test, told->counters.connects, 1);

	/* The role may count until the memory is freed. */
	conn->counters.errors[RPCRDMA_A_ERRORS_DROPPED]++;
	conn->counters.latency[RPCRDMA_LATENCY_BUCKETS]++;
	end(conn);
	told = record_of(false, "10.17.0.1");
	KUNIT_EXPECT_EQ(test, told->counters.sent.placed_octets, SENT);
	KUNIT_EXPECT_EQ(test, told->counters.errors[RPCRDMA_A_ERRORS_DROPPED], 1);
	KUNIT_EXPECT_EQ(test, told->counters.latency[RPCRDMA_LATENCY_BUCKETS], 1);

	next = new_conn(test, false, 0x0a110001);
	conn = new_conn(test, false, 0x0a110001);
	told = record_of(false, "10.17.0.1");
	KUNIT_EXPECT_EQ(test, told->counters.sent.placed_octets, 3 * SENT);
	KUNIT_EXPECT_EQ(test, told->counters.slot_waits, 3);
	KUNIT_EXPECT_EQ(test, told->counters.connects, 3);
	end(next);
	end(conn);
	told = record_of(false, "10.17.0.1");
	KUNIT_EXPECT_EQ(test, told->counters.sent.placed_octets, 3 * SENT);
}

/* A host may be client and server of the same peer, whose port does not matter. */
static void test_roles_and_ports(struct kunit *test)
{
	struct rpcrdma_conn *client = new_conn(test, false, 0x0a110001);
	struct rpcrdma_conn *server = new_conn(test, true, 0x0a110001);
	struct sockaddr_in6 *v6;

	KUNIT_EXPECT_EQ(test, record_of(false, "10.17.0.1")->counters.connects, 1);
	KUNIT_EXPECT_EQ(test, record_of(true, "10.17.0.1")->counters.connects, 1);
	end(server);

	v6 = (struct sockaddr_in6 *)&client->peer_addr;
	rpcrdma_history_leave(client);
	*v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(20049) };
	v6->sin6_addr.s6_addr[0] = 0xfd;
	v6->sin6_addr.s6_addr[15] = 1;
	rpcrdma_history_join(client);
	KUNIT_EXPECT_EQ(test, record_of(false, "fd00::1")->counters.connects, 1);
	rpcrdma_history_leave(client);
	v6->sin6_port++;
	rpcrdma_history_join(client);
	KUNIT_EXPECT_EQ(test, record_of(false, "fd00::1")->counters.connects, 2);
	end(client);
}

/* One that was never established has no record. That of all others has counted since it exists. */
static void test_not_established(struct kunit *test)
{
	struct rpcrdma_conn *conn = kunit_kzalloc(test, sizeof(*conn), GFP_KERNEL);
	u64 octets, connects;

	KUNIT_ASSERT_NOT_NULL(test, conn);
	conn->net = &init_net;
	rpcrdma_history_leave(conn);
	KUNIT_EXPECT_EQ(test, records(false, &octets, &connects), 1);
	KUNIT_EXPECT_EQ(test, connects, 0);
	KUNIT_EXPECT_GE(test, record_of(false, "")->since, begun);
}

/*
 * A thousand addresses get no more records than there may be, and neither that of a peer with a
 * connection, nor one of the other role. What all have counted stays.
 */
static void test_many_addresses(struct kunit *test)
{
	struct rpcrdma_conn *client = new_conn(test, false, 0x0a110001);
	struct rpcrdma_conn *stays = new_conn(test, true, 0x0a110001);
	unsigned int i;
	u64 octets, connects;

	end(client);
	for (i = 0; i < 1000; i++)
		end(new_conn(test, true, 0x0a120000 + i));
	KUNIT_EXPECT_EQ(test, records(true, &octets, &connects), PEERS + 1);
	KUNIT_EXPECT_EQ(test, octets, 1001 * SENT);
	KUNIT_EXPECT_EQ(test, connects, 1001);
	KUNIT_EXPECT_EQ(test, record_of(false, "10.17.0.1")->counters.connects, 1);
	/* The first ones stay, and of the rest the oldest have gone to the others. */
	KUNIT_EXPECT_EQ(test, record_of(true, "10.18.0.126")->counters.connects, 1);
	KUNIT_EXPECT_EQ(test, record_of(true, "10.18.0.127")->counters.connects, 0);
	KUNIT_EXPECT_EQ(test, record_of(true, "10.18.3.231")->counters.connects, 1);
	KUNIT_EXPECT_EQ(test, record_of(true, "")->counters.connects, 1001 - PEERS);
	end(stays);
}

/* With a connection of each peer, further peers are among the others. */
static void test_all_in_use(struct kunit *test)
{
	struct rpcrdma_conn **conns = kunit_kcalloc(test, PEERS + 2, sizeof(*conns), GFP_KERNEL);
	unsigned int i, changes;
	u64 octets, connects;

	KUNIT_ASSERT_NOT_NULL(test, conns);
	changes = rpcrdma_history_get(&init_net, 0, &record);
	for (i = 0; i < PEERS + 2; i++)
		conns[i] = new_conn(test, true, 0x0a120000 + i);
	KUNIT_EXPECT_EQ(test, record_of(true, "")->counters.connects, 2);
	KUNIT_EXPECT_EQ(test, records(true, &octets, &connects), PEERS + 1);
	KUNIT_EXPECT_EQ(test, octets, (PEERS + 2) * SENT);

	/* The next one gets the record of one that has gone, in its place, and readers can tell. */
	i = place_of("10.18.0.200");
	KUNIT_EXPECT_EQ(test, rpcrdma_history_get(&init_net, i, &record), changes);
	end(conns[200]);
	conns[200] = new_conn(test, true, 0x0a130000);
	KUNIT_EXPECT_NE(test, rpcrdma_history_get(&init_net, 0, &record), changes);
	KUNIT_EXPECT_EQ(test, place_of("10.19.0.0"), i);
	KUNIT_EXPECT_EQ(test, record_of(true, "10.19.0.0")->counters.connects, 1);
	KUNIT_EXPECT_EQ(test, record_of(true, "10.19.0.0")->counters.sent.placed_octets, SENT);
	KUNIT_EXPECT_EQ(test, record_of(true, "")->counters.sent.placed_octets, 3 * SENT);
	for (i = 0; i < PEERS + 2; i++)
		end(conns[i]);
	records(true, &octets, &connects);
	KUNIT_EXPECT_EQ(test, octets, (PEERS + 3) * SENT);
}

/* A peer whose connections end all the time leaves lines in the log to others. */
static void test_lines(struct kunit *test)
{
	struct rpcrdma_conn *conn, *other = new_conn(test, true, 0x0a110002);
	unsigned int i, lines = 0;

	for (i = 0; i < 20; i++) {
		conn = new_conn(test, true, 0x0a110001);
		lines += rpcrdma_history_may_log(conn, true);
		end(conn);
	}
	KUNIT_EXPECT_GE(test, lines, 1);
	KUNIT_EXPECT_LE(test, lines, 8);
	/* Lines of the other kind have a limit of their own. */
	conn = new_conn(test, true, 0x0a110001);
	KUNIT_EXPECT_TRUE(test, rpcrdma_history_may_log(conn, false));
	end(conn);
	KUNIT_EXPECT_TRUE(test, rpcrdma_history_may_log(other, true));
	KUNIT_EXPECT_TRUE(test, rpcrdma_history_may_log(other, false));
	end(other);
}

static struct kunit_case history_cases[] = {
	KUNIT_CASE(test_goes_on),
	KUNIT_CASE(test_roles_and_ports),
	KUNIT_CASE(test_not_established),
	KUNIT_CASE(test_many_addresses),
	KUNIT_CASE(test_all_in_use),
	KUNIT_CASE(test_lines),
	{}
};

static struct kunit_suite history_suite = {
	.name = "rpcrdma_history",
	.init = history_test_begin,
	.exit = history_test_end,
	.test_cases = history_cases,
};

kunit_test_suite(history_suite);
