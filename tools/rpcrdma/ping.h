/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The parts of rpcrdma ping: ping.c is the command, ping_options.c reads its
 * arguments, ping_connection.c has the connection, ping_call.c the messages,
 * ping_stats.c the round trips, and ping_report.c what is printed.
 *
 * Whatever comes from the server is hostile until ping_judge() has checked it.
 * Nothing that the server sends is printed but numbers.
 */
#ifndef RPCRDMA_PING_H
#define RPCRDMA_PING_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include "host.h"
#include "wire/message.h"

#define NSEC_PER_SEC	1000000000ull
#define NSEC_PER_MSEC	1000000ull

/* Exit codes, as ping(8) has them */
enum {
	PING_ANSWERED = 0,	/* a Call was answered, and nothing went wrong */
	PING_NO_ANSWER = 1,	/* nobody is there, or nobody answers */
	PING_ERROR = 2,		/* all else */
};

/* Options, ping_options.c */

#define PING_COUNT_MAX	1000000
#define PING_SIZE_MAX	4194304	/* the largest payload of any server */

/**
 * struct ping_options - what the user wants
 * @host: the server
 * @family: AF_INET, AF_INET6 or AF_UNSPEC
 * @count: Calls to send at most
 * @needed: answers without which nobody is taken to be there
 * @interval: nanoseconds from one Call to the next
 * @timeout: nanoseconds to wait for each answer, and for a connection
 * @deadline: nanoseconds after which all ends, or 0
 * @size: octets of arguments in each Call, a multiple of four
 * @program: RPC program to call
 * @program_version: its version
 * @any_version: the user did not choose @program_version
 * @rdma_version: highest version of RPC-over-RDMA to try, or 0: that of mounts
 * @json: print one JSON object
 * @quiet: print no line for each answer
 * @help: print the synopsis and do nothing
 * @refused: the argument that is wrong, or NULL
 */
struct ping_options {
	struct host host;
	int family;
	unsigned int count;
	unsigned int needed;
	uint64_t interval;
	uint64_t timeout;
	uint64_t deadline;
	uint32_t size;
	uint32_t program;
	uint32_t program_version;
	bool any_version;
	unsigned int rdma_version;
	bool json;
	bool quiet;
	bool help;
	const char *refused;
};

/**
 * ping_options - read the arguments
 * @options: filled in
 * @argv: as main() gets it; its order may change
 *
 * Return: NULL, or what is wrong with them, which lives forever; "" if getopt_long() has said it.
 */
const char *ping_options(struct ping_options *options, int argc, char **argv);

/* Messages, ping_call.c */

/* Octets of the RPC message, without arguments */
#define PING_RPC_LEN	40

/* Octets of a Call without its arguments, in any version of RPC-over-RDMA */
#define PING_CALL_MAX	(RPCRDMA_V2_HEADER_MIN + 2 * RPCRDMA_READ_SEGMENT_LEN + PING_RPC_LEN)

/**
 * struct ping_call - a NULL Call
 * @xid: its XID
 * @version: of RPC-over-RDMA
 * @credits: to ask for
 * @program: RPC program
 * @program_version: its version
 * @threshold: octets that may be sent inline, as agreed on by RFC 8797
 * @size: octets of arguments
 * @arguments: where these are
 * @handle: by which the server may read them, and the memory that the Call is built in
 */
struct ping_call {
	uint32_t xid;
	unsigned int version;
	uint32_t credits;
	uint32_t program;
	uint32_t program_version;
	uint32_t threshold;
	uint32_t size;
	const void *arguments;
	uint32_t handle;
};

/* What a received message is to a Call */
enum ping_verdict {
	PING_SUCCESS,		/* its answer */
	PING_OTHER_PROGRAM,	/* PROG_MISMATCH */
	PING_OTHER_TRANSPORT,	/* ERR_VERS */
	PING_REFUSED,		/* an answer that says why there is no result */
	PING_OTHER_XID,		/* well-formed, for another Call */
	PING_BROKEN,		/* no message that the Call can use */
};

