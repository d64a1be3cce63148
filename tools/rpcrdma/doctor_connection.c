// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Are this host's connections established? */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "doctor.h"

#define CHECK		"connection"
#define STUCK_MS	3000	/* longer than a server needs that answers */
#define ADVICE		"run rpcrdma doctor HOST with that server"

#define PEERS_MAX	32	/* that are told apart */

/* A server, connections to which are stuck */
struct peer {
	size_t count;
	char name[64];
	char state[32];		/* of the one that has been in it the longest */
	uint64_t age;
};

/* On the stack of doctor_connection() */
struct check {
	struct doctor *d;
	size_t count;
	struct peer peers[PEERS_MAX];
};

static void count_stuck(struct check *check, const struct doctor_connection *connection)
{
	struct peer *peer = check->peers, *end = peer + check->count;

	while (peer < end && strcmp(peer->name, connection->peer))
		peer++;
	if (peer == check->peers + PEERS_MAX)
		return;
	if (peer == end) {
		check->count++;
		snprintf(peer->name, sizeof(peer->name), "%s", connection->peer);
	}
	if (!peer->count++ || connection->age > peer->age) {
		peer->age = connection->age;
		snprintf(peer->state, sizeof(peer->state), "%s", connection->state);
	}
}

static void look_at(const struct doctor_connection *connection, void *data)
{
	struct check *check = data;
	struct doctor *d = check->d;
	struct doctor_connections *these = connection->client ? &d->clients : &d->servers;

	these->count++;
	these->established += connection->established;
	if (connection->established || connection->age < STUCK_MS)
		return;
	these->stuck++;
	/* One that a client has begun may be given up any time. */
	if (connection->client)
		count_stuck(check, connection);
}

static void report(struct doctor *d, const struct peer *peer)
{
	unsigned long long seconds = peer->age / 1000;

	if (peer->count == 1)
		doctor_add(d, CHECK, DOCTOR_WRONG, ADVICE, "the connection to %s is %s for %llu s",
			   peer->name, peer->state, seconds);
	else
		doctor_add(d, CHECK, DOCTOR_WRONG, ADVICE,
			   "%zu connections to %s are not established, the longest is %s for %llu s",
			   peer->count, peer->name, peer->state, seconds);
}

void doctor_connection(struct doctor *d)
{
	struct check check = { .d = d };
	int ret = d->kernel->connections(d, look_at, &check);
	size_t i;

	d->silent = ret == -ENOENT;
	if (d->silent)	/* what the check of the module has said */
		return;
	if (ret) {
		doctor_add(d, CHECK, DOCTOR_UNKNOWN,
			   "install rpcrdma-tools of the same version as the module",
			   "the state of connections cannot be read: %s", strerror(-ret));
		return;
	}
	for (i = 0; i < check.count; i++)
		report(d, &check.peers[i]);
	if (!d->clients.stuck)
		doctor_add(d, CHECK, DOCTOR_OK, NULL,
			   "%zu connections to servers and %zu of clients are established",
			   d->clients.established, d->servers.established);
}
