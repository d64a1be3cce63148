// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The kernel's log */

#include <string.h>
#include "lab.h"

/* Lines after the one that says "connected", as of now */
static void log_of(const char *test, const char *lines)
{
	begin(test);
	plant("/dev/kmsg", "6,1,1000,-;rpcrdma: 10.17.0.1:20049: connected on rxe0 port 1\n%s",
	      lines);
	doctor_log(&d);
}

static void errors(void)
{
	log_of("no memory management extensions",
	       "3,2,4000000,-;rpcrdma: mlx4_0: not usable: no memory management extensions\n");
	expect(only("log", DOCTOR_WRONG, "mlx4_0: not usable"));
	log_of("hns", "5,2,4000000,-;rpcrdma: hns_0: not usable by clients: its driver\n");
	expect(only("log", DOCTOR_NOTE, "hns_0: not usable by clients"));
	log_of("a work request failed",
	       "4,2,4000000000,-;rpcrdma: a:20049: work request failed: local protection error\n"
	       " SUBSYSTEM=rpcrdma\n");
	expect(only("log", DOCTOR_WRONG, "a:20049: work request failed: local protection"));
	log_of("it was closed", "6,2,4000000000,-;rpcrdma: 10.0.0.1:20049: closed: -EIO\n");
	expect(only("log", DOCTOR_WRONG, "closed: -EIO"));
	log_of("several",
	       "6,2,4000000000,-;rpcrdma: 10.0.0.1:20049: not connected: -EHOSTUNREACH\n"
	       "6,3,4000000001,-;rpcrdma: 10.0.0.1:20049: not connected: -ETIMEDOUT\n");
	expect(only("log", DOCTOR_WRONG, "-ETIMEDOUT\", 2 such lines"));
	log_of("rejected",
	       "5,2,4000000000,-;rpcrdma: a:1: not connected: -ECONNREFUSED: stale\n");
	expect(only("log", DOCTOR_WRONG, "not connected: -ECONNREFUSED: stale"));
	log_of("rejected, by number",
	       "5,2,4000000000,-;rpcrdma: a:1: not connected: -111: stale\n");
	expect(only("log", DOCTOR_WRONG, "not connected: -111: stale"));
	log_of("another kernel", "3,2,1,-;rpcrdma: disagrees about version of symbol xprt_alloc\n");
	expect(only("log", DOCTOR_WRONG, "disagrees"));
	log_of("no version 2",
	       "5,2,4000000000,-;rpcrdma: 10.0.0.1:20049: no answer in version 2: version 1 for\n");
	expect(only("log", DOCTOR_NOTE, "no answer in version 2"));
}

static void no_errors(void)
{
	log_of("closed as usual",
	       "6,2,4000000000,-;rpcrdma: 10.0.0.1:20049: closed: -ESHUTDOWN\n"
	       "6,2,4000000000,-;rpcrdma: 10.0.0.2:999: closed: -104\n");
	expect(!doctor_exit_code(&d));
	log_of("more than an hour ago",
	       "6,2,4000000,-;rpcrdma: 10.0.0.1:20049: not connected: -EHOSTUNREACH\n");
	expect(!doctor_exit_code(&d));
	log_of("connected again",
	       "6,2,4000000000,-;rpcrdma: 10.0.0.1:20049: not connected: -EHOSTUNREACH\n"
	       "6,3,4000000001,-;rpcrdma: 10.0.0.1:20049: connected on rxe0 port 1: inline\n");
	expect(!doctor_exit_code(&d));
	log_of("another peer is connected",
	       "6,2,4000000000,-;rpcrdma: [fd17::1]:20049: not connected: -EHOSTUNREACH\n"
	       "6,3,4000000001,-;rpcrdma: [fd17::2]:20049: connected on rxe0 port 1: inline\n");
	expect(only("log", DOCTOR_WRONG, "[fd17::1]"));
	log_of("lines of others",
	       "3,2,4000000000,-;nfs: server not usable: no memory;\nrpcrdma: closed: -EIO\n"
	       "3,2,4000000000,-;Not rpcrdma: a: closed: -EIO\n");
	expect(!doctor_exit_code(&d));
}

static void no_log(void)
{
	begin("no log");
	remove_file("/dev/kmsg");
	doctor_examine(&d);
	expect(only("log", DOCTOR_UNKNOWN, "cannot be read"));
	expect(doctor_exit_code(&d) == 2);
}

void log_tests(void)
{
	errors();
	no_errors();
	no_log();
}
