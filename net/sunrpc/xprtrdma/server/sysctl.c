// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * /proc/sys/sunrpc/svc_rdma: settings for the administrator of a server, and
 * counters. A connection keeps the settings that it was made with.
 */
#include "server_private.h"
#include "../sysctl.h"

/* scenarios/admin.sh repeats this; admin-guide.rst has the Receives that follow from it. */
#define SVCRDMA_DEFAULT_REQUESTS	64

unsigned int svcrdma_max_requests = SVCRDMA_DEFAULT_REQUESTS;
unsigned int svcrdma_max_bc_requests = 8;
unsigned int svcrdma_max_req_size = 16384;
unsigned int svcrdma_max_reads = 32;
unsigned int svcrdma_private_data = 1;
unsigned int svcrdma_remote_invalidation = 1;
unsigned int svcrdma_version_max = RPCRDMA_VERSION_ONE;
unsigned int svcrdma_shared_receives;
atomic_long_t svcrdma_counters[SVCRDMA_STAT_COUNT];
static unsigned int svcrdma_no_count;

/* Zero is all that can be written to a counter. */
#define SVCRDMA_COUNTER(name, which)					\
	{								\
		.procname	= "rdma_stat_" name,			\
		.data		= &svcrdma_counters[which].counter,	\
		.maxlen		= sizeof(long),				\
		.mode		= 0644,					\
		.proc_handler	= proc_doulongvec_minmax,		\
		.extra2		= &(unsigned long){ 0 },		\
	}

static struct ctl_table svcrdma_table[] = {
	RPCRDMA_SETTING("max_requests", svcrdma_max_requests, 4, 16384),
	RPCRDMA_SETTING("max_bc_requests", svcrdma_max_bc_requests, 2, 1024),
	RPCRDMA_SETTING("max_req_size", svcrdma_max_req_size, RPCRDMA_INLINE_MIN, 65536),
	/* A connection has RPCRDMA_READS_MAX RDMA Reads at most. */
	RPCRDMA_SETTING("max_outbound_read_requests", svcrdma_max_reads, 1, 255),
	RPCRDMA_SETTING("private_data", svcrdma_private_data, 0, 1),
	RPCRDMA_SETTING("remote_invalidation", svcrdma_remote_invalidation, 0, 1),
	RPCRDMA_SETTING("version", svcrdma_version_max, RPCRDMA_VERSION_ONE, RPCRDMA_VERSION_MAX),
	RPCRDMA_SETTING("shared_receives", svcrdma_shared_receives, 0, 65536),
	SVCRDMA_COUNTER("recv", SVCRDMA_STAT_RECV),
	SVCRDMA_COUNTER("read", SVCRDMA_STAT_READ),
	SVCRDMA_COUNTER("write", SVCRDMA_STAT_WRITE),
	SVCRDMA_COUNTER("sq_starve", SVCRDMA_STAT_SQ_STARVE),
	SVCRDMA_COUNTER("dropped", SVCRDMA_STAT_DROPPED),
	SVCRDMA_COUNTER("errors", SVCRDMA_STAT_ERRORS),
	/* The kernel's own module has these, and counts nothing in them. */
	RPCRDMA_SETTING("rdma_stat_rq_poll", svcrdma_no_count, 0, 0),
	RPCRDMA_SETTING("rdma_stat_rq_prod", svcrdma_no_count, 0, 0),
	RPCRDMA_SETTING("rdma_stat_rq_starve", svcrdma_no_count, 0, 0),
	RPCRDMA_SETTING("rdma_stat_sq_poll", svcrdma_no_count, 0, 0),
	RPCRDMA_SETTING("rdma_stat_sq_prod", svcrdma_no_count, 0, 0),
};

/* Return: for unregister_sysctl_table(); NULL without memory. */
struct ctl_table_header *svcrdma_sysctl_register(void)
{
	return register_sysctl("sunrpc/svc_rdma", svcrdma_table);
}
