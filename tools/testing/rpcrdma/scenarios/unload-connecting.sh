# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   who gives up while connecting to nobody leaves nothing behind, and kept nobody waiting
# guests:  um
# also:    um-debug debian-6.1 debian-6.12 smp-debug
# devices: rxe siw
# skip:    * siw * *: siw waits for TCP to connect, for two minutes, with the kernel's own module too
# limit:   90

. "${BASH_SOURCE%/*}/../guest/faults.sh"

# Nobody answers on a dummy interface. An attempt may take as long as the
# module lets it: 30 s.
client() {
	client_begin
	check "mounting from nobody is killed" traced killed_connecting
	check "it had sent its request" is "CONNECTING RESOLVING" "$(states)"
	check "no worker of sunrpc's waited with it" [ -e /tmp/xprtiod.free ]
	check "the server stops" rpc.nfsd 0
	check "the module goes" wait_for 40 modprobe -r rpcrdma
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

# The workers' names have a plus sign while they are at work.
xprtiod_is_free() {
	not grep -qs '^Name:.*+xprtiod' /proc/[0-9]*/status
}
