# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a server's old module is replaced by this one, and this one by it, while a client writes
# also:    um um-7
# devices: rxe
# ends:    2
# modules: old+ours
# limit:   240
# faults:  the server's module is replaced
#
# Which commit the old one is: OLD in rpcrdma_lab/module.py. The client gives the server the file.

. "${BASH_SOURCE%/*}/reload.sh"

client() {
	local vers
	client_begin
	need "the program" tool_up
	for vers in 3 4.0 4.1 4.2; do
		need "mount v$vers" nfs_mount $vers rdma /mnt lookupcache=none
		need "the file of this module" cp "$(modinfo -F filename rpcrdma)" /mnt/new.ko
		reconnects "v$vers: this module replaces the old one" told upgrades
		[ $vers = 4.2 ] ||
			reconnects "v$vers: the old module replaces this one" told downgrades
		check "umount v$vers" umount /mnt
	done
}

# At the server

upgrades() {
	cp $LOCAL/new.ko /tmp/build.ko &&
		mount --bind /tmp/build.ko "$(modinfo -F filename rpcrdma)" && replaced
}

downgrades() {
	umount "$(modinfo -F filename rpcrdma)" && replaced
}

replaced() {
	exits 0 tool reload --force && says "Clients are cut off, 1 connection: 10\.17\.0\.2:" &&
		is "$(modinfo -F srcversion rpcrdma)" "$(cat /sys/module/rpcrdma/srcversion)" && listens
}
