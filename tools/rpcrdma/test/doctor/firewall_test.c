// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Rules of packet filters */

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "doctor_rules.h"
#include "lab.h"

/* nft, with these objects after a table and its chain for what comes */
#define NFT(policy, rest) \
	"echo '{\"nftables\": [{\"metainfo\": {\"json_schema_version\": 1}}," \
	"{\"table\": {\"family\": \"inet\", \"name\": \"f\"}}," \
	"{\"chain\": {\"family\": \"inet\", \"table\": \"f\", \"name\": \"in\"," \
	"\"type\": \"filter\", \"hook\": \"input\", \"prio\": 0," \
	"\"policy\": \"" policy "\"}}" rest "]}'"
#define RULE_OF(chain, expr) \
	",{\"rule\": {\"family\": \"inet\", \"table\": \"f\", \"chain\": \"" chain "\"," \
	"\"expr\": [" expr "]}}"
#define RULE(expr)	RULE_OF("in", expr)
#define MATCH(op, left, right) \
	"{\"match\": {\"op\": \"" op "\", \"left\": {" left "}, \"right\": " right "}}"
#define DPORT(protocol) \
	"\"payload\": {\"protocol\": \"" protocol "\", \"field\": \"dport\"}"
#define SADDR		"\"payload\": {\"protocol\": \"ip\", \"field\": \"saddr\"}"
#define META(key)	"\"meta\": {\"key\": \"" key "\"}"
#define STATE		"\"ct\": {\"key\": \"state\"}"
#define DROP		"{\"drop\": null}"
#define ACCEPT		"{\"accept\": null}"
#define REJECT		"{\"reject\": {\"type\": \"icmpx\", \"expr\": \"port-unreachable\"}}"
#define JUMP(to)	"{\"jump\": {\"target\": \"" to "\"}}"
#define GOTO(to)	"{\"goto\": {\"target\": \"" to "\"}}"
#define SET(name, elements) \
	",{\"set\": {\"family\": \"inet\", \"name\": \"" name "\", \"table\": \"f\"," \
	"\"elem\": [" elements "]}}"

enum wanted { ACCEPTED, SOME, DROPPED };

static void check_nft(const char *test, const char *script, enum wanted wanted)
{
	begin(test);
	plant_program("nft", script);
	doctor_device(&d);
	doctor_firewall(&d);
	if (wanted == DROPPED)
		expect(only("firewall", DOCTOR_WRONG,
			    "nft: the rules of inet f in drop udp port 4791"));
	else if (wanted == SOME)
		expect(only("firewall", DOCTOR_NOTE, "some packets to udp port 4791"));
	else
		expect(!doctor_exit_code(&d) && has("firewall", DOCTOR_OK, "no rule"));
}

static void port_tests(void)
{
	check_nft("no rules", NFT("accept", ""), ACCEPTED);
	check_nft("the port", NFT("accept", RULE(MATCH("==", DPORT("udp"), "4791") "," DROP)),
		  DROPPED);
	check_nft("reject", NFT("accept", RULE(MATCH("==", DPORT("udp"), "4791") "," REJECT)),
		  DROPPED);
	check_nft("another port", NFT("accept", RULE(MATCH("==", DPORT("udp"), "4790") "," DROP)),
		  ACCEPTED);
	check_nft("another protocol",
		  NFT("accept", RULE(MATCH("==", DPORT("tcp"), "4791") "," DROP)), ACCEPTED);
	check_nft("a range",
		  NFT("accept", RULE(MATCH("==", DPORT("th"), "{\"range\": [4000, 5000]}") ","
				     DROP)), DROPPED);
	check_nft("a set", NFT("accept", RULE(MATCH("==", DPORT("udp"), "{\"set\": [1, 4791]}") ","
					      DROP)), DROPPED);
	check_nft("a set with a name",
		  NFT("accept", SET("s", "{\"range\": [1, 9]}, {\"elem\": {\"val\": 4791}}")
		      RULE(MATCH("==", DPORT("udp"), "\"@s\"") "," DROP)), DROPPED);
	check_nft("a set that is not there",
		  NFT("accept", RULE(MATCH("==", DPORT("udp"), "\"@s\"") "," DROP)), ACCEPTED);
	check_nft("all other ports", NFT("accept", RULE(MATCH("!=", DPORT("udp"), "53") "," DROP)),
		  DROPPED);
	check_nft("all of UDP",
		  NFT("accept", RULE(MATCH("==", META("l4proto"), "\"udp\"") "," DROP)), DROPPED);
	check_nft("all of TCP",
		  NFT("accept", RULE(MATCH("==", META("l4proto"), "{\"set\": [6, \"icmp\"]}") ","
				     DROP)), ACCEPTED);
}

