# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a connection request that the server refuses is counted and told, with the reason
# guests:  um um/mem
# also:    um-debug/rxe um-7-debug/mem
# devices: rxe mem
# modules: ours
# limit:   90
# skip:    um-7* rxe * *: ib_mad of 7.x sends nothing more for a port with 128 requests that have no answer
# faults:  the server refuses connections

. "${BASH_SOURCE%/*}/../guest/mem.sh"
. "${BASH_SOURCE%/*}/../guest/peer.sh"
. "${BASH_SOURCE%/*}/../guest/tools.sh"

# How many requests of one host may wait if no others do
WAITING_MAX=1024

# mem: both ends use one device, which has one queue pair, and the client takes it first. So
# the server cannot make the connection.
#
# rxe, for which the scripted peer has verbs: the NFS server listens without threads. So
# requests wait until it ends, or gets threads.
server() {
	if [ "$DEVICE" = mem ]; then
		need "load the test device" modprobe rdma_mem
		need "the next device has one queue pair" limit max_qp 1
	else
		NFSD_THREADS=0
	fi
	server_begin
}

client() {
	client_begin
	monitor_start
	if [ "$DEVICE" = mem ]; then
		no_queue_pair
	else
		need "prepare the peer" peer_up
		server_ends
		too_many
	fi
	monitor_stop
}

no_queue_pair() {
	check "a mount fails" not nfs_mount 3 rdma /mnt retry=0
	check "the server tells that it has refused, and why" wait_for 10 server_told setup
	check "the cause is what the device said: ENOMEM" causes setup 12
	check "the client tells that its peer has refused" wait_for 10 told \
		'.role == "client" and .refusal == "peer" and .peer == "'$SERVER4:$PORT'"'
	check "the listener for IPv4 has counted as many" counted 0 "$(refusals setup)"
	check "rpcrdma show has them" shown "$(refusals setup)"
	enough
	check "monitor has nothing but refusals before that" is refused "$(before_connected)"
}

# With more queue pairs the same listener accepts.
enough() {
	need "delete the device" rdma link delete mem0
	need "the next one has enough" limit max_qp 4
	need "add it" rdma_up
	check "mount" wait_for $RECOVERY nfs_mount 3 rdma /mnt retry=0
	check "the listener has accepted one, and refused no more" counted 1 "$(refusals setup)"
	check "umount" umount /mnt
}

# The NFS server ends while a request waits.
server_ends() {
	local mount
	nfs_mount 3 rdma /mnt retry=0 >/tmp/mount.log 2>&1 &
	mount=$!
	check "a request waits for a thread of the server" wait_for 10 waiting 1
	check "nothing is refused yet" is 0 "$(refusals service)"
	check "the server ends" rpc.nfsd 0
	check "it tells that it has refused the request, and why" wait_for 10 server_told service
	check "the cause is ESHUTDOWN" causes service 108
	check "it was one request" is 1 "$(refusals service)"
	wait $mount
	check "the mount fails" not is 0 $?
}

# As many requests wait as may. The server refuses one more, until its threads have seen that
# they are given up.
too_many() {
	local peer
	need "listen again" listen
	crowd
	check "$WAITING_MAX requests of a host wait" wait_for 30 waiting $WAITING_MAX
	check "none is refused" is 0 "$(refusals backlog)"
	check "a mount fails" not nfs_mount 3 rdma /mnt retry=0
	check "the server tells that it has refused, and why" wait_for 10 server_told backlog
	check "the cause is ECONNREFUSED" causes backlog 111
	check "a line in the log says so" \
		grep -q "rpcrdma: $SERVER4: refused: too many connection requests wait\$" <(dmesg)
	check "the listener has counted as many" counted 0 "$(refusals backlog)"
	check "still as many wait" waiting $WAITING_MAX
	kill -TERM $peer
	wait $peer
	check "the peer succeeds, and gives up its requests" peer_succeeded $?
	need "the server gets threads" rpc.nfsd 8
	check "mount" wait_for $RECOVERY nfs_mount 3 rdma /mnt retry=0
	check "no request waits" waiting 0
	check "the listener has accepted one, and refused no more" counted 1 "$(refusals backlog)"
	check "umount" umount /mnt
}

# Have the peer request so many connections until it is told to stop. Sets the caller's $peer.
crowd() {
	printf '%s\n' "crowd $SERVER4 $PORT $WAITING_MAX" "sleep 600" >/tmp/peer.script
	/tmp/peer </tmp/peer.script >/tmp/peer.log 2>&1 &
	peer=$!
}

# told FILTER: whether a refusal is like that.
told() {
	jq -se 'any(.[] | select(.event == "refused"); '"$1"')' /tmp/events || { cat /tmp/events; return 1; }
}

# server_told WHY: whether the server says that it has refused a request of this client
server_told() {
	told '.role == "server" and .refusal == "'"$1"'" and .local == "'$SERVER4:$PORT'" and
		(.peer | startswith("'$SERVER4':"))'
}

# For jq: the events of a server that has refused for the reason $why
REFUSED_WHY='map(select(.event == "refused" and .role == "server" and .refusal == $why))'

# causes WHY WANTED: the causes of all such refusals
causes() {
	is "$2" "$(jq -sr --arg why "$1" "$REFUSED_WHY"' | map(.cause) | unique | join(" ")' /tmp/events)"
}

# refusals WHY: how many requests the server has refused for this reason, by its events
refusals() {
	jq -s --arg why "$1" "$REFUSED_WHY"' | length' /tmp/events
}

# counted ACCEPTED REFUSED: whether the listener for IPv4 says so; there is at least one.
counted() {
	[ "$2" -gt 0 ] && is "$1 $2" "$(listener '"\(.accepted) \(.refused)"')"
}

# waiting REQUESTS: whether so many wait at the listener for IPv4
waiting() {
	is "$1" "$(listener .waiting)"
}

# listener FILTER: what jq prints of the listener for IPv4
listener() {
	from_show listeners '.[] | select(.local | startswith("0.0.0.0:")) | '"$1"
}

# shown REFUSED: in the table, behind the number of those accepted
shown() {
	rpcrdma show listeners | tee /tmp/printed
	grep -qE "^0\.0\.0\.0:$PORT .* 0 +$1 +0$" /tmp/printed
}

# The kinds of events before the first one that is "connected"
before_connected() {
	jq -sr '[.[].event] | .[:index("connected")] | unique | join(" ")' /tmp/events
}
