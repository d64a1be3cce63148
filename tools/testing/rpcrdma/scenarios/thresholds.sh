# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   two ends with any inline sizes, or without private data, agree and transfer correct data
# guests:  um
# also:    um/mem um-7-debug/siw debian-6.1
# devices: rxe siw mem
# turns:   what both ends agree on
# modules: ours
# limit:   120

. "${BASH_SOURCE%/*}/../guest/thresholds.sh"

SIZES="none 1024 4096 16384 65536"

client() {
	local mine theirs
	client_begin
	use_it_begin
	for mine in $SIZES; do
		for theirs in $SIZES; do
			pair $mine $theirs
		done
	done
	reconnections
	check_no_rnr
}

# pair CLIENT SERVER: mount with these inline sizes.
pair() {
	local who="client $1, server $2" octets client_inv server_inv
	ends "$1" "$2"

	check "$who: verified I/O" traced use_it
	check "$who: both ends agree on $octets octets" is \
		"2 inline=$octets/$octets remote_inv=$client_inv/$server_inv" "$(agreed)"
	check "$who: the longest Send is near to that and not longer" sends_up_to $octets
	check "$who: one connection and no error" no_error_seen
	check "$who: umount" unmount /mnt
}

# A mount reconnects with other thresholds. A Call that was prepared as inline may need a
# chunk when it is sent again, or the other way round.
reconnections() {
	local client server octets client_inv server_inv io transport
	ends 65536 65536
	need "mount" nfs_mount 3 rdma /mnt
	transport=$(the_transport)
	need "it has one transport" [ -n "$transport" ]
	: >/tmp/io.on
	: >/tmp/drops
	io >/tmp/io.log 2>&1 &
	io=$!
	while read -r client server; do
		reconnection $client $server
	done <<-END
		1024 65536
		65536 none
		65536 16384
		none 4096
		65536 65536
	END
	rm /tmp/io.on
	wait $io
	check "the data of all I/O meanwhile are correct" io_was_correct $?
	check "one connection before, and one for each of the five" one_for_each_drop
	check "umount" umount /mnt
}

# reconnection CLIENT SERVER: reconnect with these inline sizes.
reconnection() {
	local who="reconnection, client $1, server $2" octets client_inv server_inv
	ends "$1" "$2"
	need "$who: reconnect during I/O" traced reconnect
	check "$who: both ends agree on $octets octets" is \
		"inline=$octets/$octets remote_inv=$client_inv/$server_inv" "$(agreed | cut -d ' ' -f 2-)"
	check "$who: no Send is longer" no_send_beyond $octets
}

io() {
	while [ -e /tmp/io.on ]; do
		fio_verify --direct=1 --size=1m --bsrange=512-128k --numjobs=4 || return
	done
}

io_was_correct() {
	[ "$1" = 0 ] || { cat /tmp/io.log; return 1; }
}

# Reconnect and wait for 100 Calls, because the trace is too short for all I/O and must have
# the end of it.
reconnect() {
	local before calls
	wait_for 20 drop && wait_for 20 more_connections "$before" || return
	calls=$(calls_sent)
	wait_for 20 more_calls $((calls + 100))
}

# A write that is killed because it missed its wakeup may still drop the connection.
drop() {
	before=$(connections_made)
	echo >>/tmp/drops
	drop_connection "$transport"
}

# Exactly six, if no drop had to be repeated
one_for_each_drop() {
	local made drops
	made=$(connections_made) drops=$(wc -l </tmp/drops)
	echo "$made connections, dropped $drops times"
	[ "$made" -ge 6 ] && [ "$made" -le $((1 + drops)) ]
}

more_calls() {
	[ "$(calls_sent)" -ge "$1" ]
}

calls_sent() {
	awk '$1 == "xprt:" && $2 == "rdma" { n += $8 } END { print n + 0 }' /proc/self/mountstats
}

# no_send_beyond OCTETS: for Sends on connections that were made meanwhile
no_send_beyond() {
	awk -v most="$1" '
		{ match($0, /conn=[0-9]+ /); conn = substr($0, RSTART, RLENGTH) }
		/rpcrdma_conn_agreed:/ { these[conn] = 1 }
		/rpcrdma_(call|reply)_form: .* sent / && conn in these {
			match($0, /len=[0-9]+/)
			n++
			if (substr($0, RSTART + 4, RLENGTH - 4) + 0 > most) { print; bad = 1 }
		}
		END { print n + 0 " Sends"; exit bad || !n }' /tmp/trace
}
