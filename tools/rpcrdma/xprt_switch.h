/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * sunrpc's transport switches. A switch has the transports of one NFS client, which are several
 * with nconnect or with trunking. With NFSv4.1 that is one session.
 */
#ifndef RPCRDMA_XPRT_SWITCH_H
#define RPCRDMA_XPRT_SWITCH_H

#include "attrs.h"

/**
 * xprt_switches_get - read which transports each switch has
 *
 * sysfs tells it, of the network namespace that it was mounted in. What cannot be read is
 * missing. xprt_switches_free() frees it.
 */
void xprt_switches_get(void);

void xprt_switches_free(void);

/**
 * xprt_switch_of - the number of a connection's switch
 *
 * Return: -1 if none is known. A server's connections have none.
 */
int xprt_switch_of(const struct attrs *connection);

#endif
