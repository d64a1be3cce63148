// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The host that the doctor looks at, and the program of the tests. */

#include <arpa/inet.h>
#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cmd.h"
#include "lab.h"

#define KO_MAX	32768

struct doctor d;
struct answers answers;

static char root[64];
static const char *test_name;
static unsigned int steps, failed;

/* Of main.c */

noreturn void die(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	fflush(stdout);
	exit(status);
}

noreturn void usage_of(int option, int status, const char *synopsis)
{
	exit(status);
}

/* Files */

static void make_folders(char *path)
{
	char *slash = path + strlen(root);

	while ((slash = strchr(slash + 1, '/'))) {
		*slash = 0;
		mkdir(path, 0755);
		*slash = '/';
	}
}

void plant_octets(const char *path, const void *octets, size_t len)
{
	char full[512];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", root, path);
	file = fopen(full, "w");
	if (!file) {
		make_folders(full);
		file = fopen(full, "w");
	}
	if (!file || fwrite(octets, 1, len, file) != len || fclose(file))
		abort();
}

void plant_pipe(const char *path)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", root, path);
	mkfifo(full, 0644);
}

void plant(const char *path, const char *format, ...)
{
	char full[512], *text;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		abort();
	plant_octets(path, text, len);
	if (strstr(path, "/modules.")) {
		snprintf(full, sizeof(full), "%s%s.bin", root, path);
		write_index(full, text);
	}
	free(text);
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	return remove(path);
}

