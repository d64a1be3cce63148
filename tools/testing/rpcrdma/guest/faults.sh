# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Verified I/O that faults happen to, faults, and what memory is in use.

# How long I/O may take to come back, in the seconds of wait_for. RoCE gives up a
# Send that nobody acknowledges after four, the CM repeats its requests every four,
# sunrpc waits three between attempts to connect, and a server that was started anew
# ten for the clients it had.
PATIENCE=45

# I/O

# io_begin DIRECTORY: two writers, each of a file and of a small one
io_begin() {
	local n
	rm -f /tmp/io.*
	head -c 1M /dev/urandom >/tmp/io.data
	: >/tmp/io.on
	for n in 1 2; do
		: >/tmp/io.$n
		writer "$1/io.$n" /tmp/io.$n >>/tmp/io.log 2>&1 &
	done
}

# A line in COUNT for each round, and at last its end in COUNT.end.
writer() {
	local file=$1 count=$2 status=0
	while [ -e /tmp/io.on ] && [ $status -eq 0 ]; do
		io_round "$file" $(($(wc -l <"$count") % 13))
		status=$?
		[ $status -ne 0 ] || echo >>"$count"
	done
	echo $status >"$count.end"
}

# Other data every time, or what is old would pass for what is new.
io_round() {
	part $2 | dd of="$1" bs=64k count=4 iflag=fullblock oflag=direct conv=notrunc status=none &&
		dd if="$1" bs=64k iflag=direct status=none | cmp - <(part $2) &&
		echo "round $2" >"$1.small" && grep -qx "round $2" "$1.small"
}

part() {
	dd if=/tmp/io.data bs=64k skip="$1" count=4 status=none
}

# Both writers get through a round that they began after this was called.
io_advances() {
	local one two
	one=$(wc -l </tmp/io.1) two=$(wc -l </tmp/io.2)
	wait_for $PATIENCE io_past $((one + 1)) $((two + 1)) && not io_ended ||
		{ cat /tmp/io.log; return 1; }
}

io_past() {
	io_ended || { [ "$(wc -l </tmp/io.1)" -gt "$1" ] && [ "$(wc -l </tmp/io.2)" -gt "$2" ]; }
}

io_ended() {
	compgen -G '/tmp/io.?.end' >/dev/null
}

# What the writers found, now that they are to end
io_end() {
	rm /tmp/io.on
	wait_for $PATIENCE test -e /tmp/io.1.end -a -e /tmp/io.2.end
	cat /tmp/io.log
	[ "$(cat /tmp/io.1.end /tmp/io.2.end)" = "$(printf '0\n0')" ]
}

# survives WHAT FAULT...: I/O at /mnt goes on after it, and the data are right
survives() {
	local what=$1 since connections
	connections=$(connections_made)
	io_begin /mnt
	need "$what: there is I/O" io_advances
	check "$what" "${@:2}"
	since=$SECONDS
	check "$what: I/O goes on" io_advances
	say "after $((SECONDS - since)) s, and $(($(connections_made) - connections)) new connections"
	need "$what: the data are right" io_end
	rm -f /mnt/io.*
}

# reconnects WHAT FAULT...: the same, of a fault that no connection survives
reconnects() {
	local connections
	connections=$(connections_made)
	survives "$@"
	check "$1: that took another connection" [ "$(connections_made)" -gt "$connections" ]
}

# Faults

# In one guest siw's packets pass lo; what rxe sends to itself passes nothing,
# but it asks for the route first.
link_bounce() {
	local dev=lab0 still
	[ "$DEVICE" = rxe ] || dev=lo
	ip link set $dev down || return
	io_stands_still
	still=$?
	ip link set $dev up && net_up && wait_for 5 gid_ready && return $still
}

# Where guests are slow a round takes some seconds, and so may its end.
io_stands_still() {
	local rounds
	sleep "$(seconds 1)"
	rounds=$(cat /tmp/io.[12] | wc -l)
	sleep "$(seconds 1)"
	is "$rounds" "$(cat /tmp/io.[12] | wc -l)"
}

# A bridge has the carrier of its port. To set an interface down is more than rxe
# survives, or User-Mode Linux, which closes its socket for good.
bridge_up() {
	net_up && modprobe -q bridge
	ip addr flush dev "$(cable)" &&
		ip link add lab0 address "02:17:00:00:00:0$END" type bridge &&
		ip link set "$(cable)" master lab0
}

# RoCE gives up a Send meanwhile.
cable_bounce() {
	ip link set "$(cable)" nomaster && sleep 6 && ip link set "$(cable)" master lab0
}

device_bounce() {
	rdma link delete "${DEVICE}0" && sleep 1 && rdma_up
}

server_start() {
	rpc.nfsd "${NFSD_THREADS:-8}" && listen
}

server_bounce() {
	rpc.nfsd 0 && sleep 1 && server_start
}

unload() {
	module_goes && not loaded
}

# impair DEV HOW...: what leaves by a network interface, by netem
impair() {
	modprobe -q sch_netem
	tc qdisc replace dev "$1" root netem limit 10000 "${@:2}"
}

impair_no_more() {
	tc qdisc del dev "$1" root
}

# Orders, from the client's guest to the server's: the mount is all they share.
# One is a file named for the function that is to run; the other end removes it,
# runs the function and makes a file that says so. The mount must not cache names.

take_orders() {
	local order name
	while sleep 0.2; do
		for order in "$LOCAL"/do.*; do
			[ -e "$order" ] || continue
			name=${order##*/do.}
			rm "$order"
			"$name" && : >"$LOCAL/done.$name"
		done
	done >/tmp/orders.log 2>&1 </dev/null
}

order() {
	: >"/mnt/do.$1" && wait_for $PATIENCE test -e "/mnt/done.$1" && rm "/mnt/done.$1"
}

# Memory

# Objects in use, by slab cache, and how many are in a slab. What a cache keeps
# for later, or KASAN for its reports, is given up first.
slab_counts() {
	local cache
	drop_caches
	# Work items and RCU callbacks that are still due
	sleep 1
	for cache in /sys/kernel/slab/*/shrink; do
		echo 1 >"$cache"
	done
	awk 'FILENAME ~ /slabinfo/ && FNR > 2 { print $1, $2, $5 }
	     /^SUnreclaim:/ { print $1, $2 }' /proc/slabinfo /proc/meminfo
}

# grown TIMES BEFORE AFTER: caches that have an object more for each time, and
# the kernel's memory if it has 32 KiB more for each. The slab that a CPU
# allocates from counts as if it were all in use.
grown() {
	awk -v times="$1" -v cpus="$(nproc)" '
		NR == FNR { before[$1] = $2; next }
		{ more = $2 - before[$1] }
		$1 == "SUnreclaim:" && more >= 32 * times { print $1, more " KiB" }
		$1 != "SUnreclaim:" && more >= times + cpus * $3 { print $1, more }' "$2" "$3"
}
