/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the files of this layer share.
 *
 * An RPC, from its slot to its Reply
 *
 *	slot.c		call.c			    reply.c	      slot.c
 *	slot, buffers ->  build, register, post ... match, invalidate ->  retire
 *				|			|	      and reuse
 *			  takes a credit	   gives it back
 *
 * While a request is on the wire its endpoint has it: request->ep is set. That
 * ends either when its Reply is complete (reply.c) or, if its task goes away
 * or starts anew, by xprt_rdma_request_retire(), which waits until neither the
 * device nor the peer can reach the task's memory any more. sunrpc's pin keeps
 * the one from running into the other: it is held from the match of a Reply
 * until the RPC is complete, and waited for before all that calls retire.
 *
 * Locks: none of this layer's own is taken in the course of an RPC. XPRT_LOCKED
 * serialises all that sends, connects and closes, and protects client->ep.
 * ->received and ->done of one connection never run concurrently, so that what
 * only they touch needs none. Of sunrpc's, queue_lock makes sure that a Reply
 * is matched once, reserve_lock protects the slots, transport_lock the
 * client's address. client->backward_lock, which is taken for backward Calls, has
 * those of sunrpc's callback service inside, and ep->awaiting_lock, for killed
 * tasks, those of conn/ and reserve_lock.
 */
#ifndef XPRT_RDMA_CLIENT_PRIVATE_H
#define XPRT_RDMA_CLIENT_PRIVATE_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/socket.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/xprt.h>
#include <linux/wait_bit.h>
#include <linux/workqueue.h>

#include "../conn/conn.h"
#include "client.h"
#include "credits.h"
#include "form.h"

/* Backward Calls that the server may have outstanding (RFC 8167) */
#define XPRT_RDMA_BACKWARD_CREDITS	8

/*
 * Slots that NFS may offer the server for them, by default as many as it has. They
 * cost no Receives: a Call that has a slot and no credit waits at the server.
 */
#define XPRT_RDMA_BACKWARD_SLOTS	16

/* Payload that small is copied into the Send rather than gathered. */
#define XPRT_RDMA_GATHER_MIN	8192

/* How long the server may keep a process that was killed from leaving */
#define XPRT_RDMA_RETIRE_TIMEOUT	(5 * HZ)

/* How long that waits for a Reply: no longer than connecting anew takes */
#define XPRT_RDMA_AWAIT_REPLY_TIMEOUT	HZ

/* Tunables, sysctl.c */
extern unsigned int xprt_rdma_slot_table_entries;
extern unsigned int xprt_rdma_max_inline_read;
extern unsigned int xprt_rdma_max_inline_write;
extern unsigned int xprt_rdma_private_data;
extern unsigned int xprt_rdma_remote_invalidation;

/*
 * struct xprt_rdma_client_stats: for mountstats, by xprt_rdma_client_print_stats()
 *
 * Those above @fixup are counted with XPRT_LOCKED held, @fixup and those after
 * it by the one ->received or ->done that runs at a time. @invalidations and
 * @recovered are counted by killed tasks, too; a lost count does no harm.
 */
struct xprt_rdma_client_stats {
	unsigned long read_segments;
	unsigned long write_segments;
	unsigned long reply_segments;
	u64 registered;			/* octets offered */
	u64 pullup;			/* octets copied to be sent */
	unsigned long failed;		/* Calls that could not be built */
	unsigned long long_calls;
	unsigned long no_send;		/* no send buffer was free */
	unsigned long registrations;
	u64 fixup;			/* octets copied where they belong */
	u64 placed;			/* octets that came by RDMA Write */
	unsigned long bad_replies;
	unsigned long invalidations;	/* local ones posted */
	unsigned long waits_for_send;
	unsigned long recovered;	/* RPCs that had to wait for the end of
					 * their connection
					 */
};

