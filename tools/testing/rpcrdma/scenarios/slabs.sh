# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the module leaks no memory when it is loaded, used and unloaded many times
# guests:  um/rxe um-7-debug/rxe
# also:    um-7-debug um-7-debug/mem debian-6.1
# devices: rxe siw mem
# limit:   40
# steps:   cycles

. "${BASH_SOURCE%/*}/../guest/faults.sh"

TIMES=20
# Debug kernels are slow, and kmemleak looks for the same there.
[[ $GUEST != *-debug ]] || TIMES=6

# Other parts of the kernel use the caches as well. A leak grows with the number of cycles,
# so growth by fewer objects is no leak.
cycles() {
	local n
	need "network" net_up
	need "$DEVICE device" rdma_up
	need "rpcrdma is the $MODULE module" right_module
	need "NFS server" server_up
	for n in 1 2 3; do
		need "warm up, $n of 3" cycle
	done
	# kvfree_rcu() may free objects up to five seconds later.
	sleep 5
	slab_counts >/tmp/slabs.before
	for ((n = 1; n <= TIMES; n++)); do
		need "cycle $n of $TIMES" cycle
	done
	check "neither pages, nor kmalloc's and our caches, nor unreclaimable memory grow" \
		wait_for 10 nothing_has_grown
	say_growth
	check "the pages were counted" grep -q '^pages: [1-9]' /tmp/slabs.after
	[ ! -e /proc/slabinfo ] ||
		check "the caches were counted" grep -q '^kmalloc-' /tmp/slabs.after
	check "stop the NFS server" server_down
	check "remove the $DEVICE device" rdma_down
}

# The module uses no other caches than these. Debug kernels keep stack traces in pages.
nothing_has_grown() {
	local ours='kmalloc-|svcrdma|SUnreclaim'
	[[ $GUEST == *-debug ]] || ours+='|pages'
	slab_counts >/tmp/slabs.after
	grown $TIMES /tmp/slabs.before /tmp/slabs.after >/tmp/slabs.grown
	not grep -E "^($ours)" /tmp/slabs.grown
}

say_growth() {
	sed 's/^/# grown: /' /tmp/slabs.grown
	grep -h : /tmp/slabs.before /tmp/slabs.after | sed 's/^/# /'
}

cycle() {
	local vers
	modprobe rpcrdma && server_start || return
	for vers in 3 4.2; do
		nfs_mount $vers rdma /mnt && fill && unmount /mnt || return
	done
	rpc.nfsd 0 && unload
}

fill() {
	dd if=/dev/zero of=/mnt/data bs=256k count=8 oflag=direct &&
		dd if=/mnt/data of=/dev/null bs=256k iflag=direct && rm /mnt/data
}
