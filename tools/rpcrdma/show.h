/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The two ways in which rpcrdma show tells people about objects */
#ifndef RPCRDMA_SHOW_H
#define RPCRDMA_SHOW_H

#include "attrs.h"
#include "table.h"

/* show_table.c: a row for each object; for each port of a device */
extern const struct column connection_columns[], listener_columns[], device_columns[];
void connection_row(struct table *table, const struct attrs *connection);
void listener_row(struct table *table, const struct attrs *listener);
void device_rows(struct table *table, const struct attrs *device);

/* show_detail.c: a paragraph for each object */
void details_of_connection(const struct attrs *connection);
void details_of_listener(const struct attrs *listener);
void details_of_device(const struct attrs *device);

#endif
