/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What a command of rpcrdma is: a function like main(), whose argv[0] is the
 * program's and its own name. It returns the program's exit code, or ends the program by
 * die(). Each command is in a file of its name.
 */
#ifndef RPCRDMA_CMD_H
#define RPCRDMA_CMD_H

#include <stdnoreturn.h>

/*
 * Exit codes of the program. Those of ping are the ones of ping(8), those of status the
 * ones of monitoring plugins, reload has enum reload, and doctor has 0 only if all is well; their
 * manual pages say more.
 */
enum {
	STATUS_OK = 0,
	STATUS_FAILED = 1,	/* a netlink reply is wrong, output fails, ... */
	STATUS_NO_FAMILY = 2,	/* the loaded module, or none, does not tell */
	STATUS_USAGE = 64,	/* EX_USAGE of sysexits.h */
};

int cmd_show(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_monitor(int argc, char **argv);
int cmd_metrics(int argc, char **argv);
int cmd_ping(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_reload(int argc, char **argv);

/**
 * die - end the program
 * @status: its exit code
 * @format: one line for the user that says what to do, without "rpcrdma: " and
 *	without a newline. It goes to standard error. If an argument is wrong, it
 *	begins with the command, and names the value and what it may be.
 */
noreturn void die(int status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * die_as_json - from now on die() also prints a JSON object with "error"
 *
 * It goes to standard output, for the programs that read that.
 */
void die_as_json(void);

/**
 * usage_of - end the program because of an option: 'h', or one that is wrong
 * @option: as getopt_long() returns it, which has named one that is wrong
 * @status: exit code if it is wrong
 * @synopsis: the arguments of the command, beginning with its name
 */
noreturn void usage_of(int option, int status, const char *synopsis);

#endif
