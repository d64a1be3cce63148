/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * rdma_mem: an RDMA device for tests whose wire is memory. This header has the types that
 * the files of the module share.
 *
 * Locks, outermost first:
 *   mem_devs_lock	the list of devices; a mutex
 *   mem_dev.qps_lock	the list of a device's queue pairs
 *   mem_gsi_lock	the list of devices that take datagrams
 *   mem_iw_lock	iWARP's listeners and connections; iw_cm's own locks come next
 *   mem_qps' xa_lock	which queue pairs can be found by their number
 *   mem_qp.lock	a queue pair's state and its send queue
 *   mem_qp.held_lock	completions that a fault holds back
 *   mem_cq.lock	a completion queue
 *   mem_rq.lock	a receive queue, or an SRQ
 *   mem_dev.fault_lock	faults
 *   mem_mr.lock	whether a registration is valid, and what it covers
 * The engine never holds the locks of two queue pairs, and copies without a lock.
 */
#ifndef RDMA_MEM_H
#define RDMA_MEM_H

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/platform_device.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "compat.h"

#define MEM_MAX_SGE	32	/* SGEs of a work request, in any preset */
#define MEM_MAX_INLINE	512
/* ib_mad's queue pair has so many, whatever the preset says */

/* What the stats file of a device counts. debugfs.c has the names. */
enum mem_stat {
	MEM_STAT_DOORBELLS,	/* calls of post_send and post_recv */
	MEM_STAT_INTERRUPTS,	/* calls of completion handlers */
	MEM_STAT_COMPLETIONS,
	MEM_STAT_SENDS,
	MEM_STAT_SENDS_INV,
	MEM_STAT_WRITES,
	MEM_STAT_WRITES_IMM,
	MEM_STAT_READS,
	MEM_STAT_READS_INV,
	MEM_STAT_REGISTRATIONS,
	MEM_STAT_INVALIDATIONS,
	MEM_STAT_REMOTE_INVALIDATIONS,	/* by Send with Invalidate */
	MEM_STAT_RECEIVES,
	MEM_STAT_OCTETS,	/* copied, but not inline data */
	MEM_STAT_INLINE_OCTETS,
	MEM_STAT_DATAGRAMS,
	MEM_STAT_DATAGRAMS_LOST,
	MEM_STAT_RNR_NAKS,	/* a Send found no Receive */
	MEM_STAT_RETRIES,	/* a message found no queue pair */
	MEM_STAT_FLUSHED,	/* work requests flushed in the error state */
	MEM_STAT_LOCAL_ERRORS,	/* work requests that failed at the requester */
	MEM_STAT_REMOTE_ERRORS,	/* what a responder did not do */
	MEM_STAT_ASYNC_EVENTS,
	MEM_NUM_STATS
};

/* One for each CPU, owned by the device */
struct mem_stats {
	u64 value[MEM_NUM_STATS];
};

