# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   whatever a responder sends, our client's tasks end as mount options say, and it unmounts
# guests:  um
# also:    um-debug debian-6.1 debian-6.12 smp-debug
# devices: rxe siw
# modules: ours
# skip:    um-debug siw * *: minutes, for what um shows with siw and um-debug with rxe
# limit:   300

. /lab/guest/peer.sh

# The NFS server is there for mountd, which hands out the file handle; what
# listens at this port is the peer.
PEER_PORT=20050 OTHER_PORT=20051
TRACE=/sys/kernel/tracing
# Tenths of a second, twice, for an answer that is not to come
QUICKLY=$((2 + PACE / 100))
# Seconds in which a Call has failed that does not wait for its time-out, which is
# three times as long, and at most ten minutes
AT_ONCE=$(seconds 20)
[ "$AT_ONCE" -le 200 ] || AT_ONCE=200

client() {
	client_begin
	need "the peer" peer_up
	need "events can be traced" trace_start
	mounts_that_fail
	mounts_that_hang
	credits
	odd_lengths
	reads_that_fail
	error_with_data
	read_of_nothing
	read_that_hangs
	reads_that_are_killed
	late_invalidation
	credit_that_is_lost
	handles_that_rest
	handles_that_come_back
	backward_calls
	trace_stop
}

trace_start() {
	local event
	for event in bad_message call_form conn_state dropped_message reply_form wc_error; do
		echo 1 >$TRACE/events/rpcrdma/rpcrdma_$event/enable || return
	done
}

trace_stop() {
	echo 0 >$TRACE/events/rpcrdma/enable
}

event_seen() {
	grep "$1" $TRACE/trace
}

# from_peer OPTIONS [COMMAND...]: mount; Calls time out twice
from_peer() {
	local opts=$1
	shift
	mkdir -p /mnt
	"$@" mount -t nfs -o "vers=3,proto=rdma,port=$PEER_PORT,nolock,noacl,nocto,actimeo=60,mountport=20048,mountproto=tcp,timeo=$((30 * AT_ONCE)),retrans=1,retry=0,$opts" \
		"$SERVER4:$EXPORT" /mnt
}

# What the client calls, without chunks: PROCEDURE
call_to() {
	echo ". 1 . $RDMA_MSG $NO_CHUNKS . 0 2 100003 3 $1 ..."
}

# The same for READ, with a Write chunk of one segment: its words are 7 to 10.
READ_CALL=". 1 . $RDMA_MSG 0 1 1 . . . . 0 0 . 0 2 100003 3 $READ ..."

# And for READDIR, with a Reply chunk
READDIR_CALL=". 1 . $RDMA_MSG 0 0 1 ..."

# The answer to the last Call: CREDITS, and the results of the procedure
answer_with() {
	echo "<0 1 $1 $RDMA_MSG $NO_CHUNKS $(accepted "<0") ${*:2}"
}

# fails_at_once COMMAND...: it is timeout, and this has nothing to end
fails_at_once() {
	local status
	"$@"
	status=$?
	echo "status $status"
	[ $status -ne 0 ] && [ $status -ne 124 ]
}

# The mount's first Call, a NULL, is answered badly: WHAT EVENT MESSAGE MOUNT...
answered() {
	echo >$TRACE/trace
	peer_start "listen $SERVER4 $PEER_PORT" "answer $(call_to $NULL) = $3"
	check "$1: no mount" "${@:4}"
	peer_stop
	unmount_all
	check "$1: event $2" event_seen "$2"
}

# ignored WHAT EVENT MESSAGE: nothing comes of it but the event; the Call times out
ignored() {
	answered "$@" fails_at_once from_peer soft,timeo=$QUICKLY timeout $((5 * AT_ONCE))
}

# refused WHAT MESSAGE: well-formed, and with the Call's XID, it ends the Call
refused() {
	answered "$1" "reply_form: .* received" "$2" fails_at_once from_peer soft timeout $AT_ONCE
}

