# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   an RPC that takes longer than PATIENCE fails a scenario
# guests:  um
# modules: inbox
# devices: rxe
# expect:  not ok \d+ - no RPC took more than 0 s
# expect:  ^    # .* rpc_stats_latency: .*GETATTR

PATIENCE=0

client() {
	client_begin
	check "mount" nfs_mount 3 rdma /mnt
	check "umount" unmount /mnt
}
