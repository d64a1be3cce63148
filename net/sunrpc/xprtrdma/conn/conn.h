/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * One reliable connection over rdma_cm, the same for both roles: its life, its
 * receive buffers, its send queue and its memory registrations.
 *
 * Life of a connection
 *
 *	RESOLVING ---> CONNECTING --.
 *	                             >--> ESTABLISHED ---> CLOSING ---> CLOSED
 *	PENDING -----> ACCEPTING ---'
 *
 * A client's connection starts with rpcrdma_conn_connect(), a server's with a
 * connection request that a listener reports. Every state but CLOSED may go to
 * CLOSING: a step that failed or timed out, an rdma_cm event, a work request
 * that completed in error, a device that goes away, or rpcrdma_conn_close().
 * Whoever makes the transition queues the teardown, so it runs once. It
 * disconnects and drains the queue pair, completes all posted work, waits until
 * nobody is between rpcrdma_conn_enter() and rpcrdma_conn_leave(), and undoes
 * all mappings and registrations. Only then it reports ->closed: from there on
 * no other callback is running or will run and neither the peer nor the device
 * can reach any memory. When ->closed has returned, the queue pair and the
 * connection identifier are destroyed.
 *
 * Contexts: unless it says otherwise a function may be called where sleeping
 * is allowed. Callbacks run in a workqueue and should not sleep for long;
 * ->received and ->done of one connection never run at the same time as
 * themselves or each other.
 *
 * "Entered" says that a function may be called between rpcrdma_conn_enter() and
 * rpcrdma_conn_leave() only, or in ->received or ->done. A Send is taken, posted
 * and given back so. A message or a registration that a role owns may be given
 * back at any time, also after ->closed and after the last rpcrdma_conn_put():
 * then that frees it and touches nothing else.
 */
#ifndef RPCRDMA_CONN_CONN_H
#define RPCRDMA_CONN_CONN_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/scatterlist.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "../wire/message.h"

/* "[" IPv6 address "%" scope "]:" port, and NUL */
#define RPCRDMA_PEER_LEN	64

/* How long to wait, in jiffies, for a peer that takes nothing off our hands */
#define RPCRDMA_STALL_TIMEOUT	(30 * HZ)

/*
 * RDMA Reads served or issued at a time. The device reserves memory for each;
 * with this many of a whole registration each the link is never idle.
 */
#define RPCRDMA_READS_MAX	32U

/* Forward messages that a connection has Receives for when it starts */
#define RPCRDMA_FIRST_CREDITS	4U

struct rpcrdma_conn;
struct rpcrdma_listener;
struct rpcrdma_recv;

/* Private to the layer: what a role may own after its connection, resource.c */
struct rpcrdma_resource {
	struct list_head all;
	bool held;
	bool orphan;
};

enum rpcrdma_conn_state {
	RPCRDMA_CONN_RESOLVING,		/* address, then route */
	RPCRDMA_CONN_CONNECTING,	/* request sent */
	RPCRDMA_CONN_PENDING,		/* request received, not yet answered */
	RPCRDMA_CONN_ACCEPTING,		/* answered, not yet confirmed */
	RPCRDMA_CONN_ESTABLISHED,
	RPCRDMA_CONN_CLOSING,
	RPCRDMA_CONN_CLOSED,
};

/**
 * struct rpcrdma_conn_ops - what a role is told of its connection
 * @established: both ends agree; the thresholds are known. Posting is allowed
 *	from here on. Not called if the connection fails before.
 * @received: a message arrived. The role owns @recv until it gives it to
 *	rpcrdma_recv_put(). May come right before ->established.
 * @writable: send queue space has come back after a post ended with -EAGAIN or
 *	rpcrdma_work_waits() was true, or registrations or Sends after
 *	rpcrdma_mr_get() or rpcrdma_send_get() returned NULL or
 *	rpcrdma_send_left() was false. May run at the same time as the other callbacks.
 * @keepalive: a client's only. Called from a workqueue at each keepalive period
 *	while the connection is established. May run at the same time as the other
 *	callbacks.
 * @closed: the connection has ended as described above; @status is the first
 *	cause, a negative errno. Called exactly once. The role's reference is
 *	still its own: it drops it with rpcrdma_conn_put() when it likes.
 */
struct rpcrdma_conn_ops {
	void (*established)(struct rpcrdma_conn *conn);
	void (*received)(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv);
	void (*writable)(struct rpcrdma_conn *conn);
	void (*keepalive)(struct rpcrdma_conn *conn);
	void (*closed)(struct rpcrdma_conn *conn, int status);
};

