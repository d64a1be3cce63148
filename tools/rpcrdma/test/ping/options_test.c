// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The arguments of rpcrdma ping. */

#include <kunit/test.h>
#include <string.h>
#include <sys/socket.h>

#include "ping.h"

#define WORDS_MAX	16

/* A line as a user types it, without the program's name */
static const char *parse(struct ping_options *options, const char *line)
{
	static char text[2 * NI_MAXHOST];
	char *argv[WORDS_MAX + 1];
	const char *wrong;
	int argc = 0;
	char *word;

	snprintf(text, sizeof(text), "ping %s", line);
	for (word = strtok(text, " "); word && argc < WORDS_MAX;
	     word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	wrong = ping_options(options, argc, argv);
	return wrong;
}

static void defaults(struct kunit *test)
{
	struct ping_options options;

	KUNIT_EXPECT_NULL(test, parse(&options, "server"));
	KUNIT_EXPECT_EQ(test, strcmp(options.host.name, "server"), 0);
	KUNIT_EXPECT_EQ(test, strcmp(options.host.port, "20049"), 0);
	KUNIT_EXPECT_EQ(test, options.family, AF_UNSPEC);
	KUNIT_EXPECT_EQ(test, options.count, 5);
	KUNIT_EXPECT_EQ(test, options.interval, NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, options.timeout, 5 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, options.deadline, 0);
	KUNIT_EXPECT_EQ(test, options.size, 0);
	KUNIT_EXPECT_EQ(test, options.needed, 1);
	KUNIT_EXPECT_EQ(test, options.program, 100003);
	KUNIT_EXPECT_EQ(test, options.program_version, 3);
	KUNIT_EXPECT_TRUE(test, options.any_version);
	KUNIT_EXPECT_EQ(test, options.rdma_version, 0);
	KUNIT_EXPECT_FALSE(test, options.json);
}

static void all_options(struct kunit *test)
{
	const char *line =
		"-c 1000000 host:2049 -i 0.25 -W 0.001 -j6q --program 100227:2 --rdma-version 2";
	struct ping_options options;

	KUNIT_EXPECT_NULL(test, parse(&options, line));
	KUNIT_EXPECT_EQ(test, strcmp(options.host.name, "host"), 0);
	KUNIT_EXPECT_EQ(test, strcmp(options.host.port, "2049"), 0);
	KUNIT_EXPECT_EQ(test, options.count, 1000000);
	KUNIT_EXPECT_EQ(test, options.interval, 250 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, options.timeout, NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, options.family, AF_INET6);
	KUNIT_EXPECT_EQ(test, options.program, 100227);
	KUNIT_EXPECT_EQ(test, options.program_version, 2);
	KUNIT_EXPECT_FALSE(test, options.any_version);
	KUNIT_EXPECT_EQ(test, options.rdma_version, 2);
	KUNIT_EXPECT_TRUE(test, options.json);
	KUNIT_EXPECT_TRUE(test, options.quiet);
}

static void long_options(struct kunit *test)
{
	const char *line =
		"--count 7 --interval 2 --timeout 3 --deadline 4 --size 4194301 --quiet h";
	struct ping_options options;

	KUNIT_EXPECT_NULL(test, parse(&options, line));
	KUNIT_EXPECT_EQ(test, options.count, 7);
	KUNIT_EXPECT_EQ(test, options.interval, 2 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, options.timeout, 3 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, options.deadline, 4 * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, options.size, 4194304);
	KUNIT_EXPECT_TRUE(test, options.quiet);
	KUNIT_EXPECT_NULL(test, parse(&options, "--ipv4 h"));
	KUNIT_EXPECT_EQ(test, options.family, AF_INET);
	KUNIT_EXPECT_NULL(test, parse(&options, "--ipv6 h"));
	KUNIT_EXPECT_EQ(test, options.family, AF_INET6);
}

/* As ping(8) has it */
static void a_deadline(struct kunit *test)
{
	struct ping_options options;

	KUNIT_EXPECT_NULL(test, parse(&options, "-w 10 h"));
	KUNIT_EXPECT_EQ(test, options.count, PING_COUNT_MAX);
	KUNIT_EXPECT_EQ(test, options.needed, 1);
	KUNIT_EXPECT_NULL(test, parse(&options, "-w 10 -c 7 h"));
	KUNIT_EXPECT_EQ(test, options.count, 7);
	KUNIT_EXPECT_EQ(test, options.needed, 7);
}

static const struct host_case {
	const char *word, *host, *port;
} hosts[] = {
	{ "192.0.2.1", "192.0.2.1", "20049" },
	{ "192.0.2.1:1", "192.0.2.1", "1" },
	{ "server:65535", "server", "65535" },
	{ "fd17::1", "fd17::1", "20049" },
	{ "::1", "::1", "20049" },
	{ "[fd17::1]", "fd17::1", "20049" },
	{ "[fd17::1]:2049", "fd17::1", "2049" },
	{ "fe80::1%eth0", "fe80::1%eth0", "20049" },
	{ "[fe80::1%eth0]:7", "fe80::1%eth0", "7" },
};

KUNIT_ARRAY_PARAM_DESC(hosts, hosts, word);

static void a_host(struct kunit *test)
{
	const struct host_case *wanted = test->param_value;
	struct ping_options options;

	KUNIT_EXPECT_NULL(test, parse(&options, wanted->word));
	KUNIT_EXPECT_EQ(test, strcmp(options.host.name, wanted->host), 0);
	KUNIT_EXPECT_EQ(test, strcmp(options.host.port, wanted->port), 0);
}

static void a_program(struct kunit *test)
{
	struct ping_options options;

	KUNIT_EXPECT_NULL(test, parse(&options, "--program nfs:4 h"));
	KUNIT_EXPECT_EQ(test, options.program, 100003);
	KUNIT_EXPECT_EQ(test, options.program_version, 4);
	KUNIT_EXPECT_FALSE(test, options.any_version);
	KUNIT_EXPECT_NULL(test, parse(&options, "--program 4294967295 h"));
	KUNIT_EXPECT_EQ(test, options.program, UINT32_MAX);
	KUNIT_EXPECT_EQ(test, options.program_version, 1);
	KUNIT_EXPECT_TRUE(test, options.any_version);
}

static const struct wrong {
	const char *line;
} wrongs[] = {
	{ "" }, { "one two" }, { "-c" }, { "-c 0 h" }, { "-c -1 h" },
	{ "-c 1000001 h" }, { "-c 1x h" }, { "-c 99999999999999999999 h" },
	{ "-i x h" }, { "-i -0.1 h" }, { "-i nan h" }, { "-i inf h" },
	{ "-i 3601 h" }, { "-W 0 h" }, { "-W -5 h" }, { "-W 1e9 h" },
	{ "-w 0 h" }, { "-s -1 h" }, { "-s 4194305 h" }, { "-s 1k h" },
	{ "--program x h" }, { "--program 1: h" }, { "--program :1 h" },
	{ "--program 4294967296 h" }, { "--program 1:2:3 h" },
	{ "--program 11111111111111111111 h" }, { "--rdma-version 0 h" },
	{ "--rdma-version 3 h" }, { "--nonsense h" }, { "-z h" },
	{ "h:" }, { "h:0" }, { "h:65536" }, { "h:x" }, { "h:+1" }, { ":1" },
	{ "[fd17::1" }, { "[]" }, { "[]:1" }, { "[fd17::1]1" },
	{ "[fd17::1]:" }, { "[fd17::1]:0" },
};

KUNIT_ARRAY_PARAM_DESC(wrongs, wrongs, line);

static void is_refused(struct kunit *test)
{
	const struct wrong *wrong = test->param_value;
	struct ping_options options;

	KUNIT_EXPECT_TRUE(test, parse(&options, wrong->line));
}

/* The name is printed. */
static void control_characters_are_refused(struct kunit *test)
{
	struct ping_options options;

	KUNIT_EXPECT_TRUE(test, parse(&options, "h\033[2J"));
	KUNIT_EXPECT_TRUE(test, parse(&options, "h\n"));
	KUNIT_EXPECT_TRUE(test, parse(&options, "h\177"));
	KUNIT_EXPECT_TRUE(test, parse(&options, "[h\302\233]:1"));
}

static void a_name_too_long_is_refused(struct kunit *test)
{
	char name[NI_MAXHOST + 1];
	struct ping_options options;

	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	KUNIT_EXPECT_TRUE(test, parse(&options, name));
	name[sizeof(name) - 2] = '\0';
	KUNIT_EXPECT_NULL(test, parse(&options, name));
}

static void help_needs_no_host(struct kunit *test)
{
	struct ping_options options;

	KUNIT_EXPECT_NULL(test, parse(&options, "--help"));
	KUNIT_EXPECT_TRUE(test, options.help);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(defaults),
	KUNIT_CASE(all_options),
	KUNIT_CASE(long_options),
	KUNIT_CASE(a_deadline),
	KUNIT_CASE_PARAM(a_host, hosts_gen_params),
	KUNIT_CASE(a_program),
	KUNIT_CASE_PARAM(is_refused, wrongs_gen_params),
	KUNIT_CASE(control_characters_are_refused),
	KUNIT_CASE(a_name_too_long_is_refused),
	KUNIT_CASE(help_needs_no_host),
	{}
};

static struct kunit_suite suite = {
	.name = "ping_options",
	.test_cases = cases,
};

kunit_test_suites(&suite);
