/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which version of RPC-over-RDMA a connection uses (draft 6). The rest of client/ does
 * not ask which version it is.
 *
 *	 OPEN	several versions are possible, and no Call is outstanding
 *	  |  a Call is about to be sent: the first one, in the highest version
 *	  v
 *	ASKED	the Call is outstanding, and no other may be sent
 *	  |  a Reply that is no error
 *	  |--------------------------> SETTLED on the version that was offered
 *	  |  the server refuses the version
 *	  |--------------------------> SETTLED on a lower one; the Call is sent again
 *	  |  the Call was not sent, or an error that ends its RPC
 *	  |--------------------------> OPEN
 *	  |  no answer in time
 *	  '--------------------------> LOST: the connection is being closed
 *
 * OPEN changes to SETTLED on version 1 if the first Call cannot be as short as it has to
 * be. A connection that offers version 1 alone is SETTLED from the beginning.
 *
 * The sender, ->received and the timer may try to leave ASKED at the same time. One of
 * them changes the state and goes on; the others do nothing.
 */
#ifndef XPRT_RDMA_VERSION_H
#define XPRT_RDMA_VERSION_H

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/errno.h>

#include "../wire/message.h"

enum xprt_rdma_version_state {
	XPRT_RDMA_VERSION_OPEN,
	XPRT_RDMA_VERSION_ASKED,
	XPRT_RDMA_VERSION_SETTLED,
	XPRT_RDMA_VERSION_LOST,
};

/* What to do with a Reply or an RDMA_ERROR */
enum xprt_rdma_version_verdict {
	XPRT_RDMA_VERSION_DROP,		/* it answers no Call of this connection */
	XPRT_RDMA_VERSION_TAKE,		/* it answers a Call */
	XPRT_RDMA_VERSION_AGREED,	/* the same, and it has settled the version */
	XPRT_RDMA_VERSION_REFUSED,	/* send the first Call again, in the version settled */
	XPRT_RDMA_VERSION_FAILED,	/* it ends the RPC, and the version remains open */
};

/**
 * struct xprt_rdma_version - the version of a connection
 * @offered: the highest version that the client uses on it; constant
 * @settled: the version of all Calls, or zero while that is open
 * @header_min: octets of a header without chunks, in the version of the next Call
 * @call_threshold: octets that may be sent inline with the next Call
 * @reply_threshold: octets that may be received inline with its Reply
 * @names_handle: Calls of version 2 name a handle that the Reply may invalidate; constant
 * @refused: the server has refused a version, and has not answered since
 * @xid: of the Call that asked last
 * @state: enum xprt_rdma_version_state
 * @agreement: the connection's; set when it is established
 *
 * Part of an endpoint. Whoever changes @state to SETTLED then writes the members from
 * @settled to @reply_threshold, @settled last. Only the holder of XPRT_LOCKED leaves OPEN.
 * ->received writes @refused.
 */
struct xprt_rdma_version {
	u32 offered;
	u32 settled;
	u32 header_min;
	u32 call_threshold;
	u32 reply_threshold;
	bool names_handle;
	bool refused;
	__be32 xid;
	atomic_t state;
	const struct rpcrdma_agreement *agreement;
};

/**
 * xprt_rdma_version_init - set up the version of a new connection
 * @version: the version
 * @offered: the highest version that may be used
 * @remote_inv: Calls may let their Replies invalidate a handle
 *
 * Context: nobody else uses @version.
 */
static inline void xprt_rdma_version_init(struct xprt_rdma_version *version, u32 offered,
					  bool remote_inv)
{
	bool open = offered != RPCRDMA_VERSION_ONE;

	*version = (struct xprt_rdma_version){
		.offered	= offered,
		.settled	= open ? 0 : offered,
		.names_handle	= open && remote_inv,
		.state		= ATOMIC_INIT(open ? XPRT_RDMA_VERSION_OPEN :
						     XPRT_RDMA_VERSION_SETTLED),
	};
}

static inline void xprt_rdma_version_use(struct xprt_rdma_version *version, u32 used)
{
	const struct rpcrdma_agreement *agreement = version->agreement;

	version->header_min = rpcrdma_wire_header_min(used);
	version->call_threshold = rpcrdma_wire_threshold(used, agreement->call_threshold);
	version->reply_threshold = rpcrdma_wire_threshold(used, agreement->reply_threshold);
}

