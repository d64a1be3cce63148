# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   mountstats counts registrations, and sunrpc's xprt_info shows the grant
# guests:  um/rxe
# also:    um/mem um-7-debug/mem debian-6.1/rxe
# devices: rxe mem
# limit:   120
#
# Only with rxe and the test device does the server make no registrations of its own, so all
# that the device has are the client's. siw's server reads by registrations.

# sunrpc's unit for the congestion window
SCALE=256

client() {
	client_begin
	need "mount" nfs_mount 3 rdma /mnt
	need "a file" dd if=/dev/urandom of=/mnt/data bs=64k count=16 oflag=direct status=none
	registrations
	window
	check "umount" umount /mnt
	callback_window
}

# mountstats

registrations() {
	check "field 24 is how many registrations the device has made" \
		is "$(device_mrs)" "$(label "Allocated MRs")"
	check "after 64 READs it still is" more_reads
	need "the server leaves invalidation to the client" leave_invalidation
	check "field 25 grows by one with each of 16 READs" is 16 "$(grows "Local Invalidates needed" \
		read_data 16)"
	check "no registration has ended with a connection yet" is 0 "$(label "Recovered MRs")"
	check "field 22 counts those that ended with a connection in use" recovers
	check "field 24 counts those of the new connection" [ "$(label "Allocated MRs")" -gt \
		"$(device_mrs)" ]
	check "data are correct afterwards" same_sum /mnt/data $LOCAL/data
}

# label LABEL: what nfs-utils prints behind this label
label() {
	mountstats mountstats --xprt /mnt | awk -F ': ' -v label="$1" '
		{ sub("^[ \t]*", "", $1) } $1 == label { print int($2) }'
}

# grows LABEL COMMAND...: by how much the command makes it grow
grows() {
	local before
	before=$(label "$1")
	"${@:2}" >/dev/null 2>&1
	echo $(($(label "$1") - before))
}

device_mrs() {
	rdma resource show "${DEVICE}0" | grep -o '\bmr [0-9]*' | cut -d ' ' -f 2
}

# read_data COUNT: so many READs of 64 KiB
read_data() {
	dd if=/mnt/data of=/dev/null bs=64k count="$1" iflag=direct status=none
}

more_reads() {
	local n
	for n in 1 2 3 4; do
		read_data 16 || return
	done
	is "$(device_mrs)" "$(label "Allocated MRs")"
}

leave_invalidation() {
	local made
	made=$(connections_made)
	tune svc_rdma/remote_invalidation 0 && drop_connections && read_data 1 &&
		more_connections "$made"
}

# Drop the connection while READs are in flight, until some have lost it.
recovers() {
	local status=0
	start_reading 4
	wait_for 20 drop_in_use || status=1
	stop_reading && [ $status = 0 ]
}

drop_in_use() {
	drop_connections
	[ "$(label "Recovered MRs")" -gt 0 ]
}

# start_reading COUNT: so many processes read until stop_reading.
start_reading() {
	local n
	rm -f /tmp/enough
	READERS=
	for ((n = 0; n < $1; n++)); do
		keep_reading &
		READERS+=" $!"
	done
}

keep_reading() {
	until [ -e /tmp/enough ]; do
		read_data 16 || return
	done
}

# Whether all READs have succeeded
stop_reading() {
	local n status=0
	touch /tmp/enough
	for n in $READERS; do
		wait "$n" || status=1
	done
	return $status
}

# xprt_info

window() {
	check "cong_win is what the last Reply granted" window_is_granted
	need "a server that grants 4 credits" grant_4
	check "cong_win follows" wait_for 5 window_is $((4 * SCALE))
}

# info NAME: a value of xprt_info of the client's transport
info() {
	sed -n "s/^$1=//p" "$(client_transport)/xprt_info"
}

# The transport whose peer has the server's port
client_transport() {
	local dir
	for dir in $(rdma_transports); do
		! grep -qx "dst_port=$PORT" "$dir/xprt_info" || echo "$dir"
	done | tail -n 1
}

window_is() {
	is "$1" "$(info cong_win)"
}

window_is_granted() {
	local granted
	traced read_data 16
	granted=$(sed -nE 's/.*rpcrdma_reply_form: .* received .* credits=([0-9]+) .*/\1/p' \
		/tmp/trace | tail -n 1)
	echo "granted: $granted"
	[ "$granted" -ge 2 ] && window_is $((granted * SCALE))
}

# A server grants so many only to a client that uses them.
grant_4() {
	local status
	tune svc_rdma/max_requests 4 && drop_connections || return
	start_reading 4
	wait_for 20 window_is $((4 * SCALE))
	status=$?
	stop_reading && [ $status = 0 ]
}

# The transport that the server has for callbacks
callback_window() {
	need "mount v4.2" nfs_mount 4.2 rdma /mnt
	check "xprt_info of the callback channel has one credit before the first callback" \
		callback_is $SCALE
	check "after a callback it has two, because no other has waited" callback_grant
	check "umount v4.2" unmount /mnt
}

# nfsd keeps 256 bits of hashes of the files that it recalled in the last minute, so after many
# recalls by other scenarios it delegates hardly any file until it has forgotten them.
callback_grant() {
	recalls=0
	wait_until 70 recalled
}

# A file that the client may get delegated, and whose delegation is recalled when it changes
recalled() {
	local name=callback.$((recalls++))
	echo one >"$LOCAL/$name"
	cat "/mnt/$name"
	traced append "$LOCAL/$name"
	# A callback asks for max_bc_requests, other Calls for more.
	grep 'rpcrdma_call_form: .* sent .* credits=8 ' /tmp/trace && callback_is $((2 * SCALE))
}

append() {
	echo two >>"$1"
}

# callback_is CONG_WIN: whether the server's transport for callbacks has that, and is idle.
callback_is() {
	local dir
	for dir in $(rdma_transports); do
		grep -qx "src_port=$PORT" "$dir/xprt_info" || continue
		is "$1 0" "$(sed -nE 's/^(cong_win|cur_cong)=//p' "$dir/xprt_info" | sort -rn | xargs)"
		return
	done
	echo "there is none"
	return 1
}
