# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   with a hostile responder, our client's RPCs end as the mount options say, and it unmounts
# guests:  um
# also:    um-7-debug/siw debian-6.1
# devices: rxe siw
# turns:   what is made of messages
# modules: ours
# limit:   300
# faults:  the peer breaks the rules

. /lab/guest/peer.sh
. /lab/guest/responder.sh

# The port of a second peer
OTHER_PORT=20051

client() {
	client_begin
	need "prepare the peer" peer_up
	need "trace events" trace_start
	mounts_that_fail
	mounts_that_hang
	credits
	odd_lengths
	reads_that_fail
	error_with_data
	read_of_nothing
	read_that_hangs
	reads_that_are_killed
	# The kernel's own server does not announce remote invalidation, and does it if the
	# client allows it. So does the peer.
	late_invalidation "<8"
	lost_credit
	handles_not_reused
	handles_reused
	backward_calls
	trace_stop
}

# A READ of the client, with a Write chunk of one segment, which is words 7 to 10.
READ_CALL=". 1 . $RDMA_MSG 0 1 1 . . . . 0 0 . 0 2 100003 3 $READ ..."

# A READDIR of the client, with a Reply chunk
READDIR_CALL=". 1 . $RDMA_MSG 0 0 1 ..."

mounts_that_fail() {
	local wrong="0xdeadbeef" chunk
	chunk=$(reply_chunk "$UNREGISTERED")

	ignored "a Reply to an unknown XID" reason=UNEXPECTED \
		"$wrong 1 32 $RDMA_MSG $NO_CHUNKS $(accepted $wrong)"
	ignored "another XID in the RPC message" reason=XID \
		"<0 1 32 $RDMA_MSG $NO_CHUNKS $(accepted $wrong)"
	ignored "version 2" reason=VERSION "<0 2 32 $RDMA_MSG $NO_CHUNKS $(accepted "<0")"
	ignored "no octets" reason=SHORT ""
	ignored "24 octets" reason=SHORT "<0 1 32 0 0 0"
	ignored "unknown rdma_proc" reason=PROC "<0 1 32 7 $NO_CHUNKS $(accepted "<0")"
	ignored "RDMA_MSGP" reason=MSGP "<0 1 32 $RDMA_MSGP 4096 0 $NO_CHUNKS $(accepted "<0")"
	ignored "RDMA_DONE" reason=DONE "<0 1 32 $RDMA_DONE $NO_CHUNKS"
	ignored "RDMA_ERROR of an unknown kind" reason=ERROR "<0 1 32 $RDMA_ERROR 17 0 0"
	ignored "a Write list that ends too early" reason=TRUNCATED \
		"<0 1 32 $RDMA_MSG 0 1 4 $UNREGISTERED"
	ignored "a Write chunk of 2^32-1 segments" reason=SEGMENT_COUNT \
		"<0 1 32 $RDMA_MSG 0 1 0xffffffff 0 $(accepted "<0")"
	ignored "a Read list" reason=READ_IN_REPLY \
		"<0 1 32 $RDMA_MSG $(read_segment 8 "$UNREGISTERED") $NO_CHUNKS $(accepted "<0")"
	ignored "RDMA_NOMSG without a chunk" reason=NO_PAYLOAD "<0 1 32 $RDMA_NOMSG $NO_CHUNKS"
	ignored "a Call" reason=DIRECTION "<0 1 32 $RDMA_MSG $NO_CHUNKS $(null_call "<0")"
	# This ends the connection, and that of each repetition.
	ignored "Send with Invalidate of an unknown handle" \
		"wc_error: .*status=REM_INV_REQ_ERR" "!0xdeadbeef $(answer_with 32)"

	refused "a Write chunk that was not offered" \
		"<0 1 32 $RDMA_MSG 0 $(write_chunk "$UNREGISTERED") 0 0 $(accepted "<0")"
	refused "a Reply chunk that was not offered" \
		"<0 1 32 $RDMA_MSG 0 0 $chunk $(accepted "<0")"
	refused "a Long Reply in a Reply chunk that was not offered" "<0 1 32 $RDMA_NOMSG 0 0 $chunk"
	refused "ERR_VERS" "<0 1 32 $RDMA_ERROR $ERR_VERS 2 2"
	refused "ERR_CHUNK" "<0 1 32 $RDMA_ERROR $ERR_CHUNK"
	refused "an RPC message of two words" "<0 1 32 $RDMA_MSG $NO_CHUNKS <0 1"
}

