# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   tshark finds no error in the traffic between two guests, in both directions
# guests:  um
# also:    um-7 debian-6.1
# devices: rxe
# ends:    2
# host:    dissect
#
#   end 1: server                       end 2: client
#   +---------------------------+       +-----------------------------+
#   | nfsd, rdma port 20049     |       | mount at /mnt, NFSv3 and 4.2|
#   | rxe0                      |       | rxe0                        |
#   | 10.17.0.1, fd17::1        |       | 10.17.0.2, fd17::2          |
#   | vec0 (um), eth0 (QEMU) ---|-------|--- vec0, eth0: tcpdump      |
#   +---------------------------+       +-----------------------------+
#                                         tshark on the host

. "${BASH_SOURCE%/*}/../guest/faults.sh"
. "${BASH_SOURCE%/*}/../guest/wire.sh"

server() {
	server_begin
	need "make files" make_files
	take_orders &
	echo $! >/tmp/orders.pid
}

client() {
	client_begin
	need "make 1 MiB of random data" dd if=/dev/urandom of=/tmp/data bs=1M count=1
	capture wire both_versions
}

both_versions() {
	local vers
	for vers in 3 4.2; do
		check "mount v$vers" nfs_mount $vers rdma /mnt lookupcache=none
		check "v$vers: small and large writes" copy_in_sizes
		drop_caches
		check "v$vers: read them back" same_sum /tmp/data /mnt/large
		check "v$vers: a long directory" long_directory /mnt/long
		check "v$vers: a symbolic link" link_to /mnt/link target
		[ $vers = 3 ] || recalls
		check "umount" unmount /mnt
	done
}

copy_in_sizes() {
	cp /tmp/data /mnt/large && head -c 100 /tmp/data >/mnt/small
}

server_done() {
	kill "$(cat /tmp/orders.pid)"
	sed 's/^/# server: /' /tmp/orders.log
	server_end
}

# On the host

dissect() {
	local chunks
	check_capture wire
	check_recalls wire
	say "messages by type: $(count_of wire '!nomsg && message') RDMA_MSG, $(count_of wire nomsg) RDMA_NOMSG"
	say "credit values: $(of_packets wire 'message { print credits }' | sort -nu | xargs)"
	for chunks in reads writes reply; do
		check "messages with a chunk in $chunks: $(count_of wire $chunks)" seen wire $chunks
	done
}
