# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   rpcrdma ping -s and doctor tell that large packets are lost on the way, and short ones are not
# guests:  um
# also:    debian-6.1 debian-13-7
# devices: rxe
# ends:    2
# modules: ours
# limit:   120
# faults:  large packets are lost
#
#   end 1: server               end 2: client
#   +-------------------+       +---------------------------+
#   | rxe0              |       | rxe0                      |
#   | vec0: 10.17.0.1   |       | lab0: 10.17.0.2, a bridge |
#   |   |               |       |   |                       |
#   |   +---------------|-------|-- vec0: an MTU of 600     |
#   +-------------------+       +---------------------------+
#
# The bridge drops what its port does not carry, as a switch does, and rxe does not know of it.

. "${BASH_SOURCE%/*}/../guest/faults.sh"
. /lab/guest/doctor.sh

client() {
	need "make a bridge" bridge_up
	need "whose MTU is not that of its port" own_mtu
	client_begin
	need "the program" tool_up
	need "verbs for user space" verbs_up
	large "large Calls are answered: 0" exits 0
	check "all is well: 0" well $SERVER4
	check "it has sent a large Call" says "^ok +ping +$SERVER4 port $PORT answers when it has read 65536 octets"
	need "a smaller MTU on the way" ip link set "$(cable)" mtu 600
	check "short Calls are answered: 0" exits 0 tool ping -c 3 -i 0 $SERVER4
	large "large Calls are not answered: 1" no_answer
	check "doctor says why" finds \
		"$SERVER4 port $PORT answers short Calls, and none of 65536 octets: packets of full size are lost" $SERVER4
	need "the usual MTU" ip link set "$(cable)" mtu 1500
	large "large Calls are answered again: 0" exits 0
}

# A bridge has the smallest MTU of its ports until it has been given another one.
own_mtu() {
	ip link set lab0 mtu 1400 && ip link set lab0 mtu 1500
}

# large WHAT COMMAND...: a Call with arguments in one Send, and one with a Read chunk
large() {
	local size
	for size in 8192 65536; do
		check "$1 ($size)" "${@:2}" tool ping -c 1 -W 2 -s $size $SERVER4
	done
}

no_answer() {
	exits 1 "$@" && says "^rpcrdma: .*large packets are lost: compare MTUs"
}
