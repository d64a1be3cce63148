# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the part of hostile-requester in which our server's memory is at stake, with KASAN
# guests:  um-7-debug/rxe
# also:    um-debug/rxe arm64-64k
# devices: rxe
# modules: ours
# limit:   60
# faults:  the peer breaks the rules

. "${BASH_SOURCE%/*}/hostile-requester.sh"

# Left out is what unit tests decode as well.
client() {
	client_begin
	need "prepare the peer" peer_up
	need "mount" nfs_mount 4.2 rdma /mnt
	need "the other client works" other_client
	unreasonable_chunks
	backward_replies
	lost_connections
	too_many_calls
	many_writes
	check "the other client never lost its connection" is 1 "$(connections_made)"
}
