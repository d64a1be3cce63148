// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The connections of the peer: rdma_cm, the queues and registered memory. There
 * is one connection at a time. The program has one thread, which handles events
 * and completions in wait_until().
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "peer.h"

#define RESOLVE_MS	5000
#define READS_MAX	8
#define PORTS		5	/* local ports to try */

/* siw accepts a connection before it receives what arrives on it. */
#define ACCEPTED_USEC	50000

#define NOTHING		(-1)

/* Queue pairs that no device has made. The CM refuses a number that is in use. */
#define NO_QUEUE_PAIR	0xff0000

/* Added to the slot in the wr_id of a Receive */
#define IS_RECEIVE	0x100

static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener, *request, *conn;

/* Made for the device of the first connection, and used for all connections */
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *slots_mr;
static u8 slots[2][SLOTS][MESSAGE_MAX];	/* to send, received */

/* Of the current connection or, if there is none, of the last one */
static int happened;	/* an rdma_cm_event_type, or NOTHING */
static bool closed = true;
static unsigned int posted, completed;	/* Sends and RDMA Writes */

/* The queue of received messages that no command has taken */
struct message *first;
static struct message **end = &first;

/* The message that was taken last */
struct message *last;

struct settings settings = {
	.receives = SLOTS,
	.timeout = 10,
};

/* Events and completions */

static void post_receive(unsigned int slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)slots[1][slot],
		.length = MESSAGE_MAX,
		.lkey = slots_mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = {
		.wr_id = IS_RECEIVE | slot,
		.sg_list = &sge,
		.num_sge = 1,
	};

	if (ibv_post_recv(conn->qp, &wr, &bad))
		fail("a Receive cannot be posted");
}

static void handle_message(const struct ibv_wc *wc)
{
	unsigned int slot = wc->wr_id & ~IS_RECEIVE;
	struct message *message = malloc(sizeof(*message) + wc->byte_len);

	message->next = NULL;
	message->len = wc->byte_len;
	memcpy(message->data, slots[1][slot], wc->byte_len);
	*end = message;
	end = &message->next;
	if (!closed)
		post_receive(slot);
}

static void handle_completion(const struct ibv_wc *wc)
{
	if (!(wc->wr_id & IS_RECEIVE))
		completed++;
	if (wc->status == IBV_WC_SUCCESS) {
		if (wc->wr_id & IS_RECEIVE)
			handle_message(wc);
		return;
	}
	if (!closed)
		fprintf(stderr, "closed: %s\n", ibv_wc_status_str(wc->status));
	closed = true;
}

static void handle_event(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		/* The requester of an earlier request has given up. */
		if (request)
			rdma_destroy_id(request);
		request = event->id;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (event->id == conn)
			closed = true;
		break;
	default:
		if (event->id != conn)
			break;
		happened = event->event;
		/* The other ones end an attempt, or come before there are queues. */
		if (happened != RDMA_CM_EVENT_ESTABLISHED)
			closed = true;
	}
}

static void poll_all(void)
{
	struct rdma_cm_event *event;
	struct ibv_wc wc;

	/* Events first: then messages that came before the end are received. */
	while (!rdma_get_cm_event(channel, &event)) {
		handle_event(event);
		rdma_ack_cm_event(event);
	}
	while (cq && ibv_poll_cq(cq, 1, &wc) > 0)
		handle_completion(&wc);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/**
 * told_to_stop - whether SIGTERM has arrived, which main() blocks
 *
 * Return: true if it has.
 */
bool told_to_stop(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGTERM);
}

/**
 * wait_until - handle events and completions until a condition is true
 * @condition: the condition
 *
 * Return: true; false if the condition is not true within the time-out.
 */
bool wait_until(bool (*condition)(void))
{
	double limit = now() + settings.timeout;

	poll_all();
	while (!condition()) {
		if (now() > limit)
			return false;
		usleep(1000);
		poll_all();
	}
	return true;
}

/* Conditions, for wait_until() and for commands */

bool is_connected(void)
{
	return conn;
}

bool is_closed(void)
{
	return closed;
}

bool is_requested(void)
{
	return request;
}

/* Whether the send queue has room, or is of no use any more */
bool has_room(void)
{
	return closed || posted - completed < SLOTS;
}

/* Whether the other end has received all that was sent, or never will */
bool all_completed(void)
{
	return closed || posted == completed;
}

/* Whether there is a message, or none can come */
bool has_message(void)
{
	return first || closed;
}

static bool something_happened(void)
{
	return happened != NOTHING;
}

/**
 * take_message - take the first message of the queue, which becomes the last
 * one
 */
void take_message(void)
{
	free(last);
	last = first;
	first = first->next;
	if (!first)
		end = &first;
}

/* Connecting */

static void await(enum rdma_cm_event_type wanted)
{
	if (!wait_until(something_happened))
		fail("%s did not happen in time", rdma_event_str(wanted));
	if (happened != (int)wanted)
		fail("%s happened instead of %s", rdma_event_str(happened),
		     rdma_event_str(wanted));
	happened = NOTHING;
}

static void device_ready(struct ibv_context *device)
{
	if (pd)
		return;
	pd = ibv_alloc_pd(device);
	cq = ibv_create_cq(device, 4 * SLOTS, NULL, NULL, 0);
	if (!pd || !cq)
		fail("cannot make a protection domain or a completion queue");
	slots_mr = ibv_reg_mr(pd, slots, sizeof(slots), IBV_ACCESS_LOCAL_WRITE);
	if (!slots_mr)
		fail("memory cannot be registered: %s", strerror(errno));
}

