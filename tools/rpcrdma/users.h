/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Who uses connections. Those of a client are used by mounts, named by their mount points, as
 * this process sees them. Those of a server are used by NFS clients, which name themselves from
 * version 4.0 on; nfsd tells it to root.
 */
#ifndef RPCRDMA_USERS_H
#define RPCRDMA_USERS_H

#include "connection.h"

/**
 * users_get - read what there is
 * @of_client: the mounts, which use a client's connections
 * @of_server: the NFS clients, which use a server's
 *
 * What cannot be read is missing. users_free() frees it. A mount is known by its transport
 * switch, so xprt_switches_get() has to be called before; where the kernel does not tell that
 * (before 6.5), and an NFS client always, by the address of the other end alone.
 */
void users_get(bool of_client, bool of_server);

void users_free(void);

/**
 * users_known - whether all that use a connection could be read, though there may be none
 */
bool users_known(const struct attrs *connection);

/**
 * users_of - call a function for each user of some connections, once
 * @connections: those of a server are all from one address
 */
void users_of(const struct connections *connections,
	      void (*fn)(const char *name, void *data), void *data);

#endif
