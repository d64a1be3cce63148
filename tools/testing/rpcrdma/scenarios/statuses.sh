# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   whatever status one operation of a device ends with, at either end, no I/O is lost
# guests:  um
# also:    um-debug um-7-smp smp-debug
# devices: mem
# limit:   60
# steps:   statuses
# faults:  connections end in each way

. "${BASH_SOURCE%/*}/../guest/mem.sh"

# Which device, mem0 of the server or mem1 of the client, the operation, and its status.
# The server registers nothing.
CASES="
	mem1 send     retry-exc-err
	mem1 reg      loc-qp-op-err
	mem0 read     rem-access-err
	mem0 send-inv fatal-err
"

statuses() {
	pair_begin
	hard
	# On slower guests the module has waited before it is unloaded.
	! quick || [ "$PACE" -gt 150 ] || unload_late
	pair_end
}

# With a hard mount I/O goes on after each of CASES.
hard() {
	local device op status
	need "mount" nfs_mount 3 rdma /mnt
	while read -r device op status; do
		[ -z "$device" ] || ends_with "$device" "$op" "$status"
	done <<<"$CASES"
	check "umount" umount /mnt
}

# ends_with DEVICE OPERATION STATUS: one operation ends so.
ends_with() {
	local what="$1, $2: $3" before
	before=$(hits "$1")
	need "$what: from now on" fault "$1" "$2" 1 "$3"
	check "$what: I/O goes on, and the data are correct" verified_io
	check "$what: it has happened" met "$1" "$before"
}

# The module waits two seconds for a driver that does not stop a queue pair, and keeps it for good
# then. It cannot keep what it has while it is unloaded.
unload_late() {
	need "mount" nfs_mount 3 rdma /mnt
	need "the server's driver does not stop a queue pair for four seconds" \
		stops_late mem0 80
	# These may not take two seconds. The server's connection ends as the server stops.
	check "stop the server, and unload, which waits until it does" \
		eval "rpc.nfsd 0 && umount /mnt && wait_for 2 unload"
	check "it has not stopped before" is "" "$(cat $MEM_DEBUG/mem0/fault | grep -v '^#')"
	need "listen again" load_and_listen
}
