// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Are this host's connections established? */

#include <errno.h>
#include <string.h>

#include "doctor.h"

#define CHECK		"connection"
#define STUCK_MS	3000	/* longer than a server needs that answers */

static void check(const struct doctor_connection *connection, void *data)
{
	struct doctor *d = data;
	struct doctor_connections *these = connection->client ? &d->clients : &d->servers;

	these->count++;
	these->established += connection->established;
	if (connection->established || connection->age < STUCK_MS)
		return;
	these->stuck++;
	/* One that a client has begun may be given up any time. */
	if (connection->client)
		doctor_add(d, CHECK, DOCTOR_WRONG, "run rpcrdma doctor HOST with that server",
			   "the connection to %s is %s for %llu s", connection->peer,
			   connection->state, (unsigned long long)connection->age / 1000);
}

void doctor_connection(struct doctor *d)
{
	int ret = d->kernel->connections(d, check, d);

	d->silent = ret == -ENOENT;
	if (d->silent)	/* what the check of the module has said */
		return;
	if (ret)
		doctor_add(d, CHECK, DOCTOR_UNKNOWN,
			   "install rpcrdma-tools of the same version as the module",
			   "the state of connections cannot be read: %s", strerror(-ret));
	else if (!d->clients.stuck)
		doctor_add(d, CHECK, DOCTOR_OK, NULL,
			   "%zu connections to servers and %zu of clients are established",
			   d->clients.established, d->servers.established);
}
