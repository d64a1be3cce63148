# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   I/O continues after the network was down, and after the device was removed
# guests:  um
# also:    um/mem um-debug/siw um-7-debug/rxe um-7-smp debian-6.1 debian-6.12 smp-debug/mem
# also:    debian-13-rt/rxe debian-13-rt/mem
# devices: rxe siw mem
# limit:   90
# faults:  the link goes down

. "${BASH_SOURCE%/*}/../guest/faults.sh"

PATIENCE=$PATIENCE_RESENT
# The test device loses messages of the CM while the link is down. If the server's end breaks first,
# the client notices after two periods of keepalive.
[ "$DEVICE" != mem ] || PATIENCE=35

# Client and server use the same device: both lose it at the same time.
client() {
	local vers
	client_begin
	for vers in 3 4.2; do
		need "mount v$vers" nfs_mount $vers rdma /mnt
		if [ "$DEVICE" = rxe ]; then
			skip "v$vers: the network goes down and comes up" \
				"rxe makes no connections after that, with the kernel's own module as well"
		else
			survives "v$vers: the network goes down and comes up" link_bounce
		fi
		reconnects "v$vers: the device is deleted and added again" device_bounce
		check "umount v$vers" umount /mnt
	done
}
