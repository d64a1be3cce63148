# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios in which the scripted peer is the NFS server of our client, after
# peer.sh: rules that answer its Calls in the version that use_version chose, and what the
# client's tracepoints say.

# The NFS server runs only for mountd, which gives out the file handle. The peer listens at
# this port.
PEER_PORT=20050
# Seconds in which a Call must fail or be answered that does not wait for a timer, on any guest:
# less than the keepalive's 15. TIMEO is the timeout of a Call, in tenths of a second.
AT_ONCE=10
TIMEO=600
# Tenths of a second: the timeout of a Call that must get no answer. It expires twice.
SHORT_TIMEO=$((2 + PACE / 100))
TRACE=/sys/kernel/tracing

# from_peer OPTIONS [COMMAND...]: mount from the peer. A Call fails at its second timeout.
from_peer() {
	local opts=$1
	shift
	mkdir -p /mnt
	"$@" mount -t nfs -o "vers=3,proto=rdma,port=$PEER_PORT,nolock,noacl,nocto,actimeo=60,mountport=20048,mountproto=tcp,timeo=$TIMEO,retrans=1,retry=0,$opts" \
		"$SERVER4:$EXPORT" /mnt
}

# call_to PROCEDURE: a Call of the client without chunks
call_to() {
	echo "$(plain_header . . $MSG_CALL) . 0 2 100003 3 $1 ..."
}

# answer_with CREDITS RESULTS: the answer to the last Call
answer_with() {
	echo "$(plain_reply "<0" "$1") $(accepted "<0") ${*:2}"
}

# fails_in_time COMMAND...: a command run by timeout fails before timeout ends it.
fails_in_time() {
	local status
	"$@"
	status=$?
	echo "status $status"
	[ $status -ne 0 ] && [ $status -ne 124 ]
}

# The peer's file system: a directory with a file of 64 KiB

# fattr3 TYPE SIZE FILEID: attributes: type, mode, nlink, uid, gid, size, used, rdev, fsid,
# fileid, atime, mtime, ctime
fattr3() {
	echo "$1 0777 1 0 0 0 $2 0 $2 0 0 0 17 0 $3 $(repeat 6 0)"
}
DIRECTORY=$(fattr3 2 4096 1)
FILE=$(fattr3 1 65536 2)

# file_system CREDITS: rules that answer all Calls of a mount and of opening a file
file_system() {
	# NFS3_OK and post_op_attr of the root
	local ok="0 1 $DIRECTORY"
	echo "answer $(call_to $NULL) = $(answer_with "$1")"
	echo "answer $(call_to $GETATTR) = $(answer_with "$1" 0 "$DIRECTORY")"
	# the object, its attributes, no attributes of the directory
	echo "answer $(call_to $LOOKUP) = $(answer_with "$1" 0 8 :f11ef11ef11ef11e 1 "$FILE" 0)"
	# no attributes; everything is allowed
	echo "answer $(call_to $ACCESS) = $(answer_with "$1" 0 0 0x3f)"
	echo "answer $(call_to $FSSTAT) = $(answer_with "$1" "$ok" "$(repeat 13 0)")"
	# rtmax rtpref rtmult, wtmax wtpref wtmult, dtpref, maxfilesize, time_delta, properties
	echo "answer $(call_to $FSINFO) = $(answer_with "$1" "$ok" \
		65536 65536 4096 65536 65536 4096 4096 0 0x7fffffff 0 1 0x1b)"
	# linkmax, name_max, no_trunc, chown_restricted, case_insensitive, case_preserving
	echo "answer $(call_to $PATHCONF) = $(answer_with "$1" "$ok" 255 255 1 1 0 1)"
}

# serve_files CREDITS LINE...: start the peer with these rules and more lines.
serve_files() {
	local rules
	mapfile -t rules < <(file_system "$1")
	peer_start "listen $SERVER4 $PEER_PORT" "${rules[@]}" "${@:2}"
}

# Tracepoints

trace_start() {
	local event
	for event in bad_message call_form conn_state reply_form wc_error; do
		echo 1 >$TRACE/events/rpcrdma/rpcrdma_$event/enable || return
	done
}

trace_stop() {
	echo 0 >$TRACE/events/rpcrdma/enable
}

event_seen() {
	grep "$1" $TRACE/trace
}

# The client's first Call, a NULL

