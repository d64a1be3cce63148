# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a container that is killed while it writes leaves no mount, connection or namespace
# guests:  um-7
# also:    um um-7-debug
# devices: mem
# modules: ours
# limit:   300
# faults:  namespaces and devices go
#
# The container has network and mount namespaces of its own, and a device there:
#
#   server                         container: namespace "client"
#   +------------------------+     +------------------------+
#   | nfsd, rdma port 20049  |     | a process, a mount     |
#   | mem8                   |     | mem9                   |
#   | 10.17.1.1, fd17:1::1   |     | 10.17.1.2, fd17:1::2   |
#   | lab8: one end of a ----|-----|-- lab9: the other end  |
#   +------------------------+veth +------------------------+

. "${BASH_SOURCE%/*}/../guest/mem.sh"

client() {
	local vers
	client_begin
	for vers in 3 4.0 4.1 4.2; do
		need "v$vers: a container" container_up
		need "v$vers: which mounts and writes" container_writes $vers
		check "v$vers: kill its process" container_kill
		check "v$vers: its namespace and both devices are gone" \
			wait_for $RECOVERY container_is_gone
	done
}

# A server takes NFSv4 clients of one name for one. By TCP both ends get to know their neighbour, or
# a mount might take five seconds more: see "A quick neighbour" in known-failures.rst.
container_up() {
	modprobe -qa veth nfs
	ip netns add client &&
		ip netns exec client bash -c \
			'echo container >/sys/fs/nfs/net/nfs_client/identifier' &&
		ip link add lab8 type veth peer name lab9 netns client &&
		give_addresses lab8 1 1 && give_addresses lab9 1 2 in_client &&
		rdma link add mem8 type mem netdev lab8 && client_device_up 9 &&
		wait_for 5 has_gid mem8 && in_client bash -c ': </dev/tcp/10.17.1.1/2049'
}

# container_writes VERSION: its process does not fork: see known-failures.rst. Without the mount
# here, it alone has it.
container_writes() {
	local dir=/tmp/container file=container/$EPOCHREALTIME
	mkdir -p "$LOCAL/container"
	NETNS=client SERVER4=10.17.1.1 nfs_mount "$1" rdma $dir || return
	nsenter --net=/run/netns/client setsid unshare --mount python3 -c \
		"while True: open('$dir/$file', 'wb').write(bytes(1 << 20))" >/dev/null 2>&1 </dev/null &
	echo $! >/tmp/container.pid
	wait_for $RECOVERY test -e "$LOCAL/$file"
	umount $dir
}

# What holds the network namespace then is the mount, and the connection until it is freed.
container_kill() {
	ip netns del client && kill -9 "$(cat /tmp/container.pid)"
}

container_is_gone() {
	! compgen -G '/sys/class/net/lab[89]' && ! compgen -G '/sys/class/infiniband/mem[89]'
}
