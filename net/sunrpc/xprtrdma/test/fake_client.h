/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A client's transport over a fake connection, and RPCs as sunrpc has encoded them. sunrpc's
 * part of the transport is real, but no task runs: the test does what tasks do.
 */
#ifndef RPCRDMA_TEST_FAKE_CLIENT_H
#define RPCRDMA_TEST_FAKE_CLIENT_H

#include "../client/client_private.h"
#include "fake_conn.h"

#define FAKE_PAGES		48	/* of a message */
#define FAKE_KVEC_MAX		(2 * PAGE_SIZE)
#define FAKE_STREAM_MAX		((FAKE_PAGES + 4) * PAGE_SIZE)
/* The RPC program that the client is for */
#define FAKE_PROGRAM		100003
#define FAKE_PROGRAM_VERSION	3
/* Octets of a NULL and of its Reply */
#define FAKE_NULL_LEN		40
#define FAKE_NULL_REPLY_LEN	24
/* Octets from the start of a tail to the end of its page */
#define FAKE_TAIL_SPLIT		100

/* Octets of a message */
struct fake_sizes {
	u32 head;
	u32 pages;
	u32 base;	/* before them in the first page */
	u32 tail;
	bool ddp;	/* the pages have a data item that may travel in a chunk */
};

/* The memory of a message: whole pages for head and tail, so that they may cross pages */
struct fake_message {
	u8 head[FAKE_KVEC_MAX];
	u8 tail[FAKE_KVEC_MAX];
};

struct fake_rpc {
	struct xprt_rdma_request request;
	struct rpc_task task;
	struct rpc_cred cred;
	struct rpc_auth auth;
	struct fake_message *call;
	struct fake_message *reply;
	struct page *call_page[FAKE_PAGES];
	struct page *reply_page[FAKE_PAGES];
};

/**
 * struct fake_client - a client, its connection and two RPCs
 * @fake: the connection
 * @client: the client
 * @ep: the endpoint of the last attempt to connect, with a reference of the test
 * @config: what that attempt asked for
 * @source: and from which address
 * @flags: current->flags in it
 * @connects: how many attempts there were
 * @connector: the task that has XPRT_LOCKED
 * @xps: the transports that its RPCs may use: only the client's
 * @rpc: an RPC
 * @other: another one
 * @msg: the header that the server has received last, or that it sends
 * @octets: a message of the server
 * @stream: an RPC message as the server has put it together; scratch for the tests as well
 * @expected: the message as it should be
 *
 * It is not the test's memory: if the test ends early, the connection still uses it.
 */
struct fake_client {
	struct fake_conn fake;
	struct xprt_rdma_client *client;
	struct xprt_rdma_endpoint *ep;
	struct rpcrdma_conn_config config;
	const struct sockaddr *source;
	unsigned int flags;
	unsigned int connects;
	struct rpc_task connector;
	struct rpc_xprt_switch xps;
	struct fake_rpc rpc;
	struct fake_rpc other;
	struct rpcrdma_message msg;
	__be32 octets[FAKE_BUFFER_LEN / sizeof(__be32)];
	u8 stream[FAKE_STREAM_MAX];
	u8 expected[FAKE_STREAM_MAX];

	/* private: to fake_client.c */
	struct rpc_rqst connector_rqst;
	struct rpc_clnt clnt;
	struct rpc_procinfo proc;
};

struct fake_client *fake_client_make(struct kunit *test, u32 threshold, u32 version);
void fake_client_connect(struct fake_client *t);
struct fake_client *fake_client_begin(struct kunit *test, u32 threshold, u32 version);
struct fake_client *fake_client_begin_mrs(struct kunit *test, u32 threshold, unsigned int mrs);
void fake_client_end(struct kunit *test, struct fake_client *t);
void fake_client_exit(struct kunit *test);

void fake_lock(struct fake_client *t);
void fake_sleep(struct rpc_wait_queue *queue, struct rpc_task *task);
unsigned int fake_cleanups(struct fake_client *t);

void fake_rpc_begin(struct kunit *test, struct fake_client *t, struct fake_rpc *rpc, u32 xid,
		    const struct fake_sizes *call, const struct fake_sizes *reply);
int fake_rpc_send(struct fake_rpc *rpc);
bool fake_rpc_is_complete(const struct fake_rpc *rpc);
void fake_expect_off_wire(struct kunit *test, struct fake_client *t, unsigned int mrs);

bool fake_server_gets(struct fake_client *t, const struct fake_rpc *rpc);
bool fake_server_gets_null(struct fake_client *t);
bool fake_server_writes(struct fake_client *t, const struct rpcrdma_chunk *chunk, u8 value);
void fake_server_sends(struct fake_client *t, u32 payload_len, u32 invalidated);
void fake_server_replies(struct fake_client *t, u32 payload_len, u32 invalidated);

#endif /* RPCRDMA_TEST_FAKE_CLIENT_H */
