# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a server with little memory refuses what it has none for, while others use it and still can mount
# also:    um um-7
# devices: mem
# modules: ours
# loads:   crowd
# limit:   150
# steps:   pressure
# faults:  the server refuses connections
#
#   server                         client: namespace "client"
#   +------------------------+     +-----------------------------+
#   | nfsd, rdma port 20049  |     | 10.17.0.2: mount at /mnt/0, |
#   | 10.17.0.1              |     |   and rdma_crowd            |
#   | 10.17.1.1, 10.17.2.1   |     | 10.17.1.2, 10.17.2.2: other |
#   | mem0 on lab0 ----------|-----|-- mem1 on lab1         hosts |
#   +------------------------+veth +-----------------------------+

. "${BASH_SOURCE%/*}/../guest/mem.sh"
. "${BASH_SOURCE%/*}/../guest/many.sh"
. "${BASH_SOURCE%/*}/../guest/tools.sh"

CONNECTIONS=1000

# MiB beyond what the server keeps back: much less than so many connections need, with both ends
# in this guest
ROOM=96

# How many are to be refused before it is looked at. They wait for five seconds, and as many at a
# time ask.
REFUSED=32

pressure() {
	local before during killed
	pair_begin
	need "addresses of other hosts" others_up
	need "raise nfsd's limit of connections" limit_connections 65535
	need "mount" nfs_mount 3 rdma /mnt/0
	need "make a file" cp /tmp/data /mnt/0/data
	killed=$(oom_kills)
	before=$(speed)
	monitor_start
	need "leave little memory" hold_memory
	need "one host asks for $CONNECTIONS connections" \
		crowd_up connections=$CONNECTIONS fh="$(file_handle)"
	need "$REFUSED are refused" wait_for 40 many_failed
	during=$(speed)
	say "$(result up) connections are up, $(result failed) were refused, $(available) MiB are left"
	say "$before reads a second before, $during during it"
	check "many are up" [ "$(result up)" -ge 50 ]
	check "not all are up" [ "$(result up)" -lt $((CONNECTIONS - REFUSED)) ]
	check "none that was up is lost" result_is lost 0
	check "the mount is at least half as fast as before" [ $((2 * during)) -ge "$before" ]
	check "another host mounts, and uses it" other_mounts
	check "the reserve is left" [ "$(available)" -ge $(($(reserve) / 2)) ]
	told_why
	check "the crowd goes" crowd_down
	check "the same host mounts again" wait_for 20 nfs_mount 3 rdma /mnt/new retry=0
	check "the data are correct" same_sum /mnt/new/data /tmp/data
	check "the first mount has the connection that it had" is 1 "$(first_connects)"
	check "the OOM killer did not run" is "$killed" "$(oom_kills)"
	check "umount" umount -i -a -t nfs
	check "let go of the memory" umount /hold
	check "restore nfsd's limit" limit_connections 0
	pair_end
}

# Each has a network of its own, so the address from which it is reached. There are two, because
# one may count as the same host as the crowd's: only a hash of the address is compared.
others_up() {
	local n
	for n in 1 2; do
		ip addr add 10.17.$n.1/24 dev lab0 && in_client ip addr add 10.17.$n.2/24 dev lab1 ||
			return
	done
	wait_for 10 others_ready
}

others_ready() {
	grep -qs ffff:0a11:0201 /sys/class/infiniband/mem0/ports/1/gids/* &&
		grep -qs ffff:0a11:0202 /sys/class/infiniband/mem1/ports/1/gids/*
}

other_mounts() {
	mount_from 1 || mount_from 2 || return
	dd if=/mnt/other/data of=/dev/null bs=64k iflag=direct
}

mount_from() {
	local SERVER4=10.17.$1.1
	nfs_mount 3 rdma /mnt/other retry=0
}

# meminfo NAME: in MiB
meminfo() {
	awk -v name="$1:" '$1 == name { print int($2 / 1024) }' /proc/meminfo
}

available() {
	meminfo MemAvailable
}

# What the server keeps back, in MiB
reserve() {
	local part=$(($(meminfo MemTotal) / 32))
	echo $((part > 32 ? part : 32))
}

hold_memory() {
	mkdir -p /hold && mount -t tmpfs -o size=100% hold /hold &&
		dd if=/dev/zero of=/hold/file bs=1M count=$(($(available) - $(reserve) - ROOM)) status=none
}

oom_kills() {
	awk '$1 == "oom_kill" { print $2 }' /proc/vmstat
}

# Reads of 4 KiB per second, by one job in three seconds
speed() {
	fio --name=speed --filename=/mnt/0/data --size=256k --rw=randread --bs=4k --direct=1 \
		--ioengine=psync --time_based --runtime=3 --eta=never --output-format=json \
		--output=/tmp/fio.json && jq '.jobs[0].read.iops | floor' /tmp/fio.json
}

many_failed() {
	[ "$(result failed)" -ge $REFUSED ]
}

# How many connections the mount at /mnt/0 has made
first_connects() {
	awk '$1 == "device" { here = $5 == "/mnt/0" }
		here && $1 == "xprt:" { print $5 }' /proc/self/mountstats
}

told_why() {
	monitor_stop
	check "the server has told why: memory" jq -se '
		map(select(.event == "refused" and .role == "server") | .refusal) |
		length >= '$REFUSED' and unique == ["memory"]' /tmp/events
	check "a line in the log says so" grep -q \
		"rpcrdma: 10.17.0.2: refused: too little memory for another connection" <(dmesg)
	check "the listener has counted them" \
		show_is true listeners "map(.refused) | add >= $REFUSED"
}
