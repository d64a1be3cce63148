# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   our server answers a hostile requester as it should, and other clients are not affected
# guests:  um
# also:    um-7-debug/rxe debian-6.1
# devices: rxe siw
# turns:   what is made of messages
# modules: ours
# limit:   210
# faults:  the peer breaks the rules

. /lab/guest/peer.sh
. /lab/guest/requester.sh

# The kernel's own client has the export mounted meanwhile: the "other client".
client() {
	client_begin
	need "prepare the peer" peer_up
	need "mount" nfs_mount 4.2 rdma /mnt
	need "the other client works" other_client
	valid_messages
	versions
	broken_headers
	broken_chunks
	unreasonable_chunks
	broken_arguments
	dropped_messages
	backward_replies
	lost_connections
	denied_calls
	too_many_calls
	many_writes
	idle_and_brief
	check "the other client never lost its connection" is 1 "$(connections_made)"
}

# refused WHAT MESSAGE: the answer is ERR_CHUNK, RFC 8166 section 4.5.2.
refused() {
	still_answers "$1: ERR_CHUNK" "send $2" "expect $(err_chunk $XID)"
}

# with_chunks READ-LIST WRITE-LIST REPLY-CHUNK: a NULL with chunks; an empty one is 0.
with_chunks() {
	echo "$(start $XID $RDMA_MSG) $* $(null_call $XID)"
}

valid_messages() {
	hostile "NULL is answered, with the initial grant of two credits" \
		"send $(null_message $XID)" \
		"expect $XID 1 2 $RDMA_MSG $NO_CHUNKS $(accepted $XID)"
	check "NULL is answered without private data" peer "connect $SERVER4 $PORT" \
		"send $(null_message $XID)" "expect $(null_reply $XID)"
	check "NULL is answered with unknown private data" peer "private $(repeat 20 ff)" \
		"connect $SERVER4 $PORT" "send $(null_message $XID)" "expect $(null_reply $XID)"
	hostile "chunks that are offered and not used are returned empty" \
		"send $(with_chunks 0 "$(write_chunk @a+0,4096 @a+4096,4096)" 0 "$(reply_chunk @a)")" \
		"expect $XID 1 . $RDMA_MSG 0 \
			$(write_chunk "@a.handle 0 @a.address" "@a.handle 0 . .") 0 \
			$(reply_chunk "@a.handle 0 @a.address") $(accepted $XID)"
}

# Section 4.5.1: the same rdma_vers, ERR_VERS, lowest and highest supported version
versions() {
	local version
	for version in 0 2 0xffffffff; do
		still_answers "version $version: ERR_VERS, 1 to 1" \
			"send $XID $version 32 $RDMA_MSG $NO_CHUNKS $(null_call $XID)" \
			"expect $XID $version . $RDMA_ERROR $ERR_VERS 1 1"
	done
	untouched
}

broken_headers() {
	local errors
	errors=$(counter errors)
	refused "unknown rdma_proc" "$(start $XID 7) $NO_CHUNKS $(null_call $XID)"
	refused "RDMA_MSGP" "$(start $XID $RDMA_MSGP) 4096 0 $NO_CHUNKS $(null_call $XID)"
	refused "RDMA_NOMSG without a chunk" "$(start $XID $RDMA_NOMSG) $NO_CHUNKS"
	refused "RDMA_MSG without an RPC message" "$(start $XID $RDMA_MSG) $NO_CHUNKS"
	refused "another XID in the RPC message" \
		"$(start $XID $RDMA_MSG) $NO_CHUNKS $(null_call $OTHER)"
	refused "neither Call nor Reply" "$(start $XID $RDMA_MSG) $NO_CHUNKS $XID 2 $(repeat 8 0)"
	check "they are counted as errors" [ "$(counter errors)" -eq $((errors + 6)) ]
	untouched
}

