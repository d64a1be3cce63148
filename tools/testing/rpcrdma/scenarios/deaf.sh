# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a client without Receives, for which Replies are repeated without end, is closed after three minutes
# also:    um
# devices: mem
# modules: ours
# loads:   crowd
# limit:   260
# faults:  connections are closed

. "${BASH_SOURCE%/*}/../guest/faults.sh"
. "${BASH_SOURCE%/*}/../guest/many.sh"

# A single Reply has no signal, so nobody would miss its completion.
client() {
	client_begin
	need "deaf clients" crowd_up connections=4 window=2 deaf=1 rnr_retry=7
	need "all are up" wait_for 30 result_is up 4
	crowd call 2
	check "each sends two Calls" result_is calls 8
	sleep 170
	check "none was closed in 170 seconds" result_is lost 0
	check "the server closes them" within 30 result_is lost 4
	check "unload" crowd_down
	check "no connection is left" wait_for 10 no_connection
}
