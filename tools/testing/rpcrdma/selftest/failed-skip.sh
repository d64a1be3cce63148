# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a step that fails and says that it was skipped fails a scenario
# guests:  um
# modules: inbox
# steps:   plant
# expect:  not ok 1 - a step

plant() {
	echo "not ok 1 - a step # SKIP no reason"
}
