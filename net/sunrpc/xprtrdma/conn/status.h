/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What others may see of devices, listeners and connections, and when something happens
 * to them. The layer does not know who looks.
 */
#ifndef RPCRDMA_CONN_STATUS_H
#define RPCRDMA_CONN_STATUS_H

#include <linux/socket.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include "counters.h"

struct net;
struct rpcrdma_conn;
struct rpcrdma_device;

/**
 * struct rpcrdma_refused - a connection request that was refused
 * @net: network namespace of the addresses
 * @server: by this end; otherwise by the peer
 * @why: the reason
 * @err: the cause, a negative errno
 * @local: this end, or AF_UNSPEC in ss_family if that is not known
 * @peer: the other end
 *
 * On the stack of the caller.
 */
struct rpcrdma_refused {
	struct net *net;
	bool server;
	enum rpcrdma_refusal why;
	int err;
	const struct sockaddr_storage *local;
	const struct sockaddr_storage *peer;
};

/**
 * struct rpcrdma_observer - who is told what happens to connections
 * @connected: a connection is established. Called before the role's ->established.
 * @closed: a connection that was established has ended; once, and after @connected.
 *	Called before the role's ->closed.
 * @refused: a request was refused
 *
 * Called in process context; must not sleep for memory, because reclaim may need the
 * connection. Constant and part of the module.
 */
struct rpcrdma_observer {
	void (*connected)(const struct rpcrdma_conn *conn);
	void (*closed)(const struct rpcrdma_conn *conn);
	void (*refused)(const struct rpcrdma_refused *refused);
};

/**
 * struct rpcrdma_role_status - what only the role of a connection knows
 * @xprt_id: sunrpc's number of a client's transport
 * @version: of the protocol; zero while it is open
 * @requested: credits that the client asks for; zero if this is not known
 * @granted: credits that the server allows
 * @in_use: Calls without a Reply
 * @waiting: RPCs of a client that wait for a slot or a credit
 * @credit_waits: RPCs that waited for a slot, besides those in the counters
 * @memory: octets that the role keeps allocated
 *
 * Part of struct rpcrdma_conn_status.
 */
struct rpcrdma_role_status {
	u32 xprt_id;
	u32 version;
	u32 requested;
	u32 granted;
	u32 in_use;
	u32 waiting;
	unsigned long credit_waits;
	u64 memory;
};

/**
 * struct rpcrdma_conn_status - a connection at one moment
 * @live: it is established, and what follows up to @role is valid
 * @device: name of the device
 * @port: port of the device
 * @call_threshold: octets that the client may send inline
 * @reply_threshold: octets that the server may send inline
 * @remote_inv: Replies may invalidate a handle
 * @reads_issued: RDMA Reads that this end issues at a time; zero: none
 * @reads_served: RDMA Reads that this end serves at a time; zero: none
 * @mrs: registrations
 * @mrs_idle: those of @mrs that are idle
 * @recvs: Receives
 * @recvs_posted: those of @recvs that are posted
 * @sq_size: work requests that the send queue has space for
 * @sq_used: work requests in the send queue
 * @memory: octets that the connection keeps allocated, without those of the role
 * @role: what the role says
 * @state: enum rpcrdma_state; always valid, as all that follows
 * @state_ms: for how long, in milliseconds
 * @err: why it closes, a negative errno; zero if it does not
 * @counters: what has happened; copied_octets is valid for both directions
 *
 * Allocated by the reader.
 */
struct rpcrdma_conn_status {
	bool live;
	char device[IB_DEVICE_NAME_MAX];
	u32 port;
	u32 call_threshold;
	u32 reply_threshold;
	bool remote_inv;
	u32 reads_issued;
	u32 reads_served;
	u32 mrs;
	u32 mrs_idle;
	u32 recvs;
	u32 recvs_posted;
	u32 sq_size;
	u32 sq_used;
	u64 memory;
	struct rpcrdma_role_status role;
	u32 state;
	u64 state_ms;
	int err;
	struct rpcrdma_counters counters;
};

/**
 * struct rpcrdma_listener_status - a listener at one moment
 * @id: its number; later listeners have higher ones
 * @addr: its address
 * @listening: it listens; if not, its device is gone
 * @state_ms: for how long, in milliseconds
 * @accepted: requests that were accepted
 * @refused: requests that were refused
 * @waiting: requests that wait
 *
 * On the stack of the caller.
 */
struct rpcrdma_listener_status {
	u64 id;
	const struct sockaddr_storage *addr;
	bool listening;
	u64 state_ms;
	u64 accepted;
	u64 refused;
	unsigned int waiting;
};

/* status.c */
struct rpcrdma_conn *rpcrdma_conn_find(unsigned long *id);
void rpcrdma_conn_status(struct rpcrdma_conn *conn, struct rpcrdma_conn_status *status);
u64 rpcrdma_conn_age_ms(const struct rpcrdma_conn *conn);
bool rpcrdma_conn_in_net(const struct rpcrdma_conn *conn, const struct net *net);
void rpcrdma_conn_observe(const struct rpcrdma_observer *observer);
void rpcrdma_conn_refused(const struct rpcrdma_refused *refused);

/* Called for each; an error ends the walk and is returned. */
typedef int (*rpcrdma_visit_device_fn)(const struct rpcrdma_device *device, void *data);
typedef int (*rpcrdma_visit_listener_fn)(const struct rpcrdma_listener_status *status,
					 void *data);

int rpcrdma_device_walk(u64 after, rpcrdma_visit_device_fn visit, void *data);
int rpcrdma_listener_walk(const struct net *net, u64 after, rpcrdma_visit_listener_fn visit,
			  void *data);

#endif /* RPCRDMA_CONN_STATUS_H */
