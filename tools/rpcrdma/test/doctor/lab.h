/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A host for the doctor to look at: a folder with the files that it reads, the
 * programs that it runs, and the kernel's answers. It begins as one where all is
 * well, and a test plants what is wrong.
 */
#ifndef RPCRDMA_DOCTOR_TEST_LAB_H
#define RPCRDMA_DOCTOR_TEST_LAB_H

#include <stdbool.h>
#include "doctor.h"

extern struct doctor d;		/* of the present test */

/* What the kernel answers */
struct answers {
	int route;			/* 0 or a negative errno */
	const char *route_netdev;
	const char *source;
	const char *netdev;		/* that has an address, or NULL */
	int dcb;
	struct doctor_dcb bridging;
	int limits;
	struct doctor_limits device;
	int listeners;
	bool waits;			/* the only listener, for a device */
	int connections;
	unsigned int established;	/* connections to a server */
	unsigned int resolving_for;	/* ms; others, or 0: none */
	unsigned int resolving, servers;	/* how many these are, and of how many servers */
	unsigned int of_clients;	/* connections of a server, of one client */
	unsigned int leave;		/* after so many questions these are gone, or 0 */
};

extern struct answers answers;

/*
 * plant() writes a file below the root, with its folders, and for modules.dep, modules.alias and
 * modules.builtin the index as well, as depmod does. remove_file() removes a file or a folder.
 */
void plant(const char *path, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void plant_pipe(const char *path);	/* that nobody writes to */
void plant_octets(const char *path, const void *octets, size_t len);
void remove_file(const char *path);

/* The installed file of the module; with a signature behind it, or without */
void plant_ko(bool is_signed);
void plant_ko_at(const char *path);	/* the same, elsewhere and not signed */

/* index.c: what depmod writes for one of its text files */
void write_index(const char *path, const char *text);

/* A shell script as a program in the only folder of PATH */
void plant_program(const char *name, const char *script);

/* A device with one port on an interface that is up */
void plant_device(const char *device, const char *netdev, const char *node_type);

/* Make the host healthy, and the doctor new. */
void begin(const char *test);
void end(void);

/* There is a result of that check and verdict with that text in it. */
bool has(const char *check, enum doctor_verdict verdict, const char *text);

/* The only result that is not ok */
bool only(const char *check, enum doctor_verdict verdict, const char *text);

/* What it advises for the only thing that is not ok has that text in it. */
bool advises(const char *text);

/* A step of a test. If it fails, the results are printed. */
#define expect(condition)	expect_at(condition, #condition, __FILE__, __LINE__)
void expect_at(bool holds, const char *what, const char *file, int line);

/* Tests, each in a file of its name */
void module_tests(void);
void kernels_tests(void);
void device_tests(void);
void clients_tests(void);
void mount_tests(void);
void fabric_tests(void);
void route_tests(void);
void firewall_tests(void);
void connection_tests(void);
void log_tests(void);
void hostile_tests(void);
void report_tests(void);
void reload_tests(void);

#endif
