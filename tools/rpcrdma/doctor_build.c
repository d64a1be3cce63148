// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Which modules a kernel has, and what keeps it from having this one. */

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libkmod.h>

#include "doctor.h"

#define DKMS_STATE	"/var/lib/dkms/rpcrdma"
#define BUILD_LOG	DKMS_STATE "/%s/build/make.log"
#define MODULE_KERNEL	"rpcrdma/%s -k %s"
#define INSTALL		"see \"Install\" in " DOCTOR_GUIDE

/* What modprobe takes */

struct kmod_ctx *doctor_modules(struct doctor *d, const char *release)
{
	char folder[256], settings[256];
	const char * const config[] = { settings, NULL };

	setenv("KMOD_LOG", "0", 1);	/* it would complain about other lines of modprobe.d */
	snprintf(folder, sizeof(folder), "%s/lib/modules/%s", d->root, release);
	snprintf(settings, sizeof(settings), "%s/etc/modprobe.d", d->root);
	return kmod_new(folder, *d->root ? config : NULL);
}

bool doctor_module_file(struct doctor *d, const char *release, const char *name,
			char file[DOCTOR_PATH_MAX])
{
	struct kmod_ctx *modules = doctor_modules(d, release);
	struct kmod_module *module = NULL;
	bool built_in = false;
	const char *path;

	*file = 0;
	if (modules && !kmod_module_new_from_name(modules, name, &module)) {
		path = kmod_module_get_path(module) ?: "";
		if (!strncmp(path, d->root, strlen(d->root)))
			path += strlen(d->root);
		snprintf(file, DOCTOR_PATH_MAX, "%s", path);
		built_in = kmod_module_get_initstate(module) == KMOD_MODULE_BUILTIN;
		kmod_module_unref(module);
	}
	kmod_unref(modules);
	return built_in;
}

/* Our module is installed in updates/, by make install as well as by DKMS. */
bool doctor_is_ours(const char *file)
{
	return strstr(file, "/updates/");
}

/*
 * Vendors' RDMA stacks, which replace ib_core and the drivers. The Makefile looks for their
 * files; this sees what modprobe takes and what is loaded.
 */

