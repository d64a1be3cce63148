# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   each form has the chunks and RDMA operations that it should, by tshark
# guests:  um-7
# also:    um debian-6.1
# devices: rxe
# ends:    2
# modules: ours
# host:    dissect
#
#   end 1: server                       end 2: client
#   +---------------------------+       +-----------------------------+
#   | nfsd, rdma port 20049     |       | mount at /mnt, NFSv3        |
#   |                           |       | or the scripted peer        |
#   | rxe0                      |       | rxe0                        |
#   | 10.17.0.1, fd17::1        |       | 10.17.0.2, fd17::2          |
#   | vec0 (um), eth0 (QEMU) ---|-------|--- vec0, eth0: tcpdump      |
#   +---------------------------+       +-----------------------------+
#                                         tshark on the host

. "${BASH_SOURCE%/*}/../guest/forms.sh"
. "${BASH_SOURCE%/*}/../guest/peer.sh"
. "${BASH_SOURCE%/*}/../guest/wire.sh"

client() {
	local form switch
	client_begin
	forms_begin
	for form in $FORMS; do
		capture $form mounted $form
	done
	for switch in remote_invalidation private_data; do
		tune rdma_$switch 0
		capture no_$switch mounted write_chunk
		tune rdma_$switch 1
	done
	need "prepare the peer" peer_up
	need "make a long symbolic link" long_link
	capture several_write_chunks several_write_chunks
}

# Each capture has its own mount, because tshark needs the packets that set up the
# connection.
mounted() {
	check "mount" nfs_mount 3 rdma /mnt
	check "$1: the data are correct" "by_$1"
	check "umount" unmount /mnt
}

# The kernel's clients offer one Write chunk at most, so this uses the scripted peer.
several_write_chunks() {
	local xid=0x18181818
	check "a Write chunk for READ, and one for READLINK: the data are correct" \
		peer "private $PRIVATE" "connect $SERVER4 $PORT" "buffer a 8192" "buffer b 4096" \
		"send $(start $xid $RDMA_MSG) 0 $(write_chunk @a) $(write_chunk @b) 0 0 \
			$(compound $xid 8 "$(read_file data 8192)" "$(find_file link) $OP_READLINK")" \
		"expect $xid 1 . $RDMA_MSG 0 $(write_chunk @a) $(write_chunk @b+0,3000) 0 0 \
			$(compounded $xid 8 "$(file_read 0 8192)" "$FILE_FOUND $OP_READLINK 0 3000")" \
		"holds a 0 $(octets <(head -c 8192 /tmp/data))" \
		"holds b 0 $(octets /tmp/link) ..."
}

long_link() {
	printf '%0*d' 3000 17 >/tmp/link && nfs_mount 3 rdma /mnt &&
		ln -s "$(cat /tmp/link)" /mnt/link && unmount /mnt
}

# On the host

dissect() {
	local name
	for name in $FORMS no_remote_invalidation no_private_data; do
		check_capture $name
	done
	# Without NFS: tshark's NFS layer expects the link's text inline in the Reply.
	check_capture several_write_chunks --disable-protocol nfs
	chunks_of_forms
	several
	invalidation
	private_data
}

several() {
	check "several_write_chunks: a Call offers two" seen several_write_chunks 'call && writes == 2'
	check "several_write_chunks: the Reply returns them" \
		seen several_write_chunks '!call && !nomsg && writes == 2'
	check "several_write_chunks: RDMA Writes to the memory of both" is 2 "$(written_to)"
	check "several_write_chunks: no other chunk" \
		not seen several_write_chunks 'nomsg || reads || reply || rdma_read'
}

# How many handles RDMA Writes went to
written_to() {
	dissected several_write_chunks -Y 'infiniband.bth.opcode in {6..11}' \
		-T fields -e infiniband.reth.r_key &&
		grep . "$OUT2/several_write_chunks.txt" | sort -u | wc -l
}

invalidation() {
	local name
	for name in read_chunk write_chunk long_call reply_chunk; do
		check "$name: Send with Invalidate" seen $name 'invalidate && !call'
		check "$name: only the server sends it" not seen $name 'invalidate && call'
	done
	for name in inline_both_ways no_remote_invalidation no_private_data; do
		check "$name: no Send with Invalidate" not seen $name invalidate
	done
}

# The client's private data are in a ConnectRequest (0x10), the server's in a ConnectReply
# (0x13).
private_data() {
	check "both ends send private data" is "0x0010 0x0013" "$(private_data_in write_chunk)"
	check "no_private_data: the client sends none" is "0x0013" "$(private_data_in no_private_data)"
}

private_data_in() {
	dissected "$1" -Y 'infiniband.mad && frame contains f6:ab:0e:18' \
		-T fields -e infiniband.mad.attributeid && sort -u "$OUT2/$1.txt" | xargs
}
