# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   rpcrdma ping tells whether a server answers, what would be agreed, and how fast it is
# guests:  um/rxe
# also:    um/ours um-7-debug/rxe debian-6.1 debian-6.12 debian-13-7
# devices: rxe siw
# modules: ours inbox

. /lab/guest/tools.sh

client() {
	client_begin
	need "the program" tool_up
	need "verbs for user space" verbs_up
	answers
	any_user
	as_json
	addresses
	programs
	nobody
	large_calls
	deadline
	arguments
	interrupted
	[ "$MODULE" != ours ] || settings
}

answers() {
	check "five Calls are answered: 0" exits 0 tool ping -i 0.05 $SERVER4
	# What the manual page shows
	sed 's/^/# /' /tmp/tool.out
	check "it says where it is connected" says "^connected to $SERVER4 port $PORT, from $SERVER4 by ${DEVICE}0 port 1$"
	check "it says what would be agreed" \
		says "^agreed:   Calls [0-9]+, Replies [0-9]+ octets inline, remote invalidation o(n|ff)$"
	check "a line for each answer" is 5 "$(grep -c '^answer [1-5]: [0-9.]*[mu]s, credits [0-9]*$' /tmp/tool.out)"
	check "the sums" says "^5 sent, 5 answered, 0 messages ignored$"
	check "the round trips" says "^round trip: min [0-9.]+[mu]s, median [0-9.]+[mu]s, p99 [0-9.]+[mu]s$"
	check "quiet" exits 0 tool ping -q -c 2 -i 0 $SERVER4
	check "quiet: no line for an answer" not grep ^answer /tmp/tool.out
}

any_user() {
	check "any user may do that" exits 0 as_nobody tool ping -q -c 1 $SERVER4
	chmod 700 /dev/infiniband
	check "without the right to use /dev/infiniband: 2" exits 2 as_nobody tool ping $SERVER4
	check "it says so" says "^rpcrdma: .*may you use /dev/infiniband"
	chmod 755 /dev/infiniband
}

# as_nobody tool ARGUMENT...: the same as another user than root
as_nobody() {
	local TOOL="setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs $TOOL"
	"$@"
}

as_json() {
	local count=$((SLOW ? 50 : 500))
	check "$count Calls without a pause, JSON" exits 0 tool ping --json -i 0 -c $count $SERVER4
	check "JSON: all are answered" json_is "($count, $count, 0)" \
		'o["sent"], o["answered"], o["ignored"]'
	check "JSON: min, median and p99 are in this order" json_is True \
		'0 < o["round-trip-ns"]["min"] <= o["round-trip-ns"]["median"] <= o["round-trip-ns"]["p99"]'
	check "JSON: the server announces its sizes" json_is True \
		'o["connection"]["announced-there"]["receive-size"] >= 1024'
	check "JSON: version 1 of RPC-over-RDMA, NFS version 3" json_is "(1, 100003, 3)" \
		'o["connection"]["agreed"]["version"], o["program"], o["program-version"]'
	check "JSON: the server grants credits" json_is True 'o["credits"] > 1'
	check "JSON: no error" json_is "(None, 0)" 'o["error"], o["status"]'
	[ "$MODULE" != ours ] || as_mounted
}

# The log's line about a mount says what ping says.
as_mounted() {
	local wanted
	wanted=$(json '"inline %d/%d" % (o["connection"]["agreed"]["call-threshold"], o["connection"]["agreed"]["reply-threshold"])')
	dmesg --clear
	check "a mount" nfs_mount 4.2 rdma /mnt
	check "the log says the same of it: $wanted" grep "connected on .*$wanted" <(dmesg)
	check "umount" unmount /mnt
}

addresses() {
	echo "$SERVER4 server.example" >>/etc/hosts
	check "a name" exits 0 tool ping -c 1 server.example
	check "a name and a port" exits 0 tool ping -c 1 server.example:$PORT
	check "an IPv6 address" exits 0 tool ping -c 1 $SERVER6
	check "an IPv6 address and a port" exits 0 tool ping -c 1 -6 "[$SERVER6]:$PORT"
	check "it is connected there" says "^connected to $SERVER6 port $PORT,"
	check "an IPv6 address, and IPv4 wanted: 2" exits 2 tool ping -4 $SERVER6
	check "an unknown name: 2" exits 2 tool ping -W 2 nowhere.invalid
}

programs() {
	check "NFS version 4" exits 0 tool ping -c 1 --program nfs:4 $SERVER4
	check "it says so" says "^program 100003 version 4,"
	check "a version that the server does not have: 2" exits 2 tool ping --program 100003:99 $SERVER4
	check "it says which it has" says "the server has versions [0-9] to [0-9] of program 100003, not 99"
	# The server has no version 1 of NFS's ACL protocol, where ping begins.
	check "another program: it falls back to a version of the server" \
		exits 0 tool ping -c 2 -i 0 --program 100227 $SERVER4
	check "it says so" says "^program 100227 version [23],"
	check "both Calls count" says "^2 sent, 2 answered"
	check "an unknown program: 2" exits 2 tool ping --program 100017 $SERVER4
	check "it says so" says "the server does not have program 100017"
}