/**
 * struct xprt_rdma_client - a transport to one server
 * @xprt: the rpc_xprt, which has to be first
 * @ep: the connection, while there is one; XPRT_LOCKED
 * @connect_work: makes @ep. Pending or running only while XPRT_LOCKED is
 *	held on behalf of it.
 * @connect_at: when @connect_work may begin, or the last attempt did, in jiffies
 * @source: address to connect from; family AF_UNSPEC: any
 * @local: address connected from; transport_lock
 * @port: of xprt.addr, in words
 * @hex_port: ""
 * @hex_address: its address, in words
 * @wants_backward: NFSv4.1 or later, so that the server may call back
 * @backward_payload: octets of the longest backward Call or Reply, by what the last
 *	connection agreed on; written in ->established
 * @reply_lost: a Reply on this connection was discarded, so some RPC may wait
 *	for it in vain
 * @idle: slots not in use; reserve_lock
 * @slots: all slots, by ->all; reserve_lock
 * @in_use: slots not in @idle; reserve_lock
 * @limit: slots that may be in use, at least one; reserve_lock. Once the server
 *	has granted credits, not more than those: a Call that has a slot finds a
 *	credit, unless there is no memory for Receives, and the others wait where
 *	they do not block backward Replies.
 * @stats: counters
 * @backward_lock: protects @backward_idle, @backward_users, @backward_count
 * @backward_idle: struct xprt_rdma_backward not in use
 * @backward_count: all of these
 * @backward_users: what bc_setup asked for and bc_destroy did not give back
 *
 * Made by the class's setup, ends with ->destroy. sunrpc counts references.
 */
struct xprt_rdma_client {
	struct rpc_xprt xprt;
	struct xprt_rdma_endpoint *ep;
	struct delayed_work connect_work;
	unsigned long connect_at;
	struct sockaddr_storage source;
	struct sockaddr_storage local;
	char port[sizeof("65535")];
	char hex_port[sizeof("ffff")];
	char hex_address[2 * sizeof(struct in6_addr) + 1];
	bool wants_backward;
	u32 backward_payload;
	bool reply_lost;

	struct list_head idle;
	struct list_head slots;
	unsigned int in_use;
	unsigned int limit;

	struct xprt_rdma_client_stats stats;

	spinlock_t backward_lock;	/* see above */
	struct list_head backward_idle;
	unsigned int backward_count;
	unsigned int backward_users;
};

/**
 * struct xprt_rdma_unmatched_reply - a Reply that came when its task was gone
 * @xid: its XID
 * @invalidated: whether the server invalidated a handle as it sent this
 * @handle: that handle
 * @arrived: when
 */
struct xprt_rdma_unmatched_reply {
	__be32 xid;
	bool invalidated;
	u32 handle;
	ktime_t arrived;
};

/**
 * struct xprt_rdma_endpoint - one attempt to be connected, and what comes of it
 * @ref: the client's, the connection's until ->closed, and one for each
 *	request that is on the wire and each backward Call
 * @client: valid until @closed is complete
 * @conn: the connection, once established; a reference that goes with the
 *	last of @ref
 * @ready: complete when it is known whether the connection gets established
 * @closed: complete when nobody can reach any memory through it
 * @established: whether it was, valid from @ready on
 * @status: why it was not
 * @closing: the client itself closes it
 * @credits: credits. A Call whose task was killed keeps its own until the Reply
 *	arrives that the server still owes.
 * @wedged: xprt_rdma_credits_wedged() at the last keepalive
 * @grow_again: pending while it does not ask for memory for more Receives
 * @max_mr_pages: pages that one registration can cover
 * @awaiting_lock: protects @awaiting_reply, @orphaned_mrs, and @unmatched of
 *	requests that this endpoint has
 * @awaiting_reply: requests of killed tasks, which take back their memory; by
 *	->list
 * @orphaned_mrs: registrations of such requests whose tasks are gone, until the
 *	Reply; ->tag is its XID
 * @call: the header being built; XPRT_LOCKED
 * @reply: the header being decoded; ->received only
 */
