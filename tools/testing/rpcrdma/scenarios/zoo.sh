# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   I/O in each form works over devices with the limits of different hardware, and between two devices
# guests:  um
# also:    um-7-debug
# devices: mem
# limit:   180
# steps:   zoo
# faults:  connections are broken between the forms

. "${BASH_SOURCE%/*}/../guest/mem.sh"

# The most different ones; the first and the last are of RoCE. All if there are none here.
PRESETS="mlx5 cxgb4 qedr one-sge"

zoo() {
	local preset
	need "network" net_up
	need "load the test device" modprobe rdma_mem
	need "NFS server" server_up
	for preset in ${PRESETS:=$(xargs <$MEM_PARAMETERS/presets)}; do
		try_preset "$preset"
	done
	need "remove the network" ip link delete lab0
	try_pair "${PRESETS%% *}" "${PRESETS##* }"
	try_pair siw cxgb4
	check "stop the NFS server" server_down
}

# try_preset NAME: one device that is both ends'
try_preset() {
	need "$1: the limits of the next device" use_preset "$1"
	need "$1: add the device" rdma_up
	case $1 in
	no-reads) try_devices "$1" without_reads ;;
	*) try_devices "$1" with_reads ;;
	esac
	check "$1: delete the device" rdma link delete mem0
}

# try_pair SERVER CLIENT: each end has a device, with limits of its own.
try_pair() {
	need "load the test device" modprobe rdma_mem
	need "the server's limits" use_preset "$1"
	pair use_preset "$2"
	try_devices "$1 and $2" with_reads
	pair_no_more
}

# try_devices WHAT FUNCTION: what is to work over any device, with a module loaded for it. If it
# does not, the next devices are tried all the same, unless the module is still in use.
try_devices() {
	need "$1: rpcrdma is the $MODULE module" right_module
	need "$1: load it, and listen" load_and_listen
	# nfsd cannot send the long list of by_long_call, which a second one would ask for.
	rm -f "$LOCAL"/*
	attempt "$2" "$1"
	judge "$1"
	need "$1: umount" unmount_all
	check "$1: a mount that is refused fails" refused
	check "$1: stop the server" rpc.nfsd 0
	need "$1: unload the module" unload
}

# Nothing listens there. Some drivers never complete what was posted to such a queue pair.
refused() {
	local PORT=20050
	not nfs_mount 3 rdma /mnt soft,retry=0,timeo=20
}

with_reads() {
	forms_begin
	need "$1: mount v3" nfs_mount 3 rdma /mnt
	every_form "$1" 3
	check "$1: all on one connection, and nothing twice" steady
	reconnects "$1: a queue pair goes to error by itself" queue_pair_fatal
	# RoCE's other ends of a connection are in the scenario mem. sunrpc closes connections of
	# the initial network namespace alone.
	if has_iwarp mem0; then
		[ "$NETNS" ] ||
			reconnects "$1: the client closes the connection" disconnect
		reconnects "$1: the server's device is deleted and added again" device_bounce
	fi
}

# The server cannot read what is not inline. Such a Call has to fail, and not to hang.
without_reads() {
	need "$1: set inline sizes of 1024 octets" small_sizes
	head -c 64k /dev/urandom >/tmp/data
	cp /tmp/data "$LOCAL/data"
	need "$1: mount v3" nfs_mount 3 rdma /mnt
	check "$1: inline_both_ways" by_inline_both_ways
	check "$1: write_chunk" by_write_chunk
	check "$1: read_chunk fails" is 1 "$(by_read_chunk_status)"
	check "$1: the server still has the old data" same_sum /tmp/data "$LOCAL/data"
}

by_read_chunk_status() {
	timeout -s KILL "$(seconds $RECOVERY)" dd if=/dev/zero of=/mnt/data bs=64k count=1 \
		oflag=direct conv=notrunc,nocreat >/dev/null 2>&1
	echo $?
}