mounts_that_fail() {
	local wrong="0xdeadbeef" chunk
	chunk=$(reply_chunk "$NOWHERE")

	ignored "a Reply to an unknown XID" dropped_message \
		"$wrong 1 32 $RDMA_MSG $NO_CHUNKS $(accepted $wrong)"
	ignored "another XID in the RPC message" reason=XID \
		"<0 1 32 $RDMA_MSG $NO_CHUNKS $(accepted $wrong)"
	ignored "version 2" reason=VERSION "<0 2 32 $RDMA_MSG $NO_CHUNKS $(accepted "<0")"
	ignored "no octets" reason=SHORT ""
	ignored "24 octets" reason=SHORT "<0 1 32 0 0 0"
	ignored "unknown rdma_proc" reason=PROC "<0 1 32 7 $NO_CHUNKS $(accepted "<0")"
	ignored "RDMA_MSGP" reason=MSGP "<0 1 32 $RDMA_MSGP 4096 0 $NO_CHUNKS $(accepted "<0")"
	ignored "RDMA_DONE" reason=DONE "<0 1 32 $RDMA_DONE $NO_CHUNKS"
	ignored "RDMA_ERROR of no known kind" reason=ERROR "<0 1 32 $RDMA_ERROR 17 0 0"
	ignored "a Write list that ends too early" reason=TRUNCATED \
		"<0 1 32 $RDMA_MSG 0 1 4 $NOWHERE"
	ignored "a Write chunk of 2^32-1 segments" reason=SEGMENT_COUNT \
		"<0 1 32 $RDMA_MSG 0 1 0xffffffff 0 $(accepted "<0")"
	ignored "a Read list" reason=READ_IN_REPLY \
		"<0 1 32 $RDMA_MSG $(read_segment 8 "$NOWHERE") $NO_CHUNKS $(accepted "<0")"
	ignored "RDMA_NOMSG without a chunk" reason=NO_PAYLOAD "<0 1 32 $RDMA_NOMSG $NO_CHUNKS"
	ignored "a Call" reason=DIRECTION "<0 1 32 $RDMA_MSG $NO_CHUNKS $(null_call "<0")"
	# That is the end of the connection, each time anew.
	ignored "Send with Invalidate of a handle that is none" \
		"wc_error: .*status=REM_INV_REQ_ERR" "!0xdeadbeef $(answer_with 32)"

	refused "a Write chunk that was not offered" \
		"<0 1 32 $RDMA_MSG 0 $(write_chunk "$NOWHERE") 0 0 $(accepted "<0")"
	refused "a Reply chunk that was not offered" \
		"<0 1 32 $RDMA_MSG 0 0 $chunk $(accepted "<0")"
	refused "a Long Reply in one" "<0 1 32 $RDMA_NOMSG 0 0 $chunk"
	refused "ERR_VERS" "<0 1 32 $RDMA_ERROR $ERR_VERS 2 2"
	refused "ERR_CHUNK" "<0 1 32 $RDMA_ERROR $ERR_CHUNK"
	refused "an RPC message of two words" "<0 1 32 $RDMA_MSG $NO_CHUNKS <0 1"
	refused "an RPC message that goes on too long" \
		"$(answer_with 32 "$(repeat 200 0x41414141)") 1"
}

# Nobody answers, and the mount is hard: a signal has to end it.
mounts_that_hang() {
	peer_start "listen $SERVER4 $PEER_PORT"
	check "no answer: kill ends the mount" \
		killed 'mount|mount.nfs' "call_form: .* sent" from_peer hard
	check "it leaves nothing behind" wait_for 20 not pgrep -x mount.nfs
	peer_stop
}

