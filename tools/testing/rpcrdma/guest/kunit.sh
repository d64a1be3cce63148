# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# Library for scenarios with unit tests, which run when a module that has some is loaded.

KUNIT=/sys/kernel/debug/kunit

# suites_of PREFIX: the suites of the modules that are loaded, by their names
suites_of() {
	(cd $KUNIT && compgen -G "$1*" | sort | xargs)
}

# cases_of SUITE...: print the results of their cases.
cases_of() {
	local suite
	for suite in "$@"; do
		cases "$suite" <"$KUNIT/$suite/results"
	done
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