# The RPC message of NULL has 40 octets.
broken_chunks() {
	local segment="@a+0,1024" huge="@a.handle 0xffffffff 0 0x10000"
	refused "Read list that ends too early" \
		"$(start $XID $RDMA_MSG) $(read_segment 40 "$segment") 1 40"
	refused "Read list that never ends" \
		"$(start $XID $RDMA_MSG) $(repeat 40 "$(read_segment 40 "$segment")")"
	refused "Read list of 300 segments" \
		"$(with_chunks "$(repeat 300 "$(read_segment 40 "$segment")")" 0 0 0)"
	refused "Read list of 40 chunks" \
		"$(with_chunks "$(for n in {1..40}; do read_segment $((40 + 1024 * n)) "$segment"; done | xargs)" 0 0 0)"
	refused "\"is present\" that is two" "$(with_chunks 2 0 0)"
	refused "position not aligned" "$(with_chunks "$(read_segment 38 "$segment")" 0 0 0)"
	refused "position zero in RDMA_MSG" "$(with_chunks "$(read_segment 0 "$segment")" 0 0 0)"
	refused "position in the XID and msg_type" \
		"$(with_chunks "$(read_segment 4 "$segment")" 0 0 0)"
	refused "position beyond the end" "$(with_chunks "$(read_segment 44 "$segment")" 0 0 0)"
	refused "Read chunks that overlap" "$(with_chunks \
		"$(read_segment 20 "$segment")" "$(read_segment 24 "$segment")" 0 0 0)"
	refused "Read chunk of more than 32 bits" "$(with_chunks \
		"$(read_segment 40 "$huge")" "$(read_segment 40 "$huge")" 0 0 0)"
	refused "segment beyond 64 bits" "$(with_chunks \
		"$(read_segment 40 "@a.handle 4096 0xffffffff 0xfffff800")" 0 0 0)"
	refused "Write chunk of 2^32-1 segments" "$(with_chunks 0 1 0xffffffff "$segment" 0 0)"
	refused "Write chunk of 300 segments" "$(with_chunks 0 \
		"1 300 $(repeat 300 "$segment")" 0 0)"
	refused "Write list of 40 chunks" "$(with_chunks 0 \
		"$(repeat 40 "$(write_chunk "$segment")")" 0 0)"
	refused "Write list that never ends" \
		"$(start $XID $RDMA_MSG) 0 $(repeat 10 "$(write_chunk)")"
	refused "Reply chunk of 2^32-1 segments" "$(with_chunks 0 0 1 0xffffffff "$segment")"
	refused "Reply chunk of more than 32 bits" "$(with_chunks 0 0 "$(reply_chunk "$huge" "$huge")")"
	untouched
}

# Chunks that are well-formed, but too large or too small
unreasonable_chunks() {
	refused "Read chunk of 3 GiB" "$(with_chunks \
		"$(read_segment 40 "@a.handle 0xc0000000 0 0x10000")" 0 0 0)"
	refused "Long Call of 3 GiB" "$(start $XID $RDMA_NOMSG) \
		$(read_segment 0 "@a.handle 0xc0000000 0 0x10000") 0 0 0"
	still_answers "Long Call with another XID: ERR_CHUNK" "fill a 0 $(null_call $OTHER)" \
		"send $(start $XID $RDMA_NOMSG) $(read_segment 0 @a+0,40) 0 0 0" \
		"expect $(err_chunk $XID)"
	still_answers "a correct Long Call" "fill a 0 $(null_call $XID)" \
		"send $(start $XID $RDMA_NOMSG) $(read_segment 0 @a+0,40) 0 0 0" \
		"expect $(null_reply $XID)"
	mkdir -p $LOCAL/long && touch $LOCAL/long/a-rather-long-name-for-a-file-{1..200}
	check "long Reply without a Reply chunk: ERR_CHUNK" peer "connect $SERVER4 $PORT" \
		"send $(lookup $XID long)" "expect $(found $XID)" \
		"send $(start $XID $RDMA_MSG) $NO_CHUNKS $(readdir)" \
		"expect $(err_chunk $XID)" \
		"send $(null_message $OTHER)" "expect $(null_reply $OTHER)"
	check "Reply chunk too small: ERR_CHUNK" peer "connect $SERVER4 $PORT" "buffer a 4096" \
		"send $(lookup $XID long)" "expect $(found $XID)" \
		"send $(start $XID $RDMA_MSG) 0 0 $(reply_chunk @a+0,64) $(readdir)" \
		"expect $(err_chunk $XID)" "holds a 0 0xeeeeeeee ..." \
		"send $(null_message $OTHER)" "expect $(null_reply $OTHER)"
	check "Reply chunk large enough: RDMA_NOMSG, and the Reply is in the chunk" \
		peer "connect $SERVER4 $PORT" "buffer a 16384" \
		"send $(lookup $XID long)" "expect $(found $XID)" \
		"send $(start $XID $RDMA_MSG) 0 0 $(reply_chunk @a) $(readdir)" \
		"expect $XID 1 . $RDMA_NOMSG 0 0 1 1 @a.handle . @a.address" \
		"holds a 0 $(accepted $XID) 0 ..."
	rm -r $LOCAL/long
	untouched
}

# READDIRPLUS: file handle, cookie, verifier, dircount, maxcount
readdir() {
	echo "$(nfs_call $XID 3 $READDIRPLUS) $FOUND 0 0 0 0 8192 8192"
}

