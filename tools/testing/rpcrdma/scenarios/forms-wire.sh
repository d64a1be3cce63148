# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   each form of a transfer, as tshark sees it on the wire
# guests:  um
# also:    debian-6.1 debian-6.12
# devices: rxe
# ends:    2
# modules: ours
# host:    dissect

. "${BASH_SOURCE%/*}/../guest/forms.sh"
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
}

# A capture has to begin with the connection, or tshark makes little of it.
mounted() {
	check "mount" nfs_mount 3 rdma /mnt
	check "$1: the data is right" "$1"
	check "umount" umount /mnt
}

# On the host

dissect() {
	local name
	for name in $FORMS no_remote_invalidation no_private_data; do
		flawless $name
	done
	chunks
	invalidation
	private_data
}

chunks() {
	check "inline_both_ways: Calls without chunks" seen inline_both_ways call
	check "inline_both_ways: no chunk, no RDMA operation" \
		not seen inline_both_ways 'nomsg || reads || writes || reply || rdma_read || rdma_write'

	check "read_chunk: a Call with it, not at Position Zero" \
		seen read_chunk 'call && !nomsg && reads && position > 0'
	check "read_chunk: RDMA Reads" seen read_chunk rdma_read
	check "read_chunk: no other chunk" \
		not seen read_chunk 'nomsg || writes || reply || rdma_write'

	check "write_chunk: a Call offers it" seen write_chunk 'call && writes'
	check "write_chunk: the Reply returns it" seen write_chunk '!call && !nomsg && writes'
	check "write_chunk: RDMA Writes" seen write_chunk rdma_write
	check "write_chunk: no other chunk" \
		not seen write_chunk 'nomsg || reads || reply || rdma_read'

	check "long_call: a Call without anything inline, at Position Zero" \
		seen long_call 'call && nomsg && reads && position == 0'
	check "long_call: RDMA Reads" seen long_call rdma_read
	check "long_call: a Reply chunk that is not needed" \
		seen long_call '!call && !nomsg && reply'

	check "reply_chunk: a Call offers it" seen reply_chunk 'call && reply'
	check "reply_chunk: the Reply has nothing inline" seen reply_chunk '!call && nomsg && reply'
	check "reply_chunk: RDMA Writes" seen reply_chunk rdma_write
}

invalidation() {
	local name
	for name in read_chunk write_chunk long_call reply_chunk; do
		check "$name: Send with Invalidate" seen $name 'invalidate && !call'
		check "$name: from the server alone" not seen $name 'invalidate && call'
	done
	for name in inline_both_ways no_remote_invalidation no_private_data; do
		check "$name: no Send with Invalidate" not seen $name invalidate
	done
}

# The client's is in a ConnectRequest (0x10), the server's in a ConnectReply.
private_data() {
	check "both ends send private data" is "0x0010 0x0013" "$(private_data_in write_chunk)"
	check "no_private_data: the client sends none" is "0x0013" "$(private_data_in no_private_data)"
}

private_data_in() {
	dissected "$1" -Y 'infiniband.mad && frame contains f6:ab:0e:18' \
		-T fields -e infiniband.mad.attributeid && sort -u "$OUT2/$1.txt" | xargs
}
