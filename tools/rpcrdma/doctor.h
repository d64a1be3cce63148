/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the files of `rpcrdma doctor` share. Each check looks at one thing, and
 * adds a result for all that it finds. Nothing that it reads is trusted: files
 * are read up to a limit, programs run for a limited time, and no control
 * character gets from either into the report.
 */
#ifndef RPCRDMA_DOCTOR_H
#define RPCRDMA_DOCTOR_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <netinet/in.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#define DOCTOR_RESULTS_MAX	128
#define DOCTOR_TEXT_MAX		400	/* octets of one line of a result */
#define DOCTOR_FILE_MAX		(4U << 20)
#define DOCTOR_PORTS_MAX	64
#define DOCTOR_COUNTERS_MAX	48
#define DOCTOR_PATH_MAX		256
#define DOCTOR_VERSION_MAX	64

#define DOCTOR_GUIDE	"/usr/share/doc/rpcrdma-tools/admin-guide.rst.gz"

enum doctor_verdict {
	DOCTOR_OK,
	DOCTOR_NOTE,		/* not wrong, but good to know */
	DOCTOR_WRONG,
	DOCTOR_UNKNOWN,		/* could not be checked */
};

/* Lives in struct doctor, and dies with it. */
struct doctor_result {
	const char *check;
	enum doctor_verdict verdict;
	char what[DOCTOR_TEXT_MAX];
	char advice[DOCTOR_TEXT_MAX];	/* what to do about it; "" if ok */
};

/* A port of an RDMA device */
struct doctor_port {
	char device[64];
	unsigned int port;
	char netdev[64];	/* "" if none is known */
	bool active;
	bool iwarp;
	bool infiniband;
	char roce[32];		/* version of RoCE, as GIDs have it; "" if none is known */
};

/* An IP address as 16 octets; IPv4 is mapped. */
struct doctor_address {
	unsigned char ip[16];
};

struct doctor_route {
	char netdev[64];
	struct doctor_address source;
};

/* What data center bridging (DCB) does at a network interface */
struct doctor_dcb {
	uint8_t pfc;		/* a bit for each priority with flow control */
	bool has_dscp;		/* @priority is known */
	uint8_t priority[64];	/* of packets, by DSCP */
};

/* Why a kernel does not have this module */
struct doctor_obstacle {
	char why[DOCTOR_TEXT_MAX];
	char advice[DOCTOR_TEXT_MAX];
};

/* A build of rpcrdma. A text is "" if it is not known; the kernel's own mostly has none. */
struct doctor_version {
	char version[DOCTOR_VERSION_MAX];
	char srcversion[DOCTOR_VERSION_MAX];	/* a hash of the source */
	char file[DOCTOR_PATH_MAX];
};

/* What the loaded module tells about a device */
struct doctor_limits {
	bool fast_registration;
	bool page_list;		/* of a fast registration; always, if it can do none */
	int qps;
	int mrs;
};

struct doctor_connection {
	bool client;		/* this host is */
	bool established;
	const char *peer;
	const char *state;	/* as a word */
	uint64_t age;		/* ms in that state */
};

/* Of one role */
struct doctor_connections {
	size_t count;
	size_t established;
	size_t stuck;		/* in another state for some time */
};

struct doctor;
struct kmod_ctx;
struct kmod_module;

/*
 * How the doctor asks the kernel for what is in no file. Each returns 0 or a
 * negative errno. Tests have their own.
 */
struct doctor_kernel {
	/* How packets to an address leave */
	int (*route)(struct doctor *d, const struct doctor_address *to, struct doctor_route *route);
	/* Calls @fn for each address of this host, with its interface's name. */
	int (*addresses)(struct doctor *d, void (*fn)(const char *netdev,
						      const struct doctor_address *address,
						      void *data), void *data);
	/* -EOPNOTSUPP: the driver has none of it. */
	int (*dcb)(struct doctor *d, const char *netdev, struct doctor_dcb *dcb);
	/* -ENOENT: no loaded module tells about the device. */
	int (*limits)(struct doctor *d, const char *device, struct doctor_limits *limits);
	/*
	 * Calls @fn for each listener of the NFS server, with its address and port, and
	 * whether it waits for a device. -ENOENT: no loaded module tells.
	 */
	int (*listeners)(struct doctor *d,
			 void (*fn)(const char *local, bool waits, void *data), void *data);
	/* Calls @fn for each connection. -ENOENT: no loaded module tells. */
	int (*connections)(struct doctor *d,
			   void (*fn)(const struct doctor_connection *connection, void *data),
			   void *data);
};

extern const struct doctor_kernel doctor_kernel;

/*
 * One visit. cmd_doctor() owns it, no other thread knows it, and it ends with the
 * program. It has nothing to be freed.
 */
