// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What connections have counted, by their peers, so that it goes on when they end.
 *
 * A connection belongs to the record of its peer from when it is established until its memory is
 * freed, and adds its counters to that then. Before, who reads the record adds them up. So nothing
 * is lost or told twice, and counting costs no more.
 *
 * A peer may have any number of addresses, so the number of records has a limit. The first peers
 * keep theirs, so that they can be followed for months. Then a new peer gets that of the one
 * without connections whose last one ended first, and what that has counted goes to the record of
 * all others, as do connections for which there is no record. So the sum over all records does not
 * fall either.
 */
#include <linux/slab.h>
#include <net/netns/generic.h>

#include "conn_private.h"

/* Records of each role in a namespace, that of all others among them */
#define HISTORY_MAX	257

/* Peers of each role that keep theirs, the first ones */
#define HISTORY_KEPT	128

/* Lines of one kind that a peer may log in five seconds, of ten that the kernel prints at most */
#define HISTORY_LINES	4

/* Of a network namespace, made and freed with it */
struct history_net {
	spinlock_t lock;	/* protects what follows, the records, and conn->history_list */
	struct list_head all;	/* new ones come last, and none goes */
	unsigned int num[2];	/* by conn->server, as @others */
	unsigned int changes;	/* odd; two more whenever a record gets another peer */
	struct rpcrdma_history others[2];
};

static unsigned int history_net_id;

static void history_count(struct rpcrdma_counters *to, const struct rpcrdma_counters *from)
{
	const u64 *add = (const u64 *)from;
	u64 *sum = (u64 *)to;
	unsigned int i;

	for (i = 0; i < sizeof(*to) / sizeof(*sum); i++)
		/* Those who count take no lock for it. */
		sum[i] += data_race(add[i]);
}

static void history_begin(struct rpcrdma_history *history)
{
	unsigned int i;

	history->since = ktime_get();
	for (i = 0; i < ARRAY_SIZE(history->lines); i++) {
		ratelimit_state_init(&history->lines[i], DEFAULT_RATELIMIT_INTERVAL,
				     HISTORY_LINES);
		/* The kernel does not say how many were left out: that line has no limit. */
		ratelimit_set_flags(&history->lines[i], RATELIMIT_MSG_ON_RELEASE);
	}
}

static void history_add(struct history_net *net, struct rpcrdma_history *history, bool server)
{
	history->server = server;
	INIT_LIST_HEAD(&history->conns);
	list_add_tail(&history->list, &net->all);
	net->num[server]++;
}

static struct rpcrdma_history *history_of_locked(struct history_net *net, bool server,
						 const char *peer)
{
	struct rpcrdma_history *others = &net->others[server], *oldest = NULL, *history;
	unsigned int n = 0;

	lockdep_assert_held(&net->lock);
	list_for_each_entry(history, &net->all, list) {
		if (history->server != server || history == others)
			continue;
		if (!strcmp(history->peer, peer))
			return history;
		if (n++ >= HISTORY_KEPT && list_empty(&history->conns) &&
		    (!oldest || ktime_before(history->ended, oldest->ended)))
			oldest = history;
	}
	if (net->num[server] < HISTORY_MAX) {
		oldest = kzalloc(sizeof(*oldest), GFP_NOWAIT | __GFP_NOWARN);
		if (oldest)
			history_add(net, oldest, server);
	}
	if (!oldest)
		return others;
	net->changes += *oldest->peer ? 2 : 0;
	history_count(&others->counters, &oldest->counters);
	memset(&oldest->counters, 0, sizeof(oldest->counters));
	history_begin(oldest);
	strscpy(oldest->peer, peer, sizeof(oldest->peer));
	return oldest;
}

/* The connection is established, and nobody else knows it there yet. */
void rpcrdma_history_join(struct rpcrdma_conn *conn)
{
	struct history_net *net = net_generic(conn->net, history_net_id);
	struct rpcrdma_history *history;
	char peer[INET6_ADDRSTRLEN];

	snprintf(peer, sizeof(peer), "%pISc", &conn->peer_addr);
	conn->counters.connects = 1;
	spin_lock_bh(&net->lock);
	history = history_of_locked(net, conn->server, peer);
	list_add(&conn->history_list, &history->conns);
	/* Pairs with rpcrdma_history_may_log(). */
	smp_store_release(&conn->history, history);
	spin_unlock_bh(&net->lock);
}

/* The connection is about to be freed, so nobody counts any more. It may never have joined. */
void rpcrdma_history_leave(struct rpcrdma_conn *conn)
{
	struct history_net *net;

	if (!conn->history)
		return;
	net = net_generic(conn->net, history_net_id);
	spin_lock_bh(&net->lock);
	history_count(&conn->history->counters, &conn->counters);
	conn->history->ended = ktime_get();
	list_del(&conn->history_list);
	spin_unlock_bh(&net->lock);
}

/* So a peer whose connections fail all the time does not hide what happens to others'. */
bool rpcrdma_history_may_log(struct rpcrdma_conn *conn, bool ended)
{
	/* Pairs with rpcrdma_history_join(). */
	struct rpcrdma_history *history = smp_load_acquire(&conn->history);

	return !history || __ratelimit(&history->lines[ended]);
}

/**
 * rpcrdma_history_get - read a record
 * @ns: its network namespace
 * @n: its number; from zero on, with none left out
 * @copy: the record but for @lines, with what its connections have counted so far
 *
 * Return: what is the same for all records of a namespace until one is given to another peer; zero
 * if there is none of this number.
 */
unsigned int rpcrdma_history_get(const struct net *ns, unsigned int n, struct rpcrdma_history *copy)
{
	struct history_net *net = net_generic(ns, history_net_id);
	const struct rpcrdma_history *history;
	const struct rpcrdma_conn *conn;
	unsigned int changes = 0;

	spin_lock_bh(&net->lock);
	list_for_each_entry(history, &net->all, list) {
		if (n--)
			continue;
		memcpy(copy, history, offsetof(struct rpcrdma_history, lines));
		list_for_each_entry(conn, &history->conns, history_list)
			history_count(&copy->counters, &conn->counters);
		changes = net->changes;
		break;
	}
	spin_unlock_bh(&net->lock);
	return changes;
}

static int __net_init history_net_init(struct net *ns)
{
	struct history_net *net = net_generic(ns, history_net_id);
	unsigned int server;

	net->changes = 1;
	spin_lock_init(&net->lock);
	INIT_LIST_HEAD(&net->all);
	for (server = 0; server < ARRAY_SIZE(net->others); server++) {
		history_add(net, &net->others[server], server);
		history_begin(&net->others[server]);
	}
	return 0;
}

/* Each connection has a reference to the namespace until it has left, so there are none. */
static void __net_exit history_net_exit(struct net *ns)
{
	struct history_net *net = net_generic(ns, history_net_id);
	struct rpcrdma_history *history, *next;

	list_for_each_entry_safe(history, next, &net->all, list)
		if (*history->peer)
			kfree(history);
}

struct pernet_operations rpcrdma_history_ops = {
	.init = history_net_init,
	.exit = history_net_exit,
	.id = &history_net_id,
	.size = sizeof(struct history_net),
};
