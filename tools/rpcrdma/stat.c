// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* rpcrdma stat: what connections or peers do per second, as nfsiostat shows it */

#include <errno.h>
#include <getopt.h>
#include <linux/rpcrdma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "connection.h"
#include "json.h"
#include "number.h"
#include "rules.h"
#include "sample.h"
#include "sock.h"
#include "table.h"

#define SYNOPSIS	"stat [peers] [INTERVAL [COUNT]] [-j|--json]\n" \
	"                    " TABLE_SYNOPSIS

#define SECOND		1e9	/* ns */
#define INTERVAL_MIN	0.01	/* s */
#define INTERVAL_MAX	1e6	/* s */
#define COUNT_MAX	1000000000u

static const struct column connection_columns[] = {
	{ "ID", SCOLS_FL_RIGHT },
	{ "ROLE" },
	{ "PEER", SCOLS_FL_TRUNC },
	{ "RPC/s", SCOLS_FL_RIGHT },
	{ "SENT/s", SCOLS_FL_RIGHT },
	{ "RECV/s", SCOLS_FL_RIGHT },
	{ "P50", SCOLS_FL_RIGHT },
	{ "P99", SCOLS_FL_RIGHT },
	{ "CREDITS", SCOLS_FL_RIGHT },
	{ "WAITS/s", SCOLS_FL_RIGHT, 100 },
	{ "ERRORS/s", SCOLS_FL_RIGHT, 100 },
	{ }
};

static const struct column peer_columns[] = {
	{ "ROLE" },
	{ "PEER", SCOLS_FL_TRUNC },
	{ "RPC/s", SCOLS_FL_RIGHT },
	{ "SENT/s", SCOLS_FL_RIGHT },
	{ "RECV/s", SCOLS_FL_RIGHT },
	{ "P50", SCOLS_FL_RIGHT },
	{ "P99", SCOLS_FL_RIGHT },
	{ "WAITS/s", SCOLS_FL_RIGHT, 100 },
	{ "ERRORS/s", SCOLS_FL_RIGHT, 100 },
	{ }
};

struct stat {
	bool peers;		/* not connections */
	double interval;	/* s, 0: one report and no interval */
	unsigned int count;	/* of reports, 0: without end */
	bool json;
	struct table_style style;
};

static double seconds(const char *word)
{
	char *end;
	double value = strtod(word, &end);

	if (end == word || *end || !(value >= INTERVAL_MIN && value <= INTERVAL_MAX))
		die(STATUS_USAGE, "stat: INTERVAL has to be from %g to %.0f (got %s)",
		    INTERVAL_MIN, INTERVAL_MAX, word);
	return value;
}

static unsigned int reports(const char *word)
{
	uint32_t count;

	if (!number_parse(word, 1, COUNT_MAX, &count))
		die(STATUS_USAGE, "stat: COUNT has to be from 1 to %u (got %s)", COUNT_MAX, word);
	return count;
}

static const struct column *columns_of(const struct stat *stat)
{
	return stat->peers ? peer_columns : connection_columns;
}

static struct stat parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		TABLE_OPTIONS,
		{ }
	};
	struct stat stat = { .count = 1 };
	int c;

	while ((c = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		if (c == 'j')
			stat.json = true;
		else if (!table_option(&stat.style, "stat", c))
			usage_of(c, STATUS_USAGE, SYNOPSIS);
	}
	stat.peers = optind < argc && !strcmp(argv[optind], "peers");
	optind += stat.peers;
	if (argc - optind > 2)
		die(STATUS_USAGE, "stat: INTERVAL and COUNT, no more (got %s)", argv[optind + 2]);
	if (optind < argc) {
		stat.interval = seconds(argv[optind++]);
		stat.count = 0;
	}
	if (optind < argc)
		stat.count = reports(argv[optind]);
	if (stat.json) {
		table_refuse(&stat.style, "stat", "-j");
		die_as_json();
	}
	table_check(&stat.style, stat.peers ? "stat peers" : "stat", columns_of(&stat));
	return stat;
}

static void print_json(const struct stat *stat, const struct rates *rates, unsigned int count)
{
	json_t *array = json_array();
	unsigned int i;

	for (i = 0; i < count; i++)
		json_array_append_new(array, rates_json(&rates[i]));
	out_json_line(json_pack("{s:I, s:o}", "time", (json_int_t)sock_wall(),
				stat->peers ? "peers" : "connections", array));
}

