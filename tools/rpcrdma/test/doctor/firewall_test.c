// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tables of packet filters */

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lab.h"

static void examine(void)
{
	doctor_device(&d);
	doctor_firewall(&d);
}

/* One rule in a table of nftables */
static void check_rule(const char *rule, enum doctor_verdict verdict)
{
	char script[512];

	begin(rule);
	snprintf(script, sizeof(script), "echo 'table inet f {\n\tchain in {\n\t\t%s\n\t}\n}'",
		 rule);
	plant_program("nft", script);
	examine();
	if (verdict == DOCTOR_NOTE)
		expect(only("firewall", DOCTOR_NOTE, "inet f: no rule names udp port 4791"));
	else
		expect(has("firewall", DOCTOR_OK, "inet f: a rule names udp port 4791"));
	expect(!doctor_exit_code(&d));
}

static void ports(void)
{
	check_rule("udp dport 4791 accept", DOCTOR_OK);
	check_rule("udp dport { 53, 4791 } drop", DOCTOR_OK);
	check_rule("udp dport 4790 accept", DOCTOR_NOTE);
	check_rule("udp dport 47910 accept", DOCTOR_NOTE);
	check_rule("udp dport 14791 accept", DOCTOR_NOTE);
	check_rule("tcp dport 20049 accept", DOCTOR_NOTE);
	check_rule("", DOCTOR_NOTE);

	begin("iWARP: TCP to the server's port");
	plant_program("nft", "echo 'table ip a {\n}\ntable ip6 b {\n udp dport 4791\n}'");
	plant("/sys/class/infiniband/rxe0/node_type", "4: RNIC\n");
	doctor_device(&d);
	d.listens = 1234;
	doctor_firewall(&d);
	expect(only("firewall", DOCTOR_NOTE, "ip a, ip6 b: no rule names tcp port 1234"));
}

static void programs(void)
{
	begin("no tables");
	plant_program("nft", "");
	examine();
	expect(!doctor_exit_code(&d) && has("firewall", DOCTOR_OK, "no firewall"));

	begin("iptables alone");
	plant_program("iptables-legacy-save",
		      "echo '*filter\n:INPUT DROP [0:0]\n-A INPUT -p udp --dport 53 -j ACCEPT'");
	examine();
	expect(only("firewall", DOCTOR_NOTE, "iptables filter: no rule names udp port 4791"));

	begin("more tables than are shown");
	plant_program("nft", "i=0; while [ $i -lt 500 ]; do echo 'table ip t {'; i=$((i+1)); done");
	examine();
	expect(only("firewall", DOCTOR_NOTE, "ip t, ip t"));

	begin("not for this user");
	d.privileged = false;
	plant_program("nft", "echo 'Operation not permitted' >&2; exit 1");
	examine();
	expect(only("firewall", DOCTOR_UNKNOWN, "only root"));

	begin("one of two programs fails");
	plant_program("nft", "exit 1");
	plant_program("iptables-legacy-save", "");
	examine();
	expect(only("firewall", DOCTOR_UNKNOWN, "cannot be listed"));

	begin("a kernel without packet filters");
	remove_file("/proc/net/netfilter");
	plant_program("nft", "exit 1");
	examine();
	expect(!doctor_exit_code(&d));
	expect(has("firewall", DOCTOR_OK, "the kernel has no packet filter"));

	begin("the parent ignores SIGCHLD, so that no status can be had");
	plant_program("nft", "exit 0");
	doctor_device(&d);
	signal(SIGCHLD, SIG_IGN);
	doctor_firewall(&d);
	signal(SIGCHLD, SIG_DFL);
	expect(only("firewall", DOCTOR_UNKNOWN, "cannot be listed"));

	begin("no program to list rules");
	plant("/proc/modules", "x 1 0 - Live\nnf_tables 1 0 - Live\n");
	examine();
	expect(only("firewall", DOCTOR_UNKNOWN, "no program to list its rules"));
}

void firewall_tests(void)
{
	ports();
	programs();
}
