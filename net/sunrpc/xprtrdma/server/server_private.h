/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the files of this room share.
 *
 * One Call, from arrival to Reply
 *
 *	->received ---> service->received ---> request.c ----------------> nfsd
 *	                                         | Read chunks              |
 *	                                         v                          v
 *	                                      pull.c <--> service->pulled  reply.c
 *
 * More Reads than fit into one chain go in steps: whichever thread takes the
 * request up again posts the next ones, until all is there. No thread waits for
 * them, as the peer may take its time. Where they have to wait for others, the
 * request does so in service->starved. Nor does a thread wait for a Reply to leave:
 * if there is no room for it in the send queue, it is posted later, and no more
 * Calls of the connection are taken up until then, see server_has_wspace().
 *
 * The receive buffer that a Call arrived in holds the inline part of its
 * arguments until the Reply is about to be posted, and goes back to the
 * receive queue right before: so there is a receive for each credit the
 * Reply grants.
 *
 * Locks: service->lock may be held when one of the svc pool's or of the
 * connection's is taken, by svc_xprt_enqueue(), and is a leaf otherwise. It is
 * inside service->reads.
 *
 * A thread that touches the queue pair, be it to build a chain of work requests
 * or to undo one, does so between rpcrdma_conn_enter() and
 * rpcrdma_conn_leave(), or in a callback of the connection.
 */
#ifndef RPCRDMA_SERVER_PRIVATE_H
#define RPCRDMA_SERVER_PRIVATE_H

#include <linux/sunrpc/svc.h>
#include <linux/sunrpc/svc_xprt.h>
#include <linux/workqueue.h>
#include <rdma/rw.h>

#include "../conn/conn.h"
#include "drops.h"
#include "form.h"
#include "grant.h"
#include "server.h"

/* What one request has room for without another allocation: 64 KiB. */
#define RPCRDMA_FEW_TRANSFERS	4
#define RPCRDMA_FEW_SG		18

/* At most as many in one chain of work requests, whatever the peer sends. */
#define RPCRDMA_MAX_TRANSFERS	64

/**
 * struct rpcrdma_service - one client's connection, as the RPC server sees it
 * @xprt: the svc_xprt
 * @conn: the connection; a reference
 * @users: the RPC server until ->xpo_free, the connection until ->closed.
 *	Whoever is last has @free_work free it.
 * @free_work: frees all of this where sleeping is allowed
 * @here: messages that arrived and whose receive buffer is not given back
 * @replied: a Reply has been sent since dropped Calls were looked at last
 * @lock: protects the members up to @num_idle, and XPT_DATA
 * @ready: the connection is established, so that a Reply can be sent
 * @detached: the RPC server has let go of @xprt, and may be gone itself
 * @received: messages that no thread has looked at
 * @pulled: requests to be taken up again: their Read chunks are here, or more
 *	of them can be read
 * @starved: requests that can read no more until others are done. While there
 *	are any, others have Reads in flight, or one that was taken from here is
 *	about to.
 * @dropped: messages that the RPC server has dropped, and is to get again
 * @drops: when that is
 * @idle: requests not in use
 * @grant: credits
 * @max_idle: more than this are freed instead
 * @num_idle: how many
 * @max_pages: elements of request->pages
 * @drop_work: looks at what was dropped
 * @room: threads that wait for a Send: memory is short
 * @returns: counts what came back, for those who wait in @room or @starved
 * @reads: held by the thread that makes them
 * @reading: work requests of Reads, posted or about to be
 *
 * Allocated by xpo_accept.
 */
struct rpcrdma_service {
	struct svc_xprt xprt;
	struct rpcrdma_conn *conn;
	refcount_t users;
	struct work_struct free_work;
	atomic_t here;
	bool replied;

	spinlock_t lock;	/* protects what follows, up to num_idle */
	bool ready;
	bool detached;
	struct list_head received;
	struct list_head pulled;
	struct list_head starved;
	struct list_head dropped;
	struct rpcrdma_drops drops;
	struct list_head idle;
	struct rpcrdma_grant grant;
	unsigned int max_idle;
	unsigned int num_idle;

	unsigned int max_pages;
	struct delayed_work drop_work;

	wait_queue_head_t room;
	atomic_t returns;
	struct mutex reads;		/* see above */
	atomic_t reading;
};

