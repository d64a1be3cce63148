/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * One reliable connection over rdma_cm, the same for both roles: its states, its
 * receive buffers, its send queue and its memory registrations.
 *
 * States of a connection
 *
 *	RESOLVING ---> CONNECTING --.
 *	                             >--> ESTABLISHED ---> CLOSING ---> CLOSED
 *	PENDING -----> ACCEPTING ---'
 *
 * rpcrdma_conn_connect() makes a client's connection. A listener makes a server's
 * for each connection request. Every state before CLOSING may go to CLOSING, by
 * rpcrdma_conn_close() or for a cause that design.rst lists.
 *
 * Then the teardown runs, once. It drains the queue pair, completes all posted chains,
 * waits until no thread is between rpcrdma_conn_enter() and rpcrdma_conn_leave(),
 * undoes all mappings and registrations, and calls ->closed. No other callback runs
 * then or later, and neither the peer nor the device can reach any memory. A device that does
 * not stop (@stuck) still can, for good: then that memory and what was posted are never freed.
 *
 * Contexts: ->received and ->done run in softirqs, on real-time kernels in a workqueue of the RDMA
 * core, never at the same time on one connection. If the role has chosen so by @in_wq, ->received
 * and those ->done that ask for it run in a work of the connection, not at the same time either.
 * All other callbacks run in workqueues. None should sleep for long, and in softirqs none must.
 *
 * "Entered" as a Context means: the caller is between rpcrdma_conn_enter() and
 * rpcrdma_conn_leave(), or in ->received or ->done. A Send is taken, posted and given back
 * there. A role may give back a message or a registration at any time, even after ->closed and
 * after its last rpcrdma_conn_put(). Functions that may sleep say so; all others may be called
 * anywhere but in hard interrupts.
 */
#ifndef RPCRDMA_CONN_CONN_H
#define RPCRDMA_CONN_CONN_H

#include <linux/cache.h>
#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/scatterlist.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "../wire/message.h"
#include "counters.h"

/* Room for "[" IPv6 address "%" scope "]:" port, and NUL */
#define RPCRDMA_PEER_LEN	64

/* How long, in jiffies, a server waits for a client that takes or answers nothing */
#define RPCRDMA_STALL_TIMEOUT	(30 * HZ)

/* RDMA Reads that one end serves or issues at a time: the device reserves memory for each. */
#define RPCRDMA_READS_MAX	32U

/* Forward messages for which a new connection has Receives (RFC 8166 section 3.3.3) */
#define RPCRDMA_FIRST_CREDITS	1U

struct rpcrdma_conn;
struct rpcrdma_history;
struct rpcrdma_listener;
struct rpcrdma_recv;
struct rpcrdma_role_status;
struct rpcrdma_shared;
struct xdr_buf;

/*
 * What a role may still own when its connection ends: a Receive or a registration. Private to
 * the layer, see resource.c. While threads can enter, only the one that takes or gives back the
 * resource writes @held, without a lock, and @orphan is false. After that, resource_lock protects
 * both.
 */
struct rpcrdma_resource {
	struct list_head all;	/* entry in the connection's list of all of this kind */
	bool held;		/* a role owns it */
	bool orphan;		/* the connection has ended, and the owner's put frees it */
};

/* A Send or a registration in its pool. Private to the layer, see pool.c. */
struct rpcrdma_pooled {
	struct list_head list;	/* entry in pool->idle */
	bool rested;		/* idle since rpcrdma_pool_rest() ran last */
};

/**
 * struct rpcrdma_conn_ops - what a connection calls in its role
 * @established: both ends agree, and the thresholds are known. The role may post
 *	from now on. Not called if the connection fails before.
 * @received: a message arrived. The role owns @recv until rpcrdma_recv_put(). On a
 *	server the first may come before ->established.
 * @writable: something that was short is there again: space in the send queue,
 *	after a post returned -EAGAIN or rpcrdma_chain_waits() returned true;
 *	registrations or Sends, after rpcrdma_mr_get() or rpcrdma_send_get() returned
 *	NULL or rpcrdma_send_left() returned false.
 * @keepalive: after each keepalive period; on iWARP first when a client's early periods are over,
 *	see keepalive.c; may be NULL. Not before ->established has returned; the connection may
 *	be closing by then.
 * @closed: the connection has ended, as described above. @status is the first
 *	cause, a negative errno. Called exactly once, and never at the same time as
 *	another callback. The role keeps its reference until rpcrdma_conn_put().
 * @describe: fill in what only the role knows; may be NULL. Called while the connection
 *	is established, in process context, entered.
 * @rest: free what the role keeps and has not used since this was called last; may be
 *	NULL. Called in process context, entered, some time after rpcrdma_rest_later(), and
 *	again as long as it returns true.
 *
 * Callbacks may run at the same time, but none beside ->closed, and ->received not beside a ->done
 * that runs where it does.
 */
