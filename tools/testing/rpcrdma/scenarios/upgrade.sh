# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the module works with itself of an earlier time at the other end, in all NFS versions
# also:    um um-7
# devices: rxe
# ends:    2
# modules: ours+old old+ours
#
# Which commit that is: OLD in rpcrdma_lab/module.py. The guests are those of interop.

client() {
	client_begin
	each_version transfers
}

transfers() {
	check "v$1: verified I/O, 512 B to 1 MiB" fio_verify --direct=1 --bsrange=512-1m --numjobs=2
	check "v$1: a long directory" long_directory /mnt/long
	check "v$1: a symbolic link" link_to /mnt/link target
}
