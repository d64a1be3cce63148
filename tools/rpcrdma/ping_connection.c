// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The connection of rpcrdma ping: rdma_cm and one queue pair. There is one
 * thread. It never blocks without a deadline: events and completions are
 * awaited by poll(), and where a driver blocks within a call of librdmacm, as
 * siw does while TCP connects, a timer's signal interrupts it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include "ping.h"

/* How often the timer interrupts after the deadline */
#define INTERRUPT_USEC	100000

/* RDMA Reads that the server may have under way: one after another will do. */
#define READS_MAX	1

/* What InfiniBand's CM says if nobody listens (ib_cm's invalid service id) */
#define REJECT_NOBODY	8

/* Sends that may be under way: far more than there are Calls at a time */
#define SENDS		64

#define IS_RECEIVE	0x100	/* added to the slot in the wr_id of a Receive */
#define NO_SLOT		PING_RECEIVES

/**
 * struct ping_connection - a connection, or what is left of one
 * @channel: for events of rdma_cm
 * @id: the connection
 * @pd: protection domain
 * @completions: becomes readable when @cq has completions
 * @cq: of Sends and Receives
 * @memory: for Receives, then for Sends, then the arguments of all Calls
 * @mr: the registration of @memory
 * @receive_size: octets of each Receive
 * @size: octets of arguments
 * @sends: Sends that were posted
 * @completed: of these
 * @taken: the Receive that ping_receive() returned last, or NO_SLOT
 * @closed: it is no connection any more, or never was
 * @code: exit code that follows, if @closed
 * @why: one line, if @closed
 * @path: where it goes
 *
 * ping_disconnect() frees what there is of these, in reverse order.
 */
struct ping_connection {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	char *memory;
	struct ibv_mr *mr;
	uint32_t receive_size;
	uint32_t size;
	unsigned int sends;
	unsigned int completed;
	unsigned int taken;
	bool closed;
	int code;
	char why[320];
	struct ping_path path;
};

static atomic_bool interrupted;
static sigset_t end_signals;	/* those that set it */

uint64_t ping_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * NSEC_PER_SEC + time.tv_nsec;
}

static void interrupt(int number)
{
	interrupted = true;
}