# killed PROGRAMS EVENT COMMAND...: it is waiting after that event, and can be killed
killed() {
	local pid
	echo >$TRACE/trace
	"${@:3}" &
	pid=$!
	wait_for 20 event_seen "$2" && sleep 1 || echo "nothing of $2"
	pkill -KILL -x "$1"
	wait $pid
	is 137 $?
}

# A file system with a directory, and a file of 64 KiB in it

# fattr3 TYPE SIZE FILEID: type, mode, nlink, uid, gid, size, used, rdev, fsid,
# fileid, and three times
fattr3() {
	echo "$1 0777 1 0 0 0 $2 0 $2 0 0 0 17 0 $3 $(repeat 6 0)"
}
DIRECTORY=$(fattr3 2 4096 1)
FILE=$(fattr3 1 65536 2)

# file_system CREDITS: rules for all that a mount and an open ask
file_system() {
	# NFS3_OK and post_op_attr of the root
	local ok="0 1 $DIRECTORY"
	echo "answer $(call_to $NULL) = $(answer_with "$1")"
	echo "answer $(call_to $GETATTR) = $(answer_with "$1" 0 "$DIRECTORY")"
	# object, its attributes, none of the directory
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

# serve_files CREDITS LINE...
serve_files() {
	local rules
	mapfile -t rules < <(file_system "$1")
	peer_start "listen $SERVER4 $PEER_PORT" "${rules[@]}" "${@:2}"
}

credits() {
	local credits
	for credits in 0 1 0xffffffff; do
		serve_files $credits
		check "grant of $credits: mount" from_peer soft
		check "grant of $credits: eight look for files at once" eight_look
		check "grant of $credits: umount" umount /mnt
		peer_stop
	done
}

eight_look() {
	local n pids=()
	for n in {1..8}; do
		stat /mnt/file$n >/dev/null &
		pids+=($!)
	done
	for n in "${pids[@]}"; do
		wait "$n" || return
	done
}

# Of neither data item is the padding anywhere, RFC 8166 sections 3.4.5 and 3.4.6,
# and data that are the last of a Call belong where its inline part ends.
odd_lengths() {
	local out=8189 in=8187 less=5001 rules
	head -c 8192 /dev/urandom >/tmp/odd
	mapfile -t rules < <(write_rules $out; read_rule $in $in; read_rule $out $less)
	serve_files 32 "${rules[@]}"
	check "odd lengths: mount" from_peer soft
	check "READ of $in octets: a Write chunk of as many" read_odd $in $in
	check "READ of $out octets, of which there are $less" read_odd $out $less
	check "WRITE of $out octets: a Read chunk of as many, where the rest ends" write_odd $out
	check "odd lengths: umount" umount /mnt
	peer_stop
}

# write_rules LENGTH: what is inline is longer or shorter by the credential, so
# there is a rule for each length that it may have.
write_rules() {
	local words
	for ((words = 24; words < 64; words++)); do
		# Attributes of the file, count, FILE_SYNC, verifier
		echo "answer . 1 . $RDMA_MSG 1 $((4 * words)) . $1 . . $NO_CHUNKS" \
			". 0 2 100003 3 $WRITE $(repeat $((words - 11)) .) 0 0 $1 . $1" \
			"= $(answer_with 32 0 0 1 "$FILE" "$1" 2 0 17)"
	done
}

# read_rule LENGTH OCTETS: there are so many to be read.
read_rule() {
	echo "answer . 1 . $RDMA_MSG 0 1 1 . $1 . . 0 0 . 0 2 100003 3 $READ ..." \
		"= ^ <7-10 $(octets <(head -c "$2" /tmp/odd))" \
		"; <0 1 32 $RDMA_MSG 0 1 1 <7 $2 <9-10 0 0 $(accepted "<13") 0 0 $2 1 $2"
}

write_odd() {
	timeout $AT_ONCE dd if=/tmp/odd of=/mnt/file bs="$1" count=1 oflag=direct conv=notrunc,nocreat
}

# read_odd LENGTH OCTETS
read_odd() {
	timeout $AT_ONCE dd if=/mnt/file of=/tmp/back bs="$1" count=1 iflag=direct &&
		cmp <(head -c "$2" /tmp/odd) /tmp/back
}

# read_file [COMMAND...]
read_file() {
	"$@" dd if=/mnt/file of=/tmp/back bs=64k count=1 iflag=direct
}

# Replies that the mount's statistics have found bad
bad_replies() {
	awk '$1 == "device" { here = $5 == "/mnt" } here && $1 == "xprt:" { print $22 }' \
		/proc/self/mountstats
}

# read_fails WHAT RDMA_PROC CHUNKS RESULTS...: a READ is answered like this, and
# counted; the mount lives on.
read_fails() {
	serve_files 32 \
		"answer $READ_CALL = <0 1 32 ${*:2}"
	check "$1: mount" from_peer soft
	check "$1: the READ fails, and at once" fails_at_once read_file timeout $AT_ONCE
	check "$1: it is counted" [ "$(bad_replies)" -gt 0 ]
	check "$1: other Calls are answered" stat -f /mnt
	check "$1: umount" umount /mnt
	peer_stop
}

# READ3res: NFS3_OK, no attributes, count, eof, length of the data
reads_that_fail() {
	local ok result
	result="$(accepted "<13") 0 0 65536 1 65536"
	ok="$RDMA_MSG 0 1 1"

	read_fails "more data than the Write chunk has room for" \
		"$ok <7 0x20000 <9-10 0 0 $result"
	read_fails "another handle" "$ok 0xdeadbeef <8 <9-10 0 0 $result"
	read_fails "another address" "$ok <7 <8 0 0x1000 0 0 $result"
	read_fails "two segments for one" "$RDMA_MSG 0 1 2 <7-10 <7-10 0 0 $result"
	read_fails "two Write chunks for one" "$ok <7-10 1 1 <7-10 0 0 $result"
	read_fails "the Write chunk as a Reply chunk" "$RDMA_NOMSG 0 0 1 1 <7-10"
	read_fails "ERR_CHUNK" "$RDMA_ERROR $ERR_CHUNK"
}

# READ3res: NFS3ERR_IO, no attributes. The Write chunk comes back full: nobody looks.
error_with_data() {
	serve_files 32 \
		"answer $READ_CALL = <0 1 32 $RDMA_MSG 0 1 1 <7-10 0 0 $(accepted "<13") 5 0"
	check "an error, and data with it: mount" from_peer soft
	check "an error, and data with it: the READ fails, and at once" \
		fails_at_once read_file timeout $AT_ONCE
	check "an error, and data with it: it is the server's error" is 0 "$(bad_replies)"
	check "an error, and data with it: umount" umount /mnt
	peer_stop
}

# A READ that is answered as if all data had been written: there are none, and so
# none of what was in the pages before.
read_of_nothing() {
	serve_files 32 "answer $READ_CALL = <0 1 32 $RDMA_MSG 0 1 1 <7-10 0 0 $(accepted "<13") 0 0 <8 0 <8"
	check "data that never came: mount" from_peer soft
	fill_memory
	check "data that never came: they are zeros" cmp -n 65536 /mnt/file /dev/zero
	check "data that never came: umount" umount /mnt
	peer_stop
}

# What is freed last is used first.
fill_memory() {
	head -c 64M /dev/zero | tr '\0' '\377' >/tmp/filled
	rm /tmp/filled
}

# A READ without an answer on a hard mount
read_that_hangs() {
	local reader
	serve_files 32
	check "mount" from_peer hard
	dd if=/mnt/file of=/tmp/back bs=64k count=1 iflag=direct 2>/dev/null &
	reader=$!
	need "a READ gets no answer" wait_for 20 handle_offered
	handle_of_another
	kill -KILL $reader
	wait $reader 2>/dev/null
	check "kill ends a READ without an answer" is 137 $?
	# Only with force does that end what the kernel still tries to read.
	check "umount -f" wait_for 20 umount -f /mnt
	peer_stop
}

# The Write chunk of the READ that the peer has not answered, in its log: the
# words after the Write list's "is present" and the number of segments
chunk_offered() {
	awk '/^not answered/ && $10 == "00000001" && $11 == "00000001" && NF > 20 {
		print "0x" $12, "0x" $13, "0x" $14, "0x" $15; exit }' /tmp/peer.log
}