struct doctor {
	const char *root;	/* before each path; "" except in tests */
	const char *self;	/* the program, to run its ping */
	const char *host;	/* or NULL */
	char server_port[16];	/* of host; by default 20049 */
	bool privileged;
	int patience;		/* ms that a program or a name may take */
	const struct doctor_kernel *kernel;
	char release[128];	/* of the running kernel */
	bool vendor;		/* it has a vendor's RDMA stack, which has been said */

	struct doctor_port ports[DOCTOR_PORTS_MAX];
	size_t port_count;
	uint64_t counters[DOCTOR_PORTS_MAX][DOCTOR_COUNTERS_MAX];	/* of doctor_fabric() */
	uint64_t counted;	/* when these were read, by sock_now() */
	bool lossy;		/* one of them was not zero */
	bool usable;		/* one of @ports is */
	bool silent;		/* no loaded module tells about connections */
	struct doctor_connections clients, servers;	/* by this host's role */
	unsigned int listens;	/* port of this server's listener; 0: none */
	bool no_listener;	/* no client can connect, though the server is to listen for RDMA */

	struct doctor_result results[DOCTOR_RESULTS_MAX];
	size_t result_count;
	size_t count[DOCTOR_UNKNOWN + 1];	/* by verdict */
};

/* doctor.c */

/**
 * doctor_init - begin a visit of this host, without the way to any other
 */
void doctor_init(struct doctor *d);

/**
 * doctor_programs - before the first doctor_run(): what it runs is found, and speaks English
 */
void doctor_programs(const struct doctor *d);

/**
 * doctor_examine - make all checks
 */
void doctor_examine(struct doctor *d);

enum doctor_health { HEALTH_OK, HEALTH_DEGRADED, HEALTH_DOWN, HEALTH_UNKNOWN };

/**
 * doctor_health - make the checks about now that need neither root nor traffic
 *
 * Return: HEALTH_DOWN if this host cannot be a client, or the server that it is to be: no module
 * of this project is loaded, no device is usable, all connections to servers are stuck, or the NFS
 * server has no listener though it is to have one. HEALTH_DEGRADED with other findings.
 */
enum doctor_health doctor_health(struct doctor *d);

/**
 * doctor_print - print the results
 * @quiet: only what is wrong or unknown
 */
void doctor_print(const struct doctor *d, bool quiet);

/**
 * doctor_json - the results as an array
 */
struct json_t *doctor_json(const struct doctor *d, bool quiet);

/**
 * doctor_add - add a result
 * @check: name of the check, of static storage
 * @advice: what to do about it, or NULL
 * @format: what is so
 *
 * Control characters and what is not ASCII become question marks, and what does
 * not fit is cut off.
 */
