/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the files of this layer share.
 *
 * The way of an RPC:
 *
 *	slot.c		slot and buffers
 *	call.c		choose the form, take a credit, register memory, post
 *	receive.c	decode the Reply, match it with the Call
 *	reply.c		invalidate, place, give the credit back, complete
 *	retire.c	instead, if the task ends or starts again without a Reply
 *
 * While a request is on the wire, request->ep is set and holds a reference. This
 * ends when its Reply is complete (reply.c), or in xprt_rdma_request_retire() when
 * its task ends or starts again. That function waits until neither the server nor
 * the device can reach the task's memory. The two never run at once: a request is
 * pinned from the match of its Reply until the RPC is complete, and sunrpc waits
 * for the pin before it calls anything that retires.
 *
 * Locks. An RPC that ends with its Reply takes only sunrpc's:
 *
 *	XPRT_LOCKED	serialises sending, connecting and closing; protects client->ep
 *	queue_lock	a Reply is matched once
 *	reserve_lock	slots
 *	transport_lock	the client's address
 *
 * ->received and ->done of one connection never run at the same time, so what only
 * they touch needs no lock. This layer has two locks of its own:
 *
 *	client->backward_lock	backward Calls; bc_pa_lock nests inside (before 6.7
 *				with sv_cb_lock inside that)
 *	ep->awaiting_lock	requests that are being retired; reserve_lock and the
 *				locks of conn/ nest inside
 */
#ifndef XPRT_RDMA_CLIENT_PRIVATE_H
#define XPRT_RDMA_CLIENT_PRIVATE_H

#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/sched.h>
#include <linux/sunrpc/xprt.h>
#include <linux/wait_bit.h>

#include "../address.h"
#include "../conn/conn.h"
#include "../objects.h"
#include "credits.h"
#include "form.h"

/* Backward Calls that the server may have outstanding (RFC 8167): NFS has one thread by default */
#define XPRT_RDMA_BACKWARD_CREDITS	2

/*
 * Session slots that NFS may offer the server for backward Calls: NFS's default. More than the
 * credits do no harm: a Call without a credit waits at the server.
 */
#define XPRT_RDMA_BACKWARD_SLOTS	16

/* Octets of a backward Call or its Reply: more than NFS's callbacks need. Pages may be larger. */
#define XPRT_RDMA_BACKWARD_MAX	4096

/* From so many octets on, a Send gathers page data instead of copying it. */
#define XPRT_RDMA_GATHER_MIN	8192

/* How long a task that retires its request waits for each thing; then it closes the connection. */
#define XPRT_RDMA_RETIRE_TIMEOUT	(5 * HZ)

/* How long a killed task first waits for its Reply: not longer than a reconnect would take */
#define XPRT_RDMA_AWAIT_REPLY_TIMEOUT	HZ

/* Tunables, sysctl.c */
extern unsigned int xprt_rdma_slot_table_entries;
extern unsigned int xprt_rdma_max_inline_read;
extern unsigned int xprt_rdma_max_inline_write;
extern unsigned int xprt_rdma_private_data;
extern unsigned int xprt_rdma_remote_invalidation;
extern unsigned int xprt_rdma_version_max;

/*
 * Counters for mountstats. Those above @fixup are counted with XPRT_LOCKED held, the others in
 * ->received and ->done. A task that retires its request also counts @invalidations and
 * @recovered, without a lock: a lost count does no harm.
 */
struct xprt_rdma_client_stats {
	unsigned long read_segments;
	unsigned long write_segments;
	unsigned long reply_segments;
	u64 registered;			/* octets offered */
	u64 pullup;			/* octets copied to be sent */
	unsigned long failed;		/* Calls that could not be built */
	unsigned long long_calls;
	unsigned long no_send;		/* no Send was free */
	u64 fixup;			/* octets copied from a Reply */
	u64 placed;			/* octets that the server wrote by RDMA */
	unsigned long bad_replies;
	unsigned long mrs_made;		/* counted by conn/, see its config */
	unsigned long invalidations;	/* posted by the client */
	unsigned long waits_for_send;	/* Replies that came before the Send was done */
	unsigned long recovered;	/* registrations that ended with a connection */
};