handle_offered() {
	[ -n "$(chunk_offered)" ]
}

# A second server, which writes to what was offered to the first. Each connection
# has a protection domain of its own (RFC 8166 section 8.1.1).
handle_of_another() {
	local what="another server writes to that READ's chunk" PEER_PORT=$OTHER_PORT other
	peer "listen $SERVER4 $PEER_PORT" accept "expect $(call_to $NULL)" \
		"send ^ $(chunk_offered) $(repeat 4 0x57575757)" closed >/tmp/other.log 2>&1 &
	other=$!
	need "$what: it listens" wait_for 10 grep -q listening /tmp/other.log
	check "$what: the mount fails, and at once" fails_at_once from_peer soft timeout $AT_ONCE
	wait $other
	check "$what: that costs it the connection" peer_was_well $? /tmp/other.log
	check "$what: the first one's READ still waits" is 1 "$(connections_made)"
}

# READs without an answer, and a server that may invalidate their memory: who is
# killed may have to wait for it, but not in a worker that all RPCs share.
reads_that_are_killed() {
	local n pids=() longest
	serve_files 32 "private $PRIVATE_INVALIDATES"
	check "mount" from_peer hard
	for n in {1..4}; do
		dd if=/mnt/file of=/dev/null bs=64k count=1 iflag=direct 2>/dev/null &
		pids+=($!)
	done
	check "four READs are sent" wait_for 20 unanswered 4
	kill -KILL "${pids[@]}"
	wait "${pids[@]}" 2>/dev/null
	echo >$TRACE/trace
	echo 1 >$TRACE/events/workqueue/enable
	check "umount -f" wait_for 20 umount -f /mnt
	check "the connection ends" wait_for 20 event_seen state=CLOSED
	echo 0 >$TRACE/events/workqueue/enable
	longest=$(longest_work rpc_async_schedule)
	say "rpciod was kept for $longest ms"
	# The server has a second to answer an RPC that was killed.
	check "no RPC waits for the server in rpciod" [ "$longest" -lt "$(seconds 500)" ]
	peer_stop
}

