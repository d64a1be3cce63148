# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   rpcrdma show, stat and monitor tell what a mount over RDMA does, peers also after it
# guests:  um um-7-debug/rxe um-7-debug/siw
# also:    um/mem um-debug/siw debian-6.1 debian-6.12 debian-13-7
# devices: rxe siw mem
# turns:   the program rpcrdma
# modules: ours
#
# Both ends are in one guest, so each connection is there twice: once as the client's, once
# as the server's.

. /lab/guest/tools.sh

server() {
	need "rpcrdma is not loaded" not loaded
	need "the program" tool_up
	no_family
	server_begin
}

client() {
	client_begin
	rm -f /tmp/ended.* /tmp/before.*
	monitor_start
	devices_and_listeners
	check "no connection yet" show_is 0 client length
	need "mount" nfs_mount 4.2 rdma /mnt
	connections
	traffic
	rates
	tables
	for_both "has as many as its connection" wait_for 10 counters_add_up
	check "unmount" unmount /mnt
	check "no connection is left" within 8 no_connections
	monitor_ends
	reconnects
}

# ends_with STATUS COMMAND...: whether a command ends so, with one line of errors that says what
# to do
ends_with() {
	local wanted=$1 status lines
	shift
	"$@" 2>/tmp/printed >/tmp/show.json
	status=$?
	lines=$(wc -l </tmp/printed)
	cat /tmp/printed
	[ $status = "$wanted" ] && [ "$lines" = 1 ] && grep -q "modprobe rpcrdma" /tmp/printed
}

no_family() {
	local command
	for command in show "show -j" "stat 1" monitor; do
		# shellcheck disable=SC2086
		check "rpcrdma $command without the module says what to do" \
			ends_with 2 rpcrdma $command
	done
	rpcrdma -j show >/tmp/show.json
	check "in JSON as well" jq -e '.error | contains("modprobe rpcrdma")' /tmp/show.json
	check "status is down" status_is 2 down
}

# status_is STATUS WORD: what rpcrdma status exits with, and its first line
status_is() {
	local status
	rpcrdma status >/tmp/printed
	status=$?
	cat /tmp/printed
	[ $status = "$1" ] && [ "$(head -n 1 /tmp/printed)" = "$2" ]
}

# true_of KIND FILTER: whether a filter of jq is true of what "rpcrdma show -j KIND" prints
true_of() {
	rpcrdma show -j "$1" >/tmp/show.json && jq -e ".$1 | $2" /tmp/show.json >/dev/null ||
		{ cat /tmp/show.json; return 1; }
}

no_connections() {
	show_is 0 client length && show_is 0 server length
}

devices_and_listeners() {
	check "the device is usable and active" true_of devices \
		"length == 1 and .[0].name == \"${DEVICE}0\" and .[0].usability == \"usable\" and
		 .[0].port[0].state == \"active\""
	check "the server listens" true_of listeners \
		"length == 2 and all(.[]; .state == \"listening\" and .\"local-port\" == $PORT)"
	check "the table of devices has it" grep -q "^${DEVICE}0/1 *active *usable" \
		<(rpcrdma show devices)
}

connections() {
	check "the client's connection is established" true_of client \
		"length == 1 and .[0].state == \"established\" and
		 .[0].peer == \"$SERVER4:$PORT\" and .[0].device == \"${DEVICE}0\""
	check "so is the server's" true_of server \
		"length == 1 and .[0].state == \"established\" and .[0].\"local-port\" == $PORT"
	check "both know the same thresholds" thresholds_agree
	check "the client's has a transport of sunrpc, in the switch that show tells" transport_is_there
	check "it is that of the mount" true_of client '.[0].mounts == ["/mnt"]'
	check "the server's is that of an NFS client that has a name" true_of server \
		'.[0].clients[0] | contains("NFSv4.2")'
	check "a filter finds the mount's" is 1 "$(rpcrdma show -j client \
		mount /mnt to "$SERVER4" device "${DEVICE}0" | jq '.client | length')"
	check "and not another mount's" is 0 \
		"$(rpcrdma show -j client mount /nowhere | jq '.client | length')"
	check "status is not down" not status_is 2 down
	check "it is the same for an ordinary user" is "$(head -n 1 /tmp/printed)" \
		"$(status_of_nobody)"
}

