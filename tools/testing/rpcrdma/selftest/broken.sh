# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a connection that breaks fails a scenario that declares no faults
# guests:  um
# modules: inbox
# steps:   plant
# expect:  not ok 2 - console.log: .*rpcrdma: 10\.17\.0\.1: closed: -5

plant() {
	check "a step that succeeds" broken
}

broken() {
	echo "<6>rpcrdma: 10.17.0.1: closed: -5" >/dev/kmsg
}
