// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The program frees nothing when a lie ends it. The fuzzer goes on after that,
 * so it remembers what was allocated: the linker has the program call these
 * functions instead of libc's.
 */

#include <stdlib.h>
#include <string.h>
#include "heap.h"

#define BLOCKS	65536

static void *blocks[BLOCKS];
static unsigned int count;

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void __real_free(void *block);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

static void *keep(void *block)
{
	if (count == BLOCKS)
		abort();
	blocks[count++] = block;
	return block;
}

/* What was allocated last is freed first, mostly. */
static void forget(const void *block)
{
	unsigned int i = count;

	while (i--)
		if (blocks[i] == block) {
			blocks[i] = blocks[--count];
			return;
		}
}

void *__wrap_malloc(size_t size)
{
	return keep(__real_malloc(size));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return keep(__real_calloc(n, size));
}

void *__wrap_realloc(void *old, size_t size)
{
	forget(old);
	return keep(__real_realloc(old, size));
}

char *__wrap_strdup(const char *text)
{
	size_t size = strlen(text) + 1;

	return memcpy(__wrap_malloc(size), text, size);
}

void __wrap_free(void *block)
{
	forget(block);
	__real_free(block);
}

void heap_free(void)
{
	while (count)
		__real_free(blocks[--count]);
}