/* Rules that a user of the device can break. check.c has their names. */
enum mem_rule {
	MEM_RULE_STATE,		/* posted in a state that does not allow it */
	MEM_RULE_OPCODE,	/* a work request that the queue pair cannot do */
	MEM_RULE_SGE_COUNT,	/* more SGEs than the queue pair has */
	MEM_RULE_INLINE,	/* more inline data than the queue pair takes */
	MEM_RULE_SQ_FULL,	/* no slot: they are free when a completion is polled */
	MEM_RULE_RQ_FULL,
	MEM_RULE_CQ_OVERFLOW,
	MEM_RULE_CQ_POLL,	/* two contexts poll at once */
	MEM_RULE_LKEY,		/* unknown, stale, or not of this protection domain */
	MEM_RULE_ADDRESS,	/* not memory, or outside of a registration */
	MEM_RULE_ACCESS,	/* the registration does not allow this locally */
	MEM_RULE_REG_VALID,	/* registered again before it was invalidated */
	MEM_RULE_REG_KEY,	/* a key of another registration, or of another device */
	MEM_RULE_REG_PAGES,	/* a page list or length that the device cannot do */
	MEM_RULE_INVALIDATE,	/* invalidated what is not valid */
	MEM_RULE_MR_IN_USE,	/* mapped or freed while a work request refers to it */
	MEM_RULE_MAPPING,	/* synced or unmapped otherwise than it was mapped */
	MEM_RULE_UNMAPPED,	/* unmapped or freed while the device may use it */
	MEM_RULE_DIRECTION,	/* mapped for the other direction */
	MEM_RULE_SYNC,		/* posted without a sync for the device */
	MEM_RULE_SEND_TOUCHED,	/* a Send buffer changed between post and execution */
	MEM_RULE_SEND_REUSED,	/* ... between execution and its completion */
	MEM_RULE_RECV_TOUCHED,	/* a Receive buffer changed while it was posted */
	MEM_RULE_PSN,		/* both ends do not agree about the first PSN */
	MEM_RULE_READS,		/* an RDMA Read where none, or fewer, were agreed */
	MEM_RULE_READ_SINK,	/* iWARP: the sink of a Read is no registration for the peer */
	MEM_RULE_LIMIT,		/* an object larger than the device can have */
	MEM_RULE_DRAIN,		/* a queue pair destroyed before all completions were polled */
	MEM_RULE_LEFT,		/* an object left when the device is closed */
	MEM_NUM_RULES
};

/* What a device can do. preset.c fills it; it does not change afterwards. */
struct mem_limits {
	long max_send_sge, max_recv_sge, max_sge_rd;
	long max_fast_reg_page_list_len;
	long sg_gaps;			/* registrations with gaps: 0 or 1 */
	long max_qp_wr, max_cqe;
	long max_qp_rd_atom, max_qp_init_rd_atom;
	long max_mr, max_qp, max_srq;	/* max_srq 0: there are none */
	long max_srq_wr;		/* Receives of one */
	long max_mr_size;		/* octets */
	long max_inline;		/* octets */
	long iwarp;			/* its port is iWARP's, not RoCE's: 0 or 1 */
	long max_sgl_rd;		/* ib_core registers memory for larger Reads; 0: for none */
	long keeps_init;		/* never completes what was posted before RTR: 0 or 1 */
};

/*
 * A device. ib_core owns the memory, from mem_device_add() to dealloc_driver(), when no
 * object is left.
 */
struct mem_dev {
	struct ib_device ib;
	struct list_head entry;		/* in mem_devs; mem_devs_lock protects it */
	struct net_device *ndev;	/* ib_core has a reference while there are users */
	struct platform_device *parent;	/* whose DMA addresses it uses, or NULL */
	struct mem_limits limits;
	bool own_lkeys;			/* each protection domain has an lkey of its own */
	bool fast_reg;			/* reports that it can do fast registration */
	bool checksums;
	bool bounce;			/* mappings have bounce buffers of dma.c */
	bool port_up;			/* as last reported */
	u32 burst;			/* octets that an engine copies while others wait */
	u64 latency;			/* ns that each operation takes at least */
	u64 bandwidth;			/* octets per second, 0: no limit */
	spinlock_t wire_lock;		/* protects wire_free and packets_free */
	u64 wire_free;			/* when the wire is free, ns of CLOCK_MONOTONIC */
	u64 packets_free;		/* the same for messages of one packet */
	struct mem_stats __percpu *stats;
	struct xarray mrs;		/* registrations by key >> 8 */
	u32 mr_next;			/* where the next key is searched */
	struct xarray maps;		/* mappings by the number of each of their pages */
	atomic_t num_maps;
	atomic_long_t memory;		/* octets of its objects, see mem_account() */
	atomic_t num_pds, num_cqs, num_qps, num_mrs, num_srqs, num_ahs, num_listeners;
	atomic_t violations[MEM_NUM_RULES];
	atomic_t lines;			/* violations that may still be printed */
	struct mem_qp *gsi;		/* QP 1; mem_gsi_lock protects it */
	struct list_head gsi_entry;
	struct dentry *debugfs;
	spinlock_t fault_lock;		/* protects faults and their counts */
	struct list_head faults;
	atomic_t num_faults;		/* 0: no need to look at the list */
	atomic_t fault_hits;
	struct work_struct gone_work;	/* removes the device */
	struct list_head qps;		/* all queue pairs, for debugfs */
	spinlock_t qps_lock;		/* protects qps */
};