# Section 4.5.2: the transport headers are correct, the RPC arguments are not.
broken_arguments() {
	local errors write at
	errors=$(counter errors)
	# File handle, offset, count, FILE_SYNC, and the length of the data
	write="$(nfs_call $XID 3 $WRITE) $ROOT 0 0 1000 2 1000"
	# size() counts four octets for the handle, which has eight.
	at=$(($(size "$write") + 4))

	garbage "a WRITE without data" "$NO_CHUNKS $write"
	garbage "a Read chunk shorter than the data" \
		"$(read_segment $at @a+0,996) $NO_CHUNKS $write"
	garbage "a Read chunk that is placed a word too early" \
		"$(read_segment $((at - 4)) @a+0,1000) $NO_CHUNKS $write"
	garbage "a READ without arguments; its chunks are returned unused" \
		"0 $(write_chunk @a+0,4096 @a+4096,4096) 0 $(reply_chunk @a) $(nfs_call $XID 3 $READ)" \
		"0 $(write_chunk @a+0,0 @a+4096,0) 0 $(reply_chunk @a+0,0)"
	check "they are not counted as errors of the transport" is "$errors" "$(counter errors)"
	untouched
}

# garbage WHAT MESSAGE [CHUNKS]: the message after rdma_proc, and the chunks of the Reply
garbage() {
	still_answers "$1: GARBAGE_ARGS" "send $(start $XID $RDMA_MSG) $2" \
		"expect $XID 1 . $RDMA_MSG ${3:-$NO_CHUNKS} $(garbage_args $XID)"
}

# Messages that cannot be answered or must not be
dropped_messages() {
	local before
	before=$(counter dropped)
	dropped "a message of no octets" ""
	dropped "a message of 24 octets" "$XID 1 32 0 0 0"
	dropped "RDMA_DONE" "$(start $XID $RDMA_DONE) $NO_CHUNKS"
	dropped "RDMA_ERROR" "$(start $XID $RDMA_ERROR) $ERR_VERS 1 1"
	dropped "a Reply to no Call" "$(start $XID $RDMA_MSG) $NO_CHUNKS $(accepted $XID)"
	check "they are counted as dropped" [ "$(counter dropped)" -eq $((before + 5)) ]
	untouched
}

# With a session, the server sends Calls as well.
backward_replies() {
	local dropped unknown=0xbadbadba reply
	# No tag; sessionid, number, slot and highest slot of the Call, and the slot again
	reply="$(accepted "<0") 0 0 2 $OP_CB_SEQUENCE 0 $(received 15-21) $(received 21) \
		$OP_CB_RECALL 0"
	dropped=$(counter dropped)
	# For so many messages there are Receives.
	called_back "backward Replies to unknown Calls, and broken ones" dropped \
		"send <0 1 8 $RDMA_MSG $NO_CHUNKS $(accepted $unknown)" \
		"send <0 1 8 $RDMA_MSG $(read_segment 8 "$UNREGISTERED") $NO_CHUNKS $reply" \
		"send <0 1 8 $RDMA_ERROR 17 0 0" "sleep 0.1" \
		"send $unknown 1 0 $RDMA_MSG $NO_CHUNKS $(accepted $unknown)" \
		"send $unknown 1 0xffffffff $RDMA_MSG $NO_CHUNKS $(accepted $unknown)" \
		"send $unknown 1 8 $RDMA_ERROR $ERR_CHUNK" "sleep 0.1" \
		"send <0 1 8 $RDMA_MSG $NO_CHUNKS $reply" "send <0 1 8 $RDMA_MSG $NO_CHUNKS $reply" \
		"$(delegreturn)" \
		"$(expect_compound $XID 3 "$(sequence_done 3)" $OP_PUTFH 0 $OP_DELEGRETURN 0)" \
		"send $(null_message $OTHER)" "expect $(null_reply $OTHER)"
	check "the three broken ones are counted as dropped" \
		is $((dropped + 3)) "$(counter dropped)"
	bad_backward_reply "RDMA_ERROR" error "$RDMA_ERROR $ERR_CHUNK"
	bad_backward_reply "an RPC message of two words" short "$RDMA_MSG $NO_CHUNKS <0 1"
	bad_backward_reply "an RPC message that is too long" long \
		"$RDMA_MSG $NO_CHUNKS $reply $(repeat 1000 0x41414141)"
	untouched
}

# bad_backward_reply WHAT FILE REPLY: after it nfsd may repeat its Call, at once or later.
bad_backward_reply() {
	called_back "backward Reply: $1" "$2" "send <0 1 8 $3" "$(delegreturn)" "sleep 0.5" disconnect
}