static void orders(void)
{
	check_nft("accepted before",
		  NFT("drop", RULE(MATCH("==", DPORT("udp"), "4791") "," ACCEPT) RULE(DROP)),
		  ACCEPTED);
	check_nft("dropped before",
		  NFT("accept", RULE(DROP) RULE(MATCH("==", DPORT("udp"), "4791") "," ACCEPT)),
		  DROPPED);
	check_nft("policy drop", NFT("drop", ""), DROPPED);
	check_nft("a usual firewall",
		  NFT("drop", RULE(MATCH("in", STATE, "[\"established\", \"related\"]") "," ACCEPT)
		      RULE(MATCH("==", META("iifname"), "\"lo\"") "," ACCEPT)
		      RULE("{\"counter\": {\"packets\": 0}},"
			   MATCH("==", DPORT("tcp"), "22") "," ACCEPT)), DROPPED);
	check_nft("invalid packets",
		  NFT("accept", RULE(MATCH("in", STATE, "\"invalid\"") "," DROP)), ACCEPTED);
	check_nft("some hosts may",
		  NFT("drop", RULE(MATCH("==", SADDR, "\"10.0.0.1\"") "," ACCEPT)), SOME);
	check_nft("some hosts may not",
		  NFT("accept", RULE(MATCH("==", SADDR, "\"10.0.0.1\"") ","
				     MATCH("==", DPORT("udp"), "4791") "," DROP)), SOME);
	check_nft("some hosts may nothing",
		  NFT("accept", RULE(MATCH("==", SADDR, "\"10.0.0.1\"") "," DROP)), ACCEPTED);
}

static void jumps(void)
{
	check_nft("a chain",
		  NFT("accept", RULE_OF("sub", MATCH("==", DPORT("udp"), "4791") "," DROP)
		      RULE(JUMP("sub"))), DROPPED);
	check_nft("a chain that returns",
		  NFT("drop", RULE_OF("sub", "{\"return\": null}") RULE_OF("sub", DROP)
		      RULE(JUMP("sub")) RULE(ACCEPT)), ACCEPTED);
	check_nft("a chain that is gone to",
		  NFT("drop", RULE_OF("sub", "{\"counter\": null}") RULE(GOTO("sub"))
		      RULE(ACCEPT)), DROPPED);
	check_nft("a chain for one interface",
		  NFT("drop", RULE_OF("sub", ACCEPT)
		      RULE(MATCH("==", META("iifname"), "\"eth0\"") "," GOTO("sub"))), SOME);
	check_nft("a verdict map",
		  NFT("accept", RULE("{\"vmap\": {\"key\": {" DPORT("udp") "}, \"data\":\n"
				     "{\"set\": [[22, " ACCEPT "], [4791, " DROP "]]}}}")),
		  DROPPED);
	check_nft("a verdict map about states",
		  NFT("drop", RULE("{\"vmap\": {\"key\": {" STATE "}, \"data\":\n"
				   "{\"set\": [[\"established\", " ACCEPT "]]}}}")), DROPPED);
	check_nft("a verdict map about more",
		  NFT("drop", RULE("{\"vmap\": {\"key\": {\"concat\": []}, \"data\": \"@m\"}}")),
		  SOME);
	check_nft("chains in a circle",
		  NFT("accept", RULE_OF("sub", JUMP("in")) RULE_OF("sub", JUMP("in"))
		      RULE(JUMP("sub")) RULE(JUMP("sub"))), ACCEPTED);
}

