# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios with Kerberos: a realm in the guest, and the daemons of both ends.

# kerberos_up [USER]: after the NFS server was started; the user has credentials as well
kerberos_up() {
	modprobe -q rpcsec_gss_krb5
	need "start syslogd" /lab/guest/busybox syslogd -O /lab/out/krb5.log
	need "make a realm with this host in it" realm_up "$@"
	need "start the KDC" krb5kdc
	need "start rpc.svcgssd" rpc.svcgssd
	# It makes contexts over TCP, whatever the mount uses.
	need "start rpc.gssd" rpc.gssd -M -p /var/lib/nfs/rpc_pipefs
}

# One host is both client and server and has one key.
realm_up() {
	local host principal user
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
		kadmin.local ktadd "$principal" || return
	for user; do
		echo "$user@LAB = $user" >>/etc/idmapd.conf
		kadmin.local addprinc -pw "$user" "$user" || return
	done
}

# log_in USER: get credentials, once there is a KDC.
log_in() {
	setpriv --reuid "$1" --regid "$1" --clear-groups kinit "$1" <<<"$1"
}

kerberos_down() {
	check "stop the Kerberos daemons" realm_down
}

realm_down() {
	pkill -x 'rpc.gssd|rpc.svcgssd|krb5kdc'
	wait_for 5 not pgrep -x 'rpc.gssd|rpc.svcgssd|krb5kdc' && kdb5_util destroy -f &&
		rm /etc/krb5.keytab && kill "$(cat /run/syslogd.pid)"
}
