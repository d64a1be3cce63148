# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   our server answers a hostile requester that speaks version 2 as it should
# guests:  um/rxe
# also:    um um-7-debug/rxe
# devices: rxe siw
# modules: ours
# limit:   150
# faults:  the peer breaks the rules

. /lab/guest/peer.sh
. /lab/guest/requester.sh

# The other client uses version 2, too.
client() {
	client_begin
	need "prepare the peer" peer_up
	need "both ends may use version 2" versions_up_to 2 2
	use_version 2
	need "mount" nfs_mount 4.2 rdma /mnt
	need "the other client works" other_client
	valid_messages
	versions
	kinds
	options
	directions
	broken_messages
	handles
	cant_reply
	cant_reply_second_chunk
	cant_reply_directory
	backward_replies
	check "the other client never lost its connection" is 1 "$(connections_made)"
}

# call CHUNKS RPC-MESSAGE: an RDMA2_MSG
call() {
	rdma2_msg $XID 32 $MSG_CALL 0 "$*"
}

# bad_xdr WHAT MESSAGE [LINE...]: the answer is BAD_XDR. The lines go before.
bad_xdr() {
	still_answers "$1: BAD_XDR" "${@:3}" "send $2" "expect $(rdma2_error_bad_xdr $XID .)"
}

valid_messages() {
	hostile "NULL is answered, with the initial grant of two credits" \
		"send $(null_message $XID)" \
		"expect $(rdma2_msg $XID 2 $MSG_REPLY 0 "$NO_CHUNKS" "$(accepted $XID)")"
	still_answers "chunks that are offered and not used are returned empty" \
		"send $(call 0 "$(write_chunk @a+0,4096 @a+4096,4096)" 0 "$(reply_chunk @a)" \
			"$(null_call $XID)")" \
		"expect $(rdma2_msg $XID . $MSG_REPLY 0 0 "$(write_chunk @a+0,0 @a+4096,0)" 0 \
			"$(reply_chunk @a+0,0)" "$(accepted $XID)")"
	still_answers "a Long Call" "fill a 0 $(null_call $XID)" \
		"send $(rdma2_nomsg $XID 32 $MSG_CALL 0 "$(read_segment 0 @a+0,40) 0 0 0")" \
		"expect $(null_reply $XID)"
}

# Each message is answered in its own version.
versions() {
	local version script=()
	for version in 2 1 2 1; do
		use_version $version
		script+=("send $(null_message $XID)" "expect $(null_reply $XID)")
		script+=("send $XID 3 32 $RDMA_MSG $NO_CHUNKS $(null_call $XID)"
			"expect $XID 3 . $RDMA_ERROR $ERR_VERS 1 2")
	done
	use_version 2
	hostile "a peer that changes the version in the middle" "${script[@]}"
	for version in 0 3 0xffffffff; do
		still_answers "version $version: ERR_VERS, 1 to 2" \
			"send $XID $version 32 $RDMA_MSG $NO_CHUNKS $(null_call $XID)" \
			"expect $XID $version . $RDMA_ERROR $ERR_VERS 1 2"
	done
}

# Draft 5.2.4: rdma_proc. Two of these are version 1's RDMA_MSGP and RDMA_DONE.
kinds() {
	local proc
	for proc in 2 3 6 0xffffffff; do
		still_answers "rdma_proc $proc: INVAL_PROC" \
			"send $XID 2 32 $proc $MSG_CALL 0 $NO_CHUNKS $(null_call $XID)" \
			"expect $(rdma2_error_inval_proc $XID .)"
	done
	untouched
}

