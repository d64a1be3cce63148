// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * rpcrdma ping: connect to a server as its NFS clients do, and send it NULL
 * Calls, one at a time.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "cmd.h"
#include "ping.h"

#define SYNOPSIS "ping [-46hjq] [-c COUNT] [-i SECONDS] [-W SECONDS] [-w SECONDS]\n" \
	"                    [-s OCTETS] [--program PROGRAM[:VERSION]]\n" \
	"                    [--rdma-version 1|2]\n" \
	"                    HOST[:PORT]"

/* Addresses of a name that are tried at most */
#define ADDRESSES	4

/* Settings of the client on this machine; these are the defaults of rpcrdma */
#define DEFAULT_CREDITS	128
#define DEFAULT_INLINE	16384

/**
 * struct session - the Calls on one connection
 * @run: what is reported
 * @conn: the connection, or NULL
 * @deadline: when all ends, by ping_now()
 * @call: the Call that was sent last
 * @version_max: of RPC-over-RDMA
 * @granted: Calls that may be without an answer at a time
 * @unanswered: Calls that are
 * @open: @call is one of these
 * @program_changed: the server has chosen another version of the program
 * @noted: there was a remark on @call
 *
 * On the stack of cmd_ping(), which ends the connection.
 */
struct session {
	struct ping_run run;
	struct ping_connection *conn;
	uint64_t deadline;
	struct ping_call call;
	unsigned int version_max;
	uint32_t granted;
	unsigned int unanswered;
	bool open;
	bool program_changed;
	bool noted;
};

static void __attribute__((format(printf, 3, 4)))
failed(struct session *s, int status, const char *format, ...)
{
	va_list args;

	s->run.status = status;
	va_start(args, format);
	vsnprintf(s->run.error, sizeof(s->run.error), format, args);
	va_end(args);
}

static void __attribute__((format(printf, 2, 3)))
note(struct session *s, const char *format, ...)
{
	char text[320];
	va_list args;

	/* A server that sends endlessly must not fill the screen. */
	if (s->noted)
		return;
	s->noted = true;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ping_report_note(&s->run, text);
}

/* A time to wait until, which is not after the deadline */
static uint64_t in_time(const struct session *s, uint64_t time)
{
	return time < s->deadline ? time : s->deadline;
}

/* What a mount on this machine would announce and ask for */

static uint32_t setting(const char *name, uint32_t otherwise)
{
	char path[64];
	uint32_t value;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/sys/sunrpc/%s", name);
	file = fopen(path, "r");
	if (!file)
		return otherwise;
	if (fscanf(file, "%u", &value) != 1)
		value = otherwise;
	fclose(file);
	return value;
}

static void use_settings(struct session *s)
{
	u8 octets[RPCRDMA_PRIVATE_LEN];
	struct ping_run *run = &s->run;

	run->ours_sent = setting("rdma_private_data", 1);
	/* The defaults of RFC 8166, unless this end announces others */
	rpcrdma_wire_decode_private(&run->ours, NULL, 0);
	if (run->ours_sent) {
		run->ours.send_size = setting("rdma_max_inline_write", DEFAULT_INLINE);
		run->ours.recv_size = setting("rdma_max_inline_read", DEFAULT_INLINE);
		/* What user space registers no peer can invalidate. */
		run->ours.remote_inv = !run->options->size &&
				       setting("rdma_remote_invalidation", 1);
		/* It can only announce multiples of 1024 octets. */
		rpcrdma_wire_encode_private(&run->ours, octets);
		rpcrdma_wire_decode_private(&run->ours, octets, sizeof(octets));
	}
	s->version_max = run->options->rdma_version;
	if (!s->version_max)
		s->version_max = setting("rdma_version", RPCRDMA_VERSION_ONE);
	if (s->version_max > RPCRDMA_VERSION_MAX)
		s->version_max = RPCRDMA_VERSION_MAX;
	s->call.credits = setting("rdma_slot_table_entries", DEFAULT_CREDITS);
}

/* Connecting */

/* Only a name server can take long. A lookup that does goes on until exit(). */
static int look_up(const struct session *s, struct addrinfo **list)
{
	const struct ping_options *options = s->run.options;
	uint64_t now = ping_now(), until = in_time(s, now + options->timeout);
	uint64_t patience = until > now ? until - now : 0;
	static struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
	};
	static struct gaicb request;
	struct gaicb *requests[] = { &request };
	struct timespec timeout = {
		.tv_sec = patience / NSEC_PER_SEC,
		.tv_nsec = patience % NSEC_PER_SEC,
	};
	int error;

	hints.ai_family = options->family;
	error = getaddrinfo(options->host.name, options->host.port, &hints, list);
	if (error != EAI_NONAME)
		return error;
	hints.ai_flags = AI_NUMERICSERV;
	request.ar_name = options->host.name;
	request.ar_service = options->host.port;
	request.ar_request = &hints;
	error = getaddrinfo_a(GAI_NOWAIT, requests, 1, NULL);
	if (error)
		return error;
	error = gai_suspend((const struct gaicb * const *)requests, 1, &timeout);
	/* After the time-out glibc 2.36 has EAI_SYSTEM. */
	if (error && error != EAI_ALLDONE)
		return EAI_AGAIN;
	*list = request.ar_result;
	return gai_error(&request);
}

