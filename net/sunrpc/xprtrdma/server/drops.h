/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Calls that the RPC server drops. Mostly it is still executing them for an
 * earlier connection. So it gets them again after some time, and may have the
 * Reply then. The requester only sees that these Calls take long.
 *
 * RPCSEC_GSS takes no Call twice. Such a Call is lost until the requester sends
 * it again. With NFSv4 the requester does so only on another connection.
 */
#ifndef SVCRDMA_DROPS_H
#define SVCRDMA_DROPS_H

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* When the RPC server gets Calls again, in jiffies: twice as long each time */
#define SVCRDMA_DROPS_FIRST	HZ
#define SVCRDMA_DROPS_MAX	(8 * HZ)

/*
 * How long a connection stays, in jiffies, after it has lost a Call, or while it
 * has dropped Calls and sends no Reply. A new connection does not help as long as
 * nfsd executes the Call, so this is not shorter than the time-out of most
 * requesters.
 */
#define SVCRDMA_DROPS_LIMIT	(60 * HZ)

/**
 * struct svcrdma_drops - the dropped Calls of a connection
 * @delay: how long until the next look at them, in jiffies
 * @looked: when the last look was, in jiffies
 * @quiet_since: when a Reply was last known to have been sent, in jiffies
 * @lost_since: if @lost: when the first Call was lost, in jiffies
 * @lost: a Call was lost
 *
 * Part of struct svcrdma_service. service->lock protects it.
 */
struct svcrdma_drops {
	unsigned long delay;
	unsigned long looked;
	unsigned long quiet_since;
	unsigned long lost_since;
	bool lost;
};

static inline void svcrdma_drops_init(struct svcrdma_drops *drops)
{
	*drops = (struct svcrdma_drops){
		.delay = SVCRDMA_DROPS_FIRST,
		.looked = jiffies - SVCRDMA_DROPS_MAX,
	};
}

/**
 * svcrdma_drops_add - note that the RPC server has dropped a Call
 * @drops: the dropped Calls of the connection
 * @alone: no other dropped Call waits
 * @again: the RPC server may get this Call again
 * @now: the time in jiffies
 *
 * A Call that is dropped soon after the last look was probably dropped before.
 * So the delay goes on growing then.
 *
 * Context: holds the lock of @drops.
 * Return: after how many jiffies svcrdma_drops_look() is due at the latest.
 */
static inline unsigned long svcrdma_drops_add(struct svcrdma_drops *drops, bool alone,
					      bool again, unsigned long now)
{
	if (alone && !drops->lost && time_after_eq(now, drops->looked + drops->delay)) {
		drops->delay = SVCRDMA_DROPS_FIRST;
		drops->quiet_since = now;
	}
	if (!again && !drops->lost) {
		drops->lost = true;
		drops->lost_since = now;
	}
	return drops->delay;
}

/**
 * svcrdma_drops_look - decide about the dropped Calls
 * @drops: the dropped Calls of the connection
 * @replied: a Reply was sent since the last look
 * @now: the time in jiffies
 *
 * Context: holds the lock of @drops.
 * Return: true if the connection is to be closed. Otherwise the RPC server is to
 * get the Calls again. If @drops->lost, another look is due after @drops->delay.
 */
static inline bool svcrdma_drops_look(struct svcrdma_drops *drops, bool replied,
				      unsigned long now)
{
	drops->looked = now;
	drops->delay = min_t(unsigned long, 2 * drops->delay, SVCRDMA_DROPS_MAX);
	if (replied)
		drops->quiet_since = now;
	if (drops->lost && time_after_eq(now, drops->lost_since + SVCRDMA_DROPS_LIMIT))
		return true;
	return time_after_eq(now, drops->quiet_since + SVCRDMA_DROPS_LIMIT);
}

#endif /* SVCRDMA_DROPS_H */