/**
 * struct xprt_rdma_client - a transport to one server
 * @xprt: the rpc_xprt; has to be first
 * @ep: the connection, while there is one; XPRT_LOCKED to use it, that and reserve_lock to set it
 * @connect_work: makes @ep; has XPRT_LOCKED while it is pending or running
 * @connect_at: when the last attempt to connect was due, or the pending one is; jiffies
 * @program: RPC program of the task that connects, for the NULL of version.c; XPRT_LOCKED
 * @program_version: its version
 * @softconn: that task fails if it is refused; XPRT_LOCKED
 * @source: address to connect from; AF_UNSPEC: any
 * @detour: address to connect to if @xprt's cannot be reached; AF_UNSPEC: none, or @xprt is
 *	connected to its own; XPRT_LOCKED to use it, siblings look whether there is one
 * @local: address that the last connection was made from; transport_lock
 * @strings: address strings of @xprt
 * @wants_backward: used by NFSv4.1 or later, so the server may send backward Calls
 * @backward_payload: octets of the longest backward Call or Reply on the last connection
 * @version: of the connection; zero while there is none
 * @version_one_until: until when the server is taken for one of version 1, in jiffies;
 *	zero: it is not. See xprt_rdma_version_closed().
 * @stuck: a connection was stuck (conn->stuck), so slots and their buffers are never freed
 * @reply_lost: a Reply on this connection may have been discarded: an RPC may wait in vain
 * @idle: slots not in use, by ->list; reserve_lock
 * @slots: all slots, by ->all; reserve_lock
 * @in_use: slots not in @idle; reserve_lock
 * @limit: slots that may be in use, at least one; reserve_lock. It follows the credits: a Call
 *	with a slot but no credit would block backward Replies, a task without a slot does not.
 * @buffers_size: octets of the buffers of all slots
 * @stats: counters
 * @backward_lock: protects @backward_idle, @backward_count and @backward_users
 * @backward_idle: struct xprt_rdma_backward not in use
 * @backward_count: all struct xprt_rdma_backward
 * @backward_users: what bc_setup asked for and bc_destroy has not given back
 *
 * Made by the class's ->setup, freed by ->destroy. sunrpc counts the references.
 */
struct xprt_rdma_client {
	struct rpc_xprt xprt;
	struct xprt_rdma_endpoint *ep;
	struct delayed_work connect_work;
	unsigned long connect_at;
	u32 program;
	u32 program_version;
	bool softconn;
	struct sockaddr_storage source;
	struct sockaddr_storage detour;
	struct sockaddr_storage local;
	struct rpcrdma_address_strings strings;
	bool wants_backward;
	u32 backward_payload;
	u32 version;
	unsigned long version_one_until;
	bool stuck;
	bool reply_lost;

	struct list_head idle;
	struct list_head slots;
	unsigned int in_use;
	unsigned int limit;
	atomic_long_t buffers_size;

	struct xprt_rdma_client_stats stats;

	spinlock_t backward_lock;	/* for the members below */
	struct list_head backward_idle;
	unsigned int backward_count;
	unsigned int backward_users;
};

/* A Reply that no task was waiting for; part of a request */
struct xprt_rdma_unmatched_reply {
	__be32 xid;
	bool invalidated;		/* the server invalidated @handle with it */
	u32 handle;
	ktime_t arrived;
};

/**
 * struct xprt_rdma_version - the version of a connection, see version.c
 * @offered: the highest version that may be used; constant
 * @settled: the version of all Calls. While it is zero no Call may be sent, and the members
 *	from @header_min to @may_invalidate are not valid.
 * @header_min: octets of a header without chunks
 * @call_threshold: octets that may be sent inline
 * @reply_threshold: octets that may be received inline
 * @names_handle: Calls name a handle that the Reply may invalidate
 * @may_invalidate: a Reply may invalidate a handle of its Call. In version 1 the client's
 *	announcement alone decides: the kernel's server invalidates without one of its own.
 * @xid: of the NULL that asks for the version; zero: nothing is asked
 * @deadline: when the NULL has to be answered, in jiffies; zero: it was not sent
 *
 * Part of an endpoint. Written in ->established, or in ->received when the NULL is answered,
 * before any Call is sent.
 */
