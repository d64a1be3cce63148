/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The part of the kernel's KUnit API that the suites of wire/ use. With it the
 * same files are built as a program. test.c runs them.
 */
#ifndef RPCRDMA_KUNIT_TEST_H
#define RPCRDMA_KUNIT_TEST_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define GFP_KERNEL		0
#define __printf(fmt, args)	__attribute__((__format__(printf, fmt, args)))
#define KUNIT_PARAM_DESC_SIZE	128

/* As KUnit uses it: @dst is an array of @size octets. */
#define strscpy(dst, src, size)	snprintf(dst, size, "%s", src)

/* Memory of a test. It is freed when the test ends, if the test did not free it. */
struct kunit_memory {
	struct kunit_memory *next;
	void *data;
};

struct kunit {
	void *priv;
	const void *param_value;
	bool failed;
	jmp_buf abort;
	struct kunit_memory *memory;
};

struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
	const void *(*generate_params)(const void *prev, char *desc);
};

struct kunit_suite {
	const char name[256];
	int (*init)(struct kunit *test);
	void (*exit)(struct kunit *test);
	struct kunit_case *test_cases;
	struct kunit_suite *next;	/* in the order of registration */
};

#define KUNIT_CASE(test)	{ .run_case = test, .name = #test }
#define KUNIT_CASE_PARAM(test, gen) \
	{ .run_case = test, .name = #test, .generate_params = gen }

#define KUNIT_ARRAY_PARAM_DESC(prefix, array, member)			\
	static const void *prefix##_gen_params(const void *prev, char *desc) \
	{								\
		typeof(&(array)[0]) p = prev;				\
									\
		p = p ? p + 1 : (array);				\
		if (p == (array) + ARRAY_SIZE(array))			\
			return NULL;					\
		strscpy(desc, p->member, KUNIT_PARAM_DESC_SIZE);	\
		return p;						\
	}

void *kunit_kmalloc(struct kunit *test, size_t size, int gfp);
void *kunit_kzalloc(struct kunit *test, size_t size, int gfp);
void kunit_kfree(struct kunit *test, const void *data);

void __printf(5, 6) kunit_fail(struct kunit *test, bool fatal, const char *file,
			       int line, const char *fmt, ...);

#define kunit_compare(test, fatal, left, op, right, fmt, ...)		\
	do {								\
		intmax_t left_ = (intmax_t)(left);			\
		intmax_t right_ = (intmax_t)(right);			\
									\
		if (!(left_ op right_))					\
			kunit_fail(test, fatal, __FILE__, __LINE__,	\
				   "expected %s " #op			\
				   " %s, have %jd and %jd " fmt, #left,	\
				   #right, left_, right_, ##__VA_ARGS__); \
	} while (0)

#define KUNIT_EXPECT_EQ(test, left, right)				\
	kunit_compare(test, false, left, ==, right, "")
#define KUNIT_EXPECT_NE(test, left, right)				\
	kunit_compare(test, false, left, !=, right, "")
#define KUNIT_EXPECT_NE_MSG(test, left, right, fmt, ...)		\
	kunit_compare(test, false, left, !=, right, fmt, ##__VA_ARGS__)
#define KUNIT_ASSERT_EQ(test, left, right)				\
	kunit_compare(test, true, left, ==, right, "")
#define KUNIT_EXPECT_TRUE(test, x)					\
	kunit_compare(test, false, !!(x), ==, true, "")
#define KUNIT_EXPECT_FALSE(test, x)					\
	kunit_compare(test, false, !!(x), ==, false, "")
#define KUNIT_EXPECT_TRUE_MSG(test, x, fmt, ...)			\
	kunit_compare(test, false, !!(x), ==, true, fmt, ##__VA_ARGS__)
#define KUNIT_EXPECT_NULL(test, p)					\
	kunit_compare(test, false, (uintptr_t)(p), ==, 0, "")
#define KUNIT_ASSERT_NOT_NULL(test, p)					\
	kunit_compare(test, true, (uintptr_t)(p), !=, 0, "")

void kunit_register(struct kunit_suite *const *suites);

/* Used once in a file. The suites are registered before main(), in link order. */
#define kunit_test_suites(...)						\
	static void __attribute__((__constructor__)) kunit_register_all(void) \
	{								\
		struct kunit_suite *suites[] = { __VA_ARGS__, NULL };	\
									\
		kunit_register(suites);					\
	}

#endif /* RPCRDMA_KUNIT_TEST_H */
