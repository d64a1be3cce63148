// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A peer for RPC-over-RDMA that says exactly what a script tells it to say,
 * however wrong that is. It knows Sends, Receives and registered memory; what
 * the octets mean is the script's business.
 *
 * The script is standard input, a command on each line:
 *
 *	private [HEX...]	private data of the connections that follow (none)
 *	receives N		Receives posted on those (64)
 *	patience SECONDS	how long to wait for anything (10)
 *	connect ADDRESS PORT	as a requester
 *	listen ADDRESS PORT	let requesters come
 *	accept			take the next one
 *	disconnect		end the connection
 *	closed			the other end does
 *	sleep SECONDS
 *
 *	buffer NAME LENGTH	memory that the other end may read and write,
 *				on this connection and on those that follow
 *	fill NAME OFFSET MESSAGE	write to it
 *	holds NAME OFFSET PATTERN	it begins with this there
 *
 *	send [!HANDLE] MESSAGE	and with ! invalidate the handle
 *	send ^ MESSAGE		rather an RDMA Write: to the segment that the message
 *				begins with, of what follows that
 *	flood N MESSAGE		send it N times, whatever the credits
 *	expect PATTERN		the next message is this
 *	answer PATTERN = MESSAGE [; MESSAGE...]	a rule for serve, each MESSAGE as
 *				for send; the last rule that was given goes first.
 *				With +SECONDS before a MESSAGE nobody is answered
 *				for so long before that.
 *	serve			answer by the rules, on this connection and on
 *				those that follow, until SIGTERM
 *
 * A MESSAGE is a row of
 *
 *	17 or 0x11		a number of 32 bits, big endian
 *	:00ff			octets
 *	/name			an XDR string: its length, itself, and padding
 *	@a			a plain segment, all of buffer a: handle, length
 *				and 64 bits of address
 *	@a+OFFSET,LENGTH	the same for a part of it
 *	@a.handle @a.length @a.address	fields of the segment
 *	<N <N-M			word N, or words N to M, of the last message
 *				that was received, counted from zero
 *	<N+			the XDR opaque whose length is word N of it
 *
 * and a PATTERN may have, too
 *
 *	.			any word
 *	.+			any XDR opaque
 *	...			any rest, at the end
 *
 * It is over at the first line that does not come true, or at the last. Then
 * nothing may be left that was received and not expected.
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

#define SLOTS		64
#define PRIVATE_MAX	56
#define RESOLVE_MS	5000
#define READS_MAX	8
#define PORTS		5	/* to try */
#define LEFT_SECONDS	0.05

/* siw accepts a connection first, and only then hears what comes by it. */
#define ACCEPTED_USEC	50000

#define NOTHING		(-1)

/* Handle, length, and 64 bits of address */
#define SEGMENT_WORDS	4

/* What a wr_id has beside the slot */
#define IS_RECEIVE	0x100

struct rule {
	struct rule *next;
	char **pattern;
	char **messages;	/* one behind the other, each up to a NULL */
	unsigned int count;
};

static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener, *request, *conn;

/* Made for the device of the first connection, for all of them */
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *slots_mr;
static u8 slots[2][SLOTS][MESSAGE_MAX];	/* to send, received */

/* Of the connection there is, or was last */
static int happened;	/* an rdma_cm_event_type, or NOTHING */
static bool closed = true;
static unsigned int sent, taken;

struct buffer *buffers;
struct message *last;

static struct message *first, **end = &first;
static struct rule *rules;

static u8 private_data[PRIVATE_MAX];
static size_t private_len;
static unsigned int receives = SLOTS;
static double patience = 10;

/* What happens by itself */

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

static void received(const struct ibv_wc *wc)
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

static void completed(const struct ibv_wc *wc)
{
	if (!(wc->wr_id & IS_RECEIVE))
		taken++;
	if (wc->status == IBV_WC_SUCCESS) {
		if (wc->wr_id & IS_RECEIVE)
			received(wc);
		return;
	}
	if (!closed)
		fprintf(stderr, "closed: %s\n", ibv_wc_status_str(wc->status));
	closed = true;
}

static void noted(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		/* Whoever asked before has given up. */
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
		if (event->id == conn)
			happened = event->event;
	}
}

static void pump(void)
{
	struct rdma_cm_event *event;
	struct ibv_wc wc;

	/* In this order: what came before the end is seen before it. */
	while (!rdma_get_cm_event(channel, &event)) {
		noted(event);
		rdma_ack_cm_event(event);
	}
	while (cq && ibv_poll_cq(cq, 1, &wc) > 0)
		completed(&wc);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static bool told_to_stop(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGTERM);
}

