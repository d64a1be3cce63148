# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   slow RDMA operations of more Calls than the server has threads block no other requester
# guests:  um-7
# also:    um
# devices: rxe siw
# turns:   nfsd's threads
# ends:    2
# modules: ours
# limit:   120
#
#   end 1: server                       end 2: client
#   +---------------------------+       +---------------------------+
#   | nfsd, rdma port 20049     |       | three peers, each with    |
#   | a peer that sends NULLs   |       | four Calls                |
#   | rxe0 or siw0              |       | rxe0 or siw0              |
#   | lab0: 10.17.0.1, a bridge |       | lab0: 10.17.0.2, a bridge |
#   |   |                       |       |   |                       |
#   | vec0 (um), eth0 (QEMU) ---|-------|-- vec0, eth0: netem       |
#   +---------------------------+       +---------------------------+
#
# The packets of the server's own peer pass no network. netem is at the bridge's port, because
# what an interface refuses while its qdisc is replaced ends rxe's queue pairs.

. "${BASH_SOURCE%/*}/../guest/faults.sh"
. "${BASH_SOURCE%/*}/../guest/peer.sh"
. "${BASH_SOURCE%/*}/../guest/requester.sh"

# Each RDMA Read waits for a packet of the client, and so does each Write over rxe. siw has
# written what TCP has buffered, so TCP gets a small buffer.
DELAY=1s
WMEM=/proc/sys/net/ipv4/tcp_wmem

server() {
	need "make a bridge" bridge_up
	server_begin
	need "prepare the peer" peer_up
	head -c 65536 /dev/urandom >$LOCAL/other
	cp $WMEM /tmp/wmem
	echo "4096 16384 65536" >$WMEM
	: >/tmp/bystander.on
	bystander >/tmp/bystander.log 2>&1 &
}

# NULLs one after another; each has to be answered within four seconds, less than the Calls are
# held.
bystander() {
	{
		printf '%s\n' "timeout 4" "connect $SERVER4 $PORT"
		while [ -e /tmp/bystander.on ]; do
			printf '%s\n' "send $(null_message $OTHER)" "expect $(null_reply $OTHER)"
			sleep 0.1
		done
	} | /tmp/peer
	echo "status $?"
}

client() {
	need "make a bridge" bridge_up
	client_begin
	need "prepare the peer" peer_up
	slow_reads
	slow_writes
}

# Each Call needs more RDMA Reads than a chain has.
slow_reads() {
	stalled "slow RDMA Reads" "$(null_reply $XID)" \
		"send $(null_message $OTHER)" "expect $(null_reply $OTHER)" \
		"$(call_with_reads)"
}

call_with_reads() {
	echo "$(start $XID $RDMA_MSG) $(repeat 256 "$(read_segment 40 @a+0,16)") 0 0 0 \
		$(null_call $XID)"
}

# Each Reply needs more RDMA Writes than a chain has. $FOUND is in the first answer.
slow_writes() {
	stalled "slow RDMA Writes" "$XID 1 . $RDMA_MSG 0 1 256 ..." \
		"send $(lookup $XID other)" "expect $(found $XID)" \
		"$(start $XID $RDMA_MSG) 0 $(write_chunk $(repeat 256 @a+0,256)) 0 0 \
			$(nfs_call $XID 3 $READ) $FOUND 0 0 65536"
}

# stalled WHAT ANSWER LINE LINE CALL: three peers send two Calls at once, which need RDMA Reads: as a
# short delay lets the server hold both, they are granted four. When there is a long one they execute
# the lines and send CALL four times: after two delays these reach the server, and they are held for
# at least five seconds more.
stalled() {
	local what=$1 n pids=() waiting=0 answered=0
	need "$what: the server's link address is known" neighbour_known
	rm -f /tmp/delayed
	need "$what: delay the client's packets a little" impair "$(cable)" delay 50ms
	for n in 1 2 3; do
		slow_peer "${@:2}" | /tmp/peer >/tmp/slow.$n 2>&1 &
		pids+=($!)
	done
	sleep 2
	need "$what: delay the client's packets" impair "$(cable)" delay $DELAY
	: >/tmp/delayed
	sleep 7
	for n in "${pids[@]}"; do
		kill -0 "$n" && waiting=$((waiting + 1))
	done
	check "$what: all three peers wait for answers" [ $waiting = 3 ]
	need "$what: end the delay" impair_no_more "$(cable)"
	for n in "${pids[@]}"; do
		wait "$n" && answered=$((answered + 1))
	done
	sed 's/^/# /' /tmp/slow.[123]
	check "$what: all Calls are answered" [ $answered = 3 ]
}

slow_peer() {
	local answer=$1 call=$4
	printf '%s\n' "timeout 60" "private $PRIVATE" "connect $SERVER4 $PORT" "buffer a 65536" \
		"send $(null_message $OTHER)" "expect $(null_reply $OTHER)" \
		"flood 2 $(call_with_reads)" "expect $(null_reply $XID)" "expect $(null_reply $XID)"
	while [ ! -e /tmp/delayed ]; do
		sleep 0.1
	done
	printf '%s\n' "$2" "$3" "flood 4 $call" "expect $answer" "expect $answer" \
		"expect $answer" "expect $answer"
}

server_done() {
	local log=/tmp/bystander.log
	rm /tmp/bystander.on
	check "another requester ends" wait_for 5 grep -q status $log
	check "each of its Calls was answered within four seconds" is "status 0" "$(cat $log)"
	cat /tmp/wmem >$WMEM
	server_end
}
