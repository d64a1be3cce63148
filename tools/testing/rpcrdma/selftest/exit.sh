# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a scenario that exits with an error and no results does not pass
# guests:  um
# modules: inbox
# steps:   plant
# expect:  not ok 1 - plant ended with status 7

plant() {
	exit 7
}
