# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   someone else's eyes: tshark dissects the traffic between two guests
# guests:  um
# devices: rxe
# ends:    2
# host:    dissect

# RoCE traffic of one device does not pass its interface, so this takes two
# guests; the server's writes down what it sees.
server() {
	begin
	need "NFS server" server_up
	need "listen for rdma on port $PORT" listen
	tcpdump -i "$(netdev)" -w /lab/out/wire.pcap -s 0 -B 65536 udp port 4791 2>/lab/out/tcpdump.log &
	check "tcpdump captures" wait_for 5 grep -q listening /lab/out/tcpdump.log
}

client() {
	client_begin
	need "make 1 MiB of random data" dd if=/dev/urandom of=/tmp/data bs=1M count=1
	for vers in 3 4.2; do
		check "mount v$vers" nfs_mount $vers rdma /mnt
		check "v$vers: small and large writes" copy_in_sizes
		drop_caches
		check "v$vers: read them back" same_sum /tmp/data /mnt/large
		check "v$vers: a long directory" long_directory /mnt/long
		check "v$vers: a symbolic link" link_to /mnt/link target
		check "umount" umount /mnt
	done
}

copy_in_sizes() {
	cp /tmp/data /mnt/large && head -c 100 /tmp/data >/mnt/small
}

server_done() {
	pkill -x tcpdump
	check "tcpdump lost nothing" wait_for 5 grep -q '^0 packets dropped by kernel' /lab/out/tcpdump.log
	check "stop the NFS server" server_down
	module_down
	check "remove the $DEVICE device" rdma_down
}

# On the host

fields() {
	tshark -r "$OUT1/wire.pcap" -Y rpcordma -T fields -E separator=' ' "$@" 2>/dev/null
}

# dissected OPTIONS: false if tshark itself fails, for instance on a filter.
dissected() {
	tshark -r "$OUT1/wire.pcap" "$@" >"$OUT1/dissected.txt" 2>"$OUT1/tshark.log"
}

dissect() {
	fields -e rpcordma.msg_type -e rpcordma.flow_control \
		-e rpcordma.reads_count -e rpcordma.writes_count -e rpcordma.reply_count \
		>"$OUT1/rpcordma.txt"
	need "RPC-over-RDMA messages were captured" test -s "$OUT1/rpcordma.txt"
	say "messages by type: $(cut -d' ' -f1 "$OUT1/rpcordma.txt" | sort | uniq -c |
		awk '{ split("MSG NOMSG MSGP DONE ERROR", n); printf "%s RDMA_%s  ", $1, n[$2 + 1] }')"
	say "with a Read list $(count 3), a Write list $(count 4), a Reply chunk $(count 5)"
	say "credits seen: $(cut -d' ' -f2 "$OUT1/rpcordma.txt" | sort -nu | xargs)"
	check "nothing but RDMA_MSG and RDMA_NOMSG" not grep -qv '^[01] ' "$OUT1/rpcordma.txt"
	check "no credit value of zero" not grep -q '^[^ ]* 0 ' "$OUT1/rpcordma.txt"
	check "Read lists, Write lists and Reply chunks were all seen" all_seen
	check "tshark takes every Send for RPC-over-RDMA" none_unknown
	check "tshark finds nothing wrong in the rpcordma layer" nothing_wrong
}

count() {
	awk -v f="$1" '$f > 0' "$OUT1/rpcordma.txt" | wc -l
}

all_seen() {
	[ "$(count 3)" -gt 0 ] && [ "$(count 4)" -gt 0 ] && [ "$(count 5)" -gt 0 ]
}

# A Send whose header tshark cannot make sense of is not called RPC-over-RDMA
# at all. The opcodes: a Send's last or only packet, also with Invalidate.
none_unknown() {
	dissected -Y 'infiniband.bth.opcode in {2, 4, 22, 23} && !rpcordma' &&
		not grep . "$OUT1/dissected.txt"
}

# An expert remark belongs to the layer that the dissector was in. Of the layers
# above RPC-over-RDMA, nested NFS is marked malformed for the kernel's module too.
nothing_wrong() {
	dissected -V -Y 'rpcordma && _ws.expert' &&
		awk '/^[^ ]/ { layer = $0 }
		     /Expert Info|Malformed/ && layer ~ /RPC over RDMA|Packet: RPCoRDMA/ { print; bad = 1 }
		     END { exit bad }' "$OUT1/dissected.txt"
}
