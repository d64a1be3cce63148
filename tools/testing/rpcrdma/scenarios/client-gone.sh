# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a server notices that a client is gone, though nothing has told it
# also:    um um-7-debug
# devices: mem
# modules: ours
# limit:   400
# steps:   client_gone
# faults:  the message that ends a connection is lost
#
# The server and the client have a device each, see guest/mem.sh.

. "${BASH_SOURCE%/*}/../guest/mem.sh"
. "${BASH_SOURCE%/*}/../guest/many.sh"
. "${BASH_SOURCE%/*}/../guest/tools.sh"

# Two periods of 60 s, as the first begins with the connection, and for the device to give up
PERIODS=140

client_gone() {
	need "the program" tool_up
	pair_begin
	need "mount" nfs_mount 3 rdma /mnt
	check "I/O" change_file
	need "the next message of the client's CM is lost" fault mem1 datagram 1 lose
	need "unmount" unmount /mnt
	check "the client has no connection" wait_for 10 connections client 0
	check "the server has not been told" connections server 1
	check "it has closed its end within two periods" wait_until $PERIODS no_connection
	need "mount again" nfs_mount 4.1 rdma /mnt
	check "I/O again" change_file
	sleep $PERIODS
	check "a client that rests, and is there, keeps its connection" connections server 1
	check "I/O after that" change_file
	check "the server has made no other" connections server 1
	check "unmount again" unmount /mnt
	pair_end
}

# connections ROLE COUNT
connections() {
	is "$2" "$(rpcrdma show -j "$1" | jq ".$1 | length")"
}

change_file() {
	cp /tmp/data /mnt/data && drop_caches && cmp /tmp/data /mnt/data
}