/**
 * struct ping_answer - what a received message says
 * @verdict: what it is
 * @xid: of the Call that it answers, unless @verdict is PING_BROKEN
 * @grants: @credits is a grant
 * @credits: credits
 * @other: with one of the PING_OTHER_: the version to try instead, which the
 *	server says it has; 0: there is none
 * @why: one line, unless @verdict is PING_SUCCESS or PING_OTHER_XID
 */
struct ping_answer {
	enum ping_verdict verdict;
	uint32_t xid;
	bool grants;
	uint32_t credits;
	uint32_t other;
	char why[128];
};

/**
 * ping_is_inline - whether a Call travels in one Send, with its arguments
 *
 * If not, it is a Long Call: the server reads the RPC message (RFC 8166 section 3.5.3). A Read
 * chunk for the arguments alone would break the rules, because NULL has none (section 3.4.2).
 */
bool ping_is_inline(const struct ping_call *call);

/**
 * ping_build - build a Call
 * @buf: memory for PING_CALL_MAX octets, aligned to four
 *
 * Return: the octets of it to be sent; the arguments follow if it is inline.
 */
uint32_t ping_build(const struct ping_call *call, void *buf);

/**
 * ping_judge - find out what a received message is to a Call
 * @answer: filled in
 * @call: the Call
 * @buf: the message, aligned to four octets
 * @len: octets received
 *
 * Implements RFC 8166 section 4.5 and RFC 5531 section 9.
 */
void ping_judge(struct ping_answer *answer, const struct ping_call *call,
		const void *buf, uint32_t len);

/* Round trips, ping_stats.c */

/**
 * struct ping_stats - round trips
 * @ns: nanoseconds of each, in memory that ping_stats_init() allocates
 * @count: number of them
 * @room: for so many there is memory
 *
 * Part of a run, which ends it by ping_stats_free().
 */
struct ping_stats {
	uint64_t *ns;
	unsigned int count;
	unsigned int room;
};

/** ping_stats_init - make room; false: there is not so much memory */
bool ping_stats_init(struct ping_stats *stats, unsigned int room);
void ping_stats_free(struct ping_stats *stats);
void ping_stats_add(struct ping_stats *stats, uint64_t ns);

/** ping_stats_sort - prepare for ping_stats_rank() */
void ping_stats_sort(struct ping_stats *stats);

/**
 * ping_stats_rank - the round trip that a part of all do not exceed
 * @stats: sorted, and not empty
 * @percent: 0 for the shortest one, up to 100
 *
 * Return: nanoseconds of the one with the nearest rank: always one that was
 * measured.
 */
uint64_t ping_stats_rank(const struct ping_stats *stats, unsigned int percent);

/* The connection, ping_connection.c */

struct ping_connection;

/* How waiting for something has ended */
enum ping_wait {
	PING_DONE,
	PING_TIMEOUT,
	PING_SIGNAL,		/* the user wants an end */
	PING_CLOSED,		/* there is no connection, or no more */
};

/**
 * struct ping_path - where a connection goes
 * @local: numeric address of this end
 * @peer: numeric address of the server
 * @device: the RDMA device
 * @device_port: its port
 * @private_len: octets of @private_data; those of RoCE and InfiniBand are
 *	padded with zeros
 * @private_data: what the server sent when it accepted
 */
struct ping_path {
	char local[NI_MAXHOST];
	char peer[NI_MAXHOST];
	char device[64];
	unsigned int device_port;
	uint32_t private_len;
	uint8_t private_data[256];
};

/**
 * struct ping_wanted - what ping_connect() needs to know
 * @deadline: when to give up, by ping_now()
 * @private_data: to send
 * @private_len: octets of it, may be 0
 * @receive_size: octets of each Receive
 * @size: octets of arguments
 */
struct ping_wanted {
	uint64_t deadline;
	const void *private_data;
	uint8_t private_len;
	uint32_t receive_size;
	uint32_t size;
};

