# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   posts that fail, completions that are late, datagrams that are lost: no I/O is lost
# also:    um um-7-debug um-7-smp
# devices: mem
# limit:   400
# steps:   posts
# faults:  posts, completions and datagrams are lost

. "${BASH_SOURCE%/*}/../guest/mem.sh"

posts() {
	local device
	pair_begin
	need "mount" nfs_mount 3 rdma /mnt
	for device in mem0 mem1; do
		refused $device
		late $device
		broken $device
	done
	check "umount" unmount /mnt
	for device in mem0 mem1; do
		datagrams $device
	done
	gone
	pair_end
}

# endures DEVICE WHAT OP NTH ACTION...: one fault, and I/O that must go on
endures() {
	local what="$1, $2" before
	before=$(hits "$1")
	need "$what: from now on" fault "$1" "${@:3}"
	check "$what: I/O goes on, and the data are correct" io_meets "$1" "$before"
	check "$what: it has happened" met "$1" "$before"
}

# io_meets DEVICE HITS: I/O until there are more hits, ten times at most. One time has few
# operations of some kinds.
io_meets() {
	local n
	for n in {1..10}; do
		verified_io || return
		! more_hits "$@" || return 0
	done
}

# refused DEVICE: a post fails, as if there were no memory.
refused() {
	local op nth
	for op in post-send post-recv; do
		for nth in 1 2 3 5; do
			endures "$1" "$op number $nth fails" $op $nth nomem
		done
	done
}

# late DEVICE: completions come when there are some more in the same queue, which other I/O
# causes, or when they are asked for.
late() {
	local op ops="send-inv write read recv"
	[ "$1" = mem0 ] || ops="send reg local-inv recv"
	for op in $ops; do
		survives "$1: the completion of a $op is late" happens "$1" "$op" 1 late 3
	done
	for op in $ops; do
		held "$1" "$op"
	done
}

# held DEVICE OPERATION: no completion comes until it is asked for. What waits for it may
# wait, and no longer.
held() {
	local what="$1, the completion of a $2 is held" before writer
	before=$(hits "$1")
	need "$what: from now on" fault "$1" "$2" 1 hold
	verified_io >/tmp/held.log 2>&1 &
	writer=$!
	check "$what: it is" met "$1" "$before"
	sleep 1
	check "$what: let go of it" release "$1"
	wait $writer
	check "$what: I/O goes on, and the data are correct" is 0 $?
}

# broken DEVICE: a queue pair reports that it is in error, between two operations.
broken() {
	local nth op=send
	[ "$1" = mem1 ] || op=send-inv
	for nth in 1 2 4; do
		endures "$1" "its queue pair is in error at $op number $nth" $op $nth qp-fatal
	done
}

# datagrams DEVICE: the CM's, in connecting and disconnecting. The CM repeats what is lost.
datagrams() {
	local nth action what before
	for action in lose duplicate; do
		for nth in 1 2; do
			what="$1, $action datagram $nth"
			before=$(hits "$1")
			need "$what: from now on" fault "$1" datagram $nth $action
			need "$what: mount" nfs_mount 3 rdma /mnt
			check "$what: I/O" verified_io
			check "$what: umount" unmount /mnt
			check "$what: it has happened" wait_for $RECOVERY more_hits "$1" "$before"
			check "$what: the connection is gone" wait_for $RECOVERY no_connection
		done
	done
}

# Either device goes away by itself in the middle of I/O, and is added again.
gone() {
	need "mount" nfs_mount 3 rdma /mnt
	reconnects "mem1 goes away, and is added again" goes_away mem1 send client_device_up 1
	reconnects "mem0 goes away, and is added again" goes_away mem0 send-inv rdma_up
	check "umount" unmount /mnt
}

# goes_away DEVICE OPERATION COMMAND...: the command adds it again.
goes_away() {
	fault "$1" "$2" 3 gone && wait_for 10 not test -e "/sys/class/infiniband/$1" &&
		sleep 1 && "${@:3}"
}