/**
 * struct rpcrdma_transfer - one contiguous piece of the requester's memory
 * @rw: what the core needs to move it
 * @sgl: the local side, in burst->sgl
 * @num_sg: elements
 */
struct rpcrdma_transfer {
	struct rdma_rw_ctx rw;
	struct scatterlist *sgl;
	unsigned int num_sg;
};

/**
 * struct rpcrdma_burst - RDMA Reads or Writes that are posted as one chain
 * @work: to post it on its own
 * @direction: DMA_FROM_DEVICE for Reads, DMA_TO_DEVICE for Writes
 * @num_transfers: in use
 * @max_transfers: size of @transfer
 * @num_sg: in use
 * @max_sg: size of @sgl
 * @wrs: work requests of all transfers
 * @transfer: @few_transfers, or allocated
 * @sgl: @few_sg, or allocated
 * @few_transfers: enough for most
 * @few_sg: enough for most
 *
 * Part of a request. In use from rpcrdma_burst_init() to
 * rpcrdma_burst_destroy(), which has to come before the CPU looks at what was
 * read and before pages that were written from are given away.
 */
struct rpcrdma_burst {
	struct rpcrdma_work work;
	enum dma_data_direction direction;
	unsigned int num_transfers;
	unsigned int max_transfers;
	unsigned int num_sg;
	unsigned int max_sg;
	unsigned int wrs;
	struct rpcrdma_transfer *transfer;
	struct scatterlist *sgl;
	struct rpcrdma_transfer few_transfers[RPCRDMA_FEW_TRANSFERS];
	struct scatterlist few_sg[RPCRDMA_FEW_SG];
};

/**
 * struct rpcrdma_request - a Call, until its Reply has left
 * @service: where it arrived
 * @list: in service->pulled, service->starved or service->idle
 * @recv: its receive buffer; NULL once given back
 * @again: the RPC server may get the Call again if it drops it
 * @invalidate: whether @handle may be invalidated by the Reply
 * @handle: one that the Call offered
 * @args: where its arguments are to be found
 * @results: what the Reply has for Write chunks
 * @pulled: octets that have been read, or are being
 * @pull_since: when what is being read was posted, in jiffies
 * @pull_time: jiffies that it took to read what was posted before
 * @num_pages: in use
 * @pages: where Read chunks go until a thread takes the request up again, then
 *	those of the Reply that the device still reads. A reference each.
 * @burst: the Read chunks, later the Write and Reply chunks
 * @carried: the request whose Reply @burst is a part of: this one, or the one that
 *	it was lent to
 * @carriers: requests by whose bursts the Reply goes, and that are not done yet; the
 *	last one gives this one back
 * @msg: the Call's transport header, which becomes the Reply's. Last, for it
 *	ends in a large array that is rarely used.
 *
 * Taken from the service's idle list, or allocated; owned in turn by the
 * thread in recvfrom, the Reads in flight, service->pulled or service->starved,
 * the RPC server as rq_xprt_ctxt or in a deferred request, and the Send in
 * flight.
 */
struct rpcrdma_request {
	struct rpcrdma_service *service;
	struct list_head list;
	struct rpcrdma_recv *recv;
	bool again;
	bool invalidate;
	u32 handle;
	enum rpcrdma_args args;
	struct rpcrdma_results results;
	u32 pulled;
	unsigned long pull_since;
	unsigned long pull_time;
	unsigned int num_pages;
	struct page **pages;
	struct rpcrdma_burst burst;
	struct rpcrdma_request *carried;
	refcount_t carriers;
	struct rpcrdma_message msg;
};

static inline struct rpcrdma_service *to_service(struct svc_xprt *xprt)
{
	return container_of(xprt, struct rpcrdma_service, xprt);
}

/*
 * No more begin where half of the send queue is theirs, so that Replies find room
 * beside them: a peer may offer more than fits, and take its time with all of it.
 */
static inline bool rpcrdma_service_may_read(const struct rpcrdma_service *service)
{
	return atomic_read(&service->reading) < service->conn->max_chain;
}

/* xprt.c */
void rpcrdma_service_wake(struct rpcrdma_service *service);
void rpcrdma_service_close(struct rpcrdma_service *service);
bool rpcrdma_service_wait(struct rpcrdma_service *service, int returns);
void rpcrdma_service_returned(struct rpcrdma_service *service);
u32 rpcrdma_service_grant(struct rpcrdma_service *service, u32 requested);

