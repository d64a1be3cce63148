/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the files of this layer share.
 *
 * One Call, from arrival to Reply
 *
 *	->received ---> service->received ---> request.c ----------------> nfsd
 *	                                         | Read chunks              |
 *	                                         v                          v
 *	                                      pull.c <--> service->resume  reply.c
 *
 * More Reads than fit into one chain go in steps: whichever thread takes the
 * request up again posts the next ones, until all is there. No thread waits for
 * them, as the peer may take its time. Where they have to wait for others, the
 * request does so in read admission. Nor does a thread wait for a Reply to
 * leave: if there is no room for it in the send queue, it is posted later, and no
 * more Calls of the connection are taken up until then, see
 * svcrdma_xprt_has_wspace().
 *
 * The receive buffer that a Call arrived in holds the inline part of its
 * arguments until the Reply is about to be posted, and goes back to the
 * receive queue right before: so there is a receive for each credit the
 * Reply grants.
 *
 * Locks: service->lock may be held when one of the svc pool's or of the
 * connection's is taken, by svc_xprt_enqueue(), and is a leaf otherwise. It is
 * inside service->read_admission.start.
 *
 * A thread that touches the queue pair, be it to build a chain of work requests
 * or to undo one, does so between rpcrdma_conn_enter() and
 * rpcrdma_conn_leave(), or in a callback of the connection.
 */
#ifndef SVCRDMA_SERVER_PRIVATE_H
#define SVCRDMA_SERVER_PRIVATE_H

#include <linux/sunrpc/svc.h>
#include <linux/sunrpc/svc_xprt.h>
#include <linux/workqueue.h>
#include <rdma/rw.h>

#include "../conn/conn.h"
#include "drops.h"
#include "form.h"
#include "grant.h"
#include "read_admission.h"
#include "server.h"

/* What one request has room for without another allocation: 64 KiB. */
#define SVCRDMA_FEW_RWS	4
#define SVCRDMA_FEW_SG	18

/* At most as many in one chain of work requests, whatever the peer sends. */
#define SVCRDMA_MAX_RWS	64

/**
 * struct svcrdma_service - one client's connection, as the RPC server sees it
 * @xprt: the svc_xprt
 * @conn: the connection; a reference
 * @users: the RPC server until ->xpo_free, the connection until ->closed.
 *	Whoever is last has @free_work free it.
 * @free_work: frees all of this where sleeping is allowed
 * @calls_held: messages that arrived and whose receive buffer is not given back
 * @replied: a Reply has been sent since dropped Calls were looked at last
 * @lock: protects the members up to @num_idle, and XPT_DATA
 * @ready: the connection is established, so that a Reply can be sent
 * @detached: the RPC server has let go of @xprt, and may be gone itself
 * @received: messages that no thread has looked at
 * @resume: requests to be taken up again: their Read chunks are here, or more
 *	of them can be read
 * @dropped: messages that the RPC server has dropped, and is to get again
 * @drops: when that is
 * @idle: requests not in use
 * @grant: credits
 * @max_idle: more than this are freed instead
 * @num_idle: how many
 * @max_pages: elements of request->pages
 * @drop_work: looks at what was dropped
 * @send_wait: threads that wait for a Send: memory is short
 * @resource_seq: counts what came back, for those who wait in @send_wait or
 *	@read_admission
 * @read_admission: which requests may start RDMA Reads, and which wait
 *
 * Allocated by xpo_accept.
 */
struct svcrdma_service {
	struct svc_xprt xprt;
	struct rpcrdma_conn *conn;
	refcount_t users;
	struct work_struct free_work;
	atomic_t calls_held;
	bool replied;

	spinlock_t lock;	/* protects what follows, up to num_idle */
	bool ready;
	bool detached;
	struct list_head received;
	struct list_head resume;
	struct list_head dropped;
	struct svcrdma_drops drops;
	struct list_head idle;
	struct svcrdma_grant grant;
	unsigned int max_idle;
	unsigned int num_idle;

	unsigned int max_pages;
	struct delayed_work drop_work;

	wait_queue_head_t send_wait;
	atomic_t resource_seq;
	struct svcrdma_read_admission read_admission;
};

/**
 * struct svcrdma_rw - one contiguous piece of the requester's memory
 * @ctx: what the core needs to move it
 * @sgl: the local side, in the chain's sgl
 * @num_sg: elements
 */
struct svcrdma_rw {
	struct rdma_rw_ctx ctx;
	struct scatterlist *sgl;
	unsigned int num_sg;
};

/**
 * struct svcrdma_rw_chain - RDMA Reads or Writes that are posted as one chain
 * @work: to post it on its own
 * @direction: DMA_FROM_DEVICE for Reads, DMA_TO_DEVICE for Writes
 * @num_rws: in use
 * @max_rws: size of @rw
 * @num_sg: in use
 * @max_sg: size of @sgl
 * @wrs: work requests of all of @rw
 * @rw: @few_rws, or allocated
 * @sgl: @few_sg, or allocated
 * @few_rws: enough for most
 * @few_sg: enough for most
 *
 * Part of a request. In use from svcrdma_rw_chain_init() to
 * svcrdma_rw_chain_destroy(), which has to come before the CPU looks at what
 * was read and before pages that were written from are given away.
 */
