// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* rpcrdma doctor: what is wrong with NFS over RDMA here, and what to do about it. */

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "doctor.h"
#include "fmt.h"
#include "host.h"
#include "json.h"
#include "term.h"

#define PATIENCE_MS	10000
#define SYNOPSIS	"doctor [-jq] [HOST[:PORT]]"

/* How a verdict is shown */
static const struct look {
	const char *word;
	enum colour colour;
} looks[] = {
	[DOCTOR_OK] = { "ok", COLOUR_GOOD },
	[DOCTOR_NOTE] = { "note", COLOUR_NONE },
	[DOCTOR_WRONG] = { "wrong", COLOUR_BAD },
	[DOCTOR_UNKNOWN] = { "unknown", COLOUR_WARN },
};

void doctor_add(struct doctor *d, const char *check, enum doctor_verdict verdict,
		const char *advice, const char *format, ...)
{
	struct doctor_result *result = &d->results[d->result_count];
	va_list args;

	d->count[verdict]++;
	if (d->result_count == DOCTOR_RESULTS_MAX)
		return;
	d->result_count++;
	result->check = check;
	result->verdict = verdict;
	va_start(args, format);
	vsnprintf(result->what, sizeof(result->what), format, args);
	va_end(args);
	snprintf(result->advice, sizeof(result->advice), "%s", advice ?: "");
	fmt_plain(result->what);
	fmt_plain(result->advice);
}

const char *doctor_advise(char text[DOCTOR_TEXT_MAX], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, DOCTOR_TEXT_MAX, format, args);
	va_end(args);
	return text;
}

int doctor_exit_code(const struct doctor *d)
{
	if (d->count[DOCTOR_WRONG])
		return 1;
	return d->count[DOCTOR_UNKNOWN] ? 2 : 0;
}

void doctor_init(struct doctor *d)
{
	memset(d, 0, sizeof(*d));
	d->root = "";
	d->self = "/proc/self/exe";
	d->privileged = !geteuid();
	d->patience = PATIENCE_MS;
	d->kernel = &doctor_kernel;
	snprintf(d->server_port, sizeof(d->server_port), HOST_PORT);
}

/* What is run may be where users' PATH often does not look. */
void doctor_programs(const struct doctor *d)
{
	char path[PATH_MAX];

	/* If the parent ignored it, no status of a child could be had. */
	signal(SIGCHLD, SIG_DFL);
	if (*d->root)	/* tests have no programs but their own */
		return;
	snprintf(path, sizeof(path), "%s:/usr/sbin:/sbin", getenv("PATH") ?: "/usr/bin:/bin");
	setenv("PATH", path, 1);
	setenv("LC_ALL", "C", 1);
}

void doctor_examine(struct doctor *d)
{
	doctor_programs(d);
	doctor_module(d);
	doctor_kernels(d);
	doctor_device(d);
	doctor_fabric(d);
	doctor_memlock(d);
	doctor_server(d);
	doctor_clients(d);
	doctor_firewall(d);
	if (d->host)
		doctor_route(d);
	doctor_loss(d);
	doctor_mount(d);
	doctor_connection(d);
	doctor_log(d);
}

enum doctor_health doctor_health(struct doctor *d)
{
	doctor_programs(d);
	doctor_module(d);
	doctor_device(d);
	doctor_server(d);
	doctor_mount(d);
	doctor_connection(d);
	if (d->silent || !d->usable || d->no_listener ||
	    (d->clients.count && d->clients.stuck == d->clients.count))
		return HEALTH_DOWN;
	if (d->count[DOCTOR_WRONG])
		return HEALTH_DEGRADED;
	return d->count[DOCTOR_UNKNOWN] ? HEALTH_UNKNOWN : HEALTH_OK;
}

/* The report */

static void print_result(const struct doctor_result *result)
{
	const struct look *look = &looks[result->verdict];

	printf("%s%-7s%s %-9s %s\n", term_colour(look->colour), look->word,
	       term_plain(look->colour), result->check, result->what);
	if (*result->advice)
		printf("%18s-> %s\n", "", result->advice);
}

static void print_sum(const struct doctor *d)
{
	size_t wrong = d->count[DOCTOR_WRONG], unknown = d->count[DOCTOR_UNKNOWN];

	if (!wrong && !unknown) {
		puts("All is well.");
		return;
	}
	printf("%zu finding%s", wrong, wrong == 1 ? "" : "s");
	if (unknown)
		printf(", %zu thing%s could not be checked", unknown, unknown == 1 ? "" : "s");
	puts(".");
}

void doctor_print(const struct doctor *d, bool quiet)
{
	size_t i;

	for (i = 0; i < d->result_count; i++)
		if (!quiet || d->results[i].verdict >= DOCTOR_WRONG)
			print_result(&d->results[i]);
	if (!quiet)
		print_sum(d);
}

json_t *doctor_json(const struct doctor *d, bool quiet)
{
	json_t *list = json_array(), *one;
	size_t i;

	for (i = 0; i < d->result_count; i++) {
		const struct doctor_result *result = &d->results[i];

		if (quiet && result->verdict < DOCTOR_WRONG)
			continue;
		one = json_pack("{s:s, s:s, s:s, s:s*}", "check", result->check,
				"verdict", looks[result->verdict].word, "what", result->what,
				"advice", *result->advice ? result->advice : NULL);
		json_array_append_new(list, one);
	}
	return list;
}

static void print_json(const struct doctor *d, bool quiet)
{
	out_json(json_pack("{s:s*, s:I, s:I, s:o}", "host", d->host,
			   "findings", (json_int_t)d->count[DOCTOR_WRONG],
			   "unknown", (json_int_t)d->count[DOCTOR_UNKNOWN],
			   "results", doctor_json(d, quiet)));
}

/* The command */

int cmd_doctor(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "root", required_argument, NULL, 'r' },	/* for tests */
		{ }
	};
	static struct doctor d;
	static struct host host;
	bool json = false, quiet = false;
	int option;

	doctor_init(&d);
	while ((option = getopt_long(argc, argv, "jqh", options, NULL)) != -1) {
		if (option == 'j')
			json = true;
		else if (option == 'q')
			quiet = true;
		else if (option == 'r')
			d.root = optarg;
		else
			usage_of(option, STATUS_USAGE, SYNOPSIS);
	}
	if (argc - optind > 1)
		die(STATUS_USAGE, "doctor: one HOST at a time (got %s)", argv[optind + 1]);
	if (optind < argc) {
		if (!host_parse(&host, argv[optind]))
			die(STATUS_USAGE, "doctor: " HOST_FORMS " (got %s)", argv[optind]);
		d.host = host.name;
		snprintf(d.server_port, sizeof(d.server_port), "%s", host.port);
	}
	doctor_examine(&d);
	if (json)
		print_json(&d, quiet);
	else
		doctor_print(&d, quiet);
	return doctor_exit_code(&d);
}
