/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * An established connection over a device whose other end the test plays. Receives, Sends,
 * registrations, the states and the teardown are those of conn/; the device executes nothing
 * by itself, and a completion comes when the test says so.
 */
#ifndef RPCRDMA_TEST_FAKE_CONN_H
#define RPCRDMA_TEST_FAKE_CONN_H

#include <kunit/test.h>

#include "../conn/conn.h"

#define FAKE_CREDITS		32
#define FAKE_MESSAGES		7	/* that the peer may send */
#define FAKE_MR_PAGES		4	/* pages that one registration covers */
#define FAKE_MRS		64
#define FAKE_SEND_SGES		4	/* beside the header's */
#define FAKE_SQ_SIZE		128
#define FAKE_RECVS		96
#define FAKE_BUFFER_LEN		(5 * PAGE_SIZE)

/* A registration as the device sees it */
struct fake_mr {
	struct ib_mr ib;
	u64 page[FAKE_MR_PAGES];
	unsigned int num_pages;
	bool valid;			/* the peer can reach it */
	int access;
	enum dma_data_direction direction;
};

/**
 * struct fake_conn - a connection and its device
 * @conn: the connection, with a reference of the test
 * @mrs_left: registrations that the device still makes
 * @maps_left: how many registrations can be mapped before @map_result counts
 * @map_result: then, what mapping one returns; zero: it succeeds
 * @post_error: what posting a Send returns; zero: it succeeds
 * @connect_error: what the client's attempt to connect returns; zero: it succeeds
 * @stalls: called if the attempt leads to nothing before the test closes the connection;
 *	NULL: it succeeds
 * @connecting: called when the client connects; may be NULL
 * @to: the address that it connects to
 * @established: called when it is established; may be NULL
 * @mapping: called before a registration is mapped; may be NULL
 * @posted: called when a chain has been posted, with post_lock held; may be NULL
 * @reposting: called before a Receive is posted; may be NULL
 * @posts: chains that were posted
 * @registered: registrations among them
 * @invalidated: invalidations among them
 * @sent: the last Send
 * @sent_len: its octets
 * @sent_sges: its elements
 * @num_recvs: Receives that are posted
 * @recv: the Receives that are posted, the oldest first
 * @num_signalled: chains that are to be completed
 * @port: the device's port
 * @broken: rules that were broken
 *
 * Allocated by the test, for all of its life.
 */
struct fake_conn {
	struct rpcrdma_conn *conn;

	unsigned int mrs_left;
	unsigned int maps_left;
	int map_result;
	int post_error;
	int connect_error;
	void (*stalls)(struct fake_conn *fake);
	void (*connecting)(struct fake_conn *fake, const struct sockaddr *source,
			   const struct rpcrdma_conn_config *config);
	const struct sockaddr *to;
	void (*established)(struct fake_conn *fake);
	void (*mapping)(struct fake_conn *fake);
	void (*posted)(struct fake_conn *fake);
	void (*reposting)(struct fake_conn *fake);

	unsigned int posts;
	unsigned int registered;
	unsigned int invalidated;
	u8 sent[FAKE_BUFFER_LEN];
	u32 sent_len;
	unsigned int sent_sges;
	unsigned int num_recvs;
	struct {
		struct ib_cqe *cqe;
		void *data;
	} recv[FAKE_RECVS];
	unsigned int num_signalled;
	struct ib_port_data port;
	unsigned int broken;

	/* private: to fake_conn.c */
	struct ib_device ib;
	struct rpcrdma_device device;
	struct fake_mr *mr[FAKE_MRS];
	unsigned int num_mrs;
	unsigned int live_mrs;
	struct ib_cqe *signalled[FAKE_SQ_SIZE];
};

void fake_conn_make(struct kunit *test, struct fake_conn *fake, u32 threshold, u32 version);
void fake_conn_end(struct kunit *test, struct fake_conn *fake);
struct fake_conn *fake_conn_new(struct kunit *test, u32 threshold);
void fake_conn_delete(struct kunit *test, struct fake_conn *fake);
void fake_conn_close(struct kunit *test, struct fake_conn *fake);

/* The next rpcrdma_conn_connect() of client/ gets this connection; NULL: a real one */
void fake_conn_serve(struct fake_conn *fake);

/* What endpoint.c calls in builds with unit tests */
struct rpcrdma_conn *rpcrdma_test_connect(struct net *net, const struct sockaddr *src,
					  const struct sockaddr *dst,
					  const struct rpcrdma_conn_config *config);

/* What the device and the connection's works do */
void fake_make_mrs(struct kunit *test, struct fake_conn *fake, unsigned int count);
void fake_complete(struct fake_conn *fake);
struct rpcrdma_recv *fake_take_recv(struct fake_conn *fake, const void *octets, u32 len);
void fake_deliver(struct fake_conn *fake, const void *octets, u32 len, u32 invalidated);
void fake_run_callbacks(struct fake_conn *fake);

/* What the peer does. Return: false if the memory is not offered for that. */
bool fake_read(struct fake_conn *fake, const struct rpcrdma_segment *segment, void *to);
bool fake_write(struct fake_conn *fake, const struct rpcrdma_segment *segment, u8 value);

unsigned int fake_idle_mrs(const struct fake_conn *fake);
unsigned int fake_busy_sends(const struct fake_conn *fake);

#endif /* RPCRDMA_TEST_FAKE_CONN_H */
