# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the unit tests pass in a kernel
# guests:  um um-debug um-7
# also:    smp-debug um-7-debug
# modules: kunit
# limit:   30
# steps:   unit_tests

# All suites, so that one that is not built is noticed.
SUITES="callback conn credits drops form grant handle mr page_frag private_data pull
	read_admission reply slot version wire_build wire_chunks wire_golden wire_v2
	wire_verdict work"

unit_tests() {
	local suite kunit=/sys/kernel/debug/kunit
	need "load the module with its unit tests" modprobe rpcrdma
	check "the module has these suites" is "$(printf 'rpcrdma_%s ' $SUITES)" "$(all_suites)"
	for suite in $SUITES; do
		cases "rpcrdma_$suite" <"$kunit/rpcrdma_$suite/results"
	done
	module_down
}

all_suites() {
	(cd /sys/kernel/debug/kunit && printf '%s ' rpcrdma*)
}

# cases SUITE: read the KTAP of a suite and print its cases as "suite: case". Cases are
# indented once. Lines that are indented further belong to a case; those that explain a
# failure are printed.
cases() {
	local suite=$1 line before=$STEPS
	while IFS= read -r line; do
		if [[ $line =~ ^\ {4}(not\ )?ok\ [0-9]+\ ([A-Za-z0-9_]+)(\ *#\ SKIP.*)?$ ]]; then
			STEPS=$((STEPS + 1))
			echo "${BASH_REMATCH[1]}ok $STEPS - $suite: ${BASH_REMATCH[2]}${BASH_REMATCH[3]}"
			[ -z "${BASH_REMATCH[1]}" ] || FAILED=$((FAILED + 1))
		elif [[ $line =~ (EXPECTATION|ASSERTION) ]]; then
			say "${line# *# }"
		fi
	done
	[ "$STEPS" -gt "$before" ] || check "$suite has cases" false
}
