// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The way to a host */

#include <errno.h>
#include <stdio.h>
#include "lab.h"

static void begin_with_host(const char *test)
{
	begin(test);
	d.host = "10.17.0.2";
	plant_program("rpcrdma", "echo \"$@\"");
}

static void reached(void)
{
	begin_with_host("a host that answers");
	plant_program("rpcrdma", "[ \"${*%-s *}${*##* }\" = 'ping -q -c 1 -W 3 10.17.0.2:20049' ]");
	doctor_examine(&d);
	expect(!doctor_exit_code(&d));
	expect(has("route", DOCTOR_OK, "10.17.0.2 is reached from 10.17.0.1 by rxe0 on eth0"));
	expect(has("ping", DOCTOR_OK, "10.17.0.2 port 20049 answers over RDMA"));
	expect(has("ping", DOCTOR_OK, "port 20049 answers when it has read 65536 octets"));

	begin_with_host("IPv6, another port");
	d.host = "fd17::2";
	answers.source = "fd17::1";
	snprintf(d.server_port, sizeof(d.server_port), "4711");
	plant("/sys/class/infiniband/rxe0/ports/1/gids/1",
	      "fd17:0000:0000:0000:0000:0000:0000:0001\n");
	plant_program("rpcrdma", "[ \"${*%-s *}${*##* }\" = 'ping -q -c 1 -W 3 [fd17::2]:4711' ]");
	doctor_device(&d);
	doctor_route(&d);
	expect(!doctor_exit_code(&d));

	begin_with_host("a VLAN above the device's interface");
	answers.route_netdev = "eth0.7";
	plant("/sys/class/net/eth0.7/lower_eth0", "");
	doctor_device(&d);
	doctor_route(&d);
	expect(has("route", DOCTOR_OK, "by rxe0 on eth0.7"));
}

static void no_way(void)
{
	begin_with_host("no route");
	answers.route = -ENETUNREACH;
	doctor_examine(&d);
	expect(only("route", DOCTOR_WRONG, "there is no route to 10.17.0.2"));

	begin_with_host("a name without an address");
	d.host = "no such name";
	doctor_route(&d);
	expect(only("host", DOCTOR_WRONG, "no such name has no address"));

	begin_with_host("an interface without a device");
	answers.route_netdev = "eth1";
	doctor_examine(&d);
	expect(only("route", DOCTOR_WRONG, "by eth1, which has no RDMA device"));

	begin_with_host("a device that is down");
	plant("/sys/class/infiniband/rxe0/ports/1/state", "1: DOWN\n");
	doctor_examine(&d);
	expect(has("route", DOCTOR_WRONG, "whose RDMA device rxe0 is not ACTIVE"));

	begin_with_host("no GID");
	plant("/sys/class/infiniband/rxe0/ports/1/gids/1", "not a GID\n");
	doctor_examine(&d);
	expect(only("route", DOCTOR_WRONG,
		    "rxe0 has no GID for 10.17.0.1, from which eth0 sends to 10.17.0.2"));

	begin_with_host("a GID of another version of RoCE");
	plant("/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/1", "IB/RoCE v1\n");
	plant("/sys/class/infiniband/rxe0/ports/1/gid_attrs/types/0", "RoCE v2\n");
	doctor_examine(&d);
	expect(only("route", DOCTOR_WRONG, "rxe0 has no GID for 10.17.0.1"));

	begin_with_host("no GID, iWARP");
	plant("/sys/class/infiniband/rxe0/ports/1/gids/1", "not a GID\n");
	plant("/sys/class/infiniband/rxe0/node_type", "4: RNIC\n");
	doctor_examine(&d);
	expect(!doctor_exit_code(&d));
}

/* Short Calls are answered. */
static void large_calls(void)
{
	begin_with_host("large packets are lost");
	plant_program("rpcrdma", "[ \"$8\" = 0 ]");
	doctor_examine(&d);
	expect(only("ping", DOCTOR_WRONG,
		    "10.17.0.2 port 20049 answers short Calls, and none of 65536 octets"));

	begin_with_host("the server takes no large Calls");
	plant_program("rpcrdma", "[ \"$8\" = 0 ] && exit; echo 'rpcrdma: ERR_CHUNK' >&2; exit 2");
	doctor_examine(&d);
	expect(only("ping", DOCTOR_NOTE, "65536 octets rpcrdma ping says: rpcrdma: ERR_CHUNK"));
	expect(!doctor_exit_code(&d));
}

static void no_answer(void)
{
	begin_with_host("nobody listens");
	plant_program("rpcrdma", "echo first; echo; echo 'rpcrdma: \033nobody'; exit 1");
	doctor_examine(&d);
	expect(only("ping", DOCTOR_WRONG,
		    "10.17.0.2 port 20049 does not answer over RDMA: rpcrdma: ?nobody"));

	begin_with_host("the server rejects ping");
	plant_program("rpcrdma", "echo 'rpcrdma: rejected' >&2; exit 2");
	doctor_examine(&d);
	expect(only("ping", DOCTOR_WRONG, "rpcrdma: rejected"));

	begin_with_host("ping cannot tell, without rights");
	d.privileged = false;
	plant_program("rpcrdma", "echo 'modprobe rdma_ucm' >&2; exit 2");
	doctor_examine(&d);
	expect(only("ping", DOCTOR_UNKNOWN, "modprobe rdma_ucm"));

	begin_with_host("no such command");
	plant_program("rpcrdma", "exit 64");
	doctor_examine(&d);
	expect(only("ping", DOCTOR_UNKNOWN, "does not run"));

	begin_with_host("no program");
	remove_file("/programs/rpcrdma");
	doctor_examine(&d);
	expect(only("ping", DOCTOR_UNKNOWN, "cannot be started"));

	begin_with_host("ping takes forever");
	d.patience = 200;
	plant_program("rpcrdma", "/bin/sleep 60");
	doctor_device(&d);
	doctor_route(&d);
	expect(only("ping", DOCTOR_WRONG, "10.17.0.2 port 20049 does not answer over RDMA"));
}

void route_tests(void)
{
	reached();
	no_way();
	large_calls();
	no_answer();
}
