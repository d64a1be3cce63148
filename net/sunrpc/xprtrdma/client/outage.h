/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How long there has been no device or no route that leads to the server. Both may come back
 * after seconds, for instance when a driver resets its device, so an RPC waits for them. One
 * that shall fail without a network (the mount option fatal_neterrors) does so when they have
 * been missing for XPRT_RDMA_OUTAGE_MAX.
 */
#ifndef XPRT_RDMA_OUTAGE_H
#define XPRT_RDMA_OUTAGE_H

#include <linux/errno.h>
#include <linux/types.h>

/* After so many seconds without a device the network counts as gone. */
#define XPRT_RDMA_OUTAGE_MAX	60

/*
 * If so many seconds are between two attempts to connect, the device may have been there.
 * Longer than sunrpc and XPRT_RDMA_MAX_RECONNECT_DELAY wait between attempts.
 */
#define XPRT_RDMA_OUTAGE_GAP	60

/**
 * struct xprt_rdma_outage - the attempts to connect that found no device
 * @on: the last attempt found none
 * @since: when the first of them ended, in seconds; valid if @on
 * @last: when the last one ended, in seconds; valid if @on
 *
 * Part of a client; XPRT_LOCKED.
 */
struct xprt_rdma_outage {
	bool on;
	time64_t since;
	time64_t last;
};

/**
 * xprt_rdma_outage_note - note how an attempt to connect has ended
 * @outage: the attempts before
 * @status: zero or a negative errno, of rdma_cm or of conn/
 * @now: seconds of a clock that does not jump
 *
 * Any other end than a missing device or route ends the outage.
 *
 * Return: true if the network counts as gone.
 */
static inline bool xprt_rdma_outage_note(struct xprt_rdma_outage *outage, int status,
					 time64_t now)
{
	bool missing = status == -ENODEV || status == -EADDRNOTAVAIL ||
		       status == -ENETUNREACH || status == -ENETDOWN;

	if (!missing) {
		outage->on = false;
		return false;
	}
	if (!outage->on || now - outage->last > XPRT_RDMA_OUTAGE_GAP)
		outage->since = now;
	outage->on = true;
	outage->last = now;
	return now - outage->since >= XPRT_RDMA_OUTAGE_MAX;
}

#endif /* XPRT_RDMA_OUTAGE_H */
