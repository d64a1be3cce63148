/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What messages of the family may have in them */
#ifndef RPCRDMA_RULES_H
#define RPCRDMA_RULES_H

#include "attrs.h"

extern const struct attr_rules device_rules;
extern const struct attr_rules listener_rules;
extern const struct attr_rules connection_rules;

#endif
