/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The parts of rpcrdma show: what is asked for, and two ways to tell people about objects */
#ifndef RPCRDMA_SHOW_H
#define RPCRDMA_SHOW_H

#include "attrs.h"
#include "connection.h"
#include "table.h"

/**
 * struct filter - which connections are asked for
 * @to: address of the peer, or with its port
 * @device: name, or with the port as rxe0/1
 * @state: word of the specification
 * @mount: a mount point that uses it
 *
 * Words of the command line, or NULL: any.
 */
struct filter {
	const char *to, *device, *state, *mount;
};

/* show_filter.c: false if there are no words; the program ends if one is wrong */
bool filter_parse(struct filter *filter, char **words);
bool filter_takes(const struct filter *filter, const struct attrs *connection);

/**
 * connections_print - a table, and a line with sums if there are several
 * @all: may be none
 * @each: a row for each connection, though they are many
 */
void connections_print(const struct connections *all, const struct column *columns,
		       const struct table_style *style, bool each, const char *nothing);

/* show_table.c: a row for each object, or for several connections; for each port of a device */
extern const struct column client_columns[], server_columns[], listener_columns[],
	device_columns[], peer_columns[];
void connection_row(struct table *table, const struct connections *connections);
void listener_row(struct table *table, const struct attrs *listener);
void device_rows(struct table *table, const struct attrs *device);
void peer_row(struct table *table, const struct attrs *peer);

/* show_module.c: the builds of the module, of which no loaded module has to tell */
extern const struct column module_columns[];
void module_print(const struct table_style *style, bool as_json);

/* show_detail.c: a paragraph for each object */
void details_of_connection(const struct attrs *connection);
void details_of_listener(const struct attrs *listener);
void details_of_device(const struct attrs *device);
void details_of_peer(const struct attrs *peer);

#endif
