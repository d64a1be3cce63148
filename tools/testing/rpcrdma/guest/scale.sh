# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   what many connections cost; rpcrdma_lab/bench.py compares modules
# guests:  um-7 debian-6.12
# steps:   ready up scale code job counted_job scale_end down
#
# A server has CONNECTIONS in all. Those of a mount do I/O, as guest/bench.sh says: 16, or all if
# they are fewer. The others are those of rdma_crowd, each of which has had one Call, and rest. If
# there are no others, a crowd of CONNECTIONS comes before the mount and goes, to measure its times.
#
#   +------------------------------------+
#   | nfsd, rdma port 20049              |
#   | rdma_crowd: clients; mount         |
#   | one device on lab0                 |
#   | 10.17.0.1, fd17::1                 |
#   +------------------------------------+

. /lab/guest/bench.sh
. /lab/guest/faults.sh
. /lab/guest/many.sh
. /lab/guest/tools.sh

ACTIVE=16
# Seconds in which all connections of a crowd must be up. The runner's limit for a step is longer
# than twice that.
UP=80

# 4 MiB for each process of fio
make_files() {
	local n
	for ((n = 0; n < ACTIVE; n++)); do
		head -c 4M /dev/zero >"$LOCAL/bench.$n.0" || return
	done
}

scale() {
	local active=$((CONNECTIONS < ACTIVE ? CONNECTIONS : ACTIVE)) resting=$CONNECTIONS
	local free slab device handle
	[ "$CONNECTIONS" -le $ACTIVE ] || resting=$((CONNECTIONS - ACTIVE))
	need "the program" tool_up
	need "raise nfsd's limit of connections" limit_connections 65535
	need "unmount" umount /mnt
	need "no connection is left" wait_until 20 no_connection
	handle=$(file_handle)
	need "the export has a file handle" [ -n "$handle" ]
	read -r free slab device < <(all_memory)
	SINCE=$EPOCHREALTIME
	need "a crowd of $resting" crowd_up connections="$resting" retry=1000 fh="$handle"
	come_up up 0
	sleep 2
	say_memory used
	[ "$MODULE" = inbox ] || show
	need "restart the server" server_bounce
	SINCE=$EPOCHREALTIME
	come_up again "$resting"
	[ "$CONNECTIONS" -gt $ACTIVE ] || need "unload the crowd" crowd_down
	need "mount" nfs_mount 3 rdma /mnt nconnect="$active"
	need "its connections are up" wait_until 20 mount_is_up "$active"
	echo "connections=$CONNECTIONS resting=$resting"
	sleep 2
}

# come_up NAME LOST: wait for the crowd, of which at least so many were lost until now, and print
# how many µs after SINCE the last connection came up.
come_up() {
	need "$1: all are up" crowd_is_up "$resting" "$2"
	echo "$1_us=$(($(result newest) / 1000 - ${SINCE/./}))"
}

crowd_is_up() {
	wait_until $UP crowd_has "$@" || { grep . $CROWD/{up,failed,lost,replies,wrong}; return 1; }
}

# crowd_has UP LOST. Without a process, because that takes long in a guest with much memory.
crowd_has() {
	local up lost
	read -r up <$CROWD/up && read -r lost <$CROWD/lost && [ "$up" = "$1" ] && [ "$lost" -ge "$2" ]
}

# A transport connects with its first RPC, and each RPC takes the next one.
mount_is_up() {
	local n
	for ((n = 0; n < $1; n++)); do
		stat -f /mnt >/dev/null || return
	done
	is "$1" "$(connections)"
}

show() {
	local since=${EPOCHREALTIME/./}
	need "rpcrdma show -a" eval 'rpcrdma show -a >/tmp/show'
	echo "show_us=$((${EPOCHREALTIME/./} - since))"
	need "it has each connection" [ "$(wc -l </tmp/show)" -ge "$resting" ]
}

# Before the module is unloaded, which may not take long
scale_end() {
	[ ! -e $CROWD ] || need "unload the crowd" crowd_down
	need "only connections of the mount are left" wait_until 60 few_queue_pairs
	need "restore nfsd's limit" limit_connections 0
}

few_queue_pairs() {
	[ "$(queue_pairs)" -le $((2 * ACTIVE)) ]
}
