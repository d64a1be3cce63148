# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   64 MiB of random data (8 on a slow guest) survive the way to the server and back
# guests:  um
# also:    um-debug debian-6.1 debian-6.12 smp-debug
# devices: rxe siw
# skip:    * siw * inbox: siw may leave a first message lying, and only ours has a remedy

client() {
	client_begin
	need "make random data" dd if=/dev/urandom of=/tmp/data bs=1M count=$((SLOW ? 8 : 64))
	each_version copy_out_and_in
	rm -f /tmp/data
}

copy_out_and_in() {
	check "v$1: copy to the server" cp /tmp/data /mnt/data
	drop_caches
	check "v$1: the server has what was written" same_sum /tmp/data $LOCAL/data
	check "v$1: copy back" cp /mnt/data /tmp/back
	check "v$1: what came back is what was written" same_sum /tmp/data /tmp/back
	rm -f /mnt/data /tmp/back
}
