// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The arguments of rpcrdma ping. */

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "number.h"
#include "ping.h"

#define DEFAULT_COUNT	5
#define NFS_PROGRAM	100003
#define NFS_VERSION	3
#define SECONDS_MAX	3600

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

/* XDR has whole words. */
static bool parse_size(const char *text, uint32_t *size)
{
	if (!number_parse(text, 0, PING_SIZE_MAX, size))
		return false;
	*size = rpcrdma_wire_round_up(*size);
	return true;
}

/* PROGRAM or PROGRAM:VERSION */
static bool parse_program(struct ping_options *options, const char *text)
{
	const char *colon = strchr(text, ':');
	char program[16];

	if (colon && !number_parse(colon + 1, 0, UINT32_MAX, &options->program_version))
		return false;
	if (snprintf(program, sizeof(program), "%.*s",
		     (int)(colon ? colon - text : (long)strlen(text)), text) >=
	    (int)sizeof(program))
		return false;
	if (!strcmp(program, "nfs"))
		options->program = NFS_PROGRAM;
	else if (!number_parse(program, 0, UINT32_MAX, &options->program))
		return false;
	options->any_version = !colon;
	/* Other programs than NFS mostly begin at 1; the server knows better. */
	if (!colon)
		options->program_version = options->program == NFS_PROGRAM ? NFS_VERSION : 1;
	return true;
}

enum { OPTION_PROGRAM = 256, OPTION_VERSION };

static const struct option long_options[] = {
	{ "count", required_argument, NULL, 'c' },
	{ "interval", required_argument, NULL, 'i' },
	{ "timeout", required_argument, NULL, 'W' },
	{ "deadline", required_argument, NULL, 'w' },
	{ "size", required_argument, NULL, 's' },
	{ "ipv4", no_argument, NULL, '4' },
	{ "ipv6", no_argument, NULL, '6' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "program", required_argument, NULL, OPTION_PROGRAM },
	{ "rdma-version", required_argument, NULL, OPTION_VERSION },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{}
};

/* Returns what the option would have to be, or NULL if it is. */
static const char *take(struct ping_options *options, int option)
{
	uint32_t number;

	switch (option) {
	case 'c':
		if (!number_parse(optarg, 1, PING_COUNT_MAX, &number))
			return "-c: a number from 1 to 1000000";
		options->count = number;
		return NULL;
	case 'i':
		return parse_seconds(optarg, 0, &options->interval) ? NULL :
		       "-i: seconds from 0 to 3600";
	case 'W':
		return parse_seconds(optarg, 0.001, &options->timeout) ? NULL :
		       "-W: seconds from 0.001 to 3600";
	case 'w':
		return parse_seconds(optarg, 0.001, &options->deadline) ? NULL :
		       "-w: seconds from 0.001 to 3600";
	case 's':
		return parse_size(optarg, &options->size) ? NULL :
		       "-s: octets from 0 to 4194304";
	case OPTION_PROGRAM:
		return parse_program(options, optarg) ? NULL :
		       "--program: PROGRAM or PROGRAM:VERSION, in digits";
	case OPTION_VERSION:
		if (!number_parse(optarg, 1, RPCRDMA_VERSION_MAX, &number))
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
		options->json = true;
		return NULL;
	case 'q':
		options->quiet = true;
		return NULL;
	case 'h':
		options->help = true;
		return NULL;
	default:
		return "";
	}
}

const char *ping_options(struct ping_options *options, int argc, char **argv)
{
	const char *wrong;
	int option;

	*options = (struct ping_options){
		.family = AF_UNSPEC,
		.interval = NSEC_PER_SEC,
		.timeout = 5 * NSEC_PER_SEC,
		.program = NFS_PROGRAM,
		.program_version = NFS_VERSION,
		.any_version = true,
	};
	optind = 0;	/* glibc: begin again, also after an earlier call */
	while ((option = getopt_long(argc, argv, "c:i:W:w:s:46jqh", long_options, NULL)) != -1) {
		wrong = take(options, option);
		if (wrong) {
			options->refused = optarg;
			return wrong;
		}
	}
	/* As ping(8) has it: after a deadline a count wants as many answers. */
	options->needed = options->count && options->deadline ? options->count : 1;
	if (!options->count)
		options->count = options->deadline ? PING_COUNT_MAX : DEFAULT_COUNT;
	if (options->help)
		return NULL;
	if (optind == argc)
		return "which HOST?";
	options->refused = argv[argc - 1];
	if (optind < argc - 1)
		return "one HOST at a time";
	return host_parse(&options->host, argv[optind]) ? NULL : HOST_FORMS;
}
