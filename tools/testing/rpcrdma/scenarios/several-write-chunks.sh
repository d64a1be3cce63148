# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   Calls with several Write chunks, Read chunks and segments get correct data
# guests:  um um-7-debug/rxe
# also:    um-7-debug debian-6.1 arm64-64k/rxe
# devices: rxe siw
# turns:   what the server makes of a message
# modules: ours

. /lab/guest/peer.sh

XID=0x17171717
# Lengths that are not multiples of four, and their padding
LONG=8189 LONG_PAD=:000000 SHORT=3002 SHORT_PAD=:0000
UNTOUCHED=0xeeeeeeee

client() {
	client_begin
	need "prepare the peer" peer_up
	head -c $LONG /dev/urandom >$LOCAL/long
	head -c $SHORT /dev/urandom >$LOCAL/short
	ln -s "$(printf '%0*d' $SHORT 17)" $LOCAL/link
	readlink -n $LOCAL/link >/tmp/link
	two_results
	unconsumed
	one_read
	read_in_segments
	two_writes
	cut_anywhere
}

# our_peer WHAT LINE...: run a script with inline thresholds of 16 KiB and two buffers.
our_peer() {
	local what=$1
	shift
	check "$what" peer "private $PRIVATE" "connect $SERVER4 $PORT" \
		"buffer a ${LENGTH_A:-12288}" "buffer b 12288" "$@"
}

LINK_READ="$FILE_FOUND $OP_READLINK 0 $SHORT"

# The second result is a READLINK: nfsd tells the transport
# the place of one READ's data only.
two_results() {
	local call written
	call=$(compound $XID 8 "$(read_file long 8192)" "$(find_file link) $OP_READLINK")
	written=$(replies_that_wrote)

	traced our_peer "COMPOUND with READ and READLINK, a Write chunk for each" \
		"send $(start $XID $RDMA_MSG) 0 \
			$(write_chunk @a) $(write_chunk @b+0,2048 @b+2048,2048) 0 0 $call" \
		"expect $XID 1 . $RDMA_MSG 0 \
			$(write_chunk "@a+0,$LONG") \
			$(write_chunk @b+0,2048 "@b+2048,$((SHORT - 2048))") 0 0 \
			$(compounded $XID 8 "$(file_read 1 $LONG)" "$LINK_READ")" \
		"holds a 0 $(octets $LOCAL/long) :eeeeee $UNTOUCHED ..." \
		"holds b 0 $(octets /tmp/link) :eeee $UNTOUCHED ..."
	check "the server receives one Call, with two Write chunks" \
		is "received RDMA_MSG form=write reads=0 writes=2 segments=3" "$(seen call)"
	check "the Reply has two Write chunks" \
		is "sent RDMA_MSG form=write reads=0 writes=2 segments=3" "$(seen reply)"
	check "all of both results was written" grep "rpcrdma_reply: .* written=$((LONG + SHORT)) " /tmp/trace
	check "it is counted as one Reply" is $((written + 1)) "$(replies_that_wrote)"

	our_peer "a result stays inline if its Write chunk is empty" \
		"send $(start $XID $RDMA_MSG) 0 \
			$(write_chunk) $(write_chunk @b) 0 0 $call" \
		"expect $XID 1 . $RDMA_MSG 0 \
			$(write_chunk) $(write_chunk "@b+0,$SHORT") 0 0 \
			$(compounded $XID 8 "$(file_read 1 $LONG)") $(octets $LOCAL/long) $LONG_PAD \
			$LINK_READ" \
		"holds b 0 $(octets /tmp/link) :eeee $UNTOUCHED ..."

	our_peer "one Write chunk for two results: the second stays inline" \
		"send $(start $XID $RDMA_MSG) 0 $(write_chunk @a) 0 0 $call" \
		"expect $XID 1 . $RDMA_MSG 0 $(write_chunk "@a+0,$LONG") 0 0 \
			$(compounded $XID 8 "$(file_read 1 $LONG)" "$LINK_READ") \
			$(octets /tmp/link) $SHORT_PAD" \
		"holds a 0 $(octets $LOCAL/long) :eeeeee $UNTOUCHED ..."

	our_peer "a Write chunk too small: ERR_CHUNK" \
		"send $(start $XID $RDMA_MSG) 0 \
			$(write_chunk @a) $(write_chunk "@b+0,$((SHORT - 1))") 0 0 $call" \
		"expect $(err_chunk $XID)" "holds b 0 $UNTOUCHED ..."
}

