/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The credits of one connection (RFC 8166 section 3.3.1). sunrpc's congestion
 * window cannot stand for them: it forgets a Call when its task is killed,
 * while the server still owes the Reply, and it outlives a connection.
 */
#ifndef XPRT_RDMA_CREDITS_H
#define XPRT_RDMA_CREDITS_H

#include <linux/atomic.h>
#include <linux/minmax.h>

#include "../wire/message.h"

/**
 * struct xprt_rdma_credits - how many Calls may be outstanding
 * @in_flight: Calls sent and Replies not received
 * @orphaned: those of @in_flight whose tasks are gone
 * @posted: Replies that there are Receives for
 * @granted: the server's last word, at least one
 * @answered: there was one
 *
 * Part of an endpoint. @in_flight and @posted grow with XPRT_LOCKED held; the
 * others change in ->received, and @orphaned whenever a task goes.
 */
struct xprt_rdma_credits {
	atomic_t in_flight;
	atomic_t orphaned;
	u32 posted;
	u32 granted;
	bool answered;
};

/**
 * xprt_rdma_credits_init - before the first Reply
 * @credits: the credits of a new connection
 * @posted: Replies that it has Receives for
 */
static inline void xprt_rdma_credits_init(struct xprt_rdma_credits *credits,
					  u32 posted)
{
	atomic_set(&credits->in_flight, 0);
	atomic_set(&credits->orphaned, 0);
	credits->posted = posted;
	credits->granted = 1;
	credits->answered = false;
}

/**
 * xprt_rdma_credits_limit - how many Calls may be outstanding
 * @credits: the credits
 *
 * There has to be a Receive for the Reply to each of them (RFC 8166 section
 * 3.3.1), whatever the server grants.
 *
 * Return: as many, at least one.
 */
static inline u32
xprt_rdma_credits_limit(const struct xprt_rdma_credits *credits)
{
	return min(READ_ONCE(credits->granted), READ_ONCE(credits->posted));
}

/**
 * xprt_rdma_credits_slots - how many RPCs may be on their way
 * @credits: the credits
 *
 * One more than there are Receives for, if the server grants that: more are
 * made when its Call is to be sent. A task that waits for a slot does nothing.
 *
 * Return: as many, at least one.
 */
static inline u32
xprt_rdma_credits_slots(const struct xprt_rdma_credits *credits)
{
	return min(READ_ONCE(credits->granted),
		   READ_ONCE(credits->posted) + 1);
}

/**
 * xprt_rdma_credits_left - whether one more Call may be sent
 * @credits: the credits
 * @requested: what the Calls ask for
 *
 * Only the holder of XPRT_LOCKED uses up credits, so one that is left stays
 * there for it, unless the grant falls.
 *
 * Return: true if one may.
 */
static inline bool xprt_rdma_credits_left(struct xprt_rdma_credits *credits,
					  u32 requested)
{
	u32 limit = min(xprt_rdma_credits_limit(credits), requested);

	return (u32)atomic_read(&credits->in_flight) < limit;
}

/**
 * xprt_rdma_credits_to_post - how many Receives to have if they are what is short
 * @credits: the credits
 * @requested: what the Calls ask for
 *
 * Return: Replies to have Receives for; no more than there are now if it is the
 * grant that is used up.
 */
static inline u32
xprt_rdma_credits_to_post(const struct xprt_rdma_credits *credits,
			  u32 requested)
{
	return min3(READ_ONCE(credits->granted), requested,
		    2 * credits->posted);
}

/**
 * xprt_rdma_credits_posted - there are more Receives
 * @credits: the credits
 * @posted: Replies that these are for
 */
static inline void xprt_rdma_credits_posted(struct xprt_rdma_credits *credits,
					    u32 posted)
{
	WRITE_ONCE(credits->posted, posted);
}

/**
 * xprt_rdma_credits_take - a Call is being sent
 * @credits: the credits
 */
static inline void xprt_rdma_credits_take(struct xprt_rdma_credits *credits)
{
	atomic_inc(&credits->in_flight);
}

/**
 * xprt_rdma_credits_give - a Reply has arrived, or a Call was not sent
 * @credits: the credits
 *
 * Replies that nobody asked for give nothing.
 */
