# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the connections of one mount may use different versions
# guests:  um/rxe
# also:    um um/mem um-debug/rxe um-7-smp/rxe debian-6.12
# devices: rxe siw mem
# modules: ours

client() {
	local transports
	client_begin
	need "both ends may use version 2" versions_up_to 2 2
	need "mount" nfs_mount 3 rdma /mnt nconnect=4
	mapfile -t transports < <(rdma_transports)
	check "the mount has four transports" is 4 "${#transports[@]}"
	check "verified I/O" traced io
	check "all of them use version 2" is "0 in version 1, 4 in version 2" "$(last_versions)"

	need "the server has version 1 from now on" tune svc_rdma/version 1
	need "the first connection is dropped" wait_for 20 drop_connection "${transports[0]}"
	need "the second connection is dropped" wait_for 20 drop_connection "${transports[1]}"
	check "verified I/O with both versions" traced io
	check "those that were made since use version 1" is "2 in version 1, 2 in version 2" "$(last_versions)"
	check "two Calls were refused" is 2 "$(grep -c 'reply_form: .* received RDMA_ERROR .* error=VERS' /tmp/trace)"
	check "after that one Call goes at a time, until it has a Reply" one_at_a_time
	check "verified I/O again" traced io
	check "no connection changes its version" is "2 in version 1, 2 in version 2" "$(last_versions)"
	check "nothing is refused any more" not grep 'reply_form: .* RDMA_ERROR' /tmp/trace
	check "umount" umount /mnt
}

# Many Calls and not many events: the trace has to have all connections.
io() {
	fio_verify --direct=1 --bsrange=4k-64k --numjobs=8 --size=256k
}

# How many connections sent their last Call in which version
last_versions() {
	awk '/rpcrdma_call_form: .* sent / {
		match($0, /conn=[0-9]+ /); conn = substr($0, RSTART, RLENGTH)
		match($0, / version=[0-9]+/); last[conn] = substr($0, RSTART + 9, RLENGTH - 9)
	} END {
		for (conn in last) n[last[conn]]++
		printf "%d in version 1, %d in version 2\n", n[1], n[2]
	}' /tmp/trace
}

# Whether on both connections on which the server has refused version 2, no two Calls were
# outstanding until one had a Reply. What the refusal granted does not count.
one_at_a_time() {
	awk '{ match($0, /conn=[0-9]+ /); conn = substr($0, RSTART, RLENGTH) }
		/rpcrdma_reply_form: .* received RDMA_ERROR .* error=VERS/ { refused[conn] = 1; n++ }
		/rpcrdma_reply_form: .* received RDMA_N*O*MSG / { delete refused[conn] }
		/rpcrdma_call_form: .* sent / && conn in refused && ++calls[conn] > 1 { print; bad = 1 }
		END { exit bad || n != 2 }' /tmp/trace
}
