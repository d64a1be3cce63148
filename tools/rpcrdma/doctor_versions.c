// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Which builds of rpcrdma there are: the one that runs, the installed one, and others. */

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <libkmod.h>

#include "doctor.h"

#define LOADED	"/sys/module/rpcrdma"

bool doctor_modinfo(struct kmod_module *module, const char *field, char *value, size_t size)
{
	struct kmod_list *list = NULL, *one;

	*value = 0;
	if (kmod_module_get_info(module, &list) < 0)
		return false;
	kmod_list_foreach(one, list)
		if (!strcmp(kmod_module_info_get_key(one), field))
			snprintf(value, size, "%s", kmod_module_info_get_value(one));
	kmod_module_info_free_list(list);
	return true;
}

bool doctor_running(struct doctor *d, struct doctor_version *v)
{
	*v->file = 0;
	doctor_read_line(d, v->version, sizeof(v->version), LOADED "/version");
	doctor_read_line(d, v->srcversion, sizeof(v->srcversion), LOADED "/srcversion");
	return doctor_exists(d, LOADED);
}

/* Returns false if it is no module, or none that can be read. */
static bool version_of(struct kmod_module *module, struct doctor_version *v)
{
	return doctor_modinfo(module, "version", v->version, sizeof(v->version)) &&
	       doctor_modinfo(module, "srcversion", v->srcversion, sizeof(v->srcversion));
}

bool doctor_installed(struct doctor *d, struct doctor_version *v)
{
	struct kmod_module *module = NULL;
	struct kmod_ctx *modules;

	memset(v, 0, sizeof(*v));
	doctor_read_line(d, d->release, sizeof(d->release), "/proc/sys/kernel/osrelease");
	doctor_module_file(d, d->release, "rpcrdma", v->file);
	if (!*v->file)
		return false;
	modules = doctor_modules(d, d->release);
	if (modules && !kmod_module_new_from_name(modules, "rpcrdma", &module)) {
		version_of(module, v);
		kmod_module_unref(module);
	}
	kmod_unref(modules);
	return true;
}

static bool is_version(struct kmod_ctx *modules, const char *file, const struct doctor_version *v)
{
	struct kmod_module *module;
	struct doctor_version its;
	bool same;

	if (kmod_module_new_from_path(modules, file, &module))
		return false;
	same = version_of(module, &its) && !strcmp(its.srcversion, v->srcversion);
	kmod_module_unref(module);
	return same;
}

/* The kernel's own stays in its place, and DKMS keeps what it has built of each version. */
void doctor_find(struct doctor *d, struct doctor_version *v)
{
	static const char * const patterns[] = {
		"%s/var/lib/dkms/rpcrdma/*/%s/*/module/rpcrdma.ko*",
		"%s/lib/modules/%s/kernel/net/sunrpc/xprtrdma/rpcrdma.ko*",
	};
	struct kmod_ctx *modules = doctor_modules(d, d->release);
	char pattern[DOCTOR_PATH_MAX];
	glob_t found;
	size_t i, n;

	for (i = 0; modules && i < ARRAY_SIZE(patterns); i++) {
		snprintf(pattern, sizeof(pattern), patterns[i], d->root, d->release);
		if (glob(pattern, 0, NULL, &found))
			continue;
		for (n = 0; n < found.gl_pathc && !*v->file; n++)
			if (is_version(modules, found.gl_pathv[n], v))
				snprintf(v->file, sizeof(v->file), "%s", found.gl_pathv[n]);
		globfree(&found);
	}
	kmod_unref(modules);
}
