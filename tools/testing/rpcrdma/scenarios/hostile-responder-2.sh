# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   with a hostile responder that speaks version 2, our client's RPCs end as they should
# guests:  um/rxe
# also:    um um-7-debug/rxe
# devices: rxe siw
# modules: ours
# limit:   240
# faults:  the peer breaks the rules

. /lab/guest/peer.sh
. /lab/guest/responder.sh
. /lab/guest/forms.sh

client() {
	client_begin
	need "prepare the peer" peer_up
	need "the client may use version 2" tune rdma_version 2
	use_version 2
	need "trace events" trace_start
	first_call_refused
	first_call_ignored
	reads_that_fail
	reads_that_succeed
	long_reply_with_call
	no_invalidation
	other_version
	refused_after_kill
	late_invalidation "<5"
	backward_calls
	trace_stop
}

# A READ of the client that names a handle, with a Write chunk of one segment, which is
# words 9 to 12.
READ_CALL=". 2 . $RDMA2_MSG $MSG_CALL . 0 1 1 . . . . 0 0 . 0 2 100003 3 $READ ..."

# A READDIR of the client, with a Reply chunk
READDIR_CALL=". 2 . $RDMA2_MSG $MSG_CALL . 0 0 1 ..."

# reply XID LISTS [RPC-MESSAGE]: an RDMA2_MSG without a handle
reply() {
	rdma2_msg "$1" 32 $MSG_REPLY 0 "${@:2}"
}

# Whatever the answer has, it settles the version. The mount's own NULL gets it as well, and
# fails. For errors see version2-fallback.
first_call_refused() {
	refused "a Long Reply in a Reply chunk that was not offered" \
		"$(rdma2_nomsg "<0" 32 $MSG_REPLY 0 "0 0 $(reply_chunk "$UNREGISTERED")")"
}

# What is no answer. The last one ends the connection.
first_call_ignored() {
	ignored "a Reply in version 1" reason=VERSION \
		"<0 1 32 $RDMA_MSG $NO_CHUNKS $(accepted "<0")"
	ignored "version 3" reason=VERSION "<0 3 32 $RDMA_MSG $NO_CHUNKS $(accepted "<0")"
	ignored "unknown rdma_proc" reason=PROC "<0 2 32 3 $MSG_REPLY 0 $NO_CHUNKS $(accepted "<0")"
	ignored "an error of an unknown kind" reason=ERROR "$(rdma2_error "<0" 32 6 0 0)"
	ignored "CANT_REPLY that ends too early" reason=ERROR \
		"$(rdma2_error "<0" 32 $RDMA2_ERR_CANT_REPLY 1 1)"
	ignored "an option" reason=OPTION "$(rdma2_optional "<0" 32 $MSG_REPLY 17 /abcd)"
	ignored "an option with an RPC message" reason=OPTION \
		"$(rdma2_optional "<0" 32 $MSG_REPLY 17 0 "$(accepted "<0")")"
	ignored "an option that ends in its optinfo" reason=TRUNCATED \
		"$(rdma2_optional "<0" 32 $MSG_REPLY 17 400 :01020304)"
	ignored "a Call in a Reply" reason=MSG_DIRECTION "$(reply "<0" "$NO_CHUNKS" "$(null_call "<0")")"
	ignored "a Reply in a Call" reason=DIRECTION \
		"$(rdma2_msg "<0" 32 $MSG_CALL 0 "$NO_CHUNKS" "$(accepted "<0")")"
	ignored "a Long Reply in a Call" reason=DIRECTION \
		"$(rdma2_nomsg "<0" 32 $MSG_CALL 0 "0 0 $(reply_chunk "$UNREGISTERED")")"
	ignored "Send with Invalidate of a foreign handle" \
		"wc_error: .*status=REM_INV_REQ_ERR" "!0xdeadbeef $(answer_with 32)"
}

# Errors on a connection that uses version 2. READ3res: NFS3_OK, no attributes, count, eof,
# length of the data
reads_that_fail() {
	local result
	result="$(accepted "<15") 0 0 65536 1 65536"
	read_fails_once "CANT_REPLY" "$(rdma2_error_cant_reply "<0" 32 1 1 70000)"
	read_fails_once "CANT_REPLY that names no segment" \
		"$(rdma2_error_cant_reply "<0" 32 1 0 0)"
	read_fails_once "CANT_REPLY for a segment that does not exist" \
		"$(rdma2_error_cant_reply "<0" 32 0 0xffffffff 0xffffffff)"
	read_fails_once "BAD_XDR" "$(rdma2_error_bad_xdr "<0" 32)"
	read_fails_once "ERR_VERS" "$(rdma2_error_vers "<0" 32 1 1)"
	read_fails_once "more data than the Write chunk has room for" \
		"$(reply "<0" "0 1 1 <9 0x20000 <11-12 0 0" "$result")"
	read_fails_once "another handle" "$(reply "<0" "0 1 1 0xdeadbeef <10-12 0 0" "$result")"
}