void ping_signals(void)
{
	struct sigaction action = {
		.sa_handler = interrupt,
		.sa_flags = SA_RESETHAND,
	};

	sigemptyset(&end_signals);
	sigaddset(&end_signals, SIGINT);
	sigaddset(&end_signals, SIGTERM);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

/* The first reason stays: what follows is its consequence. */
static enum ping_wait __attribute__((format(printf, 3, 4)))
closed(struct ping_connection *conn, int code, const char *format, ...)
{
	va_list args;

	if (conn->closed)
		return PING_CLOSED;
	conn->closed = true;
	conn->code = code;
	va_start(args, format);
	vsnprintf(conn->why, sizeof(conn->why), format, args);
	va_end(args);
	return PING_CLOSED;
}

/* Waiting */

/* Until an event of rdma_cm, or a completion if there is a channel for them */
static enum ping_wait wait_for(struct ping_connection *conn, uint64_t deadline)
{
	struct pollfd fds[] = {
		{ .fd = conn->channel->fd, .events = POLLIN },
		{ .fd = conn->completions ? conn->completions->fd : -1,
		  .events = POLLIN },
	};
	uint64_t now = ping_now();
	enum ping_wait result = PING_DONE;
	struct timespec left;
	sigset_t before;

	if (now >= deadline)
		return interrupted ? PING_SIGNAL : PING_TIMEOUT;
	left.tv_sec = (deadline - now) / NSEC_PER_SEC;
	left.tv_nsec = (deadline - now) % NSEC_PER_SEC;
	/*
	 * A signal comes before the test or ends ppoll(). It is not blocked elsewhere,
	 * because it has to interrupt calls of librdmacm, too.
	 */
	sigprocmask(SIG_BLOCK, &end_signals, &before);
	if (interrupted)
		result = PING_SIGNAL;
	else if (ppoll(fds, 2, &left, &before) < 0 && errno != EINTR)
		result = closed(conn, PING_ERROR, "cannot wait for events: %s", strerror(errno));
	sigprocmask(SIG_SETMASK, &before, NULL);
	return result;
}

/* Connecting */

static enum ping_wait no_route(struct ping_connection *conn, int error)
{
	const char *peer = conn->path.peer;

	if (error == ENODEV || error == EADDRNOTAVAIL)
		return closed(conn, PING_NO_ANSWER,
			      "%s: no RDMA device is on the way there: see rdma link and ip route get",
			      peer);
	if (error == ETIMEDOUT)
		return closed(conn, PING_NO_ANSWER,
			      "%s: the address does not resolve (ARP, neighbour discovery): is the host up, and on this network?",
			      peer);
	return closed(conn, PING_NO_ANSWER, "%s: no route: %s: see ip route get",
		      peer, strerror(error));
}

static enum ping_wait refused_by_peer(struct ping_connection *conn, int status)
{
	const char *peer = conn->path.peer;

	if (status == REJECT_NOBODY || status == -ECONNREFUSED)
		return closed(conn, PING_NO_ANSWER,
			      "%s: nothing listens for RDMA there: on the server, see /proc/fs/nfsd/portlist",
			      peer);
	return closed(conn, PING_ERROR,
		      "%s: the server rejected the connection (reason %d): see its log",
		      peer, status);
}

static enum ping_wait unreachable(struct ping_connection *conn)
{
	return closed(conn, PING_NO_ANSWER,
		      "%s: no answer: is the host up with RDMA, and do firewalls let UDP port 4791 (RoCE) or the server's TCP port (iWARP) pass?",
		      conn->path.peer);
}

/* How a call of librdmacm has failed. A signal may have interrupted it. */
static enum ping_wait call_failed(struct ping_connection *conn, uint64_t deadline, const char *what)
{
	if (errno == EINTR || errno == ETIMEDOUT) {
		if (interrupted)
			return PING_SIGNAL;
		if (errno == ETIMEDOUT || ping_now() >= deadline)
			return unreachable(conn);
	}
	if (errno == ENODEV || errno == ENETUNREACH || errno == EHOSTUNREACH)
		return no_route(conn, errno);
	if (errno == ECONNREFUSED)
		return refused_by_peer(conn, -errno);
	return closed(conn, PING_ERROR, "%s: %s: %s", conn->path.peer, what, strerror(errno));
}

/* What an event of rdma_cm means for the connection */
static enum ping_wait happened(struct ping_connection *conn,
			       enum rdma_cm_event_type type, int status)
{
	switch (type) {
	case RDMA_CM_EVENT_ADDR_ERROR:
		return no_route(conn, abs(status));
	case RDMA_CM_EVENT_REJECTED:
		return refused_by_peer(conn, status);
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return unreachable(conn);
	case RDMA_CM_EVENT_CONNECT_ERROR:
		if (status == -ECONNREFUSED)
			return refused_by_peer(conn, status);
		if (status == -ETIMEDOUT || status == -EHOSTUNREACH)
			return unreachable(conn);
		return closed(conn, PING_ERROR, "%s: the connection failed: error %d",
			      conn->path.peer, status);
	case RDMA_CM_EVENT_DISCONNECTED:
		return closed(conn, PING_ERROR, "%s: the server ended the connection",
			      conn->path.peer);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return closed(conn, PING_ERROR, "the device %s was removed", conn->path.device);
	default:
		return PING_DONE;
	}
}

static void save_private_data(struct ping_path *path, const struct rdma_conn_param *param)
{
	if (!param->private_data)
		return;
	path->private_len = param->private_data_len;
	if (path->private_len > sizeof(path->private_data))
		path->private_len = sizeof(path->private_data);
	memcpy(path->private_data, param->private_data, path->private_len);
}

/* Handle an event, if there is one. @type is set to it, if there is. */
static enum ping_wait take_event(struct ping_connection *conn, enum rdma_cm_event_type *type)
{
	struct rdma_cm_event *event;
	int status;

	if (rdma_get_cm_event(conn->channel, &event)) {
		/* There is none, or librdmacm could not set up the queue pair. */
		if (errno == EAGAIN || errno == EINTR)
			return PING_DONE;
		return closed(conn, PING_ERROR, "%s: %s", conn->path.peer, strerror(errno));
	}
	*type = event->event;
	status = event->status;
	if (*type == RDMA_CM_EVENT_ESTABLISHED)
		save_private_data(&conn->path, &event->param.conn);
	rdma_ack_cm_event(event);
	return happened(conn, *type, status);
}

static enum ping_wait await(struct ping_connection *conn, uint64_t deadline,
			    enum rdma_cm_event_type wanted)
{
	enum rdma_cm_event_type type;
	enum ping_wait result;

	do {
		type = RDMA_CM_EVENT_TIMEWAIT_EXIT;
		result = take_event(conn, &type);
		if (result || type == wanted)
			return result;
		result = wait_for(conn, deadline);
	} while (result == PING_DONE);
	return result == PING_TIMEOUT ? unreachable(conn) : result;
}

/* For the CM, which takes milliseconds; it has to be one at least */
static int left_ms(uint64_t deadline)
{
	uint64_t now = ping_now();

	return now < deadline ? (deadline - now) / NSEC_PER_MSEC + 1 : 1;
}

static enum ping_wait find_route(struct ping_connection *conn,
				 const struct sockaddr *to, uint64_t deadline)
{
	enum ping_wait result;

	if (rdma_create_id(conn->channel, &conn->id, conn, RDMA_PS_TCP))
		return closed(conn, PING_ERROR, "cannot use the RDMA connection manager: %s",
			      strerror(errno));
	/* ib_core may miss a quick answer of the neighbour until this time is over. */
	if (rdma_resolve_addr(conn->id, NULL, (struct sockaddr *)to, left_ms(deadline) / 2 + 1))
		return call_failed(conn, deadline, "cannot resolve the address");
	result = await(conn, deadline, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (result)
		return result;
	if (rdma_resolve_route(conn->id, left_ms(deadline)))
		return call_failed(conn, deadline, "cannot resolve the route");
	return await(conn, deadline, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static enum ping_wait no_resource(struct ping_connection *conn, const char *what)
{
	return closed(conn, PING_ERROR, "%s: %s: %s%s", conn->path.device, what,
		      strerror(errno), errno == ENOMEM ? ": raise ulimit -l, or be root" : "");
}

static bool nonblocking(int fd)
{
	return !fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void post_receive(struct ping_connection *conn, unsigned int slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)conn->memory + slot * conn->receive_size,
		.length = conn->receive_size,
		.lkey = conn->mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = {
		.wr_id = IS_RECEIVE | slot,
		.sg_list = &sge,
		.num_sge = 1,
	};

	if (ibv_post_recv(conn->id->qp, &wr, &bad))
		closed(conn, PING_ERROR, "%s: a Receive cannot be posted", conn->path.device);
}

static enum ping_wait make_memory(struct ping_connection *conn)
{
	size_t size = PING_RECEIVES * conn->receive_size + SENDS * PING_CALL_MAX + conn->size;
	int access = IBV_ACCESS_LOCAL_WRITE | (conn->size ? IBV_ACCESS_REMOTE_READ : 0);

	conn->memory = calloc(1, size);
	if (!conn->memory)
		return closed(conn, PING_ERROR, "out of memory");
	conn->mr = ibv_reg_mr(conn->pd, conn->memory, size, access);
	return conn->mr ? PING_DONE : no_resource(conn, "cannot register memory");
}

static enum ping_wait make_queues(struct ping_connection *conn)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = SENDS,
			.max_recv_wr = PING_RECEIVES,
			.max_send_sge = 2,
			.max_recv_sge = 1,
		},
	};
	struct ibv_context *device = conn->id->verbs;
	enum ping_wait result;
	unsigned int slot;

	conn->pd = ibv_alloc_pd(device);
	conn->completions = ibv_create_comp_channel(device);
	if (!conn->pd || !conn->completions || !nonblocking(conn->completions->fd))
		return no_resource(conn, "cannot make a protection domain");
	conn->cq = ibv_create_cq(device, SENDS + PING_RECEIVES, NULL, conn->completions, 0);
	if (!conn->cq)
		return no_resource(conn, "cannot make a completion queue");
	result = make_memory(conn);
	if (result)
		return result;
	attr.send_cq = conn->cq;
	attr.recv_cq = conn->cq;
	if (rdma_create_qp(conn->id, conn->pd, &attr))
		return no_resource(conn, "cannot make a queue pair");
	for (slot = 0; slot < PING_RECEIVES; slot++)
		post_receive(conn, slot);
	return conn->closed ? PING_CLOSED : PING_DONE;
}

static void name_address(const struct sockaddr *addr, char *name, size_t room)
{
	socklen_t len = addr->sa_family == AF_INET6 ?
			sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

	if (getnameinfo(addr, len, name, room, NULL, 0, NI_NUMERICHOST))
		snprintf(name, room, "?");
}

/* Six retries of a Send for which there is no Receive: seven is for ever. */
static enum ping_wait establish(struct ping_connection *conn, const struct ping_wanted *wanted)
{
	struct rdma_conn_param param = {
		.private_data = wanted->private_data,
		.private_data_len = wanted->private_len,
		.responder_resources = READS_MAX,
		.retry_count = 7,
		.rnr_retry_count = 6,
	};

	if (rdma_connect(conn->id, &param))
		return call_failed(conn, wanted->deadline, "cannot connect");
	return await(conn, wanted->deadline, RDMA_CM_EVENT_ESTABLISHED);
}

static enum ping_wait connect_steps(struct ping_connection *conn, const struct sockaddr *to,
				    const struct ping_wanted *wanted)
{
	enum ping_wait result;

	conn->channel = rdma_create_event_channel();
	if (!conn->channel || !nonblocking(conn->channel->fd))
		return closed(conn, PING_ERROR,
			      "cannot use RDMA: %s: is there a device in rdma link, are the modules ib_uverbs and rdma_ucm loaded, and may you use /dev/infiniband?",
			      strerror(errno));
	result = find_route(conn, to, wanted->deadline);
	if (result)
		return result;
	name_address(rdma_get_local_addr(conn->id), conn->path.local, sizeof(conn->path.local));
	snprintf(conn->path.device, sizeof(conn->path.device), "%s",
		 ibv_get_device_name(conn->id->verbs->device));
	conn->path.device_port = conn->id->port_num;
	result = make_queues(conn);
	return result ? result : establish(conn, wanted);
}

static void no_action(int number)
{
}

/* From the deadline on, interrupt system calls until timer_end(). */
static void timer_start(uint64_t deadline)
{
	struct sigaction action = { .sa_handler = no_action };
	int ms = left_ms(deadline);
	struct itimerval timer = {
		.it_value = { ms / 1000, ms % 1000 * 1000 },
		.it_interval = { 0, INTERRUPT_USEC },
	};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static void timer_end(void)
{
	struct itimerval none = {};

	setitimer(ITIMER_REAL, &none, NULL);
}

struct ping_connection *ping_connect(const struct sockaddr *to, const struct ping_wanted *wanted,
				     enum ping_wait *result)
{
	struct ping_connection *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return NULL;
	conn->receive_size = wanted->receive_size;
	conn->size = wanted->size;
	conn->taken = NO_SLOT;
	name_address(to, conn->path.peer, sizeof(conn->path.peer));
	timer_start(wanted->deadline);
	*result = connect_steps(conn, to, wanted);
	timer_end();
	return conn;
}

const struct ping_path *ping_path(const struct ping_connection *conn)
{
	return &conn->path;
}

const char *ping_why(const struct ping_connection *conn)
{
	return conn->why;
}

int ping_why_code(const struct ping_connection *conn)
{
	return conn->code;
}

/* Messages */

static enum ping_wait failed(struct ping_connection *conn, const struct ibv_wc *wc)
{
	const char *peer = conn->path.peer;

	if (wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_RNR_RETRY_EXC_ERR)
		return closed(conn, PING_NO_ANSWER, "%s: a Call did not arrive (%s)", peer,
			      ibv_wc_status_str(wc->status));
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return closed(conn, PING_ERROR, "%s: the connection broke", peer);
	if (!(wc->wr_id & IS_RECEIVE))
		return closed(conn, PING_ERROR, "%s: the connection broke (%s)",
			      peer, ibv_wc_status_str(wc->status));
	/* Devices differ in the status that they have for this. */
	return closed(conn, PING_ERROR,
		      "%s: the connection broke (%s): the server sent more than %u octets, or did what it must not",
		      peer, ibv_wc_status_str(wc->status), conn->receive_size);
}

/* Handle completions until a message is received; DONE if there is none. */
static enum ping_wait take_completions(struct ping_connection *conn, struct ibv_wc *message)
{
	struct ibv_wc wc;
	int count;

	message->wr_id = 0;
	while ((count = ibv_poll_cq(conn->cq, 1, &wc)) > 0) {
		if (wc.status != IBV_WC_SUCCESS)
			return failed(conn, &wc);
		if (wc.wr_id & IS_RECEIVE) {
			*message = wc;
			return PING_DONE;
		}
		conn->completed++;
	}
	return count ? closed(conn, PING_ERROR, "%s: the completion queue failed",
			      conn->path.device) : PING_DONE;
}

/* Ask to be woken by the next completion. */
static enum ping_wait arm(struct ping_connection *conn)
{
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(conn->completions, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(conn->cq, 0))
		return no_resource(conn, "cannot wait for completions");
	return PING_DONE;
}

/* What came before the end of a connection is taken before the end. */
static enum ping_wait next(struct ping_connection *conn, uint64_t deadline, struct ibv_wc *message)
{
	enum ping_wait result = PING_DONE, event = PING_DONE;
	enum rdma_cm_event_type type;

	while (!result) {
		result = take_completions(conn, message);
		if (result || message->wr_id)
			return result;
		if (event)
			return event;
		result = arm(conn);
		if (result)
			return result;
		result = take_completions(conn, message);
		if (result || message->wr_id)
			return result;
		event = take_event(conn, &type);
		if (!event)
			result = wait_for(conn, deadline);
	}
	return result;
}

enum ping_wait ping_receive(struct ping_connection *conn, uint64_t deadline,
			    const void **data, uint32_t *len)
{
	enum ping_wait result;
	struct ibv_wc message;

	if (conn->taken != NO_SLOT)
		post_receive(conn, conn->taken);
	conn->taken = NO_SLOT;
	if (interrupted)
		return PING_SIGNAL;
	if (conn->closed)
		return PING_CLOSED;
	result = next(conn, deadline, &message);
	if (result)
		return result;
	conn->taken = message.wr_id & ~IS_RECEIVE;
	*data = conn->memory + conn->taken * conn->receive_size;
	*len = message.byte_len < conn->receive_size ? message.byte_len :
						       conn->receive_size;
	return PING_DONE;
}

void *ping_slot(struct ping_connection *conn)
{
	return conn->memory + PING_RECEIVES * conn->receive_size +
	       conn->sends % SENDS * PING_CALL_MAX;
}

static const char *arguments_of(const struct ping_connection *conn)
{
	return conn->memory + PING_RECEIVES * conn->receive_size + SENDS * PING_CALL_MAX;
}

void ping_arguments(const struct ping_connection *conn, const void **arguments, uint32_t *handle)
{
	*arguments = arguments_of(conn);
	*handle = conn->mr->rkey;
}

enum ping_wait ping_send(struct ping_connection *conn, uint32_t len, uint32_t size)
{
	struct ibv_sge sges[] = {
		{ .addr = (uintptr_t)ping_slot(conn), .length = len, .lkey = conn->mr->lkey },
		{ .addr = (uintptr_t)arguments_of(conn), .length = size, .lkey = conn->mr->lkey },
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = sges,
		.num_sge = size ? 2 : 1,
		.opcode = IBV_WR_SEND,
	};

	if (conn->closed)
		return PING_CLOSED;
	if (conn->sends - conn->completed >= SENDS)
		return closed(conn, PING_ERROR, "%s: Sends are answered and do not complete",
			      conn->path.device);
	/* siw knows of a broken connection before its events tell. */
	if (ibv_post_send(conn->id->qp, &wr, &bad))
		return closed(conn, PING_ERROR, "%s: the connection broke", conn->path.peer);
	conn->sends++;
	return PING_DONE;
}

void ping_disconnect(struct ping_connection *conn)
{
	if (conn->id && conn->id->qp) {
		rdma_disconnect(conn->id);
		rdma_destroy_qp(conn->id);
	}
	if (conn->mr)
		ibv_dereg_mr(conn->mr);
	free(conn->memory);
	if (conn->cq)
		ibv_destroy_cq(conn->cq);
	if (conn->completions)
		ibv_destroy_comp_channel(conn->completions);
	if (conn->pd)
		ibv_dealloc_pd(conn->pd);
	if (conn->id)
		rdma_destroy_id(conn->id);
	if (conn->channel)
		rdma_destroy_event_channel(conn->channel);
	free(conn);
}