/**
 * xprt_rdma_version_is_negotiated - whether more than version 1 is offered
 * @version: the version
 *
 * Context: any.
 * Return: false if the version is 1 from the beginning.
 */
static inline bool xprt_rdma_version_is_negotiated(const struct xprt_rdma_version *version)
{
	return version->offered != RPCRDMA_VERSION_ONE;
}

/**
 * xprt_rdma_version_begin - set the thresholds of a connection that is established
 * @version: its version
 * @agreement: what both ends have agreed on by RFC 8797; valid as long as @version
 *
 * The first message may be no longer than version 1's default (draft 6), whatever was
 * agreed on. Its Reply may be as long as version 1 allows.
 *
 * Context: ->established.
 */
static inline void xprt_rdma_version_begin(struct xprt_rdma_version *version,
					   const struct rpcrdma_agreement *agreement)
{
	version->agreement = agreement;
	xprt_rdma_version_use(version, version->offered);
	if (!version->settled) {
		version->call_threshold = RPCRDMA_INLINE_MIN;
		version->reply_threshold = agreement->reply_threshold;
	}
}

/**
 * xprt_rdma_version_settled - the version of the next Call
 * @version: the version
 *
 * A caller that gets a version also sees its thresholds.
 *
 * Context: any.
 * Return: the version, or zero if the next Call has to ask.
 */
static inline u32 xprt_rdma_version_settled(const struct xprt_rdma_version *version)
{
	/* Pairs with the release in xprt_rdma_version_settle(). */
	return smp_load_acquire(&version->settled);
}

static inline bool xprt_rdma_version_change(struct xprt_rdma_version *version,
					    enum xprt_rdma_version_state from,
					    enum xprt_rdma_version_state to)
{
	return atomic_cmpxchg(&version->state, from, to) == from;
}

static inline bool xprt_rdma_version_settle(struct xprt_rdma_version *version,
					    enum xprt_rdma_version_state from, u32 used)
{
	if (!xprt_rdma_version_change(version, from, XPRT_RDMA_VERSION_SETTLED))
		return false;
	xprt_rdma_version_use(version, used);
	/* Pairs with the acquire in xprt_rdma_version_settled(). */
	smp_store_release(&version->settled, used);
	return true;
}

/**
 * xprt_rdma_version_ask - a Call of the version that is offered is about to be sent
 * @version: a version that is not settled
 * @xid: of the Call
 *
 * Context: XPRT_LOCKED is held.
 * Return: false if it may not be sent now.
 */
static inline bool xprt_rdma_version_ask(struct xprt_rdma_version *version, __be32 xid)
{
	if (atomic_read(&version->state) != XPRT_RDMA_VERSION_OPEN)
		return false;
	version->xid = xid;
	return xprt_rdma_version_change(version, XPRT_RDMA_VERSION_OPEN,
					XPRT_RDMA_VERSION_ASKED);
}

/**
 * xprt_rdma_version_unask - undo xprt_rdma_version_ask(): the next Call asks
 * @version: the version
 *
 * The Call was not sent, or has got an answer that says nothing about the version.
 *
 * Context: XPRT_LOCKED is held, or ->received.
 */
static inline void xprt_rdma_version_unask(struct xprt_rdma_version *version)
{
	xprt_rdma_version_change(version, XPRT_RDMA_VERSION_ASKED, XPRT_RDMA_VERSION_OPEN);
}

/**
 * xprt_rdma_version_decline - use version 1 without asking
 * @version: the version
 *
 * Context: XPRT_LOCKED is held.
 * Return: true if version 1 was settled by this, false if the version was not open.
 */
static inline bool xprt_rdma_version_decline(struct xprt_rdma_version *version)
{
	return xprt_rdma_version_settle(version, XPRT_RDMA_VERSION_OPEN, RPCRDMA_VERSION_ONE);
}

/*
 * The version to use after an RDMA_ERROR that answers the first Call; zero: the error ends
 * the RPC. A server that cannot read the Call does not have the version that was offered:
 * it may have a later draft, whose number is the same. It has not executed the Call.
 * CANT_REPLY shows that the server has read the Call.
 */
static inline u32 xprt_rdma_version_lower(const struct xprt_rdma_version *version,
					  const struct rpcrdma_message *msg)
{
	switch (msg->error) {
	case RPCRDMA_ERR_VERS:
		return rpcrdma_wire_lower_version(msg, version->offered);
	case RPCRDMA_ERR_CANT_REPLY:
		return 0;
	default:
		return version->offered - 1;
	}
}

