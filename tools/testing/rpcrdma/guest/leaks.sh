# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the scenarios before it leaked no memory
# guests:  um-debug um-7-debug smp-debug
# limit:   30
# steps:   leaks

leaks() {
	check "kmemleak finds nothing" no_leak
}

no_leak() {
	# kmemleak reports objects that are older than five seconds, after two scans.
	sleep 6
	# The write fails if kmemleak has switched itself off.
	echo scan >/sys/kernel/debug/kmemleak && echo scan >/sys/kernel/debug/kmemleak || return
	not grep . /sys/kernel/debug/kmemleak
}