/**
 * struct rpcrdma_conn_config - what a role asks of a connection
 * @ops: the role's callbacks
 * @role: the role's own object, kept in conn->role
 * @params: what this end tells the other (RFC 8797)
 * @omit_private_data: it tells nothing: both ends go by the defaults, whatever
 *	@params has
 * @credits: forward messages in flight at most
 * @backward_credits: backward messages in flight at most
 * @send_pages: pages of payload that one Send should be able to gather
 *	besides the header; the device may allow fewer: see conn->send_sges
 * @rw_contexts: rdma_rw contexts in flight at most; the responder's
 * @read_depth: RDMA Reads in flight at most, the responder's; zero: as many as
 *	both ends can, up to %RPCRDMA_READS_MAX
 * @sq_full: incremented when a post finds no room in the send queue; may be
 *	NULL
 * @swapper: while not zero, memory may be short because what it holds has to be
 *	swapped out by this connection, which then takes from the reserves; may
 *	be NULL, or has to stay until ->closed
 * @timeout_ms: for the connection to become established; not zero
 */
struct rpcrdma_conn_config {
	const struct rpcrdma_conn_ops *ops;
	void *role;
	struct rpcrdma_params params;
	bool omit_private_data;
	unsigned int credits;
	unsigned int backward_credits;
	unsigned int send_pages;
	unsigned int rw_contexts;
	unsigned int read_depth;
	atomic_long_t *sq_full;
	const atomic_t *swapper;
	unsigned int timeout_ms;
};

/**
 * struct rpcrdma_recv - a received message
 * @conn: where it arrived
 * @data: the octets, aligned to eight
 * @len: how many
 * @invalidated: whether the peer invalidated a handle as it sent this
 * @inv_handle: that handle
 * @list: the role's, as long as it owns the message
 *
 * Belongs to the connection and is freed by its teardown; one that a role still
 * owns then is freed by rpcrdma_recv_put().
 */
struct rpcrdma_recv {
	struct rpcrdma_conn *conn;
	void *data;
	u32 len;
	bool invalidated;
	u32 inv_handle;
	struct list_head list;
	/* private: recv.c's */
	struct rpcrdma_resource resource;
	struct ib_cqe cqe;
	struct ib_recv_wr wr;
	struct ib_sge sge;
};

void rpcrdma_recv_put(struct rpcrdma_recv *recv);
int rpcrdma_recv_expect(struct rpcrdma_conn *conn, unsigned int credits,
			unsigned int backward);

/**
 * struct rpcrdma_work - a chain of work requests and what to do afterwards
 * @done: called once for each posted work, when the queue pair is through with
 *	it: @status is zero, or a negative errno if the connection broke first:
 *	-EREMOTEIO if that was because the peer denied it access to memory.
 *	One that is not signalled may have to wait long, for a later one that
 *	is. A signalled one may overtake an RDMA Read that is before it.
 *
 * Embedded in what the chain belongs to, which must live until @done.
 */
struct rpcrdma_work {
	void (*done)(struct rpcrdma_work *work, int status);
	/* private: work.c's */
	struct ib_cqe cqe;
	struct rpcrdma_conn *conn;
	struct ib_send_wr *first;
	struct ib_send_wr *last;
	struct list_head list;
	unsigned long since;		/* posted; if signalled */
	u16 wrs;
	bool signalled;
	bool denied;			/* the peer did not allow an RDMA operation */
};

int rpcrdma_work_post(struct rpcrdma_conn *conn, struct rpcrdma_work *work,
		      struct ib_send_wr *first, struct ib_send_wr *last,
		      bool signalled);
int rpcrdma_work_post_later(struct rpcrdma_conn *conn,
			    struct rpcrdma_work *work,
			    struct ib_send_wr *first, struct ib_send_wr *last,
			    bool signalled);
bool rpcrdma_work_waits(struct rpcrdma_conn *conn);

/**
 * struct rpcrdma_send - a Send: a header buffer and what is gathered after it
 * @work: posted with it; @work.done is the role's, and ends with
 *	rpcrdma_send_put()
 * @wr: the Send itself, last of its chain. The role may change the opcode to
 *	IB_WR_SEND_WITH_INV and set ex.invalidate_rkey.
 * @data: buffer for the transport header and for payload that is copied
 * @size: octets in @data
 * @len: octets used in @data, the first element of the Send
 * @private: the role's
 * @list: the connection's, while nobody owns it
 */