static inline struct mem_dev *to_mem_dev(struct ib_device *ib)
{
	return container_of(ib, struct mem_dev, ib);
}

static inline void mem_count_add(struct mem_dev *dev, enum mem_stat stat, u64 n)
{
	this_cpu_add(dev->stats->value[stat], n);
}

static inline void mem_count(struct mem_dev *dev, enum mem_stat stat)
{
	mem_count_add(dev, stat, 1);
}

/* Count an object. Return: whether there may be one more. */
static inline bool mem_count_in(atomic_t *count, long limit)
{
	if (atomic_inc_return(count) <= limit)
		return true;
	atomic_dec(count);
	return false;
}

/* ib_core owns the memory of this and of all objects but registrations. */
struct mem_pd {
	struct ib_pd ib;
};

/* Where a datagram goes. An address handle has it, and each work request that uses it. */
struct mem_route {
	union ib_gid sgid;
	union ib_gid dgid;
	u8 network_type;	/* enum rdma_network_type */
	u8 hop_limit;
	u8 traffic_class;
};

struct mem_ah {
	struct ib_ah ib;
	struct mem_route route;
};

/* A piece of a registration with gaps */
struct mem_gap {
	u64 addr;
	u64 offset;	/* octets before it in the registration */
	u32 len;
};

/*
 * A registration. Its owner frees it by dereg_mr; a posted REG_MR has a reference too.
 */
struct mem_mr {
	struct ib_mr ib;
	struct kref ref;
	struct rcu_head rcu;	/* mem_mr_get() looks it up under RCU */
	struct mem_dev *dev;
	bool all;		/* all memory, for get_dma_mr */
	u32 index;		/* the key's upper 24 bits */
	atomic_t wrs;		/* REG_MRs posted and not executed */
	atomic_t users;		/* copies going on; invalidation waits for them */
	spinlock_t lock;	/* protects what follows, but not against map_mr_sg */
	bool valid;
	u32 key;		/* the last valid one */
	int access;
	u64 iova, length;	/* what REG_MR has registered */
	unsigned int max_pages, num_pages;
	unsigned int page_shift;
	u64 *pages;		/* or else gaps */
	struct mem_gap *gaps;
};

static inline struct mem_mr *to_mem_mr(struct ib_mr *ib)
{
	return container_of(ib, struct mem_mr, ib);
}

/* What is in a completion queue */
struct mem_cqe {
	struct ib_wc wc;
	struct mem_rq *rq;	/* of a Receive: whose slot is free when this is polled */
	u32 sq_freed;		/* of a Send: the slots up to this are free then */
	struct ib_sge sge;	/* of a Receive: the first one, or empty */
};

struct mem_cq {
	struct ib_cq ib;
	spinlock_t lock;		/* protects what follows */
	struct mem_cqe *cqe;
	unsigned int size;		/* a power of two */
	unsigned int capacity;		/* what was asked for */
	u32 head, tail;			/* polled, added */
	enum ib_cq_notify_flags armed;	/* IB_CQ_SOLICITED_MASK or 0 */
	bool overflown;
	struct mem_qp *checking;	/* whose Sends are compared without the lock */
	u16 moderate_count, moderate_usec;
	unsigned int unseen;		/* completions without an interrupt */
	unsigned long polling;		/* bit 0: a context polls */
	struct irq_work irq;
	struct hrtimer moderate;
};

static inline struct mem_cq *to_mem_cq(struct ib_cq *ib)
{
	return container_of(ib, struct mem_cq, ib);
}

