// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * /proc/sys/sunrpc/svc_rdma: what an administrator of a server may set, and
 * what has happened. A connection keeps the settings that it was made with.
 */
#include <linux/sysctl.h>

#include "server_private.h"

/* Also in admin-guide.rst, where Receives are counted, and in scenarios/admin.sh */
#define SVCRDMA_DEFAULT_REQUESTS	64

unsigned int svcrdma_max_requests = SVCRDMA_DEFAULT_REQUESTS;
unsigned int svcrdma_max_bc_requests = 8;
unsigned int svcrdma_max_req_size = 16384;
unsigned int svcrdma_max_reads = 32;
unsigned int svcrdma_private_data = 1;
unsigned int svcrdma_remote_invalidation = 1;
atomic_long_t svcrdma_counters[SVCRDMA_STAT_COUNT];

static unsigned int svcrdma_requests_min = 4;
static unsigned int svcrdma_requests_max = 16384;
static unsigned int svcrdma_bc_requests_min = 2;
static unsigned int svcrdma_bc_requests_max = 1024;
static unsigned int svcrdma_req_size_min = RPCRDMA_INLINE_MIN;
static unsigned int svcrdma_req_size_max = 65536;
static unsigned int svcrdma_reads_min = 1;
/* A larger number would have no effect: the connection has a limit of its own. */
static unsigned int svcrdma_reads_max = RPCRDMA_READS_MAX;
static unsigned int svcrdma_off;
static unsigned int svcrdma_on = 1;

#define SVCRDMA_SETTING(name, variable, least, most)			\
	{								\
		.procname	= name,					\
		.data		= &(variable),				\
		.maxlen		= sizeof(unsigned int),			\
		.mode		= 0644,					\
		.proc_handler	= proc_douintvec_minmax,		\
		.extra1		= &(least),				\
		.extra2		= &(most),				\
	}

#define SVCRDMA_COUNTER(name, which)					\
	{								\
		.procname	= "rdma_stat_" name,			\
		.data		= &svcrdma_counters[which].counter,	\
		.maxlen		= sizeof(long),				\
		.mode		= 0444,					\
		.proc_handler	= proc_doulongvec_minmax,		\
	}

static struct ctl_table svcrdma_table[] = {
	SVCRDMA_SETTING("max_requests", svcrdma_max_requests,
			svcrdma_requests_min, svcrdma_requests_max),
	SVCRDMA_SETTING("max_bc_requests", svcrdma_max_bc_requests,
			svcrdma_bc_requests_min, svcrdma_bc_requests_max),
	SVCRDMA_SETTING("max_req_size", svcrdma_max_req_size,
			svcrdma_req_size_min, svcrdma_req_size_max),
	SVCRDMA_SETTING("max_outbound_read_requests", svcrdma_max_reads,
			svcrdma_reads_min, svcrdma_reads_max),
	SVCRDMA_SETTING("private_data", svcrdma_private_data,
			svcrdma_off, svcrdma_on),
	SVCRDMA_SETTING("remote_invalidation", svcrdma_remote_invalidation,
			svcrdma_off, svcrdma_on),
	SVCRDMA_COUNTER("recv", SVCRDMA_STAT_RECV),
	SVCRDMA_COUNTER("read", SVCRDMA_STAT_READ),
	SVCRDMA_COUNTER("write", SVCRDMA_STAT_WRITE),
	SVCRDMA_COUNTER("sq_starve", SVCRDMA_STAT_SQ_STARVE),
	SVCRDMA_COUNTER("dropped", SVCRDMA_STAT_DROPPED),
	SVCRDMA_COUNTER("errors", SVCRDMA_STAT_ERRORS),
};

static struct ctl_table_header *svcrdma_table_header;

/**
 * svcrdma_sysctl_init - make the settings and counters visible
 *
 * Return: 0 or -ENOMEM.
 */
int svcrdma_sysctl_init(void)
{
	if (!IS_ENABLED(CONFIG_SYSCTL))
		return 0;
	svcrdma_table_header = register_sysctl("sunrpc/svc_rdma",
					       svcrdma_table);
	return svcrdma_table_header ? 0 : -ENOMEM;
}

/**
 * svcrdma_sysctl_exit - undo svcrdma_sysctl_init()
 */
void svcrdma_sysctl_exit(void)
{
	unregister_sysctl_table(svcrdma_table_header);
}
