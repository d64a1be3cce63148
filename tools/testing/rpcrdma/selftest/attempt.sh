# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   an attempt that lacks what it needs ends alone, what follows it runs, and the scenario fails
# guests:  um
# modules: inbox
# steps:   plant
# expect:  not ok 2 - what the attempt needs
# expect:  ^ +ok 3 - what follows the attempt

plant() {
	attempt lacking
	check "what follows the attempt" true
}

lacking() {
	check "a step of the attempt" true
	need "what the attempt needs" false
	check "a step that is not done" true
}