# READ_PLUS at the end of a file has no data and consumes no Write chunk. So the link is in
# the first Write chunk, RFC 8166 section 4.3.2.
unconsumed() {
	local call lines
	mapfile -t lines < <(session 2 $XID unconsumed 0)
	call=$(compound_in 2 $XID 9 "$(sequence 2)" \
		"$(find_file long) $OP_READ_PLUS $(repeat 4 0xffffffff) 0 $LONG 4096" \
		"$(find_file link) $OP_READLINK")

	our_peer "READ_PLUS without data: its Write chunk takes the READLINK's" "${lines[@]}" \
		"send $(start $XID $RDMA_MSG) 0 \
			$(write_chunk @a) $(write_chunk @b+0,2048 @b+2048,2048) 0 0 $call" \
		"expect $XID 1 . $RDMA_MSG 0 \
			$(write_chunk "@a+0,$SHORT") $(write_chunk @b+0,0 @b+2048,0) 0 0 \
			$(compounded $XID 9 "$(sequence_done 2)" "$FILE_FOUND $OP_READ_PLUS 0 1 0" \
			"$LINK_READ")" \
		"holds a 0 $(octets /tmp/link) :eeee $UNTOUCHED ..." "holds b 0 $UNTOUCHED ..."
}

# seen call|reply: what the server's tracepoints print about each Call or Reply
seen() {
	sed -n "s/.*rpcrdma_$1_form: .* xid=$XID \(.*\) len=.* \(reads=.*\) version=.*/\1 \2/p" /tmp/trace
}

replies_that_wrote() {
	cat /proc/sys/sunrpc/svc_rdma/rdma_stat_write
}

one_read() {
	our_peer "a Write chunk that is not used is returned empty" \
		"send $(start $XID $RDMA_MSG) 0 $(write_chunk @a) \
			$(write_chunk @b+0,4096 @b+4096,4096) 0 0 \
			$(compound $XID 4 "$(read_file long 8192)")" \
		"expect $XID 1 . $RDMA_MSG 0 $(write_chunk "@a+0,$LONG") \
			$(write_chunk @b+0,0 @b+4096,0) 0 0 \
			$(compounded $XID 4 "$(file_read 1 $LONG)")" \
		"holds a 0 $(octets $LOCAL/long) :eeeeee $UNTOUCHED ..." \
		"holds b 0 $UNTOUCHED ..."
}

# READ3res: NFS3_OK, attributes, count, eof, length of the data
read_in_segments() {
	our_peer "NFSv3 READ, a Write chunk of four segments" \
		"send $(lookup $XID long)" "expect $(found $XID)" \
		"send $(start $XID $RDMA_MSG) 0 \
			$(write_chunk @b+0,2001 @a+0,1000 @b+2001,5500 @a+1000,1000) 0 0 \
			$(nfs_call $XID 3 $READ) $FOUND 0 0 8192" \
		"expect $XID 1 . $RDMA_MSG 0 \
			$(write_chunk @b+0,2001 @a+0,1000 @b+2001,$((LONG - 3001)) @a+1000,0) 0 0 \
			$(accepted $XID) 0 1 $(repeat 21 .) $LONG 1 $LONG" \
		"holds b 0 $(octets <(cut_out 0 2001)) $(octets <(cut_out 3001 $LONG)) $UNTOUCHED ..." \
		"holds a 0 $(octets <(cut_out 2001 1000)) $UNTOUCHED ..."
}

