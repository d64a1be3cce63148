/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * As much of the kernel's KUnit API as the suites of wire/ use, for building
 * the very same file as a program. The program writes KTAP, suites as nested
 * tests, then one line that counts the results, and exits with status 1 if
 * anything failed. Included once, by the one file that has the suites.
 */
#ifndef RPCRDMA_KUNIT_TEST_H
#define RPCRDMA_KUNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#define GFP_KERNEL		0
#define __printf(fmt, args)	__attribute__((__format__(printf, fmt, args)))
#define KUNIT_PARAM_DESC_SIZE	128

/* The sizes in KUnit's use of it are those of whole arrays. */
#define strscpy(dst, src, size)	snprintf(dst, size, "%s", src)

/* What a test has allocated, freed when it ends. */
struct kunit_memory {
	struct kunit_memory *next;
	void *data;
};

struct kunit {
	void *priv;
	const void *param_value;
	bool failed;
	const char *skipped;	/* why, or NULL */
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
};

#define KUNIT_CASE(test)	{ .run_case = test, .name = #test }
#define KUNIT_CASE_PARAM(test, gen) \
	{ .run_case = test, .name = #test, .generate_params = gen }

#define KUNIT_ARRAY_PARAM(name, array, get_desc)			\
	static const void *name##_gen_params(const void *prev, char *desc) \
	{								\
		typeof(&(array)[0]) p = prev;				\
									\
		p = p ? p + 1 : (array);				\
		if (p == (array) + ARRAY_SIZE(array))			\
			return NULL;					\
		get_desc(p, desc);					\
		return p;						\
	}

/* Sizes are exact and memory is not zeroed, so that sanitizers see misuse. */
static inline void *kunit_kmalloc(struct kunit *test, size_t size, int gfp)
{
	struct kunit_memory *memory = malloc(sizeof(*memory));

	(void)gfp;
	if (!memory)
		abort();
	memory->data = malloc(size);
	if (!memory->data)
		abort();
	memory->next = test->memory;
	test->memory = memory;
	return memory->data;
}

static inline void *kunit_kzalloc(struct kunit *test, size_t size, int gfp)
{
	return memset(kunit_kmalloc(test, size, gfp), 0, size);
}

static inline void kunit_kfree(struct kunit *test, const void *data)
{
	struct kunit_memory **p = &test->memory;

	while (*p && (*p)->data != data)
		p = &(*p)->next;
	if (*p) {
		struct kunit_memory *memory = *p;

		*p = memory->next;
		free(memory->data);
		free(memory);
	}
}

static inline void __printf(5, 6)
kunit_fail(struct kunit *test, bool fatal, const char *file, int line,
	   const char *fmt, ...)
{
	va_list args;

	test->failed = true;
	printf("    # %s:%d: ", file, line);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	if (fatal)
		longjmp(test->abort, 1);
}

static inline void kunit_skip(struct kunit *test, const char *reason)
{
	test->skipped = reason;
	longjmp(test->abort, 1);
}

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

enum { KUNIT_PASSED, KUNIT_FAILED, KUNIT_SKIPPED, KUNIT_RESULTS };

static unsigned int kunit_results[KUNIT_RESULTS];

/* One run of a test case; false if it failed. */
static inline bool kunit_run(struct kunit_suite *suite,
			     struct kunit_case *test_case, const void *param,
			     const char *indent, unsigned int number,
			     const char *name)
{
	struct kunit test = { .param_value = param };

	if (!setjmp(test.abort)) {
		if (suite->init && suite->init(&test))
			kunit_fail(&test, true, __FILE__, __LINE__,
				   "init of the suite failed");
		test_case->run_case(&test);
	}
	if (suite->exit)
		suite->exit(&test);
	while (test.memory)
		kunit_kfree(&test, test.memory->data);

	printf("%s%s %u %s%s%s\n", indent, test.failed ? "not ok" : "ok",
	       number, name, test.skipped ? " # SKIP " : "",
	       test.skipped ? test.skipped : "");
	kunit_results[test.failed ? KUNIT_FAILED :
		      test.skipped ? KUNIT_SKIPPED : KUNIT_PASSED]++;
	return !test.failed;
}

static inline bool kunit_run_params(struct kunit_suite *suite,
				    struct kunit_case *test_case,
				    unsigned int number)
{
	char desc[KUNIT_PARAM_DESC_SIZE];
	const void *param = NULL;
	unsigned int count = 0;
	bool ok = true;

	printf("        KTAP version 1\n        # Subtest: %s\n",
	       test_case->name);
	while ((param = test_case->generate_params(param, desc)))
		if (!kunit_run(suite, test_case, param, "        ", ++count,
			       desc))
			ok = false;
	printf("        1..%u\n", count);
	printf("    %s %u %s\n", ok ? "ok" : "not ok", number, test_case->name);
	return ok;
}

static inline bool kunit_run_suite(struct kunit_suite *suite)
{
	struct kunit_case *test_case;
	unsigned int count = 0;
	bool ok = true;

	for (test_case = suite->test_cases; test_case->run_case; test_case++)
		count++;
	printf("    KTAP version 1\n    # Subtest: %s\n    1..%u\n",
	       suite->name, count);

	count = 0;
	for (test_case = suite->test_cases; test_case->run_case; test_case++) {
		count++;
		if (test_case->generate_params)
			ok &= kunit_run_params(suite, test_case, count);
		else
			ok &= kunit_run(suite, test_case, NULL, "    ", count,
					test_case->name);
	}
	return ok;
}

extern struct kunit_suite *kunit_suites[];

#define kunit_test_suites(...) \
	struct kunit_suite *kunit_suites[] = { __VA_ARGS__, NULL }

int main(void)
{
	unsigned int i, count = 0;

	while (kunit_suites[count])
		count++;
	printf("KTAP version 1\n1..%u\n", count);
	for (i = 0; i < count; i++) {
		bool ok = kunit_run_suite(kunit_suites[i]);

		printf("%s %u %s\n", ok ? "ok" : "not ok", i + 1,
		       kunit_suites[i]->name);
	}
	printf("%u passed, %u failed, %u skipped\n",
	       kunit_results[KUNIT_PASSED], kunit_results[KUNIT_FAILED],
	       kunit_results[KUNIT_SKIPPED]);
	return kunit_results[KUNIT_FAILED] ? 1 : 0;
}

#endif /* RPCRDMA_KUNIT_TEST_H */
