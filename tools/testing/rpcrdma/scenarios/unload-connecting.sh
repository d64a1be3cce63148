# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a mount that is killed while it connects leaks nothing and blocks no worker of sunrpc
# guests:  um
# also:    um/mem um-debug/rxe debian-6.1 debian-6.12 smp-debug/rxe
# devices: rxe siw mem
# skip:    * siw * *: siw waits two minutes for TCP to connect, with the kernel's own module as well
# limit:   90
# faults:  the module goes while it connects

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# The address is in a dummy interface's network and does not exist. The module ends an
# attempt to connect after 30 s.
client() {
	client_begin
	check "kill a mount from an address that does not answer" traced killed_connecting
	check "it had sent a connection request" is "CONNECTING RESOLVING" "$(states)"
	check "no worker of sunrpc waited for it" [ -e /tmp/xprtiod.free ]
	check "stop the server" rpc.nfsd 0
	check "unload the module" wait_for 40 modprobe -r rpcrdma
	need "load it again" modprobe rpcrdma
}

states() {
	sed -n 's/.*rpcrdma_conn_state: .* state=\([A-Z]*\) .*/\1/p' /tmp/trace | sort -u | xargs
}

killed_connecting() {
	local mount
	rm -f /tmp/xprtiod.free
	mount.nfs 10.17.0.99:$EXPORT /mnt -o vers=4.2,proto=rdma,port=$PORT &
	mount=$!
	wait_for 20 grep -q state=CONNECTING /sys/kernel/tracing/trace
	# Well before the attempt ends
	wait_for 10 xprtiod_is_free && : >/tmp/xprtiod.free
	kill -KILL $mount
	wait $mount
	is 137 $?
}

# The name of a worker has a plus sign while it runs a work item.
xprtiod_is_free() {
	not grep -qs '^Name:.*+xprtiod' /proc/[0-9]*/status
}