/* A completion that a fault holds back. A queue pair owns it until it is in its CQ. */
struct mem_held {
	struct list_head entry;
	struct mem_cq *cq;
	struct mem_cqe cqe;
	bool solicited;
};

/* A posted Receive. A mem_rq owns it. */
struct mem_rwqe {
	u64 wr_id;
	unsigned int num_sge;
	u32 sum;
	bool summed;
	struct ib_sge *sge;
};

/* A receive queue: a queue pair's own, or an SRQ's */
struct mem_rq {
	struct mem_dev *dev;
	spinlock_t lock;	/* protects what follows */
	struct mem_rwqe *wqe;
	struct ib_sge *sge;
	unsigned int size, capacity, max_sge;
	u32 head, tail;		/* taken, posted */
	u32 polled;		/* completions polled */
	u32 limit;		/* SRQ: an event if fewer are left; 0: none */
};

struct mem_srq {
	struct ib_srq ib;
	struct mem_rq rq;
};

static inline struct mem_srq *to_mem_srq(struct ib_srq *ib)
{
	return container_of(ib, struct mem_srq, ib);
}

/* What a fault does */
enum mem_action {
	MEM_ACTION_NONE,
	MEM_ACTION_STATUS,
	MEM_ACTION_LATE,
	MEM_ACTION_HOLD,
	MEM_ACTION_UNTIL_END,
	MEM_ACTION_LOSE,
	MEM_ACTION_DUPLICATE,
	MEM_ACTION_NOMEM,
	MEM_ACTION_QP_FATAL,
	MEM_ACTION_GONE,
};

struct mem_verdict {
	enum mem_action action;
	enum ib_wc_status status;
	unsigned int count;
};

/* A work request of the send queue. The queue pair owns it. */
struct mem_swqe {
	u64 wr_id;
	enum ib_wr_opcode opcode;
	int flags;
	unsigned int num_sge;
	union {
		__be32 imm_data;
		u32 invalidate_rkey;
	} ex;
	u32 rkey;		/* Write, Read; REG_MR: the new key */
	u64 remote_addr;
	u64 due;		/* when it is over at the earliest, or 0 */
	u32 length;
	u32 done;		/* octets of a Read or Write that are copied */
	u32 sum;
	bool summed;
	bool counted;		/* by faults: verdict is set, however often it is tried */
	struct mem_verdict verdict;
	int access;		/* REG_MR */
	struct mem_mr *mr;	/* REG_MR: a reference until it is executed */
	struct mem_route route;	/* datagrams */
	void *data;		/* inline data */
	struct ib_sge *sge;
};

/*
 * A queue pair. ib_core owns the memory; destroy_qp waits until no peer's engine has a
 * reference.
 */
struct mem_qp {
	struct ib_qp ib;
	struct mem_dev *dev;
	u32 number;
	spinlock_t lock;	/* protects state and the send queue's indices */
	enum ib_qp_state state;
	bool dying;		/* being destroyed: start no timer */
	bool all_signaled;
	bool established;	/* IB_EVENT_COMM_EST was raised */
	bool fatal;		/* a fault wants IB_EVENT_QP_FATAL */
	bool last_wqe;		/* IB_EVENT_QP_LAST_WQE_REACHED was raised */
	bool connected;		/* was in RTR, or in RTS with iWARP */
	struct ib_qp_attr attr;	/* as modify_qp has set it */
	struct ib_qp_cap cap;
	union ib_gid dgid;
	bool path_checked;	/* dgid is the peer's */
	struct mem_iw *iw;	/* iWARP: its connection, or NULL; mem_iw_lock protects it */
	struct mem_cq *send_cq, *recv_cq;
	/* send queue */
	struct mem_swqe *sq;
	struct ib_sge *sq_sge;
	void *sq_inline;
	unsigned int sq_size;
	u32 sq_posted, sq_next;	/* posted, executed */
	u32 sq_freed;		/* polled; the send CQ's lock protects it */
	u64 sq_due;		/* when all that was posted has passed the wire, or 0 */
	unsigned int retries, rnr_retries;
	/* receive queue */
	struct mem_rq own_rq;
	struct mem_rq *rq;	/* own_rq, or an SRQ's */
	/* the engine */
	struct tasklet_struct engine;
	atomic_t *waits_on;	/* counts the engines that wait for a CPU, this one too */
	struct hrtimer timer;
	atomic_t inbound;	/* peers' engines that may touch its memory */
	refcount_t ref;
	struct completion gone;
	struct list_head entry;	/* in the device's qps */
	/* faults: completions held back, in order, for the send and the receive queue */
	spinlock_t held_lock;	/* protects what follows */
	struct list_head held[2];
	int held_left[2];	/* completions until release, or MEM_HOLD_... */
	bool holding[2];
	struct hrtimer held_timer;
};

