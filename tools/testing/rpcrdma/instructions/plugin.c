// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A plugin for QEMU's TCG. It counts the instructions that a guest's kernel
 * executes between two marks in user code, separately for each block of code.
 *
 *	qemu-system-x86_64 -smp 1 -plugin FILE,path=OUTPUT
 *
 * TCG translates code in blocks. Each translated block adds its number of
 * instructions to the counter of its place. It does so inline, without a call,
 * which is fast. The addition is not atomic, so the guest must have one CPU only.
 * If an exception ends a block early, the whole block counts.
 *
 * At the second mark the plugin writes a line "ADDRESS COUNT" for each place to
 * OUTPUT.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "mark.h"
#include "qemu.h"

/* More than the blocks of any kernel's code that run */
#define PLACES		1048576
#define INSN_MAX	15		/* bytes */

int qemu_plugin_version = PLUGIN_VERSION;

/*
 * The address of a place, or 0, and its counter have the same index. They never move,
 * because translated code has the addresses of counters.
 */
static u64 places[PLACES];
static struct counters counters;
static char *path;

static bool is_kernel(u64 address)
{
	return address >> 63;
}

static size_t index_of(u64 address)
{
	size_t at = address % PLACES;

	while (places[at] && places[at] != address)
		at = (at + 1) % PLACES;
	places[at] = address;
	return at;
}

static void begin(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	memset(counters_values(&counters), 0, PLACES * sizeof(u64));
}

static void end(unsigned int cpu, void *data)
{
	const u64 *counts = counters_values(&counters);
	FILE *file = fopen(path, "w");

	(void)cpu;
	(void)data;
	if (!file) {
		perror(path);
		return;
	}
	for (size_t at = 0; at < PLACES; at++)
		if (counts[at])
			fprintf(file, "%#llx %llu\n", places[at], counts[at]);
	fclose(file);
}

static void look_for_mark(struct qemu_plugin_insn *insn)
{
	u32 words[2];

	if (qemu_plugin_insn_size(insn) != sizeof(words))
		return;
	copy_insn(insn, words, sizeof(words));
	if (words[0] != MARK_OPCODE)
		return;
	if (words[1] == MARK_BEGIN)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, begin, QEMU_PLUGIN_CB_NO_REGS, NULL);
	if (words[1] == MARK_END)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, end, QEMU_PLUGIN_CB_NO_REGS, NULL);
}

static bool is_repeated_string(const struct qemu_plugin_insn *insn)
{
	u8 bytes[INSN_MAX] = { 0 };
	const u8 *byte = bytes;
	const u8 *last = bytes + qemu_plugin_insn_size(insn) - 1;
	bool repeated = false;

	copy_insn(insn, bytes, qemu_plugin_insn_size(insn));
	/* rep and repne, size of operands and addresses, REX */
	for (; byte < last; byte++) {
		if (*byte == 0xf2 || *byte == 0xf3)
			repeated = true;
		else if (*byte != 0x66 && *byte != 0x67 && *byte >> 4 != 4)
			break;
	}
	/* movs and cmps; stos, lods and scas */
	return repeated && ((*byte >= 0xa4 && *byte <= 0xa7) || (*byte >= 0xaa && *byte <= 0xaf));
}

/*
 * TCG executes the first round of a repeated string instruction in the block
 * that has it, and the other rounds in a block that begins with it. A processor
 * counts one instruction for all rounds, so the second block is not counted.
 */
static void count(struct qemu_plugin_tb *tb)
{
	size_t at = index_of(qemu_plugin_tb_vaddr(tb));

	if (!is_repeated_string(qemu_plugin_tb_get_insn(tb, 0)))
		counters_add(&counters, at, tb, qemu_plugin_tb_n_insns(tb));
}

static void translated(u64 id, struct qemu_plugin_tb *tb)
{
	(void)id;
	if (is_kernel(qemu_plugin_tb_vaddr(tb))) {
		count(tb);
		return;
	}
	for (size_t n = 0; n < qemu_plugin_tb_n_insns(tb); n++)
		look_for_mark(qemu_plugin_tb_get_insn(tb, n));
}

int qemu_plugin_install(u64 id, const void *info, int argc, char **argv)
{
	(void)info;
	if (argc != 1 || strncmp(argv[0], "path=", 5)) {
		fputs("the plugin that counts instructions needs path=OUTPUT\n", stderr);
		return -1;
	}
	path = strdup(argv[0] + 5);
	counters_alloc(&counters, PLACES);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
