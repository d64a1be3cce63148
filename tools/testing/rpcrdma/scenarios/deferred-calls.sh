# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   Calls that nfsd defers keep few of its threads' pages, and are answered in the end
# guests:  um
# also:    um-debug/siw
# devices: rxe siw
# turns:   sunrpc's deferral
# modules: ours
# limit:   60

. "${BASH_SOURCE%/*}/payload.sh"
. /lab/guest/peer.sh
. /lab/guest/tools.sh

# Each requester sends as many Calls as the first Reply grants.
REQUESTERS=24 CALLS=2
# A thread waits for mountd before it defers a Call, so all Calls are deferred at the same time.
NFSD_THREADS=$((REQUESTERS * CALLS))
# The handle of an export that nfsd does not know: it has fsid=99, see ROOT.
UNKNOWN="8 :0100010063000000"
NFS3ERR_STALE=70

# For server() of payload.sh
server_limit() {
	echo $MIB
}

server_done() {
	pkill -CONT -x rpc.mountd
	check "nfsd takes what it did before" restart_nfsd "$(cat /tmp/block_size)"
	server_end
}

client() {
	local free n
	client_begin
	need "the program" tool_up
	need "prepare the peer" peer_up
	pkill -STOP -x rpc.mountd
	for ((n = 0; n < REQUESTERS; n++)); do
		requester $n &
	done
	check "all requesters are connected" wait_for 10 show_is $REQUESTERS server length
	echo 1 >/sys/kernel/tracing/events/sunrpc/svc_defer/enable
	free=$(mem_free)
	touch /tmp/go
	check "nfsd defers all Calls" wait_for 40 all_deferred
	# Then their threads end, with the pages that nobody else has.
	echo 1 >/proc/fs/nfsd/threads
	check "they keep less than half of what they want" keep_little "$free"
	pkill -CONT -x rpc.mountd
	wait
	check "all Calls are answered" is $REQUESTERS "$(cat /tmp/answered.* | wc -l)"
}

# requester N: READs of an export that nfsd does not know
requester() {
	local script=() call
	for ((call = 0; call < CALLS; call++)); do
		script+=("send $(start $((0x17000 + call)) $RDMA_MSG) 0 \
			$(write_chunk "0xdeadbeef $MIB 0 0x10000") 0 0 \
			$(nfs_call $((0x17000 + call)) 3 $READ) $UNKNOWN 0 0 $MIB")
	done
	for ((call = 0; call < CALLS; call++)); do
		script+=("expect . 1 . $RDMA_MSG 0 $(write_chunk ". 0 . .") 0 0 \
			. 1 0 0 0 0 $NFS3ERR_STALE 0")
	done
	{
		printf '%s\n' "timeout $(seconds 50)" "private $PRIVATE" "connect $SERVER4 $PORT" \
			"send $(null_message 0x16000)" "expect $(null_reply 0x16000)"
		wait_for 20 test -e /tmp/go
		printf '%s\n' "${script[@]}"
	} | /tmp/peer && echo "$1" >"/tmp/answered.$1"
}

# In KiB
mem_free() {
	awk '$1 == "MemFree:" { print $2 }' /proc/meminfo
}

all_deferred() {
	[ "$(grep -c svc_defer: /sys/kernel/tracing/trace)" -ge $((REQUESTERS * CALLS)) ]
}

# keep_little FREE: so much was free when all threads had their pages
keep_little() {
	local kept=$(($1 - $(mem_free) + NFSD_THREADS * 1024))
	echo "$((kept / 1024)) MiB"
	[ $kept -lt $((REQUESTERS * CALLS * 1024 / 2)) ]
}
