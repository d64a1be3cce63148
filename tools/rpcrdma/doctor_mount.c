// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Do the mounts that asked for RDMA have it? */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define CHECK		"mount"
#define MOUNTS_MAX	1024

/* A folder of one of the lists. Points into their texts. */
struct mount {
	const char *dir;
	const char *who;	/* says that it is to be over RDMA */
	const char *proto;	/* of mountinfo: tcp, rdma6 ... */
	const char *other;	/* a transport that is not RDMA, of mountstats */
	bool automatic;		/* fstab has it mounted at boot */
	bool mounted;
};

/* Owned by doctor_mount(), which frees the texts */
struct mounts {
	struct mount list[MOUNTS_MAX];
	size_t count;
};

/* Blanks and such are written as \040. In place. */
static char *decode(char *text)
{
	char *from = text, *to = text;

	for (; *from; from++) {
		if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
			*to++ = (from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0');
			from += 3;
		} else {
			*to++ = *from;
		}
	}
	*to = 0;
	return text;
}

static struct mount *find(struct mounts *mounts, char *dir, bool make)
{
	struct mount *one = mounts->list + mounts->count;
	size_t i;

	decode(dir);
	for (i = 0; i < mounts->count; i++)
		if (!strcmp(mounts->list[i].dir, dir))
			return &mounts->list[i];
	if (!make || mounts->count == MOUNTS_MAX)
		return NULL;
	memset(one, 0, sizeof(*one));
	one->dir = dir;
	mounts->count++;
	return one;
}

static bool is_nfs(const char *type)
{
	return type && (!strcmp(type, "nfs") || !strcmp(type, "nfs4"));
}

static bool is_rdma(const char *proto)
{
	return proto && !strncmp(proto, "rdma", 4);
}

/*
 * The value of an option in a list, "" if it has none, or NULL. The list becomes
 * pieces; the last of several options counts.
 */
static const char *option_of(char *list, const char *name)
{
	size_t len = strlen(name);
	const char *value = NULL;
	char *option;

	while ((option = strsep(&list, ",")))
		if (!strncmp(option, name, len) && (!option[len] || option[len] == '='))
			value = option + len + (option[len] == '=');
	return value;
}

static bool asks_for_rdma(const char *options)
{
	char *by_name = strdup(options), *by_proto = strdup(options);
	bool asks = by_name && by_proto &&
		    (option_of(by_name, "rdma") || is_rdma(option_of(by_proto, "proto")));

	free(by_name);
	free(by_proto);
	return asks;
}

/* Who asked */

static void read_fstab(struct mounts *mounts, char *text)
{
	char *line;

	while ((line = doctor_line(&text))) {
		char *source = doctor_word(&line);
		char *dir = source && *source != '#' ? doctor_word(&line) : NULL;
		char *type = dir ? doctor_word(&line) : NULL;
		char *options = is_nfs(type) ? doctor_word(&line) : NULL;
		struct mount *one;

		if (!options || !asks_for_rdma(options))
			continue;
		one = find(mounts, dir, true);
		if (!one)
			return;
		one->who = "/etc/fstab";
		one->automatic = !option_of(options, "noauto");
	}
}

/* utab has the options that a mount was made with: SRC=... TARGET=/mnt ATTRS=... */
static void read_utab(struct mounts *mounts, char *text)
{
	char *line, *word;

	while ((line = doctor_line(&text))) {
		char *dir = NULL, *options = NULL;
		struct mount *one;

		while ((word = doctor_word(&line))) {
			if (!strncmp(word, "TARGET=", 7))
				dir = word + 7;
			else if (!strncmp(word, "ATTRS=", 6))
				options = decode(word + 6);
		}
		if (!dir || !options || !asks_for_rdma(options))
			continue;
		one = find(mounts, dir, true);
		if (one && !one->who)
			one->who = "the mount command";
	}
}

/* What they got */