# Draft 4.1: no option is known
options() {
	local before
	unknown_option "without a payload" 0
	unknown_option "with an RPC message" 0 "$(null_call $XID)"
	unknown_option "with optinfo" "6 :0102030405060000"
	unknown_option "with optinfo and an RPC message" "/abcde" "$(null_call $XID)"
	bad_xdr "an option that ends in its optinfo" \
		"$(rdma2_optional $XID 32 $MSG_CALL 17 400 :0102030405060708)"
	bad_xdr "an option of 2^32-1 octets" \
		"$(rdma2_optional $XID 32 $MSG_CALL 17 0xffffffff "$(null_call $XID)")"
	before=$(counter dropped)
	dropped "an option that is a Reply" "$(rdma2_optional $XID 32 $MSG_REPLY 17 0)"
	dropped "an option that is a Reply, with an RPC message" \
		"$(rdma2_optional $XID 32 $MSG_REPLY 17 0 "$(accepted $XID)")"
	check "they are counted as dropped" is $((before + 2)) "$(counter dropped)"
	untouched
}

# unknown_option WHAT OPTINFO [RPC-MESSAGE]
unknown_option() {
	still_answers "an option $1: INVAL_OPTION" \
		"send $(rdma2_optional $XID 32 $MSG_CALL 17 "${@:2}")" \
		"expect $(rdma2_error_inval_option $XID .)"
}

# Draft 5.2.2: rdma_direction is the msg_type of the RPC message.
directions() {
	bad_xdr "a Reply in a Call" "$(call "$NO_CHUNKS" "$(accepted $XID)")"
	bad_xdr "a Reply in a Long Call" \
		"$(rdma2_nomsg $XID 32 $MSG_CALL 0 "$(read_segment 0 @a+0,24) 0 0 0")" \
		"fill a 0 $(accepted $XID)"
	bad_xdr "neither Call nor Reply" "$(rdma2_msg $XID 32 2 0 "$NO_CHUNKS" "$(null_call $XID)")"
	dropped "a Call in a Reply" \
		"$(rdma2_msg $XID 32 $MSG_REPLY 0 "$NO_CHUNKS" "$(null_call $XID)")"
	dropped "a Call in a Long Reply" \
		"$(rdma2_nomsg $XID 32 $MSG_REPLY 0 "$(read_segment 0 @a+0,40) 0 0 0")"
	dropped "a Long Reply" "$(rdma2_nomsg $XID 32 $MSG_REPLY 0 "0 0 $(reply_chunk @a)")"
}

broken_messages() {
	local segment="@a+0,1024" errors
	errors=$(counter errors)
	bad_xdr "no handle and no lists" "$XID 2 32 $RDMA2_MSG $MSG_CALL 0 0"
	bad_xdr "RDMA2_MSG without an RPC message" "$(call "$NO_CHUNKS")"
	bad_xdr "RDMA2_NOMSG without a chunk" "$(rdma2_nomsg $XID 32 $MSG_CALL 0 "$NO_CHUNKS")"
	bad_xdr "another XID in the RPC message" "$(call "$NO_CHUNKS" "$(null_call $OTHER)")"
	bad_xdr "Read list that never ends" "$(call "$(repeat 40 "$(read_segment 40 "$segment")")")"
	bad_xdr "Write chunk of 2^32-1 segments" \
		"$(call 0 1 0xffffffff "$segment" 0 0 "$(null_call $XID)")"
	bad_xdr "position beyond the end" \
		"$(call "$(read_segment 44 "$segment")" "$NO_CHUNKS" "$(null_call $XID)")"
	check "they are counted as errors" is $((errors + 7)) "$(counter errors)"
	dropped "a message of 24 octets" "$XID 2 32 0 0 0"
	dropped "an error that is a Reply to no Call" "$(rdma2_error_bad_xdr $XID 32)"
	dropped "an error of an unknown kind" "$(rdma2_error $XID 32 17 0 0)"
	untouched
}

# read_of COUNT INV-HANDLE SEGMENT...: READ of the file $FOUND, with one Write chunk
read_of() {
	rdma2_msg $XID 32 $MSG_CALL "$2" 0 "$(write_chunk "${@:3}")" 0 0 \
		"$(nfs_call $XID 3 $READ) $FOUND 0 0 $1"
}

