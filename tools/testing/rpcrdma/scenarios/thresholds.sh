# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   ends of any two inline sizes, and such as tell none, agree and lose nothing
# guests:  um
# also:    um-debug debian-6.1 debian-6.12 smp-debug
# devices: rxe siw
# modules: ours
# limit:   90

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
	check "no Receive was missing" no_rnr
}

pair() {
	local who="client $1, server $2" octets client_inv=1 server_inv=1
	tell "$1" rdma_private_data rdma_max_inline_read rdma_max_inline_write
	tell "$2" svc_rdma/private_data svc_rdma/max_req_size
	octets=$(smaller "${1/none/1024}" "${2/none/1024}")
	[ "$1" != none ] || client_inv=0
	[ "$2" != none ] || server_inv=0

	check "$who: verified I/O" traced use_it
	check "$who: $octets octets are agreed" is \
		"2 inline=$octets/$octets remote_inv=$client_inv/$server_inv" "$(agreed)"
	check "$who: Sends come near to that, and none is longer" sends_up_to $octets
	check "$who: one connection and no error" untroubled
	check "$who: umount" umount /mnt
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
