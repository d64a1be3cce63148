# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a machine that starts serves and mounts over RDMA, by the examples for nfs.conf, fstab,
# shows:   systemd, autofs and Kubernetes
# also:    debian-6.1 debian-13
# devices: rxe
# modules: ours
#
# The machine is its own server.

. "${BASH_SOURCE%/*}/../guest/machine.sh"

server() {
	begin
	need "an export" make_export
	need "its /etc" all_examples
}

# A server that is its own client has to start first.
all_examples() {
	make_etc && make_server || return
	mkdir -p $ETC/auto.master.d $SYSTEM/{nfs-server.service.d,remote-fs.target.wants}
	printf '[Unit]\nBefore=remote-fs-pre.target autofs.service\n' \
		>$SYSTEM/nfs-server.service.d/lab.conf
	cp $EXAMPLES/fstab $ETC &&
		cp $EXAMPLES/systemd/mnt-unit.mount $SYSTEM &&
		ln -s ../mnt-unit.mount $SYSTEM/remote-fs.target.wants &&
		cp $EXAMPLES/autofs/rdma.autofs $ETC/auto.master.d && cp $EXAMPLES/autofs/auto.rdma $ETC
}

client() {
	local try
	for try in "after the start" "after another start"; do
		starts "$try"
		check "$try: nfs.conf: the server listens on rdma" server_listens
		used "$try: fstab" /mnt/data
		used "$try: fstab, when it is used" /mnt/late
		used "$try: a unit" /mnt/unit
		used "$try: autofs" /auto/data
		pod "$try: Kubernetes"
		stops "$try"
	done
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

server_done() {
	rm -rf $ETC /var/lib/nfs/nfsdcld
	check "the export is not in use" umount /srv
	end
}
