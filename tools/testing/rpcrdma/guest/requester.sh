# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios in which the scripted peer is a client of our server, after peer.sh.
# The kernel's own client has the export mounted meanwhile: the "other client".

XID=0x17171717
OTHER=0x18181818

# The server's lease period. A writer waits for a delegation no longer. nfsd repeats a
# backward Call after a tenth of it.
LEASE=$(seconds 10)

other_client() {
	head -c 100000 /dev/urandom >/tmp/data
	cp /tmp/data /mnt/other && same_sum /tmp/data $LOCAL/other &&
		drop_caches && same_sum /tmp/data /mnt/other
}

# hostile WHAT LINE...: run a script on a new connection.
hostile() {
	local what=$1
	shift
	check "$what" peer "private $PRIVATE" "connect $SERVER4 $PORT" "buffer a 16384" "$@"
}

# still_answers WHAT LINE...: run a script, then check that a NULL is answered on the same
# connection.
still_answers() {
	hostile "$@" "send $(null_message $OTHER)" "expect $(null_reply $OTHER)"
}

# dropped WHAT MESSAGE: there is no answer. The first Reply grants a credit for each of the two
# messages after it.
dropped() {
	still_answers "$1: dropped" "send $(null_message $OTHER)" "expect $(null_reply $OTHER)" \
		"send $2"
}

# closes WHAT LINE...: the server closes the connection.
closes() {
	hostile "$@" closed
}

untouched() {
	check "the other client is not affected" other_client
}

counter() {
	cat "/proc/sys/sunrpc/svc_rdma/rdma_stat_$1"
}

# called_back WHAT FILE LINE...: FILE is delegated to a requester and recalled, because
# another process writes to it. The lines answer and return the delegation.
called_back() {
	local what=$1 file=$2 writer lines
	shift 2
	echo some >"$LOCAL/$file"
	sleep 1		# nfsd of 7.3 may give no delegation for a file that was just written
	write_when_delegated "$file" &
	writer=$!
	mapfile -t lines < <(session 1 $XID "$file" 2; open_file $XID "$file")
	# Program, version and procedure, AUTH_NONE, no tag, minor version, two operations
	hostile "$what" "${lines[@]}" \
		"expect $(plain_header . . $MSG_CALL) . 0 2 $CB_PROGRAM 1 $CB_COMPOUND 0 0 0 0 0 1 . 2 \
			$OP_CB_SEQUENCE . . . . 1 0 . 0 0 $OP_CB_RECALL ..." "$@"
	wait $writer
	check "$what: the writer did not wait for a lease period" is 0 $?
}

# Return the delegation, with the session, file handle and stateid in a CB_RECALL.
delegreturn() {
	send_compound 1 $XID 3 $OP_SEQUENCE "$(received 15-18)" 3 0 0 0 $OP_PUTFH "$(received 30+)" \
		$OP_DELEGRETURN "$(received 25-28)"
}

write_when_delegated() {
	wait_for 20 is_delegated "$1" && timeout $((LEASE - 1)) bash -c "echo more >>$LOCAL/$1"
}

is_delegated() {
	cat /proc/fs/nfsd/clients/*/states | grep "type: deleg.*/$1"
}