struct rpcrdma_conn_ops {
	void (*established)(struct rpcrdma_conn *conn);
	void (*received)(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv);
	void (*writable)(struct rpcrdma_conn *conn);
	void (*keepalive)(struct rpcrdma_conn *conn);
	void (*closed)(struct rpcrdma_conn *conn, int status);
	void (*describe)(struct rpcrdma_conn *conn, struct rpcrdma_role_status *status);
	bool (*rest)(struct rpcrdma_conn *conn);
};

/**
 * struct rpcrdma_conn_config - what a role asks of a connection
 * @version_max: the highest version of the protocol that this end uses on the
 *	connection. Buffers are as long as this version and all lower ones need.
 * @ops: the role's callbacks
 * @role: the role's own object, kept in conn->role
 * @params: what this end tells the other in its private data (RFC 8797)
 * @omit_private_data: send none; then the defaults hold for both ends
 * @credits: forward messages in flight, at most
 * @backward_credits: backward messages in flight, at most
 * @send_pages: pages of payload that one Send should be able to gather; the device may
 *	allow fewer, see conn->send_sges
 * @rw_contexts: rdma_rw contexts in flight, at most; zero on a client
 * @read_depth: RDMA Reads that a server has in flight, at most; both ends may allow fewer
 * @in_wq: run ->received, and the ->done of chains posted with %RPCRDMA_POST_DONE_IN_WQ, in a
 *	workqueue, see deliver.c. Without it all run in softirqs, which saves a switch to a
 *	kworker, but then they must not sleep or take a lock that others take with softirqs
 *	enabled. The teardown calls what is left in a workqueue.
 * @sq_full: incremented when a post finds no space in the send queue; may be NULL
 * @swapper: not zero while the connection carries swap: then the layer allocates
 *	from the memory reserves. May be NULL; otherwise valid until ->closed.
 * @mrs_made: incremented for each registration that is made. May be NULL; otherwise valid
 *	until ->closed, and no other connection counts there meanwhile.
 * @timeout_ms: how long the connection may take to become established; not zero
 * @shared_receives: on a server, Receives that connections share at most, see shared.c; zero:
 *	the connection has its own, as also on a device that cannot share them
 *
 * On the stack of the role; the connection keeps a copy.
 */
struct rpcrdma_conn_config {
	u32 version_max;
	const struct rpcrdma_conn_ops *ops;
	void *role;
	struct rpcrdma_params params;
	bool omit_private_data;
	unsigned int credits;
	unsigned int backward_credits;
	unsigned int send_pages;
	unsigned int rw_contexts;
	unsigned int read_depth;
	bool in_wq;
	atomic_long_t *sq_full;
	const atomic_t *swapper;
	unsigned long *mrs_made;
	unsigned int timeout_ms;
	unsigned int shared_receives;
};

/**
 * struct rpcrdma_recv - a received message
 * @conn: the connection on which it arrived
 * @data: its octets, aligned to eight
 * @len: number of octets
 * @invalidated: the peer invalidated a handle with this message
 * @inv_handle: that handle
 * @list: the role's, while it owns the message
 *
 * Belongs to its connection; if connections share it, only until rpcrdma_recv_put(). The teardown
 * frees it, or rpcrdma_recv_put() if a role still owns it then.
 */
