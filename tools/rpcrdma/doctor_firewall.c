// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Does a packet filter of this host drop what RDMA needs? */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "doctor_rules.h"

#define CHECK	"firewall"

#define ROCE_PORT	4791
#define NFS_RDMA_PORT	20049

/* Programs that list rules, by what prints them */
static const struct filter {
	char *argv[5];
	bool json;
} filters[] = {
	{ { "nft", "-j", "list", "ruleset" }, true },
	{ { "iptables-save" }, false },
	{ { "ip6tables-save" }, false },
	{ { "iptables-legacy-save" }, false },
	{ { "ip6tables-legacy-save" }, false },
};

/* What is said about all of them */
struct opinion {
	bool software;		/* the packets of a device pass the filter */
	enum fate told[2];	/* about UDP and TCP; iptables may show nftables' rules */
	size_t asked;		/* programs that could tell */
	size_t failed;		/* programs that are there and could not */
};

static void report(struct doctor *d, struct opinion *opinion, const struct packet *packet,
		   const char *program, const char *where, enum fate fate)
{
	bool sure = fate == FATE_DROPPED && opinion->software;
	enum fate *told = &opinion->told[!strcmp(packet->protocol, "tcp")];
	char advice[DOCTOR_TEXT_MAX];

	if (fate <= *told)
		return;
	*told = fate;
	if (sure)
		doctor_advise(advice, "have it accept %s port %u", packet->protocol,
			      packet->port);
	else if (fate == FATE_DROPPED)
		doctor_advise(advice,
			      "hardware mostly bypasses it; otherwise have it accept %s port %u",
			      packet->protocol, packet->port);
	else
		doctor_advise(advice, "look whether they let pass what the other ends send");
	doctor_add(d, CHECK, sure ? DOCTOR_WRONG : DOCTOR_NOTE, advice,
		   "%s: the rules of %s drop %s%s port %u", program, where,
		   fate == FATE_MAYBE ? "some packets to " : "", packet->protocol, packet->port);
}

static void check_packet(struct doctor *d, struct opinion *opinion,
			 const struct filter *filter, const char *output,
			 const struct packet *packet)
{
	char where[200] = "", *copy = strdup(output);
	struct rules rules = {};
	int ret = -ENOMEM;

	if (copy)
		ret = filter->json ? rules_nft(&rules, copy, packet) :
		      rules_iptables(&rules, copy, packet);
	if (ret)
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "look at the rules yourself",
			   "what %s prints cannot be read", filter->argv[0]);
	else
		report(d, opinion, packet, filter->argv[0], where,
		       rules_fate(&rules, where, sizeof(where)));
	rules_free(&rules);
	free(copy);
}

/* RoCE sends to the same port in both directions; iWARP is TCP. */
static void check_filter(struct doctor *d, struct opinion *opinion,
			 const struct filter *filter, bool roce, bool iwarp)
{
	struct packet udp = { "udp", ROCE_PORT, true, true };
	struct packet tcp = { "tcp", d->listens ?: NFS_RDMA_PORT, d->listens, true };
	char *output;
	int status;
	int ret = doctor_run(d, filter->argv, &status, &output);

	if (ret == -ENOENT)
		return;
	if (ret || status) {
		opinion->failed++;
		if (!ret)
			free(output);
		return;
	}
	opinion->asked++;
	if (roce)
		check_packet(d, opinion, filter, output, &udp);
	if (iwarp)
		check_packet(d, opinion, filter, output, &tcp);
	free(output);
}

/* Whether the kernel has rules, although nothing here can list them */
static bool has_rules(struct doctor *d)
{
	char *modules = doctor_read(d, "/proc/modules", NULL);
	bool loaded = modules && (!strncmp(modules, "nf_tables ", 10) ||
				  strstr(modules, "\nnf_tables ") ||
				  strstr(modules, "iptable_filter ") ||
				  strstr(modules, "ip6table_filter "));

	free(modules);
	return loaded;
}

static void conclude(struct doctor *d, const struct opinion *opinion)
{
	if (opinion->told[0] || opinion->told[1])
		return;
	if (opinion->failed && !doctor_exists(d, "/proc/net/netfilter"))
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "the kernel has no packet filter");
	else if (opinion->failed && !d->privileged)
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "run rpcrdma doctor as root",
			   "only root can list the rules of the firewall");
	else if (opinion->failed)
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "look at nft list ruleset",
			   "the rules of the firewall cannot be listed");
	else if (opinion->asked)
		doctor_add(d, CHECK, DOCTOR_OK, NULL,
			   "no rule of this host drops what RDMA needs");
	else if (has_rules(d))
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "install nftables",
			   "the kernel has a firewall, and there is no program to list its rules");
	else
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "this host has no firewall");
}

void doctor_firewall(struct doctor *d)
{
	bool roce = !d->port_count, iwarp = !d->port_count;
	struct opinion opinion = { .software = !d->port_count };
	size_t i, before = d->count[DOCTOR_UNKNOWN];

	for (i = 0; i < d->port_count; i++) {
		roce |= !d->ports[i].iwarp && !d->ports[i].infiniband;
		iwarp |= d->ports[i].iwarp;
		opinion.software |= d->ports[i].software;
	}
	if (!roce && !iwarp) {
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "InfiniBand passes no firewall");
		return;
	}
	for (i = 0; i < ARRAY_SIZE(filters); i++)
		check_filter(d, &opinion, &filters[i], roce, iwarp);
	if (d->count[DOCTOR_UNKNOWN] == before)
		conclude(d, &opinion);
}