status_of_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups $TOOL status | head -n 1
}

thresholds_agree() {
	rpcrdma show -j | jq -e '[.client[0], .server[0]] |
		map([."call-threshold", ."reply-threshold", .version]) | .[0] == .[1]'
}

transport_is_there() {
	rpcrdma show -j client | jq -r '.client[0] | "switch-\(."xprt-switch")/xprt-\(."xprt-id")-rdma"' |
		(cd /sys/kernel/sunrpc/xprt-switches && xargs ls -d)
}

# 4 MiB are written, which no READ or WRITE of the mount does inline.
traffic() {
	check "write 4 MiB" dd if=/dev/urandom of=/mnt/file bs=64k count=64 conv=fsync
	check "the client has sent them in Read chunks" true_of client \
		".[0].sent | .\"read-chunk\" > 0 and .\"placed-octets\" >= 4194304"
	check "the server has received them" true_of server \
		".[0].received.\"placed-octets\" >= 4194304"
	check "no errors are counted" true_of client "all(.[0].errors[]; . == 0)"
	check "RPCs took some time" true_of client ".[0].latency | add > 0"
}

# What is written after the first report is in the second one, on a slow guest also in later ones.
# Nothing is under way at the first and the last, so both ends have counted the same RPCs. They are
# told as rates, and a lease may be renewed between the ends' parts of a report: hence the 2.
rates() {
	local stat_pid
	rm -f /tmp/stat
	rpcrdma stat -j 1 "$(seconds 5)" >/tmp/stat &
	stat_pid=$!
	wait_for 5 test -s /tmp/stat
	check "write 1 MiB" dd if=/dev/zero of=/mnt/busy bs=64k count=16 conv=fsync
	check "stat still counts" kill -0 $stat_pid
	wait $stat_pid
	sed 's/^/# /' /tmp/stat
	check "stat has printed all reports" is "$(seconds 5)" "$(wc -l </tmp/stat)"
	check "a report of the client has RPCs and octets per second" rates_are 'any(.[];
		.role == "client" and .rpcs > 0 and ."sent-octets" > 0 and ."p99-ns" >= ."p50-ns" and ."p50-ns" > 0)'
	check "the client has sent 1 MiB" rates_are 'counted("client"; "sent-octets") >= 1048576'
	check "both ends have the same RPCs, within 2" rates_are '
		counted("client"; "rpcs") as $client | counted("server"; "rpcs") as $server |
		$server > 2 and ($client - $server | fabs) < 2.5'
	check "no rate is negative" rates_are 'all(.[]; .rpcs >= 0 and
		."sent-octets" >= 0 and ."received-octets" >= 0)'
	rpcrdma stat 0.2 2 >/tmp/printed
	check "the table of stat has both connections twice" is 4 \
		"$(grep -cE ' (client|server) +10\.17\.0\.1:' /tmp/printed)"
}

# rates_are FILTER: whether a filter of jq is true of the connections in all reports but the first.
# It may ask what one end has counted in them.
rates_are() {
	jq -se 'def counted($role; $what):
		[.[] | select(.role == $role) | .[$what] * .seconds] | add;
		[.[1:][].connections[]] | '"$1" /tmp/stat
}

tables() {
	local digits
	rpcrdma show >/tmp/printed
	sed 's/^/# /' /tmp/printed
	check "show names the four kinds" is 4 \
		"$(grep -cE '^(Connections (to|of)|Listeners|Devices)' /tmp/printed)"
	digits=$(awk -v n=2 '/established/ && length($1) > n { n = length($1) } END { print n }' \
		/tmp/printed)
	check "no line of the client's is longer than 114 characters and the digits of the ID" \
		not grep -qE ".{$((115 + digits))}" <(sed '/^Connections of/,$d' /tmp/printed)
	check "a pipe gets no colours" not grep -q $'\033' /tmp/printed
	rpcrdma show client -d >/tmp/printed
	sed 's/^/# /' /tmp/printed
	check "show -d tells what was agreed" grep -q "agreed  *version 1, Calls to" /tmp/printed
	check "show -d draws latencies" grep -qE '[um]s\.\.[0-9.]+[um]s +[0-9]+ #+' /tmp/printed
}

