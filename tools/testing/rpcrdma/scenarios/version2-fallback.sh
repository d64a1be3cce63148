# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a client that may use version 2 uses version 1 with a server that refuses it, and loses no RPC
# guests:  um/rxe
# also:    um um-7-debug/rxe
# devices: rxe siw
# modules: ours
# limit:   90
# faults:  connections are made again in another version

. /lab/guest/peer.sh
. /lab/guest/responder.sh

client() {
	local vers
	client_begin
	need "prepare the peer" peer_up
	need "the client may use version 2, the server version 1" versions_up_to 2 1
	for vers in 3 4.2; do
		older_server $vers
	done
	other_settings
	versions_in_common
	none_in_common
	refused_and_disconnected
}

# older_server VERSION: the server answers the first Call with ERR_VERS.
older_server() {
	local what="v$1, a server with version 1" before
	before=$(retransmissions)
	need "$what: mount, and verified I/O" traced mount_and_verify "$1"
	check "$what: one Call was sent in version 2" is 1 "$(calls_traced 2)"
	check "$what: it was refused" is 1 "$(refusals)"
	check "$what: the others were sent in version 1" [ "$(calls_traced 1)" -gt 20 ]
	check "$what: no Call was sent twice" is 0 $(($(retransmissions) - before))
	check "$what: one connection" is 1 "$(connections_made)"
	check "$what: umount" umount /mnt
}

mount_and_verify() {
	nfs_mount "$1" rdma /mnt && fio_verify --direct=1 --bsrange=512-256k --numjobs=4 --size=1m
}

# How many ERR_VERS the client has received
refusals() {
	grep -c 'rpcrdma_reply_form: .* received RDMA_ERROR .* error=VERS' /tmp/trace
}

# How many Calls NFS has sent a second time
retransmissions() {
	awk '$1 == "rpc" { print $3 }' /proc/net/rpc/nfs || echo 0
}

# The setting of either end changes under a live mount, and the client reconnects.
other_settings() {
	need "mount" nfs_mount 3 rdma /mnt
	: >/mnt/file
	after "the server has got version 2" 2 2 2
	after "the client has got version 1" 1 2 1
	after "the client has got version 2" 2 2 2
	after "the server has got version 1" 2 1 1
	check "umount" umount /mnt
}

# after WHAT CLIENT SERVER VERSION: with these settings the next connection uses this version.
after() {
	local before
	before=$(connections_made)
	need "$1: the settings" versions_up_to "$2" "$3"
	need "$1: the connection is dropped" wait_for 20 drop_connection "$(the_transport)"
	check "$1: I/O" traced reconnect_and_write "$before"
	check "$1: the last Call is in version $4" is "$4" "$(versions_sent /tmp/trace | tail -n 1)"
	check "$1: one new connection" is $((before + 1)) "$(connections_made)"
}

reconnect_and_write() {
	wait_for 20 write_and_count "$1"
}

write_and_count() {
	dd if=/dev/urandom of=/mnt/file bs=64k count=4 oflag=direct conv=notrunc &&
		same_sum /mnt/file $LOCAL/file && more_connections "$1"
}

# null_in_version_2 MESSAGE...: a rule that answers a NULL in version 2. All other rules are
# about version 1.
null_in_version_2() {
	use_version 2
	echo "answer $(call_to $NULL) = $*"
	use_version 1
}

# err_vers LOW HIGH: the answer to the last message
err_vers() {
	rdma2_error_vers "<0" 32 "$1" "$2"
}

# After any error the server is tried in version 1, whatever range it says it has. Other errors
# than ERR_VERS may come from a server of a later draft.
versions_in_common() {
	local range
	for range in "1 1" "0 1" "1 9" "2 2" "5 3"; do
		falls_back "ERR_VERS with $range" "$(err_vers $range)"
	done
	falls_back "ERR_VERS whose version is 1" "<0 1 32 $RDMA_ERROR $ERR_VERS 1 1"
	falls_back "BAD_XDR" "$(rdma2_error_bad_xdr "<0" 32)"
	falls_back "INVAL_PROC" "$(rdma2_error_inval_proc "<0" 32)"
	falls_back "INVAL_OPTION" "$(rdma2_error_inval_option "<0" 32)"
	falls_back "CANT_REPLY" "$(rdma2_error_cant_reply "<0" 32 0 1 4096)"
}

# falls_back WHAT ANSWER: after this answer to the first Call the client uses version 1.
falls_back() {
	serve_files 32 "$(null_in_version_2 "$2")"
	check "$1: mount" traced from_peer soft timeout $AT_ONCE
	check "$1: one Call in version 2" is 1 "$(calls_traced 2)"
	check "$1: Calls are answered" timeout $AT_ONCE stat -f /mnt
	check "$1: one connection" is 1 "$(connections_made)"
	check "$1: umount" umount /mnt
	peer_stop
}

# There is no common version. The RPC fails, and nothing is tried in a loop.
none_in_common() {
	local range
	for range in "3 5" "0 0"; do
		serve_files 32 "$(null_in_version_2 "$(err_vers $range)")" \
			"answer $(call_to $NULL) = <0 1 32 $RDMA_ERROR $ERR_VERS $range"
		check "ERR_VERS with $range: the mount fails at once" \
			traced fails_in_time from_peer soft timeout $AT_ONCE
		check "ERR_VERS with $range: one Call in version 2" is 1 "$(calls_traced 2)"
		check "ERR_VERS with $range: one in version 1" is 1 "$(calls_traced 1)"
		peer_stop
	done
}

# A server ends the connection: after it has refused version 2, or without an answer. It is
# not asked again on later connections.
refused_and_disconnected() {
	ends_connection "ERR_VERS and a disconnection" "$(err_vers 1 1) ; disconnect" 2
	ends_connection "a disconnection" "disconnect" 1
}

# ends_connection WHAT ANSWER COUNT: so many connections can be used.
ends_connection() {
	dmesg --clear
	serve_files 32 "$(null_in_version_2 "$2")"
	check "$1: mount" traced from_peer hard timeout $AT_ONCE
	check "$1: one Call in version 2" is 1 "$(calls_traced 2)"
	check "$1: it is noted" grep "no answer in version 2" <(dmesg)
	check "$1: $3 connections" is "$3" "$(connections_made)"
	need "$1: the last one is dropped" wait_for 20 drop_connection "$(the_transport)"
	check "$1: Calls are answered" traced wait_for 20 reconnected "$3"
	check "$1: no more Calls in version 2" is 0 "$(calls_traced 2)"
	check "$1: umount" umount /mnt
	peer_stop
}

reconnected() {
	stat -f /mnt && more_connections "$1"
}