struct rpcrdma_send {
	struct rpcrdma_work work;
	struct ib_send_wr wr;
	void *data;
	u32 size;
	u32 len;
	void *private;
	struct list_head list;
	/* private: send.c's; the elements after the first are DMA-mapped pages */
	unsigned int num_sge;
	struct ib_sge sge[];
};

struct rpcrdma_send *rpcrdma_send_get(struct rpcrdma_conn *conn);
int rpcrdma_send_add_page(struct rpcrdma_send *send, struct page *page,
			  unsigned int offset, unsigned int len);
int rpcrdma_send_post(struct rpcrdma_send *send, struct ib_send_wr *first,
		      bool signalled);
int rpcrdma_send_post_later(struct rpcrdma_send *send, struct ib_send_wr *first,
			    bool signalled);
bool rpcrdma_send_left(struct rpcrdma_conn *conn, unsigned int count);
void rpcrdma_send_put(struct rpcrdma_send *send);
void rpcrdma_send_done(struct rpcrdma_work *work, int status);

/**
 * struct rpcrdma_mr - memory that the peer may reach, the requester's
 * @segment: how the peer reaches it, once mapped
 * @list: the role's, while it owns the registration
 * @tag: likewise
 * @reg_wr: to be posted before the Send that offers @segment
 * @mapped: DMA-mapped, and so perhaps reachable by the peer
 *
 * A registration belongs to its connection and dies with it. The role owns one
 * from rpcrdma_mr_get() to rpcrdma_mr_put(), which wants it invalidated.
 */
struct rpcrdma_mr {
	struct rpcrdma_segment segment;
	struct list_head list;
	u32 tag;
	struct ib_reg_wr reg_wr;
	bool mapped;
	/* private: mr.c's */
	struct rpcrdma_resource resource;
	struct rpcrdma_conn *conn;
	struct ib_mr *mr;
	struct ib_send_wr inv_wr;
	enum ib_mr_type mr_type;
	struct scatterlist *sgl;
	unsigned int max_sg;
	unsigned int num_sg;
	enum dma_data_direction direction;
};

/**
 * struct rpcrdma_invalidation - registrations on their way back
 * @work: @work.done is called when none of @mrs can be reached any more
 * @mrs: the registrations
 */
struct rpcrdma_invalidation {
	struct rpcrdma_work work;
	struct list_head mrs;
};

struct rpcrdma_mr *rpcrdma_mr_get(struct rpcrdma_conn *conn);
unsigned int rpcrdma_mr_add(struct rpcrdma_mr *mr, struct page **pages,
			    unsigned int offset, unsigned int len);
int rpcrdma_mr_map(struct rpcrdma_mr *mr, enum dma_data_direction direction);
int rpcrdma_mr_invalidate(struct rpcrdma_conn *conn,
			  struct rpcrdma_invalidation *invalidation);
bool rpcrdma_mr_unmap(struct rpcrdma_mr *mr);
void rpcrdma_mr_put(struct rpcrdma_mr *mr);

/**
 * struct rpcrdma_device - what a device can do, and who uses it
 * @ib: the device
 * @max_send_sge: elements that one Send can gather
 * @max_mr_pages: pages that one registration can cover
 * @max_sg_len: octets that one element of a scatterlist can have, a page or more
 * @mr_type: IB_MR_TYPE_SG_GAPS where the device has it
 * @max_qp_wr: work requests in one queue
 * @max_read_responder: RDMA Reads that it serves at a time, per queue pair
 * @max_read_initiator: RDMA Reads that it issues at a time, per queue pair
 *
 * One per ib_device while that is there; connections hold references and the
 * device's removal waits for the last of them.
 */
struct rpcrdma_device {
	struct ib_device *ib;
	unsigned int max_send_sge;
	unsigned int max_mr_pages;
	unsigned int max_sg_len;
	enum ib_mr_type mr_type;
	unsigned int max_qp_wr;
	unsigned int max_read_responder;
	unsigned int max_read_initiator;
	/* private: device.c's */
	struct kref ref;
	spinlock_t lock;		/* protects conns and removing */
	struct list_head conns;
	bool removing;
	struct completion unused;
};

/* Private to the layer, down to struct rpcrdma_conn, which embeds these types */

/**
 * struct rpcrdma_sq - what is left of a send queue
 * @size: work requests that fit
 * @free: of these, not in use
 * @unsignalled_wrs: in use, behind the last signalled one
 * @unsignalled_works: the chains that these are
 *
 * Room comes back by signalled completions alone. So that every chain of up to
 * half the queue finds room in the end, no more than a third of the queue may
 * lie behind the last signalled work request.
 */
