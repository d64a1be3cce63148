# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   failed allocations of the module may delay or fail a mount, but no I/O
# guests:  um-7-debug/rxe
# also:    um-debug/rxe um-7-debug/siw um-7-debug/mem
# devices: rxe siw mem
# limit:   150
# faults:  no memory

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# Only allocations with a function of rpcrdma in their call trace fail: its own, and those
# of the device on its behalf. The kernel prints nothing about them (verbose=0). vmalloc()
# would print a call trace, so its allocations do not fail, and any call trace is an error.
DEBUGFS=/sys/kernel/debug

client() {
	local kind share shares
	client_begin
	reclaim_watch
	# What only the first mount allocates shall not be measured.
	need "a first mount" nfs_mount 3 rdma /mnt
	need "it is used" use_it
	need "it is unmounted" umount /mnt
	for kind in failslab fail_page_alloc; do
		need "configure $kind for rpcrdma" configure $kind
		need "$kind: how much a mount and I/O allocate" measure $kind
		# How much is allocated before an allocation fails, in thousandths of that
		shares="0 30 300"
		[ $kind != failslab ] || shares="0 3 10 30 100 300 600"
		for share in $shares; do
			connect_with $kind $share
		done
	done
	negotiation 2 1 10 100
	negotiation 1 30
	need "mount" nfs_mount 4.2 rdma /mnt
	for kind in failslab fail_page_alloc; do
		fails_often "one in five $kind" $kind 5
	done
	# A request takes two allocations. Once the second has failed, it is always the second.
	need "have only new requests of the server fail" only_in failslab request_alloc
	fails_often "the second allocation of a request" failslab 2
	check "umount" umount /mnt
	reclaim_end
}

# negotiation VERSION SHARE...: allocations fail while the client finds out the server's version.
# The mounts after this use version 2, if the server does not refuse it.
negotiation() {
	local share
	need "the client may use version 2, and the server version $1" versions_up_to 2 "$1"
	for share in "${@:2}"; do
		connect_with failslab $share ", version $1"
	done
	connect_with fail_page_alloc 30 ", version $1"
	need "both ends may use version 2" versions_up_to 2 2
}

# put KIND NAME VALUE: set a parameter of the fault injection.
put() {
	echo "$3" >"$DEBUGFS/$1/$2"
}

# configure KIND: have only allocations of rpcrdma fail.
configure() {
	local text size reject
	text=$(cat /sys/module/rpcrdma/sections/.text)
	size=$(awk '$1 == "rpcrdma" { print $2 }' /proc/modules)
	reject=$(function_range '__vmalloc_node_range(_noprof)?') && [ -n "$text" ] && [ -n "$size" ] &&
		put "$1" probability 0 && put "$1" verbose 0 && put "$1" task-filter N &&
		put "$1" stacktrace-depth 32 &&
		put "$1" require-start "$text" &&
		put "$1" require-end "$(printf '0x%x' $((text + size)))" &&
		put "$1" reject-start "${reject% *}" && put "$1" reject-end "${reject#* }" &&
		put "$1" ignore-gfp-wait N || return
	if [ "$1" = failslab ]; then
		pass_over_kmemleak
	else
		put "$1" ignore-gfp-highmem N && put "$1" min-order 0
	fi
}

# kmemleak allocates an object for each that is allocated, and that can fail without harm.
pass_over_kmemleak() {
	local cache
	for cache in /sys/kernel/slab/*/failslab; do
		echo 1 >"$cache" || return
	done
	echo 0 >/sys/kernel/slab/kmemleak_object/failslab && put failslab cache-filter Y
}

# function_range NAME: the addresses of a function and of the symbol after it. cat, because
# sort would read this file in small pieces, which takes a minute.
function_range() {
	sort <(cat /proc/kallsyms) | awk -v name="^$1\$" '
		start && $1 != start { print "0x" start, "0x" $1; found = 1; exit }
		$3 ~ name { start = $1 }
		END { exit !found }'
}

# only_in KIND NAME: have only allocations of this function fail.
only_in() {
	local range
	range=$(function_range "$2") &&
		put "$1" require-start "${range% *}" && put "$1" require-end "${range#* }"
}

# fail_allocations KIND ROOM EVERY TIMES: after ROOM, fail every so many, so many times.
fail_allocations() {
	put "$1" space "$2" && put "$1" interval "$3" && put "$1" times "$4" && put "$1" probability 100
}

stop_failures() {
	put "$1" probability 0
}

# measure KIND: how much that is, in octets or pages, to /tmp/all.KIND
measure() {
	local room=1000000000
	fail_allocations "$1" $room 1 1
	nfs_mount 3 rdma /mnt && use_it && stop_failures "$1" && umount /mnt || return
	echo $((room - $(cat $DEBUGFS/$1/space))) >/tmp/all.$1
	[ "$(cat /tmp/all.$1)" -gt 0 ]
}

# connect_with KIND SHARE [MORE]: mount while one allocation fails. sunrpc or the module tries
# again, and the second attempt gets the memory. MORE is added to the description.
connect_with() {
	local what="$1 after $2/1000$3" room
	room=$(($(cat /tmp/all.$1) * $2 / 1000))
	say "$what: after $room"
	check "$what: mount, or fail with ENOMEM" mount_refused "$1" $room
	check "$what: an allocation failed" is 0 "$(cat $DEBUGFS/$1/times)"
	mountpoint -q /mnt || need "$what: mount again" nfs_mount 3 rdma /mnt
	check "$what: I/O" use_it
	check "$what: three connections at most" [ "$(connections_made)" -le 3 ]
	check "$what: umount" umount /mnt
}

mount_refused() {
	local status
	fail_allocations "$1" "$2" 1 1
	if nfs_mount 3 rdma /mnt >/tmp/mount.log 2>&1; then
		use_it
	else
		grep -q "Cannot allocate memory" /tmp/mount.log
	fi
	status=$?
	stop_failures "$1"
	cat /tmp/mount.log
	return $status
}

use_it() {
	head -c 1M /dev/urandom >/tmp/some && cp /tmp/some /mnt/some && drop_caches &&
		same_sum /tmp/some /mnt/some
}

# fails_often WHAT KIND EVERY: every so many allocations fail during I/O.
fails_often() {
	local refused
	survives "$1 for 3 s" fail_for_3s "$2" "$3"
	refused=$((100000 - $(cat $DEBUGFS/$2/times)))
	say "$refused allocations failed"
	check "$1 for 3 s: some allocations failed" [ $refused -gt 0 ]
}

# fail_for_3s KIND EVERY: a new connection allocates, one that is used hardly does.
fail_for_3s() {
	fail_allocations "$1" 0 "$2" 100000
	wait_for 20 failed_in_new_connection "$1"
	sleep 3
	stop_failures "$1"
}

failed_in_new_connection() {
	[ "$(cat $DEBUGFS/$1/times)" -lt 100000 ] || { drop_connections; return 1; }
}
