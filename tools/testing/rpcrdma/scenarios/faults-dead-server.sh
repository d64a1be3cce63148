# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   while the server is stopped a soft mount fails, and a hard one can be unmounted or waits
# guests:  um
# also:    um/mem um-debug/rxe um-7-debug/siw debian-6.1
# devices: rxe siw mem
# turns:   sunrpc's time-outs
# limit:   90
# faults:  the server ends

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# sunrpc reports a timeout after two seconds and two more.
SHORT=timeo=20,retrans=1
# More than the first credits
READERS=8

client() {
	local vers
	client_begin
	for vers in 3 4.2; do
		soft $vers
		dead $vers -f
	done
	# Not with v4: after umount -l it keeps trying to reach its server for minutes.
	dead 3 -l
	recovers
}

soft() {
	need "soft v$1: mount" nfs_mount "$1" rdma /mnt soft,$SHORT
	check "soft v$1: I/O" io_once
	need "soft v$1: stop the server" rpc.nfsd 0
	check "soft v$1: I/O fails" not io_once
	need "soft v$1: start the server" server_start
	check "soft v$1: I/O" wait_for $RECOVERY io_once
	check "soft v$1: umount" umount /mnt
}

# dead VERSION OPTION: unmount while processes wait for I/O.
dead() {
	local what="v$1, umount $2" writer n
	need "$what: mount" nfs_mount "$1" rdma /mnt $SHORT
	check "$what: I/O" io_once
	need "$what: stop the server" rpc.nfsd 0
	io_once >/tmp/writer.log 2>&1 &
	writer=$!
	for ((n = 0; n < READERS; n++)); do
		dd if=/mnt/data of=/dev/null bs=64k iflag=direct 2>/dev/null &
	done
	sleep 2
	check "$what: I/O waits" is $((READERS + 1)) "$(pgrep -cx dd)"
	[ "$2" != -f ] || check "$what: it ends all that wait" ends_all
	check "$what: it is unmounted" wait_for $RECOVERY unmounted "$2"
	# After umount -l the mount ends when no process uses it any more.
	pkill -9 -x dd
	check "$what: the writer ends" wait_for $RECOVERY not pgrep -x dd
	wait $writer
	check "$what: it was not told that it has written" [ $? != 0 ]
	need "$what: start the server" server_start
}

# In 7.3 the kernel ends only tasks that have a slot.
ends_all() {
	umount -f /mnt
	wait_for 5 not pgrep -x dd
}

# The time-outs of a hard mount are over while it reconnects.
recovers() {
	local what="hard v3, short time-outs" writer
	need "$what: mount" nfs_mount 3 rdma /mnt timeo=2,retrans=1
	check "$what: I/O" io_once
	need "$what: stop the server" rpc.nfsd 0
	io_once late >/tmp/writer.log 2>&1 &
	writer=$!
	sleep 2
	need "$what: start the server" server_start
	check "$what: the writer ends" wait_for $RECOVERY not kill -0 $writer
	wait $writer
	check "$what: it has written" is 0 $?
	check "$what: the server has what it wrote" cmp -n 65536 /dev/zero $LOCAL/late
	check "$what: umount" umount /mnt
}

# unmounted OPTION: the first umount may only end the RPCs that keep the mount busy.
# Nothing here may send a Call, as looking at /mnt would do.
unmounted() {
	umount "$1" /mnt || not grep -q ' /mnt nfs' /proc/mounts
}

# io_once [FILE]: write a file.
io_once() {
	dd if=/dev/zero of="/mnt/${1:-data}" bs=64k count=1 oflag=direct
}