void doctor_add(struct doctor *d, const char *check, enum doctor_verdict verdict,
		const char *advice, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/**
 * doctor_advise - print advice that has something variable in it
 *
 * Return: @text, for doctor_add()
 */
const char *doctor_advise(char text[DOCTOR_TEXT_MAX], const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * doctor_exit_code - 0 if all is well, 1 with findings, 2 if something could
 * not be checked and the rest is well
 */
int doctor_exit_code(const struct doctor *d);

/* doctor_read.c */

/**
 * doctor_read - read a file
 * @path: without the root
 * @len: octets read, may be NULL
 *
 * Return: what it has, up to DOCTOR_FILE_MAX octets and then a NUL, to be freed
 * by the caller. NULL with errno set if it cannot be read.
 */
char *doctor_read(struct doctor *d, const char *path, size_t *len);

/**
 * doctor_read_line - read the first line of a file
 * @line: gets it, without the newline; "" if it cannot be read
 * @size: of @line
 *
 * Return: 0 or a negative errno.
 */
int doctor_read_line(struct doctor *d, char *line, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/**
 * doctor_exists - whether there is such a file
 */
bool doctor_exists(struct doctor *d, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/**
 * doctor_list - what is in a folder, by version, without names that begin with a dot
 * @count: how many, 0 if there is no such folder
 *
 * Return: the entries, for doctor_list_free().
 */
struct dirent **doctor_list(struct doctor *d, size_t *count, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void doctor_list_free(struct dirent **list, size_t count);

/**
 * doctor_line - the next line of a text
 * @text: a pointer into the text, is moved behind the line
 *
 * Return: the line, whose newline is now a NUL, or NULL at the end.
 */
char *doctor_line(char **text);

/**
 * doctor_word - the next word of a line, likewise
 */
char *doctor_word(char **line);

/**
 * doctor_field - the value of "NAME: VALUE" or "NAME  VALUE" in a text
 * @text: may be NULL
 *
 * Return: a pointer into the text, or NULL.
 */
const char *doctor_field(const char *text, const char *name);

/**
 * doctor_run - run a program
 * @argv: its name, which is looked for in PATH, and its arguments
 * @status: its exit status; 128 or more if it was killed
 * @output: what it printed to standard output and standard error, up to a limit,
 *	to be freed by the caller
 *
 * Return: 0, -ENOENT if there is no such program, -ETIMEDOUT if it was killed
 * because it took longer than d->patience, or another negative errno. @output
 * is set only if it is 0. What was killed may take another second to die; then
 * it is left behind.
 */
int doctor_run(struct doctor *d, char *const argv[], int *status, char **output);

/* doctor_build.c */

/**
 * doctor_modules - what modprobe sees of the modules of a kernel
 *
 * Return: for kmod_unref(), or NULL.
 */
struct kmod_ctx *doctor_modules(struct doctor *d, const char *release);

/**
 * doctor_module_file - the file that modprobe takes for a module of a kernel
 * @name: of the module
 * @file: gets the path, without the root; "" if there is none
 *
 * Return: whether the kernel has the module built in.
 */
bool doctor_module_file(struct doctor *d, const char *release, const char *name,
			char file[DOCTOR_PATH_MAX]);

/**
 * doctor_is_ours - whether that file is this module, not the kernel's own
 */
bool doctor_is_ours(const char *file);

/**
 * doctor_dkms - the newest version of this module whose source DKMS has
 *
 * Return: whether there is one.
 */
bool doctor_dkms(struct doctor *d, char version[DOCTOR_VERSION_MAX]);

/**
 * doctor_obstacle - why a kernel does not have this module, and what to do
 *
 * It is not advised to build for a kernel that DKMS would refuse.
 */
void doctor_obstacle(struct doctor *d, const char *release, struct doctor_obstacle *o);

/**
 * doctor_missing - add the result that a kernel does not have this module
 * @file: the kernel's own, "" if there is none
 * @built_in: the kernel's own is
 */
void doctor_missing(struct doctor *d, const char *check, enum doctor_verdict verdict,
		    const char *release, const char *file, bool built_in);

/**
 * doctor_vendor - look for a vendor's RDMA stack, and add the result if there is one
 *
 * Return: whether there is one.
 */
bool doctor_vendor(struct doctor *d, const char *check, enum doctor_verdict verdict,
		   const char *release);

/* doctor_versions.c */

/**
 * doctor_modinfo - the value of a field of a module's file, "" if it has none
 *
 * Return: false if it cannot be told.
 */
bool doctor_modinfo(struct kmod_module *module, const char *field, char *value, size_t size);

/**
 * doctor_running - the build that is loaded, whose file is not known
 *
 * Return: whether there is one.
 */
bool doctor_running(struct doctor *d, struct doctor_version *v);

/**
 * doctor_installed - the build that modprobe takes for the running kernel, and its file
 *
 * Return: whether there is one.
 */
bool doctor_installed(struct doctor *d, struct doctor_version *v);

/**
 * doctor_find - look for a file of that build which modprobe does not take
 * @v: its file gets the path, with the root; it is "" before, and if there is none
 */
void doctor_find(struct doctor *d, struct doctor_version *v);

/* doctor_module.c */

/**
 * doctor_module_loads - what of doctor_module() is about the file that modprobe takes
 * @file: gets its path, "" if there is none
 *
 * Return: false with a finding.
 */
bool doctor_module_loads(struct doctor *d, char file[DOCTOR_PATH_MAX]);

/* doctor_mount.c: calls @fn for each mount over RDMA */
void doctor_mounts(struct doctor *d, void (*fn)(struct doctor *d, const char *dir));

/* doctor_server.c */

/**
 * doctor_read_nfsd - read a file of /proc/fs/nfsd
 * @check: adds a result if that is not possible; NULL: it does not
 *
 * Return: what it has, to be freed by the caller, or NULL.
 */
char *doctor_read_nfsd(struct doctor *d, const char *check, const char *path);

/* doctor_counters.c: read the counters that doctor_loss() compares */
void doctor_count(struct doctor *d);

/* doctor_kernel.c: false if that is no IP address, or NULL */
bool doctor_address(const struct sockaddr *from, struct doctor_address *to);

/* doctor_status.c: functions of doctor_kernel, by the family rpcrdma of netlink */
int doctor_status_limits(struct doctor *d, const char *device, struct doctor_limits *limits);
int doctor_status_listeners(struct doctor *d,
			    void (*fn)(const char *local, bool waits, void *data), void *data);
int doctor_status_connections(struct doctor *d,
			      void (*fn)(const struct doctor_connection *connection, void *data),
			      void *data);

/*
 * The checks, each in a file of its name. Later ones use what doctor_device() and
 * doctor_server() have found.
 */

void doctor_module(struct doctor *d);
void doctor_kernels(struct doctor *d);
void doctor_device(struct doctor *d);
void doctor_memlock(struct doctor *d);	/* doctor_device.c */
void doctor_fabric(struct doctor *d);
void doctor_loss(struct doctor *d);	/* doctor_counters.c; after doctor_fabric() */
void doctor_server(struct doctor *d);
void doctor_clients(struct doctor *d);
void doctor_firewall(struct doctor *d);
void doctor_route(struct doctor *d);
void doctor_mount(struct doctor *d);
void doctor_connection(struct doctor *d);
void doctor_log(struct doctor *d);

#endif
