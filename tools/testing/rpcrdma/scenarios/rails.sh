# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a mount uses two addresses of its server by two devices, and goes on if either is lost
# also:    um-7
# devices: rxe mem
# modules: ours
# limit:   500
# faults:  a device goes away, and an interface goes down
#
#   server and client
#   +------------------------------------+
#   | nfsd, rdma port 20049              |
#   | mount at /mnt, one session         |
#   |  rail 0: 10.17.0.1, mem0 on lab0   |
#   |  rail 1: 10.17.1.1, mem1 on lab1   |
#   +------------------------------------+
#
# A connection to a local address uses the device that has this address: both ends of a rail have
# one device, and lose it at the same time. The mount names rail 0, which has the session's callbacks.
#
# Only on 7.x: on 6.12 all I/O over TCP stops when rail 1 goes.

. "${BASH_SOURCE%/*}/../guest/faults.sh"
. "${BASH_SOURCE%/*}/../guest/many.sh"
. "${BASH_SOURCE%/*}/../guest/tools.sh"

RAIL_0=10.17.0.1 RAIL_1=10.17.1.1
OPTIONS=trunkdiscovery,max_connect=2,nconnect=2

# Seconds for which a rail is away, and in which I/O must go on over the other one
AWAY=35 SOON=30

server() {
	server_begin
	need "the program" tool_up
	need "add rail 1" eval "ip link add lab1 type dummy && rail_up 1"
	need "the server names both addresses" name_both
}

# trunkdiscovery asks the server for the addresses of an export.
name_both() {
	sed -i "s|,fsid=17|&,replicas=$EXPORT@$RAIL_0+$RAIL_1|" /etc/exports && exportfs -ra
}

client() {
	client_begin
	need "mount" nfs_mount 4.1 rdma /mnt $OPTIONS
	writers_begin
	need "the connections to both addresses are of one session" wait_for 10 one_session
	need "both rails carry traffic" both_carry
	rail_goes 1 0 "its device is deleted" rdma link delete "${DEVICE}1"
	rail_goes 0 1 "its device is deleted" rdma link delete "${DEVICE}0"
	if [ "$DEVICE" = rxe ]; then
		skip "a rail goes: its link is down" "rxe makes no connections after that"
	else
		rail_goes 1 0 "its link is down" ip link set lab1 down
		rail_goes 0 1 "its link is down" ip link set lab0 down
	fi
	writers_end
	check "unmount" unmount /mnt
	need "no connection of the mount is left" wait_for 60 no_transport
	# Once is enough: TCP needs no device.
	[ "$DEVICE" = mem ] || beside_tcp
}

client_done() {
	check "both rails are there" eval "rail_up 0 && rail_up 1"
	pkill -INT -x fio
	check "unmount" wait_for $RECOVERY unmount_all
	# A client that is left would try to reach the stopped server, and keep the module loaded.
	check "no connection of a mount is left" wait_for 60 no_transport
}

server_done() {
	check "remove rail 1" eval "rdma link delete ${DEVICE}1 && ip link delete lab1"
	server_end
}

# Rails

# rail_up NUMBER: give a rail what it lacks.
rail_up() {
	give_addresses "lab$1" "$1" 1 || return
	rdma link show "$DEVICE$1/1" >/dev/null 2>&1 ||
		rdma link add "$DEVICE$1" type "$DEVICE" netdev "lab$1" || return
	wait_for 5 has_gid "$DEVICE$1"
}

