// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A scripted peer for RPC-over-RDMA. It sends exactly what a script says,
 * correct or not. It knows Sends, Receives and registered memory, but not what
 * messages mean.
 *
 * The script is standard input, with a command on each line. In parentheses are
 * the values that hold without the command:
 *
 *	private [HEX...]	private data for later connections (none)
 *	receives N		Receives to post on later connections (64)
 *	timeout SECONDS		how long each command waits at most (10)
 *	connect ADDRESS PORT	connect as a requester
 *	crowd ADDRESS PORT N	request N more connections, and ignore the
 *				answers; over RoCE only
 *	listen ADDRESS PORT	receive connection requests
 *	accept			wait for a connection request and accept it
 *	disconnect		end the connection
 *	closed			wait until the other end closes the connection
 *	sleep SECONDS		wait
 *
 *	buffer NAME LENGTH	register memory that the other end may read and
 *				write, on this connection and on later ones
 *	fill NAME OFFSET MESSAGE	write to a buffer
 *	holds NAME OFFSET PATTERN	compare a buffer, from OFFSET to its end
 *
 *	send [!HANDLE] MESSAGE	send a message; with ! also invalidate a handle
 *	send ^ MESSAGE		post an RDMA Write instead: the MESSAGE is the
 *				segment to write to, and then the data
 *	flood N MESSAGE		send a message N times and ignore credits
 *	expect PATTERN		wait for a message and compare it
 *	answer PATTERN = MESSAGE [; MESSAGE...]	add a rule for serve: answer a
 *				message that matches with each MESSAGE, which is
 *				as for send. +SECONDS before a MESSAGE: wait so
 *				long first, and answer nobody meanwhile.
 *				disconnect instead of a MESSAGE, as the last one:
 *				end the connection. A later rule is tried before
 *				an earlier one.
 *	serve			accept connections and answer by the rules until
 *				SIGTERM
 *
 * A MESSAGE consists of these words:
 *
 *	17 or 0x11		a number of 32 bits, big endian
 *	:00ff			octets
 *	/name			an XDR string: length, characters and padding
 *	@a			a plain segment for all of buffer a: handle,
 *				length and 64 bits of address
 *	@a+OFFSET,LENGTH	a plain segment for a part of buffer a
 *	@a.handle @a.length @a.address	fields of the segment
 *	<N <N-M			word N, or words N to M, of the message that was
 *				received last; the first word is word 0
 *	<N+			the XDR opaque whose length is word N of it
 *
 * A PATTERN consists of the same words and these:
 *
 *	.			any word
 *	.+			any XDR opaque
 *	...			anything to the end; only as the last word
 *
 * The first command that fails ends the program with status 1. After the last
 * command the program fails if a message has arrived that was not expected.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

/* How long to wait at the end for messages that were not expected */
#define LEFT_SECONDS	0.05

/* Handle, length, and 64 bits of address */
#define SEGMENT_WORDS	4

/* A rule of the script for serve. Rules are never freed. */
struct rule {
	struct rule *next;
	char **pattern;
	char **messages;	/* one after the other; each ends with a NULL */
	unsigned int count;	/* of messages */
};

struct buffer *buffers;
static struct rule *rules;

/* Connections */

static struct sockaddr_in parse_address(char **words)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(parse_u32(words[1])),
	};

	if (inet_pton(AF_INET, words[0], &addr.sin_addr) != 1)
		fail("%s is not a numeric IPv4 address", words[0]);
	return addr;
}

static void need_no_connection(void)
{
	if (is_connected())
		fail("there is a connection already");
}

static void do_connect(char **words)
{
	struct sockaddr_in addr = parse_address(words);

	need_no_connection();
	connect_to(&addr);
}

static void do_crowd(char **words)
{
	struct sockaddr_in addr = parse_address(words);

	need_no_connection();
	crowd(&addr, parse_u32(words[2]));
}

static void do_listen(char **words)
{
	struct sockaddr_in addr = parse_address(words);

	listen_at(&addr);
	fprintf(stderr, "listening\n");
}

static void do_accept(char **words)
{
	(void)words;
	need_no_connection();
	if (!wait_until(is_requested))
		fail("no connection request came in time");
	accept_request();
	await_connection();
}

/* Messages that were received and not expected are dropped. */
static void do_disconnect(char **words)
{
	(void)words;
	end_connection();
	while (first)
		take_message();
}

static void do_closed(char **words)
{
	(void)words;
	if (!wait_until(is_closed))
		fail("the connection did not end in time");
	end_connection();
}

/* Messages */

/* A number, or a word of the last message */
static u32 parse_handle(char *word)
{
	static u8 octets[MESSAGE_MAX];
	char *words[2] = { };
	u32 handle;

	words[0] = word;
	if (build(words, octets) != sizeof(handle))
		fail("%s is not one word, as a handle is", word);
	memcpy(&handle, octets, sizeof(handle));
	return ntohl(handle);
}