/* 36 35 0:40 / /mnt rw,relatime shared:1 - nfs4 server:/export rw,vers=4.2,proto=tcp */
static void read_mountinfo(struct mounts *mounts, char *text)
{
	char *line;

	while ((line = doctor_line(&text))) {
		char *dash = strstr(line, " - "), *rest = dash ? dash + 3 : line;
		char *type = dash ? doctor_word(&rest) : NULL;
		char *options = is_nfs(type) && doctor_word(&rest) ? doctor_word(&rest) : NULL;
		char *dir = NULL;
		struct mount *one;
		int i;

		if (!options)
			continue;
		*dash = 0;
		for (i = 0; i < 5; i++)
			dir = doctor_word(&line);
		one = dir ? find(mounts, dir, true) : NULL;
		if (!one)
			continue;
		one->mounted = true;
		one->proto = option_of(options, "proto");
	}
}

/* device server:/export mounted on /mnt with fstype nfs4 statvers=1.1 */
static void read_mountstats(struct mounts *mounts, char *text)
{
	struct mount *here = NULL;
	char *line;

	while ((line = doctor_line(&text))) {
		char *word = doctor_word(&line);

		if (word && !strcmp(word, "device")) {
			char *dir = NULL;
			int i;

			for (i = 0; i < 4; i++)
				dir = doctor_word(&line);
			here = dir ? find(mounts, dir, false) : NULL;
		} else if (here && word && !strcmp(word, "xprt:")) {
			const char *proto = doctor_word(&line);

			if (proto && !is_rdma(proto))
				here->other = proto;
		}
	}
}

/* The results */

static void check_mount(struct doctor *d, const struct mount *one)
{
	char advice[DOCTOR_TEXT_MAX];

	if (one->who && !one->mounted) {
		if (!one->automatic)
			return;
		doctor_advise(advice, "mount %s", one->dir);
		doctor_add(d, CHECK, DOCTOR_NOTE, advice, "%s of /etc/fstab is not mounted",
			   one->dir);
	} else if (one->who && !is_rdma(one->proto)) {
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "umount all that is mounted from that server, then mount this one first",
			   "%s is mounted over %s, and %s asks for RDMA", one->dir,
			   one->proto ?: "something else", one->who);
	} else if (is_rdma(one->proto) && one->other) {
		doctor_advise(advice, "umount %s, look at the log, mount it again", one->dir);
		doctor_add(d, CHECK, DOCTOR_WRONG, advice,
			   "%s is mounted with proto=%s, and has a connection over %s", one->dir,
			   one->proto, one->other);
	}
}

static void check_mounts(struct doctor *d, const struct mounts *mounts)
{
	size_t i, rdma = 0, findings = d->count[DOCTOR_WRONG];

	for (i = 0; i < mounts->count; i++) {
		check_mount(d, &mounts->list[i]);
		rdma += is_rdma(mounts->list[i].proto) && !mounts->list[i].other;
	}
	if (rdma)
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "%zu mount%s RDMA", rdma,
			   rdma == 1 ? " uses" : "s use");
	else if (d->count[DOCTOR_WRONG] == findings)
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "no mount uses RDMA");
	if (mounts->count == MOUNTS_MAX)
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "look at the others in /proc/mounts",
			   "there are more than %d NFS mounts", MOUNTS_MAX);
}

void doctor_mount(struct doctor *d)
{
	static struct mounts mounts;
	char *fstab = doctor_read(d, "/etc/fstab", NULL);
	char *utab = doctor_read(d, "/run/mount/utab", NULL);
	char *info = doctor_read(d, "/proc/self/mountinfo", NULL);
	int error = errno;
	char *stats = doctor_read(d, "/proc/self/mountstats", NULL);

	mounts.count = 0;
	if (fstab)
		read_fstab(&mounts, fstab);
	if (utab)
		read_utab(&mounts, utab);
	if (info)
		read_mountinfo(&mounts, info);
	if (stats)
		read_mountstats(&mounts, stats);
	if (info)
		check_mounts(d, &mounts);
	else
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "is /proc mounted?",
			   "/proc/self/mountinfo cannot be read: %s", strerror(error));
	free(fstab);
	free(utab);
	free(info);
	free(stats);
}
