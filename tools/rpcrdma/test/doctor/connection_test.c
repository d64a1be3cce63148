// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Connections, and what they and other findings mean for rpcrdma status */

#include <errno.h>

#include "lab.h"

static void connections(void)
{
	begin("connections that are established");
	answers.established = 2;
	doctor_connection(&d);
	expect(has("connection", DOCTOR_OK, "2 connections to servers and 0 of clients"));

	begin("a connection that does not come up");
	answers.established = 1;
	answers.resolving_for = 12500;
	doctor_connection(&d);
	expect(only("connection", DOCTOR_WRONG,
		    "the connection to 10.17.0.1:20049 is resolving for 12 s"));

	begin("connections that do not come up");
	answers.resolving_for = 12500;
	answers.resolving = 16;
	doctor_connection(&d);
	expect(only("connection", DOCTOR_WRONG,
		    "16 connections to 10.17.0.1:20049 are not established, the longest is resol"));

	begin("connections to many servers that do not come up");
	answers.resolving_for = 12500;
	answers.resolving = 200;
	answers.servers = 200;
	doctor_connection(&d);
	expect(d.count[DOCTOR_WRONG] == 32);
	expect(has("connection", DOCTOR_WRONG, "the connection to 10.17.0.31:20049 is"));

	begin("a connection that has only begun");
	answers.resolving_for = 200;
	doctor_connection(&d);
	expect(has("connection", DOCTOR_OK, "0 connections to servers"));

	begin("no module tells of connections");
	answers.connections = -ENOENT;
	doctor_connection(&d);
	expect(!d.result_count && d.silent);

	begin("a module that tells nonsense of connections");
	answers.connections = -EPROTO;
	doctor_connection(&d);
	expect(only("connection", DOCTOR_UNKNOWN, "connections cannot be read"));
}

static void health(void)
{
	begin("health of a host where all is well");
	answers.established = 1;
	expect(doctor_health(&d) == HEALTH_OK);
	expect(!has("memlock", DOCTOR_OK, "") && !has("log", DOCTOR_OK, ""));

	begin("health with one of two connections");
	answers.established = 1;
	answers.resolving_for = 12500;
	expect(doctor_health(&d) == HEALTH_DEGRADED);

	begin("health with no connection of one");
	answers.resolving_for = 12500;
	expect(doctor_health(&d) == HEALTH_DOWN);

	begin("health without the module");
	answers.connections = -ENOENT;
	remove_file("/sys/module/rpcrdma");
	expect(doctor_health(&d) == HEALTH_DOWN);
	expect(has("module", DOCTOR_WRONG, "rpcrdma is not loaded"));

	begin("health without an active port");
	plant("/sys/class/infiniband/rxe0/ports/1/state", "1: DOWN\n");
	expect(doctor_health(&d) == HEALTH_DOWN);

	begin("health of a server that nobody can ask");
	remove_file("/proc/fs/nfsd/portlist");
	plant("/proc/fs/nfsd/portlist/denied", "");
	expect(doctor_health(&d) == HEALTH_UNKNOWN);

	begin("health of a server for an ordinary user");
	remove_file("/proc/fs/nfsd/threads");
	plant("/proc/fs/nfsd/threads/denied", "");
	expect(doctor_health(&d) == HEALTH_OK);

	begin("health of a server whose listener waits for a device");
	answers.waits = true;
	expect(doctor_health(&d) == HEALTH_DOWN);

	begin("health of a server that is to listen and does not");
	plant_program("nfsconf", "echo y");
	plant("/proc/fs/nfsd/portlist", "tcp 2049\n");
	expect(doctor_health(&d) == HEALTH_DOWN);
}

void connection_tests(void)
{
	connections();
	health();
}
