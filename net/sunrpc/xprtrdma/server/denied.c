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
#define DENIED_MAX	8
#define DENIED_TIMES	2
#define DENIED_LIFE	(60 * HZ)

/* One Call; its requester may come from any port. */
struct denied {
	struct sockaddr_storage peer;
	__be32 xid;
	unsigned int times;
	unsigned long last;	/* in jiffies */
};

static DEFINE_SPINLOCK(denied_lock);	/* protects all of these */
static struct denied denied[DENIED_MAX];
static unsigned int denied_next;	/* to be forgotten for another */
static unsigned long denied_until;	/* none counts from then on; also read without */

/* Caller holds the lock. */
static struct denied *find(const struct rpcrdma_request *request)
{
	const struct rpcrdma_conn *conn = request->service->conn;
	struct denied *entry;

	for (entry = denied; entry < denied + DENIED_MAX; entry++)
		if (entry->times && entry->xid == request->msg.xid &&
		    time_before(jiffies, entry->last + DENIED_LIFE) &&
		    rpc_cmp_addr((struct sockaddr *)&entry->peer,
				 (const struct sockaddr *)&conn->peer_addr))
			return entry;
	return NULL;
}

/**
 * rpcrdma_denied_note - a Call has broken its connection
 * @request: the Call
 * @status: how an RDMA operation on its chunks has ended: it is noted only if the
 *	requester did not allow it
 *
 * Context: ->done.
 */
void rpcrdma_denied_note(const struct rpcrdma_request *request, int status)
{
	struct denied *entry;

	if (status != -EREMOTEIO)
		return;
	spin_lock(&denied_lock);
	entry = find(request);
	if (!entry) {
		entry = &denied[denied_next++ % DENIED_MAX];
		*entry = (struct denied){
			.peer = request->service->conn->peer_addr,
			.xid = request->msg.xid,
		};
	}
	entry->times++;
	entry->last = jiffies;
	WRITE_ONCE(denied_until, jiffies + DENIED_LIFE);
	spin_unlock(&denied_lock);
}

/**
 * rpcrdma_denied_before - whether a Call has broken connections before
 * @request: the Call
 *
 * Context: process.
 * Return: true if it must not be tried again.
 */
bool rpcrdma_denied_before(const struct rpcrdma_request *request)
{
	const struct denied *entry;
	bool before;

	if (!request->msg.num_segments ||
	    time_after(jiffies, READ_ONCE(denied_until)))
		return false;
	spin_lock(&denied_lock);
	entry = find(request);
	before = entry && entry->times >= DENIED_TIMES;
	spin_unlock(&denied_lock);
	return before;
}
