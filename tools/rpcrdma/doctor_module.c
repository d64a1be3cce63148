// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Is rpcrdma loaded, is it ours, and would the kernel take it? */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libkmod.h>

#include "doctor.h"

#define CHECK		"module"
#define SECURE_BOOT	"/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define RELOAD		"umount what uses RDMA here, then rpcrdma reload"

/* After an installation the old module stays until it is unloaded. */
static void check_version(struct doctor *d)
{
	struct doctor_version running, installed;

	if (doctor_running(d, &running) && doctor_installed(d, &installed) &&
	    *running.srcversion && *installed.srcversion &&
	    strcmp(running.srcversion, installed.srcversion))
		doctor_add(d, CHECK, DOCTOR_NOTE, RELOAD,
			   "the loaded rpcrdma is not the one that is installed in %s",
			   installed.file);
}

static void check_loaded(struct doctor *d, const char *file)
{
	char taint[32], version[64];

	if (!doctor_exists(d, "/sys/module/rpcrdma")) {
		if (*file)
			doctor_add(d, CHECK, DOCTOR_WRONG, "modprobe rpcrdma",
				   "rpcrdma is not loaded");
		return;
	}
	if (doctor_read_line(d, taint, sizeof(taint), "/sys/module/rpcrdma/taint")) {
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "look at lsmod",
			   "/sys/module/rpcrdma/taint cannot be read");
		return;
	}
	if (!strchr(taint, 'O')) {
		doctor_add(d, CHECK, DOCTOR_WRONG, doctor_is_ours(file) ? RELOAD :
			   "when modprobe takes this module, unload the other: modprobe -r rpcrdma",
			   "the loaded rpcrdma is the kernel's own");
		return;
	}
	doctor_read_line(d, version, sizeof(version), "/sys/module/rpcrdma/version");
	doctor_add(d, CHECK, DOCTOR_OK, NULL, "rpcrdma %s is loaded, and is this one", version);
	check_version(d);
}

/* Signatures */

static bool secure_boot(struct doctor *d)
{
	size_t len = 0;
	char *value = doctor_read(d, SECURE_BOOT, &len);
	bool on = value && len == 5 && value[4] == 1;	/* after four octets of attributes */

	free(value);
	return on;
}

/* Why the kernel takes signed modules alone, or NULL */
static const char *wants_signature(struct doctor *d)
{
	char line[128];

	doctor_read_line(d, line, sizeof(line), "/sys/module/module/parameters/sig_enforce");
	if (*line == 'Y')
		return "module.sig_enforce is set";
	doctor_read_line(d, line, sizeof(line), "/sys/kernel/security/lockdown");
	if (strstr(line, "[integrity]") || strstr(line, "[confidentiality]"))
		return "the kernel is locked down";
	return secure_boot(d) ? "Secure Boot is on" : NULL;
}

static void check_signature(struct doctor *d, struct kmod_module *module)
{
	const char *why = wants_signature(d);
	char signer[128];

	if (!why)
		return;
	if (!doctor_modinfo(module, "sig_id", signer, sizeof(signer)))
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "look at modinfo rpcrdma",
			   "%s, and it is not known whether the module is signed", why);
	else if (!*signer)
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "sign it by a key that the machine trusts: see \"Secure Boot\" in "
			   DOCTOR_GUIDE,
			   "%s, and the module is not signed", why);
	else
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "%s, and the module is signed", why);
}

/* Names by which mount, nfsd and rdma-core ask for it */

static bool has_alias(struct kmod_ctx *modules, const char *alias)
{
	struct kmod_list *list = NULL, *one;
	bool found = false;

	kmod_module_new_from_lookup(modules, alias, &list);
	kmod_list_foreach(one, list) {
		struct kmod_module *module = kmod_module_get_module(one);

		found |= !strcmp(kmod_module_get_name(module), "rpcrdma");
		kmod_module_unref(module);
	}
	kmod_module_unref_list(list);
	return found;
}

static void check_aliases(struct doctor *d, struct kmod_ctx *modules)
{
	static const char * const names[] = { "rpcrdma6", "svcrdma", "xprtrdma" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!has_alias(modules, names[i]))
			doctor_add(d, CHECK, DOCTOR_WRONG, "depmod -a",
				   "kernel %s has no alias %s: it cannot load rpcrdma by itself",
				   d->release, names[i]);
}

/* "install rpcrdma /bin/false" and "blacklist rpcrdma" are ways to switch it off. */
static void check_settings(struct doctor *d, struct kmod_config_iter *settings, bool blacklist)
{
	bool off = false;

	while (kmod_config_iter_next(settings)) {
		const char *command = blacklist ? "/false" : kmod_config_iter_get_value(settings);

		off |= !strcmp(kmod_config_iter_get_key(settings), "rpcrdma") && command &&
		       (strstr(command, "/false") || strstr(command, "/true"));
	}
	kmod_config_iter_free_iter(settings);
	if (off)
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "find the line by modprobe -c, remove it from modprobe.d or the boot loader",
			   "modprobe is told not to load rpcrdma: %s rpcrdma",
			   blacklist ? "blacklist" : "install");
}

static void check_modprobe(struct doctor *d)
{
	struct kmod_ctx *modules = doctor_modules(d, d->release);
	struct kmod_module *module;

	if (!modules)
		return;
	if (!kmod_module_new_from_name(modules, "rpcrdma", &module)) {
		check_signature(d, module);
		kmod_module_unref(module);
	}
	check_aliases(d, modules);
	check_settings(d, kmod_config_get_blacklists(modules), true);
	check_settings(d, kmod_config_get_install_commands(modules), false);
	kmod_unref(modules);
}

bool doctor_module_loads(struct doctor *d, char file[DOCTOR_PATH_MAX])
{
	size_t findings = d->count[DOCTOR_WRONG];
	bool built_in;

	*file = 0;
	doctor_read_line(d, d->release, sizeof(d->release), "/proc/sys/kernel/osrelease");
	d->vendor = doctor_vendor(d, CHECK, DOCTOR_WRONG, d->release);
	if (d->vendor)
		return false;
	built_in = doctor_module_file(d, d->release, "rpcrdma", file);
	if (!doctor_is_ours(file))
		doctor_missing(d, CHECK, DOCTOR_WRONG, d->release, file, built_in);
	if (*file)
		check_modprobe(d);
	return d->count[DOCTOR_WRONG] == findings;
}

void doctor_module(struct doctor *d)
{
	char file[DOCTOR_PATH_MAX];

	doctor_module_loads(d, file);
	if (!d->vendor)
		check_loaded(d, file);
}
