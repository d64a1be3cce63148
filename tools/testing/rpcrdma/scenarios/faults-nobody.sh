# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   an attempt to connect ends after 30 seconds, or 5 if the address does not resolve
# guests:  um/rxe
# also:    um-7-debug/rxe debian-6.1
# devices: rxe
# modules: ours
# limit:   90
# faults:  nobody answers
#
#   +------------------------------------------------+
#   | mount from 10.17.0.99   mount from 10.18.0.99  |
#   | device on lab0          device on lab2         |
#   | 10.17.0.1, no ARP       10.18.0.1, ARP         |
#   +------------------------------------------------+
#
# Nobody has the two addresses.

. "${BASH_SOURCE%/*}/../guest/faults.sh"

SILENT=10.17.0.99:$PORT UNKNOWN=10.18.0.99:$PORT

client() {
	client_begin
	need "a second device, on an interface with ARP" second_device_up
	dmesg --clear
	check "two mounts try to connect until they have given up" traced attempts
	lasted "an address that does not resolve" $UNKNOWN 4.5 12 RESOLVING
	lasted "a server that does not answer" $SILENT 29.5 45 "RESOLVING CONNECTING"
	check "remove the second device" second_device_down
}

second_device_up() {
	ip link add lab2 type dummy && ip link set lab2 arp on && ip addr add 10.18.0.1/24 dev lab2 &&
		ip link set lab2 up && rdma link add "${DEVICE}1" type "$DEVICE" netdev lab2
}

second_device_down() {
	rdma link delete "${DEVICE}1" && ip link delete lab2
}

attempts() {
	local peer mounts=() n status=0
	for peer in $SILENT $UNKNOWN; do
		mkdir -p "/tmp/$peer"
		mount.nfs "${peer%:*}:$EXPORT" "/tmp/$peer" -o "vers=4.2,proto=rdma,port=$PORT,retry=0" &
		mounts+=($!)
	done
	wait_for 40 given_up $SILENT && wait_for 40 given_up $UNKNOWN || status=1
	kill -KILL "${mounts[@]}"
	wait "${mounts[@]}"
	return $status
}

given_up() {
	dmesg | grep -E "rpcrdma: $1: not connected: (-ETIMEDOUT|-110)"
}

# lasted WHAT PEER LEAST MOST STATES: how many seconds the first attempt took, and its states
lasted() {
	check "$1: the attempt takes $3 to $4 seconds" attempt_is "${@:2}"
}

attempt_is() {
	awk -v peer=" peer=$1 " -v least="$2" -v most="$3" -v states="$4" '
		!/rpcrdma_conn_state:/ || !index($0, peer) || ended { next }
		{
			match($0, / [0-9]+\.[0-9]+: /)
			time = substr($0, RSTART + 1, RLENGTH - 3)
			match($0, /state=[A-Z]+/)
			state = substr($0, RSTART + 6, RLENGTH - 6)
		}
		state == "RESOLVING" { begun = time }
		state == "CLOSING" { ended = time; next }
		{ seen = seen (seen ? " " : "") state }
		END {
			printf "%.1f s, %s\n", ended - begun, seen
			exit !(ended && seen == states && ended - begun >= least && ended - begun <= most)
		}' /tmp/trace
}
