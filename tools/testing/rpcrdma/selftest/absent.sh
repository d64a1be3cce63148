# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   a scenario without the function that it names does not pass
# guests:  um
# modules: inbox
# steps:   absent
# expect:  not ok 1 - absent ended with status 1
