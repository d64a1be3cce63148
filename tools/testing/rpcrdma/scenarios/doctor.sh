# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   rpcrdma doctor names what is wrong in the network, the devices and the server, each thing on its own
# guests:  um/rxe
# also:    um um-7-debug/siw debian-6.1 debian-13-7
# devices: rxe siw
# modules: ours
# limit:   180
# faults:  the device and the server go away

. /lab/guest/doctor.sh

client() {
	client_begin
	need "the program" tool_up
	need "verbs for user space" verbs_up
	check "all is well: 0" well $SERVER4
	check "it has looked at everything" looked_at_all
	arguments
	way_to_host
	[ "$DEVICE" = siw ] || packets
	no_answer
	firewall
	log_lines
	mounts
	links
	second_device
	listeners
	server_and_module
	check "all is well again: 0" well $SERVER4
	check "JSON: the same" as_json
}

# Of siw, TCP looks after packets, and counts none of them for the device.
looked_at_all() {
	local fabric=" fabric"
	[ "$DEVICE" != siw ] || fabric=
	is "clients connection device$fabric firewall kernels listener log memlock module mount ping route" \
		"$(awk '$1 == "ok" { print $2 }' /tmp/tool.out | sort -u | xargs)"
}

arguments() {
	check "two hosts: 64" exits 64 tool doctor a b
	check "quiet: nothing" quiet
}

quiet() {
	exits 0 tool doctor -q $SERVER4 && is 0 "$(wc -c </tmp/tool.out)"
}

as_json() {
	exits 0 tool doctor -j $SERVER4 && json_is "(0, 0, '$SERVER4')" \
		'o["findings"], o["unknown"], o["host"]' &&
		json_is True 'all(r["verdict"] == "ok" for r in o["results"])'
}

way_to_host() {
	check "no route" finds_only "there is no route to 192.0.2.1" 192.0.2.1
	check "an IPv6 host, and no such address here" \
		finds_only "there is no route to 2001:db8::1" 2001:db8::1
	check "a route by an interface without RDMA" \
		finds_only "the route to 127.0.0.1 is by lo, which has no RDMA device" 127.0.0.1
	check "a name without an address" \
		finds_only "no-such-host.invalid has no address" no-such-host.invalid
	[ "$DEVICE" = siw ] || source_address
	check "nobody listens there" \
		finds_only "$SERVER4 port $((PORT + 1)) does not answer over RDMA" "$SERVER4:$((PORT + 1))"
}

# iWARP devices have no GIDs of addresses.
source_address() {
	local what="rxe0 has no GID for 10.18.0.1, from which $(netdev) sends to 10.19.0.1"
	ip address add 10.18.0.1/32 dev lo
	ip route add 10.19.0.0/24 dev "$(netdev)" src 10.18.0.1
	check "a route with an address of another interface" finds "$what" 10.19.0.1
	ip route del 10.19.0.0/24
	ip address del 10.18.0.1/32 dev lo
}

packets() {
	local mtu=/sys/class/net/$(netdev)/mtu
	check "how packets leave" exits 0 tool doctor
	check "it says so" says "^ok +fabric +rxe0 port 1 sends RoCE v2 with DSCP 0, in packets of [0-9]+ octets \(MTU $(cat $mtu)\)$"
	check "nothing is lost" says "^ok +fabric +rxe0 port 1 loses no packets"
	echo 300 >/tmp/mtu
	check "an MTU that is too small" in_place $mtu /tmp/mtu \
		finds_only "the MTU of $(netdev), 300, is too small for RoCE"
}

# Others that do not answer as they should
no_answer() {
	local pid
	rping -s -a $SERVER4 -p $((PORT + 2)) >/dev/null 2>&1 &
	pid=$!
	sleep 1
	check "another service answers" \
		finds_only "rpcrdma ping says: ." "$SERVER4:$((PORT + 2))"
	kill $pid 2>/dev/null
	check "ping stops" ping_stops
	echo "nameserver 10.17.0.99" >/tmp/resolv.conf
	echo "options timeout:30" >>/tmp/resolv.conf
	touch /etc/resolv.conf
	check "the name server does not answer" in_place /etc/resolv.conf /tmp/resolv.conf \
		finds_only "server.example has no address: no answer" server.example
}

# It is stopped, so that it cannot end by itself.
ping_stops() {
	(wait_for 10 pkill -STOP -f '^/proc/self/exe ping -q') &
	finds_only "10.17.0.9 port $PORT does not answer over RDMA$" 10.17.0.9
}

