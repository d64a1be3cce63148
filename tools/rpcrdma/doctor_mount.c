// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Do the mounts that asked for RDMA have it? */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <libmount.h>

#include "doctor.h"

#define CHECK	"mount"

static bool is_nfs(struct libmnt_fs *fs)
{
	return mnt_fs_match_fstype(fs, "nfs,nfs4");
}

/* The transport that options name, "" if they name none */
static void proto_of(const char *options, char *proto, size_t size)
{
	char *value = NULL;
	size_t len = 0;

	if (options)
		mnt_optstr_get_option(options, "proto", &value, &len);
	snprintf(proto, size, "%.*s", (int)len, value ?: "");
}

static bool is_rdma(const char *proto)
{
	return !strncmp(proto, "rdma", 4);
}

static bool asks_for_rdma(const char *options)
{
	char proto[16];

	proto_of(options, proto, sizeof(proto));
	return is_rdma(proto) || (options && !mnt_optstr_get_option(options, "rdma", NULL, NULL));
}

/* Says who asked for RDMA, NULL: nobody. libmount keeps the options of the mount command. */
static const char *who_asked(struct libmnt_table *fstab, struct libmnt_fs *fs)
{
	struct libmnt_fs *line = mnt_table_find_target(fstab, mnt_fs_get_target(fs),
						       MNT_ITER_BACKWARD);

	if (line && is_nfs(line) && asks_for_rdma(mnt_fs_get_options(line)))
		return "/etc/fstab";
	return asks_for_rdma(mnt_fs_get_attributes(fs)) ? "the mount command" : NULL;
}

/*
 * The user data of a mount becomes a transport of it that is not RDMA:
 *
 * device server:/export mounted on /mnt with fstype nfs4 statvers=1.1
 *	xprt:	tcp ...
 */
static void read_mountstats(struct libmnt_table *mounts, char *text)
{
	struct libmnt_fs *here = NULL;
	char *line;

	while ((line = doctor_line(&text))) {
		char *word = doctor_word(&line) ?: "";

		if (!strcmp(word, "device")) {
			char *dir = NULL, *name;
			int i;

			for (i = 0; i < 4; i++)
				dir = doctor_word(&line);
			name = dir ? mnt_unmangle(dir) : NULL;
			here = name ? mnt_table_find_target(mounts, name, MNT_ITER_BACKWARD) : NULL;
			free(name);
		} else if (here && !strcmp(word, "xprt:")) {
			char *proto = doctor_word(&line);

			if (proto && !is_rdma(proto))
				mnt_fs_set_userdata(here, proto);
		}
	}
}

/* Returns whether it uses RDMA. */
static bool check_mount(struct doctor *d, struct libmnt_table *fstab, struct libmnt_fs *fs)
{
	const char *dir = mnt_fs_get_target(fs), *other = mnt_fs_get_userdata(fs);
	const char *who = who_asked(fstab, fs);
	char advice[DOCTOR_TEXT_MAX], proto[16];

	proto_of(mnt_fs_get_fs_options(fs), proto, sizeof(proto));
	if (who && !is_rdma(proto)) {
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "umount all that is mounted from that server, then mount this one first",
			   "%s is mounted over %s, and %s asks for RDMA", dir,
			   *proto ? proto : "something else", who);
	} else if (is_rdma(proto) && other) {
		doctor_advise(advice, "umount %s, look at the log, mount it again", dir);
		doctor_add(d, CHECK, DOCTOR_WRONG, advice,
			   "%s is mounted with proto=%s, and has a connection over %s", dir,
			   proto, other);
	}
	return is_rdma(proto) && !other;
}

static void check_mounts(struct doctor *d, struct libmnt_table *fstab, struct libmnt_table *mounts)
{
	size_t rdma = 0, findings = d->count[DOCTOR_WRONG];
	struct libmnt_iter *each = mnt_new_iter(MNT_ITER_FORWARD);
	struct libmnt_fs *fs;

	while (!mnt_table_next_fs(mounts, each, &fs))
		if (is_nfs(fs))
			rdma += check_mount(d, fstab, fs);
	mnt_free_iter(each);
	if (rdma)
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "%zu mount%s RDMA", rdma,
			   rdma == 1 ? " uses" : "s use");
	else if (d->count[DOCTOR_WRONG] == findings)
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "no mount uses RDMA");
}

/* What fstab has mounted at boot */
static void check_missing(struct doctor *d, struct libmnt_table *fstab, struct libmnt_table *mounts)
{
	struct libmnt_iter *each = mnt_new_iter(MNT_ITER_FORWARD);
	char advice[DOCTOR_TEXT_MAX];
	struct libmnt_fs *fs;

	while (!mnt_table_next_fs(fstab, each, &fs)) {
		const char *options = mnt_fs_get_options(fs), *dir = mnt_fs_get_target(fs);

		if (!is_nfs(fs) || !asks_for_rdma(options) ||
		    !mnt_optstr_get_option(options, "noauto", NULL, NULL) ||
		    mnt_table_find_target(mounts, dir, MNT_ITER_BACKWARD))
			continue;
		doctor_advise(advice, "mount %s", dir);
		doctor_add(d, CHECK, DOCTOR_NOTE, advice, "%s of /etc/fstab is not mounted", dir);
	}
	mnt_free_iter(each);
}

void doctor_mounts(struct doctor *d, void (*fn)(struct doctor *d, const char *dir))
{
	struct libmnt_table *mounts = mnt_new_table();
	struct libmnt_iter *each = mnt_new_iter(MNT_ITER_FORWARD);
	char path[DOCTOR_PATH_MAX], proto[16];
	struct libmnt_fs *fs;

	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", d->root);
	mnt_table_parse_mtab(mounts, path);
	while (!mnt_table_next_fs(mounts, each, &fs)) {
		proto_of(mnt_fs_get_fs_options(fs), proto, sizeof(proto));
		if (is_nfs(fs) && is_rdma(proto))
			fn(d, mnt_fs_get_target(fs));
	}
	mnt_free_iter(each);
	mnt_unref_table(mounts);
}

void doctor_mount(struct doctor *d)
{
	struct libmnt_table *fstab = mnt_new_table(), *mounts = mnt_new_table();
	char *stats = doctor_read(d, "/proc/self/mountstats", NULL), path[256];
	int ret;

	snprintf(path, sizeof(path), "%s/etc/fstab", d->root);
	mnt_table_parse_fstab(fstab, path);
	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", d->root);
	ret = mnt_table_parse_mtab(mounts, path);
	if (stats)
		read_mountstats(mounts, stats);
	if (ret) {
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "is /proc mounted?",
			   "/proc/self/mountinfo cannot be read: %s", strerror(abs(ret)));
	} else {
		check_mounts(d, fstab, mounts);
		check_missing(d, fstab, mounts);
	}
	mnt_unref_table(fstab);
	mnt_unref_table(mounts);
	free(stats);
}
