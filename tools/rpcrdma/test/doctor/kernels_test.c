// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Other installed kernels, what DKMS does for each, and vendors' RDMA stacks */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lab.h"

#define OLDER		"6.12.0-9-amd64"
#define RUNNING		"6.12.0-41-amd64"
#define NEWER		"6.12.0-100-amd64"
#define REFUSED		"7.3.4-rt-amd64"
#define DKMS		"/var/lib/dkms/rpcrdma/0.1/"
#define INBOX		"kernel/net/sunrpc/xprtrdma/rpcrdma.ko.xz: x\n"
#define OURS		"updates/dkms/rpcrdma.ko.xz: x\n"
#define IB_CORE		"kernel/drivers/infiniband/core/ib_core.ko.xz:\n"

/* What DKMS reads. This one takes kernels of 6.12 for amd64 that have no other flavour. */
static const char conf[] =
	"PACKAGE_NAME=rpcrdma\n"
	"BUILD_EXCLUSIVE_KERNEL='^6\\.12\\.[0-9]+-[0-9]+-amd64$'\n";

/* A kernel with its headers; what modprobe takes there */
static void plant_kernel(const char *release, const char *dep)
{
	char path[256];

	snprintf(path, sizeof(path), "/lib/modules/%s/modules.dep", release);
	plant(path, IB_CORE "%s", dep);
	snprintf(path, sizeof(path), "/lib/modules/%s/build/Makefile", release);
	plant(path, "\n");
	snprintf(path, sizeof(path), "/boot/vmlinuz-%s", release);
	plant(path, "\n");
}

/* A host that runs RUNNING, whose module DKMS has built */
static void begin_with_dkms(const char *test)
{
	begin(test);
	plant("/proc/sys/kernel/osrelease", RUNNING "\n");
	plant_kernel(RUNNING, OURS);
	plant("/lib/modules/" RUNNING "/modules.alias",
	      "alias rpcrdma6 rpcrdma\nalias svcrdma rpcrdma\nalias xprtrdma rpcrdma\n");
	plant("/usr/src/rpcrdma-0.1/dkms.conf", "%s", conf);
}

/* No advice at all has that in it. */
static bool advises_nowhere(const char *text)
{
	size_t i;

	for (i = 0; i < d.result_count; i++)
		if (strstr(d.results[i].advice, text))
			return false;
	return true;
}

static void all_have_it(void)
{
	begin_with_dkms("no other kernel");
	doctor_examine(&d);
	expect(!doctor_exit_code(&d) && !d.count[DOCTOR_NOTE]);
	expect(has("kernels", DOCTOR_OK, "no other kernel is installed"));

	begin_with_dkms("a newer kernel and an older one have it");
	plant_kernel(NEWER, OURS);
	plant_kernel(OLDER, OURS);
	doctor_examine(&d);
	expect(!doctor_exit_code(&d) && !d.count[DOCTOR_NOTE]);
	expect(has("kernels", DOCTOR_OK, "2 other kernels have this module"));

	begin_with_dkms("what a removed kernel has left");
	plant("/lib/modules/" NEWER "/updates/dkms/rpcrdma.ko.xz", "\n");
	plant("/lib/modules/" NEWER "/modules.dep", "");
	plant("/boot/vmlinuz-" NEWER ".old", "\n");
	doctor_examine(&d);
	expect(!doctor_exit_code(&d) && !d.count[DOCTOR_NOTE]);
}

