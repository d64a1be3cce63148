# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios that use the scripted peer, ../peer/peer.c: RPC-over-RDMA messages
# in its language. Each function prints the fields in its name, in the order of RFC 8166
# section 4.1.2. A segment is "@NAME" or "HANDLE LENGTH OFFSET-HIGH OFFSET-LOW".
#
# Functions without a version in their names, and whose messages have no chunks, print
# them in the version that use_version chose last; at first that is 1.

# rdma_proc, section 4.2.4; rdma_err, section 4.5
RDMA_MSG=0 RDMA_NOMSG=1 RDMA_MSGP=2 RDMA_DONE=3 RDMA_ERROR=4
ERR_VERS=1 ERR_CHUNK=2

# The same of version 2, draft-cel-nfsv4-rpcrdma-version-two-02
RDMA2_MSG=0 RDMA2_NOMSG=1 RDMA2_ERROR=4 RDMA2_OPTIONAL=5
RDMA2_ERR_VERS=1 RDMA2_ERR_BAD_XDR=2 RDMA2_ERR_CANT_REPLY=3 RDMA2_ERR_INVAL_PROC=4
RDMA2_ERR_INVAL_OPTION=5
# Version 2 has RPC's msg_type in its header, as rdma_direction or rdma_optdir.
MSG_CALL=0 MSG_REPLY=1

# Read list, Write list and Reply chunk, all of them empty
NO_CHUNKS="0 0 0"

# RFC 8797: format identifier, version 1, flags, and 16384 octets in both directions. R is
# not set, because the peer's buffers cannot be invalidated remotely.
PRIVATE="f6ab0e18 01 00 0f 0f"
# The same with R, for a responder that invalidates its requester's handles
PRIVATE_INVALIDATES="f6ab0e18 01 01 0f 0f"

# NFSv3 and NFSv4 procedures, NFSv4 operations
NULL=0 GETATTR=1 LOOKUP=3 ACCESS=4 READLINK=5 READ=6 WRITE=7 SYMLINK=10 READDIRPLUS=17 FSSTAT=18 FSINFO=19 PATHCONF=20
COMPOUND=1
OP_DELEGRETURN=8 OP_LOOKUP=15 OP_OPEN=18 OP_PUTFH=22 OP_PUTROOTFH=24 OP_READ=25 OP_READLINK=27
OP_WRITE=38 OP_EXCHANGE_ID=42 OP_CREATE_SESSION=43 OP_DESTROY_SESSION=44 OP_SEQUENCE=53
OP_DESTROY_CLIENTID=57 OP_RECLAIM_COMPLETE=58 OP_READ_PLUS=68

# Callbacks of a server: the program, its COMPOUND, operations
CB_PROGRAM=0x40000000 CB_COMPOUND=1
OP_CB_RECALL=4 OP_CB_SEQUENCE=11

# A segment that is not registered: handle, length, and 64 bits of offset
UNREGISTERED="0xdeadbeef 4096 0 0x10000"

peer_up() {
	modprobe -q -a ib_uverbs rdma_ucm
	cp /lab/peer /tmp/peer && wait_for 5 test -c /dev/infiniband/rdma_cm &&
		wait_for 5 test -c /dev/infiniband/uverbs0
}

# peer LINE...: run a script. True if all that it expects happens.
peer() {
	printf '%s\n' "timeout $(seconds 20)" "$@" | /tmp/peer
}

# peer_start LINE...: run a script that listens, and then answers until peer_stop.
peer_start() {
	printf '%s\n' "$@" serve >/tmp/peer.script
	: >/tmp/peer.log
	/tmp/peer </tmp/peer.script >/tmp/peer.log 2>&1 &
	PEER=$!
	need "the peer listens" wait_for 10 grep -q listening /tmp/peer.log
}

peer_stop() {
	kill -TERM "$PEER"
	wait "$PEER"
	check "the peer saw no error" peer_succeeded $?
}

# peer_succeeded STATUS [LOG]: print the log of a peer that failed.
peer_succeeded() {
	[ "$1" = 0 ] || { cat "${2:-/tmp/peer.log}"; return 1; }
}

# repeat N WORDS: the words, N times
repeat() {
	local n
	for ((n = 0; n < $1; n++)); do
		echo "${*:2}"
	done | xargs
}

# start XID PROC: rdma_xid, rdma_vers, rdma_credit, rdma_proc
start() {
	echo "$1 1 32 $2"
}

# read_segment POSITION SEGMENT: one element of the Read list
read_segment() {
	echo "1 $1 $2"
}

# chunk SEGMENT...: a segment count and plain segments
chunk() {
	echo "$# $*"
}

# write_chunk SEGMENT...: one element of the Write list
write_chunk() {
	echo "1 $(chunk "$@")"
}

# reply_chunk SEGMENT...: a Reply chunk
reply_chunk() {
	echo "1 $(chunk "$@")"
}

# Headers of version 2. In a pattern, each of the arguments may be a dot.