struct xprt_rdma_version {
	u32 offered;
	u32 settled;
	u32 header_min;
	u32 call_threshold;
	u32 reply_threshold;
	bool names_handle;
	bool may_invalidate;
	__be32 xid;
	unsigned long deadline;
};

/**
 * struct xprt_rdma_endpoint - one attempt to connect, and the connection that comes of it
 * @ref: one reference of the client, one of the connection until ->closed, one of each
 *	request on the wire, of each backward Call and of each probe
 * @client: valid until @closed is complete
 * @conn: the connection, once it is established; put with the last of @ref
 * @ready: complete when Calls may be sent or the connection has failed
 * @closed: complete when the connection has ended, see conn.h
 * @status: why the connection ended, a negative errno; valid when @closed is complete
 * @closing: the client itself closes the connection
 * @detour: it goes to the client's @detour; constant
 * @probing: a probe of the client's own address has not ended
 * @credits: the credits
 * @version: the version of its messages
 * @wedged: what xprt_rdma_credits_wedged() said last; ->keepalive only
 * @grow_again: pending for a while after there was no memory for Receives
 * @max_mr_pages: pages that one registration can cover
 * @awaiting_lock: protects @awaiting_reply, @orphaned_mrs, and @unmatched of requests
 *	on this endpoint
 * @awaiting_reply: requests with registrations that are being retired, by ->list
 * @orphaned_mrs: registrations of requests that were retired before their Reply
 *	arrived; ->tag is the XID
 * @call: the header being built; XPRT_LOCKED
 * @reply: the header being decoded; ->received only
 *
 * Made for each attempt by client->connect_work, freed with the last of @ref.
 *
 * The holder of XPRT_LOCKED counts in @conn what is sent, waits or cannot be sent, that of
 * reserve_lock tasks that wait for a slot. ->received
 * and ->done count the rest, and the errors that they send.
 */
struct xprt_rdma_endpoint {
	struct kref ref;
	struct xprt_rdma_client *client;
	struct rpcrdma_conn *conn;
	struct completion ready;
	struct completion closed;
	int status;
	bool closing;
	bool detour;
	bool probing;
	struct xprt_rdma_credits credits;
	struct xprt_rdma_version version;
	bool wedged;
	struct delayed_work grow_again;
	unsigned int max_mr_pages;
	spinlock_t awaiting_lock;	/* see above */
	struct list_head awaiting_reply;
	struct list_head orphaned_mrs;
	/* An inline message needs one cache line of each. */
	struct rpcrdma_message call ____cacheline_aligned;
	struct rpcrdma_message reply ____cacheline_aligned;
};

/**
 * struct xprt_rdma_backward - a backward Call and its Reply
 * @rqst: the rpc_rqst; has to be first
 * @list: in client->backward_idle
 * @ep: where the Call arrived, with a reference; NULL while not in use
 * @version: of the Call; the Reply has the same
 * @inv_handle: the handle that the Call names; the Reply repeats it
 * @call: a copy of the Call, so that its Receive is reposted at once
 * @reply: a page for the Reply: svc expects that much space
 *
 * Owned by the client from bc_setup to bc_destroy. One that is in use at bc_destroy is freed
 * when the callback service gives it back.
 */
struct xprt_rdma_backward {
	struct rpc_rqst rqst;
	struct list_head list;
	struct xprt_rdma_endpoint *ep;
	u32 version;
	u32 inv_handle;
	void *call;
	void *reply;
};

/* Bits of xprt_rdma_request.state. A task may wait until one is cleared. */
enum {
	XPRT_RDMA_GATHERING,		/* the device reads the task's pages */
	XPRT_RDMA_AWAITING_REPLY,	/* a task that ends may wait for its Reply */
	XPRT_RDMA_INVALIDATING,		/* a task that ends invalidates its registrations */
};

/*
 * Memory that stays with a slot, so that few RPCs need to allocate any. Part of a request.
 * @data is freed with the slot, or when an RPC needs more.
 */
struct xprt_rdma_buffer {
	void *data;
	size_t size;
};

