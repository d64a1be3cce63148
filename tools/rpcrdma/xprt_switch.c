// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <linux/rpcrdma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "sock.h"
#include "xprt_switch.h"

struct member {
	unsigned int xprt;
	int number;		/* of its switch */
};

static struct member *members;	/* in the order of their transports */
static size_t count;

static int compare(const void *a, const void *b)
{
	const struct member *one = a, *other = b;

	return (one->xprt > other->xprt) - (one->xprt < other->xprt);
}

void xprt_switches_get(void)
{
	char folder[PATH_MAX], pattern[PATH_MAX + 32];
	struct member member;
	glob_t paths = { };
	size_t i;

	snprintf(folder, sizeof(folder), "%s/sys/kernel/sunrpc/xprt-switches", sock_root());
	snprintf(pattern, sizeof(pattern), "%s/switch-*/xprt-*", folder);
	glob(pattern, GLOB_NOSORT, NULL, &paths);
	count = 0;
	members = calloc(paths.gl_pathc + 1, sizeof(*members));
	if (!members)
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
	for (i = 0; i < paths.gl_pathc; i++)
		if (sscanf(paths.gl_pathv[i] + strlen(folder), "/switch-%d/xprt-%u-",
			   &member.number, &member.xprt) == 2)
			members[count++] = member;
	globfree(&paths);
	qsort(members, count, sizeof(*members), compare);
}

void xprt_switches_free(void)
{
	free(members);
	members = NULL;
	count = 0;
}

int xprt_switch_of(const struct attrs *connection)
{
	const struct member key = {
		.xprt = attr_number(connection, RPCRDMA_A_CONNECTION_XPRT_ID),
	};
	const struct member *found = NULL;

	if (attr_has(connection, RPCRDMA_A_CONNECTION_XPRT_ID))
		found = bsearch(&key, members, count, sizeof(key), compare);
	return found ? found->number : -1;
}
