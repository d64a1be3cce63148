# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the server sends its callbacks on the client's connection (RFC 8167)
# guests:  um um-7-debug/siw
# also:    um/mem um-debug/rxe um-7-smp/siw debian-6.1 debian-6.12 debian-13-7 smp-debug/rxe
# also:    debian-13-rt/rxe
# devices: rxe siw mem
# limit:   90

# nfsd does not delegate what it has recalled in the last minute. It keeps hashes of these
# files in a filter of 256 bits. With more files than these, the filter would be so full
# that nfsd delegates hardly any file.
FILES=16

EVENTS=/sys/kernel/tracing/events/nfsd
# The kernel's own module has no such events.
FORMS=$(echo /sys/kernel/tracing/events/rpcrdma/rpcrdma_{call,reply}_form/enable)
# Backward Calls in flight at most, in the last part: as many as the client grants
LIMIT=2

# nfsd revokes a delegation if the client does not return it within a lease period. On
# slow guests the client takes longer.
server() {
	LEASE=$(seconds 10)
	server_begin
}

client() {
	client_begin
	calls_back 4.1 v4.1 "max_rqst_sz=4096 max_resp_sz=4096"
	calls_back 4.2 v4.2 "max_rqst_sz=4096 max_resp_sz=4096"
	[ "$MODULE" = ours ] || return 0
	# In version 1 no more than 996 octets would fit.
	need "set inline sizes of 1024 octets" small_sizes
	need "both ends may use version 2" versions_up_to 2 2
	need "the server may have $LIMIT callbacks in flight" tune svc_rdma/max_bc_requests $LIMIT
	calls_back 4.2 version2 "max_rqst_sz=4060 max_resp_sz=4060"
	check "version2: all Calls are in version 2" is 2 "$(versions_traced)"
	check "version2: a recall and a DELEGRETURN for each delegation" \
		[ "$(calls_traced 2)" -ge $((2 * HELD)) ]
	check "version2: no more than $LIMIT callbacks were in flight" in_flight_at_most $LIMIT
}

# in_flight_at_most LIMIT: by the trace; other Calls ask for more credits.
in_flight_at_most() {
	awk -v limit="$1" '
		{ match($0, /xid=[0-9a-fx]+/); xid = substr($0, RSTART, RLENGTH) }
		/rpcrdma_call_form: .* sent / && $0 ~ " credits=" limit " " {
			calls++
			open[xid] = 1
			if (++now > most) most = now
		}
		/rpcrdma_reply_form: .* received / && xid in open { now--; delete open[xid] }
		END {
			printf "%d callbacks, at most %d in flight\n", calls, most
			exit !(calls && most <= limit)
		}' /tmp/trace
}

small_sizes() {
	tune rdma_max_inline_read 1024 && tune rdma_max_inline_write 1024
}

# calls_back VERSION WHAT SIZES: with this NFS version files are delegated and recalled, and
# the session allows the server messages of these sizes.
calls_back() {
	local what=$2
	need "$what: mount" log_session nfs_mount "$1" rdma /mnt
	[ "$MODULE" != ours ] || check "$what: how long the session allows callbacks to be" \
		grep "$3 .* max_reqs=16$" /tmp/session
	check "$what: make $FILES files" make_files "$what"
	check "$what: the server delegates most of them" wait_for 20 delegated "$what"
	trace_recalls "$what"
	check "$what: it recalls them when another process writes" recalled "$what"
	cp /sys/kernel/tracing/trace /tmp/trace
	echo "$CLOCK" >/sys/kernel/tracing/trace_clock
	# 6.1 does not trace recalls.
	if [ "$GUEST" != debian-6.1 ]; then
		check "$what: each recall was sent once and answered" each_answered
		say "$what: $(cat /tmp/recalls)"
	fi
	check "$what: the client has no delegation any more" is 0 "$(delegations "$what")"
	check "$what: the client reads what was written" is $FILES "$(cat "/mnt/$what".* | grep -c more)"
	# A client sends TEST_STATEID when an answer tells it that something was revoked.
	check "$what: no delegation was revoked" is 0 "$(operations TEST_STATEID)"
	check "$what: umount" unmount /mnt
}

# log_session COMMAND...: write what NFS prints meanwhile about the session's backward
# channel to /tmp/session. 16 is NFSDBG_PROC.
log_session() {
	local status
	echo 16 >/proc/sys/sunrpc/nfs_debug
	"$@"
	status=$?
	echo 0 >/proc/sys/sunrpc/nfs_debug
	dmesg | grep 'Back Channel' | tail -n 1 >/tmp/session
	return $status
}

# Each mount has files of its own, because nfsd does not delegate the same ones again.
make_files() {
	local n
	for ((n = 0; n < FILES; n++)); do
		echo some >"$LOCAL/$1.$n"
	done
}

delegated() {
	cat "/mnt/$1".* >/dev/null && [ "$(delegations "$1")" -ge $((FILES / 2)) ]
}

# delegations WHAT: of these files; since 7.x the directory may be delegated, too
delegations() {
	cat /proc/fs/nfsd/clients/*/states | grep -c "type: deleg.*/$1\.[0-9]*\""
}

# The checks need the order of events on all CPUs. Times are too coarse for that on UML.
trace_recalls() {
	HELD=$(delegations "$1")
	CLOCK=$(sed 's/.*\[\(.*\)\].*/\1/' /sys/kernel/tracing/trace_clock)
	echo counter >/sys/kernel/tracing/trace_clock
	: >/sys/kernel/tracing/trace
	for event in "$EVENTS"/nfsd_cb_recall{,_done}/enable $FORMS; do
		[ ! -e "$event" ] || echo 1 >"$event"
	done
}

# All write at the same time, because then there are more recalls than credits for them.
recalled() {
	local status
	append_to_all "$LOCAL/$1".*
	status=$?
	# A delegation may be returned before its recall is answered.
	[ ! -e $EVENTS/nfsd_cb_recall_done ] || wait_for 10 no_recall_open
	echo 0 >$EVENTS/enable
	for event in $FORMS; do
		[ ! -e "$event" ] || echo 0 >"$event"
	done
	return $status
}

no_recall_open() {
	is "$(traced_times nfsd_cb_recall)" "$(traced_times nfsd_cb_recall_done)"
}

traced_times() {
	grep -c " $1: " /sys/kernel/tracing/trace
}

# Also writes a summary to /tmp/recalls.
each_answered() {
	awk -v held="$HELD" '
		match($0, /stateid [0-9a-f:]+/) { id = substr($0, RSTART, RLENGTH) }
		/nfsd_cb_recall:/ { begun[id] = 1; recalls++ }
		/nfsd_cb_recall_done:/ && id in begun {
			answers++
			if (!/status=0/) bad++
		}
		END {
			printf "%d held, %d recalls, %d answers, %d of them bad\n",
				held, recalls, answers, bad
			exit !(recalls >= held && answers == recalls && !bad)
		}' /tmp/trace >/tmp/recalls || { cat /tmp/recalls; return 1; }
}
