# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a connection whose Calls are all dropped is closed after a minute, and no WRITE is lost
# guests:  um/rxe
# also:    um-7-debug/rxe
# devices: rxe
# modules: ours
# limit:   180
# faults:  a service stands still
#
# The export's file system is frozen for 90 seconds. A connection breaks, so WRITEs that nfsd is
# still executing are sent again on another one, and it drops these.

. "${BASH_SOURCE%/*}/faults-frozen.sh"

# Seconds
FROZEN=90
# A server closes a connection when it has sent no Reply for a minute. It looks every eight
# seconds.
MINUTE="58 100"
CLOSED="closed: (-ESHUTDOWN|-108)"

client() {
	local since
	client_begin
	head -c 1M /dev/urandom >/tmp/data
	# The client itself shall not end a connection.
	need "mount" nfs_mount 3 rdma /mnt timeo=3000
	need "make files" files_made
	hung_tasks 0
	check "freeze the export" fsfreeze -f $LOCAL
	since=$SECONDS
	write_all
	sleep 2
	dmesg --clear
	need "break the connection" device_bounce
	check "the next connection is made" wait_for 20 log_has accepted
	check "the server closes it" wait_for 90 log_has "$CLOSED"
	check "after about a minute" closed_after $MINUTE
	wait_for $FROZEN is_over $((since + FROZEN))
	check "no WRITE has ended" not compgen -G '/tmp/written.*'
	check "unfreeze the export" fsfreeze -u $LOCAL
	check "all writers continue and succeed" written
	check "the data are correct" files_right
	check "two new connections" is 3 "$(connections_made)"
	hung_tasks 60
	check "umount" umount /mnt
}

# hung_tasks SECONDS: after that the kernel reports a task that waits; 0: never
hung_tasks() {
	echo "$1" >/proc/sys/kernel/hung_task_timeout_secs
}

# log_has PATTERN: what the server has logged since dmesg was cleared
log_has() {
	dmesg | grep -E "rpcrdma: $SERVER4:[3-6][0-9]{4}: $1"
}

# closed_after LEAST MOST: seconds from when a connection was accepted to when the server closed it
closed_after() {
	{ log_has accepted | head -n 1; log_has "$CLOSED" | head -n 1; } |
		sed 's/^\[ *\([0-9.]*\)\] .*/\1/' | awk -v least="$1" -v most="$2" '
			{ time[NR] = $1 }
			END {
				took = time[2] - time[1]
				print took " s"
				exit !(NR == 2 && took >= least && took <= most)
			}'
}