static void not_built(void)
{
	begin_with_dkms("nothing is built for a newer kernel");
	plant_kernel(NEWER, INBOX);
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_WRONG, "kernel " NEWER));
	expect(advises("dkms install rpcrdma/0.1 -k " NEWER));

	begin_with_dkms("the same, and /boot is not there");
	plant_kernel(NEWER, INBOX);
	remove_file("/boot");
	plant("/lib/modules/" NEWER "/kernel/net/sunrpc/xprtrdma/rpcrdma.ko.xz", "\n");
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_WRONG, "kernel " NEWER));

	begin_with_dkms("nothing is built for an older kernel");
	plant_kernel(OLDER, INBOX);
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_NOTE, "kernel " OLDER));
	expect(!doctor_exit_code(&d));

	begin_with_dkms("only the newest of two is a finding");
	plant_kernel("6.12.0-99-amd64", INBOX);
	plant_kernel(NEWER, INBOX);
	doctor_examine(&d);
	expect(has("kernels", DOCTOR_WRONG, "kernel " NEWER));
	expect(has("kernels", DOCTOR_NOTE, "kernel 6.12.0-99-amd64"));
	expect(d.count[DOCTOR_WRONG] == 1 && d.count[DOCTOR_NOTE] == 1);

	begin_with_dkms("a newer kernel has none at all");
	plant_kernel(NEWER, "");
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_WRONG, "there is no rpcrdma for kernel " NEWER));

	begin_with_dkms("a newer kernel has it built in");
	plant_kernel(NEWER, "");
	plant("/lib/modules/" NEWER "/modules.builtin", "kernel/net/sunrpc/xprtrdma/rpcrdma.ko\n");
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_WRONG, "built into kernel " NEWER));
	expect(advises_nowhere("dkms"));
}

static void more_than_it_looks_at(void)
{
	char release[64];
	int i;

	begin_with_dkms("a hundred kernels");
	for (i = 0; i < 100; i++) {
		snprintf(release, sizeof(release), "6.12.0-%d-amd64", 1000 + i);
		plant_kernel(release, INBOX);
	}
	doctor_examine(&d);
	expect(has("kernels", DOCTOR_WRONG, "kernel 6.12.0-1099-amd64"));
	expect(d.count[DOCTOR_WRONG] == 1);
	expect(has("log", DOCTOR_OK, ""));
}

/* Why DKMS has not built it */

static void dkms_state(void)
{
	begin_with_dkms("no headers");
	plant_kernel(NEWER, INBOX);
	remove_file("/lib/modules/" NEWER "/build");
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_WRONG, "it has no headers"));
	expect(advises("linux-headers-" NEWER));

	begin_with_dkms("the build failed");
	plant_kernel(NEWER, INBOX);
	plant(DKMS "build/make.log",
	      "DKMS make.log for rpcrdma-0.1 for kernel " NEWER " (x86_64)\ndate\n"
	      "x.c:1:2: error: no member named x\nmake: *** Error 2\n");
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_WRONG, "x.c:1:2: error: no member named x"));
	expect(advises(DKMS "build/make.log"));

	begin_with_dkms("the build failed without a word");
	plant_kernel(NEWER, INBOX);
	plant(DKMS "build/make.log",
	      "DKMS make.log for rpcrdma/0.1 for kernel " NEWER " (x86_64)\n");
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_WRONG, "could not build it"));

	begin_with_dkms("the build for another kernel failed");
	plant_kernel(NEWER, INBOX);
	plant(DKMS "build/make.log",
	      "DKMS make.log for rpcrdma-0.1 for kernel " NEWER "-other (x86_64)\nerror\n");
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_WRONG, "DKMS has not built it"));

	begin_with_dkms("it is built, and not installed");
	plant_kernel(NEWER, INBOX);
	plant(DKMS NEWER "/x86_64/module/rpcrdma.ko.xz", "\n");
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_WRONG, "DKMS has built it, and it is not in use"));
}

/* A package or a command that refuses the kernel is not the remedy. */
static bool advises_no_build(const char *release)
{
	char headers[128];

	snprintf(headers, sizeof(headers), "linux-headers-%s", release);
	return advises_nowhere(headers) && advises_nowhere("dkms install") &&
	       advises_nowhere("install rpcrdma-dkms") && advises_nowhere("make ");
}

