# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   ends of any two inline sizes, and such as tell none, agree and lose nothing
# guests:  um
# also:    um-debug debian-6.1 debian-6.12 smp-debug
# devices: rxe siw
# modules: ours
# limit:   120

SIZES="none 1024 4096 16384 65536"

client() {
	local mine theirs
	client_begin
	head -c 262144 /dev/urandom >/tmp/data
	need "a directory for long Replies" make_long_directory $LOCAL/long
	for mine in $SIZES; do
		for theirs in $SIZES; do
			pair $mine $theirs
		done
	done
	reconnections
	check "no Receive was missing" no_rnr
}

pair() {
	local who="client $1, server $2" octets client_inv server_inv
	ends "$1" "$2"

	check "$who: verified I/O" traced use_it
	check "$who: $octets octets are agreed" is \
		"2 inline=$octets/$octets remote_inv=$client_inv/$server_inv" "$(agreed)"
	check "$who: Sends come near to that, and none is longer" sends_up_to $octets
	check "$who: one connection and no error" untroubled
	check "$who: umount" umount /mnt
}

# ends CLIENT SERVER: for connections to come; sets what they are to agree on
ends() {
	tell "$1" rdma_private_data rdma_max_inline_read rdma_max_inline_write
	tell "$2" svc_rdma/private_data svc_rdma/max_req_size
	octets=$(smaller "${1/none/1024}" "${2/none/1024}")
	client_inv=1 server_inv=1
	[ "$1" != none ] || client_inv=0
	[ "$2" != none ] || server_inv=0
}

# tell OCTETS SWITCH SIZES...: who tells nothing may have any size in mind.
tell() {
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

# One size fits each threshold and not the one before.
use_it() {
	local octets
	nfs_mount 3 rdma /mnt || return
	for octets in 512 3072 12288 49152 262144; do
		there_and_back $octets || return
	done
	fio_verify --direct=1 --size=2m --bsrange=512-256k --numjobs=2 &&
		lists_long_directory /mnt/long && link_to /mnt/link "$(printf 'x%.0s' {1..1000})"
}

there_and_back() {
	dd if=/tmp/data of=/mnt/data bs="$1" count=1 oflag=direct status=none &&
		dd if=/mnt/data of=/tmp/back bs="$1" count=1 iflag=direct status=none &&
		cmp -n "$1" /tmp/data /tmp/back
}

# How many ends agreed on what
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

# Other connections may still be ending.
untroubled() {
	is 1 "$(connections_made)" &&
		awk '{ match($0, /conn=[0-9]+ /); conn = substr($0, RSTART, RLENGTH) }
		     /rpcrdma_conn_agreed:/ { these[conn] = 1 }
		     /rpcrdma_(wc_error|bad_message|dropped_message):|state=CLOS/ && conn in these { print; bad = 1 }
		     END { exit bad }' /tmp/trace
}

# siw has no such counter: there it would have ended the connection.
no_rnr() {
	[ "$DEVICE" = siw ] ||
		is 0 "$(cat "/sys/class/infiniband/${DEVICE}0/ports/1/hw_counters/"*rnr* | sort -u | xargs)"
}

# A mount outlives its connections. What was to go inline may need a chunk when it
# is sent anew, and what had a chunk may do without.
reconnections() {
	local client server octets client_inv server_inv io
	ends 65536 65536
	need "a mount to live on" nfs_mount 3 rdma /mnt
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
	check "all that was written and read meanwhile is right" io_was_well $?
	check "umount" umount /mnt
}

reconnection() {
	local who="a live mount, now client $1, server $2" octets client_inv server_inv
	ends "$1" "$2"
	need "$who: it connects anew, and is used" traced reconnect
	check "$who: $octets octets are agreed" is \
		"inline=$octets/$octets remote_inv=$client_inv/$server_inv" "$(agreed | cut -d ' ' -f 2-)"
	check "$who: no Send is longer" no_send_beyond $octets
}

io() {
	while [ -e /tmp/io.on ]; do
		fio_verify --direct=1 --size=1m --bsrange=512-128k --numjobs=4 || return
	done
}

io_was_well() {
	[ "$1" = 0 ] || { cat /tmp/io.log; return 1; }
}

# There is more I/O than a trace has room for: its end counts.
reconnect() {
	local before calls
	before=$(connections_made)
	wait_for 20 give_up && wait_for 20 more_connections "$before" || return
	calls=$(calls_sent)
	wait_for 20 more_calls $((calls + 100))
}

# sunrpc gives up the connection of a transport that is told an address, be it the
# same. It waits for its turn, and not all whom it waits for wake it: try again.
give_up() {
	timeout -s KILL "$(seconds 1)" bash -c 'echo "$1" >"$2"' give_up $SERVER4 "$(transports)/dstaddr"
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

# Of those by connections that were made meanwhile
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