struct rpcrdma_recv {
	struct rpcrdma_conn *conn;
	void *data;
	u32 len;
	bool invalidated;
	u32 inv_handle;
	struct list_head list;
	/* private: to recv.c and shared.c */
	struct rpcrdma_shared *shared;	/* where it is posted; NULL: on the connection */
	struct rpcrdma_resource resource;
	struct llist_node deliver;	/* entry in conn->received; deliver.c */
	struct ib_cqe cqe;
	struct ib_recv_wr wr;
	struct ib_sge sge;
};

void rpcrdma_recv_put(struct rpcrdma_recv *recv);
int rpcrdma_recv_expect(struct rpcrdma_conn *conn, unsigned int credits, unsigned int backward);
void rpcrdma_recv_less(struct rpcrdma_conn *conn, unsigned int less);
bool rpcrdma_recv_few(const struct rpcrdma_conn *conn);

/**
 * struct rpcrdma_chain - work requests that are posted together
 * @done: called once for each chain that was posted, when the queue pair has finished with
 *	it. @status is zero, or a negative errno if the connection broke first:
 *	-EREMOTEIO if it broke because the peer denied this chain access to memory,
 *	otherwise -ENOTCONN. If the chain is not signalled, called when a later one that
 *	is signalled is done. A signalled one may overtake RDMA Reads posted before it.
 *
 * Embedded in the object that the work requests belong to, which must live until @done; and
 * for good if the connection is stuck, because the device may still complete the chain.
 */
struct rpcrdma_chain {
	void (*done)(struct rpcrdma_chain *chain, int status);
	/* private: to chain.c */
	struct ib_cqe cqe;
	struct rpcrdma_conn *conn;
	struct ib_send_wr *first;
	struct ib_send_wr *last;
	struct rpcrdma_chain *next;
	unsigned long since;		/* when it was posted, if signalled; jiffies */
	struct llist_node deliver;	/* entry in conn->done; deliver.c */
	u16 wrs;
	bool signalled;
	bool deliver_later;
	bool denied;			/* the peer denied it access to memory */
};

/* Ask the device for a completion. A chain that waited for space always has one. */
#define RPCRDMA_POST_SIGNALLED	BIT(0)
/* Without space the layer posts it later, before all others: for callers that cannot try again. */
#define RPCRDMA_POST_LATER	BIT(1)
/* Call ->done in a workqueue if the role has chosen that by @in_wq. */
#define RPCRDMA_POST_DONE_IN_WQ	BIT(2)

int rpcrdma_chain_post(struct rpcrdma_conn *conn, struct rpcrdma_chain *chain,
		       struct ib_send_wr *first, struct ib_send_wr *last, unsigned int flags,
		       bool *posted);
bool rpcrdma_chain_waits(struct rpcrdma_conn *conn);

/**
 * struct rpcrdma_send - a Send: a header buffer, and pages gathered after it
 * @chain: the chain that ends with the Send. Its @done gives the Send back, unless the role
 *	sets another one, which calls rpcrdma_send_put().
 * @wr: the Send itself, last of its chain. The role may change the opcode to
 *	IB_WR_SEND_WITH_INV and set ex.invalidate_rkey.
 * @data: buffer for the transport header and for payload that is copied
 * @size: octets that @data has room for
 * @len: octets used in @data, the first element of the Send
 * @private: the role's
 *
 * Belongs to its connection; the teardown frees it. The role owns it from
 * rpcrdma_send_get() to rpcrdma_send_put().
 */
struct rpcrdma_send {
	struct rpcrdma_chain chain;
	struct ib_send_wr wr;
	void *data;
	u32 size;
	u32 len;
	void *private;
	/* private: to send.c; the elements after the first are DMA-mapped pages */
	struct rpcrdma_pooled pooled;
	unsigned int num_sge;
	struct ib_sge sge[];
};

struct rpcrdma_send *rpcrdma_send_get(struct rpcrdma_conn *conn);
int rpcrdma_send_header(struct rpcrdma_send *send, const struct rpcrdma_message *msg);
int rpcrdma_send_copy(struct rpcrdma_send *send, const struct xdr_buf *buf, u32 at, u32 octets,
		      u32 limit);
u32 rpcrdma_send_can_gather(const struct rpcrdma_conn *conn, const struct xdr_buf *buf);
int rpcrdma_send_gather(struct rpcrdma_send *send, const struct xdr_buf *buf);
int rpcrdma_send_post(struct rpcrdma_send *send, struct ib_send_wr *first, unsigned int flags,
		      bool *posted);
