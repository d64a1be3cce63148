# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the module cannot be unloaded while it is used, and can be when it is not
# guests:  um um-7-debug/rxe um-7-smp/rxe
# also:    um/mem um-debug/rxe um-7-debug um-7-smp debian-6.1 debian-6.12 debian-13-7 smp-debug/rxe
# also:    debian-13-rt/rxe debian-13-7-rt/rxe arm64-64k/rxe
# devices: rxe siw mem
# faults:  the module goes while it is used

. "${BASH_SOURCE%/*}/../guest/faults.sh"

client() {
	client_begin
	check "a listener prevents unloading" not modprobe -r rpcrdma
	check "unload after the listener is closed" stop_and_unload
	need "listen again" load_and_listen

	need "mount" nfs_mount 4.2 rdma /mnt
	check "a connection prevents unloading" not modprobe -r rpcrdma
	check "umount" umount /mnt
	check "unload after umount" stop_and_unload
	need "listen again" load_and_listen

	need "mount" nfs_mount 3 rdma /mnt
	need "stop the server" rpc.nfsd 0
	check "a mount prevents unloading" not modprobe -r rpcrdma
	check "umount -f" wait_for $RECOVERY umount -f /mnt
	check "unload after umount -f" unload
	need "listen again" load_and_listen

	need "mount" nfs_mount 3 rdma /mnt
	check "unload directly after I/O" unload_after_io
	need "listen again" load_and_listen
	unload_without_device
}

stop_and_unload() {
	rpc.nfsd 0 && unload
}

unload_after_io() {
	dd if=/dev/zero of=/mnt/data bs=1M count=8 oflag=direct && umount /mnt && stop_and_unload
}

# Removing the device ends its connections.
unload_without_device() {
	need "mount" nfs_mount 3 rdma /mnt
	check "delete the device" rdma link delete "${DEVICE}0"
	check "a mount without a device prevents unloading" not modprobe -r rpcrdma
	check "umount -f" wait_for $RECOVERY umount -f /mnt
	check "unload without a device" stop_and_unload
	need "add the device again" rdma_up
	need "listen again" load_and_listen
}
