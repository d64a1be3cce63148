// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The arguments of rpcrdma ping. */

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "ping.h"

#define DEFAULT_PORT	"20049"		/* RFC 8267 */
#define DEFAULT_COUNT	5
#define NFS_PROGRAM	100003
#define NFS_VERSION	3
#define SECONDS_MAX	3600

/* Digits only: strtoul() alone takes signs and blanks, too. */
static bool parse_number(const char *text, unsigned long max, uint32_t *number)
{
	unsigned long value;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value > max)
		return false;
	*number = value;
	return true;
}

static bool parse_seconds(const char *text, double min, uint64_t *ns)
{
	double seconds;
	char *end;

	seconds = strtod(text, &end);
	/* False for a NaN as well */
	if (end == text || *end || !(seconds >= min && seconds <= SECONDS_MAX))
		return false;
	*ns = llround(seconds * NSEC_PER_SEC);
	return true;
}

/* PROGRAM or PROGRAM:VERSION */
static bool parse_program(struct ping_options *options, const char *text)
{
	const char *colon = strchr(text, ':');
	char program[16];

	if (colon && !parse_number(colon + 1, UINT32_MAX,
				   &options->program_version))
		return false;
	if (snprintf(program, sizeof(program), "%.*s",
		     (int)(colon ? colon - text : (long)strlen(text)), text) >=
	    (int)sizeof(program))
		return false;
	if (!strcmp(program, "nfs"))
		options->program = NFS_PROGRAM;
	else if (!parse_number(program, UINT32_MAX, &options->program))
		return false;
	options->any_version = !colon;
	/* Other programs than NFS mostly begin at 1; the server knows better. */
	if (!colon)
		options->program_version =
			options->program == NFS_PROGRAM ? NFS_VERSION : 1;
	return true;
}

static bool set_host(struct ping_options *options, const char *host, size_t len)
{
	if (!len || len >= sizeof(options->host))
		return false;
	memcpy(options->host, host, len);
	options->host[len] = '\0';
	/* It is printed, and may come from a script. */
	for (; *host && len; host++, len--)
		if (*host <= ' ' || *host > '~')
			return false;
	return true;
}

static bool set_port(struct ping_options *options, const char *text)
{
	uint32_t port;

	if (!parse_number(text, 65535, &port) || !port)
		return false;
	snprintf(options->port, sizeof(options->port), "%u", port);
	return true;
}

/* HOST, HOST:PORT, an IPv6 address, [IPV6] or [IPV6]:PORT */
static bool parse_host(struct ping_options *options, const char *text)
{
	const char *end, *colon = strchr(text, ':');

	if (*text == '[') {
		end = strchr(text, ']');
		if (!end || !set_host(options, text + 1, end - text - 1))
			return false;
		return !end[1] ||
		       (end[1] == ':' && set_port(options, end + 2));
	}
	if (!colon || strchr(colon + 1, ':'))
		return set_host(options, text, strlen(text));
	return set_host(options, text, colon - text) &&
	       set_port(options, colon + 1);
}

enum { OPTION_PROGRAM = 256, OPTION_JSON, OPTION_HELP, OPTION_VERSION };

static const struct option long_options[] = {
	{ "program", required_argument, NULL, OPTION_PROGRAM },
	{ "rdma-version", required_argument, NULL, OPTION_VERSION },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "help", no_argument, NULL, OPTION_HELP },
	{}
};

/* Returns what the option would have to be, or NULL if it is. */
static const char *take(struct ping_options *options, int option)
{
	uint32_t number;

	switch (option) {
	case 'c':
		if (!parse_number(optarg, PING_COUNT_MAX, &number) || !number)
			return "-c: a number from 1 to 1000000";
		options->count = number;
		return NULL;
	case 'i':
		return parse_seconds(optarg, 0, &options->interval) ? NULL :
		       "-i: seconds from 0 to 3600";
	case 'W':
		return parse_seconds(optarg, 0.001, &options->timeout) ? NULL :
		       "-W: seconds from 0.001 to 3600";
	case OPTION_PROGRAM:
		return parse_program(options, optarg) ? NULL :
		       "--program: PROGRAM or PROGRAM:VERSION, in digits";
	case OPTION_VERSION:
		if (!parse_number(optarg, RPCRDMA_VERSION_MAX, &number) ||
		    !number)
			return "--rdma-version: 1 or 2";
		options->rdma_version = number;
		return NULL;
	case '4':
		options->family = AF_INET;
		return NULL;
	case '6':
		options->family = AF_INET6;
		return NULL;
	case 'j':
	case OPTION_JSON:
		options->json = true;
		return NULL;
	case 'q':
		options->quiet = true;
		return NULL;
	case 'h':
	case OPTION_HELP:
		options->help = true;
		return NULL;
	default:
		return "there is no such option, or it lacks its value";
	}
}

const char *ping_options(struct ping_options *options, int argc, char **argv)
{
	const char *wrong;
	int option;

	*options = (struct ping_options){
		.port = DEFAULT_PORT,
		.family = AF_UNSPEC,
		.count = DEFAULT_COUNT,
		.interval = NSEC_PER_SEC,
		.timeout = 5 * NSEC_PER_SEC,
		.program = NFS_PROGRAM,
		.program_version = NFS_VERSION,
		.any_version = true,
	};
	optind = 0;	/* glibc: begin again, also after an earlier call */
	opterr = 0;
	while ((option = getopt_long(argc, argv, "c:i:W:46jqh", long_options,
				     NULL)) != -1) {
		wrong = take(options, option);
		if (wrong)
			return wrong;
	}
	if (options->help)
		return NULL;
	if (optind != argc - 1)
		return argc == optind ? "which HOST?" : "one HOST at a time";
	if (!parse_host(options, argv[optind]))
		return "HOST: name, name:port, address, address:port or [address]:port";
	return NULL;
}
