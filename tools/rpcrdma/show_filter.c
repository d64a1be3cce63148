// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Which connections are asked for */

#include <arpa/inet.h>
#include <linux/rpcrdma.h>
#include <stdio.h>
#include <string.h>
#include "cmd.h"
#include "host.h"
#include "rules.h"
#include "show.h"
#include "users.h"

/* As in6_addr; IPv4 is mapped, and a zone is left out */
static bool binary(const char *text, struct in6_addr *address)
{
	char copy[sizeof(((struct text *)0)->s) + 8];

	snprintf(copy, sizeof(copy), "%s%.*s", strchr(text, ':') ? "" : "::ffff:",
		 (int)strcspn(text, "%"), text);
	return inet_pton(AF_INET6, copy, address) == 1;
}

static void check_address(char *text)
{
	struct in6_addr address;
	struct host host;

	if (!host_parse(&host, text) || !binary(host.name, &address))
		die(STATUS_USAGE,
		    "show: to: an IPv4 or IPv6 address, with :PORT or without (got %s)", text);
}

static void check_state(char *text)
{
	const char *const *words = connection_rules.rules[RPCRDMA_A_CONNECTION_STATE].words;
	char all[128] = "";
	size_t len = 0;

	for (; *words; words++) {
		if (!strcmp(*words, text))
			return;
		len += snprintf(all + len, sizeof(all) - len, "%s%s", len ? ", " : "", *words);
	}
	die(STATUS_USAGE, "show: state: %s (got %s)", all, text);
}

static void cut_slashes(char *text)
{
	size_t len = strlen(text);

	while (len > 1 && text[len - 1] == '/')
		text[--len] = '\0';
}

bool filter_parse(struct filter *filter, char **words)
{
	const struct {
		const char *name;
		const char **value;
		void (*check)(char *text);
	} names[] = {
		{ "to", &filter->to, check_address },
		{ "device", &filter->device },
		{ "state", &filter->state, check_state },
		{ "mount", &filter->mount, cut_slashes },
		{ }
	}, *name;
	bool any = *words;

	for (; *words; words += 2) {
		for (name = names; name->name && strcmp(name->name, *words); name++)
			;
		if (!name->name)
			die(STATUS_USAGE,
			    "show: client, server, listeners, devices, peers or module, then to, device, state or mount (got %s)",
			    *words);
		if (!words[1])
			die(STATUS_USAGE, "show: %s needs a value", *words);
		if (name->check)
			name->check(words[1]);
		*name->value = words[1];
	}
	return any;
}

static bool is_to(const struct attrs *c, const char *wanted)
{
	struct in6_addr address, peer;

	/* All of it, with the port, or the address alone */
	if (!strcmp(attr_string(c, RPCRDMA_A_CONNECTION_PEER), wanted))
		return true;
	if (strcmp(address_of(wanted).s, wanted) && (*wanted != '[' || strstr(wanted, "]:")))
		return false;
	return binary(address_of(wanted).s, &address) && binary(connection_address(c).s, &peer) &&
	       IN6_ARE_ADDR_EQUAL(&address, &peer);
}

static bool is_on(const struct attrs *c, const char *wanted)
{
	return !strcmp(attr_string(c, RPCRDMA_A_CONNECTION_DEVICE), wanted) ||
	       !strcmp(connection_device(c).s, wanted);
}

struct search {
	const char *name;
	bool found;
};

static void compare(const char *name, void *data)
{
	struct search *search = data;

	search->found |= !strcmp(name, search->name);
}

static bool is_of_mount(const struct attrs *c, const char *wanted)
{
	struct search search = { .name = wanted };

	if (connection_is(c, RPCRDMA_CONNECTION_ROLE_CLIENT))
		users_of(&(struct connections){ 1, &c }, compare, &search);
	return search.found;
}

bool filter_takes(const struct filter *filter, const struct attrs *c)
{
	return (!filter->to || is_to(c, filter->to)) &&
	       (!filter->device || is_on(c, filter->device)) &&
	       (!filter->state ||
		!strcmp(attr_word(c, RPCRDMA_A_CONNECTION_STATE), filter->state)) &&
	       (!filter->mount || is_of_mount(c, filter->mount));
}
