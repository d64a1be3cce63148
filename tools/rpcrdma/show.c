// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* rpcrdma show: what there is now */

#include <errno.h>
#include <getopt.h>
#include <linux/rpcrdma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "connection.h"
#include "json.h"
#include "objects.h"
#include "rules.h"
#include "show.h"
#include "users.h"
#include "xprt_switch.h"

#define SYNOPSIS	"show [client|server|devices|listeners|peers|module]\n" \
	"                    [to ADDRESS] [device NAME] [state STATE] [mount DIR]\n" \
	"                    [-a|--all] [-d|--details] [-j|--json]\n" \
	"                    " TABLE_SYNOPSIS

#define ANY_ROLE	(-1)

/* What the kernel is asked for, once */
enum source { CONNECTIONS, LISTENERS, DEVICES, PEERS, SOURCES };

static const struct kind {
	const char *word;	/* of the command line and of JSON */
	const char *heading;
	const char *nothing;
	enum source source;
	int role;		/* of connections, or ANY_ROLE */
	const struct column *columns;
	void (*row)(struct table *table, const struct attrs *object);	/* not of connections */
	void (*details)(const struct attrs *object);
	bool alone;		/* only if it is asked for */
} kinds[] = {
	{ "client", "Connections to servers", "none: nothing is mounted over RDMA here",
	  CONNECTIONS, RPCRDMA_CONNECTION_ROLE_CLIENT, client_columns, NULL,
	  details_of_connection },
	{ "server", "Connections of clients", "none: no client is connected over RDMA",
	  CONNECTIONS, RPCRDMA_CONNECTION_ROLE_SERVER, server_columns, NULL,
	  details_of_connection },
	{ "listeners", "Listeners", "none: the server does not listen for RDMA", LISTENERS,
	  ANY_ROLE, listener_columns, listener_row, details_of_listener },
	{ "devices", "Devices", "none: see rdma link; rdma link add makes a software device",
	  DEVICES, ANY_ROLE, device_columns, device_rows, details_of_device },
	{ "peers", "Peers", "none: no connection was established over RDMA", PEERS, ANY_ROLE,
	  peer_columns, peer_row, details_of_peer, .alone = true },
	{ }
};

/* What is asked for, and the answers; those not asked for are empty */
struct show {
	const struct kind *kind;	/* or NULL: all kinds */
	struct filter filter;
	bool filters;			/* @filter has something */
	bool json;
	bool details;
	bool all;			/* no row is for several connections */
	bool module;			/* the module alone */
	struct table_style style;
	struct objects objects[SOURCES];
};

static bool wants(const struct show *show, const struct kind *kind)
{
	if (show->kind)
		return show->kind == kind;
	return !kind->alone && (!show->filters || kind->role != ANY_ROLE);
}

static bool wants_source(const struct show *show, enum source source)
{
	const struct kind *kind;

	for (kind = kinds; kind->word; kind++)
		if (kind->source == source && wants(show, kind))
			return true;
	return false;
}

static const struct kind *kind_of(const char *word)
{
	const struct kind *kind;

	for (kind = kinds; kind->word; kind++)
		if (!strcmp(kind->word, word))
			return kind;
	return NULL;
}

static void parse_words(struct show *show, char **words)
{
	show->module = *words && !strcmp(*words, "module");
	if (show->module && words[1])
		die(STATUS_USAGE, "show: module alone (got %s)", words[1]);
	if (show->module)
		return;
	show->kind = *words ? kind_of(*words) : NULL;
	show->filters = filter_parse(&show->filter, words + !!show->kind);
	if (show->filters && show->kind && show->kind->role == ANY_ROLE)
		die(STATUS_USAGE, "show: only connections are chosen by words (got %s)", words[1]);
}

/* Before the first table is printed */
static void check_style(const struct show *show)
{
	const struct kind *kind;
	struct text command;

	if (show->json || show->details)
		table_refuse(&show->style, "show", show->json ? "-j" : "-d");
	if (show->module)
		table_check(&show->style, "show module", module_columns);
	for (kind = kinds; kind->word; kind++) {
		command = fmt_print("show %s", kind->word);
		if (!show->module && wants(show, kind))
			table_check(&show->style, command.s, kind->columns);
	}
}

