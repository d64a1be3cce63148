/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Functions that the files of this layer share. Only the objects that the Makefile names
 * may include this header: those of the layer, and the tests that make a connection.
 *
 * Locks, in the order in which they are taken. No callback runs under any of them:
 *	conn->setup, listener->setup			mutexes, before rdma_cm's locks
 *	rpcrdma_devices_lock, rpcrdma_listeners_lock	mutexes
 *	device->shared_lock, shared->setup		mutexes
 *	device->lock
 *	conn->post_lock or listener->lock		never both
 *	admission_lock
 *
 * Taken without the spinlocks above, and nothing of the layer inside of them: conn->recv_lock,
 * shared->lock, the locks of conn->sends and conn->mrs, conn->resource_lock, the xarray's of
 * conn.c, the one of history.c.
 *
 * All spinlocks are taken with bottom halves disabled, so a role may post, give back and close
 * in softirqs.
 */
#ifndef RPCRDMA_CONN_PRIVATE_H
#define RPCRDMA_CONN_PRIVATE_H

#ifndef RPCRDMA_CONN_LAYER
#error "conn_private.h is for conn/ and for tests; use conn.h"
#endif

#include <linux/sched.h>
#include <linux/siphash.h>

#include "../objects.h"
#include "conn.h"
#include "status.h"

extern struct workqueue_struct *rpcrdma_wq;
extern struct workqueue_struct *rpcrdma_teardown_wq;

/* Whether swap depends on the connection. */
static inline bool rpcrdma_conn_swaps(const struct rpcrdma_conn *conn)
{
	return conn->config.swapper && atomic_read(conn->config.swapper);
}

/*
 * Memory may be short because dirty pages have to be written over this connection.
 * So allocations of a work item must not start I/O, and a connection that carries
 * swap may use the memory reserves.
 */
static inline unsigned int rpcrdma_memalloc_save(const struct rpcrdma_conn *conn)
{
	unsigned int flags = current->flags;

	current->flags |= PF_MEMALLOC_NOIO;
	if (rpcrdma_conn_swaps(conn))
		current->flags |= PF_MEMALLOC;
	return flags;
}

static inline void rpcrdma_memalloc_restore(unsigned int flags)
{
	current_restore_flags(flags, PF_MEMALLOC_NOIO | PF_MEMALLOC);
}

/* conn.c */
struct rpcrdma_conn *rpcrdma_conn_alloc(bool server);
void rpcrdma_conn_set_net(struct rpcrdma_conn *conn, struct net *net);
bool rpcrdma_conn_set_state(struct rpcrdma_conn *conn, enum rpcrdma_state state,
			    struct work_struct *work);
void rpcrdma_conn_close_locked(struct rpcrdma_conn *conn, int status);
void rpcrdma_conn_wc_error(struct rpcrdma_conn *conn, const struct ib_wc *wc);

/* admission.c */
extern siphash_key_t rpcrdma_host_key;
unsigned int rpcrdma_admission_host(const struct sockaddr_storage *peer);
void rpcrdma_admission_set(struct rpcrdma_conn *conn, enum rpcrdma_admission admission);
bool rpcrdma_admission_may(const struct sockaddr_storage *peer, enum rpcrdma_admission admission);
bool rpcrdma_admission_begin(struct rpcrdma_conn *conn);
unsigned int rpcrdma_admission_waiting(unsigned long pages);
unsigned long rpcrdma_admission_memory(unsigned long ram, unsigned int beginning,
				       unsigned int established);
bool rpcrdma_admission_has_memory(const struct sockaddr_storage *peer, bool now);

/*
 * Where completions run. irq_poll needs softirqs of a CPU to exclude each other, which they do not
 * on real-time kernels since 6.18: its list breaks there. Not in the bound workqueue: other
 * users of its pool poll shared queues directly, and sleep in their handlers.
 */
#define RPCRDMA_POLL \
	(IS_ENABLED(CONFIG_PREEMPT_RT) ? IB_POLL_UNBOUND_WORKQUEUE : IB_POLL_SOFTIRQ)

/* history.c */
void rpcrdma_history_join(struct rpcrdma_conn *conn);
void rpcrdma_history_leave(struct rpcrdma_conn *conn);
bool rpcrdma_history_may_log(struct rpcrdma_conn *conn, bool ended);

/* establish.c */
void rpcrdma_establish_init(struct rpcrdma_conn *conn);
void rpcrdma_establish_stop(struct rpcrdma_conn *conn);
struct rpcrdma_conn *rpcrdma_conn_request(struct net *net, struct rdma_cm_id *id,
					  const struct rdma_cm_event *event);

/* keepalive.c */
void rpcrdma_keepalive_timer(struct work_struct *work);
void rpcrdma_keepalive_start(struct rpcrdma_conn *conn);

/* resource.c */
void rpcrdma_resource_drop(struct rpcrdma_conn *conn, struct rpcrdma_resource *resource,
			   void (*release)(struct rpcrdma_resource *resource));
void rpcrdma_resource_abandon(struct rpcrdma_conn *conn, struct list_head *all,
			      void (*release)(struct rpcrdma_resource *resource));

/* pool.c */
struct rpcrdma_pooled *rpcrdma_pool_take(struct rpcrdma_pool *pool);
void rpcrdma_pool_put(struct rpcrdma_pool *pool, struct rpcrdma_pooled *entry, bool last);
bool rpcrdma_pool_rest(struct rpcrdma_conn *conn, struct rpcrdma_pool *pool);
void rpcrdma_pool_init(struct rpcrdma_pool *pool, unsigned int kept,
		       void (*free)(struct rpcrdma_conn *conn, struct rpcrdma_pooled *entry));
