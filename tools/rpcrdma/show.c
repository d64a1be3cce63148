// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* rpcrdma show: what there is now */

#include <getopt.h>
#include <linux/rpcrdma.h>
#include <stdio.h>
#include <string.h>
#include "cmd.h"
#include "connection.h"
#include "json.h"
#include "objects.h"
#include "rules.h"
#include "show.h"

#define SYNOPSIS	"show [client|server|devices|listeners] [-d|--details] [-j|--json]"

enum kind {
	CLIENT,
	SERVER,
	LISTENERS,
	DEVICES,
	KINDS,
	ALL = KINDS,
};

static const char * const words[KINDS] = {
	[CLIENT] = "client",
	[SERVER] = "server",
	[LISTENERS] = "listeners",
	[DEVICES] = "devices",
};

/* What is asked for, and the answers; those not asked for are empty */
struct show {
	enum kind kind;
	bool json;
	bool details;
	struct objects connections;
	struct objects listeners;
	struct objects devices;
};

static struct show parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "details", no_argument, NULL, 'd' },
		{ }
	};
	struct show show = { .kind = ALL };
	int c;

	while ((c = getopt_long(argc, argv, "jdh", options, NULL)) != -1) {
		if (c == 'j')
			show.json = true;
		else if (c == 'd')
			show.details = true;
		else
			usage_of(c, SYNOPSIS);
	}
	if (optind < argc) {
		for (show.kind = 0; show.kind < KINDS; show.kind++)
			if (!strcmp(argv[optind], words[show.kind]))
				break;
		if (show.kind == KINDS || optind + 1 < argc)
			usage(SYNOPSIS);
	}
	return show;
}

static bool wants(const struct show *show, enum kind kind)
{
	return show->kind == ALL || show->kind == kind;
}

static void ask(struct show *show)
{
	struct nl *nl = nl_require();

	if (wants(show, CLIENT) || wants(show, SERVER))
		show->connections = objects_get(nl, RPCRDMA_CMD_CONNECTION_GET,
						&connection_rules);
	if (wants(show, LISTENERS))
		show->listeners = objects_get(nl, RPCRDMA_CMD_LISTENER_GET,
					      &listener_rules);
	if (wants(show, DEVICES))
		show->devices = objects_get(nl, RPCRDMA_CMD_DEVICE_GET,
					    &device_rules);
	nl_close(nl);
}

static json_t *array_of(const struct objects *objects, int role)
{
	json_t *array = json_array();
	unsigned int i;

	for (i = 0; i < objects->count; i++)
		if (role < 0 || connection_is(&objects->of[i], role))
			json_array_append_new(array,
					      attrs_json(&objects->of[i]));
	return array;
}

static void print_json(const struct show *show)
{
	json_t *all = json_object();

	if (wants(show, CLIENT))
		json_add(all, words[CLIENT],
			 array_of(&show->connections,
				  RPCRDMA_CONNECTION_ROLE_CLIENT));
	if (wants(show, SERVER))
		json_add(all, words[SERVER],
			 array_of(&show->connections,
				  RPCRDMA_CONNECTION_ROLE_SERVER));
	if (wants(show, LISTENERS))
		json_add(all, words[LISTENERS], array_of(&show->listeners, -1));
	if (wants(show, DEVICES))
		json_add(all, words[DEVICES], array_of(&show->devices, -1));
	out_json(all);
}

static void print_kind(const struct show *show, enum kind kind)
{
	switch (kind) {
	case CLIENT:
	case SERVER:
		(show->details ? details_of_connections : table_of_connections)
			(&show->connections, kind == CLIENT ?
			 RPCRDMA_CONNECTION_ROLE_CLIENT :
			 RPCRDMA_CONNECTION_ROLE_SERVER);
		break;
	case LISTENERS:
		(show->details ? details_of_listeners : table_of_listeners)
			(&show->listeners);
		break;
	default:
		(show->details ? details_of_devices : table_of_devices)
			(&show->devices);
	}
}

static void print(const struct show *show)
{
	static const char * const headings[KINDS] = {
		[CLIENT] = "Connections to servers",
		[SERVER] = "Connections of clients",
		[LISTENERS] = "Listeners",
		[DEVICES] = "Devices",
	};
	bool first = true;
	enum kind kind;

	for (kind = 0; kind < KINDS; kind++) {
		if (!wants(show, kind))
			continue;
		if (show->kind == ALL)
			printf("%s%s\n", first ? "" : "\n", headings[kind]);
		first = false;
		print_kind(show, kind);
	}
}

int cmd_show(int argc, char **argv)
{
	struct show show = parse(argc, argv);

	ask(&show);
	if (show.json)
		print_json(&show);
	else
		print(&show);
	objects_free(&show.connections);
	objects_free(&show.listeners);
	objects_free(&show.devices);
	return STATUS_OK;
}
