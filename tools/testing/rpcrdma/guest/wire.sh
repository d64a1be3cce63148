# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# What passes between two guests: written down in the client's, and dissected on
# the host. RoCE traffic within one guest does not pass its interface.

# In the guest

# capture NAME COMMAND...
capture() {
	local log=/lab/out/$1.tcpdump pid tenths=$((3 * PACE / 100))
	# As root, or the file would belong to a user of the guest.
	tcpdump -Z root -i "$(netdev)" -w "/lab/out/$1.pcap" -s 2048 -B 65536 --immediate-mode \
		udp port 4791 2>"$log" &
	pid=$!
	need "tcpdump captures" wait_for 20 grep -q listening "$log"
	"${@:2}"
	# It stops at once, whatever it still has to read.
	sleep "$((tenths / 10)).$((tenths % 10))"
	kill $pid
	wait $pid
	check "tcpdump lost nothing" grep -q '^0 packets dropped by kernel' "$log"
}

# On the host. NAME is that of a capture.

# dissected NAME OPTIONS: false if tshark itself fails, for instance on a filter.
dissected() {
	tshark -r "$OUT2/$1.pcap" "${@:2}" >"$OUT2/$1.txt" 2>"$OUT2/$1.tshark"
}

# packets NAME: a line for each that says how a message travels. RDMA operations
# are those of a reliable connection: Writes are 6 to 11, Read requests 12.
packets() {
	dissected "$1" -Y 'rpcordma || infiniband.bth.opcode in {6..12}' \
		-T fields -E occurrence=f -e infiniband.bth.opcode -e ip.dst \
		-e rpcordma.msg_type -e rpcordma.flow_control -e rpcordma.reads_count \
		-e rpcordma.writes_count -e rpcordma.reply_count -e rpcordma.position &&
		mv "$OUT2/$1.txt" "$OUT2/$1.packets" && grep -q . "$OUT2/$1.packets"
}

# among NAME CONDITION: how many of them are so. What a packet has not is empty.
among() {
	awk -F '\t' -v server=$SERVER4 '{
		op = $1; type = $3; credits = $4; reads = $5; writes = $6; reply = $7; position = $8
		message = type != ""
		nomsg = type == 1
		call = message && $2 == server
		rdma_write = op >= 6 && op <= 11
		rdma_read = op == 12
		invalidate = op == 22 || op == 23
	} '"$2"' { n++ } END { print n + 0 }' "$OUT2/$1.packets"
}

# seen NAME CONDITION
seen() {
	[ "$(among "$@")" -gt 0 ]
}

# flawless NAME [OPTIONS]: what holds for any traffic. OPTIONS are tshark's when it
# is to find mistakes.
flawless() {
	need "$1: RPC-over-RDMA messages were captured" packets "$1"
	check "$1: nothing but RDMA_MSG and RDMA_NOMSG" not seen "$1" 'message && type > 1'
	check "$1: no credit value of zero" not seen "$1" 'message && !credits'
	check "$1: tshark takes every Send for RPC-over-RDMA" none_unknown "$1"
	check "$1: tshark finds nothing wrong in the rpcordma layer" nothing_wrong "$@"
}

# A Send whose header tshark cannot make sense of is not called RPC-over-RDMA
# at all. The opcodes: a Send's last or only packet, also with Invalidate.
none_unknown() {
	dissected "$1" -Y 'infiniband.bth.opcode in {2, 4, 22, 23} && !rpcordma' &&
		not grep . "$OUT2/$1.txt"
}

# An expert remark belongs to the layer that the dissector was in. Of the layers
# above RPC-over-RDMA, nested NFS is marked malformed for the kernel's module too.
nothing_wrong() {
	dissected "$1" "${@:2}" -V -Y 'rpcordma && _ws.expert' &&
		awk '/^[^ ]/ { layer = $0 }
		     /Expert Info|Malformed/ && layer ~ /RPC over RDMA|Packet: RPCoRDMA/ { print; bad = 1 }
		     END { exit bad }' "$OUT2/$1.txt"
}
