# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios with many connections: whether all connections of mounts work, how long
# connections are in each state, and a crowd, which is many clients without mounts.
# tools/testing/rpcrdma/crowd/rdma_crowd.c says what its parameters and files are.

# elapsed SINCE [UNTIL]: seconds between two times, or until now
elapsed() {
	awk -v since="$1" -v end="${2:-$EPOCHREALTIME}" 'BEGIN { printf "%.1f", end - since }'
}

# ended STATUS WANTED LOG: check an exit status. fio's is 128 when it is interrupted.
ended() {
	[[ $1 =~ ^($2)$ ]] || { echo "status $1:"; cat "$3"; return 1; }
}

# Connections of mounts

# For awk: the lines of mountstats that are about connections of the mounts.
CONNECTION='$1 == "device" { here = $5 ~ "^/mnt/[0-9]" }
	here && $1 == "xprt:"'

# How many Replies each connection of the mounts has had
replies() {
	awk "$CONNECTION { print \$9 }" /proc/self/mountstats
}

note_read() {
	replies >/tmp/replies
}

# Each of CONNECTIONS has had another Reply since note_read. This is a single process,
# because starting one costs the guest as much as several connections do.
all_read() {
	awk -v connections=$CONNECTIONS '
		FNR == NR { was[NR] = $1; next }'"
		$CONNECTION"' && $9 > was[++n] { more++ }
		END { exit more != connections }' /tmp/replies /proc/self/mountstats
}

# States

# A trace instance of its own, with a clock that is exact on each kernel
STATES=/sys/kernel/tracing/instances/states

# trace_states CONNECTIONS: record when so many, with both ends here, change their state, even if
# each is lost, refused a few times and made again.
trace_states() {
	mkdir -p $STATES && echo mono >$STATES/trace_clock &&
		echo $((1024 + 4 * $1)) >$STATES/buffer_size_kb &&
		echo 1 >$STATES/events/rpcrdma/rpcrdma_conn_state/enable && cm_retries >/tmp/retries
}

# Requests and other messages of the CM that had to be sent again, over all devices
cm_retries() {
	cat /sys/class/infiniband/*/ports/1/cm_tx_retries/* 2>/dev/null | awk '{ n += $1 } END { print n + 0 }'
}

# say_states WHAT: print how long connections were in each state since trace_states, and end that.
# How long one was established is no matter.
say_states() {
	echo 0 >$STATES/events/rpcrdma/rpcrdma_conn_state/enable
	check "$1: no change of a state was lost" \
		not grep -qE '^(overrun|dropped events): [1-9]' $STATES/per_cpu/cpu*/stats
	# cat, because awk would read this file in small pieces, which takes long.
	cat $STATES/trace | awk '/ rpcrdma_conn_state: / {
		conn = $(NF - 3)
		if (conn in state && state[conn] != "ESTABLISHED")
			printf "%s %.4f\n", state[conn], 1000 * ($(NF - 5) - since[conn])
		state[conn] = substr($(NF - 1), 7)
		since[conn] = $(NF - 5) + 0
	}' | sort -k1,1 -k2,2n | say_percentiles "$1"
	say "$1: $(($(cm_retries) - $(cat /tmp/retries))) messages of the CM sent again"
	rmdir $STATES
}

# say_percentiles WHAT: of sorted lines with a state and milliseconds
say_percentiles() {
	awk -v what="$1" '
		function tell() {
			if (n) printf "# %s: %s %d times, p50 %.1f ms, p99 %.1f ms, at most %.1f ms\n",
				what, state, n, ms[int((n + 1) / 2)], ms[int((99 * n + 99) / 100)], ms[n]
			n = 0
		}
		$1 != state { tell(); state = $1 }
		{ ms[++n] = $2 }
		END { tell() }'
}

# A crowd

CROWD=/sys/kernel/debug/rdma_crowd

# crowd_up PARAMETER=VALUE...: connect from where mounts are made. This does not wait.
crowd_up() {
	${NETNS:+nsenter "--net=/run/netns/$NETNS"} modprobe rdma_crowd "$@"
}

crowd_down() {
	modprobe -r rdma_crowd
}

# crowd FILE NUMBER: what it is to do
crowd() {
	echo "$2" >"$CROWD/$1"
}

# result FILE
result() {
	cat "$CROWD/$1"
}

# result_is FILE NUMBER
result_is() {
	is "$2" "$(result "$1")"
}

# The export's file handle, octet by octet. A client must have mounted it since the server was
# started.
file_handle() {
	local handle
	exec 3<>/proc/fs/nfsd/filehandle && echo "* $LOCAL 64" >&3 && read -r handle <&3 &&
		sed 's/../,0x&/g; s/^,//' <<<"${handle#\\x}"
	exec 3>&-
}