struct xprt_rdma_endpoint {
	struct kref ref;
	struct xprt_rdma_client *client;
	struct rpcrdma_conn *conn;
	struct completion ready;
	struct completion closed;
	bool established;
	int status;
	bool closing;
	struct xprt_rdma_credits credits;
	bool wedged;
	struct delayed_work grow_again;
	unsigned int max_mr_pages;
	spinlock_t awaiting_lock;	/* see above */
	struct list_head awaiting_reply;
	struct list_head orphaned_mrs;
	struct rpcrdma_message call;
	struct rpcrdma_message reply;
};

/* Bits of xprt_rdma_request.state, which wake those who wait for their end */
enum {
	XPRT_RDMA_POSTING,		/* until the outcome of posting is known */
	XPRT_RDMA_GATHERING,		/* the device reads the task's pages */
	XPRT_RDMA_AWAITING_REPLY,	/* before the request is retired */
	XPRT_RDMA_INVALIDATING,		/* for xprt_rdma_request_retire() */
};

/* Memory that stays with a slot, so that few RPCs need to allocate any */
struct xprt_rdma_buffer {
	void *data;
	size_t size;
};

/**
 * struct xprt_rdma_request - a slot, and the RPC that has it
 * @rqst: the rpc_rqst, which has to be first
 * @list: in client->idle, or in ep->awaiting_reply
 * @all: in client->slots
 * @call_buffer: behind rq_buffer
 * @reply_buffer: behind rq_rbuffer
 * @ep: the connection it is on the wire of, with a reference; else NULL. Set
 *	while XPRT_RDMA_POSTING, cleared when its memory is out of reach.
 * @state: see above
 * @release_snd_buf: what rq_release_snd_buf was; see xprt_rdma_request_prepare()
 * @form: how it travels
 * @mapping_since: jiffies, since when it cannot be mapped; zero: it could be
 * @sent: jiffies, when the Call was posted last; set before @ep
 * @overdue: its connection is to be closed when its task waits again; queue_lock
 * @invalidation: its registrations: first the Call's, then the Reply's
 * @invalidation_status: how it ended
 * @reply_mr: the first of the Reply's registrations
 * @reply_segments: how many of these
 * @posted: the Call is on its way, so that a Reply may be one
 * @replied: matched; further Replies are dropped
 * @answered: the Reply came while the request was in ep->awaiting_reply;
 *	awaiting_lock
 * @recv: the Reply, if there is more to do before it can be copied
 * @payload: the inline part of the Reply, in @recv
 * @payload_len: octets of it
 * @written: octets in the Write chunk or the Reply chunk
 * @error: zero, or what the RPC is to fail with
 * @unmatched: the Reply, if it came after the task had gone and before the
 *	request was in @ep->awaiting_reply; @ep->awaiting_lock. Or one of an
 *	earlier Call: it counts if it has this XID, and came after this Call was
 *	sent.
 *
 * The client owns all of them until it is destroyed, sunrpc those not in
 * client->idle.
 */
struct xprt_rdma_request {
	struct rpc_rqst rqst;
	struct list_head list;
	struct list_head all;
	struct xprt_rdma_buffer call_buffer;
	struct xprt_rdma_buffer reply_buffer;

	struct xprt_rdma_endpoint *ep;
	unsigned long state;
	void (*release_snd_buf)(struct rpc_rqst *rqst);
	struct xprt_rdma_form form;
	unsigned long mapping_since;
	unsigned long sent;
	bool overdue;
	struct rpcrdma_invalidation invalidation;
	int invalidation_status;
	struct rpcrdma_mr *reply_mr;
	unsigned int reply_segments;

	bool posted;
	bool replied;
	bool answered;
	struct rpcrdma_recv *recv;
	const void *payload;
	u32 payload_len;
	u32 written;
	int error;
	struct xprt_rdma_unmatched_reply unmatched;
};

static inline struct xprt_rdma_client *
xprt_rdma_client_of(struct rpc_xprt *xprt)
{
	return container_of(xprt, struct xprt_rdma_client, xprt);
}

