# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   one octet that is changed on the server fails a comparison
# guests:  um
# modules: inbox
# devices: rxe
# expect:  not ok \d+ - the server has what was written

client() {
	check "mount" nfs_mount 4.2 rdma /mnt
	check "make a file" dd if=/dev/urandom of=/tmp/data bs=64k count=1
	check "copy it" cp /tmp/data /mnt/data
	check "both files are the same" same_sum /tmp/data $LOCAL/data
	printf '\xff\x00' | dd of=$LOCAL/data bs=1 seek=4711 conv=notrunc 2>/dev/null
	check "the server has what was written" same_sum /tmp/data $LOCAL/data
}