static bool connect_to(struct session *s, const struct addrinfo *to)
{
	u8 octets[RPCRDMA_PRIVATE_LEN];
	struct ping_run *run = &s->run;
	struct ping_wanted wanted = {
		.deadline = in_time(s, ping_now() + run->options->timeout),
		.private_data = octets,
		.private_len = run->ours_sent ? sizeof(octets) : 0,
		.receive_size = rpcrdma_wire_threshold(s->version_max, run->ours.recv_size),
		.size = run->options->size,
	};
	enum ping_wait result;

	rpcrdma_wire_encode_private(&run->ours, octets);
	s->conn = ping_connect(to->ai_addr, &wanted, &result);
	if (!s->conn) {
		failed(s, PING_ERROR, "out of memory");
		return false;
	}
	if (result == PING_CLOSED)
		failed(s, ping_why_code(s->conn), "%s", ping_why(s->conn));
	else if (result != PING_DONE)
		failed(s, PING_NO_ANSWER, "%s: stopped before it was connected",
		       ping_path(s->conn)->peer);
	if (result == PING_DONE)
		return true;
	ping_disconnect(s->conn);
	s->conn = NULL;
	return false;
}

static bool connected(struct session *s)
{
	const struct ping_options *options = s->run.options;
	struct addrinfo *list = NULL, *to;
	unsigned int tried = 0;
	int error;

	error = look_up(s, &list);
	if (error) {
		failed(s, PING_ERROR, "%s: no address: %s", options->host.name,
		       error == EAI_AGAIN ? "no answer from the name server in time" :
					    gai_strerror(error));
		return false;
	}
	for (to = list; to && tried < ADDRESSES; to = to->ai_next, tried++) {
		/* Earlier errors are worth a line, too. */
		if (tried)
			fprintf(stderr, "rpcrdma: %s\n", s->run.error);
		if (connect_to(s, to))
			break;
	}
	freeaddrinfo(list);
	return s->conn;
}

static void agree(struct session *s)
{
	struct ping_run *run = &s->run;

	run->error[0] = '\0';
	run->path = ping_path(s->conn);
	run->theirs_found = rpcrdma_wire_decode_private(&run->theirs, run->path->private_data,
							run->path->private_len);
	rpcrdma_wire_agree(&run->ours, &run->theirs, &run->agreement);
	s->call.threshold = run->agreement.call_threshold;
	s->call.size = run->options->size;
	ping_arguments(s->conn, &s->call.arguments, &s->call.handle);
	run->is_inline = ping_is_inline(&s->call);
	ping_report_path(run);
}

/* Calls */

/* Only what answers a Call of this connection grants credits. */
static void take_grant(struct session *s, const struct ping_answer *answer)
{
	if (answer->grants)
		s->granted = answer->credits ? answer->credits : 1;
}

/* A message that is not for the Call that is open. False: it is. */
static bool aside(struct session *s, const struct ping_answer *answer)
{
	switch (answer->verdict) {
	case PING_BROKEN:
		s->run.ignored++;
		note(s, "ignored a message: %s", answer->why);
		return true;
	case PING_OTHER_XID:
		/* Late, if it has the XID of an earlier Call. */
		if (s->call.xid - answer->xid <= s->run.sent && s->unanswered > s->open) {
			s->unanswered--;
			take_grant(s, answer);
			note(s, "an answer to an earlier Call came late");
		} else {
			s->run.ignored++;
			note(s, "ignored a message: its XID is that of no Call");
		}
		return true;
	default:
		if (s->open)
			return false;
		s->run.ignored++;
		note(s, "ignored a second answer");
		return true;
	}
}

/* Wait for the answer to the Call that is open, or just wait. */
static enum ping_wait pass(struct session *s, uint64_t deadline, struct ping_answer *answer)
{
	enum ping_wait result;
	const void *data;
	uint32_t len;

	do {
		result = ping_receive(s->conn, deadline, &data, &len);
		if (result)
			return result;
		ping_judge(answer, &s->call, data, len);
		if (!aside(s, answer)) {
			take_grant(s, answer);
			s->open = false;
			s->unanswered--;
			return PING_DONE;
		}
	} while (ping_now() < deadline);
	return PING_TIMEOUT;
}

static void succeeded(struct session *s, const struct ping_answer *answer, uint64_t ns)
{
	struct ping_run *run = &s->run;

	run->answered++;
	run->credits = answer->credits;
	run->version = s->call.version;
	run->program_version = s->call.program_version;
	ping_stats_add(&run->stats, ns);
	ping_report_answer(run, ns);
}

/* False: there is no other version, or it is not to be tried. */
static bool other_version(struct session *s, const struct ping_answer *answer)
{
	if (!answer->other)
		return false;
	if (answer->verdict == PING_OTHER_TRANSPORT) {
		s->call.version = answer->other;
		s->run.is_inline = ping_is_inline(&s->call);
	} else {
		if (!s->run.options->any_version || s->program_changed)
			return false;
		s->program_changed = true;
		s->call.program_version = answer->other;
	}
	note(s, "%s: trying version %u", answer->why, answer->other);
	/* It was about the version, and does not count as a Call. */
	s->run.sent--;
	return true;
}