void rpcrdma_pool_rest_work(struct work_struct *work);

/* qp.c */
void rpcrdma_depths_init(struct rpcrdma_depths *depths, const struct rpcrdma_conn_config *config,
			 unsigned int max_qp_wr, unsigned int max_cqe);
int rpcrdma_qp_create(struct rpcrdma_conn *conn);
int rpcrdma_qp_drain(struct rpcrdma_conn *conn, bool posted);
void rpcrdma_qp_destroy(struct rpcrdma_conn *conn);

/* device.c */
extern struct ib_client rpcrdma_device_client;
int rpcrdma_device_attach(struct rpcrdma_conn *conn);
void rpcrdma_device_detach(struct rpcrdma_conn *conn);
void *rpcrdma_device_map_buffer(struct ib_pd *pd, struct ib_sge *sge, u32 size,
				enum dma_data_direction direction, gfp_t gfp);

/* recv.c */
unsigned int rpcrdma_recv_batch(unsigned int messages);
void rpcrdma_recv_init(struct rpcrdma_conn *conn);
int rpcrdma_recv_create(struct rpcrdma_conn *conn, u32 size);
int rpcrdma_recv_open(struct rpcrdma_conn *conn);
void rpcrdma_recv_destroy(struct rpcrdma_conn *conn);
struct rpcrdma_recv *rpcrdma_recv_alloc(struct ib_pd *pd, u32 size, gfp_t gfp);
void rpcrdma_recv_free(struct rpcrdma_recv *recv, struct ib_device *ib);
void rpcrdma_recv_sync(struct ib_device *ib, const struct ib_recv_wr *wr);
void rpcrdma_recv_done(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv,
		       const struct ib_wc *wc);

/* shared.c */

/*
 * A shared receive queue: the Receives, completion queue and protection domain of connections of
 * a server. Made for the first connection, freed by the last one.
 */
struct rpcrdma_shared {
	struct rpcrdma_device *device;
	u32 size;			/* octets of a Receive */
	unsigned int bound;		/* Receives that it may have */
	unsigned int vector;		/* completion vector of @cq */
	struct ib_pd *pd;
	struct ib_cq *cq;

	/* device->shared_lock protects these */
	struct list_head all;		/* entry in device->shared */
	unsigned int conns;		/* that have a place */
	unsigned int cqes;		/* entries of @cq for more of them */

	struct mutex setup;		/* held by @limit_work, and to clear @srq */
	struct ib_srq *srq;		/* NULL: @limit_work has nothing to do */
	struct delayed_work limit_work;
	bool limited;			/* few were posted, or none were made */
	bool broken;			/* new connections do not get it */

	spinlock_t lock;		/* protects what follows, and conn->recvs, ->num_recvs */
	struct list_head recvs;		/* posted or idle, by resource.all */
	struct ib_recv_wr *idle;	/* the first one; a chain that can be posted */
	unsigned int num_idle;
	unsigned int posted;
	unsigned int num;		/* all: also those that connections have */
	unsigned int most;		/* what is beyond that is freed when it comes back */
	unsigned int least;		/* fewest that were posted after @since */
	unsigned long since;		/* when @least was last looked at, in jiffies */
	bool pressed;			/* few are posted, and not yet more */
};

bool rpcrdma_shared_attach(struct rpcrdma_conn *conn, unsigned int cqes);
void rpcrdma_shared_detach(struct rpcrdma_conn *conn);
void rpcrdma_shared_put(struct rpcrdma_recv *recv);
void rpcrdma_shared_lose(struct rpcrdma_conn *conn);
void rpcrdma_shared_stop(struct rpcrdma_device *device);

/* chain.c */
static inline void rpcrdma_chains_init(struct rpcrdma_chains *chains)
{
	chains->first = NULL;
	chains->end = &chains->first;
}

/* A reader that holds no lock may look whether there is a first one. */
static inline void rpcrdma_chains_add(struct rpcrdma_chains *chains, struct rpcrdma_chain *chain)
{
	chain->next = NULL;
	WRITE_ONCE(*chains->end, chain);
	chains->end = &chain->next;
}

void rpcrdma_sq_init(struct rpcrdma_sq *sq, unsigned int size);
bool rpcrdma_sq_take(struct rpcrdma_sq *sq, unsigned int wrs);
bool rpcrdma_sq_signal(struct rpcrdma_sq *sq, unsigned int wrs, bool wanted,
		       unsigned int max_chains);
void rpcrdma_chain_init(struct rpcrdma_conn *conn);
void rpcrdma_chain_flush(struct rpcrdma_conn *conn);

/* deliver.c */
extern struct workqueue_struct *rpcrdma_deliver_wq;
void rpcrdma_deliver_init(struct rpcrdma_conn *conn);
void rpcrdma_deliver_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv);
void rpcrdma_deliver_done(struct rpcrdma_conn *conn, struct rpcrdma_chain *chain);
void rpcrdma_deliver_rest(struct rpcrdma_conn *conn);

/* send.c */
void rpcrdma_send_init(struct rpcrdma_conn *conn);
int rpcrdma_send_create(struct rpcrdma_conn *conn, u32 size);
void rpcrdma_send_destroy(struct rpcrdma_conn *conn);

/* mr.c */
void rpcrdma_mr_init(struct rpcrdma_conn *conn);
void rpcrdma_mr_destroy(struct rpcrdma_conn *conn);

#endif /* RPCRDMA_CONN_PRIVATE_H */