# read_fails_once WHAT MESSAGE: as read_fails. The READ is not sent again.
read_fails_once() {
	echo >$TRACE/trace
	read_fails "$@"
	check "$1: the READ was sent once" is 1 "$(grep -c 'call_form: .* sent .* form=write' $TRACE/trace)"
}

# The answer's handle does not matter, only what is invalidated does.
reads_that_succeed() {
	head -c 65536 /dev/urandom >/tmp/odd
	read_succeeds "the handle that the Call names" server "!<5" "<5"
	read_succeeds "no invalidation" client "" "<5"
	read_succeeds "no invalidation, and zero as the handle" client "" 0
	read_succeeds "no invalidation, and a foreign handle" client "" 0xdeadbeef
}

# read_succeeds WHAT END SEND HANDLE: a READ is answered like that, and END invalidates the
# Write chunk's handle.
read_succeeds() {
	serve_files 32 "answer $READ_CALL = ^ <9-12 $(octets <(head -c 16384 /tmp/odd)) ; $3 \
		$(rdma2_msg "<0" 32 $MSG_REPLY "$4" "0 1 1 <9 16384 <11-12 0 0" \
			"$(accepted "<15") 0 0 16384 1 16384")"
	check "$1: mount" from_peer soft
	check "$1: READ" traced read_16k
	# traced has switched off all events.
	need "$1: trace events" trace_start
	check "$1: the data are correct" cmp <(head -c 16384 /tmp/odd) /tmp/back
	check "$1: the $2 invalidates the handle" invalidated_by "$2"
	check "$1: one connection" is 1 "$(connections_made)"
	check "$1: umount" umount /mnt
	peer_stop
}

read_16k() {
	timeout $AT_ONCE dd if=/mnt/file of=/tmp/back bs=16k count=1 iflag=direct
}

# A READDIR is answered with a Long Reply, but what is in the Reply chunk's first segment,
# words 10 to 13, is a Call.
long_reply_with_call() {
	local what="a Call in a Long Reply"
	serve_files 32 "answer $READDIR_CALL = ^ <10-13 $(null_call "<0") ; \
		$(rdma2_nomsg "<0" 32 $MSG_REPLY "<5" "0 0 1 1 <10 40 <12-13")"
	check "$what: mount" from_peer soft
	check "$what: the READDIR fails at once" fails_in_time timeout $AT_ONCE ls /mnt
	check "$what: it is counted" [ "$(bad_replies)" -gt 0 ]
	check "$what: other Calls are answered" timeout $AT_ONCE stat -f /mnt
	check "$what: one connection" is 1 "$(connections_made)"
	check "$what: umount" umount /mnt
	peer_stop
}

# With the switch off each Call has zero as its handle. The rule is for such a Call alone.
no_invalidation() {
	local what="without remote invalidation"
	need "$what: the switch" tune rdma_remote_invalidation 0
	serve_files 32 "answer ${READ_CALL/"$MSG_CALL ."/"$MSG_CALL 0"} = \
		$(rdma2_error_bad_xdr "<0" 32)"
	check "$what: mount" from_peer soft
	check "$what: a READ names no handle" fails_in_time read_file timeout $AT_ONCE
	check "$what: umount" umount /mnt
	peer_stop
	need "$what: the switch is on again" tune rdma_remote_invalidation 1
}

# A server that answers one kind of Call in version 1 although the Call is in version 2. The
# Replies are dropped, and the Call times out. Others are answered on the next connection.
other_version() {
	local what="a Reply in version 1 later"
	serve_files 32 "answer $(call_to $FSSTAT) = $(use_version 1; answer_with 32 5 0)"
	check "$what: mount" from_peer soft,timeo=$SHORT_TIMEO
	echo >$TRACE/trace
	check "$what: the Call times out" fails_in_time timeout $((5 * AT_ONCE)) stat -f /mnt
	check "$what: event reason=VERSION" event_seen reason=VERSION
	# One that is sent before there is a connection again may time out as well.
	check "$what: other Calls are answered" wait_for 20 stat /mnt/file
	check "$what: umount" wait_for 20 umount -f /mnt
	peer_stop
}

