# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   repeated WRITEs that the server is still executing break no further connection
# guests:  um
# also:    um/mem um-7-debug/siw debian-6.1
# devices: rxe siw mem
# turns:   nfsd's threads
# modules: ours
# limit:   150
# faults:  a guest or a service stands still

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# More threads than ever wait for the frozen file system, so that others can drop repeated
# Calls
NFSD_THREADS=32

JOBS=8
# Seconds. Less than a minute, after which the kernel reports a hung task, and less than
# the second timeout of a v3 mount with timeo=100.
FROZEN=25

server() {
	begin
	need "a file system that can be frozen" disk_up
	need "NFS server" server_up
	need "listen for rdma on port $PORT" listen
}

# A tmpfs cannot be frozen, so the export is an ext4 on a loop device.
disk_up() {
	mountpoint -q /srv || mount -t tmpfs srv /srv
	modprobe -q -a loop ext4
	truncate -s 256m /srv/disk && mkfs.ext4 -q /srv/disk && mkdir -p $LOCAL &&
		losetup /dev/loop0 /srv/disk && mount /dev/loop0 $LOCAL && chmod 1777 $LOCAL
}

server_done() {
	check "remove the file system" disk_down
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
	# The v3 client repeats its Calls on another connection after ten seconds.
	frozen v3 true
	need "umount v3" umount /mnt
	need "mount v4.0" nfs_mount 4.0 rdma /mnt
	# The v4 client waits while it has a connection, so the connection is broken.
	frozen v4.0 device_bounce
	need "umount v4.0" umount /mnt
}

# frozen WHAT BREAK...: freeze the export's file system while files are written and
# another one is read, then break the connection with the command BREAK.
frozen() {
	local what=$1 before made since
	need "$what: make files" files_made
	before=$(connections_made)
	check "$what: freeze the export" fsfreeze -f $LOCAL
	since=$SECONDS
	read_on &
	write_all
	sleep 2
	check "$what: break the connection: ${*:2}" "${@:2}"
	wait_for $FROZEN is_over $((since + FROZEN))
	made=$(($(connections_made) - before))
	check "$what: unfreeze the export" fsfreeze -u $LOCAL
	check "$what: two new connections at most" [ $made -le 2 ]
	check "$what: one new connection at least" [ $made -ge 1 ]
	since=$SECONDS
	check "$what: all writers continue and succeed" written
	say "$what: $made new connections, the last writer ended after $((SECONDS - since)) s"
	rm /tmp/read.on
	wait
	check "$what: the data are correct" files_right
	check "$what: verified I/O after that" fio_verify --direct=1 --bs=64k --numjobs=$JOBS
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

# With these Replies the client reconnects at once when the connection breaks.
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
	wait_for $RECOVERY all_ended && is "$(yes 0 | head -n $JOBS)" "$(cat /tmp/written.*)"
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
