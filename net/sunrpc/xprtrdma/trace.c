// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The functions that the macros of trace.h define.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
