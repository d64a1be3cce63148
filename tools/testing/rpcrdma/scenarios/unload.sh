# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the module stays while somebody uses it, and goes whenever nobody does
# guests:  um um-debug/rxe
# also:    um-debug debian-6.1 debian-6.12 smp-debug
# devices: rxe siw

. "${BASH_SOURCE%/*}/../guest/faults.sh"

client() {
	client_begin
	check "a listener keeps it" not modprobe -r rpcrdma
	check "without the listener it goes" stop_and_unload
	need "listen again" load_and_listen

	need "mount" nfs_mount 4.2 rdma /mnt
	check "a connection keeps it" not modprobe -r rpcrdma
	check "umount" umount /mnt
	check "after a mount it goes" stop_and_unload
	need "listen again" load_and_listen

	need "mount" nfs_mount 3 rdma /mnt
	need "the server stops" rpc.nfsd 0
	check "a mount keeps it" not modprobe -r rpcrdma
	check "umount -f" wait_for $PATIENCE umount -f /mnt
	check "after a dead mount it goes" unload
	need "listen again" load_and_listen

	need "mount" nfs_mount 3 rdma /mnt
	check "the last I/O is hardly over when it goes" hurry
	need "listen again" load_and_listen
	device_first
}

stop_and_unload() {
	rpc.nfsd 0 && unload
}

load_and_listen() {
	modprobe rpcrdma && server_start
}

hurry() {
	dd if=/dev/zero of=/mnt/data bs=1M count=8 oflag=direct && umount /mnt && stop_and_unload
}

# What is left of connections goes with their device.
device_first() {
	need "mount" nfs_mount 3 rdma /mnt
	check "the device goes" rdma link delete "${DEVICE}0"
	check "a mount without a device keeps it" not modprobe -r rpcrdma
	check "umount -f" wait_for $PATIENCE umount -f /mnt
	check "without a device it goes" stop_and_unload
	need "the device comes back" rdma_up
	need "listen again" load_and_listen
}
