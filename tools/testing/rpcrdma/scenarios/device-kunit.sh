# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the test device's own unit tests pass: it reports each rule that is broken
# guests:  um
# also:    um-7-debug arm64-64k
# devices: mem
# modules: kunit
# limit:   30
# steps:   unit_tests
# faults:  the suites break the rules of verbs

. "${BASH_SOURCE%/*}/../guest/kunit.sh"

unit_tests() {
	local suites
	need "load the test device with its unit tests" modprobe rdma_mem
	suites=$(suites_of rdma_mem)
	check "there are suites" test -n "$suites"
	cases_of $suites
	check "unload it" modprobe -r rdma_mem
}
