# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   I/O continues after either of two guests lost its link, device, module or peer
# guests:  um-7
# also:    um um-7-debug
# devices: rxe
# ends:    2
# limit:   150
# faults:  the other guest ends
#
#   end 1: server                       end 2: client
#   +---------------------------+       +---------------------------+
#   | nfsd, rdma port 20049     |       | mount at /mnt             |
#   | executes orders   <-------|-------|-- gives orders by files   |
#   | rxe0                      |       | rxe0                      |
#   | lab0: 10.17.0.1, a bridge |       | lab0: 10.17.0.2, a bridge |
#   |   |                       |       |   |                       |
#   | vec0 (um), eth0 (QEMU) ---|-------|-- vec0, eth0              |
#   +---------------------------+       +---------------------------+
#
# The test takes vec0 or eth0 out of its bridge, or has it lose packets.

. "${BASH_SOURCE%/*}/../guest/faults.sh"

server() {
	need "make a bridge" bridge_up
	server_begin
	take_orders &
	echo $! >/tmp/orders.pid
}

client() {
	need "make a bridge" bridge_up
	client_begin
	# NFSv3, because then a restarted server does not wait for its clients.
	need "mount" nfs_mount 3 rdma /mnt lookupcache=none
	reconnects "the client's link goes down and comes up" cable_bounce
	reconnects "the server's link goes down and comes up" order cable_bounce
	reconnects "the client's device is deleted and added again" device_bounce
	reconnects "the server's device is deleted and added again" order device_bounce
	reconnects "the server's module is unloaded and loaded again" order reload
	need "the server's link address is known" neighbour_known
	need "the client's link address is known to the server" order neighbour_known
	reconnects "it is unloaded while it accepts a connection" order reload_accepting
	check "umount" umount /mnt
	client_loses_packets
}

# What the tracepoints print
TRACE=/sys/kernel/tracing/trace

reload() {
	rpc.nfsd 0 && unload && modprobe rpcrdma && server_start
}

# All packets of the server are lost. So the client gives up its connection and requests a
# new one, which the server begins to accept. The bridge's port loses them and not lab0: an
# interface refuses packets while its qdisc is replaced, and rxe's queue pair would be in
# error for ever. The loss ends in any case, or the client would wait for ever.
reload_accepting() {
	local status
	impair "$(cable)" loss 100% || return
	traced wait_for 15 grep -q state=ACCEPTING $TRACE && reload
	status=$?
	impair_no_more "$(cable)"
	return $status
}

# All packets of the client are lost while no process uses the mount. Only its keepalive
# can find that.
client_loses_packets() {
	local before
	need "mount again" nfs_mount 3 rdma /mnt
	before=$(unacknowledged)
	need "lose all packets of the client" impair "$(netdev)" loss 100%
	check "the client finds that the server does not answer" \
		wait_for 60 more_unacknowledged_than "$before"
	check "umount -f" wait_for $RECOVERY umount -i -f /mnt
	# This also ends the loss of packets, together with the bridge.
	end
}

unacknowledged() {
	dmesg | grep -c 'rpcrdma: .*: transport retry counter exceeded'
}

more_unacknowledged_than() {
	[ "$(unacknowledged)" -gt "$1" ]
}

client_done() {
	check "nothing is mounted" not uses_rdma /mnt
}

server_done() {
	kill "$(cat /tmp/orders.pid)"
	sed 's/^/# server: /' /tmp/orders.log
	server_end
}
