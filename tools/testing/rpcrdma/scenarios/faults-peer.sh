# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   each of two guests loses its link, its device, its module or its peer, and I/O goes on
# guests:  um
# also:    debian-6.12
# devices: rxe
# ends:    2
# limit:   150

. "${BASH_SOURCE%/*}/../guest/faults.sh"

server() {
	need "a bridge" bridge_up
	server_begin
	take_orders &
	echo $! >/tmp/orders.pid
}

client() {
	need "a bridge" bridge_up
	client_begin
	# NFSv3: a server that was started anew does not wait for its clients.
	need "mount" nfs_mount 3 rdma /mnt lookupcache=none
	reconnects "the client's link goes down and comes up" cable_bounce
	reconnects "the server's link goes down and comes up" order cable_bounce
	reconnects "the client's device is deleted and added again" device_bounce
	reconnects "the server's device is deleted and added again" order device_bounce
	reconnects "the server's module is unloaded and loaded again" order reload
	reconnects "it is unloaded with a connection half made" order reload_half_made
	check "umount" umount /mnt
	vanish
}

# The file that is written to as tracepoints are passed
TRACE=/sys/kernel/tracing/trace

reload() {
	rpc.nfsd 0 && unload && modprobe rpcrdma && server_start
}

# What the server says is lost: the client gives up its connection and asks for
# a new one, which the server accepts, and so on. It is lost behind the bridge:
# while an interface gets another qdisc it refuses packets, which a queue pair of
# rxe does not survive.
reload_half_made() {
	impair "$(cable)" loss 100% && traced wait_for 15 grep -q state=ACCEPTING $TRACE &&
		reload && impair_no_more "$(cable)"
}

# The server does not get to know that this client is gone, nor the client that
# the server is, unless it asks: nobody uses the mount.
vanish() {
	local before
	need "mount again" nfs_mount 3 rdma /mnt
	before=$(unacknowledged)
	need "the client falls silent" impair "$(netdev)" loss 100%
	check "it finds the server silent" wait_for 60 more_unacknowledged_than "$before"
	check "umount -f" wait_for $PATIENCE umount -i -f /mnt
	# What silences it goes with the bridge.
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