# Draft 5.2.3: the Reply repeats the handle. It must not invalidate one that is not among
# the Call's: it may be in use for another Call.
handles() {
	head -c 4096 /tmp/data >/tmp/first
	handle "zero" 0
	handle "that is not among the Call's" 0xdeadbeef
	# Buffer b is in use afterwards.
	handle "of other memory of the peer" @b.handle \
		"send $(lookup $XID other)" "expect $(found $XID)" \
		"send $(read_of 4096 0 @b)" "expect $XID 2 . $RDMA2_MSG $MSG_REPLY 0 0 1 1 @b ..." \
		"holds b 0 $(octets /tmp/first)"
	traced still_answers "NULL with a handle, and without chunks" \
		"send $(rdma2_msg $XID 32 $MSG_CALL 0xdeadbeef "$NO_CHUNKS" "$(null_call $XID)")" \
		"expect $(rdma2_msg $XID . $MSG_REPLY 0xdeadbeef "$NO_CHUNKS" "$(accepted $XID)")"
	check "NULL with a handle, and without chunks: nothing is invalidated" nothing_invalidated
}

# handle WHAT HANDLE LINE...
handle() {
	traced still_answers "a handle $1 is repeated" "buffer b 4096" \
		"send $(lookup $XID other)" "expect $(found $XID)" \
		"send $(read_of 4096 "$2" @a+0,4096)" \
		"expect $XID 2 . $RDMA2_MSG $MSG_REPLY $2 0 1 1 @a+0,4096 ..." \
		"holds a 0 $(octets /tmp/first) ..." "${@:3}"
	check "a handle $1: nothing is invalidated" nothing_invalidated
}

# Whether the server has not invalidated anything with a Reply, by its trace
nothing_invalidated() {
	grep -q 'rpcrdma_reply: ' /tmp/trace &&
		not grep 'rpcrdma_reply: .*invalidate=0x0*[1-9a-f]' /tmp/trace
}

# Draft 5.2.4: the server has executed the Call. Segments are counted from one.

# short WHAT CALL SEGMENT LENGTH LINE...: the file other is looked up, and the answer to the
# Call is CANT_REPLY.
short() {
	still_answers "$1: CANT_REPLY" "send $(lookup $XID other)" "expect $(found $XID)" \
		"send $2" "expect $(rdma2_error_cant_reply $XID . 1 "$3" "$4")" \
		"holds a 0 0xeeeeeeee ..." "${@:5}"
}

cant_reply() {
	short "one segment that is an octet too short" "$(read_of 8192 0 @a+0,8191)" 1 8192
	short "two segments" "$(read_of 8192 0 @a+0,1024 @a+1024,1024)" 2 $((8192 - 1024))
	short "three segments, the last one empty" \
		"$(read_of 8192 0 @a+0,1024 @a+1024,1024 @a+2048,0)" 3 $((8192 - 2048))
	untouched
}

# The second result is a READLINK, as in several-write-chunks.
cant_reply_second_chunk() {
	local call link=3002
	ln -s "$(printf '%0*d' $link 17)" $LOCAL/link
	call=$(compound $XID 8 "$(read_file other 4096)" "$(find_file link) $OP_READLINK")
	short "the second Write chunk" "$(call 0 \
		"$(write_chunk @a+0,2048 @a+2048,2048)" "$(write_chunk @a+8192,1024 @a+9216,1000)" \
		0 0 "$call")" 4 $((link - 1024))
	short "the first of two Write chunks" "$(call 0 \
		"$(write_chunk @a+0,2048 @a+2048,1000)" "$(write_chunk @a+8192,4096)" 0 0 "$call")" \
		2 2048
	rm $LOCAL/link
	untouched
}

