// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Do the other installed kernels have this module? One of them may be started next. */

#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define CHECK		"kernels"
#define KERNELS_MAX	16	/* that are looked at, the newest ones */

static int newest_first(const void *a, const void *b)
{
	return -strverscmp(*(char * const *)a, *(char * const *)b);
}

/* A kernel that was removed may leave its folder behind, with modules that were added. */
static bool is_installed(struct doctor *d, const char *release)
{
	return doctor_exists(d, "/boot/vmlinuz-%s", release) ||
	       doctor_exists(d, "/lib/modules/%s/vmlinuz", release) ||
	       doctor_exists(d, "/lib/modules/%s/kernel", release);
}

static bool has_ours(struct doctor *d, const char *release, char file[DOCTOR_PATH_MAX])
{
	*file = 0;
	doctor_module_file(d, release, "modules.dep", "rpcrdma", file);
	return doctor_is_ours(file);
}

/* Where this module is not meant to be, its lack is no finding for each kernel. */
static bool is_wanted(struct doctor *d)
{
	char version[DOCTOR_VERSION_MAX], file[DOCTOR_PATH_MAX];

	return doctor_dkms(d, version) || has_ours(d, d->release, file);
}

/* Boot loaders start the newest kernel, unless they are told otherwise. */
static bool look_at(struct doctor *d, const char *release, bool newest)
{
	enum doctor_verdict verdict = newest && strverscmp(release, d->release) > 0 ?
				      DOCTOR_WRONG : DOCTOR_NOTE;
	char file[DOCTOR_PATH_MAX];

	if (doctor_vendor(d, CHECK, verdict, release))
		return false;
	if (has_ours(d, release, file))
		return true;
	doctor_missing(d, CHECK, verdict, release, file);
	return false;
}

void doctor_kernels(struct doctor *d)
{
	size_t i, count, others = 0, good = 0;
	char **names;

	if (d->vendor || !is_wanted(d))
		return;
	names = doctor_list(d, &count, "/lib/modules");
	if (count)
		qsort(names, count, sizeof(*names), newest_first);
	for (i = 0; i < count && others < KERNELS_MAX; i++)
		if (strcmp(names[i], d->release) && is_installed(d, names[i]))
			good += look_at(d, names[i], !others++);
	doctor_list_free(names, count);
	if (!others)
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "no other kernel is installed");
	else if (good)
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "%zu other kernel%s this module", good,
			   good == 1 ? " has" : "s have");
}
