# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   what a responder sends wrongly, and what harms nobody, does not fail an RPC of our client
# guests:  um
# also:    um-7-debug/siw debian-6.1
# devices: rxe siw
# turns:   the client's checks
# modules: ours

. /lab/guest/peer.sh
. /lab/guest/responder.sh

client() {
	client_begin
	need "prepare the peer" peer_up
	make_odd
	inline_padding
	unused_chunks
	long_replies
	too_long
}

# wrong_padding OCTETS: as many octets of padding after so many octets of data as
# nfs-ganesha 6.5 sends: the remainder of a division by four. They are not zeros, either.
wrong_padding() {
	local n=$(($1 % 4))
	[ $n -eq 0 ] || echo ":$(repeat $n a5 | tr -d ' ')"
}

# odd OCTETS: the beginning of the file
odd() {
	octets <(head -c "$1" /tmp/odd)
}

# read3 COUNT: the RPC message of a READ of so many octets, after its XID
read3() {
	echo "0 2 100003 3 $READ 1 .+ 0 0 .+ . . $1"
}

# read_done COUNT: READ3res: NFS3_OK, attributes, count, eof, length of the data
read_done() {
	echo "0 1 $FILE $1 1 $1"
}

SIZES="1 2 3 4 511 512 513"
# Of READs that are answered without padding
UNPADDED="5 6 7 509 510"

# The peer's inline threshold is 1024, so these READs have no chunk, and longer ones have a
# Write chunk of one segment, which is words 7 to 10. It is returned unused.
inline_padding() {
	local size rules=() call
	for size in $SIZES; do
		rules+=("answer $(plain_header . . $MSG_CALL) . $(read3 "$size") = \
			$(answer_with 32 "$(read_done "$size")" "$(odd "$size")" "$(wrong_padding "$size")")")
	done
	for size in $UNPADDED; do
		rules+=("answer $(plain_header . . $MSG_CALL) . $(read3 "$size") = \
			$(answer_with 32 "$(read_done "$size")" "$(odd "$size")")")
	done
	for size in 2001 2003; do
		rules+=("answer . 1 . $RDMA_MSG 0 1 1 . $size . . 0 0 . $(read3 "$size") = \
			<0 1 32 $RDMA_MSG 0 1 1 <7 0 <9-10 0 0 $(accepted "<0") \
			$(read_done 511) $(odd 511) $(wrong_padding 511)")
	done
	serve_files 32 "${rules[@]}"
	check "wrong padding: mount" from_peer soft
	for size in $SIZES; do
		check "wrong padding: READ of $size octets" read_odd "$size" "$size"
	done
	for size in $UNPADDED; do
		check "no padding: READ of $size octets" read_odd "$size" "$size"
	done
	for size in 2001 2003; do
		check "wrong padding: READ of $size octets that returns 511 inline" read_odd "$size" 511
	done
	check "wrong padding: umount" unmount /mnt
	peer_stop
}

# with_write_chunk LENGTH CHUNKS RESULT: a rule that answers a READ with a Write chunk
with_write_chunk() {
	echo "answer . 1 . $RDMA_MSG 0 1 1 . $1 . . 0 0 . $(read3 "$1") =" \
		"<0 1 32 $RDMA_MSG 0 $2 0 $(accepted "<0") ${*:3}"
}

# The data of a READ are inline, although a Write chunk was offered. A chunk without octets is
# nothing that was written, whatever else it says.
unused_chunks() {
	local data
	data="$(read_done 512) $(odd 512)"
	serve_files 32 "$(with_write_chunk 2004 "0" "$data")" \
		"$(with_write_chunk 2008 "1 0 0" "$data")" \
		"$(with_write_chunk 2012 "1 1 0 0 0 0 0" "$data")" \
		"$(with_write_chunk 2016 "1 2 0 0 0 0 0 0 0 0 0" "$data")"
	check "a Write chunk that is not used: mount" from_peer soft
	check "a Write chunk that is not returned" read_odd 2004 512
	check "a Write chunk returned without segments" read_odd 2008 512
	check "a Write chunk returned without a handle" read_odd 2012 512
	check "a Write chunk returned with more segments" read_odd 2016 512
	check "a Write chunk that is not used: umount" unmount /mnt
	peer_stop
}

# A link's target is longer at most than what is inline, so READLINK offers a Reply chunk: a
# segment for what comes before the text, one for the text, and one after it. These are words
# 8 to 19 of the Call.
LINK=/target
READLINK_CALL=". 1 . $RDMA_MSG 0 0 1 3 $(repeat 12 .) . 0 2 100003 3 $READLINK ..."

long_replies() {
	link_read "without padding" 5
	link_read "with one octet of padding instead of three" 5 :00
	link_read "without padding" 6
	link_read "with as much padding as nfs-ganesha sends" 7 :000000
	link_is_read "a Reply chunk that is returned full, and the Reply is inline" 7 \
		"<0 1 32 $RDMA_MSG 0 0 1 3 <8-19 $(link_result 7) $(link_text 7) :00"
}

# link_result OCTETS: the RPC message before the text: NFS3_OK, attributes, the text's length
link_result() {
	echo "$(accepted "<0") 0 1 $(fattr3 5 "$1" 2) $1"
}

# link_text OCTETS: the beginning of the text
link_text() {
	octets <(printf %s "${LINK:0:$1}")
}

# link_read WHAT OCTETS [PADDING]: a text that is in the Reply chunk
link_read() {
	local padding=${3:-:}
	link_is_read "a text of $2 octets in the Reply chunk, $1" "$2" \
		"^ <8-11 $(link_result "$2") ; ^ <12-15 $(link_text "$2") $padding ; \
			<0 1 32 $RDMA_NOMSG 0 0 1 3 <8-11 <12 $(($2 + (${#padding} - 1) / 2)) <14-15 <16 0 <18-19"
}

# link_is_read WHAT OCTETS ANSWER: READLINK gets this answer.
link_is_read() {
	serve_files 32 "answer $READLINK_CALL = $3" \
		"answer $(call_to $LOOKUP) = $(answer_with 32 0 8 :f11ef11ef11ef11e 1 "$(fattr3 5 "$2" 2)" 0)"
	check "$1: mount" from_peer soft,timeo=$SHORT_TIMEO
	check "$1" is "${LINK:0:$2}" "$(timeout $AT_ONCE readlink -n /mnt/link)"
	check "$1: umount" unmount /mnt
	peer_stop
}

# The longest possible Reply to a NULL has a few words.
too_long() {
	serve_files 32 "answer $(call_to $NULL) = $(answer_with 32 "$(repeat 200 0x41414141)")"
	check "octets after the Reply: the mount succeeds" from_peer soft
	check "octets after the Reply: umount" unmount /mnt
	peer_stop
}
