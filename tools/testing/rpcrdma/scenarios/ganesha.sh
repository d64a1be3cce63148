# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   our client works with the server nfs-ganesha, which nobody here wrote, and when it is killed
# also:    debian-13
# devices: rxe
# limit:   240
# root:    ganesha
# faults:  the server is killed
#
#   +-----------------------------------------+
#   | ganesha.nfsd, rdma port 20049; mount    |
#   | rpcrdma: client; rxe0 on lab0           |
#   | 10.17.0.1                               |
#   +-----------------------------------------+

. "${BASH_SOURCE%/*}/../guest/faults.sh"
. "${BASH_SOURCE%/*}/../guest/tools.sh"

PATIENCE=
# One path for both versions
EXPORT=$LOCAL

server() {
	begin
	need "verbs for user space" verbs_up
	need "an export" disk_up
	need "rpcbind" rpcbind -i -w
	need "nfs-ganesha" ganesha_up
}

# It finds files again by handles of the file system.
disk_up() {
	modprobe -q -a loop ext4
	mount -t tmpfs srv /srv && truncate -s 512m /srv/disk && mkfs.ext4 -q /srv/disk &&
		mkdir -p $LOCAL /var/lib/nfs/ganesha /var/run/ganesha && mount_file /srv/disk $LOCAL &&
		chmod 1777 $LOCAL
}

# rxe posts by write(2), which fails in a thread that has taken another user's credentials.
ganesha_up() {
	cat >/tmp/ganesha.conf <<-END
		NFS_CORE_PARAM {
			Protocols = 3, 4, nfsrdma;
			NFS_RDMA_Port = $PORT;
			NFS_RDMA_Protocol_Versions = 3, 4.0;
			MNT_Port = 20048;
			Enable_NLM = false;
			Enable_RQUOTA = false;
		}
		NFSv4 {
			Lease_Lifetime = 10;
			Grace_Period = 10;
		}
		VFS {
			only_one_user = true;
		}
		EXPORT {
			Export_Id = 17;
			Path = $LOCAL;
			Pseudo = $EXPORT;
			Access_Type = RW;
			Squash = No_Root_Squash;
			SecType = sys;
			Protocols = 3, 4;
			FSAL {
				Name = VFS;
			}
		}
	END
	ganesha.nfsd -f /tmp/ganesha.conf -L /lab/out/ganesha.log -N NIV_EVENT -p /run/ganesha.pid &&
		wait_for 30 listens
}

listens() {
	rdma resource show cm_id | grep -q "state LISTEN .*:$PORT "
}

client() {
	local vers
	client_begin
	for vers in 3 4.0; do
		need "v$vers: mount" nfs_mount $vers rdma /mnt
		check "v$vers over rdma is what is mounted" mounted_as /mnt $vers rdma
		check "v$vers: verified I/O, 512 B to 1 MiB" \
			fio_verify --direct=1 --bsrange=512-1m --numjobs=2
		check "v$vers: verified I/O, cached" fio_verify --direct=0 --bsrange=4k-256k
		odd_sizes "v$vers"
		check "v$vers: a long directory" long_directory /mnt/long
		check "v$vers: a symbolic link" link_to /mnt/link target
		reconnects "v$vers: kill -9, and start again" ganesha_bounce
		check "v$vers: umount" umount /mnt
	done
}

# Of what it sends inline the padding is wrong, and it sends no private data.
odd_sizes() {
	local size
	for size in 1 2 3 5 511 1021 1023 1025 4095 4097 16381 65537 262145; do
		head -c $size /dev/urandom >/tmp/odd
		check "$1: write $size octets" eval "cp /tmp/odd /mnt/odd && cmp /tmp/odd $LOCAL/odd"
		drop_caches
		check "$1: read $size octets" cmp /tmp/odd /mnt/odd
	done
	rm /mnt/odd
}

ganesha_bounce() {
	pkill -9 -x ganesha.nfsd && wait_for 10 not pgrep -x ganesha.nfsd && ganesha_up
}

server_done() {
	check "stop nfs-ganesha" eval "pkill -9 -x ganesha.nfsd; wait_for 10 not pgrep -x ganesha.nfsd"
	check "stop rpcbind" pkill -x rpcbind
	check "remove the export" eval "wait_for 10 umount $LOCAL && umount /srv"
	end
}
