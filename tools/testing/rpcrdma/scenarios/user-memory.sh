# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a direct READ changes only what it returns, also in memory that is never uptodate
# guests:  um
# also:    um-debug debian-6.1
# devices: rxe
# modules: ours

client() {
	local vers
	client_begin
	for vers in 3 4.2; do
		need "v$vers: mount" nfs_mount $vers rdma /mnt
		make_file
		check "v$vers: a short READ with a Write chunk" into_ring 65536 0
		check "v$vers: a short READ without chunks" into_ring 2048 4096
		[ $vers != 3 ] || check "v$vers: a READ that fails" into_ring 65536 0 $LOCAL/file
		check "v$vers: umount" unmount /mnt
	done
}

make_file() {
	head -c 5000 /dev/urandom >$LOCAL/file
	cp $LOCAL/file /tmp/data
}

# into_ring LENGTH OFFSET [FILE]: READ into a ring of a packet socket, whose pages are the
# kernel's. Whatever the READ does not return must stay. If a file is named, it is removed
# first, nfsd closes what it has open, and the READ must fail.
into_ring() {
	python3 -B - "$@" <<-'END'
		import mmap, os, socket, struct, subprocess, sys

		SOL_PACKET, PACKET_RX_RING, SIZE, FRAME = 263, 5, 65536, 2048
		length, offset = map(int, sys.argv[1:3])
		# Without a protocol it receives nothing.
		ring = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
		ring.setsockopt(SOL_PACKET, PACKET_RX_RING,
		                struct.pack("4I", SIZE, 1, FRAME, SIZE // FRAME))
		memory = mmap.mmap(ring.fileno(), SIZE)
		memory[:] = b"\xaa" * SIZE
		wanted = open("/tmp/data", "rb").read()[offset:]
		file = os.open("/mnt/file", os.O_RDONLY | os.O_DIRECT)
		if sys.argv[3:]:
		    os.unlink(sys.argv[3])
		    subprocess.run(["exportfs", "-f"], check=True)
		    wanted = b""
		try:
		    count = os.preadv(file, [memoryview(memory)[:length]], offset)
		except OSError as error:
		    count = 0
		    print(error)
		wanted += b"\xaa" * (SIZE - len(wanted))
		wrong = [at for at in range(SIZE) if memory[at] != wanted[at]]
		print(f"{count} octets; {len(wrong)} are wrong, from {wrong[:1]} on,",
		      f"{sum(memory[at] == 0 for at in wrong)} of them zero")
		sys.exit(bool(wrong) or (count != 0 if sys.argv[3:] else count != 5000 - offset))
	END
}
