/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the files of this room share.
 *
 * An RPC, from its slot to its Reply
 *
 *	slot.c		call.c			    reply.c	      slot.c
 *	slot, buffers ->  build, register, post ... match, invalidate ->  retire
 *				|			|	      and reuse
 *			  takes a credit	   gives it back
 *
 * While a request is on the wire its link has it: request->link is set. That
 * ends either when its Reply is complete (reply.c) or, if its task goes away
 * or starts anew, by rpcrdma_request_retire(), which waits until neither the
 * device nor the peer can reach the task's memory any more. sunrpc's pin keeps
 * the one from running into the other: it is held from the match of a Reply
 * until the RPC is complete, and waited for before all that calls retire.
 *
 * Locks: none of this room's own is taken in the course of an RPC. XPRT_LOCKED
 * serialises all that sends, connects and closes, and protects client->link.
 * ->received and ->done of one connection never run concurrently, so that what
 * only they touch needs none. Of sunrpc's, queue_lock makes sure that a Reply
 * is matched once, reserve_lock protects the slots, transport_lock the
 * client's address. client->backward_lock, which is taken for backward Calls, has
 * those of sunrpc's callback service inside, and link->owed_lock, for killed
 * tasks, those of conn/ and reserve_lock.
 */
#ifndef RPCRDMA_CLIENT_PRIVATE_H
#define RPCRDMA_CLIENT_PRIVATE_H

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
#define RPCRDMA_BACKWARD_CREDITS	8

/*
 * Slots that NFS may offer the server for them, by default as many as it has. They
 * cost no Receives: a Call that has a slot and no credit waits at the server.
 */
#define RPCRDMA_BACKWARD_SLOTS		16

/* Payload that small is copied into the Send rather than gathered. */
#define RPCRDMA_GATHER_MIN		8192

/* How long the server may keep a process that was killed from leaving */
#define RPCRDMA_RETIRE_TIMEOUT		(5 * HZ)

/* How long that waits for a Reply: no longer than connecting anew takes */
#define RPCRDMA_OWED_TIMEOUT		HZ

/* Tunables, sysctl.c */
extern unsigned int rpcrdma_slot_table_entries;
extern unsigned int rpcrdma_max_inline_read;
extern unsigned int rpcrdma_max_inline_write;
extern unsigned int rpcrdma_private_data;
extern unsigned int rpcrdma_remote_invalidation;

/*
 * struct rpcrdma_client_stats: for mountstats; see client_print_stats()
 *
 * Those above @fixup are counted with XPRT_LOCKED held, @fixup and those after
 * it by the one ->received or ->done that runs at a time. @invalidations and
 * @recovered are counted by killed tasks, too; a lost count does no harm.
 */
struct rpcrdma_client_stats {
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
 * struct rpcrdma_client - a transport to one server
 * @xprt: the rpc_xprt, which has to be first
 * @link: the connection, while there is one; XPRT_LOCKED
 * @connect_work: makes @link. Pending or running only while XPRT_LOCKED is
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
 * @backward_idle: struct rpcrdma_backward not in use
 * @backward_count: all of these
 * @backward_users: what bc_setup asked for and bc_destroy did not give back
 *
 * Made by the class's setup, ends with ->destroy. sunrpc counts references.
 */
struct rpcrdma_client {
	struct rpc_xprt xprt;
	struct rpcrdma_link *link;
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

	struct rpcrdma_client_stats stats;

