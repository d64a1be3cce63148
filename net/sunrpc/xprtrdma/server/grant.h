/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How many credits a connection is granted: few at first, for each is a receive
 * buffer, and twice as many whenever its requester is seen to need them. What
 * has been granted stays so: a Receive that is posted comes back only with a
 * message, and the requester may send one for each credit it was ever told of.
 */
#ifndef SVCRDMA_GRANT_H
#define SVCRDMA_GRANT_H

#include <linux/jiffies.h>
#include <linux/minmax.h>

/* For a requester to use all of its credits in, if they are what holds it up */
#define SVCRDMA_GRANT_WINDOW	(HZ / 10)

/**
 * struct svcrdma_grant - the credits of one connection
 * @granted: in every Reply; there is a Receive for each
 * @wanted: more than @granted when it is time to make more Receives
 * @calls: since @since
 * @peak: most Calls that were here at the same time, since @since
 * @since: when counting began, in jiffies
 *
 * Part of a connection, whose lock protects it. @granted and @wanted are also
 * read without.
 */
struct svcrdma_grant {
	unsigned int granted;
	unsigned int wanted;
	unsigned int calls;
	unsigned int peak;
	unsigned long since;
};

static inline void svcrdma_grant_init(struct svcrdma_grant *grant, unsigned int first)
{
	*grant = (struct svcrdma_grant){
		.granted = first,
		.wanted = first,
		.since = jiffies,
	};
}

/**
 * svcrdma_grant_call - a Call arrived
 * @grant: the grant
 * @calls_held: Calls that are here, this one included
 * @now: jiffies
 *
 * A requester that sends one Call after the other needs no more than it has.
 * One that is held up by its credits has all of them in use here, if it is the
 * RPC server that takes long; else it uses all of them in a short time, and some
 * at the same time.
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

/**
 * svcrdma_grant_raise - there are more Receives now, or there cannot be
 * @grant: the grant
 * @credits: what there are Receives for
 */
static inline void svcrdma_grant_raise(struct svcrdma_grant *grant, unsigned int credits)
{
	WRITE_ONCE(grant->granted, max(grant->granted, credits));
	WRITE_ONCE(grant->wanted, grant->granted);
}

#endif /* SVCRDMA_GRANT_H */
