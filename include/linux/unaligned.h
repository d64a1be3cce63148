/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Before 6.12 this header was asm/unaligned.h.
 */
#ifndef RPCRDMA_OVERLAY_LINUX_UNALIGNED_H
#define RPCRDMA_OVERLAY_LINUX_UNALIGNED_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#include <asm/unaligned.h>
#else
#include_next <linux/unaligned.h>
#endif

#endif /* RPCRDMA_OVERLAY_LINUX_UNALIGNED_H */
