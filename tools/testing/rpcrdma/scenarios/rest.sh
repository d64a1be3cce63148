# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a connection that rests gives back what it made for I/O, and is closed after five minutes
# guests:  um/rxe
# also:    um-7-debug/rxe debian-6.1
# devices: rxe
# limit:   360
# faults:  a connection that rests is closed
#
#   +------------------------------------+
#   | nfsd, rdma port 20049; mount       |
#   | rpcrdma: client and server         |
#   | one device on lab0                 |
#   | 10.17.0.1, fd17::1                 |
#   +------------------------------------+

. /lab/guest/tools.sh

# What an end of a connection that rests may hold, in octets
MOST=$((64 * 1024))

# A client closes a connection that was not used for so many seconds.
IDLE=300

client() {
	local used left
	client_begin
	need "the program" tool_up
	need "mount" nfs_mount 3 rdma /mnt
	need "write 1 MiB" dd if=/dev/zero of=/mnt/file bs=64k count=16 oflag=direct
	check "read 64 KiB four times" dd if=/mnt/file of=/dev/null bs=64k count=4 iflag=direct
	used=$SECONDS
	rpcrdma show -j >/tmp/used
	check "registrations are idle" [ "$(sum client registrations-idle /tmp/used)" -gt 2 ]
	# What was idle for 30 to 60 seconds goes. The client's last Sends come back with a
	# keepalive, which is after 15 to 30 seconds.
	sleep 95
	rpcrdma show -j >/tmp/rested
	check "none of them is left" is 0 "$(sum client registrations-idle /tmp/rested)"
	check "the client's end holds 64 KiB at most" at_most client
	check "the server's end holds 64 KiB at most" at_most server
	left=$((used + IDLE - 15 - SECONDS))
	need "there are more than 15 s left" [ $left -gt 0 ]
	sleep $left
	check "after almost five minutes there is the same connection" is 1 "$(connections)"
	check "after five minutes there is none" wait_for 30 closed
	check "the file can be read again" dd if=/mnt/file of=/dev/null bs=64k iflag=direct
	check "that made another connection" is 2 "$(connections_made)"
}

# How many connections the client has
connections() {
	rpcrdma show -j | jq '.client | length'
}

closed() {
	is 0 "$(connections)"
}

# sum ROLE ATTRIBUTE FILE
sum() {
	jq "[.$1[].\"$2\"] | add" "$3"
}

at_most() {
	local before now
	before=$(sum "$1" memory /tmp/used)
	now=$(sum "$1" memory /tmp/rested)
	echo "$((before / 1024)) KiB, and $((now / 1024)) KiB after a minute"
	[ "$now" -le $MOST ]
}