one_session() {
	show_is true client "length == 3 and (map(.\"xprt-switch\") | unique | length == 1) and
		(map(.device) | unique) == [\"${DEVICE}0\", \"${DEVICE}1\"]"
}

# sent RAIL: octets that its connections have sent in chunks since they were made
sent() {
	from_show client "[.[] | select(.device == \"$DEVICE$1\" and .state == \"established\") |
		.sent.\"placed-octets\" // 0] | add // 0"
}

carries() {
	[ "$(sent "$1")" -gt "$2" ]
}

both_carry() {
	local zero one
	zero=$(sent 0) one=$(sent 1)
	wait_for 10 carries 0 "$zero" && wait_for 10 carries 1 "$one"
}

established() {
	show_is "$2" client "map(select(.device == \"$DEVICE$1\" and .state == \"established\")) |
		length"
}

# Whether sunrpc has no transport to or from the addresses of the rails. The server has some for
# callbacks.
no_transport() {
	not grep -qs '^10\.17\.' /sys/kernel/sunrpc/xprt-switches/*/xprt-*/dstaddr
}

# Faults

# rail_goes RAIL OTHER WHAT FAULT...: its connections are to go by the other rail meanwhile.
rail_goes() {
	local rail=$1 other=$2 what="rail $1 goes: $3"
	need "$what" "${@:4}"
	watch $AWAY
	say "$what: octets arrived at $RATE KiB/s, and none for $STILL ms at most"
	check "$what: I/O never stands still for $SOON s" [ "$STILL" -lt ${SOON}000 ]
	check "$what: I/O goes on" wait_until 5 advances "$(octets)"
	check "$what: it has no connection" established "$rail" 0
	check "$what: all connections use rail $other" established "$other" 3
	comes_back "$what" "$rail"
}

# comes_back WHAT RAIL: each connection is to use its own rail again.
comes_back() {
	local since=$SECONDS
	need "$1: it comes back" rail_up "$2"
	check "$1: rail 0 is used again" wait_for $RECOVERY established 0 2
	check "$1: rail 1 is used again" wait_for $RECOVERY established 1 1
	say "$1: after $((SECONDS - since)) s"
	check "$1: both rails carry traffic again" both_carry
}

# A connection over TCP to a local address needs no device, but the address.
beside_tcp() {
	local since
	PORT=2049 nfs_mount 4.1 tcp /mnt $OPTIONS || { say "TCP: cannot be mounted"; return; }
	writers_begin
	wait_for 10 advances "$(octets)"
	say "TCP: transports to rail 0 and 1: $(tcp_to $RAIL_0), $(tcp_to $RAIL_1)"
	ip link set lab1 down
	watch $AWAY
	say "TCP, rail 1 goes: octets arrived at $RATE KiB/s, and none for $STILL ms at most"
	need "rail 1 comes back" rail_up 1
	since=$SECONDS
	# TCP pauses for as long again as it has waited.
	writers_end
	say "TCP, rail 1 comes back: after $((SECONDS - since)) s no RPC waited any more"
	check "unmount TCP" unmount /mnt
}

tcp_to() {
	grep -lsx "$1" /sys/kernel/sunrpc/xprt-switches/*/xprt-*-tcp/dstaddr | wc -l
}

# I/O

# Eight processes, since over TCP those whose RPC waits for a lost rail stand still. Their files stay
# open: to open one would lock the directory for all. Fewer I/Os than the guest can do, so that others
# may run.
writers_begin() {
	fio --name=rails --directory=/mnt --filename_format='rails.$jobnum' --numjobs=8 --thread \
		--rw=write --bs=64k --size=1m --direct=1 --ioengine=psync --verify=crc32c \
		--verify_backlog=4 --verify_fatal=1 --rate_iops=25 --time_based --runtime=3600 \
		--eta=never --minimal --output=/tmp/fio.out >/tmp/fio.log 2>&1 &
	WRITERS=$!
	need "there is I/O" wait_for 20 advances 0
}

writers_end() {
	kill -INT $WRITERS
	wait_for 120 not kill -0 $WRITERS
	check "no process waits for I/O" not kill -0 $WRITERS
	wait $WRITERS
	check "the data are correct" ended $? "0|128" /tmp/fio.out
	rm -f /mnt/rails.*
}

# octets: what the server has read and written for the mount
octets() {
	awk '$1 == "device" { here = $5 == "/mnt" }
		here && $1 == "bytes:" { printf "%.0f\n", $6 + $7 }' /proc/self/mountstats
}

advances() {
	[ "$(octets)" -gt "$1" ]
}

# watch SECONDS: RATE is how many KiB arrived per second meanwhile, STILL the most milliseconds in
# which none did. What fio tells of latencies leaves out I/O that has not ended.
watch() {
	local begin=${EPOCHREALTIME/./} now first had have last
	first=$(octets) had=$first last=$begin now=$begin STILL=0
	while ((now - begin < $1 * 1000000)); do
		sleep 0.3
		have=$(octets) now=${EPOCHREALTIME/./}
		((now - last <= STILL * 1000)) || STILL=$(((now - last) / 1000))
		((have == had)) || last=$now
		had=$have
	done
	RATE=$(((had - first) * 1000 / 1024 / ((now - begin) / 1000)))
}
