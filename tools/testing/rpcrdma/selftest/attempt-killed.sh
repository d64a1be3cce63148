# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   an attempt that is killed is a failed step, what follows it runs, and the scenario fails
# guests:  um
# modules: inbox
# steps:   plant
# expect:  not ok 1 - an attempt ends by itself
# expect:  ^ +ok 2 - what follows the attempt

plant() {
	attempt killed
	check "what follows the attempt" true
}

killed() {
	kill -KILL $BASHPID
}
