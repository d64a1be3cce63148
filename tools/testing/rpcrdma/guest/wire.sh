# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios that look at the packets between two guests. tcpdump captures
# them in the client's guest, tshark dissects them on the host. It needs two guests,
# because RoCE packets within one guest do not pass its interface.

# In the guest

# capture NAME COMMAND...: capture the packets while a command runs.
capture() {
	local log=/lab/out/$1.tcpdump pid tenths=$((3 * PACE / 100))
	# -Z root: otherwise the file belongs to a user whom the host does not have.
	tcpdump -Z root -i "$(netdev)" -w "/lab/out/$1.pcap" -s 2048 -B 65536 --immediate-mode \
		udp port 4791 2>"$log" &
	pid=$!
	need "tcpdump captures" wait_for 20 grep -q listening "$log"
	"${@:2}"
	# When it is killed it does not read the packets that it has not read yet.
	sleep "$((tenths / 10)).$((tenths % 10))"
	kill $pid
	wait $pid
	check "tcpdump lost nothing" grep -q '^0 packets dropped by kernel' "$log"
}

# On the host. NAME is the name of a capture. tshark itself knows version 1 of
# RPC-over-RDMA as "rpcordma"; the script adds version 2 as "rpcordma2".

TSHARK=${BASH_SOURCE%/*}/../dissector/tshark

# dissected NAME OPTIONS: run tshark. False if tshark fails, for instance because of a
# wrong filter.
dissected() {
	"$TSHARK" -r "$OUT2/$1.pcap" "${@:2}" >"$OUT2/$1.txt" 2>"$OUT2/$1.tshark"
}

# packets NAME: write a line for each RPC-over-RDMA message and each RDMA operation. The
# opcodes of RDMA operations on a reliable connection: Writes are 6 to 11, Read requests
# are 12.
packets() {
	local version name columns=()
	for version in rpcordma rpcordma2; do
		for name in msg_type flow_control reads_count writes_count reply_count position \
			errcode; do
			columns+=(-e $version.$name)
		done
	done
	dissected "$1" -Y 'rpcordma || rpcordma2.xid || infiniband.bth.opcode in {6..12}' \
		-T fields -E occurrence=f -e infiniband.bth.opcode -e ip.dst "${columns[@]}" \
		-e rpcordma2.direction -e rpcordma2.inv_handle -e rpcordma2.message_length &&
		mv "$OUT2/$1.txt" "$OUT2/$1.packets" && grep -q . "$OUT2/$1.packets"
}

# of_packets NAME PROGRAM: run an awk program over these lines. A field that a packet does
# not have is empty; direction, names_handle and octets are only of version 2.
of_packets() {
	awk -F '\t' -v server=$SERVER4 '{
		op = $1
		version = $3 != "" ? 1 : $10 != "" ? 2 : ""
		at = version == 2 ? 10 : 3
		type = $at; credits = $(at + 1); reads = $(at + 2); writes = $(at + 3)
		reply = $(at + 4); position = $(at + 5); error = $(at + 6)
		direction = $17; names_handle = $18 ~ /[1-9a-f]/; octets = $19
		message = type != ""
		nomsg = type == 1
		call = message && $2 == server
		rdma_write = op >= 6 && op <= 11
		rdma_read = op == 12
		invalidate = op == 22 || op == 23
	} '"$2" "$OUT2/$1.packets"
}

# count_of NAME CONDITION: how many of these lines meet an awk condition.
count_of() {
	of_packets "$1" "$2"' { n++ } END { print n + 0 }'
}

# seen NAME CONDITION: whether there is such a line.
seen() {
	[ "$(count_of "$@")" -gt 0 ]
}

# check_capture NAME [OPTIONS]: check what must hold for all traffic. tshark gets the
# options when it looks for errors.
check_capture() {
	need "$1: RPC-over-RDMA messages were captured" packets "$1"
	check "$1: RDMA_MSG and RDMA_NOMSG only" not seen "$1" 'message && type > 1'
	check "$1: no credit value of zero" not seen "$1" 'message && !credits'
	check "$1: tshark recognises every Send as RPC-over-RDMA" all_recognised "$1"
	check "$1: tshark finds no error in the rpcordma layer" no_expert_info "$@"
}

# tshark does not mark a Send as RPC-over-RDMA if it cannot decode a header of version 1,
# or if its version is neither 1 nor 2. The opcodes are the last or only packet of a Send,
# without and with Invalidate.
all_recognised() {
	dissected "$1" -Y 'infiniband.bth.opcode in {2, 4, 22, 23} && !rpcordma && !rpcordma2' &&
		not grep . "$OUT2/$1.txt"
}

# tshark's expert information belongs to the layer above it in the output. Only that of
# RPC-over-RDMA counts: tshark marks NFS as malformed with the kernel's own module as well.
# tshark's own layer reads version 2 as version 1, so in version 2 only the script's counts.
no_expert_info() {
	dissected "$1" "${@:2}" -V -Y 'rpcordma && !rpcordma2 && _ws.expert' &&
		no_info_of "RPC over RDMA|Packet: RPCoRDMA" "$1" &&
		dissected "$1" "${@:2}" -V -Y 'rpcordma2 && _ws.expert' &&
		no_info_of "RPC over RDMA version 2" "$1"
}

no_info_of() {
	awk -v ours="$1" '/^[^ ]/ { layer = $0 }
			  /Expert Info|Malformed/ && layer ~ ours { print; bad = 1 }
			  END { exit bad }' "$OUT2/$2.txt"
}

# The captures have the names of the operations in forms.sh.
chunks_of_forms() {
	check "inline_both_ways: Calls without chunks" seen inline_both_ways call
	check "inline_both_ways: no chunk, no RDMA operation" \
		not seen inline_both_ways 'nomsg || reads || writes || reply || rdma_read || rdma_write'

	check "read_chunk: a Call with a Read chunk, not at Position Zero" \
		seen read_chunk 'call && !nomsg && reads && position > 0'
	check "read_chunk: RDMA Reads" seen read_chunk rdma_read
	check "read_chunk: no other chunk" \
		not seen read_chunk 'nomsg || writes || reply || rdma_write'

	check "write_chunk: a Call offers a Write chunk" seen write_chunk 'call && writes'
	check "write_chunk: the Reply returns the Write chunk" seen write_chunk '!call && !nomsg && writes'
	check "write_chunk: RDMA Writes" seen write_chunk rdma_write
	check "write_chunk: no other chunk" \
		not seen write_chunk 'nomsg || reads || reply || rdma_read'

	check "long_call: a Call with nothing inline and a Position Zero Read chunk" \
		seen long_call 'call && nomsg && reads && position == 0'
	check "long_call: RDMA Reads" seen long_call rdma_read
	check "long_call: the Reply is inline and returns the unused Reply chunk" \
		seen long_call '!call && !nomsg && reply'

	check "reply_chunk: a Call offers a Reply chunk" seen reply_chunk 'call && reply'
	check "reply_chunk: the Reply has nothing inline" seen reply_chunk '!call && nomsg && reply'
	check "reply_chunk: RDMA Writes" seen reply_chunk rdma_write
}
