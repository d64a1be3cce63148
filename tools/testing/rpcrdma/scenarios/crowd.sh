# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   rdma_crowd rests, calls, goes beyond its credits, is deaf and comes back, and leaves nothing
# guests:  um
# also:    um/mem um-7-debug debian-6.1
# devices: rxe siw mem
# modules: ours
# loads:   crowd
# limit:   120
# turns:   what it does
# faults:  connections are closed
#
#   +------------------------------------+
#   | nfsd, rdma port 20049              |
#   | rdma_crowd: clients                |
#   | one device on lab0                 |
#   | 10.17.0.1, fd17::1                 |
#   +------------------------------------+

. "${BASH_SOURCE%/*}/../guest/faults.sh"
. "${BASH_SOURCE%/*}/../guest/many.sh"

# nfsd closes some of more than 64 connections that have shown no file handle.
COUNT=48

client() {
	client_begin
	polite
	beyond
	deaf
	refused
	unanswered
}

# crowd_begin WHAT COUNT PARAMETER=VALUE...
crowd_begin() {
	need "$1" crowd_up connections="${@:2}"
	need "$1: all are up" wait_for 30 result_is up "$2"
}

# crowd_end WHAT: unload it, which may wait for no timer.
crowd_end() {
	check "$1: no other answers than these" result_is wrong 0
	check "$1: unload" within 8 crowd_down
	check "$1: no connection is left" wait_for 10 no_connection
}

polite() {
	crowd_begin "$COUNT connections" $COUNT retry=500
	check "each has had one answer" result_is replies $COUNT
	crowd call 10
	check "with a credit each sends one Call" result_is calls $((2 * COUNT))
	check "it is answered" wait_for 10 result_is replies $((2 * COUNT))
	crowd rate 200
	check "Calls at a rate are answered" wait_for 10 replies_beyond $((2 * COUNT + 200))
	crowd rate 0
	check "restart the server" server_bounce
	check "all come back" wait_for 30 result_is up $COUNT
	check "each was lost" result_is lost $COUNT
	check "remove the device, and add it" device_bounce
	check "all come back once more" wait_for 30 result_is up $COUNT
	check "each was lost twice" result_is lost $((2 * COUNT))
	crowd_end "$COUNT connections"
}

replies_beyond() {
	[ "$(result replies)" -ge "$1" ]
}

# The server grants 64 at most. Over RoCE what finds no Receive is sent again. Over iWARP it ends
# the connection.
beyond() {
	crowd_begin "beyond its credits" 4 window=96
	crowd call 96
	check "beyond its credits: each sends 96 Calls" result_is calls $((4 + 4 * 96))
	check "beyond its credits: all are answered, or it is closed" wait_for 30 answered_or_closed
	crowd_end "beyond its credits"
}

answered_or_closed() {
	is "$(result calls)" "$(result replies)" ||
		{ has_iwarp "${DEVICE}0" && [ "$(result lost)" -gt 0 ]; }
}

# Over RoCE the server's device repeats a Reply six times within five seconds, because clients ask
# for that. The scenario deaf has clients that ask for no limit.
deaf() {
	crowd_begin "deaf" 4 deaf=1
	crowd call 1
	check "deaf: the server gives it up" wait_for 15 result_is lost 4
	crowd_end "deaf"
}

refused() {
	need "refused" crowd_up connections=4 port=$((PORT + 1))
	check "refused: all fail" wait_for 10 result_is failed 4
	crowd_end "refused"
}

# More than connect at a time. In a dummy interface's network nobody has the address.
unanswered() {
	if has_iwarp "${DEVICE}0"; then
		skip "unanswered" "siw waits two minutes for TCP to connect"
		return
	fi
	need "unanswered" crowd_up connections=$COUNT addr=10.17.0.99
	sleep 1
	check "unanswered: none has failed yet" result_is failed 0
	crowd_end "unanswered"
}