bool rpcrdma_send_left(struct rpcrdma_conn *conn, unsigned int count);
void rpcrdma_send_put(struct rpcrdma_send *send);

/**
 * struct rpcrdma_mr - a registration: memory of a client that the server may reach
 * @segment: handle, length and offset for the peer, once it is mapped
 * @list: the role's, while it owns the registration
 * @tag: the role's, while it owns the registration
 * @reg_wr: to be posted before the Send that offers @segment
 * @mapped: the memory is DMA-mapped, so the peer may reach it
 *
 * Belongs to its connection. The teardown frees it, or rpcrdma_mr_put() if a role
 * still owns it then. The role owns it from rpcrdma_mr_get() to rpcrdma_mr_put(),
 * which expects it invalidated.
 */
struct rpcrdma_mr {
	struct rpcrdma_segment segment;
	struct list_head list;
	u32 tag;
	struct ib_reg_wr reg_wr;
	bool mapped;
	/* private: to mr.c */
	struct rpcrdma_pooled pooled;
	struct rpcrdma_resource resource;
	struct rpcrdma_conn *conn;
	struct ib_mr *mr;
	struct ib_send_wr inv_wr;
	struct scatterlist *sgl;
	unsigned int max_sg;
	unsigned int num_sg;
	enum dma_data_direction direction;
};

/**
 * struct rpcrdma_invalidation - registrations to be taken away from the peer
 * @chain: @chain.done is called when the peer can reach none of @mrs any more
 * @mrs: the registrations, by list; the connection's until @chain.done
 *
 * Embedded in the object that the registrations belong to, as the chain is.
 */
struct rpcrdma_invalidation {
	struct rpcrdma_chain chain;
	struct list_head mrs;
};

void rpcrdma_sg_keep(struct scatterlist *sgl, unsigned int num);
struct rpcrdma_mr *rpcrdma_mr_get(struct rpcrdma_conn *conn);
unsigned int rpcrdma_mr_add(struct rpcrdma_mr *mr, struct page **pages,
			    unsigned int offset, unsigned int len);
int rpcrdma_mr_map(struct rpcrdma_mr *mr, enum dma_data_direction direction);
int rpcrdma_mr_invalidate(struct rpcrdma_conn *conn, struct rpcrdma_invalidation *invalidation);
bool rpcrdma_mr_unmap(struct rpcrdma_mr *mr);
void rpcrdma_mr_put(struct rpcrdma_mr *mr);

/* Whether a device tells that a queue pair takes no more shared Receives, see qp_drain_shared() */
enum rpcrdma_last_wqe {
	RPCRDMA_LAST_WQE_UNKNOWN,
	RPCRDMA_LAST_WQE_NOT_TOLD,	/* it did not when it had to */
	RPCRDMA_LAST_WQE_TOLD,		/* it has: this stays */
};

/*
 * What a device can do, and its connections. One for each ib_device, made and freed with it by
 * device.c. Each connection holds a reference until its teardown is over, and the removal of
 * the device waits for the last one.
 */
struct rpcrdma_device {
	struct ib_device *ib;
	bool usable;			/* it registers memory by work request */
	bool no_clients;		/* but it does not invalidate: usable by a server alone */
	unsigned int max_mr_pages;	/* pages that one registration can cover */
	unsigned int max_sg_len;	/* octets of one element of a scatterlist; a page or more */
	enum ib_mr_type mr_type;	/* IB_MR_TYPE_SG_GAPS if the device supports it */
	/* RDMA Reads that one queue pair serves at a time, and issues at a time */
	unsigned int max_read_responder;
	unsigned int max_read_initiator;
	/* private: to shared.c */
	struct mutex shared_lock;	/* protects @shared and @shared_turn */
	struct list_head shared;	/* shared receive queues; the connections free them */
	unsigned int shared_turn;	/* completion vector of the next connection; may wrap */
	atomic_t shared_recvs;		/* Receives of these queues */
	atomic_long_t shared_limits;	/* reports that few were posted */
	atomic_long_t shared_empty;	/* how often the last one was taken */
	enum rpcrdma_last_wqe last_wqe;
	atomic_long_t exceeded;		/* connections closed: the peer sent more than it may */
	/* private: to device.c */
	struct list_head all;		/* entry in rpcrdma_devices */
	u32 id;				/* later devices have higher ones */
	struct kref ref;
	spinlock_t lock;		/* protects @conns */
	struct list_head conns;
	struct completion unused;
};

