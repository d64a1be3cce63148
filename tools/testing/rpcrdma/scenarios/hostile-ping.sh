# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   rpcrdma ping ends in time with a clear line, whatever a lying server does
# guests:  um/rxe
# also:    um um-7-debug/rxe
# devices: rxe siw
# modules: ours
# limit:   180
# faults:  the peer breaks the rules

. /lab/guest/peer.sh
. /lab/guest/tools.sh

PEER_PORT=20050
# Tenths of a second that ping waits for each answer, and for the connection
TENTHS=$(seconds 4)

# Any Call: a NULL of any program and version
CALL="answer . 1 . $RDMA_MSG $NO_CHUNKS . 0 2 . . $NULL 0 0 0 0"
HEADER="<0 1 32 $RDMA_MSG $NO_CHUNKS"

client() {
	client_begin
	need "prepare the peer" peer_up
	need "the program" tool_up
	honest
	connecting
	silent
	headers
	messages
	errors
	versions
	endings
}

honest() {
	peer_start "private $PRIVATE" "listen $SERVER4 $PEER_PORT" "$CALL = $HEADER $(accepted "<0")"
	check "an honest peer: 0" exits 0 tool ping -c 3 -i 0 $SERVER4:$PEER_PORT
	peer_stop
}

# ends STATUS PATTERN WHAT LINE...: with a peer that has this script ping ends with the
# status, in time, and prints such a line.
ends() {
	peer_start "${@:4}" "listen $SERVER4 $PEER_PORT"
	pinged "${@:1:3}"
	peer_stop
}

# pinged STATUS PATTERN WHAT [MORE]: MORE are seconds that it may take because of the device.
pinged() {
	local since=$SECONDS more=${4:-0}
	check "$3: $1" exits "$1" tool ping -W $((TENTHS / 10)).$((TENTHS % 10)) -c 3 -i 0.1 $SERVER4:$PEER_PORT
	# One for the connection, and one for each of three Calls
	check "$3: in time" [ $((SECONDS - since)) -le $((4 * TENTHS / 10 + $(seconds 3) + more)) ]
	check "$3: it says so" says "$2"
}

# ignores REASON WHAT MESSAGE: this answer is ignored, and there is no other.
ignores() {
	ends 2 "ignored a message: $1" "$2" "$CALL = $3"
}

# refuses REASON WHAT MESSAGE: with this answer ping ends at once.
refuses() {
	ends 2 "^rpcrdma: $SERVER4: $1" "$2" "$CALL = $3"
}

connecting() {
	local data
	for data in "f6ab0e18 02 01 ff ff" "00" "ffffffff ffffffff ffffffff ffffffff ffffffff" \
			"0000 f6ab0e 18"; do
		peer_start "private $data" "listen $SERVER4 $PEER_PORT" \
			"$CALL = $HEADER $(accepted "<0")"
		check "private data $data: 0" exits 0 tool ping -c 1 $SERVER4:$PEER_PORT
		check "private data $data: the defaults are agreed" \
			says "^agreed:   Calls 1024, Replies 1024 "
		peer_stop
	done
	peer_start "listen $SERVER4 $PEER_PORT"
	kill -STOP "$PEER"
	# Over siw the kernel ends a program only when its connection request is over.
	pinged 1 "no answer" "a server that does not accept" "$([ "$DEVICE" != siw ] || echo 10)"
	kill -KILL "$PEER"
	wait "$PEER" 2>/dev/null
}

silent() {
	ends 1 "no answer in time" "a server that does not answer"
	# Over siw this ends the connection.
	[ "$DEVICE" = siw ] ||
		ends 1 "no answer in time|did not arrive" "a server without Receives" "receives 0"
	ends 1 "no answer in time" "answers after the time-out" \
		"$CALL = +$(seconds 2) $HEADER $(accepted "<0")"
}

headers() {
	local words
	ignores "it is too short" "no octets" ""
	ignores "it is too short" "24 octets" "<0 1 32 0 0 0"
	ignores "its XID is that of no Call" "another XID" \
		"0xdeadbeef 1 32 $RDMA_MSG $NO_CHUNKS $(accepted 0xdeadbeef)"
	ignores "its XID is not that of its RPC message" "another XID in the RPC message" \
		"$HEADER $(accepted 0xdeadbeef)"
	ignores "it has an unknown version" "version 9" \
		"<0 9 32 $RDMA_MSG $NO_CHUNKS $(accepted "<0")"
	ignores "its rdma_proc is unknown" "unknown rdma_proc" "<0 1 32 7 $NO_CHUNKS $(accepted "<0")"
	ignores "it has too many segments" "a Write chunk of 2^32-1 segments" \
		"<0 1 32 $RDMA_MSG 0 1 0xffffffff 0 $(accepted "<0")"
	words=$(repeat 500 "1 1 $UNREGISTERED")
	ignores "it has too many" "500 Write chunks" "<0 1 32 $RDMA_MSG 0 $words 0 0 $(accepted "<0")"
	ignores "it ends within its header" "a Write list that ends too early" \
		"<0 1 32 $RDMA_MSG 0 1 4 $UNREGISTERED"
	ignores "it has a Read list" "a Read list" \
		"<0 1 32 $RDMA_MSG $(read_segment 8 "$UNREGISTERED") $NO_CHUNKS $(accepted "<0")"
	ignores "it has chunks that the Call did not offer" "a Reply chunk" \
		"<0 1 32 $RDMA_NOMSG 0 0 $(reply_chunk "$UNREGISTERED")"
	ignores "it is a Call" "a Call" "$HEADER $(null_call "<0")"
}

