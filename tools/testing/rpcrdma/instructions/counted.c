// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * counted COMMAND...: run a command, and have plugin.c count the instructions
 * from its start to its end. The exit status is the command's.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mark.h"

#define mark(what) \
	({ asm volatile(".long %c0, %c1" : : "i" (MARK_OPCODE), "i" (what) : "memory"); })

int main(int argc, char **argv)
{
	int status;
	pid_t pid;

	if (argc < 2)
		return 127;
	pid = fork();
	if (!pid) {
		mark(MARK_BEGIN);
		execvp(argv[1], argv + 1);
		perror(argv[1]);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0) {
		perror("counted");
		return 127;
	}
	mark(MARK_END);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