/* What others are built against, a folder for each kernel */
static bool has_sources(struct doctor *d, const char *release, char what[DOCTOR_TEXT_MAX])
{
	char pattern[256];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/usr/src/ofa_kernel/*/%s", d->root, release);
	if (glob(pattern, 0, NULL, &found))
		return false;
	doctor_advise(what, "there is %s", found.gl_pathv[0] + strlen(d->root));
	globfree(&found);
	return true;
}

static bool has_vendor(struct doctor *d, const char *release, char what[DOCTOR_TEXT_MAX])
{
	char file[DOCTOR_PATH_MAX], kernel[DOCTOR_PATH_MAX], taint[32];

	snprintf(kernel, sizeof(kernel), "/lib/modules/%s/kernel/", release);
	doctor_module_file(d, release, "ib_core", file);
	if (*file && strncmp(file, kernel, strlen(kernel))) {
		doctor_advise(what, "modprobe takes %s", file);
		return true;
	}
	if (!strcmp(release, d->release) &&
	    !doctor_read_line(d, taint, sizeof(taint), "/sys/module/ib_core/taint") &&
	    strchr(taint, 'O')) {
		doctor_advise(what, "the loaded ib_core is not the kernel's");
		return true;
	}
	return has_sources(d, release, what);
}

bool doctor_vendor(struct doctor *d, const char *check, enum doctor_verdict verdict,
		   const char *release)
{
	char what[DOCTOR_TEXT_MAX];

	if (!has_vendor(d, release, what))
		return false;
	doctor_add(d, check, verdict,
		   "do not build rpcrdma against it: remove it as its vendor says, and reboot; see "
		   DOCTOR_GUIDE, "kernel %s has a vendor's RDMA stack: %s", release, what);
	return true;
}

/* DKMS */

bool doctor_dkms(struct doctor *d, char version[DOCTOR_VERSION_MAX])
{
	size_t i, count;
	struct dirent **list = doctor_list(d, &count, "/usr/src");

	*version = 0;
	for (i = 0; i < count; i++)
		if (!strncmp(list[i]->d_name, "rpcrdma-", 8) &&
		    doctor_exists(d, "/usr/src/%s/dkms.conf", list[i]->d_name))
			snprintf(version, DOCTOR_VERSION_MAX, "%s", list[i]->d_name + 8);
	doctor_list_free(list, count);
	return *version;
}

/* Exit codes of the script below */
enum answer {
	ANSWER_YES,
	ANSWER_NO,
	ANSWER_UNKNOWN,
};

/* dkms.conf is a script, which says for each kernel whether to build for it. So ask it. */
static enum answer takes(struct doctor *d, const char *version, const char *release)
{
	static const char script[] = "unset -v UNTESTED PACKAGE_NAME BUILD_EXCLUSIVE_KERNEL\n"
		"kernelver=$2\n"
		". \"$1\" >/dev/null 2>&1\n"
		"[[ ${PACKAGE_NAME:-} = rpcrdma ]] || exit 2\n"
		"[[ -z ${BUILD_EXCLUSIVE_KERNEL:-} || $2 =~ $BUILD_EXCLUSIVE_KERNEL ]]\n";
	char path[512], *output;
	char *const argv[] = { "/bin/bash", "-c", (char *)script, "bash", path,
			       (char *)release, NULL };
	int status;

	snprintf(path, sizeof(path), "%s/usr/src/rpcrdma-%s/dkms.conf", d->root, version);
	if (doctor_run(d, argv, &status, &output))
		return ANSWER_UNKNOWN;
	free(output);
	return status < ANSWER_UNKNOWN ? (enum answer)status : ANSWER_UNKNOWN;
}

/* DKMS keeps the log of the last build that failed. Its first line names the kernel. */
static bool build_failed(struct doctor *d, const char *version, const char *release,
			 char why[DOCTOR_TEXT_MAX])
{
	char path[256], kernel[256], *text, *rest, *line;
	bool failed;

	snprintf(path, sizeof(path), BUILD_LOG, version);
	snprintf(kernel, sizeof(kernel), " for kernel %s (", release);
	text = doctor_read(d, path, NULL);
	if (!text)
		return false;
	rest = text;
	line = doctor_line(&rest);
	failed = line && strstr(line, kernel);
	while (failed && (line = doctor_line(&rest)) && !strcasestr(line, "error"))
		;
	if (failed)
		doctor_advise(why, "DKMS could not build it%s%s", line ? ": " : "", line ?: "");
	free(text);
	return failed;
}

static void dkms_obstacle(struct doctor *d, const char *version, const char *release,
			  struct doctor_obstacle *o)
{
	if (!doctor_exists(d, "/lib/modules/%s/build/Makefile", release)) {
		doctor_advise(o->why, "it has no headers");
		doctor_advise(o->advice, "install the package linux-headers-%s, then dkms install "
			      MODULE_KERNEL, release, version, release);
	} else if (build_failed(d, version, release, o->why)) {
		doctor_advise(o->advice, "look into " BUILD_LOG ", then dkms install "
			      MODULE_KERNEL, version, version, release);
	} else if (doctor_exists(d, DKMS_STATE "/%s/%s", version, release)) {
		doctor_advise(o->why, "DKMS has built it, and it is not in use");
		doctor_advise(o->advice, "dkms build --force " MODULE_KERNEL
			      ", then dkms install --force " MODULE_KERNEL,
			      version, release, version, release);
	} else {
		doctor_advise(o->why, "DKMS has not built it");
		doctor_advise(o->advice, "dkms install " MODULE_KERNEL, version, release);
	}
}

void doctor_obstacle(struct doctor *d, const char *release, struct doctor_obstacle *o)
{
	char version[DOCTOR_VERSION_MAX];
	enum answer answer = doctor_dkms(d, version) ? takes(d, version, release) : ANSWER_UNKNOWN;

	if (answer == ANSWER_YES) {
		dkms_obstacle(d, version, release, o);
	} else if (answer == ANSWER_NO) {
		doctor_advise(o->why, "no test covers this kernel");
		doctor_advise(o->advice, "use a kernel that the tests cover: " INSTALL);
	} else {
		doctor_advise(o->why, "DKMS has no source of it");
		doctor_advise(o->advice,
			      "if the tests cover kernel %s, install its headers and rpcrdma-dkms: "
			      INSTALL, release);
	}
}

void doctor_missing(struct doctor *d, const char *check, enum doctor_verdict verdict,
		    const char *release, const char *file, bool built_in)
{
	struct doctor_obstacle o;

	if (built_in) {
		doctor_add(d, check, verdict, "use a kernel with CONFIG_SUNRPC_XPRT_RDMA=m",
			   "the kernel's own rpcrdma is built into kernel %s", release);
		return;
	}
	doctor_obstacle(d, release, &o);
	if (*file)
		doctor_add(d, check, verdict, o.advice,
			   "for kernel %s modprobe takes the kernel's own rpcrdma: %s",
			   release, o.why);
	else
		doctor_add(d, check, verdict, o.advice, "there is no rpcrdma for kernel %s: %s",
			   release, o.why);
}
