# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a mount that has connected twice fails a scenario that declares no faults
# guests:  um
# modules: inbox
# devices: rxe
# expect:  not ok \d+ - umount
# expect:  ^    # /mnt: connected 2 times

client() {
	client_begin
	check "mount" nfs_mount 3 rdma /mnt
	check "the connection is closed" drop_connection "$(the_transport)"
	check "the mount works all the same" touch /mnt/file
	check "umount" unmount /mnt
}
