// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Files and programs that nobody should have */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab.h"

#define LONG	(6U << 20)	/* more than is read */

/* All files that the doctor reads */
static const char * const files[] = {
	"/proc/sys/kernel/osrelease", "/lib/modules/6.12.0-test/modules.dep.bin",
	"/lib/modules/6.12.0-test/modules.alias.bin",
	"/lib/modules/6.12.0-test/modules.builtin.bin",
	"/lib/modules/6.12.0-test/updates/rpcrdma.ko",
	"/sys/module/rpcrdma/taint", "/sys/module/rpcrdma/version",
	"/sys/module/rpcrdma/srcversion", "/etc/modprobe.d/a.conf",
	"/sys/class/infiniband/rxe0/ports/1/state", "/sys/class/infiniband/rxe0/ports/1/gids/1",
	"/sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0",
	"/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/1",
	"/sys/class/infiniband/rxe0/ports/1/hw_counters/out_of_sequence",
	"/sys/kernel/config/rdma_cm/rxe0/ports/1/default_roce_mode",
	"/sys/kernel/config/rdma_cm/rxe0/ports/1/default_roce_tos", "/sys/class/net/eth0/mtu",
	"/sys/class/infiniband/rxe0/node_type", "/sys/class/net/eth0/flags",
	"/proc/self/limits", "/proc/self/status", "/proc/fs/nfsd/threads",
	"/proc/fs/nfsd/portlist", "/proc/meminfo", "/proc/self/mountinfo", "/proc/self/mountstats",
	"/etc/fstab", "/run/mount/utab", "/dev/kmsg", "/proc/uptime", "/proc/modules",
	"/sys/kernel/security/lockdown", "/sys/module/ib_core/taint",
};

static const char * const programs[] = {
	"nfsconf", "rdma", "nft", "iptables-legacy-save", "rpcrdma",
};

/* Nothing of a result may move the cursor. */
static bool is_plain(void)
{
	size_t i, n;

	for (i = 0; i < d.result_count; i++) {
		const struct doctor_result *result = &d.results[i];

		for (n = 0; result->what[n]; n++)
			if (result->what[n] < ' ' || result->what[n] > '~')
				return false;
		if (strpbrk(result->advice, "\033\n\r\b"))
			return false;
	}
	return d.result_count;
}

/* Each file in turn has these contents. */
static void each_file(const char *test, const void *octets, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		begin(test);
		d.host = strstr(files[i], "gids") ? "10.17.0.2" : NULL;
		plant_octets(files[i], octets, len);
		doctor_examine(&d);
		expect(is_plain());
	}
}

static void contents(void)
{
	static const char controls[] = "\033[2J\033]0;title\007 \r\n\b\x9b[31m \x7f\n";
	static const char nothing[] = "";
	static const char noughts[64];
	char *line = malloc(LONG);

	if (!line)
		abort();
	memset(line, 'x', LONG);
	each_file("one endless line", line, LONG);
	memset(line, '\\', LONG);
	each_file("an endless line of backslashes", line, 100000);
	memset(line, '\n', LONG);
	each_file("endless lines", line, LONG);
	each_file("control characters", controls, sizeof(controls) - 1);
	each_file("nothing", nothing, 0);
	each_file("noughts", noughts, sizeof(noughts));
	free(line);
}

/* The same every time */
static void random_contents(void)
{
	unsigned char octets[600];
	int round;
	size_t i;

	srandom(18);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < sizeof(octets); i++)
			octets[i] = "\n\n ,:;-/=\\01rdma\033\377"[random() % 18];
		each_file("random octets", octets, sizeof(octets));
	}
}

static void each_program(const char *test, const char *script)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(programs); i++) {
		struct timespec before, after;

		begin(test);
		d.host = "10.17.0.2";
		d.patience = 250;
		remove_file("/sys/class/infiniband/rxe0/ports/1/gid_attrs");
		plant("/sys/kernel/security/lockdown", "[integrity]\n");
		plant_program("rpcrdma", "exit 0");
		plant_program(programs[i], script);
		clock_gettime(CLOCK_MONOTONIC, &before);
		doctor_examine(&d);
		clock_gettime(CLOCK_MONOTONIC, &after);
		expect(is_plain());
		expect(after.tv_sec - before.tv_sec <= 6);
	}
}

static void outputs(void)
{
	each_program("a program that never ends", "while :; do :; done");
	each_program("a program that prints without end", "exec /bin/cat /dev/zero");
	each_program("a program that leaves a child behind", "/bin/sleep 100 & exit 0");
	each_program("a program that kills itself", "kill -9 $$");
	each_program("a program that prints control characters",
		     "printf '\\033[2J\\n\\377'; exit 1");
	each_program("truncated JSON", "echo '{\"nftables\": [{\"chain\": {\"family\":'");
	each_program("JSON of other types",
		     "echo '{\"nftables\": [7, null, [], {\"chain\": 7},\n"
		     "{\"rule\": {\"expr\": 1, \"family\": \"ip\"}},\n"
		     "{\"chain\": {\"family\": \"ip\", \"hook\": []}}]}'");
	each_program("JSON that is too deep",
		     "i=0; while [ $i -lt 5000 ]; do printf '['; i=$((i+1)); done");
}

/* A pipe that nobody writes to must not be waited for. */
static void pipes(void)
{
	begin("a pipe instead of a file");
	remove_file("/proc/self/mountstats");
	plant_pipe("/proc/self/mountstats");
	doctor_examine(&d);
	expect(!doctor_exit_code(&d));
}

/* As many devices and mounts as nobody has */
static void many_tests(void)
{
	char name[32], *info = malloc(1 << 20);
	size_t i, len = 0;

	begin("many devices");
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "rxe%zu", i);
		plant_device(name, "eth9", "1: CA");
	}
	doctor_examine(&d);
	expect(d.port_count == DOCTOR_PORTS_MAX);
	expect(is_plain());

	begin("many mounts");
	for (i = 0; info && i < 5000; i++)
		len += sprintf(info + len, "1 1 0:1 / /m%zu rw - nfs s:/ rw,proto=rdma\n", i);
	plant("/proc/self/mountinfo", "%s", info);
	free(info);
	doctor_mount(&d);
	expect(has("mount", DOCTOR_OK, "5000 mounts use RDMA"));
}

void hostile_tests(void)
{
	contents();
	random_contents();
	outputs();
	pipes();
	many_tests();
}
