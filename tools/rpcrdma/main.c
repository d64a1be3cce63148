// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The program: it picks a command. No command takes --help: it is an option like
 * any that is not known, and gets the usage.
 */

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *does;
} commands[] = {
	{ "show", cmd_show, "connections, listeners and devices as they are now" },
	{ "stat", cmd_stat, "what connections do per second" },
	{ "monitor", cmd_monitor, "events as they come" },
	{ "ping", cmd_ping, "ask a server for a sign of life over RDMA" },
	{ "doctor", cmd_doctor, "find out why it does not work, and what to do" },
	{ }
};

noreturn void die(int status, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("rpcrdma: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(status);
}

/* The user asked for the arguments of a command, so to name them is no error. */
static bool asked;

noreturn void usage(const char *synopsis)
{
	fprintf(asked ? stdout : stderr, "usage: rpcrdma %s\n", synopsis);
	exit(asked ? STATUS_OK : STATUS_USAGE);
}

static void help(FILE *to)
{
	const struct command *command;

	fputs("usage: rpcrdma COMMAND [ARGUMENT...]\n\n", to);
	for (command = commands; command->name; command++)
		fprintf(to, "  %-9s %s\n", command->name, command->does);
	fputs("\nrpcrdma COMMAND --help shows the arguments of a command.\n", to);
}

/* Output that nobody gets, as of a full disk, is a failure of the program. */
static int finish(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	if (errno == EPIPE)	/* the reader has seen enough */
		return status;
	die(STATUS_FAILED, "cannot write the output: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *command;

	asked = argc == 3 && !strcmp(argv[2], "--help");
	opterr = !asked;
	for (command = commands; command->name; command++)
		if (!strcmp(name, command->name))
			return finish(command->run(argc - 1, argv + 1));
	if (!strcmp(name, "--version")) {
		puts("rpcrdma " VERSION);
		return finish(STATUS_OK);
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") ||
	    !strcmp(name, "help")) {
		help(stdout);
		return finish(STATUS_OK);
	}
	if (argc > 1)
		fprintf(stderr, "rpcrdma: there is no command %s\n", name);
	help(stderr);
	return STATUS_USAGE;
}