	spinlock_t backward_lock;	/* see above */
	struct list_head backward_idle;
	unsigned int backward_count;
	unsigned int backward_users;
};

/**
 * struct rpcrdma_stray - a Reply that came when its task was gone
 * @xid: its XID
 * @invalidated: whether the server invalidated a handle as it sent this
 * @handle: that handle
 * @arrived: when
 */
struct rpcrdma_stray {
	__be32 xid;
	bool invalidated;
	u32 handle;
	ktime_t arrived;
};

/**
 * struct rpcrdma_link - one attempt to be connected, and what comes of it
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
 * @wedged: rpcrdma_credits_wedged() when the connection asked last
 * @grow_again: pending while it does not ask for memory for more Receives
 * @max_mr_pages: pages that one registration can cover
 * @owed_lock: protects @owed, @forsaken, and @stray of requests that this link has
 * @owed: requests of killed tasks, which take back their memory; by ->list
 * @forsaken: registrations of such requests whose tasks are gone, until the
 *	Reply; ->tag is its XID
 * @call: the header being built; XPRT_LOCKED
 * @reply: the header being decoded; ->received only
 */
struct rpcrdma_link {
	struct kref ref;
	struct rpcrdma_client *client;
	struct rpcrdma_conn *conn;
	struct completion ready;
	struct completion closed;
	bool established;
	int status;
	bool closing;
	struct rpcrdma_credits credits;
	bool wedged;
	struct delayed_work grow_again;
	unsigned int max_mr_pages;
	spinlock_t owed_lock;		/* see above */
	struct list_head owed;
	struct list_head forsaken;
	struct rpcrdma_message call;
	struct rpcrdma_message reply;
};

/* Bits of rpcrdma_request.state, which wake those who wait for their end */
enum {
	RPCRDMA_POSTING,	/* until the outcome of posting is known */
	RPCRDMA_GATHERING,	/* the device reads the task's pages */
	RPCRDMA_OWED,		/* rpcrdma_request_retire() awaits the Reply */
	RPCRDMA_INVALIDATING,	/* on behalf of rpcrdma_request_retire() */
};

/* Memory that stays with a slot, so that few RPCs need to allocate any */
struct rpcrdma_buffer {
	void *data;
	size_t size;
};

/**
 * struct rpcrdma_request - a slot, and the RPC that has it
 * @rqst: the rpc_rqst, which has to be first
 * @list: in client->idle, or in link->owed
 * @all: in client->slots
 * @call_buffer: behind rq_buffer
 * @reply_buffer: behind rq_rbuffer
 * @link: the connection it is on the wire of, with a reference; else NULL. Set
 *	while RPCRDMA_POSTING, cleared when its memory is out of reach.
 * @state: see above
 * @release_snd_buf: what rq_release_snd_buf was; see rpcrdma_request_prepare()
 * @form: how it travels
 * @mapping_since: jiffies, since when it cannot be mapped; zero: it could be
 * @sent: jiffies, when the Call was posted last; set before @link
 * @overdue: its connection is to be closed when its task waits again; queue_lock
 * @invalidation: its registrations: first the Call's, then the Reply's
 * @invalidation_status: how it ended
 * @reply_mr: the first of the Reply's registrations
 * @reply_segments: how many of these
 * @posted: the Call is on its way, so that a Reply may be one
 * @replied: matched; further Replies are dropped
 * @settled: the Reply came while the request was in link->owed; owed_lock
 * @recv: the Reply, if there is more to do before it can be copied
 * @payload: the inline part of the Reply, in @recv
 * @payload_len: octets of it
 * @written: octets in the Write chunk or the Reply chunk
 * @error: zero, or what the RPC is to fail with
 * @stray: the Reply, if it came after the task had gone and before the request
 *	was in @link->owed; that link's owed_lock. Or one of an earlier Call: it
 *	counts if it has this XID, and came after this Call was sent.
 *
 * The client owns all of them until it is destroyed, sunrpc those not in
 * client->idle.
 */
struct rpcrdma_request {
	struct rpc_rqst rqst;
	struct list_head list;
	struct list_head all;
	struct rpcrdma_buffer call_buffer;
	struct rpcrdma_buffer reply_buffer;

	struct rpcrdma_link *link;
	unsigned long state;
	void (*release_snd_buf)(struct rpc_rqst *rqst);
	struct rpcrdma_form form;
	unsigned long mapping_since;
	unsigned long sent;
	bool overdue;
	struct rpcrdma_invalidation invalidation;
	int invalidation_status;
	struct rpcrdma_mr *reply_mr;
	unsigned int reply_segments;