void rpcrdma_rest_later(struct rpcrdma_conn *conn);

/* Of a client */
struct rpcrdma_conn *
rpcrdma_conn_connect(struct net *net, const struct sockaddr *src, const struct sockaddr *dst,
		     const struct rpcrdma_conn_config *config);

/* Of a server */
struct rpcrdma_listener *rpcrdma_listener_create(struct net *net, const struct sockaddr *addr,
						 void (*incoming)(void *role), void *role);
const struct sockaddr *rpcrdma_listener_address(struct rpcrdma_listener *listener);
struct rpcrdma_conn *rpcrdma_listener_next(struct rpcrdma_listener *listener);
void rpcrdma_listener_destroy(struct rpcrdma_listener *listener);
void rpcrdma_listener_accepted(struct rpcrdma_listener *listener);
void rpcrdma_listener_refused(struct rpcrdma_listener *listener, enum rpcrdma_refusal why, int err,
			      const struct sockaddr_storage *local,
			      const struct sockaddr_storage *peer);
int rpcrdma_conn_accept(struct rpcrdma_conn *conn, const struct rpcrdma_conn_config *config);

/* Of both */
void rpcrdma_conn_close(struct rpcrdma_conn *conn, int status);
void rpcrdma_conn_log_version(struct rpcrdma_conn *conn, u32 version);
void rpcrdma_conn_get(struct rpcrdma_conn *conn);
void rpcrdma_conn_put(struct rpcrdma_conn *conn);

/* Private to the layer, down to struct rpcrdma_conn, of which these are parts */

/*
 * The account of a send queue. Only signalled completions give space back. At most a third of
 * the queue may follow the last signalled work request. So a chain of up to half the
 * queue finds space in the end.
 */
struct rpcrdma_sq {
	unsigned int size;		/* work requests that fit */
	unsigned int free;		/* that fit now */
	unsigned int unsignalled_wrs;	/* posted after the last signalled one */
	unsigned int unsignalled_chains; /* chains that they belong to */
};

/* A queue of chains, linked by next. They are their owners'. */
struct rpcrdma_chains {
	struct rpcrdma_chain *first;
	struct rpcrdma_chain **end;	/* where the next one is linked in */
};

/* Sends or registrations. The teardown frees what is in it. */
struct rpcrdma_pool {
	spinlock_t lock;		/* protects what follows */
	bool wanted;			/* a role waits for one */
	unsigned int num;
	unsigned int num_idle;
	struct list_head idle;		/* the next one to be taken first */
	unsigned int kept;		/* how many stay when the connection rests; constant */
	/* frees an idle one that was taken out; constant */
	void (*free)(struct rpcrdma_conn *conn, struct rpcrdma_pooled *entry);
};

/* The size of each queue and pool */
struct rpcrdma_depths {
	unsigned int credits;		/* forward messages in flight */
	unsigned int batch;		/* most chains without a signal, or Receives in a repost */
	unsigned int sends;		/* most Sends; also most Receives */
	unsigned int sq;		/* asked for; the RDMA core adds what rdma_rw needs */
	unsigned int rq;
	unsigned int rw_contexts;
	unsigned int cqes;
};

/* Without a lock */
struct rpcrdma_keepalive {
	bool heard;			/* each Receive sets it, @timer clears it */
	bool posted;			/* @timer sets it, ->done of @chain clears it */
	unsigned int count;		/* early periods that have begun */
	struct delayed_work timer;	/* while the connection is established */
	struct rpcrdma_chain chain;
	struct ib_rdma_wr wr;
};