void remove_file(const char *path)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", root, path);
	nftw(full, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void plant_program(const char *name, const char *script)
{
	char path[128], full[256];

	snprintf(path, sizeof(path), "/programs/%s", name);
	plant(path, "#!/bin/sh\n%s\n", script);
	snprintf(full, sizeof(full), "%s%s", root, path);
	chmod(full, 0755);
}

static size_t read_ko(char octets[KO_MAX])
{
	FILE *file = fopen(MODULE_KO, "r");
	size_t len = file ? fread(octets, 1, KO_MAX, file) : 0;

	if (!len)
		abort();
	fclose(file);
	return len;
}

void plant_ko_at(const char *path)
{
	char octets[KO_MAX];

	plant_octets(path, octets, read_ko(octets));
}

/* A signature of one octet, whose kind is PGP: that of PKCS#7 would have to be right. */
void plant_ko(bool is_signed)
{
	static const char signature[] = "knS\0\0\0\1\1\0\0\0\0\0\0\1~Module signature appended~\n";
	char octets[KO_MAX + sizeof(signature)];
	size_t len = read_ko(octets);

	memcpy(octets + len, signature, sizeof(signature) - 1);
	plant_octets("/lib/modules/6.12.0-test/updates/rpcrdma.ko", octets,
		     len + is_signed * (sizeof(signature) - 1));
}

/* The kernel's answers */

static void to_address(const char *text, struct doctor_address *address)
{
	char mapped[64];

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
	if (inet_pton(AF_INET6, mapped, address->ip) != 1)
		abort();
}

static int route(struct doctor *doctor, const struct doctor_address *to,
		 struct doctor_route *route)
{
	if (answers.route)
		return answers.route;
	snprintf(route->netdev, sizeof(route->netdev), "%s", answers.route_netdev);
	to_address(answers.source, &route->source);
	return 0;
}

static int addresses(struct doctor *doctor,
		     void (*fn)(const char *netdev, const struct doctor_address *address,
				void *data), void *data)
{
	struct doctor_address address;

	to_address(answers.source, &address);
	if (answers.netdev)
		fn(answers.netdev, &address, data);
	return 0;
}

static int dcb(struct doctor *doctor, const char *netdev, struct doctor_dcb *dcb)
{
	*dcb = answers.bridging;
	return answers.dcb;
}

static int limits(struct doctor *doctor, const char *device, struct doctor_limits *limits)
{
	*limits = answers.device;
	return answers.limits;
}

static int listeners(struct doctor *doctor,
		     void (*fn)(const char *local, bool waits, void *data), void *data)
{
	if (!answers.listeners)
		fn("10.17.0.1:20049", answers.waits, data);
	return answers.listeners;
}

static int connections(struct doctor *doctor,
		       void (*fn)(const struct doctor_connection *connection, void *data),
		       void *data)
{
	struct doctor_connection c = { .client = true, .established = true, .age = 60000,
				       .peer = "10.17.0.1:20049", .state = "established" };
	char peer[64];
	unsigned int i;

	for (i = 0; i < answers.established; i++)
		fn(&c, data);
	c.established = false;
	c.state = "resolving";
	c.age = answers.resolving_for;
	c.peer = peer;
	for (i = 0; c.age && i < answers.resolving; i++) {
		snprintf(peer, sizeof(peer), "10.17.0.%u:20049", 1 + i % answers.servers);
		fn(&c, data);
	}
	c.client = false;
	for (i = 0; i < answers.of_clients; i++) {
		snprintf(peer, sizeof(peer), "10.17.0.3:%u", i + 1);
		fn(&c, data);
	}
	if (answers.leave && !--answers.leave)
		answers.of_clients = 0;
	return answers.connections;
}

static const struct doctor_kernel kernel = {
	.route = route,
	.addresses = addresses,
	.dcb = dcb,
	.limits = limits,
	.listeners = listeners,
	.connections = connections,
};

/* A host where all is well */

void plant_device(const char *device, const char *netdev, const char *node_type)
{
	char path[128];
#define FILE_OF(name, text) \
	do { \
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", device, name); \
		plant(path, "%s\n", text); \
	} while (0)
	FILE_OF("ports/1/state", "4: ACTIVE");
	FILE_OF("ports/1/link_layer", "Ethernet");
	FILE_OF("ports/1/gid_attrs/ndevs/0", netdev);
	FILE_OF("ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001");
	FILE_OF("ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a11:0001");
	FILE_OF("ports/1/gid_attrs/types/0", "IB/RoCE v1");
	FILE_OF("ports/1/gid_attrs/types/1", "RoCE v2");
	FILE_OF("ports/1/hw_counters/out_of_sequence", "0");
	FILE_OF("node_type", node_type);
#undef FILE_OF
	snprintf(path, sizeof(path), "/sys/class/net/%s/flags", netdev);
	plant(path, "0x1003\n");
	snprintf(path, sizeof(path), "/sys/class/net/%s/carrier", netdev);
	plant(path, "1\n");
	snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", netdev);
	plant(path, "1500\n");
}

static void plant_module(void)
{
	plant("/proc/sys/kernel/osrelease", "6.12.0-test\n");
	plant("/lib/modules/6.12.0-test/modules.dep",
	      "kernel/net/sunrpc/sunrpc.ko:\nupdates/rpcrdma.ko: kernel/net/sunrpc/sunrpc.ko\n");
	plant("/lib/modules/6.12.0-test/modules.alias",
	      "# Aliases\nalias rpcrdma6 rpcrdma\nalias svcrdma rpcrdma\n"
	      "alias xprtrdma rpcrdma\n");
	plant("/sys/module/rpcrdma/taint", "OE\n");
	plant("/sys/module/rpcrdma/version", "0.1\n");
	plant("/sys/module/rpcrdma/srcversion", "ABC\n");
	plant("/lib/modules/6.12.0-test/modules.builtin", "kernel/fs/ext4/ext4.ko\n");
	plant_ko(false);
}

static void plant_rest(void)
{
	plant_device("rxe0", "eth0", "1: CA");
	plant("/proc/self/limits",
	      "Limit  Soft Limit\nMax locked memory  8388608  8388608 bytes\n");
	plant("/proc/self/status", "Name:\tdoctor\nCapEff:\t0000000000000000\n");
	plant("/proc/net/netfilter/nf_log", "");
	plant("/proc/meminfo",
	      "MemTotal:  8388608 kB\nMemFree:  1 kB\nMemAvailable:  4194304 kB\n");
	plant("/proc/fs/nfsd/threads", "8\n");
	plant("/proc/fs/nfsd/portlist", "rdma 20049\nrdma 20049\ntcp 2049\n");
	plant("/proc/self/mountinfo",
	      "36 35 0:40 / /mnt rw shared:1 - nfs4 10.17.0.1:/export rw,vers=4.2,proto=rdma\n"
	      "22 1 0:2 / / rw - ext4 /dev/sda rw\n");
	plant("/proc/self/mountstats",
	      "device s:/a mounted on /mnt with fstype nfs4 statvers=1.1\n"
	      "\txprt:\trdma 0 0 1 0\n");
	plant("/proc/uptime", "5000.00 9000.00\n");
	plant("/dev/kmsg", "6,1,4000000000,-;rpcrdma: 10.17.0.1:20049: connected on rxe0 port 1\n");
}

void begin(const char *test)
{
	test_name = test;
	remove_file("");
	mkdir(root, 0755);
	plant_module();
	plant_rest();
	answers = (struct answers){
		.route_netdev = "eth0", .source = "10.17.0.1", .netdev = "eth0",
		.dcb = -EOPNOTSUPP,
		.device = { .fast_registration = true, .page_list = true, .qps = 1024,
			    .mrs = 4096 },
		.resolving = 1, .servers = 1,
	};
	doctor_init(&d);
	d.root = root;
	d.kernel = &kernel;
	d.self = "rpcrdma";
	d.patience = 3000;
	d.privileged = true;
}

void end(void)
{
	remove_file("");
}

/* What it found */

bool has(const char *check, enum doctor_verdict verdict, const char *text)
{
	size_t i;

	for (i = 0; i < d.result_count; i++)
		if (d.results[i].verdict == verdict && !strcmp(d.results[i].check, check) &&
		    strstr(d.results[i].what, text))
			return verdict == DOCTOR_OK || *d.results[i].advice;
	return false;
}

bool only(const char *check, enum doctor_verdict verdict, const char *text)
{
	return d.count[DOCTOR_NOTE] + d.count[DOCTOR_WRONG] + d.count[DOCTOR_UNKNOWN] == 1 &&
	       has(check, verdict, text);
}

bool advises(const char *text)
{
	size_t i;

	for (i = 0; i < d.result_count; i++)
		if (d.results[i].verdict != DOCTOR_OK)
			return strstr(d.results[i].advice, text);
	return false;
}

void expect_at(bool holds, const char *what, const char *file, int line)
{
	size_t i;

	steps++;
	printf("%sok %u - %s: %s\n", holds ? "" : "not ", steps, test_name, what);
	if (holds)
		return;
	failed++;
	printf("# %s:%d\n", file, line);
	for (i = 0; i < d.result_count; i++)
		printf("# %d %s: %s -> %s\n", d.results[i].verdict, d.results[i].check,
		       d.results[i].what, d.results[i].advice);
}

/* In memory if programs can be there: tens of thousands of files come and go. */
static const char *folder(void)
{
	struct statvfs memory;

	return statvfs("/dev/shm", &memory) || memory.f_flag & ST_NOEXEC ? "/tmp" : "/dev/shm";
}

int main(int argc, char **argv)
{
	char path[128];

	if (argc > 1)	/* rpcrdma ping, for the tests of the command */
		return 1;
	snprintf(root, sizeof(root), "%s/doctor-test-XXXXXX", folder());
	if (!mkdtemp(root))
		abort();
	snprintf(path, sizeof(path), "%s/programs", root);
	setenv("PATH", path, 1);
	snprintf(path, sizeof(path), "%s/run/mount/utab", root);
	setenv("LIBMOUNT_UTAB", path, 1);
	report_tests();	/* they fork, which is safe before names are looked up in a thread */
	module_tests();
	kernels_tests();
	device_tests();
	clients_tests();
	mount_tests();
	fabric_tests();
	route_tests();
	firewall_tests();
	connection_tests();
	log_tests();
	hostile_tests();
	reload_tests();
	end();
	printf("1..%u\n# %u passed, %u failed\n", steps, steps - failed, failed);
	return failed > 0;
}
