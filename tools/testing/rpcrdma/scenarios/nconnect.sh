# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a mount with four connections has each of them send, and closes all
# guests:  um
# also:    um-debug debian-6.1 debian-6.12 smp-debug
# devices: rxe siw
# skip:    * siw * inbox: siw may leave a first message lying, and only ours has a remedy

client() {
	local vers
	client_begin
	for vers in 3 4.2; do
		if [ "$GUEST $vers" = "debian-6.1 4.2" ]; then
			skip "v4.2: four connections" "NFSv4 of 6.1 has more than one with TCP alone"
			continue
		fi
		need "mount v$vers" nfs_mount $vers rdma /mnt nconnect=4
		check "v$vers over rdma is what is mounted" mounted_as /mnt $vers rdma
		check "v$vers: by four transports" is 4 "$(sends | wc -l)"
		share_work "v$vers"
		check "umount v$vers" umount /mnt
		check "v$vers: both ends let go of all of them" wait_for 10 none_left
	done
}

share_work() {
	local before
	before=$(sends)
	check "$1: verified I/O of four jobs" fio_verify --direct=1 --bsrange=4k-256k --numjobs=4
	say "Calls sent by each: $(sends | xargs), before that: $(xargs <<<"$before")"
	check "$1: each sent some of the Calls" is 4 "$(more "$before" "$(sends)")"
	check "$1: they are four transports to sunrpc" [ "$(transports)" -ge 4 ]
	check "$1: and four connections, with two ends each" is 8 "$(queue_pairs)"
}

# How many Calls each transport has sent so far
sends() {
	awk '$1 == "xprt:" { print $8 }' /proc/self/mountstats
}

# more BEFORE AFTER: in how many lines the number is greater
more() {
	paste <(echo "$1") <(echo "$2") | awk '$2 > $1 { n++ } END { print n + 0 }'
}

# From version 4.1 on nfsd has one too, for callbacks.
transports() {
	compgen -G '/sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma' | wc -l
}

# The CM's own is of another type.
queue_pairs() {
	rdma resource show qp | grep -c 'type RC'
}

none_left() {
	[ "$(transports)" = 0 ] && [ "$(queue_pairs)" = 0 ]
}
