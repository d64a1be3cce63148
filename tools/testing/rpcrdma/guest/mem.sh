# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios over the test device (tools/testing/rpcrdma/device): devices with
# other limits, a device for each end, faults of the device, and what it counts.
# Documentation/testing.rst explains them.

. "${BASH_SOURCE%/*}/faults.sh"
. "${BASH_SOURCE%/*}/forms.sh"

MEM_DEBUG=/sys/kernel/debug/rdma_mem
MEM_PARAMETERS=/sys/module/rdma_mem/parameters
DMA_MAPPINGS=/sys/kernel/debug/dma-api/dump

# Devices

# use_preset NAME: the limits of devices that are added from now on
use_preset() {
	echo "$1" >$MEM_PARAMETERS/preset
}

# limit NAME VALUE: one limit of devices that are added from now on, whatever the preset is
limit() {
	echo "$2" >"$MEM_PARAMETERS/$1"
}

# Client and server with a device each, in one kernel. The client's is in a network namespace:
# otherwise both addresses would be local ones, and a connection to a local address uses the
# device that has this address.
#
#   server                         client: namespace "client"
#   +------------------------+     +------------------------+
#   | nfsd, rdma port 20049  |     | mount at /mnt          |
#   | mem0                   |     | mem1                   |
#   | 10.17.0.1, fd17::1     |     | 10.17.0.2, fd17::2     |
#   | lab0: one end of a ----|-----|-- lab1: the other end  |
#   +------------------------+veth +------------------------+
#
# pair COMMAND...: add them, and mount in the namespace from now on. The command, between the
# two, may change the limits.
pair() {
	need "two devices, the client's after '$*'" pair_up "$@"
	NETNS=client
}

pair_up() {
	modprobe -q veth
	ip netns add client &&
		ip link add lab0 type veth peer name lab1 netns client &&
		net_up && give_addresses lab1 0 2 in_client && rdma_up && "$@" && client_device_up 1
}

# client_device_up NUMBER
client_device_up() {
	in_client rdma link add "mem$1" type mem netdev "lab$1" && wait_for 5 has_gid "mem$1"
}

pair_no_more() {
	NETNS=
	check "remove the devices" pair_down
}

pair_down() {
	rdma link delete mem1 && rdma_down && ip netns del client
}

in_client() {
	nsenter --net=/run/netns/client "$@"
}

# The devices that there are
mem_devices() {
	(cd /sys/class/infiniband && compgen -G 'mem*')
}

# The client needs several registrations for 64 KiB, of which the server's Send invalidates
# only one: the client has to invalidate the others.
CLIENT_PAGES=8
# The kernel's own module does not mount with 16 or fewer. With 32 it, too, needs several for
# the largest requests.
[ "$MODULE" = ours ] || CLIENT_PAGES=32

# What scenarios with two devices begin and end with
pair_begin() {
	need "load the test device" modprobe rdma_mem
	pair limit max_fast_reg_page_list_len $CLIENT_PAGES
	need "NFS server" server_up
	objects >/tmp/objects
	need "rpcrdma is the $MODULE module" right_module
	need "load it, and listen" load_and_listen
	head -c 256k /dev/urandom >/tmp/data
}

pair_end() {
	judge "at the end"
	check "stop the NFS server" server_down
	module_down
	check "the devices have no more objects and mappings than before" wait_for 10 as_before
	pair_no_more
}

# What the device found and counted

# Whether the devices have found no rule broken. The console says more about each violation.
no_violation() {
	[ -n "$(mem_devices)" ] && not grep -H . $MEM_DEBUG/*/violations
}

# How many objects of each kind the devices have. ib_core keeps the completion queues that it
# shares out until the device is removed.
objects() {
	grep -H . $MEM_DEBUG/*/objects | grep -v ':cqs '
	mappings
}

# How many DMA mappings they have, on a kernel with CONFIG_DMA_API_DEBUG. ib_mad has as many
# all the time.
mappings() {
	[ ! -r $DMA_MAPPINGS ] || echo "mappings $(grep -c '^rdma_mem ' $DMA_MAPPINGS)"
}