static void refused(void)
{
	begin_with_dkms("DKMS refuses a newer kernel");
	plant_kernel(REFUSED, INBOX);
	remove_file("/lib/modules/" REFUSED "/build");
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_WRONG, "no test covers"));
	expect(advises_no_build(REFUSED));

	begin_with_dkms("DKMS refuses the running kernel");
	plant("/proc/sys/kernel/osrelease", REFUSED "\n");
	plant_kernel(REFUSED, INBOX);
	remove_file("/lib/modules/" RUNNING);
	plant("/sys/module/rpcrdma/taint", "\n");
	doctor_examine(&d);
	expect(has("module", DOCTOR_WRONG, "no test covers"));
	expect(has("module", DOCTOR_WRONG, "the loaded rpcrdma is the kernel's own"));
	expect(advises_no_build(REFUSED));

	begin_with_dkms("the log of the running kernel, which DKMS refuses");
	plant("/proc/sys/kernel/osrelease", REFUSED "\n");
	plant_kernel(REFUSED, OURS);
	remove_file("/lib/modules/" RUNNING);
	remove_file("/sys/module/rpcrdma");
	plant("/dev/kmsg", "3,1,4990000000,-;rpcrdma: disagrees about version of symbol x\n");
	doctor_examine(&d);
	expect(has("log", DOCTOR_WRONG, "disagrees"));
	expect(advises_no_build(REFUSED));
	expect(advises_nowhere("build the module"));

	begin_with_dkms("it refuses only while it is asked about that kernel");
	plant("/usr/src/rpcrdma-0.1/dkms.conf",
	      "PACKAGE_NAME=rpcrdma\n"
	      "[[ $kernelver != *-rt-* || $UNTESTED ]] && return\n"
	      "echo no >&2\n"
	      "BUILD_EXCLUSIVE_KERNEL=none\n");
	plant_kernel(REFUSED, INBOX);
	setenv("UNTESTED", "1", 1);
	doctor_examine(&d);
	unsetenv("UNTESTED");
	expect(only("kernels", DOCTOR_WRONG, "no test covers"));
}

static void by_repository(void)
{
	char *path = strdup(getenv("PATH")), at[256];

	setenv("PATH", "/usr/bin:/bin", 1);	/* for what dkms.conf runs */
	begin_with_dkms("the project's own dkms.conf");
	remove_file("/usr/src/rpcrdma-0.1");
	snprintf(at, sizeof(at), "%s/usr/src/rpcrdma-0.1", d.root);
	if (symlink(TOP, at))
		abort();
	plant_kernel("6.2.0-41-amd64", INBOX);
	plant_kernel("6.12.57+deb12-amd64", INBOX);
	doctor_examine(&d);
	expect(has("kernels", DOCTOR_WRONG, "kernel 6.12.57+deb12-amd64"));
	expect(has("kernels", DOCTOR_WRONG, "DKMS has not built it"));
	expect(has("kernels", DOCTOR_NOTE, "no test covers"));
	remove_file("/usr/src/rpcrdma-0.1");
	setenv("PATH", path, 1);
	free(path);
}

