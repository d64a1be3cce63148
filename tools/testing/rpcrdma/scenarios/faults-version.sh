# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   I/O continues when the server is restarted with another version, and uses that version
# guests:  um/rxe
# also:    um um/mem um-7-debug/rxe
# devices: rxe siw mem
# modules: ours
# limit:   150
# faults:  connections are closed

. "${BASH_SOURCE%/*}/../guest/faults.sh"

PATIENCE=$PATIENCE_RESENT

client() {
	client_begin
	dmesg --clear
	need "both ends may use version 2" versions_up_to 2 2
	need "mount v3" nfs_mount 3 rdma /mnt
	restarted v3 1
	restarted v3 2
	check "umount v3" umount /mnt
	need "mount v4.2" nfs_mount 4.2 rdma /mnt
	restarted v4.2 1
	restarted v4.2 2
	check "umount v4.2" umount /mnt
}

# restarted WHAT VERSION: the server is stopped, and started with this version.
restarted() {
	reconnects "$1: the server is restarted with version $2" restart_with "$2"
	check "$1: I/O" traced io_round /mnt/file 1
	check "$1: it is in version $2" is "$2" "$(versions_traced)"
	check "$1: the client takes no server for an older one" \
		not grep 'version 1 for an hour' <(dmesg)
}

restart_with() {
	rpc.nfsd 0 && tune svc_rdma/version "$1" && sleep 1 && server_start
}
