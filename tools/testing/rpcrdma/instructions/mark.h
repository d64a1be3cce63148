/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Marks in a guest's code. A mark is the instruction nopl MARK(%rax,%rax),
 * which does nothing, with a displacement that no compiler uses. counted.c
 * executes marks; plugin.c recognizes their bytes.
 */
#ifndef RPCRDMA_MARK_H
#define RPCRDMA_MARK_H

#define MARK_OPCODE	0x00841f0f	/* the first four bytes, little-endian */
#define MARK_BEGIN	0x67656272
#define MARK_END	0x646e6572

#endif
