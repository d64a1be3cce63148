// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Calls whose chunks break the connection (RFC 8166 section 4.5.3): the requester
 * does not allow an RDMA operation that it has asked for. It sends the Call again
 * by the next connection, and all its other Calls with it, over and over. So the
 * third time such a Call is answered with ERR_CHUNK, which ends its RPC.
 */
#include <linux/sunrpc/addr.h>

#include "server_private.h"

/* Few requesters do this, and who has lost a connection is soon back. */
#define SVCRDMA_DENIED_MAX	8
#define SVCRDMA_DENIED_TIMES	2
#define SVCRDMA_DENIED_LIFE	(60 * HZ)

/* One Call; its requester may come from any port. */
struct svcrdma_denied {
	struct sockaddr_storage peer;
	__be32 xid;
	unsigned int times;
	unsigned long last;	/* in jiffies */
};

static DEFINE_SPINLOCK(svcrdma_denied_lock);	/* protects all of these */
static struct svcrdma_denied svcrdma_denied_calls[SVCRDMA_DENIED_MAX];
static unsigned int svcrdma_denied_next;	/* to be forgotten for another */
/* None counts from then on; also read without the lock. */
static unsigned long svcrdma_denied_until;

static struct svcrdma_denied *svcrdma_denied_find(const struct svcrdma_request *request)
{
	const struct rpcrdma_conn *conn = request->service->conn;
	struct svcrdma_denied *entry;

	lockdep_assert_held(&svcrdma_denied_lock);
	for (entry = svcrdma_denied_calls;
	     entry < svcrdma_denied_calls + SVCRDMA_DENIED_MAX; entry++)
		if (entry->times && entry->xid == request->msg.xid &&
		    time_before(jiffies, entry->last + SVCRDMA_DENIED_LIFE) &&
		    rpc_cmp_addr((struct sockaddr *)&entry->peer,
				 (const struct sockaddr *)&conn->peer_addr))
			return entry;
	return NULL;
}

/**
 * svcrdma_denied_note - a Call has broken its connection
 * @request: the Call
 * @status: how an RDMA operation on its chunks has ended: it is noted only if the
 *	requester did not allow it
 *
 * Context: ->done.
 */
void svcrdma_denied_note(const struct svcrdma_request *request, int status)
{
	struct svcrdma_denied *entry;

	if (status != -EREMOTEIO)
		return;
	spin_lock(&svcrdma_denied_lock);
	entry = svcrdma_denied_find(request);
	if (!entry) {
		entry = &svcrdma_denied_calls[svcrdma_denied_next++ % SVCRDMA_DENIED_MAX];
		*entry = (struct svcrdma_denied){
			.peer = request->service->conn->peer_addr,
			.xid = request->msg.xid,
		};
	}
	entry->times++;
	entry->last = jiffies;
	WRITE_ONCE(svcrdma_denied_until, jiffies + SVCRDMA_DENIED_LIFE);
	spin_unlock(&svcrdma_denied_lock);
}

/**
 * svcrdma_denied_before - whether a Call has broken connections before
 * @request: the Call
 *
 * Context: process.
 * Return: true if it must not be tried again.
 */
bool svcrdma_denied_before(const struct svcrdma_request *request)
{
	const struct svcrdma_denied *entry;
	bool before;

	if (!request->msg.num_segments || time_after(jiffies, READ_ONCE(svcrdma_denied_until)))
		return false;
	spin_lock(&svcrdma_denied_lock);
	entry = svcrdma_denied_find(request);
	before = entry && entry->times >= SVCRDMA_DENIED_TIMES;
	spin_unlock(&svcrdma_denied_lock);
	return before;
}
