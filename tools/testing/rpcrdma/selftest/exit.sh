# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a scenario that just ends badly does not count as passed
# guests:  um
# modules: inbox
# steps:   plant
# expect:  not ok 1 - plant ended with status 7

plant() {
	exit 7
}