# rdma2_msg XID CREDITS DIRECTION INV_HANDLE LISTS [RPC-MESSAGE]
rdma2_msg() {
	echo "$1 2 $2 $RDMA2_MSG ${*:3}"
}

# rdma2_nomsg XID CREDITS DIRECTION INV_HANDLE LISTS
rdma2_nomsg() {
	echo "$1 2 $2 $RDMA2_NOMSG ${*:3}"
}

# rdma2_error XID CREDITS ERROR [MORE]
rdma2_error() {
	echo "$1 2 $2 $RDMA2_ERROR ${*:3}"
}

# rdma2_error_vers XID CREDITS LOW HIGH
rdma2_error_vers() {
	rdma2_error "$1" "$2" $RDMA2_ERR_VERS "$3" "$4"
}

# rdma2_error_bad_xdr XID CREDITS
rdma2_error_bad_xdr() {
	rdma2_error "$1" "$2" $RDMA2_ERR_BAD_XDR
}

# rdma2_error_cant_reply XID CREDITS PROCESSED SEGMENT LENGTH: SEGMENT counts from one.
rdma2_error_cant_reply() {
	rdma2_error "$1" "$2" $RDMA2_ERR_CANT_REPLY "$3" "$4" "$5"
}

# rdma2_error_inval_proc XID CREDITS
rdma2_error_inval_proc() {
	rdma2_error "$1" "$2" $RDMA2_ERR_INVAL_PROC
}

# rdma2_error_inval_option XID CREDITS
rdma2_error_inval_option() {
	rdma2_error "$1" "$2" $RDMA2_ERR_INVAL_OPTION
}

# rdma2_optional XID CREDITS DIRECTION TYPE OPTINFO [RPC-MESSAGE]: OPTINFO is an XDR
# opaque: "/abcd", "3 :01020300", or 0 for none.
rdma2_optional() {
	echo "$1 2 $2 $RDMA2_OPTIONAL ${*:3}"
}

# use_version 1|2: the version of the messages without chunks that the functions below
# print. HEADER_WORDS is the length of their header.
use_version() {
	RPCRDMA_VERSION=$1
	HEADER_WORDS=7
	[ "$1" = 1 ] || HEADER_WORDS=9
	# After found() was expected: the file handle in it
	FOUND=$(received 7+)
	# The sessionid, after the answer to a CREATE_SESSION or SEQUENCE was received
	SESSION=$(received 11-14)
}