static inline struct mem_qp *to_mem_qp(struct ib_qp *ib)
{
	return container_of(ib, struct mem_qp, ib);
}

/* Memory that a work request names: its SGEs, opened for one copy */
struct mem_list {
	struct mem_dev *dev;
	const struct ib_sge *sge;
	unsigned int num_sge;
	u64 length;
	unsigned int at;	/* SGE */
	u32 offset;		/* in it */
	struct mem_mr *mr[MEM_MAX_SGE];
};

/* The checksum of a work request, made before a queue's lock is taken */
struct mem_sum {
	u32 sum;
	bool summed;
};

/* Work requests that are posted with one lock, so that interrupts are on again soon */
#define MEM_POST_BATCH	8

/* Which operations a fault counts */
enum mem_fault_op {
	MEM_OP_SEND, MEM_OP_SEND_INV, MEM_OP_WRITE, MEM_OP_READ, MEM_OP_REG, MEM_OP_LOCAL_INV,
	MEM_OP_RECV, MEM_OP_POST_SEND, MEM_OP_POST_RECV, MEM_OP_DATAGRAM, MEM_OP_STOP,
	MEM_NUM_OPS
};

/* main.c */
extern struct xarray mem_qps;
extern struct workqueue_struct *mem_wq;

/* device.c */
int mem_device_add(const char *name, struct net_device *ndev);
void mem_netdev_changed(struct net_device *ndev);
void mem_netdev_gone(struct net_device *ndev);

/* preset.c */
extern long mem_param_iwarp;
int mem_limits_get(struct mem_limits *limits);
void mem_limits_apply(struct mem_dev *dev, struct ib_device_attr *attr);

/* mr.c */
int mem_alloc_pd(struct ib_pd *pd, struct ib_udata *udata);
int mem_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata);
struct ib_mr *mem_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *mem_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg);
int mem_dereg_mr(struct ib_mr *mr, struct ib_udata *udata);
int mem_map_mr_sg(struct ib_mr *mr, struct scatterlist *sgl, int nents,
		  unsigned int *offset);
void mem_mr_put(struct mem_mr *mr);
enum ib_wc_status mem_mr_register(struct mem_qp *qp, struct mem_swqe *wqe);
enum ib_wc_status mem_mr_invalidate(struct mem_dev *dev, struct ib_pd *pd, u32 key,
				    bool remote);
enum ib_wc_status mem_mr_open(struct mem_dev *dev, struct ib_pd *pd, u32 key, u64 va,
			      u64 len, int access, struct mem_mr **out);
void mem_mr_close(struct mem_mr *mr);
void mem_mr_probe(struct mem_mr *mr, u64 va, bool write);
u32 mem_mr_piece(struct mem_mr *mr, u64 va, void **data);

