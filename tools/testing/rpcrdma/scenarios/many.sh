# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   1,000 connections between two devices are made, and work again after the server restarts, in seconds
# guests:  um um-7-debug
# devices: mem
# modules: ours
# loads:   crowd
# memory:  2048
# limit:   240
# steps:   many
# faults:  connections are closed
#
#   server                         client: namespace "client"
#   +------------------------+     +------------------------+
#   | nfsd at several ports  |     | mounts at /mnt/0 ...   |
#   | 10.17.1.1 to .32       |     | or rdma_crowd          |
#   | mem0 on lab0 ----------|-----|-- mem1 on lab1         |
#   +------------------------+veth +------------------------+

. "${BASH_SOURCE%/*}/../guest/mem.sh"
. "${BASH_SOURCE%/*}/../guest/many.sh"

# Each mount has a pair of address and port of its own, or sunrpc would share the connections.
MOUNTS=${MOUNTS:-63} IOPS=${IOPS:-1600}
[ "$GUEST" != um-7-debug ] || MOUNTS=16 IOPS=400
NCONNECT=16 HOSTS=32
CONNECTIONS=$((MOUNTS * NCONNECT))

# Seconds in which all must work: at first, and after the server has started again
UP=30 AGAIN=15

many() {
	# Hardware does not check whether posted buffers change.
	need "load the test device" modprobe rdma_mem checksums=0
	pair true
	need "addresses" addresses_up
	need "NFS server" server_up
	need "raise nfsd's limit of connections" limit_connections 65535
	objects >/tmp/objects
	need "rpcrdma is the $MODULE module" right_module
	need "load it" modprobe rpcrdma
	need "listen" listen_all
	need "make a file" eval "head -c 1M /dev/urandom >$LOCAL/data"
	without_mounts
	with_mounts
	check "restore nfsd's limit" limit_connections 0
	pair_end
}

addresses_up() {
	printf "addr add 10.17.1.%d/24 dev lab0\n" $(seq $HOSTS) | ip -batch - &&
		in_client ip route add 10.17.1.0/24 dev lab1 && wait_for 10 gids
}

gids() {
	[ "$(cat /sys/class/infiniband/mem0/ports/1/gids/* 2>/dev/null |
		grep -c ffff:0a11:01)" -ge $HOSTS ]
}

listen_all() {
	local last=$((PORT + (MOUNTS - 1) / HOSTS)) PORT=$PORT
	for (( ; PORT <= last; PORT++)); do
		listen || return
	done
}

# restart WHAT: restart the server. SINCE is when it listens again.
restart() {
	trace_states $CONNECTIONS
	need "$1: stop the server" rpc.nfsd 0
	sleep 1
	note_read
	need "$1: start the server" rpc.nfsd 8
	need "$1: listen" listen_all
	SINCE=$EPOCHREALTIME
}

# The server's part alone. A crowd waits for one second before it tries again.
without_mounts() {
	need "mount, so that the server knows the export" nfs_mount 3 rdma /mnt
	need "umount" unmount /mnt
	trace_states $CONNECTIONS
	SINCE=$EPOCHREALTIME
	need "a crowd of $CONNECTIONS" \
		crowd_up connections=$CONNECTIONS retry=1000 fh="$(file_handle)"
	crowd_is_up "a crowd"
	restart "a crowd"
	crowd_is_up "a crowd, after a restart"
	check "each was lost" result_is lost $CONNECTIONS
	check "no answer was wrong" result_is wrong 0
	check "unload the crowd" crowd_down
	check "none of its connections is left" wait_for 60 no_connection
}

crowd_is_up() {
	need "$1: all are up" wait_for 120 result_is up $CONNECTIONS
	say "$1: all were up after $(elapsed $SINCE $(result newest)e-9) s," \
		"$(result failed) attempts failed"
	say_states "$1"
}

with_mounts() {
	local reader
	SINCE=$EPOCHREALTIME
	need "$MOUNTS mounts" mount_all
	say "$MOUNTS mounts took $(elapsed $SINCE) s"
	trace_states $CONNECTIONS
	note_read
	SINCE=$EPOCHREALTIME
	read_all &
	reader=$!
	work "$CONNECTIONS connections of mounts, at first" $UP
	say_states "at first"
	note_read
	SINCE=$EPOCHREALTIME
	work "the same I/O without a restart" $AGAIN
	restart "mounts"
	work "after a restart" $AGAIN
	say_states "after a restart"
	kill -INT $reader
	wait $reader
	check "reading succeeds" ended $? "0|128" /tmp/fio.out
	check "the data are correct" same_sum /mnt/0/data $LOCAL/data
	check "umount" umount -i -a -t nfs
	check "no connection of a mount is left" all_closed
}

# What is left tells whose ends these are, and what they wait for.
all_closed() {
	wait_for 60 no_connection && return
	/lab/rpcrdma show
	/lab/rpcrdma show -j server | jq -c '.server[0]'
	return 1
}

# Without mount.nfs, because processes take long in a guest with much memory
mount_all() {
	local n address
	for ((n = 0; n < MOUNTS; n++)); do
		address=10.17.1.$((n % HOSTS + 1))
		echo "$address:$EXPORT /mnt/$n nfs" \
			"vers=3,proto=rdma,port=$((PORT + n / HOSTS)),addr=$address,nconnect=$NCONNECT,nolock,noresvport,mountproto=tcp,mountport=20048"
	done >/tmp/fstab
	mkdir -p $(awk '{ print $2 }' /tmp/fstab) &&
		in_client mount -a -i -T /tmp/fstab && is $CONNECTIONS "$(replies | wc -l)"
}

# As many READs at a time as there are connections, and fewer per second than the guest can do:
# otherwise this would measure the load.
read_all() {
	exec fio --name=read --filename_format='/mnt/$filenum/data' --nrfiles=$MOUNTS \
		--size=${MOUNTS}m --thread --rw=randread --bs=4k --direct=1 --ioengine=libaio \
		--iodepth=$CONNECTIONS --rate_iops=$IOPS --time_based --runtime=3600 \
		--eta=never --minimal --output=/tmp/fio.out
}

# work WHAT SECONDS: each connection has a Reply in so many seconds.
work() {
	check "$1: each connection has had a Reply within $(seconds "$2") s" wait_for "$2" look
	need "$1: each connection has had a Reply" wait_for 120 look
	say "$1: each connection has had a Reply after $(elapsed $SINCE) s"
}

# To look takes time, and the more of it, the more connections there are.
look() {
	sleep $((CONNECTIONS / 5))e-3
	all_read
}
