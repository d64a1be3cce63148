# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   our server executes a Call with a mistake that harms nobody
# guests:  um
# also:    um-7-debug/siw debian-6.1
# devices: rxe siw
# turns:   the server's checks
# modules: ours
# faults:  the requester closes its connections

. /lab/guest/peer.sh

XID=0x17171717 OTHER=0x18181818

client() {
	local long=("send $(null_message $OTHER) $(repeat 40 0x41414141)"
		"expect $(null_reply $OTHER)")
	client_begin
	need "prepare the peer" peer_up
	echo some >$LOCAL/other
	head -c 1001 /dev/urandom >/tmp/data
	# Receives that hold other octets, and then a Call whose last word is incomplete
	accepted_from "a name without its padding" "${long[@]}" "${long[@]}" "${long[@]}" \
		"send $(plain_call $XID) $(nfs_call $XID 3 $LOOKUP) $ROOT 5 $(octets <(printf other))" \
		"expect $(found $XID)"
	write_unpadded
	write_segments_of_nothing
	accepted_from "a Call that asks for no credits" \
		"send $(plain_header $XID 0 $MSG_CALL) $(null_call $XID)" "expect $(null_reply $XID)"
}

# accepted_from WHAT LINE...: run a script on a new connection.
accepted_from() {
	check "$1" peer "private $PRIVATE" "connect $SERVER4 $PORT" "buffer a 4096" "${@:2}"
}

# WRITE: file handle, offset, count, FILE_SYNC, and the length of the data
write_unpadded() {
	: >$LOCAL/copy
	accepted_from "WRITE of 1001 octets without padding, inline" \
		"send $(lookup $XID copy)" "expect $(found $XID)" \
		"send $(plain_call $XID) $(nfs_call $XID 3 $WRITE) $FOUND 0 0 1001 2 1001 $(octets /tmp/data)" \
		"expect $(plain_reply $XID .) $(accepted $XID) 0 ..."
	check "the server has the data" cmp /tmp/data $LOCAL/copy
}

# Nothing is read by the handle of a segment without octets.
write_segments_of_nothing() {
	local nothing="0xdeadbeef 0 0 0"
	accepted_from "Read segments of no octets, by a handle that is not valid" \
		"fill a 0 $(null_call $XID)" \
		"send $(start $XID $RDMA_NOMSG) $(read_segment 0 "$nothing") $(read_segment 0 @a+0,40) \
			$(read_segment 0 "$nothing") 0 0 0" \
		"expect $(null_reply $XID)" \
		"send $(start $OTHER $RDMA_MSG) $(read_segment 40 "$nothing") 0 0 0 $(null_call $OTHER)" \
		"expect $(null_reply $OTHER)"
}
