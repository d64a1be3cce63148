/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The two ways in which rpcrdma show tells people about objects */
#ifndef RPCRDMA_SHOW_H
#define RPCRDMA_SHOW_H

#include "objects.h"

/* show_table.c: a line for each object. Connections are those of one role. */
void table_of_connections(const struct objects *connections, unsigned int role);
void table_of_listeners(const struct objects *listeners);
void table_of_devices(const struct objects *devices);

/* show_detail.c: a paragraph for each object */
void details_of_connections(const struct objects *connections,
			    unsigned int role);
void details_of_listeners(const struct objects *listeners);
void details_of_devices(const struct objects *devices);

#endif
