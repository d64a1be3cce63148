// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The module, and the NFS server's listener */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "lab.h"

#define MODULES		"/lib/modules/6.12.0-test/"
#define SECURE_BOOT	"/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

static void all_is_well(void)
{
	begin("a healthy host");
	doctor_examine(&d);
	expect(!doctor_exit_code(&d));
	expect(has("module", DOCTOR_OK, "rpcrdma 0.1 is loaded"));
	expect(has("device", DOCTOR_OK, "rxe0 port 1 on eth0"));
	expect(has("listener", DOCTOR_OK, "20049"));
	expect(has("mount", DOCTOR_OK, "1 mount uses RDMA"));
	expect(has("log", DOCTOR_OK, ""));
	expect(has("firewall", DOCTOR_OK, ""));
	expect(d.count[DOCTOR_NOTE] == 0);
}

static void not_loaded(void)
{
	begin("not loaded");
	remove_file("/sys/module/rpcrdma");
	doctor_examine(&d);
	expect(only("module", DOCTOR_WRONG, "not loaded"));
	expect(doctor_exit_code(&d) == 1);
}

static void not_ours(void)
{
	begin("the kernel's own is loaded");
	plant("/sys/module/rpcrdma/taint", "\n");
	doctor_examine(&d);
	expect(only("module", DOCTOR_WRONG, "the loaded rpcrdma is the kernel's own"));

	begin("the kernel's own is installed alone");
	plant("/sys/module/rpcrdma/taint", "\n");
	plant(MODULES "modules.dep", "kernel/net/sunrpc/xprtrdma/rpcrdma.ko.xz: x\n");
	doctor_module(&d);
	expect(has("module", DOCTOR_WRONG, "modprobe takes the kernel's own"));
	expect(has("module", DOCTOR_WRONG, "the loaded rpcrdma is the kernel's own"));

	begin("built in");
	plant(MODULES "modules.dep", "");
	plant(MODULES "modules.builtin", "kernel/net/sunrpc/xprtrdma/rpcrdma.ko\n");
	remove_file("/sys/module/rpcrdma");
	doctor_module(&d);
	expect(only("module", DOCTOR_WRONG, "built into kernel 6.12.0-test"));

	begin("no module for this kernel");
	plant(MODULES "modules.dep", "updates/other_rpcrdma.ko:\n");
	remove_file("/sys/module/rpcrdma");
	doctor_module(&d);
	expect(only("module", DOCTOR_WRONG, "no rpcrdma for kernel 6.12.0-test"));
}

static void other_version(void)
{
	begin("another version is installed");
	plant("/sys/module/rpcrdma/srcversion", "DEF\n");
	doctor_module(&d);
	expect(only("module", DOCTOR_NOTE, "not the one that is installed"));
	expect(!doctor_exit_code(&d));
}

