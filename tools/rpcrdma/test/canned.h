/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef RPCRDMA_CANNED_H
#define RPCRDMA_CANNED_H

#include <stddef.h>
#include <stdint.h>

/* What the kernel will say, and how many octets that is */
extern const uint8_t *canned_data;
extern size_t canned_len;

#endif
