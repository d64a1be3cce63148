// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The functions that the macros of trace.h define, and what only these use.
 */
#include "wire/message.h"

/* The form of a message. None of these: all of it is inline. */
enum {
	RPCRDMA_TRACE_LONG = 1,		/* Position Zero Read chunk */
	RPCRDMA_TRACE_READ = 2,		/* any other Read chunk */
	RPCRDMA_TRACE_WRITE = 4,		/* Write chunk: offered, or filled */
	RPCRDMA_TRACE_REPLY = 8,		/* Reply chunk: offered, or filled */
};

/* inline: without CONFIG_TRACEPOINTS nothing calls it. */
static inline unsigned int rpcrdma_trace_form(const struct rpcrdma_message *msg)
{
	bool zero = rpcrdma_position_zero(msg), call = msg->direction == RPCRDMA_CALL;
	unsigned int form = zero ? RPCRDMA_TRACE_LONG : 0, i;

	if (msg->num_reads > zero)
		form |= RPCRDMA_TRACE_READ;
	for (i = 0; i < msg->num_writes; i++)
		if (call || msg->write[i].written)
			form |= RPCRDMA_TRACE_WRITE;
	if (msg->has_reply_chunk && (call || msg->reply_chunk.written))
		form |= RPCRDMA_TRACE_REPLY;
	return form;
}

#define CREATE_TRACE_POINTS
#include "trace.h"