static inline void xprt_rdma_credits_give(struct xprt_rdma_credits *credits)
{
	atomic_dec_if_positive(&credits->in_flight);
}

/**
 * xprt_rdma_credits_orphan - the task of a Call is gone before the Reply
 * @credits: the credits
 *
 * The server still owes the Reply, so the Call keeps its credit.
 */
static inline void xprt_rdma_credits_orphan(struct xprt_rdma_credits *credits)
{
	atomic_inc(&credits->orphaned);
}

/**
 * xprt_rdma_credits_conclude - a Reply has arrived that no task waits for
 * @credits: the credits
 *
 * It may come just before xprt_rdma_credits_orphan().
 */
static inline void xprt_rdma_credits_conclude(struct xprt_rdma_credits *credits)
{
	atomic_dec(&credits->orphaned);
}

/**
 * xprt_rdma_credits_wedged - whether Calls without a task have all credits
 * @credits: the credits
 * @requested: what the Calls ask for
 *
 * Servers may drop a Call, for instance the repetition of one that they are
 * still executing. The time-out of its task would end the connection; but here
 * there is none, and all other tasks wait to send. If it is Receives that are
 * short, more may be made yet.
 *
 * Return: true if nobody can send until a Reply comes that may never come.
 */
static inline bool
xprt_rdma_credits_wedged(const struct xprt_rdma_credits *credits, u32 requested)
{
	int limit = min(READ_ONCE(credits->granted), requested);

	return atomic_read(&credits->in_flight) >= limit &&
	       atomic_read(&credits->orphaned) >= limit;
}

/**
 * xprt_rdma_credits_overdue - whether a Call is taken for one that was dropped
 * @credits: the credits of the connection it was sent by
 * @waited: since it was sent, in jiffies
 * @minor: the first time-out of its task, in jiffies
 * @major: whether a major time-out is over
 *
 * Asked when a time-out is over of a task that waits for as long as the
 * connection lasts. Nothing tells a Call that was dropped from one that takes
 * long, so the server has until a major time-out. If it has answered nothing by
 * this connection, the Call has the only credit, and all other tasks wait for
 * it: then the first time-out is enough. sunrpc does not count anew when it
 * sends the Call again, hence @waited.
 *
 * Return: true if another connection is to take it.
 */
static inline bool
xprt_rdma_credits_overdue(const struct xprt_rdma_credits *credits,
			  unsigned long waited, unsigned long minor, bool major)
{
	return waited >= minor && (major || !READ_ONCE(credits->answered));
}

/**
 * xprt_rdma_credits_freed_by - whether a message that is dropped gives one back
 * @msg: the message, for which the decoder's verdict was RPCRDMA_DROP
 * @backward: whether backward Calls are expected
 *
 * A Reply with a bad header has to be discarded (RFC 8166 section 4.5), and
 * what it grants is not to be believed. But the server is done with some Call,
 * and has posted the Receive of that again. A credit kept for it would be lost
 * as long as the connection lasts. What does not tell its direction is a Reply
 * where nothing else is expected. Where it may be a backward Call as well, the
 * credit is kept: with one too many the server would get a Call that it has no
 * Receive for. If it was a Reply, its RPC times out, and that ends the connection.
 *
 * Return: true if it does; not for what never answers a Call.
 */
static inline bool xprt_rdma_credits_freed_by(const struct rpcrdma_message *msg,
					      bool backward)
{
	if (msg->reason == RPCRDMA_BAD_DIRECTION ||
	    msg->reason == RPCRDMA_BAD_DONE)
		return false;
	return msg->direction == RPCRDMA_REPLY || !backward;
}

/**
 * xprt_rdma_credits_grant - take notice of what a Reply grants
 * @credits: the credits
 * @granted: rdma_credit; zero, which no server may send, counts as one
 *
 * Return: whether this is news.
 */
static inline bool xprt_rdma_credits_grant(struct xprt_rdma_credits *credits,
					   u32 granted)
{
	granted = max(granted, 1U);
	if (credits->answered && granted == credits->granted)
		return false;
	WRITE_ONCE(credits->granted, granted);
	WRITE_ONCE(credits->answered, true);
	return true;
}

#endif /* XPRT_RDMA_CREDITS_H */
