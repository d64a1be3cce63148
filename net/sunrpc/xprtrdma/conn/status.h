/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What status/ sees of this layer, besides struct rpcrdma_conn and struct rpcrdma_device,
 * whose private members it reads as well; and what roles fill in for it.
 */
#ifndef RPCRDMA_CONN_STATUS_H
#define RPCRDMA_CONN_STATUS_H

#include <linux/inet.h>
#include <linux/ratelimit.h>

#include "conn.h"

/**
 * struct rpcrdma_role_status - what only the role of a connection knows
 * @xprt_id: sunrpc's number of a client's transport
 * @version: of the protocol; zero until it is settled
 * @requested: credits that the client asks for; zero if this is not known
 * @granted: credits that the server allows
 * @in_use: Calls without a Reply
 * @waiting: RPCs of a client that wait for a slot or a credit
 * @memory: octets that the role keeps allocated
 *
 * On the stack of the reader.
 */
struct rpcrdma_role_status {
	u32 xprt_id;
	u32 version;
	u32 requested;
	u32 granted;
	u32 in_use;
	u32 waiting;
	u64 memory;
};

/* Hosts that are told apart, see admission.c */
#define RPCRDMA_HOSTS	512

/*
 * The role owns it from rpcrdma_listener_create() to rpcrdma_listener_destroy().
 *
 * For a listener at the wildcard address, rdma_cm follows devices as they are added
 * and removed. A listener at an address of one device is told when the device is
 * removed. Then it tries to listen again until that succeeds.
 */
struct rpcrdma_listener {
	u32 id;				/* later listeners have higher ones */
	struct list_head all;		/* entry in rpcrdma_listeners */
	struct net *net;
	struct sockaddr_storage addr;
	void (*incoming)(void *role);
	void *role;
	struct mutex setup;		/* protects @cm_id and @dead */
	struct rdma_cm_id *cm_id;
	ktime_t state_since;		/* when @cm_id became NULL, or was set */
	bool dead;			/* it is being destroyed */
	struct delayed_work relisten;
	spinlock_t lock;		/* protects @pending to @turn and the counters */
	unsigned long accepted;
	unsigned long refused;
	/* Connections of each host, by pending_list; a reference each */
	struct list_head pending[RPCRDMA_HOSTS];
	/* Since when looks find no memory for one more connection of a host; zero: there is some */
	ktime_t lacking[RPCRDMA_HOSTS];
	unsigned int num_pending;
	unsigned int turn;		/* the host whose request is looked at first; may wrap */
	struct delayed_work look;	/* queued while requests wait and none may be taken */
};

extern struct mutex rpcrdma_devices_lock;
extern struct list_head rpcrdma_devices;	/* by ascending id; rpcrdma_devices_lock */
extern struct mutex rpcrdma_listeners_lock;
extern struct list_head rpcrdma_listeners;	/* by ascending id; rpcrdma_listeners_lock */

/*
 * What the connections of a peer in one role have counted. Made for the first one, maybe given to
 * others, and freed with its network namespace. history.c has the lock.
 */
struct rpcrdma_history {
	struct list_head list;
	bool server;			/* as conn->server */
	char peer[INET6_ADDRSTRLEN];	/* address; empty: all peers without a record */
	struct list_head conns;		/* by history_list: those that are not freed yet */
	ktime_t since;			/* when the peer got the record, or it was made */
	ktime_t ended;			/* when the last connection was freed */
	struct rpcrdma_counters counters; /* of connections that were freed */
	/* logged: work requests fail, connections end. Last: not copied, as they may be in use */
	struct ratelimit_state lines[2];
};

extern struct pernet_operations rpcrdma_history_ops;
unsigned int rpcrdma_history_get(const struct net *ns, unsigned int n,
				 struct rpcrdma_history *copy);

struct rpcrdma_conn *rpcrdma_conn_find(const struct net *net, unsigned long id);

#endif /* RPCRDMA_CONN_STATUS_H */