# RFC 8166 section 4.5.3: operational errors are fatal to the connection
lost_connections() {
	local overrun="@a.handle 16388 @a.address" XID=0x1a1a1a00
	closes "RDMA Read of an unknown handle" \
		"send $(with_chunks "$(read_segment 40 "$UNREGISTERED")" 0 0 0)"
	XID=$((XID + 1))
	closes "RDMA Read beyond the end of a registration" \
		"send $(with_chunks "$(read_segment 40 "$overrun")" 0 0 0)"
	XID=$((XID + 1))
	closes "RDMA Write to an unknown handle" "${WRITE_TO_UNREGISTERED[@]//XID/$XID}"
	closes "a message longer than the Receives" "send $(repeat 5000 0)"
	closes "Send with Invalidate of an unknown handle" \
		"send !0xdeadbeef $(null_message $XID)"
	check "a requester without Receives" peer "timeout 60" "receives 0" \
		"connect $SERVER4 $PORT" "send $(null_message $XID)" closed
	untouched
}

# A Call that breaks its connection does so as often as it is sent.
denied_calls() {
	local XID=0x1b1b1b00
	each_time "RDMA Read of an unknown handle" \
		"send $(with_chunks "$(read_segment 40 "$UNREGISTERED")" 0 0 0)"
	XID=$((XID + 1))
	each_time "RDMA Write to an unknown handle" "${WRITE_TO_UNREGISTERED[@]//XID/$XID}"
	untouched
}

each_time() {
	local n
	for n in {1..4}; do
		closes "$1: it breaks connection $n" "${@:2}"
	done
}

# A READ with an unregistered Write chunk. The XID is a placeholder.
WRITE_TO_UNREGISTERED=("send $(lookup XID other)" "expect $(found XID)"
	"send $(start XID $RDMA_MSG) 0 $(write_chunk "$UNREGISTERED") 0 0 \
		$(nfs_call XID 3 $READ) $FOUND 0 0 4096")

# More than twice as many Calls as the server ever grants. Each time that it has no
# Receive, rxe waits for 0.66 s, as the CM has configured it. iWARP does not wait: the
# connection may end before or after the first answer, or not at all.
too_many_calls() {
	local granted many first=("expect ...") replies
	granted=$(cat /proc/sys/sunrpc/svc_rdma/max_requests)
	many=$((2 * granted + 22))
	mapfile -t replies < <(for ((n = 0; n < many; n++)); do echo "expect $(null_reply $XID)"; done)
	if [ "$DEVICE" = siw ]; then
		first=()
	else
		hostile "$many Calls at a time, all of them answered" \
			"flood $many $(null_message $XID)" "${replies[@]}"
	fi
	hostile "$many Calls, and the requester disconnects" \
		"flood $many $(null_message $XID)" "${first[@]}" disconnect
	hostile "$many Calls with a Read chunk, and the requester disconnects" \
		"flood $many $(with_chunks "$(read_segment 40 @a)" 0 0 0)" disconnect
	untouched
}

# More RDMA Writes than a chain has, all of them successful
many_writes() {
	local segments=() n
	for ((n = 0; n < 256; n++)); do
		segments+=("@a+$((16 * n)),16")
	done
	head -c 4096 /tmp/data >/tmp/first
	still_answers "a READ into 256 segments" \
		"send $(lookup $XID other)" "expect $(found $XID)" \
		"send $(read_into "${segments[@]}") 4096" \
		"expect $XID 1 . $RDMA_MSG 0 1 256 ..." "holds a 0 $(octets /tmp/first) ..."
}

# read_into SEGMENT...: READ of the file $FOUND from its beginning. The count follows.
read_into() {
	echo "$(start $XID $RDMA_MSG) 0 $(write_chunk "$@") 0 0 $(nfs_call $XID 3 $READ) $FOUND 0 0"
}

# Idle connections, and many brief ones
idle_and_brief() {
	local idle=() lines=() well=0 n
	for n in 1 2 3; do
		peer "connect $SERVER4 $PORT" "sleep 5" disconnect &
		idle+=($!)
	done
	check "three peers connect and send nothing" other_client
	for n in {1..200}; do
		lines+=("connect $SERVER4 $PORT" disconnect)
	done
	check "a peer connects and disconnects 200 times" peer "${lines[@]}"
	for n in "${idle[@]}"; do
		wait "$n" && well=$((well + 1))
	done
	check "the idle connections were not closed" [ $well = 3 ]
	check "NULL is still answered" peer "connect $SERVER4 $PORT" \
		"send $(null_message $XID)" "expect $(null_reply $XID)"
	untouched
}
