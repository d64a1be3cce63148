# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a mount with four connections sends on all of them, and closes all of them
# guests:  um
# also:    um/mem um-debug/rxe um-7-debug/siw um-7-smp debian-6.1 debian-6.12 smp-debug/siw
# devices: rxe siw mem
# turns:   sunrpc's transports
# skip:    * siw * inbox: siw may not deliver a first message, and only ours has a workaround

client() {
	local vers
	client_begin
	USERS=$(users)
	for vers in 3 4.2; do
		if [ "$GUEST $vers" = "debian-6.1 4.2" ]; then
			skip "v4.2: four connections" "in 6.1 NFSv4 has several connections with TCP only"
			continue
		fi
		need "mount v$vers" nfs_mount $vers rdma /mnt nconnect=4
		check "v$vers over rdma is what is mounted" mounted_as /mnt $vers rdma
		check "v$vers: the mount has four transports" is 4 "$(sends | wc -l)"
		share_work "v$vers"
		check "umount v$vers" unmount /mnt
		check "v$vers: both ends have closed all connections" within 8 none_left
	done
}

share_work() {
	local before
	before=$(sends)
	check "$1: verified I/O by four jobs" fio_verify --direct=1 --bsrange=4k-256k --numjobs=4
	say "Calls sent on each: $(sends | xargs), before the I/O: $(xargs <<<"$before")"
	check "$1: each transport sent some of the Calls" is 4 "$(more "$before" "$(sends)")"
	# From NFSv4.1 on nfsd has one as well, for callbacks.
	check "$1: sunrpc has at least four transports" [ "$(rdma_transports | wc -l)" -ge 4 ]
	check "$1: there are four connections, with two queue pairs each" is 8 "$(queue_pairs)"
}

# How many Calls each transport has sent
sends() {
	awk '$1 == "xprt:" { print $8 }' /proc/self/mountstats
}

# more BEFORE AFTER: in how many lines the number is greater
more() {
	paste <(echo "$1") <(echo "$2") | awk '$2 > $1 { n++ } END { print n + 0 }'
}

none_left() {
	not rdma_transports && no_connection && [ "$(users)" = "$USERS" ]
}

# Who uses the module: the server's listeners, and each transport of either end
users() {
	cat /sys/module/rpcrdma/refcnt
}
