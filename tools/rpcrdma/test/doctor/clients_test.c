// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* How many more connections the server can take */

#include <errno.h>
#include <stdio.h>
#include "lab.h"

static void examine(void)
{
	doctor_device(&d);
	doctor_server(&d);
	doctor_clients(&d);
}

static void is_room_for(unsigned int connections, const char *what)
{
	char text[128];

	snprintf(text, sizeof(text), "about %u more connections in use: the limit is %s;",
		 connections, what);
	examine();
	expect(has("clients", DOCTOR_OK, text));
	expect(!doctor_exit_code(&d));
}

static void rdma_counts(const char *counts)
{
	char script[256];

	snprintf(script, sizeof(script),
		 "echo '[{\"ifname\":\"other\",\"qp\":900},{\"ifname\":\"rxe0\",%s}]'", counts);
	plant_program("rdma", script);
}

static void devices(void)
{
	begin("queue pairs");
	is_room_for(1024, "queue pairs");
	expect(has("clients", DOCTOR_OK, "nfsd has 8 threads"));

	begin("some queue pairs are in use");
	rdma_counts("\"qp\":24,\"mr\":9000");
	is_room_for(1000, "queue pairs");

	begin("two devices");
	plant_device("rxe1", "eth0", "1: CA");
	is_room_for(2048, "queue pairs");

	begin("all queue pairs are in use");
	rdma_counts("\"qp\":1025");
	examine();
	expect(only("clients", DOCTOR_WRONG,
		    "no room for another connection: the limit is queue pairs"));

	begin("counts that make no sense");
	rdma_counts("\"qp\":-5");
	is_room_for(1024, "queue pairs");

	begin("iWARP: registrations");
	plant("/sys/class/infiniband/rxe0/node_type", "4: RNIC\n");
	rdma_counts("\"qp\":1,\"mr\":96");
	is_room_for(62, "registrations of iWARP devices");
	begin("iWARP: with fewer Calls");
	plant("/sys/class/infiniband/rxe0/node_type", "4: RNIC\n");
	plant("/proc/sys/sunrpc/svc_rdma/max_requests", "16\n");
	is_room_for(256, "registrations of iWARP devices");
}

static void memory(void)
{
	begin("memory: a 32nd is kept back");
	plant("/proc/meminfo", "MemTotal:  8388608 kB\nMemAvailable:  342744 kB\n");
	is_room_for(100, "memory");

	begin("memory: at least 32 MiB are kept back");
	plant("/proc/meminfo", "MemTotal:  131072 kB\nMemAvailable:  40798 kB\n");
	is_room_for(10, "memory");

	begin("memory is short");
	plant("/proc/meminfo", "MemTotal:  131072 kB\nMemAvailable:  30000 kB\n");
	examine();
	expect(only("clients", DOCTOR_WRONG, "the limit is memory"));

	begin("memory is not known");
	plant("/proc/meminfo", "MemTotal:  131072 kB\n");
	is_room_for(1024, "queue pairs");
}

static void begin_6_1(const char *test)
{
	begin(test);
	snprintf(d.release, sizeof(d.release), "6.1.0-test");
	rdma_counts("\"qp\":20");
}

static void nfsd(void)
{
	begin_6_1("kernel 6.1: by threads");
	plant("/proc/fs/nfsd/max_connections", "0\n");
	is_room_for(200, "max_connections of nfsd");

	begin_6_1("kernel 6.1: a limit that is set");
	plant("/proc/fs/nfsd/max_connections", "520\n");
	is_room_for(500, "max_connections of nfsd");

	begin_6_1("kernel 6.1: the limit cannot be read");
	examine();
	expect(only("clients", DOCTOR_UNKNOWN, "/proc/fs/nfsd/max_connections cannot be read"));

	begin("kernel 6.12: connections that are used do not count");
	snprintf(d.release, sizeof(d.release), "6.12.0-test");
	plant("/proc/fs/nfsd/max_connections", "5\n");
	is_room_for(1024, "queue pairs");
}

static bool says_nothing(void)
{
	size_t i;

	examine();
	for (i = 0; i < d.result_count; i++)
		if (d.results[i].check[0] == 'c')
			return false;
	return true;
}

static void no_server(void)
{
	begin("no listener");
	plant("/proc/fs/nfsd/portlist", "tcp 2049\n");
	expect(says_nothing());

	begin("the kernel's own module");
	answers.limits = -ENOENT;
	expect(says_nothing());
}

void clients_tests(void)
{
	devices();
	memory();
	nfsd();
	no_server();
}
