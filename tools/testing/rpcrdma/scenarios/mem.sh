# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   over a device that forgives nothing, I/O in each form is correct and breaks no rule of verbs
# guests:  um
# also:    um-7 um-7-debug debian-6.1 debian-13-rt arm64-64k
# devices: mem
# limit:   120
# faults:  the device loses connections and completions
#
#   +------------------------------------+
#   | nfsd, rdma port 20049; mount       |
#   | rpcrdma: client and server         |
#   | mem0 on lab0: the test device      |
#   | 10.17.0.1, fd17::1                 |
#   +------------------------------------+

. "${BASH_SOURCE%/*}/../guest/mem.sh"

client() {
	local vers op
	client_begin
	check "an interface has one such device at most" \
		not rdma link add mem1 type mem netdev lab0
	forms_begin
	for vers in 3 4.2; do
		need "mount v$vers" nfs_mount $vers rdma /mnt
		check "v$vers over rdma is what is mounted" mounted_as /mnt $vers rdma
		every_form "v$vers" $vers
		reconnects "v$vers: the client closes the connection" disconnect
		judge "v$vers"
		reconnects "v$vers: and the driver refuses to stop a queue pair for a while" \
			disconnect_late
		judge "v$vers, after that"
		for op in recv send; do
			reconnects "v$vers: the completion of a $op outlives its connection" outlives $op
		done
		judge "v$vers, late completions"
		reconnects "v$vers: the device is deleted and added again" device_bounce
		judge "v$vers, the new device"
		check "umount v$vers" umount /mnt
	done
	need "set inline sizes of 16384 octets" large_sizes
	need "mount with these" nfs_mount 3 rdma /mnt
	check "gathered" traced by_gathered
	used_forms "gathered" inline inline
	check "gathered: the client has not copied the data" [ "$(copied)" -lt 4096 ]
	judge "gathered"
	check "umount" umount /mnt
}

# outlives OPERATION: its completion, and those behind it, come when the connection is closed,
# and a process that has waited for one of them is gone.
outlives() {
	local before reader
	before=$(hits mem0)
	fault mem0 "$1" 1 until-end || return
	met mem0 "$before" || return
	dd if=/mnt/data of=/dev/null bs=64k iflag=direct status=none &
	reader=$!
	sleep 0.2
	kill -KILL $reader
	disconnect
}

disconnect_late() {
	local before
	before=$(hits mem0)
	stops_late mem0 6 && disconnect && is $((before + 6)) "$(hits mem0)"
}
