# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# What scenarios are written with that use the scripted peer, ../peer/peer.c:
# RPC-over-RDMA messages in its words. Each function prints the fields that it
# is named for, in the order of RFC 8166 section 4.1.2; a segment is "@NAME" or
# "HANDLE LENGTH OFFSET-HIGH OFFSET-LOW".

# rdma_proc, section 4.2.4; rdma_err, section 4.5
RDMA_MSG=0 RDMA_NOMSG=1 RDMA_MSGP=2 RDMA_DONE=3 RDMA_ERROR=4
ERR_VERS=1 ERR_CHUNK=2

# Read list, Write list, and Reply chunk, none of them present
NO_CHUNKS="0 0 0"

# RFC 8797: format identifier, version 1, flags, and 16384 octets both ways. R is
# not set, as no buffer of the peer can be invalidated from afar.
PRIVATE="f6ab0e18 01 00 0f 0f"
# The same with R: a responder that invalidates what its requester has offered
PRIVATE_INVALIDATES="f6ab0e18 01 01 0f 0f"

# NFSv3 and NFSv4 procedures, NFSv4 operations
NULL=0 GETATTR=1 LOOKUP=3 ACCESS=4 READ=6 WRITE=7 SYMLINK=10 READDIRPLUS=17 FSSTAT=18 FSINFO=19 PATHCONF=20
COMPOUND=1
OP_DELEGRETURN=8 OP_LOOKUP=15 OP_OPEN=18 OP_PUTFH=22 OP_PUTROOTFH=24 OP_READ=25 OP_READLINK=27
OP_WRITE=38 OP_EXCHANGE_ID=42 OP_CREATE_SESSION=43 OP_DESTROY_SESSION=44 OP_SEQUENCE=53
OP_DESTROY_CLIENTID=57 OP_RECLAIM_COMPLETE=58 OP_READ_PLUS=68

# What servers call back: the program, its COMPOUND, operations
CB_PROGRAM=0x40000000 CB_COMPOUND=1
OP_CB_RECALL=4 OP_CB_SEQUENCE=11

# Handle, length, and 64 bits of offset that nobody has registered
NOWHERE="0xdeadbeef 4096 0 0x10000"

peer_up() {
	modprobe -q -a ib_uverbs rdma_ucm
	cp /lab/peer /tmp/peer && wait_for 5 test -c /dev/infiniband/rdma_cm &&
		wait_for 5 test -c /dev/infiniband/uverbs0
}

# peer LINE...: run a script to its end.
peer() {
	printf '%s\n' "patience $(seconds 20)" "$@" | /tmp/peer
}

# peer_start LINE...: run one that listens, and serves until peer_stop.
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
	check "the peer has no complaints" peer_was_well $?
}

# peer_was_well STATUS [LOG]
peer_was_well() {
	[ "$1" = 0 ] || { cat "${2:-/tmp/peer.log}"; return 1; }
}

# repeat N WORDS
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

# reply_chunk SEGMENT...
reply_chunk() {
	echo "1 $(chunk "$@")"
}

# RPC, RFC 5531 section 9

# null_call XID: xid, CALL, rpcvers 2, prog NFS, vers 3, NULL, AUTH_NONE twice
null_call() {
	echo "$1 0 2 100003 3 $NULL 0 0 0 0"
}

# nfs_call XID VERS PROC: the same with AUTH_SYS: stamp 0, no machine name, uid
# 0, gid 0, no further gids
nfs_call() {
	echo "$1 0 2 100003 $2 $3 1 20 0 0 0 0 0 0 0"
}

# accepted XID: xid, REPLY, MSG_ACCEPTED, AUTH_NONE, SUCCESS
accepted() {
	echo "$1 1 0 0 0 0"
}

# garbage_args XID: the same with GARBAGE_ARGS
garbage_args() {
	echo "$1 1 0 0 0 4"
}

# Whole messages

null_message() {
	echo "$(start "$1" $RDMA_MSG) $NO_CHUNKS $(null_call "$1")"
}

# What servers answer that; any credits
null_reply() {
	echo "$1 1 . $RDMA_MSG $NO_CHUNKS $(accepted "$1")"
}

# err_chunk XID: rdma_xid, rdma_vers, rdma_credit, RDMA_ERROR, ERR_CHUNK
err_chunk() {
	echo "$1 1 . $RDMA_ERROR $ERR_CHUNK"
}

# The root of the export in NFSv3: it has fsid=17, and so a handle without any
# inode: version 1, no authentication, FSID_NUM, root, 17 as this machine has it.
ROOT="8 :0100010011000000"

# lookup XID NAME: of a file there
lookup() {
	echo "$(start "$1" $RDMA_MSG) $NO_CHUNKS $(nfs_call "$1" 3 $LOOKUP) $ROOT /$2"
}

