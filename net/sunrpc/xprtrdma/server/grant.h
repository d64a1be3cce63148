/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How many credits a connection is granted: few at first, because each needs a receive buffer,
 * twice as many when the requester needs more, and few again when it rests.
 *
 * A requester that has not got a lower grant yet may still use all credits of the one before. But
 * each Reply leaves it one Call less in flight, and if it grants less, no other takes its place. So
 * with each such Reply one Receive less is needed.
 */
#ifndef SVCRDMA_GRANT_H
#define SVCRDMA_GRANT_H

#include <linux/jiffies.h>
#include <linux/minmax.h>

/* A requester that uses all of its credits in this time needs more, in jiffies */
#define SVCRDMA_GRANT_WINDOW	(HZ / 10)

/* One that does not use them up in this time rests, in jiffies */
#define SVCRDMA_GRANT_REST	(60 * HZ)

/* Replies grant one of so many credits while few shared Receives are posted. */
#define SVCRDMA_GRANT_FEW	4

/*
 * The credits of one connection, part of struct svcrdma_service. service->lock protects it;
 * @granted, @wanted and @since are also read without the lock.
 */
struct svcrdma_grant {
	unsigned int granted;	/* what Replies grant; there is a Receive for each, or a share */
	unsigned int wanted;	/* more than @granted when more Receives are to be made */
	unsigned int calls;	/* that arrived after @since */
	unsigned int peak;	/* most Calls held at the same time after @since */
	unsigned long since;	/* when counting began, in jiffies */
};

/* At first, or when the requester rests and no other Reply is being made that may grant more */
static inline void svcrdma_grant_init(struct svcrdma_grant *grant, unsigned int first)
{
	WRITE_ONCE(grant->granted, first);
	WRITE_ONCE(grant->wanted, first);
	grant->calls = 0;
	grant->peak = 0;
	WRITE_ONCE(grant->since, jiffies);
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
	WRITE_ONCE(grant->since, now);
}

/* There are Receives for @credits now. Zero: there was no memory for more. */
static inline void svcrdma_grant_raise(struct svcrdma_grant *grant, unsigned int credits)
{
	WRITE_ONCE(grant->granted, max(grant->granted, credits));
	WRITE_ONCE(grant->wanted, grant->granted);
}

#endif /* SVCRDMA_GRANT_H */
