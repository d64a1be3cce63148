// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What the loaded module tells doctor about devices, listeners and connections, by netlink. */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <linux/rpcrdma.h>

#include "attrs.h"
#include "doctor.h"
#include "nl.h"
#include "rules.h"

/* Takes the attributes of one object */
typedef void take_fn(const struct attrs *attrs, void *data);

struct dump {
	const struct attr_rules *rules;
	take_fn *take;
	void *data;
};

static int take_object(uint8_t cmd, const void *payload, size_t len, void *data)
{
	const struct dump *dump = data;
	struct attrs attrs;

	if (attrs_parse(&attrs, dump->rules, payload, len))
		return -EPROTO;
	dump->take(&attrs, dump->data);
	return 0;
}

/* -EINTR: something changed meanwhile. Each object that stayed was there once. */
static int dump_all(uint8_t cmd, struct dump *dump)
{
	struct nl *nl;
	int ret = nl_open(&nl);

	if (ret)
		return ret;
	ret = nl_dump(nl, cmd, take_object, dump);
	nl_close(nl);
	return ret == -EINTR ? 0 : ret;
}

/* The limits of one device, by its name */
struct wanted {
	const char *device;
	struct doctor_limits *limits;
	bool found;
};

static int int_of(uint64_t number)
{
	return number > INT_MAX ? INT_MAX : number;
}

static void take_device(const struct attrs *attrs, void *data)
{
	struct wanted *wanted = data;
	uint64_t usability = attr_number(attrs, RPCRDMA_A_DEVICE_USABILITY);

	if (strcmp(attr_string(attrs, RPCRDMA_A_DEVICE_NAME), wanted->device))
		return;
	wanted->found = true;
	wanted->limits->fast_registration = usability != RPCRDMA_USABILITY_NO_REGISTRATION;
	wanted->limits->page_list = usability != RPCRDMA_USABILITY_NO_PAGE_LIST;
	wanted->limits->qps = int_of(attr_number(attrs, RPCRDMA_A_DEVICE_MAX_QPS));
	wanted->limits->mrs = int_of(attr_number(attrs, RPCRDMA_A_DEVICE_MAX_MRS));
}

int doctor_status_limits(struct doctor *d, const char *device, struct doctor_limits *limits)
{
	struct wanted wanted = { .device = device, .limits = limits };
	struct dump dump = { &device_rules, take_device, &wanted };
	int ret = dump_all(RPCRDMA_CMD_DEVICE_GET, &dump);

	return ret ?: wanted.found ? 0 : -ENOENT;
}

struct listeners {
	void (*fn)(const char *local, bool waits, void *data);
	void *data;
};

static void take_listener(const struct attrs *attrs, void *data)
{
	const struct listeners *listeners = data;

	listeners->fn(attr_string(attrs, RPCRDMA_A_LISTENER_LOCAL),
		      attr_number(attrs, RPCRDMA_A_LISTENER_STATE) ==
		      RPCRDMA_LISTENER_STATE_WAITING, listeners->data);
}

int doctor_status_listeners(struct doctor *d,
			    void (*fn)(const char *local, bool waits, void *data), void *data)
{
	struct listeners listeners = { fn, data };
	struct dump dump = { &listener_rules, take_listener, &listeners };

	return dump_all(RPCRDMA_CMD_LISTENER_GET, &dump);
}

struct connections {
	void (*fn)(const struct doctor_connection *connection, void *data);
	void *data;
};

static void take_connection(const struct attrs *attrs, void *data)
{
	uint64_t state = attr_number(attrs, RPCRDMA_A_CONNECTION_STATE);
	const struct connections *connections = data;
	const struct doctor_connection connection = {
		.client = attr_number(attrs, RPCRDMA_A_CONNECTION_ROLE) ==
			  RPCRDMA_CONNECTION_ROLE_CLIENT,
		.established = state == RPCRDMA_STATE_ESTABLISHED,
		.peer = attr_string(attrs, RPCRDMA_A_CONNECTION_PEER),
		.state = attr_word(attrs, RPCRDMA_A_CONNECTION_STATE),
		.age = attr_number(attrs, RPCRDMA_A_CONNECTION_STATE_AGE),
	};

	connections->fn(&connection, connections->data);
}

int doctor_status_connections(struct doctor *d,
			      void (*fn)(const struct doctor_connection *connection, void *data),
			      void *data)
{
	struct connections connections = { fn, data };
	struct dump dump = { &connection_rules, take_connection, &connections };

	return dump_all(RPCRDMA_CMD_CONNECTION_GET, &dump);
}