/* Before the connection is established, so that Receives are posted in time */
static void make_queues(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = SLOTS,
			.max_recv_wr = SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	unsigned int i;

	device_ready(conn->verbs);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	if (rdma_create_qp(conn, pd, &attr))
		fail("cannot make a queue pair: %s", strerror(errno));
	posted = 0;
	completed = 0;
	closed = false;
	for (i = 0; i < settings.receives; i++)
		post_receive(i);
}

/*
 * Six retries of a Send for which the other end has no Receive: seven would
 * mean retries without end. Returns 0 or an error number.
 */
static int start(int (*how)(struct rdma_cm_id *, struct rdma_conn_param *),
		 unsigned int reads)
{
	struct rdma_conn_param param = {
		.private_data = settings.private_data,
		.private_data_len = settings.private_len,
		.responder_resources = reads,
		.retry_count = 7,
		.rnr_retry_count = 6,
	};

	return how(conn, &param) ? errno : 0;
}

/**
 * await_connection - wait until the connection is established
 */
void await_connection(void)
{
	await(RDMA_CM_EVENT_ESTABLISHED);
}

/**
 * open_channel - prepare for all other functions
 */
void open_channel(void)
{
	channel = rdma_create_event_channel();
	if (!channel || fcntl(channel->fd, F_SETFL, O_NONBLOCK))
		fail("cannot use rdma_cm, is rdma_ucm loaded? %s", strerror(errno));
}

/**
 * end_connection - disconnect, if there is a connection
 *
 * Messages that were received stay in the queue.
 */
void end_connection(void)
{
	struct ibv_wc wc;

	if (!conn)
		return;
	closed = true;
	rdma_disconnect(conn);
	rdma_destroy_qp(conn);
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		handle_completion(&wc);
	rdma_destroy_id(conn);
	conn = NULL;
}

/* Make conn, which can then connect. */
static void find_route(struct sockaddr_in *addr)
{
	happened = NOTHING;
	if (rdma_create_id(channel, &conn, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(conn, NULL, (struct sockaddr *)addr, RESOLVE_MS))
		fail("cannot resolve the address: %s", strerror(errno));
	await(RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(conn, RESOLVE_MS))
		fail("cannot resolve the route: %s", strerror(errno));
	await(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/*
 * Returns false if the local port is in use: for iWARP the CM may choose one
 * that TCP remembers from an earlier connection.
 */
static bool try_port(struct sockaddr_in *addr)
{
	int error;

	find_route(addr);
	make_queues();
	error = start(rdma_connect, READS_MAX);
	if (error == EADDRINUSE)
		return false;
	if (error)
		fail("cannot connect: %s", strerror(error));
	await_connection();
	return true;
}

/**
 * connect_to - connect as a requester
 * @addr: the responder's address
 */
void connect_to(struct sockaddr_in *addr)
{
	unsigned int ports = PORTS;

	while (!try_port(addr)) {
		end_connection();
		if (!--ports)
			fail("no port is free");
	}
}

/**
 * crowd - request connections, and ignore the answers
 * @addr: the responder's address
 * @count: how many; they have no queue pairs
 *
 * The kernel gives them up when the program ends.
 */
void crowd(struct sockaddr_in *addr, unsigned int count)
{
	struct rdma_conn_param param = { .retry_count = 7 };

	for (; count; count--) {
		find_route(addr);
		param.qp_num = NO_QUEUE_PAIR + count;
		if (rdma_connect(conn, &param))
			fail("cannot connect: %s", strerror(errno));
		conn = NULL;
	}
}

/**
 * listen_at - receive connection requests
 * @addr: the address to listen at
 */
void listen_at(struct sockaddr_in *addr)
{
	if (rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)addr) ||
	    rdma_listen(listener, SLOTS))
		fail("cannot listen: %s", strerror(errno));
}

/**
 * accept_request - accept the connection request that is_requested() reports
 *
 * A requester that has given up meanwhile has closed the connection.
 */
void accept_request(void)
{
	conn = request;
	request = NULL;
	happened = NOTHING;
	make_queues();
	/* A responder serves no RDMA Reads. */
	if (start(rdma_accept, 1))
		closed = true;
}

/* Sending */

/**
 * post_work - post a Send or an RDMA Write
 * @work: what to post; has_room() is true
 *
 * If the connection is broken, waits until it is closed.
 */
void post_work(const struct work *work)
{
	unsigned int slot = posted % SLOTS;
	struct ibv_sge sge = {
		.addr = (uintptr_t)slots[0][slot],
		.length = work->len,
		.lkey = slots_mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = slot,
		.sg_list = &sge,
		.num_sge = work->len ? 1 : 0,
		.opcode = work->opcode,
	};

	/* libsiw looks here also for the handle to invalidate. */
	wr.wr.rdma.rkey = work->handle;
	wr.wr.rdma.remote_addr = work->address;
	if (work->opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = work->handle;
	memcpy(slots[0][slot], work->data, work->len);
	if (!posted && conn->verbs->device->transport_type == IBV_TRANSPORT_IWARP)
		usleep(ACCEPTED_USEC);
	if (!ibv_post_send(conn->qp, &wr, &bad))
		posted++;
	else if (!wait_until(is_closed))	/* siw may know it before us. */
		fail("a Send cannot be posted");
}

/**
 * register_memory - let the other end read and write memory
 * @memory: its address
 * @len: octets
 *
 * Return: the registration, valid on all connections.
 */
struct ibv_mr *register_memory(void *memory, size_t len)
{
	struct ibv_mr *mr;

	if (!pd)
		fail("memory needs a device: connect or accept before");
	mr = ibv_reg_mr(pd, memory, len, IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (!mr)
		fail("memory cannot be registered: %s", strerror(errno));
	return mr;
}
