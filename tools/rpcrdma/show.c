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
#include "xprt_switch.h"

#define SYNOPSIS	"show [client|server|devices|listeners] [-d|--details] [-j|--json]\n" \
	"                    " TABLE_SYNOPSIS

#define ANY_ROLE	(-1)

/* What the kernel is asked for, once */
enum source { CONNECTIONS, LISTENERS, DEVICES, SOURCES };

static const struct kind {
	const char *word;	/* of the command line and of JSON */
	const char *heading;
	const char *nothing;
	enum source source;
	int role;
	const struct column *columns;
	void (*row)(struct table *table, const struct attrs *object);
	void (*details)(const struct attrs *object);
} kinds[] = {
	{ "client", "Connections to servers", "none: nothing is mounted over RDMA here",
	  CONNECTIONS, RPCRDMA_CONNECTION_ROLE_CLIENT, connection_columns, connection_row,
	  details_of_connection },
	{ "server", "Connections of clients", "none: no client is connected over RDMA",
	  CONNECTIONS, RPCRDMA_CONNECTION_ROLE_SERVER, connection_columns, connection_row,
	  details_of_connection },
	{ "listeners", "Listeners", "none: the server does not listen for RDMA", LISTENERS,
	  ANY_ROLE, listener_columns, listener_row, details_of_listener },
	{ "devices", "Devices", "none: see rdma link; rdma link add makes a software device",
	  DEVICES, ANY_ROLE, device_columns, device_rows, details_of_device },
	{ }
};

/* What is asked for, and the answers; those not asked for are empty */
struct show {
	const char *word;	/* or NULL: all kinds */
	bool json;
	bool details;
	struct table_style style;
	bool wants[SOURCES];
	struct objects objects[SOURCES];
};

static bool wants(const struct show *show, const struct kind *kind)
{
	return !show->word || !strcmp(show->word, kind->word);
}

static struct show parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "details", no_argument, NULL, 'd' },
		TABLE_OPTIONS,
		{ }
	};
	const struct kind *kind;
	struct show show = { };
	bool any = false;
	int c;

	while ((c = getopt_long(argc, argv, "jdh", options, NULL)) != -1) {
		if (c == 'j')
			show.json = true;
		else if (c == 'd')
			show.details = true;
		else if (!table_option(&show.style, c))
			usage_of(c, SYNOPSIS);
	}
	if (optind < argc)
		show.word = argv[optind++];
	for (kind = kinds; kind->word; kind++) {
		show.wants[kind->source] |= wants(&show, kind);
		any |= wants(&show, kind);
	}
	if (!any)
		die(STATUS_USAGE, "show: client, server, listeners or devices (got %s)",
		    show.word);
	if (optind < argc)
		die(STATUS_USAGE, "show: one kind at a time (got %s)", argv[optind]);
	if (show.json)
		die_as_json();
	return show;
}

static void ask(struct show *show)
{
	static const struct {
		uint8_t cmd;
		const struct attr_rules *rules;
	} questions[SOURCES] = {
		[CONNECTIONS] = { RPCRDMA_CMD_CONNECTION_GET, &connection_rules },
		[LISTENERS] = { RPCRDMA_CMD_LISTENER_GET, &listener_rules },
		[DEVICES] = { RPCRDMA_CMD_DEVICE_GET, &device_rules },
	};
	struct nl *nl = nl_require();
	enum source i;

	for (i = 0; i < SOURCES; i++)
		if (show->wants[i])
			show->objects[i] = objects_get(nl, questions[i].cmd, questions[i].rules);
	nl_close(nl);
	xprt_switches_get();
}

/* Go through the objects of a kind. @object is NULL at first and after the last one. */
static const struct attrs *next(const struct show *show, const struct kind *kind,
				const struct attrs *object)
{
	const struct objects *objects = &show->objects[kind->source];
	unsigned int i = object ? object + 1 - objects->of : 0;

	for (; i < objects->count; i++)
		if (kind->role == ANY_ROLE || connection_is(&objects->of[i], kind->role))
			return &objects->of[i];
	return NULL;
}

/* The attributes of an object, and what the kernel tells of it elsewhere */
static json_t *object_json(const struct attrs *object)
{
	json_t *json = attrs_json(object);
	int number = object->rules == &connection_rules ? xprt_switch_of(object) : -1;

	if (number >= 0)
		json_add(json, "xprt-switch", json_integer(number));
	return json;
}

static void print_json(const struct show *show)
{
	json_t *all = json_object(), *array;
	const struct attrs *object;
	const struct kind *kind;

	for (kind = kinds; kind->word; kind++) {
		if (!wants(show, kind))
			continue;
		array = json_array();
		for (object = next(show, kind, NULL); object; object = next(show, kind, object))
			json_array_append_new(array, object_json(object));
		json_add(all, kind->word, array);
	}
	out_json(all);
}

static void print_details(const struct show *show, const struct kind *kind)
{
	const struct attrs *object = next(show, kind, NULL);

	if (!object)
		puts(kind->nothing);
	while (object) {
		kind->details(object);
		object = next(show, kind, object);
		if (object)
			putchar('\n');
	}
}

static void print_table(const struct show *show, const struct kind *kind)
{
	struct table *table = table_new(kind->columns, &show->style);
	const struct attrs *object;

	for (object = next(show, kind, NULL); object; object = next(show, kind, object))
		kind->row(table, object);
	table_end(table, kind->nothing);
}

static void print(const struct show *show)
{
	const struct kind *kind;

	for (kind = kinds; kind->word; kind++) {
		if (!wants(show, kind))
			continue;
		if (!show->word && !show->style.no_headings)
			printf("%s%s\n", kind == kinds ? "" : "\n", kind->heading);
		if (show->details)
			print_details(show, kind);
		else
			print_table(show, kind);
	}
}

int cmd_show(int argc, char **argv)
{
	struct show show = parse(argc, argv);
	enum source i;

	ask(&show);
	if (show.json)
		print_json(&show);
	else
		print(&show);
	for (i = 0; i < SOURCES; i++)
		objects_free(&show.objects[i]);
	xprt_switches_free();
	return STATUS_OK;
}