/**
 * struct xprt_rdma_request - a slot, and the RPC that has it
 * @rqst: the rpc_rqst; has to be first
 * @list: in client->idle, or in ep->awaiting_reply
 * @all: in client->slots
 * @rested: idle since xprt_rdma_slots_rest() was called last; reserve_lock
 * @call_buffer: memory of rq_buffer
 * @reply_buffer: memory of rq_rbuffer
 * @ep: while it is on the wire, its endpoint, with a reference; else NULL. Set before the Call
 *	is posted, cleared when nobody else can reach the memory.
 * @state: %XPRT_RDMA_GATHERING and the other bits
 * @release_snd_buf: what xprt_rdma_request_prepare() found in rq_release_snd_buf
 * @form: how it travels
 * @mapping_since: since when its memory cannot be mapped, in jiffies; zero: it can be
 * @waited: what it has waited for, a bit for each RPCRDMA_A_WAITS; reserve_lock
 *	while nobody has the slot, then XPRT_LOCKED
 * @sent: when the Call was posted last, in jiffies; set before @ep
 * @close_on_wait: when the task waits again and is still on the wire, close the connection;
 *	queue_lock. Reset when the Call is posted.
 * @invalidation: its registrations: first the Call's, then the Reply's
 * @invalidation_status: how the invalidation of a task that ends went
 * @reply_mr: the first of the Reply's registrations
 * @reply_segments: how many registrations the Reply has
 * @posted: the Call is being posted or was, so a Reply may answer it
 * @replied: a Reply has been matched; more of them are dropped
 * @late_reply: the Reply arrived while the request was in ep->awaiting_reply;
 *	awaiting_lock
 * @recv: the Reply, until it has been copied
 * @payload: the inline part of the Reply, in @recv; NULL: none
 * @payload_len: octets of @payload
 * @written: octets that the server wrote into the Write chunk or the Reply chunk
 * @error: zero, or what the RPC fails with
 * @unmatched: a Reply that arrived when sunrpc no longer found the task, and before the request
 *	was in @ep->awaiting_reply; @ep->awaiting_lock. It may be left from an earlier Call:
 *	it counts only if it has this XID and arrived after this Call was sent.
 *
 * Owned by its client, and freed when it has rested, or with the client. sunrpc uses it while it
 * is not in client->idle.
 */
struct xprt_rdma_request {
	struct rpc_rqst rqst;
	struct list_head list;
	struct list_head all;
	bool rested;
	struct xprt_rdma_buffer call_buffer;
	struct xprt_rdma_buffer reply_buffer;

	struct xprt_rdma_endpoint *ep;
	unsigned long state;
	void (*release_snd_buf)(struct rpc_rqst *rqst);
	struct xprt_rdma_form form;
	unsigned long mapping_since;
	u8 waited;
	unsigned long sent;
	bool close_on_wait;
	struct rpcrdma_invalidation invalidation;
	int invalidation_status;
	struct rpcrdma_mr *reply_mr;
	unsigned int reply_segments;

	bool posted;
	bool replied;
	bool late_reply;
	struct rpcrdma_recv *recv;
	void *payload;
	u32 payload_len;
	u32 written;
	int error;
	struct xprt_rdma_unmatched_reply unmatched;
};

static inline struct xprt_rdma_client *xprt_rdma_client_of(struct rpc_xprt *xprt)
{
	return container_of(xprt, struct xprt_rdma_client, xprt);
}

static inline struct xprt_rdma_request *xprt_rdma_request_of(struct rpc_rqst *rqst)
{
	return container_of(rqst, struct xprt_rdma_request, rqst);
}

/* endpoint.c */
void xprt_rdma_ep_release(struct kref *ref);

static inline void xprt_rdma_ep_get(struct xprt_rdma_endpoint *ep)
{
	kref_get(&ep->ref);
}

/* May sleep, with the last reference. */
static inline void xprt_rdma_ep_put(struct xprt_rdma_endpoint *ep)
{
	kref_put(&ep->ref, xprt_rdma_ep_release);
}

extern struct workqueue_struct *xprt_rdma_connect_wq;

void xprt_rdma_ep_connect_worker(struct work_struct *work);
bool xprt_rdma_ep_has_credit(struct xprt_rdma_endpoint *ep);
void xprt_rdma_ep_granted(struct xprt_rdma_endpoint *ep, u32 credits);
void xprt_rdma_ep_credit_back(struct xprt_rdma_endpoint *ep);
void xprt_rdma_ep_connect(struct rpc_xprt *xprt, struct rpc_task *task);
void xprt_rdma_ep_close(struct rpc_xprt *xprt);

