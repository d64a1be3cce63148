# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a kernel warning fails a scenario whose steps all pass
# guests:  um
# modules: inbox
# steps:   plant
# expect:  not ok 2 - console.log: .*WARNING: CPU:
# expect:  ^    # \S.*CPU: 0 .*Comm: bash

plant() {
	modprobe lkdtm
	check "a step that succeeds" provoke
}

provoke() {
	echo WARNING >/sys/kernel/debug/provoke-crash/DIRECT
}
