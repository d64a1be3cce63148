// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Cache lines that an RPC touches in the transport: lines of data that the instructions in
 * its text load or store, and lines of its code that are executed. What functions of the
 * kernel touch that it calls, such as memcpy(), does not count. So repeated string
 * instructions do not count either: they are what the compiler makes of some memcpy() and
 * memset(), and all others are calls.
 *
 * An RPC lasts from one call_start() of sunrpc to the next. Each line counts once for an RPC,
 * however often it is touched. So the counts are of use where there is one RPC at a time.
 *
 * The guest leaves the addresses in a file when the transport is loaded, and marks that.
 * Only blocks that are translated later and lie there get callbacks, so the other code of
 * the guest runs as fast as without.
 */
#include <stdbool.h>
#include <stdio.h>

#include "lines.h"

#define PAGE_SIZE	4096
#define LINE_SHIFT	6
/* Many times the lines that an RPC touches */
#define LINES		65536

enum { READ = 1, WRITTEN = 2, EXECUTED = 4 };

/* A line, the last RPC that touched it, and how it did */
struct line {
	u64 number;
	u64 rpc;
	unsigned int how;
};

/* A hash table. Entries of earlier RPCs are as good as empty. */
static struct line lines[LINES];
static size_t used;		/* entries of this RPC */
static u64 rpc = 1;		/* the number of this RPC */

/* The transport's text, and where sunrpc's call_start() is, with which an RPC begins */
static u64 text, end, rpc_begins;

static struct {
	u64 rpcs, data, written, code;
} total;

static void forget(void)
{
	rpc++;
	used = 0;
}

static void began(unsigned int cpu, void *data)
{
	(void)cpu;
	(void)data;
	total.rpcs++;
	forget();
}

static struct line *find(u64 number)
{
	size_t at = (number ^ number / LINES) % LINES;

	while (lines[at].rpc == rpc && lines[at].number != number)
		at = (at + 1) % LINES;
	if (lines[at].rpc != rpc) {
		lines[at] = (struct line){ .number = number, .rpc = rpc };
		used++;
	}
	return &lines[at];
}

static void touch(u64 number, unsigned int how)
{
	struct line *line;
	unsigned int added;

	/* What is no RPC has no end. */
	if (used == LINES / 2)
		forget();
	line = find(number);
	added = how & ~line->how;
	total.data += (added & (READ | WRITTEN)) && !(line->how & (READ | WRITTEN));
	total.written += !!(added & WRITTEN);
	total.code += !!(added & EXECUTED);
	line->how |= how;
}

static void executed(unsigned int cpu, void *data)
{
	(void)cpu;
	touch((u64)data, EXECUTED);
}

static void accessed(unsigned int cpu, qemu_plugin_meminfo_t info, u64 address, void *data)
{
	u64 last = address + (1ULL << qemu_plugin_mem_size_shift(info)) - 1;
	unsigned int how = qemu_plugin_mem_is_store(info) ? WRITTEN : READ;

	(void)cpu;
	(void)data;
	for (u64 number = address >> LINE_SHIFT; number <= last >> LINE_SHIFT; number++)
		touch(number, how);
}

/* A jump, a call or a return */
static bool is_branch(const struct qemu_plugin_insn *insn)
{
	u8 bytes[4] = { 0 };
	size_t len = qemu_plugin_insn_size(insn);
	const u8 *byte = bytes;

	copy_insn(insn, bytes, len < sizeof(bytes) ? len : sizeof(bytes));
	/* a prefix of some calls, and REX */
	while (byte < bytes + 2 && (*byte == 0x2e || *byte >> 4 == 4))
		byte++;
	switch (*byte) {
	case 0x70 ... 0x7f:	/* with a condition, short */
	case 0xc3:		/* ret */
	case 0xe8:		/* call */
	case 0xe9:		/* jmp */
	case 0xeb:
		return true;
	case 0x0f:		/* with a condition, long */
		return byte[1] >> 4 == 8;
	case 0xff:		/* call and jmp by a register or by memory */
		return (byte[1] & 0x38) >= 0x10 && (byte[1] & 0x38) <= 0x28;
	}
	return false;
}

/* Whether the accesses of an instruction count. Branches have hardly any but to the stack. */
static bool counts(const struct qemu_plugin_insn *insn)
{
	return !is_repeated_string(insn) && !is_branch(insn);
}

/*
 * The first instruction in each line of code notes the line.
 *
 * What ends a block gets no callback for its accesses: branches, and the last instruction
 * before another page. QEMU 7.2 leaves it in place when the block is left, and then calls it
 * for what helpers access later in any code, such as a cmpxchg16b of the allocator.
 */
static void watch(struct qemu_plugin_tb *tb)
{
	u64 start = qemu_plugin_tb_vaddr(tb);
	u64 noted = 0;

	for (size_t n = 0; n < qemu_plugin_tb_n_insns(tb); n++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, n);
		u64 address = qemu_plugin_insn_vaddr(insn);
		u64 next = address + qemu_plugin_insn_size(insn);
		u64 last = (next - 1) >> LINE_SHIFT;

		for (u64 number = address >> LINE_SHIFT; number <= last; number++) {
			if (number == noted)
				continue;
			qemu_plugin_register_vcpu_insn_exec_cb(insn, executed,
							       QEMU_PLUGIN_CB_NO_REGS,
							       (void *)number);
			noted = number;
		}
		if (counts(insn) && next / PAGE_SIZE == start / PAGE_SIZE)
			qemu_plugin_register_vcpu_mem_cb(insn, accessed, QEMU_PLUGIN_CB_NO_REGS,
							 QEMU_PLUGIN_MEM_RW, NULL);
	}
}

/* A block of kernel code is being translated. */
void lines_translated(struct qemu_plugin_tb *tb)
{
	u64 address = qemu_plugin_tb_vaddr(tb);

	if (address == rpc_begins)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, began, QEMU_PLUGIN_CB_NO_REGS, NULL);
	if (address >= text && address < end)
		watch(tb);
}

/* Read the addresses that the guest has left. */
void lines_find_code(const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file || fscanf(file, "text=%llx last_symbol=%llx begins=%llx",
			    &text, &end, &rpc_begins) != 3)
		fprintf(stderr, "%s does not say where the transport's code is\n", path);
	/* The last function may extend into one more page, as in code_of() of bench.py. */
	end += PAGE_SIZE;
	if (file)
		fclose(file);
}

void lines_begin(void)
{
	memset(&total, 0, sizeof(total));
	forget();
}

void lines_print(FILE *file)
{
	fprintf(file, "begun=%llu data_lines=%llu written_lines=%llu code_lines=%llu\n",
		total.rpcs, total.data, total.written, total.code);
}
