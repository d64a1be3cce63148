// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Counts of objects, see objects.h.
 */

#include <linux/atomic.h>
#include <linux/bug.h>

#include "../objects.h"

static atomic_t num_objects[RPCRDMA_OBJECTS];
static atomic_t num_ever[RPCRDMA_OBJECTS];

void rpcrdma_object_made(enum rpcrdma_object kind)
{
	atomic_inc(&num_objects[kind]);
	atomic_inc(&num_ever[kind]);
}

void rpcrdma_object_freed(enum rpcrdma_object kind)
{
	atomic_dec(&num_objects[kind]);
}

unsigned int rpcrdma_objects_ever(enum rpcrdma_object kind)
{
	return atomic_read(&num_ever[kind]);
}

void rpcrdma_objects_exit(void)
{
	int kind, num;

	for (kind = 0; kind < RPCRDMA_OBJECTS; kind++) {
		num = atomic_read(&num_objects[kind]);
		WARN(num, "rpcrdma: %d objects of kind %d are left\n", num, kind);
	}
}
