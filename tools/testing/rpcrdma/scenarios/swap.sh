# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   memory that was swapped out to the server is read back correctly, also after a reconnect
# guests:  um
# also:    um/mem um-debug/mem um-7-debug
# devices: rxe siw mem
# turns:   sunrpc's memory flags
# modules: ours
# limit:   90
# faults:  connections are closed

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# Memory is not short: the process asks the kernel to swap out its pages (MADV_PAGEOUT).
# Otherwise one guest would not be enough: nfsd would need memory to receive the pages that
# are written to free memory, and the swap file is in a tmpfs, whose pages would be swapped
# out to the file itself.

# The data, and nine tenths of them in KiB, because some pages may be in use when they
# should be swapped out.
MIB=16
MOST=$((MIB * 1024 * 9 / 10))

# The process. It answers each line that it reads.
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
	reclaim_watch
	for vers in 3 4.2; do
		need "mount v$vers" nfs_mount $vers rdma /mnt
		need "v$vers: make a swap file" swap_file
		need "v$vers: swapon" swapon /mnt/swap
		start_holder
		swap_out_and_in "v$vers"
		end_holder
		check "v$vers: remove the swap file" rm /mnt/swap
		check "umount v$vers" umount /mnt
	done
	reclaim_end
}

# swapon refuses a file with holes. The file is large, because when more than half of the
# swap is used, the kernel frees the place of a page as soon as the page was read.
swap_file() {
	dd if=/dev/zero of=/mnt/swap bs=1M count=$((4 * MIB)) conv=fsync &&
		chmod 600 /mnt/swap && mkswap /mnt/swap
}

start_holder() {
	rm -f /tmp/ask /tmp/answer
	mkfifo /tmp/ask /tmp/answer
	python3 -c "$HOLDER" $MIB </tmp/ask >/tmp/answer 2>/tmp/holder.log &
	exec 8>/tmp/ask 9</tmp/answer
}

end_holder() {
	exec 8>&- 9<&-
	wait
}

# ask WHAT: print the holder's answer.
ask() {
	echo "$1" >&8 && read -r -t "$(seconds $RECOVERY)" -u 9 && echo "$REPLY" ||
		{ cat /tmp/holder.log; return 1; }
}

# Pages that were written stay in memory until it is needed. After they were used again
# and the holder asks again, they are unchanged, and the kernel drops them at once.
swap_out_and_in() {
	local sum before connections
	sum=$(ask sum)
	need "$1: a process holds random data" [ ${#sum} -eq 64 ]

	before=$(data_of write)
	need "$1: its pages are swapped out" swapped_out
	check "$1: they were written to the server" [ $(($(data_of write) - before)) -ge $MOST ]
	check "$1: the data are correct" is "$sum" "$(ask sum)"
	need "$1: swap them out again" ask out

	before=$(data_of read) connections=$(connections_made)
	need "$1: delete the device and add it again" device_bounce
	need "$1: the data are read back and are correct" is "$sum" "$(ask sum)"
	check "$1: they were read from the server" [ $(($(data_of read) - before)) -ge $MOST ]
	check "$1: a new connection was made" [ "$(connections_made)" -gt "$connections" ]

	need "$1: swap them out again" ask out
	before=$(data_of read)
	need "$1: swapoff" swapoff /mnt/swap
	check "$1: that reads them back" [ $(($(data_of read) - before)) -ge $MOST ]
	check "$1: there is no swap any more" not grep /mnt/swap /proc/swaps
	check "$1: the data are correct without swap" is "$sum" "$(ask sum)"
}

# Wait until the server has acknowledged the last page.
swapped_out() {
	ask out && wait_for $RECOVERY grep -q '^Writeback: *0 kB' /proc/meminfo &&
		[ "$(awk '$1 == "/mnt/swap" { print $4 }' /proc/swaps)" -ge $MOST ] ||
		{ cat /proc/swaps; return 1; }
}

# data_of read|write: KiB of data in all READs or WRITEs of the mount
data_of() {
	awk -v what="$1" '$1 == "bytes:" { print int((what == "read" ? $6 : $7) / 1024) }' \
		/proc/self/mountstats
}
