// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The program: it picks a command. */

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "fmt.h"
#include "json.h"

static int cmd_help(int argc, char **argv);
static int cmd_version(int argc, char **argv);

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *does;
	char letter;	/* of the option that is the same command */
} commands[] = {
	{ "show", cmd_show, "connections, listeners and devices as they are now" },
	{ "stat", cmd_stat, "what connections do per second" },
	{ "monitor", cmd_monitor, "events as they come" },
	{ "metrics", cmd_metrics, "state and counters, for Prometheus" },
	{ "ping", cmd_ping, "check whether a server answers over RDMA" },
	{ "doctor", cmd_doctor, "find out why it does not work, and what to do" },
	{ "status", cmd_status, "whether it works, in one word, for monitoring" },
	{ "reload", cmd_reload, "have the installed module run, and the server listen again" },
	{ "help", cmd_help, "this, or the arguments of a command", 'h' },
	{ "version", cmd_version, "the version of this program", 'V' },
	{ }
};

static bool errors_as_json;

void die_as_json(void)
{
	errors_as_json = true;
}

noreturn void die(int status, const char *format, ...)
{
	bool as_json = errors_as_json;
	char text[512];
	va_list args;

	errors_as_json = false;		/* no error of this function's own */
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fmt_plain(text);
	if (as_json)
		out_json_line(json_pack("{s:s}", "error", text));
	fflush(stdout);
	fprintf(stderr, "rpcrdma: %s\n", text);
	exit(status);
}

static void help(FILE *to)
{
	const struct command *command;

	fputs("usage: rpcrdma COMMAND [ARGUMENT...]\n\n", to);
	for (command = commands; command->name; command++)
		fprintf(to, "  %-9s %s\n", command->name, command->does);
	fputs("\nrpcrdma help COMMAND shows the arguments of a command.\n", to);
}

/* Output that nobody gets, as of a full disk, is a failure of the program. */
static int finish(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	if (errno == EPIPE)	/* the reader has seen enough */
		return status;
	errors_as_json = false;
	die(STATUS_FAILED, "cannot write the output: %s", strerror(errno));
}

noreturn void usage_of(int option, int status, const char *synopsis)
{
	bool asked = option == 'h';

	fprintf(asked ? stdout : stderr, "usage: rpcrdma %s\n", synopsis);
	exit(finish(asked ? STATUS_OK : status));
}

/* The command that a word names, or an option: -h, --help, -V or --version; or NULL */
static const struct command *command_of(const char *word)
{
	const struct command *command;

	for (command = commands; command->name; command++) {
		const char letter[] = { '-', command->letter, '\0' };
		bool is_long = command->letter && !strncmp(word, "--", 2);

		if (!strcmp(is_long ? word + 2 : word, command->name) ||
		    (command->letter && !strcmp(word, letter)))
			return command;
	}
	return NULL;
}

static int cmd_help(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2 || *argv[1] == '-') {
		help(stdout);
		return STATUS_OK;
	}
	command = command_of(argv[1]);
	if (!command)
		die(STATUS_USAGE, "help: there is no command %s; rpcrdma help has them", argv[1]);
	return command->run(2, (char *[]){ argv[1], "--help", NULL });
}

static int cmd_version(int argc, char **argv)
{
	if (argc > 1)	/* as help does for each command */
		usage_of(strcmp(argv[1], "--help") ? '?' : 'h', STATUS_USAGE, "version");
	puts("rpcrdma " VERSION);
	return STATUS_OK;
}

int main(int argc, char **argv)
{
	const struct command *command = NULL;
	char title[32];		/* for what getopt_long() says */
	int i = 1;

	while (i < argc && *argv[i] == '-' && !command_of(argv[i]))
		i++;
	if (i < argc)
		command = command_of(argv[i]);
	if (!command) {
		if (argc > 1)
			fprintf(stderr, "rpcrdma: there is no command %s\n",
				argv[i < argc ? i : argc - 1]);
		help(stderr);
		return STATUS_USAGE;
	}
	/* Options before the command are the command's. */
	memmove(&argv[2], &argv[1], (i - 1) * sizeof(*argv));
	snprintf(title, sizeof(title), "rpcrdma %s", command->name);
	argv[1] = title;
	return finish(command->run(argc - 1, argv + 1));
}
