/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef RPCRDMA_OVERLAY_KUNIT_TEST_H
#define RPCRDMA_OVERLAY_KUNIT_TEST_H

#include_next <kunit/test.h>

/* Without this macro a function, and not a member, describes a parameter. */
#ifndef KUNIT_ARRAY_PARAM_DESC
#define KUNIT_ARRAY_PARAM_DESC(name, array, member)			\
static void name##_desc(typeof((array)[0]) *param, char *desc)		\
{									\
	strscpy(desc, param->member, KUNIT_PARAM_DESC_SIZE);		\
}									\
KUNIT_ARRAY_PARAM(name, array, name##_desc)
#endif

#endif /* RPCRDMA_OVERLAY_KUNIT_TEST_H */
