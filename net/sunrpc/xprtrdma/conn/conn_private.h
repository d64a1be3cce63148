/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the files of this layer share. Roles read the fields that conn.h
 * documents and nothing else.
 *
 * Locks, outermost first; no callback runs under any of them:
 *	conn->setup			a mutex, outside of the CM's own
 *	devices_lock (device.c)
 *	device->lock
 *	  conn->post_lock
 *	listener->lock (listener.c)
 *	    admission_lock (conn.c)	inside of either
 *	the shrinker's list (mr.c)
 *	  conn->mr_lock
 *	conn->recv_lock, conn->send_lock, conn->resource_lock
 * The spinlocks of a connection are taken with bottom halves off, so a role
 * may post, give back and close in softirq context.
 */
#ifndef RPCRDMA_CONN_PRIVATE_H
#define RPCRDMA_CONN_PRIVATE_H

#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

/* "[" IPv6 address "%" scope "]:" port, and NUL */
#define RPCRDMA_PEER_LEN	64

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

/*
 * @ref: the role's reference, from rpcrdma_conn_connect() or
 *	rpcrdma_listener_next() on, and the life's, which the teardown drops
 *	last. The memory goes with the last of them; the verbs resources go in
 *	the teardown, whoever still holds references.
 * @users: threads between rpcrdma_conn_enter() and rpcrdma_conn_leave(). The
 *	teardown waits for them before it takes the verbs resources away, and once
 *	more before that if it has to destroy the queue pair first.
 * @id: a number for traces
 */
struct rpcrdma_conn {
	const struct rpcrdma_conn_ops *ops;
	void *role;
	struct rpcrdma_conn_config config;
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

	/* conn.c: life; establish.c: its beginning */
	struct kref ref;
	struct rcu_head rcu;
	struct percpu_ref users;
	struct completion unused;
	u32 id;
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

extern struct workqueue_struct *rpcrdma_wq;
extern struct workqueue_struct *rpcrdma_teardown_wq;

/*
 * Memory may be short because what it holds has to be written here: what a work
 * item allocates must not wait for that, and swap may take from the reserves.
 */
static inline unsigned int rpcrdma_memalloc_save(const struct rpcrdma_conn *conn)
{
	unsigned int flags = current->flags;

	current->flags |= PF_MEMALLOC_NOIO;
	if (conn->config.swapper && atomic_read(conn->config.swapper))
		current->flags |= PF_MEMALLOC;
	return flags;
}

static inline void rpcrdma_memalloc_restore(unsigned int flags)
{
	current_restore_flags(flags, PF_MEMALLOC_NOIO | PF_MEMALLOC);
}

/* conn.c */
struct rpcrdma_conn *rpcrdma_conn_alloc(bool server);
void rpcrdma_conn_wait(struct rpcrdma_conn *conn);
bool rpcrdma_conn_begin(struct rpcrdma_conn *conn);
bool rpcrdma_conn_may_wait(const struct sockaddr_storage *peer);
bool rpcrdma_conn_may_begin(const struct sockaddr_storage *peer);
bool rpcrdma_conn_set_state(struct rpcrdma_conn *conn,
			    enum rpcrdma_conn_state state,
			    struct work_struct *work);
void rpcrdma_conn_close_locked(struct rpcrdma_conn *conn, int status);
void rpcrdma_conn_wc_error(struct rpcrdma_conn *conn, const struct ib_wc *wc);
bool rpcrdma_conn_may_receive(struct rpcrdma_conn *conn);

/* establish.c */
void rpcrdma_establish_init(struct rpcrdma_conn *conn);
void rpcrdma_establish_stop(struct rpcrdma_conn *conn);
struct rpcrdma_conn *rpcrdma_conn_request(struct rdma_cm_id *id,
					  const struct rdma_cm_event *event);

/* keepalive.c */
void rpcrdma_keepalive_init(struct rpcrdma_conn *conn);
void rpcrdma_keepalive_start(struct rpcrdma_conn *conn);
void rpcrdma_keepalive_stop(struct rpcrdma_conn *conn);

/* resource.c */
bool rpcrdma_resource_enter(struct rpcrdma_conn *conn,
			    struct rpcrdma_resource *resource);
bool rpcrdma_resource_drop(struct rpcrdma_conn *conn,
			   struct rpcrdma_resource *resource,
			   void (*undo)(struct rpcrdma_resource *resource));
void
rpcrdma_resource_abandon(struct rpcrdma_conn *conn, struct list_head *all,
			 void (*release)(struct rpcrdma_resource *resource));

/* qp.c */
unsigned int rpcrdma_recv_batch(unsigned int messages);
void rpcrdma_depths_init(struct rpcrdma_depths *depths,
			 const struct rpcrdma_conn_config *config,
			 unsigned int max_qp_wr, unsigned int max_cqe);
int rpcrdma_qp_create(struct rpcrdma_conn *conn);
int rpcrdma_qp_drain(struct rpcrdma_conn *conn);
void rpcrdma_qp_destroy(struct rpcrdma_conn *conn);

/* device.c */
int rpcrdma_device_init(void);
void rpcrdma_device_exit(void);
int rpcrdma_device_attach(struct rpcrdma_conn *conn);
void rpcrdma_device_detach(struct rpcrdma_conn *conn);

/* recv.c */
void rpcrdma_recv_init(struct rpcrdma_conn *conn);
int rpcrdma_recv_create(struct rpcrdma_conn *conn, u32 size);
void rpcrdma_recv_stop(struct rpcrdma_conn *conn);
void rpcrdma_recv_destroy(struct rpcrdma_conn *conn);

/* work.c */
void rpcrdma_sq_init(struct rpcrdma_sq *sq, unsigned int size);
bool rpcrdma_sq_take(struct rpcrdma_sq *sq, unsigned int wrs);
bool rpcrdma_sq_signal(struct rpcrdma_sq *sq, unsigned int wrs, bool wanted,
		       unsigned int max_works);
void rpcrdma_work_init(struct rpcrdma_conn *conn);
void rpcrdma_work_flush(struct rpcrdma_conn *conn);

/* send.c */
void rpcrdma_send_init(struct rpcrdma_conn *conn);
int rpcrdma_send_create(struct rpcrdma_conn *conn, u32 size);
void rpcrdma_send_destroy(struct rpcrdma_conn *conn);

/* mr.c */
int rpcrdma_mr_init(void);
void rpcrdma_mr_exit(void);
void rpcrdma_mr_pool_init(struct rpcrdma_conn *conn);
void rpcrdma_mr_create(struct rpcrdma_conn *conn);
void rpcrdma_mr_destroy(struct rpcrdma_conn *conn);

#endif /* RPCRDMA_CONN_PRIVATE_H */
