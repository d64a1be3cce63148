# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios that look at the packets between two guests. tcpdump captures
# them in the client's guest, tshark dissects them on the host. It needs two guests,
# because RoCE packets within one guest do not pass its interface.

# In the guest

# capture NAME COMMAND...: capture the packets while a command runs, from the first connection
# that it makes to the end of the last one.
capture() {
	local log=/lab/out/$1.tcpdump file=/tmp/$1.pcap pid early
	tcpdump -i "$(netdev)" -w "$file" -U -s 2048 -B 65536 --immediate-mode \
		udp port 4791 2>"$log" &
	pid=$!
	need "tcpdump captures" wait_for 20 grep -q listening "$log"
	need "tcpdump handles its signal" wait_for 20 handles_usr1 $pid
	need "tcpdump counts" counts $pid "$log"
	# It counts as received what came before it had set its filter.
	early=$(uncaptured "$log")
	"${@:2}"
	check "$1: the connection has ended" wait_for 10 ends_with_disconnect "$file"
	# It writes nothing more once it is killed, so wait until it has read all.
	wait_for 10 counts $pid "$log" "$early"
	kill $pid
	wait $pid
	check "$1: tcpdump captured all that it received" is "$early" "$(uncaptured "$log")"
	cp "$file" /lab/out && rm "$file"
}

# Whether the last message of the CM is a DisconnectReply. The opcode of datagrams is 0x64;
# a MAD has its attribute 16 octets from its beginning, behind a BTH and a DETH.
ends_with_disconnect() {
	local last
	last=$(last_of "$1" "udp[8] = 0x64")
	[ -n "$last" ] && is "$last" "$(last_of "$1" "udp[8] = 0x64 and udp[44:2] = 0x16")"
}

# last_of FILE FILTER: the last packet that passes a filter
last_of() {
	tcpdump -n -r "$1" "$2" | tail -n 1
}

# handles_usr1 PID: whether a process handles SIGUSR1. tcpdump says that it listens a moment before
# it does, and until then the signal ends it.
handles_usr1() {
	local caught
	caught=$(awk '$1 == "SigCgt:" { print $2 }' /proc/$1/status)
	((0x$caught & 1 << $(kill -l USR1) - 1))
}

# counts PID LOG [UNCAPTURED]: have tcpdump say what it has counted so far, and wait until it has.
# "received" includes what it has not read.
counts() {
	local before
	before=$(times_counted "$2")
	kill -USR1 "$1" && wait_for 20 counted_since "$before" "$2" &&
		is "${3:-$(uncaptured "$2")}" "$(uncaptured "$2")"
}

times_counted() {
	grep -c "captured, .* dropped" "$1"
}

counted_since() {
	[ "$(times_counted "$2")" -gt "$1" ]
}

# uncaptured LOG: how many packets tcpdump received or dropped, and did not capture, by its last
# counts
uncaptured() {
	xargs <"$1" | grep -Eo '[0-9]+ packets? captured,? [0-9]+ packets? received by filter,? [0-9]+' |
		awk '{ n = $4 - $1 + $NF } END { print n }'
}

# Delegations that are recalled, so that a capture has Calls of the server. Both guests need
# guest/faults.sh, the server's for take_orders.

DELEGATED=4

# In the server's guest
make_files() {
	local n
	for ((n = 0; n < DELEGATED; n++)); do
		echo some >"$LOCAL/delegated.$n"
	done
}

write_files() {
	append_to_all $LOCAL/delegated.*
}

# In the client's guest, with NFSv4.1 or later at /mnt, and lookupcache=none for the order
recalls() {
	local returned
	check "the server delegates $DELEGATED files" wait_for 20 delegated
	returned=$(operations DELEGRETURN)
	check "it recalls them when a process of its own writes" order write_files
	check "the client returned them" returned_since $returned
	check "the client reads what was written" is $DELEGATED "$(grep -l more /mnt/delegated.* | wc -l)"
}

returned_since() {
	[ "$(operations DELEGRETURN)" -ge $(($1 + DELEGATED)) ]
}

# A file that is delegated is opened without asking the server.
delegated() {
	local opened
	cat /mnt/delegated.* && opened=$(opens) && cat /mnt/delegated.* && is "$opened" "$(opens)"
}

opens() {
	echo $(($(operations OPEN) + $(operations OPEN_NOATTR)))
}

# On the host. NAME is the name of a capture. tshark itself knows version 1 of
# RPC-over-RDMA as "rpcordma"; the script adds version 2 as "rpcordma2".