/* Without a dkms.conf it is not known which kernels a build would take. */
static void without_dkms(void)
{
	begin_with_dkms("no DKMS, a newer kernel");
	remove_file("/usr/src");
	plant_kernel(NEWER, INBOX);
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_WRONG, "kernel " NEWER));
	expect(advises("if the tests cover kernel " NEWER));

	begin_with_dkms("no DKMS, and this module nowhere");
	remove_file("/usr/src");
	plant_kernel(RUNNING, INBOX);
	plant_kernel(NEWER, INBOX);
	plant("/sys/module/rpcrdma/taint", "\n");
	doctor_examine(&d);
	expect(has("module", DOCTOR_WRONG, "modprobe takes the kernel's own"));
	expect(advises("if the tests cover kernel " RUNNING));
	expect(!has("kernels", DOCTOR_WRONG, ""));

	begin_with_dkms("a dkms.conf that is none");
	plant("/usr/src/rpcrdma-0.1/dkms.conf", "if\n");
	plant_kernel(NEWER, INBOX);
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_WRONG, "kernel " NEWER));
	expect(advises("if the tests cover kernel " NEWER));

	begin_with_dkms("a dkms.conf that never ends");
	d.patience = 250;
	plant("/usr/src/rpcrdma-0.1/dkms.conf", "while :; do :; done\n");
	plant_kernel(NEWER, INBOX);
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_WRONG, "kernel " NEWER));
	expect(advises("if the tests cover kernel " NEWER));

	begin_with_dkms("two versions");
	plant("/usr/src/rpcrdma-0.10/dkms.conf", "%s", conf);
	plant("/usr/src/rpcrdma-0.9/dkms.conf", "%s", conf);
	plant("/usr/src/rpcrdma-old/README", "\n");
	plant_kernel(NEWER, INBOX);
	doctor_examine(&d);
	expect(advises("rpcrdma/0.10 -k " NEWER));
}

/* Vendors' RDMA stacks */

static void vendor(void)
{
	static const char * const files[] = {
		"updates/dkms/ib_core.ko.xz", "updates/ib_core.ko", "extra/ib_core.ko.gz",
		"extra/mlnx-ofa_kernel/drivers/infiniband/core/ib_core.ko.zst",
		"weak-updates/mlnx-ofa_kernel/drivers/infiniband/core/ib_core.ko",
		"updates/kernel/drivers/infiniband/core/ib_core.ko", "/opt/ofed/ib_core.ko",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		begin_with_dkms(files[i]);
		plant("/lib/modules/" RUNNING "/modules.dep", "%s: x\n" INBOX, files[i]);
		remove_file("/sys/module/rpcrdma");
		plant("/dev/kmsg",
		      "3,1,4990000000,-;rpcrdma: disagrees about version of symbol x\n"
		      "3,1,4990000000,-;rpcrdma: Unknown symbol x (err -22)\n");
		doctor_examine(&d);
		expect(only("module", DOCTOR_WRONG, files[i]));
		expect(has("module", DOCTOR_WRONG, "vendor's RDMA stack"));
		expect(advises("do not build rpcrdma against it"));
		expect(advises_no_build(RUNNING) && advises_nowhere("build the module"));
	}

	begin_with_dkms("a vendor's ib_core is loaded");
	plant("/sys/module/ib_core/taint", "OE\n");
	doctor_examine(&d);
	expect(only("module", DOCTOR_WRONG, "loaded ib_core"));

	begin_with_dkms("the sources of a vendor's stack for this kernel");
	plant("/usr/src/ofa_kernel/x86_64/" RUNNING "/Module.symvers", "\n");
	doctor_examine(&d);
	expect(only("module", DOCTOR_WRONG, "/usr/src/ofa_kernel/x86_64/" RUNNING));

	begin_with_dkms("the kernel's own ib_core, and other folders of sources");
	plant("/sys/module/ib_core/taint", "\n");
	plant("/usr/src/ofa_kernel/x86_64/" OLDER "/Module.symvers", "\n");
	plant("/lib/modules/" RUNNING "/modules.dep", IB_CORE OURS "updates/my_ib_core.ko:\n");
	doctor_examine(&d);
	expect(!doctor_exit_code(&d));

	begin_with_dkms("only a newer kernel has a vendor's ib_core");
	plant_kernel(NEWER, INBOX);
	plant("/lib/modules/" NEWER "/modules.dep", "updates/dkms/ib_core.ko.xz: x\n" INBOX);
	doctor_examine(&d);
	expect(only("kernels", DOCTOR_WRONG, "updates/dkms/ib_core.ko.xz"));
	expect(advises_no_build(NEWER));
}

void kernels_tests(void)
{
	all_have_it();
	not_built();
	more_than_it_looks_at();
	dkms_state();
	refused();
	by_repository();
	without_dkms();
	vendor();
}
