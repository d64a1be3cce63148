# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the examples for sysctl.d and nfs.conf.d, and the rule for udev, do what they say
# guests:  um/rxe
# also:    debian-6.1 debian-6.12 debian-13 debian-13-7
# devices: rxe
# modules: ours
#
# The files are those of Documentation/examples, and debian/60-rpcrdma-dkms.rules.

EXAMPLES=/lab/examples

client() {
	client_begin
	tunables
	nfs_conf
	attempt reloaded
	rm -f /etc/sysctl.d/rpcrdma.conf /etc/udev/rules.d/60-*
}

# All lines of the file that set something are comments.
tunables() {
	sed -n 's/^#\(sunrpc\.\)/\1/p' $EXAMPLES/sysctl.d/rpcrdma.conf >/tmp/sysctl.conf
	check "sysctl.d: it has tunables of the client and of the server" both_ends_tunables
	check "sysctl.d: it has their defaults" has_values /tmp/sysctl.conf
	need "sysctl.d: another value" tune svc_rdma/max_requests 17
	check "sysctl.d: sysctl -p finds all names" sysctl -q -p /tmp/sysctl.conf
	check "sysctl.d: then it has the defaults again" has_values /tmp/sysctl.conf
}

both_ends_tunables() {
	grep '^sunrpc\.rdma_' /tmp/sysctl.conf && grep '^sunrpc\.svc_rdma\.' /tmp/sysctl.conf
}

# has_values FILE: whether the settings have the values of a file.
has_values() {
	local name value
	while IFS=' =' read -r name value; do
		is "$name $value" "$name $(sysctl -n "$name")" || return
	done <"$1"
}

# The server starts with nothing but this file and the lab's export. The port is another one,
# because rpc.nfsd would use 20049 without the file's line for it.
nfs_conf() {
	local PORT=20051
	need "nfs.conf.d: stop the NFS server" rpc.nfsd 0
	need "nfs.conf.d: install the file, with port $PORT" install_nfs_conf
	check "nfs.conf.d: start the NFS server" rpc.nfsd
	need "nfs.conf.d: two lines of portlist have RDMA and the port" \
		is 2 "$(grep -cx "rdma $PORT" /proc/fs/nfsd/portlist)"
	check "nfs.conf.d: it listens on TCP, too" grep -x "tcp 2049" /proc/fs/nfsd/portlist
	check "nfs.conf.d: mount" nfs_mount 3 rdma /mnt
	check "nfs.conf.d: umount" unmount /mnt
	check "nfs.conf.d: remove the file" rm /etc/nfs.conf.d/rpcrdma.conf
}

install_nfs_conf() {
	mkdir -p /etc/nfs.conf.d &&
		sed "s/^\(rdma-port=\)20049$/\1$PORT/" $EXAMPLES/nfs.conf.d/rpcrdma.conf \
			>/etc/nfs.conf.d/rpcrdma.conf
}

# udev applies sysctl.d when the module is loaded. Another value than the default for each
# setting that has one.
reloaded() {
	awk -F= '{ print $1 "=", $2 == 1 ? ($1 ~ /version/ ? 2 : 0) : $2 / 2 }' \
		/tmp/sysctl.conf >/etc/sysctl.d/rpcrdma.conf
	need "udev: install the rule, and not that of nfs-kernel-server" install_rule
	need "udev: start it" /usr/lib/systemd/systemd-udevd --daemon
	need "udev: stop the NFS server" rpc.nfsd 0
	need "udev: unload the module" unload_module
	need "udev: load it again" modprobe rpcrdma
	check "udev: it has the values of sysctl.d" wait_for 10 has_values /etc/sysctl.d/rpcrdma.conf
	check "udev: end it" udevadm control --exit
}

install_rule() {
	mkdir -p /etc/udev/rules.d && ln -s /dev/null /etc/udev/rules.d/60-nfs.rules &&
		cp /lab/60-rpcrdma-dkms.rules /etc/udev/rules.d
}
