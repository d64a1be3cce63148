# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# The steps that rpcrdma_lab/soak.py has a guest do: up; in each period start, then settle, inject
# and sample in turns, and stop; down. leave is for what has failed.
#
#   +----------------------------------------------+
#   | nfsd, rdma port 20049                        |
#   | a Kerberos realm                             |
#   | /tmp/soak/vVERSION: a mount of each version, |
#   | with soak-workers in a folder of its own     |
#   | one device on lab0                           |
#   +----------------------------------------------+
#
# Variables: MOUNTS has VERSION/CONNECTIONS/FLAVOUR/WORKER... for each mount, separated by commas;
# KIND and ARG are a fault.

. "${BASH_SOURCE%/*}/krb5.sh"
. "${BASH_SOURCE%/*}/mem.sh"
. "${BASH_SOURCE%/*}/../scenarios/container.sh"
. "${BASH_SOURCE%/*}/../scenarios/faults-disconnect.sh"
. "${BASH_SOURCE%/*}/../scenarios/faults-memory.sh"
. "${BASH_SOURCE%/*}/../scenarios/slabs.sh"

# Calls may wait for as long as a fault takes. Whether workers advance is looked at.
PATIENCE=
# In a day other parts of the kernel allocate some more than after the warm-up.
TIMES=40
# A client connects again within half of a lease, and in time to reclaim its locks.
LEASE=20

SEC=sys:krb5:krb5i:krb5p
SOAK=/tmp/soak NOW=/tmp/soak/now
STATES=/sys/kernel/tracing/instances/soak

up() {
	begin
	need "NFS server" server_up
	kerberos_up
	need "stop it" rpc.nfsd 0
	need "a grace period of $LEASE s" eval "echo $LEASE >/proc/fs/nfsd/nfsv4gracetime"
	# A process may wait for faults that come one after the other, and for a grace period.
	echo 300 >/proc/sys/kernel/hung_task_timeout_secs
	need "a trace of its own" mkdir $STATES
	echo 512 >$STATES/buffer_size_kb
	mkdir $SOAK
}

