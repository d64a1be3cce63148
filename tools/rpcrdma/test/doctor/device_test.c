// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Devices and limits */

#include <errno.h>
#include "lab.h"

#define RXE0	"/sys/class/infiniband/rxe0"

static void no_device(void)
{
	begin("no device");
	remove_file("/sys/class/infiniband");
	doctor_examine(&d);
	expect(only("device", DOCTOR_WRONG, "no RDMA device"));
}

static void links(void)
{
	begin("interface down");
	plant(RXE0 "/ports/1/state", "1: DOWN\n");
	plant("/sys/class/net/eth0/flags", "0x1002\n");
	doctor_device(&d);
	expect(only("device", DOCTOR_WRONG, "rxe0 port 1 on eth0 is not ACTIVE: 1: DOWN"));

	begin("no carrier");
	plant(RXE0 "/ports/1/state", "1: DOWN\n");
	plant("/sys/class/net/eth0/carrier", "0\n");
	doctor_device(&d);
	expect(only("device", DOCTOR_WRONG, "is not ACTIVE"));

	begin("no address");
	answers.netdev = "eth1";
	doctor_device(&d);
	expect(only("device", DOCTOR_WRONG,
		    "eth0, the network interface of rxe0 port 1, has no IP address"));

	begin("no interface");
	remove_file(RXE0 "/ports/1/gid_attrs");
	doctor_device(&d);
	expect(only("device", DOCTOR_WRONG, "has no network interface"));

	begin("another device is in use");
	plant_device("rxe1", "eth1", "1: CA");
	plant("/sys/class/infiniband/rxe1/ports/1/state", "1: DOWN\n");
	doctor_device(&d);
	expect(only("device", DOCTOR_NOTE, "rxe1 port 1 on eth1 is not ACTIVE"));
	expect(!doctor_exit_code(&d));
}

static void interfaces(void)
{
	begin("the first GID is not in use");
	plant(RXE0 "/ports/1/gid_attrs/ndevs/0", "");
	plant(RXE0 "/ports/1/gid_attrs/ndevs/1", "eth0\n");
	doctor_device(&d);
	expect(has("device", DOCTOR_OK, "rxe0 port 1 on eth0"));

	begin("iWARP: rdma tells the interface");
	remove_file(RXE0 "/ports/1/gid_attrs");
	plant(RXE0 "/node_type", "4: RNIC\n");
	plant_program("rdma", "echo '[{\"ifname\":\"rxe0\",\"port\":1,\"netdev\":\"eth0\"}]'");
	doctor_device(&d);
	expect(has("device", DOCTOR_OK, "rxe0 port 1 on eth0"));

	begin("rdma prints something else");
	remove_file(RXE0 "/ports/1/gid_attrs");
	plant_program("rdma", "echo '[{\"port\":1,\"netdev\":\"../../x\"},[],7,{\"port\":\"1\"}'");
	doctor_device(&d);
	expect(only("device", DOCTOR_WRONG, "has no network interface"));

	begin("InfiniBand: the interface of IPoIB");
	remove_file(RXE0 "/ports/1/gid_attrs");
	plant(RXE0 "/ports/1/link_layer", "InfiniBand\n");
	plant(RXE0 "/device/net/eth0/flags", "0x1003\n");
	doctor_examine(&d);
	expect(has("device", DOCTOR_OK, "rxe0 port 1 on eth0"));
	expect(has("firewall", DOCTOR_OK, "InfiniBand"));
}

static void limits_tests(void)
{
	begin("no fast registration");
	answers.device.fast_registration = false;
	doctor_device(&d);
	expect(only("device", DOCTOR_WRONG, "no memory management extensions"));

	begin("no pages by work request");
	answers.device.page_list = false;
	doctor_device(&d);
	expect(only("device", DOCTOR_WRONG, "registers no pages by work request"));

	begin("few queue pairs");
	answers.device.qps = 2;
	doctor_device(&d);
	expect(only("device", DOCTOR_WRONG, "2 queue pairs"));

	begin("few registrations");
	answers.device.mrs = 63;
	doctor_device(&d);
	expect(only("device", DOCTOR_WRONG, "63 memory regions"));

	begin("an answer that makes no sense");
	answers.limits = -EPROTO;
	doctor_device(&d);
	expect(only("device", DOCTOR_UNKNOWN, "cannot be read: Protocol error"));
	expect(doctor_exit_code(&d) == 2);

	begin("no module tells limits");
	answers.limits = -ENOENT;
	doctor_device(&d);
	expect(!doctor_exit_code(&d));
}

static void memlock(void)
{
	begin("little memory may be locked");
	plant("/proc/self/limits", "Max locked memory         65536      65536      bytes\n");
	doctor_memlock(&d);
	expect(only("memlock", DOCTOR_WRONG, "64 KiB"));

	begin("root may lock all");
	plant("/proc/self/limits", "Max locked memory         65536      65536      bytes\n");
	plant("/proc/self/status", "Name:\tdoctor\nCapEff:\t000001ffffffffff\n");
	doctor_memlock(&d);
	expect(has("memlock", DOCTOR_OK, ""));

	begin("unlimited");
	plant("/proc/self/limits", "Max locked memory         unlimited  unlimited  bytes\n");
	doctor_memlock(&d);
	expect(has("memlock", DOCTOR_OK, ""));

	begin("limits cannot be read");
	remove_file("/proc/self/limits");
	doctor_memlock(&d);
	expect(only("memlock", DOCTOR_UNKNOWN, ""));
}

void device_tests(void)
{
	no_device();
	links();
	interfaces();
	limits_tests();
	memlock();
}
