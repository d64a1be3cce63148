// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "objects.h"

/* How often to ask again if objects come and go during a dump */
#define TRIES	10

struct dump {
	const struct attr_rules *rules;
	uint8_t cmd;
	struct objects objects;
};

/* The message dies with the next one, so its attributes are copied. */
static int add(uint8_t cmd, const void *payload, size_t len, void *data)
{
	struct dump *dump = data;
	struct objects *objects = &dump->objects;
	struct attrs *more;
	void *copy;

	if (cmd != dump->cmd)
		return -EPROTO;
	more = realloc(objects->of, (objects->count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	objects->of = more;
	copy = malloc(len ?: 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, payload, len);
	if (attrs_parse(&more[objects->count], dump->rules, copy, len)) {
		free(copy);
		return -EPROTO;
	}
	objects->count++;
	return 0;
}

struct objects objects_get(struct nl *nl, uint8_t cmd, const struct attr_rules *rules)
{
	struct dump dump = { .rules = rules, .cmd = cmd };
	unsigned int tries = TRIES;
	int ret;

	for (;;) {
		ret = nl_dump(nl, cmd, add, &dump);
		if (ret != -EINTR || !--tries)
			break;
		objects_free(&dump.objects);
	}
	/* Of a host where something always changes, take what there is. */
	if (!ret || ret == -EINTR)
		return dump.objects;
	objects_free(&dump.objects);
	if (ret == -EPROTO)
		die(STATUS_FAILED,
		    "the kernel's answer makes no sense: install the rpcrdma tools of the same version as the module");
	die(STATUS_FAILED, "cannot ask the kernel: %s", strerror(-ret));
}

void objects_free(struct objects *objects)
{
	unsigned int i;

	for (i = 0; i < objects->count; i++)
		free((void *)objects->of[i].payload);
	free(objects->of);
	*objects = (struct objects) { };
}
