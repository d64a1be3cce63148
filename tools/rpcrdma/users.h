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
 * @mounts: the users of a client's connections
 * @clients: the users of a server's connections
 *
 * What cannot be read is missing. users_free() frees it. A mount is known by its transport
 * switch, so xprt_switches_get() has to be called before; where the kernel does not tell that
 * (before 6.5), and an NFS client always, by the address of the other end alone.
 */
void users_get(bool mounts, bool clients);

void users_free(void);

/**
 * users_of - call a function for each user of some connections, once
 */
void users_of(const struct connections *connections,
	      void (*fn)(const char *name, void *data), void *data);

#endif