/* Make an RDMA Write of a message that begins with its destination. */
static void aim(struct work *work)
{
	u32 words[SEGMENT_WORDS];

	if (work->len < sizeof(words))
		fail("an RDMA Write has to begin with a segment");
	memcpy(words, work->data, sizeof(words));
	work->opcode = IBV_WR_RDMA_WRITE;
	work->handle = ntohl(words[0]);
	work->address = (u64)ntohl(words[2]) << 32 | ntohl(words[3]);
	work->data += sizeof(words);
	work->len -= sizeof(words);
}

/* The arguments of the command send */
static void send_once(char **words)
{
	static u8 octets[MESSAGE_MAX];
	struct work work = { .opcode = IBV_WR_SEND, .data = octets };
	bool write = *words && !strcmp(*words, "^");

	if (write) {
		words++;
	} else if (*words && **words == '!') {
		work.opcode = IBV_WR_SEND_WITH_INV;
		work.handle = parse_handle(*words++ + 1);
	}
	work.len = build(words, octets);
	if (write)
		aim(&work);
	post_work(&work);
}

/* Does not fail if the connection breaks: later commands may expect that. */
static void send_times(unsigned int times, char **words)
{
	if (!is_connected())
		fail("there is no connection");
	while (times-- && wait_until(has_room) && !is_closed())
		send_once(words);
	if (!wait_until(all_completed))
		fail("what was sent did not complete in time");
}

static void do_send(char **words)
{
	send_times(1, words);
}

static void do_flood(char **words)
{
	send_times(parse_u32(words[0]), words + 1);
}

static void do_expect(char **words)
{
	if (!wait_until(has_message))
		fail("no message arrived in time");
	if (!first)
		fail("the connection was closed before a message arrived");
	if (!matches(words, first->data, first->len)) {
		show("received", first->data, first->len);
		fail("this message is not the expected one");
	}
	take_message();
}

/* A copy of words and of their array, up to a NULL */
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

/* Replace each word ; by a NULL, which ends a message. Returns their number. */
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
		fail("answer needs = between pattern and messages");
	*equals = NULL;
	rule->pattern = copy(words);
	rule->messages = copy(equals + 1);
	rule->count = part(rule->messages);
	rule->next = rules;
	rules = rule;
}

static void pause_for(const char *seconds)
{
	double before = settings.timeout;

	settings.timeout = strtod(seconds, NULL);
	wait_until(told_to_stop);
	settings.timeout = before;
}

static void send_messages(const struct rule *rule)
{
	char **message, **words = rule->messages;
	unsigned int i;

	for (i = 0; i < rule->count; i++) {
		message = words;
		if (*message && **message == '+')
			pause_for(*message++ + 1);
		if (*message && !strcmp(*message, "disconnect"))
			do_disconnect(message);
		else
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
	return first || is_requested() || (is_closed() && is_connected()) ||
	       told_to_stop();
}

/* A client that connects again does not use its old connection any more. */
static void do_serve(char **words)
{
	while (!told_to_stop()) {
		wait_until(is_needed);
		if (first)
			answer();
		else if (is_connected() && (is_closed() || is_requested()))
			do_disconnect(words);
		else if (is_requested())
			accept_request();
	}
}

/* Memory */

static void do_buffer(char **words)
{
	struct buffer *buffer = calloc(1, sizeof(*buffer));
	size_t len = parse_u32(words[1]);
	void *memory;

	buffer->name = strdup(words[0]);
	if (posix_memalign(&memory, 4096, len))
		fail("no memory");
	memset(memory, 0xee, len);
	buffer->mr = register_memory(memory, len);
	buffer->next = buffers;
	buffers = buffer;
}

/* The address of NAME OFFSET, from which the buffer has so many octets */
static u8 *place(char **words, size_t len)
{
	struct ibv_mr *mr = buffer_find(words[0])->mr;
	size_t offset = parse_u32(words[1]);

	if (offset > mr->length || len > mr->length - offset)
		fail("buffer %s ends before these octets", words[0]);
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
		fail("buffer %s does not hold these octets", words[0]);
	}
}

/* Settings */

static void do_private(char **words)
{
	size_t len = 0;

	for (; *words; words++)
		len += build_hex(*words, settings.private_data + len,
				 sizeof(settings.private_data) - len);
	settings.private_len = len;
}

static void do_receives(char **words)
{
	settings.receives = parse_u32(words[0]);
	if (settings.receives > SLOTS)
		fail("there can be at most %d Receives", SLOTS);
}

static void do_timeout(char **words)
{
	settings.timeout = strtod(words[0], NULL);
}

static void do_sleep(char **words)
{
	pause_for(words[0]);
}

static const struct command commands[] = {
	{ "private", 0, do_private },
	{ "receives", 1, do_receives },
	{ "timeout", 1, do_timeout },
	{ "connect", 2, do_connect },
	{ "crowd", 3, do_crowd },
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
	open_channel();
	run_script(commands);
	settings.timeout = LEFT_SECONDS;
	if (is_connected())
		wait_until(has_message);
	if (first) {
		show("left:", first->data, first->len);
		fail("the script did not expect this message");
	}
	end_connection();
	return 0;
}
