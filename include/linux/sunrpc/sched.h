/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef RPCRDMA_OVERLAY_LINUX_SUNRPC_SCHED_H
#define RPCRDMA_OVERLAY_LINUX_SUNRPC_SCHED_H

#include_next <linux/sunrpc/sched.h>

/* Before 6.16 no RPC fails because the network is gone. */
#ifndef RPC_TASK_NETUNREACH_FATAL
#define RPC_TASK_NETUNREACH_FATAL	0
#endif

#endif /* RPCRDMA_OVERLAY_LINUX_SUNRPC_SCHED_H */
