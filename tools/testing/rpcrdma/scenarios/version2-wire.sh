# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   version 2 on the wire, by a dissector made from the draft's XDR, and version 1 where an end has no other
# guests:  um-7
# also:    um
# devices: rxe
# ends:    2
# modules: ours
# host:    dissect
#
#   end 1: server                       end 2: client
#   +---------------------------+       +-----------------------------+
#   | nfsd, rdma port 20049     |       | mount at /mnt               |
#   | rxe0                      |       | rxe0                        |
#   | 10.17.0.1, fd17::1        |       | 10.17.0.2, fd17::2          |
#   | vec0 (um), eth0 (QEMU) ---|-------|--- vec0, eth0: tcpdump      |
#   +---------------------------+       +-----------------------------+
#                                         tshark on the host, with rpcordma2.lua

. "${BASH_SOURCE%/*}/../guest/faults.sh"
. "${BASH_SOURCE%/*}/../guest/forms.sh"
. "${BASH_SOURCE%/*}/../guest/wire.sh"

server() {
	server_begin
	need "the server may use version 2" tune svc_rdma/version 2
	need "make files" make_files
	take_orders &
	echo $! >/tmp/orders.pid
}

client() {
	local form
	client_begin
	need "the client may use version 2" tune rdma_version 2
	forms_begin
	for form in $FORMS; do
		capture $form mounted $form
	done
	capture nfs4 nfs4
	need "no remote invalidation" tune rdma_remote_invalidation 0
	capture no_invalidation mounted write_chunk
	need "remote invalidation" tune rdma_remote_invalidation 1
	need "the client has version 1" tune rdma_version 1
	capture client_1 mounted write_chunk
	need "the client may use version 2 again" tune rdma_version 2
	need "mount" nfs_mount 3 rdma /mnt lookupcache=none
	need "the server has version 1" order server_has_version_1
	check "umount" unmount /mnt
	capture server_1 mounted write_chunk
}

server_has_version_1() {
	tune svc_rdma/version 1
}

# Each capture has its own mount, because it needs the first messages of a connection.
mounted() {
	check "mount" nfs_mount 3 rdma /mnt
	check "$1: the data are correct" "by_$1"
	check "umount" unmount /mnt
}

nfs4() {
	check "nfs4: mount" nfs_mount 4.2 rdma /mnt lookupcache=none
	check "nfs4: the data are correct" fio_verify --direct=1 --bsrange=512-256k --numjobs=4 --size=1m
	check "nfs4: a long directory" long_directory /mnt/long
	recalls
	check "nfs4: umount" unmount /mnt
}

server_done() {
	kill "$(cat /tmp/orders.pid)"
	sed 's/^/# server: /' /tmp/orders.log
	server_end
}

# On the host

dissect() {
	local name
	for name in $FORMS nfs4 no_invalidation client_1; do
		check_capture $name
	done
	check_recalls nfs4
	for name in $FORMS nfs4 no_invalidation; do
		check "$name: all messages are in version 2" not seen $name 'message && version != 2'
		check "$name: the first one is a Call of 1024 octets or less" starts_with_short_call $name
	done
	chunks_of_forms
	for name in $FORMS nfs4; do
		check "$name: no Send with Invalidate without a handle in its header" \
			not seen $name 'invalidate && !names_handle'
	done
	for name in read_chunk write_chunk long_call reply_chunk; do
		check "$name: a Call names a handle" seen $name 'call && names_handle'
		check "$name: a Reply invalidates it" seen $name '!call && invalidate'
	done
	check "inline_both_ways: no Call names a handle" not seen inline_both_ways names_handle
	check "no_invalidation: no message names a handle" not seen no_invalidation names_handle
	check "no_invalidation: no Send with Invalidate" not seen no_invalidation invalidate
	check "client_1: no message is in version 2" not seen client_1 'version == 2'
	refused
}

starts_with_short_call() {
	of_packets "$1" 'message && !any { any = 1; good = call && octets <= 1024 }
		END { exit !good }'
}

# The server has version 1: only the first Call and its answer are in version 2.
refused() {
	need "server_1: messages were captured" packets server_1
	check "server_1: a whole connection, and a Reply to each Call" is_whole server_1
	check "server_1: one Call in version 2" is 1 "$(count_of server_1 'version == 2 && call')"
	check "server_1: it is the first message" starts_with_short_call server_1
	check "server_1: one ERR_VERS" is 1 "$(count_of server_1 'message && type == 4 && error == 1')"
	check "server_1: no other error" is 1 "$(count_of server_1 'message && type > 1')"
	check "server_1: then all messages are in version 1" of_packets server_1 \
		'version == 2 { two++ } version == 2 && one { bad = 1 } version == 1 { one++ }
		 END { exit bad || two != 2 || one < 10 }'
	check "server_1: tshark finds no error" no_expert_info server_1
}
