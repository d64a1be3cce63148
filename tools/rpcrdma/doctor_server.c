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

static void check_portlist(struct doctor *d)
{
	char *list = doctor_read(d, "/proc/fs/nfsd/portlist", NULL);

	if (!list) {
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "run rpcrdma doctor as root",
			   "/proc/fs/nfsd/portlist cannot be read: %s", strerror(errno));
		return;
	}
	d->listens = rdma_port(list);
	free(list);
	if (!d->listens)
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "echo \"rdma 20049\" >/proc/fs/nfsd/portlist, and rdma=y in /etc/nfs.conf",
			   "the NFS server runs and does not listen for RDMA");
	else if (d->listens != 20049)
		doctor_add(d, CHECK, DOCTOR_NOTE, "clients have to name this port: port=",
			   "the NFS server listens for RDMA at port %u, not 20049",
			   d->listens);
	else
		doctor_add(d, CHECK, DOCTOR_OK, NULL,
			   "the NFS server listens for RDMA at port %u", d->listens);
}

void doctor_server(struct doctor *d)
{
	char threads[32];
	int ret = doctor_read_line(d, threads, sizeof(threads), "/proc/fs/nfsd/threads");

	if (ret == -ENOENT)
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "this host is no NFS server");
	else if (ret)
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "run rpcrdma doctor as root",
			   "/proc/fs/nfsd/threads cannot be read: %s", strerror(-ret));
	else if (!strtoul(threads, NULL, 10))
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "no NFS server runs here");
	else
		check_portlist(d);
}