/* Receives posted at any time, and so the Calls without an answer at most */
#define PING_RECEIVES	8

/** ping_now - nanoseconds of a clock that is never set */
uint64_t ping_now(void);

/** ping_signals - from now on SIGINT ends waits, a second one the program */
void ping_signals(void);

/**
 * ping_connect - connect to a server
 * @to: its address and port
 * @wanted: the rest
 * @result: PING_DONE, or how it failed
 *
 * Return: the connection, which the caller ends by ping_disconnect(), also if
 * it failed: then ping_why() tells why, and nothing else may be called. NULL if
 * there is no memory.
 */
struct ping_connection *ping_connect(const struct sockaddr *to, const struct ping_wanted *wanted,
				     enum ping_wait *result);

/** ping_path - where it goes; valid as long as the connection */
const struct ping_path *ping_path(const struct ping_connection *conn);

/**
 * ping_arguments - the arguments of each Call, all zero, and the handle of this and the next
 */
void ping_arguments(const struct ping_connection *conn, const void **arguments, uint32_t *handle);

/**
 * ping_slot - where the next Call is to be built, for PING_CALL_MAX octets
 *
 * It stays as it is until the next ping_slot() but 63, because the server may read it.
 */
void *ping_slot(struct ping_connection *conn);

/**
 * ping_send - post a Send
 * @len: octets of it in ping_slot()
 * @size: octets of the arguments that follow
 *
 * The caller receives an answer before it has sent more than PING_RECEIVES.
 */
enum ping_wait ping_send(struct ping_connection *conn, uint32_t len, uint32_t size);

/**
 * ping_receive - wait for a message
 * @data: set to the message, which lives until the next ping_receive()
 * @len: set to its octets
 */
enum ping_wait ping_receive(struct ping_connection *conn, uint64_t deadline,
			    const void **data, uint32_t *len);

/** ping_why - after PING_CLOSED: one line; valid as long as the connection */
const char *ping_why(const struct ping_connection *conn);

/** ping_why_code - after PING_CLOSED: PING_NO_ANSWER or PING_ERROR */
int ping_why_code(const struct ping_connection *conn);

void ping_disconnect(struct ping_connection *conn);

/* What is printed, ping_report.c */

/**
 * struct ping_run - a run of the command
 * @options: what the user wants
 * @path: where the connection goes, or NULL if there is none
 * @ours: what this end announces by RFC 8797
 * @ours_sent: it does announce it
 * @theirs: what the server announces, or the defaults
 * @theirs_found: it does announce it
 * @agreement: what follows from both
 * @is_inline: Calls with the arguments wanted travel in one Send
 * @version: of RPC-over-RDMA, that the server takes
 * @program_version: of the RPC program, that the server takes
 * @credits: what the server granted last, if @answered is not zero
 * @sent: Calls
 * @answered: of them, in time
 * @ignored: messages that no Call could use
 * @stats: their round trips
 * @error: one line, or empty
 * @status: exit code
 */
struct ping_run {
	const struct ping_options *options;
	const struct ping_path *path;
	struct rpcrdma_params ours;
	bool ours_sent;
	struct rpcrdma_params theirs;
	bool theirs_found;
	struct rpcrdma_agreement agreement;
	bool is_inline;
	unsigned int version;
	uint32_t program_version;
	uint32_t credits;
	unsigned int sent;
	unsigned int answered;
	unsigned int ignored;
	struct ping_stats stats;
	char error[512];
	int status;
};

/** ping_report_path - print what the connection is, as soon as there is one */
void ping_report_path(const struct ping_run *run);

/** ping_report_answer - print an answer that has just come */
void ping_report_answer(const struct ping_run *run, uint64_t ns);

/** ping_report_note - print a remark on the Call that was sent last */
void ping_report_note(const struct ping_run *run, const char *note);

/** ping_report_end - print the sums, or the JSON object */
void ping_report_end(struct ping_run *run);

#endif
