# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   with shared Receives, a requester that sends beyond its credits is closed, and others go on
# guests:  um
# also:    um-7-debug/rxe
# devices: mem rxe
# modules: ours
# loads:   crowd
# limit:   120
# faults:  connections are closed
#
#   +------------------------------------+
#   | nfsd, rdma port 20049; mount       |
#   | rdma_crowd: the hostile requesters |
#   | one device on lab0                 |
#   | 10.17.0.1, fd17::1                 |
#   +------------------------------------+

. /lab/guest/peer.sh
. /lab/guest/requester.sh
. /lab/guest/tools.sh
. "${BASH_SOURCE%/*}/../guest/faults.sh"
. "${BASH_SOURCE%/*}/../guest/many.sh"

# Fewer Receives than one of them sends messages
RECEIVES=64
HOSTILE=8

client() {
	client_begin
	need "the program" tool_up
	need "share Receives" tune svc_rdma/shared_receives $RECEIVES
	need "mount" nfs_mount 3 rdma /mnt
	need "the other client works" other_client
	polite
	beyond
	check "the other client never lost its connection" is 1 "$(connections_made)"
}

# Clients that use what they are granted
polite() {
	need "$HOSTILE polite clients" crowd_up connections=$HOSTILE
	need "all are up" wait_for 30 result_is up $HOSTILE
	crowd rate 200
	sleep 5
	crowd rate 0
	check "all are answered" wait_for 10 all_answered
	check "none was lost" result_is lost 0
	check "none has sent too much" exceeded 0
	check "unload" crowd_down
	untouched
}

all_answered() {
	is "$(result calls)" "$(result replies)"
}

beyond() {
	need "$HOSTILE clients" crowd_up connections=$HOSTILE window=96
	need "all are up" wait_for 30 result_is up $HOSTILE
	crowd call 96 &
	untouched
	wait $!
	check "each was closed" wait_for 20 result_is lost $HOSTILE
	check "each was counted" exceeded $HOSTILE
	check "no other answers than these" result_is wrong 0
	untouched
	check "unload" crowd_down
	check "nobody else was closed" \
		show_is 1 server 'map(select(."shared-receives")) | length'
}

# exceeded COUNT: so many clients have sent too much.
exceeded() {
	show_is "$1" devices '.[0]."credits-exceeded"'
}