TSHARK=${BASH_SOURCE%/*}/../dissector/tshark

# dissected NAME OPTIONS: run tshark. False if tshark fails, for instance because of a
# wrong filter.
dissected() {
	"$TSHARK" -r "$OUT2/$1.pcap" "${@:2}" >"$OUT2/$1.txt" 2>"$OUT2/$1.tshark"
}

# packets NAME: write a line for each packet. False if none has an RPC-over-RDMA message.
packets() {
	local version name columns=()
	for version in rpcordma rpcordma2; do
		for name in msg_type flow_control reads_count writes_count reply_count position \
			errcode xid; do
			columns+=(-e $version.$name)
		done
	done
	dissected "$1" -T fields -E occurrence=f -e infiniband.bth.opcode -e ip.dst "${columns[@]}" \
		-e rpcordma2.direction -e rpcordma2.inv_handle -e rpcordma2.message_length \
		-e rpc.msgtyp -e infiniband.bth.destqp -e infiniband.mad.attributeid \
		-e infiniband.mad.transactionid -e infiniband.cm.req.localqpn \
		-e infiniband.cm.rep.localqpn -e infiniband.cm.req.remoteqpneecn &&
		mv "$OUT2/$1.txt" "$OUT2/$1.packets" && seen "$1" message
}

# of_packets NAME PROGRAM: run an awk program over these lines. A field that a packet does
# not have is empty; names_handle and octets are only of version 2. Calls of the client are
# "call"; messages of Calls from the server and of their Replies are "backward". In version 1
# tshark does not see the direction of a message with a Read list.
of_packets() {
	awk -F '\t' -v server=$SERVER4 '{
		op = $1
		to_server = $2 == server
		version = $3 != "" ? 1 : $11 != "" ? 2 : ""
		at = version == 2 ? 11 : 3
		type = $at; credits = $(at + 1); reads = $(at + 2); writes = $(at + 3)
		reply = $(at + 4); position = $(at + 5); error = $(at + 6); xid = $(at + 7)
		direction = version == 2 ? $19 : $22
		names_handle = $20 ~ /[1-9a-f]/; octets = $21
		message = type != ""
		nomsg = type == 1
		backward = message && direction != "" && direction == to_server
		call = message && to_server && !backward
		rdma_write = op >= 6 && op <= 11
		rdma_read = op == 12
		invalidate = op == 22 || op == 23
		send = op == 2 || op == 4 || invalidate
		queue_pair = $23; cm = $24; transaction = $25
		requested = $26; accepted = $27; ended = $28
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
	check "$1: whole connections, and a Reply to each Call" is_whole "$1"
	check "$1: RDMA_MSG and RDMA_NOMSG only" none "$1" 'message && type > 1'
	check "$1: no credit value of zero" none "$1" 'message && !credits'
	check "$1: no chunk in the backward direction, no Read list for the client" none "$1" \
		'backward && (nomsg || reads || writes || reply) || message && !to_server && reads'
	# tshark does not mark a Send as RPC-over-RDMA if it cannot decode a header of version 1,
	# or if its version is neither 1 nor 2.
	check "$1: tshark recognises every Send as RPC-over-RDMA" none "$1" 'send && !message'
	check "$1: tshark finds no error in the rpcordma layer" no_expert_info "$@"
}

none() {
	is 0 "$(count_of "$@")"
}

# is_whole NAME: whether each packet is of a connection that begins and ends in the capture, each
# Call has a Reply, and each Reply a Call. The CM's messages are ConnectRequest (0x10),
# ConnectReply (0x13), DisconnectRequest (0x15) and DisconnectReply (0x16).
is_whole() {
	of_packets "$1" '
		function wrong(what) { if (bad++ < 10) print what }
		cm == "0x0010" { client[transaction] = requested }
		cm == "0x0013" && transaction in client {
			connections[++n] = client[transaction]
			of["0 " client[transaction]] = of["1 " accepted] = n
			delete client[transaction]
		}
		cm == "0x0015" { ends[to_server " " transaction] = of[to_server " " ended] }
		cm == "0x0016" { has_ended[ends[1 - to_server " " transaction]] = 1 }
		cm != "" { next }
		{ connection = of[to_server " " queue_pair] }
		!connection { wrong("packet " NR ": the connection began before the capture") }
		!message { next }
		{ key = connection " " backward " " xid }
		to_server != backward { answered[key] += 0; next }
		key in answered { answered[key]++; next }
		{ wrong("packet " NR ": a Reply without a Call") }
		END {
			for (i in connections)
				if (!has_ended[i])
					wrong("queue pair " connections[i] ": no disconnect")
			for (key in answered)
				if (!answered[key]) {
					split(key, part, " ")
					wrong("XID " part[3] ": no Reply")
				}
			exit bad || !n
		}'
}

# check_recalls NAME: the capture has the Calls of recalls().
check_recalls() {
	local calls
	calls=$(count_of "$1" 'backward && !to_server')
	check "$1: a Call of the server for each file: $calls" [ "$calls" -ge $DELEGATED ]
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