# With the shortest thresholds, so that the Reply is not inline. The length that the error
# has is enough.
cant_reply_directory() {
	local readdir PRIVATE="f6ab0e18 01 00 00 00"
	touch $LOCAL/a-rather-long-name-for-a-file-{1..200}
	readdir="$(nfs_call $XID 3 $READDIRPLUS) $ROOT 0 0 0 0 8192 8192"

	still_answers "the Reply chunk: CANT_REPLY" \
		"send $(call 0 0 "$(reply_chunk @a+0,64)" "$readdir")" \
		"expect $(rdma2_error_cant_reply $XID . 1 1 .)" "holds a 0 0xeeeeeeee ..." \
		"send $(call 0 0 1 1 "@a.handle <7 @a.address" "$readdir")" \
		"expect $(rdma2_nomsg $XID . $MSG_REPLY 0 "0 0 1 1 @a.handle <7 @a.address")" \
		"holds a 0 $(accepted $XID) 0 ..."
	still_answers "the Reply chunk after a Write chunk: CANT_REPLY" \
		"send $(call 0 "$(write_chunk @a+8192,1024)" 0 "$(reply_chunk @a+0,64)" "$readdir")" \
		"expect $(rdma2_error_cant_reply $XID . 1 2 .)" "holds a 0 0xeeeeeeee ..."
	still_answers "no Reply chunk: CANT_REPLY without a segment" \
		"send $(call "$NO_CHUNKS" "$readdir")" \
		"expect $(rdma2_error_cant_reply $XID . 1 0 0)"
	rm $LOCAL/a-rather-long-*
	untouched
}

# The server calls back in the version of the session's Calls. The peer is the responder
# then, and answers with errors, or with what is no Reply.
backward_replies() {
	local before reply unknown=0xbadbadba
	# No tag; sessionid, number, slot and highest slot of the Call, and the slot again
	reply="$(accepted "<0") 0 0 2 $OP_CB_SEQUENCE 0 $(received 15-21) $(received 21)"
	reply+=" $OP_CB_RECALL 0"
	before=$(counter dropped)
	# For so many messages there are Receives.
	called_back "backward Replies to unknown Calls, and broken ones" dropped2 \
		"send $(rdma2_msg $unknown 8 $MSG_REPLY 0 "$NO_CHUNKS" "$(accepted $unknown)")" \
		"send $(rdma2_error_bad_xdr $unknown 8)" \
		"send $(rdma2_optional "<0" 8 $MSG_REPLY 17 0)" "sleep 0.1" \
		"send $(rdma2_optional "<0" 8 $MSG_REPLY 17 0 "$reply")" \
		"send $(rdma2_msg "<0" 8 $MSG_REPLY 0 "$NO_CHUNKS" "$(cb_null "<0")")" \
		"send $(rdma2_error "<0" 8 17 0 0)" "sleep 0.1" \
		"send $(rdma2_msg "<0" 8 $MSG_REPLY 0 "$NO_CHUNKS" "$reply")" \
		"$(delegreturn)" \
		"$(expect_compound $XID 3 "$(sequence_done 3)" $OP_PUTFH 0 $OP_DELEGRETURN 0)"
	check "four of them are counted as dropped" is $((before + 4)) "$(counter dropped)"
	traced called_back "a backward Reply in another version than its Call" version1 \
		"send <0 1 8 $RDMA_MSG $NO_CHUNKS $reply" "$(delegreturn)" \
		"$(expect_compound $XID 3 "$(sequence_done 3)" $OP_PUTFH 0 $OP_DELEGRETURN 0)"
	check "it is a Reply to the server's Call" \
		grep 'rpcrdma_reply_form: .* received RDMA_MSG .* version=1 ' /tmp/trace
	check "it is not dropped" not grep rpcrdma_bad_message: /tmp/trace
	bad_backward_reply "BAD_XDR" "$(rdma2_error_bad_xdr "<0" 8)"
	bad_backward_reply "INVAL_PROC" "$(rdma2_error_inval_proc "<0" 8)"
	bad_backward_reply "CANT_REPLY" "$(rdma2_error_cant_reply "<0" 8 1 0 0)"
	bad_backward_reply "ERR_VERS" "$(rdma2_error_vers "<0" 8 1 1)"
	untouched
}

# bad_backward_reply WHAT REPLY: after it nfsd may repeat its Call, at once or later.
bad_backward_reply() {
	called_back "backward Reply: $1" "$1" "send $2" "$(delegreturn)" "sleep 0.5" disconnect
}
