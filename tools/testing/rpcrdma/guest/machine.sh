# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios about machines that start. A machine is systemd with namespaces of its own
# for processes and mounts, its own /run and /tmp, and a copy of the guest's /etc. Network, RDMA
# device and kernel are the guest's.

EXAMPLES=/lab/examples
ETC=/tmp/machine.etc
SYSTEM=$ETC/systemd/system

# make_etc: /etc of a machine that was not just installed, and where nobody logs in
make_etc() {
	cp -a /etc $ETC || return
	echo 00112233445566778899aabbccddeeff >$ETC/machine-id
	echo "$SERVER4 server" >>$ETC/hosts
	ln -s /dev/null $SYSTEM/getty.target
}

make_export() {
	mkdir -p /srv && mount -t tmpfs srv /srv && mkdir -m 1777 $LOCAL
}

# make_server: what a server has in its /etc, as the example says
make_server() {
	echo "$EXPORT *(rw,no_root_squash,no_subtree_check,insecure,fsid=17)" >$ETC/exports
	printf '[exports]\nrootdir=/srv\n[nfsd]\nlease-time=10\ngrace-time=10\n' >$ETC/nfs.conf
	mkdir -p $ETC/nfs.conf.d && cp $EXAMPLES/nfs.conf.d/* $ETC/nfs.conf.d
}

# starts WHAT
starts() {
	need "$1: systemd is process 1" boot
	check "$1: all units have been started" wait_for 60 booted
}

# stops WHAT
stops() {
	need "$1: the machine stops" halted
	check "$1: nothing is connected, and nothing listens" wait_for 10 nothing_left
}

boot() {
	# systemd loads autofs4, but not in namespaces.
	modprobe autofs4 || return
	unshare --pid --fork --mount --mount-proc bash -c '
		mount --bind "$1" /etc && mount -t tmpfs tmpfs /tmp && mount -t tmpfs tmpfs /run &&
			mkdir /run/lock && mount -t cgroup2 cgroup2 /sys/fs/cgroup && mount -o remount,bind,ro /sys &&
			exec env container=lab /usr/lib/systemd/systemd' boot $ETC </dev/null >/tmp/boot.log 2>&1 &
	wait_for 10 init || { cat /tmp/boot.log; return 1; }
}

# The machine's process 1, as the guest numbers it
init() {
	pgrep -xo systemd
}

# inside COMMAND...: a command or a function of the library in the machine
inside() {
	nsenter -t "$(init)" -p -m bash -c '. /lab/guest/lib.sh && "$@"' inside "$@"
}

booted() {
	inside systemctl is-active multi-user.target && [ -z "$(inside systemctl list-jobs --no-legend)" ]
}

server_listens() {
	inside grep -x "rdma $PORT" /proc/fs/nfsd/portlist
}

# systemd stops the machine at this signal.
halted() {
	kill -s RTMIN+4 "$(init)" && wait_for 60 not init
}

nothing_left() {
	not rdma_transports && not grep -F '[rpcrdma]' <(rdma resource show cm_id)
}
