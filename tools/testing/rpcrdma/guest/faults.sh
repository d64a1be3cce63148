# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios with faults: verified I/O, faults, and memory in use.

# How long I/O may take to continue after a fault, in the seconds of wait_for. RoCE gives
# up a Send after four seconds without acknowledgement. The CM repeats a request after
# four seconds. sunrpc waits three seconds between attempts to connect. A restarted server
# waits ten seconds for its earlier clients.
RECOVERY=45

# I/O

# io_begin DIRECTORY: start two writers. Each writes a large and a small file.
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

# writer FILE COUNT: write until /tmp/io.on is removed or a round fails. COUNT gets a line
# for each round, COUNT.end the status of the last one.
writer() {
	local file=$1 count=$2 status=0
	while [ -e /tmp/io.on ] && [ $status -eq 0 ]; do
		io_round "$file" $(($(wc -l <"$count") % 13))
		status=$?
		[ $status -ne 0 ] || echo >>"$count"
	done
	# With its content
	echo $status >"$count.status" && mv "$count.status" "$count.end"
}

# io_round FILE PART: write and compare. Each round has other data than the one before, so
# that old data are noticed.
io_round() {
	part $2 | dd of="$1" bs=64k count=4 iflag=fullblock oflag=direct conv=notrunc status=none &&
		dd if="$1" bs=64k iflag=direct status=none | cmp - <(part $2) &&
		echo "round $2" >"$1.small" && grep -qx "round $2" "$1.small"
}

# part NUMBER: 256 KiB of the random data
part() {
	dd if=/tmp/io.data bs=64k skip="$1" count=4 status=none
}

# Wait until both writers have completed a round that they began after this call.
io_advances() {
	local one two
	one=$(wc -l </tmp/io.1) two=$(wc -l </tmp/io.2)
	wait_for $RECOVERY io_past $((one + 1)) $((two + 1)) && not io_ended ||
		{ cat /tmp/io.log; return 1; }
}

io_past() {
	io_ended || { [ "$(wc -l </tmp/io.1)" -gt "$1" ] && [ "$(wc -l </tmp/io.2)" -gt "$2" ]; }
}

io_ended() {
	compgen -G '/tmp/io.?.end' >/dev/null
}

# End the writers. True if none of them found wrong data.
io_end() {
	rm /tmp/io.on
	wait_for $RECOVERY test -e /tmp/io.1.end -a -e /tmp/io.2.end
	cat /tmp/io.log
	[ "$(cat /tmp/io.1.end /tmp/io.2.end)" = "$(printf '0\n0')" ]
}

# survives WHAT FAULT...: cause a fault during I/O at /mnt. I/O must continue after it, and
# the data must be correct.
survives() {
	local what=$1 since connections
	connections=$(connections_made)
	io_begin /mnt
	need "$what: there is I/O" io_advances
	check "$what" "${@:2}"
	since=$SECONDS
	check "$what: I/O continues" io_advances
	say "after $((SECONDS - since)) s, and $(($(connections_made) - connections)) new connections"
	need "$what: the data are correct" io_end
	rm -f /mnt/io.*
}

# reconnects WHAT FAULT...: the same for a fault that must break the connection.
reconnects() {
	local connections
	connections=$(connections_made)
	survives "$@"
	check "$1: a new connection was made" [ "$(connections_made)" -gt "$connections" ]
}

# Faults

# Set an interface down until I/O stops, then up. Within one guest the packets of siw pass
# lo. Those of rxe pass no interface, but rxe needs lab0 to be up to find a route. The test
# device's port is up if lab0 is.
link_bounce() {
	local dev=lab0 stopped
	[ "$DEVICE" != siw ] || dev=lo
	ip link set $dev down || return
	io_stops
	stopped=$?
	ip link set $dev up && net_up && wait_for 5 gid_ready && return $stopped
}

# True if no round ends within a second. A round that was nearly complete may end in the
# second before that. On a slow guest a round takes longer, and so do both seconds.
io_stops() {
	local rounds
	sleep "$(seconds 1)"
	rounds=$(cat /tmp/io.[12] | wc -l)
	sleep "$(seconds 1)"
	is "$rounds" "$(cat /tmp/io.[12] | wc -l)"
}

# Put the interface that connects the guests into a bridge, lab0, which has the carrier of
# its port. So a test can take away the carrier and need not set an interface down: rxe
# does not recover from that, and User-Mode Linux closes its socket and cannot reopen it.
bridge_up() {
	net_up && modprobe -q bridge
	ip addr flush dev "$(cable)" &&
		ip link add lab0 address "02:17:00:00:00:0$END" type bridge &&
		ip link set "$(cable)" master lab0
}

# Have the other guest's link address for good. Otherwise, if probes of the neighbour are among
# the packets that netem loses, no connection is requested or accepted as long as the loss lasts.
# Not for a lost carrier: then the request itself cannot be sent, and rxe's queue pair for
# datagrams is in error for ever.
neighbour_known() {
	local other=$((3 - END))
	ip neigh replace "10.17.0.$other" lladdr "02:17:00:00:00:0$other" dev lab0 nud permanent
}

# Take away the carrier for long enough that RoCE gives up a Send.
cable_bounce() {
	ip link set "$(cable)" nomaster && sleep 6 && ip link set "$(cable)" master lab0
}

device_bounce() {
	rdma link delete "${DEVICE}0" && sleep 1 && rdma_up
}

server_start() {
	rpc.nfsd "${NFSD_THREADS:-8}" && listen
}

load_and_listen() {
	modprobe rpcrdma && server_start
}

server_bounce() {
	rpc.nfsd 0 && sleep 1 && server_start
}

unload() {
	unload_module && not loaded
}

