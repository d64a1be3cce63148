/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How many credits a connection is granted: few at first, because each needs a
 * receive buffer, and twice as many when the requester needs more. The grant
 * never falls. A posted Receive comes back only with a message, and the requester
 * may send a message for each credit that it was ever granted.
 */
#ifndef SVCRDMA_GRANT_H
#define SVCRDMA_GRANT_H

#include <linux/jiffies.h>
#include <linux/minmax.h>

/* A requester that uses all of its credits in this time needs more, in jiffies */
#define SVCRDMA_GRANT_WINDOW	(HZ / 10)

/*
 * The credits of one connection, part of struct svcrdma_service. service->lock protects it;
 * @granted and @wanted are also read without the lock.
 */
struct svcrdma_grant {
	unsigned int granted;	/* what Replies grant; there is a Receive for each credit */
	unsigned int wanted;	/* more than @granted when more Receives are to be made */
	unsigned int calls;	/* that arrived after @since */
	unsigned int peak;	/* most Calls held at the same time after @since */
	unsigned long since;	/* when counting began, in jiffies */
};

static inline void svcrdma_grant_init(struct svcrdma_grant *grant, unsigned int first)
{
	*grant = (struct svcrdma_grant){
		.granted = first,
		.wanted = first,
		.since = jiffies,
	};
}

/*
 * Count a message that arrived. More credits are wanted if all are in use at once, because the RPC
 * server is slow, or if more than all are used within the window, two of them at the same time. A
 * requester that sends one Call after the other needs no more.
 */
static inline void svcrdma_grant_call(struct svcrdma_grant *grant, unsigned int calls_held,
				      unsigned long now)
{
	if (calls_held >= grant->granted)
		WRITE_ONCE(grant->wanted, 2 * grant->granted);
	grant->peak = max(grant->peak, calls_held);
	if (++grant->calls <= grant->granted)
		return;
	if (grant->peak > 1 && time_before(now, grant->since + SVCRDMA_GRANT_WINDOW))
		WRITE_ONCE(grant->wanted, 2 * grant->granted);
	grant->calls = 0;
	grant->peak = 0;
	grant->since = now;
}

/* There are Receives for @credits now. Zero: there was no memory for more. */
static inline void svcrdma_grant_raise(struct svcrdma_grant *grant, unsigned int credits)
{
	WRITE_ONCE(grant->granted, max(grant->granted, credits));
	WRITE_ONCE(grant->wanted, grant->granted);
}

#endif /* SVCRDMA_GRANT_H */
