# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   with Calls in both directions, our server answers what may be a Call, and no Reply
# guests:  um
# also:    um-debug/siw um-7-debug/rxe debian-6.1
# devices: rxe siw
# turns:   backward Calls and Replies
# modules: ours
# limit:   120
# faults:  the peer breaks the rules

. /lab/guest/peer.sh

XID=0x17171717 OTHER=0x18181818

client() {
	client_begin
	need "prepare the peer" peer_up
	need "the server delegates a file to it" wait_for 20 file_delegated
	FILE=$(cat /tmp/delegated)
	recall &
	broken_messages
	wait
}

# client_peer NAME FILE LINE...: a client of this name opens the file and executes the lines.
client_peer() {
	local lines
	mapfile -t lines < <(session 1 $XID "$1" 2; open_file $XID "$2")
	peer "private $PRIVATE" "connect $SERVER4 $PORT" "buffer a 4096" "${lines[@]}" "${@:3}"
}

# nfsd delegates nothing in a grace period, and no file with the same hash as one that it
# has recalled lately. So each attempt uses a new name.
file_delegated() {
	local file=delegated.$RANDOM
	echo some >$LOCAL/$file
	echo $file >/tmp/delegated
	client_peer "$file" "$file" && delegated_to "$file"
}

# delegated_to NAME: whether the client of this name has a delegation.
delegated_to() {
	local info
	info=$(grep -l "name: \"scripted.$1\"" /proc/fs/nfsd/clients/*/info) &&
		grep -q 'type: deleg' "${info%/*}/states"
}

# Another process writes, so the server recalls the delegation. The writer waits for a
# lease period, because the peer does not return it.
recall() {
	wait_for 20 delegated_to broken &&
		timeout "$(seconds 50)" bash -c "echo more >>$LOCAL/$FILE"
}

# The recall is answered with a header from which the direction is not known. Its XID is
# that of the recall, so it counts as a Reply. The same header with another XID may be a
# Call. RDMA_NOMSG with a Reply chunk only is no Reply, because the server has offered no
# Reply chunk.
broken_messages() {
	local no_kind=7
	check "a broken Reply gets no answer, and what may be a Call gets ERR_CHUNK" \
		client_peer broken $FILE \
		"expect . 1 . $RDMA_MSG $NO_CHUNKS . 0 2 $CB_PROGRAM . $CB_COMPOUND ..." \
		"send <0 1 32 $no_kind $NO_CHUNKS $(accepted "<0")" \
		"send $(start $OTHER $no_kind) $NO_CHUNKS $(accepted $OTHER)" \
		"expect $(err_chunk $OTHER)" \
		"send $(start $XID $RDMA_NOMSG) 0 0 $(reply_chunk @a)" \
		"expect $(err_chunk $XID)" \
		"send $(null_message $XID)" "expect $(null_reply $XID)"
}