/* Completions and events come one by one: there is no hurry. */
static bool wait_until(bool (*true_now)(void))
{
	double limit = now() + patience;

	pump();
	while (!true_now()) {
		if (now() > limit || told_to_stop())
			return false;
		usleep(1000);
		pump();
	}
	return true;
}

/* The first of the queue becomes the last that was received. */
static void take_message(void)
{
	free(last);
	last = first;
	first = first->next;
	if (!first)
		end = &first;
}

/* Connections */

static bool something_happened(void)
{
	return happened != NOTHING;
}

static void await(enum rdma_cm_event_type wanted)
{
	if (!wait_until(something_happened))
		fail("no %s in time", rdma_event_str(wanted));
	if (happened != (int)wanted)
		fail("%s instead of %s", rdma_event_str(happened),
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
		fail("the device gives no protection domain or queue");
	slots_mr = ibv_reg_mr(pd, slots, sizeof(slots), IBV_ACCESS_LOCAL_WRITE);
	if (!slots_mr)
		fail("memory cannot be registered: %s", strerror(errno));
}

/* Before it is connected, so that nothing arrives too early. */
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
		fail("no queue pair: %s", strerror(errno));
	sent = 0;
	taken = 0;
	closed = false;
	for (i = 0; i < receives; i++)
		post_receive(i);
}

/*
 * Either end gives up a Send that finds no Receive; seven would mean never.
 * Returns whether the port is free: that which the CM has chosen for iWARP may be
 * one that TCP remembers from an earlier connection.
 */
static bool establish(int (*how)(struct rdma_cm_id *, struct rdma_conn_param *),
		      unsigned int reads)
{
	struct rdma_conn_param param = {
		.private_data = private_data,
		.private_data_len = private_len,
		.responder_resources = reads,
		.retry_count = 7,
		.rnr_retry_count = 6,
	};

	if (how(conn, &param)) {
		if (errno == EADDRINUSE)
			return false;
		fail("no connection: %s", strerror(errno));
	}
	await(RDMA_CM_EVENT_ESTABLISHED);
	return true;
}

static struct sockaddr_in address(char **words)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(parse_u32(words[1])),
	};

	if (inet_pton(AF_INET, words[0], &addr.sin_addr) != 1)
		fail("%s is not numeric", words[0]);
	return addr;
}

static void need_no_connection(void)
{
	if (conn)
		fail("there is a connection already");
}

static void end_connection(void)
{
	struct ibv_wc wc;

	if (!conn)
		return;
	closed = true;
	rdma_disconnect(conn);
	rdma_destroy_qp(conn);
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		completed(&wc);
	rdma_destroy_id(conn);
	conn = NULL;
}

