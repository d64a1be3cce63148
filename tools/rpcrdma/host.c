// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "host.h"

static bool is_port(const char *text)
{
	size_t len = strlen(text);

	return len && len < sizeof(((struct host *)0)->port) &&
	       strspn(text, "0123456789") == len && atoi(text) > 0 && atoi(text) < 65536;
}

/* It is printed, and may come from a script. */
static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text > '~')
			return false;
	return true;
}

bool host_parse(struct host *host, const char *text)
{
	bool brackets = *text == '[';
	const char *name = text + brackets, *colon = strchr(name, ':'), *rest;
	size_t len = strlen(name);

	if (brackets)
		len = strcspn(name, "]");
	else if (colon && !strchr(colon + 1, ':'))
		len = colon - name;
	rest = name + len;
	if (brackets && *rest++ != ']')
		return false;
	if (!len || len >= sizeof(host->name) || *name == '-' || !is_plain(text) ||
	    (*rest && (*rest != ':' || !is_port(rest + 1))))
		return false;
	snprintf(host->name, sizeof(host->name), "%.*s", (int)len, name);
	snprintf(host->port, sizeof(host->port), "%s", *rest ? rest + 1 : HOST_PORT);
	return true;
}
