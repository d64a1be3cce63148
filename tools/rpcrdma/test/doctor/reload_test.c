// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* rpcrdma reload: when it refuses, what it does in which order, and what it undoes */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"
#include "reload.h"

#define DONE		"/done"		/* what was run, a word for each program */
#define PORTLIST	"/proc/fs/nfsd/portlist"
#define KERNEL_KO	"/lib/modules/6.12.0-test/kernel/net/sunrpc/xprtrdma/rpcrdma.ko"
#define DKMS_KO		"/var/lib/dkms/rpcrdma/0.0/6.12.0-test/x86_64/module/rpcrdma.ko"

/* A program that notes that it was run, and does something */
static void program(const char *name, const char *does)
{
	char script[1024];

	snprintf(script, sizeof(script), "echo \"%s $1\" >>%s" DONE "\nR=%s\n%s", name, d.root,
		 d.root, does);
	plant_program(name, script);
}

/* A server with two clients, nothing mounted, and another build installed than the loaded one */
static void begin_reload(const char *test)
{
	begin(test);
	plant("/proc/self/mountinfo", "22 1 0:2 / / rw - ext4 /dev/sda rw\n");
	plant("/sys/module/rpcrdma/srcversion", "DEF\n");
	plant(PORTLIST, "rdma 20049\nrdma 20049\ntcp 2049\nrdma 5555\n");
	plant(DONE, "");
	answers.of_clients = 2;
	program("rpc.nfsd", "[ $1 = 0 ] || printf 'rdma 20049\\ntcp 2049\\n' >$R" PORTLIST);
	program("rmmod", "");
	program("modprobe", "");
	program("insmod", "");
}

static bool did(const char *words)
{
	char *done = doctor_read(&d, DONE, NULL), *each;
	bool same;

	for (each = done; (each = strchr(each, '\n')); )
		*each = ',';
	same = !strcmp(done, words);
	if (!same)
		printf("# %s\n", done);
	free(done);
	return same;
}

static bool ports_are(const char *ports)
{
	char *now = doctor_read(&d, PORTLIST, NULL);
	bool same = !strcmp(now, ports);

	free(now);
	return same;
}

static void refusals(void)
{
	begin_reload("reload of what runs already");
	plant("/sys/module/rpcrdma/srcversion", "ABC\n");
	expect(reload(&d, false, 0) == RELOAD_OK);
	expect(did(""));

	begin_reload("reload without a loaded module");
	remove_file("/sys/module/rpcrdma");
	expect(reload(&d, true, 0) == RELOAD_REFUSED);
	expect(only("reload", DOCTOR_WRONG, "not loaded"));

	begin_reload("reload by an ordinary user");
	d.privileged = false;
	expect(reload(&d, true, 0) == RELOAD_REFUSED);
	expect(only("reload", DOCTOR_WRONG, "only root"));

	begin_reload("reload with a mount");
	plant("/proc/self/mountinfo",
	      "36 35 0:40 / /a\\040b rw - nfs4 10.17.0.1:/export rw,vers=4.2,proto=rdma\n"
	      "37 35 0:41 / /tcp rw - nfs4 10.17.0.1:/export rw,vers=4.2,proto=tcp\n");
	expect(reload(&d, true, 0) == RELOAD_REFUSED);
	expect(only("reload", DOCTOR_WRONG, "/a b is mounted over RDMA"));
	expect(did(""));

	begin_reload("reload with a container's mount");
	answers.established = 1;
	expect(reload(&d, true, 0) == RELOAD_REFUSED);
	expect(only("reload", DOCTOR_WRONG, "not seen here hold the module: 1 connection to"));

	begin_reload("reload with clients");
	expect(reload(&d, false, 1) == RELOAD_REFUSED);
	expect(only("reload", DOCTOR_WRONG, "2 connections of clients: 10.17.0.3:1, 10.17.0.3:2"));
	expect(did(""));

	begin_reload("reload of a module that does not tell");
	answers.connections = -ENOENT;
	expect(reload(&d, false, 0) == RELOAD_REFUSED);
	expect(only("reload", DOCTOR_WRONG, "does not tell"));

	begin_reload("reload while the NFS server does not answer");
	remove_file(PORTLIST);
	plant(PORTLIST "/folder", "");
	expect(reload(&d, true, 0) == RELOAD_REFUSED);
	expect(only("reload", DOCTOR_UNKNOWN, PORTLIST " cannot be read"));
	expect(did(""));

	begin_reload("reload with nothing installed");
	plant("/lib/modules/6.12.0-test/modules.dep", "");
	expect(reload(&d, true, 0) == RELOAD_REFUSED);
	expect(only("module", DOCTOR_WRONG, "no rpcrdma for kernel 6.12.0-test"));

	begin_reload("reload with a module that the kernel would not take");
	plant("/sys/module/module/parameters/sig_enforce", "Y\n");
	answers.of_clients = 0;
	expect(reload(&d, false, 0) == RELOAD_REFUSED);
	expect(only("module", DOCTOR_WRONG, "sig_enforce"));
	expect(did(""));
}