# cut_out FROM LENGTH: a part of the long file
cut_out() {
	tail -c +$(($1 + 1)) $LOCAL/long | head -c "$2"
}

# write_file NAME LENGTH: find a file and WRITE: stateid of zeros, offset, FILE_SYNC4. The
# data follow.
write_file() {
	echo "$(find_file "$1") $OP_WRITE $(repeat 4 0) 0 0 2 $2"
}

# file_written LENGTH: the results: NFS4_OK, count, FILE_SYNC4, verifier
file_written() {
	echo "$FILE_FOUND $OP_WRITE 0 $1 2 . ."
}

# Each COMPOUND has an XID of its own. Otherwise the server takes it for a repetition.
two_writes() {
	write_two "a Read chunk for each" 0 0
	write_two "with padding in the Read chunks" 3 2
	long_write
	write_in_steps
}

# write_two WHAT PAD PAD: two WRITEs, with so many octets of padding in the Read chunks. The
# data of the second one begin at a page: nfsd does not find them elsewhere.
write_two() {
	local first second at_first at_second length LENGTH_A
	XID=$((XID + 1))
	first=$(compound $XID 8 "$(write_file long.copy 0)")
	second=$(write_file short.copy $SHORT)
	at_first=$(size "$first")
	at_second=$(getconf PAGESIZE)
	[ "$at_second" -ge 8192 ] || at_second=8192
	LENGTH_A=$((at_second + 4096))
	length=$((at_second - $(size "$second") - at_first - 3))
	first=$(compound $XID 8 "$(write_file long.copy $length)")
	head -c $length /dev/urandom >/tmp/first
	cat /tmp/first <(head -c 3 /dev/zero) >/tmp/padded
	: >$LOCAL/long.copy
	: >$LOCAL/short.copy

	our_peer "COMPOUND with two WRITEs, $1" \
		"$(fill_file a /tmp/padded)" \
		"fill b 0 $(octets $LOCAL/short) $SHORT_PAD" \
		"send $(start $XID $RDMA_MSG) \
			$(read_segment $at_first @a+0,1001) \
			$(read_segment $at_second "@b+0,$((SHORT + $3))") \
			$(read_segment $at_first "@a+1001,$((length - 1001 + $2))") 0 0 0 \
			$first $second" \
		"expect $XID 1 . $RDMA_MSG $NO_CHUNKS \
			$(compounded $XID 8 "$(file_written $length)" "$(file_written $SHORT)")"
	check "the server has the first" cmp /tmp/first $LOCAL/long.copy
	check "the server has the second" cmp $LOCAL/short $LOCAL/short.copy
}

# fill_file BUFFER FILE: lines of a script, none of which has more than the peer takes
fill_file() {
	local at length
	length=$(wc -c <"$2")
	for ((at = 0; at < length; at += 16384)); do
		echo "fill $1 $at $(octets <(tail -c +$((at + 1)) "$2" | head -c 16384))"
	done
}

# write_call NAME LENGTH: sets $XID, $call without its data, and $at, the data's position
write_call() {
	XID=$((XID + 1))
	call=$(compound $XID 4 "$(write_file "$1" "$2")")
	at=$(size "$call")
	: >"$LOCAL/$1"
}

long_write() {
	local call at
	write_call short.copy $SHORT

	our_peer "a Long Call, and a Read chunk at its end" \
		"fill a 0 $(octets $LOCAL/short)" "fill b 0 $call" \
		"send $(start $XID $RDMA_NOMSG) $(read_segment 0 "@b+0,$at") \
			$(read_segment $at "@a+0,$SHORT") 0 0 0" \
		"expect $XID 1 . $RDMA_MSG $NO_CHUNKS $(compounded $XID 4 "$(file_written $SHORT)")"
	check "the server has the data" cmp $LOCAL/short $LOCAL/short.copy
}