# The kernel's own server tells nothing of remote invalidation and does it where
# the client has told that it may. A READDIR is answered so when its process has
# been killed: the handle is still there, and nothing breaks.
late_invalidation() {
	local connections victim
	if [ "$PACE" -gt 300 ]; then
		skip "a Reply with invalidation that comes late" \
			"where all takes long nobody is killed just before the answer comes"
		return
	fi
	serve_files 32 "answer $READDIR_CALL = +0.9 !<8 $(answer_with 32 10006)"
	check "mount" from_peer hard
	connections=$(connections_made)
	echo >$TRACE/trace
	ls /mnt >/dev/null 2>&1 &
	victim=$!
	check "a READDIR is sent" wait_for 20 event_seen "call_form: .* sent .* form=reply"
	kill -KILL $victim
	wait $victim 2>/dev/null
	check "kill ends it" is 137 $?
	check "other Calls are answered" timeout $AT_ONCE stat -f /mnt
	check "the Reply came with invalidation" event_seen dropped_message
	check "that did not cost the connection" is "$connections" "$(connections_made)"
	check "umount" umount /mnt
	peer_stop
}

# unanswered N: so many messages were not what any rule is for.
unanswered() {
	[ "$(grep -c '^not answered' /tmp/peer.log)" -ge "$1" ]
}

