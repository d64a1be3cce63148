/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The argument HOST[:PORT] of commands */
#ifndef RPCRDMA_HOST_H
#define RPCRDMA_HOST_H

#include <netdb.h>
#include <stdbool.h>

#define HOST_PORT	"20049"		/* RFC 8267 */
/* For messages */
#define HOST_FORMS	"HOST is a name or an address, with :PORT from 1 to 65535 or without, " \
			"IPv6 with PORT in brackets"

struct host {
	char name[NI_MAXHOST];	/* or a numeric address, without brackets */
	char port[6];		/* decimal */
};

/**
 * host_parse - read HOST, HOST:PORT, an IPv6 address, [IPV6] or [IPV6]:PORT
 *
 * Return: false if @text is none of these, or not printable.
 */
bool host_parse(struct host *host, const char *text);

#endif