# What answers that: NFS3_OK, and the file handle, which $FOUND stands for as
# long as no other message is received
found() {
	echo "$1 1 . $RDMA_MSG $NO_CHUNKS $(accepted "$1") 0 ..."
}
FOUND="<14+"

# NFSv4.0. A COMPOUND has no tag.

# compound XID OPERATIONS OPERATION...: so many operations
compound() {
	echo "$(nfs_call "$1" 4 $COMPOUND) 0 0 ${*:2}"
}

# What answers that: NFS4_OK, no tag, so many operations
compounded() {
	echo "$(accepted "$1") 0 0 ${*:2}"
}

# Three operations each: the file is found from the root of all exports.
find_file() {
	echo "$OP_PUTROOTFH $OP_LOOKUP $EXPORT $OP_LOOKUP /$1"
}
FILE_FOUND="$OP_PUTROOTFH 0 $OP_LOOKUP 0 $OP_LOOKUP 0"

# read_file NAME COUNT: from its beginning. The stateid of all ones READs while
# others have locks.
read_file() {
	echo "$(find_file "$1") $OP_READ $(repeat 4 0xffffffff) 0 0 $2"
}

# file_read EOF LENGTH: NFS4_OK; its data may follow.
file_read() {
	echo "$FILE_FOUND $OP_READ 0 $1 $2"
}

# NFSv4 with sessions

# compound_in MINOR XID OPERATIONS OPERATION...: a COMPOUND of NFSv4.MINOR
compound_in() {
	echo "$(nfs_call "$2" 4 $COMPOUND) 0 $1 ${*:3}"
}

# ask MINOR XID OPERATIONS OPERATION...: a line that sends it
ask() {
	echo "send $(start "$2" $RDMA_MSG) $NO_CHUNKS $(compound_in "$@")"
}

# told XID OPERATIONS RESULT...: a line that expects the answer
told() {
	echo "expect $1 1 . $RDMA_MSG $NO_CHUNKS $(compounded "$@")"
}

# The sessionid, if what was received last answers a CREATE_SESSION or SEQUENCE
SESSION="<18-21"

# sequence NUMBER: the first slot's next COMPOUND
sequence() {
	echo "$OP_SEQUENCE $SESSION $1 0 0 0"
}

# What answers that
sequence_done() {
	echo "$OP_SEQUENCE 0 . . . . $1 0 . . ."
}

# session MINOR XID OWNER FLAGS: lines that make one. 2 as FLAGS has the server call
# back by this connection, with AUTH_NONE. Of a channel's attributes these are
# header padding, the longest Call, the longest Reply, the longest one to be kept,
# operations, and slots.
session() {
	local fore="0 65536 65536 4096 16 4 0" back="0 4096 4096 0 2 1 0"
	# Verifier and owner, flags, no state protection, no implementation
	ask "$1" "$2" 1 $OP_EXCHANGE_ID 0 "$2" "/scripted.$3" 0 0 0
	told "$2" 1 $OP_EXCHANGE_ID 0 ...
	# Client id and sequence number as they came
	ask "$1" "$2" 1 $OP_CREATE_SESSION "<18-20" "$4" "$fore" "$back" $CB_PROGRAM 1 0
	told "$2" 1 $OP_CREATE_SESSION 0 . . . . . "$4" ...
	ask "$1" "$2" 2 "$(sequence 1)" $OP_RECLAIM_COMPLETE 0
	told "$2" 2 "$(sequence_done 1)" $OP_RECLAIM_COMPLETE 0
}

# open_file XID FILE: lines that open a file of the export by such a session, its
# second COMPOUND: READ and no DENY, an owner, no CREATE, by its name
open_file() {
	ask 1 "$1" 4 "$(sequence 2)" $OP_PUTROOTFH $OP_LOOKUP $EXPORT \
		$OP_OPEN 0 1 0 0 0 /owner 0 0 "/$2"
	told "$1" 4 "$(sequence_done 2)" $OP_PUTROOTFH 0 $OP_LOOKUP 0 $OP_OPEN 0 ...
}

# cb_null XID: xid, CALL, rpcvers 2, prog, vers 1, NULL, AUTH_NONE twice
cb_null() {
	echo "$1 0 2 $CB_PROGRAM 1 $NULL 0 0 0 0"
}

# Octets of a file, as one word
octets() {
	echo ":$(od -An -v -tx1 "$1" | tr -d ' \n')"
}

# What an RPC message takes: four octets for each word, and what is in strings
size() {
	local word words octets=0
	read -ra words <<<"$*"
	for word in "${words[@]}"; do
		octets=$((octets + 4))
		[[ $word != /* ]] || octets=$((octets + ((${#word} + 2) & ~3)))
	done
	echo $octets
}
