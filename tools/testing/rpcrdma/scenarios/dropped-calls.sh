# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   an NFSv4 Call that the server drops is sent again, one that takes long is waited for
# guests:  um
# also:    um-debug debian-6.1 debian-6.12 smp-debug
# devices: rxe siw
# modules: ours
# limit:   120

. /lab/guest/peer.sh

# What listens at this port is the peer.
PEER_PORT=20050
# Tenths of a second: the first time-out of a Call. The major one is five times
# that, so that it is not over a second time before all is done.
TIMEO=$(seconds 20)
MAJOR=$((TIMEO / 2))
# Seconds for all of that
AT_LAST=$((4 * MAJOR))
NFS4ERR_MINOR_VERS_MISMATCH=10021

client() {
	local vers
	client_begin
	need "the peer" peer_up
	for vers in 4.0 4.1; do
		dropped $vers
		slow $vers
	done
}

# call_of PROCEDURE: an NFSv4 Call without chunks
call_of() {
	echo ". 1 . $RDMA_MSG $NO_CHUNKS . 0 2 100003 4 $1 ..."
}

# The mount's first Call is a NULL, its second SETCLIENTID or EXCHANGE_ID. Each of
# these lines is about the second.
CALL="expect $(call_of $COMPOUND)"
SAME_CALL="expect <0 1 . $RDMA_MSG $NO_CHUNKS <0 0 2 100003 4 $COMPOUND ..."
# It ends the mount.
ANSWER="send <0 1 32 $RDMA_MSG $NO_CHUNKS $(accepted "<0") $NFS4ERR_MINOR_VERS_MISMATCH 0 0"

# peer_hears LINE...: after the NULL, whose Reply grants 32 credits
peer_hears() {
	peer_start "patience $AT_LAST" "private $PRIVATE" "listen $SERVER4 $PEER_PORT" accept \
		"expect $(call_of $NULL)" \
		"send <0 1 32 $RDMA_MSG $NO_CHUNKS $(accepted "<0")" "$@"
}

# On a connection that has brought a Reply, and as the first Call of the next one
dropped() {
	peer_hears "$CALL" closed accept "$SAME_CALL" closed accept "$SAME_CALL" "$ANSWER"
	check "v$1: a Call that is dropped twice gets its Reply" mount_fails "$1"
	peer_stop
}

# Longer than the first time-out, and not as long as the major one
slow() {
	peer_hears "$CALL" "sleep $((MAJOR / 2))" "$ANSWER"
	check "v$1: a Call that takes long gets its Reply" mount_fails "$1"
	peer_stop
}

# As the answer says, and not because the time is up
mount_fails() {
	local status
	mkdir -p /mnt
	timeout $AT_LAST mount -t nfs \
		-o "vers=$1,proto=rdma,port=$PEER_PORT,timeo=$TIMEO,retrans=4,retry=0" \
		"$SERVER4:$EXPORT" /mnt
	status=$?
	echo "status $status"
	[ $status -ne 0 ] && [ $status -ne 124 ]
}
