// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * rpcrdma reload: the installed module takes the place of the loaded one. nfsd gives a listener
 * up only when it stops, so it stops, and starts again with as many threads and the same ports.
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "cmd.h"
#include "number.h"
#include "reload.h"
#include "sock.h"

#define CHECK		"reload"
#define SYNOPSIS	"reload [-f|--force] [-w|--wait SECONDS]"
#define PORTLIST	"/proc/fs/nfsd/portlist"
#define THREADS		"/proc/fs/nfsd/threads"
#define GUIDE		"\"Which module is loaded?\" in " DOCTOR_GUIDE
#define PATIENCE_MS	30000	/* for a program, and for the module to be unloaded */
#define WAIT_MAX	86400
#define SECOND		1000000000ULL

/* Connections of the loaded module */
struct users {
	bool unknown;			/* it does not tell */
	size_t clients, servers;	/* at their other ends */
	char peers[DOCTOR_TEXT_MAX];	/* clients, as many as fit */
};

/* What is to be as it was before. reload() owns it, and frees @ports. */
struct before {
	struct doctor_version module;
	char *ports;		/* the NFS server's, one a line; NULL: it does not use the module */
	char threads[16];
};

static void add_user(const struct doctor_connection *connection, void *data)
{
	struct users *users = data;
	size_t len = strlen(users->peers);

	if (connection->client) {
		users->servers++;
		return;
	}
	users->clients++;
	snprintf(users->peers + len, sizeof(users->peers) - len, "%s%s", len ? ", " : "",
		 connection->peer);
}

static struct users users_now(struct doctor *d)
{
	struct users users = { };
	int ret = d->kernel->connections(d, add_user, &users);

	users.unknown = ret;
	return users;
}

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

static void refuse_mount(struct doctor *d, const char *dir)
{
	char advice[DOCTOR_TEXT_MAX];

	doctor_advise(advice, "umount %s", dir);
	doctor_add(d, CHECK, DOCTOR_WRONG, advice, "%s is mounted over RDMA, and holds the module",
		   dir);
}

/* A mount holds the module as long as it is there, connected or not. */
static void check_mounts(struct doctor *d)
{
	size_t findings = d->count[DOCTOR_WRONG];
	struct users users;

	doctor_mounts(d, refuse_mount);
	if (d->count[DOCTOR_WRONG] > findings)
		return;
	users = users_now(d);
	if (users.servers)
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "umount them: in containers, or detached by umount -l? see rpcrdma show client",
			   "mounts that are not seen here hold the module: %zu connection%s to servers",
			   users.servers, plural(users.servers));
}

/* Give clients the time to go. Returns false if some are left and must not be cut off. */
static bool check_clients(struct doctor *d, bool force, unsigned int wait)
{
	uint64_t until = sock_now() + wait * SECOND;
	struct users users = users_now(d);

	while (users.clients && sock_now() < until) {
		sock_sleep(sock_now() + SECOND);
		users = users_now(d);
	}
	if (users.unknown && !force)
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "rpcrdma reload --force: hard mounts go on afterwards, soft ones may fail",
			   "the loaded module does not tell which clients are connected");
	else if (users.clients && !force)
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "--wait SECONDS, or --force: hard mounts go on afterwards, soft ones may fail",
			   "%zu connection%s of clients: %s", users.clients, plural(users.clients),
			   users.peers);
	else if (users.clients)
		printf("Clients are cut off, %zu connection%s: %s\n", users.clients,
		       plural(users.clients), users.peers);
	return force || !(users.unknown || users.clients);
}

/* Run a program. @why gets the last line that it printed if it fails. */
static bool run(struct doctor *d, char why[DOCTOR_TEXT_MAX], char *const argv[])
{
	char *output, *rest, *line;
	int status, ret;

	ret = doctor_run(d, argv, &status, &output);
	if (ret) {
		doctor_advise(why, "%s: %s", argv[0], strerror(-ret));
		return false;
	}
	doctor_advise(why, "%s ended with status %d", argv[0], status);
	rest = output;
	while ((line = doctor_line(&rest)))
		if (*line)
			doctor_advise(why, "%s", line);
	free(output);
	return !status;
}

