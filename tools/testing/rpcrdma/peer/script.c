// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Read a script and run its commands, which peer.c lists.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

#define WORDS_MAX	16384

static unsigned int line;

/**
 * fail - print why a command of the script failed, and exit with status 1
 * @format: the reason, as for printf()
 */
noreturn void fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "peer: line %u: ", line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void run(const struct command *command, char **words, unsigned int count)
{
	for (; command->name; command++) {
		if (strcmp(command->name, words[0]))
			continue;
		if (count <= command->words)
			fail("%s needs more arguments", words[0]);
		command->run(words + 1);
		return;
	}
	fail("there is no command %s", words[0]);
}

static void run_line(const struct command *commands, char *text)
{
	static char *words[WORDS_MAX + 1];
	unsigned int count = 0;
	char *word;

	for (word = strtok(text, " \t\n"); word; word = strtok(NULL, " \t\n")) {
		if (count == WORDS_MAX)
			fail("a line has at most %d words", WORDS_MAX);
		words[count++] = word;
	}
	words[count] = NULL;
	if (count && *words[0] != '#')
		run(commands, words, count);
}

/**
 * run_script - run the script that is standard input
 * @commands: all commands, up to one without a name
 */
void run_script(const struct command *commands)
{
	char *text = NULL;
	size_t size = 0;

	while (getline(&text, &size, stdin) > 0) {
		line++;
		run_line(commands, text);
	}
	free(text);
}
