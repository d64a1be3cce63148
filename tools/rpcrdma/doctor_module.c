// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Is rpcrdma loaded, is it ours, and would the kernel take it? */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define CHECK		"module"
#define SECURE_BOOT	"/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#define RELOAD		"umount what uses RDMA, stop nfsd, modprobe -r rpcrdma, modprobe rpcrdma"

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
	doctor_add(d, CHECK, DOCTOR_OK, NULL, "rpcrdma %s is loaded, and is this one",
		   version);
}

/* The value of a field of the module's file; false if it cannot be told */
static bool modinfo(struct doctor *d, const char *field, const char *file,
		    char *value, size_t size)
{
	char path[512], *output;
	char *const argv[] = { "modinfo", "-F", (char *)field, path, NULL };
	int status;

	snprintf(path, sizeof(path), "%s%s%s%s%s", d->root,
		 *file == '/' ? "" : "/lib/modules/", *file == '/' ? "" : d->release,
		 *file == '/' ? "" : "/", file);
	if (doctor_run(d, argv, &status, &output))
		return false;
	snprintf(value, size, "%.*s", (int)strcspn(output, "\n"), output);
	free(output);
	return !status;
}

/* After an installation the old module stays until it is unloaded. */
static void check_version(struct doctor *d, const char *file)
{
	char loaded[64], installed[64];

	if (doctor_read_line(d, loaded, sizeof(loaded), "/sys/module/rpcrdma/srcversion") ||
	    !modinfo(d, "srcversion", file, installed, sizeof(installed)))
		return;
	if (*installed && strcmp(loaded, installed))
		doctor_add(d, CHECK, DOCTOR_NOTE,
			   RELOAD,
			   "the loaded rpcrdma is not the one that is installed in %s", file);
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

static void check_signature(struct doctor *d, const char *file)
{
	const char *why = wants_signature(d);
	char signer[128];

	if (!why)
		return;
	if (!modinfo(d, "sig_id", file, signer, sizeof(signer)))
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "look at modinfo rpcrdma",
			   "%s, and it is not known whether the module is signed", why);
	else if (!*signer)
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "sign it by a key that the machine trusts: DKMS does, see mokutil(1)",
			   "%s, and the module is not signed", why);
	else
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "%s, and the module is signed", why);
}

/* Names by which mount, nfsd and rdma-core ask for it */

static bool has_alias(const char *text, const char *name)
{
	char line[64];

	snprintf(line, sizeof(line), "alias %s rpcrdma\n", name);
	return strstr(text, line);
}

static void check_aliases(struct doctor *d)
{
	static const char * const names[] = { "rpcrdma6", "svcrdma", "xprtrdma" };
	char path[256], *text;
	size_t i;

	snprintf(path, sizeof(path), "/lib/modules/%s/modules.alias", d->release);
	text = doctor_read(d, path, NULL);
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!text || !has_alias(text, names[i]))
			doctor_add(d, CHECK, DOCTOR_WRONG, "depmod -a",
				   "%s has no alias %s: the kernel cannot load rpcrdma by itself",
				   path, names[i]);
	free(text);
}

/* "install rpcrdma /bin/false" and "blacklist rpcrdma" are ways to switch it off. */
static bool switches_off(char *line)
{
	char *verb = doctor_word(&line);
	char *name = verb ? doctor_word(&line) : NULL;
	char *what = name ? doctor_word(&line) : NULL;

	if (!name || strcmp(name, "rpcrdma"))
		return false;
	if (!strcmp(verb, "blacklist"))
		return true;
	return !strcmp(verb, "install") && what &&
	       (strstr(what, "/false") || strstr(what, "/true"));
}

static void check_modprobe_file(struct doctor *d, const char *folder, const char *name)
{
	char path[512], advice[DOCTOR_TEXT_MAX], *text, *rest, *line;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	text = doctor_read(d, path, NULL);
	if (!text)
		return;
	rest = text;
	while ((line = doctor_line(&rest)))
		if (switches_off(line)) {
			doctor_advise(advice, "remove that line from %s", path);
			doctor_add(d, CHECK, DOCTOR_WRONG, advice,
				   "%s tells modprobe not to load rpcrdma", path);
			break;
		}
	free(text);
}

static void check_modprobe(struct doctor *d)
{
	static const char * const folders[] = {
		"/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d",
	};
	size_t i, n, count;

	for (i = 0; i < ARRAY_SIZE(folders); i++) {
		char **names = doctor_list(d, &count, "%s", folders[i]);

		for (n = 0; n < count; n++)
			if (strlen(names[n]) > 5 &&
			    !strcmp(names[n] + strlen(names[n]) - 5, ".conf"))
				check_modprobe_file(d, folders[i], names[n]);
		doctor_list_free(names, count);
	}
}

void doctor_module(struct doctor *d)
{
	char file[DOCTOR_PATH_MAX] = "";

	doctor_read_line(d, d->release, sizeof(d->release), "/proc/sys/kernel/osrelease");
	d->vendor = doctor_vendor(d, CHECK, DOCTOR_WRONG, d->release);
	if (d->vendor)
		return;
	doctor_module_file(d, d->release, "modules.dep", "rpcrdma", file);
	if (!doctor_is_ours(file))
		doctor_missing(d, CHECK, DOCTOR_WRONG, d->release, file);
	check_loaded(d, file);
	if (!*file)
		return;
	check_version(d, file);
	check_signature(d, file);
	check_aliases(d);
	check_modprobe(d);
}