# for_both TEXT COMMAND...: a check of a command with each role of the host
for_both() {
	local role
	for role in client server; do
		check "the peer of the $role $1" "${@:2}" "$role"
	done
}

# counters_of KIND ROLE: all counters of the first object of a role, as an array
counters_of() {
	rpcrdma show -j "$1" | jq -c --arg kind "$1" --arg role "$2" '
		.[$kind] | map(select(.role == $role)) | .[0] // empty |
		[.sent, .received, .waits, .errors | .[]] + .latency'
}

# counters_add_up ROLE: a peer has counted what its connection has and what was in /tmp/ended, if
# there is that. Not if a lease is renewed between the questions.
counters_add_up() {
	touch "/tmp/ended.$1"
	counters_of "$1" "$1" | cat - "/tmp/ended.$1" | jq -sc 'transpose | map(add)' >/tmp/sum
	counters_of peers "$1" >/tmp/counters
	[ -s /tmp/counters ] && jq -se '.[0] == .[1]' /tmp/sum /tmp/counters >/dev/null &&
		cp /tmp/counters "/tmp/before.$1"
}

# Those of before are among them.
not_fallen() {
	counters_of peers "$1" >"/tmp/ended.$1"
	jq -se 'transpose | all(.[]; .[0] <= .[1])' "/tmp/before.$1" "/tmp/ended.$1"
}

# A peer counts on with the next connection.
reconnects() {
	# What a thread of nfsd still has counts when it gives it back.
	sleep 1
	for_both "has not forgotten" not_fallen
	need "mount again" nfs_mount 4.2 rdma /mnt
	check "write 256 KiB" dd if=/dev/zero of=/mnt/more bs=64k count=4 conv=fsync
	for_both "has the sum of both connections" wait_for 10 counters_add_up
	check "both had two connections" true_of peers 'length == 2 and all(.[]; .connects == 2)'
	rpcrdma metrics >/tmp/printed
	check "metrics count the connections" \
		grep -qF "rpcrdma_connects_total{role=\"client\",peer=\"$SERVER4\"} 2" /tmp/printed
	check "the table of peers has them" is 2 \
		"$(rpcrdma show peers | grep -cE '^(client|server) +10\.17\.0\.1 .* 2 ')"
	rpcrdma stat -j peers 0.5 2 >/tmp/printed
	check "stat has rates of peers" jq -se 'length == 2 and
		all(.[].peers[]; .rpcs >= 0 and .seconds > 0)' /tmp/printed
	check "unmount again" unmount /mnt
}

monitor_start() {
	$TOOL monitor -j >/tmp/events &
	MONITOR=$!
	$TOOL monitor >/tmp/events.text &
	MONITOR_TEXT=$!
	# It prints nothing before the first event, so look for its membership of a group.
	wait_for 10 listeners_of_events 2
}

# listeners_of_events N: whether so many sockets of generic netlink are in a group.
listeners_of_events() {
	[ "$(awk '$2 == 16 && $4 != "00000000"' /proc/net/netlink | wc -l)" -ge "$1" ]
}

# The server closes its end a moment after the client.
monitor_ends() {
	check "monitor saw both connections begin and end" wait_for 10 all_events
	check "in words as well" grep -q "connected .*to the server $SERVER4:$PORT" /tmp/events.text
	kill $MONITOR $MONITOR_TEXT
	wait $MONITOR $MONITOR_TEXT 2>/dev/null
	sed 's/^/# /' /tmp/events.text
}

all_events() {
	jq -se 'map(.event + " " + .role) | sort ==
		["closed client", "closed server", "connected client", "connected server"]' /tmp/events
}