# no_answer WHAT PATTERN HOST: exit code 1, in time, and a line
no_answer() {
	local since=$SECONDS
	check "$1: 1" exits 1 tool ping -W 2 "$3"
	check "$1: within two seconds, and some" [ $((SECONDS - since)) -le $((2 + $(seconds 3))) ]
	check "$1: it says so" says "$2"
}

nobody() {
	no_answer "nothing listens at this port" "nothing listens for RDMA there" $SERVER4:20999
	no_answer "no route" "no (route|RDMA device)" 192.0.2.1
	no_answer "nobody has this address" "no answer|does not resolve" 10.17.0.99
	check "the same as JSON: 1" exits 1 tool ping --json -W 2 $SERVER4:20999
	check "JSON: there is no connection, and an error" json_is "(None, 0, True, 1)" \
		'o["connection"], o["sent"], "listens" in o["error"], o["status"]'
}

# In one Send, and read by the server; 128 KiB is what a server with little memory takes.
large_calls() {
	check "large Sends" exits 0 tool ping -c 3 -i 0 -s 512 $SERVER4
	check "it says so" says "^Calls:    512 octets of arguments, in one Send$"
	check "Read chunks" exits 0 tool ping --count 20 --interval 0 --size 65534 $SERVER4
	check "it says so" says "^Calls:    65536 octets of arguments, in a Read chunk$"
	check "all are answered" says "^20 sent, 20 answered, 0 messages ignored$"
	check "JSON: 128 KiB" exits 0 tool ping --json -c 1 -s 131072 $SERVER4
	check "JSON: they are not inline" json_is "(131072, False, False)" \
		'o["size"], o["connection"]["inline"], o["connection"]["agreed"]["remote-invalidation"]'
	check "NFS version 4" exits 0 tool ping -c 1 -s 65536 --program nfs:4 $SERVER4
	[ "$MODULE" = ours ] || return
	check "more than the server takes: 2" exits 2 tool ping -c 1 -s 4194304 $SERVER4
	check "it says so" says "the server could not use the Call .RDMA_ERROR ERR_CHUNK."
}

deadline() {
	local since=$SECONDS
	check "a deadline, and no count: 0" exits 0 tool ping -q -w 2 -i 0.1 $SERVER4
	check "it has sent until then" [ $((SECONDS - since)) -ge 1 ]
	check "and no longer" [ $((SECONDS - since)) -le $((2 + $(seconds 3))) ]
	check "more than the usual five" not says "^[1-5] sent"
	check "a deadline before all are answered: 1" exits 1 tool ping -w 1 -c 1000 -i 0.1 $SERVER4
}

arguments() {
	local wrong
	for wrong in "" "-c 0 $SERVER4" "-i -1 $SERVER4" "-W 0 $SERVER4" "-x $SERVER4" "-w 0 $SERVER4" "-s 4194305 $SERVER4" \
			"$SERVER4:0" "$SERVER4 $SERVER4" "--program nfs: $SERVER4"; do
		# shellcheck disable=SC2086
		check "rpcrdma ping $wrong: 2" exits 2 tool ping $wrong
	done
}

interrupted() {
	$TOOL ping -c 1000 -i 0.2 $SERVER4 >/tmp/tool.out 2>/tmp/tool.err &
	wait_for 10 grep -q "^answer 2" /tmp/tool.out
	kill -INT $!
	wait $!
	check "SIGINT after some answers: 0" is 0 $?
	check "the sums of those" says "^([0-9]+) sent, ([0-9]+) answered"
}

settings() {
	need "smaller receive buffers" tune rdma_max_inline_read 2999
	check "they are announced" exits 0 tool ping --json -c 1 $SERVER4
	check "and agreed" json_is "(2048, 2048, True)" \
		'o["connection"]["announced-here"]["receive-size"], o["connection"]["agreed"]["reply-threshold"], o["connection"]["agreed"]["remote-invalidation"]'
	need "the default" tune rdma_max_inline_read 16384
	need "no private data" tune rdma_private_data 0
	check "nothing is announced" exits 0 tool ping --json -c 1 $SERVER4
	check "1024 octets are agreed" json_is "(None, 1024, 1024)" \
		'o["connection"]["announced-here"], o["connection"]["agreed"]["call-threshold"], o["connection"]["agreed"]["reply-threshold"]'
	need "private data" tune rdma_private_data 1
	need "version 2 at both ends" versions_up_to 2 2
	check "with version 2" exits 0 tool ping -c 3 -i 0 $SERVER4
	check "it is used" says "RPC-over-RDMA version 2,"
	need "version 2 at this end alone" versions_up_to 2 1
	check "without version 2 at the server" exits 0 tool ping -c 3 -i 0 $SERVER4
	check "the server refuses it" says "versions 1 to 1 of RPC-over-RDMA, not 2: trying version 1"
	check "version 1 is used, and three Calls count" says "^3 sent, 3 answered"
	check "a Call longer than the first of version 2 may be is answered" \
		exits 0 tool ping --json -c 2 -i 0 -s 2000 $SERVER4
	check "JSON: in version 1 it is inline" json_is "(1, True)" \
		'o["connection"]["agreed"]["version"], o["connection"]["inline"]'
	check "--rdma-version" exits 0 tool ping -c 1 --rdma-version 1 $SERVER4
	check "no refusal" not grep trying /tmp/tool.out
	need "version 1 at both ends" versions_up_to 1 1
}