# The peer does not answer and the mount is hard: a signal must end it.
mounts_that_hang() {
	peer_start "listen $SERVER4 $PEER_PORT"
	check "no answer: kill ends the mount" \
		killed 'mount|mount.nfs' "call_form: .* sent" from_peer hard
	check "mount.nfs has ended" wait_for 20 not pgrep -x mount.nfs
	peer_stop
}

credits() {
	local credits
	for credits in 0 1 0xffffffff; do
		serve_files $credits
		check "grant of $credits: mount" from_peer soft
		check "grant of $credits: eight LOOKUPs at a time are answered" eight_lookups
		check "grant of $credits: umount" umount /mnt
		peer_stop
	done
}

eight_lookups() {
	local n pids=()
	for n in {1..8}; do
		stat /mnt/file$n >/dev/null &
		pids+=($!)
	done
	for n in "${pids[@]}"; do
		wait "$n" || return
	done
}

# Padding is neither in a Read chunk nor in a Write chunk, RFC 8166 sections 3.4.5 and
# 3.4.6. A Read chunk with the last data of a Call is positioned at the end of its inline
# part.
odd_lengths() {
	local out=8189 in=8187 less=5001 rules
	make_odd
	mapfile -t rules < <(write_rules $out; read_rule $in $in; read_rule $out $less)
	serve_files 32 "${rules[@]}"
	check "odd lengths: mount" from_peer soft
	check "READ of $in octets: a Write chunk of that length" read_odd $in $in
	check "READ of $out octets that returns $less" read_odd $out $less
	check "WRITE of $out octets: a Read chunk of that length, at the end" write_odd $out
	check "odd lengths: umount" umount /mnt
	peer_stop
}

# write_rules LENGTH: the inline part of a WRITE has a credential of unknown length, so there
# is a rule for each length of the inline part.
write_rules() {
	local words
	for ((words = 24; words < 64; words++)); do
		# Attributes of the file, count, FILE_SYNC, verifier
		echo "answer . 1 . $RDMA_MSG 1 $((4 * words)) . $1 . . $NO_CHUNKS" \
			". 0 2 100003 3 $WRITE $(repeat $((words - 11)) .) 0 0 $1 . $1" \
			"= $(answer_with 32 0 0 1 "$FILE" "$1" 2 0 17)"
	done
}

# read_rule LENGTH OCTETS: a rule that answers a READ of LENGTH with so many octets
read_rule() {
	echo "answer . 1 . $RDMA_MSG 0 1 1 . $1 . . 0 0 . 0 2 100003 3 $READ ..." \
		"= ^ <7-10 $(octets <(head -c "$2" /tmp/odd))" \
		"; <0 1 32 $RDMA_MSG 0 1 1 <7 $2 <9-10 0 0 $(accepted "<13") 0 0 $2 1 $2"
}

write_odd() {
	timeout $AT_ONCE dd if=/tmp/odd of=/mnt/file bs="$1" count=1 oflag=direct conv=notrunc,nocreat
}

# READ3res: NFS3_OK, no attributes, count, eof, length of the data
reads_that_fail() {
	local ok result
	result="$(accepted "<13") 0 0 65536 1 65536"
	ok="<0 1 32 $RDMA_MSG 0 1 1"

	read_fails "more data than the Write chunk has room for" \
		"$ok <7 0x20000 <9-10 0 0 $result"
	read_fails "another handle" "$ok 0xdeadbeef <8 <9-10 0 0 $result"
	read_fails "another address" "$ok <7 <8 0 0x1000 0 0 $result"
	read_fails "two segments for one" "<0 1 32 $RDMA_MSG 0 1 2 <7-10 <7-10 0 0 $result"
	read_fails "two Write chunks for one" "$ok <7-10 1 1 <7-10 0 0 $result"
	read_fails "the Write chunk as a Reply chunk" "<0 1 32 $RDMA_NOMSG 0 0 1 1 <7-10"
	read_fails "ERR_CHUNK" "<0 1 32 $RDMA_ERROR $ERR_CHUNK"
}

# READ3res: NFS3ERR_IO, no attributes. The Write chunk is returned as full, which does not
# matter.
error_with_data() {
	serve_files 32 \
		"answer $READ_CALL = <0 1 32 $RDMA_MSG 0 1 1 <7-10 0 0 $(accepted "<13") 5 0"
	check "an error with data: mount" from_peer soft
	check "an error with data: the READ fails at once" \
		fails_in_time read_file timeout $AT_ONCE
	check "an error with data: it is not counted as a bad Reply" is 0 "$(bad_replies)"
	check "an error with data: umount" umount /mnt
	peer_stop
}