# impair INTERFACE HOW...: have netem delay, lose or reorder what an interface sends.
impair() {
	modprobe -q sch_netem
	tc qdisc replace dev "$1" root netem limit 10000 "${@:2}"
}

impair_no_more() {
	tc qdisc del dev "$1" root
}

# The client's guest can have the server's guest run a function. The mount is all that
# they share: the client makes a file with the function's name, the server removes it,
# runs the function and makes a file when it is done. The mount must not cache names.

# The server's side. It runs in the background.
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

# order FUNCTION: the client's side. True if the function succeeded.
order() {
	: >"/mnt/do.$1" && wait_for $RECOVERY test -e "/mnt/done.$1" && rm "/mnt/done.$1"
}

# Reclaim

# Reclaim may evict an inode whose delegation is returned over this transport, and then waits
# for a connection. So what makes and ends a connection must not enter reclaim that calls
# into file systems. Lockdep has a lock, fs_reclaim, that each allocation takes which may do
# so, however much memory is free. The test device takes it wherever a driver may allocate.
# Only workers of workqueues are recorded, because I/O allocates very often.
RECLAIM=/sys/kernel/tracing/events/lock/lock_acquire
RECLAIM_EVENT='stacktrace if name == "fs_reclaim" && comm ~ "kworker/*"'
# The work items and handlers that make and end a client's connection
RECLAIM_USERS='conn_event conn_connect_work conn_established_work conn_teardown_work'
RECLAIM_USERS+=' mr_pool_work rpcrdma_pool_rest_work rpcrdma_keepalive_timer'
RECLAIM_USERS+=' xprt_rdma_ep_connect_worker deliver_work'

# reclaim_watch: record, on a kernel with lockdep, the call traces of these allocations.
reclaim_watch() {
	[ -e $RECLAIM ] || return 0
	# A function that has another name or is inlined would be in no call trace. cat, because awk
	# would read this file in small pieces, which takes long.
	need "rpcrdma has each function that may not enter reclaim" is "" "$(comm -13 \
		<(cat /proc/kallsyms | awk '$4 == "[rpcrdma]" { print $3 }' | sort) \
		<(printf '%s\n' $RECLAIM_USERS | sort))"
	# A trigger alone does not make the buffer larger than a few pages.
	echo 16384 >/sys/kernel/tracing/buffer_size_kb
	: >/sys/kernel/tracing/trace
	need "record allocations that may enter reclaim" eval "echo '$RECLAIM_EVENT' >$RECLAIM/trigger"
}

# reclaim_end: none of them made or ended a connection.
reclaim_end() {
	[ -e $RECLAIM ] || return 0
	echo "!$RECLAIM_EVENT" >$RECLAIM/trigger
	check "some allocations were recorded" grep -q 'stack trace' /sys/kernel/tracing/trace
	check "making and ending connections enters no reclaim of file systems" reclaim_by_nobody
}

# Print each call trace that has a forbidden function, once.
reclaim_by_nobody() {
	awk -v users="=> (${RECLAIM_USERS// /|})\$" '
		/stack trace/ { if (bad && !seen[stack]++) print stack; stack = bad = "" }
		/^ => / { stack = stack "\n" $0 }
		/=> fs_reclaim_acquire$/ { stack = "" }
		$0 ~ users { bad = 1; found = 1 }
		END { if (bad && !seen[stack]++) print stack; exit found }' /sys/kernel/tracing/trace
}

# Memory

# For each slab cache: objects in use, and objects in a slab, if the kernel tells. Also the memory
# that cannot be reclaimed, and how many pages are neither free nor counted as anything: those
# that somebody has from alloc_pages() for himself. Caches free their unused objects first, KASAN
# those of its quarantine. What is free in slabs that are partly in use does not count, if the
# kernel tells: it has differed by 1.6 MiB from load to load. Nor do kmemleak's objects.
slab_counts() {
	local cache
	drop_caches
	# For work items and RCU callbacks that have not run yet
	sleep 1
	for cache in /sys/kernel/slab/*/shrink; do
		echo 1 >"$cache"
	done
	awk 'FILENAME ~ /reclaim_account/ { split(FILENAME, path, "/"); reclaimed[path[5]] = $1; next }
	     FILENAME ~ /slabinfo/ {
		if (FNR <= 2)
			next
		print $1, $2, $5
		if (!reclaimed[$1])
			unused += $15 * $6 * 4 - ($1 == "kmemleak_object" ? 0 : $2 * $4 / 1024)
		next
	     }
	     FILENAME ~ /zoneinfo/ { if ($1 == "count:") pages -= $2; next }
	     /^SUnreclaim:/ { print $1, int($2 - unused) }
	     /^MemTotal:/ { pages += $2 / 4 }
	     /^(MemFree|Active|Inactive|Unevictable|Slab|KernelStack|PageTables|Percpu|VmallocUsed):/ {
		pages -= $2 / 4
	     }
	     END { print "pages:", pages }' /sys/kernel/slab/*/reclaim_account $(ls /proc/slabinfo) \
		/proc/meminfo /proc/zoneinfo
}

# grown TIMES BEFORE AFTER: print the caches that have one more object for each time, and
# SUnreclaim if it has 32 KiB more for each. All objects of the slab that a CPU allocates
# from count as in use, so each CPU may add one slab.
grown() {
	awk -v times="$1" -v cpus="$(nproc)" '
		NR == FNR { before[$1] = $2; next }
		{ more = $2 - before[$1] }
		$1 == "SUnreclaim:" && more >= 32 * times { print $1, more " KiB" }
		$1 == "pages:" && more >= times { print $1, more }
		$1 !~ /:$/ && more >= times + cpus * $3 { print $1, more }' "$2" "$3"
}