# answered WHAT EVENT MESSAGE MOUNT...: the mount's first Call, a NULL, gets this answer. It
# must cause the event, and MOUNT must be true.
answered() {
	echo >$TRACE/trace
	peer_start "listen $SERVER4 $PEER_PORT" "answer $(call_to $NULL) = $3"
	check "$1: the mount fails" "${@:4}"
	peer_stop
	unmount_all
	check "$1: event $2" event_seen "$2"
}

# ignored WHAT EVENT MESSAGE: the answer causes nothing but the event, and the Call times out.
ignored() {
	answered "$@" fails_in_time from_peer soft,timeo=$SHORT_TIMEO timeout $((5 * AT_ONCE))
}

# refused WHAT MESSAGE: the answer is well-formed and has the Call's XID: the Call fails.
refused() {
	answered "$1" "reply_form: .* received" "$2" fails_in_time from_peer soft timeout $AT_ONCE
}

# Programs that are killed

# killed PROGRAMS EVENT COMMAND...: run a command until the event, then kill its programs. They
# must end in less than 5 s: a task waits for the Reply for a second, and for the end of an
# invalidation until the connection is closed after five.
killed() {
	local pid since
	echo >$TRACE/trace
	"${@:3}" &
	pid=$!
	wait_for 20 event_seen "$2" && sleep 1 || echo "there is no event $2"
	since=$SECONDS
	pkill -KILL -x "$1"
	wait $pid
	is 137 $? && [ $((SECONDS - since)) -le 4 ]
}

# kill_first_call WHAT LINE...: the peer starts again, in the version that use_version chose and
# with more lines, and a READDIR is killed while the client asks for version 2. The trace is
# empty afterwards.
kill_first_call() {
	peer_stop
	serve_files 32 "${@:2}"
	check "$1: kill ends a READDIR" killed ls "call_form: .* sent .* version=2 " ls /mnt
	echo >$TRACE/trace
}

# late_invalidation HANDLE: a READDIR, which $READDIR_CALL is, is killed, and answered just
# after that with the invalidation of this handle, which the Call allows. If the client had
# invalidated the handle itself by then, most devices would break the connection, and rxe and siw
# would not notice. So it waits for the Reply for a second. The peer is stopped until the READDIR
# was killed; the device receives meanwhile. If the answer takes more than that second, for which
# the client cannot be blamed, there is another attempt.
late_invalidation() {
	local what="a late Reply with invalidation" connections event n
	local events="rpcrdma/rpcrdma_receive rpcrdma/rpcrdma_mr_invalidate sunrpc/rpc_task_signalled"
	serve_files 32 "answer $READDIR_CALL = !$1 $(answer_with 32 10006)"
	check "$what: mount" from_peer hard
	check "$what: the client may read the directory" test -r /mnt -a -x /mnt
	for event in $events; do
		echo 1 >$TRACE/events/$event/enable
	done
	for n in 1 2 3; do
		connections=$(connections_made)
		kill_before_answer "$what"
		answer_was_slow || break
	done
	for event in $events; do
		echo 0 >$TRACE/events/$event/enable
	done
	check "$what: it was received" event_seen reason=UNEXPECTED
	check "$what: it invalidated a handle that the client had not" server_alone_invalidated
	check "$what: the connection was not broken" is "$connections" "$(connections_made)"
	check "$what: umount" umount /mnt
	peer_stop
}

kill_before_answer() {
	local victim
	echo >$TRACE/trace
	kill -STOP "$PEER"
	ls /mnt >/dev/null 2>&1 &
	victim=$!
	check "$1: a READDIR is sent" wait_for 20 event_seen "call_form: .* sent .* form=reply"
	kill -KILL $victim
	wait_for 5 event_seen rpc_task_signalled:
	kill -CONT "$PEER"
	wait $victim 2>/dev/null
	check "$1: kill ends it" is 137 $?
	check "$1: other Calls are answered" timeout $AT_ONCE stat -f /mnt
}

# Whether the Reply was received a second after the task was killed, or later
answer_was_slow() {
	awk '
		{ match($0, / [0-9]+\.[0-9]+: /); time = substr($0, RSTART + 1, RLENGTH - 3) }
		/rpc_task_signalled:/ { killed = time }
		/rpcrdma_receive: .* invalidated=1/ { received = time }
		END { exit !(killed && received - killed >= 1) }' $TRACE/trace
}