# Whether they have as many as in pair_begin, when rpcrdma was not loaded.
as_before() {
	is "$(cat /tmp/objects)" "$(objects)"
}

# counted DEVICE NAME...: the sum of some of its counters
counted() {
	awk -v names=" ${*:2} " '
		index(names, " " $1 " ") { n += $2 }
		END { print n + 0 }' "$MEM_DEBUG/$1/stats"
}

# did_work DEVICE: whether messages went over it, in both directions.
did_work() {
	[ "$(counted "$1" sends sends_inv)" -gt 0 ] && [ "$(counted "$1" receives)" -gt 0 ] &&
		[ "$(counted "$1" doorbells)" -gt 0 ] && [ "$(counted "$1" interrupts)" -gt 0 ]
}

# judge WHAT: what must hold after any I/O
judge() {
	local device
	for device in $(mem_devices); do
		check "$1: $device was used" did_work "$device"
	done
	check "$1: no violation" no_violation
}

# Faults of the device

# fault DEVICE OP NTH ACTION...: what happens to the NTH operation of a kind from now on, once.
# Reading the file prints the words.
fault() {
	echo "${*:2}" >"$MEM_DEBUG/$1/fault"
}

# no_fault DEVICE: forget the faults that have not happened, and let go of completions.
no_fault() {
	echo clear >"$MEM_DEBUG/$1/fault"
}

# release DEVICE: let go of the completions that are held.
release() {
	echo release >"$MEM_DEBUG/$1/fault"
}

# stops_late DEVICE TIMES: its driver refuses to stop a queue pair so many times. Each attempt of
# either end tells the queue pair twice, and there are ten attempts in a second.
stops_late() {
	local n
	for ((n = 0; n < $2; n++)); do
		fault "$1" stop 1 nomem || return
	done
}

hits() {
	cat "$MEM_DEBUG/$1/fault-hits"
}

more_hits() {
	[ "$(hits "$1")" -gt "$2" ]
}

# I/O

# every_form WHAT VERSION: an operation at /mnt in each form. ACLs, for which NFSv3 has long
# Calls and Replies, are not in NFSv4.
every_form() {
	local form forms=$FORMS
	[ "$2" = 3 ] || forms="inline_both_ways read_chunk write_chunk"
	for form in $forms; do
		check "$1: $form" "by_$form"
	done
	[ "$2" != 3 ] || check "$1: the long Call arrived" long_call_arrived
	check "$1: a long directory" long_directory /mnt/long
	check "$1: a symbolic link" link_to /mnt/link "$(printf 'x%.0s' {1..1000})"
	check "$1: verified I/O, 512 B to 1 MiB" \
		fio_verify --direct=1 --bsrange=512-1m --numjobs=2 --size=2m
}

# happens DEVICE OP NTH ACTION...: a fault, and wait until I/O in the background has met it.
happens() {
	local before
	before=$(hits "$1")
	fault "$@" && met "$1" "$before"
}

# met DEVICE HITS: whether there are more hits now or soon. If not, the fault is forgotten: it
# would happen while something else is tried.
met() {
	wait_for 10 more_hits "$@" || { no_fault "$1"; return 1; }
}

# A device breaks a connection: it reports that a queue pair is in error.
queue_pair_fatal() {
	happens mem0 send 1 qp-fatal
}

# disconnect: have the client close its connection, and make another one.
disconnect() {
	local before
	before=$(connections_made)
	wait_for $RECOVERY disconnected "$before"
}

disconnected() {
	drop_connections
	wait_for 3 more_connections "$1"
}

# An operation of each kind. A connection that is lost is made again meanwhile. The kernel's
# own module has the server invalidate the registration of a short read alone.
verified_io() {
	timeout -s KILL "$(seconds $RECOVERY)" dd if=/tmp/data of=/mnt/data bs=256k count=1 \
		oflag=direct conv=notrunc status=none &&
		reads_back 256k && reads_back 64k
}

reads_back() {
	timeout -s KILL "$(seconds $RECOVERY)" dd if=/mnt/data bs="$1" iflag=direct \
		status=none | cmp - /tmp/data
}
