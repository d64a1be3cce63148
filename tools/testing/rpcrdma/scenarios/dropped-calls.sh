# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the client repeats an NFSv4 Call that the server drops, and waits for a slow one
# guests:  um
# also:    um-7-debug/siw debian-6.1
# devices: rxe siw
# turns:   what nfsd drops
# modules: ours
# limit:   120
# faults:  the server drops Calls, and clients send them again

. /lab/guest/peer.sh

# The port of the scripted peer
PEER_PORT=20050
# The first timeout of a Call, in tenths of a second
TIMEO=$(seconds 20)
# The major timeout is five times that; in seconds. The test must end before it expires a
# second time.
MAJOR=$((TIMEO / 2))
# Seconds after which the mount is given up
LIMIT=$((4 * MAJOR))
NFS4ERR_MINOR_VERS_MISMATCH=10021

client() {
	local vers
	client_begin
	need "prepare the peer" peer_up
	for vers in 4.0 4.1; do
		dropped $vers
		slow $vers
	done
}

# call_of PROCEDURE: an NFSv4 Call without chunks
call_of() {
	echo ". 1 . $RDMA_MSG $NO_CHUNKS . 0 2 100003 4 $1 ..."
}

# A mount's first Call is a NULL, its second one SETCLIENTID or EXCHANGE_ID. These script
# lines are about the second.
CALL="expect $(call_of $COMPOUND)"
SAME_CALL="expect <0 1 . $RDMA_MSG $NO_CHUNKS <0 0 2 100003 4 $COMPOUND ..."
# With this error the mount ends.
ANSWER="send <0 1 32 $RDMA_MSG $NO_CHUNKS $(accepted "<0") $NFS4ERR_MINOR_VERS_MISMATCH 0 0"

# peer_answers_null LINE...: start the peer. It answers the NULL, granting 32 credits, and
# then executes these lines.
peer_answers_null() {
	peer_start "timeout $LIMIT" "private $PRIVATE" "listen $SERVER4 $PEER_PORT" accept \
		"expect $(call_of $NULL)" \
		"send <0 1 32 $RDMA_MSG $NO_CHUNKS $(accepted "<0")" "$@"
}

# The Call is dropped twice: on a connection that has had a Reply, and as the first Call
# on the next connection.
dropped() {
	peer_answers_null "$CALL" closed accept "$SAME_CALL" closed accept "$SAME_CALL" "$ANSWER"
	check "v$1: a Call that is dropped twice gets its Reply" mount_fails "$1"
	peer_stop
}

# The answer takes longer than the first timeout and less than the major one.
slow() {
	peer_answers_null "$CALL" "sleep $((MAJOR / 2))" "$ANSWER"
	check "v$1: a slow Call gets its Reply" mount_fails "$1"
	peer_stop
}

# The mount must fail because of the answer, and not because of the time limit.
mount_fails() {
	local status
	mkdir -p /mnt
	timeout $LIMIT mount -t nfs \
		-o "vers=$1,proto=rdma,port=$PEER_PORT,timeo=$TIMEO,retrans=4,retry=0" \
		"$SERVER4:$EXPORT" /mnt
	status=$?
	echo "status $status"
	[ $status -ne 0 ] && [ $status -ne 124 ]
}
