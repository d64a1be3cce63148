/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef RPCRDMA_HEAP_H
#define RPCRDMA_HEAP_H

/**
 * heap_free - free all that the program has allocated and not freed
 */
void heap_free(void);

#endif
