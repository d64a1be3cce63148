// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The round trips of rpcrdma ping. */

#include <kunit/test.h>

#include "ping.h"

/* The numbers from 1 to @count, added in another order; 7 divides no count. */
static void fill(struct kunit *test, struct ping_stats *stats,
		 unsigned int count)
{
	unsigned int i;

	KUNIT_ASSERT_EQ(test, ping_stats_init(stats, count), true);
	for (i = 0; i < count; i++)
		ping_stats_add(stats, (uint64_t)i * 7 % count + 1);
	ping_stats_sort(stats);
}

static void one_is_all(struct kunit *test)
{
	struct ping_stats stats;

	fill(test, &stats, 1);
	KUNIT_EXPECT_EQ(test, ping_stats_rank(&stats, 0), 1);
	KUNIT_EXPECT_EQ(test, ping_stats_rank(&stats, 50), 1);
	KUNIT_EXPECT_EQ(test, ping_stats_rank(&stats, 99), 1);
	ping_stats_free(&stats);
}

static void ranks_are_nearest(struct kunit *test)
{
	static const struct {
		unsigned int count, median, p99;
	} cases[] = {
		{ 2, 1, 2 }, { 3, 2, 3 }, { 5, 3, 5 }, { 10, 5, 10 },
		{ 100, 50, 99 }, { 101, 51, 100 }, { 1000, 500, 990 },
	};
	struct ping_stats stats;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fill(test, &stats, cases[i].count);
		KUNIT_EXPECT_EQ(test, ping_stats_rank(&stats, 0), 1);
		KUNIT_EXPECT_EQ(test, ping_stats_rank(&stats, 50),
				cases[i].median);
		KUNIT_EXPECT_EQ(test, ping_stats_rank(&stats, 99),
				cases[i].p99);
		KUNIT_EXPECT_EQ(test, ping_stats_rank(&stats, 100),
				cases[i].count);
		ping_stats_free(&stats);
	}
}

static void long_times_are_sorted(struct kunit *test)
{
	struct ping_stats stats;

	KUNIT_ASSERT_EQ(test, ping_stats_init(&stats, 3), true);
	ping_stats_add(&stats, UINT64_MAX);
	ping_stats_add(&stats, 1);
	ping_stats_add(&stats, 1ull << 33);
	ping_stats_sort(&stats);
	KUNIT_EXPECT_EQ(test, ping_stats_rank(&stats, 0), 1);
	KUNIT_EXPECT_EQ(test, ping_stats_rank(&stats, 50) >> 33, 1);
	ping_stats_free(&stats);
}

static void more_than_room_is_left_out(struct kunit *test)
{
	struct ping_stats stats;

	KUNIT_ASSERT_EQ(test, ping_stats_init(&stats, 2), true);
	ping_stats_add(&stats, 1);
	ping_stats_add(&stats, 2);
	ping_stats_add(&stats, 3);
	KUNIT_EXPECT_EQ(test, stats.count, 2);
	ping_stats_free(&stats);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(one_is_all),
	KUNIT_CASE(ranks_are_nearest),
	KUNIT_CASE(long_times_are_sorted),
	KUNIT_CASE(more_than_room_is_left_out),
	{}
};

static struct kunit_suite suite = {
	.name = "ping_stats",
	.test_cases = cases,
};

kunit_test_suites(&suite);
