# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the kernel's own netlink tool shows devices, listeners, connections and events
# guests:  um um-7-smp/rxe
# also:    um/mem um-debug/rxe um-7-debug um-7-smp debian-6.1 debian-6.12 debian-13-7
# devices: rxe siw mem
# turns:   the status family
# modules: ours
# faults:  connections are closed
#
# What is written and read is known, so the counters of both ends have to be exact. Both
# ends are in one guest.

client() {
	client_begin
	tool_start
	devices
	listeners
	need "mount" nfs_mount 3 rdma /mnt
	connections
	traffic
	other_namespace
	check "unmount" umount /mnt
	check "no connection is left" wait_for 10 says connection "not all"
	refused
	events
	tool_close
}

# The tool reads the family's specification for a second, so one process answers all questions. It
# also subscribes to events; the socket keeps them until they are asked for.
tool_start() {
	rm -f /tmp/{questions,answers}
	mkfifo /tmp/{questions,answers}
	PYTHONPATH=/lab/ynl python3 -B - >/tmp/tool.log 2>&1 <<-'END' &
		import json
		from lib import YnlFamily
		# An event in the midst of a dump confuses ynl.
		tool, events = (YnlFamily("/lab/ynl/rpcrdma.yaml", "") for _ in range(2))
		events.ntf_subscribe("events")

		def facts(kind):
		    if kind != "event":
		        return tool.dump(kind + "-get", {})
		    events.check_ntf()
		    return events.async_msg_queue

		def answer(kind, expression):
		    all = facts(kind)
		    def role(name):
		        return next((c for c in all if c.get("role") == name), {})
		    names = {"all": all, "client": role("client"), "server": role("server"),
		             "only": all[0] if len(all) == 1 else {}}
		    try:
		        if eval("(" + expression + ")", names):
		            return "yes"
		    except KeyError as error:
		        return f"missing: {error} in {json.dumps(all)}"
		    return json.dumps(all)

		with open("/tmp/questions") as questions, open("/tmp/answers", "w") as answers:
		    for question in questions:
		        print(answer(*question.split(maxsplit=1)), file=answers, flush=True)
	END
	# To open a pipe for both does not wait for the other end.
	exec 3<>/tmp/questions 4<>/tmp/answers
}

tool_close() {
	exec 3>&- 4>&-
	wait $!
}

# says KIND EXPRESSION: whether a Python expression is true of a dump, or of the events. In it,
# "all" is the list, "client" and "server" are the connections of these roles, and "only" is
# the only one.
says() {
	local answer
	echo "$1 ${2//[$'\n\t']/ }" >&3
	read -r -t "$(seconds 20)" -u 4 answer || cat /tmp/tool.log
	echo "$answer"
	[ "$answer" = yes ]
}

devices() {
	local guid index
	read -r guid <"/sys/class/infiniband/${DEVICE}0/node_guid"
	check "the device is usable" says device "only['name'] == '${DEVICE}0' and
		only['usability'] == 'usable'"
	check "it has the GUID of sysfs" says device "only['node-guid'] == '$guid'"
	index=$(cat "/sys/class/net/$(netdev)/ifindex")
	check "it has one active port" says device "only['port-count'] == 1 and
		len(only['port']) == 1 and only['port'][0]['number'] == 1 and
		only['port'][0]['state'] == 'active'"
	[ "$DEVICE" != rxe ] ||
		check "the port has the interface $index" says device \
			"only['port'][0]['ifindex'] == $index and
			only['port'][0]['protocol'] == 'roce'"
	check "it has limits" says device "only['max-queue-wrs'] > 64 and
		only['max-send-sges'] > 0 and 0 < only['mr-pages'] <= only['max-page-list']"
}

listeners() {
	check "the server listens for IPv4 and IPv6" says listener \
		"sorted(l['local'] for l in all) == ['0.0.0.0:$PORT', '[::]:$PORT']"
	check "nobody has connected" says listener "all and not any(l['accepted'] or
		l['refused'] or l['waiting'] for l in all)"
	check "they are listening on port $PORT" says listener \
		"all and not any(l['state'] != 'listening' or l['local-port'] != $PORT for l in all)"
}

