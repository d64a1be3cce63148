# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   I/O goes on after the network was down, and after its device was gone
# guests:  um smp-debug
# also:    um-debug debian-6.1 debian-6.12
# devices: rxe siw

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# Client and server are on this device: both lose it at a time.
client() {
	client_begin
	need "mount v3" nfs_mount 3 rdma /mnt
	reconnects "v3: the device is deleted and added again" device_bounce
	check "umount v3" umount /mnt
	need "mount v4.2" nfs_mount 4.2 rdma /mnt
	if [ "$DEVICE" = rxe ]; then
		skip "v4.2: the network goes down and comes up" \
			"afterwards rxe connects no more, with the kernel's own module neither"
	else
		survives "v4.2: the network goes down and comes up" link_bounce
	fi
	reconnects "v4.2: the device is deleted and added again" device_bounce
	check "umount v4.2" umount /mnt
}