struct rpcrdma_sq {
	unsigned int size;
	unsigned int free;
	unsigned int unsignalled_wrs;
	unsigned int unsignalled_works;
};

/**
 * struct rpcrdma_depths - how large everything of a connection is
 * @credits: forward messages in flight
 * @batch: Receives reposted at a time, and Sends not yet signalled, at most
 * @recvs: receive buffers at most
 * @sends: Sends
 * @sq: entries of the send queue without those that rdma_rw adds
 * @rq: entries of the receive queue
 * @rw_contexts: rdma_rw contexts
 * @cqes: entries of the completion queue
 */
struct rpcrdma_depths {
	unsigned int credits;
	unsigned int batch;
	unsigned int recvs;
	unsigned int sends;
	unsigned int sq;
	unsigned int rq;
	unsigned int rw_contexts;
	unsigned int cqes;
};

/**
 * struct rpcrdma_keepalive - probes a client's connection that is silent
 * @timer: runs as long as the connection is established
 * @work: of the RDMA Write
 * @wr: the RDMA Write
 * @count: how often the timer has run early
 * @posted: @work is under way
 * @heard: a message has arrived since @timer ran
 *
 * Part of a connection.
 */
struct rpcrdma_keepalive {
	struct delayed_work timer;
	struct rpcrdma_work work;
	struct ib_rdma_wr wr;
	unsigned int count;
	bool posted;
	bool heard;
};

/*
 * What a server's connection that is not established counts as. Each of these has
 * a limit of its own, see conn.c: those that end must not keep others from coming
 * back.
 */
enum rpcrdma_admission {
	RPCRDMA_ADMISSION_NONE,		/* established or gone; a client's */
	RPCRDMA_ADMISSION_WAITING,	/* a request that no role has taken */
	RPCRDMA_ADMISSION_BEGINNING,	/* taken, and not established yet */
	RPCRDMA_ADMISSION_ENDING,	/* closing */
	RPCRDMA_ADMISSION_COUNT
};

/**
 * struct rpcrdma_conn - a connection
 * @ops: the role's
 * @role: the role's
 * @config: what the role asked for
 * @credits: forward messages in flight at most: as asked for, or fewer if the
 *	device is too small; from CONNECTING or ACCEPTING on
 * @backward_credits: backward messages in flight at most; as long as @credits
 * @agreement: thresholds and remote invalidation, from ->established on (on
 *	the server from rpcrdma_conn_accept() on)
 * @device: from CONNECTING or ACCEPTING on
 * @cm_id: until ->closed has returned; see rpcrdma_conn_enter()
 * @qp: as long as @cm_id; NULL if it had to be destroyed before ->done
 * @port: of the device
 * @send_sges: elements of one Send besides the header's
 * @max_chain: work requests in one chain at most
 * @read_depth: RDMA Reads that this end may have outstanding; zero: none
 * @bounced: memory turned out to be bounced on its way to the device, so that
 *	only whole pages can be neighbours in a registration; of whoever maps
 *	registrations, which is one thread at a time
 * @local_addr: from ->established on, on the server from the start
 * @peer_addr: always
 * @peer: the other end, "address:port", for logs and traces
 *
 * The role has a reference from rpcrdma_conn_connect() or rpcrdma_listener_next()
 * on. The connection itself has one, which the teardown drops last. The memory is
 * freed with the last of them. The teardown destroys the verbs resources, even if
 * the role still has its reference.
 */
struct rpcrdma_conn {
	const struct rpcrdma_conn_ops *ops;
	void *role;
	struct rpcrdma_conn_config config;
	unsigned int credits;
	unsigned int backward_credits;
	struct rpcrdma_agreement agreement;
	struct rpcrdma_device *device;
	struct rdma_cm_id *cm_id;
	struct ib_qp *qp;
	u32 port;
	unsigned int send_sges;
	unsigned int max_chain;
	unsigned int read_depth;
	bool bounced;
	struct sockaddr_storage local_addr;
	struct sockaddr_storage peer_addr;
	char peer[RPCRDMA_PEER_LEN];

