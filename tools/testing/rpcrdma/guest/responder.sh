# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios in which the scripted peer is the NFSv3 server of our client, after
# peer.sh: rules that answer its Calls in the version that use_version chose.

# The NFS server runs only for mountd, which gives out the file handle. The peer listens at
# this port.
PEER_PORT=20050
# Seconds in which a Call must fail that does not wait for its timeout. The timeout is
# three times as long, and ten minutes at most.
AT_ONCE=$(seconds 20)
[ "$AT_ONCE" -le 200 ] || AT_ONCE=200

# from_peer OPTIONS [COMMAND...]: mount from the peer. A Call fails at its second timeout.
from_peer() {
	local opts=$1
	shift
	mkdir -p /mnt
	"$@" mount -t nfs -o "vers=3,proto=rdma,port=$PEER_PORT,nolock,noacl,nocto,actimeo=60,mountport=20048,mountproto=tcp,timeo=$((30 * AT_ONCE)),retrans=1,retry=0,$opts" \
		"$SERVER4:$EXPORT" /mnt
}

# call_to PROCEDURE: a Call of the client without chunks
call_to() {
	echo "$(plain_header . . $MSG_CALL) . 0 2 100003 3 $1 ..."
}

# answer_with CREDITS RESULTS: the answer to the last Call
answer_with() {
	echo "$(plain_reply "<0" "$1") $(accepted "<0") ${*:2}"
}

# fails_in_time COMMAND...: a command run by timeout fails before timeout ends it.
fails_in_time() {
	local status
	"$@"
	status=$?
	echo "status $status"
	[ $status -ne 0 ] && [ $status -ne 124 ]
}

# The peer's file system: a directory with a file of 64 KiB

# fattr3 TYPE SIZE FILEID: attributes: type, mode, nlink, uid, gid, size, used, rdev, fsid,
# fileid, atime, mtime, ctime
fattr3() {
	echo "$1 0777 1 0 0 0 $2 0 $2 0 0 0 17 0 $3 $(repeat 6 0)"
}
DIRECTORY=$(fattr3 2 4096 1)
FILE=$(fattr3 1 65536 2)

# file_system CREDITS: rules that answer all Calls of a mount and of opening a file
file_system() {
	# NFS3_OK and post_op_attr of the root
	local ok="0 1 $DIRECTORY"
	echo "answer $(call_to $NULL) = $(answer_with "$1")"
	echo "answer $(call_to $GETATTR) = $(answer_with "$1" 0 "$DIRECTORY")"
	# the object, its attributes, no attributes of the directory
	echo "answer $(call_to $LOOKUP) = $(answer_with "$1" 0 8 :f11ef11ef11ef11e 1 "$FILE" 0)"
	# no attributes; everything is allowed
	echo "answer $(call_to $ACCESS) = $(answer_with "$1" 0 0 0x3f)"
	echo "answer $(call_to $FSSTAT) = $(answer_with "$1" "$ok" "$(repeat 13 0)")"
	# rtmax rtpref rtmult, wtmax wtpref wtmult, dtpref, maxfilesize, time_delta, properties
	echo "answer $(call_to $FSINFO) = $(answer_with "$1" "$ok" \
		65536 65536 4096 65536 65536 4096 4096 0 0x7fffffff 0 1 0x1b)"
	# linkmax, name_max, no_trunc, chown_restricted, case_insensitive, case_preserving
	echo "answer $(call_to $PATHCONF) = $(answer_with "$1" "$ok" 255 255 1 1 0 1)"
}

# serve_files CREDITS LINE...: start the peer with these rules and more lines.
serve_files() {
	local rules
	mapfile -t rules < <(file_system "$1")
	peer_start "listen $SERVER4 $PEER_PORT" "${rules[@]}" "${@:2}"
}