static void per_second(struct table *table, const struct rates *rates, double count,
		       enum colour colour)
{
	table_value(table, count / rates->seconds);
	table_cell(table, count > 0 ? colour : COLOUR_NONE, "%s",
		   fmt_rate(count / rates->seconds).s);
}

static void octets_per_second(struct table *table, const struct rates *rates, uint64_t octets)
{
	table_value(table, octets / rates->seconds);
	table_cell(table, COLOUR_NONE, "%s", fmt_size(fmt_whole(octets / rates->seconds)).s);
}

static void percentile(struct table *table, const struct rates *rates, double percent)
{
	if (histogram_count(&rates->latency))
		table_value(table, histogram_percentile(&rates->latency, percent));
	table_cell(table, COLOUR_NONE, "%s", histogram_count(&rates->latency) ?
		   fmt_ns(histogram_percentile(&rates->latency, percent)).s : "-");
}

static void id(struct table *table, const struct attrs *c)
{
	unsigned int number = attr_number(c, RPCRDMA_A_CONNECTION_ID);

	table_value(table, number);
	table_cell(table, COLOUR_NONE, "%u", number);
}

static void credits(struct table *table, const struct attrs *c)
{
	unsigned int in_use = attr_number(c, RPCRDMA_A_CONNECTION_CREDITS_IN_USE);

	table_value(table, in_use);
	table_cell(table, COLOUR_NONE, "%u/%u", in_use,
		   (unsigned int)attr_number(c, RPCRDMA_A_CONNECTION_CREDITS_GRANTED));
}

static void print_row(struct table *table, const struct rates *rates, bool peer)
{
	const struct attrs *c = rates->object;

	if (!peer)
		id(table, c);
	table_cell(table, COLOUR_NONE, "%s", attr_word(c, RPCRDMA_A_CONNECTION_ROLE));
	table_cell(table, COLOUR_NONE, "%s", peer ? peer_name(c).s :
		   attr_string(c, RPCRDMA_A_CONNECTION_PEER));
	per_second(table, rates, rates->rpcs, COLOUR_NONE);
	octets_per_second(table, rates, rates->sent);
	octets_per_second(table, rates, rates->received);
	percentile(table, rates, 50);
	percentile(table, rates, 99);
	if (!peer)
		credits(table, c);
	per_second(table, rates, rates->waits, COLOUR_WARN);
	per_second(table, rates, rates->errors, COLOUR_BAD);
}

static void print_table(const struct stat *stat, const struct rates *rates, unsigned int count,
			bool first)
{
	struct table *table = table_new(columns_of(stat), &stat->style);
	unsigned int i;

	for (i = 0; i < count; i++)
		print_row(table, &rates[i], stat->peers);
	if (!first && !stat->style.no_headings)
		putchar('\n');
	table_end(table, stat->peers ? "no peers" : "no connections");
	fflush(stdout);
}

static void report(const struct stat *stat, const struct sample *is, const struct sample *was)
{
	unsigned int i, count = 0;
	struct rates *rates = calloc(is->objects.count + 1, sizeof(*rates));

	if (!rates)
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
	for (i = 0; i < is->objects.count; i++)
		if (!peer_is_unused(&is->objects.of[i]))
			rates[count++] = rates_between(is, i, was);
	if (stat->json)
		print_json(stat, rates, count);
	else
		print_table(stat, rates, count, !was);
	free(rates);
}

int cmd_stat(int argc, char **argv)
{
	struct stat stat = parse(argc, argv);
	struct sample is = { }, was = { };
	struct nl *nl;
	unsigned int n;
	uint64_t next;

	for (n = 0; !stat.count || n < stat.count; n++) {
		/* The module may be loaded again meanwhile, and its family has another number. */
		nl = nl_require();
		is = sample_take(nl, stat.peers ? RPCRDMA_CMD_PEER_GET :
						  RPCRDMA_CMD_CONNECTION_GET);
		nl_close(nl);
		report(&stat, &is, n ? &was : NULL);
		if (n)
			sample_free(&was);
		was = is;
		if (ferror(stdout) || n + 1 == stat.count)
			break;
		next = is.time + stat.interval * SECOND;
		sock_sleep(next);
	}
	sample_free(&was);
	return STATUS_OK;
}
