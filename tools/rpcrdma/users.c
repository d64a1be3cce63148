// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <errno.h>
#include <glob.h>
#include <libmount.h>
#include <limits.h>
#include <linux/rpcrdma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "cmd.h"
#include "sock.h"
#include "users.h"
#include "xprt_switch.h"

struct user {
	bool mounts;
	int number;		/* of its switch; -1: only the address is known */
	struct text address;	/* of the other end */
	char *name;
};

static struct user *users;
static size_t count;

static void add(bool mounts, int number, struct text address, const char *name)
{
	struct user *more = realloc(users, (count + 1) * sizeof(*more));
	struct user user = { mounts, number, address, strdup(name) };

	if (!more || !user.name)
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
	users = more;
	users[count++] = user;
}

/* The NFS client's folder of a superblock has links to its RPC clients, and these to the switch. */
static int switch_of_mount(dev_t dev)
{
	char path[PATH_MAX], target[PATH_MAX];
	const char *name;
	ssize_t len;
	int number;

	snprintf(path, sizeof(path), "%s/sys/fs/nfs/%u:%u/nfs_client/switch", sock_root(),
		 major(dev), minor(dev));
	len = readlink(path, target, sizeof(target) - 1);
	if (len < 0)
		return -1;
	target[len] = '\0';
	name = strrchr(target, '/');
	return name && sscanf(name, "/switch-%d", &number) == 1 ? number : -1;
}

static struct text option_of(struct libmnt_fs *fs, const char *name)
{
	const char *options = mnt_fs_get_fs_options(fs) ?: "";
	char *value = NULL;
	size_t len = 0;

	mnt_optstr_get_option(options, name, &value, &len);
	return fmt_print("%.*s", (int)len, value ?: "");
}

static void get_mounts(void)
{
	struct libmnt_table *table = mnt_new_table();
	struct libmnt_iter *each = mnt_new_iter(MNT_ITER_FORWARD);
	char path[PATH_MAX];
	struct libmnt_fs *fs;

	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", sock_root());
	if (table && each && !mnt_table_parse_file(table, path))
		while (!mnt_table_next_fs(table, each, &fs))
			if (mnt_fs_match_fstype(fs, "nfs,nfs4") &&
			    !strncmp(option_of(fs, "proto").s, "rdma", 4))
				add(true, switch_of_mount(mnt_fs_get_devno(fs)),
				    option_of(fs, "addr"), mnt_fs_get_target(fs));
	mnt_free_iter(each);
	mnt_unref_table(table);
}

/* The value of a line NAME: "VALUE", in which the kernel has escaped quotation marks, or NULL */
static char *quoted(char *line, const char *name)
{
	size_t len = strlen(name);

	if (strncmp(line, name, len))
		return NULL;
	line += len;
	line[strcspn(line, "\n")] = '\0';
	len = strlen(line);
	if (len < 2 || line[len - 1] != '"')
		return NULL;
	line[len - 1] = '\0';
	return line;
}

static void get_client(const char *path)
{
	FILE *file = fopen(path, "r");
	struct text address = { };
	size_t size = 0;
	char *line = NULL, *value;

	while (file && getline(&line, &size, file) > 0) {
		value = quoted(line, "address: \"");
		if (value)
			address = address_of(value);
		value = quoted(line, "name: \"");
		if (value)
			add(false, -1, address, value);
	}
	free(line);
	if (file)
		fclose(file);
}

static void get_clients(void)
{
	char pattern[PATH_MAX];
	glob_t paths = { };
	size_t i;

	snprintf(pattern, sizeof(pattern), "%s/proc/fs/nfsd/clients/*/info", sock_root());
	glob(pattern, GLOB_NOSORT, NULL, &paths);
	for (i = 0; i < paths.gl_pathc; i++)
		get_client(paths.gl_pathv[i]);
	globfree(&paths);
}

void users_get(bool mounts, bool clients)
{
	users = NULL;
	count = 0;
	if (mounts)
		get_mounts();
	if (clients)
		get_clients();
}

void users_free(void)
{
	while (count)
		free(users[--count].name);
	free(users);
}

static bool uses(const struct user *user, const struct attrs *connection)
{
	if (user->mounts != connection_is(connection, RPCRDMA_CONNECTION_ROLE_CLIENT))
		return false;
	if (user->number >= 0)
		return user->number == xprt_switch_of(connection);
	return !strcmp(user->address.s, connection_address(connection).s);
}

void users_of(const struct connections *connections,
	      void (*fn)(const char *name, void *data), void *data)
{
	unsigned int i;
	size_t n;

	for (n = 0; n < count; n++) {
		for (i = 0; i < connections->count; i++)
			if (uses(&users[n], connections->of[i]))
				break;
		if (i < connections->count)
			fn(users[n].name, data);
	}
}