start() {
	local mount fields kind
	rm -rf $NOW
	mkdir $NOW
	: >$NOW/restarts
	echo $EPOCHSECONDS >$NOW/sampled
	need "load rpcrdma, and start the server" load_and_listen
	echo 1 >$STATES/events/rpcrdma/rpcrdma_conn_state/enable
	# A folder that several clients change might stay delegated: see known-failures.rst.
	mkdir $LOCAL/container
	for mount in ${MOUNTS//,/ }; do
		IFS=/ read -ra fields <<<"$mount"
		need "mount v${fields[0]}" nfs_mount "${fields[0]}" rdma "$SOAK/v${fields[0]}" \
			"nconnect=${fields[1]},sec=${fields[2]}"
		need "its folder" mkdir "$(folder "v${fields[0]}")"
		for kind in "${fields[@]:3}"; do
			: >"$NOW/v${fields[0]}-$kind.rounds"
			work "v${fields[0]}-$kind"
		done
	done
	settle
}

# folder vVERSION: of the workers of a mount
folder() {
	echo "$SOAK/$1/$1"
}

# work MOUNT-KIND: start a worker, in a session of its own.
work() {
	setsid nice python3 -B /lab/guest/soak-worker "$(folder "${1%-*}")" "${1#*-}" "$NOW/$1" \
		>>"/lab/out/$1.log" 2>&1 </dev/null &
	echo $! >"$NOW/$1.pid"
}

settle() {
	need "each worker advances, and none has failed" advance
}

# advance: each worker ends a round that it began after this call.
advance() {
	wc -l "$NOW"/*.rounds >$NOW/before
	wait_for $RECOVERY advanced
	! failed && advanced && return
	paste <(wc -l "$NOW"/*.rounds) $NOW/before
	tail -n 20 /lab/out/v*.log
	return 1
}

advanced() {
	failed || paste <(wc -l "$NOW"/*.rounds) $NOW/before |
		awk '$2 != "total" && $1 < $3 + 2 { exit 1 }'
}

failed() {
	compgen -G "$NOW/*.failed"
}

# Print the operations of this period, the longest of those that have ended since the last sample,
# in seconds, and KiB of memory in use.
sample() {
	local since
	since=$(cat $NOW/sampled)
	echo $EPOCHSECONDS >$NOW/sampled
	cat $NOW/*.rounds | awk -v since="$since" '
		FILENAME ~ /meminfo/ { kib[$1] = $2; next }
		{ operations += $2 }
		$1 >= since && $3 > longest { longest = $3 }
		END {
			print "# sample", operations + 0, longest + 0, kib["MemTotal:"] - kib["MemAvailable:"]
		}' - /proc/meminfo
}

stop() {
	[ "$DEVICE" != mem ] || need "no more faults" no_fault mem0
	settle
	touch $NOW/stop
	need "the workers end" wait_for $RECOVERY not pgrep -f guest/soak-worker
	need "none has failed" not failed
	check "unmount" wait_for 10 unmount_all
	need "stop the server" rpc.nfsd 0
	rm -rf "${LOCAL:?}"/*
	echo 0 >$STATES/events/rpcrdma/rpcrdma_conn_state/enable
	need "unload rpcrdma" wait_for 10 unload
	base_line
}

# What was in use after the first period must be enough after each. rpcrdma is not loaded.
base_line() {
	local cache
	# Free the server's GSS contexts as well whose clients had no connection to destroy them.
	for cache in /proc/net/rpc/auth.rpcsec.*/flush; do
		echo $EPOCHSECONDS >"$cache"
	done
	if [ ! -e /tmp/slabs.before ]; then
		# kvfree_rcu() may free objects up to five seconds later.
		sleep 6
		slab_counts >/tmp/slabs.before
		[ "$DEVICE" != mem ] || objects >/tmp/objects
		return
	fi
	[ "$DEVICE" != mem ] ||
		check "the device has no more objects and mappings than before" wait_for 10 as_before
	check "neither pages, nor kmalloc's and our caches, nor unreclaimable memory grow" \
		wait_for 10 nothing_has_grown
	say_growth
}

down() {
	kerberos_down
	check "stop the NFS server" server_down
	check "remove the $DEVICE device" rdma_down
}

leave() {
	cat $STATES/trace >/lab/out/trace
	cp /proc/self/mountstats $NOW/*.rounds /lab/out
	grep -H . /proc/[0-9]*/stack >/lab/out/stacks
	ls -lR --full-time $LOCAL >/lab/out/files
}

# Faults

inject() {
	need "$KIND $ARG" "inject_$KIND" "$ARG"
}

inject_clock() {
	date -s "@$((EPOCHSECONDS + $1))" && sleep 2 && date -s "@$((EPOCHSECONDS - $1))"
}

# A transport that refuses, or is connecting, is no failure.
inject_disconnect() {
	drop_connections || true
}

inject_device() {
	rdma link delete "${DEVICE}0" && sleep "$1" && rdma_up
}

inject_link() {
	ip link set lab0 down && sleep "$1" && ip link set lab0 up && net_up && wait_for 5 gid_ready
}

# inject_operation OP/NTH/ACTION: one operation of the device, see guest/mem.sh
inject_operation() {
	# shellcheck disable=SC2086
	fault mem0 ${1//\// }
}

inject_server() {
	local status
	printf . >>$NOW/restarts
	rpc.nfsd 0 && sleep "$1" && server_start
	status=$?
	printf . >>$NOW/restarts
	return $status
}

# inject_kill NUMBER: a worker, which is then started again
inject_kill() {
	local workers=("$NOW"/*.pid) one
	one=$(basename "${workers[$1 % ${#workers[@]}]}" .pid)
	kill -9 -- "-$(cat "$NOW/$one.pid")" && work "$one"
}

# inject_mount VERSION: one more, for a moment
inject_mount() {
	local copy=$SOAK/more/v$1/copy
	nfs_mount "$1" rdma $SOAK/more nosharecache &&
		cp /lab/rpcrdma "$copy" && cmp /lab/rpcrdma "$copy" && rm -f "$copy" && umount $SOAK/more
}

# inject_namespace VERSION: a mount that is left in one mount namespace alone, whose only process
# is killed while it writes. It must not fork then: see known-failures.rst.
inject_namespace() {
	local pid status file=v$1/namespace.$EPOCHSECONDS
	nfs_mount "$1" rdma $SOAK/more nosharecache || return
	setsid unshare --mount python3 -c \
		"while True: open('$SOAK/more/$file', 'wb').write(bytes(1 << 20))" &
	pid=$!
	wait_for $RECOVERY test -e "$LOCAL/$file" && umount $SOAK/more
	status=$?
	kill -9 -- -$pid && return $status
}

# inject_container VERSION: the same with a network namespace and devices of its own, see
# scenarios/container.sh
inject_container() {
	container_up && container_writes "$1" && container_kill &&
		wait_for $RECOVERY container_is_gone
}

# inject_setting NAME=VALUE: from the next connections on. They end with the module.
inject_setting() {
	tune "${1%=*}" "${1#*=}" && inject_disconnect
}

# inject_dropping END: it drops connections by sunrpc's own fault injection.
inject_dropping() {
	drop_by "$1" && sleep 5
	echo 0 >$INJECT/probability
}

# inject_memory KIND: a fifth of the allocations of new connections fail.
inject_memory() {
	configure "$1" && fail_for_3s "$1" 5
}