# Debian's kernels have the packet filter. For that of um this plants what nft would print.
firewall() {
	local protocol=udp port=4791
	[ "$DEVICE" != siw ] || protocol=tcp port=$PORT
	local names="names $protocol port $port$"
	if [ -e /proc/net/netfilter ]; then
		# Whatever it does: within one guest the packets of rxe pass no filter.
		need "a rule" nft_rule "$protocol dport $port drop"
		check "a rule has the port: 0" exits 0 tool doctor $SERVER4
		check "it says so" says "^ok +firewall +inet lab: a rule $names"
		need "a rule for another port" nft_rule "$protocol dport $((port + 1)) drop"
		check "no rule has the port: a note" notes "inet lab: no rule $names" $SERVER4
		nft delete table inet lab
		iptables_rule $protocol "$names"
		no_program
	else
		fake nft <<<"echo 'table inet lab {'"
		check "no rule has the port: a note" with_fakes notes "inet lab: no rule $names" $SERVER4
	fi
}

nft_rule() {
	nft -f - <<-END
		table inet lab { }
		delete table inet lab
		table inet lab {
			chain in {
				type filter hook input priority 0
				$1
			}
		}
	END
}

# Newer kernels have no iptables but that of nftables.
iptables_rule() {
	modprobe -q iptable_filter && modprobe -q xt_tcpudp || return
	need "a rule of iptables" iptables-legacy -A INPUT -p $1 --dport 9 -j DROP
	check "a table of iptables" notes "iptables filter: no rule $2"
	iptables-legacy -F INPUT
	rmmod iptable_filter
}

no_program() {
	local program programs="nft xtables-nft-multi xtables-legacy-multi"
	nft list ruleset >/dev/null
	for program in $programs; do
		mv /usr/sbin/$program /usr/sbin/$program.away
	done
	check "no program to list the rules of the kernel" \
		cannot_tell "the kernel has a firewall, and there is no program to list its rules"
	for program in $programs; do
		mv /usr/sbin/$program.away /usr/sbin/$program
	done
	fake nft <<<'exit 1'
	check "nft fails" with_fakes cannot_tell "the rules of the firewall cannot be listed"
	fake nft <<<'exit 1'
	check "nft fails, for another user" with_fakes by_way_of "$NOBODY" \
		cannot_tell "only root can list the rules of the firewall"
}

log_lines() {
	local pattern="not connected: -[A-Z0-9]*: invalid service ID"
	[ "$DEVICE" != siw ] || pattern="not connected: "
	dmesg --clear
	PORT=$((PORT + 1)) nfs_mount 3 rdma /mnt retry=0
	check "the log has an error" finds_only "\"$SERVER4:$((PORT + 1)): $pattern"
	dmesg --clear
	check "the log is cleared: 0" exits 0 tool doctor
}

mounts() {
	check "mount" nfs_mount 4.2 rdma /mnt
	echo "$SERVER4:$EXPORT /mnt nfs vers=4.2,proto=rdma,port=$PORT 0 0" >/etc/fstab
	check "a mount over RDMA, as fstab says: 0" exits 0 tool doctor
	check "it has seen the mount" says "^ok .* 1 mount uses RDMA$"
	check "umount" umount /mnt
	check "the mount of fstab is missing" notes "/mnt of /etc/fstab is not mounted"
	PORT=2049 check "mount over TCP" nfs_mount 4.2 tcp /mnt
	check "fstab asks for RDMA, and the mount has TCP" \
		finds_only "/mnt is mounted over tcp, and /etc/fstab asks for RDMA"
	: >/etc/fstab
	check "nobody asks for RDMA: 0" exits 0 tool doctor
	check "umount" umount /mnt
}

links() {
	mkdir -p /tmp/no-gids
	ip link set "$(netdev)" down
	[ "$DEVICE" = siw ] || wait_for 5 grep -q DOWN "/sys/class/infiniband/${DEVICE}0/ports/1/state"
	check "the network interface is down" finds "${DEVICE}0 port 1 on $(netdev) is not ACTIVE"
	net_up
	ip addr flush dev "$(netdev)"
	check "it has no address" \
		finds "$(netdev), the network interface of ${DEVICE}0 port 1, has no IP address"
	net_up
	need "the device is ready" rdma_up
	[ "$DEVICE" = siw ] || no_carrier
	check "no network interface" in_place "/sys/class/infiniband/${DEVICE}0/ports/1/gid_attrs" \
		/tmp/no-gids by_way_of "unshare --net" \
		finds_only "${DEVICE}0 port 1 has no network interface, so no address"
	rdma link delete "${DEVICE}0"
	check "no device" finds_only "there is no RDMA device"
	need "the device is back" rdma_up
}

