# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   READs and WRITEs of 1 MiB are verified, and of 4 MiB with a client changed for that
# guests:  um um-7
# also:    um/mem um-7/mem um-7-debug debian-6.1 debian-6.12 debian-13-7 debian-13-arm64-16k
# also:    arm64-64k/rxe
# devices: rxe siw mem
# modules: ours

. "${BASH_SOURCE%/*}/../guest/faults.sh"

MIB=1048576
CALLS=4
BLOCK_SIZE=/proc/fs/nfsd/max_block_size

server() {
	server_begin
	# Starting nfsd computes the default.
	cat $BLOCK_SIZE >/tmp/block_size
	need "nfsd takes $(server_limit) octets" restart_nfsd "$(server_limit)"
}

server_done() {
	check "nfsd takes what it did before" restart_nfsd "$(cat /tmp/block_size)"
	server_end
}

server_limit() {
	case $(uname -r) in
	6.*) echo $MIB ;;
	*) echo $((4 * MIB)) ;;
	esac
}

# No kernel's client has more than 1 MiB; that of the lab's own kernels 7.x is changed
# (LARGE_IO in rpcrdma_lab/kernels.py).
client_limit() {
	case $GUEST in
	um-7*) echo $((4 * MIB)) ;;
	*) echo $MIB ;;
	esac
}

# restart_nfsd SIZE: the size can be set while no thread runs.
restart_nfsd() {
	rpc.nfsd 0 && echo "$1" >$BLOCK_SIZE && server_start && is "$1" "$(cat $BLOCK_SIZE)"
}

client() {
	local vers size
	client_begin
	for vers in 3 4.2; do
		for ((size = MIB; size <= $(client_limit); size *= 4)); do
			read_and_write "v$vers, $size octets" "$vers" "$size"
		done
	done
}

# read_and_write WHAT VERSION SIZE
read_and_write() {
	local what=$1
	need "$what: mount" nfs_mount "$2" rdma /mnt "rsize=$3,wsize=$3"
	check "$what: this is what is mounted" grep "rsize=$3,wsize=$3" /proc/mounts
	need "$what: make random data" \
		dd if=/dev/urandom of=/tmp/data bs="$3" count=$CALLS iflag=fullblock
	check "$what: write" dd if=/tmp/data of=/mnt/data bs="$3" oflag=direct
	check "$what: each WRITE has $3 octets" is $CALLS "$(operations WRITE)"
	drop_caches
	check "$what: the server has what was written" same_sum /tmp/data $LOCAL/data
	check "$what: read" dd if=/mnt/data of=/tmp/back bs="$3" count=$CALLS iflag=direct
	check "$what: each READ has $3 octets" is $CALLS "$(operations READ)"
	check "$what: what was read is what was written" same_sum /tmp/data /tmp/back
	rm -f /tmp/data /tmp/back /mnt/data
	check "$what: umount" unmount /mnt
}