static struct show parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ "details", no_argument, NULL, 'd' },
		{ "all", no_argument, NULL, 'a' },
		TABLE_OPTIONS,
		{ }
	};
	struct show show = { };
	int c;

	while ((c = getopt_long(argc, argv, "jdah", options, NULL)) != -1) {
		if (c == 'j')
			show.json = true;
		else if (c == 'd')
			show.details = true;
		else if (c == 'a')
			show.all = true;
		else if (!table_option(&show.style, "show", c))
			usage_of(c, STATUS_USAGE, SYNOPSIS);
	}
	parse_words(&show, argv + optind);
	check_style(&show);
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
		[PEERS] = { RPCRDMA_CMD_PEER_GET, &connection_rules },
	};
	struct nl *nl = nl_require();
	enum source i;

	for (i = 0; i < SOURCES; i++)
		if (wants_source(show, i))
			show->objects[i] = objects_get(nl, questions[i].cmd, questions[i].rules);
	nl_close(nl);
	if (wants(show, kind_of("client")))
		xprt_switches_get();
	users_get(wants(show, kind_of("client")), wants(show, kind_of("server")));
}

static bool takes(const struct show *show, const struct kind *kind, const struct attrs *object)
{
	if (kind->source == PEERS)
		return !peer_is_unused(object);
	return kind->role == ANY_ROLE ||
	       (connection_is(object, kind->role) && filter_takes(&show->filter, object));
}

/* Go through the objects of a kind. @object is NULL at first and after the last one. */
static const struct attrs *next(const struct show *show, const struct kind *kind,
				const struct attrs *object)
{
	const struct objects *objects = &show->objects[kind->source];
	unsigned int i = object ? object + 1 - objects->of : 0;

	for (; i < objects->count; i++)
		if (takes(show, kind, &objects->of[i]))
			return &objects->of[i];
	return NULL;
}

/* A file's name may be in any encoding. */
static void add_user(const char *name, void *data)
{
	json_t *string = json_string(name);
	char *plain;

	if (!string) {
		plain = strdupa(name);
		fmt_plain(plain);
		string = json_string(plain);
	}
	json_array_append_new(data, string);
}

/* The attributes of an object, and what the kernel tells of it elsewhere */
static json_t *object_json(const struct kind *kind, const struct attrs *object)
{
	json_t *json = attrs_json(object), *users;
	int number;

	if (kind->role == ANY_ROLE)
		return json;
	number = xprt_switch_of(object);
	if (number >= 0)
		json_add(json, "xprt-switch", json_integer(number));
	if (!users_known(object))
		return json;
	users = json_array();
	users_of(&(struct connections){ 1, &object }, add_user, users);
	json_add(json, kind->role == RPCRDMA_CONNECTION_ROLE_CLIENT ? "mounts" : "clients", users);
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
			json_array_append_new(array, object_json(kind, object));
		json_add(all, kind->word, array);
	}
	out_json(all);
}

static void print_details(const struct show *show, const struct kind *kind)
{
	const struct attrs *object = next(show, kind, NULL);

	if (!object)
		puts(show->filters ? "none" : kind->nothing);
	while (object) {
		kind->details(object);
		object = next(show, kind, object);
		if (object)
			putchar('\n');
	}
}

static void print_connections(const struct show *show, const struct kind *kind)
{
	struct connections all = { };
	const struct attrs *object;

	all.of = calloc(show->objects[CONNECTIONS].count + 1, sizeof(*all.of));
	if (!all.of)
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
	for (object = next(show, kind, NULL); object; object = next(show, kind, object))
		all.of[all.count++] = object;
	connections_print(&all, kind->columns, &show->style, show->all,
			  show->filters ? "none" : kind->nothing);
	free(all.of);
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
		if (!show->kind && !show->style.no_headings)
			printf("%s%s\n", kind == kinds ? "" : "\n", kind->heading);
		if (show->details)
			print_details(show, kind);
		else if (kind->role == ANY_ROLE)
			print_table(show, kind);
		else
			print_connections(show, kind);
	}
}

int cmd_show(int argc, char **argv)
{
	struct show show = parse(argc, argv);
	enum source i;

	if (show.module) {
		module_print(&show.style, show.json);
		return STATUS_OK;
	}
	ask(&show);
	if (show.json)
		print_json(&show);
	else
		print(&show);
	for (i = 0; i < SOURCES; i++)
		objects_free(&show.objects[i]);
	users_free();
	xprt_switches_free();
	return STATUS_OK;
}
