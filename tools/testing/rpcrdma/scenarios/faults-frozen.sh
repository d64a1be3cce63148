# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   writes that the server is still executing for an earlier connection cost no further one
# guests:  um
# also:    um-debug debian-6.1 debian-6.12 smp-debug
# devices: rxe siw
# modules: ours
# limit:   150

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# More than are ever stuck, so that some are left to drop what is sent again
NFSD_THREADS=32

JOBS=8
# Less than a minute, after which a kernel calls a thread hung; and than the second
# time-out of a v3 mount with timeo=100.
FROZEN=25

server() {
	begin
	need "a file system that can be frozen" disk_up
	need "NFS server" server_up
	need "listen for rdma on port $PORT" listen
}

# Nobody can freeze a tmpfs.
disk_up() {
	mountpoint -q /srv || mount -t tmpfs -o size=1500m srv /srv
	modprobe -q -a loop ext4
	truncate -s 256m /srv/disk && mkfs.ext4 -q /srv/disk && mkdir -p $LOCAL &&
		losetup /dev/loop0 /srv/disk && mount /dev/loop0 $LOCAL && chmod 1777 $LOCAL
}

server_done() {
	check "the file system goes" disk_down
	server_end
}

disk_down() {
	rpc.nfsd 0 && exportfs -ua && exportfs -f && wait_for 10 umount $LOCAL &&
		losetup -d /dev/loop0
}

client() {
	client_begin
	head -c 1M /dev/urandom >/tmp/data
	need "mount v3" nfs_mount 3 rdma /mnt timeo=100
	# Its client sends again by another connection after ten seconds.
	frozen v3 true
	need "umount v3" umount /mnt
	need "mount v4.0" nfs_mount 4.0 rdma /mnt
	# Its client waits for as long as there is the connection.
	frozen v4.0 device_bounce
	need "umount v4.0" umount /mnt
}

# frozen WHAT BREAK...: so is what the export lies on, while files are written and
# others are read; and then the connection is broken
frozen() {
	local what=$1 before made since
	need "$what: there are files" files_made
	before=$(connections_made)
	check "$what: the export is frozen" fsfreeze -f $LOCAL
	since=$SECONDS
	read_on &
	write_all
	sleep 2
	check "$what: the connection is broken: ${*:2}" "${@:2}"
	wait_for $FROZEN is_over $((since + FROZEN))
	made=$(($(connections_made) - before))
	check "$what: it thaws" fsfreeze -u $LOCAL
	check "$what: one connection, or two, is all that it took" [ $made -le 2 ]
	check "$what: but one it took" [ $made -ge 1 ]
	since=$SECONDS
	check "$what: all writers go on, and end well" written
	say "$what: $made new connections, and $((SECONDS - since)) s to the end of the last writer"
	rm /tmp/read.on
	wait
	check "$what: the data are right" files_right
	check "$what: all is as before: verified I/O" fio_verify --direct=1 --bs=64k --numjobs=$JOBS
	rm -f /mnt/file.* /mnt/other
}

# is_over TIME: in seconds of this shell
is_over() {
	[ $SECONDS -ge "$1" ]
}

files_made() {
	local n
	for ((n = 1; n <= JOBS; n++)); do
		truncate -s 1M "/mnt/file.$n" || return
	done
	cp /tmp/data /mnt/other && sync
}

# Each Reply has the client connect anew at once when it has to.
read_on() {
	: >/tmp/read.on
	while [ -e /tmp/read.on ]; do
		dd if=/mnt/other of=/dev/null bs=64k iflag=direct status=none
	done
}

write_all() {
	local n
	rm -f /tmp/written.*
	for ((n = 1; n <= JOBS; n++)); do
		write_one $n &
	done
}

write_one() {
	dd if=/tmp/data of="/mnt/file.$1" bs=64k oflag=direct conv=notrunc,nocreat status=none
	echo $? >"/tmp/written.$1"
}

written() {
	wait_for $PATIENCE all_ended && is "$(yes 0 | head -n $JOBS)" "$(cat /tmp/written.*)"
}

all_ended() {
	[ "$(compgen -G '/tmp/written.*' | wc -l)" = $JOBS ]
}

files_right() {
	local n
	for ((n = 1; n <= JOBS; n++)); do
		cmp /tmp/data "$LOCAL/file.$n" || return
	done
}