/* memory.c */
void *mem_alloc(struct mem_dev *dev, size_t n, size_t size);
void mem_free(struct mem_dev *dev, void *data, size_t n, size_t size);
void mem_account(struct mem_dev *dev, long octets);
void *mem_dma_to_virt(struct mem_dev *dev, u64 addr, u64 len);
bool mem_dma_ok(struct mem_dev *dev, u64 addr, u64 len);
void mem_dma_probe(struct mem_dev *dev, u64 addr, u64 len, bool write);
void mem_list_init(struct mem_list *list, struct mem_dev *dev, const struct ib_sge *sge);
enum ib_wc_status mem_list_open(struct mem_list *list, struct mem_dev *dev,
				struct ib_pd *pd, const struct ib_sge *sge,
				unsigned int num_sge, int access);
void mem_list_close(struct mem_list *list);
void mem_list_skip(struct mem_list *list, u64 len);
void mem_list_put(struct mem_list *to, const void *data, u32 len);
void mem_list_copy(struct mem_list *to, struct mem_list *from, u64 len);
bool mem_list_sum(struct mem_dev *dev, struct ib_pd *pd, const struct ib_sge *sge,
		  unsigned int num_sge, u32 *sum);
void mem_sum_make(struct mem_dev *dev, struct ib_pd *pd, const struct ib_sge *sge,
		  int num_sge, bool send, struct mem_sum *sum);

/* dma.c */
void *mem_map_data(struct mem_dev *dev, u64 addr, u64 len, bool cpu);
void mem_map_probe(struct mem_dev *dev, u64 addr, u64 len, bool write);
void mem_map_posted(struct mem_dev *dev, const struct ib_sge *sge, bool send);
void mem_map_init(struct mem_dev *dev);

/* cq.c */
int mem_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr, struct mem_udata *udata);
int mem_destroy_cq(struct ib_cq *cq, struct ib_udata *udata);
int mem_poll_cq(struct ib_cq *cq, int num, struct ib_wc *wc);
int mem_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags);
int mem_modify_cq(struct ib_cq *cq, u16 count, u16 usec);
int mem_resize_cq(struct ib_cq *cq, int cqe, struct ib_udata *udata);
void mem_cq_add(struct mem_cq *cq, const struct mem_cqe *cqe, bool solicited);
void mem_cq_forget(struct mem_cq *cq, struct mem_qp *qp);

/* rq.c */
int mem_rq_init(struct mem_rq *rq, struct mem_dev *dev, unsigned int capacity,
		unsigned int max_sge);
void mem_rq_free(struct mem_rq *rq);
int mem_rq_post(struct mem_dev *dev, struct ib_pd *pd, struct mem_rq *rq,
		const struct ib_recv_wr *wr, const struct ib_recv_wr **bad, bool counts);
void mem_rq_polled(struct mem_rq *rq);
bool mem_rq_take(struct mem_rq *rq, struct mem_rwqe *wqe, struct ib_sge *sge, bool *limit);
int mem_create_srq(struct ib_srq *srq, struct ib_srq_init_attr *attr,
		   struct ib_udata *udata);
int mem_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr,
		   enum ib_srq_attr_mask mask, struct ib_udata *udata);
int mem_query_srq(struct ib_srq *srq, struct ib_srq_attr *attr);
int mem_destroy_srq(struct ib_srq *srq, struct ib_udata *udata);
int mem_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad);

/* qp.c */
int mem_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int mem_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		  struct ib_udata *udata);
int mem_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init);
int mem_destroy_qp(struct ib_qp *qp, struct ib_udata *udata);
struct mem_qp *mem_qp_find(u32 number);
void mem_qp_put(struct mem_qp *qp);
void mem_qp_wait_inbound(struct mem_qp *qp);
void mem_qp_event(struct mem_qp *qp, enum ib_event_type type);
void mem_qp_error(struct mem_qp *qp, enum ib_event_type type);

/* post.c */
int mem_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad);
int mem_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad);

/* engine.c */
void mem_engine_run(struct tasklet_struct *tasklet);
void mem_engine_ring(struct mem_qp *qp);
void mem_engine_forget(struct mem_qp *qp);
enum hrtimer_restart mem_engine_timer(struct hrtimer *timer);
void mem_engine_fault(struct mem_qp *qp, bool recv, const struct mem_verdict *verdict);

