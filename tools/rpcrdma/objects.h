/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* All objects of a kind at one moment: what a dump of the family returns. */
#ifndef RPCRDMA_OBJECTS_H
#define RPCRDMA_OBJECTS_H

#include "attrs.h"
#include "nl.h"

/**
 * struct objects - the result of a dump
 * @count: number of objects
 * @of: their attributes, checked, in the order of the dump
 *
 * Whoever called objects_get() frees it by objects_free().
 */
struct objects {
	unsigned int count;
	struct attrs *of;
};

/**
 * objects_get - ask the kernel; the program ends if the answer is wrong
 * @cmd: RPCRDMA_CMD_..._GET
 * @rules: of the objects' attributes
 */
struct objects objects_get(struct nl *nl, uint8_t cmd, const struct attr_rules *rules);

void objects_free(struct objects *objects);

#endif
