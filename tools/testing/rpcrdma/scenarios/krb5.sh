# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   sec=krb5, krb5i and krb5p; what is protected has no Read or Write chunk of its own
# guests:  um
# also:    debian-6.12
# devices: rxe siw
# skip:    * siw * inbox: siw may leave a first message lying, and only ours has a remedy

. "${BASH_SOURCE%/*}/../guest/forms.sh"
. "${BASH_SOURCE%/*}/../guest/peer.sh"

SEC=krb5:krb5i:krb5p

server() {
	server_begin
	modprobe -q rpcsec_gss_krb5
	need "a log" /lab/guest/busybox syslogd -O /lab/out/krb5.log
	need "a realm, and this host in it" realm_up
	need "a KDC" krb5kdc
	need "rpc.svcgssd" rpc.svcgssd
	# It asks for contexts by TCP, whatever the mount uses.
	need "rpc.gssd" rpc.gssd -M -p /var/lib/nfs/rpc_pipefs
}

# One host is both client and server, with one key.
realm_up() {
	local host principal
	host=$(hostname)
	principal=nfs/$host
	printf '%s\n' "127.0.0.1 localhost" "$SERVER4 $host" >/etc/hosts
	cat >/etc/krb5.conf <<-END
		[libdefaults]
		default_realm = LAB
		dns_canonicalize_hostname = false
		rdns = false
		qualify_shortname = ""
		[realms]
		LAB = {
			kdc = $SERVER4
		}
		[domain_realm]
		$host = LAB
	END
	cat >/etc/idmapd.conf <<-END
		[Translation]
		GSS-Methods = static
		[Static]
		$principal@LAB = root
	END
	kdb5_util create -s -P lab && kadmin.local addprinc -randkey "$principal" &&
		kadmin.local ktadd "$principal"
}

client() {
	local vers sec
	client_begin
	# Its length is not a multiple of four.
	head -c 4194307 /dev/urandom >/tmp/file
	for vers in 3 4.2; do
		for sec in krb5 krb5i krb5p; do
			use $vers $sec
		done
	done
	[ "$MODULE" != inbox ] || return
	contexts_begin
	many_jobs
}

use() {
	local what="v$1, $2" call=long reply=reply
	[ "$2" != krb5 ] || call=read reply=write
	# To make a file takes other forms than to use it.
	: >$LOCAL/file
	check "$what: mount" nfs_mount "$1" rdma /mnt "sec=$2" || return
	check "$what over rdma is what is mounted" mounted_as /mnt "$1" rdma
	check "$what: that is in force" grep -q " /mnt nfs.*,sec=$2," /proc/mounts
	check "$what: copy in" traced copy_in
	[ "$MODULE" = inbox ] || travelled "$what: copy in" $call inline
	check "$what: copy out" traced copy_out
	[ "$MODULE" = inbox ] || travelled "$what: copy out" $reply $reply
	if [ "$2" != krb5 ]; then
		check "$what: a long directory" long_directory /mnt/long
		check "$what: verified I/O, 512 B to 1 MiB" \
			fio_verify --direct=1 --bsrange=512-1m --numjobs=2 --size=2m
	fi
	if [ "$MODULE" = inbox ]; then
		check "$what: umount" umount /mnt
		return
	fi
	check "$what: umount" traced contexts_end
	check "$what: that ends a context" grep rpcgss_ctx_destroy: /tmp/trace
	no_chunks "$what: umount" call
	no_chunks "$what: umount" reply
}

# RFC 8166 section 8.2.2: what RPCSEC_GSS says for itself, as it makes a context or
# destroys it, is not to be reduced.

# no_chunks WHAT call|reply: with NFSv3 there may be none at all by this connection
no_chunks() {
	local way
	for way in sent received; do
		check "$1: each $2 $way was inline" not grep -qv inline <(forms "$2" $way)
	done
}

# A context is destroyed after umount has returned, by the transport's last Calls.
contexts_end() {
	local event=/sys/kernel/tracing/events/rpcgss/rpcgss_ctx_destroy/enable status
	echo 1 >$event
	umount /mnt && wait_for 10 no_transport
	status=$?
	echo 0 >$event
	return $status
}

no_transport() {
	not compgen -G '/sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma'
}

# rpc.gssd makes contexts by TCP, so the peer asks for one, by a token that means
# nothing: RPCSEC_GSS, version 1, INIT, number 0, no service, no handle, no verifier.
contexts_begin() {
	local xid=0x17171717 init
	init="$xid 0 2 100003 3 $NULL 6 20 1 1 0 1 0 0 0"
	need "the peer" peer_up
	context_begins $xid "what begins a context" \
		"send $(start $xid $RDMA_MSG) 0 $(write_chunk @b) 0 $(reply_chunk @c) \
			$init 64 $(repeat 16 $xid)"
	init="$init 1200 $(repeat 300 $xid)"
	context_begins $xid "that, with a long token, as a Long Call" "fill a 0 $init" \
		"send $(start $xid $RDMA_NOMSG) $(read_segment 0 "@a+0,$(size "$init")") \
			0 $(write_chunk @b) 0 $(reply_chunk @c)"
}

# context_begins XID WHAT LINE...
context_begins() {
	check "$2: is answered inline, no chunk is used" peer "private $PRIVATE" \
		"connect $SERVER4 $PORT" "buffer a 4096" "buffer b 4096" "buffer c 4096" "${@:3}" \
		"expect $1 1 . $RDMA_MSG 0 $(write_chunk @b+0,0) 0 $(reply_chunk @c+0,0) \
			$(accepted "$1") ..." "holds b 0 0xeeeeeeee ..." "holds c 0 0xeeeeeeee ..."
}

# A Call that others overtake by more than the window of RPCSEC_GSS costs the
# connection: nfsd closes it.
many_jobs() {
	local before
	need "64 jobs: mount v3" nfs_mount 3 rdma /mnt sec=krb5i
	before=$(connections_made)
	check "64 jobs: verified I/O" fio_verify --direct=1 --bsrange=4k-64k --numjobs=64 --size=256k
	say "64 jobs: $(($(connections_made) - before)) more connections"
	if [ "$DEVICE" = siw ]; then
		skip "64 jobs: one more connection at most" "it takes two now and then, see testing.rst"
	else
		check "64 jobs: one more connection at most" \
			[ $(($(connections_made) - before)) -le 1 ]
	fi
	check "64 jobs: umount" umount /mnt
}

copy_in() {
	cp /tmp/file /mnt/file && same_sum /tmp/file $LOCAL/file
}

copy_out() {
	drop_caches
	same_sum /tmp/file /mnt/file
}

server_done() {
	check "stop what Kerberos needs" realm_down
	server_end
}

realm_down() {
	pkill -x 'rpc.gssd|rpc.svcgssd|krb5kdc'
	wait_for 5 not pgrep -x 'rpc.gssd|rpc.svcgssd|krb5kdc' && kdb5_util destroy -f &&
		rm /etc/krb5.keytab && kill "$(cat /run/syslogd.pid)"
}
