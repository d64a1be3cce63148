# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   our client works with the kernel's own server, and its client with our server
# guests:  um um-7+um/ours+inbox um+um-7/inbox+ours
# also:    um-7 um-7+um um+um-7 debian-6.1
# also:    debian-13-7+debian-6.1 debian-6.1+debian-13-7
# also:    arm64-64k+debian-6.12 debian-6.12+arm64-64k
# devices: rxe
# ends:    2
# modules: ours+inbox inbox+ours
#
#   end 1: server                       end 2: client
#   +---------------------------+       +---------------------------+
#   | nfsd, rdma port 20049     |       | mount at /mnt             |
#   | rpcrdma: ours or inbox    |       | rpcrdma: the other one    |
#   | rxe0                      |       | rxe0                      |
#   | 10.17.0.1, fd17::1        |       | 10.17.0.2, fd17::2        |
#   | vec0 (um), eth0 (QEMU) ---|-------|--- vec0, eth0             |
#   +---------------------------+       +---------------------------+

client() {
	local vers
	client_begin
	for vers in 3 4.2; do
		check "mount v$vers" nfs_mount $vers rdma /mnt || continue
		check "v$vers over rdma is what is mounted" mounted_as /mnt $vers rdma
		check "v$vers: verified I/O, 512 B to 1 MiB" fio_verify --direct=1 --bsrange=512-1m --numjobs=2
		check "v$vers: a long directory" long_directory /mnt/long
		check "v$vers: a symbolic link" link_to /mnt/link target
		check "umount v$vers" unmount /mnt
	done
}
