# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   64 MiB of random data (8 on a slow guest) are the same on the server and back
# guests:  um
# also:    um/mem um-7-debug/siw debian-6.1
# devices: rxe siw mem
# skip:    * siw * inbox: siw may not deliver a first message, and only ours has a workaround
# skip:    * mem * inbox: it posts Receives again without a sync, which the test device reports

client() {
	client_begin
	need "make random data" dd if=/dev/urandom of=/tmp/data bs=1M count=$((SLOW ? 8 : 64))
	each_version copy_and_compare
	rm -f /tmp/data
}

copy_and_compare() {
	check "v$1: copy to the server" cp /tmp/data /mnt/data
	drop_caches
	check "v$1: the server has what was written" same_sum /tmp/data $LOCAL/data
	check "v$1: copy back" cp /mnt/data /tmp/back
	check "v$1: the copy is what was written" same_sum /tmp/data /tmp/back
	rm -f /mnt/data /tmp/back
}
