// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Do the other installed kernels have this module? One of them may be started next. */

#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define CHECK		"kernels"
#define KERNELS_MAX	16	/* that are looked at, the newest ones */

/* A kernel that was removed may leave its folder behind, with modules that were added. */
static bool is_installed(struct doctor *d, const char *release)
{
	return doctor_exists(d, "/boot/vmlinuz-%s", release) ||
	       doctor_exists(d, "/lib/modules/%s/vmlinuz", release) ||
	       doctor_exists(d, "/lib/modules/%s/kernel", release);
}

/* Where this module is not meant to be, its lack is no finding for each kernel. */
static bool is_wanted(struct doctor *d)
{
	char version[DOCTOR_VERSION_MAX], file[DOCTOR_PATH_MAX];

	doctor_module_file(d, d->release, "rpcrdma", file);
	return doctor_is_ours(file) || doctor_dkms(d, version);
}

/* Boot loaders start the newest kernel, unless they are told otherwise. */
static bool look_at(struct doctor *d, const char *release, bool newest)
{
	enum doctor_verdict verdict = newest && strverscmp(release, d->release) > 0 ?
				      DOCTOR_WRONG : DOCTOR_NOTE;
	char file[DOCTOR_PATH_MAX];
	bool built_in;

	if (doctor_vendor(d, CHECK, verdict, release))
		return false;
	built_in = doctor_module_file(d, release, "rpcrdma", file);
	if (doctor_is_ours(file))
		return true;
	doctor_missing(d, CHECK, verdict, release, file, built_in);
	return false;
}

void doctor_kernels(struct doctor *d)
{
	size_t i, count, others = 0, good = 0;
	struct dirent **list;

	if (d->vendor || !is_wanted(d))
		return;
	list = doctor_list(d, &count, "/lib/modules");
	for (i = count; i && others < KERNELS_MAX; i--) {	/* the newest one first */
		const char *release = list[i - 1]->d_name;

		if (strcmp(release, d->release) && is_installed(d, release))
			good += look_at(d, release, !others++);
	}
	doctor_list_free(list, count);
	if (!others)
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "no other kernel is installed");
	else if (good)
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "%zu other kernel%s this module", good,
			   good == 1 ? " has" : "s have");
}
