# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a connection that rests gives back what it made for I/O, and is closed after five minutes
# guests:  um/rxe
# also:    um-7-debug/rxe debian-6.1
# devices: rxe mem
# limit:   540
# faults:  a connection that rests is closed
#
#   +------------------------------------+
#   | nfsd, rdma port 20049; mount       |
#   | rpcrdma: client and server         |
#   | one device on lab0                 |
#   | 10.17.0.1, fd17::1                 |
#   +------------------------------------+

. /lab/guest/tools.sh

# What an end of a connection that rests may hold, in octets, and with NFSv4.1, which renews its
# lease now and then, and has Receives for both directions
MOST=$((64 * 1024))
MOST_41=$((160 * 1024))

# A client closes a connection that was not used for so many seconds.
IDLE=300

client() {
	local used left
	client_begin
	need "the program" tool_up
	need "mount" nfs_mount 3 rdma /mnt
	need "mount v4.1" nfs_mount 4.1 rdma /mnt41
	check "64 jobs: verified I/O" fio_verify --direct=1 --bsrange=4k-64k --numjobs=64 --size=256k
	rpcrdma show -j >/tmp/busy
	check "both ends have many Receives" [ "$(of_ends max min receives /tmp/busy)" -gt 16 ]
	# After a minute with few Calls the server grants few credits again. With each Reply then
	# either end needs a Receive less.
	sleep 65
	need "write 1 MiB" dd if=/dev/zero of=/mnt/file bs=64k count=16 oflag=direct
	check "read 4 KiB 200 times" dd if=/mnt/file of=/dev/null bs=4k count=200 iflag=direct
	check "read 4 KiB 50 times by v4.1" dd if=/mnt41/file of=/dev/null bs=4k count=50 iflag=direct
	check "read 64 KiB four times" dd if=/mnt/file of=/dev/null bs=64k count=4 iflag=direct
	used=$SECONDS
	rpcrdma show -j >/tmp/used
	check "registrations are idle" [ "$(sum client registrations-idle /tmp/used)" -gt 2 ]
	# What was idle for 30 to 60 seconds goes. The client's last Sends come back with a
	# keepalive, which is after 15 to 30 seconds.
	sleep 95
	check "an end of the connection that was busy holds 64 KiB at most" at_most min $MOST
	# at_most has taken /tmp/rested.
	check "no idle registration is left" is 0 "$(sum client registrations-idle /tmp/rested)"
	# Lease renewals use Sends in turn, so these go in steps, each after 30 to 60 seconds.
	check "one of the other holds 160 KiB at most" wait_until 60 at_most max $MOST_41
	need "umount v4.1" umount /mnt41
	left=$((used + IDLE - 15 - SECONDS))
	need "there are more than 15 s left" [ $left -gt 0 ]
	sleep $left
	check "after almost five minutes there is the same connection" show_is 1 client length
	check "after five minutes there is none" wait_for 30 show_is 0 client length
	check "the file can be read again" dd if=/mnt/file of=/dev/null bs=64k iflag=direct
	check "that made another connection" is 2 "$(connections_made)"
}

# sum ROLE ATTRIBUTE FILE
sum() {
	jq "[.$1[].\"$2\"] | add" "$3"
}

# of_ends FUNCTION FUNCTION ATTRIBUTE FILE: the first one of all connections, at each end, and the
# second one of the two ends
of_ends() {
	jq "[[.client[].\"$3\"], [.server[].\"$3\"] | $1] | $2" "$4"
}

# at_most min|max OCTETS: the least or the most of all connections, at the end that has more
at_most() {
	rpcrdma show -j >/tmp/rested
	jq -c '{client: [.client[].memory], server: [.server[].memory]}' /tmp/busy /tmp/used /tmp/rested
	[ "$(of_ends "$1" max memory /tmp/rested)" -le "$2" ]
}
