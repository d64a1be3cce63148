# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   when memory is refused to the module, it connects later or not at all, and I/O goes on
# guests:  um-debug/rxe
# also:    um-debug/siw
# devices: rxe siw
# limit:   90

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# Only what is allocated below a function of rpcrdma may fail, be it for itself
# or by the device on its behalf. The kernel says nothing of these failures
# (verbose=0), but vmalloc() would, with a call trace: it is left out, so that
# whatever trace does appear is a fault.
DEBUGFS=/sys/kernel/debug

client() {
	local kind room refused
	client_begin
	for kind in failslab fail_page_alloc; do
		need "$kind can be aimed at rpcrdma" aim $kind
	done
	# In octets, and in pages: what it may have before it is refused something
	for room in 0 300 1000 3000 10000 30000 100000 300000 1000000; do
		connect_with failslab $room
	done
	for room in 0 1 3 10 30 100 300; do
		connect_with fail_page_alloc $room
	done
	need "mount" nfs_mount 4.2 rdma /mnt
	for kind in failslab fail_page_alloc; do
		survives "one in five $kind for 3 s" starve $kind 5
		refused=$((100000 - $(cat $DEBUGFS/$kind/times)))
		say "$refused were refused"
		check "one in five $kind for 3 s: some were refused" [ $refused -gt 0 ]
	done
	check "umount" umount /mnt
}

put() {
	echo "$3" >"$DEBUGFS/$1/$2"
}

aim() {
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
	[ "$1" = failslab ] || { put "$1" ignore-gfp-highmem N && put "$1" min-order 0; }
}

# function_range NAME: its addresses, and that of whatever comes next. Read in the
# small pieces that sort wants, this file takes a minute.
function_range() {
	sort <(cat /proc/kallsyms) | awk -v name="^$1\$" '
		start && $1 != start { print "0x" start, "0x" $1; found = 1; exit }
		$3 ~ name { start = $1 }
		END { exit !found }'
}

# refuse KIND ROOM EVERY TIMES
refuse() {
	put "$1" space "$2" && put "$1" interval "$3" && put "$1" times "$4" && put "$1" probability 100
}

refuse_no_more() {
	put "$1" probability 0
}

# What is refused at first is there at the second attempt, by sunrpc or by us.
connect_with() {
	local what="$1 after $2" left
	check "$what: mount, or be told of it" mount_refused "$1" "$2"
	left=$(cat $DEBUGFS/$1/times)
	[ "$left" = 0 ] || say "nothing was refused"
	[ "$left" = 0 ] || [ "$2" != 0 ] || check "$what: something was refused" false
	mountpoint -q /mnt || need "$what: mount now" nfs_mount 3 rdma /mnt
	check "$what: I/O" use_it
	check "$what: umount" umount /mnt
}

mount_refused() {
	local status
	refuse "$1" "$2" 1 1
	if nfs_mount 3 rdma /mnt >/tmp/mount.log 2>&1; then
		use_it
	else
		grep -q "Cannot allocate memory" /tmp/mount.log
	fi
	status=$?
	refuse_no_more "$1"
	cat /tmp/mount.log
	return $status
}

use_it() {
	head -c 1M /dev/urandom >/tmp/some && cp /tmp/some /mnt/some && drop_caches &&
		same_sum /tmp/some /mnt/some
}

# starve KIND EVERY: what the module keeps for later it loses, and has to ask anew.
starve() {
	local n
	refuse "$1" 0 "$2" 100000
	for n in {1..10}; do
		echo 2 >/proc/sys/vm/drop_caches
		sleep 0.3
	done
	refuse_no_more "$1"
}
