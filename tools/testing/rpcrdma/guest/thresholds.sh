# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios about inline thresholds: ends with any inline sizes, what they agree
# on, and the length of their Sends.

use_it_begin() {
	head -c 262144 /dev/urandom >/tmp/data
	need "make a directory for long Replies" make_long_directory $LOCAL/long
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

# longest call|reply: the octets of the longest one that was sent
longest() {
	sed -n "s/.*rpcrdma_$1_form: .* sent .* len=\([0-9]*\) .*/\1/p" /tmp/trace | sort -n | tail -n 1
}

# sends_up_to OCTETS: the longest Call and the longest Reply are near to that, and not longer.
sends_up_to() {
	local message octets
	for message in call reply; do
		octets=$(longest $message)
		echo "the longest $message: $octets"
		[ "$octets" -le "$1" ] && [ "$octets" -gt $(($1 / 4)) ] || return
	done
}

# Only events of this connection count: earlier connections may still be closing.
no_error_seen() {
	is 1 "$(connections_made)" &&
		awk '{ match($0, /conn=[0-9]+ /); conn = substr($0, RSTART, RLENGTH) }
		     /rpcrdma_conn_agreed:/ { these[conn] = 1 }
		     /rpcrdma_(wc_error|bad_message):|state=CLOS/ && conn in these { print; bad = 1 }
		     END { exit bad }' /tmp/trace
}

# Check the device's counter of Sends that found no Receive. siw has none: there such a Send ends
# its connection, and the scenario counts connections.
check_no_rnr() {
	local count
	case $DEVICE in
	rxe) count=$(cat /sys/class/infiniband/rxe0/ports/1/hw_counters/*rnr* | sort -u | xargs) ;;
	mem) count=$(awk '$1 ~ "rnr_naks" { print $2 }' /sys/kernel/debug/rdma_mem/mem0/stats) ;;
	siw) return ;;
	esac
	check "no Send found the other end without a Receive" is 0 "$count"
}