static void signatures(void)
{
	begin("Secure Boot, and the module's file is not there");
	remove_file(MODULES "updates/rpcrdma.ko");
	plant_octets(SECURE_BOOT, "\6\0\0\0\1", 5);
	doctor_module(&d);
	expect(only("module", DOCTOR_UNKNOWN, "Secure Boot is on"));

	begin("Secure Boot, not signed");
	plant_octets(SECURE_BOOT, "\6\0\0\0\1", 5);
	doctor_module(&d);
	expect(only("module", DOCTOR_WRONG, "Secure Boot is on, and the module is not signed"));

	begin("Secure Boot, signed");
	plant_ko(true);
	plant_octets(SECURE_BOOT, "\6\0\0\0\1", 5);
	doctor_module(&d);
	expect(!doctor_exit_code(&d));
	expect(has("module", DOCTOR_OK, "the module is signed"));

	begin("Secure Boot is off");
	plant_octets(SECURE_BOOT, "\6\0\0\0\0", 5);
	doctor_module(&d);
	expect(!doctor_exit_code(&d));

	begin("locked down");
	plant("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	doctor_module(&d);
	expect(only("module", DOCTOR_WRONG, "locked down"));

	begin("not locked down");
	plant("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
	doctor_module(&d);
	expect(!doctor_exit_code(&d));

	begin("sig_enforce");
	plant("/sys/module/module/parameters/sig_enforce", "Y\n");
	doctor_module(&d);
	expect(only("module", DOCTOR_WRONG, "sig_enforce"));
	expect(advises("sign it by a key that the machine trusts"));
}

static void aliases(void)
{
	begin("no alias");
	plant(MODULES "modules.alias", "alias rpcrdma6 rpcrdma\nalias xprtrdma rpcrdma\n");
	doctor_module(&d);
	expect(only("module", DOCTOR_WRONG, "no alias svcrdma"));
}

static void switched_off(void)
{
	begin("blacklist");
	plant("/etc/modprobe.d/rdma.conf", "# comment\nblacklist rpcrdma\n");
	doctor_module(&d);
	expect(only("module", DOCTOR_WRONG, "modprobe is told not to load rpcrdma: blacklist"));

	begin("install false");
	plant("/etc/modprobe.d/x.conf", "install rpcrdma /bin/false\n");
	doctor_module(&d);
	expect(only("module", DOCTOR_WRONG, "modprobe is told not to load rpcrdma: install"));

	begin("other lines of modprobe.d");
	plant("/etc/modprobe.d/a.conf", "blacklist rpcrdma_other\n#blacklist rpcrdma\n"
	      "install rpcrdma /sbin/modprobe --ignore-install rpcrdma\nblacklist\n");
	plant("/etc/modprobe.d/old", "blacklist rpcrdma\n");
	doctor_module(&d);
	expect(!doctor_exit_code(&d));
}

/* NFS over TCP alone is usual. It is wrong if RDMA was asked for. */
static void listener_by_conf(void)
{
	/* What nfsconf prints; without anything, there is no such setting. */
	static const struct {
		const char *rdma, *port;
		enum doctor_verdict verdict;
	} tests[] = {
		{ "", "", DOCTOR_NOTE },
		{ "n", "20049", DOCTOR_NOTE },
		{ "y", "", DOCTOR_WRONG },
		{ "True", "20049", DOCTOR_WRONG },
		{ "20049", "", DOCTOR_WRONG },
		{ "", "20050", DOCTOR_WRONG },
		{ "", "no", DOCTOR_NOTE },
	};
	char name[64], script[256];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tests); i++) {
		snprintf(script, sizeof(script),
			 "case \"$2 $5\" in\n%s/etc/nfs.conf\\ rdma) set -- '%s' ;;\n"
			 "%s/etc/nfs.conf\\ rdma-port) set -- '%s' ;;\nesac\n[ \"$1\" ] && echo \"$1\"",
			 d.root, tests[i].rdma, d.root, tests[i].port);
		snprintf(name, sizeof(name), "no listener, rdma=%s rdma-port=%s", tests[i].rdma,
			 tests[i].port);
		begin(name);
		plant_program("nfsconf", script);
		plant("/proc/fs/nfsd/portlist", "tcp 2049\nudp 2049\n");
		doctor_examine(&d);
		expect(only("listener", tests[i].verdict, "does not listen for RDMA"));
	}

	begin("no listener, and no nfsconf");
	plant("/proc/fs/nfsd/portlist", "tcp 2049\n");
	doctor_examine(&d);
	expect(only("listener", DOCTOR_NOTE, "does not listen for RDMA"));
	expect(!doctor_exit_code(&d));
}

static void listener_state(void)
{
	begin("a listener waits for a device");
	answers.waits = true;
	doctor_examine(&d);
	expect(only("listener", DOCTOR_WRONG,
		    "the listener at 10.17.0.1:20049 waits for an RDMA device"));
	expect(!has("listener", DOCTOR_OK, ""));

	begin("no module tells about listeners");
	answers.listeners = -ENOENT;
	doctor_examine(&d);
	expect(!doctor_exit_code(&d));
	expect(has("listener", DOCTOR_OK, "20049"));

	begin("what is told about listeners makes no sense");
	answers.listeners = -EPROTO;
	doctor_examine(&d);
	expect(only("listener", DOCTOR_UNKNOWN, "Protocol error"));
}

static void listener_tests(void)
{
	listener_by_conf();
	listener_state();

	begin("another port");
	plant("/proc/fs/nfsd/portlist", "rdma 1234\n");
	doctor_examine(&d);
	expect(only("listener", DOCTOR_NOTE, "1234"));

	begin("the NFS server does not answer");
	d.patience = 250;
	remove_file("/proc/fs/nfsd/portlist");
	plant_pipe("/proc/fs/nfsd/portlist");
	doctor_examine(&d);
	expect(only("listener", DOCTOR_UNKNOWN, "no answer from the NFS server"));

	begin("the NFS server does not run");
	plant("/proc/fs/nfsd/threads", "0\n");
	plant("/proc/fs/nfsd/portlist", "");
	doctor_examine(&d);
	expect(!doctor_exit_code(&d));

	begin("a user who may not read the number of threads");
	remove_file("/proc/fs/nfsd/threads");
	plant("/proc/fs/nfsd/threads/denied", "");
	doctor_examine(&d);
	expect(!doctor_exit_code(&d));
	expect(has("listener", DOCTOR_OK, "20049"));

	begin("no server");
	remove_file("/proc/fs");
	doctor_examine(&d);
	expect(!doctor_exit_code(&d));
	expect(has("listener", DOCTOR_OK, "no NFS server"));
}

void module_tests(void)
{
	all_is_well();
	not_loaded();
	not_ours();
	other_version();
	signatures();
	aliases();
	switched_off();
	listener_tests();
}
