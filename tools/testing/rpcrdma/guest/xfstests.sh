# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   xfstests on NFS; rpcrdma_lab/xfstests.py compares modules
# guests:  um-7
# steps:   xfstests
#
# MODULE may be tcp, which has no rpcrdma. VERSION is NFS's, TESTS what check is to run,
# with commas in place of blanks.

xfstests() {
	local proto=rdma
	need "users" users
	need "network" net_up
	if [ "$MODULE" = tcp ]; then
		proto=tcp PORT=2049
	else
		need "$DEVICE device" rdma_up
		module_up
	fi
	need "two file systems" disks_up
	need "NFS server" server_up
	[ "$MODULE" = tcp ] || need "listen for rdma on port $PORT" listen
	need "export them" export_disks
	options $proto
	# For each test it writes a line to the log, by which the console tells which one ends a guest.
	cd /lab/xfstests && ./check -nfs -E not-run ${TESTS//,/ }
	finish
}

users() {
	local user
	for user in fsgqa fsgqa2 123456-fsgqa; do
		useradd --badname -m "$user" || return
	done
}

# On the host's disk: nothing is larger than its sparse files.
disks_up() {
	local name
	mount -t tmpfs srv /srv
	for name in test scratch; do
		truncate -s 4g /lab/out/$name && mkfs.ext4 -q /lab/out/$name && mkdir -p $LOCAL/$name &&
			mount_file /lab/out/$name $LOCAL/$name && chmod 777 $LOCAL/$name || return
	done
}

export_disks() {
	local how=rw,no_root_squash,no_subtree_check,insecure
	echo "$EXPORT/test *($how,fsid=18)" >>/etc/exports
	echo "$EXPORT/scratch *($how,fsid=19)" >>/etc/exports
	exportfs -ra
}

# options NETID: what check reads
options() {
	export FSTYP=nfs TEST_DEV=$SERVER4:$EXPORT/test SCRATCH_DEV=$SERVER4:$EXPORT/scratch
	export TEST_DIR=/mnt/test SCRATCH_MNT=/mnt/scratch RESULT_BASE=/lab/out/results
	export NFS_MOUNT_OPTIONS="-o vers=$VERSION,proto=$1,port=$PORT"
	[ "$VERSION" != 3 ] || NFS_MOUNT_OPTIONS+=,nolock,mountport=20048,mountproto=tcp
	mkdir -p $TEST_DIR $SCRATCH_MNT $RESULT_BASE
}
