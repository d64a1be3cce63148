# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   in version 2 at least 4096 octets go inline, whatever private data say, and more if they say so
# guests:  um
# also:    um-7-debug/rxe
# devices: rxe siw
# modules: ours
# limit:   90
# faults:  a Call is too long for the Receives, and a connection is dropped

. "${BASH_SOURCE%/*}/../guest/peer.sh"
. "${BASH_SOURCE%/*}/../guest/requester.sh"
. "${BASH_SOURCE%/*}/../guest/thresholds.sh"

# Octets before the data in the Reply to an NFSv3 READ: transport header, RPC header,
# NFS3_OK, attributes, count, eof, length
READ_OVERHEAD=$((36 + 24 + 4 + 88 + 4 + 4 + 4))

client() {
	client_begin
	need "prepare the peer" peer_up
	need "both ends may use version 2" versions_up_to 2 2
	use_version 2
	use_it_begin
	pair none none
	pair 1024 65536
	pair 65536 1024
	pair 16384 16384
	pair 65536 65536
	need "no private data" ends none none
	client_sends_4096
	server_receives_4096
	server_sends_4096
	first_reply_is_short
	first_call_is_short
	check_no_rnr
}

# pair CLIENT SERVER: mount with these inline sizes.
pair() {
	local who="client $1, server $2" octets client_inv server_inv
	ends "$1" "$2"
	[ "$octets" -ge 4096 ] || octets=4096
	check "$who: verified I/O" traced use_it
	check "$who: both ends use $octets octets in version 2" is "2 version=2 inline=$octets/$octets" \
		"$(sed -n 's/.*rpcrdma_conn_agreed: .*\(version=[12].*\) remote.*/\1/p' /tmp/trace | sort | uniq -c | xargs)"
	check "$who: the longest Send is near to that and not longer" sends_up_to $octets
	check "$who: the first Call has 1024 octets or less" first_calls_are_short
	check "$who: one connection and no error" no_error_seen
	check "$who: umount" unmount /mnt
}

# The first Calls of all connections in the trace
first_calls_are_short() {
	awk '/rpcrdma_call_form: .* sent / {
		match($0, /conn=[0-9]+ /); conn = substr($0, RSTART, RLENGTH)
		match($0, / len=[0-9]+/)
		if (!(conn in seen) && substr($0, RSTART + 5, RLENGTH - 5) + 0 > 1024) { print; bad = 1 }
		seen[conn] = 1; n++
	} END { exit bad || !n }' /tmp/trace
}

# A WRITE whose Call has exactly 4096 octets goes inline, and one with an octet more needs a
# Read chunk.
client_sends_4096() {
	local fits
	need "mount" nfs_mount 3 rdma /mnt
	check "WRITE of 1024 octets" traced write_and_read 1024
	fits=$((4096 - $(longest call) + 1024))
	check "WRITE of $fits octets" traced write_and_read $fits
	check "WRITE of $fits octets: a Call of 4096 octets" is 4096 "$(longest call)"
	check "WRITE of $fits octets: no Read chunk" not grep "call_form: .* form=[^ ]*read" /tmp/trace
	fits=$((fits + 1))
	check "WRITE of $fits octets" traced write_and_read $fits
	check "WRITE of $fits octets: a Read chunk" grep "call_form: .* sent .* form=[^ ]*read" /tmp/trace
	check "umount" unmount /mnt
}

# The peer sends no private data, so that in version 1 the server would have to receive no
# more than 1024 octets.
plain_peer() {
	local what=$1
	shift
	check "$what" peer "connect $SERVER4 $PORT" "buffer a 16384" "$@"
}

# A NULL with arguments, which nfsd does not look at
server_receives_4096() {
	local words=$(((4096 - 36 - 40) / 4))
	plain_peer "a Call of 4096 octets is executed" \
		"send $(null_message $XID) $(repeat $words 0)" "expect $(null_reply $XID)" \
		"send $(null_message $OTHER)" "expect $(null_reply $OTHER)"
	plain_peer "a Call of 4100 octets is too long for the Receives" \
		"send $(null_message $XID) $(repeat $((words + 1)) 0)" closed
}