# longest_work FUNCTION: milliseconds that a work item took which has ended
longest_work() {
	sed -n "s/.* \([0-9.]*\): workqueue_execute_\([a-z]*\): work struct \([^:]*\): function $1.*/\1 \2 \3/p" \
		$TRACE/trace |
		awk '$2 == "start" { since[$3] = $1 }
		     $2 == "end" && $3 in since { took = ($1 - since[$3]) * 1000; if (took > most) most = took }
		     END { print int(most) }'
}

# The only credit is that of a Call without a task and without an answer: nobody
# can send, and no Call is there that could time out.
credit_that_is_lost() {
	serve_files 1
	check "mount" from_peer hard
	check "kill ends a READDIR without an answer" \
		killed ls "call_form: .* sent .*form=.*reply" ls /mnt
	# Before a Call times out
	check "other Calls are answered after a while" timeout $((AT_ONCE * 9 / 4)) stat -f /mnt
	check "umount -f" wait_for 20 umount -f /mnt
	peer_stop
}

# The task of a READDIR is killed before there is an answer, so the server may use
# its handles late. READs follow, one by one. A handle comes again when its
# registration has been used 256 times, of which there are eight.
BIG_FILE=$(fattr3 1 0x10000000 2)
READS_OF_4K="answer $READ_CALL = <0 1 32 $RDMA_MSG 0 1 1 <7-10 0 0 $(accepted "<13") 0 0 4096 0 4096"

# forsake LINE...: kill a READDIR that the rules do not answer in time, and note
# its handles, that is all that are used before there are READs.
forsake() {
	echo 1 >$TRACE/events/rpcrdma/rpcrdma_mr_map/enable
	serve_files 32 "$READS_OF_4K" "$@" \
		"answer $(call_to $LOOKUP) = $(answer_with 32 0 8 :f11ef11ef11ef11e 1 "$BIG_FILE" 0)"
	check "mount" from_peer hard
	check "kill ends a READDIR without an answer" \
		killed ls "call_form: .* sent .*form=.*reply" ls /mnt
	handles_used >/tmp/forsaken
	check "it had handles" test -s /tmp/forsaken
	echo >$TRACE/trace
}

forsake_end() {
	echo 0 >$TRACE/events/rpcrdma/rpcrdma_mr_map/enable
	check "umount -f" wait_for 20 umount -f /mnt
	peer_stop
}

handles_used() {
	sed -n 's/.*rpcrdma_mr_map: .*handle=\(0x[0-9a-f]*\) .*/\1/p' $TRACE/trace
}

# read_on COUNT: as many READs of 4 KiB
read_on() {
	timeout "$(seconds 120)" dd if=/mnt/file of=/dev/null bs=4k count="$1" iflag=direct &&
		[ "$(handles_used | wc -l)" -ge "$1" ]
}

# Whether a READ has used one of those handles
used_again() {
	handles_used | grep -F -f /tmp/forsaken
}

# The same, whatever its last octet: that changes with each use.
registration_used_again() {
	sed -i 's/..$//' /tmp/forsaken
	used_again
}

handles_that_rest() {
	forsake
	check "READs go on" read_on $((SLOW ? 300 : 2100))
	check "none has a handle that the server may use late" not used_again
	forsake_end
}

# Once the server has answered, nothing keeps other RPCs from what there is.
handles_that_come_back() {
	forsake "answer $READDIR_CALL = +$(seconds 8) <0 1 32 $RDMA_ERROR $ERR_CHUNK"
	check "READs go on" read_on 40
	check "they use the registrations of a Call that was answered late" registration_used_again
	forsake_end
}

# NFSv4.1 as far as a session; whoever looks for its root is denied that.

# What such a client calls: OPERATIONS OPERATION...
call_v41_to() {
	echo ". 1 . $RDMA_MSG $NO_CHUNKS . 0 2 100003 4 $COMPOUND . .+ . .+ .+ 1 $*"
}

