# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   tunables, the log, counters and mountstats are as the administrator guide says
# guests:  um
# also:    um/mem um-7-debug/siw debian-6.1 debian-6.12
# devices: rxe siw mem
# turns:   what an administrator sets
# modules: ours
# host:    documented

# The name, default, lowest and highest value of each tunable
tunables() {
	cat <<-END
		rdma_slot_table_entries              128    2 16384
		rdma_max_inline_read               16384 1024 65536
		rdma_max_inline_write              16384 1024 65536
		rdma_private_data                      1    0     1
		rdma_remote_invalidation               1    0     1
		rdma_version                           1    1     2
		rdma_inline_write_padding              0    0  4096
		rdma_memreg_strategy                   5    0     6
		rdma_pad_optimize                      0    0 2147483647
		svc_rdma/max_requests                 64    4 16384
		svc_rdma/max_bc_requests               8    2  1024
		svc_rdma/max_req_size              16384 1024 65536
		svc_rdma/max_outbound_read_requests   32    1   255
		svc_rdma/private_data                  1    0     1
		svc_rdma/remote_invalidation           1    0     1
		svc_rdma/version                       1    1     2
		svc_rdma/shared_receives               0    0 65536
	END
}

COUNTERS=$(echo svc_rdma/rdma_stat_{recv,read,write,sq_starve,dropped,errors})
# They are always zero.
UNUSED=$(echo svc_rdma/rdma_stat_{rq_poll,rq_prod,rq_starve,sq_poll,sq_prod})
FIELDS=28
# read_at_once holds READs for eight seconds at most.
PATIENCE=12

# RDMA Reads that are agreed by default: ours has 32, and the test device usually 16.
READS=32
[ "$DEVICE" != mem ] || READS=16

client() {
	client_begin
	set_tunables
	check "the log has a connection with the defaults" \
		mount_logs 16384/16384 "$(default rdma_slot_table_entries)" \
			"$(default svc_rdma/max_requests)" on/on $READS 1
	statistics
	slots
	# The kernel logs ten lines of a kind in five seconds at most, and these mounts had some.
	sleep 5
	need "tunables get other values" other_values
	check "the log has a connection with the other values" mount_logs 8192/4096 32 16 on/off 4 1
	version_2
	wrong_port
}

# Tunables and counters

set_tunables() {
	local name default low high
	check "there are no other tunables and counters than the documented ones" \
		is "$(known)" "$(cd /proc/sys/sunrpc && ls -d rdma_* svc_rdma/* | sort)"
	while read -r name default low high; do
		check "$name is $default" has "$name" "$default"
		check "$name refuses $((low - 1)), $((high + 1)) and a word" \
			refused "Invalid argument" "$name" $((low - 1)) $((high + 1)) word
		check "$name takes $low and $high" takes "$name" "$low" "$high" "$default"
	done < <(tunables)
}

known() {
	{ tunables | cut -d ' ' -f 1; printf '%s\n' $COUNTERS $UNUSED; } | sort
}

default() {
	tunables | awk -v name="$1" '$1 == name { print $2 }'
}

# has NAME VALUE: whether a tunable has a value.
has() {
	local value
	read -r value <"/proc/sys/sunrpc/$1" && is "$2" "$value"
}

# takes NAME VALUE...: set a tunable to each of these values.
takes() {
	local value
	for value in "${@:2}"; do
		tune "$1" "$value" && has "$1" "$value" || return
	done
}

# refused WHY NAME VALUE...: each of these values is refused, and the old value stays.
refused() {
	local before value
	read -r before <"/proc/sys/sunrpc/$2"
	for value in "${@:3}"; do
		not tune "$2" "$value" 2>/tmp/why && grep -q "$1\$" /tmp/why && has "$2" "$before" ||
			{ echo "$value:"; cat /tmp/why; return 1; }
	done
}

other_values() {
	tune rdma_slot_table_entries 32 && tune rdma_max_inline_read 4096 &&
		tune rdma_max_inline_write 8192 && tune svc_rdma/max_requests 16 &&
		tune svc_rdma/max_outbound_read_requests 4 && tune svc_rdma/remote_invalidation 0
}

# The log