no_carrier() {
	ip link set "$(netdev)" carrier off
	need "the port is down" wait_for 5 port_is DOWN
	check "no carrier" finds "rxe0 port 1 on $(netdev) is not ACTIVE: 1: DOWN"
	check "it says what is missing" says "[-]> $(netdev) has no carrier: "
	check "a route by a device that is down" \
		finds "the route to $SERVER4 is by $(netdev), whose RDMA device rxe0 is not ACTIVE" $SERVER4
	ip link set "$(netdev)" carrier on
	need "the port is up" wait_for 5 port_is ACTIVE
}

port_is() {
	grep -q "$1" "/sys/class/infiniband/${DEVICE}0/ports/1/state"
}

# Another device beside the one that works, on an interface of its own
second_device() {
	ip link add lab2 type dummy
	need "a second device" rdma link add "${DEVICE}1" type "$DEVICE" netdev lab2
	check "it is down, which is a note: 0" notes "${DEVICE}1 port 1 on lab2 is not ACTIVE"
	ip link set lab2 up
	check "it is up, and has no address: 0" notes "lab2, the network interface of ${DEVICE}1 port 1, has no IP address"
	rdma link delete "${DEVICE}1"
	ip link delete lab2
}

# Listeners at the address of one device, which only nfsd's netlink family can make: kernels
# since 6.10 have it.
listeners() {
	check "stop the NFS server" server_down
	need "start what it needs" server_daemons
	ip link add lab2 type dummy
	ip address add 10.18.0.1/24 dev lab2
	ip link set lab2 up
	need "a second device" second_device_up
	if [ "$GUEST" != debian-6.1 ]; then
		need "listen at its address" listen_at 0a120001
		echo 2 >/proc/fs/nfsd/threads
		check "a listener at its address: 0" well
		rdma link delete "${DEVICE}1"
		check "its device is gone" wait_for 5 \
			finds_only "the listener at 10.18.0.1:$PORT waits for an RDMA device"
		need "the device is back" second_device_up
		check "it listens again: 0" wait_for 10 well
	fi
	echo 0 >/proc/fs/nfsd/threads
	rdma link delete "${DEVICE}1"
	ip link delete lab2
	need "start the NFS server" server_up
	PORT=20050 check "listen at another port" listen
	check "another port is a note" notes "the NFS server listens for RDMA at port 20050, not 20049"
}

second_device_up() {
	rdma link add "${DEVICE}1" type "$DEVICE" netdev lab2
}

# listen_at ADDRESS: in hexadecimal digits
listen_at() {
	local address
	address=0200$(printf %04x $PORT)${1}0000000000000000
	PYTHONPATH=/lab/ynl python3 -B /lab/ynl/cli.py --no-schema --spec /lab/ynl/nfsd.yaml \
		--do listener-set \
		--json '{"addr": [{"transport-name": "rdma", "addr": "'$address'"}]}' >/dev/null 2>&1
}

server_and_module() {
	check "stop the NFS server" server_down
	need "start it without RDMA" server_up
	check "no listener is a note: 0" \
		notes "the NFS server runs and does not listen for RDMA$"
	printf '[nfsd]\nrdma=y\n' >>/etc/nfs.conf
	check "no listener, and nfs.conf asks for one" \
		finds_only "the NFS server runs and does not listen for RDMA, as nfs.conf asks it to"
	sed -i '/^\[nfsd\]$/,$d' /etc/nfs.conf
	check "stop the NFS server" server_down
	need "unload rpcrdma" unload_module
	check "the module is not loaded" finds_only "rpcrdma is not loaded"
	need "load the kernel's own" insmod "$(ls $MODULES/kernel/net/sunrpc/xprtrdma/rpcrdma.ko*)"
	check "the kernel's own module is loaded" \
		finds_only "the loaded rpcrdma is the kernel's own"
	need "unload it" unload_module
	need "load ours" modprobe rpcrdma
	need "start the NFS server" server_up
	need "listen for rdma" listen
}
