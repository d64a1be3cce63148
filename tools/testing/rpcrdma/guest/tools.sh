# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios about the program rpcrdma, ../../../rpcrdma.

# What is run. It is a copy, because other users than root cannot reach /lab.
TOOL=/tmp/rpcrdma

# What user space needs to use RDMA devices
verbs_up() {
	modprobe -q -a ib_uverbs rdma_ucm
	wait_for 5 test -c /dev/infiniband/rdma_cm && wait_for 5 test -c /dev/infiniband/uverbs0
}

tool_up() {
	cp /lab/rpcrdma $TOOL
}

# rpcrdma ARGUMENT...: run the program for a minute at most. What is to run longer, or in the
# background, is $TOOL.
rpcrdma() {
	# shellcheck disable=SC2086
	timeout -s KILL "$(seconds 60)" $TOOL "$@"
}

# tool ARGUMENT...: the same; what it prints is in /tmp/tool.out and /tmp/tool.err as well.
tool() {
	local status
	rpcrdma "$@" >/tmp/tool.out 2>/tmp/tool.err
	status=$?
	cat /tmp/tool.out /tmp/tool.err
	return $status
}

# exits STATUS COMMAND...: it ends with this status, and prints one line about each error and
# no control character.
exits() {
	local status
	"${@:2}"
	status=$?
	is "$1" $status && not grep -aP '[^\x20-\x7e\n]' /tmp/tool.out /tmp/tool.err
}

# from_show KIND FILTER: what a filter of jq makes of the array that "rpcrdma show" has of this kind,
# nothing if it cannot tell
from_show() {
	rpcrdma show -j "$1" | jq -rc ".$1 | arrays | $2"
}

# show_is WANTED KIND FILTER
show_is() {
	is "$1" "$(from_show "$2" "$3")"
}

# json EXPRESSION: a Python expression about the object that the tool printed last
json() {
	python3 -c 'import json, sys; o = json.load(open("/tmp/tool.out")); print(eval(sys.argv[1]))' "$1"
}

# json_is WANTED EXPRESSION
json_is() {
	is "$1" "$(json "$2")"
}

# says PATTERN: the tool has printed a line like that.
says() {
	cat /tmp/tool.out /tmp/tool.err
	grep -E "$1" /tmp/tool.out /tmp/tool.err
}

# Have the program write each event to /tmp/events.
monitor_start() {
	tool_up
	$TOOL monitor -j >/tmp/events 2>/tmp/monitor.log &
	MONITOR=$!
	need "monitor listens" wait_for 10 in_a_group
}

# It prints nothing before the first event.
in_a_group() {
	awk '$2 == 16 && $4 != "00000000"' /proc/net/netlink | grep -q .
}

monitor_stop() {
	kill $MONITOR
	wait $MONITOR 2>/dev/null
}