/* False: there is no use in further Calls. */
static bool answered(struct session *s, const struct ping_answer *answer, uint64_t ns)
{
	if (answer->verdict == PING_SUCCESS) {
		succeeded(s, answer, ns);
		return true;
	}
	if (other_version(s, answer))
		return true;
	failed(s, PING_ERROR, "%s: %s", s->run.path->peer, answer->why);
	return false;
}

/* What else to say if no large Call was answered */
static const char *advice(const struct session *s)
{
	if (s->run.answered || !s->run.options->size)
		return "";
	return ": if ping without -s is answered, large packets are lost: compare MTUs on the way";
}

/* How waiting has ended, if not with an answer. False: no further Calls. */
static bool not_answered(struct session *s, enum ping_wait result)
{
	if (result == PING_TIMEOUT) {
		s->noted = false;
		note(s, "no answer in time");
		return true;
	}
	if (result == PING_CLOSED)
		failed(s, ping_why_code(s->conn), "%s%s", ping_why(s->conn), advice(s));
	return false;
}

static bool send_call(struct session *s)
{
	struct ping_answer answer;
	enum ping_wait result;
	uint64_t start;
	uint32_t len;

	s->call.xid++;
	s->run.sent++;
	s->noted = false;
	start = ping_now();
	len = ping_build(&s->call, ping_slot(s->conn));
	result = ping_send(s->conn, len, ping_is_inline(&s->call) ? s->call.size : 0);
	if (!result) {
		s->open = true;
		s->unanswered++;
		result = pass(s, in_time(s, start + s->run.options->timeout), &answer);
	}
	return result ? not_answered(s, result) : answered(s, &answer, ping_now() - start);
}

/* Answers that come meanwhile are late. False: no further Calls. */
static bool rest(struct session *s, uint64_t until)
{
	struct ping_answer answer;
	enum ping_wait result;

	for (;;) {
		result = pass(s, until, &answer);
		if (result)
			break;
		/* There is one at most, after "no answer in time". */
		s->noted = false;
		note(s, "the answer came late");
	}
	return result == PING_TIMEOUT || not_answered(s, result);
}

/* One Receive is not posted while its message is looked at. */
static bool may_send(struct session *s)
{
	uint32_t limit = PING_RECEIVES - 1;

	if (limit > s->granted)
		limit = s->granted;
	if (s->unanswered < limit)
		return true;
	s->noted = false;
	note(s, "no further Calls: %u are without an answer, and no more may be", s->unanswered);
	return false;
}

static void send_calls(struct session *s)
{
	const struct ping_options *options = s->run.options;
	unsigned int before;
	uint64_t start;

	while (ping_now() < s->deadline && may_send(s)) {
		before = s->run.sent;
		start = ping_now();
		if (!send_call(s) || s->run.sent == options->count)
			return;
		/* Another version is tried at once. */
		if (s->run.sent > before && !rest(s, in_time(s, start + options->interval)))
			return;
	}
}

static void run_session(struct session *s)
{
	s->call.program = s->run.options->program;
	s->call.program_version = s->run.options->program_version;
	s->call.version = s->version_max;
	/* Not that of Calls that a server remembers from the last time */
	if (getrandom(&s->call.xid, sizeof(s->call.xid), GRND_NONBLOCK) != sizeof(s->call.xid))
		s->call.xid = ping_now();
	s->granted = 1;
	agree(s);
	send_calls(s);
	if (s->run.error[0])
		return;
	s->run.status = s->run.answered >= s->run.options->needed ? PING_ANSWERED :
			!s->run.answered && s->run.ignored ? PING_ERROR : PING_NO_ANSWER;
	if (!s->run.answered && s->run.sent && *advice(s))
		failed(s, s->run.status, "%s: no answer%s", s->run.path->peer, advice(s));
}

int cmd_ping(int argc, char **argv)
{
	/* Static, because a lookup that was given up may still use it. */
	static struct ping_options options;
	struct session s = { .run.options = &options };
	const char *wrong = ping_options(&options, argc, argv);

	if (options.help || (wrong && !*wrong))
		usage_of(options.help ? 'h' : '?', PING_ERROR, SYNOPSIS);
	if (wrong && !options.refused)
		die(PING_ERROR, "ping: %s", wrong);
	if (wrong)
		die(PING_ERROR, "ping: %s (got %s)", wrong, options.refused);
	if (!ping_stats_init(&s.run.stats, options.count))
		die(PING_ERROR, "out of memory");
	setlinebuf(stdout);
	ping_signals();
	s.deadline = options.deadline ? ping_now() + options.deadline : UINT64_MAX;
	use_settings(&s);
	if (connected(&s))
		run_session(&s);
	ping_report_end(&s.run);
	fflush(stdout);
	if (s.conn)
		ping_disconnect(s.conn);
	ping_stats_free(&s.run.stats);
	return s.run.status;
}
