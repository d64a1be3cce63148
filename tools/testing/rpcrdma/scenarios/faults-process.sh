# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   kill -9 during I/O affects no other process, and the mount can still be used
# guests:  um
# also:    um/mem um-debug/siw um-7-debug/rxe um-7-smp/rxe debian-6.1 debian-6.12 debian-13-rt/rxe
# devices: rxe siw mem
# turns:   sunrpc's tasks
# faults:  processes are killed

. "${BASH_SOURCE%/*}/../guest/faults.sh"

PATIENCE=$PATIENCE_RESENT

# More than a process can read or write before it is killed
MIB=$((SLOW ? 16 : 64))

client() {
	local vers
	client_begin
	for vers in 3 4.2; do
		need "mount v$vers" nfs_mount $vers rdma /mnt
		survives "v$vers: readers and writers are killed" kill_some
		check "umount v$vers" umount /mnt
	done
}

# Processes that had ended by themselves do not count.
kill_some() {
	local n killed=0 victim tenth=0.
	! quick || tenth=0.0
	dd if=/dev/zero of=/mnt/victim bs=1M count=$MIB status=none || return
	for n in {1..12}; do
		victims
		sleep "$tenth$((9 - n % 9))"
		for victim in $VICTIMS; do
			kill -9 "$victim" 2>/dev/null
			wait "$victim" 2>/dev/null
			[ $? -ne 137 ] || killed=$((killed + 1))
		done
	done
	echo "$killed processes were killed"
	rm /mnt/victim && [ $killed -ge 4 ]
}

# With direct I/O, and through the page cache
victims() {
	VICTIMS=
	dd if=/dev/zero of=/mnt/victim bs=1M count=$MIB oflag=direct conv=notrunc 2>/dev/null &
	VICTIMS+=" $!"
	dd if=/mnt/victim of=/dev/null bs=1M iflag=direct 2>/dev/null &
	VICTIMS+=" $!"
	dd if=/dev/zero of=/mnt/victim bs=256k count=$((4 * MIB)) conv=notrunc,fsync 2>/dev/null &
	VICTIMS+=" $!"
}
