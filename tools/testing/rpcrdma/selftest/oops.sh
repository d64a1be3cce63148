# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   an oops fails a scenario, and the console's last lines are printed
# guests:  um
# modules: inbox
# steps:   plant
# expect:  not ok 1 - console.log: .*(Kernel panic|BUG|Oops)

plant() {
	modprobe lkdtm
	echo EXCEPTION >/sys/kernel/debug/provoke-crash/DIRECT
}