# A process is killed while the client asks for the version. The refusal says all the same
# which version the connection uses.
refused_after_kill() {
	local what="ERR_VERS after a process is killed" connections rule
	rule="answer $(call_to $NULL) = +$(seconds 2) $(rdma2_error_vers "<0" 32 1 1)"
	serve_files 32
	check "$what: mount" from_peer hard
	# Afterwards no ACCESS is needed.
	check "$what: a LOOKUP is answered" stat /mnt/file
	connections=$(connections_made)
	use_version 1
	kill_first_call "$what" "$rule"
	use_version 2
	check "$what: other Calls are answered" timeout $AT_ONCE stat -f /mnt
	check "$what: in version 1" event_seen "call_form: .* sent .* version=1 "
	check "$what: on one more connection" is $((connections + 1)) "$(connections_made)"
	check "$what: umount" wait_for 20 umount -f /mnt
	peer_stop
}

# backward XID LISTS RPC-MESSAGE: a backward Call
backward() {
	rdma2_msg "$1" 32 $MSG_CALL 0 "${@:2}"
}

# The client's first Call in the session is not answered until it has answered backward
# Calls, as in hostile-responder.
backward_calls() {
	local rules calls what="backward Calls"
	calls=(
		"$(backward 0xbac00001 "$(read_segment 40 "$UNREGISTERED") $NO_CHUNKS" "$(cb_null 0xbac00001)")"
		"$(backward 0xbac00002 "0 $(write_chunk "$UNREGISTERED") 0 0" "$(cb_null 0xbac00002)")"
		"$(backward 0xbac00003 "$NO_CHUNKS" "$(cb_null 0xdeadbeef)")"
		"$(backward 0xbac00004 "$NO_CHUNKS" "$(accepted 0xbac00004)")"
		"$(rdma2_nomsg 0xbac00005 32 $MSG_CALL 0 "$(read_segment 0 "$UNREGISTERED") $NO_CHUNKS")"
		"$(rdma2_optional 0xbac00006 32 $MSG_CALL 17 400 :01020304)"
		"$(rdma2_optional 0xbac00007 32 $MSG_CALL 17 0)"
		"$(rdma2_optional 0xbac00008 32 $MSG_CALL 17 /abcd "$(cb_null 0xbac00008)")"
		"$(rdma2_optional 0xbac00009 32 $MSG_REPLY 17 0)"
		"0xbac0000a 3 32 $RDMA_MSG $NO_CHUNKS $(cb_null 0xbac0000a)"
		"0xbac0000b 1 32 $RDMA_MSG $NO_CHUNKS $(cb_null 0xbac0000b)"
		"$(backward 0xbac0000c "0 $(write_chunk) 0 0" "$(cb_null 0xbac0000c)")"
		"$(backward 0xbac0000d "0 0 $(reply_chunk)" "$(cb_null 0xbac0000d)")"
	)
	mapfile -t rules < <(session_rules)
	echo >$TRACE/trace
	peer_start "private $PRIVATE" "listen $SERVER4 $PEER_PORT" "${rules[@]}" \
		"answer $(call_v41_to 2 $OP_SEQUENCE $SESSIONID 1 0 . . $OP_RECLAIM_COMPLETE .) = \
			$(printf '+0.1 %s ; ' "${calls[@]}") \
			+0.1 $(backward "<0" "$NO_CHUNKS" "$(cb_null "<0")")" \
		"answer $(plain_header . . $MSG_REPLY) . 1 0 0 0 0 = \
			$(answer_v41_with 0 2 "$(sequenced 1 0)" $OP_RECLAIM_COMPLETE 0)"
	check "$what: a NULL is answered, and the mount continues until it is denied" mount_is_denied
	peer_stop
	check "$what that are wrong: BAD_XDR" is \
		"bac00001 bac00002 bac00003 bac00004 bac00005 bac00006 bac0000c bac0000d" \
		"$(refused_calls 2)"
	check "$what with an option: INVAL_OPTION" is "bac00007 bac00008" "$(refused_calls 5)"
	check "$what in version 3: ERR_VERS, 1 to 2" grep -E \
		'^not answered 28 octets bac0000a 00000003 .{8} 00000004 00000001 00000001 00000002$' \
		/tmp/peer.log
	check "$what in version 1: the Reply is in version 1" grep -E \
		'^not answered [0-9]+ octets bac0000b 00000001 .{8} 00000000 00000000 00000000 00000000 bac0000b 00000001 ' \
		/tmp/peer.log
}

# refused_calls ERROR: the XIDs of these RDMA2_ERRORs that the peer received
refused_calls() {
	sed -nE "s/^not answered 20 octets (.{8}) 00000002 .{8} 00000004 0000000$1\$/\1/p" \
		/tmp/peer.log | xargs
}
