# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shows:   the unit tests, in a kernel
# guests:  um um-debug smp-debug
# modules: kunit
# limit:   30
# steps:   unit_tests

unit_tests() {
	local results
	check "load the module with its unit tests" modprobe rpcrdma
	for results in /sys/kernel/debug/kunit/rpcrdma*/results; do
		cases "$(basename "$(dirname "$results")")" <"$results"
	done
	check "unload it" modprobe -r rpcrdma
}

# KTAP of one suite in, its cases out: "suite: case".
cases() {
	local suite=$1 line
	while IFS= read -r line; do
		if [[ $line =~ ^\ {4}(not\ )?ok\ [0-9]+\ ([a-z0-9_]+)(\ *#\ SKIP\ ?(.*))?$ ]]; then
			STEPS=$((STEPS + 1))
			echo "${BASH_REMATCH[1]}ok $STEPS - $suite: ${BASH_REMATCH[2]}${BASH_REMATCH[3]}"
			[ -z "${BASH_REMATCH[1]}" ] || FAILED=$((FAILED + 1))
		elif [[ $line =~ ^\ +#\ .*(EXPECTATION|ASSERTION)|^\ {8,}[^\ ok] ]]; then
			echo "# $line"
		fi
	done
	[ "$STEPS" -gt 1 ] || check "$suite has cases" false
}
