// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Calls whose chunks break the connection (RFC 8166 section 4.5.3): the requester
 * does not allow an RDMA operation that it has asked for. On the next connection
 * it sends this Call again, together with all its others, and so on without end.
 * So the third time such a Call is answered with RDMA_ERROR, which ends its RPC.
 */
#include <linux/sunrpc/addr.h>

#include "server_private.h"

/* Few Calls and a short time are enough: few requesters do this, and they reconnect soon. */
#define SVCRDMA_DENIED_MAX	8
#define SVCRDMA_DENIED_TIMES	2
#define SVCRDMA_DENIED_LIFE	(60 * HZ)

/*
 * A Call, by its XID and the address of its requester. The port may change. Entry of a
 * static table, where it is overwritten in turn.
 */
struct svcrdma_denied {
	struct sockaddr_storage peer;
	__be32 xid;
	unsigned int times;	/* how often it broke a connection */
	unsigned long last;	/* in jiffies */
};

static DEFINE_SPINLOCK(svcrdma_denied_lock);	/* protects the next three */
static struct svcrdma_denied svcrdma_denied_calls[SVCRDMA_DENIED_MAX];
static unsigned int svcrdma_denied_next;	/* the entry to be overwritten next */
/* When the last of them expires, in jiffies; also read without the lock */
static unsigned long svcrdma_denied_until;

static struct svcrdma_denied *svcrdma_denied_find_locked(const struct svcrdma_request *request)
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
 * svcrdma_denied_add - note a Call that has broken its connection
 * @request: the Call
 *
 * RFC 8166 section 4.5.3.
 *
 * Context: a callback of the connection.
 */
void svcrdma_denied_add(const struct svcrdma_request *request)
{
	struct svcrdma_service *service = request->service;
	struct svcrdma_denied *entry;

	spin_lock_bh(&service->lock);
	service->conn->counters.errors[RPCRDMA_A_ERRORS_DENIED]++;
	spin_unlock_bh(&service->lock);
	spin_lock_bh(&svcrdma_denied_lock);
	entry = svcrdma_denied_find_locked(request);
	if (!entry) {
		entry = &svcrdma_denied_calls[svcrdma_denied_next++ % SVCRDMA_DENIED_MAX];
		*entry = (struct svcrdma_denied){
			.peer = service->conn->peer_addr,
			.xid = request->msg.xid,
		};
	}
	entry->times++;
	entry->last = jiffies;
	WRITE_ONCE(svcrdma_denied_until, jiffies + SVCRDMA_DENIED_LIFE);
	spin_unlock_bh(&svcrdma_denied_lock);
}

/**
 * svcrdma_denied_find - whether a Call with chunks has broken connections before
 * @request: the Call
 *
 * Context: process.
 * Return: true if its chunks must not be tried again.
 */
bool svcrdma_denied_find(const struct svcrdma_request *request)
{
	const struct svcrdma_denied *entry;
	bool before;

	if (time_after(jiffies, READ_ONCE(svcrdma_denied_until)))
		return false;
	spin_lock_bh(&svcrdma_denied_lock);
	entry = svcrdma_denied_find_locked(request);
	before = entry && entry->times >= SVCRDMA_DENIED_TIMES;
	spin_unlock_bh(&svcrdma_denied_lock);
	return before;
}