# The answer to a READ says that all data were written, but nothing was written. The
# reader must not see what was in the pages before.
read_of_nothing() {
	serve_files 32 "answer $READ_CALL = <0 1 32 $RDMA_MSG 0 1 1 <7-10 0 0 $(accepted "<13") 0 0 <8 0 <8"
	check "data that were not written: mount" from_peer soft
	fill_memory
	check "data that were not written: they are zeros" cmp -n 65536 /mnt/file /dev/zero
	check "data that were not written: umount" umount /mnt
	peer_stop
}

# Fill free memory with ones: the pages that are freed last are used first.
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
	# -f, because readahead may still wait for READs.
	check "umount -f" wait_for 20 umount -f /mnt
	peer_stop
}

# The Write chunk of the READ that the peer has not answered, from its log: the words after
# the Write list's "is present" and number of segments
chunk_offered() {
	awk '/^not answered/ && $10 == "00000001" && $11 == "00000001" && NF > 20 {
		print "0x" $12, "0x" $13, "0x" $14, "0x" $15; exit }' /tmp/peer.log
}

handle_offered() {
	[ -n "$(chunk_offered)" ]
}

# A second server writes to memory that was offered to the first one. That must fail,
# because each connection has a protection domain of its own (RFC 8166 section 8.1.1).
handle_of_another() {
	local what="another server writes to that READ's chunk" PEER_PORT=$OTHER_PORT other
	peer "listen $SERVER4 $PEER_PORT" accept "expect $(call_to $NULL)" \
		"send ^ $(chunk_offered) $(repeat 4 0x57575757)" closed >/tmp/other.log 2>&1 &
	other=$!
	need "$what: the other server listens" wait_for 10 grep -q listening /tmp/other.log
	check "$what: its mount fails at once" fails_in_time from_peer soft timeout $AT_ONCE
	wait $other
	check "$what: it loses its connection" peer_succeeded $? /tmp/other.log
	check "$what: the first server keeps its connection" is 1 "$(connections_made)"
}

# READs without an answer, from a server that may invalidate their handles. A killed RPC may
# have to wait for that, but not in rpciod, which all RPCs share.
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
	say "the longest work item of rpciod took $longest ms"
	# A killed RPC waits for an answer for a second.
	check "no RPC waits for the server in rpciod" [ "$longest" -lt "$(seconds 500)" ]
	peer_stop
}

# unanswered N: whether the peer had no rule for so many messages.
unanswered() {
	[ "$(grep -c '^not answered' /tmp/peer.log)" -ge "$1" ]
}

# longest_work FUNCTION: the longest time of a work item that has ended, in milliseconds
longest_work() {
	sed -n "s/.* \([0-9.]*\): workqueue_execute_\([a-z]*\): work struct \([^:]*\): function $1.*/\1 \2 \3/p" \
		$TRACE/trace |
		awk '$2 == "start" { since[$3] = $1 }
		     $2 == "end" && $3 in since { took = ($1 - since[$3]) * 1000; if (took > most) most = took }
		     END { print int(most) }'
}

# A killed Call without an answer has the only credit. No Call can be sent, and none is left
# that could time out.
lost_credit() {
	serve_files 1
	check "mount" from_peer hard
	check "kill ends a READDIR without an answer" \
		killed ls "call_form: .* sent .*form=.*reply" ls /mnt
	# After two periods of the keepalive, and before the timeout of a Call
	check "other Calls are answered after a while" timeout 45 stat -f /mnt
	check "umount -f" wait_for 20 umount -f /mnt
	peer_stop
}

# A READDIR is killed before it is answered, so the server may still use its handles. READs
# follow one by one. A registration has the same handle again after it was used 256 times,
# and there are eight registrations.
BIG_FILE=$(fattr3 1 0x10000000 2)
READS_OF_4K="answer $READ_CALL = <0 1 32 $RDMA_MSG 0 1 1 <7-10 0 0 $(accepted "<13") 0 0 4096 0 4096"

# kill_readdir LINE...: kill a READDIR that the rules do not answer in time. Its handles, all
# that were used before the READs, go to /tmp/handles.
kill_readdir() {
	echo 1 >$TRACE/events/rpcrdma/rpcrdma_mr_map/enable
	serve_files 32 "$READS_OF_4K" "$@" \
		"answer $(call_to $LOOKUP) = $(answer_with 32 0 8 :f11ef11ef11ef11e 1 "$BIG_FILE" 0)"
	check "mount" from_peer hard
	check "kill ends a READDIR without an answer" \
		killed ls "call_form: .* sent .*form=.*reply" ls /mnt
	handles_used >/tmp/handles
	check "it had handles" test -s /tmp/handles
	echo >$TRACE/trace
}

