# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a mount by two addresses of its server goes on if the server alone loses either
# also:    um-7
# devices: mem
# modules: ours
# limit:   400
# steps:   rails_server
# faults:  an interface of the server goes down
#
#   server                                 client: namespace "client"
#   +---------------------------------+   +------------------------------+
#   | nfsd, rdma port 20049           |   | mount at /mnt, one session   |
#   |  10.17.0.1, mem2 on server0 ----|---|--- mem0 on lab0: 10.17.0.2   |
#   |  10.17.1.1, mem3 on server1 ----|---|--- mem1 on lab1: 10.17.1.2   |
#   +---------------------------------+   +------------------------------+
#
# The server's interfaces are bridges, so that the client's stay up. rails.sh looks at mem0 and mem1
# of the client.

. "${BASH_SOURCE%/*}/../guest/mem.sh"
. "${BASH_SOURCE%/*}/rails.sh"

# For a device that gives up within one second, and one attempt to connect, of ten seconds
SOON=20

rails_server() {
	need "load the test device" modprobe rdma_mem
	need "two rails" both_rails
	NETNS=client
	need "NFS server" server_up
	need "the program" tool_up
	TOOL="nsenter --net=/run/netns/client $TOOL"
	need "the server names both addresses" name_both
	need "rpcrdma is the $MODULE module" right_module
	need "load it, and listen" load_and_listen
	need "mount" nfs_mount 4.1 rdma /mnt $OPTIONS
	writers_begin
	need "the connections to both addresses are of one session" wait_for 10 one_session
	need "both rails carry traffic" both_carry
	rail_goes 1 0 "the server's link is down" ip link set server1 down
	rail_goes 0 1 "the server's link is down" ip link set server0 down
	writers_end
	check "unmount" unmount /mnt
	check "stop the NFS server" server_down
	module_down
	check "remove the rails" rails_down
}

both_rails() {
	modprobe -qa veth bridge
	ip netns add client && one_rail 0 && one_rail 1
}

# one_rail NUMBER
one_rail() {
	local n=$1
	ip link add "server$n" type bridge &&
		ip link add "to_client$n" type veth peer name "lab$n" netns client &&
		ip link set "to_client$n" master "server$n" up && rail_up "$n" &&
		give_addresses "lab$n" "$n" 2 in_client &&
		rdma link add "mem$((n + 2))" type mem netdev "server$n" && client_device_up "$n"
}

# rail_up NUMBER: in place of that of rails.sh
rail_up() {
	give_addresses "server$1" "$1" 1
}

rails_down() {
	local n
	for n in 0 1; do
		rdma link delete "mem$n" && rdma link delete "mem$((n + 2))" &&
			ip link delete "server$n" && ip link delete "to_client$n" || return
	done
	ip netns del client && wait_for 5 modprobe -r rdma_mem
}
