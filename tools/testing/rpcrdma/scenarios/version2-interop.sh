# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   an end of ours that may use version 2 works with the kernel's own module at the other end
# guests:  um
# also:    um-7 debian-6.1
# devices: rxe
# ends:    2
# modules: ours+inbox inbox+ours

server() {
	server_begin
	[ "$MODULE" != ours ] || need "the server may use version 2" tune svc_rdma/version 2
}

client() {
	local vers
	client_begin
	[ "$MODULE" != ours ] || need "the client may use version 2" tune rdma_version 2
	for vers in 3 4.2; do
		need "v$vers: mount, and verified I/O" observed mount_and_verify $vers
		check "v$vers over rdma is what is mounted" mounted_as /mnt $vers rdma
		[ "$MODULE" != ours ] || negotiated "v$vers"
		check "v$vers: a long directory" long_directory /mnt/long
		check "v$vers: a symbolic link" link_to /mnt/link target
		check "v$vers: umount" unmount /mnt
	done
}

# The kernel's own module has no such tracepoints.
observed() {
	if [ "$MODULE" = ours ]; then
		traced "$@"
	else
		"$@"
	fi
}

mount_and_verify() {
	nfs_mount "$1" rdma /mnt && fio_verify --direct=1 --bsrange=512-1m --numjobs=2 --size=2m
}

# The kernel's own server has version 1 alone. The connection may end with that answer.
negotiated() {
	check "$1: one Call in version 2" is 1 "$(calls_traced 2)"
	check "$1: the others in version 1" [ "$(calls_traced 1)" -gt 20 ]
	check "$1: one connection, or two" [ "$(connections_made)" -le 2 ]
	say "$1: $(connections_made) connections"
}
