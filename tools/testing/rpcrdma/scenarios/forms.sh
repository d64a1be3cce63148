# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   each operation uses the form that it should, by tracepoints and counters
# guests:  um
# also:    um/mem um-debug/siw um-7-debug debian-6.1 debian-13-arm64-16k
# also:    arm64-64k/rxe s390x/rxe
# devices: rxe siw mem
# modules: ours

. "${BASH_SOURCE%/*}/../guest/forms.sh"

client() {
	local switch
	client_begin
	forms_begin
	need "mount" nfs_mount 3 rdma /mnt
	form inline_both_ways "inline" "inline" ""
	form read_chunk "read" "inline" "read_segments rdma_stat_read"
	form write_chunk "write" "write" "write_segments placed rdma_stat_write"
	check "write_chunk: the server invalidates the handle" invalidated_by server
	form long_call "long reply" "inline" \
		"read_segments reply_segments long_calls invalidations rdma_stat_read"
	check "long_call: the list arrived" long_call_arrived
	form reply_chunk "reply" "reply" \
		"reply_segments placed invalidations rdma_stat_write"
	check "umount" unmount /mnt
	need "set inline sizes of 16384 octets" large_sizes
	check "mount" nfs_mount 3 rdma /mnt
	form gathered "inline" "inline" ""
	check "gathered: the client copies little of the data" [ "$(copied)" -lt 4096 ]
	check "gathered: the device sends from the server's pages" \
		grep 'rpcrdma_reply: .* len=12[0-9][0-9][0-9] written=0 pages=[1-9]' /tmp/trace
	check "umount" unmount /mnt
	need "set inline sizes of 1024 octets again" small_sizes
	for switch in {rdma_,svc_rdma/}{remote_invalidation,private_data}; do
		without $switch
	done
}

# form OPERATION CALLS REPLIES COUNTERS: do an operation. Check its forms, see used_forms,
# and which counters change.
form() {
	counters >/tmp/before
	check "$1: the data are correct" traced "by_$1"
	counters >/tmp/after
	used_forms "$1" "$2" "$3"
	check "$1: counters that change: ${4:-none}" is "$4" "$(changed)"
}

counters() {
	awk '$1 == "xprt:" && $2 == "rdma" {
		print "connections", $5
		print "read_segments", $13
		print "write_segments", $14
		print "reply_segments", $15
		print "placed", $17
		print "unusable", $22
		print "long_calls", $23
		print "invalidations", $27
	}' /proc/self/mountstats
	(cd /proc/sys/sunrpc/svc_rdma && grep . rdma_stat_{read,write,dropped,errors}) | tr : ' '
}

changed() {
	paste /tmp/before /tmp/after | awk '$2 != $4 { print $1 }' | xargs
}

# without TUNABLE: with it off at either end, the server does not invalidate.
without() {
	tune "$1" 0
	check "without $1: mount" nfs_mount 3 rdma /mnt
	form write_chunk "write" "write" "write_segments placed invalidations rdma_stat_write"
	check "without $1: the client invalidates the handle" invalidated_by client
	check "umount" unmount /mnt
	tune "$1" 1
}
