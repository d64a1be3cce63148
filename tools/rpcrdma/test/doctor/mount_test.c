// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Mounts */

#include "lab.h"

static void by_tcp(void)
{
	begin("fstab asks for rdma");
	plant("/etc/fstab", "# fstab\n/dev/sda / ext4 defaults 0 1\n"
	      "server:/a\t/mnt\tnfs\trw,hard,proto=rdma,port=20049\t0 0\n");
	doctor_mount(&d);
	expect(has("mount", DOCTOR_OK, "1 mount uses RDMA"));
	expect(!doctor_exit_code(&d));

	begin("fstab asks for rdma, it is tcp");
	plant("/etc/fstab", "server:/a /mnt nfs4 rdma,port=20049\n");
	plant("/proc/self/mountinfo",
	      "36 35 0:40 / /mnt rw - nfs4 server:/a rw,proto=tcp,port=2049\n");
	doctor_mount(&d);
	expect(only("mount", DOCTOR_WRONG, "/mnt is mounted over tcp, and /etc/fstab asks"));

	begin("the mount command asked for rdma6, it is tcp6");
	plant("/run/mount/utab", "SRC=server:/a TARGET=/mnt ROOT=/ ATTRS=rw,proto=rdma6,hard\n");
	plant("/proc/self/mountinfo", "36 35 0:40 / /mnt rw - nfs server:/a rw,proto=tcp6\n");
	doctor_mount(&d);
	expect(only("mount", DOCTOR_WRONG,
		    "/mnt is mounted over tcp6, and the mount command asks"));

	begin("nobody asked for rdma");
	plant("/etc/fstab", "server:/a /mnt nfs4 proto=tcp\nrdma rdma ext4 rdma\n");
	plant("/proc/self/mountinfo", "36 35 0:40 / /mnt rw - nfs4 server:/a rw,proto=tcp\n");
	doctor_mount(&d);
	expect(has("mount", DOCTOR_OK, "no mount uses RDMA"));
	expect(!doctor_exit_code(&d));
}

static void odd_names(void)
{
	begin("a name with blanks");
	plant("/etc/fstab", "server:/a /my\\040files nfs rdma\n");
	plant("/proc/self/mountinfo",
	      "36 35 0:40 / /my\\040files rw a:1 b:2 - nfs server:/a rw,proto=tcp\n");
	doctor_mount(&d);
	expect(only("mount", DOCTOR_WRONG, "/my files is mounted over tcp"));

	begin("a name that a terminal would obey");
	plant("/etc/fstab", "server:/a /\033[31mred nfs rdma\n");
	plant("/proc/self/mountinfo",
	      "36 35 0:40 / /\033[31mred rw - nfs server:/a rw,proto=tcp\n");
	doctor_mount(&d);
	expect(only("mount", DOCTOR_WRONG, "/?[31mred is mounted over tcp"));
}

static void transports(void)
{
	begin("one of the connections is tcp");
	plant("/proc/self/mountstats", "device proc mounted on /proc with fstype proc\n"
	      "device s:/a mounted on /mnt with fstype nfs4 statvers=1.1\n"
	      "\txprt:\trdma 0 0\n\txprt:\ttcp 0 0\n");
	doctor_mount(&d);
	expect(only("mount", DOCTOR_WRONG,
		    "/mnt is mounted with proto=rdma, and has a connection over tcp"));
}

static void not_mounted(void)
{
	begin("not mounted");
	plant("/etc/fstab", "server:/a /srv nfs rdma\nserver:/b /other nfs rdma,noauto\n");
	doctor_mount(&d);
	expect(only("mount", DOCTOR_NOTE, "/srv of /etc/fstab is not mounted"));

	begin("no /proc");
	remove_file("/proc/self");
	doctor_mount(&d);
	expect(only("mount", DOCTOR_UNKNOWN, "mountinfo cannot be read"));
}

void mount_tests(void)
{
	by_tcp();
	odd_names();
	transports();
	not_mounted();
}