kill_readdir_end() {
	echo 0 >$TRACE/events/rpcrdma/rpcrdma_mr_map/enable
	check "umount -f" wait_for 20 umount -f /mnt
	peer_stop
}

handles_used() {
	sed -n 's/.*rpcrdma_mr_map: .*handle=\(0x[0-9a-f]*\) .*/\1/p' $TRACE/trace
}

# read_on COUNT: so many READs of 4 KiB
read_on() {
	timeout "$(seconds 120)" dd if=/mnt/file of=/dev/null bs=4k count="$1" iflag=direct &&
		[ "$(handles_used | wc -l)" -ge "$1" ]
}

# Whether a READ has used one of those handles
used_again() {
	handles_used | grep -F -f /tmp/handles
}

# Whether a READ has used one of those registrations: each use changes only the last octet
# of a handle.
registration_used_again() {
	sed -i 's/..$//' /tmp/handles
	used_again
}

handles_not_reused() {
	kill_readdir
	check "READs are answered" read_on $((SLOW ? 300 : 2100))
	check "no READ uses a handle that the server may still use" not used_again
	kill_readdir_end
}

# After the server's answer, its handles may be used again.
handles_reused() {
	kill_readdir "answer $READDIR_CALL = +$(seconds 8) <0 1 32 $RDMA_ERROR $ERR_CHUNK"
	check "READs are answered" read_on 40
	check "they use the registrations of a Call that was answered late" registration_used_again
	kill_readdir_end
}

# backward_call XID CHUNKS: a NULL
backward_call() {
	echo "$(start "$1" $RDMA_MSG) $2 $(cb_null "$1")"
}

# The client's first Call in the session is not answered until it has answered backward
# Calls: those that it must refuse, one that is no RPC message, and at last a correct NULL.
# The NULL has the same XID as the client's Call. The pauses keep to the client's credits.
backward_calls() {
	local rules calls what="backward Calls"
	calls=(
		"$(backward_call 0xbac00001 "$(read_segment 40 "$UNREGISTERED") $NO_CHUNKS")"
		"$(backward_call 0xbac00002 "0 $(write_chunk "$UNREGISTERED") 0 0")"
		"$(backward_call 0xbac00003 "0 0 $(reply_chunk "$UNREGISTERED")")"
		"$(start 0xbac00004 $RDMA_NOMSG) $(read_segment 0 "$UNREGISTERED") $NO_CHUNKS"
		"$(start 0xbac00005 $RDMA_MSG) $NO_CHUNKS $(cb_null 0xdeadbeef)"
		"$(backward_call 0xbac00006 "$NO_CHUNKS") $(repeat 2100 0)"
		"$(start 0xbac00007 $RDMA_MSG) $NO_CHUNKS 0xbac00007 0"
		"$(backward_call 0xbac00008 "0 $(write_chunk) 0 0")"
		"$(backward_call 0xbac00009 "0 0 $(reply_chunk)")"
	)
	mapfile -t rules < <(session_rules)
	echo >$TRACE/trace
	peer_start "private $PRIVATE" "listen $SERVER4 $PEER_PORT" "${rules[@]}" \
		"answer $(call_v41_to 2 $OP_SEQUENCE $SESSIONID 1 0 . . $OP_RECLAIM_COMPLETE .) = \
			$(printf '+0.1 %s ; ' "${calls[@]}") +0.1 $(backward_call "<0" "$NO_CHUNKS")" \
		"answer . 1 . $RDMA_MSG $NO_CHUNKS . 1 0 0 0 0 = \
			$(answer_v41_with 0 2 "$(sequenced 1 0)" $OP_RECLAIM_COMPLETE 0)"
	check "$what: a NULL is answered, and the mount continues until it is denied" mount_is_denied
	peer_stop
	check "$what with chunks, another XID, too long, or empty chunks: ERR_CHUNK" is \
		"bac00001 bac00002 bac00003 bac00004 bac00005 bac00006 bac00008 bac00009" \
		"$(refused_calls)"
	check "$what: one of them has a bad header" event_seen reason=XID
}

# The XIDs of the ERR_CHUNKs that the peer received
refused_calls() {
	sed -nE 's/^not answered 20 octets (.{8}) 00000001 .{8} 00000004 00000002$/\1/p' \
		/tmp/peer.log | xargs
}
