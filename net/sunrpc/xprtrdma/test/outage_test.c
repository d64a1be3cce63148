// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of client/: when the network counts as gone.
 */
#include <kunit/test.h>

#include "../client/outage.h"

/* The clock may have any value when the first attempt fails, even zero. */
#define BOOT	0

static void test_outage_device_comes_back(struct kunit *test)
{
	struct xprt_rdma_outage outage = {};

	KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT + 30));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT + 59));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, 0, BOOT + 61));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT + 62));
}

static void test_outage_lasts(struct kunit *test)
{
	struct xprt_rdma_outage outage = {};

	KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT + 59));
	KUNIT_EXPECT_TRUE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT + 60));
	KUNIT_EXPECT_TRUE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT + 90));
}

/* Without a device there may be no route and no address either. */
static void test_outage_any_missing(struct kunit *test)
{
	struct xprt_rdma_outage outage = {};

	KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, -ENETUNREACH, BOOT + 20));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, -EADDRNOTAVAIL, BOOT + 40));
	KUNIT_EXPECT_TRUE(test, xprt_rdma_outage_note(&outage, -ENETDOWN, BOOT + 60));
}

/* An attempt that got as far as the server, or did not come to ask for a device */
static void test_outage_other_failure(struct kunit *test)
{
	static const int other[] = { -ECONNREFUSED, -ETIMEDOUT, -EHOSTUNREACH, -ENOBUFS };
	int i;

	for (i = 0; i < ARRAY_SIZE(other); i++) {
		struct xprt_rdma_outage outage = {};

		KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT));
		KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, other[i], BOOT + 30));
		KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT + 60));
		KUNIT_EXPECT_TRUE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT + 120));
	}
}

/* Nobody has tried for an hour, so nobody knows whether there was a device. */
static void test_outage_no_attempts(struct kunit *test)
{
	struct xprt_rdma_outage outage = {};

	KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT + 3600));
	KUNIT_EXPECT_FALSE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT + 3630));
	KUNIT_EXPECT_TRUE(test, xprt_rdma_outage_note(&outage, -ENODEV, BOOT + 3660));
}

static struct kunit_case outage_cases[] = {
	KUNIT_CASE(test_outage_device_comes_back),
	KUNIT_CASE(test_outage_lasts),
	KUNIT_CASE(test_outage_any_missing),
	KUNIT_CASE(test_outage_other_failure),
	KUNIT_CASE(test_outage_no_attempts),
	{}
};

static struct kunit_suite outage_suite = {
	.name = "rpcrdma_outage",
	.test_cases = outage_cases,
};

kunit_test_suites(&outage_suite);