server_sends_4096() {
	local fits=$((4096 - READ_OVERHEAD)) found
	found=("send $(lookup $XID data)" "expect $(found $XID)")
	cp /tmp/data $LOCAL/data
	traced plain_peer "a Reply of 4096 octets is inline" "${found[@]}" \
		"send $(read_inline $fits)" \
		"expect $(rdma2_msg $XID . $MSG_REPLY 0 "$NO_CHUNKS" "$(accepted $XID)") 0 ..."
	check "it has 4096 octets" is 4096 "$(longest reply)"
	plain_peer "a Reply of 4100 octets is in the Reply chunk" "${found[@]}" \
		"send $(read_with_reply_chunk $((fits + 1)))" \
		"expect $(rdma2_nomsg $XID . $MSG_REPLY 0 "0 0 1 1 @a.handle $((4100 - 36)) @a.address")" \
		"holds a 0 $(accepted $XID) 0 ..."
	plain_peer "without a Reply chunk it cannot be sent" "${found[@]}" \
		"send $(read_inline $((fits + 1)))" \
		"expect $(rdma2_error_cant_reply $XID . 1 0 0)"
}

# The first Reply in version 2 has no more octets than one of version 1 (draft 6.1). An error
# is no such Reply. The file is looked up in version 1 before, and in version 2 after it.
first_reply_is_short() {
	local fits=$((1024 - READ_OVERHEAD)) before after found later
	later="$(accepted $XID) 0 ..."
	use_version 1
	before=("send $(lookup $XID data)" "expect $(found $XID)")
	found=$FOUND
	use_version 2
	after=("send $(lookup $XID data)" "expect $(found $XID)" "send $(read_inline 2000)"
		"expect $(plain_reply $XID .) $later")
	FOUND=$found
	plain_peer "a first Reply of 1024 octets is inline, and a later one may be longer" \
		"${before[@]}" "send $(read_inline $fits)" "expect $(plain_reply $XID .) $later" \
		"${after[@]}"
	plain_peer "a first Reply of 1028 octets is in the Reply chunk, and a later one is inline" \
		"${before[@]}" "send $(read_with_reply_chunk $((fits + 1)))" \
		"expect $(rdma2_nomsg $XID . $MSG_REPLY 0 "0 0 1 1 @a.handle $((1028 - 36)) @a.address")" \
		"holds a 0 $later" "${after[@]}"
	plain_peer "without a Reply chunk it cannot be sent, nor can the next one" \
		"${before[@]}" "send $(read_inline $((fits + 1)))" \
		"expect $(rdma2_error_cant_reply $XID . 1 0 0)" \
		"${before[@]}" "send $(read_inline $((fits + 1)))" \
		"expect $(rdma2_error_cant_reply $XID . 1 0 0)" "${after[@]}"
	use_version 2
}

# read_inline COUNT: READ of the file $FOUND, without chunks
read_inline() {
	echo "$(plain_call $XID) $(nfs_call $XID 3 $READ) $FOUND 0 0 $1"
}

# read_with_reply_chunk COUNT: READ of the file $FOUND
read_with_reply_chunk() {
	rdma2_msg $XID 32 $MSG_CALL 0 0 0 "$(reply_chunk @a)" "$(nfs_call $XID 3 $READ) $FOUND 0 0 $1"
}

# The first message on a connection is a NULL, so the first WRITE is as long as any other.
first_call_is_short() {
	local fd
	need "inline sizes of 65536 octets" ends 65536 65536
	need "mount" nfs_mount 3 rdma /mnt
	: >/mnt/first
	exec {fd}<>/mnt/first
	need "the connection is dropped" wait_for 20 drop_connection "$(the_transport)"
	check "write 12 KiB twice" traced write_twice $fd
	exec {fd}>&-
	check "the data are correct" cmp <(head -c 24576 /tmp/data) $LOCAL/first
	check "the first Call has 1024 octets or less" first_calls_are_short
	check "later ones have more than 12 KiB" [ "$(longest call)" -gt 12288 ]
	check "none has a Read chunk" not grep "call_form: .* form=[^ ]*read" /tmp/trace
	check "one more connection" is 2 "$(connections_made)"
	check "umount" unmount /mnt
}

# write_twice FD: without opening the file, which would be another RPC
write_twice() {
	perl -MIO::Handle -e '
		open my $to, ">&=", shift or die "open: $!";
		local $/ = \12288;
		for (1, 2) {
			syswrite $to, scalar <STDIN> or die "write: $!";
			$to->sync or die "fsync: $!";
		}' "$1" </tmp/data
}
