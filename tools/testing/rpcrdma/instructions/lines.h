/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The part of the plugin that counts cache lines: how many distinct ones of 64 octets
 * each RPC touches in the transport's code, see lines.c.
 */
#ifndef RPCRDMA_LINES_H
#define RPCRDMA_LINES_H

#include <stdbool.h>
#include <stdio.h>

#include "qemu.h"

void lines_find_code(const char *file);
void lines_translated(struct qemu_plugin_tb *tb);
void lines_begin(void);
void lines_print(FILE *file);

/* In plugin.c, which has its own use for it */
bool is_repeated_string(const struct qemu_plugin_insn *insn);

#endif
