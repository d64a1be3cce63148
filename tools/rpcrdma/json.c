// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "cmd.h"
#include "json.h"

static void out(json_t *value, size_t flags)
{
	if (!value)
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
	json_dumpf(value, stdout, flags | JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
	putchar('\n');
	json_decref(value);
}

void out_json(json_t *value)
{
	out(value, JSON_INDENT(2));
}

void out_json_line(json_t *value)
{
	out(value, JSON_COMPACT);
	fflush(stdout);
}

void json_add(json_t *object, const char *name, json_t *value)
{
	if (json_object_set_new(object, name, value))
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
}
