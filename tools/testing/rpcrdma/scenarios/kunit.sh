# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the unit tests pass in a kernel
# guests:  um um-7-debug um-7
# also:    um-debug arm64-64k s390x
# modules: kunit
# limit:   30
# steps:   unit_tests
# faults:  the suites make devices fail

. "${BASH_SOURCE%/*}/../guest/kunit.sh"

# All suites, so that one that is not built is noticed.
SUITES="call callback carrier chain conn credits deliver detour device endpoint establish form grant
	handle history keepalive listener mr pages place pool private_data pull read_admission receive
	reply resource rw service shared slot stall status unsent version wire_build wire_chunks
	wire_golden wire_v2 wire_verdict"

unit_tests() {
	local suites
	suites=$(printf 'rpcrdma_%s\n' $SUITES | xargs)
	need "load the module with its unit tests" modprobe rpcrdma
	check "the module has these suites" is "$suites" "$(suites_of rpcrdma)"
	cases_of $suites
	module_down
}
