// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* rpcrdma status: one word about NFS over RDMA here, for monitoring */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "doctor.h"
#include "json.h"

#define SYNOPSIS	"status [-j|--json] [-n|--nagios]"

#define REASONS_MAX	3	/* in the line for monitoring */

/* By enum doctor_health, whose values are the exit codes of monitoring plugins */
static const struct {
	const char *word, *nagios;
} words[] = {
	[HEALTH_OK] = { "ok", "OK" },
	[HEALTH_DEGRADED] = { "degraded", "WARNING" },
	[HEALTH_DOWN] = { "down", "CRITICAL" },
	[HEALTH_UNKNOWN] = { "unknown", "UNKNOWN" },
};

static json_t *counts(const struct doctor_connections *these)
{
	return json_pack("{s:I, s:I}", "connections", (json_int_t)these->count,
			 "established", (json_int_t)these->established);
}

static void print_json(const struct doctor *d, const char *word)
{
	out_json(json_pack("{s:s, s:o, s:o, s:o}", "status", word, "client", counts(&d->clients),
			   "server", counts(&d->servers), "results", doctor_json(d, true)));
}

/* A bar separates the text from the figures. */
static void print_reason(const char *separator, const char *text)
{
	fputs(separator, stdout);
	for (; *text; text++)
		putchar(*text == '|' ? '/' : *text);
}

static void print_nagios(const struct doctor *d, const char *word)
{
	size_t i, reasons = 0;

	printf("RPCRDMA %s", word);
	for (i = 0; i < d->result_count; i++)
		if (d->results[i].verdict >= DOCTOR_WRONG && reasons++ < REASONS_MAX)
			print_reason(reasons == 1 ? " - " : "; ", d->results[i].what);
	if (reasons > REASONS_MAX)
		printf("; and %zu more", reasons - REASONS_MAX);
	if (!reasons)
		printf(" - %zu connections to servers, %zu of clients", d->clients.established,
		       d->servers.established);
	printf("|client=%zu;;;0 client_established=%zu;;;0", d->clients.count,
	       d->clients.established);
	printf(" server=%zu;;;0 server_established=%zu;;;0 findings=%zu;;;0\n", d->servers.count,
	       d->servers.established, d->count[DOCTOR_WRONG]);
}

int cmd_status(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "nagios", no_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ "root", required_argument, NULL, 'r' },	/* for tests */
		{ }
	};
	bool json = false, nagios = false;
	enum doctor_health health;
	static struct doctor d;
	int option;

	doctor_init(&d);
	while ((option = getopt_long(argc, argv, "jnh", options, NULL)) != -1) {
		if (option == 'j')
			json = true;
		else if (option == 'n')
			nagios = true;
		else if (option == 'r')
			d.root = optarg;
		else
			usage_of(option, HEALTH_UNKNOWN, SYNOPSIS);
	}
	if (optind < argc)
		die(HEALTH_UNKNOWN, "status: options alone (got %s)", argv[optind]);
	health = doctor_health(&d);
	if (json) {
		print_json(&d, words[health].word);
	} else if (nagios) {
		print_nagios(&d, words[health].nagios);
	} else {
		puts(words[health].word);
		doctor_print(&d, true);
	}
	if (fflush(stdout) || ferror(stdout))
		die(HEALTH_UNKNOWN, "cannot write the output: %s", strerror(errno));
	return health;
}