	bool posted;
	bool replied;
	bool settled;
	struct rpcrdma_recv *recv;
	const void *payload;
	u32 payload_len;
	u32 written;
	int error;
	struct rpcrdma_stray stray;
};

static inline struct rpcrdma_client *rpcrdma_client_of(struct rpc_xprt *xprt)
{
	return container_of(xprt, struct rpcrdma_client, xprt);
}

static inline struct rpcrdma_request *rpcrdma_request_of(struct rpc_rqst *rqst)
{
	return container_of(rqst, struct rpcrdma_request, rqst);
}

/* link.c */
extern struct workqueue_struct *rpcrdma_connect_wq;

void rpcrdma_link_init(struct rpcrdma_client *client);
void rpcrdma_link_get(struct rpcrdma_link *link);
void rpcrdma_link_put(struct rpcrdma_link *link);
bool rpcrdma_link_has_credit(struct rpcrdma_link *link);
void rpcrdma_link_granted(struct rpcrdma_link *link, u32 credits);
void rpcrdma_link_credit_back(struct rpcrdma_link *link);
void rpcrdma_link_connect(struct rpc_xprt *xprt, struct rpc_task *task);
void rpcrdma_link_close(struct rpc_xprt *xprt);

/* slot.c */
int rpcrdma_slots_create(struct rpcrdma_client *client);
void rpcrdma_slots_destroy(struct rpcrdma_client *client);
void rpcrdma_slots_limit(struct rpcrdma_client *client,
			 const struct rpcrdma_credits *credits);
void rpcrdma_slots_note_stray(struct rpcrdma_client *client,
			      const struct rpcrdma_link *link,
			      const struct rpcrdma_stray *stray);
void rpcrdma_slot_alloc(struct rpc_xprt *xprt, struct rpc_task *task);
void rpcrdma_slot_free(struct rpc_xprt *xprt, struct rpc_rqst *rqst);
int rpcrdma_buffers_alloc(struct rpc_task *task);
void rpcrdma_buffers_free(struct rpc_task *task);
int rpcrdma_request_prepare(struct rpc_rqst *rqst, struct xdr_buf *buf);
void rpcrdma_request_retire(struct rpcrdma_request *request);
int rpcrdma_request_invalidate(struct rpcrdma_request *request,
			       void (*done)(struct rpcrdma_work *work,
					    int status));
void rpcrdma_request_put_mrs(struct rpcrdma_request *request);

/* call.c */
int rpcrdma_call_send(struct rpc_rqst *rqst);
void *rpcrdma_copy_octets(void *to, const struct xdr_buf *from);

/* reply.c */
void rpcrdma_reply_received(struct rpcrdma_link *link,
			    struct rpcrdma_recv *recv);
void rpcrdma_reply_proceed(struct rpcrdma_request *request);
void rpcrdma_reply_find_stray(struct rpcrdma_request *request);
void rpcrdma_rpc_fail(struct rpc_rqst *rqst, int error);

/* callback.c */
#ifdef CONFIG_SUNRPC_BACKCHANNEL
int rpcrdma_backward_setup(struct rpc_xprt *xprt, unsigned int min_reqs);
size_t rpcrdma_backward_maxpayload(struct rpc_xprt *xprt);
unsigned int rpcrdma_backward_slots(struct rpc_xprt *xprt);
void rpcrdma_backward_free(struct rpc_rqst *rqst);
void rpcrdma_backward_destroy(struct rpc_xprt *xprt, unsigned int max_reqs);
#endif
void rpcrdma_backward_received(struct rpcrdma_link *link,
			       struct rpcrdma_recv *recv);
void rpcrdma_backward_refuse(struct rpcrdma_conn *conn,
			     struct rpcrdma_message *msg,
			     enum rpcrdma_errcode error);
int rpcrdma_backward_reply(struct rpcrdma_link *link, struct rpc_rqst *rqst);

/* sysctl.c */
int rpcrdma_client_sysctl_init(void);
void rpcrdma_client_sysctl_exit(void);

#endif /* RPCRDMA_CLIENT_PRIVATE_H */