/* What a server's connection counts as for the limits in admission.c */
enum rpcrdma_admission {
	RPCRDMA_ADMISSION_NONE,		/* gone, or a client's */
	RPCRDMA_ADMISSION_WAITING,	/* a request at its listener, even if it is closed */
	RPCRDMA_ADMISSION_BEGINNING,	/* taken, and not yet established */
	RPCRDMA_ADMISSION_ESTABLISHED,
	RPCRDMA_ADMISSION_ENDING,	/* closing */
	RPCRDMA_ADMISSION_COUNT
};

/*
 * A connection. What is above "private:" is for its role, too.
 *
 * The role has a reference, which rpcrdma_conn_connect() or rpcrdma_listener_next()
 * returns. The connection itself has one, which the teardown drops at its end. Each orphan
 * has one. The memory is freed with the last of them, the verbs resources by the teardown.
 */
struct rpcrdma_conn {
	/*
	 * What each RPC reads and nobody changes: one cache line, down to config.version_max.
	 * Valid from CONNECTING or ACCEPTING on.
	 */
	const struct rpcrdma_conn_ops *ops;
	void *role;			/* the role's own object */
	struct rpcrdma_device *device;
	struct ib_qp *qp;
	struct rpcrdma_agreement agreement; /* on a client valid from ->established on */
	unsigned int credits;		/* as @config has, or less on a small device */
	unsigned int backward_credits;
	unsigned int max_chain;		/* work requests in one chain, at most */
	struct rpcrdma_conn_config config;

	struct rdma_cm_id *cm_id;	/* valid until ->closed has returned */
	u32 port;			/* of @device */
	unsigned int send_sges;		/* elements of one Send, without the header's */
	unsigned int read_depth;	/* RDMA Reads that this end may have outstanding */
	/*
	 * Memory was bounced for the device, so only whole pages can be neighbours in a
	 * registration. No lock: only one thread at a time may map registrations.
	 */
	bool bounced;
	struct sockaddr_storage local_addr; /* valid from ->established on; on a server always */
	struct sockaddr_storage peer_addr;
	char peer[RPCRDMA_PEER_LEN];	/* "address:port", for logs and traces */
	u32 id;				/* for traces and for those who watch */
	bool server;
	/*
	 * The device does not stop, so it may reach for good what the role has posted and
	 * registered, see conn_keep(). Valid in ->done and ->closed.
	 */
	bool stuck;
	struct net *net;		/* of its addresses; holds a reference */
	struct rpcrdma_counters counters ____cacheline_aligned;

	/* private: to the layer. conn.c: life; establish.c: its beginning */
	struct kref ref;
	struct rcu_head rcu;
	struct completion unused;	/* @users is killed and zero */
	ktime_t state_since;		/* post_lock */
	ktime_t established_at;		/* when ->established was called; zero: it was not */
	bool version_logged;		/* by rpcrdma_conn_log_version() */
	int status;			/* why it closes; post_lock */
	const char *rejected;		/* by the peer, why; rdma_cm's text, or NULL */
	struct rpcrdma_params peer_params;
	u8 peer_reads;			/* RDMA Reads that the peer serves at a time */
	struct mutex setup;		/* held while verbs resources are made */
	struct delayed_work timer;	/* until it is established */
	struct work_struct connect_work;
	struct work_struct established_work;
	struct work_struct broken_work;
	struct work_struct teardown_work;
	struct list_head device_list;	/* entry in device->conns; device->lock */
	struct list_head pending_list;	/* entry in listener->pending; listener->lock */
	enum rpcrdma_admission admission;	/* admission_lock; WAITING: post_lock, too */

	struct delayed_work rest_work;		/* pool.c */

	/* history.c; NULL until it is established, then constant */
	struct rpcrdma_history *history;
	struct list_head history_list;		/* entry in history->conns */

	/* qp.c: made with @setup held, destroyed by the teardown */
	struct ib_cq *cq;
	struct rpcrdma_shared *shared;	/* where its Receives come from; NULL: it has its own */
	struct completion last_wqe;	/* no other Receive of @shared will complete */
	struct ib_cqe error_cqe;	/* of registrations and invalidations */

	/*
	 * From here on, members that the same threads write share a cache line. First what each
	 * RPC only reads.
	 */
	struct percpu_ref users ____cacheline_aligned; /* threads that have entered */
	struct ib_pd *pd;		/* qp.c, as @cq */
	struct rpcrdma_depths depths;	/* qp.c, as @cq */
	enum rpcrdma_state state;	/* post_lock */
	u32 recv_size;			/* octets of a Receive; constant */

