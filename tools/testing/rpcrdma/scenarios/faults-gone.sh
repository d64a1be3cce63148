# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   an RPC waits for a device, and with fatal_neterrors it fails when the network is gone
# guests:  um-7/rxe
# also:    um-7/mem debian-13-7/rxe
# devices: rxe mem
# modules: ours
# limit:   200
# faults:  the device goes away
#
# Kernels before 6.16 do not have the mount option.

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# Seconds for which the device is missing
AWAY=40

client() {
	client_begin
	need "mount" nfs_mount 3 rdma /mnt fatal_neterrors=ENETDOWN:ENETUNREACH
	need "mount without it" nfs_mount 3 rdma6 /tmp/hard fatal_neterrors=none
	need "a file" dd if=/dev/urandom of=/mnt/data bs=64k count=1 oflag=direct status=none
	comes_back
	network_gone
	check "umount" umount /mnt
	check "umount the other one" umount /tmp/hard
}

comes_back() {
	need "delete the device" remove
	check "an RPC waits for it for $AWAY seconds" waits $AWAY
	need "add it again" rdma_up
	check "then the RPC succeeds" wait_for $RECOVERY ended 0
}

network_gone() {
	need "the network goes" ip addr flush dev "$(netdev)"
	need "delete the device again" remove
	read_hard &
	check "an RPC fails" wait_for $RECOVERY ended 1
	check "because the network is unreachable" grep -Ei "unreachable|input/output" /tmp/why
	check "without fatal_neterrors it still waits" not test -e /tmp/hard.status
	need "the network is up again" net_up
	need "add the device again" rdma_up
	check "then it succeeds" wait_for $RECOVERY hard_ended
	check "with status 0" is 0 "$(cat /tmp/hard.status)"
	check "the mount can be used" wait_for $RECOVERY read_it
}

# Delete the device, and read.
remove() {
	rdma link delete "${DEVICE}0" || return
	rm -f /tmp/status
	{ read_it; echo $? >/tmp/status; } >/dev/null 2>/tmp/why </dev/null &
}

# read_it [DIRECTORY]
read_it() {
	dd if="${1:-/mnt}/data" of=/dev/null bs=64k iflag=direct status=none
}

# Read by the mount that is not to fail.
read_hard() {
	rm -f /tmp/hard.status
	read_it /tmp/hard
	echo $? >/tmp/hard.status
} >/dev/null 2>&1 </dev/null

hard_ended() {
	[ -s /tmp/hard.status ]
}

# waits SECONDS: whether the RPC has not ended after that.
waits() {
	sleep "$1"
	[ ! -e /tmp/status ]
}

# ended STATUS: whether the RPC has ended so.
ended() {
	[ -e /tmp/status ] && is "$1" "$(cat /tmp/status)"
}
