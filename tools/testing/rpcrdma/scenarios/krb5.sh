# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   sec=krb5, krb5i and krb5p work; protected data have no Read or Write chunk of their own
# guests:  um
# also:    debian-6.12
# devices: rxe siw
# turns:   sunrpc's rpcsec_gss
# limit:   90
# skip:    * siw * inbox: siw may not deliver a first message, and only ours has a workaround

. "${BASH_SOURCE%/*}/../guest/forms.sh"
. "${BASH_SOURCE%/*}/../guest/krb5.sh"
. "${BASH_SOURCE%/*}/../guest/peer.sh"

SEC=krb5:krb5i:krb5p
# What each job of verified I/O writes
SIZE=2m
TRACE=/sys/kernel/tracing/trace
# A Call also waits for the daemons, which make a context.
PATIENCE=12

server() {
	server_begin
	kerberos_up
}

client() {
	local vers sec
	client_begin
	# A length that is not a multiple of four
	head -c 4194307 /dev/urandom >/tmp/file
	for vers in 3 4.2; do
		for sec in krb5 krb5i krb5p; do
			use $vers $sec
		done
	done
	[ "$MODULE" != inbox ] || return
	contexts_begin
	many_jobs
	need "both ends may use version 2" versions_up_to 2 2
	for sec in krb5 krb5i krb5p; do
		use 4.2 $sec 2
	done
	refused_with_context
}

# use VERSION SEC [RPCRDMA-VERSION]: copy a file both ways, and check the forms, and in which
# version of RPC-over-RDMA the messages are.
use() {
	local what="v$1, $2${3:+, protocol version $3}" call=long reply=reply
	[ "$2" != krb5 ] || call=read reply=write
	# Made first, because making a file uses other forms.
	: >$LOCAL/file
	check "$what: mount" nfs_mount "$1" rdma /mnt "sec=$2" || return
	check "$what over rdma is what is mounted" mounted_as /mnt "$1" rdma
	check "$what: the mount has sec=$2" grep -q " /mnt nfs.*,sec=$2," /proc/mounts
	check "$what: copy in" traced copy_in
	[ "$MODULE" = inbox ] || used_forms "$what: copy in" $call inline
	[ "$MODULE" = inbox ] || check "$what: copy in: the version" is "${3:-1}" "$(versions_traced)"
	check "$what: copy out" traced copy_out
	[ "$MODULE" = inbox ] || used_forms "$what: copy out" $reply $reply
	[ "$MODULE" = inbox ] || check "$what: copy out: the version" is "${3:-1}" "$(versions_traced)"
	if [ "$2" != krb5 ]; then
		check "$what: a long directory" long_directory /mnt/long
		check "$what: verified I/O, 512 B to 1 MiB" \
			fio_verify --direct=1 --bsrange=512-1m --numjobs=2 --size=$SIZE
	fi
	if [ "$MODULE" = inbox ]; then
		check "$what: umount" unmount /mnt
		return
	fi
	check "$what: umount" traced contexts_end
	check "$what: that destroys a context" grep rpcgss_ctx_destroy: /tmp/trace
	# With NFSv3 no Call is sent any more when the context is destroyed.
	[ "$1" != 3 ] || return
	no_chunks "$what: umount" call
	no_chunks "$what: umount" reply
}

# RFC 8166 section 8.2.2: the Calls by which RPCSEC_GSS makes and destroys a context must not
# be reduced.

# no_chunks WHAT call|reply: all traced Calls or Replies were inline.
no_chunks() {
	local way
	for way in sent received; do
		check "$1: each $2 $way was inline" is inline "$(forms "$2" $way)"
	done
}

# The last Calls of a transport destroy the context, after umount has returned.
contexts_end() {
	local event=/sys/kernel/tracing/events/rpcgss/rpcgss_ctx_destroy/enable status
	echo 1 >$event
	unmount /mnt && within 8 not rdma_transports
	status=$?
	echo 0 >$event
	return $status
}

