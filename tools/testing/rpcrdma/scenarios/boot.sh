# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a machine that starts serves and mounts over RDMA, by the examples for nfs.conf, fstab,
# shows:   systemd, autofs and Kubernetes
# also:    debian-6.1 debian-13
# devices: rxe
# modules: ours
#
# The machine is systemd with namespaces of its own for processes and mounts, its own /run and
# /tmp, and a copy of the guest's /etc. Network, RDMA device and kernel are the guest's. It is its
# own server.

EXAMPLES=/lab/examples
ETC=/tmp/boot.etc
SYSTEMD=/usr/lib/systemd/systemd

server() {
	begin
	need "an export" make_export
	need "its /etc" make_etc
	# systemd loads it, but not in namespaces.
	need "automounts" modprobe autofs4
}

make_export() {
	mkdir -p /srv && mount -t tmpfs srv /srv && mkdir -m 1777 $LOCAL
}

# As the examples say, on a machine that was not just installed. A server that is its own client
# has to start first. Nobody logs in.
make_etc() {
	local system=$ETC/systemd/system
	cp -a /etc $ETC || return
	echo 00112233445566778899aabbccddeeff >$ETC/machine-id
	echo "$SERVER4 server" >>$ETC/hosts
	echo "$EXPORT *(rw,no_root_squash,no_subtree_check,insecure,fsid=17)" >$ETC/exports
	printf '[exports]\nrootdir=/srv\n[nfsd]\nlease-time=10\ngrace-time=10\n' >$ETC/nfs.conf
	mkdir -p $ETC/{nfs.conf,auto.master}.d $system/{nfs-server.service.d,remote-fs.target.wants}
	printf '[Unit]\nBefore=remote-fs-pre.target autofs.service\n' \
		>$system/nfs-server.service.d/lab.conf
	ln -s /dev/null $system/getty.target
	cp $EXAMPLES/nfs.conf.d/* $ETC/nfs.conf.d && cp $EXAMPLES/fstab $ETC &&
		cp $EXAMPLES/systemd/mnt-unit.mount $system &&
		ln -s ../mnt-unit.mount $system/remote-fs.target.wants &&
		cp $EXAMPLES/autofs/rdma.autofs $ETC/auto.master.d && cp $EXAMPLES/autofs/auto.rdma $ETC
}

client() {
	local try
	for try in "after the start" "after another start"; do
		need "$try: systemd is process 1" boot
		check "$try: all units have been started" wait_for 60 booted
		check "$try: nfs.conf: the server listens on rdma" \
			inside grep -x "rdma $PORT" /proc/fs/nfsd/portlist
		used "$try: fstab" /mnt/data
		used "$try: fstab, when it is used" /mnt/late
		used "$try: a unit" /mnt/unit
		used "$try: autofs" /auto/data
		pod "$try: Kubernetes"
		need "$try: the machine stops" halted
		check "$try: nothing is connected, and nothing listens" wait_for 10 nothing_left
	done
}

boot() {
	unshare --pid --fork --mount --mount-proc bash -c '
		mount --bind "$1" /etc && mount -t tmpfs tmpfs /tmp && mount -t tmpfs tmpfs /run &&
			mkdir /run/lock && mount -t cgroup2 cgroup2 /sys/fs/cgroup && mount -o remount,bind,ro /sys &&
			exec env container=lab "$2"' boot $ETC $SYSTEMD </dev/null >/tmp/boot.log 2>&1 &
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

# used WHAT DIRECTORY: whoever reads it sees the export, over RDMA.
used() {
	echo "$1" >$LOCAL/word
	check "$1: $2 is mounted" is "$1" "$(inside cat "$2/word" 2>&1)"
	check "$1: $2 uses RDMA" inside uses_rdma "$2"
}

# pod WHAT: the driver mounts on the node; the pod has a network of its own.
pod() {
	local options
	options=$(sed -n '/mountOptions:/,/csi:/s/^ *- //p' $EXAMPLES/kubernetes/volume.yaml | paste -sd,)
	echo "$1" >$LOCAL/word
	mkdir -p /mnt/pod
	check "$1: mount -o $options" inside mount -t nfs -o "$options" server:$EXPORT /mnt/pod
	check "$1: a pod reads the volume" is "$1" "$(inside unshare --mount --net cat /mnt/pod/word 2>&1)"
	check "$1: it uses RDMA" inside uses_rdma /mnt/pod
	check "$1: umount" inside umount /mnt/pod
}

# systemd stops the machine at this signal.
halted() {
	kill -s RTMIN+4 "$(init)" && wait_for 60 not init
}

nothing_left() {
	not rdma_transports && not grep -F '[rpcrdma]' <(rdma resource show cm_id)
}

server_done() {
	rm -rf $ETC /var/lib/nfs/nfsdcld
	check "the export is not in use" umount /srv
	end
}
