// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* rpcrdma show module: what runs, and what the next load takes */

#include <stdio.h>
#include <string.h>
#include "doctor.h"
#include "json.h"
#include "show.h"
#include "sock.h"

const struct column module_columns[] = {
	{ "BUILD" },
	{ "VERSION" },
	{ "SRCVERSION" },
	{ "FILE", SCOLS_FL_TRUNC },
	{ }
};

static void print_row(struct table *table, const char *which, const struct doctor_version *v)
{
	table_cell(table, COLOUR_NONE, "%s", which);
	table_cell(table, COLOUR_NONE, "%s", *v->version ? v->version : "-");
	table_cell(table, COLOUR_NONE, "%s", *v->srcversion ? v->srcversion : "-");
	table_cell(table, COLOUR_NONE, "%s", *v->file ? v->file : "-");
}

static json_t *json_of(const struct doctor_version *v)
{
	return json_pack("{s:s*, s:s*, s:s*}", "version", *v->version ? v->version : NULL,
			 "srcversion", *v->srcversion ? v->srcversion : NULL,
			 "file", *v->file ? v->file : NULL);
}

/* What is read may have any characters. */
static void make_plain(struct doctor_version *v)
{
	fmt_plain(v->version);
	fmt_plain(v->srcversion);
	fmt_plain(v->file);
}

void module_print(const struct table_style *style, bool as_json)
{
	struct doctor_version running, installed;
	static struct doctor d;
	struct table *table;
	bool runs, is_there;

	doctor_init(&d);
	d.root = sock_root();
	runs = doctor_running(&d, &running);
	is_there = doctor_installed(&d, &installed);
	make_plain(&running);
	make_plain(&installed);
	if (as_json) {
		out_json(json_pack("{s:{s:o*, s:o*}}", "module",
				   "running", runs ? json_of(&running) : NULL,
				   "installed", is_there ? json_of(&installed) : NULL));
		return;
	}
	table = table_new(module_columns, style);
	if (runs)
		print_row(table, "running", &running);
	if (is_there)
		print_row(table, "installed", &installed);
	table_end(table, "none: rpcrdma is neither loaded nor installed");
	if (runs && is_there && strcmp(running.srcversion, installed.srcversion) &&
	    !style->no_headings && !style->raw)
		puts("The installed one waits: see rpcrdma reload.");
}