static void replacements(void)
{
	begin_reload("reload");
	expect(reload(&d, true, 0) == RELOAD_OK);
	expect(did("rpc.nfsd 0,rmmod rpcrdma,modprobe rpcrdma,rpc.nfsd 8,"));
	expect(ports_are("rdma 20049\ntcp 2049\nrdma 5555\n"));

	begin_reload("reload when clients have gone");
	answers.leave = 2;
	expect(reload(&d, false, 5) == RELOAD_OK);
	expect(did("rpc.nfsd 0,rmmod rpcrdma,modprobe rpcrdma,rpc.nfsd 8,"));

	begin_reload("reload beside a server for TCP");
	plant(PORTLIST, "tcp 2049\n");
	expect(reload(&d, false, 0) == RELOAD_OK);
	expect(did("rmmod rpcrdma,modprobe rpcrdma,"));

	begin_reload("reload without a server");
	remove_file("/proc/fs");
	expect(reload(&d, false, 0) == RELOAD_OK);
	expect(did("rmmod rpcrdma,modprobe rpcrdma,"));
}

static void failures(void)
{
	begin_reload("reload of a module that is held");
	d.patience = 100;
	program("rmmod", "echo Module rpcrdma is in use >&2; exit 1");
	expect(reload(&d, true, 0) == RELOAD_FAILED);
	expect(only("reload", DOCTOR_WRONG, "cannot be unloaded: Module rpcrdma is in use"));
	expect(ports_are("rdma 20049\ntcp 2049\nrdma 5555\n"));

	begin_reload("reload, and the new module does not load");
	program("modprobe", "echo Exec format error >&2; exit 1");
	expect(reload(&d, true, 0) == RELOAD_FAILED);
	expect(only("reload", DOCTOR_WRONG, "none is loaded now: Exec format error"));
	expect(did("rpc.nfsd 0,rmmod rpcrdma,modprobe rpcrdma,rpc.nfsd 8,"));

	begin_reload("reload, and the old module is there to be loaded again");
	plant("/sys/module/rpcrdma/srcversion", "ABC\n");
	plant_ko_at(KERNEL_KO);
	program("modprobe", "exit 1");
	expect(reload(&d, true, 0) == RELOAD_FAILED);
	expect(only("reload", DOCTOR_WRONG, "the old one runs again: modprobe ended"));
	expect(ports_are("rdma 20049\ntcp 2049\nrdma 5555\n"));

	begin_reload("reload, and DKMS has the old module");
	plant("/sys/module/rpcrdma/srcversion", "ABC\n");
	plant_ko_at(DKMS_KO);
	program("modprobe", "exit 1");
	expect(reload(&d, true, 0) == RELOAD_FAILED);
	expect(only("reload", DOCTOR_WRONG, "the old one runs again"));

	begin_reload("reload, and no listener");
	remove_file("/programs/rpc.nfsd");
	program("rpc.nfsd", "[ $1 = 0 ] || exit 1; : >$R" PORTLIST);
	expect(reload(&d, true, 0) == RELOAD_FAILED);
	expect(has("reload", DOCTOR_WRONG, "the NFS server does not start"));
	expect(has("reload", DOCTOR_WRONG, "does not listen any more: tcp 2049"));
	expect(ports_are("rdma 20049\nrdma 5555\n"));
}

void reload_tests(void)
{
	refusals();
	replacements();
	failures();
}