/* wire.c: what an operation does at the peer */
struct mem_outcome {
	enum ib_wc_status status;	/* of the work request */
	bool retry;			/* no answer: try again after delay */
	bool rnr;			/* the peer has no Receive: the same */
	bool more;			/* a part is copied: go on */
	u32 octets;			/* copied now */
	u64 delay;			/* ns */
};

#define MEM_WIRE_PACKET	4096		/* octets, the largest path MTU */

static inline bool mem_is_read(enum ib_wr_opcode opcode)
{
	return opcode == IB_WR_RDMA_READ || opcode == IB_WR_RDMA_READ_WITH_INV;
}

void mem_wire_execute(struct mem_qp *qp, struct mem_qp *peer, struct mem_swqe *wqe,
		      struct mem_outcome *out);
void mem_wire_receive_done(struct mem_qp *qp, const struct mem_rwqe *rwqe,
			   struct ib_wc *wc, bool solicited);

/* gsi.c */
int mem_create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *init,
		  struct ib_udata *udata);
int mem_destroy_ah(struct ib_ah *ah, u32 flags);
void mem_gsi_add(struct mem_qp *qp);
void mem_gsi_remove(struct mem_qp *qp);
enum ib_wc_status mem_gsi_send(struct mem_qp *qp, struct mem_swqe *wqe);
bool mem_has_gid(struct mem_dev *dev, const union ib_gid *gid);

/* iw.c */
struct iw_cm_id;
struct iw_cm_conn_param;
extern unsigned long mem_iw_connect_timeout;
int mem_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param);
int mem_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param);
int mem_iw_reject(struct iw_cm_id *id, const void *data, u8 len);
int mem_iw_create_listen(struct iw_cm_id *id, int backlog);
int mem_iw_destroy_listen(struct iw_cm_id *id);
void mem_iw_add_ref(struct ib_qp *qp);
void mem_iw_rem_ref(struct ib_qp *qp);
struct ib_qp *mem_iw_get_qp(struct ib_device *ib, int number);
int mem_iw_query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid);
bool mem_iw_modify_ok(enum ib_qp_state from, enum ib_qp_state to, int mask);
void mem_iw_close(struct mem_qp *qp);

/* check.c */
extern atomic_t mem_violations;
extern const char * const mem_rule_names[MEM_NUM_RULES];
__printf(3, 4) void mem_violation(struct mem_dev *dev, enum mem_rule rule, const char *fmt,
				  ...);
void mem_check_left(struct mem_dev *dev);
bool mem_check_mapped(struct mem_dev *dev, u64 addr, u64 len);
bool mem_check_send(struct mem_qp *qp, const struct mem_swqe *wqe, enum mem_rule rule);
u64 mem_stat_sum(struct mem_dev *dev, enum mem_stat stat);

/* fault.c */
struct mem_verdict mem_fault(struct mem_dev *dev, enum mem_fault_op op);
void mem_fault_free(struct mem_dev *dev);
int mem_fault_parse(struct mem_dev *dev, char *line);
void mem_fault_show(struct mem_dev *dev, struct seq_file *m);

/* hold.c */
#define MEM_HOLD_REQUEST	(-1)	/* until mem_fault_release() */
#define MEM_HOLD_END		(-2)	/* until the queue pair is in the error state, and longer */

void mem_hold_init(struct mem_qp *qp);
void mem_hold_drop(struct mem_qp *qp);
void mem_hold(struct mem_qp *qp, bool recv, int count);
void mem_hold_ends(struct mem_qp *qp);
void mem_complete(struct mem_qp *qp, bool recv, const struct mem_cqe *cqe, bool solicited);
void mem_fault_release(struct mem_dev *dev);

/* debugfs.c */
void mem_debugfs_add(struct mem_dev *dev, const char *name);
void mem_debugfs_remove(struct mem_dev *dev);
void mem_debugfs_init(void);
void mem_debugfs_exit(void);

#endif /* RDMA_MEM_H */