# The answer to that: STATUS OPERATIONS RESULT...
answer_v41_with() {
	answer_with 32 "$1" 0 "${@:2}"
}

SESSIONID="0x5e551017 0 0 1"

# sequenced NUMBER SLOT: what answers a SEQUENCE
sequenced() {
	echo "$OP_SEQUENCE 0 $SESSIONID $1 $2 3 3 0"
}

session_rules() {
	local fore="0 65536 65536 4096 16 4 0" back="0 4096 4096 0 2 1 0" at
	echo "answer . 1 . $RDMA_MSG $NO_CHUNKS . 0 2 100003 4 $NULL ... = $(answer_with 32)"
	# Client id, sequence number, USE_NON_PNFS, no state protection; server owner,
	# its scope, no implementation
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

# backward_call XID CHUNKS: a NULL
backward_call() {
	echo "$(start "$1" $RDMA_MSG) $2 $(cb_null "$1")"
}

# Before its first use of the session is answered, the client is called back: with
# all that it has to refuse, with what is no RPC message, and last with a NULL as
# it should be, which has the XID of the Call that waits. When it has answered that,
# it gets its own answer.
backward_calls() {
	local rules calls what="backward Calls"
	calls=(
		"$(backward_call 0xbac00001 "$(read_segment 40 "$NOWHERE") $NO_CHUNKS")"
		"$(backward_call 0xbac00002 "0 $(write_chunk "$NOWHERE") 0 0")"
		"$(backward_call 0xbac00003 "0 0 $(reply_chunk "$NOWHERE")")"
		"$(start 0xbac00004 $RDMA_NOMSG) $(read_segment 0 "$NOWHERE") $NO_CHUNKS"
		"$(start 0xbac00005 $RDMA_MSG) $NO_CHUNKS $(cb_null 0xdeadbeef)"
		"$(backward_call 0xbac00006 "$NO_CHUNKS") $(repeat 2100 0)"
		"$(start 0xbac00007 $RDMA_MSG) $NO_CHUNKS 0xbac00007 0"
	)
	mapfile -t rules < <(session_rules)
	echo >$TRACE/trace
	peer_start "private $PRIVATE" "listen $SERVER4 $PEER_PORT" "${rules[@]}" \
		"answer $(call_v41_to 2 $OP_SEQUENCE $SESSIONID 1 0 . . $OP_RECLAIM_COMPLETE .) = \
			$(printf '%s ; ' "${calls[@]}") $(backward_call "<0" "$NO_CHUNKS")" \
		"answer . 1 . $RDMA_MSG $NO_CHUNKS . 1 0 0 0 0 = \
			$(answer_v41_with 0 2 "$(sequenced 1 0)" $OP_RECLAIM_COMPLETE 0)"
	check "$what: a NULL is answered, and the mount goes on until it is denied" mount_is_denied
	peer_stop
	check "$what with chunks, another XID, or too long: ERR_CHUNK" is \
		"bac00001 bac00002 bac00003 bac00004 bac00005 bac00006" "$(refused_calls)"
	check "$what: one has a bad header" event_seen reason=XID
}

mount_is_denied() {
	mkdir -p /mnt
	not timeout $AT_ONCE mount -t nfs -o \
		"vers=4.1,proto=rdma,port=$PEER_PORT,sec=sys,soft,timeo=$((30 * AT_ONCE)),retrans=1,retry=0" \
		"$SERVER4:$EXPORT" /mnt 2>/tmp/why
	cat /tmp/why
	grep -i denied /tmp/why
}

# The XIDs of ERR_CHUNKs that came, of all that the peer had no answer to
refused_calls() {
	sed -nE 's/^not answered 20 octets (.{8}) 00000001 .{8} 00000004 00000002$/\1/p' \
		/tmp/peer.log | xargs
}
