# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   connections of a server share Receives, also fewer than their credits, or have their own where a device cannot
# guests:  um
# also:    um-7-debug
# devices: mem
# modules: ours
# limit:   240
# steps:   srq
# faults:  connections are broken between the forms
#
#   +------------------------------------+
#   | nfsd, rdma port 20049; mounts      |
#   | rpcrdma: client and server         |
#   | mem0 on lab0: the test device      |
#   | 10.17.0.1, fd17::1                 |
#   +------------------------------------+

. "${BASH_SOURCE%/*}/../guest/mem.sh"
. /lab/guest/tools.sh

srq() {
	need "the program" tool_up
	need "network" net_up
	need "load the test device" modprobe rdma_mem
	need "NFS server" server_up
	over usual both_kinds
	over few-srq-wrs few_receives
	over no-srqs own_receives
	over siw own_receives
	check "remove the network" ip link delete lab0
	check "unload the test device" modprobe -r rdma_mem
	check "stop the NFS server" server_down
}

# over PRESET FUNCTION: with a module that is loaded for it
over() {
	need "$1: the limits of the next device" use_preset "$1"
	need "$1: add the device" rdma_up
	need "$1: rpcrdma is the $MODULE module" right_module
	need "$1: load it, and listen" load_and_listen
	need "$1: share Receives" tune svc_rdma/shared_receives 256
	rm -f "$LOCAL"/*
	attempt "$2" "$1"
	judge "$1"
	need "$1: umount" unmount_all
	check "$1: stop the server" rpc.nfsd 0
	check "$1: no shared Receive is left" wait_for 10 none_shared
	need "$1: unload the module" unload
	check "$1: delete the device" rdma link delete mem0
}

both_kinds() {
	forms_begin
	need "$1: mount v3" nfs_mount 3 rdma /mnt
	check "$1: the connection shares Receives" sharing 1
	every_form "$1" 3
	check "$1: all on one connection, and nothing twice" steady
	need "$1: share none from now on" tune svc_rdma/shared_receives 0
	mkdir -p /mnt4
	need "$1: mount v4.2" nfs_mount 4.2 rdma /mnt4
	check "$1: one connection shares Receives, the other has its own" sharing 1
	check "$1: the other one works" same_sum /mnt/data /mnt4/data
	check "$1: umount v4.2" umount /mnt4
	need "$1: share them again" tune svc_rdma/shared_receives 256
	reconnects "$1: a queue pair goes to error by itself" queue_pair_fatal
	reconnects "$1: the client closes the connection" disconnect
	reconnects "$1: the server's device is deleted and added again" device_bounce
	check "$1: the last connection shares Receives" sharing 1
}

# More credits than Receives: messages that find none are repeated, and credits become few.
few_receives() {
	need "$1: mount v3" nfs_mount 3 rdma /mnt nconnect=16
	check "$1: 64 jobs: verified I/O" \
		fio_verify --direct=1 --bsrange=4k-16k --numjobs=64 --size=128k
	check "$1: each connection shares Receives" sharing 16
	check "$1: there are as many as the device takes at most" \
		[ "$(of_device shared-receives)" -le 32 ]
	check "$1: few were left" [ "$(of_device shared-limits)" -gt 0 ]
	check "$1: no client sent too much" is 0 "$(of_device credits-exceeded)"
	check "$1: all on the same connections, and nothing twice" steady
	say "$1: none was left $(of_device shared-empty) times," \
		"$(counted mem0 rnr_naks) messages were repeated"
}

own_receives() {
	need "$1: mount v3" nfs_mount 3 rdma /mnt
	check "$1: the connection has its own Receives" sharing 0
	check "$1: verified I/O" fio_verify --direct=1 --bsrange=4k-64k --numjobs=8 --size=256k
	check "$1: no Receive is shared" none_shared
}

none_shared() {
	is 0 "$(of_device shared-receives)"
}

# sharing COUNT: how many connections of the server share Receives
sharing() {
	show_is "$1" server 'map(select(."shared-receives")) | length'
}

# of_device ATTRIBUTE
of_device() {
	from_show devices ".[0].\"$1\""
}