	/* private: to the layer. conn.c: life; establish.c: its beginning */
	struct kref ref;		/* the role's, and the life's until the teardown ends */
	struct rcu_head rcu;
	struct percpu_ref users;	/* between rpcrdma_conn_enter() and ..._leave() */
	struct completion unused;	/* @users is killed, and nobody is inside */
	u32 id;				/* for traces */
	bool server;
	bool was_established;		/* ->established has been called */
	bool undrained;			/* the queue pair could not be drained */
	int status;			/* why it closes; post_lock */
	struct rpcrdma_params peer_params;
	u8 peer_reads;			/* RDMA Reads that the peer serves */
	struct mutex setup;		/* held while verbs resources are made */
	struct delayed_work timer;
	struct work_struct connect_work;
	struct work_struct established_work;
	struct work_struct broken_work;
	struct work_struct teardown_work;
	struct list_head device_list;	/* device->conns; device->lock */
	struct list_head pending_list;	/* the listener's; its lock */
	enum rpcrdma_admission admission;	/* admission_lock */

	struct rpcrdma_keepalive keepalive;	/* keepalive.c */

	/* qp.c: made under @setup, gone in the teardown */
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct rpcrdma_depths depths;
	struct ib_cqe error_cqe;	/* of registrations and invalidations */

	/* work.c: @post_lock protects these, @state and posting to @qp */
	spinlock_t post_lock;
	enum rpcrdma_conn_state state;
	struct rpcrdma_sq sq;
	bool sq_wanted;			/* a post got -EAGAIN */
	struct list_head fifo;		/* posted, in this order */
	struct list_head waiting;	/* to be posted first when there is room */
	struct work_struct writable_work;
	struct delayed_work sq_watchdog; /* of the oldest signalled in @fifo */

	/* send.c: @send_lock protects these */
	spinlock_t send_lock;
	struct list_head sends_free;	/* idle, by list */
	unsigned int num_sends_free;
	unsigned int num_sends;		/* all */
	u32 send_size;			/* constant while there are any */
	bool send_wanted;		/* rpcrdma_send_get() found none */

	/* recv.c: @recv_lock protects these */
	spinlock_t recv_lock;
	struct list_head recvs;		/* all, by resource.all */
	struct list_head recvs_free;	/* to be posted, by list */
	unsigned int num_recvs;
	unsigned int num_recvs_free;
	unsigned int recv_batch;	/* reposted at a time */
	u32 recv_size;			/* constant */
	bool recv_open;			/* posting is allowed */
	unsigned int recv_credits;	/* what there are Receives for: setup */
	unsigned int recv_backward;	/* in the other direction: setup */

	/* mr.c: @mr_lock protects these */
	spinlock_t mr_lock;
	struct list_head mrs;		/* all, by resource.all */
	struct list_head mrs_free;	/* idle, by list */
	struct list_head mrs_isolated;	/* to be freed, by list */
	unsigned int num_mrs_free;
	bool mr_wanted;			/* rpcrdma_mr_get() found none */
	struct delayed_work mr_work;
	struct list_head mr_conns;	/* the shrinker's list, its lock */

	/* resource.c: protects what the teardown finds still owned */
	spinlock_t resource_lock;
};

/* Client's side */
struct rpcrdma_conn *
rpcrdma_conn_connect(struct net *net, const struct sockaddr *src,
		     const struct sockaddr *dst,
		     const struct rpcrdma_conn_config *config);

/* Server's side */
struct rpcrdma_listener *
rpcrdma_listener_create(struct net *net, const struct sockaddr *addr,
			void (*incoming)(struct rpcrdma_listener *listener),
			void *role);
const struct sockaddr *
rpcrdma_listener_address(struct rpcrdma_listener *listener);
void *rpcrdma_listener_role(struct rpcrdma_listener *listener);
struct rpcrdma_conn *rpcrdma_listener_next(struct rpcrdma_listener *listener);
void rpcrdma_listener_destroy(struct rpcrdma_listener *listener);
int rpcrdma_conn_accept(struct rpcrdma_conn *conn,
			const struct rpcrdma_conn_config *config);

/* Both */
void rpcrdma_conn_close(struct rpcrdma_conn *conn, int status);
bool rpcrdma_conn_established(const struct rpcrdma_conn *conn);
bool rpcrdma_conn_enter(struct rpcrdma_conn *conn);
void rpcrdma_conn_leave(struct rpcrdma_conn *conn);
void rpcrdma_conn_get(struct rpcrdma_conn *conn);
void rpcrdma_conn_put(struct rpcrdma_conn *conn);

int rpcrdma_conn_init(void);
void rpcrdma_conn_exit(void);

#endif /* RPCRDMA_CONN_CONN_H */