static void iptables_tests(void)
{
	static const char start[] = "*filter\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n"
				    ":mine - [0:0]\n";
	static const struct {
		const char *rules;
		enum fate fate;
	} tests[] = {
		{ "", FATE_ACCEPTED },
		{ "-A INPUT -p udp -m udp --dport 4791 -j DROP\n", FATE_DROPPED },
		{ "-A INPUT -p tcp -m tcp --dport 4791 -j DROP\n", FATE_ACCEPTED },
		{ "-A INPUT -p udp -m multiport --dports 22,4000:5000 -j REJECT --reject-with x\n",
		  FATE_DROPPED },
		{ "-A INPUT -p udp -m udp ! --dport 53 -j DROP\n", FATE_DROPPED },
		{ "-A INPUT ! -p udp -j DROP\n", FATE_ACCEPTED },
		{ "-A INPUT -m comment --comment \"a -j ACCEPT \\\" b\" -j DROP\n", FATE_DROPPED },
		{ "-A INPUT -i lo -j ACCEPT\n"
		  "-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"
		  "-A INPUT -j LOG --log-prefix \"x \"\n-A INPUT -j DROP\n",
		  FATE_DROPPED },
		{ "-A mine -p udp -m udp --dport 4791 -j ACCEPT\n-A INPUT -j mine\n"
		  "-A INPUT -j DROP\n", FATE_ACCEPTED },
		{ "-A INPUT -s 10.0.0.0/8 -j ACCEPT\n-A INPUT -j DROP\n", FATE_MAYBE },
		{ "-A INPUT -s 10.0.0.0/8 -p udp --dport 4791 -j DROP\n", FATE_MAYBE },
		{ "-A OUTPUT -p udp --dport 4791 -j DROP\n", FATE_DROPPED },
		{ "-P INPUT\n:INPUT DROP [0:0]\n", FATE_DROPPED },
		{ "*nat\n:PREROUTING DROP [0:0]\n", FATE_ACCEPTED },
	};
	struct packet packet = { "udp", 4791, true, true };
	char name[64], text[1024], where[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		struct rules rules = {};

		snprintf(name, sizeof(name), "iptables rules %zu", i);
		begin(name);
		snprintf(text, sizeof(text), "%s%s", start, tests[i].rules);
		expect(!rules_iptables(&rules, text, &packet));
		expect(rules_fate(&rules, where, sizeof(where)) == tests[i].fate);
		rules_free(&rules);
	}
}

static void programs(void)
{
	begin("iptables alone");
	plant_program("iptables-save",
		      "echo '*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p udp --dport 4791 -j DROP'");
	doctor_device(&d);
	doctor_firewall(&d);
	expect(only("firewall", DOCTOR_WRONG,
		    "iptables-save: the rules of filter INPUT drop udp port 4791"));

	begin("both show the same rule");
	plant_program("nft", NFT("drop", ""));
	plant_program("iptables-save", "echo '*filter\n:INPUT DROP [0:0]'");
	doctor_device(&d);
	doctor_firewall(&d);
	expect(only("firewall", DOCTOR_WRONG, "nft: "));

	begin("not for this user");
	d.privileged = false;
	plant_program("nft", "echo 'Operation not permitted' >&2; exit 1");
	doctor_device(&d);
	doctor_firewall(&d);
	expect(only("firewall", DOCTOR_UNKNOWN, "only root"));

	begin("one of two programs fails");
	plant_program("nft", "exit 1");
	plant_program("iptables-save", "");
	doctor_device(&d);
	doctor_firewall(&d);
	expect(only("firewall", DOCTOR_UNKNOWN, "cannot be listed"));

	begin("a kernel without packet filters");
	remove_file("/proc/net/netfilter");
	plant_program("nft", "exit 1");
	doctor_device(&d);
	doctor_firewall(&d);
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
	doctor_device(&d);
	doctor_firewall(&d);
	expect(only("firewall", DOCTOR_UNKNOWN, "no program to list its rules"));

	begin("JSON that is none");
	plant_program("nft", "echo '{\"nftables\": [{\"chain\":'");
	doctor_device(&d);
	doctor_firewall(&d);
	expect(only("firewall", DOCTOR_UNKNOWN, "what nft prints cannot be read"));
}

static void kinds(void)
{
	begin("hardware mostly bypasses the firewall");
	plant_program("nft", NFT("drop", ""));
	plant("/sys/class/infiniband/rxe0/device/vendor", "0x15b3\n");
	doctor_device(&d);
	doctor_firewall(&d);
	expect(only("firewall", DOCTOR_NOTE, "drop udp port 4791"));

	begin("iWARP: TCP to the server's port");
	plant_program("nft", NFT("drop", RULE(MATCH("==", DPORT("udp"), "4791") "," ACCEPT)));
	plant("/sys/class/infiniband/rxe0/node_type", "4: RNIC\n");
	doctor_device(&d);
	d.listens = 1234;
	doctor_firewall(&d);
	expect(only("firewall", DOCTOR_WRONG, "drop tcp port 1234"));

	begin("iWARP: nobody connects to a client");
	plant_program("nft", NFT("drop", ""));
	plant("/sys/class/infiniband/rxe0/node_type", "4: RNIC\n");
	doctor_device(&d);
	doctor_firewall(&d);
	expect(!doctor_exit_code(&d));
}

void firewall_tests(void)
{
	port_tests();
	orders();
	jumps();
	iptables_tests();
	programs();
	kinds();
}