# rpc.gssd makes contexts over TCP, so the peer tries to make one over RDMA, with a random
# token: RPCSEC_GSS, version 1, INIT, number 0, no service, no handle, no verifier.
contexts_begin() {
	local xid=0x17171717 init
	init="$xid 0 2 100003 3 $NULL 6 20 1 1 0 1 0 0 0"
	need "prepare the peer" peer_up
	context_begins $xid "a Call that makes a context" \
		"send $(start $xid $RDMA_MSG) 0 $(write_chunk @b) 0 $(reply_chunk @c) \
			$init 64 $(repeat 16 $xid)"
	init="$init 1200 $(repeat 300 $xid)"
	context_begins $xid "the same with a long token, as a Long Call" "fill a 0 $init" \
		"send $(start $xid $RDMA_NOMSG) $(read_segment 0 "@a+0,$(size "$init")") \
			0 $(write_chunk @b) 0 $(reply_chunk @c)"
}

# context_begins XID WHAT LINE...: the answer is inline, and the chunks are returned unused.
context_begins() {
	check "$2: the answer is inline, no chunk is used" peer "private $PRIVATE" \
		"connect $SERVER4 $PORT" "buffer a 4096" "buffer b 4096" "buffer c 4096" "${@:3}" \
		"expect $1 1 . $RDMA_MSG 0 $(write_chunk @b+0,0) 0 $(reply_chunk @c+0,0) \
			$(accepted "$1") ..." "holds b 0 0xeeeeeeee ..." "holds c 0 0xeeeeeeee ..."
}

# nfsd closes the connection when its threads reorder Calls by more than the window of
# RPCSEC_GSS, see known-failures.rst. It traces that, and nothing else may end a connection. Not
# with NFSv3: there nfsd drops a repeated Call that it still executes, and the client waits a
# minute for its time-out.
many_jobs() {
	local event=/sys/kernel/tracing/events/rpcgss/rpcgss_svc_seqno_low/enable more
	need "64 jobs: mount v4.2" nfs_mount 4.2 rdma /mnt sec=krb5i
	need "64 jobs: RPCs may be sent again" limit_rpcs $PATIENCE_RESENT
	echo >$TRACE
	echo 1 >$event
	check "64 jobs: verified I/O" fio_verify --direct=1 --bsrange=4k-64k --numjobs=64 --size=256k
	echo 0 >$event
	more=$(($(connections_made) - 1))
	say "64 jobs: $more more connections"
	check "64 jobs: nfsd closed each connection that was lost" \
		[ $more -le "$(grep -c rpcgss_svc_seqno_low: $TRACE)" ]
	check "64 jobs: no Call was answered too late" no_major_timeout
	check "64 jobs: umount" umount /mnt
	need "no other RPCs" limit_rpcs $PATIENCE
}

# No Call of the present mounts has had a major time-out, by their statistics.
no_major_timeout() {
	awk '$1 ~ /^[A-Z0-9_]+:$/ && $4 > 0 { print; bad = 1 } END { exit bad }' /proc/self/mountstats
}

# A Call with a sequence number of RPCSEC_GSS is refused on a new connection, and sent again
# with another one.
refused_with_context() {
	local what="a server that has got version 1"
	: >$LOCAL/file
	need "$what: mount" nfs_mount 3 rdma /mnt sec=krb5p
	check "$what: copy in" copy_in
	need "$what: the setting" tune svc_rdma/version 1
	need "$what: the connection is dropped" wait_for 20 drop_connection "$(the_transport)"
	check "$what: copy out" traced copy_out
	check "$what: one Call in version 2" is 1 "$(calls_traced 2)"
	check "$what: one new connection" is 2 "$(connections_made)"
	check "$what: umount" umount /mnt
}

copy_in() {
	cp /tmp/file /mnt/file && same_sum /tmp/file $LOCAL/file
}

copy_out() {
	drop_caches
	same_sum /tmp/file /mnt/file
}

server_done() {
	kerberos_down
	server_end
}
