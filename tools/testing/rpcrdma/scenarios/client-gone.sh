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
. "${BASH_SOURCE%/*}/../guest/tools.sh"

# Two periods of 60 s, as the first begins with the connection, and for the device to give up
PERIODS=140

client_gone() {
	local writes id
	need "the program" tool_up
	pair_begin
	need "mount" nfs_mount 3 rdma /mnt
	check "I/O" change_file
	need "the next message of the client's CM is lost" fault mem1 datagram 1 lose
	need "unmount" unmount /mnt
	TOOL="nsenter --net=/run/netns/client $TOOL" \
		check "the client has no connection" wait_for 10 show_is 0 client length
	dmesg --clear
	sleep 3
	check "the server has not been told" show_is 1 server length
	check "it has closed its end within two periods" wait_until $PERIODS no_connection
	check "because the device had no answer" \
		eval "dmesg | grep 'work request failed: transport retry counter exceeded'"
	# Version 3 sends nothing at rest.
	need "mount again" nfs_mount 3 rdma /mnt
	check "I/O again" change_file
	writes=$(counted mem0 writes)
	id=$(from_show server 'map(.id)')
	sleep $PERIODS
	check "the server has looked for a client that rests" [ "$(counted mem0 writes)" -gt "$writes" ]
	check "and has kept its connection" show_is "$id" server 'map(.id)'
	check "I/O after that" change_file
	check "by the same connection" show_is "$id" server 'map(.id)'
	check "unmount again" unmount /mnt
	pair_end
}

change_file() {
	cp /tmp/data /mnt/data && drop_caches && cmp /tmp/data /mnt/data
}