# Whether the server has invalidated a handle, and the client has not invalidated it as well
server_alone_invalidated() {
	local handle
	handle=$(sed -n 's/.*rpcrdma_receive: .* invalidated=1 handle=0x0*//p' $TRACE/trace)
	[ -n "$handle" ] && not grep "rpcrdma_mr_invalidate: .*handle=0x0*$handle " $TRACE/trace
}

# READs

# read_file [COMMAND...]: READ 64 KiB, with dd run by a command.
read_file() {
	"$@" dd if=/mnt/file of=/tmp/back bs=64k count=1 iflag=direct
}

# The data of READs whose length is mostly no multiple of four
make_odd() {
	head -c 8192 /dev/urandom >/tmp/odd
}

# read_odd LENGTH OCTETS: READ LENGTH and compare so many octets.
read_odd() {
	timeout $AT_ONCE dd if=/mnt/file of=/tmp/back bs="$1" count=1 iflag=direct &&
		cmp <(head -c "$2" /tmp/odd) /tmp/back
}

# How many bad Replies the mount's statistics have
bad_replies() {
	awk '$1 == "device" { here = $5 == "/mnt" } here && $1 == "xprt:" { print $22 }' \
		/proc/self/mountstats
}

# read_fails WHAT MESSAGE: a READ, which $READ_CALL is, gets this answer. It fails and is
# counted, and the mount continues to work.
read_fails() {
	serve_files 32 "answer $READ_CALL = $2"
	check "$1: mount" from_peer soft
	check "$1: the READ fails at once" fails_in_time read_file timeout $AT_ONCE
	check "$1: it is counted" [ "$(bad_replies)" -gt 0 ]
	check "$1: other Calls are answered" stat -f /mnt
	check "$1: umount" umount /mnt
	peer_stop
}

# NFSv4.1 up to a session. A Call for the root is answered with an error.

# call_v41_to COUNT OPERATION...: a Call of such a client
call_v41_to() {
	echo "$(plain_header . . $MSG_CALL) . 0 2 100003 4 $COMPOUND . .+ . .+ .+ 1 $*"
}

# answer_v41_with STATUS COUNT RESULT...: the answer
answer_v41_with() {
	answer_with 32 "$1" 0 "${@:2}"
}

SESSIONID="0x5e551017 0 0 1"

# sequenced NUMBER SLOT: the result of a SEQUENCE
sequenced() {
	echo "$OP_SEQUENCE 0 $SESSIONID $1 $2 3 3 0"
}

session_rules() {
	local fore="0 65536 65536 4096 16 4 0" back="0 4096 4096 0 2 1 0" at
	echo "answer $(plain_header . . $MSG_CALL) . 0 2 100003 4 $NULL ... = $(answer_with 32)"
	# Client id, sequence number, USE_NON_PNFS, no state protection; server owner,
	# its scope, no implementation id
	echo "answer $(call_v41_to 1 $OP_EXCHANGE_ID ...) =" \
		"$(answer_v41_with 0 1 $OP_EXCHANGE_ID 0 0 17 1 0x10000 0 0 0 /peer /peer 0)"
	# Sequence number, no flags
	echo "answer $(call_v41_to 1 $OP_CREATE_SESSION ...) =" \
		"$(answer_v41_with 0 1 $OP_CREATE_SESSION 0 $SESSIONID 1 0 "$fore" "$back")"
	for at in "1 0" "2 0" "1 1"; do
		echo "answer $(call_v41_to . $OP_SEQUENCE $SESSIONID "$at" . . $OP_PUTROOTFH ...) =" \
			"$(answer_v41_with 13 2 "$(sequenced $at)" $OP_PUTROOTFH 13)"
	done
	echo "answer $(call_v41_to 1 $OP_DESTROY_SESSION ...) =" \
		"$(answer_v41_with 0 1 $OP_DESTROY_SESSION 0)"
	echo "answer $(call_v41_to 1 $OP_DESTROY_CLIENTID ...) =" \
		"$(answer_v41_with 0 1 $OP_DESTROY_CLIENTID 0)"
}

mount_is_denied() {
	mkdir -p /mnt
	not timeout $AT_ONCE mount -t nfs -o \
		"vers=4.1,proto=rdma,port=$PEER_PORT,sec=sys,soft,timeo=$TIMEO,retrans=1,retry=0" \
		"$SERVER4:$EXPORT" /mnt 2>/tmp/why
	cat /tmp/why
	grep -i denied /tmp/why
}
