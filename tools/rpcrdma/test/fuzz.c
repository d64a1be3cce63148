// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * libFuzzer target: a kernel that lies. The first octet of the input picks a
 * command, the rest is what the kernel says, see canned.c.
 */

#include <getopt.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "../cmd.h"
#include "../show.h"
#include "canned.h"
#include "heap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static jmp_buf end;

/* In the program these do not return, so neither do they here. */
noreturn void die(int status, const char *format, ...)
{
	longjmp(end, 1);
}

void die_as_json(void)
{
}

noreturn void usage_of(int option, int status, const char *synopsis)
{
	longjmp(end, 1);
}

/* What it prints is not the kernel's answer. */
const struct column module_columns[] = { { } };

void module_print(const struct table_style *style, bool as_json)
{
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return !freopen("/dev/null", "w", stdout);
}

#define COMMANDS	13

static const struct {
	int (*run)(int argc, char **argv);
	int argc;
	char *argv[5];
} commands[COMMANDS] = {
	{ cmd_show, 1, { "show" } },
	{ cmd_show, 2, { "show", "-d" } },
	{ cmd_show, 2, { "show", "-j" } },
	{ cmd_stat, 3, { "stat", "1", "3" } },
	{ cmd_stat, 4, { "stat", "-j", "1", "3" } },
	{ cmd_monitor, 1, { "monitor" } },
	{ cmd_monitor, 2, { "monitor", "-j" } },
	{ cmd_metrics, 2, { "metrics", "--per-peer=1" } },
	{ cmd_show, 2, { "show", "peers" } },
	{ cmd_show, 3, { "show", "peers", "-d" } },
	{ cmd_show, 3, { "show", "peers", "-j" } },
	{ cmd_stat, 4, { "stat", "peers", "1", "3" } },
	{ cmd_stat, 5, { "stat", "peers", "-j", "1", "3" } },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t i;
	char *argv[6] = { };

	if (!size)
		return 0;
	i = data[0] % COMMANDS;
	memcpy(argv, commands[i].argv, sizeof(commands[i].argv));
	canned_data = data + 1;
	canned_len = size - 1;
	optind = 0;
	if (!setjmp(end))
		commands[i].run(commands[i].argc, argv);
	heap_free();
	return 0;
}
