// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of server/: how many credits a connection is granted.
 */
#include <kunit/test.h>

#include "../server/grant.h"

#define FIRST	4

/* @count Calls arrive while @calls_held are held. Return: the credits wanted then. */
static unsigned int calls(struct svcrdma_grant *grant, unsigned int count,
			  unsigned int calls_held, unsigned long now)
{
	while (count--)
		svcrdma_grant_call(grant, calls_held, now);
	return grant->wanted;
}

static struct svcrdma_grant granted(unsigned int credits)
{
	struct svcrdma_grant grant;

	svcrdma_grant_init(&grant, credits);
	grant.since = 0;
	return grant;
}

/* The first Call has the only credit. With two, the requester can show that it needs more. */
static void test_grant_of_first_call(struct kunit *test)
{
	struct svcrdma_grant grant = granted(1);

	KUNIT_EXPECT_EQ(test, calls(&grant, 1, 1, 1), 2);
	svcrdma_grant_raise(&grant, 2);
	KUNIT_EXPECT_EQ(test, calls(&grant, 1000, 1, 1), 2);
	KUNIT_EXPECT_EQ(test, calls(&grant, 1, 2, 1), 4);
}

static void test_grant_rises_when_used(struct kunit *test)
{
	struct svcrdma_grant grant = granted(FIRST);

	KUNIT_EXPECT_EQ(test, calls(&grant, FIRST, 2, 1), FIRST);
	KUNIT_EXPECT_EQ(test, calls(&grant, 1, 2, 1), 2 * FIRST);
	/* Nothing is granted before there are Receives. */
	KUNIT_EXPECT_EQ(test, grant.granted, FIRST);
	svcrdma_grant_raise(&grant, 2 * FIRST);
	KUNIT_EXPECT_EQ(test, grant.granted, 2 * FIRST);
	KUNIT_EXPECT_EQ(test, calls(&grant, 2 * FIRST, 2, 1), 2 * FIRST);
	KUNIT_EXPECT_EQ(test, calls(&grant, 1, 2, 1), 4 * FIRST);
}

/* However long the RPC server takes for each Call */
static void test_grant_rises_when_used_up(struct kunit *test)
{
	struct svcrdma_grant grant = granted(FIRST);

	KUNIT_EXPECT_EQ(test, calls(&grant, 1, FIRST - 1, 1), FIRST);
	KUNIT_EXPECT_EQ(test, calls(&grant, 1, FIRST,
				    100 * SVCRDMA_GRANT_WINDOW), 2 * FIRST);
}

static void test_grant_stays_one_by_one(struct kunit *test)
{
	struct svcrdma_grant grant = granted(FIRST);

	KUNIT_EXPECT_EQ(test, calls(&grant, 1000, 1, 1), FIRST);
	/* Calls held at the same time long ago do not count. */
	KUNIT_EXPECT_EQ(test, calls(&grant, FIRST, 2, SVCRDMA_GRANT_WINDOW + 1),
			FIRST);
	KUNIT_EXPECT_EQ(test, calls(&grant, 1000, 1, SVCRDMA_GRANT_WINDOW + 2),
			FIRST);
}

static void test_grant_stays_if_slow(struct kunit *test)
{
	struct svcrdma_grant grant = granted(FIRST);
	unsigned int i;

	for (i = 1; i < 1000; i++)
		KUNIT_EXPECT_EQ(test, calls(&grant, 1, FIRST - 1,
					    i * SVCRDMA_GRANT_WINDOW), FIRST);
	/* Earlier Calls do not count. */
	KUNIT_EXPECT_EQ(test, calls(&grant, FIRST, 2,
				    i * SVCRDMA_GRANT_WINDOW), FIRST);
	/* Calls within the window do. */
	KUNIT_EXPECT_EQ(test, calls(&grant, FIRST, 2,
				    i * SVCRDMA_GRANT_WINDOW + 1), 2 * FIRST);
}

static void test_grant_without_memory(struct kunit *test)
{
	struct svcrdma_grant grant = granted(FIRST);

	calls(&grant, FIRST + 1, 2, 1);
	svcrdma_grant_raise(&grant, 0);
	KUNIT_EXPECT_EQ(test, grant.granted, FIRST);
	KUNIT_EXPECT_EQ(test, grant.wanted, FIRST);
	/* More is wanted again, but not at once. */
	KUNIT_EXPECT_EQ(test, calls(&grant, FIRST, 2, 1), FIRST);
	KUNIT_EXPECT_EQ(test, calls(&grant, 1, 2, 1), 2 * FIRST);
}

/* A thread that has made Receives is overtaken by one that has made more. */
static void test_grant_raised_late(struct kunit *test)
{
	struct svcrdma_grant grant = granted(FIRST);

	svcrdma_grant_raise(&grant, 64);
	svcrdma_grant_raise(&grant, 8);
	KUNIT_EXPECT_EQ(test, grant.granted, 64);
}

/* It rises as at first. */
static void test_grant_falls(struct kunit *test)
{
	struct svcrdma_grant grant = granted(64);

	calls(&grant, 60, 17, 1);
	svcrdma_grant_init(&grant, 2);
	KUNIT_EXPECT_EQ(test, grant.granted, 2);
	/* Earlier Calls do not count. */
	KUNIT_EXPECT_EQ(test, calls(&grant, 1000, 1, grant.since), 2);
	KUNIT_EXPECT_EQ(test, calls(&grant, 1, 2, grant.since), 4);
	svcrdma_grant_raise(&grant, 4);
	KUNIT_EXPECT_EQ(test, grant.granted, 4);
}

static struct kunit_case grant_cases[] = {
	KUNIT_CASE(test_grant_of_first_call),
	KUNIT_CASE(test_grant_rises_when_used),
	KUNIT_CASE(test_grant_rises_when_used_up),
	KUNIT_CASE(test_grant_stays_one_by_one),
	KUNIT_CASE(test_grant_stays_if_slow),
	KUNIT_CASE(test_grant_without_memory),
	KUNIT_CASE(test_grant_raised_late),
	KUNIT_CASE(test_grant_falls),
	{}
};

static struct kunit_suite grant_suite = {
	.name = "rpcrdma_grant",
	.test_cases = grant_cases,
};

kunit_test_suites(&grant_suite);