/* The NFS server */

static bool has_line(const char *list, const char *line)
{
	size_t len = strlen(line), n;

	for (; *list; list += n + (list[n] == '\n')) {
		n = strcspn(list, "\n");
		if (n == len && !memcmp(list, line, n))
			return true;
	}
	return false;
}

static void write_port(struct doctor *d, const char *line)
{
	char path[DOCTOR_PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s" PORTLIST, d->root);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return;
	dprintf(fd, "%s\n", line);
	close(fd);
}

/* A listener that only portlist was told about is in no file that the server starts from. */
static void open_ports(struct doctor *d, char *ports)
{
	char *line, *now, advice[DOCTOR_TEXT_MAX];

	while ((line = doctor_line(&ports))) {
		now = doctor_read_nfsd(d, NULL, PORTLIST);
		if (!strncmp(line, "rdma ", 5) && now && !has_line(now, line)) {
			write_port(d, line);
			free(now);
			now = doctor_read_nfsd(d, NULL, PORTLIST);
		}
		doctor_advise(advice, strncmp(line, "rdma ", 5) ?
			      "start it as before: nfs.conf does not have that" :
			      "when rpcrdma is loaded: echo \"%s\" >" PORTLIST, line);
		if (!now || !has_line(now, line))
			doctor_add(d, CHECK, DOCTOR_WRONG, advice,
				   "the NFS server does not listen any more: %s", line);
		free(now);
	}
}

static void stop_server(struct doctor *d, struct before *before)
{
	char why[DOCTOR_TEXT_MAX];

	if (before->ports && !run(d, why, (char *[]){ "rpc.nfsd", "0", NULL }))
		doctor_add(d, CHECK, DOCTOR_WRONG, "see the log: does a thread of it hang?",
			   "the NFS server does not stop: %s", why);
}

static void start_server(struct doctor *d, struct before *before)
{
	char why[DOCTOR_TEXT_MAX];

	if (!before->ports)
		return;
	if (!run(d, why, (char *[]){ "rpc.nfsd", before->threads, NULL }))
		doctor_add(d, CHECK, DOCTOR_WRONG, "systemctl restart nfs-server",
			   "the NFS server does not start: %s", why);
	open_ports(d, before->ports);
}

/* Only a server that listens for RDMA uses the module. Returns false if it does not tell. */
static bool look_at_server(struct doctor *d, struct before *before)
{
	char *ports;

	if (!doctor_exists(d, PORTLIST))
		return true;
	ports = doctor_read_nfsd(d, CHECK, PORTLIST);
	if (!ports)
		return false;
	if (!strncmp(ports, "rdma ", 5) || strstr(ports, "\nrdma "))
		before->ports = ports;
	else
		free(ports);
	if (!before->ports ||
	    !doctor_read_line(d, before->threads, sizeof(before->threads), THREADS))
		return true;
	doctor_add(d, CHECK, DOCTOR_UNKNOWN, NULL, THREADS " cannot be read");
	return false;
}

/* The module */

/* The last connections end a moment after the server has stopped. */
static bool unload(struct doctor *d, char why[DOCTOR_TEXT_MAX])
{
	uint64_t until = sock_now() + d->patience * (SECOND / 1000);

	while (!run(d, why, (char *[]){ "rmmod", "rpcrdma", NULL })) {
		if (sock_now() >= until)
			return false;
		sock_sleep(sock_now() + SECOND / 5);
	}
	return true;
}

static void load_old(struct doctor *d, struct doctor_version *old, const char *reason)
{
	char why[DOCTOR_TEXT_MAX];

	if (*old->file && run(d, why, (char *[]){ "insmod", old->file, NULL }))
		doctor_add(d, CHECK, DOCTOR_WRONG, "see dmesg; install one that loads, then reload",
			   "the installed module does not load, the old one runs again: %s",
			   reason);
	else
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "see dmesg; install one that loads, modprobe rpcrdma",
			   "the installed module does not load, and none is loaded now: %s",
			   reason);
}

