# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   with sec=krb5 a Call that the server drops goes to another connection after a minute
# guests:  um/rxe
# also:    um-7-debug/rxe
# devices: rxe
# modules: ours
# limit:   150
# faults:  a service stands still
#
# As in faults-frozen-long, but the file system is frozen for some seconds only. RPCSEC_GSS takes
# no Call twice, so the server cannot try it again itself.

. "${BASH_SOURCE%/*}/faults-frozen-long.sh"
. "${BASH_SOURCE%/*}/../guest/krb5.sh"

SEC=krb5

client() {
	client_begin
	kerberos_up
	head -c 64k /dev/urandom >/tmp/data
	need "mount" nfs_mount 3 rdma /mnt sec=krb5,timeo=3000
	need "make a file" truncate -s 64k /mnt/file.1
	check "freeze the export" fsfreeze -f $LOCAL
	rm -f /tmp/written.*
	write_one 1 &
	sleep 2
	dmesg --clear
	need "break the connection" device_bounce
	check "the next connection is made" wait_for 20 log_has accepted
	sleep 2
	check "unfreeze the export" fsfreeze -u $LOCAL
	check "the server closes the connection" wait_for 90 log_has "$CLOSED"
	check "after about a minute" closed_after $MINUTE
	check "the writer ends" wait_for $RECOVERY test -s /tmp/written.1
	check "with success" is 0 "$(cat /tmp/written.1)"
	check "the data are correct" cmp /tmp/data $LOCAL/file.1
	check "two new connections" is 3 "$(connections_made)"
	check "umount" umount /mnt
	kerberos_down
}