	/* recv_wc() only */
	unsigned int recvs_taken ____cacheline_aligned;	/* by roles, ever; may wrap */
	struct rpcrdma_keepalive keepalive;		/* keepalive.c; @heard is first */

	/* chain.c: @post_lock protects these, @state and posting to @qp */
	spinlock_t post_lock ____cacheline_aligned;
	bool sq_wanted;			/* a role waits for space in the send queue */
	struct rpcrdma_sq sq;
	struct rpcrdma_chains fifo;	/* posted chains, in the order of posting */
	struct rpcrdma_chains waiting;	/* chains to be posted first when there is space */
	struct work_struct writable_work;
	struct delayed_work sq_watchdog; /* of the oldest signalled chain in @fifo */

	/* deliver.c */
	struct llist_head received ____cacheline_aligned;
	struct llist_head done;
	struct work_struct deliver_work;

	/* send.c */
	struct rpcrdma_pool sends ____cacheline_aligned;
	u32 send_size;			/* octets; constant while there are any */
	unsigned long send_taken;	/* when one was taken last, in jiffies */

	/* recv.c: @recv_lock protects these; what shared.c uses, @shared->lock */
	spinlock_t recv_lock ____cacheline_aligned;
	struct ib_recv_wr *recvs_free;	/* the first idle one; a chain that can be posted */
	unsigned int num_recvs;
	unsigned int recv_most;		/* what is beyond that is freed when it comes back */
	unsigned int num_recvs_free;
	unsigned int recvs_returned;	/* by roles, ever; may wrap */
	unsigned int recv_batch;	/* reposted at a time */
	bool recv_open;			/* posting is allowed; before, nothing was posted */
	struct list_head recvs;		/* all, by resource.all */
	unsigned int recv_credits;	/* forward messages they are for; roles may read it */
	unsigned int recv_backward;	/* backward messages; roles may read it */

	/* mr.c */
	struct rpcrdma_pool mrs ____cacheline_aligned;
	struct list_head all_mrs;	/* by resource.all; mrs.lock */
	struct delayed_work mr_work;

	/* resource.c: of what a role still owns when the teardown takes it away */
	spinlock_t resource_lock;
};

/* Octets that the client may send inline in a message of @version, up to version_max */
static inline u32 rpcrdma_conn_call_threshold(const struct rpcrdma_conn *conn, u32 version)
{
	return rpcrdma_wire_threshold(version, conn->agreement.call_threshold);
}

/* Octets that the server may send inline */
static inline u32 rpcrdma_conn_reply_threshold(const struct rpcrdma_conn *conn, u32 version)
{
	return rpcrdma_wire_threshold(version, conn->agreement.reply_threshold);
}

/* A caller that gets true also sees all that was written before the transition. */
static inline bool rpcrdma_conn_established(const struct rpcrdma_conn *conn)
{
	/* Pairs with conn_set_state_locked(). */
	return smp_load_acquire(&conn->state) == RPCRDMA_STATE_ESTABLISHED;
}

/**
 * rpcrdma_conn_enter - keep the verbs resources of a connection in place
 * @conn: the connection
 *
 * Until rpcrdma_conn_leave(), the device, the protection domain and the queue pair
 * stay, if they exist at all. So the caller can build work requests, post them, and
 * undo them if posting fails. ->received and ->done need not enter. Calls may be nested; the
 * inner one may fail.
 *
 * Entering does not delay closing or draining, only what follows in the teardown, ->closed
 * included. So the caller may wait for something that ends when the connection closes, but
 * not for a ->done, which may itself wait for the caller.
 *
 * Context: the caller holds a reference to @conn or owns a resource of it.
 * Return: false if the teardown has got too far; then the caller does not leave.
 */
static inline bool rpcrdma_conn_enter(struct rpcrdma_conn *conn)
{
	return percpu_ref_tryget_live(&conn->users);
}

static inline void rpcrdma_conn_leave(struct rpcrdma_conn *conn)
{
	percpu_ref_put(&conn->users);
}

#endif /* RPCRDMA_CONN_CONN_H */
