// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Run all suites that are linked in. Print KTAP with suites as nested tests,
 * then a line with the numbers of results. Exit with status 1 if a test failed.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <kunit/test.h>

/* Exact size and not zeroed, so that sanitizers see misuse */
void *kunit_kmalloc(struct kunit *test, size_t size, int gfp)
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

void *kunit_kzalloc(struct kunit *test, size_t size, int gfp)
{
	return memset(kunit_kmalloc(test, size, gfp), 0, size);
}

void kunit_kfree(struct kunit *test, const void *data)
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

void kunit_fail(struct kunit *test, bool fatal, const char *file, int line,
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

static unsigned int kunit_passed, kunit_failed;

static struct kunit_suite *kunit_suites, **kunit_last = &kunit_suites;

void kunit_register(struct kunit_suite *const *suites)
{
	for (; *suites; suites++) {
		*kunit_last = *suites;
		kunit_last = &(*suites)->next;
	}
}

/* Run a test case once. Returns false if it failed. */
static bool kunit_run(struct kunit_suite *suite, struct kunit_case *test_case,
		      const void *param, const char *indent,
		      unsigned int number, const char *name)
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

	printf("%s%s %u %s\n", indent, test.failed ? "not ok" : "ok", number, name);
	*(test.failed ? &kunit_failed : &kunit_passed) += 1;
	return !test.failed;
}

static bool kunit_run_params(struct kunit_suite *suite,
			     struct kunit_case *test_case, unsigned int number)
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

static bool kunit_run_suite(struct kunit_suite *suite)
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

int main(void)
{
	struct kunit_suite *suite;
	unsigned int count = 0;

	for (suite = kunit_suites; suite; suite = suite->next)
		count++;
	printf("KTAP version 1\n1..%u\n", count);

	count = 0;
	for (suite = kunit_suites; suite; suite = suite->next) {
		bool ok = kunit_run_suite(suite);

		printf("%s %u %s\n", ok ? "ok" : "not ok", ++count,
		       suite->name);
	}
	printf("%u passed, %u failed\n", kunit_passed, kunit_failed);
	return kunit_failed ? 1 : 0;
}
