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
	int number;		/* of a mount's switch; -1: only the address is known */
	struct text address;	/* of the other end */
	char *name;
};

/* From users_get() to users_free() */
struct list {
	struct user *of;
	size_t count;
};

static struct list mounts, clients;	/* these in the order of their addresses */
static bool clients_known;

static void add(struct list *list, int number, struct text address, const char *name)
{
	struct user *more = realloc(list->of, (list->count + 1) * sizeof(*more));
	struct user user = { number, address, strdup(name) };

	if (!more || !user.name)
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
	list->of = more;
	more[list->count++] = user;
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
				add(&mounts, switch_of_mount(mnt_fs_get_devno(fs)),
				    option_of(fs, "addr"), mnt_fs_get_target(fs));
	mnt_free_iter(each);
	mnt_unref_table(table);
}

/* Undo what the kernel does to quotation marks, backslashes and control characters: \xNN */
static void unescape(char *text)
{
	unsigned int octet;
	char *to = text;
	int len;

	while (*text) {
		if (sscanf(text, "\\x%2x%n", &octet, &len) == 1 && octet) {
			*to++ = octet;
			text += len;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

/* The value of a line NAME: "VALUE", or NULL */
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
	unescape(line);
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
			add(&clients, -1, address, value);
	}
	free(line);
	if (file)
		fclose(file);
}

static int compare(const void *a, const void *b)
{
	const struct user *one = a, *other = b;

	return strcmp(one->address.s, other->address.s) ?: strcmp(one->name, other->name);
}

static void get_clients(void)
{
	char folder[PATH_MAX], pattern[PATH_MAX + 8];
	glob_t paths = { };
	size_t i;

	snprintf(folder, sizeof(folder), "%s/proc/fs/nfsd/clients", sock_root());
	clients_known = !access(folder, R_OK | X_OK);
	snprintf(pattern, sizeof(pattern), "%s/*/info", folder);
	glob(pattern, GLOB_NOSORT, NULL, &paths);
	for (i = 0; i < paths.gl_pathc; i++)
		get_client(paths.gl_pathv[i]);
	globfree(&paths);
	if (clients.count)
		qsort(clients.of, clients.count, sizeof(*clients.of), compare);
}

void users_get(bool of_client, bool of_server)
{
	mounts = (struct list){ };
	clients = (struct list){ };
	clients_known = false;
	if (of_client)
		get_mounts();
	if (of_server)
		get_clients();
}

static void free_list(struct list *list)
{
	while (list->count)
		free(list->of[--list->count].name);
	free(list->of);
}

void users_free(void)
{
	free_list(&mounts);
	free_list(&clients);
}

bool users_known(const struct attrs *connection)
{
	return clients_known || connection_is(connection, RPCRDMA_CONNECTION_ROLE_CLIENT);
}

static bool uses(const struct user *mount, const struct attrs *connection)
{
	int number = xprt_switch_of(connection);

	if (mount->number >= 0 && number >= 0)
		return mount->number == number;
	return !strcmp(mount->address.s, connection_address(connection).s);
}

static bool uses_any(const struct user *mount, const struct connections *connections)
{
	unsigned int i;

	for (i = 0; i < connections->count; i++)
		if (uses(mount, connections->of[i]))
			return true;
	return false;
}

/* The first client at an address or at one behind it: there may be thousands of them. */
static size_t find(const char *address)
{
	size_t low = 0, high = clients.count, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (strcmp(clients.of[middle].address.s, address) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void users_of(const struct connections *connections,
	      void (*fn)(const char *name, void *data), void *data)
{
	const struct text address = connection_address(connections->of[0]);
	size_t i;

	if (connection_is(connections->of[0], RPCRDMA_CONNECTION_ROLE_CLIENT)) {
		for (i = 0; i < mounts.count; i++)
			if (uses_any(&mounts.of[i], connections))
				fn(mounts.of[i].name, data);
		return;
	}
	for (i = find(address.s); i < clients.count; i++) {
		if (strcmp(clients.of[i].address.s, address.s))
			break;
		fn(clients.of[i].name, data);
	}
}
