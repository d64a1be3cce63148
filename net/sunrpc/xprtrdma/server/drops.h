/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What becomes of Calls that the RPC server drops. Mostly it is still executing
 * them for an earlier connection, so it gets them again after a while, by when it
 * may have the Reply. The requester notices nothing but that they take long.
 *
 * RPCSEC_GSS takes no Call twice. Such a one is lost until its requester sends it
 * anew, and from NFSv4 on that does so by another connection only.
 */
#ifndef SVCRDMA_DROPS_H
#define SVCRDMA_DROPS_H

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* Until the RPC server gets Calls again: twice as long each time */
#define SVCRDMA_DROPS_FIRST	HZ
#define SVCRDMA_DROPS_MAX	(8 * HZ)

/*
 * How long a connection stays that has lost a Call, or on which nothing but
 * dropped Calls is left. What was dropped is dropped again by the next one while it
 * is being executed, so this is no less than the time-out of most requesters.
 */
#define SVCRDMA_DROPS_LIMIT	(60 * HZ)

/**
 * struct svcrdma_drops - the dropped Calls of a connection
 * @delay: until they are looked at, in jiffies
 * @looked: when they were, in jiffies
 * @quiet_since: when a Reply was last known to have been sent, in jiffies
 * @lost_since: when the first Call was lost, in jiffies; if @lost
 * @lost: whether one was
 *
 * Part of a connection, whose lock protects it.
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
 * svcrdma_drops_add - the RPC server has dropped a Call
 * @drops: the connection's
 * @alone: no other waits
 * @again: it may get this one again
 * @now: jiffies
 *
 * One that is dropped soon after the last look was probably so before.
 *
 * Return: when to look at the latest, in jiffies from now on.
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
 * svcrdma_drops_look - decide about the Calls that were dropped
 * @drops: the connection's
 * @replied: a Reply has been sent since the last look
 * @now: jiffies
 *
 * Return: true if the connection is to be closed; else the RPC server is to get
 * them again, and if one was lost there is another look after @drops->delay.
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
