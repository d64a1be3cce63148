# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the server sends its callbacks on the client's connection (RFC 8167)
# guests:  um
# also:    um-debug debian-6.1 debian-6.12 smp-debug
# devices: rxe siw

# nfsd does not delegate what it has recalled in the last minute. It keeps hashes of these
# files in a filter of 256 bits. With more files than these, the filter would be so full
# that nfsd delegates hardly any file.
FILES=16

EVENTS=/sys/kernel/tracing/events/nfsd

# nfsd revokes a delegation if the client does not return it within a lease period. On
# slow guests the client takes longer.
server() {
	LEASE=$(seconds 10)
	server_begin
}

client() {
	local vers
	client_begin
	for vers in 4.1 4.2; do
		need "mount v$vers" log_session nfs_mount $vers rdma /mnt
		[ "$MODULE" != ours ] || check "v$vers: the server may call back with a whole page" \
			grep "max_rqst_sz=4096 max_resp_sz=4096 .* max_reqs=16$" /tmp/session
		check "v$vers: make $FILES files" make_files $vers
		check "v$vers: the server delegates most of them" wait_for 20 delegated $vers
		trace_recalls
		check "v$vers: it recalls them when another process writes" recalled $vers
		if [ -e $EVENTS/nfsd_cb_recall_done ]; then
			check "v$vers: each recall was sent once and answered" each_answered
			say "v$vers: $(cat /tmp/recalls)"
		else
			skip "v$vers: each recall was sent once and answered" \
				"this kernel does not trace recalls"
		fi
		check "v$vers: the client has no delegation any more" is 0 "$(delegations)"
		check "v$vers: the client reads what was written" is $FILES "$(cat /mnt/$vers.* | grep -c more)"
		check "v$vers: no delegation was revoked" is 0 "$(tested_stateids)"
		check "umount" umount /mnt
	done
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

# Each version has files of its own, because nfsd does not delegate the same ones again.
make_files() {
	local n
	for ((n = 0; n < FILES; n++)); do
		echo some >"$LOCAL/$1.$n"
	done
}

delegated() {
	cat /mnt/$1.* >/dev/null && [ "$(delegations)" -ge $((FILES / 2)) ]
}

delegations() {
	cat /proc/fs/nfsd/clients/*/states | grep -c 'type: deleg'
}

trace_recalls() {
	HELD=$(delegations)
	: >/sys/kernel/tracing/trace
	for event in "$EVENTS"/nfsd_cb_recall{,_done}/enable; do
		[ ! -e "$event" ] || echo 1 >"$event"
	done
}

# The server keeps writers waiting until the delegation is returned. All of them write at
# the same time, because then there are more recalls than credits for them.
recalled() {
	local n pids=() status=0
	for ((n = 0; n < FILES; n++)); do
		echo more >>"$LOCAL/$1.$n" &
		pids+=($!)
	done
	for n in "${pids[@]}"; do
		wait "$n" || status=1
	done
	echo 0 >$EVENTS/enable
	return $status
}

# Also writes a summary with the longest time to /tmp/recalls.
each_answered() {
	awk -v held="$HELD" '
		{ match($0, / [0-9]+\.[0-9]+: /); time = substr($0, RSTART + 1, RLENGTH - 3) }
		match($0, /stateid [0-9a-f:]+/) { id = substr($0, RSTART, RLENGTH) }
		/nfsd_cb_recall:/ { begun[id] = time; recalls++ }
		/nfsd_cb_recall_done:/ && id in begun {
			answers++
			if (!/status=0/) bad++
			if (time - begun[id] > longest) longest = time - begun[id]
		}
		END {
			printf "%d held, %d recalls, %d answers, %d of them bad, the slowest after %.3f s\n",
				held, recalls, answers, bad, longest
			exit !(recalls >= held && answers == recalls && !bad)
		}' /sys/kernel/tracing/trace >/tmp/recalls || { cat /tmp/recalls; return 1; }
}

# A client sends TEST_STATEID when an answer tells it that something was revoked.
tested_stateids() {
	awk '$1 == "TEST_STATEID:" { n += $2 } END { print n + 0 }' /proc/self/mountstats
}
