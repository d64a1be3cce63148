# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   two ends with any inline sizes, or without private data, agree and transfer correct data
# guests:  um
# also:    um-debug/rxe debian-6.1 debian-6.12
# devices: rxe siw
# modules: ours
# limit:   120

SIZES="none 1024 4096 16384 65536"

client() {
	local mine theirs
	client_begin
	head -c 262144 /dev/urandom >/tmp/data
	need "make a directory for long Replies" make_long_directory $LOCAL/long
	for mine in $SIZES; do
		for theirs in $SIZES; do
			pair $mine $theirs
		done
	done
	reconnections
	check "no Send found the other end without a Receive" no_rnr
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
	check "$who: umount" umount /mnt
}

# ends CLIENT SERVER: set the inline sizes for new connections, and the variables $octets,
# $client_inv and $server_inv to what they must agree on.
ends() {
	set_end "$1" rdma_private_data rdma_max_inline_read rdma_max_inline_write
	set_end "$2" svc_rdma/private_data svc_rdma/max_req_size
	octets=$(smaller "${1/none/1024}" "${2/none/1024}")
	client_inv=1 server_inv=1
	[ "$1" != none ] || client_inv=0
	[ "$2" != none ] || server_inv=0
}

# set_end OCTETS SWITCH SIZES...: set the tunables of one end. With "none" it sends no
# private data, so its own inline size must not matter.
set_end() {
	local on=1 octets=$1 size
	[ "$octets" != none ] || { on=0; octets=65536; }
	tune "$2" $on
	for size in "${@:3}"; do
		tune "$size" "$octets"
	done
}

smaller() {
	echo $(($1 < $2 ? $1 : $2))
}

# Each threshold has a size that fits it and not the threshold before it.
use_it() {
	local octets
	nfs_mount 3 rdma /mnt || return
	for octets in 512 3072 12288 49152 262144; do
		write_and_read $octets || return
	done
	fio_verify --direct=1 --size=2m --bsrange=512-256k --numjobs=2 &&
		lists_long_directory /mnt/long && link_to /mnt/link "$(printf 'x%.0s' {1..1000})"
}

write_and_read() {
	dd if=/tmp/data of=/mnt/data bs="$1" count=1 oflag=direct status=none &&
		dd if=/mnt/data of=/tmp/back bs="$1" count=1 iflag=direct status=none &&
		cmp -n "$1" /tmp/data /tmp/back
}

# What the ends have agreed on, each value with the number of ends
agreed() {
	sed -n 's/.*rpcrdma_conn_agreed: .*\(inline=.*\) credits.*/\1/p' /tmp/trace | sort | uniq -c | xargs
}

sends_up_to() {
	local message longest
	for message in call reply; do
		longest=$(sed -n "s/.*rpcrdma_${message}_form: .* sent .* len=\([0-9]*\) .*/\1/p" /tmp/trace |
			sort -n | tail -n 1)
		echo "the longest $message: $longest"
		[ "$longest" -le "$1" ] && [ "$longest" -gt $(($1 / 4)) ] || return
	done
}

# Only events of this connection count: earlier connections may still be closing.
no_error_seen() {
	is 1 "$(connections_made)" &&
		awk '{ match($0, /conn=[0-9]+ /); conn = substr($0, RSTART, RLENGTH) }
		     /rpcrdma_conn_agreed:/ { these[conn] = 1 }
		     /rpcrdma_(wc_error|bad_message|dropped_message):|state=CLOS/ && conn in these { print; bad = 1 }
		     END { exit bad }' /tmp/trace
}

# siw has no such counter: a Send without a Receive ends its connection.
no_rnr() {
	[ "$DEVICE" = siw ] ||
		is 0 "$(cat "/sys/class/infiniband/${DEVICE}0/ports/1/hw_counters/"*rnr* | sort -u | xargs)"
}

# A mount reconnects with other thresholds. A Call that was prepared as inline may need a
# chunk when it is sent again, or the other way round.
reconnections() {
	local client server octets client_inv server_inv io
	ends 65536 65536
	need "mount" nfs_mount 3 rdma /mnt
	need "it has one transport" wait_for 10 one_transport
	: >/tmp/io.on
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
	before=$(connections_made)
	wait_for 20 drop_connection && wait_for 20 more_connections "$before" || return
	calls=$(calls_sent)
	wait_for 20 more_calls $((calls + 100))
}

# sunrpc closes the connection of a transport when an address is written to its dstaddr,
# even if it is the same. The write waits for the transport's lock and may miss its wakeup,
# so it has a timeout and is repeated.
drop_connection() {
	timeout -s KILL "$(seconds 1)" bash -c 'echo "$1" >"$2"' drop_connection $SERVER4 "$(transports)/dstaddr"
}

transports() {
	compgen -G '/sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma'
}

one_transport() {
	[ "$(transports | wc -l)" = 1 ]
}

more_connections() {
	[ "$(connections_made)" -gt "$1" ]
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
