# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   without a server a soft mount fails, and a hard one can be unmounted by force
# guests:  um
# also:    um-debug debian-6.1 debian-6.12 smp-debug
# devices: rxe siw
# limit:   90

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# Two seconds, and two more, until sunrpc calls it a time-out
QUICKLY=timeo=20,retrans=1

client() {
	local vers
	client_begin
	for vers in 3 4.2; do
		soft $vers
		dead $vers force -f
	done
	# What is left of a v4 mount would ask for its server for minutes.
	dead 3 lazily -l
}

soft() {
	need "soft v$1: mount" nfs_mount "$1" rdma /mnt soft,$QUICKLY
	check "soft v$1: I/O" io_once
	need "soft v$1: stop the server" rpc.nfsd 0
	check "soft v$1: I/O fails" not io_once
	need "soft v$1: start the server" server_start
	check "soft v$1: I/O" wait_for $PATIENCE io_once
	check "soft v$1: umount" umount /mnt
}

# dead VERSION HOW OPTION: somebody hangs in I/O meanwhile.
dead() {
	local what="v$1, $2" writer
	need "$what: mount" nfs_mount "$1" rdma /mnt $QUICKLY
	check "$what: I/O" io_once
	need "$what: stop the server" rpc.nfsd 0
	io_once >/tmp/writer.log 2>&1 &
	writer=$!
	sleep 2
	check "$what: I/O waits" kill -0 $writer
	check "$what: umount $3" wait_for $PATIENCE unmounted "$3"
	# Of a mount that went lazily nothing is left when nobody uses it any more.
	pkill -9 -x dd
	check "$what: the writer ends" wait_for $PATIENCE not kill -0 $writer
	need "$what: start the server" server_start
}

# The first time ends the RPCs of whoever keeps it busy. Nothing here may ask the
# server, as looking at /mnt would.
unmounted() {
	umount "$1" /mnt || not grep -q ' /mnt nfs' /proc/mounts
}

io_once() {
	dd if=/dev/zero of=/mnt/data bs=64k count=1 oflag=direct
}
