# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   rpcrdma doctor names what is wrong and what to do about it, each thing on its own
# guests:  um/rxe
# also:    um um-debug um-7 debian-6.1 debian-6.12 debian-13-7
# devices: rxe siw
# modules: ours
# limit:   120

. /lab/guest/tools.sh

MODULES=/lib/modules/$(uname -r)

client() {
	client_begin
	need "the program" tool_up
	need "verbs for user space" verbs_up
	check "all is well: 0" well
	check "it has looked at everything" looked_at_all
	arguments
	way_to_host
	firewall
	log_lines
	mounts
	rights
	module_files
	links
	server_and_module
	check "all is well again: 0" well
	check "JSON: the same" as_json
}

# The log begins here: earlier scenarios in this guest have left errors there.
well() {
	dmesg --clear
	exits 0 tool doctor $SERVER4
}

looked_at_all() {
	is "device firewall listener log memlock module mount ping route" \
		"$(awk '$1 == "ok" { print $2 }' /tmp/tool.out | sort -u | xargs)"
}

# finds PATTERN [ARGUMENT...]: the doctor says that this is wrong and what to do about it.
finds() {
	exits 1 tool doctor "${@:2}" && says "^wrong  .*$1" &&
		grep -A 1 -E "^wrong  .*$1" /tmp/tool.out | sed -n 2p | grep -E '^ {18}-> .'
}

# finds_only PATTERN [ARGUMENT...]: and nothing else
finds_only() {
	finds "$@" && is 1 "$(grep -c '^wrong ' /tmp/tool.out)"
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
	check "a route by an interface without RDMA" \
		finds_only "the route to 127.0.0.1 is by lo, which has no RDMA device" 127.0.0.1
	check "a name without an address" \
		finds_only "no-such-host.invalid has no address" no-such-host.invalid
	check "nobody listens there" \
		finds_only "$SERVER4 port $((PORT + 1)) does not answer over RDMA" "$SERVER4:$((PORT + 1))"
}

# The guests have no nft, and um's kernel has no packet filter: this plants what nft prints.
firewall() {
	local rule='"match": {"op": "==", "left": {"payload": {"protocol": "udp", "field": "dport"}}, "right": 4791}'
	local what="udp port 4791"
	if [ "$DEVICE" = siw ]; then
		rule=${rule//udp/tcp} what="tcp port $PORT"
		rule=${rule//4791/$PORT}
	fi
	mkdir -p /tmp/fake
	cat >/tmp/fake/nft <<-END
		#!/bin/sh
		[ "\$*" = "-j list ruleset" ] || exit 1
		echo '{"nftables": [{"chain": {"family": "inet", "table": "lab", "name": "in",
			"type": "filter", "hook": "input", "prio": 0, "policy": "accept"}},
			{"rule": {"family": "inet", "table": "lab", "chain": "in",
			"expr": [{$rule}, {"drop": null}]}}]}'
	END
	chmod +x /tmp/fake/nft
	PATH=/tmp/fake:$PATH check "a rule of nftables drops $what" \
		finds_only "nft: the rules of inet lab in drop $what"
}

log_lines() {
	local pattern="the other end rejected the connection: invalid service ID"
	[ "$DEVICE" != siw ] || pattern="not connected: "
	dmesg --clear
	mount_at $((PORT + 1))
	check "the log has an error" finds_only "\"$SERVER4:$((PORT + 1)): $pattern"
	dmesg --clear
	check "the log is cleared: 0" exits 0 tool doctor
}

mount_at() {
	local PORT=$1
	nfs_mount 3 rdma /mnt retry=0
}

mounts() {
	check "mount" nfs_mount 4.2 rdma /mnt
	echo "$SERVER4:$EXPORT /mnt nfs vers=4.2,proto=rdma,port=$PORT 0 0" >/etc/fstab
	check "a mount over RDMA, as fstab says: 0" exits 0 tool doctor
	check "it has seen the mount" says "^ok .* 1 mount uses RDMA$"
	check "umount" umount /mnt
	PORT=2049 check "mount over TCP" nfs_mount 4.2 tcp /mnt
	check "fstab asks for RDMA, and the mount has TCP" \
		finds_only "/mnt is mounted over tcp, and /etc/fstab asks for RDMA"
	: >/etc/fstab
	check "nobody asks for RDMA: 0" exits 0 tool doctor
	check "umount" umount /mnt
}

rights() {
	check "little memory may be locked" little_memory \
		finds_only "programs may lock only 64 KiB"
	check "not root: 2, and what could not be checked" not_root
}

# little_memory COMMAND...: without the capability to lock more
little_memory() {
	cat >/tmp/limited <<-END
		#!/bin/sh
		exec prlimit --memlock=65536:65536 setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock /tmp/rpcrdma "\$@"
	END
	chmod +x /tmp/limited
	local TOOL=/tmp/limited
	"$@"
}

not_root() {
	cat >/tmp/nobody <<-END
		#!/bin/sh
		exec setpriv --reuid=65534 --regid=65534 --clear-groups /tmp/rpcrdma "\$@"
	END
	chmod +x /tmp/nobody
	local TOOL=/tmp/nobody
	exits 2 tool doctor && says "^unknown listener .*/proc/fs/nfsd/threads cannot be read"
}

# What modprobe and the firmware say about the module
module_files() {
	mkdir -p /etc/modprobe.d
	echo "blacklist rpcrdma" >/etc/modprobe.d/lab.conf
	check "modprobe is told not to load it" \
		finds_only "/etc/modprobe.d/lab.conf tells modprobe not to load rpcrdma"
	rm /etc/modprobe.d/lab.conf

	grep -v 'alias svcrdma ' $MODULES/modules.alias >/tmp/modules.alias
	mount --bind /tmp/modules.alias $MODULES/modules.alias
	check "an alias is missing" finds_only "has no alias svcrdma"
	umount $MODULES/modules.alias

	# No guest has firmware with Secure Boot. The module is not signed indeed.
	mount -t tmpfs tmpfs /sys/firmware && mkdir -p /sys/firmware/efi/efivars
	printf '\6\0\0\0\1' >/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
	check "Secure Boot, and the module is not signed" \
		finds_only "Secure Boot is on, and the module is not signed"
	umount /sys/firmware
}

links() {
	ip link set "$(netdev)" down
	[ "$DEVICE" = siw ] || wait_for 5 grep -q DOWN "/sys/class/infiniband/${DEVICE}0/ports/1/state"
	check "the network interface is down" finds "${DEVICE}0 port 1 on $(netdev) is not ACTIVE"
	net_up
	ip addr flush dev "$(netdev)"
	check "it has no address" \
		finds "$(netdev), the network interface of ${DEVICE}0 port 1, has no IP address"
	net_up
	need "the device is ready" rdma_up
	rdma link delete "${DEVICE}0"
	check "no device" finds_only "there is no RDMA device"
	need "the device is back" rdma_up
}

no_listener() {
	exits 0 tool doctor && says "^note .* the NFS server runs and does not listen for RDMA$"
}

server_and_module() {
	check "stop the NFS server" server_down
	need "start it without RDMA" server_up
	check "no listener is a note: 0" no_listener
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
