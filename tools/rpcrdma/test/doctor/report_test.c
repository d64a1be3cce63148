// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The command: its arguments, what it prints, and its exit code */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <jansson.h>

#include "cmd.h"
#include "lab.h"

static char output[65536];

/* Run a command in a process of its own. Returns its exit code. */
static int run_command(int (*command)(int argc, char **argv), const char *first,
		       const char *second)
{
	char *const argv[] = { "rpcrdma", "--root", (char *)d.root,
			 first ? strdup(first) : NULL, second ? strdup(second) : NULL, NULL };
	int argc = 3 + !!first + (first && second);
	int ends[2], status;
	size_t len = 0;
	ssize_t got;
	pid_t pid;

	fflush(stdout);
	if (pipe(ends))
		abort();
	pid = fork();
	if (!pid) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		status = command(argc, (char **)argv);
		fflush(stdout);
		_exit(status);
	}
	close(ends[1]);
	while ((got = read(ends[0], output + len, sizeof(output) - 1 - len)) > 0)
		len += got;
	output[len] = 0;
	close(ends[0]);
	waitpid(pid, &status, 0);
	free(argv[3]);
	free(argv[4]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run(const char *first, const char *second)
{
	return run_command(cmd_doctor, first, second);
}

/* The host's own addresses are asked for, so the interface is lo. */
static void begin_on_lo(const char *test)
{
	begin(test);
	remove_file("/sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0");
	plant_device("rxe0", "lo", "1: CA");
}

static void refused(void)
{
	begin("a host that is no text");
	expect(run("-j", "a\377b") == STATUS_USAGE);
	expect(run("-j", "a b") == STATUS_USAGE);
	expect(run("a\033b", NULL) == STATUS_USAGE);
	expect(run("[a\tb]:20049", NULL) == STATUS_USAGE);
}

static void as_text(void)
{
	begin_on_lo("text");
	expect(run(NULL, NULL) == 0);
	expect(strstr(output, "ok      module    rpcrdma 0.1 is loaded, and is this one\n"));
	expect(strstr(output, "\nAll is well.\n"));
	expect(!strchr(output, '\033'));

	begin_on_lo("text of a finding");
	remove_file("/sys/module/rpcrdma");
	expect(run(NULL, NULL) == 1);
	expect(strstr(output, "wrong   module    rpcrdma is not loaded\n"
		      "                  -> modprobe rpcrdma\n"));
	expect(strstr(output, "\n1 finding.\n"));

	begin_on_lo("quiet");
	expect(run("-q", NULL) == 0);
	expect(!*output);
	remove_file("/dev/kmsg");
	expect(run("-q", NULL) == 2);
	expect(!strncmp(output, "unknown log       ", 18));
}

static void as_json(void)
{
	json_t *top, *result;

	begin_on_lo("JSON");
	remove_file("/sys/module/rpcrdma");
	plant("/etc/modprobe.d/\377\"\\.conf", "blacklist rpcrdma\n");
	expect(run("-jq", NULL) == 1);
	top = json_loads(output, 0, NULL);
	expect(json_integer_value(json_object_get(top, "findings")) == 2);
	expect(json_integer_value(json_object_get(top, "unknown")) == 0);
	expect(json_array_size(json_object_get(top, "results")) == 2);
	result = json_array_get(json_object_get(top, "results"), 1);
	expect(!strcmp(json_string_value(json_object_get(result, "check")), "module"));
	expect(!strcmp(json_string_value(json_object_get(result, "verdict")), "wrong"));
	expect(!strcmp(json_string_value(json_object_get(result, "advice")), "modprobe rpcrdma"));
	json_decref(top);
}

static void arguments(void)
{
	begin_on_lo("arguments");
	expect(run("--no-such-option", NULL) == STATUS_USAGE);
	expect(run("one", "two") == STATUS_USAGE);
	expect(run("--", "-host") == STATUS_USAGE);
	expect(run("host:port", NULL) == STATUS_USAGE);
	expect(run("host:0", NULL) == STATUS_USAGE);
	expect(strstr(output, "HOST is a name or an address") && strstr(output, "(got host:0)"));
	expect(run("host:99999", NULL) == STATUS_USAGE);
	expect(run("[::1", NULL) == STATUS_USAGE);
	expect(run("[::1]x", NULL) == STATUS_USAGE);
	expect(run("", NULL) == STATUS_USAGE);
	expect(run("-j", "[fd17::1]:4711") != STATUS_USAGE);
	expect(strstr(output, "\"host\": \"fd17::1\""));
	expect(run("-j", "127.0.0.1:4711") != STATUS_USAGE);
	expect(strstr(output, "\"host\": \"127.0.0.1\""));
	expect(run("-j", "fd17::1") != STATUS_USAGE);
	expect(strstr(output, "\"host\": \"fd17::1\""));
}

/* It asks the kernel that runs the tests, which has no module that tells. */
static void status(void)
{
	json_t *top;

	begin_on_lo("status");
	remove_file("/sys/module/rpcrdma");
	expect(run_command(cmd_status, NULL, NULL) == HEALTH_DOWN);
	expect(strstr(output, "down\nwrong   module    rpcrdma is not loaded\n") == output);
	expect(run_command(cmd_status, "--nagios", NULL) == HEALTH_DOWN);
	expect(strstr(output, "RPCRDMA CRITICAL - rpcrdma is not loaded|client=0;;;0 ") == output);
	expect(strstr(output, " server_established=0;;;0 findings=1;;;0\n"));
	expect(run_command(cmd_status, "-j", NULL) == HEALTH_DOWN);
	top = json_loads(output, 0, NULL);
	expect(!strcmp(json_string_value(json_object_get(top, "status")), "down"));
	expect(json_array_size(json_object_get(top, "results")) == 1);
	json_decref(top);
	expect(run_command(cmd_status, "now", NULL) == HEALTH_UNKNOWN);
	expect(run_command(cmd_status, "--no-such-option", NULL) == HEALTH_UNKNOWN);
}

void report_tests(void)
{
	refused();
	as_text();
	as_json();
	arguments();
	status();
}
