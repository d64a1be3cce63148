// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * /proc/sys/sunrpc/svc_rdma: what an administrator of a server may set, and
 * what has happened. A connection keeps the settings that it was made with.
 */
#include <linux/sysctl.h>

#include "server_private.h"

/* Also in admin-guide.rst, where Receives are counted, and in scenarios/admin.sh */
#define DEFAULT_REQUESTS	64

unsigned int rpcrdma_max_requests = DEFAULT_REQUESTS;
unsigned int rpcrdma_max_bc_requests = 8;
unsigned int rpcrdma_max_req_size = 16384;
unsigned int rpcrdma_max_reads = 32;
unsigned int rpcrdma_server_private_data = 1;
unsigned int rpcrdma_server_remote_invalidation = 1;
atomic_long_t rpcrdma_server_count[RPCRDMA_STAT_COUNT];

static unsigned int min_requests = 4;
static unsigned int most_requests = 16384;
static unsigned int min_bc_requests = 2;
static unsigned int most_bc_requests = 1024;
static unsigned int min_req_size = RPCRDMA_INLINE_MIN;
static unsigned int most_req_size = 65536;
static unsigned int min_reads = 1;
/* A larger number would have no effect: the connection has a limit of its own. */
static unsigned int most_reads = RPCRDMA_READS_MAX;
static unsigned int off;
static unsigned int on = 1;

#define SETTING(name, variable, least, most)				\
	{								\
		.procname	= name,					\
		.data		= &(variable),				\
		.maxlen		= sizeof(unsigned int),			\
		.mode		= 0644,					\
		.proc_handler	= proc_douintvec_minmax,		\
		.extra1		= &(least),				\
		.extra2		= &(most),				\
	}

#define COUNTER(name, which)						\
	{								\
		.procname	= "rdma_stat_" name,			\
		.data		= &rpcrdma_server_count[which].counter,	\
		.maxlen		= sizeof(long),				\
		.mode		= 0444,					\
		.proc_handler	= proc_doulongvec_minmax,		\
	}

static struct ctl_table server_table[] = {
	SETTING("max_requests", rpcrdma_max_requests,
		min_requests, most_requests),
	SETTING("max_bc_requests", rpcrdma_max_bc_requests,
		min_bc_requests, most_bc_requests),
	SETTING("max_req_size", rpcrdma_max_req_size,
		min_req_size, most_req_size),
	SETTING("max_outbound_read_requests", rpcrdma_max_reads,
		min_reads, most_reads),
	SETTING("private_data", rpcrdma_server_private_data, off, on),
	SETTING("remote_invalidation", rpcrdma_server_remote_invalidation,
		off, on),
	COUNTER("recv", RPCRDMA_STAT_RECV),
	COUNTER("read", RPCRDMA_STAT_READ),
	COUNTER("write", RPCRDMA_STAT_WRITE),
	COUNTER("sq_starve", RPCRDMA_STAT_SQ_STARVE),
	COUNTER("dropped", RPCRDMA_STAT_DROPPED),
	COUNTER("errors", RPCRDMA_STAT_ERRORS),
};

static struct ctl_table_header *server_table_header;

/**
 * rpcrdma_server_sysctl_init - make the settings and counters visible
 *
 * Return: 0 or -ENOMEM.
 */
int rpcrdma_server_sysctl_init(void)
{
	if (!IS_ENABLED(CONFIG_SYSCTL))
		return 0;
	server_table_header = register_sysctl("sunrpc/svc_rdma", server_table);
	return server_table_header ? 0 : -ENOMEM;
}

/**
 * rpcrdma_server_sysctl_exit - undo rpcrdma_server_sysctl_init()
 */
void rpcrdma_server_sysctl_exit(void)
{
	unregister_sysctl_table(server_table_header);
}
