// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Does this host have a packet filter whose rules do not know of RDMA? What the rules do with
 * a packet is not modelled here: rpcrdma ping sends one.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define CHECK		"firewall"
#define ROCE_PORT	4791
#define NFS_RDMA_PORT	20049

/* iptables-save mostly lists rules of nftables, and nft has them anyway. */
static char *const programs[][5] = {
	{ "nft", "-s", "list", "ruleset" },
	{ "iptables-legacy-save" },
	{ "ip6tables-legacy-save" },
};

/* What all of them print */
struct listing {
	char tables[200];	/* their names */
	bool udp, tcp;		/* the port of RoCE, or of iWARP, is in a rule */
	bool asked, failed;	/* a program could tell; another could not */
};

static bool has_number(const char *line, unsigned int number)
{
	for (line += strcspn(line, "0123456789"); *line; line += strcspn(line, "0123456789")) {
		char *end;

		if (strtoul(line, &end, 10) == number)
			return true;
		line = end;
	}
	return false;
}

static void read_line(struct listing *l, const char *line, unsigned int tcp_port)
{
	size_t len = strlen(l->tables);
	const char *kind = len ? ", " : "", *name = NULL;

	if (!strncmp(line, "table ", 6))	/* table inet filter { */
		name = line + 6;
	else if (*line == '*')			/* *filter */
		name = line + 1;
	if (name)
		snprintf(l->tables + len, sizeof(l->tables) - len, "%s%s%.*s", kind,
			 *line == '*' ? "iptables " : "", (int)strcspn(name, "{") -
			 !!strchr(name, '{'), name);
	l->udp |= has_number(line, ROCE_PORT);
	l->tcp |= has_number(line, tcp_port);
}

static void run_program(struct doctor *d, char *const argv[], struct listing *l)
{
	unsigned int tcp_port = d->listens ?: NFS_RDMA_PORT;
	char *output, *rest, *line;
	int status;
	int ret = doctor_run(d, argv, &status, &output);

	if (ret == -ENOENT)
		return;
	l->asked |= !ret && !status;
	l->failed |= ret || status;
	if (ret)
		return;
	rest = output;
	while (!status && (line = doctor_line(&rest)))
		read_line(l, line, tcp_port);
	free(output);
}

/* Whether the kernel has rules, although nothing here can list them */
static bool has_rules(struct doctor *d)
{
	char *modules = doctor_read(d, "/proc/modules", NULL);
	bool loaded = modules && (strstr(modules, "nf_tables ") ||
				  strstr(modules, "iptable_filter ") ||
				  strstr(modules, "ip6table_filter "));

	free(modules);
	return loaded;
}

static void check_port(struct doctor *d, const struct listing *l, bool named,
		       const char *protocol, unsigned int port)
{
	char advice[DOCTOR_TEXT_MAX];

	if (named) {
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "%s: a rule names %s port %u", l->tables,
			   protocol, port);
		return;
	}
	doctor_advise(advice,
		      "if rpcrdma ping from the other end fails, have them accept %s port %u; hardware mostly bypasses them",
		      protocol, port);
	doctor_add(d, CHECK, DOCTOR_NOTE, advice, "%s: no rule names %s port %u", l->tables,
		   protocol, port);
}

static void check_no_tables(struct doctor *d, const struct listing *l)
{
	if (l->failed && !doctor_exists(d, "/proc/net/netfilter"))
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "the kernel has no packet filter");
	else if (l->failed && !d->privileged)
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "run rpcrdma doctor as root",
			   "only root can list the rules of the firewall");
	else if (l->failed)
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "look at nft list ruleset",
			   "the rules of the firewall cannot be listed");
	else if (!l->asked && has_rules(d))
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "install nftables",
			   "the kernel has a firewall, and there is no program to list its rules");
	else
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "this host has no firewall");
}

void doctor_firewall(struct doctor *d)
{
	bool roce = !d->port_count, iwarp = !d->port_count;
	struct listing l = {};
	size_t i;

	for (i = 0; i < d->port_count; i++) {
		roce |= !d->ports[i].iwarp && !d->ports[i].infiniband;
		iwarp |= d->ports[i].iwarp;
	}
	if (!roce && !iwarp) {
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "InfiniBand passes no firewall");
		return;
	}
	for (i = 0; i < ARRAY_SIZE(programs); i++)
		run_program(d, programs[i], &l);
	if (!*l.tables)
		check_no_tables(d, &l);
	if (*l.tables && roce)
		check_port(d, &l, l.udp, "udp", ROCE_PORT);
	if (*l.tables && iwarp)
		check_port(d, &l, l.tcp, "tcp", d->listens ?: NFS_RDMA_PORT);
}