# received N|N-M|N+: words of the RPC message in the last message, which had no chunks:
# word N, words N to M, or the opaque whose length is word N. The first one is word 0.
received() {
	local from=${1%%[-+]*} rest=${1#"${1%%[-+]*}"}
	[[ $rest != -* ]] || rest=-$((HEADER_WORDS + ${rest#-}))
	echo "<$((HEADER_WORDS + from))$rest"
}

# plain_header XID CREDITS DIRECTION: the header of a message without chunks
plain_header() {
	if [ "$RPCRDMA_VERSION" = 2 ]; then
		rdma2_msg "$1" "$2" "$3" 0 "$NO_CHUNKS"
	else
		echo "$1 1 $2 $RDMA_MSG $NO_CHUNKS"
	fi
}

# plain_call XID
plain_call() {
	plain_header "$1" 32 $MSG_CALL
}

# plain_reply XID CREDITS
plain_reply() {
	plain_header "$1" "$2" $MSG_REPLY
}

# RPC, RFC 5531 section 9

# null_call XID: xid, CALL, rpcvers 2, prog NFS, vers 3, NULL, AUTH_NONE twice
null_call() {
	echo "$1 0 2 100003 3 $NULL 0 0 0 0"
}

# nfs_call XID VERS PROC: an NFS Call with AUTH_SYS: stamp 0, no machine name, uid 0, gid
# 0, no other gids
nfs_call() {
	echo "$1 0 2 100003 $2 $3 1 20 0 0 0 0 0 0 0"
}

# accepted XID: xid, REPLY, MSG_ACCEPTED, AUTH_NONE, SUCCESS
accepted() {
	echo "$1 1 0 0 0 0"
}

# garbage_args XID: xid, REPLY, MSG_ACCEPTED, AUTH_NONE, GARBAGE_ARGS
garbage_args() {
	echo "$1 1 0 0 0 4"
}

# Whole messages

null_message() {
	echo "$(plain_call "$1") $(null_call "$1")"
}

# null_reply XID: the answer to null_message, with any credits
null_reply() {
	echo "$(plain_reply "$1" .) $(accepted "$1")"
}

# err_chunk XID: rdma_xid, rdma_vers, rdma_credit, RDMA_ERROR, ERR_CHUNK
err_chunk() {
	echo "$1 1 . $RDMA_ERROR $ERR_CHUNK"
}

# The NFSv3 handle of the export's root. The export has fsid=17, so the handle has no
# inode: version 1, no authentication, FSID_NUM, root, 17 in the CPU's byte order.
ROOT="8 :0100010011000000"

# lookup XID NAME: LOOKUP of a file in the export's root
lookup() {
	echo "$(plain_call "$1") $(nfs_call "$1" 3 $LOOKUP) $ROOT /$2"
}

# found XID: the answer: NFS3_OK and the file handle. $FOUND is that handle, until the
# next message is received.
found() {
	echo "$(plain_reply "$1" .) $(accepted "$1") 0 ..."
}

# NFSv4.0. No COMPOUND has a tag.

# compound XID COUNT OPERATION...: a COMPOUND of so many operations
compound() {
	echo "$(nfs_call "$1" 4 $COMPOUND) 0 0 ${*:2}"
}

# compounded XID COUNT RESULT...: the answer: NFS4_OK, no tag, so many results
compounded() {
	echo "$(accepted "$1") 0 0 ${*:2}"
}

# find_file NAME: three operations that look up a file from the root of all exports;
# FILE_FOUND is their results.
find_file() {
	echo "$OP_PUTROOTFH $OP_LOOKUP $EXPORT $OP_LOOKUP /$1"
}
FILE_FOUND="$OP_PUTROOTFH 0 $OP_LOOKUP 0 $OP_LOOKUP 0"

# read_file NAME COUNT: find a file and READ it from its beginning. The stateid of all
# ones allows that although others have locks.
read_file() {
	echo "$(find_file "$1") $OP_READ $(repeat 4 0xffffffff) 0 0 $2"
}

# file_read EOF LENGTH: the results: NFS4_OK. The data may follow.
file_read() {
	echo "$FILE_FOUND $OP_READ 0 $1 $2"
}

# NFSv4 with sessions

# compound_in MINOR XID COUNT OPERATION...: a COMPOUND of NFSv4.MINOR
compound_in() {
	echo "$(nfs_call "$2" 4 $COMPOUND) 0 $1 ${*:3}"
}

# send_compound MINOR XID COUNT OPERATION...: a script line that sends it
send_compound() {
	echo "send $(plain_call "$2") $(compound_in "$@")"
}

# expect_compound XID COUNT RESULT...: a script line that expects the answer
expect_compound() {
	echo "expect $(plain_reply "$1" .) $(compounded "$@")"
}

# sequence NUMBER: SEQUENCE of the COMPOUND with this number in the first slot
sequence() {
	echo "$OP_SEQUENCE $SESSION $1 0 0 0"
}

# sequence_done NUMBER: the result
sequence_done() {
	echo "$OP_SEQUENCE 0 . . . . $1 0 . . ."
}

# session MINOR XID OWNER FLAGS: script lines that create a session. With 2 as FLAGS the
# server calls back on this connection, with AUTH_NONE. The attributes of a channel are
# header padding, the longest Call, the longest Reply, the longest Reply to be cached,
# operations, slots, and no RDMA IRD. nfsd answers READLINK only if a Reply may have a page more
# than the link needs.
session() {
	local fore="0 65536 131072 4096 16 4 0" back="0 4096 4096 0 2 1 0"
	# Verifier, owner, flags, no state protection, no implementation id
	send_compound "$1" "$2" 1 $OP_EXCHANGE_ID 0 "$2" "/scripted.$3" 0 0 0
	expect_compound "$2" 1 $OP_EXCHANGE_ID 0 ...
	# Client id and sequence number from the answer
	send_compound "$1" "$2" 1 $OP_CREATE_SESSION "$(received 11-13)" "$4" "$fore" "$back" $CB_PROGRAM 1 0
	expect_compound "$2" 1 $OP_CREATE_SESSION 0 . . . . . "$4" ...
	send_compound "$1" "$2" 2 "$(sequence 1)" $OP_RECLAIM_COMPLETE 0
	expect_compound "$2" 2 "$(sequence_done 1)" $OP_RECLAIM_COMPLETE 0
}

# open_file XID FILE: script lines that open a file in such a session, with its second
# COMPOUND: READ, no DENY, an owner, no CREATE, by name
open_file() {
	send_compound 1 "$1" 4 "$(sequence 2)" $OP_PUTROOTFH $OP_LOOKUP $EXPORT \
		$OP_OPEN 0 1 0 0 0 /owner 0 0 "/$2"
	expect_compound "$1" 4 "$(sequence_done 2)" $OP_PUTROOTFH 0 $OP_LOOKUP 0 $OP_OPEN 0 ...
}

# cb_null XID: xid, CALL, rpcvers 2, prog, vers 1, NULL, AUTH_NONE twice
cb_null() {
	echo "$1 0 2 $CB_PROGRAM 1 $NULL 0 0 0 0"
}

# octets FILE: the octets of a file as one word of a script
octets() {
	echo ":$(od -An -v -tx1 "$1" | tr -d ' \n')"
}

# size MESSAGE: the octets of an RPC message: four for each word, and those of strings
size() {
	local word words octets=0
	read -ra words <<<"$*"
	for word in "${words[@]}"; do
		octets=$((octets + 4))
		[[ $word != /* ]] || octets=$((octets + ((${#word} + 2) & ~3)))
	done
	echo $octets
}

use_version 1