# What the module has logged since dmesg was cleared. Error numbers are replaced by their
# names, ports that the kernel has chosen by "any".
logged() {
	dmesg --notime | sed -En 's/^rpcrdma: //; T
		s/:[3-6][0-9]{4}: /:any: /
		s/: -108$/: -ESHUTDOWN/; s/: -104$/: -ECONNRESET/; s/: -111\b/: -ECONNREFUSED/
		p' | sort
}

logged_is() {
	is "$1" "$(logged)"
}

# mount_logs INLINE CREDITS GRANT REMOTE_INVALIDATION READS VERSION [INLINE-NOW]: both ends of
# a connection log its begin and its end, and with two versions which one they use, and with
# which inline sizes. With several CPUs this is tried three times: both ends are in one kernel,
# and if they log at the same instant the rate limit drops one of the lines.
mount_logs() {
	local n tries=1 on="on ${DEVICE}0 port 1: inline $1, credits" off="remote invalidation $4, reads"
	local wanted="$SERVER4:$PORT: closed: -ESHUTDOWN
$SERVER4:$PORT: connected $on $2, $off 0, version $6
$SERVER4:any: accepted $on $3, $off $5, version $6
$SERVER4:any: closed: -ECONNRESET"
	[ -z "$7" ] || wanted=$(sort <<-END
		$wanted
		$SERVER4:$PORT: version 2: inline $7
		$SERVER4:any: version 2: inline $7
	END
	)
	[ "$(nproc)" = 1 ] || tries=3
	for ((n = 0; n < tries; n++)); do
		dmesg --clear
		nfs_mount 3 rdma /mnt && unmount /mnt || return
		wait_for 5 logged_is "$wanted" && return
		# Only a missing line is worth another attempt.
		grep -vxF "$wanted" <(logged) && return 1
	done
	logged_is "$wanted"
}

# The log, and the last number of mountstats
version_2() {
	need "both ends may use version 2" versions_up_to 2 2
	check "the log says that a connection uses version 2" \
		mount_logs 8192/4096 32 16 on/off 4 "1 or 2" 8192/4096
	need "mount" nfs_mount 3 rdma /mnt
	check "mountstats has version 2" is 2 "$(numbers $FIELDS)"
	check "umount" unmount /mnt
	need "the server has version 1" tune svc_rdma/version 1
	need "mount" nfs_mount 3 rdma /mnt
	check "mountstats has version 1 with a server of version 1" is 1 "$(numbers $FIELDS)"
	check "umount" umount /mnt
}

wrong_port() {
	local why="not connected: -ECONNREFUSED: invalid service ID"
	# With siw the TCP connection is refused, so there is no request to be rejected.
	[ "$DEVICE" != siw ] || why="not connected: -ECONNREFUSED"
	dmesg --clear
	PORT=$((PORT + 1)) check "a mount fails at a port without a listener" \
		not nfs_mount 3 rdma /mnt retry=0
	check "the log has the reason: $why" grep -x "$SERVER4:$((PORT + 1)): $why" <(logged)
}

# mountstats, and the programs that read it

statistics() {
	head -c 1M /dev/urandom >/tmp/data
	: >$LOCAL/data
	dmesg --clear
	need "mount" nfs_mount 3 rdma /mnt
	counts >/tmp/before
	check "16 times 64 KiB are written and read" write_and_read
	counts >/tmp/after
	check "the log has no line about that" not grep -Ev ' (connected|accepted) on ' <(logged)
	check "32 Calls were sent, or more" [ "$(more sent)" -ge 32 ]
	check "the server received all of them, and all of them got a Reply" is "$(more sent) $(more sent)" "$(more recv replies)"
	check "octets and chunks are counted" is "2097152 1048576 16 16" \
		"$(more offered placed read write)"
	check "mountstats has $FIELDS numbers for the connection" has_numbers
	check "no RPC waited for a slot: number 10 is 0" is 0 "$(numbers 10)"
	check "nfs-utils' mountstats prints the same numbers, in its order" is \
		"$(numbers 3 4 {6..8} {11..21} 24 22 23 {25..27})" "$(by_mountstats)"
	check "nfsiostat has 64 KiB for each READ and WRITE" is "64 64" "$(by_nfsiostat)"
	check "umount" unmount /mnt
	check "a counter takes 0 and nothing else" resets
}