struct svcrdma_rw_chain {
	struct rpcrdma_work work;
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

/**
 * struct svcrdma_request - a Call, until its Reply has left
 * @service: where it arrived
 * @list: in service->resume, service->read_admission or service->idle
 * @recv: its receive buffer; NULL once given back
 * @again: the RPC server may get the Call again if it drops it
 * @invalidate: whether @handle may be invalidated by the Reply
 * @handle: one that the Call offered
 * @args: where its arguments are to be found
 * @results: what the Reply has for Write chunks
 * @read_offset: octets that have been read, or are being
 * @pull_since: when what is being read was posted, in jiffies
 * @pull_time: jiffies that it took to read what was posted before
 * @num_pages: in use
 * @pages: where Read chunks go until a thread takes the request up again, then
 *	those of the Reply that the device still reads. A reference each.
 * @rw_chain: the Read chunks, later the Write and Reply chunks
 * @carried: the request whose Reply @rw_chain is a part of: this one, or the one
 *	that it was lent to
 * @carriers: requests by whose chains the Reply goes, and that are not done yet;
 *	the last one gives this one back
 * @msg: the Call's transport header, which becomes the Reply's. Last, for it
 *	ends in a large array that is rarely used.
 *
 * Taken from the service's idle list, or allocated; owned in turn by the
 * thread in recvfrom, the Reads in flight, service->resume or
 * service->read_admission, the RPC server as rq_xprt_ctxt or in a deferred
 * request, and the Send in flight.
 */
struct svcrdma_request {
	struct svcrdma_service *service;
	struct list_head list;
	struct rpcrdma_recv *recv;
	bool again;
	bool invalidate;
	u32 handle;
	enum svcrdma_args args;
	struct svcrdma_results results;
	u32 read_offset;
	unsigned long pull_since;
	unsigned long pull_time;
	unsigned int num_pages;
	struct page **pages;
	struct svcrdma_rw_chain rw_chain;
	struct svcrdma_request *carried;
	refcount_t carriers;
	struct rpcrdma_message msg;
};

static inline struct svcrdma_service *svcrdma_service_of(struct svc_xprt *xprt)
{
	return container_of(xprt, struct svcrdma_service, xprt);
}

/* xprt.c */
void svcrdma_service_wake(struct svcrdma_service *service);
void svcrdma_service_close(struct svcrdma_service *service);
bool svcrdma_service_wait(struct svcrdma_service *service, int seq);
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

/* pull.c */
bool svcrdma_pull_refused(const struct svcrdma_request *request, const struct svc_rqst *rqstp);
void svcrdma_pull_start(struct svcrdma_request *request, struct svc_rqst *rqstp);
void svcrdma_pull_continue(struct svcrdma_request *request, struct svc_rqst *rqstp);
bool svcrdma_pull_all_read(const struct svcrdma_request *request);
bool svcrdma_pull_finish(struct svcrdma_request *request, struct svc_rqst *rqstp);
void svcrdma_pull_inline(struct svcrdma_request *request, struct svc_rqst *rqstp);

/* rw.c */
int svcrdma_rw_chain_init(struct svcrdma_rw_chain *chain, enum dma_data_direction direction,
			  unsigned int rws, unsigned int sg);
int svcrdma_rw_chain_add(struct svcrdma_request *request, const struct xdr_buf *local, u32 at,
			 u32 octets, const struct rpcrdma_segment *segment, u32 skip);
struct ib_send_wr *svcrdma_rw_chain_wrs(struct svcrdma_request *request,
					struct ib_send_wr *next);
int svcrdma_rw_chain_post(struct svcrdma_request *request);
void svcrdma_rw_chain_destroy(struct svcrdma_request *request);

/* reply.c */
int svcrdma_sendto(struct svc_rqst *rqstp);
int svcrdma_result_payload(struct svc_rqst *rqstp, unsigned int offset, unsigned int length);
void svcrdma_reply_error(struct svcrdma_request *request, enum rpcrdma_errcode error);
struct rpcrdma_send *svcrdma_service_send_get(struct svcrdma_service *service);

/* denied.c */
void svcrdma_denied_note(const struct svcrdma_request *request, int status);
bool svcrdma_denied_before(const struct svcrdma_request *request);

/* callback.c */
int svcrdma_callback_init(void);
void svcrdma_callback_exit(void);
void svcrdma_callback_reply(struct svcrdma_request *request);
bool svcrdma_callback_waits(struct svcrdma_service *service, __be32 xid);

/* sysctl.c */
extern unsigned int svcrdma_max_requests;
extern unsigned int svcrdma_max_bc_requests;
extern unsigned int svcrdma_max_req_size;
extern unsigned int svcrdma_max_reads;
extern unsigned int svcrdma_private_data;
extern unsigned int svcrdma_remote_invalidation;

/* What became of messages, since the module was loaded. */
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

int svcrdma_sysctl_init(void);
void svcrdma_sysctl_exit(void);

#endif /* SVCRDMA_SERVER_PRIVATE_H */