messages() {
	ignores "its RPC message is cut off" "an RPC message of two words" "$HEADER <0 1"
	ignores "its RPC message is cut off" "no accept_stat" "$HEADER <0 1 0 0 0"
	ignores "its RPC message is cut off" "a verifier of 2^32-1 octets" "$HEADER <0 1 0 0 0xffffffff 0"
	ignores "its RPC message is cut off" "a verifier longer than the message" "$HEADER <0 1 0 0 400 0"
	ignores "a NULL has no results" "results" "$HEADER $(accepted "<0") 1"
	ignores "its accept_stat 17 is unknown" "unknown accept_stat" "$HEADER <0 1 0 0 0 17"
	ignores "its reply_stat 17 is unknown" "unknown reply_stat" "$HEADER <0 1 17 0 0 0"
	ends 2 "^rpcrdma: .*the server sent more than 16384 octets" "a message larger than the Receive" \
		"$CALL = $HEADER $(accepted "<0") $(repeat 5000 0x1b5b324a)"
}

errors() {
	refuses "the server could not use the Call \(RDMA_ERROR ERR_CHUNK\)" "ERR_CHUNK" \
		"<0 1 32 $RDMA_ERROR $ERR_CHUNK"
	ignores "it is an RDMA_ERROR that is unknown" "RDMA_ERROR of an unknown kind" \
		"<0 1 32 $RDMA_ERROR 17 0 0"
	refuses "the server has versions 2 to 2 of RPC-over-RDMA, not 1" "ERR_VERS" \
		"<0 1 32 $RDMA_ERROR $ERR_VERS 2 2"
	refuses "the server does not have program 100003" "PROG_UNAVAIL" "$HEADER <0 1 0 0 0 1"
	refuses "the server could not decode" "GARBAGE_ARGS" "$HEADER $(garbage_args "<0")"
	refuses "the server has an error of its own" "SYSTEM_ERR" "$HEADER <0 1 0 0 0 5"
	refuses "the server denied a Call without credentials" "AUTH_TOOWEAK" "$HEADER <0 1 1 1 5"
	refuses "the server has versions 3 to 9 of RPC" "RPC_MISMATCH" "$HEADER <0 1 1 0 3 9"
}

# Each version that the server offers is refused in turn.
versions() {
	refuses "the server has versions 5 to 4 " "versions 5 to 4" "$HEADER <0 1 0 0 0 2 5 4"
	refuses "the server has versions 1 to 9 " "versions 1 to 9" "$HEADER <0 1 0 0 0 2 1 9"
	refuses "the server has versions 7 to 9 " "versions 7 to 9, and not 7 either" \
		"$HEADER <0 1 0 0 0 2 7 9"
	refuses "the server has versions 0 to 0 " "versions 0 to 0" "$HEADER <0 1 0 0 0 2 0 0"
}

endings() {
	ends 2 "^rpcrdma: .*(ended the connection|connection broke)" "a disconnection without an answer" \
		"$CALL = disconnect"
	ends 2 "^rpcrdma: .*(ended the connection|connection broke)" "an answer and a disconnection" \
		"$CALL = $HEADER $(accepted "<0") ; disconnect"
	# The handle is of no use at this end, so its queue pair breaks.
	ends 2 "^rpcrdma: .*(ended the connection|connection broke)" "Send with Invalidate" \
		"$CALL = !0xdeadbeef $HEADER $(accepted "<0")"
	ends 2 "ignored a message" "a flood of messages for no Call" "$CALL = \
		$(repeat 300 "0xdeadbeef 1 32 $RDMA_MSG $NO_CHUNKS $(accepted 0xdeadbeef) ;") \
		0xdeadbeef 1 32 $RDMA_MSG $NO_CHUNKS $(accepted 0xdeadbeef)"
	check "a line for each Call at most" [ "$(grep -c ignored /tmp/tool.out)" -le 5 ]
	grants
}

grants() {
	local credits
	for credits in 0 1 0xffffffff; do
		peer_start "listen $SERVER4 $PEER_PORT" \
			"$CALL = <0 1 $credits $RDMA_MSG $NO_CHUNKS $(accepted "<0")"
		check "grant of $credits: 0" exits 0 tool ping -c 5 -i 0 $SERVER4:$PEER_PORT
		check "grant of $credits: all are answered" says "^5 sent, 5 answered"
		peer_stop
	done
}