/* request.c */
int rpcrdma_request_init(void);
void rpcrdma_request_exit(void);
struct rpcrdma_request *rpcrdma_request_get(struct rpcrdma_service *service);
void rpcrdma_request_put(struct rpcrdma_request *request);
void rpcrdma_request_discard(struct rpcrdma_service *service);
void rpcrdma_request_give_back_recv(struct rpcrdma_request *request);
void rpcrdma_request_pulled(struct rpcrdma_request *request);
void rpcrdma_request_starve(struct rpcrdma_request *request, int returns);
void rpcrdma_request_feed(struct rpcrdma_service *service);
void rpcrdma_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv);
int rpcrdma_recvfrom(struct svc_rqst *rqstp);

/* pull.c */
bool rpcrdma_pull_refused(const struct rpcrdma_request *request,
			  const struct svc_rqst *rqstp);
void rpcrdma_pull_start(struct rpcrdma_request *request, struct svc_rqst *rqstp);
void rpcrdma_pull_go_on(struct rpcrdma_request *request,
			struct svc_rqst *rqstp);
bool rpcrdma_pull_all_read(const struct rpcrdma_request *request);
bool rpcrdma_pull_finish(struct rpcrdma_request *request,
			 struct svc_rqst *rqstp);
void rpcrdma_pull_nothing(struct rpcrdma_request *request,
			  struct svc_rqst *rqstp);

/* transfer.c */
int rpcrdma_burst_init(struct rpcrdma_burst *burst,
		       enum dma_data_direction direction,
		       unsigned int transfers, unsigned int sg);
int rpcrdma_burst_add(struct rpcrdma_request *request,
		      const struct xdr_buf *local, u32 at, u32 octets,
		      const struct rpcrdma_segment *segment, u32 skip);
struct ib_send_wr *rpcrdma_burst_chain(struct rpcrdma_request *request,
				       struct ib_send_wr *next);
int rpcrdma_burst_post(struct rpcrdma_request *request);
void rpcrdma_burst_destroy(struct rpcrdma_request *request);

/* reply.c */
int rpcrdma_sendto(struct svc_rqst *rqstp);
int rpcrdma_result_payload(struct svc_rqst *rqstp, unsigned int offset,
			   unsigned int length);
void rpcrdma_reply_error(struct rpcrdma_request *request,
			 enum rpcrdma_errcode error);
struct rpcrdma_send *rpcrdma_service_send_get(struct rpcrdma_service *service);

/* denied.c */
void rpcrdma_denied_note(const struct rpcrdma_request *request, int status);
bool rpcrdma_denied_before(const struct rpcrdma_request *request);

/* callback.c */
int rpcrdma_callback_init(void);
void rpcrdma_callback_exit(void);
void rpcrdma_callback_reply(struct rpcrdma_request *request);
bool rpcrdma_callback_waits(struct rpcrdma_service *service, __be32 xid);

/* sysctl.c */
extern unsigned int rpcrdma_max_requests;
extern unsigned int rpcrdma_max_bc_requests;
extern unsigned int rpcrdma_max_req_size;
extern unsigned int rpcrdma_max_reads;
extern unsigned int rpcrdma_server_private_data;
extern unsigned int rpcrdma_server_remote_invalidation;

/* What became of messages, since the module was loaded. */
enum rpcrdma_server_counter {
	RPCRDMA_STAT_RECV,
	RPCRDMA_STAT_READ,
	RPCRDMA_STAT_WRITE,
	RPCRDMA_STAT_SQ_STARVE,
	RPCRDMA_STAT_DROPPED,
	RPCRDMA_STAT_ERRORS,
	RPCRDMA_STAT_COUNT
};

extern atomic_long_t rpcrdma_server_count[RPCRDMA_STAT_COUNT];

static inline void rpcrdma_count(enum rpcrdma_server_counter which)
{
	atomic_long_inc(&rpcrdma_server_count[which]);
}

int rpcrdma_server_sysctl_init(void);
void rpcrdma_server_sysctl_exit(void);

#endif /* RPCRDMA_SERVER_PRIVATE_H */
