/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The credits of one connection (RFC 8166 section 3.3.1). sunrpc's congestion window
 * cannot count them: it forgets a Call whose task is killed, although the server still
 * owes the Reply, and it outlives the connection.
 */
#ifndef XPRT_RDMA_CREDITS_H
#define XPRT_RDMA_CREDITS_H

#include <linux/atomic.h>
#include <linux/minmax.h>

#include "../wire/message.h"

/**
 * struct xprt_rdma_credits - how many Calls may be outstanding
 * @in_flight: Calls sent whose Reply has not been received
 * @orphaned: those of @in_flight whose tasks have gone. The server still owes the Reply, so
 *	they keep their credits. Less than zero: briefly if the Reply arrives first, and for good
 *	if a server sends Replies that answer nothing.
 * @receives: Replies that there are Receives for
 * @granted: the last grant, never zero, and no more than the client asks for; one before the
 *	first Reply
 * @granted_any: the server has granted something
 *
 * Part of an endpoint. XPRT_LOCKED is held when @in_flight grows or @receives changes.
 * @granted and @granted_any change in ->received. @in_flight falls and @orphaned changes
 * without a lock.
 */
struct xprt_rdma_credits {
	atomic_t in_flight;
	atomic_t orphaned;
	u32 receives;
	u32 granted;
	bool granted_any;
};

static inline void xprt_rdma_credits_init(struct xprt_rdma_credits *credits, u32 receives)
{
	*credits = (struct xprt_rdma_credits){ .receives = receives, .granted = 1 };
}

/*
 * How many RPCs may have a slot: as many as are granted, but at most one more than there are
 * Receives for. That one makes more Receives when it sends: a task without a slot never does.
 */
static inline u32 xprt_rdma_credits_slots(const struct xprt_rdma_credits *credits)
{
	return min(READ_ONCE(credits->granted), READ_ONCE(credits->receives) + 1);
}

/*
 * Whether one more Call may be sent. Whatever the server grants, each Call needs a Receive for its
 * Reply (RFC 8166 section 3.3.1). Only the holder of XPRT_LOCKED takes credits: what it finds left
 * stays left, unless the grant falls.
 */
static inline bool xprt_rdma_credits_left(struct xprt_rdma_credits *credits)
{
	u32 limit = min(READ_ONCE(credits->granted), READ_ONCE(credits->receives));

	return (u32)atomic_read(&credits->in_flight) < limit;
}

/*
 * How many Receives there should be: twice as many as now, but no more than can be used. The
 * result may be less than there are.
 */
static inline u32 xprt_rdma_credits_to_post(const struct xprt_rdma_credits *credits)
{
	return min(READ_ONCE(credits->granted), 2 * credits->receives);
}

/* A Reply has arrived, or a Call was not sent. A Reply too many gives nothing. */
static inline void xprt_rdma_credits_give(struct xprt_rdma_credits *credits)
{
	atomic_dec_if_positive(&credits->in_flight);
}

/*
 * Whether orphaned Calls hold all credits, so that nothing can be sent before Replies that may
 * never come: servers may drop a Call, for instance the repetition of one that they are still
 * executing. An orphaned Call has no task whose time-out would close the connection, and all
 * other tasks wait to send. A lack of Receives does not count: more can be made.
 */
static inline bool xprt_rdma_credits_wedged(const struct xprt_rdma_credits *credits)
{
	int in_flight = atomic_read(&credits->in_flight);

	/* More than the grant may be in flight, if that has fallen. */
	return in_flight >= READ_ONCE(credits->granted) &&
	       atomic_read(&credits->orphaned) >= in_flight;
}

/*
 * Whether to assume that the server has dropped a Call whose task sunrpc lets wait as long as the
 * connection lasts. Nothing tells a dropped Call from a slow one, so the server has until the
 * @major time-out is over. If it has answered nothing on this connection, the Call has the only
 * credit, and all other tasks wait for it: then the first time-out, @minor, is enough. sunrpc does
 * not restart the time-outs when it sends a Call again. So the Call must also have @waited on this
 * connection for @minor at least.
 */
static inline bool xprt_rdma_credits_overdue(const struct xprt_rdma_credits *credits,
					     unsigned long waited, unsigned long minor, bool major)
{
	return waited >= minor && (major || !READ_ONCE(credits->granted_any));
}

/*
 * Whether a message with the verdict RPCRDMA_DROP gives a credit back. A Reply with a bad header
 * has to be discarded (RFC 8166 section 4.5), and its grant with it. But the server is done with
 * some Call and has a Receive for another one. If its credit were kept, it would be lost for the
 * rest of the connection.
 *
 * A message of unknown direction is a Reply if @backward Calls are not expected. If they are, it
 * may be such a Call, and no credit is given back: with one too many the client would send a Call
 * that the server has no Receive for. If it was a Reply after all, its RPC times out, and that
 * closes the connection.
 */
static inline bool xprt_rdma_credits_freed_by(const struct rpcrdma_message *msg, bool backward)
{
	if (msg->reason == RPCRDMA_BAD_DIRECTION || msg->reason == RPCRDMA_BAD_DONE ||
	    msg->reason == RPCRDMA_BAD_OPTION)
		return false;
	return msg->direction == RPCRDMA_REPLY || !backward;
}

/*
 * Note what a Reply grants. Zero, which no server may send, counts as one, and more than the @most
 * that the client asks for as that. Return: true if the grant has changed, or if this is the first
 * one.
 */
static inline bool xprt_rdma_credits_grant(struct xprt_rdma_credits *credits, u32 granted, u32 most)
{
	granted = clamp(granted, 1U, most);
	if (credits->granted_any && granted == credits->granted)
		return false;
	WRITE_ONCE(credits->granted, granted);
	WRITE_ONCE(credits->granted_any, true);
	return true;
}

#endif /* XPRT_RDMA_CREDITS_H */
