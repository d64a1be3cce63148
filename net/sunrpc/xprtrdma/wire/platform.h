/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What this layer uses of the kernel or, in user space, of libc: fixed-width
 * types, byte order, memory functions and error codes.
 */
#ifndef RPCRDMA_WIRE_PLATFORM_H
#define RPCRDMA_WIRE_PLATFORM_H

#ifdef __KERNEL__

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/byteorder.h>

#else

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;

#define U32_MAX			((u32)~0U)
#define U64_MAX			((u64)~0ULL)

#ifdef __CHECKER__
#define __force			__attribute__((force))
#else
#define __force
#endif

#define cpu_to_be32(x)		((__force __be32)htobe32(x))
#define be32_to_cpu(x)		be32toh((__force u32)(x))
#define be32_to_cpup(p)		be32_to_cpu(*(p))

#endif /* __KERNEL__ */

#endif /* RPCRDMA_WIRE_PLATFORM_H */
