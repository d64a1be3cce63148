# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   nothing that the scenarios before it allocated was lost
# guests:  um-debug smp-debug
# limit:   30
# steps:   leaks

leaks() {
	check "kmemleak finds nothing" no_leak
}

no_leak() {
	# An object is reported from its sixth second on, if two scans agree.
	sleep 6
	# Refused where it has switched itself off
	echo scan >/sys/kernel/debug/kmemleak && echo scan >/sys/kernel/debug/kmemleak || return
	[ -z "$(tee /dev/stderr </sys/kernel/debug/kmemleak)" ]
}
