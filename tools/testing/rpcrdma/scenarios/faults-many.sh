# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   160 connections of one host, or of ten, work again soon after the server restarts
# guests:  um
# also:    um/mem
# devices: rxe siw mem
# turns:   the number of connections
# modules: ours
# limit:   120
# skip:    um-7* rxe * *: ib_mad of 7.x sends nothing more for a port with 128 requests that have no answer
# faults:  connections are closed

. "${BASH_SOURCE%/*}/../guest/faults.sh"
. "${BASH_SOURCE%/*}/../guest/many.sh"

# Each mount uses another address of the server, with as many connections as sunrpc
# allows. faults-thousand has more.
MOUNTS=${MOUNTS:-10}
NCONNECT=16
CONNECTIONS=$((MOUNTS * NCONNECT))

# Seconds from when the server listens until all connections have had a Reply. A client
# that was refused tries again after 0.25, 0.5, 1 and 2 seconds, and then every three.
SOON=5

# Reads per second of all mounts together: fewer than the guest can do. Otherwise the
# scenario would measure the load.
IOPS=1600

client() {
	client_begin
	need "raise nfsd's limit of connections" limit_connections 4096
	need "make a file" eval "head -c 1M /dev/urandom >$LOCAL/data"
	# With /24 all addresses are in one network, and all connections come from the first one.
	bounce "one host" 10.17.1 24
	bounce "$MOUNTS hosts" 10.17.2 32
	check "restore nfsd's limit" limit_connections 0
}

# bounce WHOSE NETWORK PREFIX: restart the server while all connections are used.
bounce() {
	local what="$CONNECTIONS connections of $1" net=$2 since newcomer
	need "$what: add addresses" addresses_up "$2" "$3"
	need "$what: mount" mount_them
	begin_reading
	need "$what: all are in use" wait_for $RECOVERY all_read
	trace_connections 1
	dmesg --clear
	need "$what: stop the server" rpc.nfsd 0
	sleep 1
	note_read
	need "$what: start the server" server_start
	since=$EPOCHREALTIME
	mount_at "$net.$((MOUNTS + 1))" new >/tmp/new.log 2>&1 &
	newcomer=$!
	check "$what: all work again within $(seconds $SOON) s" wait_for $SOON all_read
	check "$what: all work again" wait_for $RECOVERY all_read
	say "$what: after $(elapsed $since) s"
	wait $newcomer
	check "$what: a new mount at the same time succeeds" ended $? 0 /tmp/new.log
	trace_connections 0
	say_causes "$what"
	check "$what: nfsd refused no connection because of the number" not grep -q 'too many' <(dmesg)
	kill -INT $READER
	wait $READER
	check "$what: reading succeeds" ended $? "0|128" /tmp/fio.out
	check "$what: the data are correct" same_sum /mnt/0/data $LOCAL/data
	check "$what: unmount" unmount_all
	check "$what: remove the addresses" addresses_down "$2" "$3"
}

# addresses_up NETWORK PREFIX: add an address for each mount and one more.
addresses_up() {
	local n
	for ((n = 1; n <= MOUNTS + 1; n++)); do
		ip addr add "$1.$n/$2" dev "$(netdev)" || return
	done
	[ "$DEVICE" = siw ] || wait_for 10 gids "$1"
}

# Removed in reverse: without the first address of a network the kernel drops the others.
addresses_down() {
	local n
	for ((n = MOUNTS + 1; n >= 1; n--)); do
		ip addr del "$1.$n/$2" dev "$(netdev)" || return
	done
}

# gids NETWORK: whether the device has a GID for each address of the network.
gids() {
	local prefix
	prefix=$(printf 'ffff:%02x%02x:%02x' ${1//./ })
	[ "$(cat /sys/class/infiniband/${DEVICE}0/ports/1/gids/* 2>/dev/null |
		grep "$prefix" | sort -u | wc -l)" -eq $((MOUNTS + 1)) ]
}

mount_them() {
	local n
	for ((n = 1; n <= MOUNTS; n++)); do
		mount_at "$net.$n" $((n - 1)) || return
	done
	is $CONNECTIONS "$(replies | wc -l)"
}

# mount_at ADDRESS NAME: mount without retries at /mnt/NAME.
mount_at() {
	local SERVER4=$1
	nfs_mount 3 rdma "/mnt/$2" nconnect=$NCONNECT,retry=0
}

# More READs at a time than there are connections, so that each connection gets some
begin_reading() {
	fio --name=read --filename_format='/mnt/$jobnum/data' --numjobs=$MOUNTS --thread \
		--rw=randread --bs=4k --size=1m --direct=1 --ioengine=libaio \
		--iodepth=$((4 * NCONNECT)) --rate_iops=$((IOPS / MOUNTS)) --time_based --runtime=600 \
		--eta=never --minimal --output=/tmp/fio.out &
	READER=$!
	note_read
}

# trace_connections 1|0: start or stop tracing connections.
trace_connections() {
	local tracing=/sys/kernel/tracing name
	[ "$1" = 0 ] || : >$tracing/trace
	for name in state event; do
		echo "$1" >$tracing/events/rpcrdma/rpcrdma_conn_$name/enable
	done
}

# say_causes WHAT: print what took the time.
say_causes() {
	local trace=/sys/kernel/tracing/trace
	say "$1: $(grep -c ' event=REJECTED' $trace) times rejected," \
		"$(grep -c ' event=UNREACHABLE' $trace) times not reached," \
		"$(grep -c ' state=ACCEPTING' $trace) accepted," \
		"$(grep -c ' state=CLOSING status=-108' $trace) closed by their own end"
}