static void replace(struct doctor *d, struct before *before)
{
	char why[DOCTOR_TEXT_MAX];

	if (!unload(d, why))
		doctor_add(d, CHECK, DOCTOR_WRONG, "find out what holds it: " GUIDE,
			   "the loaded module stays, because it cannot be unloaded: %s", why);
	else if (!run(d, why, (char *[]){ "modprobe", "rpcrdma", NULL }))
		load_old(d, &before->module, why);
}

/* Whoever interrupts it, or whose terminal goes, does not want half of it. */
static void complete(struct doctor *d, struct before *before)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGPIPE };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i], SIG_IGN);
	stop_server(d, before);
	replace(d, before);
	start_server(d, before);
}

/* Returns whether there is something to do, or to refuse. */
static bool is_due(struct doctor *d, bool force, struct doctor_version *running)
{
	struct doctor_version installed;

	if (!doctor_running(d, running)) {
		doctor_add(d, CHECK, DOCTOR_WRONG, "modprobe rpcrdma", "rpcrdma is not loaded");
		return true;
	}
	doctor_installed(d, &installed);
	if (!force && *installed.file && !strcmp(running->srcversion, installed.srcversion)) {
		printf("The installed rpcrdma runs already: %s.\n", installed.file);
		return false;
	}
	doctor_find(d, running);
	return true;
}

enum reload reload(struct doctor *d, bool force, unsigned int wait)
{
	struct before before = { };
	char file[DOCTOR_PATH_MAX];
	size_t findings;
	bool loads, known;

	if (!is_due(d, force, &before.module))
		return RELOAD_OK;
	if (!d->privileged && !d->count[DOCTOR_WRONG])
		doctor_add(d, CHECK, DOCTOR_WRONG, "run it as root", "only root may load modules");
	if (d->count[DOCTOR_WRONG])
		return RELOAD_REFUSED;
	check_mounts(d);
	findings = d->count[DOCTOR_WRONG];
	loads = doctor_module_loads(d, file) || (force && *file);
	known = look_at_server(d, &before);
	if (findings || !loads || !known || (before.ports && !check_clients(d, force, wait))) {
		free(before.ports);
		return RELOAD_REFUSED;
	}
	findings = d->count[DOCTOR_WRONG];
	complete(d, &before);
	free(before.ports);
	if (d->count[DOCTOR_WRONG] > findings)
		return RELOAD_FAILED;
	printf("%s is loaded.\n", file);
	return RELOAD_OK;
}

int cmd_reload(int argc, char **argv)
{
	static const struct option options[] = {
		{ "force", no_argument, NULL, 'f' },
		{ "wait", required_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	static struct doctor d;
	bool force = false;
	enum reload result;
	uint32_t wait = 0;
	int option;

	while ((option = getopt_long(argc, argv, "fw:h", options, NULL)) != -1) {
		if (option == 'f')
			force = true;
		else if (option != 'w')
			usage_of(option, STATUS_USAGE, SYNOPSIS);
		else if (!number_parse(optarg, 0, WAIT_MAX, &wait))
			die(STATUS_USAGE, "reload: -w: seconds from 0 to %u (got %s)", WAIT_MAX,
			    optarg);
	}
	if (optind < argc)
		die(STATUS_USAGE, "reload: options alone (got %s)", argv[optind]);
	doctor_init(&d);
	d.root = sock_root();
	d.patience = PATIENCE_MS;
	doctor_programs(&d);
	result = reload(&d, force, wait);
	/* The terminal may be gone. */
	for (size_t i = 0; result == RELOAD_FAILED && i < d.result_count; i++)
		if (d.results[i].verdict == DOCTOR_WRONG)
			syslog(LOG_ERR, "reload: %s -> %s", d.results[i].what, d.results[i].advice);
	doctor_print(&d, true);
	return result;
}
