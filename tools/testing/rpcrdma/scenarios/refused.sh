# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a connection request that the server refuses is counted and told, with the reason
# guests:  um
# also:    um-debug um-7
# devices: mem
# modules: ours
#
# Both ends use one device, which has one queue pair, and the client takes it first. So the
# server cannot make the connection.

. "${BASH_SOURCE%/*}/../guest/mem.sh"

server() {
	need "load the test device" modprobe rdma_mem
	need "the next device has one queue pair" limit max_qp 1
	server_begin
}

client() {
	client_begin
	monitor_start
	check "a mount fails" not nfs_mount 3 rdma /mnt retry=0
	check "the server tells that it has refused, and why" wait_for 10 told \
		'.role == "server" and .refusal == "setup" and .local == "'$SERVER4:$PORT'" and
		 (.peer | startswith("'$SERVER4':"))'
	check "the cause is what the device said: ENOMEM" \
		causes server '[12]'
	check "the client tells that its peer has refused" wait_for 10 told \
		'.role == "client" and .refusal == "peer" and .peer == "'$SERVER4:$PORT'"'
	check "the listener for IPv4 has counted as many" counted 0 "$(refusals)"
	check "rpcrdma show has them" shown "$(refusals)"
	enough
	check "monitor has nothing but refusals before that" is refused "$(before_connected)"
	kill $MONITOR
	wait $MONITOR 2>/dev/null
}

# With more queue pairs the same listener accepts.
enough() {
	need "delete the device" rdma link delete mem0
	need "the next one has enough" limit max_qp 4
	need "add it" rdma_up
	check "mount" wait_for $RECOVERY nfs_mount 3 rdma /mnt retry=0
	check "the listener has accepted one, and refused no more" counted 1 "$(refusals)"
	check "umount" umount /mnt
}

rpcrdma() {
	timeout 20 /lab/rpcrdma "$@"
}

monitor_start() {
	/lab/rpcrdma monitor -j >/tmp/events 2>/tmp/monitor.log &
	MONITOR=$!
	need "monitor listens" wait_for 10 in_a_group
}

# It prints nothing before the first event.
in_a_group() {
	awk '$2 == 16 && $4 != "00000000"' /proc/net/netlink | grep -q .
}

# told FILTER: whether a refusal is like that.
told() {
	jq -se 'any(.[] | select(.event == "refused"); '"$1"')' /tmp/events || { cat /tmp/events; return 1; }
}

# causes ROLE WANTED: the causes of all refusals of a role
causes() {
	is "$2" "$(jq -sc --arg role "$1" '[.[] | select(.event == "refused" and .role == $role).cause] | unique' /tmp/events)"
}

# How many requests the server has refused, by its events
refusals() {
	jq -s 'map(select(.event == "refused" and .role == "server")) | length' /tmp/events
}

# counted ACCEPTED REFUSED: whether the listener for IPv4 says so; there is at least one.
counted() {
	rpcrdma show -j listeners >/tmp/show.json
	[ "$2" -gt 0 ] && is "$1 $2" "$(jq -r '.listeners[] | select(.local | startswith("0.0.0.0:")) |
		"\(.accepted) \(.refused)"' /tmp/show.json)"
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
