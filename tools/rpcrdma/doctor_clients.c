// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* How many more connections this host's NFS server can take, and what the limit is */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "doctor.h"

#define CHECK		"clients"
#define CONN_KIB	803	/* an end of a used connection over siw, by performance.rst */
/* What the module leaves at least, and at most */
#define RESERVE_MIN_KIB	(32 * 1024UL)
#define RESERVE_MAX_KIB	(1024 * 1024UL)
#define REQUESTS	64	/* max_requests by default */

#define GUIDE		"see \"Thousands of clients\" in " DOCTOR_GUIDE

/* What the server has, and the lowest limit of all; on the stack of doctor_clients() */
struct room {
	unsigned long qps;	/* of all devices, not in use */
	unsigned long conns;	/* for which iWARP devices have registrations; others need none */
	unsigned long used;	/* queue pairs in use, about one for each connection */
	bool known;		/* this module tells about a device */
	unsigned long threads;	/* of the NFS server, 0: not known */
	unsigned long least;
	const char *what;
	const char *advice;
};

static void limit(struct room *room, unsigned long most, const char *what, const char *advice)
{
	if (room->what && most >= room->least)
		return;
	room->least = most;
	room->what = what;
	room->advice = advice;
}

static unsigned long left(unsigned long all, unsigned long used)
{
	return all > used ? all - used : 0;
}

/* What `rdma resource` counts, to be freed; NULL: nothing is known to be in use. */
static json_t *resources(struct doctor *d)
{
	char *const argv[] = { "rdma", "-j", "resource", "show", NULL };
	char *output;
	json_t *list;
	int status;

	if (doctor_run(d, argv, &status, &output))
		return NULL;
	list = json_loads(output, 0, NULL);
	free(output);
	return list;
}

static unsigned long in_use(const json_t *list, const char *device, const char *kind)
{
	json_int_t count;
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		const char *name = json_string_value(json_object_get(one, "ifname"));

		if (name && !strcmp(name, device)) {
			count = json_integer_value(json_object_get(one, kind));
			return count > 0 ? count : 0;
		}
	}
	return 0;
}

static unsigned long max_requests(struct doctor *d)
{
	char line[32];

	doctor_read_line(d, line, sizeof(line), "/proc/sys/sunrpc/svc_rdma/max_requests");
	return strtoul(line, NULL, 10) ?: REQUESTS;
}

static void count_device(struct doctor *d, const struct doctor_port *port, const json_t *list,
			 struct room *room)
{
	unsigned long used = in_use(list, port->device, "qp"), qps;
	struct doctor_limits limits;

	if (d->kernel->limits(d, port->device, &limits))
		return;
	room->known = true;
	room->used += used;
	qps = left(limits.qps, used);
	room->qps += qps;
	if (port->iwarp)
		room->conns += left(limits.mrs, in_use(list, port->device, "mr")) / max_requests(d);
	else
		room->conns += qps;
}

static void count_devices(struct doctor *d, struct room *room)
{
	json_t *list = resources(d);
	size_t i;

	for (i = 0; i < d->port_count; i++)
		if (!i || strcmp(d->ports[i].device, d->ports[i - 1].device))
			count_device(d, &d->ports[i], list, room);
	json_decref(list);
	limit(room, room->qps, "queue pairs",
	      "look for a limit in the driver or firmware of the device");
	limit(room, room->conns, "registrations of iWARP devices",
	      "set sunrpc.svc_rdma.max_requests lower; " GUIDE);
}

static void count_memory(struct doctor *d, struct room *room)
{
	char *text = doctor_read(d, "/proc/meminfo", NULL);
	const char *total = doctor_field(text, "MemTotal");
	const char *available = doctor_field(text, "MemAvailable");

	if (total && available) {
		unsigned long reserve = strtoul(total, NULL, 10) / 32;

		if (reserve < RESERVE_MIN_KIB)
			reserve = RESERVE_MIN_KIB;
		if (reserve > RESERVE_MAX_KIB)
			reserve = RESERVE_MAX_KIB;
		limit(room, left(strtoul(available, NULL, 10), reserve) / CONN_KIB, "memory",
		      "add memory, or use fewer connections; " GUIDE);
	}
	free(text);
}

/* Later kernels do not count connections that have used a file. */
static void count_nfsd(struct doctor *d, struct room *room)
{
	unsigned int major = 0, minor = 0;
	unsigned long most;
	char *text;

	if (sscanf(d->release, "%u.%u", &major, &minor) != 2 || major > 6 ||
	    (major == 6 && minor >= 12))
		return;
	text = doctor_read_nfsd(d, CHECK, "/proc/fs/nfsd/max_connections");
	if (!text)
		return;
	most = strtoul(text, NULL, 10);
	free(text);
	if (!most && room->threads)
		most = 20 * room->threads + 60;
	if (most)
		limit(room, left(most, room->used), "max_connections of nfsd",
		      "echo 65535 >/proc/fs/nfsd/max_connections");
}

/* Only root may read them, and without their number the rest is the same. */
static unsigned long threads_of(struct doctor *d)
{
	char *text = doctor_read_nfsd(d, NULL, "/proc/fs/nfsd/threads");
	unsigned long threads = text ? strtoul(text, NULL, 10) : 0;

	free(text);
	return threads;
}

void doctor_clients(struct doctor *d)
{
	struct room room = {};
	char threads[64] = "";

	if (!d->listens)
		return;
	count_devices(d, &room);
	if (!room.known)	/* the kernel's own module needs other amounts */
		return;
	room.threads = threads_of(d);
	if (room.threads)
		snprintf(threads, sizeof(threads), "; nfsd has %lu threads", room.threads);
	count_memory(d, &room);
	count_nfsd(d, &room);
	if (room.least)
		doctor_add(d, CHECK, DOCTOR_OK, NULL,
			   "room for about %lu more connections in use: the limit is %s%s",
			   room.least, room.what, threads);
	else
		doctor_add(d, CHECK, DOCTOR_WRONG, room.advice,
			   "the server has no room for another connection: the limit is %s",
			   room.what);
}
