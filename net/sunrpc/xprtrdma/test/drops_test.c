// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of server/: Calls that the RPC server drops.
 */
#include <kunit/test.h>

#include "../server/drops.h"

#define START	1000000UL

static struct svcrdma_drops begin(void)
{
	struct svcrdma_drops drops;

	svcrdma_drops_init(&drops);
	drops.looked = START - SVCRDMA_DROPS_MAX;
	return drops;
}

/* A Call that is dropped again and again gets more and more time. */
static void test_drops_back_off(struct kunit *test)
{
	static const unsigned int seconds[] = { 1, 2, 4, 8, 8, 8 };
	struct svcrdma_drops drops = begin();
	unsigned long now = START, delay;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(seconds); i++) {
		delay = svcrdma_drops_add(&drops, true, true, now);
		KUNIT_EXPECT_EQ(test, delay, seconds[i] * HZ);
		now += delay;
		KUNIT_EXPECT_FALSE(test, svcrdma_drops_look(&drops, true, now));
		now += HZ / 2;
	}
	/* A Call that is dropped much later starts from the beginning. */
	now += SVCRDMA_DROPS_MAX;
	KUNIT_EXPECT_EQ(test, svcrdma_drops_add(&drops, true, true, now), HZ);
}

/* All dropped Calls wait for the same look. */
static void test_drops_wait_together(struct kunit *test)
{
	struct svcrdma_drops drops = begin();

	KUNIT_EXPECT_EQ(test, svcrdma_drops_add(&drops, true, true, START), HZ);
	svcrdma_drops_look(&drops, true, START + HZ);
	svcrdma_drops_add(&drops, true, true, START + HZ);
	KUNIT_EXPECT_EQ(test, svcrdma_drops_add(&drops, false, true,
						START + 10 * HZ), 2 * HZ);
}

/* Look every eight seconds. Return: after how many seconds the connection is closed. */
static unsigned int seconds_left(struct svcrdma_drops *drops, bool replied)
{
	unsigned int seconds;

	for (seconds = 0; seconds < 600; seconds += 8)
		if (svcrdma_drops_look(drops, replied, START + seconds * HZ))
			break;
	return seconds;
}

static void test_drops_keep_the_connection(struct kunit *test)
{
	struct svcrdma_drops drops = begin();

	svcrdma_drops_add(&drops, true, true, START);
	KUNIT_EXPECT_GE(test, seconds_left(&drops, true), 600);
}

/* Without Replies the connection ends: the next one may begin with another Call. */
static void test_drops_without_replies(struct kunit *test)
{
	struct svcrdma_drops drops = begin();

	svcrdma_drops_add(&drops, true, true, START);
	KUNIT_EXPECT_EQ(test, seconds_left(&drops, false), 64);
}

/* Replies to other Calls do not keep the connection: the lost Call has to be repeated. */
static void test_drops_lose_a_call(struct kunit *test)
{
	struct svcrdma_drops drops = begin();

	svcrdma_drops_add(&drops, true, false, START);
	KUNIT_EXPECT_TRUE(test, drops.lost);
	svcrdma_drops_add(&drops, true, false, START + 10 * HZ);
	KUNIT_EXPECT_EQ(test, seconds_left(&drops, true), 64);
}

static struct kunit_case drops_cases[] = {
	KUNIT_CASE(test_drops_back_off),
	KUNIT_CASE(test_drops_wait_together),
	KUNIT_CASE(test_drops_keep_the_connection),
	KUNIT_CASE(test_drops_without_replies),
	KUNIT_CASE(test_drops_lose_a_call),
	{}
};

static struct kunit_suite drops_suite = {
	.name = "rpcrdma_drops",
	.test_cases = drops_cases,
};

kunit_test_suites(&drops_suite);