static inline enum xprt_rdma_version_verdict
xprt_rdma_version_judge_error(struct xprt_rdma_version *version,
			      const struct rpcrdma_message *msg)
{
	u32 lower = xprt_rdma_version_lower(version, msg);

	if (!lower) {
		xprt_rdma_version_unask(version);
		return XPRT_RDMA_VERSION_FAILED;
	}
	/* The connection is being closed, so the Call will be sent on the next one. */
	if (!xprt_rdma_version_settle(version, XPRT_RDMA_VERSION_ASKED, lower))
		return XPRT_RDMA_VERSION_DROP;
	version->refused = true;
	return XPRT_RDMA_VERSION_REFUSED;
}

/**
 * xprt_rdma_version_judge - what a Reply says about the version
 * @version: the version of a connection that offers more than version 1
 * @msg: a decoded Reply or RDMA_ERROR
 *
 * Implements draft 6.1 to 6.3. A Reply has the version of its Call. Only an RDMA_ERROR
 * that answers the first Call may have any version: not all servers copy the field.
 *
 * Context: ->received.
 * Return: what to do with @msg.
 */
static inline enum xprt_rdma_version_verdict
xprt_rdma_version_judge(struct xprt_rdma_version *version, const struct rpcrdma_message *msg)
{
	u32 settled = READ_ONCE(version->settled);
	int state;

	if (settled) {
		if (msg->version != settled)
			return XPRT_RDMA_VERSION_DROP;
		version->refused = false;
		return XPRT_RDMA_VERSION_TAKE;
	}
	/* Pairs with the full barrier of xprt_rdma_version_ask(), which wrote @xid before. */
	state = atomic_read_acquire(&version->state);
	if ((state != XPRT_RDMA_VERSION_ASKED && state != XPRT_RDMA_VERSION_LOST) ||
	    msg->xid != version->xid)
		return XPRT_RDMA_VERSION_DROP;
	if (msg->proc == RPCRDMA_ERROR)
		return xprt_rdma_version_judge_error(version, msg);
	if (msg->version != version->offered)
		return XPRT_RDMA_VERSION_DROP;
	return xprt_rdma_version_settle(version, XPRT_RDMA_VERSION_ASKED, version->offered) ?
	       XPRT_RDMA_VERSION_AGREED : XPRT_RDMA_VERSION_TAKE;
}

/**
 * xprt_rdma_version_time_out - the first Call has waited long enough
 * @version: the version
 *
 * Implements draft 6.2.
 *
 * Context: any.
 * Return: true if the connection has to be closed; false if the Call was answered.
 */
static inline bool xprt_rdma_version_time_out(struct xprt_rdma_version *version)
{
	return xprt_rdma_version_change(version, XPRT_RDMA_VERSION_ASKED,
					XPRT_RDMA_VERSION_LOST);
}

/**
 * xprt_rdma_version_is_lost - whether the end of a connection shows a server of version 1
 * @version: the version of the connection
 * @status: why it was closed
 *
 * Implements draft 6.2. It does if the first message got no answer, or if the connection
 * ended after a refusal and before the next answer. If this host closed the connection
 * or lost its device, that says nothing about the server.
 *
 * Context: ->closed.
 * Return: true if the next connection should use version 1.
 */
static inline bool xprt_rdma_version_is_lost(const struct xprt_rdma_version *version, int status)
{
	int state = atomic_read(&version->state);

	if (state == XPRT_RDMA_VERSION_LOST)
		return true;
	if (status == -ESHUTDOWN || status == -ENODEV)
		return false;
	return state == XPRT_RDMA_VERSION_ASKED || version->refused;
}

/**
 * xprt_rdma_version_may_invalidate - whether a Reply may invalidate a handle
 * @version: the version of a connection that is established
 *
 * In version 1 only what the client announced counts: the kernel's own server does not
 * announce that it invalidates. In version 2 each Call with a handle names one.
 *
 * Context: any.
 * Return: true if the server may invalidate a handle of a Call that has any.
 */
static inline bool xprt_rdma_version_may_invalidate(const struct xprt_rdma_version *version)
{
	return READ_ONCE(version->settled) == RPCRDMA_VERSION_ONE ?
	       version->agreement->client_inv : version->names_handle;
}

#endif /* XPRT_RDMA_VERSION_H */
