// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Does this host's NFS server listen for RDMA? */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define CHECK	"listener"

/* The port of the first line "rdma PORT", 0 if there is none */
static unsigned int rdma_port(char *list)
{
	unsigned int port = 0;
	char *line;

	while (!port && (line = doctor_line(&list)))
		if (!strncmp(line, "rdma ", 5))
			port = strtoul(line + 5, NULL, 10);
	return port;
}

static bool is_no(const char *value)
{
	static const char * const words[] = { "", "n", "no", "0", "f", "false", "off" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcasecmp(value, words[i]))
			return true;
	return false;
}

/* A setting of [nfsd] in nfs.conf and nfs.conf.d. Returns whether there is one. */
static bool setting(struct doctor *d, const char *name, char *value, size_t size)
{
	char file[256], *output;
	char *const argv[] = { "nfsconf", "--file", file, "--get", "nfsd", (char *)name, NULL };
	int status;

	snprintf(file, sizeof(file), "%s/etc/nfs.conf", d->root);
	if (doctor_run(d, argv, &status, &output))
		return false;
	snprintf(value, size, "%.*s", (int)strcspn(output, "\n"), output);
	free(output);
	return !status;
}

/* rdma= is yes or, in old files, a port. */
static bool is_wanted(struct doctor *d)
{
	char value[64];

	if (setting(d, "rdma", value, sizeof(value)))
		return !is_no(value);
	return setting(d, "rdma-port", value, sizeof(value)) && !is_no(value);
}

static void check_wishes(struct doctor *d)
{
	d->no_listener = is_wanted(d);
	if (d->no_listener)
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "systemctl restart nfs-server, or echo \"rdma 20049\" >/proc/fs/nfsd/portlist",
			   "the NFS server runs and does not listen for RDMA, as nfs.conf asks it to");
	else
		doctor_add(d, CHECK, DOCTOR_NOTE,
			   "if it is to: rdma=y for [nfsd] in /etc/nfs.conf, systemctl restart nfs-server",
			   "the NFS server runs and does not listen for RDMA");
}

static void cannot_read(struct doctor *d, const char *check, const char *path, const char *why,
			bool hangs)
{
	if (hangs)
		doctor_add(d, check, DOCTOR_UNKNOWN,
			   "does rpc.nfsd or nfsdctl hang? see ps and the log",
			   "%s cannot be read: no answer from the NFS server", path);
	else
		doctor_add(d, check, DOCTOR_UNKNOWN, "run rpcrdma doctor as root",
			   "%s cannot be read: %s", path, why);
}

/*
 * The kernel has a lock around these files, which a program that hangs may hold. So another
 * process reads them.
 */
char *doctor_read_nfsd(struct doctor *d, const char *check, const char *path)
{
	char full[256], *text = NULL;
	char *const argv[] = { "/bin/cat", full, NULL };
	int status = 0, ret;

	snprintf(full, sizeof(full), "%s%s", d->root, path);
	ret = doctor_run(d, argv, &status, &text);
	if (!ret && !status)
		return text;
	if (check)
		cannot_read(d, check, path, text ?: strerror(-ret), ret == -ETIMEDOUT);
	free(text);
	return NULL;
}

/* The port list of nfsd has a listener whether it listens or not. */
static void check_listener(const char *local, bool waits, void *data)
{
	struct doctor *d = data;

	d->no_listener &= waits;
	if (waits)
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "have a device for that address: see rdma link, ip address; then wait 5 s",
			   "the listener at %s waits for an RDMA device, so no client can connect",
			   local);
}

static void check_listeners(struct doctor *d)
{
	int ret;

	d->no_listener = true;
	ret = d->kernel->listeners(d, check_listener, d);
	d->no_listener &= !ret;
	if (ret && ret != -ENOENT)
		doctor_add(d, CHECK, DOCTOR_UNKNOWN,
			   "install rpcrdma-tools of the same version as the module",
			   "the state of the listeners cannot be read: %s", strerror(-ret));
}

static void check_port(struct doctor *d)
{
	size_t findings = d->count[DOCTOR_WRONG];

	check_listeners(d);
	if (d->listens != 20049)
		doctor_add(d, CHECK, DOCTOR_NOTE, "clients have to name this port: port=",
			   "the NFS server listens for RDMA at port %u, not 20049", d->listens);
	else if (d->count[DOCTOR_WRONG] == findings)
		doctor_add(d, CHECK, DOCTOR_OK, NULL,
			   "the NFS server listens for RDMA at port %u", d->listens);
}

/* Other users than root may read this list, and not /proc/fs/nfsd/threads. */
void doctor_server(struct doctor *d)
{
	char *list;

	if (!doctor_exists(d, "/proc/fs/nfsd/portlist")) {
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "this host is no NFS server");
		return;
	}
	list = doctor_read_nfsd(d, CHECK, "/proc/fs/nfsd/portlist");
	if (!list)
		return;
	d->listens = rdma_port(list);
	if (d->listens)
		check_port(d);
	else if (*list)
		check_wishes(d);
	else
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "no NFS server runs here");
	free(list);
}
