# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   sec=krb5, krb5i and krb5p; what is protected has no Read or Write chunk of its own
# guests:  um
# also:    debian-6.12
# devices: rxe siw
# skip:    * siw * inbox: siw may leave a first message lying, and only ours has a remedy

. "${BASH_SOURCE%/*}/../guest/forms.sh"

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
	check "stop what Kerberos needs" realm_down
	server_end
}

realm_down() {
	pkill -x 'rpc.gssd|rpc.svcgssd|krb5kdc'
	wait_for 5 not pgrep -x 'rpc.gssd|rpc.svcgssd|krb5kdc' && kdb5_util destroy -f &&
		rm /etc/krb5.keytab && kill "$(cat /run/syslogd.pid)"
}
