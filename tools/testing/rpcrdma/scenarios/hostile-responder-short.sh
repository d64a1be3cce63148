# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the part of hostile-responder in which our client's memory is at stake, with KASAN
# guests:  um-7-debug/rxe
# also:    um-debug/rxe
# devices: rxe
# modules: ours
# limit:   60
# faults:  the peer breaks the rules

. "${BASH_SOURCE%/*}/hostile-responder.sh"

# Left out is what waits for time-outs, and what unit tests decode as well. Mounting takes most
# of the time.
client() {
	client_begin
	need "prepare the peer" peer_up
	need "trace events" trace_start
	reads_that_fail
	kill_readdir
	check "READs are answered" read_on 40
	kill_readdir_end
	reads_that_are_killed
	backward_calls
	trace_stop
}