static inline struct xprt_rdma_request *
xprt_rdma_request_of(struct rpc_rqst *rqst)
{
	return container_of(rqst, struct xprt_rdma_request, rqst);
}

/* endpoint.c */
extern struct workqueue_struct *xprt_rdma_connect_wq;

void xprt_rdma_ep_init(struct xprt_rdma_client *client);
void xprt_rdma_ep_get(struct xprt_rdma_endpoint *ep);
void xprt_rdma_ep_put(struct xprt_rdma_endpoint *ep);
bool xprt_rdma_ep_has_credit(struct xprt_rdma_endpoint *ep);
void xprt_rdma_ep_granted(struct xprt_rdma_endpoint *ep, u32 credits);
void xprt_rdma_ep_credit_back(struct xprt_rdma_endpoint *ep);
void xprt_rdma_ep_connect(struct rpc_xprt *xprt, struct rpc_task *task);
void xprt_rdma_ep_close(struct rpc_xprt *xprt);

/* slot.c */
int xprt_rdma_slots_create(struct xprt_rdma_client *client);
void xprt_rdma_slots_destroy(struct xprt_rdma_client *client);
void xprt_rdma_slots_limit(struct xprt_rdma_client *client,
			   const struct xprt_rdma_credits *credits);
void xprt_rdma_slots_note_unmatched(struct xprt_rdma_client *client,
				    const struct xprt_rdma_endpoint *ep,
				    const struct xprt_rdma_unmatched_reply *unmatched);
void xprt_rdma_slot_alloc(struct rpc_xprt *xprt, struct rpc_task *task);
void xprt_rdma_slot_free(struct rpc_xprt *xprt, struct rpc_rqst *rqst);
int xprt_rdma_buffers_alloc(struct rpc_task *task);
void xprt_rdma_buffers_free(struct rpc_task *task);
int xprt_rdma_request_prepare(struct rpc_rqst *rqst, struct xdr_buf *buf);
void xprt_rdma_request_retire(struct xprt_rdma_request *request);
int xprt_rdma_request_invalidate(struct xprt_rdma_request *request,
				 void (*done)(struct rpcrdma_work *work,
					      int status));
void xprt_rdma_request_put_mrs(struct xprt_rdma_request *request);

/* call.c */
int xprt_rdma_call_send(struct rpc_rqst *rqst);
void *xprt_rdma_copy_octets(void *to, const struct xdr_buf *from);

/* reply.c */
void xprt_rdma_reply_received(struct xprt_rdma_endpoint *ep,
			      struct rpcrdma_recv *recv);
void xprt_rdma_reply_proceed(struct xprt_rdma_request *request);
void xprt_rdma_reply_find_unmatched(struct xprt_rdma_request *request);
void xprt_rdma_rpc_fail(struct rpc_rqst *rqst, int error);

/* callback.c */
#ifdef CONFIG_SUNRPC_BACKCHANNEL
int xprt_rdma_backward_setup(struct rpc_xprt *xprt, unsigned int min_reqs);
size_t xprt_rdma_backward_maxpayload(struct rpc_xprt *xprt);
unsigned int xprt_rdma_backward_slots(struct rpc_xprt *xprt);
void xprt_rdma_backward_free(struct rpc_rqst *rqst);
void xprt_rdma_backward_destroy(struct rpc_xprt *xprt, unsigned int max_reqs);
#endif
void xprt_rdma_backward_received(struct xprt_rdma_endpoint *ep,
				 struct rpcrdma_recv *recv);
void xprt_rdma_backward_refuse(struct rpcrdma_conn *conn,
			       struct rpcrdma_message *msg,
			       enum rpcrdma_errcode error);
int xprt_rdma_backward_reply(struct xprt_rdma_endpoint *ep,
			     struct rpc_rqst *rqst);

/* sysctl.c */
int xprt_rdma_sysctl_init(void);
void xprt_rdma_sysctl_exit(void);

#endif /* XPRT_RDMA_CLIENT_PRIVATE_H */
