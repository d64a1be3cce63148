# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   160 connections of one host, and of ten, soon work again when the server is back, and nobody is refused
# guests:  um
# devices: rxe siw
# modules: ours
# limit:   120

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# Each mount is of another address of the server, with as many connections as sunrpc
# allows. For 1,024 it takes 64 mounts, some time and memory; how long it takes then
# is said, too.
MOUNTS=10
NCONNECT=16
CONNECTIONS=$((MOUNTS * NCONNECT))

# Seconds from when the server listens until all connections have brought a Reply.
# A refused client asks again after three.
SOON=5

# What all mounts together ask for: less than the guest can do, or it would be the
# reading that is measured.
IOPS=1600

client() {
	client_begin
	# By default nfsd closes connections when there are so many.
	need "nfsd allows them all" eval "echo 4096 >/proc/fs/nfsd/max_connections"
	need "a file" eval "head -c 1M /dev/urandom >$LOCAL/data"
	# What has an address of a network that has one already goes by that one.
	bounce "one host" 10.17.1 24
	bounce "$MOUNTS hosts" 10.17.2 32
	check "nfsd has its own limit again" eval "echo 0 >/proc/fs/nfsd/max_connections"
}

# bounce WHOSE NETWORK PREFIX
bounce() {
	local what="$CONNECTIONS connections of $1" net=$2 since newcomer
	need "$what: addresses" addresses_up "$2" "$3"
	need "$what: mounts" mount_them
	begin_reading
	need "$what: all are in use" wait_for $PATIENCE all_read
	is_traced 1
	dmesg --clear
	need "$what: the server stops" rpc.nfsd 0
	sleep 1
	note_read
	need "$what: it starts" server_start
	since=$(now)
	mount_at "$net.$((MOUNTS + 1))" new >/tmp/new.log 2>&1 &
	newcomer=$!
	check "$what: all are back within $(seconds $SOON) s" wait_for $SOON all_read
	check "$what: they are back" wait_for $PATIENCE all_read
	say "$what: after $(awk -v since=$since -v now=$(now) 'BEGIN { printf "%.1f", now - since }') s"
	wait $newcomer
	check "$what: one that is mounted meanwhile gets in" ended $? 0 /tmp/new.log
	is_traced 0
	tell "$what"
	check "$what: nobody was refused for the number" not grep -q 'too many' <(dmesg)
	kill -INT $READER
	wait $READER
	check "$what: reading ends well" ended $? "0|128" /tmp/fio.out
	check "$what: the data are right" same_sum /mnt/0/data $LOCAL/data
	check "$what: unmount" unmount_all
	check "$what: the addresses go" addresses_down "$2" "$3"
}

now() {
	echo $EPOCHREALTIME
}

# addresses_up NETWORK PREFIX: one more than there are mounts
addresses_up() {
	local n
	for ((n = 1; n <= MOUNTS + 1; n++)); do
		ip addr add "$1.$n/$2" dev "$(netdev)" || return
	done
	[ "$DEVICE" = siw ] || wait_for 10 gids "$1"
}

# With the first address of a network go the others.
addresses_down() {
	local n
	for ((n = MOUNTS + 1; n >= 1; n--)); do
		ip addr del "$1.$n/$2" dev "$(netdev)" || return
	done
}

# gids NETWORK: the device has one for each address of it
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

# mount_at ADDRESS NAME: and do not try again
mount_at() {
	local SERVER4=$1
	nfs_mount 3 rdma "/mnt/$2" nconnect=$NCONNECT,retry=0
}

# More at a time than there are connections, so that each gets some
begin_reading() {
	fio --name=read --filename_format='/mnt/$jobnum/data' --numjobs=$MOUNTS --thread \
		--rw=randread --bs=4k --size=1m --direct=1 --ioengine=libaio \
		--iodepth=$((4 * NCONNECT)) --rate_iops=$((IOPS / MOUNTS)) --time_based --runtime=600 \
		--eta=never --minimal --output=/tmp/fio.out &
	READER=$!
	note_read
}

# ended STATUS WANTED LOG: a status of fio, when it is interrupted, is 128
ended() {
	[[ $1 =~ ^($2)$ ]] || { echo "status $1:"; cat "$3"; return 1; }
}

# How many Replies each connection of the mounts has brought
replies() {
	awk '$1 == "device" { here = $5 ~ "^/mnt/[0-9]" }
	     here && $1 == "xprt:" { print $9 }' /proc/self/mountstats
}

note_read() {
	replies >/tmp/replies
}

# Each has brought one more since. One process for it all, as each costs the
# machine what several connections do.
all_read() {
	awk -v connections=$CONNECTIONS '
		FNR == NR { was[NR] = $1; next }
		$1 == "device" { here = $5 ~ "^/mnt/[0-9]" }
		here && $1 == "xprt:" && $9 > was[++n] { more++ }
		END { exit more != connections }' /tmp/replies /proc/self/mountstats
}

is_traced() {
	local tracing=/sys/kernel/tracing name
	[ "$1" = 0 ] || : >$tracing/trace
	for name in state event; do
		echo "$1" >$tracing/events/rpcrdma/rpcrdma_conn_$name/enable
	done
}

# Where the time went. What the server closes without having been stopped is what
# nfsd finds too many.
tell() {
	local trace=/sys/kernel/tracing/trace
	say "$1: $(grep -c ' event=REJECTED' $trace) times rejected," \
		"$(grep -c ' event=UNREACHABLE' $trace) times not reached," \
		"$(grep -c ' state=ACCEPTING' $trace) accepted," \
		"$(grep -c ' state=CLOSING status=-108' $trace) closed by their own end"
}
