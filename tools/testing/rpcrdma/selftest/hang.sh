# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a guest whose only CPU hangs fails a scenario when the time limit ends
# guests:  um
# modules: inbox
# limit:   8
# steps:   plant
# expect:  not ok 1 - plant: no answer within \d+ s

plant() {
	modprobe lkdtm
	echo SOFTLOCKUP >/sys/kernel/debug/provoke-crash/DIRECT
}
