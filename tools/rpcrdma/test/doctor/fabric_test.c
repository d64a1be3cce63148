// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Packets of RoCE, flow control, and counters of loss */

#include <errno.h>
#include "lab.h"

#define PORT		"/sys/class/infiniband/rxe0/ports/1/"
#define CONFIGURED	"/sys/kernel/config/rdma_cm/rxe0/ports/1/"

static void examine(void)
{
	doctor_device(&d);
	doctor_fabric(&d);
}

static void packets(void)
{
	begin("version 2, of what the device has");
	examine();
	expect(!doctor_exit_code(&d));
	expect(has("fabric", DOCTOR_OK, "port 1 sends RoCE v2 with DSCP 0, in packets of 1024"));
	expect(has("fabric", DOCTOR_OK, "octets (MTU 1500)"));

	begin("large packets, and what the administrator has set");
	plant("/sys/class/net/eth0/mtu", "4192\n");
	plant(CONFIGURED "default_roce_mode", "RoCE v2\n");
	plant(CONFIGURED "default_roce_tos", "106\n");
	examine();
	expect(has("fabric", DOCTOR_OK, "v2 with DSCP 26, in packets of 4096 octets (MTU 4192)"));

	begin("one octet less");
	plant("/sys/class/net/eth0/mtu", "4191\n");
	examine();
	expect(has("fabric", DOCTOR_OK, "in packets of 2048 octets"));

	begin("a small MTU");
	plant("/sys/class/net/eth0/mtu", "351\n");
	examine();
	expect(only("fabric", DOCTOR_WRONG, "the MTU of eth0, 351, is too small for RoCE"));

	begin("version 1 is all that the device has");
	plant(PORT "gid_attrs/types/1", "IB/RoCE v1\n");
	examine();
	expect(only("fabric", DOCTOR_NOTE, "rxe0 port 1 sends RoCE v1"));

	begin("the administrator wants version 1");
	plant(CONFIGURED "default_roce_mode", "IB/RoCE v1\n");
	examine();
	expect(only("fabric", DOCTOR_NOTE, "rxe0 port 1 sends RoCE v1"));

	begin("iWARP has TCP");
	plant("/sys/class/infiniband/rxe0/node_type", "4: RNIC\n");
	plant("/sys/class/net/eth0/mtu", "351\n");
	examine();
	expect(!has("fabric", DOCTOR_WRONG, ""));
}

static void flow_control(void)
{
	begin("flow control for the priority of RDMA");
	answers.dcb = 0;
	answers.bridging.pfc = 1 << 3 | 1 << 4;
	answers.bridging.has_dscp = true;
	answers.bridging.priority[26] = 3;
	plant(CONFIGURED "default_roce_tos", "104\n");
	examine();
	expect(!d.count[DOCTOR_NOTE]);
	expect(has("fabric", DOCTOR_OK, "eth0 has flow control (PFC) for priority 3,4"));

	plant(CONFIGURED "default_roce_tos", "0\n");
	d.result_count = 0;
	doctor_fabric(&d);
	expect(only("fabric", DOCTOR_NOTE,
		    "flow control (PFC) for priority 3,4, and RDMA has DSCP 0, priority 0"));

	begin("no flow control");
	answers.dcb = 0;
	examine();
	expect(only("fabric", DOCTOR_NOTE, "eth0 has flow control (PFC) for no priority"));

	begin("priorities do not follow from DSCP");
	answers.dcb = 0;
	answers.bridging.pfc = 1 << 3;
	examine();
	expect(has("fabric", DOCTOR_OK, "eth0 has flow control (PFC) for priority 3"));
}

static void loss(void)
{
	begin("no loss");
	examine();
	doctor_loss(&d);
	expect(has("fabric", DOCTOR_OK, "rxe0 port 1 loses no packets"));

	begin("loss in the past");
	plant(PORT "hw_counters/out_of_sequence", "12\n");
	examine();
	doctor_loss(&d);
	expect(!doctor_exit_code(&d));
	expect(has("fabric", DOCTOR_OK, "it has lost some: out_of_sequence 12"));

	begin("loss");
	plant(PORT "hw_counters/local_ack_timeout_err", "1\n");
	examine();
	plant(PORT "hw_counters/out_of_sequence", "5\n");
	plant(PORT "hw_counters/local_ack_timeout_err", "1000001\n");
	doctor_loss(&d);
	expect(only("fabric", DOCTOR_WRONG, "packets of rxe0 port 1 are lost: out_of_sequence "));
	expect(has("fabric", DOCTOR_WRONG, "/s, local_ack_timeout_err "));

	begin("loss, in a counter of the device and one of InfiniBand");
	plant("/sys/class/infiniband/rxe0/hw_counters/RTO", "1\n");
	plant(PORT "counters/port_xmit_discards", "1\n");
	examine();
	plant("/sys/class/infiniband/rxe0/hw_counters/RTO", "2\n");
	plant(PORT "counters/port_xmit_discards", "2\n");
	doctor_loss(&d);
	expect(only("fabric", DOCTOR_WRONG, "lost: RTO "));
	expect(has("fabric", DOCTOR_WRONG, "/s, port_xmit_discards "));

	begin("congestion is no loss");
	plant(PORT "hw_counters/rp_cnp_handled", "1\n");
	examine();
	plant(PORT "hw_counters/rp_cnp_handled", "2\n");
	doctor_loss(&d);
	expect(only("fabric", DOCTOR_NOTE, "meet congestion (ECN): rp_cnp_handled "));
	expect(has("fabric", DOCTOR_OK, "rxe0 port 1 loses no packets"));

	begin("a counter that comes, and a device without any");
	remove_file(PORT "hw_counters");
	examine();
	plant(PORT "hw_counters/out_of_sequence", "5\n");
	doctor_loss(&d);
	expect(!doctor_exit_code(&d));
	remove_file(PORT "hw_counters");
	d.result_count = 0;
	doctor_loss(&d);
	expect(!has("fabric", DOCTOR_OK, ""));
}

void fabric_tests(void)
{
	packets();
	flow_control();
	loss();
}
