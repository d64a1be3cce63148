// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What the kernel's log says about rpcrdma since it was cleared. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "doctor.h"

#define CHECK		"log"
#define RECORD_MAX	(8192 + 1024)	/* octets of one in /dev/kmsg */
#define READ_MAX	(64U << 20)	/* octets of the log */
#define RECENT		3600		/* s */
#define LINE_SHOWN	300
#define GUIDE		"see \"Log lines\" in " DOCTOR_GUIDE

/* Lines that tell of a problem */
static const struct sign {
	const char *text;
	const char *advice;	/* NULL: the module was not built for this kernel */
	enum doctor_verdict verdict;
	bool lasting;		/* until the module is loaded again, however old */
} signs[] = {
	{ "not usable: no memory management extensions", "use another device, or TCP",
	  DOCTOR_WRONG, true },
	{ "not usable by clients", "for mounts use another device, or TCP", DOCTOR_NOTE, true },
	{ "not usable: no memory;", "modprobe -r rpcrdma, modprobe rpcrdma", DOCTOR_WRONG, true },
	{ "disagrees about version of symbol", NULL, DOCTOR_WRONG, true },
	{ "Unknown symbol", NULL, DOCTOR_WRONG, true },
	{ "work request failed", "look at the network and at the other end; " GUIDE,
	  DOCTOR_WRONG, false },
	{ "does not stop the queue pair",
	  "look for lines of the device's driver, and restart this machine when that suits",
	  DOCTOR_WRONG, false },
	{ "too many connection requests wait", "look whether nfsd has enough threads",
	  DOCTOR_WRONG, false },
	{ "too little memory for another connection",
	  "add memory, or use fewer connections: nconnect=1; " GUIDE, DOCTOR_WRONG, false },
	{ "not connected: -ECONNREFUSED", "does the server listen at that port?",
	  DOCTOR_WRONG, false },
	{ "not connected: -111", "does the server listen at that port?", DOCTOR_WRONG, false },
	{ "not connected: ", "look at network and firewall; " GUIDE, DOCTOR_WRONG, false },
	{ "closed: ", GUIDE ", \"Errors in the log\"", DOCTOR_WRONG, false },
	{ "no answer in version 2", "set sunrpc.rdma_version to 1 for such servers",
	  DOCTOR_NOTE, false },
};

/* The last line with a sign */
struct hit {
	char line[LINE_SHOWN];
	char peer[64];		/* its address, "" if it is about none */
	unsigned int count;
};

struct log {
	double now;		/* s since the boot */
	struct hit hits[ARRAY_SIZE(signs)];
};

/* The address in "rpcrdma: ADDRESS:PORT: text" */
static void peer_of(const char *text, char *peer, size_t size)
{
	const char *end = strstr(text, ": ");
	const char *colon = end ? memrchr(text, ':', end - text) : NULL;

	snprintf(peer, size, "%.*s", colon ? (int)(colon - text) : 0, text);
}

/* Ends that were meant */
static bool is_usual(const char *text)
{
	static const char * const ends[] = {
		"closed: -ESHUTDOWN", "closed: -ECONNRESET", "closed: -108", "closed: -104",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ends); i++)
		if (strstr(text, ends[i]))
			return true;
	return false;
}

/* What went wrong with a peer before it was connected again is past. */
static void forget(struct log *log, const char *peer)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(signs); i++)
		if (*peer && !strcmp(log->hits[i].peer, peer))
			log->hits[i].count = 0;
}

static void read_text(struct log *log, const char *text, double age)
{
	char peer[64];
	size_t i;

	peer_of(text, peer, sizeof(peer));
	if (strstr(text, ": connected on ") || strstr(text, ": accepted on "))
		forget(log, peer);
	if (is_usual(text))
		return;
	for (i = 0; i < ARRAY_SIZE(signs); i++) {
		struct hit *hit = &log->hits[i];

		if (!strstr(text, signs[i].text) || (age > RECENT && !signs[i].lasting))
			continue;
		hit->count++;
		snprintf(hit->line, sizeof(hit->line), "%s", text);
		snprintf(hit->peer, sizeof(hit->peer), "%s", peer);
		return;
	}
}

/* PRIORITY,SEQUENCE,MICROSECONDS,FLAGS;TEXT */
static void read_record(struct log *log, const char *record)
{
	const char *text = strchr(record, ';');
	const char *comma = text ? memchr(record, ',', text - record) : NULL;
	double when;

	comma = comma ? memchr(comma + 1, ',', text - comma - 1) : NULL;
	if (!comma || strncmp(text + 1, "rpcrdma: ", 9))
		return;
	when = strtoull(comma + 1, NULL, 10) / 1e6;
	read_text(log, text + 10, log->now - when);
}

/* EPIPE: some records were overwritten meanwhile. */
static int read_log(struct log *log, FILE *file, int patience)
{
	time_t end = time(NULL) + patience / 1000 + 1;
	char line[RECORD_MAX];
	size_t total = 0;

	while (total < READ_MAX && time(NULL) < end) {
		if (fgets(line, sizeof(line), file)) {
			total += strlen(line);
			line[strcspn(line, "\n")] = 0;
			read_record(log, line);
		} else if (ferror(file) && (errno == EPIPE || errno == EINTR)) {
			clearerr(file);
		} else {
			return feof(file) || errno == EAGAIN ? 0 : -errno;
		}
	}
	return 0;
}

static void report(struct doctor *d, const struct log *log)
{
	size_t i, findings = d->count[DOCTOR_WRONG];
	struct doctor_obstacle obstacle;

	for (i = 0; i < ARRAY_SIZE(signs); i++) {
		const struct hit *hit = &log->hits[i];
		const char *advice = signs[i].advice;

		if (!hit->count || (!advice && d->vendor))
			continue;
		if (!advice) {
			doctor_obstacle(d, d->release, &obstacle);
			advice = obstacle.advice;
		}
		if (hit->count == 1)
			doctor_add(d, CHECK, signs[i].verdict, advice, "\"%s\"", hit->line);
		else
			doctor_add(d, CHECK, signs[i].verdict, advice,
				   "\"%s\", %u such lines", hit->line, hit->count);
	}
	if (d->count[DOCTOR_WRONG] == findings)
		doctor_add(d, CHECK, DOCTOR_OK, NULL,
			   "the kernel's log has no error of rpcrdma in the last hour");
}

/* A read() of /dev/kmsg gives one record, if there is room for it. */
static FILE *open_log(struct doctor *d)
{
	static char room[RECORD_MAX];
	char path[PATH_MAX];
	FILE *file;
	int fd;

	snprintf(path, sizeof(path), "%s/dev/kmsg", d->root);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return NULL;
	lseek(fd, 0, SEEK_DATA);	/* what came after the last dmesg --clear */
	file = fdopen(fd, "r");
	if (file)
		setvbuf(file, room, _IOFBF, sizeof(room));
	return file;
}

void doctor_log(struct doctor *d)
{
	static struct log log;
	FILE *file = open_log(d);
	int ret = file ? 0 : -errno;
	char uptime[64];

	memset(&log, 0, sizeof(log));
	doctor_read_line(d, uptime, sizeof(uptime), "/proc/uptime");
	log.now = strtod(uptime, NULL);
	if (file) {
		ret = read_log(&log, file, d->patience);
		fclose(file);
	}
	if (ret)
		doctor_add(d, CHECK, DOCTOR_UNKNOWN, "run rpcrdma doctor as root",
			   "the kernel's log cannot be read: %s", strerror(-ret));
	else
		report(d, &log);
}
