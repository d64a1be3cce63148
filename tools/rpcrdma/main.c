// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The program: it picks a command. */

#include <errno.h>
#include <stdarg.h>
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
	{ "ping", cmd_ping, "check whether a server answers over RDMA" },
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

noreturn void usage(const char *synopsis)
{
	fprintf(stderr, "usage: rpcrdma %s\n", synopsis);
	exit(STATUS_USAGE);
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

noreturn void usage_of(int option, const char *synopsis)
{
	if (option != 'h')
		usage(synopsis);
	printf("usage: rpcrdma %s\n", synopsis);
	exit(finish(STATUS_OK));
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *command;

	for (command = commands; command->name; command++)
		if (!strcmp(name, command->name))
			return finish(command->run(argc - 1, argv + 1));
	if (!strcmp(name, "--version")) {
		puts("rpcrdma " VERSION);
		return finish(STATUS_OK);
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
		help(stdout);
		return finish(STATUS_OK);
	}
	if (argc > 1)
		fprintf(stderr, "rpcrdma: there is no command %s\n", name);
	help(stderr);
	return STATUS_USAGE;
}
