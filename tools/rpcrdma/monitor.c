// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* rpcrdma monitor: events as they come */

#include <errno.h>
#include <getopt.h>
#include <linux/rpcrdma.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "cmd.h"
#include "connection.h"
#include "json.h"
#include "nl.h"
#include "rules.h"
#include "sock.h"

#define SYNOPSIS	"monitor [-j|--json]"

static const char *event_of(uint8_t cmd)
{
	switch (cmd) {
	case RPCRDMA_CMD_CONNECTED:
		return "connected";
	case RPCRDMA_CMD_CLOSED:
		return "closed";
	case RPCRDMA_CMD_REFUSED:
		return "refused";
	default:
		return NULL;	/* of a newer kernel */
	}
}

static enum colour colour_of(uint8_t cmd, const struct attrs *c)
{
	if (cmd == RPCRDMA_CMD_CONNECTED)
		return COLOUR_GOOD;
	if (cmd == RPCRDMA_CMD_REFUSED)
		return COLOUR_BAD;
	return attr_number(c, RPCRDMA_A_CONNECTION_CAUSE) ? COLOUR_BAD : COLOUR_NONE;
}

static void print_json(const char *event, const struct attrs *c)
{
	json_t *line = json_pack("{s:I, s:s}", "time", (json_int_t)sock_wall(), "event", event);

	if (json_object_update_new(line, attrs_json(c)))
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
	out_json_line(line);
}

static void print_cause(const struct attrs *c)
{
	if (attr_number(c, RPCRDMA_A_CONNECTION_CAUSE))
		printf(": %s", strerror(attr_number(c, RPCRDMA_A_CONNECTION_CAUSE)));
}

static void print_rest(uint8_t cmd, const struct attrs *c)
{
	uint64_t call = attr_number(c, RPCRDMA_A_CONNECTION_CALL_THRESHOLD);
	uint64_t reply = attr_number(c, RPCRDMA_A_CONNECTION_REPLY_THRESHOLD);

	if (attr_has(c, RPCRDMA_A_CONNECTION_DEVICE))
		printf(" by %s", connection_device(c).s);
	if (cmd == RPCRDMA_CMD_CONNECTED)
		printf(", inline %s/%s", fmt_size(call).s, fmt_size(reply).s);
	if (cmd == RPCRDMA_CMD_CLOSED)
		printf(" after %s", age_of(c, RPCRDMA_A_CONNECTION_STATE_AGE).s);
	if (cmd == RPCRDMA_CMD_REFUSED)
		printf(", %s", attr_word(c, RPCRDMA_A_CONNECTION_REFUSAL));
	print_cause(c);
	putchar('\n');
}

static void print_text(uint8_t cmd, const char *event, const struct attrs *c)
{
	enum colour colour = colour_of(cmd, c);
	time_t now = sock_wall();
	char clock[16];

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime(&now));
	printf("%s %s%-9s%s ", clock, term_colour(colour), event, term_plain(colour));
	if (attr_has(c, RPCRDMA_A_CONNECTION_ID))
		printf("%u ", (unsigned int)attr_number(c, RPCRDMA_A_CONNECTION_ID));
	printf("%s %s", connection_is(c, RPCRDMA_CONNECTION_ROLE_CLIENT) ?
	       "to the server" : "of the client", attr_string(c, RPCRDMA_A_CONNECTION_PEER));
	print_rest(cmd, c);
	fflush(stdout);
}

static int print(uint8_t cmd, const void *payload, size_t len, void *data)
{
	const char *event = event_of(cmd);
	const bool *json = data;
	struct attrs connection;

	if (!event)
		return 0;
	if (attrs_parse(&connection, &connection_rules, payload, len))
		return -EPROTO;
	if (*json)
		print_json(event, &connection);
	else
		print_text(cmd, event, &connection);
	if (ferror(stdout))
		die(STATUS_FAILED, "cannot write the output: %s", strerror(errno));
	return 0;
}

static bool wants_json(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	bool json = false;
	int c;

	while ((c = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		if (c != 'j')
			usage_of(c, STATUS_USAGE, SYNOPSIS);
		json = true;
	}
	if (optind < argc)
		die(STATUS_USAGE, "monitor: options alone (got %s)", argv[optind]);
	if (json)
		die_as_json();
	return json;
}

int cmd_monitor(int argc, char **argv)
{
	bool json = wants_json(argc, argv);
	struct nl *nl;
	int ret;

	do {
		nl = nl_require();
		ret = nl_join(nl, RPCRDMA_MCGRP_EVENTS) ?: nl_listen(nl, print, &json);
		nl_close(nl);
		/* That the module was unloaded may be lost as well, so look for it again. */
		if (ret == -ENOBUFS)
			fprintf(stderr, "rpcrdma: %s\n",
				"some events are lost, they came too fast: rpcrdma show has what is now");
	} while (ret == -ENOBUFS);
	if (ret == -ENOENT)
		die(STATUS_NO_FAMILY, "the module was unloaded");
	if (ret == -EPROTO)
		die(STATUS_FAILED,
		    "an event of the kernel makes no sense: install the rpcrdma tools of the same version as the module");
	if (ret)
		die(STATUS_FAILED, "cannot receive events: %s", strerror(-ret));
	return STATUS_OK;
}
