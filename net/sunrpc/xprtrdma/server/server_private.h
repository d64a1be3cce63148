/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the files of this layer share.
 *
 * A Call, from its arrival to its Reply:
 *
 *	->received ---> service->received ---> request.c ---------------> nfsd
 *	                service->resume -----> request.c                    |
 *	                       ^                   | Read chunks            v
 *	                       `---------------- pull.c                  reply.c
 *
 * No thread waits for a peer, which may be slow, except for a Send when memory is short
 * (reply_get_send()). RDMA Reads that do not fit into one chain go in several: the thread
 * that resumes the request posts the next chain. A request that may not start its Reads yet waits
 * in read admission. A Reply that finds no space in the send queue is posted later. Until then no
 * thread takes another Call of the connection (svcrdma_has_wspace()).
 *
 * The receive buffer of a Call holds the inline part of its arguments. It is given back before
 * the Reply is posted, so there is a Receive for each credit that the Reply grants.
 *
 * Lock order: service->read_start, service->lock, then conn->recv_lock, and what
 * svc_xprt_enqueue() takes: locks of the svc pool, and of the connection in ->xpo_has_wspace.
 * ->received and ->done run in softirqs,
 * so service->lock is taken with softirqs disabled.
 *
 * Chains of work requests are built, posted and undone only between rpcrdma_conn_enter() and
 * rpcrdma_conn_leave(), or in a callback of the connection.
 */
#ifndef SVCRDMA_SERVER_PRIVATE_H
#define SVCRDMA_SERVER_PRIVATE_H

#include <linux/sunrpc/svc.h>
#include <linux/sunrpc/svc_xprt.h>
#include <linux/sunrpc/xprt.h>
#include <rdma/rw.h>

#include "../address.h"
#include "../conn/conn.h"
#include "form.h"
#include "grant.h"

/* What each request has for its chain without an allocation: enough for 64 KiB */
#define SVCRDMA_FEW_RWS	4
#define SVCRDMA_FEW_SG	18

/* The most rw contexts in one chain, whatever the peer sends */
#define SVCRDMA_MAX_RWS	64

/**
 * struct svcrdma_service - what the server has for one connection
 * @xprt: the svc_xprt
 * @conn: the connection; the service holds a reference
 * @users: the RPC server until ->xpo_free, the connection until ->closed, and the
 *	callback client until sunrpc frees it
 * @calls_held: messages that arrived and whose receive buffer is not given back
 * @replied: a Reply was sent since @drop_work ran last
 * @may_invalidate: Replies may invalidate a handle that the requester offers for it
 * @version: version of the last Call that could be used, and of backward Calls; zero before the
 *	first Call. It needs no lock: the client knows each version that it has had.
 * @reply_version: highest version of the Replies that were sent or are being sent, errors not
 *	counted; 1 before the first
 * @requested: credits that the last answered Call asked for, zero before; for the status
 * @lock: protects the members up to @num_idle, XPT_DATA, and what this layer counts for @conn
 * @ready: the connection is established, so Replies can be sent
 * @detached: ->xpo_detach was called; the RPC server may be gone
 * @received: messages that no thread has decoded yet
 * @resume: requests whose RDMA Reads are done, or may start
 * @read_waiters: requests that wait in read admission
 * @dropped: messages that the RPC server has dropped and will get again
 * @lost: the RPC server has dropped a Call that it takes only once
 * @drop_delay: jiffies until the RPC server gets @dropped again; zero: @drop_work does not run
 * @drop_since: where SVCRDMA_DROPS_LIMIT begins, in jiffies: when the first Call was dropped, or
 *	@drop_work last found that a Reply was sent; if a Call is @lost, when that happened
 * @idle: the first request not in use, linked by next_idle
 * @grant: credits
 * @max_idle: most requests in @idle
 * @num_idle: requests in @idle
 * @max_pages: elements of request->pages
 * @max_write_sg: elements of an rw context of RDMA Writes; valid once @ready
 * @max_read_sg: elements of an rw context of RDMA Reads; valid once @ready
 * @drop_work: gives dropped messages to the RPC server again
 * @send_wait: threads that wait for a Send because memory is short
 * @resource_seq: counts Sends, registrations and space in the send queue that come back.
 *	Threads in @send_wait and requests in @read_waiters wait for it to change.
 * @read_start: held from the decision to start RDMA Reads until they are counted
 * @read_wrs: work requests of Reads that are posted or are about to be
 * @num_requests: requests that are allocated, those in @idle too. If all are in @idle, and
 *	@calls_held is zero, no Reply is being made.
 * @num_spares: spare pages of these requests
 * @num_held: pages that they hold for Calls that nfsd has
 *
 * Allocated by ->xpo_accept. The last of @users frees it.
 */
struct svcrdma_service {
	struct svc_xprt xprt;
	struct rpcrdma_conn *conn;
	refcount_t users;
	atomic_t calls_held;
	bool replied;
	bool may_invalidate;
	u32 version;
	u32 reply_version;
	u32 requested;

	spinlock_t lock;	/* protects the members up to num_idle */
	bool ready;
	bool detached;
	struct list_head received;
	struct list_head resume;
	struct list_head read_waiters;
	struct list_head dropped;
	bool lost;
	unsigned long drop_delay;
	unsigned long drop_since;
	struct svcrdma_request *idle;
	struct svcrdma_grant grant;
	unsigned int max_idle;
	unsigned int num_idle;

	unsigned int max_pages;
	unsigned int max_write_sg;
	unsigned int max_read_sg;
	struct delayed_work drop_work;

	wait_queue_head_t send_wait;
	atomic_t resource_seq;
	struct mutex read_start;	/* one thread decides, or several would exceed a limit */
	atomic_t read_wrs;
	atomic_t num_requests;
	atomic_t num_spares;
	atomic_t num_held;
};

/* RDMA Reads or Writes for contiguous memory of the requester, part of a chain */
struct svcrdma_rw {
	struct rdma_rw_ctx ctx;
	struct scatterlist *sgl;	/* local memory, in the sgl of the chain */
	unsigned int num_sg;
};

/**
 * struct svcrdma_rw_chain - RDMA Reads or Writes that are posted as one chain
 * @chain: what the connection posts, unless a Send follows; then it posts that one's chain
 * @direction: DMA_FROM_DEVICE for Reads, DMA_TO_DEVICE for Writes
 * @num_rws: elements of @rw in use
 * @max_rws: elements of @rw
 * @num_sg: elements of @sgl in use
 * @max_sg: elements of @sgl
 * @wrs: work requests of all elements of @rw
 * @rw: @few_rws, which are enough for most chains, or allocated
 * @sgl: @few_sg, or allocated with @rw
 * @few_rws: see @rw
 * @few_sg: see @sgl
 *
 * Part of a request. In use from svcrdma_rw_chain_init() to svcrdma_rw_chain_destroy(), which
 * must come before the CPU uses what was read, and before pages that were written from are
 * released.
 */
struct svcrdma_rw_chain {
	struct rpcrdma_chain chain;
	enum dma_data_direction direction;
	unsigned int num_rws;
	unsigned int max_rws;
	unsigned int num_sg;
	unsigned int max_sg;
	unsigned int wrs;
	struct svcrdma_rw *rw;
	struct scatterlist *sgl;
	struct svcrdma_rw few_rws[SVCRDMA_FEW_RWS];
	struct scatterlist few_sg[SVCRDMA_FEW_SG];
};

/*
 * Whether the time of a Call is taken: of one in eight. A client's XIDs are consecutive numbers in
 * a byte order that is not known, so either the first or the last octet changes each time.
 */
static inline bool svcrdma_xid_timed(__be32 xid)
{
	u32 bits = (__force u32)xid;

	return !((bits ^ bits >> 24) & 7);
}

/*
 * What a request adds to the counters of its connection; zero while the request is idle. Several
 * threads work on messages of one connection, so they do not count there directly:
 * svcrdma_request_put() does, under service->lock, which it takes anyway. Element zero of each
 * array of counters takes what does not count, and is never shown.
 */
struct svcrdma_tally {
	u8 received;		/* form of the message, RPCRDMA_A_TRAFFIC_...; zero: none */
	u8 sent;
	u8 latency;		/* slot of the time from rq_stime to the Reply; zero: not taken */
	u8 error;		/* what was wrong, RPCRDMA_A_ERRORS_...; zero: nothing */
	bool waited_read;	/* it had to wait before it could start its RDMA Reads */
	bool waited_send;	/* it had to wait for a Send */
	u32 received_inline;	/* octets of RPC messages, as in struct rpcrdma_traffic */
	u32 received_placed;
	u32 received_copied;
	u32 sent_inline;
	u32 sent_placed;
	u32 sent_copied;
};

/**
 * struct svcrdma_request - a Call, until its Reply is sent
 * @service: where the Call arrived
 * @list: in service->resume or service->read_waiters
 * @next_idle: the next one in service->idle
 * @recv: the receive buffer; NULL once it is given back
 * @again: the RPC server may get the Call again if it drops it
 * @invalidate: the Reply may invalidate @handle
 * @handle: one of the handles that the Call offered
 * @args: where nfsd finds the arguments
 * @args_len: octets of the arguments that go to pages
 * @results: the data items of the Reply that may go to Write chunks
 * @read_offset: RDMA Reads are posted for the arguments in pages up to this octet
 * @pull_since: when the RDMA Reads in flight were posted, in jiffies
 * @pull_time: how long earlier RDMA Reads took in all, in jiffies
 * @rested: idle since svcrdma_request_rest() was called last
 * @num_spares: spare pages, see pages.c: RDMA Reads fill them
 * @num_pages: other pages, see pages.c: held ones; once the Reply is sent, those that the
 *	device reads
 * @pages: the spare pages, then the others, with a reference to each; service->max_pages elements
 * @rw_chain: RDMA Reads for the Read chunks, later RDMA Writes for the Write
 *	chunks and the Reply chunk
 * @carried: the request whose Reply @rw_chain has a part of: this request, or
 *	the one for which this request is a carrier
 * @carriers: counts those of this request and its carriers whose chains are not done; the
 *	last one puts this request
 * @tally: what it adds to the counters of the connection
 * @msg: the transport header of the Call, which becomes that of the Reply. It is
 *	the last member because it ends with a large array that is rarely used.
 *
 * Also used for a backward message, which needs only @recv, @tally and @msg, and as a carrier.
 *
 * Taken from service->idle, or allocated. Its owners, one after the other: the
 * thread in ->xpo_recvfrom, the RDMA Reads in flight, service->resume or
 * service->read_waiters, the RPC server (rq_xprt_ctxt, or a deferred request),
 * the chains in flight. svcrdma_request_put() ends its use.
 */
struct svcrdma_request {
	struct svcrdma_service *service;
	struct list_head list;
	struct svcrdma_request *next_idle;
	struct rpcrdma_recv *recv;
	bool again;
	bool invalidate;
	u32 handle;
	enum svcrdma_args args;
	u32 args_len;
	struct svcrdma_results results;
	u32 read_offset;
	unsigned long pull_since;
	unsigned long pull_time;
	bool rested;
	unsigned int num_spares;
	unsigned int num_pages;
	struct page **pages;
	struct svcrdma_rw_chain rw_chain;
	struct svcrdma_request *carried;
	refcount_t carriers;
	struct svcrdma_tally tally;
	struct rpcrdma_message msg;
};

/**
 * struct svcrdma_callback - the backward direction of a connection
 * @xprt: the rpc_xprt; the first member, because the core frees it. Its cwnd is what the client
 *	grants and there are Receives for: one Call until its first Reply that grants credits. Its
 *	cong counts backward Calls without a Reply.
 * @last_call: when the last backward Call was sent, in jiffies
 * @strings: address strings of @xprt
 *
 * Allocated by svcrdma_callback_setup() and reference-counted by sunrpc. The svc_xprt holds a
 * reference until it is freed. The callback client in turn holds one to the memory of the
 * service: nfsd does not wait for a Call without a slot, which may thus be sent after
 * ->xpo_free. xprt.transport_lock protects the credits and @last_call.
 *
 * A Call without a Reply keeps its credit as long as the connection lasts, even if nfsd has given
 * up the Call: only a Reply tells that the client has a Receive for another Call (RFC 8166 section
 * 3.3.1, which holds for both directions). Without credits the callback channel is dead, and
 * nobody else notices: nfsd reports a fault, and the client makes a new session, but on the same
 * connection and with the same rpc_xprt. So callback_prepare_request()
 * closes the connection. On the next one nfsd makes the client bind a new channel.
 */
struct svcrdma_callback {
	struct rpc_xprt xprt;
	unsigned long last_call;
	struct rpcrdma_address_strings strings;
};

static inline struct svcrdma_service *svcrdma_service_of(struct svc_xprt *xprt)
{
	return container_of(xprt, struct svcrdma_service, xprt);
}

/*
 * How long a message of @version may be now, in octets with its transport header. The threshold
 * of version 2 holds after the first Reply in it (draft 6.1); until then, and for that Reply,
 * the threshold is that of version 1.
 */
static inline u32 svcrdma_service_threshold(const struct svcrdma_service *service, u32 version)
{
	return rpcrdma_conn_reply_threshold(service->conn,
					    min(version, READ_ONCE(service->reply_version)));
}

/* xprt.c */
void svcrdma_service_wake_locked(struct svcrdma_service *service);
void svcrdma_service_close(struct svcrdma_service *service);
void svcrdma_service_put(struct svcrdma_service *service);
bool svcrdma_service_wait(struct svcrdma_service *service, int seq, unsigned long since);
void svcrdma_service_returned(struct svcrdma_service *service);
u32 svcrdma_service_grant(struct svcrdma_service *service, u32 requested);

/* request.c */
int svcrdma_request_init(void);
void svcrdma_request_exit(void);
struct svcrdma_request *svcrdma_request_get(struct svcrdma_service *service);
void svcrdma_request_put(struct svcrdma_request *request);
void svcrdma_request_discard(struct svcrdma_service *service);
void svcrdma_request_put_recv(struct svcrdma_request *request);
void svcrdma_request_resume(struct svcrdma_request *request);
void svcrdma_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv);
int svcrdma_recvfrom(struct svc_rqst *rqstp);
bool svcrdma_request_rest(struct rpcrdma_conn *conn);

/* read_admission.c */

/*
 * Whether RDMA Reads may start. Without service->read_start the answer may be out of date, which
 * does for waking a request: it asks again.
 */
static inline bool svcrdma_read_may_start(const struct svcrdma_service *service)
{
	return atomic_read(&service->read_wrs) < service->conn->max_chain;
}

void svcrdma_read_wait(struct svcrdma_request *request, int seq);
void svcrdma_read_wake(struct svcrdma_service *service);

/* pull.c */
/* Whether no RDMA Reads of a Call are left to post */
static inline bool svcrdma_pull_all_read(const struct svcrdma_request *request)
{
	return request->read_offset == request->args_len;
}

bool svcrdma_pull_refused(const struct svcrdma_request *request, const struct svc_rqst *rqstp);
void svcrdma_pull_continue(struct svcrdma_request *request, struct svc_rqst *rqstp);
bool svcrdma_pull_finish(struct svcrdma_request *request, struct svc_rqst *rqstp);
void svcrdma_pull_inline(struct svcrdma_request *request, struct svc_rqst *rqstp);

/* pages.c */
void svcrdma_pages_put(struct svcrdma_request *request);
void svcrdma_pages_put_spares(struct svcrdma_request *request);
bool svcrdma_pages_too_many_spares(const struct svcrdma_service *service);
bool svcrdma_pages_take_spares(struct svcrdma_request *request, struct svc_rqst *rqstp,
			       unsigned int num_pages);
void svcrdma_pages_swap_spares(struct svcrdma_request *request, struct svc_rqst *rqstp,
			       unsigned int num_pages);
void svcrdma_pages_hold(struct svcrdma_request *request, struct svc_rqst *rqstp);
void svcrdma_pages_unhold(struct svcrdma_request *request);
void svcrdma_pages_swap_held(struct svcrdma_request *request, struct svc_rqst *rqstp);
void svcrdma_pages_take_reply(struct svcrdma_request *request, struct svc_rqst *rqstp,
			      struct page **end, bool head);
void svcrdma_pages_exit(void);

/* rw.c */
void svcrdma_rw_limits(struct svcrdma_service *service);
int svcrdma_rw_chain_init(struct svcrdma_rw_chain *chain, enum dma_data_direction direction,
			  unsigned int rws, unsigned int sg);
int svcrdma_rw_chain_add(struct svcrdma_request *request, const struct xdr_buf *local, u32 at,
			 u32 octets, const struct rpcrdma_segment *segment, u32 skip);
struct ib_send_wr *svcrdma_rw_chain_wrs(struct svcrdma_request *request, struct ib_send_wr *next);
int svcrdma_rw_chain_post(struct svcrdma_request *request);
void svcrdma_rw_chain_destroy(struct svcrdma_request *request);

/* reply.c */
int svcrdma_sendto(struct svc_rqst *rqstp);
int svcrdma_result_payload(struct svc_rqst *rqstp, unsigned int offset, unsigned int length);
void svcrdma_reply_error(struct svcrdma_request *request);

/* tally.c */
void svcrdma_tally_call(struct svcrdma_request *request);
void svcrdma_tally_pulled(struct svcrdma_request *request);
void svcrdma_tally_locked(struct svcrdma_request *request);

/* Note that the requester denied access to a chunk, if that is the @status of a chain. */
static inline void svcrdma_tally_denied(struct svcrdma_request *request, int status)
{
	if (status == -EREMOTEIO)
		request->tally.error = RPCRDMA_A_ERRORS_DENIED;
}

/* callback.c */
extern struct xprt_class svcrdma_callback_class;
struct rpc_xprt *svcrdma_callback_setup(struct xprt_create *args);
void svcrdma_callback_reply(struct svcrdma_request *request);
int svcrdma_callback_fill_call(const struct svcrdma_service *service, const struct rpc_rqst *rqst,
			       struct rpcrdma_message *msg, struct rpcrdma_send *send);
bool svcrdma_callback_waits(struct svcrdma_service *service, __be32 xid);

/* sysctl.c */
extern unsigned int svcrdma_max_requests;
extern unsigned int svcrdma_max_bc_requests;
extern unsigned int svcrdma_max_req_size;
extern unsigned int svcrdma_max_reads;
extern unsigned int svcrdma_private_data;
extern unsigned int svcrdma_remote_invalidation;
extern unsigned int svcrdma_version_max;
extern unsigned int svcrdma_shared_receives;

/* What happened since the module was loaded; shown by sysctl.c */
enum svcrdma_counter {
	SVCRDMA_STAT_RECV,
	SVCRDMA_STAT_READ,
	SVCRDMA_STAT_WRITE,
	SVCRDMA_STAT_SQ_STARVE,
	SVCRDMA_STAT_DROPPED,
	SVCRDMA_STAT_ERRORS,
	SVCRDMA_STAT_COUNT
};

extern atomic_long_t svcrdma_counters[SVCRDMA_STAT_COUNT];

static inline void svcrdma_count(enum svcrdma_counter which)
{
	atomic_long_inc(&svcrdma_counters[which]);
}

struct ctl_table_header *svcrdma_sysctl_register(void);

#endif /* SVCRDMA_SERVER_PRIVATE_H */
