# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   mount over RDMA with every NFS version, over IPv4 and IPv6, and verified I/O
# guests:  um um-7-debug/rxe debian-6.1/1 debian-6.12/1 um-7/1 debian-13-arm64-16k/1
# also:    um/mem um-debug/rxe um-7-debug debian-6.1 debian-13/1 debian-13-7/1 debian-13-arm64/1
# also:    debian-13-rt/1 debian-13-7-rt/1 arm64-64k/1 s390x/1
# also:    arm64-64k+debian-6.12 debian-6.12+arm64-64k
# devices: rxe siw mem
# ends:    1 2
# skip:    * siw * inbox: siw may not deliver a first message, and only ours has a workaround
# skip:    * mem * inbox: it posts Receives again without a sync, which the test device reports
#
# In one guest:                       In two guests:
#
#   server and client                 end 1: server             end 2: client
#   +-------------------------+       +-------------------+     +-------------------+
#   | nfsd, rdma port 20049   |       | nfsd, port 20049  |     | mount at /mnt     |
#   | mount at /mnt           |       | rxe0 or siw0      |     | rxe0 or siw0      |
#   | rxe0 or siw0            |       | 10.17.0.1         |     | 10.17.0.2         |
#   | 10.17.0.1, fd17::1      |       | fd17::1           |     | fd17::2           |
#   | lab0, a dummy interface |       | vec0 or eth0 -----|-----|-- vec0 or eth0    |
#   +-------------------------+       +-------------------+     +-------------------+

client() {
	local vers netid versions="3 4.0 4.1 4.2"
	# It runs each day, and slowly; arm64-64k has all versions.
	[ "$GUEST" != debian-13-arm64-16k ] || versions="3 4.2"
	client_begin
	for netid in rdma rdma6; do
		for vers in $versions; do
			check "mount v$vers over $netid" nfs_mount $vers $netid /mnt || continue
			check "v$vers over $netid is what is mounted" mounted_as /mnt $vers $netid
			check "write, read and remove a file" use_a_file /mnt
			[ "$vers $netid" != "4.2 rdma" ] ||
				check "verified I/O, 512 B to 1 MiB" \
					fio_verify --direct=1 --bsrange=512-1m --numjobs=2 --size=2m
			check "umount" unmount /mnt
		done
	done
}

use_a_file() {
	echo "hello $1" >"$1/hello" && grep -q hello "$1/hello" && rm "$1/hello"
}