connections() {
	check "there is one connection, which has two ends" says connection \
		"len(all) == 2 and client and server"
	check "both are established, and not for long" says connection \
		"all and not any(c['state'] != 'established' or c['state-age'] > 600000 for c in all)"
	check "each end is the peer of the other" says connection \
		"client['peer'] == server['local'] == '$SERVER4:$PORT' and
		client['local'].split(':')[0] == server['peer'].split(':')[0] == '$SERVER4' and
		client['peer-port'] == $PORT and client['id'] != server['id']"
	check "both use port 1 of the device" says connection \
		"not any(c['device'] != '${DEVICE}0' or c['port'] != 1 for c in all)"
	check "they agree on what was agreed" says connection \
		"all and not any(c['call-threshold'] != 16384 or c['reply-threshold'] != 16384 or
		c['version'] != 1 or not c['remote-invalidation'] for c in all)"
	check "the client serves RDMA Reads, and the server issues them" says connection \
		"client['responder-resources'] > 0 and server['initiator-depth'] > 0 and
		'initiator-depth' not in client"
	check "no credit is in use, and both know the same grant" wait_for 5 says connection \
		"client['credits-in-use'] == server['credits-in-use'] == 0 and
		client['credits-waiting'] == 0 and
		client['credits-requested'] == server['credits-requested'] >=
		client['credits-granted'] == server['credits-granted'] > 0"
	check "the server has posted a Receive for each credit" says connection \
		"server['credits-granted'] <= server['receives-posted'] <= server['receives'] and
		0 < client['receives-posted'] <= client['receives']"
	check "the send queue has space" says connection \
		"not any(not c['send-queue-used'] < c['send-queue-size'] for c in all)"
	check "they hold the memory of their Receives and more" says connection \
		"not any(not 16384 * c['receives'] < c['memory'] < 64 << 20 for c in all)"
	check "a listener has accepted it" says listener \
		"sum(l['accepted'] for l in all) == 1 and not sum(l['refused'] for l in all)"
}

# write_and_read: 16 Calls with 64 KiB each, and as many Replies with as much
write_and_read() {
	dd if=/tmp/data of=/mnt/data bs=64k oflag=direct status=none &&
		dd if=/mnt/data of=/tmp/back bs=64k iflag=direct status=none &&
		cmp /tmp/data /tmp/back
}

traffic() {
	head -c 1M /dev/urandom >/tmp/data
	: >$LOCAL/data
	check "1 MiB is written and read, 64 KiB at a time" write_and_read
	check "16 Calls had a Read chunk, and 1 MiB was read by RDMA" wait_for 5 says connection \
		"client['sent']['read-chunk'] == server['received']['read-chunk'] == 16 and
		client['sent']['placed-octets'] == server['received']['placed-octets'] == 1 << 20"
	check "16 Replies had a Write chunk, and 1 MiB was written by RDMA" says connection \
		"client['received']['write-chunk'] == server['sent']['write-chunk'] == 16 and
		client['received']['placed-octets'] == server['sent']['placed-octets'] == 1 << 20"
	check "both ends have counted the same messages and octets" wait_for 5 says connection \
		"not any(client[a][k] != server[b][k] for a, b in
		(('sent', 'received'), ('received', 'sent')) for k in
		('inline', 'read-chunk', 'long-call', 'write-chunk', 'reply-chunk', 'error',
		'backward', 'inline-octets', 'placed-octets'))"
	check "each Call has a Reply, and each Reply is in the client's histogram" \
		says connection "sum(client['latency']) == sum(client['received'][k] for k in
		('inline', 'write-chunk', 'reply-chunk')) == sum(client['sent'][k] for k in
		('inline', 'read-chunk', 'long-call'))"
	check "one Call in eight is in the server's" says connection \
		"abs(sum(client['latency']) - 8 * sum(server['latency'])) < 16 <
		sum(client['latency'])"
	check "registrations have come back" wait_for 5 says connection \
		"client['registrations-in-use'] == 0 and client['registrations-idle'] > 0"
	check "nothing went wrong" says connection \
		"not any(n for c in all for n in c['errors'].values())"
	check "a directory of several pages is listed" long_directory /mnt/directory
	check "its Replies came in Reply chunks" wait_for 5 says connection \
		"client['received']['reply-chunk'] == server['sent']['reply-chunk'] > 0"
}

other_namespace() {
	local kind
	for kind in connection listener; do
		check "another network namespace has no ${kind}s" is "[]" "$(elsewhere $kind)"
	done
}

# elsewhere KIND: the dump in another network namespace, from the tool's own program
elsewhere() {
	PYTHONPATH=/lab/ynl unshare --net python3 -B /lab/ynl/cli.py --no-schema \
		--spec /lab/ynl/rpcrdma.yaml --output-json --dump "$1-get"
}

refused() {
	PORT=$((PORT + 1)) check "a mount fails at a port without a listener" \
		not nfs_mount 3 rdma /mnt retry=0
}

# Events are read after all has happened.
events() {
	local of="[(e['name'], e['msg']) for e in all if e['msg'].get('role') == "
	sleep 1
	for role in client server; do
		check "the $role was connected, then closed, each once" says event \
			"[n for n, m in $of'$role'] if n != 'refused'] == ['connected', 'closed']"
		check "both are about the same connection" says event \
			"len({(m['id'], m['peer'], m['local'], m['device'], m['port'])
			for n, m in $of'$role'] if n != 'refused'}) == 1"
	done
	check "the client closed it (ESHUTDOWN), so the server lost it (ECONNRESET)" says event \
		"[m['cause'] for n, m in $of'client'] if n == 'closed'] == [108] and
		[m['cause'] for n, m in $of'server'] if n == 'closed'] == [104]"
	# With siw the TCP connection is refused, so there is no request to be rejected.
	[ "$DEVICE" = siw ] ||
		check "the client was refused by its peer (ECONNREFUSED)" says event \
			"{(m['peer'], m['refusal'], m['cause']) for n, m in $of'client']
			if n == 'refused'} == {('$SERVER4:$((PORT + 1))', 'peer', 111)}"
}
