# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   memory swapped out to a file of the server comes back as it was, by a new connection, too
# guests:  um
# also:    um-debug
# devices: rxe siw
# modules: ours
# limit:   90

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# A process has its own pages written (MADV_PAGEOUT) while there is memory enough
# for everybody else, so one guest will do. Were memory short, nfsd would need some
# to take in what has to go before there is any; and the swap file lies in a tmpfs,
# whose pages would be swapped out to itself.

# Of data; and nine tenths of that in KiB, as a page may be busy when it is to go
MIB=16
MOST=$((MIB * 1024 * 9 / 10))

# Answers each line that it reads.
HOLDER='
import hashlib, mmap, os, sys
MADV_PAGEOUT = 21
memory = mmap.mmap(-1, int(sys.argv[1]) << 20, flags=mmap.MAP_PRIVATE)
memory.write(os.urandom(len(memory)))
for line in sys.stdin:
    if line == "out\n":
        memory.madvise(MADV_PAGEOUT)
        print("done", flush=True)
    else:
        print(hashlib.sha256(memory).hexdigest(), flush=True)
'

client() {
	local vers
	client_begin
	for vers in 3 4.2; do
		need "mount v$vers" nfs_mount $vers rdma /mnt
		need "v$vers: a swap file" swap_file
		need "v$vers: swapon" swapon /mnt/swap
		hold
		out_and_in "v$vers"
		let_go
		check "v$vers: remove the swap file" rm /mnt/swap
		check "umount v$vers" umount /mnt
	done
}

# With holes it would be refused. A swap that is more than half full takes its place
# away from a page that is read back, so this one is larger.
swap_file() {
	dd if=/dev/zero of=/mnt/swap bs=1M count=$((4 * MIB)) conv=fsync &&
		chmod 600 /mnt/swap && mkswap /mnt/swap
}

hold() {
	rm -f /tmp/ask /tmp/answer
	mkfifo /tmp/ask /tmp/answer
	python3 -c "$HOLDER" $MIB </tmp/ask >/tmp/answer 2>/tmp/holder.log &
	exec 8>/tmp/ask 9</tmp/answer
}

let_go() {
	exec 8>&- 9<&-
	wait
}

# ask WHAT: the holder's answer
ask() {
	echo "$1" >&8 && read -r -t "$(seconds $PATIENCE)" -u 9 && echo "$REPLY" ||
		{ cat /tmp/holder.log; return 1; }
}

# What is written stays in memory, too, until somebody else wants that. But once
# more in use, and told to go, it is just as the server has it, and goes at once.
out_and_in() {
	local sum before connections
	sum=$(ask sum)
	need "$1: a process holds random data" [ ${#sum} -eq 64 ]

	before=$(carried write)
	need "$1: its pages are swapped out" swapped_out
	check "$1: the server was sent them" [ $(($(carried write) - before)) -ge $MOST ]
	check "$1: the data are right" is "$sum" "$(ask sum)"
	need "$1: they go again" ask out

	before=$(carried read) connections=$(connections_made)
	need "$1: the connection is lost with its device, which comes back" device_bounce
	need "$1: the data come back, and are right" is "$sum" "$(ask sum)"
	check "$1: the server sent them" [ $(($(carried read) - before)) -ge $MOST ]
	check "$1: that took another connection" [ "$(connections_made)" -gt "$connections" ]

	need "$1: they go again" ask out
	before=$(carried read)
	need "$1: swapoff" swapoff /mnt/swap
	check "$1: that brought them back" [ $(($(carried read) - before)) -ge $MOST ]
	check "$1: there is no swap any more" not grep /mnt/swap /proc/swaps
	check "$1: the data are right without it" is "$sum" "$(ask sum)"
}

# Until the server has acknowledged the last one
swapped_out() {
	ask out && wait_for $PATIENCE grep -q '^Writeback: *0 kB' /proc/meminfo &&
		[ "$(awk '$1 == "/mnt/swap" { print $4 }' /proc/swaps)" -ge $MOST ] ||
		{ cat /proc/swaps; return 1; }
}

# carried read|write: KiB of data in the READs or WRITEs of the mount so far
carried() {
	awk -v what="$1" '$1 == "bytes:" { print int((what == "read" ? $6 : $7) / 1024) }' \
		/proc/self/mountstats
}