# More RDMA Reads than a chain of work requests has
write_in_steps() {
	local call at n segments=()
	write_call long.copy $LONG
	for ((n = 0; n < LONG; n += 41)); do
		segments+=("$(read_segment $at "@a+$n,$((LONG - n < 41 ? LONG - n : 41))")")
	done

	traced our_peer "WRITE of ${#segments[@]} segments" \
		"fill a 0 $(octets $LOCAL/long)" \
		"send $(start $XID $RDMA_MSG) ${segments[*]} 0 0 0 $call" \
		"expect $XID 1 . $RDMA_MSG $NO_CHUNKS \
			$(compounded $XID 4 "$(file_written $LONG)")"
	check "the server has the data" cmp $LOCAL/long $LOCAL/long.copy
	check "it read them in more than one step" [ "$(steps | wc -l)" -gt 1 ]
	check "the steps have all of the data and the padding" is $((LONG + 3)) $(($(steps | paste -sd +)))
}

# A requester may reduce whole data items that are DDP-eligible, and nothing else (RFC
# 8166 sections 3.4.4 and 6.1). The server also executes Calls that are cut elsewhere, see
# "What nfsd gets" in design.rst.
cut_anywhere() {
	write_cut "data that begin in the Read chunk and end inline" 0 1000
	write_cut "data that begin inline and end in the Read chunk" 1000 $LONG
	write_cut "data before, in and after the Read chunk" 1000 1004
	symlink_cut
	our_peer "a credential in a Read chunk" "fill a 0 $(repeat 5 0)" \
		"send $(start $XID $RDMA_MSG) $(read_segment 32 @a+0,20) 0 0 0 \
			$XID 0 2 100003 3 $NULL 1 20 0 0" \
		"expect $(null_reply $XID)"
}

# write_cut WHAT FROM TO: WRITE with these octets of the data in the Read chunk
write_cut() {
	local call at
	write_call long.copy $LONG

	our_peer "WRITE of $1" "fill a 0 $(octets $LOCAL/long) $LONG_PAD" \
		"send $(start $XID $RDMA_MSG) \
			$(read_segment $((at + $2)) "@a+$2,$(($3 - $2))") 0 0 0 \
			$call $(inline_octets 0 "$2") $(inline_octets "$3" $LONG)" \
		"expect $XID 1 . $RDMA_MSG $NO_CHUNKS $(compounded $XID 4 "$(file_written $LONG)")"
	check "the server has the data, and no others" cmp $LOCAL/long $LOCAL/long.copy
}

# inline_octets FROM TO: a part of the long file, with padding if it is the last one
inline_octets() {
	local pad=
	[ "$1" != "$2" ] || return 0
	[ "$2" != $LONG ] || pad=$LONG_PAD
	echo "$(octets <(cut_out "$1" $(($2 - $1)))) $pad"
}

# The text of a SYMLINK begins inline, has four octets in the chunk, and ends inline.
symlink_cut() {
	local call at
	XID=$((XID + 1))
	call="$(nfs_call $XID 3 $SYMLINK) $ROOT /cut $(repeat 6 0) $SHORT"
	# size() counts four octets for the handle, which has eight.
	at=$(($(size "$call") + 4 + 1000))

	our_peer "SYMLINK with a text in three parts" \
		"fill a 0 $(octets <(tail -c +1001 /tmp/link | head -c 4))" \
		"send $(start $XID $RDMA_MSG) $(read_segment $at @a+0,4) 0 0 0 \
			$call $(octets <(head -c 1000 /tmp/link)) \
			$(octets <(tail -c +1005 /tmp/link)) $SHORT_PAD" \
		"expect $XID 1 . $RDMA_MSG $NO_CHUNKS $(accepted $XID) 0 ..."
	check "the server has the link" is "$(cat /tmp/link)" "$(readlink $LOCAL/cut)"
}

# The octets of each step
steps() {
	sed -n "s/.*rpcrdma_pull: .* xid=$(printf '0x%08x' $XID) octets=\([0-9]*\) .*/\1/p" /tmp/trace
}
