# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a server that never answers the first Call in version 2 costs some seconds, and no RPC
# guests:  um/rxe
# also:    um um-7-debug/rxe
# devices: rxe siw
# modules: ours
# limit:   120
# faults:  the server does not answer

. /lab/guest/peer.sh
. /lab/guest/responder.sh

client() {
	client_begin
	need "prepare the peer" peer_up
	need "trace events" trace_start
	need "the client may use version 2, and so may the server" versions_up_to 2 2
	hard_mount
	first_call_killed
	trace_stop
}

# A hard mount of version 4.2. The peer answers no Call in version 2, and in version 1 only
# the first one, a NULL. When it ends, the NFS server listens at its port. That server has
# version 2, but the client takes the server at this address for one of version 1.
hard_mount() {
	local mount since=$SECONDS
	dmesg --clear
	peer_start "listen $SERVER4 $PEER_PORT" \
		"answer $(plain_header . . $MSG_CALL) . 0 2 100003 4 $NULL ... = $(answer_with 32)"
	PORT=$PEER_PORT timeout 60 bash -c "$(declare -f nfs_mount); SERVER4=$SERVER4 EXPORT=$EXPORT
		nfs_mount 4.2 rdma /mnt hard" >/tmp/mount.log 2>&1 &
	mount=$!
	check "the peer gets a Call in version 2, and later others in version 1" \
		wait_for 30 not_answered 1
	check "it gets no more than one in version 2" is 1 "$(not_answered 2 | wc -l)"
	peer_stop
	PORT=$PEER_PORT need "the NFS server listens at the peer's port" listen
	wait $mount
	check "a hard mount of version 4.2 has succeeded within a minute" mounted $?
	say "after $((SECONDS - since)) s"
	check "the log says that the server has version 1" \
		grep -F "$SERVER4:$PEER_PORT: no answer in version 2: version 1 for an hour" <(dmesg)
	check "the mount works" timeout $AT_ONCE cp /etc/services /mnt/services
	check "the server has the data" same_sum /etc/services $LOCAL/services
	echo >$TRACE/trace
	check "other Calls are answered" timeout $AT_ONCE stat -f /mnt
	check "they are in version 1" is 1 "$(versions_sent $TRACE/trace | sort -u | xargs)"
	check "umount" umount /mnt
}

# not_answered VERSION: whether the peer had no answer to a message of this version.
not_answered() {
	grep "^not answered [0-9]* octets [0-9a-f]* 0000000$1 " /tmp/peer.log
}

mounted() {
	cat /tmp/mount.log
	is 0 "$1" && mountpoint -q /mnt
}

# A process is killed while the client waits for the answer to the first Call on a new
# connection. Other Calls are answered when that time is over.
first_call_killed() {
	PEER_PORT=20051
	use_version 2
	serve_files 32
	check "mount, in version 2" from_peer hard
	# Afterwards no ACCESS is needed.
	check "a LOOKUP is answered" stat /mnt/file
	use_version 1
	kill_first_call "first Call killed"
	check "other Calls are answered after a while" timeout 25 stat -f /mnt
	check "in version 1" is 1 "$(versions_sent $TRACE/trace | sort -u | xargs)"
	check "on another connection" is 2 "$(connections_made)"
	check "umount -f" wait_for 20 umount -f /mnt
	peer_stop
}