# So many RPCs are in progress as there are slots, and the others wait.
slots() {
	need "a client has two slots" tune rdma_slot_table_entries 2
	need "mount" nfs_mount 3 rdma /mnt rsize=4096
	read_at_once 2
	# After the first two, each READ is sent while all those after it wait: 61 + 60 + ...
	check "number 10 says how many have waited" in_range "$(numbers 10)" 1800 1953
	check "umount" unmount /mnt
	need "a client has more" tune rdma_slot_table_entries "$(default rdma_slot_table_entries)"
	need "mount" nfs_mount 3 rdma /mnt rsize=4096
	# A server's first grant
	read_at_once 2
	check "umount" unmount /mnt
}

# read_at_once SLOTS: 64 READs at the same time. The server answers none before mountd has
# told it about the export.
read_at_once() {
	local reader
	exec 9</mnt/data
	pkill -STOP -x rpc.mountd && exportfs -f
	dd bs=256k count=1 iflag=direct of=/dev/null <&9 2>/dev/null &
	reader=$!
	exec 9<&-
	check "$1 of 64 READs are in progress, and the others wait" within 8 in_progress "$1"
	pkill -CONT -x rpc.mountd
	wait $reader
	check "all are answered" is 0 $?
}

in_progress() {
	local info
	info=$(cat "$(the_transport)/xprt_info") && grep -qx "num_reqs=$1" <<<"$info" &&
		grep -qx "backlog_q_len=$((64 - $1))" <<<"$info"
}

# in_range NUMBER LOWEST HIGHEST
in_range() {
	echo "$1"
	[ "$1" -ge "$2" ] && [ "$1" -le "$3" ]
}

write_and_read() {
	dd if=/tmp/data of=/mnt/data bs=64k count=16 oflag=direct conv=notrunc,nocreat status=none &&
		dd if=/mnt/data of=/tmp/back bs=64k count=16 iflag=direct status=none &&
		cmp /tmp/data /tmp/back
}

# numbers FIELD...: fields of mountstats, numbered as in the administrator guide
numbers() {
	local fields n
	read -ra fields < <(grep 'xprt:.rdma ' /proc/self/mountstats)
	for n in "$@"; do
		printf '%s ' "${fields[n + 1]}"
	done | xargs
}

has_numbers() {
	grep -Ex "\s*xprt:\srdma( [0-9]+){$FIELDS}" /proc/self/mountstats
}

# The client's counters, and the server's
counts() {
	local sent replies offered placed
	read -r sent replies offered placed < <(numbers 6 7 14 15)
	printf '%s\n' "sent $sent" "replies $replies" "offered $offered" "placed $placed"
	(cd /proc/sys/sunrpc/svc_rdma && grep . rdma_stat_{recv,read,write}) |
		sed 's/rdma_stat_//; s/:/ /'
}

# more NAME...: by how much each counter has grown
more() {
	local name
	for name in "$@"; do
		paste /tmp/before /tmp/after | awk -v name="$name" '$1 == name { print $4 - $2 }'
	done | xargs
}

# All numbers except the idle time and averages
by_mountstats() {
	mountstats mountstats --xprt /mnt |
		sed -En '/Idle|Avg/d; s/^\t[^:]*: ([0-9]+).*/\1/p' | xargs
}

# KiB per operation, which is in the line after its name
by_nfsiostat() {
	nfsiostat /mnt | awk 'next_one { print int($3); next_one = 0 }
			      /^(read|write):/ { next_one = 1 }' | xargs
}

resets() {
	local name
	for name in $COUNTERS $UNUSED; do
		refused "Invalid argument" "$name" 1 -1 word && takes "$name" 0 || return
	done
}

# On the host

documented() {
	local guide=${BASH_SOURCE%/*}/../../../../Documentation/admin-guide.rst
	check "the administrator guide has these tunables, defaults and ranges" diff \
		<(tunables | awk '{ sub(".*/", "", $1); print $1, $2, $3, $4 }') \
		<(sed -En 's/^``([a-z_]+)`` +([0-9]+) +([0-9]+)((,| to) ([0-9]+))? .*/\1 \2 \3 \6/p' \
			"$guide" | awk '{ print $1, $2, $3, $NF }')
	check "it explains $FIELDS numbers of mountstats" is $FIELDS \
		"$(sed -n '/^Client: mountstats/,/^Tracepoints/p' "$guide" | grep -Ec '^[0-9]+ ')"
}
