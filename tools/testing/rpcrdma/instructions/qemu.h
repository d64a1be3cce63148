/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The part of QEMU's interface for TCG plugins that plugin.c uses: version 1 of
 * QEMU 7.2, which Debian 12 has, and version 4 of QEMU 10, which Debian 13 has.
 * Debian has no package of its header.
 */
#ifndef RPCRDMA_QEMU_H
#define RPCRDMA_QEMU_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;

/* A block of the guest's code that is being translated, and an instruction in it */
struct qemu_plugin_tb;
struct qemu_plugin_insn;

/* Operations that translated code does inline, without a call */
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 = 0 };

/* How a callback uses the registers */
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS = 0 };

/* Every plugin defines these two. The arguments are those of -plugin after the file. */
extern int qemu_plugin_version;
int qemu_plugin_install(u64 id, const void *info, int argc, char **argv);

void qemu_plugin_register_vcpu_tb_trans_cb(u64 id,
					   void (*translated)(u64 id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*executed)(unsigned int cpu, void *data),
					    enum qemu_plugin_cb_flags flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
u64 qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

/*
 * What differs between the two versions:
 *
 * struct counters	counters of a guest with one CPU, to which translated code adds.
 *			counters_alloc() makes them and counters_add() has a block add to
 *			one; counters_values() is for callbacks while the guest runs.
 * copy_insn()		copies the first bytes of an instruction.
 */
#if QEMU_MAJOR < 10

#define PLUGIN_VERSION	1

const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, enum qemu_plugin_op op,
					      void *counter, u64 addend);

struct counters {
	u64 *values;
};

static inline void counters_alloc(struct counters *counters, size_t num)
{
	counters->values = calloc(num, sizeof(*counters->values));
}

static inline u64 *counters_values(struct counters *counters)
{
	return counters->values;
}

static inline void counters_add(struct counters *counters, size_t at,
				struct qemu_plugin_tb *tb, u64 addend)
{
	qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64,
						 &counters->values[at], addend);
}

static inline void copy_insn(const struct qemu_plugin_insn *insn, void *to, size_t len)
{
	memcpy(to, qemu_plugin_insn_data(insn), len);
}

#else

#define PLUGIN_VERSION	4

/* An array with an element for each CPU, and a place in all elements */
struct qemu_plugin_scoreboard;
struct qemu_plugin_u64 {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
};

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int cpu);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb,
						       enum qemu_plugin_op op,
						       struct qemu_plugin_u64 counter,
						       u64 addend);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t len);

struct counters {
	struct qemu_plugin_scoreboard *score;
};

static inline void counters_alloc(struct counters *counters, size_t num)
{
	counters->score = qemu_plugin_scoreboard_new(num * sizeof(u64));
}

static inline u64 *counters_values(struct counters *counters)
{
	return qemu_plugin_scoreboard_find(counters->score, 0);
}

static inline void counters_add(struct counters *counters, size_t at,
				struct qemu_plugin_tb *tb, u64 addend)
{
	struct qemu_plugin_u64 counter = { counters->score, at * sizeof(u64) };

	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64,
							  counter, addend);
}

static inline void copy_insn(const struct qemu_plugin_insn *insn, void *to, size_t len)
{
	qemu_plugin_insn_data(insn, to, len);
}

#endif

#endif