/* version.c */
u32 xprt_rdma_version_to_offer(struct xprt_rdma_client *client);
void xprt_rdma_version_begin(struct xprt_rdma_endpoint *ep);
bool xprt_rdma_version_answered(struct xprt_rdma_endpoint *ep, const struct rpcrdma_message *msg);
bool xprt_rdma_version_is_overdue(const struct xprt_rdma_endpoint *ep);
void xprt_rdma_version_closed(struct xprt_rdma_endpoint *ep, int status);

/* slot.c */
int xprt_rdma_slots_create(struct xprt_rdma_client *client);
void xprt_rdma_slots_destroy(struct xprt_rdma_client *client);
bool xprt_rdma_slots_rest(struct rpcrdma_conn *conn);
void xprt_rdma_slots_limit(struct xprt_rdma_client *client,
			   const struct xprt_rdma_credits *credits);
void xprt_rdma_slots_note_unmatched_locked(struct xprt_rdma_client *client,
					   const struct xprt_rdma_endpoint *ep,
					   const struct xprt_rdma_unmatched_reply *unmatched);
void xprt_rdma_slot_alloc(struct rpc_xprt *xprt, struct rpc_task *task);
void xprt_rdma_slot_free(struct rpc_xprt *xprt, struct rpc_rqst *rqst);
int xprt_rdma_buffers_alloc(struct rpc_task *task);
void xprt_rdma_buffers_free(struct rpc_task *task);
int xprt_rdma_request_prepare(struct rpc_rqst *rqst, struct xdr_buf *buf);

/* count.c */
void xprt_rdma_count_wait(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst, unsigned int what);
void xprt_rdma_count_credit_wait(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst);

/* retire.c */
int xprt_rdma_request_invalidate(struct xprt_rdma_request *request,
				 void (*done)(struct rpcrdma_chain *chain, int status));
void xprt_rdma_request_put_mrs(struct xprt_rdma_request *request);
void xprt_rdma_retire_unmatched(struct xprt_rdma_endpoint *ep, const struct rpcrdma_recv *recv,
				__be32 xid);
void xprt_rdma_retire_find_unmatched_locked(struct xprt_rdma_request *request);
void xprt_rdma_request_retire(struct xprt_rdma_request *request);

/* call.c */
int xprt_rdma_call_send(struct rpc_rqst *rqst);

/* receive.c */
void xprt_rdma_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv);

/* reply.c */
void xprt_rdma_reply_matched(struct xprt_rdma_request *request, struct rpcrdma_recv *recv);
void xprt_rdma_reply_proceed(struct xprt_rdma_request *request);
int xprt_rdma_reply_place(struct xprt_rdma_request *request);
struct rpcrdma_mr *xprt_rdma_reply_take_invalidated(struct xprt_rdma_request *request, u32 handle);
void xprt_rdma_rpc_fail(struct rpc_rqst *rqst, int error);

/* backward.c */
int xprt_rdma_backward_setup(struct rpc_xprt *xprt, unsigned int min_reqs);
size_t xprt_rdma_backward_maxpayload(struct rpc_xprt *xprt);
unsigned int xprt_rdma_backward_slots(struct rpc_xprt *xprt);
void xprt_rdma_backward_free(struct rpc_rqst *rqst);
void xprt_rdma_backward_destroy(struct rpc_xprt *xprt, unsigned int max_reqs);
void xprt_rdma_backward_received(struct xprt_rdma_endpoint *ep, struct rpcrdma_recv *recv);
void xprt_rdma_backward_refuse(struct rpcrdma_conn *conn, struct rpcrdma_message *msg);
int xprt_rdma_backward_fill_reply(struct xprt_rdma_endpoint *ep, const struct rpc_rqst *rqst,
				  struct rpcrdma_send *send);
int xprt_rdma_backward_reply(struct xprt_rdma_endpoint *ep, struct rpc_rqst *rqst);

/* xprt.c */
extern const struct rpc_xprt_ops xprt_rdma_client_ops;

/* sysctl.c */
struct ctl_table_header *xprt_rdma_sysctl_register(void);

#endif /* XPRT_RDMA_CLIENT_PRIVATE_H */