static bool connect_to(struct sockaddr_in *addr)
{
	happened = NOTHING;
	if (rdma_create_id(channel, &conn, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(conn, NULL, (struct sockaddr *)addr, RESOLVE_MS))
		fail("no address: %s", strerror(errno));
	await(RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(conn, RESOLVE_MS))
		fail("no route: %s", strerror(errno));
	await(RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_queues();
	return establish(rdma_connect, READS_MAX);
}

static void do_connect(char **words)
{
	struct sockaddr_in addr = address(words);
	unsigned int ports = PORTS;

	need_no_connection();
	while (!connect_to(&addr)) {
		end_connection();
		if (!--ports)
			fail("no port is free");
	}
}

static void do_listen(char **words)
{
	struct sockaddr_in addr = address(words);

	if (rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&addr) ||
	    rdma_listen(listener, SLOTS))
		fail("cannot listen: %s", strerror(errno));
	fprintf(stderr, "listening\n");
}

static bool is_requested(void)
{
	return request;
}

static void accept_request(void)
{
	conn = request;
	request = NULL;
	happened = NOTHING;
	make_queues();
	/* A responder serves no RDMA Reads. */
	if (!establish(rdma_accept, 1))
		fail("no port is free");
}

static void do_accept(char **words)
{
	(void)words;
	need_no_connection();
	if (!wait_until(is_requested))
		fail("nobody connects");
	accept_request();
}

/* Whoever leaves does not care for what else has arrived. */
static void do_disconnect(char **words)
{
	(void)words;
	end_connection();
	while (first)
		take_message();
}

static bool is_closed(void)
{
	return closed;
}

static void do_closed(char **words)
{
	(void)words;
	if (!wait_until(is_closed))
		fail("the connection is still there");
	end_connection();
}

/* Messages */

static bool is_taken(void)
{
	return closed || sent == taken;
}

static bool has_room(void)
{
	return closed || sent - taken < SLOTS;
}

/* A number, or a word of the last message */
static u32 parse_handle(char *word)
{
	static u8 octets[MESSAGE_MAX];
	char *words[2] = { };
	u32 handle;

	words[0] = word;
	if (build(words, octets) != sizeof(handle))
		fail("%s is no handle", word);
	memcpy(&handle, octets, sizeof(handle));
	return ntohl(handle);
}

/* An RDMA Write: its message begins with where it goes. */
static void aim(struct ibv_send_wr *wr, const u8 *segment)
{
	u32 words[SEGMENT_WORDS];

	if (wr->sg_list->length < sizeof(words))
		fail("an RDMA Write needs a segment");
	memcpy(words, segment, sizeof(words));
	wr->opcode = IBV_WR_RDMA_WRITE;
	wr->wr.rdma.rkey = ntohl(words[0]);
	wr->wr.rdma.remote_addr = (u64)ntohl(words[2]) << 32 | ntohl(words[3]);
	wr->sg_list->addr += sizeof(words);
	wr->sg_list->length -= sizeof(words);
}

static void post_send(char **words)
{
	unsigned int slot = sent % SLOTS;
	bool write = *words && !strcmp(*words, "^");
	struct ibv_sge sge = {
		.addr = (uintptr_t)slots[0][slot],
		.lkey = slots_mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = slot,
		.sg_list = &sge,
		.opcode = IBV_WR_SEND,
	};

	if (write) {
		words++;
	} else if (*words && **words == '!') {
		wr.opcode = IBV_WR_SEND_WITH_INV;
		wr.invalidate_rkey = parse_handle(*words++ + 1);
		/* where libsiw looks for it */
		wr.wr.rdma.rkey = wr.invalidate_rkey;
	}
	sge.length = build(words, slots[0][slot]);
	if (write)
		aim(&wr, slots[0][slot]);
	wr.num_sge = sge.length ? 1 : 0;
	if (!sent && conn->verbs->device->transport_type == IBV_TRANSPORT_IWARP)
		usleep(ACCEPTED_USEC);
	if (!ibv_post_send(conn->qp, &wr, &bad))
		sent++;
	else if (!wait_until(is_closed))	/* siw knows before we are told. */
		fail("a Send cannot be posted");
}

/* That the connection breaks is for what follows to find right or wrong. */
static void send_times(unsigned int times, char **words)
{
	if (!conn)
		fail("there is no connection");
	while (times-- && wait_until(has_room) && !closed)
		post_send(words);
	if (!wait_until(is_taken))
		fail("the other end does not take what is sent");
}

static void do_send(char **words)
{
	send_times(1, words);
}

static void do_flood(char **words)
{
	send_times(parse_u32(words[0]), words + 1);
}

static bool has_message(void)
{
	return first || closed;
}

static void do_expect(char **words)
{
	if (!wait_until(has_message))
		fail("nothing arrives");
	if (!first)
		fail("the connection is closed");
	if (!matches(words, first->data, first->len)) {
		show("received", first->data, first->len);
		fail("something else arrives");
	}
	take_message();
}

static char **copy(char **words)
{
	unsigned int i, count = 0;
	char **copied;

	while (words[count])
		count++;
	copied = calloc(count + 1, sizeof(*copied));
	for (i = 0; i < count; i++)
		copied[i] = strdup(words[i]);
	return copied;
}

/* Each word that is ; ends a message. Returns how many there are. */
static unsigned int part(char **words)
{
	unsigned int parts = 1;

	for (; *words; words++) {
		if (strcmp(*words, ";"))
			continue;
		free(*words);
		*words = NULL;
		parts++;
	}
	return parts;
}

static void do_answer(char **words)
{
	struct rule *rule = malloc(sizeof(*rule));
	char **equals = words;

	while (*equals && strcmp(*equals, "="))
		equals++;
	if (!*equals)
		fail("there is no =");
	*equals = NULL;
	rule->pattern = copy(words);
	rule->messages = copy(equals + 1);
	rule->count = part(rule->messages);
	rule->next = rules;
	rules = rule;
}

static bool never(void)
{
	return false;
}

static void rest(const char *seconds)
{
	double before = patience;

	patience = strtod(seconds, NULL);
	wait_until(never);
	patience = before;
}

static void send_messages(const struct rule *rule)
{
	char **message, **words = rule->messages;
	unsigned int i;

	for (i = 0; i < rule->count; i++) {
		message = words;
		if (*message && **message == '+')
			rest(*message++ + 1);
		send_times(1, message);
		while (*words++)
			;
	}
}

static void answer(void)
{
	const struct rule *rule;

	take_message();
	for (rule = rules; rule; rule = rule->next) {
		if (!matches(rule->pattern, last->data, last->len))
			continue;
		send_messages(rule);
		return;
	}
	show("not answered", last->data, last->len);
}

static bool is_needed(void)
{
	return first || request || (closed && conn);
}

/* A client that connects anew has left the connection it had. */
static void do_serve(char **words)
{
	while (!told_to_stop()) {
		wait_until(is_needed);
		if (first)
			answer();
		else if (conn && (closed || request))
			do_disconnect(words);
		else if (request)
			accept_request();
	}
}

/* Memory */

static void do_buffer(char **words)
{
	struct buffer *buffer = calloc(1, sizeof(*buffer));
	size_t len = parse_u32(words[1]);
	void *memory;

	if (!pd)
		fail("there was no connection yet");
	buffer->name = strdup(words[0]);
	if (posix_memalign(&memory, 4096, len))
		fail("no memory");
	memset(memory, 0xee, len);
	buffer->mr = ibv_reg_mr(pd, memory, len, IBV_ACCESS_LOCAL_WRITE |
				IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	if (!buffer->mr)
		fail("memory cannot be registered: %s", strerror(errno));
	buffer->next = buffers;
	buffers = buffer;
}

/* Where NAME OFFSET is, with room for as many octets */
static u8 *place(char **words, size_t len)
{
	struct ibv_mr *mr = buffer_find(words[0])->mr;
	size_t offset = parse_u32(words[1]);

	if (offset > mr->length || len > mr->length - offset)
		fail("buffer %s ends before", words[0]);
	return (u8 *)mr->addr + offset;
}

static void do_fill(char **words)
{
	static u8 octets[MESSAGE_MAX];
	size_t len = build(words + 2, octets);

	memcpy(place(words, len), octets, len);
}

static void do_holds(char **words)
{
	const struct ibv_mr *mr = buffer_find(words[0])->mr;
	const u8 *from = place(words, 0);
	size_t len = (u8 *)mr->addr + mr->length - from;

	if (!matches(words + 2, from, len)) {
		show("buffer:", from, len);
		fail("buffer %s holds something else", words[0]);
	}
}

/* The rest */

static void do_private(char **words)
{
	private_len = 0;
	for (; *words; words++)
		private_len += build_hex(*words, private_data + private_len,
					 sizeof(private_data) - private_len);
}

static void do_receives(char **words)
{
	receives = parse_u32(words[0]);
	if (receives > SLOTS)
		fail("at most %d Receives", SLOTS);
}

static void do_patience(char **words)
{
	patience = strtod(words[0], NULL);
}

static void do_sleep(char **words)
{
	rest(words[0]);
}

static const struct command commands[] = {
	{ "private", 0, do_private },
	{ "receives", 1, do_receives },
	{ "patience", 1, do_patience },
	{ "connect", 2, do_connect },
	{ "listen", 2, do_listen },
	{ "accept", 0, do_accept },
	{ "disconnect", 0, do_disconnect },
	{ "closed", 0, do_closed },
	{ "sleep", 1, do_sleep },
	{ "buffer", 2, do_buffer },
	{ "fill", 2, do_fill },
	{ "holds", 2, do_holds },
	{ "send", 0, do_send },
	{ "flood", 1, do_flood },
	{ "expect", 1, do_expect },
	{ "answer", 2, do_answer },
	{ "serve", 0, do_serve },
	{ NULL, 0, NULL },
};

int main(void)
{
	sigset_t end_signals;

	sigemptyset(&end_signals);
	sigaddset(&end_signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &end_signals, NULL);
	channel = rdma_create_event_channel();
	if (!channel || fcntl(channel->fd, F_SETFL, O_NONBLOCK))
		fail("no RDMA connection manager: %s", strerror(errno));

	run_script(commands);
	patience = LEFT_SECONDS;
	if (conn)
		wait_until(has_message);
	if (first) {
		show("left:", first->data, first->len);
		fail("this was not expected");
	}
	end_connection();
	return 0;
}
