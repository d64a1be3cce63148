/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The part of QEMU's interface for TCG plugins that plugin.c uses, in version
 * 1, which QEMU 7.2 has. Debian 12 has that QEMU, but not its header.
 */
#ifndef RPCRDMA_QEMU_H
#define RPCRDMA_QEMU_H

#include <linux/types.h>
#include <stddef.h>

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;

/* A block of the guest's code that is being translated, and an instruction in it */
struct qemu_plugin_tb;
struct qemu_plugin_insn;

/* Operations that translated code does inline, without a call */
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };

/* How a callback uses the registers */
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

/* Every plugin defines these two. The arguments are those of -plugin after the file. */
extern int qemu_plugin_version;
int qemu_plugin_install(u64 id, const void *info, int argc, char **argv);

void qemu_plugin_register_vcpu_tb_trans_cb(u64 id,
					   void (*translated)(u64 id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, enum qemu_plugin_op op,
					      void *counter, u64 addend);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*executed)(unsigned int cpu, void *data),
					    enum qemu_plugin_cb_flags flags, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
u64 qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);

#endif
