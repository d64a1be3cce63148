# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   I/O continues after the server was stopped and started
# guests:  um
# also:    um/mem um-debug/rxe um-7-debug/siw um-7-smp/rxe debian-6.1 debian-13-rt/rxe
# devices: rxe siw mem
# limit:   90
# faults:  the server starts again

. "${BASH_SOURCE%/*}/../guest/faults.sh"

PATIENCE=$PATIENCE_RESENT

client() {
	local vers
	client_begin
	for vers in 3 4.2; do
		need "mount v$vers" nfs_mount $vers rdma /mnt
		reconnects "v$vers: the server is stopped and started" server_bounce
		check "umount v$vers" umount /mnt
	done
}
